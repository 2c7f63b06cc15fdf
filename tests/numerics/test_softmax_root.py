"""FOLKLORE's root at every size of what it is the root of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics.softmax_root import (
    TOLERANCE,
    RootScratch,
    root,
)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max())
    return e / e.sum()


def case(K: int, scale: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return At (K, K) of that size and g (K,)."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((K, K))
    return scale * Z @ Z.T, scale * rng.standard_normal(K)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e2, 1e4, 1e8])
def test_the_root_is_found_at_any_size_and_its_residual_is_what_is_left(scale: float) -> None:
    """Newton's whole steps cycle where At is large: they are halved."""
    for K in (1, 2, 3, 7):
        for seed in range(3):
            At, g = case(K, scale, seed)
            z, scratch = np.full(K, np.nan), RootScratch.empty(K)
            found = root(g, At, z, scratch)
            off = np.abs(z - g + At @ softmax(z)).max() / (1.0 + np.abs(g).max())
            assert 0.0 <= found <= max(1e-11, 1e-16 * scale)  # rounding comes first where At is large
            assert off <= 2.0 * max(1e-11, 1e-16 * scale)
            np.testing.assert_allclose(scratch.s, softmax(z), rtol=1e-13, atol=1e-300)
            np.testing.assert_allclose(scratch.a, At @ scratch.s, rtol=1e-12, atol=1e-12 * scale)
            assert found == np.abs(scratch.r).max() / (1.0 + np.abs(g).max())


@pytest.mark.parametrize("where", [math.inf, -math.inf, math.nan])
def test_no_root_where_a_number_is_none(where: float) -> None:
    At, g = case(3, 1.0)
    scratch = RootScratch.empty(3)
    for broken in (0, 2):
        h, z = g.copy(), np.zeros(3)
        h[broken] = where
        assert math.isnan(root(h, At, z, scratch))
        assert np.isnan([*z, *scratch.s]).all()
    assert TOLERANCE == 1e-11
