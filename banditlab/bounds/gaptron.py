r"""Gaptron's mistake bounds with one bit of feedback (van der Hoeven, NeurIPS 2020), and new bounds for larger steps.

All bounds have one form. Assume that the gap inequality
:math:`P(\text{mistake}) + (\text{step}/2)\, \mathbb{E}\|g\|^2 - l_t(W_t) \le \gamma (K-1)/K` holds in every round. Then
:math:`\mathbb{E}[M] \le \sum_t l_t(U) + D^2/(2\, \text{step}) + \gamma ((K-1)/K) T`. Let
:math:`\text{step} = w c \gamma/(K^2 R^2)`, where c is the loss's constant and w the ratio to the paper's step. The last
two terms are at most :math:`P/\gamma + \gamma T` with :math:`P = K^2 R^2 D^2/(2 c w)`. At
:math:`\gamma = \min\{1, \sqrt{P/T}\}` they are at most :math:`\max\{2 P, 2 \sqrt{P T}\}`.

* logistic: :math:`c = (\ln 2)/2`, :math:`w = 2.5 K`, the wide step :math:`2.5 \gamma \ln 2/(2 K R^2)`;
* hinge: :math:`c = 1/2`, :math:`w = K`, the wide step :math:`\gamma/(2 K R^2)`;
* smooth hinge: :math:`c = 1/4`, :math:`w = K`, the wide step :math:`\gamma/(4 K R^2)`.

The wide steps, which are larger than those of the paper, are unpublished. The inequality on the surrogate gap that they
need is proved, case by case, in docs/gaptron-wide-step.md.
"""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import LARGEST, theorem, within

KAPPA = 0.5
r"""The margin above which the hinge loss counts as 0 if the argmax is right (:math:`\kappa` in the paper)."""
_CONSTANTS = {"logistic": math.log(2.0) / 2.0, "hinge": 1.0 - KAPPA, "smooth-hinge": 0.25}
_WIDER = {"logistic": 2.5, "hinge": 1.0, "smooth-hinge": 1.0}

_PAPER = "van der Hoeven, Exploiting the surrogate gap in online multiclass classification, NeurIPS 2020, bandit"
_OURS = "ours, unpublished, for Gaptron (van der Hoeven, NeurIPS 2020) with a step larger by a factor of order K"
_ASSUMES = r"any stream fixed in advance, $\|x_t\| \le R$, $\|U\|_F \le D$, {}, actions drawn from $p'$"
_BITS, _HINGE, _SMOOTH = (
    _ASSUMES.format(f"comparator's loss {loss}") for loss in ("in bits", "the hinge loss", "the smooth hinge loss")
)
_SAME_T = r", $\gamma$ and step as in the theorem for the same T"
_ADVERSARY = (
    r"oblivious: $\mathbb{E}\langle g_t, U \rangle = \langle \nabla l_t(W_t), U \rangle$, the expectation "
    "over the round's draw: U is fixed in advance"
)
_theorem = partial(theorem, adversary=_ADVERSARY)


@within({"rounds": (1.0, LARGEST)})
def gaptron_gamma(
    n_classes: int, radius: float, frobenius_bound: float, rounds: int, loss: str = "logistic", wide: bool = False
) -> float:
    r"""Return the theorem's exploration rate :math:`\min\{1, \sqrt{P/T}\}`.

    For the logistic loss it is :math:`\min\{1, K R D / \sqrt{T \ln 2}\}`.
    """
    c = 2.0 * _CONSTANTS[loss]
    if wide:
        return min(1.0, radius * frobenius_bound * math.sqrt(n_classes / (_WIDER[loss] * rounds * c)))
    return min(1.0, n_classes * radius * frobenius_bound / math.sqrt(rounds * c))


@within(beyond=0.0)
def gaptron_step(n_classes: int, radius: float, gamma: float, loss: str = "logistic", wide: bool = False) -> float:
    r"""Return the theorem's step :math:`c \gamma / (K^2 R^2)`, or the wide step.

    The gap inequality for the wide step is proved in docs/gaptron-wide-step.md.
    """
    if wide:
        return _WIDER[loss] * gamma * _CONSTANTS[loss] / (n_classes * radius**2)
    return gamma * _CONSTANTS[loss] / (n_classes**2 * radius**2)


@_theorem(source=_PAPER + " logistic", unit="bits", assumes=_BITS + _SAME_T)
def gaptron_bandit(n_classes: int, radius: float, frobenius_bound: float, rounds: int) -> float:
    r"""Return :math:`\max\{2 K^2 R^2 D^2 / \ln 2, 2 K R D \sqrt{T / \ln 2}\}`, a bound on :math:`\mathbb{E}[M]` minus
    the comparator's loss.
    """
    return _balanced((n_classes * radius * frobenius_bound) ** 2 / math.log(2.0), rounds)


@_theorem(source=_PAPER + r" hinge, $\kappa = 1/2$", unit="hinge loss", assumes=_HINGE + _SAME_T)
def gaptron_bandit_hinge(n_classes: int, radius: float, frobenius_bound: float, rounds: int) -> float:
    r"""Return :math:`\max\{2 K^2 R^2 D^2, 2 K R D \sqrt{T}\}`, a bound on :math:`\mathbb{E}[M]` minus the hinge loss of
    U.

    The hinge loss is the sum of :math:`\max(0, 1 - \text{margin of } U)`.
    """
    return _balanced((n_classes * radius * frobenius_bound) ** 2, rounds)  # 2 (1 - kappa) = 1


@_theorem(
    source=_PAPER + r" smooth hinge ($\gamma$ and this term derived here from its step)",
    unit="smooth hinge loss",
    assumes=_SMOOTH + _SAME_T,
)
def gaptron_bandit_smooth_hinge(n_classes: int, radius: float, frobenius_bound: float, rounds: int) -> float:
    r"""Return :math:`\max\{4 K^2 R^2 D^2, 2 K R D \sqrt{2 T}\}`, a bound on :math:`\mathbb{E}[M]` minus the
    comparator's smooth hinge loss.
    """
    return _balanced(2.0 * (n_classes * radius * frobenius_bound) ** 2, rounds)


@_theorem(source=_OURS, unit="bits", assumes=_BITS + _SAME_T, printed="a factor 2.5 K more under the roots")
def gaptron_wide(n_classes: int, radius: float, frobenius_bound: float, rounds: int) -> float:
    r"""Return :math:`\max\{2 P, 2 \sqrt{P T}\}` with :math:`P = K R^2 D^2 / (2.5 \ln 2)`, a bound on
    :math:`\mathbb{E}[M]` minus the comparator's loss at the wide step. It is about :math:`1.52 \sqrt{K T} R D`.
    """
    return _balanced(n_classes * (radius * frobenius_bound) ** 2 / (2.5 * math.log(2.0)), rounds)


@_theorem(source=_OURS, unit="hinge loss", assumes=_HINGE + _SAME_T, printed="a factor K more under the roots")
def gaptron_wide_hinge(n_classes: int, radius: float, frobenius_bound: float, rounds: int) -> float:
    r"""Return :math:`\max\{2 K R^2 D^2, 2 R D \sqrt{K T}\}`, the bound of `gaptron_bandit_hinge` at the wide step."""
    return _balanced(n_classes * (radius * frobenius_bound) ** 2, rounds)


@_theorem(source=_OURS, unit="smooth hinge loss", assumes=_SMOOTH + _SAME_T, printed="a factor K more under the roots")
def gaptron_wide_smooth_hinge(n_classes: int, radius: float, frobenius_bound: float, rounds: int) -> float:
    r"""Return :math:`\max\{4 K R^2 D^2, 2 R D \sqrt{2 K T}\}`, the bound of `gaptron_bandit_smooth_hinge` at the wide step."""
    return _balanced(2.0 * n_classes * (radius * frobenius_bound) ** 2, rounds)


@_theorem(
    source=_PAPER + r" logistic (the last sum in its proof, before $\gamma$ is chosen; for larger steps, ours)",
    unit="bits",
    assumes=_BITS
    + r", $\text{step} \le 2.5 \gamma \ln 2/(2 K R^2)$; for the hinge losses, in units of these losses and up to their "
    "wide steps",
)
def gaptron_fixed(n_classes: int, frobenius_bound: float, step: float, gamma: float, rounds: int) -> float:
    r"""Return :math:`D^2 / (2\,\text{step}) + \gamma ((K-1)/K) T`, for any fixed :math:`\gamma` and any step up to the
    wide step.

    The bound follows from

    .. math::

        \mathbb{E}[M] \le \sum l_t(U) + \|U\|^2/(2\,\text{step})
        + \sum \{P(\text{mistake}) + (\text{step}/2) \mathbb{E}\|g_t\|^2 - l_t(W_t)\},

    where each term in braces is at most :math:`\gamma (K-1)/K`. At the theorem's :math:`\gamma` and step the result is
    at most `gaptron_bandit`. The bound holds for every number of rounds T.
    """
    return frobenius_bound**2 / (2.0 * step) + gamma * (n_classes - 1) / n_classes * rounds


def _balanced(P: float, rounds: int) -> float:
    r"""Return :math:`\max\{2 P, 2 \sqrt{P T}\}`, a bound on :math:`P/\gamma + \gamma T` at
    :math:`\gamma = \min\{1, \sqrt{P/T}\}`.
    """
    return max(2.0 * P, 2.0 * math.sqrt(P * rounds))
