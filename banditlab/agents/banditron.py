"""Banditron (Kakade, Shalev-Shwartz and Tewari, ICML 2008)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents._base import KernelAgent
from banditlab.kernels import draw, njit
from banditlab.problem import Problem
from banditlab.validation import probability


class State(NamedTuple):
    """W (K, d), the scores z (K,) as scratch, gamma (1,)."""

    W: NDArray[np.float64]
    z: NDArray[np.float64]
    gamma: NDArray[np.float64]


@njit
def act_kernel(state, x, u, p, payload):  # type: ignore[no-untyped-def]
    gamma = state.gamma[0]
    K = p.shape[0]
    np.dot(state.W, x, state.z)
    y_hat = np.argmax(state.z)
    p[:] = gamma / K  # P = (1 - gamma) e_yhat + gamma/K
    p[y_hat] += 1.0 - gamma
    payload[0] = y_hat
    return draw(p, u[1]), False


@njit
def learn_kernel(state, x, action, p, payload, correct):  # type: ignore[no-untyped-def]
    W, y_hat = state.W, int(payload[0])
    for j in range(x.shape[0]):
        W[y_hat, j] -= x[j]
    if correct:
        step = 1.0 / p[action]
        for j in range(x.shape[0]):
            W[action, j] += step * x[j]


class Banditron(KernelAgent):
    """The perceptron with one bit of feedback.

    Problem: bandit multiclass, adversarial stream.

    Update rule: y_hat = argmax_k (W x)_k; play from P = (1 - gamma) e_y_hat + gamma/K;
    W_y_hat -= x; if the action y was right, W_y += x / P(y). In expectation this is the perceptron's update.

    Guarantee (||x|| <= 1, L the multiclass hinge loss of U, D = 2 ||U||_F^2):
    E[M] <= L + gamma T + 3 max{K D / gamma, sqrt(D gamma T)} + sqrt(K D L / gamma). The comparator's loss is the hinge,
    not the logistic loss, so `bound` answers None.

    Cost: O(K d) a round, K d numbers.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1] (gamma in the paper, where it lies in (0, 1/2)).

    Raises
    ------
    UsageError
        gamma outside [0, 1].

    References
    ----------
    S. Kakade, S. Shalev-Shwartz, A. Tewari. Efficient bandit algorithms for online multiclass prediction. ICML 2008.
    """

    id = "banditron"
    group = "practice"
    summary = "the perceptron with importance-weighted hits"
    reference = "Kakade, Shalev-Shwartz and Tewari, ICML 2008"
    explores = False
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    payload_size = 1

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, gamma: float = 0.05) -> None:
        super().__init__(problem, rng)
        self.gamma = probability("gamma", gamma)
        K, d = problem.n_classes, problem.n_features
        self.state = State(np.zeros((K, d)), np.zeros(K), np.array([self.gamma]))
