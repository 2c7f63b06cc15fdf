r"""MALA: Metropolis-adjusted Langevin chains on the logistic posterior, with a uniform or a Gaussian prior.

The target is :math:`\exp(-U(W))` on :math:`\{W : \|W_k\| \le B\}`. U is the sum of the losses so far plus
:math:`(\text{ridge}/2) \|W\|^2`. If the label counts are sums of weights, the losses have these weights. With B
infinite the ridge term corresponds to the prior :math:`N(0, I/\text{ridge})`. In one step of size e the proposal

.. math::

    V = W - e \nabla U(W) + \sqrt{2 e}\, \text{noise}

is accepted with probability

.. math::

    \min(1, e^{U(W) - U(V)} q(W \mid V)/q(V \mid W)), \qquad -\ln q(V \mid W) = \|V - W + e \nabla U(W)\|^2/(4 e).

A proposal outside the ball is rejected, so the stationary distribution is exactly the target.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.softmax import log_softmax
from banditlab.numerics.symmetric import dot

ACCEPTANCE_RATE = 0.574
"""The acceptance rate to which the step size adapts, which is optimal for smooth targets in many dimensions."""
GAIN, DECAY = 0.5, 0.25
r"""After each round the step's logarithm changes by :math:`\text{GAIN}\, \text{round}^{-\text{DECAY}}` times the
acceptance rate minus `ACCEPTANCE_RATE`.
"""
LEAST_STEP, MOST_STEP = 1e-12, 1e2  # in units of B^2, or of the prior's variance without a ball
PROPOSALS, ACCEPTANCES = range(2)
"""Indices of `Chains.tally`."""


class Chains(NamedTuple):
    """The chains: positions W (c, K, d), with their potentials U (c,) and gradients G (c, K, d).

    `samples` (S, c, K, d) has the positions after each of the last round's S steps. `step` (1,) is e. `tally` (2,) has
    the counts `PROPOSALS` and `ACCEPTANCES`. V, H (K, d) and z (K,) are work arrays: a proposal, its gradient, a
    context's logits.
    """

    W: NDArray[np.float64]
    U: NDArray[np.float64]
    G: NDArray[np.float64]
    samples: NDArray[np.float64]
    step: NDArray[np.float64]
    tally: NDArray[np.int64]
    V: NDArray[np.float64]
    H: NDArray[np.float64]
    z: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"tally": COUNT}


@njit
def potential(W, X, C, z, G, ridge=0.0):
    """Return U(W) over distinct contexts X (m, d) with label counts C (m, K); write its gradient into G (K, d)."""
    K, d = W.shape
    # The prior: (ridge/2) ||W||^2.
    value = 0.0
    for k in range(K):
        value += 0.5 * ridge * dot(W[k], W[k])
        for j in range(d):
            G[k, j] = ridge * W[k, j]
    # The losses, one distinct context at a time.
    for i in range(X.shape[0]):
        for k in range(K):
            z[k] = dot(W[k], X[i])
        log_softmax(z)
        n = C[i].sum()
        for k in range(K):
            value -= C[i, k] * z[k]
            r = n * math.exp(z[k]) - C[i, k]
            for j in range(d):
                G[k, j] += r * X[i, j]
    return value


@njit
def inside(W, B):
    """Return whether every row of W (K, d) has norm at most B."""
    longest = 0.0
    for k in range(W.shape[0]):
        longest = max(longest, dot(W[k], W[k]))
    return longest <= B * B


@njit
def mala_step(chains, c, X, C, B, noise, u, ridge):
    """Try one step of chain c with standard normal noise (K, d) and uniform u; return whether it was accepted."""
    W, G, V, H, e = chains.W[c], chains.G[c], chains.V, chains.H, chains.step[0]
    K, d = W.shape
    # The proposal V.
    for k in range(K):
        for j in range(d):
            V[k, j] = W[k, j] - e * G[k, j] + math.sqrt(2.0 * e) * noise[k, j]
    if not inside(V, B):
        return False
    there = potential(V, X, C, chains.z, H, ridge)
    # back = ||W - V + e grad U(V)||^2, forth = ||V - W + e grad U(W)||^2 = 2 e ||noise||^2
    back, forth = 0.0, 0.0
    for k in range(K):
        for j in range(d):
            back += (W[k, j] - V[k, j] + e * H[k, j]) ** 2
            forth += 2.0 * e * noise[k, j] ** 2
    if math.log(u) >= chains.U[c] - there + (forth - back) / (4.0 * e):
        return False
    # Accepted: the chain moves, and its potential and gradient are those computed for V.
    for k in range(K):
        overwrite(W[k], V[k])
        overwrite(G[k], H[k])
    chains.U[c] = there
    return True


@njit
def advance(chains, X, C, B, noise, u, rounds, ridge):
    """Make S steps of every chain on the posterior after `rounds` rounds, with noise (S, c, K, d) and uniforms u (S, c)."""
    accepted = 0
    for c in range(chains.W.shape[0]):
        # The posterior has changed since the last round, so recompute potential and gradient.
        chains.U[c] = potential(chains.W[c], X, C, chains.z, chains.G[c], ridge)
        for s in range(noise.shape[0]):
            accepted += mala_step(chains, c, X, C, B, noise[s, c], u[s, c], ridge)
            for k in range(chains.W.shape[1]):
                overwrite(chains.samples[s, c, k], chains.W[c, k])
    chains.tally[PROPOSALS] += u.size
    chains.tally[ACCEPTANCES] += accepted
    # ln e adapts to the target acceptance rate with decreasing gains (Robbins and Monro).
    change = GAIN * rounds**-DECAY * (accepted / u.size - ACCEPTANCE_RATE)
    unit = B * B if math.isfinite(B) else 1.0
    chains.step[0] = min(MOST_STEP * unit, max(LEAST_STEP * unit, chains.step[0] * math.exp(change)))


def effective_sample_size(draws: NDArray[np.float64]) -> float:
    """Return the effective number of independent draws of a scalar, from draws (S steps, c chains).

    The estimate compares autocovariances pooled over chains with the variance within and between them (Gelman et al.,
    Bayesian Data Analysis, Section 11.5). It sums them over Geyer's initial positive pairs.
    """
    S, c = draws.shape
    within = draws.var(axis=0, ddof=1).mean() if S > 1 else 0.0
    between = S * draws.mean(axis=0).var(ddof=1) if c > 1 else 0.0
    total = (S - 1) / S * within + between / S
    if total <= 0.0:
        return 0.0
    centred = draws - draws.mean(axis=0)
    lags = [float((centred[: S - lag] * centred[lag:]).sum() / (c * (S - lag))) for lag in range(S)]
    rho = [1.0 - (within - lag) / total for lag in lags]
    tau = 1.0
    for lag in range(1, S - 1, 2):
        pair = rho[lag] + rho[lag + 1]
        if pair < 0.0:
            break
        tau += 2.0 * pair
    return float(min(draws.size, draws.size / tau))


def worst_effective_sample_size(samples: NDArray[np.float64]) -> float:
    """Return the least `effective_sample_size` over the coordinates of W minus its mean row; samples (S, c, K, d)."""
    centred = samples - samples.mean(axis=2, keepdims=True)
    columns = centred.reshape(*samples.shape[:2], -1)
    return min(effective_sample_size(columns[:, :, i]) for i in range(columns.shape[2]))
