r"""A comparison of a policy with its holdback policy, with an anytime-valid interval for the difference.

Another policy, the holdback policy, makes a fraction h of the decisions. Consider an action that was chosen with total
probability P, and that the holdback policy would have chosen with probability o. With the reward r and any number c
that depends only on earlier decisions, the terms

.. math::

    D = (r - c)\, \frac{1 - o/P}{1 - h}, \qquad |D| \le B = \max(1/h, 1/(1 - h)), \tag{1}

have conditional mean :math:`v - v'`, the difference of the two policies' expected rewards. (With the policy's own
probability p, :math:`P = (1 - h) p + h o`, so the fraction in (1) is :math:`(p - o)/P`, whose mean is 0.) The interval
is that of `banditlab.offpolicy.RunningBound` for the terms :math:`(1 \pm D)/2`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.offpolicy.intervals import RunningBound, earlier_means
from banditlab.offpolicy.log import Floats

LEVEL = 0.95
FAR = 4.5
"""The number of standard deviations beyond which the number of held-back decisions counts as far from its expectation."""


class Holdback(NamedTuple):
    """The comparison of a policy with its holdback policy since the last change of the holdback."""

    decisions: int
    held: int
    share: float
    """The expected fraction of held-back decisions."""
    answered: int
    """The number of decisions in the comparison."""
    difference: float
    """The policy's mean reward minus that of the other policy. It is NaN without feedback, and so are `low` and `high`."""
    low: float
    high: float

    def lines(self) -> list[str]:
        """Return the comparison as text."""
        shares = f"held back: {self.held:,} of {self.decisions:,} decisions, {self.held / self.decisions:.1%}"
        found = [f"{shares}; {self.share:.1%} are expected"]
        deviation = math.sqrt(self.decisions * self.share * (1.0 - self.share))
        if abs(self.held - self.decisions * self.share) > FAR * deviation:
            found.append("warning: the number held back is further from its expectation than chance explains")
        if self.answered:
            better = "better" if self.low > 0.0 else "worse" if self.high < 0.0 else "not shown yet"
            found.append(
                f"better than the held-back decisions: {better}; right more often by {self.difference:+.1%}, 95 % "
                f"interval {self.low:+.1%} ... {self.high:+.1%} (holds however often you look)"
            )
        return found


def compared(marks: list[Floats], played: Floats, places: NDArray[np.intp], correct: Floats) -> Holdback | None:
    """Return the comparison over the decisions since the held-back share changed, or None if the last decision has no holdback.

    Parameters
    ----------
    marks, played
        `marks` contains three arrays (n,) with one entry per decision: whether the holdback policy made it, h, and o.
        `played` (n,) contains P.
    places, correct
        (m,) the indices of the decisions that count (see `banditlab.policy.unanswered`), and their rewards.
    """
    held, share, other = marks
    if not len(share) or not share[-1]:
        return None
    first, h = int(np.flatnonzero(np.append(0.0, share[:-1]) != share)[-1]), float(share[-1])
    which, r = places[places >= first], correct[places >= first]
    terms = (r - earlier_means(r)) * (1.0 - other[which] / played[which]) / (1.0 - h)  # (1)
    most = max(1.0 / h, 1.0 / (1.0 - h))
    bounds = [RunningBound((most - 1.0) / 2.0) for _ in range(2)]
    for sign, bound in zip((1.0, -1.0), bounds, strict=True):
        bound.add((1.0 + sign * terms) / 2.0)
    low, high = (2.0 * bound.bound((1.0 - LEVEL) / 2.0) - 1.0 for bound in bounds)
    figures = (float(terms.mean()), low, -high) if len(r) else (math.nan,) * 3
    return Holdback(len(share) - first, int(held[first:].sum()), h, len(r), *figures)
