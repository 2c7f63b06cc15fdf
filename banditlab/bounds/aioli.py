"""AIOLI (Jézéquel, Gaillard and Rudi, COLT 2020)."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem
from banditlab.bounds.curvature import tight_curvature

_SOURCE = "Jézéquel, Gaillard and Rudi, COLT 2020, Theorem 1"


@theorem(
    source=_SOURCE,
    unit="nats",
    assumes="K = 2, ||theta|| <= B_theta, ||x|| <= R, virtual weight 1, eta_t = 2 c e^(y z) with c admissible",
)
def aioli(
    rounds: float,
    n_features: float,
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


@theorem(
    source="Jézéquel, Gaillard and Rudi, COLT 2020, Theorem 7",
    unit="nats",
    assumes="as Theorem 1 with 1/(2c) = 1 + B R, theta_t known to within `error` in norm",
)
def aioli_inexact(
    rounds: float, n_features: int, margin_bound: float, radius: float, regularization: float, error: float
) -> float:
    """Regret of AIOLI solved to an accuracy: Theorem 1's + 3 n R (n R^2/(8 lambda) + B) error.

    Theorem 4 takes the error at which the last term is at most 1.
    """
    n, B, R, lam = rounds, margin_bound, radius, regularization
    return aioli(n, n_features, B, R, lam) + 3.0 * n * R * (n * R**2 / (8.0 * lam) + B) * error


@theorem(
    source="Jézéquel, Gaillard and Rudi, COLT 2020, Theorem 4",
    unit="nats",
    assumes="as Theorem 1 with 1/(2c) = 1 + B R, `aioli_steps` gradient steps a round on the two-dimensional problem",
)
def aioli_theorem_4(rounds: float, n_features: int, margin_bound: float, radius: float, regularization: float) -> float:
    """Regret of AIOLI solved by gradient descent: Theorem 1's + 1. (A Newton root makes the 1 smaller than rounding.)"""
    return aioli(rounds, n_features, margin_bound, radius, regularization) + 1.0


def aioli_steps(rounds: float, margin_bound: float, radius: float, regularization: float) -> int:
    """Return Theorem 4's number of gradient steps, (4 + R^2/lambda) ln[(3 n^2 R^2/lambda)(n R^2/(8 lambda) + B)]."""
    n, B, R, lam = rounds, margin_bound, radius, regularization
    return math.ceil((4.0 + R**2 / lam) * math.log(3.0 * n**2 * R**2 / lam * (n * R**2 / (8.0 * lam) + B)))


@theorem(
    source="Jézéquel, Gaillard and Rudi, COLT 2020, Section 4.1 (constants proved here)",
    unit="nats",
    assumes="||f|| <= B in the kernel's space, k(x, x) <= R^2, effective_dimension = tr(G (G + (4 lambda/c) I)^-1)",
    printed="O(B d_eff(B lambda) + lambda B^2), d_eff(lambda) = tr(G (G + lambda I)^-1)",
)
def aioli_kernel(
    rounds: float,
    effective_dimension: float,
    margin_bound: float,
    radius: float,
    regularization: float,
    curvature: float | None = None,
) -> float:
    """Regret of kernel AIOLI: lambda B^2 + (1/(2c)) d_eff (1 + ln(1 + n c R^2/(4 lambda))), d_eff at scale 4 lambda/c.

    Theorem 1's proof bounds the regret by lambda B^2 + (1/(2c)) ln det(I + c G/(4 lambda)), G the Gram matrix; each of
    its terms is ln(1 + u) <= (u/(1 + u))(1 + ln(1 + u)), and no eigenvalue of G exceeds n R^2.
    """
    n, B, R, lam = rounds, margin_bound, radius, regularization
    c = 0.5 / (1.0 + B * R) if curvature is None else curvature
    return lam * B**2 + effective_dimension / (2.0 * c) * (1.0 + math.log1p(n * c * R**2 / (4.0 * lam)))
