"""stackcb with each of its parts switched off, and at other settings, over folders of tables: docs/results/ablation.csv.

    python -m benchmarks ablation --streams 2 --rounds 3000 --keep

plays every *.csv.gz (label column `class`) of the folders that BANDITLAB_TABLES or --tables names, separated by commas,
and the synthetic streams of at most 300 columns: min(rows, rounds) rounds of each. A run prints a line as it ends: table,
part, mistakes in %, microseconds per round. --keep writes the csv: ratios of geometric means, without the part over with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from banditlab import Problem, make_agent
from banditlab.agents.stacked import views
from banditlab.agents.stacked.stackcb import forget
from banditlab.players.actor import Trace
from benchmarks.commands.stack import environment
from benchmarks.measure.made_streams import KINDS, scaled
from benchmarks.measure.names import picked

KEPT = Path(__file__).parents[2] / "docs" / "results" / "ablation.csv"
Stream = tuple[NDArray[np.float64], NDArray[np.int64]]
FAMILIES = {"all": "thyroid", "ann": "thyroid", "hyp": "thyroid", "sol": "solar flares", "soy": "soybean"}
"""Tables that are nearly copies weigh as one; by the first letters of their names."""


class Part(NamedTuple):
    """What is played without a part: a change of the new agent, settings, other bandwidths of the Fourier blocks."""

    change: Callable[[Any], None] = lambda agent: None
    settings: dict[str, Any] = {}
    bandwidths: tuple[tuple[float, float], ...] = views.BANDWIDTHS


def one_prior(prior: float) -> Callable[[Any], None]:
    """Return a change that gives both stacks the same prior variance."""

    def change(agent: Any) -> None:
        agent.state.stack.priors[:] = prior
        forget(agent.state, True)

    return change


def silent(*experts: int) -> Callable[[Any], None]:
    """Return a change that keeps the margins of these linear experts at 0."""

    def change(agent: Any) -> None:
        agent.state.start[list(experts)] = 1e-12  # so are lambda's inverses
        forget(agent.state, True)

    return change


def no_trees(agent: Any) -> None:
    """Leave the trees' margins at 0."""
    agent.state = agent.state._replace(trees=None)


def no_softmax(agent: Any) -> None:
    """Leave the third stack without any weight."""
    agent.state.stack.behind[0] = 1e9


def no_cold_start(agent: Any) -> None:
    """Play the first rounds as all others."""
    agent.state.cold[0] = False


PARTS = {
    "stackcb": Part(),
    "Fourier blocks": Part(settings={"blocks": 0}),
    "four of eight Fourier blocks": Part(settings={"blocks": 4}),
    "64 of 96 Fourier features": Part(settings={"features": 64}),
    "trees": Part(no_trees),
    "blocks of half the columns": Part(bandwidths=views.BANDWIDTHS[:2]),
    "second bandwidth": Part(bandwidths=tuple((1.0, share) for _, share in views.BANDWIDTHS)),
    "complement": Part(settings={"complement": False}),
    "ridge expert": Part(silent(4)),
    "third stack": Part(no_softmax),
    "cold start": Part(no_cold_start),
    "changes": Part(settings={"changes": False}),
    "loose stack": Part(one_prior(0.1)),
    "tight stack": Part(one_prior(3.0)),
    "experts by range": Part(silent(2, 3)),
    "experts of larger lambda": Part(silent(1, 3)),
    "half of the sharpness": Part(settings={"sharpness": 100.0}),
}


def main(
    *,
    tables: str = os.environ.get("BANDITLAB_TABLES", ""),
    streams: int = 2,
    first: int = 0,
    rounds: int = 3000,
    only: str = "",
    keep: bool = False,
) -> None:
    """Play and print; `only`: parts with commas, stackcb among them. Streams are numbered from `first` on."""
    wanted, found = picked("only", only, tuple(PARTS)), []
    for part in ("stackcb", "complement", "trees"):  # compile the kernels
        play(PARTS[part], 2, np.eye(2), np.arange(2), 0)
    for group, name, K, draw in sources(tables, rounds):
        played = [draw(seed) for seed in range(first, first + streams)]
        for part in wanted:
            shares, spent = zip(*(play(PARTS[part], K, *pair, first + i) for i, pair in enumerate(played)), strict=True)
            found.append((group, name, part, float(np.mean(shares)), float(np.mean(spent))))
            print(*found[-1][:3], f"{found[-1][3]:.3f},{found[-1][4]:.1f}", sep=",", flush=True)
    summary = summed(pd.DataFrame(found, columns=["tables", "table", "part", "mistakes", "us_per_round"]))
    print(summary.to_string(index=False))
    if keep:
        summary.to_csv(KEPT, index=False, lineterminator="\n")


def sources(tables: str, rounds: int) -> Iterator[tuple[str, str, int, Callable[[int], Stream]]]:
    """Yield every source of streams: its folder, its name, K, and what draws the stream of a seed."""
    for folder in filter(None, tables.split(",")):
        for path in sorted(Path(folder).glob("*.csv.gz")):
            env = environment(path, standard=False)
            T = min(env.n_rows, rounds)

            def rows(seed: int, env: Any = env, T: int = T) -> Stream:
                env.reset(seed=seed)
                [(X, y)] = env.blocks(T, T)
                return np.asarray(X), np.asarray(y)

            yield Path(folder).name, path.name.removesuffix(".csv.gz"), env.problem.n_classes, rows
    for kind in KINDS:
        T = min(rounds, kind.rounds)

        def drawn(seed: int, kind: Any = kind, T: int = T) -> Stream:
            X, y = kind.draw(np.random.default_rng([seed, kind.rounds]), T)
            return scaled(X, "norm"), y.astype(np.int64)

        if drawn(0, kind, 2)[0].shape[1] <= 300:
            yield "synthetic", kind.name, kind.n_classes, drawn


def play(part: Part, n_classes: int, X: NDArray[np.float64], y: NDArray[np.int64], seed: int) -> tuple[float, float]:
    """Return one run's mistakes in % and its microseconds of processor time per round."""
    whole, views.BANDWIDTHS = views.BANDWIDTHS, part.bandwidths
    settings = {"second_order": "full", **part.settings}
    agent: Any = make_agent("stackcb", Problem(X.shape[1], n_classes, 1.0), seed=seed, **settings)
    views.BANDWIDTHS = whole
    part.change(agent)
    trace, start = Trace.empty(len(y)), time.process_time()
    agent.play_block(X, y, trace)
    return 100.0 * float(1.0 - trace.correct.mean()), 1e6 * (time.process_time() - start) / len(y)


def summed(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each folder and part; the families' tables weigh as one."""
    lines = []
    whole = runs[runs.part == "stackcb"].set_index("table")
    for (group, part), own in runs.groupby(["tables", "part"], sort=False):
        own, base = own.set_index("table"), whole.loc[own.table]
        ratios = np.log(own.mistakes / base.mistakes)
        weighed = ratios.groupby([FAMILIES.get(name[:3], name) for name in ratios.index]).mean()
        more = own.mistakes - base.mistakes
        error = float(weighed.std(ddof=1) / np.sqrt(len(weighed))) if len(weighed) > 1 else float("nan")
        lines.append(
            (group, part, len(weighed), own.mistakes.mean(), np.exp(weighed.mean()), np.exp(weighed.mean()) * error,
             more.max(), more.idxmax(), own.us_per_round.mean())
        )  # fmt: skip
    columns = ["tables", "without", "n", "mistakes", "ratio", "standard_error", "most_pp", "most_on", "us_per_round"]
    decimals = {"mistakes": 2, "ratio": 4, "standard_error": 4, "most_pp": 2, "us_per_round": 0}
    return pd.DataFrame(lines, columns=columns).round(decimals)
