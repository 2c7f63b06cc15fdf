"""Functions of eight numbers at a time (see `simd`), with the same result on every processor because they call no libm.

* expm1, near_exp, exp, exponentials: reduction to a short interval, then a polynomial.
* cosine, sine: functions of an angle in turns, by their series for up to half a turn.
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import borrow, inline
from banditlab.numerics.simd import (
    ROUNDER,
    WIDTH,
    all_lanes,
    eight,
    first,
    fma,
    lane,
    larger,
    only,
    pair,
    power_of_two,
    put,
    put_first,
    second,
    total,
    unless_below,
)

_LOG2_E = 1.0 / math.log(2.0)
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
r""":math:`\ln 2` in two parts. The first has few bits, so its multiples by integers below :math:`2^{20}` are exact."""
LEAST_EXPONENT = -600.0
""":math:`e^z` is 0 for z below this, which avoids subnormal products, with which processors are slow."""
_TAYLOR = tuple(1.0 / math.factorial(n) for n in range(14))

_COSINE = tuple((-1.0) ** n * math.tau ** (2 * n) / math.factorial(2 * n) for n in range(15))
_SINE = tuple((-1.0) ** n * math.tau ** (2 * n + 1) / math.factorial(2 * n + 1) for n in range(15))
r"""Coefficients :math:`c_n`, :math:`s_n`: :math:`\cos 2 \pi t = \sum_n c_n t^{2n}`,
:math:`\sin 2 \pi t = t \sum_n s_n t^{2n}`.
"""


@inline
def expm1(z):
    r"""Return :math:`e^z - 1` of lanes :math:`|z| \le 700`, to a few units in the last place.

    This also holds for small and negative z.
    """
    shifted = z * _LOG2_E + all_lanes(ROUNDER)
    n = shifted - all_lanes(ROUNDER)
    r = (z - n * _LN2_HIGH) - n * _LN2_LOW  # z = n ln 2 + r with |r| <= (ln 2)/2
    # e^r by its Taylor series to r^13, even and odd powers separately
    square = r * r
    even, odd = all_lanes(_TAYLOR[12]), all_lanes(_TAYLOR[13])
    for power in (10, 8, 6, 4, 2):  # two chains of half the length
        even = even * square + all_lanes(_TAYLOR[power])
        odd = odd * square + all_lanes(_TAYLOR[power + 1])
    small = r + (even + odd * r) * square  # e^r - 1
    # e^z - 1 = 2^n (e^r - 1) + (2^n - 1)
    scale = power_of_two(shifted)
    return scale * small + (scale - all_lanes(1.0))


@inline
def near_exp(z):
    r"""Return :math:`e^z` of lanes :math:`|z| \le 700`, to a unit or two in the last place."""
    shifted = z * _LOG2_E + all_lanes(ROUNDER)
    n = shifted - all_lanes(ROUNDER)
    r = (z - n * _LN2_HIGH) - n * _LN2_LOW  # as in `expm1`
    square = r * r
    even, odd = all_lanes(_TAYLOR[12]), all_lanes(_TAYLOR[13])
    for power in (10, 8, 6, 4, 2):
        even = fma(even, square, _TAYLOR[power])
        odd = fma(odd, square, _TAYLOR[power + 1])
    return power_of_two(shifted) * (fma(fma(odd, r, even), square, r) + all_lanes(1.0))


@inline
def exp(z):
    r"""Return :math:`e^z` of lanes :math:`z \le 700`, to a unit or two in the last place.

    The result is 0 below `LEAST_EXPONENT`, and NaN if z is NaN.
    """
    return unless_below(z, all_lanes(LEAST_EXPONENT), near_exp(larger(all_lanes(LEAST_EXPONENT), z)))


@inline
def turn_fraction(t):
    r"""Return t minus the nearest integer, in [-1/2, 1/2], for lanes :math:`|t| \le 2^{50}`."""
    return t - ((t + all_lanes(ROUNDER)) - all_lanes(ROUNDER))


@inline
def cosine(t):
    r"""Return :math:`\cos 2 \pi t` of lanes :math:`|t| \le 1/2`, with an absolute error of 1e-14."""
    square, sums = t * t, all_lanes(_COSINE[14])
    for n in (13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0):
        sums = fma(sums, square, _COSINE[n])
    return sums


@inline
def sine(t):
    r"""Return :math:`\sin 2 \pi t` of lanes :math:`|t| \le 1/2`, with an absolute error of 1e-14."""
    square, sums = t * t, all_lanes(_SINE[14])
    for n in (13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0):
        sums = fma(sums, square, _SINE[n])
    return sums * t


@inline
def exponentials(z, scale, top, K, e):
    r"""Write :math:`e^{\text{scale} (z_k - \text{top})}` into :math:`e_k`, :math:`k = 0, \dots, K-1`; return their sum.

    The exponents :math:`\text{scale} (z_k - \text{top})` must be at most 0.
    """
    z, e, sums = borrow(z), borrow(e), all_lanes(0.0)
    for k in range(0, K - K % WIDTH, WIDTH):
        v = exp((eight(z, k) - all_lanes(top)) * scale)
        put(e, k, v)
        sums = sums + v
    # The remaining one to seven numbers. One or two are read and written as numbers, because a processor waits about 10
    # ns when it reads numbers as lanes that were just written as numbers, or the reverse.
    k, n = K - K % WIDTH, K % WIDTH
    if 0 < n <= 2:
        v = exp((pair(z[k], z[K - 1]) - all_lanes(top)) * scale)
        e[k], e[K - 1] = lane(v), second(v)  # for one number both lanes
        sums = sums + only(v, n, 0.0)
    elif n > 0:
        v = exp((first(z, k, n) - all_lanes(top)) * scale)
        put_first(e, k, v, n)
        sums = sums + only(v, n, 0.0)
    return total(sums)
