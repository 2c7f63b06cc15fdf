"""The root of an inverse: its small systems, and the size of what its equation adds up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.joint_root import (
    CENTRE,
    INVERSE,
    WEIGHT,
    Root,
    drifted,
    equation,
    form_root,
    learn_root,
    noise,
    solve_equation,
    solve_lu,
)


def test_elimination_exchanges_rows() -> None:
    rng = np.random.default_rng(0)
    for A in (np.array([[0.0, 2.0], [3.0, 1.0]]), np.array([[1e-20, 1.0], [1.0, 1.0]]), np.fliplr(np.eye(5)) * 3.0):
        b = rng.standard_normal(len(A))
        v = b.copy()
        solve_lu(A.copy(), v)
        np.testing.assert_allclose(A @ v, b, rtol=1e-12, atol=1e-12)
    for K in (1, 2, 3, 6):
        A, b = rng.standard_normal((K, K)), rng.standard_normal(K)
        v = b.copy()
        solve_lu(A.copy(), v)
        np.testing.assert_allclose(A @ v, b, atol=1e-9)


@pytest.mark.parametrize("y", [-1, 0, 2])
def test_the_size_of_the_terms_is_the_largest_sum_of_their_sizes(y: int) -> None:
    """|z| + |mean| + sum |At| s, with 1 - s at the label, and half of At's diagonal in FOLKLORE's root."""
    root = Root.initial(3, 2, 1.0)
    At = np.array([[4.0, -1.0, 0.5], [-1.0, 3.0, -2.0], [0.5, -2.0, 5.0]])
    root.At[...], root.s[:], root.mean[:] = At, [0.2, 0.5, 0.3], [1.0, -7.0, 0.25]
    z = np.array([-3.0, 0.5, 2.0])
    weights = np.array([0.2, 0.5, 0.3])
    if y >= 0:
        weights[y] = 1.0 - weights[y]
    expected = np.abs(z) + np.abs(root.mean) + np.abs(At) @ weights + (0.5 * np.diag(At) if y < 0 else 0.0)
    assert noise(root, z, y) == pytest.approx(expected.max(), rel=1e-14)
    root.At[...] *= 2.0**-10
    root.mean[:] *= 2.0**-10
    assert noise(root, 2.0**-10 * z, y) == pytest.approx(2.0**-10 * expected.max(), rel=1e-14)


UNIT = 2.0**-52


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max())
    return e / e.sum()


def inverse_of(root: Root) -> np.ndarray:
    """Return A^{-1} = C C' (Kd, Kd)."""
    C = root.C.reshape(-1, root.C.shape[2])
    return C @ C.T


def test_the_arrays_have_the_shapes_they_are_said_to_have_and_their_size_is_that_of_the_largest() -> None:
    K, d = 3, 5
    root, n = Root.initial(K, d, 0.25), K * d
    shapes = {"C": (K, d, n), "drift": (3,), "t": (n,), "P": (d, K), "D": (d, n)}
    shapes |= dict.fromkeys(["U", "W", "Z"], (K, n)) | dict.fromkeys(["At", "X", "L", "M"], (K, K))
    shapes |= dict.fromkeys(["s", "q", "a", "r", "beta", "p", "mean", "step", "trial"], (K,))
    assert {name: array.shape for name, array in root._asdict().items()} == shapes
    assert Root.size(K, d) == sum(array.nbytes for array in (root.C, root.D, root.U, root.W, root.Z))
    np.testing.assert_array_equal(inverse_of(root), 4.0 * np.eye(n))
    assert not root.drift.any()


@pytest.mark.parametrize("printed", [0.0, 1.0, 2.0])
@pytest.mark.parametrize(("K", "d"), [(2, 1), (3, 2), (5, 3)])
def test_an_update_is_the_one_of_the_whole_inverse(K: int, d: int, printed: float) -> None:
    """U, At and the mean of what is kept, then A_t^{-1}, h = A_t^{-1} G_t, the term T and its doubt from the matrix itself."""
    rng, lam, c = np.random.default_rng(K), 0.5, 0.3
    root, h, A, G = Root.initial(K, d, lam), np.zeros((K, d)), lam * np.eye(K * d), np.zeros(K * d)
    centring, weight, drift = np.eye(K) - 1.0 / K, 0.0, np.zeros(3)
    for y in (0, K - 1, 1, 0):
        x, z = as_contexts(rng.standard_normal(d)), 2.0 * rng.standard_normal(K)
        form_root(root, h, x)
        E = np.kron(centring, x[:, None])  # columns (e_k - 1/K) (x) x
        np.testing.assert_allclose(root.At, 0.5 * E.T @ np.linalg.solve(A, E), atol=1e-12)
        mean = -0.5 * centring @ h @ x
        np.testing.assert_allclose(root.mean, mean, atol=1e-13)
        s = softmax(z)
        root.s[:] = s
        S, g, r = np.diag(s) - np.outer(s, s), s - np.eye(K)[y], z - mean
        b = g - 2.0 * c * S @ {0.0: r, 1.0: -mean, 2.0: np.zeros(K)}[printed]
        before = G @ np.linalg.solve(A, G)
        A += c * np.kron(S, np.outer(x, x))
        # A_t h_t = A h + c H h + b (x) x
        G = A @ h.ravel() + np.kron(b, x)
        change = np.linalg.solve(A, np.kron(b, x))
        term, doubt = learn_root(root, h, c, lam, float(x @ x), y, z, printed)
        np.testing.assert_allclose(inverse_of(root), np.linalg.inv(A), atol=1e-12)
        np.testing.assert_allclose(h.ravel(), np.linalg.solve(A, G), atol=1e-12)
        gain = 0.25 * np.kron(b, x) @ change
        assert term == pytest.approx(g @ r - c * r @ S @ r + gain, rel=1e-10, abs=1e-12)
        if printed == 0.0:  # what the least value of v'A v + G'v + ... has risen by
            after = G @ np.linalg.solve(A, G)
            assert term == pytest.approx(g @ z - c * z @ S @ z + 0.25 * (after - before), rel=1e-9, abs=1e-11)
        # |A^{1/2} change| with the A of before, and what rounding has done until now
        length = math.sqrt(change @ (A - c * np.kron(S, np.outer(x, x))) @ change)
        weight += c * float(x @ x)
        fresh = 4.0 * UNIT * math.sqrt(1.0 + weight / lam)
        off = 0.25 * drift[INVERSE] * length**2 + drift[CENTRE] * length + fresh * length
        off += 16.0 * UNIT * K * (abs(g @ r) + c * r @ S @ r + gain)
        assert doubt == pytest.approx(off, rel=1e-9, abs=0.0)
        drift[INVERSE] += fresh
        drift[CENTRE] += 0.5 * (fresh + drift[INVERSE]) * length
        np.testing.assert_allclose(root.drift, [*drift[:2], weight], rtol=1e-9)


@pytest.mark.parametrize(
    "logits", [[0.0, -800.0, 1.0], [1.0, -800.0, 0.0], [-800.0, 1.0, 0.0], [0.0, -46.0, -50.0], [-46.0, 0.0, -50.0]]
)
def test_an_improbable_class_is_no_division_by_zero(logits: list[float]) -> None:
    z = np.array(logits)
    root, h, x, c = Root.initial(3, 1, 1.0), np.zeros((3, 1)), as_contexts(np.ones(1)), 0.5
    form_root(root, h, x)
    s = softmax(z)
    root.s[:] = s
    for y in range(3):
        learnt, kept = Root(*(array.copy() for array in root)), h.copy()
        term, _ = learn_root(learnt, kept, c, 1.0, 1.0, y, z, 0.0)
        S, g = np.diag(s) - np.outer(s, s), s - np.eye(3)[y]
        b = g - 2.0 * c * S @ z
        change = np.linalg.solve(np.eye(3) + c * S, b)
        assert term == pytest.approx(g @ z - c * z @ S @ z + 0.25 * b @ change, rel=1e-12)
        np.testing.assert_allclose(kept[:, 0], change, atol=1e-13)
        np.testing.assert_allclose(inverse_of(learnt), np.linalg.inv(np.eye(3) + c * S), atol=1e-14)


def test_drift_is_added_up_in_units_of_rounding() -> None:
    """c |x|^2 = 7 at lambda = 1 after 1: a condition of 3, 12 units an update; numbers by hand."""
    root = Root.initial(2, 1, 1.0)
    root.drift[[INVERSE, CENTRE, WEIGHT]] = [8.0 * UNIT, 16.0 * UNIT, 1.0]
    # 8/4 2^2 + 16 2 before, and 12 2 more
    assert drifted(root, 2.0, 1.0, 3.5, 2.0) == 64.0 * UNIT
    # 8 + 12, and 16 + (12 + 20)/2 2
    assert root.drift[[INVERSE, CENTRE, WEIGHT]].tolist() == [20.0 * UNIT, 48.0 * UNIT, 8.0]


def learnt(K: int, d: int, lam: float) -> Root:
    """Return the root of an A that has seen a few contexts."""
    rng = np.random.default_rng(5)
    root, h = Root.initial(K, d, lam), np.zeros((K, d))
    for y in range(K):
        x, z = as_contexts(rng.standard_normal(d)), rng.standard_normal(K)
        form_root(root, h, x)
        root.s[:] = softmax(z)
        learn_root(root, h, 0.4, lam, float(x @ x), y, z, 0.0)
    return root


@pytest.mark.parametrize(("d", "more"), [(1, 2), (3, 1)])
def test_coordinates_that_join_are_those_of_the_regularization(d: int, more: int) -> None:
    K, lam = 3, 0.25
    root = learnt(K, d, lam)
    wide = root.wider(d + more, lam)
    found = inverse_of(wide).reshape(K, d + more, K, d + more)
    np.testing.assert_allclose(found[:, :d, :, :d], inverse_of(root).reshape(K, d, K, d), atol=1e-14)
    fresh = np.einsum("kl,ij->kilj", np.eye(K), np.eye(more)) / lam
    np.testing.assert_allclose(found[:, d:, :, d:], fresh, atol=1e-14)
    assert not found[:, :d, :, d:].any()
    np.testing.assert_array_equal(wide.drift, root.drift)


@pytest.mark.parametrize(("r", "d"), [(1, 3), (2, 4), (3, 3)])
def test_a_span_put_into_its_space_keeps_the_inverse_there(r: int, d: int) -> None:
    K, lam = 3, 0.25
    root = learnt(K, r, lam).wider(5, lam)  # room for more coordinates than there are
    Q = np.linalg.qr(np.random.default_rng(2).standard_normal((d, r)))[0].T
    whole = root.rotated(Q, lam)
    within = inverse_of(root).reshape(K, 5, K, 5)[:, :r, :, :r]
    expected = np.einsum("ia,kilj,jb->kalb", Q, within, Q)
    expected += np.einsum("kl,ab->kalb", np.eye(K), (np.eye(d) - Q.T @ Q) / lam)
    np.testing.assert_allclose(inverse_of(whole).reshape(K, d, K, d), expected, atol=1e-13)
    np.testing.assert_array_equal(whole.drift, root.drift)


def with_kernel(At: np.ndarray, mean: np.ndarray) -> Root:
    """Return scratch whose equation has this At and mean."""
    root = Root.initial(len(mean), 1, 1.0)
    root.At[...], root.mean[:] = At, mean
    return root


@pytest.mark.parametrize("y", [-1, 0, 2])
def test_the_equation_is_z_less_the_mean_and_the_step(y: int) -> None:
    At = np.array([[4.0, -1.0, 0.5], [-1.0, 3.0, -2.0], [0.5, -2.0, 5.0]])
    for z in (np.array([-3.0, 0.5, 2.0]), np.array([8.0, 7.0, 1.0]), np.array([0.0, 0.0, 40.0])):
        root = with_kernel(At, np.array([1.0, -7.0, 0.25]))
        worst = equation(root, z, y)
        s = softmax(z)
        a = At @ (s - np.eye(3)[y]) if y >= 0 else At @ s - 0.5 * np.diag(At)
        a -= a.mean()
        r = z - root.mean + a
        r -= r.mean()
        np.testing.assert_allclose(root.s, s, rtol=1e-14)
        np.testing.assert_allclose(root.a, a, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(root.r, r, rtol=1e-13, atol=1e-14)
        assert worst == pytest.approx(np.abs(r).max(), rel=1e-13)
    # the label's s - 1 without its rounding
    equation(root, np.array([0.0, 0.0, 100.0]), 2)
    a = At @ np.array([1.0, 1.0, -2.0]) * math.exp(-100.0)
    np.testing.assert_allclose(root.a, a - a.mean(), rtol=1e-12)
    assert math.isnan(equation(root, np.array([0.0, math.nan, 1.0]), y))


@pytest.mark.parametrize("y", [-1, 0, 2])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e6])
def test_the_root_is_found_at_any_size(scale: float, y: int) -> None:
    """Newton's whole steps cycle where At is large: they are halved."""
    rng = np.random.default_rng(1)
    for K in (2, 3, 5):
        for _ in range(4):
            Z = rng.standard_normal((K, K))
            Z -= Z.mean(axis=0)
            root = with_kernel(scale * Z @ Z.T, scale * Z @ rng.standard_normal(K))
            root.mean[:] -= root.mean.mean()
            z = np.full(K, np.nan)
            found = solve_equation(root, z, y)
            most = 1e-16 + 2e-17 * scale  # rounding of what cancels
            assert 0.0 <= found <= most
            assert abs(z.sum()) <= 1e-15 * (1.0 + scale)
            assert equation(root, z, y) / (1.0 + noise(root, z, y)) <= most


def test_no_root_where_a_number_is_none() -> None:
    root, z = with_kernel(np.eye(3), np.array([0.0, math.nan, 0.0])), np.zeros(3)
    assert math.isnan(solve_equation(root, z, 0))
    assert np.isnan(z).all()


def test_the_residual_is_relative_to_one_and_the_terms() -> None:
    """Where centring the root moves no bit, as in half of the cases, it is what `equation` finds there."""
    rng, same = np.random.default_rng(1), 0
    for _ in range(20):
        Z = rng.standard_normal((3, 3))
        Z -= Z.mean(axis=0)
        root, z = with_kernel(0.1 * Z @ Z.T, 0.1 * Z @ rng.standard_normal(3)), np.zeros(3)
        found = solve_equation(root, z, 0)
        left = float(np.abs(root.r).max()) / (1.0 + noise(root, z, 0))
        same += found > 0.0 and found == pytest.approx(left, rel=1e-9, abs=0.0)
    assert same >= 3
