"""Many contexts: what the parts say makes it fast and changes nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.comparators import _parts, best_in_ball
from banditlab.comparators._ball_geometry import frank_wolfe_gap, point
from banditlab.comparators._newton import minimise
from banditlab.comparators._objective import Objective
from banditlab.comparators._parts import minimise_in_parts

K, D, M = 3, 4, 20_000  # parts of 2,500 and 313 contexts; 192 are enough


def planted(seed=0, m=M, norm=5.0):
    rng = np.random.default_rng(seed)
    U, W = rng.normal(size=(m, D)), rng.normal(size=(K, D))
    U /= np.linalg.norm(U, axis=1)[:, None]
    W *= norm / np.linalg.norm(W, axis=1)[:, None]
    return U, np.eye(K)[np.argmax(U @ W.T + rng.gumbel(size=(m, K)), axis=1)]


@pytest.fixture
def passes(monkeypatch):
    """A list of how many contexts each pass went over."""
    seen = []

    def counted(self, W, evaluate=Objective.evaluate):
        seen.append(len(self.contexts))
        return evaluate(self, W)

    def counted_logits(self, W, logits=Objective.logits):
        seen.append(len(self.contexts))
        return logits(self, W)

    monkeypatch.setattr(Objective, "evaluate", counted)
    monkeypatch.setattr(Objective, "logits", counted_logits)
    return seen


@pytest.mark.parametrize("B", [0.5, 3.0, 5.0, 100.0])
def test_few_passes_over_all_contexts_and_the_same_optimum(B, passes):
    U, C = planted()
    best, _ = minimise(Objective(U, C), np.zeros((K, D)), B, 1e-9, 300)
    passes.clear()
    found = best_in_ball(U, C, B)
    assert 2 <= sum(m == M for m in passes) <= 12
    assert {len(U[::8]), len(U[::64])} < set(passes)
    assert found.loss - found.gap - 1e-6 <= best.loss <= found.loss + 1e-9 * found.loss
    assert found.gap <= 1e-6 * found.loss
    loss, G = Objective(U, C).evaluate(found.weights)
    assert found.gap == pytest.approx(frank_wolfe_gap(found.weights, G, B), rel=1e-9)
    assert found.loss == pytest.approx(loss, rel=1e-14)
    assert found.mistakes == (np.argmax(U @ found.weights.T, axis=1) != np.argmax(C, axis=1)).sum()


def test_a_start_near_the_optimum_is_not_given_up_for_a_part_s(passes):
    U, C = planted()
    near = best_in_ball(U[: M // 2], C[: M // 2], 3.0).weights
    passes.clear()
    found = best_in_ball(U, C, 3.0, start=near)
    assert found.gap <= 1e-6 * found.loss
    assert len(U[::8]) not in passes  # only the smallest part's Hessian
    assert sum(m == M for m in passes) <= 8


@pytest.mark.parametrize("B", [1.0, 10.0])
def test_parts_that_mislead_cost_time_only(B):
    U, C = planted()
    other, labels = planted(seed=9)
    U[::8], C[::8] = 0.01 * other[::8], labels[::8][:, ::-1]
    found = best_in_ball(U, C, B)
    best, _ = minimise(Objective(U, C), np.zeros((K, D)), B, 1e-9, 300)
    assert found.gap <= 1e-6 * found.loss
    assert found.loss == pytest.approx(best.loss, rel=1e-6)


def test_contexts_without_counts_make_no_part():
    U, C = planted()
    C[::8] = 0.0
    found = best_in_ball(U, C, 3.0)
    best, _ = minimise(Objective(U, C), np.zeros((K, D)), 3.0, 1e-9, 300)
    assert found.loss == pytest.approx(best.loss, rel=1e-6)


def test_the_last_step_s_change_of_the_gradient_is_taken_over():
    """The secant equation: towards the gradient y the direction is the step s that was seen to change it by y."""
    U, C = planted()
    objective = Objective(U, C)
    W, s = np.random.default_rng(1).normal(size=(2, K, D))
    p = point(objective, W, objective.logits(W), 100.0)
    q = point(objective, W + 0.1 * s, objective.logits(W + 0.1 * s), 100.0)
    y = q.G - p.G
    pair = (0.1 * s, y)
    part = objective.part(8)
    here = p._replace(Z=part.logits(W), S=part.forecast(part.logits(W))[1], G=y)
    np.testing.assert_allclose(_parts._direction(part, here, 100.0, 1e-6, [pair]), -0.1 * s, rtol=1e-10)
    plain = _parts._direction(part, here, 100.0, 1e-6, [])
    assert np.abs(plain + 0.1 * s).max() > 1e-3 * np.abs(s).max()


@pytest.mark.parametrize("B", [30.0, 1e4])
def test_a_part_unlike_the_others_does_not_lead_astray(B):
    """Every 8th context is tiny, so the weights that are best for those are enormous for all."""
    U, C = planted(m=8 * 16 * K * D + 6)
    U[::8] *= 1e-8
    best, rounds = minimise(Objective(U, C), np.zeros((K, D)), B, 1e-6, 100)
    found = best_in_ball(U, C, B, max_iterations=rounds + 10)
    assert found.loss - found.gap <= best.loss
    assert best.loss - best.gap <= found.loss


def test_steps_end_where_they_are_slow(monkeypatch):
    monkeypatch.setattr(_parts, "FAST", 0.0)
    U, C = planted()
    objective = Objective(U, C)
    W = np.zeros((K, D))
    p, steps = _parts.newton_by_part(objective, objective.part(8), W, 3.0, 1e-9)
    assert steps == 1
    assert p.gap < point(objective, W, objective.logits(W), 3.0).gap
    found = minimise_in_parts(objective, W, 3.0, 1e-9, 300)  # the whole Hessian does the rest
    assert found.gap <= 1e-9 * found.loss
    assert found.rounds > 1
