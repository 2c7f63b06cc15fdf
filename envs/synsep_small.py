"""SynSep and SynNonSep with a tenth of the features, for agents whose state is quadratic in K d."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from banditlab.envs import StreamEnv
from banditlab.envs._base import Floats, Labels, Streams
from banditlab.envs._planted import noisy_labels
from banditlab.problem import Problem
from banditlab.validation import probability

K, D = 9, 40
"""Classes and features."""
TOPIC, LEAST_ON, MOST_ON = 16, 4, 8
"""A class's words are 4 to 8 of the first 16 features: a quarter to a half (a sixth to a third of 120 in SynSep)."""
EXTRA = 2
"""Per example one word of the class is switched off and 2 of the last 24 features are switched on."""
APART = 3
"""Least Hamming distance of two classes' words; at 2 one example could belong to both."""


class SynSepSmall(StreamEnv):
    """The topics of SynSep (Kakade, Shalev-Shwartz and Tewari, ICML 2008) over d = 40 instead of 400 features; K = 9.

    A tenth of SynSep's numbers would switch off half a word of 2 to 4; hence these: a class's prototype has 4 to 8 of the
    first 16 features on, drawn once per episode, all prototypes again until no two of them are closer than three bits. A
    round draws a class uniformly, copies its prototype, switches off one of its on-bits and switches on exactly 2 of the
    last 24. 0/1 features as they are, 5 <= ||x||^2 <= 9, R = 3. With probability `noise_rate` the label is then replaced
    by one of the 8 others, uniformly; contexts depend on the seed and the rate.

    Parameters
    ----------
    noise_rate
        Probability in [0, 1] that a label is replaced: 0 as in SynSep, 0.05 as in SynNonSep.
    horizon
        T, rounds of an episode; in a sweep, set by the sweep's `rounds`.
    """

    id: ClassVar[str] = "lab/SynSepSmall-v0"
    summary: ClassVar[str] = "SynSep and SynNonSep scaled down to d = 40"
    reference: ClassVar[str] = "after Kakade, Shalev-Shwartz and Tewari, ICML 2008; the sizes: made here"
    version: ClassVar[int] = 1

    def __init__(self, *, noise_rate: float = 0.0, horizon: int = 10_000) -> None:
        self.noise_rate = probability("noise_rate", noise_rate)
        super().__init__(Problem(D, K, math.sqrt(MOST_ON - 1 + EXTRA), horizon))

    def prototypes(self) -> Floats:
        """Return the classes' bits (9, 16) of the current episode (for tests and plots)."""
        return _prototypes(self._streams().model)

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[Floats, Labels]]:
        bits = _prototypes(streams.model)
        rows = np.arange(size)
        while True:
            y = np.floor(streams.labels.random(size) * K).astype(np.int64)
            keys = streams.contexts.random((size, D))
            X = np.zeros((size, D))
            X[:, :TOPIC] = bits[y]
            # the on-bit, and the EXTRA others, with the largest of independent uniform keys
            X[rows, (X * (1.0 + keys)).argmax(axis=1)] = 0.0
            others = TOPIC + np.argpartition(keys[:, TOPIC:], -EXTRA, axis=1)[:, -EXTRA:]
            X[rows[:, None], others] = 1.0
            yield X, noisy_labels(streams.noise, y, K, self.noise_rate, "other")


def _prototypes(rng: np.random.Generator) -> Floats:
    """Return the classes' bit vectors (K, 16), redrawn until they are all at least three bits apart."""
    while True:
        bits = np.zeros((K, TOPIC))
        for k in range(K):
            bits[k, rng.permutation(TOPIC)[: rng.integers(LEAST_ON, MOST_ON, endpoint=True)]] = 1.0
        distances = np.abs(bits[:, None] - bits).sum(axis=2) + APART * np.eye(K)
        if distances.min() >= APART:
            return bits
