"""Groups of dependent rows: copies, and near copies that a smooth distribution would not produce.

Let r_1 <= r_2 <= ... be the distances of a row to its nearest neighbours. For rows drawn from a smooth density in m
dimensions, j ln(r_{j+1} / r_j) is approximately exponential with mean 1/m (Facco, d'Errico, Rodriguez, Laio: Estimating
the intrinsic dimension of datasets by a minimal neighborhood information, Scientific Reports 7, 2017). Its median is at
most ln 2. If rows occur in groups of j + 1 near copies, the median is far above ln 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.envs._base import Floats, Labels

NEIGHBOURS = 31
"""The largest number of neighbours of a row that are examined."""
LOOKED_AT, LARGEST = 1000, 20_000
"""Number of sampled rows whose neighbours are examined, and largest number of distinct rows for which this is done."""
MEDIAN, SURE = 1.5, 5.0
"""Groups exist if j ln(r_{j+1} / r_j) has a median above `MEDIAN` for some j, or is at least `SURE` in half of the rows."""
FOUND, GROUPED = 1.45, 1.25
"""Least ratios r_{j+1} / r_j that count in detecting groups (above sqrt(2), the ratio in grids) and in forming them."""


def rows_alike(X: Floats, chance: Floats, n_classes: int) -> Labels | None:
    """Return the group of each row (N,), the same for copies and near copies, or None.

    The result is None if at most sqrt(N) rows are repeats, or if as many repeats are likely by chance.

    Parameters
    ----------
    X
        (N, d), the encoded rows.
    chance
        (N, d), the encoded rows after a random permutation of each column of the table, so repeats occur by chance.
    n_classes
        K. Fewer than 2 K groups may be the classes themselves, so the result is then None, too.
    """
    exact, first = _exact(X)
    _, by_chance = _exact(chance)
    near = _near(X[first], chance[by_chance])
    if near is None and len(X) - len(first) <= 2 * (len(X) - len(by_chance)):
        return None
    units = exact if near is None else near[exact]
    n_units = units.max() + 1
    return units if n_units >= 2 * n_classes and len(X) - n_units > len(X) ** 0.5 else None


def _exact(X: Floats) -> tuple[Labels, Labels]:
    """Number the distinct rows 0 ... U-1; return each row's number (N,) and each distinct row's first index (U,)."""
    import pandas as pd

    distinct = pd.factorize(np.array([(row + 0.0).tobytes() for row in X], dtype=object))[0]
    return distinct, np.unique(distinct, return_index=True)[1]


def _near(X: Floats, chance: Floats) -> Labels | None:
    """Return the groups (U,) of near copies among distinct rows (U, d), or None if there are none."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if len(X) > LARGEST or not _has_groups(X) or _has_groups(chance):
        return None
    gaps, near = _gaps(X, X, GROUPED)
    size = np.where(gaps.max(axis=1) >= MEDIAN, gaps.argmax(axis=1) + 1, 0)
    mine = np.arange(near.shape[1]) < size[:, None]
    links = csr_array((np.ones(mine.sum()), (np.repeat(np.arange(len(X)), size), near[mine])), shape=(len(X),) * 2)
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


def _has_groups(X: Floats) -> bool:
    some = np.random.default_rng(0).permutation(X)[:LOOKED_AT]
    gaps, _ = _gaps(X, some, FOUND)
    sure = np.mean(gaps.max(axis=1, initial=0.0) >= SURE)
    return bool(np.median(gaps, axis=0).max(initial=0.0) > MEDIAN or sure > 0.5)


def _gaps(X: Floats, rows: Floats, least: float) -> tuple[Floats, NDArray[Any]]:
    """Return j ln(r_{j+1} / r_j) of rows of X for j = 1, 2, ..., and their neighbours in X.

    The value is 0 if the ratio is below `least`.
    """
    from sklearn.neighbors import NearestNeighbors

    k = min(NEIGHBOURS, len(X) - 1)
    distance, near = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors(rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = distance[:, 2:] / distance[:, 1:-1]
    return np.arange(1.0, k) * np.log(np.where(ratio >= least, ratio, 1.0)), near[:, 1:]
