"""Up to eight contexts of a block seen together: StackCB's experts are read once for all of them, not once a round.

With many classes or columns a round of StackCB waits for memory: it reads all models of all experts, some megabytes, to look
at one context. Between two lessons of a class its models stay as they are, and views stay as long as the scale does. So at
the first of eight rounds everybody looks at all eight contexts, and after a lesson the models that learnt look once more at
those to come. A sketch whose basis has turned looks at everything anew, and a new scale ends the stretch.

Nothing is updated in place of being read: every number comes from the operations, in the order, that a round by itself takes.
A block plays what rounds one by one play, to the last bit.

`look_linear`, `again_linear` and `take_linear` choose by the type of `linear` when a kernel is compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.stacked.experts import Bank, look_again, look_along, look_expert
from banditlab.agents.stacked.linear_experts import VIEWS, Compact, count_linear
from banditlab.agents.stacked.views import Frequencies, SingleFrequencies, see_views_of
from banditlab.numerics.contexts import by_context
from banditlab.numerics.dense import overwrite
from banditlab.numerics.frequent_directions import FRESH, REST, ROWS, SHRINKS, SQUARE, rest_of
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.own_sketch import OwnSketch
from banditlab.numerics.packed_single import Singles
from banditlab.numerics.packed_single import lay as lay_single
from banditlab.numerics.packed_single import zeros as single_zeros
from banditlab.numerics.packed_symmetric import Floats, form_of_contexts, forms_of_contexts, inner, lay, width, zeros
from banditlab.numerics.packed_symmetric import see as see_point
from banditlab.numerics.row_products import times_each

LONGEST = 8
"""Contexts of a stretch. A lesson's models look again at half of them in the mean."""
FEWEST, LARGE = 8, 2**24
"""Models of an expert, and these times the bytes that a round reads, from which on it is worth it: with few models a lesson
has most of them look again. Measured, with 1 MiB of a core's own cache: level at 8 to 14 MiB, 1.3 times as fast at 34 to 52,
1.6 times at ten times as much, 2.6 times from a gigabyte on."""


class SeenWhole(NamedTuple):
    """The linear views of contexts to come, X (2 or 3, n, D), in float32."""

    X: Singles


class SeenDiagonals(NamedTuple):
    """One view of contexts to come, X (n, D), and its squares (n, D)."""

    X: Floats
    squares: Floats


class SeenSketch(NamedTuple):
    """One view of contexts to come, X (n, D), in the sketch: A (n, mp), rest and square (n,).

    basis (2,): rows and turns of the basis that A is in.
    """

    X: Floats
    A: Floats
    rest: Floats
    square: Floats
    basis: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the range of every integer."""
        return {"basis": (0, COUNT[1])}


class SeenCompact(NamedTuple):
    """What the compact linear experts see of contexts to come: `SeenDiagonals` or `SeenSketch` of either view."""

    standardised: Any
    ranged: Any


class Ahead(NamedTuple):
    """What is known of the contexts to come, n at most.

    place (3,): 1 in a stretch, else 0; the round at hand, counted from the stretch's first; its length. views (n, all of a
    context's); m, q (n, E M), as `Room` has them; linear; X (blocks, n, F), the Fourier views in float32. Scratch: v, ranks
    (n, d), of the type of W; sums (n, 32).
    """

    place: NDArray[np.int64]
    views: Floats
    m: Floats
    q: Floats
    linear: SeenWhole | SeenCompact
    X: Singles
    v: Floats | Singles
    ranks: Floats | Singles
    sums: Singles

    def limits(self) -> Limits:
        """Return the range of every integer at rest: no stretch is under way."""
        return {"place": (0, np.array([0, 0, len(self.views)]))}


ON, AT, LENGTH = range(3)
"""Slots of `Ahead.place`."""


def ahead(linear: Bank | Compact, fourier: Bank, W: Frequencies, size_of_views: int) -> Ahead | None:
    """Return room for a stretch, None where it would save nothing: few models, or little that a round reads."""
    blocks, M, n = len(fourier.P), fourier.P.shape[1], LONGEST
    frequencies = W.W if isinstance(W, SingleFrequencies) else W
    if M < FEWEST or M * _bytes_read(linear, fourier, W) < LARGE:
        return None
    numbers = width((count_linear(linear) + blocks) * M)
    return Ahead(
        place=np.zeros(3, np.int64),
        views=np.zeros((n, size_of_views)),
        m=zeros(n, numbers),
        q=zeros(n, numbers),
        linear=_seen(linear, n),
        X=single_zeros(blocks, n, fourier.H.shape[2]),
        v=np.zeros((n, frequencies.shape[2]), frequencies.dtype),
        ranks=np.zeros((n, frequencies.shape[2]), frequencies.dtype),
        sums=single_zeros(n, 32),
    )


def _bytes_read(linear: Bank | Compact, fourier: Bank, W: Frequencies) -> int:
    """Return about how much memory a round goes through: every second Fourier expert reads its matrices."""
    return _bytes_of((linear, W)) + fourier.P[::2].nbytes


def _bytes_of(state: Any) -> int:
    if isinstance(state, tuple):
        return sum(map(_bytes_of, state))
    return state.nbytes if isinstance(state, np.ndarray) and state.flags.writeable else 0


def _seen(linear: Bank | Compact, n: int) -> SeenWhole | SeenCompact:
    if isinstance(linear, Bank):
        return SeenWhole(single_zeros((len(linear.P) + 1) // 2, n, linear.H.shape[2]))
    one, other = (_seen_view(view, n) for view in linear[:VIEWS])
    return SeenCompact(one, other)


def _seen_view(models: Any, n: int) -> SeenDiagonals | SeenSketch:
    if isinstance(models, OwnSketch):
        mp, D = models.sketch.Q.shape
        return SeenSketch(zeros(n, D), zeros(n, mp), np.zeros(n), np.zeros(n), np.zeros(2, np.int64))
    D = models.H.shape[1]
    return SeenDiagonals(zeros(n, D), zeros(n, D))


# ------------------------------------------------------------------------------------------------------ one compact view


def _look_diagonals(models, seen, views, start, size, n, m, q, at):
    """Take in views[t, start : start + size] of n contexts, and write m_i and q_i of a view's models from column `at` on."""
    for t in range(n):
        lay(views[t, start : start + size], seen.X[t])
        for j in range(seen.X.shape[1]):
            seen.squares[t, j] = seen.X[t, j] * seen.X[t, j]
    times_each(models.H, seen.X, 0, n, m, at)
    times_each(models.P, seen.squares, 0, n, q, at)


def _again_diagonals(models, seen, k, first, n, m, q, at):
    """Write those of the models of class k, which have learnt, for the contexts from `first` on."""
    apart = models.H.shape[0] // 2
    for i in range(k, models.H.shape[0], apart):
        times_each(models.H[i : i + 1], seen.X, first, n, m, at + i)
        times_each(models.P[i : i + 1], seen.squares, first, n, q, at + i)


def _take_diagonals(models, seen, t):
    """Nothing is kept of a context between reading and learning."""


def _look_sketched(models, seen, views, start, size, n, m, q, at):
    for t in range(n):
        lay(views[t, start : start + size], seen.X[t])
    read_seen(models, seen, 0, n, m, q, at)


@njit
def read_seen(models, seen, first, n, m, q, at):
    """Write coordinates, and m_i and q_i of all models, for the contexts from `first` on."""
    sketch, inverses, X, A = models.sketch, models.inverses, seen.X, seen.A
    times_each(sketch.Q, X, first, n, A, 0)
    times_each(inverses.H, X, first, n, m, at)
    forms_of_contexts(inverses.B, A, first, n, sketch.point, q, at)
    for t in range(first, n):
        seen.square[t] = inner(X[t], X[t])
        seen.rest[t] = rest_of(seen.square[t], A[t])
        for i in range(inverses.p.shape[0]):
            m[t, at + i] += inner(inverses.E[i], A[t])
            q[t, at + i] += inverses.p[i] * seen.rest[t]
    sketch.counts[FRESH] = 0  # `point` is another's now
    seen.basis[0], seen.basis[1] = sketch.counts[ROWS], sketch.counts[SHRINKS]


def _again_sketched(models, seen, k, first, n, m, q, at):
    sketch, inverses = models.sketch, models.inverses
    if seen.basis[0] != sketch.counts[ROWS] or seen.basis[1] != sketch.counts[SHRINKS]:
        read_seen(models, seen, first, n, m, q, at)
        return
    M = inverses.p.shape[0]
    for i in range(k, M, M // 2):
        times_each(inverses.H[i : i + 1], seen.X, first, n, m, at + i)
        form_of_contexts(inverses.B, i, seen.A, first, n, sketch.point, q, at)
        for t in range(first, n):
            m[t, at + i] += inner(inverses.E[i], seen.A[t])
            q[t, at + i] += inverses.p[i] * seen.rest[t]
    sketch.counts[FRESH] = 0


def _take_sketched(models, seen, t):
    """Make context t the sketch's at hand."""
    sketch = models.sketch
    overwrite(sketch.x, seen.X[t])
    overwrite(sketch.a, seen.A[t])
    see_point(sketch.point, sketch.a)
    sketch.numbers[REST], sketch.numbers[SQUARE], sketch.counts[FRESH] = seen.rest[t], seen.square[t], 1


look_view = by_context(_look_diagonals, _look_sketched, kind=OwnSketch, name="models")
again_view = by_context(_again_diagonals, _again_sketched, kind=OwnSketch, name="models")
take_view = by_context(_take_diagonals, _take_sketched, kind=OwnSketch, name="models")


# ----------------------------------------------------------------------------------------------------- the linear experts


def _look_whole(linear, seen, views, size, n, m, q, sums):
    """Write m and q of the linear experts' models at n contexts, `size` numbers of `views` for each of their views."""
    M = linear.P.shape[1]
    for e in range(linear.P.shape[0]):
        X = seen.X[e // 2, :n]
        if e % 2 == 0:
            for t in range(n):
                lay_single(views[t, (e // 2) * size : (e // 2 + 1) * size], X[t])
        look_expert(linear, e, X, 0, m, q, e * M, sums)


def _again_whole(linear, seen, k, first, n, m, q):
    """Write those of the models of class k, which have learnt, for the contexts from `first` on."""
    M = linear.P.shape[1]
    for e in range(linear.P.shape[0]):
        look_again(linear, e, k, seen.X[e // 2, :n], first, m, q, e * M, False)


def _take_whole(linear, seen, t):
    """Nothing is kept of a context between reading and learning."""


def _look_compact(linear, seen, views, size, n, m, q, sums):
    look_view(linear.standardised, seen.standardised, views, 0, size, n, m, q, 0)
    look_view(linear.ranged, seen.ranged, views, size, size, n, m, q, linear.start.shape[0])


def _again_compact(linear, seen, k, first, n, m, q):
    again_view(linear.standardised, seen.standardised, k, first, n, m, q, 0)
    again_view(linear.ranged, seen.ranged, k, first, n, m, q, linear.start.shape[0])


def _take_compact(linear, seen, t):
    take_view(linear.standardised, seen.standardised, t)
    take_view(linear.ranged, seen.ranged, t)


look_linear = by_context(_look_whole, _look_compact, kind=Compact, name="linear")
again_linear = by_context(_again_whole, _again_compact, kind=Compact, name="linear")
take_linear = by_context(_take_whole, _take_compact, kind=Compact, name="linear")


# ------------------------------------------------------------------------------------------------------------ all experts


@njit
def look_from(ahead, scale, W, by_rank, linear, fourier, X, t):
    """Context t of X (N, d) comes next; t = N: none. A loop says so before every round."""
    place = ahead.place
    place[AT] += 1
    if t < X.shape[0] and place[ON] == 1 and place[AT] < place[LENGTH]:
        return
    place[ON] = place[AT] = 0
    if t < X.shape[0]:
        look_at(ahead, scale, W, by_rank, linear, fourier, X[t : t + ahead.views.shape[0]])


@njit
def look_at(ahead, scale, W, by_rank, linear, fourier, contexts):
    """Begin a stretch of contexts (n, d)."""
    n, size, m, q = contexts.shape[0], contexts.shape[1] + 1, ahead.m, ahead.q
    ahead.place[ON], ahead.place[LENGTH] = 1, n
    see_views_of(scale, W, by_rank, fourier.H.shape[2], contexts, ahead.v, ahead.ranks, ahead.views)
    look_linear(linear, ahead.linear, ahead.views, size, n, m, q, ahead.sums)
    M, F, n_blocks = fourier.P.shape[1], fourier.H.shape[2], fourier.P.shape[0]
    first, before = ahead.views.shape[1] - n_blocks * F, count_linear(linear)
    for b in range(n_blocks):
        start, at, X = first + b * F, (before + b) * M, ahead.X[b, :n]
        for t in range(n):
            lay_single(ahead.views[t, start : start + F], X[t])
        if b % 2 == 0:
            look_expert(fourier, b, X, 0, m, q, at, ahead.sums)
        else:
            look_along(fourier, b, X, 0, m, at)
            for t in range(n):
                for k in range(M):
                    q[t, at + k] = q[t, at - M + k]


@inline
def recall(ahead, linear, views, m, q):
    """Write the views, m and q of the round at hand, if it was looked at, and return whether it was."""
    if ahead is None:  # settled when the kernel is compiled: where little is read nobody looks ahead
        return False
    if ahead.place[ON] == 0:
        return False
    t = ahead.place[AT]
    overwrite(views, ahead.views[t])
    overwrite(m, ahead.m[t])
    overwrite(q, ahead.q[t])
    take_linear(linear, ahead.linear, t)
    return True


@inline
def look_once_more(ahead, linear, fourier, k):
    """Let the models of class k, which have learnt, look at the contexts to come, if there is a stretch."""
    if ahead is None:
        return
    if ahead.place[ON] == 1 and ahead.place[AT] + 1 < ahead.place[LENGTH]:
        again(ahead, linear, fourier, k)


@njit
def again(ahead, linear, fourier, k):
    first, n, m, q = ahead.place[AT] + 1, ahead.place[LENGTH], ahead.m, ahead.q
    again_linear(linear, ahead.linear, k, first, n, m, q)
    M = fourier.P.shape[1]
    for b in range(fourier.P.shape[0]):
        at, shares = (count_linear(linear) + b) * M, b % 2 == 1
        look_again(fourier, b, k, ahead.X[b, :n], first, m, q, at, shares)
        for t in range(first, n if shares else first):
            q[t, at + k] = q[t, at - M + k]


@inline
def end_stretch(ahead):
    """What was seen holds no more."""
    if ahead is None:
        return
    ahead.place[ON] = 0
