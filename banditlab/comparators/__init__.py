"""Comparators: the best offline logistic model in a norm ball, with a certificate of its optimality."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.lazy import lazy_names

if TYPE_CHECKING:
    from banditlab.comparators.along import comparators_along as comparators_along
    from banditlab.comparators.anchors import OneAgainstRest as OneAgainstRest
    from banditlab.comparators.anchors import best_action_per_value as best_action_per_value
    from banditlab.comparators.anchors import best_actions as best_actions
    from banditlab.comparators.anchors import best_single_action as best_single_action
    from banditlab.comparators.anchors import none_right as none_right
    from banditlab.comparators.anchors import one_against_rest as one_against_rest
    from banditlab.comparators.ball import Comparator as Comparator
    from banditlab.comparators.ball import ComparatorError as ComparatorError
    from banditlab.comparators.ball import best_in_ball as best_in_ball
    from banditlab.comparators.counts import StreamCounts as StreamCounts
    from banditlab.comparators.counts import collapse as collapse
    from banditlab.comparators.frobenius import FrobeniusComparator as FrobeniusComparator
    from banditlab.comparators.frobenius import best_in_frobenius_ball as best_in_frobenius_ball
    from banditlab.comparators.frobenius import project_frobenius as project_frobenius
    from banditlab.comparators.switching import SwitchingComparator as SwitchingComparator
    from banditlab.comparators.switching import best_with_switches as best_with_switches

_MODULES = {
    "banditlab.comparators.along": ("comparators_along",),
    "banditlab.comparators.anchors": (
        "OneAgainstRest",
        "best_action_per_value",
        "best_actions",
        "best_single_action",
        "none_right",
        "one_against_rest",
    ),
    "banditlab.comparators.ball": ("Comparator", "ComparatorError", "best_in_ball"),
    "banditlab.comparators.counts": ("StreamCounts", "collapse"),
    "banditlab.comparators.frobenius": ("FrobeniusComparator", "best_in_frobenius_ball", "project_frobenius"),
    "banditlab.comparators.switching": ("SwitchingComparator", "best_with_switches"),
}

if not TYPE_CHECKING:  # with it, a type checker would accept any name
    __getattr__, __dir__, __all__ = lazy_names(__name__, _MODULES)
