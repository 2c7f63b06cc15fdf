"""The study of decodings: its specs, its notebook in small, and what its committed tables say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from banditlab.engine import Sweep, read_spec

LAB = Path(__file__).parents[2]
SPECS = [f"decoding-b{B}" for B in (1, 3, 10)]
TABLES = LAB / "docs" / "results"


def table(name: str, folder: Path = TABLES) -> pd.DataFrame:
    return pd.read_csv(folder / f"decoding-{name}.csv")


@pytest.mark.parametrize("name", SPECS)
def test_every_agent_is_told_the_ball_and_meets_the_theory_studys_streams(name: str) -> None:
    B = float(name.rpartition("b")[2])
    plan = Sweep(read_spec(LAB / "runs" / f"{name}.toml", ["rounds=2000"])).plan
    theory = Sweep(read_spec(LAB / "runs" / f"theory-b{B:g}.toml", ["rounds=2000"])).plan
    assert plan.balls() == [B]
    assert set(plan.streams()) == set(theory.streams())
    for run in plan.runs:
        assert run.written.get("gamma", "theory") in ("theory", "anytime")
    drawn = {
        r.run_id for r in plan.runs if r.player["settings"].get("decoding") == "sample" and "gamma" not in r.written
    }
    assert drawn == {r.run_id for r in theory.runs if r.player["id"] == "exploration"}  # the very runs
    text = (LAB / "runs" / f"{name}.toml").read_text(encoding="utf-8")
    assert re.search(r"^# [\d.]+ core-hours", text, re.MULTILINE)


def test_no_run_is_above_a_new_bound_and_a_searched_setting_is_near_one() -> None:
    checks = table("checks").set_index("agent")
    assert checks.loc["all", "runs"] >= 1000
    assert (checks["over bound"] == 0).all()
    assert checks.loc["all", "runs"] == checks["runs"].drop("all").sum()
    searched = table("searched")
    assert 0.5 < searched["beyond / bound"].max() <= 1.0
    assert 0.9 < searched["mistakes / promise"].max() <= 1.0
    cells = table("mistakes")
    told = cells[cells["bound"].notna()]
    assert (told["beyond loss"] <= told["bound"]).all()


def test_the_reduction_errs_less_on_every_cell_and_speaks_earlier() -> None:
    pairs = table("paired")
    own = pairs[
        (pairs["plain"] == "exploration") & (pairs["decoded"] == "exploration half-log") & (pairs["T"] == 100_000)
    ]
    assert len(own) == 6
    assert (own["fewer"] - 4 * own["error"] > 0).all()
    assert (own["ahead"] == own["streams"]).all()
    speaks = table("thresholds").set_index(["agent", "K", "B"])["bound below T from"]
    assert speaks["exploration", 10, 10] == 28_004  # as in theory-thresholds.csv
    for K in (3, 10):
        for B in (1, 3, 10):
            for agent in ("exploration", "exploration-anytime", "obama-lite", "rdue", "gaptron"):
                assert speaks[f"{agent} half-log", K, B] < speaks[agent, K, B]


@pytest.mark.slow
def test_the_notebook_reads_what_the_specs_play(notebook: Callable[..., str], tmp_path: Path) -> None:
    for T in (100, 200, 400):
        settings = [f"rounds={T}", "repetitions=2", "environment.0.grid={ n_classes = [3] }"]
        assert (
            not Sweep(read_spec(LAB / "runs" / "decoding-b1.toml", settings))
            .run(tmp_path / f"decoding-b1-t{T}")
            .failures
        )
    notebook("decoding.py", tmp_path, results=tmp_path, figures=tmp_path)
    cells = table("mistakes", tmp_path / "results")
    assert set(cells["T"]) == {100, 200, 400}
    assert (cells["runs"] == 2).all()
    half_log = cells[cells["agent"] == "exploration half-log"].iloc[0]
    assert half_log["unit"] == "0.5 bits"
    assert (tmp_path / "images" / "decoding.png").stat().st_size > 10_000
