"""References in a report: a table of their own, grey dashes, no rank; and what players count of themselves."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis import load, summary_rows, write_report
from banditlab.analysis.arena import arenas
from banditlab.analysis.curves import mistake_curves, relative_panels
from banditlab.analysis.look import FAINT, styles
from banditlab.analysis.summary import bounds_table, diagnostics_table, differences, scale_rows, standings


@pytest.fixture
def folder(new_folder):
    """Two players of one bit and two that observe the label, which make fewer mistakes than either."""
    made = new_folder()
    for repetition in range(4):
        for bound in (1.0, 3.0):
            made.add_comparator(repetition, bound, 20.0 / bound + repetition)
        made.add_run("fair", repetition, 30.0 + repetition)
        made.add_run("slow", repetition, (50.0 + repetition) * np.square(np.array(made.checkpoints) / 100))
        made.add_run("told", repetition, 10.0 + repetition, kind="reference")
        bounded = {"bound": 7.0, "bound_unit": "nats", "written": {"norm_bound": 3.0}}
        made.add_run("teller", repetition, 12.0 + repetition, kind="reference", **bounded)
    return made


def test_references_are_never_ranked_with_players_of_one_bit(folder) -> None:
    results = load(folder.write())
    [arena] = arenas(results)
    assert [(row.rank, row.label) for row in standings(arena)] == [("1", "fair"), ("2", "slow")]
    beside = scale_rows(arena)
    assert [(row.rank, row.position, row.label, row.kind) for row in beside] == [
        ("", 0, "told", "reference"),
        ("", 0, "teller", "reference"),
    ]
    assert all(math.isnan(row.behind_first.mean) for row in beside)
    assert beside[0].mistakes.mean == pytest.approx(0.115)
    assert [row.label for row in summary_rows(results)] == ["fair", "slow", "told", "teller"]
    assert not any("tell" in a + b or "told" in a + b for a, b, _ in differences(arena))


def test_references_alone_are_an_arena(new_folder) -> None:
    made = new_folder()
    for repetition in range(4):
        made.add_run("told", repetition, 10.0 + repetition, kind="reference")
        made.add_run("reader", repetition, 5.0, kind="label")
    every = arenas(load(made.write()))
    assert [arena.kind for arena in every] == ["label", "reference"]
    assert [arena.scale for arena in every] == [None, None]


def test_their_lines_are_grey_and_dashed_and_change_no_colour(folder) -> None:
    results = load(folder.write())
    looks = styles(results.labels(), results.references())
    plain = styles(["fair", "slow"])
    assert (looks["fair"], looks["slow"]) == (plain["fair"], plain["slow"])
    assert {looks[name].colour for name in ("told", "teller")} == {FAINT}
    assert "-" not in {looks[name].dash for name in ("told", "teller")}
    four = styles("abcd", "abcd")
    assert four["d"].dash == four["a"].dash != four["b"].dash  # three dashes
    [arena] = arenas(results)
    assert [curve.label for curve in mistake_curves(arena)] == ["teller", "told", "slow", "fair"]
    small, large = relative_panels(arena)
    assert [curve.label for curve in small.curves] == ["told", "slow", "fair"]  # teller's own ball is B = 3
    assert [curve.label for curve in large.curves] == ["teller", "told", "slow", "fair"]


def test_the_report_says_so(folder) -> None:
    out = folder.write()
    page = write_report(out).read_text(encoding="utf-8")
    assert page.count("References that observe the label") == 1
    assert "Grey and dashed: references that observe the label." in page
    assert page.index(">slow<") < page.index("References that observe the label") < page.index("<td>told</td>")
    assert page.count("told, observes the label") == 1
    ranked = pd.read_csv(out / "tables" / "ranking.csv")
    assert list(ranked["label"]) == ["fair", "slow"]
    beside = pd.read_csv(out / "tables" / "references.csv")
    assert list(zip(beside["kind"], beside["label"])) == [("reference", "told"), ("reference", "teller")]
    assert "rank" not in beside
    bounds = pd.read_csv(out / "tables" / "bounds.csv")
    [row] = bounds.to_dict("records")
    assert (row["kind"], row["label"], row["measured"]) == ("reference", "teller", 13.5)  # expected mistakes
    settings = pd.read_csv(out / "tables" / "all_settings.csv")
    assert dict(zip(settings["label"], settings["kind"])) == {
        "fair": "bit", "slow": "bit", "told": "reference", "teller": "reference"
    }  # fmt: skip


def test_a_reference_s_bound_is_on_its_mistakes(folder) -> None:
    [arena] = arenas(load(folder.write()))
    [row] = bounds_table(arena.scale).to_dict("records")
    assert row["measured"] == 13.5
    assert row["loss"] == pytest.approx(20.0 / 3.0 + 1.5)


def test_diagnostics_are_summed_up(folder) -> None:
    out = folder.write()
    assert diagnostics_table(arenas(load(out))[0]).empty
    results = load(out)
    results.runs["diagnostic.hits"] = results.runs["repetition"].where(results.runs["label"] == "fair").astype(float)
    [row] = diagnostics_table(arenas(results)[0]).to_dict("records")
    assert (row["label"], row["diagnostic"]) == ("fair", "hits")
    assert (row["mean"], row["least"], row["most"], row["repetitions"]) == (1.5, 0.0, 3.0, 4)
