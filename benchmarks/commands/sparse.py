"""First-order agents on a Reuters4-like sparse stream: K = 4, d = 347,000, 80 non-zeros a row, each in a separate process.

`rounds/s` counts the player alone (draws, scoring, learning, trace) by processor time, `with the stream` also what draws the
documents and checks them. `peak MiB` is what the process's peak of resident memory (VmHWM) rose by while it played, the
stream's blocks included; `state MiB` are the player's own arrays, of which one K x d matrix takes 10.6.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

AGENTS: list[tuple[str, dict[str, Any]]] = [
    ("banditron", {}),
    ("epsilon-greedy", {}),
    ("epsilon-greedy-direct", {}),
    ("gaptron", {"gamma": 0.05}),
    ("gaptron", {"gamma": 0.05, "step": "adaptive"}),
    ("gaptron", {"gamma": 0.05, "loss": "hinge"}),
    ("gaptron", {"gamma": 0.05, "loss": "smooth-hinge"}),
    ("rdue", {"gamma": 0.05}),
    ("rdue", {"gamma": 0.05, "step": "adaptive"}),
    ("soba-diag", {}),
    ("pnewtron", {}),
    ("ovr-perceptron", {"choice": "largest"}),
    ("exploration", {"forecaster": "ogd", "gamma": 0.05}),
    ("perceptron", {}),
    ("sampled", {"forecaster": "ogd"}),
]
SHAPE = {"n_features": 347_000, "n_classes": 4, "nonzeros": 80}
BLOCK = 1024
WARM = 20 * BLOCK
"""Rounds before the clock starts: the matrices' pages are touched by then."""


def main(*, rounds: int = 200_000, agent: str | None = None) -> None:
    """Print the table, one process a line; with `agent`, a JSON pair of id and settings, be one of these processes."""
    if agent is not None:
        print(_line(*json.loads(agent), rounds), flush=True)
        return
    print("| agent | rounds/s | with the stream | mistakes | peak MiB | state MiB |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    for pair in AGENTS:
        part = ["sparse", "--rounds", str(rounds), "--agent", json.dumps(pair)]
        subprocess.run([sys.executable, "-m", "benchmarks", *part], check=True)


def _line(id_: str, settings: dict[str, Any], rounds: int) -> str:
    import numpy as np

    from banditlab.engine.runner import checked_blocks
    from banditlab.envs.sparse import Sparse
    from banditlab.players.agent import Trace
    from banditlab.registry import registry
    from benchmarks.measure.one_player import array_bytes, owners, resident

    env = Sparse(**SHAPE, horizon=WARM + rounds)  # type: ignore[arg-type]
    cls: Any = registry().load("agents", id_)
    env.reset(seed=0)
    first, labels = next(env.blocks(1, 1))
    cls(env.problem, np.random.default_rng(0), **settings).play_block(first, labels, Trace.empty(1))  # compiled
    before = resident(reset=True) or 0
    player = cls(env.problem, np.random.default_rng(1), **settings)
    played, mistakes, done, begin = 0.0, 0, 0, 0.0
    for X, y in checked_blocks(env.blocks(WARM + rounds, BLOCK), env.problem, WARM + rounds):
        begin = time.process_time() if done == WARM else begin
        trace = Trace.empty(len(y))
        start = time.process_time()
        player.play_block(X, y, trace)
        played += time.process_time() - start if done >= WARM else 0.0
        mistakes += int(len(y) - trace.correct.sum())
        done += len(y)
    whole, peak = time.process_time() - begin, (resident() or 0) - before
    state = sum(map(array_bytes, owners(player)))
    name = " ".join([id_, *(f"{key}={value}" for key, value in settings.items())])
    speed, through, wrong = rounds / played, rounds / whole, 100 * mistakes / (WARM + rounds)
    mib = f"{peak / 2**20:.1f} | {state / 2**20:.1f}"
    return f"| {name} | {speed:,.0f} | {through:,.0f} | {wrong:.1f} % | {mib} |"
