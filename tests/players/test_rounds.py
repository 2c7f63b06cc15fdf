"""Loops over rounds: where they stop, and when they learn."""

from __future__ import annotations

import numpy as np

from banditlab.agents.banditron import Banditron
from banditlab.engine import play
from banditlab.envs import Logistic
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import bind, njit
from banditlab.players.rounds import play_rounds


@njit
def answers_from_the_stream(state, x, u, p, payload):  # type: ignore[no-untyped-def]
    p[0], p[1] = x[0], 1.0 - x[0]
    return int(x[1]), False


@njit
def counts(state, x, action, p, payload, correct):  # type: ignore[no-untyped-def]
    state[0] += 1


def test_the_loop_stops_before_it_learns_from_a_bad_answer() -> None:
    loop = bind(play_rounds, "test", act_kernel=answers_from_the_stream, learn_kernel=counts)
    for column, bad in ((0, 1.5), (0, float("nan")), (1, 2.0), (1, -1.0)):
        X = np.tile([0.5, 1.0], (9, 1))
        for at in (9, 8, 4, 0):
            X[at:, column] = bad
            learnt, p = np.zeros(1, np.int64), np.empty(2)
            trace = np.empty(9, np.int64), np.empty(9, np.bool_), np.empty(9), np.empty(9, np.bool_)
            stopped = loop(learnt, as_contexts(X), np.zeros(9, np.int64), np.zeros((9, 2)), p, np.empty(0), *trace)
            assert (stopped, learnt[0]) == (at, at)


def test_late_bits_are_learnt_when_they_arrive_in_blocks_as_in_single_rounds() -> None:
    env, drawn = Logistic(n_features=3, n_classes=3, horizon=300), {"delay": {"geometric": 9.0}}
    lost = {"timeout": 12, "answered": 0.7, "flip": 0.2}
    for feedback in ({"delay": 3}, {"delay": 300}, drawn | {"batch": 4}, drawn | lost):
        seen = []
        for path in ("blocks", "steps"):  # checkpoints cut the blocks
            agent, cuts = Banditron(env.problem, np.random.default_rng(1), gamma=0.3), [100, 101, 190]
            seen.append(play(env, agent, seed=2, checkpoints=cuts, path=path, keep_trace=True, feedback=feedback).trace)
        for block, single in zip(*seen, strict=True):
            np.testing.assert_array_equal(block, single)
