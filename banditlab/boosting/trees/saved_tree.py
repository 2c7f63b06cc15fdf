"""Check the arrays of a tree from a file, because kernels index them without checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.trees.hoeffding_kernels import (
    CHILD,
    CLASS,
    CLOSED,
    FEATURE,
    FREE_SLOT,
    KIND,
    LEAF,
    NODES_USED,
    NOMINAL,
    NUMERIC,
    PRIOR,
    SLOT,
    SLOTS_USED,
)
from banditlab.errors import UsageError
from banditlab.players.saved import same

DEEPEST = 4_000
"""The largest depth of a tree, because `weight_below` calls itself once per level."""


def require_tree(given: Mapping[str, Any], made: Any, starts: NDArray[np.int64], columns: int) -> None:
    """Raise a UsageError unless the arrays (see `hoeffding_kernels`) describe a tree over `columns` columns.

    `made` contains the arrays of an empty tree; `starts` (number of nominal columns + 1,) contains the index of the
    first category of each nominal column.
    """
    nodes, values, seen, sizes = (given[name] for name in ("nodes", "values", "seen", "sizes"))
    for name, least in (("nodes", 1), ("values", 1), ("seen", 1), ("sizes", 3), ("tuning", len(made.tuning))):
        array, old = given[name], getattr(made, name)
        fits = isinstance(array, np.ndarray) and array.dtype == old.dtype and array.shape[1:] == old.shape[1:]
        _demand(fits and array.ndim == old.ndim and len(array) >= least, f"{name} has another shape or type")
    _demand(len(values) == len(nodes) and len(sizes) == 3, "nodes, values and sizes have lengths that do not match")
    (grace, *chances), settings = given["tuning"][:PRIOR], slice(PRIOR, None)  # the first three may be random
    right = 1.0 <= grace < np.inf and all(0.0 < chance < 1.0 for chance in chances)
    _demand(right and same(made.tuning[settings], given["tuning"][settings]), "tuning does not match the settings")
    used, slots, free = (int(sizes[slot]) for slot in (NODES_USED, SLOTS_USED, FREE_SLOT))
    _demand(1 <= used <= len(nodes) and 0 <= slots <= len(seen) and -1 <= free < slots, "sizes exceed the arrays")
    _require_nodes(nodes[:used], starts, columns)
    _require_slots(nodes[:used], seen[:slots, 0], slots, free)
    _demand(not np.isnan(values[:used, CLASS:]).any(), "a weight is NaN")


def _require_nodes(nodes: NDArray[np.int64], starts: NDArray[np.int64], columns: int) -> None:
    """Check that nodes are leaves or splits of existing columns, and that every node but the root has one parent, with
    a smaller index.
    """
    nominal, kinds, feature, children = len(starts) - 1, nodes[:, KIND], nodes[:, FEATURE], nodes[:, CHILD:]
    _demand(np.isin(kinds, (LEAF, NUMERIC, NOMINAL)).all(), "a node is neither a leaf nor a split")
    numeric, named, leaves = kinds == NUMERIC, kinds == NOMINAL, kinds == LEAF
    here = np.where(named, feature >= 0, feature >= nominal) & np.where(named, feature < nominal, feature < columns)
    _demand(here[~leaves].all(), "a split uses a column that does not exist")
    _demand((children[leaves] == -1).all(), "a leaf has children")
    _demand((children >= -1).all() and (children[~leaves] >= 0).any(axis=1).all(), "a split has no children")
    _demand(
        (children[numeric, :2] >= 0).all() and (children[numeric, 2:] == -1).all(),
        "a numeric split has no two children",
    )
    parents, places = np.nonzero(children >= 0)
    below = children[parents, places]
    whole = len(below) == len(nodes) - 1 and np.array_equal(np.sort(below), np.arange(1, len(nodes)))
    _demand(whole and (below > parents).all(), "the nodes do not form a tree")
    depth = np.zeros(len(nodes), np.int64)
    for parent, child in sorted(zip(parents.tolist(), below.tolist(), strict=True)):  # parents come first
        depth[child] = depth[parent] + 1
    _demand(depth.max() <= DEEPEST, f"a leaf is below more than {DEEPEST} splits")


def _require_slots(nodes: NDArray[np.int64], first: NDArray[np.float64], slots: int, free: int) -> None:
    """Check that leaves have different slots, and that the free slots are a linked list."""
    taken = nodes[:, SLOT]
    _demand((taken >= CLOSED).all() and (taken < slots).all(), "a leaf has a slot that does not exist")
    _demand((taken[nodes[:, KIND] != LEAF] < 0).all(), "a split has a slot")
    occupied = taken[taken >= 0]
    left = set(range(slots)) - set(occupied.tolist())
    _demand(len(left) == slots - len(occupied), "two leaves have the same slot")
    while free >= 0:
        _demand(free in left, "its free slots are not a chain")
        left.remove(free)
        following = float(first[free])
        _demand(following.is_integer() and following >= -1.0, "its free slots are not a chain")
        free = int(following)
    _demand(not left, "its free slots are not a chain")


def _demand(right: Any, otherwise: str) -> None:
    if not right:
        raise UsageError(f"a saved tree: {otherwise}")
