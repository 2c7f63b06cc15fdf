"""The study of docs/results/conformance.md at a size of seconds: no certificate that is false, and a search that bites."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.commands import conformance
from benchmarks.commands.conformance import Blind, Cell, Search, Stream


@pytest.mark.parametrize(("name", "least"), [("folklore", 0.6), ("aioli", 0.4), ("ogd", 0.2), ("ftrl", 0.3)])
def test_no_false_certificate(name: str, least: float) -> None:
    found = conformance.search(name, random=25, climbs=2, steps=8, seed=2)
    assert found.false == 0
    assert found.nan == 0
    assert least < found.ratio <= 1.0 + conformance.SLACK


def test_the_search_finds_what_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate of half its size is caught."""

    class Boastful(conformance.OGD):
        def certificate(self) -> float:
            return 0.05 * super().certificate()

    monkeypatch.setattr(conformance, "OGD", Boastful)
    assert conformance.search("ogd", random=25, climbs=1, steps=3, seed=2).false > 0


def test_streams_lie_within_their_radius() -> None:
    rng = np.random.default_rng(0)
    for name in ("folklore", "aioli", "ons"):
        for _ in range(50):
            s = conformance.drawn(rng, name)
            for _ in range(5):
                s = conformance.changed(rng, name, s)
                assert np.linalg.norm(s.X, axis=1).max() <= s.R
                assert 0 <= s.y.min() <= s.y.max() < s.K
                assert 0.99e-6 <= s.R**2 / s.lam <= 1.01 * conformance.MOST.get(name, 1e12)


def test_the_comparator_is_in_the_ball() -> None:
    """Its loss is had by some W in the ball, and no better one is to be had."""
    from banditlab.comparators import best_in_ball, collapse

    rng = np.random.default_rng(1)
    for _ in range(5):
        s = conformance.drawn(rng, "ogd")._replace(R=1.0)
        X = s.X / np.linalg.norm(s.X, axis=1).max()
        s = s._replace(X=X, B=3.0)
        best = best_in_ball(*collapse(s.X, s.y, s.K), s.B)
        assert best.loss - best.gap <= conformance.best_loss(s) <= best.loss + 2e-6


def test_an_agent_that_peeks_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert conformance.blindness("banditron", 60, 2, 0).different == 0
    assert conformance.blindness("banditron", 60, 2, 0).replaced > 20
    plain = conformance._actions

    def peeking(cls: Any, X: Any, y: Any, K: int) -> Any:
        actions = plain(cls, X, y, K)
        actions[1:] = (actions[1:] + y[:-1]) % K
        return actions

    monkeypatch.setattr(conformance, "_actions", peeking)
    assert conformance.blindness("banditron", 60, 2, 0).different > 0


def test_the_page_says_its_counts() -> None:
    cells = [Cell("folklore", 1e6, 15, 1e-12, 1e-13, 1, 0, 1e-9), Cell("ogd", math.nan, 15, 1e-15, 1e-15, 0, 2, 0.0)]
    searches = [Search("ogd", 10, 5, 1, 3, 0.5, "K = 2")]
    blinds = [Blind("banditron", 300, 70, 4, ""), Blind("x", 0, 0, 0, "needs y")]
    text = conformance.page(cells, searches, blinds, 60.0, "c")
    assert "among 14 certificates finds 3 that are below the regret." in text
    assert "Of 29 certificates that were also computed with 45 digits, 2 are below" in text
    assert "In 70 rounds with a wrong action" in text
    assert "; 4 actions changed" in text
    assert "| folklore | 1e+06 | 15 |" in text
    assert "| ogd | its own |" in text
    assert "* x: needs y" in text


def test_kinds_are_what_they_say() -> None:
    rng = np.random.default_rng(0)
    assert np.linalg.matrix_rank(conformance.contexts(rng, "span", 6, 3, 1.0)) == 1
    X = conformance.contexts(np.random.default_rng(5), "nearly", 9, 3, 2.0)
    X /= np.linalg.norm(X, axis=1)[:, None]
    close = np.linalg.norm(X[:, None] - X[None], axis=2) < 0.05  # at most 1e-3 apart before they are given a length
    assert 9 < close.sum() < 81
    s = conformance.stream(rng, 3, 2, 5, 1e6, 1.0)
    assert isinstance(s, Stream)
    assert s.R**2 / s.lam == pytest.approx(1e6)
