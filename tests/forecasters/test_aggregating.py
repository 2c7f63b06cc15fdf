"""The aggregating forecaster: integrals by scipy, mixability with equality, the net's ln N, the chains' law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from banditlab.bounds.aggregating import aggregating_net
from banditlab.comparators import best_in_ball
from banditlab.errors import HorizonRequiredError, IncompatibleError, UsageError
from banditlab.forecasters.aggregating import Aggregating
from banditlab.losses import logistic_loss, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.log_mixture import smooth
from banditlab.problem import Problem


def line(seed: int, n: int, kind: str = "noise") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    if kind == "repeated":
        X = np.array([[1.0], [0.9], [-0.05]])[rng.integers(0, 3, n)]
    y = (X[:, 0] < 0).astype(int) if kind == "separable" else rng.integers(0, 2, n)
    return as_contexts(X), y


def plane(seed: int, n: int, d: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return as_contexts(X), np.argmax(X @ (3 * rng.standard_normal((d, K))) + rng.gumbel(size=(n, K)), axis=1)


def posterior_mean(past: np.ndarray, x: float, B: float) -> float:
    """E sigmoid(theta x) under exp(-sum_s ln(1 + e^{-theta past_s})) on [-2B, 2B], by scipy's adaptive rule."""

    def log_weight(theta: float) -> float:
        return float(-np.logaddexp(0, -theta * past).sum())

    coarse = np.linspace(-2 * B, 2 * B, 1001)
    top = coarse[np.argmax([log_weight(theta) for theta in coarse])]
    scale = log_weight(top)
    cuts = np.unique(np.clip(top + np.array([-3, -1, -0.3, 0, 0.3, 1, 3]), -2 * B, 2 * B))

    def integral(slope: float) -> float:
        def density(theta: float) -> float:
            return math.exp(log_weight(theta) - scale - np.logaddexp(0, -theta * slope))

        return quad(density, -2 * B, 2 * B, points=cuts, limit=400, epsabs=1e-13, epsrel=1e-11)[0]

    return integral(x) / (2 * integral(0.0))  # sigmoid(0) = 1/2


@pytest.mark.parametrize("kind", ["noise", "repeated", "separable"])
@pytest.mark.parametrize("B", [0.5, 4.0, 50.0])
@pytest.mark.few(3)
def test_quadrature_equals_scipys_integral(B: float, kind: str) -> None:
    n = 300
    X, y = line(1, n, kind)
    player = Aggregating(Problem(1, 2, 1.0, n), None, norm_bound=B, sampler="quadrature", nodes="theory")
    past = (1 - 2 * y) * X[:, 0]
    for t in range(n):
        if t in (0, 1, 7, 50, 299):
            expected = posterior_mean(past[:t], X[t, 0], B)
            assert softmax(player.predict(X[t]))[0] == pytest.approx(expected, abs=1e-8)
        player.update(X[t], y[t])


@pytest.mark.parametrize("mu", [0.0, 0.01, 0.5])
def test_the_loss_is_the_mix_loss(mu: float) -> None:
    """Mixability with equality: the losses sum to -ln of the prior's mean of e^{-L}; smoothing costs at most 2 mu."""
    d, K, n = 2, 3, 200
    X, y = plane(2, n, d, K)
    player = Aggregating(Problem(d, K, 1.0), np.random.default_rng(0), norm_bound=5.0, members=300, smoothing=mu)
    logits = np.empty((n, K))
    player.forecast_block(X, y, logits)
    losses = np.array([logistic_loss(X @ M.T, y).sum() for M in player.state.M])
    mixed = -math.log(np.exp(losses.min() - losses).mean()) + losses.min()
    loss = logistic_loss(logits, y).sum()
    np.testing.assert_allclose(np.exp(logits).sum(axis=1), 1.0, rtol=1e-12)
    if mu == 0.0:
        assert loss == pytest.approx(mixed, rel=1e-12)
    assert loss - mixed <= -n * math.log1p(-mu) + 1e-9 <= 2 * mu * n + 1e-9
    assert player.regret_to_net() == pytest.approx(loss - losses.min(), abs=1e-9)
    assert player.regret_to_net() <= aggregating_net(n, 300, mu)


@pytest.mark.parametrize("seed", range(20))
def test_regret_to_the_best_member_is_at_most_ln_n(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, K, N, n = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(1, 40)), 100
    X, y = plane(seed, n, d, K)
    player = Aggregating(Problem(d, K, 1.0), rng, norm_bound=float(10 ** rng.uniform(-1, 2)), members=N, sampler="net")
    y, loss = y.copy(), 0.0
    for t, x in enumerate(X):
        z = player.predict(x)
        if seed % 2:
            y[t] = np.argmin(z)
        loss += float(logistic_loss(z, y[t]))
        player.update(x, int(y[t]))
    best = min(logistic_loss(X @ M.T, y).sum() for M in player.state.M)
    assert loss - best <= math.log(N) + 1e-9


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.few(10)
def test_quadratures_regret_below_certificate_below_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    B, mu, nodes = float(10 ** rng.uniform(-1, 1.5)), [0.0, 0.02][seed % 2], ["theory", 20, 801][seed % 3]
    n = int(rng.integers(5, 250))
    X, y = line(seed, n, ("noise", "repeated", "separable")[seed % 3])
    player = Aggregating(Problem(1, 2, 1.0, n), None, norm_bound=B, sampler="quadrature", smoothing=mu, nodes=nodes)
    y, loss = y.copy(), 0.0
    for t, x in enumerate(X):
        z = player.predict(x)
        if seed % 4 == 1:
            y[t] = np.argmin(z)
        loss += float(logistic_loss(z, y[t]))
        player.update(x, int(y[t]))
    best = best_in_ball(X, np.eye(2)[y], B)
    assert loss - best.loss <= player.certificate() + best.gap + 1e-9
    assert player.certificate() <= player.bound(n)
    if nodes == "theory":
        assert player.bound(n) <= 1.001 + math.log(max(1.0, 4 * B * n)) - n * math.log1p(-mu)
    if nodes != 20 and mu == 0.0:
        assert player.certificate() <= loss - best.loss + 1.0  # and it is not a loose one


def test_the_net_is_uniform_in_the_ball_and_the_predictions_block_alike() -> None:
    player = Aggregating(Problem(3, 2, 1.0), np.random.default_rng(3), norm_bound=2.0, members=20_000)
    radius = np.linalg.norm(player.state.M, axis=2) / 2.0
    assert radius.max() <= 1.0
    assert (radius**3).mean() == pytest.approx(0.5, abs=0.01)
    assert np.abs(player.state.M.mean(axis=0)).max() < 0.05


# ------------------------------------------------------------------------------------------------------------- Langevin


@pytest.mark.slow
def test_chains_agree_with_the_posterior_by_importance_sampling() -> None:
    """After 60 rounds, forecasts against 50,000 draws of the prior weighted by the likelihood."""
    d, K, n, B = 2, 2, 60, 3.0
    X, y = plane(6, n, d, K)
    player = Aggregating(
        Problem(d, K, 1.0), np.random.default_rng(1), norm_bound=B, sampler="mala", chains=100, steps=30
    )
    for x, label in zip(X, y, strict=True):
        player.update(x, label)
    net = Aggregating(Problem(d, K, 1.0), np.random.default_rng(2), norm_bound=B, members=50_000)
    net.forecast_block(X, y, np.empty((n, K)))
    contexts = plane(7, 20, d, K)[0]
    expected = softmax(np.stack([net.predict(x) for x in contexts]))
    np.testing.assert_allclose(softmax(np.stack([player.predict(x) for x in contexts])), expected, atol=0.02)
    found = player.diagnostics()
    assert 0.4 < found["acceptance"] < 0.75
    assert 100 < found["effective_sample_size"] <= 100 * 30
    assert math.isnan(player.certificate())
    assert player.bound(n) is None


@pytest.mark.slow
def test_chains_stay_in_the_ball_and_answer_to_the_seed() -> None:
    X, y = plane(8, 20, 2, 3)
    runs = []
    for seed in (0, 0, 1):
        player = Aggregating(Problem(2, 3, 1.0), np.random.default_rng(seed), norm_bound=0.7, sampler="mala", chains=4)
        for x, label in zip(X, y, strict=True):
            player.update(x, label)
        assert np.linalg.norm(player.state.samples, axis=3).max() <= 0.7
        runs.append(player.predict(X[0]))
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.abs(runs[0] - runs[2]).max() > 1e-6


@pytest.mark.slow
def test_saved_chains_continue(tmp_path) -> None:
    X, y = plane(9, 40, 2, 3)
    problem = Problem(2, 3, 1.0)
    player = Aggregating(problem, np.random.default_rng(0), sampler="mala", chains=4)
    for x, label in zip(X[:20], y[:20], strict=True):
        player.update(x, label)
    player.save(tmp_path / "player.npz")
    again = Aggregating.load(tmp_path / "player.npz")
    for x, label in zip(X[20:], y[20:], strict=True):
        np.testing.assert_array_equal(player.predict(x), again.predict(x))
        player.update(x, label)
        again.update(x, label)


def test_refusals() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(IncompatibleError, match="d = 1 and K = 2"):
        Aggregating(Problem(2, 2, 1.0), rng, sampler="quadrature")
    with pytest.raises(IncompatibleError, match="K d of at most 60"):
        Aggregating(Problem(31, 2, 1.0), rng, sampler="mala")
    with pytest.raises(UsageError, match="needs a numpy Generator"):
        Aggregating(Problem(2, 2, 1.0), None)
    with pytest.raises(HorizonRequiredError, match="smoothing = 'theory'"):
        Aggregating(Problem(2, 2, 1.0), rng, smoothing="theory")
    assert Aggregating(Problem(2, 2, 1.0, horizon=50), rng, smoothing="theory").smoothing == 1 / 50
    assert Aggregating(Problem(1, 2, 1.0, horizon=10**4), None, sampler="quadrature", norm_bound=5.0,
                       nodes="theory").nodes > 801  # fmt: skip


def test_what_is_known_of_the_memory() -> None:
    problem, ask = Problem(3, 2, 1.0), {"members": 50, "steps": 5, "chains": 7}
    sizes = {"net": 50, "mala": 35, "quadrature": 801}
    assert {s: Aggregating.least_bytes(problem, {**ask, "sampler": s}) for s in sizes} == {
        s: 16.0 * size * 2 * 3 for s, size in sizes.items()
    }
    assert Aggregating.least_bytes(problem, {"sampler": "quadrature", "nodes": "theory"}) == 16.0 * 2 * 3


def test_chains_forecast_no_blocks() -> None:
    rng = np.random.default_rng(0)
    assert Aggregating(Problem(2, 2, 1.0), rng).plays_blocks
    chains = Aggregating(Problem(2, 2, 1.0), rng, sampler="mala")
    assert not chains.plays_blocks
    with pytest.raises(
        UsageError, match="sampler = 'mala' does not forecast blocks, because its chains draw in every round"
    ):
        chains.forecast_block(np.zeros((1, 2)), np.zeros(1, np.int64), np.empty((1, 2)))


@pytest.mark.parametrize(
    "wrong", [{"norm_bound": 0.0}, {"smoothing": 0.6}, {"smoothing": "x"}, {"members": 0}, {"sampler": "gibbs"},
              {"nodes": 0}, {"chains": 0}, {"steps": 0}]
)  # fmt: skip
def test_settings_out_of_range(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Aggregating(Problem(2, 2, 1.0), np.random.default_rng(0), **wrong)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [2.0**20, 2.0**-20])
def test_mala_does_not_depend_on_the_units_of_the_contexts(scale):
    answers = []
    for unit in (1.0, scale):
        settings = {"norm_bound": 4.0 / unit, "sampler": "mala", "chains": 4}
        player = Aggregating(Problem(2, 3, unit), np.random.default_rng(5), **settings)
        stream = np.random.default_rng(6)
        for _ in range(12):
            x, y = stream.uniform(-0.7, 0.7, 2), int(stream.integers(3))
            player.predict(unit * x)
            player.update(unit * x, y)
        answers.append(player.predict(unit * np.array([0.3, -0.5])))
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-9)


@pytest.mark.parametrize("kind", ["noise", "separable", "flat"])
@pytest.mark.parametrize(("nodes", "B"), [(1, 0.3), (2, 3.0), (3, 1.0), (5, 20.0), (8, 0.3)])
def test_the_quadratures_certificate_is_what_convexity_leaves(nodes: int, B: float, kind: str) -> None:
    """The least of the higher tangent between two nodes, of the outer ones beyond, on a fine grid of theta."""
    rng = np.random.default_rng(nodes)
    X = rng.uniform(0.2, 1.0, 12) * rng.choice([-1.0, 1.0], 12)
    y = {"noise": rng.integers(0, 2, 12), "separable": (X < 0).astype(int), "flat": np.zeros(12, int)}[kind]
    mu = 0.02 if nodes == 3 else 0.0
    player = Aggregating(Problem(1, 2, 1.0), None, norm_bound=B, sampler="quadrature", nodes=nodes, smoothing=mu)
    suffered = 0.0
    for x, label in zip(X[:, None], y, strict=True):
        suffered -= player.predict(x)[label]
        player.update(x, int(label))
    signed = np.where(y == 0, X, -X)
    theta = 2.0 * B * np.polynomial.legendre.leggauss(nodes)[0]
    losses = np.log1p(np.exp(-np.outer(theta, signed))).sum(axis=1)
    slopes = (-signed / (1.0 + np.exp(np.outer(theta, signed)))).sum(axis=1)
    at = np.linspace(-2.0 * B, 2.0 * B, 200_001)
    place = np.searchsorted(theta, at)
    low, high = np.maximum(place - 1, 0), np.minimum(place, nodes - 1)
    tangents = [losses[i] + slopes[i] * (at - theta[i]) for i in (low, high)]
    expected = min(suffered - np.maximum(*tangents).min(), player.bound(12))
    assert player.certificate() == pytest.approx(expected, abs=5e-3)


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.5])
def test_smoothing_mixes_the_uniform_distribution_in(mu: float) -> None:
    z = np.log([0.7, 0.2, 0.1])
    smooth(z, mu)
    np.testing.assert_allclose(np.exp(z), (1.0 - mu) * np.array([0.7, 0.2, 0.1]) + mu / 3.0, rtol=1e-14)
