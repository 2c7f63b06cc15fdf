"""What notebooks write into the pages of docs/results, from the tables that they keep there as csv files.

One module per page, with `parts(results)`: {marker: Markdown} from the csv files of that folder. Prose is written by hand in
the page itself. `python analysis/fill_pages.py` writes every page anew from the csv files, without any runs.
"""

from importlib import import_module
from pathlib import Path

from banditlab.analysis.pages import fill_page
from banditlab.analysis.places import kept

PAGES = {
    "boosting-tables": "boosting_tables",
    "synsep": "synsep",
    "theory": "theory",
    "real-data": "real_data",
    "papers-001": "papers_001",
    "papers-000": "papers_000",
    "papers-003": "papers_003",
}
"""The pages' names and the modules that make their parts."""


def parts_of(name: str, results: Path) -> dict[str, str]:
    """Return what belongs between the markers of a page, by name."""
    made: dict[str, str] = import_module(f"{__name__}.{PAGES[name]}").parts(results)
    return made


def fill(name: str) -> None:
    """Write a page's tables anew from the csv files beside it; where a notebook keeps its tables elsewhere, no page is."""
    page = kept(f"results/{name}.md")
    if not page.is_file():
        print(f"no page to fill: {page}")
        return
    print(f"{page}: {'written anew' if fill_page(page, parts_of(name, page.parent)) else 'as it was'}")
