"""The programme of `frobenius_programme` over a sketch of the contexts: O((K + m) d) a round instead of O(K d^2).

    minimise  sum_k (1/2) W_k' C_k W_k + b_k' W_k     over W (K, d) with  sum_k W_k = 0,  ||W||_F <= D

Every C_k is kept within a family that the m directions Q of the contexts make (see `frequent_directions`),

    C_k = Q'S_k Q + c_k (I - Q'Q),        S_k (m, m) symmetric, c_k a number.                                         (1)

Solve. (KKT) falls apart into coordinates in Q and the rest, which share the multiplier nu and nothing else. In Q it is the same
programme of size m, `block`. Outside C_k is a number: with r_k = -b_k there,

    W_k = n_k (r_k - sum_l n_l r_l / sum_l n_l),    n_k = 1 / (c_k + nu),                                             (2)

whose norm for any nu follows from R = (r_k'r_l). So one secular equation ||y(nu)||^2 + ||W outside (nu)||^2 = D^2 takes the
place of that in `frobenius_programme`, y the block's solution in its Lanczos basis. Both parts together are one programme, so
1/||W|| is concave and increasing in nu as it is there.

Learn. Into C_i should go weight x x', which leaves the family. As `sketched_inverses` does, the round is learnt exactly first.
With x = Q'a + x0, rest = |x0|^2, G the operator of the C_k and the nu there are, and g = step + weight x'W_i the slope at W,

    W_i moves by  -h G_ii x,    h = g / (1 + weight (a'G_ii a + e rest)),    e = n_i - n_i^2 / sum_k n_k.             (3)

Then C_i goes back into the family, the block in Q as it is, outside the mean of the trace; b_i goes where that minimiser stays:

    S_i += weight a a',    c_i += f,    f = weight rest / (d - m),
    b_i in Q  += (h + weight h a'G_ii a - weight a'W_i) a,        r_i += f (W_i - h e x0) - h x0.                     (4)

a'G_ii a is taken at the reference multiplier nu0, where the block's inverses are kept: nu itself without a ball and from where
the basis last turned. Any h that is no larger than g does in (4); this one makes the step of the full matrices. Without (4) b_i
would answer for curvature that C_i has not got, and W would overshoot by d - m.

When the basis turns, W stays, and nu; of every C_k the block in the new basis is kept and the trace, and b_k = -(C_k + nu) W_k.

While contexts span at most m directions rest is 0, and all of this is exact: the numbers of the full programme, to rounding.

`sketched_scores`, `sketched_add` and `sketched_solve` are plain functions, which `compact_programme` compiles.

Cost: K (d + m) multiplications for scores, 3 K d + 2 m d and some K m^2 to learn, K d + K^2 d / m + K m^2 a round in the mean
where the basis turns, beside the sketch's own; K (d + m^2 + 25 m + K) numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import fill, row_times
from banditlab.numerics.frequent_directions import REST, Directions, directions, hold, renew, see, shrink, widen
from banditlab.numerics.frobenius_programme import (
    BINDING,
    CHECK,
    EXCESS,
    MOVES,
    REFERENCE,
    ROUNDS,
    SOLUTION,
    SOLUTION_ERROR,
    STALLED,
    STEPS,
    Programme,
    apply,
    centre,
    check_drift,
    programme_state,
    refactor,
    reference_solution,
    shifted_solve,
    short_dot,
)
from banditlab.numerics.frobenius_programme import add as add_inside
from banditlab.numerics.jit import njit
from banditlab.numerics.packed_symmetric import Floats, inner, pack, product, step_along, unpack, width, zeros
from banditlab.numerics.row_products import add_product, clear, scale, times

ERROR = 1e-14
"""Error of ||W||, relative to D, at which nu is found: some units of rounding of the sums behind it."""
MOST_TRIALS = 100
"""Most nu tried for one secular equation."""


class SketchedProgramme(NamedTuple):
    """The sketch; block, the programme in its basis, W in coordinates; what lies outside of the basis.

    c (K,); r (K, D), rows orthogonal to Q; R (K, K) = (r_k'r_l), kept where there is a ball; n (K,) of the last solution.
    Scratch: t, v (K,); u (D,); left (1, D), x0; minus (1, mp); turned (mp, mp).
    """

    sketch: Directions
    block: Programme
    c: Floats
    r: Floats
    R: Floats
    n: Floats
    t: Floats
    v: Floats
    u: Floats
    left: Floats
    minus: Floats
    turned: Floats


def sketched_programme(
    n_classes: int, n_features: int, ridge: float, radius: float, sketch_size: int
) -> SketchedProgramme:
    """Return the state for C_k = ridge I, b = 0 and D = radius (math.inf: no ball), over a sketch of no context yet."""
    K, D = n_classes, width(n_features)
    sketch = directions(n_features, sketch_size)
    mp = sketch.a.shape[0]
    return SketchedProgramme(
        sketch=sketch,
        block=programme_state(K, mp, ridge, radius, rows_first=False),  # coordinates without a direction yet stay 0
        c=np.full(K, ridge),
        r=zeros(K, D),
        R=np.zeros((K, K)),
        n=np.full(K, 1.0 / ridge),
        t=np.zeros(K),
        v=np.zeros(K),
        u=zeros(D),
        left=zeros(1, D),
        minus=zeros(1, mp),
        turned=zeros(mp, mp),
    )


def weights(programme: SketchedProgramme, n_features: int) -> NDArray[np.float64]:
    """Return W (K, d), made of its two parts."""
    n, r = programme.n, programme.r[:, -n_features:]
    outside = n[:, None] * (r - n @ r / n.sum())
    made: NDArray[np.float64] = programme.block.W @ programme.sketch.Q[:, -n_features:] + outside
    return made


# ------------------------------------------------------------------------------------------------------- the three verbs


def sketched_scores(programme, x, z):
    """Write W_k'x into z_k."""
    sketch, n, v = programme.sketch, programme.n, programme.v
    see(sketch, x)
    times(programme.block.W, sketch.a, z)
    if sketch.numbers[REST] > 0.0:
        times(programme.r, sketch.x, v)  # (2); r_k has no part in Q
        total = mean = 0.0
        for k in range(n.shape[0]):
            total += n[k]
            mean += n[k] * v[k]
        for k in range(n.shape[0]):
            z[k] += n[k] * (v[k] - mean / total)


def sketched_add(programme, i, x, weight, step):
    """Learn the term (weight / 2) (x'W_i)^2 + step x'W_i; the basis gets the context's direction while there is room."""
    sketch, block = programme.sketch, programme.block
    see(sketch, x)
    widen(sketch)  # a direction of which no C_k holds more than its ridge, as the block says already
    if sketch.numbers[REST] > 0.0:
        add_beyond(programme, i, weight, step)
    else:
        add_inside(block, i, sketch.a, weight, step)


def sketched_solve(programme):
    """Write the minimiser into the block's W and into n, its multiplier into the block's nu; the sketch learns x."""
    minimise(programme)
    if hold(programme.sketch):
        shrink(programme.sketch)
        turn(programme)


# ------------------------------------------------------------------------------------------------------- data in


@njit
def add_beyond(programme, i, weight, step):
    """Learn the term at a context that lies outside of the basis, too: (3) and (4)."""
    sketch, block, n, u = programme.sketch, programme.block, programme.n, programme.u
    a, rest, left, r_i = sketch.a, sketch.numbers[REST], programme.left[0], programme.r[i]
    total = 0.0
    for k in range(n.shape[0]):
        total += n[k]
    # u = W_i outside of Q, and x'W_i
    row_times(n, programme.r, u)
    for j in range(u.shape[0]):
        u[j] = n[i] * (r_i[j] - u[j] / total)
    inside = inner(block.W[i], a)
    now = inside + inner(u, sketch.x)
    # (3)
    lean, e = leaning(block, i, a), n[i] - n[i] * n[i] / total
    h = (step + weight * now) / (1.0 + weight * (lean + e * rest))
    # (4)
    add_inside(block, i, a, weight, h + weight * (h * lean - inside))
    for j in range(a.shape[0]):
        programme.minus[0, j] = -a[j]
    for j in range(left.shape[0]):
        left[j] = sketch.x[j]
    add_product(programme.left, programme.minus, sketch.Q)
    f = weight * rest / sketch.outside
    programme.c[i] += f
    step_along(r_i, f, u)
    step_along(r_i, -h * (1.0 + f * e), left)
    if block.radius < math.inf:
        products_with(programme, i)


@njit
def leaning(block, i, a):
    """Return a'G_ii a of the block, at nu0."""
    u, Mu = block.room.mu, block.room.g
    product(block.N[i], a, u)
    product(block.M, u, Mu)
    return max(inner(u, a) - inner(u, Mu), 0.0)


@njit
def products_with(programme, i):
    """Write row and column i of R."""
    R, v = programme.R, programme.v
    times(programme.r, programme.r[i], v)
    for k in range(v.shape[0]):
        R[i, k] = R[k, i] = v[k]


# ------------------------------------------------------------------------------------------------------- the ball


@njit
def minimise(programme):
    """Write the minimiser, as `frobenius_programme.solve` does."""
    block = programme.block
    W, nu, D, tally = block.W, block.nu, block.radius, block.tally
    tally[ROUNDS] += 1
    if tally[EXCESS] > block.room.mu.shape[0]:
        refactor(block, nu[SOLUTION])
    # The solution at nu0 is the answer where the ball is slack at nu0 = 0; else Lanczos from there, or from a nearer nu0.
    done = False
    for _ in range(MOVES):
        norm = reference_solution(block)
        if nu[REFERENCE] == 0.0 and norm * norm + beyond(programme, 0.0)[0] <= D * D:
            fill(W, 1.0, block.room.V[0])
            nu[SOLUTION] = 0.0
            done = True
        elif norm == 0.0:  # all of W lies outside
            fill(W, 0.0, W)
            nu[SOLUTION] = nu[REFERENCE] + secular(programme, 0, 0.0, nu[SOLUTION] - nu[REFERENCE])
            done = True
        else:
            done = lanczos(programme, norm)
        if done:
            break
        refactor(block, nu[SOLUTION])
    tally[STALLED] += not done
    tally[BINDING] += nu[SOLUTION] > 0.0
    centre(W, block.room.g)
    set_shares(programme)
    if tally[ROUNDS] % CHECK == 0:
        check_drift(block)


@njit
def set_shares(programme):
    """Write n_k = 1 / (c_k + nu)."""
    for k in range(programme.n.shape[0]):
        programme.n[k] = 1.0 / (programme.c[k] + programme.block.nu[SOLUTION])


@njit
def lanczos(programme, norm):
    """Write the block's solution and nu, from V[0] = W(nu0) of this norm; False if STEPS were not enough.

    As in `frobenius_programme`, but ||W|| is that of both parts.
    """
    block = programme.block
    room, nu, D = block.room, block.nu, block.radius
    V, a, e, y = room.V, room.alpha, room.beta, room.y
    fill(V[0], 1.0 / norm, V[0])
    shift = nu[SOLUTION] - nu[REFERENCE]
    for m in range(1, STEPS + 1):
        # Column m of T: G v_m, its part along v_m, and what is left, orthogonal to all.
        w = V[m]
        apply(block, V[m - 1], w)
        a[m - 1] = inner(V[m - 1], w)
        for i in range(m - 1, -1, -1):
            step_along(w, -inner(V[i], w), V[i])
        e[m] = math.sqrt(inner(w, w))
        shift = secular(programme, m, norm, shift)
        amplify = 1.0 if shift >= 0.0 else (nu[REFERENCE] * D + 1.0) / ((nu[REFERENCE] + shift) * D + 1.0)
        if abs(shift) * e[m] * abs(y[m - 1]) * amplify <= SOLUTION_ERROR * D:
            fill(block.W, 0.0, block.W)
            for i in range(m):
                step_along(block.W, y[i], V[i])
            nu[SOLUTION] = nu[REFERENCE] + shift
            block.tally[EXCESS] += m - 2
            return True
        fill(w, 1.0 / e[m], w)
    nu[SOLUTION] = nu[REFERENCE] + shift
    return False


@njit
def secular(programme, m, norm, shift):
    """Return the shift >= -nu0 at which ||W|| = D, y in the leading m x m block of T, or -nu0 if ||W|| <= D there."""
    block = programme.block
    D, y, s = block.radius, block.room.y, block.room.s
    low = -block.nu[REFERENCE]
    trial = low
    for step in range(MOST_TRIALS):
        square, fall = beyond(programme, block.nu[REFERENCE] + trial)
        if m > 0:
            # y = norm (I + trial T)^{-1} e_1
            for i in range(m):
                s[i] = norm if i == 0 else 0.0
            shifted_solve(block, m, trial, s, y)
            square += short_dot(y, y, m)
        size = math.sqrt(square)
        if step == 0:
            if size <= D:
                return low  # the ball is slack
            trial = max(shift, low)
            continue
        # From the second step on the root lies to the right, but for rounding.
        if abs(size - D) <= ERROR * D or (step > 1 and size < D) or not size >= 0.0:
            break
        if m > 0:
            falling(block, m, trial)
            fall += short_dot(y, s, m)
        # Newton on 1/||W||, whose derivative is fall/||W||^3
        trial = max(trial + (size / D - 1.0) * square / fall, low)
    return trial


@njit
def falling(block, m, shift):
    """s = (I + shift T)^{-1} T y = -dy/dshift."""
    y, s, a, e = block.room.y, block.room.s, block.room.alpha, block.room.beta
    for i in range(m):
        s[i] = a[i] * y[i]
        if i > 0:
            s[i] += e[i] * y[i - 1]
        if i + 1 < m:
            s[i] += e[i + 1] * y[i + 1]
    shifted_solve(block, m, shift, s, s)


@njit
def beyond(programme, nu):
    """Return ||W||^2 outside of the basis at nu, and minus half its derivative in nu; 0 without a ball, where R is not kept."""
    R, c, t, v = programme.R, programme.c, programme.t, programme.v
    K = c.shape[0]
    some = 0.0
    for k in range(K):
        some += R[k, k]
    if some == 0.0:
        return 0.0, 0.0
    total = squares = 0.0
    for k in range(K):
        t[k] = 1.0 / (c[k] + nu)
        total += t[k]
        squares += t[k] * t[k]
    # |W_k|^2 by (2): v = R n
    form = along(R, t, v)
    square = fall = 0.0
    for k in range(K):
        w = t[k] * t[k] * (R[k, k] - 2.0 * v[k] / total + form / (total * total))
        square += w
        fall += t[k] * w
    # (c_k + nu) dW_k = mu - W_k, dW of sum zero: -W'dW = sum_k n_k |W_k|^2 - |sum_k n_k W_k|^2 / sum_k n_k
    for k in range(K):
        t[k] *= t[k] - squares / total
    fall -= along(R, t, v) / total
    return max(square, 0.0), max(fall, 0.0)


@njit
def along(R, t, v):
    """Write v = R t and return t'R t."""
    form = 0.0
    for k in range(t.shape[0]):
        v[k] = 0.0
    for k in range(t.shape[0]):  # by columns, which are rows: sums side by side
        for l in range(t.shape[0]):
            v[l] += t[k] * R[k, l]
    for k in range(t.shape[0]):
        form += t[k] * v[k]
    return form


# ------------------------------------------------------------------------------------------------------- the basis turns


@njit
def turn(programme):
    """Go over to the basis of the sketch's `shrink`, and `renew` it: W and nu stay, and the trace of every C_k."""
    sketch, block, r, n = programme.sketch, programme.block, programme.r, programme.n
    total = 0.0
    for k in range(n.shape[0]):
        total += n[k]
    # r = W, all of it
    row_times(n, r, programme.u)
    for k in range(n.shape[0]):
        for j in range(programme.u.shape[0]):
            r[k, j] = n[k] * (r[k, j] - programme.u[j] / total)
    add_product(r, block.W, sketch.Q)
    for k in range(n.shape[0]):
        turn_quadratic(programme, k)
    renew(sketch)
    set_shares(programme)
    split(programme)
    refactor(block, block.nu[SOLUTION])


@njit
def turn_quadratic(programme, k):
    """S_k <- R S_k R' + c_k (I - R R'), and c_k so that the trace of C_k stays."""
    sketch, square, turned = programme.sketch, programme.block.room.square, programme.turned
    R, lost, c, C = sketch.room.R, sketch.room.lost, programme.c[k], programme.block.C[k]
    unpack(C, square)
    more = 0.0
    for j in range(sketch.most):
        more += square[j, j]
    clear(turned)
    add_product(turned, R, square)
    for j in range(R.shape[0]):
        times(turned, R[j], square[j])
    for j in range(sketch.most):
        step_along(square[j], c, lost[j])
        more -= square[j, j]
    programme.c[k] = c + more / sketch.outside
    for j in range(sketch.most, R.shape[0]):  # padding: something to invert
        square[j, j] = programme.c[k]
    pack(square, C)


@njit
def split(programme):
    """Take W in r apart, by the basis there is now: W and b of the block, and r = (c_k + nu) W_k outside."""
    sketch, block, r, n = programme.sketch, programme.block, programme.r, programme.n
    nu, g, negative = block.nu[SOLUTION], block.room.g, block.room.V[0]
    for k in range(n.shape[0]):
        times(sketch.Q, r[k], block.W[k])
        product(block.C[k], block.W[k], g)
        for j in range(g.shape[0]):
            block.b[k, j] = -g[j] - nu * block.W[k, j]
    fill(negative, -1.0, block.W)
    add_product(r, negative, sketch.Q)
    for k in range(n.shape[0]):
        scale(r[k], 1.0 / n[k])
    if block.radius < math.inf:
        for k in range(n.shape[0]):
            products_with(programme, k)
