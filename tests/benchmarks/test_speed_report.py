"""The page says beside each row what follows from rows and rates, and what was not measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import report, speed, table, vw_driver
from benchmarks.machine import Curve, Rates
from benchmarks.players import PEERS
from benchmarks.report import Results
from benchmarks.table import Effort, Row

FLAT = Curve((1.0, 1e12), (10.0, 10.0))
RATES = Rates(*[FLAT] * len(Rates._fields))._replace(bytes=Curve((1.0, 1e12), (1e4, 1e4)))
DRIVER = next(peer for peer in PEERS if peer.kind == "driver")
VW = next(peer for peer in PEERS if peer.id == "vw" and peer.kind == "agents")


def row(player: str, d: int, nanoseconds: float | None, kind: str = "agents", why: str = "") -> Row:
    """Return a Logistic row at K = 10."""
    return Row(player, kind, "logistic", 10, d, 100, nanoseconds, 0.5, 2**20, 1000, float(d), why)


def rows() -> list[Row]:
    """Return cells of five players: banditron's time grows like d^1.5, linucb was not measured at d = 256."""
    found = []
    for d in (64, 256):
        found += [
            row("uniform", d, 20.0),
            row("banditron gamma=0.1", d, 200.0 * (d / 64) ** 1.5),
            row("linucb", d, 5000.0 if d == 64 else None, why="" if d == 64 else "over 60 s"),
            row(VW.label, d, 60_000.0),
            row(DRIVER.label, d, 5_000.0, "driver"),
            row("river-linucb", d, 45_000.0),
        ]
    return found


def test_ratios_to_the_floor_and_to_the_fastest_peer() -> None:
    results = Results(rows(), RATES)
    place = ("logistic", 10, 64)
    banditron = next(p for p in report.OURS if p.id == "banditron")
    linucb = next(p for p in report.OURS if p.id == "linucb")
    cell = results.cell(banditron, place)
    assert cell is not None
    # 2 K d for the scores, 2 d (1 + hits) for the update, ten a nanosecond, and the loop
    assert cell.floor.nanoseconds == pytest.approx((2 * 640 + 2 * 1.5 * 64) / 10.0 + 20.0)
    assert cell.ratio == pytest.approx(200.0 / cell.floor.nanoseconds)
    assert results.against(banditron, place) == 25.0
    assert results.against(banditron, place, stepped=True) == 300.0
    assert results.against(linucb, place) == 9.0
    assert results.against(linucb, ("logistic", 10, 256)) is None


def test_the_page_marks_what_misses_its_target_grows_steeply_or_was_not_measured() -> None:
    page = report.page(rows(), RATES)
    assert "| banditron gamma=0.1 | 25.0 (300) | 3.1 below (38) |" in page
    assert "| linucb | 9.0 below |  |" in page
    [steep] = [line for line in page.splitlines() if "NOT EXPLAINED" in line]
    assert steep.startswith("| banditron gamma=0.1 | K d | 1.50 | 1.00 |")
    assert "* `linucb`: 10 x 256: over 60 s" in page
    assert "* Not asked for: 2 x 8" in page


def test_page_tables_and_figure_are_written(tmp_path: Path) -> None:
    speed.publish(rows(), RATES, tmp_path)
    names = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.*")}
    assert names == {"results/speed.md", "results/speed.csv", "results/speed-rates.csv", "images/speed.png"}
    assert speed.read_rows(tmp_path) == rows()


def test_vowpal_wabbits_own_driver_plays_the_stream() -> None:
    pytest.importorskip("vowpalwabbit")
    found = vw_driver.measure(DRIVER, table.logistic(3, 8), Effort())
    assert found.why == ""
    assert found.rounds == len(table.logistic(3, 8).y)
    assert found.mistakes is not None
    assert 0.0 < found.mistakes < 0.6  # two thirds is guessing
    assert found.nanoseconds is not None
    assert 100.0 < found.nanoseconds < 1e6
