"""Kept kernels are code: folders and files that others may write are not used, and none is made so, whatever the umask."""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from banditlab.numerics import private_folders
from banditlab.numerics.cache_folders import folder_for
from banditlab.numerics.jit_cache import EntryFiles
from banditlab.numerics.private_folders import exposed, make_private

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no owners and modes")


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("no_umask")
def test_nothing_is_made_that_others_may_write(tmp_path: Path) -> None:
    folder = folder_for(tmp_path / "home" / "cache", "now")
    entries = EntryFiles(str(folder / "agents_1"), "act", "stamp")
    entries.save("int64", "code")
    assert entries.load("int64") == "code"
    made = list((tmp_path / "home").rglob("*"))
    assert len(made) == 5  # two folders, a mark, the function's folder, its file
    assert [path for path in made if mode(path) != (0o700 if path.is_dir() else 0o600)] == []


@pytest.mark.parametrize("bits", [0o020, 0o002, 0o022, 0o1002])
def test_a_file_that_others_may_write_is_not_read(tmp_path: Path, bits: int) -> None:
    entries = EntryFiles(str(tmp_path), "f", "stamp")
    entries.save("int64", "code")
    [file] = tmp_path.glob("*.nbe")
    file.chmod(0o600 | bits)
    entries_read = entries.load("int64")
    assert entries_read is None or (
        bits == 0o020 and _own_group(file)
    )  # of a group that is nobody else's, it may be read


def _own_group(file: Path) -> bool:
    import grp
    import pwd

    name = pwd.getpwuid(os.geteuid()).pw_name
    return grp.getgrgid(file.stat().st_gid).gr_name == name


def test_a_file_that_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    entries = EntryFiles(str(tmp_path), "f", "stamp")
    entries.save("int64", "code")
    [file] = tmp_path.glob("*.nbe")
    file.unlink()
    file.mkdir()
    assert entries.load("int64") is None


def test_who_may_write_a_folder_or_one_above_it_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_private(folder)
    assert exposed(folder) == ""
    folder.parent.chmod(0o777)
    assert exposed(folder) == f"{folder.parent} may be written by others (mode 777)"
    folder.parent.chmod(0o1777)  # as /tmp: nobody may rename what is not theirs
    assert exposed(folder) == ""
    folder.chmod(0o1777)  # but files may be put there
    assert exposed(folder) == f"{folder} may be written by others (mode 1777)"
    assert exposed(tmp_path / "none") == ""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    make_private(folder)
    os.chown(folder, 12345, 12345)
    assert exposed(folder) == f"{folder} belongs to another user (12345)"


@pytest.mark.slow
def test_a_process_says_once_that_kernels_are_not_kept_there_and_reads_nothing(tmp_path: Path) -> None:
    """Both of two functions compile, one line is said, and what was planted for them is never unpickled."""
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    code = (
        "from banditlab.numerics.argmax import argmax\nfrom banditlab.numerics.draws import draw\nimport numpy as np\n"
        "print(argmax._cache.cache_path, argmax(np.array([1.0, 2.0]), 2))"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    env.pop("BANDITLAB_CACHE_REFUSED", None)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert str(folder) not in done.stdout
    assert done.stdout.split()[-1] == "1"
    [line] = done.stderr.splitlines()
    assert line.startswith(f"banditlab: kernels are not saved in NUMBA_CACHE_DIR: {folder} may be written by others")
    assert list(folder.iterdir()) == []


def test_entries_of_this_numba_are_what_is_read(tmp_path: Path) -> None:
    """The control of the test above: the same pickle in a private file would have been run."""
    entries = EntryFiles(str(tmp_path), "f", "stamp")
    entries.save("int64", "code")
    [file] = tmp_path.glob("*.nbe")
    file.write_bytes(pickle.dumps(numba.__version__) + pickle.dumps(("stamp", "int64", "planted")))
    assert entries.load("int64") == "planted"


def test_a_folder_that_another_process_makes_meanwhile_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def too_late(path: Path, mode: int) -> None:
        mkdir(path, mode)
        raise FileExistsError(17, "File exists", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", too_late)
        make_private(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private(tmp_path / "file")


@pytest.mark.parametrize("own", [True, False])
def test_a_folder_that_the_group_may_write_is_private_where_the_group_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    monkeypatch.setattr(private_folders, "_own_group", lambda group: own)
    folder = tmp_path / "folder"
    folder.mkdir()
    for bits, private in ((0o700, True), (0o755, True), (0o770, own), (0o702, False)):
        folder.chmod(bits)
        assert exposed(folder) == ("" if private else f"{folder} may be written by others (mode {bits:o})")


@pytest.mark.parametrize(
    ("first", "group", "members", "own"),
    [
        (77, "ann", [], True),
        (77, "ann", ["ann"], True),
        (77, "ann", ["ann", "bob"], False),
        (77, "ann", ["bob"], False),
        (77, "staff", [], False),
        (78, "ann", [], False),
    ],
)
def test_a_private_group_has_the_users_name_and_no_other_member(
    monkeypatch: pytest.MonkeyPatch, first: int, group: str, members: list[str], own: bool
) -> None:
    """`first` is the group that the user's files are given."""
    monkeypatch.setattr("pwd.getpwuid", lambda user: SimpleNamespace(pw_name="ann", pw_gid=first))
    monkeypatch.setattr("grp.getgrgid", lambda number: SimpleNamespace(gr_name=group, gr_mem=members))
    assert private_folders._own_group.__wrapped__(77) == own


def test_a_group_that_nobody_knows_is_not_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr("grp.getgrgid", unknown)
    assert not private_folders._own_group.__wrapped__(77)
