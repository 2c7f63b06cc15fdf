"""AIOLI (Jézéquel, Gaillard and Rudi, COLT 2020)."""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import theorem, within
from banditlab.bounds.curvature import is_admissible, tight_curvature

_SOURCE = "Jézéquel, Gaillard and Rudi, COLT 2020, Theorem 1"
_ADVERSARY = (
    r"adaptive: Theorem 1: 'Let $(x_1, y_1), \dots$ be an arbitrary sequence of observations'; no forecast is random"
)
_theorem = partial(theorem, source=_SOURCE, unit="nats", adversary=_ADVERSARY)


@_theorem(
    assumes=r"$K = 2$, $\|\theta\| \le B_\theta$, $\|x\| \le R$, virtual weight 1, $\eta_t = 2 c e^{y z}$ with c admissible",
)
def aioli(
    rounds: float,
    n_features: float,
    margin_bound: float,
    radius: float,
    regularization: float,
    curvature: float | None = None,
) -> float:
    r"""Return the regret bound of AIOLI: :math:`\lambda B^2 + (d/(2c)) \ln(1 + n c R^2 / (4 d \lambda))`.

    B is the bound on :math:`\|\theta\|`. At the paper's :math:`1/(2c) = 1 + B R` (curvature None) this is Theorem 1 as
    printed: :math:`\lambda B^2 + d (1 + B R) \ln(1 + n R^2 / (8 d (1 + B R) \lambda))`. The argument is that of the
    paper with another c: :math:`Z_t \le (1/(2c)) (\eta_t/2) g' A_t^{-1} g` because :math:`g^{-y} = -e^{yz} g`, and
    :math:`(\eta_t/2) g g' \le (c/4) x x'`.
    """
    n, d, B, R, lam = rounds, n_features, margin_bound, radius, regularization
    c = 0.5 / (1.0 + B * R) if curvature is None else curvature
    if not is_admissible(c, B * R):
        return math.nan
    return lam * B**2 + d / (2.0 * c) * math.log1p(n * R**2 * c / (4.0 * d * lam))


@_theorem(
    assumes=r"as aioli, with $c = 1/(1 + \cosh b)$, $b + \sinh b = B R$",
    printed=r"$1 + B R$ instead of $(1 + \cosh b)/2$",
)
def aioli_tight(rounds: float, n_features: int, margin_bound: float, radius: float, regularization: float) -> float:
    r"""Return the regret bound of AIOLI with the tight curvature.

    The factor :math:`1 + B R` becomes :math:`(1 + \cosh b)/2` with :math:`b + \sinh b = B R`.
    """
    return aioli(rounds, n_features, margin_bound, radius, regularization, tight_curvature(margin_bound * radius))


@_theorem(
    source="Jézéquel, Gaillard and Rudi, COLT 2020, Theorem 7, its argument",
    assumes=r"as Theorem 1 with $1/(2c) = 1 + B R$, $\theta_t$ known to within `error` in norm",
    printed=r"$3 n R (n R^2/(8 \lambda) + B)\, \text{error}$, which holds for $B \ge 1/3$ and for no smaller B",
)
def aioli_inexact(
    rounds: float, n_features: int, margin_bound: float, radius: float, regularization: float, error: float
) -> float:
    r"""Return the regret bound of AIOLI with :math:`\theta_t` known up to an error. It is that of Theorem 1 plus
    :math:`n R [1 + R^2/(4 \lambda) + (n-1) R^2/(16 (1+BR) \lambda)]` times the error.

    docs/errata.md has the argument: an inexact :math:`\theta_t` adds :math:`\Omega_t \le (R/(2 \lambda)) \|\delta_t\|`.
    The remaining gradient :math:`\delta_t` is at most the error times
    :math:`2 \lambda + R^2/2 + (t-1) R^2/(4 (1 + B R))`, the largest curvature of the objective of :math:`\theta_t`. The
    paper's (23) has :math:`2 \lambda B` instead of :math:`2 \lambda`.
    """
    n, d, B, R, lam = rounds, n_features, margin_bound, radius, regularization
    return aioli(n, d, B, R, lam) + n * R * _accuracy(n, B, R, lam) * error


@_theorem(
    source="Jézéquel, Gaillard and Rudi, COLT 2020, Theorem 4",
    assumes="as Theorem 1 with $1/(2c) = 1 + B R$, `aioli_steps` gradient steps per round on the two-dimensional problem",
    printed=r"$(4 + R^2/\lambda) \ln[(3 n^2 R^2/\lambda)(n R^2/(8 \lambda) + B)]$ steps, too few for some $B < 1/3$",
)
def aioli_theorem_4(rounds: float, n_features: int, margin_bound: float, radius: float, regularization: float) -> float:
    r"""Return the regret bound of AIOLI solved by gradient descent: that of Theorem 1 plus 1. (If Newton's method
    computes :math:`\theta_t`, the additional term is negligible.)
    """
    return aioli(rounds, n_features, margin_bound, radius, regularization) + 1.0


@within(beyond=math.inf)
def aioli_steps(rounds: float, margin_bound: float, radius: float, regularization: float) -> float:
    r"""Return the number of gradient steps per round that Theorem 4 needs, as corrected in docs/errata.md (entry 8).

    .. math::

        (4 + R^2/\lambda) \ln[(n^2 R^2/\lambda) (1 + R^2/(4 \lambda) + (n-1) R^2/(16 (1+BR) \lambda))],

    rounded up. It follows from Lemma 3 for the error at which the last term of `aioli_inexact` is 1. If the logarithm
    is not above 0, the result is 0, because :math:`\theta = 0` is accurate enough.
    """
    n, B, R, lam = rounds, margin_bound, radius, regularization
    distance = (
        n**2 * R**2 / lam * _accuracy(n, B, R, lam)
    )  # the distance from theta = 0 to theta_t, divided by the allowed error
    if distance <= 1.0:
        return 0.0
    steps = (4.0 + R**2 / lam) * math.log(distance)
    return float(math.ceil(steps)) if math.isfinite(steps) else steps


def _accuracy(n: float, B: float, R: float, lam: float) -> float:
    r"""Return the mean over n rounds of the objective's largest curvature, divided by :math:`2 \lambda`."""
    return 1.0 + R**2 / (4.0 * lam) + max(0.0, n - 1.0) * R**2 / (16.0 * (1.0 + B * R) * lam)


@_theorem(
    source="Jézéquel, Gaillard and Rudi, COLT 2020, Section 4.1 (constants proved here)",
    assumes=r"$\|f\| \le B$ in the kernel's space, $k(x, x) \le R^2$, `effective_dimension` "
    r"$= \mathrm{tr}(G (G + (4 \lambda/c) I)^{-1})$",
    printed=r"$O(B d_{\text{eff}}(B \lambda) + \lambda B^2)$, $d_{\text{eff}}(\lambda) = \mathrm{tr}(G (G + \lambda I)^{-1})$",
)
def aioli_kernel(
    rounds: float,
    effective_dimension: float,
    margin_bound: float,
    radius: float,
    regularization: float,
    curvature: float | None = None,
) -> float:
    r"""Return the regret bound of kernel AIOLI, with the effective dimension :math:`d_{\text{eff}}` at scale
    :math:`4 \lambda/c`. It is :math:`\lambda B^2 + (1/(2c)) d_{\text{eff}} (1 + \ln(1 + n c R^2/(4 \lambda)))`.

    Theorem 1's proof bounds the regret by :math:`\lambda B^2 + (1/(2c)) \ln \det(I + c G/(4 \lambda))` with the Gram
    matrix G. Each eigenvalue gives a term :math:`\ln(1 + u) \le (u/(1 + u))(1 + \ln(1 + u))`, and no eigenvalue of G
    exceeds :math:`n R^2`.
    """
    n, B, R, lam = rounds, margin_bound, radius, regularization
    c = 0.5 / (1.0 + B * R) if curvature is None else curvature
    if not is_admissible(c, B * R):
        return math.nan
    return lam * B**2 + effective_dimension / (2.0 * c) * (1.0 + math.log1p(n * c * R**2 / (4.0 * lam)))
