"""What a learner asks of the contexts it keeps: dense, sparse, and dense contexts beside sparse ones kept, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from banditlab.numerics.context_store import Stored, begin, finish, keep, products, products_many, seen_by, take
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.sparse_rows import SparseRows

KEPT = np.array([[0.0, 2.0, 0.0, 3.0, 0.5], [0.0] * 5, [1.0, 0.0, 0.0, 0.0, -4.0], [7.0] * 5])
"""Contexts kept, of which the first three count; two of them name the last place, none the third."""
ASKED = np.array([[0.0, 1.0, 0.0, -2.0, 0.0], [0.0] * 5, [1.0, 1.0, 5.0, 0.5, -3.0]])
KINDS = ["dense", "sparse", "mixed"]


def kept(kind: str) -> Any:
    return KEPT.copy() if kind == "dense" else Stored.of(KEPT)


def context(kind: str, x: np.ndarray) -> Any:
    return SparseRows.of(scipy.sparse.csr_array(x[None])).csr.row(0) if kind == "sparse" else as_contexts(x)


def contexts(kind: str) -> Any:
    return SparseRows.of(scipy.sparse.csr_array(ASKED)).csr if kind == "sparse" else as_contexts(ASKED)


@pytest.mark.slow  # twenty small kernels
@pytest.mark.parametrize("kind", KINDS)
def test_products_with_what_is_kept(kind: str) -> None:
    X, v = kept(kind), np.zeros(5)
    for x in ASKED:
        out = np.full(4, np.nan)
        assert products(X, context(kind, x), 3, v, out) == x @ x
        np.testing.assert_array_equal(out[:3], KEPT[:3] @ x)
        assert np.isnan(out[3])
        assert not v.any()
    out, W, squares = np.full(4, np.nan), np.full((3, 3), np.nan), np.full(3, np.nan)
    products_many(X, contexts(kind), 3, v, out, W, squares)
    np.testing.assert_array_equal(W, KEPT[:3] @ ASKED.T)
    np.testing.assert_array_equal(squares, (ASKED**2).sum(axis=1))
    assert not v.any()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_of_a_context_beside_those_kept(kind: str) -> None:
    """v = x - X'w, X v and |v|^2; where contexts are sparse v is 0 again."""
    X, v, w = kept(kind), np.zeros(5), np.array([0.5, 3.0, -0.25])
    for x in ASKED:
        given = context(kind, x)
        begin(X, given, v)
        np.testing.assert_array_equal(v, x)
        take(X, 3, w, v)
        left = x - w @ KEPT[:3]
        np.testing.assert_array_equal(v, left)
        out = np.full(4, np.nan)
        seen_by(X, 3, v, out)
        np.testing.assert_array_equal(out[:3], KEPT[:3] @ left)
        assert np.isnan(out[3])
        assert finish(X, given, 3, v) == left @ left
        if kind != "dense":
            assert not v.any()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_context_that_is_kept_is_read_as_the_others(kind: str) -> None:
    x = np.array([0.0, 1.0, 0.0, -5.0, 2.0])
    X, given = kept(kind), context(kind, x)
    if kind == "sparse":  # a zero that is written is no entry
        entries = np.array([1.0, 0.0, -5.0, 2.0]), np.array([1, 2, 3, 4]), np.array([0, 4])
        given = SparseRows.of(scipy.sparse.csr_array(entries, shape=(1, 5))).csr.row(0)
    keep(X, given, 1)
    out = np.full(4, np.nan)
    products(X, context(kind, np.ones(5)), 4, np.zeros(5), out)
    np.testing.assert_array_equal(out, [5.5, -2.0, -3.0, 35.0])
    if kind != "dense":
        assert X.length.tolist() == [3, 3, 2, 5]
        assert X.places[1, :3].tolist() == [1, 3, 4]


def test_room_is_as_wide_as_the_fullest_context() -> None:
    stored = Stored.of(KEPT[:3])
    assert (stored.places.shape, stored.values.shape, stored.length.tolist()) == ((3, 3), (3, 3), [3, 0, 2])
    assert stored.places[0].tolist() == [1, 3, 4]
    assert stored.values.tolist() == [[2.0, 3.0, 0.5], [0.0] * 3, [1.0, -4.0, 0.0]]
    assert Stored.of(np.zeros((2, 5))).values.shape == (2, 1)
    wide = stored.wider(5, 4)
    assert (wide.places.shape, wide.length.tolist()) == ((5, 4), [3, 0, 2, 0, 0])
    np.testing.assert_array_equal(wide.values[:3, :3], stored.values)
    np.testing.assert_array_equal(wide.places[:3, :3], stored.places)
    assert not wide.values[3:].any()
    assert not wide.values[:, 3:].any()
