"""An encoder's estimates from a table's columns: fill values, parameters of scalers, category frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from banditlab.envs._steps import Step
from banditlab.numerics.exponents import divided, exponent

STATISTICS: dict[str, tuple[Any, str, str]] = {
    "standard": (StandardScaler, "mean_", "scale_"),
    "maxabs": (MaxAbsScaler, "", "scale_"),
    "robust": (RobustScaler, "center_", "scale_"),
    "minmax": (MinMaxScaler, "data_min_", "data_range_"),
}
"""The attributes of a fitted scaler with the value that it subtracts from a column and the value that it divides by."""


def known_mean(known: np.ndarray) -> float:
    """Return the mean of a column's known entries, or 0 if there are none; the sum of large entries does not overflow."""
    if not len(known):
        return 0.0
    e = exponent(np.abs(known).max())
    return float(divided(divided(known, e).mean(), -e))


def learnt(steps: list[Step], columns: list[np.ndarray], scaling: str, missing: str) -> list[Step]:
    """Return the encoding steps with fill values, centers, scales and category frequencies estimated from the columns.

    Each column (n,) contains numbers, with NaN for missing entries, or category codes, with -1 for missing entries.

    A scaler is fitted to the known entries. For "minmax" it is fitted to fill values, too, so they lie in [0, 1].
    """
    found = list(steps)
    for i, (step, codes) in enumerate(zip(steps, columns, strict=True)):
        if missing == "mean" and step.role == "nominal":
            counts = np.bincount(codes[codes >= 0], minlength=len(step.categories))
            found[i] = step._replace(shares=tuple((counts / max(counts.sum(), 1)).tolist()))
    varying = [i for i, step in enumerate(steps) if step.role != "nominal" and not step.constant]
    if not varying:
        return found
    numbers = np.array([np.ldexp(columns[i], -steps[i].shift) for i in varying]).T
    gaps = np.isnan(numbers)
    known = [column[~gap] for column, gap in zip(numbers.T, gaps.T, strict=True)]
    fills = np.array([known_mean(column) if missing in ("mean", "indicator") else 0.0 for column in known])
    numbers[gaps] = np.broadcast_to(fills, numbers.shape)[gaps]
    centers, scales = np.zeros(len(varying)), np.ones(len(varying))
    if scaling in STATISTICS:
        kind, center, scale = STATISTICS[scaling]
        again = [(slice(j, j + 1), known[j][:, None]) for j in np.flatnonzero(gaps.any(axis=0)) if scaling != "minmax"]
        for place, entries in [(slice(None), numbers), *again]:
            scaler = kind().fit(entries)
            centers[place], scales[place] = getattr(scaler, center, 0.0), getattr(scaler, scale)
    for i, fill, center_, scale_ in zip(varying, fills.tolist(), centers.tolist(), scales.tolist(), strict=True):
        found[i] = found[i]._replace(fill=fill, center=center_, scale=scale_)
    return found
