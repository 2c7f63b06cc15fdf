"""The notebooks of analysis/notebooks: each is paired with its script, is small, and prints again what it printed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pytest

ANALYSIS = Path(__file__).parents[2] / "analysis"
SCRIPTS = sorted((ANALYSIS / "notebooks").glob("*.py"))
LARGEST = 100_000
"""Bytes of a notebook."""


def cells_of(book: Any) -> list[tuple[str, str]]:
    """Return the kind and the text of every cell."""
    return [(cell.cell_type, cell.source) for cell in book.cells]


def texts_of(book: Any) -> list[str]:
    """Return what each cell prints, in one piece, without pictures, whose bytes depend on matplotlib."""
    outputs = (cell.get("outputs", []) for cell in book.cells)
    return ["".join(output.text for output in each if output.output_type == "stream") for each in outputs]


def committed(script: Path) -> Any:
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


def test_there_are_five_pairs() -> None:
    assert len(SCRIPTS) == 5
    books = sorted((ANALYSIS / "notebooks").glob("*.ipynb"))
    assert [book.stem for book in books] == [script.stem for script in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_is_its_script_with_small_outputs(script: Path) -> None:
    book = committed(script)
    nbformat.validate(book)
    assert cells_of(book) == cells_of(jupytext.read(script)), (
        "python analysis/make_notebooks.py writes the notebooks anew"
    )
    assert script.with_suffix(".ipynb").stat().st_size <= LARGEST
    assert texts_of(book)
    assert all(cell.execution_count for cell in book.cells if cell.cell_type == "code")


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_prints_again_what_it_printed(script: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_notebooks", ANALYSIS / "make_notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert texts_of(maker.executed(script)) == texts_of(committed(script))
