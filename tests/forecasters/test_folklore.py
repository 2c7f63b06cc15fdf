"""FOLKLORE against direct minimisation of the corrected (3.3), against AIOLI at K = 2, its theorem and certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize, root

from banditlab.agents.exploration import Exploration
from banditlab.bounds.curvature import margin_range, tight_curvature
from banditlab.comparators import best_in_ball
from banditlab.engine.runner import trace_of_forecast
from banditlab.errors import PlayerError, UsageError
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.losses import log_sum_exp, logistic_gradient, logistic_loss, softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.joint_inverse import BATCH, UPDATES, dense
from banditlab.players.agent import Trace
from banditlab.problem import Problem


def contexts(seed: int, n: int, d: int, repeated: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return as_contexts(X[rng.integers(0, 3, n)] if repeated else X)


class Direct:
    """Algorithm 1 with full (Kd, Kd) matrices: (3.1), (3.3) and Lemma 8 word for word, minimised by scipy."""

    def __init__(self, K: int, d: int, lam: float, c: float, printed: bool = False) -> None:
        self.K, self.d, self.lam, self.c, self.printed = K, d, lam, c, printed
        self.A, self.G = lam * np.eye(K * d), np.zeros(K * d)
        self.spent = 0.0

    def linear_term(self, x: np.ndarray) -> np.ndarray:
        """B_t of Lemma 8."""
        K, d = self.K, self.d
        blocks = np.kron(np.eye(K), np.ones((d, d))) * np.linalg.inv(self.A)
        ones = np.tile(x, K)
        return ones / K - 0.5 * self.A @ blocks @ ones

    def objective(self, w: np.ndarray, x: np.ndarray, B_t: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        z = w.reshape(self.K, self.d) @ x
        s = softmax(z)
        value = w @ self.A @ w + self.G @ w + log_sum_exp(z) - z.mean() + B_t @ w
        gradient = 2 * self.A @ w + self.G + np.kron(s - 1 / self.K, x) + B_t
        return value, gradient, 2 * self.A + self.hessian(s, x)

    @staticmethod
    def hessian(s: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.kron(np.diag(s) - np.outer(s, s), np.outer(x, x))

    def minimiser(self, x: np.ndarray) -> np.ndarray:
        B_t = self.linear_term(x)
        found = minimize(
            lambda w: self.objective(w, x, B_t)[:2],
            np.zeros(self.K * self.d),
            jac=True,
            hess=lambda w: self.objective(w, x, B_t)[2],
            method="trust-exact",
            options={"gtol": 1e-10},
        )
        # A minimum of values near 100 is known to about sqrt(eps): the gradient's root is polished from there.
        polished = root(
            lambda w: self.objective(w, x, B_t)[1], found.x, jac=lambda w: self.objective(w, x, B_t)[2], tol=1e-13
        )
        np.testing.assert_allclose(polished.x, found.x, atol=1e-4)
        return polished.x

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.minimiser(x).reshape(self.K, self.d) @ x

    def update(self, x: np.ndarray, y: int) -> None:
        w = self.minimiser(x)
        W = w.reshape(self.K, self.d)
        s, B_t = softmax(W @ x), self.linear_term(x)
        gradient, H = logistic_gradient(W, x, y).ravel(), self.hessian(s, x)
        of_phi = np.kron(s - 1 / self.K, x) + B_t
        before = of_phi @ np.linalg.solve(self.A, of_phi)
        self.A = self.A + self.c * H
        self.G = self.G + gradient - (0 if self.printed else 2 * self.c * H @ w)
        after = (of_phi - gradient) @ np.linalg.solve(self.A, of_phi - gradient)
        self.spent += 0.25 * (after - before)  # Lemma 6


CASES = [
    (2, 3, 1.0, {}),
    (3, 3, 2.0, {"curvature": "tight"}),
    (5, 3, 5.0, {"regularization": 0.01}),
    (3, 2, 100.0, {}),
    (5, 2, 100.0, {"regularization": 1e-3, "curvature": "tight"}),
    (3, 3, 2.0, {"curvature": "printed", "linear_term": "printed"}),
]


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize(("K", "d", "B", "settings"), CASES)
@pytest.mark.few(4)
def test_equals_minimising_equation_3_3(K: int, d: int, B: float, settings: dict, repeated: bool) -> None:
    X = contexts(K, 40, d, repeated)
    y = np.random.default_rng(1).integers(0, K, len(X))
    folklore = FOLKLORE(Problem(d, K, 1.0), None, norm_bound=B, **settings)
    printed = folklore.linear_term == "printed"
    direct = Direct(K, d, folklore.regularization, folklore.curvature, printed)
    for x, label in zip(X, y, strict=True):
        np.testing.assert_allclose(folklore.predict(x), direct.predict(x), atol=1e-6)
        direct.update(x, label)
        folklore.update(x, label)
    if not printed:  # the certificate's terms are those of Lemma 6, exactly
        assert folklore.state.spent[0] == pytest.approx(direct.spent, rel=1e-6)


@pytest.mark.parametrize("B", [0.5, 5.0, 100.0])
def test_two_classes_are_matched_aioli(B: float) -> None:
    d, problem = 4, Problem(4, 2, 1.0)
    X, rng = contexts(7, 300, d), np.random.default_rng(7)
    folklore = FOLKLORE(problem, None, norm_bound=B)
    aioli = AIOLI(
        problem,
        None,
        norm_bound=B,
        virtual_weight=0.5,
        regularization=folklore.regularization / 2,
        curvature=folklore.curvature,
    )
    for x, label in zip(X, rng.integers(0, 2, len(X)), strict=True):
        z = folklore.predict(x)
        assert z[0] - z[1] == pytest.approx(aioli.predict(x)[0], abs=1e-9)
        folklore.update(x, label)
        aioli.update(x, label)


@pytest.mark.parametrize(("K", "B"), [(2, 3.0), (4, 1.0), (10, 30.0)])
def test_batches_predict_what_single_forecasts_do(K: int, B: float) -> None:
    d = 5
    X = contexts(2, 2 * BATCH + 17, d)
    folklore = FOLKLORE(Problem(d, K, 1.0), None, norm_bound=B, regularization=0.01)
    for t in range(60):
        folklore.update(X[t], t * t % K)
    many = folklore.predict_many(X)
    np.testing.assert_allclose(many, [folklore.predict(x) for x in X], atol=1e-9)


@pytest.mark.parametrize("d", [7, 20, 80])
def test_pending_updates_change_nothing(d: int) -> None:
    """Room for 1, 2, 8 updates: at every fill A^{-1} is the inverse of the summed A, singly, in batches and in V."""
    K, capacity = 3, {7: 1, 20: 2, 80: UPDATES}[d]
    X, rng = contexts(4, 2 * capacity + 3, d), np.random.default_rng(4)
    folklore = FOLKLORE(Problem(d, K, 1.0), None, norm_bound=2.0, regularization=0.1)
    A = folklore.regularization * np.eye(K * d)
    for t, (x, label) in enumerate(zip(X, rng.integers(0, K, len(X)), strict=True)):
        blocks = folklore.state.blocks
        assert blocks.F.shape[1] == K * capacity
        assert blocks.rows[0] == K * (t % capacity)
        np.testing.assert_allclose(dense(blocks), np.linalg.inv(A), atol=1e-11)
        many = folklore.predict_many(X)
        np.testing.assert_allclose(many, [folklore.predict(x) for x in X], atol=1e-11)
        A += folklore.curvature * Direct.hessian(softmax(many[t]), x)
        V = (dense(blocks) @ np.kron(np.eye(K), x[:, None])).reshape(K, d, K)
        folklore.update(x, label)
        np.testing.assert_allclose(blocks.V, V.transpose(0, 2, 1), atol=1e-11)


def test_a_forecast_before_the_update_leaves_no_trace() -> None:
    """An update takes over what a forecast at the same context has computed, and nothing of one at another context."""
    K, d = 3, 20
    X, rng = contexts(6, 50, d), np.random.default_rng(6)
    plain, asked, asked_else = (FOLKLORE(Problem(d, K, 1.0), None, norm_bound=3.0) for _ in range(3))
    for t, label in enumerate(rng.integers(0, K, len(X))):
        asked.predict(X[t])
        asked_else.predict(X[t])
        asked_else.predict(X[t - 1]) if t % 2 else asked_else.predict_many(X)
        for folklore in (plain, asked, asked_else):
            folklore.update(X[t], label)
        for folklore in (asked, asked_else):
            np.testing.assert_array_equal(folklore.predict(X[t]), plain.predict(X[t]))
            np.testing.assert_array_equal(folklore.state.h, plain.state.h)


@pytest.mark.parametrize("where", ["M", "F", "h"])
def test_a_broken_state_is_not_a_uniform_forecast(where: str) -> None:
    """NaN in the state: the logits are NaN, which whoever plays the forecaster refuses."""
    K, d, n = 3, 16, 5
    X = contexts(8, n, d)
    y = np.arange(n) % K
    reduction = Exploration(Problem(d, K, 1.0, n), np.random.default_rng(0), gamma=0.1)
    folklore = reduction.inner
    assert isinstance(folklore, FOLKLORE)
    folklore.update(X[0], 1)
    blocks = folklore.state.blocks
    {"M": blocks.M, "F": blocks.F, "h": folklore.state.h}[where][...] = np.nan
    assert np.isnan(folklore.predict(X[1])).all()
    assert np.isnan(folklore.predict_many(X)).all()
    with pytest.raises(PlayerError, match="not a distribution"):
        reduction.play_block(X, y, Trace.empty(n))
    logits = np.empty((n, K))
    folklore.forecast_block(X, y, logits)
    with pytest.raises(PlayerError, match="logits are not finite"):
        trace_of_forecast(logits, y)


@pytest.mark.parametrize("lam", [0.1, 5e-4])
def test_every_root_is_solved_at_any_regularization(lam: float) -> None:
    K, d = 10, 20
    X, rng = contexts(1, 300, d), np.random.default_rng(1)
    folklore = FOLKLORE(Problem(d, K, 1.0), None, norm_bound=5.0, regularization=lam)
    assert folklore.diagnostics() == {"unsolved_roots": 0}
    folklore.forecast_block(X, rng.integers(0, K, len(X)), np.empty((len(X), K)))
    assert folklore.diagnostics() == {"unsolved_roots": 0}


def play(folklore: FOLKLORE, X: np.ndarray, kind: str, seed: int) -> tuple[np.ndarray, float]:
    """Return the labels of a stream of the given kind, some of them chosen against the forecaster, and its loss."""
    K, rng = folklore.problem.n_classes, np.random.default_rng(seed)
    planted = rng.standard_normal((K, X.shape[1]))
    y, loss = np.empty(len(X), np.int64), 0.0
    for t, x in enumerate(X):
        z = folklore.predict(x)
        if kind == "noise":
            y[t] = rng.integers(K)
        elif kind == "separable":
            y[t] = np.argmax(planted @ x)
        elif kind == "flip":
            y[t] = np.argmax((1 if t < len(X) // 3 else -1) * planted @ x)
        else:
            y[t] = np.argmin(z)
        loss += float(logistic_loss(z, y[t]))
        folklore.update(x, y[t])
    return y, loss


@pytest.mark.parametrize("kind", ["noise", "separable", "flip", "adversarial"])
@pytest.mark.parametrize("curvature", ["simple", "tight"])
@pytest.mark.parametrize(("K", "B", "lam"), [(2, 1.0, "theory"), (3, 5.0, "theory"), (3, 3.0, 0.02), (6, 10.0, 1.0)])
def test_regret_below_certificate_below_bound(kind: str, curvature: str, K: int, B: float, lam: float | str) -> None:
    d, n = 3, 150
    X = contexts(K, n, d, repeated=kind == "flip")
    folklore = FOLKLORE(Problem(d, K, 1.0), None, norm_bound=B, curvature=curvature, regularization=lam)
    y, loss = play(folklore, X, kind, 3)
    assert loss - best_in_ball(X, np.eye(K)[y], B).loss <= folklore.certificate() + 1e-9
    assert folklore.certificate() <= folklore.bound(n)


@pytest.mark.parametrize("settings", [{"curvature": "printed"}, {"linear_term": "printed"}])
def test_printed_forms_have_no_guarantee(settings: dict) -> None:
    folklore = FOLKLORE(Problem(2, 3, 1.0), None, norm_bound=2.0, **settings)
    assert math.isnan(folklore.certificate())
    assert folklore.bound(10) is None


def test_settings() -> None:
    folklore = FOLKLORE(Problem(2, 5, 2.0), None, norm_bound=4.0)
    assert folklore.regularization == 1.0
    assert folklore.curvature == pytest.approx(1 / (2 * 4 * 2 + math.log(5) + 2))
    tight = FOLKLORE(Problem(2, 5, 2.0), None, norm_bound=4.0, curvature="tight")
    assert tight.curvature == tight_curvature(margin_range(5, 4.0, 2.0)) > folklore.curvature
    printed = FOLKLORE(Problem(2, 5, 2.0), None, norm_bound=4.0, curvature="printed")
    assert printed.curvature == pytest.approx(1 / (8 + math.log(5) / 2))


@pytest.mark.parametrize(
    "wrong", [{"norm_bound": -1.0}, {"regularization": "auto"}, {"curvature": 0.0}, {"linear_term": "other"}]
)
def test_refusals(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        FOLKLORE(Problem(2, 3, 1.0), None, **wrong)


def test_a_zero_context_is_a_uniform_forecast_that_teaches_nothing() -> None:
    folklore = FOLKLORE(Problem(2, 3, 1.0), None)
    x, zero = as_contexts([0.6, -0.8]), as_contexts([0.0, 0.0])
    folklore.update(x, 1)
    before = folklore.predict(x)
    np.testing.assert_array_equal(folklore.predict(zero), np.zeros(3))
    folklore.update(zero, 2)
    np.testing.assert_array_equal(folklore.predict(x), before)


def test_the_last_frobenius_ball() -> None:
    """lambda D^2 where nothing was learnt; the curvature must be admissible for rows that differ by sqrt(2) D."""
    for D in (0.5, 2.0):
        player = FOLKLORE(Problem(4, 3, 2.0), None, norm_bound=1.5, regularization=0.3)
        player.curvature = tight_curvature(margin_range(3, D / math.sqrt(2.0), 2.0))
        assert player.frobenius_certificate(D) == pytest.approx(0.3 * D**2, rel=1e-12)
        assert math.isfinite(player.frobenius_certificate(D * (1.0 - 1e-6)))
        assert math.isnan(player.frobenius_certificate(D * (1.0 + 1e-6)))
        with pytest.raises(UsageError, match="frobenius_bound"):
            player.frobenius_certificate(0.0)
