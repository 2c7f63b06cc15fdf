"""The empirical edge of each weak learner (Jung, Goetz and Tewari, Section 4.2), updated in every round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Edges(NamedTuple):
    """Sums over the rounds for each learner (N,): `got` sums C(y, l) at its prediction l, `best` sums C(y, y).

    C is the learner's cost matrix, and y the label.
    """

    got: NDArray[np.float64]
    best: NDArray[np.float64]

    @classmethod
    def zero(cls, n_learners: int) -> Edges:
        """Return the sums over zero rounds."""
        return cls(np.zeros(n_learners), np.zeros(n_learners))

    def measured(self) -> NDArray[np.float64]:
        r"""Return :math:`\gamma_i = \text{got}_i / \text{best}_i` (N,), or 0 before the first round.

        :math:`\gamma_i` is 1 for a learner that is always right and 0 for a uniform guess. It lies in [-1, 1] if rows
        of C are gradients of a surrogate loss, as in `adaboost-olm`.
        """
        return np.divide(self.got, self.best, out=np.zeros(len(self.got)), where=self.best != 0.0)
