"""Kernels for the softmax of logits, its logarithm, and its sum over samples.

The largest logit is subtracted first, so no exponential exceeds 1.
"""

from __future__ import annotations

import math

from banditlab.numerics.jit import njit


@njit
def softmax_into(z, s):
    r"""Write :math:`\exp(z_k) / \sum_j \exp(z_j)` into s (K,) for z (K,)."""
    top = z[0]
    for k in range(1, z.shape[0]):
        top = max(top, z[k])
    # s_k = e^{z_k - top} and their sum
    total = 0.0
    for k in range(z.shape[0]):
        s[k] = math.exp(z[k] - top)
        total += s[k]
    for k in range(z.shape[0]):
        s[k] /= total


@njit
def log_softmax(z):
    r"""Overwrite z (K,) with :math:`z - \ln \sum_k e^{z_k}`."""
    top = z[0]
    for k in range(1, z.shape[0]):
        top = max(top, z[k])
    # ln sum_k e^{z_k} = top + ln sum_k e^{z_k - top}
    total = 0.0
    for k in range(z.shape[0]):
        total += math.exp(z[k] - top)
    total = math.log(total)
    for k in range(z.shape[0]):
        z[k] = (z[k] - top) - total


@njit
def add_softmax(z, n, sign, v, total):
    r"""Add :math:`\mathrm{softmax}(z + \text{sign}\, n)` to `total`, for z, n and `total` (K,); v (K,) is a work array."""
    K = z.shape[0]
    # v = z + sign n
    top = -math.inf
    for k in range(K):
        v[k] = z[k] + sign * n[k]
        top = max(top, v[k])
    # v = e^{v - top}, added in proportion
    whole = 0.0
    for k in range(K):
        v[k] = math.exp(v[k] - top)
        whole += v[k]
    for k in range(K):
        total[k] += v[k] / whole
