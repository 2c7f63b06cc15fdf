"""Games that promises are tried on: drawn at random, built to be hard, and changed a little by a climb."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.commands.conformance import contexts

Floats = NDArray[np.float64]

KINDS = ("random", "repeated", "nearly", "span")
LEAST_B, MOST_B = 1e-3, 1e2
LEAST_LAMBDA, MOST_LAMBDA = 1e-4, 1e6
ROUNDS = 24
"""Of a hard game, at most, where a line does not say more."""
LONGEST = 0.999
"""Norm of the longest contexts, R = 1: rounding does not bring them beyond it."""


class Game(NamedTuple):
    """Contexts (n, d) of norm at most 1, labels (n, K) in the simplex or targets (n, 1), B and lambda."""

    X: Floats
    Y: Floats
    B: float
    lam: float

    def told(self) -> str:
        """Return the game's numbers in a few words."""
        return f"K = {self.Y.shape[1]}, d = {self.X.shape[1]}, n = {len(self.X)}, B = {self.B:.2g}, λ = {self.lam:.2g}"


def drawn(rng: np.random.Generator, labels: str) -> Game:
    """Return a random game: up to 12 rounds, B from 1e-2 to 1e2, lambda from 1e-4 to 1e4."""
    d, n = int(rng.integers(1, 4)), int(rng.integers(1, 13))
    X = contexts(rng, KINDS[int(rng.integers(4))], n, d, 1.0)
    B, lam = float(10.0 ** rng.uniform(-2.0, 2.0)), float(10.0 ** rng.uniform(-4.0, 4.0))
    if labels == "targets":
        y = X @ rng.standard_normal(d) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], n)
        return Game(X, np.clip(y, -1.0, 1.0)[:, None], B, lam)
    K = 2 if labels.endswith("2") else int(rng.choice([2, 3, 5]))
    if labels.startswith("soft"):
        Y = rng.dirichlet(np.full(K, 10.0 ** rng.uniform(-1.5, 1.0)), n)
        return Game(X, Y / Y.sum(axis=1, keepdims=True), B, lam)
    return Game(X, np.eye(K)[rng.integers(0, K, n)], B, lam)


def hard(rng: np.random.Generator, labels: str, rounds: int = ROUNDS) -> Game:
    """Return a game where the theorems' steps lose little: one context, a small B, lambda about n/(4 B).

    There losses are straight lines over the ball, and of a learner on sums of gradients G with the penalty lambda ||W||^2 the
    regret is lambda ||W||^2 + sum ||g||^2/(4 lambda) against W = -G/(2 lambda): what the proofs add up, when the comparator of
    norm B is that W. So one label comes always, or with an excess over the others.
    """
    n = int(rng.integers(rounds // 4, rounds + 1))
    X = np.tile(LONGEST * np.eye(1), (n, 1))
    B = float(10.0 ** rng.uniform(-2.5, 0.7))
    lam = float(np.clip(n / (4.0 * B) * 10.0 ** rng.uniform(-1.5, 1.0), LEAST_LAMBDA, MOST_LAMBDA))
    K = 2 if labels.endswith("2") or rng.random() < 0.75 else 3
    often = 1.0 if rng.random() < 0.5 else rng.uniform(0.5, 1.0)
    y = np.where(rng.random(n) < often, 0, rng.integers(1, K, n))
    if labels == "targets":
        return Game(X, np.where(y == 0, 1.0, -1.0)[:, None], B, lam)
    return Game(X, np.eye(K)[y], B, lam)


def changed(rng: np.random.Generator, g: Game, labels: str, size: float, rounds: int = ROUNDS) -> Game:
    """Return the game with one label, one context, one round more or less, or B and lambda changed by about 10^size."""
    what = int(rng.integers(8))
    if what < 4:
        up, over = (float(10.0 ** (size * rng.standard_normal())) for _ in range(2))
        up, over = [(up, 1.0), (1.0, over), (up, 1.0 / up), (up, over)][what]
        return g._replace(B=_within(g.B * up, LEAST_B, MOST_B), lam=_within(g.lam * over, LEAST_LAMBDA, MOST_LAMBDA))
    X, Y, t = g.X.copy(), g.Y.copy(), int(rng.integers(len(g.X)))
    if what == 4:
        Y[t] = rng.choice([-1.0, 1.0]) if labels == "targets" else np.eye(Y.shape[1])[rng.integers(Y.shape[1])]
    elif what == 5:
        s = int(rng.integers(len(X)))
        X[t], Y[t] = X[s], Y[s]
    elif what == 6:
        X[t] /= max(float(np.linalg.norm(X[t])) / LONGEST, 1e-300)
    elif len(X) < rounds and rng.random() < 0.7:
        X, Y = np.vstack([X, X[t]]), np.vstack([Y, Y[t]])
    elif len(X) > 1:
        X, Y = np.delete(X, t, axis=0), np.delete(Y, t, axis=0)
    return g._replace(X=X, Y=Y)


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
