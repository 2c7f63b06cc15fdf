r"""Decoding in kernels: six rules that turn a forecast into the distribution of the action.

s is the forecast, a distribution over K classes; :math:`s^* = s_{j^*}` is its largest probability, and :math:`j^*` is
the first class with this probability.

* sample: the action is drawn from s.
* half-log: :math:`q_k = \max(0, 1 + (1/2) \log_2 s_k)` for :math:`k \ne j^*`, and :math:`j^*` has the remaining mass.
  At :math:`K = 2`, q is at an edge of the band of predictions that Cesa-Bianchi, Freund, Haussler, Helmbold, Schapire
  and Warmuth admit as :math:`\beta \to 0` (How to use expert advice, JACM 1997).
* sparsemax: :math:`q_k = \max(0, 1 + (1/2) \log_2 s_k + v)`, with :math:`v \ge 0` such that the sum is 1. It spreads
  the remaining mass of half-log evenly: q is the point of the simplex nearest to :math:`(1/2) \log_2 s` (Martins and
  Astudillo, ICML 2016).
* randomized: the action is drawn from s with probability :math:`r = \min(1, 2 (1 - s^*))`, and is :math:`j^*`
  otherwise.
* gap: the action is uniform with probability :math:`a = \min(1, -\log_2 s^*)`, and is :math:`j^*` otherwise.
* thresholded: the action is uniform with probability a, and is :math:`j^*` otherwise; :math:`a = 1 - s^*` if
  :math:`s^* \ge 1/2`, and :math:`a = 1` if not.

With each rule the probability of a mistake is at most :math:`(1 - c) (-\log_2 s_y)` for every label y. The module
`banditlab.bounds.decoding` lists the constants c.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from banditlab.numerics.argmax import argmax
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.softmax import softmax_into

Decoding = Literal["sample", "half-log", "sparsemax", "randomized", "gap", "thresholded"]
"""The rules by name, as settings spell them."""
DECODINGS: tuple[str, ...] = get_args(Decoding)
SAMPLE, HALF_LOG, SPARSEMAX, RANDOMIZED, GAP, THRESHOLDED = range(len(DECODINGS))
"""The rules in kernels: their indices in DECODINGS."""

NEARLY_ONE = 1.0 - 1e-12
"""The largest exponential is 1. Another class can have the same probability after rounding only if its exponential is
above this.
"""
SLACK = 1e-9
"""Tolerance for the sum of a forecast."""


@njit
def decoded_softmax(rule, z, q):
    r"""Write the decoded forecast :math:`\mathrm{softmax}(z)` into q (K,), for z (K,); write NaN if the softmax is
    undefined.
    """
    if rule == HALF_LOG:
        half_log_of_softmax(z, q)
    else:
        softmax_into(z, q)
        decode_forecast(rule, q)


@njit
def decode_forecast(rule, q):
    """Overwrite a forecast q (K,) with its decoding by `rule`, or with NaN if q is not a distribution."""
    if rule != SAMPLE:
        decode(rule, argmax(q, q.shape[0]), q)


@njit
def decode(rule, best, q):
    """Overwrite a forecast q (K,) with its decoding by `rule`; `best` is the index of the largest probability.

    If q is not a distribution (NaN, a negative entry, a sum other than 1), the result is NaN, or q itself for "sample",
    and the run stops with an error. No logarithm of a probability below :math:`s^*/4` is computed.
    """
    if rule == SAMPLE:
        return
    if not is_forecast(q):
        refuse(q)
    elif rule == HALF_LOG:
        half_log(best, q)
    elif rule == SPARSEMAX:
        sparsemax(best, q)
    elif rule == RANDOMIZED:
        # r s_k, plus 1 - r for the best
        r = min(1.0, 2.0 * (1.0 - q[best]))
        for k in range(q.shape[0]):
            q[k] = r * q[k]
        q[best] += 1.0 - r
    elif rule == GAP:
        greedy_share(best, min(1.0, max(0.0, -math.log2(q[best]))), q)
    elif rule == THRESHOLDED:
        greedy_share(best, 1.0 - min(1.0, q[best]) if q[best] >= 0.5 else 1.0, q)


@inline
def half_log(best, q):
    r"""Set :math:`q_k = \max(0, 1 + (1/2) \log_2 s_k)` for every class but the best, which gets the remaining mass."""
    left = 1.0
    for k in range(q.shape[0]):
        # 0 for s_k <= 1/4, so at most two other classes are above 0, and `left` is at least 1/2
        share = 1.0 + 0.5 * math.log2(q[k]) if q[k] > 0.25 and k != best else 0.0
        left -= share
        q[k] = share
    q[best] = left


@inline
def half_log_of_softmax(z, q):
    r"""Write the result of `half_log` for :math:`\mathrm{softmax}(z)` in one pass.

    Only classes with a probability above 1/4, and those that may be the largest, are divided by the sum.
    """
    top = z[0]
    for k in range(1, z.shape[0]):
        top = max(top, z[k])
    total = 0.0
    for k in range(z.shape[0]):
        q[k] = math.exp(z[k] - top)
        total += q[k]
    if math.isnan(total):  # a logit is NaN, or the largest is infinite
        refuse(q)
        return
    # The first k with the largest s_k, 1/total, which logits that differ slightly may share after rounding.
    best = 0
    while q[best] < NEARLY_ONE or q[best] / total < 1.0 / total:
        best += 1
    q[best], left = 0.0, 1.0
    for k in range(z.shape[0]):
        share = 0.0
        if (
            q[k] > 0.25 * total
        ):  # total / 4 is exact, so this is the condition of `half_log`, except for s_k rounded to 1/4, for which q_k = 0
            share = 1.0 + 0.5 * math.log2(q[k] / total)
            left -= share
        q[k] = share
    q[best] = left


@inline
def sparsemax(best, q):
    r"""Set :math:`q_k = \max(0, (1/2) \log_2(s_k/s^*) + w)`, with w in (0, 1] such that the sum is 1.

    Classes with a negative value are dropped until there are none.
    """
    K, top = q.shape[0], q[best]
    # Only classes above s*/4 can remain; for these, (1/2) log2(s_k/s*) lies in (-1, 0].
    for k in range(K):
        q[k] = 0.5 * math.log2(q[k] / top) if q[k] > 0.25 * top else -math.inf
    # Michelot's algorithm: set w so that the remaining classes sum to 1, drop those not above 0, repeat until none is dropped.
    left, before = 0, K + 1
    w = math.inf
    while left < before:
        before, left, total = (left if left > 0 else K + 1), 0, 0.0
        for k in range(K):
            if q[k] > -w:
                total += q[k]
                left += 1
            else:
                q[k] = -math.inf
        w = (1.0 - total) / left
    for k in range(K):
        q[k] = max(0.0, q[k] + w)


@inline
def greedy_share(best, a, q):
    r"""Set :math:`q = (1 - a) e_{\text{best}} + a/K`."""
    K = q.shape[0]
    for k in range(K):
        q[k] = a / K
    q[best] += 1.0 - a


@inline
def is_forecast(s):
    """Return whether s (K,) is a distribution up to rounding; NaN fails both comparisons."""
    total, signs = 0.0, True
    for k in range(s.shape[0]):
        signs &= s[k] >= 0.0
        total += s[k]
    return signs and abs(total - 1.0) <= SLACK


@inline
def refuse(q):
    """Write NaN into q, so that every loop rejects it."""
    for k in range(q.shape[0]):
        q[k] = math.nan
