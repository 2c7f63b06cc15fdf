"""Folders of compiled kernels: those long unused go, whoever else is at it, and nobody's import fails by it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from banditlab.numerics import cache_folders
from banditlab.numerics.cache_folders import IDLE, NEWEST, clear, folder_for

HOUR = 3600.0


def make(root: Path, name: str, hours_ago: float, *, marked: bool = True) -> Path:
    """Make a folder with a kernel in it that a process began to use so many hours ago."""
    folder = root / name
    (folder / "agents_1").mkdir(parents=True)
    (folder / "agents_1" / "act.nbe").write_bytes(b"code")
    if marked:
        (folder / ".used").touch()
    when = time.time() - HOUR * hours_ago
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (when, when))
    return folder


def names(root: Path) -> set[str]:
    return {entry.name for entry in root.iterdir()}


def test_a_new_state_clears_what_is_long_unused_but_for_the_newest(tmp_path: Path) -> None:
    for i in range(3 * NEWEST):
        make(tmp_path, f"old{i:02}", 10 + i, marked=i % 2 == 0)
    make(tmp_path, "recent", IDLE / HOUR - 0.1)
    assert folder_for(tmp_path, "now") == tmp_path / "now"
    assert names(tmp_path) == {"now", "recent"} | {f"old{i:02}" for i in range(NEWEST - 2)}
    assert (tmp_path / "old00" / "agents_1" / "act.nbe").read_bytes() == b"code"


def test_many_states_of_the_last_hours_all_stay(tmp_path: Path) -> None:
    for i in range(2 * NEWEST):
        make(tmp_path, f"state{i}", 1)
    folder_for(tmp_path, "now")
    assert len(names(tmp_path)) == 2 * NEWEST + 1


def test_the_mark_is_for_its_user_only(tmp_path: Path) -> None:
    assert (folder_for(tmp_path, "now") / ".used").stat().st_mode & 0o777 == 0o600


def test_use_counts_not_age(tmp_path: Path) -> None:
    """A folder made long ago and used now is marked, and stays where younger ones go; nothing is cleared on the way."""
    for i in range(2 * NEWEST):
        make(tmp_path, f"state{i:02}", 10 + i)
    folder_for(tmp_path, f"state{2 * NEWEST - 1:02}")
    assert len(names(tmp_path)) == 2 * NEWEST
    clear(tmp_path)
    assert names(tmp_path) == {f"state{i:02}" for i in [*range(NEWEST - 1), 2 * NEWEST - 1]}


def test_what_a_stopped_process_left_goes_and_files_and_links_stay(tmp_path: Path) -> None:
    make(tmp_path, ".leaving-1234", 0)
    (tmp_path / "file").touch()
    elsewhere = make(tmp_path.parent / "elsewhere", "data", 1000)
    (tmp_path / "link").symlink_to(elsewhere)
    for i in range(NEWEST):
        make(tmp_path, f"state{i}", 1)
    clear(tmp_path)
    assert names(tmp_path) == {"file", "link"} | {f"state{i}" for i in range(NEWEST)}
    assert (elsewhere / "agents_1" / "act.nbe").exists()


def test_processes_that_clear_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    workers, start = 8, Barrier(8)
    for i in range(100):
        make(tmp_path, f"old{i:03}", 10 + i)

    def begin(worker: int) -> Path:
        start.wait()
        return folder_for(tmp_path, f"now{worker}")

    with ThreadPoolExecutor(workers) as pool:
        folders = list(pool.map(begin, range(workers)))
    assert all(folder.is_dir() for folder in folders)
    assert {name for name in names(tmp_path) if name.startswith("now")} == {f"now{i}" for i in range(workers)}
    assert len(names(tmp_path)) == NEWEST


def test_a_folder_that_cannot_be_removed_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(NEWEST + 2):
        make(tmp_path, f"old{i:02}", 10 + i)

    def refused(self: Path, target: Path) -> Path:
        raise PermissionError(13, "a file in it is open")

    monkeypatch.setattr(Path, "rename", refused)
    clear(tmp_path)
    assert len(names(tmp_path)) == NEWEST + 2


def test_a_folder_that_goes_meanwhile_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(NEWEST + 2):
        make(tmp_path, f"old{i:02}", 10 + i, marked=False)
    last_use = cache_folders._last_use

    def vanishing(folder: Path) -> float:
        if folder.name == "old00":
            shutil.rmtree(folder)
        return last_use(folder)

    monkeypatch.setattr(cache_folders, "_last_use", vanishing)
    clear(tmp_path)
    assert names(tmp_path) == {f"old{i:02}" for i in range(1, NEWEST)}


def test_a_home_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert folder_for(tmp_path / "file" / "numba", "now") == tmp_path / "file" / "numba" / "now"


@pytest.mark.slow
def test_the_first_import_of_a_new_state_clears_old_ones_and_later_ones_mark_theirs(tmp_path: Path) -> None:
    root = tmp_path / "banditlab" / "numba"
    for i in range(NEWEST + 5):
        make(root, f"old{i:02}", 10 + i)
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", "import banditlab.kernels"], env=env, check=True)
    [now] = names(root) - {f"old{i:02}" for i in range(NEWEST - 1)}
    os.utime(root / now / ".used", (0, 0))
    subprocess.run([sys.executable, "-c", "import banditlab.kernels"], env=env, check=True)
    assert time.time() - (root / now / ".used").stat().st_mtime < HOUR
