"""The regression check: instructions that compiled kernels execute a round, counted, not timed.

A process of its own compiles every player's kernels for one fixed target (TARGET, whatever the machine is), with counters
in them (see `instrument.py`), and plays ROUNDS rounds of a Logistic stream after as many that are not counted. What a
round executed is compared with benchmarks/tables/counts.csv: floating-point operations (the BLAS's included, from the shapes it
is called with), bytes loaded and stored, instructions, exponentials and the like. More than TOLERANCE above the
committed count fails; below, the file wants renewing with --update. Interpreted parts of a player are not counted.

Counts of operations hardly depend on the compiler; instructions and bytes do, so that with other versions of numba or
llvmlite than the file's they are held to LOOSE.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure.players import OURS

FILE = Path(__file__).parents[1] / "tables" / "counts.csv"
TARGET = "x86-64-v3"
CLASSES, FEATURES, ROUNDS = 10, 64, 200
TOLERANCE, LOOSE = 0.05, 0.5
COLUMNS = ("operations", "instructions", "bytes", "elementary")

Counts = dict[str, float]


def run(update: bool, ids: list[str]) -> int:
    """Count the players with these ids (all if there are none), print the comparison and return an exit status."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        print(f"the committed counts are for {TARGET}; this machine is {platform.machine()}: nothing is compared")
        return 0
    labels = [player.label for player in OURS if not ids or player.id in ids]
    found = count(labels)
    known, versions = read(FILE)
    if update:
        write(FILE, {**known, **found})
        print(f"{len(found)} counts written to {FILE.name}")
        return 0
    same = versions == compiler()
    if not same:
        print(f"counted with {compiler()}, committed with {versions}: instructions and bytes are held to {LOOSE:.0%}")
    complaints = [line for label in labels for line in compare(label, found[label], known.get(label), same)]
    print("\n".join(complaints) or f"{len(found)} players execute what is committed")
    return 1 if any("MORE" in line or "no count" in line for line in complaints) else 0


def compare(label: str, now: Counts, committed: Counts | None, same: bool) -> list[str]:
    """Return a line for each count of a player that is off."""
    if committed is None:
        return [f"{label}: no count is committed; run with --update"]
    lines = []
    for name in COLUMNS:
        allowed = TOLERANCE if same or name in ("operations", "elementary") else LOOSE
        change = now[name] - committed[name]
        if abs(change) > allowed * max(committed[name], 10.0):
            word = "MORE" if change > 0 else "fewer"
            lines.append(f"{label}: {word} {name}: {now[name]:,.0f} a round, {committed[name]:,.0f} committed")
    return lines


def count(labels: list[str]) -> dict[str, Counts]:
    """Return each player's counts a round, counted in a process of its own."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    target = {"NUMBA_CPU_NAME": TARGET, "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.measure.counts", *labels],
        env={**os.environ, **threads, **target},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"the counting process ended with {done.returncode}; a processor without AVX2 cannot run it")
    found: dict[str, Counts] = json.loads(done.stdout.splitlines()[-1])
    return found


def compiler() -> str:
    """Return the versions that the counts of instructions depend on."""
    from importlib.metadata import version

    return f"numba {version('numba')}, llvmlite {version('llvmlite')}"


def read(file: Path) -> tuple[dict[str, Counts], str]:
    """Return the committed counts by player, and the compiler they were counted with."""
    if not file.exists():
        return {}, ""
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    found = {row["player"]: {name: float(row[name]) for name in COLUMNS} for row in rows}
    return found, rows[0]["compiler"] if rows else ""


def write(file: Path, counts: dict[str, Counts]) -> None:
    """Write counts, in the order of the players' table."""
    order = [player.label for player in OURS]
    with file.open("w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(("player", *COLUMNS, "compiler"))
        for label in sorted(set(counts) & set(order), key=order.index):
            table.writerow((label, *(f"{counts[label][name]:.1f}" for name in COLUMNS), compiler()))


def _count_here(labels: list[str]) -> None:
    """Count in this process, which must not have compiled anything yet, and print the counts as JSON."""
    from benchmarks.measure.instrument import install

    counters = install()
    from threadpoolctl import threadpool_limits

    found: dict[str, Any] = {}
    with threadpool_limits(1):
        for player in OURS:
            if player.label in labels:
                found[player.label] = _counted(player, counters)
                print(player.label, {k: round(v) for k, v in found[player.label].items()}, file=sys.stderr, flush=True)
    print(json.dumps(found))


def _counted(player: Any, counters: Any) -> Counts:
    from banditlab.envs.logistic import Logistic
    from banditlab.numerics.contexts import as_contexts
    from benchmarks.measure.one_player import SEED, blocks, build

    env = Logistic(n_classes=player.classes or CLASSES, n_features=FEATURES, horizon=2 * ROUNDS)
    env.reset(seed=SEED)
    [(X, y)] = env.blocks(2 * ROUNDS, 2 * ROUNDS)
    X = as_contexts(X)
    block = blocks(build(player, env.problem))
    block(X[:ROUNDS], y[:ROUNDS])
    before = counters.totals() if counters.engine else {}
    block(X[ROUNDS:], y[ROUNDS:])
    spent = {name: (value - before.get(name, 0)) / ROUNDS for name, value in counters.totals().items()}
    return {
        "operations": spent["operations"] + 2.0 * spent["blas"],
        "instructions": spent["instructions"],
        "bytes": spent["bytes"],
        "elementary": spent["elementary"],
    }


if __name__ == "__main__":
    _count_here(sys.argv[1:])
