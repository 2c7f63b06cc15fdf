"""`banditlab notebook`: what it refuses, and that a cell that fails leaves no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from banditlab.cli import notebooks
from banditlab.cli.notebooks import make_notebook
from banditlab.errors import UsageError


def test_an_unknown_notebook_gets_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^no notebook is called 'quickstrat'; did you mean 'quickstart'\?"):
        make_notebook("quickstrat", tmp_path)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "quickstart.ipynb").write_text("mine")
    with pytest.raises(UsageError, match=r"quickstart\.ipynb: is there already; nothing was written$"):
        make_notebook("quickstart", tmp_path)
    assert (tmp_path / "quickstart.ipynb").read_text() == "mine"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone: no such folder$"):
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


def test_without_a_program_nothing_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebooks.shutil, "which", lambda name: None)
    assert not notebooks.open_file(tmp_path / "quickstart.ipynb")
