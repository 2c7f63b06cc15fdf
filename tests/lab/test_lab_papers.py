"""The specs of the papers' figures play, in small and on made-up data, and their notebooks read what they leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditlab.engine import Sweep, read_spec

LAB = Path(__file__).parents[2]
HORIZONS = (100, 1_000, 10_000, 31_623, 100_000)
LOWER_BOUND = [f"papers-001-figure-2-n{n}" for n in HORIZONS]
SHAPES = {"vehicle": (846, 18, 4), "segment": (2310, 19, 7), "shuttle": (43_500, 9, 7)}
"""Rows, columns and classes of the data sets."""
SMALL = ["rounds=40", "repetitions=2"]
# Two of the 49 points each: the grids' own length is tested on the plan.
FEW = [
    "checkpoints=[4, 40]",
    "forecaster.0.grid={ regularization = [0.0125], curvature = [0.05, 0.5] }",
    "forecaster.1.grid={ regularization = [0.125], step = [1.0, 10.0] }",
    "forecaster.2.grid={ norm_bound = [10.0], step = [0.8, 8.0] }",
    "forecaster.3.grid={ regularization = [0.0125], curvature = [0.05, 0.5] }",
]


def made_up(folder: Path, name: str) -> str:
    """Write a table with as many columns and classes as the data set has; return the override that puts it there."""
    _, d, K = SHAPES[name]
    rng = np.random.default_rng(0)
    y = np.arange(70) % K
    table = pd.DataFrame(rng.standard_normal((70, d)) + y[:, None], columns=[f"a{j}" for j in range(d)])
    path = folder / f"{name}.csv"
    table.assign(kind=[f"class {k}" for k in y]).to_csv(path, index=False)
    keys = (
        f"id = 'banditlab/Table-v0', path = '{path.as_posix()}', label = 'kind', scaling = 'minmax', normalize = false"
    )
    return f"environment=[{{ {keys} }}]"


@pytest.mark.parametrize("n", HORIZONS)
def test_the_ball_is_the_papers(n: int) -> None:
    """|theta| <= B = ln n for the row difference theta, lambda = 1 on theta for FTRL and 1/B^2 for AIOLI, 10 + 10 runs."""
    plan = Sweep(read_spec(LAB / "runs" / f"papers-001-figure-2-n{n}.toml")).plan
    assert plan.skipped == []
    assert len(plan.runs) == 4 * 20
    assert plan.balls() == pytest.approx([np.log(n) / 2], rel=1e-12)
    assert {run.rounds for run in plan.runs} == {n}
    assert {run.environment["settings"]["n"] for run in plan.runs} == {n}
    assert {run.environment["settings"]["chi"] for run in plan.runs} == {-1, 1}
    settings = {run.label: run.player["settings"] for run in plan.runs}
    assert settings["ftrl"]["regularization"] == 2.0
    run = next(run for run in plan.runs if run.label == "aioli")
    player = run.build_player(run.build_environment())
    assert player.margin_bound == pytest.approx(np.log(n))
    assert player.regularization == pytest.approx(1 / np.log(n) ** 2)


@pytest.mark.parametrize("name", SHAPES)
def test_the_grids_are_the_papers(name: str, tmp_path: Path) -> None:
    spec = read_spec(LAB / "runs" / f"papers-003-figure-1-{name}.toml", [made_up(tmp_path, name)])
    assert spec.rounds == SHAPES[name][0]
    assert spec.repetitions == (5 if name == "shuttle" else 20)
    plan = Sweep(spec).plan
    assert plan.skipped == []
    points = pd.Series([run.label for run in plan.runs if run.repetition == 0]).value_counts()
    assert dict(points) == {"gaf": 49, "folklore": 49, "ons": 49, "ogd": 49, "b-grid": 1}
    paper = np.array([0.01, 0.03, 0.1, 0.3, 1, 3, 10])
    grids = {block.id: block.grid for block in spec.forecaster}
    np.testing.assert_allclose(8 * np.array(grids["ons"]["regularization"]), paper)
    np.testing.assert_allclose(1 / np.array(grids["ons"]["step"]), paper[::-1])
    np.testing.assert_allclose(np.array(grids["ogd"]["step"]) / 8, paper)
    for label in ("gaf", "folklore"):
        np.testing.assert_allclose(8 * np.array(grids[label]["regularization"]), paper)
        np.testing.assert_allclose(2 * np.array(grids[label]["curvature"]), paper)
    assert all(run.player["settings"]["samples"] == 100 for run in plan.runs if run.label == "gaf")


def test_001_in_small(notebook: Callable[..., str], tmp_path: Path) -> None:
    """The two smallest horizons, 60 and 90 rounds each: the regret is that of the ball, worse sign reported."""
    for name, rounds in zip(LOWER_BOUND, (60, 90), strict=False):
        spec = read_spec(LAB / "runs" / f"{name}.toml", [f"rounds={rounds}", "repetitions=2"])
        assert not Sweep(spec).run(tmp_path / name).failures
    said = notebook("papers_001.py", tmp_path, results=tmp_path, figures=tmp_path)
    assert "left out, not run yet: papers-001-figure-2-n10000, " in said
    table = pd.read_csv(tmp_path / "results" / "papers-001-figure-2.csv")
    assert set(table["n"]) == {60, 90}
    assert (table["runs"] == 4).all()
    assert (table["regret"] >= table["other sign"]).all()
    assert (table["largest regret less certificate"] <= 1e-6).all()
    assert (table["regret"] <= table["bound"]).all()
    slopes = pd.read_csv(tmp_path / "results" / "papers-001-figure-1.csv").set_index(["rounds", "forecaster"])
    shown = slopes.filter(like="log-odds")
    proper = shown.xs("ftrl", level="forecaster")
    np.testing.assert_allclose(proper.max(axis=1), proper.min(axis=1), atol=0.02)
    for improper in ("aioli", "aggregating"):
        assert (shown.xs(improper, level="forecaster").diff(axis=1).iloc[:, 1:] < 0).all(axis=None)
    for figure in ("papers-001-figure-1.png", "papers-001-figure-2.png"):
        assert (tmp_path / "images" / figure).stat().st_size > 10_000


def test_003_in_small(notebook: Callable[..., str], tmp_path: Path) -> None:
    """Each data set's stand-in, 40 rounds: the best of each grid is what the stored losses say."""
    for name in SHAPES:
        folder = f"papers-003-figure-1-{name}"
        spec = read_spec(LAB / "runs" / f"{folder}.toml", [*SMALL, *FEW, made_up(tmp_path, name)])
        result = Sweep(spec).run(tmp_path / folder)
        assert not result.failures
        assert result.played == 2 * 9
    said = notebook("papers_003.py", tmp_path, results=tmp_path, figures=tmp_path)
    assert "left out, not run yet" not in said
    table = pd.read_csv(tmp_path / "results" / "papers-003-figure-1.csv").set_index(["data", "forecaster"])
    assert len(table) == 15
    assert (table["average loss .25"] <= table["average loss .5"]).all()
    assert (table["average loss .5"] <= table["average loss .75"]).all()
    runs = pd.concat([pd.read_parquet(path) for path in (tmp_path / "papers-003-figure-1-segment").rglob("*.parquet")])
    runs = runs[(runs["label"] == "gaf") & (runs["round"] == 40)].drop_duplicates("run_id")
    least = runs.groupby(runs["param.curvature"].astype(float))["log_loss"].mean().idxmin()
    assert f"curvature {least:g}*" in table.loc[("segment", "gaf"), "settings (* at the grid's edge)"]
    pairs = pd.read_csv(tmp_path / "results" / "papers-003-gaf-against-others.csv")
    assert len(pairs) == 3 * 2 * 2
    assert (tmp_path / "images" / "papers-003-figure-1.png").stat().st_size > 10_000
