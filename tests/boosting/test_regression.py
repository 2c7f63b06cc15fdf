"""Algorithm 3 beside the minimisation it stands for, and its regret beside its bound."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from banditlab.boosting.regression import BoostingRegression
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
        zeta = self.zeta(x)
        answer = s + zeta[1] - others
        answer[l] = zeta[0]
        return answer

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


@pytest.mark.parametrize(("forecaster", "cls"), [("folklore", FOLKLORE), ("aioli", AIOLI)])
def test_the_forecasters_of_this_package_answer_the_same(forecaster, cls):
    rng, clip = np.random.default_rng(2), 4.0
    ours = BoostingRegression(1, 3, clip=clip, forecaster=forecaster)
    inner = cls(Problem(2, 2, 1.0 + clip), None, norm_bound=2.0)
    direct, shares = Direct(clip, forecaster, 2.0), np.zeros(3)
    for s, l, y in random_rounds(rng, 400, 3, size=2.0):
        x, others = direct.context(s, l)
        zeta = inner.predict(x)
        expected = s + zeta[1] - others
        expected[l] = zeta[0]
        np.testing.assert_allclose(ours.predict(0, s, l), expected, atol=1e-9)
        ours.predict_shares(0, softmax(s), l, shares)
        np.testing.assert_allclose(shares, softmax(expected), rtol=1e-9)
        inner.update(x, int(y != l))
        ours._even[:] = softmax(s)
        ours.update_all(np.zeros((1, 3)), np.array([float(l)]), y)


def random_rounds(rng, T, K, size=1.5):
    return [(size * rng.standard_normal(K), int(rng.integers(K)), int(rng.integers(K))) for _ in range(T)]


@pytest.mark.parametrize("forecaster", ["folklore", "aioli"])
def test_a_direct_minimisation_predicts_the_same(forecaster):
    rng = np.random.default_rng(1)
    ours = BoostingRegression(1, 3, clip=2.0, forecaster=forecaster)
    direct = Direct(2.0, forecaster, 2.0)
    for s, l, y in random_rounds(rng, 25, 3):
        expected = softmax(direct.predict(s, l))
        np.testing.assert_allclose(softmax(ours.predict(0, s, l)), expected, atol=2e-6)
        direct.update(s, l, y)
        shares = np.zeros(3)
        ours.predict_shares(0, softmax(s), l, shares)
        np.testing.assert_allclose(shares, softmax(ours.predict(0, s, l)), rtol=1e-12)
        # the booster's form: row i is the softmax of the votes after learner i, and the first one sees even ones
        ours._even[:] = softmax(s)
        ours.update_all(np.zeros((1, 3)), np.array([float(l)]), y)


def regret(copy_, rounds, i=0):
    """Return (the copy's loss, the loss of the best alpha in [-2, 2]) over the rounds, learning as they come."""
    total = 0.0
    for s, l, y in rounds:
        total -= log_softmax(copy_.predict(i, s, l))[y]
        copy_._even[:] = softmax(s)
        copy_.update_all(np.zeros((copy_.n_copies, copy_.n_classes)), np.full(copy_.n_copies, float(l)), y)
    losses = [
        -sum(log_softmax(s + alpha * np.eye(len(s))[l])[y] for s, l, y in rounds) for alpha in np.linspace(-2, 2, 81)
    ]
    return total, min(losses)


@pytest.mark.parametrize("forecaster", ["folklore", "aioli"])
@pytest.mark.parametrize("share", [0.1, 0.5, pytest.param(0.9, marks=pytest.mark.slow)])
def test_the_regret_is_within_the_bound(forecaster, share):
    rng, T, K = np.random.default_rng(int(10 * share)), 200, 4
    rounds = [(s, l, l if rng.random() < share else y) for s, l, y in random_rounds(rng, T, K, size=3.0)]
    ours = BoostingRegression(1, K, clip=math.log(T), forecaster=forecaster, norm_bound=math.sqrt(2.0))
    total, best = regret(ours, rounds)
    assert total - best <= ours.bound(T)
    assert total - best < 25.0  # what it really is; a learner that never learns has more at 0.1 and 0.9
    frozen = -sum(log_softmax(s)[y] for s, _, y in rounds)
    if share != 0.5:
        assert total < frozen


def test_margins_beyond_the_clip_count_as_the_clip():
    ours = BoostingRegression(1, 3, clip=1.0)
    ours._even[:] = 1 / 3
    for _ in range(3):
        ours.update_all(np.zeros((1, 3)), np.zeros(1), 0)
    far, further = (ours.predict(0, np.array([big, 0.0, 1.0]), 0) for big in (50.0, 5000.0))
    assert softmax(far)[0] == pytest.approx(softmax(further)[0], rel=1e-12)
    assert 0.5 < softmax(far)[0] < 1.0
    ratio = far[2] - far[1]
    assert ratio == pytest.approx(1.0)  # the other classes keep their odds
    low = ours.predict(0, np.array([-700.0, 700.0, -800.0]), 2)
    assert np.isfinite(low).all()


def test_shares_that_vanish_come_back():
    ours, p = BoostingRegression(1, 3, clip=2.0), np.zeros(3)
    ours.predict_shares(0, np.array([1.0, 0.0, 0.0]), 0, p)
    assert p[1] == p[2] > 0.0
    assert p.sum() == pytest.approx(1.0)
    ours.predict_shares(0, np.array([0.75, 0.0, 0.25]), 1, p)
    assert p[1] > 0.0
    assert p[0] / p[2] == pytest.approx(3.0)
    ours.update_all(np.zeros((1, 3)), np.zeros(1), 1)
    assert np.isfinite(ours.states.h).all()


def test_copies_learn_for_themselves_and_copies_of_it_go_on():
    rng = np.random.default_rng(4)
    ours = BoostingRegression(3, 3, clip=3.0, forecaster="aioli")
    singles = [BoostingRegression(1, 3, clip=3.0, forecaster="aioli") for _ in range(3)]
    for _ in range(20):
        S, votes, y = rng.standard_normal((3, 3)), rng.integers(3, size=3).astype(float), int(rng.integers(3))
        before = [np.zeros(3), S[0], S[1]]
        for i, single in enumerate(singles):
            np.testing.assert_array_equal(ours.predict(i, before[i], 1), single.predict(0, before[i], 1))
            single._even[:] = softmax(before[i])
            single.update_all(np.zeros((1, 3)), votes[i : i + 1], y)
        ours.update_all(softmax(S, axis=1), votes, y)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        S, votes = rng.standard_normal((3, 3)), np.array([0.0, 1.0, 2.0])
        expected = ours.predict(2, S[0], 1)
        other.update_all(softmax(S, axis=1), votes, 1)
        np.testing.assert_array_equal(ours.predict(2, S[0], 1), expected)  # nothing is shared
        twin = copy.deepcopy(ours)
        twin.update_all(softmax(S, axis=1), votes, 1)
        np.testing.assert_array_equal(other.predict(2, S[0], 1), twin.predict(2, S[0], 1))


def test_what_is_refused_and_what_has_no_bound():
    for settings, message in (
        ({"clip": -1.0}, "clip must be a number that is 0 or above"),
        ({"clip": 1.0, "forecaster": "ogd"}, "forecaster must be one of 'folklore', 'aioli'"),
        ({"clip": 1.0, "norm_bound": 0.0}, "norm_bound must be a number above 0"),
    ):
        with pytest.raises(UsageError, match=message):
            BoostingRegression(1, 3, **settings)
    ours = BoostingRegression(1, 3, clip=1.0, norm_bound=1.0)
    assert ours.bound(10) is None  # W_alpha is not in the ball
    with pytest.raises(UsageError, match="the class must be an integer in 0"):
        ours.predict(0, np.zeros(3), 3)


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
