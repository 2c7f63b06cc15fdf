"""contextualbandits' online policies as agents: what the three adapters share."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

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
    """A policy of `contextualbandits.online` with a model of the bit per class, taught by its `partial_fit`.

    The policy is asked for one context at a time and told of `batch` rounds at a time. It draws from a generator of its
    own, seeded from ours. Until the first batch is full it has nothing to predict with and plays a uniform class. It cannot
    be pickled where it holds scikit-learn's models.

    A subclass makes the policy, and says which numbers of a class's model change.
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
        """Return the policy of the module `contextualbandits.online`, which draws from `rng`; `njobs` is 1."""

    @abstractmethod
    def _model_of(self, learner: Any) -> dict[str, Any] | None:
        """Return the arrays and numbers of a class's model, None where it has learnt nothing yet."""

    @abstractmethod
    def _set_model(self, learner: Any, model: dict[str, Any]) -> None:
        """Give a class's model what `_model_of` returned."""

    def _distribution(self, x: Floats) -> Floats:
        return one_hot(int(self._policy.predict(x[None])[0]), self.problem.n_classes)

    def _hand_over(self, contexts: Floats, actions: NDArray[np.int64], rewards: Floats) -> None:
        self._policy.partial_fit(contexts, actions, rewards)

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return the generators, every class's model and counts, and the rounds that wait."""
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
        """Take over a state that `get_state` of a player with the same settings returned."""
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
        """Give the policy its classes' models: one round makes them, and what it taught is written over."""
        d, first = self.problem.n_features, min(map(int, fitted["models"]))
        if not set(fitted["models"]) <= set(map(str, range(self.problem.n_classes))):
            raise UsageError(f"state.fitted.models must be of the classes 0 ... {self.problem.n_classes - 1}")
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
    """A policy whose classes each hold a `contextualbandits.linreg.LinearRegression`."""

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, regularization: float, batch: int) -> None:
        self.regularization = positive("regularization", regularization)
        super().__init__(problem, rng, batch=batch)

    def _model_of(self, learner: Any) -> dict[str, Any] | None:
        model = learner.model
        if not model.is_fitted_:
            return None
        return {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}

    def _set_model(self, learner: Any, model: dict[str, Any]) -> None:
        vars(learner.model).update(model, is_fitted_=True, _n=self.problem.n_features)
        learner.is_fitted = True


def _continue(rng: np.random.Generator, saved: np.random.Generator) -> None:
    """Let a generator that others hold too go on where `saved` stands."""
    rng.bit_generator.state = saved.bit_generator.state
