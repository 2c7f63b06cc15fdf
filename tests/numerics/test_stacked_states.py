"""Equal states stacked: views of members outside kernels and inside."""

from __future__ import annotations

from banditlab.forecasters.aioli import AIOLI
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


def test_numbers_of_a_stack_are_copies_of_its_vectors() -> None:
    states = [AIOLI(Problem(2, 2, 1.0), None, norm_bound=B).state for B in (1.0, 2.0)]
    stacked = stack(states)
    assert stacked.curvature.tolist() == [state.curvature for state in states]
    found = view(stacked, 1).curvature
    assert type(found) is float
    assert found == states[1].curvature


@njit(cache=False)
def curvature_of(stacked, i):  # type: ignore[no-untyped-def]
    return member(stacked, i).curvature


def test_a_kernel_sees_a_members_numbers() -> None:
    states = [AIOLI(Problem(2, 2, 1.0), None, norm_bound=B).state for B in (1.0, 2.0, 4.0)]
    assert [curvature_of(stack(states), i) for i in range(3)] == [state.curvature for state in states]
