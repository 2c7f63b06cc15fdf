"""Environments that present the rows of a data set in repeated passes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.envs._base import Labels, Streams, Truth
from banditlab.envs._recipe import Rows
from banditlab.envs._stream import StreamEnv
from banditlab.envs.encoding import Encoder
from banditlab.numerics.sparse_rows import is_sparse
from banditlab.problem import Problem


class DataSetEnv(StreamEnv):
    r"""Base of environments that present the rows of a table in repeated passes.

    Each pass has a new seeded order, or the order of the table if `in_order` is true. A subclass implements `_load`.
    Labels are :math:`0, \dots, K-1`; `classes` lists the names of the labels or actions.
    """

    in_order: bool = False
    """Whether each pass presents the rows in the order of the table."""
    row_units: Labels | None
    """The group of each row, (N,) in 0 ... U-1; rows of a group are presented together. None if there are no groups."""

    def __init__(self, horizon: int) -> None:
        self._table = self._load()
        X, classes, radius, self.row_units = self._table.X, self._table.classes, self._table.radius, self._table.units
        self.sparse, self.several_right = is_sparse(X), self._table.y.ndim == 2
        self.classes = list(classes)
        super().__init__(Problem(X.shape[1], len(classes), radius, horizon))

    @abstractmethod
    def _load(self) -> Rows:
        """Return the prepared rows; a subclass caches them if reading is slow."""

    @property
    def encoder(self) -> Encoder | None:
        """The fitted encoder of the contexts, for new rows; None for sparse rows."""
        return self._table.encoder

    @property
    def n_rows(self) -> int:
        """N, the number of rows of one pass."""
        return len(self._table.y)

    @property
    def rows_per_pass(self) -> int:
        """N, the number of rounds of a pass, which presents each row once."""
        return self.n_rows

    def row_order(self, rounds: int) -> Labels:
        """Return which row, 0 ... N-1, each of the first `rounds` rounds of the episode presents, (rounds,).

        Raises
        ------
        UsageError
            The method is called before the first reset.
        """
        orders = self._streams().contexts
        return np.concatenate([self._pass(orders) for _ in range(0, rounds, self.n_rows)])[:rounds]

    def _pass(self, orders: np.random.Generator) -> Labels:
        """Return the order of the rows in one pass, (N,).

        It is the order of the table if `in_order`, otherwise a random permutation. With groups, the groups and the rows
        in each group are permuted, and each group's rows stay together.
        """
        if self.in_order:
            return np.arange(self.n_rows)
        order, units = orders.permutation(self.n_rows), self.row_units
        if units is None:
            return order
        place = orders.permutation(units.max() + 1)
        return np.asarray(order[np.argsort(place[units[order]], kind="stable")])

    @property
    def class_shares(self) -> NDArray[np.float64]:
        """The fraction of rows in which each class is right, (K,), for reports; no player observes it."""
        return np.array([*self.class_counts.values()]) / self.n_rows

    @property
    def class_counts(self) -> dict[Any, int]:
        """The number of rows in which each class is right, (K,)."""
        y = self._table.y
        counts = y.sum(axis=0) if y.ndim == 2 else np.bincount(y, minlength=self.problem.n_classes)
        return dict(zip(self._table.classes, counts.tolist(), strict=True))

    @property
    def action_costs(self) -> NDArray[np.float64] | None:
        """The cost of each action in each row, (N, K), or None. Players do not observe it."""
        return self._table.costs

    @property
    def ranked_rows(self) -> Rows:
        """The first row of each group, which the ranking counts; baselines in hindsight are computed on these rows."""
        (X, y), costs = self._table.alone(), self._table.costs
        return self._table._replace(X=X, y=y, costs=None if costs is None else costs[self._table.first])

    @property
    def row_bytes(self) -> int:
        """The memory of one round in a block, in bytes: the context, plus a byte per action if several may be right."""
        X, bits = self._table.X, self.problem.n_classes if self.several_right else 0
        return bits + (12 * -(-X.nnz // X.shape[0]) + 8 if self.sparse else super().row_bytes)

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[Any, Truth]]:
        X, y = self._table.X, self._table.y
        left = np.zeros(0, dtype=np.int64)
        while True:
            while len(left) < size:
                left = np.concatenate([left, self._pass(streams.contexts)])
            now, left = left[:size], left[size:]
            yield X[now], y[now]
