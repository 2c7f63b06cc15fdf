"""Synthetic sparse documents: word frequencies follow a power law, each class has a topic, contexts are in CSR form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from banditlab.envs._base import Floats, Labels, Streams
from banditlab.envs._planted import JUST_BELOW_ONE, noisy_labels
from banditlab.envs._stream import StreamEnv
from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.validation import at_least, nonnegative, positive, probability

_COUNTS = 1.0 + np.log([min(8, 9 - byte.bit_length()) for byte in range(256)])
r""":math:`1 + \ln(\text{count})` for each byte; under uniform bytes the count is 1 with probability 1/2, 2 with
probability 1/4, and so on.
"""
_KINDS = 2**16


class _Words(NamedTuple):
    """The words of an episode: the column of each word, and the weight of each column, both (d,)."""

    column: NDArray[np.int32]
    weight: Floats


class Sparse(StreamEnv):
    r"""Synthetic documents as in text classification, each with a few words of a large vocabulary, in CSR form.

    Words are ranked by frequency, with K words per rank, one for each class. The assignment of words to columns is a
    random permutation (the child stream "model"). Each round draws a label uniformly, then `nonzeros` distinct ranks.
    The frequency of rank :math:`r = 0, 1, \dots` is approximately proportional to
    :math:`1/(r + \text{nonzeros})^{\text{exponent}}`. That distribution is divided into `nonzeros` intervals of equal
    mass. The i-th rank is drawn from the i-th interval, and a repeated rank is replaced by the next one. At each rank
    the word is, with probability `topical`, that of the label's class, otherwise that of a uniform class. Entries are
    :math:`(1 + \ln(\text{count})) \ln(1/\text{frequency})` with a geometric count, and every row is scaled to norm R.
    With probability `noise` the label is then replaced by one of the other :math:`K-1` classes, uniformly.

    The planted W has weight 1 for each class on its own words. The label's score exceeds each other score by about
    :math:`\text{topical}\, \sqrt{\text{nonzeros}}\, R`, with a standard deviation of about :math:`\sqrt{2/K} R`. A
    learner has to estimate the weight of each word. `word_classes()` returns the class of every column. A stream
    similar to Reuters4 has `n_features=347_000`, `n_classes=4`, `nonzeros=80`.

    `step` returns dense vectors. With as many features as in Reuters4, this takes longer than an update.

    Parameters
    ----------
    n_features
        d, at least :math:`K\, \text{nonzeros}`; there is no intercept. If K does not divide d, the remaining columns
        are zeros.
    n_classes
        K.
    nonzeros
        Number of nonzero entries of a row.
    exponent
        Exponent of the power law, at least 0.
    topical
        Probability in [0, 1] that a word belongs to the label's class.
    radius
        R, the norm of every context.
    noise
        Probability in [0, 1] that the label is replaced.
    horizon
        T, the number of rounds of an episode. In a sweep, the sweep's `rounds` sets it.

    Raises
    ------
    UsageError
        A parameter is outside its range, or `n_features` is below K times nonzeros.
    """

    id: ClassVar[str] = "banditlab/Sparse-v0"
    summary: ClassVar[str] = "documents of power-law words with planted topics, contexts in CSR form, any d"
    reference: ClassVar[str] = "defined here, similar to Reuters4 (Kakade, Shalev-Shwartz and Tewari, ICML 2008)"
    version: ClassVar[int] = 1
    sparse = True

    def __init__(
        self,
        *,
        n_features: int = 1000,
        n_classes: int = 4,
        nonzeros: int = 40,
        exponent: float = 1.0,
        topical: float = 0.3,
        radius: float = 1.0,
        noise: float = 0.0,
        horizon: int = 10_000,
    ) -> None:
        self.n_features = at_least("n_features", n_features, 1)
        self.n_classes = at_least("n_classes", n_classes, 2)
        self.nonzeros = at_least("nonzeros", nonzeros, 1)
        if self.n_features < self.n_classes * self.nonzeros:
            least = self.n_classes * self.nonzeros
            raise UsageError(f"n_features must be at least n_classes * nonzeros = {least}, got {self.n_features}")
        self.exponent = nonnegative("exponent", exponent)
        self.topical = probability("topical", topical)
        self.radius = positive("radius", radius)
        self.noise = probability("noise", noise)
        super().__init__(Problem(self.n_features, self.n_classes, self.radius, horizon))

    @property
    def row_bytes(self) -> int:
        """The memory of a row in CSR form, in bytes."""
        return 12 * self.nonzeros + 8

    def word_classes(self) -> Labels:
        """Return the class of each column's word in the current episode (d,), or -1. No player observes it."""
        classes = np.full(self.n_features, -1, np.int64)
        column = self._words(self._streams()).column
        classes[column] = np.arange(len(column)) % self.n_classes
        return classes

    def _words(self, streams: Streams) -> _Words:
        d, K, n = self.n_features, self.n_classes, self.nonzeros
        column = streams.model.permutation(d)[: d // K * K].astype(np.int32)
        rates = n * np.diff(self._share(np.arange(d // K + 1.0))) / K  # the K words of a rank share its probability
        weight = np.zeros(d)
        weight[column] = np.repeat(-np.log(rates), K)
        return _Words(column, weight)

    def _share(self, rank: Floats) -> Floats:
        r"""Return the fraction of the power law's mass before a rank.

        It is the normalised integral of :math:`(r + \text{nonzeros})^{-\text{exponent}}`.
        """
        n, s, ranks = self.nonzeros, self.exponent, self.n_features // self.n_classes
        if s == 1.0:
            return np.log1p(rank / n) / math.log1p(ranks / n)
        return ((rank / n + 1.0) ** (1.0 - s) - 1.0) / ((ranks / n + 1.0) ** (1.0 - s) - 1.0)

    def _rank(self, share: Floats) -> Floats:
        """Return the inverse of `_share`."""
        n, s, ranks = self.nonzeros, self.exponent, self.n_features // self.n_classes
        if s == 1.0:
            return n * np.expm1(share * math.log1p(ranks / n))
        return n * ((1.0 + share * ((ranks / n + 1.0) ** (1.0 - s) - 1.0)) ** (1.0 / (1.0 - s)) - 1.0)

    def _kinds(self) -> NDArray[np.int32]:
        """Return the class of a word for each label and each value of 16 random bits, as an array :math:`(K, 2^{16})`.

        A fraction `topical` of the entries is the label's class.
        """
        own, label = round(self.topical * _KINDS), np.arange(self.n_classes)[:, None]
        return np.where(np.arange(_KINDS) < own, label, np.arange(_KINDS) % self.n_classes).astype(np.int32)

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[Any, Labels]]:
        d, K, n = self.n_features, self.n_classes, self.nonzeros
        words, kinds = self._words(streams), self._kinds()
        place, indptr = np.arange(n, dtype=np.int32), np.arange(0, size * n + 1, n, dtype=np.int32)
        while True:
            y = streams.labels.integers(K, size=size)
            bits = streams.contexts.integers(2**64, size=(size, n), dtype=np.uint64)  # rank 40, class 16, count 8
            share = (bits >> np.uint64(24)).astype(np.float64) * (2.0**-40 / n)
            share += place / n
            rank = np.maximum.accumulate(self._rank(share).astype(np.int32) - place, axis=1)
            np.minimum(rank, d // K - n, out=rank)
            rank += place  # increasing strictly, hence no repetition
            kind = kinds.take((bits >> np.uint64(8)).astype(np.uint16) + _KINDS * y[:, None])
            column = words.column.take(K * rank + kind)
            column.sort(axis=1)
            value = words.weight.take(column)
            value *= _COUNTS.take(bits.astype(np.uint8))
            value *= (self.radius * JUST_BELOW_ONE / np.sqrt(np.einsum("tj,tj->t", value, value)))[:, None]
            X = csr_array((value.ravel(), column.ravel(), indptr), shape=(size, d))
            yield X, noisy_labels(streams.noise, y, K, self.noise)
