"""The mean of softmax over Gaussian logits: nodes for N(0, I) are mapped by the symmetric root of the covariance.

Unlike a Cholesky factor, the symmetric root commutes with a permutation of the classes. If the nodes are also permuted,
the mean is permuted and otherwise unchanged.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import njit

LEAST_MEAN = 1e-280
"""A mean probability below this may be inexact or 0, and is summed again relative to its largest term."""


class Nodes(NamedTuple):
    """Quadrature nodes for N(0, I): points (m, K) and weights (m,).

    `root` (K, K), `vectors` (K, K), w (K,) and `logs` (m,) are work arrays.
    """

    points: NDArray[np.float64]
    weights: NDArray[np.float64]
    root: NDArray[np.float64]
    vectors: NDArray[np.float64]
    w: NDArray[np.float64]
    logs: NDArray[np.float64]

    @classmethod
    def of(cls, points: NDArray[np.float64], weights: NDArray[np.float64]) -> Nodes:
        m, K = points.shape
        return cls(points, weights, np.zeros((K, K)), np.zeros((K, K)), np.zeros(K), np.zeros(m))


def cubature(K: int) -> Nodes:
    r"""Return the :math:`2 K` points :math:`\pm \sqrt{K} e_k` with equal weights.

    The rule is exact for polynomials of degree 3 and closed under permutations of the classes.
    """
    points = math.sqrt(K) * np.concatenate([np.eye(K), -np.eye(K)])
    return Nodes.of(points, np.full(2 * K, 0.5 / K))


def gauss_hermite(K: int, per_axis: int) -> Nodes:
    """Return the product rule on the K - 1 directions that change softmax, exact up to degree 2 `per_axis` - 1 in each."""
    # All combinations of the one-dimensional nodes on K - 1 axes
    t, v = np.polynomial.hermite_e.hermegauss(per_axis)
    axes = np.stack(np.meshgrid(*[t] * (K - 1), indexing="ij"), axis=-1).reshape(-1, K - 1)
    weights = np.stack(np.meshgrid(*[v / v.sum()] * (K - 1), indexing="ij"), axis=-1).reshape(-1, K - 1).prod(axis=1)
    # are mapped to the subspace orthogonal to (1, ..., 1).
    basis = np.linalg.svd(np.eye(K) - 1.0 / K)[0][:, : K - 1]  # orthonormal, orthogonal to (1, ..., 1)
    return Nodes.of(np.ascontiguousarray(axes @ basis.T), weights)


@njit
def _rotate(C, V, i, j):
    """Do one Jacobi rotation that makes C[i, j] zero, and multiply V by it."""
    # The smaller angle with tan 2 theta = 2 C_ij / (C_jj - C_ii).
    tau = (C[j, j] - C[i, i]) / (2.0 * C[i, j])
    t = math.copysign(1.0, tau) / (abs(tau) + math.sqrt(1.0 + tau * tau))
    cos = 1.0 / math.sqrt(1.0 + t * t)
    sin = t * cos
    K = C.shape[0]
    # Columns i and j of C and V, then rows i and j of C.
    for k in range(K):
        a, b = C[k, i], C[k, j]
        C[k, i], C[k, j] = cos * a - sin * b, sin * a + cos * b
        a, b = V[k, i], V[k, j]
        V[k, i], V[k, j] = cos * a - sin * b, sin * a + cos * b
    for k in range(K):
        a, b = C[i, k], C[j, k]
        C[i, k], C[j, k] = cos * a - sin * b, sin * a + cos * b
    C[i, j] = C[j, i] = 0.0


@njit
def symmetric_root(C, V, root):
    """Write the symmetric positive semidefinite root of C (K, K) into `root`; C and V (K, K) are overwritten.

    Cyclic Jacobi rotations converge quadratically, in 4 to 7 sweeps.
    """
    K = C.shape[0]
    V[:, :] = 0.0
    size = 0.0
    for k in range(K):
        V[k, k] = 1.0
        size = max(size, abs(C[k, k]))
    # Sweep over all pairs until C is diagonal, with its eigenvalues; V has the eigenvectors.
    for _ in range(30):
        largest = 0.0
        for i in range(K):
            for j in range(i + 1, K):
                largest = max(largest, abs(C[i, j]))
        if largest <= 1e-16 * size:
            break
        for i in range(K):
            for j in range(i + 1, K):
                if C[i, j] != 0.0:
                    _rotate(C, V, i, j)
    # root = V diag(sqrt(eigenvalues)) V'
    for i in range(K):
        for j in range(i + 1):
            total = 0.0
            for k in range(K):
                total += V[i, k] * math.sqrt(max(C[k, k], 0.0)) * V[j, k]
            root[i, j] = root[j, i] = total


@njit
def log_mean_softmax(mean, C, nodes, mu, z):
    r"""Write :math:`\ln((1 - \mu)\, \mathbb{E}[\mathrm{softmax}(\text{mean} + N(0, C))] + \mu/K)` into z (K,).

    The expectation is a weighted sum over the nodes, whose weights must not be negative. C is overwritten.
    """
    points, weights, root, vectors, w, logs = nodes
    m, K = points.shape
    symmetric_root(C, vectors, root)
    z[:] = 0.0
    # z = sum_i weights_i softmax(mean + root point_i); logs keeps every node's log-sum-exp
    for i in range(m):
        logs[i] = _shifted(mean, root, points[i], w)
        total = 0.0
        for k in range(K):
            w[k] = math.exp(w[k])
            total += w[k]
        logs[i] += math.log(total)
        for k in range(K):
            z[k] += weights[i] * (w[k] / total)
    # ln((1 - mu) z + mu/K); tiny means are summed again in logarithms
    for k in range(K):
        if mu > 0.0:
            z[k] = math.log((1.0 - mu) * z[k] + mu / K)
        elif z[k] > LEAST_MEAN:
            z[k] = math.log(z[k])
        else:
            z[k] = _log_mean(mean, nodes, k)


@njit
def _shifted(mean, root, point, w):
    r"""Write :math:`\text{mean} + \text{root}\, \text{point}` minus its largest entry into w (K,); return that entry."""
    K = w.shape[0]
    top = -math.inf
    for k in range(K):
        total = mean[k]
        for l in range(K):
            total += root[k, l] * point[l]
        w[k] = total
        top = max(top, total)
    for k in range(K):
        w[k] -= top
    return top


@njit
def _log_mean(mean, nodes, k):
    """Return ln E softmax_k, summed relative to its largest term; `nodes.logs` stores the log-sum-exp of each node."""
    points, weights, root, logs = nodes.points, nodes.weights, nodes.root, nodes.logs
    m = points.shape[0]
    # ln sum_i weights_i e^{a_i}, with its largest term factored out
    top = -math.inf
    for i in range(m):
        top = max(top, mean[k] + np.dot(root[k], points[i]) - logs[i])
    total = 0.0
    for i in range(m):
        total += weights[i] * math.exp(mean[k] + np.dot(root[k], points[i]) - logs[i] - top)
    return top + math.log(total)
