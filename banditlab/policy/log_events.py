"""The event log of a policy, read for evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

import numpy as np

from banditlab.errors import UsageError
from banditlab.policy.container import Parts, refuse_strangers, unpacked
from banditlab.policy.container import read as read_policy
from banditlab.policy.events import ANSWERED, CLOSED, DECIDED, NEVER, Decided
from banditlab.policy.logged import CHUNK, Floats, Part, Source

NO_ANSWER = -1
WITHOUT_ANSWER = (
    "{left:,} of {n:,} decisions have no answer, or no context any more, and are left out: the value is that of all decisions "
    "only if being answered depends on neither action nor reward"
)


class AnsweredDecisions:
    """The answered decisions of an event log, with its policy and the names of its actions; errors are those of `EventLog`.

    Parameters
    ----------
    address
        As in `Policy.resume`.
    """

    def __init__(self, address: str) -> None:
        from banditlab.policy.log import EventLog

        self.address = address
        with closing(EventLog(address, write=False)) as reader:
            self.policy = unpacked(reader.snapshot()[1], reader.source)
            self.names, last = reader.names(self.policy.core.classes), reader.last()[0]
            seq, generation = reader.numbers(DECIDED, "seq", "generation")
            self.decisions, decided = len(seq), np.zeros(last + 1, np.bool_)
            decided[seq[generation != NEVER].astype(np.intp)] = True
            self.bits = np.full(last + 1, NO_ANSWER, np.int8)
            """(places + 1,) the rewards by the places of their decisions."""
            for kind in (ANSWERED, CLOSED):
                answers = reader.numbers(kind, "decision", "correct")
                places, correct = answers[:, answers[0] <= last]
                self.bits[places.astype(np.intp)] = correct
        self.bits[~decided] = NO_ANSWER
        self.rounds = int(np.count_nonzero(self.bits != NO_ANSWER))
        if self.rounds < 2:
            raise UsageError(f"{address}: fewer than two decisions have an answer")
        left = self.decisions - self.rounds
        self.notes = [WITHOUT_ANSWER.format(left=left, n=self.decisions)] if left else []

    def __iter__(self) -> Iterator[Decided]:
        """Yield the decisions in their order."""
        from banditlab.policy.log import EventLog

        with closing(EventLog(self.address, write=False)) as reader:
            for event in reader.events(reader.head().pruned):
                if isinstance(event, Decided) and self.bits[event.seq] != NO_ANSWER:
                    yield event

    def propensities(self, decision: Decided) -> tuple[Floats, Floats]:
        """Return the probabilities (K,) of a decision, and 1.0 for each action that was allowed."""
        among, K = decision.record.probabilities, len(self.names)
        able = np.ones(len(among)) if decision.mask is None else decision.mask
        return np.pad(among / among.sum(), (0, K - len(among))), np.pad(able.astype(np.float64), (0, K - len(able)))


def read_events(address: str, policy: str | None) -> Source:
    """Return a policy's log, or raise a UsageError or LogError; see `banditlab.policy.logged.Part` for the policy."""
    other = read_policy(policy) if policy not in (None, "uniform") else None
    log = AnsweredDecisions(address)
    if other is not None:
        refuse_strangers(log.policy, other, f"--policy {policy}")
    decisions = iter(log)
    chunks = iter(lambda: list(islice(decisions, CHUNK)), [])
    parts = (_part(log, some, policy, other) for some in chunks)
    return Source([*map(str, log.names)], log.rounds, parts, Counter(), log.notes, learning=True)


def _part(log: AnsweredDecisions, decisions: list[Decided], policy: str | None, other: Parts | None) -> Part:
    p, able = map(np.array, zip(*map(log.propensities, decisions), strict=True))
    X = np.array([each.record.context for each in decisions])
    action = np.array([each.record.action for each in decisions], np.float64)
    target = able / able.sum(axis=1, keepdims=True) if policy == "uniform" else None
    if other is not None:
        target, known = np.zeros_like(able), len(other.core.classes)
        for row, x, mask in zip(target, X, able[:, :known] > 0.0, strict=True):
            row[:known] = other.core.choose(x, None if mask.all() else mask).probabilities
    return Part(action, log.bits[[each.seq for each in decisions]].astype(np.float64), p, X, target)
