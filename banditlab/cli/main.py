"""The command line: parse, call, print. Exit codes: 0 success, 1 finished with failures, 2 invalid request."""

from __future__ import annotations

import errno
import io
import os
import shlex
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from banditlab.cli.plain import plain
from banditlab.cli.table_options import COLUMNS, READING, TABLE, takes
from banditlab.distributions import VERSION, report_others
from banditlab.errors import BanditlabError, UsageError

app = typer.Typer(
    name="banditlab",
    help="Compare, train and serve agents for contextual bandits with one bit of feedback.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # without rich, --help takes half the time
)
new = typer.Typer(help="Create a lab folder, or an example of an agent or environment.", no_args_is_help=True)
app.add_typer(new, name="new")
log_ = typer.Typer(help="Prune or export a policy's log, or remove a person's data.", no_args_is_help=True)
app.add_typer(log_, name="log")
LogArgument = Annotated[str, typer.Argument(metavar="LOG", help="The policy's log: a file, or postgresql://...")]

Lab = Annotated[
    list[str] | None,
    typer.Option(
        help="Load agents/ and envs/ of this lab folder. Default: the lab of the working folder. May be repeated."
    ),
]
Data = Annotated[
    list[Path],
    typer.Argument(
        help="Your table: CSV, Parquet, LIBSVM or ARFF, gzipped or not. Several tables: files, folders, a quoted pattern such "
        "as 'tables/*.csv', or openml:ID,ID."
    ),
]
Folder = Annotated[Path, typer.Argument(help="Results folder.")]
UnansweredOption = Annotated[str | None, typer.Option(help="How decisions without feedback count: ignored or wrong.")]
AfterOption = Annotated[
    str | None,
    typer.Option(help='With --unanswered wrong: how long to wait for feedback, such as "30 min" or "2 days".'),
]
PLACES = "tcp://HOST:PORT, tls://HOST:PORT, a scheduler file, or local:N"
SWEEP: dict[str, tuple[Any, Any]] = {
    "out": (Path | None, typer.Option(None, "-o", "--out", help="Write the results to this folder.")),
    "jobs": (
        int | None,
        typer.Option(None, "-j", "--jobs", min=1, help="Number of worker processes. Default: one per core."),
    ),
    "dry_run": (
        bool,
        typer.Option(
            False, help="Print the planned, skipped and finished runs and an estimate of the time; run nothing."
        ),
    ),
    "lab": (Lab, None),
    "cluster": (str | None, typer.Option(None, help=f"Run on a Dask cluster: {PLACES}.")),
    "patience": (
        float,
        typer.Option(120.0, min=1, help="End the sweep if the cluster makes no progress for this number of seconds."),
    ),
    "live": (
        bool,
        typer.Option(False, "--live", help="Show the progress on a web page that only this machine can open."),
    ),
    "live_port": (
        int | None,
        typer.Option(None, min=1, max=65535, help="Port of the live page. Default: a free port."),
    ),
}
"""The options for running a sweep, each with its type and default."""


# The error of click for invalid arguments, from click itself or from the copy of it in typer.
ClickException: Any = next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")


def _print_version(wanted: bool) -> None:
    if wanted:
        report_others(always=True)
        typer.echo(f"banditlab {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Compare, train and serve agents for contextual bandits with one bit of feedback."""


@app.command()
@takes(sweep=SWEEP)
def run(
    spec: Annotated[Path, typer.Argument(help="The sweep's specification, a TOML file.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Replace a key of the specification: key=value. May be repeated.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html and print the ranked table.")
    ] = True,
    shard: Annotated[
        str | None, typer.Option(help="Run only part i of n, written i/n; `banditlab merge` joins the parts.")
    ] = None,
    *,
    sweep: dict[str, Any],
) -> None:
    """Run a sweep, or only its missing runs, and write a report."""
    _open_labs(sweep["lab"])
    from banditlab.engine import read_spec

    part = _part(shard)
    code = _run_or_estimate(read_spec(spec, overrides), str(spec), sweep, report and part is None, part)
    raise typer.Exit(code)


@app.command()
@takes(sweep=SWEEP, table=TABLE)
def compare(
    data: Data,
    passes: Annotated[
        int | None,
        typer.Option(min=1, help="Number of passes over the rows; the ranking uses the first pass only. Default: 1."),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Rounds per run. Default: rows times passes. With fewer rounds, some rows are left out."
        ),
    ] = None,
    repetitions: Annotated[
        int, typer.Option(min=1, help="Number of repetitions, each with another order of the rows.")
    ] = 10,
    agents: Annotated[
        str | None,
        typer.Option(help="Ids of the agents, such as stackcb,fastcb, or all. Default: recommended agents."),
    ] = None,
    feedback: Annotated[
        list[str] | None,
        typer.Option(help="Late or missing feedback: a key of [feedback], such as delay=100. May be repeated."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(help="Changing labels: a key of [change], such as at=1000. May be repeated."),
    ] = None,
    exceptions: Annotated[
        Path | None,
        typer.Option(help="TOML file with settings for single tables, tables to skip, and families of tables."),
    ] = None,
    *,
    sweep: dict[str, Any],
    table: dict[str, Any],
) -> None:
    """Rank agents on your own table, or over many tables."""
    _open_labs(sweep["lab"])
    from banditlab.cli.table_view import comparison_lines, many_lines
    from banditlab.comparison import default_folder, is_many, name_of_many, plain_name, prepared, prepared_many
    from banditlab.engine.spec import settings_of

    many = exceptions is not None or is_many(data)
    sweep["out"] = out = sweep["out"] or default_folder(name_of_many(data) if many else plain_name(data[0]))
    table |= {"feedback": settings_of(feedback or [], "--feedback"), "change": settings_of(change or [], "--change")}
    table |= {"out": out, "passes": passes, "rounds": rounds, "repetitions": repetitions, "agents": agents}
    notes: Any = ()
    if many:
        several = prepared_many(data, exceptions=exceptions, **table)
        lines, spec = many_lines(several, whole=sweep["dry_run"]), several.spec
    else:
        made = prepared(data[0], **table)
        lines, spec = comparison_lines(made, classes=sweep["dry_run"]), made.spec
        notes = made.survey.notes if made.survey else ()
    for line in lines:
        typer.echo(plain(line))
    code = _run_or_estimate(spec, str(data[0]), sweep, notes=notes)
    if many and several.n_faulty:
        were = "table was" if several.n_faulty == 1 else "tables were"
        typer.echo(f"{several.n_faulty} {were} left out because of the faults above", err=True)
    raise typer.Exit(code or (1 if many and several.n_faulty else 0))


def _run_or_estimate(
    spec: Any,
    where: str,
    given: dict[str, Any],
    report: bool = True,
    part: tuple[int, int] | None = None,
    notes: Any = (),
) -> int:
    """Run a sweep, or print its estimate, with the options `SWEEP`; return the exit code."""
    from banditlab.cli.console import Console, print_dry_run
    from banditlab.comparison import default_folder
    from banditlab.engine import Sweep

    live = (given["live_port"] or 0) if given["live"] or given["live_port"] else None
    if given["cluster"] is not None and given["jobs"] is not None:
        raise UsageError("-j applies to this machine only; a cluster uses all its workers")
    if given["dry_run"] and live is not None:
        raise UsageError("--live shows a running sweep, but --dry-run does not run one; give one of them")
    sweep, jobs = Sweep(spec, where=where), given["jobs"] or os.cpu_count() or 1
    folder = given["out"] or default_folder(spec.name if part is None else f"{spec.name}-{part[0]}-of-{part[1]}")
    if given["dry_run"]:
        print_dry_run(sweep, jobs, folder)
        return 0
    options = {"jobs": jobs, "cluster": given["cluster"], "patience": given["patience"], "shard": part}
    return Console(notes).run_sweep(sweep, folder, report, live, **options)


def _part(text: str | None) -> tuple[int, int] | None:
    """Return (i, n) of "i/n"."""
    if text is None:
        return None
    index, _, of = text.partition("/")
    if not (index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of)):
        raise UsageError(f"--shard {text}: must be i/n with 1 <= i <= n, for instance 1/5")
    return int(index), int(of)


@app.command()
def merge(
    parts: Annotated[list[Path], typer.Argument(metavar="OUT1 OUT2 ...", help="Results folders of `run --shard i/n`.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Write the whole sweep's results to this folder.")],
) -> None:
    """Merge the parts of a sweep and list the missing ones."""
    from banditlab.cli.console import print_merge

    raise typer.Exit(print_merge(parts, out))


@app.command()
@takes(table=TABLE, columns=COLUMNS)
def train(
    data: Annotated[
        Path | None, typer.Argument(help="Your table: CSV, Parquet, LIBSVM or ARFF, gzipped or not.")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="Write the policy to this file.")] = Path("my.policy"),
    agent: Annotated[str, typer.Option(help="The agent's id. Default: stackcb.")] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the agent: key=value. May be repeated.")
    ] = None,
    best_of: Annotated[
        Path | None, typer.Option(help="Train the first-ranked agent of the comparison in this results folder.")
    ] = None,
    other_table: Annotated[
        bool,
        typer.Option("--other-table", help="With --best-of: accept a table with other columns or classes."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of the rows and of the agent's draws.")] = 0,
    floor: Annotated[float, typer.Option(help="Smallest probability of each allowed action.")] = 0.0,
    schema: Annotated[
        Path | None, typer.Option(help="Without a table: a JSON file that describes columns and actions.")
    ] = None,
    from_log: Annotated[
        str,
        typer.Option(help="Instead of a table: learn from a log of decisions. Its last fifth evaluates the policy."),
    ] = "",
    unanswered: UnansweredOption = None,
    after: AfterOption = None,
    lab: Lab = None,
    *,
    table: dict[str, Any],
    columns: dict[str, Any],
) -> None:
    """Train an agent on your table and write it as a policy."""
    _open_labs(lab)
    from banditlab.cli.policies import train as train_

    table |= {"unanswered": unanswered, "after": after, "seed": seed, "floor": floor, "columns": columns}
    table |= {"agent": agent, "settings": settings or [], "best_of": best_of, "other_table": other_table}
    train_(data, out, schema, from_log, **table)


@app.command()
def serve(
    policy: Annotated[Path, typer.Argument(help="The policy file, as `banditlab train` writes it.")],
    log: Annotated[
        str, typer.Option(help="Log decisions and feedback to a file or postgresql://... Default: no log.")
    ] = "",
    host: Annotated[
        str, typer.Option(help="Address to listen on. Addresses other than 127.0.0.1 need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8080,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File whose first line is the token. Alternative: the environment variable BANDITLAB_TOKEN."),
    ] = None,
    person: Annotated[str, typer.Option(help="Key of a row that names the person, for `banditlab log forget`.")] = "",
    extra: Annotated[
        str,
        typer.Option(help="If a row has a key that is not a column: refuse the row, or ignore the key."),
    ] = "refuse",
    floor: Annotated[
        float | None, typer.Option(help="Smallest probability of each allowed action. Default: as in the policy.")
    ] = None,
    holdback: Annotated[float | None, typer.Option(help="Fraction of decisions made by the holdback policy.")] = None,
    holdback_policy: Annotated[str, typer.Option(help="The holdback policy: uniform, or a policy file.")] = "uniform",
    unanswered: UnansweredOption = None,
    after: AfterOption = None,
    lab: Lab = None,
) -> None:
    """Serve a policy over HTTP (POST /decide, POST /feedback)."""
    _open_labs(lab)
    from banditlab.cli.policies import serve as serve_

    rule = {"unanswered": unanswered, "after": after, "floor": floor}
    rule |= {"holdback": holdback, "holdback_policy": holdback_policy}
    serve_(policy, log, host, port, token_file, person, extra, **rule)


@app.command()
@takes(columns=COLUMNS | READING)
def evaluate(
    log: Annotated[
        str, typer.Argument(metavar="LOG", help="A policy's log, or a CSV, Parquet or dsjson file of decisions.")
    ],
    policy: Annotated[
        str,
        typer.Option(
            help="The policy to evaluate: uniform, best-single, trained (on earlier rounds), an agent's id (trained by "
            "rejection sampling) or a policy file; for a table also column:NAME (its actions) or probabilities:PREFIX (columns "
            "named PREFIX and an action)."
        ),
    ] = "uniform",
    picture: Annotated[
        Path | None, typer.Option(help="Write a figure of the estimates to a .svg, .png or .pdf file.")
    ] = None,
    *,
    columns: dict[str, Any],
) -> None:
    """Estimate from a log the mean reward of another policy."""
    from banditlab.cli.policies import print_evaluated
    from banditlab.policy.evaluating import evaluate_log

    print_evaluated(policy, evaluate_log(log, policy, **columns), picture)


@log_.command()
def prune(
    log: LogArgument,
    before: Annotated[str, typer.Option(help="Date, or date and time (ISO 8601). Without a time zone it is UTC.")],
) -> None:
    """Remove the events before a date from a log. The policy's state and the counts of decisions and feedback do not
    change.

    Feedback on a removed decision is rejected as unknown. Stop the server first.
    """
    from banditlab.policy.policy import Policy

    try:
        date = datetime.fromisoformat(before)
    except ValueError:
        raise UsageError(f"--before {before}: must be a date, for instance 2026-01-31") from None
    with Policy.resume(log) as policy:
        count = policy.prune(date.replace(tzinfo=date.tzinfo or UTC))
    typer.echo(f"{log}: {count:,} decisions removed")


@log_.command("export")
def export_log(
    log: LogArgument,
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to write: .dsjson or .parquet.")],
) -> None:
    """Write the decisions with feedback to a file. Formats: Vowpal Wabbit's dsjson, Parquet."""
    from banditlab.policy.exporting import export_log as export_log_

    for line in export_log_(log, out):
        typer.echo(plain(line))


@log_.command()
def forget(
    log: LogArgument,
    person: Annotated[str, typer.Argument(metavar="KEY=VALUE", help="The person, by the key of `serve --person`.")],
) -> None:
    """Remove the contexts of one person's decisions from a log. Actions, distributions and feedback remain.

    The policy's state still contains past updates with these decisions. The decisions cannot be replayed, so the
    command first writes a snapshot of the state after all events. Later feedback on them is counted but leads to no
    update. Stop the server first.
    """
    from banditlab.policy.policy import Policy

    key, sign, value = person.partition("=")
    if not sign:
        raise UsageError(f"{person}: must be KEY=VALUE, for instance customer=4711")
    with Policy.resume(log) as policy:
        count = policy.forget(key, value)
    typer.echo(f"{log}: removed the contexts of {count:,} decisions")


@app.command()
def status(
    out: Annotated[str, typer.Argument(metavar="FOLDER|LOG", help="A results folder, or a policy's log.")],
    watch: Annotated[bool, typer.Option("--watch", help="Repeat until the sweep has finished.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="With --watch: seconds between updates.")] = 5.0,
    picture: Annotated[
        Path | None, typer.Option(help="Write a figure of a log's status to a .svg, .png or .pdf file.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Verify the checksum of every event of a log.")] = False,
) -> None:
    """Show the progress of a sweep or the state of a policy. For a policy, test whether its mistake rate has increased."""
    if "://" in out or Path(out).is_file():
        from banditlab.cli.policies import print_log_status

        if watch:
            raise UsageError(f"--watch: {out} is a policy's log, not a results folder")
        print_log_status(out, picture, verify)
        return
    if picture is not None or verify:
        raise UsageError(f"{'--verify' if verify else '--picture'}: {out} is not a policy's log")
    from banditlab.cli.console import print_status, watch_status

    if watch:
        watch_status(Path(out), every)
    raise typer.Exit(print_status(Path(out)))


@app.command()
def report(out: Folder) -> None:
    """Write report.html again and print the ranked table."""
    from banditlab.cli.console import Console

    Console().report(out)


@app.command()
def board(
    outs: Annotated[list[Path], typer.Argument(metavar="OUT...", help="Results folders.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Write the page to this file.")] = Path("board.html"),
) -> None:
    """Write one page that compares several sweeps."""
    from banditlab.analysis.board import write_board

    typer.echo(f"board written: {write_board(outs, out, lambda line: typer.echo(plain(line), err=True))}")


@app.command()
def export(
    out: Folder,
    latex: Annotated[bool, typer.Option("--latex", help="Write tables as LaTeX with booktabs (the default).")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write tables as CSV.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write tables as Parquet.")] = False,
    png: Annotated[bool, typer.Option("--png", help="Write figures as PNG and PDF.")] = False,
    to: Annotated[Path | None, typer.Option("-o", "--out", help="Write to this folder. Default: OUT/export.")] = None,
) -> None:
    """Write tables and figures for a paper. Their captions state the protocol."""
    from banditlab.analysis.papers import export as write

    wanted = [name for name, on in (("latex", latex), ("csv", csv), ("parquet", parquet)) if on]
    _print_made(write(out, to, formats=wanted or ["latex"], png=png))


@app.command("list")
def list_(
    kind: Annotated[
        str, typer.Argument(help="What to list: agents, forecasters, boosters, weak_learners, envs or bounds.")
    ] = "agents",
    lab: Lab = None,
) -> None:
    """List agents, forecasters, boosters, environments or bounds. The classes of the lab are included."""
    _open_labs(lab, _lab_here())
    from banditlab.cli.listing import print_list

    print_list(kind)


@app.command()
def describe(
    id_: Annotated[
        str, typer.Argument(metavar="ID", help="The id of an agent, forecaster, booster, environment or bound.")
    ],
    lab: Lab = None,
) -> None:
    """Describe an agent, environment or bound. Print its update rule, guarantee, cost and settings."""
    _open_labs(lab)
    from banditlab.cli.listing import print_description

    print_description(id_)


@app.command()
def check(
    subject: Annotated[
        str,
        typer.Argument(metavar="ID|FILE|MODULE:ENV", help="An id, a file of a lab, or an environment of Gymnasium."),
    ],
    every: Annotated[bool, typer.Option("--all", help="Continue after the first failed check.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Check it with this setting: key=value (TOML). May be repeated.")
    ] = None,
    lab: Lab = None,
) -> None:
    """Check that an agent or environment obeys its contract. Stop at the first failed check."""
    _open_labs(lab)
    from banditlab.cli.checking import print_checks

    raise typer.Exit(print_checks(subject, every=every, settings=settings or []))


@app.command()
def notebook(
    name: Annotated[str, typer.Argument(help="Name of the notebook: quickstart.")] = "quickstart",
    folder: Annotated[Path, typer.Option("-o", "--out", help="Write the notebook to this folder.")] = Path(),
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the notebook after it has been executed.")
    ] = True,
) -> None:
    """Write, execute and open a notebook (extra: notebooks)."""
    from banditlab.cli.notebooks import make_notebook, open_file

    made = make_notebook(name, folder)
    typer.echo(f"written: {made}")
    if open_ and not open_file(made):
        typer.echo(f"no program to open notebooks was found; use jupyter lab {shlex.quote(str(made))}")


@new.command("lab")
def new_lab(folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to create.")]) -> None:
    """Create a lab folder with examples. It has the folders agents/, envs/, runs/ and analysis/."""
    from banditlab.cli.scaffold import new_lab as make
    from banditlab.cli.scaffold import next_steps

    _print_made(make(folder))
    typer.echo(next_steps(folder))


@new.command("agent")
def new_agent(
    name: Annotated[str, typer.Argument(help="Name of the agent.")],
    compiled: Annotated[
        bool,
        typer.Option("--compiled", help="Write an agent with compiled functions, which is faster than plain Python."),
    ] = False,
) -> None:
    """Write a file with an example of an agent."""
    from banditlab.cli.scaffold import new_agent as make

    _print_made(make(name, compiled=compiled))


@new.command("env")
def new_env(name: Annotated[str, typer.Argument(help="Name of the environment.")]) -> None:
    """Write a file with an example of an environment."""
    from banditlab.cli.scaffold import new_env as make

    _print_made(make(name))


def _print_made(made: Any) -> None:
    for path in made if isinstance(made, list | tuple) else [made]:
        typer.echo(f"written: {path}")


def _lab_here() -> Path | None:
    """Return the working folder if it is a lab: it has runs/, and Python files in agents/ or envs/."""
    here = Path(".")
    found = (here / "runs").is_dir() and any(any((here / name).glob("*.py")) for name in ("agents", "envs"))
    return here.resolve() if found else None


def _open_labs(folders: list[str] | None, here: Path | None = None) -> None:
    """Open the given labs, otherwise the lab that contains the working folder, otherwise `here`."""
    from banditlab.registry import lab_around, printable, refuse_exposed, registry

    for folder in folders or ():
        registry().open_lab(folder)
    found = None if folders else lab_around() or here
    if found is not None:
        refuse_exposed(found)
        typer.echo(f"loading the lab {printable(found)}, which contains the working folder", err=True)
        registry().open_lab(found)


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG)
"""Errors of the disk, for which the name of the file is not informative."""


def _exit(message: object, code: int = 2) -> NoReturn:
    typer.echo(plain(f"banditlab: {' '.join(str(message).split())}"), err=True)
    sys.exit(code)


def main() -> None:
    """Run the command line and exit; an error in a request is reported in one line with exit code 2."""
    # With `python -E`, child processes would ignore SAFE_PATH.
    if sys.flags.ignore_environment and not sys.flags.safe_path:
        os.execv(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]])
    # loky replaces a worker process whose memory has grown, between two tasks, so no run is lost.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs", category=UserWarning)
    report_others()
    if "_BANDITLAB_COMPLETE" in os.environ:  # the shell requests completions
        app(prog_name="banditlab")
    command = typer.main.get_command(app)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # terminals that lack a character print a question mark
            stream.reconfigure(errors="replace")
    try:
        # Not app(), which reports a wrong option in four lines and exits silently after an interrupt.
        with command.make_context("banditlab", sys.argv[1:]) as context:
            command.invoke(context)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except ClickException as error:
        if type(error).__name__ != "NoArgsIsHelpError":
            _exit(error.format_message().replace("Input should be", "it must be"))
        error.show()  # no arguments: print the help
        sys.exit(2)
    except BanditlabError as error:
        _exit(error)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output ended, as in `| head`
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename and error.errno not in FULL else ""
        _exit(f"{where}{error.strerror or error}; finished runs are stored; the same command runs the rest")
    except UnicodeEncodeError as error:
        _exit(f"a name that is not UTF-8 cannot be stored ({ascii(error.object)[:200]}); rename the file or folder")
    except MemoryError as error:
        _exit(f"not enough memory ({error}); finished runs are stored; the same command runs the rest")
    except KeyboardInterrupt:
        _exit("interrupted; finished runs are stored; the same command runs the rest", 130)


if __name__ == "__main__":
    main()
