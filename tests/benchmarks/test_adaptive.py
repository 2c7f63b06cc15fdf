"""The adversary that makes a bound fail, in a smaller game than the page's; on its streams with other coins the bound holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.result_pages.adaptive import Line, parts, ratios, read, write
from banditlab.engine.runner import play
from banditlab.losses import softmax
from benchmarks.commands import adaptive

EXPERTS, GAMMA, ROUNDS, RUNS, COINS = 200, 0.1, 600, 5, 20
RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return [adaptive.measured(seed, COINS, EXPERTS, GAMMA, ROUNDS) for seed in range(RUNS)]


def test_the_bound_fails_against_the_adversary_and_holds_on_its_streams_with_other_coins(lines: list[Line]) -> None:
    against, with_other_coins = ratios(lines)
    assert against > 1.4
    assert 0.5 < with_other_coins < 1.0


def test_the_committed_runs_say_the_same() -> None:
    lines = read(RESULTS / "adaptive.csv")
    against, with_other_coins = ratios(lines)
    assert len(lines) == 20
    assert {(x.experts, x.gamma, x.rounds) for x in lines} == {(1000, 0.004, 16_000)}
    assert against > 1.7
    assert 0.9 < with_other_coins < 0.98


def test_the_bound_is_the_theorems(lines: list[Line]) -> None:
    K, nats = 2, 0.5 / np.log(2.0)
    want = GAMMA * (1 - 1 / K) * ROUNDS + (1 - GAMMA) * nats * (K / GAMMA) * np.log(EXPERTS)
    assert [x.bound for x in lines] == [pytest.approx(want)] * RUNS


def test_the_mixture_is_bayes_rule() -> None:
    rng, game = np.random.default_rng(0), adaptive.Turncoat(n_experts=5, horizon=9)
    mixture, likelihood = adaptive.BayesMixture(game.problem, None), np.full(5, 0.2)
    for _ in range(6):
        x, label = rng.random(5), int(rng.integers(2))
        p = likelihood @ x / likelihood.sum()
        np.testing.assert_allclose(softmax(mixture.predict(x)), [p, 1 - p], rtol=1e-12)
        mixture.update(x, label)
        likelihood = likelihood * (x if label == 0 else 1 - x)


def test_the_adversary_uses_past_actions_only_and_a_given_stream_uses_none() -> None:
    """Each round is the same whatever is played in it, and with given updates whatever is played at all."""
    seen = []
    for first in (0, 1):
        game = adaptive.Turncoat(n_experts=20, horizon=4)
        context, _ = game.reset(seed=3)
        following = game.step(first)[0]
        seen.append((context, following))
        fixed = adaptive.Turncoat(n_experts=20, horizon=4, updates=frozenset({0}))
        assert fixed.reset(seed=3)[0].tolist() == context.tolist()
        seen[-1] += (fixed.step(first)[0],)
    (x, after, given), (x_, after_, given_) = seen
    assert x.tolist() == x_.tolist()
    assert after.tolist() != after_.tolist()  # the hit was an update
    assert given.tolist() == given_.tolist() == after.tolist()


def test_every_update_is_one_that_the_adversary_has_seen() -> None:
    game = adaptive.Turncoat(n_experts=EXPERTS, horizon=ROUNDS)
    agent = adaptive.mixing_agent(game.problem, GAMMA, 0)
    played = play(game, agent, seed=0, keep_trace=True)
    mine = game._mixture.weights
    np.testing.assert_allclose(agent.inner.weights, mine, atol=0.3)  # beyond a weight of 1/4 the game is over
    assert played.trace is not None
    hits = np.flatnonzero(played.trace.correct)
    assert set(game.updated) <= set(hits[played.trace.explored[hits]])
    assert len(game.updated) > adaptive.EARLY


def test_agents_side_by_side_are_the_agent() -> None:
    """At a rate so small that nothing is updated: on rounds of all kinds, forecasts above 1/4 included."""
    gamma, experts, rounds = 1e-9, 30, 40
    updates = frozenset(range(0, 36, 3))
    game = adaptive.Turncoat(n_experts=experts, horizon=rounds, updates=updates)
    want = play(game, adaptive.mixing_agent(game.problem, gamma, 0), seed=2).expected_mistakes[-1]
    assert adaptive.with_other_coins(game, 3, gamma, 2) == pytest.approx(want, rel=1e-9)
    assert 1 < want < rounds - 1


def test_agents_that_always_explore_are_wrong_in_half_of_the_rounds() -> None:
    game = adaptive.Turncoat(n_experts=30, horizon=50, updates=frozenset())
    assert adaptive.with_other_coins(game, 4, 1.0, 0) == pytest.approx(25.0)


def test_the_table_is_stored_and_read(tmp_path: Path) -> None:
    lines = [Line(0, 9, 0.1, 50, 3, 40.0, 20.0, 15.0, 10.0), Line(1, 9, 0.1, 50, 4, 50.0, 26.0, 20.0, 15.0)]
    write(tmp_path / "adaptive.csv", lines)
    assert read(tmp_path / "adaptive.csv") == lines
    made = parts(tmp_path)
    assert (made["against"], made["replayed"]) == ("1.50 times", "0.77 times")
    assert "| mistakes, adversary | 45 ± 5 |" in made["runs"]
