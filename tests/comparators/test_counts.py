"""Collapsing a stream: exact byte equality, any blocks, few copies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from banditlab.comparators import ComparatorError, StreamCounts, collapse, counts
from banditlab.errors import UsageError


def by_dictionary(X, y, K):
    """The slow direct form."""
    table: dict[bytes, np.ndarray] = {}
    for x, label in zip(X + 0.0, y, strict=True):
        table.setdefault(x.tobytes(), np.zeros(K))[label] += 1
    U = np.array([np.frombuffer(key) for key in table]).reshape(len(table), X.shape[1])
    return U, np.array(list(table.values())).reshape(len(table), K)


def stream(seed, n, d=3, K=4, values=2):
    rng = np.random.default_rng(seed)
    return rng.integers(values, size=(n, d)) * rng.choice([1.0, -1.0], size=(n, d)), rng.integers(K, size=n)


@given(st.integers(0, 10**6), st.integers(0, 60), st.lists(st.integers(1, 20), max_size=8), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_any_blocks_give_what_a_dictionary_of_bytes_gives(seed, n, cuts, values):
    X, y = stream(seed, n, values=values)
    accumulator, start = StreamCounts(3, 4), 0
    for size in [*cuts, n]:
        accumulator.add(X[start : start + size], y[start : start + size])
        start = min(start + size, n)
        U, C = accumulator.collapsed()
        slow_U, slow_C = by_dictionary(X[:start], y[:start], 4)
        np.testing.assert_array_equal(U, slow_U)
        np.testing.assert_array_equal(C, slow_C)
    assert accumulator.rounds == n


def test_negative_zero_is_zero_and_the_next_float_is_another_context():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, np.nextafter(1.0, 2.0)], [5e-324, 1.0]])
    U, C = collapse(X, [0, 1, 0, 0], 2)
    np.testing.assert_array_equal(C, [[1, 1], [1, 0], [1, 0]])
    assert not np.signbit(U).any()


def test_rows_are_told_apart_when_all_hashes_collide(monkeypatch):
    """With a table barely larger than its content every look-up walks over other rows first."""
    monkeypatch.setattr(counts, "CHUNK", 7)
    X = np.arange(200.0).repeat(3)[:, None] * np.ones(2)
    y = np.tile([0, 1, 1], 200)
    accumulator = StreamCounts(2, 2)
    accumulator.add(X, y)
    rows, size = accumulator._rows, accumulator._size
    table = np.full(256, -1, dtype=np.int64)  # load 0.78: chains are long
    counts._fill_table(rows, size, table)
    accumulator._table, again = table, accumulator._counts.copy()
    counts._count_rows((X + 0.0).view(np.uint64), y.astype(np.int64), rows, accumulator._counts, size, table)
    assert int(size[0]) == 200
    np.testing.assert_array_equal(accumulator._counts, 2 * again)
    np.testing.assert_array_equal(accumulator.collapsed()[1], np.tile([2.0, 4.0], (200, 1)))


def test_what_was_collapsed_does_not_change_when_more_rounds_come():
    X, y = stream(5, 50, values=9)
    accumulator = StreamCounts(3, 4)
    accumulator.add(X[:10], y[:10])
    U, C = accumulator.collapsed()
    kept_U, kept_C = U.copy(), C.copy()
    accumulator.add(X, y)
    np.testing.assert_array_equal(U, kept_U)
    np.testing.assert_array_equal(C, kept_C)


def test_sparse_blocks_and_other_dtypes_count_the_same():
    X, y = stream(2, 40)
    U, C = collapse(X, y, 4)
    for other in (scipy.sparse.csr_array(X), np.asfortranarray(X), X.astype(np.float32), X.astype(np.int64)):
        V, D = collapse(other, y.astype(np.int8), 4)
        np.testing.assert_array_equal(U, V)
        np.testing.assert_array_equal(C, D)


def test_storage_grows_with_unique_contexts_only():
    accumulator = StreamCounts(2, 2)
    for _ in range(50):
        accumulator.add(np.tile([[1.0, 2.0], [3.0, 4.0]], (2000, 1)), np.zeros(4000, dtype=np.int64))
    assert accumulator.rounds == 200_000
    assert accumulator._rows.shape[0] <= 16384
    np.testing.assert_array_equal(accumulator.collapsed()[1], [[100_000, 0], [100_000, 0]])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((2, 3)), [0, 4], r"labels must lie in 0 \.\.\. 3, got 0 \.\.\. 4"),
        (np.zeros((2, 3)), [-1, 0], r"labels must lie"),
        (np.zeros((2, 3)), [0, 0.5], r"labels must be whole numbers, got .*0\.5"),
        (np.zeros((2, 3)), [0, np.nan], r"labels must be whole numbers, got .*nan"),
        (np.zeros((2, 2)), [0, 0], r"X must be \(n, 3\)"),
        (np.zeros((2, 3)), [0], r"X must be \(n, 3\) and y \(n,\)"),
        (np.array([[0.0, np.nan, 0.0]]), [0], r"X must be finite"),
        (np.array([[0.0, np.inf, 0.0]]), [0], r"X must be finite"),
    ],
)
def test_bad_blocks_are_refused_and_leave_nothing_behind(X, y, message):
    accumulator = StreamCounts(3, 4)
    with pytest.raises(UsageError, match=message):
        accumulator.add(X, y)
    assert accumulator.rounds == 0
    assert accumulator.collapsed()[0].shape == (0, 3)


def test_a_stream_too_long_to_be_kept_is_refused_and_one_that_repeats_is_not(monkeypatch):
    monkeypatch.setattr(counts, "MOST_BYTES", 100 * 8 * (2 + 3))
    X = np.random.default_rng(0).normal(size=(101, 2))
    y = np.zeros(50, dtype=int)
    stream = StreamCounts(2, 3)
    stream.add(X[:50], y)
    stream.add(X[50:100], y)
    with pytest.raises(ComparatorError, match=r"after 100 rounds there are 100.*norm_bounds = \[\]"):
        stream.add(X[100:], y[:1])
    assert stream.rounds == 100
    assert len(stream.collapsed()[0]) == 100
