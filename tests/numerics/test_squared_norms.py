"""The one pass over a block that is checked: which row is the first beyond a ball."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.squared_norms import first_beyond


@pytest.mark.parametrize("d", [1, 7, 8, 9, 15, 16, 17, 24, 31, 33])
def test_every_entry_counts(d):
    ones = np.ones((5, d))
    assert first_beyond(as_contexts(ones), d * (1.0 + 1e-12)) == 5
    assert first_beyond(as_contexts(ones), d * (1.0 - 1e-12)) == 0
    for j in range(d):
        for value in (1.001, -1.001, np.nan, np.inf, -np.inf, 1e200):
            X = ones.copy()
            X[3, j] = value
            assert first_beyond(as_contexts(X), d * (1.0 + 1e-12)) == 3
        X[3, j] = 0.0
        assert first_beyond(as_contexts(X), d * (1.0 + 1e-12)) == 5


def test_a_block_without_rows_or_with_small_numbers():
    assert first_beyond(as_contexts(np.zeros((0, 3))), 1.0) == 0
    assert first_beyond(as_contexts(np.full((2, 20), 1e-200)), 1e-200) == 2


@pytest.mark.parametrize("d", [1, 8, 16, 17, 40])
def test_a_row_on_the_sphere_is_within(d):
    assert first_beyond(as_contexts(np.ones((3, d))), float(d)) == 3
    assert first_beyond(as_contexts(np.ones((3, d))), np.nextafter(float(d), 0.0)) == 0
