"""OnlineMBBM's bound by hand; Lemmas 9 and 10 are held against exact potentials in tests/boosting/test_potentials.py."""

from __future__ import annotations

import math

import pytest

from banditlab.bounds import THEOREMS
from banditlab.bounds.boosting_mbbm import mbbm_error_rate, mbbm_mistakes, mbbm_weight, simulated_excess


def test_theorem_2_by_hand():
    assert mbbm_mistakes(3, 10, 0.3, 1000, 2.0, 0.25, 7.5) == 0.25 * 1000 + 2 * 7.5
    assert mbbm_mistakes(3, 10, 0.3, 1000, 0.0) == pytest.approx(1000 * 2 * math.exp(-0.45))


def test_corollary_3_is_theorem_2_with_the_lemmas():
    weights = [mbbm_weight(4, 25 - i, 0.2) for i in range(1, 26)]
    assert mbbm_mistakes(4, 25, 0.2, 500, 3.0) == pytest.approx(mbbm_error_rate(4, 25, 0.2) * 500 + 3.0 * sum(weights))


def test_lemma_10_by_hand():
    """Two votes to come, k = 3, gamma = 0.4: steps +1, 0, -1 with 0.6, 0.2, 0.2, the likeliest sum being +2 at 0.36."""
    assert mbbm_weight(3, 0, 0.4) == 2.0
    assert mbbm_weight(3, 1, 0.4) == 2.0
    assert mbbm_weight(3, 2, 0.4) == 2.0  # 6 * 0.36 is more than k - 1
    # of ten sums the likeliest is 4, the mean
    chance = sum(
        math.comb(10, a) * math.comb(10 - a, a - 4) * 0.6**a * 0.2 ** (a - 4) * 0.2 ** (14 - 2 * a) for a in range(4, 8)
    )
    assert mbbm_weight(3, 10, 0.4) == pytest.approx(6 * chance, rel=1e-12)


def test_the_second_term_grows_like_the_root_of_n():
    sums = [sum(mbbm_weight(3, m, 0.1) for m in range(n)) for n in (100, 400, 1600)]
    assert sums[1] / sums[0] == pytest.approx(2.0, abs=0.1)
    assert sums[2] / sums[1] == pytest.approx(2.0, abs=0.05)


def test_the_excess_of_the_proof_of_theorem_4():
    assert simulated_excess(5, 0.2, 0.1, 0.05) == pytest.approx(5 * math.log(20) / (2 * 0.1))


def test_is_registered():
    assert THEOREMS["mbbm_mistakes"].unit == "mistakes"
    assert "Omega(ln(1/eps)/(k gamma)^2)" in THEOREMS["mbbm_mistakes"].printed
