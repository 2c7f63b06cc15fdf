"""OnlineMBBM: Algorithm 1 step by step, its cost matrices' class, and Theorem 2 measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from banditlab.boosting.mbbm import OnlineMBBM
from banditlab.boosting.potentials import ExactPotentials
from banditlab.bounds.boosting_mbbm import mbbm_mistakes, mbbm_weight, simulated_excess
from banditlab.checks import run_checks
from banditlab.errors import UsageError
from banditlab.problem import Problem

X = np.ones(1)


def booster(k=3, seed=0, weak_edge=None, **settings):
    settings = {"weak_learner": "simulated", "edge": 0.2, "n_learners": 7} | settings
    settings["weak_learner.edge"] = settings["edge"] if weak_edge is None else weak_edge
    return OnlineMBBM(Problem(1, k, 1.0), np.random.default_rng(seed), **settings)


class Watched:
    """A weak learner that follows a script and keeps what it is handed."""

    needs_label = False

    @staticmethod
    def view(context):
        return context

    def __init__(self, script):
        self.script, self.costs, self.weights = iter(script), [], []

    def predict(self, view, costs=None):
        self.costs.append(costs.copy())
        return next(self.script)

    def update(self, view, label, weight):
        self.weights.append((label, weight))


def lost(votes, label):
    return np.delete(votes, label).max() >= votes[label]


def play(player, labels):
    """Return the 0-1 loss L (ties count) summed over rounds in which learners observe the label first."""
    k, loss = player.problem.n_classes, 0
    for label in labels.tolist():
        player.peek(label)
        decision = player.act(X)
        loss += lost(np.bincount(decision.payload[:-1].astype(int), minlength=k), label)
        player.learn(X, decision, label)
    return loss


# ------------------------------------------------------------------------------------------------------------- Algorithm 1


@pytest.mark.parametrize(("weight_bound", "scale"), [("lemma-10", 1.0), ("trivial", 3.0)])
@pytest.mark.parametrize("cost_rows", ["normalized", "raw"])
def test_follows_algorithm_1(weight_bound, scale, cost_rows):
    N, k, gamma, y = 5, 4, 0.3, 2
    b = booster(k, edge=gamma, n_learners=N, weight_bound=weight_bound, weight_scale=scale, cost_rows=cost_rows)
    votes = [1, 2, 2, 0, 1]
    b.learners = [Watched([l]) for l in votes]
    decision = b.act(X)
    b.learn(X, decision, y)
    phi, s = ExactPotentials(N, k, gamma), np.zeros(k, dtype=np.int64)
    for i, weak in enumerate(b.learners, 1):
        C = np.array([[phi(N - i, s + np.eye(k, dtype=int)[l], r) for l in range(k)] for r in range(k)])
        C -= C.diagonal()[:, None]
        w = C.sum(axis=1, keepdims=True)
        D = C if cost_rows == "raw" else np.divide(C, w, out=np.zeros((k, k)), where=w > 1e-14)
        np.testing.assert_allclose(weak.costs[0], D, atol=1e-12)
        top = k - 1 if weight_bound == "trivial" else mbbm_weight(k, N - i, gamma)
        assert weak.weights == [(y, pytest.approx(scale * w[y, 0] / top, abs=1e-12))]
        s[votes[i - 1]] += 1
    np.testing.assert_array_equal(decision.probabilities, [0.0, 0.5, 0.5, 0.0])
    assert decision.action in (1, 2)
    np.testing.assert_array_equal(decision.payload[:-1], votes)


def test_a_clear_majority_is_played_with_certainty():
    b = booster(3, n_learners=4)
    b.learners = [Watched([l]) for l in (2, 0, 2, 1)]
    np.testing.assert_array_equal(b.act(X).probabilities, [0.0, 0.0, 1.0])


@given(
    k=st.integers(2, 6),
    edge=st.floats(0.01, 0.95),
    sampled=st.booleans(),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=25)
def test_costs_lie_in_the_class_and_weights_in_the_unit_interval(k, edge, sampled, seed):
    N, rng = 9, np.random.default_rng(seed)
    b = booster(k, edge=edge, n_learners=N, potentials="monte-carlo" if sampled else "exact", draws=20)
    votes, label = rng.integers(0, k, N), int(rng.integers(k))
    b.learners = [Watched([int(l)]) for l in votes]
    b.learn(X, b.act(X), label)
    for weak in b.learners:
        (D,), ((_, weight),) = weak.costs, weak.weights
        assert (D.diagonal() == 0.0).all()
        assert (D >= 0.0).all()
        sums = D.sum(axis=1)
        assert (np.isclose(sums, 1.0, rtol=1e-12) | (sums == 0.0)).all()
        assert 0.0 <= weight <= 1.0
        assert (weight > 0.0) == (sums[label] > 0.0)


def test_with_two_classes_it_is_online_bbm():
    """Chen, Lin and Lu's and Beygelzimer's online BBM: the weight is one binomial probability."""
    from math import comb

    N, g = 9, 0.2
    b, p = booster(2, edge=g, n_learners=N, weight_bound="trivial"), (1 + g) / 2
    votes = [0, 0, 1, 0, 1, 1, 1, 0, 0]
    b.learners = [Watched([l]) for l in votes]
    b.learn(X, b.act(X), 0)
    lead = 0
    for i, weak in enumerate(b.learners, 1):
        m = N - i
        c = (m - lead + 1) // 2  # right votes still needed
        chance = comb(m, c) * p**c * (1 - p) ** (m - c) if 0 <= c <= m else 0.0
        assert weak.weights[0][1] == pytest.approx(chance, rel=1e-12)
        lead += 1 if votes[i - 1] == 0 else -1


@pytest.mark.parametrize("potentials", ["monte-carlo", "remembered"])
def test_feedback_may_come_late(potentials):
    """Sampled potentials of a round are made again when its label comes, in whatever order."""
    script = np.random.default_rng(0).integers(0, 3, (2, 7)).tolist()
    weights = []
    for order in ((0, 1), (1, 0)):
        b = booster(3, potentials=potentials, draws=15)
        b.learners = [Watched([script[0][i], script[1][i]]) for i in range(7)]
        decisions = [b.act(X), b.act(X)]
        for t in order:
            b.learn(X, decisions[t], t)
        weights.append([sorted(weak.weights) for weak in b.learners])
    assert weights[0] == weights[1]


def test_sampled_weights_are_at_most_1():
    """Two classes and one draw: a weight is 0 or 1, and its bound is below 1 early on, which an estimate may exceed."""
    b = booster(2, edge=0.02, n_learners=60, potentials="monte-carlo", draws=1)
    b.learners = [Watched([i % 2] * 3) for i in range(60)]
    assert b.weight_bounds[:50].max() < 1.0
    for label in (0, 1, 1):
        b.learn(X, b.act(X), label)
    assert {weight for weak in b.learners[:50] for _, weight in weak.weights} == {0.0, 1.0}


def test_random_scales_are_the_papers_range():
    b = booster(3, n_learners=200, weight_scale="random", weight_bound="trivial")
    assert b.weight_scale == "random"
    assert 0.5 <= b._scales.min() < 1.5
    assert 19.0 < b._scales.max() <= 20.0


# --------------------------------------------------------------------------------------------------------------- Theorem 2


@pytest.mark.parametrize("weight_bound", ["lemma-10", "trivial"])
@pytest.mark.parametrize(
    ("k", "N", "edge", "T"), [(2, 9, 0.2, 500), pytest.param(3, 10, 0.3, 500, marks=pytest.mark.slow), (5, 6, 0.4, 400)]
)
@pytest.mark.few(2)
def test_adversarial_learners_bring_it_to_the_bound_and_not_above(k, N, edge, T, weight_bound):
    """They meet the condition with certainty: so does the theorem. And they leave nothing: it is tight within 3 S sum w."""
    for seed in range(2):
        labels = np.random.default_rng(seed).integers(0, k, T)
        b = booster(k, seed, edge=edge, n_learners=N, behaviour="adversarial", excess=1.0, weight_bound=weight_bound)
        loss = play(b, labels)
        slack = b.weight_bounds.sum()
        assert loss <= mbbm_mistakes(k, N, edge, T, 1.0, b.error_rate, slack)
        assert loss >= b.error_rate * T - 3.0 * slack
        assert loss <= mbbm_mistakes(k, N, edge, T, 1.0)  # Corollary 3


def test_random_learners_stay_below_the_bound():
    """True edge twice the claimed one, as in the proof of Theorem 4; delta = 0.01/N, so one failure in 100 runs is allowed."""
    k, N, edge, T = 3, 9, 0.3, 900
    excess = simulated_excess(k, 2 * edge, edge, 0.01 / N)
    for seed in range(4):
        b = booster(k, seed, edge=edge, n_learners=N, weak_edge=2 * edge)
        loss = play(b, np.random.default_rng(seed).integers(0, k, T))
        bound = mbbm_mistakes(k, N, edge, T, excess, b.error_rate, b.weight_bounds.sum())
        assert loss <= bound
        assert bound < 0.9 * T


@pytest.mark.parametrize("k", [3, 8])
def test_the_error_falls_with_the_number_of_learners_as_the_potential_does(k):
    """Random learners whose edge is the claimed one: mistakes are binomial with the probability phi_N(0)."""
    T, edge = 400, 0.3
    for N in (1, 4, 12, 40):
        b = booster(k, N, edge=edge, n_learners=N, potentials="monte-carlo", draws=1)
        loss, p = play(b, np.random.default_rng(N).integers(0, k, T)), b.error_rate
        assert abs(loss - p * T) <= 4 * np.sqrt(T * p * (1 - p)) + 1


def test_measured_edges_are_the_learners():
    T, N = 1000, 6
    b = booster(4, n_learners=N, edge=0.3, weak_edge=0.5)
    play(b, np.random.default_rng(0).integers(0, 4, T))
    edges = b.diagnostics()
    assert list(edges) == [f"edge.{i}" for i in range(1, N + 1)]
    assert edges["edge.1"] == pytest.approx(0.5, abs=0.12)
    assert np.mean(list(edges.values())) == pytest.approx(0.5, abs=0.06)


# ---------------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        ({"edge": 0.0}, "edge must be a number above 0"),
        ({"edge": 1.5}, r"edge must lie in \[0, 1\]"),
        ({"n_learners": 0}, "n_learners must be at least 1"),
        ({"potentials": "guess"}, "potentials must be one of 'exact', 'monte-carlo', 'remembered'"),
        ({"draws": 0}, "draws must be at least 1"),
        ({"weight_bound": "none"}, "weight_bound must be one of 'lemma-10', 'trivial'"),
        ({"cost_rows": "cooked"}, "cost_rows must be one of 'normalized', 'raw'"),
        ({"weight_scale": -1.0}, "weight_scale must be a number above 0"),
        ({"weak_learner": "simulates"}, "simulated"),
    ],
)
def test_settings_out_of_range(bad, line):
    with pytest.raises(UsageError, match=line):
        booster(3, **({"weak_edge": 0.2} | bad))


@pytest.mark.parametrize("potentials", ["exact", "monte-carlo", "remembered"])
@pytest.mark.slow
def test_conforms(potentials):
    results = run_checks(OnlineMBBM, n_learners=3, weak_learner="forecaster", potentials=potentials)
    assert [str(result) for result in results if result.status != "passed"] == []


@pytest.mark.parametrize("kind", ["exact", "monte-carlo", "remembered"])
def test_saved_it_continues_as_if_nothing_had_happened(tmp_path, kind):
    labels = np.random.default_rng(0).integers(0, 3, 40)
    b = booster(3, potentials=kind, behaviour="adversarial", draws=20)
    play(b, labels[:20])
    b.save(tmp_path / "b.npz")
    again = OnlineMBBM.load(tmp_path / "b.npz")
    assert play(b, labels[20:]) == play(again, labels[20:])
    assert b.diagnostics() == again.diagnostics()
    assert [w.account for w in b.learners] == [w.account for w in again.learners]
