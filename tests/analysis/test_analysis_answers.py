"""The first screen: who wins, by how much, how sure, against what, who guesses and why; each with numbers of its own."""

from __future__ import annotations

import re

import pytest

from banditlab.analysis.answers import answer
from banditlab.analysis.arena import arenas
from banditlab.analysis.sentences import the_game
from banditlab.analysis.summary import standings
from banditlab.analysis.tables import load
from banditlab.analysis.words import without_what_is_common


def answers_of(folder):
    arena = arenas(load(folder.write()))[0]
    return answer(arena, standings(arena))


def test_a_winner_with_lead_surety_scale_and_those_who_guess(new_folder):
    folder = new_folder()
    for r in range(4):
        folder.add_comparator(r, 3.0, 30.0 + r)
        for gamma in (0.1, 0.2):
            folder.add_run("fastcb", r, 7.0 + r + 100 * (gamma - 0.1), written={"gamma": gamma})
        folder.add_run("second", r, 19.0 + 2 * r)
        bound = {"bound": 4321.0, "bound_unit": "nats"}
        folder.add_run("proved", r, 80.0 + r, explored=97.0, written={"gamma": 0.5}, **bound)
        folder.add_run("uniform", r, 90.0 + r, explored=100.0)
    folder.groups = {"proved": "theory", "uniform": "baseline"}
    said = answers_of(folder)
    assert said.winner == "fastcb (γ=0.1)"
    assert said.verdict == "fastcb (γ=0.1) wins: wrong in 8.5 % of 100 rounds (95 % interval 6.4 to 10.6)."
    assert said.lead == "13.5 percentage points fewer mistakes than the next, second."
    assert said.sure.startswith("sure at 95 % from 4 repetitions, the difference is ")
    assert said.sure.endswith(" percentage points, on the same streams.")
    assert "told every label beforehand (the comparator, B = 3), in " in said.against
    scale = [float(part.split(" %")[0]) for part in said.against.split("in ") if part[:1].isdigit()]
    gaps = re.findall(r"([\d.]+) points (more|fewer) than the first here", said.against)
    best = 8.5
    assert [(float(gap), word) for gap, word in gaps] == [
        (pytest.approx(abs(each - best), abs=0.11), "more" if each > best else "fewer") for each in scale
    ]
    assert len(gaps) == len(scale) == 1
    assert said.guessing.startswith(
        "proved plays at random in 97.0 % of the rounds and is promised nothing: its "
        "bound, 4,321 mistakes, is more than the 100 rounds (vacuous); uniform guesses by design, for scale. A theorem holds"
    )
    assert said.promise.startswith(
        "1 setting has a proved bound on mistakes; none of these bounds is below the 100 rounds, none was exceeded"
    )


def test_a_tie_is_no_winner_and_says_what_is_sure(new_folder):
    folder = new_folder()
    for r in range(4):
        folder.add_run("one", r, 10.0 + r)
        folder.add_run("two", r, 11.0 + (3, 0, 2, -1)[r])
        folder.add_run("far", r, 50.0 + r)
    said = answers_of(folder)
    assert said.winner == ""
    assert said.verdict.startswith(
        "No single winner: one and two are tied first. Fewest mistakes: one, wrong in 11.5 %"
    )
    assert said.lead == "one makes 40.0 percentage points fewer mistakes than the first player behind the tie, far."
    assert said.sure.startswith(
        "4 repetitions do not tell the tied ones apart. The lead on far: sure at 95 % from 4 repetitions, the difference is "
    )


@pytest.mark.parametrize(
    ("bounds", "below", "most"),
    [
        ((14.0, 19.0), "2 of these bounds are below the 100 rounds, none was exceeded", 44.0),
        (
            (69.0, 71.0),
            "1 of these bounds is below the 100 rounds, none was exceeded",
            99.0,
        ),  # 30 + 71 mistakes are not
    ],
)
def test_the_sharpest_promise_stands_beside_what_was_measured(new_folder, bounds, below, most):
    folder = new_folder()
    for r in range(2):
        folder.add_comparator(r, 3.0, 30.0)
        folder.add_run("proved", r, 21.0, bound=bounds[0], bound_unit="nats")
        folder.add_run("looser", r, 20.0, bound=bounds[1], bound_unit="nats")
    folder.groups = {"proved": "theory", "looser": "theory"}
    said = answers_of(folder).promise
    assert said.startswith(f"2 settings have a proved bound on mistakes; {below}.")
    assert said.endswith(f" The sharpest: proved is promised at most {most} mistakes; 21.0 were measured.")


def test_as_many_mistakes_as_the_next_are_no_lead(new_folder):
    folder = new_folder(repetitions=1)
    folder.add_run("one", 0, 10.0)
    folder.add_run("two", 0, 10.0)
    said = answers_of(folder)
    assert said.lead == "one makes as many mistakes as the next, two."
    assert said.verdict == "one is wrong in 10.0 % of 100 rounds, fewest in a single repetition; so is two."


@pytest.mark.parametrize("players", [1, 2])
def test_one_repetition_or_one_player_shows_nothing(new_folder, players):
    folder = new_folder(repetitions=1)
    for value in range(players):
        folder.add_run(f"p{value}", 0, 10.0 + value)
    said = answers_of(folder)
    if players == 1:
        assert said.verdict == "p0, alone here, is wrong in 10.0 % of 100 rounds."
        assert said.lead == "there is nobody to win against."
    else:
        assert said.verdict == "p0 is wrong in 10.0 % of 100 rounds, fewest in a single repetition."
        assert said.sure == "one repetition shows an order, and no evidence that it would come out again."
    assert said.guessing == ""


def test_titles_leave_out_what_all_of_a_name_share():
    titles = {
        "a": "Logistic with n_features=10, norm_bound=3, n_classes=3",
        "b": "Logistic with n_features=10, norm_bound=3, n_classes=10",
        "c": "Digits",
        "d": "Other with n_features=10",
    }
    short = without_what_is_common(titles)
    assert list(short.values()) == ["Logistic with n_classes=3", "Logistic with n_classes=10", "Digits", titles["d"]]
    apart = {"a": "X with p=1, q=2", "b": "X with p=1"}  # nothing would be left of the second
    assert without_what_is_common(apart) == {"a": "X with q=2", "b": "X with p=1"}
    odd = {"a": "X with name=f(1, 2), q=1", "b": "X with name=f(1, 3), q=1"}
    assert without_what_is_common(odd) == odd


def test_the_game_is_told_as_it_is_played():
    assert "told only whether that was right." in the_game(["bit"])
    assert "told the right one afterwards." in the_game(["label"])
    assert "Where it says so" in the_game(["bit", "label"])
