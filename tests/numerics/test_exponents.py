"""Powers of two that keep squares from being lost: which numbers have one, and that dividing is exact."""

from __future__ import annotations

import numpy as np

from banditlab.numerics.exponents import divided, exponent


def test_only_numbers_whose_square_would_be_lost_have_an_exponent() -> None:
    plain = [0.0, 1e-100, 1.5e-100, 1.0, 3.0, 1e99, 1e100]
    assert exponent(plain).tolist() == [0] * len(plain)
    for x in (np.nextafter(1e-100, 0.0), 3e-200, 5e-324, np.nextafter(1e100, np.inf), 1.5e100, 1e300):
        e = int(exponent(x))
        assert e != 0
        assert 0.5 <= float(np.ldexp(x, -e)) < 1.0
    assert exponent(1e300).dtype == np.int64


def test_dividing_is_exact_and_leaves_plain_numbers_as_they_are() -> None:
    X = np.array([[3e200, 4e200], [3.0, 4.0]])
    e = exponent(X.max(axis=1))
    Y = divided(X, e[:, None])
    assert np.abs(Y[0]).max() < 1.0
    np.testing.assert_array_equal(np.ldexp(Y, e[:, None]), X)
    np.testing.assert_array_equal(Y[1], X[1])
    assert divided(X[1:], e[1:, None]) is not None
    np.testing.assert_array_equal(divided(X[1:], np.zeros((1, 1), np.int64)), X[1:])
