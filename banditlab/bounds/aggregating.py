"""The aggregating forecaster for the multiclass logistic loss, which is 1-mixable."""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import LARGEST, theorem, within

_SOURCE = "Foster, Kale, Luo, Mohri and Sridharan, COLT 2018, Theorem 3"
MOST_NODES = 10**15
_ADVERSARY = "adaptive: the argument given here uses no expectation and holds for any sequence $(x_t, y_t)$"
_theorem = partial(theorem, source=_SOURCE, unit="nats", adversary=_ADVERSARY)
_PRINTED = r"$5 D \ln(B R T/D + e) + 2 \mu T$, D the dimension"


@_theorem(
    assumes=r"uniform prior on $\{\|W_k\| \le B\}$, exact integrals, $\|x\| \le R$, smoothing $\mu \in [0, 1/2]$",
    printed=_PRINTED,
    ranges={"n_classes": (1.0, LARGEST)},
)
def aggregating(
    rounds: float, n_features: int, n_classes: int, norm_bound: float, radius: float, smoothing: float = 0.0
) -> float:
    r"""Return the regret bound :math:`n \ln(1/h) + 4 B R T h - T \ln(1 - \mu)` with :math:`n = Kd`,
    :math:`h = \min(1, n/(4 B R T))`.

    The argument: the loss of the mixture is :math:`-\ln` of the mean of :math:`e^{-L(W)}` over the prior. The ball
    shrunk towards :math:`W^*` by the factor h has mass :math:`h^n`, and on it :math:`L \le L(W^*) + 4 B R T h`. The
    reason is that the loss of a round changes by at most the largest minus the smallest change of a logit.
    """
    n = n_classes * n_features
    return _shrink(n, 4.0 * norm_bound * radius * rounds, 0.0) + _smoothing(rounds, smoothing)


@_theorem(
    source=_SOURCE + " (variant proved here for the quadrature)",
    assumes=r"$d = 1$, $K = 2$, Gauss-Legendre nodes on the row difference in $[-2 B, 2 B]$, $\|x\| \le R$, $\mu \in [0, 1/2]$",
    printed=_PRINTED,
)
def aggregating_quadrature(
    rounds: float, norm_bound: float, radius: float, heaviest: float, smoothing: float = 0.0
) -> float:
    r"""Return the regret bound of a mixture over quadrature nodes with weights of at most w. It is
    :math:`-T \ln(1 - \mu)` plus the minimum over h of :math:`-\ln(h - 2 w) + 4 B R T h`.

    The argument: the weight of the nodes below a point and the length of the interval below it interlace (Chebyshev,
    Markov, Stieltjes). Shrink the interval :math:`[-2 B, 2 B]` towards :math:`\theta^*` by the factor h: the nodes
    inside it therefore have a total weight of at least :math:`h - 2 w`.
    """
    return _shrink(1, 4.0 * norm_bound * radius * rounds, 2.0 * heaviest) + _smoothing(rounds, smoothing)


@_theorem(
    source=_SOURCE + " (variant proved here for the quadrature)",
    assumes="as aggregating_quadrature, with enough nodes for an integration error of at most 1/2",
    printed=_PRINTED,
)
def aggregating_fine_quadrature(
    rounds: float, norm_bound: float, radius: float, nodes: int, smoothing: float = 0.0
) -> float:
    r"""Return the regret bound of the mixture over N Gauss-Legendre nodes. It is
    :math:`1 + \ln(4 B R T) - \ln(1 - \delta) - T \ln(1 - \mu)`.

    The first two terms are those of `aggregating` in one dimension. :math:`\delta` is `quadrature_error`, which
    decreases like :math:`e^{-N^2 / (T (B R + B^2 R^2/2))}`. The result is NaN if :math:`\delta` is above 1/2, because
    there are too few nodes; `aggregating_quadrature` holds in that case.
    """
    error = quadrature_error(rounds, norm_bound, radius, nodes)
    if not error <= 0.5:
        return math.nan
    return _shrink(1, 4.0 * norm_bound * radius * rounds, 0.0) - math.log1p(-error) + _smoothing(rounds, smoothing)


@within(beyond=math.inf)
def quadrature_error(rounds: float, norm_bound: float, radius: float, nodes: int) -> float:
    r"""Return a bound on the relative error of the mean of :math:`e^{-L(\theta)}` over :math:`[-2 B, 2 B]` from N
    Gauss-Legendre nodes.

    L is the loss of T rounds. Let :math:`\theta = 2 B u` with u in the ellipse with foci -1 and 1 and half axes
    :math:`\cosh s`, :math:`\sinh s`. There :math:`|\mathrm{sigmoid}|` is at most its value at the real part divided by
    :math:`\cos(B R \sinh s)`, and the real part leaves [-1, 1] by at most :math:`\cosh s - 1`. The integrand on the
    ellipse is therefore at most a factor M times its maximum on [-1, 1]. Its Chebyshev series of degree :math:`2N - 1`
    has an error of at most :math:`2 M e^{-s (2N-1)}/(e^s - 1)` times the maximum. The rule and the mean of the
    integrand each differ from those of the series by at most that error, and the mean is at least
    :math:`e^{-(1 + \ln(4 B R T))}` times the maximum. The bound holds for any s.
    """
    T, b = rounds, norm_bound * radius
    if T == 0.0:
        return 0.0
    s = min(nodes / (T * (b + 0.5 * b * b)), math.asinh(1.0 / b), 5.0)
    # cosh s - 1 and ln cos(b sinh s) without cancellation, because s is small where T is large
    log_M = 4.0 * b * T * math.sinh(0.5 * s) ** 2 - T * math.log1p(-2.0 * math.sin(0.5 * b * math.sinh(s)) ** 2)
    log_error = math.log(4.0 / math.expm1(s)) + log_M - s * (2 * nodes - 1) + _shrink(1, 4.0 * b * T, 0.0)
    return math.exp(log_error)


def quadrature_nodes(rounds: float, norm_bound: float, radius: float, error: float = 1e-6) -> int:
    """Return a number of nodes, at least 100, with a `quadrature_error` below `error`. It exceeds the smallest such
    number by at most 10 %.

    Raises
    ------
    ValueError
        An argument is outside its range, or more than :math:`10^{15}` nodes are needed.
    """
    nodes = 100
    while not quadrature_error(rounds, norm_bound, radius, nodes) <= error:
        nodes = math.ceil(1.1 * nodes)
        if nodes > MOST_NODES:
            raise ValueError(
                f"no number of nodes up to {MOST_NODES:.0e} makes the quadrature error smaller than {error:g} at rounds = "
                f"{rounds:g}, norm_bound = {norm_bound:g}, radius = {radius:g}"
            )
    return nodes


@_theorem(
    source="Vovk 1990; Cesa-Bianchi and Lugosi, Prediction, Learning, and Games, Section 3.5",
    assumes=r"comparators are the members of a finite class, uniform prior, logarithmic loss, $\mu \in [0, 1/2]$",
)
def aggregating_net(rounds: float, members: int, smoothing: float = 0.0) -> float:
    r"""Return the regret bound of N mixed members against the best of them: :math:`\ln N - T \ln(1 - \mu)`."""
    return math.log(members) + _smoothing(rounds, smoothing)


def _shrink(n: int, slope: float, lost: float) -> float:
    r"""Return the least :math:`n \ln(1/(h - \text{lost})) + \text{slope}\, h` over h in (lost, 1]."""
    kept = (
        min(1.0 - lost, n / slope) if slope > 0.0 else 1.0 - lost
    )  # h - lost, computed without cancellation for a large slope
    return -n * math.log(kept) + slope * (lost + kept) if kept > 0.0 else math.inf


def _smoothing(rounds: float, smoothing: float) -> float:
    return -rounds * math.log1p(-smoothing)
