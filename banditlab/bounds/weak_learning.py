"""When online learners are weak learners (Jung, Goetz and Tewari, NIPS 2017, Appendix A)."""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import theorem

_JUNG = "Jung, Goetz and Tewari, Online multiclass boosting, NIPS 2017, "
_theorem = partial(
    theorem,
    unit="cost",
    adversary="adaptive: Lemma 7: 'an adversary chooses examples in fully adaptive manner'; a martingale bound given each "
    "round's costs",
)


@_theorem(
    source=_JUNG + "Lemma 7, its proof; Cesa-Bianchi and Lugosi, 2006, Corollary 4.2",
    assumes=r"weighted costs in [0, 1], Algorithm 3 at $\eta = \sqrt{8 (\ln N)/T}$; with probability $1 - \delta$",
)
def expert_advice(rounds: float, size: int, delta: float) -> float:
    r"""Return a bound on the excess cost of Algorithm 3 (LEA) over that of the best of N experts,
    :math:`\sqrt{T \ln(N)/2} + \sqrt{T \ln(1/\delta)/2}`.
    """
    return math.sqrt(0.5 * rounds) * (math.sqrt(math.log(size)) + math.sqrt(-math.log(delta)))


@_theorem(
    source=_JUNG + "Lemma 7",
    assumes=r"hypotheses of Littlestone dimension d, weighted costs in [0, 1]; with probability $1 - \delta$",
)
def online_agnostic(rounds: float, n_classes: int, littlestone_dimension: int, delta: float) -> float:
    r"""Return a bound on the excess cost of the best online learner over that of the best hypothesis. It is
    :math:`R_\delta(T) = \sqrt{T d \ln(T k)/2} + \sqrt{T \ln(1/\delta)/2}`: `expert_advice` over :math:`(T k)^d`
    experts, one of which predicts like the best hypothesis.
    """
    log_size = littlestone_dimension * math.log(max(rounds, 1.0) * n_classes)
    return math.sqrt(0.5 * rounds) * (math.sqrt(log_size) + math.sqrt(-math.log(delta)))


@_theorem(
    source=_JUNG + "Theorem 8 with Lemma 7",
    assumes=r"hypotheses of Littlestone dimension d, rich with edge $2 \gamma$ (12); weights of at least m; with probability "
    r"$1 - \delta$",
    printed=r"the remark after it omits m, $S = \max_T (R_\delta(T) - \gamma T/k)$",
)
def link_excess(n_classes: int, edge: float, least_weight: float, littlestone_dimension: int, delta: float) -> float:
    r"""Return the excess loss S with which Definition 1 holds at the edge :math:`\gamma`. It is
    :math:`S = \max_{T \ge 1} (R_\delta(T) - \gamma m T/k)`, with m the smallest weight.

    :math:`R_\delta` is `online_agnostic`. It is concave in T, so the slope of the difference has one root.
    """
    k, d, rest, price = n_classes, littlestone_dimension, math.sqrt(-math.log(delta)), edge * least_weight / n_classes

    def slope(T: float) -> float:
        log = math.log(T * k)
        return (math.sqrt(d / log) * (log + 1.0) + rest) / math.sqrt(8.0 * T) - price

    low, high = 1.0, 2.0
    while slope(high) > 0.0:
        low, high = high, 4.0 * high
        if high > 1e300:  # a slope of 0, or so small that the maximum overflows
            return math.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) > 0.0 else (low, middle)
    return online_agnostic(low, k, d, delta) - price * low
