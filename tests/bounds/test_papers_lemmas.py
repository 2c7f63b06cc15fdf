"""Lemmas of the papers that the code rests on without computing them, by numbers; docs/papers.md names the test of each."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from banditlab.boosting.hedge import weights_of
from banditlab.bounds.boosting import hedge_mistakes_with_confidence
from banditlab.bounds.boosting_mbbm import least_error_rate, least_rounds
from banditlab.bounds.weak_learning import expert_advice, link_excess, online_agnostic
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.losses import log_sum_exp, softmax
from banditlab.problem import Problem
from benchmarks.measure.papers.boosting import bayes_error

Floats = NDArray[np.float64]


def covariance(p: Floats) -> Floats:
    return np.diag(p) - np.outer(p, p)


def positive_definite(rng: np.random.Generator, n: int) -> Floats:
    root = rng.standard_normal((n, n))
    return root @ root.T + 0.1 * np.eye(n)


# --------------------------------------------------------------------------------------------------------------- 000


def test_000_remark_2() -> None:
    """Self-concordance: lse(z + s) >= lse(z) + s'p + psi(m) s'Hs, psi(m) = (e^-m + m - 1)/m^2, m the range of s."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        K = int(rng.integers(2, 6))
        z, s = rng.standard_normal((2, K)) * 10.0 ** rng.uniform(-2, 1.5, (2, 1))
        p, m = softmax(z), float(np.ptp(s))
        psi = (math.exp(-m) + m - 1.0) / m**2
        assert log_sum_exp(z + s) >= log_sum_exp(z) + s @ p + psi * (s @ covariance(p) @ s) - 1e-9 * (1 + m)
    # where the current logits are unbounded so is m, and nothing is left of the curvature
    assert (math.exp(-1e6) + 1e6 - 1.0) / 1e12 < 1e-5


def test_000_lemma_8() -> None:
    """With its B_t the gradient of phi_t is b_t(W; A), the gradient for which Lemma 7's inner product vanishes."""
    rng = np.random.default_rng(8)
    for _ in range(50):
        K, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        W, x, A = rng.standard_normal((K, d)), rng.standard_normal(d), positive_definite(rng, K * d)
        spread = 0.5 * A @ blocks(np.linalg.inv(A), K) @ np.kron(np.ones(K), x)
        B = np.kron(np.ones(K), x) / K - spread
        losses = [np.kron(softmax(W @ x) - e, x) for e in np.eye(K)]
        np.testing.assert_allclose(np.mean(losses, axis=0) + B, np.kron(softmax(W @ x), x) - spread, atol=1e-9)


def blocks(M: Floats, K: int) -> Floats:
    """Return M with zeros outside its K diagonal blocks."""
    return M * np.kron(np.eye(K), np.ones((len(M) // K, len(M) // K)))


def test_000_lemma_14() -> None:
    rng = np.random.default_rng(14)
    for _ in range(500):
        K = int(rng.integers(2, 8))
        p, x = softmax(5.0 * rng.standard_normal(K)), rng.standard_normal(3)
        top = float(np.linalg.eigvalsh(np.kron(covariance(p), np.outer(x, x)))[-1])
        assert top <= 0.5 * (x @ x) + 1e-12 <= x @ x  # half of what the lemma needs is enough
    assert np.linalg.eigvalsh(covariance(np.array([0.5, 0.5])))[-1] == pytest.approx(0.5)


def lemma_15(z: Floats, x: Floats, A: Floats, phi: Floats, y: Floats) -> float:
    """Return the left side less the right side, phi the gradient of the regularizer."""
    K, s, inverse = len(z), softmax(z), np.linalg.inv(A)
    g, b = np.kron(s - y, x), np.kron(s, x) - 0.5 * A @ blocks(inverse, K) @ np.kron(np.ones(K), x)
    left = (phi - g) @ inverse @ (phi - g) - phi @ inverse @ phi
    trace = np.trace(inverse @ np.kron(covariance(s), np.outer(x, x)))
    return float(left - (trace - 2.0 * (inverse @ g) @ (phi - b)))


def test_000_lemma_15_and_lemma_7() -> None:
    """An identity at the labels of one class, and an upper bound at labels in the simplex."""
    rng = np.random.default_rng(15)
    for _ in range(100):
        K, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        z, x, A = rng.standard_normal(K), rng.standard_normal(d), positive_definite(rng, K * d)
        phi = rng.standard_normal(K * d)
        assert max(abs(lemma_15(z, x, A, phi, y)) for y in np.eye(K)) <= 1e-8
        assert lemma_15(z, x, A, phi, rng.dirichlet(np.ones(K))) <= 1e-8


@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-3])
def test_000_lemma_16(delta: float) -> None:
    """Freedman's inequality at independent draws, by their exact law."""
    for n, p, eta in itertools.product((1, 10, 200), (0.01, 0.3, 0.9), (0.05, 0.3, 1.0)):
        allowed = eta * (math.e - 2.0) * n * p * (1.0 - p) + math.log(1.0 / delta) / eta
        assert binom.sf(math.floor(n * p + allowed + 1e-9), n, p) <= delta


@pytest.mark.parametrize("delta", [0.6, 0.1, 1e-3])
def test_000_lemma_17_holds_after_every_round(delta: float) -> None:
    """The chance that hedge's mistakes are ever above the corrected bound, by their exact law."""
    rng, most = np.random.default_rng(17), 0.0
    for _ in range(60):
        T, N = int(rng.integers(5, 41)), int(rng.integers(2, 9))
        wrong = rng.random((T, N)) < rng.random(N)
        mistakes, law, above = np.zeros(N), np.eye(1, T + 1)[0], 0.0
        for row in wrong:
            p = float(weights_of(mistakes) @ row)
            law = (1.0 - p) * law + p * np.append(0.0, law[:-1])
            mistakes += row
            beyond = np.arange(T + 1) > hedge_mistakes_with_confidence(mistakes.min(), N, delta)
            above, law = above + law[beyond].sum(), np.where(beyond, 0.0, law)
        assert above <= delta
        most = max(most, above)
    assert most > 0.0 or delta < 0.01


def test_000_lemma_18() -> None:
    rng = np.random.default_rng(18)
    for _ in range(500):
        K, alpha = int(rng.integers(2, 6)), float(rng.uniform(-2.0, 2.0))
        z, y, l = 3.0 * rng.standard_normal(K), 0, int(rng.integers(K))
        p = softmax(z)
        rise = log_sum_exp(z + alpha * np.eye(K)[l]) - alpha * (l == y) - log_sum_exp(z)
        allowed = math.expm1(alpha) * p[l] if l != y else math.expm1(-alpha) * (1.0 - p[y])
        assert rise <= allowed + 1e-12


def least(A: float, B: float) -> float:
    """Return the minimum over alpha in [-2, 2] of A (e^alpha - 1) + B (e^-alpha - 1), convex in alpha."""
    alpha = 0.5 * math.log(max(B, 1e-300) / max(A, 1e-300))
    alpha = min(2.0, max(-2.0, alpha))
    return A * math.expm1(alpha) + B * math.expm1(-alpha)


def test_000_lemma_19_which_is_002_lemma_11() -> None:
    for A, B in itertools.product(np.linspace(0.0, 1.0, 101), repeat=2):
        if A + B <= 1.0:
            assert least(A, B) <= -0.5 * (A - B) ** 2 + 1e-12
            assert least(A, B) == pytest.approx(least(B, A), abs=1e-12)  # the two displays before it are one number


# --------------------------------------------------------------------------------------------------------------- 001


def test_001_section_3_2() -> None:
    """The loss of the wrong label is ln(1 + (1 + B R) eta): small wherever the curvature (9) is."""
    for margin, BR in itertools.product((-9.0, -1.0, 0.0, 3.0), (0.1, 5.0)):
        eta = math.exp(margin) / (1.0 + BR)
        assert math.log1p(math.exp(margin)) == pytest.approx(math.log1p((1.0 + BR) * eta))


def test_001_lemma_8() -> None:
    grid = np.linspace(-12.0, 12.0, 97)
    for a, b in itertools.product(grid, grid + 1e-3):
        assert 1.0 / (1.0 + abs(a)) <= math.expm1(a - b) / (a - b) * (1.0 + math.exp(b)) / (1.0 + math.exp(a)) + 1e-12


def test_001_lemmas_9_and_10() -> None:
    rng = np.random.default_rng(10)
    for _ in range(100):
        d, lam = int(rng.integers(1, 5)), float(10.0 ** rng.uniform(-2, 2))
        A, total = lam * np.eye(d), 0.0
        for _ in range(12):
            u, before = rng.standard_normal(d), np.linalg.det(A)
            A = A + np.outer(u, u)
            term = u @ np.linalg.solve(A, u)
            assert term == pytest.approx(1.0 - before / np.linalg.det(A), abs=1e-9)
            total += term
        C = A - lam * np.eye(d)
        assert total <= np.log1p(np.maximum(np.linalg.eigvalsh(C), 0.0) / lam).sum() + 1e-9


# --------------------------------------------------------------------------------------------------------------- 003


def test_003_lemma_6() -> None:
    """(A2) of the logistic loss at zeta = 4 R^2, in the worst case |s| = R |theta_1 - theta_2|."""
    rng = np.random.default_rng(6)
    for _ in range(3000):
        K = int(rng.integers(2, 7))
        z, s = rng.standard_normal((2, K)) * 10.0 ** rng.uniform(-2, 1, (2, 1))
        if s @ s > 100.0:
            continue
        p = softmax(z)
        quadratic = s @ covariance(p) @ s
        assert log_sum_exp(z + s) - log_sum_exp(z) - s @ p <= math.exp(4.0 * (s @ s)) * quadratic + 1e-9


# --------------------------------------------------------------------------------------------------------------- 002


def test_002_theorem_4_is_the_least_error_of_two_classes() -> None:
    for N, edge in itertools.product((1, 2, 5, 12), (0.0, 0.07, 0.3, 0.5)):
        assert least_error_rate(2, N, edge) == pytest.approx(bayes_error(2, N, 2.0 * edge), abs=1e-12)


def test_002_theorem_4_the_rounds_without_information() -> None:
    k, edge, S, rate = 5, 0.1, 300.0, 0.02
    silent = k * S / (4.0 * edge)
    assert least_rounds(k, edge, S, rate) * rate == pytest.approx(silent * (1.0 - 1.0 / k))
    assert least_error_rate(k, 10**9, edge) == 0.0


def test_002_lemma_7_is_expert_advice_over_t_k_to_the_d_experts() -> None:
    for T, k, d in ((1, 2, 1), (10, 3, 2), (200, 5, 3)):
        assert online_agnostic(T, k, d, 0.1) == pytest.approx(expert_advice(T, (T * k) ** d, 0.1))
        # the experts of its proof: at most d corrections, each of one round to one of the other k - 1 classes
        assert sum(math.comb(T, j) * (k - 1) ** j for j in range(d + 1)) <= (T * k) ** d


@pytest.mark.parametrize(("k", "edge", "m", "d"), [(2, 0.4, 1.0, 1), (3, 0.2, 0.5, 2), (8, 0.1, 0.9, 4)])
def test_002_theorem_8_is_the_largest_of_all_numbers_of_rounds(k: int, edge: float, m: float, d: int) -> None:
    most = link_excess(k, edge, m, d, 0.05)
    tried = [online_agnostic(T, k, d, 0.05) - edge * m * T / k for T in np.geomspace(1.0, 1e8, 20_000)]
    assert max(tried) <= most + 1e-9 * most
    assert max(tried) >= (1.0 - 1e-5) * most


def test_000_algorithm_3_may_have_either_sign_in_its_second_feature() -> None:
    """-1 as in Algorithm 3 or +1 as in the proof of Theorem 13: the same forecasts."""
    rng = np.random.default_rng(3)
    pair = [FOLKLORE(Problem(2, 2, 5.0), None, norm_bound=2.0) for _ in range(2)]
    for _ in range(40):
        half, right = float(rng.uniform(-3, 3)), int(rng.integers(2))
        contexts = [np.array([half, sign]) for sign in (-1.0, 1.0)]
        forecasts = [f.predict(x) for f, x in zip(pair, contexts, strict=True)]
        np.testing.assert_allclose(softmax(forecasts[0]), softmax(forecasts[1]), atol=1e-9)
        for f, x in zip(pair, contexts, strict=True):
            f.update(x, right)
