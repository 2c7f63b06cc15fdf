"""Our agents and other libraries' methods on identical streams: Digits-v0, T = 20,000, one core, one run of this command.

Every agent observes one bit a round and plays the stream in memory, without the Gymnasium loop. Speeds are rounds per
second of CPU time, so that other work on the machine counts less; medians over the streams. The last two columns are the
recommended agent's speed over the row's, and the row's share of mistakes minus the recommended agent's, in points, on
the same streams.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import statistics
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from banditlab.envs.digits import Digits
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Agent, Trace
from banditlab.problem import Problem
from banditlab.registry import registry
from banditlab.validation import at_least

ROUNDS, WARM, STREAMS = 20_000, 100, 3
RECOMMENDED = "fastcb"

OURS: list[tuple[str, dict[str, Any]]] = [
    (RECOMMENDED, {}),
    ("squarecb", {}),
    ("linucb", {}),
    ("lints", {}),
    ("banditron", {}),
]
PEERS: list[tuple[str, dict[str, Any]]] = [
    ("vw", {}),
    ("vw", {"exploration": "bag"}),
    ("vw", {"exploration": "cover"}),
    ("vw", {"exploration": "squarecb"}),
    ("vw", {"exploration": "regcb"}),
    ("vw", {"exploration": "regcbopt"}),
    ("river-logistic", {}),
    ("river-linucb", {}),
    ("mabwiser-linucb", {}),
    ("mabwiser-linucb", {"batch": 50}),
    ("mabwiser-lints", {}),
    ("mabwiser-lints", {"alpha": 0.1, "batch": 50}),
    ("contextualbandits-linucb", {}),
    ("contextualbandits-linucb", {"batch": 50}),
    ("contextualbandits-lints", {}),
    ("contextualbandits-lints", {"deviation": 0.1, "batch": 50}),
    ("contextualbandits-sgd", {}),
    ("contextualbandits-sgd", {"batch": 50}),
    ("coba-linucb", {}),
    ("coba-lints", {}),
]
LIBRARIES = ("vowpalwabbit", "river", "mabwiser", "contextualbandits", "coba")
SHAPES = ((4, 19), (5, 27), (2, 112), (7, 20))
"""(K, d) of the real-data study: vehicle, nursery, mushroom, segment, each with its intercept."""

COST_ROUNDS, REPEATS = 1000, 3


class Row(NamedTuple):
    """An agent's measurements, one per stream."""

    label: str
    rates: list[float]
    mistakes: list[float]


def stream(seed: int) -> tuple[Digits, Any, Any]:
    """Return the environment with its whole stream, contexts (T, d) and labels (T,), in memory."""
    env = Digits(horizon=ROUNDS)
    env.reset(seed=seed)
    [(X, y)] = env.blocks(ROUNDS, ROUNDS)
    return env, as_contexts(X), y


def measure(id_: str, settings: dict[str, Any], streams: Iterable[int]) -> Row:
    """Return rounds per CPU second and the share of mistakes on each of the streams."""
    row = Row(name_of(id_, settings), [], [])
    for seed in streams:
        env, X, y = stream(seed)
        trace = Trace.empty(ROUNDS)
        warm, agent = (make(id_, settings, env.problem, seed) for _ in range(2))
        warm.play_block(X[:WARM], y[:WARM], trace.part(slice(0, WARM)))
        start = time.process_time()
        agent.play_block(X, y, trace)
        row.rates.append(ROUNDS / (time.process_time() - start))
        row.mistakes.append(1.0 - float(trace.correct.mean()))
    return row


def name_of(id_: str, settings: dict[str, Any]) -> str:
    """Return an agent's id and settings as the tables show them."""
    return " ".join([f"`{id_}`", *(f"{name} = {value}" for name, value in settings.items())])


def make(id_: str, settings: dict[str, Any], problem: Problem, seed: int) -> Any:
    """Return the agent with this id, built for a problem."""
    agent: Agent = registry().load("agents", id_)(problem, np.random.default_rng(seed), **settings)
    return agent


def lines(rows: Iterable[Row]) -> Iterable[str]:
    """Yield the lines of the table, the first row being the recommended agent's, as the rows come."""
    yield "| agent | rounds/s | us per round | mistakes | least to most | its speed / this | mistakes more, points |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    best: Row | None = None
    for row in rows:
        best = best or row
        rate, mistakes = statistics.median(row.rates), statistics.median(row.mistakes)
        more = statistics.median(a - b for a, b in zip(row.mistakes, best.mistakes, strict=True))
        yield (
            f"| {row.label} | {rate:,.0f} | {1e6 / rate:,.1f} | {100 * mistakes:.2f} % | "
            f"{100 * min(row.mistakes):.2f} to {100 * max(row.mistakes):.2f} | "
            f"{statistics.median(best.rates) / rate:,.1f} | {100 * more:+.2f} |"
        )


def costs(id_: str, settings: dict[str, Any]) -> list[float]:
    """Return microseconds of CPU time a round at each of SHAPES, medians of REPEATS runs."""
    return [statistics.median(cost(id_, settings, K, d) for _ in range(REPEATS)) for K, d in SHAPES]


def cost(id_: str, settings: dict[str, Any], K: int, d: int) -> float:
    """Return microseconds of CPU time a round takes on a planted stream, over the second half of COST_ROUNDS."""
    rounds = COST_ROUNDS
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rounds, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.argmax(X @ rng.standard_normal((d, K)), axis=1)
    agent, trace, half = make(id_, settings, Problem(d, K, 1.0, rounds), 0), Trace.empty(rounds), rounds // 2
    agent.play_block(as_contexts(X[:half]), y[:half], trace.part(slice(0, half)))
    start = time.process_time()
    agent.play_block(as_contexts(X[half:]), y[half:], trace.part(slice(half, None)))
    return 1e6 * (time.process_time() - start) / (rounds - half)


def installed(id_: str) -> bool:
    """Return whether the libraries that an agent needs are there; none is imported."""
    return all(importlib.util.find_spec(name) is not None for name in registry().load("agents", id_).requires)


def versions() -> tuple[list[str], list[str]]:
    """Return the libraries that are installed, with their versions, and those that are not."""
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    return [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES if name not in missing], missing


def main(*, streams: int = STREAMS, jobs: int = 1) -> None:
    """Print the table of the comparison, then what a round costs at the shapes of the real-data study.

    Raises
    ------
    UsageError
        None of the other libraries is installed, or `streams` is below 1.
    """
    at_least("--streams", streams, 1)
    found, missing = versions()
    if not found:
        raise UsageError(f'no other library is installed ({", ".join(missing)}): pip install -e ".[peers]"')
    agents = [case for case in OURS + PEERS if installed(case[0])]
    spread = Parallel(n_jobs=jobs, return_as="generator")
    absent = f"; not installed: {', '.join(missing)}" if missing else ""
    print(f"Digits-v0, T = {ROUNDS:,}, {streams} streams, a core each; {', '.join(found)}{absent}.\n")
    for line in lines(spread(delayed(measure)(*case, range(streams)) for case in agents)):
        print(line, flush=True)
    print(
        f"\nMicroseconds of CPU time a round, dense contexts: medians of {REPEATS} runs, over {COST_ROUNDS // 2} rounds "
        f"after {COST_ROUNDS // 2}.\n"
    )
    print("| agent | " + " | ".join(f"K = {K}, d = {d}" for K, d in SHAPES) + " |")
    print("|---|" + "---:|" * len(SHAPES))
    for case, row in zip(agents, spread(delayed(costs)(*case) for case in agents), strict=True):
        print(f"| {name_of(*case)} | " + " | ".join(f"{value:,.1f}" for value in row) + " |", flush=True)
