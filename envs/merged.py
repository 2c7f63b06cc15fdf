"""A table whose classes are merged at random: the number of actions varies, and all else stays as it is."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from banditlab.envs import Table
from banditlab.errors import UsageError
from banditlab.validation import at_least


class Merged(Table):
    """The rows of a table, its classes merged at random into groups of equal size, or of sizes that differ by one.

    Parameters
    ----------
    path
        The file. A run's identity contains its content (sha256), not its place.
    label
        Name of the label column.
    groups
        K, how many groups: at least 2, at most the table's classes, and then they are as they were.
    merge_seed
        Which classes are merged: class k of C goes to the group of its place in a permutation of 0 ... C-1, modulo K.
    horizon
        T, rounds of an episode; in a sweep, set by the sweep's `rounds`.

    Raises
    ------
    UsageError
        There is no such file or label, or more groups than classes.
    """

    id: ClassVar[str] = "lab/Merged-v0"
    summary: ClassVar[str] = "your own table, its classes merged at random into groups"
    reference: ClassVar[str] = "made here"
    version: ClassVar[int] = 1

    def __init__(
        self, *, path: str, label: str = "class", groups: int = 2, merge_seed: int = 0, horizon: int = 10_000
    ) -> None:
        self.groups = at_least("groups", groups, 2)
        self.merge_seed = at_least("merge_seed", merge_seed, 0)
        super().__init__(path=path, label=label, horizon=horizon)

    def _load(self) -> Any:
        rows = super()._load()
        C = len(rows.classes)
        if self.groups > C:
            raise UsageError(f"groups must be at most the table's {C} classes, got {self.groups}")
        group = np.random.default_rng(self.merge_seed).permutation(C) % self.groups
        y = group[rows.y]
        return rows._replace(y=y, classes=list(range(self.groups)), encoder=None)
