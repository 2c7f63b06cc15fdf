"""What is ranked where rows of a table repeat, what stands beside it for scale, and what a person is warned of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.analysis import load, summary_rows, write_report
from banditlab.analysis.alerts import alerts
from banditlab.analysis.arena import arenas, deviations
from banditlab.analysis.statistics import critical
from banditlab.analysis.summary import differences, standings

FACTS = {"rows": 40, "features": 3, "classes": 4, "largest": 0.5}


def losses(rows: np.ndarray) -> bytes:
    return np.stack([rows, np.ones(len(rows))]).astype("<f4").tobytes()


def counted(folder, run_id: str, rows: np.ndarray, **more) -> None:
    """Add to a run's rows what the engine stores of a table: its first showings, 100 rounds over its rows."""
    n = len(rows)
    for row in folder.rows[run_id]:
        first = min(row["round"], n)
        share = float(rows.mean()) * first
        row |= {
            "first_sight_rounds": first,
            "first_sight_mistakes": round(share),
            "first_sight_expected_mistakes": share,
        }
        row |= {"constant_mistakes": row["round"] // 2, "first_sight_constant_mistakes": first // 2}
        row |= {"mistakes_variance": 0.1 * row["round"], "row_losses": None} | more
    folder.rows[run_id][-1]["row_losses"] = losses(rows)


@pytest.fixture
def repeated(new_folder):
    """A memoriser that makes .6 mistakes at first sight and few after, and an honest player with .4 throughout."""
    folder = new_folder(repetitions=3)
    folder.data = {"Toy-v0": FACTS}
    rng = np.random.default_rng(3)
    for r in range(3):
        counted(folder, folder.add_run("memory", r, 24.0 + 6.0), np.clip(0.6 + 0.1 * rng.normal(size=40), 0, 1))
        counted(folder, folder.add_run("honest", r, 40.0), np.clip(0.4 + 0.1 * rng.normal(size=40), 0, 1))
    return folder


def test_first_showings_are_ranked_and_repeats_stand_apart(repeated):
    out = repeated.write()
    rows = summary_rows(load(out))
    assert [(row.label, row.rank, row.constant, row.below_constant) for row in rows] == [
        ("honest", "1", False, False),
        ("most frequent class", "", True, False),
        ("memory", "2", False, True),
    ]
    memory = rows[2]
    assert memory.mistakes.mean == pytest.approx(0.6, abs=0.05)
    assert memory.repeated == pytest.approx((30 - 40 * memory.mistakes.mean) / 60, abs=1e-6)
    assert memory.mistakes.method == "t, rows"
    assert rows[1].mistakes.mean == 0.5
    page = write_report(out).read_text("utf-8")
    assert "40 rows, d = 3, K = 4, largest class 50.0 %; 2.5 passes" in page
    assert "Mistake rates refer to the 40 of 100 rounds in which a row occurs for the first time." in page
    assert '<th class="n extra">on repeats</th>' in page
    assert "† makes more mistakes than that" in page
    assert "After round 40 rows are repeated; the ranking uses the rounds before." in page


def test_intervals_take_in_the_rows_of_the_table(repeated):
    arena = arenas(load(repeated.write()))[0]
    [honest, memory] = standings(arena)
    each = arena.row_deviations(arena.final, [0, 1, 2])
    gap = each["memory"] - each["honest"]
    means = arena.final.pivot(index="repetition", columns="label", values="ranked")
    by_repetition = (means["memory"] - means["honest"]).var(ddof=1) / 3
    by_row = 40 / 39 * np.square(gap.mean(axis=0)).sum()
    variance = by_repetition + by_row
    freedom = variance**2 / (by_repetition**2 / 2 + by_row**2 / 39)
    half = critical(0.95, freedom, 2) * math.sqrt(variance)
    assert memory.behind_first.high - memory.behind_first.mean == pytest.approx(half)
    [(_, _, difference)] = differences(arena)
    assert difference.low == pytest.approx(-memory.behind_first.high)
    assert deviations(losses(np.array([0.0, 1.0]))).tolist() == [-0.25, 0.25]
    assert honest.mistakes.high > honest.mistakes.mean


def test_every_setting_counts_where_repetitions_share_a_table(new_folder):
    folder = new_folder(repetitions=2)
    rng = np.random.default_rng(0)
    for r in range(2):
        for gamma in (0.1, 0.2, 0.3):
            counted(folder, folder.add_run("tuned", r, 40.0, written={"gamma": gamma}), rng.random(40))
        counted(folder, folder.add_run("plain", r, 40.0), rng.random(40))
    [arena] = arenas(load(folder.write()))
    assert arena.family == 4
    for rows in folder.rows.values():
        rows[-1]["row_losses"] = None
    [arena] = arenas(load(folder.write()))
    assert arena.family == 2  # streams of their own: the halves that choose and report share nothing


def test_mistakes_that_chance_does_not_explain_are_flagged(new_folder):
    folder = new_folder(repetitions=2)
    for r in range(2):
        counted(folder, folder.add_run("liar", r, 1.0, mistakes=70.0), np.full(40, 0.5), mistakes_variance=1.0)
        counted(folder, folder.add_run("lucky", r, 30.0, mistakes=50.0), np.full(40, 0.5), mistakes_variance=20.0)
        counted(folder, folder.add_run("forecaster", r, 1.0, mistakes=70.0, kind="label"), np.full(40, 0.5))
    [said] = alerts(load(folder.write()))
    assert said.startswith(
        "Do not trust liar on Toy-v0: in 2 runs its mistakes (mean 70.0) differ by more than 6 standard deviations"
    )
    assert '<p class="warn">Do not trust liar' in write_report(folder.out).read_text("utf-8")
