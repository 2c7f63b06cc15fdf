"""Sparse contexts: what compiled loops rely on is checked, slices are views, and kernels get the form they are given."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.sparse_rows import CSR, MOST_DENSE, SparseRows, is_sparse, n_rows
from banditlab.players.inputs import as_block, as_rows

X = np.array([[0.0, 2.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, -4.0, 0.0], [0.0, 0.0, 0.0, 5.0]])


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_any_sparse_array_is_taken_as_it_is(kind, form):
    rows = SparseRows.of(kind(X).asformat(form))
    assert rows.shape == X.shape
    assert len(rows) == 4
    assert np.array_equal(rows.toarray(), X)
    assert [array.dtype for array in rows.csr] == [np.float64, np.uint32, np.int64]
    assert not any(array.flags.writeable for array in rows.csr)
    assert SparseRows.of(rows) is rows


def test_nothing_is_copied():
    given = scipy.sparse.csr_array(X)
    rows = SparseRows.of(given)
    assert np.shares_memory(rows.csr.values, given.data)
    assert np.shares_memory(rows.csr.indices, given.indices)
    assert given.data.flags.writeable
    assert np.shares_memory(rows[1:3].csr.values, given.data)


@pytest.mark.parametrize("cut", [slice(1, 3), slice(None), slice(0, 0), slice(2, None), slice(-1, None), slice(3, 1)])
def test_slices_are_those_of_the_dense_rows(cut):
    rows = SparseRows.of(scipy.sparse.csr_array(X))
    assert np.array_equal(rows[cut].toarray(), X[cut])
    assert len(rows[cut]) == len(X[cut])
    assert np.array_equal(rows[1:][cut].toarray(), X[1:][cut])
    with pytest.raises(UsageError, match="only with a step of 1"):
        rows[::2]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_places_out_of_order_or_twice_are_put_in_order_in_a_copy(dtype):
    data, places = np.array([3.0, 1.0, 1.0, 5.0]), np.array([3, 1, 1, 0], dtype)
    given = scipy.sparse.csr_array((data, places, np.array([0, 3, 4], dtype)), shape=(2, 4))
    given.has_canonical_format = given.has_sorted_indices = True  # a claim is not believed
    rows = SparseRows.of(given)
    assert np.array_equal(rows.toarray(), [[0.0, 2.0, 0.0, 3.0], [5.0, 0.0, 0.0, 0.0]])
    assert rows.csr.indices.tolist() == [1, 3, 0]
    assert given.indices.tolist() == [3, 1, 1, 0]


def broken(**fields):
    """A CSR array whose fields were changed after it was built, as nobody stops a plug-in from doing."""
    given = scipy.sparse.csr_array(X)
    for name, value in fields.items():
        setattr(given, name, np.array(value, dtype=getattr(given, name).dtype))
    return given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (broken(indices=[1, 4, 0, 2, 3]), r"entries outside their shape \(4, 4\)"),
        (broken(indices=[-1, 3, 0, 2, 3]), "entries outside"),
        (broken(indptr=[0, 2, 2, 4, 6]), "entries outside"),
        (broken(indptr=[0, 2, 1, 4, 5]), "entries outside"),
        (broken(indptr=[-1, 2, 2, 4, 5]), "entries outside"),
        (broken(data=[1, np.nan, 1, 1, 1]), "not finite"),
        (broken(data=[1, np.inf, 1, 1, 1]), "not finite"),
    ],
)
def test_what_would_be_read_out_of_bounds_is_refused(given, message):
    with pytest.raises(UsageError, match=message):
        SparseRows.of(given)


def test_large_places_of_64_bits_are_not_wrapped():
    given = scipy.sparse.csr_array((np.ones(1), np.array([2**32]), np.array([0, 1])), shape=(1, 2**33))
    with pytest.raises(UsageError, match="entries outside"):
        SparseRows.of(given)


def test_blocks_come_sparse_where_kernels_take_that_and_dense_elsewhere():
    given, y = scipy.sparse.csr_array(X), np.array([0, 1, 0, 1])
    rows, labels = as_block(given, y, 4, 2, sparse=True)
    assert isinstance(rows, CSR)
    assert n_rows(rows) == 4
    assert np.array_equal(labels, y)
    assert np.array_equal(as_block(given, y, 4, 2)[0], X)
    assert n_rows(as_rows(X, 4)) == 4
    assert is_sparse(given)
    assert not is_sparse(X)
    with pytest.raises(UsageError, match=r"of shape \(n, 5\), got \(4, 4\)"):
        as_rows(given, 5, sparse=True)
    with pytest.raises(UsageError, match=r"of shape \(4,\), one for every context"):
        as_block(given, y[:3], 4, 2, sparse=True)


def test_long_rows_are_not_made_dense():
    short, long = (scipy.sparse.csr_array((2, d)) for d in (MOST_DENSE, MOST_DENSE + 1))
    assert as_rows(short, MOST_DENSE).shape == (2, MOST_DENSE)
    with pytest.raises(IncompatibleError, match="d = 8,193 is too large") as refusal:
        as_rows(long, MOST_DENSE + 1)
    assert "\n" not in str(refusal.value)


def test_sums_of_places_given_twice_are_exact_and_finite():
    def twice(values):
        return scipy.sparse.csr_array((values, np.array([1, 1]), np.array([0, 2])), shape=(1, 3))

    assert SparseRows.of(twice(np.array([100, 100], dtype=np.int8))).toarray()[0, 1] == 200.0
    with pytest.raises(UsageError, match="not finite"), np.errstate(over="ignore"):
        SparseRows.of(twice(np.array([1e308, 1e308])))


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_first_places_of_all_rows_may_fall_and_no_others(rows):
    dense = np.zeros((rows, 4))
    dense[:, 1:3] = 1.0 + np.arange(2.0 * rows).reshape(rows, 2)
    given = scipy.sparse.csr_array(dense)
    assert np.shares_memory(SparseRows.of(given).csr.values, given.data)
    part = given[1:]
    assert np.shares_memory(SparseRows.of(part).csr.values, part.data)
    for row in range(rows):  # a row out of order, each in turn
        wrong = given.copy()
        wrong.indices[[2 * row, 2 * row + 1]] = wrong.indices[[2 * row + 1, 2 * row]]
        found = SparseRows.of(wrong)
        assert not np.shares_memory(found.csr.values, wrong.data)
        assert found.csr.indices.tolist() == [1, 2] * rows


def test_rows_that_begin_within_the_arrays_are_taken_as_they_are():
    """Pointers from 1 on: rows [3], [], [0, 2] and [3] of what is left."""
    given = broken(indptr=[1, 2, 2, 4, 5])
    rows = SparseRows.of(given)
    assert np.shares_memory(rows.csr.values, given.data)
    assert np.array_equal(
        rows.toarray(), [[0.0, 0.0, 0.0, 3.0], [0.0] * 4, [1.0, 0.0, -4.0, 0.0], [0.0, 0.0, 0.0, 5.0]]
    )


def test_a_first_row_without_entries_hides_nothing():
    places, pointers = np.array([2, 1]), np.array([0, 0, 2])
    given = scipy.sparse.csr_array((np.array([5.0, 7.0]), places, pointers), shape=(2, 3))
    rows = SparseRows.of(given)
    assert rows.csr.indices.tolist() == [1, 2]
    assert np.array_equal(rows.toarray(), [[0.0] * 3, [0.0, 7.0, 5.0]])


def test_no_pointers_are_refused_and_the_last_place_of_32_bits_is_taken():
    given = scipy.sparse.csr_array(X)
    given.indptr = np.zeros(0, np.int32)
    with pytest.raises(UsageError, match="entries outside"):
        SparseRows.of(given)
    wide = scipy.sparse.csr_array((np.ones(1), np.array([2**32 - 1]), np.array([0, 1])), shape=(1, 2**33))
    assert SparseRows.of(wide).csr.indices.tolist() == [2**32 - 1]
