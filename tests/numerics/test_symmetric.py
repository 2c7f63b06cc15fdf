"""Symmetric matrices kept whole: P x, P - s v v', and products over a context's non-zero entries only, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.symmetric import rank_one_downdate, support, symmetric_matvec, symmetric_matvec_on

CASES = [(d, n) for d in (1, 3, 16, 17, 64, 65, 100) for n in sorted({0, 1, d // 5, d // 3, d // 2, 3 * d // 4, d})]


def case(d: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a positive definite P (d, d) and a context with n entries other than 0."""
    rng = np.random.default_rng(1000 * d + n)
    A, x = rng.standard_normal((d, d)), rng.standard_normal(d)
    x[rng.permutation(d)[n:]] = 0.0
    return A @ A.T + np.eye(d), as_contexts(x)


@pytest.mark.parametrize(("d", "n"), CASES)
def test_products_over_the_support(d: int, n: int) -> None:
    P, x = case(d, n)
    index, out, dense = np.full(d, -7), np.full(d, np.nan), np.empty(d)
    assert support(x, index) == n
    np.testing.assert_array_equal(index[:n], np.flatnonzero(x))
    symmetric_matvec_on(P, x, index, n, out)
    symmetric_matvec(P, x, dense)
    np.testing.assert_allclose(out, P @ x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out, dense, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [5, 30, 60])
def test_nan_is_not_zero(n: int) -> None:
    P, x = case(64, n)
    broken = x.copy()
    broken[np.flatnonzero(x)[0]] = np.nan
    index, out = np.zeros(64, np.int64), np.zeros(64)
    assert support(as_contexts(broken), index) == n
    symmetric_matvec_on(P, as_contexts(broken), index, n, out)
    assert np.isnan(out).all()


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 8, 65])
def test_symmetric_kernels(d: int) -> None:
    rng = np.random.default_rng(d)
    A, x, v = rng.standard_normal((d, d)), rng.standard_normal(d), rng.standard_normal(d)
    P, out = A @ A.T + np.eye(d), np.empty(d)
    symmetric_matvec(P, x, out)
    np.testing.assert_allclose(out, P @ x, rtol=1e-12, atol=1e-12)
    expected = P - 0.3 * np.outer(v, v)
    rank_one_downdate(P, v, 0.3)
    np.testing.assert_allclose(P, expected, atol=1e-12)
    np.testing.assert_array_equal(P, P.T)
