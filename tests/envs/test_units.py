"""Rows that belong together: what counts as a copy, how a pass shows groups, and which of their rows are ranked."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab.agents.banditron import Banditron
from banditlab.comparison import compare, prepared
from banditlab.engine.runner import play
from banditlab.envs._units import GROUPED, _gaps, rows_alike
from banditlab.envs.table import COPIES, Table
from banditlab.errors import UsageError
from banditlab.policy import train


def permuted(X: Any) -> Any:
    rng = np.random.default_rng(1)
    return np.column_stack([rng.permutation(column) for column in X.T])


def found(X: Any) -> Any:
    return rows_alike(X, permuted(X), 3)


@pytest.mark.parametrize(
    ("distinct", "copies", "noise"),
    [(60, 6, 0.0), (20, 15, 0.0), (20, 15, 0.12), (60, [1, 4, 5, 6] * 15, 0.05), (100, 2, 0.03)],
)
def test_copies_and_near_copies_are_found(distinct: int, copies: Any, noise: float) -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((distinct, 6)), copies, axis=0)
    order = rng.permutation(len(X))
    units = found((X + noise * rng.standard_normal(X.shape))[order])
    assert units is not None
    of = np.repeat(np.arange(distinct), copies)[order]
    assert len(set(zip(of, units))) == distinct  # no group is in two units
    assert len(set(units)) >= (0.8 if noise else 1.0) * distinct


def test_rows_that_repeat_by_chance_and_smooth_ones_are_no_copies() -> None:
    rng = np.random.default_rng(0)
    t = rng.uniform(size=(300, 1))
    smooth = {
        "normal": rng.standard_normal((300, 5)),
        "one column": t,
        "a curve": np.hstack([np.sin(k * t) for k in range(1, 6)]),
        "a random walk": np.cumsum(rng.standard_normal((300, 5)), axis=0),
        "truth values": rng.integers(2, size=(300, 6)).astype(float),
        "a grid": np.array(list(product([0.0, 0.5, 1.0], repeat=5))),
        "classes apart": 9.0 * np.eye(4)[rng.integers(4, size=300)] + rng.standard_normal((300, 4)),
        "one row many times": np.zeros((300, 2)),
        "two rows many times": np.eye(2)[rng.integers(2, size=300)],
        "few copies": np.repeat(rng.standard_normal((300, 5)), [2] * 15 + [1] * 285, axis=0),
    }
    assert {name: found(X) is None for name, X in smooth.items()} == dict.fromkeys(smooth, True)


def test_classes_that_are_tight_are_no_copies() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((12, 5)), 20, axis=0) + 0.01 * rng.standard_normal((240, 5))
    assert rows_alike(X, permuted(X), 7) is None
    assert rows_alike(X, permuted(X), 6).max() == 11


@pytest.mark.parametrize(
    ("distinct", "repeats", "by_chance", "grouped"),
    [(40, 20, 10, False), (40, 20, 9, True), (90, 10, 0, False), (89, 11, 0, True)],
)
def test_how_many_repeats_make_groups(distinct: int, repeats: int, by_chance: int, grouped: bool) -> None:
    """More than twice as many as by chance, and more than the root of the number of rows; -0 is 0."""
    rng, n = np.random.default_rng(0), distinct + repeats
    X, chance = 1e-20 * rng.standard_normal((distinct, 5)), rng.standard_normal((n - by_chance, 5))
    X[:, 0] = 0.0
    units = rows_alike(np.vstack([X, X[:repeats] * [-1, 1, 1, 1, 1]]), np.resize(chance, (n, 5)), 3)
    assert (units is not None) is grouped


def test_a_ratio_of_two_distances_that_is_the_least_counts() -> None:
    X = np.array([[0.0], [4.0], [-5.0]])  # 5 / 4 is the least ratio in groups
    assert _gaps(X, X[:1], GROUPED)[0].tolist() == [[np.log(1.25)]]


@pytest.fixture
def noise() -> pd.DataFrame:
    """Sixty random rows with random labels, each six times, and the row that each one is."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((60, 3)), columns=list("abc"))
    table["label"] = rng.integers(3, size=60)
    table["who"] = [f"p{i}" for i in range(60)]
    return table.loc[np.repeat(np.arange(60), 6)].sample(frac=1, random_state=0).reset_index(drop=True)


@pytest.fixture
def path(noise: pd.DataFrame, tmp_path: Path) -> str:
    noise.to_csv(tmp_path / "noise.csv", index=False)
    return str(tmp_path / "noise.csv")


@pytest.mark.parametrize("settings", [{"group": "who"}, {"group": COPIES, "drop_columns": ["who"]}])
def test_a_pass_shows_groups_one_after_another_and_counts_the_first_row_of_each(
    path: str, noise: pd.DataFrame, settings: dict[str, Any]
) -> None:
    env = Table(path=path, label="label", horizon=720, **settings)
    assert env.problem.n_features == 4  # the group is no feature
    player = Banditron(env.problem, np.random.default_rng(0), gamma=0.2)
    played = play(env, player, seed=1, checkpoints=[100], keep_trace=True)
    shown = env.row_units[env.row_order(720)]
    assert sorted(env.row_order(360)) == list(range(360))
    assert shown[:24:6].tolist() == [52, 20, 9, 30]  # as this seed has drawn them ever since
    assert (np.diff(shown[:360]) != 0).sum() == 59
    assert pd.Series(shown[:360]).groupby(noise["who"].to_numpy()[env.row_order(360)]).nunique().eq(1).all()
    assert played.first_sight_rounds == [17, 60]
    assert played.trace is not None
    assert played.row_losses is not None
    first = np.arange(0, 360, 6)
    assert played.first_sight_mistakes[-1] == np.count_nonzero(~played.trace.correct[first])
    assert played.first_sight_expected_mistakes[-1] == pytest.approx((1.0 - played.trace.p_true)[first].sum())
    sums, counts = np.frombuffer(played.row_losses, "<f4").reshape(2, -1)
    assert counts.tolist() == [1.0] * 60
    np.testing.assert_allclose(sums[shown[first]], (1.0 - played.trace.p_true)[first], rtol=1e-6)


def test_what_is_learnt_by_heart_is_no_lead(path: str, tmp_path: Path) -> None:
    """`stackcb` makes a third of the mistakes of uniform on rows it has seen, and none fewer on the first of each."""
    settings = {"drop_columns": ["who"], "agents": "stackcb,uniform", "repetitions": 3}
    made = prepared(Path(path), "label", **settings)
    assert made.sentences[0].startswith(
        "300 of 360 rows are copies or near copies of others; the ranking uses the first row of each set of copies"
    )
    from banditlab.analysis.summary import summary_rows

    rows = {row.label: row for row in summary_rows(compare(path, "label", out=tmp_path / "out", **settings))}
    assert rows["stackcb"].rank == rows["uniform"].rank == "1="
    assert rows["stackcb"].repeated < 0.3 < 0.6 < rows["stackcb"].mistakes.mean
    grouped = prepared(Path(path), "label", group="who", agents="stackcb,uniform")
    assert not any("copies" in sentence for sentence in grouped.sentences)
    assert all(note.name != "who" for note in grouped.survey.notes)


def test_without_copies_nothing_is_said_and_nothing_changes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((120, 3)), columns=list("abc")).assign(label=rng.integers(3, size=120))
    table.to_csv(tmp_path / "t.csv", index=False)
    made = prepared(tmp_path / "t.csv", "label")
    assert made.sentences == []
    assert "group" not in next(made.spec.environment[0].written())
    identity = Table.identity({"path": str(tmp_path / "t.csv"), "label": "label", "group": ""})
    assert "group" not in identity


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("wo", r"group \(--group\): there is no column 'wo', not counting the label; did you mean 'who'\?"),
        ("label", r"group \(--group\): there is no column 'label', not counting the label"),
        ("part", r"group \(--group\): column 'part' has 'nan' in row 7, counted from 0; every row needs a value"),
    ],
)
def test_a_group_that_is_none_is_one_line(noise: pd.DataFrame, tmp_path: Path, group: str, message: str) -> None:
    noise["part"] = np.where(noise.index == 7, np.nan, 1.0)
    noise.to_csv(tmp_path / "t.csv", index=False)
    for call in (prepared, train):
        with pytest.raises(UsageError, match=message):
            call(tmp_path / "t.csv", "label", group=group, missing="mean")
