"""Langevin chains: the potential they move on, and how many independent draws they are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.losses import logistic_gradient, logistic_loss
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.langevin import Chains, advance, effective_sample_size, potential


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


def test_a_step_stays_within_its_limits_in_units_of_the_ball():
    """Where nothing is accepted the step shrinks to 1e-12 B^2 and no further, where all is it grows to 100 B^2."""
    X, C = np.zeros((0, 2)), np.zeros((0, 2))
    for B, unit in ((3.0, 9.0), (math.inf, 1.0)):
        for step, uniform, last in ((1.05e-12, 1.0 - 1e-9, 1e-12), (95.0, 1e-300, 100.0)):
            chains = flat_chains(step * unit)
            noise = np.full((4, 1, 2, 2), 1e3 if uniform > 0.5 else 0.0)
            for _ in range(3):
                advance(chains, X, C, B, noise, np.full((4, 1), uniform), 1.0, 1e6 if uniform > 0.5 else 0.0)
            assert chains.step[0] == pytest.approx(last * unit, rel=1e-12), (B, step)


def flat_chains(step):
    """Return one chain at 0."""
    W, G, H = np.zeros((3, 1, 2, 2))
    return Chains(
        W,
        np.zeros(1),
        G,
        np.zeros((4, 1, 2, 2)),
        np.array([step]),
        np.zeros(2, np.int64),
        W[0] + 0.0,
        H[0],
        np.zeros(2),
    )
