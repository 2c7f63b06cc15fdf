"""coba's LinTS as an agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlab.agents.peers.adapter import internal_seed
from banditlab.agents.peers.coba_adapter import CobaAgent
from banditlab.problem import Problem
from banditlab.validation import positive


class CobaLinTS(CobaAgent):
    """coba's `LinTSLearner`: Thompson sampling, a joint ridge regression of the bit on context times class.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: coba's own. With z = x (x) e_k, B = I + sum z z' over the rounds played and mu = B^{-1} sum z reward, the
    class with the highest z'b is played, b drawn from N(mu, variance B^{-1}), a uniform one of those equal to five
    digits. Probabilities are given that draw.

    coba 8.1.0 draws from a generator of seed 1 whatever its own seed is, so that repetitions would share their draws;
    it is given one that is seeded from ours.

    Guarantee: none is claimed here; `bound` answers None.

    Cost: O((K d)^3) a round, a Cholesky factor of the whole covariance: 10 ms at d = 65, K = 10. (K d)^2 numbers, and
    several times as much for temporaries.

    Parameters
    ----------
    variance
        What the covariance is multiplied with, above 0 (v in coba, its default 1).

    Raises
    ------
    UsageError
        A setting out of range, or the library is not installed.

    References
    ----------
    S. Agrawal, N. Goyal. Thompson sampling for contextual bandits with linear payoffs. ICML 2013.
    M. Rucker et al. coba: a contextual bandit research package. https://github.com/VowpalWabbit/coba
    """

    id = "coba-lints"
    expected_kind = "conditional"
    summary = "coba: LinTSLearner, Thompson sampling with one joint ridge regression"
    reference = "Agrawal and Goyal, ICML 2013; coba: Rucker et al."
    arrays = ("_mu_hat", "_B_inv", "_nrng")

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, variance: float = 1.0) -> None:
        self.variance = positive("variance", variance)
        super().__init__(problem, rng)
        self._learner._nrng = np.random.default_rng(internal_seed(self.rng))

    def _make(self, learners: Any) -> Any:
        return learners.LinTSLearner(v=self.variance, features=["ax"])
