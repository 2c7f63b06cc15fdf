"""Locks and permission bits, on this system and as on one without `fcntl`, `os.fchmod` and their like."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from banditlab.engine.memory import memory
from banditlab.results import system
from banditlab.results.files import write_bytes

ROOT = Path(__file__).parents[2]
HIDDEN = ROOT / "tests" / "without_posix"
"""The folder whose sitecustomize.py hides what only POSIX systems have."""

COUNT = """
import sys, time
from pathlib import Path
from banditlab.results.system import locked
folder = Path(sys.argv[1])
(folder / sys.argv[2]).touch()
deadline = time.monotonic() + 60
while len(list(folder.glob("ready*"))) < 2 and time.monotonic() < deadline:
    time.sleep(0.01)
for _ in range(20):
    with locked(folder / "lock"):
        n = int((folder / "count").read_text())
        time.sleep(0.002)
        (folder / "count").write_text(str(n + 1))
"""

RUN = """
import os, sys
assert not hasattr(os, "fork")
sys.argv = ["banditlab", "run", "tiny.toml", "-j", "1", "--no-report"]
from banditlab.cli.main import main
try:
    main()
finally:
    from banditlab.results import system
    print(system.fcntl, system.msvcrt.calls)
"""

SPEC = """
name = "tiny"
rounds = 50
environment = [{ id = "banditlab/Logistic-v0" }]
agent = [{ id = "uniform" }]
"""


SERVED = """
import os, signal, subprocess, sys, time, urllib.request
from banditlab import Policy
from banditlab.cli.main import main

def banditlab(*words):
    sys.argv = ["banditlab", *words]
    try:
        main()
    except SystemExit as done:
        assert not done.code, words

rows = "".join(f"{i % 7},{i % 3},{'yes' if i % 3 else 'no'}\\n" for i in range(60))
open("t.csv", "w").write("a,b,kind\\n" + rows)
banditlab("new", "lab", "lab")
banditlab("check", "lab/agents/greedy-plain.py")
banditlab("compare", "t.csv", "--label", "kind", "--agents", "uniform,beta-ts", "--repetitions", "2", "-j", "2", "-o", "c")
banditlab("train", "t.csv", "--label", "kind", "--agent", "beta-ts", "-o", "my.policy")
with Policy.open("my.policy", log="events.db") as policy:
    policy.feedback(policy.decide({"a": 1, "b": 2}).id, True)
banditlab("status", "events.db")
command = [sys.executable, "-m", "banditlab", "serve", "my.policy", "--log", "events.db", "--port", "0"]
server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
address = server.stdout.readline().split()[-1]
assert urllib.request.urlopen(f"{address}/ready").status == 200
server.send_signal(signal.SIGTERM)
assert server.wait(60) == 0
"""


def hiding(hidden: bool = True) -> dict[str, str]:
    """Return the environment of a process, in which what only POSIX systems have is hidden, or is not."""
    folders = [str(HIDDEN)] * hidden + [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(folders)}


@pytest.mark.parametrize("place", ["here", "as on windows"])
def test_processes_hold_a_lock_one_after_another(tmp_path: Path, place: str) -> None:
    (tmp_path / "count").write_text("0")
    command, env = [sys.executable, "-c", COUNT, str(tmp_path)], hiding(place != "here")
    both = [subprocess.Popen([*command, name], cwd=tmp_path, env=env) for name in ("ready1", "ready2")]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert (tmp_path / "count").read_text() == "40"


def test_a_lock_is_free_after_an_error_and_after_a_death(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), system.locked(tmp_path / "lock"):
        raise ZeroDivisionError
    holder = (
        "import os, pathlib, banditlab.results.system as s; s.locked(pathlib.Path('lock')).__enter__(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", holder], cwd=tmp_path).returncode == 9
    begin = time.monotonic()
    with system.locked(tmp_path / "lock"):
        assert time.monotonic() - begin < 5


def test_a_lock_is_free_though_a_forked_child_has_its_file_open(tmp_path: Path) -> None:
    """A plug-in's child lives on: whoever waits for its parent's lock would wait as long as the child lives."""
    held = system.try_lock(tmp_path / "lock")
    assert held is not None
    child = os.dup(held.fileno())  # as a forked process has it
    assert system.try_lock(tmp_path / "lock") is None
    system.release(held)
    again = system.try_lock(tmp_path / "lock")
    assert again is not None
    system.release(again)
    os.close(child)
    opened: list[int] = []
    flock = system.fcntl.flock if system.fcntl else None
    try:
        if flock:
            system.fcntl.flock = lambda number, how: opened.append(os.dup(number)) or flock(number, how)
        with system.locked(tmp_path / "lock"):
            assert system.try_lock(tmp_path / "lock") is None
        again = system.try_lock(tmp_path / "lock")
        assert again is not None
    finally:
        if flock:
            system.fcntl.flock = flock
        for number in opened:
            os.close(number)
    system.release(again)


@pytest.mark.slow
def test_a_sweep_runs_without_what_only_unix_has(tmp_path: Path) -> None:
    """Simulated: this says that no such module or function is needed, not that all is well on Windows."""
    (tmp_path / "tiny.toml").write_text(SPEC)
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=hiding())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 executed now" in done.stdout
    fcntl, _, calls = done.stdout.splitlines()[-1].partition(" ")
    assert fcntl == "None"
    pairs = json.loads(calls)
    assert len(pairs) >= 4
    assert pairs == [2, 0] * (len(pairs) // 2)  # each lock is given back before the next
    assert (tmp_path / "results" / "tiny" / "results.parquet").exists()


@pytest.mark.slow
def test_tables_policies_and_the_server_need_nothing_that_only_unix_has(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="the extra serve")
    command = [sys.executable, "-c", SERVED]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=hiding())
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_is_the_machines_or_the_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = memory()
    assert found is None or 2**27 < found < 2**60
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**24}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__, raising=False)
    for text, expected in (("max\n", 2**36), (f"{2**33}\n", 2**33), (f"{2**40}\n", 2**36)):
        monkeypatch.setattr(Path, "read_text", lambda self, encoding, text=text: text)
        assert memory() == expected
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(Path, "read_text", lambda self, encoding: "max")
    assert memory() is None


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="there are no permission bits here")
def test_a_stored_file_is_as_readable_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "any").touch()
    write_bytes(tmp_path / "stored", b"")
    any_other, stored = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("any", "stored"))
    assert stored == any_other
    monkeypatch.delattr(os, "fchmod")
    write_bytes(tmp_path / "stored", b"there")
    assert (tmp_path / "stored").read_bytes() == b"there"
