"""The logistic loss against finite differences, scipy and logits at the edge of float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import approx_fprime
from scipy.special import log_softmax as scipy_log_softmax
from scipy.special import logsumexp as scipy_logsumexp
from scipy.special import softmax as scipy_softmax

from banditlab.losses import LN2, hessian_action, log_sum_exp, logistic_gradient, logistic_loss, softmax

logits_in = arrays(np.float64, (3, 4), elements=st.floats(-700, 700))


@given(logits_in)
def test_softmax_log_sum_exp_and_loss_agree_with_scipy(z):
    np.testing.assert_allclose(softmax(z), scipy_softmax(z, axis=-1), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(log_sum_exp(z), scipy_logsumexp(z, axis=-1), rtol=1e-13, atol=1e-12)
    for label in range(4):
        labels = np.full(3, label)
        np.testing.assert_allclose(logistic_loss(z, labels), -scipy_log_softmax(z, axis=-1)[:, label], atol=1e-12)


@given(arrays(np.float64, 5, elements=st.floats(-30, 30)), st.floats(-1e3, 1e3))
def test_adding_a_constant_to_all_logits_changes_nothing(z, c):
    np.testing.assert_allclose(softmax(z + c), softmax(z), rtol=1e-10)
    assert logistic_loss(z + c, np.array(2)) == pytest.approx(float(logistic_loss(z, np.array(2))), abs=1e-11)


@pytest.mark.parametrize(
    ("z", "label", "loss"),
    [
        ([0.0, 0.0, 0.0], 1, math.log(3)),
        ([1e4, 0.0, -1e4], 0, 0.0),
        ([1e4, 0.0, -1e4], 2, 2e4),
        ([1e308, 0.0], 1, 1e308),
        ([-1e308, -1e308], 0, math.log(2)),
        ([-1000.0, -1001.0], 1, 1.0 + math.log1p(math.exp(-1.0))),
    ],
)
def test_extreme_logits_have_their_exact_loss(z, label, loss):
    z = np.array(z)
    assert float(logistic_loss(z, np.array(label))) == pytest.approx(loss, rel=1e-12, abs=1e-12)
    assert softmax(z).sum() == pytest.approx(1.0, abs=1e-15)
    assert np.isfinite(hessian_action(z, np.ones(len(z)))).all()


def test_gradient_agrees_with_finite_differences():
    rng = np.random.default_rng(0)
    for _ in range(5):
        W, x, label = rng.normal(size=(4, 3)), rng.normal(size=3), int(rng.integers(4))
        slow = approx_fprime(W.ravel(), lambda w, x=x, y=label: float(logistic_loss(w.reshape(4, 3) @ x, y)), 1e-7)
        np.testing.assert_allclose(logistic_gradient(W, x, label).ravel(), slow, atol=1e-6)


def test_hessian_action_agrees_with_differences_of_the_softmax_and_with_the_full_matrix():
    rng = np.random.default_rng(1)
    z, u, h = rng.normal(size=(6, 4)), rng.normal(size=(6, 4)), 1e-5
    fast = hessian_action(z, u)
    np.testing.assert_allclose(fast, (softmax(z + h * u) - softmax(z - h * u)) / (2 * h), atol=1e-9)
    for row in range(6):
        s = softmax(z[row])
        np.testing.assert_allclose(fast[row], (np.diag(s) - np.outer(s, s)) @ u[row], atol=1e-15)
    np.testing.assert_allclose(hessian_action(z, np.ones_like(z)), 0.0, atol=1e-15)  # constants lie in the kernel


def test_arrays_are_not_changed_and_bits_are_nats_over_ln_2():
    z = np.array([[1.0, 2.0, 3.0]])
    before = z.copy()
    softmax(z), log_sum_exp(z), logistic_loss(z, np.array([1])), hessian_action(z, z)
    np.testing.assert_array_equal(z, before)
    assert logistic_loss(np.zeros((1, 2)), np.array([0]))[0] / LN2 == pytest.approx(1.0, abs=1e-15)


def test_the_last_axis_is_the_classes_however_many_come_before():
    z = np.random.default_rng(2).normal(size=(2, 3, 4))
    labels = np.arange(6).reshape(2, 3) % 4
    for flat in (z[0, 0], z):
        assert log_sum_exp(flat) == pytest.approx(scipy_logsumexp(flat, axis=-1))
        np.testing.assert_allclose(softmax(flat), scipy_softmax(flat, axis=-1))
        s = scipy_softmax(flat, axis=-1)
        np.testing.assert_allclose(hessian_action(flat, flat), s * (flat - (s * flat).sum(axis=-1, keepdims=True)))
    own = np.take_along_axis(scipy_log_softmax(z, axis=-1), labels[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(logistic_loss(z, labels), -own)
