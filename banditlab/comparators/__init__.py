"""Comparators: the best offline logistic model in a norm ball, with a certificate of its optimality."""

from banditlab.comparators.along import comparators_along
from banditlab.comparators.ball import Comparator, ComparatorError, best_in_ball
from banditlab.comparators.counts import StreamCounts, collapse

__all__ = ["Comparator", "ComparatorError", "StreamCounts", "best_in_ball", "collapse", "comparators_along"]
