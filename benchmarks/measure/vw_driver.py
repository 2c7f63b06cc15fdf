"""Vowpal Wabbit by its own driver: the fastest it gets, no Python between two rounds.

`--cbify K` makes a contextual bandit of a file of labelled examples inside Vowpal Wabbit, which draws the action and learns
from that action's cost alone. The file is parsed into its binary cache first; what is timed reads the cache. A
start without examples is timed too and taken off.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure.one_player import ChildError, Effort, Row, Stream, in_child, resident
from benchmarks.measure.players import Player

NUMBERS = 2**21
"""The longest file; wider contexts get fewer rounds."""
REPEATS = 3


def measure(player: Player, stream: Stream, effort: Effort) -> Row:
    """Return the driver's row on a stream; `player.settings["cbify"]` are its options."""
    K, d = stream.problem.n_classes, stream.problem.n_features
    row = Row(player.label, player.kind, stream.name, K, d)
    try:
        return row._replace(**in_child(lambda: _measured(player.settings["cbify"], stream), effort.limit))
    except ChildError as error:
        return row._replace(why=str(error))


def _measured(options: str, stream: Stream) -> dict[str, Any]:
    from vowpalwabbit import pyvw  # type: ignore[import-untyped]

    K, d = stream.problem.n_classes, stream.problem.n_features
    rounds = min(len(stream.y), max(1, NUMBERS // d))
    arguments = f"--cbify {K} {options} --quiet"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stream.vw"
        with file.open("w") as out:
            for x, label in zip(stream.X[:rounds], stream.y[:rounds].tolist(), strict=True):
                values = " ".join(f"f{j}:{v:.8g}" for j, v in enumerate(x.tolist()) if v != 0.0)
                out.write(f"{label + 1} | {values}\n")
        played = f"{arguments} --holdout_off -d {file} --cache_file {file}.cache"
        pyvw.Workspace(played).finish()  # writes the cache
        before = resident(reset=True)
        spent, lost = [], 0.0
        for _ in range(REPEATS):
            start = time.process_time()
            pyvw.Workspace(arguments).finish()
            empty = time.process_time() - start
            start = time.process_time()
            workspace = pyvw.Workspace(played)  # plays the whole file
            spent.append(time.process_time() - start - empty)
            lost = workspace.get_sum_loss() / workspace.get_weighted_examples()
            workspace.finish()
    peak = None if before is None else max(0, (resident() or 0) - before)
    nanoseconds = 1e9 * max(statistics.median(spent), 1e-6) / rounds
    return {"rounds": rounds, "nanoseconds": nanoseconds, "mistakes": lost, "peak": peak}
