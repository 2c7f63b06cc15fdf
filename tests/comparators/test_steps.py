"""The solvers' steps by hand: which rows are held, how far a step may go, what the first interior step aims at."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from banditlab.comparators import ComparatorError, StreamCounts, _interior, best_in_ball, best_in_frobenius_ball, counts
from banditlab.comparators._ball_geometry import Point, face_at, feasible, frank_wolfe_gap
from banditlab.comparators._interior import direction, interior, longest
from banditlab.comparators._newton import newton_step, spectral_step
from banditlab.comparators._objective import Objective
from banditlab.comparators.along import scale_up_to
from banditlab.comparators.frobenius import project_frobenius
from banditlab.errors import UsageError


def at(W: Any, G: Any, loss: float = 3.0, gap: float = 1.0) -> Point:
    W, G = np.array(W, dtype=float), np.array(G, dtype=float)
    return Point(W, W, W, loss, G, gap)


@pytest.mark.parametrize(
    ("gap", "loss", "enough"),
    [(1e-3, 0.5, True), (1.1e-3, 0.5, False), (1.5e-3, 1.5, True), (1.6e-3, 1.5, False), (0.004, 4.0, True)],
)
def test_a_gap_is_small_beside_the_loss_and_below_one_nat_beside_one(gap: float, loss: float, enough: bool) -> None:
    assert at([[0.0]], [[0.0]], loss, gap).within(1e-3) == enough


def test_rows_on_the_bound_that_descent_pushes_outwards_are_held() -> None:
    """mu_k = -<G_k, W_k>/B^2, the normal W_k/B; rows inside, or pushed inwards or along the sphere, are free."""
    B = 2.0
    p = at([[2.0, 0], [2.0, 0], [0, 2.0], [1.9, 0], [1.2, 1.6]], [[-3.0, 1], [0.5, 1], [7, 0], [-9, 0], [-1, -0.5]])
    face = face_at(p, B)
    assert face.held.tolist() == [True, False, False, False, True]
    np.testing.assert_allclose(face.mu, [1.5, 0, 0, 0, 0.5])
    np.testing.assert_allclose(face.normals, [[1, 0], [0, 0], [0, 0], [0, 0], [0.6, 0.8]])
    D = np.array([[5.0, 7], [1, 1], [1, 1], [1, 1], [3, 4]])
    np.testing.assert_allclose(face.tangent(D), [[0, 7], [1, 1], [1, 1], [1, 1], [0, 0]], atol=1e-12)


def test_the_gap_by_hand() -> None:
    """<G, W> + B sum ||G_k||, rows below 0 for rounding counted as 0."""
    W, G = np.array([[1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), np.array([[3.0, 4.0], [0.0, -1.0], [-1.0, 0.0]])
    assert frank_wolfe_gap(W, G, 2.0) == 13.0 + 0.0 + 0.0
    assert frank_wolfe_gap(W, G, 1.5) == 3.0 + 7.5  # two rows outside of the ball
    np.testing.assert_allclose(feasible(3.0 * W, 2.0), [[2, 0], [0, 2], [2, 0]])
    np.testing.assert_array_equal(feasible(W, 2.0), W)


def test_a_step_goes_99_hundredths_of_the_way_to_the_sphere_or_to_a_multiplier_of_0() -> None:
    W, D, nu = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[4.0, 0.0], [0.1, 0.0]]), np.array([1.0, 2.0])
    root = math.sqrt(3.0) / 4  # |(4 t, 1)| = 2
    assert longest(W, D, nu, np.array([0.0, 1.0]), 2.0) == pytest.approx(0.99 * root)
    assert longest(W, D, nu, np.array([-4.0, 1.0]), 2.0) == pytest.approx(0.99 / 4)
    assert longest(W, D, nu, np.array([0.0, -10.0]), 2.0) == pytest.approx(0.99 / 5)
    assert longest(W, 0.0 * D, nu, np.array([0.0, 0.0]), 2.0) == 1.0
    along = np.array([[0.0, 0.5], [0.0, 0.0]])
    assert longest(W, along, nu, nu, 2.0) == 1.0  # to 1.5 only
    assert longest(W, 4 * along, nu, nu, 2.0) == pytest.approx(0.99 / 2)
    assert longest(W, -8 * along, nu, nu, 2.0) == pytest.approx(0.99 * 0.75)


@pytest.mark.parametrize(("K", "goal"), [(16, 1e-9), (3, 1e-9), (16, 1e6)])
def test_the_first_interior_step_aims_at_a_tenth(K: int, goal: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One context for each class, all alike: ||G_k||^2 = 1 - 1/K at W = 0, the gap is B sqrt(K (K-1)).

    The multipliers begin at gap/(K B^2), so that the mean of -nu f is half the gap over K; G alone lacks B sqrt(K-1).
    """
    B, seen = 7.0, []

    def aims(objective: Any, p: Any, nu: Any, B: float, mu: float) -> Any:
        seen.append((nu.copy(), mu))
        raise StopIteration

    monkeypatch.setattr(_interior, "direction", aims)
    objective, gap = Objective(np.eye(K), np.eye(K)), B * math.sqrt(K * (K - 1))
    if goal > gap:
        p, steps = interior(objective, np.zeros((K, K)), B, goal, 10)
        assert (steps, p.gap) == (0, pytest.approx(gap))
        return
    with pytest.raises(StopIteration):
        interior(objective, np.zeros((K, K)), B, goal, 10)
    [(nu, mu)] = seen
    np.testing.assert_allclose(nu, gap / (K * B**2))
    assert mu * K == pytest.approx(0.1 * gap / 2 if K > 4 else 0.1 * B * math.sqrt(K - 1))


def test_an_interior_start_is_drawn_in_to_nine_tenths_of_the_radius(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(_interior, "direction", lambda objective, p, *_: seen.append(p.W) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        interior(Objective(np.eye(3), np.eye(3)), np.array([[2.0, 0, 0], [0, 1.7, 0], [0, 0, 0]]), 2.0, 1e-9, 5)
    np.testing.assert_allclose(seen[0], [[1.8, 0, 0], [0, 1.7, 0], [0, 0, 0]])


def test_a_hessian_without_a_factor_gets_ten_times_more_on_its_diagonal_each_time(monkeypatch: Any) -> None:
    diagonals = []

    def factor(H: Any, lower: bool, real: Any = _interior.cho_factor) -> Any:
        diagonals.append(H[0, 0])
        if len(diagonals) < 6:
            raise LinAlgError
        return real(H, lower=lower)

    monkeypatch.setattr(_interior, "cho_factor", factor)
    objective, W = Objective(np.eye(3), np.eye(3)), np.zeros((3, 3))
    p = _interior.point(objective, W, objective.logits(W), 2.0)
    direction(objective, p, np.ones(3), 2.0, 0.1)
    added = [each - diagonals[0] for each in diagonals]
    np.testing.assert_allclose(added, [0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11], rtol=0.05, atol=5e-16)


def test_a_projection_is_the_same_matrix_up_to_the_bound_and_never_longer() -> None:
    W = np.array([[3.0, 0.0], [0.0, 4.0]])
    assert project_frobenius(W, 5.0) is W
    np.testing.assert_allclose(project_frobenius(W, 2.5), W / 2)
    for seed in range(200):
        V = np.random.default_rng(seed).normal(size=(3, 4))
        P = project_frobenius(V, 0.1)
        assert 0.1 * (1 - 1e-15) <= np.linalg.norm(P) <= 0.1


def test_the_scale_of_warm_starts() -> None:
    assert scale_up_to(1) == [1]
    assert scale_up_to(100) == [1, 2, 5, 10, 20, 50, 100]
    assert scale_up_to(499) == [1, 2, 5, 10, 20, 50, 100, 200]


def test_a_stream_of_more_than_four_gigabytes_is_refused() -> None:
    stream = StreamCounts(10**6, 2)
    with pytest.raises(ComparatorError, match="near the most that 4 GiB hold"):
        stream._reserve(4 * 2**30 // (8 * (10**6 + 2)) + 1)
    assert counts.MOST_BYTES == 4_294_967_296


@pytest.mark.parametrize(("rows", "classes"), [(1, 2), (3, 2)])
def test_the_smallest_problems_are_solved(rows: int, classes: int) -> None:
    """One feature, two classes, one context: at B = 1 the logits are 1 and -1."""
    found = best_in_ball(np.ones((rows, 1)), np.tile([[1.0, 0.0]], (rows, 1)), 1.0, max_iterations=50)
    assert found.loss == pytest.approx(rows * math.log1p(math.exp(-2.0)), rel=1e-6)
    assert (found.rounds, found.mistakes, found.norm_bound) == (rows, 0, 1.0)


def quadratic(B: float) -> tuple[Objective, Point]:
    rng = np.random.default_rng(4)
    objective = Objective(rng.normal(size=(30, 3)), rng.integers(0, 3, size=(30, 3)).astype(float))
    W = feasible(rng.normal(size=(3, 3)), 0.5 * B)
    return objective, _interior.point(objective, W, objective.logits(W), B)


def test_a_newton_step_that_climbs_is_cut_to_a_quarter_until_it_falls_four_times_at_most() -> None:
    """Downhill along -G, far too far: 4^-j of it is taken for the first j at which the loss has fallen."""
    objective, p = quadratic(50.0)
    short = -p.G / np.linalg.norm(p.G)
    for times in (0, 2, 4):
        D = 0.1 * 4.0**times * short
        q, full = newton_step(objective, p, D, 50.0)
        lengths = [4.0**-j for j in range(4)]
        falls = [
            objective.loss(objective.logits(p.W + t * D)) <= p.loss + 1e-4 * t * float(np.vdot(p.G, D)) for t in lengths
        ]
        first = lengths[falls.index(True)]
        np.testing.assert_allclose(q.W, p.W + first * D)
        assert full == (first == 1.0)
    far = 1e6 * short
    q, full = newton_step(objective, p, far, 1e9)
    assert q is p
    assert not full


def test_the_next_gradient_step_is_as_long_as_the_curvature_along_this_one_says() -> None:
    """Barzilai and Borwein: <s, s>/<s, y>."""
    objective, p = quadratic(50.0)
    step = 1e-3
    q, following = spectral_step(objective, p, 50.0, step, p.loss)
    s, y = q.W - p.W, q.G - p.G
    np.testing.assert_allclose(q.W, p.W - step * p.G)
    assert following == pytest.approx(float(np.vdot(s, s) / np.vdot(s, y)))
    assert following > 0.0


@pytest.mark.parametrize("best", [best_in_ball, best_in_frobenius_ball])
@pytest.mark.parametrize(
    ("contexts", "labels", "said"),
    [
        ((3,), (3, 2), r"U must be \(m, d\)"),
        ((3, 1, 1), (3, 2), r"U must be \(m, d\)"),
        ((3, 1), (3,), r"counts \(m, K\) with K >= 2"),
        ((3, 1), (3, 2, 2), r"counts \(m, K\) with K >= 2"),
        ((3, 1), (3, 1), r"K >= 2, got \(3, 1\) and \(3, 1\)"),
        ((3, 1), (4, 2), r"got \(3, 1\) and \(4, 2\)"),
        ((2, 3), (3, 2), r"got \(2, 3\) and \(3, 2\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(best: Any, contexts: Any, labels: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        best(np.ones(contexts), np.ones(labels), 1.0)


@pytest.mark.parametrize("best", [best_in_ball, best_in_frobenius_ball])
@pytest.mark.parametrize("place", ["contexts", "labels"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_one_number_that_is_none_is_refused(best: Any, place: str, value: float) -> None:
    given = {"contexts": np.ones((3, 2)), "labels": np.ones((3, 2))}
    given[place][1, 1] = value
    with pytest.raises(UsageError, match="U must be finite and counts finite and 0 or above"):
        best(given["contexts"], given["labels"], 1.0)


def test_counts_may_be_0_and_not_below() -> None:
    for best in (best_in_ball, best_in_frobenius_ball):
        assert best(np.ones((2, 1)), np.array([[0.0, 1.0], [2.0, 0.5]]), 1.0).loss > 0
        with pytest.raises(UsageError, match="0 or above"):
            best(np.ones((2, 1)), np.array([[0.0, -1e-300], [2.0, 0.5]]), 1.0)


def test_a_start_is_finite_and_of_the_weights_shape() -> None:
    U, C = np.eye(3), np.eye(3)
    for start in (np.full((3, 3), np.nan), np.ones((3, 2)), np.ones(9)):
        with pytest.raises(UsageError, match=r"start must be finite, of shape \(3, 3\), got shape"):
            best_in_ball(U, C, 1.0, start=start)
    assert best_in_ball(U, C, 1.0, start=np.eye(3)).gap <= 1e-6 * 3


@pytest.mark.parametrize("steps", [1, 3])
def test_interior_steps_are_counted(steps: int) -> None:
    objective = Objective(np.eye(4), np.eye(4))
    p, counted = interior(objective, np.zeros((4, 4)), 3.0, 1e-12, steps)
    assert counted == steps
    assert p.gap < interior(objective, np.zeros((4, 4)), 3.0, 1e-12, 1)[0].gap or steps == 1
