"""What callers hand over is checked before compiled code sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from banditlab.errors import UsageError
from banditlab.forecasters import OGD
from banditlab.numerics.sparse_rows import CSR, SparseRows
from banditlab.players.inputs import as_bit, as_block, as_class, as_context, as_rows, as_vector
from banditlab.problem import Problem


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
        (lambda: as_block(np.zeros((1, 2)), [[True, False]], 2, 2), r"the labels must be of shape \(1,\)"),
        (lambda: as_block(np.zeros((1, 2)), np.eye(2) > 0, 2, 2, several=True), r"the bits must be of shape \(1, 2\)"),
        (lambda: as_block(np.zeros((2, 2)), np.eye(2), 2, 2, several=True), "and bool, got .* float64"),
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


def test_a_norm_may_miss_the_radius_by_rounding_and_no_more() -> None:
    problem, x = Problem(2, 2, 5.0), np.array([3.0, 4.0])
    sparse = scipy.sparse.csr_array
    near, beyond = x * (1.0 + 0.9e-9), x * (1.0 + 1.5e-9)
    assert as_context(near, problem).tolist() == near.tolist()
    assert as_rows(np.array([x, near]), problem).shape == (2, 2)
    assert len(as_rows(sparse([x, near]), problem, sparse=True).indptr) == 3
    cut = SparseRows.of(sparse([near, x, near, beyond]))[1:]
    for given in (np.array([x, near, beyond]), sparse([x, near, beyond]), cut):
        with pytest.raises(
            UsageError, match=r"context 2 of the block must have a norm of at most R = 5, got 5\.000000007"
        ):
            as_rows(given, problem, sparse=True)
    with pytest.raises(UsageError, match=r"the context must have a norm of at most R = 5, got 5\.000000007"):
        as_context(beyond, problem)
    with pytest.raises(UsageError, match="context 1 of the block must be finite, got nan at 1"):
        as_rows(np.array([x, [3.0, np.nan], [np.inf, 0.0]]), problem)
    with pytest.raises(UsageError, match="context 1 of the block must be finite, got inf at 0"):
        as_rows(np.array([x, [np.inf, 0.0]]), 2)  # no problem, no radius
    assert as_rows(np.array([1e300 * x]), 2).shape == (1, 2)
    assert len(as_rows(sparse([1e300 * x]), 2, sparse=True).indptr) == 2
    huge = np.array([3e200, 4e200])
    with pytest.raises(UsageError, match=r"a norm of at most R = 5, got 5e\+200"):
        as_context(huge, problem)


def test_a_sparse_block_is_measured_row_by_row() -> None:
    """Rows without entries, first, last and between, have norm 0; what lies before and behind a part of a block is not read."""
    X = scipy.sparse.csr_array(np.array([[0, 0], [6, 0], [0, 0], [3, 4], [0, 0]], dtype=float))
    rows = as_rows(X, Problem(2, 2, 6.0), sparse=True)
    assert rows.indptr.tolist() == [0, 0, 1, 1, 3, 3]
    with pytest.raises(UsageError, match=r"context 1 of the block must have a norm of at most R = 5\.5, got 6"):
        as_rows(X, Problem(2, 2, 5.5), sparse=True)
    assert as_rows(X[2:], Problem(2, 2, 5.5), sparse=True).indptr.shape == (4,)
    assert as_rows(X[:0], Problem(2, 2, 5.5), sparse=True).indptr.shape == (1,)


def test_a_bit_is_0_or_1_in_any_type_of_number() -> None:
    values = (True, False, 1, 0, 1.0, np.False_, np.int8(1), np.float64(0))
    assert [as_bit(value) for value in values] == [True, False] * 4
    for wrong in (2, -1, 0.5, None, "1", np.ones(1)):
        with pytest.raises(UsageError, match="correct must be True, False, 1 or 0, got "):
            as_bit(wrong)


def test_sparse_blocks_become_dense_unless_kernels_take_them() -> None:
    problem, X = Problem(2, 3, 6.0), scipy.sparse.csr_array(np.array([[3.0, 4.0], [0.0, 1.0]]))
    for found in (as_rows(X, problem), as_block(X, [0, 2], problem, 3)[0]):
        assert isinstance(found, np.ndarray)
        assert found.tolist() == [[3.0, 4.0], [0.0, 1.0]]
    for found in (as_rows(X, problem, sparse=True), as_block(X, [0, 2], problem, 3, sparse=True)[0]):
        assert isinstance(found, CSR)
    for sparse in (False, True):
        with pytest.raises(UsageError, match=r"the contexts must be of shape \(n, 3\), got \(2, 2\)"):
            as_rows(X, 3, sparse=sparse)
    with pytest.raises(UsageError, match=r"the logits must be of shape \(2, 3\), got \(2, 2\)"):
        OGD(problem, None, norm_bound=1.0).forecast_block(X, [0, 2], np.empty((2, 2)))
    X, y = as_block(np.zeros((0, 2)), np.zeros(0, np.int64), 2, 3)
    assert (X.shape, y.shape) == ((0, 2), (0,))
