"""The commands of docs/tutorials/another-policy.md, in its order, in an empty folder; what they estimate is what is true."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditlab import Policy, Sweep, make_spec
from banditlab.errors import UsageError
from banditlab.policy import evaluate_log, status_of_log

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "another-policy.md"
BEST, CHANCE = 0.8 + 0.2 / 3, 1 / 3
"""How often the offer of the plan is accepted, and an offer by chance."""
TAKES = {"free": "upgrade", "pro": "nothing", "team": "call"}


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("bash"), reason="the page's commands are bash")
def test_the_commands_run_and_the_intervals_hold_the_truth(tmp_path: Path) -> None:
    bin_, here = tmp_path / "bin", tmp_path / "here"
    bin_.mkdir()
    here.mkdir()
    for name, code in (("banditlab", ' -m banditlab "$@"'), ("python", ' "$@"')):
        (bin_ / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{code}\n')
        (bin_ / name).chmod(0o755)
    path = {"PATH": f"{bin_}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    script = "set -euo pipefail\n" + "\n".join(blocks)
    done = subprocess.run(
        ["bash", "-c", script], cwd=here, env=os.environ | path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "written: estimates.svg" in done.stdout
    assert "linucb learnt from " in done.stdout
    assert "better than the held-back decisions: better" in done.stdout
    for name, truth in (("uniform", CHANCE), ("best-single", CHANCE)):
        made = evaluate_log(here / "first.db", name).evaluation
        assert made.low < truth < made.high
    trained = evaluate_log(here / "first.db", "trained", after=500).evaluation
    assert trained.low < BEST < trained.high
    frozen = evaluate_log(here / "first.db", str(here / "second.policy"), after=1600).evaluation
    assert frozen.low < worth(here / "second.policy") < frozen.high
    holdback = status_of_log(here / "second.db").holdback
    assert holdback is not None
    assert 0.0 < holdback.low < BEST - CHANCE < holdback.high
    assert abs(holdback.held - 400) < 4.5 * 18
    exported = evaluate_log(here / "second.dsjson", logger="learning").evaluation
    assert exported.low < CHANCE < exported.high


def worth(file: Path) -> float:
    """Return the share of right offers of a policy that does not learn, over 600 customers."""
    policy, draw, found = Policy.load(file), random.Random(0), []
    for _ in range(600):
        plan = draw.choice(list(TAKES))
        p = policy.decide({"plan": plan, "age": draw.randint(18, 80)}).scores
        found.append(0.8 * p[TAKES[plan]] + 0.2 / 3)
    return float(np.mean(found))


def test_a_results_folder_has_no_single_decisions(tmp_path: Path) -> None:
    """As the page says: `results.parquet` has a row per run and checkpoint, and is refused as a log."""
    spec = {"name": "t", "rounds": 50, "norm_bounds": [], "environment": [{"id": "banditlab/SynSep-v0"}]}
    Sweep(make_spec({**spec, "agent": [{"id": "uniform"}], "repetitions": 2}, "t")).run(tmp_path / "out", jobs=1)
    results = pd.read_parquet(tmp_path / "out" / "results.parquet")
    assert not results.duplicated(["run_id", "round"]).any()
    assert results["run_id"].nunique() == 2
    assert not {"action", "propensity", "reward"} & {*results.columns}
    with pytest.raises(UsageError, match="--action must name a column; --reward must name a column"):
        evaluate_log(tmp_path / "out" / "results.parquet")
