r"""The multiclass logistic loss in nats: softmax, loss, gradient and Hessian action, stable for any finite logits.

A loss in bits is :math:`\mathrm{loss}_{\text{bits}} = \mathrm{loss}_{\text{nats}} / \ln 2`. Logits are z (..., K), and
labels are integers in :math:`0, \dots, K-1`. The weights are W (K, d), the context is x (d,), the label is y, and the
direction is u (..., K). The functions do not check their input and raise no errors; values that are not finite give
NaN.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LN2 = math.log(2.0)


def softmax(logits: Floats) -> Floats:
    r"""Return :math:`\exp(z_k) / \sum_j \exp(z_j)` along the last axis; same shape as `logits`."""
    shifted = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def log_sum_exp(logits: Floats) -> Floats:
    r"""Return :math:`\ln \sum_k \exp(z_k)` along the last axis."""
    top = np.max(logits, axis=-1)
    return top + np.log(np.exp(logits - top[..., None]).sum(axis=-1))


def logistic_loss(logits: Floats, labels: NDArray[np.int64]) -> Floats:
    r"""Return :math:`-\ln \mathrm{softmax}(z)_y` in nats for logits (..., K) and integer labels (...)."""
    shifted = logits - np.max(logits, axis=-1, keepdims=True)  # a large common term would swamp the loss
    own = np.take_along_axis(shifted, np.asarray(labels)[..., None], axis=-1)[..., 0]
    return np.log(np.exp(shifted).sum(axis=-1)) - own


def logistic_gradient(weights: Floats, context: Floats, label: int) -> Floats:
    r"""Return :math:`(\mathrm{softmax}(W x) - e_y) x'` (K, d), the gradient of the loss at W (K, d), x (d,)."""
    residual = softmax(weights @ context)
    residual[label] -= 1.0
    return np.outer(residual, context)


def hessian_action(logits: Floats, direction: Floats) -> Floats:
    r"""Return the Hessian in the logits times u: :math:`S u` with :math:`S = \mathrm{diag}(s) - s s'`.

    :math:`s = \mathrm{softmax}(z)`; z and u have shape (..., K).
    """
    s = softmax(logits)
    return s * (direction - (s * direction).sum(axis=-1, keepdims=True))
