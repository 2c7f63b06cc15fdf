"""The theory study plays in small, and its notebook's bounds, thresholds and differences are the theorems' and the stored."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis.pages import page_parts
from banditlab.bounds.gaptron import gaptron_fixed, gaptron_gamma, gaptron_step
from banditlab.comparators import best_in_ball, collapse
from banditlab.engine import Sweep, read_spec

LAB = Path(__file__).parents[2]
SPECS = [f"theory-{part}b{B}" for part in ("", "second-order-") for B in (1, 3, 10)]
HORIZONS = (100, 200, 400)


@pytest.mark.parametrize("name", SPECS)
def test_every_agent_is_told_the_ball_and_the_horizon(name: str) -> None:
    B = float(name.rpartition("b")[2])
    plan = Sweep(read_spec(LAB / "runs" / f"{name}.toml", ["rounds=2000"])).plan
    assert plan.balls() == [B]
    assert {run.environment["settings"]["norm_bound"] for run in plan.runs} == {B}
    for run in plan.runs:
        assert run.checkpoints == (2000,)
        if run.player["id"] != "uniform":
            player = run.build_player(run.build_environment())
            assert player.norm_bound == B if hasattr(player, "norm_bound") else player.inner.norm_bound == B
            assert run.written.get("gamma", "theory") in ("theory", "anytime")


@pytest.fixture(scope="module")
def small(notebook: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Play B = 1 at three horizons and read what is left; return the folder of tables and what the notebook said."""
    folder = tmp_path_factory.mktemp("theory")
    for T in HORIZONS:
        for name in ("theory-b1", "theory-second-order-b1"):
            spec = read_spec(
                LAB / "runs" / f"{name}.toml",
                [f"rounds={T}", "repetitions=2", "environment.0.grid={ n_classes = [3] }"],
            )
            assert not Sweep(spec).run(folder / f"{name}-t{T}").failures
    return folder, notebook("theory.py", folder, results=folder, figures=folder)


def table(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / "results" / f"theory-{name}.csv")


def test_all_cells_are_there(small: tuple[Path, str]) -> None:
    folder, said = small
    cells = table(folder, "mistakes")
    assert set(cells["T"]) == set(HORIZONS)
    assert len(cells) == 8 * 3
    assert (cells["runs"] == 2).all()
    assert f"{2 * len(HORIZONS)} folders" in said
    for picture in ("theory.png", "theory-excess.png"):
        assert (folder / "images" / picture).stat().st_size > 10_000


def test_the_difference_is_that_of_the_stream(small: tuple[Path, str]) -> None:
    """Mistakes less the loss of the best W, in the theorem's unit, computed anew from the streams and stored runs."""
    folder, _ = small
    cells = table(folder, "mistakes").set_index(["T", "agent"])
    place = folder / "theory-b1-t200"
    runs = pd.read_parquet(place / "results.parquet")
    losses, draws = [], []
    for run in Sweep(read_spec(place / "spec.toml")).plan.streams().values():
        env = run.build_environment()
        env.reset(seed=run.environment_seed())
        [(X, y)] = env.unwrapped.blocks(200, 200)
        W = best_in_ball(*collapse(X, y, 3), 1.0).weights
        Z = X @ W.T
        log_p = Z[np.arange(200), y] - np.log(np.exp(Z).sum(axis=1))
        losses.append(-log_p.sum())
        draws.append((1.0 - np.exp(log_p)).sum())
    for agent, unit in (("exploration", 1.0), ("rdue", math.log(2.0))):
        mistakes = runs.loc[runs["player"] == agent, "expected_mistakes"].mean()
        assert cells.loc[(200, agent), "beyond loss"] == pytest.approx(mistakes - np.mean(losses) / unit, rel=2e-3)
    mistakes = runs.loc[runs["player"] == "exploration", "expected_mistakes"].mean()
    assert cells.loc[(200, "exploration"), "excess"] == pytest.approx(mistakes - np.mean(draws), rel=2e-3)


def test_thresholds_are_where_the_formulas_say(small: tuple[Path, str]) -> None:
    thresholds = table(small[0], "thresholds").set_index(["agent", "K", "B"])
    # gamma = K R D / sqrt(T ln 2), D^2 = K B^2
    assert thresholds.loc[("gaptron", 10, 3), "gamma below 1 from"] == pytest.approx(1000 * 9 / math.log(2.0), rel=1e-3)
    assert thresholds.loc[("newtron", 10, 3), "gamma below 1 from"] == 11
    assert math.isnan(thresholds.loc[("newtron", 10, 3), "bound below T from"])
    T = int(thresholds.loc[("gaptron", 3, 1), "bound below T from"])
    for at, speaks in ((T + 1, True), (T - 1, False)):
        gamma = gaptron_gamma(3, 1.0, math.sqrt(3.0), at)
        assert (gaptron_fixed(3, math.sqrt(3.0), gaptron_step(3, 1.0, gamma), gamma, at) < at) == speaks
    proved = thresholds.dropna()
    assert (proved["bound below T from"] >= proved["gamma below 1 from"]).all()
    assert (proved["bound below guessing from"] >= proved["bound below T from"]).all()
    assert len(proved) == 6 * 6


def test_bounds_hold_and_are_counted(small: tuple[Path, str]) -> None:
    folder, _ = small
    checks = table(folder, "checks").set_index("agent")
    assert (checks["over_bound"] == 0).all()
    assert checks.loc["gaptron-wide", "runs"] == 2 * 3
    assert "newtron" not in checks.index
    growth = table(folder, "growth")
    assert set(growth["agent"]) == {
        "exploration",
        "exploration-anytime",
        "gaptron",
        "gaptron-wide",
        "rdue",
        "obama-lite",
        "newtron",
    }
    assert growth.set_index("agent").loc["newtron", "how many T"] == 3


def test_the_page_says_what_guessing_would_keep_and_what_the_horizon_costs() -> None:
    """Counted anew, row by row, from the committed table."""
    page = page_parts((LAB / "docs" / "results" / "theory.md").read_text(encoding="utf-8"))
    rows = pd.read_csv(LAB / "docs" / "results" / "theory-mistakes.csv").to_dict("records")
    guess = {(r["K"], r["B"], r["T"]): r["mistakes"] for r in rows if r["agent"] == "uniform"}
    loss = {(r["K"], r["B"], r["T"]): r["loss"] for r in rows if r["agent"] == "uniform"}
    told = [r for r in rows if not math.isnan(r["bound"])]
    kept = [guess[r["K"], r["B"], r["T"]] <= r["loss"] + r["bound"] for r in told]
    assert page["guessing"] == f"{sum(kept)} of {len(told)}"
    now = [holds for r, holds in zip(told, kept, strict=True) if r["T"] == 100_000]
    assert page["guessing-now"] == f"{sum(now)} of {len(now)}"
    last = [guess[cell] <= loss[cell] for cell in guess if cell[2] == 100_000]
    assert page["guessing-at-0"] == f"{sum(last)} of {len(last)}"
    telling = [r for r, holds in zip(told, kept, strict=True) if not holds]
    assert telling
    assert page["can-fail"] == page["can-fail-kept"] == str(len(telling))
    assert all(f"{r['T']:,}" in page["power"] for r in telling)
    # the table has four digits: no verdict hangs on them
    assert all(abs(guess[r["K"], r["B"], r["T"]] / (r["loss"] + r["bound"]) - 1) > 1e-3 for r in told)
    excess = {(r["agent"], r["K"], r["B"]): r["excess"] for r in rows if r["T"] == 100_000}
    ratios = [excess["exploration-anytime", K, B] / excess["exploration", K, B] for K in (3, 10) for B in (3, 10)]
    assert page["horizon-excess"] == f"{100 * min(ratios) - 100:.0f} to {100 * max(ratios) - 100:.0f} %"
    assert min(ratios) > 1.3
    # Newtron plays alpha = 1; its theorem has a gamma of this shape up to ln T/(8 R D), D = sqrt(K) B
    covered = [math.log(100_000) / (8 * math.sqrt(K) * B) for K in (3, 10) for B in (1, 3, 10)]
    assert page["alpha"] == f"{min(covered):.2f} to {max(covered):.2f}"
    assert max(covered) < 1
