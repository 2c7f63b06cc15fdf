"""The notebook of simulated weak learners, in small: its table is the theorem's, its figure is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

LAB = Path(__file__).parents[2]


def test_the_notebook_in_small(notebook: Callable[..., str], tmp_path: Path) -> None:
    """Eight rounds: no adversarial run above its bound, phi_1(0) by hand, a picture."""
    said = notebook("boosting_edges.py", tmp_path, rounds="8", figures=tmp_path)
    assert "0 of 21 runs of OnlineMBBM above Theorem 2's bound" in said
    table = pd.read_csv(tmp_path / "results" / "boosting-edges.csv")
    assert len(table) == 2 * 6 * 12 - 3
    alone = table[(table["booster"] == "OnlineMBBM") & (table["N"] == 1)]
    np.testing.assert_allclose(
        alone["phi_N(0)"], 1 - 1 / alone["classes"] - alone["edge"] * (1 - 1 / alone["classes"]), atol=1e-5
    )
    assert (table["mistakes"] <= 8).all()
    assert (tmp_path / "images" / "boosting-edges.png").stat().st_size > 10_000


def test_the_published_table_keeps_to_the_bound() -> None:
    table = pd.read_csv(LAB / "docs" / "results" / "boosting-edges.csv")
    told = table.dropna(subset="bound, S = 1")
    assert len(told) == 21
    assert (told["0-1 loss, ties lost"] <= told["bound, S = 1"]).all()
