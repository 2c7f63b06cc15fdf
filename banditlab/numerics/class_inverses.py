r"""Models in a row, each a matrix :math:`P_i = A_i^{-1}` and a vector :math:`h_i`: what second-order agents keep of
every class.

A round reads :math:`m_i = h_i'x` and :math:`q_i = x'P_i x` of all models (`read`). A model that learns is asked for its
own (`recall`) and moved, :math:`h_i \mathrel{+}= \text{step}\, v` and :math:`P_i \mathrel{-}= s v v'` with
:math:`v = P_i x` (`move`). Small problems do so context by context, with whole matrices.

Large models begin as rows, :math:`P_i = p I - F'F`, and become whole after some :math:`d/2` updates (see `low_rank`).
Where the contexts to come are known, `prefetch` prepares a stretch of rounds, in which the three answer from
:math:`m \times m` matrices (see `lookahead`). Either way the numbers are the same but for rounding.
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
    move_ahead,
    next_stretch,
    read_ahead,
    recall_ahead,
)
from banditlab.numerics.low_rank import LARGE, WHOLE, LowRank, all_forms, any_downdate, any_product, low_rank, rows
from banditlab.numerics.low_rank import whole as kept_whole
from banditlab.numerics.packed_symmetric import (
    Floats,
    Point,
    dense,
    identities,
    inner,
    lay,
    point,
    rows_times,
    see,
    size_of,
    step_along,
    width,
    zeros,
)

# From `LARGE` on rounds are looked at ahead, too. Measured on whole models, with 2 MiB of a core's own cache: even at 1.1 MiB,
# 1.3 times as fast at 1.6, twice at 2 to 3, three to eight times from 10 on.
LONG_STRETCH, SHORT_STRETCH = 64, 32
"""Contexts of a stretch, for d from 512 on and below: more make the m x m matrices as large as those they stand for."""
DENSE_SHARE, DENSE_ENTRIES = 0.2, 64.0
"""Share of entries other than 0, and how many a context, below both of which a stretch is not looked at: context by
context reads what they name alone. Measured at :math:`K = 10`: even at a share of 0.25 for :math:`d = 256`, at 0.04 (40
entries) for :math:`d = 1024`."""


class Inverses(NamedTuple):
    """P (M, S), packed, or rows where `low` says so; H (M, D), the rows :math:`h_i`, padded.

    ahead and low are None for small models, whose kernels then know nothing of them. Scratch: point, the context at hand;
    v (D,), :math:`P_i x`.
    """

    P: Floats
    H: Floats
    point: Point
    v: Floats
    ahead: Ahead | None
    low: LowRank | None

    def kept_as(self, other: Inverses) -> Inverses:
        """Return these models, of which none has learnt anything, whole where `other`, of fewer models, is small."""
        if self.low is None or other.low is not None:
            return self
        self.P[:] = identities(self.low.scales, self.low.d)
        return self._replace(low=kept_whole(self.low))


def inverses(scales: NDArray[np.float64], d: int) -> Inverses:
    r"""Return models :math:`P_i = \text{scales}_i I` of size d, :math:`h_i = 0`."""
    M, D = len(scales), width(d)
    P = zeros(M, size_of(D))
    if 8 * M * size_of(D) < LARGE:
        P[:] = identities(scales, d)
        return Inverses(P, zeros(M, D), point(d), zeros(D), None, None)
    m = LONG_STRETCH if d >= 512 else SHORT_STRETCH
    return Inverses(P, zeros(M, D), point(d), zeros(D), ahead(M, d, m), low_rank(scales, d, m))


def dense_inverses(inverses: Inverses, d: int) -> Floats:
    """Return the matrices :math:`P_i` (M, d, d), however they are kept."""
    P, low = dense(inverses.P, d), inverses.low
    if low is not None:
        for i in range(len(P)):
            if low.ranks[i] != WHOLE:
                F = rows(low, inverses.P, i)[:, -d:]
                P[i] = low.scales[i] * np.eye(d) + low.sign * F.T @ F
    return P


@inline
def read(inverses, x, m, q):
    """Write :math:`m_i = h_i'x` and :math:`q_i = x'P_i x` of all models."""
    if not read_ahead(inverses.ahead, m, q):
        see(inverses.point, x)
        rows_times(inverses.H, inverses.point.x, m)
        all_forms(inverses.P, inverses.low, inverses.point, q)


@inline
def recall(inverses, x, i):
    """Return :math:`m_i` and :math:`q_i`, ready for `move` at the same x."""
    looked, m, q = recall_ahead(inverses.ahead, i)
    if looked:
        return m, q
    # v = P_i x, which `move` needs, too
    v, own = inverses.v, inverses.point.x
    lay(x, own)
    any_product(inverses.P[i], inverses.low, i, own, v)
    q = inner(own, v)
    return inner(own, inverses.H[i]), 0.0 if q < 0.0 else q  # by rounding


@inline
def move(inverses, i, step, s):
    r""":math:`h_i \mathrel{+}= \text{step}\, v` and :math:`P_i \mathrel{-}= s v v'`, :math:`s \ge 0`, :math:`v = P_i x`
    at the x of `recall`; once a round at most for each model.
    """
    if not move_ahead(inverses.ahead, i, step, s):
        step_along(inverses.H[i], step, inverses.v)
        any_downdate(inverses.P[i], inverses.low, i, inverses.v, s)


@inline
def prefetch(inverses, X, t, behind):
    """Context t of X (n, d - e) comes next, with the e numbers `behind` under it; :math:`t = n`: none, and P and H are
    up to date.

    A loop calls it before every round. Whether a stretch is worth looking at is asked once a stretch.
    """
    prefetch_from(inverses.ahead, inverses.P, inverses.low, inverses.H, X, t, behind)


@njit
def prefetch_from(ahead, P, low, H, X, t, behind):
    if ahead is None:
        return
    place = ahead.place
    # Within a stretch there is nothing to do but to count the round.
    place[POSITION] += 1
    if t < X.shape[0] and place[POSITION] < place[LENGTH]:
        return
    # A new stretch, if its contexts are full enough; in any case the last one is brought to its end.
    part = X[t : t + ahead.G.shape[1]]
    worth = part.shape[0] >= SHORTEST and entries(part) >= min(DENSE_SHARE * X.shape[1], DENSE_ENTRIES)
    if worth or place[ACTIVE] == 1:
        next_stretch(P, low, H, ahead, part if worth else X[t:t], behind)
    place[POSITION], place[LENGTH] = 0, part.shape[0]


@njit
def entries(X):
    """Return how many entries of a context of X (n, d) are not 0, on average."""
    found = 0
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            found += X[t, j] != 0.0
    return found / X.shape[0]
