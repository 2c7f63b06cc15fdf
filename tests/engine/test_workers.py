"""Who is blamed when a process ends, what a plug-in cannot do, and that nobody outlives the main process."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter, deque
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from banditlab.agents.banditron import Banditron
from banditlab.engine import describe, plan, processes, questions
from banditlab.engine import workers as workers_module
from banditlab.engine.describe import is_foreign
from banditlab.engine.processes import LostError, ask
from banditlab.engine.work import Task, error_text, execute, store_failure, tried
from banditlab.errors import UsageError
from banditlab.results import files
from banditlab.results.reading import finished_runs
from banditlab.results.store import Store


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


class Base(BaseException):
    pass


@pytest.mark.parametrize("error", [Base("base"), GeneratorExit(), SystemExit(3), Mute(), KeyboardInterrupt()])
def test_whatever_a_plug_in_raises_is_caught(error):
    def raises():
        raise error

    assert tried(raises, lambda: False) == (None, error)
    assert error_text(error).startswith(type(error).__name__)
    assert error_text(ValueError("x" * 10**7)) == f"ValueError: {'x' * 2000}"


def test_the_users_interrupt_is_none_of_a_plug_ins():
    def raises():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tried(raises, lambda: True)


def test_the_working_folder_is_what_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store("out")
    assert tried(lambda: os.chdir("/") or 1, lambda: True) == (1, None)
    assert os.getcwd() == str(tmp_path)
    assert store.folder == tmp_path / "out"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_comes_back_ends(tmp_path):
    code = """
        import os
        from banditlab.engine.work import tried
        child, _ = tried(os.fork, lambda: True)
        os.waitpid(child, 0)
        print("back")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == "back\n"


def test_what_is_played_and_not_in_the_folder_has_failed(small, tmp_path, monkeypatch):
    monkeypatch.setattr(Store, "write_runs", lambda self, runs: None)
    result = small(norm_bounds=[]).run(tmp_path)
    assert (result.played, len(result.failures)) == (0, 6)
    assert {failure["error"] for failure in result.failures} == {"it was executed, but its rows are not in the folder"}


@pytest.mark.slow
def test_of_runs_that_shared_a_process_the_guilty_one_is_named(small, tmp_path, lab, fresh_registry):
    """Also where it ends as if nothing had been: with exit code 0."""
    answer = "return Decision(int(u[1] * K), p)"
    lab("quits", f"self.problem.horizon == 7 and __import__('os')._exit(0); {answer}")
    fresh_registry.open_lab(lab("killed", "__import__('os').kill(__import__('os').getpid(), 9)"))
    runs = [
        run
        for rounds in (5, 7)
        for run in small(agent=[{"id": "quits"}], norm_bounds=[], repetitions=2, rounds=rounds).plan.runs
    ]
    runs += small(agent=[{"id": "killed"}], norm_bounds=[], repetitions=1, rounds=5).plan.runs
    task = Task(str(tmp_path), tuple(fresh_registry.labs()), tuple(runs), foreign=True, limit=60.0)
    failure_of = {
        o.id: o.failure for outcomes, _ in workers_module.dispatch([task], 1, Store(tmp_path)) for o in outcomes
    }
    failures = [failure_of[run.run_id] for run in runs]
    assert failures[:2] == ["", ""]
    assert failures[2:4] == ["its worker process died in each attempt at this run alone (exit code 0)"] * 2
    assert failures[4] == "its worker process died in each attempt at this run alone (SIGKILL)"
    assert finished_runs(tmp_path) == {run.run_id for run in runs[:2]}


def test_of_a_lost_task_what_is_stored_counts_and_the_rest_is_played_alone(small: Any, tmp_path: Path) -> None:
    """What had failed before the sweep began is tried again; what failed since counts."""
    runs = small(norm_bounds=[]).plan.runs[:4]
    store = Store(tmp_path / "out")
    execute(Task(str(store.folder), (), runs[:1]))
    store_failure(store, runs[1], False, "it failed last time", "")
    before = store.failed()
    store_failure(store, runs[2], False, "it failed now", "")
    lost: Any = SimpleNamespace(task=Task(str(store.folder), (), tuple(runs)), preparing=False)
    queue, tries = deque[Task](), Counter[str]()
    lost_outcomes = list(workers_module._lost(lost, False, "SIGKILL", store, before, queue, tries))
    assert [(outcomes[0].id, outcomes[0].failure, task.runs) for outcomes, task in lost_outcomes] == [
        (runs[0].run_id, "", (runs[0],)),
        (runs[2].run_id, "recorded as failed", (runs[2],)),
    ]
    assert [task.runs for task in queue] == [(runs[3],), (runs[1],)]
    assert not tries.total()  # nobody was alone
    for place, late, why in ((3, False, ""), (3, False, "its worker process died"), (1, True, "it took longer than")):
        lost.task = replace(lost.task, runs=(runs[place],))
        again = list(workers_module._lost(lost, late, "SIGKILL", store, before, queue, tries))
        assert [(o.failure.startswith(why), o.seconds) for [o], _ in again] == [(True, 0.0)] * bool(why)


# ----------------------------------------------------------------------------------------------------- with processes


@pytest.mark.slow
def test_a_hostile_labs_constructor_is_not_run_here(small, tmp_path, lab, fresh_registry):
    fresh_registry.open_lab(
        lab("builder", init=f"open({str(tmp_path / 'pids')!r}, 'a').write(f'{{__import__(\"os\").getpid()}} ')")
    )
    result = small(agent=[{"id": "builder"}], norm_bounds=[], rounds=5).run(tmp_path / "out")
    assert (result.played, result.failures) == (2, [])
    pids = (tmp_path / "pids").read_text().split()
    assert pids
    assert str(os.getpid()) not in pids


@pytest.mark.slow
def test_crashes_and_a_hang_are_recorded_and_the_others_are_kept(small, tmp_path, lab, fresh_registry):
    lab("segfault", "__import__('ctypes').string_at(0)")
    lab("early", init="__import__('ctypes').string_at(0)")
    lab("base", "raise type('Base', (BaseException,), {})('base')")
    fresh_registry.open_lab(lab("sleeper", "__import__('time').sleep(3600)"))
    agents = [{"id": id_} for id_ in ("uniform", "segfault", "early", "base", "sleeper")]
    result = small(agent=agents, norm_bounds=[], repetitions=1, rounds=5, run_timeout=2).run(tmp_path / "out")
    assert result.played == 1
    errors = {failure["player"]: failure["error"] for failure in result.failures}
    assert errors["sleeper"] == "it took longer than run_timeout = 2 s"
    assert errors["base"] == "Base: base"
    assert "alone (SIGSEGV)" in errors["segfault"]
    assert "alone (SIGSEGV)" in errors["early"]


@pytest.mark.slow
def test_a_killed_worker_costs_and_blames_nobody(small: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    acquired: list[processes.Worker] = []
    killed: list[int] = []

    def acquire(labs: Any, *, foreign: bool) -> processes.Worker:
        acquired.append(processes.acquire(labs, foreign=foreign))
        return acquired[-1]

    def kill(progress: Any) -> None:
        if progress.runs_done and not killed:
            killed.extend(acquired[0].executor._processes)
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(workers_module, "acquire", acquire)
    result = small(norm_bounds=[], repetitions=20, rounds=20_000).run(tmp_path, jobs=2, watch=kill)
    assert len(acquired) > 2
    assert (result.played, result.failures) == (60, [])


@pytest.mark.slow
def test_a_process_that_was_idle_for_long_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "IDLE_SECONDS", 0.1)
    worker = processes.acquire((), foreign=True)
    first = worker.future.result(60) or list(worker.executor._processes)
    processes.make_idle(worker)
    deadline = time.monotonic() + 60
    while worker.executor._processes:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert processes.acquire((), foreign=True) is worker
    worker.future.result(60)
    assert list(worker.executor._processes) != first
    worker.end()


@pytest.mark.slow
def test_a_users_own_joblib_goes_on(small: Any, tmp_path: Any) -> None:
    from joblib import Parallel, delayed

    for number in range(2):
        assert Parallel(n_jobs=2)(delayed(abs)(i) for i in (-1, 2)) == [1, 2]
        assert small(norm_bounds=[]).run(tmp_path / str(number), jobs=2).played == 6
    assert Parallel(n_jobs=2)(delayed(abs)(i) for i in (-1, 2)) == [1, 2]


@pytest.mark.slow
def test_a_question_that_kills_its_worker_is_lost(lab, fresh_registry, small):
    fresh_registry.open_lab(lab("early", init="__import__('os')._exit(7)"))
    run = small(agent=[{"id": "early"}], norm_bounds=[]).plan.runs[0]
    with pytest.raises(LostError, match="exit code 7"):
        ask("why_not", run)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="children are found in /proc")
@pytest.mark.parametrize("playing", [True, False])
def test_workers_end_with_the_main_process(tmp_path, playing):
    """Those that play, and those that have only just been started."""
    code = f"""
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from banditlab.engine import Sweep
        from conftest import SMALL
        Sweep(**SMALL | {{"rounds": 100_000, "repetitions": 40, "norm_bounds": []}}).run({str(tmp_path / "out")!r}, jobs=2)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    deadline, workers = time.monotonic() + 120, []
    while len(workers) < 2 or (playing and not list((tmp_path / "out" / "shards").glob("*/*.parquet"))):
        assert time.monotonic() < deadline
        assert child.poll() is None, "the sweep ended before it could be killed"
        time.sleep(0.01)
        workers = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    before = finished_runs(tmp_path / "out")
    child.send_signal(signal.SIGKILL)
    child.wait()
    time.sleep(5.0)
    lines = [Path(f"/proc/{pid}/cmdline") for pid in workers]
    assert not [line for line in lines if line.exists() and line.read_text()]  # one that nobody waited for has none
    assert bool(before) == playing
    assert before <= finished_runs(tmp_path / "out")


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


def test_questions_are_answered_refused_or_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: Any) -> None:
        raise UsageError("not so")

    def breaks(_: Any) -> None:
        raise ValueError("no")

    def interrupts(_: Any) -> None:
        raise KeyboardInterrupt

    known = {"doubles": lambda x: 2 * x, "refuses": refuses, "breaks": breaks, "interrupts": interrupts}
    monkeypatch.setattr(questions, "KNOWN", known)
    found = [json.loads(processes._answer(name, 4)) for name in known]
    assert found == [
        ["answer", 8],
        ["refused", "not so"],
        ["broken", "ValueError: no"],
        ["broken", "KeyboardInterrupt: "],
    ]
    monkeypatch.setattr(processes, "interrupts", [1])  # the user's
    with pytest.raises(KeyboardInterrupt):
        processes._answer("interrupts", 4)
    processes._interrupted()  # another one, while finished runs are stored


def test_the_seconds_of_a_run_are_those_of_its_first_64_rounds_times_their_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def played(env: Any, player: Any, *, rounds: int, **_: Any) -> Any:
        asked.append(rounds)
        return SimpleNamespace(seconds=[0.5, 0.75, 1.0])

    monkeypatch.setattr(questions, "play", played)
    run: Any = SimpleNamespace(
        build_environment=object, build_player=lambda env: env, rounds=640, environment_seed=int, feedback=None
    )
    assert questions._seconds(run) == 10.0
    assert asked == [2, 64]  # the first two rounds compile


def test_a_full_disk_is_no_runs_fault(small: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What says that a run failed is short, and may still fit where its rows do not."""
    write = files.write_whole

    def full(file: Any, *given: Any) -> None:
        if file.suffix == ".parquet":
            raise OSError(28, "No space left on device")
        write(file, *given)

    monkeypatch.setattr(files, "write_whole", full)
    for keys in ({"norm_bounds": []}, {}):
        with pytest.raises(OSError, match="No space left") as caught:
            small(agent=[{"id": "uniform"}], rounds=20, **keys).run(tmp_path)
        assert caught.value.errno == 28
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), files.NoRoomError)
    assert Store(tmp_path).failed() == set()
