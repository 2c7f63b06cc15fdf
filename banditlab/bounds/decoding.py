r"""Bounds on the mistakes of decoding rules in terms of the forecast's log loss, and of the agent `exploration` with
these rules.

A rule turns a forecast s into the distribution q of the action. Its constant c is the largest for which, for every s
and y,

.. math::

    P(\text{mistake}) = 1 - q_y \le (1 - c) (-\log_2 s_y).

The rules, with :math:`1 - c` and the mistakes per nat, :math:`(1 - c)/\ln 2`:

* sample: :math:`\ln 2 = 0.6932`, 1;
* half-log: 1/2, 0.7213, the smallest possible value;
* sparsemax: 1/2, 0.7213;
* randomized: 0.517594, 0.7467;
* gap: :math:`1 - 1/K`, :math:`1.4427 (1 - 1/K)`;
* thresholded: :math:`1 - 1/(2K)`, :math:`1.4427 (1 - 1/(2K))`.

Half-log gives each class :math:`q_k = \max(0, 1 + (1/2) \log_2 s_k)`, and the remaining mass to :math:`\arg\max s`. The
probability of a mistake is at most the base-4 log loss; for a base above 4 no rule has this property. Sparsemax spreads
the remaining mass evenly. Proofs of the table and of every consequence: docs/theory/half-log.md.

At :math:`K = 2`, with r the forecast of class 1, the condition above at :math:`c = 1/2` is
:math:`1 + (1/2) \log_2 r \le q_1 \le -(1/2) \log_2(1 - r)`: the interval of predictions that N. Cesa-Bianchi, Y.
Freund, D. Haussler, D. P. Helmbold, R. E. Schapire and M. K. Warmuth admit as :math:`\beta \to 0` (How to use expert
advice, JACM 44(3), 1997). Half-log is at an end of this interval, and sparsemax is in its middle. For the best action,
M. E. Hellman and J. Raviv bound the probability of a mistake under :math:`y \sim s` by :math:`H(s)/2`, in bits
(Probability of error, equivocation, and the Chernoff bound, IEEE Trans. IT 16(4), 1970). The case :math:`K > 2`, and
the consequences with one bit, are new.
"""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import theorem, within
from banditlab.bounds.exploration import exploration, exploration_theorem_9, exploration_well_specified

OURS = "ours, unpublished: half-log (K = 2: Cesa-Bianchi et al., JACM 44(3), 1997; docs/theory/half-log.md)"
RANDOMIZED = 0.482406
r"""c of the randomised decoding, rounded down: :math:`1 - c` is the largest :math:`(1 - 2 p^2)/(-\log_2 p)`, 0.5175933
at :math:`p = 0.43207`.
"""
_MULTIPLE = (
    r"$\mathbb{E}[M]$ is at most this plus the comparator's loss in nats times `mistakes_per_nat` (with half-log, "
    "its base-4 log loss)"
)
_ADVERSARY = "oblivious: as in `exploration`, the comparator is fixed in advance"
_theorem = partial(theorem, unit="0.5 bits", adversary=_ADVERSARY)


@within()
def decoding_constant(decoding: str, n_classes: float) -> float:
    r"""Return c with :math:`P(\text{mistake}) \le (1 - c) (-\log_2 s_y)` for every forecast s and label y.

    Returns NaN for an unknown rule.
    """
    constants = {
        "sample": 1.0 - math.log(2.0),
        "half-log": 0.5,
        "sparsemax": 0.5,
        "randomized": RANDOMIZED,
        "gap": 1.0 / n_classes,
        "thresholded": 0.5 / n_classes,
    }
    return constants.get(decoding, math.nan)


@within()
def mistakes_per_nat(decoding: str, n_classes: float) -> float:
    r"""Return :math:`(1 - c)/\ln 2`, the largest number of mistakes per nat: 1 for "sample", 0.7213 for "half-log"."""
    return 1.0 if decoding == "sample" else (1.0 - decoding_constant(decoding, n_classes)) / math.log(2.0)


def mistakes_unit(decoding: str, n_classes: int) -> str:
    """Return the unit of the comparator's loss in theorems on a decoded forecast: "nats", or "0.5 bits" for "half-log"."""
    return "nats" if decoding == "sample" else f"{1.0 - decoding_constant(decoding, n_classes)!r} bits"


@_theorem(
    source=OURS,
    assumes=f"regret bounds the forecaster's regret in nats, improper ones included; label revealed; {_MULTIPLE}",
    adversary="adaptive: the lemma holds in each round, given the past; forecasts depend on the labels, not on draws",
    printed="factor 1 instead of 0.7213, for a draw from the forecast",
)
def decoded_forecast(regret: float, n_classes: int, decoding: str = "half-log") -> float:
    """Return 0.7213 Reg, a bound on a decoded forecaster's expected mistakes minus 0.7213 times the comparator's loss
    in nats.

    (The constant is that of half-log.) In each round the probability of a mistake is at most `mistakes_per_nat` times
    the forecast's log loss. The sum of those losses is at most the comparator's plus Reg.
    """
    return mistakes_per_nat(decoding, n_classes) * regret


@_theorem(
    source=OURS + ", for Agarwal, Kale and Zimmert, ALT 2022, Algorithm 2",
    assumes=f"regret(n) bounds the forecaster's regret after n updates in nats, concave in n; {_MULTIPLE}",
    printed="not in the paper; `exploration` is the theorem for a draw",
)
def decoded_exploration(
    rounds: float, n_classes: int, gamma: float, regret: float, decoding: str = "half-log"
) -> float:
    r"""Return a bound on the expected mistakes of `exploration` with half-log decoding minus 0.7213 times the
    comparator's loss in nats. It is :math:`\gamma (1 - 1/K) T + (1 - \gamma) 0.7213 (K/\gamma)\, \mathrm{Reg}`.

    `regret` is the forecaster's regret bound after :math:`\gamma T / K` updates. The proof is that of `exploration`,
    with :math:`0.7213 (-\ln s_y)` instead of :math:`-\ln p_y` in the rounds that do not explore.
    """
    return exploration(rounds, n_classes, gamma, mistakes_per_nat(decoding, n_classes) * regret)


@_theorem(
    source=OURS + ", for Agarwal, Kale and Zimmert, ALT 2022, Algorithm 2",
    assumes=r"$\gamma = \min(1, \sqrt{0.7213 K\, \mathrm{Reg}(T)/T})$; " + _MULTIPLE,
    printed="not in the paper; `exploration_theorem_9` is the theorem for a draw",
)
def decoded_exploration_tuned(rounds: float, n_classes: int, regret: float, decoding: str = "half-log") -> float:
    r"""Return the bound of `decoded_exploration` at its best :math:`\gamma`. It is
    :math:`1.699 \sqrt{K T\, \mathrm{Reg}(T)}`, or T if that is less.
    """
    return exploration_theorem_9(rounds, n_classes, mistakes_per_nat(decoding, n_classes) * regret)


@_theorem(
    source=OURS + ", rates that decrease",
    assumes=r"$y_t \sim \mathrm{softmax}(U x_t)$, any contexts; $\gamma_t$ does not increase; `regret` is concave; "
    + _MULTIPLE,
    printed="not there",
)
def decoded_exploration_well_specified(
    n_classes: int, total_gamma: float, last_gamma: float, regret: float, decoding: str = "half-log"
) -> float:
    r"""Return a bound on the expected mistakes minus 0.7213 times U's loss, for labels drawn from the model U. It is
    :math:`(1 - 1/K) \sum \gamma_t + (1 - \gamma_T) 0.7213 (K/\gamma_T)\, \mathrm{Reg}`, by the argument of
    `exploration_well_specified`.

    At :math:`\gamma_t = \min(1, \sqrt{0.7213 K\, \mathrm{Reg}(t)/t})` it is at most
    :math:`3 \sqrt{0.7213 K T\, \mathrm{Reg}(T)} = 2.548 \sqrt{K T\, \mathrm{Reg}(T)}`.
    """
    factor = mistakes_per_nat(decoding, n_classes)
    return exploration_well_specified(n_classes, total_gamma, last_gamma, factor * regret)
