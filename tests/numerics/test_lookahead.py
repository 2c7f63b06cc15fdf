"""Rounds looked at ahead: against explicit inverses, against rounds one by one, and where a context comes again and again."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics import class_inverses as module
from banditlab.numerics import packed_symmetric as packed
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import njit
from banditlab.numerics.low_rank import WHOLE, rows
from tests.numerics.dense_inverses import dense_inverses

pytestmark = pytest.mark.slow
"""Quick tests play agents whose blocks look ahead: test_looking_ahead."""


@njit
def rounds(models, X, behind, Y, chosen, targets, weights, m, q, ms, qs):
    """Play the block X (n, d - e): Y (n, d) has `behind` under it; models `chosen` (n, 2) learn, none where it is below 0."""
    for t in range(X.shape[0]):
        module_prefetch(models, X, t, behind)
        module_read(models, Y[t], m, q)
        for i in range(m.shape[0]):
            ms[t, i], qs[t, i] = m[i], q[i]
        for b in range(2):
            i = chosen[t, b]
            if i >= 0:
                own_m, own_q = module_recall(models, Y[t], i)
                s = weights[t, b] / (1.0 + weights[t, b] * own_q)  # A + w x x', b + w y x: h + s (y - m) v
                module_move(models, i, s * (targets[t, b] - own_m), s)
    module_prefetch(models, X, X.shape[0], behind)


module_prefetch, module_read, module_recall, module_move = (
    module.prefetch,
    module.read,
    module.read_one,
    module.update_one,
)


class Direct:
    """Weighted ridge regressions: A_i and b_i, solved whenever they are asked for."""

    def __init__(self, scales, d):
        self.A = np.array([np.eye(d) / scale for scale in scales])
        self.b = np.zeros((len(scales), d))

    def play(self, Y, chosen, targets, weights):
        ms, qs = np.zeros((len(Y), len(self.b))), np.zeros((len(Y), len(self.b)))
        for t, x in enumerate(Y):
            P = np.linalg.inv(self.A)
            ms[t], qs[t] = np.einsum("kij,kj,i->k", P, self.b, x), np.einsum("i,kij,j->k", x, P, x)
            for b in range(2):
                if (i := chosen[t, b]) >= 0:
                    self.b[i] += weights[t, b] * targets[t, b] * x
                    self.A[i] += weights[t, b] * np.outer(x, x)
        return ms, qs


def made(monkeypatch, scales, d, scratch):
    """Models with room for stretches of `scratch` contexts, 0: none."""
    monkeypatch.setattr(module, "LARGE", 0 if scratch else 2**60)
    monkeypatch.setattr(module, "LONG_STRETCH", scratch)
    monkeypatch.setattr(module, "SHORT_STRETCH", scratch)
    models = module.inverses(scales, d)
    assert (models.ahead is None) == (scratch == 0)
    return models


def story(K, d, n, seed, behind=0):
    """Contexts, zeros, repetitions and x = 0 among them, and who learns what; sometimes nobody, or the same two for long."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d - behind)) < 0.3, 0.0, rng.standard_normal((n, d - behind)))
    X[::7] = X[0]
    X[5::31] = 0.0
    chosen = rng.integers(-1, K, (n, 2))
    chosen[n // 2 :, 0] = 0
    chosen[chosen[:, 0] == chosen[:, 1], 1] = -1
    e = rng.standard_normal(behind)
    Y = np.concatenate([X, np.tile(e, (n, 1))], axis=1)
    return as_contexts(X), e, as_contexts(Y), chosen, rng.standard_normal((n, 2)), rng.uniform(0.1, 1.0, (n, 2))


def play(models, X, e, Y, chosen, targets, weights, cuts=()):
    K, n = len(models.P), len(X)
    ms, qs, m, q = np.zeros((n, K)), np.zeros((n, K)), np.zeros(K), np.zeros(K)
    for i, j in zip([0, *cuts], [*cuts, n], strict=True):
        part = slice(i, j)
        rounds(models, X[part], e, Y[part], chosen[part], targets[part], weights[part], m, q, ms[part], qs[part])
        if models.ahead is not None:
            assert models.ahead.place[0] == 0
            assert not models.ahead.rounds[:, 0].any()
    return ms, qs


def assert_symmetric(models, d):
    """Whole matrices are what packing would keep: 0 before the d rows and columns. Rows are 0 there and from r on."""
    for k, P in enumerate(models.P):
        again = np.zeros_like(P)
        if models.low.ranks[k] == WHOLE:
            packed.pack(packed.dense(P, d), again)
            np.testing.assert_array_equal(P, again)
        else:
            F = rows(models.low, models.P, k)
            assert not F[:, :-d].any()
            assert np.count_nonzero(P) == np.count_nonzero(F)


def assert_near(models, other, d):
    for ours, theirs in ((dense_inverses(models, d), other[0]), (models.H[:, -d:], other[1])):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * max(1.0, np.abs(theirs).max()))


@pytest.mark.parametrize(
    ("K", "d", "n", "scratch", "behind"),
    [(1, 8, 40, 16, 0), (2, 3, 90, 16, 1), (2, 23, 200, 64, 0), (5, 40, 150, 32, 2), (3, 65, 130, 64, 1)],
)
def test_stretches_equal_explicit_inverses(monkeypatch, K, d, n, scratch, behind):
    told = story(K, d, n, seed=d, behind=behind)
    models, slow = made(monkeypatch, np.linspace(0.5, 2.0, K), d, scratch), Direct(np.linspace(0.5, 2.0, K), d)
    ms, qs = play(models, *told)
    slow_ms, slow_qs = slow.play(*told[2:])
    np.testing.assert_allclose(qs, slow_qs, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ms, slow_ms, rtol=1e-9, atol=1e-11)
    P = np.linalg.inv(slow.A)
    assert_near(models, (P, np.einsum("kij,kj->ki", P, slow.b)), d)
    assert_symmetric(models, d)


@pytest.mark.parametrize("ridge", [1e-2, 1e-4, 1e-8])
def test_a_context_that_comes_again(monkeypatch, ridge):
    """q falls from ||x||^2/ridge to 1/n: its error is that of rounding the value it fell from, one by one or ahead."""
    d, n = 24, 96
    x = np.random.default_rng(0).standard_normal(d)
    Y = as_contexts(np.tile(x, (n, 1)))
    chosen = np.tile([0, -1], (n, 1))
    exact = x @ x / (ridge + np.arange(n) * (x @ x))
    for scratch in (0, 64):
        models = made(monkeypatch, np.array([1.0 / ridge]), d, scratch)
        _, qs = play(models, Y, np.zeros(0), Y, chosen, np.zeros((n, 2)), np.ones((n, 2)))
        assert np.abs(qs[:, 0] - exact).max() < 8 * np.finfo(float).eps * exact[0]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_stays_in_the_model_that_learnt_it(monkeypatch, value):
    K, d, n = 4, 11, 64
    X, e, _, chosen, targets, weights = story(K, d, n, seed=2)
    broken = np.array(X)
    broken[9] = value
    chosen = np.stack([np.arange(n) % K, np.full(n, -1)], axis=1)
    chosen[9], chosen[3:8] = [0, -1], [-1, -1]  # model 0 learns it; the others' rounds fill no four
    alone, models = made(monkeypatch, np.ones(K), d, 0), made(monkeypatch, np.ones(K), d, 32)
    for each in (alone, models):
        play(each, as_contexts(broken), e, as_contexts(broken), chosen, targets, weights)
    P = dense_inverses(models, d)
    assert np.isnan(P[0]).any()
    np.testing.assert_allclose(P[1:], packed.dense(alone.P, d)[1:], rtol=0, atol=1e-9)
    np.testing.assert_allclose(models.H[1:], alone.H[1:], rtol=0, atol=1e-9)
