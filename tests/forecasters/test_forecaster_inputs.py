"""Every forecaster of the registry refuses what its compiled kernels would read or write out of bounds with."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.errors import IncompatibleError, UsageError
from banditlab.problem import Problem
from banditlab.registry import registry

IDS = sorted(entry.id for entry in registry().entries("forecasters"))


@pytest.fixture(params=IDS)
def forecaster(request):
    cls = registry().load("forecasters", request.param)
    for d, K in ((3, 3), (3, 2), (1, 2)):
        try:
            return cls(Problem(d, K, 2.0, 100), np.random.default_rng(0))
        except IncompatibleError:
            continue
    raise AssertionError(f"{request.param} meets no problem")


def refuses(call, *arguments, match):
    with pytest.raises(UsageError, match=match) as refusal:
        call(*arguments)
    assert "\n" not in str(refusal.value)


def test_contexts_of_another_shape(forecaster):
    d = forecaster.problem.n_features
    for context in (np.ones(4000), np.ones(d + 1), np.ones((1, d)), np.ones((d, 2))):
        refuses(forecaster.predict, context, match=rf"the context must be of shape \({d},\), got")
        refuses(forecaster.update, context, 0, match=rf"the context must be of shape \({d},\), got")
    for contexts in (np.ones((2, d + 1)), np.ones((2, 4000))):
        refuses(forecaster.predict_many, contexts, match="must be of shape")
    assert np.isfinite(forecaster.predict([1] * d)).all()
    assert forecaster.predict_many(np.ones((2, d), np.float32)).shape == (2, forecaster.problem.n_classes)


def test_labels_out_of_range(forecaster):
    d, K = forecaster.problem.n_features, forecaster.problem.n_classes
    x, before = np.ones(d), np.array(forecaster.predict(np.ones(d)))
    for label in (K, 7, -1, 700_000, 1.0, np.float64(0), True, np.False_, None, "0"):
        refuses(forecaster.update, x, label, match=f"the label must be an integer in 0 ... {K - 1}, got")
    assert np.array_equal(forecaster.predict(x), before)
    forecaster.update(x, np.int32(K - 1))
    forecaster.update(x, np.uint8(0))
    assert np.isfinite(forecaster.predict(x)).all()


def test_blocks(forecaster):
    if not forecaster.plays_blocks:
        pytest.skip("a forecaster without a compiled path")
    d, K = forecaster.problem.n_features, forecaster.problem.n_classes
    X, y, Z = np.ones((3, d)), np.array([0, 1, 0]), np.empty((3, K))
    bad = [
        (np.ones((3, d + 1)), y, Z, rf"the contexts must be of shape \(n, {d}\), got"),
        (X, y[:2], Z, "the labels must be of shape"),
        (X, np.array([0, 1, K]), Z, f"the labels must lie in 0 ... {K - 1}, got 0 ... {K}"),
        (X, np.array([0, -1, 1]), Z, f"the labels must lie in 0 ... {K - 1}, got -1"),
        (X, y.astype(float), Z, "the labels must be integers"),
        (X, y, np.empty((2, K)), rf"the logits must be of shape \(3, {K}\), got"),
        (X, y, np.empty((3, K + 1)), rf"the logits must be of shape \(3, {K}\), got"),
    ]
    for *arguments, message in bad:
        refuses(forecaster.forecast_block, *arguments, match=message)
    forecaster.forecast_block(X.astype(np.float32), y.astype(np.int32), Z)
    assert np.isfinite(Z).all()
