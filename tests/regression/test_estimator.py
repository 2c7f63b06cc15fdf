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
