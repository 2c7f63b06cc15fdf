"""Write the notebooks of analysis/notebooks from their scripts, with outputs: `python analysis/make_notebooks.py`."""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "notebooks"
SECONDS = 300
"""How long a cell may take."""


def scripts() -> list[Path]:
    """Return the scripts, in the order in which one reads them."""
    return sorted(FOLDER.glob("*.py"))


def executed(script: Path) -> nbformat.NotebookNode:
    """Return a script as a notebook with its outputs; nothing in it depends on when it was run."""
    book = jupytext.read(script)
    NotebookClient(book, timeout=SECONDS, resources={"metadata": {"path": str(FOLDER)}}).execute()
    for number, cell in enumerate(book.cells):
        cell.metadata.pop("execution", None)
        cell["id"] = f"cell-{number}"
    book.metadata.pop("language_info", None)  # it names the version of Python
    return book


if __name__ == "__main__":
    for script in scripts():
        file = script.with_suffix(".ipynb")
        nbformat.write(executed(script), file)
        print(f"{file}: {file.stat().st_size:,} bytes")
