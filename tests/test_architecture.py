"""docs/architecture.md says what is: its rooms are the package's, its arrows those of tests/test_imports.py."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
LONGEST = 100
"""Lines: one page."""


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(text: str) -> set[str]:
    return {name.rstrip("/") for name in re.findall(r"`([a-z_]+/?)`", text)}


def imports_test() -> ModuleType:
    spec = importlib.util.spec_from_file_location("floors", ROOT / "tests" / "test_imports.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def floors() -> dict[str, set[str]]:
    """Return what tests/test_imports.py lets a room import beside itself; the front door is no room."""
    allowed: dict[str, set[str]] = imports_test().ALLOWED
    return {room: rooms - {room, ""} for room, rooms in allowed.items()}


def stated() -> dict[str, set[str]]:
    """Return what the page says a room imports, "base" and "floor" written out as the page does."""
    base = names(re.findall(r'"base" means (.*?);', PAGE, re.DOTALL)[0])
    floor = base | names(re.findall(r'"floor" means base and (.*?)\.', PAGE, re.DOTALL)[0])
    found = {}
    for room, _, imports in rows("The parts"):
        words = set(re.findall(r"[a-z]+", re.sub("`[^`]*`", "", imports)))
        assert words <= {"base", "floor", "nothing"}, imports
        given = (base if "base" in words else set()) | (floor if "floor" in words else set())
        found[room.strip("`").rstrip("/")] = (names(imports) | given) - {room.strip("`").rstrip("/")}
    return found


def test_every_room_is_on_the_page_and_no_other() -> None:
    on_disk = {file.name for file in (ROOT / "banditlab").iterdir() if (file / "__init__.py").is_file()}
    loose = {file.stem for file in (ROOT / "banditlab").glob("*.py") if not file.stem.startswith("__")}
    written = [room.strip("`") for room, _, _ in rows("The parts")]
    assert len(set(written)) == len(written)
    assert set(written) == {f"{name}/" for name in on_disk} | loose, "a folder ends in /"


def test_the_arrows_are_the_floors() -> None:
    found, expected = stated(), floors()
    assert set(found) == set(expected)
    for room in expected:
        assert found[room] == expected[room], room


def test_rooms_stand_above_what_they_import() -> None:
    """From the ground up: read downwards, every arrow points back."""
    seen: set[str] = set()
    for room, imports in stated().items():
        assert imports <= seen, f"{room} imports {sorted(imports - seen)}, which stand below it"
        seen.add(room)


def test_folders_and_files_it_speaks_of_are_there() -> None:
    inside = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|md))?)`", PAGE)
    places = ("", "banditlab", "banditlab/agents", "banditlab/boosting")
    assert len(inside) > 20
    for path in inside:
        assert any((ROOT / place / path).exists() for place in places), path


def test_it_is_one_page() -> None:
    assert len(PAGE.splitlines()) <= LONGEST


@pytest.mark.parametrize("row", rows("Where do I put ..."), ids=lambda row: row[0])
def test_the_counts_are_those_of_contributing(row: list[str]) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    [line] = [line for line in text.splitlines() if line.startswith(f"| {row[0]} |")]
    files = [name for name in re.findall(r"`([^` ]+)`", line) if re.search(r"\.(py|md|csv)$", name)]
    assert int(re.match(r"\d+", row[2])[0]) == len(files)  # type: ignore[index]
