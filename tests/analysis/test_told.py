"""What is told of made-up results is as it is on record: a number or a word that moves is meant, or it is seen here."""

from __future__ import annotations

import pytest

from tests.analysis.report_record import PLACE, told

NAMES = sorted(file.name for file in PLACE.iterdir())


@pytest.fixture(scope="module")
def now() -> dict[str, str]:
    return told()


@pytest.mark.slow
def test_all_that_is_told_is_on_record(now: dict[str, str]) -> None:
    assert sorted(now) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_it_was(name: str, now: dict[str, str]) -> None:
    """If it was meant: `python -m tests.analysis.report_record` writes all of it anew."""
    assert now[name].splitlines() == (PLACE / name).read_text("utf-8").splitlines()
