"""coba's LinUCB as an agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlab.agents.peers.coba_adapter import CobaAgent
from banditlab.problem import Problem
from banditlab.validation import positive


class CobaLinUCB(CobaAgent):
    """coba's `LinUCBLearner`: a joint ridge regression of the bit on context times class, the highest upper bound wins.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: coba's own. With z = x (x) e_k, A = I + sum z z' over the rounds played and theta = A^{-1} sum z reward, the
    class with the highest z'theta + alpha sqrt(z'A^{-1} z) is played, a uniform one of equals. Since different classes'
    z are orthogonal this is one model per class, but coba keeps the whole K d x K d inverse.

    Guarantee: none is claimed here; `bound` answers None.

    Cost: O(K (K d)^2) a round: 2 ms at d = 65, K = 10. (K d)^2 numbers, and as much again for each of two temporaries.

    Parameters
    ----------
    alpha
        How much it explores, above 0 (alpha in coba, its default 1).

    Raises
    ------
    UsageError
        A setting out of range, or the library is not installed.

    References
    ----------
    W. Chu, L. Li, L. Reyzin, R. Schapire. Contextual bandits with linear payoff functions. AISTATS 2011.
    M. Rucker et al. coba: a contextual bandit research package. https://github.com/VowpalWabbit/coba
    """

    id = "coba-linucb"
    summary = "coba: LinUCBLearner, one joint ridge regression on context times class"
    reference = "Chu, Li, Reyzin and Schapire, AISTATS 2011; coba: Rucker et al."
    arrays = ("_theta", "_A_inv")

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, alpha: float = 1.0) -> None:
        self.alpha = positive("alpha", alpha)
        super().__init__(problem, rng)

    def _make(self, learners: Any) -> Any:
        return learners.LinUCBLearner(alpha=self.alpha, features=["ax"])
