"""The dual form's room: it doubles when it is full, and what it holds stays."""

from __future__ import annotations

import numpy as np

from banditlab.numerics.kernel_quadratic import GAUSSIAN, Dual


def test_room_doubles_when_it_is_full_and_not_before():
    dual = Dual.empty(3, GAUSSIAN, 0.5, 0.1)
    assert [len(array) for array in (dual.X, dual.s, dual.beta, dual.r, dual.k, dual.a, dual.L)] == [64] * 6 + [
        64 * 65 // 2
    ]
    for array in (dual.X, dual.s, dual.beta, dual.r, dual.k, dual.a, dual.L):
        array[...] = np.random.default_rng(1).standard_normal(array.shape)
    dual.n[0] = 63
    assert dual.roomy() is dual
    dual.n[0] = 64
    wide = dual.roomy()
    assert wide.n[0] == 64
    assert (wide.kernel, wide.parameter, wide.regularization) == (GAUSSIAN, 0.5, 0.1)
    for old, new, length in zip(dual, wide, (1, *[128] * 4, 128 * 129 // 2, 0, 0, 0, 128, 128), strict=True):
        if length > 1:
            assert len(new) == length
            np.testing.assert_array_equal(new[: len(old)], old)
            assert not new[len(old) :].any()
    assert dual.limits()["n"] == (0, 64)
    assert wide.limits()["n"] == (0, 128)
