r"""FOLKLORE (Agarwal, Kale and Zimmert, ALT 2022): regret bounds with the correct constants of its surrogate.

The functions start from Lemmas 6 to 8:
:math:`\mathrm{Regret} \le \lambda K B^2 + (1/4) \sum_t \mathrm{tr}(A_{t-1}^{-1} H_t)`, with the factor 1/4 that the
paper omits. :math:`H_t` vanishes on matrices with equal rows and :math:`\mathrm{tr}(H_t) \le (1 - 1/K) R^2`, so the
log-determinant has :math:`(K - 1) d` dimensions; :math:`H_t \le (R^2/2) I`.
"""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import theorem, within
from banditlab.bounds.curvature import is_admissible_on_ball, simple_curvature

_SOURCE = "Agarwal, Kale and Zimmert, ALT 2022, Theorem 3"
_PRINTED = (
    r"$c = 1/(B R + \ln(K)/2)$, for which the surrogate is not a lower bound; the factor 1/4 is missing; K "
    "instead of $K - 1$"
)
_ADVERSARY = "adaptive: Lemma 6: 'for any W', and Theorem 3: 'against any sequence of contexts'; no forecast is random"
_theorem = partial(theorem, unit="nats", adversary=_ADVERSARY)


@_theorem(
    source=_SOURCE,
    assumes=r"$\|W_k\| \le B$, $\|x\| \le R$, admissible curvature c with $c R^2 \le \lambda$ (true at $\lambda = 2 R/B$)",
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
    r"""Return the regret bound of FOLKLORE:
    :math:`\lambda K B^2 + (1/(4c)) (K-1) d \ln(1 + 2 c R^2 T / (K d \lambda))`.

    The argument: if :math:`c H_t \le (\lambda/2) I`, then :math:`A_{t-1}` is at least
    :math:`(\lambda/2) I + c (H_1 + \dots + H_t)`. The default of `regularization` is :math:`2 R / B`, and that of
    `curvature` is :math:`1/(2 B R + \ln K + 2)`. The result is NaN if c is not known to be admissible, or if
    :math:`c R^2 > \lambda`, where only `folklore_any_regularization` holds.
    """
    lam = 2.0 * radius / norm_bound if regularization is None else regularization
    c = simple_curvature(n_classes, norm_bound, radius) if curvature is None else curvature
    if c * radius**2 > lam or not is_admissible_on_ball(c, n_classes, norm_bound, radius):
        return math.nan
    K, d = n_classes, n_features
    inside = 2.0 * c * radius**2 * rounds / (K * d * lam)
    return lam * K * norm_bound**2 + (K - 1) * d / (4.0 * c) * math.log1p(inside)


@_theorem(
    source=_SOURCE + " (variant proved here)",
    assumes=r"$\|W_k\| \le B$, $\|x\| \le R$, admissible curvature c, any $\lambda > 0$",
    printed=_PRINTED + r"; $\lambda = 2 R/B$ only",
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
    r"""Return the regret bound of FOLKLORE at any :math:`\lambda`, with :math:`r = c R^2 / (2 \lambda)`. It is
    :math:`\lambda K B^2 + ((1 + r)/(4c)) (K-1) d \ln(1 + c R^2 T / (K d \lambda))`.

    The argument: :math:`A_t \le (1 + r) A_{t-1}`, so
    :math:`\mathrm{tr}(A_{t-1}^{-1} H_t) \le (1 + r)\, \mathrm{tr}(A_t^{-1} H_t)`.
    """
    if not is_admissible_on_ball(curvature, n_classes, norm_bound, radius):
        return math.nan
    K, d, lam, c = n_classes, n_features, regularization, curvature
    scale = c * radius**2 / lam
    log_det = (K - 1) * d * math.log1p(scale * rounds / (K * d))
    return lam * K * norm_bound**2 + (1.0 + 0.5 * scale) / (4.0 * c) * log_det


@_theorem(
    source="Agarwal, Kale and Zimmert, ALT 2022, Lemma 7 with $A = A_t$ (bound derived here)",
    assumes=r"$\|W_k\| \le B$, $\|x\| \le R$, admissible curvature c, any $\lambda > 0$, the fixed point is solved exactly",
    printed="no bound; called the better choice in terms of regret but computationally expensive",
)
def folklore_after(
    rounds: float,
    n_features: int,
    n_classes: int,
    norm_bound: float,
    radius: float,
    regularization: float,
    curvature: float,
) -> float:
    r"""Return the regret bound of FOLKLORE if Lemma 7 is applied with :math:`A_t` instead of :math:`A_{t-1}`. It is
    :math:`\lambda K B^2 + (1/(4c)) (K-1) d \ln(1 + c R^2 T / (K d \lambda))`.

    The regret of a round is then at most :math:`(1/4)\, \mathrm{tr}(A_t^{-1} H_t)`, and the sum telescopes. Neither a
    condition on :math:`\lambda` nor a factor for :math:`A_{t-1}` is needed.
    """
    if not is_admissible_on_ball(curvature, n_classes, norm_bound, radius):
        return math.nan
    K, d, lam, c = n_classes, n_features, regularization, curvature
    log_det = (K - 1) * d * math.log1p(c * radius**2 * rounds / (K * d * lam))
    return lam * K * norm_bound**2 + log_det / (4.0 * c)


@_theorem(
    source="Agarwal, Kale and Zimmert, ALT 2022, Remark 5 (bound derived here)",
    assumes=r"as Theorem 3 at any $\lambda$, every forecast within `error` of the root in Euclidean norm",
    printed=r"additive error $\mathrm{poly}(1/T)$ is said to suffice; no constant",
)
def folklore_inexact(
    rounds: float,
    n_features: int,
    n_classes: int,
    norm_bound: float,
    radius: float,
    regularization: float,
    curvature: float,
    error: float,
) -> float:
    r"""Return the regret bound of FOLKLORE if the root of each round is computed up to an error. It is that of Theorem
    3 plus :math:`T (\sqrt{2} + c R^2/(\sqrt{2} \lambda)) (1 + R^2/(4 \lambda))` times the error.

    The surrogate is expanded at the forecast logits z, so Lemma 6 holds at them. Let
    :math:`\rho = z - g + \tilde A\, \mathrm{softmax}(z)` be the residual of the root's equation. Lemma 7 at z gives the
    round's term without :math:`\rho`, and :math:`\rho` adds :math:`u'\rho - \rho'Q_c \rho \le |u| |\rho|` with
    :math:`u = s - e_y + Q_c (2 \tilde A e_y - \mathrm{diag}(\tilde A))`. Three facts bound this product:

    * :math:`|\rho| \le (1 + R^2/(4 \lambda)) |z - \text{root}|`, because :math:`\tilde A \le R^2/(2 \lambda)` and the
      softmax is 1/2-Lipschitz;
    * :math:`|s - e_y| \le \sqrt{2}`;
    * :math:`|Q_c w| \le (c/\sqrt{2}) R^2/\lambda`, because :math:`Q_c \le c S \le c/2` and S depends only on the spread
      of w, which is at most :math:`2 R^2/\lambda`.
    """
    numbers = (n_features, n_classes, norm_bound, radius, regularization, curvature)
    theorem_3 = folklore if curvature * radius**2 <= regularization else folklore_any_regularization
    return theorem_3(rounds, *numbers) + rounds * _sensitivity(radius, regularization, curvature) * error


@within(beyond=0.0)
def folklore_error(rounds: float, radius: float, regularization: float, curvature: float) -> float:
    """Return the error of each round's root at which the additional term of `folklore_inexact` is one nat."""
    return 1.0 / (max(rounds, 1.0) * _sensitivity(radius, regularization, curvature))


def _sensitivity(radius: float, regularization: float, curvature: float) -> float:
    """Return a bound on the additional loss of a round in nats per unit of error in its logits."""
    ratio = radius**2 / regularization
    return (math.sqrt(2.0) + curvature * ratio / math.sqrt(2.0)) * (1.0 + 0.25 * ratio)


@_theorem(
    source=_SOURCE + ", on the Frobenius ball of NeurIPS 2021, Section 4.2",
    assumes=r"$\|W\|_F \le D$, $\|x\| \le R$, c admissible for logits whose differences are at most $\sqrt{2} D R$, "
    r"any $\lambda > 0$",
    printed="for rows of norm at most B only",
)
def folklore_frobenius(
    rounds: float,
    n_features: int,
    n_classes: int,
    frobenius_bound: float,
    radius: float,
    regularization: float,
    curvature: float,
) -> float:
    r"""Return the regret bound of FOLKLORE over the Frobenius ball, with :math:`r = c R^2/(2 \lambda)`. It is
    :math:`\lambda D^2 + ((1 + r)/(4c)) (K-1) d \ln(1 + c R^2 T / (K d \lambda))`, by the argument of
    `folklore_any_regularization`; :math:`\lambda \|W\|_F^2` is at most :math:`\lambda D^2`, not :math:`\lambda K B^2`.

    Two rows of W differ by at most :math:`\sqrt{2} D`. A ball of radius :math:`\sqrt{K} B`, which contains all
    matrices with rows of norm at most B, therefore needs a curvature smaller by a factor of about :math:`\sqrt{K/2}`. A
    ball of radius B, which contains only such matrices, allows a curvature larger by a factor of :math:`\sqrt{2}`.
    """
    K, d, lam, c = n_classes, n_features, regularization, curvature
    if not is_admissible_on_ball(c, K, frobenius_bound / math.sqrt(2.0), radius):
        return math.nan
    ratio = c * radius**2 / lam
    log_det = (K - 1) * d * math.log1p(ratio * rounds / (K * d))
    return lam * frobenius_bound**2 + (1.0 + 0.5 * ratio) / (4.0 * c) * log_det


@_theorem(
    source=_SOURCE + ", with the effective dimension of COLT 2020, Section 4.1 (derived here)",
    assumes=r"$\|W_k\| \le B$ in the kernel's space, $k(x, x) \le R^2$, `effective_dimension` "
    r"$= \mathrm{tr}(G (G + (2 \lambda/c) I)^{-1})$",
    printed="not in the paper; the dual form uses inner products only",
)
def folklore_kernel(
    rounds: float,
    effective_dimension: float,
    n_classes: int,
    norm_bound: float,
    radius: float,
    regularization: float,
    curvature: float,
) -> float:
    r"""Return the regret bound of kernel FOLKLORE, with :math:`r = c R^2/(2 \lambda)`. It is
    :math:`\lambda K B^2 + ((1 + r)/(4c)) (K-1) d_{\text{eff}} (1 + \ln(1 + r T))`.

    :math:`H_t` is at most :math:`(1/2) (I - 11'/K) \otimes \phi \phi'`, so
    :math:`\ln \det(I + (c/\lambda) \sum H) \le (K-1) \ln \det(I + c G/(2 \lambda))` with the Gram matrix G. Each of its
    terms is :math:`\ln(1 + u) \le (u/(1 + u)) (1 + \ln(1 + u))`, and no eigenvalue of G exceeds :math:`T R^2`.
    """
    if not is_admissible_on_ball(curvature, n_classes, norm_bound, radius):
        return math.nan
    K, lam, c = n_classes, regularization, curvature
    ratio = c * radius**2 / lam
    log_det = (K - 1) * effective_dimension * (1.0 + math.log1p(0.5 * ratio * rounds))
    return lam * K * norm_bound**2 + (1.0 + 0.5 * ratio) / (4.0 * c) * log_det
