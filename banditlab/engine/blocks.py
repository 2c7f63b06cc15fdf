"""What is played in blocks: streams read as they are stepped through, by loops in which labels meet the package's code only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium.wrappers
import numpy as np
from numpy.typing import NDArray

from banditlab.envs import StreamEnv
from banditlab.errors import PlayerError
from banditlab.losses import logistic_loss
from banditlab.numerics.sparse_rows import SparseRows
from banditlab.players.actor import Trace, play_kernels
from banditlab.players.agent import KernelAgent
from banditlab.players.forecaster import Forecaster
from banditlab.players.label_agent import KernelLabelAgent, LabelAgent
from banditlab.players.player import Player

Floats = NDArray[np.float64]
Contexts = Floats | SparseRows
Loop = Callable[[Contexts, NDArray[np.int64]], tuple[Trace, float | None]]
"""Plays checked contexts (n, d) with labels (n,); returns the trace, and the log loss in nats, None for that of p_true."""

BIT, LABEL, REFERENCE = "bit", "label", "reference"
STREAM = ("blocks", "reset", "step", "_begin", "_next")
VERBS = ("act", "learn", "view", "_decide", "_receive", "_play", "_loop")


def kind_of(player: Player) -> str:
    """Return what a player learns from: the bit, or the label, as a forecaster or as a reference beside the bit's agents.

    Its type decides: attributes, `feedback` and `__class__` among them, say what a plug-in wants them to.
    """
    cls = type(player)
    return LABEL if issubclass(cls, Forecaster) else REFERENCE if issubclass(cls, LabelAgent) else BIT


def is_bare(env: Any, rounds: int) -> bool:
    """Return whether `rounds` steps of `env` show what the blocks of the environment inside hold.

    True where the stream is read by `StreamEnv`, inside no wrapper but those of `gymnasium.make`: those check how an
    environment is used, or end its episode, here not before `rounds`. Any other may show other contexts or bits.
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
    """Return what plays a player's blocks, None where it is played step by step.

    A block's labels are at hand before its actions are, so only the package's code receives them: the package's players
    play their own blocks, and kernels of a plug-in's `KernelAgent` or `KernelLabelAgent` are compiled into the package's
    loop, which passes the bit, or the label once the action is taken. No method of the plug-in's is called meanwhile.
    """
    if is_own(player):
        play = _forecast if isinstance(player, Forecaster) else _act
        return partial(play, player) if player.plays_blocks else None
    for template in (KernelAgent, KernelLabelAgent):
        if issubclass(type(player), template) and _has(type(player), VERBS, template):
            return partial(_by_kernels, template, player)
    return None


def is_own(player: Player) -> bool:
    """Return whether the classes of a player and of those it wraps are the package's, and their methods are the classes'."""
    cls = type(player)
    found = getattr(sys.modules.get(cls.__module__), cls.__qualname__, None)
    if found is not cls or cls.__module__.partition(".")[0] != "banditlab":  # a class may name any module as its own
        return False
    if any(callable(getattr(cls, name, None)) for name in vars(player)):
        return False
    return cls.wraps is None or is_own(player.inner)


def _has(cls: type, names: tuple[str, ...], base: type) -> bool:
    """Return whether a class has the functions of `base` under these names."""
    return all(getattr(cls, name, None) is getattr(base, name) for name in names)


def _act(player: Any, X: Contexts, y: NDArray[np.int64]) -> tuple[Trace, None]:
    trace = Trace.empty(len(y))
    player._play(_taken(player, X), y, player.rng.random((len(y), 2)), trace)
    return trace, None


def _forecast(player: Any, X: Contexts, y: NDArray[np.int64]) -> tuple[Trace, float]:
    logits = np.empty((len(y), player.problem.n_classes))
    player._forecast_block(_taken(player, X), y, logits)
    return trace_of_forecast(logits, y)


def _by_kernels(template: Any, player: Any, X: Contexts, y: NDArray[np.int64]) -> tuple[Trace, None]:
    contexts, trace = _taken(player, X), Trace.empty(len(y))
    play_kernels(player, template._loop(player), contexts, y, player.rng.random((len(y), 2)), trace)
    return trace, None


def _taken(player: Player, X: Contexts) -> Any:
    """Return checked contexts in the form that a player's kernels take."""
    return X if isinstance(X, np.ndarray) else X.csr if player.sparse else X.made_dense()


def trace_of_forecast(logits: Floats, y: NDArray[np.int64]) -> tuple[Trace, float]:
    """Return the trace of forecasts (n, K) and their log loss in nats; a forecaster's action is its likeliest class."""
    if not np.isfinite(logits).all():
        raise PlayerError("the forecaster's logits are not finite")
    action = np.argmax(logits, axis=1)
    losses = logistic_loss(logits, y)
    return Trace(action, action == y, np.exp(-losses), np.zeros(len(y), np.bool_)), float(losses.sum())
