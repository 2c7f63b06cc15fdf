"""What all labels are worth: scikit-learn's logistic regression and gradient boosting on a stream's rows.

Two numbers for each: the error of five-fold cross-validation, where a model is fitted once to four fifths of the rows; and
that of one pass in the stream's order with every label told, where a model is fitted anew at 25, 50, 100, ... rows and says
those up to the next time. The second counts the errors of learning, too, as a player's mistakes do.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure.rivals.tables import Stream

FOLDS = 5
FIRST_FIT = 25
MODELS = ("logistic", "boosting")


def model(name: str) -> Any:
    """Return an unfitted model: the library's defaults, but an l2_regularization of 1 where it boosts.

    With its default 0 the boosting of a dozen classes runs away: errors above 50 % on tables where 1 gives a few per cent.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    return HistGradientBoostingClassifier(early_stopping=False, l2_regularization=1.0, random_state=0)


def forecast(name: str, X: NDArray[np.float64], y: NDArray[np.int64], rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the classes that a model fitted to X, y says for other rows; one class alone is said always."""
    if len(np.unique(y)) == 1:
        return np.full(len(rows), y[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that 300 steps were not enough, which changes the error little
        found: NDArray[np.int64] = model(name).fit(X, y).predict(rows)
    return found


def cross_validated(stream: Stream, name: str) -> float:
    """Return the share of rows that five-fold cross-validation, the folds drawn with seed 0, gets wrong."""
    fold = np.random.default_rng(0).permutation(len(stream.y)) % FOLDS
    wrong = 0
    for k in range(FOLDS):
        there, here = fold != k, fold == k
        wrong += int(np.sum(forecast(name, stream.X[there], stream.y[there], stream.X[here]) != stream.y[here]))
    return wrong / len(stream.y)


def one_pass(stream: Stream, name: str) -> float:
    """Return the share of mistakes of one pass with all labels; before the first fit a class is guessed: 1 - 1/K wrong."""
    X, y, n = stream.X, stream.y, FIRST_FIT
    wrong = min(n, len(y)) * (1.0 - 1.0 / stream.n_classes)
    while n < len(y):
        end = min(2 * n, len(y))
        wrong += float(np.sum(forecast(name, X[:n], y[:n], X[n:end]) != y[n:end]))
        n = end
    return wrong / len(y)
