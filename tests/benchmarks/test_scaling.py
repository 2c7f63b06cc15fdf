"""The study of scalings: what becomes of a column, what is played, what the page says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.result_pages import scaling as page
from benchmarks.commands import scaling

N = 200


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(
        {"x": rng.normal(size=N), "z": rng.integers(0, 9, N), "gap": np.where(np.arange(N) % 5, 1.5, np.nan)}
    )
    return numbers.assign(
        kind=rng.choice(["u", "v"], N),
        id=[f"i{k}" for k in range(N)],
        **{"class": np.where(numbers["x"] > 0, "a", "b")},
    )


def test_columns_get_the_values_that_they_are_said_to_get() -> None:
    rng, x = np.random.default_rng(1), frame()["x"]
    counts = [int((scaling.of_column(x, values, rng) != x).sum()) for values in scaling.VALUES]
    assert counts == [0, 3, 1, N, N]
    for values in scaling.VALUES[3:]:
        assert scaling.of_column(x, values, rng).rank().tolist() == x.rank().tolist()
        assert scaling.of_column(frame()["gap"], values, rng).isna().sum() == N // 5
    assert scaling.of_column(frame()["kind"], "one at 1e9", rng).tolist() == frame()["kind"].tolist()


def test_scalings_are_what_the_page_says() -> None:
    x = frame()[["x"]]
    plain, _ = scaling.contexts(x, page.BEFORE)
    assert scaling.contexts(x, page.AUTO)[0].tobytes() == plain.tobytes()
    x.loc[3, "x"] = 1e9
    spread = {name: np.ptp(np.delete(scaling.contexts(x, name)[0][:, 0], 3)) for name in scaling.SCALINGS}
    assert spread[page.BEFORE] < 1e-8
    assert min(spread[name] for name in scaling.SCALINGS[1:]) > 0.1


@pytest.mark.slow
def test_the_study_is_played_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scaling.md").write_text((scaling.PLACE / "scaling.md").read_text("utf-8"), "utf-8")
    monkeypatch.setattr(scaling, "PLACE", tmp_path)
    monkeypatch.setattr(scaling, "AGENTS", ("fastcb", "linucb"))
    for name in ("one", "two"):
        frame().to_csv(tmp_path / f"{name}.csv.gz", index=False)
    scaling.main(tables=str(tmp_path), seeds=2, rounds=60, keep=True)
    lines = page.read(tmp_path / "scaling.csv")
    assert len(lines) == 2 * len(scaling.VALUES) * len(scaling.SCALINGS) * 2
    assert all(len(line.mistakes) == 2 for line in lines)
    text = (tmp_path / "scaling.md").read_text("utf-8")
    assert "| as they are | range | 1.00 | 1.00 |" in text
    assert page.parts(tmp_path) == {"ratios": page.ratios(lines), "clean": page.clean(lines)}
    capsys.readouterr()
    scaling.main(tables=str(tmp_path), seeds=2, rounds=60, keep=True)
    assert capsys.readouterr().out.startswith("| numeric columns |")  # no table is played again


def test_differences_and_ratios_by_hand() -> None:
    lines = [
        page.Line(table, page.CLEAN, name, "a", (first, second))
        for table, first, second in (("t", 10.0, 20.0), ("u", 2.0, 2.0))
        for name in (page.BEFORE, page.AUTO)
    ]
    lines[1] = lines[1]._replace(mistakes=(20.0, 40.0))
    assert page.ratios(lines).splitlines()[-1] == "| as they are | auto | 1.41 |"
    assert page.clean(lines).splitlines()[-1] == "| a | +7.50 (-7.20 to +22.20) | t +15.0 |"
