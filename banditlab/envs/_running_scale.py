"""Scaling for rows in a fixed order: no context depends on a later row.

Only the columns, their roles and categories, and which columns have gaps are taken from the whole table.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from banditlab.envs._base import Floats
from banditlab.envs._columns import Column, Recipe
from banditlab.envs._norm_rule import NormRule
from banditlab.envs._outliers import bounds, mapped
from banditlab.envs.encoding import Encoder

FIRST = 64
"""The number of rows before which no number is an outlier."""
SMALL = 2.0**-30
"""Numbers are multiplied by this power of two before they are summed, so sums stay finite. It changes no digit."""


def looking_back(columns: list[Column], recipe: Recipe, source: str) -> tuple[Encoder, Floats]:
    r"""Return the encoder for later rows, and the contexts (N, d) of the table's rows.

    A number becomes :math:`(x - l_t) / (h_t - l_t)`, where :math:`l_t` and :math:`h_t` are the least and the largest
    number of its column so far, or 0 if they are equal. Gaps are filled with the mean or the category frequencies so
    far. The limits of outliers are computed from the first 64, 128, 256, ... rows, always the largest such number of
    past rows. Outliers are left out of these statistics and become 0 or 1. Rows are divided by the square root of the
    number of columns, which bounds their norms. The encoder for later rows uses the ranges and means of the whole
    table.
    """
    parts, flags = [], recipe.missing == "indicator"
    for column in columns:
        parts.append(_nominal(column, recipe.missing) if column.n_categories else _numeric(column, recipe.missing))
        if flags and column.gaps.any():
            parts.append(column.gaps[:, None].astype(np.float64))
    largest = math.sqrt(len(parts))
    radius = 1.0 if recipe.normalize else largest
    norm = NormRule(False, 0, largest, largest, 0.0, radius, recipe.normalize, recipe.intercept)
    clipped = [mapped(column, ranks=False) for column in columns]
    steps = Encoder.of_columns(clipped, Recipe("minmax", recipe.missing), source)[0].steps
    encoder = Encoder(steps, replace(recipe, scaling="minmax", in_order=False), norm)
    return encoder, norm.rows(np.hstack(parts))


def _numeric(column: Column, missing: str) -> Floats:
    """Return the feature (N, 1) of a numeric column."""
    x = np.where(column.gaps, 0.0 if missing == "zero" else math.nan, column.values)
    ends = [0, *(FIRST << k for k in range(len(x).bit_length()) if FIRST << k < len(x)), len(x)]
    return np.concatenate([_scaled(x[:end], start) for start, end in pairwise(ends)])[:, None]


def _scaled(x: Floats, start: int) -> Floats:
    """Return x[start:] scaled, for a column x (n,) with NaN for gaps; x[:start] determines the limits of outliers."""
    least, largest = bounds(x[:start])
    near = np.where((x < least) | (x > largest), math.nan, x)
    low, high, known = np.fmin.accumulate(near), np.fmax.accumulate(near), ~np.isnan(near)
    mean = np.cumsum(np.where(known, SMALL * near, 0.0)) / np.maximum(np.cumsum(known), 1) / SMALL
    x = np.clip(np.where(np.isnan(x), mean, x), low, high)
    varies = high > low
    spread = np.where(varies, 0.5 * high - 0.5 * low, 1.0)
    return np.where(varies, (0.5 * x - 0.5 * low) / spread, 0.0)[start:]


def _nominal(column: Column, missing: str) -> Floats:
    """Return the features (N, n_categories) of a nominal column."""
    ones = (column.values[:, None] == np.arange(column.n_categories)).astype(np.float64)
    if missing == "mean":
        known = np.maximum(np.cumsum(~column.gaps), 1)
        ones = np.where(column.gaps[:, None], np.cumsum(ones, axis=0) / known[:, None], ones)
    return np.asarray(ones)
