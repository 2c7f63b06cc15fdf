"""Environments over the rows of a data set: seeded permutations of the rows, one after another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.envs._base import Labels, Streams
from banditlab.envs._recipe import Rows
from banditlab.envs._stream import StreamEnv
from banditlab.envs.encoding import Encoder
from banditlab.numerics.sparse_rows import is_sparse
from banditlab.problem import Problem


class DataSetEnv(StreamEnv):
    r"""Shows the rows of a table in a fresh seeded order per pass, for as many passes as the rounds need.

    A subclass implements `_load`. Labels are :math:`0, \dots, K-1`; their own names are in `classes`.
    """

    def __init__(self, horizon: int) -> None:
        self._table = self._load()
        X, classes, radius = self._table.X, self._table.classes, self._table.radius
        self.sparse = is_sparse(X)
        self.classes = list(classes)
        super().__init__(Problem(X.shape[1], len(classes), radius, horizon))

    @abstractmethod
    def _load(self) -> Rows:
        """Return the prepared rows (cached where reading them is slow)."""

    @property
    def encoder(self) -> Encoder | None:
        """The fitted recipe that made the contexts, for rows that come later; None where rows are sparse."""
        return self._table.encoder

    @property
    def n_rows(self) -> int:
        """N, the rows of one pass."""
        return len(self._table.y)

    @property
    def rows_per_pass(self) -> int:
        """N: rounds 1 ... N show each row once, and so does every pass that follows."""
        return self.n_rows

    def row_order(self, rounds: int) -> Labels:
        """Return the row (0 ... N-1) that each of the episode's first rounds shows, (rounds,).

        Raises
        ------
        UsageError
            Before the first reset.
        """
        orders, passes = self._streams().contexts, -(-rounds // self.n_rows)
        return np.concatenate([orders.permutation(self.n_rows) for _ in range(passes)])[:rounds]

    @property
    def class_shares(self) -> NDArray[np.float64]:
        """The share of the rows that each class has, (K,): for reports, no player sees it."""
        return np.bincount(self._table.y, minlength=self.problem.n_classes) / self.n_rows

    @property
    def row_bytes(self) -> int:
        """The memory a round's context takes in a block."""
        X = self._table.X
        return 12 * -(-X.nnz // X.shape[0]) + 8 if self.sparse else super().row_bytes

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[Any, Labels]]:
        X, y = self._table.X, self._table.y
        left = np.zeros(0, dtype=np.int64)
        while True:
            passes = [left]
            have = len(left)
            while have < size:
                passes.append(streams.contexts.permutation(len(y)))
                have += len(y)
            order = np.concatenate(passes)
            now, left = order[:size], order[size:]
            yield X[now], y[now]
