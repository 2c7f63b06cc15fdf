"""What passes between a process and its workers, byte by byte, and who ends whom: pipes, clocks and deaths of our own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import queue
import signal
import struct
import subprocess
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from banditlab.engine import processes, questions, serving, work
from banditlab.engine.processes import LostError, Worker
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

    monkeypatch.setattr(serving.os, "_exit", leave)


def message(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def words(out: io.BytesIO) -> list[dict[str, Any]]:
    """Return what a worker has told."""
    found, data = [], out.getvalue()
    while data:
        n = int.from_bytes(data[:8], "big")
        found.append(json.loads(data[8 : 8 + n]))
        data = data[8 + n :]
    return found


# ------------------------------------------------------------------------------------------------------------- the worker


def test_messages_are_handed_on_until_the_pipe_is_closed() -> None:
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    sent = [("task", "x" * 300), ("ask", 7)]
    with pytest.raises(Gone) as caught:
        serving._listen(io.BytesIO(b"".join(message(pickle.dumps(each)) for each in sent)), inbox)
    assert caught.value.args == (1,)
    assert [inbox.get_nowait(), inbox.get_nowait()] == sent


def test_what_is_told_comes_from_this_process_only() -> None:
    out = io.BytesIO()
    told = serving._Told(out, [])
    assert not told.is_interrupt()
    told.began(["a"])
    told.ended([])
    told.ended([Outcome("a", 3, 0.5, "no")])
    told.process = -1
    told.began(["of a child"])
    assert words(out) == [{"began": ["a"]}, {"outcomes": [["a", 3, 0.5, "no", 0.0]]}]
    assert serving._Told(out, [1]).is_interrupt()


def test_while_kernels_are_compiled_the_clock_of_the_runs_that_began_stands_still() -> None:
    out = io.BytesIO()
    told = serving._Told(out, [])
    told.began(["a", "b"])
    with told.loading():
        assert words(out)[1:] == [{"began": ["a", "b"], "spare": 600.0}]
    assert words(out)[2:] == [{"began": ["a", "b"]}]
    with pytest.raises(ValueError, match="no kernel"), told.loading():
        raise ValueError("no kernel")
    with work.Log().loading():
        pass


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return (a log, what it was told of loading); this process has no kernels yet."""
    seen: list[str] = []
    log = work.Log()

    @contextlib.contextmanager
    def loading() -> Any:
        seen.append("loading")
        yield
        seen.append("loaded")

    monkeypatch.setattr(log, "loading", loading)
    monkeypatch.setattr(work, "_loaded", set())
    return log, seen


@pytest.mark.parametrize("foreign", [False, True])
def test_the_first_comparators_of_a_process_compile(foreign: bool, loads: Any, small: Any, tmp_path: Any) -> None:
    run = small(norm_bounds=[]).plan.runs[0]
    vars(run)["foreign"] = foreign
    log, seen = loads

    def broken() -> None:
        seen.append("computed")
        raise ValueError("no")

    for _ in range(2):
        assert work._guarded(Store(tmp_path), run, broken, log).failure == "ValueError: no"
    assert seen == (["computed"] * 2 if foreign else ["loading", "computed", "loaded", "computed"])


@pytest.mark.parametrize("foreign", [False, True])
def test_whose_kernels_are_compiled_apart_from_its_time(
    foreign: bool, loads: Any, small: Any, monkeypatch: Any
) -> None:
    """Not foreign code's, which may hang where it is first played."""
    run = small(norm_bounds=[]).plan.runs[0]
    vars(run)["foreign"] = foreign
    log, seen = loads
    monkeypatch.setattr(work, "one_compiler", lambda key: contextlib.nullcontext())
    monkeypatch.setattr(work, "play", lambda *_, **__: seen.append("played"))
    for _ in range(2):
        work._load_kernels(run, run.build_environment(), log)
    assert seen == (["played"] if foreign else ["loading", "played", "loaded"])


def test_questions_are_answered_refused_or_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: Any) -> None:
        raise UsageError("not so")

    def breaks(_: Any) -> None:
        raise ValueError("no")

    def interrupts(_: Any) -> None:
        raise KeyboardInterrupt

    known = {"doubles": lambda x: 2 * x, "refuses": refuses, "breaks": breaks, "interrupts": interrupts}
    monkeypatch.setattr(questions, "KNOWN", known)
    assert serving._answer((), "doubles", 4) == {"answer": 8}
    assert serving._answer((), "refuses", 4) == {"refused": "not so"}
    assert serving._answer((), "breaks", 4) == {"broken": "ValueError: no"}
    with pytest.raises(KeyboardInterrupt):
        serving._answer((), "interrupts", 4)


@pytest.mark.parametrize(
    ("platform", "parent", "asked", "code"),
    [("linux", 0, True, None), ("linux", -1, True, 1), ("darwin", -1, False, None)],
)
def test_a_worker_ends_with_its_parent(
    platform: str, parent: int, asked: bool, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[Any] = []
    monkeypatch.setattr(serving.ctypes, "CDLL", lambda name: SimpleNamespace(prctl=lambda *keys: called.append(keys)))
    monkeypatch.setattr(serving.sys, "platform", platform)
    if code is None:
        serving.end_with(os.getppid() + parent)
    else:
        with pytest.raises(Gone):
            serving.end_with(os.getppid() + parent)
    assert called == [(1, signal.SIGKILL)] * asked


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that has a worker meet these messages, then nothing, and returns what it told."""

    def serve(messages: list[Any], execute: Any) -> tuple[list[dict[str, Any]], Any]:
        out, handlers = io.BytesIO(), {}
        monkeypatch.setattr(serving, "end_with", lambda parent: None)
        monkeypatch.setattr(serving, "_pipes", lambda: (io.BytesIO(), out))
        monkeypatch.setattr(serving, "IDLE_SECONDS", 0.01)
        monkeypatch.setattr(serving, "execute", execute)
        monkeypatch.setattr(serving.signal, "signal", lambda which, handler: handlers.setdefault(which, handler))

        def start(target: Any, args: Any, daemon: bool) -> Any:
            return SimpleNamespace(start=lambda: [args[1].put(each) for each in messages])

        monkeypatch.setattr(serving, "threading", SimpleNamespace(Thread=start))
        with pytest.raises(Gone) as caught:
            serving.serve(1)
        assert caught.value.args == (0,)
        return words(out), handlers[signal.SIGINT]

    return serve


def test_a_worker_does_tasks_and_answers_until_nothing_comes(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "KNOWN", {"doubles": lambda x: 2 * x})
    done: list[Any] = []
    told, _ = served([("task", "a"), ("ask", ((), "doubles", 4)), ("task", "b")], lambda task, log: done.append(task))
    assert done == ["a", "b"]
    assert told == [{"done": True}, {"began": []}, {"answer": 8}, {"done": True}]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left"), [{"refused": [28, "No space left"]}]),
        (OSError(2, "No such file"), []),
        (UsageError("not so"), [{"refused": [0, "not so"]}]),
        (KeyboardInterrupt(), []),
    ],
)
def test_a_worker_without_room_says_so(error: BaseException, told: list[Any], served: Any) -> None:
    def fails(task: Any, log: Any) -> None:
        raise error

    assert served([("task", "a"), ("task", "b")], fails)[0] == told


def test_a_second_interrupt_changes_nothing(served: Any) -> None:
    _, interrupted = served([], None)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    interrupted()
    interrupted()


# ------------------------------------------------------------------------------------------------------------- its parent


class Process:
    def __init__(self, code: int | None = None, said: bytes = b"") -> None:
        self.code, self.stdout, self.stdin, self.killed = code, io.BytesIO(said), io.BytesIO(), 0

    def poll(self) -> int | None:
        return self.code

    def wait(self, seconds: float | None = None) -> None:
        if self.code is None:
            raise subprocess.TimeoutExpired("worker", seconds or 0.0)

    def kill(self) -> None:
        self.killed += 1


def worker(code: int | None = None, said: bytes = b"") -> Any:
    made = object.__new__(Worker)
    made.process, made.mail = Process(code, said), queue.SimpleQueue()  # type: ignore[assignment]
    return made


def heard(made: Any) -> list[Any]:
    made._listen()
    found = []
    while not made.mail.empty():
        whose, word = made.mail.get_nowait()
        assert whose is made
        found.append(word)
    return found


@pytest.mark.parametrize(
    ("said", "told", "killed"),
    [
        (b"", [None], 0),
        (message(b'{"a": 1}') + message(b'{"b": 2}'), [{"a": 1}, {"b": 2}, None], 0),
        (message(b'{"a": 1}') + b"\0" * 7, [{"a": 1}, None], 0),  # it ended half-way
        (b"what a plug-in prints", [None], 1),
        (message(b"[1]"), [None], 1),
        (message(b"not JSON"), [None], 1),
    ],
)
def test_a_workers_words_are_heard_and_stray_bytes_end_it(said: bytes, told: list[Any], killed: int) -> None:
    made = worker(said=said)
    assert heard(made) == told
    assert made.process.killed == killed


def test_a_message_says_its_length_first() -> None:
    made = worker()
    made.send("task", (1, 2))
    data = made.process.stdin.getvalue()
    assert struct.unpack("!Q", data[:8]) == (len(data) - 8,)
    assert pickle.loads(data[8:]) == ("task", (1, 2))
    made.rest(SimpleNamespace(runs=("a", "b"), id_of=str.upper))
    assert (made.left, made.running, made.late) == ({"A": "a", "B": "b"}, [], False)
    made.rest(None)
    assert (made.task, made.left) == (None, {})


def soon(call: Any) -> bool:
    """Return whether a call comes back."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(10.0)
    return not thread.is_alive()


def test_a_worker_that_does_not_read_holds_nobody_up() -> None:
    made, (read, write) = worker(), os.pipe()
    made.process.stdin = os.fdopen(write, "wb")
    task = bytes(10**6)  # more than a pipe takes
    assert soon(lambda: made.send("task", task))
    with os.fdopen(read, "rb") as reader:
        (size,) = struct.unpack("!Q", reader.read(8))
        assert pickle.loads(reader.read(size)) == ("task", task)
    made.end()
    assert made.process.stdin.closed


@pytest.mark.skipif(os.name != "posix", reason="there is no sh here")
def test_a_child_that_holds_a_workers_pipes_holds_nobody_up() -> None:
    made, code = worker(), "exec 3<&0; sleep 60 & printf x; exec sleep 60"
    made.process = subprocess.Popen(
        ["sh", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert made.process.stdout.read(1) == b"x"  # the child is there, and holds both
    listener = threading.Thread(target=made._listen, daemon=True)
    listener.start()
    made.send("task", bytes(10**6))
    try:
        assert soon(made.end)
        assert made.process.poll() == -signal.SIGKILL
        assert listener.is_alive()
    finally:
        os.killpg(made.process.pid, signal.SIGKILL)
    listener.join(10.0)
    made._writer.join(10.0)
    with contextlib.suppress(OSError):
        made.process.stdin.close()
    assert made.process.stdout.closed


def test_who_cannot_be_killed_is_left() -> None:
    made = worker()
    made.end()
    assert made.process.killed == 1


@pytest.mark.parametrize(
    ("code", "why"),
    [(None, "exit code None"), (0, "exit code 0"), (3, "exit code 3"), (-9, "SIGKILL"), (-250, "signal 250")],
)
def test_how_a_process_ended(code: int | None, why: str) -> None:
    assert worker(code).why() == why


class Waiting:
    def __init__(self, code: int | None = None) -> None:
        self.process, self.mail, self.ended, self.rests = Process(code), None, 0, 0

    def rest(self, task: Any) -> None:
        assert task is None
        self.rests += 1

    def end(self) -> None:
        self.ended += 1


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    monkeypatch.setattr(processes, "_waiting", found)
    monkeypatch.setattr(processes, "Worker", lambda mail: ("new", mail))
    return found


def test_who_waits_is_engaged_before_somebody_new(waiting: dict[Any, list[Any]]) -> None:
    key: Any = (True, "here")
    alive, dead = Waiting(), Waiting(code=0)
    waiting[key] = [alive, dead]
    mail: Any = object()
    assert processes.engaged(key, mail, fresh=True) == ("new", mail)
    assert processes.engaged(key, mail) is alive
    assert (alive.mail, alive.ended, dead.ended) == (mail, 0, 1)
    assert processes.engaged(key, mail) == processes.engaged((False, "here"), mail) == ("new", mail)


def test_who_is_dismissed_waits_and_those_of_other_circumstances_end(waiting: dict[Any, list[Any]]) -> None:
    mine, other, apart = Waiting(), Waiting(), Waiting()
    waiting[True, "before"] = [other]
    waiting[False, "before"] = [apart]
    here: Any = (True, "here")
    processes.dismissed(here, mine)  # type: ignore[arg-type]
    second = Waiting()
    processes.dismissed(here, second)  # type: ignore[arg-type]
    assert waiting == {(False, "before"): [apart], here: [mine, second]}
    assert (mine.rests, mine.ended, other.ended, apart.ended) == (1, 0, 1, 0)
    processes._end_all(-1)
    assert mine.ended == apart.ended == 0
    processes._end_all(os.getpid())
    assert (mine.ended, second.ended, apart.ended) == (1, 1, 1)


class Asked:
    """A worker that answers a question with these words."""

    def __init__(self, said: list[Any], code: int | None = None) -> None:
        self.said, self.process, self.ended = said, Process(code), 0

    def send(self, name: str, argument: Any) -> None:
        assert name == "ask"
        for word in self.said:
            self.mail.put((self, word))  # type: ignore[attr-defined]

    def why(self) -> str:
        return "exit code 3"

    def end(self) -> None:
        self.ended += 1


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that asks a worker with these words; a look at the clock takes ten seconds."""

    def ask(said: list[Any], code: int | None = None, seconds: float = 7.0) -> tuple[Any, Asked, list[float]]:
        hand, now, dismissed = Asked(said, code), [0.0], []  # type: ignore[var-annotated]

        def engaged(key: Any, mail: Any) -> Asked:
            assert key[0] is True
            hand.mail = mail  # type: ignore[attr-defined]
            return hand

        def monotonic() -> float:
            now[0] += 10.0
            return now[0]

        monkeypatch.setattr(processes, "engaged", engaged)
        monkeypatch.setattr(processes, "dismissed", lambda key, worker: dismissed.append(worker))
        monkeypatch.setattr(processes, "TICK", 0.001)
        monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=monotonic))
        try:
            answer = processes.ask("q", 1, seconds)
        except (LostError, UsageError) as error:
            answer = error
        assert (hand in dismissed) != bool(hand.ended)
        return answer, hand, now

    return ask


def test_an_answer_is_waited_for(asked: Any) -> None:
    answer, hand, _ = asked([{"began": []}, {"answer": 8}])
    assert (answer, hand.fresh) == (8, False)  # a lab's code was run in it: no run is alone there
    answer, hand, _ = asked([{"refused": "not so"}])
    assert (type(answer), str(answer), hand.ended) == (UsageError, "not so", 0)
    answer, hand, _ = asked([{"broken": "ValueError: no"}])
    assert (type(answer), str(answer), hand.ended) == (LostError, "ValueError: no", 0)
    answer, hand, _ = asked([None])
    assert (type(answer), str(answer), hand.ended) == (LostError, "its process ended (exit code 3)", 1)
    answer, hand, now = asked([], code=3)
    assert (str(answer), hand.ended, now) == ("its process ended (exit code 3)", 1, [20.0])


def test_a_worker_has_two_minutes_to_begin_and_then_what_is_asked_for(asked: Any) -> None:
    answer, hand, now = asked([])
    assert (str(answer), hand.ended) == ("no answer within 7 s", 1)
    assert now == [140.0]  # it was asked at 10, and had until 130
    answer, _, now = asked([{"began": []}])
    assert (str(answer), now) == ("no answer within 7 s", [30.0])  # it began at 20, and had until 27
    answer, _, now = asked([{"began": []}], seconds=35.0)
    assert (str(answer), now) == ("no answer within 35 s", [60.0])


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


@pytest.mark.parametrize(
    ("settings", "seconds", "named"),
    [
        ({}, 0.125, [1, 2, 2, 1]),
        ({}, 0.1, [1, 2, 2, 1]),
        ({}, 0.08, [1, 3, 2]),
        ({}, 0.2, [1] * 6),
        ({}, 0.0, [1, 5]),
        *(({name: value}, 0.01, [1] * 6) for name, value in (("careful", True), ("foreign", True), ("limit", 9.0))),
    ],
)
def test_short_runs_are_named_at_once(
    settings: Any, seconds: float, named: list[int], small: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]

    def plays(run: Any, *_: Any) -> dict[str, Any]:
        now[0] += seconds
        return {"run_id": [run.run_id]}

    monkeypatch.setattr(work, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(work, "_rows_of_one", plays)
    runs, told = tuple(small(norm_bounds=[]).plan.runs), list[list[str]]()
    store, log = Store(tmp_path), work.Log()
    monkeypatch.setattr(store, "write_runs", lambda runs: None)
    monkeypatch.setattr(log, "began", told.append)
    work._play_all(work._Shelf(store, log), work.Task(str(tmp_path), (), runs, **settings))
    assert [len(each) for each in told] == named
    assert [id_ for each in told for id_ in each] == [run.run_id for run in runs]


def test_a_full_disk_is_no_runs_fault(small: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What says that a run failed is short, and may still fit where its rows do not."""
    write = files._write_bytes

    def full(file: Any, *given: Any) -> None:
        if file.suffix == ".parquet":
            raise OSError(28, "No space left on device")
        write(file, *given)

    monkeypatch.setattr(files, "_write_bytes", full)
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
