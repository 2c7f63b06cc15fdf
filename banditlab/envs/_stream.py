"""Oblivious environments: contexts and labels are a stream, drawn the same for any block size."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from banditlab.envs._base import BanditEnv, Floats, Labels, Streams
from banditlab.errors import EnvironmentContractError, UsageError

CHUNK = 1024
"""Rounds that `_draw` yields at a time. A constant: drawing in other portions could draw other streams."""


class StreamEnv(BanditEnv):
    """Base of environments whose contexts and labels do not depend on the actions.

    A subclass calls `super().__init__(problem)` with a `Problem` that states d, K, R and the horizon, and implements
    `_draw`. In return `reset`, `step`, `label`, `labels` and `blocks` all work and read one and the same stream, which
    is the same for any block size and, as far as they go, for any number of rounds: `_draw` is always asked for
    portions of `CHUNK` rounds, and only then is the stream cut.
    """

    oblivious: ClassVar[bool] = True

    @abstractmethod
    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[Floats, Labels]]:
        """Yield portions of `size` rounds for ever: X (size, d) float64 in C order with ||x|| <= R, y (size,) int64.

        All randomness comes from `streams` (contexts, labels, noise, model), which are at their beginning. What is
        planted once per episode is drawn before the first `yield`. An array that was yielded is not written to again.
        """

    def blocks(self, rounds: int, size: int) -> Iterator[tuple[Floats, Labels]]:
        """Yield (X (n, d), y (n,)) of the current episode from its first round on, n = `size`, the last block shorter.

        Each call starts again at the beginning and leaves `step` untouched. `rounds` may exceed the horizon: streams of
        environments with the same settings and seed are prefixes of each other.

        Raises
        ------
        UsageError
            Before the first reset; rounds or size below 1.
        EnvironmentContractError
            `_draw` yielded arrays of a wrong shape or type, or a label outside 0 ... K-1.
        """
        if rounds < 1 or size < 1:
            raise UsageError(f"blocks: rounds and size must be at least 1, got {rounds} and {size}")
        return self._cut(self._streams(), rounds, size)

    def _cut(self, streams: Streams, rounds: int, size: int) -> Iterator[tuple[Floats, Labels]]:
        source = self._portions(streams)
        X, y = next(source)
        at = 0  # rounds of the current portion that are used up
        for start in range(0, rounds, size):
            n = min(size, rounds - start)
            if at + n <= CHUNK:
                yield X[at : at + n], y[at : at + n]
                at += n
            else:
                X_out, y_out = np.empty((n, X.shape[1])), np.empty(n, dtype=np.int64)
                filled = 0
                while filled < n:
                    if at == CHUNK:
                        (X, y), at = next(source), 0
                    take = min(n - filled, CHUNK - at)
                    X_out[filled : filled + take] = X[at : at + take]
                    y_out[filled : filled + take] = y[at : at + take]
                    filled, at = filled + take, at + take
                yield X_out, y_out

    def _portions(self, streams: Streams) -> Iterator[tuple[Floats, Labels]]:
        """Yield what `_draw` yields, checked: a wrong label would be read out of bounds by a compiled kernel."""
        d, K = self.problem.n_features, self.problem.n_classes
        for X, y in self._draw(streams, CHUNK):
            if X.shape != (CHUNK, d) or X.dtype != np.float64 or not X.flags.c_contiguous:
                raise EnvironmentContractError(
                    f"{type(self).__name__}._draw must yield contexts ({CHUNK}, {d}) float64 in C order, "
                    f"got {X.shape} {X.dtype}"
                )
            if y.shape != (CHUNK,) or y.dtype != np.int64:
                raise EnvironmentContractError(
                    f"{type(self).__name__}._draw must yield labels ({CHUNK},) int64, got {y.shape} {y.dtype}"
                )
            if y.min() < 0 or y.max() >= K:
                self._refuse_label(int(y[(y < 0) | (y >= K)][0]))
            yield X, y
        raise EnvironmentContractError(f"{type(self).__name__}._draw ended; it must yield for ever")

    def _begin(self, streams: Streams) -> None:
        self._rows = self._one_by_one(self._portions(streams))

    def _next(self) -> tuple[Floats, int]:
        return next(self._rows)

    @staticmethod
    def _one_by_one(source: Iterator[tuple[Floats, Labels]]) -> Iterator[tuple[Floats, int]]:
        for X, y in source:
            yield from zip(X, y.tolist())
