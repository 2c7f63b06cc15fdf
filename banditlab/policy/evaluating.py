"""What another policy would have earned on a log, both named as on the command line: `banditlab evaluate`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.offpolicy import Evaluation, Log, PropensityModel, RewardModel, evaluate
from banditlab.offpolicy.log import read as checked
from banditlab.offpolicy.log import refuse
from banditlab.policy.container import SQLITE
from banditlab.policy.dsjson import read_dsjson
from banditlab.policy.log_events import read_events
from banditlab.policy.log_tables import read_table
from banditlab.policy.logged import Floats, Part, Source

FIRST_HALF = (
    "{name!r} had the largest weighted mean reward of the first {n:,} rounds; the value is of the rounds after them"
)


class Evaluated(NamedTuple):
    """A log's evaluation, and what it is of."""

    evaluation: Evaluation
    actions: list[str]
    """The names of the K actions."""
    logged: float
    """The mean reward of the same rounds under the logger."""
    notes: list[str]
    """What is to be known of the log and the policy, a sentence each."""


def evaluate_log(
    log: str | os.PathLike[str],
    policy: str = "uniform",
    *,
    logger: Literal["fixed", "learning"] | None = None,
    level: float = 0.95,
    **columns: str,
) -> Evaluated:
    """Estimate what a policy would have earned on a log. The log is read in parts, twice: it may be of any length.

    Parameters
    ----------
    log
        A policy's event log; a CSV or Parquet file with columns of actions, reward bits and propensities; or Vowpal Wabbit's
        dsjson with costs of -1 and 0.
    policy
        "uniform"; "best-single", the action that did best in the first half, evaluated on the second; a policy's file, which
        decides and does not learn. Of a table also "column:NAME", the action of each row, and "probabilities:PREFIX", columns
        called PREFIX and an action.
    logger, level
        As in `banditlab.offpolicy.evaluate`. By default an event log's logger learns, and others do not.
    columns
        `action`, `reward` and `propensity`: columns of a table, by default found by their names. Propensities are estimated
        where no column has them. `id`: a column without doubled entries. All other columns are contexts, from which rewards
        are predicted.

    Returns
    -------
    Evaluated
        All figures, and what they are of.

    Raises
    ------
    UsageError
        The log, its columns or the policy have faults: all that are found at once, with their numbers of rows.
    LogError
        The event log cannot be read.
    """
    address = os.fspath(log)
    source = _source(address, policy, {name: value for name, value in columns.items() if value})
    stream = _Stream(source, address)
    kind = logger or ("learning" if source.learning else "fixed")
    made = evaluate(stream.logs(), logger=kind, estimated=source.estimated, level=level)
    return Evaluated(made, source.names, stream.rewards / made.rounds, source.notes)


def _source(address: str, policy: str, columns: dict[str, str]) -> Source:
    begins = b""
    if "://" not in address:
        try:
            with open(address, "rb") as file:
                begins = file.read(2**10)
        except OSError as error:
            raise UsageError(f"{address} cannot be read ({error.strerror})") from None
    if "://" not in address and not begins.startswith(SQLITE) and not begins.lstrip().startswith(b"{"):
        return read_table(address, policy, columns)
    if columns:
        raise UsageError(f"{address}: --{next(iter(columns))} is of tables: this log has its columns; leave it out")
    return read_dsjson(address, policy) if begins.lstrip().startswith(b"{") else read_events(address, policy)


class _Stream:
    """The parts of a log with predictions from earlier rounds."""

    def __init__(self, source: Source, address: str) -> None:
        self.source, self.address, self.seen, self.rewards = source, address, 0, 0.0
        self.model = RewardModel(len(source.names))
        self.propensities: PropensityModel | None = None
        self.weighted = np.zeros(len(source.names))

    def logs(self) -> Iterator[Log]:
        """Yield the parts, or raise a UsageError that names all faults of all of them."""
        faults, K = self.source.faults, len(self.source.names)
        for part in self.source.parts:
            m = len(part.actions)
            p = np.ones(m) if part.propensities is None else part.propensities
            target = np.full((m, K), 1.0 / K) if part.target is None else part.target
            faults += checked(Log(part.actions, part.rewards, p, target))[1]
            if not faults:
                yield self._log(part)
        try:
            refuse(faults)
        except UsageError as error:
            raise UsageError(f"{self.address}: {error}") from None

    def _log(self, part: Part) -> Log:
        a, r, p, X, target = part
        places = a.astype(np.intp)
        p = self._estimated(X, places) if p is None else p
        predictions = self.model.ahead(X, places, r)
        start, self.seen = self.seen, self.seen + len(a)
        cut = 0 if target is not None else int(np.clip(self.source.rounds // 2 - start, 0, len(a)))
        target = self._best_single(places, r, p, cut) if target is None else target
        self.rewards += float(r[cut:].sum())
        return Log(*(x[cut:] for x in (a, r, p, target, predictions)))

    def _estimated(self, X: Floats, a: NDArray[np.intp]) -> Floats:
        if self.propensities is None:
            self.propensities = PropensityModel(X, a, len(self.source.names))
            return self.propensities.own
        return self.propensities.of(X)

    def _best_single(self, a: NDArray[np.intp], r: Floats, p: Floats, cut: int) -> Floats:
        """Return the target (m, K) of the action that did best so far, from the rounds before `cut` of this part, too."""
        chosen, K = p if p.ndim == 1 else p[np.arange(len(a)), a], len(self.weighted)
        self.weighted += np.bincount(a[:cut], (r / chosen)[:cut], minlength=K)
        best, half = int(np.argmax(self.weighted)), self.source.rounds // 2
        if self.seen >= half > self.seen - len(a):
            self.source.notes.append(FIRST_HALF.format(name=self.source.names[best], n=half))
        return np.tile(np.eye(K)[best], (len(a), 1))
