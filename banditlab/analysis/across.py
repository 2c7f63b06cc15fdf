"""Compare agents over many data sets: wins and losses, ratios of mistakes, mean ranks. A family of data sets counts as
one.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from banditlab.analysis.arena import Arena, arenas
from banditlab.analysis.formats import data_title
from banditlab.analysis.statistics import LEVEL, Floats, Interval, difference, leads
from banditlab.analysis.summary import differences, standings
from banditlab.analysis.tables import Results, once

LEAST_DATA, LEAST_FAMILIES = 5, 3
"""The smallest numbers of data sets and of families for which agents are compared."""
BINS = {"classes": (2, 5), "features": (10, 50), "rows": (1_000, 5_000)}
"""The upper ends of the groups of data sets by each quantity; the last group has none."""
SIGNS = {"classes": "K", "features": "d", "rows": "n"}


@dataclass(frozen=True)
class Pair:
    """Comparison of two agents over all data sets.

    Attributes
    ----------
    wins, ties, losses
        Number of data sets on which the first is significantly better, neither is, or the second is (95 %,
        simultaneously for all pairs of a data set).
    ratio
        Geometric mean, over families, of the mistakes of the first divided by those of the second. The intervals of all
        pairs hold simultaneously with probability 95 %.
    """

    first: str
    second: str
    wins: int
    ties: int
    losses: int
    ratio: Interval


@dataclass(frozen=True)
class Across:
    """Comparison of the agents that were run on all data sets.

    Attributes
    ----------
    arenas
        The data sets.
    families
        The family of each data set, or its title if it has no family.
    agents
        Labels, by mean rank.
    shares
        Mistake rates, shape (agents, data sets).
    ranks
        Mean rank of each agent over families.
    critical
        The critical difference of mean ranks (Nemenyi's test at 5 %; Demsar: Statistical comparisons of classifiers
        over multiple data sets, JMLR 7, 2006).
    pairs
        Every ordered pair of agents.
    left_out
        One sentence for each agent and data set that is not compared.
    """

    arenas: list[Arena]
    families: list[str]
    agents: list[str]
    shares: Floats
    ranks: Floats
    critical: float
    pairs: dict[tuple[str, str], Pair]
    left_out: list[str]

    @property
    def titles(self) -> list[str]:
        """The short name of each data set."""
        return [data_title(arena.environment) for arena in self.arenas]

    @property
    def n_families(self) -> int:
        """The number of families; a data set without a family counts as one."""
        return len(set(self.families))

    def ahead(self, first: str, second: str) -> bool:
        """Return whether `first` is significantly better than `second`, by the ratio's interval and by mean ranks."""
        gap = self.ranks[self.agents.index(second)] - self.ranks[self.agents.index(first)]
        return bool(self.pairs[first, second].ratio.high < 1.0 and gap > self.critical)

    def sentence(self) -> str:
        """Return a sentence on the agent with the lowest mean rank and on how many agents are significantly worse."""
        best, others = self.agents[0], self.agents[1:]
        beaten = sum(self.ahead(best, other) for other in others)
        told = (
            f"significantly better than {beaten} of {len(others)} others"
            if beaten
            else "no other agent is significantly worse"
        )
        return f"{best} has the lowest mean rank over {len(self.arenas)} data sets; {told}."

    def groups(self) -> pd.DataFrame:
        """Return a row for each range of K, d or n: the geometric mean of each agent's mistakes divided by those of the
        first agent, which has the lowest mean rank.
        """
        rows, logs = [], _logs(self.shares, self.arenas)
        for name, ends in BINS.items():
            size = np.array([arena.results.data[arena.environment][name] for arena in self.arenas])
            for low, high in zip((0, *ends), (*ends, math.inf), strict=True):
                inside = (size > low) & (size <= high)
                if inside.any():
                    means = by_family(
                        logs[:, inside], [f for f, i in zip(self.families, inside, strict=True) if i]
                    ).mean(axis=1)
                    text = f"> {low:,}" if high == math.inf else f"{low + 1:,} to {high:,}" if low else f"<= {high:,}"
                    ratios = dict(zip(self.agents, np.exp(means - means[0]), strict=True))
                    rows.append({"group": f"{SIGNS[name]} {text}", "data sets": int(inside.sum())} | ratios)
        return pd.DataFrame(rows)

    def table(self) -> pd.DataFrame:
        """Return a row per data set: its family, size, and every agent's mistake rate."""
        facts = [arena.results.data[arena.environment] for arena in self.arenas]
        sizes = [{name: int(fact[name]) for name in ("rows", "features", "classes")} for fact in facts]
        frame = pd.DataFrame({"data": self.titles, "family": self.families}).join(pd.DataFrame(sizes))
        return frame.join(pd.DataFrame(self.shares.T, columns=self.agents))

    def pair_table(self) -> pd.DataFrame:
        """Return a row per pair; the agent with the lower mean rank is the first."""
        rows = []
        for i, a in enumerate(self.agents):
            for b in self.agents[i + 1 :]:
                pair = self.pairs[a, b]
                rows.append({"first": a, "second": b, "wins": pair.wins, "ties": pair.ties, "losses": pair.losses})
                rows[-1] |= {
                    "ratio": pair.ratio.mean,
                    "low": pair.ratio.low,
                    "high": pair.ratio.high,
                    "ahead": self.ahead(a, b),
                }
        return pd.DataFrame(rows)


@once
def across(results: Results) -> Across | None:
    """Return the comparison of the agents of a results folder over its data sets, or None if there are too few.

    Data sets with missing runs are left out, and so are agents that do not support one of the data sets (`skipped`).
    """
    every = [arena for arena in arenas(results) if arena.kind == "bit" and arena.environment in results.data]
    titles = [data_title(arena.environment) for arena in every]
    if len(set(titles)) < len(titles):  # one data set in several forms
        return None
    unable = {label for label in results.labels() for skip in results.skipped if _names(skip.player, label)}
    rows = {arena.environment: {row.label: row for row in standings(arena)} for arena in every}
    labels = [
        label for label in results.labels() if label not in unable and any(label in each for each in rows.values())
    ]
    whole = [arena for arena in every if set(labels) <= set(rows[arena.environment])]
    patterns = dict(results.spec.get("families", {}))
    families = [_family(data_title(arena.environment), patterns) for arena in whole]
    if len(whole) < LEAST_DATA or len(set(families)) < LEAST_FAMILIES or len(labels) < 2:
        return None
    lacking = [data_title(arena.environment) for arena in every if arena not in whole]
    left_out = [f"{label}: does not support all data sets" for label in sorted(unable)]
    left_out += [f"{title}: runs are missing" for title in lacking]
    shares = np.array([[rows[arena.environment][label].mistakes.mean for arena in whole] for label in labels])
    return _compared(whole, families, labels, shares, left_out)


def _names(player: str, label: str) -> bool:
    return player == label or player.startswith(f"{label}(")


def _family(title: str, patterns: dict[str, list[str]]) -> str:
    title = re.sub(r"^OpenML with data_id=(\d+).*", r"openml:\1", title)
    found = (name for name, each in patterns.items() if any(fnmatch.fnmatchcase(title, pattern) for pattern in each))
    return next(found, title)


def _compared(
    whole: list[Arena], families: list[str], labels: list[str], shares: Floats, left_out: list[str]
) -> Across:
    ranks = mean_ranks(shares, families)
    order = np.argsort(ranks, kind="stable")
    agents = [labels[i] for i in order]
    k, critical = len(agents), critical_difference(len(agents), len(set(families)))
    logs = by_family(_logs(shares[order], whole), families)
    won = _won(whole)
    pairs = {}
    for i, a in enumerate(agents):
        for j, b in enumerate(agents):
            if i != j:
                ratio = mean_ratio(logs[i], logs[j], k)
                wins, losses = won.get((a, b), 0), won.get((b, a), 0)
                pairs[a, b] = Pair(a, b, wins, len(whole) - wins - losses, losses, ratio)
    return Across(whole, families, agents, shares[order], ranks[order], critical, pairs, left_out)


def _won(whole: list[Arena]) -> dict[tuple[str, str], int]:
    """Return, for each pair (better, worse), the number of data sets on which the first is significantly better."""
    won: dict[tuple[str, str], int] = {}
    for arena in whole:
        label = {row.name: row.label for row in standings(arena)}
        for first, second, gap in differences(arena):
            for better, worse, behind in ((first, second, -gap), (second, first, gap)):
                if leads(behind):
                    pair = label[better], label[worse]
                    won[pair] = won.get(pair, 0) + 1
    return won


def _logs(shares: Floats, whole: list[Arena]) -> Floats:
    return log_rates(shares, np.array([arena.ranked_rounds for arena in whole]))


def log_rates(shares: Floats, rounds: ArrayLike) -> Floats:
    """Return the logarithms of mistake rates (agents, data sets); fewer than half a mistake per run counts as half."""
    return np.asarray(np.log(np.maximum(shares, 0.5 / np.asarray(rounds))))


def mean_ratio(first: Floats, second: Floats, agents: int) -> Interval:
    """Return the geometric mean of the ratio of two agents' mistakes and its interval, from the logarithms of each
    family's rates. The intervals hold simultaneously for all pairs of `agents` agents.
    """
    gap = difference(first, second, family=agents)
    mean, low, high = np.exp([gap.mean, gap.low, gap.high]).tolist()
    return Interval(mean, low, high, gap.n, gap.method)


def mean_ranks(shares: Floats, families: Sequence[str]) -> Floats:
    """Return each agent's mean rank over families (agents,) from shares (agents, data sets); rank 1 has the fewest
    mistakes.
    """
    from scipy.stats import rankdata  # importing scipy.stats takes most of a second

    return by_family(rankdata(shares, axis=0), families).mean(axis=1)


def critical_difference(agents: int, families: int) -> float:
    """Return the least difference of two mean ranks that is significant by Nemenyi's test."""
    from scipy.stats import studentized_range

    scale = math.sqrt(agents * (agents + 1) / (6 * families))
    return float(studentized_range.ppf(LEVEL, agents, math.inf) / math.sqrt(2) * scale)


def by_family(values: Floats, families: Sequence[str]) -> Floats:
    """Average `values` (agents, data sets) over the data sets of each family; return (agents, families)."""
    names = np.array(families)
    return np.stack([values[:, names == name].mean(axis=1) for name in dict.fromkeys(families)], axis=1)
