"""The empirical edge of each weak learner (Jung, Goetz and Tewari, Section 4.2), counted as the rounds go by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Edges(NamedTuple):
    """Sums over the rounds, by learner (N,): `got`, of C(y, l) at its prediction l; `best`, of C(y, y)."""

    got: NDArray[np.float64]
    best: NDArray[np.float64]

    @classmethod
    def zero(cls, n_learners: int) -> Edges:
        """Return sums over no rounds."""
        return cls(np.zeros(n_learners), np.zeros(n_learners))

    def measured(self) -> NDArray[np.float64]:
        r"""Return :math:`\gamma_i = \text{got}_i / \text{best}_i` (N,); 0 before anything was counted.

        1 for a learner that is always right, 0 for one that guesses, in [-1, 1] where rows of C are gradients.
        """
        return np.divide(self.got, self.best, out=np.zeros(len(self.got)), where=self.best != 0.0)
