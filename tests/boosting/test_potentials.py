"""Potentials of the 0-1 loss against enumeration, the recursion that defines them, and simulation."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from banditlab.boosting import potentials
from banditlab.boosting.potentials import ExactPotentials, SampledPotentials, count_kernel
from banditlab.bounds.boosting_mbbm import mbbm_error_rate, mbbm_weight
from banditlab.errors import UsageError


def lost(votes, label):
    return max(v for l, v in enumerate(votes) if l != label) >= votes[label]


def enumerated(m, votes, label, k, edge):
    """Sum the 0-1 loss over all k^m ways in which m votes can fall."""
    u = [(1 - edge) / k + edge * (l == label) for l in range(k)]
    total = 0.0
    for fall in itertools.product(range(k), repeat=m):
        after = [v + fall.count(l) for l, v in enumerate(votes)]
        total += lost(after, label) * math.prod(u[l] for l in fall)
    return total


def plus(votes, l):
    return votes + np.eye(len(votes), dtype=np.int64)[l]


def kinds():
    return {"exact": ExactPotentials(30, 4, 0.2), "sampled": SampledPotentials(30, 4, 0.2, 50)}


@pytest.mark.parametrize("edge", [0.0, 0.15, 0.6, 1.0])
@pytest.mark.parametrize(("k", "most"), [(2, 8), (3, 6), (4, 4), (5, 3)])
@pytest.mark.few(6)
def test_equals_enumeration(k, most, edge):
    rng = np.random.default_rng(k)
    phi = ExactPotentials(most, k, edge)
    for _ in range(25):
        m, votes, label = int(rng.integers(most + 1)), rng.integers(0, 4, k), int(rng.integers(k))
        assert phi(m, votes, label) == pytest.approx(enumerated(m, votes, label, k, edge), abs=1e-12)
        costs, own = phi.costs(m, votes, label), enumerated(m, plus(votes, label), label, k, edge)
        for l in range(k):
            assert costs[l] == pytest.approx(enumerated(m, plus(votes, l), label, k, edge) - own, abs=1e-12)


@pytest.mark.parametrize(("k", "edge"), [(2, 0.1), (8, 0.1), (8, 0.3), (26, 0.05)])
def test_satisfies_its_recursion_far_from_what_can_be_enumerated(k, edge):
    """Equation (3): phi_{m+1}(s) = E phi_m(s + e_l), with the differences telling the same as the potentials."""
    rng, phi = np.random.default_rng(0), ExactPotentials(100, k, edge)
    for _ in range(6):
        m, label = int(rng.integers(100)), int(rng.integers(k))
        votes = rng.multinomial(100 - m, np.full(k, 1 / k))
        u = np.full(k, (1 - edge) / k) + edge * (np.arange(k) == label)
        each = np.array([phi(m, plus(votes, l), label) for l in range(k)])
        assert phi(m + 1, votes, label) == pytest.approx(u @ each, abs=1e-12)
        np.testing.assert_allclose(phi.costs(m, votes, label), each - each[label], atol=1e-12)


def test_two_classes_are_a_binomial_tail():
    phi, p = ExactPotentials(100, 2, 0.1), 0.55
    for lead in (-7, 0, 1, 30):
        wins = (100 + -lead) // 2 + 1  # more than half of what makes the difference
        tail = sum(math.comb(100, c) * p**c * (1 - p) ** (100 - c) for c in range(wins, 101))
        assert phi(100, np.array([lead, 0]), 0) == pytest.approx(1 - tail, abs=1e-12)


def test_small_differences_keep_their_digits():
    """phi(s + e_l) - phi(s + e_r) at k = 2 is the probability of one count, however small: no subtraction loses it."""
    phi, p, m = ExactPotentials(60, 2, 0.4), 0.7, 60
    for lead in (1, 21, 41, 59):
        # after e_l the label loses, after e_r it wins: n_r - n_l in {-lead, -lead + 1}, of which one has m's parity
        c = (m - lead + 1) // 2
        exact = math.comb(m, c) * p**c * (1 - p) ** (m - c)
        assert phi.costs(m, np.array([lead, 0]), 0)[1] == pytest.approx(exact, rel=1e-12)


def test_agrees_with_simulation_at_a_hundred_votes():
    exact, sampled = ExactPotentials(100, 8, 0.1), SampledPotentials(100, 8, 0.1, 5_000)
    sampled.redraw(7)
    rng = np.random.default_rng(1)
    for m in (100, 60, 20, 5):
        votes, label = rng.multinomial(100 - m, np.full(8, 1 / 8)), int(rng.integers(8))
        p = exact(m, votes, label)
        assert abs(sampled(m, votes, label) - p) <= 4 * math.sqrt(p * (1 - p) / 5_000)
        q = exact.costs(m, votes, label)
        error = np.sqrt(q * (1 - q) / 5_000)  # every cost is the probability of an event
        assert (np.abs(sampled.costs(m, votes, label) - q) <= 4 * error).all()


@pytest.mark.parametrize("kind", ["exact", "sampled"])
def test_potentials_are_proper_and_symmetric(kind):
    phi, rng = kinds()[kind], np.random.default_rng(3)
    for _ in range(40):
        m, votes, label = int(rng.integers(31)), rng.integers(0, 9, 4), int(rng.integers(4))
        costs = phi.costs(m, votes, label)
        assert costs[label] == 0.0
        assert (costs >= 0.0).all()
        if kind == "exact":
            swap = rng.permutation(4)
            moved = phi.costs(m, votes[swap], int(np.flatnonzero(swap == label)[0]))
            np.testing.assert_array_equal(moved, costs[swap])


def test_no_votes_to_come_is_the_loss_itself():
    for phi in kinds().values():
        for votes in itertools.product(range(3), repeat=4):
            s = np.array(votes)
            assert [phi(0, s, r) for r in range(4)] == [float(lost(votes, r)) for r in range(4)]


def test_a_sample_of_no_votes_to_come_has_the_costs_themselves():
    exact, sampled = ExactPotentials(5, 3, 0.2), SampledPotentials(5, 3, 0.2, 4)
    for votes in itertools.product(range(3), repeat=3):
        for label in range(3):
            s = np.array(votes)
            loss = [float(lost(plus(s, l), label)) for l in range(3)]
            expected = np.array(loss) - loss[label]
            np.testing.assert_array_equal(sampled.costs(0, s, label), expected)
            np.testing.assert_allclose(exact.costs(0, s, label), expected, atol=1e-15)


def test_votes_to_come_are_counted_by_their_uniforms():
    """The favoured class has [0, 1/2), the others a quarter each; the votes of m to come are the first m."""
    top, counts = 1.0 - 2.0**-53, np.full((3, 4, 3), 7)
    uniforms = np.array([[0.0, 0.49], [0.5, 0.5], [0.74, 0.75], [top, 0.76]])
    count_kernel(uniforms, 0.5, counts)
    assert counts[0].tolist() == [[0, 0, 0]] * 4
    assert counts[1].tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert counts[2].tolist() == [[2, 0, 0], [0, 2, 0], [0, 1, 1], [0, 0, 2]]
    count_kernel(np.full((4, 2), top), 0.25 - 2.0**-54, counts)  # whose share of the rest is rounded to 1
    assert counts[2].tolist() == [[0, 0, 2]] * 4


def test_memory_changes_no_number_and_is_bounded(monkeypatch):
    monkeypatch.setattr(potentials, "MEMO", 5)
    forgetful, fresh = ExactPotentials(20, 3, 0.2), ExactPotentials(20, 3, 0.2)
    rng = np.random.default_rng(0)
    for _ in range(60):
        m, votes = int(rng.integers(21)), rng.integers(0, 4, 3)
        np.testing.assert_array_equal(forgetful.costs(m, votes, 1), fresh.costs(m, votes, 1))
        fresh._memo.clear()
    assert len(forgetful._memo) == 5


def test_a_pickle_remembers_nothing_and_says_the_same():
    phi, votes = ExactPotentials(20, 3, 0.2), np.array([2, 0, 1])
    said = phi.costs(9, votes, 1)
    size = len(pickle.dumps(phi))
    phi.costs(12, votes, 1)
    assert len(pickle.dumps(phi)) == size < 200
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(phi)).costs(9, votes, 1), said)


def test_the_same_seed_draws_the_same():
    a, b, votes = SampledPotentials(20, 3, 0.1, 30), SampledPotentials(20, 3, 0.1, 30), np.array([2, 1, 1])
    a.redraw(0)
    np.testing.assert_array_equal(a.costs(9, votes, 0), b.costs(9, votes, 0))  # 0 is the first seed
    a.redraw(5)
    seen = a.costs(9, votes, 0)
    b.redraw(6)
    assert not np.array_equal(b.costs(9, votes, 0), seen)
    b.redraw(5)
    np.testing.assert_array_equal(b.costs(9, votes, 0), seen)


@pytest.mark.parametrize("phi", kinds().values(), ids=kinds())
@pytest.mark.parametrize("m", [-1, 31])
def test_only_votes_the_tables_hold(phi, m):
    with pytest.raises(UsageError, match=r"m must lie in 0 \.\.\. 30"):
        phi(m, np.zeros(4, dtype=np.int64), 0)
    with pytest.raises(UsageError, match=r"m must lie in 0 \.\.\. 30"):
        phi.costs(m, np.zeros(4, dtype=np.int64), 0)


# ------------------------------------------------------------------------------------------------------------- Lemmas 9, 10


@pytest.mark.parametrize("k", [2, 3, 8])
@pytest.mark.parametrize("edge", [0.05, 0.2, 0.5])
def test_lemma_9(k, edge):
    phi, none = ExactPotentials(100, k, edge), np.zeros(k, dtype=np.int64)
    for n in (1, 4, 15, 40, 100):
        assert phi(n, none, 0) <= mbbm_error_rate(k, n, edge) + 1e-12


def all_votes(k, n):
    """Return every way in which n votes can have fallen on k classes, up to the order of the wrong ones."""
    for first in range(n + 1):
        for rest in itertools.combinations_with_replacement(range(1, k), n - first):
            others = sorted(rest.count(l) for l in range(1, k))
            yield (first, *others)


@pytest.mark.parametrize("edge", [0.05, 0.3, 0.8])
@pytest.mark.parametrize(("k", "n"), [(2, 12), (3, 12), (4, 8), (6, 5)])
def test_lemma_10_against_the_largest_weight_over_all_votes(k, n, edge):
    phi = ExactPotentials(n, k, edge)
    for i in range(1, n + 1):
        largest = max(phi.costs(n - i, np.array(s), 0).sum() for s in set(all_votes(k, i - 1)))
        assert largest <= mbbm_weight(k, n - i, edge) + 1e-12
        assert mbbm_weight(k, n - i, edge) <= k - 1


def test_lemma_10_is_twice_the_largest_weight_of_two_classes():
    """At k = 2 a weight is the probability of one place of the walk: of two neighbours parity leaves one."""
    phi = ExactPotentials(9, 2, 0.1)
    for m in range(10):
        largest = max(phi.costs(m, np.array([0, d]), 0).sum() for d in range(-10, 11))
        assert mbbm_weight(2, m, 0.1) == pytest.approx(min(1.0, 2 * largest), rel=1e-12)


def test_lemma_10_has_its_rate_with_a_constant_below_04():
    for k in (2, 3, 8, 26):
        for edge in (0.01, 0.1, 0.3, 0.49):
            for m in (1, 5, 30, 200):
                assert mbbm_weight(k, m, edge) <= 0.4 * k**2.5 / math.sqrt(m)
