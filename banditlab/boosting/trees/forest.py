"""A table of the addresses of a booster's trees, so one kernel call uses all learners, which remain separate objects.

A kernel receives a table with the addresses of the trees' arrays and generators. Nothing is copied, and each learner
uses its own generator. Between two calls a learner can predict, or be saved or pickled, by itself. A learner is one
tree, or a group of K binary trees, "class k or not" (`one-vs-all`).

Other learners that estimate probabilities return their estimates one by one, in Python. Their table has no trees.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types as nbtypes
from numba.extending import intrinsic
from numba.np import arrayobj
from numpy.typing import NDArray

from banditlab.boosting.trees.hoeffding_kernels import SCRATCH, SPLITS, learn, shares
from banditlab.boosting.weak.weak_learner import Floats, ProbableLearner
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import inline, njit

NODES, VALUES, SEEN, SIZES, TUNING, NODE_ROWS, SEEN_ROWS = range(7)
NEXT, GENERATOR = range(2)
NODE_COLUMNS, VALUE_COLUMNS, SEEN_COLUMNS = range(3)
"""Column indices of `Forest.trees` and of `Forest.draws`, and indices of `Forest.widths`."""


class Forest(NamedTuple):
    """The table of M trees of N learners, :math:`M/N` each; M is 0 if learners are not trees.

    The arrays `nodes`, `values` and `seen` of a tree have V, W and Z columns.

    trees (M, 7)            addresses of nodes, values, seen, sizes and tuning; numbers of rows of nodes and of seen
    draws (N + 1, 2)        addresses of the function for the next uniform and of its argument; the last row is the booster's
    widths (3,)             V, W, Z
    starts                  the argument `starts` of `learn`
    scratch (SCRATCH, K), both (2,) are work arrays
    """

    trees: NDArray[np.int64]
    draws: NDArray[np.int64]
    widths: NDArray[np.int64]
    starts: NDArray[np.int64]
    scratch: Floats
    both: Floats


def _matrix_at(dtype: Any) -> Any:
    kind = nbtypes.Array(dtype, 2, "C")

    def codegen(context, builder, signature, args):
        address, rows, columns = args
        array = context.make_array(kind)(context, builder)
        item = context.get_constant(nbtypes.intp, 8)
        arrayobj.populate_array(
            array,
            data=builder.inttoptr(address, array.data.type),
            shape=[rows, columns],
            strides=[builder.mul(columns, item), item],
            itemsize=item,
            meminfo=None,
        )
        return array._getvalue()

    def matrix_at(typingctx, address, rows, columns):
        """Return the C-contiguous matrix (rows, columns) of eight-byte numbers at an address, without reference
        counting.
        """
        return kind(nbtypes.int64, nbtypes.int64, nbtypes.int64), codegen

    return intrinsic(matrix_at)


_floats_at, _integers_at = _matrix_at(nbtypes.float64), _matrix_at(nbtypes.int64)


def _next_uniform(typingctx, function, generator):
    """Return the next uniform of a bit generator, by calling numpy's `next_double` at the address `function`."""

    def codegen(context, builder, signature, args):
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.DoubleType(), [pointer]).as_pointer()
        return builder.call(builder.inttoptr(args[0], kind), [builder.inttoptr(args[1], pointer)])

    return nbtypes.float64(nbtypes.int64, nbtypes.int64), codegen


_next: Any = intrinsic(_next_uniform)


@inline
def uniform(forest, i):
    """Return the next uniform of learner i's generator; :math:`i = N` is the generator for the booster's ties."""
    return _next(forest.draws[i, NEXT], forest.draws[i, GENERATOR])


@inline(arrays="views")
def nodes_of(forest, j):
    """Return nodes and values of tree j."""
    tree = forest.trees[j]
    rows = tree[NODE_ROWS]
    nodes = _integers_at(tree[NODES], rows, forest.widths[NODE_COLUMNS])
    return nodes, _floats_at(tree[VALUES], rows, forest.widths[VALUE_COLUMNS])


@inline(arrays="views")
def tuning_of(forest, j):
    """Return tuning (7,) of tree j."""
    return _floats_at(forest.trees[j, TUNING], 1, SPLITS + 1)[0]


@inline
def estimate(forest, i, x, q):
    """Write learner i's estimate at x into q (K,); without trees, change nothing."""
    members = forest.trees.shape[0] // (forest.draws.shape[0] - 1)
    if members == 1:
        nodes, values = nodes_of(forest, i)
        shares(x, nodes, values, tuning_of(forest, i), q)
        return
    known, both = False, forest.both
    for k in range(members):
        j = i * members + k
        nodes, values = nodes_of(forest, j)
        shares(x, nodes, values, tuning_of(forest, j), both)
        q[k] = both[0] / (both[0] + both[1])
        known |= q[k] != 0.0
    if not known:
        for k in range(members):
            q[k] = 1.0


@njit
def prepare(forest, x, Q, u):
    """Write every learner's estimate at x into Q (N, K), and a uniform number that breaks its ties into u (N,).

    Neither depends on other learners' predictions. Without trees, Q already contains the estimates.
    """
    for i in range(Q.shape[0]):
        estimate(forest, i, x, Q[i])
        u[i] = uniform(forest, i)


@inline
def update_tree(forest, j, k, x, y, weight):
    """Update tree j, the k-th tree of its learner, with (x, y) and a weight; return False if its arrays are too
    small.
    """
    if not weight > 0.0:
        return True
    label = y if forest.trees.shape[0] == forest.draws.shape[0] - 1 else int(y != k)  # MINE is 0
    nodes, values = nodes_of(forest, j)
    seen = _floats_at(forest.trees[j, SEEN], forest.trees[j, SEEN_ROWS], forest.widths[SEEN_COLUMNS])
    sizes = _integers_at(forest.trees[j, SIZES], 1, 3)[0]
    return learn(x, label, weight, forest.starts, nodes, values, seen, sizes, tuning_of(forest, j), forest.scratch)


@njit
def update_trees(forest, first, x, y, weights):
    """Update every tree from `first` on with (x, y), with weights[i] for learner i; weight 0 changes nothing.

    Returns M, or the index of the first tree whose arrays are too small; that tree is not updated.
    """
    M = forest.trees.shape[0]
    members = M // weights.shape[0]
    for j in range(first, M):
        if not update_tree(forest, j, j % members, x, y, weights[j // members]):
            return j
    return M


NOTHING = as_contexts(np.zeros(0))
"""The context that kernels receive if there are no trees."""


class Grove:
    """The table of a booster's learners; it is rebuilt if a tree's arrays or a generator were replaced."""

    def __init__(self) -> None:
        self._learners: list[Any] = []
        self._known: list[Any] = []
        self._trees: list[Any] = []
        self._estimate = False
        self._forest: Forest | None = None
        self.scratch: Any = None
        """Work arrays of the booster's kernels."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Omit addresses in copies and pickles."""
        return Grove, ()

    def forest(self, learners: Sequence[Any], ties: np.random.Generator) -> Forest | None:
        """Return the table, or None if a learner does not choose classes by its estimate as `ProbableLearner` does."""
        if len(learners) != len(self._learners) or not all(map(is_, learners, self._learners)):
            self._learners, self._known, self._forest = list(learners), [], None
            groups = [learner.trees() if hasattr(learner, "trees") else [] for learner in learners]
            self._trees = [tree for group in groups for tree in group] if all(groups) else []
            self._estimate = all(map(_chooses_by_estimate, learners))
        if not self._trees and not self._estimate:
            return None
        generators = [learner.rng for learner in learners] + [ties]
        now = [tree.state for tree in self._trees] + generators
        if len(now) != len(self._known) or not all(map(is_, now, self._known)):
            if not all(isinstance(generator, np.random.Generator) for generator in generators):
                return None  # a custom generator has no address
            self._forest, self._known = _forest(self._trees, generators), now
        return self._forest

    def ask(self, view: Any, Q: Floats) -> Floats:
        """Return the trees' input for a view of a context; without trees, write the estimates into Q (N, K)."""
        if self._trees:
            x: Floats = self._trees[0].read(view)
            return x
        for learner, q in zip(self._learners, Q, strict=True):
            learner.estimate(view, q)
        return NOTHING

    def views(self, contexts: Floats) -> Floats:
        """Return the trees' inputs for contexts (n, d), one row each."""
        return as_contexts(self._trees[0].views(contexts))

    def update_trees(self, forest: Forest, view: Any, y: int, weights: Floats) -> None:
        """Update with a context's view and the label y, with weights[i] for learner i."""
        if not self._trees:
            for learner, weight in zip(self._learners, weights.tolist(), strict=True):
                learner.update(view, y, weight)
            return
        x = self._trees[0].read(view)
        j = update_trees(forest, 0, x, y, weights)
        while j < len(forest.trees):
            self.grow(j)
            j = update_trees(forest, j, x, y, weights)

    def grow(self, j: int) -> None:
        """Enlarge the arrays of tree j."""
        assert self._forest is not None
        self._trees[j].grow()
        self._known[j] = self._trees[j].state
        self._forest.trees[j] = _addresses(self._known[j])


def _chooses_by_estimate(learner: Any) -> bool:
    return getattr(type(learner), "predict", None) is ProbableLearner.predict and "predict" not in vars(learner)


def _forest(trees: Sequence[Any], generators: Sequence[np.random.Generator]) -> Forest:
    draws = np.array([_source(generator) for generator in generators], dtype=np.int64)
    if not trees:
        none = np.zeros(0, dtype=np.int64)
        return Forest(
            np.zeros((0, SEEN_ROWS + 1), dtype=np.int64),
            draws,
            none,
            none,
            np.zeros((SCRATCH, 0)),
            np.zeros(0),
        )
    one = trees[0]
    nodes, values, seen = one.state[:3]
    return Forest(
        np.array([_addresses(tree.state) for tree in trees], dtype=np.int64),
        draws,
        np.array([nodes.shape[1], values.shape[1], seen.shape[1]], dtype=np.int64),
        one.starts,
        np.zeros((SCRATCH, one.problem.n_classes)),
        np.zeros(2),
    )


def _addresses(state: Any) -> list[int]:
    """Return the addresses of a tree's C-contiguous arrays, and their numbers of rows; `.ctypes.data` would take
    longer.
    """
    return [*[ctypes.addressof(ctypes.c_char.from_buffer(array)) for array in state], len(state[0]), len(state[2])]


class _BitGenerator(ctypes.Structure):
    """numpy's `bitgen_t`, the struct in the capsule of a bit generator."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("state", "next_uint64", "next_uint32", "next_double", "next_raw")]


_held = ctypes.pythonapi.PyCapsule_GetPointer
_held.restype, _held.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _source(generator: np.random.Generator) -> tuple[int, int]:
    held = _BitGenerator.from_address(_held(generator.bit_generator.capsule, b"BitGenerator"))
    return held.next_double, held.state
