"""A user's file: every format gives the same rows, and whatever is wrong with it is one line."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from banditlab.envs import Table, files
from banditlab.errors import UsageError


@pytest.fixture(scope="module")
def iris():
    frame = load_iris(as_frame=True).frame
    frame["target"] = frame["target"].map(dict(enumerate(load_iris().target_names.tolist())))
    return frame


@pytest.fixture
def write(tmp_path):
    def make(text, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return make


def csv(frame, **kw):
    return frame.to_csv(index=False, **kw)


# -------------------------------------------------------------------------------------------------------------- formats


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize("kind", ["csv", "semicolon", "tab", "parquet", "libsvm"])
def test_every_format_gives_the_same_rows(iris, write, tmp_path, kind, gz):
    settings = {"label": "target"}
    if kind == "csv":
        name, data = "iris.csv", csv(iris).encode()
    elif kind == "semicolon":
        name, data = "iris.txt", csv(iris, sep=";", decimal=",").encode()
        settings["decimal"] = ","
    elif kind == "tab":
        name, data = "iris.tsv", csv(iris, sep="\t").encode()
    elif kind == "parquet":
        iris.to_parquet(tmp_path / "x.parquet", index=False)
        name, data = "iris.parquet", (tmp_path / "x.parquet").read_bytes()
    else:
        dump_svmlight_file(iris.iloc[:, :4].to_numpy(), load_iris().target, str(tmp_path / "x"))
        name, data, settings = "iris.libsvm", (tmp_path / "x").read_bytes(), {}
    env = Table(path=write(gzip.compress(data) if gz else data, name + ".gz" * gz), **settings)
    X = load_iris().data  # ranges 3.6, 2.4, 5.9, 2.4: as given
    X = X / np.linalg.norm(X, axis=1).max()
    assert np.allclose(env._table.X, np.column_stack([X, np.ones(150)]) / np.sqrt(2), rtol=1e-11)
    assert np.array_equal(env._table.y, load_iris().target)
    assert env.classes == ([0, 1, 2] if kind == "libsvm" else ["setosa", "versicolor", "virginica"])
    assert env.params()["format"] == {"semicolon": "csv", "tab": "csv"}.get(kind, kind)
    assert env.params()["scaling"] == "none"


def test_gzip_is_found_by_content_and_format_may_be_declared(iris, write):
    env = Table(path=write(gzip.compress(csv(iris).encode()), "iris.weird"), label="target", format="csv")
    assert env.n_rows == 150


def test_separators(write):
    rows = "1{0}2{0}a\n3{0}5{0}b\n4{0}4{0}a\n7{0}1{0}b\n"
    for separator in (",", ";", "\t"):
        env = Table(path=write(("x{0}y{0}c\n" + rows).format(separator), "s.csv"), label="c")
        assert env.params()["separator"] == separator
    assert Table(path=write("x y c\n" + rows.format(" ")), label="c", separator=" ").n_rows == 4
    assert Table(path=write("x|y|c\n" + rows.format("|")), label="c", separator="|").n_rows == 4
    assert Table(path=write("x\ty\tc\n" + rows.format("\t")), label="c", separator="tab").n_rows == 4
    quoted = 'x,"y, or z",c\n1,"2","a, b"\n3,"5","b"\n4,"4","a, b"\n7,"1","b"\n'
    assert Table(path=write(quoted), label="c").classes == ["a, b", "b"]
    decimals = "x;y;c\n1,5;2,5;a\n3,5;5,5;b\n4;4.000,5;a\n1;1,5;b\n"
    settings = {"decimal": ",", "thousands": ".", "scaling": "none", "normalize": False, "intercept": False}
    env = Table(path=write(decimals), label="c", **settings)
    assert np.allclose(env._table.X, [[1.5, 2.5], [3.5, 5.5], [4, 4000.5], [1, 1.5]])


@pytest.mark.parametrize(
    ("labels", "classes", "y"),
    [
        (["10", "9", "10", "9"], [9, 10], [1, 0, 1, 0]),
        (["0.5", "-1", "0.5", "-1"], [-1.0, 0.5], [1, 0, 1, 0]),
        (["True", "False", "True", "False"], ["False", "True"], [1, 0, 1, 0]),
        (["b", "a", "b", "a"], ["a", "b"], [1, 0, 1, 0]),
        (["1.0", "2.0", "1.0", "2.0"], [1, 2], [0, 1, 0, 1]),
        (["9007199254740992", "0"] * 2, [0.0, 9007199254740992.0], [1, 0, 1, 0]),
    ],
)
def test_labels_of_any_type(write, labels, classes, y):
    text = "x,c\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    env = Table(path=write(text), label="c")
    assert env.classes == classes
    assert [type(name) for name in env.classes] == [type(name) for name in classes]
    assert env._table.y.tolist() == y


def test_parquet_types(tmp_path):
    frame = pd.DataFrame(
        {
            "flag": [True, False, True, False],
            "kind": pd.Categorical(["u", "v", "u", "w"]),
            "count": pd.array([1, 2, 3, None], dtype="Int64"),
            "c": [True, False, False, True],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    path = str(tmp_path / "t.parquet")
    env = Table(path=path, label="c", missing="mean", normalize=False, intercept=False)
    assert np.allclose(env._table.X, [[1, 1, 0, 0, 1], [0, 0, 1, 0, 2], [1, 1, 0, 0, 3], [0, 0, 0, 1, 2]])
    assert env.classes == [False, True]
    with pytest.raises(UsageError, match=r"column 'count' has 1 missing .* \(the first in row 3, counted from 0\)"):
        Table(path=path, label="c")


def test_nominal_and_missing_spellings(write):
    assert Table(path=write("x,c\n" + "1,a\n2,b\n" * 4 + "oops,a\n"), label="c").problem.n_features == 4
    assert Table(path=write("x,c\nu,a\nv,b\n"), label="c").problem.n_features == 3
    text = "x,kind,c\n1,u,a\n?,NA,b\n3,,a\nNA,u,b\n"
    env = Table(path=write(text), label="c", missing="indicator", normalize=False, intercept=False)
    assert np.allclose(env._table.X, [[1, 0, 0, 1, 0], [2, 1, 1, 0, 0], [3, 0, 0, 0, 1], [2, 1, 0, 1, 0]])


def test_a_column_that_is_no_feature_is_read_in_the_order_of_the_rows(write):
    path = write("x,z,late,c\n1,1,3,a\n4,2,,b\n3,4,0.5,a\n2,3,7,b\n")
    env = Table(path=path, label="c", drop_columns=["late"], drop_rows=[0], order="time:x")
    np.testing.assert_array_equal(env.column("late"), [7.0, 0.5, np.nan])
    with pytest.raises(UsageError, match="column 'x' must be among drop_columns"):
        env.column("x")


def test_dropped_rows_do_not_decide_types_and_others_keep_their_numbers(write):
    text = "x,z,c\n1,2,a\n2,3-oops,b\n3,5,a\n4,6,b\n5,,a\n6,7,b\n" + "".join(f"{i},{i},a\n" for i in range(20))
    path = write(text)
    message = r"column 'z' is numeric except for 1 of 25 entries \(the first, '3-oops', in row 1, counted from 0\); drop those"
    with pytest.raises(UsageError, match=message):
        Table(path=path, label="c")
    with pytest.raises(UsageError, match=r"column 'z' has 1 missing .* \(the first in row 4, counted from 0\)"):
        Table(path=path, label="c", drop_rows=[1])
    env = Table(path=path, label="c", drop_rows=[1, 4])
    assert env.n_rows == 24
    assert env.problem.n_features == 3
    assert Table(path=path, label="c", drop_columns=["z"]).problem.n_features == 2


def test_missing_labels(write):
    path = write("x,c\n1,a\n2,b\n3,\n4,a\n5,b\n")
    with pytest.raises(
        UsageError, match=r"label column 'c' has 1 missing entries \(the first in row 2, counted from 0\)"
    ):
        Table(path=path, label="c")
    assert Table(path=path, label="c", missing="drop_rows").n_rows == 4
    assert Table(path=path, label="c", drop_rows=[2]).n_rows == 4


# ------------------------------------------------------------------------------------------------------------- identity


def test_identity_is_the_content_not_the_place(iris, write):
    one, moved = write(csv(iris), "one.csv"), write(csv(iris), "moved.csv")
    edited = write(csv(iris).replace("5.1", "5.2", 1), "edited.csv")
    settings = {"label": "target", "missing": "error"}
    identity = Table.identity({"path": one, **settings})
    assert identity == Table.identity({"path": moved, **settings})
    assert identity != Table.identity({"path": edited, **settings})
    assert identity != Table.identity({"path": one, **settings, "missing": "mean"})
    assert identity == Table.identity({"path": one, **settings})
    nothing = Table.identity({"path": one, **settings, "drop_rows": None, "drop_columns": None})
    assert nothing == Table.identity({"path": one, **settings, "drop_rows": [], "drop_columns": []})
    assert nothing != Table.identity({"path": one, **settings, "drop_rows": [0], "drop_columns": []})
    assert "path" not in identity
    assert len(identity["content"]) == 64
    with pytest.raises(UsageError, match="there is no file"):
        Table.identity({"path": one + "x", **settings})
    with pytest.raises(UsageError, match="there is no file"):
        Table(path="nowhere.csv", **settings)


def test_an_edited_file_is_read_anew(iris, write):
    path = write(csv(iris))
    before = Table(path=path, label="target")
    again = Table(path=path, label="target")
    assert again._table.X is before._table.X
    write(csv(iris).replace("5.1", "5.2", 1))
    assert Table(path=path, label="target")._table.X[0, 0] != before._table.X[0, 0]
    write(csv(iris))
    assert Table(path=path, label="target", scaling="minmax")._table.X[0, 0] != before._table.X[0, 0]


# --------------------------------------------------------------------------------------------------------------- errors

SMALL = "x,y,c\n1,2,a\n3,4,b\n5,5,a\n6,7,b\n"


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("", {}, r"t\.csv: the file is empty"),
        ("  \n\n", {}, "the file is empty"),
        ("x,y,c\n", {}, "the table has no data rows"),
        (SMALL, {"label": ""}, r"set label \(--label\) to the column to predict \(known: x, y, c\)"),
        (SMALL, {"label": "C"}, r"label \(--label\): there is no column 'C'; did you mean 'c'\? \(known: x, y, c\)"),
        (SMALL.replace("c\n", "species\n"), {"label": "specis"}, "did you mean 'species'"),
        (
            SMALL,
            {"drop_columns": ["yy"]},
            r"drop_columns .*: there is no column 'yy'; did you mean 'y'\? \(known: x, y, c\)",
        ),
        (SMALL.replace("b", "a"), {}, "label column 'c' has one class only, a; at least 2"),
        (SMALL.replace("6", "5"), {"label": "x"}, "has 3 different values in 4 rows: these are not classes"),
        (SMALL, {"drop_columns": ["x", "y"]}, "no feature column is left"),
        (SMALL, {"drop_rows": [4]}, r"drop_rows \(--drop-row\): there is no row 4; rows are 0 \.\.\. 3"),
        (SMALL, {"drop_rows": [-1]}, "there is no row -1"),
        (SMALL, {"drop_rows": [0, 2]}, "one class only, b"),
        (SMALL, {"drop_rows": [0, 1, 2, 3]}, "no row is left"),
        (SMALL.replace("3,4", "3,"), {}, r"column 'y' has 1 missing .* \(the first in row 1, counted from 0\)"),
        (SMALL.replace("3,4", "3,nan"), {}, "column 'y' has 1 missing or infinite"),
        (SMALL.replace("3,4", "3,inf"), {}, "column 'y' has 1 missing or infinite"),
        (SMALL.replace("3,4", "3,-Infinity"), {}, "column 'y' has 1 missing or infinite"),
        ("id,x,c\nu1,1,a\nu2,2,b\nu3,3,a\n", {}, "column 'id' is text with a different value in every row"),
        ("d,c\n2024-01-01,a\n2024-01-02,b\n2024-01-03,a\n", {}, "column 'd' has dates as text"),
        ("x,c\n" + "1,a\n2,b\n3,a\n" * 3 + "oops,a\n", {}, "column 'x' is numeric except for 1 of 10 entries"),
        (SMALL, {"separator": ";"}, "there is no column 'c'"),
        ("x,x,c\n1,2,a\n3,4,b\n", {}, "two columns are called 'x'; rename one in the file"),
        (SMALL, {"format": "libsvm"}, r"a LIBSVM file has its own labels; leave out label \(--label\)"),
        ("abc\n1\n2\n", {}, r"none of the separators , ; | and tab fits; set separator \(--separator\)"),
        ("x,c\n1,a\n1,2,3,b\n", {"separator": ","}, "line 3 has 4 fields, but the first line has 2"),
        ("x;y;c\n1,5;2;a\n2,5;3;b\n1;1;a\n2;5;b\n", {}, "column 'x' holds numbers with a decimal comma .--decimal ,."),
        (SMALL, {"decimal": "x"}, "decimal must be one of '.', ','"),
        (SMALL, {"separator": "::"}, "separator must be one character"),
        (SMALL, {"thousands": ",,"}, "thousands .* must be one character other than the decimal separator"),
        (SMALL, {"thousands": "."}, "thousands .* must be one character other than the decimal separator"),
        (SMALL, {"scaling": "big"}, "scaling must be one of"),
        (SMALL, {"missing": "median"}, "missing must be one of"),
        (SMALL, {"format": "xls"}, "format must be one of"),
        (SMALL, {"max_categories": 1}, "max_categories must be at least 2"),
        (b"x,c\n1,\xe9\n2,b\n", {}, r"not UTF-8 text \(byte 6 is 0xE9\); give its encoding \(--encoding\), .*cp1252"),
        (b"\xff\xfe\x00\x01\xff", {}, r"not text in utf-16 \(byte 4\)"),
        (
            SMALL.encode("utf-16-le"),
            {},
            r"UTF-16 without a byte order mark; give its encoding \(--encoding utf-16-le\)",
        ),
        (SMALL.encode("utf-16-be"), {}, r"--encoding utf-16-be"),
        (SMALL, {"encoding": "utf-32"}, "not text in utf-32"),
        (SMALL, {"encoding": "cp9999"}, r"encoding \(--encoding\) must be one that Python supports, .* got 'cp9999'"),
        (SMALL, {"encoding": "base64"}, "encoding .* must be one that Python supports"),
        (SMALL, {"encoding": "zlib\0"}, "encoding .* must be one that Python supports"),
        (SMALL, {"encoding": ""}, "encoding .* must be one that Python supports"),
        (b"PAR1", {"format": "parquet", "encoding": "cp1252"}, "encoding .* applies to CSV and ARFF files only"),
        (b"\x1f\x8b\x08\x00broken", {}, "the gzip file is damaged"),
        (gzip.compress(b" \n", mtime=0), {}, "the file is empty"),  # stamped, its id would differ from worker to worker
        (SMALL, {"format": "parquet"}, "not a Parquet file"),
        (SMALL, {"format": "libsvm", "label": ""}, "not a LIBSVM file"),
        ("1 1:1\n1 1:2\n", {"format": "libsvm", "label": ""}, "one class only, 1"),
        ("1 1:1\n2 1:nan\n1 1:2\n2 1:3\n", {"format": "libsvm", "label": ""}, "column '0' has 1 missing or infinite"),
    ],
)
def test_one_line_that_names_the_file_or_the_key(write, text, settings, message):
    path = write(text)
    with pytest.raises(UsageError, match=message) as caught:
        Table(**{"path": path, "label": "c"} | settings)
    assert "\n" not in str(caught.value)
    assert path in str(caught.value) or any(key in str(caught.value) for key in settings)


CITIES = "größe;city;c\n1;Zürich;ä\n2;Genève;b\n3;Zürich;ä\n4;Genève;b\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "latin-1", "utf-16-be"])
def test_a_table_in_another_encoding_is_the_same_table(write, encoding):
    declared = {} if encoding.startswith("utf") and encoding != "utf-16-be" else {"encoding": encoding}
    plain, env = Table(path=write(CITIES), label="c"), Table(path=write(CITIES.encode(encoding)), label="c", **declared)
    np.testing.assert_array_equal(env._table.X, plain._table.X)
    assert env.classes == plain.classes == ["b", "ä"]
    assert env.encoder.feature_names == plain.encoder.feature_names
    packed = write(gzip.compress(CITIES.encode(encoding), mtime=0), "t.csv.gz")
    assert Table(path=packed, label="c", **declared).classes == ["b", "ä"]
    identity = Table.identity({"path": packed, "label": "c", **declared})
    assert identity.get("encoding", "auto") == declared.get("encoding", "auto")
    arff = "@relation r\n@attribute x numeric\n@attribute c {ä,b}\n@data\n1,ä\n2,b\n3,ä\n"
    assert Table(path=write(arff.encode(encoding), "t.arff"), label="c", **declared).classes == ["b", "ä"]


def test_files_that_are_not_there(tmp_path, write):
    with pytest.raises(UsageError, match=r"^there is no file .*nothing\.csv"):
        Table(path=str(tmp_path / "nothing.csv"), label="c")
    with pytest.raises(UsageError, match=r"path: .* cannot be read"):
        Table(path=str(tmp_path), label="c", format="csv")
    with pytest.raises(UsageError, match=r"the extension '\.xls' is not a known format"):
        Table(path=write(SMALL, "t.xls"), label="c")
    assert Table(path=write(SMALL, "t.xls"), label="c", format="csv").n_rows == 4
    with pytest.raises(UsageError, match=r"t\.csv\.gz: not a gzip file$"):
        Table(path=write("garbage", "t.csv.gz"), label="c")


def test_duplicate_columns_of_a_quoted_header_and_columns_without_a_name(write):
    with pytest.raises(UsageError, match="two columns are called 'a;b'"):
        Table(path=write('"a;b";"a;b";c\n1;2;u\n3;4;v\n'), label="c", separator=";")
    # Two columns without a name are no clash: pandas numbers them.
    assert Table(path=write(",,x,c\n1,2,3,u\n4,5,6,v\n"), label="c").problem.n_features == 4


def test_too_many_categories_and_fractions_as_labels(write):
    rng = np.random.default_rng(0)
    words = [f"w{i % 60}" for i in range(180)]
    text = "word,x,c\n" + "".join(f"{w},{rng.random():.3f},{i % 2}\n" for i, w in enumerate(words))
    with pytest.raises(UsageError, match="'word' is text with 60 different values, more than max_categories = 59"):
        Table(path=write(text), label="c", max_categories=59)
    assert Table(path=write(text), label="c", max_categories=60).problem.n_features == 62


@pytest.mark.parametrize(
    ("values", "rows", "refused"), [(20, 180, False), (21, 180, True), (9, 20, True), (6, 20, False), (3, 8, True)]
)
def test_a_measurement_is_no_label(write, values, rows, refused):
    fractions = write("x,c\n" + "".join(f"{i},{(i % values) + 0.5}\n" for i in range(rows)))
    whole = write("x,c\n" + "".join(f"{i},{i % values}\n" for i in range(rows)), "whole.csv")
    assert Table(path=whole, label="c").problem.n_classes == values
    if refused:
        message = f"'c' has {values} different values in {rows} rows: it looks like a measurement, not like classes"
        with pytest.raises(UsageError, match=message):
            Table(path=fractions, label="c")
    else:
        assert Table(path=fractions, label="c").problem.n_classes == values


def test_dates_have_no_rule(tmp_path):
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-01"] * 4), "x": [1, 2, 3, 4], "c": [0, 1, 0, 1]})
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(UsageError, match="column 'day' has dates"):
        Table(path=str(tmp_path / "t.parquet"), label="c")


@pytest.mark.parametrize(("n", "end"), [(30, r"feature_28, outcome\)$"), (31, r"feature_29, \.\.\. 1 more\)$")])
def test_a_wide_table_gets_a_short_hint(write, n, end):
    names = [*(f"feature_{i}" for i in range(n - 1)), "outcome"]
    path = write(",".join(names) + "\n" + ("1," * (n - 1) + "a\n" + "1," * (n - 1) + "b\n") * 2)
    with pytest.raises(UsageError, match="did you mean 'outcome'"):
        Table(path=path, label="outcom")
    with pytest.raises(UsageError, match=rf"the column to predict \(known: feature_0, feature_1, .*{end}"):
        Table(path=path)


class Large:
    """Rows of which only the shape is there."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def toarray(self) -> Any:
        raise MemoryError


@pytest.mark.parametrize(("n", "refused"), [(20_000, False), (20_001, True)])
def test_what_is_too_large_to_be_made_dense(n: int, refused: bool) -> None:
    X, labels = Large(n, 10_000), pd.Series([0], name="label")
    said = r"20001 rows of 10000 features are 1\.6 GB when dense"
    with pytest.raises(UsageError, match=said) if refused else pytest.raises(MemoryError):
        files.made_dense("t", X, [], labels)
