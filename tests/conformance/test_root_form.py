"""C with A^{-1} = C C' in the place of A^{-1}: the same learner wherever both have digits to spare."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.primal_dual import ROOT_FROM, certified
from banditlab.losses import softmax
from banditlab.numerics.joint_root import Root
from banditlab.problem import Problem


class RootedFOLKLORE(FOLKLORE):
    root_from = 0.0


class RootedGAF(GAF):
    root_from = 0.0


def contexts(n: int, d: int) -> np.ndarray:
    X = np.random.default_rng(3).standard_normal((n, d))
    return X / (1.0001 * np.linalg.norm(X, axis=1)[:, None])


CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    (FOLKLORE, RootedFOLKLORE, {}),
    (FOLKLORE, RootedFOLKLORE, {"linear_term": "printed", "curvature": "printed"}),
    (GAF, RootedGAF, {}),
    (GAF, RootedGAF, {"linear_term": "printed", "covariance": "printed"}),
]


@pytest.mark.parametrize(("plain", "rooted", "settings"), CASES)
@pytest.mark.parametrize("form", ["primal", pytest.param("dual", marks=pytest.mark.slow)])
def test_both_forms_are_one_learner(plain: Any, rooted: Any, settings: dict[str, Any], form: str) -> None:
    """Through the dual form's enlargements, for corrected and printed terms, certificates included."""
    K, d, n = 3, 40, 36
    X, y = contexts(n, d), np.random.default_rng(4).integers(0, K, n)
    one, other = (
        cls(Problem(d, K, 1.0), np.random.default_rng(1), norm_bound=5.0, regularization=0.1, form=form, **settings)
        for cls in (plain, rooted)
    )
    assert (one.rooted, other.rooted) == (False, True)
    for x, label in zip(X, y, strict=True):
        np.testing.assert_allclose(
            softmax(other.predict_many(X[:3])), softmax(one.predict_many(X[:3])), rtol=0, atol=1e-9
        )
        np.testing.assert_allclose(softmax(other.predict(x)), softmax(one.predict(x)), rtol=0, atol=1e-9)
        one.update(x, label)
        other.update(x, label)
    np.testing.assert_allclose(other.learner.h, one.learner.h, atol=1e-8)
    if settings:
        assert math.isnan(one.certificate())
        assert math.isnan(other.certificate())
    else:
        assert other.certificate() == pytest.approx(one.certificate(), rel=1e-9)


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_both_forms_learn_the_same_from_soft_labels(form: str) -> None:
    K, d, n = 3, 40, 20
    X, Y = contexts(n, d), np.random.default_rng(4).dirichlet(np.ones(K), n)
    one, other = (
        cls(Problem(d, K, 1.0), None, norm_bound=5.0, regularization=0.1, form=form)
        for cls in (FOLKLORE, RootedFOLKLORE)
    )
    for x, y in zip(X, Y, strict=True):
        np.testing.assert_allclose(softmax(other.predict(x)), softmax(one.predict(x)), rtol=0, atol=1e-9)
        one.update_soft(x, y)
        other.update_soft(x, y)
        assert other.certificate() == pytest.approx(one.certificate(), rel=1e-9)
    np.testing.assert_allclose(other.learner.h, one.learner.h, atol=1e-8)


def test_the_root_is_that_of_the_inverse() -> None:
    """C C' is the inverse of the summed matrix, also with coordinates added, and in the whole space."""
    K, d, n, lam = 3, 4, 12, 0.3
    X, y = contexts(n, d), np.random.default_rng(4).integers(0, K, n)
    player = RootedFOLKLORE(Problem(d, K, 1.0), None, norm_bound=3.0, regularization=lam)
    A = lam * np.eye(K * d)
    for x, label in zip(X, y, strict=True):
        s = softmax(player.predict(x))
        A += player.curvature * np.kron(np.diag(s) - np.outer(s, s), np.outer(x, x))
        player.update(x, label)
    root: Root = player.state.blocks

    def inverse(r: Root) -> np.ndarray:
        C = r.C.reshape(-1, r.C.shape[2])
        return C @ C.T

    np.testing.assert_allclose(inverse(root), np.linalg.inv(A), atol=1e-12)
    wide = inverse(root.wider(6, lam)).reshape(K, 6, K, 6)
    np.testing.assert_allclose(wide[:, :d, :, :d].reshape(K * d, K * d), np.linalg.inv(A), atol=1e-12)
    np.testing.assert_allclose(wide[:, d:, :, d:].reshape(2 * K, 2 * K), np.eye(2 * K) / lam, atol=1e-12)
    Q = np.linalg.qr(np.random.default_rng(5).standard_normal((7, d)))[0].T
    E = np.kron(np.eye(K), Q)
    whole = E.T @ (np.linalg.inv(A) - np.eye(K * d) / lam) @ E + np.eye(7 * K) / lam
    np.testing.assert_allclose(inverse(root.rotated(Q, lam)), whole, atol=1e-12)


def test_where_the_root_is_kept() -> None:
    for ratio, rooted in ((1e-6, False), (ROOT_FROM, False), (1.001 * ROOT_FROM, True), (1e12, True)):
        player = FOLKLORE(Problem(2, 3, 7.0), None, regularization=49.0 / ratio)
        assert player.rooted is rooted
        assert isinstance(player.state.blocks, Root) is rooted
    assert not FOLKLORE(Problem(2, 3, 7.0), None).rooted


def test_a_saved_player_goes_on(tmp_path: Any) -> None:
    K, d = 3, 3
    X = contexts(12, d)
    for form in ("primal", "dual"):
        player = FOLKLORE(Problem(d, K, 1.0), None, regularization=1e-9, form=form)
        for t in range(6):
            player.update(X[t], t % K)
        player.save(tmp_path / "player.npz")
        again = FOLKLORE.load(tmp_path / "player.npz")
        for t in range(6, 12):
            np.testing.assert_array_equal(again.predict(X[t]), player.predict(X[t]))
            again.update(X[t], t % K)
            player.update(X[t], t % K)
        assert again.certificate() == player.certificate()


def test_certificates_in_doubt() -> None:
    assert certified(5.0, 1e-10) == 5.0
    assert certified(5.0, 1e-4) == 5.0001
    assert math.isnan(certified(5.0, 0.1))
    assert math.isnan(certified(5.0, math.nan))
    assert certified(1e6, 100.0) == 1e6 + 100.0


@pytest.mark.parametrize(
    ("cls", "lam", "doubt", "spent", "drift"),
    [
        (FOLKLORE, 0.1, 1.4428e-10, 22.82172527784, None),
        (FOLKLORE, 1e-3, 1.4692e-9, 64.8181730209, None),
        (FOLKLORE, 1e-6, 1.70764e-8, 66.5208895212, [2.750322e-11, 5.519329e-10, 2.28986096]),
        (GAF, 0.1, 5.208e-12, 15.0814203149, None),
        (GAF, 1e-3, 3.1874e-10, 31.3136466337, None),
        (GAF, 1e-6, 2.493923e-11, 35.2266013692, [2.750322e-11, 2.230786e-11, 2.28986096]),
    ],
)
def test_what_rounding_may_have_done_on_record(cls: Any, lam: float, doubt: float, spent: float, drift: Any) -> None:
    """The allowance for rounding grows as lambda falls, slowly where the root is kept; nobody sees it until it decides."""
    K, d, n = 3, 4, 30
    X, y = contexts(n, d), np.random.default_rng(4).integers(0, K, n)
    player = cls(Problem(d, K, 1.0), np.random.default_rng(1), norm_bound=5.0, regularization=lam, form="primal")
    for x, label in zip(X, y, strict=True):
        player.update(x, label)
    assert player.learner.spent[0] == pytest.approx(spent, rel=1e-9)
    # rounding itself is part of the allowance where A^{-1} is kept
    assert player.learner.doubt[0] == pytest.approx(doubt, rel=1e-3 if drift else 0.05)
    if drift:
        np.testing.assert_allclose(player.learner.blocks.drift, drift, rtol=1e-5)
    assert player.certificate() == player.learner.spent[0] + lam * K * 25.0 + (doubt > 1e-9 * 70.0) * doubt
