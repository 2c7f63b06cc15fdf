"""AIOLI (Jézéquel, Gaillard and Rudi, COLT 2020)."""

from __future__ import annotations

import math

from banditlab.bounds._curvature import tight_curvature
from banditlab.bounds._theorem import theorem

_SOURCE = "Jézéquel, Gaillard and Rudi, COLT 2020, Theorem 1"


@theorem(
    source=_SOURCE,
    unit="nats",
    assumes="K = 2, ||theta|| <= B_theta, ||x|| <= R, virtual weight 1, eta_t = 2 c e^(y z) with c admissible",
)
def aioli(
    rounds: float,
    n_features: int,
    margin_bound: float,
    radius: float,
    regularization: float,
    curvature: float | None = None,
) -> float:
    """Regret of AIOLI: lambda B^2 + (d/(2c)) ln(1 + n c R^2 / (4 d lambda)), B the bound of ||theta||.

    At the paper's 1/(2c) = 1 + B R (curvature None) this is Theorem 1 as printed:
    lambda B^2 + d (1 + B R) ln(1 + n R^2 / (8 d (1 + B R) lambda)). The argument is the paper's with another c:
    Z_t <= (1/(2c)) (eta_t/2) g' A_t^{-1} g since g^{-y} = -e^{yz} g, and (eta_t/2) g g' <= (c/4) x x'.
    """
    n, d, B, R, lam = rounds, n_features, margin_bound, radius, regularization
    c = 0.5 / (1.0 + B * R) if curvature is None else curvature
    return lam * B**2 + d / (2.0 * c) * math.log1p(n * R**2 * c / (4.0 * d * lam))


@theorem(
    source=_SOURCE,
    unit="nats",
    assumes="as aioli, with c = 1/(1 + cosh b), b + sinh b = B R",
    printed="(1 + B R) where (1 + cosh b)/2 stands here",
)
def aioli_tight(rounds: float, n_features: int, margin_bound: float, radius: float, regularization: float) -> float:
    """Regret of AIOLI with the tight curvature: the factor 1 + B R becomes (1 + cosh b)/2, b + sinh b = B R."""
    return aioli(rounds, n_features, margin_bound, radius, regularization, tight_curvature(margin_bound * radius))
