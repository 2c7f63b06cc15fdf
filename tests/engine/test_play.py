"""Playing: both paths, checkpoints, what is refused."""

from __future__ import annotations

import math
import textwrap
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from banditlab.agents import around_forecaster, exploration
from banditlab.agents.banditron import Banditron
from banditlab.agents.uniform import Uniform
from banditlab.engine import Sweep, make_spec, play
from banditlab.envs import Digits, Logistic
from banditlab.errors import PlayerError, UsageError
from banditlab.numerics.jit import njit
from banditlab.players.agent import Agent, KernelAgent, Trace
from banditlab.players.forecaster import Forecaster, KernelForecaster
from banditlab.problem import Decision


def banditron(env, seed=1):
    return Banditron(env.unwrapped.problem, np.random.default_rng(seed), gamma=0.1)


@pytest.mark.parametrize("make", [lambda: Digits(horizon=1500), lambda: Logistic(horizon=1500)])
def test_both_paths_give_the_same_run(make):
    env = make()
    array = np.array([1, 7, 100, 1024, 1025])
    fast = play(env, banditron(env), seed=3, checkpoints=array, path="blocks", keep_trace=True)
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


class Weary(Broken):
    """Answers NaN from a round on."""

    id = "weary"

    def act(self, context):
        self.t = getattr(self, "t", 0) + 1
        return Decision(1, np.full(3, 1 / 3 if self.t < self.answer else np.nan))


@pytest.mark.parametrize("rounds", [1, 700, 1500])
def test_probabilities_that_are_not_finite_are_refused_in_any_round(rounds):
    env = Logistic(horizon=1500, n_classes=3)
    with pytest.raises(PlayerError, match=r"^weary: probabilities \[nan nan nan\] are not a distribution"):
        play(env, Weary(env.problem, rounds), seed=0)


def test_a_player_without_a_coin_has_no_explored_rounds():
    env = Logistic(horizon=5, n_classes=3)
    played = play(env, Broken(env.problem, Decision(1, np.full(3, 1 / 3))), seed=0)
    assert math.isnan(played.explored[-1])
    assert played.expected_mistakes == [pytest.approx(10 / 3)]
    assert (0.0 < played.seconds[-1] < 1.0, played.trace) == (True, None)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Decision(3, np.full(3, 1 / 3)), "action 3 is not an integer in 0 ... 2"),
        (Decision(-1, np.full(3, 1 / 3)), "action -1 is not"),
        (Decision(1.0, np.full(3, 1 / 3)), "action 1.0 is not"),
        (Decision(True, np.full(3, 1 / 3)), "action True is not"),
        (Decision(0, np.full(3, 0.3)), "not a distribution over 3 classes"),
        (Decision(0, np.full(2, 0.5)), "not a distribution over 3 classes"),
        (Decision(0, np.array([1.5, -0.5, 0.0])), "not a distribution"),
        (Decision(0, np.array([np.nan, 0.5, 0.5])), "not a distribution"),
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
    for rounds in (0, 6):
        with pytest.raises(UsageError, match="rounds must lie between 1 and"):
            play(env, banditron(env), seed=0, rounds=rounds)
    with pytest.raises(UsageError, match="checkpoints must lie between"):
        play(env, banditron(env), seed=0, checkpoints=[0])
    with pytest.raises(UsageError, match="path='blocks' requires"):
        play(env, Broken(env.problem, None), seed=0, path="blocks")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.array([[np.inf, 0.0]]), np.array([0]), "context 0 of the block must be finite, got inf at 0"),
        (np.array([[0.0, 0.0]]), np.array([3]), r"the labels must lie in 0 \.\.\. "),
        (np.array([[0.0, 0.0]]), np.array([-1]), r"the labels must lie in 0 \.\.\. "),
        (np.array([[0.0]]), np.array([0]), r"must be of shape \(n, 2\), got \(1, 1\)"),
        (np.zeros((0, 2)), np.zeros(0, int), "ended 1 rounds early"),
    ],
)
def test_bad_blocks_are_refused(X, y, message):
    env = Logistic(horizon=1, n_features=2, n_classes=3)
    with pytest.raises(UsageError, match=message):
        play(env, banditron(env), seed=0, blocks=[(X, y)])


# ------------------------------------------------------------------------- compiled players: compiled code checks nothing


class Rounds(NamedTuple):
    acted: np.ndarray
    learnt: np.ndarray
    fault: np.ndarray


FAULTS = {
    "beyond": "action 12 is not an integer in 0 ... 11",
    "below": "action -1 is not an integer in 0 ... 11",
    "sum": "not a distribution over 12 classes \\(sum 0.6\\)",
    "almost": "not a distribution over 12 classes",
    "negative": "not a distribution over 12 classes \\(sum 1\\)",
    "nan": "not a distribution over 12 classes \\(sum nan\\)",
    "infinite": "not a distribution over 12 classes \\(sum inf\\)",
    "impossible": "chose class 0, to which it gave probability 0",
}


@njit
def bad_act(state, x, u, p, payload):
    K, fault = p.shape[0], state.fault[0]
    p[:] = 1.0 / K
    state.acted[0] += 1
    if state.acted[0] <= 5:
        return 0, False
    if fault == 0:
        return K, False
    if fault == 1:
        return -1, False
    if fault == 2:
        p[:] = 0.05
    elif fault == 3:
        p[K - 1] += 1e-8
    elif fault == 4:
        p[1] -= 0.25
        p[2] += 0.25
    elif fault == 5:
        p[K - 1] = np.nan
    elif fault == 6:
        p[K - 1] = np.inf
    else:
        p[0], p[1] = 0.0, 2.0 / K
    return 0, False


@njit
def count_learn(state, x, action, p, payload, correct):
    state.learnt[0] += 1


class BadKernel(KernelAgent):
    """Answers well for five rounds, then badly."""

    id = "test-bad-kernel"
    act_kernel = bad_act
    learn_kernel = count_learn

    def __init__(self, problem, fault):
        super().__init__(problem, np.random.default_rng(0))
        self.state = Rounds(np.zeros(1, int), np.zeros(1, int), np.array([list(FAULTS).index(fault)]))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_compiled_player_s_bad_answer_is_refused_in_the_same_words_on_both_paths(fault):
    env = Logistic(horizon=20, n_classes=12)
    messages = []
    for path in ("blocks", "steps"):
        agent = BadKernel(env.problem, fault)
        with pytest.raises(PlayerError, match=FAULTS[fault]) as refusal:
            play(env, agent, seed=0, path=path)
        assert agent.state.acted[0] == 6
        assert agent.state.learnt[0] == 5  # the bad answer was not learnt from
        messages.append(str(refusal.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith("test-bad-kernel: ")
    assert "\n" not in messages[0]


@njit
def nan_after_two_updates(state, x, z):
    z[:] = np.nan if state[0] >= 2 else 0.0


@njit
def nan_rows_after_two_updates(state, X, Z):
    Z[:] = np.nan if state[0] >= 2 else 0.0


@njit
def count_update(state, x, y, z):
    state[0] += 1


class OneByOne(KernelForecaster):
    predict_kernel = nan_after_two_updates
    update_kernel = count_update

    def __init__(self, problem, rng):
        super().__init__(problem, rng)
        self.state = np.zeros(1, int)


class InStretches(OneByOne):
    predict_many_kernel = nan_rows_after_two_updates


@pytest.mark.parametrize("forecaster", [OneByOne, InStretches])
def test_exploration_around_logits_that_are_not_finite_is_refused(forecaster, monkeypatch):
    monkeypatch.setattr(around_forecaster, "registry", lambda: SimpleNamespace(load=lambda kind, id_: forecaster))
    env = Logistic(horizon=1000, n_classes=3)
    env.reset(seed=0)
    X, y = next(env.blocks(1000, 1000))
    for plays in (
        lambda agent: play(env, agent, seed=0),
        lambda agent: agent.play_block(X, y, Trace.empty(1000)),
    ):
        agent = exploration.Exploration(env.problem, np.random.default_rng(0), gamma=0.3)
        with pytest.raises(PlayerError, match=r"exploration: probabilities \[nan nan nan\] are not a distribution"):
            plays(agent)
        assert agent.inner.state[0] == 2


BAD_LAB = """
    from typing import NamedTuple
    import numpy as np
    from banditlab.agents import KernelAgent
    from banditlab.kernels import njit

    class State(NamedTuple):
        K: np.ndarray

    @njit
    def act_kernel(state, x, u, p, payload):
        p[:] = 0.9
        return 0, False

    @njit
    def learn_kernel(state, x, action, p, payload, correct):
        pass

    class Compiled(KernelAgent):
        id = "bad-compiled"
        summary = "its probabilities sum to too much"
        act_kernel = act_kernel
        learn_kernel = learn_kernel

        def __init__(self, problem, rng):
            super().__init__(problem, rng)
            self.state = State(np.zeros(1))
"""


@pytest.mark.slow
def test_a_sweep_records_a_compiled_player_s_bad_answer(tmp_path, fresh_registry):
    (tmp_path / "lab" / "agents").mkdir(parents=True)
    (tmp_path / "lab" / "agents" / "compiled.py").write_text(textwrap.dedent(BAD_LAB))
    fresh_registry.open_lab(tmp_path / "lab")
    spec = {
        "name": "bad",
        "rounds": 50,
        "environment": [{"id": "banditlab/Logistic-v0", "n_classes": 3}],
        "agent": [{"id": "bad-compiled"}, {"id": "uniform"}],
    }
    result = Sweep(make_spec(spec, "test")).run(tmp_path / "out", jobs=1)
    assert {failure["player"] for failure in result.failures} == {"bad-compiled"}
    assert all("not a distribution over 3 classes (sum 2.7)" in failure["error"] for failure in result.failures)
    assert result.played == len(result.failures)  # uniform's runs


class Cracked(Logistic):
    """Shows a context that is not finite in the third round."""

    def step(self, action):
        context, *rest = super().step(action)
        if self._round == 2:
            context[0] = np.nan
        return context, *rest


def test_a_context_that_is_not_finite_is_refused_on_the_step_path_too():
    env = Cracked(horizon=5)
    agent = banditron(env)
    with pytest.raises(UsageError, match="returned a context that is not finite"):
        play(env, agent, seed=0, path="steps")
    assert np.isfinite(agent.weights).all()


class Certain(Forecaster):
    """Forecasts class 0 with logits too far apart for a probability."""

    def predict(self, context):
        return np.array([800.0, 0.0, 0.0])

    def update(self, context, label):
        pass


def test_a_forecasts_loss_is_finite_where_its_probability_underflows():
    env = Logistic(horizon=50, n_classes=3)
    played = play(env, Certain(env.problem, None), seed=0)
    assert played.mistakes[-1] > 0
    assert played.log_loss == [pytest.approx(800.0 * played.mistakes[-1])]
