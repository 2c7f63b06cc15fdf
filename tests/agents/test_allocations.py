"""Compiled rounds allocate nothing: numba's allocator is asked how often it was called, over blocks of two lengths."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem
from banditlab.registry import registry

SHORT, LONG = 50, 400
PROBLEM = Problem(5, 3, 4.0, 2_000)
IDS = sorted(entry.id for entry in registry().entries("agents"))


@pytest.mark.parametrize("id_", IDS)
@pytest.mark.few(17)
def test_rounds_allocate_nothing(id_, allocations):
    cls = registry().load("agents", id_)
    if cls.group == "adapter" or id_ in ("apple-tasting", "boosted-exploration"):
        pytest.skip("learns in Python")
    agent = cls(PROBLEM, np.random.default_rng(0))
    assert agent.plays_blocks
    rng = np.random.default_rng(1)
    X = as_contexts(rng.standard_normal((SHORT + LONG, 5)) / 5)
    y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0.1)
    agent.play_block(X[:SHORT], y[:SHORT], Trace.empty(SHORT))  # compiled, and grown to size
    start = allocations().alloc
    agent.play_block(X[:SHORT], y[:SHORT], Trace.empty(SHORT))
    middle = allocations().alloc
    agent.play_block(X[SHORT:], y[SHORT:], Trace.empty(LONG))
    assert allocations().alloc - middle == middle - start, f"{(allocations().alloc - middle) / LONG} a round"


def test_an_allocation_would_be_counted(allocations):
    from banditlab.numerics.jit import njit

    @njit(cache=False)
    def wasteful(n):
        total = 0.0
        for _ in range(n):
            total += np.zeros(n)[0]
        return total

    wasteful(3)
    start = allocations().alloc
    wasteful(7)
    assert allocations().alloc - start == 7
