"""Players with a choice of decoding: what they play is what they report, label-blind, the same both ways, and bounded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from banditlab.agents.exploration import Exploration
from banditlab.agents.obama.obama_lite import ObamaLite
from banditlab.agents.sampled import Sampled
from banditlab.bounds.decoding import decoded_exploration, decoded_forecast, mistakes_per_nat
from banditlab.bounds.obama import obama_gamma
from banditlab.bounds.rdue import rdue_decoded
from banditlab.bounds.template import template_fixed, template_gamma, template_label, template_step
from banditlab.checks import check_agent
from banditlab.errors import UsageError
from banditlab.losses import logistic_loss, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.decoding import DECODINGS, decode_forecast
from banditlab.players.agent import Trace
from banditlab.problem import Problem
from banditlab.registry import registry
from banditlab.validation import loss_unit

D, K = 4, 3
CHOOSERS: dict[str, dict[str, Any]] = {
    "exploration": {"forecaster": "ogd", "gamma": 0.3},
    "sampled": {"forecaster": "ogd"},
    "label-efficient": {"forecaster": "ogd", "query_rate": 0.5},
    "obama-lite": {"gamma": 0.2, "samples": 10},
    "boosted-exploration": {"weak_learner": "forecaster", "n_learners": 2, "gamma": 0.3},
    "randomized-decoding": {},
    "rdue": {"gamma": 0.2},
    "gaptron": {"gamma": 0.2},
    "decoded-descent": {"gamma": 0.2},
}
CHECKS = ("decisions", "two_uniforms", "true_probabilities", "only_the_bit", "both_paths", "told_the_label", "saving")


def make(id_: str, decoding: str | None = None, seed: int = 3, T: int = 1000, **settings: Any) -> Any:
    chosen = {} if decoding is None else {"decoding": decoding}
    problem = Problem(D, K, 1.0, T)
    return registry().load("agents", id_)(problem, np.random.default_rng(seed), **settings, **chosen)


def stream(n: int, seed: int = 0, scale: float = 6.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    W = scale * rng.standard_normal((K, D)) / math.sqrt(D)
    return as_contexts(X), np.argmax(X @ W.T + rng.gumbel(size=(n, K)), axis=1), W


def played(player: Any, X: np.ndarray, y: np.ndarray) -> Trace:
    trace = Trace.empty(len(y))
    player.play_block(X, y, trace)
    return trace


def test_every_player_with_the_setting_is_here() -> None:
    found = {
        entry.id
        for entry in registry().entries("agents")
        if entry.origin == "banditlab" and "decoding" in entry.load().own_settings()
    }
    assert found == set(CHOOSERS)


@pytest.mark.parametrize(
    ("id_", "decoding"),
    [
        pytest.param(id_, rule, marks=[pytest.mark.slow] if id_ == "boosted-exploration" and rule != "half-log" else [])
        for id_ in CHOOSERS
        for rule in DECODINGS
    ],
)
@pytest.mark.few(5)
def test_the_contract_holds_with_every_decoding(id_: str, decoding: str) -> None:
    """Label-blind, true probabilities, both paths bit for bit, saved and loaded."""
    checks = check_agent(registry().load("agents", id_), **CHOOSERS[id_], decoding=decoding)
    concerned = [check for check in checks if check.name in CHECKS]
    assert len(concerned) >= 5
    for check in concerned:
        result = check.result()
        assert result.status != "failed", str(result)


@pytest.mark.parametrize("id_", CHOOSERS)
def test_another_word_is_refused_in_one_line_that_names_the_rules(id_: str) -> None:
    with pytest.raises(UsageError, match=r"^decoding must be one of 'sample', 'half-log', .* got 'argmax'$"):
        make(id_, "argmax", **CHOOSERS[id_])


def test_where_a_decoding_makes_no_sense_it_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^decoding must be 'thresholded' with loss = 'hinge', got 'half-log'$"):
        make("gaptron", "half-log", loss="hinge")
    with pytest.raises(UsageError, match=r"^decoding must be 'thresholded' with step = 'wide', got 'gap'$"):
        make("gaptron", "gap", step="wide")
    with pytest.raises(UsageError, match=r"^with gamma = 0, half-log gives some classes probability 0"):
        make("obama-lite", gamma=0.0)
    with pytest.raises(
        UsageError, match=r"^decoding must be one of 'half-log', 'sparsemax' with step = 'wide', got 'gap'$"
    ):
        make("decoded-descent", "gap", step="wide")
    with pytest.raises(UsageError, match="proportional to gamma"):
        make("decoded-descent", gamma=0.0)


@pytest.mark.parametrize("id_", [id_ for id_ in CHOOSERS if id_ != "boosted-exploration"])
def test_each_decoding_plays_in_its_own_way(id_: str) -> None:
    X, y, _ = stream(300)
    played_by = {rule: played(make(id_, rule, **CHOOSERS[id_]), X, y).p_true.tobytes() for rule in DECODINGS}
    assert len(set(played_by.values())) == len(DECODINGS)


def test_the_defaults() -> None:
    half_log = {"exploration", "sampled", "label-efficient", "obama-lite", "decoded-descent"}
    own = {
        "rdue": "randomized",
        "randomized-decoding": "randomized",
        "gaptron": "thresholded",
        "boosted-exploration": "sample",
    }
    for id_, settings in CHOOSERS.items():
        assert make(id_, **settings).decoding == ("half-log" if id_ in half_log else own[id_])


@pytest.mark.parametrize("decoding", DECODINGS)
def test_reported_are_the_decoded_forecasts_mixed_with_exploration(decoding: str) -> None:
    X, y, _ = stream(80)
    rule = DECODINGS.index(decoding)
    reduction = make("exploration", decoding, forecaster="ogd", gamma=0.3)
    told = make("sampled", decoding, forecaster="ogd")
    descent = make("decoded-descent", decoding, gamma=0.3)
    for x, label in zip(X, y.tolist(), strict=True):
        s = [softmax(player.inner.predict(x)) for player in (reduction, told)] + [softmax(descent.weights @ x)]
        for q in s:
            decode_forecast(rule, q)
        expected = [0.3 / K + 0.7 * s[0], s[1], 0.3 / K + 0.7 * s[2]]
        for player, p in zip((reduction, told, descent), expected, strict=True):
            decision = player.act(x)
            np.testing.assert_allclose(decision.probabilities, p, atol=1e-12)
            player.learn(x, decision, label if player is told else decision.action == label)


def test_descent_steps_along_the_unbiased_gradient() -> None:
    """W' = W - eta 1[right]/p_y (s - e_y) x'/ln 2, by hand; averaged over the actions it is the gradient."""
    X, y, _ = stream(60)
    for x, label in zip(X[40:], y[40:].tolist(), strict=True):
        moves, s = np.zeros((K, D)), np.zeros(0)
        for action in range(K):
            agent = make("decoded-descent", gamma=0.3)
            played(agent, X[:40], y[:40])
            W, s = agent.weights.copy(), softmax(agent.weights @ x)
            decision = agent.act(x)
            chosen = type(decision)(action, decision.probabilities, True, decision.payload)
            agent.learn(x, chosen, action == label)
            moves += decision.probabilities[action] * (agent.weights - W)
        gradient = np.outer(s - np.eye(K)[label], x) / math.log(2.0)
        np.testing.assert_allclose(moves, -template_step(K, 1.0, 0.3) * gradient, atol=1e-12)


# ---------------------------------------------------------------------------------------------------- theory's settings


def test_the_reductions_theory() -> None:
    T = 1_000_000
    sample, half_log = (make("exploration", rule, T=T) for rule in ("sample", "half-log"))
    factor = mistakes_per_nat("half-log", K)
    regret = half_log.inner.bound(T)
    assert half_log.gamma == pytest.approx(math.sqrt(factor * K * regret / T), rel=1e-14)
    assert half_log.gamma / sample.gamma == pytest.approx(math.sqrt(factor))
    assert (sample.bound_unit, half_log.bound_unit) == ("nats", "0.5 bits")
    gamma = half_log.gamma
    assert half_log.bound(T) == pytest.approx(
        decoded_exploration(T, K, gamma, half_log.inner.bound(gamma * T / K)), rel=1e-14
    )
    assert half_log.bound(T) < sample.bound(T)
    assert make("exploration", "gap", T=T).bound_unit == f"{1 - 1 / 3!r} bits"


def test_the_anytime_rate_and_its_bound_take_the_factor_too() -> None:
    agents = [make("exploration", rule, gamma="anytime", norm_bound=0.3) for rule in ("sample", "half-log")]
    factor = mistakes_per_nat("half-log", K)
    regret = agents[1].inner.bound(500)
    assert agents[1]._rates(0, 1.0, 500)[-1] == pytest.approx(math.sqrt(factor * K * regret / 500), rel=1e-12)
    assert agents[1].bound(500) is None
    bounds = [agent.well_specified_bound(500) for agent in agents]
    assert 0.0 < bounds[1] < bounds[0]


def test_the_others_theory() -> None:
    T, B = 1_000_000, 2.0
    D_ = math.sqrt(K) * B
    told = make("sampled", norm_bound=B)
    assert told.bound(T) == decoded_forecast(told.inner.bound(T), K)
    assert make("obama-lite", T=T, norm_bound=B).gamma == obama_gamma(T, D, K, B, 1.0, "half-log")
    rdue = make("rdue", "half-log", T=T, norm_bound=B)
    assert rdue.bound(T) == rdue_decoded(K, 1.0, 2 * D_ / math.log(2.0), rdue.gamma, T)
    assert rdue.bound(T) < make("rdue", T=T, norm_bound=B).bound(T)
    label = make("randomized-decoding", "half-log", norm_bound=B)
    assert label.bound(T) == pytest.approx(template_label(K, 1.0, D_), rel=1e-12)
    assert label.bound(T) < make("randomized-decoding", norm_bound=B).bound(T)
    for id_ in ("decoded-descent", "gaptron"):
        agent = make(id_, "half-log", T=T, norm_bound=B)
        gamma = template_gamma(K, 1.0, D_, T)
        assert (agent.gamma, agent.step) == (gamma, template_step(K, 1.0, gamma))
        assert agent.bound(T) == template_fixed(K, 1.0, D_, agent.step, gamma, T)
        assert make(id_, "half-log", gamma=0.1, step=10.0).bound(T) is None
        assert make(id_, "half-log", gamma=0.1, step="adaptive").bound(T) is None
        assert make(id_, "half-log", gamma=0.0, step=0.1).bound(T) is None
    wide = [make("decoded-descent", rule, T=T, step="wide").bound(T) for rule in ("half-log", "sparsemax")]
    assert wide[1] < wide[0] < make("decoded-descent", T=T).bound(T) < make("gaptron", T=T).bound(T)


def test_certificates_are_carried_through() -> None:
    X, y, _ = stream(500)
    told, reduction = make("sampled"), make("exploration", gamma=0.3)
    trace = played(told, X, y)
    played(reduction, X, y)
    factor = mistakes_per_nat("half-log", K)
    assert told.certificate() == factor * told.inner.certificate() <= told.bound(500)
    expected = 0.3 * (2 / 3) * 500 + 0.7 * factor * (K / 0.3) * reduction.inner.certificate()
    assert reduction.certificate() == pytest.approx(expected, rel=1e-12)
    for quiet in (
        make("sampled", "sample"),
        make("exploration", "sample", gamma=0.3),
        make("exploration", gamma="anytime"),
    ):
        assert math.isnan(quiet.certificate())
    # with the label observed, the statement is about this very stream, against every U of the ball
    for U in (np.zeros((K, D)), *np.random.default_rng(1).standard_normal((5, K, D))):
        U /= max(1.0, float(np.linalg.norm(U, axis=1).max()))
        loss = float(logistic_loss(X @ U.T, y).sum())
        assert (1 - trace.p_true).sum() <= factor * loss + told.certificate()


# ------------------------------------------------------------------------------------------------------ mistakes, bounded


@pytest.mark.parametrize(
    ("id_", "decoding", "settings"),
    [
        ("exploration", "half-log", {"gamma": 0.2, "norm_bound": 3.0}),
        ("exploration", "sparsemax", {"gamma": 0.2, "norm_bound": 3.0}),
        ("exploration", "randomized", {"gamma": 0.2, "norm_bound": 3.0}),
        ("sampled", "half-log", {"norm_bound": 3.0}),
        ("rdue", "half-log", {"gamma": 0.2, "norm_bound": 3.0}),
        ("gaptron", "half-log", {"gamma": 0.2, "norm_bound": 3.0}),
        ("randomized-decoding", "half-log", {"norm_bound": 3.0}),
        ("decoded-descent", "half-log", {"gamma": 0.2, "norm_bound": 3.0}),
        ("decoded-descent", "gap", {"gamma": 0.2, "norm_bound": 3.0}),
        ("decoded-descent", "sparsemax", {"gamma": 0.2, "norm_bound": 3.0, "step": "wide"}),
    ],
)
def test_expected_mistakes_are_below_the_bound(id_: str, decoding: str, settings: dict[str, Any]) -> None:
    """On a planted stream, on pure noise, and on one label only; against the planted matrix, cut to the ball, and 0."""
    n = 1500
    X, y, W = stream(n)
    W *= 3.0 / np.linalg.norm(W, axis=1).max()
    noise = np.random.default_rng(2).integers(0, K, n)
    for labels in (y, noise, np.full(n, 1)):
        runs = [make(id_, decoding, seed, T=n, **settings) for seed in range(3)]
        mistakes = np.mean([(1 - played(run, X, labels).p_true).sum() for run in runs])
        factor = loss_unit(runs[0].bound_unit)
        ball = 3.0 * np.sign(np.arange(K) - 0.5)[:, None] * np.eye(D)[0]  # a matrix of the ball's edge
        for U in (W, np.zeros((K, D)), ball):
            loss = float(logistic_loss(X @ U.T, labels).sum())
            assert mistakes <= factor * loss + runs[0].bound(n), (labels[:5], U)


def test_half_log_errs_less_than_a_draw_on_a_planted_stream() -> None:
    """Expected mistakes of the reduction and of the forecaster with full information, paired."""
    X, y, _ = stream(3000, scale=20.0)
    for id_, settings in (("exploration", {"gamma": 0.2, "norm_bound": 10.0}), ("sampled", {"norm_bound": 10.0})):
        drawn, decoded = (
            (1 - played(make(id_, rule, **settings), X, y).p_true).sum() for rule in ("sample", "half-log")
        )
        assert decoded < 0.9 * drawn


@pytest.mark.parametrize("sampler", ["laplace", pytest.param("net", marks=pytest.mark.slow)])
def test_obamas_weights_stay_at_most_one(sampler: str) -> None:
    """Decoded before it is mixed, every class keeps gamma/K: weights eta/q are at most 1 and none is cut."""
    X, y, _ = stream(400)
    agent = ObamaLite(
        Problem(D, K, 1.0, 400), np.random.default_rng(0), norm_bound=5.0, gamma=0.15, sampler=sampler, members=50
    )
    trace = played(agent, X, y)
    assert trace.p_true.min() >= 0.15 / K - 1e-15
    found = agent.diagnostics()
    assert found["hits"] > 100
    assert found["cut"] == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("decoding", DECODINGS)
def test_logits_that_are_no_numbers_become_no_distribution(
    decoding: str, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What every loop and the engine refuse by name (tests/engine/test_play.py)."""
    x = as_contexts(np.ones(D) / 4)
    for cls, settings in ((Exploration, {"gamma": 0.3}), (Sampled, {})):
        agent = cls(Problem(D, K, 1.0, 10), np.random.default_rng(0), forecaster="ogd", decoding=decoding, **settings)
        monkeypatch.setattr(agent.inner, "predict", lambda context: np.array([0.0, bad, 0.0]))
        assert np.isnan(agent.act(x).probabilities).any()


# --------------------------------------------------------------------------------------------------- what is not proved


def test_confidence_is_no_reason_not_to_explore() -> None:
    """A forecaster that is certain of class 0 meets class 1 for ever. Explored at a rate of 1 - s* it never hears of it:
    its mistakes are all, while what its regret bound sees of them is nothing. At a constant rate it is cured."""
    x = as_contexts(np.eye(D)[0])
    taught = make("exploration", gamma=0.05, forecaster="ogd", norm_bound=30.0, step=50.0).inner
    for _ in range(20):
        taught.update(x, 0)
    s = softmax(taught.predict(x))
    assert s[0] > 1 - 1e-9
    n, rng = 20_000, np.random.default_rng(0)
    explored_hits = (rng.random(n) < 1.0 - s[0]) & (rng.integers(0, K, n) == 1)
    assert explored_hits.sum() == 0  # so the forecast stands still, and every round is a mistake
    seen = n * (1.0 - s[0]) / K * -math.log(s[1])
    assert seen < 0.01  # the forecaster's loss on the updates that are to be expected: no regret bound minds
    constant = make("exploration", gamma=0.05, forecaster="ogd", norm_bound=30.0, step=50.0)
    for _ in range(20):
        constant.inner.update(x, 0)
    trace = played(constant, np.tile(x, (n, 1)), np.full(n, 1))
    assert (1 - trace.p_true[n // 2 :]).mean() < 0.05
