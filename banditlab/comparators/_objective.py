"""The offline logistic loss over unique contexts, computed in matrix products over blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError

Floats = NDArray[np.float64]

CACHED = 1024  # contexts per block of two products; the block and (K, CACHED) temporaries fit the L2 cache
LARGEST = 1e150  # largest entry of a context, so sums of squares do not overflow
BLOCK = 8192  # contexts per block of elementwise operations; (K, BLOCK) temporaries fit the cache


class Objective:
    r"""The loss :math:`L(W) = \sum_i \sum_k c_{ik} (\mathrm{lse}(W u_i) - (W u_i)_k)` of W (K, d), with its
    derivatives.

    Logits are stored as Z (K, m), so reductions over classes run along contiguous memory. Z is linear in W, so a line
    search needs no matrix product.

    Parameters
    ----------
    contexts
        U, shape (m, d).
    counts
        Shape (m, K): the count of each label at each context.
    """

    def __init__(self, contexts: Floats, counts: Floats) -> None:
        self.contexts = contexts
        self.counts = np.ascontiguousarray(counts.T)
        self.totals = self.counts.sum(axis=0)
        m = contexts.shape[0]
        self._blocks = [slice(start, min(start + BLOCK, m)) for start in range(0, m, BLOCK)]

        self._part: Objective | None = None

    @classmethod
    def of(cls, U: Any, counts: Any) -> Objective:
        """Return the loss of contexts (m, d) and counts (m, K), or raise a UsageError if they are invalid."""
        U, counts = np.ascontiguousarray(U, dtype=np.float64), np.asarray(counts, dtype=np.float64)
        if U.ndim != 2 or counts.ndim != 2 or U.shape[0] != counts.shape[0] or counts.shape[1] < 2:
            raise UsageError(f"U must be (m, d) and counts (m, K) with K >= 2, got {U.shape} and {counts.shape}")
        if not (np.isfinite(U).all() and np.isfinite(counts).all() and (counts >= 0.0).all()):
            raise UsageError("U must be finite, and counts must be finite and 0 or above")
        if (largest := np.abs(U).max(initial=0.0)) > LARGEST:
            raise UsageError(f"entries of U must be at most {LARGEST:g} in absolute value, got {largest:g}")
        return cls(U, counts)

    def part(self, step: int) -> Objective:
        """Return the loss of every `step`-th context, with its counts scaled up to the total of all contexts; the
        result is cached.
        """
        if self._part is None:
            counts, total = self.counts[:, ::step], self.totals[::step].sum()
            scale = self.totals.sum() / total if total > 0.0 else 0.0
            self._part = Objective(np.ascontiguousarray(self.contexts[::step]), scale * counts.T)
        return self._part

    @property
    def shape(self) -> tuple[int, int]:
        """(K, d), the shape of W."""
        return self.counts.shape[0], self.contexts.shape[1]

    def logits(self, W: Floats) -> Floats:
        """Return :math:`Z = W U'` (K, m)."""
        return W @ self.contexts.T

    def pull_back(self, R: Floats) -> Floats:
        """Return :math:`R U` (K, d) for R (K, m)."""
        return R @ self.contexts

    def loss(self, Z: Floats) -> float:
        """Return the loss in nats at the logits Z (K, m)."""
        total = 0.0
        for b in self._blocks:
            shifted = Z[:, b] - Z[:, b].max(axis=0)
            total -= float(np.vdot(self.counts[:, b], shifted))
            np.exp(shifted, out=shifted)
            total += float(self.totals[b] @ np.log(shifted.sum(axis=0)))
        return total

    def forecast(self, Z: Floats) -> tuple[float, Floats]:
        """Return the loss and the softmax S (K, m) at the logits Z (K, m)."""
        total, S = 0.0, np.empty_like(Z)
        for b in self._blocks:
            s = S[:, b]
            np.subtract(Z[:, b], Z[:, b].max(axis=0), out=s)
            total -= float(np.vdot(self.counts[:, b], s))
            np.exp(s, out=s)
            norm = s.sum(axis=0)
            total += float(self.totals[b] @ np.log(norm))
            s /= norm
        return total, S

    def gradient(self, S: Floats) -> Floats:
        r"""Return :math:`G = \sum_i (n_i s_i - c_i) u_i'` (K, d) from the softmax S (K, m).

        Here :math:`n_i = \sum_k c_{ik}`.
        """
        R = np.empty_like(S)
        for b in self._blocks:
            np.multiply(S[:, b], self.totals[b], out=R[:, b])
            R[:, b] -= self.counts[:, b]
        return self.pull_back(R)

    def evaluate(self, W: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient G (K, d) at W in one pass over the contexts, without arrays of length m."""
        K, m = self.counts.shape
        total, G, columns = 0.0, np.zeros(self.shape), np.ascontiguousarray(W.T)
        rows, classes = np.empty((CACHED, K)), np.empty((K, CACHED))
        for start in range(0, m, CACHED):
            u = self.contexts[start : start + CACHED]
            z, s = rows[: len(u)], classes[:, : len(u)]
            c, n = self.counts[:, start : start + CACHED], self.totals[start : start + CACHED]
            np.matmul(u, columns, out=z)
            s[...] = z.T
            s -= s.max(axis=0)
            total -= float(np.vdot(c, s))
            np.exp(s, out=s)
            norm = s.sum(axis=0)
            total += float(n @ np.log(norm))
            s *= n / norm
            s -= c
            G += s @ u
        return total, G

    def hessian_action(self, S: Floats, D: Floats) -> Floats:
        r"""Return :math:`H D` (K, d): row k is :math:`\sum_i n_i s_{ik} (v_{ik} - \langle s_i, v_i \rangle) u_i'` with
        :math:`v_i = D u_i`.
        """
        V = self.logits(D)
        for b in self._blocks:
            v, s = V[:, b], S[:, b]
            v -= np.einsum("ki,ki->i", s, v)
            v *= s
            v *= self.totals[b]
        return self.pull_back(V)

    def hessian_diagonal(self, S: Floats) -> Floats:
        r"""Return :math:`\sum_i n_i s_{ik} (1 - s_{ik}) u_{ij}^2`, shape (K, d)."""
        out = np.zeros(self.shape)
        for b in self._blocks:
            s = S[:, b]
            out += (s * (1.0 - s) * self.totals[b]) @ np.square(self.contexts[b])
        return out

    def mistakes(self, W: Floats) -> int:
        """Return the number of rounds in which the argmax of W u is wrong; ties go to the lowest class."""
        hits = 0.0
        for b in self._blocks:
            Z = W @ self.contexts[b].T
            hits += float(self.counts[:, b][np.argmax(Z, axis=0), np.arange(Z.shape[1])].sum())
        return round(float(self.totals.sum()) - hits)
