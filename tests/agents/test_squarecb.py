"""SquareCB's own: its weights, defaults and contract. The models it shares with FastCB are tested in test_fastcb."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from banditlab.agents.inverse_gap.squarecb import SquareCB, inverse_gap
from banditlab.problem import Problem


@pytest.mark.parametrize(("K", "d"), [(3, 1), (5, 9)])
def test_contract(one_bit_contract, stream, K, d):
    X, y = stream(K, d, 150, noise=0.3)
    one_bit_contract(lambda: SquareCB(Problem(d, K, 1.0), np.random.default_rng(7), sharpness=2.0), X, y)


def weights(z, g):
    p = np.full(len(z), np.nan)
    inverse_gap(np.array(z, dtype=float), float(g), p)
    return p


@given(
    st.lists(st.one_of(st.floats(-1000, 1000), st.floats(-5, 5)), min_size=2, max_size=12),
    st.floats(1e-3, 1e9),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_weights_are_a_distribution_that_pays_for_its_regret(z, g):
    p, z, K = weights(z, g), np.array(z), len(z)
    best = int(np.argmax(z))
    right = 1 / (1 + np.exp(-z.astype(np.longdouble)))
    assert p.min() >= 0.0
    assert abs(p.sum() - 1.0) <= 1e-12
    assert p[best] >= p.max() - 1e-15
    np.testing.assert_allclose(p[(z == z[best]) & (np.arange(K) != best)], 1.0 / K, rtol=1e-15)
    # sum_k p_k (right_best - right_k) <= (K - 1) / g: what exploring costs this round
    assert float(np.sum(p * (right[best] - right))) <= (K - 1) / g * (1 + 1e-9)
    expected = 1 / (K + g * (right[best] - right))
    np.testing.assert_allclose(np.delete(p, best), np.delete(expected, best).astype(float), rtol=1e-9, atol=1e-15)


def test_defaults():
    agent = SquareCB(Problem(4, 3, 2.0), np.random.default_rng(0))
    assert (agent.norm_bound, agent.regularization, agent.curvature) == (0.5, 0.003 * 4, 0.25)
    assert (agent.sharpness, agent.growth) == (200.0, 0.5)
    assert agent.bound(100) is None
