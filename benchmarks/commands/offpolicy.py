"""Off-policy evaluation: how often the intervals hold a known value, how wide they are, how far off the estimates.

    python -m benchmarks offpolicy --keep

draws logs over four contexts and four actions with chances of reward drawn anew for each log. --keep writes
docs/results/offpolicy.csv and the page.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.result_pages.offpolicy import FIXED, LEARNING, parts, table
from banditlab.analysis.pages import fill_page
from banditlab.offpolicy import Log, estimated_propensities, evaluate
from banditlab.offpolicy.evaluation import DEPTH
from banditlab.offpolicy.intervals import BETS, earlier_means
from banditlab.validation import at_least

PLACE = Path(__file__).parents[2] / "docs" / "results"
Floats = NDArray[np.float64]
S, K = 4, 4
"""Contexts, all equally likely, and actions."""
LEVEL = 0.95
FIXED_ROUNDS, LEARNING_ROUNDS, ESTIMATED_ROUNDS = (500, 2000, 8000), (2000,), (500,)
TARGETS = ("uniform", "best single", "best by context", "an action by context, 9 of 10")
ESTIMATED = "epsilon-greedy, propensities estimated"


class Drawn(NamedTuple):
    """One log: contexts, actions, bits (n,), the logger's probabilities and predictions (n, K), chances of reward (n, S, K)."""

    contexts: NDArray[np.intp]
    actions: NDArray[np.intp]
    rewards: Floats
    p: Floats
    predictions: Floats
    chances: Floats
    own: NDArray[np.intp]
    """An action by context (S,), which a fixed logger prefers."""


def main(*, logs: int = 1000, keep: bool = False) -> None:
    """Evaluate so many logs a kind and print a line for each."""
    at_least("logs", logs, 1)
    kinds = [(name, rounds) for name in FIXED for rounds in FIXED_ROUNDS]
    kinds += [(ESTIMATED, rounds) for rounds in ESTIMATED_ROUNDS]
    kinds += [(name, rounds) for name in LEARNING for rounds in LEARNING_ROUNDS]
    lines = []
    for name, rounds in kinds:
        lines += of_logger(name, rounds, logs)
        print(table(pd.DataFrame(lines[-len(TARGETS) :])), flush=True)
    if keep:
        pd.DataFrame(lines).to_csv(PLACE / "offpolicy.csv", index=False, float_format="%.4g")
        fill_page(PLACE / "offpolicy.md", parts(PLACE))


def of_logger(name: str, rounds: int, logs: int) -> list[dict[str, Any]]:
    """Return a line for each target policy over the same logs."""
    found: dict[str, list[dict[str, float]]] = {target: [] for target in TARGETS}
    for seed in range(logs):
        rng = np.random.default_rng([seed, rounds, [*FIXED, *LEARNING, ESTIMATED].index(name)])
        log = learning(name, rounds, rng) if name in LEARNING else fixed(name.partition(",")[0], rounds, rng)
        if name == ESTIMATED:
            folds = rng.integers(5, size=rounds)
            log = log._replace(p=estimated_propensities(np.eye(S)[log.contexts], log.actions, K, folds))
        for target in TARGETS:
            found[target].append(measured(log, policy(target, log), name))
    return [
        {"logger": name, "target": target, "rounds": rounds, "logs": logs} | summary(pd.DataFrame(rows))
        for target, rows in found.items()
    ]


def summary(rows: pd.DataFrame) -> dict[str, float]:
    """Return the line of one kind of logs from a row for each."""
    errors = {
        f"error_{name}": math.sqrt((rows[name] ** 2).mean()) for name in ("ips", "snips", "direct", "doubly_robust")
    }
    others = rows.drop(columns=["ips", "snips", "direct", "doubly_robust"])
    return {**errors, **{str(name): float(value) for name, value in others.mean().items()}}


# -------------------------------------------------------------------------------------------------------------- loggers


def fixed(name: str, n: int, rng: np.random.Generator) -> Drawn:
    """Return a log of a logger that does not learn."""
    explore = {"uniform": 1.0, "epsilon-greedy": 0.2, "nearly deterministic": 0.02, "hardly exploring": 0.0004}[name]
    chances, own, x = rng.beta(1.0, 1.5, (S, K)), rng.integers(K, size=S), rng.integers(S, size=n)
    p = (explore / K + (1.0 - explore) * np.eye(K)[own])[x]
    a = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=K - 1)
    r = (rng.random(n) < chances[x, a]).astype(float)
    cells = np.eye(S * K)[x * K + a]
    plays = (cells.cumsum(axis=0) - cells).reshape(n, S, K)[np.arange(n), x]
    hits = ((cells * r[:, None]).cumsum(axis=0) - cells * r[:, None]).reshape(n, S, K)[np.arange(n), x]
    return Drawn(x, a, r, p, (hits + 0.5) / (plays + 1.0), np.broadcast_to(chances, (n, S, K)), own)


def learning(name: str, n: int, rng: np.random.Generator) -> Drawn:
    """Return a log of a logger that learns the chances of each context and action."""
    first, later = rng.beta(1.0, 1.5, (2, S, K))
    halves = (np.arange(n) >= n // 2)[:, None, None]
    chances = np.where(halves, later, first) if "change" in name else np.broadcast_to(first, (n, S, K))
    x, uniforms = rng.integers(S, size=n), rng.random((n, 2))
    hits, plays = np.full((S, K), 0.5), np.ones((S, K))
    a, r, p, predictions = np.zeros(n, np.intp), np.zeros(n), np.zeros((n, K)), np.zeros((n, K))
    for t in range(n):
        predictions[t] = hits[x[t]] / plays[x[t]]
        p[t] = probabilities(name, predictions[t], t)
        a[t] = min(int((p[t].cumsum() < uniforms[t, 0]).sum()), K - 1)
        r[t] = uniforms[t, 1] < chances[t, x[t], a[t]]
        hits[x[t], a[t]] += r[t]
        plays[x[t], a[t]] += 1.0
    return Drawn(x, a, r, p, predictions, chances, rng.integers(K, size=S))


def probabilities(name: str, means: Floats, t: int) -> Floats:
    """Return what a learning logger plays in round t, given the means of its context."""
    best = int(means.argmax())
    if name.startswith("epsilon"):
        explore = max(0.05, (t + 1.0) ** (-1.0 / 3.0))
        return explore / K + (1.0 - explore) * np.eye(K)[best]
    p = 1.0 / (K + math.sqrt(K * (t + 1.0)) * (means[best] - means))
    p[best] = 0.0
    p[best] = 1.0 - p.sum()
    return p


# -------------------------------------------------------------------------------------------------------------- figures


def policy(name: str, log: Drawn) -> Floats:
    """Return a target policy (S, K)."""
    first = log.chances[0]
    return {
        "uniform": np.full((S, K), 1.0 / K),
        "best single": np.tile(np.eye(K)[first.mean(axis=0).argmax()], (S, 1)),
        "best by context": np.eye(K)[first.argmax(axis=1)],
        TARGETS[-1]: 0.1 / K + 0.9 * np.eye(K)[log.own],
    }[name]


def measured(log: Drawn, by_context: Floats, name: str) -> dict[str, float]:
    """Return errors of the estimates, whether the intervals hold the value, and their widths.

    The value is the mean over rounds. For a logger that learns, intervals have to hold the values of all rounds.
    """
    target, values = by_context[log.contexts], (by_context * log.chances).sum(axis=2).mean(axis=1)
    value, kind = float(values.mean()), "learning" if name in LEARNING else "fixed"
    full = Log(log.actions, log.rewards, log.p, target, log.predictions)
    plain = full._replace(propensities=log.p[np.arange(len(target)), log.actions], predictions=None)
    estimated = name == ESTIMATED
    robust, weighted = (evaluate(x, logger=kind, estimated=estimated, level=LEVEL) for x in (full, plain))  # type: ignore[arg-type]
    row = {estimate: getattr(robust, estimate) - value for estimate in ("ips", "snips", "direct", "doubly_robust")}
    row |= {"size": robust.effective_sample_size}
    for label, found, depth in (("", robust, DEPTH), ("_weighted", weighted, 0.0)):
        held = found.low <= value <= found.high
        if kind == "learning":
            held = not ever_missed(target, log, values, depth)
        row |= {f"held{label}": math.nan if estimated else float(held), f"width{label}": found.high - found.low}
    for label, found, middle in (("robust", robust, robust.doubly_robust), ("snips", weighted, weighted.snips)):
        half = 1.96 * found.standard_error
        row |= {f"held_normal_{label}": float(abs(middle - value) <= half), f"width_normal_{label}": 2.0 * half}
    return row


def ever_missed(target: Floats, log: Drawn, values: Floats, depth: float) -> bool:
    """Return whether the running interval, with predictions if `depth` is above 0, misses the running mean of the values."""
    means = values.cumsum() / np.arange(1.0, len(values) + 1.0)
    most = math.log(2.0 / (1.0 - LEVEL))
    sides = (
        (terms(target, log, log.rewards, log.predictions, depth), means),
        (terms(target, log, 1.0 - log.rewards, 1.0 - log.predictions, depth), 1.0 - means),
    )
    return any(bool((log_wealth(x, m, depth) > most).any()) for x, m in sides)


def terms(target: Floats, log: Drawn, rewards: Floats, q: Floats, depth: float) -> Floats:
    """Return the terms of one bound (n,), equation 7."""
    own = (np.arange(len(target)), log.actions)
    w = target[own] / log.p[own]
    cut = np.minimum(target * q, depth * log.p).sum(axis=1)
    return w * rewards - np.minimum(w * q[own], depth) + cut


def log_wealth(x: Floats, means: Floats, depth: float) -> Floats:
    """Return the logarithm of the wealth against the running means after every round (n,), equation 8."""
    bets, guesses = BETS / (1.0 + depth), np.clip(earlier_means(x), 0.0, 1.0)
    logs = np.log1p(bets * (x - guesses)[:, None]).cumsum(axis=0)
    rounds = np.arange(1.0, len(x) + 1.0)
    return np.asarray(
        np.logaddexp.reduce(logs - bets * (rounds * means - guesses.cumsum())[:, None], axis=1)
    ) - math.log(len(bets))
