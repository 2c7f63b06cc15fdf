"""`banditlab list` finds the lab one stands in, and takes no other folder for one."""

from __future__ import annotations

import sys

from banditlab.cli.main import _lab_here, main
from banditlab.cli.scaffold import new_lab
from banditlab.registry import registry


def test_the_lab_one_stands_in_is_listed(tmp_path, monkeypatch, capsys):
    lab = tmp_path / "mine"
    new_lab(lab)
    monkeypatch.chdir(lab)
    own = next((lab / "envs").glob("*.py"))
    registry.cache_clear()
    monkeypatch.setattr(sys, "argv", ["banditlab", "list", "envs"])
    main()
    registry.cache_clear()
    assert own.name in capsys.readouterr().out


def test_another_folder_is_no_lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert _lab_here() is None
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "a.py").write_text("raise SystemExit\n")
    assert _lab_here() is None
    (tmp_path / "runs").mkdir()
    assert _lab_here() == tmp_path
