r"""Regret bounds of GAF (Jézéquel, Gaillard and Rudi, NeurIPS 2021) with exact or sampled forecasts.

For the multiclass logistic loss, the regret of any forecasts :math:`p_t` is at most :math:`\lambda \|W\|^2` plus the
sum of :math:`-\ln p_{t,y} - \mathrm{loss}(z_t) - (1/2)(s - e_y)' \tilde{A} (s - e_y)`. Here :math:`z_t` and
:math:`s = \mathrm{softmax}(z_t)` are the logits and probabilities at the implicit step's solution. The certificate is
this total, and the functions here bound it.
"""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import theorem, within
from banditlab.bounds.curvature import is_admissible_on_ball, simple_curvature

_SOURCE = "Jézéquel, Gaillard and Rudi, NeurIPS 2021"
_ADVERSARY = r"adaptive: Theorem 1: 'Let $(x_1, y_1), \dots, (x_n, y_n)$ be an arbitrary sequence of observations'"
_theorem = partial(theorem, unit="nats", adversary=_ADVERSARY)
_SAMPLED = (
    "adaptive: (8), Chernoff's bound given the past, for samples drawn independently in each round, so its label cannot "
    "depend on them"
)
_sampled = partial(_theorem, adversary=_SAMPLED)


@_theorem(
    source=_SOURCE + ", Theorem 1 with the constants of Section 4.2 (Corollary 2)",
    assumes=r"exact expectation, $\|W_k\| \le B$, $\|x\| \le R$, $\beta$ admissible, $\lambda \ge 4 \max(4, K d) R^2$",
    printed=r"Corollary 2 prints a rate; these are Theorem 1's constants at $\alpha = 1$, $\zeta = 4 R^2$, $\gamma = R^2$",
)
def gaf_corollary_2(
    rounds: float,
    n_features: int,
    n_classes: int,
    norm_bound: float,
    radius: float,
    regularization: float | None = None,
    beta: float | None = None,
) -> float:
    r"""Bound the regret of exact GAF by
    :math:`\lambda K B^2 + K d (1/2 + 2 \sqrt{3}/\beta) \ln(1 + n \beta R^2 / (2 \lambda))`.

    The paper's B is a bound on the Frobenius norm of W. Here B is a bound on each row's norm, so the paper's is
    :math:`\sqrt{K} B`. The default of `regularization` is :math:`32 K d R^2`, and that of :math:`\beta` is
    :math:`1/(B R + \ln(K)/2 + 1)`. The result is NaN if the regularization is below the theorem's limit (`gaf` holds
    for any regularization), or if :math:`\beta` is not known to be admissible.
    """
    n, d, K, B, R = rounds, n_features, n_classes, norm_bound, radius
    lam = gaf_regularization(d, K, R) if regularization is None else regularization
    b = 2.0 * simple_curvature(K, B, R) if beta is None else beta
    if lam < 4.0 * max(4, K * d) * R**2 or not is_admissible_on_ball(0.5 * b, K, B, R):
        return math.nan
    return lam * K * B**2 + K * d * (0.5 + 2.0 * math.sqrt(3.0) / b) * math.log1p(n * b * R**2 / (2.0 * lam))


@_theorem(
    source=_SOURCE + ", Theorem 1's argument (variant proved here)",
    assumes=r"exact expectation, $\|W_k\| \le B$, $\|x\| \le R$, admissible curvature $c = \beta/2$, any $\lambda > 0$",
    printed=r"$K d (1/2 + \sqrt{3}/c)$ instead of $(K-1) d \kappa/(4c)$, and $\lambda \ge 4 \max(4, K d) R^2$",
)
def gaf(
    rounds: float,
    n_features: int,
    n_classes: int,
    norm_bound: float,
    radius: float,
    regularization: float,
    curvature: float,
) -> float:
    r"""Return the regret bound of exact GAF:
    :math:`\lambda K B^2 + (\kappa/(4c)) (K-1) d \ln(1 + c R^2 n / (K d \lambda))`.

    Here :math:`\kappa = \exp(\sigma \sqrt{2 (K-1)} + \sigma^2)` and :math:`\sigma^2 = R^2/(2 \lambda)`. The argument:
    :math:`\Omega_t` is at most the mean of the loss minus the surrogate over :math:`N(\theta_{t+1}, A_t^{-1}/2)`
    (Jensen). For logits :math:`z + u`, :math:`u \sim N(0, C)`, this mean is at most
    :math:`(\kappa/2 - c)\, \mathrm{tr}(C S)`. The latter follows from half the mean of :math:`\mathrm{tr}(C S)` along
    the heat flow, :math:`S(z + u) \le \exp(\max u - \min u) S(z)`, and :math:`\max u - \min u \le \sqrt{2} \|u\|`, a
    Lipschitz function of a Gaussian vector with :math:`K - 1` coordinates of variance at most :math:`\sigma^2`.
    Moreover :math:`\mathrm{tr}(C S) = \mathrm{tr}(A_t^{-1} H_t)/2`, and
    :math:`c\, \mathrm{tr}(A_t^{-1} H_t) \le \ln(|A_t|/|A_{t-1}|)`; :math:`\Psi_t` adds half of that.
    """
    n, d, K, B, R, lam, c = rounds, n_features, n_classes, norm_bound, radius, regularization, curvature
    if not is_admissible_on_ball(c, K, B, R):
        return math.nan
    variance = R**2 / (2.0 * lam)
    kappa = math.exp(math.sqrt(2.0 * (K - 1) * variance) + variance)
    return lam * K * B**2 + kappa / (4.0 * c) * (K - 1) * d * math.log1p(c * R**2 * n / (K * d * lam))


@_sampled(
    source="this library, on Efficient-GAF (" + _SOURCE + ", Proposition 3)",
    assumes=r"in expectation over independent samples that the label does not depend on, $0 < \mu \le 1/2$",
    printed=r"$n (K \ln(n/\delta)/m)^{1/3}$, with high probability and up to a constant",
)
def gaf_sampling(rounds: float, n_classes: int, samples: int, smoothing: float) -> float:
    r"""Return a bound on the additional regret caused by sampling and smoothing, with :math:`a = \mu/K`.

    It is :math:`n [(1-\mu)/(4 a m) + \exp(-a m/(2(1-\mu))) \ln(1/a) - \ln(1-\mu)]`. Let :math:`q = (1 - \mu) p + a` be
    the smoothed probability of the label and :math:`q (1 + D)` its estimate from m samples. For :math:`D \ge -1/2`,
    :math:`-\ln(1 + D)` is at most :math:`-D + D^2`. Here :math:`E D = 0` and
    :math:`E D^2 \le (1 - \mu)(q - a)/(m q^2) \le (1 - \mu)/(4 a m)`, because :math:`q^2 \ge 4 a (q - a)`.
    :math:`D < -1/2` has probability at most :math:`\exp(-m q^2/(8 (1 - \mu)(q - a)))` (Chernoff) and costs at most
    :math:`\ln(1/a)`. An antithetic pair counts as one sample.
    """
    n, m, mu = rounds, samples, smoothing
    a = mu / n_classes
    if a == 0.0:
        return math.inf
    return n * ((1.0 - mu) / (4.0 * a * m) - math.exp(-0.5 * a * m / (1.0 - mu)) * math.log(a) - math.log1p(-mu))


@_sampled(
    source=_SOURCE + ", Proposition 3",
    assumes=r"with probability $1 - \delta$ over independent samples that the label does not depend on; "
    r"$\epsilon, \mu \le 1/2$",
    printed=r"$\mu n$ instead of $2 \mu n$; its (8) uses $e^{-\epsilon} \le 1 - 2 \epsilon$, which is false, but its "
    "bound holds",
)
def gaf_sampling_high_probability(
    rounds: float, n_classes: int, samples: int, smoothing: float, probability: float
) -> float:
    r"""Return a bound on the additional regret caused by sampling and smoothing, with high probability.

    It is :math:`n (\epsilon + 2 \mu)` with :math:`\epsilon = \sqrt{K \ln(n/\delta) / (\mu m)}`. In the notation of
    `gaf_sampling`, :math:`D < e^{-\epsilon} - 1` has probability at most

    .. math::

        \exp(-m (1 - e^{-\epsilon})^2 q^2/(2 (1 - \mu)(q - a))) \le \exp(-2 m a (1 - e^{-\epsilon})^2) \le \exp(-m a
        \epsilon^2),

    because :math:`1 - e^{-\epsilon} \ge 3 \epsilon/4`. The result is infinite if :math:`\epsilon > 1/2`.
    """
    n, K, m, mu, delta = rounds, n_classes, samples, smoothing, probability
    epsilon = math.sqrt(K * math.log(max(n, 1.0) / delta) / (mu * m)) if mu > 0.0 else math.inf
    return n * (epsilon + 2.0 * mu) if epsilon <= 0.5 else math.inf


@_theorem(
    source=_SOURCE + ", Conclusion (derived here)",
    assumes=r"exact expectation, $\|W_k\| \le B$ in the kernel's space, $k(x, x) \le R^2$, "
    r"`effective_dimension` $= \mathrm{tr}(G (G + (2 \lambda/c) I)^{-1})$",
    printed="left to future work",
)
def gaf_kernel(
    rounds: float,
    effective_dimension: float,
    n_classes: int,
    norm_bound: float,
    radius: float,
    regularization: float,
    curvature: float,
) -> float:
    r"""Return the regret bound of exact kernel GAF, with :math:`\kappa` as in `gaf`. It is
    :math:`\lambda K B^2 + (\kappa/(4c)) (K-1) d_{\text{eff}} (1 + \ln(1 + c R^2 n/(2 \lambda)))`.

    The argument of `gaf` bounds the regret by :math:`\lambda K B^2 + (\kappa/(4c)) \ln \det(I + (c/\lambda) \sum H)`,
    and that of `folklore_kernel` bounds the determinant. The logits of a round have :math:`K - 1` dimensions, whatever
    the dimension of the space, so :math:`\kappa` does not depend on it.
    """
    n, K, B, R, lam, c = rounds, n_classes, norm_bound, radius, regularization, curvature
    if not is_admissible_on_ball(c, K, B, R):
        return math.nan
    variance = R**2 / (2.0 * lam)
    kappa = math.exp(math.sqrt(2.0 * (K - 1) * variance) + variance)
    log_det = (K - 1) * effective_dimension * (1.0 + math.log1p(0.5 * c * R**2 * n / lam))
    return lam * K * B**2 + kappa / (4.0 * c) * log_det


@_theorem(
    source=_SOURCE + ", Theorem 1",
    unit="the loss",
    assumes=r"(A1) to (A4) with $\alpha$, $\zeta$, $\beta$, $\gamma$ (mixability, sharpness, beta, smoothness here), "
    r"$\|\theta\| \le B$, $\lambda \ge \max(4, d)\, \zeta/\alpha$",
)
def gaf_theorem_1(
    rounds: float,
    n_features: int,
    margin_bound: float,
    mixability: float,
    sharpness: float,
    beta: float,
    smoothness: float,
    regularization: float | None = None,
) -> float:
    r"""Return the regret bound of GAF for a mixable loss. It is
    :math:`\lambda B^2 + (d/\alpha) (1/2 + 2 \sqrt{3}/\beta) \ln(1 + n \beta \gamma/(2 \lambda))`.

    `margin_bound` is B, the bound of :math:`\|\theta\|`; mixability is :math:`\alpha`, sharpness :math:`\zeta`,
    smoothness :math:`\gamma`. The default of `regularization` is :math:`\max(4, d) \zeta/\alpha`, the smallest value
    that the theorem allows; below it the result is NaN.
    """
    n, d, B, alpha, zeta, gamma = rounds, n_features, margin_bound, mixability, sharpness, smoothness
    least = max(4, d) * zeta / alpha
    lam = least if regularization is None else regularization
    if lam < least * (1.0 - 1e-12):
        return math.nan
    return lam * B**2 + d / alpha * (0.5 + 2.0 * math.sqrt(3.0) / beta) * math.log1p(n * beta * gamma / (2.0 * lam))


@_theorem(
    source=_SOURCE + ", Section 4.1, with the constants of Vovk 2001 (Cesa-Bianchi and Lugosi 2006, Theorem 11.8)",
    unit="squared targets",
    assumes=r"squared loss $(z - y)^2$, $|y| \le Y$, $\|\theta\| \le B$, $\|x\| \le R$, any $\lambda > 0$",
    printed=r"$1 + 8 Y^2 d \ln(1 + 16 n B^2 R^2)$ from Theorem 1's constants; its (A4) has $\gamma = R^2$ instead of $2 R^2$",
)
def vovk_azoury_warmuth(
    rounds: float, n_features: int, margin_bound: float, radius: float, target_bound: float, regularization: float
) -> float:
    r"""Return the regret bound of Vovk, Azoury and Warmuth: :math:`\lambda B^2 + Y^2 d \ln(1 + n R^2/(d \lambda))`.

    B is the bound of :math:`\|\theta\|`. The argument: surrogates equal the losses, so a round adds
    :math:`(\text{prediction} - y)^2 - (m - y)^2/(1 + q)` to the bound, where m is the ridge prediction,
    :math:`\text{prediction} = m/(1 + q)` and :math:`q = x'A_{t-1}^{-1}x`. This is
    :math:`(q/(1 + q)) (y^2 - \text{prediction}^2 (1 + q)) \le Y^2 \ln(1 + q)`, and the logarithms add up to
    :math:`\ln \det(A_n/\lambda)`.
    """
    n, d, B, R, Y, lam = rounds, n_features, margin_bound, radius, target_bound, regularization
    return lam * B**2 + Y**2 * d * math.log1p(n * R**2 / (d * lam))


@_theorem(
    source=_SOURCE + ", Conclusion (Huber's loss, derived here)",
    unit="the loss",
    assumes=r"Huber's loss, $u^2/2$ up to a threshold of at least $\max(2 Y, B R + Y)$, $|y| \le Y$, $\|\theta\| \le B$, "
    r"$\|x\| \le R$, $\lambda > 0$",
    printed="left to future work",
)
def gaf_huber(
    rounds: float, n_features: int, margin_bound: float, radius: float, target_bound: float, regularization: float
) -> float:
    r"""Return the regret bound of GAF on Huber's loss: :math:`\lambda B^2 + (Y^2/2) d \ln(1 + n R^2/(2 d \lambda))`.

    B is the bound of :math:`\|\theta\|`. If the implicit step z is within the threshold of y, the surrogate is
    :math:`u^2/2` with u the prediction minus y. The mixture's Huber loss is at most its :math:`u^2/2`, which exceeds
    the increase of the minimum, :math:`(m - y)^2/(2 + q)`, by at most :math:`(Y^2/2) \ln(1 + q/2)`. Otherwise the
    minimum increases by at least :math:`\text{threshold}^2/2 \ge 2 Y^2`, the largest loss of a prediction in
    :math:`[-Y, Y]`, and A does not change.
    """
    n, d, B, R, Y, lam = rounds, n_features, margin_bound, radius, target_bound, regularization
    return lam * B**2 + 0.5 * Y**2 * d * math.log1p(0.5 * n * R**2 / (d * lam))


@_sampled(
    source=_SOURCE + r", Proposition 3 with $m = n^3 \ln(n/\delta)$",
    assumes=r"with probability $1 - \delta$ over independent samples that the label does not depend on, $\mu$ that of `gaf_mu`",
    printed=r"$m = n^3 \ln(n/\delta)$ and no constant; m does not depend on K; $\mu n$ instead of $2 \mu n$",
)
def gaf_sampling_theory(rounds: float, n_classes: int, probability: float) -> float:
    r"""Return a bound on the additional regret caused by sampling and smoothing at the published
    :math:`m = \mathrm{ceil}(n^3 \ln(n/\delta))`.

    It is about :math:`3 K^{1/3}` for any n: `gaf_sampling_high_probability` at that m and
    :math:`\mu = (K \ln(n/\delta)/m)^{1/3}`. Then :math:`\epsilon = \mu`, and
    :math:`n (\epsilon + 2 \mu) = 3 n \mu \le 3 K^{1/3}`. The result is infinite if :math:`\mu > 1/2`.
    """
    n = max(rounds, 1.0)
    m = gaf_samples(n, probability)
    mu = (n_classes * math.log(n / probability) / m) ** (1.0 / 3.0)
    if mu > 0.5:
        return math.inf
    return rounds * (math.sqrt(n_classes * math.log(n / probability) / (mu * m)) + 2.0 * mu)


@within(beyond=math.inf)
def gaf_samples(rounds: float, probability: float) -> float:
    r"""Return the number of samples per round in Proposition 3, :math:`n^3 \ln(n/\delta)` rounded up, at least 1."""
    n = max(rounds, 1.0)
    return max(1.0, float(math.ceil(n**3 * math.log(n / probability))))


@within(beyond=math.inf)
def gaf_mu(rounds: float, n_classes: int, samples: float, probability: float) -> float:
    r"""Return the :math:`\mu` in the proof of Proposition 3, :math:`\min(1/2, (K \ln(n/\delta)/m)^{1/3})`."""
    return min(0.5, (n_classes * math.log(max(rounds, 1.0) / probability) / samples) ** (1.0 / 3.0))


@within(beyond=math.inf)
def gaf_regularization(n_features: int, n_classes: int, radius: float) -> float:
    r"""Return the :math:`\lambda` of Corollary 2, :math:`32 K d R^2`."""
    return 32.0 * n_classes * n_features * radius**2


@within()
def gaf_smoothing(n_classes: int, samples: int) -> float:
    r"""Return the :math:`\mu` at which the two main terms of `gaf_sampling` are equal,
    :math:`\min(1/2, \sqrt{K/(4m)})`.
    """
    return min(0.5, math.sqrt(n_classes / (4.0 * samples)))
