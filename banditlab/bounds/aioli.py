"""AIOLI (Jézéquel, Gaillard and Rudi, COLT 2020)."""

from __future__ import annotations

import math

from banditlab.bounds._curvature import tight_curvature
from banditlab.bounds._theorem import theorem

_SOURCE = "Jézéquel, Gaillard and Rudi, COLT 2020, Theorem 1"


@theorem(source=_SOURCE, unit="nats", assumes="K = 2, ||theta|| <= B_theta, ||x|| <= R, virtual weight 1")
def aioli(rounds: float, n_features: int, margin_bound: float, radius: float, regularization: float) -> float:
    """Regret of AIOLI: lambda B^2 + d (1 + B R) ln(1 + n R^2 / (8 d (1 + B R) lambda)), B the bound of ||theta||."""
    c = 1.0 / (2.0 * (1.0 + margin_bound * radius))
    return _additive(rounds, n_features, margin_bound, radius, regularization, c)


@theorem(
    source=_SOURCE,
    unit="nats",
    assumes="as aioli, with eta_t = 2 c e^(y z) and c = 1/(1 + cosh b), b + sinh b = B R",
    printed="(1 + B R) where (1 + cosh b)/2 stands here",
)
def aioli_tight(rounds: float, n_features: int, margin_bound: float, radius: float, regularization: float) -> float:
    """Regret of AIOLI with the tight curvature: the factor 1 + B R becomes (1 + cosh b)/2, b + sinh b = B R."""
    c = tight_curvature(margin_bound * radius)
    return _additive(rounds, n_features, margin_bound, radius, regularization, c)


def aioli_at(
    rounds: float, n_features: int, margin_bound: float, radius: float, regularization: float, c: float
) -> float:
    """Theorem 1 at any admissible curvature c, eta_t = 2 c e^(y z); `aioli` and `aioli_tight` are two values of c."""
    return _additive(rounds, n_features, margin_bound, radius, regularization, c)


def _additive(n: float, d: int, B: float, R: float, lam: float, c: float) -> float:
    # Z_t <= (1/(2c)) (eta_t/2) g' A_t^{-1} g since g^{-y} = -e^{yz} g; and (eta_t/2) g g' <= (c/4) x x'
    return lam * B**2 + d / (2.0 * c) * math.log1p(n * R**2 * c / (4.0 * d * lam))
