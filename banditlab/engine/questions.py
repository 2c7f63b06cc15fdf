"""What a worker process can be asked before a sweep begins: whatever needs a lab's or a plug-in's code to be run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from banditlab.engine.plan import Run, look_at, why_not
from banditlab.engine.runner import play

ROUNDS = 64
"""Rounds that are played to see how long a run takes."""


def _environment(argument: tuple[dict[str, Any], int]) -> dict[str, Any]:
    return look_at(*argument)


def _why_not(run: Run) -> str:
    return why_not(run, run.build_environment())


def _seconds(run: Run) -> float:
    """Return about how long the run will take, its kernels compiled before."""
    env, rounds = run.build_environment(), min(run.rounds, ROUNDS)
    play(env, run.build_player(env), seed=run.environment_seed(), rounds=min(rounds, 2))
    played = play(env, run.build_player(env), seed=run.environment_seed(), rounds=rounds)
    return played.seconds[-1] / rounds * run.rounds


KNOWN: dict[str, Callable[[Any], Any]] = {
    "environment": _environment,
    "why_not": _why_not,
    "seconds": _seconds,
}
