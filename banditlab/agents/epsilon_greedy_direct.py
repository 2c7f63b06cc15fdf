"""Epsilon-greedy with one logistic regression per class that predicts whether the class is right (direct method)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.epsilon_greedy import FLOOR, adagrad
from banditlab.numerics.argmax import argmax
from banditlab.numerics.draws import greedy_or_uniform
from banditlab.numerics.jit import inline
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.vectors import matrix, scores
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import number, probability, resolve

AUTO_RATE = 0.5
"""`learning_rate = "auto"` in units of :math:`1/R`."""


class State(NamedTuple):
    r"""The state: V, which is W divided by the learning rate, and G, the sums of squared gradients (K, d), padded.

    `rounds` (1,) is the number of updates. `settings` (2,) contains :math:`\gamma`, negative for "anytime", and the
    learning rate. `z` (K,) is a work array.
    """

    V: NDArray[np.float64]
    G: NDArray[np.float64]
    rounds: NDArray[np.int64]
    settings: NDArray[np.float64]
    z: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        return {"rounds": COUNT}


@inline
def act_kernel(state, x, u, p, payload):
    gamma, z, K = state.settings[0], state.z, p.shape[0]
    if gamma < 0.0:
        gamma = min(1.0, math.sqrt(K / (state.rounds[0] + 1.0)))  # "anytime": min(1, sqrt(K/t))
    scores(state.V, x, z)
    best = argmax(z, K)
    action, explored = greedy_or_uniform(best, gamma, u, p)  # P = (1 - gamma) e_best + gamma/K
    payload[0] = state.settings[1] * z[action]  # w_k'x of the class played
    return action, explored


@inline
def learn_kernel(state, x, action, p, payload, correct):
    y, z = 1.0 if correct else -1.0, payload[0]
    if math.isnan(z):  # the action was forced, not chosen by act
        scores(state.V, x, state.z)
        z = state.settings[1] * state.z[action]
    r = -y / (1.0 + math.exp(y * z))  # g = r x, r = -y sigmoid(-y w_k'x); an overflow gives 0
    adagrad(state.V, state.G, action, r, x)
    state.rounds[0] += 1


class EpsilonGreedyDirect(KernelAgent):
    r"""Play the class most likely to be right, or sometimes a class at random; update the chosen class's model.

    Problem: bandit multiclass. The model of class k predicts that k is right with probability
    :math:`\mathrm{sigmoid}(w_k'x)`.

    Update rule: :math:`\text{best} = \arg\max_k w_k'x` (ties go to the first class). The agent draws its action from
    :math:`P = (1 - \gamma) e_{\text{best}} + \gamma/K`: a uniform class with probability :math:`\gamma`, otherwise the
    best. Only the model of the played class k is updated, with :math:`y = +1` (right) or -1 (wrong). The gradient of
    the logistic loss is :math:`g = -y\, \mathrm{sigmoid}(-y w_k'x) x`; then :math:`G_{kj} \mathrel{+}= g_j^2` and
    :math:`w_{kj} \mathrel{-}= \mathrm{learning\_rate}\, g_j / \sqrt{G_{kj}}` (AdaGrad). There are no importance
    weights, because the agent fits a model of the outcome and not of the policy's value.

    "anytime" explores at :math:`\gamma_t = \min(1, \sqrt{K / t})`, where :math:`t - 1` is the number of updates so far.
    It explores in about :math:`2 \sqrt{K T}` rounds, most of them early. (The guarantee below would require a rate of
    order :math:`t^{-1/3}`.)

    Guarantee: assume that :math:`P(k\text{ is right} \mid x) = \mathrm{sigmoid}(w_k'x)` for all k, and let Reg be the
    models' regret in squared loss. The mistakes exceed the expected mistakes of the best class by at most
    :math:`\gamma T + O(\sqrt{T K\, \mathrm{Reg} / \gamma})`, which is :math:`T^{2/3}` at best. Exactly one class is
    right, so the assumption needs :math:`\sum_k\, \mathrm{sigmoid}(w_k'x) = 1`. That is possible only for :math:`K = 2`
    or one-hot contexts. `bound` returns None.

    Cost: :math:`O(K d)` to score and :math:`O(d)` to update, with :math:`\mathrm{nnz}(x)` instead of d for sparse
    contexts. Memory: :math:`2 K d` numbers.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1], often called :math:`\epsilon`, or "anytime".
    learning_rate
        AdaGrad's step size, above 0. "auto" is :math:`0.5/R`. With a step several times as large, the agent learns
        faster on separable data and fails on noisy labels.

    Raises
    ------
    UsageError
        `gamma` is neither in [0, 1] nor "anytime", or `learning_rate` is not above 0.

    References
    ----------
    J. Langford, T. Zhang. The epoch-greedy algorithm for multi-armed bandits with side information. NeurIPS 2007.
    A. Bietti, A. Agarwal, J. Langford. A contextual bandit bake-off. JMLR 22, 2021 (direct method, epsilon-greedy).
    """

    id = "epsilon-greedy-direct"
    group = "practice"
    summary = "greedy on one logistic regression per class (direct method) with uniform exploration"
    reference = "Bietti, Agarwal and Langford, JMLR 2021 (direct method); AdaGrad, JMLR 2011"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    payload_size = 1
    sparse = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        gamma: float | Literal["anytime"] = "anytime",
        learning_rate: float | Literal["auto"] = "auto",
    ) -> None:
        super().__init__(problem, rng)
        K, d, R = problem.n_classes, problem.n_features, problem.radius
        self.gamma = gamma if gamma == "anytime" else probability("gamma", number("gamma", gamma, "anytime"))
        self.learning_rate = resolve("learning_rate", learning_rate, {"auto": AUTO_RATE / R})
        self.state = State(
            V=matrix(K, d),
            G=matrix(K, d, FLOOR * R**2),
            rounds=np.zeros(1, np.int64),
            settings=np.array([-1.0 if self.gamma == "anytime" else float(self.gamma), self.learning_rate]),
            z=np.zeros(K),
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights W (K, d); row k is class k's model."""
        return self.learning_rate * self.state.V[:, : self.problem.n_features]
