"""Banditron (Kakade, Shalev-Shwartz and Tewari, ICML 2008)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import LinearScores
from banditlab.numerics.argmax import argmax
from banditlab.numerics.draws import greedy_or_uniform
from banditlab.numerics.jit import inline
from banditlab.numerics.vectors import add, matrix, scores
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import probability


class State(NamedTuple):
    r"""W (K, d), padded; the scores z (K,), a work array; :math:`\gamma` (1,)."""

    W: NDArray[np.float64]
    z: NDArray[np.float64]
    gamma: NDArray[np.float64]


@inline
def act_kernel(state, x, u, p, payload):
    gamma, z, K = state.gamma[0], state.z, p.shape[0]
    scores(state.W, x, z)
    y_hat = argmax(z, K)
    payload[0] = y_hat
    return greedy_or_uniform(y_hat, gamma, u, p)  # P = (1 - gamma) e_yhat + gamma/K


@inline
def learn_kernel(state, x, action, p, payload, correct):
    # W += (1[right] e_action / P(action) - e_yhat) x'
    add(state.W, int(payload[0]), -1.0, x)
    if correct:
        add(state.W, action, 1.0 / p[action], x)


class Banditron(LinearScores, KernelAgent):
    r"""The perceptron with one bit of feedback.

    Problem: bandit multiclass, adversarial stream.

    Update rule: :math:`\hat{y} = \arg\max_k (W x)_k` (ties go to the first class). The agent draws its action from
    :math:`P = (1 - \gamma) e_{\hat{y}} + \gamma/K`: a uniform class with probability :math:`\gamma`, otherwise
    :math:`\hat{y}`. In every round :math:`W_{\hat{y}} \mathrel{-}= x`; if the action y was right,
    :math:`W_y \mathrel{+}= x / P(y)` as well, even when :math:`y = \hat{y}`. In expectation this is the perceptron's
    update. The scale of W is irrelevant, so there is no step size.

    Guarantee (oblivious adversary, :math:`\|x\| \le 1`, L the multiclass hinge loss of U summed over the rounds,
    :math:`D = 2 \|U\|_F^2`):

    .. math::

        \mathbb{E}[M] \le L + \gamma T + 3 \max\{K D / \gamma, \sqrt{D \gamma T}\} + \sqrt{K D L / \gamma}.

    The comparator's loss is the hinge loss, not the logistic loss, so `bound` returns None. For large T, a
    :math:`\gamma` of order :math:`(K D / T)^{1/3}` gives :math:`T^{2/3}` mistakes in excess of L. A :math:`\gamma` of
    order :math:`\sqrt{K D / T}` gives :math:`\sqrt{T}` if :math:`L = 0`.

    Cost: :math:`O(K\, \mathrm{nnz}(x))` per round for sparse contexts, :math:`O(K d)` for dense ones. Memory:
    :math:`K d` numbers.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1] (:math:`\gamma` in the paper, where it lies in (0, 1/2)).

    Raises
    ------
    UsageError
        `gamma` is outside [0, 1].

    References
    ----------
    S. Kakade, S. Shalev-Shwartz, A. Tewari. Efficient bandit algorithms for online multiclass prediction. ICML 2008.
    """

    id = "banditron"
    group = "practice"
    summary = "the perceptron with importance-weighted hits"
    reference = "Kakade, Shalev-Shwartz and Tewari, ICML 2008"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    payload_size = 1
    sparse = True

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, gamma: float = 0.05) -> None:
        super().__init__(problem, rng)
        self.gamma = probability("gamma", gamma)
        K, d = problem.n_classes, problem.n_features
        self.state = State(matrix(K, d), np.zeros(K), np.array([self.gamma]))
