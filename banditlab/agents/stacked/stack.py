"""Two or three online logistic regressions over the margins of N experts, shared by all classes, and their mixture.

zeta_k = theta'f_k with f_k = (z_1k, ..., z_Nk, 1). Stack s starts at the mean of the experts (but for a spare one, whose weight
starts at 0), its covariance at `PRIORS`_s I, and learns by online Newton for the log loss. After class a was played, y = 1 if
it was right and p = sigmoid(theta_s'f_a): v = S_s f_a, c = p (1 - p), theta_s += v (y - p) / (1 + c f_a'v), S_s -= c v v' /
(1 + c f_a'v).

theta is the stacks' mean, weighted by exp(-`RATE` times the log loss so far) (Vovk, Aggregating strategies, COLT 1990): the
tight one, which stays near the experts' mean, for as long as that many weights cannot be learnt from so few rounds.

The third reads the experts' levels, too: f_k = (z_1k, ..., z_Nk, 1, l_1, ..., l_N) with l_e the mean of z_ek over the classes,
their weights 0 at first. A level is the same for all classes and ranks none. It says how sure of itself an expert is at this
context, so that the weights of the margins need not say it: what predicts best whether the class played is right is not what
ranks classes best. It begins with a log loss of `HANDICAP`.
Where rounds are learnt again it stays as it is: their levels would need the margins of all classes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.numerics.jit import inline, njit

PRIORS = (3.0, 0.1)
"""Variance of every weight before anything is learnt, of the loose stack and of the tight one."""
PRIOR_OF_LEVELS = PRIORS[0]
"""That of the stack that reads levels, a loose one."""
LEVELS = 2
"""Its number."""
HANDICAP = 10.0
"""Nats of log loss that it begins with: so many weights more cost mistakes while little is known."""
RATE = 0.5
LEAST = 1e-4
"""Smallest probability that counts in a log loss: no single round decides between the stacks."""


class Stack(NamedTuple):
    """theta (n,), the mixture's; thetas (2 or 3, n); S (2 or 3, n, n); priors, loss (2 or 3,).

    n = N + 1, the bias last, or 2 N + 1 with a third stack, the weights of the levels behind the bias. Scratch: v (n,).
    """

    theta: NDArray[np.float64]
    thetas: NDArray[np.float64]
    S: NDArray[np.float64]
    priors: NDArray[np.float64]
    loss: NDArray[np.float64]
    v: NDArray[np.float64]


def stack(n_experts: int, priors: tuple[float, float], spare: int = -1, *, levels: bool = False) -> Stack:
    """Return the mean of the experts but the spare one, -1: none; where all priors are 0 it stays so.

    levels: whether there is a third stack, of prior `PRIOR_OF_LEVELS`.
    """
    n, variances = (2 * n_experts + 1, (*priors, PRIOR_OF_LEVELS)) if levels else (n_experts + 1, priors)
    m = len(variances)
    made = Stack(np.zeros(n), np.zeros((m, n)), np.zeros((m, n, n)), np.array(variances), np.zeros(m), np.zeros(n))
    reset(made, spare, True)
    return made


@inline
def reads_levels(stack):
    """Return whether there is a third stack."""
    return stack.loss.shape[0] > LEVELS


@inline
def count_experts(stack):
    """Return N."""
    n = stack.theta.shape[0] - 1
    return n // 2 if reads_levels(stack) else n


@njit
def reset(stack, spare, whole):
    """Go back to the mean of the experts; the weight of number `spare` begins at 0 (-1: none's).

    Unless `whole`, a third stack stays as it is, and as far behind the better of the others, or ahead.
    """
    n, N, loss = stack.theta.shape[0], count_experts(stack), stack.loss
    of_each = 1.0 / (N if spare < 0 else N - 1)
    behind = HANDICAP if whole else loss[-1] - min(loss[0], loss[1])
    for i in range(n):
        stack.theta[i] = of_each if i < N and i != spare else 0.0
    for s in range(loss.shape[0] if whole else LEVELS):
        loss[s] = 0.0
        for i in range(n):
            stack.thetas[s, i] = stack.theta[i]
            for j in range(n):
                stack.S[s, i, j] = stack.priors[s] if i == j and (i <= N or s == LEVELS) else 0.0
    if reads_levels(stack):
        loss[LEVELS] = behind


@njit
def learn_stack(stack, z, y):
    """Learn the outcome y (1 right, 0 not) of a class whose experts had the margins z (N,); return p of the mixture.

    With a third stack z is (2 N,), the levels behind the margins. Where it is (N,), levels being unknown, the third learns
    nothing and is as far behind as before, and p is none.
    """
    thetas, loss, N = stack.thetas, stack.loss, count_experts(stack)
    said, least = sigmoid(margin(stack.theta, z, N)), min(loss[0], loss[1])
    for s in range(LEVELS):
        learn_one(thetas[s], stack.S[s], loss, s, z[:N], N, y, stack.v)
    # 1 / (1 + exp(RATE (loss_0 - loss_1))), without overflow
    first = 0.5 - 0.5 * math.tanh(0.5 * RATE * (loss[0] - loss[1]))
    for i in range(stack.theta.shape[0]):
        stack.theta[i] = first * thetas[0, i] + (1.0 - first) * thetas[1, i]
    if reads_levels(stack):
        if z.shape[0] > N:
            learn_one(thetas[LEVELS], stack.S[LEVELS], loss, LEVELS, z, N, y, stack.v)
        else:
            loss[LEVELS] += min(loss[0], loss[1]) - least
        # The two together weigh e^pair, the third e^(-RATE loss_2).
        pair = -RATE * min(loss[0], loss[1]) + math.log1p(math.exp(-RATE * abs(loss[0] - loss[1])))
        third = sigmoid(-RATE * loss[LEVELS] - pair)
        for i in range(stack.theta.shape[0]):
            stack.theta[i] = (1.0 - third) * stack.theta[i] + third * thetas[LEVELS, i]
    return said


@inline
def margin(theta, z, N):
    """Return theta'f, f the margins, 1 and what stands behind the margins in z."""
    zeta = theta[N]
    for i in range(N):
        zeta += theta[i] * z[i]
    for i in range(N, z.shape[0]):
        zeta += theta[i + 1] * z[i]
    return zeta


@njit
def learn_one(theta, S, loss, s, z, N, y, v):
    """Do what the module says of stack s, which reads z, margins and levels or margins alone."""
    n = z.shape[0] + 1
    p = sigmoid(margin(theta, z, N))
    loss[s] -= math.log(max(LEAST, p if y == 1.0 else 1.0 - p))
    c, q = p * (1.0 - p), 0.0
    for i in range(n):
        v[i] = S[i, N]
        for j in range(N):
            v[i] += S[i, j] * z[j]
        for j in range(N, n - 1):
            v[i] += S[i, j + 1] * z[j]
        q += v[i] * (z[i] if i < N else 1.0 if i == N else z[i - 1])
    down = 1.0 / (1.0 + c * q)
    for i in range(n):
        theta[i] += v[i] * (y - p) * down
        for j in range(n):
            S[i, j] -= c * down * v[i] * v[j]
