"""Algorithm 3 beside the minimisation it stands for, and its regret beside its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from banditlab.boosting.compiled_rounds import Scratch
from banditlab.boosting.regression import BoostingRegression, RuleScratch, put_mass, vote
from banditlab.bounds.boosting import boosting_regression
from banditlab.errors import UsageError
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.numerics.jit import njit
from banditlab.numerics.tanh_root import aioli_root, aioli_root_and_sigmoids
from banditlab.problem import Problem


class Direct:
    """Algorithm 3 for one copy with full matrices: (3.3) minimised over W (2, 2) by scipy, errata corrected."""

    def __init__(self, clip, forecaster, norm_bound):
        self.clip, self.forecaster, B, R = clip, forecaster, norm_bound, 1.0 + clip
        if forecaster == "folklore":
            self.c = 1.0 / (2.0 * B * R + math.log(2.0) + 2.0)
            self.A, self.G = (2.0 * R / B) * np.eye(4), np.zeros(4)
        else:  # theta = W_0 - W_1, ||theta|| <= 2 B
            self.c = 0.5 / (1.0 + 2.0 * B * R)
            self.A, self.G = np.eye(2) / (2.0 * B) ** 2, np.zeros(2)

    def context(self, s, l):
        others = logsumexp(np.delete(s, l))
        return np.array([np.clip(0.5 * (s[l] - others), -self.clip, self.clip), -1.0]), others

    def zeta(self, x):
        if self.forecaster == "folklore":
            # B_t of Lemma 8 moves both logits alike for two classes (Appendix D): the minimum's margin is as without
            def objective(w):
                z = w.reshape(2, 2) @ x
                return w @ self.A @ w + self.G @ w + logsumexp(z) - z.mean()

            w = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-10}).x
            return w.reshape(2, 2) @ x

        def objective(theta):
            m = theta @ x
            return theta @ self.A @ theta + self.G @ theta + np.logaddexp(0, -m) + np.logaddexp(0, m)

        return np.array([minimize(objective, np.zeros(2), method="BFGS", options={"gtol": 1e-10}).x @ x, 0.0])

    def predict(self, s, l):
        x, others = self.context(s, l)
        return softmax(votes_after(s, l, self.zeta(x), others))

    def update(self, s, l, y):
        x, _ = self.context(s, l)
        label, zeta = int(y != l), self.zeta(x)
        if self.forecaster == "folklore":
            p = softmax(zeta)
            H = np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x))
            g = np.kron(p - np.eye(2)[label], x)
            # W_t itself is needed only through H vec(W_t) = (S z) (x) x
            Hw = np.kron((np.diag(p) - np.outer(p, p)) @ zeta, x)
            self.A, self.G = self.A + self.c * H, self.G + g - 2.0 * self.c * Hw
            return
        sign = 1.0 - 2.0 * label
        m = zeta[0]
        g = -sign / (1.0 + math.exp(sign * m)) * x
        eta = 2.0 * self.c * math.exp(sign * m)
        self.A = self.A + 0.5 * eta * np.outer(g, g)
        self.G = self.G + g - eta * m / (1.0 + math.exp(sign * m)) * -sign * g


def votes_after(s, l, zeta, others):
    """Return Algorithm 3's votes: zeta replaces s_l and the mass of the others."""
    answer = s + zeta[1] - others
    answer[l] = zeta[0]
    return answer


class Shares:
    """One copy of the package's regressions, in the form in which boosters play it: on the softmax of the votes."""

    def __init__(self, steps, **settings):
        self.regression, (self._shares_after, self._learn) = BoostingRegression(1, **settings), steps

    def predict(self, p, l):
        out = np.zeros(len(p))
        self._shares_after(self.regression.states, 0, p, l, out)
        return out

    def update(self, p, l, y):
        self._learn(self.regression.states, 0, p, l, y)


def random_rounds(rng, T, K, size=1.5):
    return [(size * rng.standard_normal(K), int(rng.integers(K)), int(rng.integers(K))) for _ in range(T)]


@pytest.mark.parametrize(("forecaster", "cls"), [("folklore", FOLKLORE), ("aioli", AIOLI)])
def test_the_forecasters_of_this_package_answer_the_same(regression_steps, forecaster, cls):
    rng, clip = np.random.default_rng(2), 4.0
    ours = Shares(regression_steps, clip=clip, forecaster=forecaster)
    inner = cls(Problem(2, 2, 1.0 + clip), None, norm_bound=2.0)
    direct = Direct(clip, forecaster, 2.0)
    for s, l, y in random_rounds(rng, 400, 3, size=2.0):
        x, others = direct.context(s, l)
        expected = softmax(votes_after(s, l, inner.predict(x), others))
        np.testing.assert_allclose(ours.predict(softmax(s), l), expected, rtol=1e-9)
        inner.update(x, int(y != l))
        ours.update(softmax(s), l, y)


@pytest.mark.parametrize("forecaster", ["folklore", "aioli"])
@pytest.mark.few(1)
def test_a_direct_minimisation_predicts_the_same(regression_steps, forecaster):
    ours, direct = Shares(regression_steps, clip=2.0, forecaster=forecaster), Direct(2.0, forecaster, 2.0)
    for s, l, y in random_rounds(np.random.default_rng(1), 25, 3):
        np.testing.assert_allclose(ours.predict(softmax(s), l), direct.predict(s, l), atol=2e-6)
        direct.update(s, l, y)
        ours.update(softmax(s), l, y)


@pytest.mark.parametrize("forecaster", ["folklore", "aioli"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.few(2)
def test_the_regret_is_within_the_bound(regression_steps, forecaster, share):
    rng, T, K = np.random.default_rng(int(10 * share)), 200, 4
    rounds = [(s, l, l if rng.random() < share else y) for s, l, y in random_rounds(rng, T, K, size=3.0)]
    ours = Shares(regression_steps, clip=math.log(T), forecaster=forecaster, norm_bound=math.sqrt(2.0))
    total = 0.0
    for s, l, y in rounds:
        total -= math.log(ours.predict(softmax(s), l)[y])
        ours.update(softmax(s), l, y)
    alphas = np.linspace(-2, 2, 81)
    best = min(-sum(log_softmax(s + alpha * np.eye(K)[l])[y] for s, l, y in rounds) for alpha in alphas)
    assert total - best <= ours.regression.bound(T)
    assert total - best < 25.0  # what it really is; a learner that never learns has more at 0.1 and 0.9
    if share != 0.5:
        assert total < -sum(log_softmax(s)[y] for s, _, y in rounds)


def test_margins_beyond_the_clip_count_as_the_clip(regression_steps):
    ours = Shares(regression_steps, clip=1.0)
    for _ in range(3):
        ours.update(np.full(3, 1 / 3), 0, 0)
    far, further = (ours.predict(softmax([big, 0.0, 1.0]), 0) for big in (5.0, 30.0))
    assert far[0] == pytest.approx(further[0], rel=1e-12)
    assert 0.5 < far[0] < 1.0
    assert far[2] / far[1] == pytest.approx(math.e)  # the other classes keep their odds


@njit(cache=False)
def voted(states, scratch, l, S):
    put_mass(scratch, 0)
    vote(states, scratch, 0, l, S)


def test_shares_that_vanish_come_back():
    states, scratch, S = BoostingRegression(1, clip=2.0).states, Scratch.of(1, 3, RuleScratch), np.zeros((1, 3))
    for p, l in (([1.0, 0.0, 0.0], 0), ([0.75, 0.0, 0.25], 1)):
        scratch.own.shares[:] = p
        voted(states, scratch, l, S)
        assert S.min() > 0.0
        assert S.sum() == pytest.approx(1.0)
        assert S[0, 1] == S[0, 2] if l == 0 else S[0, 0] / S[0, 2] == pytest.approx(3.0)


@pytest.mark.parametrize(("forecaster", "cls"), [("folklore", FOLKLORE), ("aioli", AIOLI)])
def test_the_regressions_regret_is_its_forecasters_of_two_features_and_the_clips(forecaster, cls):
    ours = BoostingRegression(1, clip=1.5, forecaster=forecaster, norm_bound=1.7)
    one = cls(Problem(2, 2, 2.5), None, norm_bound=1.7).bound(500)
    assert ours.bound(500) == pytest.approx(boosting_regression(500, 1.5, one))


def test_what_is_refused_and_what_has_no_bound():
    for settings, message in (
        ({"clip": -1.0}, "clip must be a number that is 0 or above"),
        ({"clip": 1.0, "forecaster": "ogd"}, "forecaster must be one of 'folklore', 'aioli'"),
        ({"clip": 1.0, "norm_bound": 0.0}, "norm_bound must be a number above 0"),
    ):
        with pytest.raises(UsageError, match=message):
            BoostingRegression(1, **settings)
    assert BoostingRegression(1, clip=1.0, norm_bound=1.0).bound(10) is None  # W_alpha is not in the ball


@njit(cache=False)
def split_roots(m, q, w, t, larger, smaller):
    for i in range(m.shape[0]):
        t[i], larger[i], smaller[i] = aioli_root_and_sigmoids(m[i], q[i], w)


@njit(cache=False)
def usual_roots(m, q, w, found):
    for i in range(m.shape[0]):
        found[i] = aioli_root(m[i], q[i], w)


@pytest.mark.parametrize("w", [0.5, 1.0, 3.0])
def test_the_root_by_one_exponential_is_the_root(w):
    rng, n = np.random.default_rng(8), 5_000
    m = rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 2.7, n)
    q = 10.0 ** rng.uniform(-8, 3, n)
    m[:4], q[:4] = [0.0, -0.0, 5.0, 1e6], [1.0, 0.0, 1e12, 1e3]
    usual, t, larger, smaller = np.zeros((4, n))
    usual_roots(m, q, w, usual)
    split_roots(m, q, w, t, larger, smaller)
    z = usual.astype(np.longdouble)
    half = (0.5 * w * q).astype(np.longdouble)
    for _ in range(4):  # Newton in long double, from the usual one
        tanh = np.tanh(z / 2)
        z = z - (z + half * tanh - m) / (1 + half / 2 * (1 - tanh * tanh))
    scale = np.maximum(1.0, np.abs(m))
    assert (np.abs(t - z) <= 3e-15 * scale).all()
    assert (np.signbit(t) == np.signbit(m)).all()
    below = np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z)))
    np.testing.assert_allclose(larger, (1 - below).astype(float), rtol=1e-14)
    near = np.abs(z) < 500
    assert (np.abs(smaller - below) <= 1e-14 * scale * below)[near].all()
    assert (smaller[~near] <= 1e-217).all()
