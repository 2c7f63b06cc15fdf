"""What the command line prints of progress, estimates, folders, tables and checks."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from banditlab.checks import CheckResult
from banditlab.cli import checking, console
from banditlab.cli.console import _Notices, _PlainLines
from banditlab.cli.progress_words import done_of, left_of, many, stage_of
from banditlab.cli.table_view import fault_lines, note_lines
from banditlab.comparison import FaultyTableError, Note
from banditlab.engine.progress import ClusterState
from banditlab.engine.spec import settings_of
from banditlab.results.reading import Failure
from tests.cli.conftest import terminal


def progress(**keys: Any) -> Any:
    """Return where a sweep stands: four runs and two streams, nothing done."""
    there = {
        "notices": [], "runs": 4, "streams": 2, "runs_done": 0, "streams_done": 0, "seconds": 0.0, "stage": "running",
        "cluster": None, "playing_since": 1.0, "failed": 0, "rounds_per_second": 1234.4, "seconds_ahead": None,
    }  # fmt: skip
    return SimpleNamespace(**there | keys)


# --------------------------------------------------------------------------------------------------------------- progress


def test_words_of_where_a_sweep_stands() -> None:
    assert [many(n, "run") for n in (0, 1, 2, 2000)] == ["0 runs", "1 run", "2 runs", "2,000 runs"]
    assert done_of(progress(playing_since=None)) == ""
    assert done_of(progress(runs_done=3, streams_done=1)) == "3/4 runs, 1/2 streams with comparators, 1,234 rounds/s"
    assert done_of(progress(streams=0, failed=2), rate=False) == "0/4 runs, 2 failed"
    assert stage_of(progress()) == "running"
    assert stage_of(progress(cluster=ClusterState(1, 2))) == "running (1 worker, 2 tasks in flight)"
    assert stage_of(progress(cluster=ClusterState(3, 1))) == "running (3 workers, 1 task in flight)"
    assert left_of(progress(seconds_ahead=1.2)) == "about 2 s left"
    assert left_of(progress(seconds_ahead=1.2, runs_done=4, streams_done=1)) == "about 2 s left"
    assert left_of(progress(seconds_ahead=1.2, runs_done=4, streams_done=2)) == left_of(progress()) == ""


def test_plain_lines_come_every_ten_seconds_and_once_when_all_is_done() -> None:
    out, file = terminal(200)
    lines = _PlainLines(out)
    said = []
    for seconds, done, streams in ((0, 0, 0), (9.9, 1, 0), (10, 1, 0), (11, 4, 1), (12, 4, 2), (13, 4, 2), (22, 4, 2)):
        lines(progress(seconds=seconds, runs_done=done, streams_done=streams, playing_since=None, stage="s"))
        said.append(file.getvalue().count("\n"))
    assert said == [1, 1, 2, 2, 3, 3, 4]
    assert file.getvalue().splitlines()[:2] == ["    0 s  s", "   10 s  s"]


def test_a_notice_is_said_once() -> None:
    out, file = terminal(200)
    notice = _Notices(out)
    for notices in (["a\n b"], ["a\n b", "c"], ["a\n b", "c"]):
        notice(progress(seconds=1.0, notices=notices, runs=0, streams=0))
    assert file.getvalue() == "notice: a b\nnotice: c\n"


@pytest.mark.parametrize(("width", "rate"), [(99, ""), (100, ", 1,234 rounds/s")])
def test_the_bar_counts_runs_and_streams_and_has_room_for_its_words(width: int, rate: str) -> None:
    made = console.Console()
    made.out, file = terminal(width, force_terminal=True)
    with made._shown() as show:
        show(progress(runs_done=3, streams_done=1, seconds_ahead=5.0))
    words = " ".join(file.getvalue().split())
    assert f"3/4 runs, 1/2 streams with comparators{rate}" in words
    assert "about 5 s left" in words


def test_the_bar_is_full_after_all_runs_and_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[tuple[int, int]] = []
    monkeypatch.setattr(
        console.Bar, "update", lambda self, line, **values: parts.append((values["completed"], values["total"]))
    )
    made = console.Console()
    made.out, _ = terminal(100, force_terminal=True)
    with made._shown() as show:
        show(progress(runs_done=3, streams_done=1))
        show(progress(runs_done=4, streams_done=2))
    assert parts == [(4, 6), (6, 6)]


# ----------------------------------------------------------------------------------------------------- estimates and results


def estimating(balls: tuple[float, ...] = (1.0, 3.0), compared: float = 40.0) -> Any:
    return SimpleNamespace(
        plan=SimpleNamespace(streams=lambda: dict.fromkeys("abc", SimpleNamespace(checkpoints=(1, 2, 5, 10, 20)))),
        balls=balls,
        estimate_comparators=lambda: compared,
    )


@pytest.mark.parametrize(
    ("sweep", "jobs", "whole", "said"),
    [
        (estimating(), 1, True, "20 s for runs and 40 s for 30 comparators (one for each stream, norm bound and checkpoint) on "
         "one core; about 60 s with -j 1"),
        (estimating(), 2, False, "20 s for runs and 40 s for 30 comparators (one for each stream, norm bound and checkpoint) "
         "on one core; about 32 s with -j 2, including comparators that are already "
         "computed"),
        (estimating(compared=math.nan), 4, True, "20 s for runs and an unknown time for 30 comparators (one for each "
         "stream, norm bound and checkpoint) on one core; about 7.0 s with -j 4"),
        (estimating(balls=(), compared=1e9), 1, False, "20 s for runs on one core; about 20 s with -j 1"),
    ],
)  # fmt: skip
def test_an_estimate_is_of_play_and_comparators_and_of_both_with_so_many_jobs(
    sweep: Any, jobs: int, whole: bool, said: str
) -> None:
    assert console._estimated(sweep, 20.0, jobs, whole) == (
        f"estimate: {said}, without the report and the compilation on first use"
    )


def test_a_time_has_the_unit_of_its_size() -> None:
    times = {9.9: "9.9 s", 10: "10 s", 119: "119 s", 120: "2.0 minutes", 7199: "120.0 minutes", 7200: "2.0 hours"}
    for seconds, said in times.items():
        assert f"estimate: {said} for runs" in console._estimated(estimating(balls=()), seconds, 1, True)


@pytest.mark.parametrize(
    ("wanted", "broken", "code", "said"),
    [
        (["a", "b", "c"], [], 1, "2 of 3 runs done, 0 failed, store format 1"),
        (["a", "b"], [], 0, "2 of 2 runs done, 0 failed, store format 1"),
        (["a", "b"], ["s", "of another"], 1, "2 of 2 runs done, 1 failed, store format 1"),
        (["a", "b", "c"], ["c", "s"], 1, "2 of 3 runs done, 2 failed, store format 1"),
    ],
)
def test_the_status_of_a_folder(
    wanted: list[str], broken: list[str], code: int, said: str, capsys: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    failures = [Failure(name, "e", name, 1, "no\nluck") for name in broken]
    plan = {"runs": wanted, "streams": ["s"], "skipped": [1]}
    monkeypatch.setattr(console, "read_plan", lambda folder: plan)
    monkeypatch.setattr(console, "damaged_files", lambda folder: ["shards/x"])
    monkeypatch.setattr(console, "finished_runs", lambda folder: {"a", "b", "z"})
    monkeypatch.setattr(console, "read_failures", lambda folder, ids: [f for f in failures if f.run_id in ids])
    monkeypatch.setenv("COLUMNS", "200")
    assert console.print_status(tmp_path) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        f"{tmp_path}: {said}",
        "damaged: shards/x does not match SHA256SUMS; `banditlab run` moves it away and repeats the runs that are only in it",
        "1 pair skipped, 1 run of other specs in the folder",
    ]
    assert lines[3:] == [f"failed: {name} on e: no luck" for name in broken if name != "of another"]


def test_a_watched_status_counts_runs_a_second_until_nothing_is_missing(
    capsys: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    finished = iter([{"a", "other"}, {"a", "b", "c"}, {"a", "b", "c", "d"}])
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] == 110.0:
            (tmp_path / "failed").mkdir()
            for name in ("d", "e", "f", "other"):  # d is there: whatever was recorded of it, it counts once
                (tmp_path / "failed" / f"{name}.json").touch()

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep, strftime=lambda form: "12:00:00")
    monkeypatch.setattr(console, "time", clock)
    monkeypatch.setattr(console, "read_plan", lambda folder: {"runs": list("abcdef")})
    monkeypatch.setattr(console, "finished_runs", lambda folder: next(finished))
    monkeypatch.setenv("COLUMNS", "200")
    console.watch_status(tmp_path, 5.0)
    assert capsys.readouterr().out.splitlines() == [
        "12:00:00  1/6 runs",
        "12:00:00  3/6 runs  0.4 runs/s  about 8 s left",
        "12:00:00  4/6 runs  2 failed  0.3 runs/s  about 7 s left",
    ]


# ------------------------------------------------------------------------------------------------------- tables of a user


def test_columns_are_listed_in_eighty_columns_and_forty_lines() -> None:
    assert note_lines([]) == []
    assert note_lines([Note("a", "numeric"), Note("bcd", "nominal", "3 values", "--role bcd=time")]) == [
        "columns:",
        "  a    numeric",
        "  bcd  nominal          3 values  --role bcd=time",
    ]
    long = Note("n" * 25, "time", "x", "")
    assert note_lines([long, Note("m" * 24, "time")]) == [
        "columns:", f"  {'n' * 23}…  time             x", f"  {'m' * 24}  time"
    ]  # fmt: skip
    option = "--role " + "o" * 40
    for n, lines in ((80, 1), (81, 2)):  # the widest line there is
        remark = "r" * (n - 2 - len(option) - len("  a  numeric          "))
        found = note_lines([Note("a", "numeric", remark, option)])
        assert len(found) == 1 + lines
        assert found[-1].endswith(option)
        assert found[-1] == (f"  a  numeric          {remark}  {option}" if lines == 1 else f"     {option}")
    many_ = [Note(f"c{i}", "numeric", "", "--x" if i < 3 else "") for i in range(41)]
    assert len(note_lines(many_[:40])) == 41
    assert note_lines(many_) == ["columns:", *(f"  c{i}  numeric  --x" for i in range(3)), "  and 38 numeric"]
    every = [Note(f"c{i}", "numeric", "", "--x") for i in range(43)]
    assert (len(note_lines(every)), note_lines(every)[-1]) == (42, "  and 3 numeric")


def test_faults_are_a_paragraph_each_and_a_command_to_copy() -> None:
    error = FaultyTableError(["t.csv: one", "t.csv: " + "two-words " * 12, "w" * 100], "banditlab compare t.csv")
    lines = fault_lines(error, "t.csv", ["--rounds", "300", "--dry-run", "-o", "my out"])
    assert lines == [
        "banditlab: t.csv has 3 faults:",
        "  * one",
        f"  * {' '.join(['two-words'] * 7)}",
        f"    {' '.join(['two-words'] * 5)}",
        f"  * {'w' * 100}",
        "corrected: banditlab compare t.csv --rounds 300 --dry-run -o 'my out'",
    ]
    assert fault_lines(FaultyTableError(["t.csv: one"], ""), "t.csv", []) == ["banditlab: t.csv: one"]


# ------------------------------------------------------------------------------------------------------- checks and options


@pytest.mark.parametrize(
    ("every", "code", "last"),
    [
        (
            False,
            1,
            "2 checks passed or were excluded; the next one failed, later checks were not run (--all runs them)",
        ),
        (True, 1, "3 checks passed or were excluded, 2 failed"),
    ],
)
def test_checks_end_at_the_first_failure_unless_all_are_wanted(
    every: bool, code: int, last: str, capsys: Any, monkeypatch: Any
) -> None:
    results = [
        CheckResult("me", name, status, reason, "c" if status == "failed" else "")  # type: ignore[arg-type]
        for name, status, reason in (
            ("one", "passed", ""), ("two", "excluded", "why"), ("three", "failed", "[b]no"), ("four", "failed", ""),
            ("five", "passed", ""),
        )
    ]  # fmt: skip
    monkeypatch.setattr(checking, "_results", lambda subject, settings: iter(results))
    assert checking.print_checks("me", every=every, settings=[]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "passed    me: one",
        "excluded  me: two: why",
        "failed    me: three: [b]no",
        "          the contract: c",
    ]
    assert (len(lines), lines[-1]) == (8 if every else 5, last)
    monkeypatch.setattr(checking, "_results", lambda subject, settings: iter(results[:2]))
    assert checking.print_checks("me", settings=[]) == 0
    assert capsys.readouterr().out.endswith("2 checks passed or were excluded, 0 failed\n")


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ([], {}),
        (["a=1", " b = [1, 2]", "c=x y ", "d="], {"a": 1, "b": [1, 2], "c": "x y", "d": ""}),
        (["e=f=g"], {"e": "f=g"}),
    ],
)
def test_settings_are_read(written: list[str], found: dict[str, Any]) -> None:
    assert settings_of(written) == found
