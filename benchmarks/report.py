"""The page and the figure made from the measured rows and rates."""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from banditlab.analysis.look import COLOURS, INK, THIN, new_figure, save, styled
from benchmarks import machine
from benchmarks.costs import Player
from benchmarks.floors import Floor, cell_of, floor
from benchmarks.growth import LEAST_FEATURES, Point, grow, verdict
from benchmarks.machine import Rates
from benchmarks.players import LEFT_OUT, OURS, PEERS
from benchmarks.table import CLASSES, FEATURES, ROUNDS, STREAM_BYTES, Row

TARGETS = {"first": 15.0, "second": 10.0}
JOBS = {"first": "first order", "second": "a second-order model per class"}
LIMITS = {"folklore": 2.0, "fastcb": 2.5}
LIBRARIES = ("vowpalwabbit", "river", "mabwiser", "contextualbandits", "coba")

COLUMNS = (
    *("player", "rounds/s", "us a round", "floor, us", "ratio", "the floor is"),
    *("peak MiB", "state MiB", "mistakes", "of rounds", "x fastest peer"),
)

Place = tuple[str, int, int]


class Cell(NamedTuple):
    """A measured row of our own beside its floor."""

    player: Player
    row: Row
    floor: Floor

    @property
    def ratio(self) -> float:
        """Measured over floor."""
        return (self.row.nanoseconds or 0.0) / self.floor.nanoseconds


class Results:
    """Rows and rates with what is looked up in them."""

    def __init__(self, rows: list[Row], rates: Rates) -> None:
        self.rows, self.rates = rows, rates
        self.places = list(dict.fromkeys((row.stream, row.K, row.d) for row in rows))
        self.by_key = {(row.player, row.stream, row.K, row.d): row for row in rows}

    def row(self, player: Player, place: Place) -> Row | None:
        """Return a player's row at (stream, K, d)."""
        return self.by_key.get((player.label, *place))

    def measured(self, player: Player, place: Place) -> Row | None:
        """Return a player's row where it was measured."""
        row = self.row(player, place)
        return row if row is not None and row.nanoseconds else None

    def cell(self, player: Player, place: Place) -> Cell | None:
        """Return a player's measured row beside its floor."""
        row, loop = self.measured(player, place), self.measured(OURS[0], place)
        if row is None:
            return None
        d = row.d
        stream_bytes = 8.0 * d * min(ROUNDS, STREAM_BYTES // (8 * d), row.rounds or 1)
        nanoseconds = loop.nanoseconds if loop is not None and loop.nanoseconds else 0.0
        return Cell(player, row, floor(player, row, self.rates, nanoseconds, stream_bytes))

    def fastest_peer(self, job: str, place: Place, stepped: bool = False) -> Row | None:
        """Return the fastest other library's row for a job at a place; `stepped`: of those called once a round."""
        peers = [peer for peer in PEERS if peer.job == job and not (stepped and peer.kind == "driver")]
        rows = [row for peer in peers if (row := self.measured(peer, place)) is not None]
        return min(rows, key=lambda row: row.nanoseconds or 0.0, default=None)

    def against(self, player: Player, place: Place, stepped: bool = False) -> float | None:
        """Return how many times faster than the fastest peer of its job a player is."""
        row, peer = self.measured(player, place), self.fastest_peer(player.job, place, stepped)
        if not player.job or row is None or peer is None:
            return None
        return (peer.nanoseconds or 0.0) / (row.nanoseconds or 1.0)


# ------------------------------------------------------------------------------------------------------------------ page


def page(rows: list[Row], rates: Rates) -> str:
    """Return the page in Markdown."""
    results = Results(rows, rates)
    wide = [place for place in results.places if place in (("digits", 10, 65), ("logistic", 10, 64))]
    parts: list[Iterable[str]] = [_head(), _rates(rates)]
    parts += [_full(results, place) for place in (wide or results.places)]
    parts += [_grid(results), _peers(results), _growth(results), _missing(results)]
    return "\n".join(line for part in parts for line in part)


def _head() -> Iterable[str]:
    yield "# Speed beside the floor\n"
    yield "Made by `python -m benchmarks`; every number is in speed.csv and speed-rates.csv. One core, BLAS and numba on one"
    yield "thread, kernels compiled before, streams made before, CPU time. A row's rate is the median of blocks of rounds;"
    yield "its mistakes are those of the rounds beside them, one seed. Peak memory is what the process's resident set rose"
    yield "by from before the player was built (about 4 MiB of it are the block's trace and Python's own).\n"
    yield "The floor is the larger of two: the operations of a round (`benchmarks/players.py`), each kind at the best rate"
    yield "measured on this core for its size (the table below), plus, for agents, the loop: what uniform guessing takes;"
    yield "and the bytes of the state and the context that a round must move, at the bandwidth of the cache or memory that"
    yield "holds them. Ratio: measured over floor.\n"
    yield "Where the rest goes is told from profiles at K = 10, d = 64: parts run alone, alternately, in one process.\n"
    yield f"{datetime.date.today()}:\n"
    yield from (f"* {name}: {value}" for name, value in machine.facts().items())
    versions = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES if importlib.util.find_spec(name)]
    absent = [name for name in LIBRARIES if not importlib.util.find_spec(name)]
    yield f"* other libraries: {', '.join(versions) or 'none'}; not installed: {', '.join(absent) or 'none'}\n"


def _rates(rates: Rates) -> Iterable[str]:
    yield "## Best rates, a nanosecond\n"
    yield "| | by size |\n|---|---|"
    names = {
        "gemm": "matrix-matrix, operations, n x n",
        "gemv": "matrix-vector, operations, by entries",
        "stream": "y += a x, operations, by bytes",
        "bytes": "bandwidth, bytes, by bytes gone through",
        "exp": "exponentials",
        "root": "quotients by square roots",
        "quotient": "divisions",
    }
    for name, curve in zip(Rates._fields, rates, strict=True):
        pairs = ", ".join(f"{_size(s, name)} {r:.3g}" for s, r in zip(*curve, strict=True))
        yield f"| {names[name]} | {pairs if len(curve.sizes) > 1 else f'{curve.rates[0]:.3g}'} |"
    yield ""


def _size(size: float, name: str) -> str:
    if name in ("gemm", "gemv"):
        return f"{size:,.0f}:"
    return f"{size / 2**20:,.0f} MiB:" if size >= 2**20 else f"{size / 2**10:,.0f} KiB:"


def _full(results: Results, place: Place) -> Iterable[str]:
    stream, K, d = place
    yield f"## {stream}, K = {K}, d = {d}\n"
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|---|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|"
    for player in OURS + PEERS:
        row, cell = results.row(player, place), results.cell(player, place)
        if row is None or row.nanoseconds is None:
            if row is not None and not row.why.startswith("K = "):
                yield f"| {player.label} | | | | | {row.why} | | | | | |"
            continue
        ours = player in OURS and cell is not None and player.id != "uniform"
        beside = f"{_us(cell.floor.nanoseconds)} | {cell.ratio:.1f} | {cell.floor.bound}" if ours and cell else " | | "
        found = results.against(player, place) if player in OURS else None
        times = "" if found is None else f"{found:,.1f}{'' if found >= TARGETS[player.job] else ' (below)'}"
        yield (
            f"| {player.label} | {1e9 / row.nanoseconds:,.0f} | {_us(row.nanoseconds)} | {beside} | {_mib(row.peak)} | "
            f"{_mib(row.state)} | {100 * (row.mistakes or 0):.2f} % | {row.rounds:,} | {times} |"
        )
    yield ""
    far = [
        (cell, limit)
        for player in OURS[1:]
        if (cell := results.cell(player, place)) and cell.ratio > (limit := _limit(player))
    ]
    if far:
        yield "Further from the floor than asked, and where the rest goes:\n"
    for cell, limit in far:
        why = cell.player.rest or cell.player.note or "NOT EXPLAINED"
        yield f"* `{cell.player.label}`, {cell.ratio:.1f} times (asked: {limit:g}): {why}"
    if far:
        yield ""


def _limit(player: Player) -> float:
    """Return how many times its floor a player may take at K = 10, d = 64 without a word on the rest."""
    return LIMITS.get(player.id, 3.0)


def _us(nanoseconds: float) -> str:
    us = nanoseconds / 1e3
    return f"{us:,.3f}" if us < 1 else f"{us:,.2f}" if us < 100 else f"{us:,.0f}"


def _mib(size: int | None) -> str:
    return "" if size is None else f"{size / 2**20:,.2f}"


def _grid(results: Results) -> Iterable[str]:
    places = [place for place in results.places if place[0] == "logistic"]
    if not places:
        return
    yield "## Logistic, microseconds a round (ratio to the floor)\n"
    for K in dict.fromkeys(place[1] for place in places):
        here = [place for place in places if place[1] == K]
        yield f"| K = {K} | " + " | ".join(f"d = {d}" for _, _, d in here) + " |"
        yield "|---|" + "---:|" * len(here)
        for player in OURS + PEERS:
            texts = [_short(results, player, place) for place in here]
            if any(texts):
                yield f"| {player.label} | " + " | ".join(texts) + " |"
        yield ""


def _short(results: Results, player: Player, place: Place) -> str:
    row, cell = results.row(player, place), results.cell(player, place)
    if row is None or row.nanoseconds is None:
        return "" if row is None or row.why.startswith("K = ") else row.why
    ratio = f" ({cell.ratio:.1f})" if cell and player in OURS and player.id != "uniform" else ""
    return _us(row.nanoseconds) + ratio


def _peers(results: Results) -> Iterable[str]:
    places = [p for p in results.places if any(results.fastest_peer(job, p) for job in TARGETS)]
    if not places:
        return
    yield "## Times faster than the fastest other library doing the same job, one round at a time\n"
    yield "Targets: at least 15 for first order, 10 for a second-order model per class; the same streams, the same core."
    yield "`vw cbify` is Vowpal Wabbit's own driver over its binary cache, without Python (as ours, a block of rounds in one"
    yield "call); in brackets the ratio to the fastest library that is called once a round.\n"
    for job, target in TARGETS.items():
        yield f"| {JOBS[job]} (target {target:g}) | " + " | ".join(_place(p) for p in places) + " |"
        yield "|---|" + "---:|" * len(places)
        for name, stepped in (("fastest: us a round", False), ("called once a round: us", True)):
            peers = [results.fastest_peer(job, place, stepped) for place in places]
            yield f"| {name} | " + " | ".join(_peer(row) for row in peers) + " |"
        for player in OURS:
            if player.job == job and any(results.against(player, place) for place in places):
                yield f"| {player.label} | " + " | ".join(_times(results, player, p) for p in places) + " |"
        yield ""


def _times(results: Results, player: Player, place: Place) -> str:
    """Return a player's ratio to the fastest peer, marked where it is below the target."""
    found, stepped = results.against(player, place), results.against(player, place, stepped=True)
    if found is None:
        return ""
    below = "" if found >= TARGETS[player.job] else " below"
    return f"{found:,.1f}{below}" + (f" ({stepped:,.0f})" if stepped is not None and stepped != found else "")


def _place(place: Place) -> str:
    stream, K, d = place
    return f"{'digits ' if stream == 'digits' else ''}{K} x {d}"


def _peer(row: Row | None) -> str:
    return "" if row is None or row.nanoseconds is None else f"{row.player}: {_us(row.nanoseconds)}"


def _growth(results: Results) -> Iterable[str]:
    yield "## Growth\n"
    yield f"Fitted exponents of the time of a round, Logistic cells from d = {LEAST_FEATURES} on; beside them those of the"
    yield "declared operations and of the floor over the same cells. What is steeper than the operations by over 0.15 is"
    yield "explained.\n"
    yield "| player | order | in d | operations | floor | in K | operations | floor | steeper |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---|"
    for player in OURS[1:]:
        points = _points(results, player)
        growth = grow(points)
        if growth.time == (None, None):
            continue
        columns = [growth.time[0], growth.operations[0], growth.floor[0]]
        columns += [growth.time[1], growth.operations[1], growth.floor[1]]
        text = " | ".join("" if value is None else f"{value:.2f}" for value in columns)
        yield f"| {player.label} | {player.order} | {text} | {verdict(growth, player.note)} |"
    yield ""


def _points(results: Results, player: Player) -> list[Point]:
    cells = [results.cell(player, place) for place in results.places if place[0] == "logistic"]
    return [
        Point(c.row.K, c.row.d, c.row.nanoseconds or 0.0, c.floor.nanoseconds, player.cost(cell_of(c.row)).operations())
        for c in cells
        if c is not None
    ]


def _missing(results: Results) -> Iterable[str]:
    """Yield what was not measured, each with its reason, and which cells of the grid were not asked for."""
    yield "## Not measured\n"
    for id_, why in LEFT_OUT.items():
        yield f"* `{id_}`: {why}"
    whys = [(row.player, row) for row in results.rows if row.why and not row.why.startswith("K = ")]
    for player in dict.fromkeys(name for name, _ in whys):
        cells = "; ".join(f"{_place((r.stream, r.K, r.d))}: {r.why}" for name, r in whys if name == player)
        yield f"* `{player}`: {cells}"
    grid = {("logistic", K, d) for K in CLASSES for d in FEATURES} - set(results.places)
    if grid:
        yield f"* Not asked for: {', '.join(_place(place) for place in sorted(grid))}"
    yield ""


# ---------------------------------------------------------------------------------------------------------------- figure


def figure(rows: list[Row], rates: Rates, file: Path) -> None:
    """Draw rounds per second at K = 10 on digits, ours and other libraries', and every cell's time against its floor."""
    save(_drawn(rows, rates), file)


@styled
def _drawn(rows: list[Row], rates: Rates) -> Figure:
    results = Results(rows, rates)
    places = [place for place in results.places if place[0] == "digits"] or results.places[:1]
    shown = [(p, row) for p in OURS + PEERS for place in places if (row := results.measured(p, place)) is not None]
    shown.sort(key=lambda pair: -(pair[1].nanoseconds or 0.0))
    fig = new_figure(0.22 * max(len(shown), 20) + 1.0)
    left, right = fig.subplots(1, 2, width_ratios=(1.0, 1.0))
    ours, others, grey = COLOURS[0], COLOURS[1], COLOURS[7]
    times = [row.nanoseconds or 1.0 for _, row in shown]
    colours = [others if p in PEERS else ours for p, _ in shown]
    left.barh([p.label for p, _ in shown], [1e9 / t for t in times], color=colours, height=0.75)
    left.set(xscale="log", xlabel="rounds per CPU second", title=f"{_place(places[0])} (orange: other libraries)")
    left.set_ylim(-0.6, len(shown) - 0.4)
    left.grid(visible=False, axis="y")
    left.tick_params(axis="y", length=0, labelsize=8)
    jobs = (("", grey, "o"), ("second", ours, "s"), ("first", COLOURS[2], "^"))
    for job, colour, marker in jobs:
        cells = [c for p in OURS[1:] if p.job == job for place in results.places if (c := results.cell(p, place))]
        floors, taken = [c.floor.nanoseconds for c in cells], [c.row.nanoseconds for c in cells]
        right.scatter(floors, taken, s=16, color=colour, marker=marker, label=JOBS.get(job, "others"), alpha=0.7, lw=0)
    low, high = right.dataLim.intervalx
    for factor, dash in ((1.0, "-"), (3.0, THIN)):
        ends = [low, high]
        right.plot(ends, [factor * e for e in ends], ls=dash, color=INK, lw=0.9, label=f"{factor:g} x floor")
    right.set(xscale="log", yscale="log", xlabel="floor, ns a round", ylabel="measured, ns a round", title="Every cell")
    right.legend(loc="upper left")
    return fig
