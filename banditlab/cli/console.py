"""What the command line prints: progress, tables, lists. On a terminal with colours and a bar, elsewhere as plain lines."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich.console
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column, Table

from banditlab.engine import Progress, Result, Sweep
from banditlab.errors import UsageError
from banditlab.results.reading import check_format, damaged_files, finished_runs, read_failure, read_plan
from banditlab.results.store import Store

if TYPE_CHECKING:
    from banditlab.analysis.summary import Standing

PLAIN_EVERY = 10.0  # seconds between progress lines where there is no terminal
WORKERS_START = 2.0  # seconds until processes of workers have imported what they need
WIDE = 100  # columns of a terminal whose progress line has room for a rate


class Console:
    """Runs sweeps and reports with a person watching."""

    def __init__(self) -> None:
        self.out = rich.console.Console(highlight=False, soft_wrap=False)

    def run_sweep(self, sweep: Sweep, folder: Path, report: bool = True, **options: Any) -> int:
        """Run with the options of `Sweep.run`, then report and print the ranked table unless they are not wanted.

        Return the exit code.
        """
        for notice in Store(folder).notices:  # a folder that cannot be used is said before anything else
            self.out.print(escape(f"notice: {notice}"), soft_wrap=True)
        self._announce(sweep)
        try:
            if self.out.is_terminal:
                result = self._with_bar(sweep, folder, options)
            else:
                result = sweep.run(folder, watch=_PlainLines(self.out), **options)
        except KeyboardInterrupt:
            self.out.print("interrupted; finished runs are stored, and the same command does the rest")
            return 130
        self._say_result(result, folder)
        if report and result.present + result.played:
            self.report(folder)
        return self._say_failures(result)

    def report(self, folder: Path) -> None:
        """Print the ranked table of a results folder, write its report, and print where that is."""
        from banditlab.analysis import load, summary_rows, write_report
        from banditlab.analysis.sentences import warnings

        results = load(folder)
        self._print_ranking(summary_rows(results))
        for sentence in warnings(results):
            self.out.print(escape(f"warning: {sentence}"), soft_wrap=True)
        begin = time.perf_counter()
        page = write_report(results)
        self.out.print(f"report.html written in {time.perf_counter() - begin:.0f} s: {page}", soft_wrap=True)

    # -------------------------------------------------------------------------------------------------------------- pieces

    def _announce(self, sweep: Sweep) -> None:
        plan = sweep.plan
        environments = len({run.environment_label for run in plan.runs})
        players = len({(run.label, str(run.written)) for run in plan.runs})
        self.out.print(
            f"{sweep.spec.name}: {_many(len(plan.runs), 'run')} = {_many(environments, 'environment')} x "
            f"{_many(players, 'player setting')} x {_many(sweep.spec.repetitions, 'repetition')}, "
            f"{_many(sweep.spec.rounds, 'round')} each",
            soft_wrap=True,
        )
        from banditlab.analysis.words import facts_of_data

        for label, facts in plan.data.items():
            self.out.print(escape(f"{label}: {facts_of_data(facts, sweep.spec.rounds)}"), soft_wrap=True)
        if sweep.balls:
            balls = ", ".join(f"{ball:g}" for ball in sweep.balls)
            self.out.print(
                f"and for each of {_many(len(plan.streams()), 'stream')} the comparators: the best logistic models in "
                f"hindsight, norm bounds {balls}",
                soft_wrap=True,
            )
        elif not plan.uncompared:
            self.out.print("without comparators (norm_bounds = [])")
        for label, reason in plan.uncompared.items():  # the user may not have been asked for norm bounds at all
            self.out.print(escape(f"without comparators, which on {label} have {reason}"), soft_wrap=True)
        for pair in plan.skipped:
            line = one_line(f"skipped: {pair['player']} on {pair['environment']}: {pair['reason']}")
            self.out.print(escape(line), soft_wrap=True)

    def _with_bar(self, sweep: Sweep, folder: Path, options: dict[str, Any]) -> Result:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            TextColumn("{task.fields[done]}"),
            TimeElapsedColumn(table_column=Column(min_width=len("0:00:00"))),
            TextColumn("{task.fields[left]}"),
        )
        with Bar(*columns, console=self.out) as bar:
            line = bar.add_task("starting", total=None, done="", left="")

            noticed = _Notices(self.out)

            def watch(progress: Progress) -> None:
                noticed(progress)
                bar.update(
                    line,
                    description=escape(_stage(progress)),
                    total=progress.runs + progress.streams,
                    completed=progress.runs_done + progress.streams_done,
                    done=_done(progress, rate=self.out.width >= WIDE),
                    left=_left(progress),
                )

            return sweep.run(folder, watch=watch, **options)

    def _say_result(self, result: Result, folder: Path) -> None:
        if result.kept:
            self.out.print(
                f"notice: this folder held the report of another comparison, which is kept in {escape(str(result.kept))}",
                soft_wrap=True,
            )
        for notice in result.notices:
            self.out.print(escape(f"notice: {notice}"), soft_wrap=True)
        were = "was" if result.present == 1 else "were"
        self.out.print(
            f"{_many(result.present, 'run')} {were} there already, {result.played:,} played now in {result.seconds:.0f} s; "
            f"results in {escape(str(folder))}",
            soft_wrap=True,
        )

    def _say_failures(self, result: Result) -> int:
        for failure in result.failures:
            settings = ", ".join(f"{k}={v}" for k, v in failure["settings"].items())
            what = f"{failure['player']}({settings})" if settings else failure["player"]
            where = f"{failure['environment']}, repetition {failure['repetition']}"
            self.out.print(escape(one_line(f"failed: {what} on {where}: {failure['error']}")), soft_wrap=True)
        if result.failures:
            self.out.print(
                f"{len(result.failures)} failed (tracebacks in {result.folder / 'failed'}); the others are kept"
            )
        return 1 if result.failures else 0

    def _print_ranking(self, rows: list[Standing]) -> None:
        from banditlab.analysis.words import environment_title

        for environment, kind in dict.fromkeys((row.environment, row.kind) for row in rows):
            told = {"bit": "", "reference": " (for scale, unranked: the label is seen)"}.get(
                kind, " (players that are told the label)"
            )
            table = Table(
                box=SIMPLE_HEAD,
                pad_edge=False,
                padding=(0, 1, 0, 0),
                title=escape(f"{environment_title(environment)}{told}"),
                title_justify="left",
            )
            mine = [row for row in rows if (row.environment, row.kind) == (environment, kind)]
            again = any(not math.isnan(row.repeated) for row in mine)
            cells = [_cells(row, again) for row in mine]
            numbers = ("mistakes % (95 %)", "behind", "repeats %" if again else "us/round")  # both do not fit
            names = ("", "player", "setting", *numbers)
            widths = _widths([names, *cells], self.out.width)
            for i, (name, width) in enumerate(zip(names, widths, strict=True)):
                table.add_column(name, justify="right" if i > 2 else "left", no_wrap=True, width=width)
            for row, line in zip(mine, cells, strict=True):
                table.add_row(*map(escape, line), style="dim" if row.constant else None)
            self.out.print(table)
        if any(not math.isnan(row.repeated) for row in rows):
            self.out.print("mistakes % is of the first showing of each row, which is ranked; repeats % of the others")
        if any(row.below_constant for row in rows):
            self.out.print("† makes more mistakes than always playing the most frequent class (known in hindsight)")
        if any(row.among > 1 and row.held_out for row in rows):
            self.out.print(
                "each player at the best of its settings, chosen for each half of the repetitions on the other half"
            )
        if any("=" in row.rank for row in rows):
            self.out.print("= is a tie: the interval of the difference, one of all pairs at once, contains 0")
        if any(row.rank == "?" for row in rows):
            self.out.print("? is an order without evidence: one repetition has no interval")


def _widths(lines: Sequence[tuple[str, ...]], room: int) -> list[int]:
    """Return the widths of the ranking's columns: a narrow terminal cuts names and settings, never a number."""
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(lines[0]))]
    left = max(16, room - sum(widths) + widths[1] + widths[2] - 2 * len(widths))  # two spaces beside each column
    widths[1] = min(widths[1], left - min(widths[2], left // 2))
    widths[2] = min(widths[2], left - widths[1])
    return widths


def _cells(row: Standing, again: bool = False) -> tuple[str, ...]:
    share, behind = row.mistakes.scaled(100), row.behind_first.scaled(100)
    digits = 2 if share.mean < 10 else 1
    interval = f" ({share.low:.{digits}f} to {share.high:.{digits}f})" if math.isfinite(share.low) else ""
    gap = f"+{behind.mean:.{2 if behind.mean < 10 else 1}f}" if behind.mean > 0 else ""
    label = f"{row.label}{' †' if row.below_constant else ''}{' (unverified)' if row.unverified else ''}"
    last = f"{100 * row.repeated:.{digits}f}" if again else f"{1e6 * row.seconds_per_round:.3g}"
    return (row.rank, label, row.settings, f"{share.mean:.{digits}f}{interval}", gap, "" if row.constant else last)


class _PlainLines:
    """Progress as lines of text, at most one every few seconds."""

    def __init__(self, out: rich.console.Console) -> None:
        self.out, self.last, self.stage = out, -PLAIN_EVERY, ""
        self.noticed = _Notices(out)

    def __call__(self, progress: Progress) -> None:
        self.noticed(progress)
        done = progress.runs_done + progress.streams_done
        total = progress.runs + progress.streams
        if total and (progress.seconds - self.last >= PLAIN_EVERY or (done == total != 0 and self.stage != "all")):
            self.last = progress.seconds
            self.stage = "all" if done == total else progress.stage
            parts = (f"{progress.seconds:5.0f} s", _done(progress), _left(progress), _stage(progress))
            self.out.print(escape("  ".join(filter(None, parts))), soft_wrap=True)


class _Notices:
    """What comes up while a sweep runs, each line once."""

    def __init__(self, out: rich.console.Console) -> None:
        self.out, self.said = out, 0

    def __call__(self, progress: Progress) -> None:
        for line in progress.notices[self.said :]:
            self.out.print(escape(f"notice: {one_line(line)}"), soft_wrap=True)
        self.said = len(progress.notices)


def _stage(progress: Progress) -> str:
    """Return what is going on, and of a cluster who does it."""
    state = progress.cluster
    if state is None:
        return progress.stage
    lost = f", {state.deaths:,} lost" if state.deaths else ""
    there = f"{_many(state.workers, 'worker')}{lost}, {_many(state.in_flight, 'task')} in flight"
    return f"{progress.stage} ({there})"


def _done(progress: Progress, *, rate: bool = True) -> str:
    """Return how much is done, runs and comparators apart; nothing while kernels are compiled."""
    if progress.playing_since is None:
        return ""
    shown = f"{progress.runs_done:,}/{_many(progress.runs, 'run')}"
    if progress.streams:
        shown += f", {progress.streams_done:,}/{_many(progress.streams, 'stream')} compared"
    if progress.failed:
        shown += f", {progress.failed:,} failed"
    return f"{shown}, {progress.rounds_per_second:,.0f} rounds/s" if rate else shown


def _left(progress: Progress) -> str:
    """Return how long the rest should take, where there is a rest and anything to judge it by."""
    ahead, rest = progress.seconds_ahead, progress.runs + progress.streams - progress.runs_done - progress.streams_done
    return "" if ahead is None or not rest else f"about {math.ceil(ahead)} s left"


def print_dry_run(sweep: Sweep, jobs: int, folder: Path) -> None:
    """Print what a sweep would do, what of it `folder` has already, and how long the rest should take."""
    console = Console()
    console._announce(sweep)
    check_format(folder)
    finished = finished_runs(folder) if folder.is_dir() else set()
    done = Counter((run.environment_label, run.label) for run in sweep.plan.runs if run.run_id in finished)
    if finished:
        console.out.print(
            escape(f"{done.total():,} of {_many(len(sweep.plan.runs), 'run')} done already in {folder}"), soft_wrap=True
        )
    table = Table()
    several = len({run.environment_label for run in sweep.plan.runs}) > 1
    for name in (*(["environment"] if several else []), "player"):
        table.add_column(name)
    for name in ("runs", *(["done"] if finished else []), "s/run", "core-min"):
        table.add_column(name, justify="right")
    total = 0.0
    for row in sweep.estimate():
        n_done = done[row.environment, row.label]
        seconds = (row.runs - n_done) * row.seconds_per_run
        total += seconds
        counts = (f"{row.runs:,}", f"{n_done:,}") if finished else (f"{row.runs:,}",)
        cells = (row.label, *counts, f"{row.seconds_per_run:.3g}", _minutes(seconds))
        table.add_row(*map(escape, ((row.environment,) if several else ()) + cells))
    console.out.print(table)
    _print_estimate(console.out, sweep, total, jobs, whole=not finished)


def _print_estimate(out: rich.console.Console, sweep: Sweep, play: float, jobs: int, whole: bool) -> None:
    """Print what is left of the play (core-seconds), the comparators, and both with so many jobs."""
    n = len(sweep.plan.streams()) * len(sweep.balls) * len(sweep.spec.checkpoint_rounds())
    compared = sweep.estimate_comparators() if n else 0.0
    parts = [f"{_long(play)} of play"]
    if n:
        known = f"{_long(compared)} for " if not math.isnan(compared) else "what is not estimated for "
        parts.append(f"{known}{_many(n, 'comparator')} (one for each stream, norm bound and checkpoint)")
    both = (play + (0.0 if math.isnan(compared) else compared)) / jobs + (WORKERS_START if jobs > 1 else 0.0)
    out.print(
        f"estimate: {' and '.join(parts)} on one core; about {_long(both)} with -j {jobs}"
        + ("" if whole or not n else ", comparators that are done counted in")
        + "; compiling, the first time only, and the report are not in it",
        soft_wrap=True,
    )


def _long(seconds: float) -> str:
    """Return "0.4 s", "12 s", "3.5 minutes", "2.1 hours"."""
    if seconds < 120.0:
        return f"{seconds:.0f} s" if seconds >= 10.0 else f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200.0 else f"{seconds / 3600:.1f} hours"


def _minutes(seconds: float) -> str:
    """Return minutes with two digits, and a little as "<0.01": 0.00 would read as nothing at all."""
    minutes = seconds / 60
    return f"{minutes:.2f}" if minutes >= 0.01 or seconds == 0 else "<0.01"


def _many(n: int, what: str) -> str:
    """Return "1 run", "2,000 runs"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def one_line(text: object) -> str:
    """Return a text without its line breaks."""
    return " ".join(str(text).split())


def print_status(folder: Path) -> int:
    """Print what a results folder holds; return 1 if runs are missing or failed."""
    from banditlab.results.schema import FORMAT

    if not (folder / "runs.json").exists():
        raise UsageError(f"{folder}: not a results folder (no runs.json); make one with `banditlab run`")
    plan, damaged = read_plan(folder), damaged_files(folder)
    done = finished_runs(folder)
    failed = {file.stem for file in folder.glob("failed/*.json")}
    wanted = plan["runs"]
    n_done, n_failed = sum(r in done for r in wanted), sum(r in failed for r in wanted + plan["streams"])
    out = rich.console.Console(highlight=False)
    summary = f"{folder}: {n_done:,} of {_many(len(wanted), 'run')} done, {n_failed:,} failed, store format {FORMAT}"
    out.print(escape(summary), soft_wrap=True)
    for name in damaged:
        out.print(
            escape(f"damaged: {name}; `banditlab run` sets it aside, and does again what it alone held"), soft_wrap=True
        )
    others = _many(len(done - set(wanted)), "run")
    out.print(f"{_many(len(plan['skipped']), 'pair')} skipped, {others} of other specs in the folder")
    for run_id in sorted(set(wanted + plan["streams"]) & failed):
        record = read_failure(folder / "failed" / f"{run_id}.json")
        line = one_line(f"failed: {record['player']} on {record['environment']}: {record['error']}")
        out.print(escape(line), soft_wrap=True)
    return 0 if n_done == len(wanted) and not n_failed else 1


def watch_status(folder: Path, every: float) -> None:
    """Say in a line every few seconds how far a sweep is, which another process plays, until nothing is missing."""
    out = rich.console.Console(highlight=False)
    began: tuple[float, int] | None = None
    while True:
        plan = read_plan(folder)
        wanted = set(plan["runs"])
        done = len(finished_runs(folder) & wanted)
        failed = sum(file.stem in wanted for file in folder.glob("failed/*.json"))
        now = time.monotonic()
        began = began or (now, done)
        rate = (done - began[1]) / (now - began[0]) if now > began[0] else 0.0
        parts = [f"{done:,}/{_many(len(wanted), 'run')}", f"{failed:,} failed" if failed else ""]
        if rate:
            parts += [f"{rate:,.3g} runs/s", f"about {math.ceil((len(wanted) - done) / rate)} s left"]
        out.print(escape("  ".join(filter(None, (time.strftime("%H:%M:%S"), *parts)))), soft_wrap=True)
        if done + failed >= len(wanted):
            return
        time.sleep(every)


def print_merge(parts: Sequence[Path], folder: Path) -> int:
    """Merge the parts of a sweep, and say what came of it; return 1 where something is missing or failed."""
    from banditlab.results.merge import merge

    merged = merge(parts, folder)
    out = rich.console.Console(highlight=False, soft_wrap=True)
    out.print(
        escape(f"{folder}: {merged.runs:,} of {_many(merged.wanted, 'run')} of the parts that were merged so far")
    )
    for name in merged.damaged:
        out.print(escape(f"damaged: {name}; the command that made the part does again what it alone held"))
    for part, lacking in merged.unfinished.items():
        out.print(escape(f"unfinished: {part} lacks {_many(lacking, 'run')}; the command that made it does the rest"))
    if merged.missing_shards:
        missing = ", ".join(f"{index}/{merged.of}" for index in merged.missing_shards)
        out.print(f"missing: {missing}; run them, and merge again")
    if merged.failed:
        out.print(f"{merged.failed:,} failed; `banditlab status {escape(str(folder))}` says which")
    whole = merged.runs == merged.wanted and not (merged.missing_shards or merged.failed)
    if whole:
        out.print(escape(f"all {merged.of} parts are there; `banditlab report {folder}` writes the report"))
    return 0 if whole else 1
