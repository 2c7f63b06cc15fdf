r"""The product of balls :math:`\{W : \|W_k\|_2 \le B\, \text{ for all } k\}`: projection, certificate, faces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.comparators._objective import Floats, Objective


def row_dots(V: Floats, W: Floats) -> Floats:
    r"""Return the inner products :math:`\langle V_k, W_k \rangle`, shape (K,)."""
    return np.einsum("kd,kd->k", V, W)


def row_norms(W: Floats) -> Floats:
    r"""Return the row norms :math:`\|W_k\|_2`, shape (K,)."""
    return np.sqrt(row_dots(W, W))


def shrinkage(W: Floats, B: float) -> Floats:
    """Return the factors (K, 1) that project the rows of W onto the ball of radius B."""
    return (B / np.maximum(row_norms(W), B))[:, None]


def feasible(W: Floats, B: float) -> Floats:
    """Return W projected onto the product of balls, such that no computed row norm exceeds B in spite of rounding."""
    W = W * shrinkage(W, B)
    while (beyond := row_norms(W) > B).any():
        W[beyond] *= 1.0 - 2.0**-52
    return W


def frank_wolfe_gap(W: Floats, G: Floats, B: float) -> float:
    r"""Return :math:`\langle G, W \rangle + B \sum_k \|G_k\|`, an upper bound on :math:`L(W) - \min L` by convexity.

    The minimum is over the product of balls. The term of each row is nonnegative for a feasible W, so a negative value
    is a rounding error and counts as 0.
    """
    return float(np.maximum(row_dots(G, W) + B * row_norms(G), 0.0).sum())


class Point(NamedTuple):
    """A matrix W (K, d) with its logits Z, softmax S (K, m), loss, gradient G (K, d) and gap."""

    W: Floats
    Z: Floats
    S: Floats
    loss: float
    G: Floats
    gap: float

    def within(self, tolerance: float) -> bool:
        r"""Return whether the gap is at most :math:`\text{tolerance} \max(1, \text{loss})`."""
        return self.gap <= tolerance * max(1.0, self.loss)


def point(objective: Objective, W: Floats, Z: Floats, B: float) -> Point:
    """Return the point at W, whose logits are Z, with all quantities computed."""
    loss, S = objective.forecast(Z)
    G = objective.gradient(S)
    return Point(W, Z, S, loss, G, frank_wolfe_gap(W, G, B))


class Face(NamedTuple):
    r"""The rows that are fixed on the boundary of their ball (K,), with multipliers :math:`\mu` (K,) and unit normals
    (K, d).

    Multipliers and normals are 0 for other rows.
    """

    held: NDArray[np.bool_]
    mu: Floats
    normals: Floats

    def tangent(self, D: Floats) -> Floats:
        """Return D without its component along the normals of the fixed rows."""
        return D - row_dots(D, self.normals)[:, None] * self.normals

    def joined(self, p: Point, D: Floats, B: float) -> tuple[Face, Floats] | None:
        """Return the face extended by the free rows that the step D moves out of the ball, or None if there are none.

        Also return D, changed so that these rows end on the tangent plane of the ball in the direction of
        :math:`W + D`.
        """
        end = p.W + D
        norms = row_norms(end)
        leaving = ~self.held & (norms > B * (1.0 + 1e-9))
        if not leaving.any():
            return None
        normals = np.where(leaving[:, None], end / np.maximum(norms, B)[:, None], self.normals)
        face = Face(self.held | leaving, self.mu, normals)
        depth = np.where(leaving, B - row_dots(p.W, normals), 0.0)
        return face, depth[:, None] * normals + face.tangent(D)


def face_at(p: Point, B: float) -> Face:
    r"""Return the rows on the boundary that a descent step would move outwards; at an optimum
    :math:`G_k + \mu_k W_k = 0` for them.
    """
    norms, inner = row_norms(p.W), row_dots(p.G, p.W)
    held = (norms >= B * (1.0 - 1e-10)) & (inner < 0.0)
    mu = np.where(held, -inner / B**2, 0.0)
    normals = np.where(held[:, None], p.W / np.where(held, norms, 1.0)[:, None], 0.0)
    return Face(held, mu, normals)
