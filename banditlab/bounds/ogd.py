"""Online gradient descent on the multiclass logistic loss."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem


@theorem(
    source="Zinkevich 2003; Hazan, Introduction to Online Convex Optimization, Theorem 3.1",
    unit="nats",
    assumes=r"rows of norm at most B, $\|x\| \le R$, steps $s/\sqrt{t}$, projection every round",
    adversary="adaptive: Theorem 3.1, which holds for every sequence of convex losses; no forecast is random",
)
def ogd(rounds: float, n_classes: int, norm_bound: float, radius: float, step: float | None = None) -> float:
    r"""Return the regret bound of projected online gradient descent: :math:`\sqrt{T} (D^2 / (2 s) + s G^2)`.

    Here :math:`D = 2 \sqrt{K} B` and :math:`G = \sqrt{2} R`.

    At the default, :math:`s = D / G`, this is :math:`(3/2) G D \sqrt{T}`.
    """
    diameter = 2.0 * math.sqrt(n_classes) * norm_bound
    gradient = math.sqrt(2.0) * radius
    s = diameter / gradient if step is None else step
    return math.sqrt(rounds) * (diameter**2 / (2.0 * s) + s * gradient**2)
