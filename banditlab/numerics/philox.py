"""Standard normals as a function of a key and a counter: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011).

The generator has no state: the same key and counter always give the same numbers, in compiled and in Python code. A
saved player therefore stores only the key and the counter.
"""

from __future__ import annotations

import math

import numpy as np

from banditlab.numerics.jit import inline, njit

# The constants of Philox4x32 (multipliers, Weyl increments), and an odd multiplier for `digest`.
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ODD = np.uint64(0x9FB21C651E98DF25)
_FIVE, _SIX, _SHIFT = np.uint64(5), np.uint64(6), np.uint64(29)


@inline
def philox(c0, c1, c2, c3, k0, k1):
    """Return four 32-bit words, each in a uint64, for a counter of four words and a key of two words."""
    for _ in range(10):
        # A round: two products of 32-bit words, whose halves are combined with the other words and the key.
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ k0, p1 & _LOW, (p0 >> _HALF) ^ c3 ^ k1, p0 & _LOW
        # The key's next value (a Weyl sequence).
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@njit
def digest(x):
    """Return a 64-bit hash of a context x (d,)."""
    # Multiply and shift, one word at a time.
    bits = x.view(np.uint64)
    h = _ODD
    for j in range(bits.shape[0]):
        h = (h ^ bits[j]) * _ODD
        h ^= h >> _SHIFT
    return h


@inline
def _uniform(high, low):
    return ((high >> _FIVE) * 67108864.0 + (low >> _SIX)) / 9007199254740992.0  # 27 and 26 bits: k / 2^53


@njit
def normals(key, round_, word, out):
    """Fill `out` (n,) with standard normals, which are a function of the key, the round (below :math:`2^{32}`) and the
    64-bit number `word`.
    """
    k, t = np.uint64(key), np.uint64(round_) & _LOW
    n = out.shape[0]
    for i in range(0, n, 2):
        # Two uniforms give two normals.
        a, b, c, d = philox(np.uint64(i), t, word & _LOW, word >> _HALF, k & _LOW, k >> _HALF)
        radius = math.sqrt(-2.0 * math.log(1.0 - _uniform(a, b)))  # Box and Muller
        angle = 2.0 * math.pi * _uniform(c, d)
        out[i] = radius * math.cos(angle)
        if i + 1 < n:
            out[i + 1] = radius * math.sin(angle)


@njit
def gamma(shape, key, round_, place):
    r"""Return a draw of :math:`\mathrm{Gamma}(\text{shape})`, shape at least 1, as a function of the key, the round and
    an index.

    A normal n is accepted with a uniform u by the test of Marsaglia and Tsang (ACM Trans. Math. Software 26, 2000).
    """
    k, t = np.uint64(key), np.uint64(round_)
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    attempt = 0
    while True:
        w0, w1, w2, w3 = philox(np.uint64(attempt), np.uint64(place), t & _LOW, t >> _HALF, k & _LOW, k >> _HALF)
        v0, v1, _, _ = philox(np.uint64(attempt + 1), np.uint64(place), t & _LOW, t >> _HALF, k & _LOW, k >> _HALF)
        n = math.sqrt(-2.0 * math.log(1.0 - _uniform(w0, w1))) * math.cos(2.0 * math.pi * _uniform(w2, w3))
        v = (1.0 + c * n) ** 3
        if v > 0.0 and math.log(1.0 - _uniform(v0, v1)) < 0.5 * n * n + d - d * v + d * math.log(v):
            return d * v
        attempt += 2
