"""The largest of K numbers, in kernels."""

from __future__ import annotations

import math

from banditlab.numerics.jit import borrow, inline
from banditlab.numerics.simd import WIDTH, all_lanes, eight, first, larger, largest, only, place

MANY = 16
"""Classes from which on the largest of them is looked for eight at a time."""


@inline
def argmax(z, K):
    """Return the first of the largest of z_0 ... z_{K-1}; NaN is never larger, and where z_0 is NaN nothing is."""
    if K >= MANY:
        return _argmax(z, K)
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
    most = larger(eight(z, 0), all_lanes(-math.inf))  # of NaN and a number the number
    for k in range(WIDTH, whole, WIDTH):
        most = larger(eight(z, k), most)
    rest = only(first(z, whole, n), n, -math.inf)
    top = largest(larger(rest, most))
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
