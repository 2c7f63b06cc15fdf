"""OGD against the plain numpy form, its certificate and its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.errors import UsageError
from banditlab.forecasters.ogd import OGD
from banditlab.losses import logistic_gradient, logistic_loss
from banditlab.numerics.contexts import as_contexts
from banditlab.problem import Problem


def stream(seed: int, n: int, d: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X *= 2.0 / np.maximum(2.0, np.linalg.norm(X, axis=1))[:, None]
    return as_contexts(X), rng.integers(0, K, n)


@pytest.mark.parametrize("step", ["theory", 0.3, 50.0])
def test_equals_the_plain_form(step: float | str) -> None:
    d, K, B, R = 3, 4, 1.5, 2.0
    X, y = stream(0, 200, d, K)
    ogd = OGD(Problem(d, K, R), None, norm_bound=B, step=step)
    first = math.sqrt(2 * K) * B / R if step == "theory" else step
    W, clipped = np.zeros((K, d)), 0
    for t, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        np.testing.assert_allclose(ogd.predict(x), W @ x, atol=1e-11)
        ogd.update(x, label)
        W = W - first / math.sqrt(t) * logistic_gradient(W, x, label)
        norms = np.linalg.norm(W, axis=1)
        clipped += (norms > B).sum()
        W *= np.minimum(1.0, B / np.maximum(norms, 1e-300))[:, None]
    if step != 0.3:
        assert clipped > 0


def test_ogds_running_norms_after_a_long_stream_are_the_fresh_ones() -> None:
    """Huge steps into a small ball: scales fall below a billionth again and again."""
    n, d, K, B = 400, 5, 3, 1e-3
    X, y = stream(3, n, d, K)[0], np.arange(n) % K
    player = OGD(Problem(d, K, 2.0), None, norm_bound=B, step=1e3)
    W = np.zeros((K, d))
    for t, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        player.update(x, int(label))
        p = np.exp(W @ x)
        W -= 1e3 / math.sqrt(t) * np.outer(p / p.sum() - np.eye(K)[label], x)
        W *= np.minimum(1.0, B / np.linalg.norm(W, axis=1))[:, None]
    np.testing.assert_allclose(player.weights, W, rtol=1e-9, atol=1e-15)
    state = player.state
    np.testing.assert_allclose(state.norms.square, (state.V**2).sum(axis=1), rtol=1e-9)
    assert (state.norms.scale >= 1e-9).all()


@pytest.mark.parametrize("step", ["theory", 0.5, 20.0])
@pytest.mark.parametrize("kind", ["noise", "fixed", "adversarial"])
def test_regret_below_certificate_below_bound(kind: str, step: float | str) -> None:
    d, K, B, n = 2, 3, 2.0, 400
    X, y = stream(1, n, d, K)
    ogd = OGD(Problem(d, K, 2.0), None, norm_bound=B, step=step)
    y, loss = y.copy(), 0.0
    for t, x in enumerate(X):
        z = ogd.predict(x)
        if kind != "noise":
            y[t] = np.argmin(z) if kind == "adversarial" else np.argmax(X[t, 0] > 0)
        loss += float(logistic_loss(z, y[t]))
        ogd.update(x, y[t])
    rng = np.random.default_rng(2)
    W = rng.standard_normal((500, K, d))
    W *= B * rng.random((500, 1, 1)) / np.linalg.norm(W, axis=2, keepdims=True)
    best = min(logistic_loss(X @ w.T, y).sum() for w in W)
    assert loss - best <= ogd.certificate() <= ogd.bound(n)


def test_bound_at_the_theory_step() -> None:
    ogd = OGD(Problem(3, 5, 2.0), None, norm_bound=3.0)
    assert ogd.bound(100) == pytest.approx(1.5 * (math.sqrt(2) * 2) * (2 * math.sqrt(5) * 3) * 10)


@pytest.mark.parametrize("wrong", [{"norm_bound": 0.0}, {"step": 0.0}, {"step": "adaptive"}])
def test_refusals(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        OGD(Problem(3, 5, 2.0), None, **wrong)
