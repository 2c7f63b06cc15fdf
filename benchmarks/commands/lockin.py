"""Who stays on a wrong class? One context for ever, one class ahead of the others by .10, T = 20,000.

A run is stuck where the class that was played most often in its last quarter is not the one that is ahead. Agents of practice
that explore less and less may meet a bad beginning and never look again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from banditlab import Problem, make_agent
from banditlab.players.actor import Trace
from benchmarks.measure.names import picked

AGENTS = ("fastcb", "squarecb", "lints", "linucb", "epsilon-greedy-direct", "stackcb")
CLASSES = (2, 3, 5)
ROUNDS, AHEAD = 20_000, 0.10


def main(*, runs: int = 100, only: str = "") -> None:
    """Print how many of so many runs are stuck, by agent and K; `only`: ids with commas."""
    wanted = picked("only", only, AGENTS)
    print(f"| agent | {' | '.join(f'K = {K}' for K in CLASSES)} |\n|---|{'---:|' * len(CLASSES)}")
    for id_ in wanted:
        counts = [sum(is_stuck(id_, K, run) for run in range(runs)) for K in CLASSES]
        print(f"| {id_} | {' | '.join(map(str, counts))} |", flush=True)


def is_stuck(id_: str, n_classes: int, run: int, settings: Mapping[str, Any] | None = None) -> bool:
    """Return whether a run, at the agent's defaults but for `settings`, plays a wrong class most often in its last quarter."""
    shares = np.full(n_classes, (1.0 - AHEAD) / n_classes)
    shares[run % n_classes] += AHEAD  # whoever prefers low numbers gains nothing
    y = np.random.default_rng([run, n_classes]).choice(n_classes, ROUNDS, p=shares)
    agent, trace = make_agent(id_, Problem(1, n_classes, 1.0), seed=run, **(settings or {})), Trace.empty(ROUNDS)
    agent.play_block(np.ones((ROUNDS, 1)), y.astype(np.int64), trace)
    last = np.bincount(trace.action[-ROUNDS // 4 :], minlength=n_classes)
    return bool(last.argmax() != run % n_classes)
