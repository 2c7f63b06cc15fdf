"""The scikit-learn regressor: its conventions, and that it predicts what the forecaster itself would."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import check_estimator

from banditlab.errors import UsageError
from banditlab.regression.estimator import OnlineRegressor
from banditlab.regression.gaf import GaussianRegression

X, Y = load_diabetes(return_X_y=True)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [OnlineRegressor(), OnlineRegressor("huber"), OnlineRegressor(scaling="none")])
def test_check_estimator_passes(estimator: OnlineRegressor) -> None:
    results = check_estimator(estimator, on_skip=None, on_fail="raise")
    left_out = {(r["check_name"], r["status"]) for r in results if r["status"] != "passed"}
    assert left_out <= {("check_array_api_input", "skipped")}


def test_it_predicts_as_well_as_ridge() -> None:
    train, test = slice(0, 300), slice(300, None)
    ours = OnlineRegressor(random_state=0).fit(X[train], Y[train]).score(X[test], Y[test])
    ridge = Ridge(1e-3).fit(X[train], Y[train]).score(X[test], Y[test])
    assert ours > ridge - 0.05 > 0.3


def test_units_do_not_matter_and_streams_go_on() -> None:
    one = OnlineRegressor(random_state=0).fit(X, Y).predict(X)
    other = OnlineRegressor(random_state=0).fit(1e6 * X, 1e3 * Y - 7.0).predict(1e6 * X)
    np.testing.assert_allclose(other, 1e3 * one - 7.0, rtol=1e-6)
    whole = OnlineRegressor(shuffle=False).partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    cut = clone(whole).partial_fit(X[:100], Y[:100])
    for start in range(100, len(X), 37):
        cut.partial_fit(X[start : start + 37], Y[start : start + 37])
    np.testing.assert_array_equal(whole.predict(X), cut.predict(X))
    assert whole.n_rounds_ == len(X)


def test_weights_are_rounds_and_sparse_is_dense() -> None:
    weights = np.random.default_rng(0).integers(0, 3, len(Y))
    weighted = OnlineRegressor(random_state=0).fit(X, Y, sample_weight=weights)
    repeated = OnlineRegressor(random_state=0).fit(X.repeat(weights, axis=0), Y.repeat(weights))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    dense = OnlineRegressor(random_state=0, scaling="radius").fit(X, Y)
    rows = OnlineRegressor(random_state=0, scaling="radius").fit(sparse.csr_matrix(X), Y)
    np.testing.assert_allclose(rows.predict(sparse.csr_array(X)), dense.predict(X), rtol=1e-9)


def test_constant_targets_and_settings() -> None:
    model = OnlineRegressor().fit(X, np.full(len(Y), 5.0))
    np.testing.assert_allclose(model.predict(X), 5.0)
    for settings, said in (({"loss": "mse"}, "loss must be one of"), ({"passes": 0}, "passes must be at least 1")):
        with pytest.raises(UsageError, match=said):
            OnlineRegressor(**settings).fit(X, Y)
    with pytest.raises(UsageError, match="y must lie within 1e100"):
        OnlineRegressor(scaling="none").fit(X, 1e200 * Y)


def test_it_is_the_forecaster_itself_on_rows_as_they_are() -> None:
    rows, targets = X[:60], Y[:60] - 150.0
    model = OnlineRegressor(scaling="none", fit_intercept=False, shuffle=False, norm_bound=3.0).fit(rows, targets)
    radius = float(np.linalg.norm(rows, axis=1).max())
    player = GaussianRegression(10, radius, norm_bound=3.0, target_bound=float(np.abs(targets).max()))
    for x, y in zip(rows, targets, strict=True):
        player.update(x, float(y))
    assert model.forecaster_.problem.radius == pytest.approx(radius)
    np.testing.assert_allclose(model.predict(rows), player.predict_many(rows), rtol=1e-9)
    # More rows than go at a time, and a number of features that is another one.
    many = np.tile(rows, (70, 1))
    np.testing.assert_allclose(model.predict(many), np.tile(model.predict(rows), 70), rtol=1e-12)
    with pytest.raises(ValueError, match="features"):
        model.predict(rows[:, :3])


@pytest.mark.parametrize(
    ("targets", "scaling", "middle", "half", "bound"),
    [
        ((-3.0, 0.0, 1.0), "standardize", -1.0, 2.0, 1.0),
        ((-3.0, 0.0, 1.0), "radius", -1.0, 2.0, 1.0),
        ((-3.0, 0.0, 1.0), "none", 0.0, 1.0, 3.0),
        ((0.1, 0.2, 0.6), "standardize", 0.35, 0.25, 1.0),
        ((0.1, 0.2, 0.6), "none", 0.0, 1.0, 0.6),
        ((5.0, 5.0, 5.0), "standardize", 5.0, 1.0, 1.0),
        ((0.0, 0.0, 0.0), "none", 0.0, 1.0, 1.0),
        ((0.0, 0.0, 1e100), "none", 0.0, 1.0, 1e100),
    ],
)
def test_targets_are_brought_to_the_unit_interval(
    targets: tuple[float, ...], scaling: str, middle: float, half: float, bound: float
) -> None:
    model = OnlineRegressor(scaling=scaling, shuffle=False).fit(X[:3], np.array(targets))  # type: ignore[arg-type]
    found = (model._middle, model._half, model.forecaster_.target_bound)
    assert found == (pytest.approx(middle), pytest.approx(half), pytest.approx(bound))
    assert model.n_rounds_ == 3


def test_defaults_tags_and_targets_of_other_types() -> None:
    assert OnlineRegressor().get_params() == {
        "loss": "squared",
        "norm_bound": 100.0,
        "regularization": "theory",
        "threshold": None,
        "passes": 1,
        "scaling": "standardize",
        "fit_intercept": True,
        "shuffle": True,
        "random_state": None,
    }
    assert OnlineRegressor().__sklearn_tags__().input_tags.sparse
    model = OnlineRegressor(random_state=0).fit(X[:30], np.array([str(y) for y in Y[:30]], dtype=object))
    np.testing.assert_array_equal(
        model.predict(X[:30]), OnlineRegressor(random_state=0).fit(X[:30], Y[:30]).predict(X[:30])
    )
    with pytest.raises(UsageError, match="y must lie within 1e100"):
        OnlineRegressor(scaling="none").fit(X[:3], np.array([0.0, 0.0, 1.5e100]))
