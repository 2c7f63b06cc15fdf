r"""One theorem for first-order agents: gradient descent on the base-2 logistic loss with a decoding rule.

:math:`l = -\log_2 \mathrm{softmax}(W x)_y` is not negative and :math:`R^2/(2 \ln 2)`-smooth in W, so
:math:`\|\nabla l\|_F^2 \le b\, l` with :math:`b = R^2/\ln 2`. Consider gradient descent from :math:`W_1 = 0` with
constant step :math:`\eta`, projected onto a Frobenius ball that contains the comparator U, or not projected. For
estimates g of the gradient with :math:`\mathbb{E}\|g\|^2 \le \|\nabla l\|^2/\pi`,

.. math::

    \mathbb{E} \sum l_t(W_t) - l_t(U) \le \|U\|_F^2/(2 \eta) + (\eta b/(2 \pi))\, \mathbb{E} \sum l_t(W_t),

and at :math:`\eta \le 2 c \pi/b` the last term is at most :math:`c \sum l_t(W_t)`. A decoding rule with
:math:`P(\text{mistake}) \le (1 - c)\, l` compensates for this term. With one bit of feedback, draw actions from
:math:`(1 - \gamma)\, \text{decoded} + \gamma/K` and use :math:`g = (\mathbf{1}[\text{right}]/p_y) \nabla l`, for which
:math:`\pi = \gamma/K`. Under full information, :math:`\pi = 1` and :math:`\gamma = 0`.

The argument is that of van der Hoeven (NeurIPS 2020) and of Sakaue et al. (COLT 2024, Proposition 6), who use
:math:`b = 2 R^2/\ln 2` and their own rules. With that b, the rule "thresholded" and :math:`c = 1/(2K)`, it gives
Gaptron's published step and constant.

The weight :math:`1/p_y` of a right action is small if the action was likely. It is :math:`K/\gamma` only if the rule
gives the label probability 0. "half-log" and "sparsemax" therefore allow larger ("wide") steps,
:math:`2 h \gamma/(K R^2)`, with h from `WIDE` instead of the :math:`c \ln 2 = 0.3466` above.

Without a projection, the theorem also covers bits that are late by at most :math:`\tau` rounds. Then
:math:`1/\pi + 2 \tau` replaces :math:`1/\pi`, and the steps are :math:`2 c/(b (K/\gamma + 2 \tau))`.
"""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import LARGEST, theorem, within
from banditlab.bounds.decoding import decoding_constant

_SOURCE = "ours, unpublished: the surrogate-gap argument with any decoding rule (docs/theory/half-log.md)"
_ASSUMES = r"any stream, $\|x_t\| \le R$, comparator's loss $-\log_2 \mathrm{softmax}(U x)_y$, in bits, $\|U\|_F \le D$"
_ROUNDING = 1e-12
WIDE = {"half-log": 0.42706, "sparsemax": 0.49618}
r"""The constants h, rounded down: :math:`(\ln 2)^2/(9/8)` with equality at :math:`s = (3/4, 1/4)`, and
:math:`(\ln 2)^2 (\log_2 5 - 1)/1.28` with equality at :math:`s = (4/5, 1/5)`.
"""
_ADVERSARY = (
    r"oblivious: estimates of the gradient, $\mathbb{E}\langle g_t, U \rangle = \langle \nabla l_t(W_t), U \rangle$: "
    "U is fixed in advance"
)
_theorem = partial(theorem, source=_SOURCE, unit="bits", adversary=_ADVERSARY)


@within()
def logistic_smoothness(radius: float) -> float:
    r"""Return :math:`b = R^2/\ln 2`: :math:`\|\mathrm{grad}\, l\|_F^2 \le b l` for the base-2 logistic loss."""
    return radius**2 / math.log(2.0)


@within(beyond=0.0)
def template_step(
    n_classes: int, radius: float, gamma: float, decoding: str = "half-log", wide: bool = False, delay: int = 0
) -> float:
    r"""Return :math:`2 c \gamma/(b (K + 2 \tau \gamma))`, the step of the theorem with one bit of feedback.

    The bit may be late by at most :math:`\tau` rounds. The wide step is :math:`2 h \gamma/(K R^2)`; with a delay it is
    NaN.
    """
    if wide and delay:
        return math.nan
    return 2.0 * _pay(decoding, n_classes, wide) * gamma / ((n_classes + 2.0 * delay * gamma) * radius**2)


@within()
def template_label_step(n_classes: int, radius: float, decoding: str = "half-log") -> float:
    r"""Return :math:`2 c/b`, the largest step of the theorem under full information."""
    return 2.0 * decoding_constant(decoding, n_classes) * math.log(2.0) / radius**2


@within({"rounds": (1.0, LARGEST)})
def template_gamma(
    n_classes: int,
    radius: float,
    frobenius_bound: float,
    rounds: int,
    decoding: str = "half-log",
    wide: bool = False,
) -> float:
    r"""Return the exploration rate :math:`\min\{1, \sqrt{P/T}\}` with :math:`P = b K D^2/(4 c)`.

    At this rate the two terms of `template_fixed` are equal.
    """
    return min(1.0, radius * frobenius_bound * math.sqrt(_pull(n_classes, decoding, wide) / rounds))


@_theorem(
    assumes=_ASSUMES + r", label revealed, $\text{step} = 2 c/b$",
    adversary="adaptive: gradient descent's regret for any sequence: $W_t$ depends on the labels, not on draws",
)
def template_label(n_classes: int, radius: float, frobenius_bound: float, decoding: str = "half-log") -> float:
    r"""Return :math:`b D^2/(4 c)`, a bound on :math:`\mathbb{E}[M]` minus the comparator's loss, for any T. It is
    :math:`0.7213 R^2 D^2` with half-log.
    """
    return (radius * frobenius_bound) ** 2 / (4.0 * decoding_constant(decoding, n_classes) * math.log(2.0))


@_theorem(assumes=_ASSUMES + r", one bit, $\gamma$ and step as in the theorem for the same T")
def template_bandit(
    n_classes: int,
    radius: float,
    frobenius_bound: float,
    rounds: int,
    decoding: str = "half-log",
    wide: bool = False,
) -> float:
    r"""Return :math:`\max\{2 P, 2 \sqrt{P T}\}` with :math:`P = b K D^2/(4 c)`, a bound on :math:`\mathbb{E}[M]` minus
    the comparator's loss. The second term is :math:`D \sqrt{b K T/c}`, which is :math:`1.699 R D \sqrt{K T}` with
    half-log.

    With `wide`, :math:`P = K R^2 D^2/(4 h)`, and the second term is :math:`1.531 R D \sqrt{K T}` with half-log. With
    sparsemax the factor is 1.420.
    """
    P = (radius * frobenius_bound) ** 2 * _pull(n_classes, decoding, wide)
    return max(2.0 * P, 2.0 * math.sqrt(P * rounds))


@_theorem(
    assumes=_ASSUMES
    + r", one bit, $\text{step} \le 2 c \gamma/(b K)$, or the wide one; where bits are late by at most $\tau$ "
    r"rounds, which depend on the stream only, $\text{step} \le 2 c \gamma/(b (K + 2 \tau \gamma))$ and no projection",
)
def template_fixed(
    n_classes: int,
    radius: float,
    frobenius_bound: float,
    step: float,
    gamma: float,
    rounds: int,
    decoding: str = "half-log",
    delay: int = 0,
) -> float:
    r"""Return :math:`D^2/(2\,\text{step}) + \gamma (1 - 1/K) T` for any :math:`\gamma` and any step up to that of the
    theorem.

    The bound holds after any number of rounds.
    """
    largest = template_step(n_classes, radius, gamma, decoding, wide=decoding in WIDE and not delay, delay=delay)
    if not step <= largest * (1.0 + _ROUNDING):
        return math.nan
    return frobenius_bound**2 / (2.0 * step) + gamma * (1.0 - 1.0 / n_classes) * rounds


def _pay(decoding: str, n_classes: float, wide: bool) -> float:
    """Return h = c ln 2, or for the wide step the h of `WIDE` (NaN for rules without a wide step)."""
    return WIDE.get(decoding, math.nan) if wide else decoding_constant(decoding, n_classes) * math.log(2.0)


def _pull(n_classes: float, decoding: str, wide: bool) -> float:
    r"""Return :math:`P/(R D)^2 = K/(4 h)`."""
    return n_classes / (4.0 * _pay(decoding, n_classes, wide))
