"""Uniform guessing: its law, and the contract of every agent."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.uniform import Uniform
from banditlab.errors import UsageError
from banditlab.players.agent import Trace
from banditlab.problem import Problem


def test_contract(one_bit_contract, stream):
    X, y = stream(4, 3, 200)
    one_bit_contract(lambda: Uniform(Problem(3, 4, 1.0), np.random.default_rng(7)), X, y)


@pytest.mark.parametrize("K", [2, 7])
def test_the_action_is_the_second_uniform_times_k(K, stream):
    X, y = stream(K, 3, 5000)
    agent = Uniform(Problem(3, K, 1.0), np.random.default_rng(7))
    trace = Trace.empty(len(y))
    agent.play_block(X, y, trace)
    U = np.random.default_rng(7).random((len(y), 2))
    assert np.array_equal(trace.action, (U[:, 1] * K).astype(int))
    assert np.all(trace.p_true == 1.0 / K)
    assert np.all(trace.explored)
    spread = 5.0 * np.sqrt((1 - 1 / K) / K / len(y))
    assert abs(trace.correct.mean() - 1.0 / K) < spread


def test_needs_a_generator():
    with pytest.raises(UsageError, match="rng must be a numpy Generator"):
        Uniform(Problem(3, 4, 1.0), None)
