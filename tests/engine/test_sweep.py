"""Sweeps: serial, parallel, interrupted, extended and edited give the same tables; failures are recorded, never hidden."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from banditlab.agents.banditron import Banditron
from banditlab.analysis import load
from banditlab.comparators import best_with_switches
from banditlab.engine import work as work_module
from banditlab.engine.runner import play
from banditlab.errors import UsageError
from banditlab.results.files import Files, array_of
from banditlab.results.reading import finished_runs, shards
from banditlab.results.schema import Finished
from banditlab.results.store import Store


def tables(folder):
    """Return the stored tables without what may differ: seconds."""
    runs = pd.read_parquet(folder / "results.parquet").drop(columns="seconds")
    comparators = pd.read_parquet(folder / "comparators.parquet").drop(columns="seconds")
    return (
        runs.sort_values(["run_id", "round"], ignore_index=True),
        comparators.sort_values(["stream_id", "round", "norm_bound"], ignore_index=True),
    )


def assert_same(a, b):
    for left, right in zip(a, b, strict=True):
        pd.testing.assert_frame_equal(left[sorted(left)], right[sorted(right)], check_exact=True)


def test_serial_and_parallel_agree(small, tmp_path):
    one = small().run(tmp_path / "one", jobs=1)
    two = small().run(tmp_path / "two", jobs=2)
    assert (one.played, one.present, one.failures) == (6, 0, [])
    assert two.played == 6
    assert_same(tables(tmp_path / "one"), tables(tmp_path / "two"))
    runs, comparators = tables(tmp_path / "one")
    assert len(runs) == 6 * 9
    assert len(comparators) == 2 * 9 * 2
    assert (runs["param.gamma"].dtype, runs["first_sight_mistakes"].dtype) == (np.float64, np.int64)
    assert set(runs["setting.gamma"].dropna()) == {"0.1", "0.3"}


def test_a_long_stream_is_drawn_for_each_player(small, tmp_path, monkeypatch):
    keys = {
        "agent": [{"id": "banditron", "grid": {"gamma": [0.1, 0.3]}}, {"id": "uniform"}],
        "rounds": 3000,
        "norm_bounds": [1],
    }
    small(**keys).run(tmp_path / "kept")
    monkeypatch.setattr(work_module, "STREAM_BYTES", 0)
    result = small(**keys).run(tmp_path / "long")
    assert (result.played, result.failures) == (6, [])
    assert_same(tables(tmp_path / "kept"), tables(tmp_path / "long"))


def test_players_are_named_while_they_are_compiled_and_clocks_begin_then(small, tmp_path):
    seen, watched, begin = [], [], time.perf_counter()

    def watch(now):
        watched.append(now)
        seen.append((now.stage, now.runs_done + now.streams_done, now.playing_since, now.measured_since))

    result = small().run(tmp_path, watch=watch)
    stages = list(dict.fromkeys(stage for stage, *_ in seen))
    assert stages[:2] == ["compiling or loading kernels", "compiling or loading banditron, uniform"]
    assert stages[-2:] == ["running", "storing"]
    assert all((since is None) == (done == 0) for _, done, since, _ in seen)
    assert all((since is None) == stage.startswith("compiling") for stage, _, _, since in seen)
    assert [len(set(column)) for column in zip(*seen, strict=True)][2:] == [2, 2]  # None, then one time
    end = watched[-1]
    assert (end.runs_done, end.streams_done, end.rounds_done, end.failed, end.jobs) == (6, 2, 1800, 0, 1)
    assert 0.0 <= end.core_seconds <= result.seconds <= time.perf_counter() - begin


@pytest.mark.slow
def test_a_failure_beside_others_is_its_own(small, tmp_path, lab, fresh_registry, monkeypatch):
    monkeypatch.setattr(work_module, "STREAM_BYTES", 0)
    fresh_registry.open_lab(lab("odd", "raise ZeroDivisionError('odd')"))
    monkeypatch.setattr(Banditron, "_play", _fails_late)
    agents = [{"id": "banditron", "grid": {"gamma": [0.1, 0.3]}}, {"id": "uniform"}, {"id": "odd"}]
    keys = {"rounds": 3000, "norm_bounds": [1], "checkpoints": [3000]}
    result = small(agent=agents, **keys).run(tmp_path / "out")
    assert result.played == 2  # uniform
    errors = [failure["error"] for failure in result.failures]
    assert sorted(errors) == ["RuntimeError: late"] * 4 + ["ZeroDivisionError: odd"] * 2
    assert set(tables(tmp_path / "out")[0]["player"]) == {"uniform"}


def _fails_late(self, X, y, U, trace, play=Banditron._play):
    play(self, X, y, U, trace)
    if len(y) < 1024 and len(y) > 100:
        raise RuntimeError("late")


def test_running_again_does_nothing(small, tmp_path):
    small().run(tmp_path)
    before = tables(tmp_path)
    left = []
    again = small().run(tmp_path, watch=lambda progress: left.append((progress.runs, progress.streams)))
    assert (again.present, again.played, set(left)) == (6, 0, {(0, 0)})
    assert_same(before, tables(tmp_path))


def test_an_extended_sweep_leaves_old_runs_untouched(small, tmp_path):
    small().run(tmp_path / "grown")
    old = pd.read_parquet(tmp_path / "grown" / "results.parquet")
    more = {"agent": [{"id": "banditron", "grid": {"gamma": [0.1, 0.3, 0.5]}}, {"id": "uniform"}, {"id": "gaptron"}]}
    grown = small(**more).run(tmp_path / "grown")
    assert (grown.present, grown.played) == (6, 4)
    small(**more).run(tmp_path / "fresh")
    assert_same(tables(tmp_path / "grown"), tables(tmp_path / "fresh"))
    new = pd.read_parquet(tmp_path / "grown" / "results.parquet")
    kept = new[new.run_id.isin(old.run_id)].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept[list(old)], old, check_exact=True)


def test_more_rounds_extend_the_streams(small, tmp_path):
    small(rounds=200).run(tmp_path / "grown")
    longer = small(rounds=500).run(tmp_path / "grown")
    assert (longer.present, longer.played) == (0, 6)
    small(rounds=500).run(tmp_path / "fresh")
    runs, comparators = tables(tmp_path / "grown")
    fresh_runs, fresh_comparators = tables(tmp_path / "fresh")
    mine = runs[runs.run_id.isin(fresh_runs.run_id)].reset_index(drop=True)
    assert_same((mine, comparators), (fresh_runs, fresh_comparators))
    short = runs[~runs.run_id.isin(fresh_runs.run_id)]
    assert set(short["round"]) == {1, 2, 5, 10, 20, 50, 100, 200}


@pytest.mark.slow
def test_a_sweep_killed_half_way_resumes_to_the_same_tables(small, tmp_path):
    keys = {"rounds": 20_000, "repetitions": 6, "norm_bounds": [1], "checkpoints": [20_000]}
    code = f"""
        from banditlab.engine import Sweep, make_spec
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from conftest import SMALL
        Sweep(make_spec(SMALL | {keys!r}, "test")).run({str(tmp_path / "killed")!r}, jobs=1)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], start_new_session=True)
    shards = tmp_path / "killed" / "shards"
    deadline = time.monotonic() + 120
    while not list(shards.glob("*/*.parquet")):
        assert time.monotonic() < deadline, "no run was stored within two minutes"
        assert child.poll() is None, "the sweep ended before it could be killed"
        time.sleep(0.005)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    resumed = small(**keys).run(tmp_path / "killed")
    assert resumed.present >= 1
    assert resumed.present + resumed.played == 18
    small(**keys).run(tmp_path / "whole")
    assert_same(tables(tmp_path / "killed"), tables(tmp_path / "whole"))


@pytest.mark.parametrize(("seconds", "most"), [(0.0, 60), (1e9, 30)])
@pytest.mark.few(1)
def test_short_runs_share_a_shard(small, tmp_path, monkeypatch, seconds, most):
    monkeypatch.setattr(work_module, "STORE_SECONDS", seconds)
    monkeypatch.setattr(Store, "compact", lambda self: None)
    keys = {"repetitions": 20, "norm_bounds": [1], "checkpoints": [300]}
    sweep = small(**keys)
    sweep.run(tmp_path / "out")
    held = shards(Files(tmp_path / "out"))
    assert len(held) == most if seconds == 0.0 else len(held) <= most  # one a run, or one a task
    monkeypatch.undo()
    small(**keys).run(tmp_path / "out")  # compacts what is there
    small(**keys).run(tmp_path / "whole")
    assert_same(tables(tmp_path / "out"), tables(tmp_path / "whole"))
    described = pd.read_parquet(tmp_path / "out" / "descriptions.parquet")
    found = {run_id: json.loads(text) for run_id, text in zip(described.run_id, described.description)}
    assert {run_id: text["player"] for run_id, text in found.items()} == {r.run_id: r.player for r in sweep.plan.runs}


def test_an_interrupt_keeps_what_was_finished(small, tmp_path, monkeypatch):
    monkeypatch.setattr(work_module, "STORE_SECONDS", 1e9)
    played = []

    def interrupted(*arguments, **options):
        played.append(1)
        if len(played) == 6:  # the third of the first task's runs: two rounds of each kind of player come first
            raise KeyboardInterrupt
        return play(*arguments, **options)

    monkeypatch.setattr(work_module, "_loaded", set())
    monkeypatch.setattr(work_module, "play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small(agent=[{"id": "banditron", "grid": {"gamma": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}}]).run(tmp_path)
    assert len(finished_runs(tmp_path)) == 4


def test_runs_that_cannot_be_stored_have_failed(small, tmp_path, monkeypatch):
    def full(self, runs):
        raise OSError("no space left on device")

    monkeypatch.setattr(Store, "write_runs", full)
    seen = []
    result = small().run(tmp_path, watch=seen.append)
    assert (result.played, len(result.failures), seen[-1].failed) == (0, 6, 6)
    assert {failure["error"] for failure in result.failures} == {"OSError: no space left on device"}
    monkeypatch.undo()
    assert small().run(tmp_path).failures == []


def test_a_run_in_two_shards_counts_once(tmp_path):
    store = Store(tmp_path)
    one, two, three = (
        Finished(i, {"run_id": [i, i], "round": [1, 2], "mistakes": [0, 1]}, {"of": i}) for i in ("aa", "bb", "cc")
    )
    store.write_runs([one, two])
    store.write_runs([two, three])
    assert finished_runs(tmp_path) == {"aa", "bb", "cc"}
    for _ in range(2):
        store.compact()
        frame = pd.read_parquet(tmp_path / "results.parquet")
        assert list(frame.run_id) == ["aa", "aa", "bb", "bb", "cc", "cc"]
        store.write_runs([three])


def test_shards_of_other_runs_are_not_written_over(tmp_path):
    """Two processes in one folder may both store a run, each beside others."""
    store = Store(tmp_path)
    a, b, c = (Finished(i, {"run_id": [i], "round": [1], "mistakes": [0]}, {"of": i}) for i in ("aa", "bb", "cc"))
    for runs in ([a, b], [a, c], [a]):
        store.write_runs(runs)
    assert finished_runs(tmp_path) == {"aa", "bb", "cc"}
    assert len(shards(Files(tmp_path))) == 3


def test_a_spoilt_shard_is_done_again(small, tmp_path, monkeypatch):
    """Its end, which says what it holds, is whole; its rows are not."""
    monkeypatch.setattr(Store, "compact", lambda self: None)
    small().run(tmp_path / "out")
    monkeypatch.undo()
    name, runs = next(iter(shards(Files(tmp_path / "out")).items()))
    shard = tmp_path / "out" / name
    data = bytearray(shard.read_bytes())
    data[40] ^= 1
    shard.write_bytes(data)
    again = small().run(tmp_path / "out")
    assert again.redone == [next(iter(runs))]
    assert (again.present, again.played, again.failures) == (6 - len(runs), len(runs), [])
    small().run(tmp_path / "whole")
    assert_same(tables(tmp_path / "out"), tables(tmp_path / "whole"))


@pytest.mark.parametrize("name", ["shard", "results"])
def test_a_file_that_may_not_be_read_is_not_made_anew(small, tmp_path, monkeypatch, name):
    if name == "shard":
        monkeypatch.setattr(Store, "compact", lambda self: None)
    small().run(tmp_path)
    monkeypatch.undo()
    file = tmp_path / (next(iter(shards(Files(tmp_path)))) if name == "shard" else "results.parquet")
    before, read = file.read_bytes(), Path.read_bytes

    def refused(of):
        if of == file:
            raise PermissionError(errno.EACCES, "refused")
        return read(of)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refused)
        with pytest.raises(UsageError, match="cannot be read"):
            small().run(tmp_path)
    assert file.read_bytes() == before
    assert small().run(tmp_path).present == 6


def test_an_interrupt_while_storing_keeps_what_was_finished(small, tmp_path, monkeypatch):
    monkeypatch.setattr(work_module, "STORE_SECONDS", 1e9)
    monkeypatch.setattr(Store, "compact", lambda self: None)
    write, calls = Store.write_runs, []

    def interrupted(self, runs):
        calls.append(len(runs))
        if len(calls) == 1:
            raise KeyboardInterrupt
        write(self, runs)

    shelf = work_module._Buffer(Store(tmp_path))
    run = small().plan.runs[0]
    shelf._waiting = [(run, Finished("aa", {"run_id": ["aa"], "round": [1]}, {}), 0.0)]
    monkeypatch.setattr(Store, "write_runs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shelf.store_all()
    shelf.store_all()
    assert len(shelf.outcomes) == 1
    assert finished_runs(tmp_path) == {"aa"}


def test_runs_are_stored_once_the_first_has_waited_long_enough(small, tmp_path, monkeypatch):
    clock, stored, run = SimpleNamespace(now=100.0), [], small().plan.runs[0]
    monkeypatch.setattr(work_module, "STORE_SECONDS", 5.0)
    monkeypatch.setattr(work_module, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(Store, "write_runs", lambda self, runs: stored.append(len(runs)))
    shelf = work_module._Buffer(Store(tmp_path))
    for now in (100.0, 102.0, 103.5, 104.0, 120.0):  # the first began at 99
        clock.now = now
        shelf.add(run, {"run_id": ["aa"], "round": [1]}, 1.0)
    assert stored == [4]


def test_a_run_that_cannot_be_stored_takes_no_other_with_it(small, tmp_path, monkeypatch):
    monkeypatch.setattr(work_module, "STORE_SECONDS", 1e9)
    made = work_module.run_rows

    def odd(run, player, played):
        rows = made(run, player, played)
        return rows | {"diagnostic.odd": ["no number"] * len(rows["round"])} if run.label == "uniform" else rows

    monkeypatch.setattr(work_module, "run_rows", odd)
    result = small().run(tmp_path)
    assert {failure["player"] for failure in result.failures} == {"uniform"}
    assert result.played == 4
    assert set(tables(tmp_path)[0]["player"]) == {"banditron"}


def test_what_is_finished_while_another_process_compacts(small, tmp_path, monkeypatch):
    monkeypatch.setattr(Store, "compact", lambda self: None)
    small().run(tmp_path)
    monkeypatch.undo()
    store, glob = Store(tmp_path), Path.glob

    def compacted_meanwhile(self, pattern):
        files = list(glob(self, pattern))
        if pattern == "shards/*/*.parquet" and files:
            monkeypatch.undo()
            store.compact()
        return files

    monkeypatch.setattr(Path, "glob", compacted_meanwhile)
    assert len(finished_runs(tmp_path)) == 6
    assert store.done() == (finished_runs(tmp_path), [])


def test_failures_are_recorded_and_the_others_finish(small, tmp_path, lab, fresh_registry):
    lab("raiser", "raise RuntimeError('no idea')")
    lab("quitter", "raise SystemExit(3)")
    lab("unbuildable", "pass", init="raise KeyError('not even built')")
    lab("out-of-range", "return Decision(K, p)")
    folder = lab("half-mass", "return Decision(0, p / 2)")
    fresh_registry.open_lab(folder)
    agents = [{"id": i} for i in ("raiser", "uniform", "out-of-range", "half-mass", "quitter", "unbuildable")]
    keys = {"agent": agents, "repetitions": 1, "rounds": 20, "norm_bounds": []}
    result = small(**keys).run(tmp_path / "out")
    assert result.played == 1
    errors = {failure["player"]: failure["error"] for failure in result.failures}
    assert errors["raiser"] == "RuntimeError: no idea"
    assert "action 3 is not an integer in 0 ... 2" in errors["out-of-range"]
    assert "not a distribution" in errors["half-mass"]
    assert errors["quitter"] == "SystemExit: 3"
    assert errors["unbuildable"] == "KeyError: 'not even built'"
    assert all("Traceback" in failure["traceback"] for failure in result.failures)
    retried = small(**keys).run(tmp_path / "out")
    assert (retried.present, len(retried.failures)) == (1, 5)


@pytest.mark.slow
def test_an_edited_lab_agent_is_run_anew(small, tmp_path, lab):
    from banditlab import registry as registry_module
    from banditlab.registry import Registry

    ids = []
    for act in ("return Decision(int(u[1] * K), p)", "return Decision(int(u[0] * K), p)"):
        folder = lab("editable", act)
        fresh = Registry()
        fresh.open_lab(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registry_module, "registry", lambda fresh=fresh: fresh)
            for module in ("describe", "plan", "schedule"):
                patch.setattr(f"banditlab.engine.{module}.registry", lambda fresh=fresh: fresh, raising=False)
            result = small(agent=[{"id": "editable"}]).run(tmp_path / "out")
        assert (result.present, result.played) == (0, 2)
        ids.append({run.run_id for run in result.plan.runs})
    assert not ids[0] & ids[1]


@pytest.mark.slow
def test_lab_agents_run_in_workers(small, tmp_path, lab, fresh_registry):
    fresh_registry.open_lab(lab("parallel-lab"))
    result = small(agent=[{"id": "parallel-lab", "grid": {"bias": [0, 1]}}]).run(tmp_path / "out", jobs=2)
    assert (result.played, result.failures) == (4, [])


def test_an_edited_csv_is_run_anew(small, tmp_path):
    from sklearn.datasets import load_iris

    frame = load_iris(as_frame=True).frame
    file = tmp_path / "iris.csv"
    frame.to_csv(file, index=False)
    env = [{"id": "banditlab/Table-v0", "path": str(file), "label": "target"}]
    first = small(environment=env, repetitions=1).run(tmp_path / "out")
    assert small(environment=env, repetitions=1).run(tmp_path / "out").present == 3
    frame.iloc[:-1].to_csv(file, index=False)
    second = small(environment=env, repetitions=1).run(tmp_path / "out")
    assert (second.present, second.played) == (0, 3)
    assert not {r.run_id for r in first.plan.runs} & {r.run_id for r in second.plan.runs}


def test_an_incompatible_pair_is_skipped_with_its_reason(small, tmp_path):
    agents = [{"id": "uniform"}, {"id": "exploration", "forecaster": "aioli", "gamma": 0.1}]
    sweep = small(agent=agents)
    assert len(sweep.plan.runs) == 2
    assert "K" in sweep.plan.skipped[0]["reason"]
    assert sweep.plan.skipped[0]["player"] == "exploration(aioli)(gamma=0.1)"
    assert sweep.run(tmp_path).failures == []


def test_an_unknown_horizon_skips_theory_settings(small):
    sweep = small(agent=[{"id": "gaptron"}, {"id": "uniform"}], horizon_known=False)
    assert {run.label for run in sweep.plan.runs} == {"uniform"}
    assert "horizon" in sweep.plan.skipped[0]["reason"]


def test_forecasters_run_in_the_same_sweep(small, tmp_path):
    sweep = small(agent=[], forecaster=[{"id": "ogd"}, {"id": "folklore", "norm_bound": 3}])
    sweep.run(tmp_path)
    runs, comparators = tables(tmp_path)
    assert set(runs["kind"]) == {"label"}
    last = runs[(runs.label == "folklore") & (runs["round"] == 300)]
    best = comparators[(comparators["round"] == 300) & (comparators.norm_bound == 3)]
    joined = last.merge(best, on="stream_id")
    regret = joined["log_loss"] - joined["loss_nats"] + joined["gap"]
    assert (regret <= joined["certificate"]).all()
    assert (joined["certificate"] <= joined["bound"] + 1e-9).all()


def test_an_adaptive_environment_has_a_comparator_per_run(small, tmp_path):
    sweep = small(environment=[{"id": "banditlab/Adversary-v0"}], repetitions=1, rounds=100)
    result = sweep.run(tmp_path)
    assert result.failures == []
    runs, comparators = tables(tmp_path)
    assert set(runs.stream_id) == set(runs.run_id) == set(comparators.stream_id)


def test_an_extended_adaptive_sweep_gets_the_comparators_it_lacks(small, tmp_path):
    env = [{"id": "banditlab/Adversary-v0"}]
    small(environment=env, repetitions=1, rounds=60).run(tmp_path / "grown")
    wider = small(environment=env, repetitions=1, rounds=60, norm_bounds=[1, 3, 20])
    assert wider.run(tmp_path / "grown").failures == []
    wider.run(tmp_path / "fresh")
    assert_same(tables(tmp_path / "grown"), tables(tmp_path / "fresh"))


def test_comparators_do_not_depend_on_what_else_was_asked_for(small, tmp_path):
    small(checkpoints=[300], norm_bounds=[3]).run(tmp_path / "grown")
    more = small(checkpoints=[7, 100, 300], norm_bounds=[1, 3])
    more.run(tmp_path / "grown")
    more.run(tmp_path / "fresh")
    grown, fresh = tables(tmp_path / "grown")[1], tables(tmp_path / "fresh")[1]
    pd.testing.assert_frame_equal(grown, fresh, check_exact=True)


def test_models_that_switch_are_stored_where_labels_change(small, tmp_path):
    change = {"labels": "swap", "at": [60, 180], "over": 20}
    sweep = small(rounds=200, repetitions=1, agent=[{"id": "uniform"}], norm_bounds=[3], change=change)
    assert sweep.run(tmp_path).failures == []
    env = sweep.plan.runs[0].build_environment()
    env.reset(seed=sweep.plan.runs[0].environment_seed())
    found = best_with_switches(*next(env.blocks(200, 200)), 3, 3.0, 2, at=[60, 80, 180])[-1]
    rows = tables(tmp_path)[1][["switches", "switching_loss_nats", "switching_gap"]]
    assert rows.dropna().to_numpy().tolist() == [pytest.approx([found.switches, found.loss, found.gap], rel=1e-12)]


def test_no_norm_bounds_no_comparator(small, tmp_path):
    small(norm_bounds=[]).run(tmp_path)
    assert not list((tmp_path / "comparators").iterdir())


@pytest.mark.parametrize("text", ["[store]\nformat = 99\n", "[store]\n", "not toml ="])
def test_another_store_format_is_refused(tmp_path, text):
    (tmp_path / "spec.toml").write_text(text)
    with pytest.raises(UsageError, match="choose another folder with -o"):
        Store(tmp_path)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        Store(tmp_path / "file")


@pytest.mark.slow
def test_a_worker_that_dies_is_tried_again_and_then_recorded(small, tmp_path, lab, fresh_registry):
    fresh_registry.open_lab(lab("killer", "import os, joblib; os._exit(1) if self.problem.horizon else 0"))
    agents = [{"id": "uniform"}, {"id": "killer"}]
    result = small(agent=agents, repetitions=2, norm_bounds=[]).run(tmp_path / "out", jobs=2)
    assert result.played == 2
    assert {f["player"] for f in result.failures} == {"killer"}
    assert "worker process died" in result.failures[0]["error"]


def test_text_and_number_in_one_column_become_text(tmp_path):
    store = Store(tmp_path)
    for run_id, step in (("aa", 0.5), ("bb", "adaptive")):
        rows = {"run_id": [run_id], "round": [1], "mistakes": [0], "param.step": [step]}
        store.write_runs([Finished(run_id, rows, {})])
    store.compact()
    frame = pd.read_parquet(tmp_path / "results.parquet")
    assert list(frame["param.step"]) == ["0.5", "adaptive"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5, None, float("nan"), 2], pa.float64()),
        ([1, 2, 2**62], pa.int64()),
        ([None, "", "naïve", "x" * 300] * 5, pa.string()),
        ([], pa.string()),
        ([], pa.float64()),
        ([None] * 9, pa.string()),
    ],
)
def test_columns_are_made_as_pyarrow_makes_them(values, kind):
    made = array_of(values, kind)
    made.validate(full=True)
    usual = pa.array(values, kind)
    assert made.is_null().to_pylist() == usual.is_null().to_pylist()
    assert str(made.to_pylist()) == str(usual.to_pylist())


@pytest.mark.slow
def test_playing_and_storing_import_no_pandas(tmp_path):
    code = f"""
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from banditlab.engine import Sweep
        from conftest import SMALL
        result = Sweep(**SMALL | {{"norm_bounds": [3], "agent": [{{"id": "uniform"}}]}}).run({str(tmp_path)!r})
        assert (result.played, result.failures) == (2, [])
        print("pandas" in sys.modules)
    """
    child = [sys.executable, "-c", textwrap.dedent(code)]
    assert subprocess.run(child, capture_output=True, text=True, check=True).stdout == "False\n"


def test_comparators_that_failed_are_said_though_their_run_is_stored_after_that(
    small: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of an adaptive environment bear the run's id: what is stored is the run, and what failed is not."""

    def broken(*_: Any) -> None:
        raise ValueError("no comparator")

    keys: dict[str, Any] = {"environment": [{"id": "banditlab/Adversary-v0"}], "agent": [{"id": "uniform"}]}
    sweep = small(rounds=20, repetitions=1, norm_bounds=[1.0], **keys)
    with monkeypatch.context() as patch:
        patch.setattr(work_module, "compare_run", broken)
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
    work_module.store_failure(Store(tmp_path), sweep.plan.runs[0], False, "it took longer than run_timeout = 2 s", "")
    result = sweep.run(tmp_path)
    assert (result.present, result.played, result.failures) == (1, 0, [])
