"""Every agent and forecaster beside its floor: rounds per CPU second, peak memory, mistakes; other libraries; growth.

`python -m benchmarks` measures digits and Logistic over K in {2, 10, 50} and d in {8, 64, 256, 1024} and writes
docs/results/speed.md, speed.csv, speed-rates.csv, speed-runs.json and
docs/images/speed.png. --only fastcb,vw and --sizes digits,10x64
choose lines and cells; --quick takes a tenth of the time; with any of these nothing is written unless --out FOLDER says
where. --resume goes on from the speed.csv that is there; --redraw writes page and figure anew from it. --check counts
the instructions of the compiled kernels and compares them with benchmarks/tables/counts.csv, --update writes that file.
"""

from __future__ import annotations

import csv
import datetime
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from banditlab.errors import UsageError, nearest
from benchmarks.commands.peers import installed, versions
from benchmarks.measure import counts, machine, one_player, vw_driver
from benchmarks.measure.costs import Player
from benchmarks.measure.machine import Curve, Rates
from benchmarks.measure.one_player import CLASSES, FEATURES, Effort, Row, Stream, digits, logistic, warm
from benchmarks.measure.players import OURS, PEERS
from benchmarks.page import head, report

DOCS = Path(__file__).parents[2] / "docs"
PATIENCE = 30.0
"""Seconds after which another library is given up in a cell, and in larger ones."""
AS_LONG = 10.0
"""Most seconds that another library gets in a cell to come as far in the stream as ours did."""
CELLS = ["digits", *(f"{K}x{d}" for K in CLASSES for d in FEATURES)]


def main(
    *,
    only: str | None = None,
    sizes: str | None = None,
    quick: bool = False,
    resume: bool = False,
    redraw: bool = False,
    no_peers: bool = False,
    check: bool = False,
    update: bool = False,
    seconds: float = 0.3,
    out: str | None = None,
) -> None:
    """Measure what was asked for and print it; see the module's docstring for the settings."""
    if check or update:
        raise SystemExit(counts.run(update, named(only)))
    whole = not (only or sizes or quick)
    folder = Path(out) if out else DOCS if whole or redraw else None
    if resume and folder is None:
        raise UsageError("--resume needs the folder to go on from: --out FOLDER")
    if not hasattr(os, "fork"):
        raise UsageError("every cell is measured in a fork of this process, which this system does not have")
    players, cells = chosen(only, no_peers), chosen_cells(sizes)
    known = read_rows(folder) if folder and (resume or redraw) else []
    if redraw and not known:
        raise UsageError(f"--redraw: there is no speed.csv in {folder}/results")
    if not redraw and only is None and not no_peers:
        say_left_out()
    rates = read_rates(folder) if folder and redraw else machine.measure(0.001 if quick else machine.SECONDS)
    rows = known if redraw else run(players, cells, effort(seconds, quick), known, folder)
    if not redraw:
        rates = rates.best(machine.measure(0.001 if quick else machine.SECONDS))
    publish(rows, rates, folder)


def effort(seconds: float, quick: bool) -> Effort:
    """Return how long a cell is measured."""
    return Effort(seconds / 10.0, 1.0, 30.0, 2.0**30) if quick else Effort(seconds)


def named(only: str | None) -> list[str]:
    """Return the ids in a comma-separated list, each known; [] for None."""
    ids = [] if only is None else [id_.strip() for id_ in only.split(",")]
    known = [player.id for player in OURS + PEERS]
    for id_ in ids:
        if id_ not in known:
            raise UsageError(
                f"--only: no player that is measured is called {id_!r}{nearest(id_, known, keep_order=True)}"
            )
    return ids


def chosen(only: str | None, no_peers: bool) -> list[Player]:
    """Return the players to measure; uniform guessing first, whose time is the loop of the others' floors."""
    ids = named(only)
    peers = [] if no_peers else [player for player in PEERS if installed(player.id)]
    for id_ in [] if no_peers else ids:
        if id_ in {player.id for player in PEERS} - {player.id for player in peers}:
            raise UsageError(f'{id_} needs a library that is not installed: pip install -e ".[peers]"')
    return [p for p in OURS + peers if not ids or p.id in ids or p.id == "uniform"]


def say_left_out() -> None:
    """Name the libraries that are not installed, whose players are not measured."""
    _, missing = versions()
    if missing:
        print(f'left out, not installed: {", ".join(missing)}: pip install -e ".[peers]"', file=sys.stderr)


def chosen_cells(sizes: str | None) -> list[str]:
    """Return the names of the cells to measure, "digits" or "KxD"."""
    wanted = CELLS if sizes is None else [name.strip() for name in sizes.split(",")]
    for name in wanted:
        K, _, d = name.partition("x")
        if name != "digits" and not (K.isdigit() and d.isdigit() and int(K) >= 2 and int(d) >= 1):
            raise UsageError(f"--sizes takes 'digits' and KxD (10x64), separated by commas, got {name!r}")
    return wanted


def stream(cell: str) -> Stream:
    """Return the stream of a cell."""
    if cell == "digits":
        return digits()
    K, d = map(int, cell.split("x"))
    return logistic(K, d)


def run(players: list[Player], cells: list[str], effort: Effort, known: list[Row], folder: Path | None) -> list[Row]:
    """Measure every player on every cell, cell by cell; rows are kept in `folder` as they come."""
    start, rows = time.monotonic(), list(known)
    begun = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    for player in players:
        if player.kind != "driver":
            warm(player)
            say(start, f"compiled {player.label}")
    for cell in cells:
        here = stream(cell)
        K, d = here.problem.n_classes, here.problem.n_features
        done = {row.player for row in rows if (row.stream, row.K, row.d) == (here.name, K, d)}
        for player in players:
            if player.label not in done:
                measured = vw_driver.measure if player.kind == "driver" else one_player.measure
                row = one_player.too_slow(player, here, rows) or measured(player, here, due(player, here, rows, effort))
                rows.append(row._replace(run=begun))
                say(start, shown(rows[-1]))
        digits.cache_clear()
        logistic.cache_clear()
        if folder:
            write_rows(folder, rows)
            write_run(folder, begun)
    return rows


def due(player: Player, stream: Stream, rows: list[Row], effort: Effort) -> Effort:
    """Return the effort for a cell: another library with a model per class comes as far as ours of that job did, if it can.

    Rounds grow dearer while models that began as rows fill up, or while classes get their first matrix: two that are compared
    should have gone through the same rounds.
    """
    if player not in PEERS:
        return effort
    alike = {ours.label for ours in OURS if ours.job == player.job == "second"}
    here = [
        row.rounds or 0 for row in rows if row[2:5] == (stream.name, *one_player.place(stream)) and row.player in alike
    ]
    longest = effort.whole_pass if stream.name == "digits" else min(effort.whole_pass, AS_LONG)
    return effort._replace(limit=min(effort.limit, PATIENCE), rounds=max(here, default=0), whole_pass=longest)


def say(start: float, text: str) -> None:
    """Print progress to stderr."""
    print(f"{time.monotonic() - start:7.1f} s  {text}", file=sys.stderr, flush=True)


def shown(row: Row) -> str:
    """Return a row in one line of progress."""
    place = f"{row.stream:9} K={row.K:<3} d={row.d:<5} {row.player:44}"
    if row.nanoseconds is None or row.mistakes is None:
        return f"{place} {row.why}"
    return f"{place} {1e9 / row.nanoseconds:14,.0f} rounds/s  {100 * row.mistakes:6.2f} % of {row.rounds:,}"


def publish(rows: list[Row], rates: Rates, folder: Path | None) -> None:
    """Print the page and, where there is a folder, write page, tables and figure."""
    page = report.page(rows, rates, read_runs(folder or DOCS))
    print(page)
    if folder:
        write_rows(folder, rows)
        write_rates(folder, rates)
        (folder / "results" / "speed.md").write_text(page)
        (folder / "images").mkdir(parents=True, exist_ok=True)
        report.figure(rows, rates, folder / "images" / "speed.png")


# ----------------------------------------------------------------------------------------------------------------- files


def write_rows(folder: Path, rows: list[Row]) -> None:
    """Write speed.csv."""
    (folder / "results").mkdir(parents=True, exist_ok=True)
    with (folder / "results" / "speed.csv").open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Row._fields)
        out.writerows(["" if v is None else f"{v:.6g}" if isinstance(v, float) else v for v in row] for row in rows)


def read_rows(folder: Path) -> list[Row]:
    """Read speed.csv; [] where there is none."""
    file = folder / "results" / "speed.csv"
    if not file.exists():
        return []
    whole = {"K", "d", "rounds", "peak", "state"}
    real = {"nanoseconds", "mistakes", "nonzero", "heavy", "deciding"}
    rows = []
    with file.open(newline="") as lines:
        for line in csv.DictReader(lines):
            value: dict[str, Any] = {
                n: int(v) if n in whole else float(v) if n in real else v for n, v in line.items() if v != ""
            }
            rows.append(Row(**value))
    return rows


def write_run(folder: Path, begun: str) -> None:
    """Note in speed-runs.json what a run runs on and when it was last seen; runs without a row are dropped."""
    now = datetime.datetime.now(datetime.UTC).strftime("%H:%M:%S UTC")
    named = {row.run for row in read_rows(folder)}
    runs = {run: told for run, told in read_runs(folder).items() if run in named}
    runs[begun] = {"until": now, **head.told()}
    (folder / "results" / "speed-runs.json").write_text(json.dumps(runs, indent=1) + "\n")


def read_runs(folder: Path) -> dict[str, dict[str, str]]:
    """Return what is noted of every run, by when it began."""
    file = folder / "results" / "speed-runs.json"
    return dict(json.loads(file.read_text())) if file.exists() else {}


def write_rates(folder: Path, rates: Rates) -> None:
    """Write speed-rates.csv."""
    with (folder / "results" / "speed-rates.csv").open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("operation", "size", "per_nanosecond"))
        for name, curve in zip(Rates._fields, rates, strict=True):
            out.writerows((name, f"{s:.17g}", f"{r:.4g}") for s, r in zip(*curve, strict=True))


def read_rates(folder: Path) -> Rates:
    """Read speed-rates.csv."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in Rates._fields}
    with (folder / "results" / "speed-rates.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            found[line["operation"]].append((float(line["size"]), float(line["per_nanosecond"])))
    return Rates(*(Curve(*zip(*pairs, strict=True)) for pairs in found.values()))
