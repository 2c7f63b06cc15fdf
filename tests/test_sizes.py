"""Inputs that are refused by their size, quickly and in one line, and the variables that move the limits."""

from __future__ import annotations

import gzip
import importlib
import io
import time
from pathlib import Path

import pytest

from banditlab.engine.spec import make_spec
from banditlab.envs.table import Table
from banditlab.errors import UsageError
from banditlab.validation import COLUMNS, FEATURES, RUNS, SIZES, UNPACKED, limit

ENVIRONMENT = [{"id": "banditlab/SynSep-v0"}]


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Import what reads files, which may take its seconds."""
    for module in ("pandas", "pyarrow.parquet", "sklearn.datasets"):
        importlib.import_module(module)


def refused(**settings: object) -> str:
    """Return the line by which a table is refused, which takes at most five seconds."""
    begin = time.perf_counter()
    with pytest.raises(UsageError) as error:
        Table(**settings)  # type: ignore[arg-type]
    assert time.perf_counter() - begin < 5.0
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_large_index_of_a_libsvm_file(tmp_path: Path) -> None:
    file = tmp_path / "t.libsvm"
    file.write_text("1 2000000000:1\n0 1:1\n")
    said = refused(path=str(file))
    assert said == (
        f"{file}: the largest index implies 2,000,000,000 features, above the limit of 50,000,000: "
        f"set {FEATURES.variable} to raise it"
    )


@pytest.mark.parametrize("index", ["2147483648", "9223372036854775807", "99999999999999999999", "-1", "0.5"])
def test_an_index_beyond_any_integer_is_one_line(index: str, tmp_path: Path) -> None:
    file = tmp_path / "t.libsvm"
    file.write_text(f"1 {index}:1\n0 1:1\n")
    assert str(file) in refused(path=str(file))


@pytest.mark.parametrize("honest", [True, False])
def test_a_gzip_bomb_is_unpacked_to_the_limit_and_no_further(
    honest: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what its last bytes say; where they lie, by what has come of it so far."""
    monkeypatch.setenv(UNPACKED.variable, str(2**22))
    data = gzip.compress(b"\0" * 2**26, compresslevel=1)
    file = tmp_path / "t.csv.gz"
    file.write_bytes(data if honest else data[:-4] + b"\x10\0\0\0")
    size = f"{2**26:,}" if honest else f"{2**22:,} and more"
    expected = f"unpack to {size}, above the limit of {2**22:,}: set {UNPACKED.variable} to raise it"
    assert expected in refused(path=str(file), label="y")


def test_a_file_just_within_the_limit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ("x,y\n" + "1,0\n2,1\n" * 10).encode()
    file = tmp_path / "t.csv.gz"
    file.write_bytes(gzip.compress(text))
    monkeypatch.setenv(UNPACKED.variable, str(len(text)))
    assert Table(path=str(file), label="y").classes == [0, 1]
    file.write_bytes(gzip.compress(text + b"1,1\n"))
    assert UNPACKED.variable in refused(path=str(file), label="y")


def test_a_million_columns(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(",".join(f"c{i}" for i in range(10**6)) + "\n" + "0," * (10**6 - 1) + "1\n")
    said = refused(path=str(file), label="c0", separator=",")
    assert "has 1,000,000 columns" in said
    assert COLUMNS.variable in said


def test_a_parquet_file_that_unpacks_to_more_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd = pytest.importorskip("pandas")
    out = io.BytesIO()
    pd.DataFrame({"x": [0.5] * 10**5, "y": [0, 1] * (10**5 // 2)}).to_parquet(out, use_dictionary=False)
    file = tmp_path / "t.parquet"
    file.write_bytes(out.getvalue())
    monkeypatch.setenv(UNPACKED.variable, "1000000")
    assert UNPACKED.variable in refused(path=str(file), label="y")
    monkeypatch.setenv(COLUMNS.variable, "1")
    assert COLUMNS.variable in refused(path=str(file), label="y")


@pytest.mark.parametrize(
    ("spec", "runs"),
    [
        ({"repetitions": 10**9}, "1,000,000,000"),
        ({"agent": [{"id": "uniform", "grid": {f"s{i}": list(range(20)) for i in range(6)}}]}, "64,000,000"),
        ({"environment": [{"id": "x", "grid": {f"s{i}": list(range(10)) for i in range(7)}}]}, "10,000,000"),
    ],
)
def test_more_runs_than_the_limit(spec: dict[str, object], runs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"rounds": 10, "environment": ENVIRONMENT, "agent": [{"id": "uniform"}], **spec}
    begin = time.perf_counter()
    with pytest.raises(UsageError, match=f"^here: the sweep has {runs} runs .*set {RUNS.variable} to raise it$"):
        make_spec(data, "here")
    assert time.perf_counter() - begin < 2.0
    monkeypatch.setenv(RUNS.variable, "10000000000")
    assert make_spec(data, "here").size() == int(runs.replace(",", ""))


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "x", "²", " 5"])
def test_a_limit_that_is_no_number_is_one_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUNS.variable, text)
    with pytest.raises(UsageError, match=f"^{RUNS.variable} must be a whole number of at least 1"):
        limit(RUNS)


def test_every_limit_is_documented() -> None:
    page = Path(__file__).parents[1] / "docs" / "limits.md"
    text = page.read_text("utf-8")
    for size in SIZES:
        assert f"| `{size.variable}` | {size.default:,} | {size.counts} |" in text


@pytest.mark.parametrize("error", [TypeError("data type 'float6x' not understood"), KeyError("index_columns")])
def test_a_parquet_file_whose_description_of_itself_is_damaged_is_one_line(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pandas believes what the file says of its columns, and raises whatever comes of it: both were met with flipped bits."""
    pd = importlib.import_module("pandas")
    file = tmp_path / "t.parquet"
    pd.DataFrame({"x": [0.5, 1.0, 1.5, 2.0], "y": [0, 1, 0, 1]}).to_parquet(file)

    def believes(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(pd, "read_parquet", believes)
    assert "not a Parquet file" in refused(path=str(file), label="y")
