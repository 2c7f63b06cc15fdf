"""SOBAdiag: SOBA with a diagonal matrix (Beygelzimer, Orabona and Zhang, ICML 2017)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import LinearScores
from banditlab.agents.soba import accepts, act_kernel, resolved_gamma
from banditlab.numerics.argmax import runner_up
from banditlab.numerics.contexts import by_context, by_layout
from banditlab.numerics.jit import borrow, inline
from banditlab.numerics.linear_scores import by_class, features, matrix, per_class
from banditlab.numerics.simd import WIDTH, all_lanes, eight, one_lane, put, total
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import positive


class State(NamedTuple):
    """V, the transpose of W, C = 1/A and theta in one layout (see `numerics.linear_scores`); the others as in SOBA."""

    V: NDArray[np.float64]
    C: NDArray[np.float64]
    theta: NDArray[np.float64]
    z: NDArray[np.float64]
    gamma: NDArray[np.float64]
    tally: NDArray[np.float64]


# Sums go by lanes, features l, l + 8, ... in lane l, in every form.


def _quadratic(C, y, yb, x):
    """Return x'(C_yb + C_y)x, the C_k diagonal."""
    sums = all_lanes(0.0)
    for j in range(x.shape[0]):
        sums = sums + one_lane(j & 7, x[j] * x[j] * (C[j, yb] + C[j, y]))
    return total(sums)


def _row_quadratic(C, y, yb, x):
    rows, x, sums = by_class(C), borrow(x), all_lanes(0.0)
    wide = rows.shape[1]
    for j in range(0, x.shape[0], WIDTH):
        xj = features(x, j)
        sums = sums + xj * xj * (eight(rows, yb * wide + j) + eight(rows, y * wide + j))
    return total(sums)


def _sparse_quadratic(C, y, yb, x):
    sums = all_lanes(0.0)
    for i in range(x.indices.shape[0]):
        j, a = x.indices[i], x.values[i]
        sums = sums + one_lane(j & 7, a * a * (C[j, yb] + C[j, y]))
    return total(sums)


quadratic_form = by_context(by_layout(_quadratic, _row_quadratic, name="C"), _sparse_quadratic)


@inline
def moved(c, theta, xj, inverse, sign):
    """Return entries of C, theta and W updated, numbers or lanes; sign is 1 in the row y and -1 in the row yb."""
    c = c / (xj * xj * inverse * c + 1.0)  # A += z^2
    theta = theta + xj * (sign * inverse)  # theta -= g
    return c, theta, c * theta  # W = A^{-1} theta


@inline
def move_entry(state, j, y, yb, xj, inverse):
    """Update column j of the rows y and yb."""
    V, C, theta = state.V, state.C, state.theta
    C[j, y], theta[j, y], V[j, y] = moved(C[j, y], theta[j, y], xj, inverse, 1.0)
    C[j, yb], theta[j, yb], V[j, yb] = moved(C[j, yb], theta[j, yb], xj, inverse, -1.0)


def _move(state, V, y, yb, x, inverse):
    for j in range(x.shape[0]):
        if x[j] != 0.0:
            move_entry(state, j, y, yb, x[j], inverse)


def _row_move(state, V, y, yb, x, inverse):
    W, C, theta, x = by_class(V), by_class(state.C), by_class(state.theta), borrow(x)
    for j in range(0, x.shape[0], WIDTH):
        xj = features(x, j)
        for k, sign in ((y, 1.0), (yb, -1.0)):
            i = k * W.shape[1] + j
            c, t, w = moved(eight(C, i), eight(theta, i), xj, inverse, sign)
            put(C, i, c)
            put(theta, i, t)
            put(W, i, w)


def _sparse_move(state, V, y, yb, x, inverse):
    for i in range(x.indices.shape[0]):
        move_entry(state, x.indices[i], y, yb, x.values[i], inverse)


move = by_context(by_layout(_move, _row_move), _sparse_move)


@inline
def learn_kernel(state, x, action, p, payload, correct):
    state.tally[2] += 1.0
    if not correct:
        return
    y, inverse = action, 1.0 / p[action]
    yb = runner_up(payload, y, payload.shape[0])  # g = (e_yb - e_y) (x) x / p_y, z^2 = x^2 / p_y in the rows yb and y
    quadratic = inverse * quadratic_form(state.C, y, yb, x)  # z'A^{-1}z
    if not accepts(state.tally, payload[yb] - payload[y], p[action], quadratic):
        return
    move(state, state.V, y, yb, x, inverse)


class SOBAdiag(LinearScores, KernelAgent):
    """SOBA with the diagonal of its matrix, at the cost of a perceptron; the form its paper's experiments run.

    Problem: bandit multiclass, adversarial stream.

    Update rule (W = 0, A = a, theta = 0, S = 0, all of shape K x d, squares and quotients element by element):
    yh = argmax W x_t, the first of equals; play from p = (1 - gamma) e_yh + gamma/K, drawn as a coin and a uniform
    class. Only where the played class y is right:

        yb = argmax_{i != y} (W x_t)_i;   g = (e_yb - e_y) (x) x_t / p_y;   z = sqrt(p_y) g
        m = (<W, z>^2 + 2 <W, g>) / (1 + <z, z/A>)
        if S + m >= 0:  S += m;  A += z^2;  theta -= g;  W = theta/A

    The authors' public code has slips in its exploration branch (sqrt(p) for p in the quadratic form, diff = 0) that
    touch its diagnostics only, for that branch always updates; they are not repeated.

    Guarantee: none for the diagonal, `bound` answers None; the full matrix's is described at `soba`. A very small gamma
    hurts it: the budget S, and with it the updates on rounds it got right, is fed by exploration.
    Its beginning is a matter of luck: on SynSep at gamma = .014 and T = 10^6 twenty runs of ours erred on 1.4 % to 2.1 %
    of the rounds (1.77 % on average), most of the difference made in the first 200,000.

    Cost: O(K d) a round for the scores, O(d) on a hit, nnz(x) in the place of d where contexts come sparse; 3 K d numbers.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1] (gamma in the paper), or "adaptive" as described at `soba`.
    ridge
        a in the paper, above 0: A starts as a.

    Raises
    ------
    UsageError
        gamma outside [0, 1], ridge not above 0.

    References
    ----------
    A. Beygelzimer, F. Orabona, C. Zhang. Efficient online bandit multiclass learning with O~(sqrt(T)) regret. ICML 2017.
    """

    id = "soba-diag"
    group = "practice"
    summary = "second-order Banditron, diagonal matrix"
    reference = "Beygelzimer, Orabona and Zhang, ICML 2017, the diagonal variant of the experiments"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    sparse = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        gamma: float | Literal["adaptive"] = 0.05,
        ridge: float = 1.0,
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        self.gamma = resolved_gamma(gamma)
        self.ridge = positive("ridge", ridge)
        self.payload_size = K
        self.state = State(
            V=matrix(d, K),
            C=matrix(d, K, 1.0 / self.ridge),
            theta=matrix(d, K),
            z=per_class(d, K),
            gamma=np.array([1.0 if self.gamma == "adaptive" else float(self.gamma)]),
            tally=np.array([0.0, 0.0, 0.0, float(self.gamma == "adaptive")]),
        )
