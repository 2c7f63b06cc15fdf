"""The real-data recipe, step by step against hand-made arrays, and Digits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler

from banditlab.envs import Digits
from banditlab.envs._columns import Column, Recipe
from banditlab.envs._recipe import prepare
from banditlab.errors import UsageError

Y = np.array([0, 1, 0, 1])
NAMES = ["no", "yes"]
PLAIN = {"normalize": False, "intercept": False}


def numeric(name, *values):
    return Column(name, np.array(values, dtype=float))


def nominal(name, *codes):
    return Column(name, np.array(codes, dtype=np.int64), max(codes) + 1)


def made(columns, **parameters):
    return prepare(columns, Y, NAMES, Recipe(**(PLAIN | parameters)), "t.csv")


def test_numeric_columns_as_given_when_ranges_are_alike():
    rows = made([numeric("a", 1, 2, 3, 4), numeric("b", -10, 0, 10, 20), numeric("constant", 5, 5, 5, 5)])
    assert rows.scaling == "none"
    assert np.allclose(rows.X, [[1, -10, 5], [2, 0, 5], [3, 10, 5], [4, 20, 5]], rtol=1e-11)
    assert rows.radius == pytest.approx(21.0)


def test_minmax_when_ranges_differ_by_more_than_ten():
    columns = [numeric("a", 1, 2, 3, 4), numeric("b", -10, 0, 10, 20.1), numeric("constant", 5, 5, 5, 5)]
    rows = made(columns)
    assert rows.scaling == "minmax"
    assert np.allclose(rows.X[:, 0], [0, 1 / 3, 2 / 3, 1])
    assert np.allclose(rows.X[:, 1], np.array([0, 10, 20, 30.1]) / 30.1)
    assert (rows.X[:, 2] == 0).all()
    assert made(columns, scaling="none").scaling == "none"
    assert made(columns[:1], scaling="minmax").scaling == "minmax"


def test_one_hot_columns_count_with_range_one():
    assert made([numeric("a", 0, 2, 3, 11), nominal("n", 0, 1, 0, 1)]).scaling == "minmax"
    assert made([numeric("a", 0, 2, 3, 9), nominal("n", 0, 1, 0, 1)]).scaling == "none"


def test_nominal_becomes_one_hot():
    rows = made([nominal("n", 2, 0, 1, 2)])
    assert np.allclose(rows.X, [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


def test_norm_intercept_and_radius():
    columns = [numeric("a", 3, 0, 0, 1), numeric("b", 4, 0, 1, 0)]
    rows = prepare(columns, Y, NAMES, Recipe(), "t.csv")
    expected = np.array([[3 / 5, 4 / 5, 1], [0, 0, 1], [0, 1 / 5, 1], [1 / 5, 0, 1]]) / np.sqrt(2)
    assert np.allclose(rows.X, expected, rtol=1e-11)
    assert rows.radius == 1.0
    norms = np.linalg.norm(rows.X, axis=1)
    assert norms.max() <= 1.0
    assert norms.max() > 1 - 1e-11
    assert np.allclose(prepare(columns, Y, NAMES, Recipe(intercept=False), "t").X * np.sqrt(0.5), expected[:, :2])
    rows = made(columns, intercept=True)  # not normalized: the intercept is as large as the largest row
    assert np.allclose(rows.X, expected * 5)
    assert rows.radius == 5.0


GAPS = [numeric("a", 1, np.nan, 3, np.inf), nominal("n", 0, 1, -1, 0)]


def test_missing_is_an_error_without_a_rule():
    with pytest.raises(UsageError, match=r"t.csv: column 'a' has 2 missing .* \(the first in row 1, counted from 0\)"):
        made(GAPS)
    with pytest.raises(UsageError, match=r"'n' has 1 missing .* \(the first in row 2, counted from 0\); set missing "):
        made(GAPS[1:])


def test_missing_mean():
    rows = made(GAPS, missing="mean")
    assert np.allclose(rows.X, [[1, 1, 0], [2, 0, 1], [3, 2 / 3, 1 / 3], [2, 1, 0]])
    assert np.allclose(made([nominal("n", 0, -1, -1, -1)], missing="mean").X, 1.0)


def test_missing_indicator():
    rows = made(GAPS, missing="indicator")
    expected = [[1, 0, 1, 0, 0], [2, 1, 0, 1, 0], [3, 0, 0, 0, 1], [2, 1, 1, 0, 0]]
    assert np.allclose(rows.X, expected)


def test_missing_zero():
    rows = made(GAPS, missing="zero")
    assert np.allclose(rows.X, [[1, 1, 0], [0, 0, 1], [3, 0, 0], [0, 1, 0]])
    # scaled, the 0 that fills gaps belongs to the column's range
    scaled = made([numeric("a", 2, np.nan, 4, 3), numeric("b", -4, -2, np.nan, -1)], missing="zero", scaling="minmax")
    assert np.allclose(scaled.X, [[0.5, 0], [0, 0.5], [1, 1], [0.75, 0.75]])
    assert np.allclose(made(GAPS[:1], missing="zero", scaling="minmax").X[:, 0], [1 / 3, 0, 1, 0])
    one = [numeric("a", 1, np.nan, 1, 1), numeric("b", 1, 2, 3, 4)]  # constant, unless its gap is 0
    for missing, expected in (("zero", [1, 0, 1, 1]), ("mean", [0, 0, 0, 0])):
        assert np.allclose(made(one, missing=missing, scaling="minmax").X[:, 0], expected)


def test_missing_drop_rows_leaves_out_classes_that_vanish():
    columns = [numeric("a", 1, 2, np.nan, 4)]
    rows = prepare(columns, np.array([0, 1, 2, 3]), list("wxyz"), Recipe(missing="drop_rows", **PLAIN), "t")
    assert rows.classes == ["w", "x", "z"]
    assert rows.y.tolist() == [0, 1, 2]
    assert np.allclose(rows.X[:, 0], [1, 2, 4])
    with pytest.raises(UsageError, match="one class only, 'no'"):
        made(GAPS, missing="drop_rows")
    with pytest.raises(UsageError, match="no row is left"):
        made([numeric("a", *[np.nan] * 4)], missing="drop_rows")


def test_a_column_of_gaps_only():
    columns = [numeric("a", 1, 2, 3, 4), numeric("gone", *[np.nan] * 4)]
    assert (made(columns, missing="mean").X[:, 1] == 0).all()
    assert (made(columns, missing="mean", scaling="minmax").X[:, 1] == 0).all()
    assert np.allclose(made(columns, missing="indicator").X[:, 1:], [0, 1])


def test_refusals():
    with pytest.raises(
        UsageError, match="scaling must be one of 'auto', 'none', 'minmax', 'standard', 'maxabs', 'robust', 'rowwise'"
    ):
        Recipe(scaling="max")
    with pytest.raises(UsageError, match="missing must be one of"):
        Recipe(missing="median")
    with pytest.raises(UsageError, match="no feature column is left"):
        made([])
    with pytest.raises(UsageError, match="every feature is zero"):
        made([numeric("a", 0, 0, 0, 0)])


def test_the_input_is_not_changed():
    columns = [numeric("a", 1, np.nan, 3, 4), numeric("b", 100, 2, 3, 4)]
    before = [column.values.copy() for column in columns]
    rows = made(columns, missing="mean", normalize=True)
    assert all(np.array_equal(column.values, old, equal_nan=True) for column, old in zip(columns, before))
    assert not rows.X.flags.writeable
    assert not rows.y.flags.writeable


# --------------------------------------------------------------------------------------------------------------- Digits


def test_digits_are_the_design():
    env = Digits()
    pixels, y = load_digits(return_X_y=True)
    X = pixels / 16.0
    X = X / np.linalg.norm(X, axis=1).max()
    X = np.column_stack([X, np.ones(len(X))]) / np.sqrt(2)
    assert np.allclose(env._table.X, X, rtol=0, atol=1e-12)
    assert np.array_equal(env._table.y, y)
    assert (env.problem.n_features, env.problem.n_classes, env.problem.radius) == (65, 10, 1.0)
    assert env.classes == list(range(10))
    assert env.params() == {"scaling": "none", "normalize": True, "intercept": True}
    assert env.row_bytes == 8 * 65
    assert Digits(intercept=False).problem.n_features == 64
    assert Digits(scaling="auto").params()["scaling"] == "minmax"
    assert Digits(normalize=False).problem.radius > 1


def test_each_pass_shows_every_row_once_in_a_fresh_order():
    env = Digits()
    env.reset(seed=0)
    n = env.n_rows
    assert n == 1797
    assert len(env.row_order(n + 1)) == n + 1
    [(X, y)] = env.blocks(3 * n, 3 * n)
    order = np.lexsort(env._table.X.T)
    for i in range(3):
        part = X[i * n : (i + 1) * n]
        assert np.array_equal(part[np.lexsort(part.T)], env._table.X[order])
        assert np.array_equal(np.bincount(y[i * n : (i + 1) * n]), np.bincount(env._table.y))
    assert not np.array_equal(y[:n], y[n : 2 * n])
    assert not np.array_equal(y[:n], env._table.y)


@pytest.mark.parametrize(
    ("scaling", "scaler"), [("standard", StandardScaler), ("maxabs", MaxAbsScaler), ("robust", RobustScaler)]
)
@pytest.mark.parametrize("unit", [1.0, 1e200, 1e-200])
def test_scikit_learns_scalers_in_any_unit(scaling, scaler, unit):
    values = np.array([3.0, -1.0, 4.0, 1.5])
    rows = made(
        [numeric("a", *values * unit), numeric("constant", 5, 5, 5, 5), nominal("n", 0, 1, 0, 1)], scaling=scaling
    )
    assert rows.scaling == scaling
    np.testing.assert_allclose(rows.X[:, 0], scaler().fit_transform(values[:, None])[:, 0], rtol=1e-11, atol=1e-11)
    assert (rows.X[:, 1] == 0).all()
    np.testing.assert_allclose(rows.X[:, 2:], [[1, 0], [0, 1], [1, 0], [0, 1]], rtol=1e-11)


def test_scalers_learn_from_known_entries():
    full = np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 0.0], [4.0, 5.0]])
    columns = [numeric("a", 2, 4, 9, np.nan), *(numeric(name, *full[:, j]) for j, name in enumerate("bc"))]
    rows = made(columns, scaling="standard", missing="mean")
    assert np.allclose(rows.X[:, 0], (np.array([2.0, 4.0, 9.0, 5.0]) - 5.0) / np.std([2.0, 4.0, 9.0]))
    assert np.allclose(rows.X[:, 1:], StandardScaler().fit_transform(full))


@pytest.mark.parametrize("normalize", [False, True])
def test_the_constant_beside_scaled_columns_is_one_more_of_them(normalize):
    columns = [numeric("a", 3, 0, 0, 1), numeric("b", 4, 0, 1, 0)]
    rows = prepare(columns, Y, NAMES, Recipe("standard", "error", normalize, True), "t.csv")
    X = np.column_stack([StandardScaler().fit_transform(np.column_stack([c.values for c in columns])), np.ones(4)])
    largest = np.linalg.norm(X, axis=1).max()
    assert np.allclose(rows.X, X / (largest if normalize else 1.0), rtol=1e-11)
    assert rows.radius == pytest.approx(1.0 if normalize else largest)
    assert np.linalg.norm(rows.X, axis=1).max() <= rows.radius


@pytest.mark.parametrize(
    ("scaling", "scaler"), [("standard", StandardScaler), ("maxabs", MaxAbsScaler), ("robust", RobustScaler)]
)
def test_a_column_whose_quartiles_are_the_same_is_as_scikit_learn_leaves_it(scaling, scaler):
    values = np.array([0.0, 0.0, 0.0, 1000.0]) if scaling != "robust" else np.array([7.0, 7.0, 7.0, 2.0**399])
    y = np.tile(Y, 3)
    column = np.concatenate([np.tile(values[:1], 8), values])
    rows = prepare([numeric("a", *column)], y, NAMES, Recipe(**PLAIN, scaling=scaling), "t.csv")
    np.testing.assert_allclose(rows.X[:, 0], scaler().fit_transform(column[:, None])[:, 0], rtol=1e-11)
