"""OBAMA-lite's net, grid and Langevin chains: brute force, quadrature, each other, and the properties of an agent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from banditlab.agents.obama.obama_lite import ObamaLite
from banditlab.bounds.obama import obama_net
from banditlab.errors import IncompatibleError, UsageError
from banditlab.losses import logistic_loss, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Decision, Problem

SMALL = {
    "net": {"sampler": "net", "members": 50},
    "grid": {"sampler": "grid", "members": 400},
    "mala": {"sampler": "mala", "chains": 3, "steps": 4},
}


def stream(K, d, T, seed=0):
    rng = np.random.default_rng(seed)
    planted = 6.0 * rng.standard_normal((K, d))
    X = rng.standard_normal((T, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(rng.random(T) < 0.2, rng.integers(K, size=T), np.argmax(X @ planted.T, axis=1))
    return as_contexts(X), y.astype(np.int64)


def make(K, d, seed=1, gamma=0.2, norm_bound=3.0, **settings):
    return ObamaLite(
        Problem(d, K, 1.0),
        np.random.default_rng(seed),
        decoding="sample",
        norm_bound=norm_bound,
        gamma=gamma,
        **settings,
    )


def hits_of(agents, X, y):
    """Play every agent on its own; return the list of their (context, action, weight) triples so far, before each act."""
    for x, label in zip(X, y):
        for agent, hits in agents:
            decision = agent.act(x)
            yield agent, x, decision.probabilities, hits
            agent.learn(x, decision, decision.action == label)
            if decision.action == label:
                eta = agent.gamma / len(decision.probabilities)
                hits.append((x, label, eta / decision.probabilities[label]))


def brute_force(members, log_prior, hits, x, gamma):
    """q_t from scratch: prior times product of softmax(W x)_y^w over all the hits."""
    w = log_prior.copy()
    for context, label, weight in hits:
        w -= weight * logistic_loss(members @ context, np.full(len(members), label))
    w = np.exp(w - w.max())
    qbar = w @ softmax(members @ x) / w.sum()
    return (1 - gamma) * qbar + gamma / len(qbar)


@pytest.mark.parametrize(("K", "d"), [(2, 1), (3, 2), (5, 3)])
def test_the_net_is_exponential_weights(K, d):
    agent = make(K, d, sampler="net", members=70)
    members = agent.state.M.copy()
    assert members.std() == pytest.approx(3.0 / math.sqrt(d), rel=0.15)
    X, y = stream(K, d, 150)
    for _, x, q, hits in hits_of([(agent, [])], X, y):
        np.testing.assert_allclose(q, brute_force(members, np.zeros(70), hits, x, 0.2), rtol=0, atol=1e-9)
    assert len(hits) == agent.diagnostics()["hits"] > 30
    assert 1.0 < agent.diagnostics()["ess"] < 70.0


def tempered_integral(hits, B, slope):
    """The integral over margins m of the posterior's unnormalised density times 2 sigmoid(slope m)."""
    signed = np.array([context[0] * (1 if label == 0 else -1) for context, label, _ in hits])
    weights = np.array([weight for *_, weight in hits])

    def density(m):
        return 2.0 / (1.0 + np.exp(-slope * m)) * np.exp(-(m**2) / (4 * B**2) - weights @ np.logaddexp(0, -signed * m))

    return quad(density, -60, 60, points=[0.0], epsabs=0, epsrel=1e-12, limit=400)[0]


def test_the_grid_equals_quadrature():
    """K = 2, d = 1 by scipy's adaptive rule over the difference of the rows, which is N(0, 2 B^2)."""
    B, agent = 3.0, make(2, 1, sampler="grid", norm_bound=3.0)
    X, y = stream(2, 1, 120)
    checked = 0
    for t, (_, x, q, hits) in enumerate(hits_of([(agent, [])], X, y)):
        if t % 20 != 19:
            continue

        whole, part = (tempered_integral(hits, B, factor) for factor in (0.0, x[0]))
        np.testing.assert_allclose(q[0], 0.4 * part / whole + 0.1, rtol=0, atol=1e-9)
        checked += 1
    assert checked == 6
    assert agent.diagnostics()["resolution"] > 2.0
    assert agent.diagnostics()["edge"] < 1e-20


def test_a_posterior_beyond_the_grid_shows_at_its_edge():
    """At B R = 0.1 a thousand hits move the posterior to 15 prior deviations; the grid ends at 12."""
    agent, x = make(2, 1, sampler="grid", norm_bound=0.1, gamma=1.0), np.ones(1)
    for _ in range(1000):
        agent.learn(x, Decision(1, np.array([0.5, 0.5]), True, np.empty(0)), True)
    assert agent.diagnostics()["resolution"] > 1.0  # which alone would not tell
    assert agent.diagnostics()["edge"] > 0.01


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_chains_move_the_same_whatever_the_units_of_the_contexts(unit):
    """x in other units and B in theirs is the same problem: the step's limits must not stop the chains."""
    X, y = stream(2, 2, 60)
    plain, other = (
        ObamaLite(
            Problem(2, 2, R, 60),
            np.random.default_rng(4),
            decoding="sample",
            norm_bound=2.0 / R,
            gamma=0.5,
            sampler="mala",
            chains=3,
        )
        for R in (1.0, 1.0 / unit)
    )
    traces = [Trace.empty(60), Trace.empty(60)]
    plain.play_block(X / np.linalg.norm(X, axis=1).max(), y, traces[0])
    other.play_block(X / np.linalg.norm(X, axis=1).max() / unit, y, traces[1])
    np.testing.assert_allclose(traces[0].p_true, traces[1].p_true, rtol=1e-9)
    assert other.diagnostics()["acceptance"] > 0.2


@pytest.mark.parametrize(("K", "d"), [(3, 1), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_the_plane_grid_equals_gauss_hermite(K, d):
    """Two coordinates: the prior's own rule on all Kd of them, where the posterior is still wide."""
    points, weights = np.polynomial.hermite_e.hermegauss(20)
    size = K * d
    W = np.stack(np.meshgrid(*[points] * size, indexing="ij"), axis=-1).reshape(-1, K, d) / math.sqrt(d)
    log_prior = np.log(np.stack(np.meshgrid(*[weights] * size, indexing="ij"), axis=-1).reshape(-1, size)).sum(axis=1)
    agent = make(K, d, sampler="grid", norm_bound=1.0, members=2500)
    assert len(agent.state.M) == 2500
    X, y = stream(K, d, 48)
    for t, (_, x, q, hits) in enumerate(hits_of([(agent, [])], X, y)):
        if t % 6 == 5:
            np.testing.assert_allclose(q, brute_force(W, log_prior, hits, x, 0.2), rtol=0, atol=1e-7)
    assert len(hits) > 5


@pytest.mark.parametrize("K", [2, 3])
def test_chains_and_laplace_are_close_to_the_grid(K):
    """The same hits for all three: half the l1 distance of their averages, itself a mean over the later rounds."""
    exact = make(K, 1, sampler="grid", members=4000)
    chains, laplace = make(K, 1, sampler="mala", chains=32, steps=20), make(K, 1, samples=4000)
    X, y = stream(K, 1, 160)
    far = {"mala": [], "laplace": []}
    for x, label in zip(X, y):
        decision = exact.act(x)
        for agent in (chains, laplace):
            q = agent.act(x).probabilities
            far[agent.sampler].append(0.5 * np.abs(q - decision.probabilities).sum() / 0.8)
        for agent in (exact, chains, laplace):
            agent.learn(x, decision, decision.action == label)
    assert np.mean(far["mala"]) < 0.02
    assert np.max(far["mala"]) < 0.12  # 640 dependent draws, their effective number below
    assert np.mean(far["laplace"]) < 0.05  # the prior's deviation is 3: a wide posterior is not Gaussian
    found = chains.diagnostics()
    assert 0.4 < found["acceptance"] < 0.75  # steered to 0.574
    assert found["ess"] > 60.0
    assert exact.diagnostics()["ess"] > 10.0


def test_chains_forget_where_they_began():
    """Two runs fed the same many hits agree with each other and with a large net of the same prior."""
    K, d = 3, 2
    X, y = stream(K, d, 150)
    agents = [make(K, d, seed=s, norm_bound=2.0, sampler="mala", chains=24, steps=20) for s in (1, 2)]
    net = make(K, d, seed=3, norm_bound=2.0, sampler="net", members=20_000)
    for x, label in zip(X, y):
        decision = net.act(x)
        for agent in (*agents, net):
            agent.learn(x, decision, decision.action == label)
    assert net.diagnostics()["ess"] > 300.0
    for x in X[:20]:
        exact = net.act(x).probabilities
        for agent in agents:
            np.testing.assert_allclose(agent.act(x).probabilities, exact, atol=0.06)


@pytest.mark.parametrize("sampler", SMALL)
def test_contract(one_bit_contract, sampler):
    X, y = stream(3, 1, 200)
    one_bit_contract(lambda: make(3, 1, seed=7, **SMALL[sampler]), X, y)
    assert make(2, 1, **SMALL[sampler]).plays_blocks == (sampler != "mala")


def test_the_net_keeps_its_bound_on_a_run():
    K, d, T, N = 3, 2, 6000, 20
    X, y = stream(K, d, T)
    agent = make(K, d, sampler="net", members=N, gamma=0.1, norm_bound=6.0)
    trace = Trace.empty(T)
    agent.play_block(X, y, trace)
    best = min(logistic_loss(X @ W.T, y).sum() for W in agent.state.M)
    assert (1 - trace.p_true).sum() <= best + obama_net(T, N, K, 0.1)
    assert obama_net(T, N, K, 0.1) < T / 10
    assert obama_net(T, N, K, 0.1) == pytest.approx(30 * math.log(20) + 0.1 * 2 / 3 * T)
    assert obama_net(T, N, K, 0.0) == math.inf


@pytest.mark.parametrize("sampler", ["laplace", *SMALL])
def test_diagnostics_name_the_sampler_and_are_numbers(sampler):
    agent = make(2, 1, **SMALL.get(sampler, {}))
    X, y = stream(2, 1, 40)
    agent.play_block(X, y, Trace.empty(40))
    found = agent.diagnostics()
    assert found.pop("sampler") == sampler
    assert all(type(value) in (int, float) and math.isfinite(value) for value in found.values())
    more = {"laplace": {"unsolved"}, "net": set(), "grid": {"resolution", "edge"}, "mala": {"acceptance", "step"}}[
        sampler
    ]
    assert set(found) == {"hits", "cut", "ess"} | more


@pytest.mark.parametrize(
    ("error", "K", "d", "settings", "message"),
    [
        (IncompatibleError, 3, 2, {"sampler": "grid"}, r"sampler = 'grid' needs \(K - 1\) d of at most 2"),
        (IncompatibleError, 7, 9, {"sampler": "mala"}, "sampler = 'mala' needs K d of at most 60, got 63"),
        (UsageError, 2, 1, {"members": 0}, "members must be at least 10, got 0"),
        (UsageError, 2, 1, {"chains": 0}, "chains must be at least 1, got 0"),
        (UsageError, 2, 1, {"gamma": 0.0, "norm_bound": 400.0}, "which is 0 at B R = 400: give gamma above 0"),
        (UsageError, 2, 1, {"steps": 2.5}, "steps must be an integer"),
    ],
)
def test_refusals(error, K, d, settings, message):
    with pytest.raises(error, match=message):
        make(K, d, **settings)
