"""OnlineMBBM's bound against its lemmas; those are held against exact potentials in tests/boosting/test_potentials.py."""

from __future__ import annotations

import pytest

from banditlab.bounds import THEOREMS
from banditlab.bounds.boosting_mbbm import mbbm_error_rate, mbbm_mistakes, mbbm_weight


def test_corollary_3_is_theorem_2_with_the_lemmas():
    weights = [mbbm_weight(4, 25 - i, 0.2) for i in range(1, 26)]
    assert mbbm_mistakes(4, 25, 0.2, 500, 3.0) == pytest.approx(mbbm_error_rate(4, 25, 0.2) * 500 + 3.0 * sum(weights))


def test_the_second_term_grows_like_the_root_of_n():
    sums = [sum(mbbm_weight(3, m, 0.1) for m in range(n)) for n in (100, 400, 1600)]
    assert sums[1] / sums[0] == pytest.approx(2.0, abs=0.1)
    assert sums[2] / sums[1] == pytest.approx(2.0, abs=0.05)


def test_is_registered():
    assert THEOREMS["mbbm_mistakes"].unit == "mistakes"
    assert r"$\Omega(\ln(1/\epsilon)/(k \gamma)^2)$" in THEOREMS["mbbm_mistakes"].printed
