"""The options by which a command reads a table: one class for all of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import typer

from banditlab.cli.plain import plain
from banditlab.errors import FaultyTableError, UsageError

# As the table environment has them; written again because importing it takes longer than printing --help.
Format = Literal["auto", "csv", "parquet", "libsvm", "arff"]
Missing = Literal["error", "mean", "zero", "indicator", "drop_rows"]
Scaling = Literal["auto", "none", "minmax", "standard", "maxabs", "robust", "rowwise"]


class TableOptions(NamedTuple):
    """How a table is read: each field is an option, and a setting of `Table` of the same name; None is its default."""

    label: Annotated[str | None, typer.Option("--label", help="The column to predict.")]
    arms: Annotated[
        str | None,
        typer.Option(
            help="In the place of a label: columns of 0 and 1, one per action, such as gpt,llama; 1 is right."
        ),
    ]
    right_above: Annotated[
        float | None, typer.Option(help="Arms are scores, and an action is right where its score is at least this.")
    ]
    costs: Annotated[
        str | None,
        typer.Option(help="Columns of what each arm costs, in the order of --arms; reported, not learnt from."),
    ]
    worth: Annotated[
        float | None, typer.Option(help="An arm is right where score - WORTH * cost is at least --right-above; 0.")
    ]
    per: Annotated[
        str | None,
        typer.Option(help="A text column: what the best arm per value of it reaches, and beta-ts per value."),
    ]
    text: Annotated[
        list[str] | None, typer.Option("--text", help="A column of texts: its words are features; repeatable.")
    ]
    text_features: Annotated[
        str | None, typer.Option(help="Of text columns: words:N, or svd:N for N numbers; words:1000.")
    ]
    roles: Annotated[
        list[str] | None,
        typer.Option("--role", metavar="COLUMN=ROLE", help="numeric, nominal, time or drop; repeatable."),
    ]
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether a CSV file's first line has names; else detected."),
    ]
    format: Annotated[Format | None, typer.Option(help="Of the file; by default by its ending.")]
    encoding: Annotated[
        str | None, typer.Option(help="Of a CSV or ARFF file, such as cp1252; UTF-8, or what a byte order mark says.")
    ]
    separator: Annotated[str | None, typer.Option(help="Column separator; by default detected.")]
    decimal: Annotated[str | None, typer.Option(help="Decimal separator, . or a comma; by default the point.")]
    thousands: Annotated[str | None, typer.Option(help="What groups the digits of numbers, such as a comma; nothing.")]
    comments: Annotated[
        list[str] | None,
        typer.Option("--comment", help="Leave out lines of a CSV file that begin with this, such as #; repeatable."),
    ]
    na_values: Annotated[
        list[str] | None,
        typer.Option("--na-values", help="An entry that counts as missing, such as 9999; repeatable."),
    ]
    drop_rows: Annotated[
        list[int] | None, typer.Option("--drop-row", help="A data row to leave out, counted from 0; repeatable.")
    ]
    drop_columns: Annotated[list[str] | None, typer.Option("--drop-column", help="A column to leave out; repeatable.")]
    max_categories: Annotated[int | None, typer.Option(help="Most categories of a text column; 100.")]
    order: Annotated[
        str | None, typer.Option(help="Of the rows: shuffle, file (as they stand) or time:COLUMN; shuffle.")
    ]
    group: Annotated[
        str | None, typer.Option(help="A column: rows with one value belong together, and the first of each counts.")
    ]
    missing: Annotated[Missing | None, typer.Option(help="What is done about missing entries; error.")]
    scaling: Annotated[Scaling | None, typer.Option(help="Of numeric columns; auto.")]

    def settings(self) -> dict[str, Any]:
        """Return the settings that were given, as `Table` takes them."""
        given = self._asdict() | {"header": {True: "yes", False: "no", None: None}[self.header]}
        given |= {name: _names(given[name]) for name in ("arms", "costs")}
        given["roles"] = dict(map(_role, self.roles or ()))
        return {name: value for name, value in given.items() if value not in (None, [], {})}


def _names(written: str | None) -> list[str] | None:
    return [name.strip() for name in written.split(",")] if written else None


def _role(written: str) -> tuple[str, str]:
    name, equals, role = written.rpartition("=")
    if not equals:
        raise UsageError(f"--role must be COLUMN=ROLE, such as zip=nominal, got {written!r}")
    return name, role


def reads_a_table(command: Callable[..., None]) -> Any:
    """Give a command the options of a table behind its first parameter; it receives their settings as `table`.

    A table with faults ends it with all of them and the command that corrects them.
    """
    first, *own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "table"]
    hints = get_type_hints(TableOptions, include_extras=True)
    label, *more = [first.replace(name=name, default=None, annotation=hint) for name, hint in hints.items()]
    context = first.replace(name="context", annotation=typer.Context)

    @functools.wraps(command)
    def inside(context: typer.Context, **given: Any) -> None:
        table = TableOptions(**{name: given.pop(name) for name in hints}).settings()
        try:
            command(**given, table=table)
        except FaultyTableError as error:
            from banditlab.cli.table_view import fault_lines

            source, without = given[first.name], {first.name, *hints}
            source = str(source[0] if isinstance(source, list) else source)
            if given.get("best_of"):
                source, without = "the request", {*without, "best_of", "agent", "settings"}
            for line in fault_lines(error, source, option_words(context, without)):
                typer.echo(plain(line), err=True)
            raise typer.Exit(2) from None

    parameters = [context, first, label, *own, *more]
    inside.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    inside.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return inside


def option_words(context: typer.Context, without: Collection[str]) -> list[str]:
    """Return a request's options that are not at their defaults as words, but for some parameters."""
    words: list[str] = []
    for option in context.command.params:
        value = context.params.get(str(option.name))
        if option.name in without or value in (None, (), [], option.default):
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [option.opts[0], *([] if each is True else [str(each)])]
    return words
