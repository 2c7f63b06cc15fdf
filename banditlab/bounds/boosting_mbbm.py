"""Mistake bound of boost-by-majority with several classes, and the two lemmas that make it a number (Jung et al. 2017)."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from banditlab.bounds._theorem import theorem

_SOURCE = "Jung, Goetz, Tewari, Online multiclass boosting, NIPS 2017, "
FAR = 4095
"""Votes left beyond which a weight is bounded as with so many."""
_CONDITION = (
    "every weak learner meets the online weak learning condition (Definition 1) with edge gamma and excess loss S, with "
    "probability 1 - delta; then it holds with probability 1 - N delta"
)


@theorem(source=_SOURCE + "Lemma 9", unit="mistakes a round", assumes="0-1 loss, a tie at the top counts as lost")
def mbbm_error_rate(n_classes: int, n_learners: int, edge: float) -> float:
    r"""Return :math:`(k-1) \exp(-\gamma^2 N / 2)`, at least :math:`\phi_N^1(0)`; above 1 it says nothing."""
    return (n_classes - 1) * math.exp(-(edge**2) * n_learners / 2.0)


@theorem(
    source=_SOURCE + "Lemma 10 with its Berry-Esseen step replaced by the probability it bounds",
    unit="weight",
    assumes="0-1 loss; any edge in [0, 1]",
    printed="c k^(5/2) / sqrt(N-i) for edges below 1/2, c left open; its proof gives c = 2 (1/sqrt(2 pi) + 4 * 0.4748) "
    "= 4.6, above k, which is trivially enough, until N - i exceeds 21 k^3; here it is below 0.4 for such edges",
)
def mbbm_weight(n_classes: int, votes_left: int, edge: float) -> float:
    r"""Return :math:`\min\{k-1, k (k-1) \max_n P(X_r - X_l = n)\}`, at least every weight of a learner with m =
    `votes_left` after it.

    X counts m draws from :math:`u_{\gamma}^r`. :math:`\phi_m(s + e_l) - \phi_m(s + e_r)` is the probability of a tie
    at the top, at most :math:`\sum_{j \ne r} P(X_r - X_j = s_j - s_r)`, plus that of a win by one vote over l alone,
    at most :math:`P(X_r - X_l = s_l - s_r + 1)`. A weight is its sum over :math:`k-1` classes l: :math:`k-1` times
    the first and each of the second, :math:`k (k-1)` such terms.
    """
    k, m = n_classes, int(min(votes_left, FAR))  # more draws make no value more probable: the bound of fewer holds
    enough = 1 << m.bit_length()  # a power of two: the walk is not made anew for every number of votes
    return min(k - 1.0, k * (k - 1.0) * _modes(k, edge, enough)[m])


@theorem(
    source=_SOURCE + "Theorem 2 (Corollary 3 where `error_rate` and `weights` are left out)",
    unit="mistakes",
    assumes=_CONDITION,
    printed="Corollary 3 prints O~(k^(5/2) sqrt(N) S) for the second term. Two rates have no constant: an error of eps "
    "takes N = Theta(ln(k/eps)/gamma^2) learners and a sample of Theta~(k^(5/2) S/(eps gamma)); Theorem 4: no booster "
    "does with fewer than Omega(ln(1/eps)/(k gamma)^2) learners and Omega(k S/(eps gamma)) rounds",
)
def mbbm_mistakes(
    n_classes: int,
    n_learners: int,
    edge: float,
    rounds: int,
    excess: float,
    error_rate: float | None = None,
    weights: float | None = None,
) -> float:
    r"""Return :math:`\phi_N^1(0) T + S \sum_i w^{i^*}`; None stands for Lemma 9's :math:`\phi_N^1(0)` and for Lemma
    10's sum of weights.

    `error_rate` is :math:`\phi_N^1(0)`, which `banditlab.boosting` computes exactly; `weights` is the sum of the
    estimates :math:`w^{i^*}` that divide the learners' weights.
    """
    if error_rate is None:
        error_rate = mbbm_error_rate(n_classes, n_learners, edge)
    if weights is None:
        near = int(min(n_learners, FAR))
        weights = sum(mbbm_weight(n_classes, m, edge) for m in range(near))
        weights += (n_learners - near) * mbbm_weight(n_classes, near, edge)
    return error_rate * rounds + excess * weights


@theorem(
    source=_SOURCE + "Equation (27): Azuma-Hoeffding, then the arithmetic and the geometric mean",
    unit="cost",
    assumes="predictions drawn independently from u_edge^y; claimed edge below the true one; with probability 1 - delta",
    printed="with the true edge twice the claimed one",
)
def simulated_excess(n_classes: int, true_edge: float, edge: float, delta: float) -> float:
    r"""Return :math:`S = k \ln(1/\delta) / (2 (\text{true edge} - \gamma))`: the excess loss of a learner that draws
    with a larger edge.

    NaN where the true edge is not the larger one.
    """
    if not true_edge > edge:
        return math.nan
    return n_classes * math.log(1.0 / delta) / (2.0 * (true_edge - edge))


@cache
def _modes(n_classes: int, edge: float, votes: int) -> tuple[float, ...]:
    """Return max_n P(X_r - X_l = n) after m = 0 ... `votes` draws from u_gamma^r."""
    down = (1.0 - edge) / n_classes
    step = np.array([down, max(0.0, 1.0 - 2.0 * down - edge), down + edge])
    walk, modes = np.ones(1), [1.0]
    for _ in range(votes):
        walk = np.convolve(walk, step)
        modes.append(float(walk.max()))
    return tuple(modes)
