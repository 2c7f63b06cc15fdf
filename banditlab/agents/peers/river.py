"""river's bandits as agents."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlab.agents.peers.adapter import PeerAgent, internal_seed, one_hot
from banditlab.distributions import library
from banditlab.errors import UsageError
from banditlab.numerics.draws import draw_uniform
from banditlab.numerics.limits import COUNT
from banditlab.players.agent import Floats
from banditlab.players.saved import require, within
from banditlab.problem import Problem
from banditlab.validation import nonnegative, positive, probability

ARRAYS = ("_ss_arr", "_ss_inv_arr", "_eta_arr", "_m_arr")


class RiverLinUCB(PeerAgent):
    r"""river's `bandit.LinUCBDisjoint`: upper confidence bounds from a Bayesian linear regression of the bit per class.

    Problem: bandit multiclass; the reward is the bit.

    Update rule: river's own. The bound of class k is :math:`\mu_k + \sigma_k`, the mean plus the standard deviation of
    the predictive normal distribution. Here :math:`\sigma_k^2 = 1/\beta + x'S_k x` with
    :math:`S_k = (\alpha I + \beta \sum x x')^{-1}` over the rounds in which k was played. river's generator, which is
    seeded from the agent's generator, breaks ties, so probabilities are one-hot given that draw.

    river 0.26.1 initialises both the precision matrix and its inverse to :math:`I/\alpha`, which is inconsistent unless
    :math:`\alpha = 1`. Decisions use the inverse only; :math:`S_k` above is this inverse. The adapter does not offer
    the argument `burn_in`, because river assigns it to another parameter by mistake.

    Guarantee: none; `bound` returns None.

    Cost: :math:`O(K d^2)` per round, 450 µs at :math:`d = 65`, :math:`K = 10`. Memory: :math:`2 K d^2` numbers.

    Parameters
    ----------
    alpha
        Parameter of the prior, above 0: the covariance of a class's weights starts as :math:`I/\alpha`.
    beta
        Precision of the noise, above 0; a larger value explores less.

    Raises
    ------
    UsageError
        A setting is outside its range, or the library is not installed.

    References
    ----------
    L. Li, W. Chu, J. Langford, R. Schapire. A contextual-bandit approach to personalized news article recommendation.
    WWW 2010. J. Montiel et al. River: machine learning for streaming data in Python. JMLR 22, 2021.
    """

    id = "river-linucb"
    requires = ("river",)
    expected_kind = "conditional"
    summary = "river: LinUCBDisjoint, one Bayesian linear regression per class"
    reference = "Li, Chu, Langford and Schapire, WWW 2010; river: Montiel et al., JMLR 2021"

    def __init__(
        self, problem: Problem, rng: np.random.Generator | None, *, alpha: float = 1.0, beta: float = 1.0
    ) -> None:
        super().__init__(problem, rng)
        self.alpha = positive("alpha", alpha)
        self.beta = positive("beta", beta)
        bandit = library("river.bandit", self.id)
        self._policy = bandit.LinUCBDisjoint(alpha=self.alpha, beta=self.beta, seed=internal_seed(self.rng))
        self._classes = list(range(problem.n_classes))

    def _distribution(self, x: Floats) -> Floats:
        k = self._policy.pull(self._classes, context=dict(enumerate(x.tolist())))
        return one_hot(k, len(self._classes))

    def _update(self, x: Floats, action: int, probability: float, correct: bool) -> None:
        self._policy.update(action, dict(enumerate(x.tolist())), float(correct))

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return the generators and the arrays of every class that has been played, without river's statistics.

        The statistics are the mean reward and the count of each class, which the policy does not use.
        """
        version, words, gauss = self._policy._rng.getstate()
        models = {str(k): model for k, model in self._policy._bayes_lin_regs.items() if model._cap}
        return {
            "rng": self.rng,
            "ties": [version, np.array(words, dtype=np.uint64), gauss],
            "arrays": {k: {name: getattr(model, name).copy("K") for name in ARRAYS} for k, model in models.items()},
            "dirty": {k: model._m_dirty for k, model in models.items()},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state` of an agent with the same settings."""
        super().set_state({"rng": state["rng"]})
        version, words, gauss = state["ties"]
        require([3, np.zeros(625, np.uint64)], [version, words], "state.ties")
        require(gauss if gauss is None else 0.0, gauss, "state.ties.2")
        self._policy._rng.setstate((version, tuple(words.tolist()), gauss))
        self._policy._bayes_lin_regs.clear()
        for k, arrays in state["arrays"].items():
            if k not in map(str, self._classes):
                raise UsageError(f"state.arrays has a class {k!r}: classes must be 0 ... {self.problem.n_classes - 1}")
            model = self._policy._bayes_lin_regs[int(k)]
            model._ensure_features(range(self.problem.n_features))
            own = {name: getattr(model, name) for name in ARRAYS}
            if np.size(arrays["_m_arr"]):  # river creates it at the first prediction
                own["_m_arr"] = np.zeros_like(model._eta_arr)
            require(own, {name: arrays[name] for name in ARRAYS}, f"state.arrays.{k}")
            for name in ARRAYS:
                setattr(model, name, np.array(arrays[name], order="F" if name == "_ss_inv_arr" else "C"))
            model._m_dirty = bool(state["dirty"][k])


class RiverLogistic(PeerAgent):
    r"""Epsilon-greedy with one river `linear_model.LogisticRegression` per class.

    Problem: bandit multiclass. Class k's model forecasts the probability that k would be correct.

    Update rule: :math:`\hat{y}` is the class with the largest forecast (the first one on ties). The agent draws its
    action from :math:`P = (1 - \gamma) e_{\hat{y}} + \gamma/K`: a uniform class with probability :math:`\gamma`,
    otherwise :math:`\hat{y}`. Only the model of the played class is updated: one step of gradient descent on the
    logistic loss, with an intercept per class (river's default).

    Guarantee: none; `bound` returns None.

    Cost: :math:`O(K d)` dictionary operations per round, 40 µs at :math:`d = 65`, :math:`K = 10`. Memory:
    :math:`K (d + 1)` numbers.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1]. river has no default for its :math:`\epsilon`; this default is Vowpal Wabbit's.
    learning_rate
        Learning rate of the weights, above 0 (`optim.SGD`; river's default). The rate of the intercept is river's 0.01.
    l2
        Weight of the ridge penalty, 0 or above.

    Raises
    ------
    UsageError
        A setting is outside its range, or the library is not installed.

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
        """Restore a state returned by `get_state` of an agent with the same settings."""
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
