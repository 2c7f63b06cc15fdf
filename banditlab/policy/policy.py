"""`Policy`: a trained agent with its encoder, which decides rows of a table and is updated with feedback, which may be
late.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
import time
import unicodedata
import warnings
import weakref
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import LogError, UnknownDecisionError, UsageError, nearest
from banditlab.players.inputs import as_bit
from banditlab.players.saved import write_whole
from banditlab.policy.choice import Choice, Name, Record, short
from banditlab.policy.container import Parts, packed, read, unpacked, with_holdback
from banditlab.policy.events import ANSWERED, CLOSED, PLACE, Answered, Changed, Decided, Event
from banditlab.policy.unanswered import checked
from banditlab.validation import PENDING, at_least, limit, one_of

if TYPE_CHECKING:
    from banditlab.policy.log import EventLog

Row = Any
"""A row of the table, the label left out: values by column, a pandas Series of them, or one JSON object as text."""
SNAPSHOT_EVERY = 10_000
"""Events between two snapshots: what has to be played again after a crash takes about a second."""
REMEMBERED = 10_000
"""Open decisions that a policy with a log keeps in memory; older ones it reads from the log."""
CLOSED_AT_ONCE = 1000
"""Decisions without an answer that one call closes at most: what is left is for the next call."""
BACKWARDS = 1.0
"""Seconds that a clock may go back before it is worth a word."""
NONE_OPEN = ("", (0, math.inf, None))
ID = re.compile("[0-9a-f]{32}")
"""What an id looks like; nothing else is looked for in a log."""


class Context(NamedTuple):
    """A row to decide: x (d,), read-only; KEY=VALUE of its person; imputed columns; columns with unknown categories."""

    x: NDArray[np.float64]
    person: str | None
    imputed: list[str]
    unknown: list[str]


_LOGGED: weakref.WeakSet[Policy] = weakref.WeakSet()
"""The policies of this process that have a log."""


def _after_fork() -> None:
    """Close, in a forked process, the policies whose logs the parent process writes."""
    for policy in list(_LOGGED):
        policy._let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Policy:
    """A trained agent that makes decisions.

    `Policy.load` returns a policy that stores its open decisions in memory. `Policy.open` returns a policy that writes
    every decision and every answer to a log before it acknowledges it. A lock admits one thread at a time. Do not call
    the constructor.

    Parameters
    ----------
    parts
        The content of a policy's file.
    log
        The log of decisions and answers; None stores them in memory.
    snapshot_every
        Number of log events after which the whole state is written again.
    person
        The key of a row that identifies the person of the decision; see `open`.
    extra
        "refuse" or "ignore", see `open`.
    """

    def __init__(
        self,
        parts: Parts | None = None,
        log: EventLog | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
        person: str = "",
        extra: str = "refuse",
    ) -> None:
        if not isinstance(parts, Parts):
            raise UsageError("create a policy with Policy.train, Policy.new, Policy.load, Policy.open or Policy.resume")
        one_of("extra", extra, ("refuse", "ignore"))
        self._extra, self._refused = extra, 0
        self.imputed: Counter[str] = Counter()
        """Rows so far in which a column was filled in, by column; `unknown`: in which its category was unknown."""
        self.unknown: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        """Answers so far that came after their decision was closed, by what they said: "true", "false"."""
        self.spent: defaultdict[str, float] = defaultdict(float)
        """The summed costs of the choices so far, by class."""
        self._lock = threading.RLock()
        self._log, self._every, self._key = log, snapshot_every, person
        self._keeper: threading.Thread | None = None
        self._batch: list[Event] | None = None
        self._stale = self._closed = self._behind = False
        self._why = "the policy is closed"
        if log is not None:
            _LOGGED.add(self)
        self._take(parts)
        self._seq, self._at, self._kept = 0, 0.0, 0

    def _take(self, parts: Parts) -> None:
        self._uid, self._encoder, self._core, self._trained = parts.uid, parts.encoder, parts.core, parts.trained
        self._costs: dict[str, float] = parts.trained.get("costs", {})
        self._columns = {column.name for column in parts.encoder.columns}
        self._keys = self._columns | ({self._key} if self._key else set())
        # Ordered: to find the first entry of a dict takes the longer, the more were deleted before it.
        self._open: OrderedDict[str, tuple[int, float, Record]] = OrderedDict(
            (name, (0, at, record)) for name, (at, record) in parts.pending.items()
        )
        self._rule, self._other = parts.rule, parts.other
        wrong = parts.rule.treated_as == "wrong"
        # No decision is to be closed before the time `due`, and none at the place `swept` of the log or before.
        self._patience, self._due, self._swept = (parts.rule.seconds, 0.0, 0) if wrong else (math.inf, math.inf, 0)
        self._most = REMEMBERED if self._log is not None else limit(PENDING)
        self._answers: OrderedDict[str, str] = OrderedDict()
        """The kinds of the last answers, by their decisions' ids."""

    # ------------------------------------------------------------------------------------------------------ make and keep

    @classmethod
    def train(cls, data: Any, label: str = "", **settings: Any) -> Self:
        """Return a policy trained on a table; parameters and errors are those of `banditlab.policy.train`."""
        from banditlab.policy.training import trained

        return cls(trained(data, label, **settings))

    @classmethod
    def new(cls, columns: Mapping[str, Any], actions: Sequence[Name], **settings: Any) -> Self:
        """Return a policy without any update; parameters and errors are those of `banditlab.policy.training.untaught`."""
        from banditlab.policy.training import untaught

        return cls(untaught(columns, actions, **settings))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, extra: str = "refuse", **now: Any) -> Self:
        """Return the policy of a file, without a log: decisions without feedback are stored in memory and by `save`.

        The file need not be trusted: it is data, and no code in it is run. For the other parameters, see `open`.

        Raises
        ------
        UsageError
            The file does not exist, is damaged, is not a policy's file, or needs an agent that is not installed.
        """
        return cls(_with(read(path), **now), extra=extra)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        log: str | os.PathLike[str],
        *,
        snapshot_every: int = SNAPSHOT_EVERY,
        person: str = "",
        extra: str = "refuse",
        **now: Any,
    ) -> Self:
        """Return the policy of a file with its log, in the exact state at the last event of the log.

        Parameters
        ----------
        path
            The policy's file. If the log exists, it has the newer state, and the file only identifies the policy.
        log
            A file of SQLite, which is created if it does not exist, or the address of a PostgreSQL database (extra
            `postgres`), for instance "postgresql://user@host/database".
        snapshot_every
            Number of events after which the whole state is written to the log, so that fewer events must be replayed.
        person
            A key of the rows whose value identifies the person of a decision, such as a customer number. It need not be
            a column of the table. The log stores the value with the decision, and `forget` finds it. "" stores none.
        extra
            The rule for a key of a row that is not a column of the table: "refuse" rejects the row, "ignore" ignores
            the key. A misspelt column is such a key.
        floor
            The least probability of any allowed class from now on, at most one over their number. The default is the
            value in the log or the file. The probabilities in choices and in the log include it.
        holdback, holdback_policy
            The share of decisions that another policy makes from now on, 0 or from 0.001 to 0.999, and that policy. The
            policy is "uniform", or a policy's file with the same columns, recipe and classes, which decides and is not
            updated. The defaults are those in the log or the file. The log marks these decisions, and `status_of_log`
            compares both policies. The probabilities in choices and in the log are those of both policies together.
        unanswered, after
            The rule for a decision without an answer; the default is the rule in the log or the file. "wrong": the
            decision is closed when it is older than `after` by the policy's clock, for instance "30 min" or "2 days",
            and counts as a wrong action. A later answer is rejected. "ignored": the agent is not updated, and `after`
            is the time within which an answer counts in the log's status. The log stores a new choice, for this and
            later times.

        Raises
        ------
        UsageError
            The file is not a policy's file, or the log belongs to another policy.
        LogError
            Another process writes to the log, or the log cannot be opened or written, or is damaged.
        """
        from banditlab.policy.log import EventLog

        parts = read(path)
        checked(now.get("unanswered"), now.get("after"))
        at_least("snapshot_every", snapshot_every, 1)
        with _closed_on_error(EventLog(os.fspath(log))) as store:
            policy = cls(parts, store, snapshot_every, person, extra)
            uid = store.head().uid
            if uid is None:
                store.keep(0, policy._snapshot())
                store.own(parts.uid)
            elif uid != parts.uid:
                raise UsageError(f"{store.source}: the log belongs to another policy than {path}; use a separate log")
            policy._rebuild()
            before = policy._rule, policy._core.floor
            policy._take(_with(policy._parts(), **now))
            changed = (policy._rule, policy._core.floor) != before or now.get("holdback") is not None
            for _ in range(2 if changed else 0):  # no older one to fall back on
                store.keep(policy._seq, policy._snapshot())
        return policy

    @classmethod
    def resume(cls, log: str | os.PathLike[str]) -> Self:
        """Restore a policy from its log alone, in its state after the last event; raise the errors of `open`."""
        from banditlab.policy.log import EventLog

        EventLog(os.fspath(log), write=False).close()  # none is made where there is none
        with _closed_on_error(EventLog(os.fspath(log))) as store:
            policy = cls(unpacked(store.snapshot()[1], f"{store.source}: its snapshot"), store)
            policy._rebuild()
        return policy

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file, either completely or not at all; with a log, open decisions are in the log
        only.
        """
        with self._lock:
            self._ready()
            write_whole(path, self._snapshot())

    def close(self) -> None:
        """Write a snapshot to the log, if there is one, and release it for another writer; no decisions are made
        afterwards.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._log is not None:
                try:
                    if self._keeper is not None:
                        self._keeper.join()
                    if not self._stale and self._seq > self._kept:
                        self._keep(self._seq, self._parts())
                    if self._refused:
                        self._log.count_refused(self._refused)
                finally:
                    self._log.close()

    def _let_go(self) -> None:
        """Close without access to the log, whose connection and lock belong to another process."""
        self._lock = threading.RLock()  # the parent's may be held by a thread that is not here
        self._closed = True
        self._why = "the policy was opened before this process was forked, and its log is the parent's; open it after"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _snapshot(self) -> bytes:
        pending = {} if self._log is not None else {name: one[1:] for name, one in self._open.items()}
        return packed(self._parts()._replace(pending=pending))

    def _parts(self) -> Parts:
        return Parts(self._uid, self._encoder, self._core, self._trained, {}, self._rule, self._other)

    def _rebuild(self) -> None:
        """Restore the state at the end of the log: the last snapshot, then every event after it."""
        assert self._log is not None
        place, data = self._log.snapshot()
        self._take(unpacked(data, f"{self._log.source}: its snapshot"))
        self._kept, (self._seq, self._at) = place, self._log.last()
        decided: dict[int, Record] = {}
        differing = 0
        for event in self._log.events(place):
            if isinstance(event, Decided):
                differing += self._play_again(event)
                decided[event.seq] = event.record
            elif isinstance(event, Answered):
                record = decided.pop(event.decision, None) or self._log.decision(event.decision).record
                self._core.learn(record, event.correct)
                self._core.closed += event.closed
            else:
                self._change(event.kind, event.name)
        self._stale = False
        if differing:
            warnings.warn(
                f"{self._log.source}: {differing} decisions came out otherwise when they were played again, by another "
                "processor or version: the state is that of the log to rounding, not to the last bit",
                RuntimeWarning,
                stacklevel=4,
            )

    def _play_again(self, event: Decided) -> bool:
        """Repeat a logged decision; return whether the result differs."""
        again, was = self._core.choose(event.record.context, event.mask), event.record
        return again.action != was.action or again.probabilities.tobytes() != was.probabilities.tobytes()

    # ------------------------------------------------------------------------------------------------------------- decide

    def decide(self, row: Row, *, allowed: Sequence[Name] | None = None) -> Choice:
        """Choose a class for a row.

        Parameters
        ----------
        row
            Values by column, without the label, a pandas Series of them, or one JSON object as text. A missing, unknown
            or wrongly typed value is rejected or imputed as the recipe of the table specifies.
        allowed
            The names of the classes that may be chosen now; None for all that are not retired. The agent's distribution
            is cut to them and divided by the remaining sum (uniform if that is 0). The action is drawn from this
            distribution, which is reported and used in the update.

        Raises
        ------
        UsageError
            The policy does not have such a class, the row is invalid, or the agent's choice cannot be replaced
            (`allowed`).
        LogError
            The log cannot be written, and nothing was decided. The next call tries again.
        """
        with self._lock:
            if self._closed or self._stale or self._due < self._now():
                self.close_overdue()
            core, context = self._core, self._context(row)
            mask = None if allowed is None and not core.retired else core.mask(allowed)
            return self._decide(context, mask)

    def decide_many(self, rows: Iterable[Row], *, allowed: Sequence[Name] | None = None) -> list[Choice]:
        """Choose a class for each row, with one commit to the log; one invalid row rejects all rows."""
        with self._lock:
            self._ready()
            mask = self._core.mask(allowed)
            contexts = [self._context(row) for row in rows]
            with self.together():
                return [self._decide(context, mask) for context in contexts]

    def count_refused(self) -> None:
        """Count a rejected request; `close` adds the number to the log."""
        self._refused += 1

    def _context(self, row: Row) -> Context:
        """Return the encoded row and the part of it that the log stores."""
        if isinstance(row, str):
            try:
                row = json.loads(row, object_pairs_hook=without_duplicates)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"the row is not a JSON object ({error})") from None
        if type(row).__name__ == "Series":  # pandas', which is not imported for this
            row = row.to_dict()
        if type(row) is not dict and not isinstance(row, Mapping):
            raise UsageError(f"a row must be a table of values by column, got {short(row)}")
        try:
            person = f"{self._key}={row[self._key]}" if self._key and self._key in row else None
            row = self._known(row)
            x, imputed, unknown = self._encoder.encode_counted(row)
        except UsageError:
            raise
        except (
            Exception
        ) as error:  # whatever objects of somebody else's raise when they are asked for a number or a text
            raise UsageError(f"the row cannot be encoded: its values raise {type(error).__name__}") from error
        x.setflags(write=False)
        return Context(x, person, imputed, unknown)

    def _known(self, row: Mapping[str, object]) -> Mapping[str, object]:
        """Return a row whose keys are columns, in the table's normal form of Unicode, or raise a UsageError."""
        if row.keys() <= self._keys and not self._columns.isdisjoint(row):
            return row
        names = {unicodedata.normalize("NFC", name): name for name in self._columns}
        named = {names.get(unicodedata.normalize("NFC", str(key)), key): value for key, value in row.items()}
        if len(named) < len(row):
            raise UsageError("the row has the same key twice, in two normal forms of Unicode")
        odd = [str(key)[:60] for key in named if key not in self._keys]
        if odd and self._extra == "refuse":
            raise UsageError(
                f"key {odd[0]!r} is not a column{nearest(odd[0], list(self._columns)[:30], keep_order=True)}; "
                "set extra = 'ignore' to ignore such keys"
            )
        if self._columns and not named.keys() & self._columns:
            raise UsageError(f"the row has none of the columns {', '.join(sorted(self._columns)[:10])}")
        return named

    def _decide(self, context: Context, mask: NDArray[np.bool_] | None) -> Choice:
        core, open_ = self._core, self._open
        x, person, imputed, unknown = context
        record = core.choose_own(x, mask)
        self.imputed.update(imputed)
        self.unknown.update(unknown)
        name, seq = os.urandom(16).hex(), 0
        if self._log is None:
            self._at = self._now()
        else:
            name = f"{self._seq + 1:0{PLACE}x}{name[PLACE:]}"
            seq = self._store(lambda seq, at: Decided(seq, name, at, record, mask, person, len(imputed), len(unknown)))
        if len(open_) >= self._most:
            open_.popitem(last=False)
        open_[name] = (seq, self._at, record)
        self._due = min(self._due, self._at + self._patience)
        cost = self._costs.get(str(core.classes[record.action])) if self._costs else None
        if cost is not None:
            self.spent[str(core.classes[record.action])] += cost
        return Choice(name, record.action, record.probabilities, core.classes, cost)

    # ----------------------------------------------------------------------------------------------------------- feedback

    def feedback(self, id: str, correct: bool) -> None:
        """Store the feedback on a choice: once, in any order, at any time unless `unanswered` is "wrong".

        Parameters
        ----------
        id
            The id of the `Choice`.
        correct
            True, False, 1 or 0.

        Raises
        ------
        UnknownDecisionError
            No decision with this id is open: it has its feedback, or was closed because no feedback arrived in time.
        UsageError
            `correct` is not a bit.
        LogError
            The log cannot be written, and nothing was updated. The next call tries again.
        """
        with self._lock:
            if self._closed or self._stale or self._due < self._now():
                self.close_overdue()
            bit = correct if correct is True or correct is False else as_bit(correct)
            found = self._open.get(id) if isinstance(id, str) else None
            seq, at, record = found or self._logged(id, bit)
            if at + self._patience < self._now():
                self._answer(id, seq, record, False, closed=True)
                raise self._refused_answer(id, bit, CLOSED)
            self._answer(id, seq, record, bit)

    def _answer(self, id_: str, seq: int, record: Record, correct: bool, closed: bool = False) -> None:
        """Update with feedback, or with its absence after the deadline, and store it."""
        self._core.learn_own(record, correct)
        self._core.closed += closed
        self._open.pop(id_, None)
        self._answers[id_] = CLOSED if closed else ANSWERED
        if len(self._answers) > self._most + len(self._batch or ()):  # none of this batch
            self._answers.popitem(last=False)
        self._store(lambda place, at: Answered(place, seq, at, correct, closed))

    def close_overdue(self) -> None:
        """Close decisions older than `after`, if `unanswered` is "wrong", up to 1,000 of them.

        Every `decide` and `feedback` calls this method first. Call it directly for a policy that receives no requests.
        """
        with self.together():
            pass

    def _close_overdue(self) -> None:
        """Close the oldest overdue decisions; all feedback must be stored already."""
        for _ in range(CLOSED_AT_ONCE):
            if self._now() <= self._due:
                return
            id_, (seq, at, record) = self._first_open()
            self._due = at + self._patience
            if self._due < self._now():
                self._answer(id_, seq, record, False, closed=True)
                self._swept = seq

    def _first_open(self) -> tuple[str, tuple[int, float, Any]]:
        """Return the oldest decision without feedback: id, place, time (infinity if there is none), record."""
        if self._log is None:
            return next(iter(self._open.items()), NONE_OPEN)
        found = self._log.first_open(self._swept)
        return NONE_OPEN if found is None else (found.id, (found.seq, found.at, self._core.admitted(found.record)))

    def feedback_many(self, answers: Iterable[tuple[str, bool]]) -> list[str | None]:
        """Store the feedback on many choices with one commit; return an error or None for each."""
        with self._lock, self.together():
            return [self._refusal(name, correct) for name, correct in answers]

    def _refusal(self, name: str, correct: bool) -> str | None:
        try:
            self.feedback(name, correct)
        except UsageError as error:
            return str(error)
        return None

    def _logged(self, id_: str, bit: bool) -> tuple[int, float, Record]:
        """Return place, time and record of a decision that only the log has, or raise an error."""
        kind, logged = self._answers.get(id_, "") if isinstance(id_, str) else "", None
        if isinstance(id_, str) and self._log is not None and not kind and ID.fullmatch(id_):
            logged, kind = self._log.decided(id_) or (None, "")
        if kind:
            raise self._refused_answer(id_, bit, kind)
        if logged is not None:
            return logged.seq, logged.at, self._core.admitted(logged.record)
        if self._log is not None:
            raise UnknownDecisionError(f"no decision has the id {short(id_)}")
        raise UnknownDecisionError(
            f"no decision with the id {short(id_)} is open: it was never made here, has its feedback, or is older than "
            f"the last {self._most:,} open decisions"
        )

    def _refused_answer(self, id_: str, bit: bool, kind: str) -> UnknownDecisionError:
        """Count late feedback, and return the error that describes the decision's earlier feedback."""
        if kind == ANSWERED:
            return UnknownDecisionError(f"decision {short(id_)} has its feedback already")
        self.late[str(bit).lower()] += 1
        return UnknownDecisionError(
            f"decision {short(id_)} was closed as wrong already: no answer within {self._rule.after}"
        )

    # ------------------------------------------------------------------------------------------------------------ classes

    @property
    def classes(self) -> list[Name]:
        """The names of the classes that may be chosen."""
        return [name for k, name in enumerate(self._core.classes) if k not in self._core.retired]

    def add_class(self, name: Name) -> None:
        r"""Add a class, or allow a retired one again.

        A new class has a probability of at least 1/4 (two or more new ones share 1/2) until it was chosen 30 times.
        Then it is :math:`(30/n)^2` of that, where n is the number of times it was chosen. With a floor :math:`\epsilon`
        of K' allowed classes, it is :math:`\epsilon + (1 - K' \epsilon)` times that. Feedback on open decisions from
        before is recorded when it arrives, without an update.

        Raises
        ------
        UsageError
            The class exists, the agent does not have a separate model for each class, or the floor is above one over
            the new number of classes.
        """
        self._changed("add", name)

    def retire_class(self, name: Name) -> None:
        """Retire a class, which is not chosen any more; feedback on earlier choices still updates the agent."""
        self._changed("retire", name)

    def _changed(self, kind: str, name: Name) -> None:
        with self._lock:
            self._ready()
            self._change(kind, name)
            self._store(lambda seq, at: Changed(seq, at, kind, name))

    def _change(self, kind: str, name: Name) -> None:
        self._core.add(name) if kind == "add" else self._core.retire(name)

    # ---------------------------------------------------------------------------------------------------------------- log

    @property
    def logged(self) -> bool:
        """Whether there is a log."""
        return self._log is not None

    def mark(self) -> tuple[int, ...]:
        """Return the number of events; if two calls return the same number, nothing was decided or updated between
        them.
        """
        return self._seq, self._core.decisions, self._core.answered

    def warm(self) -> None:
        """Compile the kernels that the first decision needs; the policy does not change."""
        with self._lock:
            self._encoder.warm()
            self._core.warm()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Store the decisions and answers of the block with one commit at its end; only then are they durable.

        Raises
        ------
        LogError
            The log cannot be written: no decision was made and no feedback was used.
        """
        with self._lock:
            self._ready()
            if self._log is None:
                self._close_overdue()
            if self._batch is not None or self._log is None:
                yield
                return
            self._batch = []
            try:
                self._close_overdue()
                yield
            except BaseException:
                self._stale = self._stale or bool(self._batch)  # what was played is not to be stored
                self._batch = None
                raise
            events, self._batch = self._batch, None
            self._commit(events)

    def _now(self) -> float:
        """Return the policy's clock, which never goes back: the system's time, or the last event's time."""
        return max(time.time(), self._at)

    def _store(self, make: Any) -> int:
        """Store the event that `make(seq, at)` returns, now or at the end of `together`; return its place."""
        if self._log is None:
            return 0
        now = time.time()
        behind, self._behind = self._behind, now < self._at - BACKWARDS
        if self._behind and not behind:
            warnings.warn(
                f"{self._log.source}: the clock went back by {self._at - now:.0f} s; events keep the later time",
                RuntimeWarning,
                stacklevel=4,
            )
        self._seq, self._at = self._seq + 1, max(now, self._at)
        event = make(self._seq, self._at)
        if self._batch is not None:
            self._batch.append(event)
        else:
            self._commit([event])
        return int(event.seq)

    def _commit(self, events: list[Event]) -> None:
        """Write events to the log. If that fails, restore the state from the log."""
        assert self._log is not None
        if not events:
            return
        try:
            self._log.append(events)
        except BaseException:
            self._stale = True
            raise
        if self._seq - self._kept >= self._every and (self._keeper is None or not self._keeper.is_alive()):
            # Only the copy is made here: it is packed and written while decisions go on.
            parts, self._kept = self._parts()._replace(core=self._core.copy()), self._seq
            self._keeper = threading.Thread(target=self._keep, args=(self._seq, parts), daemon=True)
            self._keeper.start()

    def _keep(self, seq: int, parts: Parts) -> None:
        """Write a snapshot. If that fails, the events are in the log and remain acknowledged."""
        assert self._log is not None
        try:
            self._log.keep(seq, packed(parts))
        except LogError as error:
            warnings.warn(f"no snapshot was written ({error})", RuntimeWarning, stacklevel=5)

    def ready(self) -> None:
        """Raise a LogError if a decision cannot be stored now, or a UsageError if the policy is closed."""
        with self._lock:
            self._ready()
            if self._log is not None:
                self._log.prove()

    def prune(self, before: datetime) -> int:
        """Remove the log's events before a time, and return the number of decisions among them.

        The state and the counts of `describe` do not change: a snapshot that covers all events is written first, twice.
        Feedback on a removed decision is rejected as unknown, and statistics of the log cover later events only.
        """
        return self._tended(lambda log: log.prune(before.timestamp()))

    def forget(self, key: str, value: object) -> int:
        """Remove the contexts of one person's decisions from the log, and return the number of these decisions.

        Only decisions that were made while the policy was open with `person=key` are found. Action, distribution and
        feedback remain. Past updates of the agent with them remain in its state; later feedback is counted without an
        update. Events up to now cannot be replayed: a snapshot that covers them is written first, twice.
        """
        return self._tended(lambda log: log.forget(f"{key}={value}"))

    def _tended(self, work: Callable[[EventLog], int]) -> int:
        with self._lock:
            self._ready()
            if self._log is None or self._batch is not None:
                raise UsageError("this method needs a policy with a log, and must not be called inside `together`")
            if self._keeper is not None:
                self._keeper.join()
            for _ in range(2):  # older snapshots, which need the events, are removed with that
                self._log.keep(self._seq, self._snapshot())
            try:
                return work(self._log)
            finally:
                self._stale = True  # what is in memory may be gone from the log

    def _ready(self) -> None:
        if self._closed:
            raise UsageError(self._why)
        if self._stale:
            if self._batch is not None:
                raise LogError("the log could not be written")
            self._rebuild()

    # ------------------------------------------------------------------------------------------------------------- say

    def describe(self) -> dict[str, Any]:
        """Return a description as plain data: agent, settings, classes, columns, counts, training."""
        core = self._core
        return {
            "agent": core.agent.id,
            "settings": core.agent.params(),
            "classes": self.classes,
            "retired": [core.classes[k] for k in sorted(core.retired)],
            "floor": core.floor,
            "holdback": core.holdback,
            "holdback_policy": "uniform" if core.other is None else core.other.agent.id,
            "columns": {c.name: list(c.categories) or c.role for c in self._encoder.columns},
            "features": int(self._encoder.d),
            "imputes": self._encoder.imputes,
            "extra": self._extra,
            "unanswered": self._rule.treated_as,
            "after": self._rule.after,
            "decisions": core.decisions,
            "feedback": core.answered - core.closed,
            "right": core.right,
            "closed": core.closed,
            "late": self.late.total(),
            "trained": self._trained,
        }

    def __repr__(self) -> str:
        """Return one line: the agent, K, d, number of decisions."""
        core = self._core
        return f"Policy({core.agent.id!r}, K={len(core.classes)}, d={self._encoder.d}, decisions={core.decisions})"


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the JSON object of these pairs, or raise a UsageError for a duplicate key, which parsers treat
    differently.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise UsageError(f"the key {twice[:60]!r} occurs twice in one object")
    return found


def _with(
    parts: Parts,
    *,
    floor: float | None = None,
    holdback: float | None = None,
    holdback_policy: str | os.PathLike[str] = "uniform",
    **rule: str | None,
) -> Parts:
    """Return a policy with the given settings, and its own for those that are None; see `Policy.open`."""
    if floor is not None:
        parts.core.set_floor(floor)
    other = None if holdback_policy == "uniform" else read(holdback_policy)
    if holdback is None and other is not None:
        raise UsageError("holdback_policy needs a holdback, its share of the decisions")
    parts = parts._replace(rule=checked(**rule) or parts.rule)
    return parts if holdback is None else with_holdback(parts, holdback, other)


@contextmanager
def _closed_on_error(log: EventLog) -> Iterator[EventLog]:
    try:
        yield log
    except BaseException:
        log.close()
        raise
