"""StackCB's linear experts over diagonals: what is forgotten, units, odd contexts, and memory.

The slow form is among those of test_stackcb; the diagonals have tests of their own, test_model_forms.
"""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.stacked.stackcb import StackCB, forget
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.policy.growing import grown
from banditlab.problem import Problem

pytestmark = pytest.mark.slow
"""Kernels over diagonals are compiled by the slow tests."""


def make(K, d, radius=10.0, seed=7, **settings):
    settings = {"blocks": 2, "features": 32, "second_order": "diagonal", **settings}
    return StackCB(Problem(d, K, radius), np.random.default_rng(seed), **settings)


def play(agent, X, y):
    trace = Trace.empty(len(y))
    agent.play_block(X, y, trace)
    return trace


def plane(K, d, T, seed=0):
    """Contexts (T, d) in a plane, evenly over a square of it, so that no column is three deviations away; labels by parts."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1.0, 1.0, (T, 2))
    y = np.argmax(Z @ rng.standard_normal((2, K)) + 0.3 * rng.standard_normal(K), axis=1)
    return as_contexts(Z @ rng.standard_normal((2, d)) / np.sqrt(d)), y.astype(np.int64)


def numbers(state):
    """Every array of a state, nested ones too, in their order."""
    if isinstance(state, np.ndarray):
        return [state]
    return [array for part in state if isinstance(part, tuple | np.ndarray) for array in numbers(part)]


@pytest.mark.parametrize("K", [2, 3])
def test_contract(one_bit_contract, stream, K):
    X, y = stream(K, 9, 90, noise=0.3)
    one_bit_contract(lambda: make(K, 9, sharpness=2.0), X, y)


def test_what_is_forgotten_is_as_it_was_before_anything_was_learnt(stream):
    X, y = stream(3, 9, 40)
    agent, fresh = make(3, 9), make(3, 9)
    play(agent, X, y)
    parts = [(a.state.linear, a.state.fourier.P, a.state.fourier.H, a.state.stack.S) for a in (agent, fresh)]
    forget(agent.state, True)
    for after, before in zip(*(numbers(part) for part in parts), strict=True):
        if after.ndim > 1:  # no work array
            np.testing.assert_array_equal(after, before)


def test_units_do_not_matter():
    X, y = plane(3, 20, 300)
    scales = 2.0 ** np.random.default_rng(0).integers(-30, 30, 20)
    one, other = make(3, 20), make(3, 20, 1e12)
    np.testing.assert_array_equal(play(one, X, y).action, play(other, as_contexts(X * scales), y).action)


def test_memory_is_what_it_says_and_little():
    problem = Problem(1000, 10, 1.0)
    least = {form: StackCB.least_bytes(problem, {"second_order": form}) for form in ("full", "diagonal")}
    assert least["full"] > 5 * least["diagonal"] > 5 * 8.0 * 2048 * 1000
    assert StackCB.least_bytes(problem, {}) == least["diagonal"]
    few = [StackCB.least_bytes(Problem(3, 2, 1.0), {"blocks": blocks, "features": 64}) for blocks in (0, 1, 2)]
    assert few[2] - few[1] == few[1] - few[0] > 0.0
    agent = StackCB(problem, np.random.default_rng(0))
    taken = sum(array.nbytes for array in numbers(agent.state))
    assert least["diagonal"] < taken < 2 * least["diagonal"]


@pytest.mark.parametrize(("n_features", "form"), [(1448, "full"), (1449, "diagonal")])
def test_auto_is_whole_matrices_up_to_a_size(n_features, form):
    """2 x 1448^2 = 4,193,408 and 2 x 1449^2 = 4,199,202 lie about 2^22."""
    assert StackCB(Problem(n_features, 2, 1.0), np.random.default_rng(0), blocks=0).second_order == form


def test_settings():
    assert make(3, 4, second_order="auto").params()["second_order"] == "full"
    with pytest.raises(UsageError, match="second_order must be"):
        make(3, 4, second_order="sketch")
    assert grown(make(3, 4)).problem.n_classes == 4


def test_odd_contexts():
    """One context for ever, zeros, columns that never vary, entries of 1e-200 and 1e99."""
    rng = np.random.default_rng(0)
    for X in (
        np.ones((80, 5)),
        np.zeros((80, 5)),
        rng.integers(0, 2, (80, 5)) * 1e-200,
        rng.standard_normal((80, 5)) * 1e98,
    ):
        agent = make(3, 5, 1e100)
        trace = play(agent, as_contexts(X), rng.integers(0, 3, 80))
        assert np.isfinite(trace.p_true).all()
        assert (trace.p_true > 0).all()
