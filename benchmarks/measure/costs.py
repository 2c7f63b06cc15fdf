"""What a round costs by the algorithm's own arithmetic: the table from which floors and theoretical orders are computed.

One line a player: the operations of a round by kind, the numbers of its state that a round must read or write, and the
numbers it keeps, as functions of a `Cell`. They restate the cost given in the player's docstring with its constants,
for the form that is implemented, at its leanest: a symmetric matrix counts half, a matrix read twice in a row counts
once, zeros of the context count nothing where the form skips them, and what is data-dependent is counted as it was
measured (`hits`, the share of rounds that were right; `heavy`, that of open duels or accepted hits) or left out
(projections, Newton steps beyond `STEPS`).
What is left out makes the ratio to the floor larger, never smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

STEPS = 3
"""Newton steps of a root of K equations, and exponentials of a scalar root."""


class Cell(NamedTuple):
    """Where a cost is wanted: K classes, d features of which `nonzero` are not 0, share of `hits`, rounds so far.

    `heavy`: the share of rounds that a player's `watch` tells apart.
    """

    K: int
    d: int
    nonzero: float
    hits: float = 0.5
    rounds: int = 1000
    heavy: float = 0.0

    @classmethod
    def dense(cls, K: int, d: int, hits: float = 0.5, rounds: int = 1000) -> Cell:
        """Return a cell whose contexts have no zeros."""
        return cls(K, d, float(d), hits, rounds)


class Cost(NamedTuple):
    """A round: floating-point operations by kind, and numbers (8 bytes each) of the state read plus written.

    gemm: matrix-matrix; gemv: matrix-vector (of matrices of `size` entries); stream: element by element; exp: elementary
    functions; root: quotients by square roots; quotient: divisions.
    """

    gemm: float = 0.0
    gemv: float = 0.0
    stream: float = 0.0
    exp: float = 0.0
    root: float = 0.0
    quotient: float = 0.0
    moved: float = 0.0
    size: float = 1.0

    def plus(self, other: Cost, times: float = 1.0) -> Cost:
        """Return the sum with `times` another's operations; the larger of the two sizes."""
        added = {name: getattr(self, name) + times * getattr(other, name) for name in Cost._fields if name != "size"}
        return Cost(**added, size=max(self.size, other.size))

    def operations(self) -> float:
        """Return all operations, of whatever kind."""
        return self.gemm + self.gemv + self.stream + self.exp + self.root + self.quotient


class Player(NamedTuple):
    """A line of the table.

    `order`: the theoretical order of a round as its docstring gives it. `state`: numbers kept. `job`: which methods of
    other libraries do the same: "first" order or "second" order per class. `note` explains what grows faster than the
    order, `rest` where what stands above the floor goes, from a profile at K = 10, d = 64. `classes` 2: a binary learner.
    `watch` returns a number of the player that changes in rounds which cost more; their share is in the cell.
    """

    id: str
    kind: str
    settings: dict[str, Any]
    order: str
    cost: Callable[[Cell], Cost]
    state: Callable[[int, int], float]
    job: str = ""
    classes: int | None = None
    note: str = ""
    rest: str = ""
    watch: Callable[[Any], float] | None = None

    @property
    def label(self) -> str:
        """The id with the settings that were given."""
        return " ".join([self.id, *(f"{name}={value}" for name, value in self.settings.items())])


# ------------------------------------------------------------------------------------------------------------ first order


def linear(c: Cell) -> Cost:
    """Scores W x."""
    return Cost(gemv=2.0 * c.K * c.d, moved=c.K * c.d, size=c.K * c.d)


def rows(c: Cell, updated: float) -> Cost:
    """Scores, and x added to so many rows of W."""
    return linear(c).plus(Cost(stream=2.0 * updated * c.d, moved=updated * c.d))


def softmax_step(c: Cell, share: float, exps: float) -> Cost:
    """Scores, exponentials, and a matrix r x' added to W in a share of the rounds."""
    return rows(c, share * c.K).plus(Cost(exp=exps))


def gaptron(c: Cell) -> Cost:
    """Of the exponentials only polynomials in their place, 18 operations each, which settle most rounds."""
    return softmax_step(c, c.hits, 0.0).plus(Cost(stream=18.0 * c.K))


def adagrad(c: Cell, rows: float) -> Cost:
    """Two matrices are gone through as in y += a x, with a quotient by a root an entry: what else is done hides behind."""
    n = rows * c.d
    return linear(c).plus(Cost(stream=4.0 * n, root=n, exp=rows, moved=3.0 * n))


def epsilon_greedy(c: Cell) -> Cost:
    return adagrad(c, c.hits * c.K)


def epsilon_greedy_direct(c: Cell) -> Cost:
    return adagrad(c, 1.0)


def pnewtron(c: Cell) -> Cost:
    """Three matrices are gone through, with a quotient an entry."""
    n = c.K * c.d
    return linear(c).plus(Cost(stream=8.0 * n, quotient=n, exp=c.K, moved=6.0 * n, size=3.0 * n))


def soba_diag(c: Cell) -> Cost:
    """On a hit a quadratic form over two columns; an accepted one moves two columns of three matrices."""
    form, moved = c.hits * c.d, c.heavy * c.d
    return linear(c).plus(Cost(stream=4.0 * form + 10.0 * moved, quotient=2.0 * moved, moved=2.0 * form + 10.0 * moved))


def weights(K: int, d: int) -> float:
    """W alone."""
    return float(K * d)


# ----------------------------------------------------------------------------------------------------- a model per class


def per_class(c: Cell, forms: float, exps: float) -> Cost:
    """Scores, `forms` quadratic forms of symmetric d x d matrices, one product and one rank-one update of one.

    Large problems with dense contexts: `ahead`.
    """
    n = stretch(forms, c.d)
    if n > 0 and c.nonzero >= min(0.2 * c.d, 64.0):
        return ahead(c, forms, exps, n)
    s, half = c.nonzero, 0.5 * c.d * (c.d + 1)
    work = Cost(gemv=forms * s * (c.d + 1.0) + 2.0 * s * c.d, stream=2.0 * half, exp=exps, size=c.d * c.d)
    return linear(c).plus(work).plus(Cost(moved=forms * 0.5 * s * (c.d + 1.0) + half))


LOOK_FROM = 1.5 * 2**20
"""Bytes of the d x d matrices from which on models begin as rows, and a block's contexts are looked at together (`ahead`)."""


def stretch(models: float, d: int) -> int:
    """Return how many contexts are looked at together: 0 for small problems."""
    return 0 if 8.0 * models * packed(d) < LOOK_FROM else 64 if d >= 512 else 32


def ahead(c: Cell, models: float, exps: float, n: int) -> Cost:
    """`per_class` of large models, which begin as rows, where n contexts that come next are looked at together.

    While a model has learnt r rounds, fewer than `capacity`, it is r rows F: X'P X from F X, 2 r d + r n operations a round,
    and 4 r d for the one model a round that learns. Then it is a whole matrix: X'P X of every model as matrix products, by
    halves, d^2 + 2 n d operations a round, and half a product and a rank-one update for the one that learns, as matrix
    products too (a whole product where it learns from two contexts of a stretch or fewer). Models are read once a stretch and
    once more for every sixteen contexts that they learnt from; whole ones are written once, and half their products with the
    contexts. To become whole takes r rows d^2 operations each, once. Within a stretch n x n matrices stand for them, of which
    the columns to come are moved. Models learn in turn.
    """
    half, d = 0.5 * c.d * (c.d + 1.0), float(c.d)
    room = capacity(c.d)
    whole = max(0.0, 1.0 - room * models / c.rounds)
    r = 0.5 * min(room, c.rounds / models)
    lessons = n / models  # a stretch
    again, product = math.ceil(lessons / 16.0), 2.0 if lessons <= 2.0 else 1.0
    rows = Cost(gemm=models * (2.0 * r * d + r * n) + 4.0 * r * d + n * d, moved=models * r * d * (1.0 + again) / n + d)
    matrices = Cost(
        gemm=models * (d * d + 2.0 * n * d) + (product + 1.0) * d * d, moved=models * (half * (2.0 + again) / n + d)
    )
    means = Cost(gemm=2.0 * c.K * c.d, moved=c.K * c.d / n)
    within = Cost(exp=exps, stream=n * n / 3.0, size=d * d)
    made_whole = Cost(gemm=models * room * d * d / c.rounds if whole > 0.0 else 0.0)
    return means.plus(made_whole).plus(rows, 1.0 - whole).plus(matrices, whole).plus(within)


def capacity(d: int) -> int:
    """Return how many rows a large model is kept as before it becomes a d x d matrix."""
    whole = -(-d // 8) * 8
    return (whole + 8) // 16 * 8


def packed(d: int) -> float:
    """Numbers in one half of a symmetric d x d matrix, its rows filled up to multiples of eight."""
    whole = -(-d // 8) * 8
    return 0.5 * whole * (whole + 8)


def halves(K: int, d: int) -> float:
    """A symmetric matrix per class, and the weights; room to look n contexts ahead, half their products with the matrices."""
    n = stretch(K, d)
    scratch = 48.0 * d if n > 0 else 0.0  # sixteen contexts and their products, and eight of either
    return K * packed(d) + weights(K, d) + n * (K * (n + 4.0 + d) + 3.0 * d) + scratch


def inverse_gap(c: Cell) -> Cost:
    """A set of models; in an open duel a second one."""
    more = c._replace(d=c.d + 1, nonzero=c.nonzero + 1.0)  # the intercept
    return Cost().plus(per_class(more, c.K, (STEPS + 1.0) * c.K), 1.0 + c.heavy)


SKETCH = 32
"""Of the default `sketch_size`."""


def sketched(c: Cell, exps: float, intercept: int = 0) -> Cost:
    """Coordinates in m directions, all models read in them, one taught; contexts beyond m dimensions are gathered, too.

    Turning the models, once in m rounds, counts as the products it is made of.
    """
    d = c.d + intercept
    m = float(min(SKETCH, d))
    reading = Cost(gemv=2.0 * m * d + 2.0 * c.K * d + c.K * m * (m + 1.0), exp=exps, size=max(m, c.K) * d)
    taught = Cost(gemv=2.0 * d + m * (m + 1.0), stream=m * (m + 1.0))
    numbers = Cost(moved=m * d + c.K * (d + 0.5 * m * (m + 1.0)))
    turned = Cost() if d <= m else Cost(gemv=2.0 * m * d, gemm=2.0 * c.K * (d + 2.0 * m * m), moved=m * d)
    return reading.plus(taught).plus(numbers).plus(turned)


def sketched_gap(c: Cell) -> Cost:
    """A set of models over a sketch; in an open duel a second one."""
    return Cost().plus(sketched(c, (STEPS + 1.0) * c.K, 1), 1.0 + c.heavy)


def sketched_state(K: int, d: int) -> float:
    """Models in m directions, and what a sketch keeps of the contexts."""
    m = min(SKETCH, d)
    return K * (packed(m) + d + m) + 2.0 * m * d


BLOCKS, FEATURES, LINEAR = 8, 96, 5
"""Of StackCB's default: Fourier experts, their features (half as many again for two classes), linear experts, one of which
needs no root."""


def stacked(c: Cell) -> Cost:
    """Five linear experts, whose views have no zeros, and Fourier ones, of which half are read for all classes."""
    m, (M, F) = c.d + 1.0, stacked_models(c.K)
    half = 0.5 * (LINEAR * m * (m + 1.0) + BLOCKS * F * (F + 1.0))
    read = 0.5 * M * (LINEAR * m * (m + 1.0) + 0.5 * BLOCKS * F * (F + 1.0))
    experts = LINEAR + BLOCKS
    angles = Cost(gemv=BLOCKS * F * c.d, exp=BLOCKS * F, size=0.5 * BLOCKS * F * c.d)
    forms = Cost(gemv=2.0 * read + 4.0 * half, stream=2.0 * half, exp=(STEPS + 1.0) * (experts - 1.0) * M, size=F * F)
    return angles.plus(forms).plus(Cost(gemv=2.0 * M * (LINEAR * m + BLOCKS * F), moved=0.5 * (read + half)))


def stacked_state(K: int, d: int) -> float:
    """The experts' matrices in float32, and the contexts that are kept."""
    M, F = stacked_models(K)
    return 0.5 * M * (LINEAR * packed(d + 1) + BLOCKS * packed(int(F))) + 2048.0 * d


def stacked_models(K: int) -> tuple[float, float]:
    """Return the models of an expert and the features of a Fourier expert: two classes share one larger model."""
    return (1.0, 1.5 * FEATURES) if K == 2 else (float(K), float(FEATURES))


def duel(player: Any) -> float:
    """Return a number that changes with every round of an open duel."""
    return float(player.state.rounds[0]) if player.state.winner[0] < 0 else -1.0


def newtron(c: Cell, passes: float) -> Cost:
    """Scores; C_i, N_i and M by a rank-one update each; products with N_i and M; so many passes over the K inverses.

    With a ball N_i meets b_i, too. Large problems without one begin as rows, and of T rounds all N_k and M have T / 2 each, in
    the mean: 4 r d operations a product with M and a score, 2 r d for the half of N_i x that the scores leave. A score reads
    rows once for two products with them.
    """
    square, products = float(c.d * c.d), 3.0 if passes > 1.0 else 2.0
    if 8.0 * c.K * packed(c.d) < LOOK_FROM or passes > 1.0:
        work = Cost(gemv=2.0 * (passes * c.K + products) * square, stream=3.0 * square, exp=c.K, size=square)
        return linear(c).plus(work).plus(Cost(moved=0.5 * (passes * c.K + products + 3.0) * square))
    of_M, of_N = (0.5 * min(c.rounds, capacity(c.d) * models) * c.d for models in (1, c.K))
    work = Cost(gemm=4.0 * of_N, gemv=4.0 * of_M + 2.0 * of_N / c.K, exp=c.K, size=2.0 * of_M)
    return linear(c).plus(work).plus(Cost(moved=of_M + of_N + of_N / c.K))


def newtron_state(K: int, d: int) -> float:
    """C_k and N_k, M, 25 Krylov vectors and four more matrices K x d."""
    return 2.0 * K * packed(d) + packed(d) + 29.0 * K * d


# -------------------------------------------------------------------------------------------------------- joint second order


def root(c: Cell) -> Cost:
    """A root of K equations: STEPS Newton steps with a K x K Cholesky factor each."""
    return Cost(gemv=STEPS * (c.K**3 / 3.0 + 4.0 * c.K**2), exp=STEPS * c.K, size=c.K * c.K)


def forecast(c: Cell) -> Cost:
    """Blocks k <= l of the Kd x Kd inverse times x, and the root."""
    pairs = 0.5 * c.K * (c.K + 1.0) * c.d * c.d
    return root(c).plus(Cost(gemv=2.0 * pairs, moved=pairs, size=c.d * c.d))


def woodbury(c: Cell) -> Cost:
    """The other half of V = A^{-1} (I (x) x), and A^{-1} -= V Qc V' of rank K as a matrix product, eight at a time."""
    K, pairs = c.K, 0.5 * c.K * (c.K + 1.0) * c.d * c.d
    work = Cost(gemv=K * (K - 1.0) * c.d * c.d, gemm=2.0 * K * pairs, stream=K * K * c.d * K, size=c.d * c.d)
    return work.plus(Cost(moved=2.0 * pairs / 8.0))


LARGE = 2.0**26
"""Bytes of the Kd x Kd inverse's half above which the learners begin in the span of the contexts learnt."""


def spanned(c: Cell, updates: float) -> tuple[Cell, Cost]:
    """Return the cell in the coordinates that are kept, and what finding them costs.

    Small problems keep all d. Larger ones keep as many as contexts were learnt, r of them after r updates; the cell has
    the root mean square of r over the rounds played, since the blocks' cost grows with its square. A context's
    coordinates take a product with the r contexts and one with their r x r factor.
    """
    if 4.0 * c.K * (c.K + 1) * c.d * c.d <= LARGE:
        return c, Cost()
    n = max(1.0, min(float(c.d), updates / 3.0**0.5))
    found = Cost(gemv=2.0 * n * c.d + n * n, moved=n * c.d + 0.5 * n * n, size=n * c.d)
    return c._replace(d=round(n), nonzero=n), found


def folklore(c: Cell) -> Cost:
    kept, found = spanned(c, float(c.rounds))
    return forecast(kept).plus(woodbury(kept)).plus(found)


def gaf(c: Cell) -> Cost:
    return folklore(c).plus(nodes(c))


def gaf_primal(c: Cell) -> Cost:
    return forecast(c).plus(woodbury(c)).plus(nodes(c))


def nodes(c: Cell, m: int = 100) -> Cost:
    """The mean of the softmax over m nodes."""
    return Cost(gemv=2.0 * m * c.K**2, exp=m * c.K, size=c.K * c.K)


def exploration(c: Cell, gamma: float) -> Cost:
    """Forecasts in batches, as matrix products; gamma / K updates a round."""
    kept, found = spanned(c, c.rounds * gamma / c.K)
    one = forecast(kept).plus(found)
    return one._replace(gemv=0.0, gemm=one.gemv, moved=one.moved / 128.0).plus(woodbury(kept), gamma / c.K)


def obama(c: Cell) -> Cost:
    """The forecast's blocks without the last class, 100 samples of K logits, a Woodbury step on a hit."""
    less, samples = c._replace(K=max(c.K - 1, 1)), 100.0
    drawn = Cost(gemv=samples * c.K**2, exp=2.0 * samples * c.K, size=c.K * c.K)
    return forecast(less).plus(drawn).plus(woodbury(less), c.hits)


def ons(c: Cell) -> Cost:
    square = float(c.K * c.d) ** 2
    return linear(c).plus(Cost(gemv=2.0 * square, stream=square, exp=c.K, moved=square, size=square))


def soba(c: Cell) -> Cost:
    """On a hit a quadratic form over three blocks; an accepted one takes a product and a symmetric rank-one update."""
    square = float(c.K * c.d) ** 2
    form = Cost(gemv=5.0 * c.nonzero * c.d, moved=3.0 * c.nonzero * c.d, size=c.d * c.d)
    update = Cost(gemv=4.0 * c.K * c.nonzero * c.d, stream=square, moved=square, size=square)
    return linear(c).plus(form, c.hits).plus(update, c.heavy)


def accepted(player: Any) -> float:
    """Return a number that changes with every hit that SOBA accepts."""
    return float(player.state.tally[1])


def aioli(c: Cell, forms: float = 1.0) -> Cost:
    return Cost(
        gemv=forms * 2.0 * c.nonzero * c.d,
        stream=forms * c.d * (c.d + 1.0),
        exp=forms * (STEPS + 3.0),
        moved=forms * (c.nonzero * c.d + c.d * (c.d + 1.0)) / 2.0,
        size=c.d * c.d,
    )


def fourier(c: Cell, features: int = 100) -> Cost:
    maps = Cost(gemv=features * c.d, exp=features, moved=0.5 * features * c.d, size=0.5 * features * c.d)
    return aioli(Cell.dense(2, features)).plus(maps)


def kernel_aioli(c: Cell) -> Cost:
    """Round t: t kernel values and t^2/2 multiplications (two solves); the mean over the rounds played."""
    n = float(c.rounds)
    values = Cost(gemv=n * c.d, exp=n / 2.0, moved=n * c.d / 2.0)
    return values.plus(Cost(gemv=n * n / 3.0, moved=n * n / 6.0, size=n * n))


def folklore_direct(c: Cell) -> Cost:
    """A^{-1} (I (x) x) twice, and a product of K columns with its transpose."""
    Kd = float(c.K * c.d)
    return Cost(gemv=2.0 * c.K * Kd * c.d + c.K * Kd * Kd, moved=2.0 * Kd * Kd, size=Kd * Kd)


def fourier_folklore(c: Cell, features: int = 100) -> Cost:
    """Features, then FOLKLORE's round in their dimensions."""
    maps = Cost(gemv=features * c.d, exp=features, moved=0.5 * features * c.d, size=0.5 * features * c.d)
    return folklore(Cell.dense(c.K, features)).plus(maps)


def kernel_folklore(c: Cell, landmarks: int = 50) -> Cost:
    """Kernel values, a triangular solve and FOLKLORE's round in as many dimensions as contexts are kept."""
    m = float(landmarks)
    values = Cost(gemv=2.0 * m * c.d + m * m, exp=m, moved=m * c.d + 0.5 * m * m, size=m * c.d + 0.5 * m * m)
    return folklore(Cell.dense(c.K, landmarks)).plus(values)


def ftrl(c: Cell) -> Cost:
    """Two steps over the m distinct contexts so far (the mean over the rounds played) and a product with the factor."""
    m, Kd = 0.5 * c.rounds, float(c.K * c.d)
    steps = Cost(gemv=8.0 * m * Kd, exp=2.0 * m * c.K, moved=2.0 * m * c.d, size=m * c.d)
    return steps.plus(Cost(gemv=2.0 * Kd * Kd, moved=0.5 * Kd * Kd, size=Kd * Kd))


def members(c: Cell, N: int = 1000) -> Cost:
    """Logits, weights and gradients of N members W (K, d)."""
    n = float(N * c.K * c.d)
    return Cost(gemv=4.0 * n, exp=N * c.K, moved=3.0 * n, size=n)


def several(cost: Callable[[Cell], Cost], N: int) -> Callable[[Cell], Cost]:
    """Return N times a cost."""
    return lambda c: Cost(size=cost(c).size).plus(cost(c), N)


def joint(K: int, d: int) -> float:
    """The blocks k <= l of a symmetric Kd x Kd matrix, and up to eight waiting updates of rank K."""
    return 0.5 * K * (K + 1) * d * d + K * max(1, min(8, d // 8)) * K * d


def joint_or_span(K: int, d: int) -> float:
    """`joint`, or where that is large the first room of the form that grows with the contexts learnt."""
    return joint(K, d) if 4.0 * K * (K + 1) * d * d <= LARGE else joint(K, min(d, 16))
