"""Where a theorem ends: on both sides of every hypothesis, and of every tolerance for rounding."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from banditlab.bounds.aioli import aioli, aioli_kernel
from banditlab.bounds.curvature import tight_curvature
from banditlab.bounds.folklore import (
    folklore,
    folklore_after,
    folklore_any_regularization,
    folklore_frobenius,
    folklore_inexact,
    folklore_kernel,
)
from banditlab.bounds.gaf import gaf, gaf_corollary_2, gaf_kernel, gaf_theorem_1
from banditlab.bounds.ons import ons
from banditlab.bounds.template import template_fixed, template_step

WITHIN, BEYOND = 5e-13, 1.5e-12
"""Relative distances from a limit: rounding is forgiven up to 1e-12, and no more."""


@pytest.mark.parametrize(
    "bound",
    [
        lambda off: ons(37, 3, 5, 0.7, 1.3, 0.31, 8 * math.exp(2 * 0.7 * 1.3) * (1 - off)),
        lambda off: gaf_theorem_1(37, 7, 0.7, 0.6, 1.7, 0.26, 2.3, 7 * 1.7 / 0.6 * (1 - off)),
        lambda off: gaf_theorem_1(37, 3, 0.7, 0.6, 1.7, 0.26, 2.3, 4 * 1.7 / 0.6 * (1 - off)),
        lambda off: template_fixed(5, 0.7, 1.3, template_step(5, 0.7, 0.3, "gap") * (1 + off), 0.3, 370, "gap"),
        lambda off: template_fixed(5, 0.7, 1.3, template_step(5, 0.7, 0.3, "half-log", True) * (1 + off), 0.3, 370),
        lambda off: template_fixed(5, 0.7, 1.3, template_step(5, 0.7, 0.3, delay=9) * (1 + off), 0.3, 370, delay=9),
    ],
    ids=[
        "ons",
        "gaf_theorem_1, d",
        "gaf_theorem_1, 4",
        "template_fixed",
        "template_fixed, wide",
        "template_fixed, late",
    ],
)
def test_a_step_or_a_regularization_may_miss_the_theorems_by_rounding_only(
    bound: Callable[[float], float],
) -> None:
    assert bound(WITHIN) == pytest.approx(bound(0.0), rel=1e-9)
    assert math.isnan(bound(BEYOND))


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
