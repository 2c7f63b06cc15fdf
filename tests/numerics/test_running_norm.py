"""Norms kept up to date: when they are measured anew."""

from __future__ import annotations

import numpy as np

from banditlab.numerics.running_norm import fold, measured, note, running_norm


def test_a_square_that_falls_far_is_measured_anew():
    norm = running_norm()
    measured(norm, 1e8)
    assert not note(norm, -0.5e8, 100)
    assert note(norm, -0.5e8 + 1e-3, 100)  # what is left holds few digits
    measured(norm, 1e-3)
    assert [note(norm, 0.0, 3) for _ in range(3)] == [False, False, True]
    V = np.array([[3.0, 0.0], [0.0, 4.0]])
    norm[:4] = [0.5, 1.0, 1.0, 7.0]
    fold(V, norm)
    assert V.tolist() == [[1.5, 0.0], [0.0, 2.0]]
    assert norm[:4].tolist() == [1.0, 6.25, 6.25, 0.0]
