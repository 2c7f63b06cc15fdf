"""The small studies behind pages of algorithms: the committed table is theirs, theorems hold in it, rows are replaced."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from benchmarks.commands import figures

with figures.TABLE.open(newline="", encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))


def test_the_table_has_every_study_and_no_other() -> None:
    assert list(dict.fromkeys(row["id"] for row in ROWS)) == list(figures.STUDIES)
    assert all(study.caption.endswith(".") for study in figures.STUDIES.values())


@pytest.mark.parametrize("id_", [id_ for id_, study in figures.STUDIES.items() if study.y == "nats"])
def test_regrets_are_below_their_certificates_and_these_below_their_bounds(id_: str) -> None:
    means = {(row["line"], row["x"]): float(row["mean"]) for row in ROWS if row["id"] == id_}
    places = {x for _, x in means}
    assert len(places) == len(figures.ROUNDS)
    for x in places:
        assert 0.0 < means["regret", x] <= means["certificate", x] <= means["bound", x] * (1 + 1e-3)


def test_shares_are_shares() -> None:
    shares = [float(row["mean"]) for row in ROWS if figures.STUDIES[row["id"]].y == "mistakes, %"]
    assert shares
    assert all(0.0 < share <= 100.0 for share in shares)


def test_quadratic_features_are_those_of_the_kernel() -> None:
    X = np.random.default_rng(0).standard_normal((5, 3))
    np.testing.assert_allclose(figures.quadratic(X) @ figures.quadratic(X).T, (1.0 + X @ X.T) ** 2)


def test_the_curved_stream_keeps_its_radius() -> None:
    env = figures.Curved(horizon=64)
    env.reset(seed=0)
    [(X, y)] = env.blocks(64, 64)
    assert np.linalg.norm(X, axis=1).max() <= 1.0
    assert np.linalg.norm(figures.quadratic(X), axis=1).max() <= 2.0
    assert set(np.unique(y)) <= {0, 1, 2}


def test_a_study_is_played_and_its_rows_alone_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "table.csv"
    table.write_text(",".join(figures.COLUMNS) + "\nfolklore-direct,regret,1,2,3,4\nkernel-gaf,regret,1,2,3,4\n")
    monkeypatch.setattr(figures, "TABLE", table)
    monkeypatch.setattr(figures, "STREAMS", 2)
    monkeypatch.setattr(figures, "ROUNDS", (10, 20))
    figures.main(only="folklore-direct", keep=True)
    lines = table.read_text().splitlines()
    assert len(lines) == 1 + 6 + 1
    assert lines[-1] == "kernel-gaf,regret,1,2,3,4"
    assert lines[1].startswith("folklore-direct,regret,10,")
