"""Playing: both paths, checkpoints, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.agents import Agent
from banditlab.agents.banditron import Banditron
from banditlab.agents.uniform import Uniform
from banditlab.engine import play
from banditlab.envs import Digits, Logistic
from banditlab.errors import PlayerError, UsageError
from banditlab.problem import Decision


def banditron(env, seed=1):
    return Banditron(env.unwrapped.problem, np.random.default_rng(seed), gamma=0.1)


@pytest.mark.parametrize("make", [lambda: Digits(horizon=1500), lambda: Logistic(horizon=1500)])
def test_both_paths_give_the_same_run(make):
    env = make()
    fast = play(env, banditron(env), seed=3, checkpoints=[1, 7, 100, 1024, 1025], path="blocks", keep_trace=True)
    slow = play(env, banditron(env), seed=3, checkpoints=[1, 7, 100, 1024, 1025], path="steps", keep_trace=True)
    for a, b in zip(fast.trace, slow.trace, strict=True):
        np.testing.assert_array_equal(a, b)
    assert fast.rounds == slow.rounds == [1, 7, 100, 1024, 1025, 1500]
    assert fast.mistakes == slow.mistakes
    np.testing.assert_allclose(fast.expected_mistakes, slow.expected_mistakes, rtol=1e-12)


def test_rows_are_the_traces_sums():
    env = Logistic(horizon=800)
    played = play(env, banditron(env), seed=5, checkpoints=[10, 200], keep_trace=True)
    for i, r in enumerate(played.rounds):
        part = played.trace.part(slice(0, r))
        assert played.mistakes[i] == np.count_nonzero(~part.correct)
        assert played.expected_mistakes[i] == pytest.approx(np.sum(1 - part.p_true))
        assert played.log_loss[i] == pytest.approx(-np.sum(np.log(part.p_true)))
        assert played.explored[i] == np.count_nonzero(part.explored)
    assert math.isnan(played.bound[-1])


def test_uniform_expects_one_minus_one_over_k():
    env = Digits(horizon=500)
    played = play(env, Uniform(env.problem, np.random.default_rng(0)), seed=0)
    assert played.expected_mistakes == [pytest.approx(450)]
    assert played.log_loss == [pytest.approx(500 * math.log(10))]
    assert played.explored == [500]


def test_checkpoints_do_not_change_the_run():
    env = Logistic(horizon=3000)
    a = play(env, banditron(env), seed=2, keep_trace=True)
    b = play(env, banditron(env), seed=2, checkpoints=[1, 2, 3, 1023, 2047], keep_trace=True)
    np.testing.assert_array_equal(a.trace.action, b.trace.action)


def test_shorter_runs_are_prefixes():
    env = Digits(horizon=3000)
    long = play(env, banditron(env), seed=2, keep_trace=True)
    short = play(env, banditron(env), seed=2, rounds=700, keep_trace=True)
    np.testing.assert_array_equal(long.trace.action[:700], short.trace.action)


class Broken(Agent):
    """Answers whatever it was told to answer."""

    explores = False

    def __init__(self, problem, answer):
        super().__init__(problem, np.random.default_rng(0))
        self.answer = answer

    def act(self, context):
        return self.answer

    def learn(self, context, decision, correct):
        pass


def test_a_player_without_a_coin_has_no_explored_rounds():
    env = Logistic(horizon=5, n_classes=3)
    played = play(env, Broken(env.problem, Decision(1, np.full(3, 1 / 3))), seed=0)
    assert math.isnan(played.explored[-1])
    assert played.expected_mistakes == [pytest.approx(10 / 3)]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Decision(3, np.full(3, 1 / 3)), "action 3 is not an integer in 0 ... 2"),
        (Decision(-1, np.full(3, 1 / 3)), "action -1 is not"),
        (Decision(1.0, np.full(3, 1 / 3)), "action 1.0 is not"),
        (Decision(True, np.full(3, 1 / 3)), "action True is not"),
        (Decision(0, np.full(3, 0.3)), "no distribution over 3 classes"),
        (Decision(0, np.full(2, 0.5)), "no distribution over 3 classes"),
        (Decision(0, np.array([1.5, -0.5, 0.0])), "no distribution"),
        (Decision(0, np.array([np.nan, 0.5, 0.5])), "no distribution"),
        (Decision(0, np.array([0.0, 0.5, 0.5])), "to which it gave probability 0"),
        (1, "act must return a Decision, got int"),
    ],
)
def test_a_bad_answer_is_refused(answer, message):
    env = Logistic(horizon=5, n_classes=3)
    with pytest.raises(PlayerError, match=message):
        play(env, Broken(env.problem, answer), seed=0)


def test_refusals():
    env = Logistic(horizon=5)
    with pytest.raises(UsageError, match="rounds must lie between 1 and"):
        play(env, banditron(env), seed=0, rounds=6)
    with pytest.raises(UsageError, match="checkpoints must lie between"):
        play(env, banditron(env), seed=0, checkpoints=[0])
    with pytest.raises(UsageError, match="path='blocks' needs"):
        play(env, Broken(env.problem, None), seed=0, path="blocks")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.array([[np.inf, 0.0]]), np.array([0]), "not finite"),
        (np.array([[0.0, 0.0]]), np.array([3]), "label outside"),
        (np.array([[0.0, 0.0]]), np.array([-1]), "label outside"),
        (np.array([[0.0]]), np.array([0]), "expected \\(n, 2\\)"),
        (np.zeros((0, 2)), np.zeros(0, int), "ended 1 rounds early"),
    ],
)
def test_bad_blocks_are_refused(X, y, message):
    env = Logistic(horizon=1, n_features=2, n_classes=3)
    with pytest.raises(UsageError, match=message):
        play(env, banditron(env), seed=0, blocks=[(X, y)])
