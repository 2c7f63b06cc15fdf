"""Regret bound of the B-grid aggregator, which mixes learners with several norm bounds at learning rate 1."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem


@theorem(
    source="Vovk 1990, for the grid's members; the members' theorems",
    unit="nats",
    assumes="the member whose ball contains the comparator has regret at most Reg",
    adversary="adaptive: an identity that holds for any labels, and the member's theorem",
)
def grid(member_regret: float, size: int) -> float:
    r"""Return the regret bound :math:`\mathrm{Reg} + \ln(\text{size})` of a mixture of `size` members against all
    models in the ball of one member.

    Reg is the regret bound of that member.
    """
    return member_regret + math.log(size)
