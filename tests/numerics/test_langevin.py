"""Langevin chains: the potential they move on, and how many independent draws they are worth."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.losses import logistic_gradient, logistic_loss
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.langevin import effective_sample_size, potential


def plane(seed: int, n: int, d: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return as_contexts(X), np.argmax(X @ (3 * rng.standard_normal((d, K))) + rng.gumbel(size=(n, K)), axis=1)


def test_potential_against_the_losses() -> None:
    X, y = plane(1, 30, 2, 3)
    W, G = np.random.default_rng(0).standard_normal((3, 2)), np.empty((3, 2))
    value = potential(W, X, np.eye(3)[y], np.empty(3), G)
    assert value == pytest.approx(logistic_loss(X @ W.T, y).sum())
    np.testing.assert_allclose(G, sum(logistic_gradient(W, x, k) for x, k in zip(X, y, strict=True)))


def test_effective_sample_size() -> None:
    rng = np.random.default_rng(0)
    assert effective_sample_size(rng.standard_normal((500, 8))) > 3000
    walk = np.zeros((500, 8))
    for t in range(1, 500):  # AR(1) at .9: n (1 - .9)/(1 + .9) = 210
        walk[t] = 0.9 * walk[t - 1] + rng.standard_normal(8)
    assert 120 < effective_sample_size(walk) < 320
    stuck = np.repeat(rng.standard_normal((1, 8)), 500, axis=0)
    assert effective_sample_size(stuck + 1e-6 * rng.standard_normal((500, 8))) < 12
