"""What the command line prints: progress, tables, lists. On a terminal with colours and a bar, elsewhere as plain lines."""

from __future__ import annotations

import inspect
import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

import rich.console
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from banditlab.engine import Progress, Result, Sweep
from banditlab.engine.store import Store
from banditlab.errors import UsageError, nearest
from banditlab.registry import KINDS, Entry, registry

if TYPE_CHECKING:
    from banditlab.analysis.summary import Standing

PLAIN_EVERY = 10.0  # seconds between progress lines where there is no terminal


class Console:
    """Runs sweeps and reports with a person watching."""

    def __init__(self) -> None:
        self.out = rich.console.Console(highlight=False, soft_wrap=False)

    def run_sweep(self, sweep: Sweep, folder: Path, jobs: int) -> int:
        """Run, report, print the ranked table; return the exit code."""
        Store(folder)  # a folder that cannot be used is said before anything else
        self._announce(sweep)
        try:
            if self.out.is_terminal:
                result = self._with_bar(sweep, folder, jobs)
            else:
                result = sweep.run(folder, jobs=jobs, watch=_PlainLines(self.out))
        except KeyboardInterrupt:
            self.out.print("interrupted; finished runs are stored, and the same command does the rest")
            return 130
        self._say_result(result)
        if result.present + result.played:
            self.report(folder)
        return self._say_failures(result)

    def report(self, folder: Path) -> None:
        """Print the ranked table of a results folder, write its report, and print where that is."""
        from banditlab.analysis import load, summary_rows, write_report

        results = load(folder)
        self._print_ranking(summary_rows(results))
        begin = time.perf_counter()
        page = write_report(folder)
        self.out.print(f"report.html written in {time.perf_counter() - begin:.0f} s: {page}", soft_wrap=True)

    # -------------------------------------------------------------------------------------------------------------- pieces

    def _announce(self, sweep: Sweep) -> None:
        plan = sweep.plan
        environments = len({run.environment_label for run in plan.runs})
        players = len({(run.label, str(run.written)) for run in plan.runs})
        self.out.print(
            f"{sweep.spec.name}: {len(plan.runs):,} runs = {environments} environments x {players} player settings x "
            f"{sweep.spec.repetitions} repetitions, {sweep.spec.rounds:,} rounds each"
        )
        for pair in plan.skipped:
            self.out.print(escape(f"skipped: {pair['player']} on {pair['environment']}: {pair['reason']}"))

    def _with_bar(self, sweep: Sweep, folder: Path, jobs: int) -> Result:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        with Bar(*columns, console=self.out) as bar:
            line = bar.add_task("starting", total=None, rate="", left="")

            def watch(progress: Progress) -> None:
                bar.update(
                    line,
                    description=escape(progress.stage),
                    total=progress.runs + progress.streams,
                    completed=progress.runs_done + progress.streams_done,
                    rate=f"{_rate(progress)} rounds/s",
                    left="" if progress.seconds_ahead is None else f"about {progress.seconds_ahead:.0f} s left",
                )

            return sweep.run(folder, jobs=jobs, watch=watch)

    def _say_result(self, result: Result) -> None:
        if result.redone:
            self.out.print(f"notice: {len(result.redone)} stored files were cut in half and have been done again")
        self.out.print(
            f"{result.present:,} runs were there already, {result.played:,} played now in {result.seconds:.0f} s"
        )

    def _say_failures(self, result: Result) -> int:
        for failure in result.failures:
            settings = ", ".join(f"{k}={v}" for k, v in failure["settings"].items())
            what = f"{failure['player']}({settings})" if settings else failure["player"]
            where = f"{failure['environment']}, repetition {failure['repetition']}"
            self.out.print(escape(f"failed: {what} on {where}: {failure['error']}"), soft_wrap=True)
        if result.failures:
            self.out.print(
                f"{len(result.failures)} failed (tracebacks in {result.folder / 'failed'}); the others are kept"
            )
        return 1 if result.failures else 0

    def _print_ranking(self, rows: list[Standing]) -> None:
        for environment, kind in dict.fromkeys((row.environment, row.kind) for row in rows):
            told = "" if kind == "bit" else " (players that are told the label)"
            table = Table(
                box=SIMPLE_HEAD,
                pad_edge=False,
                padding=(0, 1, 0, 0),
                title=escape(f"{environment}{told}"),
                title_justify="left",
            )
            for name in ("", "player", "setting"):
                table.add_column(name, no_wrap=True)
            for name in ("mistakes % (95 %)", "behind", "us/round"):
                table.add_column(name, justify="right", no_wrap=True)
            for row in rows:
                if (row.environment, row.kind) == (environment, kind):
                    table.add_row(*map(escape, _cells(row)))
            self.out.print(table)
        if any(row.among > 1 for row in rows):
            held = all(row.held_out for row in rows if row.among > 1)
            where = "on repetitions that are not among those shown" if held else "on the one repetition there is"
            self.out.print(f"each player at the best of its settings, chosen {where}; = is a tie")


def _cells(row: Standing) -> tuple[str, ...]:
    share, behind = row.mistakes.scaled(100), row.behind_first.scaled(100)
    digits = 2 if share.mean < 10 else 1
    interval = f" ({share.low:.{digits}f} to {share.high:.{digits}f})" if math.isfinite(share.low) else ""
    gap = f"+{behind.mean:.{2 if behind.mean < 10 else 1}f}" if behind.mean > 0 else ""
    cells = (row.rank, row.label, row.settings, f"{share.mean:.{digits}f}{interval}", gap)
    return (*cells, f"{1e6 * row.seconds_per_round:.3g}")


class _PlainLines:
    """Progress as lines of text, at most one every few seconds."""

    def __init__(self, out: rich.console.Console) -> None:
        self.out, self.last, self.stage = out, -PLAIN_EVERY, ""

    def __call__(self, progress: Progress) -> None:
        done = progress.runs_done + progress.streams_done
        total = progress.runs + progress.streams
        if total and (progress.seconds - self.last >= PLAIN_EVERY or (done == total != 0 and self.stage != "all")):
            self.last = progress.seconds
            self.stage = "all" if done == total else progress.stage
            left = f", about {progress.seconds_ahead:.0f} s left" if progress.seconds_ahead is not None else ""
            self.out.print(
                f"{progress.seconds:5.0f} s  {done:,} of {total:,}  {_rate(progress)} rounds/s  "
                f"{progress.failed} failed{left}  {escape(progress.stage)}"
            )


def _rate(progress: Progress) -> str:
    return f"{progress.rounds_done / max(progress.seconds, 1e-9):,.0f}"


def print_dry_run(sweep: Sweep, jobs: int) -> None:
    """Print what a sweep would do, and how long it should take."""
    console = Console()
    console._announce(sweep)
    table = Table()
    for name, side in (
        ("environment", "left"),
        ("player", "left"),
        ("runs", "right"),
        ("s/run", "right"),
        ("core-min", "right"),
    ):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    total = 0.0
    for row in sweep.estimate():
        seconds = row.runs * row.seconds_per_run
        total += seconds
        cells = (row.environment, row.label, f"{row.runs:,}", f"{row.seconds_per_run:.3g}", f"{seconds / 60:.2f}")
        table.add_row(*map(escape, cells))
    console.out.print(table)
    n = len(sweep.plan.streams()) * len(sweep.spec.balls()) * len(sweep.spec.checkpoint_rounds())
    console.out.print(
        f"about {total / 60:.1f} core-minutes of play ({total / 60 / jobs:.1f} minutes with -j {jobs}), "
        f"and {n:,} comparators, not estimated"
    )


def print_status(folder: Path) -> int:
    """Print what a results folder holds; return 1 if runs are missing or failed."""
    from banditlab.engine.store import FORMAT, check_format, finished_runs

    plan_file = folder / "runs.json"
    if not plan_file.exists():
        raise UsageError(f"{folder}: not a results folder (no runs.json); make one with `banditlab run`")
    check_format(folder)
    plan = json.loads(plan_file.read_text())
    done = finished_runs(folder)
    failed = {file.stem for file in folder.glob("failed/*.json")}
    wanted = plan["runs"]
    n_done, n_failed = sum(r in done for r in wanted), sum(r in failed for r in wanted + plan["streams"])
    out = rich.console.Console(highlight=False)
    out.print(f"{folder}: {n_done:,} of {len(wanted):,} runs done, {n_failed:,} failed, store format {FORMAT}")
    out.print(f"{len(plan['skipped'])} pairs skipped, {len(done - set(wanted)):,} runs of other specs in the folder")
    for run_id in sorted(set(wanted + plan["streams"]) & failed):
        record = json.loads((folder / "failed" / f"{run_id}.json").read_text())
        out.print(escape(f"failed: {record['player']} on {record['environment']}: {record['error']}"), soft_wrap=True)
    return 0 if n_done == len(wanted) and not n_failed else 1


def print_list(kind: str) -> None:
    """Print every registered thing of a kind, a line each."""
    out = rich.console.Console(highlight=False)
    if kind not in (*KINDS, "bounds"):
        raise UsageError(f"nothing is listed as {kind!r}{nearest(kind, (*KINDS, 'bounds'))}")
    table = Table(box=None, pad_edge=False)
    if kind == "bounds":
        from banditlab.bounds import THEOREMS

        for name in ("bound", "unit", "summary", "source"):
            table.add_column(name)
        for t in THEOREMS.values():
            table.add_row(*map(escape, (t.name, t.unit, t.summary, t.source)))
    else:
        for name in ("id", "group" if kind == "agents" else "", "summary", "from"):
            table.add_column(name)
        for entry in registry().entries(kind):
            try:
                cls = entry.load()
                row = (entry.id, getattr(cls, "group", ""), getattr(cls, "summary", ""), entry.origin)
            except UsageError as error:
                row = (entry.id, "", str(error), entry.origin)
            table.add_row(*map(escape, row))
    out.print(table)


def print_description(id_: str) -> None:
    """Print a thing's docstring, settings, source and version; a player and a bound of one name are both printed."""
    from banditlab.bounds import THEOREMS

    out = rich.console.Console(highlight=False, soft_wrap=True)
    known = {entry.id: entry for kind in KINDS for entry in registry().entries(kind)}
    if id_ not in known and id_ not in THEOREMS:
        raise UsageError(f"nothing is called {id_!r}{nearest(id_, [*known, *THEOREMS])}")
    if id_ in known:
        _print_entry(out, known[id_])
    if id_ in known and id_ in THEOREMS:
        out.print()
    if id_ in THEOREMS:
        t = THEOREMS[id_]
        out.print(escape(f"{t.name} (bound, in {t.unit})\n\n{inspect.getdoc(t.function)}\n"))
        out.print(escape(f"Source: {t.source}\nAssumes: {t.assumes}\nPrinted: {t.printed}"))


def _print_entry(out: rich.console.Console, entry: Entry) -> None:
    """Print a player's or an environment's docstring, settings, source and version."""
    id_ = entry.id
    cls = entry.load()
    out.print(escape(f"{id_} ({entry.kind[:-1]}, from {entry.origin}, version {getattr(cls, 'version', 1)})\n"))
    out.print(escape(inspect.getdoc(cls) or str(getattr(cls, "summary", ""))))
    parameters = inspect.signature(cls.__init__).parameters.values()
    settings = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name != "horizon"]
    if settings:
        out.print("\nSettings and defaults")
        for p in settings:
            default = "required" if p.default is inspect.Parameter.empty else repr(p.default)
            out.print(escape(f"  {p.name}: {p.annotation} = {default}"))
    if getattr(cls, "reference", ""):
        out.print(escape(f"\nReference: {cls.reference}"))


def print_checks(subject: str) -> int:
    """Run the conformance checks of an id or a file, print each; return 1 if one failed."""
    from banditlab.checks import check_file, check_id

    is_file = subject.endswith(".py") or Path(subject).is_file()
    results = check_file(subject) if is_file else check_id(subject)
    out = rich.console.Console(highlight=False, soft_wrap=True)
    for r in results:
        out.print(escape(f"{r.status:9} {r.subject}: {r.name}" + (f": {r.reason}" if r.reason else "")))
    failed = sum(r.status == "failed" for r in results)
    out.print(f"{len(results) - failed} passed or excluded with a reason, {failed} failed")
    return 1 if failed else 0
