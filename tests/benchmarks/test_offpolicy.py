"""The study of off-policy evaluation: what is drawn, what counts as missed, what is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.result_pages import offpolicy as page
from banditlab.offpolicy import Log, RunningBound, evaluate
from benchmarks.commands import offpolicy as study


@pytest.mark.parametrize("name", page.FIXED[:3])
def test_a_fixed_logger_plays_what_it_logs(name: str) -> None:
    log = study.fixed(name, 4000, np.random.default_rng(0))
    own = log.p[np.arange(4000), log.actions]
    assert (1.0 / own).mean() == pytest.approx(study.K, abs=0.8)
    assert log.p.sum(axis=1) == pytest.approx(1.0)
    assert np.abs(log.predictions[-500:] - log.chances[0, log.contexts[-500:]]).mean() < 0.25
    assert (log.predictions[0] == 0.5).all()


@pytest.mark.parametrize("name", page.LEARNING)
def test_a_logger_learns(name: str) -> None:
    log = study.learning(name, 600, np.random.default_rng(1))
    assert log.p.sum(axis=1) == pytest.approx(1.0)
    assert log.p.min() > 0.0
    played = log.chances[np.arange(600), log.contexts, log.actions]
    assert played[450:].mean() > log.chances[450:].mean() + 0.15
    assert log.rewards[450:].mean() == pytest.approx(played[450:].mean(), abs=0.12)
    assert (log.chances[0] != log.chances[-1]).all() == ("change" in name)


@pytest.mark.parametrize("depth", [0.0, study.DEPTH])
def test_the_wealth_after_all_rounds_is_the_bounds(depth: float) -> None:
    log = study.learning(page.LEARNING[0], 200, np.random.default_rng(2))
    target = study.policy("uniform", log)[log.contexts]
    x = study.terms(target, log, log.rewards, log.predictions, depth)
    bound = RunningBound(depth)
    bound.add(x)
    means = np.full(200, 0.3)
    assert study.log_wealth(x, means, depth)[-1] == pytest.approx(bound.wealth(0.3))
    predictions = log.predictions if depth else None
    found = evaluate(Log(log.actions, log.rewards, log.p, target, predictions), logger="learning")
    assert found.low == pytest.approx(bound.bound(0.025), abs=1e-10)
    assert not study.ever_missed(target, log, np.full(200, (found.low + found.high) / 2.0), depth)
    assert study.ever_missed(target, log, np.full(200, found.low - 0.01), depth)
    assert study.ever_missed(target, log, np.full(200, found.high + 0.01), depth)


@pytest.mark.parametrize("name", ["uniform", study.ESTIMATED, page.LEARNING[1]])
def test_a_line_for_each_target(name: str) -> None:
    lines = pd.DataFrame(study.of_logger(name, 150, 2))
    assert tuple(lines["target"]) == study.TARGETS
    assert lines["held"].isna().all() == (name == study.ESTIMATED)
    assert (lines["size"] <= 150.0001).all()
    assert lines["held_normal_robust"].between(0.0, 1.0).all()


def test_tables_are_read_as_they_were_written(tmp_path: Path) -> None:
    kinds = ["uniform", study.ESTIMATED, page.LEARNING[0]]
    rows = []
    for kind in kinds:
        row = {"logger": kind, "target": "uniform", "rounds": 500, "logs": 9, "size": 250.0}
        row |= {f"error_{name}": 0.0123 for name in page.ERRORS}
        for name in page.INTERVALS:
            row |= {f"held{name}": np.nan if kind == study.ESTIMATED and "normal" not in name else 0.96}
            row |= {f"width{name}": 0.125}
        rows.append(row)
    pd.DataFrame(rows).to_csv(tmp_path / "offpolicy.csv", index=False)
    parts = page.parts(tmp_path)
    fixed = "| uniform | uniform | 500 | 250 | 96.0 (0.125) | 96.0 (0.125) | 96.0 (0.125) | 96.0 (0.125) |"
    assert parts["fixed"].splitlines()[-1] == fixed
    assert parts["estimated"].splitlines()[-1].count("| - |") == 1
    assert parts["errors"].splitlines()[-1].endswith("| 1.23 | 1.23 | 1.23 | 1.23 |")
    assert (parts["least-fixed"], parts["logs"]) == ("96.0 %", "9")
