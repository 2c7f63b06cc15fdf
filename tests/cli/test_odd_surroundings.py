"""Terminals, paths and folders that are not as they should be: one line each, no traceback."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from banditlab.cli.main import main

SPEC = """
name = "tiny"
rounds = 5
environment = [{ id = "banditlab/Logistic-v0", n_features = 2, n_classes = 2 }]
agent = [{ id = "uniform" }]
"""


@pytest.fixture
def told(tmp_path, monkeypatch, capfd):
    """Return a function that runs the command line in a folder with a spec and returns (exit code, lines on stderr)."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(SPEC)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["banditlab", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as done:
            code = int(done.code or 0)
        return code, capfd.readouterr().err.splitlines()

    return run


RAW = os.fsdecode(b"r\xe9sultats")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "x" * 5000], "File name too long"),
        (["run", "tiny.toml", "-o", "x" * 5000], "File name too long"),
        (["run", "tiny.toml", "--lab", "x" * 5000], "File name too long"),
        (["report", "x" * 5000], "File name too long"),
        (["status", "x" * 5000], "File name too long"),
        (["compare", "x" * 5000 + ".csv", "--label", "y"], "File name too long"),
        (["run", "tiny.toml", "-o", "tiny.toml"], "cannot be written"),
        (["report", RAW], "not a results folder"),
    ],
)
def test_a_path_that_cannot_be_is_one_line(told, arguments, said):
    code, lines = told(*arguments)
    assert (code, len(lines)) == (2, 1)
    assert lines[0].startswith("banditlab: ")
    assert said in lines[0]


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
def test_a_folder_whose_name_is_no_utf8_is_used(told, tmp_path):
    assert told("run", "tiny.toml", "-o", RAW, "-j", 1) == (0, [])
    assert (tmp_path / RAW / "report.html").exists()
    path = tmp_path / f"{RAW}.csv"
    path.write_text("a,kind\n1,x\n2,y\n")
    code, lines = told("compare", path, "--label", "kind", "-o", "out", "-j", 1)
    assert (code, len(lines)) == (2, 1)
    assert "not UTF-8" in lines[0]


def test_a_full_disk_is_one_line(told, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, lines = told("run", "tiny.toml", "-o", "out", "-j", 1)
    assert (code, lines) == (
        2,
        ["banditlab: No space left on device; finished runs are stored; the same command runs the rest"],
    )


def test_a_damaged_folder_is_said_by_every_command(told, tmp_path):
    assert told("run", "tiny.toml", "-o", "out", "-j", 1, "--no-report")[0] == 0
    for name in ("spec.toml", "runs.json"):
        file = tmp_path / "out" / name
        data = bytearray(file.read_bytes())
        data[10] ^= 1
        file.write_bytes(data)
        code, lines = told("report", "out")
        assert (code, len(lines)) == (2, 1)
        assert f"out/{name}: damaged" in lines[0]
        assert told("run", "tiny.toml", "-o", "out", "-j", 1, "--no-report") == (0, [])
        assert told("status", "out")[0] == 0
