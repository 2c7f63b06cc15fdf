"""Adaptive environments: a round may depend on the actions of earlier rounds."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from banditlab.envs._base import BanditEnv, Floats


class AdaptiveEnv(BanditEnv):
    """Base of environments whose context and label at t may depend on the actions before t, never on the action at t.

    Runs call `step` each round, and each run has its own stream and comparator. Bounds that assume a comparator fixed
    in advance are not recorded (`Player.bound_adversary`). A subclass implements `_begin`, `_next` and `_played`:

    * `_begin` discards the last episode and draws the parameters of the new one from `streams`.
    * `_next` returns the next round's context, as a new array, and its label, which does not depend on that round's
      action.
    * `_played` records the action.
    """

    oblivious: ClassVar[bool] = False

    @abstractmethod
    def _played(self, context: Floats, action: int, label: int) -> None:
        """Record the action chosen at this context."""
