"""The command line: parse, call, print. Exit 0: done; 1: finished, something failed; 2: the request was wrong."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from banditlab import __version__
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

Lab = Annotated[list[str] | None, typer.Option("--lab", help="Lab folder whose agents/ and envs/ are loaded.")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Results folder.")]
Jobs = Annotated[int | None, typer.Option("-j", "--jobs", min=1, help="Worker processes; by default one a core.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print runs, skips, what is done, an estimate; then stop.")]
# As the table environment has them; written again because importing it takes longer than printing --help.
Format = Literal["auto", "csv", "parquet", "libsvm"]
Missing = Literal["error", "mean", "zero", "indicator", "drop_rows"]
Scaling = Literal["auto", "none", "minmax", "standard", "maxabs", "robust"]
Folder = Annotated[Path, typer.Argument(help="Results folder.")]


# What click raises for a request it cannot parse; typer has click or a copy of it inside, this finds either.
ClickException: Any = next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")


def _cores() -> int:
    return os.cpu_count() or 1


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"banditlab {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Contextual bandits with one bit of feedback: sweeps, certified comparators, reports."""


@app.command()
def run(
    spec: Annotated[Path, typer.Argument(help="Sweep specification (TOML).")],
    out: Out = None,
    jobs: Jobs = None,
    dry_run: DryRun = False,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Replace a key: key=value.")] = None,
    lab: Lab = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html and print the ranking.")
    ] = True,
    backend: Annotated[str | None, typer.Option(hidden=True)] = None,
    shard: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run a sweep, or what is missing of it, and report."""
    for name, value in (("--backend", backend), ("--shard", shard)):
        if value is not None:
            raise UsageError(f"{name} comes with a later version; a sweep runs on this machine with -j")
    _open_labs(lab)
    from banditlab.engine import read_spec

    _run_or_estimate(read_spec(spec, overrides), str(spec), out, jobs, dry_run, report)


@app.command()
def compare(
    data: Annotated[Path, typer.Argument(help="Your table: CSV, Parquet or LIBSVM, gzipped or not.")],
    label: Annotated[str, typer.Option("--label", help="The column to predict.")] = "",
    out: Out = None,
    jobs: Jobs = None,
    passes: Annotated[
        int | None,
        typer.Option(min=1, help="How often a run is shown all rows; 1. Ranked is the first time each row is shown."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds a run, instead of rows times passes; fewer leave rows out.")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Repetitions.")] = 10,
    format_: Annotated[Format | None, typer.Option("--format", help="Of the file; by default by its ending.")] = None,
    separator: Annotated[str | None, typer.Option(help="Column separator; by default found out.")] = None,
    decimal: Annotated[str | None, typer.Option(help="Decimal sign, . or a comma; by default the point.")] = None,
    drop_rows: Annotated[
        list[int] | None, typer.Option("--drop-row", help="A data row to leave out, counted from 0; repeatable.")
    ] = None,
    drop_columns: Annotated[
        list[str] | None, typer.Option("--drop-column", help="A column to leave out; repeatable.")
    ] = None,
    max_categories: Annotated[int | None, typer.Option(help="Most categories of a text column; 100.")] = None,
    missing: Annotated[Missing | None, typer.Option(help="What is done about missing entries; error.")] = None,
    scaling: Annotated[Scaling | None, typer.Option(help="Of numeric columns; auto.")] = None,
    dry_run: DryRun = False,
    lab: Lab = None,
) -> None:
    """Rank agents and exploration rates on your own table."""
    _open_labs(lab)
    from banditlab.comparison import comparison

    settings = {
        "format": format_,
        "separator": separator,
        "decimal": decimal,
        "drop_rows": drop_rows or None,
        "drop_columns": drop_columns or None,
        "max_categories": max_categories,
        "missing": missing,
        "scaling": scaling,
    }
    spec = comparison(data, label, passes=passes, rounds=rounds, repetitions=repetitions, **settings)
    _run_or_estimate(spec, str(data), out, jobs, dry_run)


def _run_or_estimate(
    spec: Any, where: str, out: Path | None, jobs: int | None, dry_run: bool, report: bool = True
) -> None:
    from banditlab.cli.console import Console, print_dry_run
    from banditlab.comparison import default_folder
    from banditlab.engine import Sweep

    sweep = Sweep(spec, where=where)
    folder = out or default_folder(spec.name)
    if dry_run:
        print_dry_run(sweep, jobs or _cores(), folder)
    else:
        raise typer.Exit(Console().run_sweep(sweep, folder, jobs or _cores(), report))


@app.command()
def status(out: Folder) -> None:
    """Say what a results folder holds and what is missing."""
    from banditlab.cli.console import print_status

    raise typer.Exit(print_status(out))


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

    typer.echo(f"board written: {write_board(outs, out)}")


@app.command()
def export(
    out: Folder,
    latex: Annotated[bool, typer.Option("--latex", help="Tables as LaTeX with booktabs; the default.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Tables as CSV.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Tables as Parquet.")] = False,
    to: Annotated[Path | None, typer.Option("-o", "--out", help="Folder to write to; OUT/export.")] = None,
) -> None:
    """Write tables and PDF figures for a paper, their captions saying the protocol."""
    from banditlab.analysis.papers import export as write

    wanted = [name for name, on in (("latex", latex), ("csv", csv), ("parquet", parquet)) if on]
    _print_made(write(out, to, formats=wanted or ["latex"]))


@app.command("list")
def list_(
    kind: Annotated[
        str, typer.Argument(help="agents, forecasters, boosters, weak_learners, envs or bounds.")
    ] = "agents",
    lab: Lab = None,
) -> None:
    """List what is there, a line each."""
    _open_labs(lab)
    from banditlab.cli.listing import print_list

    print_list(kind)


@app.command()
def describe(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of an agent, environment, forecaster or bound.")],
    lab: Lab = None,
) -> None:
    """Describe one thing: rule, guarantee, cost, settings."""
    _open_labs(lab)
    from banditlab.cli.listing import print_description

    print_description(id_)


@app.command()
def check(
    subject: Annotated[str, typer.Argument(metavar="ID|FILE", help="A registered id, or a lab file.")], lab: Lab = None
) -> None:
    """Check a player or environment against its contract."""
    _open_labs(lab)
    from banditlab.cli.console import print_checks

    raise typer.Exit(print_checks(subject))


@new.command("lab")
def new_lab(folder: Annotated[Path, typer.Argument(metavar="DIR")]) -> None:
    """Make a lab: agents/, envs/, runs/ and analysis/ with a first example of each."""
    from banditlab.cli.scaffold import new_lab as make

    _print_made(make(folder))


@new.command("agent")
def new_agent(name: str) -> None:
    """Make a first agent in one file."""
    from banditlab.cli.scaffold import new_agent as make

    _print_made(make(name))


@new.command("env")
def new_env(name: str) -> None:
    """Make a first environment in one file."""
    from banditlab.cli.scaffold import new_env as make

    _print_made(make(name))


def _print_made(made: Any) -> None:
    for path in made if isinstance(made, list | tuple) else [made]:
        typer.echo(f"made {path}")


def _open_labs(folders: list[str] | None) -> None:
    if folders:
        from banditlab.registry import registry

        for folder in folders:
            registry().open_lab(folder)


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG)
"""No room, or no way to write: the file's name says nothing."""


def _say(message: object) -> None:
    typer.echo(f"banditlab: {' '.join(str(message).split())}", err=True)


def main() -> None:
    """Run the command line and exit. Whatever is wrong with a request is one line and exit code 2."""
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
        if type(error).__name__ == "NoArgsIsHelpError":  # nothing was asked for: what there is to ask for
            error.show()
        else:
            _say(error.format_message())
        sys.exit(2)
    except BanditlabError as error:
        _say(error)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away (`| head`): nothing is left to say
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename and error.errno not in FULL else ""
        _say(f"{where}{error.strerror or error}; finished runs are stored, the same command does the rest")
        sys.exit(2)
    except UnicodeEncodeError as error:
        _say(f"a name that is not UTF-8 cannot be stored ({ascii(error.object)[:200]}); rename the file or folder")
        sys.exit(2)
    except MemoryError as error:
        _say(f"not enough memory ({error}); finished runs are stored, the same command does the rest")
        sys.exit(2)
    except KeyboardInterrupt:
        _say("interrupted; finished runs are stored, the same command does the rest")
        sys.exit(130)


if __name__ == "__main__":
    main()
