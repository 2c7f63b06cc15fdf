"""Late and lost answers: false alarms and rises found by the status, and agents of which only hits are answered.

    python -m benchmarks late --keep

counts decisions with the code of `banditlab status`. --keep writes docs/results/late-answers-drift.csv,
late-answers-one-sided.csv and the page.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.result_pages.late_answers import MODES, Drift, OneSided, drift_table, one_sided_table, parts, write
from banditlab import make_agent
from banditlab.analysis.pages import fill_page
from banditlab.envs.logistic import Logistic
from banditlab.policy.confidence import rise, sequence
from banditlab.policy.unanswered import Unanswered, checked, counted
from banditlab.validation import at_least

PLACE = Path(__file__).parents[2] / "docs" / "results"
LATE = 300
"""Decisions by which an answer is late."""
BEFORE, AFTER, LOOK = 800, 400, 100
"""Decisions before the rise; decisions that count in which it is to be found; decisions between two looks."""
LENGTH = 3000
LOW, HIGH = 0.2, 0.5
AGENTS = ("fastcb", "stackcb", "linucb")
ROUNDS = 4000
Floats = NDArray[np.float64]


def lateness(pattern: str, mistakes: Floats, rng: np.random.Generator) -> Floats:
    """Return by how many decisions each answer is late (n,), infinity where none comes."""
    n = len(mistakes)
    return {
        "none": np.zeros(n),
        "constant": np.full(n, float(LATE)),
        "geometric": rng.geometric(1.0 / LATE, n) - 1.0,
        "by outcome": np.where(mistakes == 1.0, LATE, 0.0),
        "lost by outcome": np.where(mistakes == 1.0, np.inf, 0.0),
    }[pattern]


PATTERNS = ("none", "constant", "geometric", "by outcome", "lost by outcome")
WRONG = checked("wrong", f"{LATE} s")
"""A decision is made each second."""


def main(*, runs: int = 200, seeds: int = 12, keep: bool = False) -> None:
    """Play and print both tables."""
    at_least("runs", runs, 1)
    at_least("seeds", seeds, 1)
    rules = [(pattern, Unanswered()) for pattern in PATTERNS] + [(PATTERNS[-1], WRONG or Unanswered())]
    drifts = [drift_line(pattern, rule, runs) for pattern, rule in rules]
    print(drift_table(drifts), flush=True)
    sides = [
        OneSided(agent, mode, tuple(one_sided(agent, mode, seed, ROUNDS) for seed in range(seeds)))
        for agent in AGENTS
        for mode in MODES
    ]
    print(one_sided_table(sides))
    if keep:
        write(PLACE / "late-answers-drift.csv", Drift, drifts)
        write(PLACE / "late-answers-one-sided.csv", OneSided, sides)
        fill_page(PLACE / "late-answers.md", parts(PLACE))


# ------------------------------------------------------------------------------------------------------------------- drift


def drift_line(pattern: str, rule: Unanswered, runs: int) -> Drift:
    """Return what the status says of stationary runs and of runs whose mistake rate rises."""
    alarms = arrivals = missed = found = unknown = 0
    for run in range(runs):
        rng = np.random.default_rng([run, PATTERNS.index(pattern)])
        stay = (rng.random(LENGTH) < LOW).astype(float)
        late = lateness(pattern, stay, rng)
        ends = [looked(stay, late, rule, n) for n in range(LOOK, LENGTH + 1, LOOK)]
        alarms += any(rise(x) is not None for x, _ in ends)
        missed += any(outside(x) for x, _ in ends)
        order = np.argsort(np.arange(LENGTH) + late, kind="stable")[: int((np.arange(LENGTH) + late < LENGTH).sum())]
        arrivals += any(rise(stay[order[:n]]) is not None for n in range(LOOK, len(order) + 1, LOOK))
        risen = (rng.random(LENGTH) < np.where(np.arange(LENGTH) < BEFORE, LOW, HIGH)).astype(float)
        late = lateness(pattern, risen, rng)
        ends = [looked(risen, late, rule, n) for n in range(LOOK, LENGTH + 1, LOOK)]
        found += any(rise(x[: BEFORE + AFTER]) is not None for x, _ in ends)
        unknown += ends[-1][1] > 0
    return Drift(pattern, rule.treated_as, runs, alarms, arrivals, missed, found, unknown)


def looked(mistakes: Floats, late: Floats, rule: Unanswered, n: int) -> tuple[Floats, int]:
    """Return the mistakes that count after n decisions, and how many decisions are left out."""
    at = np.arange(n, dtype=np.float64)
    answered_at = at + late[:n]
    correct = 1.0 - mistakes[:n]
    if rule.treated_as == "wrong":  # as a policy closes them: with the first event after the deadline
        over = answered_at > at + rule.seconds
        answered_at, correct = np.where(over, at + rule.seconds + 1.0, answered_at), np.where(over, 0.0, correct)
    there = answered_at < n
    # Decisions and answers in one sequence; a decision stands before an answer of its own time.
    times = np.concatenate([at, answered_at[there]])
    place = np.empty(len(times))
    place[np.lexsort([np.arange(len(times)) >= n, times])] = np.arange(1.0, len(times) + 1.0)
    answered_place = np.full(n, np.nan)
    answered_place[there] = place[n:]
    which = counted(place[:n], at, answered_place, np.where(there, answered_at, np.nan), float(n), rule)
    return 1.0 - correct[which.places], int(np.count_nonzero(~which.in_time))


def outside(x: Floats) -> bool:
    """Return whether the interval is beside the true rate at the end."""
    _, low, high = sequence(x)
    return len(x) > 0 and not low[-1] <= LOW <= high[-1]


# --------------------------------------------------------------------------------------------------------------- one-sided


def one_sided(agent_id: str, mode: str, seed: int, rounds: int) -> float:
    """Return the mistakes in % on a planted stream of four classes.

    A mode is one of `MODES`: every answer comes at once; only hits are answered, and silence is ignored, or is learnt as wrong
    `LATE` decisions later.
    """
    env = Logistic(n_features=10, n_classes=4, norm_bound=20.0)
    env.reset(seed=seed)
    [(X, y)] = env.blocks(rounds, rounds)
    agent, wrong, silent = make_agent(agent_id, env.problem, seed=seed), 0, deque[tuple[int, object, object]]()
    for t, (x, label) in enumerate(zip(np.asarray(X), y, strict=True)):
        while silent and silent[0][0] < t - LATE:
            agent.learn(*silent.popleft()[1:], False)  # type: ignore[call-arg, arg-type]
        decision = agent.act(x)
        hit = bool(decision.action == label)
        wrong += not hit
        if hit or mode == MODES[0]:
            agent.learn(x, decision, hit)
        elif mode == MODES[2]:
            silent.append((t, x, decision))
    return 100.0 * wrong / rounds
