"""Parts of synthetic environments: directions, contexts in a ball, labels of a planted logistic model, label noise."""

from __future__ import annotations

import numpy as np

from banditlab.envs._base import Floats, Labels
from banditlab.losses import softmax

JUST_BELOW_ONE = 1.0 - 1e-12
"""Contexts of norm R are shortened by this factor, so no order of summation gives a norm above R."""


def directions(rng: np.random.Generator, n: int, d: int) -> Floats:
    """Return n independent uniform unit vectors (n, d)."""
    g = rng.standard_normal((n, d))
    return g / np.linalg.norm(g, axis=1, keepdims=True)


def ball_contexts(rng: np.random.Generator, n: int, d: int, radius: float, law: str) -> Floats:
    """Return contexts (n, d): "sphere", uniform of norm R; "gaussian", drawn from :math:`N(0, (R^2/d) I)`.

    Gaussian contexts with a norm above R are rescaled to norm R.
    """
    if law == "sphere":
        return directions(rng, n, d) * (radius * JUST_BELOW_ONE)
    x = rng.standard_normal((n, d)) * (radius / np.sqrt(d))
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    return x * (JUST_BELOW_ONE / np.maximum(norms / radius, 1.0))


def logistic_labels(rng: np.random.Generator, logits: Floats) -> Labels:
    """Return labels (n,) drawn from the softmax of logits (n, K) by inversion, with one uniform per label."""
    cumulative = np.cumsum(softmax(logits), axis=1)
    u = rng.random(len(logits))[:, None]
    y = (u >= cumulative[:, :-1]).sum(axis=1)  # the last entry, 1 up to rounding, is left out
    return y.astype(np.int64)


def noisy_labels(rng: np.random.Generator, y: Labels, n_classes: int, rate: float, law: str = "other") -> Labels:
    """Return y with each label replaced with probability `rate` by a class drawn uniformly.

    With the law "other" it is drawn from the other K - 1 classes, otherwise from all K. Two uniforms per round are
    drawn at every rate, so environments that differ only in the rate share their noise.
    """
    u = rng.random((len(y), 2))
    if law == "other":
        new = (y + 1 + np.floor(u[:, 1] * (n_classes - 1)).astype(np.int64)) % n_classes
    else:
        new = np.floor(u[:, 1] * n_classes).astype(np.int64)
    return np.where(u[:, 0] < rate, new, y)
