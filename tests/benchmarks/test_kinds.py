"""Tables of the kinds that are compared, what is counted of them, and that a stopped command goes on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.commands import kinds


@pytest.mark.parametrize("kind", kinds.KINDS)
@pytest.mark.parametrize("signal", [False, True])
def test_tables_have_all_classes_and_are_drawn_again_alike(kind: str, signal: bool) -> None:
    for seed in range(4):
        table, again = (kinds.KINDS[kind](np.random.default_rng(seed), signal) for _ in range(2))
        pd.testing.assert_frame_equal(table, again)
        assert 150 <= len(table) <= 450
        assert 2 <= table["label"].nunique() <= 4


def test_groups_have_one_label_and_slow_columns_their_variance() -> None:
    named = [kinds.grouped(np.random.default_rng(seed), False) for seed in range(12)]
    named = [table for table in named if "who" in table]
    assert 2 < len(named) < 10
    assert all((table.groupby("who")["label"].nunique() == 1).all() for table in named)
    Z = kinds.slow(np.random.default_rng(0), 4000, 3, 0.9)
    np.testing.assert_allclose(Z.std(axis=0), 1.0, atol=0.2)
    np.testing.assert_allclose((Z[1:] * Z[:-1]).mean(axis=0) / Z.var(axis=0), 0.9, atol=0.03)


def test_what_is_played_is_a_line_and_not_played_again(tmp_path, monkeypatch, capsys) -> None:
    played = []

    def judged(kind: str, index: int, has_signal: bool, repetitions: int, seeds: int) -> dict:
        played.append((kind, has_signal, index))
        row = {"kind": kind, "signal": has_signal, "index": index, "ahead_of_uniform": index == 0, "found": has_signal}
        return row | {"ahead_of_frequent": kind == "ordered" and index == 1}

    monkeypatch.setattr(kinds, "judged", judged)
    kinds.main(noise=1, signal=1, place=str(tmp_path))
    kinds.main(noise=2, signal=1, place=str(tmp_path))
    assert len(played) == len(set(played)) == 18
    counts = kinds.counted(pd.read_csv(tmp_path / "tables.csv")).set_index("kind")
    assert counts["noise"].tolist() == [2] * 6
    assert counts["found"].tolist() == counts["signal"].tolist() == [1] * 6
    assert counts["false_leads"].tolist() == [1, 1, 1, 1, 2, 0]
    assert "false_leads" in capsys.readouterr().out


@pytest.mark.xdist_group("comparison")
@pytest.mark.slow
def test_a_table_is_judged() -> None:
    row = kinds.judged("repeated", 0, True, 3, 3)
    assert row["found"]
    assert row["ahead_of_uniform"]
