"""What an estimator's parameters are where they are left out."""

from __future__ import annotations

import inspect

import pytest

from banditlab.estimator import OnlineClassifier
from banditlab.regression.estimator import OnlineRegressor

ESTIMATORS = {
    OnlineClassifier: {
        "forecaster": "folklore",
        "norm_bound": 100.0,
        "settings": None,
        "passes": 1,
        "average": "last",
        "samples": 1,
        "scaling": "standardize",
        "radius": None,
        "fit_intercept": True,
        "shuffle": True,
        "random_state": None,
    },
    OnlineRegressor: {
        "loss": "squared",
        "norm_bound": 100.0,
        "regularization": "theory",
        "threshold": None,
        "passes": 1,
        "scaling": "standardize",
        "fit_intercept": True,
        "shuffle": True,
        "random_state": None,
    },
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_estimators_defaults(estimator: type) -> None:
    parameters = inspect.signature(estimator).parameters.values()
    assert {p.name: p.default for p in parameters if p.default is not p.empty} == ESTIMATORS[estimator]
