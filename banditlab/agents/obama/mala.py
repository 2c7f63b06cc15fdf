r"""OBAMA's posterior by persistent Langevin chains (MALA), asymptotically exact.

The potential is a sum over all past hits (rounds in which the action was right). The chains store
:math:`W / \text{deviation}` and use the context :math:`\text{deviation}\, x`. The prior is then :math:`N(0, I)`, and
the limits on the step size do not depend on the units of the contexts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.obama.tempered import HITS, answer
from banditlab.numerics.decoding import SAMPLE
from banditlab.numerics.jit import njit
from banditlab.numerics.langevin import Chains, advance
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.softmax import add_softmax
from banditlab.numerics.symmetric import dot

Floats = NDArray[np.float64]


class State(NamedTuple):
    r"""The chains; forecasts are averages over their last positions.

    `deviation` is the prior's standard deviation. `gamma` is :math:`\mu` in the paper, and `eta` the learning rate.
    `hits` (2,) is described in `tempered`. `v` and `qbar` (K,) are work arrays. `decoding` is the index in `DECODINGS`.
    """

    chains: Chains
    deviation: float
    gamma: float
    eta: float
    hits: NDArray[np.int64]
    v: Floats
    qbar: Floats
    decoding: int

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        return {"hits": COUNT}


@njit
def act_kernel(state, x, u, p, payload):
    samples, z, qbar = state.chains.samples, state.chains.z, state.qbar
    S, n, K, _ = samples.shape
    for k in range(K):
        qbar[k] = 0.0
    # qbar = average of softmax(W x) over all chains and positions
    for s in range(S):
        for c in range(n):
            for k in range(K):
                z[k] = state.deviation * dot(samples[s, c, k], x)
            add_softmax(z, z, 0.0, state.v, qbar)
    for k in range(K):
        qbar[k] /= S * n
    return answer(qbar, state.decoding, state.gamma, u, p)


def initial_state(
    shape: tuple[int, int, int, int],
    deviation: float,
    radius: float,
    rng: np.random.Generator,
    gamma: float,
    eta: float,
    decoding: int = SAMPLE,
) -> State:
    r"""Return chains that start at draws from the prior :math:`N(0, \text{deviation}^2 I)`; shape = (steps, chains, K,
    d).
    """
    _, c, K, d = shape
    samples = rng.standard_normal(shape)
    W, V = samples[-1].copy(), np.zeros((K, d))
    step = np.array([min(0.1, (deviation * radius) ** -2)])
    chains = Chains(W, np.zeros(c), np.zeros_like(W), samples, step, np.zeros(2, np.int64), V, V.copy(), np.zeros(K))
    return State(chains, deviation, gamma, eta, np.zeros(2, np.int64), np.zeros(K), np.zeros(K), decoding)


def run_chains(state: State, X: Floats, C: Floats, rng: np.random.Generator) -> None:
    """Advance every chain by `steps` Langevin steps (see `initial_state`) on the posterior given the hits so far.

    X (m, d) contains the contexts of the hits, and C (m, K) the total weight of the hits by context and label.
    """
    noise = rng.standard_normal(state.chains.samples.shape)
    u = 1.0 - rng.random(noise.shape[:2])  # in (0, 1]
    advance(state.chains, state.deviation * X, C, math.inf, noise, u, float(state.hits[HITS]), 1.0)
