"""Compiled rounds allocate nothing: numba's allocator is asked how often it was called, over blocks of two lengths."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem
from banditlab.registry import registry

SHORT, LONG = 50, 400
PROBLEM = Problem(5, 3, 4.0, 2_000)
IDS = sorted(entry.id for entry in registry().entries("agents"))


@pytest.fixture
def counted():
    """numba's counters, switched on."""
    before = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield lambda: rtsys.get_allocation_stats().alloc
    if not before:
        _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("id_", IDS)
def test_rounds_allocate_nothing(id_, counted):
    cls = registry().load("agents", id_)
    if cls.group == "adapter" or id_ == "boosted-exploration":
        pytest.skip("learns in Python")
    agent = cls(PROBLEM, np.random.default_rng(0))
    assert agent.plays_blocks
    rng = np.random.default_rng(1)
    X = as_contexts(rng.standard_normal((SHORT + LONG, 5)) / 5)
    y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0.1)
    agent.play_block(X[:SHORT], y[:SHORT], Trace.empty(SHORT))  # compiled, and grown to size
    start = counted()
    agent.play_block(X[:SHORT], y[:SHORT], Trace.empty(SHORT))
    middle = counted()
    agent.play_block(X[SHORT:], y[SHORT:], Trace.empty(LONG))
    assert counted() - middle == middle - start, f"{(counted() - middle) / LONG} a round"


def test_an_allocation_would_be_counted(counted):
    from banditlab.numerics.jit import njit

    @njit(cache=False)
    def wasteful(n):
        total = 0.0
        for _ in range(n):
            total += np.zeros(n)[0]
        return total

    wasteful(3)
    start = counted()
    wasteful(7)
    assert counted() - start == 7
