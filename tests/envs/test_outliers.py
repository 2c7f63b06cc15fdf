"""A few numbers far from the others of their column: what they do to other rows, to rows to come, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditlab import make_agent
from banditlab.envs._columns import Column
from banditlab.envs._outliers import LEVELS, bounds, mapped
from banditlab.envs.encoding import Encoder
from banditlab.envs.survey import survey
from banditlab.envs.table import Table
from banditlab.players.actor import Trace

N = 600
PLAIN = {"normalize": False, "intercept": False}


def table(seed: int = 0) -> pd.DataFrame:
    """Columns of measurements, whole numbers, counts, rare and frequent 0/1, one value, mostly zeros, and text."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "normal": rng.uniform(-2.0, 2.0, N),
            "whole": rng.integers(0, 50, N).astype(float),
            "counts": rng.integers(0, 4, N).astype(float),
            "rare": (rng.random(N) < 0.03).astype(float),
            "even": (rng.random(N) < 0.5).astype(float),
            "same": np.full(N, 7.0),
            "zeros": np.where(rng.random(N) < 0.8, 0.0, rng.uniform(1.0, 3.0, N)),
            "kind": rng.choice(["u", "v", "w"], N),
        }
    )


def with_values(frame: pd.DataFrame, values: list[float], times: int) -> pd.DataFrame:
    """Return the table with each value in `times` rows of every numeric column, not the first ten or the last ten rows."""
    rng, frame = np.random.default_rng(1), frame.copy()
    for name in frame.columns[:-1]:
        at = 10 + rng.permutation(N - 20)[: times * len(values)]
        frame.loc[at, name] = np.tile(values, times)
    return frame


def test_without_numbers_far_out_nothing_changes_to_the_last_bit() -> None:
    frame = table()
    auto, plain = (Encoder.fit(frame, scaling=scaling) for scaling in ("auto", "minmax"))
    assert auto.to_bytes() == plain.to_bytes()
    assert auto.transform(frame).tobytes() == plain.transform(frame).tobytes()
    near = frame[["normal", "rare", "even", "kind"]]
    assert Encoder.fit(near).to_bytes() == Encoder.fit(near, scaling="none").to_bytes()


@pytest.mark.parametrize(
    "values", [[9999.0], [-999.0, 99999.0], [1e9], [1e200], [-1e308], [1.7e308, -1.7e308]], ids=str
)
def test_a_few_values_leave_the_other_rows_as_they_were(values: list[float]) -> None:
    clean, frame = table(), with_values(table(), values, 2)
    wanted, found = (Encoder.fit(f, **PLAIN) for f in (clean, frame))
    assert wanted.recipe.scaling == "minmax"
    j = [name != "same" for name in found.feature_names]  # one value and a few others are two kinds of rows
    X, Z = found.transform(frame)[:, j], wanted.transform(clean)[:, j]
    far = frame.drop(columns=["kind", "same"]).isin(values).to_numpy()
    moved = np.hstack([far, np.zeros((N, 3), dtype=bool)])
    # The others move by less than a least or largest value that is gone.
    np.testing.assert_allclose(X[~moved], Z[~moved], rtol=0.0, atol=0.02)
    ends = np.sign(frame.drop(columns=["kind", "same"]).to_numpy()[far]) > 0
    np.testing.assert_allclose(X[moved], ends, atol=1e-11)


@pytest.mark.parametrize("missing", ["error", "mean", "zero", "indicator"])
@pytest.mark.parametrize(
    ("values", "times"),
    [
        ([9999.0], 3),
        ([-999.0, 99999.0, -1.0], 10),
        ([1e9], 1),
        ([1e200], 30),
        ([-1e308], 30),
        ([1.7e308, -1.7e308], 15),
    ],
    ids=str,
)
def test_one_row_is_encoded_as_its_table_and_as_the_saved_encoder_does(
    values: list[float], times: int, missing: str
) -> None:
    frame = with_values(table(), values, times)
    if missing != "error":
        frame.loc[[0, 3], "normal"], frame.loc[[1, 3], "zeros"], frame.loc[4, "kind"] = np.nan, np.inf, None
    encoder = Encoder.fit(frame, missing=missing)  # type: ignore[arg-type]
    again, X = Encoder.from_bytes(encoder.to_bytes()), encoder.transform(frame)
    assert any(step.knots for step in encoder.steps)
    assert np.isfinite(X).all()
    assert np.linalg.norm(X, axis=1).max() <= encoder.radius
    assert again.transform(frame).tobytes() == X.tobytes()
    rows = frame.iloc[:40].to_dict("records")
    np.testing.assert_array_equal([encoder.encode(row) for row in rows], X[:40])
    for value in (1e308, -1e308, 5e-324, 0.0, 9999.0):
        row = rows[5] | dict.fromkeys(frame.columns[:-1], value)
        np.testing.assert_array_equal(again.encode(row), encoder.transform(pd.DataFrame([row]))[0])
    np.testing.assert_array_equal(again.encode(rows[5] | {"whole": "7"}), again.encode(rows[5] | {"whole": 7}))


def test_many_numbers_far_out_are_scaled_by_rank() -> None:
    rng = np.random.default_rng(2)
    heavy = {"lognormal": rng.lognormal(0.0, 3.0, N), "cauchy": rng.standard_cauchy(N)}
    for name, numbers in heavy.items():
        column = mapped(Column(name, numbers))
        assert len(column.knots) == max(LEVELS)
        ranks = np.argsort(np.argsort(numbers)) / (N - 1.0)
        np.testing.assert_allclose(column.values, ranks, atol=1.0 / (max(LEVELS) - 1))
        assert (np.diff(column.values[np.argsort(numbers)]) >= 0.0).all()
        assert len(mapped(Column(name, numbers), ranks=False).knots) == 2
    few = np.append(rng.uniform(size=N), [1e9] * 6)  # 6 of 606 are at most 1 %, 7 of 607 are more
    assert [len(mapped(Column("x", np.append(few, extra))).knots) for extra in ([], [1e9])] == [2, max(LEVELS)]


def test_the_spread_of_counts_flags_and_single_values() -> None:
    assert bounds(np.array([0.0] * 90 + [1.0] * 10)) == (-10.0, 10.0)
    assert bounds(np.array([5.0, 5.0, np.nan])) == (-np.inf, np.inf)
    assert bounds(np.array([])) == (-np.inf, np.inf)
    assert bounds(np.array([1.0, 2.0, 3.0, 3.0, 4.0])) == (-7.0, 13.0)
    flag = Column("flag", np.array([0.0] * 97 + [1.0] * 3))
    assert mapped(flag) is flag
    whole = Column("kind", np.array([0] * 97 + [1, 2, 40]), 41)  # codes are no numbers
    assert mapped(whole) is whole
    assert mapped(edge := Column("x", np.array([0.0] * 90 + [1.0] * 9 + [-10.0, 10.0]))) is edge  # as far as the limits
    beyond = Column("x", 1.5e298 * np.array([*range(1, 100), 9999]))  # as it stands: its slopes were none
    assert mapped(beyond) is beyond


@pytest.mark.parametrize(("low", "high", "far"), [(1e298, 1e300, 1e305), (0.0, 1.0 / 1e300, 1.0)])
def test_the_largest_and_the_closest_knots(low: float, high: float, far: float) -> None:
    encoder = Encoder.fit(pd.DataFrame({"x": [*np.linspace(low, high, 99), far]}))
    assert Encoder.from_bytes(encoder.to_bytes()).steps[0].knots == (low, high)


def test_an_encoder_of_the_first_format_is_read_as_ever() -> None:
    frame = table()
    encoder = Encoder.fit(frame)
    plain = json.loads(encoder.to_bytes())
    assert (plain["version"], [column.pop("knots") for column in plain["columns"]]) == (2, [[]] * 8)
    old = Encoder.from_bytes(json.dumps(plain | {"version": 1}).encode())
    assert old.transform(frame).tobytes() == encoder.transform(frame).tobytes()


# ----------------------------------------------------------------------------------------------------------- rows in order


def in_order(folder: Path, frame: pd.DataFrame, **settings: object) -> Table:
    frame.assign(y=np.arange(len(frame)) % 2).to_parquet(folder / "t.parquet")
    return Table(path=str(folder / "t.parquet"), label="y", order="file", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", [5, 63, 64, 100, 300])
def test_in_order_a_value_far_out_moves_no_other_row_for_long(row: int, tmp_path: Path) -> None:
    clean = pd.DataFrame({"x": np.random.default_rng(3).normal(size=400), "z": np.arange(400) % 5})
    frame = clean.copy()
    frame.loc[row, "x"] = 1e9
    X, Z = (in_order(tmp_path, f)._table.X for f in (frame, clean))
    same = [t for t in range(400) if t < row or t > max(row, 63)]
    np.testing.assert_array_equal(X[same], Z[same])
    assert X[row, 0] == Z[:, 0].max()


def test_in_order_no_later_row_changes_a_context(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.random.default_rng(4).standard_cauchy(300), "z": np.arange(300) % 3.0})
    frame.loc[[2, 90, 200], "z"] = np.nan
    X = in_order(tmp_path, frame, missing="mean")._table.X
    for first in (64, 65, 128, 200):
        later = frame.copy()
        later.loc[first:, "x"] *= -1e200
        changed = in_order(tmp_path, later, missing="mean")._table.X
        assert changed[:first].tobytes() == X[:first].tobytes()
        assert np.isfinite(changed).all()


def test_what_comes_after_rows_in_order_is_clipped_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [*np.linspace(0.0, 1.0, 197), *[1e9] * 3], "z": np.arange(200) % 3})
    encoder = in_order(tmp_path, frame)._table.encoder
    assert encoder is not None
    ends = [encoder.encode({"x": x, "z": 0})[0] for x in (-5.0, 0.0, 0.5, 1.0, 1e308)]
    np.testing.assert_allclose(np.array(ends) / ends[-1], [0.0, 0.0, 0.5, 1.0, 1.0])


# -------------------------------------------------------------------------------------------------------------- what it costs


def mistakes(folder: Path, frame: pd.DataFrame, y: np.ndarray) -> int:
    frame.assign(y=y).to_parquet(folder / "t.parquet")
    env = Table(path=str(folder / "t.parquet"), label="y", horizon=1)
    env.reset(seed=0)
    [(X, labels)] = env.blocks(N, N)
    trace = Trace.empty(N)
    make_agent("linucb", env.problem, seed=0).play_block(np.ascontiguousarray(X), labels, trace)
    return int(N - trace.correct.sum())


def test_an_agent_survives_three_sentinels_a_column_and_heavy_tails(tmp_path: Path) -> None:
    frame = table()
    y = (frame["normal"] / 4.0 + frame["whole"] / 50.0 > 0.5).to_numpy().astype(int)
    clean = mistakes(tmp_path, frame, y)
    assert clean < 60
    assert mistakes(tmp_path, with_values(frame, [9999.0], 3), y) < 1.4 * clean
    assert mistakes(tmp_path, frame.assign(normal=np.exp(5.0 * frame["normal"])), y) < 1.4 * clean


# ------------------------------------------------------------------------------------------------------------------- survey


def remarks(frame: pd.DataFrame) -> dict[str, tuple[str, str]]:
    found = survey(frame.assign(y=np.arange(len(frame)) % 2), "y")
    assert not found.faults
    return {note.name: (note.remark, note.option) for note in found.notes}


def test_the_survey_names_repeated_values_far_out() -> None:
    said = remarks(with_values(table(), [9999.0], 3))
    assert said["counts"] == (
        "0 to 3, and 3 rows at 9999, 3,300 times the others' range away: a code for missing?",
        "--na-values 9999",
    )
    assert {"normal", "whole", "even"} <= {name for name, (_, option) in said.items() if option == "--na-values 9999"}
    said = remarks(with_values(table(), [-999.0, 99999.0], 4))
    assert said["whole"] == (
        "0 to 49, and 8 rows at -999 and 99999, 20 times the others' range away: a code for missing?",
        "--na-values -999 --na-values 99999",
    )


def test_the_survey_calls_a_single_value_no_code_and_heavy_tails_nothing() -> None:
    said = remarks(with_values(table(), [1e200], 1))
    assert said["counts"] == ("0 to 3, and 1 row at 1e+200, 3.3e+199 times the others' range away", "")
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"tails": rng.standard_cauchy(N), "zipf": rng.zipf(2.0, N), "range": rng.normal(size=N)})
    assert all(option == "" and " at " not in remark for remark, option in remarks(frame).values())
