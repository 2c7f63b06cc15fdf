"""The page and the figure made from the measured rows and rates."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib.figure import Figure

from banditlab.analysis.look import COLOURS, INK, THIN, new_figure, save, styled
from benchmarks.measure.costs import Player
from benchmarks.measure.machine import Rates
from benchmarks.measure.one_player import CLASSES, FEATURES, Row
from benchmarks.measure.players import LEFT_OUT, OURS, PEERS
from benchmarks.page.growth import LEAST_FEATURES, grow, verdict
from benchmarks.page.head import SHOWN, head
from benchmarks.page.lines import lines
from benchmarks.page.results import JOBS, TARGETS, Cell, Place, Results, limit, place_name, points, us

COLUMNS = (
    *("player", "rounds/s", "us a round", "floor, us", "ratio", "the floor is"),
    *("peak MiB", "state MiB", "mistakes", "of rounds", "x fastest peer"),
)


# ------------------------------------------------------------------------------------------------------------------ page


def page(rows: list[Row], rates: Rates, runs: dict[str, dict[str, str]] | None = None) -> str:
    """Return the page in Markdown; `runs` tells of every run that measured rows what it ran on."""
    results = Results(rows, rates)
    wide = [place for place in results.places if place in SHOWN]
    parts: list[Iterable[str]] = [head(results, runs or {}), _rates(rates)]
    parts += [_full(results, place) for place in (wide or results.places)]
    parts += [_grid(results), _peers(results), lines(results), _growth(results), _missing(results)]
    return "\n".join(line for part in parts for line in part)


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
        beside = f"{us(cell.floor.nanoseconds)} | {cell.ratio:.1f} | {cell.floor.bound}" if ours and cell else " | | "
        found = results.against(player, place) if player in OURS else None
        times = "" if found is None else f"{found:,.1f}{'' if found >= TARGETS[player.job] else ' (below)'}"
        yield (
            f"| {player.label} | {1e9 / row.nanoseconds:,.0f} | {us(row.nanoseconds)} | {beside} | {_mib(row.peak)} | "
            f"{_mib(row.state)} | {100 * (row.mistakes or 0):.2f} % | {row.rounds:,} | {times} |"
        )
    yield ""
    far = [cell for player in OURS[1:] if (cell := results.cell(player, place)) and cell.ratio > limit(player)]
    if far:
        yield "Further from the floor than asked, and where the rest goes:\n"
    yield from (_rest(cell) for cell in far)
    if far:
        yield ""


def _rest(cell: Cell) -> str:
    """Return where a round goes: deciding and learning as they were measured, the floor's parts, and words on the rest."""
    row, parts = (
        cell.row,
        {name: value for name, value in cell.floor.parts.items() if value >= 0.02 * cell.floor.nanoseconds},
    )
    divided = ""
    if row.deciding is not None and row.nanoseconds:
        learning = max(row.nanoseconds - row.deciding, 0.0)
        divided = f"deciding {us(row.deciding)} us and learning {us(learning)}; "
    floor = ", ".join(f"{name} {us(value)}" for name, value in parts.items())
    why = cell.player.rest or cell.player.note or "NOT EXPLAINED"
    asked = f"{cell.ratio:.1f} times (asked: {limit(cell.player):g})"
    return f"* `{cell.player.label}`, {asked}: {divided}the floor: {floor}. {why}"


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
    return us(row.nanoseconds) + ratio


def _peers(results: Results) -> Iterable[str]:
    places = [p for p in results.places if any(results.fastest_peer(job, p) for job in TARGETS)]
    if not places:
        return
    yield "## Times faster than the fastest other library doing the same job, one round at a time\n"
    yield "Targets: at least 15 for first order, 10 for a second-order model per class; the same streams, the same core."
    yield "`vw cbify` is Vowpal Wabbit's own driver over its binary cache, without Python (as ours, a block of rounds in one"
    yield "call); in brackets the ratio to the fastest library that is called once a round.\n"
    for job, target in TARGETS.items():
        yield f"| {JOBS[job]} (target {target:g}) | " + " | ".join(place_name(p) for p in places) + " |"
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


def _peer(row: Row | None) -> str:
    return "" if row is None or row.nanoseconds is None else f"{row.player}: {us(row.nanoseconds)}"


def _growth(results: Results) -> Iterable[str]:
    yield "## Growth\n"
    yield f"Fitted exponents of the time of a round, Logistic cells from d = {LEAST_FEATURES} on; beside them those of the"
    yield "declared operations and of the floor over the same cells. What is steeper than the operations by over 0.15 is"
    yield "explained.\n"
    yield "| player | order | in d | operations | floor | in K | operations | floor | steeper |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---|"
    for player in OURS[1:]:
        growth = grow(points(results, player))
        if growth.time == (None, None):
            continue
        columns = [growth.time[0], growth.operations[0], growth.floor[0]]
        columns += [growth.time[1], growth.operations[1], growth.floor[1]]
        text = " | ".join("" if value is None else f"{value:.2f}" for value in columns)
        yield f"| {player.label} | {player.order} | {text} | {verdict(growth, player.note)} |"
    yield ""


def _missing(results: Results) -> Iterable[str]:
    """Yield what was not measured, each with its reason, and which cells of the grid were not asked for."""
    yield "## Not measured\n"
    for id_, why in LEFT_OUT.items():
        yield f"* `{id_}`: {why}"
    whys = [(row.player, row) for row in results.rows if row.why and not row.why.startswith("K = ")]
    for player in dict.fromkeys(name for name, _ in whys):
        cells = "; ".join(f"{place_name((r.stream, r.K, r.d))}: {r.why}" for name, r in whys if name == player)
        yield f"* `{player}`: {cells}"
    grid = {("logistic", K, d) for K in CLASSES for d in FEATURES} - set(results.places)
    if grid:
        yield f"* Not asked for: {', '.join(place_name(place) for place in sorted(grid))}"
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
    left.set(xscale="log", xlabel="rounds per CPU second", title=f"{place_name(places[0])} (orange: other libraries)")
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
