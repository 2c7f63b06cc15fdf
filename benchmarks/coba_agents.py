"""coba's own LinUCB, if coba is importable: for the benchmark only, where nothing of it is saved or resumed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.agents import Trace
from banditlab.problem import Problem

Floats = NDArray[np.float64]


class CobaLinUCB:
    """coba.learners.LinUCBLearner on x crossed with the one-hot action, one joint ridge regression of K d weights."""

    compiled = True  # it has play_block
    feedback = "bit"

    def __init__(self, problem: Problem, rng: np.random.Generator, *, alpha: float = 1.0) -> None:
        from coba.learners import LinUCBLearner  # type: ignore[import-not-found]

        self.problem = problem
        self._learner: Any = LinUCBLearner(alpha=alpha, features=["ax"], seed=int(rng.integers(2**31)))
        self._actions = [tuple(row) for row in np.eye(problem.n_classes).tolist()]

    def play_block(self, X: Floats, y: NDArray[np.int64], trace: Trace) -> None:
        """Play X (n, d) with labels y (n,), one call of predict and one of learn a round; only the bit is handed on."""
        for t, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
            context = x.tolist()
            action, probability = self._learner.predict(context, self._actions)[:2]
            played = self._actions.index(tuple(action))
            hit = played == label
            self._learner.learn(context, action, float(hit), probability)
            trace.action[t], trace.correct[t], trace.p_true[t] = played, hit, probability if hit else 0.0
            trace.explored[t] = False
