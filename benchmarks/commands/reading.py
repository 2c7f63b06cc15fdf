"""Is our reading of the bake-off's tables theirs? One-against-all loss by Vowpal Wabbit beside the published one.

    python -m benchmarks reading --tables FOLDER --into FILE.csv

FOLDER has `index.csv` (openml_id, file, rows, rows_here, classes, label, supervised_loss) and FILE.csv.gz for each
file, the label last. For every id with a published loss (Bietti, Agarwal and Langford: A contextual bandit bake-off,
JMLR 22, 2021; their repository cb_bakeoff, oaa_loss.txt) and all its rows there, Vowpal Wabbit plays `--oaa K -b 24`
over the rows in several random orders, and the least progressive loss over the learning rates counts. The authors
wrote a value of a nominal column as a number, its place in a list of values. A CSV file lacks that list, so three
forms are played: numbers in the order of the alphabet (or of `LISTED`), numbers in the order in which values appear, and
a feature per value. What is finished is in --into and not played again; --keep copies it to docs/results/bakeoff-reading.csv.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.result_pages.bakeoff_reading import FORMS, parts
from banditlab.analysis.pages import fill_page
from banditlab.errors import UsageError

RATES = (0.1, 0.5, 2.0, 8.0)
THEIRS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""The learning rates of the authors' repository, played where the loss at `RATES` is not as published."""
CLOSE = 0.05
"""Share of the published loss within which ours agrees."""
ROWS, LEAST, MOST = 20_000, 5, 20
"""Rows of a table that all its orders show, about; and the least and the most orders."""
IDENTIFIER = "Instance_name"
"""A column that OpenML marks as an identifier of rows; the authors' program does not read it."""
TWO_CLASSES = range(715, 1051)
"""OpenML ids of copies with two classes: the most frequent class, and all others."""
LISTED = {"kr-vs-kp": "bntfwgl"}
"""Values of nominal columns in the order of the table's ARFF file, which is not the order of the alphabet."""
SCALED = 292
"""An OpenML id from the LIBSVM repository, whose columns are scaled to [-1, 1]."""
PLACE = Path(__file__).parents[2] / "docs" / "results"
COLUMNS = ("openml_id", "file", "rows", "features", "nominal", "classes", "label", "published", "orders")


def main(*, tables: str = "", into: str = "bakeoff-reading.csv", keep: bool = False) -> None:
    """Play what is not in `into` yet, and print how many ids agree and which do not."""
    folder, file = Path(tables), Path(into)
    if not (folder / "index.csv").is_file():
        raise UsageError(f"--tables {tables}: no folder with an index.csv")
    index = pd.read_csv(folder / "index.csv").astype({"openml_id": "Int64"})
    whole = index[(index["rows"] == index["rows_here"]) & index["supervised_loss"].notna()]
    rows = pd.read_csv(file).to_dict("records") if file.is_file() else []
    done = {row["openml_id"] for row in rows}
    for known in whole.sort_values("rows_here", kind="stable").to_dict("records"):
        if known["openml_id"] not in done:
            rows.append(played(folder, known))
            print(", ".join(f"{name} {rows[-1][name]}" for name in ("file", "published", *FORMS)), flush=True)
            pd.DataFrame(rows).to_csv(file, index=False, float_format="%.6g")
    table = judged(pd.DataFrame(rows).sort_values("openml_id"))
    if keep:
        table.to_csv(PLACE / "bakeoff-reading.csv", index=False, float_format="%.4g")
        fill_page(PLACE / "bakeoff-reading.md", parts(PLACE))
    print(summary(table))


def played(folder: Path, known: dict[Any, Any]) -> dict[str, Any]:
    """Return a row of the results: the mean loss of each form over orders, and the standard deviation of one order."""
    frame = read(folder, known)
    orders = min(MOST, max(LEAST, ROWS // len(frame)))
    more = {
        "published": known["supervised_loss"],
        "features": frame.shape[1] - 1,
        "nominal": nominal(frame),
        "classes": frame.iloc[:, -1].nunique(),
        "orders": orders,
    }
    found = {name: (known | more)[name] for name in COLUMNS} | losses_of(frame, RATES, orders)
    if not any(is_close(found, form) for form in FORMS):
        found |= {f"{name}_theirs": value for name, value in losses_of(frame, THEIRS, orders).items()}
    return found


def read(folder: Path, known: dict[Any, Any]) -> pd.DataFrame:
    """Return the table of an OpenML id, the label last; where LISTED has its values, their alphabet is that order."""
    frame = pd.read_csv(folder / f"{known['file']}.csv.gz").drop(columns=IDENTIFIER, errors="ignore")
    if known["openml_id"] == SCALED:
        X = frame.iloc[:, :-1]
        frame = (2.0 * (X - X.min()) / (X.max() - X.min()) - 1.0).join(frame.iloc[:, -1])
    label = frame.iloc[:, -1].astype(str)
    if known["openml_id"] in TWO_CLASSES and label.nunique() > 2:
        frame[frame.columns[-1]] = np.where(label == label.mode()[0], "P", "N")
    listed = {value: f"{place}{value}" for place, value in enumerate(LISTED.get(known["file"], ""))}
    return frame.replace(listed) if listed else frame


def losses_of(frame: pd.DataFrame, rates: tuple[float, ...], orders: int) -> dict[str, float]:
    """Return the mean loss by form, and `FORM_error`; without nominal columns the forms are one."""
    found, losses = dict[str, float](), list[float]()
    for form in FORMS:
        if not losses or nominal(frame):
            losses = [loss(frame, form, seed, rates) for seed in range(orders)]
        found |= {form: float(np.mean(losses)), f"{form}_error": float(np.std(losses, ddof=1))}
    return found


def is_close(row: dict[Any, Any], form: str, rates: str = "") -> bool:
    """Return whether a form's loss is within `CLOSE` or two standard errors of one order of the published one."""
    gap, error = abs(row[f"{form}{rates}"] - row["published"]), row[f"{form}_error{rates}"]
    return bool(gap <= max(CLOSE * row["published"], 2.0 * error))


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with `agrees`, the first form whose loss is as published ("" for none), and `reason` where none is."""
    rows = table.to_dict("records")
    forms = [next((form for form in FORMS if is_close(row, form)), "") for row in rows]
    return table.assign(
        agrees=forms, reason=["" if form else _reason(row) for form, row in zip(forms, rows, strict=True)]
    )


def _reason(row: dict[Any, Any]) -> str:
    if any(is_close(row, form, "_theirs") for form in FORMS):
        return "agrees at the learning rates of the authors' repository"
    return f"unexplained: the loss here is {'lower' if row['alphabet'] < row['published'] else 'higher'}"


def summary(table: pd.DataFrame) -> str:
    """Return how many ids agree, by form, and a line for each that does not."""
    off, counts = table[table["agrees"] == ""], table["agrees"].value_counts()
    forms = ", ".join(f"{counts.get(form, 0)} by {form}" for form in FORMS)
    agree = len(table) - len(off)
    said = [f"{agree} of {len(table)} ids agree within {CLOSE:.0%} or two standard errors of one order: {forms}"]
    for row in off.to_dict("records"):
        ours = ", ".join(f"{form} {row[form]:.4f}" for form in FORMS)
        said.append(f"{row['openml_id']} {row['file']}: published {row['published']:.4f}, here {ours}: {row['reason']}")
    return "\n".join(said)


def nominal(frame: pd.DataFrame) -> int:
    """Return how many feature columns hold texts."""
    return sum(not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes.iloc[:-1])


def lines(frame: pd.DataFrame, form: str, order: np.ndarray) -> Iterator[str]:
    """Yield the rows in an order as Vowpal Wabbit's text; what is 0 or missing is left out."""
    y = pd.Categorical(frame.iloc[:, -1].astype(str)).codes + 1
    columns = []
    for j, name in enumerate(frame.columns[:-1]):
        if pd.api.types.is_numeric_dtype(frame[name].dtype):
            numbers = frame[name].astype(float).tolist()
            columns.append(["" if value == 0 or math.isnan(value) else f"{j}:{value:.6f}" for value in numbers])
            continue
        codes = pd.factorize(frame[name], sort=form != "appearance")[0].tolist()
        if form == "values":
            columns.append(["" if code < 0 else f"v{j}_{code}" for code in codes])
        else:
            columns.append(["" if code <= 0 else f"{j}:{code}" for code in codes])
    rows = list(zip(*columns, strict=True))
    for i in order.tolist():
        yield f"{y[i]} | {' '.join(filter(None, rows[i]))}\n"


def loss(frame: pd.DataFrame, form: str, seed: int, rates: tuple[float, ...] = RATES) -> float:
    """Return the least progressive loss of `--oaa` over the learning rates, the rows in the order of a seed."""
    from vowpalwabbit import pyvw  # type: ignore[import-untyped]

    K, found = frame.iloc[:, -1].nunique(), []
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "rows.vw"
        file.write_text("".join(lines(frame, form, np.random.default_rng(seed).permutation(len(frame)))))
        for rate in rates:
            model = pyvw.Workspace(f"--oaa {K} -b 24 --learning_rate {rate} -d {file} --quiet --no_stdin")
            found.append(model.get_sum_loss() / model.get_weighted_examples())
            model.finish()
    return min(found)
