"""OBAMA (Foster, Kale, Luo, Mohri and Sridharan, COLT 2018) with a Gaussian prior: bounds with explicit constants."""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import LARGEST, theorem, within
from banditlab.bounds.decoding import OURS, mistakes_per_nat

_ADVERSARY = (
    r"oblivious: $\mathbb{E}[w_t\, \mathrm{loss}_t(U)] = (\gamma/K)\, \mathrm{loss}_t(U)$, "
    "the expectation over the round's draw: U is fixed in advance"
)
_theorem = partial(theorem, unit="nats", adversary=_ADVERSARY)


@_theorem(
    source="our constants for the aggregating forecaster of Foster et al., COLT 2018, Algorithm 1",
    assumes=r"exact posterior, prior $N(0, \text{deviation}^2 I)$, each loss weighted by $w_t \in [0, 1]$, $\|x_t\| \le R$",
    adversary="adaptive: the variational formula, for any contexts, labels and weights",
    printed=r"$5 K d \ln(B R T/(K d) + e)$ for the uniform prior on the ball",
)
def gaussian_mix_regret(
    total_weight: float, n_features: int, n_classes: int, comparator_norm: float, deviation: float, radius: float
) -> float:
    r"""Return a bound on the mix-loss regret of the exact posterior, with the total weight :math:`T_w`. It is
    :math:`\|U\|^2/(2 s^2) + (Kd/2) \ln(1 + s^2 R^2 (1-1/K) T_w/(Kd))`; the regret is
    :math:`\sum_t -\ln \mathbb{E}_{P_t}[s_y^{w_t}] - \sum_t w_t\, \mathrm{loss}(U)`.

    The proof uses the variational formula at :math:`N(U, v I)`. For each unit of weight, the mean loss under this
    Gaussian exceeds the loss of U by at most :math:`(v/2)\, \mathrm{tr}\,\text{Hessian} \le (v/2) R^2 (1 - 1/K)` (heat
    equation). The relative entropy to the prior is :math:`\|U\|^2/(2 s^2) + (Kd/2)(v/s^2 - 1 - \ln(v/s^2))`. The bound
    follows at :math:`1/v = 1/s^2 + R^2 (1 - 1/K) T_w/(Kd)`.

    Parameters
    ----------
    total_weight
        :math:`T_w`, the sum of the weights.
    n_features, n_classes
        d and K.
    comparator_norm
        :math:`\|U\|_F`.
    deviation
        :math:`s`, the prior's standard deviation.
    radius
        R.
    """
    dimension = n_classes * n_features
    growth = deviation**2 * radius**2 * (1.0 - 1.0 / n_classes) * total_weight / dimension
    return comparator_norm**2 / (2.0 * deviation**2) + 0.5 * dimension * math.log1p(growth)


@_theorem(
    source="our constants for OBAMA, Foster et al., COLT 2018, Theorem 6",
    assumes=r"exact posterior, prior $N(0, (B^2/d) I)$, $\eta = \gamma/K$, $\|U_k\| \le B$, $\|x_t\| \le R$; in expectation",
    printed=r"$O(\min\{d K^2 e^{2 B R} \ln(\cdot), \sqrt{d K^2 T \ln(B R T/(d K))}\})$ for the uniform prior on the ball",
)
def obama_gaussian_prior(
    rounds: int, n_features: int, n_classes: int, norm_bound: float, radius: float, gamma: float
) -> float:
    r"""Return a bound on exact OBAMA's :math:`\mathbb{E}[\text{mistakes}] - \sum_t\, \mathrm{loss}(U)`. It is
    :math:`(K/\gamma)\,\mathrm{gaussian\_mix\_regret} + \gamma (1 - 1/K) T`.

    The weight of a round is :math:`\eta/q_t(y_t)` with :math:`\eta = \gamma/K` on a hit, and 0 otherwise, so
    :math:`\mathbb{E}[T_w] = \gamma T/K`. The mix-loss bound is concave in :math:`T_w`, so by Jensen's inequality it may
    be evaluated at this mean. With the forecast :math:`\bar q` and :math:`q = (1 - \gamma) \bar q + \gamma/K`,

    .. math::

        1 - q_y \le 1 - \bar q_y + \gamma (1 - 1/K) \le -\ln \bar q_y + \gamma (1 - 1/K).

    """
    if gamma == 0.0:
        return math.inf
    mix = _mix(rounds, n_features, n_classes, norm_bound, radius, gamma)
    return n_classes / gamma * mix + gamma * (1.0 - 1.0 / n_classes) * rounds


@_theorem(
    source="Foster, Kale, Luo, Mohri and Sridharan, COLT 2018, OBAMA over a finite class (our constants)",
    assumes=r"comparators are the members of a finite class, uniform prior, $\eta = \gamma/K$; in expectation",
)
def obama_net(rounds: int, members: int, n_classes: int, gamma: float) -> float:
    r"""Return a bound on OBAMA's :math:`\mathbb{E}[\text{mistakes}] - \sum_t\, \mathrm{loss}(\text{member})`. It is
    :math:`(K/\gamma) \ln N + \gamma (1 - 1/K) T` for any of N members.

    The mix-loss regret against a member is at most :math:`\ln N`, whatever the weights; the rest is as in
    `obama_gaussian_prior`.
    """
    if gamma == 0.0:
        return math.inf
    return n_classes / gamma * math.log(members) + gamma * (1.0 - 1.0 / n_classes) * rounds


@_theorem(
    source=OURS + ", for OBAMA, Foster et al., COLT 2018",
    unit="0.5 bits",
    assumes=r"as obama_gaussian_prior, with the average decoded before exploration; $\mathbb{E}[M]$ is at most 0.7213 "
    "times the "
    "loss in nats plus this",
    printed="not there",
)
def decoded_obama(
    rounds: int,
    n_features: int,
    n_classes: int,
    norm_bound: float,
    radius: float,
    gamma: float,
    decoding: str = "half-log",
) -> float:
    r"""Return a bound on exact OBAMA's :math:`\mathbb{E}[\text{mistakes}] - 0.7213 \sum_t\, \mathrm{loss}(U)`. It is
    :math:`0.7213 (K/\gamma)\,\mathrm{gaussian\_mix\_regret} + \gamma (1 - 1/K) T`.

    OBAMA draws actions from :math:`(1 - \gamma) h(\bar q) + \gamma/K`, where h is the decoding, and its learning rate
    is :math:`\gamma/K`. Every class has probability at least :math:`\gamma/K`, so weights are at most 1, and their mean
    is :math:`\gamma/K`. Moreover :math:`1 - h_y \le 0.7213 (-\ln \bar q_y)`.
    """
    if gamma == 0.0:
        return math.inf
    mix = mistakes_per_nat(decoding, n_classes) * _mix(rounds, n_features, n_classes, norm_bound, radius, gamma)
    return n_classes / gamma * mix + gamma * (1.0 - 1.0 / n_classes) * rounds


@_theorem(
    source=OURS + ", for OBAMA over a finite class, Foster et al., COLT 2018",
    unit="0.5 bits",
    assumes=r"as obama_net, with the average decoded before exploration; $\mathbb{E}[M]$ is at most 0.7213 times the "
    "member's loss "
    "in nats plus this",
    printed="not there",
)
def decoded_obama_net(rounds: int, members: int, n_classes: int, gamma: float, decoding: str = "half-log") -> float:
    r"""Return a bound on OBAMA's :math:`\mathbb{E}[\text{mistakes}]` minus 0.7213 times any member's loss. It is
    :math:`0.7213 (K/\gamma) \ln N + \gamma (1 - 1/K) T`, by the argument of `decoded_obama` with the regret of
    `obama_net`.

    """
    if gamma == 0.0:
        return math.inf
    mix = mistakes_per_nat(decoding, n_classes) * math.log(members)
    return n_classes / gamma * mix + gamma * (1.0 - 1.0 / n_classes) * rounds


@within({"rounds": (1.0, LARGEST)})
def obama_gamma(
    rounds: int, n_features: int, n_classes: int, norm_bound: float, radius: float, decoding: str = "sample"
) -> float:
    r"""Return the :math:`\gamma`, at most 1, at which the two terms of `decoded_obama` are equal.

    For "sample" the terms are those of `obama_gaussian_prior`. With f = `mistakes_per_nat`,
    :math:`\gamma = \sqrt{f K\, \mathrm{mix}(\gamma) / ((1 - 1/K) T)}` is the fixed point of an increasing concave map,
    which the iteration approaches from above.
    """
    gamma, factor = 1.0, mistakes_per_nat(decoding, n_classes)
    for _ in range(200):
        mix = factor * _mix(rounds, n_features, n_classes, norm_bound, radius, gamma)
        previous, gamma = gamma, min(1.0, math.sqrt(n_classes * mix / ((1.0 - 1.0 / n_classes) * rounds)))
        if previous - gamma <= 1e-15 * gamma:
            break
    return gamma


def _mix(rounds: int, n_features: int, n_classes: int, norm_bound: float, radius: float, gamma: float) -> float:
    r"""Return the bound on the mix-loss regret against all U with :math:`\|U\|_F^2 \le K B^2`, at the expected total
    weight :math:`\gamma T/K`.
    """
    comparator_norm, deviation = math.sqrt(n_classes) * norm_bound, norm_bound / math.sqrt(n_features)
    weight = gamma * rounds / n_classes
    return gaussian_mix_regret(weight, n_features, n_classes, comparator_norm, deviation, radius)
