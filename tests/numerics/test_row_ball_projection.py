"""The projection's parts, each against the formula it stands for, and what a search and a Newton step decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics.row_ball_projection import (
    BOUND,
    NEWTON,
    PANEL,
    STALLS,
    MetricBall,
    active_rows,
    backward,
    cholesky,
    cholesky_by_panels,
    curvature,
    evaluate,
    forward,
    newton_direction,
    project,
    row_norms,
    rows_alone,
    search,
)


def problem(K, d, seed):
    """Return P = A^{-1} (Kd, Kd) and a point V (Kd,)."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((K * d, K * d))
    return np.linalg.inv(F @ F.T + 0.5 * np.eye(K * d)), 3.0 * rng.standard_normal(K * d)


def at(K, d, seed, nu, B):
    """A ball with multipliers nu (K,), everything else evaluated there, with P and the (A + N)^{-1} of numpy."""
    P, V = problem(K, d, seed)
    ball = MetricBall.empty(K, d)
    for scratch in (ball.W, ball.C, ball.u, ball.Y, ball.H, ball.L, ball.norm, ball.move, ball.alone):
        scratch[...] = np.nan
    ball.V[:], ball.nu[:], ball.old[:] = V, nu, nu
    ball.scale[:] = [np.trace(P[k * d : (k + 1) * d, k * d : (k + 1) * d]) / d for k in range(K)]
    ball.norm[:] = 0.0
    count, _ = active_rows(ball, B)
    found = evaluate(ball, P, B, count, d)
    inverse = np.linalg.inv(np.linalg.inv(P) + np.kron(np.diag(nu), np.eye(d)))
    return ball, P, inverse, count, found


@pytest.mark.parametrize("m", [1, 2, 5, PANEL, PANEL + 1, 2 * PANEL + 3])
def test_cholesky_factors(m):
    rng = np.random.default_rng(m)
    F = rng.standard_normal((m, m))
    A = F @ F.T + np.eye(m)
    for factor in (cholesky, lambda C, n: cholesky_by_panels(C, n, np.empty(m * m), np.empty(m * PANEL))):
        C = np.full((m + 1, m + 1), np.nan)
        C[:m, :m] = np.where(np.tri(m) > 0, A, np.nan)  # the upper triangle is nobody's
        factor(C, m)
        L = np.tril(C[:m, :m], -1) + np.diag(1.0 / np.diag(C)[:m])
        np.testing.assert_allclose(L @ L.T, A, rtol=1e-10, atol=1e-10)
    b = rng.standard_normal(m)
    v = np.append(b, 7.0)
    forward(C, m, v)
    np.testing.assert_allclose(L @ v[:m], b, atol=1e-10)
    v[:m] = b
    backward(C, m, v)
    np.testing.assert_allclose(L.T @ v[:m], b, atol=1e-10)
    assert v[m] == 7.0


def test_rows_that_matter_are_those_with_a_multiplier_or_outside():
    ball = MetricBall.empty(5, 1)
    ball.nu[:], ball.norm[:] = [0.0, 0.5, 0.0, 0.0, 1.5], [1.0, 0.5, 2.0, 2.5, 3.0]
    for _ in range(2):
        found = active_rows(ball, 2.0)
        assert ball.free[:3].tolist() == [1, 3, 4]
        assert found == (3, not _)
    ball.nu[1] = 0.0
    assert active_rows(ball, 2.0) == (2, True)
    assert active_rows(ball, 2.0) == (2, False)
    assert active_rows(ball, 9.0) == (1, True)


def test_residual_and_dual_value_by_hand():
    """Norms 5, 1, 2 in a ball of radius 2: too long by 3/2, short with a multiplier, on the sphere."""
    ball = MetricBall.empty(3, 2)
    ball.W[:], ball.V[:] = [3.0, 4.0, 0.6, 0.8, 0.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    ball.nu[:], ball.scale[:] = [0.5, 0.0, 2.0], [10.0, 10.0, 10.0]
    dual = 0.5 * (0.5 * (3.0 + 8.0 - 4.0) + 2.0 * (12.0 - 4.0))
    assert row_norms(ball, 2.0, 2) == (pytest.approx(1.5), pytest.approx(dual))
    np.testing.assert_allclose(ball.norm, [5.0, 1.0, 2.0])
    ball.W[:2] = 0.0, 1.0
    for nu, scale, worst in ((0.01, 10.0, 0.1), (0.01, 5.0, 0.05), (0.3, 10.0, 0.5), (0.0, 10.0, 0.0)):
        ball.nu[1], ball.scale[1], ball.nu[0] = nu, scale, 0.0
        assert row_norms(ball, 2.0, 2)[0] == pytest.approx(worst)


@pytest.mark.parametrize(("K", "d"), [(1, 1), (2, 3), (3, 2), (4, 1)])
def test_the_point_of_given_multipliers_its_curvature_and_its_newton_step(K, d):
    rng = np.random.default_rng(K)
    for trial in range(4):
        nu = rng.uniform(0.2, 3.0, K)
        if K > 1:
            nu[trial % K] = 0.0
        B = 0.8
        ball, P, inverse, count, (worst, dual) = at(K, d, 7 * trial + K, nu, B)
        free = np.flatnonzero(nu > 0.0)
        assert (count, ball.tally.tolist()) == (len(free), [0, 1, 0])
        W = inverse @ np.linalg.inv(P) @ ball.V
        np.testing.assert_allclose(ball.W, W, atol=1e-9)
        rows = W.reshape(K, d)
        norms = np.linalg.norm(rows, axis=1)
        np.testing.assert_allclose(ball.norm, norms, atol=1e-9)
        off = [n / B - 1.0 if n > B else min(1.0 - n / B, nu[k] * ball.scale[k]) for k, n in enumerate(norms)]
        assert worst == pytest.approx(max(0.0, *off), abs=1e-9)
        assert dual == pytest.approx(0.5 * (nu * ((rows * ball.V.reshape(K, d)).sum(axis=1) - B * B)).sum(), abs=1e-8)
        H = np.einsum("ki,kilj,lj->kl", rows, inverse.reshape(K, d, K, d), rows)[np.ix_(free, free)]
        curvature(ball, P, count, d)
        np.testing.assert_allclose(np.tril(ball.H[:count, :count]), np.tril(H), atol=1e-9)
        right = (norms**2 * (norms / B - 1.0))[free]
        newton_direction(ball, P, B, count, d)
        np.testing.assert_allclose(ball.alone[:count], right / np.diag(H), rtol=1e-8)
        pinned: list[int] = []
        while True:  # whoever would fall below 0 goes to 0, and the others are asked again
            others = [a for a in range(count) if a not in pinned]
            move = np.zeros(count)
            move[pinned] = -nu[free][pinned]
            move[others] = np.linalg.solve(
                H[np.ix_(others, others)], right[others] - H[np.ix_(others, pinned)] @ move[pinned]
            )
            below = [a for a in others if nu[free][a] + move[a] < 0.0]
            if not below:
                break
            pinned += below
        np.testing.assert_allclose(ball.move[:count], move, rtol=1e-7, atol=1e-9)
        assert ball.pinned[:count].tolist() == [a in pinned for a in range(count)]


def test_a_newton_step_keeps_multipliers_at_or_above_zero():
    """In a large ball every row is short: all multipliers go to 0, some only once others were held there."""
    held = []
    for seed in range(8):
        ball, P, _, count, _ = at(3, 2, seed, np.array([0.02, 0.03, 2.0]), 4.0)
        newton_direction(ball, P, 4.0, count, 2)
        assert (ball.old + ball.move >= 0.0).all()
        held.append(int(ball.pinned.sum()))
    assert {0, 1} & set(held)
    assert max(held) >= 2


def test_hopeless_multipliers_go_back_to_zero():
    ball = MetricBall.empty(6, 1)
    ball.free[:] = [5, 4, 3, 2, 1, 0]
    nu = np.array([1.0, 3.0, 1e10, 2.6e9, 2.4e9, 3e10])
    ball.nu[:], ball.scale[:] = nu[::-1], [4.0, 4.0, 4.0, 1.0, 1.0, 1.0]
    ball.alone[:] = [-1.0, -2.0, -3.0, -4.0, -5.0, 6.0]
    rows_alone(ball, 6)
    assert ball.move.tolist() == [-1.0, -2.0, -3.0, -2.6e9, -5.0, 6.0]
    ball.alone[5], ball.alone[2] = 0.0, -0.5
    ball.nu[3] = 1.5e10
    rows_alone(ball, 6)
    assert ball.move.tolist() == [-1.0, -2.0, -1.5e10, -2.6e9, -5.0, 0.0]


def scalar(V, nu=0.0):
    """One row of one feature, P = 1: W(nu) = V/(1 + nu), and the multiplier of the unit ball is V - 1."""
    ball = MetricBall.empty(1, 1)
    ball.V[0], ball.old[0], ball.scale[0] = V, nu, 1.0
    return ball, np.ones((1, 1))


def test_a_search_halves_until_the_dual_rises_or_the_residual_halves():
    half = np.int64(8)

    def searched(V, move, worst, dual, old=0.0):
        ball, P = scalar(V, old)
        ball.move[0] = move
        ok, now, value = search(ball, P, 1.0, 1, 1, worst, dual, half)
        return ok, now, value, float(ball.nu[0]), int(ball.tally[NEWTON])

    # W(nu) = 4/(1 + nu), D(nu) = nu (4 W - 1)/2.
    ok, now, value, nu, steps = searched(4.0, 1.0, 3.0, math.inf)  # 1 is at most half of 3
    assert (ok, nu, steps) == (True, 1.0, 1)
    assert (now, value) == (pytest.approx(1.0), pytest.approx(3.5))
    assert searched(4.0, 3.0, 3.0, math.inf)[0::3] == (True, 3.0)
    assert not searched(4.0, 1.0, 1.5, math.inf)[0]
    ok, now, value, nu, steps = searched(4.0, 48.0, 1.2, math.inf)  # residuals 0.92, 0.84, 0.69, 0.43: three halvings
    assert (ok, nu, steps) == (True, 6.0, 4)
    assert searched(4.0, -1.0, 3.0, 0.0) == (False, 3.0, 0.0, 0.0, 8)  # never below 0, and nothing is gained there
    assert searched(4.0, 2.0, 3.0, math.inf, old=1.0)[3] == 3.0
    # Not halved (from 1.5), but the dual value rises by more than rounding; below 1e-8 that says nothing.
    exact = searched(4.0, 1.0, 3.0, math.inf)[2]
    for dual, worst, expected in (
        (exact - 1.0, 1.5, True),
        (exact / (1.0 + 1.5e-13), 1.5, True),
        (exact / (1.0 + 0.5e-13), 1.5, False),
        (exact, 1.5, False),
        (-1.0, 1.5e-8, True),
        (-1.0, 0.9e-8, False),
        (0.0, 1.5, True),
    ):
        ball, P = scalar(4.0)
        ball.move[0] = 1.0
        ok, now, value = search(ball, P, 1.0, 1, 1, worst, dual, np.int64(1))
        assert (ok, value, ball.nu[0]) == (expected, exact, 1.0)


def conditions(ball, P, V, K, d, B):
    """Return by how much the optimality conditions are missed: stationarity, the balls, signs and slack."""
    W, nu = ball.W.reshape(K, d), ball.nu
    forces = (np.linalg.inv(P) @ (ball.W - V)).reshape(K, d) + nu[:, None] * W
    norms = np.linalg.norm(W, axis=1)
    assert (nu >= 0.0).all()
    assert (norms <= B * (1.0 + 1e-15)).all()
    return np.abs(forces).max(), (nu * (B - norms)).max()


@pytest.mark.parametrize(("K", "d"), [(1, 1), (2, 1), (3, 2), (5, 3)])
def test_projections_meet_the_conditions_in_few_steps(K, d):
    moves = 0
    for B in (0.3, 2.0):
        ball = MetricBall.empty(K, d)
        for seed in range(6):
            P, V = problem(K, d, seed)
            ball.V[:] = V
            before = ball.tally.copy()
            project(ball, P, B)
            moved = np.linalg.norm(V.reshape(K, d), axis=1).max() > B
            moves += moved
            assert (ball.tally - before)[BOUND] == moved
            if not moved:
                np.testing.assert_array_equal(ball.W, V)
                continue
            force, slack = conditions(ball, P, V, K, d, B)
            assert force < 1e-8 * np.abs(np.linalg.inv(P)).max()
            assert slack < 1e-9 * max(1.0, ball.nu.max())
            assert (ball.tally - before)[NEWTON] <= 25
            traces = [np.trace(P[k * d : (k + 1) * d, k * d : (k + 1) * d]) / d for k in range(K)]
            np.testing.assert_allclose(ball.scale, traces, rtol=1e-13)
        assert ball.tally[STALLS] == 0
    assert moves >= 9


def test_a_projection_by_hand_and_what_it_counts():
    """1/|W| = (1 + nu)/|V| is a straight line: Newton's first step is exact. Inside and on the sphere nothing moves."""
    ball, P = scalar(4.0)
    project(ball, P, 1.0)
    assert (ball.W[0], ball.nu[0]) == (pytest.approx(1.0, rel=1e-12), pytest.approx(3.0))
    assert ball.tally.tolist() == [1, 2, 0]
    ball = MetricBall.empty(2, 2)
    ball.V[:] = 3.0, 4.0, 0.0, 0.0
    project(ball, np.eye(4), 5.0)
    np.testing.assert_array_equal(ball.W, ball.V)
    assert ball.tally.tolist() == [0, 0, 0]


def test_a_point_beyond_what_floats_hold_is_counted():
    ball, P = scalar(1e200)
    with np.errstate(all="ignore"):
        project(ball, P, 1.0)
    assert ball.tally[STALLS] == 1


def test_integers_of_a_ball_lie_in_their_ranges():
    found = MetricBall.empty(4, 2).limits()
    assert found == {"tally": (0, 2**53), "free": (0, 3), "pinned": (0, 1)}
    small, large = MetricBall.empty(8, 8), MetricBall.empty(5, 13)
    assert (small.left.size, small.product.size) == (0, 0)
    assert (large.left.size, large.product.size) == (65 * 65, 65 * PANEL)
