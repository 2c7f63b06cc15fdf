"""Label agents and diagnostics in a sweep: how they are stored, and that tables with and without them join."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from banditlab.agents.exploration import Exploration
from banditlab.agents.uniform import Uniform
from banditlab.engine import play
from banditlab.engine.work import run_rows
from banditlab.envs.logistic import Logistic
from banditlab.forecasters.ogd import OGD
from banditlab.results.files import concatenate

LOGISTIC = "banditlab/Logistic-v0"
REFERENCES = [
    {"id": "perceptron"},
    {"id": "sampled", "forecaster": "ogd", "decoding": "sample", "grid": {"norm_bound": [1.0, 3.0]}},
]


def test_references_are_stored_as_such(small, tmp_path) -> None:
    result = small(agent=[{"id": "uniform"}, *REFERENCES], forecaster=[{"id": "ogd"}]).run(tmp_path / "out")
    assert result.failures == []
    table = pd.read_parquet(tmp_path / "out" / "results.parquet")
    kinds = table.groupby("label")["kind"].unique().map(list).to_dict()
    assert kinds == {"uniform": ["bit"], "perceptron": ["reference"], "sampled(ogd)": ["reference"], "ogd": ["label"]}
    last = table[(table["round"] == 300) & (table["label"] == "sampled(ogd)") & (table["repetition"] == 0)]
    alone = table[(table["round"] == 300) & (table["label"] == "ogd") & (table["repetition"] == 0)]
    one = last[last["param.norm_bound"] == float(alone["param.norm_bound"].iloc[0])]
    # the same forecasts on the same stream, sampled instead of read
    assert one["expected_mistakes"].iloc[0] == pytest.approx(alone["expected_mistakes"].iloc[0], rel=1e-12)
    assert math.isnan(one["explored"].iloc[0])


def test_references_on_an_adaptive_environment(small, tmp_path) -> None:
    environment = [{"id": "banditlab/Adversary-v0"}]
    result = small(environment=environment, agent=REFERENCES, rounds=60).run(tmp_path / "out")
    assert result.failures == []
    table = pd.read_parquet(tmp_path / "out" / "results.parquet")
    assert set(table["kind"]) == {"reference"}
    assert table["run_id"].nunique() == table["stream_id"].nunique() == 6  # a stream of its own for every run


@pytest.mark.slow
def test_the_form_that_auto_stood_for_is_stored_beside_the_word(small, tmp_path) -> None:
    """2 x 1449^2 is beyond the limit; the run's name has the word that was written, or the default."""
    environment = [{"id": LOGISTIC, "n_features": d, "n_classes": 2} for d in (8, 1449)]
    agents = [{"id": "linucb"}, {"id": "lints", "second_order": "auto"}]
    result = small(environment=environment, agent=agents, rounds=30, repetitions=1, norm_bounds=[]).run(
        tmp_path / "out"
    )
    assert result.failures == []
    table = pd.read_parquet(tmp_path / "out" / "results.parquet")
    last = table[table["round"] == 30].sort_values(["label", "environment"])
    assert list(last["param.second_order"]) == ["sketch", "full"] * 2
    assert list(last["setting.second_order"].fillna("")) == ["auto", "auto", "", ""]
    assert list(last["diagnostic.sketch_shrinks"].isna()) == [False, True] * 2


class Counting(Uniform):
    """Counts its rounds from the second checkpoint on."""

    def diagnostics(self):
        self.asked = getattr(self, "asked", 0) + 1
        late = {"late": np.float32(0.5)} if self.asked > 1 else {}
        return {"asked": self.asked, "flag": True, "word": "no number", **late}


def test_diagnostics_are_noted_at_checkpoints() -> None:
    env = Logistic(horizon=50)
    played = play(env, Counting(env.unwrapped.problem, np.random.default_rng(0)), seed=1, checkpoints=[10, 20])
    found = played.diagnostics
    assert set(found) == {"asked", "flag", "late"}
    assert found["asked"] == [1.0, 2.0, 3.0]
    assert found["flag"] == [1.0] * 3
    assert math.isnan(found["late"][0])
    assert found["late"][1:] == [0.5, 0.5]


def test_the_reduction_passes_its_forecaster_s_diagnostics_on(monkeypatch) -> None:
    monkeypatch.setattr(OGD, "diagnostics", lambda self: {"step": self.step})
    agent = Exploration(Logistic(horizon=50).unwrapped.problem, np.random.default_rng(0), forecaster="ogd", gamma=0.1)
    assert agent.diagnostics() == {"step": agent.inner.step}


@pytest.mark.slow
def test_diagnostics_are_float_columns_and_tables_without_them_join(small, tmp_path) -> None:
    sweep = small(agent=[{"id": "uniform"}, {"id": "newtron", "gamma": 0.1, "norm_bound": 1.0}])
    assert sweep.run(tmp_path / "out").failures == []
    table = pd.read_parquet(tmp_path / "out" / "results.parquet")
    solves = table.pivot_table(index="round", columns="label", values="diagnostic.solves", dropna=False)
    assert solves["newtron"].tolist() == [1, 2, 5, 10, 20, 50, 100, 200, 300]
    assert table.loc[table["label"] == "uniform", "diagnostic.solves"].isna().all()
    assert table["diagnostic.solves"].dtype == np.float64
    without = pa.table({"run_id": ["a"], "round": pa.array([1], pa.int64()), "param.gamma": [1 / 3]})
    one = without.append_column("diagnostic.hits", pa.array([2.0]))
    joined = concatenate([without, one])
    assert joined["diagnostic.hits"].to_pylist() == [None, 2.0]


def test_a_number_beside_a_word_keeps_its_digits() -> None:
    number = pa.table({"run_id": ["a", "b"], "param.norm_bound": [math.sqrt(0.5), 3.0]})
    word = pa.table({"run_id": ["c"], "param.norm_bound": ["auto"]})
    assert concatenate([number, word])["param.norm_bound"].to_pylist() == ["0.7071067811865476", "3", "auto"]


def test_rows_keep_the_order_of_the_columns(small) -> None:
    [run, *_] = small(agent=[{"id": "perceptron"}]).plan.runs
    env = run.build_environment()
    player = run.build_player(env)
    rows = run_rows(run, player, play(env, player, seed=1, checkpoints=run.checkpoints))
    assert list(rows)[:4] == ["run_id", "stream_id", "kind", "environment"]
    assert rows["kind"] == ["reference"] * len(run.checkpoints)
