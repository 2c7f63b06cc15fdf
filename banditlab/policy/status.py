"""`banditlab status`: decisions, feedback and its delay, mistakes, drift and calibration from a policy's log."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from banditlab.errors import LogError
from banditlab.policy.choice import Held, Name
from banditlab.policy.confidence import rise, sequence
from banditlab.policy.container import opened
from banditlab.policy.events import ANSWERED, CLOSED, DECIDED, from_bytes
from banditlab.policy.holdback import Holdback, compared
from banditlab.policy.log import EVENTS, EventLog
from banditlab.policy.unanswered import UNEQUAL, WINDOW, Floats, Unanswered, checked, counted, unequal

LAST = 100_000
"""The number of latest decisions whose distributions are read."""
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
"""The edges of the intervals of the action's probability in which decisions are counted."""
DISHONEST = 4.5
"""The number of standard deviations beyond which a class's count is far from the sum of its probabilities."""
LEAST = 30
"""The least number of feedbacks for a warning that all of them are positive."""
ANSWERED_ONLY = 'only answered decisions count; if no answer means a wrong action, set unanswered = "wrong"'


class Plays(NamedTuple):
    """How often a class was chosen, and the sum of its probabilities."""

    name: Name
    plays: int
    expected: float
    deviation: float
    """The standard deviation of the count, given the probabilities; 0 if all were 0 or 1."""

    @property
    def far(self) -> bool:
        """Whether the count is significantly far from its expectation (anytime-valid)."""
        return abs(self.plays - self.expected) > DISHONEST * self.deviation + 1e-6


class Bin(NamedTuple):
    """The counted decisions (see `LogStatus`) whose action had a probability between `low` and `high`."""

    low: float
    high: float
    n: int
    right: float
    """The fraction of these decisions that was right; NaN if there are none."""


@dataclass(frozen=True)
class LogStatus:
    """The status of a policy's log, as `status_of_log` returns it.

    A decision is counted if its feedback arrived before its deadline or it was closed as wrong, and if no earlier
    decision still waits for feedback.

    Attributes
    ----------
    source, agent, trained
        The log, the agent's id, and data on the training (see `policy.train`).
    decisions, feedback
        Numbers of decisions and of bits of feedback, including those removed from the log (`banditlab log prune`).
    imputed, unknown
        Numbers of imputed fields in the rows, and of fields with a category that did not occur in training.
    rule, closed
        The rule for decisions without feedback, and the number of decisions closed as wrong.
    refused
        Number of requests that the server rejected, which is stored when the log is closed.
    left
        Number of decisions in the log. All following attributes refer to these decisions.
    since, until
        Times of the first and the last decision, in seconds since 1970-01-01 UTC; NaN if there are none.
    waiting
        Number of decisions whose feedback may still arrive in time.
    left_out
        Number of decisions without feedback in time; see `banditlab.policy.unanswered`.
    delays
        (n,) seconds from decision to feedback, in the order of the decisions.
    mistakes
        (m,) 1.0 for a mistake, else 0.0, for the counted decisions, in their order.
    share, low, high
        Mistake rate among the counted decisions, with a 95 % interval that holds at all times simultaneously. The
        interval is for the mean probability of a mistake, which may change. NaN if no decision is counted.
    drift
        Index in `mistakes` after which mistakes are significantly more frequent than before, or None.
    unequal
        One message for each way in which the arrival of feedback was found to depend on the decision.
    plays
        For each class, how often it was chosen among the latest decisions, and the sum of its probabilities.
    bins
        How often counted actions were right, by the probability with which they were chosen.
    holdback
        The comparison with the holdback policy; None without a holdback.
    """

    source: str
    agent: str
    trained: dict[str, Any]
    decisions: int
    feedback: int
    imputed: int
    unknown: int
    rule: Unanswered
    closed: int
    refused: int
    left: int
    since: float
    until: float
    waiting: int
    left_out: int
    delays: Floats
    mistakes: Floats
    share: float
    low: float
    high: float
    drift: int | None
    unequal: list[str]
    plays: list[Plays]
    bins: list[Bin]
    holdback: Holdback | None

    def lines(self) -> list[str]:
        """Return the status as lines of text."""
        found = [f"{self.source}: {self.agent}, {_many(self.decisions, 'decision')}{_span(self.since, self.until)}"]
        if self.imputed or self.unknown or self.refused:
            fields = f"{_many(self.imputed, 'field')} imputed, {self.unknown:,} with unknown categories"
            found.append(f"input: {fields}, {_many(self.refused, 'request')} refused")
        if not self.feedback + self.closed:
            return [*found, "feedback: none yet"]
        if self.left < self.decisions:
            removed = _many(self.decisions - self.left, "decision")
            found.append(f"removed from the log: {removed}; the following lines refer to the others")
        share = f"feedback: {self.feedback:,} of {self.decisions:,} ({self.feedback / self.decisions:.1%})"
        if len(self.delays):
            half, most, all_ = map(_seconds, np.quantile(self.delays, [0.5, 0.9, 1.0]))
            share += f", half of it within {half}, nine tenths within {most}, all within {all_}"
        found.append(share)
        found += self._counted_lines()
        if rows := self.trained.get("rows"):
            found.append(f"in training: {self.trained['mistakes'] / rows:.1%} of {rows:,} rows")
        found += self.holdback.lines() if self.holdback else []
        found += [
            f"warning: class {p.name!r} was chosen {p.plays:,} times, but its probabilities add up to "
            f"{p.expected:,.1f} +- {p.deviation:.1f}: the logged probabilities are not those of the choices"
            for p in self.plays
            if p.far
        ]
        shares = "; ".join(f"{b.low:g}-{b.high:g}: {b.right:.0%} of {b.n:,}" for b in self.bins if b.n)
        return [*found, f"right, by the probability of the action: {shares}"] if shares else found

    def _counted_lines(self) -> Iterator[str]:
        m = len(self.mistakes)
        yield (
            f"counted: {m:,} of {_many(self.left, 'decision')}, in their order up to the oldest whose answer may "
            f"still arrive in time; {self.waiting:,} are waiting"
        )
        if self.rule.treated_as == "wrong":
            yield f"closed as wrong: {_many(self.closed, 'decision')} without an answer within {self.rule.after}"
        if self.left_out:
            within = self.rule.after or f"the next {WINDOW:,} decisions"
            yield (
                f"left out: {_many(self.left_out, 'decision')} without an answer within {within}; the mistake rate is that of "
                "all decisions only if those left out are wrong as often as the others"
            )
        if m:
            yield (
                f"mistakes: {self.share:.1%} of the decisions that count, 95 % interval {self.low:.1%} ... {self.high:.1%} "
                "(holds however often you look)"
            )
        if m and self.drift is None:
            unknown = f"; unknown for the {self.left_out:,} decisions left out" if self.left_out else ""
            yield f"drift: none shown{unknown}"
        elif self.drift is not None:
            before, after = self.mistakes[: self.drift].mean(), self.mistakes[self.drift :].mean()
            yield (
                f"warning: drift: the mistake rate increased about decision {self.drift:,} of those that count, from "
                f"{before:.1%} before to {after:.1%} since; the probability of a false alarm at any time is at most 5 %"
            )
        if self.left_out and m >= LEAST and not self.mistakes.any():
            yield f"warning: all {m:,} answers are positive, and {self.left_out:,} decisions have none: {ANSWERED_ONLY}"
        yield from (f"warning: {text}: {ANSWERED_ONLY}" for text in self.unequal)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data, without data of single decisions."""
        skip = ("delays", "mistakes", "plays", "bins", "rule")
        given = {n: v for n, v in vars(self).items() if n not in skip}
        plain = {n: None if isinstance(v, float) and math.isnan(v) else v for n, v in given.items()}
        plain |= {"unanswered": self.rule.treated_as, "after": self.rule.after}
        plain |= {"holdback": self.holdback and self.holdback._asdict()}
        return plain | {"plays": [p._asdict() for p in self.plays], "bins": [b._asdict() for b in self.bins if b.n]}


def verify_log(log: str | os.PathLike[str]) -> int:
    """Verify the checksum of every event of a log, even while another process writes to it; return the number of events.

    Raises
    ------
    LogError
        The log does not exist, or is damaged; the message names the event.
    """
    with closing(EventLog(os.fspath(log), write=False)) as reader:
        return reader.verify()


def status_of_log(log: str | os.PathLike[str]) -> LogStatus:
    """Return a policy's status from its log, even while another process writes to it.

    Raises
    ------
    LogError
        The log does not exist, cannot be read or is damaged.
    """
    e = EVENTS.c
    with closing(EventLog(os.fspath(log), write=False)) as reader:
        place, data = reader.snapshot()
        head, _ = opened(data, reader.source)
        # The snapshot's counts include removed decisions.
        later = dict(reader.rows(sa.select(e.kind, sa.func.count()).where(e.seq > place).group_by(e.kind)))
        seq, at, action, p, imputed, unknown, *held_back, place, moment, bit, closed = reader.numbers(
            "seq", "at", "action", "probability", "imputed", "unknown", *Held._fields
        )
        refused, [(last,)] = reader.head().refused, reader.rows(sa.select(sa.func.max(e.at)))
        latest = sa.select(e.action, e.distribution).where(e.kind == DECIDED).order_by(e.seq.desc()).limit(LAST)
        drawn = reader.rows(latest)
        names = reader.names(head.classes)
    rule, delays = checked(*head.unanswered) or Unanswered(), (moment - at)[closed == 0.0]
    which = counted(seq, at, place, moment, last or 0.0, rule)
    correct = bit[which.places]
    mistakes = 1.0 - correct
    ends = sequence(mistakes)
    share, low, high = (float(end[-1]) if len(mistakes) else math.nan for end in ends)
    return LogStatus(
        source=reader.source,
        agent=head.agent,
        trained=head.trained.model_dump(),
        decisions=head.decisions + later.get(DECIDED, 0),
        feedback=head.answered - head.closed + later.get(ANSWERED, 0),
        rule=rule,
        closed=head.closed + later.get(CLOSED, 0),
        imputed=int(imputed.sum()),
        unknown=int(unknown.sum()),
        refused=int(refused),
        left=len(seq),
        since=float(at[0]) if len(at) else math.nan,
        until=float(at[-1]) if len(at) else math.nan,
        waiting=which.waiting,
        left_out=int(np.count_nonzero(~which.in_time)),
        delays=delays,
        mistakes=mistakes,
        share=share,
        low=low,
        high=high,
        drift=rise(mistakes),
        unequal=list(_unequal(which.in_time, action, p, names, held_back[0])),
        plays=_plays(drawn, names, reader.source),
        bins=_bins(p[which.places], correct),
        holdback=compared(held_back, p, which.places, correct),
    )


def _plays(drawn: list[tuple[Any, ...]], names: list[Name], source: str) -> list[Plays]:
    K = len(names)
    counts, sums, variances = np.zeros(K, np.int64), np.zeros(K), np.zeros(K)
    try:
        for action, data in drawn:
            p = from_bytes(bytes(data))
            counts[action] += 1
            sums[: len(p)] += p
            variances[: len(p)] += p * (1.0 - p)
    except (ValueError, IndexError) as error:
        raise LogError(f"{source}: a decision is damaged ({error}): restore the log from a copy") from error
    deviations = np.sqrt(np.maximum(variances, 0.0))
    return [Plays(*row) for row in zip(names, counts.tolist(), sums.tolist(), deviations.tolist(), strict=True)]


def _unequal(answered: NDArray[np.bool_], action: Floats, p: Floats, names: list[Name], held: Floats) -> Iterator[str]:
    """Yield messages on how the arrival of feedback depends on the decision, for decisions past their deadline."""
    n = len(answered)
    ranges = [f"{low:g}-{high:g}" for low, high in pairwise(EDGES)]
    for what, group, labels in (
        ("action", action[:n].astype(np.int64), names),
        ("probability", _places(p[:n]), ranges),
        ("policy", held[:n].astype(np.int64), ["own", "holdback"]),
    ):
        if found := unequal(answered, group):
            (most, high), (least, low) = found
            share = f"{high:.0%} of {what} {labels[most]!r}, {low:.0%} of {what} {labels[least]!r}"
            yield f"answers came for {share} (p < {UNEQUAL:g})"


def _places(p: Floats) -> NDArray[np.int64]:
    """Return the index of the interval of `EDGES` that contains each probability."""
    return np.clip(np.searchsorted(EDGES, p, side="right") - 1, 0, len(EDGES) - 2)


def _bins(p: Floats, correct: Floats) -> list[Bin]:
    inside = [correct[_places(p) == i] for i in range(len(EDGES) - 1)]
    means = [float(x.mean()) if len(x) else math.nan for x in inside]
    return [Bin(*edges, len(x), mean) for edges, x, mean in zip(pairwise(EDGES), inside, means, strict=True)]


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _span(since: float, until: float) -> str:
    if math.isnan(since):
        return ""
    first, last = (datetime.fromtimestamp(at, UTC).isoformat(sep=" ", timespec="seconds")[:19] for at in (since, until))
    return f" from {first} to {last} UTC"


def _seconds(value: float) -> str:
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1000:.3g} ms"
