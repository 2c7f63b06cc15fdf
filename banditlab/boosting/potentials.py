r"""Potentials of the multiclass 0-1 loss: the probability that a booster will be wrong in the end if the m remaining
votes are random.

.. math::

    \phi_m^r(s) = P(\max_{l \ne r} (s_l + n_l) \ge s_r + n_r),

where s are the votes so far, r is the label and n is multinomial :math:`(m; u_\gamma^r)`. Here :math:`u_\gamma^r` gives
:math:`(1 - \gamma)/k` to each of the k classes and :math:`\gamma` more to r. This is Equation (16) of the paper (Jung,
Goetz and Tewari, NIPS 2017), which solves :math:`\phi_0^r = L^r`, the 0-1 loss, and
:math:`\phi_{m+1}^r(s) = \mathbb{E}_{l \sim u_\gamma^r} \phi_m^r(s + e_l)`, Equation (3).

Exact computation: given :math:`n_r = c` the other :math:`M = m - c` votes are uniform over :math:`k - 1` classes, and r
wins if :math:`n_l \le s_r - s_l + c - 1` for all of them. Counts of M draws have the distribution of independent
Poisson variables of mean :math:`M/(k - 1)`, given their sum. The probability is therefore a coefficient of a product of
truncated Poisson polynomials, divided by :math:`P(\mathrm{Poisson}(M) = M)`. Every factor is a probability: nothing
overflows, and only probabilities below 1e-300 underflow.

The booster needs differences :math:`\phi(s + e_l) - \phi(s + e_r)`. They are computed as sums of probabilities, without
subtractions, so their relative error is small and they are never negative.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from banditlab.errors import UsageError
from banditlab.numerics.jit import njit
from banditlab.validation import at_least

BEFORE, AFTER, LOOSE = range(3)
"""Indices of the work polynomials and of their degrees: see `row_kernel`."""
LOST, TIED, LOST_BY = range(3)
"""Indices of a row: the potential, its decrease by a vote for the label, and its increase by a vote for class l
(`LOST_BY + l`)."""
MEMO = 20_000
"""The largest number of rows stored, about 10 MB at :math:`k = 8`; the first rows are stored."""


class Tables(NamedTuple):
    r"""Tables for up to N votes: binomial (N+1, N+1), poisson (N+1, N+1), total (N+1,), and work polynomials (3, k,
    N+1).

    `binomial[m, c]` is :math:`P(n_r = c)` for m votes, `poisson[M, n]` is :math:`P(\mathrm{Poisson}(M/(k-1)) = n)`,
    `total[M]` is :math:`P(\mathrm{Poisson}(M) = M)`.
    """

    binomial: NDArray[np.float64]
    poisson: NDArray[np.float64]
    total: NDArray[np.float64]
    scratch: NDArray[np.float64]


def _tables(n_votes: int, n_classes: int, edge: float) -> Tables:
    n = np.arange(n_votes + 1)
    factorial = np.array([math.lgamma(j + 1.0) for j in n])  # its logarithm
    p, mean = (1.0 - edge) / n_classes + edge, n / (n_classes - 1)
    below = np.maximum(n[:, None] - n, 0)  # m - c
    chosen = factorial[:, None] - factorial - factorial[below]
    binomial = np.exp(chosen + xlogy(n, p) + xlog1py(below, -p))
    poisson = np.exp(xlogy(n, mean[:, None]) - mean[:, None] - factorial)
    total = np.exp(xlogy(n, n) - n - factorial)
    return Tables(np.tril(binomial), np.tril(poisson), total, np.zeros((3, n_classes, len(n))))


@njit
def times(a, degree, pmf, cap, most, out):
    r"""Write :math:`a(x) \sum_{n \le \text{cap}} \text{pmf}_n x^n` into out up to :math:`x^{\text{most}}`.

    Returns the degree of the product, -1 for the zero polynomial.
    """
    if degree < 0 or cap < 0:
        return -1
    last = min(most, degree + cap)
    out[: last + 1] = 0.0
    for i in range(min(degree, most) + 1):
        ai = a[i]
        for j in range(min(cap, most - i) + 1):
            out[i + j] += ai * pmf[j]
    return last


@njit
def at(a, degree, b, other, power):
    r"""Return the coefficient of :math:`x^{\text{power}}` in :math:`a(x) b(x)`; a and b have degrees `degree` and `other`."""
    total = 0.0
    for i in range(max(0, power - other), min(degree, power) + 1):
        total += a[i] * b[power - i]
    return total


@njit(arrays="new")
def row_kernel(tables, m, lead, row, degrees):
    r"""Write the potentials for m remaining votes into row (k+1,); lead (k-1,) contains the differences
    :math:`s_r - s_l` in ascending order.

    `row[LOST]` is :math:`\phi(s)`. `row[TIED]` is :math:`\phi(s) - \phi(s + e_r)`, the probability that r ties for the
    most votes. `row[LOST_BY + l]` is :math:`\phi(s + e_l) - \phi(s)`, the probability that r wins and that one more
    vote for l would prevent it. `degrees` (3, k) is a work array.
    """
    n = lead.shape[0]
    before, after, loose = tables.scratch[BEFORE], tables.scratch[AFTER], tables.scratch[LOOSE]
    row[:] = 0.0
    win = 0.0  # P(r wins), summed over the number c of votes that r gets
    least = lead.min()
    slack = lead.sum()
    for c in range(max(0, -least), m + 1):
        M = m - c
        if slack + n * c < M:  # the caps lead_l + c add up to fewer than M votes
            continue
        pmf = tables.poisson[M]
        weight = tables.binomial[m, c] / tables.total[M]
        # before_j = product over l < j of the strict caps, after_j and loose_j over l >= j of strict and loose caps
        before[0, 0], after[n, 0], loose[n, 0] = 1.0, 1.0, 1.0
        degrees[BEFORE, 0], degrees[AFTER, n], degrees[LOOSE, n] = 0, 0, 0
        for j in range(n - 1):
            i = n - 1 - j
            degrees[BEFORE, j + 1] = times(before[j], degrees[BEFORE, j], pmf, lead[j] + c - 1, M, before[j + 1])
            degrees[AFTER, i] = times(after[i + 1], degrees[AFTER, i + 1], pmf, lead[i] + c - 1, M, after[i])
            degrees[LOOSE, i] = times(loose[i + 1], degrees[LOOSE, i + 1], pmf, lead[i] + c, M, loose[i])
        # no class reaches r; then, for each class: it is one vote short of r, or the first class that ties with r
        win += weight * at(before[n - 1], degrees[BEFORE, n - 1], pmf, min(M, lead[n - 1] + c - 1), M)
        for j in range(n):
            strict, level = lead[j] + c - 1, lead[j] + c
            if 0 <= strict <= M and (j == 0 or lead[j] > lead[j - 1]):
                chance = at(before[j], degrees[BEFORE, j], after[j + 1], degrees[AFTER, j + 1], M - strict)
                row[LOST_BY + j] += weight * pmf[strict] * chance
            if level <= M:
                chance = at(before[j], degrees[BEFORE, j], loose[j + 1], degrees[LOOSE, j + 1], M - level)
                row[TIED] += weight * pmf[level] * chance
    row[LOST] = 1.0 - win
    for j in range(1, n):  # classes with equal votes get exactly equal values
        if lead[j] == lead[j - 1]:
            row[LOST_BY + j] = row[LOST_BY + j - 1]


class Potentials(ABC):
    r"""Base class of potentials of the 0-1 loss for up to `n_votes` votes over `n_classes` classes.

    Parameters
    ----------
    n_votes
        N, the largest number of votes to come.
    n_classes
        k.
    edge
        :math:`\gamma` in the paper, in [0, 1].

    Raises
    ------
    UsageError
        `n_votes` is below 0.
    """

    ahead: ClassVar[int] = 0
    """How far the number of remaining votes may exceed `n_votes`."""

    def __init__(self, n_votes: int, n_classes: int, edge: float) -> None:
        self.n_votes, self.n_classes, self.edge = at_least("n_votes", n_votes, 0), n_classes, edge

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_votes={self.n_votes}, n_classes={self.n_classes}, edge={self.edge:g})"

    @abstractmethod
    def __call__(self, m: int, votes: NDArray[np.int64], label: int) -> float:
        r"""Return :math:`\phi_m^{\text{label}}(\text{votes})` for integer votes (k,).

        Raises
        ------
        UsageError
            m is below 0 or above `n_votes + ahead`.
        """

    @abstractmethod
    def costs(self, m: int, votes: NDArray[np.int64], label: int) -> NDArray[np.float64]:
        r"""Return the cost of each class l, shape (k,), given the votes (k,) so far.

        It is
        :math:`\phi_m^{\text{label}}(\text{votes} + e_l) - \phi_m^{\text{label}}(\text{votes} + e_{\text{label}})`.
        """

    def matrix(self, m: int, votes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return `costs` for every label, shape (k, k)."""
        return np.array([self.costs(m, votes, label) for label in range(self.n_classes)])

    def _checked(self, m: int) -> int:
        if not 0 <= m <= self.n_votes + self.ahead:
            raise UsageError(f"m must lie in 0 ... {self.n_votes + self.ahead}, got {m}")
        return m


class ExactPotentials(Potentials):
    r"""The potentials, computed exactly and memoised.

    Potentials are symmetric in the wrong classes: a row is computed for the sorted differences :math:`s_r - s_l`, and
    up to `MEMO` rows are stored.

    Cost: one row :math:`\phi(s + e_l)` for all l takes :math:`O(k m^3)` multiplications. Memory: tables of
    :math:`N^2 + k N` numbers.

    Parameters
    ----------
    n_votes
        N, the largest number of votes to come.
    n_classes
        k.
    edge
        :math:`\gamma`, the edge of a vote over a uniform guess, in [0, 1].
    """

    def __init__(self, n_votes: int, n_classes: int, edge: float) -> None:
        super().__init__(n_votes, n_classes, edge)
        self._tables = _tables(self.n_votes, n_classes, edge)
        self._degrees = np.zeros((3, n_classes), dtype=np.int64)
        self._memo: dict[tuple[int, ...], NDArray[np.float64]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Omit the cache in copies and pickles, because it takes megabytes and can be computed again."""
        return ExactPotentials, (self.n_votes, self.n_classes, self.edge)

    def __call__(self, m: int, votes: NDArray[np.int64], label: int) -> float:
        r"""Return :math:`\phi_m^{\text{label}}(\text{votes})`, votes (k,) integers."""
        return float(self._row(m, [int(votes[label] - v) for l, v in enumerate(votes) if l != label])[0][LOST])

    def costs(self, m: int, votes: NDArray[np.int64], label: int) -> NDArray[np.float64]:
        r"""Return the cost of each class l, shape (k,), given the votes (k,) so far.

        It is
        :math:`\phi_m^{\text{label}}(\text{votes} + e_l) - \phi_m^{\text{label}}(\text{votes} + e_{\text{label}})`.
        """
        s = votes.tolist()
        top = s.pop(label)
        row, order = self._row(m, [top - v for v in s])
        out = np.empty(self.n_classes)
        for place, l in enumerate(order):
            out[l + (l >= label)] = row[LOST_BY + place] + row[TIED]
        out[label] = 0.0
        return out

    def _row(self, m: int, lead: list[int]) -> tuple[NDArray[np.float64], list[int]]:
        """Return the result of `row_kernel` for the sorted differences, and the order that sorts them."""
        m, order = self._checked(m), sorted(range(len(lead)), key=lead.__getitem__)
        # a class m + 2 votes behind r cannot reach r; if a class is m + 1 votes ahead of r, r has lost
        key = (m, *(max(-m - 1, min(lead[l], m + 2)) for l in order))
        row = self._memo.get(key)
        if row is None:
            row = np.empty(self.n_classes + 1)
            row_kernel(self._tables, m, np.array(key[1:], dtype=np.int64), row, self._degrees)
            if len(self._memo) < MEMO:
                self._memo[key] = row
        return row, order


@njit
def count_kernel(uniforms, favoured, counts):
    """Convert each row of uniforms (draws, N) to N votes; write each class's number of votes among the first m into
    counts[m] (draws, k).

    Class 0 has the probability `favoured`; the other classes have equal probabilities.
    """
    others = counts.shape[2] - 1
    counts[0] = 0
    for m in range(1, counts.shape[0]):
        for t in range(counts.shape[1]):
            for l in range(others + 1):
                counts[m, t, l] = counts[m - 1, t, l]
            u = uniforms[t, m - 1]
            drawn = 0 if u < favoured else 1 + min(others - 1, int((u - favoured) / (1.0 - favoured) * others))
            counts[m, t, drawn] += 1


@njit
def sampled_row_kernel(counts, votes, label, costs):
    r"""Write :math:`\phi(\text{votes} + e_l) - \phi(\text{votes} + e_{\text{label}})` into costs (k,).

    :math:`\phi` is estimated by the fraction of draws in which the label loses; counts (draws, k) contains the
    remaining votes of each draw. Returns :math:`\phi(\text{votes})`. All l use the same draws, so no estimated cost is
    negative.
    """
    draws, k = counts.shape
    costs[:] = 0.0
    lost = 0
    for t in range(draws):
        own = votes[label] + counts[t, 0]
        top = own - 1
        for l in range(k):
            if l != label:
                top = max(top, votes[l] + counts[t, l + (l < label)])
        lost += top >= own
        if top > own:  # r has lost whatever the next vote is
            continue
        for l in range(k):  # a tie is lost unless the vote is for r; otherwise r loses if l was one vote behind
            if l != label and (top == own or votes[l] + counts[t, l + (l < label)] == own - 1):
                costs[l] += 1.0
    costs /= draws
    return lost / draws


class DrawnPotentials(Potentials):
    """Base class of potentials that are means over draws of the votes to come, with a given seed.

    Parameters
    ----------
    n_votes, n_classes, edge
        As for `Potentials`.
    draws
        The number of draws, 100 in the paper's code.

    Raises
    ------
    UsageError
        `n_votes` is below 0, or `draws` is below 1.
    """

    def __init__(self, n_votes: int, n_classes: int, edge: float, draws: int) -> None:
        super().__init__(n_votes, n_classes, edge)
        self.draws = at_least("draws", draws, 1)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, draws={self.draws})"

    @abstractmethod
    def redraw(self, seed: int) -> None:
        """Draw the votes to come with this seed (below :math:`2^{63}`); the same seed gives the same draws."""


class SampledPotentials(DrawnPotentials):
    r"""Monte Carlo estimates of the potentials: the mean over draws of the votes to come, as in the paper's
    experiments.

    `redraw` makes the draws of a round. All learners and all labels of the round use the same draws: the m votes to
    come are the first m of each draw. Every estimate is unbiased with a standard error of at most
    :math:`1/(2 \sqrt{\text{draws}})`.

    Cost: :math:`O(\text{draws}\, k)` per row. Memory: :math:`N\, \text{draws}\, k` integers.

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
    """

    def __init__(self, n_votes: int, n_classes: int, edge: float, draws: int) -> None:
        super().__init__(n_votes, n_classes, edge, draws)
        self._counts = np.zeros((self.n_votes + 1, self.draws, n_classes), dtype=np.int64)
        self.redraw(0)

    def redraw(self, seed: int) -> None:
        """Draw the votes to come again; the same seed gives the same draws."""
        uniforms = np.random.default_rng(seed).random((self.draws, self.n_votes))
        count_kernel(uniforms, (1.0 - self.edge) / self.n_classes + self.edge, self._counts)

    def __call__(self, m: int, votes: NDArray[np.int64], label: int) -> float:
        r"""Return the estimate of :math:`\phi_m^{\text{label}}(\text{votes})` for integer votes (k,)."""
        return float(sampled_row_kernel(self._counts[self._checked(m)], votes, label, np.empty(self.n_classes)))

    def costs(self, m: int, votes: NDArray[np.int64], label: int) -> NDArray[np.float64]:
        r"""Return the estimated cost of each class l, shape (k,), given the votes (k,) so far.

        It estimates
        :math:`\phi_m^{\text{label}}(\text{votes} + e_l) - \phi_m^{\text{label}}(\text{votes} + e_{\text{label}})`.
        """
        out = np.empty(self.n_classes)
        sampled_row_kernel(self._counts[self._checked(m)], votes, label, out)
        return out
