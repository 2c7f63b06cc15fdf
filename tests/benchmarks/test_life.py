"""The study of late, lost and wrong feedback: what is played, what it is called, and what the page makes of it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.result_pages import late_lost_wrong as told
from banditlab.engine import Sweep, make_spec
from benchmarks.commands import life
from benchmarks.page.late_lost_wrong_figures import figure

SPECS = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(life.SPECS.glob("*.toml"))}


def test_there_is_a_spec_for_each_kind_and_all_differ_in_it_only() -> None:
    assert set(SPECS) == set(told.KINDS)
    rest = [{k: v for k, v in spec.items() if k not in ("name", "feedback", "change")} for spec in SPECS.values()]
    assert all(each == rest[0] for each in rest)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two agents on a stand-in for one table, 40 rounds of each spec."""
    folder = tmp_path_factory.mktemp("life")
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    pd.DataFrame(X, columns=list("abc")).assign(**{"class": X.argmax(axis=1)}).to_csv(
        folder / "magic.csv.gz", index=False
    )
    table = {"id": "banditlab/Table-v0", "path": str(folder / "magic.csv.gz"), "label": "class"}
    agents = [{"id": "banditron"}, {"id": "linucb"}]
    for kind, spec in SPECS.items():
        small: dict[str, Any] = spec | {"rounds": 40, "checkpoints": [20, 40], "environment": [table], "agent": agents}
        if kind == "change":
            small["change"] = {"grid": spec["change"]["grid"] | {"at": [20]}}
        Sweep(make_spec(small, kind)).run(folder / kind, jobs=1)
    return folder


@pytest.mark.slow
def test_lines_have_the_names_of_the_page_and_the_runs_shares(played: Path) -> None:
    lines = [line for kind in told.KINDS for line in life.lines_of(kind, played / kind)]
    assert {(line.table, line.agent) for line in lines} == {("magic", "banditron"), ("magic", "linucb")}
    found = {(line.kind, line.setting) for line in lines}
    assert {*told.COSTS.values(), told.PLAIN, ("timeout", "all, 30"), ("change", "swap")} <= found
    assert {("delay", "geometric, mean 100"), ("delay", "300 where wrong"), ("batch", "10")} <= found
    by_setting = {line[:4]: line for line in lines}
    plain, changed = by_setting[*told.PLAIN, "magic", "linucb"], by_setting["change", "rotate", "magic", "linucb"]
    assert len(plain.mistakes) == 3
    np.testing.assert_allclose(  # both halves count alike, and the first halves are the same run
        2 * np.array(plain.mistakes) - plain.later, 2 * np.array(changed.mistakes) - changed.later, rtol=1e-9
    )
    assert plain.later != changed.later


def line(kind: str, setting: str, agent: str, *mistakes: float) -> list[told.Line]:
    return [told.Line(kind, setting, f"t{i}", agent, (m, m), (2 * m, 2 * m)) for i, m in enumerate(mistakes)]


def test_costs_are_paired_by_table_and_of_the_second_half_where_labels_change(tmp_path: Path) -> None:
    lines = [
        *line("delay", "0", "a", 10.0, 20.0),
        *line("delay", "0", "b", 30.0, 40.0),
        *line("delay", "100", "a", 12.0, 24.0),
        *line("delay", "100", "b", 10.0, 20.0),
        *line("delay", "1000", "a", 15.0, 25.0),
        *line("delay", "1000", "b", 35.0, 45.0),
        *line("change", "rotate", "a", 20.0, 30.0),
        *line("change", "rotate", "b", 30.0, 40.0),
    ]
    told.save(tmp_path / "x.csv", lines)
    means = told.Means(told.read(tmp_path / "x.csv"))
    assert means.kinds == ["delay", "change"]
    assert means.cost("delay", "100", "a") == (3.0, pytest.approx(1.0))
    assert means.cost("change", "rotate", "a") == (20.0, pytest.approx(0.0))
    assert means.settings("change") == ["unchanged", "rotate"]
    assert means.best("delay", "0") == ("a", 15.0)
    assert means.best("delay", "100") == ("b", 15.0)
    assert means.range("delay", "100") == (-20.0, 3.0)
    assert told.table(means, "change").splitlines()[-1] == "| b | 70.0 | 70.0 |"
    axes = figure(means, "delay").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "100", "1000"]
    assert [list(one.get_ydata()) for one in axes.lines] == [[15.0, 18.0, 20.0], [35.0, 15.0, 40.0]]
