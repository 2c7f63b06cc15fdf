"""Gaptron's mistake bounds for the base-2 logistic loss (van der Hoeven, NeurIPS 2020), one bit of feedback."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem

_SOURCE = (
    "van der Hoeven, Exploiting the surrogate gap in online multiclass classification, NeurIPS 2020, bandit logistic"
)
_ASSUMES = "adversarial stream, ||x_t|| <= R, ||U||_F <= D, comparator's loss in bits, sampled from p'"


def gaptron_gamma(n_classes: int, radius: float, frobenius_bound: float, rounds: int) -> float:
    """Return the theorem's exploration rate min{1, K R D / sqrt(T ln 2)}."""
    return min(1.0, n_classes * radius * frobenius_bound / math.sqrt(rounds * math.log(2.0)))


def gaptron_step(n_classes: int, radius: float, gamma: float) -> float:
    """Return the theorem's step gamma ln 2 / (2 K^2 R^2), the largest for which the gap inequality is proved."""
    return gamma * math.log(2.0) / (2.0 * n_classes**2 * radius**2)


@theorem(source=_SOURCE, unit="bits", assumes=_ASSUMES + ", gamma and step as in the theorem for the same T")
def gaptron_bandit(n_classes: int, radius: float, frobenius_bound: float, rounds: int) -> float:
    """Return max{2 K^2 R^2 D^2 / ln 2, 2 K R D sqrt(T / ln 2)}: E[M] <= sum of the comparator's loss + this."""
    krd = n_classes * radius * frobenius_bound
    ln2 = math.log(2.0)
    return max(2.0 * krd**2 / ln2, 2.0 * krd * math.sqrt(rounds / ln2))


@theorem(
    source=_SOURCE + " (the sum its proof ends with, before gamma is chosen)",
    unit="bits",
    assumes=_ASSUMES + ", step <= gamma ln 2 / (2 K^2 R^2)",
)
def gaptron_fixed(n_classes: int, frobenius_bound: float, step: float, gamma: float, rounds: int) -> float:
    """Return D^2 / (2 step) + gamma (K-1)/K T, for any fixed gamma and any step up to the theorem's.

    From E[M] <= sum l_t(U) + ||U||^2/(2 step) + sum of {P(mistake) + (step/2) E||g_t||^2 - l_t(W_t)}, where the brace
    is at most gamma (K-1)/K. At the theorem's gamma and step it is at most `gaptron_bandit`, and it holds at every
    prefix.
    """
    return frobenius_bound**2 / (2.0 * step) + gamma * (n_classes - 1) / n_classes * rounds
