"""scikit-learn's boosted trees on one bit: a binary model per class, refitted, epsilon-greedy.

The model of class k predicts the probability that k would be right. It is fitted to the rounds in which k was chosen: first
after 20 rounds, then each time after half as many further rounds as were played so far, at least 20 and at most 250. A class
that was never right, or never wrong, has the probability (1 + hits) / (2 + n) after n choices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure.rivals.tables import Stream

FEWEST, MOST = 20, 250
"""The smallest and largest number of rounds between two fits."""


def play(stream: Stream, epsilon: float, seed: int) -> float:
    """Return the share of mistakes of one pass at scikit-learn's defaults."""
    rng, (T, K) = np.random.default_rng([seed, 4]), (len(stream.y), stream.n_classes)
    actions, hits, start = np.zeros(T, np.int64), np.zeros(T, np.bool_), 0
    while start < T:
        block = slice(start, min(T, start + max(FEWEST, min(MOST, start // 2))))
        played = [actions[:start] == k for k in range(K)]
        values = [predicted(stream.X[:start][k], hits[:start][k], stream.X[block]) for k in played]
        ties = rng.random((block.stop - start, K))
        best = np.lexsort((ties, np.column_stack(values)), axis=1)[:, -1]
        explored = rng.random(len(best)) < epsilon
        actions[block] = np.where(explored, rng.integers(K, size=len(best)), best)
        hits[block] = actions[block] == stream.y[block]
        start = block.stop
    return 1.0 - float(hits.mean())


def predicted(X: NDArray[np.float64], hits: NDArray[np.bool_], new: NDArray[np.float64]) -> Any:
    """Return the probabilities of a hit at new contexts (m, d), after hits (n,) at contexts X (n, d)."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    if hits.all() or not hits.any():
        return np.full(len(new), (1.0 + hits.sum()) / (2.0 + len(hits)))
    return HistGradientBoostingClassifier(early_stopping=False, random_state=0).fit(X, hits).predict_proba(new)[:, 1]
