"""The root of z = m - (w/2) q tanh(z/2), AIOLI's forecast of one margin: a number at a time, or eight.

The two agree to rounding, not to the last bit, so callers keep to the one they began with.
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.simd import WIDTH, all_lanes, any_above, eight, larger, put, smaller
from banditlab.numerics.simd_math import expm1


@njit
def aioli_root(m: float, q: float, w: float) -> float:
    """Return the root of z = m - (w/2) q tanh(z/2) for q >= 0 and w >= 0.

    Newton from m / (1 + w q / 4), which lies between 0 and the root because tanh(z/2) <= z/2 for z >= 0. The function
    is concave there, so every step stays on the same side of the root (monotone, no damping); and half its second
    derivative is at most half its first, so a step s leaves an error of at most s^2 / 2.
    """
    # The equation is odd in (z, m): solve for |m|, give the root m's sign.
    half = 0.5 * w * q
    goal = abs(m)
    z = goal / (1.0 + 0.5 * half)
    for _ in range(60):
        if z > 40.0:
            z = max(40.0, goal - half)  # tanh(z/2) is 1 to the last bit
            break
        # tanh(z/2) = (e^z - 1)/(e^z + 1); a Newton step for z + half tanh(z/2) - goal.
        e = math.expm1(z)
        tanh = e / (e + 2.0)
        step = (goal - z - half * tanh) / (1.0 + 0.5 * half * (1.0 - tanh * tanh))
        z += step
        if step * step <= 1e-16 * z:  # the error is below half of it
            break
    return math.copysign(z, m)


@njit
def aioli_roots(m, q, w, z):
    """Write into z_k the root of z = m_k - (w/2) q_k tanh(z/2), q_k below 0 taken for 0; all (n,), n a multiple of eight.

    Newton as in `aioli_root`, which says why it is monotone. With e = e^z - 1 we have tanh(z/2) = e/(e + 2) and
    1 - tanh^2 = 4 (e + 1)/(e + 2)^2, which leaves one division a step. The root lies within (w/2) q_k of m_k, because
    |tanh| <= 1. The root of an infinite m_k, or of one that overflows on the way, is m_k itself.
    """
    m, q, z = borrow(m), borrow(q), borrow(z)
    zero, one, two, top = all_lanes(0.0), all_lanes(1.0), all_lanes(2.0), all_lanes(40.0)
    for k in range(0, m.shape[0], WIDTH):
        goal = larger(eight(m, k), zero - eight(m, k))
        half = larger(eight(q, k), zero) * (0.5 * w)
        # The same start as `aioli_root`'s, in eight lanes that go on until the last has converged.
        root = goal / (one + half * 0.5)
        for _ in range(60):
            e = expm1(smaller(root, top))  # beyond 40 tanh(z/2) is 1 to the last bit
            f = e + two
            step = ((goal - root) * f - half * e) * f / (f * f + half * 2.0 * (e + one))
            root = root + step
            if not any_above(step * step, root * 1e-16):
                break
        root = smaller(larger(root, goal - half), goal)  # of NaN and a bound the bound
        put(z, k, root)
        # m's sign
        for i in range(k, k + WIDTH):
            z[i] = math.copysign(z[i], m[i])
