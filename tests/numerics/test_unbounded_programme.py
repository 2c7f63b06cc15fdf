"""The programme without a ball, against the linear system itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics import frobenius_programme as module
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frobenius_programme import CHECK, ROUNDS, WORST_DRIFT, programme_state
from banditlab.numerics.low_rank import WHOLE
from banditlab.numerics.unbounded_programme import learn, scores


class Witness:
    """C_k and b_k themselves, and W by one system of equations in all W_k and mu."""

    def __init__(self, K, d, ridge):
        self.C, self.b = np.tile(ridge * np.eye(d), (K, 1, 1)), np.zeros((K, d))

    def learn(self, i, x, weight, step):
        self.C[i] += weight * np.outer(x, x)
        self.b[i] += step * x

    def solution(self):
        K, d = self.b.shape
        A, right = np.zeros(((K + 1) * d, (K + 1) * d)), np.zeros((K + 1) * d)
        for k in range(K):
            own = slice(k * d, (k + 1) * d)
            A[own, own], A[own, K * d :], A[K * d :, own] = self.C[k], -np.eye(d), np.eye(d)
            right[own] = -self.b[k]
        return np.linalg.solve(A, right)[: K * d].reshape(K, d)


def made(monkeypatch, K, d, large):
    monkeypatch.setattr(module, "LARGE", 0 if large else 2**60)
    return programme_state(K, d, 0.5, math.inf), Witness(K, d, 0.5)


def lessons(K, d, T, seed=0):
    """Class 0 learns most; contexts of norm 1, some that come again, one that is 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[5::11] = X[1]
    X[7] = 0.0
    which = np.where(rng.random(T) < 0.5, 0, rng.integers(K, size=T))
    return as_contexts(X), which, rng.uniform(0.0, 3.0, T), rng.standard_normal(T)


def assert_solved(qp, witness):
    expected = witness.solution()
    d = expected.shape[1]
    np.testing.assert_allclose(qp.W[:, -d:], expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    assert not qp.W[:, :-d].any()
    np.testing.assert_allclose(qp.b[:, -d:], witness.b, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_every_round_leaves_the_minimiser(monkeypatch, large):
    K, d, T = 3, 19, CHECK + 3
    (qp, witness), z = made(monkeypatch, K, d, large), np.zeros(K)
    for t, (x, i, weight, step) in enumerate(zip(*lessons(K, d, T), strict=True)):
        learn(qp, i, x, weight, step)
        witness.learn(i, x, weight, step)
        assert_solved(qp, witness)
        scores(qp, x, z)
        np.testing.assert_allclose(z, witness.solution() @ x, rtol=0, atol=1e-11)
        h = np.linalg.solve(witness.C, witness.b[:, :, None])[:, :, 0]
        np.testing.assert_allclose(qp.h[:, -d:], h, rtol=0, atol=1e-11 * np.abs(h).max())
        assert qp.tally[ROUNDS] == t + 1
    assert 0.0 < qp.nu[WORST_DRIFT] < 1e-13
    if large:
        assert qp.low_M.ranks[0] == qp.low_N.ranks[0] == qp.low_C.ranks[0] == WHOLE
