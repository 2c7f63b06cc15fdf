"""contextualbandits' LinUCB as an agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlab.agents.peers.contextualbandits_adapter import LinearAgent
from banditlab.problem import Problem
from banditlab.validation import positive


class ContextualBanditsLinUCB(LinearAgent):
    """contextualbandits' `online.LinUCB`: a ridge regression of the bit per class, the highest upper bound wins.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: contextualbandits' own, as it comes: an intercept is added, matrices are in single precision, inverses
    are kept by the Sherman-Morrison formula. Class k holds A_k = regularization I + sum x x' and beta_k = A_k^{-1} sum x
    reward over the rounds it was played in; the class with the highest x'beta_k + alpha sqrt(x'A_k^{-1} x) is played, the
    first of equals; of classes not played yet, whose bound is alpha ||x|| / sqrt(regularization), one at random.
    Probabilities are one-hot given that draw.

    Guarantee: none is claimed here; `bound` answers None.

    Cost: O(K d^2) a round; 0.5 ms at d = 65, K = 10 with batch = 1, mostly Python's way through the K classes; K d^2
    numbers in single precision.

    Parameters
    ----------
    alpha
        How much it explores, above 0 (alpha in the library, its default 1).
    regularization
        The ridge, above 0 (lambda_ in the library, its default 1).
    batch
        Rounds handed over at a time, at least 1; until a batch is full nothing is learnt from it.

    Raises
    ------
    UsageError
        A setting out of range, or the library is not installed.

    References
    ----------
    L. Li, W. Chu, J. Langford, R. Schapire. A contextual-bandit approach to personalized news article recommendation.
    WWW 2010. D. Cortes. Adapting multi-armed bandits policies to contextual bandits scenarios. arXiv:1811.04383.
    """

    id = "contextualbandits-linucb"
    summary = "contextualbandits: LinUCB, one ridge regression per class"
    reference = "Li, Chu, Langford and Schapire, WWW 2010; contextualbandits: Cortes, arXiv:1811.04383"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        alpha: float = 1.0,
        regularization: float = 1.0,
        batch: int = 1,
    ) -> None:
        self.alpha = positive("alpha", alpha)
        super().__init__(problem, rng, regularization=regularization, batch=batch)

    def _make(self, online: Any, rng: np.random.Generator) -> Any:
        K = self.problem.n_classes
        return online.LinUCB(K, alpha=self.alpha, lambda_=self.regularization, random_state=rng, njobs=1)
