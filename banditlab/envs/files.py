"""Reading a user's file: CSV, Parquet or LIBSVM, plain or gzipped, into a pandas table."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from banditlab.errors import UsageError
from banditlab.validation import COLUMNS, FEATURES, UNPACKED, limit, refuse_beyond

if TYPE_CHECKING:
    import pandas as pd

Format = Literal["auto", "csv", "parquet", "libsvm"]

SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".data"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".libsvm", ".svm", ".svmlight"), "libsvm"),
}
SEPARATORS = ("\t", ";", ",")
"""In the order in which they are believed: a comma may also be a decimal sign, a tab hardly anything else."""
MISSING = ["?"]
"""Read as missing besides pandas' own spellings ("", "NA", "nan", "null", ...)."""
LIBSVM_LABEL = "label"
MOST_PACKED = 1040
"""A byte of a gzip file stands for so many at most, by the format."""
MAX_ENTRIES = 2 * 10**8
"""Entries (1.6 GB) above which a sparse file is not made dense."""


def read_bytes(path: str) -> bytes:
    """Return a file's content as it lies on disk; one line for a file that is not there, not readable, or empty."""
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
    return UsageError(f"path: there is no file {path}")


def content_hash(data: bytes) -> str:
    """Return the sha256 by which a file enters a run's identity."""
    return hashlib.sha256(data).hexdigest()


def format_of(path: str, declared: Format) -> str:
    """Return "csv", "parquet" or "libsvm": as declared or by the file's name, ".gz" left out."""
    if declared != "auto":
        return declared
    name = Path(path.removesuffix(".gz"))
    if name.suffix.lower() not in SUFFIXES:
        if not Path(path).exists():
            raise _no_file(path)
        raise UsageError(
            f"{path}: the ending {name.suffix!r} tells no format; give format (--format) as csv, parquet or libsvm "
            f"(known endings: {', '.join(SUFFIXES)}, each also with .gz)"
        )
    return SUFFIXES[name.suffix.lower()]


def unpacked(path: str, data: bytes) -> bytes:
    """Return the content, gunzipped if it is gzipped (by its first bytes); a name in .gz must be."""
    if not data.startswith(b"\x1f\x8b"):
        if path.endswith(".gz"):
            raise UsageError(f"{path}: not a gzip file")
        return data
    most = limit(UNPACKED)
    told = int.from_bytes(data[-4:], "little")  # what the file says of its last member, which nothing has checked yet
    if told <= MOST_PACKED * len(data):  # else the file is damaged, which unpacking finds out
        refuse_beyond(UNPACKED, told, f"{path}: {len(data):,} bytes unpack to {told:,}")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            parts, size = [], 0
            while size <= most and (part := packed.read(2**24)):  # no more is made of a bomb than the limit
                parts.append(part)
                size += len(part)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: the gzip file is damaged ({error})") from None
    refuse_beyond(UNPACKED, size, f"{path}: {len(data):,} bytes unpack to {most:,} and more")
    data = b"".join(parts)
    if not data.strip():
        raise UsageError(f"{path}: the file is empty")
    return data


def sniff_separator(path: str, data: bytes) -> str:
    """Return the separator among tab, semicolon and comma that every one of the first 20 lines has equally often."""
    lines = [line for line in data[:65536].decode("utf-8", errors="replace").splitlines() if line.strip()]
    lines = lines[:20] if len(data) <= 65536 else lines[:-1][:20] or lines
    counts = {separator: [_outside_quotes(line, separator) for line in lines] for separator in SEPARATORS}
    for separator in SEPARATORS:
        if min(counts[separator]) == max(counts[separator]) > 0:
            return separator
    best = max(SEPARATORS, key=lambda separator: min(counts[separator]))
    if min(counts[best]) == 0:
        raise UsageError(f"{path}: no separator among , ; and tab fits; give separator (--separator)")
    return best


def _outside_quotes(line: str, separator: str) -> int:
    return "".join(line.split('"')[::2]).count(separator)


def read_csv(path: str, data: bytes, separator: str, decimal: str, drop_rows: list[int]) -> pd.DataFrame:
    """Return the table with numeric columns as floats and all others as text.

    Everything is read as text first: a row that is dropped because it is malformed must not decide a column's type.
    """
    import pandas as pd

    line = data[: data.find(b"\n")] if b"\n" in data else data
    columns = 1 + line.count(separator.encode())
    refuse_beyond(COLUMNS, columns, f"{path}: the first line has {columns:,} columns separated by {separator!r}")
    try:
        frame = pd.read_csv(io.BytesIO(data), sep=separator, dtype=str, na_values=MISSING, encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start}); is it a CSV file?") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise UsageError(f"{path}: not a table separated by {separator!r} ({' '.join(str(error).split())})") from None
    _refuse_duplicates(_header(data, separator), path)
    frame = dropped(frame, drop_rows, path)
    return pd.DataFrame({name: _numbers(frame[name], decimal, path) for name in frame.columns}, index=frame.index)


def _header(data: bytes, separator: str) -> list[str]:
    """Return the column names as they are written: pandas renames the second of two that are equal."""
    import pandas as pd

    line = pd.read_csv(
        io.BytesIO(data), sep=separator, header=None, nrows=1, dtype=str, na_filter=False, encoding="utf-8-sig"
    )
    return [name for name in line.iloc[0] if name]


def _refuse_duplicates(names: list[str], path: str) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise UsageError(f"{path}: two columns are called {twice[0]!r}; rename one in the file")


def _numbers(text: pd.Series, decimal: str, path: str) -> pd.Series:
    """Return a text column as floats if every entry that is there is a number, else as it is."""
    import pandas as pd

    plain = text if decimal == "." else text.str.replace(decimal, ".", regex=False)
    numbers = pd.to_numeric(plain, errors="coerce")
    if (numbers.isna() == text.isna()).all():
        return numbers.astype(np.float64)
    commas = pd.to_numeric(text.str.replace(",", ".", regex=False), errors="coerce")
    if decimal == "." and (commas.isna() == text.isna()).all():
        raise UsageError(
            f"{path}: column {text.name!r} holds numbers with a decimal comma; give decimal (--decimal) as ,"
        )
    # A column of numbers with slips keeps plain spelling, so that `_check_nominal` finds the slips.
    return plain if numbers.notna().sum() > 0.5 * len(text) else text


def read_parquet(path: str, data: bytes, drop_rows: list[int]) -> pd.DataFrame:
    """Return the table with the types the file has."""
    import pandas as pd
    import pyarrow.parquet

    try:
        head = pyarrow.parquet.ParquetFile(io.BytesIO(data)).metadata
        size = sum(head.row_group(i).total_byte_size for i in range(head.num_row_groups))
        columns = head.num_columns
    except Exception as error:  # what a damaged file says of its columns leads pandas anywhere
        raise UsageError(f"{path}: not a Parquet file ({' '.join(str(error).split())})") from None
    refuse_beyond(COLUMNS, columns, f"{path}: the file has {columns:,} columns")
    refuse_beyond(UNPACKED, size, f"{path}: {len(data):,} bytes unpack to {size:,}")
    try:
        pyarrow.parquet.read_table(io.BytesIO(data)).validate(
            full=True
        )  # texts that are no UTF-8 are met late otherwise
        frame = pd.read_parquet(io.BytesIO(data)).reset_index(drop=True)
    except Exception as error:  # what a damaged file says of its columns leads pandas anywhere
        raise UsageError(f"{path}: not a Parquet file ({' '.join(str(error).split())})") from None
    frame.columns = [str(name) for name in frame.columns]
    _refuse_duplicates(list(frame.columns), path)
    return dropped(frame, drop_rows, path)


def read_libsvm(path: str, data: bytes, drop_rows: list[int]) -> tuple[Any, pd.Series]:
    """Return the rows (N, d) in CSR form, features in the file's order, and their labels, called "label"."""
    import pandas as pd
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(data))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{path}: not a LIBSVM file ({' '.join(str(error).split())})") from None
    refuse_beyond(FEATURES, X.shape[1], f"{path}: the largest index makes {X.shape[1]:,} features")
    labels = dropped(pd.DataFrame({LIBSVM_LABEL: y}), drop_rows, path)[LIBSVM_LABEL]
    return csr_array(X)[labels.index.to_numpy()], labels


def made_dense(path: str, X: Any, labels: pd.Series) -> pd.DataFrame:
    """Return the table of a LIBSVM file's rows, dense, features named "0", "1", ... and the label "label"."""
    import pandas as pd

    n, d = X.shape
    if n * d > MAX_ENTRIES:
        raise UsageError(
            f"{path}: {n} rows of {d} features are {n * d * 8 / 1e9:.1f} GB when dense, too many; rows of which at most a "
            "quarter differs from 0 stay sparse where no entry is missing and scaling (--scaling) is none"
        )
    frame = pd.DataFrame(X.toarray(), columns=[str(j) for j in range(d)], index=labels.index)
    frame[LIBSVM_LABEL] = labels
    return frame


def dropped(frame: pd.DataFrame, rows: list[int], path: str) -> pd.DataFrame:
    """Return the table without the given rows (from 0, the header not counted); the others keep their numbers."""
    if len(frame) == 0:
        raise UsageError(f"{path}: the table has no data rows")
    wrong = [row for row in rows if not 0 <= row < len(frame)]
    if wrong:
        raise UsageError(f"{path}: drop_rows (--drop-row): there is no row {wrong[0]}, rows are 0 ... {len(frame) - 1}")
    return frame.drop(index=rows)
