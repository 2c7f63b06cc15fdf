"""What Newtron keeps of each class's matrix, a diagonal or a block in a sketch: slow forms, where they are exact, odd cases.

The sketch itself has tests of its own, test_frequent_directions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from banditlab.agents.newtron import Newtron
from banditlab.errors import UsageError
from banditlab.losses import softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frequent_directions import ROWS, SHRINKS
from banditlab.numerics.frobenius_programme import REFERENCE, SOLUTION
from banditlab.players.agent import Trace
from banditlab.policy.growing import grown
from banditlab.problem import Decision, Problem

DIAGONAL = {"second_order": "diagonal"}
SKETCH = {"second_order": "sketch", "sketch_size": 4}
FORMS = [pytest.param(DIAGONAL, id="diagonal"), pytest.param(SKETCH, id="sketch")]


def make(K, d, **settings):
    return Newtron(Problem(d, K, 1.0), np.random.default_rng(7), **{"gamma": 0.1, **settings})


def play(agent, X, y):
    trace = Trace.empty(len(y))
    agent.play_block(X, y, trace)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("ball", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_contract(one_bit_contract, stream, form, ball):
    X, y = stream(3, 9, 120, noise=0.3)
    one_bit_contract(lambda: make(3, 9, beta=0.05, norm_bound=2.0, ball=ball, **form), X, y)


# ------------------------------------------------------------------------------------------------------- the slow form


class Direct:
    """C (K, d, d), b (K, d) as dense arrays, put back into their family after every lesson; solved by dense inverses."""

    def __init__(self, K, d, D, ball, rows):
        """`rows`: sketch_size, None for diagonals."""
        self.C, self.b = np.tile(np.eye(d) / D, (K, 1, 1)), np.zeros((K, d))
        self.D, self.rows = (D if ball else math.inf), rows

    def operator(self, i, nu):
        """Return G_ii (d, d) at nu."""
        N = np.linalg.inv(self.C + nu * np.eye(self.C.shape[1]))
        return N[i] - N[i] @ np.linalg.inv(N.sum(axis=0)) @ N[i]

    def learn(self, i, x, weight, step, W, nu, nu0, Q):
        """Add the term at W (K, d), the solution at nu; Q (r, d) is the basis, nu0 the multiplier of its inverses."""
        if self.rows is not None and len(Q) < self.rows:  # the basis takes x in, and nothing is lost
            self.C[i] += weight * np.outer(x, x)
            self.b[i] += step * x
            return
        P = np.eye(len(x)) if self.rows is None else Q.T @ Q
        Gx = self.operator(i, nu0 if self.rows else nu) @ P @ x
        if self.rows is not None:
            Gx += self.operator(i, nu) @ (x - P @ x)
        h = (step + weight * x @ W[i]) / (1.0 + weight * x @ Gx)
        F = weight * in_family(np.outer(x, x), Q if self.rows else None)
        self.C[i] += F
        self.b[i] += h * x - F @ (W[i] - h * Gx)

    def turn(self, W, nu, Q):
        self.C = np.array([in_family(C, Q) for C in self.C])
        self.b = -np.einsum("kij,kj->ki", self.C, W) - nu * W

    def solution(self):
        """Return W and nu."""

        def at(nu):
            N = np.linalg.inv(self.C + nu * np.eye(self.C.shape[1]))
            mu = np.linalg.solve(N.sum(axis=0), np.einsum("kij,kj->i", N, self.b))
            return np.einsum("kij,kj->ki", N, mu - self.b)

        if np.linalg.norm(at(0.0)) <= self.D:
            return at(0.0), 0.0
        nu = brentq(lambda nu: 1 / self.D - 1 / np.linalg.norm(at(nu)), 0.0, 1e6, xtol=1e-300, rtol=1e-14)
        return at(nu), nu


def in_family(A, Q):
    """Return A's diagonal where Q is None; else its block in Q (r, d), and the mean of its trace outside."""
    if Q is None:
        return np.diag(np.diag(A))
    block = Q @ A @ Q.T
    return Q.T @ block @ Q + (np.trace(A) - np.trace(block)) / (len(A) - len(Q)) * (np.eye(len(A)) - Q.T @ Q)


def basis(agent):
    sketch = agent.state.programme.sketch
    return sketch.Q[: sketch.counts[ROWS], -agent.problem.n_features :].copy()


def multipliers(agent):
    """Return nu and nu0."""
    if agent.second_order == "diagonal":
        return agent.state.programme.nu[0], None
    nu = agent.state.programme.block.nu
    return nu[SOLUTION], nu[REFERENCE]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"beta": 0.1, "ball": False},
        {"beta": 3.0, "gamma": 0.3, "norm_bound": 2.0},  # slack and binding rounds take turns
        {"beta": 0.02, "norm_bound": 3.0},
        {"norm_bound": 100.0, "beta": 0.5},
        {"beta": 0.0},
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_equals_dense_matrices_put_back_into_their_family(stream, form, settings):
    K, d, T = 3, 9, 150
    X, y = stream(K, d, T, noise=0.2)
    agent = make(K, d, **settings, **form)
    rows = form.get("sketch_size")
    D, binding, turned = math.sqrt(K) * agent.norm_bound, 0, 0
    direct = Direct(K, d, D, agent.ball, rows)
    for x, label in zip(X, y):
        W, (nu, nu0) = agent.weights.copy(), multipliers(agent)
        Q = None if rows is None else basis(agent)
        decision = agent.act(x)
        p = softmax(W @ x)
        np.testing.assert_allclose(decision.probabilities, (1 - agent.gamma) * p + agent.gamma / K, atol=1e-12)
        i, correct = decision.action, decision.action == label
        c = (-(1 - p[i]) if correct else p[i]) / decision.probabilities[i]
        weight = (decision.probabilities[i] if correct else 1.0) * agent.beta * c * c
        agent.learn(x, decision, correct)
        direct.learn(i, x, weight, c - weight * (W @ x)[i], W, nu, nu0, Q)
        expected, nu = direct.solution()
        binding += nu > 0.0
        np.testing.assert_allclose(agent.weights, expected, rtol=0, atol=1e-9 * max(1.0, np.linalg.norm(expected)))
        assert multipliers(agent)[0] == pytest.approx(nu, rel=1e-7, abs=1e-9)
        if rows is not None and agent.diagnostics()["sketch_shrinks"] > turned:
            turned += 1
            direct.turn(expected, nu, basis(agent))
    told = agent.diagnostics()
    assert (told["solves"], told["binding"], told["stalled"]) == (T, binding, 0)
    assert rows is None or told["sketch_shrinks"] == turned >= 20
    assert binding > T / 2 or not agent.ball or agent.beta >= 0.5
    assert binding == 0 or agent.ball


# ------------------------------------------------------------------------------------------------------- where it is full


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{"beta": 0.05, "norm_bound": 3.0}, {"beta": 0.01, "norm_bound": 1e3, "ball": False}, {}]
)
@pytest.mark.parametrize("lift", [True, False])
def test_where_contexts_span_no_more_directions_than_the_sketch_it_is_full(stream, settings, lift):
    """Six directions in fifteen dimensions, and as many rows as features."""
    X, y = stream(4, 6, 300, noise=0.2)
    if lift:
        X = np.hstack([X, X @ np.linspace(-1, 1, 6 * 9).reshape(6, 9)])
        X = as_contexts(X / np.linalg.norm(X, axis=1).max())
    d = X.shape[1]
    sketch, full = (make(4, d, **settings, second_order=word) for word in ("sketch", "full"))
    ours, theirs = play(sketch, X, y), play(full, X, y)
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(ours.p_true, theirs.p_true, rtol=0, atol=1e-9)
    np.testing.assert_allclose(sketch.weights, full.weights, rtol=0, atol=1e-9 * np.linalg.norm(full.weights))
    told = sketch.diagnostics()
    assert sketch.state.programme.sketch.counts[[ROWS, SHRINKS]].tolist() == [6, 0]
    assert (told["sketch_shrinks"], told["sketch_outside"]) == (0, 0.0)
    assert told["binding"] == full.diagnostics()["binding"]
    assert set(told) == {*full.diagnostics(), "sketch_shrinks", "sketch_outside"}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"beta": 0.05, "norm_bound": 3.0}, {"beta": 0.1, "ball": False}, {}])
def test_along_the_axes_diagonals_are_full(settings):
    rng = np.random.default_rng(5)
    X = as_contexts(np.eye(7)[rng.integers(7, size=300)] * rng.uniform(-1, 1, (300, 1)))
    y = rng.integers(4, size=300)
    diagonal, full = (make(4, 7, **settings, second_order=word) for word in ("diagonal", "full"))
    ours, theirs = play(diagonal, X, y), play(full, X, y)
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(ours.p_true, theirs.p_true, rtol=0, atol=1e-9)
    np.testing.assert_allclose(diagonal.weights, full.weights, rtol=0, atol=1e-9)
    assert diagonal.diagnostics()["binding"] == full.diagnostics()["binding"]


# ------------------------------------------------------------------------------------------------------- odd cases


def near_a_subspace(K, d, rank, T, noise):
    """Contexts (T, d) of norm 1, labels (T,) of a planted matrix in the subspace, one in twenty at random."""
    rng = np.random.default_rng(0)
    Z, axes = rng.standard_normal((T, rank)), np.linalg.qr(rng.standard_normal((d, rank)))[0].T
    y = np.argmax(Z @ rng.standard_normal((rank, K)), axis=1)
    X = Z @ axes + noise * math.sqrt(rank / d) * rng.standard_normal((T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-12)
    return as_contexts(X), np.where(rng.random(T) < 0.05, rng.integers(K, size=T), y).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"ball": False, "norm_bound": 100.0}, {"norm_bound": 30.0}])
@pytest.mark.parametrize(("form", "points"), [(DIAGONAL, 12.0), ({"second_order": "sketch", "sketch_size": 8}, 4.0)])
def test_mistakes_are_about_those_of_full_matrices(form, points, settings):
    """Also that a long run ends as feasible as it began: columns that sum to zero, the ball, no drift."""
    K, T = 5, 4000
    X, y = near_a_subspace(K, 60, 6, T, 0.5)
    full, less = make(K, 60, beta=0.01, **settings), make(K, 60, beta=0.01, **settings, **form)
    errors = [100.0 * np.mean(~play(agent, X, y).correct[T // 2 :]) for agent in (full, less)]
    assert errors[0] < 50.0
    assert errors[1] < errors[0] + points
    W, told = less.weights, less.diagnostics()
    assert np.abs(W.sum(axis=0)).max() < 1e-10 * np.linalg.norm(W)
    assert not less.ball or np.linalg.norm(W) <= math.sqrt(K) * less.norm_bound * (1.0 + 1e-11)
    assert told["stalled"] == 0
    assert told.get("drift", 0.0) < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("ball", [True, False])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("K", "d", "size"), [(2, 1, 1.0), (3, 9, 0.0), (3, 9, 1e-200), (3, 9, 1e-160), (1000, 20, 1.0)]
)
def test_odd_sizes_and_contexts_without_length(form, ball, K, d, size):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, d))
    X = as_contexts(X * (size / np.linalg.norm(X, axis=1, keepdims=True) / (1.0 + 1e-12)))
    agent = make(K, d, beta=0.05, ball=ball, **form)
    trace = play(agent, X, rng.integers(K, size=40))
    assert np.isfinite(trace.p_true).all()
    assert np.isfinite(agent.weights).all()
    assert agent.diagnostics()["stalled"] == 0
    if size < 1.0:
        assert np.abs(agent.weights @ X[0]).max() < 1e-100


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_programme_of_nan_ends_and_is_counted(form):
    agent = make(3, 9, **form)
    for t in range(8):
        agent.learn(np.eye(9)[t], Decision(1, np.full(3, 1 / 3), False, np.array([1 / 3, 0.0])), False)
    assert agent.diagnostics()["stalled"] == 0
    agent.state.programme.r[:] = math.nan
    agent.learn(np.eye(9)[8], Decision(1, np.full(3, 1 / 3), False, np.array([1 / 3, 0.0])), False)
    assert agent.diagnostics()["stalled"] == 1


def test_settings():
    for chosen, message in (
        ({"second_order": "half"}, "second_order must be one of 'full', 'diagonal', 'sketch', got 'half'"),
        ({"second_order": "sketch", "sketch_size": 0}, "sketch_size must be at least 1, got 0"),
        ({"sketch_size": 8}, "sketch_size is read by second_order = 'sketch' only, and this one is 'full'"),
    ):
        with pytest.raises(UsageError, match=message):
            make(3, 4, **chosen)
    problem = Problem(1024, 20, 1.0)
    least = [Newtron.least_bytes(problem, {"second_order": word}) for word in ("full", "sketch", "diagonal")]
    assert least[0] == Newtron.least_bytes(problem, {}) > 40 * least[1] > 40 * least[2]
    assert make(3, 4, **SKETCH).bound(100) is make(3, 4).bound(100) is None
    with pytest.raises(UsageError, match="cannot take another class"):
        grown(make(3, 4, **SKETCH))
