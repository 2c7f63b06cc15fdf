r"""The first d rounds of StackCB, in which there are fewer rounds than columns. Not from a paper.

In these rounds every linear model fits every outcome, and the information is in the directions of hits and misses. If
the contexts have at least `COLUMNS` K columns, StackCB changes three things:

* **The target of a miss.** The ridge expert (`linear_experts`) is fitted to the corners of a simplex (Y. Mroueh, T.
  Poggio, L. Rosasco, J.-J. Slotine. Multiclass learning with simplex coding. NIPS 2012). With n the number of updates
  so far,
  Rosasco, J.-J. Slotine. Multiclass learning with simplex coding. NIPS 2012), n the rounds learnt before:

  .. math::

      r = 1 \text{ of a hit}, \qquad r = -\max(0, 1 - n/d) / (K - 1) \text{ of a miss}. \tag{1}

* **Exploration by upper confidence bounds.** In rounds 1 to the lesser of :math:`d/2` and `LONGEST` times K, the ridge
  expert's upper confidence bounds are added to the stack's logits, in units of the logit's slope at 1/2,

  .. math::

      \zeta_k \mathrel{+}= 4 (m_k + \min(3, 3 K/10) \sqrt{q_k}), \qquad m_k = h_k'x,\; q_k = x'A_k^{-1}x, \tag{2}

  as in LinUCB (`ridge.linucb`). If two classes share a model there is no width to compare, and m is :math:`2 h'x`.
* **Scales.** While :math:`n \le d`, scales are estimated twice as often.
"""

from __future__ import annotations

import math

from banditlab.agents.stacked.linear_experts import SLOPE
from banditlab.numerics.jit import inline

COLUMNS = 4
"""Least number of columns per class for which the first rounds differ."""
LONGEST = 16
"""Most rounds per class in which confidence bounds are added."""
WIDEST, WIDTH = 3.0, 0.3
"""Width of the confidence bounds: at most, and for each class. LinUCB's 1 at a ridge of .1 is 3.2 here."""
OFTEN = 2
"""How many times more often than later the scale is estimated."""


@inline
def target_of_a_miss(n, d, K):
    """Return the subtracted term of (1) after n updates."""
    return max(0.0, 1.0 - n / d) / (K - 1)


@inline
def is_due(n, d):
    r"""Return whether the scale is estimated again after n rounds, n at least 2.

    The scale is estimated at powers of two, and more often while :math:`n \le d`.
    """
    power = 1
    while 2 * power <= n:
        power *= 2
    return n % (max(1, power // OFTEN) if n <= d else power) == 0


@inline
def add_bounds(lifted_m, q, lifted, e, n_models, n, d, zeta):
    r"""Add (2) to :math:`\zeta` (K,) in round n, from expert e's means :math:`m_k + \text{lifted}\, q_k` and its
    :math:`q_k`.
    """
    K, first = zeta.shape[0], e * n_models
    if 2 * n > d or n > LONGEST * K:
        return
    if n_models < K:
        zeta[0] += SLOPE * 2.0 * lifted_m[first]
        return
    width = min(WIDEST, WIDTH * K)
    for k in range(K):
        q_k = max(0.0, q[first + k])
        zeta[k] += SLOPE * (lifted_m[first + k] - lifted * q_k + width * math.sqrt(q_k))
