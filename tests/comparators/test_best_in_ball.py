"""The best model in the ball against scipy, scikit-learn, closed forms and its own certificate."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from sklearn.linear_model import LogisticRegression

from banditlab.comparators import ComparatorError, best_in_ball, collapse
from banditlab.comparators._ball_geometry import frank_wolfe_gap, point, row_norms, shrinkage
from banditlab.comparators._interior import _off, interior
from banditlab.comparators._objective import Objective
from banditlab.errors import UsageError


def sample(seed, m=12, d=3, K=3, counts=3, scale=1.0):
    """Contexts in the unit ball with random label counts: not separable."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(m, d)) * scale
    U /= np.maximum(1.0, np.linalg.norm(U, axis=1))[:, None]
    C = rng.integers(counts + 1, size=(m, K)).astype(float)
    C[C.sum(axis=1) == 0, 0] = 1.0
    return U, C


def planted(seed, m, d, K, norm):
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(m, d)), rng.normal(size=(K, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    W *= norm / np.linalg.norm(W, axis=1)[:, None]
    return X, np.argmax(X @ W.T + rng.gumbel(size=(m, K)), axis=1)


def by_slsqp(U, C, B):
    """The slow direct form: scipy's SLSQP on the rows' squared norms; returns the loss at its feasible projection."""
    objective = Objective(U, C)
    K, d = objective.shape

    def loss_and_gradient(w):
        Z = objective.logits(w.reshape(K, d))
        loss, S = objective.forecast(Z)
        return loss, objective.gradient(S).ravel()

    def jacobian(w):
        out = np.zeros((K, K, d))
        out[np.arange(K), np.arange(K)] = -2.0 * w.reshape(K, d) / B**2
        return out.reshape(K, K * d)

    ball = {"type": "ineq", "fun": lambda w: 1.0 - (w.reshape(K, d) ** 2).sum(axis=1) / B**2, "jac": jacobian}
    start = np.random.default_rng(0).normal(size=K * d) * 0.1 * B
    found = minimize(
        loss_and_gradient, start, jac=True, method="SLSQP", constraints=[ball], options={"maxiter": 500, "ftol": 1e-13}
    )
    W = found.x.reshape(K, d)
    W = W * shrinkage(W, B)
    return objective.loss(objective.logits(W))


@pytest.mark.parametrize("B", [0.01, 0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize(("seed", "d", "K"), [(0, 3, 3), (1, 1, 2), (2, 5, 4), (3, 2, 6)])
def test_scipy_agrees_and_its_value_lies_in_the_interval(seed, d, K, B):
    U, C = sample(seed, d=d, K=K)
    found = best_in_ball(U, C, B, tolerance=1e-9)
    slow = by_slsqp(U, C, B)
    assert found.loss == pytest.approx(slow, rel=1e-6)
    assert slow >= found.loss - found.gap - 1e-12 * slow  # nobody beats the interval
    loose = best_in_ball(U, C, B, tolerance=1e-3)
    assert loose.loss - loose.gap - 1e-12 <= found.loss <= loose.loss + 1e-12


def test_the_residual_is_that_of_both_equations():
    B, mu, W = 2.0, 0.3, np.array([[1.0, 0.5], [0.0, -1.9]])
    nu = 2.0 * mu / (B**2 - (W * W).sum(axis=1))  # -nu f = mu
    p = point(Objective(*sample(0, d=2, K=2)), W, W @ np.zeros((2, 12)), B)
    assert _off(p._replace(G=-nu[:, None] * W), nu, B, mu) == pytest.approx(0.0, abs=1e-12)
    assert _off(p._replace(G=3.0 - nu[:, None] * W), nu, B, mu) == pytest.approx(B * 3.0 * 2.0)
    assert _off(p._replace(G=-nu[:, None] * W), nu, B, 0.5) == pytest.approx(0.2 * np.sqrt(2.0))


def test_scikit_learn_agrees_when_the_ball_is_slack():
    U, C = sample(7, m=40, d=4, K=3, counts=5)
    found = best_in_ball(U, C, 1000.0, tolerance=1e-10)
    assert row_norms(found.weights).max() < 500.0
    i, k = np.nonzero(C)
    model = LogisticRegression(C=1e12, fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newton-cg reports a line search that ended at rounding
        model.fit(U[i], k, sample_weight=C[i, k])
    objective = Objective(U, C)
    assert found.loss == pytest.approx(objective.loss(objective.logits(model.coef_)), rel=1e-9)
    np.testing.assert_allclose(
        found.weights - found.weights.mean(axis=0), model.coef_ - model.coef_.mean(axis=0), atol=1e-3
    )


@pytest.mark.parametrize("B", [0.5, 2.0, 50.0])
def test_two_classes_have_opposite_rows_and_one_logistic_regression(B):
    U, C = sample(11, m=30, d=3, K=2)
    found = best_in_ball(U, C, B, tolerance=1e-10)
    np.testing.assert_allclose(found.weights[0], -found.weights[1], atol=1e-4 * B)

    def binary(w):  # margin 2 <w, u>
        return float(C[:, 0] @ np.logaddexp(0, -2 * U @ w) + C[:, 1] @ np.logaddexp(0, 2 * U @ w))

    ball = {"type": "ineq", "fun": lambda w: B**2 - w @ w}
    slow = minimize(binary, np.zeros(3), method="SLSQP", constraints=[ball], options={"ftol": 1e-13, "maxiter": 300})
    assert found.loss == pytest.approx(binary(slow.x), rel=1e-6)


@pytest.mark.parametrize("K", [2, 3, 30])
@pytest.mark.parametrize("B", [0.1, 1.0, 4.0])
def test_one_context_with_one_label_has_a_closed_form(K, B):
    u = np.array([[0.3, -0.4]])  # ||u|| = 1/2: the logits range over [-B/2, B/2] each
    C = np.zeros((1, K))
    C[0, 1] = 3.0
    found = best_in_ball(u, C, B, tolerance=1e-9)
    assert found.loss == pytest.approx(3.0 * math.log1p((K - 1) * math.exp(-B)), abs=3e-9 * max(1.0, found.loss))
    np.testing.assert_allclose(found.weights[1], 2.0 * B * u[0], atol=1e-3 * B)


def test_one_context_with_many_labels_reaches_the_frequencies_or_the_box():
    u, C = np.array([[1.0]]), np.array([[6.0, 3.0, 1.0]])
    p = C[0] / 10
    slack = best_in_ball(u, C, 5.0, tolerance=1e-9)
    assert slack.loss == pytest.approx(-float(C[0] @ np.log(p)), rel=1e-8)  # the entropy

    def boxed(z):  # at B = 0.5 the outer classes sit at the bounds and the middle one is free
        logits = np.array([0.5, z, -0.5])
        return float(10 * np.log(np.exp(logits).sum()) - C[0] @ logits)

    slow = minimize_scalar(boxed, bounds=(-0.5, 0.5), method="bounded", options={"xatol": 1e-10})
    tight = best_in_ball(u, C, 0.5, tolerance=1e-9)
    assert tight.loss == pytest.approx(slow.fun, rel=1e-8)
    np.testing.assert_allclose(tight.weights[:, 0], [0.5, slow.x, -0.5], atol=1e-3)


def test_a_tiny_ball_costs_t_ln_k_and_a_zero_context_nothing_more():
    U, C = sample(4)
    T = C.sum()
    tiny = best_in_ball(U, C, 1e-8)
    assert tiny.loss == pytest.approx(T * math.log(3), rel=1e-7)
    zero = best_in_ball(np.zeros((1, 2)), np.array([[3.0, 1.0]]), 7.0)
    assert zero.loss == pytest.approx(4 * math.log(2), rel=1e-14)
    assert zero.gap == 0.0
    assert zero.mistakes == 1
    assert zero.rounds == 4


HARD = {
    "separable": (lambda: planted(0, 60, 20, 4, 1e6), 1.0),
    "nearly separable": (lambda: planted(1, 1500, 10, 5, 60.0), 1.0),
    "many classes": (lambda: planted(2, 100, 40, 30, 5.0), 1.0),
    "wide": (lambda: planted(3, 50, 400, 3, 5.0), 1.0),
    "noise": (lambda: planted(4, 1000, 5, 3, 0.0), 1.0),
    "heavy counts": (lambda: planted(5, 30, 8, 5, 3.0), 1e6),
    "one round": (lambda: planted(6, 1, 10, 4, 1.0), 1.0),
    "two rounds": (lambda: planted(7, 2, 10, 4, 1.0), 1.0),
    "one feature": (lambda: planted(8, 500, 1, 2, 3.0), 1.0),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.few(3)
def test_every_norm_bound_is_solved_feasibly_with_a_valid_certificate(name):
    make, weight = HARD[name]
    X, y = make()
    K = max(int(y.max()) + 2, 2)  # the last class is never seen
    U, C = collapse(X, y, K)
    C = C * weight
    objective, rng = Objective(U, C), np.random.default_rng(9)
    least = math.inf
    for B in (0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0):
        found = best_in_ball(U, C, B)
        assert (np.sqrt((found.weights**2).sum(axis=1)) <= B * (1 + 1e-15)).all()
        assert found.gap <= 1e-6 * max(1.0, found.loss)
        again = point(objective, found.weights, U.dot(found.weights.T).T, B)
        assert found.loss == pytest.approx(again.loss, rel=1e-12, abs=1e-12)
        assert found.gap == pytest.approx(again.gap, rel=1e-3, abs=1e-9 * max(1.0, found.loss))
        for _ in range(10):  # feasible W, near the optimum and anywhere
            W = found.weights + rng.normal(size=found.weights.shape) * B * 10.0 ** rng.uniform(-6, 1)
            W *= shrinkage(W, B)
            assert objective.loss(objective.logits(W)) >= found.loss - found.gap - 1e-12 * max(1.0, found.loss)
        assert found.loss - found.gap <= least  # a larger ball is never worse
        least = found.loss


@given(st.integers(0, 10**6), st.floats(0.05, 30.0), st.integers(1, 6), st.integers(2, 5))
@settings(max_examples=60, deadline=None)
def test_the_gap_bounds_the_suboptimality_at_any_feasible_point(seed, B, d, K):
    U, C = sample(seed, m=8, d=d, K=K)
    found = best_in_ball(U, C, B)
    objective, rng = Objective(U, C), np.random.default_rng(seed)
    W = rng.normal(size=(K, d)) * B
    W *= shrinkage(W, B)
    anywhere = point(objective, W, objective.logits(W), B)
    assert anywhere.gap == frank_wolfe_gap(W, anywhere.G, B)
    assert anywhere.loss - anywhere.gap <= found.loss + 1e-9 * found.loss


@given(st.integers(0, 10**6), st.floats(0.05, 100.0))
@settings(max_examples=30, deadline=None)
def test_collapsed_or_not_warm_or_cold_the_answer_is_the_same(seed, B):
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(40, 3)) / 2.0
    y = rng.integers(3, size=40)
    U, C = collapse(X, y, 3)
    cold = best_in_ball(U, C, B)
    loose = best_in_ball(X, np.eye(3)[y], B)
    warm = best_in_ball(U, C, B, start=rng.normal(size=(3, 3)) * B)
    for other in (loose, warm):
        assert abs(other.loss - cold.loss) <= max(other.gap, cold.gap) + 1e-10
        assert other.rounds == cold.rounds == 40
    assert cold.mistakes == int((np.argmax(X @ cold.weights.T, axis=1) != y).sum())


def test_starting_at_the_answer_takes_no_iteration_and_the_start_is_not_changed():
    U, C = sample(21, m=30)
    found = best_in_ball(U, C, 3.0)
    again = best_in_ball(U, C, 3.0, start=found.weights, tolerance=1.2e-6)
    assert again.iterations == 0
    assert again.loss == pytest.approx(found.loss, rel=1e-14)
    start = np.full((3, 3), 100.0)  # outside of the ball
    best_in_ball(U, C, 3.0, start=start)
    assert (start == 100.0).all()


def test_permuting_classes_permutes_rows_and_a_rotation_changes_nothing():
    U, C = sample(22, m=25, d=4, K=4)
    base = best_in_ball(U, C, 2.0, tolerance=1e-10)
    order = np.array([2, 0, 3, 1])
    permuted = best_in_ball(U, C[:, order], 2.0, tolerance=1e-10)
    np.testing.assert_allclose(permuted.weights, base.weights[order], atol=1e-3)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    assert best_in_ball(U @ Q, C, 2.0, tolerance=1e-10).loss == pytest.approx(base.loss, rel=1e-9)


def test_bits_and_frozen_results():
    U, C = sample(1)
    found = best_in_ball(U, C, 1.0)
    assert found.loss_bits == pytest.approx(found.loss / math.log(2), rel=1e-15)
    assert found.gap_bits == pytest.approx(found.gap / math.log(2), rel=1e-15)
    with pytest.raises(ValueError, match="read-only"):
        found.weights[0, 0] = 1.0


def test_giving_up_says_what_was_reached_and_what_was_asked():
    X, y = planted(1, 1500, 10, 5, 60.0)
    U, C = collapse(X, y, 5)
    with pytest.raises(
        ComparatorError, match=r"norm_bound = 30 reached a gap of .* nats .* after 1 iterations; the tolerance"
    ):
        best_in_ball(U, C, 30.0, max_iterations=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm_bound": 0.0}, "norm_bound must be a number above 0"),
        ({"norm_bound": math.inf}, "norm_bound must be a number above 0"),
        ({"tolerance": 0.0}, "tolerance must be a number above 0"),
        ({"max_iterations": 0}, "max_iterations must be at least 1"),
        ({"counts": np.ones((3, 3))}, r"U must be \(m, d\) and counts \(m, K\)"),
        ({"counts": -np.ones((12, 3))}, "counts must be finite and 0 or above"),
        ({"U": np.full((12, 3), np.nan)}, "U must be finite"),
        ({"start": np.ones((2, 3))}, r"start must have shape \(3, 3\), got \(2, 3\)"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    U, C = sample(0)
    with pytest.raises(UsageError, match=message):
        best_in_ball(**({"U": U, "counts": C, "norm_bound": 1.0} | change))


def badly_scaled(draws: int):
    """Yield tiny problems, columns scaled by 10^(-1.5 j), every context with a label of its own."""
    rng = np.random.default_rng(6)
    for _ in range(draws):
        yield collapse(rng.standard_normal((5, 5)) * 10.0 ** (-1.5 * np.arange(5)), rng.integers(0, 10, 5), 10)


@pytest.mark.slow
def test_badly_scaled_features_converge():
    """The first of them and the tenth stood still at gaps of 2e-4 and 4e-4 after 500 rounds; interior steps come after 100."""
    hard = [problem for i, problem in enumerate(badly_scaled(10)) if i in (0, 9)]
    for U, C in hard:
        found = best_in_ball(U, C, 1e3, max_iterations=100)
        assert found.gap <= 1e-6 * max(1.0, found.loss)
        assert (row_norms(found.weights) <= 1e3).all()
        Z = U @ found.weights.T
        loss = sum(c[k] * (np.logaddexp.reduce(z) - z[k]) for z, c in zip(Z, C, strict=True) for k in range(10))
        assert found.loss == pytest.approx(loss, abs=1e-9)


@pytest.mark.parametrize("B", [1e-3, 1.0, 1e3])
def test_the_interior_points_end_where_projected_newton_does(B):
    for seed in range(3):
        U, C = sample(seed, m=10, d=3, K=4)
        objective = Objective(U, C)
        goal = 1e-7 * max(1.0, B)
        found, steps = interior(objective, np.zeros((4, 3)), B, goal, 200)
        best = best_in_ball(U, C, B, tolerance=1e-9)
        assert found.gap <= goal
        assert steps < 60
        assert found.loss - found.gap <= best.loss <= found.loss + best.gap + 1e-12
        assert (row_norms(found.W) < B).all()


def test_badly_scaled_features_from_inside():
    for U, C in badly_scaled(12):
        found, steps = interior(Objective(U, C), np.zeros((10, 5)), 1e3, 1e-6, 200)
        assert found.gap <= 1e-6
        assert steps < 100


@pytest.mark.parametrize(("loss", "allowed"), [(0.0, 1e-3), (0.5, 1e-3), (1.0, 1e-3), (4.0, 4e-3)])
def test_the_gap_is_held_against_the_loss_and_below_one_nat_against_one(loss, allowed, monkeypatch):
    """tolerance * max(1, loss), whatever the solver says."""
    U, C = sample(0)
    for share in (0.999, 1.0, 1.001):
        answer = (np.zeros((3, 3)), loss, share * allowed, 1)
        monkeypatch.setattr("banditlab.comparators.ball.minimise_in_parts", lambda *_, answer=answer: answer)
        if share <= 1.0:
            assert best_in_ball(U, C, 1.0, tolerance=1e-3).gap == share * allowed
        else:
            with pytest.raises(ComparatorError, match=f"the tolerance is {allowed:.3g}"):
                best_in_ball(U, C, 1.0, tolerance=1e-3)
