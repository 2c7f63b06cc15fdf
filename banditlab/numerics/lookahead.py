r"""Prefetch of a block of contexts, so matrices :math:`P_i` and vectors :math:`h_i` are read once for m rounds.

Problem. Models :math:`i = 1, \dots, M` store :math:`P_i = A_i^{-1}` (see `packed_symmetric`) and :math:`h_i`. Round t
reads :math:`m_i = h_i'x_t` and :math:`q_i = x_t'P_i x_t` of all models, and updates some of them. With
:math:`v = P_i x_t` an update is

.. math::

    h_i \leftarrow h_i + \text{step}\, v, \qquad P_i \leftarrow P_i - s v v', \quad s \ge 0. \tag{1}

If the :math:`M d^2/2` numbers exceed the processor's caches, a round takes as long as reading them from memory. Suppose
that the next :math:`n \le m` contexts, the columns of X (d, n), are known. In these rounds it is then enough to read
and update

.. math::

    G_i = X'P_i X \quad (n \times n), \qquad g_i = X'h_i. \tag{2}

Round t reads :math:`q_i = (G_i)_{tt}` and :math:`m_i = (g_i)_t`. Column t of :math:`G_i` is :math:`c = X'v`.
Multiplying (1) by :math:`X'` from the left and X from the right gives updates without :math:`d \times d` matrices:

.. math::

    g_i \leftarrow g_i + \text{step}\, c, \qquad G_i \leftarrow G_i - s c c'. \tag{3}

Only the entries of later rounds need (3), so row t is not changed after round t. After the block, every model is
brought up to date. Let model i have updates in the rounds :math:`t_1 < \dots < t_r`. The :math:`v_a` of (1) follow from
the :math:`P_i` at the beginning of the block:

.. math::

    v_a = P_i x_{t_a} - \sum_{b<a} s_b (c_b)_{t_a} v_b, \qquad (c_b)_{t_a} = (G_i)_{t_b t_a} \text{ in round } t_b,
    \tag{4}

This takes one product of :math:`P_i` with r contexts. Then :math:`h_i \mathrel{+}= \sum_a \text{step}_a v_a` and, with
:math:`f_a = \sqrt{s_a} v_a`,

.. math::

    P_i \leftarrow P_i - \sum_a f_a f_a', \tag{5}

with eight rows of :math:`P_i` at a time. While these rows are in the cache, (2) is computed for the next block. With L
the lower block triangle, :math:`P = L + L'` and :math:`G = X'L X + (X'L X)'`. :math:`L X` is stored for (4), where only
the second term of :math:`P x = L x + L'x` remains to be computed.

A model with few updates has the low-rank form :math:`P_i = p I - F'F` (see `low_rank`). Then
:math:`G_i = p X'X - (F X)'(F X)`, :math:`P_i x` is two products with F, and (5) appends the rows :math:`f_a`.

Rounding. The results are exact up to rounding. q is computed as a difference, both by (3) and as :math:`x'P x` with P
from (1). If a context is repeated, q falls from :math:`\|x\|^2/\lambda` to about 1; its error is a few rounding errors
of its earlier value.

Cost per round: :math:`d^2 + 2 n d` operations per model for (2), as a matrix product, and :math:`2 d^2` per updated
model. In n rounds :math:`P_i` is read from memory once, plus once for every sixteen contexts of its updates, and
written once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.limits import Limits
from banditlab.numerics.low_rank import (
    WHOLE,
    any_product,
    append,
    capacity,
    make_whole,
    products_of_contexts,
    rows_product_of_eight,
    rows_read,
)
from banditlab.numerics.packed_symmetric import Floats, step_along, width, zeros
from banditlab.numerics.row_products import clear, scale
from banditlab.numerics.row_tiles import GROUP, TILE, eight_rows, strip_times, subtract_rows_of
from banditlab.numerics.simd import WIDTH, all_lanes, combined, eight, put

SHORTEST = 8
"""Fewer contexts than this are processed one by one."""
MOST_SINGLE = 2
"""Up to this many remaining contexts take one pass over the matrix each; more share a pass."""

ACTIVE, POSITION, LENGTH, HALF = range(4)
"""Entries of `Ahead.place`: 1 in a prefetched block, else 0; the current round in the block; the block's length; the
half of X in use.
"""
MEAN, STEP, WEIGHT = range(3)
r"""Rows of `Ahead.terms[i]`: :math:`g_i`; :math:`\text{step}_a` and :math:`s_a` of the rounds with updates."""


class Ahead(NamedTuple):
    r"""The arrays of M models for a block of up to m contexts.

    The constants that index `place` (4,) and `terms` (M, 3, m) describe their entries. `rounds` (M, 1 + m) contains r
    and :math:`t_1, \dots, t_r` of every model. Each matrix of G (M, m, m) is updated by (3) and read only on and above
    its diagonal. X (2, m/16, D, 16) contains the contexts of this block and the previous one as columns, in groups of
    sixteen. LX (M, D, m) contains :math:`L X` of every model that is stored as a whole matrix. Work arrays: V (m, D),
    the :math:`v_a` and then the :math:`f_a` of one model; `scratch`; and `pair` (2 D 16,), contexts as columns and
    their products.
    """

    place: NDArray[np.int64]
    rounds: NDArray[np.int64]
    terms: Floats
    G: Floats
    X: Floats
    V: Floats
    scratch: Floats
    LX: Floats | None
    pair: Floats | None

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state at the end of a block, when no update is pending."""
        place, m = np.zeros(4, np.int64), self.G.shape[1]
        place[HALF] = 1
        rounds = np.full(1 + m, m - 1)
        rounds[0] = 0
        return {"place": (0, place), "rounds": (0, rounds)}


def ahead(M: int, d: int, m: int) -> Ahead:
    """Return the arrays for blocks of m contexts, a multiple of sixteen."""
    D = width(d)
    return Ahead(
        place=np.zeros(4, np.int64),
        rounds=np.zeros((M, 1 + m), np.int64),
        terms=zeros(M, 3, m),
        G=zeros(M, m, m),
        X=zeros(2, m // TILE, D, TILE),
        V=zeros(m, D),
        scratch=zeros(max(WIDTH * m, 2 * WIDTH * D)),
        LX=zeros(M, D, m),
        pair=zeros(2 * D * TILE),
    )


# ------------------------------------------------------------------------------------------------------- within a stretch


@inline
def read_ahead(ahead, m, q):
    """Write :math:`m_i = h_i'x` and :math:`q_i = x'P_i x` if the current round was prefetched; return whether it was."""
    if ahead is None:  # known when the kernel is compiled, and None for small models
        return False
    if ahead.place[ACTIVE] == 0:
        return False
    t = ahead.place[POSITION]
    for i in range(ahead.G.shape[0]):
        m[i], q[i] = ahead.terms[i, MEAN, t], ahead.G[i, t, t]
    return True


@inline
def read_one_ahead(ahead, i):
    """Return whether the current round was prefetched, and :math:`m_i` and :math:`q_i` if it was."""
    if ahead is None:
        return False, 0.0, 0.0
    if ahead.place[ACTIVE] == 0:
        return False, 0.0, 0.0
    t = ahead.place[POSITION]
    q = ahead.G[i, t, t]
    return True, ahead.terms[i, MEAN, t], 0.0 if q < 0.0 else q


@inline
def update_ahead(ahead, i, step, s):
    """Update model i in the current round, if it was prefetched, and return whether it was."""
    if ahead is None:
        return False
    if ahead.place[ACTIVE] == 0:
        return False
    update_stretch(ahead, i, step, s)
    return True


@njit
def update_stretch(ahead, i, step, s):
    """Apply (3) for the later rounds of the block; (1) is applied at the end of the block."""
    t, n = ahead.place[POSITION], ahead.place[LENGTH]
    rounds, terms, G = borrow(ahead.rounds[i]), borrow(ahead.terms[i]), borrow(ahead.G[i])
    c, m = borrow(G[t]), G.shape[0]
    # Store what (4) and (5) require of this round after the block.
    a = rounds[0]
    rounds[0], rounds[1 + a], terms[STEP, a], terms[WEIGHT, a] = a + 1, t, step, s
    # g <- g + step c, and G <- G - s c c' row by row, both to the right of t.
    for b in range((t + 1) // WIDTH * WIDTH, n, WIDTH):  # eight at a time, because g up to t is not used any more
        put(terms, b, eight(terms, b) + eight(c, b) * step)
    for a in range(t + 1, n):
        by = s * c[a]
        for b in range(a // WIDTH * WIDTH, n, WIDTH):  # and neither are entries to the left of the diagonal
            put(G, a * m + b, eight(G, a * m + b) - eight(c, b) * by)


# ---------------------------------------------------------------------------------------------------- between two stretches


@njit
def next_stretch(P, low, H, ahead, X, behind):
    """Bring P (M, S) and H (M, D) up to date, then prefetch n contexts.

    The contexts are the rows of X (n, d - e), each followed by the numbers `behind` (e,). n may be 0.
    """
    P, H, ahead = borrow(P), borrow(H), borrow(ahead)
    n, half = X.shape[0], ahead.place[HALF]
    # (4) still requires the old contexts, so the new ones use the other half.
    old, new = ahead.X[half], ahead.X[1 - half]
    ahead.place[ACTIVE], ahead.place[POSITION], ahead.place[LENGTH], ahead.place[HALF] = n > 0, 0, n, 1 - half
    pad_contexts(new, X, behind)
    products_of_contexts(low, new, n)
    for i in range(P.shape[0]):
        complete(P[i], low, H[i], old, ahead, i)  # (4), and h_i
        if low.ranks[i] != WHOLE and low.ranks[i] + ahead.rounds[i, 0] > capacity(H.shape[1]):
            make_whole(P[i], low, i)
        if low.ranks[i] == WHOLE:
            subtract_and_read(P[i], new, ahead, i, n)  # (5), then (2)
        else:
            append_and_read(P[i], low, new, ahead, i, n)
        means(H[i], new, ahead.terms[i, MEAN], n)  # g_i = X'h_i
        ahead.rounds[i, 0] = 0


@njit
def pad_contexts(own, X, behind):
    """Copy the contexts, rows of X (n, d - e), each followed by `behind` (e,), into columns of own (m/16, D, 16).

    The first D - d entries of each column stay 0.
    """
    n, d = X.shape
    first = own.shape[1] - d - behind.shape[0]
    for tile in range(-(-n // TILE)):
        for place in range(TILE):
            t = tile * TILE + place
            # Columns after the last context are zeros.
            for j in range(d):
                own[tile, first + j, place] = X[t, j] if t < n else 0.0
            for j in range(behind.shape[0]):
                own[tile, first + d + j, place] = behind[j] if t < n else 0.0


@njit
def append_and_read(P, low, X, ahead, i, n):
    """Append the rows of (5) to model i's low-rank P, and write (2) for n contexts X (m/16, D, 16)."""
    for a in range(ahead.rounds[i, 0]):
        append(P, low, i, 1.0, ahead.V[a])
    m = ahead.G.shape[1]
    rows_read(P, low, i, X, ahead.G[i], ahead.scratch[: WIDTH * m].reshape(WIDTH, m), n)


@njit
def complete(P, low, h, X, ahead, i):
    """Write the :math:`f_a` of model i from (4) and (5) into V, and update h (D,).

    V is padded with rows of zeros to a multiple of four.
    """
    V, G, steps, s = ahead.V, ahead.G[i], ahead.terms[i, STEP], ahead.terms[i, WEIGHT]
    r, D = ahead.rounds[i, 0], h.shape[0]
    t = ahead.rounds[i, 1 : 1 + r]
    # V_a = P x_{t_a}, with up to sixteen contexts per pass over P, or one.
    for a in range(0, r, TILE):
        if r - a <= MOST_SINGLE:
            for b in range(a, r):
                column(X, t[b], ahead.scratch[:D])
                any_product(P, low, i, ahead.scratch[:D], V[b])
        else:
            products(P, low, i, X, ahead.LX[i], t[a : min(a + TILE, r)], ahead.pair, V[a:])
    # (4): v_a = V_a - sum_b s_b G[t_b, t_a] v_b; h += step_a v_a
    for a in range(r):
        for b in range(a):
            step_along(V[a], -s[b] * G[t[b], t[a]], V[b])
        step_along(h, steps[a], V[a])
    # f_a = sqrt(s_a) v_a
    for a in range(r):
        scale(V[a], math.sqrt(s[a]))
    for a in range(r, -(-r // GROUP) * GROUP):
        clear(V[a])


@njit
def column(X, t, x):
    """Copy context t of X (m/16, D, 16) into x (D,)."""
    for j in range(x.shape[0]):
        x[j] = X[t // TILE, j, t % TILE]


@njit
def products(P, low, i, X, LX, rounds, pair, V):
    """Write :math:`P x_t` for the contexts of up to sixteen `rounds` into rows of V (m, D); P belongs to model i."""
    if low.ranks[i] == WHOLE:
        whole_products(P, X, LX, rounds, pair, V)
        return
    for a in range(0, rounds.shape[0], WIDTH):
        few, Pfew = as_lanes(X, rounds[a : min(a + WIDTH, rounds.shape[0])], WIDTH, pair, V.shape[1])
        rows_product_of_eight(P, low.ranks[i], low.scales[i], few, Pfew)
        from_lanes(Pfew, min(WIDTH, rounds.shape[0] - a), V[a:])


@njit(arrays="views")
def as_lanes(X, rounds, wide, pair, D):
    """Return the contexts of `rounds` as columns (D, wide), padded with zeros, and a work array of that shape.

    Both are views of `pair`.
    """
    pair = borrow(pair)
    few, out = pair[: D * wide].reshape(D, wide), pair[D * wide : 2 * D * wide].reshape(D, wide)
    for j in range(D):
        for a in range(wide):
            few[j, a] = X[rounds[a] // TILE, j, rounds[a] % TILE] if a < rounds.shape[0] else 0.0
    return few, out


@njit
def from_lanes(columns, n, V):
    """Copy the first n of the columns (D, wide) into rows of V (m, D)."""
    for a in range(n):
        for j in range(columns.shape[0]):
            V[a, j] = columns[j, a]


@njit
def whole_products(P, X, LX, rounds, pair, V):
    """Write :math:`L x_t + L'x_t` for a whole P, for eight or sixteen contexts at a time.

    The first term is already in LX (D, m).
    """
    wide = WIDTH if rounds.shape[0] <= WIDTH else TILE
    few, out = as_lanes(X, rounds, wide, pair, V.shape[1])
    for j in range(out.shape[0]):
        for a in range(wide):
            out[j, a] = LX[j, rounds[a]] if a < rounds.shape[0] else 0.0
    add_other_half(P, few, out)
    from_lanes(out, rounds.shape[0], V)


@njit
def add_other_half(P, X, out):
    """Add :math:`L'X` to `out` (D, wide), for L stored in P (S,), and X (D, wide).

    Each block of eight rows of L adds multiples of the same eight rows of X to these rows of `out` and those before.
    """
    P, X, out = borrow(P), borrow(X), borrow(out)
    i, wide = 0, X.shape[1]
    for I in range(0, X.shape[0], WIDTH):
        for first in range(0, wide, WIDTH):
            y, o = eight_rows(X, wide * I + first, wide), first
            for j in range(i, i + WIDTH * (I + WIDTH), WIDTH):
                put(out, o, eight(out, o) + combined(y, P, j, 1))
                o += wide
        i += WIDTH * (I + WIDTH)


@njit
def subtract_and_read(P, X, ahead, i, n):
    """Subtract (5) from model i's P, and write (2) and :math:`L X` for n contexts X (m/16, D, 16).

    This takes one pass over P, eight rows at a time.
    """
    P, X, ahead = borrow(P), borrow(X), borrow(ahead)
    V, G, r, tiles, m = ahead.V, ahead.G[i], ahead.rounds[i, 0], -(-n // TILE), ahead.G.shape[1]
    # G = 0
    for o in range(0, TILE * tiles * m, WIDTH):
        put(G, o, all_lanes(0.0))
    start = 0
    for I in range(0, X.shape[1] if r + n > 0 else 0, WIDTH):
        # (5) for these eight rows, four f_a at a time
        for a in range(0, r, GROUP):
            subtract_rows_of(P, start, I, V, a)
        # L X for these eight rows, sixteen contexts at a time
        strip = ahead.LX[i, I : I + WIDTH]
        for tile in range(tiles):
            strip_times(P, start, I + WIDTH, X, tile, strip)
        # G += X_I'(L X)_I, eight by sixteen at a time
        for t in range(0, TILE * tiles, WIDTH):
            y = eight_rows(strip, t, m)
            for tile in range(tiles):
                o = (tile * X.shape[1] + I) * TILE
                for a in range(TILE):
                    to = (tile * TILE + a) * m + t
                    put(G, to, eight(G, to) + combined(y, X, o + a, TILE))
        start += WIDTH * (I + WIDTH)
    for a in range(n):
        for b in range(a, n):
            G[a, b] = G[b, a] = G[a, b] + G[b, a]  # X'L X + (X'L X)'


@njit
def means(h, X, g, n):
    """Write :math:`h'x_t` into g for the first n contexts of X (m/16, D, 16)."""
    h, X, g = borrow(h), borrow(X), borrow(g)
    for t in range(0, n, TILE):
        a, b, o = all_lanes(0.0), all_lanes(0.0), t * h.shape[0]
        for j in range(h.shape[0]):
            a, b, o = a + eight(X, o) * h[j], b + eight(X, o + WIDTH) * h[j], o + TILE
        put(g, t, a)
        put(g, t + WIDTH, b)
