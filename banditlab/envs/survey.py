"""A survey of a table: the roles of its columns, columns that reveal the label, and all faults."""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.envs._columns import Column, are_dates, column_of
from banditlab.envs._frame import SHOWN_COLUMNS, classes_of, refuse_columns
from banditlab.envs._outliers import bounds
from banditlab.envs._reading import WORDS
from banditlab.envs.encoding import check_roles, refuse_gaps
from banditlab.errors import FaultError, UsageError, nearest

if TYPE_CHECKING:
    import pandas as pd

Labels = NDArray[np.int64]
LOGGED = {
    "action": {"action", "arm", "chosen", "chosen_action", "chosen_arm", "action_id", "arm_id", "variant", "treatment", "a"},
    "reward": {"reward", "r", "click", "clicked", "converted", "conversion", "payoff", "payout"},
    "propensity": {
        "propensity", "propensity_score", "pscore", "prob", "probability", "action_prob", "action_probability", "p",
        "logging_prob", "logging_probability",
    },
}  # fmt: skip
"""Usual names of columns in a log of decisions. A name of one letter counts only if both other columns are found."""
GIVEN_AWAY = 0.995
"""A column that predicts at least this fraction of held-out labels is a probable leak."""
LEAST_ROWS = 50
"""The least number of rows for evidence of a leak."""
CODE_ROWS, CODE_APART, MOST_CODES = 3, 3.0, 3
"""Least rows, and least distance in ranges of the other values, of a value that may be a code; largest number of codes."""
LOOKED_AT, MOST_LOOKED = 4000, 2000
"""The numbers of sampled rows and of columns in which leaks are searched."""
ID_NAME = re.compile(r"(^|[^a-z])(id|uuid|guid|key|nr|no|number|index|row)([^a-z]|$)|[a-z]Id$|ID$", re.IGNORECASE)
TIME_NAME = re.compile(r"date|time|timestamp|(^|_)(day|month|year|ts|at)(_|$)", re.IGNORECASE)


class Note(NamedTuple):
    """One column: its role, a remark, and the option that changes the role."""

    name: str
    role: str
    """"numeric", "nominal", "time", "constant", "identifier-like", "index-like", "time-like", "probable leak"."""
    remark: str = ""
    option: str = ""
    gives_away: bool = False
    """Whether the column alone predicts nearly all labels."""


class Survey(NamedTuple):
    """The survey of a table."""

    notes: list[Note]
    faults: list[FaultError]
    sentences: list[str]
    """Remarks on the whole table."""
    columns: dict[str, str] = {}
    """The role of each feature column, "" for a rejected one."""
    classes: Counter[Any] = Counter()
    """The number of rows of each class, without the rows that `missing` drops."""
    n_rows: int = 0
    """The number of the table's rows, including those without a label."""


def survey(
    frame: pd.DataFrame,
    label: str,
    *,
    roles: dict[str, str] | None = None,
    drop_columns: list[str] | None = None,
    text: list[str] | None = None,
    max_categories: int = 100,
    missing: str = "error",
    source: str = "table",
) -> Survey:
    """Return the roles of a table's columns and all its faults, without raising an error. Settings are those of `Table`."""
    roles, drop, texts = dict(roles or {}), list(drop_columns or ()), list(text or ())
    names = [str(name) for name in frame.columns]
    frame = frame.set_axis(names, axis=1)
    faults: list[FaultError] = []
    sentences = []
    logged = logged_decisions(frame)
    if logged and label not in set(names) - set(logged.values()):
        faults.append(FaultError(f"{source}: {_logged_sentence(logged)}"))
    elif logged:
        sentences.append(_logged_sentence(logged))
    y, classes = _labels(frame, label, names, missing, source, faults)
    for name in drop:
        _collect(faults, refuse_columns, [name], names, source)
    _collect(faults, check_roles, roles, names, source)
    meant = label if label in names else likeliest(label, names)
    # Without a known label, any column may be the label, to which the faults of features do not apply.
    apart = {meant, *drop, *texts}
    left = [n for n in names if n not in apart and roles.get(n) != "drop"] if label else []
    rows = frame if y is None else frame[y >= 0]
    known = None if y is None else y[y >= 0]
    is_sorted = known is not None and _is_sorted(known)
    notes, columns, whole = [], dict.fromkeys(left, ""), np.ones(len(rows), dtype=bool)
    for i, name in enumerate(left):
        where = f"{source}: column {name!r}"
        column = _collect(faults, column_of, rows[name], max_categories, where, roles.get(name, ""))
        if column is None:
            continue
        if missing == "drop_rows":
            whole &= ~column.gaps
        columns[name] = "nominal" if column.n_categories else column.role
        if missing == "error":
            _collect(faults, refuse_gaps, [column], source, rows.index.to_numpy())
        look = known if i < MOST_LOOKED and logged.get("propensity") != name else None
        notes.append(note_of(column, rows[name], look, is_sorted, asked=name in roles))
    if label and not left and not texts:
        faults.append(FaultError(f"{source}: no feature column is left"))
    if is_sorted:
        sentences.append("the rows are sorted by label; this has no effect, because each run draws its own order")
    if len(left) > MOST_LOOKED:
        sentences.append(f"leaks were searched in the first {MOST_LOOKED:,} columns only")
    counts = Counter() if known is None else Counter(classes[k] for k in known[whole].tolist())
    return Survey(notes, faults, sentences, columns, counts, len(frame))


def _collect(faults: list[FaultError], what: Any, *arguments: Any) -> Any:
    """Return a function's result; record its UsageError as a fault."""
    try:
        return what(*arguments)
    except UsageError as error:
        faults.append(error if isinstance(error, FaultError) else FaultError(str(error)))
    return None


def _labels(
    frame: pd.DataFrame, label: str, names: list[str], missing: str, source: str, faults: list[FaultError]
) -> tuple[Labels | None, list[Any]]:
    r"""Return the labels and the classes.

    Labels are (N,) in :math:`0, \dots, K-1` with -1 for missing ones, or None if the labels have a fault.
    """
    if label not in names:
        hint = nearest(label, names[:SHOWN_COLUMNS], keep_order=True)
        meant = likeliest(label, names)
        if meant and "did you mean" not in hint:
            hint = f"; did you mean {meant!r}?{hint}"
        said = (
            f"label (--label): there is no column {label!r}"
            if label
            else "set label (--label) to the column to predict"
        )
        faults.append(FaultError(f"{source}: {said}{hint}", *(("--label", meant) if meant else ())))
        return None, []
    found = _collect(faults, classes_of, frame[label], f"{source}: label column {label!r}", missing != "error")
    if found is None:  # missing labels are one fault; other faults are searched in the other rows
        known = frame[label].notna().to_numpy()
        found = _collect([], classes_of, frame[label][known], source, False) if known.any() else None
        if found is None:
            return None, []
        y = np.full(len(frame), -1, dtype=np.int64)
        y[known] = found[0]
        return y, found[1]
    return found


def about_classes(counts: Mapping[Any, int]) -> list[str]:
    """Return remarks on the classes of a table, given the number of rows of each class."""
    said, alike = [], defaultdict(list)
    for name in counts:
        alike[" ".join(str(name).casefold().split())].append(repr(name))
    for names in alike.values():
        if len(names) > 1:
            said.append(f"classes {', '.join(names)} differ only in case and blanks: one class?")
    joined = [name for name in counts if "|" in str(name)]
    if joined:
        said.append(f"{len(joined)} classes are names joined by '|', such as {joined[0]!r}: each counts as one class")
    single = [repr(name) for name, rows in counts.items() if rows == 1]
    if single:
        said.append(f"{len(single)} of {len(counts)} classes have only one row: {', '.join(single[:10])}")
    if len(counts) > sum(counts.values()) / 5:
        said.append(f"{len(counts)} classes are more than a fifth of the number of rows: is this a label?")
    words = [f"{name!r} is a class; --na-values {name} makes it missing" for name in WORDS if name in counts]
    return said + words


def likeliest(label: str, names: list[str]) -> str:
    """Return the column that a misspelt label name probably means, or ""."""
    same = [name for name in names if name.strip().casefold() == label.strip().casefold() != ""]
    close = re.search(r"did you mean '(.*?)'\?", nearest(label, names[:SHOWN_COLUMNS])) if label else None
    return same[0] if same else close.group(1) if close else ""


# ------------------------------------------------------------------------------------------------------------- one column


def note_of(column: Column, series: pd.Series, y: Labels | None, is_sorted: bool, asked: bool) -> Note:
    """Return the note on a column whose rows have labels y (n,). `asked` says whether the user set the role."""
    import pandas as pd

    name = column.name
    role = "nominal" if column.n_categories else column.role
    drop = f"--drop-column {shlex.quote(name)}"
    known = column.values[~column.gaps]
    if len(known) == 0 or known.min() == known.max():
        return Note(name, "constant", "the same value in all rows", drop)
    counts = role == "numeric" and _is_counter(known)
    if counts and is_sorted:
        return Note(name, "probable leak", "row number of a table sorted by label", drop)
    if y is not None and len(y) >= LEAST_ROWS:
        share = share_alone(column, y)
        if share >= GIVEN_AWAY and share > 1.0 - (1.0 - _most_frequent(y)) / 4.0:
            return Note(name, "probable leak", f"alone predicts {100 * share:.1f} % of labels", drop, gives_away=True)
    if counts:
        return Note(name, "index-like", "counts the rows", drop)
    if role == "nominal" and not asked and are_dates(pd.Series(column.names[: 1 + len(column.names) // 2])):
        return Note(name, "time-like", "dates as categories", f"--role {shlex.quote(name)}=time")
    if role == "nominal":
        word = next((word for word in WORDS if word in column.names), "")
        remark = f"{column.n_categories} categories" + (f", {word} is one" if word else "")
        return Note(name, role, remark, f"--na-values {word}" if word else "")
    whole = bool((known == np.floor(known)).all())
    if whole and not asked and len(np.unique(known)) == len(known) and (ID_NAME.search(name) or len(known) >= 200):
        return Note(name, "identifier-like", "a different whole number in each row", drop)
    if not asked and role == "numeric" and TIME_NAME.search(name) and _is_clock(known):
        return Note(name, "time-like", "probably seconds of a clock", drop)
    few, codes = range_of(known) if role == "numeric" else ("days since 1970", "")
    if whole and role == "numeric" and not asked and ID_NAME.search(name) and len(np.unique(known)) <= 100:
        return Note(name, role, f"{few}; codes?", f"--role {shlex.quote(name)}=nominal")
    return Note(name, role, few, codes)


def range_of(known: NDArray[Any]) -> tuple[str, str]:
    """Return a text on the range and a few outliers of numbers (n,), and a command-line option.

    The option declares outliers that look like codes of missing values as missing; it is "" if there are none.
    """
    low, high = bounds(known)
    far = (known < low) | (known > high)
    least, largest = known[~far].min(), known[~far].max()
    values, counts = np.unique(known[far], return_counts=True)
    with np.errstate(all="ignore"):
        apart = np.maximum(values / 2 - largest / 2, least / 2 - values / 2) / (largest / 2 - least / 2)
    codes = (counts >= CODE_ROWS) & (apart > CODE_APART)
    shown = codes if codes.any() else (apart > 1.0) & (len(values) == 1)
    if not 0 < shown.sum() <= MOST_CODES:
        return f"{known.min():.4g} to {known.max():.4g}", ""
    names, rows, times = [f"{v:.15g}" for v in values[shown]], counts[shown].sum(), float(f"{apart[shown].min():.2g}")
    what = f"{rows:,} row{'s' if rows > 1 else ''} at {' and '.join(names)}, {times:,.10g} times the others' range away"
    said = f"{least:.4g} to {largest:.4g}, and {what}"
    return (f"{said}: a code for missing?", " ".join(f"--na-values {n}" for n in names)) if codes.any() else (said, "")


def _is_counter(known: NDArray[Any]) -> bool:
    """Return whether each number (n,) exceeds the one before it by 1, as row numbers do."""
    with np.errstate(over="ignore"):  # an overflow is not 1
        return len(known) > 2 and bool((np.diff(known) == 1.0).all())


def _is_clock(known: NDArray[Any]) -> bool:
    low, high = float(known.min()), float(known.max())
    return any(unit * 1e8 <= low and high < unit * 1e10 for unit in (1.0, 1e3, 1e6, 1e9))


def _is_sorted(y: Labels) -> bool:
    K = int(y.max()) + 1
    return len(y) > 2 * K and int(np.count_nonzero(np.diff(y))) == K - 1


def _most_frequent(y: Labels) -> float:
    return float(np.bincount(y).max() / len(y))


def share_alone(column: Column, y: Labels) -> float:
    """Return the fraction of labels y (n,) that the column alone predicts correctly, by cross-fitting.

    For a nominal column, the prediction is the most frequent class among the other rows with the same category. For
    numbers, a small decision tree is fitted to each half of the rows and predicts the other half. Large tables are
    sampled with a fixed seed. The result is NaN if too few rows have an entry.
    """
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(20)
    take = rng.permutation(len(y))[:LOOKED_AT]
    take = take[~column.gaps[take]]
    if len(take) < LEAST_ROWS:
        return float("nan")
    values, y = column.values[take], y[take]
    K = int(y.max()) + 1
    if column.n_categories:
        counts = np.zeros((column.n_categories, K))
        np.add.at(counts, (values, y), 1.0)
        others = counts[values]
        others[np.arange(len(y)), y] -= 1.0
        others += np.bincount(y, minlength=K) * 1e-9  # for a category of one row predict the most frequent class
        return float(np.mean(np.argmax(others, axis=1) == y))
    if len(y) < 4 * K:  # too few rows per class
        return float("nan")
    right, half, feature = 0, len(y) // 2, _for_trees(values)
    for learn, ask in ((slice(None, half), slice(half, None)), (slice(half, None), slice(None, half))):
        tree = DecisionTreeClassifier(max_leaf_nodes=max(4 * K, 16), random_state=0)
        right += int((tree.fit(feature[learn], y[learn]).predict(feature[ask]) == y[ask]).sum())
    return right / len(y)


def _for_trees(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers (n,) as a float32 feature (n, 1) for decision trees, in units of their range or as ranks."""
    half = 0.5 * values
    scaled = ((half - half.min()) / max(float(half.max() - half.min()), np.finfo(float).tiny)).astype(np.float32)
    if len(np.unique(scaled)) < 0.9 * len(np.unique(values)):  # a few extreme values would merge the others
        scaled = np.searchsorted(np.sort(values), values).astype(np.float32)
    return scaled[:, None]


# ------------------------------------------------------------------------------------------------------- logged decisions


def logged_decisions(frame: pd.DataFrame) -> dict[str, str]:
    """Return the columns of action, reward and propensity; empty if the table is not a log of decisions."""
    found: dict[str, str] = {}
    for kind, known in LOGGED.items():
        usual = (str(name) for name in frame.columns if _plain(name) in known)
        for name in usual:
            if kind not in found and (kind != "propensity" or _are_probabilities(frame[name])):
                found[kind] = name
    letters = any(len(name) == 1 for name in found.values())
    return found if "action" in found and len(found) >= (3 if letters else 2) else {}


def logged_column(kind: str, names: Iterable[Any]) -> str:
    """Return the table's first column with a usual name for action, reward or propensity, or ""."""
    plain = ((str(name), _plain(name)) for name in names if not re.search("[0-9]", str(name)))
    return next((name for name, text in plain if text in LOGGED[kind]), "")


def _plain(name: object) -> str:
    return re.sub(r"[^a-z]+", "_", str(name).lower()).strip("_")


def _are_probabilities(series: pd.Series) -> bool:
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(series.dtype):
        return False
    values = series.dropna()
    return bool(len(values) and (values > 0.0).all() and (values <= 1.0).all())


def _logged_sentence(logged: dict[str, str]) -> str:
    columns = ", ".join(f"{kind} {name!r}" for kind, name in logged.items())
    return (
        f"this looks like a log of decisions ({columns}); a comparison needs the label of each row, the right action, "
        "not only the reward of the chosen one; `banditlab evaluate` estimates the value of a policy from a log"
    )
