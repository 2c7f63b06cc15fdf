"""`Policy`: a trained agent with its encoder, which makes decisions for rows of a table and is updated with feedback,
possibly late.
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
"""A row of the table without its label: values by column, a pandas Series, or a JSON object as text."""
SNAPSHOT_EVERY = 10_000
"""The number of events between two snapshots, which a replay after a crash repeats in about a second."""
REMEMBERED = 10_000
"""The number of open decisions that a policy with a log has in memory; older ones are read from the log."""
CLOSED_AT_ONCE = 1000
"""The largest number of overdue decisions that one call closes."""
BACKWARDS = 1.0
"""A clock that goes back by more seconds than this causes a notice."""
NONE_OPEN = ("", (0, math.inf, None))
ID = re.compile("[0-9a-f]{32}")
"""The form of an id; other strings are not searched in a log."""


class Context(NamedTuple):
    """An encoded row x (d,), read-only. `person` is KEY=VALUE or None.

    `imputed` names the columns whose values were imputed, `unknown` those with a category that is not in the table.
    """

    x: NDArray[np.float64]
    person: str | None
    imputed: list[str]
    unknown: list[str]


_LOGGED: weakref.WeakSet[Policy] = weakref.WeakSet()
"""The policies of this process that have a log."""


def _after_fork() -> None:
    """In a forked process, close all policies with a log, because the parent process writes to it."""
    for policy in list(_LOGGED):
        policy._let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Policy:
    """A trained agent that makes decisions.

    `Policy.load` returns a policy that stores its open decisions in memory. `Policy.open` returns a policy that writes
    every decision and feedback to a log before acknowledging it. Threads are serialised by a lock. Do not call the
    constructor.

    Parameters
    ----------
    parts
        The content of a policy's file.
    log
        The log of decisions and feedback; None stores open decisions in memory.
    snapshot_every
        Number of log events after which the whole state is written to the log.
    person
        The key of rows that identifies the person of a decision; see `open`.
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
        """The number of rows so far in which a column was imputed, by column; `unknown`: in which its category was unknown."""
        self.unknown: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        """The number of feedbacks so far on decisions that were already closed, by value ("true", "false")."""
        self.spent: defaultdict[str, float] = defaultdict(float)
        """The total costs of the choices so far, by class."""
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
        # An OrderedDict, because finding the first entry of a dict is slow after many deletions.
        self._open: OrderedDict[str, tuple[int, float, Record]] = OrderedDict(
            (name, (0, at, record)) for name, (at, record) in parts.pending.items()
        )
        self._rule, self._other = parts.rule, parts.other
        wrong = parts.rule.treated_as == "wrong"
        # No decision needs to be closed before the time `due`, or up to the number `swept` in the log.
        self._patience, self._due = (parts.rule.seconds, 0.0) if wrong else (math.inf, math.inf)
        self._swept = 0
        self._most = REMEMBERED if self._log is not None else limit(PENDING)
        self._answers: OrderedDict[str, str] = OrderedDict()
        """The kinds of the last feedback, by decision id."""

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
        """Return the policy of a file, without a log.

        Decisions without feedback are stored in memory, and in the file of `save`. The file need not be trusted: no
        code in it is run. For the other parameters, see `open`.

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
            The policy's file. If the log exists, the state is that of the log, and the file only identifies the policy.
        log
            A SQLite file, which is created if it does not exist, or the address of a PostgreSQL database (extra
            `postgres`), for instance "postgresql://user@host/database".
        snapshot_every
            Number of events after which the whole state is written to the log, which limits the events to replay.
        person
            A key of the rows whose value identifies the person of a decision, such as a customer number. It need not be
            a column of the table. The log stores the value with the decision, and `forget` uses it. "" stores none.
        extra
            The rule for keys of a row that are not columns of the table, for instance misspelt ones: "refuse" rejects
            the row, "ignore" ignores the key.
        floor
            The least probability of any allowed class from now on, at most 1 / (number of allowed classes). The default
            is the value in the log or the file. Choices and the log contain the probabilities with this floor.
        holdback, holdback_policy
            The fraction of decisions that another policy makes from now on, 0 or from 0.001 to 0.999, and that policy.
            It is "uniform", or the file of a policy with the same columns, recipe and classes, which is not updated.
            The defaults are those in the log or the file. The log marks these decisions, and `status_of_log` compares
            both policies. The probabilities in choices and in the log are those of the mixture of both policies.
        unanswered, after
            The rule for a decision without feedback; the default is the rule in the log or the file. "wrong": when the
            decision is older than `after` by the policy's clock, for instance "30 min" or "2 days", it is closed and
            counts as a wrong action. Later feedback is rejected. "ignored": the agent is not updated, and `after` is
            the time within which feedback counts in the log's status. The log stores a new rule for later calls.

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
                raise UsageError(f"{store.source}: the log belongs to a policy other than {path}; use a separate log")
            policy._rebuild()
            before = policy._rule, policy._core.floor
            policy._take(_with(policy._parts(), **now))
            if (policy._rule, policy._core.floor) != before or now.get("holdback") is not None:
                for _ in range(2):  # an older snapshot would have the old settings
                    store.keep(policy._seq, policy._snapshot())
        return policy

    @classmethod
    def resume(cls, log: str | os.PathLike[str]) -> Self:
        """Restore a policy from its log alone, in its state after the last event; errors are as for `open`."""
        from banditlab.policy.log import EventLog

        EventLog(os.fspath(log), write=False).close()  # do not create a log
        with _closed_on_error(EventLog(os.fspath(log))) as store:
            policy = cls(unpacked(store.snapshot()[1], f"{store.source}: its snapshot"), store)
            policy._rebuild()
        return policy

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file, completely or not at all. With a log, open decisions are only in the log."""
        with self._lock:
            self._ready()
            write_whole(path, self._snapshot())

    def close(self) -> None:
        """Write a snapshot to the log, if there is one, and release the log for another writer. The policy is then closed."""
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
        """Close the policy in a forked process; the log's connection and lock belong to the parent process."""
        self._lock = threading.RLock()  # the parent's lock may be held by a thread that does not exist here
        self._closed = True
        self._why = "the policy was opened before this process was forked, and the parent owns its log; open it after"

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
                again, was = self._core.choose(event.record.context, event.mask), event.record
                differing += again.action != was.action or again.probabilities.tobytes() != was.probabilities.tobytes()
                decided[event.seq] = was
            elif isinstance(event, Answered):
                record = decided.pop(event.decision, None) or self._log.decision(event.decision).record
                self._core.learn(record, event.correct)
                self._core.closed += event.closed
            else:
                self._change(event.kind, event.name)
        self._stale = False
        if differing:
            warnings.warn(
                f"{self._log.source}: the replay of {differing} decisions gave another result, because of another "
                "processor or version: the state equals that of the log up to rounding",
                RuntimeWarning,
                stacklevel=4,
            )

    # ------------------------------------------------------------------------------------------------------------- decide

    def decide(self, row: Row, *, allowed: Sequence[Name] | None = None) -> Choice:
        """Choose a class for a row.

        Parameters
        ----------
        row
            A dict of values by column, a pandas Series, or a JSON object as text, without the label. The recipe of the table
            determines whether a missing, unknown or wrongly typed value is rejected or imputed.
        allowed
            The names of the classes that may be chosen now; None for all that are not retired. The agent's distribution
            is restricted to them and divided by its sum there (uniform if that is 0). The action is drawn from this
            distribution, which is reported and used in the update.

        Raises
        ------
        UsageError
            A class in `allowed` does not exist, the row is invalid, or the agent does not support `allowed`.
        LogError
            The log cannot be written, and nothing was decided. The next call tries again.
        """
        with self._lock:
            if self._closed or self._stale or self._due < self._now():
                self.close_overdue()
            context = self._context(row)
            return self._decide(context, self._core.mask(allowed))

    def decide_many(self, rows: Iterable[Row], *, allowed: Sequence[Name] | None = None) -> list[Choice]:
        """Choose a class for each row, with one commit to the log. If a row is invalid, all rows are rejected."""
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
        """Return the encoded row, with the person's key and value that the log stores."""
        if isinstance(row, str):
            try:
                row = json.loads(row, object_pairs_hook=without_duplicates)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"the row is not a JSON object ({error})") from None
        if type(row).__name__ == "Series":  # pandas itself need not be imported
            row = row.to_dict()
        if not isinstance(row, dict | Mapping):
            raise UsageError(f"a row must map column names to values, got {short(row)}")
        try:
            person = f"{self._key}={row[self._key]}" if self._key and self._key in row else None
            row = self._known(row)
            x, imputed, unknown = self._encoder.encode_counted(row)
        except UsageError:
            raise
        except Exception as error:  # foreign objects may raise any exception when they are converted
            raise UsageError(f"the row cannot be encoded: converting a value raised {type(error).__name__}") from error
        x.setflags(write=False)
        return Context(x, person, imputed, unknown)

    def _known(self, row: Mapping[str, object]) -> Mapping[str, object]:
        """Return a row with keys in the table's normal form of Unicode; raise a UsageError for a key that is not a column."""
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
        """Store the feedback on a choice, once per choice.

        Feedback may arrive in any order and, unless `unanswered` is "wrong", at any time.

        Parameters
        ----------
        id
            The id of the `Choice`.
        correct
            True, False, 1 or 0.

        Raises
        ------
        UnknownDecisionError
            No decision with this id is open: it is unknown, already has feedback, or was closed because no feedback
            arrived in time.
        UsageError
            `correct` is not a bit.
        LogError
            The log cannot be written, and nothing was updated. The next call tries again.
        """
        with self._lock:
            if self._closed or self._stale or self._due < self._now():
                self.close_overdue()
            bit = correct if isinstance(correct, bool) else as_bit(correct)
            found = self._open.get(id) if isinstance(id, str) else None
            seq, at, record = found or self._logged(id, bit)
            if at + self._patience < self._now():
                self._answer(id, seq, record, False, closed=True)
                raise self._refused_answer(id, bit, CLOSED)
            self._answer(id, seq, record, bit)

    def _answer(self, id_: str, seq: int, record: Record, correct: bool, closed: bool = False) -> None:
        """Update with the feedback and store it; `closed` means that none arrived and the decision counts as wrong."""
        self._core.learn_own(record, correct)
        self._core.closed += closed
        self._open.pop(id_, None)
        self._answers[id_] = CLOSED if closed else ANSWERED
        if len(self._answers) > self._most + len(self._batch or ()):  # none in this batch
            self._answers.popitem(last=False)
        self._store(lambda place, at: Answered(place, seq, at, correct, closed))

    def close_overdue(self) -> None:
        """Close decisions older than `after`, if `unanswered` is "wrong", up to 1,000 of them.

        `decide` and `feedback` call this method first. Call it regularly for a policy that receives no requests.
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
        """Return id and (number, time, record) of the oldest open decision; the time is infinite if there is none."""
        if self._log is None:
            return next(iter(self._open.items()), NONE_OPEN)
        found = self._log.first_open(self._swept)
        return NONE_OPEN if found is None else (found.id, (found.seq, found.at, self._core.admitted(found.record)))

    def feedback_many(self, answers: Iterable[tuple[str, bool]]) -> list[str | None]:
        """Store the feedback on many choices with one commit; return for each an error message, or None."""
        with self._lock, self.together():
            return [self._refusal(name, correct) for name, correct in answers]

    def _refusal(self, name: str, correct: bool) -> str | None:
        try:
            self.feedback(name, correct)
        except UsageError as error:
            return str(error)
        return None

    def _logged(self, id_: str, bit: bool) -> tuple[int, float, Record]:
        """Return number, time and record of an open decision that is only in the log, or raise an error."""
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
            f"no decision with the id {short(id_)} is open: it is unknown, already has feedback, or is older than the "
            f"last {self._most:,} open decisions"
        )

    def _refused_answer(self, id_: str, bit: bool, kind: str) -> UnknownDecisionError:
        """Return the error for feedback on a decision that already has feedback or was closed.

        If it was closed, the feedback is also counted as late.
        """
        if kind == ANSWERED:
            return UnknownDecisionError(f"decision {short(id_)} already has feedback")
        self.late[str(bit).lower()] += 1
        return UnknownDecisionError(
            f"decision {short(id_)} was already closed as wrong, because there was no feedback within "
            f"{self._rule.after}"
        )

    # ------------------------------------------------------------------------------------------------------------ classes

    @property
    def classes(self) -> list[Name]:
        """The names of the classes that may be chosen."""
        return [name for k, name in enumerate(self._core.classes) if k not in self._core.retired]

    def add_class(self, name: Name) -> None:
        r"""Add a class, or allow a retired one again.

        A new class has a probability of at least 1/4 until it has been chosen 30 times; with J > 2 new classes, each
        has at least 1/(2 J). After n > 30 choices of the class, this lower bound is multiplied by :math:`(30/n)^2`.
        With a floor :math:`\epsilon` for K' allowed classes, a bound b becomes :math:`\epsilon + (1 - K' \epsilon) b`.
        Feedback on decisions that were made before the class was added is recorded without an update.

        Raises
        ------
        UsageError
            The class exists, the agent does not have a separate model for each class, or the floor is above 1 / (new
            number of classes).
        """
        self._changed("add", name)

    def retire_class(self, name: Name) -> None:
        """Retire a class, which is then not chosen. Feedback on earlier choices still updates the agent."""
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
        """Return the number of events, which every decision and update increases."""
        return self._seq, self._core.decisions, self._core.answered

    def warm(self) -> None:
        """Compile the kernels for the first decision, without changing the policy."""
        with self._lock:
            self._encoder.warm()
            self._core.warm()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Store the decisions and feedback of the block with one commit at its end, before which they are not durable.

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
                self._stale = self._stale or bool(self._batch)  # discard the events of the block
                self._batch = None
                raise
            events, self._batch = self._batch, None
            self._commit(events)

    def _now(self) -> float:
        """Return the policy's clock, the later of the system's time and the last event's time."""
        return max(time.time(), self._at)

    def _store(self, make: Any) -> int:
        """Store the event that `make(seq, at)` returns, now or at the end of `together`; return its number."""
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
            # Only the copy is made here. It is packed and written in parallel with further decisions.
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

        The state and the counts of `describe` do not change, because a snapshot of all events is written first. It is
        written twice, because the log stores the last two snapshots and the older one would need removed events.
        Feedback on a removed decision is rejected as unknown, and statistics of the log cover later events only.
        """
        return self._tended(lambda log: log.prune(before.timestamp()))

    def forget(self, key: str, value: object) -> int:
        """Remove the contexts of one person's decisions from the log, and return the number of these decisions.

        Only decisions that were made while the policy was open with `person=key` are found. Action, distribution and
        feedback remain in the log, and the agent's past updates with these decisions remain in its state. Later
        feedback on them is counted without an update. Because events up to now cannot be replayed afterwards, a
        snapshot of them is written first, as in `prune`.
        """
        return self._tended(lambda log: log.forget(f"{key}={value}"))

    def _tended(self, work: Callable[[EventLog], int]) -> int:
        with self._lock:
            self._ready()
            if self._log is None or self._batch is not None:
                raise UsageError("this method needs a policy with a log, and must not be called inside `together`")
            if self._keeper is not None:
                self._keeper.join()
            for _ in range(2):  # this removes older snapshots, which need the events
                self._log.keep(self._seq, self._snapshot())
            try:
                return work(self._log)
            finally:
                self._stale = True  # decisions in memory may have been removed from the log

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
    """Return the JSON object of these pairs; raise a UsageError for a duplicate key, which parsers treat differently."""
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
    """Return a policy with the given settings (see `Policy.open`); a setting that is None is unchanged."""
    if floor is not None:
        parts.core.set_floor(floor)
    other = None if holdback_policy == "uniform" else read(holdback_policy)
    if holdback is None and other is not None:
        raise UsageError("holdback_policy requires holdback, the fraction of decisions that it makes")
    parts = parts._replace(rule=checked(**rule) or parts.rule)
    return parts if holdback is None else with_holdback(parts, holdback, other)


@contextmanager
def _closed_on_error(log: EventLog) -> Iterator[EventLog]:
    try:
        yield log
    except BaseException:
        log.close()
        raise
