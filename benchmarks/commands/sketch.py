"""Second order where contexts are embeddings: rounds a second and mistakes of full matrices, sketches, diagonals.

Streams: "embedding", K clusters in d dimensions, two fifths of |x|^2 the cluster's own direction, two fifths in K directions
that all share, in falling order, a fifth noise in all d; one label in twenty is drawn at random. "digits" as they come;
"fourier": the same, each seen through d random Fourier features.
Blocks, one core; rounds a second of processor time in the second half, the median of the streams.
"""

from __future__ import annotations

import csv
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from analysis.result_pages.benchmarks import parts
from banditlab import Problem, make_agent
from banditlab.analysis.pages import fill_page
from banditlab.envs.digits import Digits
from banditlab.numerics.contexts import as_contexts
from banditlab.players.actor import Trace
from benchmarks.measure.names import picked

PLACE = Path(__file__).parents[2] / "docs" / "results"
TABLE = PLACE / "second-order.csv"
AGENTS: dict[str, dict[str, Any]] = {
    "fastcb": {},
    "squarecb": {},
    "linucb": {},
    "lints": {},
    "stackcb": {},
}
"""Agents with their settings."""
FORMS: dict[str, dict[str, Any]] = {
    "full": {"second_order": "full"},
    "sketch 16": {"second_order": "sketch", "sketch_size": 16},
    "sketch 32": {"second_order": "sketch"},
    "sketch 64": {"second_order": "sketch", "sketch_size": 64},
    "diagonal": {"second_order": "diagonal"},
}
CELLS = {
    "embedding": ((20, 1024), (10, 256), (2, 1024), (10, 512), (50, 256), (10, 1024)),
    "fourier": ((10, 512), (10, 1024)),
    "digits": ((10, 65),),
}
COLUMNS = ("stream", "K", "d", "agent", "second_order", "rounds", "streams", "mistakes", "later", "rate")


class Run(NamedTuple):
    """Mistakes of a run and of its second half, in per cent, and its rounds a second of processor time in that half."""

    mistakes: float
    later: float
    rate: float


def main(
    *,
    rounds: int = 10_000,
    streams: int = 3,
    agents: str = "fastcb",
    forms: str = "",
    cells: str = "",
    keep: bool = False,
) -> None:
    """Print a line for each kind of stream, size, agent and form; `keep` writes them to docs/results, too.

    `agents`, `forms`, `cells` (such as 20x1024): with commas. "later": mistakes in the second half.
    """
    every = [(f"{K}x{d}", kind, K, d) for kind, pairs in CELLS.items() for K, d in pairs]
    sizes, forms_ = picked("cells", cells, [size for size, *_ in every]), picked("forms", forms, FORMS)
    lines = []
    for kind, K, d in (cell for size, *cell in every if size in sizes):
        for id_ in picked("agents", agents, AGENTS):
            for form in forms_ if id_ != "stackcb" else [form for form in forms_ if "sketch" not in form]:
                runs = [played(kind, K, d, id_, AGENTS[id_] | FORMS[form], rounds, seed) for seed in range(streams)]
                whole, later = np.mean([run[:2] for run in runs], axis=0)
                rate = np.median([run.rate for run in runs])
                line = [kind, K, d, id_, form, rounds, streams, f"{whole:.2f}", f"{later:.2f}", f"{rate:.0f}"]
                lines.append(line)
                print(*line, sep=",", flush=True)
    if keep:
        write(lines)
        fill_page(PLACE / "benchmarks.md", parts(PLACE))


def write(lines: list[list[Any]]) -> None:
    """Put the lines into the table in the place of those of the same stream, size, agent and form."""
    own = {tuple(map(str, line[:5])): [str(entry) for entry in line] for line in lines}
    if TABLE.exists():
        with open(TABLE, encoding="utf-8", newline="") as file:
            old = {tuple(line[:5]): line for line in list(csv.reader(file))[1:]}
        own = old | own
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *own.values()])


def played(kind: str, K: int, d: int, id_: str, settings: dict[str, Any], rounds: int, seed: int) -> Run:
    """Return what one run of an agent comes to."""
    X, y = {"embedding": embedding, "fourier": fourier, "digits": digits}[kind](K, d, rounds, seed)
    problem = Problem(d, K, max(1.0, float(np.linalg.norm(X, axis=1).max())))
    agent, trace, half = make_agent(id_, problem, seed=seed, **settings), Trace.empty(rounds), rounds // 2
    agent.play_block(X[:half], y[:half], trace.part(slice(0, half)))
    start = time.process_time()
    agent.play_block(X[half:], y[half:], trace.part(slice(half, rounds)))
    rate = (rounds - half) / (time.process_time() - start)
    return Run(100.0 * float(np.mean(~trace.correct)), 100.0 * float(np.mean(~trace.correct[half:])), rate)


def embedding(K: int, d: int, rounds: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return contexts (rounds, d) of norm 1 and labels (rounds,)."""
    rng = np.random.default_rng([seed, K, d])
    centres = rng.standard_normal((K, d)) / math.sqrt(d)
    within = np.linalg.qr(rng.standard_normal((d, K)))[0].T * (np.arange(1, K + 1)[:, None] ** -0.5)
    within *= math.sqrt(1.0 / np.square(within).sum())
    y = rng.integers(K, size=rounds)
    X = centres[y] + rng.standard_normal((rounds, K)) @ within + math.sqrt(0.5 / d) * rng.standard_normal((rounds, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-12)
    return as_contexts(X), np.where(rng.random(rounds) < 0.05, rng.integers(K, size=rounds), y).astype(np.int64)


def digits(K: int, d: int, rounds: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the digits in the order of a seed, again and again until there are so many."""
    env = Digits(horizon=rounds)
    env.reset(seed=seed)
    blocks = [(np.array(X), np.array(y)) for X, y in env.blocks(rounds, rounds)]
    return as_contexts(np.vstack([X for X, _ in blocks])), np.concatenate([y for _, y in blocks]).astype(np.int64)


def fourier(K: int, d: int, rounds: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the digits in the orders of a seed, through d random Fourier features of a Gaussian kernel of width 2."""
    pixels, y = load_digits(return_X_y=True)
    rng, features = np.random.default_rng(seed), np.random.default_rng(6)
    order = np.concatenate([rng.permutation(len(y)) for _ in range(-(-rounds // len(y)))])[:rounds]
    W, shifts = features.standard_normal((64, d)) / 2.0, features.uniform(0.0, 2.0 * math.pi, d)
    X = np.cos(pixels[order] / 16.0 @ W + shifts) * math.sqrt(2.0 / d)
    X /= max(1.0, np.linalg.norm(X, axis=1).max()) * (1.0 + 1e-12)
    return as_contexts(X), y[order].astype(np.int64)
