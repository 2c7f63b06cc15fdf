"""Which Gymnasium wrappers change nothing: only through these may a stream be read in blocks instead of stepped through."""

from __future__ import annotations

from typing import Any

NEUTRAL = {"OrderEnforcing", "PassiveEnvChecker"}
"""Of `gymnasium.wrappers`: they check how an environment is used, and hand on what it shows."""
ENDING = "TimeLimit"
"""It cuts an episode short, and is neutral where its limit is not below the rounds."""


def is_bare(env: Any, rounds: int) -> bool:
    """Return whether stepping through `env` for `rounds` rounds shows just what the environment inside shows.

    So it is of an environment without wrappers, or within those that are known to be neutral. Any other may show other
    contexts or bits: a subclass of a neutral one as well, and one that only looks on (it would have nothing to look at).
    """
    base = env.unwrapped
    while env is not base:
        if not _is_neutral(env, rounds):
            return False
        env = env.env
    return True


def _is_neutral(env: Any, rounds: int) -> bool:
    cls = type(env)
    if not (cls.__module__ == "gymnasium.wrappers" or cls.__module__.startswith("gymnasium.wrappers.")):
        return False
    if cls.__qualname__ == ENDING:
        return bool(env._max_episode_steps >= rounds)
    return cls.__qualname__ in NEUTRAL
