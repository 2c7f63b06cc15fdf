"""The output of the command line: progress, tables and lists, with colours and a bar on a terminal, otherwise as plain
lines.
"""

from __future__ import annotations

import contextlib
import math
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich.console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column, Table
from rich.text import Text

from banditlab.cli.plain import one_line, plain, say
from banditlab.cli.progress_words import done_of, left_of, many, stage_of
from banditlab.cli.ranking import hidden, print_across, print_ranking
from banditlab.engine import Progress, Result, Sweep
from banditlab.results.reading import check_format, damaged_files, finished_runs, read_failures, read_plan
from banditlab.results.store import Store

if TYPE_CHECKING:
    from banditlab.cli.live import Live

PLAIN_EVERY = 10.0  # seconds between progress lines without a terminal
WORKERS_START = 2.0  # seconds that worker processes take for imports
MOST_DATA = 10  # data sets of a sweep with a separate line
WIDE = 100  # width of a terminal from which the progress line shows a rate


class Console:
    """The readable output of commands that run sweeps or write reports; `notes` are remarks on a comparison's table."""

    def __init__(self, notes: Sequence[Any] = ()) -> None:
        self.out, self.notes = rich.console.Console(), notes

    def run_sweep(self, sweep: Sweep, folder: Path, report: bool, live: int | None, **options: Any) -> int:
        """Run a sweep with the options of `Sweep.run`, write the report if requested, and print the ranked table.

        `live` is the port of a page that shows the running sweep, 0 for a free port, or None for no page. Returns the
        exit code.
        """
        Store(folder)  # check first that the folder can be used
        if live is None:
            return self._run(sweep, folder, report, None, options)
        from banditlab.cli.live import Live

        shard = options.get("shard")
        page = Live(sweep.spec.name, sweep.plan if shard is None else sweep.plan.part(*shard), folder, live)
        try:
            say(self.out, f"live page, on this machine only: {page.url}")
            return self._run(sweep, folder, report, page, options)
        finally:
            page.close()

    def _run(self, sweep: Sweep, folder: Path, report: bool, page: Live | None, options: dict[str, Any]) -> int:
        _say_all(self.out, announced(sweep))
        notice = _Notices(self.out)
        try:
            with self._shown() as show:

                def watch(progress: Progress) -> None:
                    if page is not None:
                        page.progress = progress
                    notice(progress)
                    show(progress)

                result = sweep.run(folder, watch=watch, **options)
        except KeyboardInterrupt:
            say(self.out, "interrupted; finished runs are stored; the same command runs the rest")
            return 130
        _say_all(self.out, _ended(result, folder))
        written = report and bool(result.present or result.played)
        if written:
            self.report(folder)
        if page is not None:
            where = f" The report: {folder / 'report.html'}." if written else ""
            page.finish(
                f"The sweep has ended: {many(result.played, 'run')} executed, {many(len(result.failures), 'failure')}.{where}"
            )
        _say_all(self.out, _failed(result))
        return 1 if result.failures else 0

    def report(self, folder: Path) -> None:
        """Print the ranked table of a results folder, write its report, and print the path of the report."""
        from banditlab.analysis import load, summary_rows, write_report
        from banditlab.analysis.across import across
        from banditlab.analysis.alerts import alerts

        results, rows = load(folder), list[Any]()
        if (over := across(results)) is not None:
            print_across(self.out, over)
        else:
            print_ranking(self.out, rows := summary_rows(results))
        for sentence in [*alerts(results), *hidden(rows, self.notes)]:
            say(self.out, f"warning: {sentence}")
        begin = time.perf_counter()
        page = write_report(results)
        say(self.out, f"report.html written in {time.perf_counter() - begin:.0f} s: {page}")

    # -------------------------------------------------------------------------------------------------------------- pieces

    @contextlib.contextmanager
    def _shown(self) -> Iterator[Callable[[Progress], None]]:
        """Return the display of the progress: a bar on a terminal, otherwise lines."""
        if not self.out.is_terminal:
            yield _PlainLines(self.out)
            return
        columns = (
            # long text continues on the next line
            TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold", min_width=9)),
            BarColumn(bar_width=10),
            TextColumn("{task.fields[done]}", table_column=Column(overflow="fold", min_width=22)),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=len("0:00:00"))),
            TextColumn("{task.fields[left]}", table_column=Column(overflow="fold", min_width=10)),
        )
        with Bar(*columns, console=self.out) as bar:
            line = bar.add_task("starting", total=None, done="", left="")
            yield lambda progress: bar.update(
                line,
                description=plain(stage_of(progress)),
                total=progress.runs + progress.streams,
                completed=progress.runs_done + progress.streams_done,
                done=done_of(progress, rate=self.out.width >= WIDE),
                left=left_of(progress),
            )


def announced(sweep: Sweep) -> Iterator[str]:
    """Yield lines on the agents and environments of a sweep, and on the pairs that it leaves out."""
    from banditlab.analysis.formats import facts_of_data

    plan = sweep.plan
    environments = len({run.environment_label for run in plan.runs})
    settings = len({(run.label, str(run.written)) for run in plan.runs})
    yield (
        f"{sweep.spec.name}: {many(len(plan.runs), 'run')} = {many(environments, 'environment')} x "
        f"{many(settings, f'{_noun(sweep)} setting')} x {many(sweep.spec.repetitions, 'repetition')}, "
        f"{'up to ' if sweep.spec.passes else ''}{many(sweep.spec.rounds, 'round')} each"
    )
    lengths = {run.environment_label: run.rounds for run in plan.runs}
    for label, facts in list(plan.data.items())[:MOST_DATA]:
        yield f"{label}: {facts_of_data(facts, lengths.get(label, sweep.spec.rounds))}"
    if len(plan.data) > MOST_DATA:
        yield f"and {many(len(plan.data) - MOST_DATA, 'data set')} more"
    if sweep.balls:
        streams, balls = many(len(plan.streams()), "stream"), ", ".join(f"{ball:g}" for ball in sweep.balls)
        bound = "bound" if len(sweep.balls) == 1 else "bounds"
        yield f"comparators for each of {streams}: the best logistic models in hindsight with norm {bound} {balls}"
    elif not plan.uncompared:
        yield "without comparators (norm_bounds = [])"
    for label, (rounds, size) in plan.pending.items():
        waiting = f"at most {many(rounds, 'round')} of a run wait for feedback at the same time"
        yield f"{label}: {waiting}, {size / 2**20:,.1f} MiB of contexts and probabilities"
    for label, reason in plan.uncompared.items():  # the user may not have given norm bounds
        yield f"without comparators, which on {label} have {reason}"
    for pair in plan.skipped:
        yield one_line(f"skipped: {pair['player']} on {pair['environment']}: {pair['reason']}")


def _noun(sweep: Sweep) -> str:
    """Return "agent", or "learner" as the common word if the sweep also has forecasters or boosters."""
    return "learner" if sweep.spec.forecaster or sweep.spec.booster else "agent"


def _ended(result: Result, folder: Path) -> Iterator[str]:
    """Yield lines on the result of a sweep, without its failures."""
    if result.kept:
        yield f"notice: this folder held the report of another comparison, which was moved to {result.kept}"
    yield from (f"notice: {notice}" for notice in result.notices)
    there = f"{many(result.present, 'run')} {'was' if result.present == 1 else 'were'} already finished"
    yield f"{there}, {result.played:,} executed now in {result.seconds:.0f} s; results in {folder}"


def _failed(result: Result) -> Iterator[str]:
    """Yield a line for each failure, and the location of the tracebacks."""
    for failure in result.failures:
        settings = ", ".join(f"{k}={v}" for k, v in failure["settings"].items())
        what = f"{failure['player']}({settings})" if settings else failure["player"]
        yield one_line(
            f"failed: {what} on {failure['environment']}, repetition {failure['repetition']}: {failure['error']}"
        )
    if result.failures:
        yield f"{len(result.failures)} failed (tracebacks in {result.folder / 'failed'}); the others are stored"


def _say_all(out: rich.console.Console, lines: Iterable[str]) -> None:
    for line in lines:
        say(out, line)


class _PlainLines:
    """Progress as lines of text, at most one every few seconds."""

    def __init__(self, out: rich.console.Console) -> None:
        self.out, self.last, self.stage = out, -PLAIN_EVERY, ""

    def __call__(self, progress: Progress) -> None:
        done = progress.runs_done + progress.streams_done
        total = progress.runs + progress.streams
        if total and (progress.seconds - self.last >= PLAIN_EVERY or (done == total and self.stage != "all")):
            self.last = progress.seconds
            self.stage = "all" if done == total else progress.stage
            parts = (f"{progress.seconds:5.0f} s", done_of(progress), left_of(progress), stage_of(progress))
            say(self.out, "  ".join(filter(None, parts)))


class _Notices:
    """Print each notice of a running sweep once."""

    def __init__(self, out: rich.console.Console) -> None:
        self.out, self.said = out, 0

    def __call__(self, progress: Progress) -> None:
        for line in progress.notices[self.said :]:
            say(self.out, f"notice: {one_line(line)}")
        self.said = len(progress.notices)


def print_dry_run(sweep: Sweep, jobs: int, folder: Path) -> None:
    """Print the runs of a sweep, those that `folder` already has, and an estimate of the remaining time."""
    out = rich.console.Console()
    _say_all(out, announced(sweep))
    check_format(folder)
    finished = finished_runs(folder) if folder.is_dir() else set()
    done = Counter((run.environment_label, run.label) for run in sweep.plan.runs if run.run_id in finished)
    if finished:
        say(out, f"{done.total():,} of {many(len(sweep.plan.runs), 'run')} already finished in {folder}")
    table = Table()
    several = len({run.environment_label for run in sweep.plan.runs}) > 1
    for name in (*(["environment"] if several else []), _noun(sweep)):
        table.add_column(name, overflow="fold")
    for name in ("runs", *(["done"] if finished else []), "s/run", "core-min"):
        table.add_column(name, justify="right", no_wrap=True)
    total = 0.0
    for row in sweep.estimate():
        n_done = done[row.environment, row.label]
        seconds = (row.runs - n_done) * row.seconds_per_run
        total += seconds
        counts = (f"{row.runs:,}", f"{n_done:,}") if finished else (f"{row.runs:,}",)
        cells = (row.label, *counts, f"{row.seconds_per_run:.3g}", _minutes(seconds))
        table.add_row(*(Text(plain(cell)) for cell in ((row.environment,) if several else ()) + cells))
    out.print(table)
    say(out, _estimated(sweep, total, jobs, whole=not finished))


def _estimated(sweep: Sweep, play: float, jobs: int, whole: bool) -> str:
    """Describe the core-seconds that the remaining runs and the comparators need, and the time of both with `jobs`
    processes.
    """
    n = sum(len(run.checkpoints) for run in sweep.plan.streams().values()) * len(sweep.balls)
    compared = sweep.estimate_comparators() if n else 0.0
    parts = [f"{_long(play)} for runs"]
    if n:
        known = f"{_long(compared)} for " if not math.isnan(compared) else "an unknown time for "
        parts.append(f"{known}{many(n, 'comparator')} (one for each stream, norm bound and checkpoint)")
    both = (play + (0.0 if math.isnan(compared) else compared)) / jobs + (WORKERS_START if jobs > 1 else 0.0)
    counted = "" if whole or not n else ", including comparators that are already computed"
    return (
        f"estimate: {' and '.join(parts)} on one core; about {_long(both)} with -j {jobs}{counted}, without the "
        "report and the compilation on first use"
    )


def _long(seconds: float) -> str:
    """Return a time such as "0.4 s", "12 s", "3.5 minutes" or "2.1 hours"."""
    if seconds < 120.0:
        return f"{seconds:.0f} s" if seconds >= 10.0 else f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200.0 else f"{seconds / 3600:.1f} hours"


def _minutes(seconds: float) -> str:
    """Return minutes with two decimals, or "<0.01" for less."""
    minutes = seconds / 60
    return f"{minutes:.2f}" if minutes >= 0.01 or seconds == 0 else "<0.01"


def print_status(folder: Path) -> int:
    """Print the contents of a results folder; return 1 if runs are missing or failed."""
    from banditlab.results.schema import FORMAT, SUMS

    plan, damaged = read_plan(folder), damaged_files(folder)
    done = finished_runs(folder)
    wanted = plan["runs"]
    failures = read_failures(folder, {*wanted, *plan["streams"]})
    n_done, n_failed = sum(r in done for r in wanted), len(failures)
    out = rich.console.Console()
    say(out, f"{folder}: {n_done:,} of {many(len(wanted), 'run')} done, {n_failed:,} failed, store format {FORMAT}")
    for name in damaged:
        what_then = "`banditlab run` moves it away and repeats the runs that are only in it"
        say(out, f"damaged: {name} does not match {SUMS}; {what_then}")
    others = many(len(done - set(wanted)), "run")
    say(out, f"{many(len(plan['skipped']), 'pair')} skipped, {others} of other specs in the folder")
    for each in failures:
        say(out, one_line(f"failed: {each.player} on {each.environment}: {each.error}"))
    return 0 if n_done == len(wanted) and not n_failed else 1


def watch_status(folder: Path, every: float) -> None:
    """Print the progress of a sweep in another process, a line every few seconds, until no run is missing."""
    out = rich.console.Console()
    began: tuple[float, int] | None = None
    while True:
        plan = read_plan(folder)
        wanted = set(plan["runs"])
        finished = finished_runs(folder) & wanted
        done = len(finished)
        failed = sum(file.stem in wanted - finished for file in folder.glob("failed/*.json"))
        now = time.monotonic()
        began = began or (now, done)
        rate = (done - began[1]) / (now - began[0]) if now > began[0] else 0.0
        parts = [f"{done:,}/{many(len(wanted), 'run')}", f"{failed:,} failed" if failed else ""]
        if rate:
            parts += [f"{rate:,.3g} runs/s", f"about {math.ceil((len(wanted) - done) / rate)} s left"]
        say(out, "  ".join(filter(None, (time.strftime("%H:%M:%S"), *parts))))
        if done + failed >= len(wanted):
            return
        time.sleep(every)


def print_merge(parts: Sequence[Path], folder: Path) -> int:
    """Merge the parts of a sweep and print the outcome; return 1 if a run is missing or failed."""
    from banditlab.results.merge import Merged, merge

    def lines(merged: Merged) -> Iterator[str]:
        yield f"{folder}: {merged.runs:,} of {many(merged.wanted, 'run')} of the merged parts"
        for name in merged.damaged:
            yield f"damaged: {name}; repeat the command that wrote the part"
        for part, lacking in merged.unfinished.items():
            yield f"unfinished: {part} lacks {many(lacking, 'run')}; repeat the command that wrote it"
        if merged.missing_shards:
            missing = ", ".join(f"{index}/{merged.of}" for index in merged.missing_shards)
            yield f"missing parts: {missing}; run them, and merge again"
        if merged.failed:
            yield f"{merged.failed:,} failed; `banditlab status {shlex.quote(str(folder))}` lists them"
        if whole:
            yield f"all {merged.of} parts are complete; `banditlab report {shlex.quote(str(folder))}` writes the report"

    merged = merge(parts, folder)
    whole = merged.runs == merged.wanted and not (merged.missing_shards or merged.failed)
    _say_all(rich.console.Console(), lines(merged))
    return 0 if whole else 1
