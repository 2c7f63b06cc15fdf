"""StackCB against full matrices in numpy, against FastCB where its experts are all the same, and what it promises."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, log_softmax, logsumexp, softmax

from banditlab.agents.inverse_gap.fastcb import FastCB
from banditlab.agents.stacked.change import ALARM, cusum
from banditlab.agents.stacked.experts import CURVATURE, LINEAR, RIDGE, WEAKER, WEIGHT
from banditlab.agents.stacked.stack import (
    HANDICAP,
    LEAST,
    PRIORS,
    RATE,
    compete,
    logit,
    stack,
    write_rivals,
    write_scores,
)
from banditlab.agents.stacked.stackcb import (
    CHANGES,
    EPOCH,
    FLOOR,
    GROWTH,
    LAMBDA,
    LEAST_HOPE,
    PLACE,
    ROUNDS,
    SINCE,
    StackCB,
    forget,
)
from banditlab.agents.stacked.views import BANDWIDTHS, SPARSE
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem


def make(K, d, radius=1.0, seed=7, **settings):
    return StackCB(Problem(d, K, radius), np.random.default_rng(seed), **settings)


def test_contract(one_bit_contract, stream):
    X, y = stream(3, 4, 90, noise=0.3)
    one_bit_contract(lambda: make(3, 4, sharpness=2.0), X, y)


class Slow:
    """The docstring in full matrices and double precision: everything is learnt afresh from the rounds since a change."""

    def __init__(self, agent):
        self.agent, self.K, self.d = agent, agent.problem.n_classes, agent.problem.n_features
        self.one = agent.complement and self.K == 2
        W = getattr(agent.state.W, "W", agent.state.W)
        n_blocks, groups, d, _ = W.shape
        self.W = W.transpose(0, 1, 3, 2).reshape(n_blocks, 8 * groups, d)  # (block, frequency, column)
        self.regularizations = [LAMBDA, WEAKER * LAMBDA] * 2
        self.ridge = LINEAR if agent.second_order == "full" else None  # its number
        self.linear = LINEAR + (self.ridge is not None)
        self.cold = self.ridge is not None and self.d >= 4 * self.K
        self.regularizations += [RIDGE] * (self.linear - LINEAR) + [LAMBDA] * n_blocks
        self.rounds, self.scale, self.G, self.clean, self.hits = [], None, 0.0, 0, 0.5
        self.forget()

    def forget(self, whole=True):
        sizes = [self.d + 1] * self.linear + [2 * self.W.shape[1]] * len(self.W)
        self.A = [[lam * np.eye(m) for _ in range(self.K)] for lam, m in zip(self.regularizations, sizes, strict=True)]
        self.b, self.h = ([[np.zeros(m) for _ in range(self.K)] for m in sizes] for _ in range(2))
        E = len(sizes) + (self.ridge is not None)  # with the trees, whose margin is 0 before the first fit
        self.theta = np.append(np.full(E, 1 / (LINEAR + len(self.W))), 0.0)  # margins, bias
        self.theta[LINEAR : self.linear] = self.theta[LINEAR + len(self.W) + (self.ridge is not None) :] = 0.0
        self.stacks = [(self.theta, prior * np.eye(E + 1)) for prior in PRIORS]
        self.losses = np.zeros(2)
        if whole:  # the third: its weights, their covariance, and how far it is behind
            self.competes = not self.one
            self.third, self.behind = (self.theta[:-1], PRIORS[0] * np.eye(E)), HANDICAP

    def take_scale(self):
        X = np.array([x for x, _, _ in self.rounds])
        sd, spread = X.std(axis=0), np.ptp(X, axis=0)
        varies = sd > 1e-12 * np.maximum(abs(X).max(axis=0), 1e-300)
        per_sd, per_range = (np.where(varies, 1 / np.where(varies, s, 1.0), 0.0) for s in (sd, spread))
        self.scale = (X.mean(axis=0), per_sd, X.min(axis=0), per_range, math.sqrt(max(1, varies.sum())))
        square = np.mean(np.sum(((X - X.min(axis=0)) * per_range) ** 2, axis=1))
        self.root_by_range = math.sqrt(square) if square > 0 and SPARSE * np.mean(X != 0) < 1 else self.scale[4]
        half = min(len(X) // 2, 256)
        V = np.array([self.standardised(x) for x in X[::-1]])
        median = np.median(np.linalg.norm(V[:half] - V[half : 2 * half], axis=1)) if half else 0.0
        self.median = median if median > 0 else 1.0

    def standardised(self, x):
        return np.clip((x - self.scale[0]) * self.scale[1], -3, 3)

    def views(self, x):
        v = by_range = np.zeros(self.d)
        root, root_by_range, median = 1.0, 1.0, 1.0
        if self.scale is not None:
            v, by_range = self.standardised(x), np.clip((x - self.scale[2]) * self.scale[3], -1, 2)
            root, median, root_by_range = self.scale[4], self.median, self.root_by_range
        linear = [np.append(v / root, 0.5)] * 2 + [np.append(by_range / root_by_range, 0.5)] * 2
        blocks = [] if self.ridge is None else [np.append(v / root, 0.0)]
        for W in self.W:
            turns, F = W @ (v / median), len(W)
            view = np.append(np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)) / math.sqrt(F)
            view[-1] = 0.5
            blocks.append(view)
        return linear + blocks

    def margins(self, views, k):
        z, q = [], 0.0
        for e, x in enumerate(views):
            h, v = self.h[e][k], np.linalg.solve(self.A[e][k], x)
            q = q if e > self.linear else x @ v
            m, w, far = x @ h, WEIGHT, abs(x @ h) + 1
            yes = 0.5 if self.one else min(0.5, max(LEAST_HOPE, self.hits))
            if e == self.ridge and not x.any():
                z.append(0.0)
                continue
            if e == self.ridge:  # w labels more, of which a share are yes; +-1/2 in place of 1 and 0 for two classes
                z.append(4 * m / (1 + w * q) if self.one else 4 * ((m + w * q * yes) / (1 + w * q) - 0.5))
                continue
            z.append(
                brentq(lambda z, m=m, q=q, w=w, yes=yes: z - m - w * q * (yes - expit(z)), -far - w * q, far + w * q)
            )
        return np.array(z + [0.0] * (self.ridge is not None))  # and that of the trees

    def probabilities(self, x):
        views, K, n = self.views(x), self.K, len(self.rounds) + 1
        z = np.array([self.margins(views, k) for k in range(1 if self.one else K)])
        zeta = np.array([self.theta @ np.append(own, 1.0) for own in z])
        if self.competes:
            p = softmax(z @ self.third[0])
            zeta = (1 - self.share()) * zeta + self.share() * np.log(p / (1 - p))
        if self.cold and n <= min(self.d / 2, 16 * K):
            x, own = views[self.ridge], range(len(zeta))
            m = np.array([x @ self.h[self.ridge][k] for k in own])
            q = np.array([x @ np.linalg.solve(self.A[self.ridge][k], x) for k in own])
            zeta = zeta + (4 * 2 * m if self.one else 4 * (m + min(3, 0.3 * K) * np.sqrt(q)))
        zeta = np.append(zeta, -zeta) if self.one else zeta
        wrong, best = expit(-zeta), int(np.argmax(zeta))
        g = 1e9 if self.one else self.agent.sharpness * (K - 1) * n**GROWTH
        p = np.maximum(wrong[best] / (K * wrong[best] + g * (wrong - wrong[best])), 1 / (K * (n + FLOOR)))
        p[best] = 0.0
        p[best] = 1.0 - p.sum()
        return p

    def share(self):
        losses = np.append(self.losses - self.losses.min(), self.behind)
        return softmax(-RATE * losses)[-1] if self.competes else 0.0

    def teach(self, x, k, hit, again=False):
        if self.one and k == 1:  # class 1 is right where class 0 is not
            return 1 - self.teach(x, 0, not hit, again)
        views, y = self.views(x), 1 if hit else -1
        of_all = np.array([self.margins(views, i) for i in range(1 if self.one else self.K)])
        z = of_all[k]
        for e, view in enumerate(views):
            if e == self.ridge:
                self.A[e][k] = self.A[e][k] + np.outer(view, view)
                r = hit - 0.5 if self.one else 1.0 if hit else -self.worth()
                self.b[e][k] = self.b[e][k] + r * view
                self.h[e][k] = np.linalg.solve(self.A[e][k], self.b[e][k])
                continue
            g, c = -y * expit(-y * z[e]), CURVATURE * expit(z[e]) * expit(-z[e])
            shift, old = c * z[e] - g / 2, np.linalg.solve(self.A[e][k], view)
            self.A[e][k] = self.A[e][k] + c * np.outer(view, view)
            self.b[e][k] = self.b[e][k] + shift * view
            if self.agent.second_order == "diagonal" and e < LINEAR:  # h moves as if the whole of A had been learnt
                self.h[e][k] = self.h[e][k] + (shift - c * (view @ self.h[e][k])) / (1 + c * (view @ old)) * old
                self.A[e][k] = np.diag(np.diag(self.A[e][k]))
            else:
                self.h[e][k] = np.linalg.solve(self.A[e][k], self.b[e][k])
        f, least, share = np.append(z, 1.0), self.losses.min(), self.share()
        zeta = self.theta @ f
        for i, (theta, S) in enumerate(self.stacks):
            self.stacks[i] = self.newton(theta, S, f, expit(theta @ f), hit)
            self.losses[i] += self.loss(expit(theta @ f), hit)
        if self.competes and not again:
            theta, S = self.third
            p = softmax(of_all @ theta)
            rest = np.delete(p, k) / np.delete(p, k).sum()
            zeta += share * (math.log(p[k] / np.delete(p, k).sum()) - zeta)
            self.third = self.newton(theta, S, z - rest @ np.delete(of_all, k, axis=0), p[k], hit)
            self.behind += self.loss(p[k], hit) - (self.losses.min() - least)
        shares = np.exp(-RATE * (self.losses - self.losses.min()))
        self.theta = sum(s * theta for s, (theta, _) in zip(shares / shares.sum(), self.stacks, strict=True))
        return expit(zeta)

    def worth(self):
        of_all = 0.0 if self.K == 2 or not self.cold else 1 / (self.K - 1)
        return of_all * max(0.0, 1 - len(self.rounds) / self.d)

    def due(self):
        powers = 2 ** np.arange(1, 10)
        between = 3 * powers // 2
        return {*powers.tolist(), *between[between <= (self.d if self.cold else 0)].tolist()}

    @staticmethod
    def newton(theta, S, f, p, hit):
        v, c = S @ f, p * (1 - p)
        return theta + v * (hit - p) / (1 + c * f @ v), S - c * np.outer(v, v) / (1 + c * f @ v)

    @staticmethod
    def loss(p, hit):
        return -math.log(max(LEAST, p if hit else 1 - p))

    def learn(self, x, k, hit):
        r = min(self.teach(x, k, hit), 0.6)
        self.rounds.append((x, k, hit))
        self.G = max(0.0, self.G + (math.log(0.5) if hit else math.log((1 - r / 2) / (1 - r))))
        self.clean = self.clean + 1 if self.G > 0 else 0
        n = len(self.rounds)
        self.hits += max(1 / 500, 1 / (n + 100)) * (hit - self.hits)
        if self.agent.changes and 5 + math.log(n) < self.G:
            self.rounds, self.G, self.clean, n = self.rounds[-self.clean :], 0.0, 0, 0
        elif n not in self.due():
            return
        self.take_scale()
        self.forget(whole=n == 0)
        for past in self.rounds:
            self.teach(*past, again=True)


@pytest.mark.parametrize(
    ("K", "d", "chosen"),
    [
        (3, 4, {}),
        (2, 9, {"blocks": 3, "features": 32}),
        (2, 4, {"blocks": 5, "features": 32, "sharpness": 8.0, "complement": False}),
        (7, 3, {"blocks": 2, "features": 32}),
        (3, 40, {"blocks": 2, "features": 32}),
        (2, 40, {"blocks": 2, "features": 32}),
        (2, 16, {"blocks": 2, "features": 32, "complement": False}),
        pytest.param(4, 5, {"blocks": 3, "features": 32, "second_order": "diagonal"}, marks=pytest.mark.slow),
        pytest.param(2, 5, {"blocks": 0, "second_order": "diagonal"}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.few(1)
def test_equals_full_matrices(stream, K, d, chosen):
    """To what float32 leaves of the margins; across five new scales and more."""
    X, y = stream(K, d, 36, noise=0.2)
    agent = make(K, d, **chosen)
    slow = Slow(agent)
    for x, label in zip(X, y, strict=True):
        decision = agent.act(x)
        np.testing.assert_allclose(decision.probabilities, slow.probabilities(x), rtol=0, atol=2e-3)
        correct = bool(decision.action == label)
        slow.learn(x, decision.action, correct)
        agent.learn(x, decision, correct)
    assert agent.state.counts[EPOCH] == sum(n <= 36 for n in slow.due()) >= 5
    np.testing.assert_allclose(agent.state.stack.theta, slow.theta, atol=1e-2)
    if slow.competes:
        np.testing.assert_allclose(agent.state.stack.third, slow.third[0], atol=1e-2)


def test_equals_full_matrices_where_the_third_stack_leads(stream):
    X, y = stream(3, 4, 70, noise=0.2)
    agent = make(3, 4, blocks=2, features=32)
    slow = Slow(agent)
    for x, label in zip(X, y, strict=True):
        agent.state.stack.behind[0] = slow.behind = -40.0
        decision = agent.act(x)
        # sorted: where two classes tie, rounding decides which of them is the best
        found, expected = np.sort(decision.probabilities), np.sort(slow.probabilities(x))
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3)
        correct = bool(decision.action == label)
        slow.learn(x, decision.action, correct)
        agent.learn(x, decision, correct)
    np.testing.assert_allclose(agent.state.stack.third, slow.third[0], atol=1e-2)
    assert abs(slow.third[0] - 1 / 6).max() > 0.1


@pytest.mark.slow
def test_a_change_is_learnt_as_full_matrices_learn_it(stream):
    X, y = stream(4, 3, 440)
    agent = make(4, 3, blocks=2, features=32)
    slow = Slow(agent)
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        decision = agent.act(x)
        np.testing.assert_allclose(decision.probabilities, slow.probabilities(x), rtol=0, atol=5e-3)
        correct = bool(decision.action == (label if t < 340 else (label + 1) % 4))
        slow.learn(x, decision.action, correct)
        agent.learn(x, decision, correct)
        assert agent.state.counts[ROUNDS] == len(slow.rounds)
    assert agent.diagnostics()["changes"] >= 1


@pytest.mark.slow
def test_equal_experts_under_a_stack_that_stays_are_fastcb(stream):
    """Views that are the context itself, one lambda, no Fourier features: each expert is FastCB's model of the class."""
    K, d = 4, 6
    X, y = stream(K, d, 200, noise=0.2)
    agent = make(K, d, blocks=0, changes=False)
    other = FastCB(Problem(d, K, 1.0), np.random.default_rng(1), challenger=0.0, sharpness=3.0, growth=0.25)
    state = agent.state
    for ones in (state.scale.per_sd, state.scale.per_range):
        ones[:] = 1.0
    state.start[:] = 1.0 / 0.003
    forget(state, True)
    state.stack.S[:] = 0.0
    state.counts[ROUNDS] = 1024  # no new scale from here on
    state.stack.behind[0] = 1e9
    for x, label in zip(X, y, strict=True):
        state.hits[0] = 1.0  # virtual labels in equal shares
        theirs = other.act(x)
        own = agent.act(x)
        payload = own.payload.copy()
        payload[0] = -1.0  # margins are those of the class played, not of the one it drew
        correct = theirs.action == label
        agent.learn(x, own._replace(action=theirs.action, payload=payload), correct)
        np.testing.assert_allclose(state.scratch.margins[:LINEAR], theirs.payload[theirs.action], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(state.scratch.zeta, theirs.payload, rtol=1e-3, atol=1e-3)
        other.learn(x, theirs, correct)
    np.testing.assert_allclose(state.stack.theta, [0.25] * LINEAR + [0.0, 0.0, 0.0], atol=1e-15)


def test_units_and_zeros_of_columns_do_not_matter(stream):
    K, d, T = 3, 5, 300
    X, y = stream(K, d, T, noise=0.2)
    traces = []
    for scales, shifts in (
        (np.ones(d), 0.0),
        (np.array([2.0**-40, 1.0, 2.0**20, 4.0, 2.0**-7]), 0.0),
        (np.array([1e-3, 7.0, 300.0, 1.0, 0.1]), np.array([0.3, -5.0, 0.0, 1.0, 0.0])),
    ):
        Z = X * scales + shifts
        agent, trace = make(K, d, radius=float(2 * np.linalg.norm(Z, axis=1).max())), Trace.empty(T)
        agent.play_block(Z, y, trace)
        traces.append(trace)
    # Powers of two to the last bit; other units to what rounding leaves, before one draw goes the other way.
    np.testing.assert_array_equal(traces[1].action, traces[0].action)
    np.testing.assert_array_equal(traces[1].p_true, traces[0].p_true)
    np.testing.assert_allclose(traces[2].p_true[:100], traces[0].p_true[:100], rtol=0, atol=2e-3)


def test_every_class_keeps_a_share(stream):
    """p_k >= 1/(K (n + 100)), n - 1 outcomes learnt: a sum that diverges."""
    K = 4
    X, _ = stream(K, 3, 300)
    agent = make(K, 3, sharpness=1e9, changes=False)
    for n, x in enumerate(X, start=1):
        decision = agent.act(x)
        assert decision.probabilities.min() >= (1 - 1e-12) / (K * (n + FLOOR))
        assert decision.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        agent.learn(x, decision, decision.action == 1)
    assert decision.probabilities[1] == pytest.approx(1 - (K - 1) / (K * (n + FLOOR)), abs=1e-6)


def test_labels_that_change_are_learnt_anew(stream):
    K, d, T = 4, 6, 800
    X, y = stream(K, d, T)
    y = np.where(np.arange(T) < T // 2, y, (y + 1) % K)
    errors = {}
    for changes in (True, False):
        agent, trace = make(K, d, changes=changes), Trace.empty(T)
        agent.play_block(X, y, trace)
        errors[changes] = 1 - trace.correct[-T // 4 :].mean()
        assert (agent.diagnostics()["changes"] > 0) == changes
    assert errors[True] < 0.6 * errors[False]


def test_cusum_by_hand_and_on_calibrated_rounds():
    assert cusum(1.0, 0.5, True) == pytest.approx(1.0 - math.log(2.0))
    assert cusum(0.0, 0.9, True) == 0.0
    assert cusum(0.0, 0.5, False) == pytest.approx(math.log(0.75 / 0.5))
    assert cusum(0.0, 1.0, False) == pytest.approx(math.log(0.7 / 0.4))  # clipped at .6
    # Right as often as said: at most T e^{-h} passages of h in T rounds; h = 7 here, 5 + ln n in the agent.
    rng, T, h, passages = np.random.default_rng(5), 40_000, 7.0, 0
    P = rng.beta(2.0, 1.0, T)
    G = 0.0
    for p, hit in zip(P.tolist(), (rng.random(T) < P).tolist(), strict=True):
        G = cusum(G, p, hit)
        if h < G:
            passages, G = passages + 1, 0.0
    assert passages <= T * math.exp(-h)


def test_feedback_that_comes_after_a_new_scale(stream):
    """Margins and views of the old scale are not used: the decision is learnt as if it had been taken now."""
    X, y = stream(3, 4, 8)
    agent = make(3, 4)
    late = agent.act(X[0])
    for x, label in zip(X[1:], y[1:], strict=True):
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == label)
    assert agent.state.counts[EPOCH] == 2
    twin = copy.deepcopy(agent)
    fresh = late.payload.copy()
    fresh[1:] = np.nan
    agent.learn(X[0], late, True)
    twin.learn(X[0], late._replace(payload=fresh), True)
    np.testing.assert_array_equal(agent.state.linear.H, twin.state.linear.H)
    np.testing.assert_array_equal(agent.state.stack.theta, twin.state.stack.theta)
    assert np.isfinite(agent.state.stack.theta).all()


def test_frequencies_read_the_share_of_columns_they_say():
    agent = make(2, 10)
    for block, W in enumerate(agent.state.W):
        share = BANDWIDTHS[block // 2 % 4][1]
        assert (abs(W).sum(axis=(0, 2)) > 0).sum() == round(10 * share)


@pytest.mark.parametrize("kind", ["constant", "tiny", "huge", "zero", "outlier", "copies"])
def test_odd_columns(kind):
    rng, T, d = np.random.default_rng(0), 70, 3
    X = rng.uniform(-0.5, 0.5, (T, d))
    column = {
        "constant": 0.25,
        "tiny": X[:, 0] * 1e-200,
        "huge": X[:, 1],
        "zero": 0.0,
        "outlier": 0.0,
        "copies": X[:, 0],
    }
    X[:, 1] = column[kind]
    X[5, 1] += 0.3 * (kind == "outlier")
    X *= 1e100 if kind == "huge" else 1.0
    agent, trace = make(3, d, radius=1e100 if kind == "huge" else 1.0), Trace.empty(T)
    agent.play_block(X, rng.integers(0, 3, T), trace)
    assert np.isfinite(agent.state.scratch.zeta).all()
    assert np.isfinite(agent.state.fourier.P).all()


@pytest.mark.parametrize("d", [4, 40])
@pytest.mark.slow
def test_two_classes_share_a_model(stream, d):
    """A bit tells the label whichever class was played: the same labels teach the same, and nothing is explored for."""
    X, y = stream(2, d, 200, noise=0.2)
    one, other = make(2, d), make(2, d)
    for x, label in zip(X, y, strict=True):
        mine, theirs = one.act(x), other.act(x)
        np.testing.assert_array_equal(mine.probabilities, theirs.probabilities)
        one.learn(x, mine, mine.action == label)
        flipped = 1 - theirs.action
        other.learn(x, theirs._replace(action=flipped), flipped == label)
        np.testing.assert_array_equal(one.state.scratch.zeta, [one.state.scratch.zeta[0], -one.state.scratch.zeta[0]])
    np.testing.assert_array_equal(one.state.linear.H, other.state.linear.H)
    np.testing.assert_array_equal(one.state.stack.theta, other.state.stack.theta)
    assert one.state.linear.P.shape[1] == 1
    block = make(2, d)  # the contract's labels need three classes
    block.play_block(X, y, Trace.empty(200))
    np.testing.assert_array_equal(block.state.fourier.P, one.state.fourier.P)
    np.testing.assert_array_equal(block.state.stack.theta, one.state.stack.theta)
    assert mine.probabilities.min() == pytest.approx(1 / (2 * (200 + FLOOR)))


@pytest.mark.parametrize("K", [2, 3])
def test_on_one_context_for_ever_the_ridge_expert_is_silent(K):
    """No column varies, and it must not make the play surer of itself."""
    y, agent = np.random.default_rng(3).integers(0, K, 100), make(K, 2, blocks=2)
    agent.play_block(as_contexts(np.full((100, 2), 0.5)), y, Trace.empty(100))
    M = agent.state.linear.P.shape[1]
    z = agent.state.scratch.z[: (LINEAR + 3) * M].reshape(-1, M)
    assert not z[LINEAR].any()
    assert z[LINEAR + 1 :].any()


@pytest.mark.slow
def test_rewards_need_no_complement():
    """Where both actions mostly fail, only `complement = False` finds the one that fails less."""
    T, shares, plays = 1500, (0.05, 0.35), {}
    for complement in (True, False):
        rng, agent = np.random.default_rng(3), make(2, 1, complement=complement, blocks=2, features=32, changes=False)
        assert agent.state.linear.P.shape[1] == (1 if complement else 2)
        played = []
        for _ in range(T):
            decision = agent.act(np.ones(1))
            played.append(decision.action)
            agent.learn(np.ones(1), decision, bool(rng.random() < shares[decision.action]))
        plays[complement] = np.mean(played[-T // 2 :])
    assert plays[False] > 0.9 > plays[True]


def read_of(stack, z, a):
    """Margins z (K, N) as an agent lays them out, and what is to learn of class a, as it hands it on."""
    flat, out = np.ascontiguousarray(z.T).ravel(), np.zeros(z.shape[1] + 1)
    write_scores(stack, flat)
    write_rivals(stack, flat, a, out)
    return flat, np.concatenate([z[a], out])


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3, 9, 17])
def test_classes_compete_as_a_softmax_says(K):
    """zeta is the logit of softmax(s), and f its gradient in theta, by differences; all classes, ties, and far ones."""
    rng, stacks = np.random.default_rng(K), stack(4, K)
    for size in (0.0, 1.0, 30.0):
        z = size * rng.standard_normal((K, 4))
        stacks.third[:], stacks.behind[0] = rng.standard_normal(4), -1e9
        zeta = rng.standard_normal(K)
        flat, _ = read_of(stacks, z, 0)
        compete(stacks, flat, zeta)
        log_p = log_softmax(z @ stacks.third)
        rest = np.array([logsumexp(np.delete(log_p, k)) for k in range(K)])
        np.testing.assert_allclose(zeta, log_p - rest, rtol=1e-12, atol=1e-12)
        for a in range(K):
            _, read = read_of(stacks, z, a)
            assert logit(stacks, read) == pytest.approx(zeta[a], rel=1e-12, abs=1e-12)
            steps = 1e-6 * np.eye(4)
            ways = [[logit_of(z @ (stacks.third + sign * h), a) for sign in (1, -1)] for h in steps]
            np.testing.assert_allclose(stacks.f, np.subtract(*np.transpose(ways)) / 2e-6, rtol=1e-5, atol=1e-5 * size)


def logit_of(s, a):
    return s[a] - logsumexp(np.delete(s, a))


@pytest.mark.slow
def test_late_feedback_reads_the_logit_along_its_gradient():
    rng, stacks = np.random.default_rng(2), stack(2, 3)
    z = rng.standard_normal((3, 2))
    _, read = read_of(stacks, z, 1)
    then, theta = logit(stacks, read), stacks.third.copy()
    stacks.behind[0], stacks.third[:] = -1e9, theta + [0.3, -0.2]
    own = logit_of(z @ theta, 1)
    assert logit(stacks, read) == pytest.approx(own + stacks.f @ [0.3, -0.2], rel=1e-12)
    assert then != own  # it began behind


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sharpness", 0.0),
        ("blocks", -1),
        ("features", 20),
        ("features", 0),
        ("changes", "no"),
        ("complement", "no"),
    ],
)
def test_refused_settings(name, value):
    with pytest.raises(UsageError, match=name):
        make(3, 2, **{name: value})


def test_where_in_the_memory_a_run_begins_does_not_matter(stream):
    """Its last three places, then on from the first."""
    X, y = stream(3, 4, 40)
    one, other = (make(3, 4, blocks=2, features=32) for _ in range(2))
    other.state.counts[PLACE] = len(other.state.memory.X) - 3
    traces = [Trace.empty(40), Trace.empty(40)]
    for agent, trace in zip((one, other), traces, strict=True):
        agent.play_block(X, y, trace)
    assert np.array_equal(traces[0].p_true, traces[1].p_true)
    assert np.array_equal(one.state.stack.theta, other.state.stack.theta)
    assert (one.state.counts[PLACE], other.state.counts[PLACE]) == (40, 37)


def test_the_last_scale_by_the_clock_is_that_of_512_rounds():
    rng = np.random.default_rng(0)
    X, y = as_contexts(rng.uniform(-1, 1, (1030, 1))), rng.integers(0, 2, 1030)
    agent = make(2, 1, blocks=0, changes=False)
    for start, stop, scales in ((0, 511, 8), (511, 512, 9), (512, 1030, 9)):
        agent.play_block(X[start:stop], y[start:stop], Trace.empty(stop - start))
        assert agent.state.counts[EPOCH] == scales


def test_where_means_move_scales_are_estimated_until_the_memory_is_full():
    rng = np.random.default_rng(0)
    X, y = as_contexts(rng.uniform(-1, 1, (4100, 2)) + np.arange(4100)[:, None] / 1000), rng.integers(0, 2, 4100)
    agent = make(2, 2, blocks=0, radius=10.0, changes=False)
    for start, stop, scales in ((0, 1023, 9), (1023, 1024, 10), (1024, 2048, 11), (2048, 4100, 11)):
        agent.play_block(X[start:stop], y[start:stop], Trace.empty(stop - start))
        assert agent.state.counts[EPOCH] == scales
        if stop == 2048:
            assert np.allclose(agent.state.scale.mean, X[:2048].mean(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize(("since", "kept"), [(1998, 1999), (1999, 2000), (2500, 2000)])
def test_of_the_rounds_before_an_alarm_2000_are_kept_at_most(since, kept):
    agent, x = make(2, 1, blocks=0, changes=False), as_contexts(np.full(1, 0.5))
    for _ in range(12):
        agent.learn(x, agent.act(x)._replace(action=0), True)
    state = agent.state
    state.settings[-1], state.memory.action[:], state.memory.hit[:] = ALARM, 0, False
    state.counts[[ROUNDS, SINCE, PLACE]], state.G[0] = (3000, since, 952), 30.0
    agent.learn(x, agent.act(x)._replace(action=0), False)
    assert state.counts[[ROUNDS, SINCE, PLACE, CHANGES]].tolist() == [kept, 0, 953, 1]
    assert state.G[0] == 0.0


def test_contexts_of_a_new_kind_call_no_change():
    """From half time on contexts come from elsewhere, and there from a class that never came before."""
    called = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = np.where(np.arange(800) < 400, rng.integers(0, 3, 800), 3)
        X = np.eye(4)[y] + 0.3 * rng.standard_normal((800, 4)) + 4.0 * (y == 3)[:, None]
        agent = make(4, 4, radius=20.0, seed=seed)
        agent.play_block(X, y, Trace.empty(800))
        called.append(agent.diagnostics()["changes"])
    assert sum(called) == 0
