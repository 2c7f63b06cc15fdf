r"""Online multiclass boosting (Jung, Goetz and Tewari, NIPS 2017; Agarwal, Kale and Zimmert, ALT 2022).

The edges :math:`\gamma_i` are measured on the stream, so these bounds hold for one run.
"""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import theorem

_JUNG = "Jung, Goetz and Tewari, Online multiclass boosting, NIPS 2017, "
_AGARWAL = "Agarwal, Kale and Zimmert, ALT 2022, "
_ADVERSARY = "adaptive: its proof holds for any stream, with the edges measured on it"
_theorem = partial(theorem, unit="mistakes", adversary=_ADVERSARY)


@_theorem(
    source=_JUNG + "Theorem 5, its proof",
    assumes=r"logistic surrogate, exact derivatives, steps $2 \sqrt{2}/((K-1) \sqrt{t})$; $\gamma_i$ the empirical edges",
    printed=r"$8 (K-1) T/\sum \gamma_i^2 + \tilde{O}(K N^2/\sum \gamma_i^2)$ for the booster, $\ln 2 \le 1$, constants dropped",
)
def olm_best_expert(rounds: float, n_classes: int, n_learners: int, edges_squared: float) -> float:
    r"""Return a bound on the mistakes of AdaBoost.OLM's best expert. It is
    :math:`(4 (K-1) (\ln 2) T + 16 \sqrt{2} (K-1) N \sqrt{T}) / \sum \gamma_i^2`, at most T.

    The argument: the logistic loss starts at :math:`(K-1) \ln 2` per round and stays above 0. Learner i reduces it by
    at least :math:`\gamma_i^2/4` for each mistake of expert :math:`i-1`, up to the regret of gradient descent,
    :math:`4 \sqrt{2} (K-1) \sqrt{T}`.
    """
    K, T = n_classes, rounds
    top = 4.0 * (K - 1) * math.log(2.0) * T + 16.0 * math.sqrt(2.0) * (K - 1) * n_learners * math.sqrt(T)
    return T if edges_squared * T <= top else top / edges_squared


@_theorem(
    source=_JUNG + "Theorem 13, its proof",
    assumes=r"square hinge surrogate, $|\alpha| \le c = 1/\sqrt{N}$, steps $\sqrt{2}\, c/((K-1)(1 + c N) \sqrt{t})$; "
    r"empirical edges",
    printed=r"$K-1 + c N$ for the largest derivative, which is $(K-1)(1 + c N)$; $c = 1/\sqrt{N}$ is missing from $R(T)$",
)
def olm_square_hinge_best_expert(rounds: float, n_classes: int, n_learners: int, absolute_edges: float) -> float:
    r"""Return a bound on the mistakes of the best expert with the square hinge. It is
    :math:`(K-1) [\sqrt{N} T + 2 \sqrt{2} (1 + \sqrt{N}) N \sqrt{T}] / \sum |\gamma_i|`, at most T.
    """
    K, N, T = n_classes, n_learners, rounds
    root = math.sqrt(N)
    top = (K - 1) * (root * T + 2.0 * math.sqrt(2.0) * (1.0 + root) * N * math.sqrt(T))
    return T if absolute_edges * T <= top else top / absolute_edges


@_theorem(
    source=_AGARWAL + "Proposition 12, (C.5)",
    assumes=r"`regret` bounds the boosting regression's regret over $\alpha \in [-2, 2]$; $\gamma_i$ the empirical edges",
    printed=r"a rate, $O((T \ln K + N R(T))/\sum \gamma_i^2)$",
)
def olm_plus_best_expert(rounds: float, n_classes: int, n_learners: int, edges_squared: float, regret: float) -> float:
    r"""Return a bound on the mistakes of AdaBoost.OLM++'s best expert, :math:`4 (T \ln K + N R(T)) / \sum \gamma_i^2`,
    at most T.
    """
    top = 4.0 * (rounds * math.log(n_classes) + n_learners * regret)
    return rounds if edges_squared * rounds <= top else top / edges_squared


@_theorem(
    source=_AGARWAL + "Proposition 12, second part",
    assumes=r"every weak learner meets Definition 10 with edge $\gamma$ and sample complexity S; `regret` bounds the boosting "
    r"regression's regret over $\alpha \in [-2, 2]$",
    printed=r"a rate, $O(T \ln K/(N \gamma^2) + R(T)/\gamma^2 + K S/\gamma)$; its last display has $-\min M_i$ instead "
    r"of $\min M_i$",
)
def olm_plus_weak_learners(
    rounds: float, n_classes: int, n_learners: int, edge: float, excess: float, regret: float
) -> float:
    r"""Return a bound on the mistakes of AdaBoost.OLM++'s best expert under the weak learning condition. It is
    :math:`4 [(T \ln K + N R(T))/(N \gamma^2) + K S/\gamma]`, at most T.

    The argument: :math:`\gamma_i \ge \gamma - K S/w_i` with :math:`w_i \ge M_{i-1}/2` in (C.5), so
    :math:`w_i \gamma_i^2 \ge w_i \gamma^2 - 2 \gamma K S`.
    """
    N = n_learners
    top = 4.0 * (rounds * math.log(n_classes) + N * regret + edge * n_classes * excess * N)
    return rounds if N * edge**2 * rounds <= top else top / (N * edge**2)


@_theorem(
    source=_AGARWAL + "Theorem 13, its proof",
    unit="nats",
    assumes=r"half-margins clipped to $[-\text{clip}, \text{clip}]$; `regret` bounds the binary forecaster's regret over a "
    r"ball that holds $W_\alpha$, whose rows have norms $\sqrt{1 + \alpha^2/4} \le \sqrt{2}$",
    printed=r"a rate, $O((\ln T)^2)$; for $\text{clip} = \ln T$, with $e^2/T$ as the second term",
)
def boosting_regression(rounds: float, clip: float, regret: float) -> float:
    r"""Return the regret bound of the boosting regression over :math:`\alpha` in [-2, 2]. It is that of the forecaster
    plus :math:`T \ln(1 + e^{2 - 2\, \mathrm{clip}})`.
    """
    return regret + rounds * math.log1p(math.exp(2.0 - 2.0 * clip))


@_theorem(
    source="Freund and Schapire, 1997; Cesa-Bianchi and Lugosi, Prediction, learning, and games, 2006, Section 2.2",
    assumes=r"experts' weights $\exp(-\text{mistakes})$, one expert drawn independently per round; experts do not "
    "depend on the draws",
    printed=r"$2 \min M_i + 2 \ln N + \tilde{O}(\sqrt{T})$ or $4 \min M_i + 2 \ln(N/\delta)$, both with "
    r"probability $1 - \delta$",
)
def hedge_mistakes(best_expert: float, n_learners: int) -> float:
    r"""Return a bound on the expected mistakes of Hedge at rate 1: :math:`(\min_i M_i + \ln N) e / (e - 1)`."""
    return (best_expert + math.log(n_learners)) * math.e / (math.e - 1.0)


@theorem(
    source="Freund and Schapire, 1997; with confidence as in Agarwal, Kale and Zimmert, ALT 2022, Lemma 17",
    unit="mistakes",
    assumes=r"experts' weights $\exp(-\text{mistakes})$, one expert drawn independently in each round; with "
    r"probability $1 - \delta$, "
    "after every round",
    printed=r"$4 \min M_i + 2 \ln(N/\delta)$, which is smaller where $\min M_i < 0.0271 \ln N$, and there false for some N",
    adversary="adaptive: its supermartingale is conditional on the experts' mistakes in a round, whatever these depend on",
)
def hedge_mistakes_with_confidence(best_expert: float, n_learners: int, delta: float) -> float:
    r"""Return a bound on the mistakes of Hedge at rate 1 that holds with probability :math:`1 - \delta`. It is
    :math:`2 e/(\sqrt{e} + 1) (\min_i M_i + \ln N) + 2 \ln(1/\delta)`.

    The argument: let p be the wrong experts' fraction of the total weight in a round. The sum of the weights is
    multiplied by :math:`1 - (1 - 1/e) p`, so :math:`(1 - 1/e) \sum p \le \min_i M_i + \ln N`. A mistake has the
    probability p and :math:`\mathbb{E}\, e^{1/2 \cdot \text{mistake}} \le e^{(\sqrt{e} - 1) p}`. By Ville's inequality
    the mistakes exceed :math:`2 (\sqrt{e} - 1) \sum p + 2 \ln(1/\delta)` with probability at most :math:`\delta`.
    """
    share = 2.0 * math.e / (math.sqrt(math.e) + 1.0)
    return share * (best_expert + math.log(n_learners)) - 2.0 * math.log(delta)
