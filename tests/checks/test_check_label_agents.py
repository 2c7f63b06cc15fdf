"""The checks of label agents, each tried on an agent that breaks that promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from banditlab.checks import CheckFailed, check_agent, run_checks
from banditlab.checks._agents import AGENT, LABEL_AGENT, agent_checks
from banditlab.errors import IncompatibleError
from banditlab.players.agent import Trace
from banditlab.players.label_agent import LabelAgent
from banditlab.problem import Decision, Problem


class Good(LabelAgent):
    """Plays the class seen most often so far, in plain Python."""

    id = "test-told"
    summary = "plays the class seen most often"
    reference = "made here"

    def __init__(self, problem: Any, rng: Any) -> None:
        super().__init__(problem, rng)
        self.counts = np.zeros(problem.n_classes)

    def act(self, context: Any) -> Decision:
        self.rng.random(2)
        k = int(np.argmax(self.counts))
        return Decision(k, np.eye(len(self.counts))[k])

    def learn(self, context: Any, decision: Decision, label: int) -> None:
        self.counts[label] += 1

    def play_block(self, X: Any, y: Any, trace: Trace) -> None:
        for t, (x, label) in enumerate(zip(X, y, strict=True)):
            decision = self.act(x)
            trace.action[t], trace.correct[t] = decision.action, decision.action == label
            trace.p_true[t], trace.explored[t] = decision.probabilities[label], False
            self.learn(x, decision, int(label))


class Peeks(Good):
    """Its blocks learn a label before they play."""

    def play_block(self, X: Any, y: Any, trace: Trace) -> None:
        for t, (x, label) in enumerate(zip(X, y, strict=True)):
            self.learn(x, None, int(label))
            decision = self.act(x)
            trace.action[t], trace.correct[t] = decision.action, decision.action == label
            trace.p_true[t], trace.explored[t] = decision.probabilities[label], False


class Wants(Good):
    def learn(self, context: Any, decision: Decision, label: int, hint: float = 0.0) -> None:
        super().learn(context, decision, label)


class SaysBit(Good):
    feedback = "bit"


class Draws(Good):
    def learn(self, context: Any, decision: Decision, label: int) -> None:
        self.rng.random()
        super().learn(context, decision, label)


def test_a_good_one_passes_and_the_bit_s_check_is_not_its() -> None:
    results = {result.name: result.status for result in run_checks(Good)}
    assert "failed" not in results.values()
    assert results["told_the_label"] == results["both_paths"] == "passed"
    assert "only_the_bit" not in results
    assert agent_checks(Good) is LABEL_AGENT
    assert agent_checks(object) is AGENT  # whoever is no LabelAgent is held to the bit


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


class PeeksOfTwo(PeeksAtSeven):
    """The same, with two classes only."""

    def __init__(self, problem: Problem, rng: Any) -> None:
        if problem.n_classes > 2:
            raise IncompatibleError("only two classes")
        super().__init__(problem, rng)


BROKEN = [
    (PeeksAtSeven, "told_the_label", "other labels from round 7 on changed an action up to it"),
    (PeeksOfTwo, "told_the_label", "changed an action up to it: the label is revealed after"),
    (
        Peeks,
        "told_the_label",
        "other labels from round 0 on changed an action up to it: the label is revealed after the",
    ),
    (
        Wants,
        "told_the_label",
        r"learn takes \(context, decision, label, hint\): it must take exactly \(context, decision, label",
    ),
    (SaysBit, "metadata", "feedback is 'bit': subclasses of Agent observe the bit, all others the label"),
    (Draws, "two_uniforms", "learn at round 0 drew from the generator"),
]


@pytest.mark.parametrize(("subject", "name", "message"), BROKEN)
def test_broken_ones_are_found_out(subject: Any, name: str, message: str) -> None:
    [check] = [check for check in check_agent(subject) if check.name == name]
    with pytest.raises(CheckFailed, match=message):
        check()
