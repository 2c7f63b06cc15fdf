"""The recipe as a scikit-learn ColumnTransformer, and as arrays.

Numeric columns that vary: SimpleImputer, then a scaler. Constant ones become 0 where columns are scaled. Nominal ones:
OneHotEncoder, categories it has not seen all zeros. A MissingIndicator is added if the recipe asks for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from banditlab.envs._steps import Step, varying_names
from banditlab.numerics.exponents import divided, exponent

STATISTICS = {
    "standard": ("mean_", "scale_"),
    "maxabs": ("", "scale_"),
    "robust": ("center_", "scale_"),
    "minmax": ("data_min_", "data_range_"),
}
"""Where a fitted scaler has what is subtracted from a column, and what the rest is divided by."""


class UnitRange(MinMaxScaler):
    """A MinMaxScaler that divides by the range; scikit-learn's multiplies by the rounded reciprocal.

    So a column's largest entry becomes 1 and not 1 - 1e-16, and recorded streams stay what they are to the last bit.
    """

    def transform(self, X: Any) -> Any:
        r"""Return :math:`(X - \text{min}) / \text{range}`, (n, p)."""
        return (np.asarray(X) - self.data_min_) / np.where(self.data_range_ > 0.0, self.data_range_, 1.0)


class SharesForGaps(OneHotEncoder):
    """A OneHotEncoder that encodes a missing entry as the frequencies of the column's categories."""

    shares_: list[np.ndarray]

    def fit(self, X: Any, y: Any = None) -> SharesForGaps:
        """Learn the categories' frequencies among the known entries."""
        super().fit(X, y)
        ones, known, start = super().transform(X), pd.notna(np.asarray(X, dtype=object)), 0
        self.shares_ = []
        for j, names in enumerate(self.categories_):
            part = ones[known[:, j], start : start + len(names)]
            self.shares_.append(part.mean(axis=0) if len(part) else np.zeros(len(names)))
            start += len(names)
        return self

    def transform(self, X: Any) -> Any:
        """Return the one-hot rows (n, d), frequencies where entries are missing."""
        ones, gaps, start = super().transform(X), pd.isna(np.asarray(X, dtype=object)), 0
        for j, shares in enumerate(self.shares_):
            ones[gaps[:, j], start : start + len(shares)] = shares
            start += len(shares)
        return ones


def known_mean(known: np.ndarray) -> float:
    """Return the mean of a column's known entries, 0 if there are none, without overflow."""
    if not len(known):
        return 0.0
    e = exponent(np.abs(known).max())
    return float(divided(divided(known, e).mean(), -e))


def zeros(X: Any) -> np.ndarray:
    """Return zeros of X's shape."""
    return np.zeros(np.shape(X))


def frame_of(steps: list[Step], columns: list[np.ndarray]) -> pd.DataFrame:
    """Return the table that the transformer takes, numbers shifted, in its order; (n,) arrays of floats or of texts."""
    numbers = {s.name: np.ldexp(c, -s.shift) if s.shift else c for s, c in zip(steps, columns) if s.role != "nominal"}
    texts = {s.name: c for s, c in zip(steps, columns) if s.role == "nominal"}
    rows = len(columns[0])
    parts = [pd.DataFrame(numbers, index=range(rows)), pd.DataFrame(texts, index=range(rows), dtype=object)]
    return pd.concat([part for part in parts if part.shape[1]], axis=1)


def fitted(steps: list[Step], columns: list[np.ndarray], scaling: str, missing: str) -> ColumnTransformer:
    """Return the transformer fitted to columns (n,); `steps` has their roles, categories, gaps, shifts and
    constancy."""
    transformer = unfitted(steps, scaling, missing)
    frame = frame_of(steps, columns)
    transformer.fit(frame)
    varying = varying_names(steps)
    if scaling in STATISTICS and missing != "error":
        # A scaler leaves NaN aside: it learns from the known entries, not from those that were filled in. "minmax" keeps what
        # was put for gaps in [0, 1], as ever.
        for j, name in enumerate(varying if scaling != "minmax" else []):
            known = frame[name].to_numpy(dtype=np.float64)
            if (gaps := np.isnan(known)).any():
                _learn_alone(scaler_of(transformer), j, known[~gaps])
    return transformer


def unfitted(steps: list[Step], scaling: str, missing: str) -> ColumnTransformer:
    """Return the transformer of these columns, in this order: varying, constant, indicators, nominal."""
    imputed = missing not in ("error", "drop_rows")
    strategy: dict[str, Any] = (
        {"strategy": "constant", "fill_value": 0.0} if missing == "zero" else {"strategy": known_mean}
    )
    varying = varying_names(steps)
    constant = [s.name for s in steps if s.role != "nominal" and s.constant]
    gaps = [s.name for s in steps if s.role != "nominal" and s.gaps] if missing == "indicator" else []
    nominal = [s for s in steps if s.role == "nominal"]
    numeric: list[Any] = [SimpleImputer(keep_empty_features=True, **strategy)] if imputed else []
    numeric += _scaler(scaling)
    parts: list[tuple[str, Any, list[str]]] = [
        ("numbers", make_pipeline(*numeric) if numeric else "passthrough", varying),
        ("constants", FunctionTransformer(zeros, feature_names_out="one-to-one"), constant),
        ("gaps", MissingIndicator(features="all"), gaps),
        ("categories", _one_hot(nominal, missing), [s.name for s in nominal]),
    ]
    return ColumnTransformer([part for part in parts if part[2]], sparse_threshold=0.0)


def _scaler(scaling: str) -> list[Any]:
    if scaling == "rowwise":
        return [FunctionTransformer(np.arcsinh, feature_names_out="one-to-one")]
    made = {"standard": StandardScaler, "maxabs": MaxAbsScaler, "robust": RobustScaler, "minmax": UnitRange}
    return [made[scaling]()] if scaling in made else []


def _one_hot(nominal: list[Step], missing: str) -> OneHotEncoder:
    lists = [
        np.array([*s.categories, np.nan] if missing == "indicator" and s.gaps else s.categories, dtype=object)
        for s in nominal
    ]
    kind = SharesForGaps if missing == "mean" else OneHotEncoder
    return kind(categories=lists, handle_unknown="ignore", sparse_output=False)


def scaler_of(transformer: ColumnTransformer) -> Any:
    """Return the fitted scaler."""
    pipeline: Pipeline = transformer.named_transformers_["numbers"]
    return pipeline[-1]


def _learn_alone(scaler: Any, j: int, known: np.ndarray) -> None:
    """Fit the scaler's column j to these entries only."""
    alone = type(scaler)().fit(known[:, None])
    for name, value in vars(alone).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.shape == (1,):
            getattr(scaler, name)[j] = value[0]


# ----------------------------------------------------------------------------------------- its arrays, taken out and put in


def read_out(transformer: ColumnTransformer, steps: list[Step], scaling: str, missing: str) -> list[Step]:
    """Return the steps with the fitted values of the transformer."""
    parts: Any = transformer.named_transformers_
    learnt = {s.name: s for s in steps}
    if missing not in ("error", "drop_rows") and "numbers" in parts:
        for name, fill in zip(varying_names(steps), parts["numbers"][0].statistics_):
            learnt[name] = learnt[name]._replace(fill=float(fill))
    if scaling in STATISTICS and "numbers" in parts:
        scaler, (center_name, scale_name) = scaler_of(transformer), STATISTICS[scaling]
        centers, scales = getattr(scaler, center_name, None), getattr(scaler, scale_name)
        for j, name in enumerate(varying_names(steps)):
            center = 0.0 if centers is None else float(centers[j])
            learnt[name] = learnt[name]._replace(center=center, scale=float(scales[j]))
    if missing == "mean" and "categories" in parts:
        for name, shares in zip([s.name for s in steps if s.role == "nominal"], parts["categories"].shares_):
            learnt[name] = learnt[name]._replace(shares=tuple(map(float, shares)))
    return list(learnt.values())


def rebuilt(steps: list[Step], scaling: str, missing: str) -> ColumnTransformer:
    """Rebuild the transformer that `read_out` read: fit one to two rows, then set its numbers."""
    witness = [
        np.array([s.categories[0], s.categories[-1]], dtype=object) if s.role == "nominal" else np.array([0.0, 1.0])
        for s in steps
    ]
    transformer = unfitted(steps, scaling, missing)
    transformer.fit(frame_of([s._replace(shift=0) for s in steps], witness))
    parts = transformer.named_transformers_
    numeric = [s for s in steps if s.role != "nominal" and not s.constant]
    if missing not in ("error", "drop_rows") and numeric:
        parts["numbers"][0].statistics_[:] = [s.fill for s in numeric]
    if scaling in STATISTICS and numeric:
        scaler, (center, scale) = scaler_of(transformer), STATISTICS[scaling]
        if center:
            getattr(scaler, center)[:] = [s.center for s in numeric]
        getattr(scaler, scale)[:] = [s.scale for s in numeric]
    if missing == "mean" and "categories" in parts:
        parts["categories"].shares_ = [np.array(s.shares) for s in steps if s.role == "nominal"]
    return transformer
