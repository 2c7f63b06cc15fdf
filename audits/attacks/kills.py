"""Workers, the main process, or all of them killed at random moments of a sweep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from audits.attacks.flips import unlike
from audits.attacks.lines import Line
from banditlab.results.reading import finished_runs

TITLE = "Kills"
WORDS = """`banditlab run` receives SIGKILL at a random moment. The signal goes to one of two workers (repeatedly), to
the main process, or to the main process and its workers at once. An outcome is `right` if no stored result is lost, the
workers end within five seconds of the main process, and the resumed sweep has the values of an undisturbed one, without
a failed run."""
COUNT = 216
"""Kills, a third of each kind."""
SPEC = """
name = "kills"
rounds = {rounds}
repetitions = {repetitions}
checkpoints = [10]
norm_bounds = [1.0]
environment = [{{ id = "banditlab/Logistic-v0", n_features = 2, n_classes = 2 }}]
agent = [{{ id = "uniform" }}, {{ id = "banditron" }}]
"""
GONE_SECONDS = 5.0


def start(place: Path, out: Path, jobs: int) -> subprocess.Popen[bytes]:
    """Start the sweep in a process group of its own."""
    command = [sys.executable, "-m", "banditlab", "run", "spec.toml", "-o", str(out), "--no-report", "-j", str(jobs)]
    log = (place / f"{out.name}.log").open("ab")
    return subprocess.Popen(command, cwd=place, stdout=log, stderr=log, start_new_session=True)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def are_gone(pids: list[int], seconds: float) -> bool:
    """Return whether all processes end within so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(_lives(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def finish(place: Path, out: Path) -> int:
    """Run the sweep to its end and return the exit code."""
    return start(place, out, 2).wait(600)


def is_as(out: Path, truth: pd.DataFrame) -> bool:
    """Return whether a folder holds the values of the undisturbed sweep, and no failure."""
    if list((out / "failed").glob("*.json")) or not (out / "results.parquet").exists():
        return False
    return not unlike(pd.read_parquet(out / "results.parquet"), truth, ("seconds",))


def kill_workers(place: Path, out: Path, kills: int, rng: np.random.Generator) -> int:
    """Kill workers of one sweep, at most so many times, and return how often."""
    main, killed, before = start(place, out, 2), 0, set[str]()
    while main.poll() is None:
        time.sleep(float(rng.uniform(0.1, 6.0)))
        workers = children(main.pid)
        if killed < kills and workers:
            before |= finished_runs(out) if out.exists() else set()
            os.kill(int(rng.choice(workers)), signal.SIGKILL)
            killed += 1
    code = main.returncode
    if code == 2:  # workers were killed before they began a run, again and again: a line says so
        code = finish(place, out)
    if before - finished_runs(out) or code != 0:
        raise AssertionError(f"{len(before - finished_runs(out))} runs gone, exit code {code}")
    return killed


def kill_main(place: Path, out: Path, rng: np.random.Generator, *, alone: bool) -> bool:
    """Kill the main process of a sweep, alone or with its workers; return whether all ended and nothing stored is gone."""
    main = start(place, out, int(rng.integers(1, 3)))
    time.sleep(float(rng.uniform(0.2, 8.0)))
    before = finished_runs(out) if (out / "shards").exists() else set()
    workers = children(main.pid)
    if alone:
        main.kill()
    else:
        os.killpg(main.pid, signal.SIGKILL)
    main.wait()
    gone = are_gone(workers, GONE_SECONDS)
    return gone and not before - finished_runs(out)


def attack(count: int, seed: int) -> list[Line]:
    """Kill `count` times and return a line for each kind."""
    rngs = [np.random.default_rng([seed, 11, i]) for i in range(3)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(3) as threads:
        place, each = Path(folder), max(1, count // 3)
        (place / "spec.toml").write_text(SPEC.format(rounds=100_000, repetitions=30))
        finish(place, place / "truth")
        truth = pd.read_parquet(place / "truth" / "results.parquet")
        kinds = [threads.submit(_workers, place, truth, each, rngs[0])]
        kinds += [threads.submit(_mains, place, truth, each, rngs[1 + both], alone=not both) for both in (False, True)]
        lines = [kind.result() for kind in kinds]
        logs = "".join(file.read_text() for file in place.glob("*.log"))
    return [lines[0]._replace(tracebacks=logs.count("Traceback")), *lines[1:]]  # one log for all of them


def _workers(place: Path, truth: pd.DataFrame, count: int, rng: np.random.Generator) -> Line:
    killed = right = lost = wrong = 0
    while killed < count:
        out = place / f"workers{killed}"
        try:
            n = kill_workers(place, out, count - killed, rng)
        except AssertionError as error:
            print(f"workers: {error}", flush=True)
            n, lost = max(1, count - killed), lost + 1
        good = is_as(out, truth)
        killed, right, wrong = killed + n, right + n * good, wrong + (not good)
    return Line("a worker", killed, right, 0, lost, wrong)


def _mains(place: Path, truth: pd.DataFrame, count: int, rng: np.random.Generator, *, alone: bool) -> Line:
    """Kill sweep after sweep, the next one resuming the folder of the last until that is finished."""
    right = lost = wrong = 0
    name = "main alone" if alone else "both"
    out, folders = place / name, 0
    for i in range(count):
        good = kill_main(place, out, rng, alone=alone)
        right, lost = right + good, lost + (not good)
        if not good:
            print(f"{name}: kill {i} left workers or lost runs", flush=True)
        if len(finished_runs(out) if out.exists() else ()) == len(set(truth["run_id"])) or i == count - 1:
            finish(place, out)
            wrong += not is_as(out, truth)
            folders += 1
            out = place / f"{name}{folders}"
    return Line("the main process alone" if alone else "the main process and its workers", count, right, 0, lost, wrong)
