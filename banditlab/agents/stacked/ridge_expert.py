r"""The ridge expert of StackCB: per class a ridge regression of the bit on standardised columns, with no constant
behind them.

A round in which the class was played adds :math:`x x'` to A and :math:`r x` to b, where :math:`r = 1` for a hit and 0
for a miss; :math:`h = A^{-1} b`, :math:`A_0 = I`. So a miss draws :math:`h'x` to 0
and does nothing else: classes differ by the directions of their hits. With a constant in x
the regression would mostly learn that the class played is often right and others never are. As a margin, with
:math:`m = h'x`, :math:`q = x'A^{-1}x` and two virtual labels of weight w between them that are yes with probability
:math:`\pi`, as for the others (`stackcb`): :math:`z = 4 ((m + w \pi q) / (1 + w q) - 1/2)`; 4 is the slope of the logit
at 1/2.

A context at the centre, :math:`x = 0`, says nothing, and :math:`z = 0`: where no column varies the expert would else be
a second bias of the stack, which makes the play surer of itself (one context for ever: 6 of 1,000 runs stayed on a
wrong class of three, not 0).

At first, while there were fewer contexts than they have columns, r of a miss is below 0 (`cold_start`).

Where one model serves two classes r is 1/2 or -1/2, and :math:`z = 4 m / (1 + w q)`: swapping the classes turns the
sign.
"""

from __future__ import annotations

from banditlab.agents.stacked.experts import WEIGHT
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.packed_symmetric import downdate, inner, pad, product, step_along

SLOPE = 4.0
RIDGE = 1.0


@inline
def ridge_margin(lifted_m, q, middle):
    r"""Return z, where lifted_m is :math:`m + w (\pi - 1/2) q`; middle: 1/2, or 0 where one model serves two classes."""
    return SLOPE * (lifted_m - middle) / (1.0 + WEIGHT * q) if q > 0.0 else 0.0


@njit
def update_ridge(bank, e, view, k, y, z, fresh, lifted, middle, penalty):
    """Update class k of expert e with the outcome y = +-1 at its view; return its margin before: z, or its own where fresh.

    penalty: how far the target of a miss is below 0, or below -1/2 of one model for two classes.
    """
    own, v = bank.point.x, bank.v
    pad(view, own)
    product(bank.P[e, k], own, v)  # v = A^{-1} x
    m, q = inner(own, bank.H[e, k]), max(0.0, inner(own, v))  # m = h'x, q = x'A^{-1} x
    if fresh:
        z = ridge_margin(m + lifted * q, q, middle)
    down = 1.0 / (1.0 + q)
    # h += (r - m) v / (1 + q), r as in (1) of `cold_start`; A^{-1} -= v v' / (1 + q)
    step_along(bank.H[e, k], (0.5 * y + middle - (0.0 if y > 0.0 else penalty) - m) * down, v)
    downdate(bank.P[e, k], v, down)
    return z
