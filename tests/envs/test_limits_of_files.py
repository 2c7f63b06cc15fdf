"""Files above the limits on rows and entries are refused before they are read whole."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from banditlab.envs import files
from banditlab.envs._reading import PLAIN
from banditlab.errors import UsageError


def csv(path: Path) -> None:
    path.write_text("a,y\n" + "1,0\n" * 1000)
    files.read_csv(str(path), path.read_bytes(), ",", PLAIN, [])


def arff(path: Path) -> None:
    path.write_text("@relation r\n@attribute a numeric\n@attribute y {0,1}\n@DATA\n" + "1,0\n" * 1000)
    files.read_arff(str(path), path.read_bytes(), [])


def parquet(path: Path) -> None:
    pq.write_table(pa.table({"a": np.zeros(1000), "y": np.zeros(1000)}), path)
    files.read_parquet(str(path), path.read_bytes(), [])


def libsvm(path: Path) -> None:
    path.write_text("1 1:0.5\n" * 1000)
    files.read_libsvm(str(path), path.read_bytes(), [])


@pytest.mark.parametrize("read", [csv, arff, parquet, libsvm])
def test_rows(read: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_MAX_ROWS", "1000")
    read(tmp_path / "t")
    monkeypatch.setenv("BANDITLAB_MAX_ROWS", "999")
    with pytest.raises(
        UsageError, match=r"1,000 (rows|lines), above the limit of 999: set BANDITLAB_MAX_ROWS to raise it"
    ):
        read(tmp_path / "t")


@pytest.mark.parametrize("read", [csv, arff, parquet])
def test_entries(read: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_MAX_ENTRIES", "2000")
    read(tmp_path / "t")
    monkeypatch.setenv("BANDITLAB_MAX_ENTRIES", "1999")
    with pytest.raises(UsageError, match="entries, above the limit of 1,999: set BANDITLAB_MAX_ENTRIES to raise it"):
        read(tmp_path / "t")


def test_a_csv_is_read_no_further_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_MAX_ENTRIES", "200")
    (tmp_path / "t").write_text("a,y\n" + "1,0\n" * 1000)
    with pytest.raises(UsageError, match="at least 101 rows of 2 columns"):
        files.read_csv("t", (tmp_path / "t").read_bytes(), ",", PLAIN, [])


def test_a_gzip_file_is_counted_by_its_last_bytes_and_by_what_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last bytes tell the length of the last of its parts."""
    packed = gzip.compress(b"x,y\n" * 100) + gzip.compress(b"1,2\n" * 50)
    for most, said in (("599", "unpack to 599 and more, above"), ("199", "unpack to 200, above")):
        monkeypatch.setenv("BANDITLAB_MAX_UNPACKED_BYTES", most)
        with pytest.raises(UsageError, match=said):
            files.unpacked("t", packed)
    monkeypatch.setenv("BANDITLAB_MAX_UNPACKED_BYTES", "600")
    assert files.unpacked("t", packed) == b"x,y\n" * 100 + b"1,2\n" * 50


def test_entries_of_lists_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"a": [[0.0] * 5000], "y": [1]}), tmp_path / "t")
    monkeypatch.setenv("BANDITLAB_MAX_ENTRIES", "4000")
    with pytest.raises(UsageError, match="hold 5,001 entries"):
        files.read_parquet("t", (tmp_path / "t").read_bytes(), [])


def test_one_text_that_stands_in_many_rows_counts_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int32)), pa.array(["x" * 10_000]))
    pq.write_table(pa.table({"a": text, "y": np.zeros(1000)}), tmp_path / "t")
    data = (tmp_path / "t").read_bytes()
    files.read_parquet("t", data, [])
    monkeypatch.setenv("BANDITLAB_MAX_UNPACKED_BYTES", "1000000")
    with pytest.raises(UsageError, match="and more, above the limit of 1,000,000: set BANDITLAB_MAX_UNPACKED_BYTES"):
        files.read_parquet("t", data, [])
