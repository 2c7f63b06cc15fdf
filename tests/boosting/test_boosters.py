"""What every booster keeps, and the boosters without a theorem beside direct forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.boosting.best_single import BestSingle
from banditlab.boosting.booster import weak_learner_settings
from banditlab.boosting.exploration import BoostedExploration
from banditlab.boosting.olm import AdaBoostOLM
from banditlab.boosting.one_vs_all import AdaBoostOLOneVsAll, AdaOVA, OneVsAllLearner
from banditlab.boosting.oza import Oza
from banditlab.boosting.weak.weak_learner import WeakLearner
from banditlab.checks import check_id, run_checks
from banditlab.errors import IncompatibleError, UsageError
from banditlab.players.agent import Trace
from banditlab.problem import Problem
from banditlab.registry import registry

PROBLEM = Problem(4, 3, 3.0, 500)
IDS = sorted(entry.id for entry in registry().entries("boosters"))


def stream(n, seed=0, K=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    X *= 3.0 / np.linalg.norm(X, axis=1).max()
    y = np.argmax(X[:, :K] + 0.1 * rng.standard_normal((n, K)), axis=1)
    return X, y


def played(player, X, y):
    trace = Trace.empty(len(y))
    player.play_block(X, y, trace)
    return trace


def build(id_, seed=0, problem=PROBLEM, **settings):
    given = {"n_learners": 3, "weak_learner": "forecaster", "forecaster": "ogd"} | settings
    return registry().load("boosters", id_)(problem, np.random.default_rng(seed), **given)


LONG = ("adaova", "adaboost-ol-ova")  # as many boosters as classes


@pytest.mark.parametrize("id_", [pytest.param(i, marks=pytest.mark.slow if i in LONG else ()) for i in IDS])
@pytest.mark.few(2)
def test_every_booster_passes_the_checks(id_):
    results = list(check_id(id_, n_learners=2, weak_learner="forecaster", forecaster="ogd"))
    assert [str(r) for r in results if r.status == "failed"] == []
    assert {r.name for r in results if r.status == "excluded"} <= {"bad_settings"}
    assert sum(r.status == "passed" for r in results) >= 14


@pytest.mark.slow
def test_trees_pass_but_for_memory():
    results = run_checks(BestSingle, n_learners=2)
    assert [str(r) for r in results if r.status == "failed"] == []
    assert "bounded_memory" in {r.name for r in results if r.status == "excluded"}


@pytest.mark.parametrize("id_", IDS)
def test_blocks_are_steps_and_boosting_learns(id_):
    X, y = stream(200)
    one, other = build(id_), build(id_)
    trace = played(one, X, y)
    actions = []
    for x, label in zip(X, y):
        decision = other.act(x)
        actions.append(decision.action)
        other.learn(x, decision, int(label))
    assert trace.action.tolist() == actions
    assert trace.correct[100:].mean() > 0.6  # a guess has a third
    assert not trace.explored.any()
    found = one.diagnostics()
    assert found
    assert all(isinstance(value, float) for value in found.values())


@pytest.mark.parametrize("id_", IDS)
def test_parameters_build_the_same_booster_again(id_):
    booster = build(id_, **{"weak_learner.step": 0.5})
    assert booster.params()["step"] == 0.5
    again = registry().load("boosters", id_)(PROBLEM, np.random.default_rng(0), **booster.params())
    X, y = stream(40)
    assert played(again, X, y).action.tolist() == played(booster, X, y).action.tolist()


def test_what_each_tree_draws_stays_random_in_the_parameters():
    booster = AdaBoostOLM(PROBLEM, np.random.default_rng(0), n_learners=30, tie_threshold=0.3)
    assert booster.params()["grace_period"] == "random"
    assert booster.params()["tie_threshold"] == 0.3
    assert len({tree.grace_period for tree in booster.learners}) > 5
    assert {tree.tie_threshold for tree in booster.learners} == {0.3}


def test_a_learner_more_needs_256_bytes_more_at_least():
    none, some = (BestSingle.least_bytes(PROBLEM, {"n_learners": n}) for n in (0, 1000))
    assert some - none == 256_000


# --------------------------------------------------------------------------------------------------------------- Oza


class Table:
    """A weak learner that says the columns of a table, the second time a round as the first, and keeps its weights."""

    needs_label = False

    def __init__(self, says, per_round):
        self.says, self.per_round, self.asked, self.weights = says, per_round, 0, []

    def view(self, context):
        return context

    def predict(self, context, costs=None):
        self.asked += 1
        return int(self.says[(self.asked - 1) // self.per_round])

    def update(self, context, label, weight):
        self.weights.append(weight)


def test_oza_is_figure_2():
    rng = np.random.default_rng(2)
    T, N, K = 150, 4, 3
    y = rng.integers(K, size=T)
    votes = np.where(rng.random((T, N)) < [0.9, 0.6, 0.5, 0.2], y[:, None], rng.integers(K, size=(T, N)))
    booster = build("oza", n_learners=N, sampling="weight")
    booster.learners = [Table(votes[:, i], 2) for i in range(N)]
    trace = played(booster, np.zeros((T, 4)), y)
    right, wrong, weights, p_true = np.zeros(N), np.zeros(N), np.zeros((T, N)), np.zeros(T)
    for t in range(T):
        totals = np.zeros(K)
        for i in range(N):
            eps = wrong[i] / (wrong[i] + right[i]) if t else 0.5
            totals[votes[t, i]] += math.log((1 - min(0.5, max(0.001, eps))) / min(0.5, max(0.001, eps)))
        p_true[t] = (totals[y[t]] == totals.max()) / (totals == totals.max()).sum()
        lam = 1.0
        for i in range(N):
            weights[t, i] = lam
            if votes[t, i] == y[t]:
                right[i] += lam
                lam *= (t + 1) / (2 * right[i])
            else:
                wrong[i] += lam
                lam *= (t + 1) / (2 * wrong[i])
            lam = min(lam, 100.0)
    np.testing.assert_allclose([learner.weights for learner in booster.learners], weights.T, rtol=1e-12)
    np.testing.assert_allclose(trace.p_true, p_true)
    np.testing.assert_allclose(booster.errors(), wrong / (wrong + right), rtol=1e-12)
    assert booster.diagnostics()["vote.4"] == 0.0  # a learner that is wrong more often than not has no vote


def test_poisson_trains_as_often_in_the_mean():
    T = 3000
    booster = build("oza", n_learners=1)
    booster.learners = [Table(np.zeros(T), 2)]
    played(booster, np.zeros((T, 4)), np.zeros(T, np.int64))
    weights = np.array(booster.learners[0].weights)
    assert (weights == np.round(weights)).all()
    assert abs(weights.mean() - 1.0) < 5 / math.sqrt(T)
    assert abs(weights.var() - 1.0) < 0.2


def test_bad_settings_of_oza():
    for settings, message in (
        ({"sampling": "gamma"}, "sampling must be one of"),
        ({"least_error": 0.0}, "least_error must lie strictly between 0 and 1/2"),
        ({"least_error": 0.5}, "least_error must lie strictly between 0 and 1/2"),
        ({"largest_weight": 0.0}, "largest_weight must be a number above 0"),
    ):
        with pytest.raises(UsageError, match=message):
            build("oza", **settings)


# ------------------------------------------------------------------------------------------------------- one against all


@pytest.mark.parametrize("derivative", ["exact", "coded"])
def test_one_vs_all_plays_the_surest_class_and_tells_each_member_its_label(derivative):
    X, y = stream(120)
    booster = build("adaboost-ol-ova", n_learners=2, derivative=derivative)
    assert isinstance(booster, AdaBoostOLOneVsAll)
    binary = {"problem": Problem(4, 2, 3.0, 500), "derivative": derivative}
    twins = [build("adaboost-olm", n_learners=2, **binary) for _ in range(3)]
    for twin, member in zip(twins, booster.members):
        twin.set_state(member.get_state())
    for x, label in zip(X, y):
        decision = booster.act(x)
        answers = [twin.act(x) for twin in twins]
        sure = np.array([answer.probabilities[0] for answer in answers])
        assert decision.probabilities[sure == sure.max()].sum() == pytest.approx(1.0)
        booster.learn(x, decision, int(label))
        for k, (twin, answer) in enumerate(zip(twins, answers)):
            twin.learn(x, answer, int(k != label))
    assert [member.mistakes.tolist() for member in booster.members] == [twin.mistakes.tolist() for twin in twins]
    assert [member.alpha.tolist() for member in booster.members] == [twin.alpha.tolist() for twin in twins]
    assert booster.inner is booster.members[0].inner
    assert booster.diagnostics()["class.2.edge.1"] == twins[2].diagnostics()["edge.1"]


def test_adaova_is_olm_over_groups():
    booster = build("adaova", n_learners=2)
    assert isinstance(booster, AdaOVA)
    group = booster.learners[0]
    assert isinstance(group, OneVsAllLearner)
    assert booster.inner is group.members[0]
    X, y = stream(100)
    played(booster, X, y)
    q, both = np.zeros(3), np.zeros(2)
    group.estimate(X[0], q)
    for k, member in enumerate(group.members):
        member.estimate(X[0], both)
        assert q[k] == pytest.approx(both[0])
    costs = np.random.default_rng(0).random((3, 3))
    assert group.predict(X[0], costs) == np.argmin(q @ costs)
    with pytest.raises(IncompatibleError, match="one-vs-all needs weak learners that estimate probabilities"):
        AdaOVA(PROBLEM, np.random.default_rng(0), n_learners=2, weak_learner="simulated")


# ------------------------------------------------------------------------------------------------------------ the rest


def test_the_best_single_learner_is_followed():
    rng = np.random.default_rng(6)
    T = 300
    y = rng.integers(3, size=T)
    votes = np.where(rng.random((T, 3)) < [0.3, 0.8, 0.5], y[:, None], (y[:, None] + 1) % 3)
    booster = build("best-single")
    booster.learners = [Table(votes[:, i], 1) for i in range(3)]
    trace = played(booster, np.zeros((T, 4)), y)
    wrong = (votes != y[:, None]).cumsum(axis=0)
    leader = np.concatenate([[0], np.argmin(wrong[:-1], axis=1)])
    assert trace.action.tolist() == votes[np.arange(T), leader].tolist()
    assert booster.diagnostics()["best_mistakes"] == wrong[-1].min()
    assert booster.diagnostics()["mistakes.3"] == wrong[-1, 2]
    assert all(learner.weights == [1.0] * T for learner in booster.learners)


def test_single_learners_have_weights_of_their_own_where_asked():
    booster = build("best-single", weight_scale="random")
    booster.learners = [Table(np.zeros(5, dtype=np.int64), 1) for _ in booster.learners]
    played(booster, np.zeros((5, 4)), np.zeros(5, dtype=np.int64))
    weights = np.array([learner.weights for learner in booster.learners])
    assert (weights == weights[:, :1]).all()
    assert weights[0, 0] == 10.0
    assert ((weights[1:, 0] >= 5.0) & (weights[1:, 0] <= 200.0)).all()
    assert len(set(weights[:, 0])) == len(weights)
    with pytest.raises(UsageError, match="weight_scale"):
        build("best-single", weight_scale=0.0)


def test_learners_that_are_told_the_label_are_told_it_in_blocks_only():
    X, y = stream(300)
    for id_ in ("adaboost-olm", "adaboost-ol-ova", "oza", "best-single"):
        settings = {"weak_learner": "simulated", "edge": 0.6, "n_learners": 4}
        booster = registry().load("boosters", id_)(PROBLEM, np.random.default_rng(1), **settings)
        assert played(booster, X, y).correct.mean() > 0.6
        with pytest.raises(UsageError, match="peek"):
            booster.act(X[0])
    olm = AdaBoostOLM(PROBLEM, np.random.default_rng(1), n_learners=4, weak_learner="simulated", edge=0.6)
    X, y = stream(3000, seed=1)
    played(olm, X, y)
    assert abs(olm.edges.measured()[0] - 0.6) < 5 * math.sqrt(1 / 3000)  # the edge that was asked for


def test_exploration_learns_explored_hits_only():
    X, y = stream(400, seed=3)
    agent = BoostedExploration(
        PROBLEM, np.random.default_rng(2), gamma=0.5, booster="adaboost-olm", n_learners=2, weak_learner="forecaster"
    )
    learnt = []
    absorb = agent.inner._absorb
    agent.inner._absorb = lambda view, payload, label: (learnt.append(label), absorb(view, payload, label))
    trace = played(agent, X, y)
    hits = trace.explored & trace.correct
    assert learnt == y[hits].tolist()
    assert agent.inner.rounds == hits.sum()
    assert abs(trace.explored.mean() - 0.5) < 0.13
    assert (trace.p_true >= 0.5 / 3 - 1e-12).all()
    assert trace.correct[~trace.explored][100:].mean() > 0.5
    with pytest.raises(UsageError, match="one that predicts without the label"):
        BoostedExploration(PROBLEM, np.random.default_rng(0), n_learners=2, weak_learner="simulated")
    with pytest.raises(UsageError, match="no booster is called 'olm'"):
        BoostedExploration(PROBLEM, np.random.default_rng(0), booster="olm")
    with pytest.raises(UsageError, match="is given twice"):
        BoostedExploration(PROBLEM, np.random.default_rng(0), n_learners=2, **{"booster.n_learners": 3})


@pytest.mark.slow
def test_saving_takes_everything_along(tmp_path):
    X, y = stream(120)
    for id_ in ("adaboost-olm++", "adaova", "adaboost-ol-ova", "oza"):
        booster = build(id_)
        played(booster, X[:60], y[:60])
        booster.save(tmp_path / "booster.npz")
        other = type(booster).load(tmp_path / "booster.npz")
        assert played(other, X[60:], y[60:]).action.tolist() == played(booster, X[60:], y[60:]).action.tolist()
        assert other.diagnostics() == booster.diagnostics()


def test_ozas_errors_and_votes_by_hand():
    """1/2 before anything was seen, cut to [least_error, 1/2] in a vote: a learner that is always wrong has none."""
    oza = Oza(Problem(2, 3, 1.0), np.random.default_rng(0), n_learners=4, weak_learner="forecaster")
    assert oza.errors().tolist() == [0.5] * 4
    oza.right[:], oza.wrong[:] = [3.0, 0.0, 0.0, 8.0], [1.0, 0.0, 5.0, 0.0]
    found = oza.diagnostics()
    assert [found[f"error.{i}"] for i in (1, 2, 3, 4)] == [0.25, 0.5, 1.0, 0.0]
    assert [found[f"vote.{i}"] for i in (1, 2, 3, 4)] == pytest.approx([math.log(3.0), 0.0, 0.0, math.log(999.0)])
    assert oza.act(np.zeros(2)).payload.shape == (oza.payload_size,) == (0,)


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
    booster = build("best-single", forecaster="ogd")
    with pytest.raises(UsageError, match=r"^state\._written must be a subset of the settings"):
        booster.set_state(booster.get_state() | {"_written": written})
    booster.set_state(booster.get_state() | {"_written": {}})  # a default, written or not
    assert booster.get_state()["_written"] == {}


def test_exploration_at_the_edge_of_its_coin():
    agent = BoostedExploration(
        PROBLEM, np.random.default_rng(0), booster="best-single", gamma=0.5, n_learners=1, weak_learner="forecaster"
    )
    for coin, explored in ((0.5, False), (np.nextafter(0.5, 0.0), True)):
        decision = agent._decide(agent.view(np.zeros(4)), np.array([coin, 0.99]))
        assert decision.explored is explored
        assert sorted(decision.probabilities) == pytest.approx([1 / 6, 1 / 6, 2 / 3])
        assert decision.action == (2 if explored else int(np.argmax(decision.probabilities)))
