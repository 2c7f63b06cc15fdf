"""Sweeps on a Dask cluster: what a task costs, what faults cost, and who else plays such a grid how fast.

Workers and scheduler are processes of this machine. `--empty N` sends N tasks that do nothing; `--faults N` draws N scenarios
of one to three faults at random and compares what is stored with one machine's; `--namespaces` plays on two workers in network
and mount namespaces of their own, once undisturbed and once with a cable cut (root on Linux); `--peers` plays one grid by this
package, by coba's processes and by a joblib loop; `--study MINUTES --kills N` plays one sweep on one machine, on undisturbed
workers, and with workers killed. The study as it is meant: `--study 20 --kills 20`, an hour of two quiet cores. On cores whose
speed changes by the minute `--turns N` cuts it into N sweeps, each played the three ways one after the other; `--runs`: of
a way, all sweeps together.
"""

from __future__ import annotations

import contextlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    peers: bool = False,
    study: float = 0.0,
    kills: int = 20,
    turns: int = 1,
    runs: int = 100_000,
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
        if peers:
            _peers()
        if study:
            _study(place / "study", study, kills, turns, runs)


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
            run = Sweep(rounds=10, environment=[{"id": "banditlab/Logistic-v0"}], agent=[{"id": "uniform"}]).plan.runs[
                0
            ]
            cluster.submit(Task(str(store.folder), (), (run,), warming=True))
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


# --------------------------------------------------------------------------------------------------------------- peers

ROUNDS, SEEDS, RATES = 1_000, 20, [0.02, 0.05, 0.1, 0.2, 0.3]


def _peers() -> None:
    """Print runs a second of one grid, 5 exploration rates x 20 streams of 1,000 rounds, on two processes each."""
    for name, play in (
        ("banditlab, -j 2", _ours),
        ("a joblib loop over banditlab.play", _joblib),
        ("coba, 2 processes", _coba),
    ):
        cpu = _cpu()
        begin = time.perf_counter()
        try:
            runs = play()
        except ImportError as error:
            print(f"{name}: not installed ({error})")
            continue
        wall = time.perf_counter() - begin
        print(
            f"{name}: {runs} runs, {runs / wall:.1f} a second, {1e3 * (_cpu() - cpu) / runs:.1f} ms of processor time a run",
            flush=True,
        )


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _ours() -> int:
    with tempfile.TemporaryDirectory() as folder:
        environment = [{"id": "banditlab/Logistic-v0", "n_features": 4, "n_classes": 3}]
        agent = [{"id": "banditron", "grid": {"gamma": RATES}}]
        keys: dict[str, Any] = {"rounds": ROUNDS, "repetitions": SEEDS, "norm_bounds": []}
        return Sweep(**keys, environment=environment, agent=agent).run(folder, jobs=2).played


def _one(gamma: float, seed: int) -> int:
    from banditlab import make_agent, make_env, play

    env = make_env("banditlab/Logistic-v0", rounds=ROUNDS, n_features=4, n_classes=3)
    return int(play(env, make_agent("banditron", env.problem, seed=seed, gamma=gamma), seed=seed).mistakes[-1])


def _joblib() -> int:
    from joblib import Parallel, delayed

    return len(Parallel(n_jobs=2)(delayed(_one)(gamma, seed) for gamma in RATES for seed in range(SEEDS)))


def _coba() -> int:
    import coba as cb

    shape: dict[str, Any] = {"n_actions": 3, "n_context_features": 4, "n_action_features": 0}
    made = cb.Environments.from_linear_synthetic(ROUNDS, **shape, seed=list(range(SEEDS)))
    learners = [cb.BanditEpsilonLearner(rate) for rate in RATES]
    cb.CobaContext.logger = cb.NullLogger()
    result = cb.Experiment(made, learners).config(processes=2).run()
    return len(result.interactions.to_pandas().groupby(["environment_id", "learner_id"]))


# --------------------------------------------------------------------------------------------------------------- study

PLAYERS, FIRST_ROUNDS = 5, 20_000
LAST = 20.0
"""Seconds before the end from which a time left is not judged: it is told in whole seconds, and tables are written then."""


def _study(folder: Path, minutes: float, kills: int, turns: int, runs: int) -> None:
    """Print how much of the speed of undisturbed workers, and of one machine's, is left with so many of them killed."""
    folder.mkdir()
    rig = Rig(folder).start(2)
    try:
        many = runs // PLAYERS
        rounds = int(FIRST_ROUNDS * 60 * minutes / (_seconds_of_a_run(folder) * many * PLAYERS))
        spec = SPEC.format(rounds=rounds, repetitions=many // turns, balls="[]")
        (folder / "sweep.toml").write_text(spec)
        rows = [_turn(rig, folder, f"-{turn}" if turns > 1 else "", kills // turns) for turn in range(turns)]
    finally:
        rig.end()
    alone, undisturbed, killed = np.array(rows).T
    ratios = (undisturbed / killed, alone / killed, alone / undisturbed)
    of_workers, of_machine, no_kill = (f"{np.median(ratio):.0%}" for ratio in ratios)
    print(
        f"{turns * (kills // turns)} kills: {of_workers} of the speed of undisturbed workers, {of_machine} of that of -j 2; "
        f"undisturbed workers {no_kill} of -j 2" + (f"; medians of {turns} turns" if turns > 1 else "")
    )


def _turn(rig: Rig, folder: Path, turn: str, kills: int) -> tuple[float, float, float]:
    """Return the seconds of one sweep on one machine, on undisturbed workers and with so many killed; print what differs."""
    alone = _played(rig, folder, f"machine{turn}", 0, 0.0)
    undisturbed = _played(rig, folder, f"undisturbed{turn}", 0, 0.0)
    killed = _played(rig, folder, f"killed{turn}", kills, undisturbed)
    for name in ("undisturbed", "killed"):
        print(f"{name}: lost, doubled, different rows: {compared(folder / f'machine{turn}', folder / f'{name}{turn}')}")
    return alone, undisturbed, killed


def _played(rig: Rig, folder: Path, name: str, kills: int, lasts: float) -> float:
    """Return the seconds of the sweep; workers are killed in turn and replaced, at even times of the `lasts` it takes else."""
    begin, done, log = time.monotonic(), 0, folder / f"{name}.log"
    options = ["-j", "2"] if name.startswith("machine") else ["--cluster", rig.address]
    with log.open("wb") as file:
        driver = subprocess.Popen([*LINE, "-o", name, *options], cwd=folder, stdout=file)
    while driver.poll() is None:
        time.sleep(0.1)
        if done < kills and time.monotonic() - begin > (done + 1) * lasts / (kills + 1):
            rig.kill(f"w{done % 2}")
            rig.mend()
            done += 1
    took = time.monotonic() - begin
    print(f"{name}: exit code {driver.returncode}, {took:.0f} s, {done} kills; {promised(log, took)}", flush=True)
    return took


def _seconds_of_a_run(folder: Path) -> float:
    """Return what one more run of `FIRST_ROUNDS` rounds takes two processes: starting and loading kernels do not count."""
    took: dict[int, list[float]] = {10: [], 200: [], 600: []}
    for i, repetitions in enumerate((10, 200, 600, 200, 600, 200, 600)):  # the first compiles
        (folder / "sweep.toml").write_text(SPEC.format(rounds=FIRST_ROUNDS, repetitions=repetitions, balls="[]"))
        begin = time.monotonic()
        line = [*LINE, "-o", f"few-{i}", "-j", "2"]
        subprocess.run(line, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        took[repetitions].append(time.monotonic() - begin)
    return (min(took[600]) - min(took[200])) / (400 * PLAYERS)


def promised(log: Path, took: float) -> str:
    """Return how far the times left that a sweep printed once a tenth was done are from what was left."""
    ratios = []
    for line in log.read_text().splitlines():
        told = re.match(r" *([\d,]+) s +([\d,]+)/([\d,]+) runs.* about ([\d,]+) (s|min|h) left", line)
        if not told:
            continue
        at, done, of, left = (float(told[k].replace(",", "")) for k in range(1, 5))
        left *= {"s": 1.0, "min": 60.0, "h": 3600.0}[told[5]]
        if done >= 0.1 * of and took - at >= LAST:
            ratios.append(left / (took - at))
    if not ratios:
        return "no time left was told"
    far = np.maximum(ratios, 1.0 / np.maximum(ratios, 1e-9))
    return f"time left told {len(ratios)} times, off by a factor of {np.median(far):.2f} in the median, {far.max():.2f} at most"


if __name__ == "__main__":
    main()
