"""The fitted encoder, which encodes a table or a single row as contexts and is saved as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from banditlab.envs._columns import (
    Column,
    Missing,
    Recipe,
    Role,
    Scaling,
    column_of,
    is_gap,
    number_of,
    spellings,
)
from banditlab.envs._norm_rule import NormRule
from banditlab.envs._outliers import bent, mapped
from banditlab.envs._reading import is_one_of, without
from banditlab.envs._row_arrays import RowArrays
from banditlab.envs._steps import Step, feature_names
from banditlab.envs._words import TextFeatures
from banditlab.errors import FaultError, UsageError, nearest
from banditlab.numerics.exponents import exponent
from banditlab.numerics.sparse_rows import is_sparse

if TYPE_CHECKING:
    import pandas as pd


Floats = NDArray[np.float64]
EXTREME = 400
"""Binary exponents beyond which a column's squares may leave the floating-point range."""
RANGE_RATIO = 10.0
"""`scaling = "auto"` scales columns to [0, 1] if the ranges of two of them differ by more than this factor."""
SCALERS = ("standard", "maxabs", "robust")
"""Scikit-learn's scalers; with these the intercept is one of the scaled columns."""
IMPUTING = ("mean", "zero", "indicator")
ROLES = get_args(Role)
NOTHING = object()


class EncodedColumn(NamedTuple):
    """The requirements for a row's value under one name."""

    name: str
    role: str
    """"numeric", "time" (a date, or text in ISO 8601), "nominal" or "text" (words)."""
    categories: tuple[str, ...]
    """The values of a nominal column in the fit; any other value is encoded as zeros."""


class Encoder:
    """A fitted encoder, which encodes new rows in the same way as the rows of the table that it was fitted to.

    It is created by `Encoder.fit`, by `Encoder.from_bytes`, or by a table environment (`Table(...).encoder`).

    Attributes
    ----------
    d
        Length of a context, including the intercept.
    radius
        R, the largest norm of a context. Longer rows are scaled down to this norm.
    columns
        Name, role and categories of the columns of a row, in the table's order.
    feature_names
        (d,), for example "age", "plan=pro", "age is missing", "constant".
    recipe
        The encoder's settings; scaling "auto" is resolved.
    steps
        The encoding step of each column.
    texts
        The features of text columns, which follow all other features.
    """

    def __init__(self, steps: list[Step], recipe: Recipe, norm: NormRule, texts: Sequence[TextFeatures] = ()) -> None:
        self.steps, self.recipe, self._norm, self.texts = steps, recipe, norm, tuple(texts)
        words = [name for text in self.texts for name in text.names]
        self.feature_names = (*feature_names(steps, recipe.missing, recipe.intercept), *words)
        columns = [EncodedColumn(s.name, s.role, s.categories) for s in steps]
        self.columns = (*columns, *(EncodedColumn(text.name, "text", ()) for text in self.texts))
        self.d = len(self.feature_names)
        root = math.sqrt(1.0 + len(self.texts))
        self.share = root if norm.normalize else 1.0
        """The divisor of a context with text features appended."""
        self.radius = norm.radius if norm.normalize else math.hypot(norm.radius, math.sqrt(len(self.texts)))
        self._row = RowArrays(steps, recipe, norm)

    @property
    def blocks(self) -> dict[str, list[int]]:
        """For each nominal column, the indices of the first and last feature of its categories."""
        return {name: [min(places.values()), max(places.values())] for name, places, *_ in self._row.nominal}

    # -------------------------------------------------------------------------------------------------------- fitting

    @classmethod
    def fit(
        cls,
        frame: pd.DataFrame,
        *,
        scaling: Scaling = "auto",
        missing: Missing = "error",
        normalize: bool = True,
        intercept: bool = True,
        max_categories: int = 100,
        roles: Mapping[str, str] | None = None,
        source: str = "table",
    ) -> Self:
        """Return an encoder fitted to a table of features (without a label column).

        Parameters
        ----------
        frame
            (n, p). Columns without a role are numeric if they contain numbers or booleans, and nominal otherwise.
        scaling, missing, normalize, intercept, max_categories
            As for `Table`.
        roles
            Role by column: "numeric", "nominal", "time" (dates or ISO 8601 strings, converted to days since
            1970-01-01), or "drop".
        source
            Name of the table in errors.

        Raises
        ------
        UsageError
            A column does not exist or cannot be encoded, an entry is missing and `missing` is "error", or no row or
            column is left.
        """
        columns = columns_of(frame, dict(roles or {}), max_categories, source)
        recipe = Recipe(scaling, missing, normalize, intercept)
        keep = ~np.logical_or.reduce([column.gaps for column in columns]) if missing == "drop_rows" else None
        if keep is not None:
            columns = [column._replace(values=column.values[keep]) for column in columns]
        elif missing == "error":
            refuse_gaps(columns, source, frame.index.to_numpy())
        return cls.of_columns(columns, recipe, source)[0]

    @classmethod
    def of_columns(cls, columns: list[Column], recipe: Recipe, source: str) -> tuple[Self, Floats]:
        """Return an encoder fitted to columns, and their contexts (n, d). If values are missing, the recipe must allow
        missing values.
        """
        from banditlab.envs._learning import learnt

        if not columns:
            raise UsageError(f"{source}: no feature column is left")
        if not len(columns[0].values):
            raise UsageError(f"{source}: no row is left")
        scaling = recipe.scaling
        if scaling == "auto":
            columns = [mapped(column) for column in columns]
            scaling = "minmax" if ranges_differ(columns) else "none"
        recipe = replace(recipe, scaling=scaling, in_order=False)
        arrays = [
            column.values if column.n_categories else np.where(column.gaps, math.nan, column.values)
            for column in columns
        ]
        steps = learnt([_step(column, recipe) for column in columns], arrays, scaling, recipe.missing)
        raw = RowArrays(steps, recipe, NormRule.bare(recipe)).features(arrays, len(arrays[0]))
        encoder = cls(steps, recipe, NormRule.of(raw, recipe, source))
        return encoder, encoder._norm.rows(raw)

    def with_texts(self, texts: Sequence[TextFeatures]) -> Encoder:
        """Return an encoder that appends the features of text columns."""
        return Encoder(self.steps, self.recipe, self._norm, texts)

    # --------------------------------------------------------------------------------------------------------- encoding

    def transform(self, frame: pd.DataFrame) -> Floats:
        """Return the contexts (n, d) of a table's rows.

        Raises
        ------
        UsageError
            A column is missing, an entry has a wrong type, or an entry is missing and `missing` is "error" or
            "drop_rows".
        """
        frame = without(frame, self.recipe.na_values)
        given = {str(name): name for name in frame.columns}
        absent = [column.name for column in self.columns if column.name not in given]
        if absent and not self.imputes:
            raise self._no_key(absent[0], list(given))
        rows = len(frame)
        if rows == 0:
            return np.zeros((0, self.d))
        entries = {
            column.name: frame[given[column.name]] if column.name in given else [None] * rows for column in self.columns
        }
        X = self._norm.rows(self._row.features([self._entries(step, entries[step.name]) for step in self.steps], rows))
        return self._appended(X, [[self._words(text.name, v) for v in entries[text.name]] for text in self.texts])

    def _appended(self, X: Floats, texts: list[list[str]]) -> Floats:
        """Return contexts (n, d) from the features X of all columns but the text columns, and the entries of each text
        column (n,).
        """
        if not self.texts:
            return X
        parts = [text.rows(values) for text, values in zip(self.texts, texts, strict=True)]
        return np.hstack([X, *(part.toarray() if is_sparse(part) else part for part in parts)]) / self.share

    def _words(self, name: str, value: object) -> str:
        """Return a row's text, or "" for a missing one."""
        if isinstance(value, str):
            return value
        if not is_gap(value):
            raise UsageError(f"key {name!r} must be text, got {type(value).__name__}")
        if not self.imputes:
            raise self._no_gap(name)
        return ""

    def _with_words(self, x: Floats, row: Mapping[str, object]) -> Floats:
        """Append the features of a row's text columns to x, the context of its other columns."""
        if not self.texts:
            return x
        return self._appended(x[None], [[self._words(text.name, row.get(text.name))] for text in self.texts])[0]

    def _entries(self, step: Step, values: Any) -> NDArray[Any]:
        """Return a column as `RowArrays.features` requires it, (n,): numbers, or category codes."""
        if step.role != "nominal":
            dtype = getattr(values, "dtype", None)
            if isinstance(dtype, np.dtype) and dtype.kind in "iufb" and step.role == "numeric":
                numbers = values.to_numpy(dtype=np.float64)
            else:
                numbers = np.array([math.nan if is_gap(v) else number_of(step.name, v, step.role) for v in values])
            numbers = bent(np.where(np.isfinite(numbers), numbers, math.nan), step.knots)
            if not self.imputes and np.isnan(numbers).any():
                raise self._no_gap(step.name)
            return numbers
        places: dict[str | None, int] = {name: k for k, name in enumerate(step.categories)} | {None: -1}
        texts = [_text(step.name, value, places) for value in values]
        if not self.imputes and None in texts:
            raise self._no_gap(step.name)
        return np.array([places.get(text, -2) for text in texts])

    def encode(self, row: Mapping[str, object]) -> Floats:
        """Return the context (d,) of one row, equal to that of `transform`. It takes microseconds.

        None, NaN, infinite numbers and absent keys count as missing. Keys that are not columns are ignored. A category
        that did not occur in the fit is encoded as zeros.

        Raises
        ------
        UsageError
            A value has a wrong type, or a key is missing and `missing` is "error" or "drop_rows"; the message names the
            key and what is allowed.
        """
        return self.encode_counted(row)[0]

    def encode_counted(self, row: Mapping[str, object]) -> tuple[Floats, list[str], list[str]]:
        """Return one row's context, the columns that were imputed, and the columns with an unknown category."""
        row = self._known(row)
        x = self._row.quick(row)
        empty = [text.name for text in self.texts if is_gap(row.get(text.name))]
        if x is not None:
            return self._with_words(x, row), empty, []
        gaps = [*(name for name, *_ in self._row.numeric if is_gap(row.get(name))), *empty]
        unknown = []
        for name, table, _, _ in self._row.nominal:
            text = _text(name, row.get(name), table)
            if text is None:
                gaps.append(name)
            elif text not in table:
                unknown.append(name)
        return self._with_words(self._encoded(row), row), gaps, unknown

    def _known(self, row: Mapping[str, object]) -> Mapping[str, object]:
        """Return a row with None for missing entries."""
        codes = self.recipe.na_values
        return {name: None if is_one_of(value, codes) else value for name, value in row.items()} if codes else row

    def warm(self) -> None:
        """Compile the kernels of `encode` before the first row."""
        self._row.warm()
        for text in self.texts:
            text.rows([""])

    def _encoded(self, row: Mapping[str, object]) -> Floats:
        """Return the context of a row, without text features; values may be missing and categories unknown."""
        arrays = self._row
        x = np.zeros(arrays.size)
        numbers = self._numbers(row, x)
        with np.errstate(over="ignore"):
            x[arrays.places] = arrays.scaled(numbers)
        for name, table, gap_at, gap_values in arrays.nominal:
            at = self._category(row, name, table)
            if at is None:
                if gap_values is not None:
                    x[gap_at : gap_at + len(gap_values)] = gap_values
            elif at >= 0:
                x[at] = 1.0
        return np.asarray(self._norm.rows(x[None])[0])

    def _numbers(self, row: Mapping[str, object], x: Floats) -> Floats:
        """Return the numeric columns' values (p,), with missing ones replaced. If `missing` is "indicator", also set
        the indicators of missing values in x.
        """
        arrays = self._row
        numbers = arrays.fills.copy()
        for j, (name, role, knots) in enumerate(arrays.numeric):
            value = row.get(name, NOTHING)
            if value is not NOTHING and not is_gap(value):
                numbers[j] = bent(number_of(name, value, role), knots)
            elif not self.imputes:
                raise self._no_key(name, list(row)) if value is NOTHING else self._no_gap(name)
            elif arrays.flags[j] >= 0:
                x[arrays.flags[j]] = 1.0
        return numbers

    def _category(self, row: Mapping[str, object], name: str, table: dict[str, int]) -> int | None:
        """Return the index of the feature of a row's category: -1 for an unknown category, None for a missing value."""
        value = row.get(name, NOTHING)
        text = None if value is NOTHING else _text(name, value, table)
        if text is not None:
            return table.get(text, -1)
        if not self.imputes:
            raise self._no_key(name, list(row)) if value is NOTHING else self._no_gap(name)
        return None

    @property
    def imputes(self) -> bool:
        """Whether missing values are imputed."""
        return self.recipe.missing in IMPUTING

    def _no_key(self, name: str, known: list[str]) -> UsageError:
        return UsageError(
            f"key {name!r} is missing{nearest(name, [str(key)[:60] for key in known[:30]], keep_order=True)}; the "
            f"recipe was fitted with missing = {self.recipe.missing!r}, which does not replace missing values"
        )

    def _no_gap(self, name: str) -> UsageError:
        return UsageError(
            f"key {name!r} must have a finite value: the recipe was fitted with missing = {self.recipe.missing!r}, "
            "which does not replace missing and infinite values"
        )

    # ----------------------------------------------------------------------------------------------------------- saving

    def to_bytes(self) -> bytes:
        """Return the encoder as JSON with its settings, columns and exact numbers."""
        from banditlab.envs._saved_encoder import FORMAT, VERSION

        columns = [
            {k: list(v) if isinstance(v, tuple) else v for k, v in step._asdict().items()} for step in self.steps
        ]
        names = ("scaling", "missing", "normalize", "intercept", "na_values")
        recipe = {name: getattr(self.recipe, name) for name in names}
        saved = {
            "format": FORMAT,
            "version": VERSION if self.texts else VERSION - 1,
            "recipe": recipe,
            "norm": self._norm._asdict(),
            "columns": columns,
            **({"texts": [text.plain() for text in self.texts]} if self.texts else {}),
        }
        return json.dumps(saved, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "encoder") -> Self:
        """Return the encoder that `to_bytes` wrote.

        Raises
        ------
        UsageError
            The bytes are not a saved encoder, have a later format version, or are inconsistent. No code in them is
            executed.
        """
        from banditlab.envs._saved_encoder import read

        return cls(*read(data, source))


# -------------------------------------------------------------------------------------------------------- of a table's columns


def check_roles(roles: Mapping[str, str], names: list[str], source: str) -> None:
    """Raise a UsageError for an unknown role, or for a column that does not exist."""
    for name, role in roles.items():
        if name not in names:
            raise UsageError(
                f"{source}: role (--role): there is no column {name!r}{nearest(name, names[:30], keep_order=True)}"
            )
        if role not in ROLES:
            raise UsageError(
                f"{source}: role (--role) of column {name!r} must be one of {', '.join(map(repr, ROLES))}, got {role!r}"
            )


def columns_of(frame: pd.DataFrame, roles: dict[str, str], max_categories: int, source: str) -> list[Column]:
    """Return a table's feature columns by their roles, without those of role "drop"."""
    names = [str(name) for name in frame.columns]
    check_roles(roles, names, source)
    return [
        column_of(frame[given].rename(name), max_categories, f"{source}: column {name!r}", roles.get(name, ""))
        for given, name in zip(frame.columns, names)
        if roles.get(name) != "drop"
    ]


def refuse_gaps(columns: list[Column], source: str, row_numbers: np.ndarray) -> None:
    """Raise a UsageError for the first column with missing entries."""
    for column in columns:
        gaps = column.gaps
        if len(gaps) and gaps.all():
            raise FaultError(
                f"{source}: column {column.name!r} has no finite entry; leave it out with drop_columns (--drop-column)",
                *("--drop-column", column.name),
            )
        if gaps.any():
            raise FaultError(
                f"{source}: column {column.name!r} has {int(gaps.sum())} missing or infinite entries (the first in row "
                f"{row_numbers[int(np.argmax(gaps))]}, counted from 0); set missing (--missing) to mean, indicator or "
                "drop_rows",
                "--missing",
                "indicator",
            )


def ranges_differ(columns: list[Column]) -> bool:
    """Return whether the ranges of two columns that are not constant differ by more than a factor of 10."""
    ranges = [1.0] * any(column.n_categories for column in columns)
    for column in columns:
        known = column.values[~column.gaps]
        if column.n_categories == 0 and len(known):
            ranges.append(float(0.5 * known.max() - 0.5 * known.min()) * 2.0)
    return differ(np.array(ranges))


def differ(ranges: Floats) -> bool:
    """Return whether two positive ranges differ by more than a factor of 10."""
    ranges = ranges[ranges > 0.0]
    return len(ranges) > 0 and bool(ranges.max() > RANGE_RATIO * ranges.min())


def _step(column: Column, recipe: Recipe) -> Step:
    """Return a column's encoding step with all that is known before the fit: the role and the categories, whether
    values are missing, whether the column is constant, and the power of 2 by which its values are divided.
    """

    gaps = column.gaps
    some = bool(gaps.any())
    if column.n_categories:
        return Step(column.name, "nominal", column.names, some)
    known = column.values[~gaps]
    if not len(known) or (recipe.missing == "zero" and some):
        known = np.append(known, 0.0)
    low, high = float(known.min()), float(known.max())
    constant = recipe.scaling in (*SCALERS, "minmax") and not high > low
    shift = 0
    if not constant and recipe.scaling == "minmax":
        shift = int(exponent(max(abs(low), abs(high))))  # else the range of large entries is infinite
    elif not constant and recipe.scaling in SCALERS:
        # The square of 1e200 overflows, and that of 1e-200 is 0. Such columns are scaled to the order of 1 by a power
        # of 2, which changes no digit of a scaler's output. Others are not, because a robust scaler does not scale
        # columns with equal quartiles.
        e = int(np.frexp(np.abs(known).max())[1])
        shift = e if abs(e) > EXTREME else 0
    return Step(column.name, column.role, gaps=some, constant=constant, shift=shift, knots=column.knots)


def _text(key: str, value: object, known: Any) -> str | None:
    """Return a value as a known category, as text if the category is unknown, or None if the value is missing."""
    if is_gap(value):
        return None
    texts = spellings(key, value)
    for text in texts:
        if text in known:
            return text
    return texts[0] or None  # an empty text is a gap in a file, too
