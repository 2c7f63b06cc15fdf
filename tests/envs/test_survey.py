"""What is said of a table's columns, and all its faults at once; files without a header, ARFF files, tables in memory."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from banditlab.envs import Table
from banditlab.envs._columns import Column, are_dates
from banditlab.envs.files import has_header, stored_table
from banditlab.envs.survey import about_classes, likeliest, logged_decisions, range_of, share_alone, survey
from banditlab.errors import UsageError

N = 240


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"x": rng.normal(size=N), "kind": rng.choice(["u", "v", "w"], size=N), "y": rng.choice(["a", "b", "c"], size=N)}
    )


@pytest.mark.parametrize(
    ("label", "meant"), [("Class ", "class"), ("clas", "class"), ("colour", "color"), ("zzz", ""), ("", ""), (" ", "")]
)
def test_the_column_that_a_misspelled_label_must_mean(label: str, meant: str) -> None:
    assert likeliest(label, ["x", "class", "color"]) == meant


def roles(frame: pd.DataFrame, **settings: object) -> dict[str, str]:
    found = survey(frame, "y", **settings)
    assert not found.faults
    return {note.name: note.role for note in found.notes}


def test_roles_of_columns():
    rng = np.random.default_rng(1)
    frame = table().assign(
        same=3,
        empty="all",
        row=np.arange(7, 7 + N),
        customer_id=rng.permutation(10 * N)[:N],
        zip_id=rng.integers(1000, 1009, size=N),
        seen=1.7e9 + rng.integers(10**6, size=N),
        seen_time=1.7e9 + rng.integers(10**6, size=N) + 0.5,
        day=rng.choice(["2024-01-01", "2024-01-02"], size=N),
        since=rng.choice(["2024-01-01", "2024-01-02", "ever"], size=N),
        until=rng.choice(["2024-01-01", "2024-01-02", "ever", "never"], size=N),
        income=1.7e9 + rng.integers(10**6, size=N) + 0.5,
    )
    frame["copy"] = frame["y"].map({"a": "rot", "b": "blau", "c": "rot und blau"})
    frame["score"] = frame["y"].map({"a": 1.0, "b": 2.0, "c": 3.0}) + 0.1 * rng.random(N)
    assert roles(frame) == {
        "x": "numeric",
        "kind": "nominal",
        "same": "constant",
        "empty": "constant",
        "row": "index-like",
        "customer_id": "identifier-like",
        "zip_id": "numeric",
        "seen": "identifier-like",
        "seen_time": "time-like",
        "day": "time-like",
        "since": "time-like",
        "until": "nominal",
        "income": "numeric",
        "copy": "probable leak",
        "score": "probable leak",
    }
    notes = {note.name: note for note in survey(frame, "y").notes}
    assert notes["copy"].option == "--drop-column copy"
    assert notes["day"].option == "--role day=time"
    assert notes["zip_id"].option == "--role zip_id=nominal"
    assert notes["kind"].option == ""
    assert [name for name, note in notes.items() if note.gives_away] == ["copy", "score"]
    grams = table().assign(grams=rng.permutation(10 * N)[:N])
    assert [roles(grams[:rows])["grams"] for rows in (199, 200)] == ["numeric", "identifier-like"]
    asked = roles(frame, roles={"day": "time", "zip_id": "nominal", "copy": "drop"}, drop_columns=["score"])
    assert (asked["day"], asked["zip_id"]) == ("time", "nominal")
    assert not {"copy", "score"} & set(asked)


def test_the_row_number_of_a_table_sorted_by_label_is_a_leak():
    frame = table().sort_values("y", ignore_index=True).assign(row=np.arange(N))
    found = survey(frame, "y")
    assert {note.name: note.role for note in found.notes}["row"] == "probable leak"
    assert any("sorted by label" in sentence for sentence in found.sentences)
    assert roles(table().assign(row=np.arange(N)))["row"] == "index-like"
    found = [roles(pd.DataFrame({"x": range(len(y)), "y": list(y)}))["x"] for y in ("ab", "aba", "aabb", "aaabb")]
    assert found == ["numeric", "index-like", "index-like", "probable leak"]


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6, 1e9])
def test_seconds_of_a_clock_and_parts_of_seconds_are_times(unit):
    for low, high, role in ((1e8, 9.9e9, "time-like"), (1e8, 1e10, "numeric"), (1e10, 2e10, "numeric")):
        frame = pd.DataFrame({"time": [low * unit, high * unit] * 4, "y": list("aabb") * 2})
        assert roles(frame) == {"time": role}


@pytest.mark.parametrize(
    ("far", "said", "option"),
    [
        ([14] * 3, "1 to 4, and 3 rows at 14, 3.3 times", "--na-values 14"),
        ([-9] * 3, "1 to 4, and 3 rows at -9, 3.3 times", "--na-values -9"),
        ([14, 15, 16] * 3, "1 to 4, and 9 rows at 14 and 15 and 16, 3.3 times", "--na-values 14 "),
        ([14, 15, 16, 17] * 3, "1 to 17", ""),
        ([13] * 3, "1 to 4, and 3 rows at 13, 3 times", ""),
        ([12] * 3, "1 to 12", ""),
        ([12, 24], "1 to 12, and 1 row at 24, 1.1 times", ""),
        ([12, 23], "1 to 23", ""),
        ([-8] * 3, "-8 to 4", ""),
    ],
)
def test_numbers_far_from_the_others_are_codes_or_not(far, said, option):
    text, codes = range_of(np.array([1] * 20 + [2] * 60 + [3] * 10 + [4] * 10 + far))  # the limits are -8 and 12
    assert (text.partition(" the others")[0], codes[: len(option) or None]) == (said, option)


def test_a_leak_tells_nearly_all_labels_and_more_than_three_quarters_of_rare_ones():
    def role(rows, ones, found):
        order = np.random.default_rng(0).permutation(rows)
        return roles(pd.DataFrame({"x": np.where(order < found, "u", "v"), "y": order < ones}))["x"]

    assert {role(*each) for each in ((50, 25, 25), (200, 99, 100), (400, 8, 7))} == {"probable leak"}
    assert {role(*each) for each in ((49, 25, 25), (200, 98, 100), (400, 8, 6))} == {"nominal"}


def test_how_many_labels_a_column_tells():
    y = (np.arange(50) < 20).astype(int)
    assert share_alone(Column("x", np.arange(50), 50), y) == 0.6  # one row of each category: the most frequent class
    assert share_alone(Column("x", np.where(y, 1.7e308, -1.7e308)), y) == 1.0
    assert share_alone(Column("x", np.where(np.arange(50) == 7, 1e200, np.arange(50.0))), y) > 0.9  # 7 is one of them
    shares = [
        share_alone(Column("x", np.arange(n) % K * 1.0), np.arange(n) % K) for n, K in ((52, 13), (51, 13), (52, 14))
    ]
    assert np.isnan(shares).tolist() == [False, True, True]  # four rows of a class are enough


def test_what_is_said_of_classes():
    assert about_classes({"a": 5, "b": 5}) == []
    assert about_classes({"a": 5, " A": 4, "b|c": 1, "NA": 3}) == [
        "classes 'a', ' A' differ only in case and blanks: one class?",
        "1 classes are names joined by '|', such as 'b|c': each counts as one class",
        "1 of 4 classes have only one row: 'b|c'",
        "4 classes are more than a fifth of the number of rows: is this a label?",
        "'NA' is a class; --na-values NA makes it missing",
    ]


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_no_leak(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(60, 12)), columns=list("abcdefghijkl")).assign(
        code=rng.choice(list("pqrstuvw"), size=60), y=np.where(rng.random(60) < 0.97, "no", "yes")
    )
    frame.loc[0, "y"], frame.loc[1, "y"] = "yes", "no"
    assert "probable leak" not in roles(frame).values()


def test_all_faults_of_a_table_at_once():
    frame = table().assign(id=[f"C{i}" for i in range(N)], day=pd.date_range("2024-01-01", periods=N).astype(str))
    frame["slip"] = frame["x"].round(2).astype(str)
    frame.loc[7, "slip"] = "oops"
    frame.loc[3, "x"] = np.inf
    frame.loc[5, "y"] = None
    found = survey(frame, "y", drop_columns=["idd"], roles={"kidn": "nominal"})
    told = [str(fault) for fault in found.faults]
    assert len(told) == 7
    for part in (
        "label column 'y' has 1 missing entries",
        "there is no column 'idd'; did you mean 'id'",
        "there is no column 'kidn'; did you mean 'kind'",
        "column 'x' has 1 missing or infinite entries",
        "column 'id' is text with a different value in every row",
        "column 'day' has dates as text",
        "column 'slip' is numeric except for 1 of 239 entries",
    ):
        assert sum(part in line for line in told) == 1, part
    options = {fault.options for fault in found.faults}
    assert options >= {
        ("--drop-column", "id"), ("--role", "day=time"), ("--drop-row", "7"), ("--drop-row", "5"), ("--missing", "indicator")
    }  # fmt: skip


def test_a_label_that_does_not_exist_and_columns_without_an_entry():
    frame = table().assign(gone=np.nan, id=[f"C{i}" for i in range(N)])
    [label, gone, text] = survey(frame.rename(columns={"y": " Label "}), "label", source="t").faults
    assert str(label).startswith("t: label (--label): there is no column 'label'; did you mean ' Label '?")
    assert label.options == ("--label", " Label ")
    assert (gone.options, text.options) == (("--drop-column", "gone"), ("--drop-column", "id"))
    assert "column 'gone' has no finite entry" in str(gone)
    [nothing] = survey(frame, "", source="t").faults  # any column may be the label: none is judged as a feature
    assert str(nothing) == "t: set label (--label) to the column to predict (known: x, kind, y, gone, id)"
    [wrong, *_] = survey(frame, "target", source="t").faults
    assert (wrong.options, "there is no column 'target' (known" in str(wrong)) == ((), True)
    wide = survey(pd.DataFrame(0, index=range(4), columns=[*(f"a{j}" for j in range(40)), "target"]), "TARGET")
    assert "there is no column 'TARGET'; did you mean 'target'? (known: a0, a1" in str(wide.faults[0])
    assert "target" not in wide.columns
    assert survey(table(), "y", drop_columns=["x"], text=["kind"]).faults == []


@pytest.mark.parametrize("rows", [60, 400])
def test_many_classes_and_few_rows_are_surveyed_in_silence(rows):
    frame = pd.DataFrame({"x": np.arange(rows) % 37, "y": [f"c{i % (rows // 2)}" for i in range(rows)]})
    assert not survey(frame, "y").faults


def test_numbers_as_large_as_floats_go_are_surveyed_in_silence():
    frame = pd.DataFrame({"x": np.array([-1.7e308, 1.7e308, -1e308, 1e308] * 5), "y": ["a", "b", "b", "a"] * 5})
    assert survey(frame, "y").faults == []


@pytest.mark.parametrize(
    ("names", "logged"),
    [
        (("arm", "reward", "propensity"), True),
        (("Action", "Click", "p"), True),
        (("a", "r", "p"), True),
        (("a", "r", "x"), False),
        (("action", "reward", "z"), True),
        (("reward", "propensity", "z"), False),
        (("action", "u", "v"), False),
    ],
)
def test_logged_decisions_are_recognised(names, logged):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(2, size=N) for name in names}).assign(x=rng.normal(size=N))
    frame[names[2]] = rng.choice([0.25, 0.75], size=N)
    assert bool(logged_decisions(frame)) is logged
    found = survey(frame, names[1])
    assert any("a log of decisions" in str(fault) and "label" in str(fault) for fault in found.faults) is logged
    other = survey(frame.assign(right=np.where(frame[names[2]] > 0.5, "a", "b")), "right")
    assert any("a log of decisions" in sentence for sentence in other.sentences) is logged
    assert not other.faults
    leaks = [note.name for note in other.notes if note.role == "probable leak"]
    assert leaks == ([] if names[2] in ("propensity", "p") else [names[2]])


def test_a_propensity_is_a_number_above_0_up_to_1():
    chances = ([0.5, 1.0], [0.5, 1.5], [0.0, 0.5], [None, None], ["x", "y"])
    found = [bool(logged_decisions(pd.DataFrame({"a": [0, 1], "r": [1, 0], "p": p}))) for p in chances]
    assert found == [True, False, False, False, False]


# ------------------------------------------------------------------------------------------------------------ no header


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versi\n6.3,3.3,versi\n5.0,3.4,setosa\n", False),
        ("a,b,species\n5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versi\n", True),
        ("p,x,s\ne,x,s\np,x,y\ne,b,s\ne,b,s\n", False),
        ("class,cap,odor\ne,x,s\np,x,y\ne,b,s\ne,b,s\n", True),
        ("0,1,2,label\n1,0,2,a\n1,1,0,b\n0,1,1,a\n2,2,1,b\n", True),
        ("name,2019,2020\nBern,5,6\nBern,7,8\nRom,5,5\n", True),
        ("39, State-gov,77516\n50, Private,83311\n38, Private,215646\n53, State-gov,234721\n", False),
        ("x,y\n1,2\n", True),
        ("1,2,u\n2,9,v\n0,9,w\n", False),
        ("1,9,5,label\n1,9,4,a\n2,8,6,b\n1,8,6,a\n", False),
        ("x,s,label\nx,s,a\ny,t,b\nx,t,a\n", True),
        (",x,s\n1,x,s\n2,y,t\n", False),
        ("1,2\n", True),
    ],
)
def test_whether_a_file_has_a_header_is_found_out(text, header):
    assert has_header(text.encode(), ",") is header


def test_a_file_without_a_header_is_another_table_and_one_with_it_is_what_it_was(tmp_path):
    body = "5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versi\n6.3,3.3,versi\n5.0,3.4,setosa\n"
    bare, named = tmp_path / "bare.csv", tmp_path / "named.csv"
    bare.write_text(body)
    named.write_text("a,b,c\n" + body)
    env, other = Table(path=str(bare), label="2"), Table(path=str(named), label="c")
    np.testing.assert_array_equal(env._table.X, other._table.X)
    assert env.params()["header"] == "no"
    assert not has_header((body * 2**14).encode(), ",")
    assert Table.identity({"path": str(bare), "label": "2"})["header"] == "no"
    assert Table.identity(env.params())["header"] == "no"
    assert Table.identity(other.params())["header"] == "auto"
    assert "header" not in Table.identity({"path": str(named), "label": "c"})
    with pytest.raises(UsageError, match="there is no column '2'"):
        Table(path=str(bare), label="2", header="yes")
    assert (
        Table(path=str(named), label="2", header="no", max_categories=7, roles={"0": "nominal", "1": "nominal"}).n_rows
        == 6
    )
    with pytest.raises(UsageError, match="header must be one of"):
        Table(path=str(bare), label="2", header="maybe")


# ------------------------------------------------------------------------------------------------------------------ ARFF

ARFF = """% a comment
@relation weather
@attribute outlook {sunny, rainy}
@attribute temperature numeric
@attribute play {no, yes}
@data
sunny,85,no
rainy,?,yes
?,70,yes
rainy,64,no
"""


def test_arff_files_are_read(tmp_path):
    file = tmp_path / "weather.arff"
    file.write_text(ARFF)
    env = Table(path=str(file), label="play", missing="zero", scaling="none", normalize=False, intercept=False)
    np.testing.assert_allclose(env._table.X, [[0, 1, 85], [1, 0, 0], [0, 0, 70], [1, 0, 64]], rtol=1e-11)
    assert env.classes == ["no", "yes"]


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "@relation x\n@data\n1\n",
        ARFF.replace("{no, yes}", "string"),
        ARFF + "sunny,1\n",
        ARFF + "foggy,1,no\n",
    ],
)
def test_what_is_no_arff_file_is_one_line(tmp_path, text):
    file = tmp_path / "weather.arff"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"weather\.arff") as caught:
        Table(path=str(file), label="play", missing="zero")
    assert "\n" not in str(caught.value)


# -------------------------------------------------------------------------------------------------------- tables in memory


def test_tables_in_memory_are_stored_once_and_alike(tmp_path):
    frame = table()
    file = stored_table(frame, tmp_path / "made" / "a")
    before, stamp = file.read_bytes(), file.stat().st_mtime_ns
    assert stored_table(frame, tmp_path / "made" / "a").stat().st_mtime_ns == stamp
    pd.testing.assert_frame_equal(pd.read_parquet(file), pd.read_parquet(stored_table(pa.table(frame), tmp_path / "b")))

    class Handed:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table(frame).__arrow_c_stream__(requested_schema)

    assert stored_table(Handed(), tmp_path / "c").is_file()
    assert stored_table(frame.set_index("kind", drop=False), tmp_path / "d").read_bytes() == before
    assert stored_table(table(1), tmp_path / "d").read_bytes() != before
    for wrong, message in (
        ([1, 2], "data must be a file, a pandas DataFrame"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns are called 'a'"),
        (pd.DataFrame({"a": [1, "x", [2]]}), "the table cannot be stored"),
    ):
        with pytest.raises(UsageError, match=message):
            stored_table(wrong, tmp_path / "e")


def test_an_arff_file_may_hold_any_text(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(
        "@relation r\n@attribute größe numeric\n@attribute 'wo\x02' {Zürich,'日 本',\U0001f600}\n@attribute y {ä,b}\n@data\n"
        "1,'Zürich',ä\n2,'日 本',b\n3,'\U0001f600',ä\n4,'Zürich',b\n",
        encoding="utf-8",
    )
    env = Table(path=str(path), label="y")
    assert env.classes == ["b", "ä"]
    assert [c.name for c in env.encoder.columns] == ["größe", "wo\x02"]
    assert set(env.encoder.columns[1].categories) == {"Zürich", "日 本", "\U0001f600"}


@pytest.mark.parametrize(
    ("values", "dates"),
    [
        (["2024-01-01"], True),
        ([], False),
        (["20240101", "20240102"], False),  # which may as well be numbers
        (["2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00+02:00"], True),
        (["2024-01-01", "x"], False),
        (["x", "2024-01-01"], False),
    ],
)
def test_what_is_taken_for_dates(values: list[str], dates: bool) -> None:
    assert are_dates(pd.Series(values, dtype="str")) is dates


def test_advice_can_be_pasted_into_a_shell() -> None:
    frame = pd.DataFrame({"it's; rm -rf $HOME": range(60), "y": [0, 1] * 30})
    options = [note.option for note in survey(frame, "y").notes if note.option]
    assert [shlex.split(option)[1].partition("=")[0] for option in options] == ["it's; rm -rf $HOME"]
