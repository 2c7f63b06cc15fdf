r"""StackCB's third stack: a softmax over the classes, applied to weighted sums of the experts' margins. Not from a
paper.

The other two stacks (`stack`) predict for each class separately whether it would be right. Part of this prediction is
the experts' confidence at this context, which does not rank the classes. In this stack classes compete: with
:math:`\theta` (N,) and :math:`s_k = \theta'z_k`,

.. math::

    p = \mathrm{softmax}(s), \quad \text{and class } a \text{ is right with the logit} \quad
    \zeta_a = s_a - \ln \sum_{k \ne a} \exp(s_k), \tag{1}

The gradient of this logit in :math:`\theta` compares the played class's margins with a weighted mean of the others':

.. math::

    f_a = z_a - \sum_{k \ne a} w_k z_k, \qquad w_k = \exp(s_k) / \sum_{j \ne a} \exp(s_j). \tag{2}

:math:`\theta` is updated with :math:`f_a` and the bit by the online Newton step of the other stacks. If feedback is
late, (1) is replaced by :math:`\zeta_a + (\theta - \theta_{\text{then}})'f_a`. The third stack is weighted by its log
loss like the others, and begins `HANDICAP` nats behind the better one. When stored rounds are replayed, it does not
change: (2) needs the margins of all classes, and a replay computes those of the played class only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.agents.stacked.stack import PRIORS, RATE, Stack, learn_one, least_loss, margin
from banditlab.numerics.argmax import argmax
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.simd_math import exponentials

HANDICAP = 10.0
"""Nats that it begins behind the better of the other two."""
PRIOR = PRIORS[0]
"""Prior variance of every weight, that of the loose stack."""


class SoftmaxStack(NamedTuple):
    r"""The state: :math:`\theta` (N,); S (N, N), its covariance; behind (1,), see below.

    behind is the log loss of this stack minus that of the better of the other two, in nats. Work arrays: s, e (K,), f,
    v (N,).
    """

    theta: NDArray[np.float64]
    S: NDArray[np.float64]
    behind: NDArray[np.float64]
    s: NDArray[np.float64]
    e: NDArray[np.float64]
    f: NDArray[np.float64]
    v: NDArray[np.float64]


def softmax_stack(n_experts: int, n_classes: int, stack: Stack) -> SoftmaxStack:
    """Return a third stack that begins with the weights of the other two."""
    N, K = n_experts, n_classes
    made = SoftmaxStack(np.zeros(N), np.zeros((N, N)), np.zeros(1), np.zeros(K), np.zeros(K), np.zeros(N), np.zeros(N))
    begin(made, stack)
    return made


@njit
def begin(softmax, stack):
    """Reset to the present weights of the other two stacks."""
    if softmax is None:  # known when a kernel is compiled
        return
    N = softmax.theta.shape[0]
    softmax.behind[0] = HANDICAP
    for i in range(N):
        softmax.theta[i] = stack.theta[i]
        for j in range(N):
            softmax.S[i, j] = PRIOR if i == j else 0.0


@inline
def share(softmax, stack):
    r"""Return the weight of this stack: :math:`\exp(-\text{RATE}\, \text{loss})` over the sum for all three stacks."""
    # The other two, relative to the better one.
    others = math.log1p(math.exp(-RATE * abs(stack.loss[0] - stack.loss[1])))
    return sigmoid(-RATE * softmax.behind[0] - others)


@njit
def write_scores(softmax, z, K):
    r"""Write :math:`s_k = \theta'z_k` of all classes into `scratch`; z has the margins, K per expert."""
    if softmax is None:
        return
    for k in range(K):
        softmax.s[k] = 0.0
        for i in range(softmax.theta.shape[0]):
            softmax.s[k] += softmax.theta[i] * z[i * K + k]


@njit
def compete(softmax, stack, z, K, zeta):
    r"""Replace :math:`\zeta` (K,) of the other two stacks by the weighted mean over all three; z is as in
    `write_scores`.
    """
    if softmax is None:
        return
    write_scores(softmax, z, K)
    s, weight = softmax.s, share(softmax, stack)
    best = argmax(s, K)
    total = exponentials(s, 1.0, s[best], K, softmax.e)
    for k in range(K):  # (1)
        rest = log_rest(s, best, K) if k == best else s[best] + math.log(total - softmax.e[k])
        zeta[k] += weight * (s[k] - rest - zeta[k])


@njit
def log_rest(s, a, K):
    r"""Return :math:`\ln \sum_{k \ne a} \exp(s_k)`."""
    largest, total = -math.inf, 0.0
    for k in range(K):
        if k != a:
            largest = max(largest, s[k])
    for k in range(K):
        if k != a:
            total += math.exp(s[k] - largest)
    return largest + math.log(total)


@njit
def rivals(softmax, z, a, K, out):
    r"""Write the features of class a into out (N + 1,): :math:`\sum_{k \ne a} w_k z_k`, then
    :math:`\zeta_a - \theta'f_a`.

    The scores are those of the last context.
    """
    if softmax is None:
        return
    s, N, e = softmax.s, softmax.theta.shape[0], softmax.e
    rest = log_rest(s, a, K)
    for k in range(K):
        e[k] = math.exp(s[k] - rest) if k != a else 0.0
    out[N] = -rest  # zeta_a - theta'f_a = theta'(sum w_k z_k) - rest
    for i in range(N):
        out[i] = 0.0
        for k in range(K):  # (2)
            out[i] += e[k] * z[i * K + k]
        out[N] += softmax.theta[i] * out[i]


@njit
def logit(softmax, stack, read, N):
    """Return the logit of the three stacks for the played class.

    read has its margins (N,), or (2 N + 1,) with the result of `rivals` appended.
    """
    zeta = margin(stack.theta, read[:N])
    if softmax is None or read.shape[0] == N:
        return zeta
    return zeta + share(softmax, stack) * (own_logit(softmax, read, N) - zeta)  # the mean by weights


@njit
def own_logit(softmax, read, N):
    r"""Write :math:`f_a` into `scratch` and return (1) at the present :math:`\theta`."""
    zeta = read[2 * N]
    for i in range(N):
        softmax.f[i] = read[i] - read[N + i]
        zeta += softmax.theta[i] * softmax.f[i]
    return zeta


@njit
def learn_softmax(softmax, stack, before, read, N, y):
    """Update with the outcome y (1 right, 0 wrong) for the features that `logit` read.

    before is `least_loss` before the update of the other two stacks.
    """
    if softmax is None or read.shape[0] == N:
        return
    zeta = own_logit(softmax, read, N)
    own = learn_one(softmax.theta, softmax.S, softmax.f, zeta, y, softmax.v)
    softmax.behind[0] += own - (least_loss(stack) - before)  # its loss less that of the better of the two
