"""Figures are as they are on record: a line, a limit, a size or a word that moves is meant, or it is seen here."""

from __future__ import annotations

import pytest

from tests.analysis.picture_record import FOLDER, pictures

DRAWN = pictures()


def test_every_picture_on_record_is_drawn() -> None:
    assert {file.name for file in FOLDER.iterdir()} == set(DRAWN)


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.few(5)
def test_a_figure_is_what_it_was(name: str) -> None:
    """If it was meant: `python -m tests.analysis.picture_record` draws all of them anew."""
    assert DRAWN[name]() == (FOLDER / name).read_text("utf-8")
