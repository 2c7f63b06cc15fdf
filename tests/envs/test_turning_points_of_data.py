"""Where a rule about data turns, on both sides: what is a class, a slip, a category, a header, a leak; defaults; sizes."""

from __future__ import annotations

import gzip
import inspect
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

from banditlab import envs
from banditlab.envs import _sparse_table, files, openml, survey
from banditlab.envs._columns import Column, Recipe, are_dates, check_nominal, column_of, number_of
from banditlab.envs._frame import classes_of, refuse_columns
from banditlab.envs._norm_rule import NormRule
from banditlab.envs._planted import logistic_labels, noisy_labels
from banditlab.envs._recipe import prepare
from banditlab.envs._sparse_table import sparse_rows, stays_sparse
from banditlab.envs._steps import Step
from banditlab.envs._stream import CHUNK, StreamEnv
from banditlab.envs._text import as_utf8
from banditlab.envs.encoding import Encoder
from banditlab.envs.table import _CACHE, Table
from banditlab.errors import EnvironmentContractError, FaultError, UsageError
from banditlab.problem import Problem

READ: dict[str, Any] = {"scaling": "auto", "missing": "error", "normalize": True, "intercept": True, "horizon": 10_000}
OF_FILES: dict[str, Any] = {"label": "", "drop_columns": None, "max_categories": 100} | READ
DEFAULTS: dict[str, dict[str, Any]] = {
    "Adversary": {
        "n_features": 5, "n_classes": 3, "norm_bound": 10.0, "rho": 0.1, "n_cells": 8, "radius": 1.0, "horizon": 10_000
    },
    "Digits": {"scaling": "none", "normalize": True, "intercept": True, "horizon": 10_000},
    "GymnasiumEnv": {"options": None, "label_key": "", "right_above": None, "horizon": 10_000},
    "Logistic": {
        "n_features": 10, "n_classes": 5, "norm_bound": 10.0, "contexts": "sphere", "radius": 1.0, "noise": 0.0,
        "horizon": 10_000,
    },
    "LowerBound": {"n": 10_000, "chi": 1, "epsilon": 0.01, "horizon": 10_000},
    "OpenML": OF_FILES | {"data_home": ""},
    "Sparse": {
        "n_features": 1000, "n_classes": 4, "nonzeros": 40, "exponent": 1.0, "topical": 0.3, "radius": 1.0, "noise": 0.0,
        "horizon": 10_000,
    },
    "SynNonSep": {"noise_rate": 0.05, "noise": "other", "horizon": 10_000},
    "SynSep": {"horizon": 10_000},
    "Table": OF_FILES | {
        "format": "auto", "encoding": "auto", "separator": "auto", "header": "auto", "decimal": ".", "drop_rows": None,
        "roles": None,
    },
}  # fmt: skip
"""Runs are stored under what is set: a default that moves moves them."""


def defaults(function: Any) -> dict[str, Any]:
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in found if p.default is not p.empty}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_and_what_a_class_says_of_itself(name: str) -> None:
    cls = getattr(envs, name)
    assert defaults(cls) == DEFAULTS[name]
    assert cls.version == 1
    assert cls.foreign == (name == "GymnasiumEnv")
    assert cls.labelled is True
    assert cls.oblivious == (name not in ("Adversary", "GymnasiumEnv"))
    assert cls.sparse == (name == "Sparse")


def test_defaults_of_recipes_and_surveys() -> None:
    assert set(DEFAULTS) == set(envs.BUILT_IN["envs"])
    assert defaults(Recipe) == {name: READ[name] for name in ("scaling", "missing", "normalize", "intercept")}
    of_fit = {name: READ[name] for name in ("scaling", "missing", "normalize", "intercept")}
    assert defaults(Encoder.fit) == of_fit | {"max_categories": 100, "roles": None, "source": "table"}
    assert defaults(survey.survey)["max_categories"] == 100
    plain = Step("a", "numeric")
    assert plain[2:] == ((), False, False, 0.0, (), 0, 0.0, 1.0)
    column = Column("a", np.zeros(2))
    assert (column.n_categories, column.categories, column.role) == (0, (), "numeric")


def test_the_least_that_synthetic_environments_take() -> None:
    assert envs.Adversary(n_features=1, n_classes=2, n_cells=1).problem.n_features == 1
    assert envs.Logistic(n_features=1, n_classes=2).problem.n_classes == 2
    env = envs.Sparse(n_features=2, n_classes=2, nonzeros=1)
    env.reset(seed=0)
    X, _ = next(env.blocks(8, 8))
    np.testing.assert_allclose(X.toarray().sum(axis=1), 1.0, rtol=1e-11)
    assert envs.Sparse(n_features=40, n_classes=4, nonzeros=10).n_features == 40
    assert envs.LowerBound(n=2).norm_bound == math.log(2.0)
    # sqrt(1/4)/2 = 1/4: the class +1 never comes; and at epsilon = 1, n = 3 it would come with probability 1.37
    assert envs.LowerBound(n=10, chi=-1, epsilon=0.25).p_positive == 0.0
    with pytest.raises(UsageError, match=r"too large for n = 3: probability 1\.36"):
        envs.LowerBound(n=3, epsilon=1.0)


def test_bytes_of_a_row() -> None:
    assert envs.Logistic(n_features=7).row_bytes == 56
    assert envs.Sparse(nonzeros=40).row_bytes == 488


def test_rows_in_order_are_those_of_the_blocks() -> None:
    env = envs.Digits()
    env.reset(seed=4)
    for rounds in (1, env.n_rows, env.n_rows + 1, 2 * env.n_rows):
        order = env.row_order(rounds)
        [(X, y)] = env.blocks(rounds, rounds)
        assert len(order) == rounds
        np.testing.assert_array_equal(env._table.X[order], X)
        np.testing.assert_array_equal(env._table.y[order], y)
    assert env.class_shares.sum() == pytest.approx(1.0)
    assert env.class_shares[0] == pytest.approx(178 / 1797)


class Told:
    """A generator whose uniforms are given."""

    def __init__(self, *u: Any) -> None:
        self.u = u

    def random(self, shape: Any = None) -> Any:
        return np.array(self.u) if shape is not None else self.u[0]


def test_uniforms_that_fall_on_a_probability() -> None:
    """A label changes below the rate and not at it; a class is drawn up to its cumulative probability, not at it."""
    below = np.nextafter(0.25, 0.0)
    y = np.array([0, 0, 2])
    u = Told([0.25, 0.0], [below, 0.0], [below, 0.99])
    assert noisy_labels(u, y, 3, 0.25).tolist() == [0, 1, 1]
    assert noisy_labels(u, y, 3, 0.25, "any").tolist() == [0, 0, 2]
    assert logistic_labels(Told(0.5, np.nextafter(0.5, 0.0)), np.zeros((2, 2))).tolist() == [1, 0]
    env = envs.LowerBound(n=10, chi=-1)
    p = env.p_positive
    _, labels = next(env._draw(SimpleNamespace(labels=Told(p, np.nextafter(p, 0.0))), 2))
    assert labels.tolist() == [1, 0]


def test_the_adversary_s_coin_and_its_planted_draw() -> None:
    env = envs.Adversary(n_features=1, n_classes=2, n_cells=1, rho=0.25)
    env.reset(seed=0)
    env._W[:] = 0.0  # each class with probability 1/2
    env._plays[:] = [[5, 3]]
    for coin, u, label in ((0.25, 0.5, 1), (0.25, 0.49, 0), (np.nextafter(0.25, 0.0), 0.49, 1)):
        env._current = env._current._replace(noise=Told(coin), labels=Told(u))
        assert env._next()[1] == label


# ------------------------------------------------------------------------------------------------------- labels, columns


def series(values: list[Any]) -> pd.Series:
    return pd.Series(values, name="c")


@pytest.mark.parametrize(
    ("labels", "taken"),
    [
        ([0.5, 1.5, 2.5] * 2 + [0.5, 1.5], False),  # three fractions in 8 rows: max(2, 8 // 3) = 2
        ([0.5, 1.5, 2.5] * 3, True),
        ([1, 2, 3, 1, 2], False),  # three whole numbers in 5 rows: max(2, 5 // 2) = 2
        ([1, 2, 3] * 2, True),
    ],
)
def test_how_many_values_are_classes(labels: list[Any], taken: bool) -> None:
    if taken:
        assert len(classes_of(series(labels), "t", False)[1]) == 3
        return
    with pytest.raises(UsageError, match=f"t has 3 different values in {len(labels)} rows"):
        classes_of(series(labels), "t", False)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1000", "2000"], [1000, 2000]),
        ([str(2**53 - 1), "1"], [1, 2**53 - 1]),
        ([str(2**53), "1"], [1.0, float(2**53)]),  # from here on a float is not the whole number it is written as
    ],
)
def test_labels_that_are_whole_numbers(labels: list[str], classes: list[Any]) -> None:
    found = classes_of(series(labels * 2), "t", False)[1]
    assert found == classes
    assert [type(name) for name in found] == [type(name) for name in classes]


@pytest.mark.parametrize(
    ("gaps", "options"),
    [(5, [part for i in range(5) for part in ("--drop-row", str(i))]), (6, ["--missing", "drop_rows"])],
)
def test_up_to_five_missing_labels_are_rows_to_drop(gaps: int, options: list[str]) -> None:
    with pytest.raises(FaultError, match=f"has {gaps} missing entries") as fault:
        classes_of(series([None] * gaps + ["a", "b"] * 10), "t", False)
    assert list(fault.value.options) == options


@pytest.mark.parametrize(("n", "more"), [(30, ""), (31, "... 1 more")])
def test_thirty_columns_are_named_and_the_others_counted(n: int, more: str) -> None:
    with pytest.raises(FaultError) as fault:
        refuse_columns(["zz"], [f"a{i}" for i in range(n)], "t")
    known = str(fault.value).partition("known: ")[2]
    assert known.count(", ") == (30 if more else 29)
    assert more in known
    assert more or "more" not in known


@pytest.mark.parametrize(
    ("known", "odd", "slips"), [(10, 1, True), (10, 2, False), (9, 1, False), (60, 5, True), (60, 6, True)]
)
def test_a_tenth_of_a_column_may_be_slips(known: int, odd: int, slips: bool) -> None:
    """Up to five are rows to drop, of more the column."""
    text = pd.Series([f"x{i % 3}" for i in range(odd)] + [str(i % 4) for i in range(known - odd)], name="c")
    if not slips:
        check_nominal(text, text.nunique(), known, 100, "t")
        return
    with pytest.raises(FaultError, match=f"is numeric but for {odd} of {known} entries") as fault:
        check_nominal(text, text.nunique(), known, 100, "t")
    if odd <= 5:
        assert list(fault.value.options) == [part for i in range(odd) for part in ("--drop-row", str(i))]
    else:
        assert list(fault.value.options) == ["--drop-column", "c"]
    check_nominal(text, text.nunique(), known, 100, "t", asked=True)


def test_text_that_differs_in_each_of_three_rows_is_an_identifier_and_of_two_is_not() -> None:
    check_nominal(pd.Series(["u", "v"], name="c"), 2, 2, 100, "t")
    with pytest.raises(FaultError, match="different in every row"):
        check_nominal(pd.Series(["u", "v", "w"], name="c"), 3, 3, 100, "t")
    check_nominal(pd.Series(["u", "v", "w"], name="c"), 3, 3, 100, "t", asked=True)


@pytest.mark.parametrize("rows", [3, 8])
def test_dates_as_text_are_told_from_identifiers_and_from_many_categories(rows: int) -> None:
    """Different in every row, or more of them than categories may be."""
    text = pd.Series([f"2024-01-{1 + i // (rows // 3):02}" for i in range(rows)], name="c")
    with pytest.raises(FaultError, match="s holds dates as text") as fault:
        check_nominal(text, text.nunique(), rows, 3, "s")
    assert fault.value.options == ("--role", "c=time")
    few = pd.Series(["2024-01-01", "2024-01-02"] * 3, name="c")
    check_nominal(few, 2, 6, 3, "s")


@pytest.mark.parametrize(
    ("values", "dates"),
    [
        (["2024-01-01"], True),
        ([], False),
        (["20240101", "20240102"], False),  # which may as well be numbers
        (["2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00+02:00"], True),
        (["2024-01-01", "x"], False),
        (["x", "2024-01-01"], False),
    ],
)
def test_what_is_taken_for_dates(values: list[str], dates: bool) -> None:
    assert are_dates(pd.Series(values, dtype="str")) is dates


def test_columns_that_were_declared() -> None:
    time = column_of(pd.Series(["1970-01-01", None, "1970-01-02T12:00:00"], name="t"), 100, "s", "time")
    assert time.values[0] == 0.0
    assert np.isnan(time.values[1])
    assert time.values[2] == 1.5
    zones = pd.Series(["1970-01-01T01:00:00+01:00", "1970-01-01T02:00:00+01:00"], name="t")
    np.testing.assert_allclose(column_of(zones, 100, "s", "time").values, [0.0, 1 / 24])
    number = column_of(pd.Series(["1", None, "2.5"], name="n"), 100, "s", "numeric")
    np.testing.assert_array_equal(number.values, [1.0, np.nan, 2.5])
    empty = column_of(pd.Series([None, None], name="e", dtype="str"), 100, "s")
    assert (empty.n_categories, empty.categories, empty.gaps.tolist()) == (1, ("",), [True, True])
    with pytest.raises(UsageError, match="s holds numbers, which need no role time"):
        column_of(pd.Series([1, 2], name="t"), 100, "s", "time")
    period = pd.Series(pd.period_range("1970-01", periods=2, freq="M"), name="p")
    np.testing.assert_array_equal(column_of(period, 100, "s", "time").values, [0.0, 31.0])
    with pytest.raises(FaultError, match="holds dates, which have no rule"):
        column_of(period, 100, "s")


@pytest.mark.parametrize(("length", "shown"), [(58, "'" + "x" * 58 + "'"), (59, "'" + "x" * 59 + "...")])
def test_a_value_is_shown_up_to_sixty_characters(length: int, shown: str) -> None:
    with pytest.raises(UsageError) as refusal:
        number_of("k", "x" * length, "numeric")
    assert str(refusal.value) == f"key 'k' must be a number, got {shown}"


# ---------------------------------------------------------------------------------------------------------- norms, recipes


def test_a_row_far_beyond_all_others_is_cut_entry_by_entry_first() -> None:
    norm = NormRule.of(np.eye(2), Recipe("none", "error", True, False), "t")
    [far] = norm.rows(np.array([[3e100, 1e100]]))
    assert far[0] == far[1]
    assert np.linalg.norm(far) == pytest.approx(1.0)
    with pytest.raises(UsageError, match="every feature is zero"):
        NormRule.of(np.zeros((2, 2)), Recipe("none"), "t")


def numbers(**columns: list[float]) -> pd.DataFrame:
    return pd.DataFrame(columns)


@pytest.mark.parametrize("normalize", [True, False])
def test_rows_about_as_long_as_the_longest_are_encoded_as_the_transformer_does_it(normalize: bool) -> None:
    """Shorter by a billionth, as long, longer by a tenth of a billionth, by a fifth."""
    frame = numbers(a=[3.0, 1.0, 0.0], b=[4.0, 0.5, 2.0])
    encoder = Encoder.fit(frame, scaling="none", normalize=normalize, intercept=False)
    for factor in (0.5, 1.0 - 1e-9, 1.0 - 1e-10, 1.0, 1.0 + 1e-10, 1.0 + 1e-9, 1.2):
        row = {"a": 3.0 * factor, "b": 4.0 * factor}
        x = encoder.encode(row)
        assert x.tobytes() == encoder.transform(pd.DataFrame([row]))[0].tobytes()
        assert np.linalg.norm(x) <= encoder.radius


def test_rowwise_rows_of_any_length_and_of_none() -> None:
    frame = numbers(a=[0.0, 0.25, 3.0], b=[0.0, 0.0, 1.0])
    encoder = Encoder.fit(frame, scaling="rowwise", intercept=False)
    X = encoder.transform(frame)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), [0.0, 1.0, 1.0], rtol=1e-11)
    for row, x in zip(frame.to_dict("records"), X, strict=True):
        np.testing.assert_array_equal(encoder.encode(row), x)


def test_a_range_of_two() -> None:
    encoder = Encoder.fit(
        numbers(a=[0.0, 2.0, 1.0], b=[0.0, 2.0, 0.5]), scaling="minmax", normalize=False, intercept=False
    )
    np.testing.assert_allclose(encoder.encode({"a": 1.0, "b": 0.5}), [0.5, 0.25], rtol=1e-11)
    assert encoder.transform(pd.DataFrame({"a": [], "b": []})).shape == (0, 2)


@pytest.mark.parametrize(("exponent", "shift"), [(399, 0), (400, 401), (-401, 0), (-402, -401)])
def test_scalers_meet_units_beyond_two_to_the_400_by_a_power_of_two(exponent: int, shift: int) -> None:
    encoder = Encoder.fit(numbers(a=[2.0**exponent, 0.0, -(2.0 ** (exponent - 1))]), scaling="standard")
    assert encoder._steps[0].shift == shift


@pytest.mark.parametrize("scaling", ["minmax", "standard", "maxabs", "robust"])
def test_a_column_of_gaps_is_constant_under_a_scaling(scaling: str) -> None:
    frame = numbers(a=[1.0, 2.0, 4.0], gone=[np.nan] * 3)
    encoder = Encoder.fit(frame, scaling=scaling, missing="mean", intercept=False)  # type: ignore[arg-type]
    assert encoder._steps[1].constant
    assert (encoder.transform(frame)[:, 1] == 0.0).all()


def test_a_zero_put_for_gaps_belongs_to_the_range_of_a_column_that_is_constant_otherwise() -> None:
    frame = numbers(a=[0.5, np.nan, 0.5], b=[0.0, 1.0, 0.5])
    encoder = Encoder.fit(frame, scaling="minmax", missing="zero", normalize=False, intercept=False)
    np.testing.assert_allclose(encoder.transform(frame)[:, 0], [1.0, 0.0, 1.0], rtol=1e-11)


def test_labels_and_contexts_of_a_recipe_cannot_be_written() -> None:
    rows = prepare([Column("a", np.array([1.0, 2.0]))], np.array([0, 1]), ["u", "v"], Recipe(), "t")
    assert not rows.X.flags.writeable
    assert not rows.y.flags.writeable


def test_one_category_survives_a_file() -> None:
    frame = pd.DataFrame({"größe": [1.0, 2.0, 3.0], "n": ["u", "u", "u"]})
    data = Encoder.fit(frame, roles={"n": "nominal"}, missing="mean").to_bytes()
    assert "größe".encode() in data
    np.testing.assert_array_equal(
        Encoder.from_bytes(data).transform(frame),
        Encoder.fit(frame, roles={"n": "nominal"}, missing="mean").transform(frame),
    )


# ------------------------------------------------------------------------------------------------------------ sparse rows


def test_the_least_size_that_stays_sparse() -> None:
    assert not stays_sparse(SimpleNamespace(shape=(2**10, 2**13), nnz=1))
    assert stays_sparse(SimpleNamespace(shape=(2**10 + 1, 2**13), nnz=1))
    assert _sparse_table.LARGE == 8_388_608


LABELS = pd.Series([0, 1, 0, 1], name="label")


@pytest.mark.parametrize(("most", "scaling"), [(10.0, "none"), (10.1, "minmax")])
def test_ranges_of_sparse_columns_are_told_as_those_of_dense_ones(most: float, scaling: str) -> None:
    """The first lies in 2 ... 3 and is never 0, the second in 0 ... most, the third is constant."""
    X = np.array([[2.0, 0.0, 5.0], [3.0, most, 5.0], [2.5, 0.0, 5.0], [2.0, 0.0, 5.0]])
    rows = sparse_rows(csr_array(X), LABELS, Recipe(), [], "t")
    assert rows is not None
    assert rows.scaling == scaling
    dense = prepare([Column(str(j), X[:, j]) for j in range(3)], LABELS.to_numpy(), [0, 1], Recipe(), "t")
    assert dense.scaling == scaling
    np.testing.assert_allclose(rows.X.toarray(), dense.X, rtol=1e-12)


def test_sparse_columns_that_are_all_constant_and_rows_shorter_than_one() -> None:
    X = csr_array(np.full((4, 2), 3.0))
    constant = sparse_rows(X, LABELS, Recipe(), [], "t")
    assert constant is not None
    assert constant.scaling == "none"
    short = csr_array(np.array([[0.25, 0.0], [0.0, 3.0], [0.0, 0.0], [0.5, 0.0]]))
    rows = sparse_rows(short, LABELS, Recipe("rowwise", intercept=False), [], "t")
    assert rows is not None
    np.testing.assert_allclose(np.linalg.norm(rows.X.toarray(), axis=1), [1.0, 1.0, 0.0, 1.0], rtol=1e-11)
    assert rows.radius == 1.0


# --------------------------------------------------------------------------------------------------------------- streams


class Drawing(StreamEnv):
    """Its `_draw` hands over what it was given."""

    def __init__(self, source: Any) -> None:
        super().__init__(Problem(2, 3, 1.0, 10))
        self.source = source

    def _draw(self, streams: Any, size: int) -> Any:
        return self.source


def test_what_a_draw_must_hand_over() -> None:
    X, y = np.zeros((CHUNK, 2)), np.zeros(CHUNK, dtype=np.int64)
    mixed = y.copy()
    mixed[7] = 3
    for source, message in (
        ([(X, y)], r"_draw returned a list: it must yield"),
        (iter([(X, y, y)]), "got a tuple"),
        (iter([[X, y]]), "got a list"),
        (iter([(X, mixed)]), "Drawing gave the label 3: with 3 classes"),
        (iter([(X, -mixed)]), "Drawing gave the label -3"),
    ):
        with pytest.raises(EnvironmentContractError, match=message):
            Drawing(source).reset(seed=0)


# ------------------------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize(("text", "utf16"), [("abcdefghжж", False), ("abcdefghiж", True), ("ab", True), ("a", False)])
def test_more_than_four_fifths_of_bytes_that_are_zero_are_utf_16(text: str, utf16: bool) -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        data = text.encode(encoding)
        if utf16:
            with pytest.raises(UsageError, match=f"--encoding {encoding}"):
                as_utf8("t", data)
        else:
            assert as_utf8("t", data) == data


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n" * 20 + "no separator\n", ","),  # so many lines are looked at
        ("x;c\n1,5;2,5\n3,5;4,5\n", ";"),
        ("x;c\n1,5;2,5\n3;4\n", ";"),
    ],
)
def test_separators_by_the_first_twenty_lines(text: str, separator: str) -> None:
    assert files.sniff_separator("t", text.encode()) == separator


def test_separators_of_a_file_longer_than_what_is_looked_at() -> None:
    """A line that is cut there does not count, unless it is the only one."""
    line = "x" * 30_000 + ",y,z"
    assert files.sniff_separator("t", "\n".join([line] * 4).encode()) == ","
    assert files.sniff_separator("t", ("a,b,c" + "x" * 70_000).encode()) == ","
    assert files.sniff_separator("t", ("a,b\n" * 20 + "none\n" * 20_000).encode()) == ","


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,setosa\n", False),  # three lines tell
        ("4,5,a\n3,9,b\n7,1,a\n5,5,b\n", False),  # two numbers in a row are no numbering
        ("1\n1\n2\n3\n", False),  # the least of what stands below
        ("3\n1\n2\n3\n", False),  # and the largest
        ("4\n1\n2\n3\n", True),
        ("5,6,name\n4,5,u\n6,7,v\n5,6,u\n", True),  # two columns for data, one for a header
        ("5,6,7.5,name\n4,5,7,u\n6,7,8,v\n5,6,7,u\n", False),  # three
        ("u,w,name\nu,w,q\nv,z,r\nu,w,q\n", True),
        ("u,w,k,name\nu,w,k,q\nv,z,l,r\nu,w,k,q\n", False),
        ("5,aa\n4,bb\n6,cc\n5,dd\n", False),  # text of its own in each row tells nothing
    ],
)
def test_how_many_columns_tell_a_header(text: str, header: bool) -> None:
    assert files.has_header(text.encode(), ",") is header


def test_a_long_file_without_a_header() -> None:
    assert not files.has_header(b"5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versi\n" * 25_000, ",")


def test_what_a_gzip_file_says_of_itself_is_refused_before_it_is_unpacked(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITLAB_MAX_UNPACKED_BYTES", "1000")
    for size, refused in ((1000, False), (1001, True), (5000, True)):
        data = gzip.compress(b"a" * size, mtime=0)
        if not refused:
            assert files.unpacked("t.gz", data) == b"a" * size
            continue
        with pytest.raises(UsageError) as refusal:
            files.unpacked("t.gz", data)
        assert f"{len(data):,} bytes unpack to {size:,}" in str(refusal.value)
        assert "and more" not in str(refusal.value)
    twice = gzip.compress(b"a" * 700, mtime=0) + gzip.compress(b"b" * 700, mtime=0)  # it tells of its last member only
    with pytest.raises(UsageError, match="bytes unpack to 1,000 and more"):
        files.unpacked("t.gz", twice)


def test_columns_of_a_first_line_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_MAX_COLUMNS", "3")
    assert files.read_csv("t", b"a,b,c\n1,2,3\n", ",", ".", []).shape == (1, 3)
    with pytest.raises(UsageError, match="the first line has 4 columns separated by ','"):
        files.read_csv("t", b"a,b,c,d\n1,2,3,4\n", ",", ".", [])


@pytest.mark.parametrize(("numbers_", "kept"), [(["1,5", "2"], "x,y"), (["1,5", "2", "3"], "x.y")])
def test_slips_in_a_column_of_decimal_commas_are_spelt_as_the_numbers_are(numbers_: list[str], kept: str) -> None:
    """Where more than half are numbers; else it is text as it stands."""
    words = ["x,y"] * 2 if len(numbers_) == 2 else ["x,y"]
    data = "k;c\n" + "".join(f"{value};1\n" for value in [*numbers_, *words])
    assert files.read_csv("t", data.encode(), ";", ",", [])["k"].iloc[-1] == kept


def test_decimal_commas_are_a_fault_that_may_be_collected() -> None:
    data, faults = b"k;c\n1,5;1\n2;2\n", []
    found = files.read_csv("t", data, ";", ".", [], faults=faults)
    assert found["k"].tolist() == [1.5, 2.0]
    [fault] = faults
    assert fault.options == ("--decimal", ",")
    with pytest.raises(FaultError, match="column 'k' holds numbers with a decimal comma"):
        files.read_csv("t", data, ";", ".", [])
    assert files.read_csv("t", data, ";", ",", [])["k"].tolist() == [1.5, 2.0]


class Large:
    """Rows of which only the shape is there."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def toarray(self) -> Any:
        raise MemoryError


@pytest.mark.parametrize(("n", "refused"), [(20_000, False), (20_001, True)])
def test_what_is_too_large_to_be_made_dense(n: int, refused: bool) -> None:
    X, labels = Large(n, 10_000), pd.Series([0], name="label")
    bunch = SimpleNamespace(data=X, feature_names=[], target_names=["y"], target=[])
    for made in (lambda: files.made_dense("t", X, labels), lambda: openml._dense(bunch, "t")):
        if refused:
            with pytest.raises(UsageError, match=r"20001 rows of 10000 features are 1\.6 GB when dense"):
                made()
        else:
            with pytest.raises(MemoryError):
                made()


def test_a_stored_table_is_its_columns_and_another_takes_its_place(tmp_path: Any) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]})
    folder = tmp_path / "not" / "yet"
    file = files.stored_table(frame, folder)
    assert pq.read_schema(file).names == ["x", "y"]
    before = file.read_bytes()
    assert files.stored_table(frame.assign(x=[1.0, 3.0]), folder) == file
    assert file.read_bytes() != before


def test_four_tables_are_kept(tmp_path: Any) -> None:
    _CACHE.clear()
    for i in range(5):
        path = tmp_path / f"{i}.csv"
        path.write_text(f"x,c\n{i},a\n7,b\n8,a\n9,b\n")
        Table(path=str(path), label="c", max_categories=2)
        assert len(_CACHE) == min(i + 1, 4)
    first = Table(path=str(tmp_path / "1.csv"), label="c", max_categories=2)
    assert first._table is next(reversed(_CACHE.values()))[0]
    _CACHE.clear()


def test_bytes_of_a_sparse_row(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """12 an entry, of the mean row rounded up, and 8."""
    _CACHE.clear()
    monkeypatch.setattr(_sparse_table, "LARGE", 0)
    path = tmp_path / "t.svm"
    path.write_text("0 1:1 9:2\n1 2:1\n0 3:1 4:1\n1 5:2\n")
    env = Table(path=str(path), scaling="none", intercept=False)
    assert env.sparse
    assert env.row_bytes == 12 * 2 + 8
    _CACHE.clear()


# ----------------------------------------------------------------------------------------------------------------- surveys


def role_of(values: Any, name: str = "x", y: Any = None, is_sorted: bool = False, **known: Any) -> str:
    column = Column(name, np.asarray(values), **known)
    labels = None if y is None else np.asarray(y)
    return survey.note_of(column, pd.Series(values), labels, is_sorted).role


def test_two_numbers_do_not_count_rows_and_three_do() -> None:
    assert role_of([4.0, 5.0]) == "numeric"
    assert role_of([4.0, 5.0, 6.0]) == "index-like"
    assert role_of([4.0, 6.0, 8.0]) == "numeric"
    assert role_of([4.0, 5.0, 6.0], is_sorted=True) == "probable leak"
    assert role_of([4.0]) == role_of([np.nan, 4.0, 4.0]) == "constant"


@pytest.mark.parametrize(("n", "role"), [(199, "numeric"), (200, "identifier-like")])
def test_whole_numbers_of_their_own_in_200_rows_are_an_identifier(n: int, role: str) -> None:
    values = 3.0 * np.random.default_rng(0).permutation(n)
    assert role_of(values) == role
    assert role_of(values, "row_id") == "identifier-like"
    assert role_of(values + 0.5) == "numeric"


@pytest.mark.parametrize(("n", "codes"), [(100, True), (101, False)])
def test_a_hundred_different_numbers_may_be_codes(n: int, codes: bool) -> None:
    values = np.tile(np.random.default_rng(0).permutation(3 * n)[:n], 2).astype(float)
    note = survey.note_of(Column("zip_id", values), pd.Series(values), None, False)
    assert note.role == "numeric"
    assert ("codes?" in note.remark) == codes
    assert note.option == ("--role zip_id=nominal" if codes else "")


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6, 1e9])
def test_the_seconds_of_a_clock(unit: float) -> None:
    """From 1973 to 2286, in seconds, thousandths and so on."""
    for low, high, clock in ((1e8, 9.9e9, True), (0.9e8, 9.9e9, False), (1.5e8, 9.9e9, True), (1e9, 1e10, False)):
        assert (role_of([low * unit, high * unit], "seen_time") == "time-like") == clock
        assert role_of([low * unit, high * unit], "amount") == "numeric"


@pytest.mark.parametrize(("labels", "is_sorted"), [("aabbccc", True), ("aabbcc", False), ("aabbcca", False)])
def test_rows_sorted_by_label_are_more_than_two_a_class(labels: str, is_sorted: bool) -> None:
    frame = pd.DataFrame({"x": np.arange(len(labels)) ** 2 % 5, "y": list(labels)})
    said = survey.survey(frame, "y").sentences
    assert any("sorted by label" in sentence for sentence in said) == is_sorted


def wrong_copy(n: int, first: int, wrong: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n,), the first so many of class 0, and a column of two categories that is the label but in some rows."""
    y = (np.arange(n) >= first).astype(np.int64)
    copy = y.copy()
    copy[:wrong] = 1
    order = np.random.default_rng(0).permutation(n)
    return y[order], copy[order]


@pytest.mark.parametrize(
    ("n", "first", "wrong", "leak"),
    [
        (50, 25, 0, True),
        (49, 25, 0, False),  # too few to tell
        (200, 100, 1, True),  # 99.5 %
        (200, 100, 2, False),
        (1000, 990, 2, True),  # 99.8 % where 99.0 % are one class: three quarters of the rest
        (1000, 990, 3, False),
    ],
)
def test_a_column_that_tells_the_label_is_a_leak(n: int, first: int, wrong: int, leak: bool) -> None:
    y, copy = wrong_copy(n, first, wrong)
    if n >= 50:
        assert survey.told_alone(Column("k", copy, 2), y) == pytest.approx(1.0 - wrong / n)
    assert (role_of(copy, y=y, n_categories=2, categories=("u", "v")) == "probable leak") == leak


def test_what_a_category_tells_is_asked_of_its_other_rows() -> None:
    y = np.repeat([0, 1], [40, 20])
    assert survey.told_alone(Column("own", np.arange(60), 60), y) == pytest.approx(40 / 60)
    pairs = Column("pairs", np.repeat(np.arange(30), 2), 30)
    assert survey.told_alone(pairs, y) == 1.0


def test_what_a_number_tells_needs_fifty_rows_and_four_a_class() -> None:
    x = np.arange(60.0)
    assert survey.told_alone(Column("x", x), np.repeat(np.arange(15), 4)) >= 0.0
    assert math.isnan(survey.told_alone(Column("x", x), np.repeat(np.arange(20), 3)))
    assert survey.told_alone(Column("x", x), np.repeat([0, 1], 30)) >= 0.95
    for gaps, enough in ((10, True), (11, False)):
        some = x.copy()
        some[:gaps] = np.nan
        assert math.isnan(survey.told_alone(Column("x", some), np.arange(60) % 2)) != enough


def test_numbers_whose_range_is_beyond_any_number_and_one_far_away_tell_as_others_do() -> None:
    y = np.arange(80) % 2
    huge = Column("x", np.where(y == 1, 1.7e308, -1.7e308))
    assert survey.told_alone(huge, y) == 1.0
    far = np.where(y == 1, 1e-3, 0.0) + 1e-7 * np.arange(80)
    far[0] = -1e12
    assert survey.told_alone(Column("x", far), y) >= 0.95


def test_leaks_are_looked_for_in_the_first_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "MOST_LOOKED", 2)
    y, copy = wrong_copy(60, 30, 0)
    noise = np.random.default_rng(1).normal(size=60)
    for place, leak in ((1, True), (2, False)):
        columns = {f"x{i}": noise for i in range(2)}
        frame = pd.DataFrame(
            dict([*list(columns.items())[:place], ("k", np.array(["u", "v"])[copy]), *columns.items()])
        )
        found = survey.survey(frame.assign(y=np.array(["a", "b"])[y]), "y")
        assert ({note.name: note.role for note in found.notes}["k"] == "probable leak") == leak
        assert found.sentences == ["leaks were looked for in the first 2 columns"]
    few = pd.DataFrame({"x": noise, "k": np.array(["u", "v"])[copy], "y": np.array(["a", "b"])[y]})
    assert survey.survey(few, "y").sentences == []


@pytest.mark.parametrize(("least", "most", "logged"), [(0.1, 1.0, True), (0.0, 1.0, False), (0.1, 1.5, False)])
def test_propensities_lie_above_0_and_up_to_1(least: float, most: float, logged: bool) -> None:
    frame = pd.DataFrame({"action": [0, 1, 0, 1], "propensity": [least, 0.5, most, np.nan], "z": [1, 2, 3, 4]})
    assert bool(survey.logged_decisions(frame)) is logged
    assert not survey.logged_decisions(frame.assign(propensity=["a", "b", "c", "d"]))
