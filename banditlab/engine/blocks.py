"""Runs in blocks of rounds: the streams and players that allow it, and loops that pass labels to package code only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium.wrappers
import numpy as np
from numpy.typing import NDArray

from banditlab.engine.feedback import Schedule
from banditlab.envs import StreamEnv
from banditlab.errors import PlayerError
from banditlab.losses import logistic_loss
from banditlab.numerics.pending import empty_ring, with_room
from banditlab.numerics.sparse_rows import SparseRows
from banditlab.players.actor import Trace, play_kernels
from banditlab.players.agent import KernelAgent
from banditlab.players.forecaster import Forecaster
from banditlab.players.label_agent import KernelLabelAgent, LabelAgent
from banditlab.players.player import Player

Floats = NDArray[np.float64]
Contexts = Floats | SparseRows
Loop = Callable[[Contexts, NDArray[Any]], tuple[Trace, float | None]]
"""Runs a player on checked contexts (n, d) with labels (n,) or bits (n, K).

It returns the trace and the log loss in nats, or None if the log loss is to be computed from `p_true`.
"""

BIT, LABEL, REFERENCE = "bit", "label", "reference"
STREAM = ("blocks", "reset", "step", "_begin", "_next")
VERBS = ("act", "learn", "view", "_decide", "_receive", "_play", "_loop", "_late_loop")


def kind_of(player: Player) -> str:
    """Return a player's feedback: BIT, LABEL (a forecaster) or REFERENCE (a label agent).

    It is determined by the type, because a plug-in may set attributes such as `feedback` and `__class__` to anything.
    """
    cls = type(player)
    return LABEL if issubclass(cls, Forecaster) else REFERENCE if issubclass(cls, LabelAgent) else BIT


def steps_equal_blocks(env: Any, rounds: int) -> bool:
    """Return whether `rounds` steps of `env` give the same rounds as the blocks of the unwrapped environment.

    This holds for a `StreamEnv` whose only wrappers are those of `gymnasium.make`, if they do not end the episode
    before `rounds`. Any other wrapper may change contexts or rewards.
    """
    base = env.unwrapped
    while env is not base:
        cls = type(env)
        if cls is gymnasium.wrappers.TimeLimit:
            if env._max_episode_steps < rounds:
                return False
        elif cls not in (gymnasium.wrappers.OrderEnforcing, gymnasium.wrappers.PassiveEnvChecker):
            return False
        env = env.env
    return _has(type(base), STREAM, StreamEnv)


def block_loop(player: Any) -> Loop | None:
    """Return the loop that runs a player's blocks, or None if its rounds are run one by one.

    A block contains its labels before the actions are chosen, so only the package's code receives it. The package's
    players have their own block loops. Kernels of a plug-in's `KernelAgent` or `KernelLabelAgent` are compiled into the
    package's loop, which passes them the bit or the label after the action. The loop calls no method of the plug-in.
    """
    if is_from_package(player):
        play = _forecast if isinstance(player, Forecaster) else _act
        return partial(play, player) if player.plays_blocks else None
    for template in (KernelAgent, KernelLabelAgent):
        if issubclass(type(player), template) and _has(type(player), VERBS, template):
            return partial(_by_kernels, template, player)
    return None


def late_loop(player: Any, schedule: Schedule) -> Loop | None:
    """Return the loop that runs a player's blocks with delayed feedback, or None if its rounds are run one by one.

    Kernels of a `KernelAgent` are compiled into the package's loop. The rounds of every other agent are run one by one.
    """
    cls = type(player)
    compiled = issubclass(cls, KernelAgent) and player.plays_blocks
    if not compiled or not (is_from_package(player) or _has(cls, VERBS, KernelAgent)):
        return None
    return _LateLoop(player, KernelAgent._late_loop(player), schedule)


class _LateLoop:
    """Runs blocks with `play_rounds_late`; pending rounds carry over to the next block."""

    def __init__(self, player: Any, loop: Any, schedule: Schedule) -> None:
        self.player, self.loop, self.schedule = player, loop, schedule
        self.ring: Any = None

    def __call__(self, X: Contexts, y: NDArray[Any]) -> tuple[Trace, None]:
        player, schedule, start = self.player, self.schedule, self.schedule.done
        contexts, trace = _as_kernel_input(player, X), Trace.empty(len(y))
        if self.ring is None:
            self.ring = empty_ring(contexts, player.problem.n_classes, player.payload_size, schedule.window)
        self.ring = with_room(self.ring, contexts)
        late = (self.ring, schedule.rules, schedule.draws(len(y)), start, schedule.too_late)
        play_kernels(player, self.loop, contexts, y, player.rng.random((len(y), 2)), trace, late)
        return trace, None


def is_from_package(player: Player) -> bool:
    """Return whether a player and all players that it wraps have classes of the package, with no method replaced."""
    cls = type(player)
    found = getattr(sys.modules.get(cls.__module__), cls.__qualname__, None)
    if found is not cls or cls.__module__.partition(".")[0] != "banditlab":  # `__module__` can be forged
        return False
    if any(callable(getattr(cls, name, None)) for name in vars(player)):
        return False
    return cls.wraps is None or is_from_package(player.inner)


def _has(cls: type, names: tuple[str, ...], base: type) -> bool:
    """Return whether a class inherits the methods of these names from `base` without a change."""
    return all(getattr(cls, name, None) is getattr(base, name, None) for name in names)


def _act(player: Any, X: Contexts, y: NDArray[Any]) -> tuple[Trace, None]:
    trace = Trace.empty(len(y))
    player._play(_as_kernel_input(player, X), y, player.rng.random((len(y), 2)), trace)
    return trace, None


def _forecast(player: Any, X: Contexts, y: NDArray[np.int64]) -> tuple[Trace, float]:
    logits = np.empty((len(y), player.problem.n_classes))
    player._forecast_block(_as_kernel_input(player, X), y, logits)
    return trace_of_forecast(logits, y)


def _by_kernels(template: Any, player: Any, X: Contexts, y: NDArray[Any]) -> tuple[Trace, None]:
    contexts, trace = _as_kernel_input(player, X), Trace.empty(len(y))
    play_kernels(player, template._loop(player), contexts, y, player.rng.random((len(y), 2)), trace)
    return trace, None


def _as_kernel_input(player: Player, X: Contexts) -> Any:
    """Return checked contexts in the form that a player's kernels require."""
    return X if isinstance(X, np.ndarray) else X.csr if player.sparse else X.made_dense()


def trace_of_forecast(logits: Floats, y: NDArray[np.int64]) -> tuple[Trace, float]:
    """Return the trace, with the most likely class as the action, and the summed log loss in nats, of logits (n, K)."""
    if not np.isfinite(logits).all():
        raise PlayerError("the forecaster's logits are not finite")
    action = np.argmax(logits, axis=1)
    losses = logistic_loss(logits, y)
    return Trace(action, action == y, np.exp(-losses), np.zeros(len(y), np.bool_)), float(losses.sum())
