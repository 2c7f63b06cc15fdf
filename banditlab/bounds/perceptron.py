"""The multiclass perceptron's mistake bound under full information."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem


@theorem(
    source="Crammer and Singer, JMLR 2003; Kakade, Shalev-Shwartz and Tewari, ICML 2008, Section 2",
    unit="hinge",
    assumes=r"any stream, $\|x_t\| \le R$, label revealed; any U",
    adversary="adaptive: the argument given, about whatever sequence came; no action is random",
)
def perceptron(hinge_loss: float, frobenius_norm: float, radius: float) -> float:
    r"""Return the mistake bound :math:`L + D + \sqrt{L D}` with :math:`D = 2 R^2 \|U\|_F^2` and U's hinge loss L.

    :math:`L = \sum_t \max(0, 1 - (U x)_y + \max_{k \ne y} (U x)_k)`. A mistake adds at least :math:`1 - l_t(U)` to
    :math:`\langle U, W \rangle` and at most :math:`2 R^2` to :math:`\|W\|_F^2`, so :math:`M - L \le \sqrt{D M}`, and
    solving for M gives the bound.
    """
    D = 2.0 * radius**2 * frobenius_norm**2
    return hinge_loss + D + math.sqrt(hinge_loss * D)
