"""Kernels for the index of the largest of K numbers, with or without one class left out. Ties go to the first."""

from __future__ import annotations

from banditlab.numerics.jit import inline


@inline
def argmax(z, K):
    r"""Return the index of the largest of :math:`z_0, \dots, z_{K-1}`, the first one if tied.

    A NaN is never larger than another entry. If :math:`z_0` is NaN, the result is 0.
    """
    # Selections instead of branches, which the processor could not predict.
    best, top = 0, z[0]
    for k in range(1, K):
        better = z[k] > top
        best = k if better else best
        top = z[k] if better else top
    return best


@inline
def runner_up(v, y, K):
    r"""Return the index of the largest of :math:`v_0, \dots, v_{K-1}` without :math:`v_y`, the first one if tied."""
    best = 1 if y == 0 else 0
    top = v[best]
    for k in range(best + 1, K):
        better = k != y and v[k] > top
        best = k if better else best
        top = v[k] if better else top
    return best
