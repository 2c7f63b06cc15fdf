"""River's numeric splitter, its variances kept from falling below 0. Imports river: load it where a tree is made."""

from __future__ import annotations

from typing import Any

from river.tree.splitter import GaussianSplitter


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
