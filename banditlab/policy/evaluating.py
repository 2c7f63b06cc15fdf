"""`banditlab evaluate`: estimate the value of a policy from the log of another policy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from banditlab.errors import UsageError
from banditlab.offpolicy import Evaluation, Log, RewardModel, estimated_propensities, evaluate
from banditlab.offpolicy.log import Floats, Rows, refuse
from banditlab.offpolicy.log import read as checked
from banditlab.policy.container import SQLITE, refuse_strangers
from banditlab.policy.container import read as read_policy
from banditlab.policy.dsjson import read_dsjson
from banditlab.policy.log_tables import read_table
from banditlab.policy.logged import Source
from banditlab.policy.replay import Decider, Replay
from banditlab.registry import registry

FOLDS = 5
UNIFORM, BEST, TRAINED = "uniform", "best-single", "trained"
OFF = 0.2
"""The largest deviation of the mean weight from its expectation without a warning."""


class Evaluated(NamedTuple):
    """The evaluation of a policy on a log, with the names of the actions and notes."""

    evaluation: Evaluation
    actions: list[str]
    """The names of the K actions."""
    logged: float
    """The mean reward of the same rounds under the logger."""
    notes: list[str]
    """Notes on the log and the policy, one sentence each."""


def evaluate_log(
    log: str | os.PathLike[str],
    policy: str = "uniform",
    *,
    logger: Literal["fixed", "learning"] | None = None,
    level: float = 0.95,
    after: int = 0,
    **columns: str,
) -> Evaluated:
    """Estimate the mean reward of a policy from a log, of any length, of another policy.

    Parameters
    ----------
    log
        A policy's event log; a CSV or Parquet file with columns of actions, reward bits and propensities; or Vowpal Wabbit's
        dsjson with costs of -1 and 0.
    policy
        "uniform". "best-single", the action with the largest estimated reward in the first half of the log, evaluated
        on the second half. "trained", the action with the largest reward predicted by models that are fitted to earlier
        rounds. An agent's id: the agent is updated, by rejection sampling, with rounds in which it also draws the
        logged action. A policy's file: the policy is not updated. For a table also "column:NAME", a column with the
        action of each row, and "probabilities:PREFIX", one column of probabilities per action, called PREFIX followed
        by the action's name.
    logger, level
        As in `banditlab.offpolicy.evaluate`. The default logger is "learning" for an event log, and "fixed" for other
        logs.
    after
        Number of rounds at the start of the log that are used for learning only, and not evaluated.
    columns
        For a table. `action`, `reward` and `propensity` name columns; by default, columns with common names are used.
        Without a column of propensities, propensities are estimated. `id` names a column of round ids, which must all
        differ. All other columns are contexts, from which rewards are predicted. `format`, `encoding` and `separator`
        are as in `banditlab.envs.Table`.

    Returns
    -------
    Evaluated
        The estimates, the names of the actions, and notes.

    Raises
    ------
    UsageError
        The log, its columns or the policy have faults. One error lists all that were found, with the number of rows of
        each.
    LogError
        The event log cannot be read.
    """
    named = policy in (UNIFORM, BEST, TRAINED) or policy.startswith(("column:", "probabilities:"))
    named = named or any(each.id == policy for each in registry().entries("agents"))
    if not named and not os.path.isfile(policy):
        raise UsageError(
            f"--policy {policy}: must be uniform, best-single, trained, an agent's id or a policy's file, for a table "
            "also column:NAME or probabilities:PREFIX"
        )
    other = None if named else read_policy(policy)
    source = source_of(os.fspath(log), policy, other and [*map(str, other.core.classes)], columns)
    if other is not None and source.policy is not None:
        refuse_strangers(source.policy, other, f"--policy {policy}")
    return Stream(source, policy, after, other and Decider(other, source.names)).evaluated(log, logger, level)


def source_of(address: str, policy: str, others: Sequence[str] | None, columns: Mapping[str, str]) -> Source:
    """Return the log at `address`: a table, an event log or dsjson.

    `others` are the class names in the policy's file, or None.
    """
    columns = {name: value for name, value in columns.items() if value}
    begins = _first_bytes(address)
    is_dsjson = begins.lstrip().startswith(b"{") or address.endswith(".dsjson")
    if not begins.startswith(SQLITE) and not is_dsjson:
        return read_table(address, policy, others, columns)
    if odd := [*columns, *[f"policy {policy}"] * (":" in policy and not os.path.isfile(policy))]:
        raise UsageError(f"{address}: --{odd[0]} applies to tables only; leave it out for this log")
    from banditlab.policy.log_events import read_events

    return read_dsjson(address, others) if is_dsjson else read_events(address)


def _first_bytes(address: str) -> bytes:
    """Return the first bytes of a log's file; a database at a URL counts as a SQLite file (an event log)."""
    if "://" in address:
        return SQLITE
    try:
        with open(address, "rb") as file:
            return file.read(1024)
    except OSError as error:
        raise UsageError(f"{address} cannot be read ({error.strerror})") from None


class Stream:
    """The evaluation of a log part by part: it predicts rewards from earlier rounds and computes the policy's
    probabilities.
    """

    def __init__(self, source: Source, policy: str, after: int, decider: Decider | None) -> None:
        self.source, self.policy, self.decider = source, policy, decider
        self.after = source.rounds // 2 if policy == BEST else after
        self.seen, self.rewards = 0, 0.0
        self.model = RewardModel(len(source.names))
        self.weighted = np.zeros(len(source.names))
        self.replay: Replay | None = None

    def evaluated(self, log: str | os.PathLike[str], logger: str | None, level: float = 0.95) -> Evaluated:
        """Return the evaluation, or raise a UsageError that names the log."""
        kind: Any = logger or ("learning" if self.source.learning else "fixed")
        try:
            made = evaluate(self.logs(), logger=kind, estimated=self.source.estimated, level=level)
        except UsageError as error:
            raise UsageError(f"{log}: {error}") from None
        return Evaluated(made, [*map(str, self.source.names)], self.rewards / made.rounds, [*self.notes(made)])

    def logs(self) -> Iterator[Log]:
        """Yield the parts; raise one UsageError with all faults of all parts."""
        faults = self.source.faults
        for log, X, table in self.source.parts:
            rows, found = checked(log)
            faults += found
            if rows is not None and not faults:
                yield self._log(rows, X, table)
        refuse(faults)

    def notes(self, made: Evaluation) -> Iterator[str]:
        """Yield notes on the log and the policy."""
        yield from self.source.notes
        if self.policy == BEST:
            name = str(self.source.names[int(np.argmax(self.weighted))])
            first = f"had the largest weighted mean reward of the first {self.after:,} rounds"
            yield f"{name!r} {first}; the value is of the rounds after them"
        if self.replay is not None:
            learnt, n = self.replay.accepted, self.seen
            yield f"{self.policy} learnt from {learnt:,} of {n:,} rounds ({learnt / n:.1%}), accepted by rejection"
        if abs(made.mean_weight - (1.0 - made.unsupported)) > OFF:
            yield (
                f"the mean of the weights is {made.mean_weight:.2f} and should be near {1.0 - made.unsupported:.2f}: what the "
                "policy chooses was logged too rarely, so the estimates may be far off; the interval holds"
            )

    def _log(self, rows: Rows, X: Floats, table: Any) -> Log:
        a, r, m, K = rows.actions, rows.rewards, len(X), len(self.weighted)
        if self.source.estimated:
            p = estimated_propensities(X, a, K, np.arange(m) % FOLDS) if m > 1 else np.full((m, K), 1.0 / K)
            rows = rows._replace(propensities=p, chosen=p[np.arange(m), a])
        predictions = self.model.ahead(X, a, r)
        cut = int(np.clip(self.after - self.seen, 0, m))
        self.seen += m
        target = self._target(rows, X, table, predictions, cut)
        self.rewards += float(r[cut:].sum())
        p = rows.chosen if rows.propensities is None else rows.propensities
        return Log(*(x[cut:] for x in (a, r, p, target, predictions)))

    def _target(self, rows: Rows, X: Floats, table: Any, predictions: Floats, cut: int) -> Floats:
        """Return the target policy's probabilities (m, K) in a part, whose first `cut` rounds are for learning only."""
        a, p, K = rows.actions, rows.propensities, len(self.weighted)
        if self.decider is not None:
            return self.decider.target(table, rows, cut)
        if self.policy == UNIFORM or ":" in self.policy:
            return rows.target
        if self.policy == BEST:
            self.weighted += np.bincount(a[:cut], (rows.rewards / rows.chosen)[:cut], minlength=K)
            return np.tile(np.eye(K)[np.argmax(self.weighted)], (len(a), 1))
        if self.policy == TRAINED:
            able = np.ones((1, K)) if p is None else p > 0.0
            return np.eye(K)[np.where(able, predictions, -1.0).argmax(axis=1)]
        self.replay = self.replay or Replay(self.policy, X, rows.chosen, K)
        return self.replay.target(X, a, rows.rewards, rows.chosen if p is None else p)
