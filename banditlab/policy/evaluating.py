"""What another policy would have earned on a log, both named as on the command line: `banditlab evaluate`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import LogError, UsageError
from banditlab.offpolicy import Evaluation, Log, estimated_propensities, evaluate, predicted_rewards
from banditlab.offpolicy.log import read as checked
from banditlab.offpolicy.log import refuse
from banditlab.policy.container import SQLITE, Parts, unpacked
from banditlab.policy.container import read as read_policy
from banditlab.policy.events import ANSWERED, CHANGED, CLOSED, DECIDED, NEVER, from_bytes
from banditlab.policy.policy import Policy
from banditlab.policy.status import names_of
from banditlab.policy.unanswered import matched

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
HASHES = 64
"""Features that the texts of a row are hashed to. They are fitted to nothing, so they say nothing of later rounds."""
FOLDS = 5
LARGEST = 1e100
"""Larger numbers of a context are cut to this: models square them."""
BITS = {"True": 1.0, "False": 0.0, "true": 1.0, "false": 0.0}
ESTIMATED = "propensities are estimated: no column has them"
WITHOUT_ANSWER = (
    "{left:,} of {n:,} decisions have no answer, or no context any more, and are left out: the value is that of all decisions "
    "only if being answered depends on neither action nor reward"
)
FIRST_HALF = (
    "{name!r} had the largest weighted mean reward of the first {n:,} rounds; the value is of the rounds after them"
)
ALLOWED = "must be uniform, best-single, a policy's file{more}"
OF_TABLES = ", column:NAME or probabilities:PREFIX"


class Evaluated(NamedTuple):
    """A log's evaluation, and what it is of."""

    evaluation: Evaluation
    actions: list[str]
    """The names of the K actions."""
    logged: float
    """The mean reward of the same rounds under the logger."""
    notes: list[str]
    """What is to be known of the log and the policy, a sentence each."""


class _Read(NamedTuple):
    """A log as arrays of n rounds over the actions `names`."""

    actions: Floats
    """(n,) places in `names`, -1 where there is none."""
    rewards: Floats
    propensities: Floats | None
    """(n,) or (n, K); None where they are not known."""
    contexts: Floats
    """(n, d), finite."""
    names: list[str]
    target: Floats | None
    """(n, K), the policy's probabilities; None for the best single action."""
    notes: list[str]


def evaluate_log(
    log: str | os.PathLike[str],
    policy: str = "uniform",
    *,
    logger: Literal["fixed", "learning"] | None = None,
    level: float = 0.95,
    action: str = "",
    reward: str = "",
    propensity: str = "",
) -> Evaluated:
    """Estimate what a policy would have earned on a log.

    Parameters
    ----------
    log
        A policy's event log, or a CSV or Parquet file with columns of actions, reward bits and propensities.
    policy
        "uniform"; "best-single", the action that did best in the first half, evaluated on the second; a policy's file, which
        decides and does not learn. Of a table also "column:NAME", the action of each row, and "probabilities:PREFIX", columns
        called PREFIX and an action.
    logger, level
        As in `banditlab.offpolicy.evaluate`. By default an event log's logger learns, and a table's does not.
    action, reward, propensity
        Columns of a table; by default found by their names. Propensities are estimated where no
        column has them. All other columns are contexts, from which rewards are predicted.

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
    is_table = "://" not in address and not _starts_sqlite(address)
    columns = {"action": action, "reward": reward, "propensity": propensity}
    a, r, p, X, names, target, notes = (_of_table if is_table else _of_events)(address, policy, columns)
    n, K, start, estimated = len(a), len(names), 0, p is None
    refuse(
        checked(Log(a, r, np.ones(n) if p is None else p, np.full((n, K), 1.0 / K) if target is None else target))[1]
    )
    a = a.astype(np.intp)
    if p is None:
        p = estimated_propensities(X, a, K, np.random.default_rng(0).integers(FOLDS, size=n))
    if target is None:
        start, w = n // 2, r / (p if p.ndim == 1 else p[np.arange(n), a])
        best = int(np.argmax(np.bincount(a[:start], w[:start], minlength=K)))
        target = np.tile(np.eye(K)[best], (n, 1))
        notes = [*notes, FIRST_HALF.format(name=names[best], n=start)]
    rows = Log(*(x[start:] for x in (a, r, p, target, predicted_rewards(X, a, r, K))))
    made = evaluate(rows, logger=logger or ("fixed" if is_table else "learning"), estimated=estimated, level=level)
    return Evaluated(made, names, float(r[start:].mean()), notes)


def _starts_sqlite(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})") from None


def _refuse_policy(policy: str, more: str = "") -> None:
    if not Path(policy).is_file():
        raise UsageError(f"--policy {policy}: {ALLOWED.format(more=more)}")


# --------------------------------------------------------------------------------------------------------------- tables


def _of_table(path: str, policy: str, columns: dict[str, str]) -> _Read:
    from banditlab.envs.survey import logged_column

    frame = _frame(path)
    roles = {role: name or logged_column(role, frame.columns) for role, name in columns.items()}
    roles = {role: name for role, name in roles.items() if name}
    word, _, named = policy.partition(":")
    wanted = roles | ({"policy": named} if word == "column" else {})
    faults = [f"--{role}: there is no column {name!r}" for role, name in wanted.items() if name not in frame.columns]
    faults += [f"--{role} must name a column" for role in ("action", "reward") if role not in roles]
    if faults:
        raise UsageError(f"{path}: {'; '.join(faults)}; columns are {', '.join(map(str, frame.columns[:30]))}")
    actions = _texts(frame[roles["action"]])
    names, target_of, used = _policy_of_table(frame, word, named, policy)
    names = sorted({*actions.dropna(), *names})
    places = actions.map({name: k for k, name in enumerate(names)})
    return _Read(
        np.asarray(places.fillna(-1.0), np.float64),
        _numbers(frame[roles["reward"]]),
        _numbers(frame[roles["propensity"]]) if "propensity" in roles else None,
        _hashed(frame.drop(columns=[*{*roles.values(), *used}])),
        names,
        target_of(names),
        [] if "propensity" in roles else [ESTIMATED],
    )


def _policy_of_table(
    frame: pd.DataFrame, word: str, named: str, policy: str
) -> tuple[list[str], Callable[[list[str]], Floats | None], list[str]]:
    """Return the actions that a policy may choose, what gives its probabilities (n, K) of all actions, and its columns."""
    n = len(frame)
    if word == "uniform":
        return [], lambda names: np.full((n, len(names)), 1.0 / len(names)), []
    if word == "best-single":
        return [], lambda names: None, []
    if word == "column":
        chosen = _texts(frame[named])
        return [*chosen.dropna()], lambda names: (chosen.to_numpy()[:, None] == np.array(names)).astype(float), [named]
    if word == "probabilities":
        used = [name for name in frame.columns if name.startswith(named)]
        if not used:
            raise UsageError(f"--policy {policy}: no column begins with {named!r}")
        given = {name.removeprefix(named): _numbers(frame[name]) for name in used}
        return [*given], lambda names: np.column_stack([given.get(name, np.zeros(n)) for name in names]), used
    _refuse_policy(policy, OF_TABLES)
    decider = Policy.load(policy, extra="ignore")
    rows = (
        {name: value for name, value in row.items() if value == value} for row in frame.to_dict("records")
    )  # no NaN
    scores = [{str(name): p for name, p in choice.scores.items()} for choice in decider.decide_many(rows)]
    classes = [*map(str, decider.classes)]
    return classes, lambda names: np.array([[row.get(name, 0.0) for name in names] for row in scores]), []


def _frame(path: str) -> pd.DataFrame:
    from banditlab.envs import files
    from banditlab.envs.table import read_frame

    kind = files.format_of(path, "auto")
    data = files.content_of(path, files.read_bytes(path), kind)
    return read_frame(path, data, kind).checked().frame


def _texts(column: pd.Series) -> pd.Series:
    """Return a column's entries as texts, whole numbers without a point, and gaps."""
    whole = column.map(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
    return whole.astype(object).where(column.notna()).map(str, na_action="ignore")


def _numbers(column: pd.Series) -> Floats:
    import pandas as pd

    return pd.to_numeric(column.replace(BITS), errors="coerce").to_numpy(np.float64, na_value=np.nan)


def _hashed(frame: pd.DataFrame) -> Floats:
    """Return contexts (n, d): finite numbers as they are, gaps as 0 and a hashed word, texts hashed."""
    from sklearn.feature_extraction import FeatureHasher

    numeric = frame.select_dtypes(include=["number", "bool"])
    texts, X = frame.drop(columns=numeric.columns).astype(str), numeric.to_numpy(np.float64, na_value=np.nan)
    words = [[f"{numeric.columns[int(j)]}?" for j in np.flatnonzero(gaps)] for gaps in ~np.isfinite(X)]
    for name in texts.columns:
        for row, text in zip(words, texts[name], strict=True):
            row.append(f"{name}={text}")
    return np.hstack(
        [
            np.where(np.isfinite(X), np.clip(X, -LARGEST, LARGEST), 0.0),
            FeatureHasher(HASHES, input_type="string").transform(words).toarray(),
        ]
    )


# ----------------------------------------------------------------------------------------------------------- event logs


def _of_events(address: str, policy: str, columns: dict[str, str]) -> _Read:
    import sqlalchemy as sa

    from banditlab.policy.log import EVENTS, EventLog

    if named := [name for name, value in columns.items() if value]:
        raise UsageError(f"{address}: --{named[0]} is of tables: an event log has its columns; leave it out")
    if policy not in ("uniform", "best-single"):
        _refuse_policy(policy)
    e = EVENTS.c
    with closing(EventLog(address, write=False)) as reader:
        own = unpacked(reader.snapshot()[1], reader.source)
        changes = reader.rows(sa.select(e.correct, e.name).where(e.kind == CHANGED).order_by(e.seq))
        given = np.hstack([reader.numbers(kind, "seq", "at", "decision", "correct") for kind in (ANSWERED, CLOSED)])
        wanted = sa.select(e.seq, e.generation, e.action, e.allowed, e.distribution, e.context)
        rows = reader.rows(wanted.where(e.kind == DECIDED).order_by(e.seq))
    bits = matched(np.array([row[0] for row in rows], np.float64), given).correct
    which = [i for i, row in enumerate(rows) if not np.isnan(bits[i]) and row[1] != NEVER]
    if len(which) < 2:
        raise UsageError(f"{address}: fewer than two decisions have an answer")
    kept, names = [rows[i][2:] for i in which], names_of(own.core.classes, changes)
    p, able = np.zeros((2, len(kept), len(names)))
    try:
        contexts = np.array([from_bytes(bytes(row[3])) for row in kept])
        for i, (_, allowed, distribution, _) in enumerate(kept):
            played = from_bytes(bytes(distribution))
            K = len(played)  # of the classes at that time
            p[i, :K] = played / played.sum()
            able[i, :K] = 1 if allowed is None else np.unpackbits(np.frombuffer(allowed, np.uint8), count=K)
    except ValueError as error:
        raise LogError(f"{address}: a decision is damaged ({error}): restore the log from a copy") from error
    return _Read(
        np.array([row[0] for row in kept], np.float64),
        bits[which],
        p,
        contexts,
        [*map(str, names)],
        _target_of_events(policy, own, contexts, able, address),
        [WITHOUT_ANSWER.format(left=len(rows) - len(kept), n=len(rows))] if len(rows) > len(kept) else [],
    )


def _target_of_events(policy: str, own: Parts, X: Floats, able: Floats, address: str) -> Floats | None:
    if policy == "uniform":
        return able / able.sum(axis=1, keepdims=True)
    if policy == "best-single":
        return None
    other = read_policy(policy)
    if other.encoder.to_bytes() != own.encoder.to_bytes() or len(other.core.classes) != able.shape[1]:
        raise UsageError(f"--policy {policy}: it must have the columns and classes of the policy of {address}")
    masks = [None if row.all() else row.astype(np.bool_) for row in able]
    return np.array([other.core.choose(x, mask).probabilities for x, mask in zip(X, masks, strict=True)])
