"""Finite entries whose squares are not: a table times 1e200 or 1e-200 is the table, for environments and the estimator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditlab.envs._columns import Recipe
from banditlab.envs._norm_rule import NormRule
from banditlab.envs.encoding import Encoder
from banditlab.envs.table import Table
from banditlab.estimator import OnlineClassifier
from banditlab.numerics.exponents import divided, exponent

FACTORS = [2.0**664, 2.0**-664, 2.0**1015, 2.0**-1010]  # 1e200, 1e-200, and to the ends of what there is


def table(rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(rows, 4)), 3) + 0.0
    X[:, 1] *= 4.0
    return X, (X[:, 0] + 0.3 * rng.normal(size=rows) > 0.0).astype(int)


def rows_of(X: np.ndarray, y: np.ndarray, folder: Path, **settings: object) -> np.ndarray:
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y)
    path = folder / "t.parquet"
    frame.to_parquet(path)
    return np.asarray(Table(path=str(path), label="y", **settings)._table.X)  # type: ignore[arg-type]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("scaling", ["none", "minmax", "auto"])
def test_a_table_in_other_units_is_the_same_table(factor: float, scaling: str, tmp_path: Path) -> None:
    X, y = table()
    np.testing.assert_array_equal(
        rows_of(X * factor, y, tmp_path, scaling=scaling), rows_of(X, y, tmp_path, scaling=scaling)
    )


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("missing", ["mean", "zero", "indicator"])
def test_gaps_among_such_entries_are_filled_as_ever(factor: float, missing: str, tmp_path: Path) -> None:
    X, y = table()
    scaling = "none" if missing == "mean" else "minmax"
    X[5, 0] = X[7, 2] = np.nan
    ours, plain = (rows_of(X * f, y, tmp_path, missing=missing, scaling=scaling) for f in (factor, 1.0))
    np.testing.assert_allclose(ours, plain, rtol=1e-12, atol=1e-15)


def test_the_range_of_a_column_may_be_beyond_any_number(tmp_path: Path) -> None:
    X, y = table()
    X[:, 0] = np.where(y == 1, 1.7e308, -1.7e308)
    for scaling in ("none", "minmax", "auto"):
        rows = rows_of(X, y, tmp_path, scaling=scaling)
        assert np.isfinite(rows).all()
        assert len(set(np.sign(rows[:, 0] - rows[:, 0].mean()).tolist())) == 2


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_a_csv_file_of_such_entries(factor: float, tmp_path: Path) -> None:
    X, y = table()
    found = []
    for f in (1.0, factor):
        file = tmp_path / "t.csv"
        pd.DataFrame(X * f, columns=list("abcd")).assign(y=y).to_csv(file, index=False)
        found.append(np.asarray(Table(path=str(file), label="y")._table.X))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("scaling", ["none", "minmax"])
def test_a_sparse_file_of_such_entries(factor: float, scaling: str) -> None:
    from scipy.sparse import csr_array

    from banditlab.envs._sparse_table import sparse_rows

    rng = np.random.default_rng(1)
    X = rng.random((50, 40)) * (rng.random((50, 40)) < 0.1)
    labels = pd.Series(rng.integers(2, size=50), name="label")
    made = [sparse_rows(csr_array(X * f), labels, Recipe(scaling), [], "here") for f in (1.0, factor)]  # type: ignore[arg-type]
    assert made[0] is not None
    assert made[1] is not None
    np.testing.assert_array_equal(made[1].X.toarray(), made[0].X.toarray())


@pytest.mark.parametrize("factor", [2.0**664, 2.0**-664])
def test_a_file_that_is_not_normalised_keeps_its_entries_and_its_radius(factor: float) -> None:
    from scipy.sparse import csr_array

    from banditlab.envs._sparse_table import sparse_rows

    rng = np.random.default_rng(1)
    X = rng.random((50, 40)) * (rng.random((50, 40)) < 0.1)
    labels = pd.Series(rng.integers(2, size=50), name="label")
    made = sparse_rows(csr_array(X * factor), labels, Recipe("none", normalize=False, intercept=False), [], "here")
    assert made is not None
    np.testing.assert_allclose(made.X.toarray(), X * factor, rtol=2e-12, atol=0.0)
    assert made.radius == pytest.approx(np.linalg.norm(X, axis=1).max() * factor, rel=1e-12)
    dense = pd.DataFrame(X * factor)
    encoder = Encoder.from_bytes(Encoder.fit(dense, scaling="none", normalize=False, intercept=False).to_bytes())
    np.testing.assert_allclose(encoder.transform(dense), X * factor, rtol=2e-12, atol=0.0)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("scaling", ["standardize", "radius"])
def test_the_estimator_in_other_units(factor: float, scaling: str) -> None:
    X, y = table()
    plain = OnlineClassifier(forecaster="ogd", scaling=scaling, random_state=0).fit(X, y)
    other = OnlineClassifier(forecaster="ogd", scaling=scaling, random_state=0).fit(X * factor, y)
    np.testing.assert_allclose(other.predict_proba(X * factor), plain.predict_proba(X), rtol=1e-9)
    assert len(np.unique(plain.predict_proba(X)[:, 0])) > 30


def test_rows_far_beyond_those_of_fit_are_still_answered() -> None:
    X, y = table()
    model = OnlineClassifier(forecaster="ogd", random_state=0).fit(X * 1e-200, y)
    assert np.isfinite(model.predict_proba(np.full((1, 4), 1e300))).all()


def test_opposite_rows_far_beyond_those_of_the_fit_stay_opposite() -> None:
    rule = NormRule.of(np.array([[3.0, 4.0]]), Recipe("none", intercept=False), "here")
    rows = rule.rows(np.array([[1e300, -1e300], [-1e300, 1e300]]))
    np.testing.assert_allclose(rows, np.sqrt(0.5) * np.array([[1.0, -1.0], [-1.0, 1.0]]))


def test_ordinary_numbers_are_left_as_they_are() -> None:
    X = np.array([[1e-100, 1e100], [0.0, -3.0]])
    assert divided(X, exponent(np.abs(X).max())) is X
    assert exponent([0.0, 1.0, 1e100, 1e-100]).tolist() == [0, 0, 0, 0]
    assert (np.abs(divided(np.array([1.7e308, 5e-324]), exponent([1.7e308, 5e-324]))) >= 0.5).all()
