"""`banditlab notebook`: what it refuses, and that a cell that fails leaves no file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from banditlab.cli import notebooks
from banditlab.cli.notebooks import make_notebook
from banditlab.errors import UsageError


def test_an_unknown_notebook_gets_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^there is no notebook 'quickstrat'; did you mean 'quickstart'\?"):
        make_notebook("quickstrat", tmp_path)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "quickstart.ipynb").write_text("mine")
    with pytest.raises(UsageError, match=r"quickstart\.ipynb: the file exists; nothing was written$"):
        make_notebook("quickstart", tmp_path)
    assert (tmp_path / "quickstart.ipynb").read_text() == "mine"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone: the folder does not exist$"):
        make_notebook("quickstart", tmp_path / "gone")


@pytest.mark.slow
def test_a_cell_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nbclient", reason='the extra is missing: pip install -e ".[notebooks]"')

    class Broken:
        def joinpath(self, *parts: str) -> Broken:
            return self

        def read_text(self, encoding: str) -> str:
            return "# %%\n1 / 0\n"

    monkeypatch.setattr(notebooks, "files", lambda package: Broken())
    with pytest.raises(UsageError, match=r"^quickstart: a cell failed: ZeroDivisionError: division by zero$"):
        make_notebook("quickstart", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("programs", "display", "called"),
    [
        ({"jupyter-lab", "jupyter-notebook", "xdg-open"}, "", ["jupyter-lab"]),
        ({"jupyter-notebook"}, "", ["jupyter-notebook"]),
        ({"xdg-open"}, ":0", ["xdg-open"]),
        ({"xdg-open"}, "", []),
        (set(), ":0", []),
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_a_notebook_is_opened_by_what_is_there(
    programs: set[str], display: str, called: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def ran(words: list[str], check: bool) -> Any:
        assert not check
        seen.append(words[0])
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(notebooks.sys, "platform", "linux")
    monkeypatch.setattr(notebooks.shutil, "which", lambda name: name if name in programs else None)
    monkeypatch.setattr(notebooks.subprocess, "run", ran)
    monkeypatch.setenv("DISPLAY", display)
    assert notebooks.open_file(Path("a.ipynb")) == (bool(called) and code == 0)
    assert seen == called
