"""The command line in this process, and terminals that write into memory."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rich.console

from banditlab.cli.main import main


@pytest.fixture
def banditlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Callable[..., tuple[Any, str]]:
    """Return a function that runs the command line in `tmp_path` and returns (exit code, what it printed)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> tuple[Any, str]:
        monkeypatch.setattr(sys, "argv", ["banditlab", *map(str, arguments)])
        code: Any = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        return code, "".join(capsys.readouterr())

    return call


def terminal(width: int = 80, **keys: Any) -> tuple[rich.console.Console, io.StringIO]:
    """Return a console of that width, and the file that holds what it prints."""
    file = io.StringIO()
    return rich.console.Console(file=file, width=width, highlight=False, color_system=None, **keys), file
