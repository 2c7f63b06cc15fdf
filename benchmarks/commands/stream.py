"""A stream longer than memory: one first-order agent, played in processes of their own through each door.

`play` is the Python API, `Sweep` and `banditlab run` (without the report, whose drawing takes memory of its own) play
runs/long-stream.toml, `draw` only reads the stream. Printed: processor and wall seconds, rounds a processor second, and the
process's peak of resident memory (VmHWM), which must not grow with the rounds: each door is also run with a tenth of them.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from banditlab.errors import UsageError
from banditlab.validation import at_least, one_of

SPEC = Path(__file__).parents[2] / "runs" / "long-stream.toml"
STATUS = Path("/proc/self/status")
DOORS = ("draw", "play", "Sweep", "banditlab run")


def main(*, rounds: int = 100_000_000, door: str | None = None) -> None:
    """Print the table, one line a process; with `door` be one of these processes."""
    if not STATUS.exists():
        raise UsageError(f"the peak of memory is read from {STATUS}, which is not here")
    at_least("--rounds", rounds, 10)
    if door is not None:
        _one(one_of("--door", door, DOORS), rounds)
        return
    print("| door | rounds | CPU s | s | rounds / CPU s | peak MiB |\n|---|---:|---:|---:|---:|---:|", flush=True)
    for name in DOORS:
        for length in (rounds // 10, rounds):
            command = [sys.executable, "-m", "benchmarks", "stream", "--rounds", str(length), "--door", name]
            subprocess.run(command, check=True)


def _one(door: str, rounds: int) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        _go(door, rounds, folder)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"| {door} | {rounds:,} | {cpu:.1f} | {wall:.1f} | {rounds / cpu:,.0f} | {_peak():.0f} |", flush=True)


def _go(door: str, rounds: int, folder: str) -> None:
    """Go through the rounds by one door; what a door needs is imported by it alone, since the peak is measured."""
    if door == "draw":
        from banditlab.envs.logistic import Logistic

        env = Logistic(horizon=rounds)
        env.reset(seed=0)
        for _ in env.blocks(rounds, 1024):
            pass
    elif door == "play":
        import numpy as np

        from banditlab.agents.banditron import Banditron
        from banditlab.engine import play
        from banditlab.envs.logistic import Logistic

        env = Logistic(horizon=rounds)
        play(env, Banditron(env.problem, np.random.default_rng(0), gamma=0.01), seed=0)
    elif door == "Sweep":
        from banditlab.engine import Sweep, read_spec

        Sweep(read_spec(SPEC, [f"rounds={rounds}"])).run(folder)
    else:
        from banditlab.cli.main import app

        request = ["run", str(SPEC), "-o", folder, "-j", "1", "--no-report", "--set", f"rounds={rounds}"]
        with contextlib.redirect_stdout(io.StringIO()):  # its own lines are no part of the table
            app(request, standalone_mode=False)


def _peak() -> float:
    """Return the most resident memory this process has had, in MiB."""
    lines = STATUS.read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
