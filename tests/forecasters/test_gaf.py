"""GAF against full matrices and scipy, the Gaussian integral against quadrature, its certificate and its bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.optimize import minimize, root

from banditlab.bounds.curvature import margin_range, tight_curvature
from banditlab.bounds.gaf import gaf as gaf_bound
from banditlab.bounds.gaf import gaf_corollary_2, gaf_mu, gaf_sampling_high_probability
from banditlab.comparators import best_in_ball
from banditlab.errors import HorizonRequiredError, IncompatibleError, UsageError
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.gaf_fresh import GAFFresh
from banditlab.losses import logistic_loss, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.problem import Problem


def contexts(seed: int, n: int, d: int, repeated: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return as_contexts(X[rng.integers(0, 3, n)] if repeated else X)


class Direct:
    """Algorithm 1 with full (Kd, Kd) matrices, its implicit step by scipy."""

    def __init__(self, K: int, d: int, lam: float, beta: float, covariance: float = 0.5, printed: bool = False) -> None:
        self.K, self.d, self.beta, self.covariance, self.printed = K, d, beta, covariance, printed
        self.A, self.b, self.theta = lam * np.eye(K * d), np.zeros(K * d), np.zeros(K * d)
        self.spent = 0.0

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        Phi = np.kron(np.eye(self.K), x).T
        return Phi.T @ self.theta, self.covariance * Phi.T @ np.linalg.solve(self.A, Phi)

    def update(self, x: np.ndarray, y: int) -> None:
        K, Phi = self.K, np.kron(np.eye(self.K), x).T
        A, b, before = self.A, self.b, self.theta

        def objective(theta: np.ndarray) -> float:
            return b @ theta + theta @ A @ theta + logistic_loss(Phi.T @ theta, y)

        def gradient(theta: np.ndarray) -> np.ndarray:
            return b + 2 * A @ theta + Phi @ (softmax(Phi.T @ theta) - np.eye(K)[y])

        def hessian(theta: np.ndarray) -> np.ndarray:
            s = softmax(Phi.T @ theta)
            return 2 * A + Phi @ (np.diag(s) - np.outer(s, s)) @ Phi.T

        found = minimize(objective, before, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9})
        theta = root(gradient, found.x, jac=hessian, tol=1e-13).x
        np.testing.assert_allclose(theta, found.x, atol=1e-4)
        H = hessian(theta) - 2 * A
        s = softmax(Phi.T @ theta)
        # (4): the sum of surrogates without its minimum, from its values at the minima
        low = -0.25 * b @ np.linalg.solve(A, b)
        self.spent -= objective(theta) - low
        self.A = A + 0.5 * self.beta * H
        at = before if self.printed else theta
        self.b = b + Phi @ (s - np.eye(K)[y]) - self.beta * H @ at
        self.theta = -0.5 * np.linalg.solve(self.A, self.b)
        if not self.printed:
            np.testing.assert_allclose(self.theta, theta, atol=1e-7)  # (2): both are theta_{t+1}


CASES = [
    (2, 3, 1.0, {"regularization": 0.3}),
    (3, 3, 2.0, {}),
    (5, 2, 5.0, {"regularization": 0.01, "curvature": "tight"}),
    (3, 2, 100.0, {"regularization": 0.001}),
    (3, 3, 2.0, {"regularization": 0.1, "covariance": "printed"}),
    (3, 3, 2.0, {"regularization": 0.1, "linear_term": "printed"}),
]


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize(("K", "d", "B", "settings"), CASES)
@pytest.mark.few(4)
def test_moments_and_certificate_against_full_matrices(
    K: int, d: int, B: float, settings: dict, repeated: bool
) -> None:
    X = contexts(K, 40, d, repeated)
    y = np.random.default_rng(1).integers(0, K, len(X))
    gaf = GAF(Problem(d, K, 1.0), None, norm_bound=B, nodes="cubature", **settings)
    covariance = 1.0 if gaf.covariance == "printed" else 0.5
    printed = gaf.linear_term == "printed"
    direct = Direct(K, d, gaf.regularization, 2 * gaf.curvature, covariance, printed)
    loss = 0.0
    for x, label in zip(X, y, strict=True):
        z = gaf.predict(x)
        loss += logistic_loss(z, label)
        mean, C = direct.moments(x)
        np.testing.assert_allclose(gaf.state.mean, mean, atol=1e-6)
        scale = gaf.state.constants[2]
        np.testing.assert_allclose(scale * gaf.state.blocks.At, C, rtol=1e-7, atol=1e-9)
        points = mean + math.sqrt(K) * np.concatenate([sqrtm(C).real, -sqrtm(C).real])
        np.testing.assert_allclose(softmax(z), softmax(points).mean(axis=0), atol=1e-6)
        direct.update(x, int(label))
        gaf.update(x, label)
    if not printed:
        assert gaf.state.spent[0] == pytest.approx(loss + direct.spent, rel=1e-6, abs=1e-6)


def play(gaf: GAF | GAFFresh, X: np.ndarray, kind: str, seed: int) -> tuple[np.ndarray, float]:
    K, rng = gaf.problem.n_classes, np.random.default_rng(seed)
    planted = rng.standard_normal((K, X.shape[1]))
    y, loss = np.empty(len(X), np.int64), 0.0
    for t, x in enumerate(X):
        z = gaf.predict(x)
        if kind == "noise":
            y[t] = rng.integers(K)
        elif kind == "separable":
            y[t] = np.argmax(planted @ x)
        else:
            y[t] = np.argmin(z)
        loss += float(logistic_loss(z, y[t]))
        gaf.update(x, y[t])
    return y, loss


@pytest.mark.parametrize("seed", range(60))
def test_regret_below_certificate(seed: int) -> None:
    """Whatever the nodes, the regularization and the labels, chosen against the forecaster among them."""
    rng = np.random.default_rng(100 + seed)
    K, d, n = int(rng.integers(2, 5)), int(rng.integers(1, 4)), 80
    B, lam = float(10 ** rng.uniform(-0.5, 1.2)), float(10 ** rng.uniform(-3, 1.5))
    settings = [
        {"nodes": "fixed", "samples": 6},
        {"nodes": "cubature"},
        {"smoothing": "theory", "curvature": "tight"},
        {"covariance": "printed"},
    ][seed % 4]
    gaf = GAF(Problem(d, K, 1.0), rng, norm_bound=B, regularization=lam, **settings)
    X = contexts(seed, n, d, repeated=seed % 5 == 0)
    y, loss = play(gaf, X, ("noise", "separable", "adversarial")[seed % 3], seed)
    assert loss - best_in_ball(X, np.eye(K)[y], B).loss <= gaf.certificate() + 1e-9


@pytest.mark.parametrize("kind", ["noise", "separable", "adversarial"])
@pytest.mark.parametrize("curvature", ["simple", "tight"])
@pytest.mark.parametrize(("K", "B", "lam"), [(2, 1.0, "theory"), (2, 5.0, 0.5), (2, 10.0, 0.05), (3, 2.0, 1.0)])
def test_certificate_of_the_integral_below_the_bound(
    kind: str, curvature: str, K: int, B: float, lam: float | str
) -> None:
    """Quadrature stands for the exact expectation; the bound holds for any regularization."""
    d, n = 3, 200
    gaf = GAF(
        Problem(d, K, 1.0),
        None,
        norm_bound=B,
        nodes="gauss-hermite",
        samples=60 if K == 2 else 400,
        regularization=lam,
        curvature=curvature,
    )
    play(gaf, contexts(K, n, d), kind, 1)
    assert gaf.bound(n) is None  # the quadrature's error is not proved
    assert gaf.certificate() <= gaf_bound(n, d, K, B, 1.0, gaf.regularization, gaf.curvature)
    if lam == "theory":
        assert gaf.certificate() <= gaf_corollary_2(n, d, K, B, 1.0)


@pytest.mark.parametrize("fresh", [False, True])
def test_mean_certificate_below_the_bound_in_expectation(fresh: bool) -> None:
    """40 draws of the samples on one stream; the mean and its standard error against the bound."""
    K, d, n = 3, 2, 60
    X, y = contexts(3, n, d), np.random.default_rng(3).integers(0, K, n)
    values = []
    for seed in range(40):
        make = GAFFresh if fresh else GAF
        gaf = make(Problem(d, K, 1.0), np.random.default_rng(seed), smoothing="theory", samples=40, regularization=0.5)
        for x, label in zip(X, y, strict=True):
            gaf.update(x, label)
        values.append(gaf.certificate())
    assert np.std(values) > 0
    assert np.mean(values) + 3 * np.std(values) / math.sqrt(40) <= gaf.bound(n)


def test_the_theorys_number_of_samples() -> None:
    """Proposition 3 at n = 10, K = 3, delta = 1/20: m = 5299, mu = .1442, and 3 n mu more than the exact forecaster's bound."""
    settings: dict[str, Any] = {"samples": "theory", "smoothing": "theory", "regularization": 2.0}
    player = GAFFresh(Problem(2, 3, 1.0, 10), np.random.default_rng(0), **settings)
    assert player.samples == 5299
    assert player.smoothing == pytest.approx(0.144218764)
    exact = gaf_bound(10, 2, 3, 1.0, 1.0, 2.0, player.curvature)
    assert player.bound_with_probability(10, 0.05) == pytest.approx(exact + 4.32656291)
    assert player.bound_with_probability(10, 0.5) < player.bound_with_probability(10, 0.05)
    assert math.isnan(player.bound_with_probability(10, 0.0))
    assert math.isnan(player.bound_with_probability(10, 1.0))
    assert player.bound_with_probability(10, 1e-9) == pytest.approx(
        exact + 10 * (math.sqrt(3 * math.log(1e10) / (player.smoothing * 5299)) + 2 * player.smoothing)
    )
    plain = GAFFresh(Problem(2, 3, 1.0, 10), np.random.default_rng(0), samples="theory")
    assert plain.smoothing == 0.0  # as given: without smoothing nothing holds with high probability
    assert plain.bound_with_probability(10, 0.05) == math.inf
    again = GAFFresh(player.problem, np.random.default_rng(0), **player.params())
    assert (again.samples, again.smoothing) == (player.samples, player.smoothing)


def test_the_theorys_number_of_samples_is_refused() -> None:
    with pytest.raises(HorizonRequiredError, match="needs the horizon"):
        GAFFresh(Problem(2, 3, 1.0), np.random.default_rng(0), samples="theory")
    with pytest.raises(IncompatibleError, match=r"n\^3 ln\(n/delta\) = .* at n = 1,000,000"):
        GAFFresh(Problem(2, 3, 1.0, 10**6), np.random.default_rng(0), samples="theory")
    assert GAF(Problem(2, 2, 1.0), np.random.default_rng(0), samples=2)._independent() == 1  # one antithetic pair
    assert GAF.least_bytes(Problem(2, 3, 1.0), {"samples": 5300}) > 4 * 3 * 5300
    ask = {"samples": "theory"}
    assert GAFFresh.least_bytes(Problem(2, 3, 1.0), ask) < 1000 < 4 * 3 * 5299
    assert (
        GAFFresh.least_bytes(Problem(2, 3, 1.0, 10), ask)
        == GAFFresh.least_bytes(Problem(2, 3, 1.0), {"samples": 1}) + 4 * 3 * 5298
    )
    assert GAFFresh.least_bytes(Problem(2, 3, 1.0, 10**6), ask) > 1e18  # a sweep skips it and allocates nothing


def test_sampling_costs_no_more_than_it_may_but_for_delta() -> None:
    """Losses above those of the exact forecasts, 40 draws of the samples at delta = 1/20: rarely above the term."""
    K, d, n, delta = 3, 2, 10, 0.05
    X, y = contexts(3, n, d), np.random.default_rng(3).integers(0, K, n)

    def loss(player: Any) -> float:
        total = 0.0
        for x, label in zip(X, y, strict=True):
            total += float(logistic_loss(player.predict(x), int(label)))
            player.update(x, int(label))
        return total

    exact = loss(GAF(Problem(d, K, 1.0, n), None, nodes="cubature", regularization=0.05))
    for samples in (400, "theory"):
        excess, terms = [], set()
        for seed in range(40 if samples == 400 else 10):
            rng = np.random.default_rng(seed)
            smoothing = gaf_mu(n, K, 400, delta) if samples == 400 else "theory"
            settings: dict[str, Any] = {"samples": samples, "smoothing": smoothing, "regularization": 0.05}
            player = GAFFresh(Problem(d, K, 1.0, n), rng, **settings)
            terms.add(gaf_sampling_high_probability(n, K, player.samples, player.smoothing, delta))
            excess.append(loss(player) - exact)
        [term] = terms
        assert 0.0 < term < 1.1 * n
        assert np.std(excess) > 0.0
        assert np.mean(np.array(excess) > term) <= delta


def test_fresh_samples_are_new_after_every_update_only() -> None:
    X = contexts(5, 20, 3)
    gaf = GAFFresh(Problem(3, 3, 1.0), np.random.default_rng(0), samples=10, regularization=1.0)
    seen = set()
    for x in X:
        points = gaf._gaf.state.nodes.points.copy()
        seen.add(points.tobytes())
        gaf.predict(x)
        np.testing.assert_array_equal(points, gaf._gaf.state.nodes.points)
        gaf.update(x, 1)
    assert len(seen) == len(X)
    draws = np.random.default_rng(0).spawn(1)[0].standard_normal((len(X) + 1, 10, 3))
    np.testing.assert_array_equal(gaf._gaf.state.nodes.points, draws[-1])


def test_settings_and_refusals() -> None:
    rng = np.random.default_rng(0)
    gaf = GAF(Problem(2, 5, 2.0), rng, norm_bound=4.0, samples=10, smoothing="theory")
    assert gaf.regularization == 32 * 5 * 2 * 4
    assert gaf.curvature == pytest.approx(0.5 / (math.log(5) / 2 + 8 + 1))  # beta/2
    assert gaf.smoothing == 0.5  # sqrt(5/(4 * 5)): five antithetic pairs
    assert GAF(Problem(2, 5, 2.0), rng, norm_bound=4.0, curvature="tight").curvature == tight_curvature(
        margin_range(5, 4.0, 2.0)
    )
    points = gaf.state.nodes.points
    np.testing.assert_array_equal(points[:5], -points[5:])
    assert len(GAF(Problem(2, 3, 1.0), None, nodes="gauss-hermite").state.nodes.points) == 100


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"norm_bound": -1.0}, UsageError, "norm_bound"),
        ({"regularization": "auto"}, UsageError, "regularization"),
        ({"samples": 7}, UsageError, "samples must be even"),
        ({"samples": 0}, UsageError, "samples must be at least 1"),
        ({"smoothing": 0.6}, UsageError, r"smoothing must lie in \[0, 0.5\]"),
        ({"nodes": "random"}, UsageError, "nodes"),
        ({"covariance": "full"}, UsageError, "covariance"),
        ({"nodes": "gauss-hermite", "samples": 8}, IncompatibleError, r"samples >= 3\^\(K-1\) = 9, got 8"),
    ],
)
def test_refused(wrong: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        GAF(Problem(2, 3, 1.0), np.random.default_rng(0), **wrong)


@pytest.mark.parametrize("make", [GAF, GAFFresh])
def test_samples_need_a_generator(make: type[GAF] | type[GAFFresh]) -> None:
    with pytest.raises(UsageError, match="draws random numbers: rng must be a numpy Generator"):
        make(Problem(2, 3, 1.0), None)


@pytest.mark.parametrize("settings", [{"linear_term": "printed"}, {"curvature": 1.0}])
def test_forms_without_a_certificate(settings: dict) -> None:
    gaf = GAF(Problem(2, 3, 1.0), np.random.default_rng(0), smoothing="theory", **settings)
    assert math.isnan(gaf.certificate())
    assert gaf.bound(10) is None
