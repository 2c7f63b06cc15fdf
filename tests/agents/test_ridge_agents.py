"""LinUCB, LinTS and Confidit against matrices inverted afresh, other libraries, and the laws they claim."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from scipy import stats

from banditlab.agents.ridge.confidit import Confidit
from banditlab.agents.ridge.lints import LinTS, sample_scores
from banditlab.agents.ridge.linucb import LinUCB
from banditlab.agents.ridge.ridge_agent import highest, regress, ridge_state
from banditlab.errors import UsageError
from banditlab.numerics import class_inverses
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.packed_symmetric import dense, pack
from banditlab.numerics.philox import digest, normals
from banditlab.players.agent import Trace
from banditlab.players.rounds import no_prefetch
from banditlab.problem import Problem


def make(cls, K, d, radius=1.0, **settings):
    return cls(Problem(d, K, radius), np.random.default_rng(7), **settings)


@pytest.mark.parametrize("cls", [LinUCB, LinTS, Confidit])
@pytest.mark.parametrize(("K", "d"), [(3, 1), (5, 9)])
def test_contract(one_bit_contract, stream, cls, K, d):
    X, y = stream(K, d, 200, noise=0.3)
    one_bit_contract(lambda: make(cls, K, d), X, y)


def sparse(X, share, seed=3):
    """The contexts with a share of their entries set to 0."""
    return as_contexts(np.where(np.random.default_rng(seed).random(X.shape) < share, 0.0, X))


class Slow:
    """One ridge regression per class, inverted from A whenever it is asked for."""

    def __init__(self, K, d, regularization):
        self.A = np.tile(regularization * np.eye(d), (K, 1, 1))
        self.b = np.zeros((K, d))

    def law(self, x):
        inverse = np.linalg.inv(self.A)
        return np.einsum("kij,kj,i->k", inverse, self.b, x), np.einsum("kij,i,j->k", inverse, x, x)

    def update(self, k, x, target):
        self.A[k] += np.outer(x, x)
        self.b[k] += target * x


# ------------------------------------------------------------------------------------------------------------- LinUCB


@pytest.mark.parametrize(
    ("K", "d", "share", "chosen"),
    [
        (2, 3, 0.0, {}),
        (4, 6, 0.0, {"confidence": 0.2, "regularization": 0.01}),
        (3, 13, 0.9, {"regularization": 2.0}),
        (5, 16, 0.5, {"confidence": 0.0}),
    ],
)
def test_linucb_equals_explicit_inverses(stream, K, d, share, chosen):
    X, y = stream(K, d, 300, noise=0.2)
    X = sparse(X, share)
    agent = make(LinUCB, K, d, **chosen)
    slow = Slow(K, d, agent.regularization)
    clear = 0
    for x, label in zip(X, y):
        decision = agent.act(x)
        mean, form = slow.law(x)
        bound = mean + agent.confidence * np.sqrt(form)
        np.testing.assert_allclose(agent.state.z[:K], bound, rtol=0, atol=1e-9)
        second, first = np.sort(bound)[-2:]
        assert bound[decision.action] >= first - 1e-9
        if first - second > 1e-9:
            clear += 1
            assert decision.probabilities[np.argmax(bound)] == 1.0
        correct = decision.action == label
        slow.update(decision.action, x, float(correct))
        agent.learn(x, decision, correct)
    assert clear > 150


@pytest.mark.slow
def test_lints_in_blocks_that_look_ahead_plays_the_draw_of_explicit_inverses(monkeypatch, stream):
    """However blocks are cut: within a stretch, over its ends, in one piece."""
    monkeypatch.setattr(class_inverses, "LARGE", 1000)
    K, d, T = 3, 16, 200
    X, y = stream(K, d, T, noise=0.2)
    for cuts in ((), (1, 8, 40, 41, 105)):
        agent, trace = make(LinTS, K, d, deviation=0.3), Trace.empty(T)
        assert agent.prefetch() is not no_prefetch
        for i, j in zip([0, *cuts], [*cuts, T], strict=True):
            agent.play_block(X[i:j], y[i:j], trace.part(slice(i, j)))
        slow, n, clear = Slow(K, d, agent.regularization), np.empty(K), 0
        for t, (x, label, action) in enumerate(zip(X, y, trace.action.tolist())):
            mean, form = slow.law(x)
            normals(int(agent.state.tally[1]), t, np.uint64(digest(x)), n)
            z = mean + 0.3 * np.sqrt(form) * n
            second, first = np.sort(z)[-2:]
            assert z[action] >= first - 1e-9
            clear += first - second > 1e-9
            slow.update(action, x, float(action == label))
        assert clear > T - 10
        inverses = [dense(agent.state.inverses.P[k], d) for k in range(K)]
        np.testing.assert_allclose(inverses, np.linalg.inv(slow.A), rtol=0, atol=1e-9)


def test_highest_of_equals_is_uniform():
    p, z = np.empty(5), np.array([1.0, 3.0, 3.0, -math.inf, 3.0, 9.0, 9.0, 9.0])
    grid = (np.arange(3000) + 0.5) / 3000
    actions = [highest(z, p, u) for u in grid]
    assert np.array_equal(np.bincount(actions, minlength=5), [0, 1000, 1000, 0, 1000])
    np.testing.assert_allclose(p, [0, 1 / 3, 1 / 3, 0, 1 / 3])
    assert highest(z, p, np.nextafter(1.0, 0.0)) == 4


def given_actions(K, d, T, seed=5):
    rng = np.random.default_rng(seed)
    X = as_contexts(rng.standard_normal((T, d)) / math.sqrt(d))
    return X, rng.integers(K, size=T), rng.random(T) < 0.4


def test_linucb_agrees_with_river():
    bandit = pytest.importorskip("river.bandit")
    K, d, T = 3, 5, 120
    X, actions, right = given_actions(K, d, T)
    agent = make(LinUCB, K, d, radius=10.0, confidence=1.0, regularization=1.0)
    other = bandit.LinUCBDisjoint(alpha=1.0, beta=1.0)
    for t in range(T):
        decision = agent.act(X[t])
        x = dict(enumerate(X[t].tolist()))
        for k in range(K):
            law = other._bayes_lin_regs[k].predict_one(x, with_dist=True)
            # river's variance is that of the reward: the noise's 1/beta on top of x'A^{-1}x
            width = math.sqrt(law.sigma**2 - 1.0)
            assert agent.state.z[k] == pytest.approx(law.mu + width, abs=1e-9)
        other._bayes_lin_regs[int(actions[t])].learn_one(x=x, y=float(right[t]))
        agent.learn(X[t], decision._replace(action=int(actions[t])), bool(right[t]))


def test_inverses_do_not_drift():
    K, d, T = 2, 8, 100_000
    rng = np.random.default_rng(1)
    X = as_contexts(rng.standard_normal((T, d)) * np.logspace(0, -2, d) / math.sqrt(d))
    agent = make(LinUCB, K, d, radius=3.0, confidence=0.3, regularization=0.1)
    trace = Trace.empty(T)
    agent.play_block(X, (X[:, 0] > 0.2).astype(np.int64), trace)
    for k in range(K):
        own = X[trace.action == k]
        A = 0.1 * np.eye(d) + own.T @ own
        assert len(own) > 1000
        assert np.abs(dense(agent.state.inverses.P[k], d) @ A - np.eye(d)).max() < 1e-6
        b = own.T @ trace.correct[trace.action == k].astype(float)
        np.testing.assert_allclose(agent.state.inverses.H[k], np.linalg.solve(A, b), atol=1e-8)


# -------------------------------------------------------------------------------------------------------------- LinTS


def trained(stream, K=4, d=6, **settings):
    X, y = stream(K, d, 60, noise=0.3)
    agent = make(LinTS, K, d, **settings)
    slow = Slow(K, d, agent.regularization)
    for x, label in zip(X, y):
        decision = agent.act(x)
        correct = decision.action == label
        slow.update(decision.action, x, float(correct))
        agent.learn(x, decision, correct)
    return agent, slow, X


def test_lints_scores_have_the_posteriors_law(stream):
    agent, slow, X = trained(stream, deviation=0.5)
    K, n = 4, 20_000
    Z = np.empty((n, K))
    for i in range(n):
        agent.state.tally[2] = i  # the round's draws, everything else held fixed
        sample_scores(agent.state, X[3])
        Z[i] = agent.state.z[:K]
    mean, form = slow.law(X[3])
    sigma = 0.5 * np.sqrt(form)
    assert np.all(np.abs(Z.mean(axis=0) - mean) < 5 * sigma / math.sqrt(n))
    assert np.all(np.abs(Z.var(axis=0) / sigma**2 - 1) < 5 * math.sqrt(2 / n))
    standard = (Z - mean) / sigma
    assert np.abs((standard**3).mean(axis=0)).max() < 5 * math.sqrt(15 / n)
    assert np.abs((standard**4).mean(axis=0) - 3).max() < 5 * math.sqrt(96 / n)
    assert np.abs(np.corrcoef(standard.T) - np.eye(K)).max() < 5 / math.sqrt(n)
    # and it is the law of x'theta_k for theta_k ~ N(mu_k, v^2 B_k^{-1}), drawn in full
    rng = np.random.default_rng(0)
    for k in range(K):
        inverse = np.linalg.inv(slow.A[k])
        theta = rng.multivariate_normal(inverse @ slow.b[k], 0.25 * inverse, size=4000)
        assert stats.ks_2samp(theta @ X[3], Z[:, k]).pvalue > 1e-3


def test_lints_plays_the_best_of_its_draw_and_draws_anew(stream):
    agent, _, X = trained(stream, deviation=0.5)
    actions = set()
    for i in range(200):
        agent.state.tally[2] = 1000 + i
        decision = agent.act(X[5])
        agent.state.tally[2] -= 1  # the draw once more
        sample_scores(agent.state, X[5])
        assert decision.action == np.argmax(agent.state.z[:4])
        assert decision.probabilities[decision.action] == 1.0
        actions.add(decision.action)
    assert len(actions) > 1
    before = [agent.state.z[:4].copy() for x in X[:2] if sample_scores(agent.state, x) is None]
    noise = [
        (z - slow_z) for z, slow_z in zip(before, [agent.state.inverses.H[:, -6:] @ x for x in X[:2]], strict=True)
    ]
    assert np.abs(noise[0] / noise[1] - 1).min() > 1e-6  # contexts of one round meet different draws


def test_lints_acts_again_as_it_did(tmp_path):
    """The draw is a function of the state: a copy, saved or pickled, draws the same; the next act draws another."""
    agent = LinTS(Problem(4, 3, 1.0), np.random.default_rng(5), deviation=5.0)
    x = np.eye(4)[1]
    for _ in range(7):
        agent.act(x)  # never told
    agent.save(tmp_path / "agent.npz")
    copies = [LinTS.load(tmp_path / "agent.npz"), pickle.loads(pickle.dumps(agent)), copy.deepcopy(agent)]
    told = [agent.act(x).action for _ in range(60)]
    assert all([twin.act(x).action for _ in range(60)] == told for twin in copies)
    assert min(told.count(k) for k in range(3)) > 5  # nothing is known: each class leads in a third of the draws
    assert 20 < sum(a != b for a, b in itertools.pairwise(told)) < 55


def test_lints_without_deviation_is_the_greedy_linucb(stream):
    X, y = stream(4, 6, 300, noise=0.2)
    traces = []
    for agent in (make(LinTS, 4, 6, deviation=0.0), make(LinUCB, 4, 6, confidence=0.0)):
        traces.append(Trace.empty(len(y)))
        agent.play_block(X, y, traces[-1])
    assert np.array_equal(traces[0].action, traces[1].action)


# ----------------------------------------------------------------------------------------------------------- Confidit


def projected(A, w, x, low, high):
    """argmin of (w' - w)'A(w' - w) over low <= w'x <= high, from the conditions of optimality in long precision."""
    m = w @ x
    if low <= m <= high:
        return w
    direction = np.linalg.solve(A, x)
    return w + (min(max(m, low), high) - m) / (x @ direction) * direction


@pytest.mark.parametrize(
    ("K", "d", "radius", "chosen"),
    [
        (2, 3, 1.0, {}),
        (4, 6, 1.0, {"alpha": 0.2, "eta": 0.3}),
        (3, 7, 2.5, {"eta": 100.0}),
        (3, 5, 0.1, {"alpha": -0.5}),
    ],
)
def test_confidit_equals_explicit_inverses(stream, K, d, radius, chosen):
    X, y = stream(K, d, 300, noise=0.2)
    X = as_contexts(radius * X)
    agent = make(Confidit, K, d, radius=radius, **chosen)
    alpha, eta = agent.alpha, agent.eta
    A, w = np.tile((1 + alpha) ** 2 * np.eye(d), (K, 1, 1)), np.zeros((K, d))
    for x, label in zip(X, y):
        decision = agent.act(x)
        unit = x / radius
        form = np.einsum("kij,i,j->k", np.linalg.inv(A), unit, unit)
        bound = np.clip(w @ unit, -alpha, 1.0) + np.sqrt(eta * form)
        np.testing.assert_allclose(agent.state.z[:K], bound, rtol=0, atol=1e-9)
        assert bound[decision.action] >= bound.max() - 1e-9
        assert np.array_equal(decision.probabilities, np.eye(K)[decision.action])
        i, correct = decision.action, decision.action == label
        kept = projected(A[i], w[i], unit, -alpha, 1.0)
        old = A[i].copy()
        A[i] = old + np.outer(unit, unit)
        w[i] = np.linalg.inv(A[i]) @ (old @ kept + (1.0 if correct else -alpha) * unit)
        agent.learn(x, decision, correct)


def test_the_projection_is_the_nearest_point_of_the_slab():
    rng = np.random.default_rng(2)
    d = 4
    root = rng.standard_normal((d, d))
    A, w = root @ root.T + np.eye(d), 3 * rng.standard_normal(d)
    for low, high in ((-0.5, 0.5), (2.0, 9.0), (-9.0, -2.0)):
        for x in rng.standard_normal((20, d)):
            best = projected(A, w, x, low, high)
            assert low - 1e-9 <= best @ x <= high + 1e-9
            for other in best + 0.1 * rng.standard_normal((50, d)):
                if low <= other @ x <= high:
                    assert (other - w) @ A @ (other - w) >= (best - w) @ A @ (best - w) - 1e-9
            ridge = ridge_state(Problem(d, 2, 1.0), 1.0)
            pack(np.linalg.inv(A), ridge.inverses.P[0])
            ridge.inverses.H[0, -d:] = w
            regress(ridge, 0, as_contexts(x), 0.7, low, high)
            direct = np.linalg.solve(A + np.outer(x, x), A @ best + 0.7 * x)
            np.testing.assert_allclose(ridge.inverses.H[0, -d:], direct, rtol=0, atol=1e-9)


@pytest.mark.parametrize("cls", [LinUCB, LinTS, Confidit])
def test_contexts_in_other_units_give_the_same_play(stream, cls):
    X, y = stream(4, 6, 300)
    unit, scaled = make(cls, 4, 6), make(cls, 4, 6, radius=4.0)
    one, two = Trace.empty(len(y)), Trace.empty(len(y))
    unit.play_block(X, y, one)
    scaled.play_block(as_contexts(4.0 * X), y, two)
    if cls is LinTS:  # other contexts meet other draws: the mean is compared, not the play
        assert abs(one.correct.mean() - two.correct.mean()) < 0.1
    else:
        assert np.array_equal(one.action, two.action)


def test_settings_resolve():
    assert make(LinUCB, 3, 4, radius=2.0).regularization == pytest.approx(0.4)
    assert make(LinTS, 3, 4, radius=2.0).regularization == pytest.approx(0.4)
    agent = make(Confidit, 3, 4)
    assert (agent.alpha, agent.eta) == (1.0, 3.0)
    assert dense(agent.state.inverses.P, 4)[0, 0, 0] == 0.25
    assert all(make(cls, 3, 4).bound(10) is None for cls in (LinUCB, LinTS, Confidit))


@pytest.mark.parametrize(
    ("cls", "chosen", "message"),
    [
        (LinUCB, {"confidence": -1.0}, "confidence must be a number that is 0 or above"),
        (LinUCB, {"regularization": 0.0}, "regularization must be a number above 0"),
        (LinTS, {"deviation": -0.1}, "deviation must be a number that is 0 or above"),
        (LinTS, {"regularization": "theory"}, "regularization must be one of 'auto'"),
        (Confidit, {"alpha": -1.0}, "alpha must be above -1 and at most 1"),
        (Confidit, {"alpha": 1.1}, "alpha must be above -1 and at most 1"),
        (Confidit, {"alpha": float("nan")}, "alpha must be above -1 and at most 1"),
        (Confidit, {"eta": -1.0}, "eta must be a number that is 0 or above"),
    ],
)
def test_refuses_bad_settings(cls, chosen, message):
    with pytest.raises(UsageError, match=message):
        make(cls, 3, 4, **chosen)


# -------------------------------------------------------------------------------------------------------- whole streams


@pytest.mark.parametrize(("cls", "most"), [(LinUCB, 0.05), (LinTS, 0.05), (Confidit, 0.12)])
@pytest.mark.few(1)
def test_digits_with_default_settings(cls, most):
    from banditlab.envs.digits import Digits

    T, mistakes = 20_000, []
    for seed in range(3):
        env = Digits(horizon=T)
        env.reset(seed=seed)
        [(X, y)] = env.blocks(T, T)
        trace = Trace.empty(T)
        cls(env.problem, np.random.default_rng(seed)).play_block(as_contexts(X), y, trace)
        mistakes.append(1.0 - trace.correct.mean())
    assert np.median(mistakes) <= most
