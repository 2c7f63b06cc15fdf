"""The aggregating algorithm at learning rate 1: forecasts mixed with weights proportional to e^{-loss}.

With members' logits Z (N, K) and log weights w (N,), sum e^w = 1, the mixture predicts z_k = ln sum_i e^{w_i}
softmax(Z_i)_k, and its loss is -ln sum_i e^{w_i - loss_i}: the logarithmic loss is 1-mixable, with equality.
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import njit


@njit
def mix(w, Z, z):
    """Write the mixture's logits into z (K,), from log weights w (N,) and members' log softmax Z (N, K)."""
    N, K = Z.shape
    for k in range(K):
        top = -math.inf
        for i in range(N):
            top = max(top, w[i] + Z[i, k])
        total = 0.0
        for i in range(N):
            total += math.exp(w[i] + Z[i, k] - top)
        z[k] = top + math.log(total)


@njit
def reweigh(w, Z, y):
    """Add the members' Z[:, y] to the log weights w (N,), then normalise them."""
    top = -math.inf
    for i in range(w.shape[0]):
        w[i] += Z[i, y]
        top = max(top, w[i])
    total = 0.0
    for i in range(w.shape[0]):
        total += math.exp(w[i] - top)
    total = math.log(total)
    for i in range(w.shape[0]):
        w[i] = (w[i] - top) - total


@njit
def smooth(z, mu):
    """Overwrite log probabilities z (K,) with ln((1 - mu) e^{z_k} + mu/K)."""
    if mu > 0.0:
        for k in range(z.shape[0]):
            z[k] = math.log((1.0 - mu) * math.exp(z[k]) + mu / z.shape[0])
