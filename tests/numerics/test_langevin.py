"""Langevin chains: the potential they move on, and how many independent draws they are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.losses import logistic_gradient, logistic_loss
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.langevin import (
    Chains,
    advance,
    effective_sample_size,
    mala_step,
    potential,
)


def plane(seed: int, n: int, d: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return as_contexts(X), np.argmax(X @ (3 * rng.standard_normal((d, K))) + rng.gumbel(size=(n, K)), axis=1)


def one_chain(W: np.ndarray, U: float, G: np.ndarray, step: float) -> Chains:
    tally, works = np.zeros(2, np.int64), (np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(3))
    return Chains(
        W[None].copy(), np.array([U]), G[None].copy(), np.zeros((1, 1, 3, 2)), np.array([step]), tally, *works
    )


@pytest.mark.parametrize(("u", "rate"), [(1e-300, 1.0), (1.0, 0.0)])
def test_the_logarithm_of_the_step_follows_the_acceptance_rate(u, rate):
    """By .5 / 16^(1/4) times its distance to .574 after 16 rounds; a large proposal is accepted at u = 1e-300 only."""
    X, y = plane(2, 12, 2, 3)
    chains = one_chain(np.zeros((3, 2)), 0.0, np.zeros((3, 2)), 0.15)
    advance(chains, X, np.eye(3)[y], math.inf, np.full((1, 1, 3, 2), 9.0), np.full((1, 1), u), 16, 1.0)
    assert math.log(chains.step[0] / 0.15) == pytest.approx(0.25 * (rate - 0.574))
    assert chains.tally.tolist() == [1, rate]


def test_potential_against_the_losses() -> None:
    X, y = plane(1, 30, 2, 3)
    W, G = np.random.default_rng(0).standard_normal((3, 2)), np.empty((3, 2))
    value = potential(W, X, np.eye(3)[y], np.empty(3), G)
    assert value == pytest.approx(logistic_loss(X @ W.T, y).sum())
    np.testing.assert_allclose(G, sum(logistic_gradient(W, x, k) for x, k in zip(X, y, strict=True)))


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_a_step_is_accepted_with_the_probability_of_metropolis_and_hastings(ridge):
    X, y = plane(2, 12, 2, 3)
    C, rng = np.eye(3)[y], np.random.default_rng(5)

    def U(W):
        return logistic_loss(X @ W.T, y).sum() + 0.5 * ridge * (W**2).sum()

    def gradient(W):
        return sum(logistic_gradient(W, x, k) for x, k in zip(X, y, strict=True)) + ridge * W

    seen = set()
    for _ in range(12):
        W, noise, e = rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), 0.15
        V = W - e * gradient(W) + math.sqrt(2.0 * e) * noise
        forth, back = ((V - W + e * gradient(W)) ** 2).sum(), ((W - V + e * gradient(V)) ** 2).sum()
        chance = U(W) - U(V) + (forth - back) / (4.0 * e)
        for shift, expected in ((-1e-9, True), (1e-9, False)):
            u = math.exp(chance + shift)
            chains = one_chain(W, U(W), gradient(W), e)
            assert mala_step(chains, 0, X, C, math.inf, noise, u, ridge) == expected
            np.testing.assert_allclose(chains.W[0], V if expected else W, rtol=1e-12)
            assert chains.U[0] == pytest.approx(U(V) if expected else U(W), rel=1e-12)
            np.testing.assert_allclose(chains.G[0], gradient(V if expected else W), atol=1e-12)
            # Outside of the ball it is not, whatever the coin.
            longest = np.linalg.norm(V, axis=1).max()
            chains.W[0], chains.U[0], chains.G[0] = W, U(W), gradient(W)
            assert not mala_step(chains, 0, X, C, 0.999 * longest, noise, 1e-300, ridge)
            assert mala_step(chains, 0, X, C, 1.001 * longest, noise, 1e-300, ridge)
        seen.add(chance > 0.0)
    assert seen == {True, False}


def slowly(draws):
    """Return the effective sample size as the book has it, number by number."""
    S, c = len(draws), len(draws[0])
    means = [sum(draws[s][k] for s in range(S)) / S for k in range(c)]
    spreads = [sum((draws[s][k] - means[k]) ** 2 for s in range(S)) / (S - 1) for k in range(c)]
    within = sum(spreads) / c
    between = S * sum((m - sum(means) / c) ** 2 for m in means) / (c - 1) if c > 1 else 0.0
    total = (S - 1) / S * within + between / S

    def rho(lag):
        products = [(draws[s][k] - means[k]) * (draws[s + lag][k] - means[k]) for s in range(S - lag) for k in range(c)]
        return 1.0 - (within - sum(products) / len(products)) / total

    tau, lag = 1.0, 1
    while lag + 1 <= S - 1 and rho(lag) + rho(lag + 1) >= 0.0:
        tau += 2.0 * (rho(lag) + rho(lag + 1))
        lag += 2
    return min(S * c, S * c / tau)


@pytest.mark.parametrize(("S", "c"), [(2, 2), (3, 1), (4, 1), (4, 3), (5, 1), (5, 2), (6, 2), (7, 3), (12, 2)])
def test_effective_sample_size_by_the_book(S, c):
    rng = np.random.default_rng(S * c)
    for scale in (0.01, 1.0, 50.0):
        walk = np.cumsum(rng.standard_normal((S, c)), axis=0) + rng.standard_normal(c)
        for draws in (walk, rng.standard_normal((S, c)), np.sort(rng.standard_normal((S, c)), axis=0)):
            assert effective_sample_size(scale * draws) == pytest.approx(slowly(scale * draws), rel=1e-10)
