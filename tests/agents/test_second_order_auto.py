"""second_order = "auto": whole matrices up to a K d^2, a sketch beyond it; what is said of it, and what is saved."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from banditlab.agents import second_order
from banditlab.agents.inverse_gap.fastcb import FastCB
from banditlab.agents.inverse_gap.squarecb import SquareCB
from banditlab.agents.ridge.lints import LinTS
from banditlab.agents.ridge.linucb import LinUCB
from banditlab.agents.second_order import LARGEST_WHOLE, SKETCH_SIZE, resolved_order
from banditlab.errors import UsageError
from banditlab.players.agent import Agent, Trace
from banditlab.policy.growing import grown
from banditlab.problem import Problem

CHEAP = [(LinTS, {})]
SLOW = [(LinUCB, {}), (FastCB, {}), (SquareCB, {})]
EVERY = [*CHEAP, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
K, d = 3, 6


def make(cls: type[Agent], order: str = "auto", **settings: object) -> Agent:
    return cls(Problem(d, K, 1.0), np.random.default_rng(7), second_order=order, **settings)


def played(agent: Agent, X: np.ndarray, y: np.ndarray) -> Trace:
    trace = Trace.empty(len(y))
    agent.play_block(X, y, trace)
    return trace


def test_the_limit_is_a_product():
    """2 x 1448^2 = 4,193,408 and 2 x 1449^2 = 4,199,202 lie about 2^22 = 4 x 1024^2."""
    orders = [resolved_order("auto", Problem(d, K, 1.0)) for d, K in ((1448, 2), (1449, 2), (1024, 4), (1024, 5))]
    assert orders == ["full", "sketch", "full", "sketch"]
    assert [resolved_order(word, Problem(8, 3, 1.0)) for word in ("sketch", "half", ["sketch"])] == [
        "sketch",
        "half",
        ["sketch"],
    ]


@pytest.mark.parametrize(("cls", "settings"), EVERY)
@pytest.mark.parametrize(("largest", "form"), [(K * d**2, "full"), (K * d**2 - 1, "sketch")])
@pytest.mark.slow
def test_it_plays_as_the_form_it_stands_for_and_goes_on_as_that(
    stream, monkeypatch, tmp_path, cls, settings, largest, form
):
    """A saved player keeps its form, wherever the limit lies when it is loaded."""
    X, y = stream(K, d, 300, noise=0.2)
    monkeypatch.setattr(second_order, "LARGEST_WHOLE", largest)
    agent, other = make(cls, **settings), make(cls, form, **settings)
    assert agent.params() == other.params()
    assert agent.params()["second_order"] == form
    problem = agent.problem
    assert cls.least_bytes(problem, settings) == cls.least_bytes(problem, {**settings, "second_order": form})
    np.testing.assert_array_equal(played(agent, X[:200], y[:200]), played(other, X[:200], y[:200]))
    agent.save(tmp_path / "agent.npz")
    monkeypatch.setattr(second_order, "LARGEST_WHOLE", K * d**2 if form == "sketch" else 0)
    loaded = cls.load(tmp_path / "agent.npz")
    assert loaded.params()["second_order"] == form
    np.testing.assert_array_equal(played(loaded, X[200:], y[200:]), played(other, X[200:], y[200:]))


def test_an_oracle_that_has_no_sketch_goes_without(monkeypatch):
    monkeypatch.setattr(second_order, "LARGEST_WHOLE", 0)
    for oracle in ("logistic", "b-grid"):
        agent = make(FastCB, oracle=oracle)
        assert not hasattr(agent.state, "sketch")
        assert agent.params()["second_order"] == "auto"
        assert agent.params() == FastCB(agent.problem, agent.rng, **agent.params()).params()


@pytest.mark.parametrize("cls", [FastCB, SquareCB, LinUCB, LinTS])
def test_the_rule_stands_in_the_description(cls):
    words = " ".join((inspect.getdoc(cls) or "").split())
    assert f'"auto" is "full" if :math:`K d^2` is at most {LARGEST_WHOLE:,}' in words
    assert cls.own_settings()["second_order"].default == "auto"
    assert cls.own_settings()["sketch_size"].default == SKETCH_SIZE


def test_a_size_is_of_a_sketch_that_is_asked_for():
    for order in ("auto", "full"):
        with pytest.raises(UsageError, match=f"sketch_size needs second_order = 'sketch', got .* '{order}'"):
            make(LinUCB, order, sketch_size=4)


def test_a_class_is_added_in_the_form_that_was_chosen(monkeypatch):
    assert grown(make(LinUCB)).params()["second_order"] == "full"
    monkeypatch.setattr(second_order, "LARGEST_WHOLE", 0)
    assert grown(make(LinUCB)).params()["second_order"] == "sketch"
