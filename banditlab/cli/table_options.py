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

    label: Annotated[str | None, typer.Option("--label", help="Column of the right actions.")]
    arms: Annotated[
        str | None,
        typer.Option(help="Instead of --label: a column per action, such as gpt,llama, with 1 for right, 0 for wrong."),
    ]
    right_above: Annotated[
        float | None,
        typer.Option(help="The columns of --arms are scores: an action is right if its score is at least this."),
    ]
    costs: Annotated[
        str | None,
        typer.Option(
            help="Columns of the actions' costs, in the order of --arms. They are only reported, unless --worth is given."
        ),
    ]
    worth: Annotated[
        float | None,
        typer.Option(help="An action is right if score - WORTH * cost is at least --right-above. Default: 0."),
    ]
    per: Annotated[
        str | None,
        typer.Option(
            help="A text column: adds the best action per value (in hindsight) and beta-ts per value to the comparison."
        ),
    ]
    text: Annotated[
        list[str] | None, typer.Option("--text", help="A column of texts whose words become features. May be repeated.")
    ]
    text_features: Annotated[
        str | None,
        typer.Option(
            help="Features of text columns: words:N for the N most frequent words, or svd:N. Default: words:1000."
        ),
    ]
    roles: Annotated[
        list[str] | None,
        typer.Option(
            "--role", metavar="COLUMN=ROLE", help="Read a column as numeric, nominal, time or drop. May be repeated."
        ),
    ]
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first line of a CSV file has the column names. Default: detected."
        ),
    ]
    format: Annotated[Format | None, typer.Option(help="Format of the file. Default: by its ending.")]
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Encoding of a CSV or ARFF file, such as cp1252. Default: UTF-8, or as the byte order mark says."
        ),
    ]
    separator: Annotated[str | None, typer.Option(help="Column separator. Default: detected.")]
    decimal: Annotated[str | None, typer.Option(help="Decimal separator, . or a comma. Default: a point.")]
    thousands: Annotated[
        str | None, typer.Option(help="Thousands separator of numbers, such as a comma. Default: none.")
    ]
    comments: Annotated[
        list[str] | None,
        typer.Option(
            "--comment", help="Leave out lines of a CSV file that begin with this, such as #. May be repeated."
        ),
    ]
    na_values: Annotated[
        list[str] | None,
        typer.Option("--na-values", help="Treat this entry as missing, such as 9999. May be repeated."),
    ]
    drop_rows: Annotated[
        list[int] | None, typer.Option("--drop-row", help="Leave out this row, counted from 0. May be repeated.")
    ]
    drop_columns: Annotated[
        list[str] | None, typer.Option("--drop-column", help="Leave out this column. May be repeated.")
    ]
    max_categories: Annotated[
        int | None, typer.Option(help="Largest number of categories of a text column. Default: 100.")
    ]
    order: Annotated[
        str | None,
        typer.Option(help="Order of the rows: shuffle, file (as in the file) or time:COLUMN. Default: shuffle."),
    ]
    group: Annotated[
        str | None,
        typer.Option(
            help="A column: rows with the same value belong together, and only the first of each group is ranked."
        ),
    ]
    missing: Annotated[Missing | None, typer.Option(help="What to do with missing entries. Default: error.")]
    scaling: Annotated[Scaling | None, typer.Option(help="Scaling of numeric columns. Default: auto.")]

    def settings(self) -> dict[str, Any]:
        """Return the given settings for `Table`."""
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

            source, without = str(given[first.name]), {first.name, *hints}
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
    """Return a request's options that differ from their defaults as words of a command line, except some."""
    words: list[str] = []
    for option in context.command.params:
        value = context.params.get(str(option.name))
        if option.name in without or value in (None, (), [], option.default):
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [option.opts[0], *([] if each is True else [str(each)])]
    return words
