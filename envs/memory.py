"""Contexts that have nothing in common: each has a label of its own, which can only be remembered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditlab.envs import StreamEnv, Streams
from banditlab.problem import Problem
from banditlab.validation import at_least


class Memory(StreamEnv):
    r"""The unit vectors :math:`e_1, \dots, e_d` in a random order, again and again; the label of each is drawn once.

    Labels are uniform on the K classes and independent, so that no player makes fewer mistakes in expectation than

    * :math:`d (1 - 1/K)` if the label is revealed: the first guess at each vector;
    * :math:`d (K - 1)/2` with one bit: the rank of the label in the order in which its K classes are tried at a vector is
      uniform on 1 ... K, and every try before it is a mistake.

    Both are attained by remembering, so one bit makes exactly :math:`K/2` times the mistakes, in the mean.

    Parameters
    ----------
    n_features
        d, the number of vectors.
    n_classes
        K.
    horizon
        T, rounds of an episode; the floors hold from :math:`d K` rounds on.
    """

    id: ClassVar[str] = "lab/Memory-v0"
    summary: ClassVar[str] = "unit vectors in turn, each with a label of its own: nothing to generalise"
    reference: ClassVar[str] = "made here; the gap is that of Daniely and Helbertal, COLT 2013"
    version: ClassVar[int] = 1

    def __init__(self, *, n_features: int = 20, n_classes: int = 5, horizon: int = 10_000) -> None:
        self.n_features = at_least("n_features", n_features, 1)
        self.n_classes = at_least("n_classes", n_classes, 2)
        super().__init__(Problem(self.n_features, self.n_classes, 1.0, horizon))

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        d = self.n_features
        labels = streams.model.integers(self.n_classes, size=d)
        left = np.zeros(0, dtype=np.int64)
        while True:
            while len(left) < size:
                left = np.concatenate([left, streams.contexts.permutation(d)])
            now, left = left[:size], left[size:]
            yield np.eye(d)[now], labels[now]
