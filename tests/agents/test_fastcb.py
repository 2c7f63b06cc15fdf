"""FastCB and what it shares with SquareCB: the AIOLI models, settings, scale; its own weights in long precision.

The other oracles are tested in test_fastcb_oracles.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

from banditlab.agents.inverse_gap.fastcb import FastCB, inverse_gap
from banditlab.agents.inverse_gap.squarecb import SquareCB
from banditlab.errors import UsageError
from banditlab.forecasters.aioli import AIOLI
from banditlab.numerics import class_inverses
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.players.rounds import no_prefetch
from banditlab.problem import Problem


def make(K, d, radius=1.0, cls=FastCB, challenger=0.0, **settings):
    """One set of models unless a test asks for a challenger: the duel has tests of its own, test_fastcb_duel."""
    if settings.get("oracle", "aioli") == "aioli":
        settings["challenger"] = challenger
    return cls(Problem(d, K, radius), np.random.default_rng(7), **settings)


@pytest.mark.parametrize(("K", "d"), [(3, 1), (5, 9)])
def test_contract(one_bit_contract, stream, K, d):
    X, y = stream(K, d, 150, noise=0.3)
    one_bit_contract(lambda: make(K, d, sharpness=2.0), X, y)


def with_intercept(agent, x):
    """Return the context as the oracle sees it: a constant of `intercept` times R behind it, if that is not 0."""
    return np.append(x, [agent.intercept * agent.problem.radius] * (agent.intercept > 0))


class SlowModel:
    """AIOLI for one class in full matrices: A theta = b - (w/2) tanh(z/2) x, solved afresh every round."""

    def __init__(self, d, regularization, c, w):
        self.A, self.b, self.c, self.w = regularization * np.eye(d), np.zeros(d), c, w

    def margin(self, x):
        inverse_x = np.linalg.solve(self.A, x)
        m, q = inverse_x @ self.b, inverse_x @ x
        return brentq(
            lambda z: z - m + self.w * q / 2 * math.tanh(z / 2), -abs(m) - 1, abs(m) + 1, xtol=1e-14, rtol=1e-14
        )

    def update(self, x, z, y):
        g = -y * expit(-y * z)  # loss' = g x
        eta = 2 * self.c * math.exp(y * z)
        self.A += eta / 2 * g**2 * np.outer(x, x)
        self.b += 0.5 * (eta * g * z - 1) * g * x


def played_with(agent, z, t):
    """Return the probabilities of round t from the margins, as the two papers have them."""
    K, wrong, best = len(z), expit(-z), np.argmax(z)
    g = agent.sharpness * K * t**agent.growth
    if isinstance(agent, FastCB):
        p = wrong[best] / (K * wrong[best] + g * (wrong - wrong[best]))
    else:
        p = 1.0 / (K + g * (wrong - wrong[best]))
    p[best] += 1 - p.sum()
    return p


@pytest.mark.parametrize("cls", [FastCB, SquareCB])
@pytest.mark.parametrize(
    ("K", "d", "chosen"),
    [
        (2, 3, {}),
        (4, 6, {"norm_bound": 3.0, "regularization": 0.01, "sharpness": 1.0}),
        (3, 9, {"curvature": "tight", "norm_bound": 5.0, "regularization": 1.0, "sharpness": 0.5, "growth": 0.0}),
        (5, 4, {"curvature": 0.4, "regularization": 1e-3, "growth": 1.0, "virtual_weight": 0.5, "intercept": 0.0}),
        (3, 12, {"intercept": 2.0, "virtual_weight": 0.0, "regularization": 0.1}),
    ],
)
@pytest.mark.few(4)
def test_equals_full_matrices(stream, cls, K, d, chosen):
    X, y = stream(K, d, 250, noise=0.2)
    agent = make(K, d, cls=cls, **chosen)
    d += agent.intercept > 0
    models = [SlowModel(d, agent.regularization, agent.curvature, agent.virtual_weight) for _ in range(K)]
    for t, (x, label) in enumerate(zip(X, y), start=1):
        decision = agent.act(x)
        full = with_intercept(agent, x)
        z = np.array([model.margin(full) for model in models])
        np.testing.assert_allclose(decision.payload, z, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(decision.probabilities, played_with(agent, z, t), rtol=0, atol=1e-9)
        correct = decision.action == label
        models[decision.action].update(full, decision.payload[decision.action], 1 if correct else -1)
        agent.learn(x, decision, correct)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [FastCB, SquareCB])
def test_blocks_that_look_ahead_equal_full_matrices(monkeypatch, stream, cls):
    """However blocks are cut: within a stretch, over its ends, in one piece."""
    # below 1000 the stub in place of a challenger looks ahead as well: SquareCB then has kernels that other tests compile
    monkeypatch.setattr(class_inverses, "LARGE", 1000 if cls is FastCB else 0)
    K, d, T = 3, 16, 150
    X, y = stream(K, d, T, noise=0.2)
    for cuts in ((), (1, 8, 40, 41, 105)):
        agent, trace = make(K, d, cls=cls, sharpness=2.0), Trace.empty(T)
        assert agent.prefetch() is not no_prefetch
        for i, j in zip([0, *cuts], [*cuts, T], strict=True):
            agent.play_block(X[i:j], y[i:j], trace.part(slice(i, j)))
        models = [SlowModel(d + 1, agent.regularization, agent.curvature, agent.virtual_weight) for _ in range(K)]
        for t, (x, label, action) in enumerate(zip(X, y, trace.action.tolist()), start=1):
            full = with_intercept(agent, x)
            z = np.array([model.margin(full) for model in models])
            assert trace.p_true[t - 1] == pytest.approx(played_with(agent, z, t)[label], rel=0, abs=1e-9)
            models[action].update(full, z[action], 1 if action == label else -1)


@pytest.mark.parametrize("cls", [FastCB, SquareCB])
def test_each_class_is_the_aioli_of_its_rounds(stream, cls):
    K, d = 4, 6
    X, y = stream(K, d, 400, noise=0.2)
    agent = make(K, d, cls=cls, sharpness=3.0)
    settings = {name: getattr(agent, name) for name in ("regularization", "curvature", "virtual_weight")}
    oracle = [AIOLI(Problem(d + 1, 2, 1.2), None, **settings) for _ in range(K)]
    for x, label in zip(X, y):
        decision = agent.act(x)
        full = with_intercept(agent, x)
        expected = [model.predict(full)[0] for model in oracle]
        np.testing.assert_allclose(decision.payload, expected, rtol=1e-9, atol=1e-9)
        correct = decision.action == label
        oracle[decision.action].update(full, 0 if correct else 1)
        agent.learn(x, decision, correct)


@pytest.mark.parametrize("cls", [FastCB, SquareCB])
@pytest.mark.parametrize("scale", [0.01, math.sqrt(55)])
def test_contexts_in_other_units_give_the_same_play(stream, cls, scale):
    X, y = stream(4, 6, 300)
    unit, scaled = make(4, 6, cls=cls), make(4, 6, cls=cls, radius=scale)
    one, two = Trace.empty(len(y)), Trace.empty(len(y))
    unit.play_block(X, y, one)
    scaled.play_block(as_contexts(scale * X), y, two)
    assert np.array_equal(one.action, two.action)
    np.testing.assert_allclose(one.p_true, two.p_true, rtol=0, atol=1e-9)
    assert scaled.curvature == pytest.approx(unit.curvature)


# ---------------------------------------------------------------------------------------------------------- the weights


margins = st.lists(
    st.one_of(st.floats(-1000, 1000), st.floats(-5, 5), st.sampled_from([0.0, 37.0, 745.0, 1000.0, -1000.0])),
    min_size=2,
    max_size=12,
)


def weights(z, g, kernel=inverse_gap):
    p = np.full(len(z), np.nan)
    kernel(np.array(z, dtype=float), float(g), p)
    return p


@given(margins, st.floats(1e-3, 1e9))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_weights_are_a_distribution_for_any_margins(z, g):
    p, z, K = weights(z, g), np.array(z), len(z)
    best = int(np.argmax(z))
    assert p.min() >= 0.0
    assert abs(p.sum() - 1.0) <= 1e-12
    assert p[best] >= p.max() - 1e-15
    order = np.argsort(z, kind="stable")
    rest = order[order != best]
    assert np.all(np.diff(p[rest]) >= -1e-15)  # a better margin never has the smaller weight
    np.testing.assert_allclose(p[(z == z[best]) & (np.arange(K) != best)], 1.0 / K, rtol=1e-15)


@given(margins, st.floats(1e-3, 1e9))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_weights_agree_with_long_precision_and_pay_for_their_regret(z, g):
    p, K = weights(z, g), len(z)
    long = np.array(z, dtype=np.longdouble)
    wrong = 1 / (1 + np.exp(long))
    best = int(np.argmax(z))
    expected = wrong[best] / (K * wrong[best] + g * (wrong - wrong[best]))
    other = np.arange(K) != best
    np.testing.assert_allclose(p[other], expected[other].astype(float), rtol=1e-9, atol=1e-300)
    # sum_k p_k (L_k - L_best) <= (K - 1) L_best / g: what exploring costs this round
    assert float(np.sum(p * (wrong - wrong[best]))) <= (K - 1) * float(wrong[best]) / g * (1 + 1e-9) + 1e-300


def test_weights_where_one_minus_p_would_be_zero():
    p = weights([40.0, 38.0, 50.0], 2.0)
    assert p[0] == pytest.approx(1 / (3 + 2 * (math.exp(10) - 1)), rel=1e-12)
    assert np.array_equal(weights([1000.0, 1000.0, -1000.0], 5.0)[:2] > 0.3, [True, True])
    assert weights([1000.0, 0.0], 1.0)[1] == 0.0
    for top, z, g in ((-3.0 + 1e-13, -3.0, 1e13), (2.0 + 1e-12, 2.0, 1e12)):  # a difference would cancel
        assert weights([top, z], g)[1] == pytest.approx(1 / (2 + g * expit(z) * math.expm1(top - z)), rel=1e-12)


# -------------------------------------------------------------------------------------------------------- whole streams


def test_digits_with_default_settings():
    from banditlab.envs.digits import Digits

    mistakes = []
    for seed in range(3):
        env = Digits(horizon=20_000)
        env.reset(seed=seed)
        agent = FastCB(env.problem, np.random.default_rng(seed))
        wrong = 0
        for X, y in env.blocks(20_000, 5_000):
            trace = Trace.empty(len(y))
            agent.play_block(as_contexts(X), y, trace)
            wrong += np.sum(~trace.correct)
        mistakes.append(wrong / 20_000)
    assert np.median(mistakes) <= 0.022


def test_settings_resolve():
    agent = make(3, 4, radius=2.0)
    assert (agent.norm_bound, agent.regularization, agent.curvature) == (0.5, 0.003 * 4, 0.25)
    assert make(3, 4, norm_bound=3.0).curvature == 0.125
    assert agent.bound(100) is None


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"norm_bound": 0.0}, "norm_bound must be a number above 0"),
        ({"norm_bound": "large"}, "norm_bound must be one of 'auto'"),
        ({"regularization": -1.0}, "regularization must be a number above 0"),
        ({"curvature": "wide"}, "curvature must be one of 'simple', 'tight'"),
        ({"sharpness": 0.0}, "sharpness must be a number above 0"),
        ({"growth": -0.5}, "growth must be a number that is 0 or above"),
        ({"intercept": -1.0}, "intercept must be a number that is 0 or above"),
        ({"virtual_weight": -1.0}, "virtual_weight must be a number that is 0 or above"),
        ({"oracle": "trees"}, "oracle must be one of 'aioli', 'logistic', 'b-grid'"),
        ({"step": 2.0}, "step applies to oracle = 'logistic' only, not to 'aioli'"),
        ({"oracle": "logistic", "norm_bound": 2.0}, "norm_bound applies to oracle = 'aioli' or 'b-grid' only"),
        ({"oracle": "logistic", "step": 0.0}, "step must be a number above 0"),
        ({"oracle": "b-grid", "grid_ratio": 1.0}, "grid_ratio must be a number above 1"),
        ({"oracle": "b-grid", "grid_size": 0}, "grid_size must be at least 1"),
        ({"oracle": "b-grid", "curvature": "wide"}, "curvature must be one of 'simple', 'tight'"),
    ],
)
def test_refuses_bad_settings(chosen, message):
    with pytest.raises(UsageError, match=message):
        make(3, 4, **chosen)
