"""Label-efficient prediction and apple tasting: bounds searched, and mistakes: docs/results/label-efficient.md.

`python -m benchmarks queries` writes the page, `docs/results/label-efficient.csv` and `docs/results/apple-tasting.csv`.
"""

from __future__ import annotations

import csv
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from banditlab.agents.label_efficient import LabelEfficient
from banditlab.losses import log_sum_exp, softmax
from banditlab.players.actor import Trace
from banditlab.problem import Problem
from benchmarks.commands.conformance import contexts, table
from benchmarks.measure.papers import apples
from benchmarks.measure.papers.boosting import Found, searched
from benchmarks.measure.papers.queries import LINES

DOCS = Path(__file__).parents[2] / "docs"
PAGE, ROWS = DOCS / "results" / "label-efficient.md", DOCS / "results" / "label-efficient.csv"
APPLES = DOCS / "results" / "apple-tasting.csv"
TASTED = "| agent | settings | bits | mistakes beyond the best | accepted, % | guaranteed |"
RATES = (1.0, 0.3, 0.1, 0.03, 0.01)
CLASSES, FEATURES, NORM_BOUND = 3, 10, 5.0
INTRO = r"""# Mistakes when few labels are observed

How many more mistakes does a forecaster make if it observes the label in only a fraction $\epsilon$ of the rounds? How
many more does an agent make if it observes the label only for accepted items?
"""
DATA = r"""The agent is `label-efficient` around `folklore`, with `query_rate` $= \epsilon$ and half-log decoding.
The labels come from a logistic model (K = 3, d = 10, a weight vector of norm B = 5 per class). The table shows means
and standard errors over seeds. Contexts, labels and random draws change with the seed, and all rates use the same
streams. `guaranteed` is half of the sum of the model's loss and the bound $\mathrm{Reg}(\epsilon T)/\epsilon$,
both in bits. A value above T is vacuous.
"""
TASTING = r"""Labels are drawn from a logistic model with two classes, d = 10 and a weight vector of norm 5 per class.
A third of the items are good. The table shows the expected mistakes minus those of the best action in each
round. A rejected item gives no feedback, except where the column `bits` says "all". `guaranteed` is
$T/\gamma + \gamma\, \mathrm{Reg}(T)/2$. With the sharpness $\gamma$ of the theorem the agent accepts more items than
was necessary here. `linucb` never observes that a rejection was wrong, and rejects all items.
"""
SEARCH = r"""## Bounds searched

A setting's ratio is the mean regret divided by the bound. The mean is exact: it is taken over all outcomes of the random draws.

* `label_efficient`: up to 6 rounds of two classes with one or two features. The labels are fixed beforehand, and
  the regret is in log loss.
* `label_efficient_experts`: exponential weights over up to 6 experts with costs 0 or 1 in up to 8 rounds.
* `apple_tasting`: up to 5 items with labels from a model in the ball. The mean is also taken over all labels.

The search changes the setting with the largest ratio, and retains a change if the ratio rises. `searched` counts the
changes tried.
"""


def stream(seed: int, rounds: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return contexts (T, d), labels (T,), and the model's loss on them in nats."""
    rng = np.random.default_rng([3, seed])
    X = contexts(rng, "random", rounds, FEATURES, 1.0)
    W = rng.standard_normal((CLASSES, FEATURES))
    Z = X @ (NORM_BOUND * W / np.linalg.norm(W, axis=1, keepdims=True)).T
    y = (np.cumsum(softmax(Z), axis=1) < rng.random((rounds, 1))).sum(axis=1).clip(max=CLASSES - 1)
    return X, y, float((log_sum_exp(Z) - Z[np.arange(rounds), y]).sum())


def mistakes(rate: float, rounds: int, seeds: int) -> dict[str, Any]:
    """Return the mean mistakes at a query rate, their standard error, the mean queries and the mean guaranteed number."""
    found = []
    for seed in range(seeds):
        X, y, loss = stream(seed, rounds)
        problem = Problem(FEATURES, CLASSES, 1.0, rounds)
        player = LabelEfficient(problem, np.random.default_rng(seed), query_rate=rate, norm_bound=NORM_BOUND)
        trace = Trace.empty(rounds)
        player.play_block(X, y, trace)
        found.append([np.sum(~trace.correct), 0.5 / math.log(2.0) * loss + (player.bound(rounds) or math.nan)])
    means, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)[0] / math.sqrt(seeds)
    numbers = {"agent": "label-efficient", "rounds": rounds, "query_rate": rate, "queries": rate * rounds}
    return numbers | {"mistakes": float(means[0]), "standard_error": float(error), "guaranteed": float(means[1])}


def page(
    rows: list[dict[str, Any]], tasted: list[dict[str, Any]], searches: list[Found], command: str, seconds: float
) -> str:
    """Return docs/results/label-efficient.md."""
    every, tenth = (next(row for row in rows if row["query_rate"] == rate) for rate in (1.0, 0.1))
    settings, above = sum(s.random + s.searched for s in searches), sum(s.above for s in searches)
    answer = (
        f"With a tenth of the labels the forecaster makes {tenth['mistakes'] / every['mistakes']:.2f} times as many "
        f"mistakes as with all labels. A search over {settings:,} small problems finds {above} in which a bound is "
        "exceeded.\n"
    )
    lines = [
        f"| {row['query_rate']:g} | {row['queries']:,.0f} | {row['mistakes']:,.0f} ± {row['standard_error']:.0f} | "
        f"{100.0 * row['mistakes'] / row['rounds']:.1f} | {row['guaranteed']:,.0f} |"
        for row in rows
    ]
    tasting = [
        f"| `{row['agent']}` | {row['settings']} | {row['bits']} | {row['excess']:,.0f} ± {row['standard_error']:.0f} | "
        f"{100.0 * row['accepted']:.1f} | {'' if math.isnan(row['guaranteed']) else format(row['guaranteed'], ',.0f')} |"
        for row in tasted
    ]
    head = r"| $\epsilon$ | mean queries | mistakes | mistake rate, % | guaranteed |"
    found = [
        f"| `{s.name}` | {s.source} | {s.random} | {s.searched} | {s.above} | {s.ratio:.3f} | {s.at} |"
        for s in searches
    ]
    run = f"`{command}` takes {seconds / 60.0:.1f} minutes of CPU time and writes this page, "
    run += f"[`{ROWS.name}`]({ROWS.name}) and [`{APPLES.name}`]({APPLES.name}).\n"
    return "\n".join(
        [
            INTRO,
            answer,
            f"## Mistakes in {rows[0]['rounds']:,.0f} rounds\n\n{DATA}\n{table(head, lines)}\n",
            f"## Apple tasting: {rows[0]['rounds']:,.0f} items\n\n{TASTING}\n{table(TASTED, tasting)}\n",
            f"{SEARCH}\n{table('| bound | paper | random | searched | above | largest ratio | at |', found)}\n",
            f"## How to run it\n\n{run}",
        ]
    )


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV, numbers with six digits."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: v if isinstance(v, str) else f"{v:.6g}" for k, v in row.items()} for row in rows)


def main(*, rounds: int = 20000, seeds: int = 10, random: int = 200, steps: int = 50) -> None:
    """Play, search and write the page; seconds are processor time of this call."""
    began = time.process_time()
    rows = [mistakes(rate, rounds, seeds) for rate in RATES]
    searches = [searched(line, random, steps) for line in (*LINES, *apples.LINES)]
    tasted = [apples.mistakes(*played, rounds, seeds) for played in apples.PLAYED]
    write(ROWS, rows)
    write(APPLES, tasted)
    command = f"python -m benchmarks queries --rounds {rounds} --seeds {seeds} --random {random} --steps {steps}"
    PAGE.write_text(page(rows, tasted, searches, command, time.process_time() - began), encoding="utf-8")
    print(f"written: {PAGE.relative_to(DOCS.parent)}")
