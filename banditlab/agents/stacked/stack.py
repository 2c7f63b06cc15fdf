r"""Two online logistic regressions on the margins of N experts, shared by all classes, and a mixture of the two.

:math:`\zeta_k = \theta'f_k` with :math:`f_k = (z_{1k}, \dots, z_{Nk}, 1)`. Stack s starts at the mean of the experts
(except a spare one, whose weight starts at 0), with the covariance :math:`\text{PRIORS}_s I`. Its update is the online
Newton step for the log loss. After class a was played, let :math:`y = 1` if it was right,
:math:`p = \mathrm{sigmoid}(\theta_s'f_a)`, :math:`v = S_s f_a` and :math:`c = p (1 - p)`. Then
:math:`\theta_s \mathrel{+}= v (y - p) / (1 + c f_a'v)` and :math:`S_s \mathrel{-}= c v v' / (1 + c f_a'v)`.

:math:`\theta` is the mean of the two stacks with weights :math:`\exp(-\text{RATE}\, \text{loss})`, where loss is a
stack's log loss so far (Vovk, Aggregating strategies, COLT 1990). The stack with the smaller prior stays near the
experts' mean and has the larger weight while there are too few rounds to estimate the weights. A third stack,
`softmax_stack`, models all classes jointly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.numerics.jit import inline, njit

PRIORS = (3.0, 0.1)
"""Prior variance of every weight, of the loose stack and of the tight one."""
RATE = 0.5
LEAST = 1e-4
"""Smallest probability that counts in a log loss: no single round decides between the stacks."""


class Stack(NamedTuple):
    r"""The state: :math:`\theta` (N + 1,), of the mixture, with the bias last; thetas (2, N + 1); S (2, N + 1, N + 1).

    priors and loss have the shape (2,); v is a work array.
    """

    theta: NDArray[np.float64]
    thetas: NDArray[np.float64]
    S: NDArray[np.float64]
    priors: NDArray[np.float64]
    loss: NDArray[np.float64]
    v: NDArray[np.float64]


def stack(n_experts: int, spare: int = -1) -> Stack:
    """Return the mean of the experts except number `spare` (-1 for none)."""
    n = n_experts + 1
    made = Stack(np.zeros(n), np.zeros((2, n)), np.zeros((2, n, n)), np.array(PRIORS), np.zeros(2), np.zeros(n))
    reset(made, spare)
    return made


@njit
def reset(stack, spare):
    """Reset to the mean of the experts; the weight of number `spare` starts at 0 (-1 for none)."""
    n = stack.theta.shape[0]
    of_each = 1.0 / (n - 1 if spare < 0 else n - 2)
    for i in range(n):
        stack.theta[i] = 0.0 if i in (spare, n - 1) else of_each
        for s in range(2):
            stack.thetas[s, i] = stack.theta[i]
            for j in range(n):
                stack.S[s, i, j] = stack.priors[s] if i == j else 0.0
    stack.loss[:] = 0.0


@njit
def learn_stack(stack, z, y):
    """Update with the outcome y (1 right, 0 wrong) of a class whose experts had the margins z (N,)."""
    for s in range(2):
        theta = stack.thetas[s]
        stack.loss[s] += learn_one(theta, stack.S[s], z, margin(theta, z), y, stack.v)
    # 1 / (1 + exp(RATE (loss_0 - loss_1))), without overflow
    first = 0.5 - 0.5 * math.tanh(0.5 * RATE * (stack.loss[0] - stack.loss[1]))
    # theta, the mean of the two by their weights
    for i in range(stack.theta.shape[0]):
        stack.theta[i] = first * stack.thetas[0, i] + (1.0 - first) * stack.thetas[1, i]


@inline
def margin(theta, z):
    r"""Return :math:`\theta'f`, where f has the margins z (N,) and 1."""
    N = z.shape[0]
    zeta = theta[N]
    for i in range(N):
        zeta += theta[i] * z[i]
    return zeta


@inline
def least_loss(stack):
    """Return the log loss of the better of the two."""
    return min(stack.loss[0], stack.loss[1])


@njit
def learn_one(theta, S, z, zeta, y, v):
    r"""Update one stack whose logit was :math:`\zeta`; return its log loss in nats.

    :math:`\theta` has the shape (N + 1,) for :math:`f = (z, 1)`, or (N,) for :math:`f = z`. v is a work array.
    """
    n, N, p = theta.shape[0], z.shape[0], sigmoid(zeta)
    c, q = p * (1.0 - p), 0.0
    # v = S f, q = f'v
    for i in range(n):
        v[i] = S[i, N] if n > N else 0.0
        for j in range(N):
            v[i] += S[i, j] * z[j]
        q += v[i] * (z[i] if i < N else 1.0)
    down = 1.0 / (1.0 + c * q)
    for i in range(n):
        theta[i] += v[i] * (y - p) * down  # theta += v (y - p) / (1 + c q)
        for j in range(n):
            S[i, j] -= c * down * v[i] * v[j]  # S -= c v v' / (1 + c q)
    return -math.log(max(LEAST, p if y == 1.0 else 1.0 - p))
