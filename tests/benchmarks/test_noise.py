"""What a comparison at its defaults asserts over a few tables of noise, and that the page's table is made from its rows."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.commands import noise


@pytest.mark.xdist_group("comparison")
@pytest.mark.slow
def test_nothing_is_ahead_of_uniform_on_noise(tmp_path, monkeypatch):
    monkeypatch.setattr(noise, "SHAPES", [(150, 3, 5), (100, 3, 2)])
    found = noise.over_noise(tmp_path, 4, 4)
    assert found["ahead_of_uniform"].tolist() == [""] * 4
    assert found["pairs_apart"].tolist() == [0] * 4
    assert found["lead"].max() > 0.005  # somebody always comes first, and by points
    assert noise.shown_noise(found).splitlines()[-1].startswith("| all | | | 4 | 0 | 0 |")


def test_known_tables_come_from_one_model_and_are_fresh():
    X, y = noise.known_table(0)
    again, other = noise.known_table(0)[0], noise.known_table(len(noise.MODELS))[0]
    assert (again == X).all()
    assert X.shape == other.shape
    assert (other != X).all()
    assert set(y) == {0, 1}


def test_a_wrong_lead_is_counted():
    row = {"model": 0, "ranked": 3, "ranked_wrong": 1, "apart": 4, "apart_wrong": 0, "pairs": 6, "pairs_held": 5}
    table = pd.DataFrame([row | {"all_held": False}, row | {"ranked_wrong": 0, "pairs_held": 6, "all_held": True}])
    assert noise.shown_known(table).splitlines()[-1] == "| all | | | 2 | 6 | 1 | 8 | 0 | 1 | 0.917 |"


def test_student_s_t_covers_normal_means():
    table = noise.coverage(series=4000)
    normal = table[table["data"] == "normal"]
    assert normal["n"].tolist() == [3, 5, 10, 20, 40]
    assert normal["covered"].tolist() == pytest.approx([0.95] * 5, abs=0.012)


@pytest.mark.xdist_group("comparison")
@pytest.mark.slow
def test_over_tables_of_noise_nothing_is_asserted(tmp_path):
    found = noise.over_many(tmp_path, 8, 3, "fastcb,linucb,uniform")
    assert found["ahead"].tolist() == [False] * 3
    assert (found["wins"] + found["ties"] + found["losses"]).tolist() == [8] * 3
    assert noise.shown_over(found).splitlines()[-1].startswith("| 8 | 3 | 3 | 3 | ")
    assert noise.over_many(tmp_path, 8, 3, "fastcb,linucb,uniform").equals(found)  # it resumes
