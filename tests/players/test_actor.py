"""What agents share: two verbs on checked input, both ways of playing, one line that shows a player or a decision."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents import FastCB, Perceptron, SquareCB, Uniform
from banditlab.errors import PlayerError, UsageError
from banditlab.players.agent import Agent, RoundAgent, Trace, checked
from banditlab.players.inputs import as_context
from banditlab.players.label_agent import RoundLabelAgent
from banditlab.problem import Decision, Problem

PROBLEM = Problem(2, 3, 1.0, 50)


class Means:
    """Play by the mean of what each class was told."""

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, rate: float = 0.5) -> None:
        super().__init__(problem, rng)  # type: ignore[call-arg]
        self.rate, self.totals = rate, np.ones(problem.n_classes)

    def _decide(self, view, u):
        p = self.totals / self.totals.sum()
        p[-1] = 1.0 - p[:-1].sum()
        return Decision(int(np.searchsorted(np.cumsum(p), u[1])), p, bool(u[0] < 0.5) if self.explores else None)


class OfBits(Means, RoundAgent):
    id = "of-bits"
    plays_blocks = True

    def _receive(self, view, decision, outcome):
        assert type(outcome) is bool
        self.totals[decision.action] += self.rate * outcome


class OfLabels(Means, RoundLabelAgent):
    plays_blocks = True

    def _receive(self, view, decision, outcome):
        assert type(outcome) is int
        self.totals[outcome] += self.rate


def stream(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 2))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.integers(3, size=n)


@pytest.mark.parametrize("cls", [OfBits, OfLabels])
def test_both_ways_of_playing_go_through_the_two_verbs(cls):
    X, y = stream(50)
    fast, slow = (cls(PROBLEM, np.random.default_rng(1)) for _ in range(2))
    trace = Trace.empty(50)
    fast.play_block(X[:20], y[:20], trace.part(slice(0, 20)))
    fast.play_block(X[20:], np.eye(3, dtype=bool)[y[20:]] if cls is OfBits else y[20:], trace.part(slice(20, 50)))
    for t in range(50):
        decision = slow.act(X[t])
        expected = decision.action, decision.action == y[t], decision.probabilities[y[t]], bool(decision.explored)
        assert expected == tuple(column[t] for column in trace)
        slow.learn(X[t], decision, decision.action == y[t] if cls is OfBits else y[t])
    assert np.array_equal(fast.totals, slow.totals)
    assert fast.rng.bit_generator.state == slow.rng.bit_generator.state


def test_a_block_that_is_refused_draws_nothing():
    X, y = stream(5)
    agent = OfBits(PROBLEM, np.random.default_rng(1))
    before = agent.rng.bit_generator.state
    with pytest.raises(UsageError, match="the trace must have arrays"):
        agent.play_block(X, y, Trace.empty(4))
    assert agent.rng.bit_generator.state == before


def test_a_bad_answer_is_reported_in_blocks():
    class Off(OfBits):
        def _decide(self, view, u):
            return super()._decide(view, u)._replace(probabilities=np.full(3, 0.5))

    X, y = stream(5)
    with pytest.raises(PlayerError, match=r"of-bits: probabilities \[0.5 0.5 0.5\] are not a distribution"):
        Off(PROBLEM, np.random.default_rng(1)).play_block(X, y, Trace.empty(5))


def test_outcomes_keep_their_names():
    """Callers may name what they tell: `correct` a bit, `label` a label."""
    X, _ = stream(1)
    one, other = OfBits(PROBLEM, np.random.default_rng(1)), OfLabels(PROBLEM, np.random.default_rng(1))
    one.learn(X[0], one.act(X[0]), correct=True)
    other.learn(X[0], other.act(X[0]), label=2)
    assert one.totals.sum() == other.totals.sum() == 3.5


def test_a_player_shows_what_it_is():
    rng = np.random.default_rng(0)
    assert repr(Uniform(PROBLEM, rng)) == "Uniform('uniform', K=3, d=2)"
    assert repr(OfLabels(PROBLEM, rng, rate=0.25)) == "OfLabels(K=3, d=2, rate=0.25)"
    shown = repr(SquareCB(PROBLEM, rng, sharpness=7.0, oracle="logistic"))
    assert shown == "SquareCB('squarecb', K=3, d=2, oracle='logistic', sharpness=7, step=1)"
    assert "sharpness" not in repr(FastCB(PROBLEM, rng))
    assert repr(OfBits.__new__(OfBits)) == "OfBits('of-bits')"  # as a debugger shows it before the constructor ran


class Answers(OfBits):
    """What it is told to answer."""

    answer: Decision

    def _decide(self, view, u):
        return self.answer


@pytest.mark.parametrize(
    ("action", "p", "said"),
    [
        (True, [0.0, 1.0, 0.0], "action True is not an integer in 0 ... 2"),
        (1.0, [0.0, 1.0, 0.0], "action 1.0 is not an integer in 0 ... 2"),
        (-1, [0.0, 0.0, 1.0], "action -1 is not an integer in 0 ... 2"),
        (3, [0.0, 0.0, 1.0], "action 3 is not an integer in 0 ... 2"),
        (0, [0.0, 0.5, 0.5], "chose class 0, to which it gave probability 0"),
        (0, [0.5, 0.5], r"probabilities \[0.5 0.5\] are not a distribution over 3 classes \(sum 1\)"),
        (0, [0.5, 0.5, 0.0, 0.0], r"probabilities \[0.5 0.5 0.  0. \] are not a distribution over 3 classes \(sum 1\)"),
        (0, [0.5, 0.5, 0.5], r"probabilities \[0.5 0.5 0.5\] are not a distribution over 3 classes \(sum 1.5\)"),
    ],
)
def test_an_answer_is_checked(action, p, said):
    with pytest.raises(PlayerError, match=f"^of-bits: {said}$"):
        checked(Decision(action, np.array(p)), 3, OfBits(PROBLEM, np.random.default_rng(0)))
    nameless = OfLabels(PROBLEM, np.random.default_rng(0))
    with pytest.raises(PlayerError, match=r"^OfLabels: "):
        checked(Decision(action, np.array(p)), 3, nameless)


def test_a_checked_answer_is_plain_and_its_own():
    agent = OfBits(PROBLEM, np.random.default_rng(0))
    p = np.array([0.0, 0.25, 0.75])
    for action in (1, 2, np.int32(2), np.uint8(1)):
        for explored in (None, True, np.False_):
            found = checked(Decision(action, p, explored), 3, agent)
            assert type(found.action) is int
            assert found.action == action
            assert found.explored is (None if explored is None else bool(explored))
            assert not np.shares_memory(found.probabilities, p)
    long = np.full(13, 0.5)
    with pytest.raises(PlayerError, match=r"probabilities \[0.5 0.5 0.5 \.\.\. 0.5 0.5 0.5\]"):
        checked(Decision(0, long), 13, agent)
    with pytest.raises(PlayerError) as refusal:
        checked(Decision(0, long[:12] + 1e-9 * np.arange(12)), 12, agent)
    assert "..." not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_actors_draw_and_explore_unless_they_say_otherwise():
    assert Agent.explores is True
    assert OfLabels.explores is False
    with pytest.raises(UsageError, match="OfBits draws actions: rng must be a numpy Generator, got None"):
        OfBits(PROBLEM, None)
    answer = Decision(0, np.array([1.0, 0.0, 0.0]), None, np.zeros(2))
    agent = Answers(PROBLEM, np.random.default_rng(0))
    agent.answer = answer
    seen = agent.act(np.zeros(2))
    assert (seen.probabilities.flags.writeable, seen.payload.flags.writeable) == (False, False)
    assert answer.probabilities.flags.writeable


def test_a_compiled_answer_without_a_coin_did_not_explore():
    """A kernel that answers an action alone: in a block and in single rounds nothing was explored."""

    class Curious(Perceptron):
        explores = True

        def kernel_owner(self):  # the loop that is compiled already
            return f"{Perceptron.__module__}.{Perceptron.__qualname__}"

    assert not isinstance(Curious(PROBLEM, np.random.default_rng(0)), Agent)
    X, y = stream(6)
    block, single, quick = (Curious(PROBLEM, np.random.default_rng(5)) for _ in range(3))
    trace = Trace.empty(6)
    block.play_block(X, y, trace)
    for t in range(6):
        decision = single.act(X[t])
        assert decision.explored is False
        assert trace.explored[t] == decision.explored
        again = quick.act_at(as_context(X[t], PROBLEM))
        assert (again.action, again.explored) == (decision.action, False)
        single.learn(X[t], decision, int(y[t]))
        quick.learn_at(as_context(X[t], PROBLEM), again, int(y[t]))
    assert single.rng.bit_generator.state == quick.rng.bit_generator.state == block.rng.bit_generator.state


def test_a_trace_has_room_for_all_rounds_and_columns():
    trace = Trace.empty(4)
    assert trace.of_length(4) is trace
    for wrong in (
        trace.part(slice(0, 3)),
        trace._replace(p_true=np.empty(3)),
        trace._replace(explored=np.empty((4, 1))),
    ):
        with pytest.raises(
            UsageError, match=r"must have arrays for 4 rounds, as Trace.empty\(4\) returns, got arrays of shapes"
        ):
            wrong.of_length(4)
