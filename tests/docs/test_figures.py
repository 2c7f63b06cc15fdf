"""Each figure of the gallery is what its script draws, and the script is short."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.make.figures import IMAGES, SCRIPTS, draw
from docs.make.gallery import ORDER, pages

sys.path.pop(0)

NAMES = sorted(script.stem for script in SCRIPTS.glob("*.py"))


def words(figure: Path) -> list[str]:
    """Return what is written in a figure, digits as 0: other machines may differ in the last ones."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", figure.read_text("utf-8"))
    return [re.sub(r"\d+", "0", text) for text in texts if not re.fullmatch(r"[\d.,−]*", text)]


def test_every_script_and_figure_is_in_the_gallery() -> None:
    assert sorted(ORDER) == NAMES == sorted(figure.stem for figure in IMAGES.glob("*.svg"))
    page = pages()["gallery/index.md"]
    assert all(f"gallery/{name}.svg)" in page for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_a_question_and_about_ten_lines(name: str) -> None:
    text = (SCRIPTS / f"{name}.py").read_text("utf-8")
    assert re.match(r'"""[^"]+\? [A-Z][^"]+\."""\n', text)
    own = [
        line
        for line in text.partition("\n\n\n")[0].splitlines()[1:]
        if line and not line.startswith(("import", "from"))
    ]
    assert len(own) <= 18
    assert (IMAGES / f"{name}.svg").stat().st_size < 60_000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_script_draws_the_figure(name: str, tmp_path: Path) -> None:
    drawn = words(draw(name, tmp_path))
    assert len(drawn) >= 2
    assert drawn == words(IMAGES / f"{name}.svg")
