"""The hard multiclass data are LowerBound's law with several rare classes; the notebook of papers/000 reads its specs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from banditlab.bounds.folklore import folklore as theorem_3
from banditlab.comparators import best_in_ball, collapse
from banditlab.envs import LowerBound
from banditlab.errors import UsageError
from banditlab.registry import classes_of, load_file

LAB = Path(__file__).parents[2]
PLAY = """
import sys
from banditlab.registry import registry
registry().open_lab(sys.argv[1])
from banditlab.engine import Sweep, read_spec
small = ["rounds=60", "repetitions=2", "checkpoints=[3, 6, 15, 30, 60]"]
hard = [*small, "environment.0.grid={ n_classes = [2, 3], chi = [-1, 1] }"]
long = ["rounds=60", "repetitions=2", "checkpoints=[3, 6, 15, 30, 45, 60]"]
longer = ["rounds=1000", "repetitions=2", "checkpoints=[10, 100, 200, 300, 500, 700, 1000]"]
axes = [*small, "environment.0.grid={ n_features = [1, 2, 4], n_classes = [3], chi = [-1, 1] }"]
plays = {"b10": hard, "lower-bound": small, "long-b10": long, "long-b1": longer, "axes": axes}
for name, overrides in plays.items():
    result = Sweep(read_spec(f"{sys.argv[1]}/runs/papers-000-{name}.toml", overrides)).run(f"papers-000-{name}")
    assert not result.failures
"""


@pytest.fixture(scope="module")
def Hard():
    [(_, cls)] = classes_of(load_file(LAB / "envs" / "hard_multiclass.py"))
    return cls


@pytest.fixture(scope="module")
def Axes():
    [(_, cls)] = classes_of(load_file(LAB / "envs" / "hard_axes.py"))
    return cls


def whole(env, rounds, seed=1):
    env.reset(seed=seed)
    [(X, y)] = env.blocks(rounds, rounds)
    return X, y


@pytest.mark.parametrize("chi", [-1, 1])
def test_two_classes_are_the_lower_bound(Hard, chi):
    """With ln n = 2 B and the same epsilon and seed both give the same rounds."""
    n = 4000
    B = np.log(n) / 2
    mine = whole(Hard(n_classes=2, norm_bound=B, chi=chi, epsilon=0.01), 5000)
    papers = whole(LowerBound(n=n, chi=chi, epsilon=0.01), 5000)
    np.testing.assert_allclose(mine[0], papers[0], rtol=1e-14)
    assert np.array_equal(mine[1], papers[1])


def test_classes_come_as_often_as_said(Hard):
    env = Hard(n_classes=5, norm_bound=3.0, chi=1, horizon=1000)
    assert env.epsilon == pytest.approx((6 / 1000) ** (2 / 3))
    X, y = whole(env, 100_000)
    assert env.probabilities().sum() == pytest.approx(1.0)
    assert chisquare(np.bincount(y, minlength=5), len(y) * env.probabilities()).pvalue > 1e-3
    assert np.array_equal(X[:, 0], np.where(y == 4, env.points[1], env.points[0]))
    assert Hard(norm_bound=50.0, horizon=100).epsilon == 1 / 16


def test_the_sign_decides_where_the_best_difference_lies(Hard):
    """Two classes: with chi = -1 the rare class loses and theta ends at -2 B, with chi = 1 it stays above."""
    theta = {}
    for chi in (-1, 1):
        X, y = whole(Hard(n_classes=2, norm_bound=3.0, chi=chi, epsilon=0.05), 200_000)
        W = best_in_ball(*collapse(X, y, 2), 3.0).weights
        theta[chi] = float(W[0, 0] - W[1, 0])
    assert theta[-1] < -5.0
    assert theta[1] > theta[-1] + 1.0


def test_appendix_f(Hard):
    """At the long context W = (0, 0, B) leaves curvature below 2 e^(-B/2) between the two classes that do occur there."""
    B = 10.0
    long = Hard(n_classes=3, norm_bound=B).points[0]
    z = np.array([0.0, 0.0, B * long])
    s = np.exp(z) / np.exp(z).sum()
    v = np.array([1.0, -1.0, 0.0])
    assert v @ (np.diag(s) - np.outer(s, s)) @ v * long**2 < 2 * np.exp(-B / 2)
    assert abs(v @ (s - np.eye(3)[0])) * long > 0.9


def test_one_axis_is_the_game_itself(Hard, Axes):
    settings = {"n_classes": 4, "norm_bound": 10.0, "chi": -1, "horizon": 5000}
    one, game = whole(Axes(n_features=1, **settings), 5000), whole(Hard(**settings), 5000)
    assert np.array_equal(one[0], game[0])
    assert np.array_equal(one[1], game[1])


def test_each_axis_is_the_game_of_its_share(Hard, Axes):
    """Four axes: axes equally often, on each the law of one game with B / 2 and a quarter of the rounds."""
    env = Axes(n_features=4, n_classes=3, norm_bound=10.0, chi=1, horizon=40_000)
    game = Hard(n_classes=3, norm_bound=5.0, chi=1, horizon=10_000)
    assert env.epsilon == pytest.approx(game.epsilon, rel=1e-14)
    assert env.lengths == pytest.approx(game.points, rel=1e-14)
    X, y = whole(env, 200_000)
    assert ((X > 0).sum(axis=1) == 1).all()
    counts = np.stack([np.bincount(y[X[:, j] > 0], minlength=3) for j in range(4)])
    assert chisquare(counts.ravel(), np.tile(game.probabilities() * len(y) / 4, 4)).pvalue > 1e-3
    assert np.array_equal(X.max(axis=1), np.where(y == 2, env.lengths[1], env.lengths[0]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_features": 0}, "n_features must be at least 1"),
        ({"n_classes": 1}, "n_classes must be at least 2"),
        ({"chi": 2}, "chi must be -1 or 1, got 2"),
        ({"epsilon": 0.2}, "epsilon must be at most 1/16"),
    ],
)
def test_bad_settings_of_the_axes(Axes, settings, message):
    with pytest.raises(UsageError, match=message):
        Axes(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_classes": 1}, "n_classes must be at least 2"),
        ({"chi": 0}, "chi must be -1 or 1, got 0"),
        ({"epsilon": 0.2}, "epsilon must be at most 1/16"),
        ({"norm_bound": 0.01, "epsilon": 0.06}, "must lie in"),
    ],
)
def test_bad_settings(Hard, settings, message):
    with pytest.raises(UsageError, match=message):
        Hard(**settings)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Play one ball, the lower bound, two long streams and the axes, 60 rounds each."""
    folder = tmp_path_factory.mktemp("small")
    subprocess.run([sys.executable, "-c", PLAY, str(LAB)], cwd=folder, check=True)
    return folder


def tables_in(figures):
    return {path.stem[11:]: pd.read_csv(path) for path in (figures / "results").glob("papers-000-*.csv")}


def check_counts(checks):
    assert (checks["certificates"] > 0).all()
    assert (checks["over_certificate"] == 0).all()
    assert (checks["over_bound"] == 0).all()


def check_pictures(folder, names):
    for name in names:
        assert (folder / "images" / f"papers-000-{name}.png").stat().st_size > 10_000


def test_in_small(notebook, small, tmp_path):
    """Regret is at most certificate and bound; tables and pictures are left."""
    said = notebook("papers_000.py", tmp_path, results=small, figures=tmp_path, timed="0.0002")
    tables = tables_in(tmp_path)
    assert "left out, not run yet: papers-000-b1, papers-000-b3, papers-000-b30" in said
    final = tables["regret"]
    assert set(final["data"]) == {"HardMulticlass", "LowerBound"}
    assert set(final["forecaster"]) == {"ogd", "ons", "gaf", "gaf-small", "folklore", "aggregating"}
    assert (final["runs"] == 2).all()
    check_counts(tables["checks"])
    three = final[(final["B"] == 10) & (final["K"] == 3)].set_index("forecaster")["regret"]
    assert three["folklore"] < three["ons"]
    assert len(tables["time"]) == 12
    assert (tables["time"].drop(columns=["d", "K"]) > 0).all(axis=None)
    assert len(tables["time-exponents"]) == 4
    projected = tables["time-projected"]
    assert len(projected) == 9
    assert (projected["bound"] > 0.9).all()
    assert (projected["factorisations"] > 1.0).all()
    check_pictures(tmp_path, ("rounds", "norm-bound", "classes", "time"))


def test_long_in_small(notebook, small, tmp_path):
    """Every cell of the long streams and of the axes, the theorem's factor of ln T, and what the bound's slope must be."""
    said = notebook("papers_000_long.py", tmp_path, results=small, figures=tmp_path, timed="0.0002")
    tables = tables_in(tmp_path)
    assert "left out, not run yet: papers-000-long-b50" in said
    final = tables["long-regret"]
    cells = set(final[["data", "B", "d", "K"]].itertuples(index=False, name=None))
    assert cells == {("HardMulticlass", B, 1, K) for B in (1, 10) for K in (2, 3, 5)} | {
        ("HardAxes", 10, d, 3) for d in (1, 2, 4)
    }
    check_counts(tables["long-checks"])
    gained = tables["long-nats-per-factor-e"].set_index(["B", "K"])
    assert gained.loc[(1, 3), "Theorem 3"] == pytest.approx(2 * (2 + np.log(3) + 2) / 4, rel=1e-3)
    slopes = tables["long-growth-in-rounds"]
    assert set(slopes["transient"]) <= {"before", "after"}
    assert slopes["FOLKLORE's bound"].between(0, 1).all()
    peaks = tables["long-peaks"]
    assert set(peaks["B"]) <= {1, 10}
    assert (peaks["at round"] <= peaks["horizon"]).all()
    features = tables["growth-in-features"].set_index("K")
    bounds = [theorem_3(60, d, 3, 10.0, 1.0) for d in (1, 2, 4)]
    assert features.loc[3, "FOLKLORE's bound"] == pytest.approx(
        np.polyfit(np.log([1, 2, 4]), np.log(bounds), 1)[0], rel=1e-3
    )
    check_pictures(tmp_path, ("long-rounds", "features"))
