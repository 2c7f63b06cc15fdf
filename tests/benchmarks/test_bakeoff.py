"""The bake-off: what is played on local tables, what Vowpal Wabbit's lines mean, and the page's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.result_pages import bakeoff as page
from banditlab.engine import Sweep, make_spec
from benchmarks.commands import bakeoff
from benchmarks.page.bakeoff_figure import figure

SIZES = {"rows": 500, "features": 3}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an index of every OpenML number of the spec, each the same small table."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    pd.DataFrame(X, columns=list("abc")).assign(**{"class": X.argmax(axis=1)}).to_csv(
        tmp_path / "t.csv.gz", index=False
    )
    [environment] = bakeoff.spec_of()["environment"]
    pd.DataFrame({"openml_id": environment["grid"]["data_id"], "file": "t"}).to_csv(tmp_path / "index.csv", index=False)
    return tmp_path


def test_every_number_becomes_a_file_and_families_name_files(folder: Path) -> None:
    spec = bakeoff.local(folder, folder / "tables")
    assert len(spec.environment) == 116
    files = {Path(block.model_dump()["path"]).name for block in spec.environment}
    assert {"6-t.csv.gz", "991-t.csv.gz"} <= files
    assert {name for names in spec.families.values() for name in names} <= files
    two = pd.read_csv(folder / "tables" / "991-t.csv.gz")["class"]
    assert sorted(set(two)) == ["N", "P"]


@pytest.mark.slow
def test_both_players_play_one_table_in_the_same_orders(folder: Path, capsys: Any) -> None:
    pytest.importorskip("vowpalwabbit")
    spec = bakeoff.local(folder, folder / "tables").model_dump()
    kept = {"environment": spec["environment"][:1], "repetitions": 3, "families": {}}
    small = make_spec(spec | kept | {"agent": [{"id": "stackcb"}, {"id": "uniform"}]}, "small")
    Sweep(small).run(folder / "out" / "sweep")
    for _ in range(2):
        bakeoff.vowpal_wabbit(small, folder / "out" / "vw.csv")
    assert capsys.readouterr().out.count("vw 2-t") == 1  # what is finished is not played again
    by_order = bakeoff.orders(folder / "out")
    shares = by_order["2-t"]
    assert shares.shape == (3, 2 + 2 * len(bakeoff.FORMS))
    assert shares["VW greedy, best rate"].mean() <= shares["VW greedy"].mean()
    assert 0.0 < shares.drop(columns="uniform").to_numpy().max() < 95.0
    table = bakeoff.collected(folder / "out", by_order)
    assert table.loc[0, ["table", "rows", "classes"]].tolist() == ["2-t", 60, 3]
    assert table.loc[0, page.CONSTANT] == pytest.approx(
        100 * (1 - pd.read_csv(folder / "t.csv.gz")["class"].value_counts().max() / 60)
    )


def test_a_player_is_better_where_all_orders_are() -> None:
    noise = np.random.default_rng(0).normal(0.0, 0.5, (10, 3))
    shares = pd.DataFrame(noise + [20.0, 10.0, 20.0], columns=["stackcb", "fewer", "level"])
    assert bakeoff.wins({"1-t": shares}).to_dict("records") == [{"table": "1-t", "fewer": 1, "level": 0}]
    assert bakeoff.wins({"1-t": shares[["fewer", "stackcb"]] * [3.0, 1.0]})["fewer"].tolist() == [-1]


def test_means_leave_out_tables_whose_reading_differs_and_weigh_families_as_one(tmp_path: Path) -> None:
    players = {"stackcb": 10.0, "fastcb": 20.0, "exploration(folklore)": 30.0, "gaptron": 40.0, "banditron": 50.0}
    players |= {"VW greedy": 20.0, "VW greedy, best rate": 16.0, "VW RegCB-opt, best rate": 8.0}
    players |= {"VW epsilon-greedy, best rate": 32.0}
    rows = [
        {"table": f"{number}-t", "family": family, **SIZES, "classes": classes, page.CONSTANT: 60.0} | players
        for number, family, classes in ((1, "f", 2), (2, "f", 3), (3, "c", 9), (11, "d", 2), (12, "e", 2))
    ]
    table = pd.DataFrame(rows)
    table.loc[table["table"] == "1-t", "fastcb"] = 80.0
    table.loc[table["table"] == "12-t", "fastcb"] = 1.0
    table.to_csv(tmp_path / "bakeoff.csv", index=False)
    pd.DataFrame({"openml_id": [1, 12], "agrees": ["alphabet", ""]}).to_csv(
        tmp_path / "bakeoff-reading.csv", index=False
    )
    wins = pd.DataFrame({"table": table["table"]}).assign(**dict.fromkeys(list(players)[1:], -1))
    wins.assign(fastcb=[-1, -1, -1, 0, 1]).to_csv(tmp_path / "bakeoff-wins.csv", index=False)
    means = page.read(tmp_path)
    assert means.shares.shape == (10, 4)
    assert means.ratio("fastcb").mean == pytest.approx(np.exp((np.log(8 * 2) / 2 + 2 * np.log(2)) / 3))
    texts = page.parts(tmp_path)
    assert (texts["tables"], texts["families"], texts["fresh"], texts["two"]) == ("4", "3", "3", "2")
    assert texts["theory"] == "3.0 to 5.0"
    assert texts["critical"] == "7.8"  # Demsar 2006, Table 5 (a): 3.164, times the root of 10 * 11 / (6 * 3)
    assert texts["greedy"].startswith("2.00 (")
    line = next(row for row in texts["players"].splitlines() if row.startswith("| fastcb"))
    assert "| 0 / 1 / 3 |" in line  # the table that differs does not count
    assert "| agent | K = 2 (2 tables) | K = 3 to 6 (1 tables) | K > 6 (1 tables) |" in texts["classes"]
    assert len(figure(means).axes) == 2
