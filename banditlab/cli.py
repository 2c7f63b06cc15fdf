"""The command line: parse, call, print. Exit 0: done; 1: finished, something failed; 2: the request was wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from banditlab.errors import BanditlabError, UsageError

app = typer.Typer(
    name="banditlab",
    help="Contextual bandits with one bit of feedback: sweeps, certified comparators, reports.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help without rich answers in half the time
)
new = typer.Typer(help="Make a lab folder, a first agent or environment.", no_args_is_help=True)
app.add_typer(new, name="new")

Lab = Annotated[list[str] | None, typer.Option("--lab", help="Lab folder whose agents/ and envs/ are loaded.")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Results folder.")]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Worker processes; by default one a core.")]
Folder = Annotated[Path, typer.Argument(help="Results folder.")]


def _cores() -> int:
    import os

    return os.cpu_count() or 1


@app.command()
def run(
    spec: Annotated[Path, typer.Argument(help="Sweep specification (TOML).")],
    out: Out = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Worker processes; by default one a core.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print runs, skips and an estimate, and stop.")] = False,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Replace a key: key=value.")] = None,
    lab: Lab = None,
    backend: Annotated[str | None, typer.Option(hidden=True)] = None,
    shard: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run a sweep, or what is missing of it, and report."""
    for name, value in (("--backend", backend), ("--shard", shard)):
        if value is not None:
            raise UsageError(f"{name} comes with a later version; a sweep runs on this machine with -j")
    _open_labs(lab)
    from banditlab.console import Console, print_dry_run
    from banditlab.engine import Sweep, read_spec

    sweep = Sweep(read_spec(spec, overrides), where=str(spec))
    if dry_run:
        print_dry_run(sweep, jobs or _cores())
        return
    raise typer.Exit(Console().run_sweep(sweep, out or default_folder(sweep.spec.name), jobs or _cores()))


@app.command()
def compare(
    data: Annotated[Path, typer.Argument(help="Your table: CSV, Parquet or LIBSVM, gzipped or not.")],
    label: Annotated[str, typer.Option("--label", help="The column to predict.")] = "",
    out: Out = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Worker processes; by default one a core.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds a run; by default max(5 n, 5,000).")] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Repetitions.")] = 10,
    separator: Annotated[str | None, typer.Option(help="Column separator; by default found out.")] = None,
    decimal: Annotated[str, typer.Option(help="Decimal sign.")] = ".",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print runs, skips and an estimate, and stop.")] = False,
    lab: Lab = None,
) -> None:
    """Rank agents and exploration rates on your own table."""
    _open_labs(lab)
    from banditlab.compare import comparison
    from banditlab.console import Console, print_dry_run
    from banditlab.engine import Sweep

    settings = {"separator": separator, "decimal": decimal}
    spec = comparison(data, label, rounds=rounds, repetitions=repetitions, **settings)
    sweep = Sweep(spec, where=str(data))
    if dry_run:
        print_dry_run(sweep, jobs or _cores())
        return
    raise typer.Exit(Console().run_sweep(sweep, out or default_folder(spec.name), jobs or _cores()))


@app.command()
def status(out: Folder) -> None:
    """Say what a results folder holds and what is missing."""
    from banditlab.console import print_status

    raise typer.Exit(print_status(out))


@app.command()
def report(out: Folder) -> None:
    """Write report.html anew and print the ranked table."""
    from banditlab.console import Console

    Console().report(out)


@app.command("list")
def list_(
    kind: Annotated[str, typer.Argument(help="agents, envs, forecasters or bounds.")] = "agents", lab: Lab = None
) -> None:
    """List what is there, a line each."""
    _open_labs(lab)
    from banditlab.console import print_list

    print_list(kind)


@app.command()
def describe(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of an agent, environment, forecaster or bound.")],
    lab: Lab = None,
) -> None:
    """Describe one thing: rule, guarantee, cost, settings."""
    _open_labs(lab)
    from banditlab.console import print_description

    print_description(id_)


@app.command()
def check(
    subject: Annotated[str, typer.Argument(metavar="ID|FILE", help="A registered id, or a lab file.")], lab: Lab = None
) -> None:
    """Check a player or environment against its contract."""
    _open_labs(lab)
    from banditlab.console import print_checks

    raise typer.Exit(print_checks(subject))


@new.command("lab")
def new_lab(folder: Annotated[Path, typer.Argument(metavar="DIR")]) -> None:
    """Make a lab: agents/, envs/, runs/ and analysis/ with a first example of each."""
    from banditlab.scaffold import new_lab as make

    _print_made(make(folder))


@new.command("agent")
def new_agent(name: str) -> None:
    """Make a first agent in one file."""
    from banditlab.scaffold import new_agent as make

    _print_made(make(name))


@new.command("env")
def new_env(name: str) -> None:
    """Make a first environment in one file."""
    from banditlab.scaffold import new_env as make

    _print_made(make(name))


def _print_made(made: Any) -> None:
    for path in made if isinstance(made, list | tuple) else [made]:
        typer.echo(f"made {path}")


def _open_labs(folders: list[str] | None) -> None:
    if folders:
        from banditlab.registry import registry

        for folder in folders:
            registry().open_lab(folder)


def default_folder(name: str) -> Path:
    """Return where results go if nobody says: runs/results/<name> in a lab, ./results/<name> elsewhere."""
    return Path("runs/results") / name if Path("runs").is_dir() else Path("results") / name


def main() -> None:
    """Entry point of the `banditlab` command."""
    try:
        app()
    except BanditlabError as error:
        typer.echo(f"banditlab: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("banditlab: interrupted; finished runs are stored, the same command does the rest", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away (`| head`): nothing is left to say
        sys.exit(0)


if __name__ == "__main__":
    main()
