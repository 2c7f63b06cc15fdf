"""The curvature constants behind FOLKLORE and AIOLI, and that the bounds are concave in the rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.bounds.curvature import is_admissible, margin_range, simple_curvature, tight_curvature
from banditlab.bounds.folklore import folklore, folklore_any_regularization
from banditlab.losses import log_sum_exp, softmax

CASES = [(2, 0.01), (2, 1.0), (3, 5.0), (5, 10.0), (10, 64.0)]


def largest_curvature(L: float) -> float:
    """The largest admissible constant, min over b < L of [sp(L) - sp(b) - s(b)(L - b)] / [s(b) s(-b) (L - b)^2]."""
    b = np.linspace(0.0, 0.999 * L, 4001)
    up, down = 1 / (1 + np.exp(-b)), np.exp(-b) / (1 + np.exp(-b))
    # sp(L) - sp(b) - s(b)(L - b) = (L - b) s(-b) + log1p(e^-L) - log1p(e^-b): nothing large cancels
    rise = (L - b) * down + math.log1p(math.exp(-L)) - np.log1p(np.exp(-b))
    return float((rise / (up * down * (L - b) ** 2)).min())


@pytest.mark.parametrize(("K", "BR"), CASES)
def test_curvature_constants(K: int, BR: float) -> None:
    L = margin_range(K, BR, 1.0)
    c = tight_curvature(L)
    b = math.acosh(1 / c - 1)
    assert b + math.sinh(b) == pytest.approx(L, rel=1e-9, abs=1e-7)
    assert simple_curvature(K, BR, 1.0) < c
    assert 0.96 * largest_curvature(L) <= c <= largest_curvature(L) * (1 + 1e-3 * (L < 0.1))


def test_how_far_the_tight_constant_is_from_the_largest() -> None:
    """By 3.87 % at most, at L = 5.3, which K = 5 and B R = 2 nearly have."""
    grid = np.append(np.geomspace(0.1, 200.0, 400), margin_range(5, 2.0, 1.0))
    short = np.array([1 - tight_curvature(L) / largest_curvature(L) for L in grid])
    assert (short >= 0).all()
    assert 100 * short.max() == pytest.approx(3.87, abs=0.01)
    assert 100 * short[-1] == pytest.approx(3.87, abs=0.01)
    assert grid[short.argmax()] == pytest.approx(5.3, abs=0.2)
    assert short[grid < 1].max() < 0.007
    assert short[grid > 50].max() < 0.007


@pytest.mark.parametrize("L", [0.0, 1e-9, 1e-3, 0.5, 5.3, 40.0, 1e3, 1e9, 1e200])
def test_what_is_admissible_without_a_root(L: float) -> None:
    assert is_admissible(tight_curvature(L), L)
    assert is_admissible(1 / (2 + L), L)
    assert tight_curvature(L) * (1 + 1e-12) >= 1 / (2 + L)
    assert not is_admissible(1.01 * tight_curvature(L), L)


@pytest.mark.parametrize(("K", "BR"), CASES)
def test_the_surrogate_is_a_lower_bound_with_the_tight_constant(K: int, BR: float) -> None:
    c, rng = tight_curvature(margin_range(K, BR, 1.0)), np.random.default_rng(0)
    target = np.where(rng.random((20_000, K)) < 0.5, -BR, BR)
    z = target + rng.standard_normal((20_000, 1)) * rng.standard_normal((20_000, K)) * BR
    z[::2] = rng.standard_normal((10_000, K)) * 3 * min(BR, 5)
    assert _excess(z, target, c).max() <= 1e-9 * max(1.0, BR)


def _excess(z: np.ndarray, target: np.ndarray, c: float) -> np.ndarray:
    """Surrogate at z minus loss, both at `target`; the label's own logit drops out."""
    s, step = softmax(z), target - z
    mean = (s * step).sum(axis=1)
    curvature = (s * step**2).sum(axis=1) - mean**2
    return log_sum_exp(z) + mean + c * curvature - log_sum_exp(target)


def test_the_printed_constant_fails_as_the_erratum_says() -> None:
    z, target, printed = np.array([[0.26, -0.26]]), np.array([[-1.0, 1.0]]), 1 / (1 + math.log(2) / 2)
    assert _excess(z, target, printed)[0] == pytest.approx(0.38, abs=0.01)
    assert _excess(z, target, tight_curvature(margin_range(2, 1.0, 1.0)))[0] < 0


@pytest.mark.parametrize("bound", [lambda T: folklore(T, 5, 3, 4.0, 1.0),
                                   lambda T: folklore_any_regularization(T, 5, 3, 4.0, 1.0, 1e-3, 0.05)])  # fmt: skip
def test_concave_in_the_number_of_rounds(bound) -> None:
    """The reduction's theorem uses Jensen's inequality on it."""
    values = np.array([bound(T) for T in np.linspace(0, 3000, 50)])
    assert (np.diff(values) > 0).all()
    assert (np.diff(values, 2) < 0).all()
