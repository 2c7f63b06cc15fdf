"""river's logistic regression, one per class, played epsilon-greedily."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlab.agents.peers.adapter import PeerAgent
from banditlab.distributions import library
from banditlab.numerics.draws import draw_uniform
from banditlab.numerics.limits import COUNT
from banditlab.players.agent import Floats
from banditlab.players.saved import require, within
from banditlab.problem import Problem
from banditlab.validation import nonnegative, positive, probability


class RiverLogistic(PeerAgent):
    """One river `linear_model.LogisticRegression` per class, epsilon-greedy.

    Problem: bandit multiclass. Class k's model forecasts the probability that k would be correct.

    Update rule: y_hat = argmax_k of the forecasts (the first of equals); play from P = (1 - gamma) e_y_hat + gamma/K,
    drawn as a coin and a uniform class. Only the model of the class played learns, whether it was right: a step of
    plain gradient descent on the logistic loss, with an intercept of its own, as river does by default.

    Guarantee: none; `bound` answers None.

    Cost: O(K d) a round in dictionaries, 40 us at d = 65, K = 10; K (d + 1) numbers.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1]. river has no default for its epsilon; this is Vowpal Wabbit's.
    learning_rate
        Of the weights, above 0 (`optim.SGD`; river's default). The intercept keeps river's own 0.01.
    l2
        Weight of the ridge penalty, 0 or above.

    Raises
    ------
    UsageError
        A setting out of range, or the library is not installed.

    References
    ----------
    J. Montiel et al. River: machine learning for streaming data in Python. JMLR 22, 2021. https://riverml.xyz
    """

    id = "river-logistic"
    requires = ("river",)
    explores = True
    summary = "river: one logistic regression per class, epsilon-greedy"
    reference = "Montiel et al., JMLR 2021"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        gamma: float = 0.05,
        learning_rate: float = 0.01,
        l2: float = 0.0,
    ) -> None:
        super().__init__(problem, rng)
        self.gamma = probability("gamma", gamma)
        self.learning_rate = positive("learning_rate", learning_rate)
        self.l2 = nonnegative("l2", l2)
        linear_model, optim = library("river.linear_model", self.id), library("river.optim", self.id)
        self._models = [
            linear_model.LogisticRegression(optim.SGD(self.learning_rate), l2=self.l2) for _ in range(problem.n_classes)
        ]

    def _distribution(self, x: Floats) -> Floats:
        K, features = self.problem.n_classes, dict(enumerate(x.tolist()))
        y_hat = int(np.argmax([model.predict_proba_one(features)[True] for model in self._models]))
        p = np.full(K, self.gamma / K)
        p[y_hat] += 1.0 - self.gamma
        return p

    def _choose(self, p: Floats, u: Floats) -> tuple[int, bool | None]:
        if u[0] < self.gamma:
            return int(draw_uniform(len(p), u[1])), True
        return int(np.argmax(p)), False

    def _update(self, x: Floats, action: int, probability: float, correct: bool) -> None:
        self._models[action].learn_one(dict(enumerate(x.tolist())), correct)

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return the generator, the weights (K, d), the intercepts (K,) and the models' numbers of steps (K,)."""
        d, models = self.problem.n_features, self._models
        return {
            "rng": self.rng,
            "weights": np.array([[model.weights.get(j, 0.0) for j in range(d)] for model in models]),
            "intercepts": np.array([model.intercept for model in models], dtype=np.float64),
            "steps": np.array([model.optimizer.n_iterations for model in models]),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over a state that `get_state` of a player with the same settings returned."""
        super().set_state({"rng": state["rng"]})
        K, d = self.problem.n_classes, self.problem.n_features
        own = {"weights": np.zeros((K, d)), "intercepts": np.zeros(K), "steps": np.zeros(K, np.int64)}
        require(own, {name: state[name] for name in own}, "state")
        within(state["steps"], "state.steps", *COUNT)
        vectors = library("river.utils", self.id)
        columns = (state["weights"].tolist(), state["intercepts"].tolist(), state["steps"].tolist())
        for model, weights, intercept, steps in zip(self._models, *columns, strict=True):
            model._weights = vectors.VectorDict(dict(enumerate(weights)) if steps else None)
            model.intercept, model.optimizer.n_iterations = intercept, steps
