r"""The root of :math:`z = m - (w/2) q \tanh(z/2)`, which is AIOLI's forecast margin, in three versions.

The versions solve for one number, for eight numbers, and for one number with its sigmoids. They agree up to rounding,
not to the last bit, so a caller must always use the same version.
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.simd import WIDTH, all_lanes, any_above, eight, lane, larger, put, smaller
from banditlab.numerics.simd_math import exp, expm1, near_exp


@njit
def aioli_root(m: float, q: float, w: float) -> float:
    r"""Return the root of :math:`z = m - (w/2) q \tanh(z/2)` for :math:`q \ge 0` and :math:`w \ge 0`.

    Newton's method starts at :math:`m / (1 + w q / 4)`, which lies between 0 and the root because
    :math:`\tanh(z/2) \le z/2` for :math:`z \ge 0`. There :math:`f(z) = z + (w/2) q \tanh(z/2) - m` is concave, so every
    step stays on the same side of the root. Because :math:`|f''| \le f'`, the error after a step s is at most
    :math:`s^2/2`.
    """
    # The equation is odd in (z, m), so solve it for |m|, and give the root the sign of m.
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
        if step * step <= 1e-16 * z:  # the error is less than half of this
            break
    return math.copysign(z, m)


@njit
def aioli_roots(m, q, w, z):
    r"""Write the root of :math:`z = m_k - (w/2) q_k \tanh(z/2)` into :math:`z_k`; a negative :math:`q_k` counts as 0.

    All arrays are (n,), with n a multiple of eight. Newton's method is monotone for the reason given in `aioli_root`.
    With :math:`u = e^z - 1` we have :math:`\tanh(z/2) = u/(u + 2)` and :math:`1 - \tanh^2(z/2) = 4 (u + 1)/(u + 2)^2`,
    so a step needs only one division. The root lies within :math:`(w/2) q_k` of :math:`m_k`, because
    :math:`|\tanh| \le 1`. If :math:`m_k` is infinite or the iteration overflows, the result is :math:`m_k` itself.
    """
    m, q, z = borrow(m), borrow(q), borrow(z)
    zero, one, two, top = all_lanes(0.0), all_lanes(1.0), all_lanes(2.0), all_lanes(40.0)
    for k in range(0, m.shape[0], WIDTH):
        goal = larger(eight(m, k), zero - eight(m, k))
        half = larger(eight(q, k), zero) * (0.5 * w)
        # The start of `aioli_root`, in eight lanes, which iterate until all have converged.
        root = goal / (one + half * 0.5)
        for _ in range(60):
            e = expm1(smaller(root, top))  # beyond 40 tanh(z/2) is 1 to the last bit
            f = e + two
            step = ((goal - root) * f - half * e) * f / (f * f + half * 2.0 * (e + one))
            root = root + step
            if not any_above(step * step, root * 1e-16):
                break
        root = smaller(larger(root, goal - half), goal)  # if one is NaN, the other
        put(z, k, root)
        # m's sign
        for i in range(k, k + WIDTH):
            z[i] = math.copysign(z[i], m[i])


@inline
def nearly_root(z, goal, half):
    r"""Return the root of :math:`z + \text{half} \tanh(z/2) = \text{goal}` with an error of about 1e-3.

    The function makes one Newton step from a z near the root, with tanh approximated by a rational function
    :math:`n/d`.
    """
    x = 0.25 * z * z
    d = 945.0 + x * (420.0 + x * 15.0)
    n = min(d, 0.5 * z * (945.0 + x * (105.0 + x)))
    return z + ((goal - z) * d - half * n) * d / (d * d + 0.5 * half * (d * d - n * n))


@inline
def aioli_root_and_sigmoids(m, q, w):
    r"""Return the root t of `aioli_root`, with :math:`\mathrm{sigmoid}(|t|)` and :math:`\mathrm{sigmoid}(-|t|)`.

    The function computes one exponential, at some z near :math:`|t|`. :math:`\tanh(z/2)` and its derivatives are
    polynomials in this exponential, so :math:`|t| - z` is a power series in the Newton step. The change of the
    sigmoids is a power series in :math:`|t| - z`. If four terms of the series are not accurate enough, the function
    moves z by the Newton step and repeats.
    """
    half, goal = 0.5 * w * q, abs(m)
    z = max(goal - half, goal / (1.0 + 0.5 * half))  # tanh(z/2) is at most 1 and at most z/2, so the root is larger
    if z > 40.0:  # T is 1 to the last bit
        z = max(40.0, goal - half)
        return math.copysign(z, m), 1.0, lane(exp(all_lanes(-z)))
    z, below = nearly_root(z, goal, half), 0.0
    for _ in range(60):
        e = lane(near_exp(all_lanes(-z)))
        f = 1.0 + e
        share, straight = 1.0 / f, f * f / (f * f + 2.0 * half * e)
        tanh, below = (1.0 - e) * share, e * share
        rise = 2.0 * share * below  # the first derivative of T; the third is rise * bent, the fourth rise * turned
        bent, turned = tanh * tanh - rise, tanh * (4.0 * rise - tanh * tanh)
        step = (goal - z - half * tanh) * straight
        # z + d + half tanh((z + d)/2) = goal, over 1 + half rise: d + two d^2 + three d^3 + four d^4 = step
        bend, again = half * rise * straight, step * step
        two, three, four = -0.5 * bend * tanh, bend * bent * (1.0 / 6.0), bend * turned * (1.0 / 24.0)
        last = (5.0 * two * (three - two * two) - four) * (again * again)
        if abs(step) < 0.004 and abs(last) < 1e-13:
            d = (step - two * again) + ((2.0 * two * two - three) * (again * step) + last)
            change = (tanh * d - 2.0) - (d * d) * (bent * (1.0 / 3.0) + d * (turned * (1.0 / 12.0)))
            return (
                math.copysign(z + d, m),
                1.0 - (below + 0.25 * rise * d * change),
                below + 0.25 * rise * d * change,
            )
        z += step
    return math.copysign(z, m), 1.0 - below, below
