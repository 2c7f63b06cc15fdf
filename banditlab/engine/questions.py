"""Functions that run code of a lab (a user's project folder) or a plug-in in a worker process before a sweep begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from banditlab.engine.plan import Run, inspect_environment, why_not
from banditlab.engine.runner import play

ROUNDS = 64
"""The number of rounds that are run to measure a run's time."""


def _why_not(run: Run) -> str:
    return why_not(run, run.build_environment())


def _seconds(run: Run) -> float:
    """Estimate the seconds of a run without compiling."""
    env, rounds = run.build_environment(), min(run.rounds, ROUNDS)
    play(env, run.build_player(env), seed=run.environment_seed(), rounds=min(rounds, 2), feedback=run.feedback)
    played = play(env, run.build_player(env), seed=run.environment_seed(), rounds=rounds, feedback=run.feedback)
    return played.seconds[-1] / rounds * run.rounds


KNOWN: dict[str, Callable[[Any], Any]] = {
    "environment": lambda argument: inspect_environment(*argument),
    "why_not": _why_not,
    "seconds": _seconds,
}
