"""Adaptive environments: a round may depend on the actions of earlier rounds."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from banditlab.envs._base import BanditEnv, Floats


class AdaptiveEnv(BanditEnv):
    """Base of environments whose context and label at t may depend on the actions before t, never on the action at t.

    They are played step by step; each run has its own stream and comparator. Bounds of theorems
    that take a comparator fixed beforehand are not recorded (`Player.bound_adversary`). A subclass
    implements `_begin` (forget the last episode, draw what is planted, all from its `streams`), `_next` (the context, a
    fresh array, and the label of the next round, fixed before the action is known) and `_played` (take note of the action).
    """

    oblivious: ClassVar[bool] = False

    @abstractmethod
    def _played(self, context: Floats, action: int, label: int) -> None:
        """Record the action played on this context."""
