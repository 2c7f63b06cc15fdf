"""Every committed page with markers is as its notebook would write it from the committed tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from banditlab.analysis.pages import fill_page, page_parts

LAB = Path(__file__).parents[2]
RESULTS = LAB / "docs" / "results"
BY_BENCHMARKS = ("boosting-speed", "speed")
"""Pages whose parts `python -m benchmarks` fills in with times of one machine."""
MARKED = {
    page.stem: page
    for page in sorted((LAB / "docs").rglob("*.md"))
    if page.stem not in BY_BENCHMARKS and page_parts(page.read_text(encoding="utf-8"))
}


@pytest.fixture(scope="module")
def result_pages() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(LAB / "analysis"))
        import result_pages

        yield result_pages
    for name in [name for name in sys.modules if name.partition(".")[0] in ("result_pages", "parts")]:
        del sys.modules[name]


def test_every_page_with_markers_has_a_module_and_the_other_way_round(result_pages: ModuleType) -> None:
    where = {name: LAB / "docs" / folder / f"{name}.md" for name, folder in result_pages.PAGES.items()}
    assert where == MARKED
    modules = {path.stem for path in (LAB / "analysis" / "result_pages").glob("[!_]*.py")}
    assert {name.replace("-", "_") for name in where} == modules


@pytest.mark.parametrize("name", MARKED)
def test_the_page_is_what_the_committed_tables_make(name: str, result_pages: ModuleType) -> None:
    page = page_parts(MARKED[name].read_text(encoding="utf-8"))
    made = result_pages.parts_of(name, RESULTS)
    assert set(page) == set(made)
    for marker, text in made.items():
        assert page[marker] == text, f"{name}.md, {marker}: run python analysis/fill_pages.py {name}"


@pytest.mark.parametrize("name", MARKED)
def test_a_page_whose_numbers_were_changed_is_mended(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result_pages: ModuleType
) -> None:
    before = MARKED[name].read_text(encoding="utf-8")
    page = tmp_path / MARKED[name].relative_to(LAB / "docs")
    (tmp_path / "results").mkdir()
    page.parent.mkdir(exist_ok=True)
    for table in RESULTS.glob("*.csv"):
        (tmp_path / "results" / table.name).write_bytes(table.read_bytes())
    page.write_text(before, encoding="utf-8")
    fill_page(page, dict.fromkeys(page_parts(before), "changed"))
    monkeypatch.setenv("BANDITLAB_FIGURES", str(tmp_path))
    result_pages.fill(name)
    assert page.read_text(encoding="utf-8") == before
