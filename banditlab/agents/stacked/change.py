r"""Change detection: a likelihood-ratio CUSUM on an agent's own calibration (Page, Biometrika 1954).

p is the predicted probability that a round's action is right. G adds the log likelihood ratio of "right with probability p/2"
against "right with probability p"; below 0 it starts again from 0. Where the p are right, the exponential of what is added up
is a supermartingale, so that from where G is 0 it passes h before it is back there with probability :math:`e^{-h}` at most,
whatever the stream (Ville's inequality).
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import inline

HIGHEST = 0.95


@inline
def cusum(G, p, correct):
    """Return the new G, at least 0."""
    r = min(HIGHEST, p)
    # G + ln(1/2) after a hit, G + ln((1 - r/2) / (1 - r)) after a miss
    return max(0.0, G + (math.log(0.5) if correct else math.log((1.0 - 0.5 * r) / (1.0 - r))))
