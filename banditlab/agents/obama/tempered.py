"""What OBAMA's samplers share: the answer from an average over the posterior, and a hit's weight in its next factor."""

from __future__ import annotations

from banditlab.numerics.draws import draw, draw_uniform
from banditlab.numerics.jit import inline, njit


@inline
def answer(qbar, gamma, u, p):
    """Write q_t = (1 - mu) qbar + mu/K into p (K,); return the action drawn from it, and whether the coin chose it."""
    K = p.shape[0]
    for k in range(K):
        p[k] = (1.0 - gamma) * qbar[k] + gamma / K
    if u[0] < gamma:
        return draw_uniform(K, u[1]), True
    return draw(qbar, u[1]), False


@njit
def hit_weight(rates, hits, p_action):
    """Return w = eta/q_t(y_t), cut to 1, and count the hit; rates (2,) = (gamma, eta), hits (2,) = (all, cut)."""
    w = rates[1] / p_action  # eta L_t = w loss
    hits[0] += 1
    if w > 1.0:
        hits[1] += w > 1.0 + 1e-12  # gamma = 0 only
        w = 1.0
    return w
