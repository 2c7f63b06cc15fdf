"""Test whether rows are in the order of time, and whether labels depend on features beyond the effect of time.

If both labels and features change slowly along a file, features reveal when a row was written. In shuffled rows, an
agent can then predict labels from that time, even if labels do not depend on the features otherwise. The second test
uses the Hilbert-Schmidt independence criterion (Gretton, Bousquet, Smola, Schoelkopf: Measuring statistical dependence
with Hilbert-Schmidt norms, ALT 2005). The criterion is compared with its values for labels shifted in time
(Chwialkowski, Gretton: A kernel independence test for random processes, ICML 2014).
"""

from __future__ import annotations

import numpy as np

from banditlab.envs._base import Floats, Truth

ROWS = 1000
"""The tests use this many first rows."""
DRAWS = 199
LEVEL = 0.02
APART = 20
"""Pairs of rows at most this far apart in time do not count in the statistic."""
WINDOWS = (1, 4)
"""The numbers of parts in which labels are shifted: one part for stationary labels, several for trends."""


def follow_time(X: Floats, y: Truth) -> bool:
    """Return whether both labels y (N,), or bits (N, K), and contexts X (N, d) are autocorrelated along the rows.

    Each of the two tests has a false-positive rate of 1 in 200 for independent rows. The result is False for a file
    sorted by label, or two such files in sequence.
    """
    Y, rng = _indicators(y), np.random.default_rng(0)
    is_sorted = y.ndim == 1 and 1 + np.count_nonzero(np.diff(y[:ROWS])) <= 2 * len(np.unique(y))
    return not is_sorted and all(_is_ordered(_standard(Z), rng) for Z in (Y, X[:ROWS]))


def _indicators(y: Truth) -> Floats:
    """Return the labels or bits of the first rows as 0/1 columns, one per class."""
    return np.eye(y.max() + 1)[y[:ROWS]] if y.ndim == 1 else y[:ROWS].astype(np.float64)


def _is_ordered(Z: Floats, rng: np.random.Generator) -> bool:
    """Return whether a column of Z (n, m) is more autocorrelated than all columns in 199 permutations of the rows."""
    orders = (rng.permutation(len(Z)) for _ in range(DRAWS))
    return _autocorrelation(Z) > max(_autocorrelation(Z[order]) for order in orders)


def _autocorrelation(Z: Floats) -> float:
    return float(sum((Z[lag:] * Z[:-lag]).sum(axis=0) for lag in (1, 2, 3)).max(initial=0.0))


def _standard(Z: Floats) -> Floats:
    scale = Z.std(axis=0)
    varies = scale > 1e-9
    return np.asarray((Z - Z.mean(axis=0))[:, varies] / scale[varies])


def depend_beyond_time(X: Floats, y: Truth) -> bool:
    """Return whether labels y (N,), or bits (N, K), depend on contexts X (N, d) more than time-shifted labels do."""
    from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
    from sklearn.preprocessing import KernelCenterer

    Z, Y = _standard(X[:ROWS]), _indicators(y)
    kernels = [KernelCenterer().fit_transform(K) for K in (linear_kernel(Z), rbf_kernel(Z, gamma=0.5 / Z.shape[1]))]
    at = np.arange(len(Z))
    far = np.abs(at[:, None] - at) > APART
    alike = np.where(far, sum(K / np.linalg.norm(K) for K in kernels), 0.0)
    return all(_p_value(alike, Y - Y.mean(axis=0), windows) <= LEVEL for windows in WINDOWS)


def _p_value(alike: Floats, Y: Floats, windows: int) -> float:
    """Return the fraction of circular shifts of the labels with at least the same dependence on the contexts."""
    rng, parts = np.random.default_rng(0), np.array_split(Y, windows)
    window = np.repeat(np.arange(windows), [len(part) for part in parts])
    alike = np.where(window[:, None] == window, alike, 0.0)
    shifted = (np.vstack([np.roll(part, rng.integers(len(part)), axis=0) for part in parts]) for _ in range(DRAWS))
    least = np.sum(Y * (alike @ Y))
    return float(1 + sum(np.sum(Z * (alike @ Z)) >= least for Z in shifted)) / (1 + DRAWS)
