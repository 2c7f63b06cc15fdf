r"""FOLKLORE's root :math:`z = g - \tilde{A}\, \mathrm{softmax}(z)` by gradient descent.

The method is that of Agarwal, Kale and Zimmert (ALT 2022, Theorem 4, Appendix E). With
:math:`z = \tilde{A}^{1/2} \tilde{z}` the root minimises (E.1), :math:`(1/2) \|\tilde{z}\|^2 - \langle \tilde{z},
\tilde{A}^{-1/2} g \rangle + \ln \sum_k \exp((\tilde{A}^{1/2} \tilde{z})_k)`. This function is 1-strongly convex. It is
:math:`(1 + \lambda_{\max}(\tilde{A})/2)`-smooth, because the Hessian of its last term is :math:`\tilde{A}^{1/2} S
\tilde{A}^{1/2}` and S is at most 1/2. The code writes :math:`\tilde{z}` as :math:`\tilde{A}^{-1/2} g - v`, so it needs
no inverse: :math:`z = g - \tilde{A}^{1/2} v`. The descent starts at v = 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def softmax(z: Floats) -> Floats:
    r"""Return :math:`\exp(z_k) / \sum_j \exp(z_j)` for z (K,)."""
    shifted: Floats = np.exp(z - z.max())
    return shifted / shifted.sum()


def descent_steps(largest: float, accuracy: float) -> int:
    r"""Return the number of steps that makes :math:`\|z - \text{root}\|^2` at most `accuracy`.

    `largest` is an upper bound :math:`l` on the eigenvalues of :math:`\tilde{A}`. A step of size :math:`1/(1 + l/2)`
    multiplies :math:`\|v - v^*\|^2` by at most :math:`1 - 1/(1 + l/2)`. The initial value of this square is
    :math:`\|\tilde{A}^{1/2} \mathrm{softmax}\|^2 \le l`, and :math:`\|z - \text{root}\|^2 \le l\, \|v - v^*\|^2`.
    """
    if largest <= 0.0 or largest**2 <= accuracy:
        return 0
    return math.ceil((1.0 + 0.5 * largest) * math.log(largest**2 / accuracy))


def descended(g: Floats, At: Floats, largest: float, steps: int) -> Floats:
    r"""Return z (K,) after `steps` steps from :math:`z = g`.

    :math:`\tilde{A}` (K, K) is positive semidefinite with eigenvalues of at most `largest`.
    """
    values, vectors = np.linalg.eigh(At)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # At^{1/2}
    v, step = np.zeros_like(g), 1.0 / (1.0 + 0.5 * largest)
    for _ in range(steps):
        v += step * (root @ softmax(g - root @ v) - v)  # -gradient of (E.1) in v
    z: Floats = g - root @ v
    return z


def newton_root(g: Floats, At: Floats) -> tuple[Floats, float]:
    r"""Return the root z (K,) of :math:`z = g - \tilde{A}\, \mathrm{softmax}(z)` by damped Newton steps, and its residual.

    The residual is the largest absolute entry of :math:`z - g + \tilde{A}\, \mathrm{softmax}(z)`, divided by
    :math:`1 + \max |g|`.
    """
    K = len(g)
    z, scale = g - At @ np.full(K, 1.0 / K), 1.0 + float(np.abs(g).max())
    s = softmax(z)
    off = z - g + At @ s
    for _ in range(200):
        if np.abs(off).max() <= 1e-13 * scale:
            break
        step = np.linalg.solve(np.eye(K) + At @ (np.diag(s) - np.outer(s, s)), off)
        size, before = 1.0, float(off @ off)
        while size > 1e-6:
            trial = z - size * step
            s_trial = softmax(trial)
            moved = trial - g + At @ s_trial
            if float(moved @ moved) < before:
                break
            size *= 0.5
        if not float(moved @ moved) < before:
            break
        z, s, off = trial, s_trial, moved
    return z, float(np.abs(off).max()) / scale
