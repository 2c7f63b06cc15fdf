"""Vowpal Wabbit by its own driver, `--cbify K`: the options that the adapter's settings do not reach.

`--cbify` shows the learner a labelled example's features, draws the action inside Vowpal Wabbit, and learns from that action's
cost alone: the right class costs 0 (-1 where `--loss0 -1 --loss1 0`), every other one 1 (0). What is counted are the actions
it writes down, against the labels. Interactions are made inside Vowpal Wabbit from the same contexts.
"""

from __future__ import annotations

import gc
import tempfile
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.distributions import library
from benchmarks.measure.one_player import ChildError, in_child
from benchmarks.measure.rivals.tables import Stream

FEATURES = ("", "-q ::", "--nn 16")
LEARNING_RATES = (0.5, 2.0, 8.0)
EXPLORATIONS = (
    "--epsilon 0.05",
    "--epsilon 0.01",
    "--cover 4",
    "--cover 4 --nounif --psi 0.1",
    "--bag 4",
    "--regcbopt --mellowness 0.01",
    "--squarecb",
)
COSTS = ("", "--loss0 -1 --loss1 0")
RANGE = "--cb_min_cost -1 --cb_max_cost 0"
"""The range of costs of -1 and 0, which RegCB does not learn from the costs."""
BITS = 22
"""Places for weights, 2^22: classes and copies take the low bits, so that the 18 that are usual would collide."""


LIMIT = 8.0
"""Seconds that one pass may take: 1.6 ms per round."""


class PlayFailed(RuntimeError):
    """Vowpal Wabbit died, took longer than the limit, or did not answer every example."""


class Options(NamedTuple):
    """Four parts of a command line; those given here are the library's defaults."""

    features: str = FEATURES[0]
    learning_rate: float = LEARNING_RATES[0]
    exploration: str = EXPLORATIONS[0]
    costs: str = COSTS[0]

    def line(self) -> str:
        """Return them as one text."""
        in_range = RANGE if self.costs and "--regcb" in self.exploration else ""
        parts = (self.features, f"--learning_rate {self.learning_rate:g}", self.exploration, self.costs, in_range)
        return " ".join(part for part in parts if part)


def with_features(best: Options) -> list[Options]:
    """Return the second stage's candidates: every kind of features at every learning rate."""
    return [best._replace(features=f, learning_rate=r) for f in FEATURES for r in LEARNING_RATES]


def with_explorations(best: Options) -> list[Options]:
    """Return the third stage's candidates: every exploration under both costs."""
    return [best._replace(exploration=e, costs=c) for e in EXPLORATIONS for c in COSTS]


class Driver:
    """Plays streams; the files of one table at a time lie in its own folder."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="banditlab-rivals-")
        weakref.finalize(self, self._folder.cleanup)
        self._table = ""

    def play(self, stream: Stream, options: Options, seed: int) -> float:
        """Return the share of mistakes of one pass."""
        return float(np.mean(self.actions(stream, options, seed) != stream.y))

    def actions(self, stream: Stream, options: Options, seed: int) -> NDArray[np.int64]:
        """Return the actions 0 ... K-1 of one pass, (T,).

        Raises
        ------
        PlayFailed
            Vowpal Wabbit did not answer every example.
        """
        if stream.table != self._table:  # a study of many tables does not fill the disk
            for old in Path(self._folder.name).iterdir():
                old.unlink()
            self._table = stream.table
            library("vowpalwabbit.pyvw", "vw")  # before the first fork
            gc.freeze()  # every fork collects garbage: not what is there by now, .1 s each time
        file = Path(self._folder.name) / f"{stream.table}-{stream.scaling}-{stream.seed}.vw"
        if not file.exists():
            file.write_text(examples(stream))
        found = file.with_suffix(".actions")
        fixed = f"--cbify {stream.n_classes} --bit_precision {BITS} --random_seed {seed + 1} --quiet --holdout_off"
        found.unlink(missing_ok=True)
        line = f"{fixed} -d {file} --cache_file {file}.cache -p {found} {options.line()}"
        try:
            in_child(lambda: _played(line), LIMIT)
        except ChildError as error:
            raise PlayFailed(f"vw {options.line()} on {stream.table}: {error}") from None
        actions = np.array([int(float(line.split()[0])) for line in found.read_text().splitlines() if line.strip()])
        if len(actions) != len(stream.y):
            raise PlayFailed(f"vw {options.line()}: {len(actions)} actions for {len(stream.y)} examples")
        return actions.astype(np.int64) - 1


def _played(line: str) -> dict[str, Any]:
    """Play the whole file that the command line names, in a process that may die of it: some combinations of options do."""
    library("vowpalwabbit.pyvw", "vw").Workspace(line).finish()
    return {}


def examples(stream: Stream) -> str:
    """Return the stream as Vowpal Wabbit's text, a line a round; it keeps numbers in single precision."""
    lines = []
    for x, label in zip(stream.X, stream.y.tolist(), strict=True):
        here = np.flatnonzero(x)
        values = " ".join(f"f{j}:{v:.8g}" for j, v in zip(here.tolist(), x[here].tolist(), strict=True))
        lines.append(f"{label + 1} | {values}\n")
    return "".join(lines)
