"""`Policy`: a trained agent with its encoder, which decides rows of a table and learns from late answers."""

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
    """A row to decide: x (d,), read-only; KEY=VALUE of its person; columns filled in, and columns with unknown
    categories."""

    x: NDArray[np.float64]
    person: str | None
    imputed: list[str]
    unknown: list[str]


_LOGGED: weakref.WeakSet[Policy] = weakref.WeakSet()
"""The policies of this process that have a log."""


def _after_fork() -> None:
    """In a forked process, close the policies whose logs the parent writes."""
    for policy in list(_LOGGED):
        policy._let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Policy:
    """A trained agent that decides.

    `Policy.load` gives one that keeps its open decisions in memory; `Policy.open` gives one that writes every decision and
    every answer to a log before it acknowledges it. A lock admits one thread at a time. Do not call the constructor.

    Parameters
    ----------
    parts
        What a policy's file holds.
    log
        Where decisions and answers are written; None keeps them in memory.
    snapshot_every
        Events of the log after which the whole state is written again.
    person
        The key of a row that says whose decision it is; see `open`.
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
            raise UsageError("a policy is made by Policy.train, Policy.new, Policy.load, Policy.open or Policy.resume")
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
        """Return a policy that has learnt nothing; parameters and errors are those of `banditlab.policy.training.untaught`."""
        from banditlab.policy.training import untaught

        return cls(untaught(columns, actions, **settings))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, extra: str = "refuse", **now: Any) -> Self:
        """Return the policy of a file, without a log: decisions that wait for feedback are kept in memory and by `save`.

        The file may come from anybody: it is data, nothing in it is run. All other parameters: see `open`.

        Raises
        ------
        UsageError
            No such file, or it is damaged, no policy's, or of an agent that is not installed.
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
        """Return the policy of a file with its log: as it stood at the last event of the log, bit for bit.

        Parameters
        ----------
        path
            The policy's file. Once there is a log, the log has the newer state, and the file says only whose it is.
        log
            A file of SQLite, made where there is none, or the address of a PostgreSQL database (extra `postgres`), for
            instance "postgresql://user@host/database".
        snapshot_every
            Events after which the whole state is written to the log, so that fewer have to be played again.
        person
            A key of the rows whose value says whose decision it is, such as a customer's number; it need not be a column of
            the table. The log stores the value with the decision, and `forget` finds it. "" stores none.
        extra
            What happens to a key of a row that is not a column of the table: "refuse" refuses the row, "ignore" leaves the key
            aside. A misspelt column is such a key.
        floor
            The least probability of any allowed class from now on, at most one over their number; by default what the log or
            the file says. The probabilities in choices and in the log are those played with it.
        holdback, holdback_policy
            The share of decisions that another policy takes from now on, 0 or from 0.001 to 0.999, and that policy: "uniform",
            or a policy's file with the same columns, recipe and classes, which decides and does not learn. By default what the
            log or the file says. Which decisions were held back is marked in the log, and `status_of_log` compares both. The
            probabilities in choices and in the log are those of both together.
        unanswered, after
            What becomes of a decision without an answer, by default what the log or the file says. "wrong": it is closed as
            soon as it is older than `after` by the policy's clock, for instance "30 min" or "2 days", and learnt from as an
            action that was wrong; an answer that comes later is refused. "ignored": nothing is learnt from it; `after` is how
            late an answer still counts in the log's status. The log stores a new choice, for this and later times.

        Raises
        ------
        UsageError
            The file is not a policy's, or the log is another policy's.
        LogError
            Another process writes to the log; it cannot be opened or written; it is damaged.
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
                raise UsageError(f"{store.source}: the log of another policy than {path}; give this one its own log")
            policy._rebuild()
            before = policy._rule, policy._core.floor
            policy._take(_with(policy._parts(), **now))
            changed = (policy._rule, policy._core.floor) != before or now.get("holdback") is not None
            for _ in range(2 if changed else 0):  # no older one to fall back on
                store.keep(policy._seq, policy._snapshot())
        return policy

    @classmethod
    def resume(cls, log: str | os.PathLike[str]) -> Self:
        """Return the policy of a log as it stood at the last event, without its file; errors are those of `open`."""
        from banditlab.policy.log import EventLog

        EventLog(os.fspath(log), write=False).close()  # none is made where there is none
        with _closed_on_error(EventLog(os.fspath(log))) as store:
            policy = cls(unpacked(store.snapshot()[1], f"{store.source}: its snapshot"), store)
            policy._rebuild()
        return policy

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file, open decisions included (with a log they are in the log); whole or not at all."""
        with self._lock:
            self._ready()
            write_whole(path, self._snapshot())

    def close(self) -> None:
        """Write a snapshot to the log, if there is one, and let another writer in. Nothing is decided afterwards."""
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
        """Close without touching the log, whose connection and lock belong to another process."""
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
            Values by column, the label left out, a pandas Series of them, or one JSON object as text. What is missing,
            unknown or of a wrong type is refused or filled in as the recipe of the table says.
        allowed
            The classes that may be chosen now, by name; None for all that are not retired. The agent's distribution is cut
            to them and divided by what is left (uniform where nothing is); that is what is drawn from, reported and learnt
            from.

        Raises
        ------
        UsageError
            A row or a class that the policy does not know; an agent whose choice cannot be replaced (`allowed`).
        LogError
            The log cannot be written: nothing was decided. The next call tries again.
        """
        with self._lock:
            if self._closed or self._stale or self._due < self._now():
                self.close_overdue()
            core, context = self._core, self._context(row)
            mask = None if allowed is None and not core.retired else core.mask(allowed)
            return self._decide(context, mask)

    def decide_many(self, rows: Iterable[Row], *, allowed: Sequence[Name] | None = None) -> list[Choice]:
        """Choose a class for each row, with one commit to the log; one rejected row rejects all."""
        with self._lock:
            self._ready()
            mask = self._core.mask(allowed)
            contexts = [self._context(row) for row in rows]
            with self.together():
                return [self._decide(context, mask) for context in contexts]

    def count_refused(self) -> None:
        """Count a request that was refused; `close` adds the number to the log."""
        self._refused += 1

    def _context(self, row: Row) -> Context:
        """Return the encoded row and what the log stores of it."""
        if isinstance(row, str):
            try:
                row = json.loads(row, object_pairs_hook=without_duplicates)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"the row is no JSON object ({error})") from None
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
            raise UsageError("the row has one key twice, in two normal forms of Unicode")
        odd = [str(key)[:60] for key in named if key not in self._keys]
        if odd and self._extra == "refuse":
            raise UsageError(
                f"key {odd[0]!r} is not a column{nearest(odd[0], list(self._columns)[:30], keep_order=True)}; "
                "extra = 'ignore' leaves such keys aside"
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
        """Give the feedback on a choice: once, in any order, at any time unless `unanswered` is "wrong".

        Parameters
        ----------
        id
            Of the `Choice`.
        correct
            True, False, 1 or 0.

        Raises
        ------
        UnknownDecisionError
            No decision of this id waits for feedback: it has its feedback, or was closed because none came in time.
        UsageError
            `correct` is no bit.
        LogError
            The log cannot be written: nothing was learnt. The next call tries again.
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
        """Learn from an answer, or from its absence after the deadline, and store it."""
        self._core.learn_own(record, correct)
        self._core.closed += closed
        self._open.pop(id_, None)
        self._answers[id_] = CLOSED if closed else ANSWERED
        if len(self._answers) > self._most + len(self._batch or ()):  # none of this batch
            self._answers.popitem(last=False)
        self._store(lambda place, at: Answered(place, seq, at, correct, closed))

    def close_overdue(self) -> None:
        """Close decisions older than `after`, if `unanswered` is "wrong", up to 1,000 of them.

        Every `decide` and `feedback` does so first: call this for a policy that receives no requests.
        """
        with self.together():
            pass

    def _close_overdue(self) -> None:
        """Close the oldest overdue decisions; all answers must be stored."""
        for _ in range(CLOSED_AT_ONCE):
            if self._now() <= self._due:
                return
            id_, (seq, at, record) = self._first_open()
            self._due = at + self._patience
            if self._due < self._now():
                self._answer(id_, seq, record, False, closed=True)
                self._swept = seq

    def _first_open(self) -> tuple[str, tuple[int, float, Any]]:
        """Return the oldest unanswered decision: id, place, time (infinity if there is none), record."""
        if self._log is None:
            return next(iter(self._open.items()), NONE_OPEN)
        found = self._log.first_open(self._swept)
        return NONE_OPEN if found is None else (found.id, (found.seq, found.at, self._core.admitted(found.record)))

    def feedback_many(self, answers: Iterable[tuple[str, bool]]) -> list[str | None]:
        """Give feedback on many choices with one commit; return an error or None for each."""
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
            f"no decision of the id {short(id_)} waits for feedback: it was never taken here, has its feedback, or is older "
            f"than the last {self._most:,} that wait"
        )

    def _refused_answer(self, id_: str, bit: bool, kind: str) -> UnknownDecisionError:
        """Count a late answer, and return the error that names the decision's answer."""
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

        A new class has at least a probability of 1/4 (two or more new ones share 1/2) until it was chosen 30 times, then
        :math:`(30/n)^2` of that, n the times it was chosen; with a floor :math:`\epsilon` of K' allowed classes,
        :math:`\epsilon + (1 - K' \epsilon)` times that.
        Decisions taken before that wait for feedback are recorded when it comes, and not learnt from.

        Raises
        ------
        UsageError
            There is such a class, the agent does not keep a model for each class by itself, or the floor is above one over the
            number of classes there would be.
        """
        self._changed("add", name)

    def retire_class(self, name: Name) -> None:
        """Retire a class: it is not chosen any more. Feedback on earlier choices is still learnt from."""
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
        """Return the number of events: if two calls return the same, nothing was decided or learnt between them."""
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
            The log cannot be written: nothing of it was decided or learnt.
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
        """Return the policy's clock, which never goes back: the system's, or the last event's time."""
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
        """Raise a LogError if a decision could not be stored now, a UsageError if the policy is closed."""
        with self._lock:
            self._ready()
            if self._log is not None:
                self._log.prove()

    def prune(self, before: datetime) -> int:
        """Remove the log's events before a time, and return how many decisions were among them.

        The state and the counts of `describe` stay: a snapshot that covers all events is written first, twice. Feedback on a
        decision that was removed is refused as unknown, and what is computed from the log has the later events only.
        """
        return self._tended(lambda log: log.prune(before.timestamp()))

    def forget(self, key: str, value: object) -> int:
        """Blank the contexts of one person's decisions in the log, and return how many there were.

        Only decisions taken while the policy was open with `person=key` are found. Action, distribution and feedback stay.
        What the agent learnt from them stays in its state; feedback that comes later is counted and not learnt from. Events
        up to now cannot be played again: a snapshot that covers them is written first, twice.
        """
        return self._tended(lambda log: log.forget(f"{key}={value}"))

    def _tended(self, work: Callable[[EventLog], int]) -> int:
        with self._lock:
            self._ready()
            if self._log is None or self._batch is not None:
                raise UsageError("this needs a policy with a log, outside of `together`")
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
    """Return the JSON object of these pairs; a UsageError for a duplicate key, which parsers treat differently."""
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
    """Return a policy with what is given for the time from now on, and its own where nothing is; see `Policy.open`."""
    if floor is not None:
        parts.core.set_floor(floor)
    other = None if holdback_policy == "uniform" else read(holdback_policy)
    if holdback is None and other is not None:
        raise UsageError("holdback_policy needs a holdback, the share of its decisions")
    parts = parts._replace(rule=checked(**rule) or parts.rule)
    return parts if holdback is None else with_holdback(parts, holdback, other)


@contextmanager
def _closed_on_error(log: EventLog) -> Iterator[EventLog]:
    try:
        yield log
    except BaseException:
        log.close()
        raise
