"""Frequent directions: against singular values of the stacked rows, the theorem's inequality, few dimensions, odd contexts."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.frequent_directions import (
    BUFFERED,
    DRIFT,
    REST,
    ROWS,
    SHRINKS,
    SQUARE,
    count_context,
    directions,
    project,
    replace_basis,
    reset,
    share_outside,
    shrink,
    widen,
)

pytestmark = pytest.mark.slow  # sketches stand for matrices of many classes and columns only


def learn(sketch, x):
    """Let the sketch learn x (d,), as agents do."""
    project(sketch, x)
    widen(sketch)
    if count_context(sketch):
        shrink(sketch)
        replace_basis(sketch)


def caught(sketch, d):
    """Return Q (r, d), the second moments Q'M Q (d, d), and those of the contexts held back."""
    r, m = int(sketch.counts[ROWS]), sketch.most
    Q, X = sketch.Q[:r, -d:], sketch.X[: sketch.counts[BUFFERED], -d:]
    assert not sketch.Q[r:].any()
    assert not sketch.M[m:].any()
    return Q, Q.T @ sketch.M[:r, :r] @ Q, X.T @ X


class Slow:
    """Liberty's algorithm on stacked rows: the m largest singular vectors of 2 m rows, the next square taken off all."""

    def __init__(self, d, m):
        self.m, self.rows, self.held = m, np.zeros((0, d)), []

    def learn(self, x):
        stacked = np.vstack([self.rows, x])
        if not self.held and np.linalg.matrix_rank(stacked, tol=1e-6) <= self.m:
            _, s, V = np.linalg.svd(stacked, full_matrices=False)  # nothing is lost
            self.rows = (s[:, None] * V)[: self.m]
            return
        self.held.append(x)
        if len(self.held) == self.m:
            _, s, V = np.linalg.svd(np.vstack([self.rows, *self.held]), full_matrices=False)
            self.rows = np.sqrt(np.maximum(s[: self.m] ** 2 - s[self.m] ** 2, 0.0))[:, None] * V[: self.m]
            self.held = []


def contexts(T, d, rank, noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T, rank)) @ rng.standard_normal((rank, d)) + noise * rng.standard_normal((T, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize(("d", "m"), [(13, 1), (13, 5), (20, 8), (24, 9)])
@pytest.mark.parametrize("unit", [1.0, 1e-90, 1e90])
def test_equals_singular_values_of_stacked_rows(d, m, unit):
    X = contexts(8 * m + 3, d, 4, 0.3)
    sketch, slow = directions(d, m), Slow(d, m)
    for t, x in enumerate(X, start=1):
        learn(sketch, unit * x)
        slow.learn(x)
        Q, moments, held = caught(sketch, d)
        np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), rtol=0, atol=1e-12)
        assert sketch.counts[BUFFERED] == len(slow.held)
        np.testing.assert_allclose(moments / unit**2, slow.rows.T @ slow.rows, rtol=0, atol=1e-9)
        # as the theorem says: below the sum of x x', by at most sum |x|^2 / m
        lost = np.linalg.eigvalsh(X[:t].T @ X[:t] - (moments + held) / unit**2)
        assert lost.min() >= -1e-9
        assert lost.max() <= t / m + 1e-9
    assert sketch.counts[SHRINKS] >= 6
    assert sketch.numbers[DRIFT] <= 1e-10


def test_up_to_m_dimensions_nothing_is_lost():
    d, m = 30, 6
    X = contexts(200, d, m, 0.0)
    sketch = directions(d, m)
    for x in X:
        learn(sketch, x)
    Q, moments, _ = caught(sketch, d)
    assert sketch.counts.tolist() == [m, 0, 1, 0]
    assert share_outside(sketch) == 0.0
    np.testing.assert_allclose(moments, X.T @ X, rtol=0, atol=1e-11)
    np.testing.assert_allclose(X - X @ Q.T @ Q, 0.0, rtol=0, atol=1e-13)
    reset(sketch)
    for x in X:
        learn(sketch, x)
    np.testing.assert_array_equal(caught(sketch, d)[1], moments)


@pytest.mark.parametrize("nearly", [0.0, 1e-13, 1e-7, 1e-5, 1e-4])
def test_contexts_that_come_again_nearly(nearly):
    """Held back more than once, the same direction is one: no vector of length 0, no direction twice."""
    d, m = 17, 5
    rng = np.random.default_rng(3)
    X = np.repeat(contexts(60, d, d, 0.0), 4, axis=0)
    X += nearly * rng.standard_normal(X.shape) / np.sqrt(d)
    sketch = directions(d, m)
    for x in X:
        learn(sketch, x)
        Q = caught(sketch, d)[0]
        np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), rtol=0, atol=1e-8)
    assert sketch.counts[SHRINKS] > 10
    same = directions(d, m)
    for _ in range(3 * m):  # one context, for ever, once the basis is full
        for x in X[:1] if same.counts[ROWS] == m else contexts(1, d, d, 0.0, int(same.counts[ROWS])):
            learn(same, x)
    Q = caught(same, d)[0]
    np.testing.assert_allclose(Q @ Q.T, np.eye(m), rtol=0, atol=1e-10)


def test_odd_contexts():
    d, m = 11, 3
    sketch = directions(d, m)
    for x in (np.zeros(d), np.full(d, 1e-200), np.full(d, 1e-160), np.eye(d)[2] * 1e-130):
        learn(sketch, x)
        assert sketch.counts[ROWS] == sketch.counts[BUFFERED] == 0
        assert sketch.numbers[REST] == 0.0
    for x in contexts(40, d, d, 0.0):
        learn(sketch, x)
        learn(sketch, np.zeros(d))
    project(sketch, np.full(d, 1e-200))
    assert sketch.numbers[SQUARE] == 0.0
    Q = caught(sketch, d)[0]
    np.testing.assert_allclose(Q @ Q.T, np.eye(m), rtol=0, atol=1e-12)
