"""The tables of the study of rivals, each as one pass over its rows in an order that a seed draws, under two scalings."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.envs.digits import Digits
from banditlab.envs.openml import OpenML
from banditlab.envs.table import Table
from banditlab.errors import UsageError

SCALINGS = ("norm", "standard")
"""Columns to [0, 1] where their ranges differ by more than ten times and the longest row of norm 1, as `banditlab
compare` does; or columns of mean 0 and standard deviation 1."""
SETS = {"vehicle": 54, "segment": 36, "car": 21, "nursery": 26, "mushroom": 24, "balance-scale": 11, "mice": 40966}
"""Numbers on openml.org."""
DIGITS = "digits"
IN_ORDER, BY_MOUSE = "-in-order", "mice-by-mouse"
RECORDS = ("eeg-eye-state", "electricity", "wall-robot")
"""Files whose rows are records in time: they are also played in their order, under a scale that looks back only."""
Environment = Digits | OpenML | Table


class Stream(NamedTuple):
    """One pass: contexts X (T, d), labels y (T,) in 0 ... K-1, the bound R of the contexts' norms, and what names it."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    n_classes: int
    radius: float
    table: str
    scaling: str
    seed: int


class Source(NamedTuple):
    """A table: its name, and its environment under the settings of a scaling."""

    name: str
    build: Callable[[dict[str, Any]], Environment]

    def environment(self, scaling: str) -> Environment:
        """Return the table's environment under one of the scalings."""
        standard = scaling == "standard" and not self.name.endswith(IN_ORDER)
        return self.build({"scaling": "standard", "normalize": False} if standard else {})

    def stream(self, scaling: str, seed: int, rounds: int) -> Stream:
        """Return T = min(rows, rounds) rows, each once, in the order of the seed: the same rows under both scalings."""
        env = self.environment(scaling)
        T, problem = min(env.n_rows, rounds), env.problem
        env.reset(seed=seed)
        [(X, y)] = env.blocks(T, T)
        return Stream(np.ascontiguousarray(X), y, problem.n_classes, problem.radius, self.name, scaling, seed)


def sources(folder: str, shuttle: str, made: Path) -> list[Source]:
    """Return the tables: every FOLDER/*.csv.gz, Digits, the OpenML sets, shuttle where a file is given, and made ones.

    Raises
    ------
    UsageError
        A folder without tables.
    """
    files = sorted(Path(folder).glob("*.csv.gz")) if folder else []
    if folder and not files:
        raise UsageError(f"{folder}: no .csv.gz file is there")
    found = [Source(file.name.removesuffix(".csv.gz"), of_file(file)) for file in files]
    found += [
        Source(source.name + IN_ORDER, of_file(file, order="file"))
        for source, file in zip(found, files)
        if source.name in RECORDS
    ]
    found.append(Source(BY_MOUSE, lambda settings: of_file(once(mice, made), group="mouse")(settings)))
    found.append(Source(DIGITS, lambda settings: Digits(horizon=1, **settings)))
    found += [Source(name, of_set(number)) for name, number in SETS.items()]
    if shuttle:
        found.append(Source("shuttle", of_file(Path(shuttle))))
    return found + [Source(write.__name__, of_made(write, made)) for write in (wine, parity, noise)]


def of_made(write: Callable[[Path], Path], folder: Path) -> Callable[[dict[str, Any]], Environment]:
    """Return what builds the environment of a table that is written into the folder when it is first asked for."""
    return lambda settings: of_file(once(write, folder))(settings)


@cache
def once(write: Callable[[Path], Path], folder: Path) -> Path:
    """Write a table the first time, and return where it lies."""
    return write(folder)


def of_file(path: Path, **rows: str) -> Callable[[dict[str, Any]], Environment]:
    """Return what builds the environment of a file with the label column `class`; `rows` are its order or its groups."""
    return lambda settings: Table(path=str(path), label="class", missing="indicator", horizon=1, **settings, **rows)


def of_set(number: int) -> Callable[[dict[str, Any]], Environment]:
    """Return what builds the environment of a set of openml.org."""
    return lambda settings: OpenML(data_id=number, missing="indicator", horizon=1, **settings)


def mice(folder: Path) -> Path:
    """Write the OpenML set with the mouse of each row: openml.org leaves MouseID out, but its rows stand 15 by 15."""
    from sklearn.datasets import fetch_openml

    home = os.environ.get("BANDITLAB_DATA_HOME")
    frame = fetch_openml(data_id=SETS["mice"], data_home=home, as_frame=True, parser="auto").frame
    frame["mouse"] = [f"mouse {row // 15}" for row in range(len(frame))]
    frame.to_csv(folder / "mice.csv.gz", index=False)
    return folder / "mice.csv.gz"


def wine(folder: Path) -> Path:
    """Write scikit-learn's wine: 178 rows, 13 columns, 3 classes."""
    from sklearn.datasets import load_wine

    return written(folder / "wine.csv.gz", *load_wine(return_X_y=True))


def parity(folder: Path) -> Path:
    """Write 5,000 rows of ten fair bits, the class the parity of the first three: no linear model is better than chance."""
    X = np.random.default_rng(0).integers(0, 2, (5000, 10))
    return written(folder / "parity.csv.gz", X, X[:, :3].sum(axis=1) % 2)


def noise(folder: Path) -> Path:
    """Write the rows of Digits with labels drawn uniformly from ten classes: a control, on which no player can be ahead."""
    from sklearn.datasets import load_digits

    X, _ = load_digits(return_X_y=True)
    return written(folder / "noise.csv.gz", X, np.random.default_rng(0).integers(0, 10, len(X)))


def written(path: Path, X: NDArray[Any], y: NDArray[Any]) -> Path:
    """Write a table, its label column `class` with words, and return where."""
    with gzip.open(path, "wt") as file:
        file.write(",".join([*(f"x{j}" for j in range(X.shape[1])), "class"]) + "\n")
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            file.write(",".join([*map(repr, row), f"c{label}"]) + "\n")
    return path
