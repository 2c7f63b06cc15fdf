"""Ranges of a state's integers: counts that float64 holds exactly, words of 64 bits, what the settings say."""

from __future__ import annotations

import numpy as np

from banditlab.numerics.limits import COUNT, WORD, constant


def test_counts_are_those_that_a_float_holds_exactly() -> None:
    least, most = COUNT
    assert least == 0
    assert float(most) == most == 9_007_199_254_740_992
    assert int(float(most + 1)) != most + 1  # the first that it does not
    assert int(float(most - 1)) == most - 1


def test_words_are_all_integers_of_64_bits() -> None:
    assert (np.iinfo(np.int64).min, np.iinfo(np.int64).max) == WORD


def test_constants_are_what_they_are_and_are_not_shared() -> None:
    value = np.array([3, 4])
    least, most = constant(value)
    value[0] = 9
    assert (least.tolist(), most.tolist()) == ([3, 4], [3, 4])
    least[0] = 5
    assert most.tolist() == [3, 4]
