"""Players whose ball has no comparator."""

from __future__ import annotations

import pytest

from banditlab.analysis import load, write_report
from banditlab.analysis.arena import arenas
from banditlab.analysis.curves import relative_panels
from banditlab.analysis.explore import _models
from banditlab.analysis.summary import best_ball, bounds_table


def arena_of(folder):
    [arena] = arenas(load(folder.write()))
    return arena


# ---------------------------------------------------------------------------------------------- balls of no comparator


def with_foreign_balls(new_folder):
    """Balls 1 and 3; `lost` has B = 0.5 by default, `auto` had 3 only because its B = "auto" resolved to it."""
    folder = new_folder()
    for repetition in range(4):
        for bound in (1.0, 3.0):
            folder.add_comparator(repetition, bound, 30.0 / bound)
        own = {"gamma": "auto", "norm_bound": 3.0}
        folder.add_run("own", repetition, 50.0, written=own, bound=40.0, bound_unit="nats")
        folder.add_run("lost", repetition, 20.0, resolved={"norm_bound": 0.5}, bound=5.0, bound_unit="nats")
        run_id = folder.add_run("auto", repetition, 25.0, written={"norm_bound": "auto"}, bound=5.0, bound_unit="nats")
        for row in folder.rows[run_id]:
            row["param.norm_bound"] = 3.0
    return folder


def test_players_without_a_comparator_of_their_own_stand_in_every_panel(new_folder):
    folder = with_foreign_balls(new_folder)
    arena = arena_of(folder)
    assert list(arena.foreign.items()) == [("lost", [0.5]), ("auto", [3.0])]
    small, large = relative_panels(arena)
    assert {curve.label for curve in small.curves} == {"lost", "auto"}
    assert {curve.label for curve in large.curves} == {"own", "lost", "auto"}
    lost = next(curve for curve in small.curves if curve.label == "lost")
    assert (lost.mean[-1], lost.bound.size) == (pytest.approx(20 - 30), 0)
    page = write_report(folder.out).read_text("utf-8")
    foreign = "There is no comparator for B = 0.5 of lost: it is compared with every comparator, and its bound is not checked."
    assert foreign in page


def test_a_theorem_is_held_to_its_own_ball_only(new_folder):
    assert bounds_table(arena_of(with_foreign_balls(new_folder)))["label"].tolist() == ["own"]


def test_of_balls_with_equal_losses_the_smallest_is_named_whatever_their_order(new_folder):
    folder = new_folder(repetitions=1)
    for bound in (3.0, 1.0, 10.0):
        folder.add_comparator(0, bound, 30.0)
    folder.add_run("free", 0, 50.0)
    arena = arena_of(folder)
    assert _models(arena)["free", ""]["model"].endswith(f"at B = {best_ball(arena):g}")
    assert best_ball(arena) == 1.0


def test_no_word_of_balls_where_every_player_has_its_own(new_folder):
    folder = new_folder(repetitions=1)
    folder.add_comparator(0, 1.0, 30.0)
    folder.add_run("own", 0, 50.0, written={"norm_bound": 1.0})
    folder.add_run("free", 0, 50.0)
    arena = arena_of(folder)
    assert arena.foreign == {}
    assert "There is no comparator" not in write_report(folder.out).read_text("utf-8")
