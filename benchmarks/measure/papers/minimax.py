"""Forecasters of two classes on orthogonal contexts: their worst labels, and labels hard for all in the mean."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from banditlab.bounds.minimax import minimax_regret_on_ball
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.ogd import OGD
from banditlab.losses import log_sum_exp
from banditlab.problem import Problem
from benchmarks.measure.papers.boosting import Line, Setting

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PLAYERS: dict[str, Callable[[Problem, float], Any]] = {
    "ogd": lambda problem, B: OGD(problem, None, norm_bound=B),
    "folklore": lambda problem, B: FOLKLORE(problem, None, norm_bound=B),
    "aioli": lambda problem, B: AIOLI(problem, None, norm_bound=B),
    "gaf": lambda problem, B: GAF(problem, None, norm_bound=B, regularization=2.0 / B, nodes="cubature"),
}
"""By name, made for a problem and a norm bound; GAF has FOLKLORE's regularization."""


def contexts(rounds: int, n_features: int) -> Floats:
    """Return unit vectors (T, d), the axes in turn."""
    return np.eye(n_features)[np.arange(rounds) % n_features]


def steepest(norm_bound: float, n_features: int) -> float:
    """Return the largest log-odds of the box of all W whose entries are at most B/sqrt(d)."""
    return 2.0 * norm_bound / math.sqrt(n_features)


def log_likelihoods(n: int, limit: float) -> Floats:
    """Return the log-likelihoods (n + 1,) of 0 ... n labels of class 1 in n rounds, by the best log-odds of at most `limit`."""
    k = np.arange(n + 1.0)
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(k) - np.log(n - k), -limit, limit)
    return np.asarray(-k * np.logaddexp(0.0, -odds) - (n - k) * np.logaddexp(0.0, odds))


def least_loss(X: Floats, y: Ints, limit: float) -> float:
    """Return the loss of the best model whose log-odds at each axis are at most `limit`."""
    total = 0.0
    for column in X.T:
        here = y[column > 0.0]
        total -= log_likelihoods(len(here), limit)[here.sum()] if len(here) else 0.0
    return total


def hard_labels(rng: np.random.Generator, X: Floats, limit: float) -> Ints:
    """Return labels (T,) drawn from the normalised maximum likelihood: at each axis how many are 1, then which.

    Under this law a forecaster's mean regret is the logarithm of the Shtarkov sum plus a relative entropy.
    """
    y = np.zeros(len(X), dtype=np.int64)
    for column in X.T:
        rounds = np.flatnonzero(column)
        n = len(rounds)
        if n:
            k = np.arange(n + 1.0)
            weights = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0) + log_likelihoods(n, limit)
            weights = np.exp(weights - weights.max())
            ones = int(rng.choice(n + 1, p=weights / weights.sum()))
            y[rng.permutation(rounds)[:ones]] = 1
    return y


def loss(name: str, X: Floats, y: Ints, norm_bound: float) -> float:
    """Return the loss of a forecaster over the rounds."""
    player = PLAYERS[name](Problem(X.shape[1], 2, 1.0, len(X)), norm_bound)
    logits = np.empty((len(X), 2))
    player.forecast_block(X, y, logits)
    return float(log_sum_exp(logits).sum() - logits[np.arange(len(X)), y].sum())


def worst_regret(name: str, X: Floats, norm_bound: float) -> float:
    """Return the largest regret over all labels of the rounds, against the box in the ball."""
    limit = steepest(norm_bound, X.shape[1])
    every = (np.array(labels) for labels in itertools.product((0, 1), repeat=len(X)))
    return max(loss(name, X, y, norm_bound) - least_loss(X, y, limit) for y in every)


# ------------------------------------------------------------------------------------------------------- the search


def draw_game(rng: np.random.Generator) -> Setting:
    """Return 3 to 6 rounds, one or two axes and a norm bound from 0.01 to 100."""
    T, B = int(rng.integers(3, 7)), float(10.0 ** rng.uniform(-2.0, 2.0))
    return Setting(np.zeros((1, 1)), {"T": T, "d": int(rng.integers(1, 3)), "B": B})


def change_game(rng: np.random.Generator, s: Setting) -> Setting:
    """Change the rounds by at most one and the norm bound a little."""
    T = int(np.clip(s.numbers["T"] + rng.integers(-1, 2), 3, 6))
    B = float(np.clip(s.numbers["B"] * 10.0 ** rng.normal(0.0, 0.2), 1e-2, 1e2))
    return Setting(s.table, s.numbers | {"T": T, "B": B})


def game_ratio(name: str, s: Setting) -> float:
    """Return the lower bound over a forecaster's worst regret."""
    T, d, B = int(s.numbers["T"]), int(s.numbers["d"]), s.numbers["B"]
    return minimax_regret_on_ball(T, d, B, 1.0) / worst_regret(name, contexts(T, d), B)


def line(name: str) -> Line:
    """Return the line of a forecaster."""
    return Line(name, "Shtarkov 1987", draw_game, change_game, lambda s: game_ratio(name, s))
