"""River's tree, its variances kept from falling below 0, its leaves open to read. Imports river: load it with a tree."""

from __future__ import annotations

from typing import Any

from river.tree import HoeffdingTreeClassifier
from river.tree.nodes.htc_nodes import LeafMajorityClass
from river.tree.splitter import GaussianSplitter


class OpenHoeffdingTree(HoeffdingTreeClassifier):
    """River's tree, which also tells what its leaves have counted."""

    def weights_one(self, x: dict[int, float]) -> dict[int, float]:
        """Return the weight of each class at the leaf of x, river's own dictionary: to be read at once, not written.

        It is what `predict_proba_one` copies deeply and divides by its sum, which takes longer than to find the leaf.
        """
        node: Any = self._root
        if node is None:
            return {}
        while not isinstance(node, LeafMajorityClass):  # which all of its leaves are; quicker than to ask for a branch
            try:
                node = node.next(x)
            except KeyError:  # a category, or a feature, that is new here
                node = node.most_common_path()[1]
        weights: dict[int, float] = node.stats
        return weights


class SteadyGaussianSplitter(GaussianSplitter):
    """River's Gaussian estimates of a numeric feature, for weights that differ by more than the rounding of a sum.

    After an example of weight 1e-20 at a, one of weight 2 at b moves the mean to a + (b - a), which rounding may carry
    past b: the sum of squares is then some -1e-16, its root complex, and river stops at the next attempt to split. A sum
    below 0 is 0 here; nothing else differs from river.
    """

    def best_evaluated_split_suggestion(
        self, criterion: Any, pre_split_dist: Any, att_idx: Any, binary_only: bool
    ) -> Any:
        """Return river's best split of the feature."""
        for gaussian in self._att_dist_per_class.values():
            if gaussian._var._S < 0.0:
                gaussian._var._S = 0.0
        return super().best_evaluated_split_suggestion(criterion, pre_split_dist, att_idx, binary_only)
