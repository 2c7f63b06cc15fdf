"""Policies that decide the rounds of a log: a given policy, and an agent that is trained by rejection sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.offpolicy.log import Floats, Rows
from banditlab.policy.choice import Name
from banditlab.policy.container import Parts
from banditlab.policy.training import core_for
from banditlab.problem import Problem


class Decider:
    """A policy that decides and does not learn.

    Parameters
    ----------
    policy
        The policy.
    names
        The names of the log's actions, which include the policy's classes.
    """

    def __init__(self, policy: Parts, names: Sequence[Name]) -> None:
        self.policy, self.core = policy, policy.core
        texts = [str(name) for name in names]
        self._places = [texts.index(str(name)) for name in policy.core.classes]

    def contexts(self, rows: Any) -> Floats:
        """Return the policy's contexts (m, d) for a table's rows; contexts that are already encoded are returned unchanged."""
        return rows if isinstance(rows, np.ndarray) else self.policy.encoder.transform(rows)

    def target(self, rows: Any, log: Rows, cut: int) -> Floats:
        """Return `log.target` (m, K), with the policy's probabilities of the actions in the rows from `cut` on.

        The policy may not choose actions for which `log.target` is 0.
        """
        target, retired = log.target.copy(), self.core.mask(None)
        able = (target > 0.0)[:, self._places] & (True if retired is None else retired)
        target[cut:] = 0.0
        for i, x in enumerate(self.contexts(rows[cut:]), cut):
            mask = able[i] if able[i].any() and not able[i].all() else None
            target[i, self._places] = self.core.choose(x, mask).probabilities
        return target


class Replay:
    """Run an agent with its default settings on the standardised contexts of a log.

    The contexts are standardised by the means and standard deviations of the log's first part. If the agent draws the
    logged action a, the round is accepted with probability c/p(a), where c is the smallest propensity of the first
    part. Accepted actions then have the agent's own distribution.

    Parameters
    ----------
    id_
        Id of an agent that learns from one bit.
    contexts, chosen
        The contexts of the first part, (m, d), and the propensities of its logged actions, (m,).
    n_actions
        K, the number of actions.
    """

    def __init__(self, id_: str, contexts: Floats, chosen: Floats, n_actions: int) -> None:
        deviation = contexts.std(axis=0)
        self._mean, self._scale = contexts.mean(axis=0), np.where(deviation > 0.0, deviation, 1.0)
        self._length, self._least = 2.0 * np.sqrt(1.0 + np.count_nonzero(deviation)), chosen.min()
        problem = Problem(contexts.shape[1] + 1, n_actions, 2.0, None)
        self._core = core_for(id_, {}, problem, list(range(n_actions)), 0)
        self.accepted = 0

    def target(self, contexts: Floats, actions: NDArray[np.intp], rewards: Floats, p: Floats) -> Floats:
        """Return the agent's probabilities (m, K) in the next m rounds; each accepted round updates the agent.

        p contains the propensities of all actions (m, K), or of the logged actions (m,).
        """
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
