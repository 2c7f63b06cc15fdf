"""Rankings, cross-fitted choices, curves, grids and bounds of folders with known numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from banditlab.analysis import load, summary_rows
from banditlab.analysis.alerts import incomplete
from banditlab.analysis.curves import grids, mistake_curves, relative_panels
from banditlab.analysis.findings import findings
from banditlab.analysis.settings import varied
from banditlab.analysis.summary import (
    arenas,
    bounds_table,
    comparator_table,
    constant_share,
    differences,
    settings_table,
    standings,
    with_constant,
)


def arena_of(folder, i: int = 0):
    return arenas(load(folder.write()))[i]


def two_settings(new_folder):
    """A player whose setting a wins on repetitions 0 and 1, and b on 2 and 3, against a steady one."""
    folder = new_folder()
    for repetition, (a, b, steady) in enumerate([(10, 20, 12), (10, 20, 12), (40, 20, 14), (42, 20, 15)]):
        folder.add_run("tuned", repetition, float(a), written={"gamma": 0.1}, seconds=0.5)
        folder.add_run("tuned", repetition, float(b), written={"gamma": 0.2})
        folder.add_run("steady", repetition, float(steady))
    return folder


def test_each_half_is_reported_at_the_settings_chosen_on_the_other(new_folder):
    rows = {row.label: row for row in summary_rows(load(two_settings(new_folder).write()))}
    tuned = rows["tuned"]
    # named: the best on all four (20 against 25.5); reported: 20, 20 at b, then 40, 42 at a
    assert (tuned.settings, tuned.among, tuned.held_out, tuned.agree) == ("γ=0.2", 2, True, False)
    assert (tuned.mistakes.mean, tuned.mistakes.n) == (pytest.approx(0.305), 4)
    assert rows["steady"].mistakes.mean == pytest.approx(0.1325)
    assert (rows["steady"].rank, tuned.rank) == ("1", "2")
    assert tuned.behind_first.mean == pytest.approx(0.1725)
    # differences 8, 8, 26, 27: s^2 = 342.75 / 3, t(0.975, 3) = 3.182446
    half = 3.182446 * math.sqrt(342.75 / 3 / 4) / 100
    assert tuned.behind_first.high - tuned.behind_first.mean == pytest.approx(half, rel=1e-6)
    assert tuned.seconds_per_round == pytest.approx((2 * 0.01 + 2 * 0.5) / 4 / 100)
    arena = arenas(load(two_settings(new_folder).write()))[0]
    assert arena.chosen["tuned"].reported == {0: "γ=0.2", 1: "γ=0.2", 2: "γ=0.1", 3: "γ=0.1"}
    assert not arena.chosen["tuned"].agree
    assert "chosen" in findings(arena)


def test_nothing_to_choose_reports_every_repetition(new_folder):
    folder = new_folder()
    for repetition in range(4):
        folder.add_run("a", repetition, 10.0 + repetition)
        folder.add_run("b", repetition, 30.0 + repetition)
    arena = arena_of(folder)
    assert standings(arena)[0].mistakes.n == 4
    assert not {"chosen", "in-sample"} & set(findings(arena))


def test_ties_are_shown(new_folder):
    folder = new_folder()
    for repetition, values in enumerate([(10, 12, 50, 51), (12, 10, 51, 50), (10, 12, 52, 53), (12.1, 10, 53, 52)]):
        for label, value in zip("abcd", values, strict=True):
            folder.add_run(label, repetition, float(value))
    arena = arena_of(folder)
    rows = standings(arena)
    assert [(row.label, row.rank) for row in rows] == [("b", "1="), ("a", "1="), ("c", "3="), ("d", "3=")]
    said = findings(arena)
    assert said["ahead"].startswith(
        "b has the lowest mistake rate, 11.0 %, significantly lower than that of 2 of 3 others."
    )
    assert said["shared"].startswith(
        "Agents share a rank (=) if their difference from the first agent of the rank is not significant."
    )
    assert "difference is between a and b: 0.0 pp" in said["shared"]


def test_one_repetition_says_what_it_is(new_folder):
    folder = new_folder(repetitions=1)
    folder.add_run("tuned", 0, 10.0, written={"gamma": 0.1})
    folder.add_run("tuned", 0, 20.0, written={"gamma": 0.2})
    folder.add_run("other", 0, 30.0)
    arena = arena_of(folder)
    rows = standings(arena)
    assert [(row.name, row.rank, row.held_out) for row in rows] == [
        ("tuned γ=0.1", "?", False),
        ("other", "?", True),
    ]
    assert set(findings(arena)) == {"few", "in-sample"}
    assert findings(arena)["in-sample"].endswith("makes their mistake rates too low: 1 of 2.")


@pytest.mark.parametrize(
    ("repetitions", "labels", "rank", "said"),
    [
        (2, ["good", "bad"], "?", {"few"}),
        (3, ["good", "bad"], "2", {"wins"}),
        (3, ["good", "near", "bad"], "3", {"ahead", "shared"}),
        (3, ["good", "near"], "1=", {"level", "shared"}),
        (3, ["good"], "1", set()),
    ],
)
def test_a_lead_needs_three_repetitions(new_folder, repetitions, labels, rank, said):
    folder = new_folder(repetitions=repetitions)
    mistakes = {"good": (10.0, 10.1, 10.4), "near": (10.2, 10.1, 10.3), "bad": (90.0, 90.0, 90.0)}
    for label, r in itertools.product(labels, range(repetitions)):
        folder.add_run(label, r, mistakes[label][r])
    arena = arena_of(folder)
    assert standings(arena)[-1].rank == rank
    assert set(findings(arena)) == said


def test_what_equals_a_reference_is_neither_below_nor_above_it(new_folder):
    folder = new_folder()
    for r in range(4):
        folder.add_comparator(r, 1.0, 50.0)  # 25 mistakes
        for row in folder.rows[folder.add_run("even", r, 25.0)]:
            row["first_sight_constant_mistakes"] = row["round"] // 4
    arena = arena_of(folder)
    player, constant = with_constant(arena, standings(arena))
    assert (player.below_constant, constant.position, constant.among, constant.behind_first.n) == (False, 0, 1, 0)
    assert (constant.held_out, constant.agree, constant.conditional) == (True, True, False)
    assert all(findings(arena)[name].endswith("with a lower rate: 0 of 1.") for name in ("constant", "model"))


def test_intervals_end_where_the_quantity_does(new_folder):
    folder = new_folder(repetitions=2)
    for r, (a, b) in enumerate(((10.0, 90.0), (90.0, 11.0))):
        for row in folder.rows[folder.add_run("a", r, a)] + folder.rows[folder.add_run("b", r, b)]:
            row["first_sight_constant_mistakes"] = a / 100 * row["round"]
    arena = arena_of(folder)
    second, [(_, _, gap)] = standings(arena)[1], differences(arena)
    assert {(each.low, each.high) for each in (second.behind_first, second.behind_group, gap)} == {(-1.0, 1.0)}
    rates = (second.mistakes, second.counted, constant_share(arena), *settings_table(arena).itertuples())
    assert {(each.low, each.high) for each in rates} == {(0.0, 1.0)}


def test_bit_and_label_players_are_never_ranked_together(new_folder):
    folder = new_folder()
    for repetition in range(2):
        folder.add_run("agent", repetition, 20.0)
        folder.add_run("forecaster", repetition, 5.0, kind="label")
    rows = summary_rows(load(folder.write()))
    assert [(row.kind, row.label, row.rank) for row in rows] == [("bit", "agent", "1"), ("label", "forecaster", "1")]


def test_expected_mistakes_rank_and_the_count_stands_beside(new_folder):
    folder = new_folder()
    for repetition in range(3):
        folder.add_run("lucky", repetition, 30.0, mistakes=10.0)
        folder.add_run("sound", repetition, 20.0, mistakes=25.0, expected_kind="conditional")
    first, second = summary_rows(load(folder.write()))
    assert (first.label, first.counted.mean, first.conditional) == ("sound", pytest.approx(0.25), True)
    assert (second.label, second.counted.mean, second.conditional) == ("lucky", pytest.approx(0.10), False)


def test_streams_that_differ_are_not_paired(new_folder):
    folder = new_folder()
    for repetition in range(4):
        for label in "ab":
            folder.add_run(label, repetition, 10.0 + 5 * repetition + (label == "b"), stream_id=f"{label}{repetition}")
    arena = arena_of(folder)
    assert not arena.paired
    assert [row.rank for row in standings(arena)] == ["1=", "1="]  # paired, the difference would be exactly 1


def test_unfinished_sweeps_are_ranked_on_what_is_there(new_folder):
    folder = two_settings(new_folder)
    first = {i: rows[0] for i, rows in folder.rows.items()}
    late = [i for i, row in first.items() if (row["label"] == "tuned") == (row["repetition"] >= 2)]
    plan = list(folder.rows)
    for run_id in late:
        del folder.rows[run_id]
    results = load(folder.write(plan=plan))
    assert results.missing == 6
    [arena] = arenas(results)
    tuned, steady = standings(arena)
    assert (tuned.label, tuned.held_out) == ("tuned", False)
    assert tuned.mistakes.mean == pytest.approx(0.10)
    assert (tuned.rank, steady.rank) == ("?", "?")
    assert (steady.behind_first.n, math.isnan(steady.behind_first.mean)) == (0, True)
    assert incomplete(results) == ["Unfinished: 6 of 12 runs missing; the same command runs the rest."]
    assert set(findings(arena)) == {"level", "in-sample"}


def test_differences_of_every_pair(new_folder):
    arena = arena_of(two_settings(new_folder))
    [(first, second, gap)] = differences(arena)
    assert (first, second) == ("steady", "tuned γ=0.2")
    assert gap.mean == pytest.approx(-0.1725)


# ------------------------------------------------------------------------------------------- curves, grids and bounds


def with_comparators(new_folder):
    folder = new_folder()
    for repetition in range(4):
        folder.add_comparator(repetition, 1.0, 30.0, gap=2.0)
        folder.add_comparator(repetition, 3.0, 20.0 + repetition, gap=0.0)
        for gamma in (0.1, 0.3):
            for bound in (1.0, 3.0):
                value = 100 * gamma + bound + repetition
                additive = 50.0 if bound == 1 else 200.0
                settings = {"gamma": gamma, "norm_bound": bound}
                folder.add_run("grid", repetition, value, written=settings, bound=additive, bound_unit="nats")
        folder.add_run("free", repetition, 60.0 + repetition)
    return folder


def test_curves_take_the_chosen_settings(new_folder):
    arena = arena_of(with_comparators(new_folder))
    worst, best = mistake_curves(arena)
    assert (worst.name, best.name) == ("free", "grid γ=0.1 B=1")
    assert best.rounds.tolist() == [1, 2, 5, 10, 20, 50, 100]
    assert best.mean[-1] == pytest.approx(10 + 1 + 1.5)
    assert best.low[-1] < best.mean[-1] < best.high[-1]
    assert (best.bound.size, best.vacuous, best.bound_in_bits) == (0, False, False)


def test_relative_panels_per_ball_with_the_comparators_interval(new_folder):
    small, large = relative_panels(arena_of(with_comparators(new_folder)))
    assert (small.norm_bound, large.norm_bound) == (1.0, 3.0)
    curves = {curve.label: curve for curve in small.curves}
    assert curves["grid"].settings == "γ=0.1 B=1"
    assert curves["grid"].mean[-1] == pytest.approx(12.5 - 30)
    # half width of the t interval over (0, 1, 2, 3) is 2.0543; the upper edge has the gap on top
    assert curves["grid"].low[-1] == pytest.approx(-17.5 - 2.0543, abs=1e-4)
    assert curves["grid"].high[-1] == pytest.approx(-17.5 + 2.0543 + 2.0, abs=1e-4)
    assert curves["grid"].bound[-1] == 50.0
    assert not curves["grid"].vacuous
    assert curves["free"].bound.size == 0
    wide = {curve.label: curve for curve in large.curves}
    assert wide["grid"].settings == "γ=0.1 B=3"
    assert wide["grid"].vacuous
    assert wide["grid"].bound.tolist() == wide["grid"].rounds.tolist()


def test_relative_mistakes_of_the_ranking_take_the_best_comparator(new_folder):
    rows = {row.label: row for row in standings(arena_of(with_comparators(new_folder)))}
    assert rows["grid"].comparator_bound == 3.0
    assert rows["grid"].relative.mean == pytest.approx(12.5 - 21.5)
    assert rows["grid"].ratio == pytest.approx(12.5 / 21.5)
    assert rows["free"].relative.low == pytest.approx(61.5 - 21.5)


def test_grids(new_folder):
    [grid] = grids(arena_of(with_comparators(new_folder)))
    assert (grid.label, grid.other, grid.gammas, grid.norm_bounds) == ("grid", "", ["0.1", "0.3"], ["1", "3"])
    assert grid.at.tolist() == [[0.1, 0.1], [0.3, 0.3]]
    np.testing.assert_allclose(grid.mistakes, np.array([[12.5, 14.5], [32.5, 34.5]]) / 100)


def test_bounds_hold_are_vacuous_or_exceeded(new_folder):
    folder = with_comparators(new_folder)
    for repetition in range(4):
        for label, ball, bound in (("liar", 3.0, 10.0), ("even", 1.0, 20.0), ("full", 1.0, 70.0)):
            folder.add_run(label, repetition, 50.0, written={"norm_bound": ball}, bound=bound, bound_unit="nats")
    table = bounds_table(arena_of(folder)).set_index(["label", "settings"])
    assert [label for label, _ in table.index] == ["grid"] * 4 + ["liar", "even", "full"]
    assert table.loc[("grid", "γ=0.1 B=1"), ["verdict", "guarantee"]].tolist() == ["holds", 80.0]
    assert table.loc[("grid", "γ=0.1 B=3"), ["verdict", "bound_shown"]].tolist() == ["vacuous", 100.0]
    assert table.loc[("liar", ""), "verdict"] == "exceeded"
    assert table.loc[["even", "full"], "verdict"].tolist() == ["holds", "vacuous"]  # the guarantee is just reached


def test_forecasters_are_held_to_their_log_loss(new_folder):
    folder = new_folder(repetitions=1)
    folder.add_comparator(0, 1.0, 30.0)
    folder.add_run("f", 0, 20.0, kind="label", written={"norm_bound": 1.0}, bound=5.0, bound_unit="nats")
    [row] = bounds_table(arena_of(folder)).to_dict("records")
    assert row["measured"] == pytest.approx(24.0)  # the writer's log loss is 1.2 x the expected mistakes
    assert row["over"] == pytest.approx(-6.0)


def test_comparator_and_settings_tables(new_folder):
    arena = arena_of(with_comparators(new_folder))
    table = comparator_table(arena)
    assert table["norm_bound"].tolist() == [1.0, 3.0]
    assert table["loss_nats"].tolist() == [30.0, 21.5]
    every = settings_table(arena)
    assert every["settings"].tolist() == ["γ=0.1 B=1", "γ=0.1 B=3", "γ=0.3 B=1", "γ=0.3 B=3", ""]
    assert every["chosen"].tolist() == [True, False, False, False, True]
    assert every["repetitions"].tolist() == [4] * 5


def test_without_a_comparator_nothing_is_relative(new_folder):
    folder = new_folder(norm_bounds=())
    folder.add_run("a", 0, 10.0)
    arena = arena_of(folder)
    assert standings(arena)[0].relative is None
    assert findings(arena) == {}


def test_axes_are_said_as_they_were_written(new_folder):
    folder = new_folder(repetitions=1)
    folder.add_run("g", 0, 10.0, written={"gamma": 0.1})
    theory = folder.add_run("g", 0, 10.0, written={"gamma": "theory"})
    folder.add_run("h", 0, 10.0, written={"rate": 1.0})
    folder.add_run("h", 0, 10.0, written={"rate": 2.0})
    for row in folder.rows[theory]:
        row["param.gamma"] = 0.4247  # resolved, as the store writes it
    runs = load(folder.write()).runs
    assert [varied(group) for _, group in runs.groupby("label")] == ["γ: 0.1, theory", "rate: 1.0, 2.0"]
