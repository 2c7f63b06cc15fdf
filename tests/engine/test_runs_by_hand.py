"""Runs, plans, tasks and what is told of them, by hand: what a sweep's tables alone would not show."""

from __future__ import annotations

import dataclasses
import math
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from banditlab.agents.banditron import Banditron
from banditlab.analysis import load
from banditlab.engine import describe, plan, play, work
from banditlab.engine import sweep as sweep_module
from banditlab.engine.describe import build_environment, coerce, describe_environment, is_foreign
from banditlab.engine.plan import Seen, why_not
from banditlab.engine.runner import checked_blocks, refuse_contexts, refuse_unlabelled
from banditlab.engine.sweep import Estimate, _executor
from banditlab.engine.work import Outcome, Task
from banditlab.envs import Logistic, Table
from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.sparse_rows import MOST_DENSE
from banditlab.players.forecaster import Forecaster
from banditlab.problem import Problem
from banditlab.results.schema import Finished
from banditlab.results.store import Store


def banditron(env: Any, seed: int = 1) -> Banditron:
    return Banditron(env.problem, np.random.default_rng(seed), gamma=0.2)


def bare(**more: Any) -> Any:
    """Return an environment that says of itself what it is told to, and no more."""
    env = SimpleNamespace(**{"problem": Problem(2, 3, 1.0, 10)} | more)
    env.unwrapped = env
    return env


# -------------------------------------------------------------------------------------------------------------- one run


@pytest.fixture
def table(tmp_path: Any) -> Any:
    """Return a function that makes the environment of a table of 40 rows."""
    lines = ["a,kind", *(f"{np.cos(i):.4f},{'xyz'[i % 5 % 3]}" for i in range(40))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    return lambda rounds: Table(path=str(tmp_path / "t.csv"), label="kind", horizon=rounds)


@pytest.mark.parametrize(("rounds", "first"), [(30, [5, 10, 30]), (50, [5, 10, 40])])
def test_a_table_is_shown_the_same_in_blocks_in_steps_and_drawn_before(
    rounds: int, first: list[int], table: Any
) -> None:
    env = table(rounds)
    env.reset(seed=7)
    drawn = list(env.blocks(rounds, 16))
    found = [
        play(table(rounds), banditron(env), seed=7, checkpoints=[5, 10], path=path) for path in ("blocks", "steps")
    ]
    found.append(play(table(rounds), banditron(env), seed=7, checkpoints=[5, 10], blocks=drawn))
    for each in found:
        assert (each.rounds, each.first_sight_rounds) == ([5, 10, rounds], first)
        assert each.mistakes == found[0].mistakes
        assert each.row_losses == found[0].row_losses
        assert each.trace is None


def test_a_stream_that_is_there_is_not_drawn_anew() -> None:
    env = Logistic(horizon=20)
    env.reset(seed=3)
    drawn = list(env.blocks(20, 8))
    env.reset = None  # type: ignore[assignment, method-assign]
    found = play(env, banditron(env), seed=3, blocks=drawn)
    assert found.mistakes == play(Logistic(horizon=20), banditron(env), seed=3).mistakes


class Clicks:
    """A bandit without labels: class 2 is paid one, the others nothing; it tells what was learnt."""

    labelled = False

    def __init__(self) -> None:
        self.problem = Problem(2, 3, 2.0, 300)
        self.unwrapped = self

    def reset(self, *, seed: int) -> Any:
        return np.ones(2), {}

    def step(self, action: int) -> Any:
        return np.ones(2), float(action == 2), False, False, {}


def test_without_labels_a_mistake_is_a_bit_that_was_0(monkeypatch: pytest.MonkeyPatch) -> None:
    env, bits = Clicks(), []
    learn = Banditron.learn
    monkeypatch.setattr(Banditron, "learn", lambda *given: bits.append(given[-1]) or learn(*given))
    found = play(env, banditron(env), seed=0, keep_trace=True)
    assert found.trace is not None
    assert bits == (found.trace.action == 2).tolist()
    assert 0 < found.mistakes[-1] == 300 - sum(bits) < 300
    assert found.expected_mistakes == [float(found.mistakes[-1])]
    assert found.constant_mistakes == found.first_sight_constant_mistakes == [None]
    assert math.isnan(found.log_loss[-1])


class Told(Forecaster):
    """Forecasts nothing, and plays blocks."""

    plays_blocks = True

    def predict(self, context: Any) -> Any:
        return np.zeros(self.problem.n_classes)

    def update(self, context: Any, label: int) -> None:
        pass


class Stepped(Told):
    plays_blocks = False


def test_an_environment_that_says_nothing_has_labels_and_dense_contexts() -> None:
    long = Problem(MOST_DENSE + 1, 3, 1.0, 10)
    player = Told(long, None)
    refuse_unlabelled(player, bare())
    refuse_unlabelled(banditron(bare()), bare(labelled=False))
    with pytest.raises(IncompatibleError, match="told the label"):
        refuse_unlabelled(player, bare(labelled=False))
    refuse_contexts(player, bare(problem=long))
    assert Seen.of(bare(problem=long)).uncompared == ""
    refuse_contexts(player, bare(problem=dataclasses.replace(long, n_features=MOST_DENSE), sparse=True))
    refuse_contexts(player, bare(problem=long, sparse=True))  # a plug-in's own blocks are not played
    dense = banditron(bare(problem=long))
    dense.sparse = False
    with pytest.raises(IncompatibleError):
        refuse_contexts(dense, bare(problem=long, sparse=True))
    assert "too long" in Seen.of(bare(problem=long, sparse=True)).uncompared


def test_the_class_of_a_player_is_asked_only_of_sparse_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    long = Problem(MOST_DENSE + 1, 3, 1.0, 10)
    cls = SimpleNamespace(needs_dense=lambda *_: True, least_bytes=lambda *_: 0.0)
    monkeypatch.setattr(plan, "player_class", lambda description: cls)
    run: Any = SimpleNamespace(
        player={"settings": {}}, problem=lambda env: env.problem, build_player=lambda env: Told(env.problem, None)
    )
    assert why_not(run, bare(problem=long)) == ""
    assert "no kernels for sparse contexts" in why_not(run, bare(problem=long, sparse=True))
    cls.needs_dense = lambda *_: False
    run.build_player = lambda env: Stepped(env.problem, None)
    assert why_not(run, bare(problem=long, sparse=True)) == ""


@pytest.mark.parametrize(
    ("X", "y", "fine"),
    [
        (np.zeros((3, 2)), [0, 1, 2], True),
        (np.zeros(2), [0, 1], False),
        (np.zeros((3, 2, 1)), [0, 1, 2], False),
        (np.zeros((3, 1)), [0, 1, 2], False),
        (np.zeros((3, 2)), [0, 1], False),
        (np.zeros((2, 2)), [0, 1, 2], False),
    ],
)
def test_blocks_are_rows_of_d_numbers_with_a_label_each(X: Any, y: list[int], fine: bool) -> None:
    blocks = checked_blocks([(X, np.array(y))], Problem(2, 3, 1.0), 3)
    if fine:
        [(shown, labels)] = blocks
        assert (shown.shape, labels.tolist()) == ((3, 2), y)
    else:
        with pytest.raises(UsageError, match=r"a block of the environment: the (contexts|labels) must be of shape"):
            list(blocks)


def test_no_more_rounds_are_taken_of_a_stream_than_are_played() -> None:
    taken = []

    def blocks() -> Any:
        for n in (2, 3, 4):
            taken.append(n)
            yield np.zeros((n, 2)), np.zeros(n, int)

    found = list(checked_blocks(blocks(), Problem(2, 3, 1.0), 4))
    assert ([len(y) for _, y in found], taken) == ([2, 2], [2, 3])


# --------------------------------------------------------------------------------------------------------- descriptions


def test_whose_code_is_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    known, mine = describe.registry(), SimpleNamespace(origin="lab/agents/odd.py", load=lambda: Banditron)
    find = lambda kind, id_: mine if id_ == "odd-one" else known.find(kind, id_)  # noqa: E731
    monkeypatch.setattr(describe, "registry", lambda: SimpleNamespace(find=find))
    env, others = {"id": "banditlab/Logistic-v0"}, {"id": "banditlab/Gymnasium-v0"}
    own = {"kind": "agents", "id": "uniform", "settings": {}}
    odd = {"kind": "agents", "id": "odd-one", "settings": {"bias": 0.0}}
    assert [is_foreign(env), is_foreign(others), is_foreign(others, own)] == [False, True, True]
    assert [is_foreign(env, own), is_foreign(env, odd)] == [False, True]
    runs: list[Any] = [SimpleNamespace(player=player) for player in (own, odd)]
    assert [plan._is_foreign_player(run) for run in runs] == [False, True]


class Innermost:
    version = 3

    def __init__(self, problem: Any, rng: Any, *, size: int = 1, gamma: float = 0.5) -> None:
        self.settings = size, gamma


class Middle:
    wraps, version = "forecaster", 2

    def __init__(self, problem: Any, rng: Any, *, forecaster: str = "innermost", rate: float = 0.25) -> None:
        pass


class Outer:
    wraps, version = "forecaster", 1

    def __init__(self, problem: Any, rng: Any, *, forecaster: str = "middle", gamma: float = 0.1) -> None:
        pass


@pytest.fixture
def nested(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the entries of a player in a player in a player."""
    classes = {"outer": Outer, "middle": Middle, "innermost": Innermost}
    entries = {
        id_: SimpleNamespace(load=lambda cls=cls: cls, source=id_[0], origin="banditlab")
        for id_, cls in classes.items()
    }
    monkeypatch.setattr(
        describe,
        "registry",
        lambda: SimpleNamespace(find=lambda kind, id_: entries[id_], load=lambda kind, id_: classes[id_]),
    )
    return entries


def test_settings_of_players_in_players_go_by_their_names(nested: dict[str, Any]) -> None:
    """A name that two of them have is that of the outer one; the other is written with a dot."""
    described = describe.describe_player("agents", "outer", {"size": 7, "forecaster.gamma": 0.75}, "spec")
    settings = {"forecaster": "middle", "gamma": 0.1, "rate": 0.25, "size": 7}
    settings |= {"forecaster.forecaster": "innermost", "forecaster.gamma": 0.75}
    assert described["settings"] == settings
    assert (described["version"], described["source"]) == ([1, [2, 3]], "omi")
    assert describe.entries_of("agents", "outer", settings) == list(nested.values())
    assert not is_foreign({"id": "outer"})  # a class that says nothing of it
    nested["innermost"].origin = "lab/innermost.py"
    assert is_foreign({"id": "outer"}, {"kind": "agents", "id": "outer", "settings": settings})


def test_a_player_is_built_of_the_source_it_was_described_by(nested: dict[str, Any]) -> None:
    described = {"kind": "forecasters", "id": "innermost", "settings": {"size": 2, "gamma": 0.5}}
    build: Any = describe.build_player
    for more in ({}, {"source": "i"}):
        assert build(described | more, None, None).settings == (2, 0.5)
    with pytest.raises(UsageError, match="banditlab: edited after the sweep was planned"):
        build(described | {"source": "j"}, None, None)


class Still:
    """An environment that says neither its version nor what it read."""

    def __init__(self, *, depth: int = 2, horizon: int | None = None) -> None:
        self.settings = depth, horizon
        self.unwrapped = self


def test_an_environment_of_a_lab_is_what_was_described_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = SimpleNamespace(load=lambda: Still, source="one", origin="lab/still.py")
    monkeypatch.setattr(describe, "registry", lambda: SimpleNamespace(find=lambda kind, id_: entry))
    described = describe_environment("still", {"depth": 3}, "spec")
    assert described["identity"] == {"id": "still", "version": 1, "source": "one", "settings": {"depth": 3}}
    assert build_environment(described, 7).settings == (3, 7)
    described.pop("identity")
    entry.source = "two"
    assert build_environment(described, 7).settings == (3, 7)
    with pytest.raises(UsageError, match=r"lab/still\.py: edited after the sweep was planned"):
        build_environment(described | {"identity": {"source": "one", "settings": {"depth": 3}}}, 7)


class Typed:
    def __init__(self, *, n: int = 1, x: float = 1.0, on: bool = False, word: str = "a") -> None:
        pass


def test_values_are_coerced_where_nothing_is_lost() -> None:
    found = [coerce(Typed, name, value, "spec") for name, value in (("n", 2.0), ("x", 3), ("x", -0.0), ("word", "b"))]
    assert [(value, type(value)) for value in found] == [(2, int), (3.0, float), (0.0, float), ("b", str)]
    assert math.copysign(1.0, found[2]) == 1.0
    assert coerce(Typed, "x", -2.5, "spec") == -2.5


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("n", 0.5, "int"),
        ("n", "2", "int"),
        ("x", "2", "float"),
        ("x", math.inf, r"finite \(float\)"),
        ("x", math.nan, r"finite \(float\)"),
        ("on", 1, "bool"),
        ("on", 1.0, "bool"),
        ("word", 1.5, "str"),
    ],
)
def test_a_value_of_another_type_is_refused_in_a_line_with_its_cause(name: str, value: Any, allowed: str) -> None:
    with pytest.raises(
        UsageError, match=rf"^spec: {name} = {value!r} is not allowed, it must be {allowed}$"
    ) as refusal:
        coerce(Typed, name, value, "spec")
    assert refusal.value.__cause__ is not None


def test_a_setting_given_twice_or_not_at_all_is_refused() -> None:
    for written, message in (
        (
            {"forecaster": "folklore", "radius": 1.0, "forecaster.radius": 2.0},
            "'radius' is given twice, once as forecaster",
        ),
        ({"gama": 0.1}, "unknown setting 'gama'.*'gamma'"),
    ):
        with pytest.raises(UsageError, match=message):
            describe.describe_player("agents", "exploration", written, "spec")
    with pytest.raises(UsageError, match="the setting 'path' is required"):
        describe_environment("banditlab/Table-v0", {}, "spec")


# ----------------------------------------------------------------------------------------------------- plans and estimates


def test_what_was_planned_or_told_is_not_changed(small: Any) -> None:
    run = small().plan.runs[0]
    frozen = (
        (run, "rounds"),
        (Seen(Problem(2, 3, 1.0), False, True, {}, ""), "sparse"),
        (Task("", (), ()), "runs"),
        (Outcome("a", 1, 1.0), "seconds"),
        (Estimate("e", "p", 1, 1.0), "runs"),
    )
    for each, name in frozen:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(each, name, 1)


def test_an_estimate_is_that_of_the_rounds_and_of_what_is_beside_them(
    small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is beside them is measured once for an environment; of a lab's code the rounds are all that was asked."""
    sweep = small(repetitions=1, agent=[{"id": "banditron"}, {"id": "uniform"}, {"id": "linucb"}])
    beside: list[tuple[str, float]] = []

    def seconds(run: Any) -> float:
        if run.label == "uniform":
            raise ValueError
        return 2.0 if run.label == "banditron" else 3.0

    def others(runs: Any, cost: float) -> float:
        beside.append((runs[0].label, cost))
        return 0.25

    monkeypatch.setattr(sweep_module, "ask", lambda question, run: {"seconds": 7.0}[question])
    monkeypatch.setattr(sweep_module, "seconds_of_rounds", seconds)
    monkeypatch.setattr(sweep_module, "seconds_beside_rounds", others)
    place = "banditlab/Logistic-v0"
    label = sweep.plan.runs[0].environment_label
    assert label.startswith(place)
    found = sweep.estimate()
    assert found == [
        Estimate(label, "banditron", 1, 2.25),
        Estimate(label, "uniform", 1, 0.03 + 0.25),  # it cannot be played: a guess
        Estimate(label, "linucb", 1, 3.25),
    ]
    assert beside == [("banditron", 2.0)]
    grid = small(repetitions=2, agent=[{"id": "banditron", "grid": {"gamma": [0.1, 0.2]}}]).estimate()
    assert grid == [Estimate(label, "banditron", 4, 2.25)]
    vars(sweep.plan.runs[0])["foreign"] = True
    assert sweep.estimate()[0] == Estimate(label, "banditron", 1, 7.001)


def test_comparators_are_estimated_by_one_stream_of_each_environment(
    small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "seconds_of_comparators", lambda run, balls: 2.0 * len(balls))
    for repetitions, seconds in ((1, 4.0), (3, 12.0)):
        sweep = small(repetitions=repetitions)
        assert sweep.estimate_comparators() == seconds
    for run in sweep.plan.runs:
        vars(run)["foreign"] = True
    assert sweep.estimate_comparators() == 0.0


def test_this_machine_has_a_process_at_least(tmp_path: Any) -> None:
    for jobs, processes in ((-1, 1), (0, 1), (1, 1), (2, 2)):
        with _executor(None, jobs, Store(tmp_path), 1.0) as executor:
            assert executor.jobs == processes


def test_a_sweep_says_how_long_it_took_and_what_was_there(small: Any, tmp_path: Any) -> None:
    begin = time.perf_counter()
    first = small(repetitions=1, norm_bounds=[]).run(tmp_path)
    assert 0.0 < first.seconds <= time.perf_counter() - begin
    assert (first.present, first.played, first.failures) == (0, 3, [])
    second = small(norm_bounds=[]).run(tmp_path)
    assert (second.present, second.played, second.failures) == (3, 3, [])


# ------------------------------------------------------------------------------------------------------- a sweep's stand


def test_comparators_that_failed_are_said_though_their_run_is_stored_after_that(
    small: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of an adaptive environment bear the run's id: what is stored is the run, and what failed is not."""

    def broken(*_: Any) -> None:
        raise ValueError("no comparator")

    keys: dict[str, Any] = {"environment": [{"id": "banditlab/Adversary-v0"}], "agent": [{"id": "uniform"}]}
    sweep = small(rounds=20, repetitions=1, norm_bounds=[1.0], **keys)
    with monkeypatch.context() as patch:
        patch.setattr(work, "compare_run", broken)
        result = sweep.run(tmp_path)
    assert [(each["player"], each["error"]) for each in result.failures] == [
        ("comparator", "ValueError: no comparator")
    ]
    assert result.played == 1
    assert [failure.player for failure in load(tmp_path).failures] == ["comparator"]
    again = sweep.run(tmp_path)
    assert (again.present, again.failures, load(tmp_path).failures) == (1, [], [])


def test_a_run_that_is_there_has_not_failed_whatever_was_recorded(small: Any, tmp_path: Any) -> None:
    """Its worker stored it, and was ended before it could say so."""
    sweep = small(rounds=20, repetitions=1, norm_bounds=[], agent=[{"id": "uniform"}])
    assert sweep.run(tmp_path).failures == []
    work.store_failure(Store(tmp_path), sweep.plan.runs[0], False, "it took longer than run_timeout = 2 s", "")
    result = sweep.run(tmp_path)
    assert (result.present, result.played, result.failures) == (1, 0, [])


def test_a_run_that_vanished_is_recorded_under_its_own_id(small: Any, tmp_path: Any) -> None:
    runs, store = small(norm_bounds=[]).plan.runs, Store(tmp_path)
    work.store_failure(store, runs[0], False, "it failed", "")
    rows = {"run_id": [runs[1].run_id], "round": [300], "mistakes": [1]}
    store.write_runs([Finished(runs[1].run_id, rows, runs[1].description)])
    sweep_module._record_lost(store, runs[:3])
    told = {each["run_id"]: (each["player"], each["error"]) for each in store.failures([run.run_id for run in runs])}
    lost = "it was played, but its rows are not in the folder"
    assert told == {runs[0].run_id: (runs[0].label, "it failed"), runs[2].run_id: (runs[2].label, lost)}


# -------------------------------------------------------------------------------------------------------------- a worker


def adaptive(small: Any, **keys: Any) -> Any:
    return small(environment=[{"id": "banditlab/Adversary-v0"}], rounds=60, **keys).plan.runs


def test_a_stream_of_just_that_many_bytes_is_kept(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    [run, *_] = small().plan.runs
    size = 8 * run.build_environment().problem.n_features * 300
    for most, kept in ((size, True), (size - 1, False)):
        monkeypatch.setattr(work, "STREAM_BYTES", most)
        assert (work._open_stream(run)[1] is not None) == kept


def test_kernels_are_read_by_two_rounds_once_in_a_process(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    played = []
    monkeypatch.setattr(work, "play", lambda env, player, *, seed, rounds: played.append(rounds))
    monkeypatch.setattr(work, "_loaded", set())
    for rounds in (300, 2, 1):
        work._loaded.clear()
        run = small(rounds=rounds, norm_bounds=[]).plan.runs[0]
        for _ in range(2):
            work._load_kernels(run, run.build_environment())
    assert played == [2, 2, 1]


def test_the_time_of_runs_is_told_by_run(small: Any, tmp_path: Any) -> None:
    runs = tuple(small(repetitions=1, agent=[{"id": "uniform"}]).plan.runs)
    begin = time.perf_counter()
    [outcome] = work.execute(Task(str(tmp_path), (), runs))
    assert 0.0 < outcome.seconds <= time.perf_counter() - begin
    assert outcome.failure == ""
    begin = time.perf_counter()
    [outcome] = work.execute(Task(str(tmp_path), (), runs, balls=(1.0,), comparators=True))
    assert 0.0 < outcome.seconds <= time.perf_counter() - begin
    assert outcome.id == runs[0].stream_id


def test_what_an_adaptive_environment_showed_is_kept_with_its_labels() -> None:
    env = SimpleNamespace(label=lambda: 2, reset=lambda **_: (np.ones(2), {}), step=lambda a: (np.full(2, a), 1.0))
    for more, labels, shown in (({}, [2, 2], [[1, 1], [5, 5]]), ({"labelled": False}, [], [])):
        inner = SimpleNamespace(**vars(env) | more)
        inner.unwrapped = inner
        met = work._Recorder(inner)
        assert met.reset(seed=1)[0].tolist() == [1, 1]
        assert met.step(5)[0].tolist() == [5, 5]
        met.step(6)
        X, y = met.stream()
        assert (X.tolist(), y.tolist()) == (shown, labels)


def test_a_runs_rows_are_columns_of_one_length(small: Any) -> None:
    [run, *_] = small().plan.runs
    env = run.build_environment()
    player = run.build_player(env)
    for stops in ([300], [100, 300], [50, 100, 300]):
        played = play(env, run.build_player(env), seed=1, checkpoints=stops)
        played.row_losses, played.diagnostics = b"rows", {"d": [1.0] * len(stops)}
        rows = work.run_rows(run, player, played)
        assert {len(column) for column in rows.values()} == {len(stops)}
        assert rows["row_losses"] == [None] * (len(stops) - 1) + [b"rows"]
        assert rows["round"] == stops
        assert rows["diagnostic.d"] == [1.0] * len(stops)
        assert rows["setting.gamma"] == ["0.1"] * len(stops)
        assert rows["param.gamma"] == [0.1] * len(stops)


def test_where_the_folder_was_gone_before_a_plug_in_nobody_goes_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[Any] = []
    monkeypatch.setattr(work.os, "chdir", gone.append)
    for before, after, expected in ((None, "b", []), ("a", "a", []), ("a", "b", ["a"]), ("a", None, ["a"])):
        here = iter([before, after])
        monkeypatch.setattr(work, "_working_folder", lambda here=here: next(here))
        gone.clear()
        assert work.tried(lambda: 7, work.Log()) == (7, None)
        assert gone == expected


def test_a_plug_ins_interrupt_is_its_failure_and_the_users_ends_all() -> None:
    class Others(work.Log):
        def is_interrupt(self) -> bool:
            return False

    def interrupt() -> Any:
        raise KeyboardInterrupt

    value, error = work.tried(interrupt, Others())
    assert (value, type(error)) == (None, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        work.tried(interrupt, work.Log())
