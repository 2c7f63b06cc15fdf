"""OBAMA-lite's net, grid and Langevin chains: brute force, quadrature, each other, and the properties of an agent."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.integrate import quad

from banditlab.agents.obama import mala, net
from banditlab.agents.obama.obama_lite import ObamaLite
from banditlab.agents.obama.tempered import CUT, HITS, hit_weight
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
def test_both_paths_agree_bit_for_bit(sampler):
    X, y = stream(2, 1, 200)
    block, steps = (make(2, 1, **SMALL[sampler]) for _ in range(2))
    trace = Trace.empty(200)
    block.play_block(X[:77], y[:77], trace.part(slice(0, 77)))
    block.play_block(X[77:], y[77:], trace.part(slice(77, 200)))
    for t in range(200):
        decision = steps.act(X[t])
        assert (decision.action, decision.explored) == (trace.action[t], trace.explored[t])
        assert decision.probabilities[y[t]] == trace.p_true[t]
        steps.learn(X[t], decision, decision.action == y[t])
    assert block.diagnostics() == steps.diagnostics()
    expected = np.random.default_rng(1)
    expected.random((200, 2))
    assert block.rng.random() == steps.rng.random() == expected.random()
    assert steps.plays_blocks == (sampler != "mala")


@pytest.mark.parametrize("how", ["save", "pickle"])
@pytest.mark.parametrize("sampler", SMALL)
def test_continues_after_a_round_trip(sampler, how, tmp_path):
    X, y = stream(2, 1, 120)
    agent = make(2, 1, **SMALL[sampler])
    agent.play_block(X[:60], y[:60], Trace.empty(60))
    if how == "save":
        agent.save(tmp_path / "obama.npz")
        again = ObamaLite.load(tmp_path / "obama.npz")
    else:
        again = pickle.loads(pickle.dumps(agent))
    a, b = Trace.empty(60), Trace.empty(60)
    agent.play_block(X[60:], y[60:], a)
    again.play_block(X[60:], y[60:], b)
    np.testing.assert_array_equal(a.action, b.action)
    np.testing.assert_array_equal(a.p_true, b.p_true)
    assert agent.diagnostics() == again.diagnostics()


@pytest.mark.parametrize("sampler", SMALL)
def test_late_feedback_and_errors(sampler):
    """What happens between act and learn does not matter, and an error changes nothing."""
    X, y = stream(2, 1, 60)
    plain, busy = (make(2, 1, **SMALL[sampler]) for _ in range(2))
    for t in range(60):
        decision = plain.act(X[t])
        busy.act(X[t - 1])
        for agent in (plain, busy):
            agent.learn(X[t], decision, decision.action == y[t])
        np.testing.assert_array_equal(plain.act(X[t]).probabilities, busy.act(X[t]).probabilities)
    before = plain.diagnostics()
    plain.learn(X[0], plain.act(X[0]), False)
    assert plain.diagnostics() == before


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


def test_the_draws_come_from_a_child_stream():
    agents = [make(2, 1, **SMALL.get(sampler, {})) for sampler in ("laplace", *SMALL)]
    assert len({agent.rng.random() for agent in agents}) == 1


@pytest.mark.parametrize(
    ("error", "K", "d", "settings", "message"),
    [
        (IncompatibleError, 3, 2, {"sampler": "grid"}, r"sampler = 'grid' needs \(K - 1\) d of at most 2"),
        (IncompatibleError, 7, 9, {"sampler": "mala"}, "sampler = 'mala' is for K d up to 60, got 63"),
        (UsageError, 2, 1, {"members": 0}, "members must be at least 10, got 0"),
        (UsageError, 2, 1, {"chains": 0}, "chains must be at least 1, got 0"),
        (UsageError, 2, 1, {"gamma": 0.0, "norm_bound": 400.0}, "which is 0 at B R = 400: give gamma above 0"),
        (UsageError, 2, 1, {"steps": 2.5}, "steps must be an integer"),
    ],
)
def test_refusals(error, K, d, settings, message):
    with pytest.raises(error, match=message):
        make(K, d, **settings)


def test_what_the_grid_tells_of_itself_by_hand():
    """13 nodes an axis from -12 to 12 prior deviations: two apart, each a deviation of the spacing's half."""
    deviation = 0.5
    members, log_weights = net.grid(169, 3, 1, deviation)
    assert members.shape == (169, 3, 1)
    np.testing.assert_allclose(members.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(members[0]), math.sqrt(2.0) * 12.0 * deviation)
    centre, step = 6 * 13 + 6, 2.0
    assert log_weights[centre] - log_weights[centre + 1] == pytest.approx(step**2 / 2)
    assert np.exp(log_weights).sum() == pytest.approx(1.0)

    def holding(shares):
        with np.errstate(divide="ignore"):
            w = np.log(np.array([shares.get((i, j), 0.0) for i in range(13) for j in range(13)]))
        return net.initial_state(members, w, 0.1, 0.05)

    apart = holding({(6, 6): 0.5, (7, 9): 0.5})  # variances of 1 and 9 deviations^2; the least counts
    assert net.resolution(apart, deviation) == pytest.approx(0.5)
    assert net.effective_members(apart) == pytest.approx(2.0)
    outside = holding({(0, 6): 0.2, (6, 12): 0.3, (1, 11): 0.1, (6, 6): 0.4})
    assert net.edge(outside, deviation) == pytest.approx(0.5)
    assert net.effective_members(outside) == pytest.approx(1 / 0.3)


def test_chains_begin_at_the_last_draw_with_a_step_that_contexts_of_length_r_bear():
    for deviation, radius, step in ((0.5, 4.0, 0.1), (2.5, 2.0, 0.04)):
        state = mala.initial_state((4, 3, 2, 5), deviation, radius, np.random.default_rng(0), 0.1, 0.05)
        assert state.chains.step[0] == pytest.approx(step)
        assert np.array_equal(state.chains.W, np.random.default_rng(0).standard_normal((4, 3, 2, 5))[-1])


@pytest.mark.parametrize(
    ("ratio", "weight", "cut"),
    [(0.5, 0.5, 0), (1.0, 1.0, 0), (1.0 + 0.5e-12, 1.0, 0), (1.0 + 1.5e-12, 1.0, 1), (1.5, 1.0, 1), (2.5, 1.0, 1)],
)
def test_the_weight_of_a_hit(ratio, weight, cut):
    """eta/p, cut at 1 and counted where it is above by more than rounding."""
    hits = np.zeros(2, np.int64)
    assert hit_weight(ratio, hits, 1.0) == weight
    assert (hits[HITS], hits[CUT]) == (1, cut)
    assert hit_weight(0.25, hits, 0.5) == 0.5
    assert hits[HITS] == 2
