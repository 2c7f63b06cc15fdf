"""docs/results/late-lost-wrong.md: what late, batched, lost and wrong feedback and changed labels cost agents of practice."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.result_pages.late_answers import write
from banditlab.analysis.pages import markdown_table

FILE = "late-lost-wrong.csv"
PLAIN = ("delay", "0")
"""The kind and setting of feedback at once, all of it and right."""
KINDS = {
    "delay": "the delay in rounds",
    "batch": "the number of rounds in a batch",
    "answered": "the share of bits that arrive",
    "timeout": "the bits that arrive and the timeout in rounds",
    "flip": "the share of flipped bits",
    "change": "the change of the labels",
}
SECTIONS = {
    "delay": (
        "Late",
        '"300 where wrong" means that bits for wrong actions arrive 300 rounds late, and bits for right actions at once.',
    ),
    "batch": ("In batches", "Bits arrive together at the end of a batch."),
    "answered": (
        "Lost",
        '"Hits only" means that feedback arrives only for right actions, and missing feedback is ignored.',
    ),
    "timeout": (
        "Missing feedback as a no",
        "The delay of a bit is geometric with mean 100 rounds. Bits arrive for all actions or for right actions (hits) only. "
        'After a timeout of 30 or 300 rounds without a bit, the agent receives a "no".',
    ),
    "flip": (
        "Wrong",
        "In the stated share of rounds the bit that the agent receives is flipped. Mistakes are counted with the true bit.",
    ),
    "change": (
        "Changed labels",
        'Only the second half of the rounds counts. "Swap" exchanges the first two classes. "Rotate" replaces every class '
        "by the next.",
    ),
}
"""The page's section on each kind: its title and what its settings mean."""
FIRST = {"batch": "1", "answered": "1", "flip": "0", "change": "unchanged"}
"""The setting of each kind that is immediate feedback; "timeout" has none, because its feedback is late."""
AT_ONCE = "immediate"
HITS = "hits only"
COSTS = {
    "delay 100": ("delay", "100"),
    "delay 1,000": ("delay", "1000"),
    "batch 1,000": ("batch", "1000"),
    "20 % answered": ("answered", "0.2"),
    "5 % answered": ("answered", "0.05"),
    "hits only": ("answered", HITS),
    "hits only, timeout 300": ("timeout", f"{HITS}, 300"),
    "10 % wrong": ("flip", "0.1"),
    "labels rotate": ("change", "rotate"),
}
Shares = NDArray[np.float64]


class Line(NamedTuple):
    """An agent on a table: expected mistakes in % of all rounds, and of the second half, by stream."""

    kind: str
    setting: str
    table: str
    agent: str
    mistakes: tuple[float, ...]
    later: tuple[float, ...]


def read(path: Path) -> list[Line]:
    """Return the lines of the csv file."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [Line(*row[:4], *(tuple(map(float, cell.split())) for cell in row[4:])) for row in rows]


def save(path: Path, lines: list[Line]) -> None:
    """Write the csv file."""
    write(path, Line, lines)


class Means:
    """Means over streams, by kind, setting and agent: an entry for each table."""

    def __init__(self, lines: list[Line]) -> None:
        self.agents = list(dict.fromkeys(line.agent for line in lines))
        self.tables = list(dict.fromkeys(line.table for line in lines))
        self.kinds = [kind for kind in KINDS if any(line.kind == kind for line in lines)]
        self._all = {line[:4]: (float(np.mean(line.mistakes)), float(np.mean(line.later))) for line in lines}

    def of(self, kind: str, setting: str, agent: str) -> Shares:
        """Return the mistakes in % on each table; those of the second half for "change"."""
        key = PLAIN if setting == AT_ONCE or setting == FIRST.get(kind) else (kind, setting)
        return np.array([self._all[*key, table, agent][kind == "change"] for table in self.tables])

    def settings(self, kind: str) -> list[str]:
        """Return the settings of a kind, that of feedback at once first."""
        found = dict.fromkeys(key[1] for key in self._all if key[0] == kind)
        return [*([FIRST[kind]] if kind in FIRST else []), *found]

    def cost(self, kind: str, setting: str, agent: str) -> tuple[float, float]:
        """Return the mistakes in pp beyond those with feedback at once, their mean over tables and its standard error."""
        apart = self.of(kind, setting, agent) - self.of(kind, AT_ONCE, agent)
        return float(apart.mean()), float(np.std(apart, ddof=1)) / math.sqrt(len(apart))

    def range(self, kind: str, setting: str) -> tuple[float, float]:
        """Return the least and the largest cost of an agent in pp."""
        found = [self.cost(kind, setting, agent)[0] for agent in self.agents]
        return min(found), max(found)

    def best(self, kind: str, setting: str) -> tuple[str, float]:
        """Return the agent with the fewest mistakes in the mean, and that mean."""
        means = {agent: float(self.of(kind, setting, agent).mean()) for agent in self.agents}
        agent = min(means, key=means.__getitem__)
        return agent, means[agent]


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables and texts, by marker."""
    means = Means(read(results / FILE))
    kinds = "\n\n".join(section(means, kind) for kind in means.kinds)
    return {"costs": costs(means), "survivors": survivors(means), "kinds": kinds, **texts(means)}


def section(means: Means, kind: str) -> str:
    """Return a kind's section of the page."""
    title, note = SECTIONS[kind]
    picture = f"![Mistake rate in % by {KINDS[kind]}.](../images/late-lost-wrong-{kind}.png)"
    return "\n\n".join([f"## {title}", picture, note, table(means, kind)])


def costs(means: Means) -> str:
    """Return the costs in pp with their standard errors over tables, an agent a row."""
    names = [name for name, (kind, _) in COSTS.items() if kind in means.kinds]
    rows = []
    for agent in means.agents:
        found = [means.cost(*COSTS[name], agent) for name in names]
        rows.append(
            (agent, f"{means.of(*PLAIN, agent).mean():.1f}", *(f"{mean:+.1f} ± {error:.1f}" for mean, error in found))
        )
    return markdown_table(("agent", "immediate feedback, %", *names), rows)


def survivors(means: Means) -> str:
    """Return, for each kind of trouble, the range of its costs and the agent with the fewest mistakes."""
    rows = []
    for name, (kind, setting) in COSTS.items():
        if kind in means.kinds:
            lowest, highest = means.range(kind, setting)
            agent, share = means.best(kind, setting)
            rows.append((name, f"{lowest:+.1f} to {highest:+.1f}", f"{agent}, {share:.1f}"))
    return markdown_table(("feedback", "costs, pp", "fewest mistakes, %"), rows)


def table(means: Means, kind: str) -> str:
    """Return the mean mistakes in % of a kind, an agent a row."""
    settings = means.settings(kind)
    rows = [(agent, *(f"{means.of(kind, s, agent).mean():.1f}" for s in settings)) for agent in means.agents]
    return markdown_table(("agent", *settings), rows)


def texts(means: Means) -> dict[str, str]:
    """Return the numbers of the page's sentences."""
    found = {}
    asked = {
        "late": ("delay", "100"),
        "hits": ("answered", HITS),
        "silence": ("timeout", f"{HITS}, 300"),
        "wrong": ("flip", "0.1"),
        "changed": ("change", "rotate"),
    }
    for name, (kind, setting) in asked.items():
        lowest, highest = means.range(kind, setting)
        agent, share = means.best(kind, setting)
        found[name] = f"{lowest:.1f} to {highest:.1f} pp"
        found[f"{name}-best"] = f"{share:.1f} % (`{agent}`)"
    firsts = [means.best(*each)[0] for each in COSTS.values() if each[0] in means.kinds]
    agent = max(firsts, key=firsts.count)
    found["first"] = f"`{agent}` makes the fewest mistakes in {firsts.count(agent)} of {len(firsts)} cases"
    return found
