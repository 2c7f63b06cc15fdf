"""Models over a shared sketch, and diagonal ones: against dense matrices put back into their family; where they are exact."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.diagonal_inverses import diagonal_inverses
from banditlab.numerics.frequent_directions import (
    ROWS,
    SHRINKS,
    count_context,
    directions,
    project,
    replace_basis,
    shrink,
)
from banditlab.numerics.frequent_directions import widen as widen_basis
from banditlab.numerics.model_forms import read, read_one, update_one
from banditlab.numerics.packed_symmetric import dense, zeros
from banditlab.numerics.sketched_inverses import rotate, sketched_inverses, widen

pytestmark = pytest.mark.slow
"""Kernels of either form are compiled by the slow tests."""
SCALES = np.array([4.0, 30.0, 0.5])


class Direct:
    """Models as full matrices P_i, each put back into its family after a lesson."""

    def __init__(self, d):
        self.P, self.h = SCALES[:, None, None] * np.eye(d), np.zeros((len(SCALES), d))

    def learn(self, i, x, target, weight, Q=None):
        """Weighted ridge regression of the target: A + w x x', b + w y x; what lies outside of Q (r, d) is spread evenly."""
        v = self.P[i] @ x
        s = weight / (1.0 + weight * x @ v)
        self.h[i] += s * (target - x @ self.h[i]) * v
        old = np.linalg.inv(self.P[i])
        self.P[i] -= s * np.outer(v, v)
        if Q is not None:
            outside = np.eye(len(x)) - Q.T @ Q
            more = np.trace(outside @ (old + weight * np.outer(x, x))) / (len(x) - len(Q))
            self.P[i] = Q.T @ (Q @ self.P[i] @ Q.T) @ Q + outside / more

    def restrict(self, Q):
        """Keep the block in the span of Q (r, d) and the trace."""
        d, r = Q.shape[1], len(Q)
        for i, P in enumerate(self.P):
            block = Q @ P @ Q.T
            outside = (np.trace(P) - np.trace(block)) / max(d - r, 1)
            self.P[i] = Q.T @ block @ Q + outside * (np.eye(d) - Q.T @ Q)


def contexts(T, d, rank, noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T, rank)) @ rng.standard_normal((rank, d)) + noise * rng.standard_normal((T, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def learn(models, sketch, i, x, target, weight):
    """Let model i learn, and the sketch, as agents do; whether the basis turned."""
    project(sketch, x)
    if widen_basis(sketch):
        widen(models, sketch)
    m, q = read_one(models, sketch, i)
    s = weight / (1.0 + weight * q)
    update_one(models, sketch, i, s * (target - m), weight, s / weight)
    if not count_context(sketch):
        return False
    shrink(sketch)
    rotate(models, sketch)
    replace_basis(sketch)
    return True


def matrices(models, sketch, d):
    """Return P (M, d, d) and h (M, d) that the models stand for."""
    Q = sketch.Q[: sketch.counts[ROWS], -d:]
    r = len(Q)
    B = dense(models.B, models.E.shape[1])[:, :r, :r]
    P = Q.T @ B @ Q + models.p[:, None, None] * (np.eye(d) - Q.T @ Q)
    return P, models.H[:, -d:] + models.E[:, :r] @ Q


@pytest.mark.parametrize(("d", "m"), [(12, 1), (13, 5), (21, 8)])
def test_a_sketch_is_the_projection_of_full_matrices(d, m):
    X, rng = contexts(9 * m + 6, d, 4, 0.4), np.random.default_rng(1)
    sketch, models, direct = directions(d, m), sketched_inverses(SCALES, d, m), Direct(d)
    ms, qs, turned = zeros(8), zeros(8), 0
    for x in X:
        project(sketch, x)
        read(models, sketch, ms, qs)
        np.testing.assert_allclose(ms[:3], direct.h @ x, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(qs[:3], np.einsum("i,kij,j->k", x, direct.P, x), rtol=1e-9, atol=1e-9)
        i, target, weight = int(rng.integers(3)), rng.normal(), rng.uniform(0.1, 3.0)
        full, before = sketch.counts[ROWS] == m, sketch.Q[:m, -d:].copy()
        turns = learn(models, sketch, i, x, target, weight)
        turned += turns
        direct.learn(i, x, target, weight, before if full else None)
        if turns:
            direct.restrict(sketch.Q[:m, -d:])
        P, h = matrices(models, sketch, d)
        np.testing.assert_allclose(P, direct.P, rtol=0, atol=1e-9 * SCALES.max())
        np.testing.assert_allclose(h, direct.h, rtol=0, atol=1e-9)
        assert np.linalg.eigvalsh(P).min() > 0.0
    assert turned == sketch.counts[SHRINKS] >= 6


@pytest.mark.parametrize("d", [1, 7, 16])
def test_diagonals_equal_the_slow_form(d):
    X, rng = contexts(60, d, d, 0.0), np.random.default_rng(3)
    models, direct = diagonal_inverses(SCALES, d), Direct(d)
    ms, qs = zeros(8), zeros(8)
    for x in X:
        read(models, x, ms, qs)
        np.testing.assert_allclose(ms[:3], direct.h @ x, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(qs[:3], np.einsum("i,kij,j->k", x, direct.P, x), rtol=1e-9, atol=1e-9)
        i, target, weight = int(rng.integers(3)), rng.normal(), rng.uniform(0.1, 3.0)
        m, q = read_one(models, x, i)
        assert (m, q) == pytest.approx((ms[i], qs[i]), rel=1e-12)
        s = weight / (1.0 + weight * q)
        update_one(models, x, i, s * (target - m), weight, s / weight)
        direct.h[i] += s * (target - m) * direct.P[i] @ x
        direct.P[i] = np.diag(1.0 / (1.0 / np.diag(direct.P[i]) + weight * x**2))
    np.testing.assert_allclose(models.P[:, -d:], np.einsum("kjj->kj", direct.P), rtol=1e-9)
    np.testing.assert_allclose(models.H[:, -d:], direct.h, rtol=0, atol=1e-9)
    assert models.P.min() > 0.0
