"""Compiled kernels on disk: processes that save at once lose nothing, and nothing stale or foreign is ever loaded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numba
import pytest
from numba.core.caching import _CacheLocator

from banditlab.numerics import draws, jit, jit_cache
from banditlab.numerics.jit_cache import SLOTS, EntryFiles, SharedCache


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    entries = EntryFiles(str(tmp_path), "f-1.py311", "stamp")
    assert entries.load(("int64", "x86")) is None
    entries.save(("int64", "x86"), b"code")
    entries.save(("float64", "x86"), b"other code")
    entries.save(("int64", "x86"), b"code again")
    again = EntryFiles(str(tmp_path), "f-1.py311", "stamp")
    assert (again.load(("int64", "x86")), again.load(("float64", "x86"))) == (b"code again", b"other code")
    assert again.load(("int64", "arm")) is None
    assert len(files(tmp_path)) == 2
    assert all(re.fullmatch(r"f-1\.py311\.[0-9a-f]{16}\.0\.nbe", name) for name in files(tmp_path))


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    """numba's own files, put to this test, lost 135 of the 200 entries and gave another's for 29."""
    writers, keys = 8, 25
    start = Barrier(writers)

    def write(writer: int) -> None:
        start.wait()
        for key in range(keys):
            EntryFiles(str(tmp_path), "f", "stamp").save((writer, key), f"code of {writer}, {key}")

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    found = EntryFiles(str(tmp_path), "f", "stamp")
    for writer in range(writers):
        for key in range(keys):
            assert found.load((writer, key)) == f"code of {writer}, {key}"
    assert len(files(tmp_path)) == writers * keys  # and no temporary file is left


class Named:
    """A type known by its name in text and by its module in comparisons, as numba's named tuples are."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __repr__(self) -> str:
        return "State(float64)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.module == other.module

    def __hash__(self) -> int:
        return hash(self.module)


def test_types_of_one_name_keep_apart(tmp_path: Path) -> None:
    entries = EntryFiles(str(tmp_path), "f", "stamp")
    for code, module in ((1, "a"), (2, "b"), (3, "c"), (4, "b")):
        entries.save((Named(module),), code)
    assert [entries.load((Named(module),)) for module in "abcd"] == [1, 4, 3, None]
    assert len(files(tmp_path)) == 3


def test_entries_of_edited_sources_are_not_loaded_and_give_way(tmp_path: Path) -> None:
    EntryFiles(str(tmp_path), "f", "before").save("int64", 1)
    now = EntryFiles(str(tmp_path), "f", "now")
    assert now.load("int64") is None
    now.save("int64", 2)
    assert now.load("int64") == 2
    assert len(files(tmp_path)) == 1


def test_entries_of_another_numba_are_not_read_and_give_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = EntryFiles(str(tmp_path), "f", "stamp")
    with monkeypatch.context() as patch:
        patch.setattr(numba, "__version__", "0.1")
        entries.save("int64", 1)
        [file] = tmp_path.iterdir()
        file.write_bytes(file.read_bytes()[:-5])  # cut short: reading on would fail
    assert entries.load("int64") is None
    entries.save("int64", 2)
    assert entries.load("int64") == 2
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("length", [0, 3, -5])
def test_entries_cut_short_are_compiled_again(tmp_path: Path, length: int) -> None:
    entries = EntryFiles(str(tmp_path), "f", "stamp")
    entries.save("int64", list(range(100)))
    [file] = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:length])
    assert entries.load("int64") is None
    entries.save("int64", 2)
    assert entries.load("int64") == 2
    assert len(files(tmp_path)) == 1


def test_keys_that_never_come_back_do_not_pile_up(tmp_path: Path) -> None:
    entries = EntryFiles(str(tmp_path), "f", "stamp")
    for module in range(3 * SLOTS):
        entries.save((Named(str(module)),), module)
        assert entries.load((Named(str(module)),)) == module
    assert len(files(tmp_path)) == SLOTS


def test_a_full_disk_costs_the_entry_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = EntryFiles(str(tmp_path), "f", "stamp")
    entries.save("int64", 1)

    def full(*arguments: Any) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "replace", full)
    entries.save("int64", 2)
    assert entries.load("int64") == 1
    assert len(files(tmp_path)) == 1


def test_a_folder_cleared_away_comes_back_with_the_next_entry(tmp_path: Path) -> None:
    entries = EntryFiles(str(tmp_path / "state" / "module"), "f", "stamp")
    entries.flush()
    assert entries.load("int64") is None
    entries.save("int64", 1)
    assert entries.load("int64") == 1


def test_without_a_folder_kernels_are_compiled_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Any) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(_CacheLocator, "ensure_cache_path", refused)
    compiled = jit.njit(_plain)
    assert compiled(3) == 3
    assert compiled._cache.cache_path is None
    compiled.recompile()


def test_a_folder_that_is_refused_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANDITLAB_CACHE_REFUSED", "")  # put back afterwards, whatever is set meanwhile
    monkeypatch.delenv("BANDITLAB_CACHE_REFUSED")
    for _ in range(2):
        jit_cache._report_once("it is everybody's")
    assert capsys.readouterr().err == (
        "banditlab: kernels are not saved in NUMBA_CACHE_DIR: it is everybody's; make it private, or use another "
        "folder\n"
    )
    assert os.environ["BANDITLAB_CACHE_REFUSED"] == "1"  # for the processes this one starts


def test_an_edit_of_any_kernel_makes_entries_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the folder is the same: it may be the user's own, or a parent process's of before the edit."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    hits = []
    for digest in ("before", "before", "after"):
        monkeypatch.setattr(jit, "source_digest", lambda digest=digest: digest)
        compiled = jit.njit(_plain)
        compiled(3)
        hits.append(sum(compiled.stats.cache_hits.values()))
    assert hits == [0, 1, 0]


def test_a_failed_save_leaves_the_old_entry_and_no_litter(tmp_path: Path) -> None:
    entries = EntryFiles(str(tmp_path), "f", "stamp")
    entries.save("int64", 1)
    with pytest.raises(Exception, match="pickle"):
        entries.save("int64", (item for item in ()))
    assert entries.load("int64") == 1
    assert len(files(tmp_path)) == 1


def test_flush_forgets_this_function_only(tmp_path: Path) -> None:
    one, other = (EntryFiles(str(tmp_path), name, "stamp") for name in ("f", "f2"))
    for entries in (one, other):
        entries.save("int64", 1)
        entries.save("float64", 2)
    one.flush()
    assert [one.load("int64"), other.load("int64"), other.load("float64")] == [None, 1, 2]


def test_every_kernel_has_the_cache_and_none_asked_for_has_none() -> None:
    assert isinstance(draws.draw._cache, SharedCache)
    assert isinstance(draws.is_valid_decision._cache, SharedCache)
    assert isinstance(jit.bind(_plain, "test")._cache, SharedCache)
    assert not isinstance(jit.njit(_plain, cache=False)._cache, SharedCache)


def _plain(x):  # type: ignore[no-untyped-def]
    return x


def test_without_numbas_compiler_a_kernel_is_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert jit.njit(_plain) is _plain


MODULE = """
from banditlab.kernels import njit

@njit
def add(x, y):
    return x + y
"""

CALLS = """
import sys, time
from pathlib import Path
import numpy as np
from kernel_module import add
ready, order = Path(sys.argv[1]), int(sys.argv[2])
(ready / sys.argv[3]).touch()
deadline = time.monotonic() + 60
while len(list(ready.iterdir())) < 2 and time.monotonic() < deadline:  # both have imported before either compiles
    time.sleep(0.01)
kinds = [np.int8, np.int16, np.int32, np.int64, np.float32, np.float64]
answers = [float(add(a(3), b(4))) for a, b in list(zip(kinds, kinds[1:] + kinds[:1]))[::order]]
assert answers == [7.0] * 6, answers
print(sum(add.stats.cache_hits.values()), sum(add.stats.cache_misses.values()))
"""


@pytest.mark.slow
def test_two_processes_that_compile_at_once_leave_everything_for_the_third(tmp_path: Path) -> None:
    """They begin at opposite ends and meet; the third compiles nothing."""
    (tmp_path / "kernel_module.py").write_text(MODULE)
    (tmp_path / "ready").mkdir()
    env: dict[str, Any] = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }

    def start(order: int, name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", CALLS, str(tmp_path / "ready"), str(order), name]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)

    for process in [start(1, "one"), start(-1, "two")]:
        out, _ = process.communicate(timeout=120)
        assert sum(map(int, out.split())) == 6
    out, _ = start(1, "three").communicate(timeout=120)
    assert out.split() == ["6", "0"]
