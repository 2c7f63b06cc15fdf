"""Kernels of a very fast decision tree (VFDT): find the leaf of an example, update its statistics, and split it.

A tree is stored as four arrays and its settings `tuning`. If `learn` returns False, the caller enlarges the arrays.

    nodes (M, 3 + V) int64      kind of the node, its feature, its slot in `seen`; then its V children, -1 where none
    values (M, 2 + K)           threshold of a split, weight at the last attempt; then the weight of each class, -1: unseen
    seen (S, K + 5 K d + K c)   of a leaf that learns: each class's weight; means, sums of squares, least and largest of the
                                d numeric columns for each class; weights of the c categories for each class; variances
                                at the last attempt
    sizes (3,)                  nodes and slots in use, the first slot that is free again or -1; node 0 is the root

`tuning` (7,) contains the grace period, split confidence, tie threshold, prior, largest share, and two flags. The flags
say whether the settings `spread` and `splits` are "coded", which means: as in the code of Jung, Goetz and Tewari ("the
authors' code" below).
"""

from __future__ import annotations

import math

import numpy as np

from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import inline, njit

LEAF, NUMERIC, NOMINAL = range(3)
KIND, FEATURE, SLOT, CHILD = range(4)
THRESHOLD, ATTEMPT, CLASS = range(3)
GRACE, CONFIDENCE, TIE, PRIOR, LARGEST, SPREAD, SPLITS = range(7)
NODES_USED, SLOTS_USED, FREE_SLOT = range(3)
MEANS, SQUARES, LEASTS, LARGESTS, CATEGORIES = range(5)
"""Blocks of a leaf's record after its K weights. A block has K d numbers, except the last one; the number of block B,
class k and column f has the index :math:`K + B K d + k d + f`."""
AT_LEAF, LEFT, RIGHT, LEFT_BEST, LEFT_CHOSEN, SCRATCH = range(6)
"""Rows of scratch, which contain class weights (K,): at the leaf; on each side of a threshold; left of the best
threshold of a column, and of all columns."""
CLOSED = -2
"""The slot of a leaf that no longer has statistics of features."""
POINTS = 10
"""Number of thresholds tried for a numeric feature, evenly spaced between its smallest and largest value at the
leaf."""
LEAST_BRANCH = 0.01
"""At least two branches of a split must have more than this share of the weight."""


@inline
def start_of(block, K, d):
    """Return the index of the first number of a block in a leaf's record."""
    return K + block * K * d


@inline
def plant(node, nodes, values):
    """Make a node an empty leaf."""
    nodes[node, KIND] = LEAF
    nodes[node, FEATURE] = -1
    nodes[node, SLOT] = -1
    nodes[node, CHILD:] = -1
    values[node, THRESHOLD] = 0.0
    values[node, ATTEMPT] = 0.0
    values[node, CLASS:] = -1.0


@njit
def weight_below(node, nodes, values):
    """Return the weight of all leaves below a node."""
    if nodes[node, KIND] == LEAF:
        total = 0.0
        for k in range(CLASS, values.shape[1]):
            total += max(values[node, k], 0.0)
        return total
    total = 0.0
    for j in range(CHILD, nodes.shape[1]):
        if nodes[node, j] >= 0:
            total += weight_below(nodes[node, j], nodes, values)
    return total


@inline
def branch(node, x, nodes, values):
    """Return the column of `nodes` with the child to which an example belongs."""
    if nodes[node, KIND] == NUMERIC:
        return CHILD + (x[nodes[node, FEATURE]] > values[node, THRESHOLD])
    return CHILD + int(x[nodes[node, FEATURE]])


@njit
def leaf_of(x, nodes, values, coded):
    """Return the leaf of an example; at a split without a branch for its category, return the leaf with the most weight
    below, or the split itself if `coded`.
    """
    node = 0
    while nodes[node, KIND] != LEAF:
        child = nodes[node, branch(node, x, nodes, values)]
        if child < 0 and coded:
            return node
        if child < 0:
            most = -1.0
            for j in range(CHILD, nodes.shape[1]):
                if nodes[node, j] >= 0:
                    weight = weight_below(nodes[node, j], nodes, values)
                    if weight > most:
                        most, child = weight, nodes[node, j]
        node = child
    return node


@njit
def shares(x, nodes, values, tuning, q):
    """Write each class's share of the weight at the leaf of x into q (K,).

    Classes without examples have the prior as their weight. If all weights are 0, all entries are 1.
    """
    leaf, prior = leaf_of(x, nodes, values, tuning[SPLITS] > 0.0), tuning[PRIOR]
    total = 0.0
    for k in range(q.shape[0]):
        weight = values[leaf, CLASS + k]
        q[k] = weight if weight >= 0.0 else prior
        total += q[k]
    for k in range(q.shape[0]):
        q[k] = q[k] / total if total > 0.0 else 1.0


@inline
def entropy(sums):
    r"""Return the entropy in bits of weights w (K,), :math:`-\sum_k p_k \log_2 p_k` with :math:`p = w / \sum_k w_k`."""
    bits, total = 0.0, 0.0
    for k in range(sums.shape[0]):
        if sums[k] > 0.0:
            bits -= sums[k] * math.log2(sums[k])
            total += sums[k]
    if total > 0.0:
        bits = (bits + total * math.log2(total)) / total
    return bits


@inline
def gaussian_share(at, n, mean, squares, least, largest):
    r"""Return the estimated share of a class's examples with values up to `at`,
    :math:`\Phi((\text{at} - \text{mean})/\text{sd})`.

    `n` is the class's weight.
    """
    if at < least:
        return 0.0
    if at >= largest:
        return 1.0
    if n <= 1.0 or squares <= 0.0:
        return 0.0
    return 0.5 * (1.0 + math.erf((at - mean) / math.sqrt(squares / (n - 1.0)) / math.sqrt(2.0)))


@inline
def coded_share(at, n, mean, squares, least, largest, fresh, spreads, place):
    """Return `gaussian_share` as in the authors' code.

    At the first threshold inside the class's range, this code uses the variance of the previous attempt to split.
    """
    if at < least or at >= largest:
        return 0.0 if at < least else 1.0
    variance = max(squares / n, 1e-12)
    shown = variance if fresh else spreads[place]
    spreads[place] = variance
    return 0.5 * (1.0 + math.erf((at - mean) / math.sqrt(shown) / math.sqrt(2.0))) if shown > 0.0 else 0.5


@njit
def best_threshold(record, f, K, d, before, coded, left, right, kept):
    """Return (gain, threshold) of the best binary split on numeric column f; the gain is -inf if no threshold leaves
    more than the share `LEAST_BRANCH` of the weight on each side.

    The threshold is NaN if the column has one value only. The weights (K,) of the left branch are written into `kept`.
    """
    least, largest, total = np.inf, -np.inf, 0.0
    means, squares = start_of(MEANS, K, d), start_of(SQUARES, K, d)
    lows, highs = start_of(LEASTS, K, d), start_of(LARGESTS, K, d)
    spreads = record[record.shape[0] - K * d :]
    for k in range(K):
        if record[k] > 0.0:
            least = min(least, record[lows + k * d + f])
            largest = max(largest, record[highs + k * d + f])
            total += record[k]
    best, chosen = -np.inf, np.nan
    for i in range(POINTS):
        width = (largest - least) / (POINTS + 1.0)
        at = least + width * (i + 1)
        if not least < at < largest:
            continue
        on_left = 0.0
        for k in range(K):
            n, place = record[k], k * d + f
            left[k], right[k] = 0.0, 0.0
            if n > 0.0:
                mean, around = record[means + place], record[squares + place]
                low, high = record[lows + place], record[highs + place]
                if coded:
                    fresh = i > 0 and at - width >= low  # the previous threshold was in its range, too
                    left[k] = n * coded_share(at, n, mean, around, low, high, fresh, spreads, place)
                else:
                    left[k] = n * gaussian_share(at, n, mean, around, low, high)
                right[k] = n - left[k]
                on_left += left[k]
        gain = -np.inf  # the information gain: H(before) minus the weighted mean of H(left) and H(right)
        if min(on_left, total - on_left) > LEAST_BRANCH * total:
            gain = before - (on_left * entropy(left) + (total - on_left) * entropy(right)) / total
        if gain > best or math.isnan(chosen):
            best, chosen = gain, at
            overwrite(kept, left)
    return best, chosen


@njit
def category_gain(record, first, end, K, d, c, before, sums):
    """Return the gain of a split by the categories `first`, ..., `end - 1`; -inf if fewer than two of them have more
    than the share `LEAST_BRANCH` of the weight.
    """
    start, total, ways, after = start_of(CATEGORIES, K, d), 0.0, 0, 0.0
    for v in range(first, end):
        for k in range(K):
            total += record[start + k * c + v]
    for v in range(first, end):
        here = 0.0
        for k in range(K):
            sums[k] = record[start + k * c + v]
            here += sums[k]
        ways += here > LEAST_BRANCH * total
        after += here * entropy(sums)
    return before - after / total if ways >= 2 else -np.inf  # H(before) minus the weighted mean of H(branch)


@njit
def split_numeric(leaf, f, at, left, record, d, nodes, values, sizes):
    """Turn a leaf into a split of numeric column f; its leaves start with the weights `left` (K,) and the remaining
    weights.
    """
    K = values.shape[1] - CLASS
    lows, highs = start_of(LEASTS, K, d), start_of(LARGESTS, K, d)
    nodes[leaf, KIND], nodes[leaf, FEATURE], nodes[leaf, SLOT] = NUMERIC, f, -1
    values[leaf, THRESHOLD] = at
    for side in range(2):
        child = sizes[NODES_USED]
        sizes[NODES_USED] += 1
        plant(child, nodes, values)
        nodes[leaf, CHILD + side] = child
        for k in range(K):
            place = k * d + f
            if record[k] == 0.0:
                continue
            least, largest = record[lows + place], record[highs + place]
            if (side == 0 and at < least) or (side == 1 and at >= largest):
                continue
            values[child, CLASS + k] = left[k] if side == 0 else record[k] - left[k]
            values[child, ATTEMPT] += values[child, CLASS + k]


@njit
def split_nominal(leaf, f, first, end, record, d, c, coded, nodes, values, sizes):
    """Turn a leaf into a split of column f by category, with one leaf for each category that has occurred.

    With `coded`, as in the authors' code, the n-th of these leaves belongs to the n-th category of the column, even if
    that category has not occurred.
    """
    K, named = values.shape[1] - CLASS, 0
    start = start_of(CATEGORIES, K, d)
    nodes[leaf, KIND], nodes[leaf, FEATURE], nodes[leaf, SLOT] = NOMINAL, f, -1
    for v in range(first, end):
        child = -1
        for k in range(K):
            weight = record[start + k * c + v]
            if weight == 0.0:
                continue
            if child < 0:
                child = sizes[NODES_USED]
                sizes[NODES_USED] += 1
                plant(child, nodes, values)
                nodes[leaf, CHILD + (named if coded else v - first)] = child
                named += 1
            values[child, CLASS + k] = weight
            values[child, ATTEMPT] += weight


@njit
def attempt(leaf, total, tuning, starts, d, nodes, values, record, sizes, scratch):
    """Split a leaf if its best feature leads by more than the Hoeffding bound, or if this bound is small (a tie).

    If no feature then separates the examples, the leaf's statistics are reset instead.

    The nominal columns come first. `starts` (number of nominal columns + 1,) contains the index of the first category
    of each nominal column, and then the number of all categories. Among features of equal gain, the last one is chosen.
    In the authors' code the chosen feature may be one that does not separate the examples. There, a leaf in which no
    column has two values never splits and loses its counts.
    """
    K, nominal, coded = values.shape[1] - CLASS, starts.shape[0] - 1, tuning[SPLITS] > 0.0
    c, kinds, spread = starts[nominal], 0, tuning[SPREAD] > 0.0
    for k in range(K):
        scratch[AT_LEAF, k] = max(values[leaf, CLASS + k], 0.0)
        kinds += values[leaf, CLASS + k] >= 0.0
    before = entropy(scratch[AT_LEAF])
    best = second = -np.inf
    chosen, at = -1, 0.0  # no feature is better
    for f in range(nominal + d):
        if f < nominal:
            gain, where = category_gain(record, starts[f], starts[f + 1], K, d, c, before, scratch[LEFT]), 0.0
        else:
            sides = scratch[LEFT], scratch[RIGHT], scratch[LEFT_BEST]
            gain, where = best_threshold(record, f - nominal, K, d, before, spread, *sides)
            if coded and math.isnan(where):
                continue
        if gain >= best:
            second = best
            best, at = gain, where
            chosen = f if f < nominal or gain > -np.inf or coded else -1
            overwrite(scratch[LEFT_CHOSEN], scratch[LEFT_BEST])
        elif gain > second:
            second = gain
    # the Hoeffding bound (KDD 2000, (1)) for an information gain, whose range is log2 of the number of classes
    bound = math.log2(max(kinds, 2)) * math.sqrt(math.log(1.0 / tuning[CONFIDENCE]) / (2.0 * total))
    if coded and chosen < 0:
        nodes[leaf, SLOT] = CLOSED
        values[leaf, CLASS:] = -1.0
    elif best - second > bound or bound < tuning[TIE]:
        if chosen < 0:
            nodes[leaf, SLOT] = -1
        elif chosen < nominal:
            split_nominal(leaf, chosen, starts[chosen], starts[chosen + 1], record, d, c, coded, nodes, values, sizes)
        else:
            split_numeric(leaf, chosen - nominal, at, scratch[LEFT_CHOSEN], record, d, nodes, values, sizes)
            nodes[leaf, FEATURE] = chosen


@njit
def count(x, y, weight, starts, d, K, coded, record):
    """Count an example at a leaf; in the authors' code, counts of categories start at 1."""
    nominal = starts.shape[0] - 1
    c, fresh = starts[nominal], record[y] == 0.0
    record[y] += weight
    for f in range(nominal):
        place = start_of(CATEGORIES, K, d) + y * c + starts[f] + int(x[f])
        record[place] += weight + (coded and record[place] == 0.0)
    rate = weight / record[y]
    means, squares = start_of(MEANS, K, d), start_of(SQUARES, K, d)
    lows, highs = start_of(LEASTS, K, d), start_of(LARGESTS, K, d)
    for f in range(d):
        value, place = x[nominal + f], y * d + f
        old = record[means + place]
        record[means + place] += rate * (value - old)  # the running mean and sum of squares, weighted (West, 1979)
        record[squares + place] += weight * (value - old) * (value - record[means + place])
        if fresh or value < record[lows + place]:
            record[lows + place] = value
        if fresh or value > record[highs + place]:
            record[highs + place] = value


@inline
def take_slot(seen, sizes):
    """Return a free slot, cleared. The first entry of a free slot is the index of the next free one."""
    slot = sizes[FREE_SLOT]
    if slot >= 0:
        sizes[FREE_SLOT] = int(seen[slot, 0])
    else:
        slot = sizes[SLOTS_USED]
        sizes[SLOTS_USED] += 1
    seen[slot] = 0.0
    return slot


@njit
def learn(x, y, weight, starts, nodes, values, seen, sizes, tuning, scratch):
    """Update with an example and return True; return False, without an update, if the arrays may be too small."""
    K, nominal, coded = values.shape[1] - CLASS, starts.shape[0] - 1, tuning[SPLITS] > 0.0
    d = x.shape[0] - nominal
    if sizes[NODES_USED] + nodes.shape[1] > nodes.shape[0] or sizes[SLOTS_USED] + 1 > seen.shape[0]:
        return False
    # the leaf of the example; a new category at a split gets a leaf
    node, new = 0, False
    while nodes[node, KIND] != LEAF:
        j = branch(node, x, nodes, values)
        new = nodes[node, j] < 0
        if new:
            nodes[node, j] = sizes[NODES_USED]
            sizes[NODES_USED] += 1
            plant(nodes[node, j], nodes, values)
        node = nodes[node, j]
    # the leaf's class weights, and its statistics of features
    if values[node, CLASS + y] < 0.0:
        values[node, CLASS + y] = tuning[PRIOR]
    values[node, CLASS + y] += weight
    if nodes[node, SLOT] == CLOSED:
        return True
    if nodes[node, SLOT] < 0:
        nodes[node, SLOT] = take_slot(seen, sizes)
    slot = nodes[node, SLOT]
    record = seen[slot]
    count(x, y, weight, starts, d, K, coded, record)
    # attempt to split after the grace period, unless one class has nearly all the weight
    total = most = 0.0
    kinds = 0
    for k in range(K):
        here = values[node, CLASS + k]
        total, most = total + max(here, 0.0), max(most, here)
        kinds += here > 0.0 or (coded and here == 0.0)
    if total - values[node, ATTEMPT] >= tuning[GRACE] and (coded or not new):
        values[node, ATTEMPT] = total
        if kinds > 1 and most > tuning[LARGEST] * total:
            nodes[node, SLOT] = -1
        elif kinds > 1:
            attempt(node, total, tuning, starts, d, nodes, values, record, sizes, scratch)
    if nodes[node, SLOT] < 0:  # it is no longer a leaf, or its statistics are reset: free its slot
        record[0], sizes[FREE_SLOT] = sizes[FREE_SLOT], slot
    return True
