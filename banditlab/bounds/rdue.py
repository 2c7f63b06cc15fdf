r"""Mistake bounds of randomised decoding with uniform exploration and one bit of feedback (Shibukawa et al., NeurIPS
2025).

The surrogate is :math:`S(\theta, y) = \log_2 \sum_j 2^{\theta_j} - \theta_y` with :math:`\theta = W x`. It is the
base-2 logistic loss of the logits :math:`\theta \ln 2`. A comparator U with logits :math:`U x` in nats therefore
corresponds to :math:`W = U/\ln 2`. Its loss is :math:`-\log_2 \mathrm{softmax}(U x)_y`, in bits, and rows of
:math:`U/\ln 2` are :math:`1/\ln 2` times as long as those of U.
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
    r"any stream fixed in advance, $\|x_t\| \le R$, comparator U with $U/\ln 2$ in the learner's set, whose Frobenius "
    r"diameter is `diameter`; comparator's loss $-\log_2 \mathrm{softmax}(U x)_y$, in bits; step "
    r"$\text{diameter}/\sqrt{2 \sum \|G\|_F^2}$, projected"
)
_ADVERSARY = (
    r"oblivious: $\mathbb{E}\langle G_t, U \rangle = \langle \nabla S_t(W_t), U \rangle$, the expectation "
    "over the round's draw: U is fixed in advance"
)
_theorem = partial(theorem, unit="bits", adversary=_ADVERSARY)

GAP = 1.0 - math.log(2.0)
"""The constant a: the decoding is wrong with probability at most :math:`(1 - a) S`."""


@within()
def rdue_gap(decoding: str, n_classes: float) -> float:
    """Return the constant a of a decoding rule: the paper's 1 - ln 2 for "randomized", otherwise `decoding_constant`."""
    return GAP if decoding == "randomized" else decoding_constant(decoding, n_classes)


@within()
def rdue_radius(n_classes: int, norm_bound: float) -> float:
    r"""Return :math:`\sqrt{K} B / \ln 2`, the radius of the smallest Frobenius ball that contains :math:`U / \ln 2` for
    all U with rows of norm at most B.

    The paper's B is the diameter, twice this radius.
    """
    return math.sqrt(n_classes) * norm_bound / math.log(2.0)


@within()
def rdue_smoothness(radius: float) -> float:
    r"""Return :math:`b = 2 (\ln 2) R^2`, for which :math:`\|\mathrm{grad}\, S\|_F^2 \le b S`.

    It follows from :math:`\|q - e_y\|^2 \le 2 (1 - q_y) \le -2 \ln q_y`.
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
    r"""Return the exploration rate :math:`\text{diameter}\, \sqrt{b K/(2 a T)}`, at most 1.

    At this rate the two terms of `rdue_decoded` are equal up to the factor :math:`(K-1)/K`.
    """
    a = rdue_gap(decoding, n_classes)
    return min(1.0, diameter * radius * math.sqrt(math.log(2.0) * n_classes / (a * rounds)))


@_theorem(source=_SOURCE, assumes=_ASSUMES + r", $\gamma = \min\{1, \text{diameter} \sqrt{K/T}\}$ for the same T")
def rdue_bandit(n_classes: int, radius: float, diameter: float, rounds: int) -> float:
    r"""Return :math:`(b/(2a) + 1)\,\text{diameter}\, \sqrt{K T}`, a bound on :math:`\mathbb{E}[M]` minus the
    comparator's loss.

    Here :math:`a = 1 - \ln 2` and :math:`b = 2 (\ln 2) R^2`. If :math:`\gamma` is cut to 1, the bound exceeds T.
    """
    return (rdue_smoothness(radius) / (2.0 * GAP) + 1.0) * diameter * math.sqrt(n_classes * rounds)


@_theorem(source=_SOURCE + r" (the last sum in its proof, before $\gamma$ is chosen)", assumes=_ASSUMES)
def rdue_fixed(n_classes: int, radius: float, diameter: float, gamma: float, rounds: int) -> float:
    r"""Return :math:`\gamma ((K-1)/K) T + b K\,\text{diameter}^2 / (2 a \gamma)`, a bound on :math:`\mathbb{E}[M]`
    minus the comparator's loss for any fixed :math:`\gamma`.

    The bound holds after any number of rounds. Let :math:`L = \mathbb{E}[\sum S(W_t)]`. Then
    :math:`\mathbb{E}[M] \le \gamma ((K-1)/K) T + (1 - a) L`. The regret of the gradient steps is at most
    :math:`\text{diameter}\, \sqrt{2 b K L / \gamma}`, because :math:`E\|G_t\|^2 = \|\mathrm{grad}\, S\|^2 / p(y)` and
    :math:`p(y) \ge \gamma/K`. The maximum of :math:`-a L + \text{diameter}\, \sqrt{2 b K L / \gamma}` over L is the
    second term.
    """
    if gamma == 0.0:
        return math.inf
    stay = rdue_smoothness(radius) * n_classes * diameter**2 / (2.0 * GAP * gamma)
    return gamma * (n_classes - 1) / n_classes * rounds + stay


@_theorem(
    source=_SOURCE + " (with another decoding rule: ours, docs/theory/half-log.md)",
    assumes=_ASSUMES,
    printed=r"only its own rule, with $a = 1 - \ln 2$: `rdue_fixed`",
)
def rdue_decoded(
    n_classes: int, radius: float, diameter: float, gamma: float, rounds: int, decoding: str = "half-log"
) -> float:
    r"""Return the bound of `rdue_fixed` with the constant a of the decoding rule:
    :math:`\gamma ((K-1)/K) T + b K\,\text{diameter}^2 / (2 a \gamma)`.

    a is 1/2 for half-log and 1 - ln 2 for RDUE's own rule.
    """
    if gamma == 0.0:
        return math.inf
    stay = rdue_smoothness(radius) * n_classes * diameter**2 / (2.0 * rdue_gap(decoding, n_classes) * gamma)
    return gamma * (n_classes - 1) / n_classes * rounds + stay
