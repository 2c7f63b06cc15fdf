"""What the site is made of: formulas, pages from docstrings, links. `python -m docs`, which .ci/run runs, builds it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
import types
from pathlib import Path
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.make import algorithms, api, chart, docstrings, gallery, measured
from docs.make.finish import MENDED, finish
from docs.make.links import dead_links
from docs.make.plain_math import formula, pieces
from docs.make.signatures import source_of
from docs.make.tree import ROOT, _from_top, _without_empty_patterns

sys.path.pop(0)

import banditlab


def typeset(text: str) -> str:
    """Return text with formulas in brackets, their markup taken away."""
    shown = {"text": lambda said: said, "code": lambda said: f"`{said}`"}
    return "".join(
        f"⟦{re.sub('<[^>]+>', '', formula(said))}⟧" if kind == "math" else shown[kind](said)
        for kind, said in pieces(text)
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("play from P = (1 - gamma) e_y + gamma/K, drawn", "play from ⟦P=(1−γ)ey+γ/K⟧, drawn"),
        ("at most 2 sqrt(f K T Reg(T)) nats", "at most ⟦2fKTReg(T)⟧ nats"),
        ("every ||U||_F <= D, hence", "every ⟦‖U‖F≤D⟧, hence"),
        ("the setting `norm_bound` and norm_bound", "the setting `norm_bound` and norm_bound"),
        ("A page of prose, i.e. no formula (nothing).", "A page of prose, i.e. no formula (nothing)."),
        ("of size d (K d^2 / 2 multiplications)", "of size ⟦d⟧ (⟦Kd2/2⟧ multiplications)"),
        ("m* the margin of y*: 1 - p*", "⟦m∗⟧ the margin of ⟦y∗⟧: ⟦1−p∗⟧"),
        ("in rounds 1 ... N and 5 s", "in rounds 1 ... ⟦N⟧ and 5 s"),
        ("{W : ||W_k|| <= B}", "⟦{W:‖Wk‖≤B}⟧"),
        ('curvature = "printed" is', 'curvature = "printed" is'),
    ],
)
def test_formulas_are_found_in_prose_and_typeset(text: str, shown: str) -> None:
    assert typeset(text) == shown


@pytest.mark.parametrize(
    "text", ["x_", "(", "W_{", "||x", "sqrt(", "a^", "'", "x_t^", ")", "_", "sum_t (", "<math>", "&"]
)
def test_a_formula_that_is_none_ends_and_is_markup_all_the_same(text: str) -> None:
    made = formula(text)
    assert made.count("<math>") == made.count("</math>") >= 1
    assert made.count("<mrow>") == made.count("</mrow>")
    assert "<math>" not in made.replace("<math>", "", made.count("</math>"))
    typeset(text)


def test_prose_is_no_markup() -> None:
    said = docstrings.inline("see *this* [that](there) <them> {role}`code` $price$ # here")
    assert said == "see \\*this\\* \\[that\\](there) \\<them\\> \\{role\\}`code` \\$price\\$ \\# here"
    assert docstrings.inline("- 3 apples").startswith("\\- ")


def lacks(door: Any, name: str) -> list[str]:
    """Return what the entry of a public name leaves out: what it is, arguments, what comes back, errors, source."""
    thing = getattr(door, name)
    thing = getattr(thing, "py_func", thing)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return []
    doc, said = docstrings.read(thing), inspect.getdoc(thing) or ""
    gaps = [] if doc.summary else ["what it is"]
    gaps += [] if source_of(thing) else ["source"]
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return gaps
    fields = docstrings.fields(thing) if inspect.isclass(thing) and api.is_record(thing) else {}
    told = f"{said}\n{door.__doc__ or ''}\n" + "\n".join(name for name, text in fields.items() if text)
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
        gaps += [] if "Raises" in doc.sections or not set(named) - {"problem", "rng"} else ["errors"]
        gaps += [] if "References" in doc.sections or getattr(thing, "reference", "") else ["reference"]
    else:
        methods = {name: getattr(member, "__func__", member) for name, member in vars(thing).items()}
        gaps += [
            f"{name}()" for name, m in methods.items() if inspect.isfunction(m) and name[0] != "_" and not m.__doc__
        ]
    return gaps


@pytest.mark.parametrize("door", api.DOORS)
def test_every_public_name_has_an_entry_that_says_all(door: str) -> None:
    module = importlib.import_module(door)
    own = [name for name in api.public_names(module) if api.home_of(getattr(module, name)) == door]
    assert {name: gaps for name in own if (gaps := lacks(module, name))} == {}


def test_the_front_door_says_shapes_units_and_errors_in_sections() -> None:
    page = api.page("banditlab", "The front door")
    for name in banditlab.__all__:
        entry = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "Source: `banditlab/" in entry
        thing = getattr(banditlab, name)
        if inspect.isfunction(thing):
            assert {"Parameters", "Raises"} <= set(docstrings.read(thing).sections), name


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
            assert "\n## Measured\n" in page
            assert "\n## References\n" in page
            if kind == "agents":
                heads = set(re.findall(r"^## (.*)$", page, re.MULTILINE))
                assert {"Problem", "Update rule", "Cost"} <= heads or cls.group in ("baseline", "reference"), id_
            measured = page.partition("\n## Measured\n")[2].partition("\n## ")[0]
            assert "<svg" in measured or "](../../images/" in measured, f"{kind} {id_} has no measured figure"


def test_an_algorithm_without_a_figure_says_how_to_measure_it_or_is_refused() -> None:
    assert "`python -m benchmarks --only new --keep`" in measured.figures("agents", "new", None)
    with pytest.raises(ValueError, match="boosters new: no figure of it is on record"):
        measured.figures("boosters", "new", None)


def test_names_of_lines_stand_in_the_order_of_the_lines() -> None:
    assert chart.apart([10.0, 11.0, 50.0, 52.0]) == [10.0, 24.0, 50.0, 64.0]
    drawn = [
        chart.Line("low", ((1.0, 1.0), (2.0, 1.0)), "mine"),
        chart.Line("high", ((1.0, 9.0), (2.0, 1.01)), "faint"),
    ]
    svg = chart.lines(drawn, "x", "y", "t")
    assert svg.index(">high<") < svg.index(">low<")
    assert {">1<", ">2<", ">5<"} <= set(re.findall(r">\d<", svg))


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
        if not picture.stem.startswith(("rivals", "report-", "board")):  # by a benchmark, or of pages in a browser
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


def test_patterns_that_match_no_page_yet_are_left_out() -> None:
    text = "# T\n\n```{toctree}\n:glob:\n\ncluster*\npapers*\n```\n"
    made = _without_empty_patterns(text, Path(), [Path("papers.md"), Path("results/cluster-1.md")])
    assert made == text.replace("cluster*\n", "")


def test_extras_name_what_the_site_needs() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    needed: Any = re.search(r"^docs = \[(.*)\]$", text, re.MULTILINE)
    for package in ("sphinx", "furo", "myst-parser", "latex2mathml"):
        assert f'"{package}>=' in needed.group(1)
