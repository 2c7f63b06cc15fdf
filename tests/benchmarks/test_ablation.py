"""The ablation of stackcb: what a part switched off changes, and how ratios are formed; few rounds are played."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from banditlab import Problem, make_agent
from benchmarks.commands import ablation

COLUMNS = ["tables", "table", "part", "mistakes", "us_per_round"]


def test_near_copies_weigh_as_one_and_the_worst_table_is_named() -> None:
    runs = [
        *(("a", table, "stackcb", 10.0, 50.0) for table in ("allbp", "allrep", "other")),
        *(
            ("a", table, "ridge expert", share, 40.0)
            for table, share in (("allbp", 20.0), ("allrep", 20.0), ("other", 10.0))
        ),
    ]
    lines = ablation.summed(pd.DataFrame(runs, columns=COLUMNS)).set_index("without")
    assert lines.loc["stackcb", ["ratio", "standard_error", "most_pp"]].tolist() == [1.0, 0.0, 0.0]
    assert lines.loc["ridge expert", "ratio"] == pytest.approx(np.sqrt(2.0), abs=1e-4)
    worst = lines.loc["ridge expert", ["n", "most_on", "most_pp"]]
    assert worst.tolist() == [2, "allbp", 10.0]


@pytest.mark.slow
@pytest.mark.parametrize("part", ablation.PARTS)
def test_every_part_is_switched_off_and_the_blocks_are_restored(part: str) -> None:
    X, y = np.random.default_rng(0).uniform(-0.25, 0.25, (60, 12)), np.arange(60) % 3
    bandwidths = ablation.views.BANDWIDTHS
    mistakes, _ = ablation.play(ablation.PARTS[part], 3, X, y, 0)
    assert 0.0 <= mistakes <= 100.0
    assert ablation.views.BANDWIDTHS is bandwidths


@pytest.mark.slow
def test_a_silent_expert_has_no_margin() -> None:
    agent = make_agent("stackcb", Problem(2, 3, 1.0), seed=0)
    ablation.silent(1)(agent)
    assert agent.state.linear.P[1].max() == pytest.approx(0.5e-12)
    assert agent.state.linear.P[0].max() > 1.0
