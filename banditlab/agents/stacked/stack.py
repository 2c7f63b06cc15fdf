r"""The stacks of StackCB: two online logistic regressions on the margins of N experts, and a softmax over the classes.

The equations are (4) and (5) of docs/theory/stackcb.md. Let :math:`z_{ik}` be the margin of expert i for class k. Each
of the first two stacks s has the weights :math:`\theta_s` of the features :math:`f_k = (z_{1k}, \dots, z_{Nk}, 1)`,
shared by all classes. :math:`\theta` is the mean of both with the weights
:math:`\exp(-\text{RATE}\, \text{loss})`, where loss is a stack's log loss so far (Vovk, COLT 1990). The second stack
has a smaller prior variance (`PRIORS`). It stays near the experts' mean while there are too few rounds to estimate the
weights.

In the third stack classes compete: with :math:`s_k = \theta'z_k` and
:math:`\zeta_a = s_a - \ln \sum_{k \ne a} e^{s_k}`, the gradient of the logit compares the played class's margins with a
weighted mean of all other classes' margins,

.. math::

    f_a = z_a - \sum_{k \ne a} w_k z_k, \qquad w_k = \exp(s_k) / \sum_{j \ne a} \exp(s_j). \tag{1}

If feedback is late, the logit is :math:`\zeta_a + (\theta - \theta_{\text{then}})'f_a`, where :math:`\zeta_a`,
:math:`f_a` and :math:`\theta_{\text{then}}` are those of the decision. A replay of stored rounds does not change the
third stack: (1) needs the margins of all classes, and only those of the played class are stored.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.numerics.argmax import argmax
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.simd_math import exponentials

PRIORS = (3.0, 0.1)
"""Prior variance of each weight in the first and in the second stack; the third stack has that of the first."""
RATE = 0.5
LEAST = 1e-4
"""Smallest probability in a log loss, so no single round decides between the stacks."""
HANDICAP = 10.0
"""Initial value of `Stack.behind`, in nats."""


class Stack(NamedTuple):
    r"""The state: :math:`\theta` (N + 1,), the mixture's weights with the bias last, and the arrays below.

    thetas (2, N + 1) and S (2, N + 1, N + 1) have the weights of the first two stacks and their covariances; priors and
    loss have the shape (2,). start (N + 1,) has the weights before any update. For the third stack, third (N,) has the
    weights, S_third (N, N) their covariance, and behind (1,) its log loss minus the smaller log loss of the first two,
    in nats. Work arrays: v (N + 1,); s, e (K,); f (N,).
    """

    theta: NDArray[np.float64]
    thetas: NDArray[np.float64]
    S: NDArray[np.float64]
    start: NDArray[np.float64]
    priors: NDArray[np.float64]
    loss: NDArray[np.float64]
    third: NDArray[np.float64]
    S_third: NDArray[np.float64]
    behind: NDArray[np.float64]
    v: NDArray[np.float64]
    s: NDArray[np.float64]
    e: NDArray[np.float64]
    f: NDArray[np.float64]


def stack(n_experts: int, n_classes: int, spare: tuple[int, ...] = ()) -> Stack:
    """Return a stack that begins as the mean of the experts, without those with an index in `spare` (weight 0)."""
    N, K, n = n_experts, n_classes, n_experts + 1
    shapes: Any = (n, (2, n), (2, n, n), n, 2, 2, N, (N, N), 1, n, K, K, N)
    made = Stack(*(np.zeros(shape) for shape in shapes))._replace(priors=np.array(PRIORS))
    made.start[:N] = 1.0 / (N - len(spare))
    made.start[list(spare)] = 0.0
    reset_stack(made, True)
    return made


@njit
def reset_stack(stack, third):
    """Reset to the weights at the start; third: whether to reset the third stack as well."""
    n = stack.theta.shape[0]
    stack.loss[:] = 0.0
    for i in range(n):
        stack.theta[i] = stack.start[i]
        for s in range(2):
            stack.thetas[s, i] = stack.start[i]
            for j in range(n):
                stack.S[s, i, j] = stack.priors[s] if i == j else 0.0
    if third:
        stack.behind[0] = HANDICAP
        for i in range(n - 1):
            stack.third[i] = stack.start[i]
            for j in range(n - 1):
                stack.S_third[i, j] = PRIORS[0] if i == j else 0.0


@inline
def margin(theta, z):
    r"""Return :math:`\theta'f`, where f has the margins z (N,) and 1."""
    N = z.shape[0]
    zeta = theta[N]
    for i in range(N):
        zeta += theta[i] * z[i]
    return zeta


@inline
def share(stack):
    r"""Return the weight of the third stack: :math:`\exp(-\text{RATE}\, \text{loss})` over the sum for all three."""
    # The other two, relative to the better one.
    others = math.log1p(math.exp(-RATE * abs(stack.loss[0] - stack.loss[1])))
    return sigmoid(-RATE * stack.behind[0] - others)


@njit
def write_scores(stack, z):
    r"""Write the third stack's scores :math:`s_k = \theta'z_k` into `stack.s`; z has the margins, K per expert."""
    K = stack.s.shape[0]
    for k in range(K):
        stack.s[k] = 0.0
        for i in range(stack.third.shape[0]):
            stack.s[k] += stack.third[i] * z[i * K + k]


@njit
def compete(stack, z, zeta):
    r"""Replace :math:`\zeta` (K,) of the first two stacks by the weighted mean over all three; z has the margins."""
    write_scores(stack, z)
    s, K, weight = stack.s, zeta.shape[0], share(stack)
    best = argmax(s, K)
    total = exponentials(s, 1.0, s[best], K, stack.e)
    for k in range(K):
        rest = log_rest(s, best) if k == best else s[best] + math.log(total - stack.e[k])
        zeta[k] += weight * (s[k] - rest - zeta[k])


@njit
def log_rest(s, a):
    r"""Return :math:`\ln \sum_{k \ne a} \exp(s_k)`."""
    largest, total = -math.inf, 0.0
    for k in range(s.shape[0]):
        if k != a:
            largest = max(largest, s[k])
    for k in range(s.shape[0]):
        if k != a:
            total += math.exp(s[k] - largest)
    return largest + math.log(total)


@njit
def write_rivals(stack, z, a, out):
    r"""Write :math:`\sum_{k \ne a} w_k z_k` (N,) and then :math:`\zeta_a - \theta'f_a` into out (N + 1,), for the
    third stack and class a.

    `stack.s` has the scores of this context, see `write_scores`.
    """
    s, e, K, N = stack.s, stack.e, stack.s.shape[0], stack.third.shape[0]
    rest = log_rest(s, a)
    for k in range(K):
        e[k] = math.exp(s[k] - rest) if k != a else 0.0
    out[N] = -rest  # zeta_a - theta'f_a = theta'(sum w_k z_k) - rest
    for i in range(N):
        out[i] = 0.0
        for k in range(K):  # (1)
            out[i] += e[k] * z[i * K + k]
        out[N] += stack.third[i] * out[i]


@njit
def logit(stack, read):
    """Return the logit of the stacks for the played class.

    `read` (N,) has its margins. The third stack is used only if the result of `write_rivals` follows (2 N + 1,).
    """
    N = stack.third.shape[0]
    zeta = margin(stack.theta, read[:N])
    if read.shape[0] == N:
        return zeta
    return zeta + share(stack) * (third_logit(stack, read) - zeta)  # the mean by weights


@njit
def third_logit(stack, read):
    r"""Write :math:`f_a` into the third stack's f, and return its logit at the present :math:`\theta`."""
    N = stack.third.shape[0]
    zeta = read[2 * N]
    for i in range(N):
        stack.f[i] = read[i] - read[N + i]
        zeta += stack.third[i] * stack.f[i]
    return zeta


@njit
def update_stack(stack, read, y):
    """Update with the outcome y (1 right, 0 wrong) of the played class; `read` is as for `logit`."""
    N, loss = stack.third.shape[0], stack.loss
    z, least = read[:N], min(loss[0], loss[1])
    for s in range(2):
        theta = stack.thetas[s]
        loss[s] += newton_step(theta, stack.S[s], z, margin(theta, z), y, stack.v)
    # 1 / (1 + exp(RATE (loss_0 - loss_1))), without overflow
    first = 0.5 - 0.5 * math.tanh(0.5 * RATE * (loss[0] - loss[1]))
    # theta, the mean of the two by their weights
    for i in range(N + 1):
        stack.theta[i] = first * stack.thetas[0, i] + (1.0 - first) * stack.thetas[1, i]
    if read.shape[0] > N:
        own = newton_step(stack.third, stack.S_third, stack.f, third_logit(stack, read), y, stack.v)
        stack.behind[0] += own - (min(loss[0], loss[1]) - least)  # its loss less that of the better of the two


@njit
def newton_step(theta, S, z, zeta, y, v):
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
