"""The first of the largest of K numbers, in kernels, and the largest but one class's."""

from __future__ import annotations

from banditlab.numerics.jit import inline


@inline
def argmax(z, K):
    """Return the first of the largest of z_0 ... z_{K-1}; NaN is never larger, and where z_0 is NaN nothing is."""
    # Selections, no branch: which score is larger cannot be predicted.
    best, top = 0, z[0]
    for k in range(1, K):
        better = z[k] > top
        best = k if better else best
        top = z[k] if better else top
    return best


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
