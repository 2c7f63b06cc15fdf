r"""Lower bounds on the regret of every forecaster with the logistic loss, in nats: exact sums and asymptotic forms.

For contexts fixed in advance, consider the least worst-case regret of any forecaster, including improper ones. It is
the logarithm of the Shtarkov sum,

.. math::

    \min_{\text{forecaster}} \max_y \mathrm{Regret} = \ln \sum_{y_1, \dots, y_T} \max_W \prod_t P(y_t \mid x_t, W),

and the normalised maximum likelihood forecaster attains it [1]_. With orthogonal contexts the sum is a product of one
factor per context. The asymptotic forms [3]_ omit a factor :math:`1 - o(1)` and are not bounds at a given T.

References
----------
.. [1] Y. Shtarkov. Universal sequential coding of single messages. Problems of Information Transmission, 1987.
.. [2] P. Jacquet, G. Shamir, W. Szpankowski. Precise minimax regret for logistic regression with categorical feature values.
   ALT 2021.
.. [3] G. Shamir. Logistic regression regret: what's the catch? COLT 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from banditlab.bounds._theorem import within

STEEPEST = 700.0
"""Log-odds beyond which a larger box does not change the factors in floating point."""
NORMS = {"sup": (1, 4.0), "l2": (2, 2.0 * math.pi), "l1": (3, 4.0)}
"""For each norm of Theorem 3 the power q of d in its logarithm, and its constant."""
_ROUNDS = {"rounds": (2.0, 1e300)}  # more would let the products overflow


@within({"rounds": (0.0, 1e9), "n_classes": (2.0, 1e5)})
def minimax_regret(rounds: float, n_features: int, n_classes: int) -> float:
    r"""Return :math:`\sum_j \ln C(K, n_j)`, the least worst-case regret against any W for d orthogonal contexts.

    Context j occurs :math:`n_j` times, as evenly as T rounds allow.

    With :math:`n^{\underline{i}} = n (n - 1) \dots (n - i + 1)` and :math:`0^0 = 1`,

    .. math::

        C(1, n) = 1, \quad C(2, n) = \sum_{k=0}^n \binom{n}{k} (k/n)^k (1 - k/n)^{n-k}
        = \sum_{i=0}^n n^{\underline{i}}/n^i, \quad C(K + 2, n) = C(K + 1, n) + (n/K)\, C(K, n).

    As n grows, :math:`\ln C(K, n)` is :math:`((K-1)/2) \ln(n/(2 \pi)) + \ln(\pi^{K/2}/\Gamma(K/2)) + O(1/\sqrt{n})`
    [2]_. For other numbers of rounds per context, add the values of this function at :math:`d = 1`.
    """
    return _even(rounds, n_features, lambda n: _log_shtarkov(n, int(n_classes)))


@within({"rounds": (0.0, 1e5)})
def minimax_regret_on_ball(rounds: float, n_features: int, norm_bound: float, radius: float) -> float:
    r"""Return a lower bound on the worst-case regret of any forecaster against all W with :math:`\|W_k\| \le B`.

    There are two classes and d orthogonal contexts of norm R; the bound is exact at :math:`d = 1`. It is
    :math:`\sum_j \ln \sum_k \binom{n_j}{k} p_k^k (1 - p_k)^{n_j - k}`, where :math:`p_k` is the probability nearest to
    :math:`k/n_j` whose log-odds are at most :math:`b = 2 B R/\sqrt{d}` in absolute value. The ball contains the box of
    all W whose entries along the contexts are at most :math:`B/\sqrt{d}` in absolute value. In the box, all log-odds up
    to b are possible at each context.
    """
    steepest = min(STEEPEST, 2.0 * norm_bound * radius / math.sqrt(n_features))
    return _even(rounds, n_features, lambda n: _log_sum_on_box(n, steepest))


@within(_ROUNDS)
def shamir_theorem_3(
    rounds: float, n_features: int, margin_bound: float, epsilon: float, norm: Literal["sup", "l2", "l1"] = "l2"
) -> float:
    r"""Return the asymptotic lower bound :math:`(q/2)\, m \ln(e D/m)` with :math:`m = \min(d, D)`.

    It holds for two classes, :math:`\|x\|_\infty \le 1`, and a difference :math:`\theta` of the rows of at most
    `margin_bound` in the norm `norm`. A factor :math:`1 - o(1)` is omitted, so this is not a bound at a given T. D is
    the dimension above which the paper's bound does not grow. Let :math:`s = \gamma T^{1 - \epsilon}`,
    :math:`\gamma = \min(B/\ln T, \max(1, T^{1-\epsilon}/d))` and any :math:`\epsilon` in (0, 1). D is :math:`4 s/e` for
    "sup", :math:`(2 \pi s/e)^{1/2}` for "l2" and :math:`(4 s/e)^{1/3}` for "l1", with :math:`q = 1, 2, 3`.

    For :math:`d < D` the paper's logarithm has T instead of the smaller :math:`T^{1-\epsilon}` used here. The formulas
    are damaged in the available copy of the paper, but its constants are consistent: :math:`(q/2)\, d \ln(e D/d)` is
    largest at :math:`d = D`, where the paper's other case begins.

    Raises
    ------
    ValueError
        The norm is unknown.
    """
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
    power, constant = NORMS[norm]
    log_d, log_many = math.log(n_features), (1.0 - epsilon) * math.log(rounds)
    log_gamma = min(math.log(margin_bound) - math.log(math.log(rounds)), max(0.0, log_many - log_d))
    log_most = (math.log(constant) + log_gamma + log_many - 1.0) / power
    if log_d >= log_most:
        return power / 2.0 * math.exp(log_most)
    return power / 2.0 * n_features * (1.0 + log_most - log_d)


@within(_ROUNDS)
def shamir_theorem_7(rounds: float, n_features: int, n_classes: int, epsilon: float) -> float:
    r"""Return the asymptotic lower bound :math:`(d (K - 1)/2) \ln(T/(K d))`.

    It holds for K classes, :math:`\|x\|_\infty \le 1` and rows with bounded entries. A factor :math:`1 - o(1)` is
    omitted, so this is not a bound at a given T. The theorem assumes :math:`K = o((T/d)^{1-\epsilon})`; the result
    is NaN if K is not below :math:`(T/d)^{1-\epsilon}`.
    """
    each = rounds / n_features
    if not n_classes < each ** (1.0 - epsilon):
        return math.nan
    return n_features * (n_classes - 1) / 2.0 * math.log(each / n_classes)


def _even(rounds: float, n_features: int, log_sum: Callable[[int], float]) -> float:
    """Return the sum of `log_sum(n_j)` over d contexts, with rounds split into n_1, ..., n_d as evenly as possible."""
    each, more = divmod(int(rounds), int(n_features))
    return more * log_sum(each + 1) + (int(n_features) - more) * log_sum(each)


def _log_shtarkov(n: int, n_classes: int) -> float:
    """Return ln C(K, n) as a sum of logarithms of the ratios C(k + 1, n)/C(k, n), because C itself may overflow."""
    term = ratio = 1.0
    for i in range(n):
        term *= (n - i) / n
        ratio += term
        if term < 1e-17:  # the remaining terms do not change the sum in floating point
            break
    total = 0.0
    for k in range(1, n_classes):
        total += math.log(ratio)
        ratio = 1.0 + n / (k * ratio)
    return total


def _log_sum_on_box(n: int, steepest: float) -> float:
    """Return the log of the Shtarkov sum at one context, with log-odds of at most `steepest` in absolute value."""
    total = 0.0
    for k in range(n + 1):
        odds = math.log(k / (n - k)) if 0 < k < n else math.copysign(STEEPEST, 2 * k - n)
        odds = min(steepest, max(-steepest, odds))
        ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        total += math.exp(ways - k * math.log1p(math.exp(-odds)) - (n - k) * math.log1p(math.exp(odds)))
    return max(0.0, math.log(total))  # the sum is at least 1; rounding may bring it below 1
