"""How a round divides at K = 10, d = 64: deciding alone, and what learning adds.

The player's own kernel of deciding (`act`, or a forecast) goes through the stream's contexts again with the state that
the rounds played have left, in the same loop as they did, but nothing is learnt. The rest of the round is learning.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import bind, njit
from banditlab.players.agent import KernelAgent, Trace
from banditlab.players.forecaster import KernelForecaster
from banditlab.players.rounds import forecast_rounds, play_rounds

Floats = NDArray[np.float64]
ROUNDS, REPEATS = 2000, 5
PLACES = ((10, 64), (10, 65))
"""(K, d) of the cells whose rounds are divided."""


@njit
def learn_nothing(state, x, action, p, payload, correct):  # type: ignore[no-untyped-def]
    """Stand for an agent's learning."""


def forecast_alone(state, x, y, z):  # type: ignore[no-untyped-def]
    """Stand for a forecaster's update."""
    predict_kernel(state, x, z)  # type: ignore[name-defined]  # noqa: F821


def deciding(player: Any) -> Callable[[Floats], Any] | None:
    """Return a function that decides on every row of X (n, d) and learns nothing; None where rounds are not played so."""
    owner, K, uniforms = (
        f"benchmark split {type(player).__qualname__}",
        player.problem.n_classes,
        np.random.default_rng(0),
    )
    if isinstance(player, KernelAgent) and type(player)._play is KernelAgent._play:
        act, _ = player.kernels()
        kernels = {"act_kernel": act, "learn_kernel": learn_nothing, "look_kernel": player.look()}
        play = bind(play_rounds, f"{owner} {player.kernel_owner()}", **kernels)
        p, payload = np.empty(K), np.empty(player.payload_size)

        def decide(X: Floats) -> None:
            n = len(X)
            play(player.state, X, np.zeros(n, np.int64), uniforms.random((n, 2)), p, payload, *Trace.empty(n))

        return decide
    if isinstance(player, KernelForecaster):
        alone = bind(forecast_alone, owner, predict_kernel=player.kernels.predict)
        forecast = bind(forecast_rounds, owner, update_kernel=alone)

        def foresee(X: Floats) -> None:
            forecast(player.state, X, np.zeros(len(X), np.int64), np.empty(K), np.empty((len(X), K)))

        return foresee
    return None


def nanoseconds(player: Any, X: Floats) -> float | None:
    """Return what deciding alone takes a round, the median of REPEATS passes over contexts of X (T, d)."""
    decide = deciding(player)
    if decide is None:
        return None
    X = as_contexts(X[:ROUNDS])
    spent = []
    for _ in range(REPEATS):
        start = time.process_time_ns()
        decide(X)
        spent.append((time.process_time_ns() - start) / len(X))
        if sum(spent) * len(X) > 1e9:
            break
    return statistics.median(spent)
