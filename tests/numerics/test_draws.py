"""Draws from given uniforms, and what counts as an answer."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.draws import FEW, draw, draw_uniform, greedy_or_uniform, is_valid_decision

NAN, INF = float("nan"), float("inf")


def test_draw_inverts_the_distribution_function() -> None:
    rng = np.random.default_rng(0)
    for K in (2, 3, 10):
        p = rng.dirichlet(np.ones(K))
        for u in rng.random(200):
            assert draw(p, u) == int(np.searchsorted(np.cumsum(p), u, side="right"))


def test_draw_at_the_boundaries() -> None:
    p = np.array([0.25, 0.5, 0.25])
    assert [draw(p, u) for u in (0.0, 0.25 - 2**-40, 0.25, 0.75 - 2**-40, 0.75, 1.0 - 2**-53)] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("p", [[0.0, 1.0, 0.0], [0.0, 0.5, 0.0, 0.5, 0.0], [1.0, 0.0]])
def test_draw_never_returns_a_class_of_probability_zero(p: list[float]) -> None:
    drawn = {draw(np.array(p), u) for u in [*np.linspace(0.0, 1.0, 101, endpoint=False), np.nextafter(1.0, 0.0)]}
    assert drawn == {k for k, value in enumerate(p) if value > 0}


def test_draw_survives_a_sum_that_falls_short_of_one() -> None:
    p = np.array([0.5, 0.5 - 1e-12, 0.0])
    assert draw(p, np.nextafter(1.0, 0.0)) == 1


def test_few_classes_are_drawn_as_many_are() -> None:
    """Without a branch and with one: the same class, of multiples of a distribution and of what is none, too."""
    rng = np.random.default_rng(1)
    for K in (1, 2, 7, FEW):
        for _ in range(100):
            few = np.round(rng.exponential(size=K) * rng.integers(0, 2, K), 1)
            few[rng.random(K) < 0.05] = NAN
            many, sums = np.append(few, np.zeros(FEW)), np.nancumsum(few)
            for u in (*(sums[-1] * rng.random(5)), *sums, 0.0, 1.0):
                assert draw(few, u) == draw(many, u)


def test_draw_uniform_covers_every_class_evenly() -> None:
    for K in (2, 3, 7):
        counts = np.bincount([draw_uniform(K, u) for u in (np.arange(K * 1000) + 0.5) / (K * 1000)], minlength=K)
        assert counts.tolist() == [1000] * K
        assert draw_uniform(K, np.nextafter(1.0, 0.0)) == K - 1


@pytest.mark.parametrize(
    ("a", "p", "expected"),
    [
        (0, [0.5, 0.5], True),
        (1, [0.0, 1.0], True),
        (1, [0.5 + 5e-10, 0.5], True),
        (1, [0.5 - 9e-10, 0.5], True),
        (1, [0.5 + 1.5e-9, 0.5], False),
        (1, [0.5 - 1.5e-9, 0.5], False),
        (0, [1.0], True),
        (1, [1.0], False),
        (0, [0.0, 1.0], False),
        (-1, [0.5, 0.5], False),
        (2, [0.5, 0.5], False),
        (0, [0.5 + 2e-9, 0.5], False),
        (0, [0.5 - 2e-9, 0.5], False),
        (0, [1.5, -0.5], False),
        (0, [0.5, NAN], False),
        (0, [NAN, 1.0], False),
        (0, [0.5, INF], False),
        (0, [INF, -INF], False),
    ],
)
def test_what_an_answer_is(a: int, p: list[float], expected: bool) -> None:
    assert is_valid_decision(a, np.array(p)) == expected


def test_a_draw_from_nothing_is_still_a_class() -> None:
    for p in ([0.0], [NAN], [0.0, 0.0, 0.0], [NAN, NAN]):
        assert draw(np.array(p), 0.5) == 0


def test_a_coin_then_a_uniform_class() -> None:
    p = np.full(4, NAN)
    for gamma, u, expected in [
        (0.2, [0.0, 0.8], (3, True)),
        (0.2, [0.2 - 1e-12, 0.3], (1, True)),
        (0.2, [0.2, 0.3], (2, False)),  # the coin shows below gamma only
        (0.0, [0.0, 0.9], (2, False)),
        (1.0, [0.999, 0.1], (0, True)),
    ]:
        assert greedy_or_uniform(2, gamma, np.array(u), p) == expected
        np.testing.assert_allclose(p, gamma / 4 + (1.0 - gamma) * np.eye(4)[2], rtol=1e-15, atol=1e-17)
