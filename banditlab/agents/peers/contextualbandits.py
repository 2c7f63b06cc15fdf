"""contextualbandits' online policies as agents."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.peers.adapter import BatchPeerAgent, PickledBySettings, internal_seed, one_hot
from banditlab.distributions import library
from banditlab.errors import UsageError
from banditlab.players.agent import Floats
from banditlab.players.saved import require, restored, within
from banditlab.problem import Problem
from banditlab.validation import positive

SEEDS = (0, 2**64 - 1)
"""Seeds of the policy's own generator."""


class ContextualBanditsAgent(PickledBySettings, BatchPeerAgent):
    """A policy of `contextualbandits.online` with one model per class that predicts the bit; `partial_fit` updates it.

    The policy decides one context at a time and is updated with `batch` rounds at a time. It draws from a generator of
    its own, which is seeded from the agent's generator. Until the first batch is full it has no model and plays a
    uniform class. It cannot be pickled if it has scikit-learn models.

    A subclass builds the policy, and defines which parameters of a class's model an update changes.
    """

    requires = ("contextualbandits",)
    expected_kind = "conditional"

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, batch: int) -> None:
        super().__init__(problem, rng, batch=batch)
        self._seed = internal_seed(self.rng)
        self._policy = self._made()

    def _made(self) -> Any:
        return self._make(library("contextualbandits.online", self.id), np.random.default_rng(self._seed))

    @abstractmethod
    def _make(self, online: Any, rng: np.random.Generator) -> Any:
        """Return a policy of the module `contextualbandits.online` that draws from `rng`; `njobs` is 1."""

    @abstractmethod
    def _model_of(self, learner: Any) -> dict[str, Any] | None:
        """Return the arrays and numbers of a class's model, or None before its first update."""

    @abstractmethod
    def _set_model(self, learner: Any, model: dict[str, Any]) -> None:
        """Restore a class's model from the result of `_model_of`."""

    def _distribution(self, x: Floats) -> Floats:
        return one_hot(int(self._policy.predict(x[None])[0]), self.problem.n_classes)

    def _pass_batch(self, contexts: Floats, actions: NDArray[np.int64], rewards: Floats) -> None:
        self._policy.partial_fit(contexts, actions, rewards)

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return the generators, the model and counts of every class, and the pending rounds."""
        policy = self._policy
        state = {
            "rng": self.rng,
            "seed": self._seed,
            "policy_rng": policy.random_state,
            "explore_prob": getattr(policy, "explore_prob", 0.0),
            "waiting": self._get_waiting(),
        }
        if not policy.is_fitted:
            return state
        oracles = policy._oracles
        models = {str(k): self._model_of(learner) for k, learner in enumerate(oracles.algos)}
        fitted = {
            "models": {k: model for k, model in models.items() if model is not None},
            "generators": list(oracles.rng_arm),
            "counts": oracles.beta_counters,
        }
        return {**state, "fitted": fitted}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state` of an agent with the same settings."""
        mine = {"rng": self.rng, "seed": self._seed, "policy_rng": self._policy.random_state, "explore_prob": 0.0}
        within(state["explore_prob"], "state.explore_prob", 0.0, 1.0)
        within(state["seed"], "state.seed", *SEEDS)
        taken = restored(mine, {name: state[name] for name in mine})
        self.rng, self._seed = taken["rng"], taken["seed"]
        self._policy = self._made()
        self._set_waiting(state["waiting"])
        if "fitted" in state:
            self._set_fitted(state["fitted"])
        if hasattr(self._policy, "explore_prob"):
            self._policy.explore_prob = state["explore_prob"]
        _continue(self._policy.random_state, state["policy_rng"])

    def _set_fitted(self, fitted: dict[str, Any]) -> None:
        """Restore the saved models: an update with one round makes the policy create models, which are overwritten."""
        d, first = self.problem.n_features, min(map(int, fitted["models"]))
        if not set(fitted["models"]) <= set(map(str, range(self.problem.n_classes))):
            raise UsageError(f"the keys of state.fitted.models must be classes in 0 ... {self.problem.n_classes - 1}")
        self._policy.partial_fit(np.zeros((1, d)), np.array([first]), np.zeros(1))
        oracles = self._policy._oracles
        one = self._model_of(oracles.algos[first])
        mine = {"generators": list(oracles.rng_arm), "counts": oracles.beta_counters}
        require(mine, {name: fitted[name] for name in mine}, "state.fitted")
        for k, model in fitted["models"].items():
            require(one, model, f"state.fitted.models.{k}")
            self._set_model(oracles.algos[int(k)], copy.deepcopy(model))
        for rng, saved in zip(oracles.rng_arm, fitted["generators"], strict=True):
            _continue(rng, saved)
        oracles.beta_counters = fitted["counts"].copy()


class LinearAgent(ContextualBanditsAgent):
    """A policy with one `contextualbandits.linreg.LinearRegression` per class."""

    policy: ClassVar[str]
    """The name of the policy in `contextualbandits.online`."""

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        regularization: float,
        batch: int,
        **settings: float | str,
    ) -> None:
        self.regularization = positive("regularization", regularization)
        self._settings = {"lambda_": self.regularization, **settings}
        super().__init__(problem, rng, batch=batch)

    def _make(self, online: Any, rng: np.random.Generator) -> Any:
        make = getattr(online, self.policy)
        return make(self.problem.n_classes, **self._settings, random_state=rng, njobs=1)

    def _model_of(self, learner: Any) -> dict[str, Any] | None:
        model = learner.model
        if not model.is_fitted_:
            return None
        return {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}

    def _set_model(self, learner: Any, model: dict[str, Any]) -> None:
        vars(learner.model).update(model, is_fitted_=True, _n=self.problem.n_features)
        learner.is_fitted = True


class ContextualBanditsLinUCB(LinearAgent):
    r"""contextualbandits' `online.LinUCB`: a ridge regression per class predicts the bit, with upper confidence bounds.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: contextualbandits' own, with its default settings. An intercept is added, matrices are in single
    precision, and the Sherman-Morrison formula updates inverses. Class k has
    :math:`A_k = \text{regularization}\, I + \sum x x'` and :math:`\beta_k = A_k^{-1} \sum x\,\text{reward}` over the
    rounds in which it was played. The agent plays the class with the highest
    :math:`x'\beta_k + \alpha \sqrt{x'A_k^{-1} x}`, the first one on ties. Among classes that were never played, whose
    bound is :math:`\alpha \|x\| / \sqrt{\text{regularization}}`, it chooses at random. The reported probabilities are
    one-hot at the chosen class.

    Guarantee: none; `bound` returns None.

    Cost: :math:`O(K d^2)` per round; 0.5 ms at :math:`d = 65`, :math:`K = 10` with `batch = 1`, mostly Python's loop
    over the K classes. Memory: :math:`K d^2` numbers in single precision.

    Parameters
    ----------
    alpha
        Amount of exploration, above 0 (the library's :math:`\alpha`, whose default there is 1).
    regularization
        The ridge, above 0 (the library's `lambda_`, whose default there is 1).
    batch
        Rounds passed to the library at a time, at least 1; there is no update until a batch is full.

    Raises
    ------
    UsageError
        A setting is outside its range, or the library is not installed.

    References
    ----------
    L. Li, W. Chu, J. Langford, R. Schapire. A contextual-bandit approach to personalized news article recommendation.
    WWW 2010. D. Cortes. Adapting multi-armed bandits policies to contextual bandits scenarios. arXiv:1811.04383.
    """

    id = "contextualbandits-linucb"
    policy = "LinUCB"
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
        super().__init__(problem, rng, regularization=regularization, batch=batch, alpha=self.alpha)


class ContextualBanditsLinTS(LinearAgent):
    r"""contextualbandits' `online.LinTS`: Thompson sampling with one ridge regression per class that predicts the bit.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: contextualbandits' own with `sample_from = "ci"`, `method = "sm"` and `beta_prior = "auto"`. An
    intercept is added, matrices are in double precision, and the Sherman-Morrison formula updates inverses. Class k has
    :math:`A_k = \text{regularization}\, I + \sum x x'` and :math:`\beta_k = A_k^{-1} \sum x\,\text{reward}` over the
    rounds in which it was played. The agent plays the class with the highest score; scores are drawn from
    :math:`N(x'\beta_k, \text{deviation}^2 x'A_k^{-1} x)`. Until a class has been right at least three times and
    wrong at least three times, its score is a draw from a beta distribution of its counts. (Without a prior the library
    gives the score 0 to a class that was never played.) The reported probabilities are one-hot at the chosen class.

    The library's default, `sample_from = "coef"`, is not used. In contextualbandits 0.3.30 it draws coefficients with
    the covariance :math:`A_k` itself instead of its inverse, so more updates lead to more exploration. On a synthetic
    stream of three classes the agent was right in 39 % of the rounds; with "ci", in 97 %.

    Guarantee: none; `bound` returns None.

    Cost: :math:`O(K d^2)` per round; 0.4 ms at :math:`d = 65`, :math:`K = 10` with `batch = 1`, mostly Python's loop
    over the K classes. Memory: :math:`K d^2` numbers.

    Parameters
    ----------
    deviation
        Factor on a score's standard deviation, above 0 (the library's `v_sq`, whose default there is 1).
    regularization
        The ridge, above 0 (the library's `lambda_`, whose default there is 1).
    batch
        Rounds passed to the library at a time, at least 1; there is no update until a batch is full.

    Raises
    ------
    UsageError
        A setting is outside its range, or the library is not installed.

    References
    ----------
    S. Agrawal, N. Goyal. Thompson sampling for contextual bandits with linear payoffs. ICML 2013.
    D. Cortes. Adapting multi-armed bandits policies to contextual bandits scenarios. arXiv:1811.04383.
    """

    id = "contextualbandits-lints"
    policy = "LinTS"
    summary = "contextualbandits: LinTS, Thompson sampling with one ridge regression per class"
    reference = "Agrawal and Goyal, ICML 2013; contextualbandits: Cortes, arXiv:1811.04383"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        deviation: float = 1.0,
        regularization: float = 1.0,
        batch: int = 1,
    ) -> None:
        self.deviation = positive("deviation", deviation)
        form = {"sample_from": "ci", "method": "sm", "beta_prior": "auto"}
        super().__init__(problem, rng, regularization=regularization, batch=batch, v_sq=self.deviation, **form)


class ContextualBanditsSGD(ContextualBanditsAgent):
    r"""contextualbandits' `online.EpsilonGreedy` with one scikit-learn `SGDClassifier` per class.

    Problem: bandit multiclass; class k's model forecasts the probability that k would be correct.

    Update rule: contextualbandits' own (`batch_train=True`). The agent plays the class with the highest forecast, or
    with probability :math:`\gamma` a uniform class; :math:`\gamma` is multiplied by `decay` after every decision. Until
    a class has been right at least three times and wrong at least three times, its forecast is a draw from a beta
    distribution of its counts. Only the model of the played class is updated, by scikit-learn's stochastic gradient
    steps on the logistic loss with an intercept, with the default step sizes and ridge penalty. The library draws the
    action itself, so the reported probabilities are one-hot at the chosen class.

    Guarantee: none; `bound` returns None.

    Cost: :math:`O(K d)` per round; 2 ms at :math:`d = 65`, :math:`K = 10` with `batch = 1`, nearly all of it for
    scikit-learn's input checks in K predictions and one `partial_fit`. Memory: :math:`K (d + 1)` numbers.

    Parameters
    ----------
    gamma
        Exploration rate at the start, strictly between 0 and 1 (the library's `explore_prob`, whose default there
        is 0.2).
    decay
        Factor on the exploration rate after every decision, above 0 and at most 1 (the library's default 0.9999).
    batch
        Rounds passed to the library at a time, at least 1; there is no update until a batch is full.

    Raises
    ------
    UsageError
        A setting is outside its range, or the library is not installed.

    References
    ----------
    D. Cortes. Adapting multi-armed bandits policies to contextual bandits scenarios. arXiv:1811.04383.
    """

    id = "contextualbandits-sgd"
    summary = "contextualbandits: epsilon-greedy over one SGDClassifier per class"
    reference = "Cortes, arXiv:1811.04383"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        gamma: float = 0.2,
        decay: float = 0.9999,
        batch: int = 1,
    ) -> None:
        self.gamma = positive("gamma", gamma)
        if self.gamma >= 1.0:
            raise UsageError(f"gamma must be below 1, got {gamma!r}")
        self.decay = positive("decay", decay)
        if self.decay > 1.0:
            raise UsageError(f"decay must be at most 1, got {decay!r}")
        super().__init__(problem, rng, batch=batch)

    def _make(self, online: Any, rng: np.random.Generator) -> Any:
        linear_model = library("sklearn.linear_model", self.id)
        base = linear_model.SGDClassifier(loss="log_loss", random_state=self._seed)
        decay = None if self.decay == 1.0 else self.decay
        settings = {"explore_prob": self.gamma, "decay": decay, "batch_train": True}
        return online.EpsilonGreedy(base, self.problem.n_classes, **settings, random_state=rng, njobs=1)

    def _model_of(self, learner: Any) -> dict[str, Any] | None:
        if not hasattr(learner, "t_"):
            return None
        return {"coef": learner.coef_, "intercept": learner.intercept_, "steps": learner.t_}

    def _set_model(self, learner: Any, model: dict[str, Any]) -> None:
        learner.partial_fit(np.zeros((1, self.problem.n_features)), np.zeros(1), classes=[0, 1])
        np.copyto(learner.coef_, model["coef"])
        np.copyto(learner.intercept_, model["intercept"])
        learner.t_ = model["steps"]


def _continue(rng: np.random.Generator, saved: np.random.Generator) -> None:
    """Set a shared generator to the state of `saved`."""
    rng.bit_generator.state = saved.bit_generator.state
