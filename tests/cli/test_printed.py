"""What the command line prints of made-up sweeps, tables and rankings: every number, and both sides of every limit."""

from __future__ import annotations

import inspect
import io
import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rich.console
import typer

from banditlab.analysis.statistics import Interval
from banditlab.checks import CheckResult
from banditlab.cli import checking, console, listing, live, main, notebooks, policies, ranking, table_view
from banditlab.cli.console import _long, _minutes, _PlainLines
from banditlab.cli.progress_words import done_of, left_of, many, stage_of
from banditlab.cli.ranking import cells, folded, print_ranking, ranked_lines
from banditlab.cli.table_view import fault_lines, note_lines
from banditlab.comparison import FaultyTableError, Note
from banditlab.engine.progress import ClusterState
from banditlab.errors import UsageError
from banditlab.results.reading import Failure


def terminal(width: int = 80, **keys: Any) -> tuple[rich.console.Console, io.StringIO]:
    file = io.StringIO()
    return rich.console.Console(file=file, width=width, highlight=False, color_system=None, **keys), file


def progress(**keys: Any) -> Any:
    """Return where a sweep stands: four runs and two streams, nothing done."""
    there = {
        "notices": [], "runs": 4, "streams": 2, "runs_done": 0, "streams_done": 0, "seconds": 0.0, "stage": "playing",
        "cluster": None, "playing_since": 1.0, "failed": 0, "rounds_per_second": 1234.4, "seconds_ahead": None,
    }  # fmt: skip
    return SimpleNamespace(**there | keys)


# --------------------------------------------------------------------------------------------------------------- progress


def test_words_of_where_a_sweep_stands() -> None:
    assert [many(n, "run") for n in (0, 1, 2, 2000)] == ["0 runs", "1 run", "2 runs", "2,000 runs"]
    assert done_of(progress(playing_since=None)) == ""
    assert done_of(progress(runs_done=3, streams_done=1)) == "3/4 runs, 1/2 streams compared, 1,234 rounds/s"
    assert done_of(progress(streams=0, failed=2), rate=False) == "0/4 runs, 2 failed"
    assert stage_of(progress()) == "playing"
    assert stage_of(progress(cluster=ClusterState(1, 2))) == "playing (1 worker, 2 tasks in flight)"
    assert stage_of(progress(cluster=ClusterState(3, 1))) == "playing (3 workers, 1 task in flight)"
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
    out, file = terminal(200)
    lines = _PlainLines(out)
    for total in (0, 1):
        lines(progress(seconds=float(total), runs=total, streams=0, runs_done=total, playing_since=None, stage="s"))
    assert file.getvalue() == "    1 s  s\n"
    out, file = terminal(200)
    lines = _PlainLines(out)
    for seconds, done in ((0, 0), (1, 1)):  # the only one is done, right after the first line
        lines(progress(seconds=seconds, runs=1, streams=0, runs_done=done, playing_since=None, stage="s"))
    assert file.getvalue() == "    0 s  s\n    1 s  s\n"


def test_a_notice_is_said_once() -> None:
    out, file = terminal(200)
    lines = _PlainLines(out)
    for notices in (["a\n b"], ["a\n b", "c"], ["a\n b", "c"]):
        lines(progress(seconds=1.0, notices=notices, runs=0, streams=0))
    assert file.getvalue() == "notice: a b\nnotice: c\n"


class Bar:
    """Stands in for rich's bar, and notes what it is told."""

    made: Any = None

    def __init__(self, *columns: Any, console: Any) -> None:
        self.columns, self.told = columns, []
        type(self).made = self

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None: ...

    def add_task(self, name: str, **keys: Any) -> int:
        return 7

    def update(self, line: int, **keys: Any) -> None:
        assert line == 7
        self.told.append(keys)


@pytest.mark.parametrize(("width", "rate"), [(99, ""), (100, ", 1,234 rounds/s")])
def test_the_bar_counts_runs_and_streams_and_has_room_for_its_words(width: int, rate: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(console, "Bar", Bar)
    made = console.Console()
    made.out, _ = terminal(width)
    stand = progress(runs_done=3, streams_done=1, seconds_ahead=5.0)
    sweep: Any = SimpleNamespace(run=lambda folder, watch: watch(stand))
    seen: list[Any] = []
    made._with_bar(sweep, Path("out"), {}, seen.append)
    assert seen == [stand]
    [told] = Bar.made.told
    assert (told["total"], told["completed"], told["left"]) == (6, 4, "about 5 s left")
    assert told["done"] == f"3/4 runs, 1/2 streams compared{rate}"
    words, bar, done, clock, left = Bar.made.columns
    assert bar.bar_width == 10
    assert [each._table_column.min_width for each in (words, done, clock, left)] == [9, 22, 7, 10]
    assert clock._table_column.no_wrap


# ----------------------------------------------------------------------------------------------------- estimates and results


def test_durations_on_both_sides_of_their_units() -> None:
    seconds = (0.44, 9.94, 10.0, 15.4, 119.4, 120.0, 183.0, 7199.0, 7200.0, 9000.0)
    assert [_long(each) for each in seconds] == [
        "0.4 s", "9.9 s", "10 s", "15 s", "119 s", "2.0 minutes", "3.0 minutes", "120.0 minutes", "2.0 hours", "2.5 hours"
    ]  # fmt: skip
    assert [_minutes(each) for each in (0, 0.59, 0.6, 0.9, 61.0, 150.0)] == [
        "0.00",
        "<0.01",
        "0.01",
        "0.02",
        "1.02",
        "2.50",
    ]


def estimating(balls: tuple[float, ...] = (1.0, 3.0), compared: float = 40.0) -> Any:
    return SimpleNamespace(
        plan=SimpleNamespace(streams=lambda: [1, 2, 3]),
        balls=balls,
        spec=SimpleNamespace(checkpoint_rounds=lambda: [1, 2, 5, 10, 20]),
        estimate_comparators=lambda: compared,
    )


@pytest.mark.parametrize(
    ("sweep", "jobs", "whole", "said"),
    [
        (estimating(), 1, True, "20 s of play and 40 s for 30 comparators (one for each stream, norm bound and checkpoint) on "
         "one core; about 60 s with -j 1; "),
        (estimating(), 2, False, "20 s of play and 40 s for 30 comparators (one for each stream, norm bound and checkpoint) on "
         "one core; about 32 s with -j 2, comparators that are done counted in; "),
        (estimating(compared=math.nan), 2, True, "20 s of play and what is not estimated for 30 comparators (one for each "
         "stream, norm bound and checkpoint) on one core; about 12 s with -j 2; "),
        (estimating(balls=(), compared=1e9), 1, False, "20 s of play on one core; about 20 s with -j 1; "),
    ],
)  # fmt: skip
def test_an_estimate_is_of_play_and_comparators_and_of_both_with_so_many_jobs(
    sweep: Any, jobs: int, whole: bool, said: str
) -> None:
    out, file = terminal(1000)
    console._print_estimate(out, sweep, 20.0, jobs, whole)
    assert file.getvalue() == f"estimate: {said}compiling, the first time only, and the report are not in it\n"


def run(run_id: str, environment: str, label: str) -> Any:
    return SimpleNamespace(run_id=run_id, environment_label=environment, label=label, written={})


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_a_dry_run_says_what_is_left(several: bool, begun: bool, capsys: Any, tmp_path: Path, monkeypatch: Any) -> None:
    other = "f" if several else "e"
    runs = [run("1", "e", "p"), run("2", "e", "p"), run("3", "e", "p"), run("4", other, "q")]
    rows = [
        SimpleNamespace(environment="e", label="p", runs=3, seconds_per_run=60.0),
        SimpleNamespace(environment=other, label="q", runs=1, seconds_per_run=30.0),
    ]
    sweep: Any = estimating()
    vars(sweep.plan).update(runs=runs, data={}, uncompared={}, skipped=[])
    vars(sweep.spec).update(name="n", repetitions=1, rounds=2)
    sweep.estimate = lambda: rows
    monkeypatch.setattr(console, "check_format", lambda folder: None)
    monkeypatch.setattr(console, "finished_runs", lambda folder: {"1", "of another"} if begun else set())
    monkeypatch.setenv("COLUMNS", "200")
    console.print_dry_run(sweep, 1, tmp_path)
    text = capsys.readouterr().out
    table = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    counts = (["1"], ["0"]) if begun else ([], [])
    minutes = "2.00" if begun else "3.00"
    assert table == [
        [*["e"] * several, "p", "3", *counts[0], "60", minutes],
        [*[other] * several, "q", "1", *counts[1], "30", "0.50"],
    ]
    assert ("environment" in text.split("┃")[1]) == several
    assert (f"1 of 4 runs done already in {tmp_path}" in text) == begun
    assert f"estimate: {'2.5' if begun else '3.5'} minutes of play and 40 s for 30 comparators" in text
    assert "n: 4 runs = " in text


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
        "damaged: shards/x does not match SHA256SUMS; `banditlab run` sets it aside and does again what it alone held",
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


@pytest.mark.parametrize(
    ("runs", "missing", "broken", "code"), [(4, [], 0, 0), (3, [], 0, 1), (4, [2], 0, 1), (4, [], 1, 1)]
)
def test_a_merge_is_whole_or_says_what_is_missing(
    runs: int, missing: list[int], broken: int, code: int, capsys: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    merged = SimpleNamespace(
        runs=runs, wanted=4, damaged=[], unfinished={}, missing_shards=missing, of=3, failed=broken
    )
    monkeypatch.setattr("banditlab.results.merge.merge", lambda parts, folder: merged)
    assert console.print_merge([tmp_path], tmp_path) == code
    text = " ".join(capsys.readouterr().out.split())
    assert (f"{runs} of 4 runs" in text, "all 3 parts are there" in text) == (True, code == 0)
    assert ("missing: 2/3;" in text, "1 failed" in text) == (bool(missing), bool(broken))


@pytest.mark.parametrize(("present", "played", "wanted"), [(1, 1, True), (0, 2, True), (2, 0, True), (0, 0, False)])
@pytest.mark.parametrize("report", [True, False])
def test_a_report_is_written_where_there_is_a_run(
    present: int, played: int, wanted: bool, report: bool, monkeypatch: Any, capsys: Any
) -> None:
    result = SimpleNamespace(
        present=present, played=played, failures=[], kept=None, notices=["n"], seconds=1.4, folder=Path("out")
    )
    made, reported = console.Console(), []
    made.out, file = terminal(300)
    monkeypatch.setattr(made, "_announce", lambda sweep: None)
    monkeypatch.setattr(made, "report", reported.append)
    sweep: Any = SimpleNamespace(run=lambda folder, watch: result)
    assert made._run(sweep, Path("out"), report, None, {}) == 0
    assert reported == [Path("out")] * (wanted and report)
    were = "1 run was" if present == 1 else f"{present} runs were"
    assert file.getvalue() == f"notice: n\n{were} there already, {played} played now in 1 s; results in out\n"


def test_failures_are_told_and_are_an_exit_code() -> None:
    made = console.Console()
    made.out, file = terminal(300)
    failure = {"player": "p", "settings": {"gamma": 0.1}, "environment": "e", "repetition": 2, "error": "no\nluck"}
    assert made._say_failures(SimpleNamespace(failures=[failure], folder=Path("out"))) == 1  # type: ignore[arg-type]
    assert made._say_failures(SimpleNamespace(failures=[], folder=Path("out"))) == 0  # type: ignore[arg-type]
    assert file.getvalue().splitlines() == [
        "failed: p(gamma=0.1) on e, repetition 2: no luck",
        "1 failed (tracebacks in out/failed); the others are kept",
    ]


@pytest.mark.parametrize(
    ("balls", "uncompared", "said"),
    [
        ((1.0, 2.5), {}, ["and for each of 3 streams the comparators: the best logistic models in hindsight, "
                          "norm bounds 1, 2.5"]),
        ((), {}, ["without comparators (norm_bounds = [])"]),
        ((), {"e": "no labels"}, ["without comparators, which on e have no labels"]),
    ],
)  # fmt: skip
def test_a_sweep_is_announced(balls: Any, uncompared: Any, said: list[str]) -> None:
    made = console.Console()
    made.out, file = terminal(300)
    sweep: Any = estimating(balls)
    runs = [run("1", "e", "p"), run("2", "f", "p"), run("3", "f", "q")]
    skipped = [{"player": "r", "environment": "e", "reason": "too\nlarge"}]
    vars(sweep.plan).update(runs=runs, data={}, uncompared=uncompared, skipped=skipped)
    vars(sweep.spec).update(name="n", repetitions=1, rounds=2000)
    made._announce(sweep)
    assert file.getvalue().splitlines() == [
        "n: 3 runs = 2 environments x 2 player settings x 1 repetition, 2,000 rounds each",
        *said,
        "skipped: r on e: too large",
    ]


# ---------------------------------------------------------------------------------------------------------------- rankings

NONE = Interval(math.nan, math.nan, math.nan, 0, "none")


def standing(**keys: Any) -> Any:
    there = {
        "environment": "e", "kind": "bit", "rank": "1", "label": "p", "settings": "", "among": 1, "held_out": True,
        "mistakes": Interval(0.05, 0.04, 0.06, 3, "t"), "behind_first": NONE, "seconds_per_round": 1.234e-6,
        "repeated": math.nan, "constant": False, "below_constant": False,
    }  # fmt: skip
    return SimpleNamespace(**there | keys)


def share(mean: float, off: float = math.nan) -> Interval:
    return Interval(mean, mean - off, mean + off, 3, "t")


@pytest.mark.parametrize(
    ("keys", "again", "expected"),
    [
        ({}, False, ("1", "p", "", "5.00 (4.00 to 6.00)", "", "1.23")),
        ({"mistakes": share(0.0996)}, False, ("1", "p", "", "9.96", "", "1.23")),
        ({"mistakes": share(0.1)}, False, ("1", "p", "", "10.0", "", "1.23")),
        ({"mistakes": share(0.5, 0.25)}, False, ("1", "p", "", "50.0 (25.0 to 75.0)", "", "1.23")),
        ({"behind_first": share(0.0)}, False, ("1", "p", "", "5.00 (4.00 to 6.00)", "", "1.23")),
        ({"behind_first": share(-0.1)}, False, ("1", "p", "", "5.00 (4.00 to 6.00)", "", "1.23")),
        ({"behind_first": share(0.004)}, False, ("1", "p", "", "5.00 (4.00 to 6.00)", "+0.40", "1.23")),
        ({"behind_first": share(0.0996)}, False, ("1", "p", "", "5.00 (4.00 to 6.00)", "+9.96", "1.23")),
        ({"behind_first": share(0.1)}, False, ("1", "p", "", "5.00 (4.00 to 6.00)", "+10.0", "1.23")),
        ({"repeated": 0.1234}, True, ("1", "p", "", "5.00 (4.00 to 6.00)", "", "12.34")),
        ({"repeated": 0.1234, "mistakes": share(0.5)}, True, ("1", "p", "", "50.0", "", "12.3")),
        ({"rank": "2=", "settings": "B=1", "below_constant": True}, False,
         ("2=", "p †", "B=1", "5.00 (4.00 to 6.00)", "", "1.23")),
        ({"constant": True}, False, ("1", "p", "", "5.00 (4.00 to 6.00)", "", "")),
    ],
)  # fmt: skip
def test_a_row_of_the_ranking(keys: dict[str, Any], again: bool, expected: tuple[str, ...]) -> None:
    assert cells(standing(**keys), again) == expected
    assert cells(standing()) == cells(standing(), False)


def test_a_ranking_is_a_table_for_each_environment_and_kind() -> None:
    rows = [
        standing(),
        standing(label="q", rank="2", repeated=0.5),
        standing(kind="label", label="told"),
        standing(environment="f", label="other", rank="?"),
    ]
    out, file = terminal(120)
    print_ranking(out, rows)
    lines = [line for line in file.getvalue().splitlines() if line]
    heads = [line for line in lines if line.startswith(("e", "f"))]
    assert heads == ["e", "e (players that are told the label)", "f"]
    titles = [line for line in lines if "mistakes % (95" in line]
    assert ["repeats %" in line for line in titles] == [True, False, False]
    assert ["us/round" in line for line in titles] == [False, True, True]
    at = lines.index("f")
    assert lines[at + 1 : at + 4] == [
        f"   player  setting  {'mistakes % (95 %)':>19}  behind  us/round",
        "─" * 57,
        f"?  other            5.00 (4.00 to 6.00)  {'':6}  {1.23:>8}",
    ]
    assert lines[-2:] == [
        "mistakes % is of the first showing of each row, which is ranked; repeats % of the others",
        "? is an order without evidence: one repetition has no interval",
    ]


def test_a_table_is_whole_where_a_line_has_no_room_for_its_numbers() -> None:
    out, file = terminal(12)
    print_ranking(out, [standing(label="a")])
    lines = [line for line in file.getvalue().splitlines() if line]
    assert lines[1:] == [
        f"   player    {'mistakes % (95 %)':>19}",
        "     settin",
        "     g",
        "─" * 32,
        f"1  {'a':8}  5.00 (4.00 to 6.00)",
    ]


@pytest.mark.parametrize("what", ["sweep", "merge", "status", "list", "describe", "check"])
def test_numbers_have_no_colours_and_names_no_smileys(
    what: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")
    name = "a:key:b 'x' 1,234 /a/path"
    entry = SimpleNamespace(
        id=name, kind="agents", origin="./lab", load=lambda: SimpleNamespace(summary="12 'y'", group="")
    )
    if what == "sweep":
        console.Console().out.print(name)
    elif what == "merge":
        merged = {
            "runs": 1,
            "wanted": 2,
            "damaged": [name],
            "unfinished": {},
            "missing_shards": [],
            "of": 3,
            "failed": 0,
        }
        monkeypatch.setattr("banditlab.results.merge.merge", lambda parts, folder: SimpleNamespace(**merged))
        console.print_merge([], tmp_path)
    elif what == "status":
        plan = {"runs": ["a"], "streams": [], "skipped": []}
        monkeypatch.setattr(console, "read_plan", lambda folder: plan)
        monkeypatch.setattr(console, "damaged_files", lambda folder: [name])
        monkeypatch.setattr(console, "finished_runs", lambda folder: {"a"})
        console.print_status(tmp_path)
        console.watch_status(tmp_path / "a:key:b", 1.0)
    elif what == "list":
        monkeypatch.setattr(listing, "registry", lambda: SimpleNamespace(entries=lambda kind: [entry]))
        listing.print_list("forecasters")
    elif what == "describe":
        monkeypatch.setattr(listing, "_describe_entry", lambda out, entry: out.print(name))
        listing.print_description("uniform")
    else:
        result = CheckResult(name, "one", "passed")
        monkeypatch.setattr(checking, "_results", lambda subject, settings: iter([result]))
        checking.print_checks("me", settings=[])
    told = capsys.readouterr().out
    if what == "check":  # names of checks hold no colons
        assert "\x1b" not in told
    else:
        assert "a:key:b" in told
        assert "\x1b[36m" not in told
        assert "\x1b[1;36m" not in told
        assert "\x1b[32m" not in told


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({}, None),
        ({"below_constant": True}, "†"),
        ({"among": 2}, "each player at the best of its settings"),
        ({"among": 2, "held_out": False}, None),
        ({"rank": "1="}, "= is a tie"),
        ({"rank": "?"}, "? is an order"),
        ({"repeated": 0.5}, "mistakes % is of the first showing"),
    ],
)
def test_signs_are_explained_where_they_stand(keys: dict[str, Any], word: str | None) -> None:
    said = ranking._signs([standing(**keys), standing()])
    assert [sentence.startswith(word or "?") for sentence in said] == ([True] if word else [])


HEAD = ("", "player", "setting", "m", "b", "u")


def test_a_line_has_room_to_the_last_column() -> None:
    row = ("1", "abc", "x=1", "10.0", "+1", "5")
    [head], [line] = ranked_lines([HEAD, row], 31)
    assert (head, line) == ("   player  setting     m   b  u", "1  abc     x=1      10.0  +1  5")
    head_lines, lines = ranked_lines([HEAD, row], 30)
    assert head_lines == ["   player             m   b  u", "     setting"]
    assert lines == ["1  abc  x=1        10.0  +1  5"]


@pytest.mark.parametrize(
    ("room", "last", "first"),
    [
        (40, "5", 24),  # beside all numbers
        (39, "+1", 26),
        (37, "+1", 24),
        (36, "10.0", 27),
        (18, "10.0", 9),
        (17, "10.0", 8),
        (5, "10.0", 8),
    ],
)  # fmt: skip
def test_a_player_has_twenty_four_columns_or_numbers_go(room: int, last: str, first: int) -> None:
    _, lines = ranked_lines([HEAD, ("1", "a" * 40, "x=1", "10.0", "+1", "5")], room)
    found = lines[0].split()
    assert (found[-1], len(found[1])) == (last, first)
    assert "".join("".join(line.split()) for line in [lines[0].split()[1], *lines[1:]]) == "a" * 40 + "x=1"
    assert all(line.startswith("   a") or line == "     x=1" for line in lines[1:])


def test_a_setting_goes_below_and_in() -> None:
    _, lines = ranked_lines([HEAD, ("1", "abcdefgh", "k=12345 l=1", "10.0", "", "")], 20)
    assert lines == ["1  abcdefgh     10.0", "     k=12345", "     l=1"]


def test_words_fit_to_the_last_column() -> None:
    assert (folded("B=10 γ=1", 8), folded("B=10 γ=1", 7)) == (["B=10 γ=1"], ["B=10", "γ=1"])
    assert folded("a bcdef", 3, whole_words=True) == ["a", "bcdef"]
    assert folded("a bcdef g", 3) == ["a", "bcd", "ef", "g"]


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
    lines = fault_lines(error, "t.csv", {"--rounds": 300, "-j": None, "--dry-run": True, "-o": "my out", "--x": False})
    assert lines == [
        "banditlab: t.csv has 3 faults:",
        "  * one",
        f"  * {' '.join(['two-words'] * 7)}",
        f"    {' '.join(['two-words'] * 5)}",
        f"  * {'w' * 100}",
        "corrected: banditlab compare t.csv --rounds 300 --dry-run -o 'my out'",
    ]
    assert fault_lines(FaultyTableError(["t.csv: one"], ""), "t.csv", {}) == ["banditlab: t.csv: one"]


def test_sentences_of_a_comparison_are_wrapped() -> None:
    survey = SimpleNamespace(notes=[Note("a", "numeric")], sentences=["s " * 50])
    made: Any = SimpleNamespace(sentences=["t " * 50, ""], survey=survey, left_out=["x: " + "why " * 30])
    lines = table_view.comparison_lines(made)
    assert lines[:2] == ["notice: " + ("t " * 36).strip(), "  " + ("t " * 14).strip()]
    assert lines[2:5] == ["notice:", "columns:", "  a  numeric"]
    assert lines[-1] == "(--agents a,b,c plays those, --agents all every one)"
    assert sum(line.startswith("left out: x: why") for line in lines) == 1
    bare: Any = SimpleNamespace(sentences=[], survey=None, left_out=[])
    assert table_view.comparison_lines(bare) == []
    assert table_view._wrapped("a-b-c " + "d" * 90) == ["a-b-c", "  " + "d" * 90]
    assert table_view._wrapped("") == [""]


# ------------------------------------------------------------------------------------------------------- checks and options


@pytest.mark.parametrize(
    ("every", "code", "last"),
    [
        (False, 1, "2 passed or excluded with a reason, then this; mend it and check again (--all goes on)"),
        (True, 1, "3 passed or excluded with a reason, 2 failed"),
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
    assert capsys.readouterr().out.endswith("2 passed or excluded with a reason, 0 failed\n")


def test_a_line_of_a_check_is_whole_in_a_pipe(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(checking, "_results", lambda *_: iter([CheckResult("me", "one", "passed", "x " * 100)]))
    checking.print_checks("me", settings=[])
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ([], {}),
        (["a=1", " b = [1, 2]", "c=x y ", "d="], {"a": 1, "b": [1, 2], "c": "x y", "d": ""}),
        (["e=f=g"], {"e": "f=g"}),
    ],
)
def test_settings_are_read(written: list[str], found: dict[str, Any]) -> None:
    assert checking._read(written) == found


@pytest.mark.parametrize("written", ["a", "=1", " =1", ""])
def test_what_is_no_setting_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="must be key=value"):
        checking._read([written])
    with pytest.raises(UsageError, match="="):
        policies._settings([written])


def test_parts_of_a_sweep_are_written_as_i_of_n() -> None:
    assert [main._part(text) for text in (None, "1/1", "2/3", "3/3")] == [None, (1, 1), (2, 3), (3, 3)]
    for text in ("0/3", "4/3", "x/3", "1/y", "-1/3", "1", "/", "1/"):
        with pytest.raises(UsageError, match=f"--shard {text}: must be i/n with 1 <= i <= n"):
            main._part(text)


def test_the_live_page_has_a_port_where_it_is_wanted() -> None:
    assert [main._port(*asked, False) for asked in ((False, None), (True, None), (False, 80), (True, 80), (False, 0))] == [
        None, 0, 80, 80, 0
    ]  # fmt: skip
    assert main._port(False, None, True) is None
    for asked in ((True, None), (False, 80)):
        with pytest.raises(UsageError, match="with --dry-run nothing does"):
            main._port(*asked, True)


def test_cores_are_those_of_the_machine_or_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert main._cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert main._cores() == 1


def test_table_settings_that_options_stand_for() -> None:
    nothing = main._table(None, None, None, None, None, None, None, None, None, None, None)
    assert set(nothing.values()) == {None}
    some = main._table(["a=b=time"], True, "csv", "utf-8", ";", ",", [3], ["x"], 4, "drop_rows", "none")
    assert (some["roles"], some["header"], some["drop_rows"], some["drop_columns"]) == (
        {"a=b": "time"},
        "yes",
        [3],
        ["x"],
    )
    assert main._table([], False, None, None, None, None, [], [], None, None, None) == nothing | {"header": "no"}
    with pytest.raises(UsageError, match="--role must be COLUMN=ROLE"):
        main._roles(["a"])


DEFAULTS = {
    "options": {"version": False},
    "run": {"dry_run": False, "report": True, "patience": 120.0, "live": False, "jobs": None, "shard": None},
    "compare": {"repetitions": 10, "dry_run": False, "patience": 120.0, "live": False},
    "_run_or_estimate": {"report": True, "cluster": None, "patience": 120.0, "part": None, "live": None},
    "train": {"seed": 0},
    "serve": {"port": 8080},
    "status": {"watch": False, "every": 5.0, "picture": None},
    "export": {"latex": False, "csv": False, "parquet": False, "png": False, "to": None},
    "check": {"every": False},
    "notebook": {"name": "quickstart", "open_": True},
    "new_agent": {"compiled": False},
}
"""What a command does where an option is left out."""


@pytest.mark.parametrize("command", DEFAULTS)
def test_what_is_left_out(command: str) -> None:
    parameters = inspect.signature(getattr(main, command)).parameters
    assert {name: parameters[name].default for name in DEFAULTS[command]} == DEFAULTS[command]


def test_constructors_leave_out_the_same() -> None:
    assert inspect.signature(console.Console.run_sweep).parameters["report"].default is True
    assert inspect.signature(live.Live).parameters["port"].default == 0
    assert listing.EXAMPLE == (10, 3, 1.0, 10_000)
    assert main.app.info.no_args_is_help is True
    assert main.new.info.no_args_is_help is True
    assert (main.app._add_completion, main.app.pretty_exceptions_enable) == (True, False)


@pytest.mark.parametrize(("cluster", "jobs", "refused"), [("a", 2, True), ("a", None, False), (None, 2, False)])
@pytest.mark.parametrize("part", [None, (2, 3)])
def test_a_sweep_goes_where_it_is_asked_to(
    cluster: Any, jobs: Any, refused: bool, part: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    asked: list[Any] = []

    class Shown:
        def run_sweep(self, sweep: Any, folder: Path, report: bool, port: Any, **options: Any) -> int:
            asked.append((folder, report, port, options))
            return 3

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "_cores", lambda: 5)
    monkeypatch.setattr(console, "Console", Shown)
    monkeypatch.setattr(console, "print_dry_run", lambda sweep, jobs, folder: asked.append((jobs, folder)))
    monkeypatch.setattr("banditlab.engine.Sweep", lambda spec, where: (spec, where))
    spec = SimpleNamespace(name="n")
    if refused:
        with pytest.raises(UsageError, match="-j is for this machine"):
            main._run_or_estimate(spec, "w", None, jobs, False, cluster=cluster)
        return
    name = "n" if part is None else "n-2-of-3"
    main._run_or_estimate(spec, "w", None, jobs, True, cluster=cluster, part=part)
    with pytest.raises(typer.Exit) as caught:
        main._run_or_estimate(spec, "w", Path("o"), jobs, False, cluster=cluster, part=part)
    assert caught.value.exit_code == 3
    options = {"jobs": jobs or 5, "cluster": cluster, "patience": 120.0, "shard": part}
    assert asked == [(jobs or 5, Path("results") / name), (Path("o"), True, None, options)]


@pytest.mark.parametrize(("width", "below"), [(40, False), (41, True)])
def test_a_list_has_headings_and_columns_where_there_is_room(width: int, below: bool) -> None:
    out, file = terminal(80)
    listing._print_sections(out, {"One": [("a" * width, "sum", "me")], "Two": [("b", "more", "you")]})
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert (lines[0], lines.index("Two") > 1, lines[lines.index("Two") - 1]) == ("One", True, "")
    assert (lines[1] == "a" * width) == below
    assert ("    sum (me)" in lines) == below
    assert below or lines[-1].split() == ["b", "more", "you"]


# ------------------------------------------------------------------------------------------------------------- policies


def test_a_token_is_the_first_line_of_a_file_or_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BANDITLAB_TOKEN", raising=False)
    assert policies._token(None) == ""
    monkeypatch.setenv("BANDITLAB_TOKEN", "of the environment")
    assert policies._token(None) == "of the environment"
    file = tmp_path / "token"
    for text, token in (("secret", "secret"), (" secret \nmore\n", "secret"), ("a\n\n", "a")):
        file.write_text(text)
        assert policies._token(file) == token
    for text in ("", "\n", " \nsecret\n"):
        file.write_text(text)
        with pytest.raises(UsageError, match="its first line is empty"):
            policies._token(file)
    file.write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"cannot be read \(no text\)"):
        policies._token(file)


@pytest.mark.parametrize("log", ["", "events.db"])
def test_a_policy_is_served_with_its_log_or_a_notice(log: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    import contextlib
    import warnings

    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module)
    seen: list[Any] = []
    monkeypatch.setattr("banditlab.policy.policy.Policy.open", lambda *asked, **_: contextlib.nullcontext(asked))
    monkeypatch.setattr("banditlab.policy.policy.Policy.load", lambda asked: contextlib.nullcontext(asked))
    monkeypatch.setattr("banditlab.policy.server.serve", lambda opened, **keys: seen.append(keys))
    with warnings.catch_warnings():
        policies.serve(Path("p"), log, "127.0.0.1", 80, None)
        policies._notice("two\nlines")
    assert seen == [{"host": "127.0.0.1", "port": 80, "token": os.environ.get("BANDITLAB_TOKEN", "")}]
    told = capsys.readouterr()
    assert ("without --log decisions and answers are gone" in told.err) == (not log)
    assert (told.out, told.err.splitlines()[-1]) == ("", "notice: two lines")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UsageError, match=r"^serve needs uvicorn: pip install uvicorn$"):
        policies.serve(Path("p"), log, "127.0.0.1", 80, None)


# ------------------------------------------------------------------------------------------------------------- notebooks


@pytest.mark.parametrize(
    ("programs", "display", "called"),
    [
        ({"jupyter-lab", "jupyter-notebook", "xdg-open"}, "", ["jupyter-lab"]),
        ({"jupyter-notebook"}, "", ["jupyter-notebook"]),
        ({"xdg-open"}, ":0", ["xdg-open"]),
        ({"xdg-open"}, "", []),
        (set(), ":0", []),
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_a_notebook_is_opened_by_what_is_there(
    programs: set[str], display: str, called: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def ran(words: list[str], check: bool) -> Any:
        assert not check
        seen.append(words[0])
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(notebooks.sys, "platform", "linux")
    monkeypatch.setattr(notebooks.shutil, "which", lambda name: name if name in programs else None)
    monkeypatch.setattr(notebooks.subprocess, "run", ran)
    monkeypatch.setenv("DISPLAY", display)
    assert notebooks.open_file(Path("a.ipynb")) == (bool(called) and code == 0)
    assert seen == called


# -------------------------------------------------------------------------------------------------------------- live page


def test_results_are_read_a_tenth_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = [100.0]

    class Page(live.Live):
        def __init__(self) -> None:
            self.planned, self.folder, self.progress = {}, tmp_path, None  # type: ignore[assignment]
            self._next = 0.0

    def load(folder: Path) -> None:
        now[0] += took

    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("banditlab.analysis.tables.load", load)
    monkeypatch.setattr("banditlab.analysis.live.ranking_so_far", lambda results, planned: "r")
    page = Page()
    for seconds, until in ((0.05, 101.05), (0.5, 105.55)):
        took = seconds
        page._read()
        assert page._next == pytest.approx(until)
    assert page._progress_words() == ("starting", (0, 1))
    assert page._notices() == []
    page.progress = progress(runs=0, streams=0, playing_since=None, seconds=1200.0, notices=["a"])
    assert page._progress_words() == ("playing, 1,200 s so far", (0, 1))
    page.progress = progress(runs_done=3, streams_done=1, playing_since=None)
    assert page._progress_words()[1] == (4, 6)
    page.progress = progress(runs_done=5, streams_done=2, playing_since=None)
    assert page._progress_words()[1] == (6, 6)


@pytest.mark.parametrize(("since", "waits"), [(4.9, [5.0]), (5.0, []), (1e9, [])])
def test_an_open_page_is_told_the_end(since: float, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    seen: list[float] = []

    class Page(live.Live):
        def __init__(self) -> None:
            self._lock, self._asked = threading.Lock(), 2e9 - since
            self._told = SimpleNamespace(wait=seen.append)  # type: ignore[assignment]

    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: 2e9))
    page = Page()
    page.finish("it has ended")
    assert (page.ended, page._next, seen) == ("it has ended", 0.0, waits)
