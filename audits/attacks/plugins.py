"""Plug-ins that raise what nobody catches, leave the folder, fork, crash, or never come back."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

from audits.attacks.lines import Line, line

TITLE = "Hostile plug-ins"
WORDS = """A lab, a folder of plug-ins, contains a hostile agent, whose setting selects a kind of misbehaviour. A sweep runs
this agent at every setting together with the agent `uniform`. There are sweeps with `-j 1`, with `-j 2`, and with
a limit of 20 s per run. The table counts runs.
The runs of `uniform` must finish with the correct result (`right`). The runs of the hostile agent must do the same, or
fail with a message that names their own fault (`named`)."""
COUNT = 1
"""Sweeps with each number of processes."""

AGENT = """
import ctypes, fcntl, os, signal, sys, threading, time
import numpy as np
from banditlab.agents import Agent
from banditlab.problem import Decision

class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")
    __repr__ = __str__

class Base(BaseException):
    pass

def throw(error):
    raise error

def deep():
    return deep() + 1

def rubbish():
    for number in range(3, 12):
        try:
            if fcntl.fcntl(number, fcntl.F_GETFL) & 3 == os.O_WRONLY:
                os.write(number, b"rubbish" * 9)
        except OSError:
            pass

ACTS = {
    "os.chdir": lambda: os.chdir("/"),
    "BaseException": lambda: throw(Base("base")),
    "GeneratorExit": lambda: throw(GeneratorExit()),
    "KeyboardInterrupt": lambda: throw(KeyboardInterrupt()),
    "SystemExit": lambda: sys.exit(0),
    "an exception without text": lambda: throw(Mute()),
    "a text of 10^7 characters": lambda: throw(ValueError("x" * 10**7)),
    "os.fork that returns": os.fork,
    "os._exit": lambda: os._exit(0),
    "os.abort": os.abort,
    "a segfault": lambda: ctypes.string_at(0),
    "SIGKILL to itself": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGINT to itself": lambda: os.kill(os.getpid(), signal.SIGINT),
    "all files closed": lambda: os.closerange(0, 256),
    "rubbish into every pipe": rubbish,
    "recursion without end": deep,
    "a run that hangs": lambda: time.sleep(3600),
    "a thread that hangs": lambda: threading.Thread(target=time.sleep, args=(3600,)).start(),
}
INITS = {
    "a segfault in the constructor": ACTS["a segfault"],
    "os._exit in the constructor": ACTS["os._exit"],
    "BaseException in the constructor": ACTS["BaseException"],
    "a constructor that hangs": ACTS["a run that hangs"],
}

class Odd(Agent):
    id = "odd"
    summary = "misbehaves in one way"
    explores = False

    def __init__(self, problem, rng, *, what: str = ""):
        super().__init__(problem, rng)
        self.what, self.rounds = what, 0
        INITS.get(what, bool)()

    def act(self, context):
        self.rounds += 1
        K = self.problem.n_classes
        if self.rounds == 5:
            ACTS.get(self.what, bool)()
        return Decision(int(self.rng.random() * K), np.full(K, 1 / K))

    def learn(self, context, decision, correct):
        pass
"""
GOOD = ("os.chdir", "os.fork that returns", "a thread that hangs")
"""What does no harm to the run itself: it is right."""
WAYS = {
    "BaseException": "Base: base",
    "GeneratorExit": "GeneratorExit",
    "KeyboardInterrupt": "KeyboardInterrupt",
    "SystemExit": "SystemExit: 0",
    "an exception without text": "Mute: (its text",
    "a text of 10^7 characters": "ValueError: xxx",
    "os._exit": "alone (exit code 0)",
    "os.abort": "alone (SIGABRT)",
    "a segfault": "alone (SIGSEGV)",
    "SIGKILL to itself": "alone (SIGKILL)",
    "SIGINT to itself": "",
    "all files closed": "",
    "rubbish into every pipe": "",
    "recursion without end": "RecursionError",
    "a run that hangs": "run_timeout = 20",
    "a segfault in the constructor": "alone (SIGSEGV)",
    "os._exit in the constructor": "alone (exit code 0)",
    "BaseException in the constructor": "Base: base",
    "a constructor that hangs": "run_timeout = 20",
}
"""What the others' records say."""
SPEC = """
name = "plugins"
rounds = 12
run_timeout = 20
environment = [{{ id = "banditlab/Logistic-v0", n_features = 2, n_classes = 2 }}]
agent = [{{ id = "uniform" }}, {{ id = "odd", grid = {{ what = {ways} }} }}]
"""


def write_lab(folder: Path, ways: list[str]) -> None:
    """Write the lab with the agent, and a spec of these ways."""
    (folder / "agents").mkdir(parents=True)
    (folder / "agents" / "odd.py").write_text(AGENT)
    (folder / "spec.toml").write_text(SPEC.format(ways=json.dumps(ways)))


def swept(lab: Path, ways: list[str], jobs: int) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run the sweep and return (the finished command, its results folder)."""
    write_lab(lab, ways)
    command = [sys.executable, "-m", "banditlab", "run", "spec.toml", "-o", "out", "--lab", ".", "--no-report"]
    done = subprocess.run([*command, "-j", str(jobs)], cwd=lab, capture_output=True, text=True, timeout=7200)
    return done, lab / "out"


def rows_of(out: Path, player: str) -> pd.DataFrame:
    """Return a player's stored rows, without what may differ."""
    frame = pd.read_parquet(out / "results.parquet")
    frame = frame[frame["player"] == player].drop(columns="seconds").dropna(axis="columns", how="all")
    return frame.sort_values(["run_id", "round"], ignore_index=True)


def verdicts(done: subprocess.CompletedProcess[str], out: Path, right: pd.DataFrame, way: str) -> Counter[str]:
    """Return how a way's run ("" for that of `uniform`) ended: right, named, lost, wrong."""
    found: Counter[str] = Counter()
    records = [json.loads(file.read_text()) for file in (out / "failed").glob("*.json")]
    errors = [record["error"] for record in records if record["settings"].get("what", "") == way]
    if not way:
        found["wrong"] = not rows_of(out, "uniform").equals(right)
        found["right"], found["lost"] = 1 - len(errors), len(errors)
        told = done.stdout + done.stderr
        found["tracebacks"] = "Traceback" in told or "Fatal Python error" in told or done.returncode != 1
        return found
    rows = rows_of(out, "odd")
    ended = len(set(rows.loc[rows["param.what"] == way, "run_id"]))
    found["right"], found["named"] = ended * (way in GOOD), sum(WAYS.get(way, "!") in error for error in errors)
    found["lost"] = 1 - found["right"] - found["named"]
    return found


def attack(count: int, seed: int) -> list[Line]:
    """Run the sweeps and return a line for each way; `seed` changes nothing."""
    ways = [*GOOD, *WAYS]
    total: dict[str, Counter[str]] = {way: Counter() for way in ("", *ways)}
    with tempfile.TemporaryDirectory() as place:
        right = rows_of(swept(Path(place) / "none", [GOOD[0]], 1)[1], "uniform")
        with ThreadPoolExecutor(2) as threads:
            sweeps = [threads.submit(swept, Path(place) / str(i), ways, 1 + i % 2) for i in range(2 * count)]
        for done, out in (sweep.result() for sweep in sweeps):
            for way, numbers in total.items():
                found = verdicts(done, out, right, way)
                numbers.update(found)
                if found["lost"] or found["wrong"] or found["tracebacks"]:
                    print(way, found, done.stdout[-9000:], done.stderr[-500:], flush=True)
    return [line(way or "uniform beside them", numbers, 2 * count) for way, numbers in total.items()]
