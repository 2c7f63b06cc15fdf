"""Estimators against plain loops and exact expectations, support, faults."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from banditlab.errors import UsageError
from banditlab.offpolicy import Evaluation, Log, evaluate

NO_SUPPORT = "of the target policy's decisions have no support"


def random_log(seed: int, *, whole: bool, predicted: bool) -> Log:
    """Return a log of up to 60 rounds and 6 actions, in which every action has support."""
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(8, 60)), int(rng.integers(2, 7))
    p, target = rng.dirichlet(np.ones(K), n), rng.dirichlet(np.ones(K) * 0.3, n)
    actions = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
    q = rng.random((n, K)) if predicted else None
    return Log(actions, rng.integers(2, size=n), p if whole else p[np.arange(n), actions], target, q)


def by_loops(log: Log) -> dict[str, float]:
    """Return the figures by the definitions, in exact arithmetic."""
    a, r, p, target, q = log
    w, wr, direct, robust = [], [], [], []
    for i in range(len(a)):  # type: ignore[arg-type]
        k = a[i]  # type: ignore[index]
        own = p[i] if np.ndim(p[i]) == 0 else p[i][k]  # type: ignore[index]
        w.append(Fraction(float(target[i][k])) / Fraction(float(own)))  # type: ignore[index]
        wr.append(w[-1] * int(r[i]))  # type: ignore[index]
        if q is not None:
            row = [Fraction(float(x)) for x in q[i]]  # type: ignore[index]
            direct.append(sum((Fraction(float(x)) * y for x, y in zip(target[i], row, strict=True)), Fraction(0)))  # type: ignore[index]
            robust.append(direct[-1] + w[-1] * (int(r[i]) - row[k]))  # type: ignore[index]
    n, s = len(w), sum(wr) / sum(w)
    error = math.sqrt(sum(x**2 * (int(y) - s) ** 2 for x, y in zip(w, r, strict=True))) / float(sum(w))  # type: ignore[arg-type]
    if q is not None:
        mean = sum(robust) / n
        error = math.sqrt(sum((x - mean) ** 2 for x in robust) / n / n)
    return {
        "ips": float(sum(wr) / n),
        "snips": float(s),
        "direct": float(sum(direct) / n) if q is not None else math.nan,
        "doubly_robust": float(sum(robust) / n) if q is not None else math.nan,
        "standard_error": error,
        "effective_sample_size": float(sum(w) ** 2 / sum(x**2 for x in w)),
        "largest_weight": float(max(w)),
        "mean_weight": float(sum(w) / n),
        "unsupported": 0.0,
    }


@pytest.mark.parametrize("seed", range(100))
def test_figures_are_those_of_plain_loops(seed: int) -> None:
    predicted = seed % 4 > 1
    log = random_log(seed, whole=seed % 2 == 1, predicted=predicted)
    found = evaluate(log)
    for name, value in by_loops(log).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True), name
    assert found.recommended == ("doubly robust" if predicted else "snips")
    best = found.doubly_robust if predicted else found.snips
    assert any("in every round" in line for line in found.assumptions) == (np.ndim(log.propensities) == 1)
    assert found.least == found.most == np.clip(best, 0.0, 1.0)
    if not found.reason:
        assert found.value == np.clip(found.least, found.low, found.high)
    else:  # actions are not drawn with these propensities
        assert found.reason.startswith("no interval and no value: the lower bound is above the upper one")


@pytest.mark.parametrize("logger", ["fixed", "learning"])
def test_bits_and_predictions_the_other_way_round_mirror_the_figures(logger: Any) -> None:
    rng = np.random.default_rng(4)
    p, q = np.tile([0.5, 0.3, 0.2], (500, 1)), rng.random((500, 3))
    log = Log(rng.choice(3, 500, p=p[0]), rng.random(500) < 0.7, p, rng.dirichlet(np.ones(3), 500), q)
    found = evaluate(log, logger=logger)
    other = evaluate(log._replace(rewards=~np.asarray(log.rewards), predictions=1.0 - q), logger=logger)
    assert 0.0 < found.low < found.value < found.high < 1.0
    assert (1.0 - other.high, 1.0 - other.value, 1.0 - other.low) == pytest.approx((found.low, found.value, found.high))


def test_figures_of_a_log_by_hand() -> None:
    """Weights 1.6, 3.2, 3.2, 3.5, 2.5; the same figures from Open Bandit Pipeline 0.5.5."""
    p = [[0.5, 0.25, 0.25]] * 3 + [[0.2, 0.4, 0.4]] * 2
    target = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1], [0, 1, 0]]
    q = [[0.6, 0.3, 0.4], [0.5, 0.2, 0.4], [0.6, 0.3, 0.7], [0.9, 0.3, 0.4], [0.5, 0.1, 0.2]]
    found = evaluate(Log([0, 1, 2, 0, 1], [1, 0, 1, 1, 0], p, target, q))
    assert (found.ips, found.snips) == pytest.approx((1.66, 0.5928571429))
    assert (found.direct, found.doubly_robust) == pytest.approx((0.456, 0.668))


@pytest.mark.parametrize("logger", ["fixed", "learning"])
@pytest.mark.parametrize("predicted", [False, True])
def test_parts_are_evaluated_as_one_log(logger: Any, predicted: bool) -> None:
    log = random_log(3, whole=True, predicted=predicted)
    cuts = (slice(0, 5), slice(5, 5), slice(5, 6), slice(6, None))
    parts = (Log(*(None if x is None else np.asarray(x)[cut] for x in log)) for cut in cuts)
    one, many = evaluate(log, logger=logger), evaluate(parts, logger=logger)
    for name in Evaluation.__dataclass_fields__:
        x, y = getattr(one, name), getattr(many, name)
        assert x == y or y == pytest.approx(x, rel=1e-12, nan_ok=True), name


# ------------------------------------------------------------------------------------------------- exact expectations

Q = [[0.25, 0.75], [0.5, 0.125]]
TARGET = [[0.25, 0.75], [1.0, 0.0]]
VALUE = (0.25 * 0.25 + 0.75 * 0.75 + 0.5) / 2
"""Two contexts, each with probability 1/2."""


def logs(propensity: Callable[[int, list[Any]], list[float]]) -> Iterator[tuple[float, list[Any]]]:
    """Yield every log of two rounds, (context, action, bit, propensities) each, with its probability."""
    for rounds in itertools.product(itertools.product((0, 1), (0, 1), (0, 1)), repeat=2):
        chance, past = 1.0, []
        for x, a, r in rounds:
            p = propensity(x, past)
            chance *= 0.5 * p[a] * (Q[x][a] if r else 1.0 - Q[x][a])
            past.append((x, a, r, p))
        yield chance, past


def learnt(x: int, past: list[Any]) -> list[float]:
    """The propensities of a logger that learns from its first round."""
    return [0.5, 0.5] if not past or past[0][2] else [0.125, 0.875]


@pytest.mark.parametrize(
    "propensity", [lambda x, past: [[0.25, 0.75], [0.5, 0.5]][x], learnt], ids=["fixed", "learning"]
)
def test_ips_and_doubly_robust_have_no_bias(propensity: Callable[[int, list[Any]], list[float]]) -> None:
    """Their expectations are sums over all logs; the predictions for the second round depend on the first."""
    total, ips, robust, direct = 0.0, 0.0, 0.0, 0.0
    for chance, past in logs(propensity):
        x, a, r, p = zip(*past, strict=True)
        predictions = [[0.5, 0.25], [0.9, 0.1] if r[0] else [0.0, 0.3]]
        found = evaluate(Log(a, r, p, [TARGET[i] for i in x], predictions))
        total += chance
        ips, robust, direct = (
            ips + chance * found.ips,
            robust + chance * found.doubly_robust,
            direct + chance * found.direct,
        )
    assert (total, ips, robust) == pytest.approx((1.0, VALUE, VALUE), abs=1e-12)
    assert abs(direct - VALUE) > 0.01


def test_a_perfect_model_takes_the_variance_of_rewards_away() -> None:
    """Rewards that context and action determine, predicted exactly: the estimate is the same whatever was logged."""
    rng = np.random.default_rng(0)
    q, target = rng.integers(2, size=(40, 3)).astype(float), rng.dirichlet(np.ones(3), 40)
    for _ in range(20):
        actions = rng.integers(3, size=40)
        found = evaluate(Log(actions, q[np.arange(40), actions], np.full(40, 1 / 3), target, q))
        assert found.doubly_robust == pytest.approx((target * q).sum() / 40, abs=1e-12)
        assert found.ips != pytest.approx(found.doubly_robust, abs=1e-3)


# ------------------------------------------------------------------------------------------------------------- support


def test_an_action_never_logged_gives_bounds() -> None:
    log = Log([0, 1, 0, 1], [1, 0, 0, 1], [0.5] * 4, [[0.25, 0.5, 0.25]] * 4)
    found = evaluate(log)
    assert math.isnan(found.value)
    assert NO_SUPPORT in found.reason
    assert found.unsupported == 0.25
    assert found.recommended == "ips"
    assert (found.least, found.most) == (found.ips, found.ips + 0.25)
    assert 0.0 <= found.low <= found.least <= found.most <= found.high <= 1.0
    found = evaluate(log._replace(rewards=[1] * 4, propensities=[0.25] * 4))
    assert (found.ips, found.least, found.most) == (1.5, 0.75, 1.0)
    found = evaluate(log._replace(predictions=np.full((4, 3), 0.4)))  # of the two actions with support, 0.3
    assert (found.least, found.most) == pytest.approx((0.3 + (0.3 - 0.4 - 0.2 + 0.6) / 4, 0.625))


def test_actions_of_propensity_zero_give_bounds_that_hold_the_value_for_any_rewards_of_theirs() -> None:
    rng = np.random.default_rng(1)
    n, q = 4000, np.array([0.3, 0.6, 0.5])
    possible = rng.integers(2, size=n)  # in half of the rounds action 2 is impossible
    p = np.where(possible[:, None] == 1, [0.3, 0.3, 0.4], [0.5, 0.5, 0.0])
    actions = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    rewards = rng.random(n) < q[actions]
    target, predictions = np.tile([0.2, 0.2, 0.6], (n, 1)), np.full((n, 3), 0.45)
    known = 0.2 * 0.3 + 0.2 * 0.6 + 0.6 * 0.5 * 0.5  # the part with support
    for log in (Log(actions, rewards, p, target), Log(actions, rewards, p, target, predictions)):
        found = evaluate(log)
        assert math.isnan(found.value)
        assert found.unsupported == pytest.approx(0.6 * np.mean(possible == 0), abs=1e-12)
        assert found.least == pytest.approx(known, abs=0.04)
        assert found.most == pytest.approx(known + 0.3, abs=0.04)
        assert found.low < known
        assert found.high > known + 0.3


def test_estimated_propensities_give_no_support_to_an_action_never_logged() -> None:
    log = Log([0, 1], [1, 0], [[0.5, 0.4, 0.1]] * 2, [[0.5, 0.25, 0.25]] * 2)
    assert evaluate(log).unsupported == 0.0
    found = evaluate(log, estimated=True)
    assert found.unsupported == 0.25
    assert any("estimated" in line for line in found.assumptions)
    assert found.reason.startswith(
        "no interval: no theorem covers estimated propensities; no value: 25.00% of the target"
    )
    assert all(math.isnan(x) for x in (found.value, found.low, found.high))
    found = evaluate(log._replace(target=[[0.5, 0.5, 0.0]] * 2), estimated=True)
    assert math.isnan(found.low)
    assert found.value == found.snips


def test_a_log_of_other_actions_has_no_value() -> None:
    found = evaluate(Log([0, 0, 1], [1, 1, 1], [0.5] * 3, [[0, 1], [0, 1], [1, 0]]))
    assert found.reason == "no value: no logged action is one that the target policy would choose"
    assert (found.effective_sample_size, found.largest_weight) == (0.0, 0.0)
    assert (found.low, found.high) == (0.0, 1.0)
    assert math.isnan(found.value)


def test_propensities_that_are_too_small_by_far_are_noticed() -> None:
    found = evaluate(Log([0, 1] * 400, [0, 1] * 400, [0.1] * 800, [[0.5, 0.5]] * 800))
    assert "lower bound is above the upper one" in found.reason
    assert all(math.isnan(x) for x in (found.value, found.low, found.high))
    assert found.mean_weight == 5.0
    found = evaluate(Log([0] * 800, [0] * 800, [0.1] * 800, [[1.0, 0.0]] * 800))
    assert (found.low, found.high, found.value, found.reason) == (0.0, 0.0, 0.0, "")  # bounds may meet


# -------------------------------------------------------------------------------------------------------------- faults

ROW = [0.5, 0.5]


@pytest.mark.parametrize(
    ("log", "faults"),
    [
        (Log([0, 2, -1, 0.5], [0] * 4, [0.5] * 4, [ROW] * 4), ["3 x actions that are not integers from 0 to 1"]),
        (Log([0] * 4, [0, 2, math.nan, 0.5], [0.5] * 4, [ROW] * 4), ["3 x rewards that are not 0 or 1"]),
        (
            Log([0] * 5, [0] * 5, [0.5, 0, 1.5, math.nan, -1], [ROW] * 5),
            ["4 x propensities of logged actions outside [1e-100, 1]"],
        ),
        (
            Log([0] * 4, [0] * 4, [ROW, [0.5, 0.6], [0, 1], [math.nan, 1]], [ROW] * 4),
            [
                "2 x rows of propensities that are not probabilities with sum 1",
                "2 x propensities of logged actions outside [1e-100, 1]",
            ],
        ),
        (
            Log([0] * 5, [0] * 5, [1] * 5, [ROW, [0.5, 0.6], [1.5, -0.5], [math.inf, -math.inf], [0.5, 0.5000015]]),
            ["4 x rows of target that are not probabilities with sum 1"],
        ),
        (Log([0], [0], [1], [ROW], [[0.5, 1.1]]), ["1 x predictions outside [0, 1]"]),
        (
            Log([0, 0, 3], [0, 7], [0.0] * 3, [[0.5, 0.6]] * 3, [[2, 2]]),
            [
                "1 x rewards of shape (2,) where (3,) is needed",
                "1 x predictions of shape (1, 2) where (3, 2) is needed",
                "1 x actions that are not integers",
                "1 x rewards that are not 0 or 1",
                "3 x rows of target",
                "2 x predictions outside",
                "3 x propensities of logged actions",
            ],
        ),
        (Log(["left"], [0], [1], [ROW]), ["1 x actions that are not arrays of numbers"]),
        (Log([0], [0], [1], [[0.5], ROW]), ["1 x target that are not arrays of numbers"]),
        (Log([0] * 5, [0] * 5, np.zeros((0, 2)), [ROW] * 5), ["1 x propensities of shape (0, 2) where (5,) or (5, 2)"]),
        (Log([0], [0], [1], np.zeros((1, 0))), ["1 x rows of target"]),
        (Log([], [], [], np.zeros((0, 2))), ["the log has no rounds"]),
    ],
)
def test_all_faults_are_named_at_once_and_counted(log: Log, faults: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        evaluate(log)
    assert isinstance(error.value, ValueError)
    assert "\n" not in str(error.value)
    for fault in faults:
        assert fault in str(error.value)


def test_faults_of_parts_are_summed() -> None:
    good, bad = Log([0], [0], [1], [ROW]), Log([0, 5], [0, 2], [1, 1], [ROW] * 2)
    with pytest.raises(UsageError, match=r"2 x actions that are not integers from 0 to 1; 2 x rewards that"):
        evaluate([good, bad, good, bad])
    other = Log([0], [0], [1], [[0.2, 0.2, 0.6]])
    with pytest.raises(UsageError, match=r"2 x parts with other actions or fields than the first part"):
        evaluate([good, other, good._replace(predictions=[ROW])])
    with pytest.raises(UsageError, match=r"^the log has faults: 1 x actions that are not integers from 0 to 1$"):
        evaluate(Log([0, 5], [0, 1], [ROW] * 2, [ROW] * 2))  # which has no propensity
    with pytest.raises(UsageError, match="the log has no rounds"):
        evaluate([])


@pytest.mark.parametrize("log", [{"actions": [0]}, None, [([0], [0], [1], [ROW])], "log.csv"])
def test_what_is_no_log(log: Any) -> None:
    with pytest.raises(UsageError, match=r"^log must be a Log or an iterable of Logs, got a (str|NoneType|tuple)$"):
        evaluate(log)


@pytest.mark.parametrize("settings", [{"logger": "random"}, {"level": 1.0}, {"level": 0.0}, {"level": "95 %"}])
def test_settings_out_of_range(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(settings))} must"):
        evaluate(Log([0], [0], [1], [ROW]), **settings)
