"""No number moves unseen: every player, environment, estimator and comparator still leaves the rows that were recorded."""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest


def _recording() -> Any:
    """Load the module beside this file: tests are no package, and `python -m` knows it by another name."""
    spec = importlib.util.spec_from_file_location("recording_of_runs", Path(__file__).with_name("recording.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


recording = _recording()
ROWS = recording.read_rows()
UNITS = recording.units()
QUICK = (
    "environments/",
    "comparators/",
    *(f"players/{id_}/" for id_ in ("uniform", "banditron", "ogd", "linucb", "exploration")),
)
"""Units whose kernels compile quickly, or with those of many other tests. The others compile for ten minutes: they are slow."""
LONG = ("/large/", "form=dual", "forecaster=")
"""What in such a unit compiles long after all."""


def marks(name: str) -> list[Any]:
    """Return the mark of a unit whose kernels take long."""
    return [] if name.startswith(QUICK) and not any(part in name for part in LONG) else [pytest.mark.slow]


EACH = [pytest.param(name, marks=marks(name), id=name) for name in UNITS]


@cache
def found(name: str) -> dict[str, Any]:
    """Return the rows that a unit leaves now, by name."""
    return {row.name: row for row in UNITS[name].rows()}


def recorded(name: str) -> dict[str, Any]:
    """Return a unit's recorded rows, or skip where they cannot be found again here."""
    unit, rows = UNITS[name], recording.rows_of(UNITS[name], ROWS.values())
    assert rows, f"{name} is not recorded: python -m tests.record.recording --only {unit.players[0][1]}"
    if why := unit.cannot():
        pytest.skip(why)
    then, now = next(iter(rows.values())).libraries, ", ".join(map(recording.installed, unit.libraries))
    if then != now:
        pytest.skip(f"recorded with {then}, here is {now}")
    return dict(rows)


def compared(name: str, *, exact: bool) -> None:
    then, now = recorded(name), found(name)
    said = [f"{row}: recorded, and not found any more" for row in then if row not in now]
    said += [f"{row}: found, and not recorded" for row in now if row not in then]
    for row in then.keys() & now.keys():
        if moved := recording.differences(then[row], now[row], exact=exact):
            said.append(recording.complaint(then[row], moved))
    assert not said, "\n" + "\n".join(said)


@pytest.mark.parametrize("name", EACH)
def test_ids_seeds_and_numbers(name: str, record_property: Any) -> None:
    """On any machine: ids, seeds, settings and versions exactly, numbers as `differences` says."""
    compared(name, exact=False)
    then, now = recorded(name), found(name)
    turned = [row for row in then if not recording.same_path(then[row], now[row])]
    if turned:
        record_property("other actions", turned)
        pytest.skip(f"on this machine a last bit turned an action over, sums were not compared: {', '.join(turned)}")


@pytest.mark.parametrize("name", EACH)
def test_to_the_last_bit(name: str, record_property: Any) -> None:
    """On the recorded machine: everything, to the last bit."""
    elsewhere = {recording.other_machine(row.machine) for row in recorded(name).values()} - {""}
    if elsewhere:
        record_property("not compared to the last bit", sorted(elsewhere))
        pytest.skip("; ".join(sorted(elsewhere)))
    compared(name, exact=True)


def test_every_built_in_id_is_recorded() -> None:
    every = recording.uncovered(ROWS.values())
    missing = [pair for pair in every if pair.partition(":")[2] not in recording.CASES["UNRECORDED"]]
    ids = ",".join(pair.partition(":")[2] for pair in missing)
    hint = f"add them to tests/record/cases.py, then python -m tests.record.recording --only {ids}"
    assert not missing, f"no recorded run of {', '.join(missing)}: {hint}"


def test_every_row_is_run_and_its_machine_known() -> None:
    run = {row for unit in UNITS.values() for row in recording.rows_of(unit, ROWS.values())}
    assert sorted(set(ROWS) - run) == []
    assert {row.machine for row in ROWS.values()} == set(json.loads(recording.MACHINES.read_text("utf-8")))
    assert len(ROWS) >= 300


# ------------------------------------------------------------------------------------------------ the record itself


def test_a_default_that_moves_by_a_last_bit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistakes stay, the sums to 1e-9 too: only the last bits tell."""
    unit = UNITS["players/banditron/three/defaults"]
    then, banditron = found(unit.name), recording.load("agents", "banditron")
    monkeypatch.setitem(banditron.__init__.__kwdefaults__, "gamma", 0.05 * (1.0 + 1e-12))
    now = {row.name: row for row in unit.rows()}
    for name in then:
        assert recording.differences(then[name], now[name], exact=False) == []
        moved = recording.differences(then[name], now[name], exact=True)
        assert any(line.startswith("sums.p_true: ") for line in moved)
        said = recording.complaint(then[name], moved)
        assert said.startswith(
            f"{name} (agents:banditron@1 envs:banditlab/Logistic-v0@1), door {then[name].door!r}, moved:"
        )
        assert said.endswith("python -m tests.record.recording --only banditron")


def _row(**parts: Any) -> Any:
    given: dict[str, Any] = {
        "rounds": 100,
        "players": "agents:a@1",
        "fixed": {"run_id": "ab"},
        "counts": {"mistakes": "40"},
    }
    given |= {"hashes": {"actions": "x", "p_true": "y"}, "sums": {"p_true": (2.0).hex()}}
    return recording.Row("blocks/a/three", **given | parts)


@pytest.mark.parametrize(
    ("parts", "exact", "elsewhere"),
    [
        ({}, [], []),
        ({"players": "agents:a@2"}, ["players: "], ["players: "]),
        ({"fixed": {"run_id": "cd"}}, ["fixed.run_id: ab -> cd"], ["fixed.run_id: ab -> cd"]),
        ({"hashes": {"actions": "x", "p_true": "z"}}, ["hashes.p_true: y -> z"], []),
        ({"sums": {"p_true": (2.0 + 1e-12).hex()}}, ["sums.p_true: 2.0 ("], []),
        ({"sums": {"p_true": (2.0 + 1e-6).hex()}}, ["sums.p_true: 2.0 ("], ["sums.p_true: 2.0 ("]),
        ({"sums": {}}, ["sums.p_true: 2.0 ("], ["sums: ['p_true'] on one side only"]),
        (
            {"hashes": {"actions": "w", "p_true": "z"}, "counts": {"mistakes": "45"}},
            ["counts.", "hashes.", "hashes."],
            [],
        ),
        ({"counts": {"mistakes": "60"}}, ["counts.mistakes: 40 -> 60"], ["counts.mistakes: 40 -> 60"]),
    ],
)
def test_what_may_differ_where(parts: dict[str, Any], exact: list[str], elsewhere: list[str]) -> None:
    for how, expected in ((True, exact), (False, elsewhere)):
        said = recording.differences(_row(), _row(**parts), exact=how)
        assert [line.startswith(start) for line, start in zip(said, expected, strict=True)] == [True] * len(expected)


@pytest.mark.parametrize(
    ("gaps", "moved", "said"),
    [
        ((0.5, 0.5), 0.4, []),
        ((0.5, 1.5), 1.4, []),  # the larger of both binds: each is above the same minimum by no more than its own
        ((0.5, 0.5), 0.6, ["sums.loss@9: "]),
        ((1e-4, 1e-4), 5e-5, ["sums.loss@9: "]),  # a tight gap: the digits are compared
        ((0.5, None), 0.4, ["hashes: ", "sums.loss@9: "]),
    ],
)
def test_a_loss_with_a_loose_certificate_moves_within_it(
    gaps: tuple[float, float | None], moved: float, said: list[str]
) -> None:
    def row(loss: float, gap: float | None) -> Any:
        hashes = {} if gap is None else {"gap@9": gap.hex()}
        return _row(hashes=hashes, sums={"loss@9": loss.hex()})

    found = recording.differences(row(10.0, gaps[0]), row(10.0 + moved, gaps[1]), exact=False)
    assert [line.startswith(start) for line, start in zip(found, said, strict=True)] == [True] * len(said)
    assert recording.differences(row(10.0, 0.5), row(10.4, 0.5), exact=True)


@pytest.mark.parametrize(("players", "moved"), [("forecasters:a@1", 2e-9), ("forecasters:kernel-a@1 envs:b@1", 2e-6)])
def test_sums_of_kernel_learners_are_compared_up_to_their_tolerance(players: str, moved: float) -> None:
    row, far, near = (
        _row(players=players, sums={"certificate": (40.0 * (1.0 + each)).hex()}) for each in (0.0, moved, 0.4 * moved)
    )
    assert recording.differences(row, near, exact=False) == []
    assert [line[:17] for line in recording.differences(row, far, exact=False)] == ["sums.certificate:"]


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    recording.write_rows(ROWS.values(), tmp_path / "runs.csv")
    assert recording.read_rows(tmp_path / "runs.csv") == ROWS
    assert (tmp_path / "runs.csv").read_bytes() == recording.TABLE.read_bytes()


def test_a_player_without_a_record_is_named() -> None:
    without = [row for row in ROWS.values() if "agents:fastcb@" not in row.players]
    unrecorded = {f"envs:{id_}" for id_ in recording.CASES["UNRECORDED"]}
    assert set(recording.uncovered(without)) - unrecorded == {"agents:fastcb"}


def test_a_record_elsewhere_says_how_the_machines_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    here = recording.machine_id()
    assert recording.other_machine(here) == ""
    monkeypatch.setattr(recording, "machine", lambda: {"processor": "another"})
    assert recording.other_machine(here).startswith("recorded elsewhere: processor ")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of two rows of banditron that moved, in its own folder."""
    unit = UNITS["players/banditron/three/defaults"]
    rows = [*recording.rows_of(unit, ROWS.values()).values(), ROWS["blocks/uniform/three/defaults"]]
    spoilt = [recording.dataclasses.replace(row, sums=row.sums | {"p_true": (1.0).hex()}) for row in rows]
    monkeypatch.setattr(recording, "TABLE", tmp_path / "runs.csv")
    monkeypatch.setattr(recording, "MACHINES", tmp_path / "machine.json")
    monkeypatch.setattr(recording, "read_rows", lambda read=recording.read_rows: read(tmp_path / "runs.csv"))
    monkeypatch.setattr(recording, "write_rows", lambda r, write=recording.write_rows: write(r, tmp_path / "runs.csv"))
    recording.write_rows(spoilt)
    return tmp_path / "runs.csv"


def test_recording_again_rewrites_what_was_asked_for_and_says_so(table: Path) -> None:
    unit = UNITS["players/banditron/three/defaults"]
    said: list[str] = []
    recording.record([unit], {"banditron"}, said.append)
    assert sorted(line.split(":")[0] for line in said[:-1]) == [
        f"rewritten       {door}/banditron/three/defaults" for door in ("blocks", "saved", "steps")
    ]
    assert said[-1] == "3 rows written anew, new or removed, 0 found as they were, 4 in runs.csv"
    rows = recording.read_rows()
    assert {name: rows[name] for name in found(unit.name)} == found(unit.name)
    assert rows["blocks/uniform/three/defaults"].sums["p_true"] == (1.0).hex()  # was not asked for


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say what"),
        (["--only", "fastcb,fastcbb"], "no such ids: fastcbb"),
        (["--door", "window"], "no such doors: window"),
    ],
)
def test_what_cannot_be_recorded_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        recording.main(arguments)
    assert message in capsys.readouterr().err
