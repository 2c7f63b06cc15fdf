"""Label-efficient prediction: the bounds against the exact mean over the coins, the agent against updates by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.agents.label_efficient import LabelEfficient
from banditlab.bounds.decoding import mistakes_per_nat
from banditlab.bounds.label_efficient import label_efficient, label_efficient_experts
from banditlab.errors import UsageError
from banditlab.forecasters.ogd import OGD
from banditlab.losses import softmax
from banditlab.players.actor import Trace
from banditlab.problem import Problem
from benchmarks.measure.papers import queries
from benchmarks.measure.papers.boosting import searched

D, K, T = 4, 3, 400
RNG = np.random.default_rng(0)
X = RNG.standard_normal((T, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
W = RNG.standard_normal((K, D))
Y = np.argmax(4.0 * X @ W.T + RNG.gumbel(size=(T, K)), axis=1)


def made(seed: int = 0, **settings: object) -> LabelEfficient:
    return LabelEfficient(Problem(D, K, 1.0, T), np.random.default_rng(seed), **settings)  # type: ignore[arg-type]


def test_only_queried_labels_reach_the_forecaster() -> None:
    agent, alone = made(forecaster="ogd", query_rate=0.3, decoding="sample"), OGD(Problem(D, K, 1.0, T), None)
    coins = np.random.default_rng(0)
    coins.spawn(1)  # the forecaster's
    queried = 0
    for x, y in zip(X, Y.tolist(), strict=True):
        decision = agent.act(x)
        np.testing.assert_allclose(decision.probabilities, softmax(alone.predict(x)), atol=1e-14)
        agent.learn(x, decision, y)
        if coins.random(2)[0] < 0.3:
            alone.update(x, y)
            queried += 1
    assert 90 <= queried <= 150
    np.testing.assert_array_equal(agent.inner.weights, alone.weights)


@pytest.mark.parametrize("forecaster", ["ogd", "folklore", "folklore-direct"])
def test_blocks_are_rounds(forecaster: str) -> None:
    n = 60
    by_block, by_round = made(forecaster=forecaster, query_rate=0.4), made(forecaster=forecaster, query_rate=0.4)
    trace = Trace.empty(n)
    by_block.play_block(X[:n], Y[:n], trace)
    actions = []
    for x, y in zip(X[:n], Y[:n].tolist(), strict=True):
        decision = by_round.act(x)
        actions.append(decision.action)
        by_round.learn(x, decision, y)
    np.testing.assert_array_equal(trace.action, actions)
    np.testing.assert_allclose(by_block.inner.predict(X[0]), by_round.inner.predict(X[0]), atol=1e-12)


def test_the_bound_is_the_forecasters_over_the_rate_and_holds_in_the_mean() -> None:
    rate, B = 0.25, float(np.linalg.norm(4.0 * W, axis=1).max())
    agent, inner = made(query_rate=rate, norm_bound=B), made(norm_bound=B).inner
    f = mistakes_per_nat("half-log", K)
    assert agent.bound(T) == pytest.approx(f * inner.bound(rate * T) / rate, rel=1e-12)
    assert agent.bound_adversary == "oblivious"
    assert math.isnan(agent.certificate())
    loss = float((np.logaddexp.reduce(4.0 * X @ W.T, axis=1) - (4.0 * X @ W.T)[np.arange(T), Y]).sum())
    mistakes = []
    for seed in range(20):
        trace = Trace.empty(T)
        made(seed, query_rate=rate, norm_bound=B).play_block(X, Y, trace)
        mistakes.append(float((1.0 - trace.p_true).sum()))
    assert np.mean(mistakes) < f * loss + agent.bound(T)


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.5, math.nan, "all"])
def test_another_rate_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match=r"^query_rate must be"):
        made(query_rate=wrong)


@pytest.mark.parametrize("line", queries.LINES, ids=lambda line: line.name)
def test_no_setting_is_above(line: queries.Line) -> None:
    found = searched(line, 15, 5)
    assert found.above == 0
    assert 0.05 < found.ratio < 1.0


def test_a_bound_that_is_false_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "label_efficient_experts", lambda T, N, m: 0.1)
    monkeypatch.setattr(queries, "label_efficient", lambda regret, rate: 0.1 * rate * regret)
    for line in queries.LINES:
        assert searched(line, 15, 5).above > 0


def test_limits() -> None:
    assert label_efficient(7.0, 1.0) == 7.0
    assert math.isnan(label_efficient(7.0, 0.0))
    assert label_efficient_experts(100, 5, 100) == pytest.approx(math.sqrt(200.0 * math.log(5.0)))
    assert math.isnan(label_efficient_experts(100, 5, 101))
