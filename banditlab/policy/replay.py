"""An agent that learns from a log by rejection: from the rounds in which it would have chosen the logged action."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditlab.policy.logged import Floats
from banditlab.policy.training import core_for
from banditlab.problem import Problem


class Replay:
    """An agent with its default settings on the contexts of a log, standardised by its first part and at most of norm 1.

    A round whose action a the agent draws, too, is accepted with the probability c/p(a), c the smallest propensity of
    the first part: then accepted actions have the agent's own distribution.

    Parameters
    ----------
    id_
        Of an agent that sees one bit.
    contexts, chosen
        Of the first part: (m, d), and the propensities of the logged actions (m,).
    n_actions
        K.
    """

    def __init__(self, id_: str, contexts: Floats, chosen: Floats, n_actions: int) -> None:
        deviation = contexts.std(axis=0)
        self._mean, self._scale = contexts.mean(axis=0), np.where(deviation > 0.0, deviation, 1.0)
        self._length, self._least = 2.0 * np.sqrt(1.0 + np.count_nonzero(deviation)), chosen.min()
        problem = Problem(contexts.shape[1] + 1, n_actions, 2.0, None)
        self._core = core_for(id_, {}, problem, list(range(n_actions)), 0)
        self.accepted = 0

    def target(self, contexts: Floats, actions: NDArray[np.intp], rewards: Floats, p: Floats) -> Floats:
        """Return the agent's probabilities (m, K) in the next m rounds, which it learns from one by one; p (m, K) or (m,)."""
        z = (contexts - self._mean) / self._scale
        z /= np.maximum(self._length, np.linalg.norm(z, axis=1, keepdims=True))
        target = np.empty((len(z), len(self._core.classes)))
        for i, x in enumerate(np.hstack([z, np.ones((len(z), 1))])):
            mask = None if p.ndim == 1 or p[i].all() else p[i] > 0.0
            record, own = self._core.choose(x, mask), p[i] if p.ndim == 1 else p[i, actions[i]]
            target[i] = record.probabilities
            if record.action == actions[i] and self._core.rng.random() * own < self._least:
                self._core.learn_own(record, bool(rewards[i]))
                self.accepted += 1
        return target
