"""`passes` in a spec: runs over data sets of several lengths, their checkpoints, comparators, and what is shown of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis import load, summary_rows
from banditlab.analysis.arena import arenas
from banditlab.analysis.board import board_data
from banditlab.analysis.summary import comparator_table
from banditlab.engine import Sweep
from banditlab.engine.plan import make_plan
from banditlab.engine.spec import make_spec
from banditlab.engine.spec_text import spec_to_toml
from banditlab.errors import UsageError


@pytest.fixture
def spec(tmp_path: Path) -> dict:
    """Return a spec of two tables, of 30 and 50 rows, and a synthetic stream."""
    for n in (30, 50):
        X = np.random.default_rng(n).standard_normal((n, 2))
        pd.DataFrame(X).assign(label=np.where(X[:, 0] > 0, "a", "b")).to_csv(tmp_path / f"{n}.csv", index=False)
    tables = [{"id": "banditlab/Table-v0", "path": str(tmp_path / f"{n}.csv"), "label": "label"} for n in (30, 50)]
    return {
        "rounds": 80,
        "passes": 2,
        "repetitions": 2,
        "norm_bounds": [1.0],
        "environment": [*tables, {"id": "banditlab/Logistic-v0"}],
        "agent": [{"id": "uniform"}],
    }


def test_passes_end_runs_over_data_sets_before_the_rounds(spec: dict) -> None:
    runs = make_plan(make_spec(spec, "test")).runs[::2]
    assert [run.rounds for run in runs] == [60, 80, 80]
    assert [run.checkpoints for run in runs] == [(1, 2, 5, 10, 20, 50, 60), *[(1, 2, 5, 10, 20, 50, 80)] * 2]
    assert runs[0].build_environment().unwrapped.problem.horizon == 60
    alone = make_plan(
        make_spec(spec | {"rounds": 60, "passes": None, "environment": spec["environment"][:1]}, "test")
    ).runs
    assert alone[0].run_id == runs[0].run_id


def test_labels_change_within_the_rounds_of_every_run(spec: dict) -> None:
    late = spec | {"change": {"labels": "swap", "at": 60}, "environment": spec["environment"][:1]}
    with pytest.raises(UsageError, match=r"change\.at must lie below rounds = 60"):
        make_plan(make_spec(late, "test"))


def test_each_environment_is_reported_at_its_own_last_round(spec: dict, tmp_path: Path) -> None:
    sweep = Sweep(make_spec(spec, "test"))
    assert sweep.run(tmp_path / "out").failures == []
    assert sweep.run(tmp_path / "out").played == 0
    results = load(tmp_path / "out")
    assert [arena.last_round for arena in arenas(results)] == [60, 80, 80]
    assert results.final.groupby("environment", sort=False)["round"].unique().explode().tolist() == [60, 80, 80]
    assert len(summary_rows(results)) >= 3
    for arena in arenas(results):
        assert (arena.final["round"] == arena.last_round).all()
        assert comparator_table(arena)["streams"].tolist() == [2]
    assert len(board_data([results])["columns"]["mean"]) == 3


def test_passes_and_families_stand_in_the_stored_spec(spec: dict) -> None:
    families = {"twins": ["30.csv", "5*.csv"]}
    made = make_spec(spec | {"families": families}, "test")
    written = tomllib.loads(spec_to_toml(made, {"python": "3", "packages": {}}))
    assert (written["passes"], written["families"]) == (2, families)
    again = make_spec({key: value for key, value in written.items() if key not in ("store", "versions")}, "test")
    assert [run.run_id for run in make_plan(again).runs] == [run.run_id for run in make_plan(made).runs]
    plain = spec_to_toml(make_spec(spec | {"passes": None}, "test"), {"python": "3", "packages": {}})
    assert "passes =" not in plain
    assert "families =" not in plain
