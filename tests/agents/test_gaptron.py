"""Gaptron against the pseudocode in plain numpy, the gap inequality its proof rests on, and its bound on a run."""

from __future__ import annotations

import copy
import functools
import math

import numpy as np
import pytest

from banditlab.agents.gaptron import Gaptron
from banditlab.errors import HorizonRequiredError, UsageError
from banditlab.losses import logistic_gradient, logistic_loss, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.policy.direct import Direct
from banditlab.problem import Problem

LN2 = math.log(2.0)
LOSSES = ("logistic", "hinge", "smooth-hinge")


def make(K, d, T=None, radius=1.0, **settings):
    return Gaptron(Problem(d, K, radius, T), np.random.default_rng(7), **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"gamma": 0.1, "step": "adaptive"},
        {"gamma": 0.5, "step": 2.0, "norm_bound": 0.3},
        {"loss": "hinge", "gamma": 0.1, "step": "adaptive"},
        {"loss": "smooth-hinge", "gamma": 0.3, "step": 1.0, "norm_bound": 0.5},
    ],
)
@pytest.mark.parametrize(("K", "d"), [(3, 1), (5, 9)])
def test_contract(one_bit_contract, stream, K, d, settings):
    X, y = stream(K, d, 200)
    one_bit_contract(lambda: make(K, d, T=200, **settings), X, y)


def margin(z, y):
    return z[y] - np.delete(z, y).max()


def surrogate(loss, z, y):
    """The loss at scores z (K,), in bits where logistic, and its gradient (K,); the round's own loss for the hinge."""
    K, m, top = len(z), margin(z, y), int(np.argmax(z))
    if loss == "logistic":
        return logistic_loss(z, y) / LN2, (softmax(z) - np.eye(K)[y]) / LN2
    rival = np.argmax(np.where(np.arange(K) == y, -np.inf, z))
    direction = np.eye(K)[rival] - np.eye(K)[y]
    if loss == "hinge":
        return (0.0, 0.0 * direction) if top == y and m > 0.5 else (1 - m, direction)
    if m <= 0:
        return 1 - 2 * m, 2 * direction
    return max(0.0, 1 - m) ** 2, 2 * max(0.0, 1 - m) * direction


def distribution(loss, z, gamma):
    """The pseudocode's p' at scores z (K,)."""
    K, top = len(z), int(np.argmax(z))
    p_star, m_star = softmax(z).max(), margin(z, top)
    a = {
        "logistic": 1.0 - p_star if p_star >= 0.5 else 1.0,
        "hinge": 0.0 if m_star > 0.5 else 1.0 - m_star,
        "smooth-hinge": (1.0 - min(1.0, m_star)) ** 2,
    }[loss]
    m = max(a, gamma)
    played = np.full(K, m / K)
    played[top] += 1.0 - m
    return played


@pytest.mark.parametrize(
    ("K", "d", "binds", "settings"),
    [
        (3, 4, False, {"gamma": 0.2, "norm_bound": 50.0, "step": 0.3}),
        (4, 7, True, {"gamma": 0.3, "norm_bound": 0.5, "step": 0.3}),
        (4, 7, False, {"gamma": 0.3, "norm_bound": 0.5, "step": 0.3, "project": False}),
        (2, 3, False, {"gamma": 0.05, "step": "adaptive"}),
        (5, 9, False, {"gamma": 0.1, "step": "adaptive", "step_scale": 3.0}),
        (5, 9, True, {"gamma": 0.1, "step": "adaptive", "project": True}),
        (3, 17, False, {"gamma": 0.4}),
        (3, 4, True, {"gamma": 0.0, "step": 0.5}),
        (3, 4, False, {"gamma": 0.3, "step": "wide", "norm_bound": 50.0}),
        (3, 4, True, {"loss": "hinge", "gamma": 0.2, "step": 0.5}),
        (5, 9, False, {"loss": "hinge", "gamma": 0.1, "step": "adaptive"}),
        (3, 4, True, {"loss": "smooth-hinge", "gamma": 0.2, "step": 0.5}),
        (5, 9, False, {"loss": "smooth-hinge", "gamma": 0.1, "step": "adaptive"}),
        (2, 3, False, {"loss": "smooth-hinge", "gamma": 0.0, "step": 0.1, "project": False}),
    ],
)
@pytest.mark.few(5)
def test_equals_the_pseudocode(stream, K, d, binds, settings):
    X, y = stream(K, d, 500)
    agent = make(K, d, **settings)
    W, squares, hits, bound = np.zeros((K, d)), 0.0, 0, 0
    D = math.sqrt(K) * agent.norm_bound
    for x, label in zip(X, y):
        decision = agent.act(x)
        played = distribution(agent.loss, W @ x, agent.gamma)
        np.testing.assert_allclose(decision.probabilities, played, rtol=0, atol=1e-9)
        correct = decision.action == label
        if correct:
            g = np.outer(surrogate(agent.loss, W @ x, label)[1], x) / played[label]
            squares += np.sum(g**2)
            eta = agent.step if agent.step != "adaptive" else agent.step_scale / math.sqrt(2 * (1e-8 + squares))
            W -= eta * g
            if agent.project and np.linalg.norm(W) > D:
                W *= D / np.linalg.norm(W)
                bound += 1
            hits += 1
        agent.learn(x, decision, correct)
        np.testing.assert_allclose(agent.weights, W, rtol=0, atol=1e-9)
    assert hits > 50
    assert (bound > 20) == binds


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradient_estimate_is_unbiased(stream, loss):
    K, d = 4, 6
    X, y = stream(K, d, 150)
    agent = make(K, d, loss=loss, gamma=0.3, step=0.5, project=False)
    for x, label in zip(X, y):
        decision = agent.act(x)
        mean = np.zeros((K, d))
        for action in range(K):
            twin = copy.deepcopy(agent)
            twin.learn(x, decision._replace(action=action), action == label)
            mean += decision.probabilities[action] * (agent.weights - twin.weights) / agent.step
        np.testing.assert_allclose(mean, np.outer(surrogate(loss, agent.weights @ x, label)[1], x), atol=1e-12)
        agent.learn(x, decision, decision.action == label)


def test_the_written_gradients_are_those_of_the_losses():
    """Finite differences, away from the kinks; the logistic one is that of `losses`."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        z, y = rng.standard_normal(5), int(rng.integers(5))
        for loss in LOSSES:
            slope = [(surrogate(loss, z + h, y)[0] - surrogate(loss, z - h, y)[0]) / 2e-6 for h in 1e-6 * np.eye(5)]
            np.testing.assert_allclose(slope, surrogate(loss, z, y)[1], atol=1e-4)
        expected = logistic_gradient(z[:, None], np.ones(1), y)[:, 0] / LN2
        np.testing.assert_allclose(surrogate("logistic", z, y)[1], expected, atol=1e-12)


def critical_scores(K, rng):
    """Random scores of every scale, two classes that hold everything, near ties, margins around kappa and 1."""
    z = rng.standard_normal((400, K)) * 10 ** rng.uniform(-2, 1.2, (400, 1))
    z[:100, 2:] = -40.0
    z[:50, 1] = z[:50, 0] - rng.uniform(0, 3, 50)
    z[100:200, 1:] = z[100:200, :1] - np.sort(rng.uniform(0, 3, (100, 1)), axis=0)  # all but one alike
    edges = np.array([0.0, 1e-9, 0.5 - 1e-9, 0.5, 0.5 + 1e-9, 1 - 1e-9, 1.0])
    ties = np.zeros((len(edges), K))
    ties[:, 0] = edges
    return np.vstack([z, ties])


@functools.cache
def cases(K, loss):
    """Scores (n, K), and the loss and ||gradient||^2 for every label (n, K)."""
    z = critical_scores(K, np.random.default_rng(K))
    found = [[surrogate(loss, row, label) for label in range(K)] for row in z]
    return z, np.array([[v for v, _ in row] for row in found]), np.array([[g @ g for _, g in row] for row in found])


def largest_brace(K, gamma, step, loss="logistic", unit=1.0, bandit=True):
    """Return the largest of P(mistake) + (step/2) E||g||^2 - loss - allowance over W, y; p' is the agent's own.

    unit is the loss's in units of the player's: LN2 turns bits into nats.
    """
    agent = make(K, 1, gamma=gamma, step=1.0, loss=loss)
    z, value, square = cases(K, loss)
    played = np.empty_like(z)
    for scores, p in zip(z, played):
        agent.state.V[:] = scores[:, None]
        p[:] = agent.act(np.ones(1)).probabilities
    estimate = unit**2 * square / (played if bandit else 1.0)
    return np.max(1 - played + step / 2 * estimate - unit * value) - bandit * gamma * (K - 1) / K


CONSTANT = {"logistic": LN2 / 2, "hinge": 0.5, "smooth-hinge": 0.25}


@pytest.mark.parametrize("K", [2, 3, 10, 30])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.few(4)
def test_gap_inequality(K, loss):
    assert largest_brace(K, 0.0, CONSTANT[loss] / K, loss, bandit=False) <= 1e-12  # full information: the brace is <= 0
    for gamma in (0.01, 0.1, 0.5, 1.0):  # one bit: <= gamma (K-1)/K at the theorem's step, and at the wide one
        theory, wide = (make(K, 1, gamma=gamma, step=step, loss=loss).step for step in ("theory", "wide"))
        assert theory == pytest.approx(gamma * CONSTANT[loss] / K**2)
        assert wide == pytest.approx(gamma * CONSTANT[loss] / K * (2.5 if loss == "logistic" else 1.0))
        assert largest_brace(K, gamma, theory, loss) <= 1e-12
        assert largest_brace(K, gamma, wide, loss) <= 1e-12


@pytest.mark.parametrize("K", [2, 3, 10, 30])
def test_the_steps_are_tight(K):
    """With full information the hinges' steps cannot be 5 % longer; nor can their wide steps, at one gamma each."""
    for loss in ("hinge", "smooth-hinge"):
        assert largest_brace(K, 0.0, 1.05 * CONSTANT[loss] / K, loss, bandit=False) > 1e-4
    assert largest_brace(K, 0.01, 1.05 * 0.01 * 0.5 / K, "hinge") > 1e-4
    assert largest_brace(K, 1.0, 1.05 * 0.25 / K, "smooth-hinge") > 1e-4


def worst_wide_brace(factor):
    """The logistic brace of two classes sharing all but nothing, y the lesser: q = a = gamma, on a grid (any K)."""
    a = np.linspace(1e-3, 0.5, 5001)
    return np.max(1 - a + factor / (2 * LN2) * (1 - a) ** 2 + np.log2(a))


def test_the_logistic_wide_step_has_a_tenth_to_spare():
    assert worst_wide_brace(2.5) == pytest.approx(-0.0492, abs=1e-4)
    assert worst_wide_brace(2.75) < 0 < worst_wide_brace(2.77)


@pytest.mark.parametrize("K", [2, 3, 10, 30])
def test_gap_inequality_fails_in_nats_and_for_a_larger_step(K):
    assert largest_brace(K, 0.0, LN2 / (2 * K), unit=LN2, bandit=False) > 0.05
    assert largest_brace(K, 0.1, 20.0 * 0.1 * LN2 / (2 * K)) > 0.0


@pytest.mark.parametrize(
    ("loss", "step"), [("logistic", "theory"), *((loss, "wide") for loss in LOSSES), ("hinge", "theory")]
)
def test_the_bound_holds_on_a_run(stream, loss, step):
    K, d, T = 3, 4, 20_000
    X, y = stream(K, d, T)
    agent = make(K, d, T=T, norm_bound=0.5, loss=loss, step=step)
    trace = Trace.empty(T)
    agent.play_block(X, y, trace)
    for U in (np.zeros((K, d)), agent.weights * min(1.0, 0.5 / np.linalg.norm(agent.weights, axis=1).max())):
        Z = X @ U.T
        m = Z[np.arange(T), y] - np.where(np.arange(K) == y[:, None], -np.inf, Z).max(axis=1)
        cost = {
            "logistic": logistic_loss(Z, y) / LN2,
            "hinge": np.maximum(0.0, 1.0 - m),
            "smooth-hinge": np.where(m <= 0, 1 - 2 * m, np.maximum(0.0, 1 - m) ** 2),
        }[loss]
        assert (1 - trace.p_true).sum() <= cost.sum() + agent.surrogate_bound(T)
    assert agent.surrogate_bound(T) < T
    assert agent.bound(T) == (agent.surrogate_bound(T) if loss == "logistic" else None)


def test_settings_resolve():
    theory = make(10, 65, T=20_000, norm_bound=0.2, radius=2.0)
    D = math.sqrt(10) * 0.2
    assert theory.gamma == pytest.approx(10 * 2.0 * D / math.sqrt(20_000 * LN2))
    assert theory.step == pytest.approx(theory.gamma * LN2 / (2 * 100 * 4.0))
    assert theory.project is True
    assert make(10, 65, T=100).gamma == 1.0
    adaptive = make(3, 4, gamma=0.1, step="adaptive")
    assert (adaptive.step, adaptive.project, adaptive.step_scale) == ("adaptive", False, 10.0)
    assert adaptive.bound(100) is None
    wide = make(3, 4, gamma=0.1, step="wide").step
    assert make(3, 4, gamma=0.1, step=wide).bound(100) is not None
    assert make(3, 4, gamma=0.1, step=1.001 * wide).bound(100) is None  # above the wide step
    for loss, P in (("logistic", 10 * 16.0 / (2.5 * LN2)), ("hinge", 10 * 16.0), ("smooth-hinge", 2 * 10 * 16.0)):
        wide = make(10, 65, T=20_000, norm_bound=2 / math.sqrt(10), radius=2.0, loss=loss, step="wide")
        assert wide.gamma == pytest.approx(math.sqrt(P / 20_000))
        assert wide.surrogate_bound(20_000) == pytest.approx((1 + 0.9) * math.sqrt(P * 20_000))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.5}, r"gamma must lie in \[0, 1\]"),
        ({"gamma": "best"}, "gamma must be a number or 'theory'"),
        ({"gamma": 0.0}, "needs gamma above 0"),
        ({"gamma": 0.0, "step": "wide"}, "needs gamma above 0"),
        ({"gamma": 0.1, "loss": "log"}, "loss must be one of 'logistic', 'hinge', 'smooth-hinge'"),
        ({"gamma": 0.1, "step": "fast"}, "step must be a number or 'theory' or 'wide' or 'adaptive'"),
        ({"gamma": 0.1, "step": 0.0}, "step must be a number above 0"),
        ({"gamma": 0.1, "step_scale": -1.0}, "step_scale must be a number above 0"),
        ({"gamma": 0.1, "norm_bound": 0.0}, "norm_bound must be a number above 0"),
        ({"gamma": 0.1, "project": "yes"}, "project must be true, false or 'auto'"),
    ],
)
def test_refuses_bad_settings(settings, message):
    with pytest.raises(UsageError, match=message):
        make(3, 2, **settings)


def test_theory_needs_the_horizon():
    with pytest.raises(HorizonRequiredError, match="gamma = 'theory' needs the horizon"):
        make(3, 2)


@pytest.mark.parametrize("direct", [False, True])
def test_what_a_round_does_not_write_of_its_payload_is_zero_and_not_what_lay_there(direct):
    """The hinge losses have no use for the last number: it was what memory held, which now and then was no number."""
    agent = Gaptron(Problem(1, 3, 1.0), np.random.default_rng(7), loss="hinge", gamma=0.1, step="adaptive")
    x = as_contexts(np.array([[0.5]]))[0]
    kernels = Direct(agent, x)
    for _ in range(50):
        poison = [np.full(agent.payload_size, np.nan) for _ in range(20)]
        del poison
        payload = kernels.decide(agent, x)[3] if direct else agent.act(x).payload
        assert payload[-1] == 0.0
        assert np.isfinite(payload).all()
