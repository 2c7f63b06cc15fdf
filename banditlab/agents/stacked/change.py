r"""Change detection: a likelihood-ratio CUSUM on an agent's own calibration (Page, Biometrika 1954).

p is the predicted probability that a round's action is right. The statistic G adds the log likelihood ratio of "right
with probability p/2" against "right with probability p", and is reset to 0 when it is negative. If the predicted
probabilities are correct, the exponential of the sum is a supermartingale. The probability that G passes h before it
returns to 0 is then at most :math:`e^{-h}` on any stream (Ville's inequality).
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
