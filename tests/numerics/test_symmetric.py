"""Symmetric matrices kept whole: P x, P - s v v', and products over a context's non-zero entries only, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import njit
from banditlab.numerics.symmetric import dot, rank_one_downdate, support, symmetric_matvec, symmetric_matvec_on

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


@pytest.mark.parametrize("n", [5, 30, 48])
def test_rows_off_the_support_are_not_read(n: int) -> None:
    """The sparse way must not touch what x does not name: 0 times infinity would be NaN."""
    P, x = case(64, n)
    index, out, again = np.zeros(64, np.int64), np.zeros(64), np.zeros(64)
    support(x, index)
    symmetric_matvec_on(P, x, index, n, out)
    P[x == 0.0] = np.inf
    symmetric_matvec_on(P, x, index, n, again)
    np.testing.assert_array_equal(again, out)


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


def test_more_than_three_quarters_of_a_context_are_read_in_order() -> None:
    """All rows, those that the context does not name, too: the list is slower there."""
    P, x = case(64, 49)
    index, out = np.zeros(64, np.int64), np.zeros(64)
    support(x, index)
    P[x == 0.0] = np.inf
    symmetric_matvec_on(P, x, index, 49, out)
    assert np.isnan(out).all()


@njit
def dot_of(x, y):  # type: ignore[no-untyped-def]
    return dot(x, y)


def test_the_order_of_sums() -> None:
    """Four sums side by side, the rest to the first; rows four a pass: beside 1e16 a 1 alone is lost, two are not."""
    for x, sum_ in (
        ([1e16, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], 1e16 + 2.0),
        ([1e16, 0.0, 1.0, 1.0], 1e16 + 2.0),
        ([1.0, 1e16, 0.0, 0.0, 1.0], 1e16 + 2.0),
        ([0.0, 1e16, 0.0, 0.0, 1.0, 1.0], 1e16 + 2.0),
    ):
        assert dot_of(np.array(x), np.ones(len(x))) == sum_
    for d in range(10):
        assert dot_of(np.arange(1.0, d + 1), np.arange(3.0, d + 3) ** 2) == sum(
            (j + 1) * (j + 3) ** 2 for j in range(d)
        )
    four = [1e16, 1.0, -1e16, 1.0]
    for x, sum_ in ((four, 0.0), ([1.0, -1.0, 1.0, -1.0, *four], 0.0), ([*four, 1.0], 1.0), (four[:3], 0.0)):
        out = np.full(len(x), np.nan)
        symmetric_matvec(np.ones((len(x), len(x))), np.array(x), out)
        assert out.tolist() == [sum_] * len(x)
        # the same as the entries of a context of zeros
        d = 4 * len(x)
        wide, index, out = np.zeros(d), np.zeros(d, np.int64), np.full(d, np.nan)
        wide[1::4] = x
        symmetric_matvec_on(np.ones((d, d)), as_contexts(wide), index, support(as_contexts(wide), index), out)
        assert out.tolist() == [sum_] * d
