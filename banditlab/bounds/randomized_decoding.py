"""The mistakes of randomized decoding beyond a base-2 logistic loss, the label revealed: constant in T."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem, within

LN2 = math.log(2.0)


@within()
def decoding_step(radius: float) -> float:
    """Return 2 ln 2 (1 - ln 2) / R^2, the largest step for which the gap pays for the gradients."""
    return 2.0 * LN2 * (1.0 - LN2) / radius**2


@theorem(
    source="Sakaue, Bao, Tsuchiya and Oki, COLT 2024, logistic loss (constants derived here)",
    unit="bits",
    assumes="adversarial stream, ||x_t|| <= R, label revealed, ||U||_F <= D, step <= 2 ln 2 (1 - ln 2) / R^2",
    printed="O(||U||_F^2)",
)
def randomized_decoding(frobenius_bound: float, step: float) -> float:
    """Return D^2 / (2 step), whatever T: E[M] <= sum of the comparator's loss in bits + this.

    With l = -log2 softmax(W x)_y the decoding errs with probability at most l ln 2 (in nats: at most -ln q_y), and
    ||grad l||_F^2 <= R^2 l / ln 2, for l is R^2/(2 ln 2)-smooth and not negative. Gradient descent gives sum l_t(W_t) -
    l_t(U) <= D^2/(2 step) + (step/2) sum ||g_t||^2, and the last sum is at most (1 - ln 2) sum l_t(W_t) for such a
    step: what the decoding spares.
    """
    return frobenius_bound**2 / (2.0 * step)
