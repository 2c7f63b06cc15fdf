"""The page says beside each row what follows from rows and rates, and what was not measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.commands import speed
from benchmarks.measure import one_player, vw_driver
from benchmarks.measure.machine import Curve, Rates
from benchmarks.measure.one_player import Effort, Row
from benchmarks.measure.players import PEERS
from benchmarks.page import kept, report
from benchmarks.page.lines import misses
from benchmarks.page.results import Results

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


def test_the_head_tells_the_ratios_of_both_kinds_and_the_floors() -> None:
    lines = report.page(rows(), RATES).splitlines()
    second, stepped, harsher = [line for line in lines if line.startswith(("| first", "| a second-order"))][:3]
    assert "| 10 | 9.0 (`linucb`) to 9.0 (`linucb`); 1 of 1 below; against `river-linucb`, 45.00 us |" in second
    assert "| 15 | 300.0 (`banditron gamma=0.1`)" in stepped
    assert f"against `{VW.label}`, 60.00 us" in stepped
    assert "all agents meet the target in 2 of 2 cells" in stepped
    assert f"25.0 (`banditron gamma=0.1`); against `{DRIVER.label}`, 5.00 us" in harsher
    assert "3.1 (`banditron gamma=0.1`, 10 x 256); all agents meet the target in 1 of 2 cells" in harsher
    [floors] = [line for line in lines if line.startswith("* **Floors**, 10 x 64")]
    assert "beyond: `linucb`" not in floors
    [growth] = [line for line in lines if line.startswith("* **Growth**")]
    assert growth.endswith("1 unexplained")


def test_the_page_says_which_run_measured_what() -> None:
    first, again = "2026-11-22 00:30:00 UTC", "2026-11-22 01:30:00 UTC"
    measured = [r._replace(run=again if r.player == "linucb" else first) for r in rows()]
    page = report.page(measured, RATES, {first: {"processor": "made up"}})
    assert "from 2 runs." in page
    assert f"* Begun {first}: 4 cells of ours, 6 of other libraries\n  * processor: made up\n" in page
    assert f"* Begun {again}: 1 cells of ours, 0 of other libraries" in page
    assert "compares cells of two runs where the rows are not of one run" in page


def test_a_round_that_is_far_from_its_floor_is_divided() -> None:
    place = ("logistic", 10, 64)
    slow = [r._replace(nanoseconds=2000.0, deciding=500.0) if r.player.startswith("banditron") else r for r in rows()]
    [line] = [line for line in report.page(slow, RATES).splitlines() if line.startswith("* `banditron gamma=0.1`, ")]
    banditron = next(p for p in report.OURS if p.id == "banditron")
    cell = Results(slow, RATES).cell(banditron, place)
    assert cell is not None
    assert sum(cell.floor.parts.values()) == cell.floor.nanoseconds
    assert "deciding 0.500 us and learning 1.50; the floor: matrix-vector products 0.128, element by element" in line
    assert line.endswith("NOT EXPLAINED")


def test_what_other_parts_keep_stands_in_the_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept.read(tmp_path) == {}
    monkeypatch.setattr("sys.argv", ["benchmarks", "sweep", "--runs", "100", "--keep"])
    kept.keep("sweep", "many runs", tmp_path)
    kept.keep("stream", "a long stream", tmp_path)
    told = kept.read(tmp_path)
    assert list(told) == ["stream", "sweep"]  # the page's order
    lines = list(kept.lines(told))
    assert len(lines) == len(kept.PARTS)
    assert lines[0].endswith("): a long stream")
    assert "(`python -m benchmarks sweep --runs 100`, " in lines[2]
    assert lines[3] == "* **The comparator**: not measured yet; `python -m benchmarks comparator --keep`"
    assert kept.cells("| a | 1,000 |  |\n") == ["a", "1,000", ""]


@pytest.mark.slow
def test_page_tables_and_figure_are_written(tmp_path: Path) -> None:
    speed.publish(rows(), RATES, tmp_path)
    names = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.*")}
    assert names == {"results/speed.md", "results/speed.csv", "results/speed-rates.csv", "images/speed.png"}
    assert speed.read_rows(tmp_path) == rows()


def test_vowpal_wabbits_own_driver_plays_the_stream() -> None:
    pytest.importorskip("vowpalwabbit")
    found = vw_driver.measure(DRIVER, one_player.logistic(3, 8), Effort())
    assert found.why == ""
    assert found.rounds == len(one_player.logistic(3, 8).y)
    assert found.mistakes is not None
    assert 0.0 < found.mistakes < 0.6  # two thirds is guessing
    assert found.nanoseconds is not None
    assert 100.0 < found.nanoseconds < 1e6


@pytest.mark.parametrize(("driver", "line", "beyond"), [(5_000.0, 333.333, True), (12_000.0, 800.0, False)])
def test_a_missed_target_is_set_beside_the_floor(driver: float, line: float, beyond: bool) -> None:
    """The line at d = 256 is the driver's time over 15; banditron's floor there is 608.8 ns, its time 1,600."""
    met = [r for r in rows() if r.player != "linucb"]
    measured = [r._replace(nanoseconds=driver) if (r.player, r.d) == (DRIVER.label, 256) else r for r in met]
    [missed] = misses(Results(measured, RATES))
    assert (missed.player.label, missed.place) == ("banditron gamma=0.1", ("logistic", 10, 256))
    assert missed.floor.nanoseconds == pytest.approx((2 * 2560 + 2 * 1.5 * 256) / 10.0 + 20.0)
    assert (missed.line, missed.taken, missed.out_of_reach) == (pytest.approx(line, abs=1e-3), 1600.0, beyond)
    page = report.page(measured, RATES).splitlines()
    [said] = [text for text in page if text.startswith("ours. ")]
    assert said.startswith(f"ours. {int(beyond)} of 1 cells are of the first kind. ")
    [shown] = [text for text in page if text.startswith("| banditron gamma=0.1 | 10 x 256 |")]
    told = "4.8 | 1.8" if beyond else "2.0 | 0.8"
    assert shown.endswith(f"| operations: matrix-vector products 84% | 1.60 | {told} |")


def test_where_all_targets_are_met_there_is_no_section() -> None:
    quick = [r for r in rows() if r.player != "linucb" and r.d == 64]
    assert misses(Results(quick, RATES)) == []
    assert "## Below the target" not in report.page(quick, RATES)
