"""The specs of the boosting tables play, in small and on made-up data, and their notebook reads what they leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis import load
from banditlab.analysis.pages import page_parts
from banditlab.engine import Sweep, read_spec

LAB = Path(__file__).parents[2]
SPECS = sorted(path.stem for path in (LAB / "runs").glob("boosting-*.toml"))
ROWS = {
    "balance-scale": 625,
    "mice": 1080,
    "car": 1728,
    "mushroom": 8124,
    "nursery": 12960,
    "isolet": 7797,
    "movement": 165632,
}
ORDERS = {"movement": 9, "isolet": 1}
"""Of the paper; the others' averages are over 27."""
COLUMNS = {"car": 21, "nursery": 27, "mushroom": 117}


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_plays_every_row_once(name: str) -> None:
    text = (LAB / "runs" / f"{name}.toml").read_text(encoding="utf-8")
    spec, data = read_spec(LAB / "runs" / f"{name}.toml"), name.split("-", 2)[2]
    assert spec.repetitions == ORDERS.get(data, spec.repetitions)
    assert f"banditlab run runs/{name}.toml" in text
    assert spec.rounds == ROWS[data]
    assert spec.checkpoints == [ROWS[data] * 8 // 10]
    for block in spec.booster:
        settings = next(iter(block.written()))
        tree = [settings[name] for name in ("prior", "largest_share", "spread", "splits")]
        assert tree == [1.0, 1.0, "coded", "coded"]
        assert sum(settings.get("one_hot", [])) == COLUMNS.get(data, 0)


def test_all_sets_are_there() -> None:
    assert {f"boosting-tables-{name}" for name in ROWS} <= set(SPECS)


def small(name: str, table: Path, *overrides: str) -> Sweep:
    """Return a spec's sweep on a made-up table, with three learners where it has a hundred."""
    settings = ["rounds=50", "repetitions=3", "checkpoints=[40]", *overrides]
    block = f"{{ id = 'banditlab/Table-v0', path = '{table.as_posix()}', label = 'kind' }}"
    spec = read_spec(LAB / "runs" / f"{name}.toml", [*settings, f"environment=[{block}]"])
    return Sweep(spec)


def test_the_notebook_in_small(notebook: Callable[..., str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(50) % 3
    table = pd.DataFrame(rng.standard_normal((50, 4)) + 2 * np.eye(4)[y], columns=list("abcd"))
    table.assign(kind=[f"class {k}" for k in y]).to_csv(tmp_path / "made-up.csv", index=False)
    few = [f"booster.{i}.n_learners=3" for i in range(9)]
    folder = tmp_path / "results" / "boosting-tables-balance-scale"
    small("boosting-tables-balance-scale", tmp_path / "made-up.csv", *few).run(folder, jobs=1)
    grids = [f"booster.{i}.grid.n_learners=[1, 2]" for i in range(3)]
    more = small("boosting-learners-balance-scale", tmp_path / "made-up.csv", *grids)
    more.run(tmp_path / "results" / "boosting-learners-balance-scale", jobs=1)
    page = tmp_path / "docs" / "results" / "boosting-tables.md"
    page.parent.mkdir(parents=True)
    page.write_bytes((LAB / "docs" / "results" / "boosting-tables.md").read_bytes())
    notebook("boosting_tables.py", tmp_path, results=tmp_path / "results", figures=tmp_path / "docs")
    shown = pd.read_csv(tmp_path / "docs" / "results" / "boosting-tables.csv").set_index("method")
    assert len(shown) == 13
    assert (shown["orders"] == 3).all()
    runs = load(folder).runs
    end, cut = (
        runs[(runs["player"] == "oza") & (runs["round"] == r)].set_index("run_id")["mistakes"] for r in (50, 40)
    )
    assert shown.loc["OLB", "all"] == pytest.approx(1 - end.mean() / 50, abs=1e-4)
    assert shown.loc["OLB", "last fifth"] == pytest.approx(1 - (end - cut).mean() / 10, abs=1e-4)
    assert shown.loc["OLB", "all, difference"] == pytest.approx(shown.loc["OLB", "all"] - 0.747, abs=2e-4)
    trees = runs[(runs["player"] == "best-single") & (runs["round"] == 50)]
    each, heavy = trees[[f"diagnostic.mistakes.{i}" for i in (1, 2, 3)]], trees["param.weight_scale"] == "random"
    for name, mine in (("DT", each[heavy]), ("DT, weight 1", each[~heavy])):
        assert shown.loc[name, "all"] == pytest.approx(1 - mine.mean().min() / 50, abs=1e-4)
    first = pd.read_csv(tmp_path / "docs" / "results" / "boosting-tables-1.csv").set_index("data")
    assert first.loc["balance-scale", "OLM++"] == pytest.approx(shown.loc["OLM++", "last fifth"], abs=1e-4)
    pairs = pd.read_csv(tmp_path / "docs" / "results" / "boosting-tables-olm-plus.csv")
    assert set(pairs["against"]) == {"AdaOLM", "AdaOLM, exact", "OLB", "DT, weight 1"}
    assert (pairs["orders"] == 3).all()
    learners = pd.read_csv(tmp_path / "docs" / "results" / "boosting-tables-learners.csv")
    assert set(learners["learners"]) == {1, 2}
    assert (tmp_path / "docs" / "images" / "boosting-learners.png").stat().st_size > 5_000
    filled = page_parts(page.read_text(encoding="utf-8"))
    assert [line.split("|")[1].strip() for line in filled["all"].splitlines()[2:]] == ["balance-scale (3)"]
    assert filled["close-mice"] == filled["car-exact"] == "none played"


def test_the_published_tables_are_the_notebooks() -> None:
    table = pd.read_csv(LAB / "docs" / "results" / "boosting-tables.csv")
    for measure in ("last fifth", "all"):
        told = table.dropna(subset=f"{measure}, paper")
        gap = told[measure] - told[f"{measure}, paper"]
        np.testing.assert_allclose(gap, told[f"{measure}, difference"], atol=2e-4)
        assert table[measure].between(0, 1).all()
    assert {"OLM++", "AdaOLM", "OLB"} <= set(table["method"])
