"""Newtron's quadratic programme: its conditions of optimality, and repairs of spoilt inverses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from banditlab.numerics import frobenius_programme as module
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frobenius_programme import (
    BINDING,
    EXCESS,
    REFACTORED,
    ROUNDS,
    SOLUTION,
    STALLED,
    WORST_DRIFT,
    add,
    centre,
    check_drift,
    programme_state,
    refactor,
    reference_solution,
    solve,
)
from banditlab.numerics.low_rank import WHOLE
from banditlab.numerics.packed_symmetric import dense, pack


def test_solution_satisfies_the_conditions_of_the_programme():
    """Stationarity on the true C_k, zero sums, the ball: with large b and ill-conditioned blocks."""
    rng = np.random.default_rng(5)
    K, d, D = 6, 12, 4.0
    qp = programme_state(K, d, 1 / D, D)
    C, b = np.tile(np.eye(d) / D, (K, 1, 1)), np.zeros((K, d))
    for _ in range(500):
        i, x = int(rng.integers(K)), rng.standard_normal(d) / math.sqrt(d)
        weight, step = 10.0 ** rng.uniform(-6, 2), 10.0 ** rng.uniform(0, 3) * rng.standard_normal()
        add(qp, i, as_contexts(x), weight, step)
        solve(qp)
        C[i] += weight * np.outer(x, x)
        b[i] += step * x
        nu, W = qp.nu[SOLUTION], qp.W[:, -d:]
        force = np.einsum("kij,kj->ki", C, W) + nu * W + b
        residual = force - force.mean(axis=0)
        assert np.abs(residual).max() < 1e-10 * np.abs(b).max()
        assert np.abs(W.sum(axis=0)).max() < 1e-13 * D
        assert np.linalg.norm(W) <= D * (1 + 1e-14)
        assert nu == 0.0 or np.linalg.norm(W) == pytest.approx(D, rel=1e-12)
    assert qp.tally[STALLED] == 0


def test_a_spoilt_inverse_is_found_and_repaired():
    rng = np.random.default_rng(6)
    qp = programme_state(3, 5, 0.5, 2.0)
    for _ in range(50):
        add(qp, int(rng.integers(3)), as_contexts(rng.standard_normal(5)), 0.1, 1.0)
        solve(qp)
    exact = qp.W.copy()
    qp.tally[EXCESS] = 0  # no move of nu0 repairs it on the way
    qp.N[1] *= 1.001
    solve(qp)
    assert np.abs(qp.W - exact).max() > 1e-6
    check_drift(qp)
    solve(qp)
    np.testing.assert_allclose(qp.W, exact, atol=1e-11)


@pytest.mark.parametrize("D", [2.0, 1e8, np.inf])
def test_a_slightly_spoilt_inverse_is_repaired_however_large_the_ball(D):
    """An error is small beside W, not beside the radius of a ball that W is far from."""
    rng = np.random.default_rng(6)
    qp = programme_state(3, 5, 0.5, D)
    for _ in range(50):
        add(qp, int(rng.integers(3)), as_contexts(rng.standard_normal(5)), 0.1, 1.0)
        solve(qp)
    exact = qp.W.copy()
    qp.tally[EXCESS] = 0
    qp.N[1] *= 1.0 + 1e-6
    qp.h[1, -5:] = dense(qp.N[1], 5) @ qp.b[1, -5:]
    solve(qp)
    check_drift(qp)
    assert qp.nu[WORST_DRIFT] > 1e-8
    solve(qp)
    np.testing.assert_allclose(qp.W, exact, atol=1e-11 * np.linalg.norm(exact))


def by_dense_inverses(C, b, D):
    """The programme's solution W (K, d) and its multiplier: a root in nu of ||W(nu)|| = D, every C_k inverted anew."""

    def at(nu):
        N = np.linalg.inv(C + nu * np.eye(C.shape[1]))
        mu = np.linalg.solve(N.sum(axis=0), np.einsum("kij,kj->i", N, b))
        return np.einsum("kij,kj->ki", N, mu - b)

    if np.linalg.norm(at(0.0)) <= D:
        return at(0.0), 0.0
    nu = brentq(lambda nu: np.linalg.norm(at(nu)) - D, 0.0, 1e9, xtol=1e-300, rtol=1e-14)
    return at(nu), nu


def opposite(c, D, ridge=1.0):
    """A programme of two classes and one feature, C_k = ridge and b = (c, -c): W(nu) = (-c, c)/(ridge + nu)."""
    qp = programme_state(2, 1, ridge, D)
    qp.b[:, -1] = c, -c
    refactor(qp, 0.0)
    qp.tally[:] = 0
    return qp


def test_a_programme_with_too_many_scales_for_one_basis_moves_its_reference():
    """48 eigenvalues from 1e-4 to 1e4: no Krylov space of 24 steps holds the solution from nu0 = 0."""
    rng = np.random.default_rng(1)
    K, d, D = 3, 16, 1.0
    qp = programme_state(K, d, 1.0, D)
    turns = np.linalg.qr(rng.standard_normal((K, d, d)))[0]
    C = np.einsum("kij,j,klj->kil", turns, np.logspace(-4, 4, d), turns)
    b = 10.0 * rng.standard_normal((K, d))
    for k in range(K):
        pack((C[k] + C[k].T) / 2, qp.C[k])
    qp.b[:] = b
    refactor(qp, 0.0)
    qp.scratch.V[:] = np.nan  # nothing is read that this solve has not written
    solve(qp)
    W, nu = by_dense_inverses(C, b, D)
    np.testing.assert_allclose(qp.W, W, atol=1e-9)
    assert qp.nu[SOLUTION] == pytest.approx(nu, rel=1e-8)
    assert qp.tally[REFACTORED] >= 2
    assert qp.tally[STALLED] == 0
    assert np.linalg.norm(qp.W) == pytest.approx(D, rel=1e-14)


@pytest.mark.parametrize(("K", "d"), [(3, 5), (4, 17)])
def test_without_a_ball_the_short_way_is_the_long_one(K, d):
    """To the last bit: the solution at the reference multiplier 0, and its mean row taken off."""
    rng, qp = np.random.default_rng(2), programme_state(K, d, 0.5, math.inf)
    for _ in range(40):
        add(qp, int(rng.integers(K)), rng.standard_normal(d), rng.random(), rng.standard_normal())
        qp.nu[SOLUTION] = 7.0
        solve(qp)
        assert reference_solution(qp) > 0.0
        W = qp.scratch.V[0].copy()
        centre(W, np.zeros(W.shape[1]))
        np.testing.assert_array_equal(qp.W, W)
    assert (qp.nu[SOLUTION], qp.tally[ROUNDS], qp.tally[BINDING]) == (0.0, 40, 0)


def test_a_programme_of_nan_ends_and_is_counted():
    qp = opposite(math.nan, 2.0)
    solve(qp)
    assert qp.tally[STALLED] == 1
    assert qp.tally[BINDING] == 0


@pytest.mark.slow
@pytest.mark.parametrize("D", [math.inf, 40.0, 1.5])
def test_a_large_programme_begins_as_rows_and_solves_the_same(monkeypatch, D):
    """Class 0 learns most: its matrices become whole, as M does; where the ball binds a move of nu0 makes all whole."""
    K, d = 3, 19
    rng = np.random.default_rng(1)
    small = programme_state(K, d, 0.5, D)
    monkeypatch.setattr(module, "LARGE", 0)
    large = programme_state(K, d, 0.5, D)
    assert small.low_C is small.low_N is small.low_M is None
    for t in range(60):
        i, x = (0 if t % 2 else int(rng.integers(K))), rng.standard_normal(d)
        weight, step = rng.uniform(0.1, 1.0), rng.standard_normal()
        for qp in (small, large):
            add(qp, i, x, weight, step)
            solve(qp)
        np.testing.assert_allclose(large.W, small.W, rtol=0, atol=1e-10 * np.abs(small.W).max())
        assert large.nu[1] == pytest.approx(small.nu[1], rel=1e-9, abs=1e-12)
        if t == 4 and large.tally[REFACTORED] == 0:
            assert large.low_M.ranks.tolist() == [5]
            assert large.low_N.ranks.sum() == large.low_C.ranks.sum() == 5
    assert large.low_C.ranks[0] == large.low_N.ranks[0] == large.low_M.ranks[0] == WHOLE
    if large.tally[REFACTORED]:
        assert (large.low_N.ranks == WHOLE).all()
    else:
        assert large.low_N.ranks[1] > 0
    refactor(large, large.nu[0])
    refactor(small, small.nu[0])
    for ours, theirs in ((large.N, small.N), (large.C, small.C), (large.M, small.M)):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())


@pytest.mark.slow
def test_drift_is_checked_and_mended_of_rows_too(monkeypatch):
    K, d = 3, 40
    monkeypatch.setattr(module, "LARGE", 0)
    qp, rng = programme_state(K, d, 0.5, math.inf), np.random.default_rng(2)
    for _ in range(10):
        add(qp, int(rng.integers(K)), rng.standard_normal(d), 0.5, rng.standard_normal())
    solve(qp)
    check_drift(qp)
    assert qp.nu[WORST_DRIFT] < 1e-12
    assert qp.tally[REFACTORED] == 0
    qp.low_N.scales[1] *= 1.001  # spoilt
    solve(qp)
    check_drift(qp)
    assert qp.nu[WORST_DRIFT] > 1e-6
    assert qp.tally[REFACTORED] == 1
    solve(qp)
    check_drift(qp)
    force = np.einsum("kij,kj->ki", dense(qp.C, d), qp.W) + qp.b
    assert np.abs(force - force.mean(axis=0)).max() < 1e-11 * np.abs(force).max()
