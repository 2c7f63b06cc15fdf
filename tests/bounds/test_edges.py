"""Where a theorem ends: on both sides of every hypothesis, and of every tolerance for rounding."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from banditlab.bounds.aggregating import aggregating_fine_quadrature, quadrature_error, quadrature_nodes
from banditlab.bounds.aioli import aioli, aioli_kernel
from banditlab.bounds.boosting_mbbm import mbbm_mistakes, mbbm_weight
from banditlab.bounds.curvature import is_admissible, tight_curvature
from banditlab.bounds.exploration import exploration, exploration_well_specified, theorem_9_gamma
from banditlab.bounds.folklore import (
    folklore,
    folklore_after,
    folklore_any_regularization,
    folklore_error,
    folklore_frobenius,
    folklore_inexact,
    folklore_kernel,
)
from banditlab.bounds.gaf import gaf, gaf_corollary_2, gaf_kernel, gaf_sampling_high_probability, gaf_theorem_1
from banditlab.bounds.gaptron import gaptron_step
from banditlab.bounds.ons import ons
from banditlab.bounds.ovr_perceptron import ovr_perceptron_mistakes
from banditlab.bounds.template import template_fixed, template_step

WITHIN, BEYOND = 5e-13, 1.5e-12
"""Relative distances from a limit: rounding is forgiven up to 1e-12, and no more."""


@pytest.mark.parametrize("L", [0.3, 5.3, 40.0])
def test_a_curvature_may_exceed_the_constant_by_rounding_only(L: float) -> None:
    assert is_admissible(tight_curvature(L) * (1 + WITHIN), L)
    assert not is_admissible(tight_curvature(L) * (1 + BEYOND), L)


@pytest.mark.parametrize(
    "bound",
    [
        lambda off: ons(37, 3, 5, 0.7, 1.3, 0.31, 8 * math.exp(2 * 0.7 * 1.3) * (1 - off)),
        lambda off: gaf_theorem_1(37, 7, 0.7, 0.6, 1.7, 0.26, 2.3, 7 * 1.7 / 0.6 * (1 - off)),
        lambda off: gaf_theorem_1(37, 3, 0.7, 0.6, 1.7, 0.26, 2.3, 4 * 1.7 / 0.6 * (1 - off)),
        lambda off: template_fixed(5, 0.7, 1.3, template_step(5, 0.7, 0.3, "gap") * (1 + off), 0.3, 370, "gap"),
        lambda off: template_fixed(5, 0.7, 1.3, template_step(5, 0.7, 0.3, "half-log", True) * (1 + off), 0.3, 370),
    ],
    ids=["ons", "gaf_theorem_1, d", "gaf_theorem_1, 4", "template_fixed", "template_fixed, wide"],
)
def test_a_step_or_a_regularization_may_miss_the_theorems_by_rounding_only(
    bound: Callable[[float], float],
) -> None:
    assert bound(WITHIN) == pytest.approx(bound(0.0), rel=1e-9)
    assert math.isnan(bound(BEYOND))


def test_a_whole_number_of_corrections_is_not_rounded_down_by_rounding() -> None:
    """R^2 F^2 = 100, a little less, and less by more than rounding."""
    assert [ovr_perceptron_mistakes(4, 1.0, math.sqrt(100 * (1 - off))) for off in (0.0, WITHIN, BEYOND)] == [
        300,
        300,
        297,
    ]


K, d, B, R, T, LAM = 5, 3, 0.7, 1.3, 37, 0.61
ON_THE_BALL = 2 * B * R + math.log(K - 1)

CURVED: dict[str, tuple[float, Callable[[float], float]]] = {
    "aioli": (B * R, lambda c: aioli(T, d, B, R, LAM, c)),
    "aioli_kernel": (B * R, lambda c: aioli_kernel(T, 4.3, B, R, LAM, c)),
    "folklore": (ON_THE_BALL, lambda c: folklore(T, d, K, B, R, LAM, c)),
    "folklore_any_regularization": (ON_THE_BALL, lambda c: folklore_any_regularization(T, d, K, B, R, LAM, c)),
    "folklore_after": (ON_THE_BALL, lambda c: folklore_after(T, d, K, B, R, LAM, c)),
    "folklore_inexact": (ON_THE_BALL, lambda c: folklore_inexact(T, d, K, B, R, LAM, c, 0.017)),
    "folklore_kernel": (ON_THE_BALL, lambda c: folklore_kernel(T, 4.3, K, B, R, LAM, c)),
    # two rows differ by at most sqrt(2) D
    "folklore_frobenius": (
        math.sqrt(2) * B * R + math.log(K - 1),
        lambda c: folklore_frobenius(T, d, K, B, R, LAM, c),
    ),
    "gaf": (ON_THE_BALL, lambda c: gaf(T, d, K, B, R, LAM, c)),
    "gaf_kernel": (ON_THE_BALL, lambda c: gaf_kernel(T, 4.3, K, B, R, LAM, c)),
    "gaf_corollary_2": (ON_THE_BALL, lambda c: gaf_corollary_2(T, d, K, B, R, 200.0, 2 * c)),  # beta = 2 c
}


@pytest.mark.parametrize("name", CURVED)
def test_a_theorem_holds_up_to_the_largest_curvature_of_its_ball(name: str) -> None:
    margin, bound = CURVED[name]
    assert bound(tight_curvature(margin)) > 0
    assert math.isnan(bound(tight_curvature(margin) * 1.001))


def test_folklores_theorem_ends_where_c_r_squared_is_lambda_and_the_inexact_one_goes_on_with_the_other() -> None:
    c, R = 0.0625, 2.0  # c R^2 = 1/4, to the last bit
    below = math.nextafter(0.25, 0.0)
    assert folklore(T, d, K, B, R, 0.25, c) > 0
    assert math.isnan(folklore(T, d, K, B, R, below, c))
    assert folklore_inexact(T, d, K, B, R, 0.25, c, 0.0) == folklore(T, d, K, B, R, 0.25, c)
    assert folklore_inexact(T, d, K, B, R, below, c, 0.0) == folklore_any_regularization(T, d, K, B, R, below, c)
    assert folklore_any_regularization(T, d, K, B, R, below, c) != pytest.approx(folklore(T, d, K, B, R, 0.25, c))


@pytest.mark.parametrize(("K", "d", "least"), [(5, 3, 4 * 15 * 1.5**2), (2, 1, 4 * 4 * 1.5**2)])
def test_gafs_corollary_begins_at_four_max_4_kd_r_squared(K: int, d: int, least: float) -> None:
    assert gaf_corollary_2(T, d, K, B, 1.5, least) > 0
    assert math.isnan(gaf_corollary_2(T, d, K, B, 1.5, math.nextafter(least, 0.0)))


def test_sampling_says_nothing_from_an_error_of_a_half_on() -> None:
    """epsilon = sqrt(K ln(n/delta)/(mu m))."""
    log = math.log(37 / 0.07)
    for epsilon, said in ((0.49, True), (0.51, False)):
        m = 5 * log / (0.3 * epsilon**2)
        value = gaf_sampling_high_probability(37, 5, m, 0.3, 0.07)  # type: ignore[arg-type]
        assert math.isfinite(value) == said


def test_too_few_nodes_are_those_whose_error_is_above_a_half() -> None:
    errors = {nodes: quadrature_error(37, 0.7, 1.3, nodes) for nodes in range(15, 40)}
    assert sum(0.5 < error < 1.0 for error in errors.values()) >= 1
    for nodes, error in errors.items():
        assert math.isnan(aggregating_fine_quadrature(37, 0.7, 1.3, nodes)) == (error > 0.5)


def test_a_count_of_nodes_is_the_first_of_its_steps_that_is_enough() -> None:
    """From 100 upwards by tenths; the default is an error of one in a million."""
    assert quadrature_nodes(1, 0.1, 1.0) == 100
    assert [quadrature_nodes(10**5, 1.0, 1.0, error) for error in (1e-3, 2e-6, 1e-6)] == [2027, 2230, 2453]
    assert quadrature_nodes(10**5, 1.0, 1.0) == 2453
    assert quadrature_nodes(10**5, 1.0, 1.0, quadrature_error(10**5, 1.0, 1.0, 2453)) == 2453  # "at most"


def test_a_count_of_nodes_that_is_too_large_is_refused_with_its_numbers() -> None:
    with pytest.raises(ValueError) as caught:
        quadrature_nodes(1e250, 3e7, 2e8, 1e-5)
    assert str(caught.value) == (
        "no number of nodes up to 1e+15 brings the quadrature's error below 1e-05 at rounds = 1e+250, norm_bound = 3e+07, "
        "radius = 2e+08"
    )


def test_votes_beyond_4095_weigh_as_so_many() -> None:
    """More draws make no value more probable."""
    last, before = mbbm_weight(3, 4095, 0.3), mbbm_weight(3, 4094, 0.3)
    assert last < before
    assert mbbm_weight(3, 4096, 0.3) == mbbm_weight(3, 10**9, 0.3) == last
    near = mbbm_mistakes(3, 4095, 0.3, 0, 1.0)
    assert mbbm_mistakes(3, 5000, 0.3, 0, 1.0) == pytest.approx(near + 905 * last, rel=1e-12)


@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_pure_exploration_needs_no_forecaster(gamma: float) -> None:
    expected = 750.0 if gamma == 1.0 else math.inf
    assert exploration(1000, 4, gamma, math.inf) == expected
    assert exploration_well_specified(4, 1000.0, gamma, math.inf) == expected


def test_theorem_9_has_a_rate_for_every_problem_and_no_other() -> None:
    assert theorem_9_gamma(0.5, 2, 0.0) == 0.0
    assert theorem_9_gamma(10, 2, math.inf) == 1.0
    for arguments in [(0, 2, 1.0), (-1, 2, 1.0), (math.inf, 2, 1.0), (math.nan, 2, 1.0), (10, 1, 1.0), (10, math.inf, 1.0),
                      (10, 2, -5e-324), (10, 2, math.nan)]:  # fmt: skip
        assert math.isnan(theorem_9_gamma(*arguments))


def test_a_step_or_an_error_too_small_for_a_float_is_0() -> None:
    assert gaptron_step(5, 1e200, 0.3) == template_step(5, 1e200, 0.3) == folklore_error(37, 1e200, 0.31, 0.13) == 0.0
