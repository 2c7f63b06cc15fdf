"""Every check of an agent fails on a subject broken in just that way, with just that message."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pytest

from banditlab.agents.banditron import Banditron
from banditlab.checks import CheckResult, check_agent, run_checks
from banditlab.checks._agents import agent_checks
from banditlab.checks._probe import player_probe
from banditlab.errors import IncompatibleError, UsageError
from banditlab.players.agent import Agent, Trace
from banditlab.problem import Decision, Problem
from banditlab.validation import positive, probability


class Good(Agent):
    """Epsilon-greedy on a perceptron, in plain Python: keeps every promise."""

    id = "test-good"
    group = "practice"
    summary = "keeps every promise"
    reference = "made here"
    bound_unit = "nats"

    def __init__(self, problem: Problem, rng: Any, *, gamma: float = 0.3, norm_bound: float = 2.0) -> None:
        super().__init__(problem, rng)
        self.gamma, self.norm_bound = probability("gamma", gamma), positive("norm_bound", norm_bound)
        self.state: dict[str, Any] = {"W": np.zeros((problem.n_classes, problem.n_features))}

    def probabilities(self, context: Any) -> Any:
        K = self.problem.n_classes
        p = np.full(K, self.gamma / K)
        p[int(np.argmax(self.state["W"] @ context))] += 1.0 - self.gamma
        return p

    def act(self, context: Any) -> Decision:
        u = self.rng.random(2)
        p = self.probabilities(context)
        return Decision(min(int(np.searchsorted(np.cumsum(p), u[1], "right")), len(p) - 1), p, bool(u[0] < self.gamma))

    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        self.state["W"][decision.action] += (1.0 if correct else -1.0) * context

    def bound(self, rounds: int) -> float | None:
        return 2.0 * rounds**0.5


def outcome(subject: Any, name: str, **settings: Any) -> CheckResult:
    [check] = [check for check in check_agent(subject, **settings) if check.name == name]
    return check.result()


def test_rare_randomness_of_its_own_is_seen_every_time() -> None:
    assert [outcome(RarelyByItself, "seeds", gamma=0.02).status for _ in range(8)] == ["failed"] * 8


def test_a_good_agent_passes() -> None:
    results = run_checks(Good)
    assert [(r.name, r.reason) for r in results if r.status == "failed"] == []
    excluded = {r.name: r.reason for r in results if r.status == "excluded"}
    assert excluded == {
        "only_the_bit": "no compiled path: the loop passes the bit",
        "both_paths": "has no compiled path",
    }


# ----------------------------------------------------------------------------------------------- broken in one way each


class NoSummary(Good):
    summary = ""


class NoReference(Good):
    reference = "two\nlines"


class BadFeedback(Good):
    feedback = "reward"


class BadGroup(Good):
    group = "best"


class BadVersion(Good):
    version: ClassVar[Any] = 1.0


class Positional(Good):
    def __init__(self, problem: Problem, rng: Any, gamma: float = 0.3) -> None:
        super().__init__(problem, rng, gamma=gamma)


class Swapped(Good):
    def __init__(self, a: Any, b: Any, *, gamma: float = 0.3) -> None:
        super().__init__(a, b, gamma=gamma)


class Unannotated(Good):
    def __init__(self, problem: Problem, rng: Any, *, gamma=0.3) -> None:  # type: ignore[no-untyped-def]
        super().__init__(problem, rng, gamma=gamma)


class Forgotten(Good):
    def __init__(self, problem: Problem, rng: Any, *, decay: float = 0.3) -> None:
        super().__init__(problem, rng)


class ArraySetting(Good):
    def __init__(self, problem: Problem, rng: Any, *, decay: float = 0.5) -> None:
        super().__init__(problem, rng)
        self.decay = np.array([decay])


class InfiniteSetting(Good):
    def __init__(self, problem: Problem, rng: Any, *, decay: float = math.inf) -> None:
        super().__init__(problem, rng)
        self.decay = decay


class Drifting(Good):
    def __init__(self, problem: Problem, rng: Any, *, decay: float = 0.5) -> None:
        super().__init__(problem, rng)
        self.decay = decay / 2


class AcceptsGamma(Good):
    def __init__(self, problem: Problem, rng: Any, *, gamma: float = 0.3) -> None:
        super().__init__(problem, rng, gamma=min(max(gamma, 0.0), 1.0))
        self.gamma = min(max(gamma, 0.0), 1.0)


class AssertsBound(Good):
    def __init__(self, problem: Problem, rng: Any, *, norm_bound: float = 1.0) -> None:
        super().__init__(problem, rng)
        if not norm_bound > 0:
            raise ZeroDivisionError("norm_bound")
        self.norm_bound = norm_bound


class Talkative(Good):
    def __init__(self, problem: Problem, rng: Any, *, gamma: float = 0.3) -> None:
        if not 0 <= gamma <= 1:
            raise UsageError("gamma is wrong\nplease give another")
        super().__init__(problem, rng, gamma=gamma)


class GlobalDraws(Good):
    def act(self, context: Any) -> Decision:
        self.state["W"] += 1e-3 * np.random.standard_normal(self.state["W"].shape)  # noqa: NPY002
        return super().act(context)


class RarelyByItself(Good):
    """Draws from a generator of its own; with a small gamma that is rarely seen."""

    def act(self, context: Any) -> Decision:
        p = self.probabilities(context)
        u = np.random.default_rng().random(2)
        return Decision(min(int(np.searchsorted(np.cumsum(p), u[1], "right")), len(p) - 1), p, bool(u[0] < self.gamma))


class WritesOnAct(Good):
    def act(self, context: Any) -> Decision:
        if context.flags.writeable:
            context[0] = 0.0
        return super().act(context)


class WritesOnLearn(Good):
    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        super().learn(context, decision, correct)
        if context.flags.writeable:
            context *= 2.0


class WritesRegardless(Good):
    def act(self, context: Any) -> Decision:
        context[0] = 0.0
        return super().act(context)


class KeepsContext(Good):
    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        if "last" in self.state:
            self.state["W"][0] += 0.3 * self.state["last"]
        super().learn(context, decision, correct)
        self.state["last"] = context


class LosesInPickle(Good):
    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"rng": np.random.default_rng(0)}


class LosesInFile(Good):
    def get_state(self) -> dict[str, Any]:
        return {"rng": self.rng}


class Remembers(Good):
    def __init__(self, problem: Problem, rng: Any) -> None:
        Agent.__init__(self, problem, rng)
        self.gamma, self.norm_bound = 0.3, 2.0
        self.state = {"W": np.zeros((problem.n_classes, problem.n_features)), "seen": []}

    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        super().learn(context, decision, correct)
        self.state["seen"].append(float(context[0]))


class RemembersKnowingly(Remembers):
    excluded_checks = {"bounded_memory": "keeps every first feature on purpose"}


class NoUnit(Good):
    bound_unit = ""


class NegativeBound(Good):
    def bound(self, rounds: int) -> float | None:
        return -1.0


class CertificateNone(Good):
    def certificate(self) -> Any:
        return None


class NeverLearns(Good):
    def learn(self, context: Any, decision: Decision, correct: bool) -> Any:
        super().learn(context, decision, correct)
        yield


class Awaited(Good):
    async def act(self, context: Any) -> Any:  # type: ignore[override]
        return super().act(context)


class WithoutTheBit(Good):
    def learn(self, context: Any, decision: Decision) -> None:  # type: ignore[override]
        """Learn nothing."""


class SharesAnArray(Good):
    seen = np.zeros(3)

    def act(self, context: Any) -> Decision:
        decision = super().act(context)
        self.seen[decision.action] += 1.0
        return decision


class SharesNested(Good):
    seen: ClassVar[dict[str, Any]] = {"rounds": [np.zeros(1)]}

    def act(self, context: Any) -> Decision:
        self.seen["rounds"][0] += 1.0
        return super().act(context)


class PlainTuple(Good):
    def act(self, context: Any) -> Any:
        return tuple(super().act(context))


class NumpyAction(Good):
    """Keeps the contract: numpy's integers are integers."""

    def act(self, context: Any) -> Decision:
        decision = super().act(context)
        return decision._replace(action=np.int64(decision.action))  # type: ignore[arg-type]


class FloatAction(Good):
    def act(self, context: Any) -> Decision:
        decision = super().act(context)
        return decision._replace(action=np.float64(decision.action))  # type: ignore[arg-type]


class OutOfRange(Good):
    def act(self, context: Any) -> Decision:
        return super().act(context)._replace(action=3)


class WrongShape(Good):
    def probabilities(self, context: Any) -> Any:
        return np.full(4, 0.25)

    def act(self, context: Any) -> Decision:
        return super().act(context)._replace(action=0)


class Negative(Good):
    def act(self, context: Any) -> Decision:
        return super().act(context)._replace(probabilities=np.array([1.5, -0.5, 0.0]))


class NotOne(Good):
    def act(self, context: Any) -> Decision:
        return super().act(context)._replace(probabilities=np.array([0.5, 0.25, 0.5]))


class Impossible(Good):
    def act(self, context: Any) -> Decision:
        return super().act(context)._replace(action=2, probabilities=np.array([0.5, 0.5, 0.0]))


class NoCoin(Good):
    def act(self, context: Any) -> Decision:
        return super().act(context)._replace(explored=None)


class SecretCoin(Good):
    explores = False


class ThreeUniforms(Good):
    def act(self, context: Any) -> Decision:
        self.rng.random()
        return super().act(context)


class DrawsInLearn(Good):
    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        super().learn(context, decision, correct)
        self.rng.random(2)


class Liar(Good):
    def act(self, context: Any) -> Decision:
        return super().act(context)._replace(probabilities=np.full(3, 1 / 3))


class AfterTheDraw(Good):
    def act(self, context: Any) -> Decision:
        decision = super().act(context)
        return decision._replace(probabilities=np.eye(3)[decision.action])


class SharedProbabilities(Good):
    def act(self, context: Any) -> Decision:
        decision = super().act(context)
        self.state.setdefault("p", np.zeros(3))[:] = np.roll(decision.probabilities, len(self.state))
        self.state[f"n{len(self.state)}"] = 0.0
        return decision._replace(probabilities=self.state["p"])


class Scratch(Good):
    """Learns from the context it saw last in act, whatever it is told about."""

    def act(self, context: Any) -> Decision:
        self.state["x"] = np.array(context)
        return super().act(context)

    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        super().learn(self.state["x"], decision, correct)


class Impatient(Good):
    """Wants its bit before the next context."""

    waiting = False

    def act(self, context: Any) -> Decision:
        if self.state.get("waiting", 0) > 3:
            raise RuntimeError("no feedback for\nso long")
        self.state["waiting"] = self.state.get("waiting", 0) + 1
        return super().act(context)

    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        self.state["waiting"] = 0
        super().learn(context, decision, correct)


class AsksForTheLabel(Good):
    def learn(self, context: Any, decision: Decision, correct: bool, label: int | None = None) -> None:
        super().learn(context, decision, correct)


class Peeks(Banditron):
    """Reads the labels handed to the loop."""

    def play_block(self, X: Any, y: Any, trace: Trace) -> None:
        super().play_block(X, y, trace)
        peeked = np.array(trace.action)
        peeked[50:] = (trace.action[50:] + y[49:-1]) % 3
        trace.action[:] = peeked


class Rewrites(Good):
    """Says after the bit that it was sure of its action."""

    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        super().learn(context, decision, correct)
        decision.probabilities[:] = 1.0


class OtherPath(Banditron):
    def play_block(self, X: Any, y: Any, trace: Trace) -> None:
        super().play_block(X, y, trace)
        trace.action[7] = (trace.action[7] + 1) % 3


class WrongHits(Banditron):
    def play_block(self, X: Any, y: Any, trace: Trace) -> None:
        super().play_block(X, y, trace)
        trace.correct[:] = True


class WrongProbability(Banditron):
    def play_block(self, X: Any, y: Any, trace: Trace) -> None:
        super().play_block(X, y, trace)
        trace.p_true[:] += 1e-6


class WrongExplored(Banditron):
    explores = True

    def play_block(self, X: Any, y: Any, trace: Trace) -> None:
        super().play_block(X, y, trace)
        trace.explored[3] = True


BROKEN = [
    (NoSummary, "metadata", "summary is '': it must be a non-empty one-line string"),
    (NoReference, "metadata", "reference is 'two\\nlines': it must be a non-empty one-line string"),
    (BadFeedback, "metadata", "feedback is 'reward': it must be 'bit' or 'label'"),
    (
        BadGroup,
        "metadata",
        "group is 'best': it must be one of 'theory', 'practice', 'reference', 'baseline', 'adapter'",
    ),
    (BadVersion, "metadata", "version is 1.0: it must be an integer of at least 1"),
    (Positional, "settings", "the setting 'gamma' is not keyword-only: put it after a *"),
    (Swapped, "settings", "the constructor begins with ['a', 'b']: it must begin with (problem, rng)"),
    (
        Unannotated,
        "settings",
        "the setting 'gamma' has no annotation: annotate it, because values are converted to its type",
    ),
    (
        Forgotten,
        "settings",
        "the setting 'decay' is not stored in an attribute: store its resolved value under its name",
    ),
    (
        ArraySetting,
        "settings",
        "the setting 'decay' is stored as array([0.5]): it must be a bool, int, finite float, str or None",
    ),
    (
        InfiniteSetting,
        "settings",
        "the setting 'decay' is stored as inf: it must be a bool, int, finite float, str or None",
    ),
    (Drifting, "settings", "'decay' was 0.25 and is 0.125 after it is built again from params()"),
    (AcceptsGamma, "bad_settings", "gamma = -1 was accepted: it must raise UsageError"),
    (
        AssertsBound,
        "bad_settings",
        "norm_bound = 0 raised ZeroDivisionError: norm_bound: invalid settings must raise UsageError",
    ),
    (Talkative, "bad_settings", "gamma = -1 raised an error of several lines: a UsageError must be one line"),
    (NeverLearns, "verbs", "learn contains yield, so a call would not execute it; it must be a plain method"),
    (Awaited, "verbs", "act is async, so a call would not execute it; it must be a plain method"),
    (WithoutTheBit, "verbs", "learn takes (context, decision): it must take (context, decision, correct)"),
    (
        SharesAnArray,
        "own_state",
        "seen belongs to the class, which all instances share, and changed: create it in the constructor",
    ),
    (
        SharesNested,
        "own_state",
        "seen belongs to the class, which all instances share, and changed: create it in the constructor",
    ),
    (GlobalDraws, "seeds", "two runs from one seed differ at round 0: all randomness must come from the argument rng"),
    (WritesOnAct, "inputs", "act changed the context at round 0: inputs must not be changed"),
    (WritesOnLearn, "inputs", "learn changed the context at round 0: inputs must not be changed"),
    (
        WritesRegardless,
        "inputs",
        "raised ValueError: assignment destination is read-only (an array that is passed in must not be changed: "
        "copy it first)",
    ),
    (
        KeepsContext,
        "inputs",
        "overwriting the caller's context changed round 2: copy the parts of a context that are stored",
    ),
    (
        LosesInPickle,
        "pickling",
        "pickled and unpickled after 30 rounds, the run differs 2 rounds later: everything that changes must be in the "
        "state",
    ),
    (
        LosesInFile,
        "saving",
        "saved and loaded after 30 rounds, the run differs 1 rounds later: everything that changes must be in the "
        "state",
    ),
    (
        NoUnit,
        "bounds",
        "bound(1) is 2 but bound_unit is '': it must be 'nats', 'bits' or a part of them such as '0.5 bits'",
    ),
    (NegativeBound, "bounds", "bound(1) is -1.0: it must be None or a number of at least 0"),
    (CertificateNone, "bounds", "certificate() is None: it must be a float, or NaN without a certificate"),
    (PlainTuple, "decisions", "at round 0 act returned a tuple: it must return a Decision(action, probabilities)"),
    (FloatAction, "decisions", "at round 0 the action is np.float64(2.0): it must be an int or a numpy integer"),
    (OutOfRange, "decisions", "at round 0 the action is 3: it must lie in 0 ... 2"),
    (
        WrongShape,
        "decisions",
        "at round 0 the probabilities are array([0.25, 0.25, 0.25, 0.25]): they must be a float64 array of shape (3,)",
    ),
    (Negative, "decisions", "at round 0 the probabilities are [ 1.5 -0.5  0. ]: they must be finite and 0 or above"),
    (NotOne, "decisions", "at round 0 the probabilities sum to 1.25: they must sum to 1"),
    (Impossible, "decisions", "at round 0 the action 2 has probability 0: it must be drawn from the probabilities"),
    (
        NoCoin,
        "decisions",
        "at round 0 explored is None: it must be a bool, or the class must set explores = False",
    ),
    (
        SecretCoin,
        "decisions",
        "at round 0 explored is False but the class sets explores = False: it must be None",
    ),
    (
        ThreeUniforms,
        "two_uniforms",
        "act at round 0 did not draw exactly two uniforms: call rng.random(2) once on every branch",
    ),
    (
        DrawsInLearn,
        "two_uniforms",
        "learn at round 0 drew from the generator: other random numbers need a separate child generator (rng.spawn)",
    ),
    (
        AfterTheDraw,
        "true_probabilities",
        "the probabilities depend on the round's two uniforms: they must not depend on the draw",
    ),
    (
        SharedProbabilities,
        "decisions_are_kept",
        "the next act overwrote an earlier decision: probabilities and payload must be separate arrays in each round",
    ),
    (
        Rewrites,
        "learn_keeps_the_answer",
        "learn at round 0 overwrote the probabilities of its decision: they must be a separate array",
    ),
    (
        Scratch,
        "late_feedback",
        "learn depends on the context of a later act: store what it needs of its round in the payload, "
        "or compute it again",
    ),
    (
        Impatient,
        "late_feedback",
        "with late or missing feedback, round 4 raised RuntimeError: no feedback for so long: learn uses its arguments "
        "only",
    ),
    (
        AsksForTheLabel,
        "only_the_bit",
        "learn takes (context, decision, correct, label): it must take exactly (context, decision, correct)",
    ),
    (OtherPath, "both_paths", "play_block and act/learn differ at round 7: both paths must choose the same actions"),
    (WrongHits, "both_paths", "play_block reports wrong values of correct: correct must be (action == label)"),
    (
        WrongProbability,
        "both_paths",
        "play_block reports other probabilities of the true label than act: both paths must agree",
    ),
    (WrongExplored, "both_paths", "play_block reports other explored rounds than act: both paths must agree"),
]


@pytest.mark.parametrize(("subject", "name", "message"), BROKEN, ids=lambda v: getattr(v, "__name__", None))
def test_a_broken_agent_is_told_what_is_wrong(subject: Any, name: str, message: str) -> None:
    result = outcome(subject, name)
    assert (result.status, result.reason) == ("failed", message)


def test_a_growing_memory_is_seen() -> None:
    result = outcome(Remembers, "bounded_memory")
    assert result.status == "failed"
    assert result.reason.startswith("the state takes ")
    assert result.reason.endswith("after 400: memory must not grow with T (or excluded_checks must give the reason)")


def test_false_probabilities_are_seen() -> None:
    result = outcome(Liar, "true_probabilities")
    assert result.status == "failed"
    assert result.reason.endswith(
        "but its probability is 0.333: report the probabilities from which the action is drawn"
    )


def test_labels_that_leak_are_seen() -> None:
    result = outcome(Peeks, "only_the_bit")
    assert result.status == "failed"
    assert result.reason.startswith("other wrong labels before round 5")
    assert result.reason.endswith("changed the action there: learn may use the bit only")


@pytest.mark.parametrize("rounds", [700, 999])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda d: d._replace(probabilities=d.probabilities * np.nan), "they must be finite and 0 or above"),
        (lambda d: d._replace(probabilities=d.probabilities / 0.0), "they must be finite and 0 or above"),
        (lambda d: d._replace(probabilities=d.probabilities - 0.2), "they must be finite and 0 or above"),
        (lambda d: d._replace(probabilities=0.9 * d.probabilities), "they must sum to 1"),
        (lambda d: d._replace(action=3), "it must lie in 0 ... 2"),
        (lambda d: None, "it must return a Decision"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_an_answer_that_is_wrong_after_many_rounds_is_seen(rounds: int, answer: Any, said: str) -> None:
    class Weary(Good):
        def act(self, context: Any) -> Any:
            decision = super().act(context)
            return answer(decision) if self.state.setdefault("t", 0) == rounds else decision

        def learn(self, context: Any, decision: Decision, correct: bool) -> None:
            super().learn(context, decision, correct)
            self.state["t"] += 1

    result = outcome(Weary, "decisions")
    assert (result.status, result.reason.startswith(f"at round {rounds} ")) == ("failed", True)
    assert said in result.reason


def test_every_check_has_a_broken_subject() -> None:
    apart = {"bounded_memory", "true_probabilities", "only_the_bit"}  # the three tests above
    assert {check.name for check in check_agent(Good)} == {name for _, name, _ in BROKEN} | apart


# ----------------------------------------------------------------------------------------------------------- exclusions


def test_a_declared_exclusion_is_reported_with_its_reason() -> None:
    result = outcome(RemembersKnowingly, "bounded_memory")
    assert (result.status, result.reason) == ("excluded", "keeps every first feature on purpose")


@pytest.mark.parametrize(
    ("exclusions", "message"),
    [
        (
            {"bounded_memory": " "},
            "excluded_checks gives no reason for 'bounded_memory': an exclusion needs a reason",
        ),
        ({"speed": "slow"}, "excluded_checks names 'speed': it must be one of metadata, settings, bad_settings, "),
    ],
)
def test_a_malformed_exclusion_fails(exclusions: dict[str, str], message: str) -> None:
    subject = type("Odd", (Good,), {"excluded_checks": exclusions})
    [result] = run_checks(subject)
    assert (result.name, result.status) == ("construction", "failed")
    assert result.reason.startswith(message)


def test_numpy_integers_are_actions() -> None:
    assert {result.status for result in run_checks(NumpyAction)} <= {"passed", "excluded"}


class OnlyTwo(Banditron):
    """Plays blocks, and meets two classes only."""

    id = "test-only-two"

    def __init__(self, problem: Problem, rng: Any, *, gamma: float = 0.3) -> None:
        if problem.n_classes > 2:
            raise IncompatibleError("only two classes")
        super().__init__(problem, rng, gamma=gamma)


def test_of_two_classes_there_is_no_other_wrong_label() -> None:
    result = outcome(OnlyTwo, "only_the_bit")
    assert (result.status, result.reason) == ("excluded", "with K = 2 there is no other wrong label")
    probe = player_probe(OnlyTwo, agent_checks)
    assert (probe.problem, probe.note) == (Problem(5, 2, 2.0, 400), "probed with K = 2: only two classes")
