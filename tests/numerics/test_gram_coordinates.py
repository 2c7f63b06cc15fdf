"""Coordinates in the span of contexts: they keep inner products, and what lies in the span is left out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.gram_coordinates import Span, coordinates, extend, locate, locate_many


def spanned(contexts, capacity):
    """Return the span of these contexts (n, d)."""
    span = Span.empty(capacity, contexts.shape[1])
    for x in contexts:
        extend(span, as_contexts(x))
    return span


@pytest.mark.parametrize("r", [0, 1, 2, 3, 5, 8, 9, 10])
@pytest.mark.few(4)
def test_coordinates_keep_inner_products_one_by_one_and_in_batches(r):
    rng = np.random.default_rng(r)
    d, n, capacity = 12, 7, 10
    learnt, X = rng.standard_normal((r, d)), rng.standard_normal((n, d))
    X[3] = rng.standard_normal(r) @ learnt  # in the span
    X[4] = 0.1 * X[4] / np.linalg.norm(X[4])
    span = spanned(learnt, capacity)
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
            if r < capacity:
                assert xi[r] == pytest.approx(outside, abs=1e-6)
                assert not xi[r + 1 :].any()
    assert (span.Xi[n:] == 7.0).all()


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


@pytest.mark.parametrize("width", [None, 6])
def test_the_size_foretold_is_that_of_the_arrays(width):
    arrays = [
        leaf for field in Span.empty(200, 500, width) for leaf in (field if isinstance(field, tuple) else (field,))
    ]
    assert Span.size(200, 500, width) == pytest.approx(sum(leaf.nbytes for leaf in arrays), rel=0.02)
