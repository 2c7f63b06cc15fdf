"""k nearest neighbours on one bit: the share of hits among the k nearest rounds in which a class was played.

A round's context is compared by Euclidean distance with all earlier ones. Class a is valued (1 + hits) / (2 + n), over the
n <= k nearest rounds that played a: an unknown class counts one half, more than most, so that all are tried where little
is known. The most valued one is played, a class drawn uniformly instead with probability epsilon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditlab.kernels import njit
from benchmarks.measure.rivals.tables import Stream

GRID = ((15, 0.05), (5, 0.05), (5, 0.01), (15, 0.01), (45, 0.01))
"""k and epsilon; the first is called the default."""


class Neighbours:
    """Plays streams, and keeps the last one's distances while settings change."""

    def __init__(self) -> None:
        self._key: tuple[str, str, int] | None = None
        self._distances = np.empty((0, 0), np.float32)

    def play(self, stream: Stream, setting: tuple[int, float], seed: int) -> float:
        """Return the share of mistakes of one pass."""
        key = (stream.table, stream.scaling, stream.seed)
        if key != self._key:
            self._key, self._distances = key, distances(stream.X)
        k, epsilon = setting
        U = np.random.default_rng([seed, 3]).random((len(stream.y), 2))
        return float(np.mean(play_kernel(self._distances, stream.y, stream.n_classes, k, epsilon, U) != stream.y))


def distances(X: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the squared distances of all rows to each other, (T, T), in single precision."""
    rows = X.astype(np.float32)
    squares = np.square(rows).sum(axis=1)
    return squares[:, None] + squares[None, :] - 2.0 * (rows @ rows.T)


@njit
def play_kernel(D, y, K, k, epsilon, U):
    """Return the actions (T,): D (T, T) are squared distances, y (T,) is read for the bit only, U (T, 2) are uniforms."""
    T = D.shape[0]
    actions, hit = np.zeros(T, np.int64), np.zeros(T, np.bool_)
    n, values = np.zeros(K, np.int64), np.zeros(K)
    near, hits = np.zeros((K, k)), np.zeros((K, k), np.bool_)
    for t in range(T):
        n[:] = 0
        for s in range(t):
            a, far = actions[s], D[t, s]
            if n[a] == k and far >= near[a, k - 1]:
                continue
            i = n[a] if n[a] < k else k - 1  # the place that is free, or the farthest one's
            while i > 0 and near[a, i - 1] > far:
                near[a, i], hits[a, i] = near[a, i - 1], hits[a, i - 1]
                i -= 1
            near[a, i], hits[a, i] = far, hit[s]
            n[a] = min(n[a] + 1, k)
        for a in range(K):
            values[a] = (1.0 + hits[a, : n[a]].sum()) / (2.0 + n[a])
        seat = int(U[t, 1] * np.sum(values == values.max()))  # one of equals, drawn uniformly
        best = np.flatnonzero(values == values.max())[seat]
        if U[t, 0] < epsilon:
            best = min(int(U[t, 0] / epsilon * K), K - 1)
        actions[t], hit[t] = best, best == y[t]
    return actions
