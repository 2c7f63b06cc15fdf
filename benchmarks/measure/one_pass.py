"""An agent of the registry on one block of contexts and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.contexts import as_contexts
from banditlab.players.actor import Trace
from banditlab.problem import Problem
from banditlab.registry import registry


def one_pass(
    id_: str,
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    n_classes: int,
    radius: float,
    seed: int,
    settings: dict[str, Any],
) -> tuple[Any, Trace]:
    """Return an agent that has played X (T, d) with labels y (T,), and the trace it left; its draws are the seed's own.

    Agents with a matrix for each class keep it whole, where their default would be a sketch, too.
    """
    problem, kind = Problem(X.shape[1], n_classes, radius), registry().load("agents", id_)
    whole = {"second_order": "full"} if "second_order" in kind.own_settings() else {}
    agent = kind(problem, np.random.default_rng([seed, 1]), **(whole | settings))
    trace = Trace.empty(len(y))
    agent.play_block(as_contexts(X), y, trace)
    return agent, trace
