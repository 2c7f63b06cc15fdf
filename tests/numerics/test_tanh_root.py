"""AIOLI's root, one at a time and eight at a time: the equation itself and scipy's root finder."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from banditlab.numerics.jit import njit
from banditlab.numerics.tanh_root import aioli_root, aioli_root_and_sigmoids, aioli_roots, nearly_root


@pytest.mark.parametrize("w", [0.0, 1.0, 2.0])
def test_eight_roots_are_the_roots(w):
    """At margins and variances of all sizes: the equation itself, scipy's root, and the root found one at a time."""
    rng = np.random.default_rng(3)
    m = np.concatenate([10.0 ** rng.uniform(-8, 3, 80) * rng.choice([-1, 1], 80), np.zeros(8)])
    q = np.concatenate([10.0 ** rng.uniform(-8, 4, 80), [0.0, 1.0, 5.0, -1e-20, 0.0, 1e4, 1.0, 1.0]])
    z = np.empty_like(m)
    aioli_roots(m, q, w, z)
    assert np.all(z[80:] == 0.0)
    for mk, qk, zk in zip(m[:80], q[:80], z[:80]):
        assert zk == pytest.approx(aioli_root(mk, qk, w), rel=1e-11)
        if w * qk < 1e3:
            f = lambda s, mk=mk, qk=qk: s - mk + 0.5 * w * qk * math.tanh(0.5 * s)  # noqa: E731
            assert zk == pytest.approx(
                brentq(f, -abs(mk) - 1, abs(mk) + 1, xtol=1e-15, rtol=1e-14), rel=1e-9, abs=1e-13
            )


def test_an_infinite_margin_is_its_own_root():
    m = np.array([np.inf, -np.inf, 1e300, -1e200, 1e160, 50.0, np.nan, 3.0])
    z = np.empty(8)
    aioli_roots(m, np.full(8, 20.0), 1.0, z)
    expected = [aioli_root(margin, 20.0, 1.0) for margin in m]
    assert expected[:2] == [np.inf, -np.inf]
    np.testing.assert_allclose(z, expected, rtol=1e-12)


@pytest.mark.parametrize("w", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("q", [0.0, 0.1, 3.0, 100.0, 1e6])
@pytest.mark.parametrize("m", [-80.0, -3.0, -1e-7, 0.0, 1e-3, 0.4, 12.0, 1e5])
def test_root(m: float, q: float, w: float) -> None:
    z = aioli_root(m, q, w)
    slope = 1 + 0.25 * w * q / math.cosh(min(abs(z), 600) / 2) ** 2
    assert abs(z - m + 0.5 * w * q * math.tanh(z / 2)) <= 1e-14 * slope * abs(z) + 4e-16 * (abs(m) + w * q * abs(z))


@njit
def each_root(m, q, w, usual, split, above, below, near):
    """The root in both forms, its sigmoids, and the first guess of it."""
    for i in range(m.shape[0]):
        usual[i] = aioli_root(m[i], q[i], w)
        split[i], above[i], below[i] = aioli_root_and_sigmoids(m[i], q[i], w)
        half, goal = 0.5 * w * q[i], abs(m[i])
        near[i] = nearly_root(max(goal - half, goal / (1.0 + 0.5 * half)), goal, half)


@pytest.mark.parametrize("w", [0.5, 2.0])
def test_roots_and_sigmoids_to_rounding(w: float) -> None:
    """Against Newton's method in long double, at so many margins that each term of the series counts somewhere."""
    rng = np.random.default_rng(11)
    m = np.concatenate([rng.uniform(-6, 6, 60), rng.uniform(-45, 45, 20), [0.0, 50.0, -60.0]])
    half = 10.0 ** rng.uniform(-2.0, 1.3, 83)
    # where Newton's step is short and the series too long, or the other way round
    m = np.append(m, [-5.97269387598608, 3.4070227314607155, 3.1247048143120075, -3.157767027070528])
    half = np.append(half, [7.943172626922463, 2.7034527884640376, 1.7275952808042425, 1.7379032671505197])
    found = np.zeros((5, 87))
    each_root(m, half / (0.5 * w), w, *found)
    usual, split, above, below, near = found
    M, z = np.abs(m).astype(np.longdouble), np.abs(usual).astype(np.longdouble)
    for _ in range(4):
        slope = 1 + half / 2 * (1 - np.tanh(z / 2) ** 2)
        z -= (z + half * np.tanh(z / 2) - M) / slope
    right, unit = 1 / (1 + np.exp(z)), 2.0**-52
    of_one = unit * np.maximum(1.0, M)
    for each in (usual, split):
        np.testing.assert_array_equal(np.signbit(each), np.signbit(m))
    # what rounding m and half tanh(z/2) leaves of z, and z's own
    assert (np.abs(np.abs(usual) - z) <= unit * (M / slope + z)).all()
    assert (np.abs(np.abs(split) - z) <= 0.8 * of_one).all()
    assert (np.abs(below - right) <= right * (of_one + unit)).all()
    assert (np.abs(above - (1 - right)) <= unit).all()
    small = (M < 6) & (half < 4)
    assert (np.abs(near - z)[small] < 0.02).all()
