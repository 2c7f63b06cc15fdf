"""Oblivious environments: contexts and labels are a stream that is the same for any block size."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NoReturn

import numpy as np

from banditlab.envs._base import BanditEnv, Floats, Labels, Streams, Truth
from banditlab.envs.change import Change
from banditlab.errors import EnvironmentContractError, UsageError
from banditlab.numerics.sparse_rows import SparseRows, is_sparse

CHUNK = 1024
"""Rounds that `_draw` yields at a time. A constant: drawing in other portions could draw other streams."""


class StreamEnv(BanditEnv):
    """Base of environments whose contexts and labels do not depend on the actions.

    A subclass calls `super().__init__(problem)` with a `Problem` that has d, K, R and the horizon, and implements
    `_draw`. Then `reset`, `step`, `label`, `labels` and `blocks` all read the same stream. It is the same for any block
    size, and for any number of rounds as far as the rounds go: `_draw` always yields portions of `CHUNK` rounds, which
    are then cut.
    """

    oblivious: ClassVar[bool] = True
    change: Change | None = None
    """How labels change during an episode: a sweep's `[change]`."""

    @abstractmethod
    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[Any, Truth]]:
        r"""Yield portions of `size` rounds without end: X (size, d) float64 in C order, :math:`\|x\| \le R`, and y
        (size,) int64.

        A class with `sparse = True` yields X as a scipy.sparse CSR array with increasing columns in each row. A class
        with `several_right = True` yields the bit of every action, (size, K) bool, instead of y.

        All randomness comes from `streams` (contexts, labels, noise, model) in their initial states. What is planted
        once per episode is drawn before the first `yield`. An array that was yielded is not modified later.
        """

    @property
    def rows_per_pass(self) -> int | None:
        """N, if each pass over a table shows each of its N rows once, the first pass in rounds 1 ... N; otherwise None.

        Together with `row_order` the engine uses it to separate the first pass from repeats. It reveals nothing about
        labels.
        """
        return None

    def row_order(self, rounds: int) -> Labels | None:
        """Return the row (0 ... N-1) shown in each of the episode's first rounds, (rounds,), or None without a table."""
        return None

    def blocks(self, rounds: int, size: int) -> Iterator[tuple[Any, Truth]]:
        r"""Yield (X (n, d), y (n,)) of the current episode from its first round on, n = `size`, the last block shorter.

        X is a dense array, or a scipy.sparse CSR array if the class is `sparse`. If `several_right`, y is (n, K) bool
        and says whether each action is right.

        Each call starts again at the beginning and does not affect `step`. `rounds` may exceed the horizon: streams of
        environments with the same settings and seed are prefixes of each other.

        Raises
        ------
        UsageError
            The method is called before the first reset, or rounds or size is below 1.
        EnvironmentContractError
            `_draw` yielded arrays of a wrong shape or type, or a label outside :math:`0, \dots, K-1`.
        """
        if rounds < 1 or size < 1:
            raise UsageError(f"blocks: rounds and size must be at least 1, got {rounds} and {size}")
        return self._cut(self._streams(), rounds, size)

    def _cut(self, streams: Streams, rounds: int, size: int) -> Iterator[tuple[Any, Truth]]:
        source = self._portions(streams)
        X, y = next(source)
        at = 0  # rounds of the current portion that are used up
        for start in range(0, rounds, size):
            left, parts = min(size, rounds - start), []
            while left > 0:
                if at == CHUNK:
                    (X, y), at = next(source), 0
                take = min(left, CHUNK - at)
                parts.append((X, y) if take == CHUNK else (X[at : at + take], y[at : at + take]))
                left, at = left - take, at + take
            yield parts[0] if len(parts) == 1 else _joined(parts)

    def _portions(self, streams: Streams) -> Iterator[tuple[Any, Truth]]:
        """Yield the checked output of `_draw`, with labels changed as the sweep specifies."""
        if self.change is None:
            yield from self._checked_portions(streams)
            return
        # a stream of its own: what `_draw` draws stays as it is without the change
        rng = self._child(len(Streams._fields))
        for i, (X, y) in enumerate(self._checked_portions(streams)):
            yield X, self.change.applied(y, i * CHUNK, self.problem.n_classes, rng)

    def _checked_portions(self, streams: Streams) -> Iterator[tuple[Any, Truth]]:
        """Yield the output of `_draw` after a check of the labels, which compiled kernels do not check."""
        d, K = self.problem.n_features, self.problem.n_classes
        wanted = "CSR" if self.sparse else "in C order"
        source = self._draw(streams, CHUNK)
        if not isinstance(source, Iterator):
            self._refuse_draw(f"returned a {type(source).__name__}: it must yield (contexts, labels)")
        for portion in source:
            if not (isinstance(portion, tuple) and len(portion) == 2):
                self._refuse_draw(f"must yield (contexts, labels), got a {type(portion).__name__}")
            X, y = portion
            if not self._has_form(X) or X.shape != (CHUNK, d) or X.dtype != np.float64:
                self._refuse_draw(f"must yield contexts ({CHUNK}, {d}) float64 {wanted}, got {_form(X)}")
            shape, dtype, what = ((CHUNK, K), "bool", "bits") if self.several_right else ((CHUNK,), "int64", "labels")
            if not isinstance(y, np.ndarray) or y.shape != shape or y.dtype != dtype:
                self._refuse_draw(f"must yield {what} {shape} {dtype}, got {_form(y)}")
            if not self.several_right and (y.min() < 0 or y.max() >= K):
                self._refuse_label(int(y[(y < 0) | (y >= K)][0]))
            yield X, y
        self._refuse_draw("ended; it must yield for ever")

    def _refuse_draw(self, what: str) -> NoReturn:
        raise EnvironmentContractError(f"{type(self).__name__}._draw {what}")

    def _has_form(self, X: Any) -> bool:
        if self.sparse:
            return getattr(X, "format", "") == "csr"
        return isinstance(X, np.ndarray) and X.flags.c_contiguous

    def _begin(self, streams: Streams) -> None:
        self._rows = self._one_by_one(self._portions(streams))

    def _next(self) -> tuple[Floats, Any]:
        return next(self._rows)

    @staticmethod
    def _one_by_one(source: Iterator[tuple[Any, Truth]]) -> Iterator[tuple[Floats, Any]]:
        for X, y in source:
            yield from zip(_dense_rows(X) if is_sparse(X) else X, y.tolist())


def _form(array: Any) -> str:
    return f"{np.shape(array)} {getattr(array, 'dtype', type(array).__name__)}"


def _joined(parts: list[tuple[Any, Truth]]) -> tuple[Any, Truth]:
    """Return the rounds of several portions as one block."""
    contexts, labels = zip(*parts)
    if not is_sparse(contexts[0]):
        return np.concatenate(contexts), np.concatenate(labels)
    from scipy.sparse import vstack

    return vstack(contexts, format="csr"), np.concatenate(labels)


def _dense_rows(X: Any) -> Iterator[Floats]:
    """Yield the contexts of a CSR array as vectors (d,), one at a time."""
    rows = SparseRows.of(X)
    for t in range(len(rows)):
        yield rows[t : t + 1].toarray()[0]
