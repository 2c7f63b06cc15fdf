r"""Soft labels y, which are distributions over the classes (Agarwal, Kale and Zimmert, ALT 2022, Section 2).

The loss at y is the mixture of the K losses with weights y. A surrogate therefore stays a lower bound, its Hessian does
not depend on y, and its gradient :math:`(s - y) \otimes x` is linear in y. An update with y is the update with one
class k, plus the effect of :math:`(e_k - y) \otimes x` on :math:`A_t^{-1} G_t`. For one-hot y that effect is 0, and the
result equals that of `update` to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError

Floats = NDArray[np.float64]

SUM = 1e-9
"""The tolerance for the sum of a soft label's weights."""


def as_distribution(label: Any, K: int) -> Floats:
    """Return a soft label (K,) as float64; raise a UsageError unless it is finite, nonnegative and sums to 1 up to 1e-9."""
    try:
        if np.iscomplexobj(label):
            raise TypeError
        y = np.array(label, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"a soft label must be {K} numbers, got {label!r}") from None
    if y.shape != (K,):
        raise UsageError(f"a soft label must be of shape ({K},), got {y.shape}")
    if not (np.isfinite(y).all() and (y >= 0.0).all() and abs(y.sum() - 1.0) <= SUM):
        raise UsageError(f"the entries of a soft label must be 0 or above and sum to 1, got {y.tolist()}")
    return y


def vertex(y: Floats) -> int | None:
    """Return the class if y (K,) is one-hot, else None."""
    k = int(np.argmax(y))
    return k if y[k] == 1.0 and np.count_nonzero(y) == 1 else None


def softmax_hessian(s: Floats) -> Floats:
    r"""Return :math:`S = \mathrm{diag}(s) - s s'` (K, K)."""
    return np.diag(s) - np.outer(s, s)


def surrogate_term(At: Floats, s: Floats, r: Floats, g: Floats, c: float) -> float:
    r"""Return :math:`T = g'r - c\, r'S r + (1/2) b'\tilde{A}_+ b`, a round's term of FOLKLORE's regret certificate.

    T is the loss minus the increase of the minimum of the surrogates' sum. The surrogate of a loss with gradient g (K,)
    and Hessian S is expanded at logits whose difference from the mean is r (K,). :math:`\tilde{A}` (K, K) is
    :math:`(1/2) \Phi'A^{-1} \Phi` before the round, :math:`\tilde{A}_+ = (I + 2c\, \tilde{A} S)^{-1} \tilde{A}` after
    it, and :math:`b = g - 2c\, S r`. The identity holds for any logits.
    """
    S = softmax_hessian(s)
    after = np.linalg.solve(np.eye(len(s)) + 2.0 * c * At @ S, At)
    b = g - 2.0 * c * (S @ r)
    return float(g @ r - c * (r @ S @ r) + 0.5 * (b @ after @ b))


def soften(learner: Any, z: Floats, hard: int, y: Floats, spent: float) -> None:
    """Replace the last update of a FOLKLORE state, which used the class `hard`, by the update with the soft label y (K,).

    Parameters
    ----------
    learner
        The learner's state after the update with `hard`; z (K,) is the forecast.
    spent
        The sum of the certificate's terms before the update.
    """
    c, At, s = float(learner.constants[0]), learner.blocks.At, learner.root.s
    mean = learner.g - 0.5 * np.diag(At)
    printed = learner.constants[1] > 0.0
    change = -y
    change[hard] += 1.0  # e_k - y
    S = softmax_hessian(s)
    lost = np.linalg.solve(np.eye(len(s)) + 2.0 * c * S @ At, c * S)  # A_t^{-1} = A_{t-1}^{-1} - V Qc V'
    u = change - 2.0 * lost @ (At @ change)
    learner.h[...] += np.einsum("l,klj->kj", u, learner.blocks.V)
    if not printed:
        learner.spent[0] = spent + surrogate_term(At, s, z - mean, s - y, c)
