"""Forecasters against their direct forms with 45 digits, and certificates that must hold where arithmetic is hard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpmath import mp

from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.ftrl import FTRL
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.gaf_fresh import GAFFresh
from banditlab.forecasters.kernel_aioli import KernelAIOLI
from banditlab.forecasters.ogd import OGD
from banditlab.forecasters.ons import ONS
from banditlab.losses import logistic_loss
from banditlab.problem import Problem
from tests.conformance import witness


def contexts(kind: str, n: int, d: int, R: float = 1.0) -> np.ndarray:
    """Return n contexts of norm .999 R: all different, three different ones, or those three 1e-5 apart."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, d))
    if kind != "random":
        X = X[rng.integers(0, 3, n)] + (1e-5 if kind == "nearly" else 0.0) * rng.standard_normal((n, d))
    return 0.999 * R * X / np.linalg.norm(X, axis=1)[:, None]


def centred(z: Any) -> np.ndarray:
    """Return z less its mean, which no forecast shows."""
    mean = mp.fsum(z) / len(z)
    return np.array([float(a - mean) for a in z])


def labels(K: int, n: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, K, n)


def follow(player: Any, direct: Any, X: np.ndarray, y: np.ndarray, nodes: Any = None) -> float:
    """Play both along the stream and return the largest difference of a logit."""
    worst = 0.0
    for x, label in zip(X, y, strict=True):
        extra = () if nodes is None else [np.array(a) for a in (nodes().points, nodes().weights)]
        z = player.predict(x)
        player.update(x, int(label))
        exact = direct.update(x, int(label), *extra)
        worst = max(worst, float(np.abs(centred(exact) - centred(z)).max()))
    return worst


LEAST = 5e-4
"""The least lambda at R = 1 that FOLKLORE and GAF accept."""
HARD = [1e6, 1.0, 1e-2, LEAST]


@pytest.mark.parametrize("lam", HARD)
@pytest.mark.parametrize("kind", ["random", "nearly"])
def test_folklore(lam: float, kind: str) -> None:
    K, d, n, B = 3, 2, 10, 10.0
    player = FOLKLORE(Problem(d, K, 1.0), None, norm_bound=B, regularization=lam)
    direct = witness.Folklore(K, d, lam, player.curvature, B)
    assert follow(player, direct, contexts(kind, n, d), labels(K, n)) < 2e-9
    true = float(direct.certificate())
    assert true * (1 - 1e-9) <= player.certificate() <= true * (1.0 + 1e-5)
    assert player.diagnostics() == {"unsolved_roots": 0}


@pytest.mark.parametrize("lam", [1.0, LEAST])
@pytest.mark.slow
def test_folklore_in_the_span(lam: float) -> None:
    """The dual form: of contexts 1e-5 apart it has coordinates to about 1e-11, and what that leaves at a small lambda."""
    K, d, n, B = 3, 4, 10, 10.0
    for kind, tolerance in (("random", 4e-9), ("nearly", 2e-9 + 1e-10 / math.sqrt(lam))):
        player = FOLKLORE(Problem(d, K, 1.0), None, norm_bound=B, regularization=lam, form="dual")
        direct = witness.Folklore(K, d, lam, player.curvature, B)
        assert follow(player, direct, contexts(kind, n, d), labels(K, n)) < tolerance
        assert player.certificate() == pytest.approx(float(direct.certificate()), rel=1e-4)


@pytest.mark.parametrize("lam", [64.0, 1e-2, LEAST])
@pytest.mark.parametrize("kind", ["random", "nearly"])
def test_gaf(lam: float, kind: str) -> None:
    K, d, n, B, mu = 3, 2, 8, 10.0, 0.01
    settings: dict[str, Any] = {"norm_bound": B, "regularization": lam, "smoothing": mu}
    player = GAF(Problem(d, K, 1.0), None, nodes="cubature", **settings)
    direct = witness.Gaf(K, d, lam, player.curvature, B, mu)
    assert follow(player, direct, contexts(kind, n, d), labels(K, n), lambda: player.state.nodes) < 1e-9
    assert player.certificate() == pytest.approx(float(direct.certificate()), rel=1e-6)


@pytest.mark.parametrize("lam", [1.0, LEAST])
def test_gaf_fresh(lam: float) -> None:
    """With the samples it has drawn handed over, everything else is deterministic."""
    K, d, n, B = 3, 2, 6, 5.0
    player = GAFFresh(Problem(d, K, 1.0), np.random.default_rng(0), norm_bound=B, regularization=lam, samples=6)
    direct = witness.Gaf(K, d, lam, player.curvature, B, 0.0)
    assert follow(player, direct, contexts("random", n, d), labels(K, n), lambda: player._gaf.state.nodes) < 1e-8
    assert player.certificate() == pytest.approx(float(direct.certificate()), rel=1e-6)


@pytest.mark.parametrize(("R", "lam"), [(1.0, 1.0), (1.0, 1e-6), (1e3, 1e-8)])
def test_ftrl(R: float, lam: float) -> None:
    K, d, n, B = 3, 2, 6, 1.0
    player = FTRL(Problem(d, K, R), None, norm_bound=B, regularization=lam)
    direct = witness.Ftrl(K, d, lam, B)
    assert follow(player, direct, contexts("random", n, d, R), labels(K, n)) < (1e-9 if R == 1.0 else 1e-2)
    assert player.certificate() == pytest.approx(float(direct.certificate()), rel=1e-6 if R == 1.0 else 1e-4)
    assert (player.diagnostics()["unsolved_leaders"] > 0) == (R > 1.0)


@pytest.mark.parametrize(
    ("B", "eps"), [(0.3, "theory"), (1.0, "theory"), pytest.param(1.0, 1e-4, marks=pytest.mark.slow)]
)
def test_ons(B: float, eps: Any) -> None:
    K, d, n = 3, 2, 6
    player = ONS(Problem(d, K, 1.0), None, norm_bound=B, regularization=eps)
    direct = witness.Ons(K, d, B, player.step, player.regularization)
    assert follow(player, direct, contexts("random", n, d), labels(K, n)) < 1e-9
    assert player.certificate() == pytest.approx(float(direct.certificate()), rel=1e-9)
    assert (player.projections["bound"] > 0) == (eps != "theory")


def test_ogd() -> None:
    K, d, n, B = 4, 3, 12, 0.5
    player = OGD(Problem(d, K, 1.0), None, norm_bound=B)
    direct = witness.Ogd(K, d, B, player.step)
    assert follow(player, direct, contexts("random", n, d), labels(K, n)) < 1e-12
    assert player.certificate() == pytest.approx(float(direct.certificate()), rel=1e-12)


@pytest.mark.parametrize("kind", ["random", "nearly"])
@pytest.mark.parametrize("lam", [1e3, 0.25, 1e-4, 1e-9, 1e-12])
def test_aioli(lam: float, kind: str) -> None:
    """From R^2 / lambda = 1e7 on by a root of A^{-1}; A^{-1} itself was off by 2e-6 at 1e12, and its certificate below."""
    d, n, B = 3, 12, 2.0
    player = AIOLI(Problem(d, 2, 1.0), None, norm_bound=B, regularization=lam)
    assert player.rooted == (lam < 1e-7)
    direct = witness.Aioli(d, lam, player.curvature, player.margin_bound)
    assert follow(player, direct, contexts(kind, n, d), labels(2, n)) < 1e-9
    assert player.certificate() == pytest.approx(float(direct.certificate()), rel=1e-9)


@pytest.mark.parametrize("kind", ["random", "nearly"])
@pytest.mark.parametrize("lam", [1e-3, 1e-8, 1e-10, 1e-12])
def test_kernel_aioli_never_claims_less_than_is_true(lam: float, kind: str) -> None:
    """Its certificate fell below the exact one by 6e-5 at R^2 / lambda = 1e12."""
    d, n, B = 3, 12, 2.0
    player = KernelAIOLI(Problem(d, 2, 1.0), None, norm_bound=B, regularization=lam, kernel="linear")
    direct = witness.Aioli(d, lam, player.curvature, player.margin_bound)
    follow(player, direct, contexts(kind, n, d), labels(2, n))
    claimed, exact = player.certificate(), float(direct.certificate())
    assert np.isnan(claimed) if lam == 1e-12 else exact - 1e-9 <= claimed <= 1.001 * exact


@pytest.mark.parametrize("lam", [1.01e-14, 0.99e-14, 1e-100, 1e-300, 1e-320])
def test_aioli_claims_nothing_where_its_root_has_lost_its_digits(lam: float) -> None:
    d, n, B = 3, 12, 2.0
    player = AIOLI(Problem(d, 2, 1.0), None, norm_bound=B, regularization=lam)
    for x, y in zip(contexts("nearly", n, d), labels(2, n), strict=True):
        player.update(x, int(y))
    if lam < 1e-14:
        assert np.isnan(player.certificate())
        return
    direct = witness.Aioli(d, lam, player.curvature, player.margin_bound)
    for x, y in zip(contexts("nearly", n, d), labels(2, n), strict=True):
        direct.update(x, int(y))
    assert player.certificate() == pytest.approx(float(direct.certificate()), rel=1e-8)


def test_aioli_by_a_root_is_aioli() -> None:
    """The two forms on one stream, where both are right."""
    d, n = 4, 60
    problem, rng = Problem(d, 2, 1.0), np.random.default_rng(9)
    plain, rooted = (AIOLI(problem, None, norm_bound=3.0, regularization=lam) for lam in (1.01e-7, 0.99e-7))
    rooted.state = rooted.state._replace(P=np.eye(d) / np.sqrt(plain.regularization))
    rooted.regularization = 0.99e-7
    assert (plain.rooted, rooted.rooted) == (False, True)
    for x, y in zip(rng.standard_normal((n, d)) / 9, rng.integers(0, 2, n), strict=True):
        np.testing.assert_allclose(rooted.predict(x), plain.predict(x), rtol=1e-7, atol=1e-8)
        for player in (plain, rooted):
            player.update(x, int(y))


# ---------------------------------------------------------------------------------------------- certificates that were false


def regret_against(player: Any, X: np.ndarray, y: np.ndarray, W: np.ndarray) -> float:
    """Play the stream and return the regret against W (K, d)."""
    total = 0.0
    for x, label in zip(X, y, strict=True):
        total += float(logistic_loss(player.predict(x), int(label))) - float(logistic_loss(W @ x, int(label)))
        player.update(x, int(label))
    return total


@pytest.mark.parametrize("cls", [FOLKLORE, GAF])
def test_a_certificate_in_doubt_is_none(cls: Any) -> None:
    """A^{-1} itself at R^2 / lambda = 1e14: no digits are left, the forecast is off, and no bound is claimed."""

    class Plain(cls):
        most_ratio = math.inf

    X, y = contexts("nearly", 20, 3), labels(3, 20)
    player = Plain(Problem(3, 3, 1.0), np.random.default_rng(0), norm_bound=10.0, regularization=1e-14)
    assert player.certificate() >= 0.0
    regret_against(player, X, y, np.zeros((3, 3)))
    assert math.isnan(player.certificate())


@pytest.mark.parametrize("lam", [0.1, LEAST])
@pytest.mark.parametrize("cls", [FOLKLORE, GAF, ONS])
def test_beyond_the_radius_no_certificate_is_claimed(cls: Any, lam: float) -> None:
    """B = 2, x = 30, R = 1, fifteen labels 0, then two 1: a regret of 158.5 stood against ONS's certificate of 103.2."""
    for length, holds in ((1.0 + 1e-12, True), (30.0, False)):
        player = cls(Problem(1, 2, 1.0), np.random.default_rng(0), norm_bound=2.0, regularization=lam)
        stated, player.problem = player.problem, Problem(1, 2, 30.0)  # `update` lets the context pass
        for label in [0] * 15 + [1] * 2:
            player.update(np.array([length]), label)
        player.problem = stated
        assert math.isnan(player.certificate()) != holds


@pytest.mark.parametrize(("R", "lam"), [(1e3, 1e-8), (1e4, 1e-8), (1.0, 1e-12)])
def test_ftrl_far_from_its_minimum(R: float, lam: float) -> None:
    """A regret of 2,486 stood against a certificate of 2e-8, forecasts were NaN at R = 1e4, and max(0, NaN) was 0."""
    K, d, n = 3, 2, 30
    for kind in ("random", "nearly"):
        X, y = contexts(kind, n, d, R), labels(K, n)
        player = FTRL(Problem(d, K, R), None, norm_bound=1.0, regularization=lam)
        regret = regret_against(player, X, y, np.zeros((K, d)))
        assert math.isfinite(regret)
        assert regret <= player.certificate()


def test_ftrl_certificate_of_a_leader_that_was_not_reached() -> None:
    """Wherever W is: F(W) less the most that strong convexity leaves, and never less than 0."""
    player = FTRL(Problem(1, 2, 1.0), None, norm_bound=1.0, regularization=0.1)
    for label in (0, 1, 0, 0):
        player.update(np.ones(1), label)
    reached = player.certificate()
    for away in (0.1, 10.0, 1e6):
        player.state.W[0] += away
        assert reached - 1e-12 <= player.certificate() <= 0.2 + float(player.state.total[0]) + 1e-12
        player.state.W[0] -= away
    player.state.W[0] = np.nan
    assert player.certificate() == pytest.approx(0.2 + float(player.state.total[0]))
    player.state.total[0] = np.nan
    assert math.isnan(player.certificate())
