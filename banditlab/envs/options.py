"""The settings of a table as options of the command line, for whoever reads or writes them. It imports nothing that is slow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin

Format = Literal["auto", "csv", "parquet", "libsvm", "arff"]
Missing = Literal["error", "mean", "zero", "indicator", "drop_rows"]
Scaling = Literal["auto", "none", "minmax", "standard", "maxabs", "robust", "rowwise"]


class Option(NamedTuple):
    """A setting of `Table` on the command line; the setting's default is None there."""

    word: str
    help: str
    kind: Any = str
    """Of the value; list[...] and dict[...] are options that may be repeated, the latter as KEY=VALUE."""


OPTIONS = {
    "label": Option("--label", "The column to predict."),
    "arms": Option(
        "--arms", "In the place of a label: columns of 0 and 1, one per action, such as gpt,llama; 1 is right."
    ),
    "right_above": Option(
        "--right-above", "Arms are scores, and an action is right where its score is at least this.", float
    ),
    "costs": Option("--costs", "Columns of what each arm costs, in the order of --arms; reported, not learnt from."),
    "worth": Option("--worth", "An arm is right where score - WORTH * cost is at least --right-above; 0.", float),
    "per": Option("--per", "A text column: what the best arm per value of it reaches, and beta-ts per value."),
    "text": Option("--text", "A column of texts: its words are features; repeatable.", list[str]),
    "text_features": Option("--text-features", "Of text columns: words:N, or svd:N for N numbers; words:1000."),
    "roles": Option("--role", "numeric, nominal, time or drop; repeatable.", dict[str, str]),
    "header": Option("--header/--no-header", "Whether a CSV file's first line has names; else detected.", bool),
    "format": Option("--format", "Of the file; by default by its ending.", Format),
    "encoding": Option("--encoding", "Of a CSV or ARFF file, such as cp1252; UTF-8, or what a byte order mark says."),
    "separator": Option("--separator", "Column separator; by default detected."),
    "decimal": Option("--decimal", "Decimal separator, . or a comma; by default the point."),
    "thousands": Option("--thousands", "What groups the digits of numbers, such as a comma; nothing."),
    "comments": Option(
        "--comment", "Leave out lines of a CSV file that begin with this, such as #; repeatable.", list[str]
    ),
    "na_values": Option("--na-values", "An entry that counts as missing, such as 9999; repeatable.", list[str]),
    "drop_rows": Option("--drop-row", "A data row to leave out, counted from 0; repeatable.", list[int]),
    "drop_columns": Option("--drop-column", "A column to leave out; repeatable.", list[str]),
    "max_categories": Option("--max-categories", "Most categories of a text column; 100.", int),
    "order": Option("--order", "Of the rows: shuffle, file (as they stand) or time:COLUMN; shuffle."),
    "group": Option("--group", "A column: rows with one value belong together, and the first of each counts."),
    "missing": Option("--missing", "What is done about missing entries; error.", Missing),
    "scaling": Option("--scaling", "Of numeric columns; auto.", Scaling),
}
"""By setting, in the order of the help."""


def words_of(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of a command line that has these settings."""
    for name, value in settings.items():
        word = OPTIONS[name].word if name in OPTIONS else f"--{name}"
        if name == "header":
            yield from word.split("/")[value == "no"].split() if value in ("yes", "no") else ()
            continue
        several = [f"{key}={each}" for key, each in value.items()] if isinstance(value, dict) else value
        for each in several if isinstance(several, list) else [] if several in (None, "") else [several]:
            yield from (word, str(each))


def with_words(settings: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """Return settings with options and their values, one after another; those that may be repeated are added."""
    found, names = dict(settings), {option.word: name for name, option in OPTIONS.items()}
    for word, value in zip(words[::2], words[1::2], strict=True):
        name, kind = names[word], OPTIONS[names[word]].kind
        if get_origin(kind) is dict:
            key, _, each = value.rpartition("=")
            found[name] = {**(found.get(name) or {}), key: each}
        elif get_origin(kind) is list:
            found[name] = list(dict.fromkeys([*(found.get(name) or ()), get_args(kind)[0](value)]))
        else:
            found[name] = value
    return found
