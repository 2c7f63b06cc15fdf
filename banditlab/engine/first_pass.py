"""The first pass over a table, and the expected mistakes per row in it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
GROUPS = 512
"""The rows of a larger table are divided into this many groups, which limits the size of a stored run.

Groups are random or, if rows are in order, intervals of rows.
"""


class FirstPass:
    """Expected mistakes in the first pass over a table: one sum per row, or per group of rows if the table is large.

    If the rows of the table form units (`row_units`), only the first round of each unit counts. Without a table, all
    rounds count, and there are no sums per row.

    Parameters
    ----------
    env
        The environment without wrappers, after its reset.
    rounds
        Rounds of the run.
    """

    def __init__(self, env: Any, rounds: int) -> None:
        rows = getattr(env, "rows_per_pass", None)
        self.groups: NDArray[np.int64] | None = None
        self.costs: Floats | None = None
        self.spent = 0.0
        if rows is not None:
            units = getattr(env, "row_units", None)
            order = env.row_order(min(rounds, int(rows)))
            shown = order if units is None else units[order]
            n = int(rows) if units is None else int(units.max()) + 1
            of_unit = np.arange(n) * min(GROUPS, n) // n if getattr(env, "in_order", False) else row_groups(n)
            self.first = np.isin(np.arange(len(shown)), np.unique(shown, return_index=True)[1])
            self.groups = of_unit[shown]
            costs = getattr(env, "action_costs", None)
            self.costs = None if costs is None else costs[order]
            self.sums, self.counts = np.zeros(of_unit.max() + 1), np.zeros(of_unit.max() + 1)

    def among(self, done: int, n: int) -> NDArray[np.bool_]:
        """Return, as booleans (n,), which of the n rounds after the first `done` count.

        These are the first round of each unit in the pass.
        """
        if self.groups is None:
            return np.ones(n, dtype=bool)
        here = self.first[done : done + n]
        return here if len(here) == n else np.concatenate([here, np.zeros(n - len(here), dtype=bool)])

    def add(self, done: int, wrong: Floats, actions: NDArray[np.int64], new: NDArray[np.bool_]) -> None:
        """Add the expected mistakes and costs of rounds after the first `done`; `new` marks those that count."""
        if self.groups is not None and new.any():
            at = done + np.flatnonzero(new)
            here = self.groups[at]
            if self.costs is not None:
                self.spent += float(self.costs[at, actions[new]].sum())
            self.sums += np.bincount(here, wrong[new], len(self.sums))
            self.counts += np.bincount(here, minlength=len(self.counts))

    def diagnostics(self) -> dict[str, float]:
        """Return the mean cost of the chosen actions in the first pass, if costs are known."""
        return {} if self.costs is None else {"mean_cost": self.spent / float(self.counts.sum())}

    def row_losses(self) -> bytes | None:
        """Return the losses by row (see `results.schema`), or None without a table."""
        if self.groups is None:
            return None
        return np.stack([self.sums, self.counts]).astype("<f4").tobytes()


@lru_cache(maxsize=8)
def row_groups(rows: int) -> NDArray[np.int64]:
    """Return for each row the group in which its losses are summed.

    For up to `GROUPS` rows it is the row itself, otherwise one of `GROUPS` random groups. Groups are random because the
    order of a file may be periodic.
    """
    if rows <= GROUPS:
        return np.arange(rows)
    return np.random.default_rng(rows).permutation(rows) % GROUPS
