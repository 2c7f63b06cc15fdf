r"""StackCB's first rounds, when there are fewer rounds than columns. Not from a paper.

There every linear model fits every outcome, likelihoods distinguish experts by chance only, and the stack is a mean of margins
that differ by little. The information is in directions: those of the hits, and those of the misses. On five clusters
in 400
columns half of all mistakes were made there. Three things are done, which end after d rounds:

* **The target of a miss.** Exactly one of K classes is right. Coded by the corners of a simplex (Y. Mroueh, T. Poggio, L.
  Rosasco, J.-J. Slotine. Multiclass learning with simplex coding. NIPS 2012), so that the classes' mean is 0, it is 1 for the
  right one and :math:`-1/(K-1)` for each other. Of that the ridge expert (`ridge_expert`) learns

  .. math::

      r = 1 \text{ of a hit}, \qquad r = -\max(0, 1 - n/d) / (K - 1) \text{ of a miss}, \tag{1}

  n the rounds learnt before. After d rounds r is the bit, and what was learnt is learnt again so with the next new
  scale: used for ever, (1) made 2 pp more mistakes on waveforms among 200 columns. Where two classes share a model
  r, 1/2 or -1/2, says the same at any n.
* **Exploration by upper confidence bounds.** In rounds 1 to the lesser of :math:`d/2` and `LONGEST` times K the ridge expert's
  upper confidence bounds are added to the stacks' logits, in units of the logit's slope at 1/2,

  .. math::

      \zeta_k \mathrel{+}= 4 (m_k + \min(3, 3 K/10) \sqrt{q_k}), \qquad m_k = h_k'x,\; q_k = x'A_k^{-1}x, \tag{2}

  as in LinUCB (`ridge.linucb`): a class that missed in this direction is less unknown there, so another is tried, and
  one that hit is played. The stacks still count: where one class is right in nine rounds of ten they predict it long
  before directions are informative. Where two classes share a model there is no width to compare, and m is :math:`2 h'x`:
  1 and -1 for its r.
* **Scales.** Means and spreads of a few contexts say little of the next, and are wrong in the same direction for all of them.
  While :math:`n \le d` they are taken anew twice as often.

A detected change starts it again. With fewer than `COLUMNS` K columns uniform play has fewer hits than that in d rounds, and
none of the three helps: there they are not used.
"""

from __future__ import annotations

import math

from banditlab.agents.stacked.ridge_expert import SLOPE
from banditlab.numerics.jit import inline

COLUMNS = 4
"""Least number of columns per class for which the first rounds differ."""
LONGEST = 16
"""Most rounds per class in which confidence bounds are added: by then every class had its directions."""
WIDEST, WIDTH = 3.0, 0.3
"""Width of the confidence bounds: at most, and for each class, as there are more to rule out. The view has norm 1 and A begins
at 1; 3.2 there is LinUCB's 1 at a ridge of .1."""
OFTEN = 2
"""How many times more often than later the scale is estimated again."""


@inline
def target_of_a_miss(n, d, K):
    """Return the subtracted term of (1), after n updates."""
    return max(0.0, 1.0 - n / d) / (K - 1)


@inline
def is_due(n, d):
    r"""Return whether the scale is estimated again after n rounds, 2 or more: at powers of two, and more often while
    :math:`n \le d`.
    """
    power = 1
    while 2 * power <= n:
        power *= 2
    return n % (max(1, power // OFTEN) if n <= d else power) == 0


@inline
def add_bounds(lifted_m, q, lifted, first, n, d, zeta):
    r"""Add (2) to :math:`\zeta` (K,) in round n; the lifted means :math:`m_k + \text{lifted}\, q_k`, as the scratch has
    them, and :math:`q_k` stand from `first` on.
    """
    K = zeta.shape[0]
    if 2 * n > d or n > LONGEST * K:
        return
    width = min(WIDEST, WIDTH * K)
    for k in range(K):
        q_k = max(0.0, q[first + k])
        zeta[k] += SLOPE * (lifted_m[first + k] - lifted * q_k + width * math.sqrt(q_k))


@inline
def add_shared_margin(m, place, n, d, zeta):
    r"""Add (2) to class 0's :math:`\zeta` in round n, where its model, whose :math:`h'x` is `m[place]`, serves class 1, too."""
    if 2 * n <= d and n <= 2 * LONGEST:
        zeta[0] += SLOPE * 2.0 * m[place]
