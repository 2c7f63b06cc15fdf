"""Every bound and every setting beside it at a point of no round numbers, against the theorem's formula in 30 digits.

The formulas are those of the papers and of `docs/`, in other forms than the code's: none of the arguments is 0, 1 or 2, where
a wrong sign, a quotient for a product or a doubled constant would not show.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
from mpmath import asinh, ceil, cos, cosh, e, exp, log, mpf, sinh, sqrt

from banditlab.bounds import THEOREMS
from banditlab.bounds.aggregating import quadrature_error
from banditlab.bounds.aioli import aioli_steps
from banditlab.bounds.boosting_mbbm import least_error_rate, least_rounds
from banditlab.bounds.curvature import margin_range, simple_curvature, tight_curvature
from banditlab.bounds.decoding import decoding_constant, mistakes_per_nat
from banditlab.bounds.exploration import theorem_9_gamma
from banditlab.bounds.folklore import folklore_error
from banditlab.bounds.ftrl import ftrl_regularization
from banditlab.bounds.gaf import gaf_mu, gaf_regularization, gaf_samples, gaf_smoothing
from banditlab.bounds.gaptron import gaptron_gamma, gaptron_step
from banditlab.bounds.hessian_dominance import hessian_dominance
from banditlab.bounds.minimax import minimax_regret, minimax_regret_on_ball, shamir_theorem_3, shamir_theorem_7
from banditlab.bounds.obama import obama_gamma
from banditlab.bounds.ons import exp_concavity
from banditlab.bounds.randomized_decoding import decoding_step
from banditlab.bounds.rdue import rdue_decoded_gamma, rdue_gamma, rdue_gap, rdue_radius, rdue_smoothness
from banditlab.bounds.template import logistic_smoothness, template_gamma, template_label_step, template_step

HELPERS: dict[str, Callable[..., float]] = {
    f.__name__: f for f in (least_error_rate, least_rounds,
                            minimax_regret, minimax_regret_on_ball, shamir_theorem_3, shamir_theorem_7,
                            quadrature_error, aioli_steps, margin_range, simple_curvature, tight_curvature, decoding_constant,
                            mistakes_per_nat, theorem_9_gamma, folklore_error, ftrl_regularization, gaf_mu, gaf_regularization,
                            gaf_samples, gaf_smoothing, gaptron_gamma, gaptron_step, hessian_dominance, obama_gamma,
                            exp_concavity, decoding_step, rdue_decoded_gamma, rdue_gamma, rdue_gap, rdue_radius,
                            rdue_smoothness, logistic_smoothness, template_gamma, template_label_step, template_step)
}  # fmt: skip
FUNCTIONS = {name: theorem.function for name, theorem in THEOREMS.items()} | HELPERS


def ln2() -> Any:
    return log(mpf(2))


def tight(L: Any) -> Any:
    """1/(1 + cosh b), b + sinh b = L, the root by another method."""
    b = mpmath.findroot(lambda b: b + sinh(b) - L, asinh(L / 2))
    return 1 / (1 + cosh(b))


def quadrature(T: Any, B: Any, R: Any, N: Any) -> Any:
    """4 M e^(-s (2N - 1)) (4 B R T) e/(e^s - 1), M = e^(2 b T (cosh s - 1))/cos(b sinh s)^T."""
    b = B * R
    s = min(N / (T * (b + b * b / 2)), asinh(1 / b), mpf(5))
    M = exp(2 * b * T * (cosh(s) - 1)) / cos(b * sinh(s)) ** T
    price = 4 * B * R * T * e if 4 * B * R * T > 1 else exp(4 * B * R * T)
    return 4 * M / (exp(s) - 1) * exp(s - 2 * s * N) * price


def accuracy(n: Any, B: Any, R: Any, lam: Any) -> Any:
    """The mean over rounds of 2 lambda + R^2/2 + (t-1) R^2/(4 (1 + B R)), over 2 lambda."""
    return sum((2 * lam + R**2 / 2 + t * R**2 / (4 * (1 + B * R))) / (2 * lam) for t in range(int(n))) / n


def kappa(K: Any, R: Any, lam: Any) -> Any:
    """exp(sigma sqrt(2 (K-1)) + sigma^2), sigma = R/sqrt(2 lambda)."""
    sigma = R / sqrt(2 * lam)
    return exp(sigma * sqrt(2 * (K - 1)) + sigma**2)


def walk(k: int, m: int, edge: Any) -> Any:
    """max_n P(X_r - X_l = n) after m draws: a sum of a steps up, b down and the rest in place, counted."""
    down = (1 - edge) / k
    up, stay = down + edge, 1 - 2 * down - edge
    return max(
        sum(
            mpf(math.factorial(m)) / (math.factorial(b + n) * math.factorial(b) * math.factorial(m - 2 * b - n))
            * up ** (b + n) * down**b * stay ** (m - 2 * b - n)
            for b in range(max(0, -n), (m - n) // 2 + 1)
        )
        for n in range(-m, m + 1)
    )  # fmt: skip


def behind(k: int, m: int, edge: Any) -> Any:
    """P(Y < 0) + P(Y = 0)/2 after m steps: u up, b down, the others in place, of the law at twice the edge."""
    down = (1 - 2 * edge) / k
    up, stay = down + 2 * edge, 1 - 2 * down - 2 * edge
    return sum(
        (mpf(1) if u < b else mpf(1) / 2) * math.comb(int(m), u) * math.comb(int(m) - u, b)
        * up**u * down**b * stay ** (int(m) - u - b)
        for b in range(int(m) + 1)
        for u in range(min(b, int(m) - b) + 1)
    )  # fmt: skip


def agnostic(T: Any, k: Any, d: Any, delta: Any) -> Any:
    """sqrt(T d ln(T k)/2) + sqrt(T ln(1/delta)/2)."""
    return sqrt(T * d * log(T * k) / 2) + sqrt(T * log(1 / delta) / 2)


def link(k: Any, edge: Any, least: Any, d: Any, delta: Any) -> Any:
    """max_T agnostic(T) - edge m T/k, where the slope of its expansion in T is 0."""
    top = mpmath.findroot(
        lambda T: mpmath.diff(lambda t: agnostic(t, k, d, delta), T) - edge * least / k, (1000, 9000), solver="anderson"
    )
    return agnostic(top, k, d, delta) - edge * least * top / k


def mix(T_w: Any, d: Any, K: Any, norm: Any, s: Any, R: Any) -> Any:
    """||U||^2/(2 s^2) + (Kd/2) ln(1 + s^2 R^2 (1-1/K) T_w/(Kd))."""
    return norm**2 / s**2 / 2 + K * d / 2 * log(1 + s**2 * R**2 * (K - 1) * T_w / (K * K * d))


def ball_mix(T: Any, d: Any, K: Any, B: Any, R: Any, gamma: Any) -> Any:
    """The same with sigma = B/sqrt(d), ||U||^2 = K B^2, T_w = gamma T/K: K d/2 (1 + ln(1 + ...))."""
    return K * d / 2 * (1 + log(1 + B**2 * R**2 * (K - 1) * gamma * T / (K**3 * d**2)))


def balance(T: Any, d: Any, K: Any, B: Any, R: Any, f: Any) -> Any:
    """The gamma at which f (K/gamma) mix = gamma (1 - 1/K) T."""
    return mpmath.findroot(lambda g: f * K / g * ball_mix(T, d, K, B, R, g) - g * (K - 1) * T / K, mpf(0.3))


def folklore_any(T: Any, dim: Any, K: Any, B: Any, R: Any, lam: Any, c: Any) -> Any:
    r = c * R**2 / (2 * lam)
    return lam * K * B**2 + (1 + r) * (K - 1) * dim / (4 * c) * log(1 + 2 * r * T / (K * dim))


def clipped_sum(n: Any, b: Any) -> Any:
    """sum_k C(n, k) p^k (1 - p)^(n - k), p the nearest to k/n of log-odds at most b."""
    shares = [min(1 / (1 + exp(-b)), max(1 / (1 + exp(b)), k / n)) for k in range(int(n) + 1)]
    return sum(mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k) for k, p in enumerate(shares))


def multinomial_sum(n: int, K: int) -> Any:
    """The sum over counts of K classes of n!/prod(c!) prod (c/n)^c."""
    if K == 1 or n == 0:
        return mpf(1)
    return sum(
        math.comb(n, c) * (mpf(c) / n) ** c * (mpf(n - c) / n) ** (n - c) * multinomial_sum(n - c, K - 1)
        for c in range(n + 1)
    )


def rule(name: str, K: Any) -> Any:
    """1 - c, the largest P(mistake)/(-log2 s_y) of a decoding."""
    if name == "randomized":
        return 1 - mpf("0.482406")
    return {
        "sample": ln2(),
        "half-log": mpf(1) / 2,
        "sparsemax": mpf(1) / 2,
        "gap": 1 - 1 / K,
        "thresholded": 1 - 1 / (2 * K),
    }[name]


HALF_LOG = {"half-log": mpf("0.42706"), "sparsemax": mpf("0.49618")}
"""The wide h of the template."""

Case = tuple[str, tuple[Any, ...], Callable[..., Any]]
CASES: list[Case] = [
    ("aggregating", (370, 3, 5, 0.7, 1.3, 0.11),
     lambda T, d, K, B, R, mu: K * d * (1 + log(4 * B * R * T / (K * d))) - T * log(1 - mu)),
    # 4 B R T below K d: the whole ball, h = 1
    ("aggregating", (3, 3, 5, 0.7, 1.3, 0.11), lambda T, d, K, B, R, mu: 4 * B * R * T - T * log(1 - mu)),
    ("aggregating", (3, 3, 5, 0.7, 1.3), lambda T, d, K, B, R: 4 * B * R * T),
    ("aggregating_quadrature", (37, 0.7, 1.3, 0.013, 0.11),
     lambda T, B, R, w, mu: 1 + log(4 * B * R * T) + 8 * B * R * T * w - T * log(1 - mu)),
    ("aggregating_quadrature", (3, 0.1, 0.6, 0.013), lambda T, B, R, w: 4 * B * R * T - log(1 - 2 * w)),
    ("aggregating_fine_quadrature", (37, 0.7, 1.3, 26, 0.11),
     lambda T, B, R, N, mu: 1 + log(4 * B * R * T) - log(1 - quadrature(T, B, R, N)) - T * log(1 - mu)),
    # s is bounded by the nodes, by the branch point, by 5
    ("quadrature_error", (37, 0.7, 1.3, 26), quadrature),
    ("quadrature_error", (37, 0.7, 1.3, 61), quadrature),
    ("quadrature_error", (3, 0.01, 0.3, 11), quadrature),
    ("aggregating_net", (37, 11, 0.11), lambda T, N, mu: log(N / (1 - mu) ** T)),
    ("aggregating_net", (37, 11), lambda T, N: log(N)),
    ("aioli", (37, 3, 0.7, 1.3, 0.31),
     lambda n, d, B, R, lam: lam * B**2 + d * (1 + B * R) * log(1 + n * R**2 / (8 * d * (1 + B * R) * lam))),
    ("aioli", (37, 3, 0.7, 1.3, 0.31, 0.23),
     lambda n, d, B, R, lam, c: lam * B**2 + d / (2 * c) * log(1 + c * n * R**2 / (4 * d * lam))),
    ("aioli_tight", (37, 3, 4.7, 1.3, 0.31),
     lambda n, d, B, R, lam: lam * B**2 + d / (2 * tight(B * R)) * log(1 + tight(B * R) * n * R**2 / (4 * d * lam))),
    ("aioli_inexact", (37, 3, 0.7, 1.3, 0.31, 0.017),
     lambda n, d, B, R, lam, error: lam * B**2 + d * (1 + B * R) * log(1 + n * R**2 / (8 * d * (1 + B * R) * lam))
     + n * R * accuracy(n, B, R, lam) * error),
    ("aioli_inexact", (1, 3, 0.7, 1.3, 0.31, 0.017),
     lambda n, d, B, R, lam, error: lam * B**2 + d * (1 + B * R) * log(1 + R**2 / (8 * d * (1 + B * R) * lam))
     + R * (2 * lam + R**2 / 2) / (2 * lam) * error),
    ("aioli_theorem_4", (37, 3, 0.7, 1.3, 0.31),
     lambda n, d, B, R, lam: 1 + lam * B**2 + d * (1 + B * R) * log(1 + n * R**2 / (8 * d * (1 + B * R) * lam))),
    ("aioli_steps", (37, 0.7, 1.3, 0.0031),
     lambda n, B, R, lam: ceil((4 + R**2 / lam) * log(n**2 * R**2 / lam * accuracy(n, B, R, lam)))),
    ("aioli_kernel", (37, 4.3, 0.7, 1.3, 0.31),
     lambda n, de, B, R, lam: lam * B**2 + de * (1 + B * R) * (1 + log(1 + n * R**2 / (8 * (1 + B * R) * lam)))),
    ("aioli_kernel", (37, 4.3, 0.7, 1.3, 0.31, 0.23),
     lambda n, de, B, R, lam, c: lam * B**2 + de / (2 * c) * (1 + log(1 + c * n * R**2 / (4 * lam)))),
    ("olm_best_expert", (5000, 5, 7, 90.0),
     lambda T, K, N, g: (K - 1) * (log(mpf(16)) * T + sqrt(mpf(512) * T) * N) / g),
    ("olm_best_expert", (5000, 5, 7, 9.0), lambda T, K, N, g: T),
    ("olm_square_hinge_best_expert", (5000, 5, 7, 90.0),
     lambda T, K, N, g: (K - 1) * sqrt(N) * (T + sqrt(8 * T * N) * (1 + sqrt(N))) / g),
    ("olm_square_hinge_best_expert", (5000, 5, 7, 9.0), lambda T, K, N, g: T),
    ("olm_plus_best_expert", (500, 5, 7, 90.0, 31.0), lambda T, K, N, g, reg: (4 * T * log(K) + 4 * N * reg) / g),
    ("olm_plus_best_expert", (500, 5, 7, 3.0, 31.0), lambda T, K, N, g, reg: T),
    ("olm_plus_weak_learners", (5000, 5, 17, 0.9, 1.7, 31.0),
     lambda T, K, N, g, S, reg: 4 * T * log(K) / (N * g**2) + 4 * reg / g**2 + 4 * K * S / g),
    ("olm_plus_weak_learners", (500, 5, 7, 0.3, 1.7, 31.0), lambda T, K, N, g, S, reg: T),
    ("boosting_regression", (37, 0.7, 31.0), lambda T, clip, reg: reg + T * log(1 + exp(2) / exp(2 * clip))),
    ("hedge_mistakes", (37.0, 7), lambda M, N: (M + log(N)) / (1 - 1 / e)),
    # 2 (sqrt(e) - 1) (M + ln N)/(1 - 1/e) + 2 ln(1/delta)
    ("hedge_mistakes_with_confidence", (37.0, 7, 0.07),
     lambda M, N, delta: 2 * (sqrt(e) - 1) * (M + log(N)) / (1 - 1 / e) + 2 * log(1 / delta)),
    ("expert_advice", (37, 11, 0.07), lambda T, N, delta: sqrt(T * log(N) / 2) + sqrt(T * log(1 / delta) / 2)),
    ("online_agnostic", (37, 5, 3, 0.07), agnostic),
    ("link_excess", (5, 0.3, 0.7, 3, 0.07), link),
    ("least_error_rate", (4, 9, 0.13), behind),
    ("least_rounds", (5, 0.13, 1.7, 0.23), lambda k, g, S, rate: (1 - 1 / k) * (k * S / (4 * g)) / rate),
    # 17 rounds of three features: 6, 6 and 5
    ("minimax_regret", (17, 3, 4), lambda T, d, K: log(multinomial_sum(6, 4) ** 2 * multinomial_sum(5, 4))),
    ("minimax_regret_on_ball", (17, 3, 0.7, 1.3), lambda T, d, B, R:
     2 * log(clipped_sum(mpf(6), 2 * B * R / sqrt(d))) + log(clipped_sum(mpf(5), 2 * B * R / sqrt(d)))),
    # d above D, then below, gamma of either kind
    ("shamir_theorem_3", (370, 5000, 0.7, 0.13, "sup"),
     lambda T, d, B, eps, norm: 2 / e * B / log(T) * T ** (1 - eps)),
    ("shamir_theorem_3", (370, 5, 0.7, 0.13, "l2"),
     lambda T, d, B, eps, norm: d / 2 * log(2 * mpmath.pi * e * B / log(T) * T ** (1 - eps) / d**2)),
    ("shamir_theorem_3", (370, 3, 700.0, 0.13, "l1"),
     lambda T, d, B, eps, norm: d / 2 * log(4 * e**2 * T ** (2 - 2 * eps) / d**4)),
    ("shamir_theorem_7", (370, 5, 3, 0.13), lambda T, d, K, eps: d * log(T / (3 * d))),
    ("apple_tasting", (370, 7.0, 31.0), lambda T, g, reg: (2 * T + g**2 * reg) / (2 * g)),
    ("label_efficient", (31.0, 0.3), lambda reg, rate: reg / rate),
    # ln N/eta + (eta/2) T/epsilon at eta = sqrt(2 m ln N)/T, epsilon = m/T
    ("label_efficient_experts", (370, 7, 51.0), lambda T, N, m:
     log(N) * T / sqrt(2 * m * log(N)) + sqrt(2 * m * log(N)) / T / 2 * T * T / m),
    ("mbbm_error_rate", (5, 7, 0.3), lambda k, N, edge: (k - 1) / exp(edge**2 * N) ** mpf(0.5)),
    ("mbbm_weight", (3, 23, 0.3), lambda k, m, edge: k * (k - 1) * walk(3, 23, edge)),
    ("mbbm_mistakes", (3, 7, 0.3, 37, 1.7, 0.23, 4.1), lambda k, N, edge, T, S, rate, w: rate * T + S * w),
    ("mbbm_mistakes", (3, 28, 0.3, 37, 1.7), lambda k, N, edge, T, S:
     2 * exp(-edge**2 * N / 2) * T + S * sum(min(mpf(2), 6 * walk(3, m, edge)) for m in range(28))),
    ("simulated_excess", (5, 0.43, 0.3, 0.07), lambda k, true, edge, delta: -k * log(delta) / (2 * true - 2 * edge)),
    ("margin_range", (5, 0.7, 1.3), lambda K, B, R: 2 * B * R + log(K - 1)),
    ("simple_curvature", (5, 0.7, 1.3), lambda K, B, R: 1 / (2 * B * R + log(K) + 2)),
    ("tight_curvature", (0.37,), tight),
    ("tight_curvature", (6.1,), tight),
    *[("decoding_constant", (name, 5), lambda name, K: 1 - rule(name, K))
      for name in ("sample", "half-log", "sparsemax", "randomized", "gap", "thresholded")],
    *[("mistakes_per_nat", (name, 5), lambda name, K: rule(name, K) / ln2())
      for name in ("sample", "half-log", "randomized", "gap", "thresholded")],
    ("decoded_forecast", (31.0, 5, "gap"), lambda reg, K, name: (1 - 1 / K) / ln2() * reg),
    ("decoded_forecast", (31.0, 5), lambda reg, K: reg / log(mpf(4))),
    ("exploration", (370, 5, 0.3, 3.1), lambda T, K, g, reg: g * T - g * T / K + (1 / g - 1) * K * reg),
    ("exploration", (370, 5, 1.0, 3.1), lambda T, K, g, reg: T - T / K),
    ("exploration_theorem_9", (3700, 5, 3.1), lambda T, K, reg: sqrt(4 * K * T * reg)),
    ("exploration_theorem_9", (37, 5, 3.1), lambda T, K, reg: T),
    ("exploration_well_specified", (5, 37.0, 0.3, 3.1),
     lambda K, total, g, reg: total - total / K + (1 / g - 1) * K * reg),
    ("exploration_well_specified", (5, 37.0, 1.0, 3.1), lambda K, total, g, reg: total - total / K),
    ("theorem_9_gamma", (370, 5, 3.1), lambda T, K, reg: sqrt(K * reg / T)),
    ("theorem_9_gamma", (37, 5, 31.0), lambda T, K, reg: 1),
    ("decoded_exploration", (370, 5, 0.3, 3.1),
     lambda T, K, g, reg: g * (T - T / K) + (1 / g - 1) * K * reg / log(mpf(4))),
    ("decoded_exploration_tuned", (3700, 5, 3.1), lambda T, K, reg: sqrt(4 * K * T * reg / log(mpf(4)))),
    ("decoded_exploration_well_specified", (5, 37.0, 0.3, 3.1),
     lambda K, total, g, reg: total - total / K + (1 / g - 1) * K * reg / log(mpf(4))),
    # lambda = 2 R/B, c = 1/(2 B R + ln K + 2): 2 K R B + ((K-1) d/(4c)) ln(1 + c B R T/(K d))
    ("folklore", (37, 3, 5, 0.7, 1.3), lambda T, d, K, B, R: 2 * K * R * B
     + (K - 1) * d * (2 * B * R + log(K) + 2) / 4 * log(1 + B * R * T / (K * d * (2 * B * R + log(K) + 2)))),
    ("folklore", (37, 3, 5, 0.7, 1.3, 0.31, 0.13), lambda T, d, K, B, R, lam, c:
     lam * K * B**2 + (K - 1) * d / (4 * c) * log(1 + 2 * c * R**2 * T / (K * d * lam))),
    ("folklore_any_regularization", (37, 3, 5, 0.7, 1.3, 0.31, 0.13), folklore_any),
    ("folklore_after", (37, 3, 5, 0.7, 1.3, 0.31, 0.13), lambda T, d, K, B, R, lam, c:
     lam * K * B**2 + (K - 1) * d / (4 * c) * log(1 + c * R**2 * T / (K * d * lam))),
    ("folklore_inexact", (37, 3, 5, 0.7, 1.3, 0.31, 0.13, 0.017), lambda T, d, K, B, R, lam, c, error:
     lam * K * B**2 + (K - 1) * d / (4 * c) * log(1 + 2 * c * R**2 * T / (K * d * lam))
     + T * (sqrt(mpf(2)) + c * R**2 / (sqrt(mpf(2)) * lam)) * (1 + R**2 / (4 * lam)) * error),
    # c R^2 above lambda: the other theorem
    ("folklore_inexact", (37, 3, 5, 0.7, 1.3, 0.031, 0.13, 0.017), lambda T, d, K, B, R, lam, c, error:
     folklore_any(T, d, K, B, R, lam, c)
     + T * (2 + c * R**2 / lam) / sqrt(mpf(2)) * (1 + R**2 / (4 * lam)) * error),
    ("folklore_error", (37, 1.3, 0.31, 0.13), lambda T, R, lam, c:
     sqrt(mpf(2)) / (T * (2 + c * R**2 / lam) * (1 + R**2 / (4 * lam)))),
    ("folklore_error", (0, 1.3, 0.31, 0.13), lambda T, R, lam, c:
     sqrt(mpf(2)) / ((2 + c * R**2 / lam) * (1 + R**2 / (4 * lam)))),
    ("folklore_frobenius", (37, 3, 5, 0.7, 1.3, 0.31, 0.13), lambda T, d, K, D, R, lam, c:
     folklore_any(T, d, K, D / sqrt(K), R, lam, c)),
    ("folklore_kernel", (37, 4.3, 5, 0.7, 1.3, 0.31, 0.13), lambda T, de, K, B, R, lam, c: lam * K * B**2
     + (1 + c * R**2 / (2 * lam)) / (4 * c) * (K - 1) * de * (1 + log(1 + c * R**2 / (2 * lam) * T))),
    ("ftrl", (37, 5, 0.7, 1.3, 0.31), lambda T, K, B, R, lam: (2 * lam**2 * K * B**2 + R**2 * T) / (2 * lam)),
    ("ftrl_regularization", (37, 5, 0.7, 1.3), lambda T, K, B, R: sqrt(R**2 * T / (2 * K * B**2))),
    ("gaf_corollary_2", (37, 3, 5, 0.7, 1.3), lambda n, d, K, B, R: 32 * K * K * d * R**2 * B**2
     + K * d * (mpf(1) / 2 + sqrt(mpf(12)) * (B * R + log(K) / 2 + 1)) * log(1 + n / (64 * K * d * (B * R + log(K) / 2 + 1)))),
    ("gaf_corollary_2", (37, 3, 5, 0.7, 1.3, 151.0, 0.26), lambda n, d, K, B, R, lam, b: lam * K * B**2
     + K * d * (mpf(1) / 2 + sqrt(mpf(12)) / b) * log(1 + n * b * R**2 / (2 * lam))),
    ("gaf_regularization", (3, 5, 1.3), lambda d, K, R: 32 * d * K * R**2),
    ("gaf", (37, 3, 5, 0.7, 1.3, 0.31, 0.13), lambda n, d, K, B, R, lam, c: lam * K * B**2
     + kappa(K, R, lam) * (K - 1) * d / (4 * c) * log(1 + c * R**2 * n / (K * d * lam))),
    ("gaf_sampling", (37, 5, 23, 0.3), lambda n, K, m, mu: n * ((1 - mu) * K / (4 * mu * m)
     + exp(-mu * m / (2 * K * (1 - mu))) * log(K / mu) - log(1 - mu))),
    ("gaf_sampling_high_probability", (37, 5, 1370, 0.3, 0.07), lambda n, K, m, mu, delta:
     n * sqrt(K * log(n / delta) / (mu * m)) + 2 * n * mu),
    ("gaf_kernel", (37, 4.3, 5, 0.7, 1.3, 0.31, 0.13), lambda n, de, K, B, R, lam, c: lam * K * B**2
     + kappa(K, R, lam) * (K - 1) * de / (4 * c) * (1 + log(1 + c * R**2 * n / (2 * lam)))),
    ("gaf_theorem_1", (37, 7, 0.7, 0.6, 1.7, 0.26, 2.3), lambda n, d, B, alpha, zeta, b, g: d * zeta / alpha * B**2
     + d / alpha * (mpf(1) / 2 + sqrt(mpf(12)) / b) * log(1 + n * b * g * alpha / (2 * d * zeta))),
    ("gaf_theorem_1", (37, 3, 0.7, 0.6, 1.7, 0.26, 2.3), lambda n, d, B, alpha, zeta, b, g: 4 * zeta / alpha * B**2
     + d / alpha * (mpf(1) / 2 + sqrt(mpf(12)) / b) * log(1 + n * b * g * alpha / (8 * zeta))),
    ("gaf_theorem_1", (37, 3, 0.7, 0.6, 1.7, 0.26, 2.3, 19.0), lambda n, d, B, alpha, zeta, b, g, lam: lam * B**2
     + d / alpha * (mpf(1) / 2 + sqrt(mpf(12)) / b) * log(1 + n * b * g / (2 * lam))),
    ("vovk_azoury_warmuth", (37, 3, 0.7, 1.3, 2.9, 0.31), lambda n, d, B, R, Y, lam:
     lam * B**2 + Y**2 * d * log(1 + n * R**2 / (d * lam))),
    ("gaf_huber", (37, 3, 0.7, 1.3, 2.9, 0.31), lambda n, d, B, R, Y, lam:
     lam * B**2 + Y**2 / 2 * d * log(1 + n * R**2 / (2 * d * lam))),
    ("gaf_sampling_theory", (7, 5, 0.07), lambda n, K, delta:
     3 * n * mpmath.cbrt(K * log(n / delta) / ceil(n**3 * log(n / delta)))),
    ("gaf_sampling_theory", (1, 2, 0.95), lambda n, K, delta: 3 * mpmath.cbrt(-2 * log(delta))),
    ("gaf_sampling_theory", (0, 2, 0.95), lambda n, K, delta: 0),
    ("gaf_samples", (7, 0.07), lambda n, delta: ceil(n**3 * log(n / delta))),
    ("gaf_samples", (0, 0.07), lambda n, delta: ceil(-log(delta))),
    ("gaf_samples", (1, 0.95), lambda n, delta: 1),
    ("gaf_mu", (37, 5, 1370, 0.07), lambda n, K, m, delta: mpmath.cbrt(K * log(n / delta) / m)),
    ("gaf_mu", (0, 5, 1370, 0.07), lambda n, K, m, delta: mpmath.cbrt(-K * log(delta) / m)),
    ("gaf_mu", (37, 5, 137, 0.07), lambda n, K, m, delta: mpf(1) / 2),
    ("gaf_smoothing", (5, 23), lambda K, m: sqrt(K / m) / 2),
    ("gaf_smoothing", (5, 3), lambda K, m: mpf(1) / 2),
    *[("gaptron_gamma", (5, 0.7, 1.3, 3700, loss), lambda K, R, D, T, loss: {
        "logistic": K * R * D / sqrt(T * ln2()), "hinge": K * R * D / sqrt(T), "smooth-hinge": K * R * D / sqrt(T / 2)}[loss])
      for loss in ("logistic", "hinge", "smooth-hinge")],
    *[("gaptron_gamma", (5, 0.7, 1.3, 3700, loss, True), lambda K, R, D, T, loss, wide: {
        "logistic": R * D * sqrt(K / (mpf(2.5) * T * ln2())), "hinge": R * D * sqrt(K / T),
        "smooth-hinge": R * D * sqrt(2 * K / T)}[loss])
      for loss in ("logistic", "hinge", "smooth-hinge")],
    ("gaptron_gamma", (5, 7.0, 1.3, 37), lambda K, R, D, T: 1),
    ("gaptron_gamma", (5, 7.0, 1.3, 37, "hinge", True), lambda K, R, D, T, loss, wide: 1),
    *[("gaptron_step", (5, 0.7, 0.3, loss), lambda K, R, g, loss: g / (K * R) ** 2 * {
        "logistic": ln2() / 2, "hinge": mpf(1) / 2, "smooth-hinge": mpf(1) / 4}[loss])
      for loss in ("logistic", "hinge", "smooth-hinge")],
    *[("gaptron_step", (5, 0.7, 0.3, loss, True), lambda K, R, g, loss, wide: g / (K * R**2) * {
        "logistic": mpf(1.25) * ln2(), "hinge": mpf(1) / 2, "smooth-hinge": mpf(1) / 4}[loss])
      for loss in ("logistic", "hinge", "smooth-hinge")],
    # where gamma is cut at 1 the bound is 2 P, where it is not 2 sqrt(P T)
    *[case
      for name, P in {"gaptron_bandit": lambda K, R, D: (K * R * D) ** 2 / ln2(),
                      "gaptron_bandit_hinge": lambda K, R, D: (K * R * D) ** 2,
                      "gaptron_bandit_smooth_hinge": lambda K, R, D: 2 * (K * R * D) ** 2,
                      "gaptron_wide": lambda K, R, D: K * (R * D) ** 2 / (mpf(2.5) * ln2()),
                      "gaptron_wide_hinge": lambda K, R, D: K * (R * D) ** 2,
                      "gaptron_wide_smooth_hinge": lambda K, R, D: 2 * K * (R * D) ** 2,
                      "template_bandit": lambda K, R, D: K * (R * D) ** 2 / log(mpf(4))}.items()
      for case in ((name, (5, 0.7, 1.3, 3700), lambda K, R, D, T, P=P: sqrt(4 * P(K, R, D) * T)),
                   (name, (5, 7.0, 1.3, 37), lambda K, R, D, T, P=P: 2 * P(K, R, D)))],
    ("gaptron_fixed", (5, 1.3, 0.23, 0.3, 37), lambda K, D, step, g, T: D**2 / step / 2 + g * T - g * T / K),
    ("grid", (31.0, 7), lambda reg, N: log(exp(reg) * N)),
    ("hessian_dominance", (0.7, 1.3), lambda B, R: (exp(B * R) + 2) / 2),
    ("gaussian_mix_regret", (37.0, 3, 5, 1.7, 0.6, 1.3), mix),
    ("obama_gaussian_prior", (3700, 3, 5, 0.7, 1.3, 0.3),
     lambda T, d, K, B, R, g: K * ball_mix(T, d, K, B, R, g) / g + g * T - g * T / K),
    ("decoded_obama", (3700, 3, 5, 0.7, 1.3, 0.3),
     lambda T, d, K, B, R, g: K * ball_mix(T, d, K, B, R, g) / g / log(mpf(4)) + g * T - g * T / K),
    ("obama_net", (370, 11, 5, 0.3), lambda T, N, K, g: K * log(N) / g + g * T - g * T / K),
    ("decoded_obama_net", (370, 11, 5, 0.3), lambda T, N, K, g: K * log(N) / g / log(mpf(4)) + g * T - g * T / K),
    ("obama_gamma", (3700, 3, 5, 0.7, 1.3), lambda T, d, K, B, R: balance(T, d, K, B, R, 1)),
    ("obama_gamma", (3700, 3, 5, 0.7, 1.3, "half-log"),
     lambda T, d, K, B, R, name: balance(T, d, K, B, R, 1 / log(mpf(4)))),
    ("obama_gamma", (37, 3, 5, 0.7, 1.3), lambda T, d, K, B, R: 1),
    ("ogd", (37, 5, 0.7, 1.3), lambda T, K, B, R: sqrt(18 * K * T) * B * R),
    ("ogd", (37, 5, 0.7, 1.3, 0.23), lambda T, K, B, R, s: sqrt(T) * 2 * (K * B**2 / s + s * R**2)),
    ("exp_concavity", (5, 0.7, 1.3), lambda K, B, R: 1 / ((K - 1) * exp(2 * B * R))),
    # s = 2/alpha, eps = s^2/(4 K B^2): K B^2 eps/(2 s) = s/8
    ("ons", (37, 3, 5, 0.7, 1.3), lambda T, d, K, B, R: (K - 1) * exp(2 * B * R) * (mpf(1) / 4 + (K - 1) * d
     * log(1 + 2 * R**2 * T * K * B**2 / ((K - 1) ** 3 * d * exp(4 * B * R))))),
    ("ons", (37, 3, 5, 0.7, 1.3, 0.31, 97.0), lambda T, d, K, B, R, eps, s:
     K * B**2 * eps / (2 * s) + s / 2 * (K - 1) * d * log(1 + 2 * R**2 * T / ((K - 1) * d * eps))),
    # N = L + R F sqrt(N), rounded down
    ("ovr_perceptron_mistakes", (5, 1.3, 3.7, 31.0), lambda K, R, F, L:
     (K - 1) * math.floor(mpmath.findroot(lambda N: N - L - R * F * sqrt(N), mpf(60)))),
    ("ovr_perceptron_mistakes", (5, 1.3, 3.7), lambda K, R, F: (K - 1) * math.floor((R * F) ** 2)),
    ("perceptron", (31.0, 0.7, 1.3), lambda L, F, R: L + 2 * (R * F) ** 2 + R * F * sqrt(2 * L)),
    ("decoding_step", (1.3,), lambda R: log(mpf(4)) * (1 - ln2()) / R**2),
    ("randomized_decoding", (1.3, 0.23), lambda D, step: D**2 / step / 2),
    ("rdue_gap", ("randomized", 5), lambda name, K: 1 - ln2()),
    ("rdue_gap", ("half-log", 5), lambda name, K: mpf(1) / 2),
    ("rdue_radius", (5, 0.7), lambda K, B: sqrt(K * B**2) / ln2()),
    ("rdue_smoothness", (1.3,), lambda R: log(mpf(4)) * R**2),
    ("rdue_gamma", (5, 1.3, 3700), lambda K, D, T: sqrt(D**2 * K / T)),
    ("rdue_gamma", (5, 7.0, 37), lambda K, D, T: 1),
    ("rdue_decoded_gamma", (5, 0.7, 1.3, 3700), lambda K, R, D, T: D * sqrt(log(mpf(4)) * R**2 * K / T)),
    ("rdue_decoded_gamma", (5, 0.7, 1.3, 3700, "gap"), lambda K, R, D, T, name: D * R * K * sqrt(ln2() / T)),
    ("rdue_decoded_gamma", (5, 7.0, 1.3, 37), lambda K, R, D, T: 1),
    ("rdue_bandit", (5, 0.7, 1.3, 3700), lambda K, R, D, T: (ln2() * R**2 / (1 - ln2()) + 1) * sqrt(D**2 * K * T)),
    ("rdue_fixed", (5, 0.7, 1.3, 0.3, 370), lambda K, R, D, g, T:
     g * T - g * T / K + ln2() * R**2 * K * D**2 / ((1 - ln2()) * g)),
    ("rdue_decoded", (5, 0.7, 1.3, 0.3, 370), lambda K, R, D, g, T: g * T - g * T / K + log(mpf(4)) * R**2 * K * D**2 / g),
    ("rdue_decoded", (5, 0.7, 1.3, 0.3, 370, "gap"), lambda K, R, D, g, T, name:
     g * T - g * T / K + ln2() * (R * K * D) ** 2 / g),
    ("logistic_smoothness", (1.3,), lambda R: R**2 / ln2()),
    # 2 c gamma/(b K), b = R^2/ln 2
    ("template_step", (5, 0.7, 0.3), lambda K, R, g: g * ln2() / (K * R**2)),
    ("template_step", (5, 0.7, 0.3, "half-log", False, 40), lambda K, R, g, name, wide, n: ln2() / (K / g + 2 * n) / R**2),
    ("template_step", (5, 0.7, 0.3, "gap"), lambda K, R, g, name: g * log(mpf(4)) / (K * R) ** 2),
    *[("template_step", (5, 0.7, 0.3, name, True), lambda K, R, g, name, wide: 2 * HALF_LOG[name] * g / (K * R**2))
      for name in HALF_LOG],
    ("template_label_step", (5, 0.7), lambda K, R: ln2() / R**2),
    ("template_label_step", (5, 0.7, "gap"), lambda K, R, name: log(mpf(4)) / (K * R**2)),
    ("template_gamma", (5, 0.7, 1.3, 3700), lambda K, R, D, T: R * D * sqrt(K / (log(mpf(4)) * T))),
    ("template_gamma", (5, 0.7, 1.3, 3700, "sparsemax", True),
     lambda K, R, D, T, name, wide: R * D * sqrt(K / (4 * HALF_LOG[name] * T))),
    ("template_gamma", (5, 7.0, 1.3, 37), lambda K, R, D, T: 1),
    ("template_label", (5, 0.7, 1.3), lambda K, R, D: (R * D) ** 2 / log(mpf(4))),
    ("template_label", (5, 0.7, 1.3, "gap"), lambda K, R, D, name: K * (R * D) ** 2 / log(mpf(16))),
    ("template_bandit", (5, 0.7, 1.3, 3700, "half-log", True),
     lambda K, R, D, T, name, wide: R * D * sqrt(K * T / HALF_LOG[name])),
    ("template_fixed", (5, 0.7, 1.3, 0.023, 0.3, 370), lambda K, R, D, step, g, T: D**2 / step / 2 + g * T - g * T / K),
]  # fmt: skip


def test_every_bound_and_every_setting_has_its_formula() -> None:
    assert {name for name, _, _ in CASES} == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("name", "arguments", "formula"), CASES, ids=[f"{i}-{name}" for i, (name, _, _) in enumerate(CASES)]
)
def test_by_formula(name: str, arguments: tuple[Any, ...], formula: Callable[..., Any]) -> None:
    with mpmath.workdps(30):
        numbers = [mpf(each) if isinstance(each, int | float) else each for each in arguments]
        expected = float(formula(*numbers))
    assert FUNCTIONS[name](*arguments) == pytest.approx(expected, rel=1e-11)
    by_name = dict(zip(inspect.signature(FUNCTIONS[name]).parameters, arguments, strict=False))
    assert FUNCTIONS[name](**by_name) == FUNCTIONS[name](*arguments)
