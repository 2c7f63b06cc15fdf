"""The tables of docs/results/speed.md."""

from __future__ import annotations

import datetime
import os
import platform
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from banditlab.analysis.pages import markdown_table
from benchmarks.commands.peers import versions
from benchmarks.measure.one_player import Row
from benchmarks.measure.players import OURS, PEERS

RIVER = {"first": "river-logistic", "second": "river-linucb"}
"""The other library that each job is compared with by name."""
SHOWN = (("digits", 10, 65), ("logistic", 10, 64))
Place = tuple[str, int, int]
Rows = dict[tuple[str, Place], Row]


def parts(rows: list[Row]) -> dict[str, str]:
    """Return the page's tables by their markers."""
    measured = {(row.player, (row.stream, row.K, row.d)): row for row in rows if row.nanoseconds}
    ids = {player.label for player in OURS + PEERS}
    why = [
        [f"`{r.player}`", name((r.stream, r.K, r.d)), briefly(r.why)]
        for r in rows
        if r.player in ids and r.why and not r.why.startswith("K = ")
    ]
    return {
        "commits": ", ".join(sorted({row.commit for row in rows if row.player in ids})),
        "libraries": libraries(measured),
        "before": before(measured),
        "cells": cells(measured),
        "missing": markdown_table(["learner", "stream", "reason"], why),
    }


def briefly(why: str) -> str:
    """Return why a cell was not measured; of an error about memory, only the size."""
    size = re.search(r" needs? ([\d.]+ GiB) ", why)
    return f"needs {size[1]}" if size else why


def libraries(rows: Rows) -> str:
    """Return how many times faster than other libraries each of our players is, by job."""
    head = ["learner"]
    for text in ("river", "the fastest"):
        head += [f"{text}: {name(place)}" for place in SHOWN] + [f"{text}: least of all cells"]
    lines = []
    for player in OURS:
        mine = {place: row.nanoseconds or 0.0 for (label, place), row in rows.items() if label == player.label}
        if player.job and mine:
            others = [peer.label for peer in PEERS if peer.job == player.job]
            lines.append([f"`{player.label}`", *ratios(rows, mine, [RIVER[player.job]]), *ratios(rows, mine, others)])
    return markdown_table(head, lines)


def ratios(rows: Rows, mine: dict[Place, float], others: list[str]) -> list[str]:
    """Return the fastest other's time over a player's, at SHOWN and where it is least."""
    found = {}
    for place, time in mine.items():
        theirs = [row.nanoseconds or 0.0 for other in others if (row := rows.get((other, place))) is not None]
        if theirs:
            found[place] = min(theirs) / time
    return [*(shown(found.get(place)) for place in SHOWN), extreme(found, min)]


def before(rows: Rows) -> str:
    """Return the time of a round beside that of the other checkout, at SHOWN and where it rose most."""
    head = ["learner"]
    for place in SHOWN:
        head += [f"{name(place)}: before, us", "now, us", "now / before"]
    lines = []
    for player in OURS:
        times = {place: row.times for (label, place), row in rows.items() if label == player.label and row.times}
        if times:
            here = [rows.get((player.label, place)) for place in SHOWN]
            texts = [text for row in here for text in (compared(row) if row else ["", "", ""])]
            lines.append([f"`{player.label}`", *texts, extreme(times, max)])
    return markdown_table([*head, "most of all cells"], lines)


def compared(row: Row) -> list[str]:
    """Return the time before, the time now and their ratio."""
    return [us(row.before), us(row.nanoseconds), shown(row.times)]


def cells(rows: Rows) -> str:
    """Return microseconds of a round of every player in every cell, and its mistakes on the digits."""
    places = sorted({place for _, place in rows}, key=lambda place: (place[0] != "digits", place))
    lines = []
    for player in OURS + PEERS:
        here = [rows.get((player.label, place)) for place in places]
        digits = rows.get((player.label, SHOWN[0]))
        if any(here):
            times = [us(row.nanoseconds) if row else "" for row in here]
            lines.append([f"`{player.label}`", f"{100 * (digits.mistakes or 0):.1f} %" if digits else "", *times])
    return markdown_table(["learner", "mistakes on digits", *map(name, places)], lines)


def name(place: Place) -> str:
    """Return a cell's short name."""
    return "digits" if place[0] == "digits" else f"{place[1]} x {place[2]:,}"


def us(nanoseconds: float | None) -> str:
    """Return microseconds, three digits."""
    if nanoseconds is None:
        return ""
    value = nanoseconds / 1e3
    return f"{value:,.3f}" if value < 1 else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def shown(ratio: float | None) -> str:
    """Return a ratio, three digits."""
    return (
        "" if ratio is None else f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.1f}" if ratio < 100 else f"{ratio:,.0f}"
    )


def extreme(found: dict[Place, float], which: Callable[..., Place]) -> str:
    """Return the least or the largest ratio and its cell."""
    if not found:
        return ""
    place = which(found, key=lambda place: found[place])
    return f"{shown(found[place])} ({name(place)})"


def machine(before: str | None) -> str:
    """Return when and on what the latest run was."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    processor = f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"
    ours = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "llvmlite"))
    beside = f", before: commit {before}" if before else ""
    libraries = ", ".join(versions()[0])
    return f"{datetime.date.today()}, {processor}, Python {platform.python_version()}, {ours}, {libraries}{beside}"
