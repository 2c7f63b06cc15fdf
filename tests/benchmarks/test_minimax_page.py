"""Forecasters beside the minimax lower bound: the committed numbers, and a search that finds a false bound."""

from __future__ import annotations

import csv

import pytest

from benchmarks.commands import minimax as command
from benchmarks.measure.papers import minimax
from benchmarks.measure.papers.boosting import searched


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "gaf" else ()) for name in minimax.PLAYERS]
)
def test_no_setting_is_below(name: str) -> None:
    found = searched(minimax.line(name), 12, 3)
    assert found.above == 0
    assert 0.3 < found.ratio < 1.0


def test_a_bound_that_is_false_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimax, "minimax_regret_on_ball", lambda T, d, B, R: 1.0 + T)
    assert searched(minimax.line("aioli"), 12, 3).above > 0


@pytest.mark.slow
def test_the_committed_numbers_are_those_of_the_command() -> None:
    with command.ROWS.open(encoding="utf-8") as file:
        stored = list(csv.DictReader(file))
    assert len(stored) == len(command.BALLS) * len(command.HORIZONS) * len(minimax.PLAYERS)
    for row in stored:
        assert float(row["regret"]) >= float(row["lower_bound"])
    fresh = command.measured(4, 6.0, 100, 30)
    kept = [row for row in stored if (row["n_features"], row["rounds"]) == ("4", "100")]
    for new, old in zip(fresh, kept, strict=True):
        assert old["forecaster"] == new.forecaster
        values = {name: float(old[name]) for name in ("lower_bound", "regret", "standard_error", "bound")}
        assert values == pytest.approx({name: getattr(new, name) for name in values}, rel=1e-4, nan_ok=True)
    page = command.PAGE.read_text("utf-8")
    assert f"| {' | '.join(f'{row.regret:.2f} ± {row.standard_error:.2f}' for row in fresh)} |" in page
