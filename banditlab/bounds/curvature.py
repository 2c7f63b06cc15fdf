r"""The largest curvature of a quadratic lower bound of the logistic loss: the constant c of AIOLI and FOLKLORE.

Let z be the forecast logits, :math:`s = \mathrm{softmax}(z)` and :math:`S = \mathrm{diag}(s) - s s'`. The surrogate

.. math::

    \mathrm{loss}(z) + \langle s - e_y, \tilde{z} - z \rangle + c (\tilde{z} - z)' S (\tilde{z} - z)

stays below :math:`\mathrm{loss}(\tilde{z})` for every :math:`z \in \mathbb{R}^K` and every :math:`\tilde{z}` with
:math:`\max_k |\tilde{z}_k| \le B R` exactly when the same surrogate of the binary logistic loss stays below the loss at
every margin in :math:`[-L, L]`, where :math:`L = 2 B R + \ln(K - 1)`.
"""

from __future__ import annotations

import functools
import math

from banditlab.bounds._theorem import within


@within()
def margin_range(n_classes: int, norm_bound: float, radius: float) -> float:
    r"""Return :math:`L = 2 B R + \ln(K - 1)`, the largest log-odds of one class for a matrix in the ball."""
    return 2.0 * norm_bound * radius + math.log(n_classes - 1)


def is_admissible_on_ball(curvature: float, n_classes: int, norm_bound: float, radius: float) -> bool:
    """Return whether a constant is admissible for the ball of matrices; the arguments are not checked."""
    return is_admissible(curvature, 2.0 * norm_bound * radius + math.log(n_classes - 1))


@within()
def simple_curvature(n_classes: int, norm_bound: float, radius: float) -> float:
    r"""Return :math:`1 / (2 B R + \ln K + 2)`, the result of FOLKLORE's Lemma 1 with its error corrected."""
    return 1.0 / (2.0 * norm_bound * radius + math.log(n_classes) + 2.0)


def is_admissible(curvature: float, margin: float) -> bool:
    r"""Return whether a constant is at most `tight_curvature`, up to rounding. The surrogate is then a lower bound.

    :math:`1/(2 + L)` is always admissible, because :math:`\cosh b \le 1 + b + \sinh b`. It is tested first, because it
    needs no root-finding.
    """
    return curvature * (2.0 + margin) <= 1.0 or curvature <= tight_curvature(margin) * (1.0 + 1e-12)


@within()
@functools.lru_cache(maxsize=256)
def tight_curvature(margin: float) -> float:
    r"""Return the admissible constant :math:`1 / (1 + \cosh b)`, where b is the root of :math:`b + \sinh b = L`.

    It is within 4 % of the largest admissible constant: 3.9 % below it at :math:`L = 5.3` (for instance
    :math:`K = 5, B R = 2`), and less at other L. Newton's method for this convex function starts above the root and is
    monotone. The start is above because :math:`2 b \le b + \sinh b = L`, and :math:`b \ge 0` gives
    :math:`\sinh b \le L`.
    """
    b = min(margin / 2.0, math.asinh(margin))
    for _ in range(100):
        step = (b + math.sinh(b) - margin) / (1.0 + math.cosh(b))
        b -= step
        if abs(step) <= 1e-15 * (1.0 + b):
            break
    return 1.0 / (1.0 + math.cosh(b))
