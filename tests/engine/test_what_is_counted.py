"""What a run reports is the engine's: hits, answers before they are learnt from, first showings; who is handed labels."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation, OrderEnforcing, TimeLimit

from banditlab.agents import Banditron, Exploration, Perceptron
from banditlab.engine import Sweep, make_spec, play
from banditlab.engine.blocks import block_loop, is_from_package, steps_equal_blocks
from banditlab.engine.first_pass import FirstPass, row_groups
from banditlab.envs import Digits, Logistic, Table
from banditlab.errors import UsageError
from banditlab.forecasters import FOLKLORE
from banditlab.players.agent import Agent, KernelAgent
from banditlab.players.forecaster import Forecaster
from banditlab.players.label_agent import KernelLabelAgent, LabelAgent
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
    assert played.path == "steps"


class LiveForecast(Forecaster):
    """Hands out its live logits, and makes them perfect when it observes the label."""

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
    """Reads the labels of a block; its steps guess."""

    def play_block(self, X, y, trace):
        trace.action[:], trace.correct[:], trace.p_true[:], trace.explored[:] = y, True, 1.0, False


class Insistent(Cheat):
    @property
    def plays_blocks(self):
        return True

    def __getattribute__(self, name):
        return Cheat.play_block.__get__(self) if name.startswith("_play") else super().__getattribute__(name)


class SeerOfBlocks(Forecaster):
    plays_blocks = True

    def predict(self, context):
        return np.zeros(self.problem.n_classes)

    def update(self, context, label):
        pass

    def forecast_block(self, X, y, logits):
        logits[:] = 20.0 * np.eye(self.problem.n_classes)[y]


class OwnKernels(FOLKLORE):
    """Its update kernel knows the label when it forecasts."""


@pytest.mark.parametrize("cls", [Guesser, Cheat, Insistent, SeerOfBlocks])
def test_a_plug_in_with_a_loop_of_its_own_is_played_step_by_step(cls, env):
    assert block_loop(make(cls, env)) is None
    played = play(env, make(cls, env), seed=1, checkpoints=[1, 10])
    assert played.path == "steps"
    assert played.expected_mistakes[-1] == pytest.approx(ROUNDS * (1 - 1 / K))
    assert played.mistakes[-1] > 0.4 * ROUNDS
    with pytest.raises(UsageError, match="and a learner with a block loop of this package"):
        play(env, make(cls, env), seed=1, path="blocks")


def test_a_plug_ins_forecaster_is_played_step_by_step_inside_the_packages_agents_too(env):
    assert block_loop(make(FOLKLORE, env)) is not None
    assert block_loop(make(OwnKernels, env)) is None
    agent = make(Exploration, env, forecaster="folklore")
    assert block_loop(agent) is not None
    agent._inner = make(OwnKernels, env)
    assert block_loop(agent) is None
    agent.wraps = None
    assert block_loop(agent) is None


def test_the_package_s_own_players_are_trusted_with_blocks(env):
    for kind in ("agents", "boosters", "forecasters"):
        for entry in registry().entries(kind):
            if not entry.source:
                cls = entry.load()
                assert getattr(__import__(cls.__module__, fromlist=["_"]), cls.__qualname__) is cls, entry.id
    banditron = make(Banditron, env, gamma=0.1)
    assert play(env, banditron, seed=1).path == "blocks"
    banditron.play_block = lambda X, y, trace: None
    assert not is_from_package(banditron)


class Named(Guesser):
    """Says that it is the package's."""


Named.__module__, Named.__qualname__ = Banditron.__module__, Banditron.__qualname__


def test_a_class_that_borrows_a_name_is_no_class_of_the_packages(env):
    assert not is_from_package(make(Named, env))
    Named.__module__ = "banditlab.of_no_such_name"
    assert not is_from_package(make(Named, env))


def told_labels(given):
    """Return whether there is an array of integers in what a method was given: a block's labels are one."""
    if isinstance(given, np.ndarray):
        return given.dtype.kind in "iu"
    return isinstance(given, tuple | list) and any(told_labels(each) for each in given)


HOOKS = [name for name in dir(KernelAgent) if callable(getattr(KernelAgent, name)) and not name.startswith("__")]


@pytest.mark.parametrize("name", [*HOOKS, "state", "rng", "__getattribute__", "__getattr__"])
@pytest.mark.parametrize("base", [Banditron, Perceptron])
def test_no_method_of_a_plug_in_is_given_labels_of_a_block(base, name, env):
    """Whichever it overrides: as a method, as an attribute of the object, or as a property."""
    given = []

    def spied(function):
        def spy(self, *args, **named):
            given.append((*args, *named.values()))
            return function(self, *args, **named)

        return spy

    def of_class():
        inherited = getattr(base, name, None)
        if name in ("state", "rng"):
            keep = property(
                lambda self: vars(self)[f"own {name}"], lambda self, v: vars(self).update({f"own {name}": v})
            )
            return type("Plug", (base,), {name: keep})
        if name == "__getattr__":
            return type("Plug", (base,), {name: lambda self, name: (_ for _ in ()).throw(AttributeError(name))})
        if isinstance(vars(base).get(name), classmethod) or name in (
            "own_settings",
            "least_bytes",
            "needs_dense",
            "load",
        ):
            return type("Plug", (base,), {name: classmethod(spied(inherited.__func__))})
        return type("Plug", (base,), {name: spied(inherited)})

    settings = {"gamma": 0.1} if base is Banditron else {}
    cls = of_class()
    plug_in, plain = (play(env, make(each, env, **settings), seed=1, rounds=300) for each in (cls, base))
    assert plug_in.mistakes == plain.mistakes
    assert plug_in.kind == plain.kind
    assert not told_labels(given)
    player = make(base, env, **settings)
    if callable(getattr(player, name, None)) and name not in ("__getattribute__", "__getattr__"):
        setattr(player, name, lambda *args, **named: spied(getattr(type(player), name))(player, *args, **named))
        assert play(env, player, seed=1, rounds=300).mistakes == plain.mistakes
        assert not told_labels(given)


def test_kernels_of_a_plug_in_are_played_in_blocks_by_the_packages_loop(env):
    class Tuned(Banditron):
        pass

    class Verbs(Banditron):
        def learn(self, context, decision, correct):
            pass

    class Told(Banditron):  # the loop of label agents, which passes the label
        _loop = KernelLabelAgent._loop

    assert not is_from_package(make(Tuned, env, gamma=0.1))
    players = [make(cls, env, gamma=0.1) for cls in (Tuned, Verbs, Told, Banditron)]
    assert [block_loop(player) is not None for player in players] == [True, False, False, True]
    steps = play(env, make(Tuned, env, gamma=0.1), seed=1, path="steps")
    blocks = play(env, players[0], seed=1)
    assert (blocks.path, blocks.mistakes) == ("blocks", steps.mistakes)
    assert play(env, players[2], seed=1).mistakes == steps.mistakes
    bad = [(np.array([[0.0] * 4, [2.0] * 4]), np.array([0, 1]))]
    with pytest.raises(UsageError, match=r"context 1 of the block must have a norm of at most R = 1"):
        play(env, make(Tuned, env, gamma=0.1), seed=1, rounds=2, blocks=bad)


# ------------------------------------------------------------------------------------------------------ who observes labels


class Chameleon(Guesser):
    """Says that it observes labels while it plays, and is another class afterwards."""

    def __init__(self, problem, rng):
        super().__init__(problem, rng)
        self.told = []

    @property
    def __class__(self):
        return LabelAgent

    def learn(self, context, decision, correct):
        self.told.append(correct)


class Deserter(LabelAgent):
    """Leaves the label agents while it plays."""

    def act(self, context):
        self.p = np.full(self.problem.n_classes, 1 / self.problem.n_classes)
        return Decision(0, self.p)

    def learn(self, context, decision, label):
        self.__class__ = Guesser


def test_who_is_told_the_label_goes_by_its_type_as_it_begins(env):
    chameleon = make(Chameleon, env)
    assert play(env, chameleon, seed=1, rounds=50).kind == "bit"
    assert {type(told) for told in chameleon.told} == {bool}
    deserter = make(Deserter, env)
    assert play(env, deserter, seed=1, rounds=50).kind == "reference"
    assert type(deserter) is Guesser

    class Modest(SeerOfBlocks):
        feedback = "bit"

    assert play(env, make(Modest, env), seed=1, rounds=50).kind == "label"


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
    assert (auto.mistakes, auto.path) == (steps.mistakes, "steps")
    assert auto.mistakes[-1] > bare.mistakes[-1] + 300
    with pytest.raises(UsageError, match="without a wrapper that may change it"):
        play(wrapped, make(Banditron, env, gamma=0.1), seed=3, path="blocks")


def test_neutral_wrappers_are_read_in_blocks(env):
    wrapped = TimeLimit(OrderEnforcing(env), ROUNDS)
    agents = [make(Banditron, env, gamma=0.1) for _ in range(2)]
    one, other = (play(e, agent, seed=3) for e, agent in zip((wrapped, env), agents, strict=True))
    assert (one.mistakes, one.path) == (other.mistakes, "blocks")
    assert not steps_equal_blocks(TimeLimit(env, ROUNDS - 1), ROUNDS)
    assert not steps_equal_blocks(MyOrder(env), ROUNDS)
    assert not steps_equal_blocks(FlattenObservation(env), ROUNDS)


def test_an_environment_with_a_reading_of_its_own_is_stepped_through(env):
    class Kind(Logistic):
        def step(self, action):
            following, _, *others = super().step(action)
            return following, 1.0, *others

    class Plain(Logistic):
        pass

    assert steps_equal_blocks(Plain(horizon=5), 5)
    assert not steps_equal_blocks(Kind(horizon=5), 5)


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
        "rows": 40, "features": 3, "classes": 3, "largest": 0.4, "scaling.minmax": 1,
    }  # fmt: skip
    sweep.run(tmp_path / "out")
    import pandas as pd

    runs = pd.read_parquet(tmp_path / "out" / "results.parquet")
    last = runs[runs["round"] == 60]
    assert last["first_sight_rounds"].tolist() == [40, 40]
    assert last["first_sight_expected_mistakes"].tolist() == pytest.approx([40 * 2 / 3] * 2)
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


def test_a_row_of_a_long_table_is_in_one_of_512_groups_drawn_once() -> None:
    """What is stored of a run's rows is by group: the groups of old results are these."""
    assert row_groups(512).tolist() == list(range(512))
    assert sorted(np.bincount(row_groups(513)).tolist()) == [1] * 511 + [2]
    assert row_groups(1000)[:8].tolist() == GROUPS_OF_1000


GROUPS_OF_1000 = [244, 214, 60, 274, 444, 135, 428, 134]


def test_what_is_counted_of_a_table_grows_with_its_rows_not_with_the_rounds():
    env = Digits(horizon=1)
    env.reset(seed=0)
    first = FirstPass(env, 10**12)
    assert first.among(0, 2000).sum() == first.among(0, 1797).sum() == env.n_rows
    assert not first.among(10**9, 5).any()
    first.add(1795, np.ones(4), np.zeros(4, int), first.among(1795, 4))
    assert first.counts.sum() == first.sums.sum() == 2
