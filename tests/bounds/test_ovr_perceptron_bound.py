"""The one-vs-rest perceptron's bound: the separable case by hand, and the quadratic it solves."""

from __future__ import annotations

import math

import pytest

from banditlab.bounds.ovr_perceptron import ovr_perceptron_mistakes


def test_the_separable_case_is_the_papers():
    for gamma in (0.1, 0.3, 1.0):
        assert ovr_perceptron_mistakes(5, 1.5, 2 / gamma) == 4 * math.floor(4 * 1.5**2 / gamma**2 + 1e-9)
    assert ovr_perceptron_mistakes(2, 1.0, 3.0) == 9.0
    assert ovr_perceptron_mistakes(3, 0.5, 1.0) == 0.0


@pytest.mark.parametrize("L", [0.0, 0.3, 7.0, 1e4])
@pytest.mark.parametrize("rf", [0.2, 3.0, 40.0])
def test_is_the_largest_number_of_corrections_the_inequality_allows(L, rf):
    allowed = [n for n in range(40_000) if n <= L + rf * math.sqrt(n) + 1e-9]
    assert ovr_perceptron_mistakes(2, 1.0, rf, L) == max(allowed)
    assert ovr_perceptron_mistakes(2, 1.0, rf, L) <= L + rf * math.sqrt(L) + rf**2
