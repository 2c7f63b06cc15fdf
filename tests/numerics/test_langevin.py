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
    inside,
    move,
    potential,
    worst_effective_sample_size,
)


def plane(seed: int, n: int, d: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return as_contexts(X), np.argmax(X @ (3 * rng.standard_normal((d, K))) + rng.gumbel(size=(n, K)), axis=1)


def test_potential_against_the_losses() -> None:
    X, y = plane(1, 30, 2, 3)
    W, G = np.random.default_rng(0).standard_normal((3, 2)), np.empty((3, 2))
    value = potential(W, X, np.eye(3)[y], np.empty(3), G)
    assert value == pytest.approx(logistic_loss(X @ W.T, y).sum())
    np.testing.assert_allclose(G, sum(logistic_gradient(W, x, k) for x, k in zip(X, y, strict=True)))


def test_effective_sample_size() -> None:
    rng = np.random.default_rng(0)
    assert effective_sample_size(rng.standard_normal((500, 8))) > 3000
    walk = np.zeros((500, 8))
    for t in range(1, 500):  # AR(1) at .9: n (1 - .9)/(1 + .9) = 210
        walk[t] = 0.9 * walk[t - 1] + rng.standard_normal(8)
    assert 120 < effective_sample_size(walk) < 320
    stuck = np.repeat(rng.standard_normal((1, 8)), 500, axis=0)
    assert effective_sample_size(stuck + 1e-6 * rng.standard_normal((500, 8))) < 12


def test_a_step_stays_within_its_limits_in_units_of_the_ball():
    """Where nothing is accepted the step shrinks to 1e-12 B^2 and no further, where all is it grows to 100 B^2."""
    X, C = np.zeros((0, 2)), np.zeros((0, 2))
    for B, unit in ((3.0, 9.0), (math.inf, 1.0)):
        for step, uniform, last in ((1.05e-12, 1.0 - 1e-9, 1e-12), (95.0, 1e-300, 100.0)):
            chains = flat_chains(step * unit)
            noise = np.full((4, 1, 2, 2), 1e3 if uniform > 0.5 else 0.0)
            for _ in range(3):
                advance(chains, X, C, B, noise, np.full((4, 1), uniform), 1.0, 1e6 if uniform > 0.5 else 0.0)
            assert chains.step[0] == pytest.approx(last * unit, rel=1e-12), (B, step)


def flat_chains(step):
    """Return one chain at 0."""
    W, G, H = np.zeros((3, 1, 2, 2))
    return Chains(
        W,
        np.zeros(1),
        G,
        np.zeros((4, 1, 2, 2)),
        np.array([step]),
        np.zeros(2, np.int64),
        W[0] + 0.0,
        H[0],
        np.zeros(2),
    )


def test_a_row_may_lie_on_the_sphere():
    W = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert inside(W, 5.0)
    assert not inside(W, np.nextafter(5.0, 0.0))
    assert not inside(W[::-1].copy(), 4.99)
    assert inside(0.1 * W, 0.51)
    assert not inside(0.1 * W, 0.49)


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
            chains = Chains(
                W[None].copy(), np.array([U(W)]), gradient(W)[None], np.zeros((1, 1, 3, 2)), np.array([e]),
                np.zeros(2, np.int64), np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(3)
            )  # fmt: skip
            assert move(chains, 0, X, C, math.inf, noise, u, ridge) == expected
            np.testing.assert_allclose(chains.W[0], V if expected else W, rtol=1e-12)
            assert chains.U[0] == pytest.approx(U(V) if expected else U(W), rel=1e-12)
            np.testing.assert_allclose(chains.G[0], gradient(V if expected else W), atol=1e-12)
            # Outside of the ball it is not, whatever the coin.
            longest = np.linalg.norm(V, axis=1).max()
            chains.W[0], chains.U[0], chains.G[0] = W, U(W), gradient(W)
            assert not move(chains, 0, X, C, 0.999 * longest, noise, 1e-300, ridge)
            assert move(chains, 0, X, C, 1.001 * longest, noise, 1e-300, ridge)
        seen.add(chance > 0.0)
    assert seen == {True, False}


def test_steps_are_counted_and_the_step_size_follows_the_rate():
    """After round 16 the logarithm of e moves by 16^(-1/4)/2 = 1/4 times (rate - 0.574)."""
    X, C = np.zeros((0, 2)), np.zeros((0, 2))
    for uniforms, accepted in (([1e-300] * 4, 4), ([1.0 - 1e-9, 1e-300, 1.0 - 1e-9, 1.0 - 1e-9], 1)):
        chains = flat_chains(1e-3)
        noise = np.zeros((4, 1, 2, 2))
        noise[:, 0, 0, 0] = 100.0 * (np.array(uniforms) > 0.5)  # a far proposal, refused by the prior
        advance(chains, X, C, math.inf, noise, np.array(uniforms)[:, None], 16.0, 100.0)
        advance(chains, X, C, math.inf, np.zeros((4, 1, 2, 2)), np.full((4, 1), 1e-300), 1e300, 100.0)
        assert chains.tally.tolist() == [8, 4 + accepted]
        assert chains.step[0] == pytest.approx(1e-3 * math.exp(0.25 * (accepted / 4 - 0.574)), rel=1e-12)


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


def test_effective_sample_size_of_what_does_not_move_or_was_drawn_once():
    assert effective_sample_size(np.ones((5, 2))) == 0.0
    assert effective_sample_size(np.ones((1, 1))) == 0.0
    assert effective_sample_size(np.array([[1.0, 2.0, 4.0]])) == 3.0
    assert effective_sample_size(np.array([[1.0], [2.0]])) == 2.0


def test_the_worst_coordinate_counts_of_what_softmax_sees():
    rng = np.random.default_rng(8)
    samples = rng.standard_normal((9, 2, 3, 2))
    samples[:, :, 1, 0] += np.cumsum(rng.standard_normal((9, 2)), axis=0)
    samples += 100.0 * np.cumsum(rng.standard_normal((9, 2, 1, 2)), axis=0)  # in every class: softmax does not see it
    centred = samples - samples.mean(axis=2)[:, :, None]
    each = [slowly(centred[:, :, k, j]) for k in range(3) for j in range(2)]
    assert worst_effective_sample_size(samples) == pytest.approx(min(each), rel=1e-6)


def test_samples_are_the_positions_after_each_step():
    rng = np.random.default_rng(3)
    W = rng.standard_normal((2, 3, 2))
    chains = Chains(
        W.copy(), np.zeros(2), np.zeros((2, 3, 2)), np.full((2, 2, 3, 2), np.nan), np.array([1e-3]),
        np.zeros(2, np.int64), np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(3)
    )  # fmt: skip
    noise = rng.standard_normal((2, 2, 3, 2))
    flat = (np.zeros((0, 2)), np.zeros((0, 3)))  # no losses and no prior: every step is taken
    advance(chains, *flat, math.inf, noise, np.full((2, 2), 1e-300), 1.0, 0.0)
    np.testing.assert_allclose(chains.samples, W + math.sqrt(2e-3) * np.cumsum(noise, axis=0), rtol=1e-12)
    np.testing.assert_array_equal(chains.samples[-1], chains.W)
