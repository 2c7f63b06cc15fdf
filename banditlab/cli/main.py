"""The command line: parse, call, print. Exit 0: done; 1: finished, something failed; 2: the request was wrong."""

from __future__ import annotations

import errno
import io
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from banditlab.cli.plain import plain
from banditlab.cli.table_options import TABLE, takes
from banditlab.distributions import VERSION, report_others
from banditlab.errors import BanditlabError, UsageError

app = typer.Typer(
    name="banditlab",
    help="Contextual bandits with one bit of feedback: sweeps, certified comparators, reports.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help without rich answers in half the time
)
new = typer.Typer(help="Make a lab folder, a first agent or environment.", no_args_is_help=True)
app.add_typer(new, name="new")
log_ = typer.Typer(help="Remove old events from a policy's log, or what it says of one person.", no_args_is_help=True)
app.add_typer(log_, name="log")
LogArgument = Annotated[str, typer.Argument(metavar="LOG", help="A policy's log: a file, or postgresql://...")]

Lab = Annotated[
    list[str] | None,
    typer.Option(
        "--lab", help="Lab folder whose agents/ and envs/ are loaded; by default the one you are in (lab.toml)."
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
UnansweredOption = Annotated[str | None, typer.Option(help="Decisions without an answer are: ignored, or wrong.")]
AfterOption = Annotated[str | None, typer.Option(help='How long an answer may take, such as "30 min" or "2 days".')]
PLACES = "tcp://HOST:PORT, tls://HOST:PORT, a scheduler file, local:N"
SWEEP: dict[str, tuple[Any, Any]] = {
    "out": (Path | None, typer.Option(None, "-o", "--out", help="Results folder.")),
    "jobs": (int | None, typer.Option(None, "-j", "--jobs", min=1, help="Worker processes; by default one a core.")),
    "dry_run": (bool, typer.Option(False, help="Print runs, skips, what is done, an estimate; then stop.")),
    "lab": (Lab, None),
    "cluster": (str | None, typer.Option(None, help=f"Play on a Dask cluster: {PLACES}.")),
    "patience": (float, typer.Option(120.0, min=1, help="Seconds a cluster may do nothing before the sweep gives up.")),
    "live": (
        bool,
        typer.Option(False, "--live", help="Show the sweep while it plays, on a page for this machine only."),
    ),
    "live_port": (
        int | None,
        typer.Option(None, min=1, max=65535, help="The live page's port; by default a free one."),
    ),
}
"""The options of a sweep that is played, each with its type and default."""


# What click raises for a request it cannot parse; typer has click or a copy of it inside, this finds either.
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
    """Contextual bandits with one bit of feedback: sweeps, certified comparators, reports."""


@app.command()
@takes(sweep=SWEEP)
def run(
    spec: Annotated[Path, typer.Argument(help="Sweep specification (TOML).")],
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Replace a key: key=value.")] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html and print the ranking.")
    ] = True,
    shard: Annotated[
        str | None,
        typer.Option("--shard", help="Only part i of n, as i/n: whole streams; `merge` puts parts together."),
    ] = None,
    *,
    sweep: dict[str, Any],
) -> None:
    """Run a sweep, or what is missing of it, and report."""
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
        typer.Option(min=1, help="How often a run is shown all rows; 1. Ranked is the first time each row is shown."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds a run, instead of rows times passes; fewer leave rows out.")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Repetitions.")] = 10,
    agents: Annotated[
        str | None, typer.Option(help="Ids, such as stackcb,fastcb, or all; by default those of practice.")
    ] = None,
    feedback: Annotated[
        list[str] | None,
        typer.Option(help="When bits arrive, as in a spec's [feedback]: key=value, such as delay=100; repeatable."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(help="How labels change, as in a spec's [change]: key=value, such as at=1000; repeatable."),
    ] = None,
    exceptions: Annotated[
        Path | None,
        typer.Option(help="TOML file of settings for single ones of several tables, tables to skip, and families."),
    ] = None,
    *,
    sweep: dict[str, Any],
    table: dict[str, Any],
) -> None:
    """Rank agents and exploration rates on your own table, or over many tables."""
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
        typer.echo(f"{several.n_faulty} {were} left out, for the faults above", err=True)
    raise typer.Exit(code or (1 if many and several.n_faulty else 0))


def _run_or_estimate(
    spec: Any,
    where: str,
    given: dict[str, Any],
    report: bool = True,
    part: tuple[int, int] | None = None,
    notes: Any = (),
) -> int:
    """Play a sweep, or print its estimate, with the options `SWEEP`; return the exit code."""
    from banditlab.cli.console import Console, print_dry_run
    from banditlab.comparison import default_folder
    from banditlab.engine import Sweep

    live = (given["live_port"] or 0) if given["live"] or given["live_port"] else None
    if given["cluster"] is not None and given["jobs"] is not None:
        raise UsageError("-j is for this machine; a cluster plays on all its workers")
    if given["dry_run"] and live is not None:
        raise UsageError("--live shows a sweep that plays; with --dry-run nothing does")
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
    parts: Annotated[list[Path], typer.Argument(metavar="OUT1 OUT2 ...", help="Folders that `run --shard i/n` made.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Results folder of the whole sweep.")],
) -> None:
    """Put the parts of a sweep together, each run exactly once; missing parts are named."""
    from banditlab.cli.console import print_merge

    raise typer.Exit(print_merge(parts, out))


@app.command()
@takes(table=TABLE)
def train(
    data: Annotated[
        Path | None, typer.Argument(help="Your table: CSV, Parquet, LIBSVM or ARFF, gzipped or not.")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the policy.")] = Path("my.policy"),
    agent: Annotated[str, typer.Option(help="The agent's id. Default: stackcb.")] = "",
    settings: Annotated[list[str] | None, typer.Option("--set", help="A setting of the agent: key=value.")] = None,
    best_of: Annotated[
        Path | None,
        typer.Option("--best-of", help="Results folder of a comparison: its first agent and setting, its recipe."),
    ] = None,
    other_table: Annotated[
        bool,
        typer.Option("--other-table", help="With --best-of: a table with other columns or classes is meant."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the rows' order and the agent's draws.")] = 0,
    floor: Annotated[float, typer.Option(help="The policy's least probability of any allowed action.")] = 0.0,
    schema: Annotated[
        Path | None, typer.Option(help="JSON file of columns and actions, where there are no labelled rows yet.")
    ] = None,
    from_log: Annotated[
        str, typer.Option(help="A policy's log to learn from in the place of a table; its last fifth evaluates.")
    ] = "",
    unanswered: UnansweredOption = None,
    after: AfterOption = None,
    lab: Lab = None,
    *,
    table: dict[str, Any],
) -> None:
    """Play your table's rows once and write the agent that learnt from them: a policy that decides."""
    _open_labs(lab)
    from banditlab.cli.policies import train as train_

    table |= {"unanswered": unanswered, "after": after, "seed": seed, "floor": floor}
    train_(data, out, schema, from_log, settings or [], agent=agent, best_of=best_of, other_table=other_table, **table)


@app.command()
def serve(
    policy: Annotated[Path, typer.Argument(help="A policy that `train` wrote.")],
    log: Annotated[
        str,
        typer.Option(
            "--log", help="Where decisions and answers go: a file, or postgresql://...; none is kept without."
        ),
    ] = "",
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8080,
    token_file: Annotated[
        Path | None, typer.Option(help="File whose first line is the token; or the variable BANDITLAB_TOKEN.")
    ] = None,
    person: Annotated[
        str, typer.Option(help="Key of the rows that says whose decision it is; `log forget` finds the value.")
    ] = "",
    extra: Annotated[
        str, typer.Option(help="What happens to a key of a row that is no column: refuse the row, or ignore the key.")
    ] = "refuse",
    floor: Annotated[
        float | None, typer.Option(help="The least probability of any allowed action, from now on.")
    ] = None,
    holdback: Annotated[
        float | None, typer.Option(help="Share of decisions, from now on, that --holdback-policy takes.")
    ] = None,
    holdback_policy: Annotated[str, typer.Option(help="uniform, or a policy's file.")] = "uniform",
    unanswered: UnansweredOption = None,
    after: AfterOption = None,
    lab: Lab = None,
) -> None:
    """Serve a policy over HTTP: POST /decide, POST /feedback."""
    _open_labs(lab)
    from banditlab.cli.policies import serve as serve_

    rule = {"unanswered": unanswered, "after": after, "floor": floor}
    rule |= {"holdback": holdback, "holdback_policy": holdback_policy}
    serve_(policy, log, host, port, token_file, person, extra, **rule)


@app.command()
def evaluate(
    log: Annotated[
        str, typer.Argument(metavar="LOG", help="A policy's log, a CSV or Parquet file of decisions, or dsjson.")
    ],
    policy: Annotated[
        str,
        typer.Option(
            help="uniform, best-single, trained (on earlier rounds), an agent's id (learns by rejection), a policy's file; of "
            "a table also column:NAME (an action a row) and probabilities:PREFIX (columns called PREFIX and an action)."
        ),
    ] = "uniform",
    action: Annotated[str, typer.Option(help="Column of the actions; by default found by its name.")] = "",
    reward: Annotated[str, typer.Option(help="Column of the reward bits; by default found by its name.")] = "",
    propensity: Annotated[
        str, typer.Option(help="Column of the actions' probabilities; estimated where there is none.")
    ] = "",
    id_: Annotated[str, typer.Option("--id", help="Column in which no entry may stand twice.")] = "",
    logger: Annotated[
        Literal["fixed", "learning"] | None,
        typer.Option(help="Whether probabilities depend on earlier rounds; learning for a policy's log."),
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the estimates into a file: .svg, .png, .pdf.")] = None,
) -> None:
    """Estimate what another policy would have earned on a log, with an interval."""
    from banditlab.cli.policies import evaluate as evaluate_

    evaluate_(log, policy, logger, picture, action=action, reward=reward, propensity=propensity, id=id_)


@log_.command()
def prune(
    log: LogArgument,
    before: Annotated[str, typer.Option(help="Date, or date and time (ISO 8601); UTC where it names no zone.")],
) -> None:
    """Remove the events of a log before a date. The policy's state and the counts of decisions and feedback stay.

    Feedback on a decision that was removed is refused as unknown. Stop the server first.
    """
    from banditlab.cli.policies import prune as prune_

    prune_(log, before)


@log_.command("export")
def export_log(
    log: LogArgument,
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to write: .dsjson or .parquet.")],
) -> None:
    """Write the answered decisions of a log as Vowpal Wabbit's dsjson or as Parquet."""
    from banditlab.policy.exporting import export_log as export_log_

    for line in export_log_(log, out):
        typer.echo(plain(line))


@log_.command()
def forget(
    log: LogArgument,
    person: Annotated[
        str, typer.Argument(metavar="KEY=VALUE", help="Whose decisions, by the key of `serve --person`.")
    ],
) -> None:
    """Blank the contexts of one person's decisions in a log. Actions, distributions and feedback stay.

    What the agent learnt from them stays in the policy's state. The decisions cannot be played again, so a snapshot
    that covers all events is written first. Later feedback on them is counted and not learnt from. Stop the server first.
    """
    from banditlab.cli.policies import forget as forget_

    forget_(log, person)


@app.command()
def status(
    out: Annotated[str, typer.Argument(metavar="FOLDER|LOG", help="A results folder, or a policy's log.")],
    watch: Annotated[bool, typer.Option("--watch", help="Say it again and again, until all is done.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks, with --watch.")] = 5.0,
    picture: Annotated[Path | None, typer.Option(help="Draw a log's status into a file: .svg, .png, .pdf.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check a log whole, every event by its checksum.")] = False,
) -> None:
    """Say what a results folder holds and what is missing; of a policy's log, whether the policy is still good."""
    if "://" in out or Path(out).is_file():
        from banditlab.cli.policies import print_log_status

        if watch:
            raise UsageError(f"--watch: {out} is a policy's log, not a results folder")
        print_log_status(out, picture, verify)
        return
    if picture is not None or verify:
        raise UsageError(f"{'--verify' if verify else '--picture'}: {out} is no policy's log")
    from banditlab.cli.console import print_status, watch_status

    if watch:
        watch_status(Path(out), every)
    raise typer.Exit(print_status(Path(out)))


@app.command()
def report(out: Folder) -> None:
    """Write report.html anew and print the ranked table."""
    from banditlab.cli.console import Console

    Console().report(out)


@app.command()
def board(
    outs: Annotated[list[Path], typer.Argument(metavar="OUT...", help="Results folders.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page to write.")] = Path("board.html"),
) -> None:
    """Write one offline page over many sweeps: overlay, filters, specs compared."""
    from banditlab.analysis.board import write_board

    typer.echo(f"board written: {write_board(outs, out, lambda line: typer.echo(plain(line), err=True))}")


@app.command()
def export(
    out: Folder,
    latex: Annotated[bool, typer.Option("--latex", help="Tables as LaTeX with booktabs; the default.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Tables as CSV.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Tables as Parquet.")] = False,
    png: Annotated[bool, typer.Option("--png", help="Figures as PNG, too, beside their PDF.")] = False,
    to: Annotated[Path | None, typer.Option("-o", "--out", help="Folder to write to; OUT/export.")] = None,
) -> None:
    """Write tables and PDF figures for a paper, their captions saying the protocol."""
    from banditlab.analysis.papers import export as write

    wanted = [name for name, on in (("latex", latex), ("csv", csv), ("parquet", parquet)) if on]
    _print_made(write(out, to, formats=wanted or ["latex"], png=png))


@app.command("list")
def list_(
    kind: Annotated[
        str, typer.Argument(help="agents, forecasters, boosters, weak_learners, envs or bounds.")
    ] = "agents",
    lab: Lab = None,
) -> None:
    """List what is there, a line each; in a lab's folder, what the lab has, too."""
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
    """Describe one thing: rule, guarantee, cost, settings."""
    _open_labs(lab)
    from banditlab.cli.listing import print_description

    print_description(id_)


@app.command()
def check(
    subject: Annotated[
        str, typer.Argument(metavar="ID|FILE|MODULE:ENV", help="An id, a lab file, or an environment of Gymnasium.")
    ],
    every: Annotated[bool, typer.Option("--all", help="Go on behind the first broken contract.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting to check it at: key=value (TOML); repeatable.")
    ] = None,
    lab: Lab = None,
) -> None:
    """Check a player or environment against its contract; stop at the first one that is broken."""
    _open_labs(lab)
    from banditlab.cli.checking import print_checks

    raise typer.Exit(print_checks(subject, every=every, settings=settings or []))


@app.command()
def notebook(
    name: Annotated[str, typer.Argument(help="Which: quickstart.")] = "quickstart",
    folder: Annotated[
        Path, typer.Option("-o", "--out", help="Where it is written; by default the folder you are in.")
    ] = Path(),
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open it when it has been executed.")] = True,
) -> None:
    """Write a notebook, execute it, and open it (extra: notebooks)."""
    from banditlab.cli.notebooks import make_notebook, open_file

    made = make_notebook(name, folder)
    typer.echo(f"made {made}")
    if open_ and not open_file(made):
        typer.echo(f"nothing here opens notebooks; jupyter lab {shlex.quote(str(made))} does")


@new.command("lab")
def new_lab(folder: Annotated[Path, typer.Argument(metavar="DIR")]) -> None:
    """Make a lab: agents/, envs/, runs/ and analysis/ with a first example of each."""
    from banditlab.cli.scaffold import new_lab as make
    from banditlab.cli.scaffold import next_steps

    _print_made(make(folder))
    typer.echo(next_steps(folder))


@new.command("agent")
def new_agent(
    name: str,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="Made of compiled kernels instead of plain Python.")
    ] = False,
) -> None:
    """Make a first agent in one file."""
    from banditlab.cli.scaffold import new_agent as make

    _print_made(make(name, compiled=compiled))


@new.command("env")
def new_env(name: str) -> None:
    """Make a first environment in one file."""
    from banditlab.cli.scaffold import new_env as make

    _print_made(make(name))


def _print_made(made: Any) -> None:
    for path in made if isinstance(made, list | tuple) else [made]:
        typer.echo(f"made {path}")


def _lab_here() -> Path | None:
    """Return the folder one stands in where it is a lab: it has runs/, and Python files in agents/ or envs/."""
    here = Path(".")
    found = (here / "runs").is_dir() and any(any((here / name).glob("*.py")) for name in ("agents", "envs"))
    return here.resolve() if found else None


def _open_labs(folders: list[str] | None, here: Path | None = None) -> None:
    """Open the labs that were named, or else the one the working folder lies in, or else `here`."""
    from banditlab.registry import lab_around, printable, refuse_exposed, registry

    for folder in folders or ():
        registry().open_lab(folder)
    found = None if folders else lab_around() or here
    if found is not None:
        refuse_exposed(found)
        typer.echo(f"loading the lab {printable(found)}, found from this folder", err=True)
        registry().open_lab(found)


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG)
"""No room, or no way to write: the file's name says nothing."""


def _exit(message: object, code: int = 2) -> NoReturn:
    typer.echo(plain(f"banditlab: {' '.join(str(message).split())}"), err=True)
    sys.exit(code)


def main() -> None:
    """Run the command line and exit. Whatever is wrong with a request is one line and exit code 2."""
    # With `python -E` children would not see SAFE_PATH.
    if sys.flags.ignore_environment and not sys.flags.safe_path:
        os.execv(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]])
    report_others()
    if "_BANDITLAB_COMPLETE" in os.environ:  # the shell asks what the word under the cursor may become
        app(prog_name="banditlab")
    command = typer.main.get_command(app)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a terminal that knows no ± gets a question mark, a file name its bytes
            stream.reconfigure(errors="replace")
    try:
        # Not app(): that prints a wrong option in four lines, and turns an interrupt into an exit without a word.
        with command.make_context("banditlab", sys.argv[1:]) as context:
            command.invoke(context)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except ClickException as error:
        if type(error).__name__ != "NoArgsIsHelpError":
            _exit(error.format_message())
        error.show()  # nothing was asked for: what there is to ask for
        sys.exit(2)
    except BanditlabError as error:
        _exit(error)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away (`| head`): nothing is left to say
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename and error.errno not in FULL else ""
        _exit(f"{where}{error.strerror or error}; finished runs are stored, the same command does the rest")
    except UnicodeEncodeError as error:
        _exit(f"a name that is not UTF-8 cannot be stored ({ascii(error.object)[:200]}); rename the file or folder")
    except MemoryError as error:
        _exit(f"not enough memory ({error}); finished runs are stored, the same command does the rest")
    except KeyboardInterrupt:
        _exit("interrupted; finished runs are stored, the same command does the rest", 130)


if __name__ == "__main__":
    main()
