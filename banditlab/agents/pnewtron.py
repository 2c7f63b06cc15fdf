"""PNewtron: Newtron with a diagonal matrix (Hazan and Kale, NIPS 2011)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax
from banditlab.numerics.contexts import by_context
from banditlab.numerics.draws import draw, draw_uniform
from banditlab.numerics.jit import borrow, inline
from banditlab.numerics.limits import Limits, constant
from banditlab.numerics.linear_scores import MOST_BY_ROWS, by_class, features, matrix, per_class, scores
from banditlab.numerics.packed_symmetric import width, zeros
from banditlab.numerics.running_norm import SQUARE, UPDATES, measured, note, running_norm, squares
from banditlab.numerics.simd import (
    WIDTH,
    all_lanes,
    each_total,
    eight,
    fma,
    one_lane,
    put,
    put_first,
    total,
)
from banditlab.numerics.simd_math import exponentials, inverse
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import nonnegative, number, one_of, positive, probability

PAPER_RADIUS = math.sqrt(55.0)
"""The largest ||x|| of SynSep, the data on which the published D = 1 was used."""
LEAST_NORM, MOST_NORM = 1e-150, 1e150
"""What norm_bound may be: D^2 is measured, and A = 1/D is inverted (`inverse`)."""


class ByColumns(NamedTuple):
    """A and V = -b/A, transposed, by columns (see `banditlab.numerics.linear_scores`), for contexts of few entries.

    b is not stored: it is -A V. norm (5,) holds ||V||^2 as in `banditlab.numerics.running_norm`, its own scale unused. z and s
    are scratch, s zero beyond K. rates (4,) = (gamma, beta, alpha, D); greedy is 1 where the exploitation draw is the argmax.
    """

    A: NDArray[np.float64]
    V: NDArray[np.float64]
    z: NDArray[np.float64]
    s: NDArray[np.float64]
    norm: NDArray[np.float64]
    rates: NDArray[np.float64]
    greedy: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the range of every integer."""
        return {"greedy": constant(self.greedy)}


class ByRows(NamedTuple):
    """A and b, transposed, by rows, in two parts: what all classes gain alike, and what the played one gains beside it.

    dlt = c (e_i - 1/K) (x) x: its -1/K goes to `shared` (2, D), A's part and b's, its e_i to row i of A and of b. So a round
    writes O(d) numbers, and V = -b/A is formed where it is read. Of two classes only the first is kept, in `shared`:
    the other's A is the same and its b the negative. z, s, rates and greedy are as in `ByColumns`, norm too, but that its
    count of updates is infinite where ||V||^2 is not known.
    """

    A: NDArray[np.float64]
    b: NDArray[np.float64]
    shared: NDArray[np.float64]
    z: NDArray[np.float64]
    s: NDArray[np.float64]
    norm: NDArray[np.float64]
    rates: NDArray[np.float64]
    greedy: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the range of every integer."""
        return {"greedy": constant(self.greedy)}


@inline
def act_kernel(state, x, u, p, payload):
    z, s, K = state.z, state.s, p.shape[0]
    norm, D = math.sqrt(weigh(state, x, z)), state.rates[3]
    scale = D / norm if norm > D else 1.0  # the rescale that stands for a projection
    gamma, alpha = state.rates[0], state.rates[2] * scale
    best = argmax(z, K)
    sums, sum_z = exponentials(z, alpha, z[best], K, s), 0.0
    greedy, explored = state.greedy[0] == 1, u[0] < gamma
    # The class is drawn from e^v as they are, K sums of p long: all that follows waits for it, not for a quotient.
    if explored:
        action = draw_uniform(K, u[1])
    else:
        action = best if greedy else draw(s, u[1] * sums)
    share = 1.0 / sums
    for k in range(K):
        s[k] *= share
        sum_z += z[k]
        p[k] = (0.0 if greedy else (1.0 - gamma) * s[k]) + gamma / K  # p' = (1 - gamma) p + gamma/K
    if greedy:
        p[best] += 1.0 - gamma
    payload[0] = s[action]
    payload[1] = scale * (z[action] - sum_z / K)  # <dlt, W'_t> / c
    return action, explored


@inline
def learn_kernel(state, x, action, p, payload, correct):
    K, beta = p.shape[0], state.rates[1]
    if correct:  # dlt = c (e_i - 1/K) (x) x, i the played class
        c, kappa = -(1.0 - payload[0]) / p[action], p[action]
    else:
        c, kappa = payload[0] / p[action], 1.0
    if c == 0.0:
        return
    weight = kappa * beta * c * c
    step = (1.0 - kappa * beta * c * payload[1]) * c
    move(state, x, action, K, weight, step)


# ------------------------------------------------------------------------------------------------------------- by columns


def _column_weigh(state, x, z):
    """Write V x into z and return ||V||^2."""
    scores(state.V, x, z)
    return state.norm[SQUARE]


@inline
def move_entry(A, V, j, k, more, moved):
    """Add `more` to entry k, j of A and `moved` to b's; return what that adds to ||V||^2; see `quotient` for the two forms.

    V = -b/A becomes (V A - moved)/(A + more) = V - (V more + moved)/(A + more).
    """
    a, old = A[j, k] + more, V[j, k]
    moved = fma(old, more, moved)
    A[j, k], V[j, k] = a, fma(moved, inverse(a) * -1.0, old) if j & WIDTH else old - moved / a
    return (V[j, k] - old) * (V[j, k] + old)


@inline
def move_feature(A, V, j, xj, i, K, weight, step):
    """Update feature j of all classes, dlt = c e x_j with e = 1 - 1/K for the class i and -1/K for the others."""
    other, gain = -1.0 / K, 0.0
    more, moved = weight * other * other * (xj * xj), step * other * xj
    for k in range(i):
        gain += move_entry(A, V, j, k, more, moved)
    for k in range(i + 1, K):
        gain += move_entry(A, V, j, k, more, moved)
    own = 1.0 + other
    return gain + move_entry(A, V, j, i, weight * own * own * (xj * xj), step * own * xj)


@inline
def square(V, s):
    """Return ||V||^2; s is scratch."""
    squares(V, s)
    sums = 0.0
    for k in range(s.shape[0]):
        sums += s[k]
    return sums


def _column_move(state, x, i, K, weight, step):
    """A += kappa beta dlt^2 and b += (1 - kappa beta <dlt, W'>) dlt, as V = -b/A, in the rows where x is not 0.

    i is the class that was played; weight = kappa beta c^2 and step = (1 - kappa beta <dlt, W'>) c.
    """
    for j in range(x.shape[0]):
        if x[j] != 0.0:
            move_feature(state.A, state.V, j, x[j], i, K, weight, step)
    measured(state.norm, square(state.V, state.s))


def _sparse_column_move(state, x, i, K, weight, step):
    A, V, gain, near = state.A, state.V, 0.0, 0.0
    for t in range(x.indices.shape[0]):
        near += A[x.indices[t], 0]
    # A store that nobody reads: the loop above makes the processor fetch the rows of A, which lie far apart, side by side.
    # Without it rounds took 1.3 times as long at d = 20,000, 1.6 at 100,000, 2.1 at 350,000 (K = 5, 80 entries a context),
    # as long at K = 20.
    state.z[0] = near
    for t in range(x.indices.shape[0]):
        gain += move_feature(A, V, x.indices[t], x.values[t], i, K, weight, step)
    if note(state.norm, gain, V.shape[0]):
        measured(state.norm, square(V, state.s))


# ---------------------------------------------------------------------------------------------------------------- by rows


THREE = 3 * WIDTH
"""Of so many features the last eight go by reciprocals, in all classes alike, so that equal ones stay equal."""


@inline
def quotient(b, a, divides):
    """Return b/a, numbers or lanes, by a division, or to rounding by a reciprocal: a processor does both side by side."""
    return b / a if divides else b * inverse(a)


@inline
def kept(K):
    """Return how many classes are kept."""
    return 1 if K == 2 else K


@inline
def read(rows, j):
    """Return the eight numbers from j on of A's and b's shared parts, and of x."""
    shared, x = rows[2], rows[3]
    return eight(shared, j), eight(shared, shared.shape[1] + j), features(x, j)


@inline
def read_three(rows, j):
    """Return THREE features as `read` does eight."""
    return read(rows, j), read(rows, j + WIDTH), read(rows, j + 2 * WIDTH)


@inline
def gathered(rows, i, at, divides, sums, norm):
    """Return the sums of b/A x and of (b/A)^2 with eight features of a class more: from i on, and `at`, as `read`."""
    v = quotient(eight(rows[1], i) + at[1], eight(rows[0], i) + at[0], divides)
    return fma(v, at[2], sums), fma(v, v, norm)


@inline
def one_row(rows, i, at, whole, sums, norm):
    """Do as `gathered` with THREE features, or with their first eight where they are not there as a whole."""
    sums, norm = gathered(rows, i, at[0], True, sums, norm)
    if whole:
        sums, norm = gathered(rows, i + WIDTH, at[1], True, sums, norm)
        sums, norm = gathered(rows, i + 2 * WIDTH, at[2], False, sums, norm)
    return sums, norm


@inline
def two_rows(rows, i, at, whole, a, b, norm, far):
    """Do as `one_row` for two classes; their squares are summed apart, so that an addition need not wait for the last."""
    a, norm = one_row(rows, i, at, whole, a, norm)
    b, far = one_row(rows, i + rows[0].shape[1], at, whole, b, far)
    return a, b, norm, far


@inline
def eight_rows(rows, i, at, whole, sums, norm, far):
    """Do as `two_rows` for eight classes."""
    wide = 2 * rows[0].shape[1]
    a, b, norm, far = two_rows(rows, i, at, whole, sums[0], sums[1], norm, far)
    c, e, norm, far = two_rows(rows, i + wide, at, whole, sums[2], sums[3], norm, far)
    f, g, norm, far = two_rows(rows, i + 2 * wide, at, whole, sums[4], sums[5], norm, far)
    h, k, norm, far = two_rows(rows, i + 3 * wide, at, whole, sums[6], sums[7], norm, far)
    return (a, b, c, e, f, g, h, k), norm, far


@inline
def eight_sums(rows, k):
    """Return the sums of b/A x of the classes k ... k + 7, and that of (b/A)^2 over them, in lanes."""
    i, d = k * rows[0].shape[1], rows[3].shape[0]
    j, norm = 0, all_lanes(0.0)
    far, sums = norm, (norm, norm, norm, norm, norm, norm, norm, norm)
    while j + 2 * WIDTH < d:
        sums, norm, far = eight_rows(rows, i + j, read_three(rows, j), True, sums, norm, far)
        j += THREE
    while j < d:
        near = read(rows, j)
        sums, norm, far = eight_rows(rows, i + j, (near, near, near), False, sums, norm, far)
        j += WIDTH
    a, b, c, e, f, g, h, m = sums
    return each_total(a, b, c, e, f, g, h, m), norm + far


@inline
def one_or_two(rows, i, at, whole, a, b, norm, far, both):
    """Do as `two_rows`, or as `one_row` where there are not both."""
    a, norm = one_row(rows, i, at, whole, a, norm)
    if both:
        b, far = one_row(rows, i + rows[0].shape[1], at, whole, b, far)
    return a, b, norm, far


@inline
def two_sums(rows, k, both):
    """Return the sums of b/A x of the class k and, if `both`, of k + 1, and that of (b/A)^2 over them, in lanes."""
    i, d = k * rows[0].shape[1], rows[3].shape[0]
    j, a = 0, all_lanes(0.0)
    b = norm = far = a
    while j + 2 * WIDTH < d:
        a, b, norm, far = one_or_two(rows, i + j, read_three(rows, j), True, a, b, norm, far, both)
        j += THREE
    while j < d:
        near = read(rows, j)
        a, b, norm, far = one_or_two(rows, i + j, (near, near, near), False, a, b, norm, far, both)
        j += WIDTH
    return total(a), total(b), norm + far


@inline
def rest_sums(rows, k, n, z, norm):
    """Write the scores of the n < 8 classes from k on into z; return norm with their squares."""
    scores = all_lanes(0.0)
    for r in range(0, n, 2):
        one, other, squares = two_sums(rows, k + r, r + 1 < n)
        norm = norm + squares
        if n <= 2:  # as numbers, for what reads them next (see `simd_math.exponentials`)
            z[k] = -one
            if n == 2:
                z[k + 1] = -other
        else:
            scores = scores - one_lane(r, one) - one_lane(r + 1, other)
    if n > 2:
        put_first(z, k, scores, n)
    return norm


def _row_weigh(state, x, z):
    """Write V x into z and return ||V||^2."""
    rows, z = (by_class(state.A), by_class(state.b), borrow(state.shared), borrow(x)), borrow(z)
    K, zero = z.shape[0], all_lanes(0.0)
    if K == 2:
        z[1], _, norm = two_sums(rows, 0, False)
        z[0] = -z[1]
        return 2.0 * total(norm)
    k, norm = K - K % WIDTH, zero
    for i in range(0, k, WIDTH):
        sums, squares = eight_sums(rows, i)
        put(z, i, zero - sums)
        norm = norm + squares
    return total(rest_sums(rows, k, K % WIDTH, z, norm))


@inline
def changes(i, K, weight, step):
    """Return what A and b gain for x_j^2 and x_j: in `shared` two numbers, and the first of two in row i, where step is."""
    other = 0.5 if K == 2 and i == 0 else -1.0 / K
    return weight * (other * other), step * other, weight * (1.0 - 2.0 / K)  # (1 - 1/K)^2 less (1/K)^2


def _row_move(state, x, i, K, weight, step):
    """Do as `_column_move`, in parts: e = -1/K of all classes into `shared`, 1 more of the played one into its row."""
    A, b, shared, x = by_class(state.A), by_class(state.b), borrow(state.shared), borrow(x)
    more, moved, own = changes(i, K, weight, step)
    at = i * A.shape[1]
    for j in range(0, x.shape[0], WIDTH):
        xj, far = features(x, j), shared.shape[1] + j
        put(shared, j, eight(shared, j) + xj * xj * more)
        put(shared, far, eight(shared, far) + xj * moved)
        if K > 2:
            put(A, at + j, eight(A, at + j) + xj * xj * own)
            put(b, at + j, eight(b, at + j) + xj * step)
    state.norm[UPDATES] = math.inf


@inline
def entry(state, j, k):
    """Return entry k, j of b/A, by the form that its feature has in lanes."""
    shared = state.shared
    return quotient(state.b[j, k] + shared[1, j], state.A[j, k] + shared[0, j], j % THREE < 2 * WIDTH)


@inline
def row_square(state, K):
    """Return ||V||^2, entry by entry."""
    sums = 0.0
    for k in range(kept(K)):
        for j in range(state.A.shape[0]):
            v = entry(state, j, k)
            sums += v * v
    return sums * (K / kept(K))


def _sparse_row_weigh(state, x, z):
    K = z.shape[0]
    if state.norm[UPDATES] == math.inf:  # dense contexts came before
        measured(state.norm, row_square(state, K))
    for k in range(kept(K)):
        sums = all_lanes(0.0)
        for t in range(x.indices.shape[0]):  # each entry into the lane in which the dense form sums its place
            j = x.indices[t]
            sums = fma(one_lane(j & 7, entry(state, j, k)), x.values[t], sums)
        z[k] = -total(sums)
    if K == 2:
        z[1] = -z[0]
    return state.norm[SQUARE]


def _sparse_row_move(state, x, i, K, weight, step):
    A, b, shared, before, gain = state.A, state.b, state.shared, state.s, 0.0
    more, moved, own = changes(i, K, weight, step)
    for t in range(x.indices.shape[0]):
        j, xj = x.indices[t], x.values[t]
        for k in range(kept(K)):
            before[k] = entry(state, j, k)
        shared[0, j] += xj * xj * more
        shared[1, j] += xj * moved
        if K > 2:
            A[j, i] += xj * xj * own
            b[j, i] += xj * step
        for k in range(kept(K)):
            v = entry(state, j, k)
            gain += (v - before[k]) * (v + before[k])
    if note(state.norm, gain * (K / kept(K)), A.shape[0]):
        measured(state.norm, row_square(state, K))


# Inlined: a call would hand over every field of the state, some seventy numbers.
weigh = by_context(
    by_context(_column_weigh, _row_weigh, kind=ByRows, name="state", inlined=True),
    by_context(_column_weigh, _sparse_row_weigh, kind=ByRows, name="state", inlined=True),
    inlined=True,
)
move = by_context(
    by_context(_column_move, _row_move, kind=ByRows, name="state", inlined=True),
    by_context(_sparse_column_move, _sparse_row_move, kind=ByRows, name="state", inlined=True),
    inlined=True,
)


class PNewtron(KernelAgent):
    """The Newtron its paper runs: a diagonal matrix, learning from hits and from errors; our re-implementation.

    Problem: bandit multiclass, adversarial stream. Loss with a temperature alpha > 0:
    l_t(W) = -(1/alpha) ln softmax(alpha W x_t)_{y_t}, on a Frobenius ball of radius D.

    Update rule (A = 1/D, b = 0, W = 0, all of shape K x d, products and quotients element by element):
    p = softmax(alpha W x_t), p' = (1 - gamma) p + gamma/K; play yh from p', drawn as a coin and a class.

        right:  dlt = (1 - p_yh)/p'_yh (1/K - e_yh) (x) x_t,   kappa = p'_yh
        wrong:  dlt = p_yh/p'_yh (e_yh - 1/K) (x) x_t,         kappa = 1
        A += kappa beta dlt^2;   b += (1 - kappa beta <dlt, W>) dlt
        W = -b/A, and where ||W||_F > D it is rescaled to norm D

    E[dlt] is the gradient of l_t at W wherever every class can be played: at any gamma where the exploitation draw is a
    sample, at gamma above 0 where it is the argmax. <dlt, W> is taken at the W of the round also when the coin said
    explore, which is the clean form; some public copies put 0 there, a difference of order gamma beta.

    Two slips of public implementations are not repeated. The one that the authors of SOBA compared with adds +-1/K in
    every row, the played one included, in place of e_yh - 1/K (on SynSep 1.29 % errors for 1.27 %). It also rescales W
    to norm D always, another copy to norm 1; here W is left alone inside the ball. Without any rescale PNewtron
    diverges on features of norm 7.

    Guarantee: none; Newtron's theorem is about the full matrix and the exact projection. `bound` answers None. With
    the paper's alpha and a small gamma a round's step can be longer than the ball: rounding then grows to other actions
    within a thousand rounds, so two correct implementations agree in distribution, not action by action.

    Cost: O(K d) to score and O(d) to learn, O(K nnz(x)) both where contexts come sparse; K exponentials, K d quotients, of
    sparse contexts K nnz(x), up to 1,024 features three times as many; 2 K d numbers.

    Parameters
    ----------
    norm_bound
        B in [1e-150, 1e150], D = sqrt(K) B in the paper. "paper" is D = 1, with which alpha D must match the scale of
        the features: where ||x|| = 1 it is stuck near uniform guessing. "scaled" is D = sqrt(55)/R, which is the paper's
        D = 1 on SynSep, where R = sqrt(55), and follows the features' scale elsewhere.
    gamma
        Exploration rate in [0, 1] (gamma in the paper).
    alpha
        Temperature of the loss, above 0 (alpha in the paper).
    beta
        Curvature, 0 or above (beta in the paper).
    exploit
        What is played when the coin does not say explore: "sample" draws from softmax(alpha W x), as in the paper;
        "argmax" plays its largest, p' = (1 - gamma) e_argmax + gamma/K, as some public copies do, and errs less on
        noisy labels (SynNonSep at gamma = .014: 6.8 % for 12.4 % at T = 10^6).

    Raises
    ------
    UsageError
        A setting outside its range.

    References
    ----------
    E. Hazan, S. Kale. Newtron: an efficient bandit algorithm for online multiclass prediction. NIPS 2011.
    """

    id = "pnewtron"
    group = "practice"
    summary = "Newtron with a diagonal matrix: learns from hits and from errors"
    reference = "Hazan and Kale, NIPS 2011, the variant of the experiments"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    payload_size = 2
    sparse = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float | Literal["scaled", "paper"] = "scaled",
        gamma: float = 0.05,
        alpha: float = 10.0,
        beta: float = 0.01,
        exploit: Literal["sample", "argmax"] = "sample",
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        if norm_bound in ("scaled", "paper"):
            D = PAPER_RADIUS / problem.radius if norm_bound == "scaled" else 1.0
            self.norm_bound = D / math.sqrt(K)
        else:
            self.norm_bound = positive("norm_bound", number("norm_bound", norm_bound, "scaled", "paper"))
        self.gamma = probability("gamma", gamma)
        self.alpha = positive("alpha", alpha)
        self.beta = nonnegative("beta", beta)
        self.exploit = one_of("exploit", exploit, ("sample", "argmax"))
        if not LEAST_NORM <= self.norm_bound <= MOST_NORM:
            raise UsageError(f"norm_bound must lie between {LEAST_NORM:g} and {MOST_NORM:g}, got {self.norm_bound:g}")
        D = math.sqrt(K) * self.norm_bound
        numbers = {
            "z": per_class(d, K),
            "s": per_class(d, K),
            "norm": running_norm(),
            "rates": np.array([self.gamma, self.beta, self.alpha, D]),
            "greedy": np.array([int(self.exploit == "argmax")]),
        }
        self.state: ByColumns | ByRows
        if d > MOST_BY_ROWS:
            self.state = ByColumns(A=matrix(d, K, 1.0 / D), V=matrix(d, K), **numbers)
        else:
            shared = zeros(2, width(d))
            shared[0] = 1.0 / D
            self.state = ByRows(A=matrix(d, K), b=matrix(d, K), shared=shared, **numbers)

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d), rescaled into the ball."""
        K, d, state = self.problem.n_classes, self.problem.n_features, self.state
        if isinstance(state, ByColumns):
            V, norm = state.V[:, :K].T, math.sqrt(state.norm[SQUARE])
        else:
            A, b = (part[:d, :K].T + alike[:d] for part, alike in zip((state.A, state.b), state.shared, strict=True))
            V = -b / A
            if K == 2:
                V[1] = -V[0]
            norm = float(np.linalg.norm(V))
        D = state.rates[3]
        return V * (D / norm) if norm > D else V
