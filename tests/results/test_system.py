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

AS_ON_WINDOWS = """
import os, platformdirs, subprocess, sys, types  # Python's own modules ask what there is too: before it is taken away
import fcntl as real

class Msvcrt(types.ModuleType):
    # as Python documents it: LK_NBLCK raises OSError where another has the byte at the file's position
    LK_NBLCK, LK_UNLCK, calls = 2, 0, []
    def locking(self, number, mode, n):
        assert os.lseek(number, 0, os.SEEK_CUR) == 0 and n == 1
        real.flock(number, real.LOCK_EX | real.LOCK_NB if mode == self.LK_NBLCK else real.LOCK_UN)
        self.calls.append(mode)

if "here" not in sys.argv:
    sys.modules["msvcrt"] = Msvcrt("msvcrt")
    for name in ("fcntl", "resource", "pwd", "grp"):
        sys.modules[name] = None  # importing it raises ImportError
    for name in ("fchmod", "fchown", "getuid", "geteuid"):
        delattr(os, name)
"""

COUNT = """
import time
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


@pytest.mark.parametrize("place", ["here", "as on windows"])
def test_processes_hold_a_lock_one_after_another(tmp_path: Path, place: str) -> None:
    (tmp_path / "count").write_text("0")
    command = [sys.executable, "-c", AS_ON_WINDOWS + COUNT, str(tmp_path)]
    both = [subprocess.Popen([*command, name, place], cwd=tmp_path) for name in ("ready1", "ready2")]
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
    done = subprocess.run(
        [sys.executable, "-c", AS_ON_WINDOWS + RUN], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 played now" in done.stdout
    fcntl, _, calls = done.stdout.splitlines()[-1].partition(" ")
    assert fcntl == "None"
    pairs = json.loads(calls)
    assert len(pairs) >= 4
    assert pairs == [2, 0] * (len(pairs) // 2)  # each lock is given back before the next
    assert (tmp_path / "results" / "tiny" / "results.parquet").exists()


def test_memory_is_the_machines_or_the_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = memory()
    assert found is None or 2**27 < found < 2**60
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**24}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
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
