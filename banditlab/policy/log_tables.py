"""Logs in CSV or Parquet files of any length, with a row per decision."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from banditlab.envs import files
from banditlab.envs.survey import LOGGED, logged_column
from banditlab.errors import UsageError
from banditlab.offpolicy.log import Floats, Log
from banditlab.policy.logged import CHUNK, LARGEST, Source, doubled, hashed, hashes

Chunks = Callable[[], Iterator[pd.DataFrame]]
READING = ("format", "encoding", "separator")
"""The settings of `Table` that describe a file's format."""
WHOLE = 2**25
"""Bytes of a CSV file above which it is read in parts; Parquet always is."""
BITS = {"True": 1.0, "False": 0.0, "true": 1.0, "false": 0.0}


def read_table(path: str, policy: str, others: Sequence[str] | None, columns: dict[str, str]) -> Source:
    """Return a table's log, or raise a UsageError; `policy` may be "column:NAME" or "probabilities:PREFIX", and
    `others` are the names of further actions.
    """
    chunks = _chunks(path, *(columns.get(name, "auto") for name in READING))
    first = next(chunks(), None)
    if first is None:
        raise UsageError(f"{path}: the table has no rows")
    names = [str(name) for name in first.columns]
    if len({*names}) < len(names):
        raise UsageError(f"{path}: two columns have the same name; rename one of them")
    roles = {role: columns.get(role) or logged_column(role, names) for role in (*LOGGED, *(columns.keys() & {"id"}))}
    word, _, named = policy.partition(":")
    wanted = roles | ({"policy": named} if word == "column" else {})
    faults = [f"--{role}: there is no column {name!r}" for role, name in wanted.items() if name and name not in names]
    faults += [f"--{role} must name a column" for role in ("action", "reward") if not roles[role]]
    if faults:
        raise UsageError(f"{path}: {'; '.join(faults)}; columns are {', '.join(names[:30])}")
    prefixed = [name for name in names if word == "probabilities" and name.startswith(named)]
    used = prefixed or [named] * (word == "column")
    if word == "probabilities" and not used:
        raise UsageError(f"--policy {policy}: no column begins with {named!r}")
    found = {*(others or ()), *(name.removeprefix(named) for name in prefixed)}
    apart = [name for name in [*roles.values(), *used] if name]
    rounds, gaps, ids = 0, 0, []
    for frame in chunks():
        rounds += len(frame)
        for name in [roles["action"], *(used if word == "column" else ())]:
            found |= {*_texts(frame[name]).dropna()}
        if "id" in roles:
            ids.append(hashes(_texts(frame[roles["id"]]).dropna()))
        gaps += int(frame.drop(columns=apart).isna().to_numpy().sum())
    actions = sorted(found)
    places = {name: k for k, name in enumerate(actions)}

    def target(frame: pd.DataFrame) -> Floats:
        if word == "column":
            return (_texts(frame[named]).to_numpy()[:, None] == [actions]).astype(np.float64)
        if word == "probabilities":
            columns = frame.reindex(columns=[named + name for name in actions], fill_value=0.0)
            return columns.apply(_numbers).to_numpy(np.float64)
        return np.full((len(frame), len(actions)), 1.0 / max(len(actions), 1))

    def part(frame: pd.DataFrame) -> tuple[Log, Floats, pd.DataFrame]:
        chosen = _texts(frame[roles["action"]]).map(places).fillna(-1.0).to_numpy(np.float64)
        p = np.ones(len(frame)) if estimated else _numbers(frame[roles["propensity"]])
        log = Log(chosen, _numbers(frame[roles["reward"]]), p, target(frame))
        rows = frame.drop(columns=apart)
        return log, _contexts(rows), rows

    estimated = not roles["propensity"]
    notes = ["propensities are estimated: no column has them"] * estimated
    notes += [f"missing entries of contexts: {gaps:,}; each counts as a separate value"] * (gaps > 0)
    return Source(actions, rounds, map(part, chunks()), doubled(ids), notes, estimated)


# ------------------------------------------------------------------------------------------------------------- reading


def _chunks(path: str, format_: str, encoding: str, separator: str) -> Chunks:
    """Return a function that yields the table's rows in parts, from the start at each call."""
    from banditlab.envs.table import read_frame

    kind = files.format_of(path, format_)  # type: ignore[arg-type]
    if kind != "parquet" and (kind != "csv" or os.path.getsize(path) <= WHOLE):
        content = files.content_of(path, files.read_bytes(path), kind, encoding)
        whole = read_frame(path, content, kind, separator).checked().frame
        return lambda: (whole.iloc[at : at + CHUNK] for at in range(0, len(whole), CHUNK))
    return lambda: _large(path, kind, "utf-8-sig" if encoding == "auto" else encoding, separator)


def _large(path: str, kind: str, encoding: str, separator: str) -> Iterator[pd.DataFrame]:
    import pyarrow.parquet

    try:
        if kind == "parquet":
            yield from (batch.to_pandas() for batch in pyarrow.parquet.ParquetFile(path).iter_batches(CHUNK))
            return
        if separator == "auto":
            with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
                head = file.read(files.SNIFFED).decode(encoding, "replace")
            separator = files.sniff_separator(path, head.encode())
        yield from pd.read_csv(path, sep=separator, encoding=encoding, chunksize=CHUNK, low_memory=False)
    except (ValueError, TypeError, OSError, EOFError, LookupError, pyarrow.ArrowException) as error:
        raise UsageError(f"{path}: damaged, or not a table ({' '.join(str(error).split())})") from None


def _texts(column: pd.Series) -> pd.Series:
    """Return a column's entries as strings, whole numbers without a decimal point; missing entries remain missing."""
    texts = column.map(str) if column.dtype == object else column.astype("str")  # which decodes bytes
    texts = texts.str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)
    return texts.astype(object).where(column.notna())


def _numbers(column: pd.Series) -> Floats:
    return pd.to_numeric(column.replace(BITS), errors="coerce").to_numpy(np.float64, na_value=np.nan)


def _contexts(frame: pd.DataFrame) -> Floats:
    """Return contexts (m, d), with numbers clipped to the range of ±LARGEST and strings hashed.

    A missing or infinite number becomes 0, and one more hashed feature says so.
    """
    X = np.zeros(frame.shape)
    words: list[list[tuple[str, float]]] = [[] for _ in range(len(frame))]
    for j, name in enumerate(frame.columns):
        if pd.api.types.is_numeric_dtype(frame[name].dtype):
            X[:, j] = frame[name].to_numpy(np.float64, na_value=np.nan)
            for i in np.flatnonzero(~np.isfinite(X[:, j])):
                words[i].append((f"{name}?", 1.0))
        else:
            for row, text in zip(words, _texts(frame[name]), strict=True):
                row.append((f"{name}={text}", 1.0))
    return np.hstack([np.where(np.isfinite(X), np.clip(X, -LARGEST, LARGEST), 0.0), hashed(words).toarray()])
