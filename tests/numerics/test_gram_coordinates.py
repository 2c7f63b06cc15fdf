"""Coordinates in the span of contexts: they keep inner products, whoever lies in the span is left out, room ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.gram_coordinates import Span, coordinates, extend, locate, locate_many, solve, solve_transposed
from banditlab.numerics.joint_inverse import BATCH
from banditlab.numerics.sparse_rows import SparseRows


def spanned(contexts, room):
    """Return the span of these contexts (n, d)."""
    span = Span.empty(room, contexts.shape[1])
    for x in contexts:
        extend(span, as_contexts(x))
    return span


@pytest.mark.parametrize("r", [0, 1, 2, 3, 5, 8, 9, 10])
def test_coordinates_keep_inner_products_one_by_one_and_in_batches(r):
    rng = np.random.default_rng(r)
    d, n, room = 12, 7, 10
    learnt, X = rng.standard_normal((r, d)), rng.standard_normal((n, d))
    X[3] = rng.standard_normal(r) @ learnt  # in the span
    X[4] = 0.1 * X[4] / np.linalg.norm(X[4])
    span = spanned(learnt, room)
    assert span.rank[0] == r
    np.testing.assert_allclose(span.L[:r, :r] @ span.L[:r, :r].T, learnt @ learnt.T, rtol=1e-12, atol=1e-12)
    Q = span.basis() if r else np.zeros((0, d))
    np.testing.assert_allclose(Q @ Q.T, np.eye(r), atol=1e-12)
    span.Xi[:], span.W[:], span.rest[:] = 7.0, np.nan, np.nan
    locate_many(span, as_contexts(X), n)
    for t in range(n):
        span.xi[:] = 7.0
        assert locate(span, as_contexts(X[t])) == pytest.approx(X[t] @ X[t], rel=1e-14)
        inside = Q @ X[t]
        outside = math.sqrt(max(0.0, X[t] @ X[t] - inside @ inside))
        for xi in (span.xi, span.Xi[t]):
            np.testing.assert_allclose(xi[:r], inside, atol=1e-12)
            if r < room:
                assert xi[r] == pytest.approx(outside, abs=1e-6)
                assert not xi[r + 1 :].any()
    assert (span.Xi[n:] == 7.0).all()


def test_contexts_of_the_span_have_nothing_beside_it():
    """|x|^2 - |xi|^2 is 0 but for rounding, of either sign."""
    rng = np.random.default_rng(1)
    learnt = rng.standard_normal((3, 8))
    span = spanned(learnt, 5)
    X = rng.standard_normal((40, 3)) @ learnt
    locate_many(span, as_contexts(X), 40)
    for t, x in enumerate(X):
        locate(span, as_contexts(x))
        assert 0.0 <= span.xi[3] < 1e-6
        assert 0.0 <= span.Xi[t, 3] < 1e-6


@pytest.mark.parametrize("r", [1, 2, 3, 6])
def test_triangular_systems(r):
    rng = np.random.default_rng(r)
    L = np.full((8, 8), np.nan)
    L[:r, :r] = np.tril(rng.standard_normal((r, r))) + 3.0 * np.eye(r)
    b = np.append(rng.standard_normal(r), [7.0, 7.0])
    w = b.copy()
    solve(L, r, w)
    np.testing.assert_allclose(L[:r, :r] @ w[:r], b[:r], rtol=1e-12)
    assert (w[r:] == 7.0).all()
    w = b.copy()
    solve_transposed(L, r, w)
    np.testing.assert_allclose(L[:r, :r].T @ w[:r], b[:r], rtol=1e-12)
    assert (w[r:] == 7.0).all()


def test_what_stands_out_by_less_than_a_part_in_a_hundred_million_is_left_out():
    """Of x = a + b + delta e_3 with a = 3 e_1, b = 3 e_1 + 4 e_2 the way there is |x| + |a| + |b| = sqrt(52) + 8 long."""
    a, b = np.array([3.0, 0.0, 0.0, 0.0]), np.array([3.0, 4.0, 0.0, 0.0])
    edge = 1e-8 * (math.sqrt(52.0) + 8.0)
    span = spanned(np.array([a, b]), 4)
    assert span.L[:2, :2].tolist() == [[3.0, 0.0], [3.0, 4.0]]
    for part, new in ((0.99, False), (1.01, True)):
        x = as_contexts(a + b + part * edge * np.eye(4)[2])
        stands_out, outside = coordinates(span, x)
        assert stands_out == new
        assert outside == pytest.approx(part * edge, rel=1e-6)
        np.testing.assert_allclose(span.xi, [6.0, 4.0, outside if new else 0.0, 0.0], rtol=1e-15)
        before = span.lost[0]
        extend(span, x)
        assert span.rank[0] == 2 + new
        assert span.lost[0] == pytest.approx(before + (0.0 if new else outside), rel=1e-12)
    extend(span, as_contexts(np.zeros(4)))
    assert span.rank[0] == 3
    # A second one is added to what was lost.
    lost = span.lost[0]
    extend(span, as_contexts(np.array([1.0, 0.0, 0.0, 1e-9])))
    assert span.lost[0] == pytest.approx(lost + 1e-9, rel=1e-6)


def test_a_zero_context_and_a_full_room_add_nothing():
    span = Span.empty(2, 3)
    extend(span, as_contexts(np.zeros(3)))
    assert (span.rank[0], span.lost[0], span.xi.tolist()) == (0, 0.0, [0.0, 0.0])
    for x in np.eye(3)[:2]:
        extend(span, as_contexts(x))
    assert coordinates(span, as_contexts(np.array([1.0, 2.0, 3.0]))) == (False, 3.0)
    extend(span, as_contexts(np.array([1.0, 2.0, 3.0])))
    assert (span.rank[0], span.lost[0], span.xi.tolist()) == (2, 3.0, [1.0, 2.0])


@pytest.mark.parametrize("sparse", [False, True])
def test_more_room_changes_nothing(sparse):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4, 6)) * (rng.random((4, 6)) < 0.6)
    csr = SparseRows.of(scipy.sparse.csr_array(X)).csr
    span = Span.empty(3, 6, 6 if sparse else None)
    for t in range(3):
        extend(span, csr.row(t) if sparse else as_contexts(X[t]))
    span.lost[0] = 0.25
    wide = span.wider(5, 6 if sparse else None)
    assert (wide.room, wide.width, wide.rank[0], wide.lost[0]) == (5, 6 if sparse else None, 3, 0.25)
    x = csr.row(3) if sparse else as_contexts(X[3])
    found = [coordinates(each, x) for each in (span, wide)]
    assert found[0][1] == found[1][1]
    np.testing.assert_array_equal(span.xi, wide.xi[:3])
    assert (found[0][0], found[1][0]) == (False, True)  # there was no room before
    if not sparse:  # dense contexts become sparse ones
        again = span.wider(5, 6)
        coordinates(again, csr.row(3))
        np.testing.assert_allclose(again.xi, wide.xi, rtol=1e-13)


def test_how_many_bytes_a_span_takes():
    def bytes_of(span):
        return sum(
            part.nbytes for part in (*(span.X if isinstance(span.X, tuple) else (span.X,)), *span[:1], *span[2:])
        )

    for room, d in ((64, 20_000), (2_000, 8), (400, 400)):
        assert Span.size(room, d, None) == pytest.approx(bytes_of(Span.empty(room, d)), rel=0.06)
    for room, d, width in ((8, 200_000, 2), (8, 8, 20_000), (2_000, 8, 2)):
        needed = bytes_of(Span.empty(room, d, width))
        assert needed <= 1.05 * Span.size(room, d, width) <= 1.45 * needed


def test_integers_of_a_span_lie_in_their_ranges():
    assert Span.empty(3, 6).limits() == {"rank": (0, 3)}
    found = Span.empty(3, 6, 4).limits()
    assert found == {"rank": (0, 3), "X.places": (0, 5), "X.length": (0, 4)}
    assert Span.empty(3, 6).Xi.shape[0] == BATCH
