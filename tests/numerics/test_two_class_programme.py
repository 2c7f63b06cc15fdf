"""Two classes as one: round by round and in blocks against the linear system itself and against both matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics import frobenius_programme, unbounded_programme
from banditlab.numerics.class_inverses import dense_inverses
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frobenius_programme import CHECK, programme_state
from banditlab.numerics.lookahead import ON, SHORTEST
from banditlab.numerics.low_rank import WHOLE
from banditlab.numerics.two_class_programme import (
    CHECKED,
    RENEWED,
    SOLVES,
    from_programme,
    is_large,
    learn,
    look,
    scores,
    told,
    two_classes,
    weights,
)

RIDGE = 0.5


def lessons(d, T, seed=0):
    """Class 0 learns most; contexts of norm 1, some that come again, some that are 0 or mostly so; weights that are 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T, d))
    X[10::13] *= rng.random((len(X[10::13]), d)) < 0.2
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    X[5::11], X[7] = X[1], 0.0
    which, weight = (rng.random(T) < 0.3).astype(int), rng.uniform(0.0, 3.0, T)
    weight[::17] = 0.0
    return as_contexts(X), which, weight, rng.standard_normal(T)


def parted(X, which, weight, step):
    """Return W (2, d), A and P by one system of equations, from C_k and b_k themselves."""
    d = X.shape[1]
    C = [RIDGE * np.eye(d) + (X[which == k].T * weight[which == k]) @ X[which == k] for k in (0, 1)]
    b = [X[which == k].T @ step[which == k] for k in (0, 1)]
    one, none = np.eye(d), np.zeros((d, d))
    system = np.block([[C[0], none, -one], [none, C[1], -one], [one, one, none]])
    W = np.linalg.solve(system, np.concatenate([-b[0], -b[1], np.zeros(d)]))[: 2 * d].reshape(2, d)
    return W, C[0] + C[1], np.linalg.inv(C[0] + C[1])


def assert_learnt(one, *known):
    (W, A, P), d = parted(*known), known[0].shape[1]
    np.testing.assert_allclose(weights(one, d), W, rtol=0, atol=1e-12 * max(1.0, np.abs(W).max()))
    np.testing.assert_allclose(matrix_A(one, d), A, rtol=0, atol=1e-12 * np.abs(A).max())
    np.testing.assert_allclose(dense_inverses(one.model, d)[0], P, rtol=0, atol=1e-12 * np.abs(P).max())
    assert not one.model.H[:, :-d].any()


def matrix_A(one, d):
    return dense_inverses(one.model._replace(P=one.A, low=one.low_A), d)[0]


def play(one, X, which, weight, step, *, skip=()):
    """Play a block, of which the rounds `skip` teach nothing, and return the scores (n, 2)."""
    Z = np.zeros((len(X), 2))
    for t in range(len(X)):
        look(one, X, t)
        scores(one, X[t], Z[t])
        if t not in skip:
            learn(one, int(which[t]), X[t], weight[t], step[t])
    look(one, X, len(X))
    assert one.model.ahead.place[ON] == 0
    return Z


@pytest.mark.parametrize("d", [1, 19, 24])
def test_every_round_leaves_the_minimiser(d):
    T = CHECK + 3
    known, one, z = lessons(d, T), two_classes(d, RIDGE), np.zeros(2)
    for t, (x, i, weight, step) in enumerate(zip(*known, strict=True)):
        scores(one, x, z)
        np.testing.assert_allclose(z, parted(*(part[:t] for part in known))[0] @ x, rtol=0, atol=1e-12)
        learn(one, int(i), x, weight, step)
        if t % 5 == 0 or t > T - 8:
            assert_learnt(one, *(part[: t + 1] for part in known))
    assert one.tally.tolist() == [T, 0, CHECK]
    assert 0.0 < one.drift[0] < 1e-13
    assert one.model.low.ranks[0] == one.low_A.ranks[0] == WHOLE


@pytest.mark.parametrize("d", [19, 40])
def test_a_block_scores_by_the_minimisers_and_leaves_the_last_one(d):
    """Matrices become whole within a block and between two; checks fall due within a block; blocks of any length."""
    cuts = np.cumsum([SHORTEST, 25, 9, 33, SHORTEST - 1, 1, 70, 200, 150, 20])
    known, one = lessons(d, int(cuts[-1]), seed=1), two_classes(d, RIDGE)
    for start, stop in zip([0, *cuts[:-1]], cuts, strict=True):
        Z = play(one, *(part[start:stop] for part in known))
        for t in range(start, stop):
            expected = parted(*(part[:t] for part in known))[0] @ known[0][t]
            np.testing.assert_allclose(Z[t - start], expected, rtol=0, atol=1e-12)
        assert_learnt(one, *(part[:stop] for part in known))
    assert one.tally[SOLVES] == len(known[0])
    assert one.tally[RENEWED] == 0
    assert one.tally[CHECKED] >= CHECK
    assert 0.0 < one.drift[0] < 1e-13


def test_rounds_that_teach_nothing_change_nothing():
    d, T = 19, 150
    known, one = lessons(d, T, seed=2), two_classes(d, RIDGE)
    skip = {*range(0, T, 3), *range(60, 100)}
    play(one, *known, skip=skip)
    kept = [t for t in range(T) if t not in skip]
    assert one.tally[SOLVES] == len(kept)
    assert_learnt(one, *(part[kept] for part in known))


def test_a_block_of_sparse_contexts_goes_round_by_round():
    d, T = 600, 40
    X, *rest = lessons(d, T, seed=3)
    X = as_contexts(np.where(np.arange(d) % 60 == np.arange(T)[:, None], X, 0.0))
    one, step_by_step = two_classes(d, RIDGE), two_classes(d, RIDGE)
    look(one, X, 0)
    assert one.model.ahead.place[ON] == 0
    play(one, X, *rest)
    for x, i, weight, step in zip(X, *rest, strict=True):
        learn(step_by_step, int(i), x, weight, step)
    np.testing.assert_array_equal(weights(one, d), weights(step_by_step, d))


@pytest.mark.parametrize("blocks", [False, True])
def test_a_spoilt_inverse_is_found_and_mended(blocks):
    d, T = 12, CHECK + 40
    known, one = lessons(d, T, seed=4), two_classes(d, RIDGE)
    play(one, *(part[:100] for part in known))
    one.model.P[0] *= 1.0 + 1e-6
    if blocks:
        play(one, *(part[100:] for part in known))
    else:
        for x, i, weight, step in zip(*(part[100:] for part in known), strict=True):
            learn(one, int(i), x, weight, step)
    assert one.tally[RENEWED] == 1
    assert one.drift[0] > 1e-9
    assert_learnt(one, *known)


def test_a_spoilt_solution_is_mended_without_a_new_inverse():
    d = 12
    known, one = lessons(d, CHECK, seed=5), two_classes(d, RIDGE)
    play(one, *(part[:100] for part in known))
    one.model.H[0, -d:] *= 1.0 + 1e-12
    play(one, *(part[100:] for part in known))
    assert one.tally.tolist() == [CHECK, 0, CHECK]
    assert 1e-14 < one.drift[0] < 1e-11
    assert_learnt(one, *known)


@pytest.mark.parametrize("large", [False, True])
def test_it_is_the_programme_of_both_matrices_and_takes_over_from_it(monkeypatch, large):
    """C_k and b_k apart, in the form for any number of classes, small or large: the same scores, and what it learnt."""
    monkeypatch.setattr(frobenius_programme, "LARGE", 0 if large else 2**60)
    d, T = 19, CHECK + 60
    known, both, one = lessons(d, T, seed=6), programme_state(2, d, RIDGE, math.inf), two_classes(d, RIDGE)
    Z, z, cuts = play(one, *known), np.zeros(2), (0, 3, 200, T)
    for t, (x, i, weight, step) in enumerate(zip(*known, strict=True)):
        if t in cuts:
            taken = from_programme(both, d, RIDGE)
            assert told(taken)["solves"] == t
            if t:
                assert_learnt(taken, *(part[:t] for part in known))
            rest = play(taken, *(part[t:] for part in known))
            np.testing.assert_allclose(rest, Z[t:], rtol=0, atol=1e-12)
        unbounded_programme.scores(both, x, z)
        np.testing.assert_allclose(z, Z[t], rtol=0, atol=1e-12)
        unbounded_programme.learn(both, int(i), x, weight, step)
    assert set(told(one)) == {"solves", "binding", "applications", "refactorisations", "stalled", "drift"}


def test_an_empty_block_is_none():
    one = two_classes(8, RIDGE)
    look(one, as_contexts(np.zeros((0, 8))), 0)
    assert one.model.ahead.place[ON] == 0


def test_two_classes_are_one_where_their_matrices_would_begin_as_rows():
    for d, large in ((432, False), (433, True)):
        assert is_large(d) == large
        assert (programme_state(2, d, RIDGE, math.inf).low_N is not None) == large
