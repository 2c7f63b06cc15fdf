"""StackCB's trees against a plain implementation in numpy, their schedule, and rare classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from banditlab.agents.stacked.experts import LINEAR
from banditlab.agents.stacked.stackcb import Memory, StackCB
from banditlab.agents.stacked.trees import (
    CLIP,
    COLUMNS,
    CUTS,
    DEPTH,
    FIRST_FIT,
    LEAST_ROUNDS,
    LEAVES,
    ONLINE,
    SAMPLE,
    SHRINK,
    STEP,
    TREES,
    empty_trees,
    fit_trees,
    read_trees,
    reset_trees,
    update_trees,
)
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem

SMALL = {"blocks": 0, "features": 16}


def make(K, d, **settings):
    return StackCB(Problem(d, K, 9.0), np.random.default_rng(7), **{**SMALL, **settings})


def ring(X, action, hit, first, N):
    """Return a memory of N rounds with these rounds, from number `first` on, around its end."""
    places, d = (first + np.arange(len(X))) % N, X.shape[1]
    memory = Memory(np.zeros((N, d)), np.zeros(N, np.int64), np.zeros(N, np.bool_))
    memory.X[places], memory.action[places], memory.hit[places] = X, action, hit
    return memory


def boosted(trees, X, model, target):
    """Return the margins (n, M) of the rows for all models; check that every split has the largest gain.

    Cuts often have equal gains, and rounding decides between them: the test follows those that were chosen.
    """
    n, M = len(X), len(trees.base)
    hits, rounds = (np.bincount(model, weights=w, minlength=M) for w in (target, np.ones(n)))
    margins = np.tile(np.log((hits + 0.5) / (rounds - hits + 0.5)), (n, 1))
    sample = np.sort(X[np.arange(SAMPLE) * n // SAMPLE], axis=0)
    for tree in range(TREES):
        p, leaf = expit(margins[np.arange(n), model]), np.zeros(n, int)
        g, h = p - target, p * (1 - p)
        for level in range(DEPTH):
            column, cut = trees.column[tree, level], trees.cut[tree, level]
            cuts = [
                X[:, j] > sample[(b + 1) * SAMPLE // (CUTS + 1), j] for j in trees.columns[tree] for b in range(CUTS)
            ]
            best, right = max(gain(side, leaf, model, g, h) for side in cuts), X[:, column] > cut
            assert gain(right, leaf, model, g, h) == pytest.approx(best, abs=1e-8)
            assert np.isfinite(cut) == (best > 1e-9)
            leaf = 2 * leaf + right
        for k in range(M):
            for l in range(LEAVES):
                own = (leaf == l) & (model == k)
                value = -STEP * g[own].sum() / (h[own].sum() + 1)
                assert trees.value[tree, l, k] == pytest.approx(value, abs=1e-12)
                margins[leaf == l, k] += value
    return np.clip(margins, -CLIP, CLIP)


def gain(right, leaf, model, g, h):
    """The gain of a cut, over the pairs of leaf and model with enough rounds."""
    total = 0.0
    for l, k in {*zip(leaf.tolist(), model.tolist(), strict=True)}:
        own = (leaf == l) & (model == k)
        if own.sum() >= LEAST_ROUNDS:
            parts = [(g[side].sum(), h[side].sum()) for side in (own & right, own & ~right, own)]
            total += np.dot([G**2 / (H + 1) for G, H in parts], [1, 1, -1])
    return total


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("d", [3, 20])
@pytest.mark.few(1)
def test_trees_equal_a_plain_implementation(d, shared):
    """Columns of numbers, of few values, and a constant one; rounds around the end of the ring."""
    rng, n, N, K = np.random.default_rng(d), 300, 400, 1 if shared else 3
    X = rng.standard_normal((n, d))
    X[:, 1], X[:, 2] = rng.integers(0, 3, n), 0.5
    action, hit = rng.integers(0, 2 if shared else K, n), (X[:, 0] * (X[:, 1] - 1) > 0) ^ (rng.random(n) < 0.1)
    trees, like, found = empty_trees(rng, d, K, N), rng.standard_normal(K), np.zeros((n, K))
    fit_trees(trees, ring(X, action, hit, N - 40, N), N - 40, n, shared)
    for x, out in zip(X, found, strict=True):
        read_trees(trees, as_contexts(x), like, out)
    model = np.zeros(n, int) if shared else action
    target = (hit == (action == 0) if shared else hit).astype(float)
    weight = np.bincount(model, minlength=K) / (np.bincount(model, minlength=K) + SHRINK)
    expected = weight * boosted(trees, X, model, target) + (1 - weight) * like
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert np.ptp(found, axis=0).min() > 0.5
    assert all(len(set(own)) == min(COLUMNS, d) for own in trees.columns.tolist())


@pytest.mark.parametrize("shared", [False, True])
def test_rounds_after_the_fit_update_the_leaves_of_their_context(shared):
    """60 rounds over the end of the ring, against the values and curvatures of the fit, updated in numpy."""
    rng, n, N, K = np.random.default_rng(1), 540, 600, 1 if shared else 3
    X, action, hit = rng.standard_normal((N, 4)), rng.integers(0, 2 if shared else K, N), rng.random(N) < 0.6
    memory, trees = ring(X, action, hit, 100, N), empty_trees(rng, 4, K, N)
    fit_trees(trees, memory, 100, n, shared)
    value, curvature, rounds = trees.value.copy(), trees.curvature.copy(), trees.rounds.copy()
    every, levels = np.arange(TREES), 2 ** np.arange(DEPTH)[::-1]
    for i in range(n, N):
        update_trees(trees, memory, (100 + i + 1) % N, i + 1, shared)
        k, target = (0, hit[i] == (action[i] == 0)) if shared else (action[i], hit[i])
        leaf = (X[i, trees.column] > trees.cut) @ levels
        p = expit(trees.base[k] + value[every, leaf, k].sum())
        curvature[every, leaf, k] += p * (1 - p)
        value[every, leaf, k] += ONLINE * (target - p) / curvature[every, leaf, k]
        rounds[k] += 1
    np.testing.assert_allclose(trees.value, value, atol=1e-12)
    np.testing.assert_allclose(trees.curvature, curvature, atol=1e-12)
    np.testing.assert_array_equal(trees.rounds, rounds)
    x, z = as_contexts(X[0]), np.zeros(K)
    read_trees(trees, x, np.zeros(K), z)
    expected = trees.base + value[every, (X[0, trees.column] > trees.cut) @ levels].sum(axis=0)
    np.testing.assert_allclose(z, np.clip(expected, -CLIP, CLIP) * rounds / (rounds + SHRINK), atol=1e-12)


def test_a_class_that_was_not_chosen_has_the_other_experts_margin():
    rng, n = np.random.default_rng(0), 600
    memory = ring(rng.random((n, 2)), np.zeros(n, int), np.ones(n, bool), 0, n)
    trees, z, like = empty_trees(rng, 2, 2, n), np.full(2, 9.0), np.array([0.3, -0.2])
    x = as_contexts(np.zeros(2))
    read_trees(trees, x, like, z)
    assert z.tolist() == [0.0, 0.0]  # before the first fit
    fit_trees(trees, memory, 0, n, False)
    read_trees(trees, x, like, z)
    assert z[1] == like[1]
    assert z[0] > 1.0


def test_trees_are_fitted_after_512_rounds_whenever_these_have_doubled_and_after_a_reset():
    rng, N = np.random.default_rng(0), 40
    memory = ring(rng.random((N, 1)), np.zeros(N, int), rng.random(N) < 0.5, 0, N)
    trees, due = empty_trees(rng, 1, 1, N), []
    for n in range(1, 5000):
        before = trees.fits[0]
        update_trees(trees, memory, n % N, n, False)
        if trees.fits[0] > before:
            due.append(n)
        if n == 700:
            reset_trees(trees)
    assert due == [512, 701, 1024, 2048, 4096]
    assert FIRST_FIT == 512


@pytest.mark.slow
def test_contract_across_two_fits(one_bit_contract, stream):
    X, y = stream(3, 4, 1100, noise=0.3)
    one_bit_contract(lambda: make(3, 4), X, y)
    agent = make(3, 4)
    agent.play_block(X, y, Trace.empty(1100))
    assert agent.state.trees.fits[0] == 2


@pytest.mark.slow
def test_labels_that_only_trees_separate_are_learnt():
    """The parity of the signs of two columns of eight, without Fourier blocks: the linear experts do not learn it."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 8))
    y, trace, agent = ((X[:, 1] > 0) ^ (X[:, 5] > 0)).astype(np.int64), Trace.empty(3000), make(2, 8)
    agent.play_block(X, y, trace)
    assert trace.correct[:512].mean() < 0.6
    assert trace.correct[-900:].mean() > 0.9
    assert agent.state.stack.theta[LINEAR + 1] > 0.5


@pytest.mark.slow
def test_a_change_resets_the_trees(stream):
    X, y = stream(3, 4, 1000)
    agent = make(3, 4)
    agent.play_block(X[:700], y[:700], Trace.empty(700))
    assert agent.state.trees.fits[0] == 1
    for x, label in zip(X[700:], (y[700:] + 1) % 3, strict=True):
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == label)
        if agent.diagnostics()["changes"]:
            break
    assert agent.diagnostics()["rounds_since"] < FIRST_FIT
    assert agent.state.trees.fits[0] == 0


def test_diagonal_matrices_have_no_trees():
    assert make(3, 4, second_order="diagonal").state.trees is None
