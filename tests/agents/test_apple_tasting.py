"""Apple tasting: the agent beside its rule written out, what it never reads, and the bound beside the exact mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab import Problem, make_agent
from banditlab.agents.apple_tasting import AppleTasting
from banditlab.bounds.apple_tasting import apple_tasting
from banditlab.errors import HorizonRequiredError, IncompatibleError, UsageError
from banditlab.forecasters.ogd import OGD
from banditlab.players.actor import Trace
from benchmarks.measure.papers import apples
from benchmarks.measure.papers.boosting import searched

D, T = 4, 300
RNG = np.random.default_rng(0)
X = RNG.standard_normal((T, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = (RNG.random(T) < 1.0 / (1.0 + np.exp(-6.0 * X[:, 0]))).astype(np.int64)


def made(seed: int = 0, **settings: object) -> AppleTasting:
    return AppleTasting(Problem(D, 2, 1.0, T), np.random.default_rng(seed), **settings)  # type: ignore[arg-type]


def test_it_plays_its_rule() -> None:
    gamma = 20.0
    agent, alone = made(forecaster="ogd", sharpness=gamma), OGD(Problem(D, 2, 1.0, T), None)
    coins = np.random.default_rng(0)
    coins.spawn(1)  # the forecaster's
    played = []
    for x, label in zip(X, Y.tolist(), strict=True):
        z = alone.predict(x)
        bad = 1.0 / (1.0 + math.exp(z[1] - z[0]))
        accept = 1.0 if bad <= 0.5 else 1.0 / (1.0 + gamma * (2.0 * bad - 1.0))
        decision = agent.act(x)
        assert decision.probabilities[1] == pytest.approx(accept, abs=1e-12)
        assert decision.action == int(coins.random(2)[1] < accept)
        if decision.action == 1:
            alone.update(x, label)
        agent.learn(x, decision, decision.action == label)
        played.append(decision.action)
    assert 0.1 < np.mean(played) < 0.9
    np.testing.assert_array_equal(agent.inner.weights, alone.weights)


def test_the_bits_of_rejected_items_are_not_used() -> None:
    with_all, without = made(norm_bound=3.0), made(norm_bound=3.0)
    for x, label in zip(X, Y.tolist(), strict=True):
        decision = with_all.act(x)
        again = without.act(x)
        assert decision.action == again.action
        np.testing.assert_array_equal(decision.probabilities, again.probabilities)
        with_all.learn(x, decision, decision.action == label)
        if decision.action == 1:
            without.learn(x, decision, decision.action == label)


def test_blocks_are_rounds() -> None:
    trace, by_round = Trace.empty(T), made()
    made().play_block(X, Y, trace)
    for t, (x, label) in enumerate(zip(X, Y.tolist(), strict=True)):
        decision = by_round.act(x)
        assert decision.action == trace.action[t]
        by_round.learn(x, decision, decision.action == label)


def test_the_sharpness_of_the_theorem() -> None:
    agent = made()
    regret = agent.inner.bound(T)
    assert agent.sharpness == pytest.approx(math.sqrt(2.0 * T / regret))
    assert agent.well_specified_bound(T) == pytest.approx(math.sqrt(2.0 * T * regret))
    assert agent.bound(T) is None
    assert made(forecaster="gaf", sharpness=3.0).well_specified_bound(T) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sharpness": 0.0}, "sharpness must be"),
        ({"sharpness": math.nan}, "sharpness must be"),
        ({"sharpness": "theorem"}, "sharpness must be"),
        ({"forecaster": "gaf"}, "give sharpness as a number"),
        ({"forecaster": "folklor"}, "folklore"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(**settings)


def test_problems_that_are_refused() -> None:
    with pytest.raises(IncompatibleError, match="it needs n_classes = 2, got 3"):
        make_agent("apple-tasting", Problem(D, 3, 1.0, T), seed=0)
    with pytest.raises(HorizonRequiredError):
        make_agent("apple-tasting", Problem(D, 2, 1.0), seed=0)


@pytest.mark.parametrize("line", apples.LINES, ids=lambda line: line.name)
def test_no_setting_is_above(line: apples.Line) -> None:
    found = searched(line, 15, 5)
    assert found.above == 0
    assert 0.05 < found.ratio < 1.0


def test_a_bound_that_is_false_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apples, "apple_tasting", lambda T, sharpness, regret: 0.1 * apple_tasting(T, sharpness, regret))
    for line in apples.LINES:
        assert searched(line, 15, 5).above > 0
