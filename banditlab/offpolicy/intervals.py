r"""Lower confidence bounds on the mean of weighted rewards, by betting (see docs/theory/off-policy.md).

The input is one term :math:`x_i \ge -k` per round, without an upper bound. The conditional mean of :math:`x_i` given
the past is at most the value of the target policy in round i. `FixedBound` and `RunningBound` hold for weights of any
size, and do not use the largest weight.

References
----------
I. Waudby-Smith, A. Ramdas. Estimating means of bounded random variables by betting. JRSS B 86, 2024.

I. Waudby-Smith, L. Wu, A. Ramdas, N. Karampatziakis, P. Mineiro. Anytime-valid off-policy inference for contextual bandits.
ACM/IMS Journal of Data Science 1, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from banditlab.offpolicy.log import Floats

LARGEST = 0.5
"""The largest fraction of the wealth that a bet may lose."""
BETS = LARGEST * 2.5 ** -np.arange(12.0)
r"""The bets of a mixture for :math:`k = 0`."""
FIRST = 10.0
"""Number of terms of variance 1 with which the estimate of the variance begins."""
SMALLEST = 1e-12
"""Precision of the bounds; a bound below this is 0."""


def earlier_means(x: Floats, rounds: int = 0, total: float = 0.0) -> Floats:
    """Return, for each entry of x (n,), the mean of 1/2 and all earlier terms; `rounds` terms with the sum `total`
    precede x.
    """
    return (0.5 + total + np.cumsum(x) - x) / (rounds + 1.0 + np.arange(len(x)))


class FixedBound:
    r"""A lower confidence bound on a constant mean, valid at one number of rounds that is fixed in advance.

    It is the least m at which the wealth :math:`\prod_i (1 + \min(\lambda_i, c/(m + k)) (x_i - m))` is at most
    :math:`1/\alpha`, with :math:`c = 1/2` and bets :math:`\lambda_i` from the variance of earlier terms. It stores
    16 bytes per round.

    Parameters
    ----------
    depth
        k: no term is below -k.
    """

    def __init__(self, depth: float = 0.0) -> None:
        self.depth = depth
        self._rounds, self._total, self._squares = 0, 0.0, 0.0
        self._parts: list[tuple[Floats, Floats]] = []

    def add(self, x: Floats) -> None:
        """Add terms (n,) in the order of their rounds."""
        errors = (x - earlier_means(x, self._rounds, self._total)) ** 2
        squares = self._squares + np.cumsum(errors) - errors
        rounds = self._rounds + np.arange(len(x))
        self._parts.append((x, np.sqrt((FIRST + rounds) / (FIRST + squares))))
        self._rounds += len(x)
        self._total += x.sum()
        self._squares += errors.sum()

    def bound(self, alpha: float) -> float:
        r"""Return the bound, in [0, 1], which is above the mean with probability at most :math:`\alpha`."""
        scale = math.sqrt(2.0 * math.log(1.0 / alpha) / max(self._rounds, 1))

        def wealth(m: float) -> float:
            most = LARGEST / (m + self.depth)
            bets = (np.minimum(scale * part, most) * (x - m) for x, part in self._parts)  # (6)
            return float(sum(np.log1p(bet).sum() for bet in bets))  # (5)

        return least(wealth, alpha)


class RunningBound:
    r"""A lower confidence bound on the average of the conditional means so far, valid in all rounds simultaneously.

    The conditional means may change. With a forecast :math:`g_i` in [0, 1] from earlier terms, the bound is the least m
    at which the wealth :math:`\sum_j \frac{1}{J} \prod_i (1 + \lambda_j (x_i - g_i)) e^{-\lambda_j (m - g_i)}` is at
    most :math:`1/\alpha`. It stores J + 3 numbers, whatever the number of rounds.

    Parameters
    ----------
    depth
        k: no term is below -k.
    """

    def __init__(self, depth: float = 0.0) -> None:
        self.bets = BETS / (1.0 + depth)
        self._rounds, self._total, self._guesses = 0, 0.0, 0.0
        self._logs = np.zeros(len(BETS))

    def add(self, x: Floats) -> None:
        """Add terms (n,) in the order of their rounds."""
        guesses = np.clip(earlier_means(x, self._rounds, self._total), 0.0, 1.0)
        self._logs += [np.log1p(bet * (x - guesses)).sum() for bet in self.bets]
        self._rounds += len(x)
        self._total += x.sum()
        self._guesses += guesses.sum()

    def wealth(self, m: float) -> float:
        """Return the log-wealth of bets against the hypothesis that the mean is m."""
        logs = self._logs - self.bets * (self._rounds * m - self._guesses)
        return float(logsumexp(logs)) - math.log(len(logs))  # (8)

    def bound(self, alpha: float) -> float:
        r"""Return the bound, in [0, 1]; the probability that it exceeds the average in some round is at most
        :math:`\alpha`.
        """
        return least(self.wealth, alpha)


def least(wealth: Callable[[float], float], alpha: float) -> float:
    r"""Return the least m in [0, 1] at which the log-wealth, a decreasing function of m, is at most
    :math:`\ln(1/\alpha)`; 1 if there is none.
    """
    enough = math.log(1.0 / alpha)
    if wealth(SMALLEST) <= enough:
        return 0.0
    if wealth(1.0) > enough:
        return 1.0
    return float(brentq(lambda m: wealth(m) - enough, SMALLEST, 1.0, xtol=SMALLEST))
