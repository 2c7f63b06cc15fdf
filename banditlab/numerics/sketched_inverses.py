r"""An array of models as in `class_inverses`, in the coordinates of a sketch of the contexts of all models.

Problem. M models over contexts of :math:`\mathbb{R}^d` take :math:`M d^2/2` numbers of memory and as many
multiplications per round. If the contexts lie mostly in :math:`m < d` directions Q (see `frequent_directions`), the
inverse :math:`P_i` of :math:`A_i` is nearly determined by these directions. It is therefore approximated within the
family

.. math::

    P_i = Q'B_i Q + p_i (I - Q'Q), \qquad B_i \in \mathbb{R}^{m \times m} \text{ symmetric}, \; p_i \in \mathbb{R}. \tag{1}

Reading. For a context with coordinates :math:`a = Q x` and a remainder of squared norm `rest`,

.. math::

    x'P_i x = a'B_i a + p_i\, \text{rest}. \tag{2}

Update. :math:`A_i + w x x'` has the inverse :math:`P_i - s v v'`, :math:`v = P_i x`, :math:`s = w/(1 + w x'P_i x)`,
which is outside the family. Its block :math:`Q (P_i - s v v') Q'` is stored exactly. Outside Q, :math:`w x x'` adds
:math:`w\, \text{rest}` to the trace of :math:`A_i`. This increase is distributed equally over the :math:`d - m`
directions outside Q:

.. math::

    B_i \leftarrow B_i - s u u', \; u = B_i a, \qquad 1/p_i \leftarrow 1/p_i + w\, \text{rest}/(d - m). \tag{3}

When the basis rotates, :math:`Q_{\text{new}} = R Q + \dots`, the block in the new basis and the trace of :math:`P_i`
are preserved:

.. math::

    B_i^{\text{new}} = R B_i R' + p_i (I - R R'), \qquad
    p_i^{\text{new}} = (\mathrm{tr}(B_i) + p_i (d - m) - \mathrm{tr}(B_i^{\text{new}}))/(d - m). \tag{4}

As long as contexts span at most m directions, `rest` is 0, and the result is exactly that of `class_inverses`.

:math:`h_i` is stored in full as :math:`H_i + Q'E_i`. The update :math:`h_i \mathrel{+}= \text{step}\, v` becomes
:math:`H_i \mathrel{+}= \text{step}\, p_i x` and :math:`E_i \mathrel{+}= \text{step} (u - p_i a)`, which costs
:math:`O(d)` instead of :math:`O(m d)`. Before the basis rotates, :math:`Q'E_i` is added to :math:`H_i`.

Related work. Sketched online Newton (Luo et al. 2016) sketches the rank-one terms of one matrix and adds a constant to
the diagonal. Robust frequent directions (Luo et al. 2019) adds half of the eigenvalue that a shrink subtracts. With one
matrix per class, either method needs M sketches, whose :math:`M m d` numbers alone exceed a core's cache. Here all
models share one sketch of the contexts. An alternative to (3) preserves the trace of :math:`P_i` at every update; on
streams of low rank with noise, agents with (3) made fewer mistakes.

Cost: :math:`M (d + m^2/2)` multiplications to read all models, :math:`d + 1.5 m^2` for an updated model, and
:math:`M (d + m)` per round on average for (4), in addition to the sketch's own cost. Memory: :math:`M (d + m^2/2)`
numbers.

References
----------
H. Luo, A. Agarwal, N. Cesa-Bianchi, J. Langford. Efficient second order online learning by sketching. NeurIPS 2016.
L. Luo, C. Chen, Z. Zhang, W.-J. Li, T. Zhang. Robust frequent directions with application in online learning. JMLR 20, 2019.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.frequent_directions import REST, ROWS
from banditlab.numerics.jit import njit
from banditlab.numerics.limits import Limits, constant
from banditlab.numerics.packed_symmetric import (
    Floats,
    diagonal,
    downdate,
    forms,
    inner,
    pack,
    product,
    size_of,
    step_along,
    unpack,
    width,
    zeros,
)
from banditlab.numerics.row_products import add_product, clear, times


class SketchedInverses(NamedTuple):
    """The models: B (M, S), the packed matrices :math:`B_i`; p (M,); H (M, D) and E (M, mp).

    :math:`h_i` is :math:`H_i + Q'E_i`. D and mp are d and m, padded. `places` (mp,) holds the positions of the diagonal
    in a packed B. Work arrays: u (mp,), :math:`B_i a`; `square` and `turned` (mp, mp).
    """

    B: Floats
    p: Floats
    H: Floats
    E: Floats
    places: NDArray[np.int64]
    u: Floats
    square: Floats
    turned: Floats

    def limits(self) -> Limits:
        """Return the range of every integer; the size determines the places."""
        return {"places": constant(self.places)}


def sketched_inverses(scales: NDArray[np.float64], d: int, m: int) -> SketchedInverses:
    r"""Return models of size d with :math:`P_i = \text{scales}_i I` and :math:`h_i = 0`, over a sketch of at most m rows.

    The sketch must be empty.
    """
    M, mp = len(scales), width(min(m, d))
    return SketchedInverses(
        B=zeros(M, size_of(mp)),
        p=np.array(scales, dtype=np.float64),
        H=zeros(M, width(d)),
        E=zeros(M, mp),
        places=diagonal(mp),
        u=zeros(mp),
        square=zeros(mp, mp),
        turned=zeros(mp, mp),
    )


@njit
def reset(inverses, scales):
    r"""Reset all models to :math:`P_i = \text{scales}_i I` and :math:`h_i = 0`, for an empty sketch."""
    clear(inverses.B)
    clear(inverses.H)
    clear(inverses.E)
    for i in range(inverses.p.shape[0]):
        inverses.p[i] = scales[i]


@njit
def read(inverses, sketch, m, q):
    """Write :math:`m_i = h_i'x` and :math:`q_i = x'P_i x` of all models, with x the current context of the sketch."""
    times(inverses.H, sketch.x, m)
    forms(inverses.B, sketch.point, q)
    rest = sketch.numbers[REST]
    for i in range(inverses.p.shape[0]):
        m[i] += inner(inverses.E[i], sketch.a)
        q[i] += inverses.p[i] * rest  # (2)


@njit
def read_one(inverses, sketch, i):
    """Return :math:`m_i` and :math:`q_i`, and prepare `update_one` at the same context."""
    product(inverses.B[i], sketch.point.x, inverses.u)
    m = inner(sketch.x, inverses.H[i]) + inner(sketch.a, inverses.E[i])
    return m, inner(sketch.a, inverses.u) + inverses.p[i] * sketch.numbers[REST]


@njit
def update_one(inverses, sketch, i, step, weight, down):
    r"""Update :math:`h_i \mathrel{+}= \text{step}\, v` with :math:`v = P_i x`, and :math:`A_i` by
    :math:`\text{weight}\, x x'` within the family (1).

    x is the context of the last `read_one`, and `down` is :math:`1 / (1 + \text{weight}\, q_i)`.
    """
    p, rest = inverses.p[i], sketch.numbers[REST]
    step_along(inverses.E[i], step, inverses.u)
    if rest > 0.0:  # else v = Q'u
        step_along(inverses.E[i], -step * p, sketch.a)
        step_along(inverses.H[i], step * p, sketch.x)
        inverses.p[i] = p / (1.0 + p * (weight * rest / sketch.outside))
    downdate(inverses.B[i], inverses.u, weight * down)  # (3)


@njit
def widen(inverses, sketch):
    """Extend the models by the direction that was just added to the sketch."""
    place = inverses.places[sketch.counts[ROWS] - 1]
    for i in range(inverses.p.shape[0]):
        inverses.B[i, place] = 0.5 * inverses.p[i]  # diagonal blocks are stored halved


@njit
def rotate(inverses, sketch):
    """Rotate the models with the basis; to be called after the sketch's `shrink` and before its `replace_basis`."""
    R, lost, square, turned = sketch.scratch.R, sketch.scratch.lost, inverses.square, inverses.turned
    add_product(inverses.H, inverses.E, sketch.Q)
    clear(inverses.E)
    for i in range(inverses.p.shape[0]):
        # (4): R B R' + p (I - R R')
        p = inverses.p[i]
        unpack(inverses.B[i], square)
        before = trace(square)
        clear(turned)
        add_product(turned, R, square)
        for j in range(R.shape[0]):
            times(turned, R[j], square[j])
        for j in range(R.shape[0]):
            step_along(square[j], p, lost[j])
        pack(square, inverses.B[i])
        inverses.p[i] = p + (before - trace(square)) / sketch.outside


@njit
def trace(A):
    """Return the sum of the diagonal of A (m, m)."""
    total = 0.0
    for j in range(A.shape[0]):
        total += A[j, j]
    return total
