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
    add_to_sum,
    add_up,
    centre,
    slack_solution,
    solve,
)
from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.lookahead import SHORTEST
from banditlab.numerics.low_rank import (
    add_outer,
    all_between,
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
def within_block(room, low):
    """Return whether mu is kept in place of W; small problems, which never do so, have no code for it."""
    if low is None:
        return False
    return room.alpha[ON] == 1.0


@inline(arrays="lent")
def waiting(V):
    """Return V (8, D) of (4)."""
    K, D = V.shape[1:]
    return borrow(V).reshape(-1, D)[WAITING * K : WAITING * K + TERMS]


# ---------------------------------------------------------------------------------------------------------- round by round


@inline
def scores(qp, x, z):
    """Write x'W_k into z (K,)."""
    lay(x, qp.room.x)
    if within_block(qp.room, qp.low_N):
        scores_by_mu(qp, z)
    else:
        rows_times(qp.W, qp.room.x, z)


@njit
def scores_by_mu(qp, z):
    """Do (3) for the x in room.x."""
    own, V = qp.room.x, qp.room.V
    all_between(qp.N, qp.low_N, own, V[MU, 0], z, V[SEEN])
    for k in range(z.shape[0]):
        z[k] -= inner(qp.h[k], own)  # (3)


@inline
def learn(qp, i, x, weight, step):
    """Add (weight/2) (x'W_i)^2 + step x'W_i and write the minimiser into W, or within a block its mu; any ball is met."""
    if (qp.tally[ROUNDS] + 1) % CHECK <= 1 or qp.radius < math.inf or qp.nu[REFERENCE] > 0.0:
        solve_anew(qp, i, x, weight, step)
    elif within_block(qp.room, qp.low_N):
        follow_in_block(qp, i, x, weight, step)
    else:
        follow(qp, i, x, weight, step)


@njit
def solve_anew(qp, i, x, weight, step):
    """Learn the lesson from the inverses alone."""
    block = within_block(qp.room, qp.low_N)
    if block:
        settle(qp)
    add(qp, i, x, weight, step)
    solve(qp)
    if block:
        find_mu(qp)


@njit
def follow(qp, i, x, weight, step):
    """Do (1): from a minimiser to the next."""
    qp = borrow(qp)
    W, own, u, v = qp.W, qp.room.x, qp.room.mu, qp.room.g
    lay(x, own)
    any_product(qp.N[i], qp.low_N, i, own, u)
    force = step + weight * inner(W[i], own)
    f, share = move_class(qp, i, weight, step)
    r = add_to_sum(qp, f)
    # (1): N_i x = share u, and v = share / (1 - f r) M u, of the M of before
    step_along(W[i], -force * share, u)
    scale(v, force * share / (1.0 - f * r))
    for k in range(W.shape[0]):
        any_step(qp.N[k], qp.low_N, k, v, u, W[k])
    qp.tally[ROUNDS] += 1


@inline
def move_class(qp, i, weight, step):
    """Let C_i, N_i, b_i and h_i learn x in room.x, room.mu the u = N_i x of before; return f and share, N_i x = share u."""
    own, u = qp.room.x, qp.room.mu
    f = add_to_class(qp, i, weight)
    share = 1.0 - f * inner(u, own)
    # h_i' = (N_i - f u u')(b_i + step x)
    step_along(qp.b[i], step, own)
    step_along(qp.h[i], step * share - f * inner(qp.h[i], own), u)
    return f, share


# ------------------------------------------------------------------------------------------------- W left for a block's end


@njit
def look(qp, X, t):
    """Context t of a block X (n, d) comes next; t = n: none, and W is written. Short blocks go round by round."""
    n = X.shape[0]
    if n < SHORTEST:
        return
    if t == 0:
        find_mu(qp)
        clear(waiting(qp.room.V))
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
        add_outer(qp.M, waiting(qp.room.V))
        clear(waiting(qp.room.V))


@njit
def follow_in_block(qp, i, x, weight, step):
    """Do (2), at the x that was scored last."""
    own, u, v, mu = qp.room.x, qp.room.mu, qp.room.g, qp.room.V[MU, 0]
    lay(x, own)
    seen_product(qp.N[i], qp.low_N, i, qp.room.V[SEEN, i], own, u)
    force = step + weight * (inner(u, mu) - inner(qp.h[i], own))
    f, share = move_class(qp, i, weight, step)
    r = move_sum(qp, f, u, v)
    step_along(mu, force * share / (1.0 - f * r), v)  # (2)
    qp.tally[ROUNDS] += 1


@njit
def move_sum(qp, f, u, v):
    """Write v = M u for the M of before, let M follow N_i - f u u', as in `add`, and return u'v; a whole M waits, (4)."""
    if not is_whole(qp.low_M, 0):
        return add_to_sum(qp, f)
    any_product(qp.M, qp.low_M, 0, u, v)
    V = waiting(qp.room.V)
    for a in range(TERMS):
        step_along(v, inner(V[a], u), V[a])  # M u = M_0 u + V'(V u)
    r, a = inner(u, v), qp.tally[ROUNDS] % TERMS
    step_along(V[a], math.sqrt(f / (1.0 - f * r)), v)
    if a == TERMS - 1:
        settle(qp)
    return r
