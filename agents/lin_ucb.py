"""Disjoint LinUCB (Li, Chu, Langford and Schapire, WWW 2010) for one bit of feedback: a custom agent in one file."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents import KernelAgent
from banditlab.kernels import draw, njit
from banditlab.problem import Problem
from banditlab.validation import nonnegative, positive


class State(NamedTuple):
    """A^{-1} (K, d, d), theta (K, d), alpha (1,); v (d,) and s (K,) are scratch within one call."""

    A_inverse: NDArray[np.float64]
    theta: NDArray[np.float64]
    alpha: NDArray[np.float64]
    v: NDArray[np.float64]
    s: NDArray[np.float64]


@njit
def act_kernel(state, x, u, p, payload):  # type: ignore[no-untyped-def]
    s, v, alpha = state.s, state.v, state.alpha[0]
    for k in range(s.shape[0]):
        np.dot(state.A_inverse[k], x, v)
        s[k] = np.dot(state.theta[k], x) + alpha * np.sqrt(np.dot(x, v))  # p_{t,a} of Algorithm 1, line 9
    best = s.max()
    ties = 0
    for k in range(s.shape[0]):
        ties += s[k] == best
    for k in range(s.shape[0]):
        p[k] = (s[k] == best) / ties  # "ties broken arbitrarily" (line 11): uniformly here
    return draw(p, u[1]), False


@njit
def learn_kernel(state, x, action, p, payload, correct):  # type: ignore[no-untyped-def]
    A_inverse, theta, v = state.A_inverse[action], state.theta[action], state.v
    np.dot(A_inverse, x, v)
    gain = 1.0 / (1.0 + np.dot(x, v))
    reward = 1.0 if correct else 0.0  # r_t is the bit
    error = reward - np.dot(theta, x)
    for i in range(x.shape[0]):
        theta[i] += gain * error * v[i]  # theta = A^{-1} b after A += x x', b += r x (lines 12, 13)
        for j in range(x.shape[0]):
            A_inverse[i, j] -= gain * v[i] * v[j]  # Sherman-Morrison


class LinUCB(KernelAgent):
    """One ridge regression of the bit per class, and optimism: play the class with the highest upper confidence bound.

    Problem: bandit multiclass. The agent believes P(class k is right | x) to be linear in x, theta_k . x.

    Update rule (Algorithm 1): play argmax_k theta_k . x + alpha sqrt(x' A_k^{-1} x); for the class played
    A_k += x x', b_k += r x with r the bit, theta_k = A_k^{-1} b_k. A_k starts at `regularization` times the identity.
    The inverse is kept by Sherman and Morrison's formula, so nothing is solved.

    Guarantee: none is proved for this algorithm (its master, SupLinUCB, has one, under linear rewards and a norm of
    x of at most 1), so `bound` answers None. The action is a function of the past but for ties: the probabilities are
    one-hot, and expected mistakes say no more than mistakes.

    Cost: O(K d^2) a round, K d (d + 1) numbers.

    Parameters
    ----------
    confidence
        Width of the confidence bound in standard deviations, at least 0 (alpha in the paper); 0 is greedy.
    regularization
        Weight of the ridge, above 0 (1 in the paper, whose rewards and features are larger).

    Raises
    ------
    UsageError
        confidence below 0, regularization not above 0.

    References
    ----------
    L. Li, W. Chu, J. Langford, R. E. Schapire. A contextual-bandit approach to personalized news article
    recommendation. WWW 2010.
    """

    id = "lab-linucb"
    group = "practice"
    summary = "one ridge regression per class with upper confidence bounds"
    reference = "Li, Chu, Langford and Schapire, WWW 2010, Algorithm 1"
    explores = False
    expected_kind = "conditional"
    act_kernel = act_kernel
    learn_kernel = learn_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        confidence: float = 0.3,
        regularization: float = 0.1,
    ) -> None:
        super().__init__(problem, rng)
        self.confidence = nonnegative("confidence", confidence)
        self.regularization = positive("regularization", regularization)
        K, d = problem.n_classes, problem.n_features
        A_inverse = np.stack([np.eye(d) / self.regularization] * K)
        self.state = State(A_inverse, np.zeros((K, d)), np.array([self.confidence]), np.empty(d), np.empty(K))
