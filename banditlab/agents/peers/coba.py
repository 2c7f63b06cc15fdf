"""coba's linear learners as agents."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from banditlab.agents.peers.adapter import PeerAgent, PickledBySettings, internal_seed
from banditlab.distributions import library
from banditlab.players.agent import Floats
from banditlab.players.saved import restored
from banditlab.problem import Problem
from banditlab.validation import positive


class CobaAgent(PickledBySettings, PeerAgent):
    """An agent with a learner of `coba.learners`: one ridge regression of the bit on the products of context and class,
    with K d weights.

    coba represents class k by the one-hot vector :math:`e_k`. The features are the products of the entries of x and
    :math:`e_k` (coba's `features = ["ax"]`), so the forecast is :math:`W x`. coba returns its probabilities and
    banditlab draws the action, because the state of coba's generator can be neither read nor pickled.
    """

    requires = ("coba",)
    learner: ClassVar[str]
    """The name of the learner in `coba.learners`."""
    arrays: ClassVar[tuple[str, ...]]
    """The learner's attributes that updates change."""

    def __init__(self, problem: Problem, rng: np.random.Generator | None, **settings: float) -> None:
        super().__init__(problem, rng)
        self._settings = settings
        self._begin()

    def _begin(self) -> None:
        self._classes = [tuple(row) for row in np.eye(self.problem.n_classes).tolist()]
        make = getattr(library("coba.learners", self.id), self.learner)
        self._learner = make(**self._settings, features=["ax"])
        # coba makes its arrays when it first predicts
        self._learner._initialize([0.0] * self.problem.n_features, self._classes[0])

    def _distribution(self, x: Floats) -> Floats:
        return np.array(self._learner._pmf(x.tolist(), self._classes))

    def _update(self, x: Floats, action: int, probability: float, correct: bool) -> None:
        self._learner.learn(x.tolist(), self._classes[action], float(correct), probability)

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return the generator and the learner's arrays."""
        return {"rng": self.rng, "arrays": {name: getattr(self._learner, name) for name in self.arrays}}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state` of an agent with the same settings."""
        self._begin()
        taken = restored(self.get_state(), state)
        self.rng = taken["rng"]
        vars(self._learner).update({name: taken["arrays"][name] for name in self.arrays})


class CobaLinUCB(CobaAgent):
    r"""coba's `LinUCBLearner`: a joint ridge regression of the bit on context-class products, with confidence bounds.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: coba's own. Let :math:`z = x \otimes e_k`, :math:`A = I + \sum z z'` over the rounds played, and
    :math:`\theta = A^{-1} \sum z\,\text{reward}`. The agent plays the class with the highest
    :math:`z'\theta + \alpha \sqrt{z'A^{-1} z}`; ties are broken uniformly. Because the z of different classes are
    orthogonal, this is one model per class, but coba stores the whole :math:`K d \times K d` inverse.

    Guarantee: none; `bound` returns None.

    Cost: :math:`O(K (K d)^2)` per round: 2 ms at :math:`d = 65`, :math:`K = 10`. Memory: :math:`(K d)^2` numbers, and
    as many for each of two temporary arrays.

    Parameters
    ----------
    alpha
        Amount of exploration, above 0 (`alpha` in coba, whose default is also 1).

    Raises
    ------
    UsageError
        A setting is outside its range, or the library is not installed.

    References
    ----------
    W. Chu, L. Li, L. Reyzin, R. Schapire. Contextual bandits with linear payoff functions. AISTATS 2011.
    M. Rucker et al. coba: a contextual bandit research package. https://github.com/VowpalWabbit/coba
    """

    id = "coba-linucb"
    summary = "coba: LinUCBLearner, one joint ridge regression on context times class"
    reference = "Chu, Li, Reyzin and Schapire, AISTATS 2011; coba: Rucker et al."
    learner = "LinUCBLearner"
    arrays = ("_theta", "_A_inv")

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, alpha: float = 1.0) -> None:
        self.alpha = positive("alpha", alpha)
        super().__init__(problem, rng, alpha=self.alpha)


class CobaLinTS(CobaAgent):
    r"""coba's `LinTSLearner`: Thompson sampling with a joint ridge regression of the bit on context-class products.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: coba's own. Let :math:`z = x \otimes e_k`, :math:`B = I + \sum z z'` over the rounds played, and
    :math:`\mu = B^{-1} \sum z\,\text{reward}`. The agent draws b from :math:`N(\mu, \text{variance}\, B^{-1})` and
    plays the class with the highest :math:`z'b`. Values that agree to five digits count as tied, and ties are broken
    uniformly. The action probabilities are conditional on b.

    coba 8.1.0 draws from a generator with seed 1 whatever seed is passed to it, so all repetitions would use the same
    draws. This class replaces that generator by one that is seeded from the agent's generator.

    Guarantee: none; `bound` returns None.

    Cost: :math:`O((K d)^3)` per round, for a Cholesky factor of the whole covariance: 10 ms at :math:`d = 65`,
    :math:`K = 10`. Memory: :math:`(K d)^2` numbers, and several times as many for temporary arrays.

    Parameters
    ----------
    variance
        Factor on the covariance, above 0 (`v` in coba, whose default is also 1).

    Raises
    ------
    UsageError
        A setting is outside its range, or the library is not installed.

    References
    ----------
    S. Agrawal, N. Goyal. Thompson sampling for contextual bandits with linear payoffs. ICML 2013.
    M. Rucker et al. coba: a contextual bandit research package. https://github.com/VowpalWabbit/coba
    """

    id = "coba-lints"
    expected_kind = "conditional"
    summary = "coba: LinTSLearner, Thompson sampling with one joint ridge regression"
    reference = "Agrawal and Goyal, ICML 2013; coba: Rucker et al."
    learner = "LinTSLearner"
    arrays = ("_mu_hat", "_B_inv", "_nrng")

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, variance: float = 1.0) -> None:
        self.variance = positive("variance", variance)
        super().__init__(problem, rng, v=self.variance)
        self._learner._nrng = np.random.default_rng(internal_seed(self.rng))
