"""Online multiclass boosting: weak learners, boosters, and the pieces they share."""

from __future__ import annotations

from banditlab.boosting._weak import ProbableLearner, WeakLearner

__all__ = ["ProbableLearner", "WeakLearner"]
