"""What StackCB keeps of its linear experts' matrices, diagonals or blocks in a sketch: special cases, odd ones, and memory.

Slow forms of both are among those of test_stackcb; the matrices have tests of their own, test_model_forms.
"""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.inverse_gap.class_models import update_terms
from banditlab.agents.second_order import Form
from banditlab.agents.stacked.linear_experts import LINEAR, linear_experts, read_linear, reset_linear, update_linear
from banditlab.agents.stacked.stackcb import StackCB
from banditlab.errors import UsageError
from banditlab.numerics import own_sketch
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.frequent_directions import WHOLE
from banditlab.numerics.tanh_root import aioli_root
from banditlab.players.agent import Trace
from banditlab.policy.growing import grown
from banditlab.problem import Problem

FORMS = ("diagonal", "sketch")
pytestmark = pytest.mark.slow
"""Kernels of either form are compiled by the slow tests."""


def make(K, d, radius=10.0, seed=7, **settings):
    settings = {"blocks": 2, "features": 32, "second_order": "sketch", "sketch_size": 4, **settings}
    if settings["second_order"] != "sketch":
        del settings["sketch_size"]
    return StackCB(Problem(d, K, radius), np.random.default_rng(seed), **settings)


def play(agent, X, y):
    trace = Trace.empty(len(y))
    agent.play_block(X, y, trace)
    return trace


def plane(K, d, T, seed=0):
    """Contexts (T, d) in a plane, evenly over a square of it, so that no column is three deviations away; labels by parts."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1.0, 1.0, (T, 2))
    y = np.argmax(Z @ rng.standard_normal((2, K)) + 0.3 * rng.standard_normal(K), axis=1)
    return as_contexts(Z @ rng.standard_normal((2, d)) / np.sqrt(d)), y.astype(np.int64)


def numbers(state):
    """Every array of a state, nested ones too, in their order."""
    if isinstance(state, np.ndarray):
        return [state]
    return [array for part in state if isinstance(part, tuple | np.ndarray) for array in numbers(part)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("K", [2, 3])
def test_contract(one_bit_contract, stream, form, K):
    X, y = stream(K, 9, 90, noise=0.3)
    one_bit_contract(lambda: make(K, 9, second_order=form, sharpness=2.0), X, y)


@pytest.mark.parametrize("K", [2, 4])
def test_where_views_span_no_more_directions_than_the_sketch_it_is_full(K):
    """A plane, the zero of the scale and the constant: four directions."""
    X, y = plane(K, 40, 700)
    sketch, full = make(K, 40), make(K, 40, second_order="full", ridge=0.0)
    at_sketch, at_full = play(sketch, X, y), play(full, X, y)
    assert sketch.diagnostics()["sketch_outside"] < 1e-20
    assert sketch.diagnostics()["sketch_outside_by_range"] < 1e-20
    same = at_sketch.action == at_full.action
    assert same.mean() > 0.98  # they part at a draw that float32 decides, and then learn from other rounds
    until = int(np.argmin(same)) if not same.all() else len(same)
    assert until > 30
    np.testing.assert_allclose(at_sketch.p_true[:until], at_full.p_true[:until], rtol=0, atol=2e-3)


def multiples(number, start):
    return [t for t in range(start, start + 250) if t % number == 0]


def test_sketches_take_in_every_context_at_first_and_every_eighth_at_last():
    """All of 500, then every second until 750, every third until 1,000, ... every eighth from 2,000 on."""
    linear, view = linear_experts(np.array([1.0, 10.0]), 3, 6, Form("sketch", 4)), np.ones(12)
    whole = [0.0]
    for t in range(2400):
        update_linear(linear, view, 6, t % 3, 1.0, np.zeros(4), False, np.array([2.0, 0.25]), 0.0, 0.5, 0.0)
        whole.append(linear.ranged.sketch.numbers[WHOLE] / 6.0)
    taken = np.diff(whole) > 0.5
    assert taken[:500].all()
    for start, apart in ((500, 2), (750, 3), (1000, 4), (2000, 8)):
        np.testing.assert_array_equal(np.flatnonzero(taken[start : start + 250]) + start, multiples(apart, start))
    assert linear.lessons[0] == 2400
    reset_linear(linear)
    assert linear.lessons[0] == linear.ranged.sketch.numbers[WHOLE] == 0


@pytest.mark.parametrize("sketch_size", [3, 16])
def test_a_view_s_two_experts_are_what_they_are_over_sketches_of_their_own(sketch_size):
    """A sketch learns contexts, which both meet: four models over four sketches say the same."""
    m, M, w, c = 12, 3, 2.0, 0.25
    lambdas, rng = np.array([0.01, 1.0]), np.random.default_rng(1)
    linear = linear_experts(lambdas, M, m, Form("sketch", sketch_size))
    alone = [own_sketch.own_sketch(np.full(M, 1.0 / lam), m, sketch_size) for lam in np.tile(lambdas, 2)]
    settings, found, forms = np.array([w, c]), np.zeros(LINEAR * M), np.zeros(LINEAR * M)
    for t in range(60):
        views = rng.standard_normal(2 * m) * (1.0 + 9.0 * (np.arange(2 * m) % m < 4))
        k, y, fresh, lifted = int(rng.integers(M)), float(rng.choice([-1, 1])), t % 2 == 0, -0.3
        z = rng.standard_normal(LINEAR)
        given = z.copy()
        read_linear(linear, views, m, found, forms)
        for e, own in enumerate(alone):
            view, expected, form = views[(e // 2) * m : (e // 2 + 1) * m], np.zeros(M), np.zeros(M)
            own_sketch.read(own, view, expected, form)
            np.testing.assert_allclose(found[e * M : (e + 1) * M], expected, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(forms[e * M : (e + 1) * M], form, rtol=1e-8, atol=1e-11)
            m_k, q = own_sketch.read_one(own, view, k)
            if fresh:
                given[e] = aioli_root(m_k + lifted * q, q, w)
            own_sketch.update_one(own, view, k, *update_terms(c, given[e], y, m_k, q))
        update_linear(linear, views, m, k, y, z, fresh, settings, lifted, 0.5, 0.0)
        np.testing.assert_allclose(z, given, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_forgotten_is_as_it_was_before_anything_was_learnt(form):
    m, M, rng = 12, 3, np.random.default_rng(1)
    kept = Form(form, 4) if form == "sketch" else Form(form)
    linear, fresh = (linear_experts(np.array([0.01, 1.0]), M, m, kept) for _ in range(2))
    lessons = [(rng.standard_normal(2 * m), int(rng.integers(M)), float(rng.choice([-1, 1]))) for _ in range(40)]
    settings, said = np.array([2.0, 0.25]), []
    for each in (linear, linear, fresh):
        reset_linear(linear)
        z, answers = np.zeros(LINEAR), []
        for views, k, y in lessons:
            update_linear(each, views, m, k, y, z, True, settings, 0.0, 0.5, 0.0)
            answers.append(z.copy())
        said.append(np.array(answers))
    np.testing.assert_array_equal(said[0], said[1])
    np.testing.assert_array_equal(said[0], said[2])
    reset_linear(fresh)
    for before, after in zip(numbers(linear), numbers(fresh), strict=True):
        assert before.shape == after.shape


@pytest.mark.parametrize("form", FORMS)
def test_units_do_not_matter(form):
    X, y = plane(3, 20, 300)
    scales = 2.0 ** np.random.default_rng(0).integers(-30, 30, 20)
    one, other = make(3, 20, second_order=form), make(3, 20, 1e12, second_order=form)
    np.testing.assert_array_equal(play(one, X, y).action, play(other, as_contexts(X * scales), y).action)


def test_memory_is_what_it_says_and_little():
    problem = Problem(1000, 10, 1.0)
    least = {form: StackCB.least_bytes(problem, {"second_order": form}) for form in ("full", *FORMS)}
    assert least["full"] > 5 * least["sketch"]
    assert least["sketch"] > least["diagonal"] > 8.0 * 2048 * 1000
    for form in FORMS:
        agent = StackCB(problem, np.random.default_rng(0), second_order=form)
        taken = sum(array.nbytes for array in numbers(agent.state))
        assert least[form] < taken < 2 * least[form]


def test_settings():
    assert (make(3, 4, second_order="full").second_order, make(3, 4).sketch_size) == ("full", 4)
    assert "sketch_outside" not in make(3, 4, second_order="diagonal").diagnostics()
    with pytest.raises(UsageError, match="second_order must be"):
        make(3, 4, second_order="half")
    with pytest.raises(UsageError, match="sketch_size is read by second_order = 'sketch' only, and this one is 'auto'"):
        StackCB(Problem(4, 3, 1.0), np.random.default_rng(0), sketch_size=5)
    with pytest.raises(UsageError, match="sketch_size must be"):
        make(3, 4, sketch_size=0)
    with pytest.raises(UsageError, match="ridge is read by second_order = 'full' only, and this one is 'diagonal'"):
        make(3, 4, second_order="diagonal", ridge=0.5)
    assert make(3, 4, ridge=0.0).payload_size == make(3, 4).payload_size
    assert grown(make(3, 4)).problem.n_classes == 4


@pytest.mark.parametrize("form", FORMS)
def test_odd_contexts(form):
    """One context for ever, zeros, columns that never vary, entries of 1e-200 and 1e99."""
    rng = np.random.default_rng(0)
    for X in (
        np.ones((80, 5)),
        np.zeros((80, 5)),
        rng.integers(0, 2, (80, 5)) * 1e-200,
        rng.standard_normal((80, 5)) * 1e98,
    ):
        agent = StackCB(Problem(5, 3, 1e100), np.random.default_rng(1), second_order=form, blocks=2, features=32)
        trace = play(agent, as_contexts(X), rng.integers(0, 3, 80))
        assert np.isfinite(trace.p_true).all()
        assert (trace.p_true > 0).all()
