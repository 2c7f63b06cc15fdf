"""Who is blamed when a process ends, what a plug-in cannot do, and that nobody outlives the main process."""

from __future__ import annotations

import dataclasses
import os
import queue
import signal
import subprocess
import sys
import textwrap
import time
from collections import deque
from pathlib import Path

import pytest

from banditlab.engine import crew as crew_module
from banditlab.engine.crew import _Crew
from banditlab.engine.processes import LostError, ask
from banditlab.engine.work import Log, Task, said, tried
from banditlab.errors import UsageError
from banditlab.results.reading import finished_runs
from banditlab.results.store import Store


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


class Base(BaseException):
    pass


class Dead:
    """A worker that ended in a certain way."""

    def __init__(self, task, running, why, *, fresh=True, late=False, told=()):
        self.task, self.running, self.fresh, self.late = task, list(running), fresh, late
        self.left = {task.id_of(run): run for run in task.runs if task.id_of(run) not in told}
        self._why, self.stuck = why, False

    def why(self):
        return self._why

    def end(self):
        pass


@pytest.fixture
def crew(small, tmp_path):
    """Return (a crew that starts no process, its one task of six runs)."""
    runs = tuple(small().plan.runs)
    task = Task(str(tmp_path), (), runs, limit=3.0)
    return _Crew([task], 2, Store(tmp_path)), task


def ended(crew, worker):
    crew.queue.clear()
    crew.workers.append(worker)
    return [outcome for outcomes, _ in crew._lost(worker) for outcome in outcomes]


def ids(tasks):
    return [[task.id_of(run) for run in task.runs] for task in tasks]


def test_the_run_that_was_played_is_tried_alone_and_the_others_go_on(crew):
    crew, task = crew
    [all_] = ids([task])
    assert ended(crew, Dead(task, [all_[2]], "SIGSEGV", told=all_[:2])) == []
    assert (ids(crew.alone), ids(crew.queue)) == ([[all_[2]]], [all_[3:]])


@pytest.mark.parametrize(
    ("why", "foreign", "ooms", "tries"),
    [
        ("SIGSEGV", False, 7, 2),
        ("exit code 1", True, 7, 2),
        ("SIGKILL", True, 7, 5),  # it may have sent it itself
        ("SIGKILL", False, None, 5),  # it may have been for want of memory
        ("SIGTERM", False, 7, 100),  # the package sends none: somebody else did
    ],
)
def test_only_a_run_that_was_alone_again_and_again_is_blamed(crew, monkeypatch, why, foreign, ooms, tries):
    crew, task = crew
    monkeypatch.setattr(crew_module, "memory_kills", lambda: ooms)
    crew.memory_kills = ooms
    one = Task(task.folder, (), task.runs[:1], limit=3.0, foreign=foreign)
    [[id_]] = ids([one])
    assert ended(crew, Dead(one, [id_], why, fresh=False)) == []  # something else had been done in that process
    for _ in range(tries - 1):
        crew.alone.clear()
        assert ended(crew, Dead(one, [id_], why)) == []
        assert ids(crew.alone) == [[id_]]
    [outcome] = ended(crew, Dead(one, [id_], why))
    assert (outcome.id, outcome.failure) == (id_, f"its worker died each time it was tried, alone ({why})")
    assert Store(task.folder).failures([id_])[0]["error"] == outcome.failure


def test_who_takes_all_memory_is_blamed_soon(crew, monkeypatch):
    crew, task = crew
    one = Task(task.folder, (), task.runs[:1])
    monkeypatch.setattr(crew_module, "memory_kills", lambda: crew.memory_kills + 1)
    crew.memory_kills = 3
    assert [len(ended(crew, Dead(one, ids([one])[0], "SIGKILL"))) for _ in range(2)] == [0, 1]


def test_runs_side_by_side_are_all_tried_alone(crew):
    crew, task = crew
    task = dataclasses.replace(task, together=True)
    [all_] = ids([task])
    assert ended(crew, Dead(task, all_[:4], "SIGABRT")) == []
    assert (ids(crew.alone), ids(crew.queue)) == ([[id_] for id_ in all_[:4]], [all_[4:]])


def test_short_runs_that_were_named_at_once_are_named_one_by_one_then(crew):
    crew, task = crew
    [all_] = ids([task])
    assert ended(crew, Dead(task, all_[1:4], "SIGABRT", told=all_[:2])) == []  # one of them was stored
    assert (list(crew.alone), ids(crew.queue)) == ([], [all_[2:4], all_[4:]])
    assert [each.careful for each in crew.queue] == [True, False]
    assert ended(crew, Dead(crew.queue[0], [all_[2]], "SIGABRT")) == []
    assert (ids(crew.alone), ids(crew.queue)) == ([[all_[2]]], [[all_[3]]])
    crew.alone.clear()
    assert ended(crew, Dead(dataclasses.replace(task, careful=True), all_[:2], "SIGABRT")) == []
    assert ids(crew.alone) == [[id_] for id_ in all_[:2]]


def test_a_run_beyond_its_limit_is_blamed_at_once(crew):
    crew, task = crew
    [all_] = ids([task])
    [outcome] = ended(crew, Dead(task, all_[:1], "SIGKILL", late=True))
    assert outcome.failure == "it took longer than run_timeout = 3 s"
    assert (list(crew.alone), ids(crew.queue)) == ([], [all_[1:]])


def test_workers_that_never_begin_end_the_sweep_in_one_line(crew):
    crew, task = crew
    for _ in range(5):
        assert ended(crew, Dead(task, [], "exit code 1")) == []
        assert ids(crew.queue) == ids([task])
    with pytest.raises(UsageError, match=r"end before they begin a run \(exit code 1\)"):
        ended(crew, Dead(task, [], "exit code 1"))


def test_a_run_that_is_stuck_each_time_is_blamed_after_two_tries(crew):
    """It was killed here, by a signal that might have come from outside."""
    crew, task = crew
    one = Task(task.folder, (), task.runs[:1])
    [[id_]] = ids([one])
    for tries in (1, 2):
        crew.alone.clear()
        dead = Dead(one, [id_], "SIGKILL")
        dead.stuck = True
        found = ended(crew, dead)
        assert len(found) == (tries == 2)
    [outcome] = found
    assert "(it used no processor for 900 s)" in outcome.failure


def test_workers_that_hang_before_they_begin_are_not_killed_for_ever(crew):
    crew, task = crew
    for _ in range(5):
        assert ended(crew, Dead(task, [], "SIGKILL", late=True)) == []
    with pytest.raises(UsageError, match=r"end before they begin a run \(none within 120 s\)"):
        ended(crew, Dead(task, [], "SIGKILL", late=True))


@pytest.mark.parametrize("error", [Base("base"), GeneratorExit(), SystemExit(3), Mute(), KeyboardInterrupt()])
def test_whatever_a_plug_in_raises_is_caught(error, monkeypatch):
    def raises():
        raise error

    log = Log()
    monkeypatch.setattr(log, "is_interrupt", lambda: False)
    assert tried(raises, log) == (None, error)
    assert said(error).startswith(type(error).__name__)
    assert len(said(ValueError("x" * 10**7))) < 3000


def test_the_users_interrupt_is_none_of_a_plug_ins():
    def raises():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tried(raises, Log())


def test_the_working_folder_is_what_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store("out")
    assert tried(lambda: os.chdir("/") or 1, Log()) == (1, None)
    assert os.getcwd() == str(tmp_path)
    assert store.folder == tmp_path / "out"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_comes_back_ends(tmp_path):
    code = """
        import os
        from banditlab.engine.work import Log, tried
        child, _ = tried(os.fork, Log())
        os.waitpid(child, 0)
        print("back")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == "back\n"


def test_what_is_played_and_not_in_the_folder_has_failed(small, tmp_path, monkeypatch):
    monkeypatch.setattr(Store, "write_runs", lambda self, runs: None)
    result = small(norm_bounds=[]).run(tmp_path)
    assert (result.played, len(result.failures)) == (0, 6)
    assert {failure["error"] for failure in result.failures} == {"it was played, but its rows are not in the folder"}


def test_a_crew_that_is_told_nothing_more_puts_what_is_left_back(crew):
    crew, task = crew
    crew.mail, crew.queue = queue.SimpleQueue(), deque()
    worker = Dead(task, [], "exit code 0", told=[task.id_of(run) for run in task.runs[:5]])
    worker.rest = lambda none: setattr(worker, "task", none)
    worker.send = lambda *_: None
    crew.workers = [worker]
    crew.mail.put((worker, {"done": True}))
    crew._give = lambda: None
    loop = crew.work()
    crew._look_at_the_clock = lambda: (_ for _ in ()).throw(StopIteration)
    with pytest.raises(RuntimeError):
        next(loop)
    assert ids(crew.queue) == [[task.id_of(task.runs[5])]]


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
def test_a_question_that_kills_its_worker_is_lost(lab, fresh_registry, small):
    fresh_registry.open_lab(lab("early", init="__import__('os')._exit(7)"))
    run = small(agent=[{"id": "early"}], norm_bounds=[]).plan.runs[0]
    with pytest.raises(LostError, match="exit code 7"):
        ask("why_not", run)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="children are found in /proc")
def test_workers_end_with_the_main_process(tmp_path):
    code = f"""
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from banditlab.engine import Sweep
        from conftest import SMALL
        Sweep(**SMALL | {{"rounds": 100_000, "repetitions": 40, "norm_bounds": []}}).run({str(tmp_path / "out")!r}, jobs=2)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    deadline, workers = time.monotonic() + 120, []
    while len(workers) < 2 or not list((tmp_path / "out" / "shards").glob("*/*.parquet")):
        assert time.monotonic() < deadline
        assert child.poll() is None, "the sweep ended before it could be killed"
        time.sleep(0.01)
        workers = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    before = finished_runs(tmp_path / "out")
    child.send_signal(signal.SIGKILL)
    child.wait()
    time.sleep(3.0)
    lines = [Path(f"/proc/{pid}/cmdline") for pid in workers]
    assert not [line for line in lines if line.exists() and line.read_text()]  # one that nobody waited for has none
    assert before
    assert before <= finished_runs(tmp_path / "out")
