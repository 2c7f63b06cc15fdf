"""The largest of K scores, one by one or eight at a time."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.argmax import argmax, runner_up
from banditlab.numerics.jit import njit


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


def one_by_one(z):
    """`argmax` as the comparison of one score after the other has it."""
    best = 0
    for k in range(1, len(z)):
        best = k if z[k] > z[best] else best
    return best


@pytest.mark.parametrize("K", [2, 15, 16, 17, 24, 29])
def test_nan_scores_are_passed_over_however_many_classes_there_are(K):
    rng = np.random.default_rng(K)
    assert first_of_the_largest(np.full(K, np.nan), K) == 0
    for k in range(K):  # one alone
        z = np.where(np.arange(K) == k, rng.standard_normal(), np.nan)
        assert first_of_the_largest(z, K) == one_by_one(z) == 0
    for t in range(400):
        z = rng.choice([np.nan, -np.inf, -1.0, 0.5, np.inf], K, p=[0.3, 0.2, 0.2, 0.25, 0.05])
        z[0] = [np.nan, -np.inf, -1.0, 0.5][t % 4]
        assert first_of_the_largest(np.append(z, 9.0), K) == one_by_one(z)


@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_runner_up_is_the_first_of_the_largest_others(K):
    rng = np.random.default_rng(K)
    for _ in range(60):
        v = rng.integers(-2, 2, K).astype(float)
        for y in range(K):
            others = [k for k in range(K) if k != y]
            assert runner_up(v, y, K) == max(others, key=lambda k, v=v: (v[k], -k))
