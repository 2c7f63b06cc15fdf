"""The dual form against the quadratic it stands for, and its room: it doubles when it is full, and what it holds stays."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.kernel_quadratic import GAUSSIAN, LINEAR, POLYNOMIAL, Dual, dual_add, dual_form, kernel_value


def test_room_doubles_when_it_is_full_and_not_before():
    dual = Dual.empty(3, GAUSSIAN, 0.5, 0.1)
    assert [len(array) for array in (dual.X, dual.s, dual.beta, dual.r, dual.k, dual.a, dual.L)] == [64] * 6 + [
        64 * 65 // 2
    ]
    for array in (dual.X, dual.s, dual.beta, dual.r, dual.k, dual.a, dual.L):
        array[...] = np.random.default_rng(1).standard_normal(array.shape)
    assert dual.n.shape == (1,)
    dual.n[0] = 63
    assert dual.roomy() is dual
    dual.n[0] = 64
    wide = dual.roomy()
    assert wide.n[0] == 64
    assert (wide.kernel, wide.parameter, wide.regularization) == (GAUSSIAN, 0.5, 0.1)
    for old, new, length in zip(dual, wide, (1, *[128] * 4, 128 * 129 // 2, 0, 0, 0, 128, 128), strict=True):
        if length > 1:
            assert len(new) == length
            np.testing.assert_array_equal(new[: len(old)], old)
            assert not new[len(old) :].any()
    assert dual.limits()["n"] == (0, 64)
    assert wide.limits()["n"] == (0, 128)


def by_hand(kernel: int, parameter: float, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The kernel's matrix of the rows of X and Y."""
    if kernel == GAUSSIAN:
        return np.exp(-((X[:, None] - Y) ** 2).sum(axis=2) / (2.0 * parameter**2))
    return X @ Y.T if kernel == LINEAR else (1.0 + X @ Y.T) ** parameter


@pytest.mark.parametrize(("kernel", "parameter"), [(LINEAR, 0.0), (GAUSSIAN, 0.7), (POLYNOMIAL, 3.0)])
def test_the_dual_form_is_the_quadratic_in_the_features(kernel: int, parameter: float) -> None:
    """phi'A^{-1}b and phi'A^{-1}phi by the Gram matrix: A^{-1} = (1/lambda) (I - F'D^{1/2} (..)^{-1} D^{1/2} F)."""
    rng, lam, d = np.random.default_rng(3), 0.4, 3
    dual, X = Dual.empty(d, kernel, parameter, lam, room=4), 0.6 * rng.standard_normal((6, d))
    kappa, beta = rng.uniform(0.2, 1.5, 6), rng.standard_normal(6)
    for t, x in enumerate(X):
        x = as_contexts(x)
        own = by_hand(kernel, parameter, x[None], x[None])[0, 0]
        assert kernel_value(x, x, kernel, parameter) == pytest.approx(own, rel=1e-14)
        k, G = by_hand(kernel, parameter, X[:t], x[None])[:, 0], by_hand(kernel, parameter, X[:t], X[:t])
        root = np.sqrt(kappa[:t])
        core = np.linalg.inv(root[:, None] * G * root + lam * np.eye(t)) if t else np.zeros((0, 0))
        image = k - root * (core @ (root * k)) @ G  # k_x' less what A's other part takes off it
        m, q = dual_form(dual, x)
        assert q == pytest.approx((own - (root * k) @ core @ (root * k)) / lam, rel=1e-11)
        assert m == pytest.approx(image @ beta[:t] / lam, rel=1e-11, abs=1e-13)
        dual = dual.roomy()
        dual_form(dual, x)
        dual_add(dual, x, q, kappa[t], beta[t])
        assert dual.n[0] == t + 1
    assert len(dual.s) == 8
    np.testing.assert_array_equal(dual.X[:6], X)
    # a context as good as known has no variance below 0
    heavy = Dual.empty(1, LINEAR, 0.0, 1e-8)
    x = as_contexts(np.array([1.0 / 3.0]))
    for _ in range(4):
        _, q = dual_form(heavy, x)
        assert q >= 0.0
        dual_add(heavy, x, q, 1e9, 0.0)
