"""The fitted recipe: one row as the transformer encodes it, saved and read again, and whatever is wrong with either."""

from __future__ import annotations

import datetime
import json
import math
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from banditlab.envs import Table
from banditlab.envs.encoding import Encoder
from banditlab.errors import UsageError

SCALINGS = ("none", "minmax", "standard", "maxabs", "robust", "rowwise")
IMPUTING = ("mean", "zero", "indicator")


def table(rows: int = 40, seed: int = 0, gaps: bool = True, unit: float = 1.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, size=rows).astype(float),
            "plan": rng.choice(["free", "pro", "team"], size=rows),
            "spent": rng.exponential(1000.0, size=rows) * unit,
            "same": np.full(rows, 5.0),
            "flag": rng.random(rows) < 0.5,
            "city": rng.choice(["Bern", "Rom", "Oslo"], size=rows),
        }
    )
    if gaps:
        frame.loc[3, "age"] = math.nan
        frame.loc[[4, 7], "plan"] = None
        frame.loc[5, "spent"] = math.inf
    return frame


def rows_of(frame: pd.DataFrame) -> list[dict[str, object]]:
    return [{name: row[name] for name in frame.columns} for _, row in frame.iterrows()]


@pytest.mark.parametrize(("scaling", "missing"), [*zip(SCALINGS, ("error", *IMPUTING) * 2), ("standard", "error")])
def test_one_row_is_encoded_as_its_table(scaling, missing):
    frame = table(gaps=missing != "error")
    for normalize, intercept in ((True, True), (False, scaling in ("none", "maxabs"))):
        encoder = Encoder.fit(frame, scaling=scaling, missing=missing, normalize=normalize, intercept=intercept)
        other = table(rows=13, seed=1, gaps=missing != "error")
        other.loc[9, "city"] = "Paris"  # never seen
        other.loc[10, "spent"], other.loc[11, "same"] = 1e7, 9.0  # longer than any row, and no constant
        for data in (frame, other):
            contexts = encoder.transform(data)
            assert contexts.shape == (len(data), encoder.d)
            np.testing.assert_array_equal(np.array([encoder.encode(row) for row in rows_of(data)]), contexts)
            assert (np.linalg.norm(contexts, axis=1) <= encoder.radius).all()
        again = Encoder.from_bytes(encoder.to_bytes())
        np.testing.assert_array_equal(again.transform(other), encoder.transform(other))
        np.testing.assert_array_equal(again.encode(rows_of(other)[9]), contexts[9])
        assert again.to_bytes() == encoder.to_bytes()
        assert (again.d, again.radius, again.columns, again.feature_names) == (
            encoder.d, encoder.radius, encoder.columns, encoder.feature_names
        )  # fmt: skip


def test_a_saved_encoder_has_texts_as_they_are_written():
    frame = pd.DataFrame({"city": ["Köln", "Łódź", "Köln"], "spent": [1.0, 2.0, 4.0]})
    assert "Łódź".encode() in Encoder.fit(frame).to_bytes()


@pytest.mark.parametrize("unit", [1e200, 1e-200, 1e302])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_extreme_units(unit, scaling):
    frame = table(gaps=False, unit=unit)
    encoder = Encoder.fit(frame, scaling=scaling)
    contexts = encoder.transform(frame)
    assert np.isfinite(contexts).all()
    np.testing.assert_array_equal(np.array([encoder.encode(row) for row in rows_of(frame)]), contexts)
    again = Encoder.from_bytes(encoder.to_bytes())
    np.testing.assert_array_equal(again.transform(frame), contexts)
    np.testing.assert_array_equal(again.encode(rows_of(frame)[0]), contexts[0])


@pytest.mark.parametrize("scaling", SCALINGS)
def test_numbers_far_beyond_those_of_the_fit_stay_within_the_radius(scaling):
    encoder = Encoder.fit(table(gaps=False), scaling=scaling)
    row = rows_of(table(gaps=False))[0]
    for value in (1e308, -1e308, 5e-324, 10**300, True, np.float32(3.5), np.int64(4)):
        frame = pd.DataFrame([row | {"spent": float(value), "age": float(value)}])
        x = encoder.encode(row | {"spent": value, "age": value})
        assert np.isfinite(x).all()
        assert np.linalg.norm(x) <= encoder.radius
        np.testing.assert_array_equal(x, encoder.transform(frame)[0])


def test_the_environment_keeps_its_encoder(tmp_path):
    frame = table()
    path = tmp_path / "t.csv"
    frame.assign(y=np.arange(40) % 2).to_csv(path, index=False)
    env = Table(path=str(path), label="y", missing="mean")
    read = pd.read_csv(path, dtype={"flag": str}).drop(columns="y")
    np.testing.assert_array_equal(env.encoder.transform(read), env._table.X)
    row = rows_of(read)[4]
    for missing in (math.nan, None, pd.NA):
        np.testing.assert_array_equal(env.encoder.encode(row | {"plan": missing}), env._table.X[4])
    del row["plan"]
    np.testing.assert_array_equal(env.encoder.encode(row), env._table.X[4])
    np.testing.assert_array_equal(env.encoder.encode(row | {"flag": 0}), env._table.X[4])
    assert env.encoder.feature_names[:5] == ("age", "plan=free", "plan=pro", "plan=team", "spent")
    assert env.encoder.feature_names[-1] == "constant"
    assert env.encoder.columns[1] == ("plan", "nominal", ("free", "pro", "team"))
    assert env.problem.n_features == env.encoder.d


def test_what_the_recipe_says_of_gaps_and_unknown_categories():
    plain = {"normalize": False, "intercept": False, "scaling": "none"}
    frame = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0], "n": ["u", "v", None, "u"]})
    full = {"a": 2.0, "n": "v"}
    for missing, gap_a, gap_n, unknown in (
        ("mean", [7 / 3, 0, 1], [2, 2 / 3, 1 / 3], [2, 0, 0]),
        ("zero", [0, 0, 1], [2, 0, 0], [2, 0, 0]),
        ("indicator", [7 / 3, 1, 0, 1, 0], [2, 0, 0, 0, 1], [2, 0, 0, 0, 0]),
    ):
        encoder = Encoder.fit(frame, missing=missing, **plain)
        np.testing.assert_allclose(encoder.encode(full | {"a": None}), gap_a, rtol=1e-11)
        np.testing.assert_allclose(encoder.encode({"n": "v"}), gap_a, rtol=1e-11)
        np.testing.assert_allclose(encoder.encode(full | {"a": math.inf}), gap_a, rtol=1e-11)
        np.testing.assert_allclose(encoder.encode(full | {"n": None}), gap_n, rtol=1e-11)
        np.testing.assert_allclose(encoder.encode(full | {"n": ""}), gap_n, rtol=1e-11)
        np.testing.assert_allclose(encoder.encode({"a": 2}), gap_n, rtol=1e-11)
        np.testing.assert_allclose(encoder.encode(full | {"n": "w"}), unknown, rtol=1e-11)
        np.testing.assert_array_equal(
            encoder.transform(pd.DataFrame([full | {"n": "w"}]))[0], encoder.encode(full | {"n": "w"})
        )
        np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"a": [2]}))[0], encoder.encode({"a": 2}))
        assert encoder.transform(frame[:0]).shape == (0, encoder.d)
        turned = Encoder.fit(frame[["n", "a"]], missing=missing, **plain)
        np.testing.assert_array_equal(turned.encode({"n": "u"}), turned.transform(pd.DataFrame({"n": ["u"]}))[0])


@pytest.mark.parametrize("missing", ["error", "drop_rows"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": None}, "key 'age' must have a finite value"),
        ({"age": math.nan}, "key 'age' must have a finite value"),
        ({"age": -math.inf}, "key 'age' must have a finite value"),
        ({"age": 10**400}, "key 'age' must have a finite value"),
        ({"plan": None}, "key 'plan' must have a finite value"),
        ({"plan": ""}, "key 'plan' must have a finite value"),
        ({"age": "31 years"}, "key 'age' must be a number, got '31 years'"),
        ({"age": [1]}, r"key 'age' must be a number, got \[1\]"),
        ({"age": 1j}, "key 'age' must be a number"),
        ({"plan": ["pro"]}, r"key 'plan' must be text, a number or a truth value, got \['pro'\]"),
        ({"plan": b"pro"}, "key 'plan' must be text"),
        ({"age": "x" * 59}, r"key 'age' must be a number, got 'x{59}\.\.\.$"),
        ({"age": "x" * 58}, r"key 'age' must be a number, got 'x{58}'$"),
    ],
)
def test_one_line_for_a_row_that_cannot_be_encoded(missing, change, message):
    encoder = Encoder.fit(table(gaps=missing == "drop_rows"), missing=missing)
    row = rows_of(table(gaps=False))[0]
    with pytest.raises(UsageError, match=message) as caught:
        encoder.encode(row | change)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match=message):
        encoder.transform(pd.DataFrame([row | change]))


@pytest.mark.parametrize("missing", ["error", "indicator"])
def test_a_key_that_is_missing(missing):
    encoder = Encoder.fit(table(gaps=False), missing=missing)
    row = rows_of(table(gaps=False))[0]
    row["agee"] = row.pop("age")
    if missing == "error":
        with pytest.raises(UsageError, match="key 'age' is missing; did you mean 'agee'"):
            encoder.encode(row)
        with pytest.raises(UsageError, match="key 'age' is missing; did you mean 'agee'"):
            encoder.transform(pd.DataFrame([row]))
    else:  # nothing was missing when it was fitted: the mean, and no feature that says so
        np.testing.assert_array_equal(encoder.encode(row), encoder.transform(pd.DataFrame([row]))[0])


def test_roles():
    frame = pd.DataFrame(
        {
            "day": ["2024-01-01", "2024-01-02T12:00:00", "2024-03-01", "2024-01-02"],
            "code": [10, 20, 10, 30],
            "text": ["1", "2.5", "x", "4"],
            "id": list("abcd"),
            "x": [1.0, 2.0, 3.0, 4.0],
        }
    )
    roles = {"day": "time", "code": "nominal", "text": "nominal", "id": "drop"}
    encoder = Encoder.fit(frame, roles=roles, scaling="none", normalize=False, intercept=False)
    assert [(c.name, c.role) for c in encoder.columns] == [
        ("day", "time"), ("code", "nominal"), ("text", "nominal"), ("x", "numeric")
    ]  # fmt: skip
    assert encoder.columns[1].categories == ("10", "20", "30")
    row = {"day": "2024-01-02T12:00:00", "code": 20.0, "text": "2.5", "x": 2}
    x = encoder.encode(row)
    np.testing.assert_allclose(x[:4], [19724.5, 0, 1, 0], rtol=1e-11)
    np.testing.assert_array_equal(encoder.transform(frame)[1], x)
    for day in (datetime.datetime(2024, 1, 2, 12), pd.Timestamp("2024-01-02T13:00:00+01:00"), "2024-01-02T12:00:00Z"):
        np.testing.assert_array_equal(encoder.encode(row | {"day": day, "code": "20"}), x)
    assert encoder.encode(row | {"day": datetime.date(2024, 1, 2)})[0] == pytest.approx(19724.0)
    for wrong in ("yesterday", 5, "2024-13-01"):
        with pytest.raises(UsageError, match="key 'day' must be a date in ISO 8601"):
            encoder.encode(row | {"day": wrong})
    again = Encoder.from_bytes(encoder.to_bytes())
    np.testing.assert_array_equal(again.transform(frame), encoder.transform(frame))
    for wrong_roles, message in (
        ({"dya": "time"}, "there is no column 'dya'; did you mean 'day'"),
        ({"day": "date"}, "must be one of 'numeric', 'nominal', 'time', 'drop'"),
        ({**roles, "text": "numeric"}, "declared numeric .*, but 'x' in row 2"),
        ({**roles, "text": "time"}, "column 'text': '1' in row 0.* is not a date"),
        ({**roles, "x": "time"}, "column 'x' has numbers"),
    ):
        with pytest.raises(UsageError, match=message):
            Encoder.fit(frame, roles=wrong_roles)


def test_rowwise_looks_at_no_other_row():
    frame = table(gaps=False)
    encoder = Encoder.fit(frame, scaling="rowwise", intercept=False)
    changed = frame.copy()
    changed.loc[20:, ["age", "spent"]] *= 1000.0
    other = Encoder.fit(changed, scaling="rowwise", intercept=False)
    np.testing.assert_array_equal(other.transform(changed)[:20], encoder.transform(frame)[:20])
    x = encoder.encode(rows_of(frame)[0])
    assert np.linalg.norm(x) == pytest.approx(1.0, rel=1e-11)
    assert x[0] / x[4] == pytest.approx(np.arcsinh(frame["age"][0]) / np.arcsinh(frame["spent"][0]))


def test_rowwise_rows_have_norm_1_however_small_they_are():
    frame = pd.DataFrame({"a": [3e-200, 3.0, 0.0], "b": [4e-200, -1.0, 5e-324]})
    for rows in (frame, frame[::2]):
        encoder = Encoder.fit(rows, scaling="rowwise", intercept=False)
        np.testing.assert_allclose(np.linalg.norm(encoder.transform(rows), axis=1), 1.0, rtol=1e-11)
        np.testing.assert_allclose(encoder.encode(rows_of(rows)[0]), [0.6, 0.8], rtol=1e-11)
        np.testing.assert_allclose(encoder.encode({"a": 0.0, "b": 0.0}), 0.0)


def test_fifteen_columns_take_well_under_a_hundred_microseconds():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=100) for j in range(10)})
    for j in range(5):
        frame[f"n{j}"] = rng.choice(list("abcdefgh"), size=100)
    encoder = Encoder.fit(frame, scaling="standard", missing="indicator")
    row = rows_of(frame)[0]
    times = []
    for _ in range(300):
        begin = time.perf_counter_ns()
        encoder.encode(row)
        times.append(time.perf_counter_ns() - begin)
    assert np.median(times) < 100_000  # about 20 us on an idle core


# --------------------------------------------------------------------------------------------------------- crafted bytes


def saved() -> dict:
    return json.loads(Encoder.fit(table(), missing="mean", scaling="standard").to_bytes())


def damaged(path: list[object], value: object) -> bytes:
    plain = at = saved()
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(plain).encode()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["format"], "pickle", "format"),
        (["version"], 4, "format version 4 was written by a later version of banditlab"),
        (["version"], 0, "version"),
        (["version"], "1", "version"),
        (["more"], 1, "more"),
        (["x" * 99], 1, r"\(x{80}:"),
        (["columns"], [], "columns"),
        (["columns", 0, "name"], 3, "columns.0.name"),
        (["columns", 0, "name"], "city", "two columns with the same name"),
        (["columns", 0, "role"], "__reduce__", "columns.0.role"),
        (["columns", 0, "role"], "nominal", "categories"),
        (["columns", 0, "fill"], math.inf, "columns.0.fill"),
        (["columns", 0, "scale"], 0.0, "columns.0.scale"),
        (["columns", 0, "scale"], True, "columns.0.scale"),
        (["columns", 0, "shift"], 10**9, "columns.0.shift"),
        (["columns", 0, "knots"], [1.0], "knots of column 'age'"),
        (["columns", 0, "knots"], [0.0, 1e-310], "knots of column 'age'"),
        (["columns", 0, "knots"], [2.0, 1.0], "knots of column 'age'"),
        (["columns", 0, "knots"], [0.0, 1e301], "columns.0.knots.1"),
        (["columns", 0, "knots"], [*range(34)], "columns.0.knots"),
        (["columns", 1, "knots"], [0.0, 1.0], "knots of column 'plan'"),
        (["columns", 1, "categories"], ["a", "a", "b"], "occurs twice"),
        (["columns", 1, "shares"], [0.5], "frequencies"),
        (["columns", 1, "constant"], True, "nominal and has numbers"),
        (["columns", 1, "shift"], 1, "nominal and has numbers"),
        (["columns", 1, "fill"], 1.0, "nominal and has numbers"),
        (["columns", 1, "center"], 1.0, "nominal and has numbers"),
        (["recipe", "scaling"], "auto", "recipe.scaling"),
        (["recipe", "scaling"], "rowwise", "not a saved encoder"),
        (["recipe", "missing"], "median", "recipe.missing"),
        (["recipe", "intercept"], False, "norm and recipe differ"),
        (["norm", "radius"], 5.0, "radius other than 1"),
        (["norm", "reach"], math.nan, "norm.reach"),
        (["norm", "one"], 0.0, "constant does not fit"),
        (["norm", "divisor"], 1e-3, "divisor"),
    ],
)
def test_crafted_bytes_are_one_error(path, value, message):
    with pytest.raises(UsageError, match=message) as caught:
        Encoder.from_bytes(damaged(path, value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"[]", b"null", b"\x80\x04\x95cos\nsystem\n", b"\xff\xfe", b'{"format":' * 100_000, b"[" * 1_000_000,
        b"1" * 100_000, b'{"a":' + b"9" * 100_000 + b"}", b"NaN",
    ],
)  # fmt: skip
def test_bytes_that_are_no_encoder(data):
    with pytest.raises(UsageError, match="encoder: not a saved encoder") as caught:
        Encoder.from_bytes(data)
    assert "\n" not in str(caught.value)


def test_a_flipped_byte_is_an_error_or_an_encoder_that_encodes():
    data, rng = Encoder.fit(table(), missing="mean").to_bytes(), np.random.default_rng(0)
    row, refused = rows_of(table(gaps=False))[0], 0
    for _ in range(400):
        flipped = bytearray(data)
        flipped[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        try:
            encoder = Encoder.from_bytes(bytes(flipped))
            x = encoder.encode(row)
            assert x.shape == (encoder.d,)
            assert np.isfinite(x).all()
            assert np.linalg.norm(x) <= encoder.radius
        except UsageError:
            refused += 1
    assert 100 < refused < 400


def test_names_of_any_text_survive():
    frame = pd.DataFrame({"größe, cm": [1.0, 2.0], "a\nb": ["ü", "\u2028"], "": [1, 2]})
    encoder = Encoder.from_bytes(Encoder.fit(frame, roles={"a\nb": "nominal"}).to_bytes())
    np.testing.assert_array_equal(encoder.encode(rows_of(frame)[1]), encoder.transform(frame)[1])


def test_a_fresh_process_encodes_without_scikit_learn(tmp_path):
    encoder = Encoder.fit(table(), missing="mean")
    (tmp_path / "e").write_bytes(encoder.to_bytes())
    row = {"age": 31, "plan": "pro"}
    code = (
        "import sys; from pathlib import Path; from banditlab.envs.encoding import Encoder\n"
        f"x = Encoder.from_bytes(Path({str(tmp_path / 'e')!r}).read_bytes()).encode({row!r})\n"
        "print(x.tobytes().hex(), *({'sklearn', 'pandas', 'numba'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert out == [encoder.encode(row).tobytes().hex()]


def test_a_warm_encoder_has_its_kernel_and_the_same_numbers():
    for columns in (["age", "plan"], ["plan"]):
        frame = table(gaps=False)[columns]
        encoder = Encoder.fit(frame, scaling="minmax")
        row = rows_of(frame)[1]
        cold = encoder.encode(row).tobytes()
        assert encoder._row._fill is not None
        again = Encoder.from_bytes(encoder.to_bytes())
        again.warm()
        assert again._row._fill is not None
        assert again.encode(row).tobytes() == cold


@pytest.mark.parametrize("normalize", [True, False])
def test_rows_about_as_long_as_the_longest_are_encoded_as_their_table(normalize: bool) -> None:
    """Shorter by a billionth, as long, longer by a tenth of a billionth, by a fifth."""
    frame = pd.DataFrame({"a": [0.3, 0.1, 0.0], "b": [0.4, 0.05, 0.2]})
    encoder = Encoder.fit(frame, scaling="none", normalize=normalize, intercept=False)
    for factor in (0.5, 1.0 - 1e-9, 1.0 - 1e-10, 1.0, 1.0 + 1e-10, 1.0 + 1e-9, 1.2):
        row = {"a": 0.3 * factor, "b": 0.4 * factor}
        x = encoder.encode(row)
        assert x.tobytes() == encoder.transform(pd.DataFrame([row]))[0].tobytes()
        assert np.linalg.norm(x) <= encoder.radius
