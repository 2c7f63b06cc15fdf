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
from banditlab.engine import estimating, make_spec, play, progress, questions, warming, work
from banditlab.engine.annotations import shown_type
from banditlab.engine.blocks import is_bare
from banditlab.engine.first_sights import row_groups
from banditlab.engine.memory import memory
from banditlab.engine.plan import make_plan
from banditlab.engine.progress import Kind, Progress
from banditlab.engine.runner import Played
from banditlab.engine.tasks import Tasks, _packed, _portions, seconds_of
from banditlab.engine.warming import kind_of_run, unknown_seconds, warmed_seconds
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
    for module in (estimating, progress, warming):
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


# -------------------------------------------------------------------------------------------------------------- packing


def costing(runs: Any, seconds: float) -> dict[str, float]:
    return {kind_of_run(run): seconds for run in runs}


def test_a_run_takes_a_millisecond_beside_its_rounds_and_a_tenth_for_each_until_more_is_known(small: Any) -> None:
    run = small().plan.runs[0]
    assert unknown_seconds(run) == pytest.approx(0.03)
    assert seconds_of(run, {}) == pytest.approx(0.031)
    assert seconds_of(run, costing([run], 2.0)) == pytest.approx(2.001)


def test_portions_are_of_at_least_two_seconds_and_packs_of_at_most(small: Any) -> None:
    runs = small(repetitions=1).plan.runs * 2
    costs = costing(runs, 0.999)  # a second each
    assert [len(part) for part in _portions(runs, costs, 2.0, 99)] == [2, 2, 2]
    assert [len(part) for part in _portions(runs, costs, 2.5, 99)] == [3, 3]
    assert [len(part) for part in _portions(runs, costs, 99.0, 4)] == [4, 2]
    singles = [(run,) for run in runs]
    assert [len(part) for part in _packed(singles, costs, 2.0)] == [2, 2, 2]
    assert [len(part) for part in _packed(singles, costs, 1.5)] == [1] * 6
    assert [len(part) for part in _packed([runs[:3], *singles[3:]], costs, 2.0)] == [3, 2, 1]


def test_tasks_take_two_seconds_and_longer_for_more_than_200_processes() -> None:
    assert [Tasks("out", (), None, jobs).seconds for jobs in (1, 100, 200, 300, 400)] == [2.0, 2.0, 2.0, 3.0, 4.0]


def test_tasks_are_the_costliest_first_and_streams_of_short_runs_make_sixteen(small: Any) -> None:
    sweep = small(repetitions=50)
    runs, streams = sweep.plan.runs, list(sweep.plan.streams().values())
    costs = {kind_of_run(run): 3.0 if run.label == "uniform" else 1.5 for run in runs}
    made = Tasks("out", (), None, 1).made(runs, streams, costs)
    assert [len(task.runs) for task in made if task.comparators] == [3] * 16 + [2]  # 50 // 16
    order = [sum(1.0 if task.comparators else seconds_of(run, costs) for run in task.runs) for task in made]
    assert order == sorted(order, reverse=True)
    assert {len(task.runs) for task in made if not task.comparators} == {1, 2}


def test_runs_of_a_long_stream_go_twelve_together_or_for_forty_seconds(small: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(work, "STREAM_BYTES", 0)
    agents = [{"id": "banditron", "grid": {"gamma": [i / 40 for i in range(1, 31)]}}]
    runs = small(agent=agents, repetitions=1).plan.runs
    for cost, sizes in ((0.0, [12, 12, 6]), (9.999, [4] * 7 + [2])):
        made = Tasks("out", (), None, 1).made(runs, [], costing(runs, cost))
        assert [len(task.runs) for task in made] == sizes
        assert all(task.together for task in made)


def test_plug_ins_have_an_hour_and_the_package_has_no_limit(small: Any, lab: Any, fresh_registry: Any) -> None:
    fresh_registry.open_lab(lab("odd"))
    runs = small(agent=[{"id": "odd"}, {"id": "uniform"}], repetitions=1).plan.runs
    for limit, limits in ((None, {True: 3600.0, False: 0.0}), (5.0, {True: 5.0, False: 5.0})):
        made = Tasks("out", (), limit, 1).made(runs, [], {})
        assert {task.foreign: task.limit for task in made} == limits
        assert {task.foreign: len(task.labs) for task in made} == {True: 1, False: 0}


# ----------------------------------------------------------------------------------------------------- clocks and time left


def test_time_left_by_hand(clock: Clock) -> None:
    """Two kinds on two workers; a task is of two seconds or as long as its longest run."""
    stand = Progress(runs=10, streams=4, jobs=2, began=clock.now)
    stand.kinds = {"short": Kind(1.0, 6, done=3, seconds=6.0), "long": Kind(4.0, 4)}
    stand.playing_since = clock.now - 5.0
    # short ones take twice what was thought, so long ones do: 3 * 2 + 4 * 8, and 4 comparators of a second
    ahead = 6.0 + 32.0 + 4.0
    assert stand.core_seconds == 6.0
    # two tasks of a long run's 4 s are half done: 4 s of 42; a run's rows take 0.2 ms at the end
    assert stand.seconds_ahead == pytest.approx((ahead - 4.0) / 2 + 10 * 2e-4)
    stand.settled = clock.now - 25.0, 1.0
    share = 25.0 / (6.0 - 1.0 + 4.0)  # of 5 core-seconds that were counted and 4 under way
    assert stand.seconds_ahead == pytest.approx(share * (ahead - 4.0) + 10 * 2e-4)
    stand.streams_done, stand.stream_seconds = 1, 3.0
    assert stand.core_seconds == 9.0
    share = 25.0 / (9.0 - 1.0 + 4.0)
    assert stand.seconds_ahead == pytest.approx(share * (6.0 + 32.0 + 9.0 - 4.0) + 10 * 2e-4)
    stand.rounds_done = 300
    assert (stand.rounds_per_second, stand.seconds) == (60.0, 0.0)
    clock.now += 15.0
    assert (stand.rounds_per_second, stand.seconds) == (15.0, 15.0)


def test_time_left_where_runs_are_short_or_all_are_done(clock: Clock) -> None:
    stand = Progress(runs=100_000, streams=0, jobs=1)
    assert (stand.rounds_per_second, stand.seconds_ahead) == (0.0, None)
    stand.playing_since = clock.now
    stand.kinds = {"one": Kind(0.5, 21)}
    for done, known in ((0, False), (1, True)):  # from a twentieth on: one second of twenty
        stand.kinds["one"].done, stand.kinds["one"].seconds = done, 1.0 * done
        assert (stand.seconds_ahead is not None) == known
    stand.kinds = {"one": Kind(0.5, 200, done=9, seconds=4.5)}
    assert stand.seconds_ahead is None  # 4.5 s of 95.5
    stand.kinds["one"].done, stand.kinds["one"].seconds = 10, 5.0
    assert stand.seconds_ahead == pytest.approx(95.0 - 1.0 + 20.0)
    assert stand.kinds["one"].mean == 0.5
    stand.kinds["one"].done = 11
    stand.kinds["one"].runs = 111  # of 100 runs of 5/11 s, one task of two seconds is half done
    assert stand.seconds_ahead == pytest.approx(100 * 5 / 11 - 1.0 + 20.0)
    stand.kinds["one"].runs = 11
    assert stand.seconds_ahead == pytest.approx(20.0)  # the tables
    assert Progress(runs=1, streams=0).settled is None


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


@pytest.mark.parametrize("tell", [warmed_seconds, questions._seconds])
def test_a_runs_seconds_are_those_of_64_rounds_in_proportion(tell: Any, small: Any, monkeypatch: Any) -> None:
    seen = []

    def plays(env: Any, player: Any, *, seed: int, rounds: int) -> Played:
        seen.append(rounds)
        return Played(seconds=[9.0, 0.005 * rounds])

    monkeypatch.setattr(warming, "play", plays)
    monkeypatch.setattr(questions, "play", plays)
    monkeypatch.setattr(warming, "_note", lambda run: None)
    assert tell(small().plan.runs[0]) == pytest.approx(1.5)
    assert tell(small(rounds=1, norm_bounds=[]).plan.runs[0]) == pytest.approx(0.005)
    assert seen == [2, 64, 1, 1]


def test_a_quick_players_rounds_are_played_until_their_time_can_be_told(small: Any, monkeypatch: Any) -> None:
    seen: list[int] = []

    def plays(env: Any, player: Any, *, seed: int, rounds: int) -> Played:
        seen.append(rounds)
        return Played(seconds=[1e-3 + rounds * rate])  # a millisecond is lost to somebody else

    monkeypatch.setattr(warming, "play", plays)
    monkeypatch.setattr(warming, "_note", lambda run: None)
    run = small(rounds=5000, norm_bounds=[]).plan.runs[0]
    for rate, last in ((1e-6, 5000), (1.9e-2 / 4096, 4096), (1.8e-2 / 4096, 5000), (1.9e-2 / 64, 64)):
        seen.clear()
        assert warmed_seconds(run) == pytest.approx((1e-3 + last * rate) / last * 5000, rel=1e-9)
        assert seen == [2, *(many for many in (64, 256, 1024, 4096, 5000) if many <= last)]
    seen.clear()
    rate = 0.0
    monkeypatch.setattr(warming, "LONGEST_TRIAL", 0.0)  # the environment takes all of it
    assert warmed_seconds(run) == pytest.approx(1e-3 / 64 * 5000)
    assert seen == [2, 64]


def test_who_waits_for_anothers_compiler_waits_five_minutes(clock: Clock, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(warming, "current_folder", lambda: tmp_path)
    monkeypatch.setattr(warming, "hold", lambda file: None)  # another process has it
    begin = clock.now
    with warming.one_compiler("key"):
        assert clock.now - begin == pytest.approx(300.0, abs=1.0)


# ----------------------------------------------------------------------------------------------- failures, streams, time


def test_a_failure_took_no_time_and_says_so_under_the_runs_id(small: Any, tmp_path: Any) -> None:
    """Seconds of a failure would make others look longer."""
    [run, *_] = small().plan.runs
    store = Store(tmp_path)
    assert store_failure(store, run, False, "ValueError: no", "trace") == Outcome(
        run.run_id, 300, 0.0, "ValueError: no"
    )
    assert store_failure(store, run, True, "it", "trace") == Outcome(run.stream_id, 300, 0.0, "it")
    told = {each["run_id"]: each["player"] for each in store.failures([run.run_id, run.stream_id])}
    assert told == {run.run_id: run.label, run.stream_id: "comparator"}


def test_the_mark_of_compiled_kernels_is_the_users_own(small: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(warming, "current_folder", lambda: tmp_path)
    [run, *_] = small().plan.runs
    assert warming.is_cold(run)
    warming._note(run)
    assert not warming.is_cold(run)
    [mark] = (tmp_path / "compiled").iterdir()
    assert mark.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(warming, "current_folder", lambda: None)
    assert not warming.is_cold(run)


@pytest.mark.parametrize(("n", "cut"), [(40_000, 40_000), (40_001, 40_000)])
def test_a_traceback_keeps_its_last_forty_thousand_characters(n: int, cut: int, small: Any, tmp_path: Any) -> None:
    class Long(Exception):
        pass

    [run, *_] = small().plan.runs
    store = Store(tmp_path)
    work._failed(store, run, False, Long("x" * n))
    [record] = store.failures([run.run_id])
    assert len(record["traceback"]) == cut
    assert record["traceback"].endswith("x\n")
    assert len(record["error"]) == len("Long: ") + 2000


@pytest.mark.parametrize(
    ("n_features", "rounds", "long"), [(2**12, 2**12, False), (2**12, 2**12 + 1, True), (2**12 - 1, 2**12 + 1, False)]
)
def test_a_stream_of_more_than_128_mib_is_long(n_features: int, rounds: int, long: bool, small: Any) -> None:
    """Eight bytes a number."""
    environment = [{"id": "banditlab/Logistic-v0", "n_features": n_features, "n_classes": 2}]
    [run, *_] = small(environment=environment, rounds=rounds, norm_bounds=[], agent=[{"id": "uniform"}]).plan.runs
    assert work.is_long(run) == long


def test_what_is_done_is_counted_once(small: Any, tmp_path: Any) -> None:
    stands = []
    small().run(
        tmp_path / "out", watch=lambda stand: stands.append((stand.runs_done, stand.streams_done, stand.rounds_done))
    )
    assert stands[0] == (0, 0, 0)
    assert stands[-1] == (6, 2, 6 * 300)


def test_players_side_by_side_share_the_time_they_took(small: Any, tmp_path: Any) -> None:
    begin = time.perf_counter()
    outcomes = work.execute(Task(str(tmp_path), (), tuple(small(repetitions=1).plan.runs), together=True))
    assert len(outcomes) == 3
    assert 0.0 < sum(outcome.seconds for outcome in outcomes) <= time.perf_counter() - begin
