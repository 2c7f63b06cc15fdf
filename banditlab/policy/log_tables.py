"""Logs in CSV or Parquet files of any length, with a row per decision."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from banditlab.envs import files
from banditlab.envs.survey import LOGGED, logged_column
from banditlab.errors import UsageError
from banditlab.policy.logged import CHUNK, LARGEST, Floats, Part, Source, doubled, hashed

if TYPE_CHECKING:
    import pandas as pd

    Chunks = Callable[[], Iterator[pd.DataFrame]]
WHOLE = 2**25
"""Bytes of a CSV file above which it is read in parts; Parquet always is."""
BITS = {"True": 1.0, "False": 0.0, "true": 1.0, "false": 0.0}
ESTIMATED = "propensities are estimated: no column has them"
GAPS = "missing entries of contexts: {n:,}; each counts as a separate value"


def read_table(path: str, policy: str | None, columns: dict[str, str]) -> Source:
    """Return a table's log, or raise a UsageError; see `banditlab.policy.logged.Part` for the policy."""
    chunks = _chunks(path)
    names = [str(name) for name in next(chunks()).columns]
    if len({*names}) < len(names):
        raise UsageError(f"{path}: two columns have one name; rename one")
    roles = {role: name or logged_column(role, names) for role, name in (dict.fromkeys(LOGGED, "") | columns).items()}
    roles = {role: name for role, name in roles.items() if name}
    word, _, named = (policy or "").partition(":")
    wanted = roles | ({"policy": named} if word == "column" else {})
    faults = [f"--{role}: there is no column {name!r}" for role, name in wanted.items() if name not in names]
    faults += [f"--{role} must name a column" for role in ("action", "reward") if role not in roles]
    if faults:
        raise UsageError(f"{path}: {'; '.join(faults)}; columns are {', '.join(names[:30])}")
    able, target_of, used = _policy_of_table(names, word, named, policy)
    found, rounds, gaps, ids = {*able}, 0, 0, []
    for frame in chunks():
        rounds += len(frame)
        for name in {roles["action"], *used} if word == "column" else {roles["action"]}:
            found |= {*_texts(frame[name]).dropna()}
        if "id" in roles:
            ids.append(_hash(frame[roles["id"]]))
        gaps += int(frame.drop(columns=[*{*roles.values(), *used}]).isna().to_numpy().sum())
    actions = sorted(found)
    notes = [ESTIMATED] * ("propensity" not in roles) + [GAPS.format(n=gaps)] * (gaps > 0)
    parts = (_part(frame, roles, used, actions, target_of) for frame in chunks())
    return Source(actions, rounds, parts, doubled(ids), notes, "propensity" not in roles)


def _part(frame: pd.DataFrame, roles: dict[str, str], used: list[str], actions: list[str], target_of: Any) -> Part:
    places = _texts(frame[roles["action"]]).map({name: k for k, name in enumerate(actions)})
    return Part(
        np.asarray(places.fillna(-1.0), np.float64),
        _numbers(frame[roles["reward"]]),
        _numbers(frame[roles["propensity"]]) if "propensity" in roles else None,
        _contexts(frame.drop(columns=[*{*roles.values(), *used}])),
        target_of(frame, actions),
    )


def _policy_of_table(
    columns: list[str], word: str, named: str, policy: str | None
) -> tuple[list[str], Callable[[pd.DataFrame, list[str]], Floats | None], list[str]]:
    """Return a policy's actions, a function that returns its probabilities (m, K), and its columns."""
    if word == "uniform":
        return [], lambda frame, names: np.full((len(frame), len(names)), 1.0 / len(names)), []
    if policy is None:
        return [], lambda frame, names: None, []
    if word == "column":
        return (
            [],
            lambda frame, names: (_texts(frame[named]).to_numpy()[:, None] == np.array(names)).astype(float),
            [named],
        )
    if word == "probabilities":
        used = {name.removeprefix(named): name for name in columns if name.startswith(named)}
        if not used:
            raise UsageError(f"--policy {policy}: no column begins with {named!r}")
        return (
            [*used],
            lambda frame, names: np.column_stack(
                [_numbers(frame[used[name]]) if name in used else np.zeros(len(frame)) for name in names]
            ),
            [*used.values()],
        )
    from banditlab.policy.policy import Policy

    decider = Policy.load(policy, extra="ignore")

    def decided(frame: pd.DataFrame, names: list[str]) -> Floats:
        rows = ({name: value for name, value in row.items() if value == value} for row in frame.to_dict("records"))
        scores = [{str(name): p for name, p in choice.scores.items()} for choice in decider.decide_many(rows)]
        return np.array([[row.get(name, 0.0) for name in names] for row in scores])

    return [*map(str, decider.classes)], decided, []


# ------------------------------------------------------------------------------------------------------------- reading


def _chunks(path: str) -> Chunks:
    """Return a function that yields the table's rows in parts, from the start at each call."""
    from banditlab.envs.table import read_frame

    kind = files.format_of(path, "auto")
    if kind != "parquet" and (kind != "csv" or os.path.getsize(path) <= WHOLE):
        whole = read_frame(path, files.content_of(path, files.read_bytes(path), kind), kind).checked().frame
        return lambda: (whole.iloc[at : at + CHUNK] for at in range(0, len(whole), CHUNK))
    return lambda: _large(path, kind)


def _large(path: str, kind: str) -> Iterator[pd.DataFrame]:
    import pandas as pd
    import pyarrow.parquet

    try:
        if kind == "parquet":
            for batch in pyarrow.parquet.ParquetFile(path).iter_batches(CHUNK):
                yield batch.to_pandas()
            return
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            separator = files.sniff_separator(path, file.read(files.SNIFFED))
        yield from pd.read_csv(path, sep=separator, encoding="utf-8-sig", chunksize=CHUNK, low_memory=False)
    except (ValueError, OSError, EOFError, pyarrow.ArrowException) as error:
        raise UsageError(f"{path}: damaged, or not a table ({' '.join(str(error).split())})") from None


def _texts(column: pd.Series) -> pd.Series:
    """Return a column's entries as texts, whole numbers without a point, and gaps."""
    texts = column.astype("str").str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)
    return texts.astype(object).where(column.notna())


def _numbers(column: pd.Series) -> Floats:
    import pandas as pd

    return pd.to_numeric(column.replace(BITS), errors="coerce").to_numpy(np.float64, na_value=np.nan)


def _hash(column: pd.Series) -> Any:
    import pandas as pd

    return pd.util.hash_array(_texts(column).to_numpy(object), categorize=False)


def _contexts(frame: pd.DataFrame) -> Floats:
    """Return contexts (m, d): finite numbers as they are, gaps as 0 and a hashed word, texts hashed, in any type of column."""
    import pandas as pd

    X = np.zeros(frame.shape)
    words: list[list[tuple[str, float]]] = [[] for _ in range(len(frame))]
    for j, name in enumerate(frame.columns):
        if pd.api.types.is_numeric_dtype(frame[name].dtype):
            X[:, j] = frame[name].to_numpy(np.float64, na_value=np.nan)
            for i in np.flatnonzero(~np.isfinite(X[:, j])):
                words[i].append((f"{name}?", 1.0))
        else:
            for row, text in zip(words, frame[name].astype("str"), strict=True):
                row.append((f"{name}={text}", 1.0))
    return np.hstack([np.where(np.isfinite(X), np.clip(X, -LARGEST, LARGEST), 0.0), hashed(words).toarray()])
