"""The study of other settings: what is counted and written, in which units, and what is refused; few rounds are played."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.result_pages import defaults as told
from benchmarks.commands import defaults
from benchmarks.measure.rivals.tables import sources

LINES = [
    told.Line("fastcb", told.DEFAULT, "a", (10.0, 30.0)),
    told.Line("fastcb", told.DEFAULT, "b", (50.0, 50.0)),
    told.Line("fastcb", told.DEFAULT, f"{told.PLANTED}, 3 x 6", (10.0, 20.0)),
    told.Line("fastcb", told.DEFAULT, f"{told.EMBEDDED}, 3 x 6", (10.0, 10.0)),
    told.Line("fastcb", told.DEFAULT, f"{told.STUCK}, K = 2", (100.0, 0.0, 100.0)),
    told.Line("fastcb", "challenger = 0", "a", (5.0, 5.0)),
    told.Line("fastcb", "challenger = 0", "b", (100.0, 100.0)),
    told.Line("fastcb", "challenger = 0", f"{told.PLANTED}, 3 x 6", (30.0, 30.0)),
    told.Line("fastcb", "challenger = 0", f"{told.EMBEDDED}, 3 x 6", (11.0, 11.0)),
    told.Line("fastcb", "challenger = 0", f"{told.STUCK}, K = 2", (0.0, 0.0, 100.0)),
]


def test_ratios_are_geometric_and_stuck_runs_are_counted() -> None:
    *_, first, second = told.settings(LINES).splitlines()
    assert first == "| `fastcb` | default | 1.000 | | | | 1.000 | 1.000 | 2 |"
    # a quarter of the mistakes on a, twice as many on b: the root of a half
    assert (
        second
        == "| `fastcb` | challenger = 0 | 0.707 | 1 of 2 | a -15.0, b +50.0 | b +50.0, a -15.0 | 2.000 | 1.100 | 1 |"
    )


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert told.read(tmp_path / "defaults.csv") == []
    told.write(tmp_path / "defaults.csv", LINES)
    assert told.read(tmp_path / "defaults.csv") == LINES


def test_regularization_is_in_units_of_the_radius_squared() -> None:
    given = {"challenger": 0.0, "regularization": 0.001}
    assert defaults.Setting("fastcb", "", given).at(2.0) == {"challenger": 0.0, "regularization": 0.004}


def test_every_setting_meets_every_table_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "defaults.md").write_text((defaults.PLACE / "defaults.md").read_text("utf-8"), "utf-8")
    monkeypatch.setattr(defaults, "PLACE", tmp_path)
    here = ("digits", "wine", "parity", defaults.NOISE)  # the others are files of somebody's
    monkeypatch.setattr(defaults, "sources", lambda *args: [each for each in sources(*args) if each.name in here])
    monkeypatch.setattr(defaults, "mistakes", lambda stream, setting: float(stream.seed - 290))
    monkeypatch.setattr(defaults, "is_stuck", lambda id_, n_classes, run, settings: run == 1)
    defaults.main(streams=2, rounds=20, runs=3, only="lints", keep=True)
    lines = told.read(tmp_path / "defaults.csv")
    settings = list(dict.fromkeys(line.setting for line in lines))
    assert settings == [each.text for each in defaults.SETTINGS if each.player == "lints"]
    tables = {line.table for line in lines}
    no_tables = (told.STUCK, told.PLANTED, told.EMBEDDED)
    assert {"wine", "parity", "digits"} == {table for table in tables if not table.startswith(no_tables)}
    assert sum(table.startswith(told.PLANTED) for table in tables) == len(defaults.WORLDS)
    assert sum(table.startswith(told.EMBEDDED) for table in tables) == len(defaults.CLUSTERS)
    assert len(lines) == len(settings) * len(tables)
    for line in lines:
        assert line.mistakes == ((0.0, 100.0, 0.0) if line.table.startswith(told.STUCK) else (10.0, 11.0))
    assert "| `lints` | regularization = 0.01 | 1.000 |" in (tmp_path / "defaults.md").read_text("utf-8")


def test_what_was_not_played_stays_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "defaults.md").write_text((defaults.PLACE / "defaults.md").read_text("utf-8"), "utf-8")
    monkeypatch.setattr(defaults, "PLACE", tmp_path)
    monkeypatch.setattr(defaults, "mistakes", lambda stream, setting: 10.0)
    monkeypatch.setattr(defaults, "is_stuck", lambda *_: pytest.fail("one context is no made stream"))
    planted = f"{told.PLANTED}, 3 x 6, noise 0"
    kept = [
        told.Line("linucb", told.DEFAULT, "wine", (30.0, 20.0)),
        told.Line("lints", told.DEFAULT, "wine", (20.0, 30.0)),
        told.Line("lints", told.DEFAULT, planted, (90.0, 90.0)),
        told.Line("lints", told.DEFAULT, f"{told.STUCK}, K = 2", (100.0, 0.0)),
    ]
    told.write(tmp_path / "defaults.csv", kept)
    defaults.main(streams=2, rounds=20, only="lints", made=True, keep=True)
    lines = told.read(tmp_path / "defaults.csv")
    assert [line for line in lines if line in kept] == [kept[0], kept[1], kept[3]]
    assert [line.mistakes for line in lines if line[:3] == kept[2][:3]] == [(10.0, 10.0)]
    ours = [line.table for line in lines if line[:2] == ("lints", told.DEFAULT)]
    assert len(ours) == 2 + len(defaults.WORLDS) + len(defaults.CLUSTERS)
    assert ours[-1].startswith(told.STUCK)


def test_a_run_is_played_at_the_setting() -> None:
    wanted = next(each for each in defaults.SETTINGS if each.given == {"deviation": 0.03})
    assert len(defaults.stuck(wanted, 2, 2).mistakes) == 2
