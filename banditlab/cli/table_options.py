"""Groups of options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, get_origin

import typer

from banditlab.cli.plain import plain
from banditlab.envs.options import OPTIONS, Option
from banditlab.errors import FaultyTableError, UsageError


def _typed(option: Option) -> tuple[Any, Any]:
    """Return the type and the default of a setting of a table, as needed by typer."""
    is_map = get_origin(option.kind) is dict
    details = typer.Option(None, option.word, metavar="COLUMN=ROLE" if is_map else None, help=option.help)
    return (list[str] if is_map else option.kind) | None, details


TABLE = {name: _typed(option) for name, option in OPTIONS.items()}
"""The type and the default of each option of a table."""
READING = {name: TABLE[name] for name in ("format", "encoding", "separator")}
LOG: dict[str, tuple[str, Any]] = {
    "action": ("Column of a log's actions. Default: detected by its name.", str),
    "reward": ("Column of a log's rewards, 0 or 1. Default: detected by its name.", str),
    "propensity": ("Column of the logged actions' probabilities. Without one they are estimated.", str),
    "id": ("Column of a log's unique ids: duplicates are an error.", str),
    "logger": (
        "Whether a log's probabilities depend on earlier rounds. Default: learning for a policy's log, else fixed.",
        Literal["fixed", "learning"],
    ),
}
COLUMNS = {name: _typed(Option(f"--{name}", *about)) for name, about in LOG.items()}
"""The type and the default of each option that describes a log."""


def settings_of_table(given: dict[str, Any]) -> dict[str, Any]:
    """Return the given settings as arguments of `Table`."""
    given = given | {"header": {True: "yes", False: "no", None: None}[given["header"]]}
    given |= {name: [each.strip() for each in given[name].split(",")] for name in ("arms", "costs") if given[name]}
    given["roles"] = dict(map(_role, given["roles"] or ()))
    return {name: value for name, value in given.items() if value not in (None, [], {})}


def _role(written: str) -> tuple[str, str]:
    name, equals, role = written.rpartition("=")
    if not equals:
        raise UsageError(f"--role must be COLUMN=ROLE, such as zip=nominal, got {written!r}")
    return name, role


def takes(**groups: Mapping[str, tuple[Any, Any]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add groups of options to a command. It receives each group as a dict, and `table` as arguments of `Table`.

    If the table has faults, all faults and a corrected command line are printed, and the process exits.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        first, *own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name not in groups]
        more = [
            first.replace(name=name, default=default, annotation=kind)
            for group in groups.values()
            for name, (kind, default) in group.items()
        ]
        context = first.replace(name="context", annotation=typer.Context, default=inspect.Parameter.empty)

        @functools.wraps(command)
        def inside(context: typer.Context, **given: Any) -> None:
            whole = dict(given)
            taken: dict[str, Any] = {key: {name: given.pop(name) for name in group} for key, group in groups.items()}
            if "table" in taken:
                taken["table"] = settings_of_table(taken["table"])
            try:
                command(**given, **taken)
            except FaultyTableError as error:
                from banditlab.cli.table_view import fault_lines

                source, without = whole[first.name], {first.name, *groups["table"]}
                source = str(source[0] if isinstance(source, list) else source)
                if whole.get("best_of"):
                    source, without = "the request", {*without, "best_of", "agent", "settings"}
                for line in fault_lines(error, source, option_words(context, without)):
                    typer.echo(plain(line), err=True)
                raise typer.Exit(2) from None

        lead, *rest = sorted(more, key=lambda parameter: parameter.name != "label")
        parameters = [context, first, lead, *own, *rest]
        inside.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        inside.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return inside

    return decorated


def option_words(context: typer.Context, without: Collection[str]) -> list[str]:
    """Return the options that differ from their defaults as words of a command line, except those in `without`."""
    words: list[str] = []
    for option in context.command.params:
        value = context.params.get(str(option.name))
        if option.name in without or value in (None, (), [], option.default):
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [option.opts[0], *([] if each is True else [str(each)])]
    return words
