"""What the site is made of: formulas, pages from docstrings, links. `python -m docs`, which .ci/run runs, builds it."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.make import api, docstrings, gallery
from docs.make.links import dead_links
from docs.make.plain_math import formula, pieces
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


def test_every_name_of_the_front_door_has_an_entry_that_says_all() -> None:
    page, gaps = api.page("banditlab", "The front door"), []
    for name in banditlab.__all__:
        assert f"\n## {name}\n" in page
        thing = getattr(banditlab, name)
        said = inspect.getdoc(thing) or ""
        entry = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "Source: `banditlab/" in entry
        if inspect.isclass(thing) and issubclass(thing, Exception):
            continue
        if re.search(rf"`{name}\.\w+` gives", said):  # nobody calls its constructor
            continue
        named = [p.name for p in inspect.signature(thing).parameters.values() if p.kind is not p.VAR_KEYWORD]
        gaps += [f"{name}: {parameter}" for parameter in named if not re.search(rf"\b{parameter}\b", said)]
        if inspect.isfunction(thing) and "Raises\n---" not in said:
            gaps.append(f"{name}: errors")
    assert gaps == []


@pytest.mark.slow
def test_every_algorithm_has_its_page() -> None:
    from docs.make import algorithms

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


def test_an_algorithm_without_a_figure_is_refused() -> None:
    from docs.make import measured

    with pytest.raises(ValueError, match="agents new: no figure of it is on record"):
        measured.figures("agents", "new", None)


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
        if not picture.stem.startswith(("speed", "report-", "board")):  # by a benchmark, or of pages in a browser
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
