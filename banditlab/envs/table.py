"""A user's own table: a file with a label column, or with a column for every action."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, get_args

import numpy as np

from banditlab.envs import files
from banditlab.envs._base import Floats, Labels
from banditlab.envs._columns import Missing, Recipe, TableScaling
from banditlab.envs._dataset import DataSetEnv
from banditlab.envs._frame import Arms, is_cost, numbers_of, refuse_column, refuse_gaps_of, table_rows
from banditlab.envs._lines import sniff_separator, without_comments
from banditlab.envs._reading import PLAIN, without
from banditlab.envs._reading import Reading as Reading
from banditlab.envs._recipe import Rows
from banditlab.envs._sparse_table import sparse_rows, stays_sparse, with_texts
from banditlab.envs._time import depend_beyond_time, follow_time
from banditlab.envs._units import rows_alike
from banditlab.envs._words import parsed
from banditlab.envs.files import Format, Header
from banditlab.errors import FaultError, UsageError, nearest
from banditlab.validation import at_least, one_of

if TYPE_CHECKING:
    import pandas as pd

_CACHE: OrderedDict[str, tuple[Rows, str, Header]] = OrderedDict()
"""The last tables read in this process, because every run of a sweep creates the same environment."""
_CACHED_TABLES = 4
COPIES = "copies and near copies"
"""The value of `group` for the detection of similar rows."""
NEEDED = {"order": "a number or a date in ISO 8601 such as 2024-05-31T12:30:00", "group": "a value"}
DEFAULTS = (
    *(("group", ""), ("order", "shuffle"), ("arms", None), ("right_above", None), ("costs", None), ("worth", 0.0)),
    *(("text", None), ("text_features", "words:1000")),
    *(("thousands", ""), ("comments", None), ("na_values", None)),
)
"""Settings with these default values are left out of an identity."""
LISTS = ("drop_rows", "drop_columns", "roles", "arms", "costs", "text", "comments", "na_values")
STAY_SPARSE = (
    "; rows stay sparse if at most a quarter of their entries differ from 0, no entry is missing and scaling "
    "(--scaling) is none"
)
_SEPARATORS = {"tab": "\t", "\\t": "\t"}


class Table(DataSetEnv):
    r"""The rows of a CSV, Parquet, LIBSVM or ARFF file, plain or gzipped, in a new seeded order in each pass.

    Columns of numbers and booleans are numeric; all other columns are nominal and one-hot encoded. The parameters below
    describe the other steps of the encoding. Labels may be of any type; `classes` contains the names of the classes
    :math:`0, \dots, K-1`.

    A LIBSVM file stays sparse if at most a quarter of its entries differ from 0 and it would take more than 64 MiB as a
    dense array. Blocks are then in CSR form and need memory for nonzero entries only. The table becomes dense if
    entries are missing, or if min-max scaling applies to a column with negative entries.

    Parameters
    ----------
    path
        The file. A run's identity contains its content (sha256), not its path.
    label
        Name of the label column; "" for a LIBSVM file, whose format includes labels.
    arms
        The columns of the actions, at least 2, instead of a label. An entry is 1 (or true) if the action is right in
        the row, else 0; none, several or all actions may be right. All other columns are features.
    right_above
        Threshold if arms are scores: an action is right if its score is at least this number. None: entries are 0 or 1.
    costs
        The columns of the actions' costs, one per arm, in the order of `arms`, with numbers of at least 0. They are not
        features, and no agent observes them. Results include the mean cost of the chosen actions.
    worth
        The score that equals one unit of cost. An action is right if its score minus `worth` times its cost is at least
        `right_above`. With 0, costs are only reported.
    per
        With arms, a nominal feature. Results then include the mistakes of the best action per value of this column. The
        attribute `per_features` contains the indices of its first and last one-hot feature, which the agent "beta-ts"
        takes as its setting `per`. The rounds do not depend on it.
    text
        Text columns whose words become features: scikit-learn's TF-IDF, with norm 1. It is fitted to the whole table
        or, unless `order` is "shuffle", to the first eighth of the rows, whose own text features are 0. A missing text
        has no words.
    text_features
        "words:1000": the 1,000 most frequent words of each text column. "svd:64": a truncated SVD of the TF-IDF of its
        1,000 most frequent words.
    format
        "csv", "parquet", "libsvm", "arff", or "auto", which uses the file's extension (.csv .tsv .txt .data, .parquet
        .pq, .libsvm .svm .svmlight, .arff, each also with .gz).
    encoding
        Encoding of a CSV or ARFF file, as a name that Python supports ("cp1252", "latin-1", "utf-16-le"). "auto"
        accepts UTF-8, and UTF-16 with a byte order mark.
    separator
        Separator of a CSV file; "auto" detects tab, semicolon or comma.
    header
        Whether the first line of a CSV file names the columns: "yes"; "no" (they are then called "0", "1", ...); or
        "auto", which compares that line with those below it.
    decimal
        Decimal separator of a CSV file, "." or ",".
    thousands
        Separator of thousands in a CSV file, such as "," in 26,238; "" if there is none.
    comments
        Marks of comments, such as "#": lines of a CSV file that begin with one of them are left out.
    na_values
        Entries that count as missing, as strings; a number counts in any spelling, such as 9999 and 9999.0.
    drop_rows
        Data rows to leave out, for instance malformed ones, counted from 0 after the header.
    drop_columns
        Names of columns to leave out, for instance identifiers, or columns that reveal the label. A LIBSVM file has the
        columns "0", "1", ...
    roles
        Role by column, if its type does not imply it: "numeric", "nominal" (for instance numbers that are codes),
        "time" (dates or ISO 8601 strings, as days since 1970-01-01) or "drop".
    max_categories
        A nominal column with more categories is rejected.
    order
        "shuffle": a new seeded order in each pass. "file": the order of the file. "time:COLUMN": the order of a column
        of numbers or dates (ISO 8601), which is then not a feature; rows of equal time stay in the order of the file.
        With "file" and "time:COLUMN", scaling "auto" is "running": each number is scaled to [0, 1] by the least and the
        largest number of its column so far, outliers are clipped, and gaps are filled with the mean so far. Values in
        later rows do not affect a context, but the columns, their categories, and which columns have gaps are known in
        advance. No other scaling is allowed.
    group
        A column, which is then not a feature. Rows with the same value are presented together, and only the first row
        of each group counts in a ranking, because it may reveal the labels of the other rows. "copies and near copies"
        detects groups of rows whose features are more similar than by chance. "": each row is a separate group.
    scaling
        "none": numeric columns as given. "minmax": each column scaled to [0, 1]. "auto": "minmax" if the ranges
        of two columns differ by more than a factor of 10, else "none"; columns with outliers are first clipped, or
        replaced by ranks if there are many outliers (not in a file that stays sparse). "standard", "maxabs", "robust":
        scikit-learn's scalers, fitted to the whole table. "rowwise": asinh of each number, then each row divided by its
        own norm; no other row is used.
    missing
        Rule for missing, NaN and infinite entries: "error", "mean", "zero", "indicator" (the mean, and a 0/1 column
        that marks them) or "drop_rows". An empty field, "?", "nan", "NULL" and the like are missing. "NA", "N/A", "n/a"
        and "None" are missing among numbers, and are values in a label or a text column. Except with "error", rows
        without a label are left out.
    normalize
        Divide by the largest row norm.
    intercept
        Append a constant column.
    horizon
        T, the number of rounds of an episode. In a sweep, the sweep's `rounds` sets it.

    Raises
    ------
    UsageError
        The file or a setting is invalid; the message is one line with the file and the fault.
    """

    id: ClassVar[str] = "banditlab/Table-v0"
    summary: ClassVar[str] = "your own CSV, Parquet, LIBSVM or ARFF file with a label column, or a column per action"
    reference: ClassVar[str] = "the user's"
    version: ClassVar[int] = 1
    path_settings: ClassVar[tuple[str, ...]] = ("path",)

    def __init__(
        self,
        *,
        path: str,
        label: str = "",
        arms: list[str] | None = None,
        right_above: float | None = None,
        costs: list[str] | None = None,
        worth: float = 0.0,
        per: str = "",
        text: list[str] | None = None,
        text_features: str = "words:1000",
        format: Format = "auto",
        encoding: str = "auto",
        separator: str = "auto",
        header: Header = "auto",
        decimal: str = ".",
        thousands: str = "",
        comments: list[str] | None = None,
        na_values: list[str] | None = None,
        drop_rows: list[int] | None = None,
        drop_columns: list[str] | None = None,
        roles: dict[str, str] | None = None,
        max_categories: int = 100,
        order: str = "shuffle",
        group: str = "",
        scaling: TableScaling = "auto",
        missing: Missing = "error",
        normalize: bool = True,
        intercept: bool = True,
        horizon: int = 10_000,
    ) -> None:
        self.path, self.label_column = str(path), str(label)
        self.arms, self.right_above = [str(name) for name in arms or ()], right_above
        self.costs, self.worth, self.per = [str(name) for name in costs or ()], worth, str(per)
        self.text, self.text_features = [str(name) for name in text or ()], str(text_features)
        parsed(self.text_features)
        self._arms = Arms(self.arms, right_above, self.costs, worth)
        self._arms.refuse(self.label_column, self.path)
        self.format = files.format_of(self.path, one_of("format", format, get_args(Format)))  # type: ignore[arg-type]
        self.encoding = str(encoding)
        self.separator = _SEPARATORS.get(separator, separator)
        if self.separator != "auto" and len(self.separator) != 1:
            raise UsageError(f"separator must be one character, 'tab' or 'auto', got {separator!r}")
        one_of("header", header, get_args(Header))
        self.header: Header = header
        self.decimal, self.thousands = one_of("decimal", decimal, (".", ",")), str(thousands)
        if len(self.thousands) > 1 or self.thousands == self.decimal:
            raise UsageError(
                f"thousands (--thousands) must be one character other than the decimal separator, got {thousands!r}"
            )
        self.comments, self.na_values = [*map(str, comments or ())], [*map(str, na_values or ())]
        self.reading = Reading(self.decimal, self.thousands, tuple(self.na_values))
        self.roles = {str(name): str(role) for name, role in (roles or {}).items()}
        self.drop_rows = [int(row) for row in drop_rows or ()]
        self.drop_columns = [str(name) for name in drop_columns or ()]
        self.max_categories = at_least("max_categories", max_categories, 2)
        self.order, self.group, self.scaling, self.missing = str(order), str(group), scaling, missing
        self.in_order = self.order != "shuffle"
        if self.order not in ("shuffle", "file") and not (self.order.startswith("time:") and self.order[5:]):
            raise UsageError(f"order (--order) must be shuffle, file or time:COLUMN, got {self.order!r}")
        if scaling != "auto" and self.in_order != (scaling == "running"):
            raise UsageError(
                f"{self.path}: scaling (--scaling) {scaling!r} and order (--order) {self.order!r} cannot be combined"
            )
        self.normalize, self.intercept = bool(normalize), bool(intercept)
        if self.format == "libsvm" and (self.label_column or self.arms):
            named = "arms" if self.arms else "label (--label)"
            raise UsageError(f"{self.path}: a LIBSVM file has its own labels; leave out {named}")
        super().__init__(horizon)
        self.scaling = self._table.scaling
        self.per_features = self._per_features() if self.per else None

    @classmethod
    def identity(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings with the file's content hash and its format instead of its path.

        An empty list of rows, columns or roles is the same as None. `header` is included if the file has no header.
        """
        rest = {name: value for name, value in settings.items() if name not in ("path", "per")}
        rest |= {name: rest[name] or None for name in LISTS if name in rest}
        rest = {name: value for name, value in rest.items() if (name, value) not in DEFAULTS}
        path = str(settings["path"])
        found, data = files.format_of(path, settings.get("format", "auto")), files.read_bytes(path)
        if rest.get("header", "auto") == "yes":
            rest["header"] = "auto"
        if found == "csv" and rest.get("header", "auto") == "auto" and settings.get("header") != "yes":
            text = files.content_of(path, data, found, rest.get("encoding", "auto"))
            text = without_comments(text, rest.get("comments", ()))
            separator = _SEPARATORS.get(rest.get("separator", "auto"), rest.get("separator", "auto"))
            separator = sniff_separator(path, text) if separator == "auto" else separator
            rest |= {} if files.has_header(text, separator) else {"header": "no"}
        return rest | {"format": found, "content": files.content_hash(data)}

    def _load(self) -> Rows:
        data = files.read_bytes(self.path)
        self.content = files.content_hash(data)  # of the data used, which is compared with a run's identity
        key = repr({**self.params(), "path": self.content})
        if key not in _CACHE:
            _CACHE[key] = self._read(data)
            while len(_CACHE) > _CACHED_TABLES:
                _CACHE.popitem(last=False)
        _CACHE.move_to_end(key)
        rows, self.separator, self.header = _CACHE[key]
        return rows

    def _read(self, data: bytes) -> tuple[Rows, str, Header]:
        import pandas as pd

        scaling: Any = "auto" if self.scaling == "running" else self.scaling
        recipe = Recipe(scaling, self.missing, self.normalize, self.intercept, self.in_order, tuple(self.na_values))
        data, label = files.content_of(self.path, data, self.format, self.encoding), self.label_column
        if self.format == "libsvm":
            X, labels = files.read_libsvm(self.path, data, self.drop_rows)
            if stays_sparse(X) and not (self.group or self.in_order or self.text):
                rows = sparse_rows(X, labels, recipe, self.drop_columns, self.path)
                if rows is not None:
                    return rows, self.separator, self.header
            names, label = [str(j) for j in range(X.shape[1])], files.LIBSVM_LABEL
            dense = files.made_dense(self.path, X, names, labels, STAY_SPARSE)
            read = ReadFrame(dense, self.separator, self.header)
        else:
            read = self._frame(data)
        named = {"order": self.order.partition("time:")[2], "group": "" if self.group == COPIES else self.group}
        given = read.frame.drop(columns=[*self.arms, *self.costs] or label, errors="ignore")
        columns = {key: self._column(key, name, given) for key, name in named.items() if name}
        for name in self.text:
            refuse_column("text (--text)", name, list(given.columns), self.path)
            if not pd.api.types.is_string_dtype(given[name].dropna()):
                raise UsageError(f"{self.path}: text (--text): column {name!r} is not text")
            if self.missing == "error":
                refuse_gaps_of(given[name], f"{self.path}: text column {name!r}")
        if "order" in columns:
            read = read._replace(frame=read.frame.iloc[np.argsort(columns["order"].to_numpy(), kind="stable")])
        rows = table_rows(
            read.frame,
            label,
            recipe,
            drop_columns=[*self.drop_columns, *self.text, *filter(None, named.values())],
            max_categories=self.max_categories,
            source=self.path,
            roles={name: role for name, role in self.roles.items() if name not in named.values()},
            arms=self._arms,
            bare=bool(self.text),
        )
        if self.text:
            rows = with_texts(rows, read.frame, self.text, self.text_features, self.path)
        return rows._replace(units=self._units(read.frame, rows)), read.separator, read.header

    @cached_property
    def looks_ordered(self) -> bool:
        """Whether neighbouring rows are similar, in labels and in features."""
        return not self.sparse and follow_time(*self._table.alone())

    @cached_property
    def follows_time(self) -> bool:
        """Whether neighbouring rows are similar, and labels depend on features only because both change over time."""
        return self.looks_ordered and not depend_beyond_time(*self._table.alone())

    def _frame(self, content: bytes) -> ReadFrame:
        written = self.format, self.separator, self.header, self.reading
        return read_frame(self.path, content, *written, self.comments, self.drop_rows, self.label_column).checked()

    def _per_features(self) -> list[int]:
        """Return the indices of the first and last feature of the column `per`, or raise a UsageError."""
        nominal = {} if self.encoder is None or not self.several_right else self.encoder.blocks
        if self.per not in nominal:
            raise UsageError(
                f"{self.path}: per (--per) must be a nominal feature of a table with arms, got {self.per!r}"
                f"{nearest(self.per, list(nominal))}; --role {self.per}=nominal makes a numeric column nominal"
            )
        return nominal[self.per]

    def column(self, name: str) -> Floats:
        """Return the numbers (N,) of a column that is not a feature, with NaN for missing entries.

        Raises
        ------
        UsageError
            The column is not among `drop_columns`, an entry is not a number of at least 0, or rows are sparse.
        """
        numbers = self._table.numbers
        if name not in self.drop_columns:
            raise UsageError(f"{self.path}: column {name!r} must be among drop_columns, so that it is not a feature")
        if numbers is None:
            raise UsageError(f"{self.path}: column {name!r} cannot be read, because the file stays sparse")
        content = files.content_of(self.path, files.read_bytes(self.path), self.format, self.encoding)
        given = self._frame(content).frame[[name]].loc[numbers.tolist()]
        return numbers_of(given, self.path, "a number of at least 0", is_cost, True)[:, 0]

    def _column(self, key: str, name: str, frame: pd.DataFrame) -> pd.Series:
        """Return the column that orders the rows (as numbers or dates) or groups them, or raise a UsageError."""
        import pandas as pd

        where = f"{self.path}: {key} (--{key})"
        if name not in frame.columns:
            hint = nearest(name, list(frame.columns[:30]), keep_order=True)
            beside = "arms" if self.arms else "label"
            raise UsageError(f"{where}: there is no column {name!r}, not counting the {beside}{hint}")
        values = frame[name].replace([np.inf, -np.inf], np.nan)
        if key == "order" and not pd.api.types.is_numeric_dtype(values.dtype):
            values = pd.to_datetime(values, errors="coerce", utc=True, format="ISO8601")
        if (gaps := values.isna()).any():
            raise UsageError(
                f"{where}: column {name!r} has {str(frame[name][gaps].iloc[0])[:60]!r} in row {frame.index[gaps][0]}, counted "
                f"from 0; every row needs {NEEDED[key]}"
            )
        return values

    def _units(self, frame: pd.DataFrame, rows: Rows) -> Labels | None:
        import pandas as pd

        if not self.group:
            return None
        assert rows.encoder is not None
        assert rows.numbers is not None
        frame = frame.loc[rows.numbers.tolist()]
        if self.group != COPIES:
            return np.asarray(pd.factorize(frame[self.group])[0])
        rng = np.random.default_rng(0)
        permuted = {name: frame[name].iloc[rng.permutation(len(frame))].to_numpy() for name in frame.columns}
        chance = rows.encoder.transform(pd.DataFrame(permuted))
        return rows_alike(rows.encoder.transform(frame), chance, len(rows.classes))


class ReadFrame(NamedTuple):
    """A file's table and the properties detected in the file."""

    frame: pd.DataFrame
    separator: str
    header: Header
    faults: Sequence[FaultError] = ()

    def checked(self) -> ReadFrame:
        """Return the object, or raise its first fault."""
        if self.faults:
            raise self.faults[0]
        return self


def read_frame(
    path: str,
    data: bytes,
    format_: str,
    separator: str = "auto",
    header: Header = "auto",
    reading: Reading = PLAIN,
    comments: Sequence[str] = (),
    drop_rows: Sequence[int] | None = None,
    label: str = "",
) -> ReadFrame:
    """Return the table of a CSV, Parquet or ARFF file's bytes."""
    rows = list(drop_rows or ())
    if format_ in ("parquet", "arff"):
        read = files.read_parquet if format_ == "parquet" else files.read_arff
        return ReadFrame(without(read(path, data, rows), reading.na_values), separator, header)
    data, separator = without_comments(data, comments), _SEPARATORS.get(separator, separator)
    if separator == "auto":
        separator = sniff_separator(path, data)
    if header == "auto":
        header = "yes" if files.has_header(data, separator) else "no"
    frame, faults = files.read_csv(path, data, separator, reading, rows, header == "yes", label)
    return ReadFrame(without(frame, reading.na_values), separator, header, faults)
