"""FOLKLORE's root and its Cholesky factor against numpy, at every size of what it is the root of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics.softmax_root import (
    TOLERANCE,
    RootScratch,
    core_factor,
    half_solve,
    half_solve_transposed,
    newton_step,
    residual,
    root,
    times_Y,
    times_Yt,
)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max())
    return e / e.sum()


def case(K: int, scale: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return At (K, K) of that size and g (K,)."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((K, K))
    return scale * Z @ Z.T, scale * rng.standard_normal(K)


@pytest.mark.parametrize("K", [1, 2, 4, 6])
def test_the_parts_of_a_step(K: int) -> None:
    """The residual; the factor of I + a Y'At Y and its solves; Y and Y'; and Newton's step, all by dense algebra."""
    At, g = case(K, 1.5)
    z, scale = np.linspace(-1.0, 2.0, K), 0.7
    s, a, r, q, L = *np.full((4, K), np.nan), np.full((K, K), np.nan)
    worst = residual(z, g, At, s, a, r)
    np.testing.assert_allclose(s, softmax(z), rtol=1e-14)
    np.testing.assert_allclose(a, At @ s, rtol=1e-13)
    np.testing.assert_allclose(r, z - g + At @ s, rtol=1e-13, atol=1e-14)
    assert worst == np.abs(r).max()
    core_factor(At, s, a, scale, q, L)
    np.testing.assert_allclose(q, np.sqrt(s), rtol=1e-15)
    Y = np.diag(q) - np.outer(s, q)
    factor = np.linalg.cholesky(np.eye(K) + scale * Y.T @ At @ Y)
    np.testing.assert_allclose(np.diag(L), 1.0 / np.diag(factor), rtol=1e-13)
    np.testing.assert_allclose(np.tril(L, -1), np.tril(factor, -1), atol=1e-13)
    v = np.arange(1.0, K + 1.0)
    for solve, matrix in ((half_solve, factor), (half_solve_transposed, factor.T)):
        found = v.copy()
        solve(L, found)
        np.testing.assert_allclose(matrix @ found, v, rtol=1e-12)
    for times, matrix in ((times_Yt, Y.T), (times_Y, Y)):
        found = v.copy()
        times(s, q, found)
        np.testing.assert_allclose(found, matrix @ v, atol=1e-13)
    step, before = np.full(K, np.nan), r.copy()
    newton_step(At, s, q, a, r, step, L)
    S = np.diag(s) - np.outer(s, s)
    np.testing.assert_allclose(step, -np.linalg.solve(np.eye(K) + At @ S, before), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e2, 1e4, 1e8])
def test_the_root_is_found_at_any_size_and_its_residual_is_what_is_left(scale: float) -> None:
    """Newton's whole steps cycle where At is large: they are halved."""
    for K in (1, 2, 3, 7):
        for seed in range(3):
            At, g = case(K, scale, seed)
            z, scratch = np.full(K, np.nan), RootScratch.empty(K)
            found = root(g, At, z, scratch)
            off = np.abs(z - g + At @ softmax(z)).max() / (1.0 + np.abs(g).max())
            assert 0.0 <= found <= max(1e-11, 1e-16 * scale)  # rounding comes first where At is large
            assert off <= 2.0 * max(1e-11, 1e-16 * scale)
            np.testing.assert_allclose(scratch.s, softmax(z), rtol=1e-13, atol=1e-300)
            np.testing.assert_allclose(scratch.a, At @ scratch.s, rtol=1e-12, atol=1e-12 * scale)
            assert found == np.abs(scratch.r).max() / (1.0 + np.abs(g).max())


def test_newton_stops_where_its_goal_is_met() -> None:
    """Whole steps from 0: the one that gets below 1e-11 of 1 + max |g| is the last, digits further down are not paid for."""
    At, g = case(3, 100.0, 1)
    assert 1e-12 < root(g, At, np.zeros(3), RootScratch.empty(3)) < 4e-12


@pytest.mark.parametrize("where", [math.inf, -math.inf, math.nan])
def test_no_root_where_a_number_is_none(where: float) -> None:
    At, g = case(3, 1.0)
    scratch = RootScratch.empty(3)
    for broken in (0, 2):
        h, z = g.copy(), np.zeros(3)
        h[broken] = where
        assert math.isnan(root(h, At, z, scratch))
        assert np.isnan([*z, *scratch.s]).all()
    assert TOLERANCE == 1e-11
