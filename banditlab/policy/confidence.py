r"""Anytime-valid intervals, which hold at all times simultaneously, so monitoring may stop at any time.

Let :math:`X_i` in [0, 1] have the conditional mean :math:`\mu_i` given the past; it may change with i. Let :math:`G_i`
in [0, 1] be any predictable forecast of :math:`X_i` and :math:`V_t = \sum_{i \le t} (X_i - G_i)^2`. With probability at
least :math:`1 - 2 \alpha`, for all t simultaneously (Theorem 4 of Howard et al., see below; its equation 10 with
:math:`c = 1`),

.. math::

    |\text{mean of } X_1, \dots, X_t - \text{mean of } \mu_1, \dots, \mu_t| < u(V_t)/t,

.. math::

    u(v) = \sqrt{k_1^2 v l + k_2^2 l^2} + k_2 l, \qquad l = \ln h(\log_\eta(v/m)) + \ln(1/\alpha), \quad v \ge m,

Because :math:`X_i` is sub-Gaussian with variance proxy 1/4, it also holds with probability at least :math:`1 - \alpha`,
for all t simultaneously (their equation 14), that

.. math::

    |\text{mean of } X_1, \dots, X_t - \text{mean of } \mu_1, \dots, \mu_t|
    < \sqrt{(v + \rho) \ln((v + \rho)/(\rho \alpha^2))}/t, \qquad v = t/4,

with :math:`\rho = 10` here. The second interval is narrower if there are few observations. In the first interval
:math:`k_1 = (\eta^{1/4} + \eta^{-1/4})/\sqrt{2}`, :math:`k_2 = (\sqrt{\eta} + 1)/2` and
:math:`h(k) = (k + 1)^s \zeta(s)`, with :math:`\eta = 2`, :math:`s = 1.4` and :math:`m = 10`.

S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon. Time-uniform, nonparametric, nonasymptotic confidence sequences. Annals
of Statistics 49, 2021.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from banditlab.offpolicy.intervals import earlier_means
from banditlab.offpolicy.log import Floats

LEVEL = 0.95
ETA, POWER, FIRST = 2.0, 1.4, 10.0
RHO = 10.0
ZETA = 3.105548
r""":math:`\zeta(1.4) = \sum_k k^{-1.4}`, rounded up."""
K1 = (ETA**0.25 + ETA**-0.25) / math.sqrt(2.0)
K2 = (math.sqrt(ETA) + 1.0) / 2.0


def boundary(v: ArrayLike, alpha: ArrayLike) -> Floats:
    r"""Return :math:`u(v)`; the probability that the sum of deviations ever exceeds it is at most :math:`\alpha`."""
    v = np.maximum(np.asarray(v, dtype=np.float64), FIRST)
    l = POWER * np.log(np.log(v / FIRST) / math.log(ETA) + 1.0) + math.log(ZETA) - np.log(alpha)
    return np.asarray(np.sqrt(K1**2 * v * l + (K2 * l) ** 2) + K2 * l)  # (10)


def variances(x: Floats) -> Floats:
    r"""Return :math:`V_0, \dots, V_n` (n + 1,) of x (n,); the forecast :math:`G_i` is the mean of 1/2 and the earlier
    values.
    """
    return np.concatenate([[0.0], np.cumsum((x - earlier_means(x)) ** 2)])


def sequence(x: ArrayLike, level: float = LEVEL) -> tuple[Floats, Floats, Floats]:
    """Return mean, low and high after each entry of x (n,) in [0, 1]; the intervals hold at all n times simultaneously.

    Each interval is the intersection of the two intervals above, with error probability (1 - level)/2 each.
    """
    x = np.asarray(x, dtype=np.float64)
    t = np.arange(1.0, len(x) + 1.0)
    mean = np.cumsum(x) / t
    alpha = (1.0 - level) / 2.0
    v = t / 4.0 + RHO
    half = np.minimum(boundary(variances(x)[1:], alpha / 2.0), np.sqrt(v * np.log(v / (RHO * alpha**2)))) / t
    return mean, np.maximum(mean - half, 0.0), np.minimum(mean + half, 1.0)


BLOCK = 32
"""The number of observations between two restarts of the test for a rise."""


def rise(x: ArrayLike, level: float = LEVEL) -> int | None:
    """Return the index in x (n,) after which the mean is significantly above the mean before it, or None.

    At this index the interval for the later mean lies furthest above the interval for the earlier mean. If the
    conditional mean never rises above its average so far (it may fall, as a policy improves), the probability that an
    index is returned for any n is at most 1 - level. Half of this error probability is for the sequence from the start.
    The other half is divided among sequences that restart at every 32nd entry, in proportion to :math:`1/k^2`.
    (Restarts: S. Shekhar, A. Ramdas. Reducing sequential change detection to sequential estimation. ICML 2024.)
    """
    x = np.asarray(x, dtype=np.float64)
    n = len(x)
    starts = np.arange(BLOCK, n, BLOCK)
    if not len(starts):
        return None
    sums, v = np.concatenate([[0.0], np.cumsum(x)]), variances(x)
    alpha = (1.0 - level) / 2.0
    k = starts / BLOCK
    high = (sums[starts] + boundary(v[starts], alpha)) / starts
    after = n - starts
    low = (sums[n] - sums[starts] - boundary(v[n] - v[starts], alpha * 6.0 / (math.pi**2 * k**2))) / after
    best = int(np.argmax(low - high))
    return int(starts[best]) if low[best] > high[best] else None
