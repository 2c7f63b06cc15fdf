"""Functions that OBAMA's samplers share: the forecast from an average over the posterior, and the weight of a hit."""

from __future__ import annotations

from banditlab.numerics.decoding import decode_forecast
from banditlab.numerics.draws import draw, draw_uniform
from banditlab.numerics.jit import inline, njit

HITS, CUT = range(2)
"""Indices into a sampler's `hits`: the number of hits, and of those whose weight was cut to 1."""


@inline
def answer(qbar, rule, gamma, u, p):
    r"""Write :math:`q_t = (1 - \mu) h(\text{qbar}) + \mu/K` into p (K,), with h = `rule` and :math:`\mu` = `gamma`.

    Returns an action drawn from p, and whether it was drawn from the uniform part of p. On return, `qbar` contains
    h(qbar).
    """
    K = p.shape[0]
    decode_forecast(rule, qbar)
    # q_t = (1 - mu) qbar + mu/K, mu = gamma
    for k in range(K):
        p[k] = (1.0 - gamma) * qbar[k] + gamma / K
    # A coin flip of probability mu selects a uniform draw instead of a draw from the average.
    if u[0] < gamma:
        return draw_uniform(K, u[1]), True
    return draw(qbar, u[1]), False


@njit
def hit_weight(eta, hits, p_action):
    r"""Return :math:`w = \min(1, \eta/q_t(y_t))`, and update hits (2,), the numbers of hits and of weights cut to 1."""
    w = eta / p_action  # eta L_t = w loss
    hits[HITS] += 1
    if w > 1.0:
        hits[CUT] += w > 1.0 + 1e-12  # gamma = 0 only
        w = 1.0
    return w
