"""The programme of `frobenius_programme` without a ball: W follows each lesson, and a block leaves it for its end.

nu = nu0 = 0. After a lesson (w/2) (x'W_i)^2 + s x'W_i, with N_k and M as the lesson leaves them,

    W_k <- W_k - (s + w x'W_i) ([k = i] N_i x - N_k v),    v = M N_i x,                                              (1)

one application of G to what the lesson pulls with. N_i x and v are at hand from the inverses' own updates: one pass over the
N_k is left. What rounding adds up to ends with the next check of the inverses: in that round, and in the one after it, W is
solved for anew.

Large problems wait for memory. A block of theirs keeps mu in place of W, and reads from the N_k what it needs of W:

    W_k = N_k mu - h_k,    mu = M sum_k h_k,    mu <- mu + (s + w x'W_i) v,                                          (2)

    x'W_k = x'N_k mu - h_k'x.                                                                                        (3)

Of an N_k = p I - F'F (see `low_rank`) (3) takes F x and F mu, one pass of two products a row, and nothing is written. F_i x
is kept: of N_i x = p x - F_i'(F_i x) the second half is left to do. A whole M gets its rank-one terms eight at a time:

    M = M_0 + V'V,    V (8, D), rows of zeros where no lesson has come yet,                                          (4)

and then V'V is added to M_0. All this stands where a ball would have Lanczos vectors; at rest nothing of it means anything.

Cost of a round of K classes with r rows each: 4 K r d operations for (3), and a product with M.
"""

from __future__ import annotations

import math

from banditlab.numerics.frobenius_programme import (
    CHECK,
    REFERENCE,
    ROUNDS,
    STEPS,
    add,
    add_to_class,
    add_up,
    centre,
    slack_solution,
    solve,
)
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.lookahead import SHORTEST
from banditlab.numerics.low_rank import (
    add_outer,
    all_between,
    any_downdate,
    any_product,
    any_step,
    is_whole,
    seen_product,
)
from banditlab.numerics.packed_symmetric import inner, lay, rows_times, step_along
from banditlab.numerics.row_products import clear, scale

TERMS = 8
"""Rank-one terms that wait for a whole M."""
ON = STEPS
"""Where room.alpha has a 1 within a block."""
MU, SEEN, WAITING = 2, 3, 4
"""Where room.V keeps mu, in a first row, the F_k x, and from where on V of (4); `check_drift` writes before them."""


@inline
def within_block(qp):
    """Return whether mu is kept in place of W."""
    return qp.room.alpha[ON] == 1.0


@inline
def waiting(qp):
    """Return V (8, D) of (4)."""
    K, D = qp.W.shape
    return qp.room.V.reshape(-1, D)[WAITING * K : WAITING * K + TERMS]


# ---------------------------------------------------------------------------------------------------------- round by round


@njit
def scores(qp, x, z):
    """Write x'W_k into z (K,)."""
    own, V = qp.room.x, qp.room.V
    lay(x, own)
    if not within_block(qp):
        rows_times(qp.W, own, z)
        return
    all_between(qp.N, qp.low_N, own, V[MU, 0], z, V[SEEN])  # (3)
    for k in range(z.shape[0]):
        z[k] -= inner(qp.h[k], own)


@njit
def learn(qp, i, x, weight, step):
    """Add (weight/2) (x'W_i)^2 + step x'W_i and write the minimiser into W, or within a block its mu; any ball is met."""
    anew = (qp.tally[ROUNDS] + 1) % CHECK <= 1
    if not anew and math.isinf(qp.radius) and qp.nu[REFERENCE] == 0.0:
        follow(qp, i, x, weight, step)
        qp.tally[ROUNDS] += 1
        return
    if within_block(qp):
        settle(qp)
    add(qp, i, x, weight, step)
    solve(qp)
    if within_block(qp):
        find_mu(qp)


@njit
def follow(qp, i, x, weight, step):
    """Do (1), or within a block, whose last scores were of this x, (2): from a minimiser to the next."""
    W, h, own, u, v, mu = qp.W, qp.h, qp.room.x, qp.room.mu, qp.room.g, qp.room.V[MU, 0]
    block = within_block(qp)
    lay(x, own)
    b_u = inner(h[i], own)
    # u = N_i x, x'W_i
    if block:
        seen_product(qp.N[i], qp.low_N, i, qp.room.V[SEEN, i], own, u)
        lean = inner(u, mu) - b_u
    else:
        any_product(qp.N[i], qp.low_N, i, own, u)
        lean = inner(W[i], own)
    f = add_to_class(qp, i, weight)
    # N_i'x = share u, and h_i' = (N_i - f u u')(b_i + step x)
    share = 1.0 - f * inner(u, own)
    step_along(qp.b[i], step, own)
    step_along(h[i], step * share - f * b_u, u)
    # v: M' u = M u / (1 - f u'M u)
    r = move_sum(qp, block, f, u, v)
    by = (step + weight * lean) * share
    scale(v, by / (1.0 - f * r))
    if block:
        step_along(mu, 1.0, v)  # (2)
        return
    step_along(W[i], -by, u)  # (1)
    for k in range(W.shape[0]):
        any_step(qp.N[k], qp.low_N, k, v, u, W[k])


@njit
def move_sum(qp, block, f, u, v):
    """Write v = M u, let M follow N_i - f u u', and return u'v: as in `add`, but a whole M waits within a block, (4)."""
    M, low = qp.M, qp.low_M
    any_product(M, low, 0, u, v)
    if not (block and is_whole(low, 0)):
        r = inner(u, v)
        any_downdate(M, low, 0, v, -f / (1.0 - f * r))
        return r
    V = waiting(qp)
    for a in range(TERMS):
        step_along(v, inner(V[a], u), V[a])
    r, a = inner(u, v), qp.tally[ROUNDS] % TERMS
    step_along(V[a], math.sqrt(f / (1.0 - f * r)), v)
    if a == TERMS - 1:
        settle(qp)
    return r


# ------------------------------------------------------------------------------------------------- W left for a block's end


@njit
def look(qp, X, t):
    """Context t of a block X (n, d) comes next; t = n: none, and W is written. Short blocks go round by round."""
    n = X.shape[0]
    if n < SHORTEST:
        return
    if t == 0:
        find_mu(qp)
        clear(waiting(qp))
        qp.room.alpha[ON] = 1.0
    elif t == n:
        qp.room.alpha[ON] = 0.0
        settle(qp)
        slack_solution(qp, qp.W)
        centre(qp.W, qp.room.g)


@njit
def find_mu(qp):
    """Write mu = M sum_k h_k, (2)."""
    add_up(qp.h, qp.room.g)
    any_product(qp.M, qp.low_M, 0, qp.room.g, qp.room.V[MU, 0])


@njit
def settle(qp):
    """Add to M what waits for it, (4)."""
    if is_whole(qp.low_M, 0):
        add_outer(qp.M, waiting(qp))
        clear(waiting(qp))
