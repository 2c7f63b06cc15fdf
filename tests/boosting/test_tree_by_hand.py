"""The kernels of the compiled tree by hand: where an example goes, what leaves make of weights, what splits send where."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from banditlab.boosting.trees.hoeffding import Arrays, HoeffdingTree
from banditlab.boosting.trees.hoeffding_kernels import (
    ATTEMPT,
    CHILD,
    CLASS,
    FEATURE,
    KIND,
    LEAF,
    NODES_USED,
    NOMINAL,
    NUMERIC,
    SCRATCH,
    SEAT,
    SPLITS,
    THRESHOLD,
    attempt,
    best_threshold,
    category_gain,
    coded_share,
    entropy,
    gaussian_share,
    leaf_of,
    learn,
    shares,
    split_nominal,
    split_numeric,
    take_seat,
)
from banditlab.boosting.trees.saved_tree import require_tree
from banditlab.boosting.trees.tuned_tree import category
from banditlab.errors import UsageError
from banditlab.problem import Problem

TUNING = [5.0, 0.5, 0.9, 0.0, 0.99, 0.0, 0.0]
"""Grace period, split confidence, tie threshold, prior, largest share; neither spreads nor splits are the authors' code's."""
SHARP = 1e-300


def plain(kernel):
    """Return a kernel as the Python function it was made of: helpers that are put into kernels need no compiling here."""
    return getattr(kernel, "py_func", kernel)


# ------------------------------------------------------------------------------------------------- where an example goes


def branches(first, left, right, last):
    """Return nodes and values: categories 0 and 3 have leaves 1 and 5, category 1 a split at 0.5 into 3 and 4, 2 nothing."""
    nodes = np.full((6, CHILD + 4), -1)
    nodes[:, KIND] = LEAF
    nodes[0, [KIND, FEATURE]], nodes[0, CHILD:] = (NOMINAL, 0), (1, 2, -1, 5)
    nodes[2, [KIND, FEATURE]], nodes[2, CHILD : CHILD + 2] = (NUMERIC, 1), (3, 4)
    values = np.zeros((6, CLASS + 2))
    values[2, THRESHOLD] = 0.5
    values[[0, 1, 3, 4, 5], CLASS:] = [3.0, 1.0], [-1.0, first], [left, -1.0], [-1.0, right], last
    return nodes, values


@pytest.mark.parametrize(
    ("weights", "x", "leaf"),
    [
        ((5.0, 2.0, 2.5, (1.0, 1.0)), (2.0, 0.5), 1),  # 5 is more than 2 + 2.5: classes not seen weigh nothing
        ((4.4, 2.0, 2.5, (1.0, 1.0)), (2.0, 0.5), 3),  # what is at the threshold goes to the left
        ((4.4, 2.0, 2.5, (1.0, 1.0)), (2.0, np.nextafter(0.5, 1.0)), 4),
        ((4.5, 2.0, 2.5, (1.0, 3.5)), (2.0, 0.5), 1),  # of equals the first
        ((0.0, 0.0, 0.0, (0.0, 0.0)), (2.0, 0.5), 1),
        ((0.0, 0.0, 0.0, (0.0, 0.5)), (2.0, 0.5), 5),
        ((9.0, 2.0, 2.5, (1.0, 1.0)), (3.0, 0.5), 5),  # a category that was seen has its own leaf
        ((9.0, 2.0, 2.5, (1.0, 1.0)), (1.0, 0.7), 4),
    ],
)
def test_a_category_that_is_new_goes_where_most_have_gone(weights, x, leaf):
    nodes, values = branches(*weights)
    assert leaf_of(np.array(x), nodes, values, False) == leaf
    assert leaf_of(np.array(x), nodes, values, True) == (0 if x[0] == 2.0 else leaf)
    q, tuning = np.zeros(2), np.array(TUNING)
    tuning[SPLITS] = 1.0
    shares(np.array(x), nodes, values, tuning, q)
    if x[0] == 2.0:  # the authors' code: what the split itself has counted
        assert q.tolist() == [0.75, 0.25]
    else:
        assert q.tolist() == [0.0, 1.0] if leaf != 5 else [0.5, 0.5]


@pytest.mark.parametrize(
    ("prior", "weights", "found"),
    [
        (1.0, [0.0, 2.0], [0.0, 1.0]),  # a class that weighs nothing was seen
        (1.0, [0.5, 1.5], [0.25, 0.75]),
        (3.0, [-1.0, 1.0], [0.75, 0.25]),
        (0.0, [0.25, 0.25], [0.5, 0.5]),
        (0.0, [-1.0, 0.125], [0.0, 1.0]),
        (0.0, [-1.0, -1.0], [1.0, 1.0]),
        (0.0, [0.0, 0.0], [1.0, 1.0]),
    ],
)
def test_a_leafs_shares(prior, weights, found):
    nodes, values, q = np.full((1, CHILD + 2), -1), np.array([[0.0, 0.0, *weights]]), np.zeros(2)
    nodes[0, KIND] = LEAF
    shares(np.zeros(1), nodes, values, np.array([*TUNING[:3], prior, *TUNING[4:]]), q)
    assert q.tolist() == found


# ----------------------------------------------------------------------------------------- what splits gain and send where


def test_entropy_is_in_bits_and_of_shares():
    for weights, bits in (
        ([0.0, 0.0], 0.0),
        ([5.0, 0.0], 0.0),
        ([0.2, 0.2], 1.0),
        ([3.0, 1.0], 2.0 - 0.75 * math.log2(3.0)),
        ([3e-3, 1e-3], 2.0 - 0.75 * math.log2(3.0)),
        ([7.0, 7.0, 0.0, 7.0, 7.0], 2.0),
    ):
        assert plain(entropy)(np.array(weights)) == pytest.approx(bits, abs=1e-12)


@pytest.mark.parametrize(
    ("at", "n", "squares", "share"),
    [
        (0.9, 5.0, 4.0, 0.0),
        (1.0, 5.0, 4.0, norm.cdf(-1.0)),  # the least value itself is within the range
        (2.5, 5.0, 4.0, norm.cdf(0.5)),
        (3.0, 5.0, 4.0, 1.0),
        (2.5, 3.0, 0.5, norm.cdf(1.0)),
        (2.5, 1.5, 0.5, norm.cdf(0.5)),
        (2.5, 1.0, 4.0, 0.0),  # one example's variance, and one that is nothing
        (2.5, 2.0, 0.0, 0.0),
    ],
)
def test_a_classs_share_below_a_threshold(at, n, squares, share):
    """Mean 2, values from 1 to 3."""
    assert plain(gaussian_share)(at, n, 2.0, squares, 1.0, 3.0) == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize(
    ("at", "squares", "fresh", "before", "share", "after"),
    [
        (0.9, 1.0, True, 0.04, 0.0, 0.04),
        (3.0, 1.0, True, 0.04, 1.0, 0.04),
        (2.5, 1.0, True, 0.04, norm.cdf(1.0), 0.25),
        (2.5, 1.0, False, 0.04, norm.cdf(2.5), 0.25),  # the variance of the attempt before
        (1.0, 1.0, True, 0.04, norm.cdf(-2.0), 0.25),
        (2.5, 1.0, False, 0.0, 0.5, 0.25),
        (2.5, 0.0, True, 0.04, 1.0, 1e-12),
    ],
)
def test_a_classs_share_in_the_authors_code(at, squares, fresh, before, share, after):
    """Weight 4, mean 2, values from 1 to 3."""
    spreads = np.array([9.0, before])
    assert plain(coded_share)(at, 4.0, 2.0, squares, 1.0, 3.0, fresh, spreads, 1) == pytest.approx(share, rel=1e-12)
    assert spreads.tolist() == [9.0, after]


def two_classes(one, other, lows, highs):
    """Return the record of two classes of these weights on one numeric column, each with mean and sum of squares 0.1."""
    return np.array([one, other, 0.1, 0.1, 0.1, 0.1, *lows, *highs, 0.0, 0.0])


@pytest.mark.parametrize(("other", "splits"), [(1.0, False), (2.0, True)])
def test_more_than_a_hundredth_goes_two_ways(other, splits):
    one = 100.0 - other
    record, kept = two_classes(one, other, (0.0, 10.0), (0.5, 10.0)), np.zeros(2)
    before = plain(entropy)(np.array([one, other]))
    gain, at = best_threshold(record, 0, 2, 1, before, False, np.zeros(2), np.zeros(2), kept)
    assert gain == (pytest.approx(before) if splits else -np.inf)
    assert at == pytest.approx(10.0 / 11.0)  # of equals the first
    if splits:
        assert kept.tolist() == [one, 0.0]
    for scale in (1.0, 1e-3):  # weights count by their shares
        table = scale * np.array([100.0 - other, other, 100.0 - other, 0.0, 0.0, other])
        gain = category_gain(table, 0, 2, 2, 0, 2, before, np.zeros(2))
        assert gain == (pytest.approx(before) if splits else -np.inf)


def test_values_too_near_for_a_threshold_between_them_are_one():
    near = np.nextafter(1.0, 2.0)
    record = two_classes(5.0, 5.0, (1.0, near), (1.0, near))
    gain, at = best_threshold(record, 0, 2, 1, 1.0, False, *np.zeros((3, 2)))
    assert gain == -np.inf
    assert math.isnan(at)


def arrays(rows, K, V=2):
    """Return nodes and values in which nothing is as a leaf has it, but for the root, and sizes."""
    nodes, values = np.full((rows, CHILD + V), 7), np.full((rows, CLASS + K), 9.0)
    nodes[0], nodes[0, KIND] = -1, LEAF
    return nodes, values, np.array([1, 0, -1])


def test_a_numeric_split_gives_each_side_the_classes_that_are_there():
    """At 2, of values in [0, 4], none, [5, 5], [0, 2] and [2, 3]: what is at the threshold is on its left."""
    K = 5
    record = np.zeros(K + 5 * K)
    record[:K] = 4.0, 0.0, 1.0, 3.0, 2.0
    record[3 * K : 4 * K], record[4 * K : 5 * K] = (0.0, 0.0, 5.0, 0.0, 2.0), (4.0, 0.0, 5.0, 2.0, 3.0)
    nodes, values, sizes = arrays(4, K)
    split_numeric(0, 0, 2.0, np.array([1.5, 0.0, 0.0, 3.0, 0.25]), record, 1, nodes, values, sizes)
    assert nodes[:3].tolist() == [[NUMERIC, 0, -1, 1, 2], [LEAF, -1, -1, -1, -1], [LEAF, -1, -1, -1, -1]]
    assert values[0, THRESHOLD] == 2.0
    assert values[1, ATTEMPT:].tolist() == [4.75, 1.5, -1.0, -1.0, 3.0, 0.25]
    assert values[2, ATTEMPT:].tolist() == [5.25, 2.5, -1.0, 1.0, -1.0, 1.75]
    assert (nodes[3] == 7).all()
    assert sizes.tolist() == [3, 0, -1]


@pytest.mark.parametrize(("coded", "children"), [(False, [1, -1, 2]), (True, [1, 2, -1])])
def test_a_nominal_split_has_a_leaf_for_each_category_seen(coded, children):
    """The second of two columns of three categories, of which the middle one was not seen."""
    record = np.zeros(2 + 2 * 6)
    record[2 + 3], record[2 + 6 + 5] = 1.0, 2.5
    nodes, values, sizes = arrays(4, 2, V=3)
    split_nominal(0, 1, 3, 6, record, 0, 6, coded, nodes, values, sizes)
    assert nodes[:3].tolist() == [[NOMINAL, 1, -1, *children], [LEAF, *[-1] * 5], [LEAF, *[-1] * 5]]
    assert values[1, ATTEMPT:].tolist() == [1.0, 1.0, -1.0]
    assert values[2, ATTEMPT:].tolist() == [2.5, -1.0, 2.5]
    assert sizes.tolist() == [3, 0, -1]


HALF = math.sqrt(math.log(2.0) / (2.0 * 8.0))
"""The Hoeffding bound of two classes, of weight 8 and confidence 1/2, in bits; of three it is log2(3) times that."""


@pytest.mark.parametrize(
    ("third", "tie", "confidence", "splits"),
    [
        (-1.0, 1.01 * HALF, 0.5, True),
        (-1.0, HALF, 0.5, False),
        (-1.0, 0.99 * HALF, 0.5, False),
        (0.0, 1.01 * HALF, 0.5, False),  # a class that weighs nothing is one, though, once it was seen
        (0.0, 1.01 * math.log2(3.0) * HALF, 0.5, True),
        (0.0, 0.99 * math.log2(3.0) * HALF, 0.5, False),
        (-1.0, 0.0, 1.0, False),  # a bound of 0, which a lead of 0 does not exceed
    ],
)
def test_a_tie_is_broken_once_the_bound_is_below_its_threshold(third, tie, confidence, splits):
    """Two columns that say the same, class 0 at 0 and class 1 at 1: the lead is 0."""
    K, d = 3, 2
    record = np.zeros(K + 5 * K * d)
    record[:2] = 3.0, 5.0
    for part in (0, 2, 3):  # means, least and largest values
        record[K + part * K * d + d : K + part * K * d + 2 * d] = 1.0
    nodes, values, sizes = arrays(4, K)
    nodes[0, SEAT], values[0, CLASS:] = 0, (3.0, 5.0, third)
    tuning, scratch = np.array([5.0, confidence, tie, *TUNING[3:]]), np.zeros((SCRATCH, K))
    attempt(0, 8.0, tuning, np.array([0]), d, nodes, values, record, sizes, scratch)
    if splits:
        assert nodes[0].tolist() == [NUMERIC, 1, -1, 1, 2]  # of equals the last
        assert values[1:3, CLASS:].tolist() == [[3.0, -1.0, -1.0], [-1.0, 5.0, -1.0]]
    else:
        assert nodes[0].tolist() == [LEAF, -1, 0, -1, -1]
        assert values[0, CLASS:].tolist() == [3.0, 5.0, third]


@pytest.mark.parametrize("coded", [False, True])
def test_a_leaf_whose_columns_are_one_point_forgets_or_closes(coded):
    record = two_classes(3.0, 5.0, (1.0, 1.0), (1.0, 1.0))
    nodes, values, sizes = arrays(4, 2)
    nodes[0, SEAT], values[0, CLASS:] = 0, (3.0, 5.0)
    tuning, scratch = np.array([*TUNING[:6], float(coded)]), np.zeros((SCRATCH, 2))
    attempt(0, 8.0, tuning, np.array([0]), 1, nodes, values, record, sizes, scratch)
    assert nodes[0].tolist() == [LEAF, -1, -2 if coded else -1, -1, -1]  # -2 in every file that was saved
    assert values[0, CLASS:].tolist() == ([-1.0, -1.0] if coded else [3.0, 5.0])
    assert sizes[NODES_USED] == 1


# --------------------------------------------------------------------------------------------------- what a leaf makes of one


@pytest.mark.parametrize(
    ("known", "example", "tuning", "weights", "seat"),
    [
        # class 0 weighs nothing, and was seen: no prior; a grace period of 5 has not passed
        ([0.0, 2.0], (0, 2.0), [5.0, 0.5, 0.9, 1.0, 0.99, 0.0, 0.0], [2.0, 2.0], 0),
        ([-1.0, 2.0], (0, 1.5), [5.0, 0.5, 0.9, 1.0, 0.99, 0.0, 0.0], [2.5, 2.0], 0),
        # one class has weight: nothing to attempt, nothing to forget; the authors' code counts both, and closes
        ([0.0, -1.0], (1, 9.0), [5.0, 0.5, 0.9, 0.0, 0.99, 0.0, 0.0], [0.0, 9.0], 0),
        ([0.0, -1.0], (1, 9.0), [5.0, 0.5, 0.9, 0.0, 1.0, 0.0, 1.0], [-1.0, -1.0], -2),
        ([-1.0, -1.0], (1, 9.0), [5.0, 0.5, 0.9, 0.0, 1.0, 0.0, 1.0], [-1.0, 9.0], 0),
        # two of weights below 1: an attempt, after which what nothing splits forgets
        ([0.6, -1.0], (1, 0.9), [1.0, 0.9, 0.9, 0.0, 0.99, 0.0, 0.0], [0.6, 0.9], -1),
        ([0.6, -1.0], (1, 0.4), [1.0, 0.9, 0.9, 0.0, 0.99, 0.0, 0.0], [0.6, 0.4], -1),  # the grace period's weight
        ([0.6, -1.0], (1, 0.3), [1.0, 0.9, 0.9, 0.0, 0.99, 0.0, 0.0], [0.6, 0.3], 0),
        # a share above the largest forgets, one at it does not: no tie, no lead, so the leaf stays
        ([0.5, 0.5, 0.5, -1.0], (3, 0.5), [1.0, 0.3, SHARP, 0.0, 0.25, 0.0, 0.0], [0.5] * 4, 0),
        ([0.5, 0.5, 0.5, -1.0], (3, 0.5), [1.0, 0.3, SHARP, 0.0, 0.3, 0.0, 0.0], [0.5] * 4, 0),
        ([0.5, 0.5, 0.5, -1.0], (3, 0.5), [1.0, 0.3, SHARP, 0.0, 0.24, 0.0, 0.0], [0.5] * 4, -1),
    ],
)
def test_an_example_at_a_leaf(known, example, tuning, weights, seat):
    K, (y, weight) = len(known), example
    state = Arrays.of(K, 1, [], tuning)
    assert state.nodes[0].tolist() == [LEAF, -1, -1, -1, -1]
    assert state.values[0].tolist() == [0.0, 0.0, *[-1.0] * K]
    state.values[0, CLASS:] = known
    assert learn(np.zeros(1), y, weight, np.array([0]), *state, np.zeros((SCRATCH, K)))
    assert state.values[0, CLASS:].tolist() == weights
    assert state.nodes[0].tolist() == [LEAF, -1, seat, -1, -1]
    tried = sum(max(w, 0.0) for w in known) + weight >= tuning[0] - 1e-9
    assert state.values[0, ATTEMPT] == pytest.approx(sum(max(w, 0.0) for w in known) + weight if tried else 0.0)
    assert state.sizes.tolist() == [1, 1, -1 if seat == 0 else 0]  # a seat given back is the next one's


def test_seats_are_taken_again_before_new_ones_and_cleared():
    seen, sizes = np.full((4, 2), 7.0), np.array([1, 3, 0])
    seen[0, 0], seen[2, 0] = 2.0, -1.0
    assert plain(take_seat)(seen, sizes) == 0
    assert sizes.tolist() == [1, 3, 2]
    assert plain(take_seat)(seen, sizes) == 2
    assert sizes.tolist() == [1, 3, -1]
    assert plain(take_seat)(seen, sizes) == 3
    assert sizes.tolist() == [1, 4, -1]
    assert seen.tolist() == [[0.0, 0.0], [7.0, 7.0], [0.0, 0.0], [0.0, 0.0]]


# ------------------------------------------------------------------------------------------------------------- whole trees

GROWING = {"grace_period": 5, "split_confidence": 0.9, "tie_threshold": 0.9}
CODED = {"prior": 1.0, "largest_share": 1.0, "spread": "coded", "splits": "coded"}


@pytest.mark.parametrize("settings", [{}, {"prior": 0.5}, CODED], ids=["usual", "prior", "coded"])
@pytest.mark.parametrize("one_hot", [[], [3, 2]])
def test_what_is_learnt_is_a_tree_that_a_file_may_bring(settings, one_hot):
    rng, problem = np.random.default_rng(1), Problem(7, 3, 100.0)
    one = HoeffdingTree(problem, rng, one_hot=one_hot, **GROWING, **settings)
    fresh, columns = one.state, len(one.starts) - 1 + 7 - sum(one_hot)
    fresh = Arrays(*(array.copy() for array in fresh))
    for t in range(160):
        x = rng.standard_normal(7).round(1)
        if one_hot and t % 9:
            x[:5] = 0.0
            x[[rng.integers(2 if t < 80 else 3), 3 + rng.integers(2)]] = 1.0
        elif one_hot:
            x[:5] = 0.0
        one.update(x, int(x[6] + x[5] > 0.3) + int(x[0] > 0.0), 2.0)
        if t % 10 == 9:
            require_tree(one.state._asdict(), fresh, one.starts, columns)
    nodes, values = (array[: one.state.sizes[NODES_USED]] for array in (one.state.nodes, one.state.values))
    assert len(nodes) > 5
    assert ((values[:, CLASS:] >= 0.0) | (values[:, CLASS:] == -1.0)).all()
    assert (nodes[nodes[:, KIND] != LEAF, SEAT] == -1).all()


def test_a_block_is_read_as_its_contexts_are():
    rng = np.random.default_rng(0)
    one = HoeffdingTree(Problem(11, 2, 10.0), rng, one_hot=[3, 2, 4], ordered=[1])
    assert one.starts.tolist() == [0, 4, 9]  # three and four categories, and none of them
    assert one.state.seen.shape == (4, 2 + 5 * 2 * 3 + 2 * 9)  # three columns of numbers, one of them of categories
    X = np.zeros((40, 11))
    for x in X[4:]:
        for first, size in ((0, 3), (3, 2), (5, 4)):
            x[first + rng.integers(size)] = rng.choice([0.0, 0.25, 1.0, 2.0])
        x[9:] = rng.standard_normal(2)
    read = one.views(X)
    for x, row in zip(X, read):
        np.testing.assert_array_equal(one.view(x).values, row)
    assert read[0].tolist() == [3.0, 4.0, -1.0, 0.0, 0.0]
    assert {tuple(row) for row in read[:, :3]} > {(3.0, 4.0, -1.0)}
    assert set(read[:, 2]) == {-1.0, 0.0, 1.0}
    plain_tree = HoeffdingTree(Problem(11, 2, 10.0), rng)
    assert plain_tree.views(X) is X
    for values, found in (([0.0, 0.5, 0.2], 1.0), ([0.0, 0.0], -1.0), ([-1.0, -2.0], -1.0), ([1e-300], 0.0)):
        assert category(values) == found


def test_a_tree_that_is_saved_may_split_the_columns_there_are():
    """One nominal column, an ordered one and two numeric ones."""
    one = HoeffdingTree(Problem(7, 2, 10.0), np.random.default_rng(0), one_hot=[3, 2], ordered=[1])
    other = HoeffdingTree(Problem(7, 2, 10.0), np.random.default_rng(0), one_hot=[3, 2], ordered=[1])
    for column in range(5):
        nodes = one.state.nodes
        nodes[:3] = -1
        nodes[0, [KIND, FEATURE]], nodes[0, CHILD : CHILD + 2] = (NUMERIC if column else NOMINAL, column), (1, 2)
        nodes[1:3, KIND], one.state.sizes[:] = LEAF, (3, 0, -1)
        if column < 4:
            other.set_state(one.get_state())
            assert other.state.nodes[0].tolist() == nodes[0].tolist()
        else:
            with pytest.raises(UsageError, match="a split is of a column that there is not"):
                other.set_state(one.get_state())


def test_a_trees_tuning_is_three_draws_whether_used_or_not():
    """An integer and two uniforms; what follows, for ties, is the generator's next."""
    for settings in ({}, GROWING):
        rng, twin = np.random.default_rng(5), np.random.default_rng(5)
        one = HoeffdingTree(Problem(2, 2, 1.0), rng, **settings)
        drawn = int(twin.integers(5, 20, endpoint=True)), *twin.uniform(math.log(0.01), math.log(0.9), 2)
        assert rng.random() == twin.random()
        if not settings:
            assert one.grace_period == drawn[0]
            assert (one.split_confidence, one.tie_threshold) == pytest.approx(np.exp(drawn[1:]), rel=1e-12)
    assert HoeffdingTree(Problem(2, 2, 1.0), np.random.default_rng(0), grace_period=1).grace_period == 1
