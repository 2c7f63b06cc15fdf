"""The comparison of stackcb with fastcb: what is counted and written; no round is played here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.result_pages import default_agent as told
from benchmarks.commands import stack


def lines(name: str, held: bool, mistakes: list[tuple[float, ...]]) -> list[told.Line]:
    return [
        told.Line(name, held, 100, 3, 2, player, m, 1.0, 0) for player, m in zip(told.PLAYERS, mistakes, strict=True)
    ]


FIRST = lines("one", False, [(20.0, 24.0), (10.0, 30.0), (15.0, 12.0), (40.0, 40.0), (10.0, 12.0)])
SECOND = lines("two", True, [(10.0, 10.0), (20.0, 20.0), (20.0, 20.0), (20.0, 20.0), (12.0, 13.0)])


def test_the_best_other_is_chosen_on_the_first_half_and_compared_on_the_second() -> None:
    assert told.lead(FIRST) == pytest.approx(12.0 - 30.0)
    assert told.lead(SECOND) == pytest.approx(3.0)
    assert told.lead(FIRST, told.LINEAR) == pytest.approx(12.0 - 30.0)
    fourier_ahead = [*SECOND[:3], SECOND[3]._replace(mistakes=(1.0, 1.0)), SECOND[4]]
    assert told.lead(fourier_ahead) == pytest.approx(12.0)
    assert told.lead(fourier_ahead, told.LINEAR) == pytest.approx(3.0)


def test_summary_counts_what_the_table_shows() -> None:
    everything, held = told.summary([*FIRST, *SECOND]).splitlines()[2:]
    assert everything.startswith("| all 2 | 1.000 |")
    assert everything.endswith(f"| {np.sqrt(11.0 / 22.0 * 12.5 / 10.0):.3f} | 1 | 1 | 1 | 0 in 4 |")
    assert held.startswith("| held 1 | 1.000 |")


def test_files_are_written_between_the_markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "PLACE", tmp_path)
    page = tmp_path / "default-agent.md"
    page.write_text("before\n<!-- table: tables -->\nold\n<!-- end -->\n<!-- table: summary -->\n<!-- end -->\nafter\n")
    stack.write([*FIRST, *SECOND])
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before\n<!-- table: tables -->\n| table |")
    assert "| two (held) | 100 | 3 | 2 | 10.0 | 20.0 | 20.0 | 20.0 | 12.5 | +3.0 |\n<!-- end -->" in text
    assert text.endswith("<!-- end -->\nafter\n")
    rows = (tmp_path / "default-agent.csv").read_text().splitlines()
    assert rows[0] == "table,held,rounds,n_classes,n_features,player,mean,standard_error,mistakes,changes"
    assert rows[5] == "one,False,100,3,2,stackcb,11.000,1.000,10.00 12.00,0"
    assert len(rows) == 11


def test_fourier_features_have_norm_one() -> None:
    Z = stack.fourier(np.random.default_rng(0).standard_normal((40, 3)), 5)
    assert Z.shape == (40, 600)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0)
    assert np.linalg.norm(Z, axis=1).max() <= 1.0
