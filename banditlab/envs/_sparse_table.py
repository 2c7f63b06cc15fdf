"""Apply the recipe to sparse rows without making them dense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from banditlab.envs._base import Floats
from banditlab.envs._columns import Recipe
from banditlab.envs._frame import classes_of, refuse_columns
from banditlab.envs._planted import JUST_BELOW_ONE
from banditlab.envs._recipe import Rows
from banditlab.envs._words import PART, TextFeatures
from banditlab.envs.encoding import SCALERS, differ
from banditlab.errors import UsageError
from banditlab.numerics.exponents import divided, exponent
from banditlab.validation import positive

if TYPE_CHECKING:
    import pandas as pd

LARGE = 2**23
"""Rows with fewer entries, zeros included, become dense (less than 64 MiB), which is faster."""
SHARE = 0.25
"""The largest fraction of entries that differ from 0 in rows that stay sparse."""


def stays_sparse(X: Any) -> bool:
    """Return whether rows (N, d) in CSR form should stay sparse."""
    n, d = X.shape
    return n * d > LARGE and X.nnz <= SHARE * n * d


def sparse_rows(X: Any, labels: pd.Series, recipe: Recipe, drop_columns: list[str], source: str) -> Rows | None:
    """Apply the recipe to a sparse table. Return the rows (N, d) in CSR form, or None if they would become dense.

    Rows become dense if entries are missing or infinite, or if scaling would change the zeros of a column. Otherwise
    the rows equal those of `table_rows` up to rounding of the largest norm.

    Raises
    ------
    UsageError
        A dropped column does not exist, labels are missing or have one class only, or no row or column is left.
    """
    y, classes = classes_of(labels, f"{source}: label column {labels.name!r}", recipe.missing == "drop_rows")
    X, y = X[y >= 0], y[y >= 0]
    if drop_columns:
        names = [str(j) for j in range(X.shape[1])]
        refuse_columns(drop_columns, names, source)
        X = X[:, np.setdiff1d(np.arange(len(names)), np.array(drop_columns, dtype=np.int64))]
    if not X.shape[1]:
        raise UsageError(f"{source}: no feature column is left")
    X.sum_duplicates()
    X.eliminate_zeros()
    if not np.isfinite(X.data).all():
        return None
    low, high = (np.asarray(bound.toarray(), dtype=np.float64).ravel() for bound in (X.min(axis=0), X.max(axis=0)))
    scaling = recipe.scaling
    if scaling == "auto":
        scaling = "minmax" if differ(0.5 * high - 0.5 * low) else "none"
    if scaling in SCALERS:
        if scaling != "maxabs":
            return None
        X.data /= np.where(high > low, np.maximum(high, -low), np.inf)[X.indices]  # constant columns to 0
        X.eliminate_zeros()
    if scaling == "minmax":
        full = np.bincount(X.indices, minlength=X.shape[1]) == len(y)
        if (low[~full] < 0.0).any():
            return None
        _scale(X, low, high)
    rowwise = scaling == "rowwise"
    e = exponent(np.abs(X.data).max(initial=0.0))
    if rowwise:
        X.data = np.arcsinh(X.data)
        e = np.repeat(exponent(abs(X).max(axis=1).toarray().ravel()), np.diff(X.indptr))
    X.data = divided(X.data, e)
    norms = np.sqrt(X.power(2).sum(axis=1))
    largest = float(norms.max())
    if largest == 0.0:
        raise UsageError(f"{source}: every feature is zero in every row, so all rows are equal")
    if recipe.intercept and scaling in SCALERS:
        one = float(divided(1.0, e))
        X, largest = _with_column(X, one), float(np.hypot(largest, one))
    radius = 1.0 if recipe.normalize or rowwise else float(divided(largest, -e))
    if rowwise:
        X.data = X.data / np.repeat(np.where(norms > 0.0, norms, 1.0), np.diff(X.indptr))
    else:
        X.data = X.data / largest if recipe.normalize else divided(X.data, -e)
    if recipe.intercept and scaling not in SCALERS:
        X = _with_column(X, radius)
        X.data /= np.sqrt(2.0)
    X.data *= JUST_BELOW_ONE
    return frozen(Rows(X, y, classes, positive("radius", radius), scaling))


def with_texts(rows: Rows, frame: pd.DataFrame, names: list[str], written: str, source: str) -> Rows:
    r"""Return rows with the features of text columns appended, :math:`(x, t_1, \dots, t_m) / \sqrt{1 + m}`.

    The frame contains the text columns with these names. If the scaling is "running" (rows in a given order), the text
    features are fitted on the first eighth of the rows, and are 0 in these rows.
    """
    from scipy.sparse import csr_array, hstack

    assert rows.encoder is not None
    assert rows.numbers is not None
    frame = frame.loc[rows.numbers.tolist()]
    texts = {name: frame[name].astype("str").fillna("").tolist() for name in names}
    before = len(rows.y) // PART if rows.scaling == "running" else 0
    fitted = [TextFeatures.fit(name, each[: before or None], written, source) for name, each in texts.items()]
    encoder = rows.encoder.with_texts(fitted)
    parts = [text.rows([""] * before + texts[text.name][before:]) for text in fitted]
    X = hstack([csr_array(part) for part in (rows.X, *parts)], format="csr")
    X.data /= encoder.share  # X / share would multiply by the reciprocal
    made = rows._replace(X=X, encoder=encoder, radius=encoder.radius)
    if stays_sparse(X):
        return frozen(made)
    dense = X.toarray()
    dense.flags.writeable = False
    return made._replace(X=dense)


def frozen(rows: Rows) -> Rows:
    """Return rows in CSR form as read-only."""
    for array in (rows.X.data, rows.X.indices, rows.X.indptr, rows.y):
        array.flags.writeable = False
    return rows


def _scale(X: Any, low: Floats, high: Floats) -> None:
    """Scale the columns of X to [0, 1] in place, constant columns to 0."""
    e = exponent(np.maximum(np.abs(low), np.abs(high)))  # else the range of large entries is infinite
    if e.any():
        X.data, low, high = divided(X.data, e[X.indices]), divided(low, e), divided(high, e)
    spread = high - low
    X.data -= low[X.indices]
    X.data /= np.where(spread > 0.0, spread, 1.0)[X.indices]
    X.eliminate_zeros()


def _with_column(X: Any, value: float) -> Any:
    """Return X with a constant column appended."""
    from scipy.sparse import csr_array, hstack

    return hstack([X, csr_array(np.full((X.shape[0], 1), value))], format="csr")
