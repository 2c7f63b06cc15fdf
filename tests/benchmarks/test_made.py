"""Made streams beside linear agents: what is drawn and scaled, what is counted and written; few rounds are played."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.result_pages import default_agent as told
from benchmarks.commands import made
from benchmarks.measure import made_streams
from benchmarks.measure.made_streams import KINDS, Kind, scaled

LINES = [
    ("one", 100, 3, 2, player, mistakes)
    for player, mistakes in zip(
        told.MADE_PLAYERS, ("20 24", "10.5 11.5", "30 30", "40 40", "50 50", "12.0 15.0"), strict=True
    )
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_seed_draws_its_rounds_and_all_classes_come(kind: Kind) -> None:
    X, y = kind.draw(np.random.default_rng(5), 300)
    again, labels = kind.draw(np.random.default_rng(5), 300)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert X.shape[0] == len(y) == 300
    assert np.isfinite(X).all()
    assert set(y) == set(range(kind.n_classes))
    other, _ = kind.draw(np.random.default_rng(6), 300)
    assert not np.array_equal(X, other)


def test_waveforms_are_breiman_s() -> None:
    """Means of the three classes are those of the triangles; the last columns are noise."""
    X, y = made_streams.waveforms(np.random.default_rng(0), 30_000)
    places = np.arange(1, 22)
    low, middle, high = (np.maximum(6.0 - np.abs(places - top), 0.0) for top in (7, 11, 15))
    for label, pair in enumerate(((low, high), (low, middle), (high, middle))):
        expected = np.append(sum(pair) / 2.0, np.zeros(19))
        np.testing.assert_allclose(X[y == label].mean(axis=0), expected, atol=0.08)
    np.testing.assert_allclose(X[:, 21:].std(axis=0), 1.0, atol=0.03)


def test_scalings() -> None:
    X = np.array([[0.0, 100.0, 7.0], [1.0, 300.0, 7.0], [0.5, 200.0, 7.0]])
    for scaling in ("norm", "standard"):
        assert np.linalg.norm(scaled(X, scaling), axis=1).max() == pytest.approx(1.0, abs=1e-11)
        assert np.linalg.norm(scaled(X, scaling), axis=1).max() <= 1.0
    np.testing.assert_allclose(scaled(X, "norm")[:, :2], np.array([[0, 0], [1, 1], [0.5, 0.5]]) / np.sqrt(2.0))
    for scaling in ("norm", "standard"):
        np.testing.assert_allclose(scaled(X, scaling)[:, 2], 0.0)
    even = np.array([[1.0, 2.0], [3.0, 5.0]])  # ranges that are alike stay
    np.testing.assert_allclose(scaled(even, "norm"), even / np.sqrt(34.0))


def test_the_best_other_is_compared_stream_by_stream() -> None:
    row = told.made_table(LINES).splitlines()[-1]
    # 12 and 15 less 10.5 and 11.5: 1.5 and 3.5, a standard error of 1
    assert row == "| one | 100 | 3 | 2 | 22.0 | 11.0 | 30.0 | 40.0 | 50.0 | 13.5 | +2.5 ± 2.0 |"


@pytest.mark.slow
def test_all_kinds_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "default-agent.md").write_text((made.PLACE / "default-agent.md").read_text("utf-8"), "utf-8")
    (tmp_path / "default-agent.csv").write_bytes((made.PLACE / "default-agent.csv").read_bytes())
    monkeypatch.setattr(made, "PLACE", tmp_path)
    monkeypatch.setattr(made, "KINDS", tuple(kind._replace(rounds=60) for kind in KINDS[2:4]))
    made.main(streams=2, keep=True)
    lines = (tmp_path / told.MADE).read_text("utf-8").splitlines()
    assert len(lines) == 1 + 2 * len(told.MADE_PLAYERS)
    assert lines[1].startswith("genes,60,5,400,fastcb,")
    assert "| sequences | 60 | 3 | 240 |" in (tmp_path / "default-agent.md").read_text("utf-8")
