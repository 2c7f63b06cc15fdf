"""The largest of K scores, one by one or eight at a time."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents._scores import argmax
from banditlab.kernels import njit


@njit(cache=False)
def first_of_the_largest(z, K):
    return argmax(z, K)


@pytest.mark.parametrize("K", [1, 2, 7, 15, 16, 17, 23, 24, 50])
def test_the_first_of_the_largest(K):
    rng = np.random.default_rng(K)
    for t in range(300):
        z = rng.integers(-3, 3, K).astype(float) if t % 2 else rng.standard_normal(K) - 5.0  # ties, and none
        if t % 5 == 0:
            z[rng.integers(K)] = rng.choice([np.inf, -np.inf])
        assert first_of_the_largest(np.append(z, 9.0), K) == np.argmax(z)
    assert first_of_the_largest(np.where(rng.random(K) < 0.5, 0.0, -0.0), K) == 0
    assert first_of_the_largest(np.full(K, -np.inf), K) == 0
    assert 0 <= first_of_the_largest(np.full(K, np.nan), K) < K
