"""Where labels change, a report shows mistakes beside models that switch as often: against the stream, dense and sparse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis import load, write_report
from banditlab.comparators import best_with_switches
from banditlab.engine import Sweep, make_spec

T, B = 120, 5.0


def report(out: Path, **more: Any) -> tuple[Sweep, str]:
    data = {
        "rounds": T,
        "repetitions": 2,
        "norm_bounds": [1.0, B],
        "checkpoints": [50, T],
        "environment": [{"id": "banditlab/Logistic-v0", "n_features": 3, "n_classes": 3, "norm_bound": B}],
        "agent": [{"id": "banditron"}, {"id": "uniform"}],
        **more,
    }
    sweep = Sweep(make_spec(data, "spec"))
    sweep.run(out, jobs=1)
    return sweep, write_report(out).read_text(encoding="utf-8")


@pytest.mark.parametrize("over", [0, 10])
def test_mistakes_are_shown_beside_models_that_switch_where_labels_change(tmp_path: Path, over: int) -> None:
    sweep, page = report(tmp_path, change={"labels": "rotate", "at": [40, 115], "over": over})
    assert "Against models that switch" in page
    assert "The best sequence of models with at most 2 switches" in page
    losses, one = [], []
    for run in {run.stream_id: run for run in sweep.plan.runs}.values():
        env = run.build_environment()
        env.reset(seed=run.environment_seed())
        [(X, y)] = env.unwrapped.blocks(T, T)
        at = [40, 50, 115] if over else [40, 115]
        found = best_with_switches(X, y, 3, B, 2, at=at)
        losses.append(found[2].loss)
        one.append(found[0].loss)
    table = pd.read_csv(tmp_path / "tables" / "switching.csv").set_index("label")
    assert list(table.index) == ["banditron", "uniform"]
    final = load(tmp_path).runs.query("round == @T").groupby("label")["expected_mistakes"].mean()
    np.testing.assert_allclose(table["mistakes"], final[table.index], rtol=1e-12)
    np.testing.assert_allclose(table["beyond_switching"], final[table.index] - np.mean(losses), atol=1e-6)
    np.testing.assert_allclose(table["beyond_one"], final[table.index] - np.mean(one), atol=1e-3)
    assert np.mean(losses) < np.mean(one) - 20  # labels did move
    assert set(table["switches"]) == {2}
    rows = pd.read_parquet(tmp_path / "comparators.parquet")
    assert rows.loc[rows["round"] == T, "switching_loss_nats"].notna().all()
    assert rows.loc[rows["round"] < T, "switches"].isna().all()


def test_sparse_contexts_are_compared_too(tmp_path: Path) -> None:
    environment = {"id": "banditlab/Sparse-v0", "n_features": 50, "n_classes": 3, "nonzeros": 5}
    sweep, page = report(tmp_path, environment=[environment], change={"labels": "swap", "at": 60})
    assert sweep.plan.runs[0].build_environment().unwrapped.sparse
    assert "The best sequence of models with at most 1 switch, where a change begins or ends" in page


def test_nothing_is_shown_where_labels_stay(tmp_path: Path) -> None:
    _, page = report(tmp_path)
    assert "Against models that switch" not in page
    assert not (tmp_path / "tables" / "switching.csv").exists()
