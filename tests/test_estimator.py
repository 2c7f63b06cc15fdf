"""The scikit-learn wrapper: its conventions, and that it predicts what the forecaster itself would."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax
from scipy.stats import chisquare
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import banditlab.estimator
from banditlab.errors import IncompatibleError, UsageError
from banditlab.estimator import POOR, OnlineClassifier, generator_of, largest_norm, played, within
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.ftrl import FTRL
from banditlab.players.forecaster import KernelForecaster
from banditlab.problem import Problem
from banditlab.registry import registry

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
SEED = 3


def shuffled(seed: int = 0) -> tuple[Any, Any]:
    order = np.random.default_rng(seed).permutation(len(Y))
    return X[order], Y[order]


class Plain(ClassifierMixin, BaseEstimator):
    """A classifier without a tag of its own."""


# --------------------------------------------------------------------------------------------- scikit-learn's conventions


def assert_conforms(estimator: OnlineClassifier) -> None:
    """All checks, none expected to fail: not even the equivalence of weights and repeated rows, which depends on the
    order of the rounds and is an expected failure of scikit-learn's own SGDClassifier and Perceptron.
    """
    results = check_estimator(estimator, on_skip=None, on_fail="raise")
    left_out = {(r["check_name"], r["status"]) for r in results if r["status"] != "passed"}
    # scikit-learn runs this one only where SCIPY_ARRAY_API is set, for whatever estimator.
    assert left_out <= {("check_array_api_input", "skipped")}
    assert len(results) > 50


@pytest.mark.parametrize(
    "estimator",
    [OnlineClassifier(), OnlineClassifier(average="sample", samples=3), OnlineClassifier("ogd", passes=2)],
    ids=["last", "sample", "ogd"],
)
@pytest.mark.few(1)
def test_check_estimator_passes(estimator: OnlineClassifier) -> None:
    assert_conforms(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("forecaster", [e.id for e in registry().entries("forecasters") if e.origin == "banditlab"])
def test_check_estimator_passes_with_every_forecaster_at_its_defaults(forecaster: str) -> None:
    assert_conforms(OnlineClassifier(forecaster))


def test_tags_say_what_is_so() -> None:
    ours, plain = get_tags(OnlineClassifier()), get_tags(Plain())
    plain.input_tags.sparse = True
    assert ours == plain  # no other tag waives a check
    for name, binary in (("aioli", True), ("kernel-aioli", True), ("b-grid", False), ("nothing", False)):
        assert get_tags(OnlineClassifier(name)).classifier_tags.multi_class is not binary
    assert not get_tags(OnlineClassifier("b-grid", settings={"member": "aioli"})).classifier_tags.multi_class
    assert {e for e in POOR if get_tags(OnlineClassifier(e)).classifier_tags.poor_score} == {"ons", "aggregating"}
    assert not get_tags(OnlineClassifier("ons", settings={"step": 1.0})).classifier_tags.poor_score


# --------------------------------------------------------------------------------------- weights, sparse rows, large norms


def test_weights_are_rounds() -> None:
    """In the same order a row of weight w is w rows, in the scale too; nothing of a row of weight 0 is seen."""
    weights = np.random.default_rng(0).integers(0, 4, len(Y))
    one = OnlineClassifier(shuffle=False, random_state=0).fit(X, Y, sample_weight=weights)
    two = OnlineClassifier(shuffle=False, random_state=0).fit(X.repeat(weights, axis=0), Y.repeat(weights))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.n_rounds_ == weights.sum()
    streamed = OnlineClassifier(random_state=0).partial_fit(X, Y, classes=[0, 1, 2], sample_weight=weights)
    np.testing.assert_array_equal(streamed.predict_proba(X), one.predict_proba(X))
    plain = OnlineClassifier(random_state=0).fit(X, Y)
    ones = OnlineClassifier(random_state=0).fit(X, Y, sample_weight=np.ones(len(Y)))
    np.testing.assert_array_equal(plain.predict_proba(X), ones.predict_proba(X))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("settings", [{}, {"average": "sample", "samples": 2}, {"passes": 2}])
def test_a_sample_is_a_sample_in_whatever_order(form: Any, settings: dict[str, Any]) -> None:
    """The seed makes the order of the rounds, not the order of the rows; weights and repeated rows are the same."""
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, len(Y))
    rows, labels = X.repeat(weights, axis=0), NAMES[Y].repeat(weights)
    one = OnlineClassifier("ogd", random_state=0, **settings).fit(form(rows), labels)
    other = OnlineClassifier("ogd", random_state=0, **settings)
    for order in (np.arange(len(Y)), rng.permutation(len(Y))):
        other.fit(form(X[order]), NAMES[Y[order]], sample_weight=weights[order])
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    other.set_params(random_state=1).fit(form(rows), labels)
    assert np.abs(one.predict_proba(X) - other.predict_proba(X)).max() > 1e-6


def test_entries_said_in_parts_are_summed_up() -> None:
    rows = np.where(np.random.default_rng(0).random(X.shape) < 0.4, 0.0, X)
    whole = sparse.csr_matrix(rows)
    parts = sparse.csr_matrix(
        (np.repeat(0.5 * whole.data, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape
    )
    assert not parts.has_canonical_format
    one, two = (OnlineClassifier("ogd", random_state=0).fit(given, Y) for given in (whole, parts))
    np.testing.assert_array_equal(one.predict_proba(whole), two.predict_proba(parts))
    assert parts.nnz == 2 * whole.nnz  # the user's matrix is left as it was


def test_fractions_of_weights_are_right_in_the_mean() -> None:
    rounds = [
        OnlineClassifier("ogd", random_state=seed).fit(X, Y, sample_weight=np.full(len(Y), 1.3)).n_rounds_
        for seed in range(30)
    ]
    assert np.mean(rounds) == pytest.approx(1.3 * len(Y), abs=4 * np.sqrt(0.21 * len(Y) / 30))
    assert len(set(rounds)) > 5


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (0.0, "non-zero"),
        (-1.0, "Negative values"),
        (np.nan, "NaN"),
        (1e200, "above the limit"),
        (1e-9, "no round"),
    ],
)
def test_weights_are_refused(weight: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        OnlineClassifier().fit(X, Y, sample_weight=np.full(len(Y), weight))


@pytest.mark.parametrize("forecaster", ["folklore", "ogd"])
@pytest.mark.parametrize("scaling", ["radius", "none"])
def test_sparse_rows_are_dense_rows(forecaster: str, scaling: Any) -> None:
    settings = {"scaling": scaling, "random_state": 0, "norm_bound": 10.0}
    rows = np.where(np.random.default_rng(0).random(X.shape) < 0.4, 0.0, X)
    dense = OnlineClassifier(forecaster, **settings).fit(rows, Y)
    thin = OnlineClassifier(forecaster, **settings).fit(sparse.csr_matrix(rows), Y)
    np.testing.assert_allclose(thin.predict_proba(sparse.coo_matrix(rows)), dense.predict_proba(rows), atol=1e-9)
    np.testing.assert_allclose(thin.predict_proba(rows), dense.predict_proba(rows), atol=1e-9)


@pytest.mark.parametrize("value", [0.1, -3.0])
def test_sparse_rows_are_standardised_without_a_shift(value: float) -> None:
    rows = np.where(np.random.default_rng(0).random(X.shape) < 0.4, 0.0, X)
    rows[:, 3] = value  # constant: its computed deviation is noise
    model = OnlineClassifier(random_state=0, norm_bound=10.0, passes=3).fit(sparse.csr_array(rows), Y)
    contexts = model._map(sparse.csr_matrix(rows)).toarray()
    scaled = rows / np.append(rows[:, :3].std(axis=0), abs(value))
    scaled /= np.sqrt(2.0) * np.linalg.norm(scaled, axis=1).max()
    np.testing.assert_allclose(contexts[:, :4], scaled, rtol=1e-12)
    np.testing.assert_allclose(contexts[:, 4], np.sqrt(0.5))
    far = rows.copy()
    far[0] = 1e200
    assert np.isfinite(model.predict_proba(sparse.csr_matrix(far))).all()
    tiny = OnlineClassifier(random_state=0, norm_bound=10.0, passes=3).fit(sparse.csr_matrix(1e-200 * rows), Y)
    np.testing.assert_allclose(
        tiny.predict_proba(sparse.csr_matrix(1e-200 * rows)), model.predict_proba(sparse.csr_matrix(rows)), rtol=1e-6
    )


@pytest.mark.parametrize("value", [0.1, 1e99, -1e300])
def test_a_constant_column_of_any_size_is_zero(value: float) -> None:
    rows = np.column_stack([X, np.full(len(X), value)])
    contexts = OnlineClassifier(random_state=0).fit(rows, Y)._map(rows)
    expected = OnlineClassifier(random_state=0).fit(X, Y)._map(X)
    np.testing.assert_allclose(contexts[:, : X.shape[1]], expected[:, :-1], rtol=1e-12)
    np.testing.assert_array_equal(contexts[:, X.shape[1]], 0.0)


@pytest.mark.slow
def test_the_grid_of_b_grid_reaches_the_norm_bound() -> None:
    assert OnlineClassifier("b-grid", norm_bound=100.0).fit(X, Y).forecaster_.size == 10  # 1/4 ... 128
    assert OnlineClassifier("b-grid", norm_bound=64.0).fit(X, Y).forecaster_.size == 9
    with pytest.raises(UsageError, match="norm_bound must lie within the grid"):
        OnlineClassifier("b-grid", norm_bound=100.0, settings={"size": 9}).fit(X, Y)


def test_clone_and_parameters() -> None:
    estimator = OnlineClassifier("ftrl", norm_bound=8.0, settings={"regularization": 2.0}, random_state=1)
    copied = clone(estimator)
    assert copied.get_params() == estimator.get_params()
    assert OnlineClassifier(norm_bound=100.0, samples=1).get_params() == OnlineClassifier().get_params()
    copied.set_params(norm_bound=4.0, settings={"regularization": 3.0})
    assert copied.fit(X, Y).forecaster_.params()["regularization"] == 3.0
    assert copied.forecaster_.params()["norm_bound"] == 4.0


def test_pickle_continues_identically() -> None:
    rows, labels = shuffled()
    for settings in ({}, {"average": "sample", "samples": 4}):
        estimator = OnlineClassifier(random_state=SEED, **settings)
        estimator.partial_fit(rows[:60], labels[:60], classes=[0, 1, 2])
        again = pickle.loads(pickle.dumps(estimator))
        for one in (estimator, again):
            one.partial_fit(rows[60:], labels[60:])
        np.testing.assert_array_equal(estimator.predict_proba(X), again.predict_proba(X))
        np.testing.assert_array_equal(estimator.times_, again.times_)


def test_a_memory_mapped_model_predicts_and_learns(tmp_path: Path) -> None:
    estimator = OnlineClassifier(norm_bound=8.0, random_state=SEED).fit(X, Y)
    joblib.dump(estimator, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict_proba(X), estimator.predict_proba(X))
    mapped.partial_fit(X[:5], Y[:5])
    assert mapped.n_rounds_ == len(Y) + 5


def test_text_labels_and_feature_names() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    estimator = OnlineClassifier(random_state=SEED, passes=3).fit(frame, NAMES[Y])
    assert estimator.classes_.tolist() == NAMES.tolist()
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert (estimator.predict(frame) == NAMES[Y]).mean() > 0.93
    numbered = OnlineClassifier(random_state=SEED, passes=3).fit(X, Y)
    np.testing.assert_array_equal(numbered.predict_proba(X), estimator.predict_proba(frame))


def test_pipeline_and_grid_search() -> None:
    pipeline = make_pipeline(PolynomialFeatures(2, include_bias=False), OnlineClassifier(random_state=0, passes=2))
    grid = {"onlineclassifier__norm_bound": [0.01, 100.0]}
    search = GridSearchCV(pipeline, grid, scoring="neg_log_loss", cv=3).fit(X, Y)
    assert search.best_params_["onlineclassifier__norm_bound"] == 100.0
    assert -search.best_score_ < 0.3 < np.log(3) - 0.1 < -search.cv_results_["mean_test_score"][0]


# ------------------------------------------------------------------------------------------- what it predicts, by hand


def by_hand(rounds: int, **settings: Any) -> tuple[FOLKLORE, Any]:
    """Return FOLKLORE after `rounds` rows of the file in order, standardised, and those contexts."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Z /= np.sqrt((Z**2).sum(axis=1).max())
    contexts = np.hstack([Z, np.ones((len(Z), 1))]) / np.sqrt(2.0)
    forecaster = FOLKLORE(Problem(5, 3, 1.0), None, **settings)
    for x, y in zip(contexts[:rounds], Y[:rounds], strict=True):
        forecaster.update(x, int(y))
    return forecaster, contexts


def test_the_last_state_answers_as_the_forecaster_does() -> None:
    settings = {"regularization": 0.1}
    estimator = OnlineClassifier(norm_bound=7.0, settings=settings, shuffle=False).fit(X, Y)
    forecaster, contexts = by_hand(len(Y), norm_bound=7.0, **settings)
    expected = softmax([forecaster.predict(x) for x in contexts], axis=1)
    np.testing.assert_allclose(estimator.predict_proba(X), expected, atol=1e-9)
    assert estimator.forecaster_.certificate() == pytest.approx(forecaster.certificate(), rel=1e-9)


def test_the_sampled_state_has_learnt_from_tau_minus_1_examples() -> None:
    estimator = OnlineClassifier(norm_bound=7.0, shuffle=False, average="sample", samples=5, random_state=SEED)
    estimator.fit(X, Y)
    assert len(set(estimator.times_)) > 1
    each = []
    for tau in estimator.times_:
        forecaster, contexts = by_hand(int(tau) - 1, norm_bound=7.0)
        each.append(softmax([forecaster.predict(x) for x in contexts], axis=1))
    np.testing.assert_allclose(estimator.predict_proba(X), np.mean(each, axis=0), atol=1e-9)


def test_tau_is_uniform_however_the_stream_is_cut() -> None:
    n, m = 10, 5000
    rows, labels = shuffled()
    for cuts in ([0, 10], [0, 1, 4, 10]):
        estimator = OnlineClassifier("ogd", average="sample", samples=m, scaling="none", radius=20.0, random_state=SEED)
        for start, stop in pairwise(cuts):
            estimator.partial_fit(rows[start:stop], labels[start:stop], classes=[0, 1, 2])
        counts = np.bincount(estimator.times_ - 1, minlength=n)
        assert chisquare(counts).pvalue > 0.01


def test_batches_of_a_stream_are_one_stream() -> None:
    rows, labels = shuffled()
    settings = {"average": "sample", "samples": 6, "scaling": "none", "radius": 12.0, "random_state": SEED}
    whole = OnlineClassifier(**settings).partial_fit(rows, labels, classes=[0, 1, 2])
    cut = OnlineClassifier(**settings)
    for i in range(0, len(rows), 37):
        cut.partial_fit(rows[i : i + 37], labels[i : i + 37], classes=[2, 1, 0])
    np.testing.assert_array_equal(whole.times_, cut.times_)
    np.testing.assert_array_equal(whole.predict_proba(X), cut.predict_proba(X))
    fitted = OnlineClassifier(**settings, shuffle=False).fit(rows, labels)
    np.testing.assert_array_equal(whole.predict_proba(X), fitted.predict_proba(X))


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"average": "sample", "samples": 6, "random_state": SEED}
    whole = OnlineClassifier(**settings).fit(X, Y)
    monkeypatch.setattr(banditlab.estimator, "BLOCK", 17)
    cut = OnlineClassifier(**settings).fit(X, Y)
    np.testing.assert_array_equal(whole.times_, cut.times_)
    np.testing.assert_array_equal(whole.predict_proba(X), cut.predict_proba(X))


def test_sparse_rows_are_answered_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OnlineClassifier("ogd", scaling="radius", random_state=SEED).fit(X, Y)
    whole = model.predict_proba(sparse.csr_matrix(X))
    monkeypatch.setattr(banditlab.estimator, "BLOCK", 17)
    np.testing.assert_array_equal(model.predict_proba(sparse.csr_matrix(X)), whole)


def test_settings_changed_after_fit_wait_for_the_next_fit() -> None:
    estimator = OnlineClassifier(random_state=SEED).fit(X, Y)
    before = estimator.predict_proba(X)
    estimator.set_params(scaling="none", fit_intercept=False, average="sample", samples=4, norm_bound=1.0)
    np.testing.assert_array_equal(estimator.predict_proba(X), before)
    assert np.abs(estimator.fit(X, Y).predict_proba(X) - before).max() > 0.1


def test_a_stream_keeps_the_scale_of_its_first_batch() -> None:
    rows, labels = shuffled()
    stream = OnlineClassifier(random_state=0).partial_fit(rows[:50], labels[:50], classes=[0, 1, 2])
    offset, scale = stream._offset.copy(), stream._scale.copy()
    before = stream.predict_proba(X)
    stream.partial_fit(10.0 * rows[50:], labels[50:])
    np.testing.assert_array_equal((stream._offset, stream._scale), (offset, scale))
    assert np.abs(stream.predict_proba(X) - before).max() > 0.01


@pytest.mark.parametrize("scaling", ["standardize", "radius"])
def test_units_do_not_matter(scaling: Any) -> None:
    one = OnlineClassifier(scaling=scaling, random_state=0).fit(X, Y).predict_proba(X)
    factor = np.array([1e-3, 1.0, 5.0, 1e6]) if scaling == "standardize" else 1e4
    shift = 2.0 if scaling == "standardize" else 0.0
    other = (
        OnlineClassifier(scaling=scaling, random_state=0).fit(X * factor + shift, Y).predict_proba(X * factor + shift)
    )
    np.testing.assert_allclose(one, other, atol=1e-6)
    assert OnlineClassifier(scaling=scaling).fit(X, Y).forecaster_.problem.radius == pytest.approx(1.0)


def test_constant_features_and_rows_beyond_the_radius() -> None:
    padded = np.column_stack([X, np.full(len(X), 0.1), np.zeros(len(X))])
    plain, wide = (OnlineClassifier(random_state=0).fit(rows, Y) for rows in (X, padded))
    np.testing.assert_allclose(plain.predict_proba(X), wide.predict_proba(padded), atol=1e-9)
    far = plain.predict_proba(X + 1e4)
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far.sum(axis=1), 1.0)
    zeros = OnlineClassifier(scaling="radius", fit_intercept=False).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    np.testing.assert_allclose(zeros.predict_proba(np.zeros((1, 2))), 0.5, atol=0.2)


def test_the_predictor_is_improper() -> None:
    estimator = OnlineClassifier(norm_bound=100.0, scaling="none", fit_intercept=False, random_state=0).fit(X, Y)
    logs = estimator.predict_log_proba(np.array([X[0], 2.0 * X[0], 3.0 * X[0]]))
    margins = logs[:, 0] - logs[:, 1]
    assert abs(margins[2] - 2.0 * margins[1] + margins[0]) > 0.01 * abs(margins[0])


def test_decision_function() -> None:
    many = OnlineClassifier(random_state=0).fit(X, Y)
    np.testing.assert_allclose(softmax(many.decision_function(X), axis=1), many.predict_proba(X))
    two = OnlineClassifier(random_state=0).fit(X[Y > 0], Y[Y > 0])
    p = two.predict_proba(X)
    np.testing.assert_allclose(two.decision_function(X), np.log(p[:, 1] / p[:, 0]))
    np.testing.assert_array_equal(two.predict(X), np.where(two.decision_function(X) > 0, 2, 1))


# -------------------------------------------------------------------------------------------------- the other forecasters


HEAVY = {
    "kernel-aioli": {},
    "fourier-aioli": {},
    "ons": {"step": 1.0, "regularization": 0.1},
    "ftrl": {},
    "gaf": {"regularization": 0.1},
    "gaf-fresh": {"regularization": 0.1},
    "aggregating": {},
}
"""Settings of forecasters that compile or solve for long."""


@pytest.mark.parametrize(
    ("forecaster", "settings"),
    [("aioli", {}), *(pytest.param(*each, marks=pytest.mark.slow) for each in HEAVY.items())],
)
def test_other_forecasters(forecaster: str, settings: dict[str, Any]) -> None:
    rows, labels = X[Y > 0][::2], NAMES[Y[Y > 0]][::2]
    estimator = OnlineClassifier(forecaster, norm_bound=10.0, settings=settings, random_state=0).fit(rows, labels)
    again = pickle.loads(pickle.dumps(estimator))
    assert log_loss(labels, again.predict_proba(rows)) < 0.6
    np.testing.assert_array_equal(again.predict_proba(rows), estimator.predict_proba(rows))


@pytest.mark.slow
def test_a_forecaster_without_kernels_learns_all_rounds() -> None:
    settings = {"regularization": 0.01}
    estimator = OnlineClassifier("ftrl", norm_bound=100.0, settings=settings, shuffle=False).fit(X, Y)
    assert not isinstance(estimator.forecaster_, KernelForecaster)
    _, contexts = by_hand(0)
    ftrl = FTRL(Problem(5, 3, 1.0), None, norm_bound=100.0, **settings)
    for x, y in zip(contexts, Y, strict=True):
        ftrl.update(x, int(y))
    np.testing.assert_allclose(estimator.predict_proba(X), softmax(ftrl.predict_many(contexts), axis=1), atol=1e-6)


def test_the_horizon_is_known_in_fit_only() -> None:
    settings = {"settings": {"regularization": "theory"}, "random_state": 0}
    assert OnlineClassifier("ftrl", **settings, passes=2).fit(X[::5], Y[::5]).forecaster_.problem.horizon == 60
    with pytest.raises(IncompatibleError, match="needs the horizon"):
        OnlineClassifier("ftrl", **settings).partial_fit(X[::5], Y[::5], classes=[0, 1, 2])


def test_the_theorem_holds_in_expectation() -> None:
    """Excess risk of the sampled state over the best W in the ball, mean of 40 samples: at most bound(n) / n."""
    n, d, K, B = 200, 3, 3, 2.0
    rng = np.random.default_rng(SEED)
    W = rng.normal(size=(K, d))
    W *= B / np.linalg.norm(W, axis=1, keepdims=True)
    losses, bounds = [], set()
    for seed in range(40):
        contexts = rng.normal(size=(n + 2000, d))
        contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)  # R = 1 without looking at the sample
        p = softmax(contexts @ W.T, axis=1)
        labels = (rng.random(len(p))[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(max=K - 1)
        estimator = OnlineClassifier(
            norm_bound=B, average="sample", scaling="none", radius=1.0, fit_intercept=False, random_state=seed
        ).fit(contexts[:n], labels[:n])
        q = estimator.predict_proba(contexts[n:])
        losses.append(float((p[n:] * np.log(p[n:] / q)).sum(axis=1).mean()))  # W is the best: the labels follow it
        bounds.add(estimator.forecaster_.bound(n) / n)
    [bound] = bounds
    assert 0.0 < np.mean(losses) <= bound < np.log(K)


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"passes": 0}, "passes must be at least 1"),
        ({"samples": 0}, "samples must be at least 1"),
        ({"average": "mean"}, "average must be one of 'last', 'sample'"),
        ({"scaling": "minmax"}, "scaling must be one of 'standardize', 'radius', 'none'"),
        ({"average": "sample", "passes": 2}, "requires passes = 1, got 2"),
        ({"radius": 2.0}, "radius requires scaling = 'none'"),
        ({"radius": -1.0, "scaling": "none"}, "radius must be a number above 0"),
        ({"norm_bound": -1.0}, "norm_bound must be a number above 0"),
        ({"forecaster": "folklor"}, "did you mean 'folklore'"),
    ],
)
def test_settings_are_refused_in_fit(settings: dict[str, Any], message: str) -> None:
    estimator = OnlineClassifier(**settings)
    with pytest.raises(UsageError, match=message):
        estimator.fit(X, Y)


def test_an_unknown_setting_of_the_forecaster_is_refused() -> None:
    with pytest.raises(UsageError, match=r"folklore has no setting 'lambda'.*regularization"):
        OnlineClassifier(settings={"lambda": 1.0}).fit(X, Y)


def test_one_class_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 2 classes, y has 1 class"):
        OnlineClassifier().fit(X, np.zeros(len(X)))


def test_aioli_refuses_three_classes() -> None:
    with pytest.raises(IncompatibleError, match="n_classes = 2"):
        OnlineClassifier("aioli").fit(X, Y)


def test_three_classes_are_refused_in_scikit_learns_words_only_where_two_would_do() -> None:
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        OnlineClassifier("aioli").fit(X, Y)
    for labels, classes in ((Y, [0, 1, 2]), (Y % 2, [0, 1])):
        with pytest.raises(IncompatibleError, match="needs the horizon") as caught:
            OnlineClassifier("ftrl", settings={"regularization": "theory"}).partial_fit(X, labels, classes=classes)
        assert "binary" not in str(caught.value)


def test_streams_are_refused() -> None:
    with pytest.raises(UsageError, match="classes must be passed on the first call"):
        OnlineClassifier().partial_fit(X, Y)
    with pytest.raises(UsageError, match=r"y has the classes \[2\], which are not among \[0, 1\]"):
        OnlineClassifier().partial_fit(X, Y, classes=[0, 1])
    estimator = OnlineClassifier().partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(UsageError, match="not the same as on the last call"):
        estimator.partial_fit(X, Y, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="expecting 4 features"):
        estimator.partial_fit(X[:, :2], Y)


def test_a_refused_first_batch_leaves_nothing_behind() -> None:
    estimator = OnlineClassifier()
    with pytest.raises(UsageError, match="not among"):
        estimator.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(NotFittedError):
        estimator.predict(X)
    assert estimator.partial_fit(X, Y, classes=[0, 1, 2]).n_rounds_ == len(Y)


@pytest.mark.parametrize("state", [7, np.random.RandomState(7), np.random.default_rng(7)], ids=["int", "old", "new"])
def test_random_states(state: Any) -> None:
    settings = {"average": "sample", "samples": 3}
    one, two = (OnlineClassifier(random_state=pickle.loads(pickle.dumps(state)), **settings) for _ in range(2))
    np.testing.assert_array_equal(one.fit(X, Y).predict_proba(X), two.fit(X, Y).predict_proba(X))
    other = OnlineClassifier(random_state=8, **settings).fit(X, Y)
    assert np.abs(other.predict_proba(X) - one.predict_proba(X)).max() > 1e-3


def test_so_many_rounds_may_be_asked_for_and_no_more() -> None:
    X, y, coins = np.zeros((2, 1)), np.array([0, 1]), np.random.default_rng(0)
    with pytest.raises(UsageError, match=r"implies 1e\+08 rounds, above the limit of 100,000,000: divide the weights"):
        played(X, y, [1e8, 1.0], coins)
    rows, labels = played(X, y, [2.0, 3.0], coins)
    assert (rows.shape, labels.tolist()) == ((5, 1), [0, 0, 1, 1, 1])


def test_a_random_state_of_numpys_old_kind_stands_for_its_next_32_bits() -> None:
    old = np.random.RandomState(7)
    seed = np.random.RandomState(7).randint(2**32, dtype=np.uint32)
    assert generator_of(old).random() == np.random.default_rng(seed).random()


def test_a_model_of_before_exponents_were_kept_answers_as_it_did() -> None:
    model = OnlineClassifier("ogd", scaling="none", random_state=0).fit(X, Y)
    before = model.predict_proba(X)
    del model._exponent
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_entries_of_zero_that_are_written_out_are_zeros() -> None:
    rows = sparse.csr_matrix((np.zeros(2), np.array([0, 1]), np.array([0, 2, 2])), shape=(2, 2))
    assert rows.nnz == 2
    assert largest_norm(rows) == largest_norm(rows.toarray()) == 1.0
    np.testing.assert_array_equal(within(rows, 1.0).toarray(), np.zeros((2, 2)))
