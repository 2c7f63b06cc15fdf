"""What the pages point to is there: links, files, and the commands with their options."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from banditlab.cli.main import app

LAB = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "analysis/*.md", "runs/*.md", "agents/*.md", "envs/*.md")
    for path in LAB.glob(pattern)
)
NAMES = [path.relative_to(LAB).as_posix() for path in PAGES]
MADE = re.compile(r"(\.\./)*(algorithms|api|gallery)/[\w./-]+\.md|(\.\./)*(contributing|changelog)\.md")
"""Pages that are made when the site is built: `python -m docs` checks the links to them."""
OPTION = re.compile(r"(?<!\S)--[a-z][\w-]*")


def code(page: Path) -> Iterator[str]:
    """Return the lines of a page's blocks of code, and what stands between single backticks."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```[^\n]*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    yield from (line for block in blocks for line in block.splitlines())
    rest = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from (" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", rest))


@pytest.mark.parametrize("name", NAMES)
def test_links_and_files(name: str) -> None:
    page = LAB / name
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", text) if not link.startswith(("http:", "https:"))]
    assert [link for link in links if not (page.parent / link).exists() and not MADE.match(link)] == []
    # in capitals: a name to be filled in; of a lab that the reader makes
    named = re.findall(r"`((?:runs|analysis|tests|docs|benchmarks|banditlab)/[a-z0-9_./-]+\.(?:py|toml|md|csv))`", text)
    assert [file for file in named if not (LAB / file).exists() and not (LAB / "tests" / file).exists()] == []


def command(words: list[str]) -> tuple[object, list[str]]:
    """Return the command of the command line that these words name, and the words that follow."""
    found = typer.main.get_command(app)
    while words and hasattr(found, "commands"):
        assert words[0] in found.commands, f"banditlab has no command {words[0]}"
        found = found.commands[words.pop(0)]
    return found, words


@pytest.mark.parametrize("name", NAMES)
def test_commands_and_their_options(name: str) -> None:
    for line in code(LAB / name):
        for said in re.findall(r"(?:^|&& |\$ )banditlab ((?:[a-z].*?)?)(?= && |$)", line):
            found, rest = command(said.split("#")[0].split())
            options = {option for parameter in getattr(found, "params", []) for option in parameter.opts}
            options |= {option for parameter in getattr(found, "params", []) for option in parameter.secondary_opts}
            assert set(OPTION.findall(" ".join(rest))) <= options | {"--help"}, line


@pytest.mark.parametrize("name", NAMES)
def test_what_is_measured_has_that_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LAB))
    main = importlib.import_module("benchmarks.__main__")
    for line in code(LAB / name):
        for package, said in re.findall(r"python -m (benchmarks|audits)\b([^>&#;]*)", line):
            words, parts = said.split(), importlib.import_module(f"{package}.__main__").PARTS
            part = words.pop(0) if words and not words[0].startswith("-") else "speed"
            assert part in parts, line
            if words:
                run = importlib.import_module(f"{package}.commands.{part}").main
                taken = {flag for action in main.options(part, run)._actions for flag in action.option_strings}
                assert set(OPTION.findall(" ".join(words))) <= taken, line


def test_the_check_of_commands_can_fail() -> None:
    with pytest.raises(AssertionError, match="banditlab has no command improve"):
        command(["improve"])
    assert command(["new", "agent", "mine"])[1] == ["mine"]


def test_a_notebooks_pages_name_it() -> None:
    """Every result page names the notebooks, or the benchmark, that fill it, and every page that is filled has one."""
    listed = subprocess.run(
        [sys.executable, "-c", "import json, result_pages; print(json.dumps(result_pages.PAGES))"],
        cwd=LAB / "analysis",
        capture_output=True,
        text=True,
        check=True,
    )
    notebooks = {path.name: path.read_text(encoding="utf-8") for path in (LAB / "analysis").glob("*.py")}
    commands = [path for package in ("benchmarks", "audits") for path in (LAB / package / "commands").glob("*.py")]
    measured = "\n".join(path.read_text("utf-8") for path in commands)
    for page, folder in json.loads(listed.stdout).items():
        text = (LAB / "docs" / folder / f"{page}.md").read_text(encoding="utf-8")
        if re.search(rf'fill_page\(PLACE / "(\.\./tutorials/)?{page}\.md"', measured):
            assert re.search("`python -m (benchmarks|audits) ", text), page
            continue
        fill = [name for name, code in notebooks.items() if f'result_pages.fill("{page}")' in code]
        assert fill, f"no notebook fills {page}.md"
        assert folder != "results" or all(f"(../../analysis/{name})" in text for name in fill), page
