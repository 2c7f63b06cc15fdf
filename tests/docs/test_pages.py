"""Every block of code on the site's pages is run, in the order in which they stand, and prints what the page shows."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from not_run import NOT_RUN, RUN_BY
from pages import ROOT, Block, agrees, all_pages, blocks, name_of

sys.path.pop(0)

SECONDS = 600
LEFT_OUT = {(entry.page, entry.begins) for entry in NOT_RUN}


def to_run(page: Path) -> list[Block]:
    """Return a page's blocks but for those that the list in `not_run.py` names."""
    left = [begins for name, begins in LEFT_OUT if name == name_of(page)]
    return [b for b in blocks(page) if not any(b.code.startswith(begins) for begins in left)]


PAGES = [page for page in all_pages() if name_of(page) not in RUN_BY and to_run(page)]
TABLE = "plan,age,target\n" + "".join(
    f"{plan},{20 + i % 37},{'yes' if (plan == 'pro') == (i % 37 > 9) else 'no'}\n"
    for i, plan in enumerate(["pro", "free", "free"] * 60)
)
GIVEN = {"README.md": {"my-table.csv": TABLE}}
"""Files that a page takes for the reader's own, by the page that speaks of them."""
SHELL = f'set -euo pipefail\nbanditlab() {{ "{sys.executable}" -m banditlab "$@"; }}\n'


def is_slow(page: Path) -> bool:
    """Return whether a page starts processes or compiles much: those are left to the slow part of the suite."""
    return any(b.language == "sh" for b in to_run(page)) or page.stem in HEAVY


HEAVY = {"late-feedback", "save-and-load", "sparse-data", "theory-on-one-page", "compare-with-scikit-learn"}
"""Pages whose Python compiles kernels that other quick tests do not."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if is_slow(page) else (), id=name_of(page)) for page in PAGES],
)
def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    left_out = []
    for name, text in GIVEN.get(name_of(page), {}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for block in to_run(page):
        where = f"{block.page}, line {block.line}"
        needs = block.marks.get("needs", "")
        if needs and importlib.util.find_spec(needs) is None:
            left_out.append(f"{where}: {needs} is missing")
            continue
        if "file" in block.marks:
            file = tmp_path / block.marks["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.code, encoding="utf-8")
            continue
        printed = run_python(block, names, where) if block.language == "python" else run_shell(block, tmp_path, where)
        if block.output is not None:
            assert agrees(block.output, printed), f"{where} prints\n{printed}\nand the page shows\n{block.output}"
    if left_out:  # what could be run was
        pytest.skip("; ".join(left_out))


def run_python(block: Block, names: dict[str, Any], where: str) -> str:
    """Run a block in the page's names and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, where, "exec", dont_inherit=True), names)
    return printed.getvalue()


def run_shell(block: Block, folder: Path, where: str) -> str:
    """Run a block in a shell, from the page's folder, and return what it prints."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "400"}
    done = subprocess.run(
        ["bash", "-c", SHELL + block.code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == int(block.marks.get("exit", "0")), f"{where}: {done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_tutorials_of_the_table_of_contents_have_code() -> None:
    named = {page.stem for page in PAGES if page.parent.name == "tutorials"}
    first = {
        "play-a-round",
        "own-table",
        "own-agent",
        "own-environment",
        "foreign-environments",
        "theory-on-one-page",
        "reading-a-report",
    }
    assert first <= named


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```ruby\nputs 1\n```\n", "nothing runs 'ruby'"),
        ("```text\n1\n```\n", "an output without the code that prints it"),
        ("<!-- not run: no time -->\n```sh\nls\n```\n", "blocks that are not run are named in tests/docs/not_run.py"),
        ("```toml\na = 1\n```\n", "a file without its name"),
        ("<!-- file: a.toml -->\n", "stands above no block"),
    ],
)
def test_a_page_says_what_becomes_of_each_block(text: str, message: str, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr("pages.DOCS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match=message):
        blocks(page)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("1\n", "1\n", True),
        ("1\n", "2\n", False),
        ("... of 7\n", "3 of 7\n", True),
        ("... of 7\n", "3 of 8\n", False),
        ("a\n...\n", "a\n", False),
        ("a\n...\n", "a\nb\n", True),
        ("a.b\n", "axb\n", False),
    ],
)
def test_outputs_are_compared(expected: str, printed: str, same: bool) -> None:
    assert agrees(expected, printed) is same


@pytest.mark.slow
def test_a_block_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="page, line 1"):
        run_shell(Block("page", 1, "sh", "banditlab list nothing\n"), tmp_path, "page, line 1")
    with pytest.raises(ZeroDivisionError):
        run_python(Block("page", 1, "python", "1 / 0\n"), {}, "page, line 1")
