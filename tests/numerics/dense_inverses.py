"""The matrices of class models as plain arrays, whatever their form."""

from __future__ import annotations

import numpy as np

from banditlab.numerics.class_inverses import Inverses
from banditlab.numerics.low_rank import WHOLE, rows
from banditlab.numerics.packed_symmetric import Floats, dense


def dense_inverses(inverses: Inverses, d: int) -> Floats:
    """Return the matrices :math:`P_i` (M, d, d) of any form."""
    P, low = dense(inverses.P, d), inverses.low
    if low is not None:
        for i in range(len(P)):
            if low.ranks[i] != WHOLE:
                F = rows(low, inverses.P, i)[:, -d:]
                P[i] = low.scales[i] * np.eye(d) + low.sign * F.T @ F
    return P
