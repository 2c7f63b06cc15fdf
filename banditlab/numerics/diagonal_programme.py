"""The programme of `frobenius_programme` where of every C_k the diagonal alone is kept: O(K d) a round.

    minimise  sum_k (1/2) W_k' C_k W_k - r_k' W_k     over W (K, d) with  sum_k W_k = 0,  ||W||_F <= D             (r = -b)

Solve. With C_k diagonal every column j of W is a problem of K numbers, and of (KKT) there is left

    n_kj = 1 / (c_kj + nu),    m_j = sum_k n_kj r_kj / sum_k n_kj,    W_kj = n_kj (r_kj - m_j).                         (1)

The multiplier nu of the ball is found by Newton on 1 / ||W||, concave and increasing in nu: from the last nu it is left of the
root after one step, and climbs to it from there.

Learn. Into C_i should go weight x x', which is no diagonal. The round is learnt exactly first: with G the operator of the C_k
and the nu there are, g the slope of the new term at W, g = step + weight x'W_i,

    W_i moves by  -h G_ii x,    h = g / (1 + weight x'G_ii x),    G_ii = diag(n_ij - n_ij^2 / sum_k n_kj).              (2)

Only then the diagonal takes weight x_j^2 in place of weight x x', and b_i what keeps that minimiser where it is:

    C_ij += weight x_j^2,    r_ij += weight x_j^2 (W_i - h G_ii x)_j - h x_j.                                           (3)

Without that, r_i would go on to answer for products x_j x_l W_l that C_i has not got, and W would run away where features
come together. Along the axes nothing is lost: then (3) is C_i += weight x x', b_i += step x.

`diagonal_scores`, `diagonal_add` and `diagonal_solve` are plain functions, which `compact_programme` compiles.

Cost: a pass over 3 K d numbers with K d divisions for every nu tried, one where the ball is slack, two or three where it binds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.packed_symmetric import Floats, inner, lay, width, zeros
from banditlab.numerics.row_products import times
from banditlab.numerics.simd import WIDTH, all_lanes, eight, put, total

ERROR = 1e-14
"""Error of ||W||, relative to D, at which nu is found: some units of rounding of a sum of K d squares."""
MOST_TRIALS = 100
"""Most nu tried in one solve."""

ROUNDS, BINDING, TRIALS, STALLED = range(4)
"""Slots of `tally`: solves; those with nu > 0; nu tried; solves that ran out of trials."""


class DiagonalProgramme(NamedTuple):
    """C, r and W (K, D), rows with zeros in front of the features; C has its ridge there, too. N (D,) = sum_k n_k.

    radius: D, infinite without a ball. nu (1,), tally (4,). Scratch: x, v (D,), n (K, 8).
    """

    C: Floats
    r: Floats
    W: Floats
    N: Floats
    radius: float
    nu: Floats
    tally: NDArray[np.int64]
    x: Floats
    v: Floats
    n: Floats

    def limits(self) -> Limits:
        """Return the range of every integer."""
        return {"tally": COUNT}


def diagonal_programme(n_classes: int, n_features: int, ridge: float, radius: float) -> DiagonalProgramme:
    """Return the state for C_k = ridge I, b = 0 and D = radius (math.inf: no ball)."""
    K, D = n_classes, width(n_features)
    made = DiagonalProgramme(
        C=zeros(K, D),
        r=zeros(K, D),
        W=zeros(K, D),
        N=zeros(D),
        radius=float(radius),
        nu=np.zeros(1),
        tally=np.zeros(4, np.int64),
        x=zeros(D),
        v=zeros(D),
        n=zeros(K, WIDTH),
    )
    made.C[:] = ridge
    made.N[:] = K / ridge
    return made


def diagonal_scores(programme, x, z):
    """Write W_k'x into z_k."""
    lay(x, programme.x)
    times(programme.W, programme.x, z)


def diagonal_add(programme, i, x, weight, step):
    """Learn the term (weight / 2) (x'W_i)^2 + step x'W_i, in the family of diagonals."""
    own, v, N = borrow(programme.x), borrow(programme.v), borrow(programme.N)
    C, r, W = borrow(programme.C[i]), borrow(programme.r[i]), borrow(programme.W[i])
    lay(x, own)
    # v = G_ii x of (2), and its product with x
    one, nu, lean = all_lanes(1.0), programme.nu[0], all_lanes(0.0)
    for j in range(0, own.shape[0], WIDTH):
        y, n = eight(own, j), one / (eight(C, j) + nu)
        u = (n - n * n / eight(N, j)) * y
        put(v, j, u)
        lean = lean + u * y
    h = (step + weight * inner(W, own)) / (1.0 + weight * total(lean))
    # (3)
    for j in range(0, own.shape[0], WIDTH):
        y = eight(own, j)
        more = y * y * weight
        put(C, j, eight(C, j) + more)
        put(r, j, eight(r, j) + (more * (eight(W, j) - eight(v, j) * h) - y * h))


def diagonal_solve(programme):
    """Write the minimiser into W and its multiplier into nu."""
    D, tally = programme.radius, programme.tally
    trial, done = programme.nu[0], False
    tally[ROUNDS] += 1
    for step in range(MOST_TRIALS):
        square, fall = at(programme, trial)
        size = math.sqrt(square)
        tally[TRIALS] += 1
        # The ball is slack, or nu is found: from the second trial on only rounding leads beyond the root.
        if (trial == 0.0 and size <= D) or abs(size - D) <= ERROR * D or (step > 0 and size < D):
            done = True
            break
        if not fall > 0.0:  # W = 0 solves it for every nu; or there are no numbers left
            trial = 0.0
            done = square == 0.0
            break
        # Newton on 1/||W||, whose derivative is fall/||W||^3
        trial = max(trial + (size / D - 1.0) * square / fall, 0.0)
    programme.nu[0] = trial
    tally[BINDING] += trial > 0.0
    tally[STALLED] += not done


@njit
def at(programme, nu):
    """Write (1) into W and N; return ||W||^2 and minus half its derivative in nu."""
    programme = borrow(programme)
    C, r, W, N, n = programme.C, programme.r, programme.W, programme.N, programme.n
    K, D = C.shape
    one = all_lanes(1.0)
    squares = falls = all_lanes(0.0)
    for j in range(0, D, WIDTH):
        s = m = all_lanes(0.0)
        for k in range(K):
            w = one / (eight(C, k * D + j) + nu)
            put(n, k * WIDTH, w)
            s = s + w
            m = m + w * eight(r, k * D + j)
        m = m / s
        # (C_k + nu) dW_k = m' - W_k with columns of dW that sum to zero: -W'dW = sum_k n_k W_k^2 - (sum_k n_k W_k)^2 / s
        along = all_lanes(0.0)
        for k in range(K):
            w = eight(n, k * WIDTH)
            y = w * (eight(r, k * D + j) - m)
            put(W, k * D + j, y)
            w = w * y
            squares = squares + y * y
            falls = falls + w * y
            along = along + w
        falls = falls - along * along / s
        put(N, j, s)
    return total(squares), total(falls)
