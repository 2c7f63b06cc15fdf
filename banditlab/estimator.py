"""The forecasters as a scikit-learn classifier: online-to-batch conversion, improper prediction, streaming."""

from __future__ import annotations

import copy
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from banditlab.errors import UsageError, nearest
from banditlab.numerics.exponents import divided, exponent
from banditlab.players.forecaster import Forecaster, KernelForecaster
from banditlab.problem import Problem
from banditlab.registry import registry
from banditlab.validation import at_least, one_of, positive

Floats = NDArray[np.float64]

BLOCK = 4096
"""Rows learnt in one call, which bounds the scratch memory."""
FARTHEST = 1e300
"""Entries of contexts are cut to this before they are shortened."""


class OnlineClassifier(ClassifierMixin, BaseEstimator):
    """A forecaster run over a sample, then held still: an improper multiclass logistic classifier.

    Problem: n examples drawn independently from one law; small expected logistic loss on a new one.

    Predictor: the forecaster sees the examples one after another. Its answer to a new x is what it would forecast were x
    the next context: for FOLKLORE the logits of (3.3), whose regulariser depends on x, so the answer is no linear
    function of x. Which of its states answers is `average`:

    * "sample" is the predictor of the theorems: the state before round tau, tau uniform on {1 ... n}. The draw is a
      reservoir (round t replaces the kept state with probability 1/t), so tau is uniform after every call of
      `partial_fit` too. With `samples` = m the m states drawn independently answer by the mean of their probabilities.
    * "last" (default) is the state after the last round, which has seen everything. It does better in practice; no
      theorem says so.

    Guarantee of "sample": if the contexts' scale was fixed before the sample was seen and ||x|| <= R holds for all x,
    E loss(predictor) - min over {W : ||W_k|| <= B} of E loss(W) <= (the forecaster's regret bound after n rounds) / n,
    expectations over sample, tau and the new example; for m states by convexity of the logistic loss in the
    probabilities. `forecaster_.bound(n) / n` is that number. One pass only: `passes` > 1 is refused. With `scaling`
    other than "none" the scale comes from the sample itself and the statement is exact for the scaled contexts only.

    Scale: "standardize" subtracts the mean, divides by the standard deviation, then by the largest row norm; "radius"
    divides by the largest row norm only. The constant 1 is then appended (`fit_intercept`) and everything divided by
    sqrt(2), so R = 1 and `norm_bound` bounds the logits |<W_k, x>| of the comparator. The scale is taken from the data
    of `fit`, or of the first call of `partial_fit`, and stays: that first batch should be a fair one, or the scaling
    "none". Rows beyond R are shortened to it, in learning and in prediction: R sets the forecaster's constants and is a
    condition of the guarantee.

    Practice: the defaults are the theory's, careful against every stream. On independent examples a smaller
    regularization at a moderate B, and several passes, predict much better (`norm_bound=10, passes=10,
    settings={"regularization": 1e-3}` is a fair start for FOLKLORE); docs/results/estimator.md has figures.

    Cost: the forecaster's updates, n times `passes`; `samples` copies of its state. FOLKLORE: K^3 d^2 / 2
    multiplications for an update, K^2 d^2 / 2 for a prediction, K^2 d^2 / 2 numbers for a state.

    Parameters
    ----------
    forecaster
        Its id, as `banditlab list forecasters` shows them. "folklore" takes any number of classes, "aioli" two.
    norm_bound
        B, the largest norm of a row of W, in units of 1 / R. As for C of LogisticRegression, larger is freer.
    settings
        Other settings of the forecaster, by name.
    passes
        How often `fit` goes through the sample, each time in a fresh order. More than one has no guarantee.
    average
        "last" or "sample", see above.
    samples
        m, the number of states drawn for "sample".
    scaling
        "standardize", "radius" or "none".
    radius
        R with ||x|| <= R, the intercept's 1 included, where scaling is "none"; None takes the largest norm of the data.
    fit_intercept
        Append a constant feature.
    shuffle
        Whether `fit` goes through the sample in random order; `partial_fit` takes the order as it comes.
    random_state
        Seed of order, drawn states and a randomised forecaster: None, an integer, a RandomState or a Generator.

    Attributes
    ----------
    classes_
        The labels, sorted (K,).
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    forecaster_
        The forecaster after the last round; `problem`, `bound(rounds)`, `certificate()` and `params()` are its own.
    n_rounds_
        Rounds so far.
    times_
        tau of the drawn states (m,), 1 ... n_rounds_; only for "sample".

    Raises
    ------
    UsageError
        A setting out of its range. It is a ValueError, as scikit-learn expects.
    IncompatibleError
        The forecaster cannot meet this number of classes or features.

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

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget what was learnt, then run the forecaster over the sample X (n, d), y (n,)."""
        self._check_settings()
        rows, targets = self._examples(X, y, reset=True)
        classes, labels = np.unique(targets, return_inverse=True)
        contexts = self._begin(rows, classes, horizon=self.passes * len(rows))
        for _ in range(self.passes):
            order = self._order.permutation(len(rows)) if self.shuffle else np.arange(len(rows))
            self._run(contexts[order], labels[order])
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on with the examples X (n, d), y (n,) in this order, once; the first call must name all `classes`."""
        self._check_settings()
        first = not self.__sklearn_is_fitted__()
        if first and classes is None:
            raise UsageError("classes must be passed on the first call to partial_fit")
        rows, targets = self._examples(X, y, reset=first)
        known: NDArray[Any] = self.classes_ if classes is None else unique_labels(classes)
        if not first and not np.array_equal(known, self.classes_):
            raise UsageError(f"classes = {known} is not the same as on the last call to partial_fit, {self.classes_}")
        labels = _positions(targets, known)
        contexts = self._begin(rows, known, horizon=None) if first else self._contexts(rows)
        self._run(contexts, labels)
        return self

    def _examples(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[Floats, NDArray[Any]]:
        """Return rows (n, d) and targets (n,), checked; `reset` for the first data this estimator sees."""
        rows, targets = validate_data(self, X, y, dtype=np.float64, order="C", reset=reset)
        check_classification_targets(targets)
        return rows, targets

    def _check_settings(self) -> None:
        at_least("passes", self.passes, 1)
        at_least("samples", self.samples, 1)
        one_of("average", self.average, ("last", "sample"))
        one_of("scaling", self.scaling, ("standardize", "radius", "none"))
        if self.average == "sample" and self.passes != 1:
            raise UsageError(f"average = 'sample' is the predictor of one pass: passes must be 1, got {self.passes}")
        if self.radius is not None:
            positive("radius", self.radius)
            if self.scaling != "none":
                raise UsageError(f"radius is for scaling = 'none'; with {self.scaling!r} contexts are brought to R = 1")

    def _begin(self, X: Floats, classes: NDArray[Any], horizon: int | None) -> Floats:
        """Fix scale and classes, make a new forecaster, and return the contexts of X."""
        K = len(classes)
        if K < 2:
            raise UsageError(f"a classifier needs at least 2 classes, y has {K} class")
        self._order, self._coins, own = _generator(self.random_state).spawn(3)
        self._fix_scale(X)
        contexts = self._map(X)
        norm = float(self.radius) if self.radius is not None else _largest_norm(contexts)
        problem = Problem(contexts.shape[1], K, norm, horizon)
        self.forecaster_ = self._make(problem, own)
        self.classes_ = classes
        self.n_rounds_ = 0
        self._kept: list[Forecaster] = [self.forecaster_] * self.samples if self.average == "sample" else []
        self.times_ = np.zeros(len(self._kept), dtype=np.int64)
        return _within(contexts, norm)

    def _make(self, problem: Problem, rng: np.random.Generator) -> Forecaster:
        cls = registry().load("forecasters", self.forecaster)
        settings = {"norm_bound": self.norm_bound} | (self.settings or {})
        for name in settings:
            if name not in cls.own_settings():
                raise UsageError(f"{self.forecaster} has no setting {name!r}{nearest(name, cls.own_settings())}")
        forecaster: Forecaster = cls(problem, rng, **settings)
        return forecaster

    def _fix_scale(self, X: Floats) -> None:
        """Choose the affine map of `_map`."""
        d = X.shape[1]
        self._offset, self._scale = np.zeros(d), np.ones(d)
        self._exponent = np.zeros(d, np.int64)
        self._constant = np.ones(1 if self.fit_intercept else 0)
        if self.scaling == "none":
            return
        # Nothing that is squared below is then too large or too small for it.
        self._exponent = exponent(
            np.abs(X).max(axis=0) if self.scaling == "standardize" else np.full(d, np.abs(X).max())
        )
        X = divided(X, self._exponent)
        if self.scaling == "standardize":
            self._offset = X.mean(axis=0)
            # A feature that varies by rounding errors only is constant; its computed deviation is noise.
            constant = np.ptp(X, axis=0) <= 10.0 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
            self._scale = np.where(constant, 1.0, X.std(axis=0))
        largest = _largest_norm((X - self._offset) / self._scale)
        if self.fit_intercept:
            self._constant *= np.sqrt(0.5)
            largest *= np.sqrt(2.0)
        self._scale = self._scale * largest

    def _contexts(self, X: Floats) -> Floats:
        """Return the contexts of X (n, d) as the forecaster takes them: (n, d) or (n, d + 1)."""
        return _within(self._map(X), self.forecaster_.problem.radius)

    def _map(self, X: Floats) -> Floats:
        """Return X (n, d) scaled, with the constant appended: (n, d) or (n, d + 1)."""
        with np.errstate(over="ignore"):  # an entry far beyond those of `fit` is shortened to R by `_within`
            scaled = (divided(X, getattr(self, "_exponent", 0)) - self._offset) / self._scale
        return np.hstack([np.clip(scaled, -FARTHEST, FARTHEST), np.tile(self._constant, (len(X), 1))])

    def _run(self, contexts: Floats, labels: NDArray[np.int64]) -> None:
        """Play the rounds, block by block."""
        for start in range(0, len(labels), BLOCK):
            self._run_block(contexts[start : start + BLOCK], labels[start : start + BLOCK])

    def _run_block(self, contexts: Floats, labels: NDArray[np.int64]) -> None:
        """Play the rounds, keeping the states that the reservoirs end up with."""
        n = len(labels)
        rounds = self.n_rounds_ + 1 + np.arange(n)
        drawn = self._coins.random((n, len(self._kept))) < 1.0 / rounds[:, None]
        last = {i: int(np.flatnonzero(drawn[:, i])[-1]) for i in range(len(self._kept)) if drawn[:, i].any()}
        now = 0
        for stop in sorted(set(last.values())):
            self._learn(contexts[now:stop], labels[now:stop])
            now, state = stop, copy.deepcopy(self.forecaster_)  # tau = stop + 1 has learnt from tau - 1 examples
            for i in [i for i, at in last.items() if at == stop]:
                self._kept[i], self.times_[i] = state, rounds[stop]
        self._learn(contexts[now:], labels[now:])
        self.n_rounds_ += n

    def _learn(self, contexts: Floats, labels: NDArray[np.int64]) -> None:
        if isinstance(self.forecaster_, KernelForecaster):
            ignored = np.empty((len(labels), len(self.classes_)))
            self.forecaster_.forecast_block(contexts, labels, ignored)
            return
        for x, y in zip(contexts, labels, strict=True):
            self.forecaster_.update(x, int(y))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forecaster_")  # a refused first call has left n_features_in_ behind

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # joblib hands large arrays over as read-only maps of a file, and a forecaster writes into its scratch arrays.
        if "forecaster_" in state:
            fresh = {id(old): _rebuilt(old) for old in [self.forecaster_, *self._kept]}
            self.forecaster_ = fresh[id(self.forecaster_)]
            self._kept = [fresh[id(old)] for old in self._kept]

    # ------------------------------------------------------------------------------------------------------ prediction

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Return the logarithms of the probabilities (n, K) of the classes, in the order of `classes_`."""
        check_is_fitted(self)
        contexts = self._contexts(validate_data(self, X, dtype=np.float64, order="C", reset=False))
        states = {id(state): state for state in self._kept or [self.forecaster_]}
        logs = {key: _log_softmax(state.predict_many(contexts)) for key, state in states.items()}
        if len(logs) == 1:
            return next(iter(logs.values()))
        every = np.stack([logs[id(state)] for state in self._kept])
        mean: Floats = logsumexp(every, axis=0) - np.log(len(every))
        return mean

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probabilities (n, K) of the classes, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the log-odds (n,) of classes_[1] if K = 2, else the log probabilities (n, K)."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of every row."""
        likeliest = np.argmax(self.predict_log_proba(X), axis=1)
        answer: NDArray[Any] = self.classes_[likeliest]
        return answer


def _generator(random_state: int | np.random.RandomState | np.random.Generator | None) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint32))
    return np.random.default_rng(random_state)


def _rebuilt(player: Forecaster) -> Forecaster:
    """Return the same forecaster in arrays of its own, as `Player.load` does."""
    copied = type(player)(player.problem, np.random.default_rng(0), **player.params())
    copied.set_state(player.get_state())
    return copied


def _largest_norm(X: Floats) -> float:
    """Return the largest row norm, or 1 if all rows are zero."""
    e = exponent(np.abs(X).max(initial=0.0))
    return float(divided(np.linalg.norm(divided(X, e), axis=1).max(), -e)) or 1.0


def _within(X: Floats, radius: float) -> Floats:
    """Return X (n, d) with the rows whose norm lies beyond the radius, by more than rounding, shortened to it."""
    largest = np.abs(X).max(axis=1, keepdims=True)
    directions = X / np.where(largest > 0.0, largest, 1.0)  # so that no square overflows
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    beyond = largest * lengths > radius * (1.0 + 1e-10)
    return np.where(beyond, directions * (radius / np.where(beyond, lengths, 1.0)), X) if beyond.any() else X


def _log_softmax(logits: Floats) -> Floats:
    logs: Floats = logits - logsumexp(logits, axis=1, keepdims=True)
    return logs


def _positions(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return where in the sorted `classes` each label stands."""
    strange = np.setdiff1d(y, classes)
    if len(strange):
        raise UsageError(f"y has the classes {strange.tolist()}, which are not among {classes.tolist()}")
    return np.searchsorted(classes, y)
