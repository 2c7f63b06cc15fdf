"""The order of a sample by its content: not by the order given, units, or how zeros are written."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from banditlab.numerics.content_order import GOLDEN, _mixed, content_order

N = 300


def sample(decimals: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with zeros, negative entries and, at few decimals, many ties and equal rows."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((N, 5)) < 0.4, 0.0, np.round(rng.standard_normal((N, 5)), decimals))
    X[:, 2] = np.abs(X[:, 2]) + 1.0  # no zeros: nothing implicit
    X[:, 4] = 0.0
    return X, rng.integers(0, 2, N)


@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_the_order_given_does_not_matter(decimals: int) -> None:
    X, y = sample(decimals)
    order = content_order(X, y)
    assert sorted(order) == list(range(N))
    for seed in range(3):
        turned = np.random.default_rng(seed).permutation(N)
        again = turned[content_order(X[turned], y[turned])]
        np.testing.assert_array_equal(X[again], X[order])
        np.testing.assert_array_equal(y[again], y[order])


@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_dense_sparse_and_written_zeros_are_the_same(decimals: int) -> None:
    X, y = sample(decimals)
    order = content_order(X, y)
    np.testing.assert_array_equal(order, content_order(sparse.csr_array(X), y))
    np.testing.assert_array_equal(order, content_order(sparse.csr_matrix(X), y))
    np.testing.assert_array_equal(order, content_order(np.where(X == 0.0, -0.0, X), y))
    shown = sparse.csr_array(np.ones(X.shape))
    shown.data[:] = X.ravel()
    assert shown.nnz == X.size
    np.testing.assert_array_equal(order, content_order(shown, y))


def test_units_do_not_matter() -> None:
    X, y = sample(1)
    order = content_order(X, y)
    factors = np.array([1e-200, 3.0, 1e200, 1e6, 1.0])
    np.testing.assert_array_equal(order, content_order(X * factors, y))
    np.testing.assert_array_equal(order, content_order(sparse.csr_array(X * factors), y))
    np.testing.assert_array_equal(order, content_order(X + 2.0, 7.0 * y - 3.0))


def test_constant_columns_do_not_matter() -> None:
    X, y = sample(0)
    padded = np.column_stack([np.full(N, 3.0), X, np.full(N, 0.1)])
    np.testing.assert_array_equal(content_order(X, y), content_order(padded, y))
    np.testing.assert_array_equal(content_order(X, y), content_order(sparse.csr_array(padded), y))


def test_columns_signs_and_targets_are_told_apart() -> None:
    """Rows that differ in one thing do not tie: their places do not depend on the order given."""
    X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, 2.0], [1.0, 2.0], [1.0, -2.0], [0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    y = np.array([0, 0, 0, 1, 0, 0, 0, 0])
    found = set()
    for seed in range(20):
        turned = np.random.default_rng(seed).permutation(len(y))
        found.add(tuple(turned[content_order(X[turned], y[turned])]))
    assert len(found) == 1
    assert found != {tuple(range(len(y)))}


def test_odd_shapes() -> None:
    assert len(content_order(np.zeros((0, 2)), np.zeros(0))) == 0
    assert content_order(np.zeros((1, 0)), np.zeros(1)).tolist() == [0]
    assert content_order(np.zeros((3, 0)), np.zeros(3)).tolist() == [0, 1, 2]
    assert sorted(content_order(np.zeros((4, 3)), np.zeros(4))) == [0, 1, 2, 3]
    assert sorted(content_order(sparse.csr_array((4, 3)), np.zeros(4))) == [0, 1, 2, 3]


def test_the_mixing_is_splitmix64s() -> None:
    """Its first three outputs from the seed 0, as published with xoshiro256."""
    states = np.arange(1, 4, dtype=np.uint64) * GOLDEN
    assert [hex(word) for word in _mixed(states).tolist()] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


WORD = 2**64 - 1


def mixed(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("alike", [0, 1, 2, 3, 7, 8])
def test_so_many_columns_enter_the_order_as_tell_the_rows_apart(kind: type, alike: int) -> None:
    """An order once given stays: of 1, 3 or 7 columns that vary, by integers of Python; `alike` of them say nothing new."""
    golden, n = 0x9E3779B97F4A7C15, 40
    rng = np.random.default_rng(alike)
    y, X = np.arange(n) % 2, np.zeros((n, 10))
    X[:, :] = (np.arange(n) // 2 % 5)[:, None] * rng.choice([-1.0, 1.0], 10)
    X[:, alike:] = rng.permuted(np.tile(np.arange(-20.0, 20.0), (10 - alike, 1)).T, axis=0)
    X[:, 3] = 2.0  # constant: no column of the hash
    varying = [j for j in range(10) if j != 3]
    ranks = np.array([np.unique(X[:, j], return_inverse=True)[1] for j in varying])
    keys, used = [mixed((int(label) + golden) & WORD) for label in y], 0
    for width in (1, 2, 4, 8):
        if len(set(keys)) == n:
            break
        for j in range(used, min(used + width, 9)):
            column = ((j + 1) * golden) & WORD
            keys = [
                (key + mixed(mixed((int(rank) + golden) & WORD) ^ column)) & WORD for key, rank in zip(keys, ranks[j])
            ]
        used += width
    expected = sorted(range(n), key=lambda i: mixed(keys[i]))
    assert content_order(kind(X), y).tolist() == expected
