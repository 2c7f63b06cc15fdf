"""The search for broken promises finds one, climbs near one that is kept, and goes on where it was stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.measure.papers import search as module
from benchmarks.measure.papers.games import ROUNDS, Game, changed, drawn, hard
from benchmarks.measure.papers.lines import LINES, Line, Promised
from benchmarks.measure.papers.search import ratios, search, searched

SQUARED = next(line for line in LINES if line.name == "regression, squared")


def broken(g: Game) -> Promised:
    """The bound of Vovk, Azoury and Warmuth, three times too small."""
    p = SQUARED.play(g)
    return p._replace(bound=p.bound / 3.0)


def test_a_broken_bound_is_found_and_a_kept_one_is_nearly_met(capsys: pytest.CaptureFixture[str]) -> None:
    kept = search(SQUARED, 10, 5, 10)
    assert (kept.random, kept.searched, kept.false) == (10, 25, 0)
    assert 0.5 < kept.bound <= 1.0
    assert 0.9 < kept.certificate <= 1.0 + 1e-6
    assert "ABOVE" not in capsys.readouterr().out
    found = search(SQUARED._replace(play=broken), 10, 5, 10)
    assert found.false > 0
    assert found.bound > 1.0
    assert "ABOVE: regression, squared" in capsys.readouterr().out


def test_ratios_of_promises_that_are_none() -> None:
    assert ratios(Promised(1.0, float("nan"), float("inf"))) == (0.0, 0.0)
    assert ratios(Promised(1.0, 2.0, 0.0)) == (0.5, float("inf"))
    assert ratios(Promised(-1.0, 2.0, 0.0)) == (-0.5, 0.0)


@pytest.mark.parametrize("labels", ["hard", "hard 2", "soft", "soft 2", "targets"])
def test_games_keep_to_the_rules(labels: str) -> None:
    rng = np.random.default_rng(0)
    for make in (drawn, hard):
        g = make(rng, labels)
        for _ in range(60):
            assert np.linalg.norm(g.X, axis=1).max() <= 1.0
            assert 1 <= len(g.X) == len(g.Y) <= ROUNDS
            assert 1e-3 <= g.B <= 1e2
            assert 1e-4 <= g.lam <= 1e6
            if labels == "targets":
                assert np.abs(g.Y).max() <= 1.0
            else:
                np.testing.assert_allclose(g.Y.sum(axis=1), 1.0, atol=1e-12)
                assert g.Y.min() >= 0.0
            assert g.Y.shape[1] == 2 or not labels.endswith("2")
            g = changed(rng, g, labels, 0.5)


def test_parts_that_are_done_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    def play(g: Game) -> Promised:
        played.append(g)
        return SQUARED.play(g)

    lines = [Line(name, "targets", "-", play) for name in ("one", "two")]
    monkeypatch.setattr(module, "LINES", lines[:1])
    first = searched(tmp_path, 3, 2, 2)
    count = len(played)
    monkeypatch.setattr(module, "LINES", lines)
    both = searched(tmp_path, 3, 2, 2)
    assert both[0] == first[0]
    assert len(played) == 2 * count  # the second line only
    assert searched(tmp_path, 3, 2, 2) == both
    assert len(played) == 2 * count
    searched(tmp_path, 4, 2, 2)  # other counts are other parts
    assert len(played) > 2 * count
    monkeypatch.setattr(module, "digest", lambda: "edited")
    before = len(played)
    searched(tmp_path, 3, 2, 2)
    assert len(played) == before + 2 * count
