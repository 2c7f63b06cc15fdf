r"""AIOLI's quadratic in a reproducing kernel Hilbert space, represented by a Gram matrix that grows with the updates.

The quadratic is :math:`A = \lambda I + \sum_s \kappa_s \phi_s \phi_s'` and :math:`b = \sum_s \beta_s \phi_s`, where
:math:`\phi_s` is the feature of the context :math:`x_s`. With :math:`D = \mathrm{diag}(\kappa)`, the Gram matrix G and
:math:`L L' = D^{1/2} G D^{1/2} + \lambda I`,

.. math::

    a = L^{-1} D^{1/2} k_x, \quad \phi' A^{-1} \phi = (k(x, x) - a'a)/\lambda, \quad
    \phi' A^{-1} b = (k_x' \beta - a'r)/\lambda,

with :math:`r = L^{-1} D^{1/2} G \beta`. A round adds a row to L, which consists of :math:`\sqrt{\kappa}\, a` and a
diagonal entry, and adds
:math:`\beta_t a` and a new entry to r. It costs one triangular solve, and L is the only stored matrix.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.limits import Limits
from banditlab.numerics.symmetric import dot

FIRST_CAPACITY = 64
"""The initial capacity in rounds, which doubles when the arrays are full."""
LINEAR, GAUSSIAN, POLYNOMIAL = range(3)
r"""The kernels: :math:`x'y`, :math:`\exp(-\|x - y\|^2 / (2\, \text{parameter}^2))`, :math:`(1 + x'y)^{\text{parameter}}`."""


class Dual(NamedTuple):
    r"""The quadratic in its dual form, for at most `capacity` rounds.

    n (1,) is the number of rounds so far. X (capacity, d) contains their contexts; s, which is :math:`\sqrt{\kappa}`,
    and the :math:`\beta` and r of the module's formulas (capacity,) have one entry per round. L is stored by rows,
    without the entries above the diagonal. For `kernel` and `parameter`, see `kernel_value`. `regularization` is
    :math:`\lambda`. k and a (capacity,) are work arrays.
    """

    n: NDArray[np.int64]
    X: NDArray[np.float64]
    s: NDArray[np.float64]
    beta: NDArray[np.float64]
    r: NDArray[np.float64]
    L: NDArray[np.float64]
    kernel: int
    parameter: float
    regularization: float
    k: NDArray[np.float64]
    a: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"n": (0, len(self.s))}

    @classmethod
    def empty(
        cls, d: int, kernel: int, parameter: float, regularization: float, capacity: int = FIRST_CAPACITY
    ) -> Dual:
        """Return the quadratic before any round."""
        s, beta, r, k, a = np.zeros((5, capacity))
        X, L = np.zeros((capacity, d)), np.zeros(capacity * (capacity + 1) // 2)
        return cls(np.zeros(1, np.int64), X, s, beta, r, L, kernel, parameter, regularization, k, a)

    def grown(self) -> Dual:
        """Return a quadratic with space for at least one more round: this one, or a copy with twice the capacity."""
        capacity = len(self.s)
        if self.n[0] < capacity:
            return self
        X = np.concatenate([self.X, np.zeros_like(self.X)])
        s, beta, r, k, a = (
            np.concatenate([v, np.zeros(capacity)]) for v in (self.s, self.beta, self.r, self.k, self.a)
        )
        L = np.concatenate(
            [self.L, np.zeros(capacity * (2 * capacity + 1) - capacity * (capacity - 1) // 2 - capacity)]
        )
        return self._replace(X=X, s=s, beta=beta, r=r, L=L, k=k, a=a)


@njit
def kernel_value(x, y, kernel, parameter):
    """Return :math:`k(x, y)` for x, y (d,).

    The parameter of GAUSSIAN is the bandwidth, that of POLYNOMIAL is the degree; LINEAR has none.
    """
    if kernel == GAUSSIAN:
        square = 0.0
        for j in range(x.shape[0]):
            square += (x[j] - y[j]) ** 2
        return math.exp(-0.5 * square / (parameter * parameter))
    if kernel == POLYNOMIAL:
        return (1.0 + dot(x, y)) ** parameter
    return dot(x, y)


@njit
def dual_form(dual, x):
    r"""Return :math:`m = \phi'A^{-1} b` and :math:`q = \phi'A^{-1} \phi` at x (d,); leave :math:`k_x` and a in the work
    arrays.
    """
    dual, x = borrow(dual), borrow(x)
    k, a, s, L = dual.k, dual.a, dual.s, dual.L
    lam, kernel, parameter = dual.regularization, dual.kernel, dual.parameter
    m, q = 0.0, kernel_value(x, x, kernel, parameter)
    # For each row of L: k_x, a = L^{-1} D^{1/2} k_x, and the two sums k_x'beta - a'r and k(x, x) - a'a.
    start = 0
    for i in range(dual.n[0]):
        k[i] = kernel_value(dual.X[i], x, kernel, parameter)
        row = L[start : start + i + 1]
        a[i] = (s[i] * k[i] - dot(row[:i], a[:i])) / row[i]
        start += i + 1
        m += k[i] * dual.beta[i] - a[i] * dual.r[i]
        q -= a[i] * a[i]
    return m / lam, max(q, 0.0) / lam


@njit
def dual_add(dual, x, q, kappa, beta):
    r"""Add :math:`\kappa \phi \phi'` to A and :math:`\beta \phi` to b, for the x (d,) of the last `dual_form`.

    q is the second result of that call.
    """
    dual, x = borrow(dual), borrow(x)
    n, k, a, r = dual.n[0], dual.k, dual.a, dual.r
    lam = dual.regularization
    root = math.sqrt(kappa)
    # The new row of L is (sqrt(kappa) a, its diagonal entry); r += a beta.
    row = dual.L[n * (n + 1) // 2 : (n + 1) * (n + 2) // 2]
    image = kernel_value(x, x, dual.kernel, dual.parameter) * beta  # entry of G beta
    for i in range(n):
        row[i] = root * a[i]
        image += k[i] * dual.beta[i]
        r[i] += a[i] * beta
    # The diagonal entry, and the new entry of r = L^{-1} D^{1/2} G beta.
    row[n] = math.sqrt(lam + kappa * lam * q)  # kappa k(x, x) + lambda - ||row||^2
    r[n] = (root * image - dot(row[:n], r[:n])) / row[n]
    overwrite(dual.X[n], x)
    dual.s[n], dual.beta[n] = root, beta
    dual.n[0] = n + 1
