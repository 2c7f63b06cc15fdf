"""The head of the speed page: what was run, and what the whole page comes to in a few lines."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable

from benchmarks.commands.peers import versions
from benchmarks.measure import machine
from benchmarks.measure.players import OURS, PEERS
from benchmarks.page import kept
from benchmarks.page.growth import grow, verdict
from benchmarks.page.results import ANY_LIMIT, JOBS, TARGETS, Place, Results, limit, place_name, points, us

SHOWN: tuple[Place, ...] = (("digits", 10, 65), ("logistic", 10, 64))
"""Where ratios are told in the head, and floors are asked for."""


def head(results: Results, runs: dict[str, dict[str, str]]) -> Iterable[str]:
    """Yield the title, how it was measured, and the summary."""
    yield "# Speed beside the floor\n"
    yield from _summary(results)
    yield from _method()
    yield from _provenance(results, runs)


# --------------------------------------------------------------------------------------------------------------- summary


def _summary(results: Results) -> Iterable[str]:
    yield "## In short\n"
    yield "Times faster than the fastest other library doing the same job on the same stream, batch 1: nothing is learnt from a"
    yield "round after the next one. The slowest to the fastest of our agents; below the target: how many of them.\n"
    here = [place for place in SHOWN if place in results.places]
    yield "| | target | " + " | ".join(place_name(place) for place in here) + " | least of all cells |"
    yield "|---|---:|" + "---|" * len(here) + "---|"
    for job, stepped, against in (
        ("second", True, "the fastest other library"),
        ("first", True, "(a) the fastest other library that is called once a round"),
        ("first", False, "(b) Vowpal Wabbit's own C++ driver where that is faster: the harsher one"),
    ):
        cells = " | ".join(_range(results, job, place, stepped) for place in here)
        yield f"| {JOBS[job]}, against {against} | {TARGETS[job]:g} | {cells} | {_least(results, job, stepped)} |"
    yield ""
    yield from _whole_models(results)
    yield from _floors(results, here)
    yield from _growth(results)
    yield from kept.lines(kept.read())
    yield ""


def _whole_models(results: Results) -> Iterable[str]:
    """Yield the ratios to the fastest library of which every class has its model from the first round on."""
    [river] = [peer for peer in PEERS if peer.id == "river-linucb"]
    rows = {place: row for place in results.places if (row := results.measured(river, place)) is not None}
    least = {
        player.label: min((rows[place].nanoseconds or 0.0) / (row.nanoseconds or 1.0) for place, row in mine.items())
        for player in OURS
        if player.job == "second"
        and (mine := {place: row for place in rows if (row := results.measured(player, place)) is not None})
    }
    if least:
        told = ", ".join(f"`{label}` {ratio:.1f}" for label, ratio in least.items())
        yield f"* **Against `{river.id}` alone**, least of the {len(rows)} cells it was measured in: {told}"


def _ratios(results: Results, job: str, place: Place, stepped: bool) -> list[tuple[float, str]]:
    """Return (times faster, player) of our players of a job at a place, the slowest first."""
    found = [(results.against(player, place, stepped), player.label) for player in OURS if player.job == job]
    return sorted((ratio, label) for ratio, label in found if ratio is not None)


def _range(results: Results, job: str, place: Place, stepped: bool) -> str:
    ratios, peer = _ratios(results, job, place, stepped), results.fastest_peer(job, place, stepped)
    if not ratios or peer is None:
        return "not measured"
    (low, slow), (high, fast) = ratios[0], ratios[-1]
    below = sum(ratio < TARGETS[job] for ratio, _ in ratios)
    missed = f"; {below} of {len(ratios)} below" if below else ""
    return (
        f"{low:,.1f} (`{slow}`) to {high:,.1f} (`{fast}`){missed}; against `{peer.player}`, {us(peer.nanoseconds)} us"
    )


def _least(results: Results, job: str, stepped: bool) -> str:
    """Return where the least ratio of all cells is, and in how many cells every agent meets the target."""
    by_place = [(ratios[0], place) for place in results.places if (ratios := _ratios(results, job, place, stepped))]
    if not by_place:
        return "not measured"
    (ratio, label), place = min(by_place)
    met = sum(least >= TARGETS[job] for (least, _), _ in by_place)
    return (
        f"{ratio:,.1f} (`{label}`, {place_name(place)}); all agents meet the target in {met} of {len(by_place)} cells"
    )


def _floors(results: Results, here: list[Place]) -> Iterable[str]:
    for place in here:
        cells = [cell for player in OURS[1:] if (cell := results.cell(player, place))]
        if not cells:
            continue
        far = [f"`{cell.player.label}` {cell.ratio:.1f}" for cell in cells if cell.ratio > limit(cell.player)]
        near = ", ".join(
            f"`{c.player.id}` {c.ratio:.1f} of {limit(c.player):g}" for c in cells if limit(c.player) != ANY_LIMIT
        )
        beyond = f"; beyond: {', '.join(far)}: where the rest goes stands below the table" if far else ""
        yield (
            f"* **Floors**, {place_name(place)}: {len(cells) - len(far)} of {len(cells)} players within 3 times theirs "
            f"({near}){beyond}"
        )


def _growth(results: Results) -> Iterable[str]:
    grown = [(player, grow(points(results, player))) for player in OURS[1:]]
    grown = [(player, growth) for player, growth in grown if growth.time != (None, None)]
    if not grown:
        return
    why: Counter[str] = Counter()
    for player, growth in grown:
        for text in filter(None, verdict(growth, player.note).split("; steeper")):
            why["caches" if "leaves a cache" in text else "unexplained" if "NOT EXPLAINED" in text else "note"] += 1
    steeper = (
        f"{why['caches']} exponents are steeper than the operations' because the state leaves a cache (the floor's are too), "
        f"{why['note']} for a reason that is given, {why['unexplained']} unexplained"
    )
    yield f"* **Growth** in d and K, {len(grown)} players, fitted beside the theoretical order: {steeper}"


# ------------------------------------------------------------------------------------------------------- what was done how


def _method() -> Iterable[str]:
    yield "## How it is measured\n"
    yield "`python -m benchmarks` (the extra `peers`); every number is in speed.csv and speed-rates.csv. One core, BLAS and"
    yield "numba on one thread, kernels compiled before, streams made before, CPU time. Cell by cell: every player goes"
    yield "through the same stream in a process of its own, a fork of one process, ours first, then the other libraries'. A"
    yield "row's rate is the median of blocks of rounds; its mistakes are those of the rounds beside them, one seed. Peak"
    yield "memory is what the process's resident set rose by from before the player was built (about 4 MiB of it are the"
    yield "block's trace and Python's own).\n"
    yield "Ours play a block of rounds in one call, as Vowpal Wabbit's driver plays its file; the other libraries are"
    yield "called once a round, which is the only way they have of learning from it before the next, by a loop in Python"
    yield "that is part of their time. A library that takes more than 30 s in a cell is given up there and in larger ones."
    yield "contextualbandits' LinUCB works in single precision, its default; everything else in double, but Vowpal Wabbit."
    yield "It and its LinTS give a class a matrix once it has been right and wrong more than twice each. Rounds grow dearer"
    yield "while classes get their first matrix, or ours fill the rows that they begin as: so libraries with a model per class"
    yield "go as far in a stream as ours of that job did, where ten seconds are enough. With many classes some have no matrix"
    yield "even then: the memory tells how many (50 of 1,024 columns in single precision are 200 MiB).\n"
    yield "From some size on our per-class agents look at the next 32 or 64 contexts of a block together, which a caller"
    yield "who brings one context at a time cannot use: at d = 64 and on digits nothing of the kind happens.\n"
    yield "The floor is the larger of two: the operations of a round (`benchmarks/measure/players.py`), each at the best rate"
    yield "measured on this core for its size (the table below), plus, for agents, the loop: what uniform guessing takes;"
    yield "and the bytes of the state and the context that a round must move, at the bandwidth of the cache or memory that"
    yield "holds them. Ratio: measured over floor. Kinds of operations come one after the other, but for divisions and roots,"
    yield "which a processor does beside what goes element by element: of the two the longer counts.\n"
    yield "Where a player is further from its floor than asked, its round is divided by measurement: its own kernel of deciding"
    yield "(`act`, or a forecast) goes through the contexts again with the state that the rounds left, nothing is learnt; the"
    yield "rest is learning. Beside it stand the parts of the floor, and in words what they do not hold.\n"


def _provenance(results: Results, runs: dict[str, dict[str, str]]) -> Iterable[str]:
    """Yield what each run measured, on which machine, with which libraries."""
    peers = {player.label for player in PEERS}
    cells = Counter((row.run, row.player in peers) for row in results.rows if row.nanoseconds)
    names = sorted({run for run, _ in cells})
    yield f"Drawn {datetime.date.today()} from {len(names)} run{'s' * (len(names) != 1)}. Times are those of the code of a"
    yield "run's day, floors those of the code that drew the page.\n"
    for run in names:
        begun = f"Begun {run}" if run else "Before 2026-11-22, without a note of when"
        yield f"* {begun}: {cells[run, False]} cells of ours, {cells[run, True]} of other libraries"
        yield from (f"  * {name}: {value}" for name, value in runs.get(run, {}).items())
    if len(names) > 1:
        yield "* a ratio to another library compares cells of two runs where the rows are not of one run (speed.csv, `run`)"
    yield ""


def told() -> dict[str, str]:
    """Return what is noted of a run: the machine, other libraries."""
    found, absent = versions()
    missing = f"; not installed: {', '.join(absent)}" if absent else ""
    return {**machine.facts(), "other libraries": (", ".join(found) or "none") + missing}
