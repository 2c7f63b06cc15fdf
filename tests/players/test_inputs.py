"""What callers hand over is checked before compiled code sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from banditlab.errors import UsageError
from banditlab.players.inputs import as_block, as_class, as_context, as_rows, as_vector


def test_good_inputs_pass_as_kernels_take_them() -> None:
    assert as_context([1, 2], 2).dtype == np.float64
    assert as_rows(np.zeros((0, 2)), 2).shape == (0, 2)
    X, y = as_block(np.zeros((2, 3), np.float32), np.array([0, 3], np.uint8), 3, 4)
    assert (X.dtype, y.dtype, y.tolist()) == (np.float64, np.int64, [0, 3])
    assert [as_class("k", value, 3) for value in (0, 2, np.int32(1), np.uint8(2))] == [0, 2, 1, 2]
    assert as_vector("v", None, 0).shape == (0,)
    assert as_vector("v", [1, 2], 2).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: as_context(np.zeros(3), 2), r"the context must be of shape \(2,\), got \(3,\)"),
        (lambda: as_context(np.zeros((1, 2)), 2), r"the context must be of shape \(2,\), got \(1, 2\)"),
        (lambda: as_context("ab", 2), "the context must be an array of numbers, got a str"),
        (lambda: as_context([[1.0], [1.0, 2.0]], 2), "the context must be an array of numbers, got a list"),
        (lambda: as_rows(np.zeros(2), 2), r"the contexts must be of shape \(n, 2\), got \(2,\)"),
        (lambda: as_rows(np.zeros((4, 3)), 2), r"the contexts must be of shape \(n, 2\), got \(4, 3\)"),
        (lambda: as_block(np.zeros((2, 2)), [0], 2, 3), r"the labels must be of shape \(2,\)"),
        (lambda: as_block(np.zeros((1, 2)), [3], 2, 3), r"the labels must lie in 0 ... 2, got 3 ... 3"),
        (lambda: as_block(np.zeros((1, 2)), [-1], 2, 3), r"the labels must lie in 0 ... 2, got -1"),
        (
            lambda: as_block(np.zeros((1, 2)), [1.0], 2, 3),
            "the labels must be integers in 0 ... 2, got an array of float64",
        ),
        (lambda: as_block(np.zeros((1, 2)), [True], 2, 3), "the labels must be integers"),
        (lambda: as_class("the label", 3, 3), "the label must be an integer in 0 ... 2, got 3"),
        (lambda: as_class("the label", -1, 3), "the label must be an integer in 0 ... 2, got -1"),
        (lambda: as_class("the label", 1.0, 3), "the label must be an integer"),
        (lambda: as_class("the label", np.float64(1), 3), "the label must be an integer"),
        (lambda: as_class("the label", True, 3), "the label must be an integer in 0 ... 2, got True"),
        (lambda: as_class("the label", np.True_, 3), "the label must be an integer"),
        (lambda: as_class("the label", None, 3), "the label must be an integer in 0 ... 2, got None"),
        (lambda: as_vector("the payload", None, 1), r"the payload must be of shape \(1,\), got None"),
        (lambda: as_vector("the payload", np.zeros(2), 1), r"the payload must be of shape \(1,\), got \(2,\)"),
    ],
)
def test_bad_inputs_are_refused_in_one_line(call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)
