"""First-order agents on a Reuters4-like sparse stream: K = 4, d = 347,000, 80 non-zeros a row, each in a process of its own.

`rounds/s` counts the player alone (draws, scoring, learning, trace) by processor time, `with the stream` also what draws the
documents and checks them. `peak MiB` is what the process's peak of resident memory (VmHWM) rose by while it played, the
stream's blocks included; `state MiB` are the player's own arrays, of which one K x d matrix takes 10.6.

The floor of a round is what it costs to read, at the same places, one row of K numbers for every non-zero, once for each
K x d matrix of the player's state: random accesses, measured on this core in the same process. The last column is the
player's time in units of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from benchmarks.page import kept

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


def main(*, rounds: int = 200_000, agent: str | None = None, keep: bool = False) -> None:
    """Print the table, one process a line; with `agent`, a JSON pair of id and settings, be one of these processes.

    `keep` for the speed page.
    """
    if agent is not None:
        print(_line(*json.loads(agent), rounds), flush=True)
        return
    print("| agent | rounds/s | with the stream | mistakes | peak MiB | state MiB | times its floor |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    found = []
    for pair in AGENTS:
        part = ["sparse", "--rounds", str(rounds), "--agent", json.dumps(pair)]
        command = [sys.executable, "-m", "benchmarks", *part]
        line = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        print(line, end="", flush=True)
        found.append(kept.cells(line))
    if keep:
        kept.keep("sparse", _told(found))


def _told(found: list[list[str]]) -> str:
    """Return the page's sentence: the slowest and the fastest, alone and with the stream, and the leanest's memory."""
    by_rate = sorted(found, key=lambda row: _number(row[1]))
    slow, fast = by_rate[0], by_rate[-1]
    through = sorted(_number(row[2]) for row in found)
    lean = min(found, key=lambda row: _number(row[5]))
    return (
        f"K = 4, d = 347,000, 80 non-zeros a row: {slow[1]} (`{slow[0]}`) to {fast[1]} (`{fast[0]}`) rounds a second, with the "
        f"drawing of the stream {through[0]:,.0f} to {through[-1]:,.0f}; the state of `{lean[0]}` {lean[5]} MiB, one K x d "
        f"matrix {8 * 4 * 347_000 / 2**20:.1f}, the process's rise with the stream's blocks {lean[4]}"
    )


def _number(text: str) -> float:
    return float(text.replace(",", ""))


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
    floors = _gathers(env, state // (8 * env.problem.n_features * env.problem.n_classes))
    name = " ".join([id_, *(f"{key}={value}" for key, value in settings.items())])
    speed, through, wrong = rounds / played, rounds / whole, 100 * mistakes / (WARM + rounds)
    ratio = played / rounds / min(floors)
    mib = f"{peak / 2**20:.1f} | {state / 2**20:.1f}"
    return f"| {name} | {speed:,.0f} | {through:,.0f} | {wrong:.1f} % | {mib} | {ratio:.1f} |"


def _gathers(env: Any, matrices: int) -> list[float]:
    """Return seconds a round, over some blocks, of reading the rows of so many matrices at the stream's places."""
    import numpy as np

    from banditlab.engine.runner import checked_blocks
    from banditlab.numerics.jit import borrow, njit

    @njit(cache=False)
    def gather(V, X, n):  # type: ignore[no-untyped-def]
        V, X = borrow(V), borrow(X)
        a = b = c = e = 0.0
        for m in range(V.shape[0]):
            for t in range(n):
                for i in range(X.indptr[t], X.indptr[t + 1]):
                    j = X.indices[i]
                    a, b, c, e = a + V[m, j, 0], b + V[m, j, 1], c + V[m, j, 2], e + V[m, j, 3]
        return a + b + c + e

    V = np.ones((matrices, env.problem.n_features, 4))
    seconds = []
    for X, y in checked_blocks(env.blocks(WARM, BLOCK), env.problem, WARM):
        start = time.process_time()
        gather(V, X.csr, len(y))  # type: ignore[union-attr]
        seconds.append((time.process_time() - start) / len(y))
    return seconds[1:]


if __name__ == "__main__":
    main()
