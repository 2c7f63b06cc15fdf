r"""The programme of `frobenius_programme` without a ball: the minimiser W is updated directly.

Here :math:`\nu = \nu_0 = 0`. After :math:`(w/2) (x'W_i)^2 + s x'W_i` is added to the objective, with the updated
:math:`N_k` and M,

.. math::

    W_k \leftarrow W_k - (s + w x'W_i) ([k = i] N_i x - N_k v), \qquad v = M N_i x, \tag{1}

which is one application of G to the gradient of the added term. :math:`N_i x` and v are known from the updates of the
inverses, so one pass over the :math:`N_k` remains. Rounding errors accumulate in W until the next check of the
inverses. In that round and in the next one, the programme is solved from the start.
"""

from __future__ import annotations

import math

from banditlab.numerics.frobenius_programme import (
    CHECK,
    REFERENCE,
    ROUNDS,
    add,
    add_to_class,
    add_to_sum,
    solve,
)
from banditlab.numerics.jit import borrow, inline, njit
from banditlab.numerics.low_rank import any_product, any_step
from banditlab.numerics.packed_symmetric import inner, pad, rows_times, step_along
from banditlab.numerics.row_products import scale


@inline
def scores(qp, x, z):
    """Write :math:`x'W_k` into z (K,)."""
    pad(x, qp.scratch.x)
    rows_times(qp.W, qp.scratch.x, z)


@inline
def learn(qp, i, x, weight, step):
    r"""Add :math:`(\text{weight}/2) (x'W_i)^2 + \text{step}\, x'W_i` to the objective and write its minimiser into W,
    with or without a ball.
    """
    if (qp.tally[ROUNDS] + 1) % CHECK <= 1 or qp.radius < math.inf or qp.nu[REFERENCE] > 0.0:
        add(qp, i, x, weight, step)
        solve(qp)
    else:
        follow(qp, i, x, weight, step)


@njit
def follow(qp, i, x, weight, step):
    """Update the minimiser by (1)."""
    qp = borrow(qp)
    W, own, u, v = qp.W, qp.scratch.x, qp.scratch.mu, qp.scratch.g
    pad(x, own)
    any_product(qp.N[i], qp.low_N, i, own, u)
    force = step + weight * inner(W[i], own)
    f = add_to_class(qp, i, weight)
    share = 1.0 - f * inner(u, own)
    # h_i' = (N_i - f u u')(b_i + step x)
    step_along(qp.b[i], step, own)
    step_along(qp.h[i], step * share - f * inner(qp.h[i], own), u)
    r = add_to_sum(qp, f)
    # (1): N_i x = share u, and v = share / (1 - f r) M u with the previous M
    step_along(W[i], -force * share, u)
    scale(v, force * share / (1.0 - f * r))
    for k in range(W.shape[0]):
        any_step(qp.N[k], qp.low_N, k, v, u, W[k])
    qp.tally[ROUNDS] += 1
