"""Every spec in runs/ is a valid sweep as it stands, and one of them uses the lab's own agent and environment."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

LAB = Path(__file__).parents[2]
ON_FETCHED_DATA = ("papers-003-figure-1-", "real-data", "boosting-", "bakeoff")
"""Specs of these names need data from elsewhere; test_lab_papers, test_lab_real_data, test_lab_boosting_tables and test_bakeoff
run them on stand-ins."""
SPECS = sorted(path.name for path in (LAB / "runs").glob("*.toml") if not path.name.startswith(ON_FETCHED_DATA))
PEERS = [spec for spec in SPECS if spec.startswith("peers-")]
"""Specs of this name play other libraries' methods, which the extra `peers` installs."""
LIBRARIES = ("vowpalwabbit", "river", "mabwiser")

PLAN = """
import json, sys
from banditlab.registry import registry
registry().open_lab(".")
from banditlab.engine import Sweep, read_spec
plans = {}
for spec in sys.argv[1:]:
    plan = Sweep(read_spec(f"runs/{spec}")).plan
    players = sorted({(run.environment["id"], run.player["id"]) for run in plan.runs})
    plans[spec] = {"runs": len(plan.runs), "skipped": len(plan.skipped), "players": players}
print(json.dumps(plans))
"""


@pytest.fixture(scope="module")
def plans() -> dict[str, dict[str, Any]]:
    """Plan all of them in another process: this one's registry is not to know the lab."""
    installed = all(find_spec(name) for name in LIBRARIES)
    command = [sys.executable, "-c", PLAN, *(spec for spec in SPECS if installed or spec not in PEERS)]
    out = subprocess.run(command, cwd=LAB, capture_output=True, text=True, check=True)
    return dict(json.loads(out.stdout))


EXAMPLES = ("lab", "long-stream", "quickstart")
RESULTS = LAB / "runs" / "results"
"""Where the README's first command writes, a copy of its spec included."""
STUDIES = sorted(
    str(path.relative_to(LAB))
    for path in (LAB / "runs").rglob("*.toml")
    if path.stem not in EXAMPLES and RESULTS not in path.parents
)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_names_its_cost_and_no_machines_place(name: str) -> None:
    text = (LAB / name).read_text(encoding="utf-8")
    hours = re.search(r"^# ([\d.]+) core-hours", text, re.MULTILINE)
    assert hours is not None
    assert 0 < float(hours[1]) < 24
    assert re.search(r'"/|\\\\|"~', text) is None


@pytest.mark.slow  # all runs of all specs are planned
@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_is_a_sweep_without_skips(plans: dict[str, dict[str, Any]], spec: str) -> None:
    for module in LIBRARIES if spec in PEERS else ():
        pytest.importorskip(module, reason=f'{module} is missing: pip install -e ".[peers]"')
    assert plans[spec]["skipped"] == 0
    assert plans[spec]["runs"] > 0


@pytest.mark.slow
def test_the_labs_own_are_used(plans: dict[str, dict[str, Any]]) -> None:
    assert ["lab/Drift-v0", "lab-linucb"] in plans["lab.toml"]["players"]
