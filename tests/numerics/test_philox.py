"""Philox: the published words, and normals that are normal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.philox import digest, gamma, normals, philox


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


def test_digest_sees_every_entry_and_bit():
    x = np.array([0.0, 1.0, -2.0, 3.0])
    seen = {int(digest(as_contexts(x)))}
    for j in range(4):
        for bit in (0, 20, 51, 63):
            y = x.copy()
            y.view(np.uint64)[j] ^= np.uint64(1) << np.uint64(bit)
            seen.add(int(digest(as_contexts(y))))
    assert len(seen) == 17
    assert len({int(digest(as_contexts(x[order]))) for order in ([0, 1, 2, 3], [1, 0, 2, 3], [3, 2, 1, 0])}) == 3


@pytest.mark.parametrize("n", [1, 2, 5])
def test_normals_are_made_of_the_words_of_key_round_and_word(n):
    """Counter (pair, round, word), each 64-bit number its lower half first; Box and Muller from 53 bits each."""
    key, turn, word = 0x1122334455667788, 0xFEDCBA98, 0x99AABBCCDDEEFF01
    low, out = 0xFFFFFFFF, np.full(n + 1, np.nan)
    normals(key, turn, np.uint64(word), out[:n])
    assert np.isnan(out[n])
    expected = []
    for i in range(0, n, 2):
        words = philox(*map(np.uint64, (i, turn, word & low, word >> 32, key & low, key >> 32)))
        a, b, c, d = map(int, words)
        u, v = (((high >> 5) * 2**26 + (rest >> 6)) / 2**53 for high, rest in ((a, b), (c, d)))
        radius = math.sqrt(-2.0 * math.log1p(-u))
        expected += [radius * math.cos(2.0 * math.pi * v), radius * math.sin(2.0 * math.pi * v)]
    np.testing.assert_allclose(out[:n], expected[:n], rtol=1e-12)


@pytest.mark.parametrize("shape", [1.0, 2.0, 7.5, 4e5])
def test_gamma_draws_have_their_law(shape):
    draws = np.array([gamma(shape, 11, t, place) for t in range(5000) for place in (0, 1)])
    assert stats.kstest(draws, stats.gamma(shape).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(draws[::2], draws[1::2])[0, 1]) < 0.06
    assert (
        len({gamma(shape, *words) for words in ((11, 0, 0), (12, 0, 0), (11, 1, 0), (11, 2**40, 0), (11, 0, 1))}) == 5
    )


def test_gamma_is_made_of_the_words_of_key_round_and_place():
    """Counter (2 attempt, place, round) and the next one; a normal of the first, a uniform of the second."""
    key, turn, place, shape, low = 0x1122334455667788, 0x99AABBCCDDEEFF01, 5, 1.0, 0xFFFFFFFF
    d, attempts = shape - 1 / 3, []
    for round_ in range(turn, turn + 60):
        for attempt in range(20):
            words = [round_ & low, round_ >> 32, key & low, key >> 32]
            one, other = (philox(*map(np.uint64, (2 * attempt + i, place, *words))) for i in (0, 1))
            u, v, w = (((int(a) >> 5) * 2**26 + (int(b) >> 6)) / 2**53 for a, b in (one[:2], one[2:], other[:2]))
            n = math.sqrt(-2.0 * math.log1p(-u)) * math.cos(2.0 * math.pi * v)
            cube = (1.0 + n / math.sqrt(9.0 * d)) ** 3
            if cube > 0.0 and math.log1p(-w) < n * n / 2.0 + d * (1.0 - cube + math.log(cube)):
                break
        attempts.append(attempt)
        assert gamma(shape, key, np.uint64(round_), place) == pytest.approx(d * cube, rel=1e-12)
    assert max(attempts) > 0
