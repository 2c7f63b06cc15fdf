r"""Mistake bounds of randomised decoding with uniform exploration (Shibukawa et al., NeurIPS 2025), one bit of
feedback.

The surrogate is :math:`S(\theta, y) = \log_2 \sum_j 2^{\theta_j} - \theta_y` with :math:`\theta = W x`. It is the
base-2 logistic loss of the logits :math:`\theta \ln 2`, so a comparator U of logits :math:`U x` in nats enters as
:math:`W = U/\ln 2`: its loss is :math:`-\log_2 \mathrm{softmax}(U x)_y`, in bits, and its rows may be :math:`1/\ln 2`
times as long.
"""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import LARGEST, theorem, within
from banditlab.bounds.decoding import decoding_constant

_SOURCE = (
    "Shibukawa, Sakaue, Tsuchiya, Yamanishi, Bandit and delayed feedback in online structured prediction, NeurIPS 2025 "
    "(arXiv 2502.18709), randomised decoding with uniform exploration, multiclass"
)
_ASSUMES = (
    r"any stream fixed beforehand, $\|x_t\| \le R$, comparator U with $U/\ln 2$ in the learner's set, whose Frobenius "
    r"diameter is `diameter`; comparator's loss $-\log_2 \mathrm{softmax}(U x)_y$, in bits; step "
    r"$\text{diameter}/\sqrt{2 \sum \|G\|_F^2}$, projected"
)
_ADVERSARY = (
    r"oblivious: $\mathbb{E}\langle G_t, U \rangle = \langle \nabla S_t(W_t), U \rangle$, the expectation "
    "over the round's draw: U is fixed beforehand"
)
_theorem = partial(theorem, unit="bits", adversary=_ADVERSARY)

GAP = 1.0 - math.log(2.0)
"""a: the decoding is wrong with probability at most :math:`(1 - a) S`."""


@within()
def rdue_gap(decoding: str, n_classes: float) -> float:
    """Return a for a decoding rule: the paper's 1 - ln 2 for its own, "randomized", otherwise `decoding_constant`."""
    return GAP if decoding == "randomized" else decoding_constant(decoding, n_classes)


@within()
def rdue_radius(n_classes: int, norm_bound: float) -> float:
    r"""Return :math:`\sqrt{K} B / \ln 2`, the radius of the Frobenius ball around {:math:`U / \ln 2`: rows of U at
    most B long}.

    The paper's B is the diameter, twice this.
    """
    return math.sqrt(n_classes) * norm_bound / math.log(2.0)


@within()
def rdue_smoothness(radius: float) -> float:
    r"""Return :math:`b = 2 (\ln 2) R^2`: :math:`\|\mathrm{grad}\, S\|_F^2 \le b S`, for
    :math:`\|q - e_y\|^2 \le 2 (1 - q_y) \le -2 \ln q_y`.
    """
    return 2.0 * math.log(2.0) * radius**2


@within({"rounds": (1.0, LARGEST)})
def rdue_gamma(n_classes: int, diameter: float, rounds: int) -> float:
    r"""Return the theorem's exploration rate :math:`q_0 = \text{diameter}\, \sqrt{K/T}`, at most 1."""
    return min(1.0, diameter * math.sqrt(n_classes / rounds))


@within({"rounds": (1.0, LARGEST)})
def rdue_decoded_gamma(
    n_classes: int, radius: float, diameter: float, rounds: int, decoding: str = "half-log"
) -> float:
    r"""Return :math:`\text{diameter}\, \sqrt{b K/(2 a T)}`, at most 1: the two terms of `rdue_decoded` are equal
    there but for :math:`(K-1)/K`.
    """
    a = rdue_gap(decoding, n_classes)
    return min(1.0, diameter * radius * math.sqrt(math.log(2.0) * n_classes / (a * rounds)))


@_theorem(source=_SOURCE, assumes=_ASSUMES + r", $\gamma = \min\{1, \text{diameter} \sqrt{K/T}\}$ for the same T")
def rdue_bandit(n_classes: int, radius: float, diameter: float, rounds: int) -> float:
    r"""Return :math:`(b/(2a) + 1)\,\text{diameter}\, \sqrt{K T}`: :math:`\mathbb{E}[M]` is at most the sum of the
    comparator's loss plus this; :math:`a = 1 - \ln 2`, :math:`b = 2 (\ln 2) R^2`.

    Where :math:`\gamma` is cut at 1 this is above T.
    """
    return (rdue_smoothness(radius) / (2.0 * GAP) + 1.0) * diameter * math.sqrt(n_classes * rounds)


@_theorem(source=_SOURCE + r" (the sum its proof ends with, before $\gamma$ is chosen)", assumes=_ASSUMES)
def rdue_fixed(n_classes: int, radius: float, diameter: float, gamma: float, rounds: int) -> float:
    r"""Return :math:`\gamma ((K-1)/K) T + b K\,\text{diameter}^2 / (2 a \gamma)`, for any fixed :math:`\gamma`; holds
    at every prefix.

    With :math:`L = \mathbb{E}[\sum S(W_t)]`: :math:`\mathbb{E}[M] \le \gamma ((K-1)/K) T + (1 - a) L`; the regret of
    the steps is at most :math:`\text{diameter}\, \sqrt{2 b K L / \gamma}`, for
    :math:`E\|G_t\|^2 = \|\mathrm{grad}\, S\|^2 / p(y)` and :math:`p(y) \ge \gamma/K`; and
    :math:`-a L + \text{diameter}\, \sqrt{2 b K L / \gamma}` is largest at the second term.
    """
    if gamma == 0.0:
        return math.inf
    stay = rdue_smoothness(radius) * n_classes * diameter**2 / (2.0 * GAP * gamma)
    return gamma * (n_classes - 1) / n_classes * rounds + stay


@_theorem(
    source=_SOURCE + " (with another decoding rule: ours, docs/theory/half-log.md)",
    assumes=_ASSUMES,
    printed=r"its own rule only, at $a = 1 - \ln 2$: `rdue_fixed`",
)
def rdue_decoded(
    n_classes: int, radius: float, diameter: float, gamma: float, rounds: int, decoding: str = "half-log"
) -> float:
    r"""Return :math:`\gamma ((K-1)/K) T + b K\,\text{diameter}^2 / (2 a \gamma)`, a the rule's constant: 1/2 for
    half-log, RDUE's is 1 - ln 2.
    """
    if gamma == 0.0:
        return math.inf
    stay = rdue_smoothness(radius) * n_classes * diameter**2 / (2.0 * rdue_gap(decoding, n_classes) * gamma)
    return gamma * (n_classes - 1) / n_classes * rounds + stay
