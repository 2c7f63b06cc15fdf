"""The programme without a ball: round by round and in blocks against the linear system itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics import frobenius_programme as module
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frobenius_programme import CHECK, REFACTORED, ROUNDS, WORST_DRIFT, programme_state
from banditlab.numerics.lookahead import SHORTEST
from banditlab.numerics.low_rank import WHOLE
from banditlab.numerics.packed_symmetric import dense
from banditlab.numerics.unbounded_programme import ON, TERMS, learn, look, scores


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


@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_round_leaves_the_minimiser(monkeypatch, large):
    K, d, T = 3, 19, CHECK + 3
    qp, witness = made(monkeypatch, K, d, large)
    for t, (x, i, weight, step) in enumerate(zip(*lessons(K, d, T), strict=True)):
        learn(qp, i, x, weight, step)
        witness.learn(i, x, weight, step)
        assert_solved(qp, witness)
        h = np.linalg.solve(witness.C, witness.b[:, :, None])[:, :, 0]
        np.testing.assert_allclose(qp.h[:, -d:], h, rtol=0, atol=1e-11 * np.abs(h).max())
        assert qp.tally[ROUNDS] == t + 1
    assert 0.0 < qp.nu[WORST_DRIFT] < 1e-13
    if large:
        assert qp.low_M.ranks[0] == qp.low_N.ranks[0] == qp.low_C.ranks[0] == WHOLE


def test_a_block_scores_by_the_minimisers_and_leaves_the_last_one(monkeypatch):
    """M becomes whole within a block, and blocks end with any number of terms that wait for it."""
    K, d = 3, 19
    cuts = np.cumsum([SHORTEST, 25, 9, 11, SHORTEST - 1, 1, 60, 30, 130, 20])
    assert cuts[-2] > CHECK  # a check within a block
    qp, witness = made(monkeypatch, K, d, True)
    X, which, weights, steps = lessons(K, d, int(cuts[-1]), seed=1)
    z = np.zeros(K)
    for start, stop in zip([0, *cuts[:-1]], cuts, strict=True):
        part = X[start:stop]
        for t in range(len(part)):
            look(qp, part, t)
            assert qp.room.alpha[ON] == (len(part) >= SHORTEST)
            scores(qp, part[t], z)
            np.testing.assert_allclose(z, witness.solution() @ part[t], rtol=0, atol=1e-11)
            lesson = int(which[start + t]), part[t], weights[start + t], steps[start + t]
            learn(qp, *lesson)
            witness.learn(*lesson)
        look(qp, part, len(part))
        assert qp.room.alpha[ON] == 0.0
        assert_solved(qp, witness)
        total = np.linalg.inv(sum(np.linalg.inv(C) for C in witness.C))
        if qp.low_M.ranks[0] == WHOLE:  # nothing waits
            np.testing.assert_allclose(dense(qp.M, d), total, rtol=0, atol=1e-11 * np.abs(total).max())
    assert qp.tally[ROUNDS] == len(X)
    assert 0.0 < qp.nu[WORST_DRIFT] < 1e-13
    assert qp.low_M.ranks[0] == qp.low_N.ranks[0] == WHOLE


@pytest.mark.slow
def test_spoilt_inverses_are_mended_within_a_block(monkeypatch):
    """What a check finds in one round is put right in the next, whose minimiser is solved for anew."""
    K, d, T = 3, 12, CHECK + 4 * TERMS
    qp, witness = made(monkeypatch, K, d, True)
    X, which, weights, steps = lessons(K, d, T, seed=2)
    for t in range(T):
        look(qp, X, t)
        if t == CHECK // 2:
            qp.h[1] *= 1.001  # spoilt
        scores(qp, X[t], np.zeros(K))
        learn(qp, int(which[t]), X[t], weights[t], steps[t])
        witness.learn(int(which[t]), X[t], weights[t], steps[t])
    look(qp, X, T)
    assert qp.nu[WORST_DRIFT] > 1e-6
    assert qp.tally[REFACTORED] == 1
    assert_solved(qp, witness)


def test_an_empty_block_is_none(monkeypatch):
    qp, _ = made(monkeypatch, 2, 8, True)
    look(qp, as_contexts(np.zeros((0, 8))), 0)
    assert qp.room.alpha[ON] == 0.0
