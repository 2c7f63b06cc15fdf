"""What the site is made of: docstrings, pages made from them, links. `python -m docs`, which .ci/run runs, builds it."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import types
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.__main__ import serve
from docs.make import algorithms, api, docstrings, gallery, measured
from docs.make.finish import MENDED, finish
from docs.make.links import dead_links
from docs.make.tree import ROOT, _from_top

sys.path.pop(0)

import banditlab


@pytest.mark.parametrize(
    ("text", "rst"),
    [
        ("see `code` and W_t *x* |y|", "see ``code`` and W\\_t \\*x\\* \\|y\\|"),
        ("`code`s", "``code``\\ s"),
        ("a :math:`W_t * x_{k}` b_c", "a :math:`W_t * x_{k}` b\\_c"),
        (".. math::\n\n    a_b * c\n\nd_e", ".. math::\n\n    a_b * c\n\nd\\_e"),
        ("Do.\n\nCost: O(1).", "Do.\n\n**Cost**: O(1)."),
        ("Parameters\n----------\nnorm_bound\n    B_1.", "Parameters\n----------\nnorm_bound\n    B\\_1."),
        (
            "References\n----------\nA. Bee. Title.\nJMLR 1.\nC. D. Eff. Title.",
            "References\n----------\n* A. Bee. Title.\n  JMLR 1.\n* C. D. Eff. Title.",
        ),
    ],
)
def test_only_formulas_code_and_sections_are_markup(text: str, rst: str) -> None:
    assert docstrings.as_rst(text).rstrip("\n") == rst


def test_prose_keeps_formulas_and_code_and_no_other_markup() -> None:
    assert docstrings.escaped(r"a_b * $\|x_t\| \le R$, `c_d` <e> $5") == r"a\_b \* $\|x_t\| \le R$, `c_d` \<e\> \$5"


def described_fields(cls: Any) -> list[str]:
    """Return the annotated names of a class that have a text below them, as autodoc reads it."""
    if not inspect.isclass(cls):
        return []
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body  # type: ignore[attr-defined]
    return [
        line.target.id
        for line, after in itertools.pairwise(body)
        if isinstance(line, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(line.target, ast.Name)
    ]


def lacks(door: Any, name: str) -> list[str]:
    """Return what the entry of a public name leaves out: what it is, arguments, what comes back, errors, source."""
    thing = getattr(door, name)
    thing = getattr(thing, "py_func", thing)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return []
    said = inspect.getdoc(thing) or ""
    gaps = [] if said else ["what it is"]
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return gaps
    told = f"{said}\n{door.__doc__ or ''}\n" + "\n".join(described_fields(thing))
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    named = [p.name for p in inspect.signature(thing).parameters.values() if p.kind not in kinds]
    contract = ("problem", "rng")  # of every player's and environment's constructor
    gaps += [parameter for parameter in named if parameter not in contract and not re.search(rf"\b{parameter}\b", told)]
    if inspect.isfunction(thing):
        back = inspect.signature(thing).return_annotation
        answers = re.search(r"\b([Rr]eturns?|Yields?|[Ww]rite|Forecast|Compile|Whether)\b", said)
        if back not in (None, "None") and not answers and f"`{name}`" not in (door.__doc__ or ""):
            gaps.append("what comes back")
        raises = any(
            isinstance(node, ast.Raise) and node.exc
            for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(thing))))
        )
        if raises and not re.search(r"^Raises\n---|Error|\braises?\b", told, re.MULTILINE):
            gaps.append("errors")
    elif algorithms.page_of(thing):
        gaps += [] if "\nRaises\n---" in said or not set(named) - {"problem", "rng"} else ["errors"]
        gaps += [] if "\nReferences\n---" in said or getattr(thing, "reference", "") else ["reference"]
    else:
        methods = {name: getattr(member, "__func__", member) for name, member in vars(thing).items()}
        gaps += [
            f"{name}()" for name, m in methods.items() if inspect.isfunction(m) and name[0] != "_" and not m.__doc__
        ]
    return gaps


@pytest.mark.parametrize("door", api.DOORS)
def test_every_public_name_has_an_entry_that_says_all(door: str) -> None:
    module = importlib.import_module(door)
    own = [name for name in api.public_names(module) if api.homes()[id(getattr(module, name))] == door]
    assert {name: gaps for name in own if (gaps := lacks(module, name))} == {}


def test_the_front_door_says_shapes_units_and_errors_in_sections() -> None:
    page = api.page("banditlab", "The front door")
    for name in banditlab.__all__:
        assert f"\n## {name}\n\n```{{eval-rst}}\n.. auto" in page
        thing = getattr(banditlab, name)
        if inspect.isfunction(thing):
            said = inspect.getdoc(thing) or ""
            assert "\nParameters\n---" in said, name
            assert "\nRaises\n---" in said, name


def test_an_entry_that_leaves_something_out_is_noticed() -> None:
    def silent(shape: int) -> int:
        raise ValueError(shape)

    def telling(shape: int) -> int:
        """Return the shape, or raise a ValueError."""
        raise ValueError(shape)

    class Record(NamedTuple):
        """What is kept."""

        size: int
        """In bytes."""
        unit: str

    door = types.SimpleNamespace(silent=silent, telling=telling, Record=Record, __doc__=None)
    assert lacks(door, "silent") == ["what it is", "shape", "what comes back", "errors"]
    assert lacks(door, "telling") == []
    assert lacks(door, "Record") == ["unit"]


@pytest.mark.slow
def test_every_algorithm_has_its_page() -> None:
    made = algorithms.pages()
    for kind, found in algorithms.built_in().items():
        for id_, cls in found:
            page = made[algorithms.page_of(cls)]
            assert page.startswith(f"# `{id_}`\n")
            said = inspect.getdoc(cls) or ""
            if kind == "agents":
                heads = set(re.findall(r"(?<=\n\n)(Problem|Update rule|Cost)\b", said))
                assert len(heads) == 3 or cls.group in ("baseline", "reference"), id_
            figures = page.partition("\n## Measured\n")[2].partition("\n## ")[0]
            assert "| --- |" in figures or "](../../images/" in figures, f"{kind} {id_} has no measured figure"


def test_an_algorithm_without_a_figure_says_how_to_measure_it_or_is_refused() -> None:
    assert "`python -m benchmarks --only new --keep`" in measured.figures("agents", "new")
    with pytest.raises(ValueError, match="boosters new: no figure of it is on record"):
        measured.figures("boosters", "new")


def test_every_public_name_is_at_a_door_with_a_page() -> None:
    pages = api.pages()
    assert len(pages) == len(api.DOORS) + 1
    for door in ("banditlab.agents", "banditlab.envs", "banditlab.boosting", "banditlab.forecasters"):
        module = __import__(door, fromlist=["*"])
        missing = [name for name in module.__all__ if f"\n## {name}\n" not in pages[f"api/{door}.md"]]
        assert missing == []


def test_every_table_and_picture_of_a_notebook_is_in_the_gallery() -> None:
    pages = "\n".join(gallery.pages().values())
    for picture in (ROOT / "docs" / "images").glob("*.png"):
        if not picture.stem.startswith(
            ("rivals", "report-", "board", "papers-002", "minimax", "late-lost-wrong", "bakeoff")
        ):  # by a benchmark, or of a browser
            assert f"images/{picture.name})" in pages
    assert len(gallery.notebooks()) >= 10


# -------------------------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize(
    ("page", "line"),
    [
        ('<a href="other/">x</a>', ""),
        ('<a href="other/#there">x</a>', ""),
        ('<a href="https://nowhere.example/">x</a>', ""),
        ('<a href="gone.html">x</a>', "index.html: gone.html leads nowhere"),
        ('<a href="other/#gone">x</a>', "index.html: other/#gone leads nowhere"),
        ('<a href="#gone">x</a>', "index.html: #gone leads nowhere"),
        ('<img src="gone.png">', "index.html: gone.png leads nowhere"),
        ('<script src="https://cdn.example/x.js"></script>', "index.html loads https://cdn.example/x.js from outside"),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "index.html loads //cdn.example/x.css from outside"),
    ],
)
def test_dead_links_are_found(tmp_path: Path, page: str, line: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text('<p id="there">here</p>')
    (tmp_path / "index.html").write_text(page)
    assert dead_links(tmp_path) == ([line] if line else [])


def test_every_container_of_a_page_is_closed() -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        fences = re.findall(r"^(:::+)(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        opened: list[str] = []
        for colons, rest in fences:
            if rest:
                assert not opened or len(colons) < len(opened[-1]), (
                    f"{page}: {colons}{rest} before {opened[-1]} is closed"
                )
                opened.append(colons)
            else:
                assert opened, f"{page}: {colons} closes nothing"
                assert opened.pop() == colons, f"{page}: {colons} closes another container"
        assert not opened, f"{page}: {opened[-1]} is not closed"


def test_pages_are_mended_once(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("\n".join(MENDED))
    finish(tmp_path)
    assert page.read_text() == "\n".join(MENDED.values())
    finish(tmp_path)
    assert page.read_text() == "\n".join(MENDED.values())


def test_pages_of_the_repository_s_own_folder_keep_their_links() -> None:
    text = "[a](docs/limits.md) [b](banditlab/x.py) [c](https://d.e/f) [g](docs/results/speed.md) [h](#i)"
    expected = "[a](limits.md) [b](../banditlab/x.py) [c](https://d.e/f) [g](results/speed.md) [h](#i)"
    assert _from_top(text) == expected


def test_extras_name_what_the_site_needs() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    needed: Any = re.search(r"^docs = \[(.*)\]$", text, re.MULTILINE)
    for package in ("sphinx", "furo", "myst-parser", "numpydoc", "sphinx-mathjax-offline"):
        assert f'"{package}>=' in needed.group(1)


def test_the_site_is_served_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the landing page")
    code = (
        "import pathlib, signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # background jobs ignore it
        f"from docs.__main__ import serve; serve(pathlib.Path({str(tmp_path)!r}), 0)"
    )
    environment = os.environ | {"BROWSER": "true"}
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            [address] = re.findall(r"http://\S+/", server.stdout.readline())
            with urllib.request.urlopen(address, timeout=60) as page:
                assert page.read() == b"the landing page"
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 0
        finally:
            server.kill()


def test_a_port_that_is_taken_gives_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert serve(tmp_path, port) == 1
    assert capsys.readouterr().err.startswith(f"docs: cannot serve on port {port}: ")
