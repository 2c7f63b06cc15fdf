"""What is written into the pages of docs from the tables that notebooks keep in docs/results as csv files.

One module per page, with `parts(results)`: {marker: Markdown} from the csv files of that folder. Prose is written by hand in
the page itself. `python analysis/fill_pages.py` writes every page anew from the csv files, without any runs.
"""

from importlib import import_module
from pathlib import Path

from banditlab.analysis.pages import fill_page
from banditlab.analysis.places import kept

PAGES = {
    "adaptive": "results",
    "bakeoff": "results",
    "bakeoff-reading": "results",
    "benchmarks": "results",
    "boosting-tables": "results",
    "changes": "results",
    "decoding": "results",
    "default-agent": "results",
    "defaults": "results",
    "intervals": "results",
    "late-answers": "results",
    "late-lost-wrong": "results",
    "mutants": "results",
    "new-actions": "results",
    "offpolicy": "results",
    "one-bit": "results",
    "papers-000": "results",
    "papers-001": "results",
    "papers-003": "results",
    "real-data": "results",
    "rivals": "results",
    "routing": "results",
    "scaling": "results",
    "synsep": "results",
    "tags": "results",
    "theory": "results",
    "which-agent": ".",
    "which-model": "tutorials",
}
"""The pages' names, of which "_" for "-" makes that of the module, and the folders below `docs` they lie in."""


def parts_of(name: str, results: Path) -> dict[str, str]:
    """Return what belongs between the markers of a page, by name."""
    made: dict[str, str] = import_module(f"{__name__}.{name.replace('-', '_')}").parts(results)
    return made


def fill(name: str) -> None:
    """Write a page's tables anew from the csv files in `results`; where a notebook keeps its tables elsewhere, no page is."""
    page, results = kept(f"{PAGES[name]}/{name}.md"), kept("results/x").parent
    if not page.is_file():
        print(f"no page to fill: {page}")
        return
    print(f"{page}: {'written anew' if fill_page(page, parts_of(name, results)) else 'as it was'}")
