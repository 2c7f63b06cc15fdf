"""FOLKLORE (Agarwal, Kale and Zimmert, ALT 2022): the regret with the constants that its surrogate really has.

Both functions start from Lemmas 6 to 8: Regret <= lambda K B^2 + (1/4) sum_t tr(A_{t-1}^{-1} H_t), keeping the 1/4 that
the paper drops. H_t vanishes on matrices with equal rows and tr H_t <= (1 - 1/K) R^2, so the log-determinant lives in
(K - 1) d dimensions; H_t <= (R^2 / 2) I.
"""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem
from banditlab.bounds.curvature import is_admissible_on_ball, simple_curvature

_SOURCE = "Agarwal, Kale and Zimmert, ALT 2022, Theorem 3"
_PRINTED = "c = 1/(B R + ln(K)/2), for which the surrogate is no lower bound; no factor 1/4; K for K - 1"


@theorem(
    source=_SOURCE,
    unit="nats",
    assumes="||W_k|| <= B, ||x|| <= R, admissible curvature c with c R^2 <= lambda (true at lambda = 2 R / B)",
    printed=_PRINTED,
)
def folklore(
    rounds: float,
    n_features: int,
    n_classes: int,
    norm_bound: float,
    radius: float,
    regularization: float | None = None,
    curvature: float | None = None,
) -> float:
    """Regret of FOLKLORE: lambda K B^2 + (1/(4c)) (K-1) d ln(1 + 2 c R^2 T / (K d lambda)).

    The argument: c H_t <= (lambda/2) I turns A_{t-1} into (lambda/2) I + c (H_1 + ... + H_t) from below. regularization
    None is 2 R / B, curvature None is 1/(2 B R + ln K + 2). NaN where c R^2 > lambda: this argument fails,
    `folklore_any_regularization` holds; and where c is not known to be admissible.
    """
    lam = 2.0 * radius / norm_bound if regularization is None else regularization
    c = simple_curvature(n_classes, norm_bound, radius) if curvature is None else curvature
    if c * radius**2 > lam or not is_admissible_on_ball(c, n_classes, norm_bound, radius):
        return math.nan
    K, d = n_classes, n_features
    inside = 2.0 * c * radius**2 * rounds / (K * d * lam)
    return lam * K * norm_bound**2 + (K - 1) * d / (4.0 * c) * math.log1p(inside)


@theorem(
    source=_SOURCE + " (variant proved here)",
    unit="nats",
    assumes="||W_k|| <= B, ||x|| <= R, admissible curvature c, any lambda > 0",
    printed=_PRINTED + "; lambda = 2 R / B only",
)
def folklore_any_regularization(
    rounds: float,
    n_features: int,
    n_classes: int,
    norm_bound: float,
    radius: float,
    regularization: float,
    curvature: float,
) -> float:
    """Regret of FOLKLORE at any lambda: lambda K B^2 + ((1 + r)/(4c)) (K-1) d ln(1 + c R^2 T / (K d lambda)).

    r = c R^2 / (2 lambda). The argument: A_t <= (1 + r) A_{t-1}, so tr(A_{t-1}^{-1} H_t) <= (1 + r) tr(A_t^{-1} H_t).
    NaN where c is not known to be admissible.
    """
    if not is_admissible_on_ball(curvature, n_classes, norm_bound, radius):
        return math.nan
    K, d, lam, c = n_classes, n_features, regularization, curvature
    scale = c * radius**2 / lam
    log_det = (K - 1) * d * math.log1p(scale * rounds / (K * d))
    return lam * K * norm_bound**2 + (1.0 + 0.5 * scale) / (4.0 * c) * log_det
