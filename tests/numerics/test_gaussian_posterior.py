"""The Gaussian posterior against a dense filter on Kd dimensions, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics import gaussian_posterior
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.gaussian_posterior import (
    DELAYED,
    UNSOLVED,
    WAITING,
    covariance,
    implicit_logits,
    learn_label,
    logit_law,
    multinomial_factor,
    posterior_state,
)


def stream(K, d, T, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    planted = 6.0 * rng.standard_normal((K, d))
    X = rng.standard_normal((T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * rng.uniform(1.0, 1.5, (T, 1))
    y = np.where(rng.random(T) < noise, rng.integers(K, size=T), np.argmax(X @ planted.T, axis=1))
    return as_contexts(X), y.astype(np.int64)


@pytest.mark.parametrize(
    ("K", "d", "deviation"), [(2, 1, 1.0), (2, 4, 10.0), (3, 2, 0.3), (3, 3, 5.0), (5, 4, 2.0), (7, 2, 30.0)]
)
def test_equals_the_dense_filter(dense_step, K, d, deviation):
    """Through several subtractions of the waiting columns, weights from 1e-6 to 1, confident wrong predictions."""
    rng = np.random.default_rng(K * d)
    X, y = stream(K, d, 3 * DELAYED + 2, seed=K)
    posterior = posterior_state(K, d, deviation)
    M, C = np.zeros((K, d)), deviation**2 * np.eye(K * d)
    for x, label in zip(X, y):
        w = min(1.0, 10.0 ** rng.uniform(-3, 1)) if rng.random() < 0.8 else 1e-6
        logit_law(posterior, x)
        J = np.kron(np.eye(K), x)
        np.testing.assert_allclose(posterior.law.z0, M @ x, atol=1e-8 * deviation)
        np.testing.assert_allclose(posterior.law.Sigma, J @ C @ J.T, atol=1e-8 * deviation**2)
        learn_label(posterior, x, label, w)
        M, C = dense_step(M, C, x, label, w)
        np.testing.assert_allclose(posterior.M, M, atol=1e-8 * deviation)
        np.testing.assert_allclose(covariance(posterior), C, atol=1e-8 * deviation**2)
    assert posterior.tally[UNSOLVED] == 0


def test_first_step_of_two_classes_by_hand():
    """K = 2, d = 1, x = 1: the margin m = z_0 - z_1 solves m = 2 v w (1 - sigmoid(m)), v the prior's variance."""
    posterior = posterior_state(2, 1, 1.5)
    learn_label(posterior, as_contexts([1.0]), 0, 0.7)
    margin = 2 * posterior.M[0, 0]
    assert posterior.M[1, 0] == -posterior.M[0, 0]
    sigmoid = 1 / (1 + math.exp(-margin))
    assert margin == pytest.approx(2 * 1.5**2 * 0.7 * (1 - sigmoid), abs=1e-12)
    C = covariance(posterior)
    variance = 2 * 1.5**2 / (1 + 2 * 1.5**2 * 0.7 * sigmoid * (1 - sigmoid))
    assert C[0, 0] + C[1, 1] - 2 * C[0, 1] == pytest.approx(variance, abs=1e-12)


@pytest.mark.parametrize(
    "s",
    [
        [0.25, 0.25, 0.5],
        [1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0],
        [1e-300, 1.0, 1e-310],
        [1 - 1e-15, 9e-16, 1e-16],
        [0.5, 0.5],
    ],
)
def test_multinomial_factor(s):
    s = np.array(s)
    G = np.full((len(s), len(s) - 1), np.nan)
    multinomial_factor(s, G)
    np.testing.assert_allclose(G @ G.T, np.diag(s) - np.outer(s, s), atol=3e-16)


def test_the_law_is_remembered_for_one_context_until_something_is_learnt():
    posterior = posterior_state(3, 2, 1.5)
    x, near, other = (as_contexts(v) for v in ([0.6, 0.8], [0.6, 0.7], [0.5, 0.8]))
    learn_label(posterior, x, 0, 1.0)
    logit_law(posterior, x)  # learnt meanwhile: anew
    np.testing.assert_allclose(posterior.law.z0, posterior.M @ x, atol=1e-15)
    for asked in (near, other, x):
        posterior.law.z0[:] = 7.0
        logit_law(posterior, asked)
        np.testing.assert_allclose(posterior.law.z0, posterior.M @ asked, atol=1e-15)
        posterior.law.z0[:] = 7.0
        logit_law(posterior, asked)  # the same again: remembered, whatever stands there
        assert (posterior.law.z0 == 7.0).all()


def test_integers_of_a_posterior_lie_in_their_ranges():
    posterior = posterior_state(4, 2, 1.0)
    least, most, divisor = posterior.limits()["tally"]
    assert (least.tolist(), most.tolist(), divisor.tolist()) == ([0, 0], [12, 2**53], [3, 1])
    assert posterior.law.limits() == {"fresh": (0, 1)}
    rng = np.random.default_rng(0)
    for _ in range(2 * DELAYED + 1):
        learn_label(posterior, as_contexts(rng.standard_normal(2)), 1, 0.5)
        assert posterior.tally[WAITING] % 3 == 0
        assert 0 <= posterior.tally[WAITING] <= 12
        assert posterior.law.fresh[0] == 0
    assert posterior.tally[WAITING] == 3


def test_a_root_that_was_missed_is_counted(monkeypatch):
    """Missed by more than 1e-10 of 1 + max |g|, where g = z0 + w Sigma e_y."""
    plain = getattr(implicit_logits, "py_func", implicit_logits)
    posterior = posterior_state(3, 1, 1.0)
    posterior.law.Sigma[:] = 4.0 * np.eye(3)
    for first, y, scale in (
        (5.0, 0, 8.0),
        (5.0, 1, 6.0),
        (5.0, 2, 6.0),
        (-2.0, 0, 1.25),
    ):  # max |g| = 7, 5, 5, 1/4, w = 1/2
        posterior.law.z0[:] = first, -0.25, 0.0
        for place in range(3):
            for part, missed in ((-0.99, 0), (0.99, 0), (1.01, 1), (-1.01, 1)):

                def solved(g, At, z, room, place=place, error=part * scale * 1e-10):
                    np.testing.assert_array_equal(At, 2.0 * np.eye(3))
                    room.r[:] = error * (np.arange(3) == place)

                monkeypatch.setattr(gaussian_posterior, "root", solved)
                posterior.tally[UNSOLVED] = 3
                plain(posterior, 0.5, y)
                assert posterior.tally[UNSOLVED] == 3 + missed
