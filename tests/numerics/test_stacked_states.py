"""Equal states stacked: views of members outside kernels and inside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from banditlab.forecasters.folklore import FOLKLORE
from banditlab.numerics.jit import njit
from banditlab.numerics.stacked_states import member, stack, view
from banditlab.problem import Problem


def test_views_of_a_stack_share_its_memory() -> None:
    states = [FOLKLORE(Problem(2, 3, 1.0), None, norm_bound=B).state for B in (1.0, 2.0)]
    stacked = stack(states)
    view(stacked, 1).blocks.M[0, 0, 0] = 7.0
    assert stacked.blocks.M[1, 0, 0, 0] == 7.0
    assert type(stacked) is type(states[0])


class Pair(NamedTuple):
    one: np.ndarray
    other: np.ndarray


class Single(NamedTuple):
    one: np.ndarray


class Two(NamedTuple):
    vector: np.ndarray
    matrix: np.ndarray


class Mixed(NamedTuple):
    number: float
    count: int
    vector: np.ndarray
    matrix: np.ndarray
    pair: Pair
    single: Single
    two: Two


@njit(cache=False)
def moved(stacked, i):  # type: ignore[no-untyped-def]
    """Write into the arrays of member i; return its numbers and the shapes of its arrays."""
    state = member(stacked, i)
    state.vector[1] = 10.0 + i
    state.matrix[1, 2] = 20.0 + i
    state.pair.one[0] = 30.0 + i
    state.pair.other[1] = 40.0 + i
    state.single.one[1] = 50.0 + i
    state.two.vector[0] = 60.0 + i
    state.two.matrix[1, 0] = 70.0 + i
    return state.number, state.count, state.vector.shape[0], state.matrix.shape[0], state.matrix.shape[1]


def test_a_kernel_writes_into_a_members_arrays_and_no_others() -> None:
    states = [
        Mixed(
            *(0.5 + i, 7 + i, np.zeros(2), np.zeros((2, 3)), Pair(np.zeros(2), np.zeros(2))),
            *(Single(np.zeros(2)), Two(np.zeros(1), np.zeros((2, 1)))),
        )
        for i in range(3)
    ]
    stacked = stack(states)
    for i in range(3):
        assert moved(stacked, i) == (0.5 + i, 7 + i, 2, 2, 3)
        state = view(stacked, i)
        assert (state.number, state.count) == (0.5 + i, 7 + i)
        assert type(state.count) is int
        assert state.vector.tolist() == [0.0, 10.0 + i]
        assert state.matrix.tolist() == [[0.0] * 3, [0.0, 0.0, 20.0 + i]]
        assert [array.tolist() for array in state.pair] == [[30.0 + i, 0.0], [0.0, 40.0 + i]]
        assert state.single.one.tolist() == [0.0, 50.0 + i]
        assert [array.tolist() for array in state.two] == [[60.0 + i], [[0.0], [70.0 + i]]]
    assert stacked.vector.sum() == 33.0
    assert stacked.matrix.sum() == 63.0
    assert not states[0].vector.any()  # a stack is a copy
    assert stack(states[:1]).vector.shape == (1, 2)
