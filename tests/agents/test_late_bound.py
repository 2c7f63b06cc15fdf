"""The theorem of `decoded-descent` for late bits: exact expectations of short runs, long runs, what the bound needs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from banditlab.bounds.template import logistic_smoothness, template_fixed, template_step
from banditlab.engine import make_agent, make_env, play
from banditlab.errors import UsageError
from banditlab.losses import logistic_loss, softmax
from banditlab.numerics.decoding import DECODINGS, decode_forecast
from banditlab.problem import Problem
from banditlab.results.schema import LATE

LN2 = math.log(2.0)


def expected(X: np.ndarray, y: np.ndarray, delays: np.ndarray, K: int, gamma: float, eta: float) -> dict[str, float]:
    """Return exact expectations over all sequences of right and wrong actions, of the update rule written out.

    "drift" is the sum of <g_t, W_t - V_t>, V_t the iterate that would have had every earlier bit, "pairs" eta times that of
    <grad_t, grad_s> over s pending at t, and "squares" tau eta times that of |grad_t|^2.
    """
    T, d = X.shape
    sums = dict.fromkeys(("mistakes", "loss", "drift", "pairs", "squares"), 0.0)
    for hits in itertools.product((False, True), repeat=T):
        chance, g, grads, found = 1.0, np.zeros((T, K, d)), np.zeros((T, K, d)), dict.fromkeys(sums, 0.0)
        for t in range(T):
            pending = [s for s in range(t) if s + delays[s] >= t]
            W = -eta * sum((g[s] for s in range(t) if s not in pending), np.zeros((K, d)))
            s_t = softmax(W @ X[t])
            decoded = s_t.copy()
            decode_forecast(DECODINGS.index("half-log"), decoded)
            p = (1 - gamma) * decoded + gamma / K
            grads[t] = np.outer(s_t - np.eye(K)[y[t]], X[t]) / LN2
            right = p[y[t]]
            chance *= right if hits[t] else 1 - right
            g[t] = grads[t] / right if hits[t] else 0.0
            found["mistakes"] += 1 - right
            found["loss"] -= math.log2(s_t[y[t]])
            found["drift"] += eta * sum(float((g[t] * g[s]).sum()) for s in pending)
            found["pairs"] += eta * sum(float((grads[t] * grads[s]).sum()) for s in pending)
            found["squares"] += max(delays) * eta * float((grads[t] ** 2).sum())
        sums = {name: sums[name] + chance * found[name] for name in sums}
    return sums


@pytest.mark.parametrize("seed", range(3))
def test_exact_expectations_of_short_runs_obey_every_line_of_the_proof(seed: int) -> None:
    T, d, K, gamma, tau = 8, 2, 3, 0.4, 3
    rng = np.random.default_rng(seed)
    X, y, delays = rng.standard_normal((T, d)), rng.integers(0, K, T), rng.integers(0, tau + 1, T)
    X /= np.linalg.norm(X, axis=1).max()
    delays[0] = tau
    eta = template_step(K, 1.0, gamma, delay=tau)
    found = expected(X, y, delays, K, gamma, eta)
    assert found["drift"] == pytest.approx(found["pairs"], rel=1e-10)
    assert found["pairs"] <= found["squares"] <= tau * eta * logistic_smoothness(1.0) * found["loss"]
    for U in (np.zeros((K, d)), rng.standard_normal((K, d)), 3 * rng.standard_normal((K, d))):
        bound = template_fixed(K, 1.0, float(np.linalg.norm(U)), eta, gamma, T, delay=tau) if U.any() else math.inf
        assert found["mistakes"] <= float(logistic_loss(X @ U.T, y).sum()) / LN2 + bound


@pytest.mark.parametrize(
    "feedback",
    [
        {"delay": 20},
        {"batch": 21},
        {"delay": {"right": 20, "wrong": 0}},
        {"delay": {"right": 0, "wrong": 12}, "batch": 9},
    ],
)
def test_expected_mistakes_are_below_the_bound_where_bits_are_late(feedback: dict[str, Any]) -> None:
    """Against 0, the environment's own matrix and a matrix of the ball's edge."""
    K, d, T, B = 3, 4, 1500, 3.0
    env = make_env("banditlab/Logistic-v0", n_classes=K, n_features=d, norm_bound=B, rounds=T)
    made = {"problem": env.unwrapped.problem, "norm_bound": B, "delay": 20}
    runs = [play(env, make_agent("decoded-descent", seed=s, **made), seed=5, feedback=feedback) for s in range(3)]
    env.reset(seed=5)
    [(X, y)] = env.unwrapped.blocks(T, T)
    mistakes = np.mean([run.expected_mistakes[-1] for run in runs])
    W = B * np.eye(K, d)
    for U in (np.zeros((K, d)), W, -W):
        assert mistakes <= float(logistic_loss(np.asarray(X) @ U.T, y).sum()) / LN2 + runs[0].bound[-1]


def test_the_bound_is_shown_where_every_bit_comes_in_time_and_right_only() -> None:
    env = make_env("banditlab/Logistic-v0", n_classes=3, n_features=3, rounds=60)

    def shown(feedback: Any, delay: int = 5) -> bool:
        agent = make_agent("decoded-descent", env.unwrapped.problem, seed=0, delay=delay)
        played = play(env, agent, seed=0, feedback=feedback)
        assert played.no_bound == ("" if math.isfinite(played.bound[-1]) else LATE)
        return math.isfinite(played.bound[-1])

    assert all(map(shown, (None, {"delay": 5}, {"batch": 6}, {"delay": 2, "batch": 4})))
    beyond: list[Any] = [{"delay": 6}, {"batch": 7}, {"delay": {"right": 5, "wrong": 6}}, {"delay": {"geometric": 1}}]
    lossy: list[Any] = [{"answered": 0.9}, {"flip": 0.1}, {"delay": 5, "timeout": 2}]
    assert not any(map(shown, beyond + lossy))
    assert shown({"delay": 1000}, delay=59)  # pending at the end of 60 rounds: 59 at most


def test_a_bound_without_the_delay_fails_on_blocks_of_equal_rounds() -> None:
    """A class is drawn for each block, whose bits come after it: no agent is better than chance, and models of norm 1.5 are."""
    K, tau, blocks, gamma = 2, 1000, 20, 0.1
    y = np.repeat(np.random.default_rng(0).integers(0, K, blocks), tau + 1)
    rows = np.repeat(np.arange(blocks), tau + 1)
    signs = np.where(np.arange(K)[:, None] == y[:: tau + 1], 1.5, -1.5)
    loss = float(logistic_loss(signs.T[rows], y).sum()) / LN2
    norm, T = float(np.linalg.norm(signs)), len(y)
    chance = T / 2  # expected over the classes of the blocks
    assert loss + template_fixed(K, 1.0, norm, template_step(K, 1.0, gamma), gamma, T) < chance
    step = template_step(K, 1.0, gamma, delay=tau)
    assert loss + template_fixed(K, 1.0, norm, step, gamma, T, delay=tau) > chance


def test_the_step_is_the_theorems_and_the_wide_one_is_refused() -> None:
    problem = Problem(4, 3, 2.0, 1000)
    late, prompt = (make_agent("decoded-descent", problem, seed=0, delay=delay) for delay in (30, 0))
    assert late.gamma == prompt.gamma
    assert late.step == template_step(3, 2.0, late.gamma, delay=30) < prompt.step
    added = late.bound(1000) - prompt.bound(1000)
    assert added == pytest.approx(logistic_smoothness(2.0) * 30 * late.frobenius_bound**2, rel=1e-12)  # 2 c = 1
    assert make_agent("decoded-descent", problem, seed=0, delay=30, step=prompt.step).bound(1000) is None
    with pytest.raises(UsageError, match=r"^step = 'wide' has no proof for delayed feedback: delay must be 0, got 30$"):
        make_agent("decoded-descent", problem, seed=0, delay=30, step="wide")
    with pytest.raises(UsageError, match=r"^delay must be at least 0, got -1$"):
        make_agent("decoded-descent", problem, seed=0, delay=-1)
