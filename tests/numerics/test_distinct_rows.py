"""Distinct contexts and their label counts."""

from __future__ import annotations

import numpy as np

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.distinct_rows import Distinct


def test_distinct_contexts() -> None:
    past = Distinct(2, 3)
    rows = [past.row(as_contexts(x)) for x in ([0.0, 1.0], [-0.0, 1.0], [1.0, 0.0])]
    assert rows == [0, 0, 1]
    for i in range(40):
        assert past.count(as_contexts([float(i), 2.0]), i % 3) == i + 2
    other = Distinct(2, 3)
    other.restore(past.arrays())
    assert past.C.sum() == 40
    np.testing.assert_array_equal(other.X, past.X)
    np.testing.assert_array_equal(other.C, past.C)
    assert other.row(as_contexts([39.0, 2.0])) == 41
