"""Rows in their order: what a context may depend on, the order itself, blocks of rounds, and when an order is proposed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis import load, write_report
from banditlab.analysis.statistics import mean_interval, moving_blocks
from banditlab.analysis.summary import summary_rows
from banditlab.comparison import compare, prepared
from banditlab.engine import Sweep
from banditlab.envs._time import _autocorrelation, _p_value, _standard, depend_beyond_time, follow_time
from banditlab.envs.encoding import Encoder
from banditlab.envs.table import Table
from banditlab.errors import UsageError
from banditlab.policy import train


def mixed(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.standard_normal(n), "b": 1e3 + rng.standard_normal(n)})
    table["kind"] = rng.choice(["x", "y", "z"], n)
    table["label"] = rng.integers(2, size=n)
    table.loc[5::7, "a"] = np.nan
    table.loc[3::11, "kind"] = None
    table.loc[:1, ["a", "kind"]] = [[np.nan, None]] * 2  # gaps before anything is known
    return table


def contexts(folder: Path, table: pd.DataFrame, **settings: Any) -> Any:
    table.to_csv(folder / "t.csv", index=False)
    env = Table(path=str(folder / "t.csv"), label="label", order="file", horizon=2 * len(table), **settings)
    env.reset(seed=1)
    [(X, _)] = env.blocks(2 * len(table), 2 * len(table))
    assert np.array_equal(X[: len(X) // 2], X[len(X) // 2 :])
    return X[: len(table)], env


@pytest.mark.parametrize("missing", ["mean", "zero", "indicator"])
@pytest.mark.parametrize("normalize", [True, False])
def test_no_context_depends_on_a_later_row_to_the_last_bit(missing: str, normalize: bool, tmp_path: Path) -> None:
    table = mixed()
    X, env = contexts(tmp_path, table, missing=missing, normalize=normalize)
    for first, factor in ((50, 100.0), (30, -1e-9), (59, 1e304)):
        later = table.copy()
        later.loc[first:, ["a", "b"]] *= factor
        later.loc[first:, "kind"] = later.loc[first:, "kind"].map({"x": "y", "y": "z", "z": "x"})
        changed, _ = contexts(tmp_path, later, missing=missing, normalize=normalize)
        assert changed[:first].tobytes() == X[:first].tobytes()
        assert changed[first:].tobytes() != X[first:].tobytes()
    assert np.linalg.norm(X, axis=1).max() <= env.problem.radius
    assert env.scaling == "running"
    assert Table(**env.params()).scaling == "running"
    assert Encoder.from_bytes(env.encoder.to_bytes()).recipe == env.encoder.recipe


@pytest.mark.parametrize(
    ("missing", "a", "x", "y"),
    [
        ("mean", [0, 0, 1, 0.5, 0.25], [1, 1, 0, 0, 1 / 3], [0, 0, 1, 1, 2 / 3]),
        ("zero", [0, 0, 1, 0, 0.4], [1, 0, 0, 0, 0], [0, 0, 1, 1, 0]),
    ],
)
def test_a_running_scale_by_hand(missing: str, a: list[float], x: list[float], y: list[float], tmp_path: Path) -> None:
    kind = ["x", None, "y", "y", None]
    table = pd.DataFrame({"a": [3.0, 1.0, 5.0, None, 2.0], "kind": kind, "same": "s", "label": [0, 1, 0, 1, 0]})
    X, env = contexts(tmp_path, table, missing=missing, normalize=False)
    wanted = np.column_stack([a, x, y, np.ones(5), np.full(5, math.sqrt(3.0))])  # of three columns; as large a constant
    np.testing.assert_allclose(X * math.sqrt(2.0), wanted, rtol=2e-12)  # contexts stay 1e-12 below their bound
    row = {"a": 2.0, "kind": None, "same": "s"}
    np.testing.assert_allclose(
        env.encoder.encode(row), X[-1], rtol=1e-14
    )  # what comes later is encoded as the last row was


def test_rows_go_by_a_column_of_numbers_or_dates_which_is_no_feature(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    hours = rng.permutation(30) // 2  # each twice: those stay as they stand
    table = pd.DataFrame({"a": np.arange(30.0), "label": np.arange(30) % 2, "hour": hours})
    table["when"] = [f"2024-05-{1 + h // 3:02d}T{h % 3 + 8:02d}:00:00+0{h % 2}:00" for h in hours]
    table.to_csv(tmp_path / "t.csv", index=False)
    for column in ("hour", "when"):
        key = hours if column == "hour" else pd.to_datetime(table["when"], utc=True).to_numpy()
        env = Table(path=str(tmp_path / "t.csv"), label="label", order=f"time:{column}", drop_columns=["hour", "when"])
        assert env.problem.n_features == 2
        assert env._table.numbers.tolist() == np.argsort(key, kind="stable").tolist()
        assert env.row_order(30).tolist() == list(range(30)) if env.reset(seed=3) else False


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": "tim"}, "order (--order) must be shuffle, file or time:COLUMN, got 'tim'"),
        ({"order": "time:"}, "order (--order) must be shuffle, file or time:COLUMN, got 'time:'"),
        ({"order": "time:wen"}, "'wen', not counting the label; did you mean 'when'? (known: a, b, kind, when, at)"),
        ({"order": "time:label"}, "order (--order): there is no column 'label', not counting the label"),
        (
            {"order": "time:when"},
            "order (--order): column 'when' has 'soon' in row 4, counted from 0; every row needs a number or",
        ),
        ({"order": "time:a"}, "order (--order): column 'a' has 'nan' in row 0, counted from 0; every row needs a"),
        ({"order": "time:at"}, "order (--order): column 'at' has '-inf' in row 0, counted from 0; every row needs"),
        (
            {"order": "file", "scaling": "minmax"},
            "scaling (--scaling) 'minmax' and order (--order) 'file' cannot be combined",
        ),
        ({"scaling": "running"}, "scaling (--scaling) 'running' and order (--order) 'shuffle' cannot be combined"),
    ],
)
def test_an_order_that_is_none_is_one_line(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = mixed().assign(when=["2024-05-01"] * 4 + ["soon"] + ["2024-05-02"] * 55, at=-np.inf)
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(UsageError) as error:
        Table(path=str(tmp_path / "t.csv"), label="label", missing="mean", **settings)
    assert message in str(error.value)


def test_block_intervals_are_those_of_all_blocks_of_rounds() -> None:
    """20 rounds are 4 blocks of 5; 22 rounds are 4 blocks of 5 as well, and of all 22 blocks each counts 1/5."""
    rng = np.random.default_rng(0)
    for m in (20, 22):
        e = rng.standard_normal((3, m))
        e -= e.mean(axis=1, keepdims=True)
        sums = np.array([[np.roll(row, -start)[:5].sum() for start in range(m)] for row in e])
        blocks = moving_blocks(e)
        assert blocks.shape[:2] == (3, 4)
        np.testing.assert_allclose(np.square(blocks).sum(axis=(1, 2)), np.square(sums).sum(axis=1) / 5)
    alike = (
        np.repeat(rng.standard_normal((1, 20)), 5, axis=0).repeat(20, axis=1) / 400
    )  # 20 stretches of 20 equal rounds
    alike -= alike.mean()
    alone, together = (mean_interval(np.ones(5), rows=rows) for rows in (alike, moving_blocks(alike)))
    assert 3.5 < (together.high - together.low) / (alone.high - alone.low) < 5.5  # sqrt(20) = 4.5


def test_a_rule_that_flips_half_way_is_seen_in_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 3))
    y = np.argmax(X @ rng.standard_normal((3, 2)), axis=1)
    y[750:] = 1 - y[750:]
    table = pd.DataFrame(X, columns=list("abc")).assign(label=y)
    agents = {"agents": "fastcb,uniform", "repetitions": 3}
    shuffled = {row.label: row for row in summary_rows(compare(table, "label", out=tmp_path / "s", **agents))}
    results = compare(table, "label", out=tmp_path / "o", order="file", **agents)
    ordered = {row.label: row for row in summary_rows(results)}
    assert shuffled["fastcb"].rank == shuffled["uniform"].rank == "1="
    assert (ordered["fastcb"].rank, ordered["uniform"].rank) == ("1", "2")
    assert ordered["fastcb"].mistakes.mean < 0.35 < 0.45 < shuffled["fastcb"].mistakes.mean
    [facts] = results.data.values()
    assert facts["in_order"] == 1
    assert "1,500 rows in order, scaled by earlier rows, d = 4" in write_report(results).read_text()
    assert (
        "; contexts are scaled with all rows of the table (scaling = none)"
        in write_report(load(tmp_path / "s")).read_text()
    )
    policy = train(table, "label", order="file")
    assert policy.describe()["trained"]["mistakes"] < 0.35 * 1500


def series(seed: int, signal: bool) -> pd.DataFrame:
    """Five slow columns; three labels by slow scores of their own, or by the columns."""
    rng = np.random.default_rng(seed)
    slow = [rng.standard_normal(8)]
    for _ in range(299):
        slow.append(0.9 * slow[-1] + math.sqrt(1 - 0.81) * rng.standard_normal(8))
    X, scores = np.array(slow)[:, :5], np.array(slow)[:, 5:]
    if signal:
        scores = X @ rng.standard_normal((5, 3)) + 0.5 * rng.standard_normal((300, 3))
    return pd.DataFrame(X, columns=list("abcde")).assign(label=np.argmax(scores, axis=1))


@pytest.mark.parametrize("signal", [False, True])
def test_labels_that_only_time_connects_with_the_features_make_no_lead(signal: bool, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    series(0, signal).to_csv(file, index=False)
    made = prepared(file, "label", agents="stackcb,uniform", repetitions=3)
    assert made.sentences[0].startswith("neighbouring rows of the file are similar")
    assert (made.sentences[-1].startswith("the labels may depend on time only")) is not signal
    Sweep(made.spec.model_copy(update={"norm_bounds": []})).run(tmp_path / "out")
    rows = {row.label: row for row in summary_rows(load(tmp_path / "out"))}
    assert rows["stackcb"].mistakes.mean < 0.6 < 0.66 < rows["uniform"].mistakes.mean  # by heart, or by the rule
    assert (rows["stackcb"].rank, rows["uniform"].rank) == (("1", "2") if signal else ("?", "?"))
    assert math.isnan(rows["stackcb"].mistakes.low) is not signal


def test_independent_rows_sorted_or_not_are_in_no_order() -> None:
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((200, 4))
        y = np.argmax(X @ rng.standard_normal((4, 3)) + rng.standard_normal((200, 3)), axis=1)
        by_label = np.argsort(y, kind="stable")
        found += [follow_time(X, y), follow_time(X[by_label], y[by_label])]
    assert not any(found)


def test_up_to_two_files_sorted_by_label_are_in_no_order() -> None:
    for files in (2, 3):
        y = np.tile(np.repeat(np.arange(3), 20), files)
        assert follow_time(np.eye(3)[y], y) is (files == 3)
        assert not follow_time(np.zeros((len(y), 3)), y)


def test_the_parts_of_the_tests_by_hand() -> None:
    np.testing.assert_allclose(_standard(np.array([[1.0, 7.0], [5.0, 7.0]])), [[-1.0], [1.0]])
    assert _autocorrelation(np.array([[1.0], [2.0], [3.0], [5.0], [7.0]])) == 2 + 6 + 15 + 35 + 3 + 10 + 21 + 5 + 14
    y, rng = np.array([3.0, 1.0, -1.0, -1.0, -2.0]), np.random.default_rng(0)
    unmoved = sum(rng.integers(5) == 0 for _ in range(199))  # no other shift of the labels fits them as well
    assert _p_value(np.outer(y, y), y[:, None], 1) == (1 + unmoved) / 200


def test_labels_are_shown_to_depend_on_features_where_they_do() -> None:
    tables = [(signal, series(seed, signal)) for seed in range(6) for signal in (False, True)]
    found = [(s, depend_beyond_time(t.iloc[:, :5].to_numpy(), t["label"].to_numpy())) for s, t in tables]
    assert sum(shown for signal, shown in found if signal) >= 5
    assert sum(shown for signal, shown in found if not signal) <= 1


@pytest.mark.parametrize(("lag", "shown"), [(20, False), (21, True)])
def test_rows_that_recur_soon_do_not_show_that_labels_depend_on_features(lag: int, shown: bool) -> None:
    rng, at = np.random.default_rng(0), np.arange(40 * lag)
    again = (at // lag % 2 == 1) & (rng.random(len(at)) < 0.5)  # a row and its label again, after `lag` rows
    row = np.where(again, at - lag, at)
    assert depend_beyond_time(rng.standard_normal((len(at), 200))[row], rng.integers(3, size=len(at))[row]) is shown


def test_a_column_that_looks_like_time_is_proposed(tmp_path: Path) -> None:
    table = mixed().assign(label=np.arange(60) % 2, day=pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d"))
    table.to_csv(tmp_path / "t.csv", index=False)
    made = prepared(tmp_path / "t.csv", "label", missing="mean", roles={"day": "time"}, agents="uniform")
    assert made.sentences == ["column 'day' looks like a time: --order time:day sorts the rows by it"]
    made = prepared(tmp_path / "t.csv", "label", missing="mean", order="time:day", agents="uniform")
    assert made.sentences == []
    assert made.survey is not None
    assert [note.name for note in made.survey.notes] == ["a", "b", "kind"]
