"""Decoding rules: the lemma over the simplex, its equality case, that no rule does better, and what is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from banditlab.bounds.decoding import decoding_constant
from banditlab.numerics.decoding import (
    DECODINGS,
    HALF_LOG,
    RANDOMIZED,
    SPARSEMAX,
    decode_forecast,
    decoded_softmax,
)
from banditlab.numerics.softmax import softmax_into

Floats = NDArray[np.float64]
SIZES = {2: 400, 3: 40, 4: 20, 5: 12, 6: 10}
"""K, and into how many parts the sides of the simplex are cut: vertices, edges, faces and ties are on the grid."""
ROUNDING = 1e-15


def grid(K: int, n: int) -> Floats:
    """Return every (k_1, ..., k_K)/n with sum 1 (points, K)."""
    cuts = itertools.combinations(range(n + K - 1), K - 1)
    bars = np.array([(-1, *cut, n + K - 1) for cut in cuts])
    return (np.diff(bars, axis=1) - 1) / n


def random_points(K: int, seed: int) -> Floats:
    """Return points of every kind: Dirichlet from sharp to flat, few classes alive, near ties, tiny probabilities."""
    rng = np.random.default_rng(seed)
    points = [rng.dirichlet(np.full(K, a)) for a in (0.02, 0.1, 1.0, 10.0) for _ in range(8)]
    for alive in range(1, min(K, 6) + 1):
        for a in (0.3, 30.0, 1e6):
            p = np.zeros(K)
            p[rng.choice(K, alive, replace=False)] = rng.dirichlet(np.full(alive, a))
            points.append(p)
    for tied in range(1, min(K, 6) + 1):
        p = np.full(K, 1e-200)
        p[rng.choice(K, tied, replace=False)] = 1 / tied
        points += [p, np.where(p > 0.1, np.nextafter(p, rng.integers(0, 2)), 0.0)]
    return np.array(points)


def decoded(rule: int, S: Floats) -> Floats:
    Q = S.copy()
    for q in Q:
        decode_forecast(rule, q)
    return Q


def direct(rule: str, s: Floats) -> Floats:
    """The slow form, as the rules are written in the papers and on the page."""
    K, best = len(s), int(np.argmax(s))
    greedy = np.eye(K)[best]
    if rule == "sample":
        return s
    if rule == "half-log":
        with np.errstate(divide="ignore"):
            q = np.maximum(0.0, 1.0 + 0.5 * np.log2(s))
        return q + (1.0 - q.sum()) * greedy
    if rule == "sparsemax":  # by sorting
        a = 1.0 + 0.5 * np.log2(np.maximum(s, 1e-300))
        ranked = np.sort(a)[::-1]
        v = (1.0 - np.cumsum(ranked)) / np.arange(1, K + 1)  # of the m largest
        m = int(np.flatnonzero(ranked + v > 0)[-1])
        return np.maximum(0.0, a + v[m])
    if rule == "randomized":
        r = min(1.0, 2.0 * (1.0 - s[best]))
        return (1.0 - r) * greedy + r * s
    a = min(1.0, -math.log2(s[best])) if rule == "gap" else (1.0 - s[best] if s[best] >= 0.5 else 1.0)
    return (1.0 - a) * greedy + a / K


def violation(S: Floats, Q: Floats, c: float) -> float:
    """Return the largest P(mistake | y) - (1 - c) (-log2 s_y) over all points and labels."""
    with np.errstate(divide="ignore"):
        return float((1.0 - Q + (1.0 - c) * np.log2(S)).max())


def points(K: int) -> Floats:
    return grid(K, SIZES[K]) if K in SIZES else random_points(K, K)


@pytest.mark.parametrize("K", [*SIZES, 7, 30, 1000])
@pytest.mark.parametrize("rule", DECODINGS)
def test_a_mistake_costs_at_most_its_share_of_the_log_loss(rule: str, K: int, record_property: Any) -> None:
    S = points(K)
    Q = decoded(DECODINGS.index(rule), S)
    assert (Q >= 0.0).all()
    np.testing.assert_allclose(Q.sum(axis=1), 1.0, atol=1e-12)
    found = violation(S, Q, decoding_constant(rule, K))
    record_property("largest violation", found)
    print(f"{rule}, K = {K}: {len(S)} points, largest violation {found:.2g}")
    assert found <= ROUNDING


@pytest.mark.parametrize("K", [*SIZES, 30, 1000])
@pytest.mark.parametrize("rule", DECODINGS)
def test_against_the_slow_form(rule: str, K: int) -> None:
    S = points(K)[::3]
    np.testing.assert_allclose(
        decoded(DECODINGS.index(rule), S), np.array([direct(rule, s) for s in S]), rtol=0, atol=1e-14
    )


def test_half_log_has_equality_at_two_equal_classes_and_at_certainty() -> None:
    """The positive parts sum to 1 for one and two equal classes, to less for three, to 0 for four."""
    sums = {m: m * max(0.0, 1.0 - 0.5 * math.log2(m)) for m in (1, 2, 3, 4)}
    assert sums == {1: 1.0, 2: 1.0, 3: pytest.approx(0.6226, abs=1e-4), 4: 0.0}
    for K in (2, 3, 50):
        s = np.zeros(K)
        s[[0, K - 1]] = 0.5
        q = decoded(HALF_LOG, s[None])[0]
        np.testing.assert_array_equal(q, s)
        assert 1.0 - q[0] == 0.5 * -math.log2(s[0]) == 0.5  # to the last bit
        certain = np.eye(K)[1]
        np.testing.assert_array_equal(decoded(HALF_LOG, certain[None])[0], certain)


def test_with_two_classes_half_log_is_an_edge_of_the_admissible_band_and_sparsemax_its_middle() -> None:
    """The band of "How to use expert advice", JACM 44(3), 1997, as beta tends to 0, r the forecast of class 1."""

    def band(r: Floats, beta: float) -> tuple[Floats, Floats]:
        scale = 2.0 * math.log(2.0 / (1.0 + beta))
        return 1.0 + np.log((1.0 - r) * beta + r) / scale, -np.log(1.0 - r + r * beta) / scale

    r = np.linspace(0.001, 0.999, 999)
    low, high = band(r, 1e-15)
    S = np.stack([1.0 - r, r], axis=1)
    edge = np.where(r > 0.5, np.minimum(high, 1.0), np.maximum(low, 0.0))
    np.testing.assert_allclose(decoded(HALF_LOG, S)[:, 1], edge, atol=1e-9)
    np.testing.assert_allclose(decoded(DECODINGS.index("sparsemax"), S)[:, 1], ((low + high) / 2).clip(0, 1), atol=1e-9)


@pytest.mark.parametrize("K", [2, 3, 30])
def test_the_mean_over_the_forecast_is_at_most_half_its_entropy(K: int) -> None:
    """Hellman and Raviv, 1970: so errs the best action, too."""
    S = random_points(K, 5)
    entropy = -np.sum(S * np.log2(np.maximum(S, 1e-300)), axis=1)
    mean = 1.0 - np.sum(S * decoded(HALF_LOG, S), axis=1)
    assert (mean <= entropy / 2 + 1e-12).all()
    assert (1.0 - S.max(axis=1) <= mean + 1e-12).all()


def best_share(s: Floats) -> float:
    """Return the least t for which some distribution q has 1 - q_y <= t (-log2 s_y) for every y, by linear programming."""
    K = len(s)
    alive = np.flatnonzero(s > 0.0)
    rows = np.zeros((len(alive), K + 1))
    rows[np.arange(len(alive)), alive] = -1.0
    rows[:, K] = np.log2(s[alive])
    total = np.append(np.ones(K), 0.0)[None]
    found = linprog(total[0] * 0 + np.eye(K + 1)[K], rows, -np.ones(len(alive)), total, [1.0])
    assert found.status == 0
    return float(found.fun)


def test_sparsemax_is_the_best_distribution_for_half_the_loss_under_a_floor() -> None:
    """min over p >= gamma/K of max_y P(mistake | y) - ((1 - gamma)/2) l_y, by linear programming: its value, never above
    gamma (1 - 1/K), is sparsemax's. So a decoder that knows gamma has nothing on (1 - gamma) q + gamma/K."""
    K, gamma = 3, 0.2
    for s in grid(K, 10)[::2]:
        alive = np.flatnonzero(s > 0.0)
        rows = np.hstack([-np.eye(K)[alive], -np.ones((len(alive), 1))])  # -p_y - v <= -1 + (1 - gamma)/2 l_y
        bits = -np.log2(s[alive])
        found = linprog(
            np.eye(K + 1)[K], rows, -1.0 + 0.5 * (1 - gamma) * bits, np.append(np.ones(K), 0.0)[None], [1.0],
            bounds=[(gamma / K, None)] * K + [(None, None)],
        )  # fmt: skip
        assert found.status == 0
        p = (1 - gamma) * decoded(SPARSEMAX, s[None])[0] + gamma / K
        value = float((1.0 - p[alive] - 0.5 * (1 - gamma) * bits).max())
        assert value == pytest.approx(found.fun, abs=1e-9)
        assert value <= gamma * (1 - 1 / K) + 1e-12
        assert value == pytest.approx(gamma * (1 - 1 / K), abs=1e-9) or s.max() < 1.0


def test_no_floor_allows_less_than_half_log_where_nothing_is_spare() -> None:
    """At a vertex every p >= gamma/K errs with gamma (1 - 1/K); at two equal classes somebody errs with (1 - gamma)/2 more."""
    K, gamma = 5, 0.3
    vertex = (1 - gamma) * decoded(HALF_LOG, np.eye(K)[:1])[0] + gamma / K
    assert 1.0 - vertex[0] == pytest.approx(gamma * (1 - 1 / K))  # p_1 <= 1 - gamma (K-1)/K whoever plays
    pair = (1 - gamma) * decoded(HALF_LOG, np.array([[0.5, 0.5, 0.0, 0.0, 0.0]]))[0] + gamma / K
    most = (1.0 - (K - 2) * gamma / K) / 2.0  # of p_1, p_2 the smaller, whoever plays
    assert 1.0 - pair[:2].min() == pytest.approx(1.0 - most) == pytest.approx((1 - gamma) / 2 + gamma * (1 - 1 / K))


@pytest.mark.parametrize(("K", "n"), [(2, 40), (3, 14)])
def test_no_rule_spares_more_than_half(K: int, n: int) -> None:
    """The programme's worst forecast is two classes at 1/2, where t = 1/2; half-log needs no more anywhere."""
    S = grid(K, n)
    shares = np.array([best_share(s) for s in S])
    assert shares.max() == pytest.approx(0.5, abs=1e-9)
    worst = S[np.flatnonzero(shares > 0.5 - 1e-9)]
    assert len(worst) == K * (K - 1) // 2
    assert (np.sort(worst, axis=1)[:, -2:] == 0.5).all()


def test_randomised_decodings_constant_is_attained() -> None:
    p = 0.4320674801
    s = np.array([[p, 1.0 - p]])
    q = decoded(RANDOMIZED, s)
    assert (1.0 - q[0, 0]) / -math.log2(p) == pytest.approx(0.5175933, abs=1e-7)


@pytest.mark.parametrize(
    "bad",
    [
        [math.nan, 0.5, 0.5],
        [0.5, 0.5, math.nan],
        [math.nan] * 3,
        [1.2, -0.2, 0.0],
        [0.3, 0.3, 0.3],
        [0.0, 0.0, 0.0],
        [math.inf, 0.0, 0.0],
        [1e200, 0.0, 0.0],
    ],
)
@pytest.mark.parametrize("rule", DECODINGS)
def test_what_is_no_distribution_is_refused(rule: str, bad: list[float]) -> None:
    """Whatever comes out is no distribution either, so that every loop stops at it."""
    q = decoded(DECODINGS.index(rule), np.array([bad]))[0]
    with np.errstate(invalid="ignore"):
        assert not ((q >= 0.0).all() and abs(q.sum() - 1.0) <= 1e-9)


@pytest.mark.parametrize("rule", range(len(DECODINGS)), ids=DECODINGS)
@pytest.mark.parametrize("K", [1, 2, 3, 10, 1000])
def test_logits_are_decoded_as_their_softmax_is(rule: int, K: int) -> None:
    rng = np.random.default_rng(K)
    Z = [
        scale * rng.standard_normal(K)
        for scale in (1e-200, 1e-17, 1e-15, 1e-3, 1.0, 5.0, 700.0, 1e200)
        for _ in range(50)
    ]
    for classes in range(1, min(K, 6) + 1):  # ties, also at exactly 1/4 each, and classes that are out of the question
        z = np.full(K, -np.inf)
        z[rng.choice(K, classes, replace=False)] = rng.standard_normal()
        Z += [z, np.maximum(z, -1e308), np.maximum(z, z.max() - 1.0)]
    for z in Z:
        s, q = np.empty(K), np.empty(K)
        softmax_into(z, s)
        decode_forecast(rule, s)
        decoded_softmax(rule, z, q)
        np.testing.assert_array_equal(q, s)


@pytest.mark.parametrize("rule", range(len(DECODINGS)), ids=DECODINGS)
def test_logits_that_have_no_softmax_are_no_forecast(rule: int) -> None:
    q = np.empty(3)
    for z in ([np.nan, 0.0, 0.0], [9.0, 0.0, np.nan], [0.0, np.inf, 0.0], [-np.inf] * 3):
        decoded_softmax(rule, np.array(z), q)
        assert np.isnan(q).any()
