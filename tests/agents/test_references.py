"""Agents that observe the label: slow witnesses, both paths, inequalities, and who may see a label at all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.agents.perceptron import Perceptron
from banditlab.agents.randomized_decoding import RandomizedDecoding
from banditlab.agents.sampled import Sampled
from banditlab.bounds.perceptron import perceptron
from banditlab.bounds.randomized_decoding import decoding_step, randomized_decoding
from banditlab.engine import play
from banditlab.envs.adversary import Adversary
from banditlab.envs.logistic import Logistic
from banditlab.errors import UsageError
from banditlab.forecasters.ogd import OGD
from banditlab.losses import logistic_loss, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Agent, Trace
from banditlab.players.label_agent import LabelAgent
from banditlab.problem import Decision, Problem

LN2 = math.log(2.0)
D, K, R, N = 5, 4, 2.0, 600


def stream(seed: int = 0, n: int = N, scale: float = 3.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return contexts with ||x|| <= R, labels of a noisy logistic model, and its matrix."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    X *= R / np.maximum(R, np.linalg.norm(X, axis=1))[:, None]
    W = scale * rng.standard_normal((K, D))
    return as_contexts(X), np.argmax(X @ W.T + rng.gumbel(size=(n, K)), axis=1), W


def make(cls: type[LabelAgent], seed: int = 5, **settings) -> LabelAgent:
    return cls(Problem(D, K, R, N), np.random.default_rng(seed), **settings)


def by_steps(agent: LabelAgent, X: np.ndarray, y: np.ndarray) -> list[Decision]:
    decisions = []
    for x, label in zip(X, y, strict=True):
        decisions.append(agent.act(x))
        agent.learn(x, decisions[-1], int(label))
    return decisions


def by_blocks(agent, X: np.ndarray, y: np.ndarray, *cuts: int) -> Trace:
    trace = Trace.empty(len(y))
    for a, b in zip((0, *cuts), (*cuts, len(y)), strict=True):
        agent.play_block(X[a:b], y[a:b], trace.part(slice(a, b)))
    return trace


# ------------------------------------------------------------------------------------------------------------ perceptron


def test_perceptron_is_its_definition() -> None:
    X, y, _ = stream()
    W, actions = np.zeros((K, D)), []
    for x, label in zip(X, y, strict=True):
        actions.append(int(np.argmax(W @ x)))
        W += np.outer(np.eye(K)[label] - np.eye(K)[actions[-1]], x)
    agent = make(Perceptron)
    np.testing.assert_array_equal(by_blocks(agent, X, y).action, actions)
    np.testing.assert_allclose(agent.weights, W, atol=1e-9)


def test_two_classes_are_the_binary_perceptron() -> None:
    X, y, _ = stream()
    y = (y > 1).astype(np.int64)
    w, actions = np.zeros(D), []
    for x, label in zip(X, y, strict=True):
        actions.append(int(w @ x > 0))  # the first of equals is class 0
        w += (label - actions[-1]) * x
    agent = Perceptron(Problem(D, 2, R), np.random.default_rng(0))
    np.testing.assert_array_equal(by_blocks(agent, X, y).action, actions)


@pytest.mark.parametrize("scale", [0.1, 0.5, 2.0])
def test_perceptron_keeps_its_bound(scale: float) -> None:
    X, y, W = stream(3)
    U = scale * W
    margins = X @ U.T
    own = margins[np.arange(N), y]
    margins[np.arange(N), y] = -np.inf
    hinge = np.maximum(0.0, 1.0 - own + margins.max(axis=1)).sum()
    mistakes = np.count_nonzero(~by_blocks(make(Perceptron), X, y).correct)
    assert mistakes <= perceptron(hinge, float(np.linalg.norm(U)), R)
    assert make(Perceptron).bound(N) is None


# --------------------------------------------------------------------------------------------------- randomized decoding


@pytest.mark.parametrize("settings", [{}, {"norm_bound": 0.3, "step": 0.5}])
def test_decoding_is_gradient_descent_on_the_base_two_loss(settings) -> None:
    """The witness is written in the paper's base-2 scores U x, with W = U ln 2, and projects every round."""
    X, y, _ = stream()
    agent = make(RandomizedDecoding, **settings)
    eta, radius = agent.step / LN2**2, agent.frobenius_bound / LN2
    U = np.zeros((K, D))
    for x, label, decision in zip(X, y, by_steps(agent, X, y), strict=True):
        theta = U @ x
        q = 2.0 ** (theta - theta.max())
        q /= q.sum()
        r = min(1.0, 2.0 * (1.0 - q.max()))
        np.testing.assert_allclose(decision.probabilities, r * q + (1 - r) * np.eye(K)[np.argmax(q)], atol=1e-9)
        U -= eta * np.outer(q - np.eye(K)[label], x)
        U *= min(1.0, radius / np.linalg.norm(U))
    np.testing.assert_allclose(agent.weights, U * LN2, atol=1e-9)
    assert (np.linalg.norm(agent.weights) >= agent.frobenius_bound * (1 - 1e-9)) == bool(settings)  # the ball binds


def test_decoding_errs_no_more_than_the_loss_in_nats_and_gradients_are_paid_for() -> None:
    rng = np.random.default_rng(2)
    for _ in range(4000):
        k = int(rng.integers(2, 7))
        z = rng.standard_normal(k) * rng.choice([0.1, 1.0, 5.0, 20.0])
        x, y = rng.standard_normal(3), int(rng.integers(k))
        q = softmax(z)
        loss = float(logistic_loss(z, np.int64(y))) / LN2
        r = min(1.0, 2.0 * (1.0 - q.max()))
        errs = 1.0 - r * q[y] - (1.0 - r) * (np.argmax(q) == y)
        assert errs <= loss * LN2 + 1e-12
        squares = np.sum((q - np.eye(k)[y]) ** 2) / LN2**2 * (x @ x)
        assert squares <= (x @ x) * loss / LN2 + 1e-12


@pytest.mark.parametrize(("seed", "flip"), [(0, 0.0), (1, 0.3), (2, 1.0)])
def test_decoding_keeps_its_bound_at_every_prefix(seed: int, flip: float) -> None:
    X, y, W = stream(seed, scale=1.0)
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(N) < flip, rng.integers(K, size=N), y)
    B = float(np.linalg.norm(W, axis=1).max())
    agent = make(RandomizedDecoding, norm_bound=B)
    expected = np.cumsum(1.0 - by_blocks(agent, X, y).p_true)
    bound = agent.bound(N)
    assert bound == pytest.approx(K * B**2 * R**2 / (4.0 * LN2 * (1.0 - LN2)))
    for U in (W, np.zeros_like(W), 0.3 * W):
        assert (expected <= np.cumsum(logistic_loss(X @ U.T, y)) / LN2 + bound).all()


def test_decoding_s_bound_is_none_above_the_theorem_s_step() -> None:
    largest = decoding_step(R)
    assert make(RandomizedDecoding).step == largest
    assert make(RandomizedDecoding, step=1.01 * largest).bound(N) is None
    half = make(RandomizedDecoding, step=0.5 * largest, norm_bound=2.0)
    assert half.bound(N) == randomized_decoding(2.0 * math.sqrt(K), 0.5 * largest)
    with pytest.raises(UsageError, match="step must be a number or 'theory'"):
        make(RandomizedDecoding, step="adaptive")


# --------------------------------------------------------------------------------------------------------------- sampled


def test_sampled_plays_its_forecaster_s_forecast() -> None:
    X, y, _ = stream()
    agent, alone = (
        make(Sampled, forecaster="ogd", norm_bound=4.0, decoding="sample"),
        OGD(Problem(D, K, R, N), None, norm_bound=4.0),
    )
    total = 0.0
    for x, label, decision in zip(X, y, by_steps(agent, X, y), strict=True):
        z = alone.predict(x)
        np.testing.assert_allclose(decision.probabilities, softmax(z), atol=1e-15)
        total += float(logistic_loss(z, np.int64(label)))
        alone.update(x, int(label))
    expected = (1.0 - by_blocks(make(Sampled, forecaster="ogd", norm_bound=4.0, decoding="sample"), X, y).p_true).sum()
    assert expected <= total
    assert agent.bound(N) == alone.bound(N)
    assert agent.params() == {"forecaster": "ogd", "decoding": "sample"} | alone.params()


def test_sampled_keeps_its_forecaster_s_bound() -> None:
    X, y, W = stream(4, scale=1.0)
    agent = make(Sampled, forecaster="folklore", norm_bound=float(np.linalg.norm(W, axis=1).max()))
    expected = (1.0 - by_blocks(agent, X, y).p_true).sum()
    assert expected <= logistic_loss(X @ W.T, y).sum() + agent.bound(N)
    with pytest.raises(UsageError, match="sampled of folklore has no setting 'norm_bond'"):
        make(Sampled, forecaster="folklore", norm_bond=1.0)


# ------------------------------------------------------------------------------------------- who is told what, and by whom


class Notes:
    """An agent's two verbs that note what they are told."""

    def act(self, context):
        self.rng.random(2)
        return Decision(0, np.eye(self.problem.n_classes)[0])

    def learn(self, context, decision, told):
        self.told = [*getattr(self, "told", []), told]


class Pretender(Notes, Agent):
    """Says that it observes the label, and is an agent of one bit."""

    feedback = "label"
    explores = False


class Told(Notes, LabelAgent):
    pass


@pytest.mark.parametrize("environment", [Logistic, Adversary])
def test_the_label_goes_to_label_agents_by_type(environment) -> None:
    env = environment(horizon=30)
    problem = env.unwrapped.problem
    pretender, told = (cls(problem, np.random.default_rng(0)) for cls in (Pretender, Told))
    play(env, pretender, seed=1)
    assert all(isinstance(bit, bool | np.bool_) for bit in pretender.told)
    played = play(env, told, seed=1, keep_trace=True)
    np.testing.assert_array_equal(told.told, env.unwrapped.labels())
    np.testing.assert_array_equal(played.trace.correct, np.array(told.told) == 0)
    assert math.isnan(played.explored[-1])


def test_a_generator_is_needed() -> None:
    with pytest.raises(UsageError, match="Perceptron draws actions: rng must be a numpy Generator, got None"):
        Perceptron(Problem(D, K, R), None)
