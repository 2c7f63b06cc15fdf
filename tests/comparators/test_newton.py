"""The parts of the solver that make it fast: what they promise is checked, not only that the end is right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from banditlab.comparators._ball_geometry import Face, face_at, feasible, point, row_dots, row_norms, shrinkage
from banditlab.comparators._newton import minimise, newton_direction, newton_step, spectral_step
from banditlab.comparators._objective import Objective


def objective_and_optimum(B):
    rng = np.random.default_rng(0)
    U, W = rng.normal(size=(400, 6)), 5.0 * rng.normal(size=(4, 6))
    U /= np.linalg.norm(U, axis=1)[:, None]
    C = np.eye(4)[np.argmax(U @ W.T + rng.gumbel(size=(400, 4)), axis=1)]
    objective = Objective(U, C)
    best, _ = minimise(objective, np.zeros((4, 6)), B, 1e-12, 300)
    return objective, best


@pytest.mark.parametrize(("B", "held"), [(2.0, 4), (1000.0, 0)])
def test_newton_steps_near_the_optimum_converge_quadratically_on_the_spheres_and_inside(B, held):
    objective, best = objective_and_optimum(B)
    assert face_at(best, B).held.sum() == held
    near = best.W * (1.0 + 1e-2 * np.random.default_rng(1).normal(size=best.W.shape))
    if held:  # back onto the spheres
        near *= (B / row_norms(near))[:, None]
    p = point(objective, near, objective.logits(near), B)
    gaps = [p.gap]
    for _ in range(2):
        D = newton_direction(objective, p._replace(gap=1e-20), B, 1e-10, 400)  # solved: the model's error is left
        p, full = newton_step(objective, p, D, B)
        gaps.append(p.gap)
        assert full
    assert gaps[2] < 1e-3 * gaps[0]


def test_a_held_row_turns_on_its_sphere_and_the_newton_model_has_its_curvature():
    """(H + mu) D = -G on the tangent space, solved here with the full matrix."""
    B = 2.0
    objective, best = objective_and_optimum(B)
    near = best.W + 0.02 * np.random.default_rng(2).normal(size=best.W.shape)
    near *= (B / row_norms(near))[:, None]
    p = point(objective, near, objective.logits(near), B)
    face = face_at(p, B)
    H = np.array([objective.hessian_action(p.S, e.reshape(near.shape)).ravel() for e in np.eye(near.size)])
    mu = np.repeat(-row_dots(p.G, p.W) / B**2, near.shape[1])
    tangent = np.array([face.tangent(e.reshape(near.shape)).ravel() for e in np.eye(near.size)])
    full = tangent @ (H + np.diag(mu)) @ tangent
    slow = np.linalg.lstsq(full, -tangent @ p.G.ravel(), rcond=1e-10)[0].reshape(near.shape)
    fast = newton_direction(objective, p._replace(gap=1e-20), B, 1e-12, 1000)  # asks for a residual of 1e-12
    np.testing.assert_allclose(fast, slow, atol=1e-8 * np.abs(slow).max())
    np.testing.assert_allclose(row_dots(fast, p.W), 0.0, atol=1e-12)


def test_a_free_row_that_would_leave_the_ball_joins_the_face_where_it_leaves():
    W, D = np.array([[0.5, 0.0], [0.9, 0.0], [0.0, 1.0]]), np.array([[0.1, 0.2], [0.9, 2.4], [0.3, 0.0]])
    normals = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    p = point(Objective(np.eye(2), np.ones((2, 3))), W, W @ np.eye(2), 1.0)
    face = Face(np.array([False, False, True]), np.array([0.0, 0.0, 0.7]), normals)
    larger, moved = face.joined(p, D, 1.0)
    np.testing.assert_array_equal(larger.held, [False, True, True])
    np.testing.assert_allclose(larger.normals[1], [0.6, 0.8])  # (1.8, 2.4) on the unit sphere
    np.testing.assert_allclose(larger.normals[1] @ (W[1] + moved[1]), 1.0)  # on the tangent plane
    np.testing.assert_array_equal(moved[[0, 2]], D[[0, 2]])
    np.testing.assert_array_equal(larger.mu, face.mu)
    assert larger.joined(p, np.zeros_like(D), 1.0) is None


def test_newton_directions_from_inside_keep_close_to_the_ball():
    B = 2.0
    objective, best = objective_and_optimum(B)
    inside = 0.98 * best.W
    p = point(objective, inside, objective.logits(inside), B)
    assert not face_at(p, B).held.any()
    D = newton_direction(objective, p, B, 1e-8, 400)
    assert row_norms(inside + D).max() < 1.05 * B  # the unconstrained step goes to norms of 4 and more
    q, full = newton_step(objective, p, D, B)
    assert full
    assert q.loss - best.loss < 0.2 * (p.loss - best.loss)


def test_a_step_beyond_which_the_loss_has_hardly_risen_is_shortened():
    objective, best = objective_and_optimum(1000.0)
    p = point(objective, 0.5 * best.W, objective.logits(0.5 * best.W), 1000.0)
    slope = float(np.vdot(p.G, p.G))
    # The length at which the loss along -G is above that at W by half of what Armijo's rule asks it to be below.
    length = brentq(lambda t: objective.loss(p.Z - t * objective.logits(p.G)) - p.loss - 5e-5 * t * slope, 1e-3, 1e3)
    q, full = newton_step(objective, p, -length * p.G, 1000.0)
    assert not full
    assert q.loss < p.loss


@pytest.mark.parametrize("step", [1e-6, 1.0, 1e6])
def test_spectral_steps_stay_feasible_and_do_not_climb_above_the_ceiling(step):
    objective, best = objective_and_optimum(3.0)
    W = np.zeros_like(best.W)
    p = point(objective, W, objective.logits(W), 3.0)
    for _ in range(20):
        q, step = spectral_step(objective, p, 3.0, step, p.loss)
        assert q.loss <= p.loss * (1 + 1e-12)
        assert row_norms(q.W).max() <= 3.0 * (1 + 1e-12)
        np.testing.assert_allclose(q.Z, objective.logits(q.W), atol=1e-10)
        assert step > 0
        p = q
    assert p.loss - best.loss < 1e-2 * (objective.totals.sum() * np.log(4) - best.loss)


def test_rows_are_feasible_as_computed():
    rng = np.random.default_rng(3)
    for B in 10.0 ** rng.uniform(-3, 3, size=200):
        W = feasible(rng.normal(size=(5, 7)) * B, B)
        assert (row_norms(W) <= B).all()
        assert (shrinkage(W, B) == 1.0).all()
