"""The event log of a policy, read for evaluation."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import NamedTuple

import numpy as np

from banditlab.errors import LogError, UsageError
from banditlab.policy.container import Parts, refuse_strangers, unpacked
from banditlab.policy.container import read as read_policy
from banditlab.policy.events import ANSWERED, CHANGED, CLOSED, DECIDED, NEVER, from_bytes
from banditlab.policy.logged import ALLOWED, CHUNK, Floats, Part, Source
from banditlab.policy.status import names_of
from banditlab.policy.unanswered import matched

WITHOUT_ANSWER = (
    "{left:,} of {n:,} decisions have no answer, or no context any more, and are left out: the value is that of all decisions "
    "only if being answered depends on neither action nor reward"
)


class Decision(NamedTuple):
    """An answered decision of an event log, among K actions."""

    id: str
    at: float
    action: int
    able: Floats
    """(K,), 1 where an action was allowed."""
    propensities: Floats
    context: Floats
    held: int
    """Whether it was held back."""
    reward: float


class AnsweredDecisions:
    """The answered decisions of an event log, or a LogError; the names of its actions and its policy.

    Parameters
    ----------
    address
        As in `Policy.resume`.
    """

    def __init__(self, address: str) -> None:
        import sqlalchemy as sa

        from banditlab.policy.log import EVENTS, EventLog

        e, self.address = EVENTS.c, address
        with closing(EventLog(address, write=False)) as reader:
            self.policy = unpacked(reader.snapshot()[1], reader.source)
            changes = reader.rows(sa.select(e.correct, e.name).where(e.kind == CHANGED).order_by(e.seq))
            given = np.hstack([reader.numbers(kind, "seq", "at", "decision", "correct") for kind in (ANSWERED, CLOSED)])
            seq, generation = reader.numbers(DECIDED, "seq", "generation")
        self.names = names_of(self.policy.core.classes, changes)
        bits = matched(seq, given).correct
        answered = ~np.isnan(bits) & (generation != NEVER)
        self._bits = dict(zip(seq[answered].tolist(), bits[answered].tolist(), strict=True))
        self.rounds, self.decisions = len(self._bits), len(seq)
        if self.rounds < 2:
            raise UsageError(f"{address}: fewer than two decisions have an answer")

    def notes(self) -> list[str]:
        """Return what is to be known of the decisions left out."""
        left = self.decisions - self.rounds
        return [WITHOUT_ANSWER.format(left=left, n=self.decisions)] if left else []

    def chunks(self) -> Iterator[list[Decision]]:
        """Yield the decisions in parts, in their order."""
        import sqlalchemy as sa

        from banditlab.policy.log import EVENTS, EventLog

        e = EVENTS.c
        wanted = sa.select(e.seq, e.id, e.at, e.action, e.allowed, e.distribution, e.context, e.held)
        with closing(EventLog(self.address, write=False)) as reader:
            rows = (row for row in reader.each(wanted.where(e.kind == DECIDED).order_by(e.seq)) if row[0] in self._bits)
            while some := list(islice(rows, CHUNK)):
                try:
                    yield [self._decision(*row) for row in some]
                except ValueError as error:
                    raise LogError(
                        f"{self.address}: a decision is damaged ({error}): restore the log from a copy"
                    ) from error

    def _decision(
        self, seq: int, id_: str, at: float, action: int, allowed: bytes, played: bytes, context: bytes, held: int
    ) -> Decision:
        p, able = np.zeros((2, len(self.names)))
        among = from_bytes(bytes(played))
        known = len(among)  # the classes at that time
        p[:known] = among / among.sum()
        able[:known] = 1 if allowed is None else np.unpackbits(np.frombuffer(allowed, np.uint8), count=known)
        return Decision(id_, at, action, able, p, from_bytes(bytes(context)), held, self._bits[seq])


def read_events(address: str, policy: str) -> Source:
    """Return a policy's log, or raise a UsageError or LogError; parameters are those of `evaluate_log`."""
    other = None
    if policy not in ("uniform", "best-single"):
        if not os.path.isfile(policy):
            raise UsageError(f"--policy {policy}: {ALLOWED.format(more=', or a policy')}'s file")
        other = read_policy(policy)
    log = AnsweredDecisions(address)
    if other is not None:
        refuse_strangers(log.policy, other, f"--policy {policy}")
    parts = (_part(some, policy, other) for some in log.chunks())
    return Source([*map(str, log.names)], log.rounds, parts, Counter(), log.notes(), learning=True)


def _part(rows: list[Decision], policy: str, other: Parts | None) -> Part:
    _, _, action, able, p, X, _, reward = map(np.array, zip(*rows, strict=True))
    return Part(action.astype(np.float64), reward, p, X, _target(policy, other, X, able))


def _target(policy: str, other: Parts | None, X: Floats, able: Floats) -> Floats | None:
    if other is None:
        return able / able.sum(axis=1, keepdims=True) if policy == "uniform" else None
    target = np.zeros_like(able)
    known = len(other.core.classes)
    for row, x, mask in zip(target, X, able[:, :known] > 0.0, strict=True):
        row[:known] = other.core.choose(x, None if mask.all() else mask).probabilities
    return target
