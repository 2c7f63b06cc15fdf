"""The settings of a table as options of the command line, in a module that is fast to import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin

Format = Literal["auto", "csv", "parquet", "libsvm", "arff"]
Missing = Literal["error", "mean", "zero", "indicator", "drop_rows"]
Scaling = Literal["auto", "none", "minmax", "standard", "maxabs", "robust", "rowwise"]


class Option(NamedTuple):
    """The command-line option of a setting of `Table`; without the option, the setting has its default."""

    word: str
    help: str
    kind: Any = str
    """The type of the value. Options of type list[...] and dict[...] may be repeated, the latter as KEY=VALUE."""


OPTIONS = {
    "label": Option("--label", "Column with the right action of each row."),
    "arms": Option(
        "--arms", "Instead of --label: a column per action, such as gpt,llama, with 1 for right, 0 for wrong."
    ),
    "right_above": Option(
        "--right-above", "The columns of --arms are scores: an action is right if its score is at least this.", float
    ),
    "costs": Option(
        "--costs",
        "Columns of the actions' costs, in the order of --arms. They are only reported, unless --worth is given.",
    ),
    "worth": Option(
        "--worth", "An action is right if score - WORTH * cost is at least --right-above. Default: 0.", float
    ),
    "per": Option(
        "--per",
        "A nominal column. Adds two baselines per value to the comparison: the best action in hindsight, and beta-ts.",
    ),
    "text": Option("--text", "A text column whose words become features. May be repeated.", list[str]),
    "text_features": Option(
        "--text-features",
        "Features of text columns: words:N for the N most frequent words, or svd:N. Default: words:1000.",
    ),
    "roles": Option("--role", "Read a column as numeric, nominal, time or drop. May be repeated.", dict[str, str]),
    "header": Option(
        "--header/--no-header", "Whether the first line of a CSV file has the column names. Default: detected.", bool
    ),
    "format": Option("--format", "Format of the file. Default: by the file's extension.", Format),
    "encoding": Option(
        "--encoding",
        "Encoding of a CSV or ARFF file, such as cp1252. Default: UTF-8, or the encoding of the byte order mark.",
    ),
    "separator": Option("--separator", "Column separator. Default: detected."),
    "decimal": Option("--decimal", "Decimal separator, . or a comma. Default: ."),
    "thousands": Option("--thousands", "Thousands separator of numbers, such as a comma. Default: none."),
    "comments": Option(
        "--comment", "Leave out lines of a CSV file that begin with this mark, such as #. May be repeated.", list[str]
    ),
    "na_values": Option("--na-values", "Treat this entry as missing, such as 9999. May be repeated.", list[str]),
    "drop_rows": Option("--drop-row", "Leave out this row, counted from 0. May be repeated.", list[int]),
    "drop_columns": Option("--drop-column", "Leave out this column. May be repeated.", list[str]),
    "max_categories": Option("--max-categories", "Largest number of categories of a text column. Default: 100.", int),
    "order": Option("--order", "Order of the rows: shuffle, file (as in the file) or time:COLUMN. Default: shuffle."),
    "group": Option(
        "--group",
        "A column. Rows with the same value form a group, and only the first row of each group counts in the ranking.",
    ),
    "missing": Option("--missing", "What to do with missing entries. Default: error.", Missing),
    "scaling": Option("--scaling", "Scaling of numeric columns. Default: auto.", Scaling),
}
"""The options by setting, in the order of the help."""


def words_of(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the command-line arguments that give these settings."""
    for name, value in settings.items():
        word = OPTIONS[name].word if name in OPTIONS else f"--{name}"
        if name == "header":
            yield from word.split("/")[value == "no"].split() if value in ("yes", "no") else ()
            continue
        several = [f"{key}={each}" for key, each in value.items()] if isinstance(value, dict) else value
        for each in several if isinstance(several, list) else [] if several in (None, "") else [several]:
            yield from (word, str(each))


def with_words(settings: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """Return the settings changed by the options `words`, a name and a value in turn.

    The value of a repeatable option is added to those already set.
    """
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
