"""The value of a target policy from another policy's log: estimators, diagnostics, and a proved confidence interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from banditlab.errors import UsageError
from banditlab.offpolicy.intervals import FixedBound, RunningBound
from banditlab.offpolicy.log import TOLERANCE, Floats, Log, Rows, read, refuse
from banditlab.validation import one_of, probability

DEPTH = 2.0
"""k: the doubly robust terms are at least -k."""
BOUNDS: dict[str, type[FixedBound | RunningBound]] = {"fixed": FixedBound, "learning": RunningBound}
COVERS = {
    "fixed": "rounds are independent and identically distributed, the logger does not learn, and the interval is computed "
    "once, for all rounds of the log",
    "learning": "the value is the mean over rounds of the expected reward of the target policy given the past; the interval "
    "holds after all numbers of rounds at once",
}
SUPPORTED = "every logged action had a positive propensity in every round; all figures except the interval need this"
EARLIER = "the target policy and the predictions in a round were not trained on that round or on later ones"
EXACT = {
    False: "propensities are those with which the actions were drawn",
    True: "propensities are estimated and taken for exact",
}


@dataclass(frozen=True)
class Evaluation:
    """Estimates of a target policy's value, which is its expected reward per round, in [0, 1].

    Attributes
    ----------
    value
        The recommended estimate, in [low, high]: doubly robust if the log has predictions, otherwise SNIPS. NaN if
        there is no estimate; `reason` then says why.
    low, high
        The interval for the value at the requested level, valid even if some actions have no support. NaN if
        propensities are estimated, or if the lower bound is above the upper one (see `reason`).
    least, most
        The estimated value if the rewards of all actions without support were 0, and if they were 1. Both ignore the
        sampling error. They are equal if all actions have support.
    recommended
        The estimator of `value`, `least` and `most`: "doubly robust"; "snips"; or "ips" if the log has no predictions
        and some actions have no support.
    reason
        Why `value` or the interval is NaN; empty if neither is.
    assumptions
        The assumptions of the interval and the estimators, one sentence each.
    ips, snips, direct, doubly_robust
        The estimates of equations (1) to (4) in docs/theory/off-policy.md. `direct` and `doubly_robust` are NaN without
        predictions; `snips` is NaN if all weights are 0. If actions have no support, `direct` and `doubly_robust`
        depend on the predictions for these actions.
    standard_error
        Standard error of SNIPS, or of the doubly robust estimate if the log has predictions. The interval of ±1.96
        standard errors misses the value too often if large weights are rare.
    rounds
        The number n of logged rounds.
    effective_sample_size
        Squared sum of the weights over the sum of their squares.
    largest_weight, mean_weight
        The largest and the mean weight of the logged actions. The expectation of the mean is the share of the target
        policy's decisions with support.
    unsupported
        Expected share of the target policy's decisions for actions of propensity 0, which the logger could not choose.
        If propensities are estimated, or known for logged actions only, decisions for actions that were never logged
        count as well.
    """

    value: float
    low: float
    high: float
    least: float
    most: float
    recommended: str
    reason: str
    assumptions: tuple[str, ...]
    ips: float
    snips: float
    direct: float
    doubly_robust: float
    standard_error: float
    rounds: int
    effective_sample_size: float
    largest_weight: float
    mean_weight: float
    unsupported: float


def evaluate(
    log: Log | Iterable[Log],
    *,
    logger: Literal["fixed", "learning"] = "fixed",
    estimated: bool = False,
    level: float = 0.95,
) -> Evaluation:
    r"""Estimate the value of a target policy from a log, with an interval.

    Parameters
    ----------
    log
        The log, or its parts in the order of rounds, each of which is read once. With a fixed logger, 32 bytes per
        round are stored in addition to the part being read; with a learning logger, none.
    logger
        "fixed" if the logger's probabilities in a round depend on its context only; "learning" if they also depend on
        earlier rounds. The interval of "learning" is wider and holds for both.
    estimated
        Whether the propensities are estimates (`estimated_propensities`).
    level
        Probability with which the interval contains the value, in (0, 1).

    Returns
    -------
    Evaluation
        The estimates, the interval and the diagnostics.

    Raises
    ------
    UsageError
        The log has faults; one error lists all of them, each with the number of rows.

    Notes ----- With weights :math:`w_i = \pi_i(a_i)/p_i` and predictions :math:`q_i(a)` (proofs:
    docs/theory/off-policy.md),

    .. math::

        \text{IPS} = \frac1n \sum w_i r_i, \quad \text{SNIPS} = \frac{\sum w_i r_i}{\sum w_i}, \quad
        \text{DM} = \frac1n \sum_i \sum_a \pi_i(a) q_i(a), \quad
        \text{DR} = \text{DM} + \frac1n \sum w_i (r_i - q_i(a_i)).
    """
    one_of("logger", logger, tuple(BOUNDS))
    if not 0.0 < probability("level", level) < 1.0:
        raise UsageError(f"level must lie strictly between 0 and 1, got {level:g}")
    sums, faults = None, Counter[str]()
    for part in [log] if isinstance(log, Log) or not isinstance(log, Iterable) else log:
        if not isinstance(part, Log):
            raise UsageError(f"log must be a Log or an iterable of Logs, got a {type(part).__name__}")
        rows, found = read(part)
        faults += found
        if rows is None:
            continue
        sums = sums or _Sums(logger, rows)
        if kind_of(rows) != sums.kind:
            faults["parts with other actions or fields than the first part"] += 1
        elif not faults:
            sums.add(rows)
    refuse(faults)
    if sums is None or not sums.rounds:
        raise UsageError("the log has no rounds")
    return sums.evaluation(estimated, 1.0 - level)


def kind_of(rows: Rows) -> tuple[int, bool, bool]:
    """Return K, whether there are predictions, and whether the propensities of all actions are known."""
    return rows.target.shape[1], rows.predictions is not None, rows.propensities is not None


class _Sums:
    """Sums over the rounds read so far, and the lower bounds for the value and for one minus the value."""

    def __init__(self, logger: str, rows: Rows) -> None:
        self.logger, self.kind = logger, kind_of(rows)
        n_actions, predicted, whole = self.kind
        self.low, self.high = (BOUNDS[logger](DEPTH if predicted and whole else 0.0) for _ in range(2))
        self.rounds, self.largest, self.weights, self.robust = 0, 0.0, np.zeros(4), np.zeros(2)
        self.logged = np.zeros(n_actions, np.int64)
        self.targets, self.predicted = np.zeros((2, n_actions)), np.zeros((2, n_actions))

    def add(self, rows: Rows) -> None:
        """Add the rounds of one part of the log."""
        r, own = rows.rewards, (np.arange(len(rows.actions)), rows.actions)
        w = rows.target[own] / rows.chosen
        self.rounds += len(w)
        self.largest = max(self.largest, float(w.max(initial=0.0)))
        self.weights += [w.sum(), (w * r).sum(), (w**2 * r).sum(), (w**2 * (1.0 - r)).sum()]
        self.logged += np.bincount(rows.actions, minlength=len(self.logged))
        impossible = np.zeros(1) if rows.propensities is None else rows.propensities == 0.0
        self.targets += [rows.target.sum(axis=0), (rows.target * impossible).sum(axis=0)]
        low, high = w * r, w * (1.0 - r)
        if rows.predictions is not None:
            expected = rows.target * rows.predictions
            terms = expected.sum(axis=1) + w * (r - rows.predictions[own])  # (4)
            self.robust += [terms.sum(), (terms**2).sum()]
            self.predicted += [expected.sum(axis=0), (expected * impossible).sum(axis=0)]
            low, high = low + _shift(rows, expected), high + _shift(rows, rows.target - expected)
        self.low.add(low)
        self.high.add(high)

    def evaluation(self, estimated: bool, alpha: float) -> Evaluation:
        """Return the evaluation, with the interval at the level 1 - alpha."""
        _, predicted, whole = self.kind
        w, wr, hits, misses = self.weights.tolist()
        never = (self.logged == 0) & (estimated or not whole)
        unsupported = float(np.where(never, self.targets[0], self.targets[1]).sum()) / self.rounds
        ips, snips = wr / self.rounds, wr / w if w else math.nan  # (1), (2)
        direct = float(self.predicted[0].sum()) / self.rounds  # (3)
        robust, square = (self.robust / self.rounds).tolist()  # (4)
        variance = square - robust**2
        name = "doubly robust"
        inner = robust - np.where(never, self.predicted[0], self.predicted[1]).sum() / self.rounds
        if not predicted:
            direct = robust = math.nan
            name, inner = ("ips", ips) if unsupported > TOLERANCE else ("snips", snips)
            variance = (hits * (1.0 - snips) ** 2 + misses * snips**2) * self.rounds / w**2 if w else math.nan
        least = float(np.clip(inner, 0.0, 1.0 - unsupported))
        low, high = self.low.bound(alpha / 2.0), 1.0 - self.high.bound(alpha / 2.0)
        reasons = (  # why there is no interval, and three reasons why there is no value
            "no interval: no theorem covers estimated propensities" * estimated,
            "no interval and no value: the lower bound is above the upper one, which has a chance of at most "
            f"{alpha:.2g} where the assumptions hold" * (not estimated and low > high),
            f"no value: {unsupported:.2%} of the target policy's decisions have no support, see least and most"
            * (unsupported > TOLERANCE),
            "no value: no logged action is one that the target policy would choose" * (not w),
        )
        interval = not estimated and low <= high
        return Evaluation(
            value=math.nan if any(reasons[1:]) else float(np.clip(least, low, high) if interval else least),
            low=low if interval else math.nan,
            high=high if interval else math.nan,
            least=least,
            most=least + unsupported,
            recommended=name,
            reason="; ".join(filter(None, reasons)),
            assumptions=(COVERS[self.logger], EXACT[estimated], *[SUPPORTED] * (not whole), EARLIER),
            ips=ips,
            snips=snips,
            direct=direct,
            doubly_robust=robust,
            standard_error=math.sqrt(max(variance, 0.0) / self.rounds),
            rounds=self.rounds,
            effective_sample_size=w**2 / (hits + misses) if w else 0.0,
            largest_weight=self.largest,
            mean_weight=w / self.rounds,
            unsupported=unsupported,
        )


def _shift(rows: Rows, expected: Floats) -> Floats:
    """Return the terms (n,) that a reward model adds to the weighted rewards: at least -`DEPTH`, of expectation 0.

    expected (n, K) are the target's probabilities times the model's predictions.
    """
    if rows.propensities is None:
        return np.zeros(1)
    cut = np.minimum(expected, DEPTH * rows.propensities)
    return cut.sum(axis=1) - cut[np.arange(len(cut)), rows.actions] / rows.chosen  # (7)
