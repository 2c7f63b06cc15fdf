"""docs/results/bakeoff.md: agents over the tables of the bake-off of Bietti, Agarwal and Langford."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from banditlab.analysis.across import by_family, critical_difference, log_rates, mean_ranks, mean_ratio
from banditlab.analysis.pages import markdown_table
from banditlab.analysis.statistics import Interval

FIRST = "stackcb"
CONSTANT = "most frequent class"
SIZES = ("rows", "features", "classes")
SEEN = (11, 21, 26, 28, 31, 36, 50, 54, 184, 334, 991, 1471, 1489)
"""OpenML ids of tables on which defaults were chosen or agents developed."""
AFTERWARDS = ", best rate"
"""How a player's name ends whose learning rate is the best of four on each table, known afterwards."""
THEORY = ("exploration(folklore)", "gaptron", "banditron")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Means:
    """Mistakes in %, shape (players, tables), of the tables that count in means, with their families, K, and numbers."""

    players: list[str]
    shares: Floats
    rounds: Floats
    families: list[str]
    classes: Floats
    ids: Floats

    def part(self, inside: NDArray[np.bool_]) -> Means:
        """Return the means of some of the tables."""
        families = [family for family, there in zip(self.families, inside, strict=True) if there]
        return Means(
            self.players, self.shares[:, inside], self.rounds[inside], families, self.classes[inside], self.ids[inside]
        )

    @property
    def logs(self) -> Floats:
        """Logarithms of mistake rates as means over families, (players, families)."""
        return by_family(log_rates(self.shares / 100.0, self.rounds), self.families)

    def ratio(self, player: str, other: str = FIRST) -> Interval:
        """Return the geometric mean of a player's mistakes divided by another's, its interval one of all pairs at once."""
        mine, its = (self.logs[self.players.index(name)] for name in (player, other))
        return mean_ratio(mine, its, len(self.players))

    @property
    def ranks(self) -> dict[str, float]:
        """Mean rank of each player over families, 1 for the fewest mistakes."""
        return dict(zip(self.players, mean_ranks(self.shares, self.families).tolist(), strict=True))


def read(results: Path) -> Means:
    """Return the tables of bakeoff.csv but those whose one-against-all loss is not the published one."""
    table = pd.read_csv(results / "bakeoff.csv")
    reading = pd.read_csv(results / "bakeoff-reading.csv", keep_default_na=False)
    ids = table["table"].str.partition("-")[0].astype(int)
    table = table[~ids.isin(reading.loc[reading["agrees"] == "", "openml_id"])]
    players = [str(name) for name in table.columns if name not in ("table", "family", *SIZES)]
    return Means(
        players,
        table[players].to_numpy(float).T,
        table["rows"].to_numpy(float),
        table["family"].tolist(),
        table["classes"].to_numpy(float),
        ids[table.index].to_numpy(float),
    )


def parts(results: Path) -> dict[str, str]:
    """Return the page's texts and tables by marker."""
    means = read(results)
    wins = pd.read_csv(results / "bakeoff-wins.csv")
    wins = wins[wins["table"].str.partition("-")[0].astype(int).isin(means.ids)]
    fresh = means.part(~np.isin(means.ids, SEEN))
    ranks = means.ranks
    ordered = sorted(means.players, key=lambda name: ranks[name])
    real = [name for name in ordered if not name.endswith(AFTERWARDS) and name != CONSTANT]
    peers = [name for name in real if name.startswith("VW")]
    tuned = [name for name in ordered if name.endswith(AFTERWARDS)]
    texts = {
        "tables": str(means.shares.shape[1]),
        "families": str(len(set(means.families))),
        "two": str(int(np.sum(means.classes == 2))),
        "fresh": str(fresh.shares.shape[1]),
        "critical": f"{critical_difference(len(means.players), len(set(means.families))):.1f}",
        "lowest": f"`{real[0]}`",
        "second": _compared(means, real[1]),
        "peer": _compared(means, min(peers, key=lambda name: means.ratio(name).mean)),
        "theory": _span([means.ratio(name).mean for name in THEORY]),
        "peer-best": _compared(means, min(tuned, key=lambda name: means.ratio(name).mean)),
        "greedy": _written(means.ratio(f"VW greedy{AFTERWARDS}", f"VW RegCB-opt{AFTERWARDS}")),
        "greedy-epsilon": _written(means.ratio(f"VW greedy{AFTERWARDS}", f"VW epsilon-greedy{AFTERWARDS}")),
    }
    return texts | {"players": _players(means, fresh, wins, ordered), "classes": _by_classes(means, ordered)}


def _compared(means: Means, name: str) -> str:
    return f"`{name}`, with {_written(means.ratio(name))} times the mistakes of `{FIRST}`"


def _written(ratio: Interval) -> str:
    return f"{ratio.mean:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _span(values: list[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def _players(means: Means, fresh: Means, wins: pd.DataFrame, ordered: list[str]) -> str:
    rows, ranks = [], means.ranks
    for name in ordered:
        rows.append([name, f"{ranks[name]:.1f}", f"{means.shares[means.players.index(name)].mean():.1f}"])
        if name == FIRST:
            rows[-1] += ["1", "", "1"]
            continue
        counts = [str(int((wins[name] == sign).sum())) for sign in (1, 0, -1)] if name in wins else []
        rows[-1] += [_written(means.ratio(name)), " / ".join(counts), f"{fresh.ratio(name).mean:.2f}"]
    head = ["agent", "mean rank", "mistakes, %", "ratio (95 %)", "better / tied / worse", "ratio, fresh tables"]
    return markdown_table(head, rows, "lrrrrr")


def _by_classes(means: Means, ordered: list[str]) -> str:
    groups = {
        "K = 2": means.classes == 2,
        "K = 3 to 6": (means.classes > 2) & (means.classes < 7),
        "K > 6": means.classes > 6,
    }
    some = {name: means.part(inside) for name, inside in groups.items()}
    head = ["agent", *(f"{name} ({part.shares.shape[1]} tables)" for name, part in some.items())]
    rows = [
        [name, *("1" if name == FIRST else f"{part.ratio(name).mean:.2f}" for part in some.values())]
        for name in ordered
    ]
    return markdown_table(head, rows, "l" + "r" * len(some))
