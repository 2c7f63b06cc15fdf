"""The study of new actions: what is better where, when one is found, what is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.result_pages import new_actions as page
from analysis.result_pages.late_answers import write
from benchmarks.commands import newaction


def test_the_new_action_is_as_good_as_it_is_said_to_be() -> None:
    made = newaction.world("better by .2 in half of the contexts", 0.7, 400, 0)
    assert made.right[:, :3].max(axis=1).tolist() == pytest.approx([0.7] * 400)
    assert sorted(set(made.right[:, 3].round(9))) == pytest.approx([0.3, 0.9])
    assert 0.4 < np.mean(made.right[:, 3] > 0.5) < 0.6
    assert newaction.world("never right", 0.5, 10, 0).right[:, 3].tolist() == [0.0] * 10
    assert (np.linalg.norm(made.X, axis=1) <= 1.0).all()


def test_a_new_action_is_found_when_most_of_25_decisions_chose_it() -> None:
    made = newaction.world("better by .2", 0.5, 100, 0)
    chosen = np.zeros(100, np.int64)
    assert newaction.found(chosen, made) == np.inf
    chosen[40:53] = 3
    assert newaction.found(chosen, made) == 53.0
    chosen[52] = 0
    assert newaction.found(chosen, made) == np.inf


def test_fastcb_finds_a_new_action_and_what_it_pays_is_what_it_missed(tmp_path: Path) -> None:
    lines = list(newaction.measured("fastcb", 0.7, 300, 1))
    assert [line.new_action for line in lines] == list(page.KINDS)
    assert lines[0].found[0] <= page.SOON
    assert lines[0].price[0] < -100.0
    assert 0.0 < lines[-1].price[0] < 90.0
    write(tmp_path / "new-actions.csv", page.Line, lines)
    found, price = page.parts(tmp_path).values()
    assert found.splitlines()[2].startswith("| fastcb | 70% | better by .2 | 1 | 1 | ")
    assert price.splitlines()[-1].startswith("| fastcb | 70% | -")
