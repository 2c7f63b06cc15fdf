r"""Change detection: a likelihood-ratio CUSUM on an agent's own calibration (Page, Biometrika 1954).

p is the predicted probability that a round's action is right. The statistic G adds the log likelihood ratio of "right
with probability r/2" against "right with probability r", where :math:`r = \min(p, .6)`, and is reset to 0 when it is
negative. If the predicted probabilities are correct, the exponential of the sum is a supermartingale. The probability
that G passes h before it returns to 0 is then at most :math:`e^{-h}` on any stream (Ville's inequality). G must pass
:math:`5 + \ln n` after n updates, so it does with probability at most :math:`e^{-5}/n` if it was last 0 at n.
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import inline

HIGHEST = 0.6
"""Largest r. On contexts of a new kind p is often too large, and one miss must not count for much."""
ALARM = 5.0
"""A change is detected if G is above this plus the logarithm of the number of updates."""


@inline
def cusum(G, p, correct):
    """Return the new G, at least 0."""
    r = min(HIGHEST, p)
    # G + ln(1/2) after a hit, G + ln((1 - r/2) / (1 - r)) after a miss
    return max(0.0, G + (math.log(0.5) if correct else math.log((1.0 - 0.5 * r) / (1.0 - r))))
