"""Several actions may be right in a round: what is counted, who plays, and that an agent receives its action's bit only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab.checks import run_checks
from banditlab.engine import Sweep, make_spec, play
from banditlab.envs._dataset import DataSetEnv
from banditlab.envs._recipe import Rows
from banditlab.errors import IncompatibleError, UsageError
from banditlab.players.agent import Trace
from banditlab.players.inputs import as_block
from banditlab.problem import Problem
from banditlab.registry import registry
from tests.engine.test_adaptive_bounds import Covered

K = 4
QUICK = {"banditron", "beta-ts", "uniform"}


def table(seed: int = 0, K: int = K, n: int = 30, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return contexts (n, d) of norm at most 1 and bits (n, K), a row with none and a row with all among them."""
    rng = np.random.default_rng([seed, K])
    X = rng.standard_normal((n, d))
    X /= 1.001 * np.linalg.norm(X, axis=1).max()
    right = rng.random((n, K)) < rng.uniform(0.02, 0.98)
    right[rng.choice(n, 2, replace=False)] = [[False], [True]]
    return X, right


class Given(DataSetEnv):
    """The rows and the bits, or labels, that it is given."""

    id = "tests/Given-v0"
    summary = "rows with the bit of every action"
    reference = "made here"

    def __init__(self, *, seed: int = 0, horizon: int = 64) -> None:
        self.seed = seed
        self.given = table(seed)
        super().__init__(horizon)

    @classmethod
    def of(cls, X: Any, y: Any, horizon: int) -> Given:
        env = cls.__new__(cls)
        env.given = X, y
        DataSetEnv.__init__(env, horizon)
        return env

    def _load(self) -> Rows:
        X, y = self.given
        return Rows(X, y, list(range(y.shape[1] if y.ndim == 2 else K)), 1.0, "none")


def make(id_: str, problem: Problem, **settings: Any) -> Any:
    return registry().load("agents", id_)(problem, np.random.default_rng(1), **settings)


def block(id_: str, X: Any, truth: Any, **settings: Any) -> Trace:
    trace = Trace.empty(len(X))
    n_classes = truth.shape[1] if truth.ndim == 2 else K
    make(id_, Problem(X.shape[1], n_classes, 1.0, len(X)), **settings).play_block(X, truth, trace)
    return trace


# ------------------------------------------------------------------------------------------------------- what is counted


def protocol(player: Any, X: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    """Play by `act` and `learn`, and count in numpy."""
    rounds = []
    for x, bits in zip(X, right, strict=True):
        decision = player.act(x)
        a, p, explored, _ = decision
        rounds.append((a, bits[a], sum(q for q, bit in zip(p.tolist(), bits, strict=True) if bit), bool(explored)))
        player.learn(x, decision, bool(bits[a]))
    action, correct, chance, explored = map(np.array, zip(*rounds, strict=True))
    wrong = 1.0 - chance
    return {
        "trace": (action, correct, chance, explored),
        "mistakes": int((~correct).sum()),
        "expected_mistakes": float(wrong.sum()),
        "mistakes_variance": float((chance * wrong).sum()),
        "constant_mistakes": int((~right).sum(axis=0).min()),
    }


@pytest.mark.parametrize(("id_", "settings"), [("banditron", {}), ("beta-ts", {}), ("beta-ts", {"per": [0, 2]})])
@pytest.mark.few(1)
def test_numpy_counts_the_same_on_200_tables(id_: str, settings: dict[str, Any]) -> None:
    for seed, k in enumerate(np.random.default_rng(5).integers(2, 201, size=200).tolist()):
        X, right = table(seed, k)
        env = Given.of(X, right, len(X) + 9)
        played = play(env, make(id_, env.problem, **settings), seed=seed, keep_trace=True)
        order = env.row_order(env.horizon)
        expected = protocol(make(id_, env.problem, **settings), X[order], right[order])
        assert played.trace is not None
        for found, column in zip(played.trace, expected.pop("trace"), strict=True):
            np.testing.assert_array_equal(found, column)
        assert {name: getattr(played, name)[-1] for name in expected} == expected
        assert played.first_sight_constant_mistakes == [int((~right).sum(axis=0).min())]
        assert math.isnan(played.log_loss[-1])


@pytest.mark.parametrize(
    ("id_", "settings"),
    [
        ("banditron", {}),
        ("exploration", {"forecaster": "ogd", "gamma": 0.3}),  # which forecasts round by round
        pytest.param("exploration", {"gamma": 0.3}, marks=pytest.mark.slow),  # and in stretches
    ],
)
def test_a_label_is_the_case_of_one_right_action(id_: str, settings: dict[str, Any]) -> None:
    X, right = table(n=200)
    y = np.random.default_rng(0).integers(K, size=len(X))
    by_label, by_bits = (block(id_, X, truth, **settings) for truth in (y, y[:, None] == np.arange(K)))
    for one, other in zip(by_label, by_bits, strict=True):
        np.testing.assert_array_equal(one, other)
    steps = protocol(make(id_, Problem(3, K, 1.0, len(X)), **settings), X, right)["trace"]
    for one, other in zip(block(id_, X, right, **settings), steps, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("bit", [False, True])
def test_rounds_in_which_no_action_or_every_action_is_right(bit: bool) -> None:
    X, right = table()
    env = Given.of(X, np.full_like(right, bit), 70)
    played = play(env, make("banditron", env.problem), seed=1)
    mistakes = 0 if bit else 70
    assert (played.mistakes, played.constant_mistakes) == ([mistakes], [mistakes])
    assert played.expected_mistakes == pytest.approx([mistakes])


# ------------------------------------------------------------------------------------------------- what reaches an agent

AGENTS = [
    pytest.param(entry.id, marks=() if entry.id in QUICK else pytest.mark.slow)
    for entry in registry().entries("agents")
    if entry.load().feedback == "bit" and not entry.load().requires
]


@pytest.mark.parametrize("id_", AGENTS)
def test_bits_of_other_actions_change_nothing(id_: str) -> None:
    X, right = table(K=2 if id_ == "apple-tasting" else K, n=300)
    action = block(id_, X, right).action
    other = np.random.default_rng(3).random(right.shape) < 0.5
    rounds = np.arange(len(X))
    other[rounds, action] = right[rounds, action]
    assert (other != right).mean() > 0.2
    np.testing.assert_array_equal(block(id_, X, other).action, action)


def test_single_rounds_are_the_blocks_and_show_nothing_else() -> None:
    env, actions = Given(horizon=64), np.random.default_rng(2).integers(K, size=64)
    x, info = env.reset(seed=3)
    X, right = map(np.concatenate, zip(*env.blocks(64, 10), strict=True))
    for t, action in enumerate(actions.tolist()):
        np.testing.assert_array_equal(x, X[t])
        x, reward, _, _, more = env.step(action)
        assert (reward, info, more) == (float(right[t, action]), {}, {})
        np.testing.assert_array_equal(env.right(), right[t])
    one, other = (play(env, make("banditron", env.problem), seed=3, path=path) for path in ("blocks", "steps"))  # type: ignore[arg-type]
    assert one.mistakes == other.mistakes
    assert one.expected_mistakes == pytest.approx(other.expected_mistakes, rel=1e-12)


def test_an_environment_has_either_labels_or_bits() -> None:
    env = Given()
    with pytest.raises(UsageError, match=r"Given.right: no round of this episode is finished yet"):
        env.right()
    env.reset(seed=0)
    env.step(0)
    assert (env.several_right, env.labelled) == (True, False)
    for method in (env.label, env.labels):
        with pytest.raises(UsageError, match=r"several actions may be right, so there are no labels; use right"):
            method()
    labelled = Given.of(env.given[0], np.arange(30) % K, 30)
    labelled.reset(seed=0)
    labelled.step(0)
    assert np.flatnonzero(labelled.right()).tolist() == [labelled.label()]


def test_the_environment_passes_its_checks() -> None:
    assert [str(result) for result in run_checks(Given) if result.status == "failed"] == []


def test_bits_of_another_form_are_refused() -> None:
    X, right = table()
    for bits in (right[:, 1:], right[1:], right.astype(int)):
        with pytest.raises(UsageError, match=r"the bits must be of shape \(30, 4\) and bool, got"):
            as_block(X, bits, 3, K, several=True)
    with pytest.raises(UsageError, match=r"the labels must be of shape \(30,\), one for every context, got \(30, 4\)"):
        as_block(X, right, 3, K)


# ----------------------------------------------------------------------------------------------------------- who may play


@pytest.mark.parametrize(
    ("kind", "id_"),
    [("forecasters", "ogd"), ("agents", "perceptron"), ("agents", "sampled"), ("boosters", "adaboost-olm")],
)
@pytest.mark.parametrize("path", ["auto", "steps"])
def test_players_that_observe_labels_say_that_they_need_one(kind: str, id_: str, path: Any) -> None:
    env = Given()
    player = registry().load(kind, id_)(env.problem, np.random.default_rng(0))
    with pytest.raises(
        IncompatibleError, match=r"^the learner observes one label per round, and several actions may be right in this"
    ):
        play(env, player, seed=0, path=path)


def test_theorems_assume_one_right_action() -> None:
    env = Given()
    played = play(env, Covered(env.problem, np.random.default_rng(0)), seed=1)
    assert played.no_bound == "its theorem assumes one right action"
    assert np.isnan([*played.bound, *played.certificate]).all()
    silent = play(env, make("banditron", env.problem), seed=1)
    assert silent.no_bound == ""


# -------------------------------------------------------------------------------------------------------------- in a sweep


@pytest.fixture
def spec(tmp_path: Any) -> dict[str, Any]:
    X, right = table(n=60)
    frame = pd.DataFrame(right.astype(int), columns=list("abcd")).assign(x=X[:, 0], y=X[:, 1], kind=list("uvw") * 20)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return {
        "name": "several",
        "rounds": 90,
        "repetitions": 2,
        "environment": [{"id": "banditlab/Table-v0", "path": str(tmp_path / "t.csv"), "arms": list("abcd")}],
        "agent": [{"id": "beta-ts"}, {"id": "beta-ts", "per": [2, 4]}, {"id": "perceptron"}, {"id": "uniform"}],
        "forecaster": [{"id": "ogd"}],
    }


def test_a_sweep_plays_a_table_with_arms(spec: Any, tmp_path: Any) -> None:
    sweep = Sweep(make_spec(spec, "test"))
    sweep.run(tmp_path / "out")
    runs = pd.read_parquet(tmp_path / "out" / "results.parquet")
    last = runs[runs["round"] == 90]
    assert sorted(set(last["player"])) == ["beta-ts", "uniform"]
    assert len(last) == 6
    assert last["log_loss"].isna().all()
    right = pd.read_csv(tmp_path / "t.csv")[list("abcd")]
    assert set(last["first_sight_constant_mistakes"]) == {60 - right.sum().max()}
    skipped = {row["player"]: row["reason"] for row in sweep.plan.skipped}
    assert set(skipped) == {"perceptron", "ogd"}
    assert all(reason.startswith("the learner observes one label per round") for reason in skipped.values())


def test_the_comparator_needs_one_label(spec: Any) -> None:
    with pytest.raises(
        UsageError,
        match=r"norm_bounds: no comparator on .* \(no single label per round, which a comparator requires",
    ):
        Sweep(make_spec(spec | {"norm_bounds": [1.0]}, "test"))
