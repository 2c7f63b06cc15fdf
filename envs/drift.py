"""A planted logistic model whose weights rotate slowly: yesterday's best weights are wrong tomorrow.

This file is an example to copy. A custom environment with a stream of its own is one class:

* derive it from `StreamEnv`, give it an `id` in your own namespace and an integer `version` (raise it when the numbers
  change; an edited file is another environment anyway);
* the constructor takes keyword-only settings that JSON can hold, and `horizon`; check them, keep each as an attribute
  of the same name, and pass a `Problem` (d, K, R, horizon) to `super().__init__`;
* `_draw(streams, size)` yields (contexts (size, d), labels (size,)) for ever. All randomness comes from the four
  generators in `streams`: then the same seed gives the same stream, on every machine and for any block size. Norms stay
  within R, labels within 0 ... K-1.

Everything else (reset, step, label, labels, blocks, both ways of running) is inherited. If the label depends on what
the agent did before, derive from `AdaptiveEnv` instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditlab.envs import StreamEnv, Streams
from banditlab.losses import softmax
from banditlab.problem import Problem
from banditlab.validation import at_least, positive


class Drift(StreamEnv):
    """Labels drawn from softmax(W_t x), where every row of W_t turns once around in `period` rounds.

    Row k is W_t[k] = B (cos(a_t) u_k + sin(a_t) v_k) with a_t = 2 pi t / period and u_k, v_k a random orthonormal pair,
    so its norm stays B. Over many periods every fixed W averages out: the best W in hindsight is then worth little, and
    an agent that forgets can beat it.

    Parameters
    ----------
    n_features
        d, at least 2; contexts are uniform on the unit sphere.
    n_classes
        K.
    norm_bound
        B, the norm of every row of W_t.
    period
        Rounds of one turn.
    horizon
        T, rounds of an episode.
    """

    id: ClassVar[str] = "lab/Drift-v0"
    summary: ClassVar[str] = "planted logistic model whose weights rotate slowly"
    reference: ClassVar[str] = "made here"
    version: ClassVar[int] = 1

    def __init__(
        self,
        *,
        n_features: int = 5,
        n_classes: int = 3,
        norm_bound: float = 10.0,
        period: int = 20_000,
        horizon: int = 10_000,
    ) -> None:
        self.n_features = at_least("n_features", n_features, 2)
        self.n_classes = at_least("n_classes", n_classes, 2)
        self.norm_bound = positive("norm_bound", norm_bound)
        self.period = at_least("period", period, 1)
        super().__init__(Problem(self.n_features, self.n_classes, radius=1.0, horizon=horizon))

    def planes(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return (K, 2, d): the orthonormal pair in whose plane each row turns."""
        u = _unit(rng.standard_normal((self.n_classes, self.n_features)))
        v = rng.standard_normal((self.n_classes, self.n_features))
        v = _unit(v - (v * u).sum(axis=1, keepdims=True) * u)
        return np.stack([u, v], axis=1)

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        planes = self.planes(streams.model)  # planted once per episode, before the first yield
        start = 0
        while True:
            # A hair inside the sphere: no order of summation may find a norm above the radius that Problem promises.
            X = _unit(streams.contexts.standard_normal((size, self.n_features))) * (1 - 1e-12)
            angle = 2 * math.pi * np.arange(start, start + size) / self.period
            along = np.einsum("nd,kpd->nkp", X, planes)
            logits = self.norm_bound * (np.cos(angle)[:, None] * along[..., 0] + np.sin(angle)[:, None] * along[..., 1])
            u = streams.labels.random(size)[:, None]
            y = (u >= np.cumsum(softmax(logits), axis=1)[:, :-1]).sum(axis=1).astype(np.int64)
            yield X, y
            start += size


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
