"""AdaBoost.OLM beside direct implementations, its derivative, its weights and its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.boosting.hedge import weights_of
from banditlab.boosting.olm import CODED, EXACT, PRINTED, AdaBoostOLM, derivative
from banditlab.boosting.olm_plus import AdaBoostOLMPlus
from banditlab.boosting.regression import BoostingRegression
from banditlab.bounds.boosting import (
    hedge_mistakes,
    olm_best_expert,
    olm_plus_best_expert,
    olm_square_hinge_best_expert,
)
from banditlab.errors import HorizonRequiredError, UsageError
from banditlab.players.agent import Trace
from banditlab.problem import Decision, Problem


class Script:
    """A weak learner that says what it is told to say and keeps what it is asked and taught."""

    needs_label = False

    def __init__(self, says):
        self.says, self.asked, self.taught = iter(says), [], []

    def view(self, context):
        return context

    def predict(self, context, costs=None):
        self.asked.append(None if costs is None else costs.copy())
        return next(self.says)

    def update(self, context, label, weight):
        self.taught.append((label, weight))


def scripted(cls, K, votes, problem=None, **settings):
    """Return a booster whose N learners say the columns of votes (T, N)."""
    problem = problem or Problem(2, K, 1.0, len(votes))
    N = votes.shape[1]
    booster = cls(problem, np.random.default_rng(7), n_learners=N, weak_learner="forecaster", **settings)
    booster.learners = [Script(votes[:, i].tolist()) for i in range(N)]
    return booster


@pytest.mark.parametrize("learners", [1, 4])
@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("loss", ["logistic", "exponential", "square-hinge"])
def test_the_first_step_of_the_votes_by_hand(loss, classes, learners):
    """From alpha = 0 every s is 0, and the derivative is -f (k-1) where the learner is right, f where it is wrong.

    f is 1/2, 1 and 1 by (8), (36) and (39). The step is the diameter of [-c, c] over sqrt(2) times the largest
    derivative: c = 2 and k-1 for the first two, the exponential's falling by e^-i from learner to learner; c = 1/sqrt(N)
    and (k-1)(1 + c N) for the last.
    """
    votes = np.ones((1, learners), int)
    votes[0, -1] = 0  # the last learner is wrong, but where it is alone
    label = 1 if learners > 1 else 0
    booster = scripted(AdaBoostOLM, classes, votes, loss=loss)
    decision = booster.act(np.zeros(2))
    booster.learn(np.zeros(2), decision, label)
    f, c, largest = {
        "logistic": (0.5, 2.0, classes - 1.0),
        "exponential": (1.0, 2.0, classes - 1.0),
        "square-hinge": (1.0, learners**-0.5, (classes - 1.0) * (1.0 + math.sqrt(learners))),
    }[loss]
    step = 2.0 * c / (math.sqrt(2.0) * largest)
    for i, alpha in enumerate(booster.alpha):
        fall = math.exp(-(i + 1.0)) if loss == "exponential" else 1.0
        right = votes[0, i] == label
        expected = step * fall * (f * (classes - 1.0) if right else -f)
        assert alpha == pytest.approx(max(-c, min(c, expected)), rel=1e-12), i


def played(booster, y):
    trace = Trace.empty(len(y))
    booster.play_block(np.zeros((len(y), 2)), y, trace)
    return trace


def noisy_votes(rng, T, N, K, share=0.5):
    y = rng.integers(K, size=T)
    right = rng.random((T, N)) < share
    return y, np.where(right, y[:, None], rng.integers(K, size=(T, N)))


def direct_olm(votes, y, K, how="exact"):
    """Algorithm 2 in plain Python (corrected weight and derivative): alphas, weights taught, costs, edges, mistakes."""
    signs = {"exact": (1.0, -1.0), "printed": (1.0, 1.0), "coded": (-1.0, 1.0)}  # of alpha and of s(j) - s(y)
    T, N = votes.shape
    alpha, got, best, mistakes = np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(N)
    weights, costs, tied = [], [], np.zeros((T, N), dtype=bool)
    for t in range(T):
        s, rows = np.zeros(K), []
        for i in range(N):
            C = np.zeros((K, K))
            for r in range(K):
                for l in range(K):
                    if l != r:
                        C[r, l] = 1.0 / (1.0 + math.exp(s[r] - s[l]))
                C[r, r] = -C[r].sum()
            rows.append(C)
            l, label = votes[t, i], y[t]
            got[i] += C[label, l]
            best[i] += C[label, label]
            if l != label:
                slope = 1.0 / (1.0 + math.exp(s[label] - s[l] - alpha[i]))
            else:
                by, of = signs[how]
                leads = [s[j] - s[label] for j in range(K) if j != label]
                slope = -sum(1.0 / (1.0 + math.exp(by * alpha[i] + of * lead)) for lead in leads)
            s = s.copy()
            s[l] += alpha[i]
            tied[t, i] = (s == s.max()).sum() > 1
            mistakes[i] += np.argmax(s) != label and not tied[t, i]
            alpha[i] = max(-2.0, min(2.0, alpha[i] - 2.0 * math.sqrt(2.0) / ((K - 1) * math.sqrt(t + 1)) * slope))
        weights.append([-C[y[t], y[t]] / (K - 1) for C in rows])
        costs.append(rows)
    return alpha, np.array(weights), np.array(costs), got / best, mistakes, tied


@pytest.mark.parametrize(("K", "how"), [(2, "exact"), (3, "exact"), (5, "exact"), (3, "printed"), (4, "coded")])
def test_algorithm_2_step_by_step(K, how):
    rng = np.random.default_rng(K)
    y, votes = noisy_votes(rng, 120, 6, K)
    booster = scripted(AdaBoostOLM, K, votes, derivative=how)
    played(booster, y)
    alpha, weights, costs, edges, mistakes, tied = direct_olm(votes, y, K, how)
    np.testing.assert_allclose(booster.alpha, alpha, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(booster.edges.measured(), edges, rtol=1e-10)
    for i, learner in enumerate(booster.learners):
        np.testing.assert_allclose([w for _, w in learner.taught], weights[:, i], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.array(learner.asked), costs[:, i], rtol=1e-9, atol=1e-12)
        assert [label for label, _ in learner.taught] == y.tolist()
    # Experts tied between classes draw: their mistakes lie between those without and those with every tied round.
    assert (booster.mistakes >= mistakes).all()
    assert (booster.mistakes <= mistakes + tied.sum(axis=0)).all()


def direct_ol(z, T, N, eta):
    """AdaBoost.OL (Beygelzimer, Kale and Luo, 2015) on products z[t, i] = y h^i(x): alphas and weights."""
    alpha, weights = np.zeros(N), np.zeros((T, N))
    for t in range(T):
        s = 0.0
        for i in range(N):
            weights[t, i] = 1.0 / (1.0 + math.exp(s))
            s += alpha[i] * z[t, i]
            alpha[i] = max(-2.0, min(2.0, alpha[i] + eta / math.sqrt(t + 1) * z[t, i] / (1.0 + math.exp(s))))
    return alpha, weights


def test_two_classes_are_adaboost_ol():
    """With k = 2, s(y) - s(other) is AdaBoost.OL's margin with alpha for alpha; its step is 4, OLM's 2 sqrt(2)."""
    rng = np.random.default_rng(11)
    y, votes = noisy_votes(rng, 200, 5, 2, share=0.3)
    booster = scripted(AdaBoostOLM, 2, votes)
    played(booster, y)
    z = np.where(votes == y[:, None], 1.0, -1.0)
    alpha, weights = direct_ol(z, 200, 5, eta=2.0 * math.sqrt(2.0))
    np.testing.assert_allclose(booster.alpha, alpha, rtol=1e-10)
    taught = np.array([[w for _, w in learner.taught] for learner in booster.learners]).T
    np.testing.assert_allclose(taught, weights, rtol=1e-10)
    other, _ = direct_ol(z, 200, 5, eta=4.0)
    assert np.abs(other - alpha).max() > 1e-3  # the published step of AdaBoost.OL is another


@pytest.mark.parametrize("loss", [0, 1, 2])
def test_the_derivative_is_one_and_the_printed_ones_are_not(loss):
    names = ("logistic", "exponential", "square-hinge")

    def value(s, y):
        rivals = np.delete(s, y) - s[y]
        terms = {
            "logistic": np.log1p(np.exp(rivals)),
            "exponential": np.exp(rivals),
            "square-hinge": 0.5 * np.maximum(rivals + 1.0, 0.0) ** 2,
        }
        return terms[names[loss]].sum()

    rng, g, h = np.random.default_rng(3), np.zeros(4), 1e-6
    off = {PRINTED: 0.0, CODED: 0.0}
    for _ in range(60):
        s, alpha, l, y = rng.standard_normal(4), float(rng.uniform(-2, 2)), *(int(k) for k in rng.integers(4, size=2))
        e = np.eye(4)[l]
        numeric = (value(s + (alpha + h) * e, y) - value(s + (alpha - h) * e, y)) / (2 * h)
        assert derivative(loss, EXACT, s + alpha * e, alpha, l, y, g) == pytest.approx(numeric, rel=1e-5, abs=1e-6)
        for how in off:
            off[how] = max(off[how], abs(derivative(loss, how, s + alpha * e, alpha, l, y, g) - numeric))
            if loss == 0 and l == y:  # (10) as it stands, and the authors' line
                sign = 1.0 if how == PRINTED else -1.0
                literal = -sum(1.0 / (1.0 + math.exp(s[j] + sign * alpha - s[y])) for j in range(4) if j != y)
                assert derivative(loss, how, s + alpha * e, alpha, l, y, g) == pytest.approx(literal, rel=1e-10)
    if loss == 0:
        assert min(off.values()) > 0.5


@pytest.mark.parametrize("loss", ["exponential", "square-hinge"])
def test_the_other_losses_keep_alpha_and_weights_in_range(loss):
    rng = np.random.default_rng(5)
    y, votes = noisy_votes(rng, 150, 8, 3)
    for steady in (votes, np.repeat(y[:, None], 8, axis=1), (votes + 1) % 3):  # noisy, always right, anything
        booster = scripted(AdaBoostOLM, 3, steady, loss=loss)
        played(booster, y)
        limit = 2.0 if loss == "exponential" else 1.0 / math.sqrt(8)
        assert (np.abs(booster.alpha) <= limit).all()
        assert np.abs(booster.alpha).max() > 0.0
        for i, learner in enumerate(booster.learners):
            assert all(0.0 <= w <= 1.0 for _, w in learner.taught)
            if loss == "square-hinge":  # in units of what the costs of learner i can reach
                costs = [-C[label, label] for C, label in zip(learner.asked, y, strict=True)]
                reached = 2.0 * (1.0 + i / math.sqrt(8))
                np.testing.assert_allclose([w for _, w in learner.taught], np.divide(costs, reached), rtol=1e-12)
        assert (np.abs(booster.edges.measured()) <= 1.0 + 1e-12).all()


def test_the_square_hinge_reaches_the_derivative_that_the_paper_denies():
    """Votes of alpha = -c for the label: |f'| = (k-1)(1 + c i), above the paper's (k-1) + c N at k = 4."""
    K, N = 4, 16
    c = 1.0 / math.sqrt(N)
    s, g = np.zeros(K), np.zeros(K)
    s[0] = -c * N
    reached = -derivative(2, EXACT, s, -c, 0, 0, g)
    assert reached == pytest.approx((K - 1) * (1.0 + c * N))
    assert reached > (K - 1) + c * N


def test_hedge_follows_the_experts_by_their_mistakes():
    rng = np.random.default_rng(9)
    y, votes = noisy_votes(rng, 400, 4, 3, share=0.3)
    votes[:, 2] = y  # the third learner is always right
    booster = scripted(AdaBoostOLM, 3, votes)
    trace = played(booster, y)
    assert booster.mistakes[2] < 0.3 * booster.mistakes[0]
    weights = weights_of(booster.mistakes)
    expected = np.exp(-(booster.mistakes - booster.mistakes.min()))
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-12)
    assert (1.0 - trace.p_true).sum() <= hedge_mistakes(booster.mistakes.min(), 4)
    assert weights_of(np.array([1e6, 1e6 + 1.0, 2e6])).tolist() == pytest.approx([0.7310585786, 0.2689414214, 0.0])


@pytest.mark.parametrize("cls", [AdaBoostOLM, AdaBoostOLMPlus])
@pytest.mark.slow
def test_the_best_expert_keeps_its_bound(cls):
    """Strong learners: the bound is below T, so that it says something."""
    rng = np.random.default_rng(12)
    T, N = 4000, 8
    y, votes = noisy_votes(rng, T, N, 2, share=0.9)
    booster = scripted(cls, 2, votes, **({} if cls is AdaBoostOLM else {"regression_bound": math.sqrt(2.0)}))
    trace = played(booster, y)
    found = booster.diagnostics()
    assert found["best_expert_mistakes"] == booster.mistakes.min()
    assert found["best_expert_mistakes"] <= found["best_expert_bound"] < T
    assert (1.0 - trace.p_true).sum() <= hedge_mistakes(booster.mistakes.min(), N)
    assert found["edge.1"] == pytest.approx(booster.edges.measured()[0])
    assert 0.85 < found["edge.1"] < 0.95  # (1 + 0.9)/2 right, so 0.9 above a guess
    assert sum(found[f"expert_weight.{i}"] for i in range(1, N + 1)) == pytest.approx(1.0)


def test_the_bounds_by_hand():
    assert olm_best_expert(10_000, 3, 10, 50.0) == pytest.approx(
        (8 * math.log(2) * 10_000 + 32 * math.sqrt(2) * 10 * 100) / 50.0
    )
    assert olm_best_expert(100, 3, 10, 0.0) == 100
    assert olm_square_hinge_best_expert(10_000, 3, 4, 3.9) == 10_000  # more than every round says nothing
    assert olm_square_hinge_best_expert(10**8, 2, 100, 90.0) == pytest.approx(
        (10 * 10**8 + 2 * math.sqrt(2) * 11 * 100 * 10**4) / 90.0
    )
    assert olm_plus_best_expert(10_000, 3, 10, 9.0, 100.0) == pytest.approx(4 * (10_000 * math.log(3) + 1000) / 9.0)
    assert hedge_mistakes(0.0, 1) == 0.0


@pytest.mark.parametrize(
    ("settings", "bound"),
    [
        ({}, lambda T: olm_best_expert(T, 3, 2, 9.0 + 4.0)),
        ({"loss": "square-hinge"}, lambda T: olm_square_hinge_best_expert(T, 3, 2, 3.0 + 2.0)),
        ({"loss": "exponential"}, None),
        ({"derivative": "printed"}, None),
        ({"derivative": "coded"}, None),
    ],
)
def test_the_best_experts_bound_is_the_theorems_at_the_edges_measured(settings, bound):
    given = {"n_learners": 2, "weak_learner": "forecaster"} | settings
    booster, T = AdaBoostOLM(Problem(4, 3, 2.0), np.random.default_rng(0), **given), 1_000_000
    booster.rounds, booster.edges.got[:], booster.edges.best[:] = T, (3.0, -2.0), 1.0
    found = booster.diagnostics()["best_expert_bound"]
    if bound is None:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(bound(T))
        assert found < T


def test_the_best_experts_bound_of_olm_plus():
    problem, settings = Problem(4, 3, 2.0, 1000), {"n_learners": 2, "weak_learner": "forecaster"}
    booster, T = AdaBoostOLMPlus(problem, np.random.default_rng(0), **settings), 1_000_000
    booster.rounds, booster.edges.got[:], booster.edges.best[:] = T, (3.0, -2.0), 1.0
    regret = BoostingRegression(2, clip=math.log(1000)).bound(T)
    found = booster.diagnostics()["best_expert_bound"]
    assert found == pytest.approx(olm_plus_best_expert(T, 3, 2, 13.0, regret))
    assert found < T
    none = AdaBoostOLMPlus(problem, np.random.default_rng(0), regression_bound=1.0, **settings)
    assert math.isnan(none.diagnostics()["best_expert_bound"])


def test_weights_of_experts_far_behind():
    assert weights_of(np.array([3.0, 748.0])).tolist() == [1.0, 5e-324]
    assert weights_of(np.array([3.0, 749.0])).tolist() == [1.0, 0.0]  # 746 mistakes behind
    assert weights_of(np.array([3.0, 4.0])).tolist() == pytest.approx(
        [1.0 / (1.0 + math.exp(-1.0)), 0.2689414213699951]
    )
    with np.errstate(all="ignore"):
        for none in (np.nan, np.inf):
            assert np.isnan(weights_of(np.array([0.0, none]))).all()


def test_weight_scales():
    y, votes = noisy_votes(np.random.default_rng(0), 30, 40, 3)
    plain, scaled, drawn = (scripted(AdaBoostOLM, 3, votes, weight_scale=w) for w in (1.0, 3.0, "random"))
    for booster in (plain, scaled, drawn):
        played(booster, y)
    taught = [np.array([[w for _, w in learner.taught] for learner in b.learners]) for b in (plain, scaled, drawn)]
    np.testing.assert_allclose(taught[1], 3.0 * taught[0])
    assert (taught[2][0] == 5.0).all()  # the paper's code: the first learner's weight is 5
    factors = taught[2][1:, 0] / taught[0][1:, 0]
    assert factors.min() >= 5.0
    assert factors.max() <= 200.0
    assert factors.std() > 30.0


def test_late_feedback_uses_the_votes_of_its_round():
    """A gradient is taken at the votes that were cast, whatever alpha is when the label comes."""
    votes = np.array([[0, 1], [1, 0], [0, 0], [2, 2], [1, 2], [0, 1]])
    booster = scripted(AdaBoostOLM, 3, votes)
    x = np.zeros(2)
    first, second = booster.act(x), booster.act(x)
    booster.learn(x, second, 1)
    before = booster.alpha.copy()
    booster.learn(x, first, 1)
    slopes = [derivative(0, EXACT, np.zeros(3), 0.0, l, 1, np.zeros(3)) for l in votes[0]]
    assert booster.alpha == pytest.approx(before - 2 * math.sqrt(2) / (2 * math.sqrt(2)) * np.array(slopes))


def test_what_is_refused():
    problem = Problem(2, 3, 1.0)
    rng = np.random.default_rng(0)
    for settings, message in (
        ({"n_learners": 0}, "n_learners must be at least 1"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"derivative": "numeric"}, "derivative must be one of"),
        ({"weight_scale": -1.0}, "weight_scale must be a number above 0"),
        ({"weight_scale": "big"}, "weight_scale must be"),
        ({"weak_learner": "tree"}, "no weak_learner is called 'tree'"),
        ({"forecaster": "odg"}, "no forecaster is called 'odg'"),
        ({"stepp": 1.0}, "has no setting 'stepp'"),
        ({"step": 1.0, "weak_learner.step": 2.0}, "is given twice"),
    ):
        with pytest.raises(UsageError, match=message):
            AdaBoostOLM(problem, rng, **({"n_learners": 2, "weak_learner": "forecaster"} | settings))
    with pytest.raises(HorizonRequiredError, match="clip = 'theory' needs the horizon"):
        AdaBoostOLMPlus(problem, rng, n_learners=2, weak_learner="forecaster")
    booster = AdaBoostOLM(problem, rng, n_learners=2, weak_learner="forecaster")
    decision = booster.act(np.zeros(2))
    with pytest.raises(UsageError, match="the decision's payload must be of shape"):
        booster.learn(np.zeros(2), Decision(decision.action, decision.probabilities, None, np.zeros(3)), 0)


@pytest.mark.parametrize(("N", "in_odds"), [(300, True), (301, False), (400, False)])
def test_votes_of_many_learners_at_their_limit_still_have_costs(N, in_odds):
    """Alphas of 2 and one class that all name: votes to 2 N. Beyond 600 they have no odds, and differences are taken."""
    booster = scripted(AdaBoostOLM, 3, np.ones((2, N), dtype=int))
    booster.alpha[:] = 2.0
    assert booster._rule()[1].in_odds is in_odds
    decision = booster.act(np.zeros(2))
    assert decision.action == 1
    assert np.isfinite(decision.payload).all()
    for i in (0, N // 2, N - 1):
        C, s = booster.learners[i].asked[0], 2.0 * i
        rival = 1.0 / (1.0 + math.exp(s)) if s < 700.0 else 0.0
        expected = [
            [-0.5 - (1.0 - rival), 1.0 - rival, 0.5],
            [rival, -2.0 * rival, rival],
            [0.5, 1.0 - rival, -1.5 + rival],
        ]
        np.testing.assert_allclose(C, expected, rtol=1e-12, atol=1e-250)
    booster.learn(np.zeros(2), decision, 0)
    assert (np.abs(booster.alpha) <= 2.0).all()
    assert np.isfinite(booster.edges.measured()).all()
