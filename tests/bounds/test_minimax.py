"""Minimax lower bounds: against sums over all label sequences, and below the worst regret of every forecaster."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from banditlab.bounds.folklore import folklore
from banditlab.bounds.minimax import NORMS, minimax_regret, minimax_regret_on_ball, shamir_theorem_3, shamir_theorem_7
from banditlab.comparators import best_in_ball
from banditlab.forecasters.ftrl import FTRL
from banditlab.forecasters.ons import ONS
from banditlab.problem import Problem
from benchmarks.measure.papers import minimax
from benchmarks.measure.papers.minimax import PLAYERS, contexts, hard_labels, least_loss, steepest, worst_regret

Labels = tuple[int, ...]


def free_loss(labels: Labels, n_features: int, n_classes: int) -> float:
    """Return the loss of the best W without a norm bound, axes in turn: the entropies of the label counts."""
    total = 0.0
    for j in range(n_features):
        counts = np.bincount(labels[j::n_features], minlength=n_classes).astype(float)
        total -= sum(c * math.log(c / counts.sum()) for c in counts if c > 0.0)
    return total


def log_sum(losses: list[float]) -> float:
    return float(np.logaddexp.reduce(-np.array(losses)))


def sequences(rounds: int, n_classes: int) -> list[Labels]:
    return list(itertools.product(range(n_classes), repeat=rounds))


# ---------------------------------------------------------------------------------------------- the sums are right


@pytest.mark.parametrize(
    ("n", "K", "log_value"),
    [
        (10, 2, math.log(4.66021568)),
        (7, 3, math.log(11.01813871)),
        (6, 4, math.log(21.09876543)),
        (100, 3, 4.729244),
        (1000, 10, 25.667004),
    ],
)
def test_values(n: int, K: int, log_value: float) -> None:
    assert minimax_regret(n, 1, K) == pytest.approx(log_value, rel=1e-7)


@pytest.mark.parametrize(
    ("T", "d", "K"), [(0, 1, 2), (1, 1, 3), (8, 1, 2), (7, 2, 2), (3, 5, 2), (5, 1, 3), (6, 2, 3), (4, 1, 5)]
)
def test_without_a_norm_bound_it_is_the_sum_over_all_label_sequences(T: int, d: int, K: int) -> None:
    expected = log_sum([free_loss(labels, d, K) for labels in sequences(T, K)])
    assert minimax_regret(T, d, K) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("B", [0.05, 0.8, 3.0])
def test_on_the_ball_it_is_the_sum_at_one_feature_and_below_it_at_two(B: float) -> None:
    for d, R in ((1, 1.0), (1, 0.6), (2, 1.0)):
        X = R * contexts(6, d)
        losses = [best_in_ball(X, np.eye(2)[list(labels)], B).loss for labels in sequences(6, 2)]
        bound = minimax_regret_on_ball(6, d, B, R)
        if d == 1:
            assert bound == pytest.approx(log_sum(losses), abs=1e-5)
        else:
            assert bound < log_sum(losses)


def test_a_large_ball_leaves_the_labels_free_and_more_rounds_or_classes_cost_more() -> None:
    for T, d in itertools.product((1, 2, 7, 40, 300), (1, 3)):
        free, on_balls = minimax_regret(T, d, 2), [minimax_regret_on_ball(T, d, B, 1.0) for B in (0.1, 1.0, 5.0, 900.0)]
        assert on_balls == sorted(on_balls)
        assert on_balls[-1] == pytest.approx(free, rel=1e-10)
        assert free < minimax_regret(T + 1, d, 2) < minimax_regret(T + 1, d, 3)
        assert on_balls[1] < minimax_regret_on_ball(T + 1, d, 1.0, 1.0)


@pytest.mark.parametrize("K", [2, 3, 6])
def test_the_asymptotic_form_is_off_by_the_inverse_root_of_the_rounds(K: int) -> None:
    constant = math.log(math.pi ** (K / 2) / math.gamma(K / 2))
    off = [
        minimax_regret(n, 1, K) - (K - 1) / 2 * math.log(n / (2 * math.pi)) - constant for n in (10**4, 10**6, 10**8)
    ]
    assert 0.0 < off[2] < off[1] < off[0] < 0.2
    assert off[0] / off[1] == pytest.approx(10.0, rel=0.05)
    assert off[1] / off[2] == pytest.approx(10.0, rel=0.05)


# ------------------------------------------------------------------------------------------- no forecaster is below


def normalised_maximum_likelihood(T: int, loss: Callable[[Labels], float], K: int) -> list[float]:
    """Return, for each label sequence, the regret of the forecaster p(y | past) = S(past, y)/S(past).

    S(past) is the sum over all ways to go on of the best model's likelihood.
    """
    every = sequences(T, K)
    likelihood = {labels: math.exp(-loss(labels)) for labels in every}
    sums = [{} for _ in range(T + 1)]
    for labels, t in itertools.product(every, range(T + 1)):
        sums[t][labels[:t]] = sums[t].get(labels[:t], 0.0) + likelihood[labels]
    regrets = []
    for labels in every:
        own = -sum(math.log(sums[t + 1][labels[: t + 1]] / sums[t][labels[:t]]) for t in range(T))
        regrets.append(own - loss(labels))
    return regrets


@pytest.mark.parametrize(("T", "d", "K"), [(8, 1, 2), (8, 2, 2), (5, 1, 3), (5, 2, 3)])
def test_normalised_maximum_likelihood_has_the_least_regret_on_every_sequence(T: int, d: int, K: int) -> None:
    regrets = normalised_maximum_likelihood(T, lambda labels: free_loss(labels, d, K), K)
    np.testing.assert_allclose(regrets, minimax_regret(T, d, K), atol=1e-12)


def test_normalised_maximum_likelihood_on_the_ball() -> None:
    X = contexts(8, 1)
    regrets = normalised_maximum_likelihood(8, lambda labels: least_loss(X, np.array(labels), steepest(0.7, 1)), 2)
    np.testing.assert_allclose(regrets, minimax_regret_on_ball(8, 1, 0.7, 1.0), atol=1e-12)


PROPER = {
    "ons": lambda problem, B: ONS(problem, None, norm_bound=B),
    "ftrl": lambda problem, B: FTRL(problem, None, norm_bound=B),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name not in ("ogd", "aioli") else ())
        for name in [*PLAYERS, *PROPER]
    ],
)
def test_no_forecaster_has_a_smaller_worst_regret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimax, "PLAYERS", PLAYERS | PROPER)
    for T, d, B in ((8, 1, 1.0), (8, 2, 2.0), (5, 2, 0.1), (6, 1, 9.0)):
        bound = minimax_regret_on_ball(T, d, B, 1.0)
        assert worst_regret(name, contexts(T, d), B) > bound * (1.0 + 1e-6)


@pytest.mark.parametrize("name", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("folklore", "gaf")), "ogd"])
def test_no_forecaster_of_three_classes_has_a_smaller_worst_regret(name: str) -> None:
    X = contexts(6, 2)
    worst = 0.0
    for labels in sequences(6, 3):
        player = PLAYERS[name](Problem(2, 3, 1.0, 6), 1.5)
        logits = np.empty((6, 3))
        player.forecast_block(X, np.array(labels), logits)
        loss = np.logaddexp.reduce(logits, axis=1).sum() - logits[np.arange(6), labels].sum()
        worst = max(worst, loss - free_loss(labels, 2, 3))
    assert worst > minimax_regret(6, 2, 3)


def law_of(X: NDArray[np.float64], limit: float) -> dict[Labels, float]:
    """Return the probability of every label sequence under normalised maximum likelihood."""
    losses = {labels: least_loss(X, np.array(labels), limit) for labels in sequences(len(X), 2)}
    total = sum(math.exp(-loss) for loss in losses.values())
    return {labels: math.exp(-loss) / total for labels, loss in losses.items()}


@pytest.mark.slow
def test_hard_labels_have_that_law_and_every_mean_regret_is_at_least_the_bound() -> None:
    X, limit, rng = contexts(5, 2), steepest(1.0, 2), np.random.default_rng(3)
    law = law_of(X, limit)
    drawn = [tuple(hard_labels(rng, X, limit).tolist()) for _ in range(3000)]
    for labels, p in law.items():
        assert abs(drawn.count(labels) / 3000 - p) < 5.0 * math.sqrt(p / 3000), labels
    for name in PLAYERS:
        regrets = [minimax.loss(name, X, np.array(y), 1.0) - least_loss(X, np.array(y), limit) for y in law]
        assert np.dot(list(law.values()), regrets) > minimax_regret_on_ball(5, 2, 1.0, 1.0)


def test_upper_bounds_are_above() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        T, d, B = int(rng.integers(1, 400)), int(rng.integers(1, 9)), float(10.0 ** rng.uniform(-2, 2))
        assert minimax_regret_on_ball(T, d, B, 1.0) < folklore(T, d, 2, B, 1.0)


# ------------------------------------------------------------------------------------------------ asymptotic forms


def printed(s: float, d: float, norm: str) -> float:
    """Return Theorem 3 as the paper has it, s for gamma T^(1 - epsilon) everywhere."""
    if norm == "sup":
        return d / 2 * math.log(4 * s / d) if d < 4 * s / math.e else 2 / math.e * s
    if norm == "l2":
        least = math.sqrt(2 * math.pi / math.e * s)
        return d / 2 * math.log(2 * math.pi * math.e * s / d**2) if d < least else least
    least = (4 * s / math.e) ** (1 / 3)
    return d / 2 * math.log(4 * math.e**2 * s / d**3) if d < least else 1.5 * least


@pytest.mark.parametrize("norm", NORMS)
def test_theorem_3_is_the_printed_one(norm: str) -> None:
    on = {True: 0, False: 0}
    for T, d, B, epsilon in itertools.product((2, 50, 1e4, 1e7), (1, 4, 90, 10**5), (0.01, 3.0, 200.0), (0.05, 0.5)):
        many = T ** (1 - epsilon)
        s = min(B / math.log(T), many / min(many, d)) * many
        assert shamir_theorem_3(T, d, B, epsilon, norm) == pytest.approx(printed(s, d, norm), rel=1e-10)
        on[printed(s, d, norm) > printed(s, 0.99 * d, norm)] += 1
    assert min(on.values()) >= 5


def test_theorem_3_grows_in_the_dimension_to_its_largest_and_stays() -> None:
    for norm in NORMS:
        values = [shamir_theorem_3(1e6, d, 1.0, 0.1, norm) for d in (1, 10, 100, 10**6, 10**7)]
        assert values == sorted(values)
        assert values[-1] == values[-2] > values[0]
    with pytest.raises(ValueError, match=r"^norm must be one of sup, l2, l1, got 'L2'$"):
        shamir_theorem_3(1e6, 3, 1.0, 0.1, "L2")  # type: ignore[arg-type]
    assert math.isnan(shamir_theorem_3(1.5, 3, 1.0, 0.1))


def test_theorem_7_needs_more_rounds_than_classes() -> None:
    d, epsilon = 3, 0.2
    edge = d * 5 ** (1 / (1 - epsilon))
    assert shamir_theorem_7(edge * 1.001, d, 5, epsilon) > 0.0
    assert math.isnan(shamir_theorem_7(edge * 0.999, d, 5, epsilon))
    # its leading term is that of the exact sum
    assert shamir_theorem_7(1e9, 1, 4, epsilon) == pytest.approx(minimax_regret(1e9, 1, 4), rel=0.06)
