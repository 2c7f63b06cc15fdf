"""contextualbandits' epsilon-greedy policy over scikit-learn's SGDClassifier as an agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlab.agents.peers.contextualbandits_adapter import ContextualBanditsAgent
from banditlab.distributions import library
from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.validation import positive


class ContextualBanditsSGD(ContextualBanditsAgent):
    """contextualbandits' `online.EpsilonGreedy` around one scikit-learn `SGDClassifier` per class.

    Problem: bandit multiclass; class k's model forecasts the probability that k would be correct.

    Update rule: contextualbandits' own, as it comes (`batch_train=True`). The class with the highest forecast is played,
    with probability gamma a uniform one instead; gamma is multiplied by `decay` after every decision. Until a class has
    been right and wrong more than twice each, its forecast is a draw from a beta law of its counts. Only the model of the
    class played learns: scikit-learn's stochastic gradient steps on the logistic loss, at its default step sizes and
    ridge, with an intercept. The library draws by itself: probabilities are one-hot given its draws.

    Guarantee: none is claimed here; `bound` answers None.

    Cost: O(K d) a round; 2 ms at d = 65, K = 10 with batch = 1, nearly all of it scikit-learn's checks of K predictions and
    a step. K (d + 1) numbers.

    Parameters
    ----------
    gamma
        Exploration rate at the start, strictly between 0 and 1 (explore_prob in the library, its default 0.2).
    decay
        Factor on the exploration rate after every decision, above 0 and at most 1 (the library's default 0.9999).
    batch
        Rounds handed over at a time, at least 1; until a batch is full nothing is learnt from it.

    Raises
    ------
    UsageError
        A setting out of range, or the library is not installed.

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
