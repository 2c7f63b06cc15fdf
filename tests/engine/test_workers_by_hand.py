"""What a worker does: it answers questions, ends with its parent, and stores what is finished."""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from banditlab import children
from banditlab.engine import processes, questions, work
from banditlab.engine.work import Outcome
from banditlab.errors import UsageError
from banditlab.results import files
from banditlab.results.store import Store


class Gone(BaseException):
    """The process has ended, with this exit code."""


@pytest.fixture(autouse=True)
def exits(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(code: int) -> None:
        raise Gone(code)

    monkeypatch.setattr(processes.os, "_exit", leave)


# ------------------------------------------------------------------------------------------------------------- the worker


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


@pytest.mark.parametrize(
    ("told", "how"),
    [
        ("killed. The exit codes of the workers are {SIGSEGV(-11)}", "SIGSEGV"),
        ("The exit codes of the workers are {EXIT(7)}", "exit code 7"),
        ("a worker is gone", "no exit code"),
    ],
)
def test_how_a_process_ended(told: str, how: str) -> None:
    assert processes.how_it_ended(RuntimeError(told)) == how


@pytest.mark.parametrize(
    ("platform", "parent", "asked", "code"),
    [("linux", 0, True, None), ("linux", -1, True, 1), ("darwin", -1, False, None)],
)
def test_a_worker_ends_with_its_parent(
    platform: str, parent: int, asked: bool, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[Any] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(prctl=lambda *keys: called.append(keys)))
    monkeypatch.setattr(children.sys, "platform", platform)
    if code is None:
        children.end_with(os.getppid() + parent)
    else:
        with pytest.raises(Gone):
            children.end_with(os.getppid() + parent)
    assert called == [(1, signal.SIGKILL)] * asked


# ------------------------------------------------------------------------------------------------------------- the shelf


def test_runs_wait_a_second_to_be_stored_together(small: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(work, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    written: list[list[str]] = []
    store = Store(tmp_path)
    monkeypatch.setattr(store, "write_runs", lambda runs: written.append([each.run_id for each in runs]))
    runs, log = small(norm_bounds=[]).plan.runs, work.Log()
    shelf = work._Shelf(store, log)
    for run, at in zip(runs, (100.0, 100.3, 100.7, 101.0), strict=False):
        now[0] = at
        shelf.add(run, {"run_id": [run.run_id]}, 0.4)
    assert written == [[run.run_id for run in runs[:3]]]  # the first had begun at 99.6
    assert log.outcomes == [Outcome(run.run_id, 300, 0.4) for run in runs[:3]]
    assert shelf.store_all() == [Outcome(runs[3].run_id, 300, 0.4)]
    assert shelf.store_all() == []
    assert len(written) == 2


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


def test_a_run_that_cannot_be_stored_costs_no_other(small: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = small(norm_bounds=[]).plan.runs
    store = Store(tmp_path)

    def write(finished: Any) -> None:
        if any(each.run_id == runs[1].run_id for each in finished):
            raise ValueError("odd rows")

    monkeypatch.setattr(store, "write_runs", write)
    shelf = work._Shelf(store, work.Log())
    for run in runs[:3]:
        shelf.add(run, {}, 0.0)
    assert [outcome.failure for outcome in shelf.store_all()] == ["", "ValueError: odd rows", ""]
    assert store.failed() == {runs[1].run_id}
    [record] = store.failures([runs[1].run_id])
    assert record["player"] == runs[1].label
