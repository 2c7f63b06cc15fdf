"""A very fast decision tree as a weak learner (Domingos and Hulten, KDD 2000)."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.trees.hoeffding_kernels import (
    CHILD,
    CLASS,
    CLOSED,
    KIND,
    LEAF,
    NODES_USED,
    SCRATCH,
    SLOTS_USED,
    learn,
    shares,
)
from banditlab.boosting.trees.saved_tree import require_tree
from banditlab.boosting.weak.tuning import GRACE_PERIODS, LOOSENESS
from banditlab.boosting.weak.weak_learner import Floats, ProbableLearner
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.limits import COUNT, Limits
from banditlab.players.saved import fields_of
from banditlab.problem import Problem
from banditlab.validation import at_least, nonnegative, number, one_of, positive, probability


class Columns(NamedTuple):
    """The input of a tree for a context with nominal features."""

    values: Floats
    """The category of each nominal feature (the number of categories if there is none), then of each ordered feature
    (-1 if there is none), then the numeric columns."""


class Arrays(NamedTuple):
    """The arrays of a tree (see `hoeffding_kernels`). To enlarge an array, a new tuple is created."""

    nodes: NDArray[np.int64]
    values: Floats
    seen: Floats
    sizes: NDArray[np.int64]
    tuning: Floats

    def limits(self) -> Limits:
        """Return the allowed range of every integer; `require_tree` checks more."""
        return {"nodes": (CLOSED, COUNT[1]), "sizes": (-1, COUNT[1])}

    @classmethod
    def of(cls, K: int, numeric: int, categories: list[int], tuning: list[float]) -> Arrays:
        """Return the arrays of a tree with an empty root, for nominal features with the given numbers of categories."""
        nodes = np.full((64, CHILD + max([2, *categories])), -1, dtype=np.int64)
        nodes[0, KIND] = LEAF
        values = np.full((64, CLASS + K), -1.0)
        values[0, :CLASS] = 0.0
        seen = np.zeros((4, K + 5 * K * numeric + K * sum(categories)))
        return cls(nodes, values, seen, np.array([1, 0, -1], dtype=np.int64), np.array(tuning, dtype=float))

    def grown(self) -> Arrays:
        """Return the arrays, with twice the rows where they are full."""
        nodes, values, seen, sizes, tuning = self
        if sizes[NODES_USED] + nodes.shape[1] > len(nodes):
            nodes = np.concatenate([nodes, np.full_like(nodes, -1)])
            values = np.concatenate([values, np.full_like(values, -1.0)])
        if sizes[SLOTS_USED] + 1 > len(seen):
            seen = np.concatenate([seen, np.zeros_like(seen)])
        return Arrays(nodes, values, seen, sizes, tuning)


class HoeffdingTree(ProbableLearner):
    r"""A very fast decision tree: a leaf splits by a feature once this feature is the best with high confidence.

    The estimate of a class is its share of the weight at the leaf. Before the first example all estimates are equal.
    Features are numeric, with a Gaussian estimate for each class at a leaf, except for those in `one_hot`. These are
    nominal: a leaf counts categories, and a split has one branch per category.

    A leaf whose weight reaches the grace period compares the features by the information gain of their best splits. It
    splits by the best feature if the lead over the second best exceeds the Hoeffding bound, or if the bound is below
    the tie threshold. If it does not split, or if one class has nearly all the weight, the leaf resets its statistics
    of the features. With the default settings the splits and estimates are those of river's `HoeffdingTreeClassifier`
    with `leaf_prediction="mc"`, up to rounding.

    `prior` = 1, `largest_share` = 1, `spread` = "coded" and `splits` = "coded" give the tree in the code of Jung, Goetz
    and Tewari. With the default `prior` = 0, a class without examples at a leaf has the estimate 0 there. With the
    default `largest_share`, a leaf where one class has more than 99 % of the weight does not split. `splits` has the
    largest effect (see its description).

    Cost: 2 µs per prediction or update at :math:`d = 5`; an attempt to split takes :math:`10 K` evaluations of a
    Gaussian per numeric feature. Memory: :math:`5 K d` numbers for each leaf with statistics, and K times the
    categories of nominal features.

    Parameters
    ----------
    grace_period
        Weight that a leaf must receive between two attempts to split, at least 1; "random" draws an integer of 5 ...
        20.
    split_confidence
        :math:`\delta`, the accepted probability of a wrong split, in (0, 1); "random" draws it log-uniformly in
        [0.01, 0.9].
    tie_threshold
        :math:`\tau` in (0, 1): if the Hoeffding bound is below it, the leaf splits whatever the lead is; "random" draws
        it as for `split_confidence`.
    prior
        Weight of a class without examples at a leaf, 0 or above; the weight of later examples is added to it.
    largest_share
        A leaf does not split if one class has more than this share of the weight, in (0, 1].
    spread
        Estimate of the variance of a class on a numeric feature at a leaf. "sample": its sample variance. "coded": the
        estimate in the code of Jung, Goetz and Tewari, which has an error. That estimate is the weighted variance, at
        least 1e-12. At the first threshold between the class's smallest and largest value, however, it is the variance
        of the previous attempt. (In the first attempt, each side of that threshold gets half of the class.) The error
        favours splits that cut off the outermost examples.
    splits
        "usual", or "coded", as in the code of Jung, Goetz and Tewari. With "coded", a leaf that attempts to split while
        its examples do not differ in any numeric column never splits later, and its class counts restart at 0. (This
        does not apply if there are nominal columns.) In that code boosters use weights above the grace period, which
        cause such attempts after a single example, so these trees stay small. Also, the count of each category in each
        class at a leaf is higher by 1. A nominal split creates as many leaves as categories have occurred, and assigns
        them to the first categories, even if other categories have occurred. For a category without a leaf, the
        prediction uses the counts at the split. If no feature separates the examples, a leaf nonetheless splits if the
        bound is below the tie threshold.
    one_hot
        Number of columns of each nominal feature. For instance, [4, 4, 3] means that the first 11 columns are three
        nominal features of 4, 4 and 3 categories, one-hot encoded; later columns are numeric. If all columns of a
        feature are 0, this counts as one further category.
    ordered
        Indices, from 0, of nominal features with ordered categories. Each becomes one numeric feature, the number of
        its category, or -1 if all its columns are 0.

    Raises
    ------
    UsageError
        A setting is outside its range.

    References
    ----------
    P. Domingos, G. Hulten. Mining high-speed data streams. KDD 2000.
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, Appendix E.
    J. Montiel et al. River: machine learning for streaming data in Python. JMLR 22, 2021.
    """

    id = "hoeffding-tree"
    summary = "a very fast decision tree"
    reference = "Domingos and Hulten, KDD 2000"
    state_constants: ClassVar[tuple[str, ...]] = ("starts", "_numeric", "_ordered", "_nominal")
    excluded_checks = {"bounded_memory": "a tree grows with the number of examples"}

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        grace_period: float | Literal["random"] = "random",
        split_confidence: float | Literal["random"] = "random",
        tie_threshold: float | Literal["random"] = "random",
        prior: float = 0.0,
        largest_share: float = 0.99,
        spread: Literal["sample", "coded"] = "sample",
        splits: Literal["usual", "coded"] = "usual",
        one_hot: list[int] | None = None,
        ordered: list[int] | None = None,
    ) -> None:
        super().__init__(problem, rng)
        self._set_tuning(grace_period, split_confidence, tie_threshold)
        self._set_columns(one_hot, ordered)
        self.prior = nonnegative("prior", prior)
        self.largest_share = positive("largest_share", probability("largest_share", largest_share))
        self.spread = one_of("spread", spread, ("sample", "coded"))
        self.splits = one_of("splits", splits, ("usual", "coded"))
        K, sizes = problem.n_classes, [end - first + 1 for first, end in self._nominal]  # and one for no category
        numeric = problem.n_features - self._numeric + len(self._ordered)
        self.starts = np.array([0, *itertools.accumulate(sizes)], dtype=np.int64)
        looks = [self.prior, self.largest_share, float(self.spread == "coded"), float(self.splits == "coded")]
        tuning = [self.grace_period, self.split_confidence, self.tie_threshold, *looks]
        self.state = Arrays.of(K, numeric, sizes, tuning)
        self._scratch = np.zeros((SCRATCH, K))

    def _set_tuning(self, grace_period: Any, split_confidence: Any, tie_threshold: Any) -> None:
        """Set the three settings. A number is drawn for each of them, and used only if the setting is "random"."""
        period = int(self.rng.integers(*GRACE_PERIODS, endpoint=True))
        least, most = map(math.log, LOOSENESS)
        shares = np.exp(self.rng.uniform(least, most, size=2)).tolist()
        self.grace_period = number("grace_period", period if grace_period == "random" else grace_period, "random")
        if not 1.0 <= self.grace_period < math.inf:
            raise UsageError(f"grace_period must be at least 1 and finite, got {self.grace_period:g}")
        self.split_confidence = _share("split_confidence", split_confidence, shares[0])
        self.tie_threshold = _share("tie_threshold", tie_threshold, shares[1])

    def _set_columns(self, one_hot: list[int] | None, ordered: list[int] | None) -> None:
        """Set the numeric columns, and each ordered or nominal feature's first column and the one after its last."""
        self.one_hot, self.ordered = _integers("one_hot", one_hot, 1), _integers("ordered", ordered, 0)
        ends = [0, *itertools.accumulate(self.one_hot)]
        self._numeric = ends[-1]
        if self._numeric > self.problem.n_features:
            raise UsageError(f"one_hot has {self._numeric} columns, but contexts have {self.problem.n_features}")
        if len(set(self.ordered)) < len(self.ordered) or max(self.ordered, default=-1) >= len(self.one_hot):
            raise UsageError(f"ordered must be distinct indices of entries of one_hot, got {self.ordered}")
        groups = list(itertools.pairwise(ends))
        self._ordered = [groups[i] for i in self.ordered]
        self._nominal = [group for group in groups if group not in self._ordered]

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that `get_state` of an object with the same settings returned; arrays take its sizes."""
        given = fields_of(state["state"]) or {}
        columns = len(self._nominal) + len(self._ordered) + self.problem.n_features - self._numeric
        require_tree(given, self.state, self.starts, columns)
        capacity = {name: np.zeros(given[name].shape, given[name].dtype) for name in ("nodes", "values", "seen")}
        self.state = self.state._replace(**capacity)
        super().set_state(state)

    def view(self, context: Floats) -> Floats | Columns:
        """Return the context in the form that the tree reads."""
        if not self.one_hot:
            return context
        values = context[: self._numeric].tolist()
        found = [(category(values[first:end]), end - first) for first, end in [*self._nominal, *self._ordered]]
        categories = [size if which < 0.0 else which for which, size in found]
        nominal = len(self._nominal)
        categories[nominal:] = [which for which, _ in found[nominal:]]  # -1 is none, as in river
        return Columns(as_contexts(np.concatenate([categories, context[self._numeric :]])))

    def views(self, contexts: Floats) -> Floats:
        """Return the tree's inputs for contexts (n, d), one row each."""
        if not self.one_hot:
            return contexts
        columns = []
        for first, end in [*self._nominal, *self._ordered]:
            found = contexts[:, first:end]
            none = -1.0 if (first, end) in self._ordered else float(end - first)
            columns.append(np.where(found.max(axis=1) > 0.0, found.argmax(axis=1), none))
        return np.column_stack([*columns, contexts[:, self._numeric :]])

    def trees(self) -> list[HoeffdingTree]:
        """Return the trees that compiled loops use instead of this learner; an empty list for a subclass, because its
        methods may differ.
        """
        return [self] if type(self) is HoeffdingTree else []

    def read(self, context: Any) -> Floats:
        """Return the columns of a context or its view, in the form that kernels take."""
        read = context if isinstance(context, Columns) else self.view(context)
        return read.values if isinstance(read, Columns) else as_contexts(read)

    def estimate(self, context: Any, q: Floats) -> None:
        """Write the leaf's estimate into q (K,)."""
        shares(self.read(context), self.state.nodes, self.state.values, self.state.tuning, q)

    def update(self, context: Any, label: int, weight: float) -> None:
        """Update with an example; weight 0 changes nothing."""
        if weight > 0.0:
            x = self.read(context)
            while not learn(x, label, weight, self.starts, *self.state, self._scratch):
                self.grow()

    def grow(self) -> None:
        """Double full arrays."""
        self.state = self.state.grown()


def category(columns: list[float]) -> float:
    """Return the index of the largest of the one-hot columns, or -1 if none is positive."""
    largest = max(columns)
    return float(columns.index(largest)) if largest > 0.0 else -1.0


def _integers(name: str, given: object, least: int) -> list[int]:
    """Return the list of integers, each at least `least`; None gives the empty list."""
    if given is not None and not isinstance(given, list | tuple):
        raise UsageError(f"{name} must be a list of integers, got {given!r}")
    return [at_least(name, value, least) for value in given or ()]


def _share(name: str, given: object, drawn: float) -> float:
    """Return a number strictly between 0 and 1; for "random" it is `drawn`."""
    share = number(name, drawn if given == "random" else given, "random")
    if not 0.0 < share < 1.0:
        raise UsageError(f"{name} must lie strictly between 0 and 1, got {share:g}")
    return share
