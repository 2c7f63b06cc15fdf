"""The dual form of FOLKLORE at many features: the exploration reduction at d = 10,000, and where the primal form pays.

Contexts are dense, on the unit sphere, labels those of a planted linear classifier; or, for the second table, the sparse
ones of Sparse-v0 (d = 347,000, 80 entries a row). Blocks of the stream are made between the measurements. CPU seconds,
kernels warm. First the reduction's rounds a second in each fifth of the run, how many independent contexts the learner
holds by then (its rank r) and the process's peak memory; then, for as many features as the primal form still takes,
microseconds of a forecast (in batches of 128) and of an update against r.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.exploration import Exploration
from banditlab.envs.sparse import Sparse
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace
from banditlab.problem import Problem

BLOCK = 500
UPDATES = 8


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def blocks(K: int, d: int, seed: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Yield blocks of contexts (BLOCK, d) and labels (BLOCK,)."""
    rng = np.random.default_rng(seed)
    planted = rng.standard_normal((K, d))
    while True:
        X = rng.standard_normal((BLOCK, d))
        X /= np.linalg.norm(X, axis=1)[:, None]
        yield as_contexts(X), np.argmax(X @ planted.T, axis=1)


def learner(K: int, d: int, form: str, max_memory: float = 4.0) -> FOLKLORE:
    """Return a FOLKLORE in the form asked for."""
    return FOLKLORE(Problem(d, K, 1.0), None, norm_bound=5.0, form=form, max_memory=max_memory)  # type: ignore[arg-type]


def peak() -> float:
    """Return the most memory this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def sparse_blocks() -> Iterator[tuple[Any, NDArray[np.int64]]]:
    """Yield blocks of Sparse-v0."""
    env: Any = Sparse(n_features=347_000, nonzeros=80)
    env.reset(seed=0)
    yield from env.blocks(10**6, BLOCK)


def reduction(
    K: int, d: int, gamma: float, rounds: int, stream: Iterator[tuple[Any, NDArray[np.int64]]], radius: float = 1.0
) -> None:
    """Print the reduction's speed and memory along one run over a stream of blocks."""
    players = [
        Exploration(Problem(d, K, radius, rounds), np.random.default_rng(1), gamma=gamma, norm_bound=5.0, form="dual")
        for _ in range(2)
    ]
    trace = Trace.empty(BLOCK)
    for _ in range(3):  # compiles and warms
        players[0].play_block(*next(stream), trace)
    del players[0]
    print(f"exploration around folklore: K = {K}, d = {d:,}, gamma = {gamma:g}; {peak():,.0f} MiB before\n")
    print(f"{'rounds':>8}{'r':>8}{'rounds/s':>12}{'peak MiB':>12}")
    spent, total = 0.0, 0.0
    fifth = max(BLOCK, rounds // 5 // BLOCK * BLOCK)
    for played in range(BLOCK, rounds + 1, BLOCK):
        X, y = next(stream)
        spent += cpu_seconds(lambda X=X, y=y: players[0].play_block(X, y, trace))  # type: ignore[misc]
        if played % fifth == 0:
            rank = int(players[0].inner.state.span.rank[0])
            print(f"{played:>8,}{rank:>8,}{fifth / spent:>12,.0f}{peak():>12,.0f}", flush=True)
            spent, total = 0.0, total + spent
    print(f"{'mean':>16}{rounds / (total + spent):>12,.0f}\n")


def measured(folklore: FOLKLORE, X: NDArray[np.float64], y: NDArray[np.int64]) -> tuple[float, float]:
    """Return the median microseconds of a forecast, in batches, and of an update, which the learner keeps."""
    many = statistics.median(cpu_seconds(lambda: folklore.predict_many(X[:128])) for _ in range(5)) / 128
    spent = [cpu_seconds(lambda t=t: folklore.update(X[t], int(y[t]))) for t in range(UPDATES)]  # type: ignore[misc]
    return 1e6 * many, 1e6 * sum(spent) / UPDATES  # the mean: one of eight flushes the others


def crossover(K: int, d: int) -> None:
    """Print forecast and update of both forms against the independent contexts learnt."""
    print(f"folklore, K = {K}, d = {d:,}, CPU us\n\n{'r':>8}{'forecast':>12}{'update':>12}")
    stream = blocks(K, d, 3)
    X, y = next(stream)
    dual, primal = learner(K, d, "dual"), learner(K, d, "primal")
    measured(primal, X, y)
    for target in (50, 100, 200, 400, 600, 800, d - UPDATES):
        while dual.state.span.rank[0] < target:
            X, y = next(stream)
            n = int(min(BLOCK, target - dual.state.span.rank[0]))
            dual.forecast_block(X[:n], y[:n], np.empty((n, K)))
        X, y = next(stream)
        print(f"{target:>8,}{'':4}{'{:,.0f}{:>12,.0f}'.format(*measured(dual, X, y)):>20}", flush=True)
    print(f"{'primal':>8}{'':4}{'{:,.0f}{:>12,.0f}'.format(*measured(primal, X, y)):>20}")


def main(*, features: int = 10_000, classes: int = 10, gamma: float = 0.1, rounds: int = 20_000) -> None:
    """Print the tables; the last at d = 1,000."""
    reduction(classes, features, gamma, rounds, blocks(classes, features, 0))
    reduction(4, 347_000, gamma, rounds, sparse_blocks())
    crossover(classes, 1000)
