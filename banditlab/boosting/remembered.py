"""Monte Carlo potentials of the 0-1 loss, drawn once for each state and stored, as in Jung, Goetz and Tewari's code.

Their code stores potentials without limit. Here a potential is a function of a seed and the state, because its draws
come from a counter-based generator. Overwritten entries can therefore be recomputed, so a table of fixed size suffices,
and a pickled booster needs the seed only.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from banditlab.boosting.potentials import DrawnPotentials
from banditlab.errors import UsageError
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.philox import philox

FIRST, MOST, BUCKET = 4_096, 2_097_152, 8
"""Initial and largest number of potentials (the table doubles when full, up to 32 MB), and entries tried for one
state."""
LARGEST = 1_000
"""The largest number of votes; beyond it, the probability that one of two classes gets none underflows."""
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_ODD, _SHIFT = np.uint64(0x9FB21C651E98DF25), np.uint64(29)
_ONE, _TWO, _FOUR = np.uint64(1), np.uint64(2), np.uint64(4)


@inline
def _mixed(h):
    h = (h ^ (h >> _HALF)) * _ODD
    h = (h ^ (h >> _SHIFT)) * _ODD
    return h ^ (h >> _HALF)


@inline
def _of_count(votes):
    """Return the hash of a class's votes; a state's key uses the sum over the wrong classes, so their order is
    irrelevant.
    """
    return _mixed(np.uint64(votes) * _FOUR + _ONE)


@inline
def _name(m, mine, others):
    """Return a 64-bit key, never 0, of a state: m remaining votes, `mine` votes for the label, and `others`, the sum of
    the hashes of the wrong classes' votes.
    """
    h = _mixed(others + _mixed(np.uint64(mine) * _FOUR + _TWO)) + np.uint64(m) * _ODD
    return _mixed(h) | _ONE


class Draws(NamedTuple):
    r"""Tables for the draws of up to M votes.

    label (M + 1, M + 1)    entry (m, c) is the probability that the label gets at most c of m votes
    none (k, M + 1)         :math:`(1 - 1/j)^m`, the probability that a given one of j classes gets none of m votes
    over (M + 2,)           entry x is :math:`1/x`; entry 0 is 1
    """

    label: NDArray[np.float64]
    none: NDArray[np.float64]
    over: NDArray[np.float64]

    @classmethod
    def of(cls, most: int, n_classes: int, edge: float) -> Draws:
        m, j = np.arange(most + 1), np.arange(n_classes)
        label = np.asarray(binom.cdf(m, m[:, None], (1.0 - edge) / n_classes + edge))
        none = (1.0 - 1.0 / np.maximum(j, 1)[:, None]) ** m
        return cls(label, none, 1.0 / np.maximum(np.arange(most + 2), 1))


@inline
def _share(u, m, left, tables):
    """Return how many of m votes go to one of `left` > 1 equally likely classes: a binomial draw by inversion."""
    x, p, odds = 0, tables.none[left, m], 1.0 / (left - 1.0)
    while u >= p and x < m:
        u -= p
        x += 1
        p *= ((m + 1) * tables.over[x] - 1.0) * odds
    return x


@njit(arrays="new")
def draw_potential(seed, name, m, draws, mine, others, tables):
    """Return the fraction of `draws` in which the label, with `mine` votes, loses to or ties with another class after m
    more votes; `others` (k-1,) contains the votes of the wrong classes in ascending order.

    The label's votes are drawn first, then those of the other classes in descending order of votes, until the result is
    decided.
    """
    n = others.shape[0]
    if others[n - 1] - mine >= m:
        return 1.0
    if mine - others[n - 1] > m:
        return 0.0
    key, lost, words, chances = np.uint64(seed), 0, np.empty(4, dtype=np.uint64), tables.label[m]
    for t in range(draws):
        used, own, M = 0, mine, m
        for left in range(n + 1, 0, -1):  # the label, then the others
            u = 0.0
            if left > 1:
                if used % 4 == 0:
                    words[0], words[1], words[2], words[3] = philox(
                        np.uint64(used // 4), np.uint64(t), name & _LOW, name >> _HALF, key & _LOW, key >> _HALF
                    )
                u = (float(words[used % 4]) + 0.5) / 4294967296.0
                used += 1
            if left == n + 1:
                came = np.searchsorted(chances, u, side="right")
                own += came
            else:
                came = M if left == 1 else _share(u, M, left, tables)
                if others[left - 1] + came >= own:
                    lost += 1
                    break
            M -= came
            if left > 1 and others[left - 2] + M < own:  # the next class has most of the remaining ones
                break
    return lost / draws


@inline
def slot_of(name, names):
    """Return the index of a state in `names`, and whether it is stored there; a new state overwrites one of BUCKET
    entries.
    """
    first = np.int64(name >> _FOUR) % (names.shape[0] - BUCKET)
    for place in range(first, first + BUCKET):
        if names[place] == name:
            return place, True
    for place in range(first, first + BUCKET):
        if names[place] == 0:
            return place, False
    return first + np.int64(name >> _ONE) % BUCKET, False


@njit(arrays="new")
def remembered_row(seed, draws, m, votes, label, tables, names, known, row):
    r"""Write the estimates of :math:`\phi_m^{\text{label}}(\text{votes} + e_l)` into row (k,), and return how many are
    new.

    `names` and `known` contain the stored potentials.
    """
    k, parts, new = votes.shape[0], np.uint64(0), 0
    for l in range(k):
        if l != label:
            parts += _of_count(votes[l])
    for l in range(k):
        mine, others = votes[label] + (l == label), parts
        if l != label:
            others += _of_count(votes[l] + 1) - _of_count(votes[l])
        name = _name(m, mine, others)
        place, found = slot_of(name, names)
        if not found:
            after = np.empty(k - 1, dtype=np.int64)
            for j in range(k - 1):
                i = j + (j >= label)
                after[j] = votes[i] + (i == l)
            after.sort()
            known[place] = draw_potential(seed, name, m, draws, mine, after, tables)
            names[place] = name
            new += 1
        row[l] = known[place]
    return new


@njit(arrays="new")
def remembered_costs(seed, draws, m, votes, tables, names, known, C):
    """Write the rows of all labels minus their diagonal entries into C (k, k), and return how many potentials are new."""
    new = 0
    for r in range(votes.shape[0]):
        new += remembered_row(seed, draws, m, votes, r, tables, names, known, C[r])
        C[r] -= C[r, r]
    return new


@njit
def rehash(names, known, larger, values):
    """Copy the stored potentials into a larger table."""
    for i in range(names.shape[0]):
        if names[i] != 0:
            place, _ = slot_of(names[i], larger)
            larger[place], values[place] = names[i], known[i]


class RememberedPotentials(DrawnPotentials):
    r"""Estimates of the potentials, each from its own draws, which are made once for each state.

    This is the rule in the code of the paper's authors. It also counts the current vote among those to come: `costs`
    uses :math:`\phi_{m+1}` where Equation (4) has :math:`\phi_m`. Because no two potentials share draws, costs may be
    negative, and an estimate's error is permanent. Compared with Equation (4), these two differences change accuracies
    in the paper's tables by about 0.05 to 0.1 at a large edge.

    Cost: about 10 µs at 100 draws for a new state, :math:`O(k)` for a stored one. Memory: up to 32 MB.

    Parameters
    ----------
    n_votes
        N, the largest number of votes to come.
    n_classes
        k.
    edge
        :math:`\gamma`, the edge of a vote over a uniform guess, in [0, 1].
    draws
        Number of draws of the votes to come, for each estimate.

    Raises
    ------
    UsageError
        `n_votes` is below 0 or above 1,000, or `draws` is below 1.
    """

    ahead: ClassVar[int] = 1

    def __init__(self, n_votes: int, n_classes: int, edge: float, draws: int) -> None:
        super().__init__(n_votes, n_classes, edge, draws)
        if n_votes > LARGEST:
            raise UsageError(f"remembered potentials allow at most {LARGEST:,} votes, got {n_votes:,}")
        self._tables = Draws.of(n_votes + 1, n_classes, edge)
        self._forget(0)

    def _forget(self, seed: int) -> None:
        self.seed, self._kept = seed, 0
        self._names, self._known = np.zeros(FIRST, dtype=np.uint64), np.zeros(FIRST)

    def __reduce__(self) -> tuple[Any, ...]:
        """Omit the potentials in copies and pickles, because the seed in the booster's payload determines them."""
        return RememberedPotentials, (self.n_votes, self.n_classes, self.edge, self.draws)

    def redraw(self, seed: int) -> None:
        """Discard the potentials if they belong to another seed (below :math:`2^{63}`)."""
        if seed != self.seed:
            self._forget(seed)

    def __call__(self, m: int, votes: NDArray[np.int64], label: int) -> float:
        r"""Return the estimate of :math:`\phi_m^{\text{label}}(\text{votes})`.

        `votes` has k integers, and the label has at least one vote.
        """
        before = np.array(votes, dtype=np.int64)
        before[label] -= 1
        return float(self._row(m, before, label)[label])

    def costs(self, m: int, votes: NDArray[np.int64], label: int) -> NDArray[np.float64]:
        r"""Return the estimated cost of each class l, shape (k,).

        The cost of l is :math:`\phi_{m+1}^{\text{label}}(\text{votes} + e_l)` minus
        :math:`\phi_{m+1}^{\text{label}}(\text{votes} + e_{\text{label}})`.
        """
        row = self._row(m + 1, votes, label)
        row -= row[label]
        return row

    def matrix(self, m: int, votes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return `costs` for every label, shape (k, k)."""
        C = np.empty((self.n_classes, self.n_classes))
        known = self._names, self._known
        self._kept += remembered_costs(self.seed, self.draws, self._checked(m + 1), votes, self._tables, *known, C)
        self._grow()
        return C

    def _row(self, m: int, votes: NDArray[np.int64], label: int) -> NDArray[np.float64]:
        row, known = np.empty(self.n_classes), (self._names, self._known)
        self._kept += remembered_row(self.seed, self.draws, self._checked(m), votes, label, self._tables, *known, row)
        self._grow()
        return row

    def _grow(self) -> None:
        size = len(self._names)
        if 2 * self._kept > size and size < MOST:
            larger = np.zeros(2 * size, dtype=np.uint64), np.zeros(2 * size)
            rehash(self._names, self._known, *larger)
            self._names, self._known = larger
