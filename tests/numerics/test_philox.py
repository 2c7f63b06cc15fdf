"""Philox: the published words, and normals that are normal."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.philox import digest, normals, philox


def test_philox_gives_the_published_words():
    """Known answers of the generator's authors (Random123, kat_vectors, philox4x32 with 10 rounds)."""
    low = 0xFFFFFFFF
    known = [
        ((0,) * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((low,) * 6, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ]
    for words, expected in known:
        assert tuple(int(w) for w in philox(*map(np.uint64, words))) == expected


def draws(n, length, key=11, word=5):
    out = np.empty((n, length))
    for t in range(n):
        normals(key, t, np.uint64(word), out[t])
    return out


def test_normals_are_independent_standard_normals():
    n = 20_000
    Z = draws(n, 5)
    assert stats.kstest(Z.ravel(), "norm").pvalue > 1e-3
    for k in range(5):
        assert stats.kstest(Z[:, k], "norm").pvalue > 1e-3
    correlation = np.corrcoef(np.hstack([Z[1:], Z[:-1], Z[1:] ** 2]).T) - np.eye(15)
    assert np.abs(correlation).max() < 5 / math.sqrt(n)
    assert np.abs(np.corrcoef(Z[:, 0], draws(n, 5, key=12)[:, 0])[0, 1]) < 5 / math.sqrt(n)
    assert np.abs(np.corrcoef(Z[:, 0], draws(n, 5, word=6)[:, 0])[0, 1]) < 5 / math.sqrt(n)
    assert np.array_equal(Z[7], draws(8, 5)[7])
    assert np.array_equal(Z[7, :4], draws(8, 4)[7])


def test_digest_tells_contexts_apart():
    X = as_contexts(np.random.default_rng(0).standard_normal((500, 3)))
    assert len({int(digest(x)) for x in X}) == 500
    assert digest(X[0]) == digest(as_contexts(X[0].copy()))
