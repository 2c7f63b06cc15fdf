"""Speed and mistakes of the agents on Digits-v0, T = 20,000: kernel with scoring, stream made beforehand, one core.

Rates are rounds per second of CPU time, so that other work on the machine counts less; medians of five streams. The
last column is the time of a round in units of uniform guessing's, which is the loop alone: draws, scoring, trace.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from banditlab.envs.digits import Digits
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import KernelAgent, Trace
from banditlab.registry import registry

ROUNDS = 20_000
SEEDS = range(5)
WARM = 100

AGENTS: list[tuple[str, dict[str, Any]]] = [
    ("uniform", {}),
    ("fastcb", {}),
    ("squarecb", {}),
    ("linucb", {}),
    ("lints", {}),
    ("confidit", {}),
    ("epsilon-greedy", {"gamma": 0.1}),
    ("epsilon-greedy-direct", {"gamma": 0.1}),
    ("epsilon-greedy-direct", {}),
    ("gaptron", {"gamma": 0.1, "step": "adaptive"}),
    ("banditron", {"gamma": 0.1}),
    ("pnewtron", {"gamma": 0.1}),
    ("soba-diag", {"gamma": 0.1}),
    ("rdue", {"gamma": 0.1, "step": "adaptive"}),
    ("ovr-perceptron", {"choice": "largest"}),
    ("newtron", {"gamma": 0.1, "ball": False}),
    # The price of the ball's bookkeeping where the ball never binds: same ridge and beta, hence the same actions.
    ("newtron", {"gamma": 0.1, "norm_bound": 1e5, "beta": 0.01, "ball": False}),
    ("newtron", {"gamma": 0.1, "norm_bound": 1e5, "beta": 0.01, "ball": True}),
]


def stream(seed: int) -> tuple[Digits, Any, Any]:
    """Return the environment with its whole stream, contexts (T, d) and labels (T,), in memory."""
    env = Digits(horizon=ROUNDS)
    env.reset(seed=seed)
    [(X, y)] = env.blocks(ROUNDS, ROUNDS)
    return env, as_contexts(X), y


def measure(id_: str, settings: dict[str, Any]) -> tuple[float, float]:
    """Return (rounds per CPU second, share of mistakes), medians over the streams."""
    rates, mistakes = [], []
    for seed in SEEDS:
        env, X, y = stream(seed)
        trace = Trace.empty(ROUNDS)
        warm, agent = (make(id_, settings, env, seed) for _ in range(2))
        warm.play_block(X[:WARM], y[:WARM], trace.part(slice(0, WARM)))
        start = time.process_time()
        agent.play_block(X, y, trace)
        rates.append(ROUNDS / (time.process_time() - start))
        mistakes.append(1.0 - trace.correct.mean())
    return statistics.median(rates), statistics.median(mistakes)


def make(id_: str, settings: dict[str, Any], env: Digits, seed: int) -> KernelAgent:
    """Return the agent with this id, built for the environment's problem."""
    agent: KernelAgent = registry().load("agents", id_)(env.problem, np.random.default_rng(seed), **settings)
    return agent


def main() -> None:
    """Print the table."""
    print(f"Digits-v0, T = {ROUNDS:,}, median of {len(SEEDS)} streams, one core\n")
    print(f"{'agent':60}{'rounds/s':>12}{'mistakes':>11}{'x loop':>9}")
    loop = 0.0
    for id_, settings in AGENTS:
        rate, mistakes = measure(id_, settings)
        loop = loop or rate
        label = " ".join([id_, *(f"{name}={value}" for name, value in settings.items())])
        print(f"{label:60}{rate:>12,.0f}{100 * mistakes:>9.2f} %{loop / rate:>9.0f}")
