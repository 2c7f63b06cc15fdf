r"""The root of :math:`z = g - \tilde{A}\, \mathrm{softmax}(z)` in K dimensions, and the core of FOLKLORE's update.

Let :math:`s = \mathrm{softmax}(z)` and :math:`S = \mathrm{diag}(s) - s s' = Y Y'` with
:math:`Y = \mathrm{diag}(\sqrt{s}) - s \sqrt{s}'`. Every matrix to be inverted is :math:`I + a \tilde{A} S`. The
identity :math:`(I + a \tilde{A} S)^{-1} = I - a \tilde{A} Y (I + a Y'\tilde{A} Y)^{-1} Y'` needs one Cholesky factor of
a :math:`K \times K` matrix. The code writes `At` for :math:`\tilde{A}`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import njit
from banditlab.numerics.softmax import softmax_into

TOLERANCE = 1e-11
r"""The largest allowed entry of :math:`z - g + \tilde{A} s`, relative to :math:`1 + \max |g|`.

Below about 1e-13 rounding stalls Newton's method.
"""


class RootScratch(NamedTuple):
    r"""Work arrays for one root: s, :math:`q = \sqrt{s}`, r, a, `step`, `trial` (K,); L (K, K), written by `core_factor`."""

    s: NDArray[np.float64]
    q: NDArray[np.float64]
    r: NDArray[np.float64]
    a: NDArray[np.float64]
    step: NDArray[np.float64]
    trial: NDArray[np.float64]
    L: NDArray[np.float64]

    @classmethod
    def empty(cls, K: int) -> RootScratch:
        s, q, r, a, step, trial = np.zeros((6, K))
        return cls(s, q, r, a, step, trial, np.zeros((K, K)))


@njit
def residual(z, g, At, s, a, r):
    r"""Write :math:`s = \mathrm{softmax}(z)`, :math:`a = \tilde{A} s` and :math:`r = z - g + a`, all (K,).

    Returns :math:`\max |r|`, or NaN if an entry is NaN.
    """
    K = z.shape[0]
    softmax_into(z, s)
    worst = 0.0
    for i in range(K):
        total = 0.0
        for j in range(K):
            total += At[i, j] * s[j]
        a[i] = total
        r[i] = z[i] - g[i] + total
        if abs(r[i]) > worst or math.isnan(r[i]):
            worst = abs(r[i])  # NaN is preserved, because no number exceeds it
    return worst


@njit
def core_factor(At, s, a, scale, q, L):
    r"""Write :math:`q = \sqrt{s}` and the Cholesky factor L (K, K) of :math:`I + \text{scale}\, Y'\tilde{A} Y`.

    a is :math:`\tilde{A} s`. On return the diagonal entries of L are the inverses of the factor's.
    """
    K = s.shape[0]
    mean = 0.0
    for i in range(K):
        mean += s[i] * a[i]
        q[i] = math.sqrt(s[i])
    for i in range(K):
        for j in range(i):
            entry = scale * q[i] * q[j] * (At[i, j] - a[i] - a[j] + mean)
            for k in range(j):
                entry -= L[i, k] * L[j, k]
            L[i, j] = entry * L[j, j]
        pivot = 1.0 + scale * s[i] * (At[i, i] - 2.0 * a[i] + mean)
        for k in range(i):
            pivot -= L[i, k] * L[i, k]
        L[i, i] = 1.0 / math.sqrt(pivot)


@njit
def half_solve(L, v):
    """Overwrite v (K,) with :math:`L^{-1} v`, with L from `core_factor`."""
    for i in range(v.shape[0]):
        total = v[i]
        for k in range(i):
            total -= L[i, k] * v[k]
        v[i] = total * L[i, i]


@njit
def half_solve_transposed(L, v):
    """Overwrite v (K,) with :math:`(L')^{-1} v`, with L from `core_factor`."""
    K = v.shape[0]
    for i in range(K - 1, -1, -1):
        total = v[i]
        for k in range(i + 1, K):
            total -= L[k, i] * v[k]
        v[i] = total * L[i, i]


@njit
def times_Yt(s, q, v):
    r"""Overwrite v (K,) with :math:`Y'v = q (v - s'v)`, where :math:`q = \sqrt{s}`."""
    mean = 0.0
    for i in range(s.shape[0]):
        mean += s[i] * v[i]
    for i in range(s.shape[0]):
        v[i] = q[i] * (v[i] - mean)


@njit
def times_Y(s, q, v):
    r"""Overwrite v (K,) with :math:`Y v = q v - s q'v`, where :math:`q = \sqrt{s}`."""
    mean = 0.0
    for i in range(s.shape[0]):
        v[i] *= q[i]
        mean += v[i]
    for i in range(s.shape[0]):
        v[i] -= s[i] * mean


@njit
def newton_step(At, s, q, a, r, step, L):
    r"""Write the Newton step :math:`-(I + \tilde{A} S)^{-1} r` for :math:`z - g + \tilde{A}\, \mathrm{softmax}(z)` into
    `step` (K,).
    """
    K = s.shape[0]
    core_factor(At, s, a, 1.0, q, L)
    overwrite(step, r)
    times_Yt(s, q, step)
    half_solve(L, step)
    half_solve_transposed(L, step)
    times_Y(s, q, step)
    for i in range(K):  # r becomes (I + At S)^{-1} r = r - At Y (I + Y'At Y)^{-1} Y'r
        total = 0.0
        for j in range(K):
            total += At[i, j] * step[j]
        r[i] -= total
    for i in range(K):
        step[i] = -r[i]


@njit
def root(g, At, z, scratch):
    r"""Write the root of :math:`z = g - \tilde{A}\, \mathrm{softmax}(z)` into z (K,), by Newton's method with step halving.

    :math:`\tilde{A}` is symmetric positive semidefinite. Without damping, Newton's method cycles for a large norm bound
    or a small regularization of the forecaster. From :math:`z = 0`, it takes 3.4 to 5.2 steps on nine streams with
    :math:`K = 10`. From the last round's root it would take 3.9 to 6.3 steps, and the result would depend on earlier
    calls.

    On return `scratch.s` is :math:`\mathrm{softmax}(z)` and `scratch.a` is :math:`\tilde{A} s`. Return the relative
    residual, which is at most `TOLERANCE` unless rounding or the limit of 200 steps prevents it. If :math:`\tilde{A}`
    or g is not finite, z is NaN.
    """
    s, q, r, a, step, trial, L = scratch
    K = z.shape[0]
    goal = 1.0
    for k in range(K):
        goal = max(goal, 1.0 + abs(g[k]))
        z[k] = 0.0
    worst = residual(z, g, At, s, a, r)
    if not worst < math.inf:
        z[:] = math.nan
        residual(z, g, At, s, a, r)
        return math.nan
    for _ in range(200):
        if worst <= TOLERANCE * goal:
            break
        newton_step(At, s, q, a, r, step, L)
        length, now = 1.0, worst
        for _ in range(60):
            for k in range(K):
                trial[k] = z[k] + length * step[k]
            now = residual(trial, g, At, s, a, r)
            if now < worst:
                break
            length *= 0.5
        if not now < worst:
            break  # rounding prevents a further decrease
        overwrite(z, trial)
        worst = now
    residual(z, g, At, s, a, r)
    return worst / goal
