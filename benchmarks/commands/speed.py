"""CPU time of a round of every agent and forecaster, beside other libraries and another checkout: docs/results/speed.md.

`python -m benchmarks` measures digits and Logistic over K in {2, 10, 50} and d in {8, 64, 256, 1024}. --only fastcb,vw and
--sizes digits,10x64 choose players and cells. --before PATH measures our own players with the package of another checkout,
too, in pairs one after the other. --keep writes docs/results/speed.csv as rows come and fills the page at the end; --resume
goes on where a run of this commit stopped; --redraw measures nothing and fills the page from the csv file.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from banditlab.analysis.pages import fill_page
from banditlab.errors import UsageError
from banditlab.validation import at_least
from benchmarks.commands.peers import installed, versions
from benchmarks.measure.names import picked
from benchmarks.measure.one_player import CLASSES, FEATURES, Effort, Row, place_of, too_slow
from benchmarks.measure.players import OURS, PEERS, Player
from benchmarks.page import speed as page

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "docs" / "results"
PATIENCE = 30.0
"""Seconds after which another library is given up in a cell, and in larger ones."""
AS_LONG = 10.0
"""Most seconds that another library gets in a cell to come as far in the stream as ours did."""
READ: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("K", "d", "rounds", "peak", "state"), int),
    **dict.fromkeys(("nanoseconds", "mistakes", "before", "times"), float),
}
"""How a column of the csv file is read; the others are texts."""
CELLS = ["digits", *(f"{K}x{d}" for K in CLASSES for d in FEATURES)]


def main(
    *,
    only: str | None = None,
    sizes: str | None = None,
    before: Path | None = None,
    pairs: int = 3,
    seconds: float = 0.3,
    no_peers: bool = False,
    keep: bool = False,
    resume: bool = False,
    redraw: bool = False,
) -> None:
    """Measure what was asked for and print it; see the module's docstring for the settings."""
    if not hasattr(os, "fork"):
        raise UsageError("every cell is measured in a fork of a process, which this system does not have")
    at_least("--pairs", pairs, 1)
    cells, players, known = chosen_cells(sizes), chosen(only, no_peers), read_rows(PLACE / "speed.csv")
    fresh = [row for row in known if resume and row.commit == commit(ROOT)]
    if not redraw:
        for row in measured(players, cells, Effort(seconds), fresh, before, pairs):
            fresh.append(row)
            known = [old for old in known if old[:5] != row[:5]] + [row]
            if keep:
                write_rows(PLACE / "speed.csv", known)
    tables = page.parts(known if keep or redraw else fresh)
    print("\n\n".join(tables.values()))
    if keep or redraw:
        fill_page(PLACE / "speed.md", tables)
    if keep:
        fill_page(PLACE / "speed.md", {"machine": page.machine(commit(before) if before else None)})


def chosen(only: str | None, no_peers: bool) -> list[Player]:
    """Return the players to measure; name the libraries that are missing."""
    ids = picked("only", only, [player.id for player in OURS + PEERS])
    peers = [player for player in PEERS if installed(player.id)]
    absent = {player.id for player in PEERS} - {player.id for player in peers}
    if only and absent & {*ids}:
        raise UsageError(f'{min(absent & {*ids})} needs a library that is not installed: pip install -e ".[peers]"')
    if absent and not only and not no_peers:
        print(f'left out, not installed: {", ".join(versions()[1])}: pip install -e ".[peers]"', file=sys.stderr)
    return [player for player in OURS + ([] if no_peers else peers) if player.id in ids]


def chosen_cells(sizes: str | None) -> list[str]:
    """Return the names of the cells to measure, "digits" or "KxD"."""
    wanted = CELLS if sizes is None else [name.strip() for name in sizes.split(",")]
    for name in wanted:
        K, _, d = name.partition("x")
        if name != "digits" and not (K.isdigit() and d.isdigit() and int(K) >= 2 and int(d) >= 1):
            raise UsageError(f"--sizes takes 'digits' and KxD (10x64), separated by commas, got {name!r}")
    return wanted


class Worker:
    """A process that measures with the package of a checkout (see `benchmarks.measure.worker`)."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout.resolve()
        command, pipe = [sys.executable, "-m", "benchmarks.measure.worker", str(self.checkout)], subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def measure(self, player: Player, cell: str, effort: Effort) -> Row:
        """Return the row of a player and a cell."""
        requests, answers = self.process.stdin, self.process.stdout
        assert requests is not None
        assert answers is not None
        print(json.dumps([player.label, cell, effort]), file=requests, flush=True)
        answer = answers.readline()
        if not answer:
            raise UsageError(f"the process that measures {self.checkout} ended at {player.label}, {cell}")
        return Row(*json.loads(answer))

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def measured(
    players: list[Player], cells: list[str], effort: Effort, done: list[Row], before: Path | None, pairs: int
) -> Iterator[Row]:
    """Yield a row for every player and cell that is not in `done`, to which the caller adds each row."""
    start, now = time.monotonic(), commit(ROOT)
    with closing(Worker(ROOT)) as here, closing(Worker(before)) if before else nullcontext() as other:
        for cell, player in itertools.product(cells, players):
            if (player.label, player.kind, *place_of(cell)) in {row[:5] for row in done}:
                continue
            due = effort_for(player, cell, done, effort)
            row = too_slow(player, cell, done) or here.measure(player, cell, due)
            if other and player in OURS and row.nanoseconds:
                found = [(row, other.measure(player, cell, due))]
                found += [(here.measure(player, cell, due), other.measure(player, cell, due)) for _ in range(pairs - 1)]
                row = paired(found)
            print(f"{time.monotonic() - start:7.1f} s  {shown(row)}", file=sys.stderr, flush=True)
            yield row._replace(commit=now)


def paired(pairs: list[tuple[Row, Row]]) -> Row:
    """Return the row of a cell from pairs measured here and with the other checkout's package: medians."""
    row = pairs[0][0]
    times = [(a.nanoseconds, b.nanoseconds) for a, b in pairs if a.nanoseconds and b.nanoseconds]
    if len(times) < len(pairs):
        return row
    here, other = (statistics.median(column) for column in zip(*times, strict=True))
    return row._replace(nanoseconds=here, before=other, times=statistics.median(a / b for a, b in times))


def effort_for(player: Player, cell: str, rows: list[Row], effort: Effort) -> Effort:
    """Return the effort for a cell: another library with a model per class comes as far as ours of that job did, if it can.

    Rounds become slower while classes get their first matrix: two that are compared should have played the same rounds.
    """
    if player not in PEERS:
        return effort
    alike = {ours.label for ours in OURS if ours.job == player.job == "second"}
    here = [row.rounds or 0 for row in rows if row[2:5] == place_of(cell) and row.player in alike]
    longest = effort.whole_pass if cell == "digits" else min(effort.whole_pass, AS_LONG)
    return effort._replace(limit=min(effort.limit, PATIENCE), rounds=max(here, default=0), whole_pass=longest)


def commit(checkout: Path) -> str:
    """Return the short name of the commit that is checked out in a folder."""
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def shown(row: Row) -> str:
    """Return a row in one line of progress."""
    place = f"{row.stream:9} K={row.K:<3} d={row.d:<5} {row.player:44}"
    if row.nanoseconds is None or row.mistakes is None:
        return f"{place} {row.why}"
    before = "" if row.times is None else f", {row.times:.2f} times as long as before"
    return f"{place} {row.nanoseconds / 1e3:10,.3f} us per round{before}, {100 * row.mistakes:.2f} % of {row.rounds:,}"


def write_rows(file: Path, rows: list[Row]) -> None:
    """Write the csv file."""
    with file.open("w", newline="") as opened:
        out = csv.writer(opened, lineterminator="\n")
        out.writerow(Row._fields)
        out.writerows(["" if v is None else f"{v:.6g}" if isinstance(v, float) else v for v in row] for row in rows)


def read_rows(file: Path) -> list[Row]:
    """Read the csv file; [] where there is none."""
    if not file.exists():
        return []
    rows = []
    with file.open(newline="") as opened:
        for line in csv.DictReader(opened):
            values = {name: READ.get(name, str)(value) for name, value in line.items() if value != ""}
            rows.append(Row(**values))
    return rows
