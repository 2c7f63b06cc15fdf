"""How many steps of gradient descent an accuracy takes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics.descended_root import descended, descent_steps, newton_root


def test_steps_are_none_where_the_start_is_near_enough_and_grow_with_the_logarithm() -> None:
    assert [descent_steps(largest, 1e-6) for largest in (0.0, 0.5e-3, 1e-3)] == [0, 0, 0]
    assert descent_steps(1.1e-3, 1e-6) == 1
    for largest, accuracy in ((2.0, 1e-6), (50.0, 1e-2), (50.0, 1e-12)):
        steps = descent_steps(largest, accuracy)
        exact = (1.0 + largest / 2.0) * math.log(largest**2 / accuracy)
        assert exact <= steps < exact + 1.0


@pytest.mark.parametrize("largest", [1e-4, 1.0, 30.0, 1e4])
def test_newtons_root_solves_its_equation_and_descent_comes_as_near_as_it_says(largest: float) -> None:
    rng = np.random.default_rng(2)
    for K in (2, 5):
        Z = rng.standard_normal((K, K))
        At = Z @ Z.T
        At *= largest / np.linalg.eigvalsh(At)[-1]
        g = rng.standard_normal(K) * largest
        z, residual = newton_root(g, At)
        p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        off = np.abs(z - g + At @ p).max()
        assert off <= 1e-11 * (1.0 + np.abs(g).max())
        assert residual == pytest.approx(off / (1.0 + np.abs(g).max()), rel=1e-9, abs=0.0)
        if largest <= 30.0:
            near = descended(g, At, largest, descent_steps(largest, 1e-4))
            assert ((near - z) ** 2).sum() <= 1e-4


def test_the_first_two_steps_of_descent_by_hand() -> None:
    """v_1 = e At^{1/2} s(g), e = 1/(1 + largest/2), and z = g - At^{1/2} v has no root in it: z_1 = g - e At s(g)."""
    At, g, largest = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([0.5, -1.0]), 6.0
    softmax = lambda z: np.exp(z) / np.exp(z).sum()  # noqa: E731
    one = g - 0.25 * At @ softmax(g)
    two = one - 0.25 * (At @ softmax(one) + one - g)
    np.testing.assert_allclose(descended(g, At, largest, 0), g)
    np.testing.assert_allclose(descended(g, At, largest, 1), one, rtol=1e-12)
    np.testing.assert_allclose(descended(g, At, largest, 2), two, rtol=1e-12)
    # an eigenvalue that rounding has put below 0 is 0
    np.testing.assert_allclose(descended(g, np.diag([2.0, -1e-9]), 6.0, 1)[1], g[1])


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_newtons_root_where_the_softmax_is_far_from_a_corner(scale: float) -> None:
    """There the Jacobian I + At S is far from I, and whole steps may lead too far."""
    rng = np.random.default_rng(4)
    for K in (2, 3, 6):
        Z = rng.standard_normal((K, K))
        At = scale * Z @ Z.T
        z, residual = newton_root(At @ np.full(K, 1.0 / K) + rng.standard_normal(K), At)
        assert residual <= 1e-13
    # where the start is the root nothing moves
    z, residual = newton_root(np.array([2.0, 1.5]), np.array([[3.0, 1.0], [1.0, 2.0]]))
    assert (z.tolist(), residual) == ([0.0, 0.0], 0.0)
