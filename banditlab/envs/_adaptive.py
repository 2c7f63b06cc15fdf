"""Adaptive environments: a round may depend on the actions of earlier rounds."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from banditlab.envs._base import BanditEnv, Floats


class AdaptiveEnv(BanditEnv):
    """Base of environments whose context and label at t may depend on the actions before t, never on the action at t.

    They are played step by step, and each run has its own stream and comparator. Bounds of theorems that assume a
    comparator fixed in advance are not recorded (`Player.bound_adversary`). A subclass implements `_begin`, `_next` and
    `_played`:

    * `_begin` discards the last episode and draws what is planted, all from its `streams`.
    * `_next` returns the context, a new array, and the label of the next round, fixed before the action is known.
    * `_played` records the action.
    """

    oblivious: ClassVar[bool] = False

    @abstractmethod
    def _played(self, context: Floats, action: int, label: int) -> None:
        """Record the action that was played on this context."""
