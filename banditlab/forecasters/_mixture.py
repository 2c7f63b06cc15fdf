"""The aggregating algorithm at learning rate 1: forecasts mixed with weights proportional to e^{-loss}.

With members' logits Z (N, K) and log weights w (N,), sum e^w = 1, the mixture predicts z_k = ln sum_i e^{w_i}
softmax(Z_i)_k, and its loss is -ln sum_i e^{w_i - loss_i}: the logarithmic loss is 1-mixable, with equality.
"""

from __future__ import annotations

import math

from banditlab.kernels import njit


@njit
def log_softmax(z):  # type: ignore[no-untyped-def]
    """Overwrite z (K,) with z - ln sum_k e^{z_k}."""
    top = z[0]
    for k in range(1, z.shape[0]):
        top = max(top, z[k])
    total = 0.0
    for k in range(z.shape[0]):
        total += math.exp(z[k] - top)
    total = math.log(total)
    for k in range(z.shape[0]):
        z[k] = (z[k] - top) - total


@njit
def mix(w, Z, z):  # type: ignore[no-untyped-def]
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
def reweigh(w, Z, y):  # type: ignore[no-untyped-def]
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
def smooth(z, mu):  # type: ignore[no-untyped-def]
    """Overwrite log probabilities z (K,) with ln((1 - mu) e^{z_k} + mu/K)."""
    if mu > 0.0:
        for k in range(z.shape[0]):
            z[k] = math.log((1.0 - mu) * math.exp(z[k]) + mu / z.shape[0])
