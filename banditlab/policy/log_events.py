"""The event log of a policy, read for evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

import numpy as np

from banditlab.errors import UsageError
from banditlab.offpolicy.log import Floats, Log
from banditlab.policy.container import unpacked
from banditlab.policy.events import Decided
from banditlab.policy.log import EventLog
from banditlab.policy.logged import OBJECTS, Source


class AnsweredDecisions:
    """The decisions with feedback in an event log, with its policy and action names; raises the errors of `EventLog`.

    Parameters
    ----------
    address
        As in `Policy.resume`.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        with closing(EventLog(address, write=False)) as reader:
            self.policy = unpacked(reader.snapshot()[1], reader.source)
            self.names = reader.names(self.policy.core.classes)
            decisions, self.rounds = reader.count()
        if self.rounds < 2:
            raise UsageError(f"{address}: fewer than two decisions have feedback")
        left = decisions - self.rounds
        self.notes = [
            f"{left:,} of {decisions:,} decisions have no answer, or no context any more, and are left out: the value is that "
            "of all decisions only if being answered depends on neither action nor reward"
        ] * (left > 0)

    def __iter__(self) -> Iterator[tuple[Decided, bool, Floats, Floats]]:
        """Yield the decisions in order, each with its reward, its probabilities (K,), and an array (K,) that is 1.0 for
        the allowed actions and else 0.0. Decisions that were answered after this object was created are left out.
        """
        K = len(self.names)
        with closing(EventLog(self.address, write=False)) as reader:
            for event, right in islice(reader.answered(), self.rounds):
                among = event.record.probabilities
                able = np.ones(len(among)) if event.mask is None else event.mask.astype(np.float64)
                more = (0, K - len(among))
                yield event, right, np.pad(among / among.sum(), more), np.pad(able, more)


def read_events(address: str) -> Source:
    """Return a policy's log, or raise a UsageError or LogError."""
    log = AnsweredDecisions(address)
    decisions = iter(log)
    chunks = iter(lambda: list(islice(decisions, OBJECTS)), [])
    return Source(log.names, log.rounds, map(_part, chunks), Counter(), log.notes, learning=True, policy=log.policy)


def _part(decisions: list[tuple[Decided, bool, Floats, Floats]]) -> tuple[Log, Floats, Floats]:
    events, *columns = zip(*decisions, strict=True)
    rewards, p, able = (np.array(column, np.float64) for column in columns)
    X = np.array([each.record.context for each in events])
    return Log([each.record.action for each in events], rewards, p, able / able.sum(axis=1, keepdims=True)), X, X
