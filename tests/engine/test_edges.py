"""Numbers of the engine at their edges: what is allowed on both sides, what is told, what is packed, by a clock of our own."""

from __future__ import annotations

import inspect
import math
import time
from dataclasses import replace
from typing import Annotated, Any, Literal, Optional

import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit, TransformObservation

from banditlab.agents.banditron import Banditron
from banditlab.engine import compiling, estimating, make_spec, play, progress, questions, work
from banditlab.engine.annotations import shown_type
from banditlab.engine.blocks import is_bare
from banditlab.engine.first_sights import row_groups
from banditlab.engine.memory import memory
from banditlab.engine.plan import make_plan
from banditlab.engine.progress import Progress
from banditlab.engine.runner import Played
from banditlab.engine.schedule import Kind
from banditlab.engine.work import Outcome, Task, said, store_failure
from banditlab.envs import Logistic, StreamEnv
from banditlab.errors import UsageError
from banditlab.results.store import Store


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    process_time = monotonic = perf_counter

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (estimating, progress, compiling):
        monkeypatch.setattr(module, "time", made)
    return made


# -------------------------------------------------------------------------------------------------------------- one run


def banditron(env: Any) -> Banditron:
    return Banditron(env.problem, np.random.default_rng(1), gamma=0.1)


@pytest.mark.parametrize("path", ["blocks", "steps"])
def test_seconds_are_those_that_passed_and_no_trace_is_kept(path: Any) -> None:
    env = Logistic(horizon=300)
    player, begin = banditron(env), time.perf_counter()
    played = play(env, player, seed=3, path=path, checkpoints=[100])
    assert 0.0 < played.seconds[0] < played.seconds[1] <= time.perf_counter() - begin
    assert played.trace is None


def test_blocks_are_of_1024_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batched products round the same way in every run, whatever its checkpoints."""
    asked = []
    drawn = StreamEnv.blocks
    monkeypatch.setattr(StreamEnv, "blocks", lambda self, *sizes: asked.append(sizes) or drawn(self, *sizes))
    env = Logistic(horizon=1500)
    play(env, banditron(env), seed=3)
    assert asked == [(1500, 1024)]


def test_the_first_and_the_last_round_may_be_asked_for_and_none_beyond() -> None:
    env = Logistic(horizon=5)
    assert play(env, banditron(env), seed=0, rounds=1, checkpoints=[1]).rounds == [1]
    assert play(env, banditron(env), seed=0, rounds=5, checkpoints=[1, 5]).rounds == [1, 5]
    assert play(env, banditron(env), seed=0).rounds == [5]
    for rounds in (0, -1, 6):
        with pytest.raises(UsageError, match=f"between 1 and the environment's horizon 5, got {rounds}"):
            play(env, banditron(env), seed=0, rounds=rounds)
    for stop in (0, -1, 5):
        with pytest.raises(UsageError, match=rf"between 1 and 4, got \[{stop}\]"):
            play(env, banditron(env), seed=0, rounds=4, checkpoints=[stop])


def test_a_row_of_a_long_table_is_in_one_of_512_groups_drawn_once() -> None:
    """What is stored of a run's rows is by group: the groups of old results are these."""
    assert row_groups(512).tolist() == list(range(512))
    assert sorted(np.bincount(row_groups(513)).tolist()) == [1] * 511 + [2]
    assert row_groups(1000)[:8].tolist() == GROUPS_OF_1000


GROUPS_OF_1000 = [244, 214, 60, 274, 444, 135, 428, 134]


# ------------------------------------------------------------------------------------------------------- specs and plans

SMALLEST = {"name": "s", "rounds": 1, "environment": [{"id": "banditlab/Logistic-v0"}], "agent": [{"id": "uniform"}]}


def test_what_a_spec_leaves_out() -> None:
    spec = make_spec(SMALLEST, "test")
    assert (spec.repetitions, spec.base_seed, spec.horizon_known, spec.run_timeout) == (1, 0, True, None)
    assert make_spec(SMALLEST | {"rounds": 100}, "test").checkpoint_rounds() == [1, 2, 5, 10, 20, 50, 100]


@pytest.mark.parametrize("keys", [{"rounds": 1}, {"repetitions": 1}, {"base_seed": 0}, {"run_timeout": 0},
                                  {"checkpoints": [1]}])  # fmt: skip
def test_the_least_a_spec_may_ask_for(keys: dict[str, Any]) -> None:
    spec = make_spec(SMALLEST | keys, "test")
    assert {name: getattr(spec, name) for name in keys} == keys


@pytest.mark.parametrize("keys", [{"rounds": 0}, {"repetitions": 0}, {"base_seed": -1}, {"run_timeout": -1},
                                  {"run_timeout": math.inf}, {"checkpoints": [2]}, {"environment": []}])  # fmt: skip
def test_less_or_more_than_that_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(keys))}"):
        make_spec(SMALLEST | keys, "test")


def test_a_whole_number_may_be_written_with_an_exponent() -> None:
    """TOML reads 1e3 as a number with a fraction."""
    assert make_spec(SMALLEST | {"rounds": 1e3, "repetitions": 2.0}, "test").rounds == 1000
    with pytest.raises(UsageError, match="rounds"):
        make_spec(SMALLEST | {"rounds": 1000.5}, "test")


def test_a_plan_is_cut_into_whole_streams_in_turn(small: Any) -> None:
    plan = small(repetitions=5).plan
    streams = list(plan.streams())
    for of in (1, 2, 5):
        parts = [plan.part(index, of) for index in range(1, of + 1)]
        assert [list(part.streams()) for part in parts] == [streams[first::of] for first in range(of)]
        assert sorted(place for part in parts for place in part.shard["places"]) == list(range(len(plan.runs)))
        for index, part in enumerate(parts, start=1):
            assert part.runs == [plan.runs[place] for place in part.shard["places"]]
            assert (part.shard["index"], part.shard["of"], part.shard["plan"]) == (index, of, plan.digest())
    for index, of in ((0, 2), (3, 2), (-1, 2), (1, 0)):
        with pytest.raises(UsageError, match=f"shard {index}/{of}: must be i/n with 1 <= i <= n"):
            plan.part(index, of)
    assert len(plan.digest()) == 24


def test_a_player_may_take_all_memory_there_is_and_no_byte_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Banditron, "least_bytes", classmethod(lambda cls, problem, settings: 5 * 2**30))
    spec = make_spec(SMALLEST | {"agent": [{"id": "banditron"}]}, "test")
    reasons = []
    for there in (5 * 2**30, 5 * 2**30 - 1, 3 * 2**30, None):
        monkeypatch.setattr("banditlab.engine.plan.memory", lambda there=there: there)
        reasons.append([skip["reason"] for skip in make_plan(spec).skipped])
    least = "its state does not fit in memory: 5 GiB at least, of {} there are"
    assert reasons == [[], [least.format(5)], [least.format(3)], []]


def test_memory_is_the_machines_or_what_a_container_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}.__getitem__)
    found = []
    for limit in ("max", "4095999", "9999999", "0", "1"):
        monkeypatch.setattr("pathlib.Path.read_text", lambda *_, limit=limit: limit)
        found.append(memory())
    assert found == [4096000, 4095999, 4096000, 4096000, 1]
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_PAGE_SIZE": 4096}.get(name, -1))  # it does not know
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_: "max")
    assert memory() is None


def test_a_long_text_of_an_exception_is_cut_after_2000_characters() -> None:
    assert said(ValueError("x" * 2001)) == "ValueError: " + "x" * 2000


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (float, "float"),
        (None, "None"),
        (type(None), "None"),
        (Any, "anything"),
        (inspect.Parameter.empty, "anything"),
        (Literal["theory", 3], "'theory' | 3"),
        (float | Literal["theory"], "float | 'theory'"),
        (Optional[int], "int | None"),  # noqa: UP045
        (list[int | str], "list[int | str]"),
        (dict[str, float], "dict[str, float]"),
        (Annotated[int, "seconds"], "int"),
        ("OnlyForTypeCheckers", "OnlyForTypeCheckers"),
    ],
)
def test_types_are_told_as_a_person_writes_them(annotation: Any, text: str) -> None:
    assert shown_type(annotation) == text


@pytest.mark.parametrize(("limit", "bare"), [(299, False), (300, True), (301, True)])
def test_a_wrapper_that_ends_an_episode_is_neutral_from_the_last_round_on(limit: int, bare: bool) -> None:
    env = Logistic(horizon=1000)
    assert is_bare(env, 300)
    assert is_bare(TimeLimit(env, limit), 300) == bare
    assert not is_bare(TransformObservation(env, lambda x: x, env.observation_space), 300)


# ----------------------------------------------------------------------------------------------------- clocks and time left


def test_time_left_by_hand(clock: Clock) -> None:
    """Two kinds and comparators on two workers; a task is of two seconds or as long as its longest run."""
    stand = Progress(runs=10, streams=4, jobs=2, began=clock.now)
    short, long, compared = Kind("a", 1.0, 6, 3, 6.0), Kind("b", 4.0, 4), Kind("", 1.0, 4)
    stand.kinds = {"short": short, "long": long, "compared": compared}
    stand.playing_since = clock.now - 5.0
    # short ones take 2.001 s, twice what was guessed, so all others do: 3 * 2.001 + 4 * 8, and 4 comparators of 2 s
    ahead = 3 * 2.001 + 32.0 + 8.0
    assert stand.core_seconds == 6.0
    # two tasks of a long run's 4 s are half done; a run's rows take 0.2 ms at the end
    assert stand.seconds_ahead == pytest.approx((ahead - 4.0) / 2 + 10 * 2e-4)
    stand.settled = clock.now - 25.0, 1.0
    share = 25.0 / (6.0 - 1.0 + 4.0)  # of 5 core-seconds that were counted and 4 under way
    assert stand.seconds_ahead == pytest.approx(share * (ahead - 4.0) + 10 * 2e-4)
    stand.rounds_done = 300
    assert (stand.rounds_per_second, stand.seconds) == (60.0, 0.0)
    clock.now += 15.0
    assert (stand.rounds_per_second, stand.seconds) == (15.0, 15.0)


def test_no_time_left_is_told_before_a_twentieth_is_done(clock: Clock) -> None:
    stand = Progress(runs=100_000, streams=0, jobs=1)
    assert (stand.rounds_per_second, stand.seconds_ahead, stand.settled) == (0.0, None, None)
    stand.playing_since = clock.now
    for done, known in ((0, False), (9, False), (11, True)):
        stand.kinds = {"one": Kind("a", 0.5, 200, done, 0.5 * done)}
        assert (stand.seconds_ahead is not None) == known
    stand.kinds = {"one": Kind("a", 0.5, 11, 11, 5.0)}
    assert stand.seconds_ahead == pytest.approx(20.0)  # the tables


def test_the_stage_names_players_without_a_finished_run(clock: Clock) -> None:
    stand = Progress(runs=2, streams=1)
    stand.kinds = {"a": Kind("a", 1.0, 1), "b": Kind("b", 1.0, 1), "c": Kind("", 1.0, 1)}
    stand.set_stage()
    assert (stand.stage, stand.playing_since, stand.settled) == ("compiling or loading a, b", None, None)
    stand.kinds["a"].done, stand.runs_done = 1, 1
    stand.set_stage()
    assert (stand.stage, stand.playing_since, stand.settled) == ("compiling or loading b", clock.now, None)
    stand.kinds["b"].done = 1
    stand.set_stage()
    assert (stand.stage, stand.settled) == ("playing", (clock.now, 0.0))


@pytest.mark.parametrize(("a_round", "played"), [(0.01, [2, 64]), (0.001, [2, 64, 128, 256])])
def test_a_run_is_played_twice_as_long_until_it_took_0_15_s(
    a_round: float, played: list[int], clock: Clock, small: Any, monkeypatch: Any
) -> None:
    seen = []

    def plays(env: Any, player: Any, *, seed: int, rounds: int) -> None:
        seen.append(rounds)
        clock.sleep(rounds * a_round)

    monkeypatch.setattr(estimating, "play", plays)
    [run, *_] = small(rounds=1000).plan.runs
    assert estimating.seconds_of_rounds(run) == pytest.approx(1000 * a_round)
    assert seen == played
    seen.clear()
    [run, *_] = small(rounds=50).plan.runs
    assert estimating.seconds_of_rounds(run) == pytest.approx(50 * a_round)
    assert seen == [2, 50]


@pytest.mark.parametrize(("seconds", "together"), [(10.0, 1), (0.09, 6), (0.0, 8)])
def test_what_a_run_takes_beside_its_rounds(
    seconds: float, together: int, clock: Clock, small: Any, monkeypatch: Any
) -> None:
    seen = []

    def does(task: Task) -> None:
        seen.append(len(task.runs))
        clock.sleep(0.5 + len(task.runs) * (seconds + 0.02) - 0.5 * (len(seen) == 2))

    monkeypatch.setattr(estimating, "execute", does)
    runs = small(repetitions=20).plan.runs
    assert estimating.seconds_beside_rounds(runs, seconds) == pytest.approx(0.02)
    assert seen == [1, together]
    assert estimating.seconds_beside_rounds(runs, seconds + 1.0) == 0.0  # never below


def test_comparators_are_timed_up_to_500_rounds_and_further_where_that_is_quick(
    clock: Clock, small: Any, monkeypatch: Any
) -> None:
    run = replace(small(rounds=4000).plan.runs[0], checkpoints=(100, 500, 900, 1000, 2000, 4000))
    parts, rate = [], 0.0

    def stored(store: Store, stream_id: str) -> Any:
        return {"round": [100, parts[-1]], "seconds": [0.1, 0.2]}, {}

    def does(task: Task) -> None:
        [part] = task.runs
        assert task.comparators
        assert part.checkpoints[-1] == part.rounds
        parts.append(part.rounds)
        clock.now += rate * part.rounds

    monkeypatch.setattr(estimating, "execute", does)
    monkeypatch.setattr(Store, "comparators", stored)
    assert estimating.seconds_of_comparators(run, []) == 0.0
    rate = 0.0001  # 0.05 s, 0.1 s, 0.2 s: quick, and then there is no further one
    assert estimating.seconds_of_comparators(run, [1.0]) == pytest.approx(0.4)
    assert parts == [500, 1000, 2000, 4000]
    parts.clear()
    rate = 0.001  # solves take 0.3 s; the last one grows with its rounds, and so does what is beside them, 0.2 s
    expected = 0.3 + 0.2 * (900 + 1000 + 2000 + 4000) / 500 + (0.5 - 0.3) * 4000 / 500
    assert estimating.seconds_of_comparators(run, [1.0]) == pytest.approx(expected)
    assert parts == [500]
    for each, first in ((0.00058, [500, 1000]), (0.00062, [500])):  # 0.3 s are enough
        parts.clear()
        rate = each
        estimating.seconds_of_comparators(run, [1.0])
        assert parts == first


def test_a_runs_seconds_are_those_of_64_rounds_in_proportion(small: Any, monkeypatch: Any) -> None:
    seen = []

    def plays(env: Any, player: Any, *, seed: int, rounds: int) -> Played:
        seen.append(rounds)
        return Played(seconds=[9.0, 0.005 * rounds])

    monkeypatch.setattr(questions, "play", plays)
    assert questions._seconds(small().plan.runs[0]) == pytest.approx(1.5)
    assert questions._seconds(small(rounds=1, norm_bounds=[]).plan.runs[0]) == pytest.approx(0.005)
    assert seen == [2, 64, 1, 1]


def test_who_waits_for_anothers_compiler_waits_five_minutes(clock: Clock, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(compiling, "current_folder", lambda: tmp_path)
    monkeypatch.setattr(compiling, "hold", lambda file: None)  # another process has it
    begin = clock.now
    with compiling.one_compiler("key"):
        assert clock.now - begin == pytest.approx(300.0, abs=1.0)


# ----------------------------------------------------------------------------------------------- failures, streams, time


def test_a_failure_is_recorded_under_the_runs_id(small: Any, tmp_path: Any) -> None:
    [run, *_] = small().plan.runs
    store = Store(tmp_path)
    assert store_failure(store, run, False, "ValueError: no", "trace") == Outcome(
        run.run_id, 300, 0.0, "ValueError: no"
    )
    assert store_failure(store, run, True, "it", "trace") == Outcome(run.stream_id, 300, 0.0, "it")
    told = {each["run_id"]: each["player"] for each in store.failures([run.run_id, run.stream_id])}
    assert told == {run.run_id: run.label, run.stream_id: "comparator"}


@pytest.mark.parametrize(("n", "cut"), [(40_000, 40_000), (40_001, 40_000)])
def test_a_traceback_keeps_its_last_forty_thousand_characters(n: int, cut: int, small: Any, tmp_path: Any) -> None:
    class Long(Exception):
        pass

    [run, *_] = small().plan.runs
    store = Store(tmp_path)
    work._failed(store, run, False, Long("x" * n), 0.5)
    [record] = store.failures([run.run_id])
    assert len(record["traceback"]) == cut
    assert record["traceback"].endswith("x\n")
    assert len(record["error"]) == len("Long: ") + 2000


def test_what_is_done_is_counted_once(small: Any, tmp_path: Any) -> None:
    stands = []
    small().run(
        tmp_path / "out", watch=lambda stand: stands.append((stand.runs_done, stand.streams_done, stand.rounds_done))
    )
    assert stands[0] == (0, 0, 0)
    assert stands[-1] == (6, 2, 6 * 300)
