"""Tables and lab files that are replaced, edited or taken away while a sweep runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from audits.attacks.flips import unlike
from audits.attacks.lines import Line, line
from banditlab.engine import Sweep
from banditlab.engine.plan import Run
from banditlab.results.reading import finished_runs

TITLE = "Replaced inputs"
WORDS = """The attack replaces a sweep's table, or the file of a lab, at a random moment. The table counts runs. A run
is `right` if its values are those of the file content that its id identifies. It is `named` if it is recorded as failed
because the file was replaced. The sweep then runs again on the new files, and all runs must be right."""
COUNT = 40
AGENT = """
import numpy as np
from banditlab.agents import Agent
from banditlab.problem import Decision

class Fixed(Agent):
    id = "fixed"
    summary = "plays one class"
    explores = False

    def act(self, context):
        p = np.zeros(self.problem.n_classes)
        p[{action}] = 1.0
        return Decision({action}, p)

    def learn(self, context, decision, correct):
        pass
"""


def table(seed: int) -> str:
    """Return a CSV file of 8 rows."""
    rng = np.random.default_rng(seed)
    rows = [f"{a:.3f},{b:.3f},{'xy'[i % 2]}" for i, (a, b) in enumerate(rng.random((8, 2)))]
    return "\n".join(["a,b,kind", *rows]) + "\n"


def sweep_of(file: Path, repetitions: int) -> Sweep:
    """Return the sweep on a table."""
    environment = [{"id": "banditlab/Table-v0", "path": str(file), "label": "kind"}]
    agents: list[dict[str, Any]] = [{"id": "uniform"}, {"id": "banditron"}]
    keys: dict[str, Any] = {"rounds": 12, "checkpoints": [6], "norm_bounds": [1.0]}
    return Sweep(**keys, repetitions=repetitions, environment=environment, agent=agents)


class Replaced:
    """Replaces a file at the given call of a sweep's watcher, or when the given run builds its environment."""

    def __init__(self, at: int, replace: Callable[[], None]) -> None:
        self.at, self.replace, self.calls = at, replace, 0

    def __call__(self, _: Any = None) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.replace()


def put(file: Path, text: str) -> None:
    """Replace a file as an editor does, in one step."""
    fresh = file.with_name(f".{file.name}")
    fresh.write_text(text)
    os.replace(fresh, file)


def counted(out: Path, sweep: Sweep, truth: pd.DataFrame) -> Counter[str]:
    """Return how the runs of a sweep whose file was replaced ended."""
    found: Counter[str] = Counter()
    there = pd.read_parquet(out / "results.parquet") if (out / "results.parquet").exists() else truth[:0]
    finished = finished_runs(out)
    for run in sweep.plan.runs:
        failure = out / "failed" / f"{run.run_id}.json"
        if run.run_id in finished:
            mine, whole = (frame[frame["run_id"] == run.run_id] for frame in (there, truth))
            different = unlike(mine, whole, ("seconds",))
            found["wrong" if different else "right"] += 1
        else:
            error = json.loads(failure.read_text())["error"] if failure.exists() else ""
            found["named" if "after the sweep was planned" in error or "no file" in error else "lost"] += 1
    return found


def attack_table(place: Path, i: int, rng: np.random.Generator) -> tuple[Counter[str], Counter[str]]:
    """Replace a table while a sweep runs, then run the sweep anew; return how the runs of both ended."""
    file = place / f"{i}.csv"
    old, new = table(2 * i), table(2 * i + 1)
    results = []
    for name, text in (("new", new), ("old", old)):
        put(file, text)
        sweep = sweep_of(file, 3)
        sweep.run(place / f"{i}-{name}")
        results.append(pd.read_parquet(place / f"{i}-{name}" / "results.parquet"))
    fresh, truth = results
    out, gone = place / f"{i}-out", rng.random() < 0.1
    change = file.unlink if gone else lambda: put(file, new)
    watcher = Replaced(int(rng.integers(1, 12)), change)
    if rng.random() < 0.5:  # between two builds of environments, where no watcher is told
        build = Run.build_environment

        def built(run: Run) -> Any:
            watcher()
            return build(run)

        Run.build_environment = built  # type: ignore[method-assign]
        try:
            sweep.run(out)
        finally:
            Run.build_environment = build  # type: ignore[method-assign]
    else:
        sweep.run(out, watch=watcher)
    first = counted(out, sweep, truth)
    put(file, new)
    again = sweep_of(file, 3)
    again.run(out)
    return first, counted(out, again, fresh)


def attack_lab(place: Path, i: int, rng: np.random.Generator) -> Counter[str]:
    """Edit a lab's agent while a sweep runs in other processes; return how the runs ended."""
    lab = place / f"lab{i}"
    (lab / "agents").mkdir(parents=True)
    file = lab / "agents" / "fixed.py"
    file.write_text(AGENT.format(action=0))
    code = f"""
import json, sys
from pathlib import Path
from banditlab.registry import registry
registry().open_lab({str(lab)!r})
from banditlab.engine import Sweep
keys = {{"rounds": 12, "repetitions": 4, "environment": [{{"id": "banditlab/Logistic-v0", "n_features": 2, "n_classes": 2}}],
        "agent": [{{"id": "uniform"}}, {{"id": "fixed"}}]}}
Sweep(**keys).run("truth")
sweep = Sweep(**keys)
Path({str(file)!r}).write_text({AGENT.format(action=1)!r})
from banditlab.engine import processes
while processes._idle:  # others, which read the file as it is now
    processes._idle.pop().end()
result = sweep.run("out")
print(json.dumps([run.run_id for run in sweep.plan.runs if run.label == "fixed"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=lab, capture_output=True, text=True, timeout=600, check=False
    )
    found: Counter[str] = Counter()
    if done.returncode:
        print(done.stderr[-2000:], flush=True)
        return Counter(lost=4)
    finished = finished_runs(lab / "out")
    for run_id in json.loads(done.stdout):
        failure = lab / "out" / "failed" / f"{run_id}.json"
        if run_id in finished:
            found["wrong"] += 1
        else:
            found["named" if "after the sweep was planned" in failure.read_text() else "lost"] += 1
    return found


def attack(count: int, seed: int) -> list[Line]:
    """Replace tables `count` times and lab files a tenth as often; return a line for each."""
    rng = np.random.default_rng([seed, 23])
    sums: dict[str, Counter[str]] = {
        title: Counter()
        for title in ("a table replaced or taken away", "the same sweep afterwards", "a lab's file edited")
    }
    first, again, lab = sums.values()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(count):
            found = attack_table(Path(folder), i, rng)
            first += found[0]
            again += found[1]
        for i in range(max(1, count // 20)):
            lab += attack_lab(Path(folder), i, rng)
    return [line(title, found) for title, found in sums.items()]
