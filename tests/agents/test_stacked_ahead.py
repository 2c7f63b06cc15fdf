"""StackCB's blocks that look ahead: the rounds and the state of those that play one by one, to the last bit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from banditlab.agents.stacked import ahead
from banditlab.agents.stacked.stackcb import CHANGES, ROUNDS, StackCB
from banditlab.agents.stacked.views import see_views, see_views_of, single_frequencies, size_of_views
from banditlab.errors import UsageError
from banditlab.numerics import packed_single, packed_symmetric
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frequent_directions import DRIFT, FRESH, OUTSIDE, WHOLE, Directions
from banditlab.numerics.row_products import times, times_each
from banditlab.players.agent import Trace
from banditlab.players.rounds import no_look
from banditlab.problem import Problem

FORMS = (
    {"second_order": "full"},
    {"second_order": "diagonal"},
    {"second_order": "sketch", "sketch_size": 5},
)
COMPACT = [pytest.param(form, marks=pytest.mark.slow) for form in FORMS[1:]]
"""Their kernels are compiled by the slow tests."""
CUTS = [(), (1, 3, 60, 61), (8, 16, 24, 500), (5, 10, 15, 20, 150, 157)]


def make(monkeypatch, K, d, looks, **settings):
    monkeypatch.setattr(ahead, "LARGE", 0 if looks else 2**62)
    monkeypatch.setattr(ahead, "FEWEST", 1)
    settings = {"blocks": 4, "features": 32, **settings}
    agent = StackCB(Problem(d, K, 30.0), np.random.default_rng(7), **settings)
    assert (agent.look() is not no_look) == looks
    return agent


def play(agent, X, y, cuts=()):
    trace = Trace.empty(len(y))
    for i, j in zip([0, *cuts], [*cuts, len(y)], strict=True):
        agent.play_block(X[i:j], y[i:j], trace.part(slice(i, j)))
    return trace


SCRATCH = ("ahead", "room", "point", "v", "ranks", "u", "square", "turned", "x", "a")


def learnt(value):
    """What an agent has learnt: the arrays of its state by name, scratch left out."""
    found = {}
    for name, part in value._asdict().items():
        if isinstance(value, Directions) and name in ("counts", "numbers"):
            found[name] = np.delete(part, FRESH) if name == "counts" else part[[DRIFT, OUTSIDE, WHOLE]]
        elif isinstance(part, np.ndarray) and name not in SCRATCH:
            found[name] = part
        elif isinstance(part, tuple) and name not in SCRATCH:
            found |= {f"{name}.{below}": array for below, array in learnt(part).items()}
    return found


def assert_same(agent, other):
    assert agent.state.ahead is None or agent.state.ahead.place[ahead.ON] == 0
    assert agent.rng.bit_generator.state == other.rng.bit_generator.state
    ours, theirs = learnt(agent.state), learnt(other.state)
    assert set(ours) == set(theirs)
    assert len(ours) > 20
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def with_oddities(X):
    """Contexts with zeros, x = 0, one that comes again and again, a column that does not vary, and large ones."""
    X = np.where(np.random.default_rng(3).random(X.shape) < 0.2, 0.0, X)
    X[::9] = X[1]
    X[40:44] = 0.0
    X[:, 2] = 0.25
    X[100:104] *= 20.0
    return as_contexts(X)


@pytest.mark.parametrize("settings", [FORMS[0], *COMPACT], ids=lambda settings: settings["second_order"])
@pytest.mark.parametrize(("K", "d"), [(11, 9), (4, 24)])
def test_blocks_are_rounds_one_by_one(monkeypatch, stream, settings, K, d):
    """With K = 11 there are models in fours, in twos and one alone; scales change at 2, 4, ..., 512."""
    X, y = stream(K, d, 560, noise=0.2)
    X = with_oddities(X)
    slow = make(monkeypatch, K, d, False, **settings)
    expected = play(slow, X, y)
    for cuts in CUTS:
        agent = make(monkeypatch, K, d, True, **settings)
        trace = play(agent, X, y, cuts)
        np.testing.assert_array_equal(trace.action, expected.action)
        np.testing.assert_array_equal(trace.p_true, expected.p_true)
        assert_same(agent, slow)


def test_one_model_for_two_classes_and_no_fourier_experts(monkeypatch, stream):
    X, y = stream(2, 7, 150, noise=0.2)
    for settings in ({}, {"complement": False, "blocks": 0}, {"blocks": 3}):
        slow, agent = (make(monkeypatch, 2, 7, looks, **settings) for looks in (False, True))
        expected = play(slow, X, y)
        np.testing.assert_array_equal(play(agent, X, y).p_true, expected.p_true)
        assert_same(agent, slow)


def test_a_change_may_be_called_within_a_stretch(monkeypatch, stream):
    """What was seen under the old scale is forgotten with it."""
    K, d = 5, 6
    X, y = stream(K, d, 900)
    y = np.where(np.arange(len(y)) < 600, y, (y + 1) % K)
    slow, agent = (make(monkeypatch, K, d, looks) for looks in (False, True))
    expected = play(slow, X, y)
    np.testing.assert_array_equal(play(agent, X, y).p_true, expected.p_true)
    assert agent.state.counts[CHANGES] > 0
    assert_same(agent, slow)


@pytest.mark.parametrize("settings", [FORMS[0], COMPACT[1]], ids=["full", "sketch"])
def test_between_blocks_rounds_go_one_by_one(monkeypatch, stream, settings, tmp_path):
    """Blocks, rounds through act and learn, late feedback, a copy through pickle and one through a file take turns."""
    K, d = 5, 8
    X, y = stream(K, d, 200, noise=0.2)
    slow = make(monkeypatch, K, d, False, **settings)
    agent = make(monkeypatch, K, d, True, **settings)
    for each in (slow, agent):
        play(each, X[:70], y[:70])
        late = [each.act(X[t]) for t in range(70, 90)]
        for t, decision in zip(range(70, 90), late, strict=True):
            each.learn(X[t], decision, decision.action == y[t])
    expected = play(slow, X[90:], y[90:])
    agent = pickle.loads(pickle.dumps(agent))
    np.testing.assert_array_equal(play(agent, X[90:130], y[90:130]).action, expected.action[:40])
    agent.save(tmp_path / "agent.npz")
    again = StackCB.load(tmp_path / "agent.npz")
    assert again.look() is not no_look
    for player in (agent, again):
        np.testing.assert_array_equal(play(player, X[130:], y[130:]).action, expected.action[40:])
        assert_same(player, slow)


@pytest.mark.parametrize("bad", [0, 13, 39])
def test_a_block_with_a_context_that_is_no_number_leaves_what_was(monkeypatch, stream, bad):
    X, y = stream(5, 8, 40)
    spoilt = np.array(X)
    spoilt[bad, 3] = np.nan
    slow, agent = (make(monkeypatch, 5, 8, looks) for looks in (False, True))
    for each in (slow, agent):
        play(each, X[:20], y[:20])
    with pytest.raises(UsageError, match=f"context {bad} of the block must be finite, got nan"):
        play(agent, as_contexts(spoilt), y)
    assert_same(agent, slow)
    np.testing.assert_array_equal(play(agent, X, y).p_true, play(slow, X, y).p_true)


def test_wrong_labels_of_wrong_rounds_change_nothing(monkeypatch, stream):
    X, y = stream(5, 8, 200, noise=0.3)
    honest = play(make(monkeypatch, 5, 8, True, sharpness=2.0), X, y)
    lying = np.where(honest.correct, y, [next(k for k in range(5) if k not in pair) for pair in zip(y, honest.action)])
    assert (lying != y).sum() == (~honest.correct).sum() > 20
    np.testing.assert_array_equal(play(make(monkeypatch, 5, 8, True, sharpness=2.0), X, lying).action, honest.action)


def test_few_models_or_little_memory_do_not_look():
    def looks(K, d, **settings):
        return StackCB(Problem(d, K, 1.0), np.random.default_rng(0), **settings).look() is not no_look

    assert not looks(10, 64)
    assert not looks(4, 200)
    assert looks(20, 64)
    assert looks(20, 600, second_order="sketch")


# --------------------------------------------------------------------------------------- its kernels, bit by bit


@pytest.mark.parametrize("K", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("module", [packed_single, packed_symmetric], ids=["single", "double"])
def test_forms_of_several_contexts_are_forms_of_each(module, K):
    rng = np.random.default_rng(K)
    n, d = 7, 21
    D = packed_symmetric.width(d)
    single = module is packed_single
    P = module.zeros(K, packed_symmetric.size_of(D))
    A = rng.standard_normal((K, d, d))
    P[:] = [packed_symmetric.identities(np.ones(1), d)[0] for _ in range(K)]
    kept = np.zeros(P.shape[1])
    for k in range(K):
        packed_symmetric.pack(np.ascontiguousarray(A[k] + A[k].T), kept)
        P[k] = kept
    X = module.zeros(n, D)
    X[:, D - d :] = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    X[3] = 0.0
    point, q, own = module.point(d), np.full((n, K + 2), 99.0), np.zeros(K)
    expected = np.full((n, K + 2), 99.0)
    for t in range(2, n):
        module.see(point, X[t, D - d :].astype(np.float64))
        module.forms(P, point, own)
        expected[t, 1 : K + 1] = own
        x = X[t, D - d :].astype(np.float64)
        np.testing.assert_allclose(
            own, [x @ (A[k] + A[k].T) @ x for k in range(K)], rtol=0, atol=1e-3 if single else 1e-11
        )
    for k in range(K):
        if single:
            module.form_of_contexts(P, k, X, 2, point, q, 1)
        else:
            module.form_of_contexts(P, k, X, 2, n, point, q, 1)
    np.testing.assert_array_equal(q, expected)
    again = np.full((n, K + 2), 99.0)
    if single:
        module.forms_of_contexts(P, X, 2, point, again, 1, module.zeros(n, 32))
    else:
        module.forms_of_contexts(P, X, 2, n, point, again, 1)
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("K", [1, 4, 6])
@pytest.mark.parametrize("n", [3, 4])
def test_products_with_several_contexts_are_those_with_each(K, n):
    rng = np.random.default_rng(K)
    W, X = packed_symmetric.zeros(K, 24), packed_symmetric.zeros(n, 24)
    W[:], X[:] = rng.standard_normal((K, 24)), rng.standard_normal((n, 24))
    out, z = np.full((n, K + 3), 99.0), np.zeros(K)
    times_each(W, X, 1, n, out, 2)
    expected = np.full((n, K + 3), 99.0)
    for t in range(1, n):
        times(W, X[t], z)
        expected[t, 2 : 2 + K] = z
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_allclose(out[1:, 2 : 2 + K], X[1:] @ W.T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 7), (8, 12)])
def test_views_of_several_contexts_are_those_of_each(monkeypatch, stream, single, n, d):
    agent = make(monkeypatch, 3, d, False)
    X, y = stream(3, d, 70, noise=0.2)
    play(agent, X, y)
    s = agent.state
    W = single_frequencies(s.W) if single else s.W
    size, kind = size_of_views(d, agent.blocks, agent.features), np.float32 if single else np.float64
    views, alone = np.zeros((n, size)), np.zeros(size)
    v, ranks = np.zeros((n, d), kind), np.zeros((n, d), kind)
    see_views_of(s.scale, W, s.by_rank, agent.features, as_contexts(X[:n]), v, ranks, views)
    for t in range(n):
        see_views(s.scale, W, s.by_rank, agent.features, as_contexts(X[t]), alone)
        np.testing.assert_array_equal(views[t], alone)
    assert agent.state.counts[ROUNDS] == 70
