"""The gallery: figures of docs/figures with their scripts; and the studies, a page for each notebook of analysis/.

Nothing is played here. `python -m docs.make.figures` draws the figures. Tables and pictures of a study are those that its
notebook stored when it was run.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from docs.make.docstrings import escaped

ROOT = Path(__file__).parents[2]
ROWS = 8
"""Rows of a table that are shown; the file has all."""
ORDER = ("learning", "ranking", "change", "delay", "exploration", "evaluation", "theorem", "regret")
"""Figures of the gallery in the order in which it shows them."""


def notebooks() -> list[Path]:
    """Return the notebooks, kept as scripts."""
    return [file for file in sorted((ROOT / "analysis").glob("*.py")) if "# %% [markdown]" in file.read_text("utf-8")]


def pages() -> dict[str, str]:
    """Return every page by its path below docs."""
    made = {f"gallery/{_name(file)}.md": page(file) for file in notebooks()}
    figures = "\n\n".join(_figure(script) for script in ORDER)
    made["gallery/index.md"] = f"""# Gallery

The script below each figure draws it without changes. `python -m docs.make.figures` draws all figures.

{figures}
"""
    cards = "\n\n".join(_card(file) for file in notebooks())
    names = "\n".join(_name(file) for file in notebooks())
    made["gallery/studies.md"] = f"""# Studies

These pages show the notebooks of `analysis/` with the tables and figures of their last run. Each notebook is a Python script
(jupytext's percent format). The [results](../results/index.md) pages explain the outcomes.

{cards}

```{{toctree}}
:hidden:

{names}
```
"""
    return made


def _figure(name: str) -> str:
    """Return a figure of the gallery: its question, the figure, the script."""
    text = (ROOT / "docs" / "figures" / f"{name}.py").read_text("utf-8")
    said, _, code = text.removeprefix('"""').partition('"""\n\n')
    question, _, answer = said.partition("? ")
    return f"## {question}?\n\n{answer}\n\n![{escaped(answer)}](../images/gallery/{name}.svg)\n\n```python\n{code}```"


def _card(file: Path) -> str:
    """Return a notebook's entry: its title, and the first of its pictures."""
    title, pictures = f"[{_title(file)}]({_name(file)}.md)", _pictures(file)
    if not pictures:
        return f"## {title}"
    return f"## {title}\n\n![A figure of this study](../images/{pictures[0].name}){{width=320px}}"


def _pictures(file: Path) -> list[Path]:
    return [f for f in sorted((ROOT / "docs" / "images").glob("*.png")) if _is_of(f.stem, file)]


def page(file: Path) -> str:
    """Return the page of one notebook."""
    name = _name(file)
    cells = _markdown_cells(file)
    parts = [f"# {_title(file)}", *(_demoted(cell) for cell in cells)]
    parts.append(f"Source: [`analysis/{file.name}`](../../analysis/{file.name}).")
    if (ROOT / "docs" / "results" / f"{name}.md").is_file():
        parts.append(f"Results: [{name}](../results/{name}.md).")
    pictures = _pictures(file)
    if pictures:
        parts.append("## Pictures")
        parts += [f"![{f.stem}](../images/{f.name})" for f in pictures]
    tables = [f for f in sorted((ROOT / "docs" / "results").glob("*.csv")) if _is_of(f.stem, file)]
    if tables:
        parts.append("## Tables")
        parts += [_table(f) for f in tables]
    return "\n\n".join(parts) + "\n"


def _name(file: Path) -> str:
    return file.stem.replace("_", "-")


def _is_of(stem: str, file: Path) -> bool:
    """Return whether a table or picture is a notebook's: by its name, or because the notebook writes it by name."""
    return _belongs(stem, _name(file)) or f'"{stem}' in file.read_text("utf-8")


def _belongs(stem: str, name: str) -> bool:
    """Return whether a table or picture is a notebook's: the longest notebook's name that it begins with decides."""
    owners = [n for n in map(_name, notebooks()) if stem == n or stem.startswith(f"{n}-")]
    return bool(owners) and max(owners, key=len) == name


def _markdown_cells(file: Path) -> list[str]:
    """Return the text cells of a notebook that follow its title."""
    cells = re.findall(r"^# %% \[markdown\]\n((?:#.*\n)+)", file.read_text("utf-8"), re.MULTILINE)
    texts = ["\n".join(line.removeprefix("#").removeprefix(" ") for line in cell.splitlines()) for cell in cells]
    first = texts[0].partition("\n")[2].strip()
    return [text for text in (first, *texts[1:]) if text.strip()]


def _demoted(cell: str) -> str:
    """Return a cell with its headings a step down where they would be the page's title; its text is Markdown already."""
    return re.sub(r"^# ", "## ", cell, flags=re.MULTILINE)


def _title(file: Path) -> str:
    found = re.search(r"^# # (.*)$", file.read_text("utf-8"), re.MULTILINE)
    return found.group(1) if found else file.stem


def _table(file: Path) -> str:
    with file.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.reader(opened))
    head, body = rows[0], rows[1:]
    lines = ["| " + " | ".join(escaped(cell) for cell in row) + " |" for row in (head, *body[:ROWS])]
    lines.insert(1, "|" + "---|" * len(head))
    shown = f"{min(ROWS, len(body))} of {len(body)} rows of" if len(body) > ROWS else "All rows of"
    return f"### {file.stem}\n\n" + "\n".join(lines) + f"\n\n{shown} [`{file.name}`](../results/{file.name})."
