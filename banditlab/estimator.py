"""Forecasters as scikit-learn classifiers, with online-to-batch conversion, improper prediction and streaming."""

from __future__ import annotations

import copy
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from banditlab.errors import IncompatibleError, UsageError, nearest
from banditlab.numerics.content_order import content_order
from banditlab.numerics.exponents import divided, exponent
from banditlab.numerics.sparse_rows import is_sparse
from banditlab.players.forecaster import Forecaster, KernelForecaster
from banditlab.problem import Problem
from banditlab.registry import registry
from banditlab.validation import at_least, one_of, positive

__all__ = ["OnlineClassifier"]

Floats = NDArray[np.float64]

BLOCK = 4096
"""The number of rows per block, which limits the work arrays."""
FARTHEST = 1e300
"""Entries of contexts are clipped to this before rows are shortened to R."""
MOST_PLAYS = 100_000_000
"""The largest number of rounds for the sample weights of one call."""
POOR = {
    "ons": "its theorem's step size is of order e^(-2 B R), which is negligible at norm_bound = 100",
    "aggregating": "among a thousand models drawn from a ball of radius 100 in K d dimensions, hardly any is near a "
    "good one",
}
"""Forecasters that predict badly with default settings, and why; they set scikit-learn's tag for this."""


class BinaryOnlyError(IncompatibleError, ValueError):
    """A forecaster for two classes got more; scikit-learn expects a ValueError."""


class ScaledContexts:
    """Convert rows of a table to contexts: scale them by `scaling`, append a constant, and limit their norms to R.

    A subclass has `scaling` and `fit_intercept`, and `forecaster_` after the fit.
    """

    scaling: str
    fit_intercept: bool
    forecaster_: Any

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forecaster_")  # left by a rejected first call

    def _fix_scale(self, X: Any) -> None:
        """Set the affine map of `_map`."""
        d = X.shape[1]
        self._offset, self._scale = np.zeros(d), np.ones(d)
        self._exponent = np.zeros(d, np.int64)
        self._constant = np.ones(1 if self.fit_intercept else 0)
        if self.scaling == "none":
            return
        if is_sparse(X):
            self._fix_sparse_scale(X)
            return
        # Squares below then do not overflow or underflow.
        self._exponent = exponent(
            np.abs(X).max(axis=0) if self.scaling == "standardize" else np.full(d, np.abs(X).max())
        )
        X = divided(X, self._exponent)
        if self.scaling == "standardize":
            # A feature that varies only by rounding errors is constant; its computed deviation is noise.
            constant = np.ptp(X, axis=0) <= 10.0 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
            # Its computed mean may differ from it, by more than the other features if it is large.
            self._offset = np.where(constant, X[0], X.mean(axis=0))
            self._scale = np.where(constant, 1.0, X.std(axis=0))
        self._bring_to_one(largest_norm((X - self._offset) / self._scale))

    def _fix_sparse_scale(self, X: Any) -> None:
        """Set the scale for rows in CSR form (n, d). The mean is not subtracted, so the rows stay sparse."""
        n, d = X.shape
        columns = abs(X).max(axis=0).toarray().ravel()
        self._exponent = exponent(columns if self.scaling == "standardize" else np.full(d, columns.max(initial=0.0)))
        X = _rescaled(X, self._exponent, self._scale)
        if self.scaling == "standardize":
            entries = np.bincount(X.indices, minlength=d)
            mean = np.bincount(X.indices, X.data, d) / n
            off = np.bincount(X.indices, np.square(X.data - mean[X.indices]), d) + (n - entries) * mean**2
            high, low = X.max(axis=0).toarray().ravel(), X.min(axis=0).toarray().ravel()
            largest = np.maximum(high, -low)
            # A feature that varies only by rounding errors is constant, as for dense rows; without subtraction it
            # becomes 1.
            constant = high - low <= 10.0 * np.finfo(np.float64).eps * largest
            self._scale = np.where(constant, np.where(largest > 0.0, largest, 1.0), np.sqrt(off / n))
            X = _rescaled(X, np.zeros(d, np.int64), self._scale)
        self._bring_to_one(largest_norm(X))

    def _bring_to_one(self, largest: float) -> None:
        """Divide by the largest norm of a row, including the intercept."""
        if self.fit_intercept:
            self._constant *= np.sqrt(0.5)
            largest *= np.sqrt(2.0)
        self._scale = self._scale * largest

    def _contexts(self, X: Any) -> Any:
        """Return the contexts of X (n, d): scaled to norms of at most R, with the constant column if there is one."""
        return within(self._map(X), self.forecaster_.problem.radius)

    def _map(self, X: Any) -> Any:
        """Return the scaled X (n, d), with the constant column if there is one."""
        if is_sparse(X):
            return self._map_sparse(X)
        with np.errstate(over="ignore"):  # `_within` shortens rows with entries far beyond those of `fit` to R
            scaled = (divided(X, getattr(self, "_exponent", 0)) - self._offset) / self._scale
        return np.hstack([np.clip(scaled, -FARTHEST, FARTHEST), np.tile(self._constant, (len(X), 1))])

    def _map_sparse(self, X: Any) -> Any:
        """Return the result of `_map` for rows in CSR form. It is dense if the scale subtracts a mean."""
        if self._offset.any():
            return self._map(X.toarray())
        with np.errstate(over="ignore"):
            scaled = _rescaled(X, self._exponent, self._scale)
        np.clip(scaled.data, -FARTHEST, FARTHEST, out=scaled.data)
        constant = sparse.csr_matrix(np.tile(self._constant, (X.shape[0], 1)))
        return sparse.hstack([scaled, constant], format="csr")


class OnlineClassifier(ScaledContexts, ClassifierMixin, BaseEstimator):
    r"""An improper multiclass logistic classifier, which runs a forecaster over a sample and then fixes its state.

    Problem: n examples are drawn independently from one distribution. The aim is a small expected logistic loss on a
    new example.

    Predictor: the forecaster processes the examples one by one. The prediction for a new x is the forecast for x as the
    next context. For FOLKLORE these are the logits of (3.3), whose regulariser depends on x, so the prediction is not a
    linear function of x. `average` selects the state of the predictor:

    * "sample" is the predictor of the theorems: the state before round :math:`\tau`, with :math:`\tau` uniform on
      :math:`\{1, \dots, n\}`. It is drawn by reservoir sampling (round t replaces the stored state with probability
      :math:`1/t`), so :math:`\tau` is uniform after every call of `partial_fit` too. With `samples` :math:`= m`
      the prediction is the mean probability of m independently drawn states.
    * "last" (default) is the state after the last round, which uses all examples. It is better in practice, but has no
      theorem.

    Guarantee of "sample": assume that the contexts' scale was fixed before the sample was drawn, and that
    :math:`\|x\| \le R` for all x. Then :math:`\mathbb{E}\,\mathrm{loss}(\text{predictor}) - \min
    \{\mathbb{E}\,\mathrm{loss}(W) : \|W_k\| \le B\}` is at most the forecaster's regret bound after n rounds divided by
    n. The expectations are over the sample, :math:`\tau` and the new example. For m states the guarantee holds because
    the logistic loss is convex in the probabilities. The value is `forecaster_.bound(n) / n`. The guarantee requires
    one pass, so `passes` > 1 is rejected. With `scaling` other than "none" the scale is estimated from the sample, and
    the guarantee holds only for the scaled contexts. With sample weights, the sample consists of the repeated rows.

    Sample weights: a row of weight w is repeated :math:`\lfloor w \rfloor` times, and once more with the probability of
    the fractional part. The expected sum of losses is then the weighted sum. A row of weight 0 has no effect. Weights
    are numbers of rounds, so weights that sum to 1 give one round on average.

    Order: with `shuffle`, `fit` first sorts the rounds by their content, then shuffles them. For a given sample and
    seed, the model therefore does not depend on the order of the rows, on whether a repeated row is listed several
    times or has a weight, or on the units of the columns.

    Scale: "standardize" subtracts the mean, divides by the standard deviation, then by the largest row norm; "radius"
    divides by the largest row norm only. The constant 1 is then appended (`fit_intercept`) and everything is divided by
    :math:`\sqrt{2}`, so :math:`R = 1` and `norm_bound` bounds the logits :math:`|\langle W_k, x \rangle|` of the
    comparator. The scale is estimated from the data of `fit`, or of the first call of `partial_fit`, and then fixed.
    That first batch should be representative; otherwise use the scaling "none". Rows with a norm above R are shortened
    to R, in updates and predictions, because R determines the forecaster's constants and is a condition of the
    guarantee.

    Practice: the default settings of the forecaster are those of its theorem, whose regret bound holds on every
    stream. On independent examples, a smaller regularization with a moderate B and several passes predict much
    better. A good start for FOLKLORE is
    `norm_bound=10, passes=10, settings={"regularization": 1e-3}`; docs/results/estimator.md has figures.

    Cost: the forecaster's updates, n times `passes`. For FOLKLORE: :math:`K^3 d^2 / 2` multiplications per update and
    :math:`K^2 d^2 / 2` per prediction. Memory: `samples` copies of its state, each :math:`K^2 d^2 / 2` numbers for
    FOLKLORE.

    Parameters
    ----------
    forecaster
        Its id, as in `banditlab list forecasters`. "folklore" accepts any number of classes, "aioli" two.
    norm_bound
        B, the largest norm of a row of W, in units of :math:`1/R`. A larger value means less regularization, as with C
        of LogisticRegression. The grid of `b-grid` is extended to include B unless `settings` define the grid.
    settings
        Other settings of the forecaster, by name.
    passes
        Number of passes of `fit` over the sample, each in a new order. With more than one there is no guarantee.
    average
        "last" or "sample", as described above.
    samples
        m, the number of states drawn for "sample".
    scaling
        "standardize", "radius" or "none".
    radius
        For scaling "none": R with :math:`\|x\| \le R`, including the intercept's 1. None: the largest norm of the data.
    fit_intercept
        Whether to append a constant feature.
    shuffle
        Whether `fit` uses a random order, which does not depend on the given order. `partial_fit` uses the given order.
    random_state
        Seed of the order, of drawn states and of a randomised forecaster: None, an integer, a RandomState or a
        Generator.

    Attributes
    ----------
    classes_
        The sorted labels (K,).
    n_features_in_, feature_names_in_
        As for other scikit-learn estimators.
    forecaster_
        The forecaster after the last round, with `problem`, `bound(rounds)`, `certificate()` and `params()`.
    n_rounds_
        Number of rounds so far.
    times_
        :math:`\tau` of the drawn states (m,), from 1 to `n_rounds_`; only for "sample".

    Raises
    ------
    UsageError
        A setting is outside its range. The error is also a ValueError, as scikit-learn expects.
    IncompatibleError
        The forecaster does not accept this number of classes or features.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022, section 4.3.
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020, section
    4.2, Corollary 6.
    """

    def __init__(
        self,
        forecaster: str = "folklore",
        *,
        norm_bound: float = 100.0,
        settings: dict[str, Any] | None = None,
        passes: int = 1,
        average: Literal["last", "sample"] = "last",
        samples: int = 1,
        scaling: Literal["standardize", "radius", "none"] = "standardize",
        radius: float | None = None,
        fit_intercept: bool = True,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:
        self.forecaster = forecaster
        self.norm_bound = norm_bound
        self.settings = settings
        self.passes = passes
        self.average = average
        self.samples = samples
        self.scaling = scaling
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state

    # -------------------------------------------------------------------------------------------------------- learning

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Discard the state, and run the forecaster over the sample X (n, d), y (n,), with rows repeated by weight."""
        self._check_settings()
        rows, targets = self._examples(X, y, reset=True)
        generators = generator_of(self.random_state).spawn(3)
        rows, targets = played(rows, targets, sample_weight, generators[1])
        classes, labels = np.unique(targets, return_inverse=True)
        if self.shuffle:
            first = content_order(rows, labels)
            rows, labels = rows[first], labels[first]
        contexts = self._begin(rows, classes, self.passes * len(labels), generators)
        for _ in range(self.passes):
            order = self._order.permutation(len(labels)) if self.shuffle else np.arange(len(labels))
            self._run(contexts[order], labels[order])
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Continue with the examples X (n, d), y (n,) in this order, once; the first call must name all `classes`.

        A row of weight w is repeated w times in succession.
        """
        self._check_settings()
        first = not self.__sklearn_is_fitted__()
        if first and classes is None:
            raise UsageError("classes must be passed on the first call to partial_fit")
        rows, targets = self._examples(X, y, reset=first)
        known: NDArray[Any] = self.classes_ if classes is None else unique_labels(classes)
        if not first and not np.array_equal(known, self.classes_):
            raise UsageError(f"classes = {known} is not the same as on the last call to partial_fit, {self.classes_}")
        _positions(targets, known)  # an unknown class is rejected, for any weight of its row
        generators = generator_of(self.random_state).spawn(3) if first else None
        rows, targets = played(rows, targets, sample_weight, generators[1] if generators else self._coins)
        labels = _positions(targets, known)
        contexts = self._contexts(rows) if generators is None else self._begin(rows, known, None, generators)
        self._run(contexts, labels)
        return self

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: sparse X is accepted, and some forecasters accept two classes only."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = not self._binary_only()
        tags.classifier_tags.poor_score = self.forecaster in POOR and not self.settings
        return tags

    def _binary_only(self) -> bool:
        """Return whether the forecaster with these settings accepts K = 2 but not K = 3, tried with d = 1."""
        try:
            self._make(Problem(1, 2, 1.0, 1), np.random.default_rng(0))
        except Exception:  # `fit` reports invalid settings
            return False
        try:
            self._make(Problem(1, 3, 1.0, 1), np.random.default_rng(0))
        except IncompatibleError:
            return True
        return False

    def _examples(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[Any, NDArray[Any]]:
        """Return checked rows (n, d), dense or CSR, and targets (n,). `reset`: whether these are the first data."""
        rows, targets = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C", reset=reset)
        check_classification_targets(targets)
        return once_each(rows), targets

    def _check_settings(self) -> None:
        at_least("passes", self.passes, 1)
        at_least("samples", self.samples, 1)
        one_of("average", self.average, ("last", "sample"))
        one_of("scaling", self.scaling, ("standardize", "radius", "none"))
        if self.average == "sample" and self.passes != 1:
            raise UsageError(f"average = 'sample' requires passes = 1, got {self.passes}")
        if self.radius is not None:
            positive("radius", self.radius)
            if self.scaling != "none":
                raise UsageError(f"radius requires scaling = 'none'; {self.scaling!r} scales contexts to R = 1")

    def _begin(self, X: Any, classes: NDArray[Any], horizon: int | None, generators: list[np.random.Generator]) -> Any:
        """Fix scale and classes, create a forecaster, and return the contexts of X."""
        K = len(classes)
        if K < 2:
            raise UsageError(f"a classifier needs at least 2 classes, y has {K} class")
        self._order, self._coins, own = generators
        self._fix_scale(X)
        contexts = self._map(X)
        norm = float(self.radius) if self.radius is not None else largest_norm(contexts)
        problem = Problem(contexts.shape[1], K, norm, horizon)
        try:
            self.forecaster_ = self._make(problem, own)
        except IncompatibleError as error:
            if K == 2 or not self._binary_only():
                raise
            said = "Only binary classification is supported. The type of the target is multiclass"
            raise BinaryOnlyError(f"{said}: {error}") from error
        self.classes_ = classes
        self.n_rounds_ = 0
        self._kept: list[Forecaster] = [self.forecaster_] * self.samples if self.average == "sample" else []
        self.times_ = np.zeros(len(self._kept), dtype=np.int64)
        return within(contexts, norm)

    def _make(self, problem: Problem, rng: np.random.Generator) -> Forecaster:
        cls = registry().load("forecasters", self.forecaster)
        given = self.settings or {}
        for name in given:
            if name not in cls.own_settings():
                raise UsageError(f"{self.forecaster} has no setting {name!r}{nearest(name, cls.own_settings())}")
        forecaster: Forecaster = cls(problem, rng, **cls.settings_at(self.norm_bound, given))
        return forecaster

    def _taken(self, contexts: Any) -> Any:
        """Return contexts in the form that the forecaster accepts: dense, unless it has kernels for sparse contexts."""
        return contexts.toarray() if is_sparse(contexts) and not self.forecaster_.sparse else contexts

    def _run(self, contexts: Any, labels: NDArray[np.int64]) -> None:
        """Run the rounds, block by block."""
        for start in range(0, len(labels), BLOCK):
            self._run_block(contexts[start : start + BLOCK], labels[start : start + BLOCK])

    def _run_block(self, contexts: Any, labels: NDArray[np.int64]) -> None:
        """Run the rounds, and store the states that the reservoirs select."""
        n = len(labels)
        rounds = self.n_rounds_ + 1 + np.arange(n)
        drawn = self._coins.random((n, len(self._kept))) < 1.0 / rounds[:, None]
        last = {i: int(np.flatnonzero(drawn[:, i])[-1]) for i in range(len(self._kept)) if drawn[:, i].any()}
        now = 0
        for stop in sorted(set(last.values())):
            self._learn(contexts[now:stop], labels[now:stop])
            now, state = stop, copy.deepcopy(self.forecaster_)  # tau = stop + 1, after updates with tau - 1 examples
            for i in [i for i, at in last.items() if at == stop]:
                self._kept[i], self.times_[i] = state, rounds[stop]
        self._learn(contexts[now:], labels[now:])
        self.n_rounds_ += n

    def _learn(self, contexts: Any, labels: NDArray[np.int64]) -> None:
        contexts = self._taken(contexts)
        if isinstance(self.forecaster_, KernelForecaster):
            ignored = np.empty((len(labels), len(self.classes_)))
            self.forecaster_.forecast_block(contexts, labels, ignored)
            return
        for x, y in zip(contexts, labels, strict=True):
            self.forecaster_.update(x, int(y))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # joblib passes large arrays as read-only maps of a file, but a forecaster writes into its work arrays.
        if "forecaster_" in state:
            fresh = {id(old): _rebuilt(old) for old in [self.forecaster_, *self._kept]}
            self.forecaster_ = fresh[id(self.forecaster_)]
            self._kept = [fresh[id(old)] for old in self._kept]

    # ------------------------------------------------------------------------------------------------------ prediction

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Return the log probabilities (n, K), with the classes in the order of `classes_`."""
        check_is_fitted(self)
        rows = once_each(validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False))
        if not is_sparse(rows):
            return self._logs(self._contexts(rows))
        parts = [rows[start : start + BLOCK] for start in range(0, rows.shape[0], BLOCK)]
        return np.concatenate([self._logs(self._contexts(part)) for part in parts])

    def _logs(self, contexts: Any) -> Floats:
        """Return the logarithms of the probabilities (n, K) at contexts."""
        states = {id(state): state for state in self._kept or [self.forecaster_]}
        taken = self._taken(contexts)
        logs = {key: _log_softmax(state.predict_many(taken)) for key, state in states.items()}
        if len(logs) == 1:
            return next(iter(logs.values()))
        every = np.stack([logs[id(state)] for state in self._kept])
        mean: Floats = logsumexp(every, axis=0) - np.log(len(every))
        return mean

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probabilities (n, K) of the classes, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the log-odds (n,) of `classes_[1]` if :math:`K = 2`, else the log probabilities (n, K)."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of every row."""
        likeliest = np.argmax(self.predict_log_proba(X), axis=1)
        answer: NDArray[Any] = self.classes_[likeliest]
        return answer


def generator_of(random_state: int | np.random.RandomState | np.random.Generator | None) -> np.random.Generator:
    """Return the generator for scikit-learn's `random_state`."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint32))
    return np.random.default_rng(random_state)


def _rebuilt(player: Forecaster) -> Forecaster:
    """Return a copy of the forecaster that shares no arrays with it, as if it was saved and loaded."""
    copied = type(player)(player.problem, np.random.default_rng(0), **player.params())
    copied.set_state(player.get_state())
    return copied


def played(
    X: Any, y: NDArray[Any], sample_weight: ArrayLike | None, coins: np.random.Generator
) -> tuple[Any, NDArray[Any]]:
    """Return rows and targets, each repeated by its weight; raise a UsageError for invalid weights."""
    if sample_weight is None:
        return X, y
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    total = float(weights.sum())
    if total > MOST_PLAYS:
        raise UsageError(
            f"sample_weight implies {total:.4g} rounds, above the limit of {MOST_PLAYS:,}: divide the weights"
        )
    whole = np.floor(weights)
    fractions = weights - whole
    if fractions.any():  # a separate stream, so other draws do not depend on the weights
        whole += coins.spawn(1)[0].random(len(weights)) < fractions
    plays = np.repeat(np.arange(len(y)), whole.astype(np.int64))
    if not len(plays):
        raise UsageError(
            f"sample_weight implies no round: its sum is {total:.4g}, and a row of weight w is repeated w times"
        )
    return X[plays], y[plays]


def once_each(X: Any) -> Any:
    """Return X; if it is a CSR matrix that stores an entry in several parts, return a copy with the parts summed."""
    if not is_sparse(X) or X.has_canonical_format:
        return X
    whole = X.copy()
    whole.sum_duplicates()
    return whole


def _rescaled(X: Any, e: NDArray[np.int64], scale: Floats) -> Any:
    """Return rows in CSR form with each column j multiplied by :math:`2^{-e_j}` and divided by `scale[j]`."""
    data = divided(X.data, e[X.indices] if e.any() else 0) / scale[X.indices]
    return sparse.csr_matrix((data, X.indices, X.indptr), shape=X.shape)


def _row_norms(X: Any) -> tuple[Floats, Floats]:
    """Return the largest absolute entries (n,) of rows in CSR form, and the norms (n,) of the rows divided by these."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    largest = abs(X).max(axis=1).toarray().ravel()
    safe = np.where(largest > 0.0, largest, 1.0)
    return largest, np.sqrt(np.bincount(rows, np.square(X.data / safe[rows]), X.shape[0]))


def largest_norm(X: Any) -> float:
    """Return the largest row norm, or 1 if all rows are zero."""
    if is_sparse(X):
        largest, lengths = _row_norms(X)
        return float((largest * lengths).max(initial=0.0)) or 1.0
    e = exponent(np.abs(X).max(initial=0.0))
    return float(divided(np.linalg.norm(divided(X, e), axis=1).max(), -e)) or 1.0


def within(X: Any, radius: float) -> Any:
    """Return X (n, d), with rows shortened to the radius if their norm exceeds it by more than rounding."""
    if is_sparse(X):
        largest, lengths = _row_norms(X)
        beyond = largest * lengths > radius * (1.0 + 1e-10)
        if not beyond.any():
            return X
        rows = np.repeat(beyond, np.diff(X.indptr))
        safe = np.repeat(np.where(beyond, largest, 1.0), np.diff(X.indptr))
        factor = np.repeat(radius / np.where(beyond, lengths, 1.0), np.diff(X.indptr))
        return sparse.csr_matrix((np.where(rows, X.data / safe * factor, X.data), X.indices, X.indptr), shape=X.shape)
    largest = np.abs(X).max(axis=1, keepdims=True)
    directions = X / np.where(largest > 0.0, largest, 1.0)  # to avoid overflow of squares
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    beyond = largest * lengths > radius * (1.0 + 1e-10)
    return np.where(beyond, directions * (radius / np.where(beyond, lengths, 1.0)), X) if beyond.any() else X


def _log_softmax(logits: Floats) -> Floats:
    logs: Floats = logits - logsumexp(logits, axis=1, keepdims=True)
    return logs


def _positions(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return each label's index in the sorted `classes`."""
    strange = np.setdiff1d(y, classes)
    if len(strange):
        raise UsageError(f"y has the classes {strange.tolist()}, which are not among {classes.tolist()}")
    return np.searchsorted(classes, y)
