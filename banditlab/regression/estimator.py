"""GAF for a given loss as a scikit-learn regressor."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from banditlab.errors import UsageError
from banditlab.estimator import (
    BLOCK,
    ScaledContexts,
    generator_of,
    largest_norm,
    once_each,
    played,
    within,
)
from banditlab.numerics.content_order import content_order
from banditlab.numerics.sparse_rows import is_sparse
from banditlab.regression.gaf import GaussianRegression
from banditlab.validation import at_least, one_of, positive

Floats = NDArray[np.float64]


class OnlineRegressor(ScaledContexts, RegressorMixin, BaseEstimator):
    r"""A scikit-learn regressor that trains `GaussianRegression` on a sample.

    For the squared loss this is the forecaster of Vovk, Azoury and Warmuth.

    Problem: given n examples, predict a new target with a small expected loss (`fit`), or predict the targets of a
    stream with a small regret (`partial_fit`).

    Predictor: the forecaster's prediction for x as the next context, :math:`m/(1 + x'A^{-1}x)` for the squared loss.
    This is the ridge prediction m, shrunk towards the middle of the range of targets. It is shrunk more if earlier
    contexts give little information about the direction of x.

    Scale: contexts are scaled as for `OnlineClassifier`. Targets are scaled to [-1, 1] by the middle and half the range
    of the targets in `fit`, or in the first call of `partial_fit`. Later targets are clipped to that range, because the
    guarantee assumes it. With `scaling = "none"`, contexts and targets are unchanged, and Y is the largest absolute
    target.

    Guarantee: `forecaster_.certificate()` bounds the regret of one pass over the scaled stream, in units of the scaled
    loss.

    Parameters
    ----------
    loss
        "squared" or "huber".
    norm_bound
        B, the largest norm of the comparators, in units of :math:`Y/R`.
    regularization
        :math:`\lambda`; "theory" is :math:`\max(4, d)/(4 d B^2)`.
    threshold
        Threshold of the Huber loss, in units of Y. The default, None, is the smallest value that the theorem allows,
        :math:`\max(2, 1 + B)`.
    passes
        Number of passes of `fit` over the sample, each in a new order. There is no guarantee for more than one.
    scaling, fit_intercept, shuffle, random_state
        As for `OnlineClassifier`.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        As for other scikit-learn estimators.
    forecaster_
        The `GaussianRegression` after the last round.
    n_rounds_
        Number of rounds so far.

    Raises
    ------
    UsageError
        A setting is outside its range. The error is also a ValueError, as scikit-learn expects.

    References
    ----------
    R. Jézéquel, P. Gaillard, A. Rudi. Mixability made efficient: fast online multiclass logistic regression.
    NeurIPS 2021, section 4.1.
    """

    def __init__(
        self,
        loss: Literal["squared", "huber"] = "squared",
        *,
        norm_bound: float = 100.0,
        regularization: float | Literal["theory"] = "theory",
        threshold: float | None = None,
        passes: int = 1,
        scaling: Literal["standardize", "radius", "none"] = "standardize",
        fit_intercept: bool = True,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:
        self.loss = loss
        self.norm_bound = norm_bound
        self.regularization = regularization
        self.threshold = threshold
        self.passes = passes
        self.scaling = scaling
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Reset and train on the sample X (n, d), y (n,); a row of weight w is used w times."""
        self._check_settings()
        rows, targets = self._examples(X, y, reset=True)
        order_of, coins = generator_of(self.random_state).spawn(2)
        rows, targets = played(rows, targets, sample_weight, coins)
        if self.shuffle:
            first = content_order(rows, targets)
            rows, targets = rows[first], targets[first]
        contexts = self._begin(rows, targets, coins)
        scaled = self._targets(targets)
        for _ in range(self.passes):
            order = order_of.permutation(len(scaled)) if self.shuffle else np.arange(len(scaled))
            self._run(contexts[order], scaled[order])
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Continue training with the examples X (n, d), y (n,) in this order, once."""
        self._check_settings()
        first = not self.__sklearn_is_fitted__()
        rows, targets = self._examples(X, y, reset=first)
        coins = generator_of(self.random_state).spawn(2)[1] if first else self._coins
        rows, targets = played(rows, targets, sample_weight, coins)
        contexts = self._begin(rows, targets, coins) if first else self._contexts(rows)
        self._run(contexts, self._targets(targets))
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Return the predictions (n,) for X (n, d)."""
        check_is_fitted(self)
        rows = once_each(validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False))
        parts = [self._dense(self._contexts(rows[i : i + BLOCK])) for i in range(0, rows.shape[0], BLOCK)]
        scaled = np.concatenate([self.forecaster_.predict_many(part) for part in parts])
        return self._middle + self._half * scaled

    def __sklearn_tags__(self) -> Tags:
        """Return the tags for scikit-learn: sparse X is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ------------------------------------------------------------------------------------------------------------ inside

    def _examples(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[Any, Floats]:
        rows, targets = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C", y_numeric=True, reset=reset
        )
        return once_each(rows), targets

    def _check_settings(self) -> None:
        at_least("passes", self.passes, 1)
        one_of("loss", self.loss, ("squared", "huber"))
        one_of("scaling", self.scaling, ("standardize", "radius", "none"))
        positive("norm_bound", self.norm_bound)
        if self.threshold is not None:
            positive("threshold", self.threshold)

    def _begin(self, X: Any, y: Floats, coins: np.random.Generator) -> Any:
        """Set the scales, create a forecaster, and return the contexts of X."""
        self._coins = coins
        self._fix_scale(X)
        contexts = self._map(X)
        low, high = float(y.min()), float(y.max())
        plain = self.scaling == "none"
        self._middle = 0.0 if plain else low + 0.5 * (high - low)
        half = max(abs(low), abs(high)) if plain else 0.5 * high - 0.5 * low
        self._half = 1.0 if plain or not half > 0.0 else half
        bound = half if plain and half > 0.0 else 1.0
        norm = largest_norm(contexts)
        if not np.isfinite(half) or bound > 1e100:
            raise UsageError(f"y must lie within 1e100 of 0, got {low:g} ... {high:g}")
        self.forecaster_ = GaussianRegression(
            contexts.shape[1],
            norm,
            loss=self.loss,
            norm_bound=self.norm_bound,
            target_bound=bound,
            regularization=self.regularization,
            threshold=self.threshold,
        )
        self.n_rounds_ = 0
        return within(contexts, norm)

    def _targets(self, y: Floats) -> Floats:
        """Return the targets for the forecaster, clipped to [-Y, Y]."""
        Y = self.forecaster_.target_bound
        cut: Floats = np.clip((y - self._middle) / self._half, -Y, Y)
        return cut

    def _dense(self, contexts: Any) -> Floats:
        found: Floats = contexts.toarray() if is_sparse(contexts) else contexts
        return found

    def _run(self, contexts: Any, targets: Floats) -> None:
        for start in range(0, len(targets), BLOCK):
            rows = self._dense(contexts[start : start + BLOCK])
            for x, y in zip(rows, targets[start : start + BLOCK], strict=True):
                self.forecaster_.update(x, float(y))
        self.n_rounds_ += len(targets)
