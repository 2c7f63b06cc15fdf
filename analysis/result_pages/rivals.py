"""docs/results/rivals.md: `stackcb` and `fastcb` beside other libraries' agents, and what all labels are worth."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from banditlab.analysis.pages import markdown_table
from banditlab.analysis.statistics import holm, p_value
from banditlab.results.files import write_bytes

OWN, REFERENCE, NOISE = "stackcb", "fastcb", "noise"
LINEAR = ("fastcb", "fastcb 3e-4", "standardised")
OURS = (*LINEAR, "Fourier", "Fourier and linear")
PEERS = (
    "vw",
    "vw tuned",
    "mabwiser-linucb",
    "mabwiser-linucb tuned",
    "mabwiser-lints",
    "mabwiser-lints tuned",
    "neighbours",
    "neighbours tuned",
    "river-logistic",
    "river-logistic tuned",
    "river-linucb",
    "boosted trees 0.05",
    "boosted trees 0.01",
)
LABELS = ("logistic one pass", "boosting one pass", "logistic cross-validated", "boosting cross-validated")
"""Told every label: not players."""
MARGIN, BEHIND, BEHIND_LINEAR = 0.5, 2.0, 0.7
"""Differences in pp: equal within the first; worse above the second, or above the third against a linear agent."""
LEAST = 4
"""The number of streams that a player needs to count as the best other."""
SHORT = 1000
"""Below so many rows the margin is one standard error wider."""
LEVEL = 0.05
TOGETHER = ("-in-order", "-by-mouse")
"""Ends of the names of tables that are played in their order, or in groups of rows."""
RELATED = ("eeg-eye-state", "electricity", "mice", "phishing", "skin", "wall-robot")
"""Tables whose rows are not independent: three are records in time, mice has 15 rows a mouse, half of two are copies."""


class Line(NamedTuple):
    """A table and a player: its setting and scaling, mistakes in % of each stream, microseconds of CPU a round."""

    table: str
    held: bool
    rounds: int
    n_classes: int
    n_features: int
    player: str
    setting: str
    scaling: str
    mistakes: tuple[float, ...]
    microseconds: float

    @property
    def mean(self) -> float:
        """The mean of the mistakes over the streams."""
        return float(np.mean(self.mistakes))


Table = dict[str, Line]
"""A table's lines by player."""


def read(path: Path) -> list[Line]:
    """Return the lines of a csv file; none where it is not there yet."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Line(
                row["table"],
                row["held"] == "True",
                int(row["rounds"]),
                int(row["n_classes"]),
                int(row["n_features"]),
                row["player"],
                row["setting"],
                row["scaling"],
                tuple(map(float, row["mistakes"].split())),
                float(row["microseconds"]),
            )
            for row in csv.DictReader(file)
        ]


def write(path: Path, lines: Iterable[Line]) -> None:
    """Write the lines in the place of what was there, at once: a run that is killed leaves the old file or the new one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*Line._fields[:8], "mean", "mistakes", "microseconds"])
    for line in lines:
        shown = " ".join(f"{m:.3f}" for m in line.mistakes)
        writer.writerow([*line[:8], f"{line.mean:.3f}", shown, f"{line.microseconds:.1f}"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, text.getvalue().encode())


def spoken(line: Line) -> str:
    """Return a line as it is printed while the study runs."""
    chosen = f"  {line.setting} ({line.scaling})" if line.setting else f"  ({line.scaling})"
    return f"{line.table:20} {line.player:26} {line.mean:6.2f} %  {line.microseconds:8.1f} us{chosen}"


def parts(results: Path) -> dict[str, str]:
    """Return the page's tables and sentences by marker."""
    lines = read(results / "rivals.csv")
    every, tables = by_table(lines), shuffled(lines)
    return {
        "summary": summary(tables),
        "players": players(tables),
        "tables": mistakes(tables, [*OURS, OWN]),
        "peers": mistakes(tables, [OWN, *PEERS]),
        "leads": leads(tables),
        "price": price(tables),
        "control": said_of_noise(every.get(NOISE, {})),
        "order": related(every),
        "chosen": chosen(tables),
        "long": longer(tables, by_table(read(results / "rivals-long.csv"))),
    }


def shuffled(lines: Iterable[Line]) -> dict[str, Table]:
    """Return the lines of shuffled tables whose labels are their own."""
    return {name: table for name, table in by_table(lines).items() if name != NOISE and not name.endswith(TOGETHER)}


def by_table(lines: Iterable[Line]) -> dict[str, Table]:
    """Return each table's lines by player."""
    found: dict[str, Table] = {}
    for line in lines:
        found.setdefault(line.table, {})[line.player] = line
    return found


# ------------------------------------------------------------------------------------------------------------ the best other


class Lead(NamedTuple):
    """Who is the best other on one half of the streams, and by how many points stackcb is behind it on the other half."""

    player: str
    points: float
    error: float
    rounds: int

    @property
    def level(self) -> bool:
        """Whether stackcb is within the margin, a standard error wider on a short table."""
        return self.points <= MARGIN + (self.error if self.rounds < SHORT else 0.0)


def lead(table: Table, others: Iterable[str]) -> Lead:
    """Compare stackcb, on every other stream, with the other that was furthest ahead of it on the streams between.

    A player of fewer streams is met on those it played; one of fewer than `LEAST` takes no part.
    """
    own = np.array(table[OWN].mistakes)
    there = [table[name] for name in others if name in table and len(table[name].mistakes) >= LEAST]
    gaps = {line.player: own[: len(line.mistakes)] - np.array(line.mistakes[: len(own)]) for line in there}
    best = max(gaps, key=lambda name: float(gaps[name][0::2].mean()))
    seen = gaps[best][1::2]
    error = float(np.std(seen, ddof=1) / math.sqrt(len(seen))) if len(seen) > 1 else math.nan
    return Lead(best, float(seen.mean()), error, table[OWN].rounds)


def summary(tables: dict[str, Table]) -> str:
    """Return the counts over all tables, over those held and over the others: a row each."""
    groups = (
        ("all", lambda line: True),
        ("held", lambda line: line.held),
        ("not held", lambda line: not line.held),
        ("of independent rows", lambda line: line.table not in RELATED),
        ("held, of independent rows", lambda line: line.held and line.table not in RELATED),
    )
    rows = []
    for name, within in groups:
        part = {t: rows for t, rows in tables.items() if within(rows[OWN])}
        if part:
            rows.append([f"{name} {len(part)}", *counted(part)])
    head = [
        "tables",
        f"within {MARGIN} pp of the best other",
        f"over {BEHIND:.0f} pp behind it",
        f"over {BEHIND_LINEAR} pp behind the best linear setting of `fastcb`",
        f"within {MARGIN} pp of the best peer",
        f"over {BEHIND:.0f} pp behind it",
        f"over {BEHIND:.0f} pp ahead of it",
        f"mistakes relative to `{REFERENCE}`: geometric mean",
        "median",
    ]
    return markdown_table(head, rows)


def counted(tables: dict[str, Table]) -> list[str]:
    """Return the counts over some tables: against all others, against the linear ones of ours, against the peers alone."""
    every = [lead(table, [*OURS, *PEERS]) for table in tables.values()]
    linear = [lead(table, LINEAR) for table in tables.values()]
    peers = [lead(table, PEERS) for table in tables.values()]
    counts = (
        sum(each.level for each in every),
        sum(each.points > BEHIND for each in every),
        sum(each.points > BEHIND_LINEAR for each in linear),
        sum(each.level for each in peers),
        sum(each.points > BEHIND for each in peers),
        sum(each.points < -BEHIND for each in peers),
    )
    found = ratios(tables, OWN, REFERENCE)
    return [*map(str, counts), f"{geometric(found):.3f}", f"{np.median(found):.3f}"]


def geometric(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))


def ratios(tables: dict[str, Table], player: str, over: str) -> list[float]:
    """Return a player's error over another's on the streams both played, for each table that both played."""
    ratios = []
    for table in tables.values():
        if player in table and over in table:
            n = min(len(table[player].mistakes), len(table[over].mistakes))
            ratios.append(float(np.mean(table[player].mistakes[:n]) / np.mean(table[over].mistakes[:n])))
    return ratios


# ------------------------------------------------------------------------------------------------------------ the page's tables


def players(tables: dict[str, Table]) -> str:
    """Return a row per player: its mistakes relative to stackcb's, and where it is significantly better or worse."""
    tests = {}
    for name in (*OURS, *PEERS):
        for table, rows in tables.items():
            if name in rows and min(len(rows[name].mistakes), len(rows[OWN].mistakes)) > 1:
                n = min(len(rows[name].mistakes), len(rows[OWN].mistakes))
                a, b = rows[name].mistakes[:n], rows[OWN].mistakes[:n]
                tests[name, table] = (p_value(a, b), float(np.mean(a) - np.mean(b)))
    sure = dict(zip(tests, np.asarray(holm([p for p, _ in tests.values()])) < LEVEL, strict=True)) if tests else {}
    rows = []
    for name in (*OURS, *PEERS):
        found = ratios(tables, name, OWN)
        if not found:
            continue
        mine = {key: gap for key, (_, gap) in tests.items() if key[0] == name}
        ahead = sum(sure[key] and gap < 0 for key, gap in mine.items())
        behind = sum(sure[key] and gap > 0 for key, gap in mine.items())
        streams = max(len(table[name].mistakes) for table in tables.values() if name in table)
        relative = [f"{geometric(found):.3f}", f"{np.median(found):.3f}"]
        rows.append([code(name), str(len(found)), str(streams), *relative, str(ahead), str(behind)])
    head = [
        "agent",
        "tables",
        "streams",
        "mistakes relative to `stackcb`: geometric mean",
        "median",
        "significantly better",
        "significantly worse",
    ]
    return markdown_table(head, rows)


def mistakes(tables: dict[str, Table], names: Iterable[str]) -> str:
    """Return a row per table, the mean mistakes of each of the players."""
    names = [name for name in names if any(name in table for table in tables.values())]
    rows = []
    for table in tables.values():
        own = table[OWN]
        least = min(table[player].mean for player in names if player in table)
        cells = [shown(table, player, bold=least) for player in names]
        rows.append([titled(own), f"{own.rounds:,}", str(own.n_classes), str(own.n_features), *cells])
    return markdown_table(["table", "T", "K", "d", *map(code, names)], rows)


def related(tables: dict[str, Table]) -> str:
    """Return a row per table of related rows: the players' mistakes on shuffled rows, and in order or by group."""
    both = [(name.removesuffix(end), name) for name in tables for end in TOGETHER if name.endswith(end)]
    names = [player for player in (OWN, *OURS, *PEERS) if any(player in tables[name] for _, name in both)]
    if not both:
        return "not played"
    head = ["rows", *map(code, names)]
    return markdown_table(
        head, [[n, *(shown(tables[n], p) for p in names)] for pair in both for n in pair if n in tables]
    )


def leads(tables: dict[str, Table]) -> str:
    """Return a row per table: stackcb less the best other, and less the best of the peers."""
    rows = []
    for table in tables.values():
        every, peers = lead(table, [*OURS, *PEERS]), lead(table, PEERS)
        rows.append([titled(table[OWN]), code(every.player), gap(every), code(peers.player), gap(peers)])
    head = ["table", "best other", "difference, pp", "best peer", "difference, pp"]
    return markdown_table(head, rows, align="llrlr")


def price(tables: dict[str, Table]) -> str:
    """Return a row per table: stackcb on one bit, and models that observe every label."""
    names = [name for name in LABELS if any(name in table for table in tables.values())]
    rows = [
        [titled(table[OWN]), f"{table[OWN].mean:.1f}", *(shown(table, name) for name in names)]
        for table in tables.values()
    ]
    return markdown_table(["table", "`stackcb`, one bit", *names], rows)


def longer(tables: dict[str, Table], long: dict[str, Table]) -> str:
    """Return a row per player: its mistakes on each table of more rounds, beside those on the same table's usual ones."""
    head, rows = ["agent"], []
    if not long:
        return "not played"
    for name in long:
        head += [f"{name}, T = {of[name][OWN].rounds:,}" for of in (tables, long) if name in of]
    for player in (OWN, *OURS, *PEERS, *LABELS[:2]):
        if any(player in table for table in long.values()):
            cells = [shown(of[name], player) for name in long for of in (tables, long) if name in of]
            rows.append([code(player), *cells])
    found = [lead(table, [*OURS, *PEERS]) for table in long.values()]
    best = [f"{gap(each)} on `{name}` ({code(each.player)})" for name, each in zip(long, found, strict=True)]
    leads = "At the longer T, the mistake rate of `stackcb` minus that of the best other agent or model is, "
    leads += "in pp (± one standard error), "
    return markdown_table(head, rows) + "\n\n" + leads + " and ".join(", ".join(best).rsplit(", ", 1)) + "."


def chosen(tables: dict[str, Table]) -> str:
    """Return how often each setting of Vowpal Wabbit was chosen."""
    lines = [table["vw tuned"] for table in tables.values() if "vw tuned" in table]

    def often(said: Callable[[str], str]) -> str:
        found = [said(line.setting) for line in lines]
        return ", ".join(
            f"{name} {found.count(name)}" for name in sorted(set(found), key=lambda n: (-found.count(n), n))
        )

    features = often(lambda s: "`-q ::`" if "-q ::" in s else "`--nn`" if "--nn" in s else "linear")
    ways = ("--cover", "--bag", "--regcbopt", "--squarecb", "--epsilon")
    exploration = often(lambda s: next(f"`{way}`" for way in ways if way in s))
    costs = often(lambda s: "-1/0" if "--loss0" in s else "0/1")
    return f"of {len(lines)} tables: {features}; {exploration}; costs {costs}."


def said_of_noise(table: Table) -> str:
    """Return the least and the largest mean of all players where labels are drawn by chance."""
    if not table:
        return "not played"
    least, most = (choose(table.values(), key=lambda line: line.mean) for choose in (min, max))
    return f"from {least.mean:.1f} % ({code(least.player)}) to {most.mean:.1f} % ({code(most.player)})"


def shown(table: Table, player: str, bold: float | None = None) -> str:
    """Return a player's mean with one decimal, or nothing where it did not play."""
    if player not in table:
        return ""
    text = f"{table[player].mean:.1f}"
    return f"**{text}**" if bold is not None and table[player].mean == bold else text


def gap(found: Lead) -> str:
    """Return points with their standard error."""
    return f"{found.points:+.1f} ± {found.error:.1f}"


def titled(line: Line) -> str:
    """Return a table's name, with "(held)" where it had no part in stackcb's design."""
    return line.table + (" (held)" if line.held else "")


def code(name: str) -> str:
    """Return a player's name as the page writes it."""
    first, _, rest = name.partition(" ")
    return f"`{first}` {rest}".strip() if first in CODED else name


CODED = ("fastcb", "stackcb", "vw", "mabwiser-linucb", "mabwiser-lints", "river-logistic", "river-linucb")
"""First words that are ids."""
