"""What is said of the comparators: players whose ball has none, and balls too small for the first player."""

from __future__ import annotations

import pytest

from banditlab.analysis import load, sentences
from banditlab.analysis.arena import arenas
from banditlab.analysis.curves import relative_panels
from banditlab.analysis.summary import bounds_table, standings


def arena_of(folder):
    [arena] = arenas(load(folder.write()))
    return arena


# ---------------------------------------------------------------------------------------------- balls of no comparator


def with_foreign_balls(new_folder):
    """Balls 1 and 3; `lost` has B = 0.5 by default, `auto` had 3 only because "auto" resolved to it."""
    folder = new_folder()
    for repetition in range(4):
        for bound in (1.0, 3.0):
            folder.add_comparator(repetition, bound, 30.0 / bound)
        own = {"gamma": 0.1, "norm_bound": 3.0}
        folder.add_run("own", repetition, 50.0, written=own, bound=40.0, bound_unit="nats")
        folder.add_run("lost", repetition, 20.0, resolved={"norm_bound": 0.5}, bound=5.0, bound_unit="nats")
        run_id = folder.add_run("auto", repetition, 25.0, written={"norm_bound": "auto"}, bound=5.0, bound_unit="nats")
        for row in folder.rows[run_id]:
            row["param.norm_bound"] = 3.0
    return folder


def test_players_without_a_comparator_of_their_own_stand_in_every_panel(new_folder):
    arena = arena_of(with_foreign_balls(new_folder))
    assert arena.foreign == {"lost": [0.5], "auto": [3.0]}
    small, large = relative_panels(arena)
    assert {curve.label for curve in small.curves} == {"lost", "auto"}
    assert {curve.label for curve in large.curves} == {"own", "lost", "auto"}
    lost = next(curve for curve in small.curves if curve.label == "lost")
    assert (lost.mean[-1], lost.bound.size) == (pytest.approx(20 - 30), 0)
    said = sentences.about_comparator(arena, standings(arena))
    assert "No comparator was computed at the own norm bound of lost (B = 0.5) and auto (B = 3): they are" in said


def test_a_theorem_is_held_to_its_own_ball_only(new_folder):
    assert bounds_table(arena_of(with_foreign_balls(new_folder)))["label"].tolist() == ["own"]


def test_no_word_of_balls_where_every_player_has_its_own(new_folder):
    folder = new_folder(repetitions=1)
    folder.add_comparator(0, 1.0, 30.0)
    folder.add_run("own", 0, 50.0, written={"norm_bound": 1.0})
    folder.add_run("free", 0, 50.0)
    arena = arena_of(folder)
    assert arena.foreign == {}
    assert "No comparator" not in sentences.about_comparator(arena, standings(arena))


# ------------------------------------------------------------------------------------------------------ the comparator


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ({1.0: 80.0, 3.0: 60.0}, "from B = 1 to B = 3 the loss fell from 80.0 to 60.0 nats, so larger norm bounds"),
        ({1.0: 60.5, 3.0: 60.0}, "from B = 1 to B = 3 the loss fell from 60.5 to 60.0 nats only, so a larger"),
        ({3.0: 60.0}, "larger balls hold stronger ones or the same, and were not computed."),
    ],
)
def test_a_weak_comparator_is_explained_by_its_numbers(new_folder, losses, said):
    folder = new_folder()
    for repetition in range(4):
        folder.add_run("good", repetition, 10.0)
        for bound, loss in losses.items():
            folder.add_comparator(repetition, bound, loss)  # its mistakes: half the loss
    arena = arena_of(folder)
    text = sentences.about_comparator(arena, standings(arena))
    assert "good makes far fewer mistakes (10.0 % against 30.0 %): linear models with rows of norm at most 3" in text
    assert said in text


def test_a_comparator_as_good_as_the_first_player_needs_no_word(new_folder):
    folder = new_folder()
    for repetition in range(4):
        folder.add_run("good", repetition, 25.0)
        folder.add_comparator(repetition, 3.0, 60.0)
    arena = arena_of(folder)
    assert "far fewer" not in sentences.about_comparator(arena, standings(arena))
