"""A lab that was found, not named, is loaded only where nobody but the user and root can have written its code."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from banditlab.cli.main import main
from banditlab.errors import UsageError
from banditlab.numerics import private_folders
from banditlab.registry import Registry, lab_around, refuse_exposed, registry

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no owners and modes")
NOBODY = 65534
EVIL = "open({sprung!r}, 'w').close()\n"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Return a lab whose one agent leaves a file called `sprung` beside the lab when it is loaded."""
    lab = tmp_path / "lab"
    for name in ("agents", "envs", "runs"):
        (lab / name).mkdir(parents=True)
    (lab / "lab.toml").touch()
    (lab / "agents" / "mine.py").write_text(EVIL.format(sprung=str(tmp_path / "sprung")))
    return lab


def given_away(path: Path) -> None:
    """Give a file or folder to another user, which only root can; a test of it is skipped for others."""
    if os.geteuid() != 0:
        pytest.skip("only root can make files of another user")
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def all_of_it(lab: Path) -> None:
    for path in (lab, *lab.rglob("*")):
        given_away(path)


def mark_is_a_link_to_roots_file(lab: Path) -> None:
    all_of_it(lab)
    (lab / "lab.toml").unlink()
    (lab / "lab.toml").symlink_to("/etc/hostname")
    given_away(lab / "lab.toml")
    lab.chmod(0o777)


def mark_is_a_dangling_link(lab: Path) -> None:
    (lab / "lab.toml").unlink()
    (lab / "lab.toml").symlink_to(lab / "nowhere")


def mark_is_a_pipe(lab: Path) -> None:
    (lab / "lab.toml").unlink()
    os.mkfifo(lab / "lab.toml")


def mark_is_roots_file_by_a_second_name(lab: Path) -> None:
    all_of_it(lab)
    (lab / "lab.toml").unlink()
    (lab.parent / "of-root").touch()
    os.link(lab.parent / "of-root", lab / "lab.toml")


def agents_is_open_to_all(lab: Path) -> None:
    (lab / "agents").chmod(0o777)


def envs_is_open_to_all(lab: Path) -> None:
    (lab / "envs").chmod(0o777)


def file_is_open_to_all(lab: Path) -> None:
    (lab / "agents" / "mine.py").chmod(0o666)


def file_is_anothers(lab: Path) -> None:
    given_away(lab / "agents" / "mine.py")


def file_is_a_link_to_anothers(lab: Path) -> None:
    (lab / "agents" / "mine.py").rename(lab.parent / "theirs.py")
    given_away(lab.parent / "theirs.py")
    (lab / "agents" / "mine.py").symlink_to(lab.parent / "theirs.py")


def agents_is_a_link_to_anothers(lab: Path) -> None:
    (lab / "agents").rename(lab.parent / "theirs")
    given_away(lab.parent / "theirs")
    (lab / "agents").symlink_to(lab.parent / "theirs")


def folder_is_open_to_all(lab: Path) -> None:
    lab.chmod(0o777)


def folder_above_is_open_to_all(lab: Path) -> None:
    """Others may then rename the lab and put another folder in its place."""
    lab.parent.chmod(0o777)


def file_is_a_link_that_hops_over_anothers_folder(lab: Path) -> None:
    """Who owns the hop may have it lead to another file."""
    (lab / "agents" / "mine.py").rename(lab.parent / "safe.py")
    (lab.parent / "theirs").mkdir()
    (lab.parent / "theirs" / "hop").symlink_to(lab.parent / "safe.py")
    given_away(lab.parent / "theirs")
    (lab / "agents" / "mine.py").symlink_to(lab.parent / "theirs" / "hop")


def file_leads_nowhere_yet(lab: Path) -> None:
    (lab / "agents" / "later.py").symlink_to("/tmp/no-such-file.py")


def file_deep_below_is_anothers(lab: Path) -> None:
    """Numba's files in `__pycache__` are code, too."""
    (lab / "envs" / "__pycache__").mkdir()
    (lab / "envs" / "__pycache__" / "kernel.nbi").touch()
    given_away(lab / "envs" / "__pycache__" / "kernel.nbi")


def file_is_a_pipe(lab: Path) -> None:
    os.mkfifo(lab / "agents" / "pipe.py")


def file_has_an_access_control_list(lab: Path) -> None:
    """It lets user 65534 write, which the mode shows as the group's bits."""
    entries = [
        (0x01, 6, 0xFFFFFFFF),
        (0x02, 6, NOBODY),
        (0x04, 4, 0xFFFFFFFF),
        (0x10, 6, 0xFFFFFFFF),
        (0x20, 4, 0xFFFFFFFF),
    ]
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(lab / "agents" / "mine.py", "system.posix_acl_access", value)
    except (OSError, AttributeError):
        pytest.skip("this file system keeps no access control lists")


def agents_is_open_to_another_group(lab: Path) -> None:
    given_away(lab / "agents")
    os.chown(lab / "agents", os.geteuid(), NOBODY)
    (lab / "agents").chmod(0o775)


ATTACKS = [
    mark_is_a_link_to_roots_file,
    mark_is_a_dangling_link,
    mark_is_a_pipe,
    mark_is_roots_file_by_a_second_name,
    agents_is_open_to_all,
    envs_is_open_to_all,
    file_is_open_to_all,
    file_is_anothers,
    file_is_a_link_to_anothers,
    agents_is_a_link_to_anothers,
    folder_is_open_to_all,
    folder_above_is_open_to_all,
    agents_is_open_to_another_group,
    file_is_a_link_that_hops_over_anothers_folder,
    file_leads_nowhere_yet,
    file_deep_below_is_anothers,
    file_is_a_pipe,
    file_has_an_access_control_list,
    all_of_it,
]


def listed(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> int:
    """Run `banditlab list agents` in a folder; return its exit code."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["banditlab", "list", "agents", *words])
    registry.cache_clear()
    try:
        main()
    except SystemExit as done:
        return int(str(done.code or 0))
    finally:
        registry.cache_clear()
    return 0


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_it_is_run(
    attack: Callable[[Path], None], lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    below = lab / "runs" / "below"
    below.mkdir()
    attack(lab)
    assert lab_around(below) == lab
    assert listed(monkeypatch, below) == 2
    assert not (lab.parent / "sprung").exists()
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("banditlab: ")
    assert line.endswith(f": the lab {lab} is not loaded automatically; if you trust it, use --lab {lab}")


@pytest.mark.parametrize("attack", [all_of_it, agents_is_open_to_all, file_is_anothers])
def test_a_folder_without_the_file_is_looked_at_in_the_same_way(
    attack: Callable[[Path], None], lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`list` takes the folder one stands in for a lab, too, if it has runs/ and agents/."""
    (lab / "lab.toml").unlink()
    attack(lab)
    assert listed(monkeypatch, lab) == 2
    assert not (lab.parent / "sprung").exists()


@pytest.mark.parametrize("attack", [agents_is_open_to_all, mark_is_a_dangling_link, all_of_it])
def test_a_lab_that_is_named_is_trusted(attack: Callable[[Path], None], lab: Path) -> None:
    attack(lab)
    with pytest.raises(UsageError, match=r"if you trust it, use --lab "):
        refuse_exposed(lab)
    Registry().open_lab(lab)
    assert (lab.parent / "sprung").exists()


def test_the_users_own_lab_is_loaded_and_named(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed(monkeypatch, lab / "runs") == 0
    assert (lab.parent / "sprung").exists()
    assert capsys.readouterr().err == f"loading the lab {lab}, which contains the working folder\n"
    assert listed(monkeypatch, lab / "runs", "--lab", str(lab)) == 0
    assert capsys.readouterr().err == ""


def test_the_users_own_group_may_write_it(lab: Path) -> None:
    import grp
    import pwd

    user = pwd.getpwuid(os.geteuid())
    if grp.getgrgid(user.pw_gid).gr_name != user.pw_name or set(grp.getgrgid(user.pw_gid).gr_mem) - {user.pw_name}:
        pytest.skip("this user has no group of their own")
    for path in (lab, *lab.rglob("*")):
        os.chown(path, -1, user.pw_gid)
        path.chmod(path.stat().st_mode | 0o020)
    refuse_exposed(lab)
    Registry().open_lab(lab)
    assert (lab.parent / "sprung").exists()


def test_a_group_of_several_users_is_nobodys_own(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    user = pwd.getpwuid(os.geteuid())
    other = pwd.struct_passwd(("somebody", "x", 12345, user.pw_gid, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [user, other])
    private_folders._own_group.cache_clear()
    os.chown(lab / "agents", -1, user.pw_gid)
    (lab / "agents").chmod(0o775)
    with pytest.raises(UsageError, match="agents may be written by others"):
        refuse_exposed(lab)
    private_folders._own_group.cache_clear()


def test_a_lab_is_named_before_its_code_runs(lab: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    (lab / "agents" / "mine.py").write_text("import os\nprint('run', flush=True)\nraise SystemExit\n")
    assert listed(monkeypatch, lab) == 0
    assert capfd.readouterr().err.startswith("loading the lab ")


def test_a_name_that_would_break_the_line_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = tmp_path / "two\nlines\x1b[31m"
    (lab / "agents").mkdir(parents=True)
    (lab / "lab.toml").touch()
    assert listed(monkeypatch, lab) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"loading the lab {tmp_path}/two\\nlines\\x1b[31m, which contains the working folder"
    ]
    lab.chmod(0o777)
    assert listed(monkeypatch, lab) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "\x1b" not in line
