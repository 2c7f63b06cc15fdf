"""The B-grid aggregator: learners of several norm bounds mixed at learning rate 1."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem


@theorem(
    source="Vovk 1990, for the grid's members; the members' theorems",
    unit="nats",
    assumes="the member whose ball holds the comparator has regret at most Reg",
    adversary="adaptive: an identity in the labels, whatever they are, and the member's theorem",
)
def grid(member_regret: float, size: int) -> float:
    r"""Return the regret bound :math:`\mathrm{Reg} + \ln(\text{size})` of the mixture, against the ball of one of
    `size` members.

    Reg is that member's bound.
    """
    return member_regret + math.log(size)
