r"""An array of models, each a matrix :math:`P_i = A_i^{-1}` and a vector :math:`h_i`.

These models are the state of agents that store one second-order model per class. A round computes :math:`m_i = h_i'x`
and :math:`q_i = x'P_i x` for all models (`read`). An update of model i computes them for this model (`read_one`). It
then sets :math:`h_i \mathrel{+}= \text{step}\, v` and :math:`P_i \mathrel{-}= s v v'` with :math:`v = P_i x`
(`update_one`). Small problems process one context at a time, with whole matrices.

Large models begin in a low-rank form, :math:`P_i = p I - F'F`, and become whole matrices after about :math:`d/2`
updates (see `low_rank`). If the next contexts are known, `prefetch` prepares a block of rounds. The three functions
then use :math:`m \times m` matrices (see `lookahead`). All forms give the same numbers up to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import inline, njit
from banditlab.numerics.lookahead import (
    ACTIVE,
    LENGTH,
    POSITION,
    SHORTEST,
    Ahead,
    ahead,
    next_stretch,
    read_ahead,
    read_one_ahead,
    update_ahead,
)
from banditlab.numerics.low_rank import LARGE, LowRank, all_forms, any_downdate, any_product, low_rank
from banditlab.numerics.low_rank import whole as all_as_whole
from banditlab.numerics.packed_symmetric import (
    Floats,
    Point,
    identities,
    inner,
    pad,
    point,
    rows_times,
    set_point,
    size_of,
    step_along,
    width,
    zeros,
)

# Models of at least `LARGE` bytes are prefetched. Speed-up with 2 MiB of cache per core: none for models of 1.1 MiB,
# 1.3 times for 1.6 MiB, 2 times for 2 to 3 MiB, and 3 to 8 times for 10 MiB or more.
LONG_STRETCH, SHORT_STRETCH = 64, 32
"""The number of contexts in a block for d >= 512, and for smaller d.

Larger m x m matrices would approach the size of the models.
"""
DENSE_SHARE, DENSE_ENTRIES = 0.2, 64.0
"""A block is not prefetched if the fraction and the mean number of nonzero entries are below these, because single
contexts then read fewer numbers. Break-even for :math:`K = 10` is a fraction of 0.25 for :math:`d = 256` and of 0.04
(40 entries) for :math:`d = 1024`.
"""


class Inverses(NamedTuple):
    """The models' arrays. Row i of P (M, S) is the packed matrix :math:`P_i`, or its low-rank form if `low` is set. Row
    i of H (M, D) is :math:`h_i`, padded with zeros.

    `ahead` (prefetched rounds) and `low` (low-rank forms) are None if the models are small. Work arrays: `point`, the
    current context; v (D,), :math:`P_i x`.
    """

    P: Floats
    H: Floats
    point: Point
    v: Floats
    ahead: Ahead | None
    low: LowRank | None

    def in_form_of(self, other: Inverses) -> Inverses:
        """Return these models as whole matrices if `other` has whole matrices; call it before any update."""
        if self.low is None or other.low is not None:
            return self
        self.P[:] = identities(self.low.scales, self.low.d)
        return self._replace(low=all_as_whole(self.low))


def inverses(scales: NDArray[np.float64], d: int) -> Inverses:
    r"""Return models of size d with :math:`P_i = \text{scales}_i I` and :math:`h_i = 0`."""
    M, D = len(scales), width(d)
    P = zeros(M, size_of(D))
    if 8 * M * size_of(D) < LARGE:
        P[:] = identities(scales, d)
        return Inverses(P, zeros(M, D), point(d), zeros(D), None, None)
    m = LONG_STRETCH if d >= 512 else SHORT_STRETCH
    return Inverses(P, zeros(M, D), point(d), zeros(D), ahead(M, d, m), low_rank(scales, d, m))


@inline
def read(inverses, x, m, q):
    """Write :math:`m_i = h_i'x` and :math:`q_i = x'P_i x` for all models."""
    if not read_ahead(inverses.ahead, m, q):
        set_point(inverses.point, x)
        rows_times(inverses.H, inverses.point.x, m)
        all_forms(inverses.P, inverses.low, inverses.point, q)


@inline
def read_one(inverses, x, i):
    """Return :math:`m_i` and :math:`q_i` at x, and prepare `update_one` for the same x."""
    prefetched, m, q = read_one_ahead(inverses.ahead, i)
    if prefetched:
        return m, q
    # v = P_i x, which `update_one` uses as well
    v, own = inverses.v, inverses.point.x
    pad(x, own)
    any_product(inverses.P[i], inverses.low, i, own, v)
    q = inner(own, v)
    return inner(own, inverses.H[i]), 0.0 if q < 0.0 else q  # by rounding


@inline
def update_one(inverses, i, step, s):
    r"""Update :math:`h_i \mathrel{+}= \text{step}\, v` and :math:`P_i \mathrel{-}= s v v'` with :math:`v = P_i x`.

    Call this function at most once per round and model. The context x is that of the last call of `read_one`;
    :math:`s \ge 0`.
    """
    if not update_ahead(inverses.ahead, i, step, s):
        step_along(inverses.H[i], step, inverses.v)
        any_downdate(inverses.P[i], inverses.low, i, inverses.v, s)


@inline
def prefetch(inverses, X, t, behind):
    """Prepare round t, whose context is row t of X (n, d - e) followed by the e numbers `behind`.

    For :math:`t = n`, bring P and H up to date. A loop calls this function before every round. Whether to prefetch is
    decided once per block of rounds.
    """
    prefetch_from(inverses.ahead, inverses.P, inverses.low, inverses.H, X, t, behind)


@njit
def prefetch_from(ahead, P, low, H, X, t, behind):
    if ahead is None:
        return
    place = ahead.place
    # Within a block only the round is counted.
    place[POSITION] += 1
    if t < X.shape[0] and place[POSITION] < place[LENGTH]:
        return
    # Finish the last block, and begin a new one if its contexts are dense enough.
    part = X[t : t + ahead.G.shape[1]]
    is_long = part.shape[0] >= SHORTEST and entries(part) >= min(DENSE_SHARE * X.shape[1], DENSE_ENTRIES)
    if is_long or place[ACTIVE] == 1:
        next_stretch(P, low, H, ahead, part if is_long else X[t:t], behind)
    place[POSITION], place[LENGTH] = 0, part.shape[0]


@njit
def entries(X):
    """Return the mean number of nonzero entries in a row of X (n, d)."""
    found = 0
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            found += X[t, j] != 0.0
    return found / X.shape[0]
