"""Blocks that no test runs are those of one list, in both directions, and they are looked at as far as they can be."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import typer.main

sys.path.insert(0, str(Path(__file__).parent))
from not_run import NOT_RUN, RUN_BY, NotRun
from pages import DOCS, ROOT, Block, all_pages, blocks, name_of

sys.path.pop(0)

from banditlab import Sweep
from banditlab.cli.main import app

BLOCKS = {name_of(page): blocks(page) for page in all_pages() if name_of(page) not in RUN_BY}


def block_of(entry: NotRun) -> Block:
    """Return the one block of an entry."""
    found = [block for block in BLOCKS[entry.page] if block.code.startswith(entry.begins)]
    assert len(found) == 1, f"{entry.page} has {len(found)} blocks that begin with {entry.begins!r}"
    return found[0]


def test_each_entry_is_one_block_of_its_own() -> None:
    found = [(block.page, block.line) for block in map(block_of, NOT_RUN)]
    assert len(set(found)) == len(found)
    assert all(entry.why for entry in NOT_RUN)


def test_what_does_not_install_nor_leave_this_machine_is_run() -> None:
    away = re.compile(r"\bpip install\b|\bpytest\b|\bsbatch\b|SBATCH|10\.0\.0\.1|dask_\w+|python -m docs")
    for entry in NOT_RUN:
        assert away.search(block_of(entry).code), f"{entry.page}: {entry.begins!r} could be run: take it from the list"


def test_pages_that_another_test_runs_are_named_in_it() -> None:
    for page, test in RUN_BY.items():
        assert (DOCS / page).is_file()
        assert Path(page).name in (ROOT / test).read_text("utf-8")
    named = {"errata", "from-table-to-production", "which-model", "another-policy"}
    assert {Path(page).stem for page in RUN_BY} == named


# --------------------------------------------------------------------------------------------- commands, by their own parsers


def commands_of(code: str) -> list[list[str]]:
    """Return the simple commands of a shell's text as lists of words; a variable stands for 1."""
    found = []
    for line in code.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(re.sub(r"\$\{?\w+\}?", "1", line), posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, "#"
        words: list[str] = []
        for word in [*lexer, ";"]:
            if re.fullmatch("[;&|()]+", word):
                found += [words] if words else []
                words = []
            else:
                words.append(word)
    return found


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command of our command line that words name, and its arguments."""
    command, rest = typer.main.get_command(app), list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"banditlab has no command {' '.join(words)!r}"
        command = command.commands[rest.pop(0)]
    return command, rest


def parse(words: list[str]) -> None:
    """Have a command's own parser read its words, if it is one of ours or Dask's; nothing is run."""
    if words[0] == "banditlab":
        command, rest = command_of(words[1:])
        command.make_context("banditlab", rest)
    elif words[:2] in (["dask", "scheduler"], ["dask", "worker"]):
        module = pytest.importorskip(f"distributed.cli.dask_{words[1]}", reason="no Dask: pip install -e '.[cluster]'")
        module.main.make_context(words[1], words[2:])
    elif words[:2] == ["python", "-m"] and words[2] == "docs":
        from docs.__main__ import options

        options().parse_args(words[3:])


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    "entry", [e for e in NOT_RUN if e.looked_at == "parsed"], ids=lambda e: f"{e.page}-{e.begins[:20]}"
)
def test_what_is_not_run_is_a_script_whose_commands_parse(entry: NotRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    code = block_of(entry).code
    done = subprocess.run(["bash", "-n"], input=code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for words in commands_of(code):
        parse(words)
        for word in words:
            if words[0] == "banditlab" and word.startswith("runs/"):
                assert (ROOT / word).is_file()


@pytest.mark.parametrize(
    "wrong",
    ["banditlab rum x.toml", "banditlab run", "banditlab run x.toml --shards 1/2", "banditlab run x.toml -j two"],
)
def test_a_command_that_does_not_parse_is_noticed(wrong: str) -> None:
    with pytest.raises((AssertionError, *typer.BadParameter.__mro__[:-4])):  # click's errors, or typer's copy of them
        parse(commands_of(wrong)[0])


def test_commands_are_found_in_scripts() -> None:
    assert commands_of('a "$B/2" && c | d &\ne --f \\\n  g # h\n') == [["a", "1/2"], ["c"], ["d"], ["e", "--f", "g"]]


@pytest.mark.parametrize("entry", [e for e in NOT_RUN if e.looked_at == "stand-in"], ids=lambda e: e.begins)
def test_a_cluster_s_script_runs_up_to_the_cluster(entry: NotRun, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    took: list[inspect.BoundArguments] = []

    class Cluster:
        def __init__(self, **settings: Any) -> None:
            made.append(self)

        def scale(self, *, jobs: int) -> None:
            assert jobs > 0

    _, module, _, name = entry.begins.split()
    for i in range(1, module.count(".") + 2):
        part = types.ModuleType(".".join(module.split(".")[:i]))
        setattr(part, name, Cluster)
        monkeypatch.setitem(sys.modules, part.__name__, part)
    signature = inspect.signature(Sweep.run)
    monkeypatch.setattr(Sweep, "run", lambda *given, **named: took.append(signature.bind(*given, **named)))
    monkeypatch.chdir(ROOT)
    block = block_of(entry)
    exec(compile(block.code, f"{block.page}, line {block.line}", "exec", dont_inherit=True), {"__name__": "__main__"})
    assert len(took) == 1
    assert took[0].arguments["cluster"] is made[0]


INLINE = re.compile(r"`(banditlab [a-z][^`\n]*)`")


@pytest.mark.parametrize("page", [p for p in all_pages() if INLINE.search(p.read_text("utf-8"))], ids=name_of)
def test_commands_within_a_sentence_exist_with_their_options(page: Path) -> None:
    for said in INLINE.findall(page.read_text("utf-8")):
        words = said.replace("[", " ").replace("]", " ").split()
        command, rest = command_of([word for word in words[1:] if word != "..."])
        known = {option for parameter in command.params for option in getattr(parameter, "opts", [])} | {"--help"}
        for word in rest:
            if word.startswith("-") and not word.startswith("--install"):
                assert word.partition("=")[0] in known, f"{name_of(page)}: {said!r}"
