"""Agents over many data sets: by hand, in families, over noise; what does not count; what report and terminal show."""

from __future__ import annotations

import json
import math
import re
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import rich.console

from banditlab.analysis import load, write_report
from banditlab.analysis.across import across, log_rates
from banditlab.analysis.board import write_board
from banditlab.cli.ranking import print_across

RATES = {
    "good": [10, 20, 30, 40, 5, 8],
    "fair": [20, 40, 60, 39, 10, 16],
    "poor": [40, 80, 90, 80, 20, 32],
}
"""Mistakes in 100 rounds on six data sets."""
CRITICAL = 2.343 * math.sqrt(3 * 4 / 6)
"""Of 3 agents, times the root of the number of families: Demsar 2006, Table 5 (a)."""


def made(
    folder_type: Any, out: Path, rates: dict[str, Any], *, noise: float = 0.1, spec: str = "", lacking: tuple = ()
) -> Any:
    """Return the comparison of agents with so many mistakes, in four repetitions, on as many data sets as they have numbers."""
    folder = folder_type(out)
    for i in range(len(rates["good"])):
        environment = f"banditlab/Table-v0(path=t{i}.csv)"
        folder.data[environment] = {"rows": 100 * 10 ** (i % 3), "features": 4 + 10 * i, "classes": 2 + i}
        for k, (label, values) in enumerate(rates.items()):
            for r in range(4):
                if (label, i) not in lacking:
                    folder.add_run(label, r, values[i] + noise * math.sin(r * (k + 2) + i), environment=environment)
    folder.blocks += f"\n{spec}"
    return folder


def test_six_data_sets_by_hand(folder_type: Any, tmp_path: Path) -> None:
    found = across(load(made(folder_type, tmp_path / "out", RATES).write()))
    assert found is not None
    assert found.agents == ["good", "fair", "poor"]
    assert found.ranks.tolist() == pytest.approx([7 / 6, 11 / 6, 3.0])
    assert found.critical == pytest.approx(CRITICAL / math.sqrt(6), rel=1e-3)
    pair = found.pairs["good", "fair"]
    assert (pair.wins, pair.ties, pair.losses) == (5, 0, 1)
    back = found.pairs["fair", "good"]
    assert (back.wins, back.ties, back.losses) == (1, 0, 5)
    assert pair.ratio.mean == pytest.approx(
        math.exp(np.mean(np.log(np.array(RATES["good"]) / RATES["fair"]))), rel=0.02
    )
    assert back.ratio.mean == pytest.approx(1 / pair.ratio.mean)
    assert back.ratio.low == pytest.approx(1 / pair.ratio.high)
    assert (found.pairs["poor", "good"].wins, found.pairs["poor", "good"].losses) == (0, 6)
    assert found.ahead("good", "poor")
    assert not found.ahead("good", "fair")  # their mean ranks differ by less than is significant
    assert not found.ahead("poor", "good")
    assert (
        found.sentence() == "good has the lowest mean rank over 6 data sets; significantly better than 1 of 2 others."
    )
    assert found.table()["good"].tolist() == pytest.approx([v / 100 for v in RATES["good"]], abs=0.01)
    assert found.pair_table()[["first", "second", "wins", "ties", "losses", "ahead"]].values.tolist() == [
        ["good", "fair", 5, 0, 1, False], ["good", "poor", 6, 0, 0, True], ["fair", "poor", 6, 0, 0, False],
    ]  # fmt: skip
    groups = found.groups()
    sizes = {
        "K <= 2": 1,
        "K 3 to 5": 3,
        "K > 5": 2,
        "d <= 10": 1,
        "d 11 to 50": 4,
        "d > 50": 1,
        "n <= 1,000": 4,
        "n > 5,000": 2,
    }
    assert dict(zip(groups["group"], groups["data sets"])) == sizes
    assert groups["poor"][0] == pytest.approx(4.0, rel=0.02)


def test_a_family_counts_as_one(folder_type: Any, tmp_path: Path) -> None:
    families = '[families]\nlike = ["t[012].csv"]\n'
    found = across(load(made(folder_type, tmp_path / "out", RATES, spec=families).write()))
    assert found is not None
    assert found.families == ["like", "like", "like", "t3.csv", "t4.csv", "t5.csv"]
    assert found.n_families == 4
    assert found.ranks.tolist() == pytest.approx([5 / 4, 7 / 4, 3.0])
    assert found.critical == pytest.approx(CRITICAL / 2, rel=1e-3)
    logs = np.log(np.array(RATES["good"]) / RATES["fair"])
    assert found.pairs["good", "fair"].ratio.mean == pytest.approx(
        math.exp(np.mean([logs[:3].mean(), *logs[3:]])), rel=0.02
    )


def test_over_noise_nothing_is_ahead(folder_type: Any, tmp_path: Path) -> None:
    drawn = np.random.default_rng(3).binomial(100, 0.5, (4, 60))
    rates = dict(zip(("good", "fair", "poor", "other"), drawn.tolist(), strict=True)) | {"uniform": [50] * 60}
    found = across(load(made(folder_type, tmp_path / "out", rates, noise=2.0).write()))
    assert found is not None
    assert not any(found.ahead(a, b) for a, b in found.pairs)
    assert found.sentence().endswith("no other agent is significantly worse.")


def test_rates_below_half_a_mistake_are_not_ahead_of_each_other(folder_type: Any, tmp_path: Path) -> None:
    rates = {"good": [0.1] * 6, "fair": [0.2] * 6, "poor": [0.3] * 6}
    found = across(load(made(folder_type, tmp_path / "out", rates, noise=0.0).write()))
    assert found is not None
    assert found.ranks[2] - found.ranks[0] > found.critical
    assert not found.ahead("good", "poor")
    assert np.exp(log_rates(np.array([[0.001, 0.007]]), 100)).tolist() == [pytest.approx([0.005, 0.007])]


def test_what_does_not_count(folder_type: Any, tmp_path: Path) -> None:
    folder = made(folder_type, tmp_path / "a", RATES, lacking=(("fair", 0), ("poor", 2)))
    folder.skipped.append(
        {"environment": "banditlab/Table-v0(path=t0.csv)", "player": "fair(gamma=1)", "reason": "for K = 2"}
    )
    folder.add_run("ftrl", 0, 5.0, environment="banditlab/Table-v0(path=t0.csv)", kind="label")  # ranked apart
    found = across(load(folder.write()))
    assert found is not None
    assert (found.agents, found.titles) == (["good", "poor"], ["t0.csv", "t1.csv", "t3.csv", "t4.csv", "t5.csv"])
    assert found.left_out == ["fair: does not support all data sets", "t2.csv: runs are missing"]
    few = {label: values[:4] for label, values in RATES.items()}
    assert across(load(made(folder_type, tmp_path / "b", few).write())) is None
    for alike, enough in (("t[0-3].csv", True), ("t[0-4].csv", False)):  # three families and two
        folder = made(folder_type, tmp_path / alike, RATES, spec=f'[families]\nlike = ["{alike}"]\n')
        assert (across(load(folder.write())) is not None) is enough
    folder = made(folder_type, tmp_path / "c", RATES)
    twice = "banditlab/Table-v0(path=t0.csv, scaling=none)"
    folder.data[twice] = folder.data["banditlab/Table-v0(path=t0.csv)"]
    for label in RATES:
        folder.add_run(label, 0, 5.0, environment=twice)
    assert across(load(folder.write())) is None


def test_the_report_has_the_section_with_a_dot_for_each_data_set(folder_type: Any, tmp_path: Path) -> None:
    out = made(folder_type, tmp_path / "out", RATES).write()
    page = write_report(out).read_text()
    assert page.index("Over 6 data sets</h2>") < page.index('<div class="answers">')
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])["across"]  # type: ignore[index]
    assert data["agents"] == ["good", "fair", "poor"]
    np.testing.assert_allclose(data["shares"], [RATES[label] for label in data["agents"]], atol=0.1)
    assert all(f'id="{anchor}"' in page for anchor in data["anchors"])
    assert pd.read_csv(out / "tables" / "data_sets.csv")["data"].tolist() == [f"t{i}.csv" for i in range(6)]
    assert pd.read_csv(out / "tables" / "over_data_sets.csv")["wins"].tolist() == [5, 6, 6]


def test_a_board_has_the_table_of_each_sweep_over_data_sets(folder_type: Any, tmp_path: Path) -> None:
    folder = made(folder_type, tmp_path / "many", RATES)
    folder.blocks = f"passes = 1\n{folder.blocks}"
    many = folder.write()
    grid = made(folder_type, tmp_path / "grid", RATES).write()  # environments of one problem, not data sets
    page = write_board([many, grid], tmp_path / "board.html").read_text()
    assert page.count("over 6 data sets</h2>") == 1
    assert page.count(across(load(many)).sentence()) == 1  # type: ignore[union-attr]
    assert '<a href="#over">' in page
    assert "over 6 data sets" not in write_board([grid], tmp_path / "other.html").read_text()


def test_the_terminal_shows_ten_agents(folder_type: Any, tmp_path: Path) -> None:
    rates = RATES | {f"bad{i}": [v * (2.2 + i / 50) for v in RATES["good"]] for i in range(9)}
    found = across(load(made(folder_type, tmp_path / "out", rates).write()))
    assert found is not None
    out = rich.console.Console(file=StringIO(), width=200)
    print_across(out, found)
    lines = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert " ".join(lines[0].split()) == "agent mean rank mistakes / good's (95 %) better, tied, worse"
    assert set(lines[1].strip()) == {"─"}
    assert lines[2].split()[0] == "good"
    assert lines[3].split()[0] == "fair"
    assert [line.split()[0] for line in lines[4:12]].count("*") >= 1
    assert lines[12] == "and 2 more agents"
    assert lines[14].startswith("good has the lowest mean rank over 6 data sets")
