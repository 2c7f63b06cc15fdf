"""stackcb against fastcb on tables, one pass each: fastcb's default, lambda 3e-4, standardised columns, 600 Fourier features.

    python -m benchmarks stack --tables FOLDER --streams 4 --keep

plays every FOLDER/*.csv.gz (label column `class`, missing entries as indicators) and Digits, T = min(rows, rounds). Which of
the four is the best is chosen on the first half of the streams and compared with stackcb on the second. Tables named in
--held had no part in stackcb's design. --keep writes docs/results/default-agent.csv and the table of default-agent.md.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.result_pages.default_agent import PLAYERS, Line, markdown, parts, summary
from banditlab.analysis.pages import fill_page
from banditlab.envs.digits import Digits
from banditlab.envs.table import Table
from banditlab.errors import UsageError
from banditlab.validation import at_least
from benchmarks.measure.fourier import fourier
from benchmarks.measure.one_pass import one_pass

PLACE = Path(__file__).parents[2] / "docs" / "results"


def main(
    *, tables: str = "", streams: int = 4, rounds: int = 5000, held: str = "", only: str = "", keep: bool = False
) -> None:
    """Play and print the table; `held` and `only` are names with commas."""
    at_least("streams", streams, 2)
    files = sorted(Path(tables).glob("*.csv.gz")) if tables else []
    if tables and not files:
        raise UsageError(f"{tables}: no .csv.gz file is there")
    names = [file.name.removesuffix(".csv.gz") for file in files] + ["digits"]
    wanted = [name for name in names if not only or name in only.split(",")]
    lines: list[Line] = []
    for name in wanted:
        path = None if name == "digits" else Path(tables) / f"{name}.csv.gz"
        lines += measured(name, path, streams, at_least("rounds", rounds, 1), name in held.split(","))
        print(markdown(lines[-len(PLAYERS) :], head=name == wanted[0]), flush=True)
    print("\n" + summary(lines))
    if keep:
        write(lines)


def environment(path: Path | None, *, standard: bool) -> Digits | Table:
    """Return the table's environment: the default scaling of `banditlab compare`, or standardised columns."""
    settings: dict[str, Any] = {"scaling": "standard", "normalize": False} if standard else {}
    if path is None:
        return Digits(horizon=1, **settings)
    return Table(path=str(path), label="class", missing="indicator", horizon=1, **settings)


def measured(name: str, path: Path | None, streams: int, rounds: int, held: bool) -> Iterator[Line]:
    """Yield a line for every player."""
    plain, standard = (environment(path, standard=standard) for standard in (False, True))
    T, K, d = min(plain.n_rows, rounds), plain.problem.n_classes, plain.problem.n_features
    for player in PLAYERS:
        env = standard if player in ("standardised", "Fourier") else plain
        mistakes, changes, start = [], 0, time.process_time()
        for seed in range(streams):
            env.reset(seed=seed)
            [(X, y)] = env.blocks(T, T)
            share, called = play(player, X, y, K, env.problem.radius, seed)
            mistakes.append(100.0 * share)
            changes += called
        spent = 1e6 * (time.process_time() - start) / (streams * T)
        yield Line(name, held, T, K, d, player, tuple(mistakes), spent, changes)


def play(
    player: str, X: NDArray[np.float64], y: NDArray[np.int64], n_classes: int, radius: float, seed: int
) -> tuple[float, int]:
    """Return the share of mistakes of one run, and how often a change was called."""
    settings: dict[str, Any] = {"regularization": 3e-4 * radius**2} if player == "fastcb 3e-4" else {}
    if player == "Fourier":
        X, radius = fourier(X, seed), 1.0
    id_ = "stackcb" if player == "stackcb" else "fastcb"
    agent, trace = one_pass(id_, X, y, n_classes, radius, seed, settings)
    return float(1.0 - trace.correct.mean()), int(agent.diagnostics().get("changes", 0))


def write(lines: list[Line]) -> None:
    """Write the csv file, and the page's table and summary between their markers."""
    with open(PLACE / "default-agent.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*Line._fields[:6], "mean", "standard_error", "mistakes", "changes"])
        for line in lines:
            error = np.std(line.mistakes, ddof=1) / math.sqrt(len(line.mistakes))
            shown = " ".join(f"{m:.2f}" for m in line.mistakes)
            writer.writerow([*line[:6], f"{np.mean(line.mistakes):.3f}", f"{error:.3f}", shown, line.changes])
    fill_page(PLACE / "default-agent.md", parts(PLACE))
