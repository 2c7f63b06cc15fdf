"""A fitted encoder as arrays, which computes the features of a table, or of one row of plain values."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.envs._columns import Recipe
from banditlab.envs._norm_rule import NormRule
from banditlab.envs._outliers import bent
from banditlab.envs._planted import JUST_BELOW_ONE
from banditlab.envs._steps import Step
from banditlab.numerics.entry import entry

Floats = NDArray[np.float64]
NUMBERS = frozenset((float, int, bool, np.float64, np.int64))
"""Types that `struct` converts to the same number as `float`; values of other types are converted one by one."""
NONE = np.frombuffer(bytes(8))[:0]
"""An empty read-only array."""


MARGIN = 1e-9
"""If a row's norm exceeds the fit's largest less this fraction, its squares are summed in the order of the fit."""


class RowArrays:
    """Positions of columns among the features, fill values, scales, and the factor that keeps norms at most R."""

    def __init__(self, steps: list[Step], recipe: Recipe, norm: NormRule) -> None:
        indicator = recipe.missing == "indicator"
        self.numeric: list[tuple[str, str, tuple[float, ...]]] = []
        self.nominal: list[tuple[str, dict[str, int], int, Floats | None]] = []
        places: list[int] = []
        flags: list[int] = []
        fitted: list[tuple[float, ...]] = []
        at = 0
        for s in steps:
            if s.role == "nominal":
                table = {value: at + k for k, value in enumerate(s.categories)}
                size, gap = len(s.categories), None
                if indicator and s.gaps:
                    gap, gap_at, size = np.ones(1), at + size, size + 1
                else:
                    gap, gap_at = (np.array(s.shares), at) if s.shares else (None, at)
                self.nominal.append((s.name, table, gap_at, gap))
                at += size
                continue
            self.numeric.append((s.name, s.role, s.knots))
            places.append(at)
            flags.append(at + 1 if indicator and s.gaps else -1)
            fitted.append((math.ldexp(s.fill, s.shift), -s.shift, s.center, math.inf if s.constant else s.scale))
            at += 1 + (indicator and s.gaps)
        self.size, self.roles = at, [s.role for s in steps]
        self.flags, self.places = np.array(flags, dtype=np.intp), np.array(places, dtype=np.intp)
        fills, shifts, centers, scales = (np.array([f[i] for f in fitted], dtype=np.float64) for i in range(4))
        self.fills, self.centers, self.scales = fills, centers, scales
        self.shifts = shifts.astype(np.int64) if shifts.any() else None
        self.asinh = recipe.scaling == "rowwise"
        self._width = at + norm.intercept
        plain = norm.exponent == 0 and all(role == "numeric" for _, role, _ in self.numeric)
        self._compiled = plain and not self.asinh and self.shifts is None
        self._knots = [knots for *_, knots in self.numeric] if any(s.knots for s in steps) else []
        self._values = _values_of([name for name, *_ in self.numeric])
        self._packed = struct.Struct(f"{len(places)}d").pack
        divisor = norm.divisor if norm.normalize else 1.0
        root = math.sqrt(2.0) if norm.intercept and not norm.one else 1.0
        constant = (
            (norm.one / divisor if norm.one else norm.radius / root) * JUST_BELOW_ONE if norm.intercept else math.nan
        )
        self._scale = (norm.reach * norm.reach * (1.0 - MARGIN), divisor, root, JUST_BELOW_ONE, constant)
        self._fill: Any = None

    def scaled(self, numbers: Floats) -> Floats:
        """Return the features (p,) of numeric columns, or (n, p) for n rows.

        The caller must suppress overflow warnings.
        """
        if self.asinh:
            return np.asarray(np.arcsinh(numbers))
        if self.shifts is not None:
            numbers = np.ldexp(numbers, self.shifts)
        return (numbers - self.centers) / self.scales

    def features(self, columns: list[NDArray[Any]], rows: int) -> Floats:
        """Return the features (rows, d') of columns.

        A column has numbers (NaN for gaps), or category codes (-1 for gaps, -2 for unknown names).
        """
        X, given = np.zeros((rows, self.size)), zip(self.roles, columns, strict=True)
        numbers = [column for role, column in given if role != "nominal"]
        if numbers:
            N, marked = np.array(numbers).T, self.flags >= 0
            gaps = np.isnan(N)
            X[:, self.flags[marked]] = gaps[:, marked]
            with np.errstate(over="ignore"):
                scaled = self.scaled(np.where(gaps, self.fills, N))
            X[:, self.places] = np.where(np.isinf(self.scales), 0.0, scaled)
        given = zip(self.roles, columns, strict=True)
        all_codes = (column for role, column in given if role == "nominal")
        for codes, (_, table, gap_at, gap_values) in zip(all_codes, self.nominal, strict=True):
            known = np.flatnonzero(codes >= 0)
            X[known, min(table.values()) + codes[known]] = 1.0
            if gap_values is not None:
                X[codes == -1, gap_at : gap_at + len(gap_values)] = gap_values
        return X

    def quick(self, row: Mapping[str, object]) -> Floats | None:
        """Return the context (d,) of a row of finite numbers and known categories, or None for other rows.

        It performs the operations of `scaled` and `NormRule.rows` in the same order, so results are equal.
        """
        if not self._compiled or type(row) is not dict:
            return None
        try:
            values = self._values(row)
            if not NUMBERS.issuperset(map(type, values)) or (self._knots and not all(map(math.isfinite, values))):
                return None
            values = tuple(map(bent, values, self._knots)) if self._knots else values
            numbers = np.frombuffer(self._packed(*values)) if values else NONE
        except (KeyError, OverflowError, struct.error):
            return None
        x = np.zeros(self._width)
        for name, table, _, _ in self.nominal:
            value = row.get(name)
            at = table.get(value) if type(value) is str else None
            if at is None:
                return None
            x[at] = 1.0
        fill = self._fill or self._bind(numbers, x)
        return x if fill(numbers, self.centers, self.scales, self.places, *self._scale, x) else None

    def warm(self) -> None:
        """Compile the functions that `quick` calls."""
        if self._compiled:
            self._bind(np.frombuffer(bytes(8 * (len(self.numeric) + 1)))[1:], np.zeros(self._width))

    def _bind(self, numbers: Floats, x: Floats) -> Any:
        from banditlab.numerics.plain_row import fill_row  # imports numba

        self._fill = entry(fill_row, numbers, self.centers, self.scales, self.places, *self._scale, x)
        return self._fill


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns a row's values under these names as a tuple, or raises a KeyError."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda row: tuple(row[name] for name in names)
