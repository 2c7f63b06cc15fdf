"""Checks at their edges: what is just allowed and just not, with which numbers a subject is tried, and on what it is told."""

from __future__ import annotations

import math
import signal
import threading
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

from banditlab.agents.banditron import Banditron
from banditlab.checks import (
    CheckResult,
    _agents,
    _players,
    check_agent,
    check_env,
    check_file,
    check_forecaster,
    run_checks,
)
from banditlab.checks._agents import _another, _played, agent_checks
from banditlab.checks._core import Check, _mend, one_line
from banditlab.checks._envs import ENV, _labelled, env_probe
from banditlab.checks._players import _alike, _plain
from banditlab.checks._probe import PlayerProbe, first_difference, planted_stream, player_probe, read_only
from banditlab.envs import StreamEnv
from banditlab.errors import IncompatibleError, UsageError
from banditlab.players.agent import Agent, Trace
from banditlab.players.forecaster import Forecaster
from banditlab.players.label_agent import LabelAgent
from banditlab.problem import Decision, Problem


class Good(Agent):
    """Draws uniformly, in plain Python: keeps every promise."""

    id = "test-good"
    group = "practice"
    summary = "keeps every promise"
    reference = "made here"
    bound_unit = "nats"
    explores = False

    def __init__(self, problem: Problem, rng: Any, *, gamma: float = 0.3) -> None:
        super().__init__(problem, rng)
        if not 0.0 <= gamma <= 1.0:
            raise UsageError("gamma must lie in [0, 1]")
        self.gamma = gamma
        self.state = {"told": 0}

    def distribution(self) -> Any:
        return np.full(self.problem.n_classes, 1.0 / self.problem.n_classes)

    def act(self, context: Any) -> Decision:
        p, u = self.distribution(), self.rng.random(2)
        return Decision(min(int(np.searchsorted(np.cumsum(p), u[1], "right")), len(p) - 1), p)

    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        self.state["told"] += 1


def agent_outcome(subject: Any, name: str) -> tuple[str, str]:
    [check] = [check for check in check_agent(subject) if check.name == name]
    result = check.result()
    return result.status, result.reason


def test_a_good_agent_passes() -> None:
    assert {result.status for result in run_checks(Good)} <= {"passed", "excluded"}


# ------------------------------------------------------------------------------------------------------ what is answered


class Answers(Good):
    """Answers with what is put in the place of the action and the probabilities."""

    action: Any = 0
    p: Any = np.full(3, 1.0 / 3.0)

    def act(self, context: Any) -> Decision:
        super().act(context)
        return Decision(self.action, self.p)


def third(**off: Any) -> Any:
    p = np.full(3, 1.0 / 3.0)
    p[0] += off.get("off", 0.0)
    return p


ARRAY = "they must be a float64 array of shape (3,)"


@pytest.mark.parametrize(
    ("action", "p", "reason"),
    [
        (2, third(), ""),
        (True, third(), "at round 0 the action is True: it must be an int or a numpy integer"),
        (0, [0.5, 0.25, 0.25], f"at round 0 the probabilities are [0.5, 0.25, 0.25]: {ARRAY}"),
        (0, np.array([0.5, 0.25, 0.25], np.float32),
         f"at round 0 the probabilities are array([0.5 , 0.25, 0.25], dtype=float32): {ARRAY}"),
        (0, np.array([np.inf, 0.0, 0.0]), "at round 0 the probabilities are [inf  0.  0.]: they must be finite and 0 or above"),
        (0, third(off=5e-10), ""),
        (0, third(off=1.5e-9), "at round 0 the probabilities sum to 1: they must sum to 1"),
        (0, third(off=-5e-10), ""),
    ],
)  # fmt: skip
def test_an_answer_at_its_edges(action: Any, p: Any, reason: str) -> None:
    subject = type("Answering", (Answers,), {"action": action, "p": p})
    assert agent_outcome(subject, "decisions") == ("failed" if reason else "passed", reason)


LEAST = sorted(np.random.default_rng(seed).random(2)[1] for seed in range(400))
"""The numbers the action is drawn with in 400 draws, from the smallest on."""


class Off(Good):
    """Plays class 0 so many times in the 400 draws, and says its probability is 1/2."""

    times: ClassVar[int] = 200

    def act(self, context: Any) -> Decision:
        u = self.rng.random(2)
        return Decision(int(u[1] >= LEAST[self.times]), np.array([0.5, 0.5, 0.0]))


@pytest.mark.parametrize(("times", "status"), [(251, "passed"), (149, "passed"), (252, "failed"), (148, "failed")])
def test_four_hundred_draws_may_be_off_by_five_deviations_and_one(
    times: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a class with probability 1/2: 200, and 5 sqrt(100) + 1 more or less."""
    monkeypatch.setattr(Off, "times", times)
    found, reason = agent_outcome(Off, "true_probabilities")
    assert found == status
    if status == "failed":
        assert f"class 0 was played {times} times in 400 draws though its probability is 0.5" in reason


class Payload(Good):
    """Hands a payload with NaN along, an array of its own each time."""

    def act(self, context: Any) -> Decision:
        return super().act(context)._replace(payload=np.array([np.nan, self.state["told"]]))


class SharedPayload(Good):
    def act(self, context: Any) -> Decision:
        self.shared = getattr(self, "shared", np.zeros(2))
        self.shared[0] += 1.0
        return super().act(context)._replace(payload=self.shared)


def test_payloads_are_kept_too_and_may_hold_nan() -> None:
    assert agent_outcome(Payload, "decisions_are_kept") == ("passed", "")
    assert agent_outcome(SharedPayload, "decisions_are_kept")[0] == "failed"


# --------------------------------------------------------------------------------------------------------- late feedback


def test_feedback_is_five_rounds_late_and_every_third_never_comes() -> None:
    """Round s is told of after the act of round s + 5; rounds 0, 3, 6 ... are not."""
    lives: list[list[int]] = []

    class Notes(Good):
        def __init__(self, problem: Problem, rng: Any) -> None:
            super().__init__(problem, rng)
            self.acts, self.told = 0, []
            lives.append(self.told)

        def act(self, context: Any) -> Decision:
            self.acts += 1
            return super().act(context)

        def learn(self, context: Any, decision: Decision, correct: bool) -> None:
            self.told.append(self.acts)

    assert agent_outcome(Notes, "late_feedback") == ("passed", "")
    assert lives[-1] == [s + 6 for s in range(55) if s % 3]


# ----------------------------------------------------------------------------------------------------------- compiled paths


@pytest.mark.parametrize("K", [3, 4, 5])
def test_another_wrong_label_is_neither_the_label_nor_the_action(K: int) -> None:
    y, actions = (each.ravel() for each in np.meshgrid(np.arange(K), np.arange(K)))
    wrong = y != actions
    other = _another(y, actions, K)[wrong]
    assert ((other >= 0) & (other < K) & (other != y[wrong]) & (other != actions[wrong])).all()


class Blocks(Banditron):
    """Notes how long the blocks are it is given."""

    lengths: ClassVar[list[int]] = []

    def play_block(self, X: Any, y: Any, trace: Trace) -> None:
        self.lengths.append(len(y))
        super().play_block(X, y, trace)


def test_blocks_are_whole_or_cut_at_a_third() -> None:
    Blocks.lengths.clear()
    assert agent_outcome(Blocks, "both_paths") == ("passed", "")
    assert Blocks.lengths == [400, 133, 267]

    class Fake:
        def play_block(self, X: Any, y: Any, trace: Trace) -> None:
            Blocks.lengths.append(len(y))

    Blocks.lengths.clear()
    X, y = np.zeros((60, 2)), np.zeros(60, np.int64)
    _played(Fake(), X, y)
    _played(Fake(), X, y, 20)
    assert Blocks.lengths == [60, 20, 40]


@pytest.mark.parametrize(("off", "status"), [(5e-10, "passed"), (1.5e-9, "failed")])
def test_probabilities_of_both_paths_agree_to_a_billionth(off: float, status: str) -> None:
    class Off(Banditron):
        def play_block(self, X: Any, y: Any, trace: Trace) -> None:
            super().play_block(X, y, trace)
            trace.p_true[3] += off

    assert agent_outcome(Off, "both_paths")[0] == status


class OnlyTwo(Banditron):
    """Plays blocks, and meets two classes only."""

    id = "test-only-two"

    def __init__(self, problem: Problem, rng: Any, *, gamma: float = 0.3) -> None:
        if problem.n_classes > 2:
            raise IncompatibleError("only two classes")
        super().__init__(problem, rng, gamma=gamma)


def test_of_two_classes_there_is_no_other_wrong_label() -> None:
    assert agent_outcome(OnlyTwo, "only_the_bit") == ("excluded", "with K = 2 there is no other wrong label")
    probe = player_probe(OnlyTwo, agent_checks)
    assert (probe.problem, probe.note) == (Problem(5, 2, 2.0, 400), "probed with K = 2: only two classes")


class PeeksAtSeven(LabelAgent):
    """Its block knows the label of round 7 beforehand."""

    id = "test-peeks"
    summary = "knows one label"
    reference = "made here"

    def act(self, context: Any) -> Decision:
        self.rng.random(2)
        return Decision(0, np.eye(self.problem.n_classes)[0])

    def learn(self, context: Any, decision: Decision, label: int) -> None:
        """Learn nothing."""

    def play_block(self, X: Any, y: Any, trace: Trace) -> None:
        trace.action[:] = 0
        if len(y) > 7:
            trace.action[7] = y[7]


def test_every_seventh_round_s_label_is_changed() -> None:
    message = "other labels from round 7 on changed an action up to it: the label is revealed after the action"
    assert agent_outcome(PeeksAtSeven, "told_the_label") == ("failed", message)


class PeeksOfTwo(PeeksAtSeven):
    """The same, with two classes only."""

    def __init__(self, problem: Problem, rng: Any) -> None:
        if problem.n_classes > 2:
            raise IncompatibleError("only two classes")
        super().__init__(problem, rng)


def test_of_two_classes_the_other_label_is_tried() -> None:
    assert agent_outcome(PeeksOfTwo, "told_the_label")[0] == "failed"
    [check] = [check for check in check_forecaster(ForecastsOfTwo) if check.name == "learns"]
    assert check.result().status == "passed"


# -------------------------------------------------------------------------------------------------------------- the probe


def test_the_problem_a_player_is_tried_on() -> None:
    probe = player_probe(Good, agent_checks)
    assert (probe.problem, probe.name, probe.note) == (Problem(5, 3, 2.0, 400), "test-good", "")
    assert player_probe(type("Nameless", (Good,), {"id": ""}), agent_checks).name == "Nameless"
    X, y = planted_stream(probe.problem)
    assert (X.shape, X.flags.writeable, y.shape) == ((400, 5), False, (400,))
    norms = np.linalg.norm(X, axis=1)
    assert norms.max() == pytest.approx(2.0)
    assert len(set(X[:, -1].tolist())) == 1  # the intercept
    drawn = np.random.default_rng(20240229).standard_normal((400, 5))
    np.testing.assert_allclose(X[:, :4] / X[0, 4], drawn[:, :4])
    assert np.bincount(y).tolist() == LABELS
    assert not read_only(np.zeros(2)).flags.writeable
    assert probe.make().rng.random() == np.random.default_rng(1).random()


LABELS = [221, 155, 24]


def test_the_first_round_in_which_two_runs_differ() -> None:
    p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    assert first_difference([(0, p), (1, q)], [(0, p), (1, q)]) is None
    assert first_difference([(0, p), (1, q)], [(0, p), (0, q)]) == 1
    assert first_difference([(0, p), (1, q)], [(0, p), (1, p)]) == 1


# ----------------------------------------------------------------------------------------------- settings, metadata, memory


class Whatever(Good):
    def __init__(self, problem: Problem, rng: Any, **keys: Any) -> None:
        super().__init__(problem, rng)


class RefusesNegative(Good):
    def __init__(self, problem: Problem, rng: Any, *, gamma: float = 0.3) -> None:
        if gamma < 0:
            raise UsageError("gamma must not be negative")
        super().__init__(problem, rng)
        self.gamma = gamma


class RefusesZero(Good):
    def __init__(self, problem: Problem, rng: Any, *, norm_bound: float = 1.0) -> None:
        if norm_bound == 0:
            raise UsageError("norm_bound must not be 0")
        super().__init__(problem, rng)
        self.norm_bound = norm_bound


class LaterState(Good):
    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        super().learn(context, decision, correct)
        self.extra, self.another = np.ones(2), 1.0


class Bounded(Good):
    value: Any = 0.0

    def bound(self, rounds: int) -> Any:
        return self.value


@pytest.mark.parametrize(
    ("subject", "name", "reason"),
    [
        (type("Early", (Good,), {"version": 0}), "metadata", "version is 0: it must be an integer of at least 1"),
        (type("First", (Good,), {"version": 1}), "metadata", ""),
        (Whatever, "settings", "the setting 'keys' is not keyword-only: put it after a *"),
        (RefusesNegative, "bad_settings", "gamma = 1.5 was accepted: it must raise UsageError"),
        (RefusesZero, "bad_settings", "norm_bound = -1 was accepted: it must raise UsageError"),
        (LaterState, "saving", "another, extra: made after the constructor; all of the state must be there from the start"),
        (Bounded, "bounds", ""),
        (type("NoNumber", (Bounded,), {"value": "2"}), "bounds",
         "bound(1) is '2': it must be a number that is 0 or above, or None"),
        (type("NaN", (Bounded,), {"value": math.nan}), "bounds",
         "bound(1) is nan: it must be a number that is 0 or above, or None"),
        (type("Whole", (Bounded,), {"value": 3}), "bounds", ""),
        (type("None_", (Bounded,), {"value": None, "bound_unit": ""}), "bounds", ""),
    ],
)  # fmt: skip
def test_promises_at_their_edges(subject: Any, name: str, reason: str) -> None:
    assert agent_outcome(subject, name) == ("failed" if reason else "passed", reason)


def test_bounds_are_asked_for_after_1_60_and_400_rounds() -> None:
    asked: list[int] = []
    subject = type("Asked", (Good,), {"bound": lambda self, rounds: asked.append(rounds)})
    assert agent_outcome(subject, "bounds") == ("passed", "")
    assert asked == [1, 60, 400]


@pytest.mark.parametrize(("late", "status"), [(1256, "passed"), (1257, "failed")])
def test_memory_may_differ_by_256_bytes(late: int, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([1000, late])
    rounds = []

    def memory(player: Any) -> int:
        rounds.append(player.state["told"])
        return next(sizes)

    monkeypatch.setattr(_players, "memory", memory)
    found, reason = agent_outcome(Good, "bounded_memory")
    assert (found, rounds) == (status, [100, 400])
    if status == "failed":
        assert reason.startswith("the state takes 1000 bytes after 100 rounds and 1257 after 400: memory must not grow")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, True), (True, True), (3, True), (0.5, True), ("text", True), ([1, ("a", None)], True), ({"a": [1]}, True),
        (math.nan, False), ({1: 2.0}, False), ({"a": {2: 3}}, False), (object(), False), (np.zeros(1), False),
        ([{3: 4}], False),
    ],
)  # fmt: skip
def test_what_is_plain(value: Any, plain: bool) -> None:
    assert _plain(value) == plain


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (np.zeros(2), np.zeros(2), True), (np.zeros(2), np.ones(2), False), (np.zeros(2), [0.0, 0.0], False),
        ([1, 2], [1, 2], True), ([1, 2], [1, 3], False), ([1, 2], [1], False), ([1], 3, False), ([], (), True),
        ({"a": 1}, {"a": 1}, True), ({"a": 1}, {"a": 2}, False), ({"a": 1}, {"b": 1}, False), ({}, 3, False),
        ({"a": 1}, {"a": 1, "b": 2}, False), (1, 1.0, True), (1, 2, False), ({1}, {1}, True),
    ],
)  # fmt: skip
def test_what_is_alike(one: Any, other: Any, alike: bool) -> None:
    assert _alike(one, other) is alike


def test_words_about_results() -> None:
    assert CheckResult("a", "b", "failed", "c", "one") == CheckResult("a", "b", "failed", "c", "another")
    assert one_line(ValueError("a " * 100)) == "ValueError: " + ("a " * 100).strip()
    assert one_line(ValueError("ab" * 50 + " " + "c" * 99)) == f"ValueError: {'ab' * 50} {'c' * 99}"  # 200 characters
    assert one_line(ValueError("ab" * 50 + " " + "c" * 100)) == f"ValueError: {'ab' * 50} ..."
    assert one_line(KeyError()) == "KeyError"
    assert _mend(ValueError("it is read-only")).startswith(" (an array that is handed in")
    assert _mend(ValueError("no")) == _mend(TypeError("it is read-only")) == ""

    def documented(probe: Any) -> None:
        """Say one
        thing.

        And more.
        """

    def bare(probe: Any) -> None: ...

    assert Check(documented, None).contract == "Say one thing."  # type: ignore[type-var]
    assert Check(bare, None).contract == ""  # type: ignore[type-var]


# ------------------------------------------------------------------------------------------------------------ forecasters


class Forecasts(Forecaster):
    """Forecasts the same logits always, its batches and blocks off by a little."""

    id = "test-forecasts"
    group = "practice"
    summary = "the same always"
    reference = "made here"
    plays_blocks = True
    z: Any = np.zeros(3)
    many = block = 0.0
    lengths: ClassVar[list[int]] = []

    def predict(self, context: Any) -> Any:
        return self.z.copy()

    def update(self, context: Any, label: int) -> None:
        """Learn nothing."""

    def predict_many(self, contexts: Any) -> Any:
        return np.tile(self.z, (len(contexts), 1)) + self.many

    def forecast_block(self, X: Any, y: Any, logits: Any) -> None:
        self.lengths.append(len(y))
        logits[:] = self.z + self.block


class ForecastsOfTwo(Forecaster):
    """Forecasts the class it has seen more often, of two."""

    id = "test-of-two"
    group = "practice"
    summary = "the class seen more often"
    reference = "made here"

    def __init__(self, problem: Problem, rng: Any) -> None:
        if problem.n_classes > 2:
            raise IncompatibleError("only two classes")
        super().__init__(problem, rng)
        self.seen = np.zeros(2)

    def predict(self, context: Any) -> Any:
        return np.array([self.seen[0] - self.seen[1], 0.0])

    def update(self, context: Any, label: int) -> None:
        self.seen[label] += 0.1


BIG = np.array([1.0, -10.0, 0.0])


@pytest.mark.parametrize(
    ("keys", "status"),
    [
        ({}, "passed"), ({"many": 5e-10, "block": 5e-10}, "passed"), ({"many": 1.5e-9, "block": 1.5e-9}, "failed"),
        ({"z": BIG, "many": 5e-9, "block": -5e-9}, "passed"), ({"z": BIG, "many": 15e-9, "block": -15e-9}, "failed"),
    ],
)  # fmt: skip
def test_batches_and_blocks_are_off_by_rounding_at_most(keys: dict[str, Any], status: str) -> None:
    Forecasts.lengths.clear()
    checks = {check.name: check for check in check_forecaster(type("Off", (Forecasts,), keys))}
    assert [checks[name].result().status for name in ("predict_many", "forecast_paths")] == [status] * 2
    assert Forecasts.lengths == [20, 40]


@pytest.mark.parametrize(("off", "reason"), [(0.5e-6, ""), (1e-6, "moved the forecast at round 0 by 1.5e-06")])
def test_renamed_labels_may_move_a_forecast_by_a_millionth(off: float, reason: str) -> None:
    z = np.log([1 / 3 + off, 1 / 3 - off / 2, 1 / 3 - off / 2])
    [check] = [c for c in check_forecaster(type("Prefers", (Forecasts,), {"z": z})) if c.name == "label_symmetry"]
    result = check.result()
    assert (result.status, reason in result.reason) == ("failed" if reason else "passed", True)


def test_single_precision_logits_are_refused() -> None:
    subject = type("Single", (Forecasts,), {"z": np.zeros(3, np.float32)})
    [check] = [check for check in check_forecaster(subject) if check.name == "logits"]
    assert check.result().reason.startswith("predict returned a float32 array of shape (3,) at round 0")


# ------------------------------------------------------------------------------------------------------------ environments


class GoodEnv(StreamEnv):
    """Three planted directions: keeps every promise; notes which blocks it is asked for."""

    id = "test/Good-v0"
    summary = "keeps every promise"
    reference = "made here"
    asked: ClassVar[list[tuple[int, int, int]]] = []
    factor = 1.0

    def __init__(self, *, horizon: int = 100) -> None:
        super().__init__(Problem(3, 3, 1.0, horizon))

    def blocks(self, rounds: int, size: int) -> Any:
        self.asked.append((self.horizon, rounds, size))
        return super().blocks(rounds, size)

    def _draw(self, streams: Any, size: int) -> Any:
        while True:
            y = streams.labels.integers(3, size=size)
            X = np.eye(3)[y] + 0.2 * streams.contexts.standard_normal((size, 3))
            yield self.factor * X / np.linalg.norm(X, axis=1, keepdims=True), y


class Bits(GoodEnv):
    """Has no labels."""

    labelled = False


class OddBits(Bits):
    def step(self, action: int) -> Any:
        x, _, *rest = super().step(action)
        return x, 2.0, *rest


class Talks(Bits):
    def step(self, action: int) -> Any:
        *rest, _ = super().step(action)
        return *rest, {"hint": 1}


class Shifted(GoodEnv):
    """Its labels are all off by `by`."""

    by = 1

    def label(self) -> int:
        return super().label() + self.by

    def labels(self) -> Any:
        return super().labels() + self.by


class HalfBounded(GoodEnv):
    def __init__(self, *, horizon: int = 100) -> None:
        super().__init__(horizon=horizon)
        low = np.array([-1.0, -np.inf, -1.0])
        self.observation_space = gymnasium.spaces.Box(low, np.ones(3), (3,), np.float64)


class LabelAtTheEnd(GoodEnv):
    def step(self, action: int) -> Any:
        *rest, info = super().step(action)
        return *rest, {"true_label": 0} if rest[2] else info


class LabelOnTheWay(GoodEnv):
    """The last info that comes with a context tells a label, and no other does."""

    def step(self, action: int) -> Any:
        *rest, info = super().step(action)
        return *rest, {"true_label": 0} if self._round == 63 else info


class FewLabels(GoodEnv):
    def blocks(self, rounds: int, size: int) -> Any:
        for X, y in super().blocks(rounds, size):
            yield X, y[:-1]


class SpitefulLabels(GoodEnv):
    """The next label depends on the action, the next context does not."""

    last = 0

    def step(self, action: int) -> Any:
        self.last = int(action)
        return super().step(action)

    def _take(self) -> Any:
        x, y = super()._take()
        return x, (y + (self.last == 1)) % 3


def env_outcome(subject: Any, name: str) -> tuple[str, str]:
    [check] = [check for check in check_env(subject) if check.name == name]
    result = check.result()
    return result.status, result.reason


@pytest.mark.parametrize(
    ("subject", "name", "reason"),
    [
        (type("Early", (GoodEnv,), {"version": 0}), "env_metadata", "version is 0: it must be an integer of at least 1"),
        (type("Lines", (GoodEnv,), {"reference": "two\nlines"}), "env_metadata",
         "reference is 'two\\nlines': the class must carry a non-empty one-line string"),
        (Bits, "one_bit", ""),
        (Bits, "hidden_label", ""),
        (OddBits, "one_bit", "the reward at round 0 is 2.0 for action 2 and label -1: it must be 0.0"),
        (Talks, "hidden_label", "info holds 'hint': an environment without labels must leave it empty"),
        (Shifted, "label_guards", "labels range over 1 ... 3: they must lie in 0 ... 2"),
        (type("Down", (Shifted,), {"by": -1}), "label_guards", "labels range over -1 ... 1: they must lie in 0 ... 2"),
        (HalfBounded, "spaces", "the observation space has infinite bounds: they must be finite, for instance -R and R"),
        (LabelAtTheEnd, "hidden_label", "info['true_label'] tells the label: info must not hold it"),
        (LabelOnTheWay, "hidden_label", "info['true_label'] tells the label: info must not hold it"),
        (FewLabels, "block_sizes", "blocks(1500, 1500) yields (1500, 3) contexts and (1499,) labels: rounds must be 1500"),
        (SpitefulLabels, "actions_do_not_matter", "other actions changed the stream: it must not depend on them, "
         "or the class says oblivious = False"),
        (type("Near", (GoodEnv,), {"factor": 1.0 + 5e-10}), "contexts", ""),
        (type("Far", (GoodEnv,), {"factor": 1.0 + 1.5e-9}), "contexts",
         "the context at round 0 has norm 1: it must be at most R = 1"),
    ],
)  # fmt: skip
def test_environments_at_their_edges(subject: Any, name: str, reason: str) -> None:
    assert env_outcome(subject, name) == ("failed" if reason else "passed", reason)


def test_without_labels_there_is_nothing_to_guard() -> None:
    assert env_outcome(Bits, "label_guards") == ("excluded", "it has no labels: mistakes are counted by the bit")
    assert _labelled(type("Bare", (), {"unwrapped": None}))


def test_which_blocks_and_horizons_are_tried() -> None:
    GoodEnv.asked.clear()
    assert env_outcome(GoodEnv, "block_sizes") == ("passed", "")
    assert GoodEnv.asked == [(1500, 1500, size) for size in (1500, 1, 7, 750, 3000)]
    GoodEnv.asked.clear()
    assert env_outcome(GoodEnv, "prefixes") == ("passed", "")
    assert GoodEnv.asked == [(64, 64, 64), (128, 128, 64)]


def test_an_environment_without_horizon_or_id() -> None:
    class NoHorizon(GoodEnv):
        def __init__(self) -> None:
            super().__init__(horizon=64)

    [result] = run_checks(NoHorizon)
    assert result.reason == "the constructor takes no horizon: the number of rounds must be a keyword-only argument"
    assert env_probe(type("Nameless", (GoodEnv,), {"id": ""}), ENV).name == "Nameless"
    assert env_probe(GoodEnv, ENV).name == "test/Good-v0"


# ------------------------------------------------------------------------------------------------------------------- files


def test_files_may_be_checked_in_a_thread_and_leave_no_alarm(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text(
        "from banditlab.agents.banditron import Banditron\nclass A(Banditron):\n    id = 'test-a'\n    summary = ''\n"
    )
    before = signal.getsignal(signal.SIGALRM)
    assert {result.subject for result in check_file(file)} == {"test-a"}
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(check_file(file)))
    thread.start()
    thread.join()
    assert {result.subject for result in found} == {"test-a"}


def test_a_file_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_PLUGIN_SECONDS", "1")
    (tmp_path / "ever.py").write_text("while True:\n    pass\n")
    with pytest.raises(UsageError, match="its import did not end within 1 s"):
        check_file(tmp_path / "ever.py")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def act(): ...\nact.id = 'a'\n", "; act is a function: a plug-in is a class"),
        ("class A:\n    def act(self): ...\nclass B: ...\n", '; A has none: id = "..."'),
        ("from banditlab.agents.banditron import Banditron\n", ""),
    ],
)
def test_a_file_without_an_id_is_told_what_seems_to_be_meant(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "some.py").write_text(text)
    with pytest.raises(UsageError) as caught:
        check_file(tmp_path / "some.py")
    assert str(caught.value).endswith(f"defines no agent, forecaster or environment with an id{words}")


def test_a_class_with_methods_to_be_written_is_told_which(tmp_path: Path) -> None:
    text = "from banditlab.agents import Agent\nclass A(Agent):\n    id = 'test-a'\n    def act(self, context): ...\n"
    (tmp_path / "half.py").write_text(text)
    [result] = check_file(tmp_path / "half.py")
    assert (result.name, result.status) == ("construction", "failed")
    assert result.reason.startswith("leaves learn to be written: methods with these names")


def test_numbers_of_the_checks() -> None:
    """A reader of a failure counts on them."""
    assert isinstance(player_probe(Good, agent_checks), PlayerProbe)
    assert (_agents.DRAWS, _agents.DELAY, _agents.ROUNDS, _agents.LONG) == (400, 5, 60, 400)
