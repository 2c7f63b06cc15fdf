"""A table whose columns say which actions are right: bits, scores, and whatever is wrong with them in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab.envs import Table
from banditlab.errors import UsageError

ARMS = ["gpt4", "mixtral", "llama"]
COSTS = ["usd_gpt4", "usd_mixtral", "usd_llama"]


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    right = rng.integers(2, size=(40, 3))
    right[3], right[4] = 0, 1
    return pd.DataFrame(right, columns=ARMS).assign(
        length=rng.random(40), source=list("abcd") * 10, user=np.arange(40) // 4, usd_gpt4=rng.random(40)
    )


@pytest.fixture
def table(tmp_path: Any, frame: pd.DataFrame) -> Any:
    def make(changed: pd.DataFrame | None = None, name: str = "t.csv", **settings: Any) -> Table:
        path = tmp_path / name
        given = frame if changed is None else changed
        given.to_parquet(path, index=False) if name.endswith("parquet") else given.to_csv(path, index=False)
        return Table(path=str(path), **{"arms": ARMS, "horizon": 40} | settings)

    return make


def shown(env: Table, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    env.reset(seed=seed)
    X, right = zip(*env.blocks(env.horizon, 16), strict=True)
    return np.concatenate(X), np.concatenate(right)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("kind", ["int", "float", "bool"])
def test_zeros_and_ones_are_the_bits_of_the_actions(table: Any, frame: pd.DataFrame, name: str, kind: str) -> None:
    env = table(frame.astype(dict.fromkeys(ARMS, kind)), name)
    assert (env.several_right, env.labelled, env.classes, env.problem.n_classes) == (True, False, ARMS, 3)
    assert env.problem.n_features == 8  # length, four sources, user, usd_gpt4, the constant
    _, right = shown(env)
    order = env.row_order(40)
    assert right.dtype == np.bool_
    np.testing.assert_array_equal(right, frame[ARMS].to_numpy()[order] == 1)
    np.testing.assert_array_equal(env.class_shares, frame[ARMS].mean())
    again = table(order="file")
    np.testing.assert_array_equal(shown(again)[1], frame[ARMS].to_numpy() == 1)
    assert env.row_bytes == 8 * 8 + 3


def test_features_are_those_of_the_same_table_with_a_label(table: Any, frame: pd.DataFrame) -> None:
    labelled = frame.drop(columns=ARMS).assign(label=frame["gpt4"])
    X, _ = shown(table())
    np.testing.assert_array_equal(X, shown(table(labelled, "l.csv", arms=None, label="label"))[0])


def test_scores_are_right_from_the_threshold_on(table: Any, frame: pd.DataFrame) -> None:
    scores = frame.assign(gpt4=np.linspace(0.0, 1.0, 40), mixtral=0.8, llama=0.7999)
    env = table(scores, right_above=0.8, order="file")
    _, right = shown(env)
    np.testing.assert_array_equal(right, scores[ARMS].to_numpy() >= 0.8)
    assert right.mean(axis=0).tolist() == [0.2, 1.0, 0.0]
    assert env.params()["right_above"] == 0.8


def costly(frame: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    scores = dict(zip(ARMS, rng.random((3, len(frame))), strict=True))
    return frame.assign(**scores, **dict(zip(COSTS, rng.random((3, len(frame))) / 10.0, strict=True)))


@pytest.mark.parametrize("worth", [0.0, 3.0])
def test_costs_are_no_features_and_count_where_they_are_worth_something(
    table: Any, frame: pd.DataFrame, worth: float
) -> None:
    given = costly(frame)
    given.loc[0, "usd_llama"] = 0.0
    env = table(given, right_above=0.6, costs=COSTS, worth=worth, order="file")
    net = given[ARMS].to_numpy() - worth * given[COSTS].to_numpy()
    np.testing.assert_array_equal(shown(env)[1], net >= 0.6)
    np.testing.assert_array_equal(env.action_costs, given[COSTS])
    assert env.problem.n_features == 7  # length, four sources, user, the constant
    assert (env.params()["costs"], env.params()["worth"]) == (COSTS, worth)


def test_rows_without_a_cost_are_left_out_with_their_bits(table: Any, frame: pd.DataFrame) -> None:
    given = costly(frame)
    given.loc[7, "usd_llama"], given.loc[9, "length"] = np.nan, np.nan
    with pytest.raises(UsageError, match="costs: column 'usd_llama' has 1 missing entries"):
        table(given, right_above=0.6, costs=COSTS)
    env = table(given, right_above=0.6, costs=COSTS, missing="drop_rows", order="time:user", horizon=38)
    kept = given.drop([7, 9])
    np.testing.assert_array_equal(env.action_costs, kept[COSTS])
    np.testing.assert_array_equal(shown(env)[1], kept[ARMS] >= 0.6)


@pytest.mark.parametrize("kind", ["binary", "source"])
def test_the_features_of_a_column_are_named_by_per(table: Any, frame: pd.DataFrame, kind: str) -> None:
    env = table(frame.assign(binary=list("ab") * 20), per=kind, order="file")
    first, last = env.per_features
    names = env.encoder.feature_names[first : last + 1]
    assert names == tuple(f"{kind}={value}" for value in ("ab" if kind == "binary" else "abcd"))
    assert table(order="file").per_features is None
    assert Table.identity({"path": env.path, "arms": ARMS, "per": kind}) == Table.identity(
        {"path": env.path, "arms": ARMS}
    )


def test_order_groups_and_columns_left_out_are_as_for_labels(table: Any, frame: pd.DataFrame) -> None:
    env = table(group="user", order="time:usd_gpt4", drop_columns=["source"], horizon=40)
    _, right = shown(env)
    by_cost = frame.sort_values("usd_gpt4", kind="stable")
    np.testing.assert_array_equal(right, by_cost[ARMS].to_numpy() == 1)
    np.testing.assert_array_equal(env.row_units, pd.factorize(by_cost["user"])[0])
    assert env.problem.n_features == 2


def test_rows_with_gaps_are_left_out_with_their_bits(table: Any, frame: pd.DataFrame) -> None:
    gaps = frame.astype({"llama": "float"})
    gaps.loc[5, "llama"], gaps.loc[9, "length"] = np.nan, np.nan
    env = table(gaps, missing="drop_rows", order="file", horizon=38)
    np.testing.assert_array_equal(shown(env)[1], frame[ARMS].drop([5, 9]).to_numpy() == 1)
    truth = frame.astype(dict.fromkeys(ARMS, "object"))
    truth[ARMS] = truth[ARMS].map(bool).astype("object")
    truth.loc[5, "llama"] = None
    env = table(truth, missing="drop_rows", order="file", horizon=39)
    np.testing.assert_array_equal(shown(env)[1], frame[ARMS].drop(5).to_numpy() == 1)


def test_an_identity_names_arms_only_where_there_are_some(table: Any) -> None:
    path = table().path
    plain = Table.identity({"path": path, "label": "source"})
    unset = {"arms": None, "right_above": None, "costs": None, "worth": 0.0}
    assert Table.identity({"path": path, "label": "source", **unset}) == plain
    assert Table.identity({"path": path, "label": "source", "arms": []}) == plain
    one, other = (Table.identity({"path": path, "arms": ARMS, "right_above": above}) for above in (None, 0.5))
    assert (one["arms"], "right_above" in one, other["right_above"]) == (ARMS, False, 0.5)


def test_rows_that_follow_time_are_found_by_their_bits(table: Any) -> None:
    at = np.arange(400) / 40.0
    wave = pd.DataFrame({"gpt4": np.sin(at) > 0, "mixtral": np.cos(at) > 0, "x": at, "y": np.sin(2.0 * at)})
    mixed = wave.sample(frac=1.0, random_state=0)
    found = [table(given, f"{k}.csv", arms=["gpt4", "mixtral"]).looks_ordered for k, given in enumerate((wave, mixed))]
    assert found == [True, False]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arms": ["gpt4"]}, "arms has one column only, 'gpt4'; at least 2 are needed"),
        ({"arms": ["gpt4", "llama", "gpt4"]}, "arms and costs name the column 'gpt4' twice"),
        ({"arms": ["gpt4", "mixtrall"]}, "arms: there is no column 'mixtrall'; did you mean 'mixtral'?"),
        ({"label": "source"}, "arms and label cannot be combined, got label 'source'; leave one out"),
        ({"arms": None, "label": "source", "right_above": 0.5}, "right_above (--right-above) needs arms (--arms)"),
        ({"right_above": float("nan")}, "right_above must be a finite number, got nan"),
        ({"right_above": "high"}, "right_above must be a finite number, got 'high'"),
        ({"arms": ["gpt4", "length"]}, "arms: column 'length' has '0.40"),
        (
            {"arms": ["gpt4", "source"]},
            "arms: column 'source' has 'a' in row 0, counted from 0; it must be 0 or 1; for",
        ),
        (
            {"arms": ["gpt4", "source"], "right_above": 0.5},
            "has 'a' in row 0, counted from 0; it must be a finite number",
        ),
        (
            {"costs": ["usd_gpt4"]},
            "costs (--costs) must name one column per arm, in the order of arms: expected 3, got 1",
        ),
        ({"costs": ["usd_gpt4", "length", "usd_gpt"]}, "costs: there is no column 'usd_gpt'; did you mean 'usd_gpt4'?"),
        ({"costs": ["usd_gpt4", "length", "gpt4"]}, "arms and costs name the column 'gpt4' twice"),
        (
            {"costs": ["usd_gpt4", "length", "source"]},
            "costs: column 'source' has 'a' in row 0, counted from 0; it must be",
        ),
        (
            {"arms": None, "label": "source", "costs": ["usd_gpt4"]},
            "must name one column per arm, in the order of arms: expected 0, got 1",
        ),
        ({"worth": 2.0}, "worth (--worth) needs right_above (--right-above) and costs (--costs)"),
        ({"worth": 2.0, "right_above": 0.5}, "worth (--worth) needs right_above (--right-above) and costs (--costs)"),
        (
            {"right_above": 0.5, "costs": ["usd_gpt4", "length", "user"], "worth": -1.0},
            "worth (--worth) must be a number",
        ),
        (
            {"right_above": 0.5, "costs": ["usd_gpt4", "length", "user"], "worth": "much"},
            "worth (--worth) must be a number above 0, got 'much'",
        ),
        ({"per": "user"}, "per (--per) must be a nominal feature of a table with arms, got 'user'"),
        (
            {"arms": None, "label": "user", "per": "source"},
            "per (--per) must be a nominal feature of a table with arms",
        ),
        ({"format": "libsvm"}, "a LIBSVM file has its own labels; leave out arms"),
        ({"order": "time:gpt4"}, "there is no column 'gpt4', not counting the arms"),
        ({"arms": [], "label": ""}, "set label (--label) to the column to predict"),
    ],
)
def test_a_fault_is_one_line(table: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        table(**settings)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("above", [None, 0.5])
@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "missing entries (the first in row 7"), (np.inf, "has 'inf' in row 7")]
)
def test_cells_that_are_no_bits_name_their_row(
    table: Any, frame: pd.DataFrame, value: float, message: str, above: Any
) -> None:
    frame = frame.astype({"llama": "float"})
    frame.loc[7, "llama"] = value
    with pytest.raises(UsageError, match=r"arms: column 'llama'") as error:
        table(frame, "t.parquet", right_above=above)
    assert message in str(error.value)
