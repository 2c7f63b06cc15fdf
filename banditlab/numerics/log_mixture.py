r"""The aggregating algorithm with learning rate 1: forecasts mixed with weights proportional to :math:`e^{-\text{loss}}`.

Let Z (N, K) be the members' logits and w (N,) the log weights, :math:`\sum_i e^{w_i} = 1`. The mixture predicts
:math:`z_k = \ln \sum_i e^{w_i} \mathrm{softmax}(Z_i)_k`. Its loss is :math:`-\ln \sum_i e^{w_i - \mathrm{loss}_i}`,
because the logarithmic loss is 1-mixable with equality. The members are any forecasters, whose log softmax is the input
of `mix`, or matrices, whose logits `mix_linear` computes.
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import njit
from banditlab.numerics.softmax import log_softmax
from banditlab.numerics.symmetric import dot


@njit
def mix(w, Z, z):
    """Write the mixture's logits into z (K,), from log weights w (N,) and members' log softmax Z (N, K)."""
    N, K = Z.shape
    for k in range(K):
        # z_k = ln sum_i e^{w_i + Z_ik}, with its largest term factored out
        top = -math.inf
        for i in range(N):
            top = max(top, w[i] + Z[i, k])
        total = 0.0
        for i in range(N):
            total += math.exp(w[i] + Z[i, k] - top)
        z[k] = top + math.log(total)


@njit
def mix_linear(M, w, x, Z, z):
    r"""Write :math:`\ln \sum_i e^{w_i} \mathrm{softmax}(M_i x)` into z (K,), and each
    :math:`\ln \mathrm{softmax}(M_i x)` into Z (N, K).

    M (N, K, d) contains the members' matrices, w (N,) their log weights, and x (d,) is the context.
    """
    N, K = Z.shape
    for i in range(N):
        for k in range(K):
            Z[i, k] = dot(M[i, k], x)
        log_softmax(Z[i])
    mix(w, Z, z)


@njit
def reweigh(w, Z, y):
    """Add the members' `Z[:, y]` to the log weights w (N,), then normalise the weights."""
    # w_i <- w_i - loss_i
    top = -math.inf
    for i in range(w.shape[0]):
        w[i] += Z[i, y]
        top = max(top, w[i])
    # w_i <- w_i - ln sum_j e^{w_j}
    total = 0.0
    for i in range(w.shape[0]):
        total += math.exp(w[i] - top)
    total = math.log(total)
    for i in range(w.shape[0]):
        w[i] = (w[i] - top) - total


@njit
def smooth(z, mu):
    r"""Overwrite log probabilities z (K,) with :math:`\ln((1 - \mu) e^{z_k} + \mu/K)`."""
    if mu > 0.0:
        for k in range(z.shape[0]):
            z[k] = math.log((1.0 - mu) * math.exp(z[k]) + mu / z.shape[0])
