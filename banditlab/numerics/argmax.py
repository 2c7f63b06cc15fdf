"""The first of the largest of K numbers, in kernels: one by one or eight at a time, and the largest but one class's."""

from __future__ import annotations

import math

from banditlab.numerics.jit import borrow, inline
from banditlab.numerics.simd import WIDTH, all_lanes, eight, first, larger, largest, only, place

BY_EIGHT = 16
"""Classes from which on the largest of them is looked for eight at a time."""


@inline
def argmax(z, K):
    """Return the first of the largest of z_0 ... z_{K-1}; NaN is never larger, and where z_0 is NaN nothing is."""
    if K >= BY_EIGHT:
        return _argmax(z, K)
    # Selections, no branch: which score is larger cannot be predicted.
    best, top = 0, z[0]
    for k in range(1, K):
        better = z[k] > top
        best = k if better else best
        top = z[k] if better else top
    return best


@inline
def _argmax(z, K):
    """`argmax` of K >= 8 numbers, eight at a time."""
    z, whole, n = borrow(z), K - K % WIDTH, K % WIDTH
    # The largest value: lane by lane, the rest filled up with -infinity, then across the lanes.
    most = larger(eight(z, 0), all_lanes(-math.inf))  # of NaN and a number the number
    for k in range(WIDTH, whole, WIDTH):
        most = larger(eight(z, k), most)
    rest = only(first(z, whole, n), n, -math.inf)
    top = largest(larger(rest, most))
    # The first place that holds it.
    for k in range(0, whole, WIDTH):
        lane = place(eight(z, k), top)
        if lane < WIDTH:
            return k + lane if z[0] == z[0] else 0
    return whole + place(rest, top) if z[0] == z[0] else 0


@inline
def runner_up(v, y, K):
    """Return the first of the largest of v_0 ... v_{K-1} but v_y."""
    best = 1 if y == 0 else 0
    top = v[best]
    for k in range(best + 1, K):
        better = k != y and v[k] > top
        best = k if better else best
        top = v[k] if better else top
    return best
