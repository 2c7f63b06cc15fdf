"""Why AIOLI's analysis does not carry over to :math:`K > 2` (Agarwal, Kale and Zimmert, ALT 2022, Appendix F)."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import within


@within(beyond=math.inf)
def hessian_dominance(norm_bound: float, radius: float) -> float:
    r"""Return :math:`e^{B R}/2 + 1`, a lower bound on c in the paper's condition (F.2) at :math:`K = 3`.

    The example is :math:`W = \mathrm{diag}(0, 0, B)`, :math:`x = (0, 0, R)` and label 1. The condition
    (Hessian dominance) on a regularizer :math:`\phi(W) = \psi(W x)` is

    .. math::

        v v' - \mathrm{grad}\, \phi\, \mathrm{grad}\, \phi' \le c\,\text{Hessian of the loss}, \qquad
        v = \mathrm{grad}\, \phi - \mathrm{grad}\, \mathrm{loss}.

    Along :math:`(e_1 - e_2) \otimes x` the left side is :math:`|x|^4` and the Hessian is
    :math:`(s_1 + s_2) |x|^4 = 2 |x|^4/(e^{B R} + 2)`, for every :math:`\psi` that is symmetric in the first two logits.
    A regret of :math:`c \ln T` with this c is no better than that of Online Newton Step.
    """
    return 0.5 * math.exp(norm_bound * radius) + 1.0
