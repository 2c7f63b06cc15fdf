"""Newtron's quadratic programme: its conditions of optimality, and repairs of spoilt inverses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from banditlab.agents.newtron import Newtron
from banditlab.numerics import frobenius_programme as module
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frobenius_programme import (
    APPLIED,
    BINDING,
    EXCESS,
    REFACTORED,
    REFERENCE,
    ROUNDS,
    SOLUTION,
    STALLED,
    STEPS,
    WORST_DRIFT,
    add,
    apply,
    centre,
    check_drift,
    lanczos,
    programme_state,
    refactor,
    reference_solution,
    secular,
    shifted_solve,
    solve,
)
from banditlab.numerics.low_rank import WHOLE
from banditlab.numerics.packed_symmetric import dense, pack, unpack
from banditlab.problem import Problem


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
    qp.room.V[:] = np.nan  # nothing is read that this solve has not written
    solve(qp)
    W, nu = by_dense_inverses(C, b, D)
    np.testing.assert_allclose(qp.W, W, atol=1e-9)
    assert qp.nu[SOLUTION] == pytest.approx(nu, rel=1e-8)
    assert qp.tally[REFACTORED] >= 2
    assert qp.tally[STALLED] == 0
    assert np.linalg.norm(qp.W) == pytest.approx(D, rel=1e-14)


@pytest.mark.parametrize("d", [3, 8, 9])
def test_inverses_made_anew_are_those_of_the_quadratics(d):
    rng = np.random.default_rng(d)
    qp = programme_state(2, d, 0.25, 2.0)
    for k in (0, 1, 0):
        add(qp, k, as_contexts(rng.standard_normal(d)), 0.7, 1.5)
    wide = qp.b.shape[1]
    before = dense(qp.N, d), dense(qp.M, d), qp.h.copy()  # kept at nu0 = 0 by rank-one updates
    qp.tally[EXCESS] = 5
    for times, nu0 in enumerate((0.0, 0.75), 1):
        refactor(qp, nu0)
        N = np.linalg.inv(dense(qp.C, d) + nu0 * np.eye(d))
        np.testing.assert_allclose(dense(qp.N, d), N, atol=1e-13)
        np.testing.assert_allclose(dense(qp.M, d), np.linalg.inv(N.sum(axis=0)), atol=1e-13)
        np.testing.assert_allclose(qp.h[:, -d:], np.einsum("kij,kj->ki", N, qp.b[:, -d:]), atol=1e-13)
        assert (qp.nu[REFERENCE], qp.tally[REFACTORED], qp.tally[EXCESS]) == (nu0, times, 0)
        if nu0 == 0.0:
            for old, new in zip(before, (dense(qp.N, d), dense(qp.M, d), qp.h), strict=True):
                np.testing.assert_allclose(old, new, atol=1e-13)
    A = np.empty((wide, wide))
    for kept in (qp.N[0], qp.N[1], qp.M):
        unpack(kept, A)
        assert not A[: wide - d].any()  # the zeros in front stay zeros


def test_the_operator_makes_columns_sum_to_zero_and_is_counted():
    rng = np.random.default_rng(4)
    K, d = 3, 8
    qp = programme_state(K, d, 0.5, 2.0)
    for k in range(K):
        add(qp, k, as_contexts(rng.standard_normal(d)), 2.0, 1.0)
    r, out = rng.standard_normal((K, d)), np.empty((K, d))
    apply(qp, r, out)
    N = np.linalg.inv(dense(qp.C, d))
    mu = np.linalg.solve(N.sum(axis=0), np.einsum("kij,kj->i", N, r))
    np.testing.assert_allclose(out, np.einsum("kij,kj->ki", N, r - mu), atol=1e-13)
    assert np.abs(out.sum(axis=0)).max() < 1e-14
    assert qp.tally.tolist() == [0, 0, 1, 0, 0, 0]
    W, mean = rng.standard_normal((K, d)) + 5.0, np.full(d, np.nan)
    expected = W - W.mean(axis=0)
    centre(W, mean)
    np.testing.assert_allclose(W, expected, atol=1e-14)


def tridiagonal(qp, m, rng):
    """Write a positive definite T into the scratch, NaN into all the rest of it, and return T (m, m)."""
    for scratch in qp.room:
        scratch[...] = np.nan  # nothing is read that was not written
    alpha, beta = 1.0 + rng.random(m), 0.4 * rng.random(m)
    qp.room.alpha[:m], qp.room.beta[1:m] = alpha, beta[1:]
    return np.diag(alpha) + np.diag(beta[1:], 1) + np.diag(beta[1:], -1)


@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_the_shifted_tridiagonal_system_is_solved(m):
    rng = np.random.default_rng(m)
    qp = programme_state(2, 3, 0.5, 2.0)
    T, r = tridiagonal(qp, m, rng), rng.standard_normal(m)
    shifted_solve(qp, m, 1.7, r, qp.room.y)
    np.testing.assert_allclose(qp.room.y[:m], np.linalg.solve(np.eye(m) + 1.7 * T, r), rtol=1e-13)
    assert np.isnan(qp.room.y[m:]).all()


@pytest.mark.parametrize(("length", "unit"), [(1.0, 1.0), (1e-6, 1.0), (1e6, 1.0), (1.0, 1e-7), (1.0, 1e7)])
@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_the_secular_equation_is_solved_from_either_side(m, length, unit):
    """In whatever units W and the C_k are measured."""
    rng = np.random.default_rng(10 + m)
    D = 2.0 * length
    qp = programme_state(2, 3, 0.5, D)
    qp.nu[REFERENCE] = 0.25 * unit
    T = tridiagonal(qp, m, rng)
    qp.room.alpha[:] /= unit
    qp.room.beta[:] /= unit

    def solved(shift, norm):
        return np.linalg.solve(np.eye(m) + shift * T, norm * np.eye(m)[0])

    for norm in (1.9, 5.0):  # the root is below 0 and above it
        root = brentq(
            lambda shift, norm=norm: np.linalg.norm(solved(shift, norm)) - 2.0, -0.25, 100.0, xtol=1e-300, rtol=1e-15
        )
        for start in (-0.25, 0.1, 50.0):
            found = secular(qp, m, norm * length, start * unit)
            assert found / unit == pytest.approx(root, rel=1e-12, abs=1e-13)
            y = qp.room.y[:m] / length
            assert np.linalg.norm(y) == pytest.approx(2.0, rel=1e-15)
            np.testing.assert_allclose(y, solved(root, norm), rtol=1e-12, atol=1e-13)
    assert secular(qp, m, 0.1 * length, 3.0 * unit) == -0.25 * unit  # within the ball at multiplier 0


@pytest.mark.parametrize("D", [1e-6, 1.0, 1e6])
def test_the_basis_grows_until_the_solution_has_its_digits(D):
    """Multiplier 1/2, from references below and above it, in small balls and in large ones."""
    rng = np.random.default_rng(3)
    K, d = 3, 8
    turns = np.linalg.qr(rng.standard_normal((K, d, d)))[0]
    C = np.einsum("kij,j,klj->kil", turns, np.logspace(-1, 1, d), turns)
    b = rng.standard_normal((K, d))
    N = np.linalg.inv(C + 0.5 * np.eye(d))
    W = np.einsum("kij,kj->ki", N, np.linalg.solve(N.sum(axis=0), np.einsum("kij,kj->i", N, b)) - b)
    scale = D / np.linalg.norm(W)
    qp = programme_state(K, d, 1.0, D)
    for k in range(K):
        pack((C[k] + C[k].T) / 2, qp.C[k])
    qp.b[:] = scale * b
    for nu0 in (0.0, 0.2, 0.9, 3.0):
        refactor(qp, nu0)
        qp.nu[SOLUTION] = 0.0
        solve(qp)
        np.testing.assert_allclose(qp.W, scale * W, atol=2e-11 * D)
        assert qp.nu[SOLUTION] == pytest.approx(0.5, rel=1e-9)


def test_a_solve_by_hand_and_what_it_counts():
    # Binding: ||W(nu)|| = sqrt(2)/(1 + nu) = D at nu = 1/2; the Krylov space has one dimension.
    D = math.sqrt(2.0) / 1.5
    qp = opposite(1.0, D)
    solve(qp)
    np.testing.assert_allclose(qp.W[:, -1], [-2 / 3, 2 / 3], rtol=1e-14)
    assert qp.nu[SOLUTION] == pytest.approx(0.5, rel=1e-14)
    found = {"rounds": ROUNDS, "binding": BINDING, "applied": APPLIED, "refactored": REFACTORED, "stalled": STALLED}
    assert {name: qp.tally[slot] for name, slot in found.items()} == {
        "rounds": 1, "binding": 1, "applied": 1, "refactored": 0, "stalled": 0
    }  # fmt: skip
    assert qp.tally[EXCESS] == -1  # one application, two are free
    # Slack, and at a reference beyond 0: no step of Lanczos at first, and with b = 0 none at all.
    qp = opposite(1.0, 2.0)
    solve(qp)
    np.testing.assert_allclose(qp.W[:, -1], [-1.0, 1.0], rtol=1e-15)
    assert (qp.nu[SOLUTION], qp.tally.tolist()) == (0.0, [1, 0, 0, 0, 0, 0])
    refactor(qp, 0.75)
    solve(qp)
    np.testing.assert_allclose(qp.W[:, -1], [-1.0, 1.0], rtol=1e-14)
    assert qp.nu[SOLUTION] == 0.0
    assert qp.tally[:5].tolist() == [2, 0, 1, 1, 0]
    qp = opposite(0.0, 2.0)
    refactor(qp, 0.75)
    solve(qp)
    assert not qp.W.any()
    assert (qp.nu[SOLUTION], qp.tally.tolist()) == (0.0, [1, 0, 0, 1, 0, 0])


def test_the_reference_moves_once_excess_applications_outnumber_the_features():
    rng = np.random.default_rng(2)
    qp = programme_state(3, 3, 0.5, 0.1)
    for k in range(3):
        add(qp, k, as_contexts(rng.standard_normal(3)), 0.3, 1.0)
    solve(qp)
    assert qp.tally[EXCESS] == qp.tally[APPLIED] - 2
    assert qp.nu[SOLUTION] > 0.0
    W = qp.W.copy()
    for excess, moves in ((8, 0), (9, 1)):  # three features are padded to eight
        qp.tally[EXCESS] = excess
        solve(qp)
        assert qp.tally[REFACTORED] == moves
        assert (qp.nu[REFERENCE] > 0.0) == (moves == 1)
        np.testing.assert_allclose(qp.W, W, atol=1e-12)
    assert qp.tally[BINDING] == 3


def test_inverses_are_checked_every_256_rounds():
    qp = opposite(1.0, math.inf)
    qp.N[:] *= 1.001
    qp.h[:] *= 1.001
    for rounds, found in ((254, 0), (255, 1)):
        qp.tally[ROUNDS] = rounds
        solve(qp)
        assert (qp.nu[WORST_DRIFT] > 1e-4, qp.tally[REFACTORED]) == (found == 1, found)
    solve(qp)
    np.testing.assert_allclose(qp.W[:, -1], [-1.0, 1.0], rtol=1e-14)


def test_drift_is_an_error_relative_to_the_solution_or_the_ball():
    """C_k = I: an error e of W leaves a residual (1 + nu) e, which G mends by a step as long."""
    qp = opposite(100.0, math.inf)
    solve(qp)
    W = qp.W.copy()
    for error, renewed in ((0.7e-11, 0), (1.5e-11, 1)):
        qp.W[:] = (1.0 + error) * W
        check_drift(qp)
        assert qp.nu[WORST_DRIFT] == pytest.approx(error, rel=1e-3)
        assert qp.tally[REFACTORED] == renewed
    qp.W[:] = W
    check_drift(qp)
    assert qp.nu[WORST_DRIFT] == pytest.approx(1.5e-11, rel=1e-3)  # the largest seen
    assert qp.tally[REFACTORED] == 1

    qp = opposite(0.25, math.inf)  # W shorter than 1
    solve(qp)
    qp.W[:] *= 1.01
    check_drift(qp)
    assert qp.nu[WORST_DRIFT] == pytest.approx(0.01 / 1.01, rel=1e-9)
    qp = opposite(0.25, 2.0)  # no W at all: beside the radius
    check_drift(qp)
    assert qp.nu[WORST_DRIFT] == pytest.approx(0.25 * math.sqrt(2.0) / 2.0, rel=1e-9)
    qp = opposite(1.0, math.sqrt(2.0) / 1.5)  # on the sphere, nu = 1/2
    solve(qp)
    qp.W[:] *= 1.01
    check_drift(qp)
    assert qp.nu[WORST_DRIFT] == pytest.approx(1.5 * 0.01, rel=1e-9)


@pytest.mark.parametrize(("K", "d"), [(3, 5), (4, 17)])
def test_without_a_ball_the_short_way_is_the_long_one(K, d):
    """To the last bit: the solution at the reference multiplier 0, and its mean row taken off."""
    rng, qp = np.random.default_rng(2), programme_state(K, d, 0.5, math.inf)
    for _ in range(40):
        add(qp, int(rng.integers(K)), rng.standard_normal(d), rng.random(), rng.standard_normal())
        qp.nu[SOLUTION] = 7.0
        solve(qp)
        assert reference_solution(qp) > 0.0
        W = qp.room.V[0].copy()
        centre(W, np.zeros(W.shape[1]))
        np.testing.assert_array_equal(qp.W, W)
    assert (qp.nu[SOLUTION], qp.tally[ROUNDS], qp.tally[BINDING]) == (0.0, 40, 0)


def test_a_programme_of_nan_ends_and_is_counted():
    qp = opposite(math.nan, 2.0)
    solve(qp)
    assert qp.tally[STALLED] == 1
    assert qp.tally[BINDING] == 0


def test_integers_of_a_programme_lie_in_their_ranges():
    """Where one application of G is enough the excess falls below 0: a state to be saved like any other."""
    least, most = opposite(1.0, 0.5).limits()["tally"]
    assert least.tolist() == [0, 0, 0, 0, 0, -(2**53)]
    assert most == 2**53
    agent = Newtron(Problem(1, 2, 1.0, 50), np.random.default_rng(0))
    for t in range(50):
        x = np.array([(-1.0) ** t])
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == t % 2)
    tally = agent.state.programme.tally
    assert tally[BINDING] > 0
    assert tally[EXCESS] < 0
    again = Newtron.from_bytes(agent.to_bytes())
    assert again.state.programme.tally.tolist() == tally.tolist()


def far_from_its_reference(qp, K, d):
    """Give the blocks eigenvalues over three decades: from nu0 = 0 the Krylov space of STEPS dimensions is too small."""
    rng = np.random.default_rng(0)
    for k in range(K):
        Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
        pack(Q * np.logspace(0.0, 3.0, d) @ Q.T, qp.C[k])
    qp.b[:] = 10.0 * rng.standard_normal((K, d))
    refactor(qp, 0.0)


def test_where_the_steps_run_out_the_reference_moves_and_the_solution_is_the_same():
    K, d, D = 2, 64, 0.1
    qp = programme_state(K, d, 1.0, D)
    far_from_its_reference(qp, K, d)
    assert not lanczos(qp, reference_solution(qp))
    assert qp.tally[APPLIED] == STEPS
    solve(qp)
    assert qp.tally[REFACTORED] == 2
    assert STEPS < qp.tally[APPLIED] - STEPS < 2 * STEPS  # again all of them, and a few from nearer by
    assert (qp.tally[STALLED], qp.tally[BINDING]) == (0, 1)
    nu = qp.nu[SOLUTION]
    force = np.einsum("kij,kj->ki", dense(qp.C, d), qp.W) + nu * qp.W + qp.b
    assert np.abs(force - force.mean(axis=0)).max() < 1e-10 * np.abs(qp.b).max()
    assert np.linalg.norm(qp.W) == pytest.approx(D, rel=1e-12)


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
