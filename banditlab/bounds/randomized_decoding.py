"""Mistake bound of randomized decoding under full information, in excess of the base-2 logistic loss; it is constant in
T.
"""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem, within

LN2 = math.log(2.0)


@within()
def decoding_step(radius: float) -> float:
    r"""Return :math:`2 (\ln 2) (1 - \ln 2) / R^2`, the largest step for which the surrogate gap is at least
    the term with the gradients in the regret bound.
    """
    return 2.0 * LN2 * (1.0 - LN2) / radius**2


@theorem(
    source="Sakaue, Bao, Tsuchiya and Oki, COLT 2024, logistic loss (constants derived here)",
    unit="bits",
    assumes=r"any stream, $\|x_t\| \le R$, label revealed, $\|U\|_F \le D$, step at most $2 \ln 2\, (1 - \ln 2)/R^2$",
    adversary="adaptive: gradient descent's regret for any sequence: $W_t$ depends on the labels, not on draws",
    printed=r"$O(\|U\|_F^2)$",
)
def randomized_decoding(frobenius_bound: float, step: float) -> float:
    r"""Return :math:`D^2 / (2\,\text{step})`, a bound on :math:`\mathbb{E}[M]` minus the comparator's loss in bits, for
    any T.

    With :math:`l = -\log_2\, \mathrm{softmax}(W x)_y` the decoding is wrong with probability at most :math:`l \ln 2`
    (in nats: at most :math:`-\ln q_y`). Moreover :math:`\|\mathrm{grad}\, l\|_F^2 \le R^2 l / \ln 2`, because l is
    nonnegative and smooth with the constant :math:`R^2/(2 \ln 2)`. Gradient descent gives

    .. math::

        \sum l_t(W_t) - l_t(U) \le D^2/(2\,\text{step}) + (\text{step}/2) \sum \|g_t\|^2,

    and for such a step the last term is at most :math:`(1 - \ln 2) \sum l_t(W_t)`, the surrogate gap of the decoding.
    """
    return frobenius_bound**2 / (2.0 * step)
