"""Fast pivot and groupby for the hundreds of small groups of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from banditlab.analysis.statistics import Floats

Positions = NDArray[np.intp]


def groups_of(table: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[str, ...], Positions]:
    """Return the row positions of each group of rows that agree in the columns `keys`, in the order of the table."""
    codes = table.groupby(list(keys), sort=False).ngroup().to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    parts = np.split(order, ends) if len(order) else []
    columns = [table[key].to_numpy() for key in keys]
    return {tuple(str(column[part[0]]) for column in columns): part for part in parts}


def matrix(rows: ArrayLike, columns: ArrayLike, values: ArrayLike) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    """Return the sorted rows, the sorted columns, and values as an array over both, with NaN for missing values.

    Raises
    ------
    ValueError
        There are two values for one row and column.
    """
    down, i = np.unique(np.asarray(rows), return_inverse=True)
    across, j = np.unique(np.asarray(columns), return_inverse=True)
    places = i * len(across) + j
    if len(np.unique(places)) < len(places):
        raise ValueError("there are two values for one row and column")
    made = np.full(len(down) * len(across), np.nan)
    made[places] = np.asarray(values, dtype=np.float64)
    return down, across, made.reshape(len(down), len(across))


def complete(values: Floats) -> Floats:
    """Return the columns without a NaN."""
    return values[:, ~np.isnan(values).any(axis=0)]


def mean_of(values: ArrayLike) -> float:
    """Return the mean of the values that are not NaN, or NaN if there are none."""
    x = np.asarray(values, dtype=np.float64)
    x = x[~np.isnan(x)]
    return float(x.sum() / len(x)) if len(x) else float("nan")
