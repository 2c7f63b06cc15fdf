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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.envs.digits import Digits
from banditlab.envs.table import Table
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.players.actor import Trace
from banditlab.problem import Problem
from banditlab.registry import registry
from banditlab.validation import at_least

RESULTS = Path(__file__).parents[2] / "docs" / "results"
NAME = "default-agent"
FEATURES = 600
OTHERS = ("fastcb", "fastcb 3e-4", "standardised", "Fourier")
PLAYERS = (*OTHERS, "stackcb")
MARGIN = 0.5
"""Points within which stackcb counts as level."""


class Line(NamedTuple):
    """A table and a player: mistakes in % of each stream, microseconds of CPU a round, changes called."""

    table: str
    held: bool
    rounds: int
    n_classes: int
    n_features: int
    player: str
    mistakes: tuple[float, ...]
    microseconds: float
    changes: int


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
    problem = Problem(X.shape[1], n_classes, radius)
    agent = registry().load("agents", id_)(problem, np.random.default_rng([seed, 1]), **settings)
    trace = Trace.empty(len(y))
    agent.play_block(as_contexts(X), y, trace)
    return float(1.0 - trace.correct.mean()), int(agent.diagnostics().get("changes", 0))


def fourier(X: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Return 600 Fourier features of norm 1 of standardised rows, the bandwidth their median distance."""
    rng = np.random.default_rng([seed, 2])
    half = min(len(X) // 2, 256)
    V = np.clip(X, -3.0, 3.0)
    median = float(np.median(np.linalg.norm(V[:half] - V[half : 2 * half], axis=1)))
    Z = V @ rng.standard_normal((X.shape[1], FEATURES // 2)) / (median or 1.0)
    return np.hstack([np.cos(Z), np.sin(Z)]) * ((1.0 - 1e-12) / math.sqrt(FEATURES // 2))


# ------------------------------------------------------------------------------------------------------------ what is told


def halves(line: Line) -> tuple[float, float]:
    """Return the mean mistakes of the first half of the streams and of the second."""
    n = len(line.mistakes) // 2
    return float(np.mean(line.mistakes[:n])), float(np.mean(line.mistakes[n:]))


def lead(lines: list[Line]) -> float:
    """Return stackcb's mistakes less those of the best other, chosen on the first half of the streams, on the second."""
    *others, own = lines
    best = min(others, key=lambda line: halves(line)[0])
    return halves(own)[1] - halves(best)[1]


def markdown(lines: list[Line], *, head: bool) -> str:
    """Return one table's row, with the page's head before the first."""
    own = lines[-1]
    means = [float(np.mean(line.mistakes)) for line in lines]
    cells = [f"{m:.1f}" for m in means]
    name = own.table + (" (held)" if own.held else "")
    row = f"| {name} | {own.rounds:,} | {own.n_classes} | {own.n_features} | {' | '.join(cells)} | {lead(lines):+.1f} |"
    if not head:
        return row
    title = f"| table | T | K | d | {' | '.join(PLAYERS)} | stackcb less the best other |"
    return f"{title}\n|---|---:|---:|---:|{'---:|' * (len(PLAYERS) + 1)}\n{row}"


def by_table(lines: list[Line]) -> list[list[Line]]:
    """Return the lines of each table."""
    return [lines[i : i + len(PLAYERS)] for i in range(0, len(lines), len(PLAYERS))]


def summary(lines: list[Line]) -> str:
    """Return the geometric means of the errors' ratios to fastcb's and the counts, of all tables and of those held."""
    said = []
    for name, part in (("All", lines), ("Held", [line for line in lines if line.held])):
        groups = by_table(part)
        if not groups:
            continue
        ratios = np.array([[np.mean(line.mistakes) / np.mean(group[0].mistakes) for line in group] for group in groups])
        leads = np.array([lead(group) for group in groups])
        means = ", ".join(f"{p} {m:.3f}" for p, m in zip(PLAYERS, np.exp(np.log(ratios).mean(0)), strict=True))
        calls, runs = sum(g[-1].changes for g in groups), sum(len(g[-1].mistakes) for g in groups)
        said.append(
            f"{name} {len(groups)} tables: geometric mean of the error over fastcb's: {means}. stackcb is within {MARGIN} "
            f"points of the best other on {int((leads <= MARGIN).sum())} of {len(groups)}, more than 2 behind on "
            f"{int((leads > 2.0).sum())}; it called {calls} changes in {runs} runs."
        )
    return "\n\n".join(said)


def write(lines: list[Line]) -> None:
    """Write the csv file, and the page's table and summary between their markers."""
    with open(RESULTS / f"{NAME}.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*Line._fields[:6], "mean", "standard_error", "mistakes", "changes"])
        for line in lines:
            error = np.std(line.mistakes, ddof=1) / math.sqrt(len(line.mistakes))
            shown = " ".join(f"{m:.2f}" for m in line.mistakes)
            writer.writerow([*line[:6], f"{np.mean(line.mistakes):.3f}", f"{error:.3f}", shown, line.changes])
    page = RESULTS / f"{NAME}.md"
    text = page.read_text()
    table = "\n".join(markdown(group, head=i == 0) for i, group in enumerate(by_table(lines)))
    for name, filled in (("tables", table), ("summary", summary(lines))):
        before, begin, rest = text.partition(f"<!-- table: {name} -->\n")
        text = before + begin + filled + "\n" + rest[rest.index("<!-- end -->") :]
    page.write_text(text)
