"""Oblivious environments, whose stream of contexts and labels is the same for any block size."""

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
"""The number of rounds that `_draw` yields at a time, a constant because other portions could give another stream."""


class StreamEnv(BanditEnv):
    """Base of environments whose contexts and labels do not depend on the actions.

    A subclass calls `super().__init__(problem)` with a `Problem` that has d, K, R and the horizon, and implements
    `_draw`. Then `reset`, `step`, `label`, `labels` and `blocks` all read the same stream. It does not depend on the
    block size, and a shorter stream is a prefix of a longer one, because `_draw` always yields portions of `CHUNK`
    rounds.
    """

    oblivious: ClassVar[bool] = True
    change: Change | None = None
    """How labels change during an episode, as set by `[change]` in a spec."""

    @abstractmethod
    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[Any, Truth]]:
        r"""Yield portions of `size` rounds without end: X (size, d) float64 in C order, :math:`\|x\| \le R`, and y
        (size,) int64.

        A class with `sparse = True` yields X as a scipy.sparse CSR array with increasing columns in each row. A class
        with `several_right = True` yields the bit of every action, (size, K) bool, instead of y.

        All randomness comes from `streams` (contexts, labels, noise, model) in their initial states. Parameters of the
        episode are drawn before the first `yield`. A yielded array is not modified later.
        """

    @property
    def rows_per_pass(self) -> int | None:
        """N if each pass presents the N rows of a table once, the first pass in rounds 1 ... N; otherwise None.

        The engine uses it and `row_order` to separate the first pass from later ones. Neither depends on the labels.
        """
        return None

    def row_order(self, rounds: int) -> Labels | None:
        """Return the table's row (0 ... N-1) of each of the first `rounds` rounds, or None if there is no table."""
        return None

    def blocks(self, rounds: int, size: int) -> Iterator[tuple[Any, Truth]]:
        r"""Yield blocks (X (n, d), y (n,)) of the current episode; n is `size`, or less in the last block.

        X is a dense array, or a scipy.sparse CSR array if `sparse`. If `several_right`, y (n, K) is True for right
        actions.

        Each call starts with the first round and does not affect `step`. `rounds` may exceed the horizon. For equal
        settings and seeds, a shorter stream is a prefix of a longer one.

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
        at = 0  # rounds of the current portion that were already returned
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
        # a separate generator, so `_draw` returns the same values as without the change
        rng = self._child(len(Streams._fields))
        for i, (X, y) in enumerate(self._checked_portions(streams)):
            yield X, self.change.applied(y, i * CHUNK, self.problem.n_classes, rng)

    def _checked_portions(self, streams: Streams) -> Iterator[tuple[Any, Truth]]:
        """Check and yield the output of `_draw`; compiled kernels do not check labels."""
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
        self._refuse_draw("ended; it must yield without end")

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
