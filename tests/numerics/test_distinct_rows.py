"""Distinct contexts and their label counts."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_what_is_no_table_of_contexts_is_refused_and_room_doubles() -> None:
    past = Distinct(2, 3)
    for i in range(17):
        past.count(as_contexts([float(i), 1.0]), 2, 0.5)
    assert past.X.tolist() == [[float(i), 1.0] for i in range(17)]
    assert past.C.tolist() == [[0.0, 0.0, 0.5]] * 17
    good = past.arrays()
    for name, wrong in (
        ("X", np.zeros((17, 3))),
        ("C", np.zeros((17, 2))),
        ("C", np.zeros((16, 3))),
        ("X", np.zeros((17, 2), np.float32)),
        ("X", np.full((17, 2), np.nan)),
        ("C", np.where(good["C"] > 0.0, np.inf, good["C"])),
        ("C", [[0.0] * 3] * 17),
    ):
        with pytest.raises(ValueError, match=f"^the contexts' array {name} must have rows of"):
            Distinct(2, 3).restore(good | {name: wrong})
