"""Potentials drawn once for each state: against the exact ones, against what must not matter, and inside OnlineMBBM."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from banditlab.boosting import remembered
from banditlab.boosting.mbbm import OnlineMBBM
from banditlab.boosting.potentials import ExactPotentials, SampledPotentials
from banditlab.boosting.remembered import BUCKET, LARGEST, RememberedPotentials, slot_of
from banditlab.errors import UsageError
from banditlab.problem import Problem

pytestmark = pytest.mark.slow  # these potentials are no booster's default, and their kernels take long to compile


def of(seed=1, n_votes=100, k=8, edge=0.1, draws=100):
    phi = RememberedPotentials(n_votes, k, edge, draws)
    phi.redraw(seed)
    return phi


def states(n_votes, k, seed=0, count=25):
    """Yield votes to come, votes (k,) with at least one for the label, and the label."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        m, label = int(rng.integers(n_votes)), int(rng.integers(k))
        votes = rng.multinomial(n_votes - 1 - m, np.full(k, 1 / k))
        votes[label] += 1 + int(rng.integers(3))
        yield m, votes, label


@pytest.mark.parametrize(("k", "edge"), [(2, 0.2), (2, 1.0), (3, 0.1), (4, 0.0), (8, 0.3), (26, 0.05)])
def test_each_is_the_exact_potential_up_to_its_draws(k, edge):
    draws = 4_000
    phi, exact = of(k=k, edge=edge, draws=draws), ExactPotentials(100, k, edge)
    for m, votes, label in [*states(100, k), *states(4, k)]:
        p = exact(m, votes, label)
        assert abs(phi(m, votes, label) - p) <= 4.5 * math.sqrt(max(0.0, p * (1 - p)) / draws) + 1e-12


def test_over_seeds_estimates_scatter_as_independent_draws_do():
    """Mean and variance of the estimates of one state, 50 draws each, are the binomial's; two states' are uncorrelated."""
    votes, other, seeds = np.array([5, 4, 4]), np.array([5, 5, 3]), 800
    p = ExactPotentials(30, 3, 0.2)(12, votes, 0)
    phi, found = of(n_votes=30, k=3, edge=0.2, draws=50), []
    for seed in range(1, seeds + 1):
        phi.redraw(seed)
        found.append((phi(12, votes, 0), phi(12, other, 0)))
    one, two = np.array(found).T
    assert abs(one.mean() - p) <= 4 * math.sqrt(p * (1 - p) / 50 / seeds)
    assert one.var() == pytest.approx(p * (1 - p) / 50, rel=4 * math.sqrt(2 / seeds))
    assert abs(np.corrcoef(one, two)[0, 1]) <= 4 / math.sqrt(seeds)


def test_a_seeds_potentials_are_on_record():
    """A draw of eight classes takes up to seven uniforms, four a call of the generator."""
    phi, others = of(n_votes=30, draws=1_000), [4, 3, 3, 2, 2, 1, 0]
    assert [phi(m, np.array([own, *others]), 0) for m, own in ((9, 6), (17, 7), (25, 8))] == [0.112, 0.057, 0.026]


def test_a_state_keeps_its_potential_whoever_asks_and_when(monkeypatch):
    """Neither the order of the wrong classes, nor that of the questions, nor a table that is too small makes a difference."""
    fresh = {}
    for m, votes, label in states(60, 5, count=60):
        fresh[m, (*votes, label)] = of(n_votes=60, k=5)(m, votes, label)
    monkeypatch.setattr(remembered, "FIRST", 16)
    monkeypatch.setattr(remembered, "MOST", 16)
    small, rng = of(n_votes=60, k=5), np.random.default_rng(3)
    for _ in range(3):
        for m, (*votes, label) in rng.permutation(np.array(list(fresh), dtype=object)).tolist():
            swap = rng.permutation(5)
            assert small(m, np.array(votes)[swap], int(np.flatnonzero(swap == label)[0])) == fresh[m, (*votes, label)]
    assert len(small._names) == 16


def test_the_table_grows_and_keeps_what_it_has(monkeypatch):
    monkeypatch.setattr(remembered, "FIRST", 16)
    phi, asked = of(n_votes=60, k=5), list(states(60, 5, count=60))
    said = [phi(m, votes, label) for m, votes, label in asked]
    assert len(phi._names) > 2 * len(asked)
    kept = phi._kept
    assert [phi(m, votes, label) for m, votes, label in asked] == said
    assert phi._kept <= 1.05 * kept  # a few lose their place in a full bucket


def test_the_potentials_of_a_matrix_are_counted_once(monkeypatch):
    phi = of(n_votes=60, k=5)
    for _ in range(2):
        phi.matrix(20, np.array([9, 7, 4, 2, 1]))
        assert phi._kept == np.count_nonzero(phi._names)


def test_a_new_state_takes_any_place_of_a_full_bucket():
    full, new = np.ones(BUCKET + 1, dtype=np.uint64), np.random.default_rng(0).integers(2, 2**63, 200, dtype=np.uint64)
    assert {slot_of(name, full) for name in new} == {(place, False) for place in range(BUCKET)}


def test_the_table_doubles_when_it_is_half_full_up_to_32_megabytes(monkeypatch):
    monkeypatch.setattr(remembered, "FIRST", 16)
    phi = of(n_votes=10, k=3)
    for kept, size in ((8, 16), (9, 32), (16, 32), (17, 64)):
        phi._kept = kept
        phi._grow()
        assert len(phi._names) == len(phi._known) == size
    half = 1 << 20
    phi._names, phi._known = np.zeros(half, dtype=np.uint64), np.zeros(half)
    for _ in range(2):
        phi._kept = 10**9
        phi._grow()
        assert phi._names.nbytes + phi._known.nbytes == 32 * 2**20


def test_costs_count_the_vote_being_cast_among_those_to_come():
    """As in the authors' code; entries are differences of estimates, so some are negative; the label's own are 0."""
    phi, negative = of(edge=0.01), 0
    for m, votes, label in states(100, 8):
        costs = phi.costs(m, votes, label)
        own = phi(m + 1, votes + np.eye(8, dtype=np.int64)[label], label)
        for l in range(8):
            if votes[label] + (l == label) > 0:
                assert costs[l] == phi(m + 1, votes + np.eye(8, dtype=np.int64)[l], label) - own
        assert costs[label] == 0.0
        negative += int((costs < 0.0).sum())
    assert negative > 0


@pytest.mark.parametrize(
    "kind", [ExactPotentials, lambda *a: SampledPotentials(*a, 50), lambda *a: RememberedPotentials(*a, 50)]
)
def test_the_matrix_is_the_rows_of_all_labels(kind):
    phi = kind(30, 4, 0.2)
    for m, votes, _ in states(30, 4, count=10):
        np.testing.assert_array_equal(phi.matrix(m, votes), [phi.costs(m, votes, r) for r in range(4)])


def test_a_pickle_takes_no_potential_along():
    phi, votes = of(), np.array([3, 1, 1, 0, 0, 0, 0, 0])
    said = phi.costs(50, votes, 0)
    again = pickle.loads(pickle.dumps(phi))
    assert len(pickle.dumps(phi)) < 300
    np.testing.assert_array_equal(again.costs(50, votes, 0), of(0).costs(50, votes, 0))  # 0 is the first seed
    again.redraw(1)
    np.testing.assert_array_equal(again.costs(50, votes, 0), said)
    again.redraw(2)
    assert not np.array_equal(again.costs(50, votes, 0), said)


def test_arguments_out_of_range():
    with pytest.raises(UsageError, match="n_votes must be at least 0"):
        RememberedPotentials(-1, 3, 0.1, 100)
    with pytest.raises(UsageError, match="draws must be at least 1"):
        RememberedPotentials(10, 3, 0.1, 0)
    with pytest.raises(UsageError, match="at most 1,000 votes, got 1,001"):
        RememberedPotentials(LARGEST + 1, 3, 0.1, 1)
    most = RememberedPotentials(LARGEST, 2, 0.0, 1)
    assert most(LARGEST, np.array([1, 0]), 0) in (0.0, 1.0)
    with pytest.raises(UsageError, match=r"m must lie in 0 \.\.\. 11, got 12"):
        RememberedPotentials(10, 3, 0.1, 1).costs(11, np.zeros(3, dtype=np.int64), 0)


# ----------------------------------------------------------------------------------------------------------- in OnlineMBBM


class Scripted:
    """A weak learner that follows a script and keeps the weights it gets."""

    needs_label, reads_costs = False, False

    def __init__(self, said):
        self.said, self.weights = said, []

    @staticmethod
    def view(context):
        return context

    def predict(self, view, costs=None):
        return self.said

    def update(self, view, label, weight):
        self.weights.append(weight)


def test_costs_are_the_seeds_before_any_round_and_after_a_pickle():
    b = OnlineMBBM(Problem(1, 3, 1.0), np.random.default_rng(0), edge=0.2, potentials="remembered", cost_rows="raw",
                   weak_learner="simulated", **{"weak_learner.edge": 0.2})  # fmt: skip
    votes = np.array([4, 3, 3])
    said = b.costs(10, votes)
    np.testing.assert_array_equal(said[1], of(int(b._seed), 100, 3, 0.2).costs(89, votes, 1))
    again = pickle.loads(pickle.dumps(b))
    np.testing.assert_array_equal(again.costs(10, votes), said)
    b.peek(0)
    b.learn(np.ones(1), b.act(np.ones(1)), 0)
    np.testing.assert_array_equal(b.costs(10, votes), said)


def test_no_weight_is_below_the_codes_least():
    """All learners right: early potentials hardly differ, and differences of estimates are as often negative."""
    b = OnlineMBBM(Problem(1, 3, 1.0), np.random.default_rng(0), edge=0.2, potentials="remembered", weight_bound="trivial",
                   weak_learner="simulated", **{"weak_learner.edge": 0.2})  # fmt: skip
    b.learners = [Scripted(0) for _ in range(100)]
    for _ in range(3):
        b.learn(np.ones(1), b.act(np.ones(1)), 0)
    weights, phi = np.array([learner.weights for learner in b.learners]), of(int(b._seed), 100, 3, 0.2)
    assert (weights == weights[:, :1]).all()  # the same states, so the same potentials
    expected = [max(1e-10, phi.costs(99 - i, np.array([i, 0, 0]), 0).sum() / 2.0) for i in range(100)]
    np.testing.assert_array_equal(weights[:, 0], expected)
    assert (weights == 1e-10).any()
    assert weights.max() > 1e-3
