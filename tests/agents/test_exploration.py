"""The exploration reduction: both paths, frozen stretches, its coin, its theorem, its settings."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from banditlab.agents.exploration import STRETCH, Exploration
from banditlab.bounds.exploration import exploration, exploration_theorem_9, exploration_well_specified
from banditlab.errors import HorizonRequiredError, IncompatibleError, UsageError
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.ogd import OGD
from banditlab.losses import logistic_loss, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.players.forecaster import Forecaster
from banditlab.problem import Problem
from banditlab.registry import Entry, registry

D = 4
AROUND = [("ogd", 3), ("aioli", 2), ("folklore", 2), ("folklore", 5)]


def stream(K: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = np.argmax(X @ (4 * rng.standard_normal((K, D))).T + rng.gumbel(size=(n, K)), axis=1)
    return as_contexts(X), y


def make(forecaster: str, K: int, gamma: float | str = 0.2, seed: int = 5, T: int = 1000, **settings) -> Exploration:
    """Return the reduction as the paper has it, with a draw from the forecast; test_decodings.py has the others."""
    problem, settings = Problem(D, K, 1.0, T), {"decoding": "sample"} | settings
    return Exploration(problem, np.random.default_rng(seed), forecaster=forecaster, gamma=gamma, **settings)


def steps(agent: Exploration, X: np.ndarray, y: np.ndarray) -> Trace:
    trace = Trace.empty(len(y))
    for t, x in enumerate(X):
        decision = agent.act(x)
        hit = bool(decision.action == y[t])
        trace.action[t], trace.correct[t] = decision.action, hit
        trace.p_true[t], trace.explored[t] = decision.probabilities[y[t]], decision.explored
        agent.learn(x, decision, hit)
    return trace


def blocks(agent: Exploration, X: np.ndarray, y: np.ndarray, *cuts: int) -> Trace:
    trace = Trace.empty(len(y))
    for a, b in zip((0, *cuts), (*cuts, len(y)), strict=True):
        agent.play_block(X[a:b], y[a:b], trace.part(slice(a, b)))
    return trace


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.few(1)
@pytest.mark.slow
def test_a_block_makes_room_for_the_updates_to_come_and_for_no_others(label: int) -> None:
    """Every context is a new direction, and the dual form has room for fifteen: which rounds teach is seen in advance."""
    d, T = 400, 400
    X, y = as_contexts(np.eye(d)), np.full(T, label)

    def agent() -> Exploration:
        problem = Problem(d, 2, 1.0, T)
        return Exploration(problem, np.random.default_rng(1), forecaster="folklore", gamma=0.2, form="dual")

    one, other = agent(), agent()
    ours, theirs = blocks(one, X, y), steps(other, X, y)
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(ours.p_true, theirs.p_true, rtol=1e-12)
    taught = int((ours.explored & ours.correct).sum())
    assert taught > 30
    spans = [player._inner.state.span for player in (one, other)]
    assert [span.rank[0] for span in spans] == [taught, taught]
    assert spans[0].capacity == spans[1].capacity > taught


@pytest.mark.parametrize("gamma", [0.0, 0.02, 0.4, 1.0])
@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.slow
def test_the_two_paths_agree_around_folklore(K: int, gamma: float) -> None:
    n = 4 * STRETCH + 9  # gamma 0 and .02 leave stretches longer than one batch
    X, y = stream(K, n)
    one = steps(make("folklore", K, gamma, norm_bound=5.0), X, y)
    other = blocks(make("folklore", K, gamma, norm_bound=5.0), X, y, 1, 300)
    for name in ("action", "correct", "explored"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_allclose(one.p_true, other.p_true, atol=1e-9)
    assert one.explored.mean() == pytest.approx(gamma, abs=4 * math.sqrt(gamma * (1 - gamma) / n))


@pytest.mark.parametrize(("forecaster", "K"), AROUND)
def test_learns_from_explored_hits_and_nothing_else(forecaster: str, K: int) -> None:
    """The forecaster inside is exactly one that was shown the explored hits, by hand."""
    X, y = stream(K, 400)
    agent = make(forecaster, K, norm_bound=3.0)
    trace = blocks(agent, X, y)
    alone = type(agent.inner)(agent.problem, None, norm_bound=3.0)
    taught = trace.explored & trace.correct
    assert 0 < taught.sum() < trace.explored.sum()
    for x, label in zip(X[taught], y[taught], strict=True):
        alone.update(x, label)
    np.testing.assert_allclose(agent.inner.predict_many(X), alone.predict_many(X), atol=1e-12)


def test_the_coin_and_the_draw_by_exact_integration() -> None:
    """On a grid of coins and draws every class is played with its reported probability, explored with gamma/K."""
    K, gamma, n = 4, 0.3, 400
    agent = make("folklore", K, gamma, norm_bound=10.0)
    X, y = stream(K, 80)
    steps(agent, X, y)
    s = softmax(agent.inner.predict(X[0]))
    counts, explored = np.zeros(K), np.zeros(K)

    class Grid:
        def random(self, _: int) -> np.ndarray:
            return self.u

    agent.rng = Grid()  # type: ignore[assignment]
    for coin in ((np.arange(20) + 0.5) / 20).tolist():
        for place in ((np.arange(n) + 0.5) / n).tolist():
            agent.rng.u = np.array([coin, place])
            decision = agent.act(X[0])
            counts[decision.action] += 1 / (20 * n)
            explored[decision.action] += decision.explored / (20 * n)
    np.testing.assert_allclose(explored, gamma / K, atol=1 / n)
    np.testing.assert_allclose(counts, gamma / K + (1 - gamma) * s, atol=1 / n)
    np.testing.assert_allclose(decision.probabilities, gamma / K + (1 - gamma) * s, rtol=1e-12)


def test_no_forecast_is_made_at_gamma_one(monkeypatch) -> None:
    agent = make("folklore", 3, 1.0)
    monkeypatch.setattr(agent.inner, "predict", lambda context: pytest.fail("nothing looks at the forecast"))
    decision = agent.act(as_contexts(np.ones(D) / 2))
    assert decision.explored
    np.testing.assert_array_equal(decision.probabilities, np.full(3, 1 / 3))


class Counting(Forecaster):
    """A plug-in in pure Python: predicts the label frequencies, whatever the context."""

    id = "counting"
    summary = "label frequencies"
    reference = "none"

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, prior: float = 1.0, gamma: float = 0.0):
        super().__init__(problem, rng)
        self.prior, self.gamma = float(prior), float(gamma)
        self.counts = np.full(problem.n_classes, self.prior)

    def predict(self, context: np.ndarray) -> np.ndarray:
        return np.log(self.counts)

    def update(self, context: np.ndarray, label: int) -> None:
        self.counts[label] += 1


@pytest.fixture
def counting(monkeypatch) -> None:
    table = registry()._entries["forecasters"]
    monkeypatch.setitem(table, "counting", Entry("counting", "forecasters", Counting, "this test"))


@pytest.mark.usefixtures("counting")
def test_a_forecaster_in_pure_python(tmp_path) -> None:
    agent = make("counting", 3, 0.5, prior=2.0, **{"forecaster.gamma": 0.25})
    assert not agent.plays_blocks
    own = {"forecaster": "counting", "gamma": 0.5, "decoding": "sample"}
    assert agent.params() == own | {"prior": 2.0, "forecaster.gamma": 0.25}
    X, y = stream(3, 100)
    trace = steps(agent, X, y)
    taught = trace.explored & trace.correct
    np.testing.assert_array_equal(agent.inner.counts, 2.0 + np.bincount(y[taught], minlength=3))
    block = Trace.empty(100)
    make("counting", 3, 0.5, prior=2.0).play_block(X, y, block)  # round by round
    for one, other in zip(block, trace, strict=True):
        np.testing.assert_array_equal(one, other)
    agent.save(tmp_path / "agent.npz")
    loaded = Exploration.load(tmp_path / "agent.npz")
    np.testing.assert_array_equal(steps(agent, X, y).action, steps(loaded, X, y).action)
    assert agent.bound(100) is None


@pytest.mark.usefixtures("counting")
def test_theory_gamma_needs_a_proved_bound() -> None:
    with pytest.raises(UsageError, match="proved bound"):
        make("counting", 3, "theory")
    with pytest.raises(UsageError, match="proved bound"):
        make("folklore", 3, "theory", curvature="printed")


def test_theory_gamma_is_theorem_9() -> None:
    T, K = 1_000_000, 3
    agent = make("folklore", K, "theory", T=T)
    regret = agent.inner.bound(T)
    assert agent.gamma == pytest.approx(math.sqrt(K * regret / T))
    assert agent.bound(T) == pytest.approx(exploration(T, K, agent.gamma, agent.inner.bound(agent.gamma * T / K)))
    assert agent.bound(T) <= exploration_theorem_9(T, K, regret)
    assert make("folklore", K, "theory", T=10).gamma == 1.0
    with pytest.raises(HorizonRequiredError, match="gamma"):
        Exploration(Problem(D, K, 1.0), np.random.default_rng(0))


def test_bounds_where_nothing_and_where_all_is_explored() -> None:
    """At gamma = 1 every round is a guess, T (1 - 1/K) mistakes, and the regret costs nothing more."""
    guessing, none = (make("folklore", 3, gamma, decoding="half-log") for gamma in (1.0, 0.0))
    assert guessing.bound(90) == pytest.approx(60.0)
    assert guessing.well_specified_bound(1) == pytest.approx(2 / 3)
    assert guessing.certificate() == 0.0
    assert none.bound(90) is None
    assert none.well_specified_bound(1) is None
    assert math.isnan(none.certificate())


def test_refusals() -> None:
    with pytest.raises(UsageError, match="did you mean 'norm_bound'"):
        make("folklore", 3, norm_bond=1.0)
    with pytest.raises(UsageError, match="did you mean 'folklore'"):
        make("folklor", 3)
    with pytest.raises(UsageError, match="twice"):
        make("folklore", 3, norm_bound=1.0, **{"forecaster.norm_bound": 2.0})
    with pytest.raises(UsageError, match="gamma must be a number or 'theory' or 'anytime'"):
        make("folklore", 3, "auto")
    with pytest.raises(UsageError, match=r"gamma must lie in \[0, 1\]"):
        make("folklore", 3, 1.5)
    with pytest.raises(IncompatibleError, match="binary"):
        make("aioli", 3)


@pytest.mark.parametrize(("forecaster", "gamma"), [("ogd", 0.2), ("folklore", 0.2), ("folklore", 0.05)])
def test_expected_mistakes_below_the_bound(forecaster: str, gamma: float) -> None:
    K, n, B = 3, 2000, 2.0
    X, y = stream(K, n)
    mistakes = np.mean([(1 - blocks(make(forecaster, K, gamma, seed, norm_bound=B), X, y).p_true).sum()
                        for seed in range(5)])  # fmt: skip
    hindsight = FOLKLORE(Problem(D, K, 1.0), None, norm_bound=B)
    loss = sum(_learn(hindsight, x, label) for x, label in zip(X, y, strict=True))
    best = loss - hindsight.certificate()  # at most the loss of the best W of the ball
    assert mistakes <= best + make(forecaster, K, gamma, norm_bound=B).bound(n)


def _learn(forecaster: FOLKLORE, x: np.ndarray, label: int) -> float:
    loss = float(logistic_loss(forecaster.predict(x), np.int64(label)))
    forecaster.update(x, label)
    return loss


# --------------------------------------------------------------------------------------------------------------- anytime


def test_the_anytime_rate_is_theorem_9_s_at_the_rounds_so_far() -> None:
    K, n = 3, 400
    problem, settings = Problem(D, K, 1.0), {"decoding": "sample", "norm_bound": 0.3}  # no horizon
    agent = Exploration(problem, np.random.default_rng(0), gamma="anytime", **settings)
    X, _ = stream(K, n)
    seen = []
    for x in X:
        p = agent.act(x).probabilities
        seen.append(agent.rate)
        assert p.min() >= agent.rate / K - 1e-15
    rates = [min(1.0, math.sqrt(K * agent.inner.bound(t) / t)) for t in range(1, n + 1)]
    np.testing.assert_allclose(seen, rates, rtol=1e-12)
    assert seen[0] == 1.0 > seen[-1] > 0.0
    assert np.all(np.diff(seen) <= 0.0)
    assert agent.gamma == agent.params()["gamma"] == "anytime"


@pytest.mark.parametrize(("forecaster", "K"), [("ogd", 3), ("folklore", 5)])
def test_the_two_paths_agree_at_the_anytime_rate(forecaster: str, K: int) -> None:
    n = 5 * STRETCH + 9
    X, y = stream(K, n)
    one = steps(make(forecaster, K, "anytime", norm_bound=0.3), X, y)
    other = blocks(make(forecaster, K, "anytime", norm_bound=0.3), X, y, 1, 300)
    for name in ("action", "correct", "explored"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_allclose(one.p_true, other.p_true, atol=1e-9)
    rates = make(forecaster, K, "anytime", norm_bound=0.3)._rates(0, 1.0, n)
    spread = 4 * math.sqrt((rates * (1 - rates)).sum())
    assert one.explored.sum() == pytest.approx(rates.sum(), abs=spread)


def test_the_anytime_rate_goes_on_after_saving(tmp_path) -> None:
    X, y = stream(3, 600)
    whole, part = (make("ogd", 3, "anytime", norm_bound=0.3) for _ in range(2))
    expected = blocks(whole, X, y)
    blocks(part, X[:350], y[:350])
    part.save(tmp_path / "agent.npz")
    for rest in (Exploration.load(tmp_path / "agent.npz"), pickle.loads(pickle.dumps(part))):
        found = blocks(rest, X[350:], y[350:])
        np.testing.assert_array_equal(found.p_true, expected.p_true[350:])


def test_the_anytime_bound_holds_where_labels_come_from_the_model() -> None:
    K, n, B = 3, 3000, 0.8
    rng = np.random.default_rng(6)
    W = rng.standard_normal((K, D))
    W *= B / np.linalg.norm(W, axis=1, keepdims=True)
    measured = []
    for seed in range(6):
        X, _ = stream(K, n, seed)
        y = np.argmax(X @ W.T + rng.gumbel(size=(n, K)), axis=1)
        agent = make("folklore", K, "anytime", seed, norm_bound=B)
        trace = blocks(agent, X, y)
        measured.append((1 - trace.p_true).sum() - logistic_loss(X @ W.T, y).sum())
    promised = agent.well_specified_bound(n)
    assert np.mean(measured) <= promised <= 3.0 * math.sqrt(K * n * agent.inner.bound(n))
    assert agent.bound(n) is None  # nothing is proved against an adversary
    rates = agent._rates(0, 1.0, n)
    regret = agent.inner.bound(rates.sum() / K)
    assert promised == pytest.approx((1 - 1 / K) * rates.sum() + (1 - rates[-1]) * K / rates[-1] * regret)


def test_at_a_fixed_rate_the_well_specified_bound_is_theorem_9_s() -> None:
    agent = make("folklore", 3, 0.2)
    assert agent.well_specified_bound(500) == pytest.approx(agent.bound(500))
    assert exploration_well_specified(3, 100.0, 0.2, 7.0) == pytest.approx(exploration(500, 3, 0.2, 7.0))


def test_the_argument_of_the_anytime_bound_on_random_excesses() -> None:
    """Sum (1 - g_t) delta_t <= (1 - g_T)(K/g_T) sum (g_t/K) delta_t for delta >= 0; it fails for signed excesses."""
    rng = np.random.default_rng(9)
    for _ in range(200):
        n, K = int(rng.integers(2, 50)), int(rng.integers(2, 6))
        rates = np.sort(rng.uniform(0.05, 1.0, n))[::-1]
        delta = rng.exponential(size=n)
        assert (1 - rates) @ delta <= (1 - rates[-1]) * K / rates[-1] * (rates / K) @ delta + 1e-9
    rates, delta = np.array([0.8, 0.2]), np.array([-1.0, 4.0])  # no regret over the updates: .8 (-1) + .2 (4) = 0
    assert rates @ delta == pytest.approx(0.0)
    assert (1 - rates) @ delta == pytest.approx(3.0)


def test_the_anytime_rate_needs_a_proved_bound_but_no_horizon() -> None:
    with pytest.raises(UsageError, match="gamma = 'anytime' needs a forecaster with a proved bound"):
        make("folklore", 3, "anytime", curvature="printed")


@pytest.mark.parametrize("gamma", ["theory", "anytime"])
def test_a_bound_that_is_no_number_is_one_clear_error(gamma: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OGD, "bound", lambda self, rounds: math.nan if rounds >= 10 else 1.0)

    def made(horizon: int) -> Exploration:
        return Exploration(Problem(2, 3, 1.0, horizon), np.random.default_rng(0), forecaster="ogd", gamma=gamma)  # type: ignore[arg-type]

    if gamma == "theory":
        with pytest.raises(UsageError, match="ogd does not have at these settings; give gamma as a number"):
            made(50)
        assert 0.0 < made(5).gamma <= 1.0  # type: ignore[operator]
        return
    agent = made(50)
    for _ in range(9):
        agent.act(np.ones(2) / 2)
    with pytest.raises(UsageError, match="ogd does not have at these settings"):
        agent.act(np.ones(2) / 2)
    assert agent.acted == 9
