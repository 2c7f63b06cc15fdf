"""What a run reports is the engine's: hits, answers before they are learnt from, first showings; who is handed labels."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation, OrderEnforcing, TimeLimit

from banditlab.agents import Banditron
from banditlab.engine import Sweep, make_spec, play
from banditlab.engine.verify import is_from_package, is_label_blind
from banditlab.engine.wrappers import is_bare
from banditlab.envs import Logistic, Table
from banditlab.errors import PlayerError, UsageError
from banditlab.players.agent import Agent
from banditlab.players.forecaster import Forecaster
from banditlab.problem import Decision
from banditlab.registry import registry

ROUNDS, K = 3000, 3


@pytest.fixture
def env():
    return Logistic(horizon=ROUNDS, n_features=4, n_classes=K)


def make(cls, env, **settings):
    return cls(env.unwrapped.problem, np.random.default_rng(1), **settings)


class Guesser(Agent):
    """Draws uniformly, from one array of its own that it hands out every time."""

    explores = False
    plays_blocks = True

    def __init__(self, problem, rng):
        super().__init__(problem, rng)
        self.p = np.full(problem.n_classes, 1 / problem.n_classes)

    def act(self, context):
        u = self.rng.random(2)
        return Decision(int(u[1] * self.problem.n_classes), self.p)

    def learn(self, context, decision, correct):
        pass

    def play_block(self, X, y, trace):
        for t, label in enumerate(y):
            decision = self.act(X[t])
            trace.action[t], trace.explored[t] = decision.action, False
            trace.correct[t], trace.p_true[t] = decision.action == label, decision.probabilities[label]
            self.learn(X[t], decision, bool(trace.correct[t]))


# ------------------------------------------------------------------------------------------------ before it is learnt from


class Rewriter(Guesser):
    """Writes certainty into its answer once it has been answered."""

    def learn(self, context, decision, correct):
        decision.probabilities[:] = 1.0
        self.p = np.full(self.problem.n_classes, 1 / self.problem.n_classes)


def test_an_answer_is_read_before_the_agent_learns(env):
    played = play(env, make(Rewriter, env), seed=1, path="steps")
    assert played.expected_mistakes[-1] == pytest.approx(ROUNDS * (1 - 1 / K))
    assert played.verified == "steps"


class LiveForecast(Forecaster):
    """Hands out its live logits, and makes them perfect when it is told the label."""

    def __init__(self, problem, rng):
        super().__init__(problem, rng)
        self.z = np.zeros(problem.n_classes)

    def predict(self, context):
        self.z[:] = 0.0
        return self.z

    def update(self, context, label):
        self.z[label] = 50.0


def test_a_forecast_is_read_before_the_forecaster_learns(env):
    played = play(env, make(LiveForecast, env), seed=1)
    assert played.log_loss[-1] == pytest.approx(ROUNDS * np.log(K))


def test_the_variance_is_that_of_the_mistakes(env):
    played = play(env, make(Guesser, env), seed=1, path="steps")
    assert played.mistakes_variance[-1] == pytest.approx(ROUNDS * (1 - 1 / K) / K)


# ---------------------------------------------------------------------------------------------------- blocks with labels


class Cheat(Guesser):
    """Reads the block's labels; its steps guess."""

    def play_block(self, X, y, trace):
        self.rng.random((len(y), 2))
        trace.action[:], trace.correct[:], trace.p_true[:], trace.explored[:] = y, True, 1.0, False


class LateCheat(Cheat):
    """Guesses as long as a run is short."""

    def play_block(self, X, y, trace):
        (Cheat if len(y) > 500 else Guesser).play_block(self, X, y, trace)


class Boaster(Guesser):
    """Plays fair, and says that every action was right."""

    def play_block(self, X, y, trace):
        super().play_block(X, y, trace)
        trace.correct[:] = True


class Doubtful(Boaster):
    """Plays fair, and says its probabilities were better."""

    def play_block(self, X, y, trace):
        super().play_block(X, y, trace)
        trace.p_true[:] = 0.9


class Impossible(Guesser):
    def play_block(self, X, y, trace):
        super().play_block(X, y, trace)
        trace.p_true[:] = np.nan


class OnlyBlocks(Guesser):
    def play_block(self, X, y, trace):
        trace.action[:], trace.correct[:], trace.p_true[:], trace.explored[:] = y, True, 1.0, False

    def act(self, context):
        raise NotImplementedError


class SeerOfBlocks(Forecaster):
    def predict(self, context):
        return np.zeros(self.problem.n_classes)

    def update(self, context, label):
        pass

    def forecast_block(self, X, y, logits):
        logits[:] = 20.0 * np.eye(self.problem.n_classes)[y]


@pytest.mark.parametrize("cls", [Cheat, LateCheat, Doubtful, SeerOfBlocks])
def test_a_plug_in_whose_blocks_are_not_its_steps_fails(cls, env):
    with pytest.raises(PlayerError, match="its block and its steps differ in round"):
        play(env, make(cls, env), seed=1, checkpoints=[1, 10])


def test_a_plug_in_that_plays_fair_blocks_is_replayed_and_its_hits_are_counted(env):
    steps = play(env, make(Boaster, env), seed=1, path="steps")
    blocks = play(env, make(Boaster, env), seed=1, path="blocks")
    assert (blocks.mistakes, blocks.verified) == (steps.mistakes, "replayed")
    assert blocks.mistakes[-1] > 0.6 * ROUNDS


def test_a_plug_in_without_steps_is_unverified(env):
    assert play(env, make(OnlyBlocks, env), seed=1).verified == "unverified"


def test_what_cannot_be_a_probability_is_refused(env):
    with pytest.raises(PlayerError, match=r"a probability of the label outside 0 \.\.\. 1"):
        play(env, make(Impossible, env), seed=1)


def test_the_package_s_own_players_are_trusted_with_blocks(env):
    for kind in ("agents", "boosters", "forecasters"):
        for entry in registry().entries(kind):
            if not entry.source:
                cls = entry.load()
                assert getattr(__import__(cls.__module__, fromlist=["_"]), cls.__qualname__) is cls, entry.id
    banditron = make(Banditron, env, gamma=0.1)
    assert is_from_package(banditron)
    assert play(env, banditron, seed=1).verified == "template"

    class Tuned(Banditron):  # a plug-in's kernels in the package's loop, which hands them the bit
        pass

    assert not is_from_package(make(Tuned, env, gamma=0.1))
    assert is_label_blind(make(Tuned, env, gamma=0.1))

    class Told(Banditron):  # its learning would meet the label in the place of the bit
        def _outcome(self, action, label):
            return label

    assert not is_label_blind(make(Told, env, gamma=0.1))
    banditron.play_block = lambda X, y, trace: None
    assert not is_label_blind(banditron)


# ------------------------------------------------------------------------------------------------------------- wrappers


class Blank(gymnasium.ObservationWrapper):
    """Shows nothing."""

    def observation(self, observation):
        return np.zeros_like(observation)


class Flipped(gymnasium.RewardWrapper):
    def reward(self, reward):
        return 1.0 - reward


class MyOrder(OrderEnforcing):
    """May do anything."""


@pytest.mark.parametrize("wrapper", [Blank, Flipped])
def test_a_wrapped_environment_is_stepped_through(wrapper, env):
    wrapped = wrapper(env)
    auto = play(wrapped, make(Banditron, env, gamma=0.1), seed=3)
    steps = play(wrapped, make(Banditron, env, gamma=0.1), seed=3, path="steps")
    bare = play(env, make(Banditron, env, gamma=0.1), seed=3)
    assert (auto.mistakes, auto.verified) == (steps.mistakes, "steps")
    assert auto.mistakes[-1] > bare.mistakes[-1] + 300
    with pytest.raises(UsageError, match="in no wrapper that may change what it shows"):
        play(wrapped, make(Banditron, env, gamma=0.1), seed=3, path="blocks")


def test_neutral_wrappers_are_read_in_blocks(env):
    wrapped = TimeLimit(OrderEnforcing(env), ROUNDS)
    agents = [make(Banditron, env, gamma=0.1) for _ in range(2)]
    one, other = (play(e, agent, seed=3) for e, agent in zip((wrapped, env), agents, strict=True))
    assert (one.mistakes, one.verified) == (other.mistakes, "template")
    assert not is_bare(TimeLimit(env, ROUNDS - 1), ROUNDS)
    assert not is_bare(MyOrder(env), ROUNDS)
    assert not is_bare(FlattenObservation(env), ROUNDS)


# ------------------------------------------------------------------------------------------------------- first showings


@pytest.fixture
def table(tmp_path):
    """Return a function that makes the environment of a small table of different rows."""
    rng = np.random.default_rng(0)
    lines = ["a,b,kind", *(f"{i},{v:.4f},{'xyz'[i % 5 % 3]}" for i, v in enumerate(rng.normal(size=40)))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    return lambda rounds: Table(path=str(tmp_path / "t.csv"), label="kind", horizon=rounds)


def test_a_pass_shows_each_row_once_in_an_order_of_its_own(table):
    env = table(100)
    assert env.rows_per_pass == 40
    orders = []
    for seed in (1, 2):
        env.reset(seed=seed)
        order = env.row_order(100)
        [(X, y)] = env.blocks(100, 100)
        np.testing.assert_array_equal(X, env._table.X[order])
        np.testing.assert_array_equal(y, env._table.y[order])
        assert sorted(order[:40]) == sorted(order[40:80]) == list(range(40))
        orders += [order[:40].tolist(), order[40:80].tolist()]
    assert len({tuple(order) for order in orders}) == 4


@pytest.mark.parametrize("path", ["blocks", "steps"])
def test_first_showings_are_counted_apart(table, path):
    env = table(100)
    played = play(env, make(Banditron, env, gamma=0.2), seed=5, checkpoints=[10, 70], path=path, keep_trace=True)
    wrong, labels = 1.0 - played.trace.p_true, env._table.y[env.row_order(100)]
    assert played.first_sight_rounds == [10, 40, 40]
    for i, (first, n) in enumerate([(10, 10), (40, 70), (40, 100)]):
        assert played.first_sight_mistakes[i] == np.count_nonzero(~played.trace.correct[:first])
        assert played.first_sight_expected_mistakes[i] == pytest.approx(wrong[:first].sum())
        assert played.constant_mistakes[i] == n - np.bincount(labels[:n]).max()
        assert played.first_sight_constant_mistakes[i] == first - np.bincount(labels[:first]).max()
    sums, counts = np.frombuffer(played.row_losses, "<f4").reshape(2, -1)
    np.testing.assert_allclose(sums[env.row_order(40)], wrong[:40], rtol=1e-6)
    assert counts.tolist() == [1.0] * 40


def test_without_a_table_every_round_is_a_first_showing(env):
    played = play(env, make(Guesser, env), seed=1, path="steps")
    assert played.first_sight_rounds == played.rounds
    assert played.first_sight_mistakes == played.mistakes
    assert played.row_losses is None


def test_a_sweep_stores_them_and_run_ids_know_nothing_of_it(table, tmp_path):
    spec = {"name": "t", "rounds": 60, "repetitions": 2, "agent": [{"id": "uniform"}]}
    spec["environment"] = [{"id": "banditlab/Table-v0", "path": str(tmp_path / "t.csv"), "label": "kind"}]
    sweep = Sweep(make_spec(spec, "test"))
    known = {"format", "environment", "player", "rounds", "checkpoints", "base_seed", "repetition", "horizon_known"}
    assert set(sweep.plan.runs[0].description) == known
    assert sweep.plan.data["banditlab/Table-v0(label=kind, path=t.csv)"] == {
        "rows": 40, "features": 3, "classes": 3, "largest": 0.4,
    }  # fmt: skip
    sweep.run(tmp_path / "out")
    import pandas as pd

    runs = pd.read_parquet(tmp_path / "out" / "results.parquet")
    last = runs[runs["round"] == 60]
    assert last["first_sight_rounds"].tolist() == [40, 40]
    assert last["first_sight_expected_mistakes"].tolist() == pytest.approx([40 * 2 / 3] * 2)
    assert runs["verified"].eq("template").all()
    assert runs["row_losses"].notna().eq(runs["round"] == 60).all()
    stream = {run.repetition: run.environment_seed() for run in sweep.plan.runs}
    assert len(set(stream.values())) == 2  # an order of its own for each repetition


def test_the_report_of_other_runs_is_kept(table, tmp_path):
    spec = {"name": "t", "rounds": 40, "agent": [{"id": "uniform"}]}
    spec["environment"] = [{"id": "banditlab/Table-v0", "path": str(tmp_path / "t.csv"), "label": "kind"}]
    out = tmp_path / "out"
    assert Sweep(make_spec(spec, "test")).run(out).kept is None
    (out / "report.html").write_text("the first")
    assert Sweep(make_spec(spec, "test")).run(out).kept is None
    assert (out / "report.html").read_text() == "the first"
    kept = Sweep(make_spec(spec | {"rounds": 80}, "test")).run(out).kept
    assert kept.parent == out / "earlier"
    assert (kept / "report.html").read_text() == "the first"
    assert "rounds = 40" in (kept / "spec.toml").read_text()
    assert not (out / "report.html").exists()
