"""Forecasters by hand: steps of their solvers, what rounding is allowed, room and memory, where promises end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from banditlab.bounds.aggregating import (
    aggregating_fine_quadrature,
    aggregating_quadrature,
    quadrature_error,
    quadrature_nodes,
)
from banditlab.bounds.aioli import aioli_theorem_4
from banditlab.bounds.folklore import folklore, folklore_any_regularization
from banditlab.bounds.gaf import gaf, gaf_samples, gaf_sampling
from banditlab.errors import IncompatibleError, UsageError
from banditlab.forecasters import folklore_direct, ftrl
from banditlab.forecasters.aggregating import Aggregating
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.aioli_direct import AIOLIDirect
from banditlab.forecasters.folklore import FOLKLORE, sizes
from banditlab.forecasters.folklore_direct import FolkloreDirect
from banditlab.forecasters.fourier_aioli import FourierAIOLI
from banditlab.forecasters.fourier_folklore import FourierFOLKLORE
from banditlab.forecasters.ftrl import FTRL
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.gaf_fresh import GAFFresh
from banditlab.forecasters.grid import BGrid
from banditlab.forecasters.kernel_aioli import KernelAIOLI
from banditlab.forecasters.kernel_folklore import KernelFOLKLORE
from banditlab.forecasters.ons import ONS, note_doubt
from banditlab.forecasters.primal_dual import begins_dual, certified, refuse_primal
from banditlab.forecasters.soft_labels import as_distribution
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.gram_coordinates import Span, Spanned
from banditlab.numerics.joint_inverse import CANARY, EPSILON, Blocks
from banditlab.numerics.kernel_quadratic import Dual
from banditlab.problem import Problem


def contexts(n: int, d: int, seed: int = 0) -> Any:
    X = np.random.default_rng(seed).standard_normal((n, d))
    return as_contexts(X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None])


# ---------------------------------------------------------------------------------------------------------- FTRL's solver


def two_rows(x: float, n: float) -> tuple[Any, Any, Any]:
    """Return the state of two classes and one feature, its factor the identity, and n examples of class 0 at x."""
    return FTRL(Problem(1, 2, 1.0), None, regularization=0.5).state, np.array([[x]]), np.array([[n, 0.0]])


def loss(margin: float, n: float) -> float:
    return n * math.log1p(math.exp(-margin))


@pytest.mark.parametrize(
    ("slope", "x", "weight"),
    [
        (5000.0, 1.0, 30.0 / 16.0),  # logits may change by 30; then halved until the loss falls enough
        (1.5, 100.0, 0.3 / 16.0),
        (0.9, 100.0, math.sqrt(0.45) / 32.0),  # near the minimum steps are as long as Newton has them
    ],
)
def test_steps_far_from_the_minimum_are_cut(slope: float, x: float, weight: float) -> None:
    step = math.sqrt(0.5 * slope)
    state, X, C = two_rows(x, 2.0 * step / x)
    value = ftrl.objective(state, X, C, 1e-30)
    assert state.g.tolist() == pytest.approx([-step, step])
    now, size = ftrl.damped_step(state, X, C, 1e-30, value)
    assert state.W.ravel().tolist() == pytest.approx([weight, -weight], rel=1e-12)
    assert size == pytest.approx(step)
    assert now == pytest.approx(loss(2.0 * weight * x, 2.0 * step / x), rel=1e-9)


F0 = 2.0 * math.log(2.0)
SHORT = math.sqrt(0.5 * 2.2e-10)
"""Of such a step what F should lose is less than 1e-10 (1 + |F|)."""


@pytest.mark.parametrize(
    ("step", "claimed", "taken"),
    [
        (0.1, lambda end: end + 0.005 * (1 + 1e-6), 1.0),  # F falls by a quarter of g'H^{-1}g
        (0.1, lambda end: end + 0.005 * (1 - 1e-6), 0.0),  # never enough: back to where it was
        (SHORT, lambda end: end - 2.2e-9, 1.0),  # rounding hides what F loses: a billionth of 1 + |F| is none
        (SHORT, lambda end: end - 2.6e-9, 0.0),
        (math.sqrt(0.5 * 2.5e-10), lambda end: end - 1e-9, 0.0),  # too long a step for that
        (-0.1, lambda end: F0 - 2.0e-9, 2.0**-34),  # uphill: halved until it is below 1e-10, and F hardly rises
        (-0.1, lambda end: F0 - 2.6e-9, 0.0),
    ],
)
def test_steps_are_halved_until_the_objective_falls_or_rounding_hides_it(
    step: float, claimed: Any, taken: float
) -> None:
    """Two examples at 1, F = 2 ln(1 + e^-margin); `claimed` is F before the step, as the caller has it."""
    state, X, C = two_rows(1.0, 2.0)
    state.g[:] = -step, step
    _, size = ftrl.damped_step(state, X, C, 1e-30, claimed(loss(2.0 * step, 2.0)))
    assert size == pytest.approx(abs(step))
    if taken:
        assert state.W.ravel().tolist() == pytest.approx([taken * step, -taken * step], rel=1e-4)
    else:
        assert np.abs(state.W).max() < 1e-15


def test_a_hessian_without_a_factor_gets_a_ridge_as_small_as_will_do() -> None:
    """Traces of 2 and a curvature of -1e-14: a ridge of 2e-15 is too little, a hundred times that is enough."""
    state = FTRL(Problem(2, 2, 1.0), None, regularization=0.5).state
    ftrl.factor_hessian(state, np.eye(2), np.array([[4.0, 0.0], [-4e-14, 0.0]]), 1e-30)
    assert state.factored[0] == 3
    assert state.L[1, 1] ** -2 == pytest.approx(1.9e-13, rel=1e-2, abs=0.0)
    ftrl.factor_hessian(state, np.eye(2), np.full((2, 2), np.nan), 1e-30)
    assert state.factored[0] == 3 + 12


def test_what_is_a_factor_and_how_far_a_step_goes() -> None:
    for pivots, good in (
        ([1.0, 0.5], True),
        ([1.0, 0.0], False),
        ([0.0, 1.0], False),
        ([math.inf, 1.0], False),
        ([1.0, math.nan], False),
        ([-1.0, 1.0], False),
    ):
        assert ftrl.has_factor(np.diag(pivots)) == good
    X = as_contexts([[1.0, 1.0], [0.0, 2.0]])
    assert ftrl.farthest(np.array([1.0, 2.0, -3.0, 4.0]), X, 2) == 8.0
    assert ftrl.farthest(np.array([0.1, 0.0, -0.2, 0.1]), X, 2) == pytest.approx(0.2)
    assert ftrl.largest(np.array([0.1, -0.3])) == 0.3


def test_ftrls_certificate_wherever_its_weights_are() -> None:
    """lambda K B^2 + the loss suffered - max(0, F(W) - |grad F(W)|^2 / (4 lambda))."""
    K, d, B = 3, 2, 1.5
    X, y = contexts(12, d), np.arange(12) % K
    for lam in (0.7, 40.0):
        player, suffered = FTRL(Problem(d, K, 1.0), None, norm_bound=B, regularization=lam), 0.0
        for x, label in zip(X, y, strict=True):
            z = player.predict(x)
            suffered += math.log(np.exp(z).sum()) - z[label]
            player.update(x, int(label))
        for W in (0.3 * np.eye(K, d), np.zeros((K, d)), np.array([[1.0, -2.0], [0.5, 0.0], [0.0, 1.0]])):
            player.state.W[:] = W
            P = np.exp(X @ W.T)
            P /= P.sum(axis=1, keepdims=True)
            F = -np.log(P[np.arange(12), y]).sum() + lam * (W**2).sum()
            slope = (P - np.eye(K)[y]).T @ X + 2.0 * lam * W
            least = max(0.0, F - (slope**2).sum() / (4.0 * lam))
            assert player.certificate() == pytest.approx(lam * K * B**2 + suffered - least, rel=1e-9)
    player.state.W[0, 0] = np.inf
    with np.errstate(all="ignore"):
        assert player.certificate() == pytest.approx(40.0 * K * B**2 + suffered, rel=1e-9)


# -------------------------------------------------------------------------------------------------- what rounding may do


@pytest.mark.parametrize("v", [(1.0, 0.5), (1.0, -1.0)])
def test_onss_allowance_for_rounding(v: tuple[float, float]) -> None:
    """B = 2, step 4, one feature: what is left of v, and of its rounding, eight times; the projection's 1e-12."""
    state = ONS(Problem(1, 2, 3.0), None, norm_bound=2.0, step=4.0, regularization=7.0).state
    state.g[:], state.v[:], state.doubt[:] = (3.0, 4.0), v, (0.0, 7.0, 1.0)
    note_doubt(state, np.array([1.5]), 0.5)
    left = abs(v[0] + v[1])
    off = CANARY * 0.5 * (left + EPSILON * math.hypot(*v))
    metric = 7.0 + 25.0
    across = 2.0 * math.sqrt(2.0) * 2.0 * metric
    found = across * (off + 1e-12 * math.sqrt(2.0) * 2.0 / 4.0) + 0.5 * 4.0 * 5.0 * off
    assert state.doubt[1:].tolist() == [metric, 2.25]
    assert state.doubt[0] == pytest.approx(found, rel=1e-9, abs=0.0)
    note_doubt(state, np.array([0.5]), 0.0)
    assert state.doubt[2] == 2.25  # the longest stays


def test_onss_step_is_cut_off_at_e_to_the_340() -> None:
    for B, exponent in ((169.0, 338.0), (170.0, 340.0), (200.0, 340.0)):
        assert ONS(Problem(2, 4, 1.0), None, norm_bound=B).step == pytest.approx(6.0 * math.exp(exponent))


@pytest.mark.parametrize(
    ("total", "doubt", "found"),
    [
        (0.5, 0.9e-9, 0.5),
        (0.5, 1.1e-9, 0.5 + 1.1e-9),
        (0.5, 0.9e-3, 0.5 + 0.9e-3),
        (0.5, 1.1e-3, math.nan),
        (-20.0, 1.9e-8, -20.0),
        (-20.0, 2.1e-8, -20.0 + 2.1e-8),
        (20.0, 0.0199, 20.0199),
        (20.0, 0.0201, math.nan),
        (20.0, math.nan, math.nan),
    ],
)
def test_a_certificate_in_doubt(total: float, doubt: float, found: float) -> None:
    np.testing.assert_allclose(certified(total, doubt), found, rtol=1e-15)


def test_kernel_aiolis_allowance_grows_with_the_rounds() -> None:
    """Four units of the last place of k(x, x)/lambda a round: with R = 2 and lambda = 1/2, 7.1e-15."""
    player = KernelAIOLI(Problem(3, 2, 2.0), None, kernel="linear", regularization=0.5)
    price = 0.5 * 4.0
    for rounds, added in ((200_000, 0.0), (1_000_000, 4.0 * 2.0**-52 * 8.0 * 1e6)):
        player.state.dual.n[0] = rounds
        assert player.certificate() - price == pytest.approx(added, rel=1e-6, abs=1e-12)


def test_folklores_residual_and_centre() -> None:
    At = np.diag([0.5, 1.0])
    assert sizes(np.array([3.0, -5.0]), At, 1e-3) == pytest.approx((6e-3, 2.75))
    assert sizes(np.array([0.25, 0.5]), At, 1e-3) == pytest.approx((1.5e-3, 0.0))


def test_a_residual_of_a_billionth_counts_as_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    player = FolkloreDirect(Problem(2, 2, 1.0), None)
    for residual, unsolved in ((1e-9, 0), (1.01e-9, 1), (1.9e-9, 2)):
        monkeypatch.setattr(folklore_direct, "newton_root", lambda g, At, r=residual: (g, r))
        player.update(np.array([0.5, 0.5]), 1)
        assert player.diagnostics() == {"unsolved_roots": unsolved}


# ------------------------------------------------------------------------------------------------------- room and memory


def test_when_the_dual_form_is_taken() -> None:
    problem = Problem(50, 3, 1.0)
    size = Blocks.size(3, 50)
    for form, most, dual in (
        ("auto", 4.0, False),
        ("auto", size / 2**30, False),  # just enough
        ("auto", (size - 1) / 2**30, True),
        ("primal", 1e-9, False),
        ("dual", 4.0, True),
    ):
        assert begins_dual(form, most, problem) is dual
    assert not FOLKLORE(problem, None, form="primal", max_memory=size / 2**30).dual
    with pytest.raises(UsageError, match=r"form = 'primal' takes 0\.0 GiB at K = 3, d = 50, above max_memory"):
        FOLKLORE(problem, None, form="primal", max_memory=(size - 1) / 2**30)
    refuse_primal("it takes", 4.0 * 2**30, problem, "give less")
    with pytest.raises(IncompatibleError, match=r"^it takes 4\.1 GiB at K = 3, d = 50, above 4: give less$"):
        refuse_primal("it takes", 4.1 * 2**30, problem, "give less")
    with pytest.raises(IncompatibleError, match=r"74\.5 GiB at K = 10, d = 10,000, above 4: give fewer features"):
        FolkloreDirect(Problem(10_000, 10, 1.0), None)


def test_a_span_begins_with_16_places_and_grows_by_a_quarter_and_some() -> None:
    player, X = FOLKLORE(Problem(90, 2, 1.0), None, form="dual"), as_contexts(np.eye(90))
    rooms = []
    for t in range(88):
        rooms.append(player.state.learner.h.shape[1])
        assert player.state.span.room == rooms[-1] > player.state.span.rank[0]
        player.update(X[t], t % 2)
    assert [(rooms.index(room), room) for room in sorted(set(rooms))] == [
        (0, 16),
        (15, 32),
        (31, 56),
        (55, 80),
        (79, 90),
    ]


def test_a_kernels_span_begins_with_16_places_and_doubles() -> None:
    player, rng = KernelFOLKLORE(Problem(3, 2, 10.0), None, bandwidth=0.3), np.random.default_rng(0)
    rooms = []
    for t in range(34):
        rooms.append(len(player.state.span.L))
        assert player.state.learner.h.shape == (2, rooms[-1])
        assert player.state.span.limits() == {"rank": (0, rooms[-1] - 1)}
        player.update(0.5 * rng.standard_normal(3), t % 2)
    assert player.state.span.rank[0] == 34
    again = KernelFOLKLORE(Problem(3, 2, 10.0), None, bandwidth=0.3)
    again.set_state(player.get_state())
    assert again.state.learner.h.shape == (2, 64)
    assert [(rooms.index(room), room) for room in sorted(set(rooms))] == [(0, 16), (15, 32), (31, 64)]


@pytest.mark.parametrize(
    ("d", "settings", "said"),
    [
        (
            20_000,
            {"member": "aioli"},
            "its 9 members take 26.8 GiB at K = 2, d = 20,000, above 4: give size as 1 or less",
        ),
        (
            30_000,
            {"member": "aioli", "size": 1, "smallest": 1.0},
            "its member takes 6.7 GiB at K = 2, d = 30,000, above 4: give fewer",
        ),
        (
            7_500,
            {"size": 3},
            "its 3 members take 5.0 GiB at K = 2, d = 7,500, above 4: give size as 2 or less, or take",
        ),
    ],
)
def test_a_grid_that_is_too_large_says_what_fits(d: int, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(IncompatibleError, match=f"^b-grid: {said}"):
        BGrid(Problem(d, 2, 1.0), None, **settings)


def test_memory_of_members_and_nodes() -> None:
    problem = Problem(120, 3, 1.0)
    assert BGrid.least_bytes(problem, {"member": "aioli"}) == 4.0 * 9 * 3 * 120**2
    assert GAF.least_bytes(problem, {"samples": 50}) - GAF.least_bytes(problem, {"nodes": "cubature"}) == 600.0
    assert BGrid.settings_at(1000.0, {"smallest": 1.0}) == {"smallest": 1.0, "norm_bound": 1000.0}


def test_positions_in_a_context() -> None:
    assert AIOLI(Problem(4, 2, 1.0), None).state.limits() == {"nonzero": (0, 3)}


def test_where_aioli_keeps_a_root() -> None:
    """Above R^2 / lambda = 1e7: at R = 2 from lambda = 4e-7 down."""
    for lam, rooted in ((1.0, False), (4e-7, False), (3.999e-7, True)):
        assert AIOLI(Problem(3, 2, 2.0), None, regularization=lam).rooted is rooted


# --------------------------------------------------------------------------------------------------- settings and promises


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


def test_where_the_quadrature_counts_as_exact() -> None:
    player = Aggregating(Problem(1, 2, 1.0, 400), None, norm_bound=2.0, sampler="quadrature", nodes="theory")
    assert player.nodes == 801  # the least, and more than enough
    w0 = float(player.state.w0.max())
    for rounds in (10, 400):
        assert player.bound(rounds) == aggregating_fine_quadrature(rounds, 2.0, 1.0, 801, 0.0)
    assert player.bound(401) == aggregating_quadrature(401, 2.0, 1.0, math.exp(w0), 0.0)
    long = Aggregating(Problem(1, 2, 1.0, 10**4), None, norm_bound=5.0, sampler="quadrature", nodes="theory")
    assert long.nodes == quadrature_nodes(10**4, 5.0, 1.0, 1e-6) > 801
    assert quadrature_error(10**4, 5.0, 1.0, long.nodes) <= 1e-6


def test_settings_of_the_aggregating_forecaster_at_their_edges() -> None:
    rng = np.random.default_rng(0)
    assert Aggregating(Problem(1, 2, 1.0, 1), rng, smoothing="theory", members=1).smoothing == 0.5
    assert Aggregating(Problem(30, 2, 1.0), rng, sampler="mala", chains=1, steps=1).sampler == "mala"
    with pytest.raises(IncompatibleError, match="is for K d up to 60, got 61"):
        Aggregating(Problem(1, 61, 1.0), rng, sampler="mala")
    for B, d, R, step in ((3.0, 2, 1.0, 0.45), (3.0, 2, 4.0, 0.0625), (30.0, 5, 0.5, 4.0), (0.5, 4, 3.0, 0.00625)):
        chains = Aggregating(Problem(d, 3, R), rng, norm_bound=B, sampler="mala", chains=2, steps=3)
        assert chains.diagnostics()["step"] == pytest.approx(step)
        assert chains.diagnostics()["acceptance"] == 0.0
    found = set()
    for seed in range(8):
        one = Aggregating(Problem(2, 2, 1.0), np.random.default_rng(seed), sampler="mala", chains=1, steps=1)
        one.update(np.array([0.6, 0.8]), 0)
        found.add(one.diagnostics()["acceptance"])
    assert found <= {0.0, 1.0}
    assert 1.0 in found


def test_aioli_direct_has_theorem_4_from_its_number_of_steps_on() -> None:
    player = AIOLIDirect(Problem(4, 2, 1.0, 60), None, norm_bound=2.0, steps="theory")
    assert player.bound(60) == aioli_theorem_4(60, 4, 4.0, 1.0, 1.0 / 16.0)
    assert AIOLIDirect(Problem(4, 2, 1.0, 60), None, norm_bound=2.0, steps=player.steps - 1).bound(60) > player.bound(
        60
    )
    for lam, holds in ((4.004e-12, True), (4e-12, True), (3.996e-12, False)):  # R^2 / lambda = 1e12
        assert math.isfinite(AIOLIDirect(Problem(4, 2, 2.0), None, regularization=lam).certificate()) is holds


def test_theorem_3_holds_up_to_a_curvature_that_its_matrix_covers() -> None:
    """c R^2 <= lambda; its variant for the other lambda says more there."""
    for cls in (FOLKLORE, FolkloreDirect):
        for lam, theorem in ((0.1, folklore), (0.0999, folklore_any_regularization)):
            player = cls(Problem(3, 3, 1.0), None, regularization=lam, curvature=0.1)
            assert player.bound(50) == theorem(50, 3, 3, 1.0, 1.0, lam, 0.1)


@pytest.mark.parametrize("cls", [FOLKLORE, GAF])
def test_roots_that_are_not_reached_are_counted(cls: Any) -> None:
    player = cls(Problem(3, 3, 1.0), np.random.default_rng(0), regularization=0.5)
    for t in range(2):
        player.update(np.array([0.6, 0.0, 0.8]), t)
    assert player.diagnostics() == {"unsolved_roots": 0}
    player.learner.h[0, 0] = np.nan
    for unsolved in (1, 2):
        player.update(np.array([0.6, 0.0, 0.8]), 0)
        assert player.diagnostics() == {"unsolved_roots": unsolved}


def test_no_accuracy_is_asked_of_newtons_method() -> None:
    player = FolkloreDirect(Problem(3, 3, 1.0), None, accuracy="theory")
    assert player.accuracy == 0.0
    assert np.isfinite(player.predict(np.full(3, 0.5))).all()


def test_nodes_of_a_product_rule_are_the_largest_power() -> None:
    for K, samples, points in ((3, 9, 9), (3, 15, 9), (3, 16, 16), (4, 64, 64), (4, 63, 27), (2, 5, 5)):
        player = GAF(Problem(2, K, 1.0), None, nodes="gauss-hermite", samples=samples)
        assert len(player.state.nodes.points) == points


def test_gafs_bound_counts_antithetic_pairs_once_and_needs_what_it_is_proved_for() -> None:
    problem, rng = Problem(2, 3, 1.0), np.random.default_rng(0)
    made = {"regularization": 2.0, "smoothing": 0.1}
    for samples, independent in ((2, 1), (10, 5)):
        player = GAF(problem, rng, samples=samples, **made)
        exact = gaf(10, 2, 3, 1.0, 1.0, 2.0, player.curvature)
        assert player.bound(10) == pytest.approx(exact + gaf_sampling(10, 3, independent, 0.1))
    for other in ({"nodes": "cubature"}, {"covariance": "printed"}, {"linear_term": "printed"}, {"smoothing": 0.0}):
        assert GAF(problem, rng, **(made | other)).bound(10) is None
    assert GAF(problem, rng, smoothing=0.5).smoothing == 0.5


@pytest.mark.parametrize(("kernel", "radius", "dimension"), [("linear", 2.0, 3), ("polynomial", 5.0, 10)])
def test_a_kernels_bound_is_in_the_dimensions_that_rounds_can_span(kernel: Any, radius: float, dimension: int) -> None:
    player = KernelFOLKLORE(Problem(3, 3, 2.0), None, kernel=kernel, norm_bound=1.5, tolerance=1e-4)
    for rounds, d in ((500, dimension), (2, 2), (0, 1)):
        theorem = folklore_any_regularization(rounds, d, 3, 1.5, radius, player.regularization, player.curvature)
        assert player.bound(rounds) == pytest.approx(theorem + 2.0 * 1.5 * 1e-4 * radius * rounds)
    exact = KernelFOLKLORE(Problem(3, 3, 2.0), None, kernel=kernel, norm_bound=1.5, tolerance=0.0)
    theorem = folklore_any_regularization(500, dimension, 3, 1.5, radius, player.regularization, player.curvature)
    assert exact.bound(500) - theorem == pytest.approx(2.0 * 1.5 * 1e-7 * radius * 500, rel=1e-6)


def test_the_room_has_a_door() -> None:
    from banditlab.forecasters import GAF as found

    assert found is GAF


def test_features_come_in_pairs() -> None:
    rng = np.random.default_rng(0)
    for cls in (FourierAIOLI, FourierFOLKLORE):
        assert cls(Problem(2, 2, 1.0), rng, features=2).features == 2
        with pytest.raises(UsageError, match="features must be at least 2"):
            cls(Problem(2, 2, 1.0), rng, features=0)


def test_soft_labels_sum_to_1_to_a_billionth() -> None:
    assert as_distribution([1.0, 0.9e-9, 0.0], 3).sum() > 1.0
    for far in (1.1e-9, 1.9e-9):
        for label in ([1.0, far, 0.0], [1.0 - far, 0.0, 0.0]):
            with pytest.raises(UsageError, match="sum to 1"):
                as_distribution(label, 3)


# -------------------------------------------------------------------------------------------------- the dual form's edges


def span_of(d: int, **settings: Any) -> FOLKLORE:
    """Return a learner of two classes in the dual form that may go over to the primal one."""
    player = FOLKLORE(Problem(d, 2, 1.0), None, form="dual", norm_bound=1.5, **settings)
    player.form = "auto"
    return player


@pytest.mark.parametrize(("d", "last"), [(40, 30), (64, 54)])
def test_the_form_changes_where_the_next_room_exceeds_seven_eighths_of_the_space(d: int, last: int) -> None:
    """Of d = 40 they are 35, and the rooms 16, 32, 40; of 64 they are 56, which the room 56 does not exceed."""
    player, forms = span_of(d), []
    for t, x in enumerate(as_contexts(np.eye(d))):
        player.update(x, t % 2)
        forms.append(player.dual)
    assert forms.index(False) == last
    assert not player.sparse


@pytest.mark.parametrize("missing", [0, 1])
def test_the_form_changes_where_the_primal_one_fits(missing: int) -> None:
    d = 40
    player, X = span_of(d), as_contexts(np.eye(d))
    for t, x in enumerate(X[:30]):
        player.update(x, t % 2)
    player.max_memory = (Blocks.size(2, d) - missing) / 2**30
    player.update(X[30], 0)
    assert player.dual == bool(missing)
    if missing:
        with pytest.raises(UsageError, match="has learnt 31 independent contexts"):
            player.update(X[31], 0)


def test_what_the_span_leaves_out_is_in_the_certificate() -> None:
    """2 B times its length: B = 1.5."""
    player = span_of(20)
    price = player.regularization * 2 * 1.5**2
    assert player.certificate() == pytest.approx(price)
    player.state.span.lost[0] = 1e-6
    assert player.certificate() - price == pytest.approx(3e-6, rel=1e-6)
    assert float(player._primal().doubt[0]) == pytest.approx(3e-6, rel=1e-6)


@pytest.mark.slow
def test_places_for_sparse_contexts_are_those_of_the_fullest() -> None:
    d = 30
    X = csr_array(np.eye(d))
    player = span_of(d)
    player.predict_many(X[:2])
    assert player.state.span.width == 1
    player.predict_many(csr_array(0.5 * np.eye(d) + 0.5 * np.eye(d, k=3))[:2])
    assert player.state.span.width == 2
    player.predict_many(np.eye(d)[:2])
    player.update(0.4 * np.ones(d) / math.sqrt(d), 1)
    assert player.state.span.width == d
    size = Blocks.size(2, 16) + Span.size(16, d, 1)
    span_of(d, max_memory=size / 2**30).predict_many(X)
    with pytest.raises(UsageError, match="max_memory"):
        span_of(d, max_memory=(size - 1) / 2**30).predict_many(X)


def test_a_dual_state_is_taken_over_where_its_arrays_belong_together() -> None:
    for d in (1, 10, 20):
        player, other = span_of(d), span_of(d)
        for t in range(d):
            player.update(np.eye(d)[t] / 2.0, t % 2)
            if player.dual:
                other.set_state(player.get_state())
                np.testing.assert_array_equal(other.predict_many(np.eye(d)), player.predict_many(np.eye(d)))
    player = span_of(20)
    given = player.get_state()
    span, learner = given["state"]
    blocks = learner.blocks
    with pytest.raises(UsageError, match=r"of one room of 1 \.\.\. 10, got arrays of"):
        span_of(10).set_state(given)
    for wrong in (
        Spanned(span._replace(L=np.zeros((16, 17))), learner),
        Spanned(span, learner._replace(blocks=blocks._replace(M=np.zeros((3, 16, 17))))),
        Spanned(span, learner._replace(blocks=blocks._replace(M=np.zeros((2, 16, 16))))),
    ):
        with pytest.raises(UsageError, match=r"of one room of 1 \.\.\. 20, got arrays of"):
            player.set_state(given | {"state": wrong})
    with pytest.raises(UsageError, match=r"state\.state is in the dual form, but form = 'primal'"):
        FOLKLORE(Problem(20, 2, 1.0), None, form="primal", norm_bound=1.5).set_state(given)


def test_a_kernels_state_is_taken_over_with_the_room_it_has() -> None:
    player, other = (KernelAIOLI(Problem(3, 2, 1.0), None, kernel="linear") for _ in range(2))
    dual = player.state.dual
    for room in (1, 5):
        one = Dual.empty(3, dual.kernel, dual.parameter, dual.regularization, room)
        player.state = player.state._replace(dual=one)
        other.set_state(player.get_state())
        assert len(other.state.dual.s) == room
    for wrong in (
        one._replace(s=np.zeros(0), L=np.zeros(0)),
        one._replace(L=np.zeros(14)),
        one._replace(L=np.zeros(25)),
    ):
        player.state = player.state._replace(dual=wrong)
        with pytest.raises(UsageError, match="must hold the rows of a factor of order"):
            other.set_state(player.get_state())
    span = KernelFOLKLORE(Problem(3, 2, 1.0), None)
    state = span.get_state()
    small = state["state"]._replace(span=type(span.state.span).empty(15, 3))
    with pytest.raises(UsageError, match=r"state\.state\.span\.L must have 16 rows or more, got 15"):
        span.set_state(state | {"state": small})


def test_a_grid_reaches_as_far_as_rounding_allows() -> None:
    problem, last = Problem(3, 2, 1.0), 1.0 + 1e-12
    assert BGrid(problem, None, norm_bound=64.0 * last).norm_bound > 64.0
    assert BGrid(problem, None, norm_bound=4.0 * last).bound(100) == BGrid(problem, None, norm_bound=4.0).bound(100)


def test_samples_of_the_theory_without_a_horizon_are_those_of_one_round() -> None:
    problem = Problem(2, 3, 1.0)
    asked, none = (GAFFresh.least_bytes(problem, {"samples": samples}) for samples in ("theory", 1))
    assert asked - none == 4.0 * 3 * (gaf_samples(1.0, 0.05) - 1.0)
    assert gaf_samples(1.0, 0.05) == 3.0  # ln 20, rounded up
