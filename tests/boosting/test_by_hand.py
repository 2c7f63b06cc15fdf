"""What boosters and their learners do at the edges of their rules, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.boosting.best_single import BestSingle
from banditlab.boosting.booster import weak_learner_settings
from banditlab.boosting.compiled_rounds import Room, parts
from banditlab.boosting.edges import Edges
from banditlab.boosting.exploration import BoostedExploration
from banditlab.boosting.hedge import weights_of
from banditlab.boosting.losses import EXPONENTIAL, LOGISTIC, gradient
from banditlab.boosting.mbbm import OnlineMBBM
from banditlab.boosting.olm import AdaBoostOLM
from banditlab.boosting.olm import Kept as Votes
from banditlab.boosting.olm_plus import AdaBoostOLMPlus
from banditlab.boosting.one_vs_all import AdaBoostOLOneVsAll, AdaOVA
from banditlab.boosting.oza import Oza
from banditlab.boosting.regression import BoostingRegression
from banditlab.boosting.regression import Kept as Shares
from banditlab.boosting.trees.hoeffding import HoeffdingTree
from banditlab.boosting.weak.forecasting import Forecasting
from banditlab.boosting.weak.simulated import Simulated
from banditlab.boosting.weak.tuning import Tuning
from banditlab.boosting.weak.weak_learner import WeakLearner, least_costly, most_probable
from banditlab.bounds.boosting import (
    boosting_regression,
    olm_best_expert,
    olm_plus_best_expert,
    olm_square_hinge_best_expert,
)
from banditlab.errors import UsageError
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.problem import Problem

PROBLEM = Problem(4, 3, 2.0, 1000)


def build(cls, seed=0, **settings):
    given = {"n_learners": 2, "weak_learner": "forecaster"} | settings
    return cls(PROBLEM, np.random.default_rng(seed), **given)


class Uniforms:
    """Draws that are given."""

    def __init__(self, *u):
        self.u = list(u)

    def random(self):
        return self.u.pop(0)


# ---------------------------------------------------------------------------------------------- what is asked of a class


def test_the_room_has_a_door():
    from banditlab.boosting import Oza as found

    assert found is Oza


def test_contexts_are_dense():
    for cls in (AdaBoostOLM, BestSingle, OnlineMBBM, BoostedExploration):
        assert cls.needs_dense(PROBLEM, {})


def test_the_first_weak_learner_is_the_first():
    olm, ova, groups = build(AdaBoostOLM), build(AdaBoostOLOneVsAll), build(AdaOVA)
    assert olm.inner is olm.learners[0]
    assert ova.inner is ova.members[0].learners[0]
    assert groups.inner is groups.learners[0].members[0]


class Needs(WeakLearner):
    id = "needs"

    def __init__(self, problem, rng, *, depth, width=1):
        super().__init__(problem, rng)


def test_settings_of_weak_learners_that_have_no_default():
    assert weak_learner_settings(AdaBoostOLM, Needs, {"weak_learner.depth": 3}) == {"depth": 3}
    with pytest.raises(UsageError, match=r"^adaboost-olm of needs needs the setting 'depth'$"):
        weak_learner_settings(AdaBoostOLM, Needs, {"width": 2})


@pytest.mark.parametrize("written", [[("forecaster", "ogd")], {"forecaster": "ons"}, {"step": 1.0}, None])
def test_a_state_of_other_settings_is_refused(written):
    booster = build(BestSingle, forecaster="ogd")
    with pytest.raises(UsageError, match=r"^state\._written must be some of the settings"):
        booster.set_state(booster.get_state() | {"_written": written})
    booster.set_state(booster.get_state() | {"_written": {}})  # a default, written or not
    assert booster.get_state()["_written"] == {}


def test_errors_of_oza_lie_between_nothing_and_a_half():
    for least in (0.0, 0.5):
        with pytest.raises(UsageError, match="least_error must lie strictly between 0 and 1/2"):
            build(Oza, least_error=least)
    assert build(Oza, least_error=0.499).least_error == 0.499


# ------------------------------------------------------------------------------------------------------ edges and bounds


def test_edges_are_nothing_before_anything_was_counted():
    assert Edges.zero(2).measured().tolist() == [0.0, 0.0]
    assert Edges(np.array([0.5, 3.0, 0.0]), np.array([1.0, -4.0, 0.0])).measured().tolist() == [0.5, -0.75, 0.0]


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
    booster, T = build(AdaBoostOLM, **settings), 1_000_000
    booster.rounds, booster.edges.got[:], booster.edges.best[:] = T, (3.0, -2.0), 1.0
    found = booster.diagnostics()["best_expert_bound"]
    if bound is None:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(bound(T))
        assert found < T


def test_the_best_experts_bound_of_olm_plus():
    booster, T = build(AdaBoostOLMPlus), 1_000_000
    booster.rounds, booster.edges.got[:], booster.edges.best[:] = T, (3.0, -2.0), 1.0
    regret = BoostingRegression(2, 3, clip=math.log(1000)).bound(T)
    found = booster.diagnostics()["best_expert_bound"]
    assert found == pytest.approx(olm_plus_best_expert(T, 3, 2, 13.0, regret))
    assert found < T
    assert math.isnan(build(AdaBoostOLMPlus, regression_bound=1.0).diagnostics()["best_expert_bound"])


@pytest.mark.parametrize(("forecaster", "cls"), [("folklore", FOLKLORE), ("aioli", AIOLI)])
def test_the_regressions_regret_is_its_forecasters_of_two_features_and_the_clips(forecaster, cls):
    ours = BoostingRegression(1, 3, clip=1.5, forecaster=forecaster, norm_bound=1.7)
    one = cls(Problem(2, 2, 2.5), None, norm_bound=1.7).bound(500)
    assert ours.bound(500) == pytest.approx(boosting_regression(500, 1.5, one))


def test_weights_of_boosting_by_majority_are_at_most_1():
    """Two classes and one draw: a weight is 0 or 1, and its bound is below 1 early on, which an estimate may exceed."""

    class Says:
        told_label, reads_costs = False, False

        def __init__(self, said):
            self.said, self.weights = said, []

        def view(self, context):
            return context

        def predict(self, view, costs=None):
            return self.said

        def update(self, view, label, weight):
            self.weights.append(weight)

    problem, settings = Problem(1, 2, 1.0), {"n_learners": 60, "weak_learner": "simulated", "draws": 1}
    booster = OnlineMBBM(problem, np.random.default_rng(0), potentials="monte-carlo", edge=0.02, **settings)
    booster.learners = [Says(i % 2) for i in range(60)]
    assert booster.weight_bounds.shape == (60,)
    assert booster.weight_bounds[:50].max() < 1.0
    for label in (0, 1, 1):
        booster.learn(np.ones(1), booster.act(np.ones(1)), label)
    assert {weight for learner in booster.learners[:50] for weight in learner.weights} == {0.0, 1.0}


# ------------------------------------------------------------------------------------------------------- losses and hedge


def test_exponential_costs_end_at_e_to_the_300():
    g = np.zeros(2)
    for lead, cost in ((299.0, math.exp(299.0)), (301.0, math.exp(300.0)), (5000.0, math.exp(300.0))):
        gradient(EXPONENTIAL, np.array([lead, 0.0]), 1, g)
        assert g.tolist() == pytest.approx([cost, -cost], rel=1e-12)


def test_a_vote_at_the_last_that_has_odds():
    """600 of one class: the others' costs, and its own, are those of the difference."""
    for own, rival in ((600.0, 599.0), (599.0, 600.0), (-600.0, -599.0)):
        g = np.zeros(2)
        gradient(LOGISTIC, np.array([rival, own]), 1, g)
        assert g[0] == pytest.approx(1.0 / (1.0 + math.exp(own - rival)), rel=1e-13)


def test_weights_of_experts_far_behind():
    assert weights_of(np.array([3.0, 748.0])).tolist() == [1.0, 5e-324]
    assert weights_of(np.array([3.0, 749.0])).tolist() == [1.0, 0.0]  # 746 mistakes behind
    assert weights_of(np.array([3.0, 4.0])).tolist() == pytest.approx(
        [1.0 / (1.0 + math.exp(-1.0)), 0.2689414213699951]
    )
    with np.errstate(all="ignore"):
        for none in (np.nan, np.inf):
            assert np.isnan(weights_of(np.array([0.0, none]))).all()


# ------------------------------------------------------------------------------------------------------ room of a round


@pytest.mark.parametrize(("N", "K"), [(1, 2), (3, 5), (5, 17)])
def test_the_room_of_a_round_is_as_large_as_it_says_and_shared_by_nobody(N, K):
    room, other = Room.of(N, K, Votes), Room.of(N, K, Shares)
    shapes = {name: array.shape for name, array in room._asdict().items() if name not in ("kept", "fading")}
    assert shapes == {
        "payload": (N * (K + 2),),
        "mass": (N + 1, K),
        "before": (N, K),
        "after": (N, K),
        "costs": (K, K),
        "gain": (K,),
        "estimates": (N, K),
        "uniforms": (N,),
        "weights": (N,),
        "experts": (N,),
        "p": (K,),
    }
    assert [array.shape for array in room.kept] == [(K,), (K,), (K, K), (K, K)]
    assert [array.shape for array in other.kept] == [(K,), (N, 8)]
    every = [array for array in (*room[:-1], *room.kept) if array is not room.fading]
    for i, array in enumerate(every):
        assert not any(np.may_share_memory(array, one) for one in every[:i])
    votes, choices, S = parts(room.payload, K)
    assert (votes.shape, choices.shape, S.shape) == ((N,), (N,), (N, K))
    assert not any(np.may_share_memory(a, b) for a, b in ((votes, choices), (choices, S), (votes, S)))


# --------------------------------------------------------------------------------------------------------- weak learners


def test_a_choice_where_nothing_is_a_number_or_everything_is_as_bad():
    assert most_probable(np.full(3, np.nan), 0.9) == 0
    assert most_probable(np.full(3, -np.inf), 0.9) == 2
    assert most_probable(np.array([-np.inf, np.nan]), 0.9) == 0
    q, costs = np.array([0.5, 0.5]), 1e-20 * np.array([[3.0, 2.0], [2.0, 2.5]])
    assert least_costly(q, costs, np.ones(2), 0.0) == 1  # differences far below 1


def test_an_example_of_weight_1_is_passed_on_once_whatever_is_drawn():
    one, seen = Forecasting(PROBLEM, np.random.default_rng(0)), []
    one._inner.update = lambda x, y: seen.append(y)
    for u, weight, times in ((0.0, 1.0, 1), (0.0, 0.0, 0), (0.25, 1.25, 1), (0.24, 1.25, 2)):
        one.rng = Uniforms(u)
        seen.clear()
        one.update(np.ones(4), 1, weight)
        assert len(seen) == times


def simulated(*u, **settings):
    one = Simulated(PROBLEM, np.random.default_rng(0), **settings)
    one.rng = Uniforms(*u)
    return one


def test_a_simulated_learner_is_right_below_its_edge():
    for u, said in ((0.29, 2), (0.3, 0), (0.53, 0), (0.54, 1), (0.77, 2)):
        one = simulated(u, edge=0.3)
        one.peek(2)
        assert one.predict(np.zeros(4)) == said


def test_a_simulated_learners_own_edge_is_a_probability():
    edges = [Simulated(PROBLEM, np.random.default_rng(seed), edge=0.5, spread=1.0).own_edge for seed in range(60)]
    assert min(edges) == 0.0
    assert max(edges) == 1.0
    assert sum(0.0 < edge < 1.0 for edge in edges) > 15


def test_an_adversarial_learners_account_by_hand():
    costs = np.array([[0.0, 0.2, 0.3], [0.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    one = simulated(0.0, 0.9, 0.9, 0.9, edge=0.25, behaviour="adversarial")
    one.update(np.zeros(4), 0, 1.0)
    assert one.account == 1.0  # nothing was predicted
    one.peek(2)
    assert one.predict(np.zeros(4), costs) == 0  # all that can be lost, which the account just covers
    one.update(np.zeros(4), 2, 0.5)
    assert one.account == pytest.approx(1.0 + 0.5 * (0.25 - 1.0))
    one.peek(0)
    assert one.predict(np.zeros(4), costs) == 2  # 0.3 of 0.5 in all
    one.update(np.zeros(4), 0, 1.0)
    assert one.account == pytest.approx(0.625 + 0.25 - 0.6)
    one.peek(1)
    assert one.predict(np.zeros(4), costs) == 2  # nothing to lose: of equals one by the uniform, and nothing is earned
    one.update(np.zeros(4), 1, 1.0)
    assert one.account == pytest.approx(0.275)
    one.peek(2)
    assert one.predict(np.zeros(4), costs) == 2  # more than the account has
    one.update(np.zeros(4), 2, 1.0)
    assert one.account == pytest.approx(0.275 + 0.25)


def test_the_last_seed_of_a_tuning():
    tuning = Tuning(2**32 - 1, 2, HoeffdingTree, {})
    assert tuning.seed == 4294967295
    assert tuning.settings[0] != tuning.settings[1]


def test_exploration_at_the_edge_of_its_coin():
    agent = BoostedExploration(
        PROBLEM, np.random.default_rng(0), booster="best-single", gamma=0.5, n_learners=1, weak_learner="forecaster"
    )
    for coin, explored in ((0.5, False), (np.nextafter(0.5, 0.0), True)):
        decision = agent._decide(agent.view(np.zeros(4)), np.array([coin, 0.99]))
        assert decision.explored is explored
        assert sorted(decision.probabilities) == pytest.approx([1 / 6, 1 / 6, 2 / 3])
        assert decision.action == (2 if explored else int(np.argmax(decision.probabilities)))
