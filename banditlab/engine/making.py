"""Create players and environments in Python by their ids, with the settings and errors of a spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from banditlab.engine.describe import build_environment, build_player, describe_environment, describe_player
from banditlab.errors import UsageError
from banditlab.players.player import Player
from banditlab.problem import Problem
from banditlab.registry import registry
from banditlab.validation import at_least

if TYPE_CHECKING:
    from banditlab.envs import BanditEnv
    from banditlab.players.forecaster import Forecaster


def make_agent(id_: str, problem: Problem, *, seed: int | np.random.Generator, **settings: Any) -> Any:
    """Return a new agent or booster by its id.

    Parameters
    ----------
    id_
        The id, as in `banditlab list agents`, for instance "fastcb".
    problem
        d, K, R and, if a "theory" setting needs it, the horizon.
    seed
        Seed of the agent's generator, 0 or above, or a generator.
    settings
        The constructor's settings, by name.

    Raises
    ------
    UsageError
        The id or a setting is unknown (the message suggests the nearest name), or a value is not allowed.
    IncompatibleError
        The agent does not support the problem.
    """
    ids = {kind: {entry.id for entry in registry().entries(kind)} for kind in ("agents", "boosters")}
    kind = "boosters" if id_ in ids["boosters"] - ids["agents"] else "agents"
    return _player(kind, id_, problem, seed, settings)


def make_forecaster(id_: str, problem: Problem, *, seed: int | np.random.Generator = 0, **settings: Any) -> Forecaster:
    """Return a new forecaster by its id.

    Parameters
    ----------
    id_
        The id, as in `banditlab list forecasters`, for instance "folklore".
    problem
        d, K, R and, if a setting needs it, the horizon.
    seed
        Seed of the forecaster's generator, 0 or above, or a generator; most forecasters draw nothing.
    settings
        The constructor's settings, by name.

    Raises
    ------
    UsageError
        The id or a setting is unknown (the message suggests the nearest name), or a value is not allowed.
    IncompatibleError
        The forecaster does not support the problem.
    """
    player = _player("forecasters", id_, problem, seed, settings)
    return player  # type: ignore[return-value]  # the registry's kind guarantees it


def make_env(id_: str, *, rounds: int, **settings: Any) -> BanditEnv:
    """Return an environment by its id, with an episode of `rounds` rounds, for `banditlab.play` or Gymnasium's loop.

    Parameters
    ----------
    id_
        The id, as in `banditlab list envs`, for instance "banditlab/Digits-v0".
    rounds
        T, the number of rounds of an episode, at least 1.
    settings
        The constructor's settings, by name.

    Raises
    ------
    UsageError
        The id or a setting is unknown (the message suggests the nearest name), or a value is not allowed.
    """
    rounds = at_least("rounds", rounds, 1)
    env: BanditEnv = build_environment(describe_environment(id_, settings, f"environment {id_!r}"), rounds)
    return env


def _player(kind: str, id_: str, problem: Problem, seed: int | np.random.Generator, settings: dict[str, Any]) -> Player:
    if not isinstance(problem, Problem):
        raise UsageError(f"{id_}: problem must be a banditlab.Problem, got a {type(problem).__name__}")
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(at_least("seed", seed, 0))
    return build_player(describe_player(kind, id_, settings, f"{kind[:-1]} {id_!r}"), problem, rng)
