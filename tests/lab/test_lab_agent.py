"""The lab's own agent (disjoint LinUCB): its checks, and its numbers against ridge regressions solved directly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditlab.checks import run_checks
from banditlab.envs import Digits
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem
from banditlab.registry import Registry

LAB = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def linucb() -> Any:
    known = Registry()
    known.open_lab(LAB)
    return known.load("agents", "lab-linucb")


@pytest.fixture
def stream() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.argmax(X @ rng.standard_normal((4, 3)), axis=1)


def test_every_check_passes(linucb: Any) -> None:
    results = run_checks(linucb)
    assert {r.name: (r.status, r.reason) for r in results if r.status != "passed"} == {
        "bad_settings": ("excluded", "has neither a gamma nor a norm_bound")
    }


@pytest.mark.parametrize(("confidence", "regularization"), [(0.3, 0.1), (1.0, 2.0), (0.0, 1.0)])
def test_it_equals_ridge_regressions_solved_directly(
    linucb: Any, stream: Any, confidence: float, regularization: float
) -> None:
    """Algorithm 1 written with np.linalg.solve: the same actions, the same theta to 1e-10."""
    X, y = stream
    agent = linucb(Problem(4, 3, 1.0), np.random.default_rng(5), confidence=confidence, regularization=regularization)
    A = np.stack([regularization * np.eye(4)] * 3)
    b = np.zeros((3, 4))
    for x, label in zip(X, y, strict=True):
        theta = np.linalg.solve(A, b[:, :, None])[:, :, 0]
        width = np.sqrt(np.einsum("i,kij,j->k", x, np.linalg.inv(A), x))
        scores = theta @ x + confidence * width
        decision = agent.act(x)
        assert scores[decision.action] >= scores.max() - 1e-10
        assert decision.probabilities[decision.action] == pytest.approx(1.0 / (scores > scores.max() - 1e-12).sum())
        agent.learn(x, decision, bool(decision.action == label))
        A[decision.action] += np.outer(x, x)
        b[decision.action] += float(decision.action == label) * x
        np.testing.assert_allclose(agent.state.theta, np.linalg.solve(A, b[:, :, None])[:, :, 0], atol=1e-10)


def test_ties_are_broken_uniformly(linucb: Any) -> None:
    decisions = [linucb(Problem(4, 3, 1.0), np.random.default_rng(s)).act(np.ones(4) / 2) for s in range(60)]
    assert all(np.allclose(decision.probabilities, 1 / 3) for decision in decisions)
    assert {decision.action for decision in decisions} == {0, 1, 2}


def test_it_learns_the_digits(linucb: Any) -> None:
    """Uniform guessing makes 90 % mistakes; the last thousand of 4,000 rounds are to be below 5 %."""
    env = Digits(horizon=4_000)
    env.reset(seed=1)
    [(X, y)] = env.blocks(4_000, 4_000)
    trace = Trace.empty(4_000)
    linucb(env.problem, np.random.default_rng(0)).play_block(as_contexts(X), y, trace)
    assert 1.0 - trace.correct[-1_000:].mean() < 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"confidence": -0.1}, "confidence must be a number that is 0 or above, got -0.1"),
        ({"regularization": 0.0}, "regularization must be a number above 0, got 0"),
    ],
)
def test_bad_settings_are_refused(linucb: Any, settings: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        linucb(Problem(4, 3, 1.0), np.random.default_rng(0), **settings)
    assert str(caught.value) == message


def test_it_has_no_proved_bound(linucb: Any) -> None:
    assert linucb(Problem(4, 3, 1.0), np.random.default_rng(0)).bound(1_000) is None
