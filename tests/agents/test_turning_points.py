"""Where a rule turns, on both sides and by hand: coins that fall on the rate, margins at a kink, steps next to the largest,
contexts of zeros and of ones, and what a decision of each agent carries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit, softmax

from banditlab.agents.banditron import Banditron
from banditlab.agents.decoded_descent import DecodedDescent
from banditlab.agents.epsilon_greedy import EpsilonGreedy
from banditlab.agents.epsilon_greedy_direct import EpsilonGreedyDirect
from banditlab.agents.exploration import Exploration
from banditlab.agents.gaptron import Gaptron
from banditlab.agents.inverse_gap.fastcb import FastCB
from banditlab.agents.inverse_gap.inverse_gap_agent import score
from banditlab.agents.inverse_gap.squarecb import SquareCB
from banditlab.agents.newtron import Newtron
from banditlab.agents.obama.obama_lite import ObamaLite
from banditlab.agents.ovr_perceptron import OvRPerceptron
from banditlab.agents.perceptron import Perceptron
from banditlab.agents.pnewtron import PNewtron
from banditlab.agents.randomized_decoding import RandomizedDecoding
from banditlab.agents.rdue import RDUE
from banditlab.agents.ridge.confidit import Confidit
from banditlab.agents.ridge.lints import LinTS
from banditlab.agents.ridge.linucb import LinUCB
from banditlab.agents.sampled import Sampled
from banditlab.agents.soba import SOBA
from banditlab.agents.soba_diag import SOBAdiag
from banditlab.agents.stacked.stackcb import StackCB
from banditlab.agents.uniform import Uniform
from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.sparse_rows import SparseRows
from banditlab.players.agent import Trace
from banditlab.problem import Problem

K, D = 3, 4
X = as_contexts(np.array([[0.5, 0.0, -0.25, 0.5], [0.0, 0.5, 0.5, 0.125]]))


def make(cls: Any, K: int = K, d: int = D, radius: float = 1.0, horizon: int | None = 100, **settings: Any) -> Any:
    return cls(Problem(d, K, radius, horizon), np.random.default_rng(7), **settings)


def asked(agent: Any, x: np.ndarray, coin: float, place: float = 0.5) -> Any:
    """Return the decision at given uniforms."""
    return agent._decide(x, np.array([coin, place]))


# ---------------------------------------------------------------------------------------------------------------- coins

HALF_LOG = {"decoding": "half-log"}
TOSSING = [
    (Banditron, {}),
    (EpsilonGreedy, {}),
    (EpsilonGreedyDirect, {}),
    (Exploration, {"forecaster": "ogd"}),
    (Newtron, {}),
    (Gaptron, HALF_LOG),
    (PNewtron, {}),
    (SOBA, {}),
    (SOBAdiag, {}),
    (RDUE, {}),
    (DecodedDescent, {}),
    (ObamaLite, {}),
]


@pytest.mark.parametrize(("cls", "settings"), TOSSING)
def test_a_coin_explores_below_the_rate_and_not_at_it(cls, settings):
    agent = make(cls, gamma=0.25, **settings)
    assert asked(agent, X[0], 0.25).explored is False
    explored = asked(agent, X[0], np.nextafter(0.25, 0.0), 0.99)
    assert (explored.explored, explored.action) == (True, 2)


class Fixed:
    """A generator that hands out the uniforms it was given."""

    def __init__(self, U: np.ndarray) -> None:
        self.U = U

    def random(self, shape: Any) -> np.ndarray:
        return self.U


@pytest.mark.parametrize("forecaster", ["ogd", "folklore"])
def test_a_block_explores_below_the_rate_and_not_at_it(forecaster):
    """The uniform class is the label in every round: a coin on the rate teaches nothing all the same."""
    for coin, explores in ((0.25, False), (np.nextafter(0.25, 0.0), True)):
        agent, trace = make(Exploration, forecaster=forecaster, gamma=0.25), Trace.empty(6)
        before = agent.inner.predict(X[0])
        agent.rng = Fixed(np.column_stack([np.full(6, coin), np.full(6, 0.5)]))
        agent.play_block(as_contexts(np.tile(X[0], (6, 1))), np.ones(6, np.int64), trace)
        assert trace.explored.tolist() == [explores] * 6
        assert np.array_equal(agent.inner.predict(X[0]), before) != explores


@pytest.mark.parametrize(("forecaster", "array"), [("ogd", "V"), ("folklore", "h")])
def test_at_the_rate_one_no_forecast_is_looked_at_in_blocks_either(forecaster, array):
    agent, trace = make(Exploration, forecaster=forecaster, gamma=1.0), Trace.empty(2)
    getattr(agent.inner.state, array)[:] = np.nan
    agent.rng = Fixed(np.full((2, 2), 0.5))
    agent.play_block(X, np.zeros(2, np.int64), trace)  # the class 1 is drawn, and is wrong
    assert trace.p_true.tolist() == [1 / 3, 1 / 3]
    assert trace.action.tolist() == [1, 1]


def test_a_stretch_whose_last_rate_alone_is_below_one_is_forecast(monkeypatch):
    agent, trace = make(Exploration, forecaster="folklore", gamma="anytime", decoding="sample"), Trace.empty(2)
    for _ in range(3):
        agent.inner.update(X[1], 1)
    monkeypatch.setattr(agent, "_next_rates", lambda n: np.array([1.0, 0.5])[:n])
    agent.rng = Fixed(np.array([[0.5, 0.5], [0.75, 0.5]]))
    agent.play_block(X, np.array([0, 2]), trace)
    s = softmax(agent.inner.predict(X[1]))
    np.testing.assert_allclose(trace.p_true, [1 / 3, 0.5 / 3 + 0.5 * s[2]], rtol=1e-12)
    assert abs(s[2] - 1 / 3) > 0.01


def test_the_draw_of_a_decoding_comes_below_its_share_and_not_at_it():
    """q = (3/4, 1/4): a draw from q with probability r = 1/2, else the larger class."""
    agent = make(RandomizedDecoding, K=2, d=1)
    agent.state.V[:] = [[math.log(3.0)], [0.0]]
    x = as_contexts(np.ones(1))
    r = 2.0 * (1.0 - asked(agent, x, 0.0).payload[0])
    assert r == pytest.approx(0.5)
    assert asked(agent, x, r, 0.99).action == 0
    assert asked(agent, x, np.nextafter(r, 0.0), 0.99).action == 1


# ------------------------------------------------------------------------------------------- rates of nothing and of all


def test_bounds_where_nothing_and_where_all_is_explored():
    """At gamma = 1 every round is a guess, T (1 - 1/K) mistakes, and the regret costs nothing more."""
    all_, none = (make(Exploration, gamma=gamma, decoding="half-log") for gamma in (1.0, 0.0))
    assert all_.bound(90) == pytest.approx(60.0)
    assert all_.well_specified_bound(1) == pytest.approx(2 / 3)
    assert all_.certificate() == 0.0
    assert none.bound(90) is None
    assert none.well_specified_bound(1) is None
    assert math.isnan(none.certificate())
    D = math.sqrt(K)
    for cls, settings in ((DecodedDescent, {}), (Gaptron, HALF_LOG)):
        agent = make(cls, gamma=1.0, **settings)
        assert agent.bound(90) == pytest.approx(D**2 / (2 * agent.step) + 60.0)
        assert make(cls, gamma=0.0, step=0.1, **settings).bound(90) is None
    assert make(RDUE, gamma=1.0).bound(90) > 60.0
    assert make(RDUE, gamma=0.5, step="adaptive", project=True).bound(90) is None
    assert make(RDUE, gamma=0.5, project=True).bound(90) == make(RDUE, gamma=0.5).bound(90)


@pytest.mark.parametrize(
    ("cls", "largest", "settings"),
    [
        *((Gaptron, {"step": "wide"}, {"gamma": 0.3, "loss": loss}) for loss in ("logistic", "hinge", "smooth-hinge")),
        (RandomizedDecoding, {}, {}),
        (RandomizedDecoding, {}, HALF_LOG),
    ],
)
def test_a_step_above_the_largest_has_no_bound(cls, largest, settings):
    """To a rounding of 1e-12; half the largest has one."""
    step = make(cls, **largest, **settings).step
    for factor, proved in ((0.5, True), (1.0, True), (1.0 + 1e-12, True), (1.0 + 1.5e-12, False), (1.5, False)):
        agent = make(cls, step=step * factor, **settings)
        bound = agent.surrogate_bound(100) if cls is Gaptron else agent.bound(100)
        assert (bound is not None) == proved, factor


# ---------------------------------------------------------------------------------------------------------------- kinks


@pytest.mark.parametrize(
    ("loss", "margin", "share"),
    [
        ("hinge", 0.0, 1.0),
        ("hinge", 0.5, 0.5),
        ("hinge", np.nextafter(0.5, 1.0), 0.0),
        ("smooth-hinge", 0.5, 0.25),
        ("smooth-hinge", 1.0, 0.0),
        ("smooth-hinge", 1.5, 0.0),
    ],
)
def test_how_much_gaptron_randomises_at_a_margin(loss, margin, share):
    agent, x = make(Gaptron, d=1, loss=loss, gamma=0.0, step=0.1), as_contexts(np.ones(1))
    agent.state.V[:] = [[margin], [0.0], [0.0]]
    np.testing.assert_allclose(agent.act(x).probabilities, [1 - share + share / 3, share / 3, share / 3], atol=1e-15)


@pytest.mark.parametrize(
    ("loss", "margin", "label", "slope"),
    [
        ("hinge", 0.5, 0, 1.0),
        ("hinge", np.nextafter(0.5, 1.0), 0, 0.0),
        ("hinge", 0.75, 1, 1.0),
        ("smooth-hinge", 0.25, 0, 1.5),
        ("smooth-hinge", 0.5, 1, 2.0),
        ("smooth-hinge", 1.0, 0, 0.0),
        ("smooth-hinge", 1.5, 0, 0.0),
    ],
)
def test_gaptron_s_gradient_at_a_margin(loss, margin, label, slope):
    """-slope/p' for the label's score, +slope/p' for the best other one's: the losses' own derivatives."""
    agent, x = make(Gaptron, d=1, loss=loss, gamma=0.3, step=0.1, project=False), as_contexts(np.ones(1))
    agent.state.V[:] = W = np.array([[margin], [0.0], [0.0]])
    decision = agent.act(x)
    p = decision.probabilities[label]
    agent.learn(x, decision._replace(action=label), True)
    rival = 1 if label == 0 else 0
    expected = 0.1 * slope / p * (np.eye(3)[label] - np.eye(3)[rival])
    np.testing.assert_allclose((agent.weights - W)[:, 0], expected, atol=1e-12)


def test_a_hit_beyond_the_margin_moves_nothing_in_a_ball_kept_up_to_date():
    agent = make(Gaptron, loss="hinge", gamma=0.0, step=0.1)
    agent.state.V[0] = [4.0, 0.0, 0.0, 4.0]
    before = agent.weights.copy()
    trace = Trace.empty(1)
    agent.play_block(SparseRows.of(scipy.sparse.csr_array(X[:1])), np.zeros(1, np.int64), trace)
    assert trace.correct.all()
    assert agent.state.norm.updates[0] == 0.0
    assert np.array_equal(agent.weights, before)


def test_the_largest_and_the_least_ball_of_pnewtron():
    for norm in (1e-150, 1.5e-150, 0.9e150, 1e150):
        assert make(PNewtron, norm_bound=norm).norm_bound == norm
    for norm in (0.9e-150, 1.5e150):
        with pytest.raises(UsageError, match="norm_bound must lie between 1e-150 and"):
            make(PNewtron, norm_bound=norm)


# --------------------------------------------------------------------------------------------- contexts of zeros and ones


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (RDUE, {"gamma": 0.3}),
        (Gaptron, {"gamma": 0.3}),
        (DecodedDescent, {"gamma": 0.3}),
        (EpsilonGreedy, {}),
        (EpsilonGreedyDirect, {}),
        (PNewtron, {}),
        (SOBA, {}),
        (SOBAdiag, {}),
        (Banditron, {}),
        (FastCB, {"oracle": "logistic", "intercept": 0.0}),
    ],
)
def test_a_context_of_zeros_teaches_nothing(cls, settings):
    agent, x = make(cls, **settings), as_contexts(np.zeros(D))
    agent.learn(x, agent.act(x), True)
    weights = agent.state.oracle.H if cls is FastCB else agent.weights
    assert not weights.any()
    assert np.isfinite(agent.act(X[0]).probabilities).all()


ONES = as_contexts(
    np.array([[1.0, 0.0, -0.5], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [-0.5, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.5, 1.0]])
)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [EpsilonGreedy, EpsilonGreedyDirect, PNewtron, SOBAdiag])
def test_weights_by_columns_learn_from_ones_and_zeros_as_those_by_rows_do(cls):
    """Of 1,024 features more, always 0, the layout is another one: kernels that go entry by entry."""
    wide = as_contexts(np.hstack([ONES, np.zeros((len(ONES), 1024))]))
    short, long = (make(cls, d=d, radius=2.0, gamma=0.4) for d in (3, 1027))
    assert long.weights.flags.f_contiguous
    for t in range(6):
        one, other = short.act(ONES[t]), long.act(wide[t])
        assert one.action == other.action
        np.testing.assert_allclose(other.probabilities, one.probabilities, rtol=0, atol=1e-12)
        short.learn(ONES[t], one, t % 3 < 2)
        long.learn(wide[t], other, t % 3 < 2)
        np.testing.assert_allclose(long.weights[:, :3], short.weights, rtol=1e-9, atol=1e-12)
    assert not long.weights[:, 3:].any()
    assert (short.weights != 0.0).sum() >= 6
    if cls is SOBAdiag:
        np.testing.assert_allclose(long.state.tally, short.state.tally, rtol=1e-9)


def first_hit(ridge, a, p):
    """W (K, d) and A^{-1} after one accepted hit of class 0 at x = (a, 0), the class 1 the rival: by numpy's solver."""
    g = np.zeros((K, 2))
    g[0, 0], g[1, 0] = -a / p, a / p
    z = math.sqrt(p) * g.ravel()
    A = ridge * np.eye(2 * K) + np.outer(z, z)
    return np.linalg.solve(A, -g.ravel()).reshape(K, 2), np.linalg.inv(A)


@pytest.mark.parametrize(("ridge", "a", "gamma"), [(1.0, 1.0, 0.3), (0.125, 0.25, 0.0)])
def test_soba_s_first_hit(ridge, a, gamma):
    """Entries of x that are 1; and, in the second case, one of A^{-1} z/(1 + z'A^{-1}z) that is."""
    agent, x = make(SOBA, d=2, gamma=gamma, ridge=ridge), as_contexts(np.array([a, 0.0]))
    decision = agent.act(x)
    p = decision.probabilities[0]
    assert p == 1.0 - gamma + gamma / 3
    agent.learn(x, decision._replace(action=0), True)
    W, inverse = first_hit(ridge, a, p)
    np.testing.assert_allclose(agent.weights, W, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(agent.state.C, inverse, rtol=1e-12, atol=1e-15)


# -------------------------------------------------------------------------------------------------- oracles and the duel


def test_a_gradient_that_is_one_and_one_that_is_zero():
    """AdaGrad by hand at z = 0, where the slope of a miss is 1/2: g = x / 2, and every entry's first step is the step."""
    agent = make(FastCB, d=3, radius=4.0, oracle="logistic", intercept=0.0, step=0.25)
    x = as_contexts(np.array([2.0, 0.0, -1.0]))
    agent.learn(x, agent.act(x)._replace(action=1), False)
    np.testing.assert_allclose(agent.state.oracle.H[:, 1], [-0.25, 0.0, 0.25])
    assert agent.state.oracle.G[:, 1].tolist() == [1.0, 0.0, 0.25]


@pytest.mark.parametrize(("ridge", "hears"), [(1.0, True), (0.9, False), (0.6, False), (4.0, True)])
def test_a_challenger_takes_another_s_hit_for_a_miss_up_to_a_form_of_one(ridge, hears):
    """q = |x|^2 / ridge: at q <= 1 the best other class learns from a hit that it was wrong."""
    agent = make(FastCB, challenger=1.0, regularization=ridge, intercept=0.0)
    x = as_contexts(np.array([0.0, 1.0, 0.0, 0.0]))
    agent.learn(x, agent.act(x)._replace(action=1), True)
    z = agent.act(x).payload
    assert (z[1] > 0.0, z[4] > 0.0) == (True, True)
    assert z[[0, 2]].tolist() == [0.0, 0.0]  # of the first set
    assert (z[3] < 0.0, z[5] == 0.0) == (hears, True)  # of the second: the first of equals


def test_a_duel_ends_beyond_its_lead_and_not_at_it():
    """2.5 sqrt(35 + 1) = 15."""
    best = np.eye(3)
    for winner, start in ((0, [24, 10]), (1, [10, 24])):
        points, won = np.array(start), np.array([-1])
        score(points, won, best[0], best[1], 2)  # neither set's best class was played
        score(points, won, best[winner], best[winner], winner)  # both agree
        assert points.tolist() == start
        score(points, won, best[0], best[1], winner)
        assert (points.max(), won[0]) == (25, -1)
        score(points, won, best[0], best[1], winner)
        assert (points.max(), points.min(), won[0]) == (26, 10, winner)


def weight(cls, z, g):
    """p of the class 1 where the margins are z."""
    p = np.full(2, np.nan)
    cls.weights_kernel(np.array(z), g, p)
    return p[1]


def test_what_a_worse_margin_weighs_where_a_difference_would_cancel_or_overflow():
    """p = 1/(2 + g s(z) (e^gap - 1)): one close behind, far behind on both sides, and where e^z is 0."""
    for top, z, g in ((-3.0 + 1e-13, -3.0, 1e13), (2.0 + 1e-12, 2.0, 1e12), (1000.0, 800.0, 1e-3), (3.0, -1.0, 2.0)):
        gap = top - z
        assert weight(FastCB, [top, z], g) == pytest.approx(1 / (2 + g * expit(z) * math.expm1(gap)), rel=1e-12)
    assert weight(FastCB, [0.0, -1000.0], 2.0) == pytest.approx(1 / (2 + 2.0 * 1.0))  # e^z = 0: (1 - 0)/(1 + 0)


def test_without_an_intercept_the_oracle_sees_the_context_alone():
    assert make(FastCB, intercept=0.0).state.x.shape == (D,)
    assert make(FastCB, intercept=0.5, radius=2.0).state.x.tolist() == [0.0] * D + [1.0]


# ------------------------------------------------------------------------------------------------------------ OBAMA-lite


def test_obama_s_learning_rate_without_exploration():
    """eta = e^{-2 B R}/K."""
    agent = make(ObamaLite, radius=0.5, gamma=0.0, norm_bound=3.0, decoding="sample")
    assert agent.state.eta == pytest.approx(math.exp(-3.0) / 3.0, rel=1e-15)


def test_what_obama_s_samplers_take_and_refuse():
    sizes = {"grid": [(3, 1, True), (2, 2, True), (4, 1, False), (2, 3, False)],
             "mala": [(3, 20, True), (61, 1, False)]}  # fmt: skip
    for sampler, cases in sizes.items():
        for k, d, fits in cases:
            settings = {"K": k, "d": d, "gamma": 0.5, "sampler": sampler, "chains": 1, "steps": 1, "members": 10}
            if fits:
                assert make(ObamaLite, **settings).chains == 1
                continue
            with pytest.raises(IncompatibleError, match=f"'{sampler}'"):
                make(ObamaLite, **settings)
    assert make(ObamaLite, gamma=1.0).gamma == 1.0
    assert make(ObamaLite, gamma=0.0, decoding="randomized").gamma == 0.0
    with pytest.raises(UsageError, match="gamma = 0 leaves classes that sparsemax never plays"):
        make(ObamaLite, gamma=0.0, decoding="sparsemax")
    with pytest.raises(UsageError, match="samples must be at least 2, got 1"):
        make(ObamaLite, gamma=0.5, samples=1)


# --------------------------------------------------------------------------------------------------- what decisions carry

OF_EACH = [
    (Uniform, {}, 0, True, (0, 0), 1),
    (Banditron, {}, 1, True, (1, 1), 1),
    (EpsilonGreedy, {}, 4, True, (1, 1), 1),
    (EpsilonGreedyDirect, {}, 1, True, (1, 1), 1),
    (Exploration, {"gamma": 0.1}, 0, True, (1, 1), 1),
    (Newtron, {}, 2, True, (1, 2), 1),
    (Gaptron, {}, 4, True, (1, 1), 1),
    (PNewtron, {}, 2, True, (1, 1), 1),
    (SOBA, {}, 3, True, (2, 2), 1),
    (SOBAdiag, {}, 3, True, (1, 1), 1),
    (RDUE, {}, 3, True, (1, 1), 1),
    (DecodedDescent, {}, 3, True, (1, 1), 1),
    (ObamaLite, {}, 0, True, (2, 2), 1),
    (OvRPerceptron, {}, 3, False, (1, 1), 1),
    (FastCB, {}, 6, False, (1, 2), 1),
    (FastCB, {"challenger": 0.0}, 3, False, (1, 2), 1),
    (SquareCB, {}, 6, False, (1, 2), 1),
    (StackCB, {}, 2 + 2 * 13 + 3 * 5 + 8 * 96, False, (1, 2), 1),
    (StackCB, {"ridge": 0.0}, 2 + 2 * 12 + 2 * 5 + 8 * 96, False, (1, 2), 1),
    (LinUCB, {}, 0, False, (1, 2), 1),
    (LinTS, {}, 0, False, (1, 2), 1),
    (Confidit, {}, 0, False, (1, 2), 1),
    (Perceptron, {}, 0, None, (1, 1), 1),
    (RandomizedDecoding, {}, 3, None, (1, 1), 1),
    (Sampled, {}, 0, None, (1, 1), 1),
]
DENSE_ONLY = (Newtron, SOBA, ObamaLite, FastCB, SquareCB, StackCB, LinUCB, LinTS, Confidit, RandomizedDecoding)


@pytest.mark.parametrize(("cls", "settings", "payload", "tosses", "order", "version"), OF_EACH)
def test_what_a_decision_brings_and_what_stored_runs_go_by(cls, settings, payload, tosses, order, version):
    """Logs of decisions hold the payload, runs are stored under the version: both stay as they are."""
    agent = make(cls, **settings)
    decision = agent.act(X[0])
    assert agent.payload_size == payload
    assert np.size(decision.payload if decision.payload is not None else ()) == payload
    if tosses is not None:
        assert type(decision.explored) is (bool if tosses else type(None))
    assert (cls.state_order, cls.version) == (order, version)
    if cls not in (Exploration, Sampled):
        assert cls.sparse == (cls not in DENSE_ONLY)


@pytest.mark.parametrize("cls", [OvRPerceptron, FastCB, SquareCB, StackCB, LinUCB, LinTS, Confidit])
def test_an_agent_that_tosses_no_coin_explores_in_no_round(cls):
    agent, trace = make(cls), Trace.empty(6)
    agent.play_block(as_contexts(np.tile(X, (3, 1))), np.array([0, 1, 2, 0, 1, 2]), trace)
    assert not trace.explored.any()


@pytest.mark.parametrize(
    ("cls", "settings"),
    [(Exploration, {"gamma": 0.1}), (Sampled, {}), (LinTS, {}), (ObamaLite, {"gamma": 0.1}), (Banditron, {})],
)
def test_of_the_generator_it_is_given_an_agent_takes_one_child_at_most(cls, settings):
    """What its owner spawns afterwards does not depend on how an agent is made inside."""
    rng = np.random.default_rng(3)
    cls(Problem(D, K, 1.0), rng, **settings)
    assert rng.bit_generator.seed_seq.n_children_spawned == (cls is not Banditron)


def test_lints_key_is_the_child_s_first_number_below_2_63():
    for seed in range(12):
        child = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0,))))
        agent = LinTS(Problem(D, K, 1.0), np.random.default_rng(seed))
        assert agent.state.tally.tolist() == [0, child.integers(0, 2**63 - 2, endpoint=True), 0]


# ----------------------------------------------------------------------------------------------- what a saved state may say


def taken_over(agent: Any) -> str:
    """Return the refusal of another agent to take this one's state, "" where it takes it."""
    other = type(agent)(agent.problem, np.random.default_rng(0), **agent.params())
    try:
        other.set_state(agent.get_state())
    except UsageError as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize(
    ("cls", "settings", "array", "place", "taken", "refused"),
    [
        (FastCB, {}, "winner", 0, (-1, 0, 1), (-2, 2)),
        (FastCB, {"challenger": 0.0}, "winner", 0, (0,), (-1, 1)),
        (StackCB, {}, "counts", 0, (0, 2**53), (-1, 2**53 + 2)),
        (StackCB, {}, "counts", 1, (0, 2047), (-1, 2048)),
        (StackCB, {}, "counts", 2, (0, 2**53), (-1, 2**53 + 2)),
        (StackCB, {}, "counts", 3, (0, 2**53), (-1, 2**53 + 2)),
        (StackCB, {}, "counts", 4, (0, 2**53), (-1, 2**53 + 2)),
        (LinTS, {}, "tally", 0, (0, 2**53), (-1, 2**53 + 2)),
        (LinTS, {}, "tally", 1, (-(2**63), 2**63 - 1), ()),
        (LinTS, {}, "tally", 2, (0, 2**53), (-1, 2**53 + 2)),
    ],
)
def test_integers_of_a_state_at_their_limits(cls, settings, array, place, taken, refused):
    agent = make(cls, **settings)
    for value in taken + refused:
        getattr(agent.state, array)[place] = value
        said = taken_over(agent)
        assert (said != "") == (value in refused), value
        assert not said or f".{array} must lie in" in said


def test_classes_of_a_memory_and_a_rate_at_their_limits():
    agent = make(StackCB)
    for value, taken in ((0, True), (2, True), (-1, False), (3, False)):
        agent.state.memory.action[7] = value
        assert (taken_over(agent) == "") == taken
    reduction = make(Exploration, gamma="anytime")
    assert reduction.rate == 1.0
    for rate, taken in ((1.0, True), (0.5, True), (0.0, True), (-0.5, False), (1.5, False)):
        reduction.rate = rate
        assert (taken_over(reduction) == "") == taken


@pytest.mark.parametrize("cls", [FastCB, SquareCB])
def test_what_two_docstrings_share_stands_in_both(cls):
    for word in ("update", "cost", "parameters", "references"):
        assert "{" + word + "}" not in cls.__doc__
    for line in ("Update: only the played class learns", "Cost:", "sharpness", "Adaptive subgradient methods"):
        assert line in cls.__doc__
