"""OBAMA-lite's default sampler: a Gaussian posterior, and the average softmax of logits drawn from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.obama.tempered import answer, hit_weight
from banditlab.numerics.decoding import SAMPLE
from banditlab.numerics.dense import cholesky_psd
from banditlab.numerics.gaussian_posterior import Posterior, learn_label, logit_law, posterior_state
from banditlab.numerics.jit import njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.softmax import add_softmax


class State(NamedTuple):
    r"""The posterior and the average over it.

    `nodes` (samples/2, K) contains the nodes of `mean_softmax`. `gamma` is :math:`\mu` in the paper, and `eta` the
    learning rate. `hits` (2,) is described in `obama.tempered`. `R` (K, K), `n`, `v` and `qbar` (K,) are work arrays.
    `decoding` is the index in `DECODINGS`.
    """

    posterior: Posterior
    nodes: NDArray[np.float64]
    gamma: float
    eta: float
    hits: NDArray[np.int64]
    R: NDArray[np.float64]
    n: NDArray[np.float64]
    v: NDArray[np.float64]
    qbar: NDArray[np.float64]
    decoding: int

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        return {"hits": COUNT}


@njit
def mean_softmax(z, Sigma, nodes, R, n, v, qbar):
    r"""Write the average of :math:`\mathrm{softmax}(z + R n)` over the nodes n and their mirror images :math:`-n` into
    qbar.

    R is the root of the covariance, :math:`R R' = \Sigma`.
    """
    K = z.shape[0]
    cholesky_psd(Sigma, R)
    for k in range(K):
        qbar[k] = 0.0
    for i in range(nodes.shape[0]):
        # R n_i, then the two mirror images
        for k in range(K):
            n[k] = 0.0
            for c in range(k + 1):
                n[k] += R[k, c] * nodes[i, c]
        add_softmax(z, n, 1.0, v, qbar)
        add_softmax(z, n, -1.0, v, qbar)
    for k in range(K):
        qbar[k] /= 2.0 * nodes.shape[0]


@njit
def act_kernel(state, x, u, p, payload):
    logit_law(state.posterior, x)  # the logits have the distribution N(z0, Sigma)
    law = state.posterior.law
    # qbar = E softmax(n), n ~ N(z0, Sigma), by antithetic nodes
    mean_softmax(law.z0, law.Sigma, state.nodes, state.R, state.n, state.v, state.qbar)
    return answer(state.qbar, state.decoding, state.gamma, u, p)


@njit
def learn_kernel(state, x, action, p, payload, correct):
    if correct:  # L_t = 0 otherwise
        learn_label(state.posterior, x, action, hit_weight(state.eta, state.hits, p[action]))


def initial_state(
    n_classes: int,
    n_features: int,
    deviation: float,
    nodes: NDArray[np.float64],
    gamma: float,
    eta: float,
    decoding: int = SAMPLE,
) -> State:
    r"""Return the prior :math:`N(0, \text{deviation}^2 I)` and its nodes (samples/2, K)."""
    K = n_classes
    return State(
        posterior=posterior_state(K, n_features, deviation),
        nodes=nodes,
        gamma=gamma,
        eta=eta,
        hits=np.zeros(2, np.int64),
        R=np.zeros((K, K)),
        n=np.zeros(K),
        v=np.zeros(K),
        qbar=np.zeros(K),
        decoding=decoding,
    )
