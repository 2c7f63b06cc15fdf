"""PNewtron: Newtron with a diagonal matrix (Hazan and Kale, NIPS 2011)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import LinearScores
from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax
from banditlab.numerics.contexts import by_context, by_layout
from banditlab.numerics.draws import draw, draw_uniform
from banditlab.numerics.jit import borrow, inline
from banditlab.numerics.limits import Limits, constant
from banditlab.numerics.linear_scores import by_class, features, matrix, per_class, scores
from banditlab.numerics.running_norm import SQUARE, measured, note, running_norm, squares
from banditlab.numerics.simd import WIDTH, all_lanes, eight, fma, put, total
from banditlab.numerics.simd_math import exponentials, inverse
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import nonnegative, number, one_of, positive, probability

PAPER_RADIUS = math.sqrt(55.0)
"""The largest ||x|| of SynSep, the data on which the published D = 1 was used."""
LEAST_NORM, MOST_NORM = 1e-150, 1e150
"""What norm_bound may be: D^2 is measured, and A = 1/D is inverted (`inverse`)."""


class State(NamedTuple):
    """A and V = -b/A, transposed, in one layout (see `banditlab.numerics.linear_scores`); W = scale V'.

    b is not stored: it is -A V. norm (5,) holds ||V||^2 as in `banditlab.numerics.running_norm`, its own scale unused. z and s
    are scratch, s zero beyond K. rates (4,) = (gamma, beta, alpha, D); greedy is 1 where the exploitation
    draw is the argmax.
    """

    A: NDArray[np.float64]
    V: NDArray[np.float64]
    z: NDArray[np.float64]
    s: NDArray[np.float64]
    scale: NDArray[np.float64]
    norm: NDArray[np.float64]
    rates: NDArray[np.float64]
    greedy: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the range of every integer."""
        return {"greedy": constant(self.greedy)}


@inline
def act_kernel(state, x, u, p, payload):
    z, s, scale, K = state.z, state.s, state.scale[0], p.shape[0]
    gamma, alpha = state.rates[0], state.rates[2] * scale
    scores(state.V, x, z)
    best = argmax(z, K)
    share, sum_z = 1.0 / exponentials(z, alpha, z[best], K, s), 0.0
    greedy = state.greedy[0] == 1
    for k in range(K):
        s[k] *= share
        sum_z += z[k]
        p[k] = (0.0 if greedy else (1.0 - gamma) * s[k]) + gamma / K  # p' = (1 - gamma) p + gamma/K
    if greedy:
        p[best] += 1.0 - gamma
    explored = u[0] < gamma
    if explored:
        action = draw_uniform(K, u[1])
    else:
        action = best if greedy else draw(s, u[1])
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
    move(state, state.V, x, action, K, weight, step)
    norm, D = math.sqrt(state.norm[SQUARE]), state.rates[3]
    state.scale[0] = D / norm if norm > D else 1.0  # the rescale that stands for a projection


@inline
def entry(a, v, more, moved):
    """Return an entry of A plus `more` and V = -b/A with b plus `moved`, numbers or lanes; zeros change neither.

    (V A - moved)/(A + more) = V - (V more + moved)/(A + more).
    """
    a = a + more
    return a, fma(fma(v, more, moved), inverse(a) * -1.0, v)


@inline
def divided(a, v, more, moved):
    """Return `entry`, to rounding, by a division."""
    a = a + more
    return a, v - fma(v, more, moved) / a


@inline
def move_entry(A, V, j, k, more, moved):
    """Update entry k, j and return what it adds to ||V||^2; eight features by divisions, the next by reciprocals.

    A processor divides and multiplies side by side. All classes go the same way, so that equal ones stay equal.
    """
    old = V[j, k]
    A[j, k], V[j, k] = entry(A[j, k], old, more, moved) if j & WIDTH else divided(A[j, k], old, more, moved)
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


def _move(state, V, x, i, K, weight, step):
    """A += kappa beta dlt^2 and b += (1 - kappa beta <dlt, W'>) dlt, as V = -b/A, in the rows where x is not 0.

    i is the class that was played; weight = kappa beta c^2 and step = (1 - kappa beta <dlt, W'>) c.
    """
    for j in range(x.shape[0]):
        if x[j] != 0.0:
            move_feature(state.A, V, j, x[j], i, K, weight, step)
    measured(state.norm, square(V, state.s))


@inline
def square(V, s):
    """Return ||V||^2; s is scratch."""
    squares(V, s)
    sums = 0.0
    for k in range(s.shape[0]):
        sums += s[k]
    return sums


@inline
def changes(x, j, weight, step):
    """Return what entries j ... j + 7 of A gain, and of b, then j + 8 ... j + 15: weight x_j^2 and step x_j."""
    near, far = features(x, j), features(x, j + WIDTH)
    return near * near * weight, near * step, far * far * weight, far * step


@inline
def keep(A, W, i, entries, sums):
    """Write eight entries of A and of W and return sums plus the squares of W's."""
    a, w = entries
    put(A, i, a)
    put(W, i, w)
    return fma(w, w, sums)


@inline
def move_rows(A, W, i, rows, change, both, even, odd):
    """Update sixteen entries of each of so many rows, eight where there are not `both`; return sums plus V's new squares."""
    for _ in range(rows):
        even = keep(A, W, i, divided(eight(A, i), eight(W, i), change[0], change[1]), even)
        if both:
            far = i + WIDTH
            odd = keep(A, W, far, entry(eight(A, far), eight(W, far), change[2], change[3]), odd)
        i += W.shape[1]
    return even, odd


@inline
def mirror(A, W, i, other, n):
    """Write n entries of A from i on, and of -W, to the other row.

    With two classes dlt is the same for both but for the sign: so are V's rows, and A's are equal, to the last bit.
    """
    for j in range(0, n, WIDTH):
        put(A, other + j, eight(A, i + j))
        put(W, other + j, eight(W, i + j) * -1.0)


def _row_move(state, V, x, i, K, weight, step):
    A, W, x = by_class(state.A), by_class(V), borrow(x)
    d, wide, even, odd = x.shape[0], W.shape[1], all_lanes(0.0), all_lanes(0.0)
    other, own = -1.0 / K, 1.0 - 1.0 / K
    for j in range(0, d, 2 * WIDTH):
        both = j + WIDTH < d
        change = changes(x, j, weight * other * other, step * other)
        if K == 2:
            even, odd = move_rows(A, W, (1 - i) * wide + j, 1, change, both, even, odd)
            mirror(A, W, (1 - i) * wide + j, i * wide + j, 2 * WIDTH if both else WIDTH)
            continue
        even, odd = move_rows(A, W, j, i, change, both, even, odd)
        even, odd = move_rows(A, W, (i + 1) * wide + j, K - 1 - i, change, both, even, odd)
        change = changes(x, j, weight * own * own, step * own)
        even, odd = move_rows(A, W, i * wide + j, 1, change, both, even, odd)
    if K == 2:
        even, odd = even * 2.0, odd * 2.0
    measured(state.norm, total(even + odd))


def _sparse_move(state, V, x, i, K, weight, step):
    A, gain, near = state.A, 0.0, 0.0
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


# Inlined: a call would hand over every field of the state, some seventy numbers.
move = by_context(by_layout(_move, _row_move, inlined=True), _sparse_move, inlined=True)


class PNewtron(LinearScores, KernelAgent):
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

    Cost: O(K d) a round, O(K nnz(x)) where contexts come sparse; K exponentials, K nnz(x) quotients; 2 K d numbers.

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
        self.state = State(
            A=matrix(d, K, 1.0 / D),
            V=matrix(d, K),
            z=per_class(d, K),
            s=per_class(d, K),
            scale=np.ones(1),
            norm=running_norm(),
            rates=np.array([self.gamma, self.beta, self.alpha, D]),
            greedy=np.array([int(self.exploit == "argmax")]),
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d), rescaled into the ball."""
        return self.state.scale[0] * super().weights
