"""Reward models and propensities that are fitted on other rounds than those they predict."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditlab.errors import UsageError
from banditlab.offpolicy.log import Floats, Log, check_shape, count, numbers, read, refuse
from banditlab.validation import at_least

Labels = NDArray[np.intp]
FIRST = 64
"""Number of rounds of a log before the first reward model is fitted."""
MOST = 2**16
"""Number of rounds after which the last reward model is fitted."""


def logistic() -> Any:
    """Return the default model: logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def predicted_rewards(
    contexts: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    n_actions: int,
    *,
    model: Callable[[], Any] = logistic,
) -> Floats:
    """Return the probability of reward 1 for every round and action, (n, n_actions), from earlier rounds only.

    A model per action is fitted after 64, 128, 256, ..., 65,536 rounds and predicts until the next fit. In the first 64
    rounds the prediction is 1/2. Because predictions use earlier rounds only, the logging policy may learn.

    Parameters
    ----------
    contexts
        Features (n, d).
    actions, rewards
        As in `Log`, (n,).
    n_actions
        K.
    model
        Function that returns a new classifier with scikit-learn's `fit` and `predict_proba`, such as
        `OnlineClassifier`.

    Returns
    -------
    Floats
        Probabilities in (0, 1).

    Raises
    ------
    UsageError
        Contexts, actions or rewards have faults; one error lists all of them, each with the number of rows.
    """
    X, a, r = _checked(contexts, actions, rewards, n_actions)
    return RewardModel(n_actions, model=model).ahead(X, a, r.astype(np.float64))


class RewardModel:
    """A model per action that predicts rewards from earlier rounds, for logs that are read in parts.

    Parameters
    ----------
    n_actions
        K.
    model
        As in `predicted_rewards`.
    """

    def __init__(self, n_actions: int, *, model: Callable[[], Any] = logistic) -> None:
        self._model = model
        self._models = [_fitted(model, np.empty(0), np.empty(0, np.intp), 2)] * n_actions
        self._earlier: list[tuple[Floats, Labels, Floats]] = []
        self._rounds = 0
        self._due: float = FIRST

    def ahead(self, contexts: Floats, actions: Labels, rewards: Floats) -> Floats:
        """Return predictions (m, K) for the next m rounds, and add these rounds to the data of later fits.

        Each round is predicted before it is used. The arguments are as for `predicted_rewards`.
        """
        predictions = np.empty((len(contexts), len(self._models)))
        start = 0
        while start < len(contexts):
            stop = int(min(len(contexts), start + self._due - self._rounds))
            X = contexts[start:stop]
            predictions[start:stop] = np.column_stack([predict(X)[:, 1] for predict in self._models])
            if self._due <= MOST:
                self._earlier.append((X, actions[start:stop], rewards[start:stop]))
            self._rounds, start = self._rounds + len(X), stop
            if self._rounds == self._due:
                self._fit()
        return predictions

    def _fit(self) -> None:
        X, a, r = (np.concatenate(parts) for parts in zip(*self._earlier, strict=True))
        labels = r.astype(np.intp)
        self._models = [_fitted(self._model, X[a == k], labels[a == k], 2) for k in range(len(self._models))]
        self._due *= 2
        if self._due > MOST:
            self._due, self._earlier = math.inf, []


def estimated_propensities(
    contexts: ArrayLike,
    actions: ArrayLike,
    n_actions: int,
    folds: ArrayLike,
    *,
    model: Callable[[], Any] = logistic,
) -> Floats:
    """Return the probabilities of all actions in every round, (n, n_actions), for a logging policy that does not
    change.

    For each fold, a multinomial model is fitted to the other folds. It is calibrated by a second model, also fitted to
    the other folds, which predicts the actions from the logarithms of the first model's probabilities.

    Parameters
    ----------
    contexts
        Features (n, d).
    actions
        As in `Log`, (n,).
    n_actions
        K.
    folds
        The fold of each round (n,): at least two different numbers, drawn independently of the log.
    model
        Function that returns a new classifier with scikit-learn's `fit` and `predict_proba`.

    Returns
    -------
    Floats
        Probabilities above 0; each row sums to 1.

    Raises
    ------
    UsageError
        `folds` is invalid, or contexts or actions have faults; one error lists all faults, each with the number of
        rows.
    """
    X, a, _ = _checked(contexts, actions, np.zeros(np.size(actions)), n_actions)
    parts = np.asarray(folds)
    if parts.shape != a.shape or len(np.unique(parts)) < 2:
        raise UsageError(f"folds must have one number for each of {len(a):,} rounds, at least two of them different")
    first = _other_folds(X, a, n_actions, parts, model)
    return _other_folds(np.log(first), a, n_actions, parts, model)


def _checked(
    contexts: ArrayLike, actions: ArrayLike, rewards: ArrayLike, n_actions: int
) -> tuple[Floats, Labels, Labels]:
    """Return contexts, actions and rewards as arrays, or raise a UsageError that names all faults."""
    n, K = np.size(actions), at_least("n_actions", n_actions, 1)
    rows, found = read(Log(actions, rewards, np.ones(n), np.full((n, K), 1.0 / K)))
    X = numbers("contexts", contexts, found)
    check_shape("contexts", X, found, (n, X.shape[-1] if X.ndim else 0))
    found["entries of contexts that are not finite"] = count(~np.isfinite(X))
    refuse(found)
    assert rows is not None
    return X, rows.actions, rows.rewards.astype(np.intp)


def _other_folds(X: Floats, labels: Labels, n_labels: int, folds: Labels, model: Callable[[], Any]) -> Floats:
    made = np.empty((len(X), n_labels))
    for fold in np.unique(folds):
        rest = folds != fold
        made[~rest] = _fitted(model, X[rest], labels[rest], n_labels)(X[~rest])
    return made


def _fitted(model: Callable[[], Any], X: Floats, labels: Labels, n_labels: int) -> Callable[[Floats], Floats]:
    """Return a function that predicts the labels' probabilities at any rows.

    No probability is 0: the uniform distribution is mixed in with weight 1 / (n + 1).
    """
    n, found = len(X), np.unique(labels)
    mine = model().fit(X, labels) if len(found) > 1 else None

    def probabilities(at: Floats) -> Floats:
        made = np.zeros((len(at), n_labels))
        made[:, found] = 1.0 if mine is None else mine.predict_proba(at)
        return (n * made + 1.0 / n_labels) / (n + 1.0)

    return probabilities
