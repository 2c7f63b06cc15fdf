"""Sweeps on a Dask cluster: what a task costs, and whether faults change what is stored.

Workers and scheduler are processes of this machine. `--empty N` sends N tasks that do nothing; `--faults N` draws N scenarios
of one to three faults at random and compares what is stored with one machine's; `--namespaces` plays on two workers in network
and mount namespaces of their own, once undisturbed and once with a cable cut (root on Linux).
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from banditlab.engine import Sweep
from benchmarks.measure.rig import Rig

HANG = 400.0
"""Seconds after which a scenario counts as hanging."""
SPEC = """
name = "cluster"
rounds = {rounds}
repetitions = {repetitions}
norm_bounds = {balls}
[[environment]]
id = "banditlab/Logistic-v0"
[[agent]]
id = "banditron"
grid = {{ gamma = [0.02, 0.05, 0.1, 0.2] }}
[[agent]]
id = "uniform"
"""
LINE = [sys.executable, "-m", "banditlab", "run", "sweep.toml", "--no-report"]


def main(
    *,
    empty: int = 0,
    faults: int = 0,
    seed: int = 0,
    namespaces: bool = False,
) -> None:
    """Do what was asked for."""
    with tempfile.TemporaryDirectory(prefix="banditlab-cluster-") as folder:
        place = Path(folder)
        if empty:
            _empty(place / "empty", empty)
        if faults:
            _faults(place / "faults", faults, seed)
        if namespaces:
            _namespaces(place / "namespaces")


# ------------------------------------------------------------------------------------------------------------ overhead


def _empty(folder: Path, n: int) -> None:
    """Print what the driver and the scheduler spend on a task of nothing."""
    from banditlab.engine.executors.cluster import on_cluster
    from banditlab.engine.work import Task
    from banditlab.results.store import Store

    folder.mkdir()
    rig = Rig(folder).start(2)
    try:
        store = Store(folder / "out")
        with on_cluster(rig.address, store, 60.0) as cluster:
            sweep = Sweep(rounds=10, environment=[{"id": "banditlab/Logistic-v0"}], agent=[{"id": "uniform"}])
            cluster.submit(Task(str(store.folder), (), tuple(sweep.plan.runs)))
            list(cluster.completed())  # processes have started
            scheduler, driver = _seconds_of(rig.processes["scheduler"].pid), time.process_time()
            begin = time.perf_counter()
            for _ in range(n):
                cluster.submit(Task(str(store.folder), (), ()))
            back = sum(task is not None for _, task in cluster.completed())
            wall = time.perf_counter() - begin
            scheduler, driver = _seconds_of(rig.processes["scheduler"].pid) - scheduler, time.process_time() - driver
        print(
            f"{back:,} tasks of nothing on 2 workers: {1e3 * wall / n:.2f} ms a task; processor time of a task: driver "
            f"{1e3 * driver / n:.2f} ms, scheduler {1e3 * scheduler / n:.2f} ms",
            flush=True,
        )
    finally:
        rig.end()


def _seconds_of(process: int) -> float:
    """Return the processor seconds of another process (Linux)."""
    import os

    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -------------------------------------------------------------------------------------------------------------- faults


class Scenario:
    """One sweep on a rig, with what happens to it; the driver is the command line."""

    def __init__(self, rig: Rig, folder: Path, rng: np.random.Generator) -> None:
        self.rig, self.folder, self.rng = rig, folder, rng
        self.driver = self._driver()

    def _driver(self) -> subprocess.Popen[bytes]:
        with (self.folder / "driver.log").open("ab") as log:
            line = [*LINE, "-o", "out", "--cluster", self.rig.address, "--patience", "30"]
            return subprocess.Popen(line, cwd=self.folder, stdout=log, stderr=log)

    def worker(self) -> str:
        there = [name for name in self.rig.processes if name != "scheduler"]
        return str(self.rng.choice(there or ["w0"]))

    def run(self, deeds: list[tuple[float, str]]) -> tuple[float, int]:
        """Play until the command says that all is done; return (seconds, how often it was started)."""
        begin, starts = time.monotonic(), 1
        left = list(deeds)
        while time.monotonic() - begin < HANG:
            if left and time.monotonic() - begin > left[0][0]:
                DEEDS[left.pop(0)[1]](self)
            code = self.driver.poll()
            if code == 0:
                return time.monotonic() - begin, starts
            if code is not None:
                for name in self.rig.processes:
                    self.rig.signal(name, signal.SIGCONT)
                self.rig.mend()
                self.driver, starts = self._driver(), starts + 1
            time.sleep(0.05)
        self.driver.kill()
        self.driver.wait()
        return float("inf"), starts


def _kill(scene: Scenario) -> None:
    name = scene.worker()
    if name in scene.rig.processes:
        scene.rig.kill(name)
    if len(scene.rig.processes) < 2:  # a cluster without workers is another scenario
        scene.rig.mend()


def _kill_all(scene: Scenario) -> None:
    for name in [name for name in scene.rig.processes if name != "scheduler"]:
        scene.rig.kill(name)
    time.sleep(2.0)
    scene.rig.mend()


def _replace(scene: Scenario) -> None:
    _kill(scene)
    scene.rig.mend()


def _stop(scene: Scenario, name: str, seconds: float) -> None:
    if name in scene.rig.processes:
        scene.rig.signal(name, signal.SIGSTOP)
        time.sleep(seconds)
        if seconds:
            scene.rig.signal(name, signal.SIGCONT)


def _stop_driver(scene: Scenario) -> None:
    scene.driver.send_signal(signal.SIGSTOP)
    time.sleep(5.0)
    scene.driver.send_signal(signal.SIGCONT)


def _kill_players(scene: Scenario) -> None:
    import os

    name = scene.worker()
    for player in scene.rig.players(name) if name in scene.rig.processes else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(player, signal.SIGKILL)


def _kill_scheduler(scene: Scenario) -> None:
    if "scheduler" in scene.rig.processes:
        scene.rig.kill("scheduler")


DEEDS: dict[str, Callable[[Scenario], None]] = {
    "worker killed": _kill,
    "worker replaced": _replace,
    "all workers killed": _kill_all,
    "worker stopped for 4 s": lambda scene: _stop(scene, scene.worker(), 4.0),
    "worker stopped for good": lambda scene: _stop(scene, scene.worker(), 0.0),
    "playing processes killed": _kill_players,
    "scheduler killed": _kill_scheduler,
    "scheduler stopped for 4 s": lambda scene: _stop(scene, "scheduler", 4.0),
    "scheduler stopped for good": lambda scene: _stop(scene, "scheduler", 0.0),
    "driver killed": lambda scene: scene.driver.kill(),
    "driver interrupted": lambda scene: scene.driver.send_signal(signal.SIGINT),
    "driver terminated": lambda scene: scene.driver.terminate(),
    "driver stopped for 5 s": _stop_driver,
}


def _faults(folder: Path, n: int, seed: int) -> None:
    """Print what n scenarios drawn at random came to."""
    folder.mkdir()
    rig = Rig(folder).start(2)
    text = SPEC.format(rounds=40_000, repetitions=40, balls="[1.0]")
    (folder / "sweep.toml").write_text(text)
    subprocess.run([*LINE, "-o", "truth", "-j", "2"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    hangs = lost = doubled = differ = 0
    try:
        for number in range(n):
            rng = np.random.default_rng([seed, number])
            deeds = [str(deed) for deed in rng.choice(list(DEEDS), size=int(rng.integers(1, 4)))]
            times = sorted(float(t) for t in rng.uniform(3.0, 14.0, size=len(deeds)))
            place = folder / f"scenario{number}"
            place.mkdir()
            (place / "sweep.toml").write_text(text)
            rig.mend()
            seconds, starts = Scenario(rig, place, rng).run(list(zip(times, deeds, strict=True)))
            hang = not np.isfinite(seconds)
            gone, twice, other = (0, 0, 0) if hang else compared(folder / "truth", place / "out")
            hangs, lost, doubled, differ = hangs + hang, lost + gone, doubled + twice, differ + other
            print(
                f"{number}: {', '.join(deeds)}: {seconds:.0f} s, {starts} starts, {gone} lost, {twice} doubled, {other} differ",
                flush=True,
            )
    finally:
        rig.end()
    print(f"{n} scenarios: {hangs} hangs, {lost} rows lost, {doubled} doubled, {differ} different")


def compared(truth: Path, out: Path) -> tuple[int, int, int]:
    """Return how many rows a folder lacks, has twice, or has with other numbers (seconds aside)."""
    lost = doubled = differ = 0
    for name, key in (("results", ["run_id", "round"]), ("comparators", ["stream_id", "round", "norm_bound"])):
        if not (truth / f"{name}.parquet").exists():
            continue
        ours, theirs = (pd.read_parquet(folder / f"{name}.parquet").drop(columns="seconds") for folder in (out, truth))
        doubled += int(ours.duplicated(subset=key).sum())
        ours, theirs = (table.drop_duplicates(subset=key).set_index(key).sort_index() for table in (ours, theirs))
        lost += len(theirs.index.difference(ours.index))
        both = theirs.index.intersection(ours.index)
        left, right = ours.loc[both], theirs.loc[both, list(ours)]
        differ += int((~((left == right) | (left.isna() & right.isna())).all(axis=1)).sum())
    return lost, doubled, differ


# ---------------------------------------------------------------------------------------------------------- namespaces

MIXED = """
name = "mixed"
rounds = 2000
repetitions = 8
norm_bounds = [1.0, 3.0]
[[environment]]
id = "banditlab/Table-v0"
path = "my table.csv"
label = "kind"
[[environment]]
id = "banditlab/Adversary-v0"
[[environment]]
id = "banditlab/Logistic-v0"
[[agent]]
id = "banditron"
grid = { gamma = [0.05, 0.2] }
[[agent]]
id = "own"
[[agent]]
id = "uniform"
"""
OWN = """
import numpy as np
from banditlab.agents import Agent
from banditlab.problem import Decision

class Own(Agent):
    id = "own"
    summary = "what was right last time is played again, else any class"
    explores = False

    def __init__(self, problem, rng):
        super().__init__(problem, rng)
        self.last = None

    def act(self, context):
        K = self.problem.n_classes
        if self.last is not None:
            return Decision(self.last, np.eye(K)[self.last])
        return Decision(int(self.rng.random() * K), np.full(K, 1 / K))

    def learn(self, context, decision, correct):
        self.last = decision.action if correct else None
"""


def _namespaces(folder: Path) -> None:
    """Print whether two workers that share nothing but TCP play what one machine plays, also with a cable cut for 20 s.

    A table, a lab's agent, comparators, an environment that adapts to the player.
    """
    (folder / "lab" / "agents").mkdir(parents=True)
    (folder / "lab" / "agents" / "own.py").write_text(OWN)
    rows = "".join(f"{i % 7},{i * i % 11},{'xyz'[i * i % 3]}\n" for i in range(500))
    (folder / "my table.csv").write_text("a,b,kind\n" + rows)
    (folder / "sweep.toml").write_text(MIXED)
    play = [*LINE, "--lab", "lab"]
    subprocess.run([*play, "-o", "truth", "-j", "2"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    logs = folder.with_name("logs")
    logs.mkdir()
    rig = Rig(logs, apart=True, hidden=folder)
    try:
        rig.start(2)
        for name, cut in (("undisturbed", False), ("cut", True)):
            begin = time.monotonic()
            line = [*play, "-o", name, "--cluster", rig.address, "--patience", "120"]
            driver = subprocess.Popen(line, cwd=folder, stdout=subprocess.DEVNULL)
            if cut:
                time.sleep(8.0)
                rig.cut("w0", off=True)
                time.sleep(20.0)
                rig.cut("w0", off=False)
                print(f"while the cable was cut the driver {'went on' if driver.poll() is None else 'came to its end'}")
            code = driver.wait(HANG)
            lost, doubled, differ = compared(folder / "truth", folder / name)
            runs = pd.read_parquet(folder / name / "results.parquet", columns=["run_id"])["run_id"].nunique()
            print(
                f"namespaces, {name}: exit code {code} after {time.monotonic() - begin:.0f} s, {runs} runs, {lost} rows lost, "
                f"{doubled} doubled, {differ} different",
                flush=True,
            )
    finally:
        rig.end()
