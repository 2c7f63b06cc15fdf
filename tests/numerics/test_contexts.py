"""Contexts as kernels take them, and one function for dense and sparse ones."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse

from banditlab.numerics.contexts import as_contexts, by_context, by_type, row, stretch
from banditlab.numerics.jit import njit
from banditlab.numerics.sparse_rows import SparseRow, SparseRows
from banditlab.players.inputs import as_rows


def test_contexts_are_read_only_and_not_copied() -> None:
    X = np.arange(6.0).reshape(2, 3)
    view = as_contexts(X)
    assert np.shares_memory(view, X)
    assert not view.flags.writeable
    assert X.flags.writeable  # the caller's own array stays as it was


@pytest.mark.parametrize(
    "given",
    [np.arange(6).reshape(2, 3), np.arange(6.0, dtype=np.float32).reshape(2, 3), np.arange(6.0).reshape(3, 2).T],
)
def test_any_array_becomes_float64_in_c_order(given: Any) -> None:
    view = as_contexts(given)
    assert view.dtype == np.float64
    assert view.flags.c_contiguous
    assert np.array_equal(view, given)


def test_a_kernel_that_writes_to_a_context_does_not_compile() -> None:
    @njit(cache=False)
    def writes(x):  # type: ignore[no-untyped-def]
        x[0] = 1.0

    with pytest.raises(Exception, match=r"readonly|read-only|Cannot modify"):
        writes(as_contexts(np.zeros(2)))


X = np.array([[0.0, 2.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, -4.0, 0.0], [0.0, 0.0, 0.0, 5.0]])


def dense_form(x, a):
    return a * x.sum()


def sparse_form(x, a):
    return -a * x.values.sum()


form = by_context(dense_form, sparse_form)


@njit(cache=False)
def over_rows(X, n, out):
    for t in range(n):
        out[t] = form(row(X, t), 2.0)
    return form(row(stretch(X, n - 1, n), 0), 1.0)


def test_compiled_code_holds_the_form_of_its_contexts():
    out = np.zeros(4)
    assert over_rows(as_rows(X, 4), 4, out) == 5.0
    assert out.tolist() == [10.0, 0.0, -6.0, 10.0]
    assert over_rows(SparseRows.of(scipy.sparse.csr_array(X)).csr, 4, out) == -5.0
    assert out.tolist() == [-10.0, 0.0, 6.0, -10.0]


def test_both_forms_can_be_called_outside_kernels():
    csr = SparseRows.of(scipy.sparse.csr_array(X)).csr
    assert form(X[0], 1.0) == 5.0
    assert form(csr.row(0), 1.0) == -5.0
    assert isinstance(csr.row(2), SparseRow)
    assert csr.row(2).indices.tolist() == [0, 2]
    assert csr.row(2).values.tolist() == [1.0, -4.0]


def test_a_choice_is_called_as_its_first_function_is():
    assert (form.__name__, form.__doc__) == ("dense_form", dense_form.__doc__)
    assert inspect.signature(form) == inspect.signature(dense_form)


@njit(cache=False)
def pointers(X):
    return stretch(X, 1, 3).indptr.shape[0]


def test_a_stretch_of_sparse_contexts_has_a_pointer_more_than_rows():
    assert pointers(SparseRows.of(scipy.sparse.csr_array(X)).csr) == 3


class One(NamedTuple):
    x: float


class Two(NamedTuple):
    x: float


class Three(NamedTuple):
    x: float


def of_one(factor, models):
    """Of one."""
    return factor + models.x


@njit
def of_two(factor, models):
    return factor * models.x


def of_three(factor, models):
    return factor - models.x


chosen = by_type("models", {One: of_one, Two: of_two, Three: of_three})


@njit(cache=False)
def chosen_in_a_kernel(models):
    return chosen(10.0, models)


def test_one_of_several_forms_is_chosen_by_the_class_of_a_named_tuple():
    """Outside kernels and inside; forms are plain functions or compiled ones."""
    for form, expected in ((One(4.0), 14.0), (Two(4.0), 40.0), (Three(4.0), 6.0)):
        assert chosen(10.0, form) == chosen_in_a_kernel(form) == expected
    assert chosen.__doc__ == "Of one."
    with pytest.raises(ValueError):
        chosen(10.0, SparseRow(np.zeros(1, np.int64), np.zeros(1)))
