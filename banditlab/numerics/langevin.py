"""MALA: Metropolis-adjusted Langevin chains on the logistic posterior, its prior uniform on the row ball or Gaussian.

The target is exp(-U(W)) on {W : ||W_k|| <= B}, U the sum of the losses so far (weighted, where the counts are sums of
weights) plus (ridge/2) ||W||^2: with B infinite that is the Gaussian prior N(0, I/ridge). A proposal
W - e grad U + sqrt(2 e) noise is accepted with the Metropolis-Hastings probability and rejected where it leaves the ball,
which keeps the target exact. Nothing is clipped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import njit
from banditlab.numerics.softmax import log_softmax
from banditlab.numerics.symmetric import dot

TARGET = 0.574
"""Acceptance rate the step size is steered to, the optimal one for smooth targets in many dimensions."""
GAIN, DECAY = 0.5, 0.25
"""The step's logarithm moves by GAIN (round)^-DECAY times (rate - TARGET) after each round."""
LEAST, MOST = 1e-12, 1e2  # of the step, in units of B^2 (of the prior's variance where there is no ball)


class Chains(NamedTuple):
    """W (c, K, d) positions; U (c,) potentials and G (c, K, d) their gradients there.

    samples (S, c, K, d): positions after each of the last round's S steps. step (1,) = e; tally (2,) = proposals,
    acceptances. V, H (K, d) and z (K,) are scratch.
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


@njit
def potential(W, X, C, z, G, ridge=0.0):
    """Return U(W) over distinct contexts X (m, d) with label counts C (m, K); write its gradient into G (K, d)."""
    K, d = W.shape
    value = 0.0
    for k in range(K):
        value += 0.5 * ridge * dot(W[k], W[k])
        for j in range(d):
            G[k, j] = ridge * W[k, j]
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
def move(chains, c, X, C, B, noise, u, ridge):
    """Try one step of chain c with standard normal noise (K, d) and uniform u; return whether it was accepted."""
    W, G, V, H, e = chains.W[c], chains.G[c], chains.V, chains.H, chains.step[0]
    K, d = W.shape
    for k in range(K):
        for j in range(d):
            V[k, j] = W[k, j] - e * G[k, j] + math.sqrt(2.0 * e) * noise[k, j]
    if not inside(V, B):
        return False
    there = potential(V, X, C, chains.z, H, ridge)
    back, forth = 0.0, 0.0
    for k in range(K):
        for j in range(d):
            back += (W[k, j] - V[k, j] + e * H[k, j]) ** 2
            forth += 2.0 * e * noise[k, j] ** 2
    if math.log(u) >= chains.U[c] - there + (forth - back) / (4.0 * e):
        return False
    for k in range(K):
        overwrite(W[k], V[k])
        overwrite(G[k], H[k])
    chains.U[c] = there
    return True


@njit
def advance(chains, X, C, B, noise, u, rounds, ridge):
    """Move every chain by S steps, noise (S, c, K, d), u (S, c), on the posterior after `rounds` rounds."""
    accepted = 0
    for c in range(chains.W.shape[0]):
        chains.U[c] = potential(chains.W[c], X, C, chains.z, chains.G[c], ridge)
        for s in range(noise.shape[0]):
            accepted += move(chains, c, X, C, B, noise[s, c], u[s, c], ridge)
            for k in range(chains.W.shape[1]):
                overwrite(chains.samples[s, c, k], chains.W[c, k])
    chains.tally[0] += u.size
    chains.tally[1] += accepted
    change = GAIN * rounds**-DECAY * (accepted / u.size - TARGET)
    unit = B * B if math.isfinite(B) else 1.0
    chains.step[0] = min(MOST * unit, max(LEAST * unit, chains.step[0] * math.exp(change)))


def effective_sample_size(draws: NDArray[np.float64]) -> float:
    """Return the effective number of independent draws of a scalar, from draws (S steps, c chains).

    Autocovariances pooled over chains against the variance within and between them (Gelman et al., Bayesian Data
    Analysis, Section 11.5), summed over Geyer's initial positive pairs.
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
    """Return the least `effective_sample_size` over the coordinates of W less its mean row; samples (S, c, K, d)."""
    centred = samples - samples.mean(axis=2, keepdims=True)
    columns = centred.reshape(*samples.shape[:2], -1)
    return min(effective_sample_size(columns[:, :, i]) for i in range(columns.shape[2]))
