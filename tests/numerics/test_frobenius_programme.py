"""Newtron's quadratic programme: its conditions of optimality, and repairs of spoilt inverses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frobenius_programme import (
    EXCESS,
    SOLUTION,
    STALLED,
    WORST_DRIFT,
    add,
    check_drift,
    programme_state,
    solve,
)
from banditlab.numerics.packed_symmetric import dense


def test_solution_satisfies_the_conditions_of_the_programme():
    """Stationarity on the true C_k, zero sums, the ball: with large b and ill-conditioned blocks."""
    rng = np.random.default_rng(5)
    K, d, D = 6, 12, 4.0
    qp = programme_state(K, d, 1 / D, D)
    C, b = np.tile(np.eye(d) / D, (K, 1, 1)), np.zeros((K, d))
    for _ in range(500):
        i, x = int(rng.integers(K)), rng.standard_normal(d) / math.sqrt(d)
        weight, step = 10.0 ** rng.uniform(-6, 2), 10.0 ** rng.uniform(0, 3) * rng.standard_normal()
        add(qp, i, as_contexts(x), weight, step)
        solve(qp)
        C[i] += weight * np.outer(x, x)
        b[i] += step * x
        nu, W = qp.nu[SOLUTION], qp.W[:, -d:]
        force = np.einsum("kij,kj->ki", C, W) + nu * W + b
        residual = force - force.mean(axis=0)
        assert np.abs(residual).max() < 1e-10 * np.abs(b).max()
        assert np.abs(W.sum(axis=0)).max() < 1e-13 * D
        assert np.linalg.norm(W) <= D * (1 + 1e-14)
        assert nu == 0.0 or np.linalg.norm(W) == pytest.approx(D, rel=1e-12)
    assert qp.tally[STALLED] == 0


def test_a_spoilt_inverse_is_found_and_repaired():
    rng = np.random.default_rng(6)
    qp = programme_state(3, 5, 0.5, 2.0)
    for _ in range(50):
        add(qp, int(rng.integers(3)), as_contexts(rng.standard_normal(5)), 0.1, 1.0)
        solve(qp)
    exact = qp.W.copy()
    qp.tally[EXCESS] = 0  # no move of nu0 repairs it on the way
    qp.N[1] *= 1.001
    solve(qp)
    assert np.abs(qp.W - exact).max() > 1e-6
    check_drift(qp)
    solve(qp)
    np.testing.assert_allclose(qp.W, exact, atol=1e-11)


@pytest.mark.parametrize("D", [2.0, 1e8, np.inf])
def test_a_slightly_spoilt_inverse_is_repaired_however_large_the_ball(D):
    """An error is small beside W, not beside the radius of a ball that W is far from."""
    rng = np.random.default_rng(6)
    qp = programme_state(3, 5, 0.5, D)
    for _ in range(50):
        add(qp, int(rng.integers(3)), as_contexts(rng.standard_normal(5)), 0.1, 1.0)
        solve(qp)
    exact = qp.W.copy()
    qp.tally[EXCESS] = 0
    qp.N[1] *= 1.0 + 1e-6
    qp.h[1, -5:] = dense(qp.N[1], 5) @ qp.b[1, -5:]
    solve(qp)
    check_drift(qp)
    assert qp.nu[WORST_DRIFT] > 1e-8
    solve(qp)
    np.testing.assert_allclose(qp.W, exact, atol=1e-11 * np.linalg.norm(exact))
