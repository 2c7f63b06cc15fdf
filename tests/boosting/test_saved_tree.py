"""A tree that a file brings: which arrays are those of a tree, and what is said of those that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from banditlab.boosting.trees.hoeffding import Arrays
from banditlab.boosting.trees.hoeffding_kernels import CLOSED, LEAF, NOMINAL, NUMERIC
from banditlab.boosting.trees.saved_tree import DEEPEST, require_tree
from banditlab.errors import UsageError

STARTS = np.array([0, 3])
MADE = Arrays.of(2, 2, [3], [7.0, 0.3, 0.4, 1.0, 0.99, 0.0, 0.0])


def whole() -> dict[str, Any]:
    """Return a tree over one nominal column of three categories and two numeric ones, and two classes.

    The root splits column 1; below it a leaf in slot 0 and a split by category, with leaves for the first and the last: one
    without a slot, one closed. Slots 1 and 2 are free, one after the other.
    """
    given = {name: array.copy() for name, array in MADE._asdict().items()}
    given["nodes"][:5] = [
        [NUMERIC, 1, -1, 1, 2, -1],
        [LEAF, -1, 0, -1, -1, -1],
        [NOMINAL, 0, -1, 3, -1, 4],
        [LEAF, -1, -1, -1, -1, -1],
        [LEAF, -1, CLOSED, -1, -1, -1],
    ]
    given["seen"][1, 0], given["seen"][2, 0] = 2.0, -1.0
    given["sizes"][:] = 5, 3, 1
    return given


def chain(splits: int) -> dict[str, Any]:
    """Return a tree whose right sides are split so many times."""
    given, n = whole(), 2 * splits + 1
    nodes = np.full((n, 6), -1)
    nodes[:, 0], nodes[:-1:2, 0], nodes[:-1:2, 1] = LEAF, NUMERIC, 2
    nodes[:-1:2, 3], nodes[:-1:2, 4] = np.arange(1, n, 2), np.arange(2, n, 2)
    return given | {"nodes": nodes, "values": np.zeros((n, 4)), "sizes": np.array([n, 0, -1])}


def test_trees_at_their_limits_are_trees() -> None:
    require_tree(whole(), MADE, STARTS, 3)
    full = whole()
    full["nodes"][1, 2], full["nodes"][3, 2], full["nodes"][4, 2] = 2, 0, 1  # every slot is taken
    full["sizes"][2] = -1
    full["tuning"][:3] = 1.0, 1e-300, 1.0 - 1e-16
    full["values"][5:] = np.nan  # nothing reads what no node has
    require_tree(full, MADE, STARTS, 3)
    short = whole()
    short |= {"nodes": short["nodes"][:5], "values": short["values"][:5], "seen": short["seen"][:3]}
    require_tree(short, MADE, STARTS, 3)
    first = whole()  # the first slot is the first that is free
    first["nodes"][1, 2], first["seen"][0, 0], first["seen"][1, 0], first["sizes"][2] = 2, 1.0, -1.0, 0
    require_tree(first, MADE, STARTS, 3)
    least = {name: array.copy() for name, array in MADE._asdict().items()}
    require_tree(least | {name: least[name][:1] for name in ("nodes", "values", "seen")}, MADE, STARTS, 3)
    require_tree({name: array.copy() for name, array in MADE._asdict().items()}, MADE, STARTS, 3)
    require_tree(chain(DEEPEST), MADE, STARTS, 3)
    with pytest.raises(UsageError, match=r"^a saved tree: a leaf is below more than 4000 splits$"):
        require_tree(chain(DEEPEST + 1), MADE, STARTS, 3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nodes": {(0, 0): 3}}, "a node is neither a leaf nor a split"),
        ({"nodes": {(0, 1): 0}}, "a split uses a column that does not exist"),  # a threshold on categories
        ({"nodes": {(0, 1): 3}}, "a split uses a column that does not exist"),
        ({"nodes": {(2, 1): 1}}, "a split uses a column that does not exist"),
        ({"nodes": {(2, 1): -1}}, "a split uses a column that does not exist"),
        ({"nodes": {(1, 3): 2}}, "a leaf has children"),
        ({"nodes": {(1, 5): -2}}, "a leaf has children"),
        ({"nodes": {(2, 3): -1, (2, 5): -1}}, "a split has no children"),
        ({"nodes": {(2, 4): -2}}, "a split has no children"),
        ({"nodes": {(0, 4): -1}}, "a numeric split has no two children"),
        ({"nodes": {(0, 3): -1}}, "a numeric split has no two children"),
        ({"nodes": {(0, 5): 4}}, "a numeric split has no two children"),
        ({"nodes": {(2, 3): 1}}, "the nodes do not form a tree"),  # two parents
        ({"nodes": {(2, 3): 1, (0, 3): 3}}, "the nodes do not form a tree"),  # a parent below its child
        ({"nodes": {(2, 3): 5}}, "the nodes do not form a tree"),
        ({"nodes": {(2, 3): -1}}, "the nodes do not form a tree"),  # a node without parent
        ({"nodes": {(0, 4): 3, (2, 3): 2}}, "the nodes do not form a tree"),  # its own parent
        ({"nodes": {(2, 4): 0}}, "the nodes do not form a tree"),  # the root is nobody's child
        ({"nodes": {(0, 3): 0}}, "the nodes do not form a tree"),
        ({"nodes": {(2, 3): 0, (2, 5): -1}}, "the nodes do not form a tree"),
        ({"nodes": {(1, 2): 3}}, "a leaf has a slot that does not exist"),
        ({"nodes": {(1, 2): -3}}, "a leaf has a slot that does not exist"),
        ({"nodes": {(0, 2): 1}}, "a split has a slot"),
        ({"nodes": {(0, 2): 0}}, "a split has a slot"),
        ({"nodes": {(3, 2): 0}}, "two leaves have the same slot"),
        ({"sizes": {2: 0}}, "its free slots are not a chain"),  # it is taken
        ({"sizes": {2: 2}}, "its free slots are not a chain"),  # slot 1 is forgotten
        ({"sizes": {2: -1}}, "its free slots are not a chain"),
        ({"seen": {(2, 0): 1.0}}, "its free slots are not a chain"),  # round and round
        ({"seen": {(1, 0): 2.5}}, "its free slots are not a chain"),
        ({"seen": {(2, 0): 3.0}}, "its free slots are not a chain"),
        ({"seen": {(2, 0): -2.0}}, "its free slots are not a chain"),
        ({"seen": {(2, 0): np.nan}}, "its free slots are not a chain"),
        ({"sizes": {0: 0}}, "sizes exceed the arrays"),
        ({"sizes": {0: 65}}, "sizes exceed the arrays"),
        ({"sizes": {1: -1, 2: -1}}, "sizes exceed the arrays"),
        ({"sizes": {1: 5}}, "sizes exceed the arrays"),
        ({"sizes": {2: 3}}, "sizes exceed the arrays"),
        ({"sizes": {2: -2}}, "sizes exceed the arrays"),
        ({"tuning": {0: 0.999}}, "tuning does not match the settings"),
        ({"tuning": {0: np.inf}}, "tuning does not match the settings"),
        ({"tuning": {1: 0.0}}, "tuning does not match the settings"),
        ({"tuning": {2: 1.0}}, "tuning does not match the settings"),
        ({"tuning": {3: 2.0}}, "tuning does not match the settings"),
        ({"tuning": {6: 1.0}}, "tuning does not match the settings"),
        ({"values": {(4, 2): np.nan}}, "a weight is NaN"),
        ({"values": {(4, 3): np.nan}}, "a weight is NaN"),
    ],
)
def test_what_is_no_tree_is_named(changes: dict[str, dict[Any, float]], said: str) -> None:
    given = whole()
    for name, entries in changes.items():
        for place, value in entries.items():
            given[name][place] = value
    with pytest.raises(UsageError) as refusal:
        require_tree(given, MADE, STARTS, 3)
    assert str(refusal.value) == f"a saved tree: {said}"


@pytest.mark.parametrize(
    ("name", "array", "said"),
    [
        ("nodes", np.zeros((64, 6)), "nodes has another shape or type"),
        ("nodes", np.zeros((64, 7), np.int64), "nodes has another shape or type"),
        ("nodes", np.zeros((0, 6), np.int64), "nodes has another shape or type"),
        ("seen", [1.0], "seen has another shape or type"),
        ("sizes", np.zeros(2, np.int64), "sizes has another shape or type"),
        ("sizes", np.zeros((3, 1), np.int64), "sizes has another shape or type"),
        ("tuning", np.zeros(6), "tuning has another shape or type"),
        ("values", np.zeros((63, 4)), "nodes, values and sizes have lengths that do not match"),
        ("sizes", np.array([1, 0, -1, 0]), "nodes, values and sizes have lengths that do not match"),
    ],
)
def test_arrays_of_another_kind_are_named(name: str, array: Any, said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        require_tree(whole() | {name: array}, MADE, STARTS, 3)
    assert str(refusal.value) == f"a saved tree: {said}"
