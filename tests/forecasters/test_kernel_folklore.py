"""Kernels for K > 2: the linear kernel is the plain learner, monomials are the polynomial one, Nystroem keeps its promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from banditlab.bounds.folklore import folklore_any_regularization, folklore_kernel
from banditlab.comparators import best_in_ball
from banditlab.errors import UsageError
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.fourier import FourierFOLKLORE
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.kernel_folklore import KernelFOLKLORE
from banditlab.forecasters.kernel_gaf import KernelGAF
from banditlab.losses import logistic_loss
from banditlab.problem import Problem

K, D, N = 3, 2, 50
NODES: dict[str, Any] = {"nodes": "cubature", "regularization": 1.0}


def stream(n: int = N, repeated: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    X = X[rng.integers(0, 3, n)] if repeated else X
    return X, rng.integers(0, K, n)


def agree(one: Any, two: Any, X: Any, Xi: Any, y: Any, atol: float) -> None:
    for x, xi, label in zip(X, Xi, y, strict=True):
        a, b = one.predict(x), two.predict(xi)
        np.testing.assert_allclose(a - a.mean(), b - b.mean(), atol=atol)
        one.update(x, int(label))
        two.update(xi, int(label))
    np.testing.assert_allclose(one.predict_many(X), [one.predict(x) for x in X], atol=1e-12)


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize(("cls", "plain", "settings"), [(KernelFOLKLORE, FOLKLORE, {}), (KernelGAF, GAF, NODES)])
@pytest.mark.few(1)
def test_the_linear_kernel_is_the_plain_learner(cls: Any, plain: Any, settings: Any, repeated: bool) -> None:
    X, y = stream(repeated=repeated)
    one = cls(Problem(D, K, 1.0), None, kernel="linear", norm_bound=2.0, **settings)
    two = plain(Problem(D, K, 1.0), None, norm_bound=2.0, **settings)
    agree(one, two, X, X, y, 1e-6)
    assert one.certificate() == pytest.approx(two.certificate(), abs=1e-5)
    assert int(one.state.span.rank[0]) == D


def test_the_polynomial_kernel_is_folklore_on_its_monomials() -> None:
    X, y = stream()
    r = math.sqrt(2.0)
    F = np.stack([np.ones(N), r * X[:, 0], r * X[:, 1], X[:, 0] ** 2, X[:, 1] ** 2, r * X[:, 0] * X[:, 1]], axis=1)
    one = KernelFOLKLORE(Problem(D, K, 1.0), None, kernel="polynomial")
    two = FOLKLORE(Problem(6, K, 2.0), None)
    agree(one, two, X, F, y, 1e-6)
    assert one.curvature == two.curvature


@pytest.mark.parametrize("landmarks", [0, 4])
@pytest.mark.parametrize(("cls", "settings"), [(KernelFOLKLORE, {}), (KernelGAF, NODES)])
def test_the_regret_against_the_space_is_below_its_certificate(cls: Any, settings: Any, landmarks: int) -> None:
    X, y = stream()
    for B in (0.1, 3.0):
        player = cls(Problem(D, K, 1.0), None, norm_bound=B, bandwidth=0.5, landmarks=landmarks, **settings)
        loss = 0.0
        for x, label in zip(X, y, strict=True):
            loss += float(logistic_loss(player.predict(x), int(label)))
            player.update(x, int(label))
        values, vectors = np.linalg.eigh(player.gram(X, X))
        features = vectors * np.sqrt(np.maximum(values, 0.0))
        regret = loss - best_in_ball(features, np.eye(K)[y], B).loss
        assert regret <= player.space_certificate()
        assert math.isnan(player.certificate())
        assert player.bound(N) is None
        if landmarks:
            assert int(player.state.span.rank[0]) == 4
            assert float(player.state.span.lost[0]) > 1.0
        elif cls is KernelFOLKLORE:
            c, lam = player.curvature, player.regularization
            size = player.effective_dimension(X, 2.0 * lam / c)
            assert player.space_certificate() <= folklore_kernel(N, size, K, B, 1.0, lam, c) + 1e-3


def test_the_effective_dimension_of_orthogonal_contexts() -> None:
    player = KernelFOLKLORE(Problem(3, 2, 1.0), None, kernel="linear")
    assert player.effective_dimension(0.5 * np.eye(3), 0.25) == pytest.approx(1.5)  # eigenvalues .25


@pytest.mark.slow
def test_random_features_are_folklore_on_them() -> None:
    X, y = stream()
    fourier = FourierFOLKLORE(Problem(D, K, 1.0), np.random.default_rng(1), features=20)
    plain = FOLKLORE(Problem(20, K, 1.0), None)
    agree(fourier, plain, X, fourier.phi(X), y, 1e-10)
    np.testing.assert_allclose(np.linalg.norm(fourier.phi(X), axis=1), 1.0)
    assert fourier.space_certificate() == pytest.approx(plain.certificate(), rel=1e-9)
    assert fourier.space_bound(N) == plain.bound(N)
    many = FourierFOLKLORE(Problem(D, K, 1.0), np.random.default_rng(1), features=4000)
    kernel = KernelFOLKLORE(Problem(D, K, 1.0), None)
    np.testing.assert_allclose(many.phi(X) @ many.phi(X).T, kernel.gram(X, X), atol=0.1)


@pytest.mark.parametrize(("features", "d"), [(2, 1), (6, 7), (2, 1030), (10, 1040)])
def test_the_kernel_computes_the_features_of_numpy(features: int, d: int) -> None:
    fourier = FourierFOLKLORE(Problem(d, 2, 1.0), np.random.default_rng(3), features=features)
    x = np.random.default_rng(d).standard_normal((1, d)) / (2.0 * math.sqrt(d))
    fourier.predict(x[0] / max(1.0, np.linalg.norm(x)))
    np.testing.assert_allclose(fourier.state.phi, fourier.phi(x / max(1.0, np.linalg.norm(x)))[0], atol=1e-13)


def test_blocks_are_single_rounds() -> None:
    X, y = stream()
    one, two = (FourierFOLKLORE(Problem(D, K, 1.0), np.random.default_rng(1), features=20) for _ in range(2))
    logits = np.empty((N, K))
    one.forecast_block(X, y, logits)
    for x, label, z in zip(X, y, logits, strict=True):
        np.testing.assert_allclose(two.predict(x), z, atol=1e-12)
        two.update(x, int(label))


def test_settings_are_refused() -> None:
    problem = Problem(D, K, 1.0)
    with pytest.raises(UsageError, match="rng must be"):
        FourierFOLKLORE(problem, None)
    with pytest.raises(UsageError, match="even"):
        FourierFOLKLORE(problem, np.random.default_rng(0), features=5)
    with pytest.raises(UsageError, match="kernel must be one of"):
        KernelFOLKLORE(problem, None, kernel="cubic")
    with pytest.raises(UsageError, match="landmarks must be at least 0"):
        KernelFOLKLORE(problem, None, landmarks=-1)


@pytest.mark.parametrize(("kernel", "radius", "dimension"), [("linear", 2.0, 3), ("polynomial", 5.0, 10)])
def test_a_kernels_bound_is_in_the_dimensions_that_rounds_can_span(kernel: Any, radius: float, dimension: int) -> None:
    player = KernelFOLKLORE(Problem(3, 3, 2.0), None, kernel=kernel, norm_bound=1.5, tolerance=1e-4)
    for rounds, d in ((500, dimension), (2, 2), (0, 1)):
        theorem = folklore_any_regularization(rounds, d, 3, 1.5, radius, player.regularization, player.curvature)
        assert player.bound(rounds) == pytest.approx(theorem + 2.0 * 1.5 * 1e-4 * radius * rounds)
    exact = KernelFOLKLORE(Problem(3, 3, 2.0), None, kernel=kernel, norm_bound=1.5, tolerance=0.0)
    theorem = folklore_any_regularization(500, dimension, 3, 1.5, radius, player.regularization, player.curvature)
    assert exact.bound(500) - theorem == pytest.approx(2.0 * 1.5 * 1e-7 * radius * 500, rel=1e-6)
