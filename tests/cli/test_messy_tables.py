"""Messy tables: each is compared, or one message lists all its faults and, where it corrects the command, that one works."""

from __future__ import annotations

import decimal
import gzip
import itertools
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from banditlab.comparison import FaultyTableError, prepared
from banditlab.envs import Table
from banditlab.errors import UsageError
from banditlab.policy.training import train

N = 60
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(size=N).round(2), "b": RNG.integers(10, 99, size=N)})
FRAME = FRAME.assign(y=np.where(FRAME["a"] + RNG.normal(scale=0.3, size=N) > 0, "yes", "no"))
PEOPLE = [850, 26_238, 1_234, 999, 7_550]
COUNTS = pd.Series([PEOPLE[i % 5] * (1 + i % 3) for i in range(N)])


class Case(NamedTuple):
    data: bytes | pd.DataFrame
    faults: list[str] = []
    fix: str = ""
    """Options of the corrected command; "" where there is none."""
    said: str = ""
    """What is said of the table once it is read."""
    read: dict[str, Any] = {}
    """Entries that some columns begin with once the table is read."""
    name: str = "t.csv"
    given: str = ""


def csv(frame: pd.DataFrame = FRAME, sep: str = ",", **more: Any) -> bytes:
    return frame.to_csv(index=False, sep=sep, **more).encode()


def column(values: Any, name: str = "x") -> pd.DataFrame:
    values = list(values)
    return FRAME.assign(**{name: [values[i % len(values)] for i in range(N)]})[["a", "b", name, "y"]]


def labels(values: list[Any]) -> bytes:
    return csv(FRAME.assign(y=[values[i % len(values)] for i in range(N)]))


def lines(text: bytes = csv()) -> list[bytes]:
    return text.splitlines(keepends=True)


CASES = {
    "bom": Case(b"\xef\xbb\xbf" + csv()),
    "utf-16": Case(csv().decode().encode("utf-16")),
    "crlf": Case(csv(lineterminator="\r\n")),
    "pipes": Case(csv(sep="|"), read={"b": FRAME["b"]}),
    "tabs and decimal commas": Case(
        csv(sep="\t", decimal=","), ["'a' holds numbers with a decimal comma"], "--decimal ,", read={"a": FRAME["a"]}
    ),
    "quotes with newlines": Case(csv(column(["one\ntwo", "three, four"])), said="2 categories"),
    "comments": Case(
        b"# made by hand\n" + csv() + b"# the end, of it\n",
        ["begins with '#'"],
        "--comment '#'",
        read={"b": FRAME["b"]},
    ),
    "comments as declared": Case(b"# a, b\n" + csv(), given="--comment '#'", read={"b": FRAME["b"]}),
    "a header that begins with the mark": Case(
        b"##meta\n#" + csv(), ["begins with '##'"], "--comment '##'", read={"b": FRAME["b"]}
    ),
    "title": Case(
        b"Sales of 2024\n\n" + csv(), ["line 3 has 3 fields, but the first line has 1: it must name each column"]
    ),
    "title of a spreadsheet": Case(
        b"Sales,,\n" + csv(),
        ["there is no column 'y'", "'Sales' is numeric except for 1", "'Unnamed: 1' is numeric except for 1"],
    ),
    "totals": Case(
        csv() + b"Total,3000,\n", ["label column 'y' has 1 missing"], "--drop-row 60", read={"b": FRAME["b"]}
    ),
    "footer": Case(
        csv() + b"Source: nobody\n",
        ["label column 'y' has 1 missing"],
        "--drop-row 60",
        read={"b": FRAME["b"]},
    ),
    "ragged": Case(
        b"".join([*lines()[:5], b"1,2,3,yes\n", *lines()[5:]]), ["line 6 has 4 fields, but the first line has 3"]
    ),
    "a short line": Case(
        b"".join([*lines()[:5], b"1\n", *lines()[5:]]),
        ["label column 'y' has 1 missing"],
        "--drop-row 4",
        read={"b": FRAME["b"]},
    ),
    "cut off": Case(csv()[:-4].rpartition(b",")[0], ["label column 'y' has 1 missing"], "--drop-row 59"),
    "row names of R": Case(
        b"a,b,y\n" + b"".join(b"r%d," % i + line for i, line in enumerate(lines()[1:])),
        ["line 2 has 4 fields, but the first line has 3"],
    ),
    "a separator at the end": Case(
        lines()[0] + b"".join(line.rstrip() + b",\n" for line in lines()[1:]),
        ["line 2 has 4 fields, but the first line has 3"],
    ),
    "one column twice": Case(csv(FRAME.set_axis(["a", "a", "y"], axis=1)), ["two columns are called 'a'"]),
    "empty column": Case(csv(column([""])), ["'x' has no finite entry"], "--drop-column x"),
    "index without a name": Case(FRAME.to_csv().encode(), said="index-like"),
    "thousands or decimals": Case(
        csv(column(f"{n:,}" for n in COUNTS)),
        ["'x' holds numbers such as 52,476: a thousands separator (--thousands ,) or a decimal comma (--decimal ,)?"],
    ),
    "thousands as declared": Case(csv(column(f"{n:,}" for n in COUNTS)), given="--thousands ,", read={"x": COUNTS}),
    "thousands for sure": Case(
        csv(column(f"{n:,}" for n in COUNTS * 1000)),
        ["'x' holds numbers with a thousands separator (--thousands ,)"],
        "--thousands ,",
        read={"x": COUNTS * 1000},
    ),
    "thousands and decimals": Case(
        csv(column(f"{n:,}.50" for n in COUNTS)), ["a thousands separator"], "--thousands ,", read={"x": COUNTS + 0.5}
    ),
    "blanks": Case(
        csv(column(f"{n:,}".replace(",", " ") for n in COUNTS)),
        ["a thousands separator"],
        "--thousands ' '",
        read={"x": COUNTS},
    ),
    "apostrophes": Case(
        csv(column(f"{n:,}".replace(",", "'") for n in COUNTS)),
        ["a thousands separator"],
        """--thousands ''"'"''""",
        read={"x": COUNTS},
    ),
    "points": Case(
        csv(column(f"{n:,}".replace(",", ".") for n in COUNTS * 1000), sep=";"),
        ["a thousands separator (--thousands . --decimal ,)"],
        "--thousands . --decimal ,",
        read={"x": COUNTS * 1000},
    ),
    "points that are": Case(
        csv(column(f"{n:,}".replace(",", ".") for n in COUNTS), sep=";"),
        given="--thousands . --decimal ,",
        read={"x": COUNTS},
    ),
    "commas in one column, points in another": Case(
        csv(column(f"{n:,}.5" for n in COUNTS).assign(z=["1,5", "20,25"] * 30), sep=";"),
        [
            "'x' holds numbers such as 52,476.5: write those of all columns in one way",
            "'z' holds numbers such as 20,25: write",
        ],
    ),
    "both": Case(
        csv(column(f"{n:,}.5".translate({44: 46, 46: 44}) for n in COUNTS), sep=";"),
        ["a thousands separator (--thousands . --decimal ,)"],
        "--thousands . --decimal ,",
        read={"x": COUNTS + 0.5},
    ),
    "dates": Case(
        csv(FRAME.assign(x=pd.date_range("2024-01-01", periods=N).astype(str))),
        ["'x' has dates as text"],
        "--role x=time",
    ),
    "dates that are not ISO": Case(
        csv(FRAME.assign(x=pd.date_range("2024-01-01", periods=N).strftime("%d.%m.%y"))),
        ["'x' is text with a different value"],
        "--drop-column x",
    ),
    "mixed types": Case(
        csv(FRAME.assign(x=[*map(str, range(N - 1)), "oops"])), ["numeric except for 1 of 60"], "--drop-row 59"
    ),
    "truth": Case(csv(column([True, False])), said="2 categories"),
    "NA among texts": Case(csv(column(["NA", "EU", "None"])), said="3 categories, NA is one --na-values NA"),
    "NA among numbers": Case(csv(column(["NA", 1.5, 2.5])), ["'x' has 20 missing"], "--missing indicator"),
    "None among labels": Case(labels(["None", "a"]), said="'None' is a class; --na-values None makes it missing"),
    "None as declared": Case(
        labels(["None", "a", "b"]),
        ["label column 'y' has 20 missing"],
        "--missing drop_rows",
        said="leaves out 20 of 60 rows",
        given="--na-values None",
    ),
    "empty labels": Case(
        labels(["", "a", "b"]), ["'y' has 20 missing"], "--missing drop_rows", said="leaves out 20 of 60 rows"
    ),
    "gaps in labels and features": Case(
        csv(FRAME.assign(a=[np.nan] * 50 + [1.0] * 10, y=["", "a", "b"] * 20)),
        ["'a' has 33 missing", "'y' has 20 missing"],
        "--missing indicator",
        said="leaves out 20 of 60 rows",
    ),
    "dashes as declared": Case(
        csv(FRAME.assign(x=["-" if i % 4 == 0 else f"{i}.5" for i in range(N)])),
        ["'x' has 15 missing"],
        "--missing indicator",
        given="--na-values -",
    ),
    "dots beside commas": Case(
        csv(column([1.5, 2.25]).assign(z=[f"{i}.234,5" for i in range(1, N + 1)]), sep=";"),
        ["'z' holds numbers with a thousands separator"],
        "--thousands . --decimal ,",
        read={"x": [1.5, 2.25]},
    ),
    "infinite": Case(csv(column(["inf", "1e400", 2])), ["'x' has 40 missing or infinite"], "--missing indicator"),
    "leading zeros": Case(
        csv(column(["01234", "00123", "12345"])), said="3 categories", read={"x": ["01234", "00123", "12345"]}
    ),
    "constant": Case(csv(column([1])), said="constant"),
    "free text": Case(
        csv(FRAME.assign(x=[f"it said {i}, and left" for i in range(N)])),
        ["'x' is text with a different value"],
        "--drop-column x",
    ),
    "one class": Case(labels(["a"]), ["one class only"]),
    "measurement": Case(csv(FRAME.assign(y=RNG.normal(size=N))), ["it looks like a measurement"]),
    "tags": Case(
        labels(["a|b", "a", "b", "a|c", "c", "b|c", "a|b|c"]), said="4 classes are names joined by '|', such as 'a|b'"
    ),
    "variants": Case(
        labels(["Yes", "yes ", "YES", "no"]), said="classes 'YES', 'Yes', 'yes ' differ only in case and blanks"
    ),
    "rare": Case(csv(FRAME.assign(y=["c", *FRAME["y"][1:]])), said="1 of 3 classes have only one row: 'c'"),
    "many classes": Case(
        labels([f"c{i}" for i in range(20)]), said="20 classes are more than a fifth of the number of rows"
    ),
    "large numbers": Case(
        csv(column([2**53 + 1, 2**53, 7])), said="3 categories", read={"x": [str(2**53 + 1), str(2**53)]}
    ),
    "large labels": Case(labels([2**53 + 1, 2**53]), said="9007199254740993"),
    "Parquet": Case(
        column([2**53 + 1, 2**53, 7]).assign(
            d=[decimal.Decimal(i) / 4 for i in range(N)],
            n=pd.array([1, None] * 30, dtype="Int64"),
            k=pd.Categorical(["u", "v"] * 30),
        ),
        ["'n' has 30 missing"],
        "--missing indicator",
        said="d numeric 0 to 14.75",
        name="t.parquet",
    ),
    "gzip": Case(gzip.compress(csv(), mtime=0), name="t.csv.gz"),
    "zip": Case(b"PK\x03\x04...", ["a zip archive or an Excel file; unpack it, or export the table as CSV or Parquet"]),
    "JSON": Case(
        FRAME.to_json(orient="records", lines=True).encode(), ["export the table as CSV or Parquet"], name="t.jsonl"
    ),
    "Latin-1": Case(
        csv(column(["Zürich", "Genève"])).decode().encode("latin-1"),
        ["give its encoding (--encoding)"],
        "--encoding cp1252",
        said="2 categories",
    ),
    "UTF-16 without a mark": Case(
        csv().decode().encode("utf-16-le"), ["UTF-16 without a byte order mark"], "--encoding utf-16-le"
    ),
}


def written(case: Case) -> Path:
    path = Path(case.name)
    if isinstance(case.data, pd.DataFrame):
        case.data.to_parquet(path)
    else:
        path.write_bytes(case.data)
    return path


@pytest.mark.parametrize("name", CASES)
@pytest.mark.few(20)
def test_a_messy_table_is_compared_or_all_its_faults_are_listed(banditlab: Callable[..., Any], name: str) -> None:
    case = CASES[name]
    asked = ["compare", str(written(case)), "--label", "y", *shlex.split(case.given)]
    more = ["--agents", "uniform", "--rounds", "20", "--repetitions", "2", "--dry-run"]
    code, text = banditlab(*asked, *more)
    plain = " ".join(text.split())
    assert (code == 2) == bool(case.faults), text
    assert all(fault in plain for fault in case.faults), text
    assert not case.faults or len(case.faults) == max(1, text.count("\n  * ")), text
    corrected = re.search(r"corrected: banditlab (.*)", text)
    assert (corrected is not None) == bool(case.fix), text
    if corrected is not None:
        assert case.fix in corrected[1]
        asked = shlex.split(corrected[1])
        code, more_text = banditlab(*asked)
        assert code == 0, more_text
        plain += " ".join(more_text.split())
    assert case.said in plain
    if case.read:
        frame = read_as(asked)
        for column_, values in case.read.items():
            assert frame[column_].tolist()[: len(values)] == list(values)


def read_as(asked: list[str]) -> pd.DataFrame:
    """Return the table that a command line reads."""
    from banditlab.envs.table import Reading, read_frame

    given: dict[str, list[str]] = {}
    for option, value in itertools.pairwise(asked):
        given.setdefault(option, []).append(value)
    one = {name: given.get(f"--{name}", [default])[0] for name, default in (("decimal", "."), ("thousands", ""))}
    reading = Reading(**one, na_values=tuple(given.get("--na-values", ())))
    return read_frame(
        asked[1], Path(asked[1]).read_bytes(), "csv", reading=reading, comments=given.get("--comment", []),
        drop_rows=[*map(int, given.get("--drop-row", []))], label="y",
    ).frame  # fmt: skip


def test_a_policy_takes_for_missing_what_its_table_did(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    frame = column(f"{n:,}" for n in COUNTS).assign(k=["NA", "u"] * 30)
    frame.loc[3, "b"], frame.loc[5, "k"] = 9999, "-"
    path.write_bytes(csv(frame))
    policy = train(path, "y", agent="uniform", thousands=",", na_values=["9999", "-"], missing="indicator")
    encoder = type(policy._encoder).from_bytes(policy._encoder.to_bytes())
    row = {"a": 0.5, "b": 20, "x": 1234, "k": "NA"}
    for encode in (policy._encoder.encode, encoder.encode, lambda row: encoder.transform(pd.DataFrame([row]))[0]):
        for gap in (9999, 9999.0, "9999"):
            np.testing.assert_array_equal(encode(row | {"b": gap}), encode(row | {"b": None}))
        np.testing.assert_array_equal(encode(row | {"k": "-"}), encode(row | {"k": None}))
        assert not np.array_equal(encode(row), encode(row | {"k": None}))
        with pytest.raises(UsageError, match="key 'x' must be a number, got '1,234'"):
            encode(row | {"x": "1,234"})


def test_missing_values_of_a_parquet_file(tmp_path: Path) -> None:
    frame = column([9999, 1, 2]).assign(k=["none", "u", "v"] * 20)
    frame.to_parquet(tmp_path / "t.parquet")
    env = Table(path=str(tmp_path / "t.parquet"), label="y", na_values=["9999.0", "none"], missing="drop_rows")
    assert env.n_rows == 40
    [column_] = [c for c in env.encoder.columns if c.name == "k"]
    assert column_.categories == ("u", "v")


def test_a_comparison_from_python_says_what_its_correction_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(csv(FRAME.assign(y=["c", *FRAME["y"][1:]], a=[*"xyz", *FRAME["a"][3:]])))
    with pytest.raises(FaultyTableError) as caught:
        prepared(path, "y", agents="uniform")
    assert caught.value.loss == "leaves out 3 of 60 rows, and all of 'c'"
