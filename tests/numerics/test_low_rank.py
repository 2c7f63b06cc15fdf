"""Matrices that have learnt little: rows against explicit inverses and whole matrices, up to where they become whole."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.ridge.linucb import LinUCB
from banditlab.errors import UsageError
from banditlab.numerics import class_inverses, low_rank
from banditlab.numerics import packed_symmetric as packed
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.low_rank import WHOLE
from banditlab.players.agent import Trace
from banditlab.players.saved import Fields, restored
from banditlab.policy.growing import grown
from banditlab.problem import Problem
from tests.numerics.dense_inverses import dense_inverses


def made(scales, d, m=16):
    """P (M, S) of p I, and how it is kept."""
    return packed.zeros(len(scales), packed.size_of(packed.width(d))), low_rank.low_rank(np.asarray(scales), d, m)


def taught(scale, d, r, seed=0, sparse=False):
    """One matrix after r lessons, and the explicit inverse of I / p + sum w x x'."""
    rng = np.random.default_rng(seed)
    P, low = made([scale], d)
    A, v = np.eye(d) / scale, packed.zeros(packed.width(d))
    for _ in range(r):
        x = rng.standard_normal(d) * ((rng.random(d) < 0.3) if sparse else 1.0)
        w = rng.uniform(0.1, 2.0)
        own = packed.zeros(packed.width(d))
        own[-d:] = x
        low_rank.any_product(P[0], low, 0, own, v)
        low_rank.any_downdate(P[0], low, 0, v, w / (1.0 + w * float(own @ v)))
        A += w * np.outer(x, x)
    return P, low, np.linalg.inv(A)


def padded(x):
    own = packed.zeros(packed.width(len(x)))
    own[-len(x) :] = x
    return own


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("d", [1, 3, 8, 23, 40])
@pytest.mark.parametrize("r", [0, 1, 7, 8, 9, 16, 17, 24, 25, 30])
@pytest.mark.few(30)
def test_any_number_of_lessons_is_the_explicit_inverse(d, r, sparse):
    P, low, exact = taught(2.5, d, r, seed=r, sparse=sparse)
    assert low.ranks[0] == (r if r <= low_rank.capacity(packed.width(d)) else WHOLE)
    rng = np.random.default_rng(99)
    point, q, v = packed.point(d), np.zeros(1), packed.zeros(packed.width(d))
    for share in (1.0, 0.2, 0.0):
        x = rng.standard_normal(d) * (rng.random(d) < share)
        packed.set_point(point, as_contexts(x[None])[0])
        low_rank.all_forms(P, low, point, q)
        low_rank.any_product(P[0], low, 0, padded(x), v)
        np.testing.assert_allclose(q[0], x @ exact @ x, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(v[-d:], exact @ x, rtol=0, atol=1e-12)
        assert not v[:-d].any()
    models = class_inverses.Inverses(P, v[None], point, v, None, low)
    np.testing.assert_allclose(dense_inverses(models, d)[0], exact, rtol=0, atol=1e-11)


@pytest.mark.parametrize("r", [0, 1, 5, 8, 15, 16])
def test_made_whole_nothing_changes_but_how_it_is_kept(r):
    d = 23
    P, low, exact = taught(0.5, d, r)
    low_rank.make_whole(P[0], low, 0)
    assert low.ranks[0] == WHOLE
    np.testing.assert_allclose(packed.dense(P, d)[0], exact, rtol=0, atol=1e-13)
    again = np.zeros_like(P[0])
    packed.pack(packed.dense(P, d)[0], again)
    np.testing.assert_array_equal(P[0], again)  # nothing before the d rows and columns


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_products_are_added(sign):
    """P x is added to y, P = p I + sign F'F of any number of rows, or whole."""
    d, K = 12, 7
    rng = np.random.default_rng(4)
    P = packed.zeros(K, packed.size_of(16))
    low = low_rank.low_rank(np.arange(1.0, K + 1.0), d, sign=sign)
    exact, v = np.stack([p * np.eye(d) for p in low.scales]), packed.zeros(16)
    for i, lessons in enumerate((0, 1, 7, 8, 9, 12, 20)):
        for _ in range(lessons):
            v[-d:] = 0.2 * rng.standard_normal(d)
            low_rank.any_downdate(P[i], low, i, v, -sign * 1.5)
            exact[i] += sign * 1.5 * np.outer(v[-d:], v[-d:])
    assert low.ranks.tolist() == [0, 1, 7, 8, WHOLE, WHOLE, WHOLE]
    x, y = rng.standard_normal((2, d))
    out, scratch = packed.zeros(16), packed.zeros(16)
    for i in range(K):
        out[-d:] = y
        low_rank.any_step(P[i], low, i, padded(x), scratch, out)
        np.testing.assert_allclose(out[-d:], y + exact[i] @ x, rtol=0, atol=1e-13 * np.abs(exact).max() * d)
        assert not out[:-d].any()


@pytest.mark.slow
def test_a_class_that_learnt_nothing_takes_no_memory():
    """At K = 50 and d = 1,024 whole matrices are 200 MiB; eight rounds touch a few pages."""
    resource = pytest.importorskip("resource")
    problem = Problem(1024, 50, 1.0)
    X = as_contexts(np.random.default_rng(0).standard_normal((8, 1024)) / 40.0)
    small = LinUCB(Problem(1024, 2, 1.0), np.random.default_rng(0), second_order="full")
    small.play_block(X, np.zeros(8, np.int64), Trace.empty(8))  # compiled
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    agent = LinUCB(problem, np.random.default_rng(0), second_order="full")
    agent.play_block(X, np.zeros(8, np.int64), Trace.empty(8))
    assert agent.state.inverses.P.nbytes > 200 * 2**20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30 * 1024


def fields(given):
    """A state as it is read from a file."""
    return Fields(
        {name: fields(value._asdict()) if hasattr(value, "_asdict") else value for name, value in given.items()}
    )


@pytest.mark.parametrize("rank", [-2, 129])
def test_a_file_with_a_rank_that_has_no_place_is_refused(rank):
    state = class_inverses.inverses(np.ones(10), 256)
    low = state.low._replace(ranks=np.full(10, rank))
    with pytest.raises(UsageError, match=r"ranks must lie in -1 \.\.\. 128"):
        restored(state, state._replace(low=low))


@pytest.mark.parametrize("K", [3, 9, 10])
@pytest.mark.few(1)
def test_a_class_more_whether_models_are_kept_as_rows_or_not(K):
    """At d = 200 nine classes are small models, ten are large; five rounds, or enough for whole ones."""
    d = 200
    rng = np.random.default_rng(0)
    for n in (5, 400):
        X = as_contexts(rng.standard_normal((n, d)) / 20.0)
        agent = LinUCB(Problem(d, K, 1.0), np.random.default_rng(0))
        agent.play_block(X, rng.integers(0, K, n), Trace.empty(n))
        wide = grown(agent)
        assert [each.state.inverses.low is None for each in (agent, wide)] == [K < 10, K < 9]
        P, more = (dense_inverses(each.state.inverses, d) for each in (agent, wide))
        np.testing.assert_array_equal(more[:K], P)
        np.testing.assert_array_equal(more[K], np.eye(d) / agent.regularization)
        decisions = [each.act(X[0]) for each in (agent, wide)]
        np.testing.assert_allclose(wide.state.z[:K], agent.state.z, rtol=1e-12)
        wide.learn(X[0], decisions[1], True)
