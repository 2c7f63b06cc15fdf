"""Checks of an agent: true probabilities, exactly two uniforms per round, and one bit of feedback (or the label)."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from banditlab.checks._core import CheckExcluded, fail, one_line
from banditlab.checks._players import AFTER, BEFORE
from banditlab.checks._probe import (
    ENDURANCE,
    LONG,
    ROUNDS,
    PlayerProbe,
    clone,
    first_difference,
    planted_stream,
    play,
    tell,
)
from banditlab.numerics.read_only import read_only
from banditlab.players.actor import Trace
from banditlab.players.label_agent import LabelAgent
from banditlab.players.player import Player
from banditlab.problem import Decision

DRAWS = 400
"""Number of draws from one state, by which the reported probabilities are tested."""
DELAY = 5
"""The delay of feedback, in rounds, in the check on delays."""


def _stream(probe: PlayerProbe) -> tuple[Any, Any]:
    return probe.contexts[:ROUNDS], probe.labels[:ROUNDS]


def decisions(probe: PlayerProbe) -> None:
    """act returns a Decision: an action in 0 ... K-1, and probabilities that sum to 1 and are above 0 for the
    action.
    """
    problem = replace(probe.problem, horizon=ENDURANCE)
    X, y = planted_stream(problem, ENDURANCE)
    agent: Any = probe.subject(problem, np.random.default_rng(1))
    for t in range(ENDURANCE):
        decision = agent.act(read_only(X[t]))
        if wrong := _wrong(decision, problem.n_classes):
            fail(f"at round {t} {wrong}")
        explored = decision.explored
        if agent.explores and not isinstance(explored, bool):
            fail(f"at round {t} explored is {explored!r}: it must be a bool, or the class must set explores = False")
        if not agent.explores and explored is not None:
            fail(f"at round {t} explored is {explored!r} but the class sets explores = False: it must be None")
        tell(agent, read_only(X[t]), decision, y[t])


def _wrong(decision: Any, K: int) -> str:
    """Return what is wrong with a decision and what the contract requires, or ""."""
    if not isinstance(decision, Decision):
        return f"act returned a {type(decision).__name__}: it must return a Decision(action, probabilities)"
    a, p = decision.action, decision.probabilities
    if isinstance(a, bool) or not isinstance(a, int | np.integer):
        return f"the action is {a!r}: it must be an int or a numpy integer"
    if not 0 <= a < K:
        return f"the action is {a}: it must lie in 0 ... {K - 1}"
    if not isinstance(p, np.ndarray) or p.shape != (K,) or p.dtype != np.float64:
        return f"the probabilities are {p!r}: they must be a float64 array of shape ({K},)"
    if not (np.isfinite(p).all() and (p >= 0).all()):
        return f"the probabilities are {p}: they must be finite and 0 or above"
    if not math.isclose(p.sum(), 1.0, abs_tol=1e-9):
        return f"the probabilities sum to {p.sum():.9g}: they must sum to 1"
    if p[a] <= 0:
        return f"the action {a} has probability 0: it must be drawn from the probabilities"
    return ""


def two_uniforms(probe: PlayerProbe) -> None:
    """Each act draws exactly two uniforms from the generator, and learn draws none."""
    agent = probe.make()
    X, y = _stream(probe)
    for t in range(ROUNDS):
        twin = clone(agent).rng
        twin.random(2)
        decision = agent.act(read_only(X[t]))
        if agent.rng.bit_generator.state != twin.bit_generator.state:
            fail(f"act at round {t} did not draw exactly two uniforms: call rng.random(2) once on every branch")
        tell(agent, read_only(X[t]), decision, y[t])
        if agent.rng.bit_generator.state != twin.bit_generator.state:
            fail(
                f"learn at round {t} drew from the generator: other random numbers need a separate child generator "
                "(rng.spawn)"
            )


def true_probabilities(probe: PlayerProbe) -> None:
    """The action is drawn from the reported probabilities (given the agent's other random draws)."""
    agent = probe.make()
    X, y = _stream(probe)
    play(agent, X, y)
    K = probe.problem.n_classes
    counts, first = np.zeros(K), None
    for seed in range(DRAWS):
        twin = clone(agent)
        twin.rng = np.random.default_rng(seed)  # child generators made in its constructor do not change
        decision = twin.act(read_only(probe.contexts[ROUNDS]))
        p = np.array(decision.probabilities)
        if first is None:
            first = p
        elif not np.array_equal(p, first):
            fail("the probabilities depend on the round's two uniforms: they must not depend on the draw")
        counts[decision.action] += 1
    assert first is not None
    # Five standard deviations and one count: correct probabilities fail once in a million, and the seeds are fixed.
    off = np.abs(counts - DRAWS * first) - (5.0 * np.sqrt(DRAWS * first * (1.0 - first)) + 1.0)
    if (off > 0).any():
        k = int(np.argmax(off))
        fail(
            f"class {k} was chosen {counts[k]:.0f} times in {DRAWS} draws, but its probability is {first[k]:.3g}: "
            "report the probabilities from which the action is drawn"
        )


def decisions_are_kept(probe: PlayerProbe) -> None:
    """Later rounds do not change a returned decision, because its feedback may be late."""
    agent = probe.make()
    X, y = _stream(probe)
    kept = []
    for t in range(ROUNDS):
        decision = agent.act(read_only(X[t]))
        kept.append((decision, clone(decision)))
        tell(agent, read_only(X[t]), clone(decision), y[t])  # another object, because the next check is about learn
    if not all(_same_decision(old, before) for old, before in kept):
        fail(
            "the next act overwrote an earlier decision: probabilities and payload must be separate arrays in each round"
        )


def learn_keeps_the_answer(probe: PlayerProbe) -> None:
    """learn does not change the probabilities of its decision."""
    agent = probe.make()
    X, y = _stream(probe)
    for t in range(ROUNDS):
        decision = agent.act(read_only(X[t]))
        before = np.array(decision.probabilities)
        tell(agent, read_only(X[t]), decision, y[t])
        if not np.array_equal(decision.probabilities, before):
            fail(f"learn at round {t} overwrote the probabilities of its decision: they must be a separate array")


def _same_decision(one: Decision, other: Decision) -> bool:
    if one.action != other.action or not np.array_equal(one.probabilities, other.probabilities):
        return False
    if isinstance(one.payload, np.ndarray):
        return np.array_equal(one.payload, other.payload, equal_nan=True)
    return True


def late_feedback(probe: PlayerProbe) -> None:
    """learn uses only its arguments and the state; other calls of act may come before it, and bits may be late."""
    X, y = _stream(probe)
    one, other = (_in_between(probe.make(), X, y, probe.contexts[shift:]) for shift in (ROUNDS, 2 * ROUNDS))
    if first_difference(one, other) is not None:
        fail(
            "learn depends on the context of a later act: store what it needs of its round in the payload, "
            "or compute it again"
        )
    _play_with_delay(probe.make(), X, y, probe.problem.n_classes)


def _in_between(agent: Any, X: Any, y: Any, others: Any) -> list[tuple[Any, Any]]:
    """Run rounds with one more `act`, at another context, between each `act` and its `learn`; return the decisions."""
    played = []
    for x, label, another in zip(X, y, others):
        decision = agent.act(read_only(x))
        played.append((decision.action, np.array(decision.probabilities)))
        agent.act(read_only(another))
        tell(agent, read_only(x), decision, label)
    return played


def _play_with_delay(agent: Any, X: Any, y: Any, K: int) -> None:
    """Run rounds whose feedback arrives `DELAY` rounds late, and for every third round never."""
    waiting: list[tuple[int, Decision]] = []
    for t in range(len(X)):
        try:
            decision = agent.act(read_only(X[t]))
            waiting.append((t, decision))
            if len(waiting) > DELAY:
                s, old = waiting.pop(0)
                if s % 3:
                    tell(agent, read_only(X[s]), old, y[s])
        except Exception as error:
            fail(f"with late or missing feedback, round {t} raised {one_line(error)}: learn uses its arguments only")
        problem = _wrong(decision, K)
        if problem:
            fail(f"with late or missing feedback, at round {t} {problem}")


def only_the_bit(probe: PlayerProbe) -> None:
    """The agent observes only whether it was right: labels for which wrong actions stay wrong change no action."""
    agent = probe.make()
    names = [p.name for p in inspect.signature(type(agent).learn).parameters.values()][1:]
    if len(names) != 3:
        fail(f"learn takes ({', '.join(names)}): it must take exactly (context, decision, correct)")
    K = probe.problem.n_classes
    if K == 2 or not hasattr(agent, "play_block"):
        reason = "with K = 2 there is no other wrong label" if K == 2 else "no compiled path: the loop passes the bit"
        raise CheckExcluded(reason)
    y = probe.labels
    actions = _played(agent, probe.contexts, y).action
    other = np.where(actions == y, y, _another(y, actions, K))
    replaced = _played(probe.make(), probe.contexts, other).action
    if not np.array_equal(actions, replaced):
        t = int(np.argmax(actions != replaced))
        fail(f"other wrong labels before round {t} changed the action there: learn may use the bit only")


def _another(y: Any, actions: Any, K: int) -> Any:
    """Return other labels: in each round with a wrong action, a class that is neither the true label nor the action."""
    other = (y + 1) % K
    return np.where(other == actions, (other + 1) % K, other)


def _played(agent: Any, X: Any, y: Any, cut: int = 0) -> Any:
    trace = Trace.empty(len(y))
    for part in (slice(0, cut), slice(cut, None)):
        if len(y[part]):
            agent.play_block(read_only(X[part]), y[part], trace.part(part))
    return trace


def both_paths(probe: PlayerProbe) -> None:
    """For the same seed and any block sizes, the compiled path chooses the same actions as act and learn."""
    if not hasattr(probe.make(), "play_block"):
        raise CheckExcluded("has no compiled path")
    X, y = probe.contexts, probe.labels
    steps = play(probe.make(), X, y)
    step_path = np.array([decision.action for decision in steps])
    for cut in (0, LONG // 3):
        trace = _played(probe.make(), X, y, cut)
        if not np.array_equal(trace.action, step_path):
            t = int(np.argmax(trace.action != step_path))
            fail(f"play_block and act/learn differ at round {t}: both paths must choose the same actions")
        if not np.array_equal(trace.correct, step_path == y):
            fail("play_block reports wrong values of correct: correct must be (action == label)")
        expected = np.array([decision.probabilities[k] for decision, k in zip(steps, y, strict=True)])
        if not np.allclose(trace.p_true, expected, rtol=0.0, atol=1e-9):
            fail("play_block reports other probabilities of the true label than act: both paths must agree")
        explored = [bool(decision.explored) for decision in steps]
        if probe.cls.explores and not np.array_equal(trace.explored, explored):
            fail("play_block reports other explored rounds than act: both paths must agree")


def told_the_label(probe: PlayerProbe) -> None:
    """learn receives the label, and the label of a round changes no action up to that round."""
    agent = probe.make()
    names = [p.name for p in inspect.signature(type(agent).learn).parameters.values()][1:]
    if len(names) != 3:
        fail(f"learn takes ({', '.join(names)}): it must take exactly (context, decision, label)")
    if not hasattr(agent, "play_block"):
        raise CheckExcluded("no compiled path: labels are only passed after the action")
    X, y, K = probe.contexts[:ROUNDS], probe.labels[:ROUNDS], probe.problem.n_classes
    actions = _played(agent, X, y).action
    for t in range(0, ROUNDS, 7):
        other = y.copy()
        other[t:] = (y[t:] + 1) % K
        if not np.array_equal(_played(probe.make(), X, other).action[: t + 1], actions[: t + 1]):
            fail(f"other labels from round {t} on changed an action up to it: the label is revealed after the action")


_ANSWERS = (
    two_uniforms,
    true_probabilities,
    decisions_are_kept,
    learn_keeps_the_answer,
    late_feedback,
)
AGENT = (*BEFORE, decisions, *AFTER, *_ANSWERS, only_the_bit, both_paths)
LABEL_AGENT = (*BEFORE, decisions, *AFTER, *_ANSWERS, told_the_label, both_paths)


def agent_checks(cls: type[Player]) -> tuple[Callable[[PlayerProbe], None], ...]:
    """Return the checks of an agent by its feedback: only a `LabelAgent` may observe the label."""
    return LABEL_AGENT if issubclass(cls, LabelAgent) else AGENT
