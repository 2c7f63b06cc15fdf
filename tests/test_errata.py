"""docs/errata.md runs: every example prints the numbers that stand below it, and the text cites no others."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "errata.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.S)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
SECTIONS = re.split(r"^## ", PAGE, flags=re.M)[1:]


def agree(printed: str, stated: str) -> bool:
    """Whether two texts are the same up to one unit in the last place of each number."""
    if NUMBER.sub("#", printed).split() != NUMBER.sub("#", stated).split():
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(stated), strict=True)
    return all(abs(float(a) - float(b)) <= 1.01 * 10.0 ** -len(b.partition(".")[2]) * ("." in b) for a, b in pairs)


@pytest.fixture(scope="module")
def printed() -> list[str]:
    namespace: dict[str, object] = {}
    outputs = []
    for block in BLOCK.finditer(PAGE):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block[1], "docs/errata.md", "exec"), namespace)
        outputs.append(out.getvalue())
    return outputs


@pytest.mark.slow  # some examples play a hundred thousand rounds
@pytest.mark.parametrize("i", range(len(BLOCK.findall(PAGE))))
def test_an_example_prints_what_stands_below_it(printed: list[str], i: int) -> None:
    code, stated = BLOCK.findall(PAGE)[i]
    assert agree(printed[i], stated), f"{code}\nprints\n{printed[i]}\nbut the page has\n{stated}"


def test_every_block_was_found() -> None:
    assert PAGE.count("```python") == len(BLOCK.findall(PAGE)) >= 15
    assert PAGE.count("```text") == sum(bool(stated) for _, stated in BLOCK.findall(PAGE)) >= 14
    assert all(bool(stated) == ("print(" in code) or "def print_" in code for code, stated in BLOCK.findall(PAGE))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.partition(".")[0])
def test_an_entry_has_its_parts_and_cites_only_printed_numbers(section: str) -> None:
    for part in ("**Printed.**", "**Example.**", "**Correction.**", "**Effect.**"):
        assert part in section
    known = {number.lstrip("+-") for _, stated in BLOCK.findall(section) for number in NUMBER.findall(stated)}
    cited = re.findall(r"\*\*-?(\d+(?:\.\d+)?)\*\*", section)
    assert set(cited) <= known


def test_agreement_is_to_the_last_place() -> None:
    assert agree("a 1.23 b -4", "a  1.24 b -4")
    assert not agree("a 1.23", "a 1.25")
    assert not agree("a 3", "a 4")
    assert not agree("a 1.23", "b 1.23")
    assert not agree("", "a 1.23")
