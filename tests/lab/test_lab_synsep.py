"""The figure of SOBA's paper plays in small and its notebook reads it; SynSep with 40 features is what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from banditlab.engine import Sweep, read_spec
from banditlab.errors import UsageError
from banditlab.registry import classes_of, load_file

LAB = Path(__file__).parents[2]
SPECS = ("synsep", "synsep-points", "synsep-references", "synsep-second-order", "synsep-small")
PLAY = """
import sys
from banditlab.registry import registry
registry().open_lab(sys.argv[1])
from banditlab.engine import Sweep, read_spec
few = ["rounds=60", "checkpoints=[6, 60]"]
two = "grid={ gamma = [0.014, 0.25] }"
overrides = {
    "synsep": [*few, *(f"agent.{i}.{two}" for i in range(3)), "repetitions=1",
               *(f"agent.{i}.grid={{ gamma = [0.03, 0.25] }}" for i in range(3, 7))],
    "synsep-points": [*few, "repetitions=2"],
    "synsep-references": [*few, "repetitions=1"],
    "synsep-second-order": [*few, "repetitions=1", f"agent.5.{two}"],
    "synsep-small": [*few, "repetitions=1", *(f"agent.{i}.{two}" for i in range(8))],
}
for name, changed in overrides.items():
    result = Sweep(read_spec(f"{sys.argv[1]}/runs/{name}.toml", changed)).run(name)
    assert not result.failures, result.failures
"""


@pytest.fixture(scope="module")
def Small():
    [(_, cls)] = classes_of(load_file(LAB / "envs" / "synsep_small.py"))
    return cls


def whole(env, rounds, seed=1):
    env.reset(seed=seed)
    [(X, y)] = env.blocks(rounds, rounds)
    return X, y


def test_small_counts_are_exact(Small):
    env = Small()
    X, y = whole(env, 5000)
    bits = env.prototypes()
    assert set(np.unique(X)) == {0.0, 1.0}
    assert ((bits.sum(axis=1) >= 4) & (bits.sum(axis=1) <= 8)).all()
    assert (X[:, 16:].sum(axis=1) == 2).all()
    gone = bits[y] - X[:, :16]
    assert (gone >= 0).all()
    assert (gone.sum(axis=1) == 1).all()
    assert (np.linalg.norm(X, axis=1) <= env.problem.radius).all()
    assert env.problem.radius == 3.0
    pairs = np.abs(bits[:, None] - bits).sum(axis=2)[np.triu_indices(9, 1)]
    assert pairs.min() >= 3


def test_small_draws_are_uniform(Small):
    env = Small()
    X, y = whole(env, 60_000)
    bits = env.prototypes()
    assert chisquare(np.bincount(y, minlength=9)).pvalue > 1e-3
    assert chisquare(X[:, 16:].sum(axis=0)).pvalue > 1e-3
    of_class = y == 4
    off = (bits[4] - X[of_class, :16]).sum(axis=0)
    assert chisquare(off[bits[4] > 0]).pvalue > 1e-3


def test_small_noise(Small):
    env = Small(noise_rate=0.05)
    X, y = whole(env, 60_000)
    bits = env.prototypes()
    distance = np.abs(X[:, None, :16] - bits).sum(axis=2)
    wrong = distance.argmin(axis=1) != y  # one bit from its own prototype, at least two from the others
    assert abs(wrong.mean() - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 60_000)


def test_small_bad_setting(Small):
    with pytest.raises(UsageError, match="noise_rate"):
        Small(noise_rate=1.5)


def test_the_points_are_runs_of_the_figure():
    ids = [{run.run_id for run in Sweep(read_spec(LAB / "runs" / f"{n}.toml")).plan.runs} for n in SPECS[:2]]
    assert ids[1] < ids[0]


def test_in_small(notebook, tmp_path):
    """Curves are means of the stored runs, a run of two specs counts once, reference figures meet their own setting."""
    subprocess.run([sys.executable, "-c", PLAY, str(LAB)], cwd=tmp_path, check=True)
    notebook("synsep.py", tmp_path, results=tmp_path, figures=tmp_path)
    tables = {path.stem: pd.read_csv(path) for path in (tmp_path / "results").glob("synsep*.csv")}
    curves = tables["synsep"].set_index(["environment", "agent", "gamma"])
    assert curves.index.is_unique
    assert curves.loc[("SynSep", "banditron", 0.014), "streams"] == 2  # one of them in both specs
    assert curves.loc[("SynSep", "banditron", 0.25), "streams"] == 1
    points = tables["synsep-points"].set_index(["environment", "agent"])
    assert (points["streams"] == 2).all()
    stored = pd.read_parquet(tmp_path / "synsep-points" / "results.parquet")
    stored = stored[(stored["round"] == 60) & stored["environment"].str.contains("NonSep")]
    rows = stored[(stored["label"] == "banditron") & (stored["param.gamma"] == 0.006)]
    assert points.loc[("SynNonSep", "banditron"), "ours"] == pytest.approx(100 * rows["mistakes"].mean() / 60, rel=1e-3)
    least = curves["error %"].groupby(level=["environment", "agent"]).min()
    chosen = tables["synsep-best"].set_index(["environment", "agent"])["error %"]
    assert chosen.sort_index().equals(least.sort_index())
    assert set(tables["synsep-second-order"]["agent"]) == {
        "linucb",
        "lints",
        "confidit",
        "squarecb",
        "fastcb",
        "newtron",
    }
    assert len(tables["synsep-small"]) == 2 * (8 * 2 + 3)
    for name in ("synsep", "synsep-second-order", "synsep-small"):
        assert (tmp_path / "images" / f"{name}.png").stat().st_size > 10_000
