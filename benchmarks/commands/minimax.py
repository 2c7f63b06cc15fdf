"""Regret of forecasters beside the minimax lower bound on orthogonal contexts: docs/results/minimax.md.

`python -m benchmarks minimax` writes the page, the figure and `docs/results/minimax.csv`.
"""

from __future__ import annotations

import csv
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from banditlab.analysis.look import INK, new_figure, save, shared_legend, styled, styles
from banditlab.bounds.minimax import minimax_regret_on_ball
from banditlab.problem import Problem
from benchmarks.commands.conformance import table
from benchmarks.measure.papers.boosting import Found, searched
from benchmarks.measure.papers.minimax import PLAYERS, contexts, hard_labels, least_loss, line, loss, steepest

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURE = DOCS / "results" / "minimax.md", DOCS / "images" / "minimax.png"
ROWS = DOCS / "results" / "minimax.csv"
BALLS = ((1, 3.0), (4, 6.0))
"""Features and norm bound: log-odds of at most 6 at each context in both."""
HORIZONS = (10, 32, 100, 316, 1000, 3162, 10000)
SHOWN = (100, 1000, 10000)
INTRO = r"""# Minimax lower bounds on the regret

How far is a forecaster's regret from the least that any forecaster can guarantee?

![Regret against rounds from 10 to 10,000 on logarithmic scales, one feature on the left and four on the right: the lower bound
lies below all curves; FOLKLORE and GAF are nearest, then AIOLI; OGD rises fastest.](../images/minimax.png)
"""
DATA = r"""There are two classes. The contexts are the d unit vectors in turn. Labels are drawn from the normalised
maximum likelihood distribution over sequences of T labels. For such labels every forecaster's mean regret is at least the
lower bound, `minimax_regret_on_ball`. Regret is in nats, against the best model in the box $|W_{kj}| \le B/\sqrt{d}$,
in which each row of W has norm at most B. The log-odds of these models are at most $2 B/\sqrt{d}$ = 6 in absolute value
at each context. GAF runs with $\lambda = 2/B$ and cubature nodes. The other forecasters run with the settings of their
theorems.
"""
SEARCH = r"""## Worst labels searched

A setting has 3 to 6 rounds, one or two features, and B from 0.01 to 100. Its ratio is the lower bound
divided by the forecaster's largest regret over all $2^T$ sequences of labels. The search changes the setting with the
largest ratio, and retains a change if the ratio rises. `random` counts random settings, `searched` the
changes tried, and `below` the settings whose largest regret is below the lower bound.
"""


class Row(NamedTuple):
    """Mean regret of a forecaster, its standard error and theorem, and the lower bound."""

    n_features: int
    norm_bound: float
    rounds: int
    lower_bound: float
    forecaster: str
    regret: float
    standard_error: float
    bound: float


def measured(n_features: int, norm_bound: float, rounds: int, draws: int) -> list[Row]:
    """Return a row for each forecaster; all meet the same labels."""
    X, limit = contexts(rounds, n_features), steepest(norm_bound, n_features)
    rng = np.random.default_rng([2, n_features, rounds])
    labels = [hard_labels(rng, X, limit) for _ in range(draws)]
    least = [least_loss(X, y, limit) for y in labels]
    lower, rows = minimax_regret_on_ball(rounds, n_features, norm_bound, 1.0), []
    for name, make in PLAYERS.items():
        regrets = np.array([loss(name, X, y, norm_bound) for y in labels]) - least
        error = float(regrets.std(ddof=1)) / math.sqrt(draws)
        bound = make(Problem(n_features, 2, 1.0, rounds), norm_bound).bound(rounds)
        rows.append(Row(n_features, norm_bound, rounds, lower, name, float(regrets.mean()), error, bound or math.nan))
    return rows


@styled
def picture(rows: list[Row]) -> Any:
    """Draw regret against rounds, a panel for each number of features."""
    figure = new_figure(3.8)
    axes, looks = figure.subplots(1, len(BALLS), sharey=True), styles(list(PLAYERS))
    for ax, (d, B) in zip(axes, BALLS, strict=True):
        here = [row for row in rows if row.n_features == d]
        for name, look in looks.items():
            own = [row for row in here if row.forecaster == name]
            regrets, errors = [row.regret for row in own], [row.standard_error for row in own]
            ax.errorbar(HORIZONS, regrets, errors, color=look.colour, marker=look.marker, ms=4, label=name)
        lower = [row.lower_bound for row in here if row.forecaster == "ogd"]
        ax.plot(HORIZONS, lower, color=INK, ls=(0, (4, 3)), label="lower bound of every forecaster")
        ax.set(xscale="log", yscale="log", xlabel="rounds", title=f"d = {d}, B = {B:g}")
    axes[0].set(ylabel="mean regret (nats)")
    shared_legend(figure, axes, ncols=5)
    return figure


def page(rows: list[Row], searches: list[Found], command: str, seconds: float) -> str:
    """Return docs/results/minimax.md."""
    near = [row.regret / row.lower_bound for row in rows if row.forecaster == "folklore"]
    below = sum(row.regret < row.lower_bound for row in rows)
    settings, above = sum(s.random + s.searched for s in searches), sum(s.above for s in searches)
    answer = (
        f"FOLKLORE's mean regret is {min(near):.1f} to {max(near):.1f} times the lower bound. "
        f"Of {len(rows)} means {below} are below it. "
        f"A search over {settings:,} settings finds {above} whose worst regret is below it.\n"
    )
    lines = []
    for d, B in BALLS:
        for T in SHOWN:
            here = {row.forecaster: row for row in rows if (row.n_features, row.rounds) == (d, T)}
            shown = [f"{row.regret:.2f} ± {row.standard_error:.2f}" for row in here.values()]
            known = here["folklore"]
            lines.append(
                f"| {d} | {B:g} | {T:,} | {known.lower_bound:.2f} | " + " | ".join(shown) + f" | {known.bound:.1f} |"
            )
    head = f"| d | B | T | lower bound | {' | '.join(PLAYERS)} | folklore's bound |"
    found = [f"| {s.name} | {s.random} | {s.searched} | {s.above} | {s.ratio:.4f} | {s.at} |" for s in searches]
    run = f"`{command}` takes about {seconds:.0f} s of CPU time and writes this page, the figure and "
    run += f"[`{ROWS.name}`]({ROWS.name}).\n"
    return "\n".join(
        [
            INTRO,
            answer,
            f"## Regret\n\n{DATA}\n{table(head, lines)}\n",
            f"{SEARCH}\n{table('| forecaster | random | searched | below | largest ratio | at |', found)}\n",
            f"## How to run it\n\n{run}",
        ]
    )


def main(*, draws: int = 30, random: int = 200, steps: int = 50) -> None:
    """Play, search, draw the figure and write the page; seconds are processor time of this call."""
    began = time.process_time()
    rows = [row for d, B in BALLS for T in HORIZONS for row in measured(d, B, T, draws)]
    searches = [searched(line(name), random, steps) for name in PLAYERS]
    with ROWS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows([f"{value:.6g}" if isinstance(value, float) else value for value in row] for row in rows)
    save(picture(rows), PICTURE)
    command = f"python -m benchmarks minimax --draws {draws} --random {random} --steps {steps}"
    PAGE.write_text(page(rows, searches, command, time.process_time() - began), encoding="utf-8")
    print(f"written: {PAGE.relative_to(DOCS.parent)}")
