"""What decoding makes of a log loss: constants, consequences, and that no consequence is above the form with a draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from banditlab.bounds.decoding import (
    RANDOMIZED,
    decoded_exploration,
    decoded_exploration_tuned,
    decoded_exploration_well_specified,
    decoded_forecast,
    decoding_constant,
    mistakes_per_nat,
    mistakes_unit,
)
from banditlab.bounds.exploration import exploration, exploration_theorem_9, theorem_9_gamma
from banditlab.bounds.gaptron import gaptron_bandit, gaptron_step
from banditlab.bounds.obama import decoded_obama, decoded_obama_net, obama_gamma, obama_gaussian_prior, obama_net
from banditlab.bounds.randomized_decoding import decoding_step
from banditlab.bounds.rdue import rdue_decoded, rdue_decoded_gamma, rdue_fixed, rdue_gamma
from banditlab.bounds.template import (
    WIDE,
    template_bandit,
    template_label_step,
    template_step,
)
from banditlab.numerics.decoding import DECODINGS, decode_forecast

LN2 = math.log(2.0)
HALF = 0.5 / LN2


def test_every_rule_has_a_constant_and_no_other_word_does() -> None:
    for K in (2, 3, 10):
        constants = [decoding_constant(rule, K) for rule in DECODINGS]
        assert constants == [1 - math.log(2), 0.5, 0.5, RANDOMIZED, 1 / K, 0.5 / K]
        assert max(constants) == 0.5
        assert mistakes_per_nat("half-log", K) == pytest.approx(0.7213475204444817, rel=1e-15)
    assert math.isnan(decoding_constant("half_log", 3))
    assert math.isnan(mistakes_per_nat("", 3))
    assert math.isnan(decoded_exploration(1000, 4, 0.1, 5.0, "argmax"))


def test_randomised_decodings_constant_is_the_exact_one_rounded_down() -> None:
    worst = minimize_scalar(lambda p: -(1 - 2 * p * p) / -math.log2(p), bounds=(0.3, 0.5), method="bounded")
    assert worst.x == pytest.approx(0.43207, abs=1e-4)
    assert 1 - RANDOMIZED - 1e-6 < -worst.fun < 1 - RANDOMIZED
    assert -worst.fun == pytest.approx(0.5175933, abs=1e-7)


def test_units_say_what_multiplies_the_comparators_loss() -> None:
    assert [mistakes_unit(rule, 4) for rule in DECODINGS] == [
        "nats",
        "0.5 bits",
        "0.5 bits",
        "0.517594 bits",
        "0.75 bits",
        "0.875 bits",
    ]


def test_with_a_draw_it_is_the_reductions_theorem_to_the_last_bit() -> None:
    assert decoded_exploration(1000, 4, 0.1, 5.3, "sample") == exploration(1000, 4, 0.1, 5.3)
    assert decoded_exploration_tuned(1000, 4, 5.3, "sample") == exploration_theorem_9(1000, 4, 5.3)
    assert decoded_obama(500, 3, 4, 2.0, 1.0, 0.2, "sample") == obama_gaussian_prior(500, 3, 4, 2.0, 1.0, 0.2)
    assert decoded_obama_net(500, 8, 4, 0.2, "sample") == obama_net(500, 8, 4, 0.2)
    assert decoded_forecast(5.3, 4, "sample") == 5.3
    assert obama_gamma(500, 3, 4, 2.0, 1.0, "sample") == obama_gamma(500, 3, 4, 2.0, 1.0)


@pytest.mark.parametrize("gamma", [0.01, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("K", [2, 10])
def test_half_log_is_at_least_as_strong_as_a_draw(gamma: float, K: int) -> None:
    """Both terms: the multiple of the comparator's loss, and what is added."""
    assert mistakes_per_nat("half-log", K) < mistakes_per_nat("sample", K) == 1.0
    assert decoded_exploration(1000, K, gamma, 5.0) <= exploration(1000, K, gamma, 5.0)
    assert decoded_obama(1000, 3, K, 2.0, 1.0, gamma) <= obama_gaussian_prior(1000, 3, K, 2.0, 1.0, gamma)
    assert decoded_obama_net(1000, 8, K, gamma) <= obama_net(1000, 8, K, gamma)


def test_the_best_gamma_balances_and_gives_1_699() -> None:
    T, K, regret = 10_000, 5, 3.0
    gamma = theorem_9_gamma(T, K, HALF * regret)
    assert gamma == pytest.approx(math.sqrt(HALF * K * regret / T), rel=1e-15)
    assert decoded_exploration_tuned(T, K, regret) == pytest.approx(1.6986436 * math.sqrt(K * T * regret), rel=1e-7)
    assert decoded_exploration(T, K, gamma, regret) <= decoded_exploration_tuned(T, K, regret)
    exact = gamma * T + HALF * K / gamma * regret
    assert exact == pytest.approx(decoded_exploration_tuned(T, K, regret), rel=1e-12)


def test_the_anytime_form_is_at_most_three_roots() -> None:
    K, c = 4, 2.0  # Reg(n) = c ln(1 + n)
    total, T = 0.0, 20_000
    for t in range(1, T + 1):
        last = theorem_9_gamma(t, K, HALF * c * math.log1p(t))
        total += last
    value = decoded_exploration_well_specified(K, total, last, c * math.log1p(total / K))
    closed = 3 * math.sqrt(HALF * K * T * c * math.log1p(T))
    assert 0.3 * closed < value <= closed


def test_with_twice_b_the_template_is_gaptron_as_printed_and_with_b_the_step_of_randomized_decoding() -> None:
    """b = 2 R^2/ln 2 halves steps; "sample" and the paper's own analysis of randomised decoding share 1 - ln 2."""
    K, R, D, T, gamma = 5, 2.0, 3.0, 10**6, 0.1
    assert template_step(K, R, gamma, "thresholded") / 2 == pytest.approx(gaptron_step(K, R, gamma), rel=1e-12)
    twice = template_bandit(K, R, math.sqrt(2.0) * D, T, "thresholded")
    assert twice == pytest.approx(gaptron_bandit(K, R, D, T), rel=1e-12)
    assert template_label_step(K, R, "sample") == pytest.approx(decoding_step(R), rel=1e-12)


def test_rdue_with_its_own_rule_is_the_papers_and_with_half_log_it_is_less() -> None:
    K, R, B, T = 5, 2.0, 3.0, 100_000
    for gamma in (0.05, 0.5):
        assert rdue_decoded(K, R, B, gamma, T, "randomized") == rdue_fixed(K, R, B, gamma, T)
        assert rdue_decoded(K, R, B, gamma, T) < rdue_fixed(K, R, B, gamma, T)
    gamma = rdue_decoded_gamma(K, R, B, T)
    around = [rdue_decoded(K, R, B, min(1.0, g * gamma), T) for g in (0.5, 0.95, 1.0, 1.2, 2.0)]
    assert min(around) >= 0.99 * around[2]
    assert around[2] < rdue_fixed(K, R, B, rdue_gamma(K, B, T), T)


def gap(u: float, others: list[float], K: int, gamma: float, rule: int, h: float, c: float) -> float:
    """Return P(mistake) + (step/2) E||g||^2 - l - gamma (1 - 1/K), R = 1, at the forecast (u, others, 0 ...), label 0."""
    s = np.array([u, *others] + [0.0] * (K - 1 - len(others)))
    q = s.copy()
    decode_forecast(rule, q)
    p = (1 - gamma) * q[0] + gamma / K
    N = ((s - np.eye(K)[0]) ** 2).sum() / LN2**2
    assert c <= h / LN2
    return float(1 - p + h * gamma / K * N / p + math.log2(u) - gamma * (1 - 1 / K))


@pytest.mark.parametrize("name", WIDE)
def test_the_wide_steps_gap_inequality(name: str) -> None:
    """Beside a single other class, which is the worst case, and beside several, for all gamma: never above 0, and tight."""
    rule, h = DECODINGS.index(name), WIDE[name]
    rng = np.random.default_rng(3)
    worst = -math.inf
    for gamma in (1e-9, 1e-3, 0.01, 0.1, 0.3, 0.6, 1.0):
        for u in np.concatenate(
            [np.linspace(0.001, 0.999, 150), [0.2, 0.25, 1e-9, 1e-100], 0.2 + np.linspace(0, 1e-3, 20), [0.2 - 1e-9]]
        ):
            worst = max(worst, gap(u, [1 - u], 2, gamma, rule, h, 0.5), gap(u, [1 - u], 50, gamma, rule, h, 0.5))
        for _ in range(120):
            m = int(rng.integers(1, 6))
            u = rng.uniform(0.01, 0.99)
            others = (1 - u) * rng.dirichlet(np.full(m, rng.choice([0.3, 3.0, 1e6])))
            K = int(rng.integers(m + 1, 12))
            worst = max(worst, gap(u, list(others), K, gamma, rule, h, 0.5))
    assert -1e-4 < worst <= 1e-12
    at = 0.25 if name == "half-log" else 0.2
    assert gap(at, [1 - at], 10, 1e-9, rule, 1.002 * h, 0.5) > 1e-3  # a thousandth more is too much


def test_the_gradient_is_at_most_b_times_the_loss() -> None:
    """||s - e_y||^2 <= -ln s_y, what b = R^2/ln 2 rests on; with 2 R^2/ln 2 it is never near."""
    u = np.linspace(1e-6, 1.0, 100_000)
    worst = 2 * (1 - u) ** 2 + np.log(u)  # one other class holds the rest: the largest norm
    assert worst.max() <= 0.0
    assert (2 * (1 - u) ** 2 / np.maximum(-np.log(u), 1e-300))[:-1].max() > 0.8
