"""Read a CSV, Parquet, LIBSVM or ARFF file, plain or gzipped, into a pandas table."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from banditlab.envs._lines import records, refuse_odd_lines
from banditlab.envs._lines import sniff_separator as sniff_separator
from banditlab.envs._reading import MISSING, Reading, with_numbers
from banditlab.envs._text import as_utf8, from_ascii, in_ascii
from banditlab.envs.options import Format as Format
from banditlab.errors import FaultError, UsageError
from banditlab.validation import COLUMNS, ENTRIES, FEATURES, ROWS, UNPACKED, limit, refuse_beyond

if TYPE_CHECKING:
    import pandas as pd

Header = Literal["auto", "yes", "no"]

SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".data"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".libsvm", ".svm", ".svmlight"), "libsvm"),
    ".arff": "arff",
}
TEXTS = ("csv", "arff")
"""Formats for which an encoding can be given."""
SNIFFED, SNIFFED_LINES = 2**20, 200
"""Header detection reads at most this many bytes and lines of a CSV file."""
LIBSVM_LABEL = "label"
MOST_PACKED = 1040
"""The largest compression ratio that the gzip format allows."""
MAX_ENTRIES = 2 * 10**8
"""The largest number of entries (1.6 GB) for which a sparse file is made dense."""


def read_bytes(path: str) -> bytes:
    """Return a file's content, or raise a UsageError if it is missing, unreadable or empty."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise _no_file(path) from None
    except OSError as error:
        raise UsageError(f"path: {path} cannot be read ({error.strerror})") from None
    if not data.strip():
        raise UsageError(f"{path}: the file is empty")
    return data


def _no_file(path: str) -> UsageError:
    return UsageError(f"there is no file {path}")


def content_hash(data: bytes) -> str:
    """Return the SHA-256 hash of a file's content, which enters the id of a run on that file."""
    return hashlib.sha256(data).hexdigest()


def format_of(path: str, declared: Format) -> str:
    """Return "csv", "parquet", "libsvm" or "arff": the declared format, or that of the file's extension without ".gz"."""
    if declared != "auto":
        return declared
    name = Path(path.removesuffix(".gz"))
    if name.suffix.lower() not in SUFFIXES:
        if not Path(path).exists():
            raise _no_file(path)
        raise UsageError(
            f"{path}: the extension {name.suffix!r} is not a known format; export the table as CSV or Parquet, or set format "
            f"(--format) to csv, parquet, libsvm or arff (known extensions: {', '.join(SUFFIXES)}, each also with .gz)"
        )
    return SUFFIXES[name.suffix.lower()]


def unpacked(path: str, data: bytes) -> bytes:
    """Return the content, decompressed if it begins with the gzip signature; a file named .gz must be gzipped."""
    if data.startswith(b"PK\x03\x04"):
        raise UsageError(f"{path}: a zip archive or an Excel file; unpack it, or export the table as CSV or Parquet")
    if not data.startswith(b"\x1f\x8b"):
        if path.endswith(".gz"):
            raise UsageError(f"{path}: not a gzip file")
        return data
    most = limit(UNPACKED)
    size = int.from_bytes(data[-4:], "little")  # the length field of the last member, not yet verified
    if size <= MOST_PACKED * len(data):  # otherwise the file is damaged, which decompression reports
        refuse_beyond(UNPACKED, size, f"{path}: {len(data):,} bytes unpack to {size:,}")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            parts, size = [], 0
            while size <= most and (part := packed.read(2**24)):  # stop at the limit
                parts.append(part)
                size += len(part)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: the gzip file is damaged ({error})") from None
    refuse_beyond(UNPACKED, size, f"{path}: {len(data):,} bytes unpack to {most:,} and more")
    data = b"".join(parts)
    if not data.strip():
        raise UsageError(f"{path}: the file is empty")
    return data


def content_of(path: str, data: bytes, format_: str, encoding: str = "auto") -> bytes:
    """Return a file's content for the readers below: decompressed, and as UTF-8 for a CSV or ARFF file."""
    data = unpacked(path, data)
    if format_ in TEXTS:
        return as_utf8(path, data, encoding)
    if encoding != "auto":
        raise UsageError(f"{path}: encoding (--encoding) applies to CSV and ARFF files only; leave it out")
    return data


def read_csv(
    path: str, data: bytes, separator: str, reading: Reading, drop_rows: list[int], header: bool = True, label: str = ""
) -> tuple[pd.DataFrame, list[FaultError]]:
    """Return the table, with numeric columns as floats and other columns as text, and its faults (`_reading.with_numbers`).

    All entries are first read as text, so a dropped malformed row does not affect a column's type. Without a header,
    columns are called "0", "1", ...
    """
    import pandas as pd

    line = data[: data.find(b"\n")] if b"\n" in data else data
    columns = 1 + line.count(separator.encode())
    refuse_beyond(COLUMNS, columns, f"{path}: the first line has {columns:,} columns separated by {separator!r}")
    most = min(limit(ROWS), limit(ENTRIES) // columns)
    refuse_odd_lines(path, data, separator)
    try:
        frame = pd.read_csv(
            io.BytesIO(data),
            sep=separator,
            dtype=str,
            keep_default_na=False,
            na_values=[*MISSING, *reading.na_values],
            encoding="utf-8-sig",
            header="infer" if header else None,
            nrows=most + 1,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise UsageError(f"{path}: not a table separated by {separator!r} ({' '.join(str(error).split())})") from None
    refuse_table(path, len(frame), columns, "at least " * (len(frame) > most))
    if header:
        _refuse_duplicates([name for name in next(records(path, data, separator))[0] if name], path)
    frame.columns = [str(name) for name in frame.columns]
    return with_numbers(dropped(frame, drop_rows, path), label, reading, path)


def refuse_table(path: str, rows: int, columns: int, at_least: str = "") -> None:
    """Raise a UsageError if a table has too many rows, or too many entries."""
    refuse_beyond(ROWS, rows, f"{path}: the table has {at_least}{rows:,} rows")
    refuse_beyond(
        ENTRIES,
        rows * columns,
        f"{path}: {at_least}{rows:,} rows of {columns:,} columns are {rows * columns:,} entries",
    )


def has_header(data: bytes, separator: str) -> bool:
    """Return whether the first line of a CSV file names its columns, judged by the lines below it.

    A column votes against a header if its first entry is a number within the range of the numbers below it, or a text
    that occurs below it. It votes for a header if its first entry is a text and its other entries are numbers, or if
    the other entries are repeated texts and the first entry is none of them. There is no header if more than two thirds
    of the votes are against it. A first line of consecutive numbers (0, 1, 2, ...) counts as a header.
    """
    import pandas as pd

    try:
        lines = pd.read_csv(
            io.BytesIO(data[:SNIFFED].rpartition(b"\n")[0] if len(data) > SNIFFED else data),
            sep=separator, header=None, dtype=str, na_values=MISSING, encoding="utf-8-sig", encoding_errors="replace",
            nrows=SNIFFED_LINES,
        )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError):
        return True  # `read_csv` reports the fault
    if len(lines) < 3:
        return True
    first, below = lines.iloc[0], lines.iloc[1:]
    numbers = pd.to_numeric(first, errors="coerce")
    named = numbers.dropna().to_numpy(dtype=np.float64)
    if len(named) > 2 and bool((np.diff(named) == 1.0).all()):
        return True
    for_data = for_header = 0
    for j in lines.columns:
        values, token = below[j].dropna(), first[j]
        if pd.isna(token) or not len(values):
            continue
        found = pd.to_numeric(values, errors="coerce")
        if found.notna().all():
            for_data += bool(found.min() <= numbers[j] <= found.max())
            for_header += bool(pd.isna(numbers[j]))
        elif token in set(values):
            for_data += 1
        elif values.nunique() < len(values):
            for_header += 1
    return not for_data > 2 * for_header


def _refuse_duplicates(names: list[str], path: str) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise UsageError(f"{path}: two columns are called {twice[0]!r}; rename one in the file")


def read_parquet(path: str, data: bytes, drop_rows: list[int]) -> pd.DataFrame:
    """Return the table with the types of the file."""
    import pandas as pd
    import pyarrow.parquet

    try:
        head = pyarrow.parquet.ParquetFile(io.BytesIO(data)).metadata
        size = sum(head.row_group(i).total_byte_size for i in range(head.num_row_groups))
        columns, rows = head.num_columns, head.num_rows
        entries = sum(
            head.row_group(i).column(j).num_values for i in range(head.num_row_groups) for j in range(columns)
        )
        refuse_beyond(COLUMNS, columns, f"{path}: the file has {columns:,} columns")
        refuse_beyond(UNPACKED, size, f"{path}: {len(data):,} bytes unpack to {size:,}")
        refuse_table(path, rows, columns)
        refuse_beyond(ENTRIES, entries, f"{path}: the columns hold {entries:,} entries")
        _check_parquet(path, data)
        frame = pd.read_parquet(io.BytesIO(data)).reset_index(drop=True)
        for field in pyarrow.parquet.read_schema(io.BytesIO(data)):
            if pyarrow.types.is_decimal(field.type):
                frame[field.name] = frame[field.name].astype(np.float64)
    except UsageError:
        raise
    except Exception as error:  # for a damaged file pandas raises arbitrary exceptions
        raise UsageError(f"{path}: not a Parquet file ({' '.join(str(error).split())})") from None
    frame.columns = [str(name) for name in frame.columns]
    _refuse_duplicates(list(frame.columns), path)
    return dropped(frame, drop_rows, path)


def _check_parquet(path: str, data: bytes) -> None:
    """Read the file in batches, with one copy of each repeated text, and reject a file that is damaged or too large."""
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(io.BytesIO(data))
    texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    size = 0
    for batch in pyarrow.parquet.ParquetFile(io.BytesIO(data), read_dictionary=texts).iter_batches():
        batch.validate(full=True)  # pandas would report invalid UTF-8 only later
        for column in batch.columns:
            size += column.nbytes
            if pa.types.is_dictionary(column.type):
                lengths = pyarrow.compute.binary_length(column.dictionary.cast(pa.large_string()))
                size += pyarrow.compute.sum(lengths.cast(pa.int64()).take(column.indices)).as_py() or 0
        refuse_beyond(UNPACKED, size, f"{path}: {len(data):,} bytes unpack to {size:,} and more")


def read_arff(path: str, data: bytes, drop_rows: list[int]) -> pd.DataFrame:
    """Return the table of a dense ARFF file: numbers as floats, nominal columns as text, dates as dates."""
    import pandas as pd
    from scipy.io import arff

    head = re.search(rb"(?im)^\s*@data\b", data)
    attributes = re.findall(rb"(?im)^\s*@attribute\b", data[: head.start()] if head else b"")
    rows = data[head.end() :].strip().count(b"\n") + 1 if head else 0
    refuse_table(path, rows, max(1, len(attributes)), "up to ")
    try:
        table, about = arff.loadarff(io.StringIO(in_ascii(data.decode("utf-8-sig"))))
    except Exception as error:  # for a damaged file scipy's parser raises arbitrary exceptions
        raise UsageError(
            f"{path}: not an ARFF file that banditlab can read ({' '.join(from_ascii(str(error)).split())[:200]})"
        ) from None
    names = [from_ascii(str(name)) for name in about.names()]
    refuse_beyond(COLUMNS, len(names), f"{path}: the file has {len(names):,} columns")
    _refuse_duplicates(names, path)
    frame = pd.DataFrame(
        {name: _of_arff(table[given], kind) for name, given, kind in zip(names, about.names(), about.types())}
    )
    return dropped(frame, drop_rows, path)


def _of_arff(values: np.ndarray, kind: str) -> Any:
    import pandas as pd

    if kind != "nominal":
        return values
    text = pd.Series([from_ascii(value.decode("ascii", errors="replace")) for value in values], dtype="str")
    return text.where(text != "?")


def read_libsvm(path: str, data: bytes, drop_rows: list[int]) -> tuple[Any, pd.Series]:
    """Return the rows (N, d) in CSR form, with features in the file's order, and a series "label" of their labels."""
    import pandas as pd
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    refuse_beyond(ROWS, lines := data.count(b"\n"), f"{path}: the file has {lines:,} lines")
    try:
        X, y = load_svmlight_file(io.BytesIO(data))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{path}: not a LIBSVM file ({' '.join(str(error).split())})") from None
    refuse_beyond(FEATURES, X.shape[1], f"{path}: the largest index implies {X.shape[1]:,} features")
    labels = dropped(pd.DataFrame({LIBSVM_LABEL: y}), drop_rows, path)[LIBSVM_LABEL]
    return csr_array(X)[labels.index.to_numpy()], labels


def made_dense(source: str, X: Any, names: list[str], labels: pd.Series, hint: str = "") -> pd.DataFrame:
    """Return sparse rows (n, d) and labels (n,) as a dense table.

    If the table exceeds the limit, raise a UsageError that ends with the hint.
    """
    import pandas as pd

    n, d = X.shape
    if n * d > MAX_ENTRIES:
        raise UsageError(f"{source}: {n} rows of {d} features are {n * d * 8 / 1e9:.1f} GB when dense, too large{hint}")
    frame = pd.DataFrame(X.toarray(), columns=names, index=labels.index)
    frame[str(labels.name)] = labels
    return frame


def dropped(frame: pd.DataFrame, rows: list[int], path: str) -> pd.DataFrame:
    """Return the table without the given rows (from 0, not counting the header); other rows keep their numbers."""
    if len(frame) == 0:
        raise UsageError(f"{path}: the table has no data rows")
    wrong = [row for row in rows if not 0 <= row < len(frame)]
    if wrong:
        raise UsageError(f"{path}: drop_rows (--drop-row): there is no row {wrong[0]}; rows are 0 ... {len(frame) - 1}")
    return frame.drop(index=rows)


TABLE_FILE = "table.parquet"


def stored_table(table: Any, folder: Path) -> Path:
    """Write an in-memory table as Parquet to a results folder and return the path; equal tables give equal bytes.

    Raises
    ------
    UsageError
        The object is not a table (a pandas DataFrame, a pyarrow Table or an object with `__arrow_c_stream__`), or it
        has columns of mixed types.
    """
    import pandas as pd
    import pyarrow
    import pyarrow.parquet

    try:
        if isinstance(table, pd.DataFrame):
            _refuse_duplicates([str(name) for name in table.columns], "the table")
            named = table.set_axis([str(name) for name in table.columns], axis=1).reset_index(drop=True)
            arrow = pyarrow.Table.from_pandas(named, preserve_index=False)
        elif isinstance(table, pyarrow.Table | pyarrow.RecordBatch) or hasattr(table, "__arrow_c_stream__"):
            arrow = pyarrow.table(table)
        else:
            raise UsageError(
                "data must be a file, a pandas DataFrame, a pyarrow Table or an object with __arrow_c_stream__, got "
                f"{type(table).__name__}"
            )
        out = io.BytesIO()
        pyarrow.parquet.write_table(arrow, out)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"the table cannot be stored: {' '.join(str(error).split())[:200]}") from None
    path = folder / TABLE_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (path.is_file() and path.read_bytes() == out.getvalue()):
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_bytes(out.getvalue())
            part.replace(path)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written ({error.strerror})") from None
    return path
