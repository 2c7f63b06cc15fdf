"""A row's first showing and its repeats: what a pass over a table counts, and what each row cost."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
GROUPS = 512
"""A table of more rows than this has them in so many groups, drawn once: what is stored of a run stays small."""


class FirstSights:
    """What the first showings of a table's rows cost, row by row or in groups of rows.

    Where an environment has no table, every round is a first showing and there are no rows to tell apart.

    Parameters
    ----------
    env
        The environment without wrappers, after its reset.
    rounds
        Rounds of the run.
    """

    def __init__(self, env: Any, rounds: int) -> None:
        rows = getattr(env, "rows_per_pass", None)
        self.rounds = rounds if rows is None else min(rounds, int(rows))
        self.groups: NDArray[np.int64] | None = None
        if rows is not None:
            of_row = row_groups(int(rows))
            self.groups = of_row[env.row_order(self.rounds)]
            self.sums, self.counts = np.zeros(of_row.max() + 1), np.zeros(of_row.max() + 1)

    def among(self, done: int, n: int) -> int:
        """Return how many of the n rounds after the first `done` are first showings: those come before all repeats."""
        return max(0, min(n, self.rounds - done))

    def add(self, done: int, wrong: Floats) -> None:
        """Add the expected mistakes of the rounds after the first `done`, which are first showings."""
        if self.groups is not None and len(wrong):
            here = self.groups[done : done + len(wrong)]
            self.sums += np.bincount(here, wrong, len(self.sums))
            self.counts += np.bincount(here, minlength=len(self.counts))

    def row_losses(self) -> bytes | None:
        """Return what the rows cost (see `results.schema`), None where there is no table."""
        if self.groups is None:
            return None
        return np.stack([self.sums, self.counts]).astype("<f4").tobytes()


@lru_cache(maxsize=8)
def row_groups(rows: int) -> NDArray[np.int64]:
    """Return the group of each of a table's rows: the row itself up to GROUPS of them, else drawn, sizes equal but for one.

    Drawn, not taken in turn: a file may be sorted in a way that groups of every 512th row would share.
    """
    if rows <= GROUPS:
        return np.arange(rows)
    return np.random.default_rng(rows).permutation(rows) % GROUPS
