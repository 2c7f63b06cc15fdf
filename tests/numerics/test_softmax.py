"""Softmax in its three forms, against scipy, at logits of all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from banditlab.numerics.softmax import add_softmax, log_softmax, softmax_into


@pytest.mark.parametrize("scale", [1e-8, 1.0, 30.0, 1e300])
def test_softmax_is_scipys(scale: float) -> None:
    z = scale * np.array([0.3, -1.0, 0.9, 0.1])
    s, logs = np.empty(4), z.copy()
    softmax_into(z, s)
    np.testing.assert_allclose(s, special.softmax(z), rtol=1e-13)
    log_softmax(logs)
    np.testing.assert_allclose(logs, special.log_softmax(z), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_shifted_softmax_is_added_to_the_sum(sign: float) -> None:
    z, n = np.array([800.0, 1.0, -3.0]), np.array([-1.0, 798.0, 2.0])
    total, v = np.array([1.0, 2.0, 3.0]), np.empty(3)
    add_softmax(z, n, sign, v, total)
    np.testing.assert_allclose(total, np.array([1.0, 2.0, 3.0]) + special.softmax(z + sign * n), rtol=1e-13)


@pytest.mark.parametrize("K", [1, 2, 3, 5])
def test_whichever_logit_is_the_largest_nothing_overflows(K: int) -> None:
    for top in range(K):
        z = np.where(np.arange(K) == top, 2000.0, np.linspace(-1.0, 1.0, K))
        s, logs, total, v = np.empty(K), z.copy(), np.zeros(K), np.empty(K)
        softmax_into(z, s)
        log_softmax(logs)
        add_softmax(np.zeros(K), z, 1.0, v, total)
        expected = np.arange(K) == top
        np.testing.assert_array_equal(s, expected)
        np.testing.assert_array_equal(total, expected)
        np.testing.assert_allclose(logs, z - 2000.0, atol=1e-12)
