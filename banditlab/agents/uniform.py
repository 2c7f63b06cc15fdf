"""Uniform choice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.draws import draw_uniform
from banditlab.numerics.jit import njit
from banditlab.numerics.limits import Limits, constant
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem


class State(NamedTuple):
    """The number of actions K as an array, because kernels take named tuples of arrays."""

    K: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        return {"K": constant(self.K)}


@njit
def act_kernel(state, x, u, p, payload):
    K = state.K[0]
    p[:] = 1.0 / K
    return draw_uniform(K, u[1]), True


@njit
def learn_kernel(state, x, action, p, payload, correct):
    pass


class Uniform(KernelAgent):
    r"""Choose an action uniformly at random; a baseline for other agents.

    Update rule: none. The expected number of mistakes is :math:`(1 - 1/K) T` on any stream. Cost: :math:`O(K)` per
    round; no memory.
    """

    id = "uniform"
    group = "baseline"
    summary = "chooses uniformly at random"
    reference = "-"
    state_order = (0, 0)
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    sparse = True

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        super().__init__(problem, rng)
        self.state = State(np.array([problem.n_classes]))
