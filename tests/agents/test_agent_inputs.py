"""Every agent of the registry refuses what its compiled kernels would read or write out of bounds with."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.errors import UsageError
from banditlab.players.agent import Trace
from banditlab.players.label_agent import LabelAgent
from banditlab.problem import Decision, Problem
from banditlab.registry import registry

BINARY = {"apple-tasting"}
"""Agents for two classes; the others play three."""
X = np.eye(3)
LONG = {
    *(
        "boosted-exploration",
        "confidit",
        "decoded-descent",
        "label-efficient",
        "lints",
        "newtron",
        "obama-lite",
        "pnewtron",
    ),
    *("randomized-decoding", "rdue", "soba", "soba-diag", "squarecb", "stackcb"),
}
"""Agents whose kernels compile long, and for few other quick tests."""
IDS = [
    pytest.param(each, marks=pytest.mark.slow if each in LONG else ())
    for each in sorted(entry.id for entry in registry().entries("agents"))
]


@pytest.fixture(params=IDS)
def agent(request):
    cls = registry().load("agents", request.param)
    for module in cls.requires:
        pytest.importorskip(module, reason=f'{module} is missing: pip install -e ".[peers]"')
    return cls(Problem(3, 2 if request.param in BINARY else 3, 1.0, 100), np.random.default_rng(0))


def refuses(call, *arguments, match):
    with pytest.raises(UsageError, match=match) as refusal:
        call(*arguments)
    assert "\n" not in str(refusal.value)


def told(agent):
    """What learn is told: the label 1, or the bit."""
    return 1 if isinstance(agent, LabelAgent) else True


@pytest.mark.few(6)
def test_contexts_of_another_shape(agent):
    before = agent.rng.bit_generator.state
    for context in (np.ones(4000), np.ones(2), np.ones((1, 3)), np.ones((3, 1)), 1.0):
        refuses(agent.act, context, match=r"the context must be of shape \(3,\), got")
    assert agent.rng.bit_generator.state == before  # nothing was drawn
    decision = agent.act(X[0])
    for context in (np.ones(4000), np.ones(2)):
        refuses(agent.learn, context, decision, told(agent), match=r"the context must be of shape \(3,\), got")
    agent.learn(X[0].tolist(), decision, told(agent))


@pytest.mark.few(8)
def test_decisions_that_are_none(agent):
    decision, K = agent.act(X[0]), agent.problem.n_classes
    for action in (K, -1, 700_000, 1.0, True, None):
        bad = decision._replace(action=action, explored=True)
        refuses(
            agent.learn, X[0], bad, told(agent), match=f"the decision's action must be an integer in 0 ... {K - 1}, got"
        )
    agent.learn(X[0], decision._replace(action=np.int64(decision.action)), told(agent))


def test_decisions_of_another_agent(agent):
    if not hasattr(agent, "payload_size"):
        pytest.skip("an agent without a payload")
    decision, K = agent.act(X[0]), agent.problem.n_classes
    size = agent.payload_size
    for payload in (np.zeros(size + 1), None if size else np.zeros(3)):
        refuses(
            agent.learn,
            X[0],
            decision._replace(payload=payload),
            told(agent),
            match="the decision's payload must be of",
        )
    other = Decision(1, np.full(4, 0.25), decision.explored, decision.payload)
    match = rf"the decision's probabilities must be of shape \({K},\), got \(4,\)"
    refuses(agent.learn, X[0], other, told(agent), match=match)


def test_labels_out_of_range(agent):
    if not isinstance(agent, LabelAgent):
        pytest.skip("an agent that is told a bit")
    decision = agent.act(X[0])
    for label in (3, -1, 1.0, True, None):
        refuses(agent.learn, X[0], decision, label, match="the label must be an integer in 0 ... 2, got")


@pytest.mark.few(8)
def test_blocks(agent):
    K = agent.problem.n_classes
    y, trace = np.array([0, 1, K - 1]), Trace.empty(3)
    bad = [
        (np.ones((3, 4)), y, trace, r"the contexts must be of shape \(n, 3\), got"),
        (np.ones(3), y, trace, r"the contexts must be of shape \(n, 3\), got"),
        (X, y[:2], trace, "the labels must be of shape"),
        (X, np.array([0, 1, 3]), trace, f"the labels must lie in 0 ... {K - 1}, got 0 ... 3"),
        (X, np.array([-1, 1, 2]), trace, f"the labels must lie in 0 ... {K - 1}, got -1"),
        (X, y.astype(float), trace, "the labels must be integers"),
        (X, y > 0, trace, "the labels must be integers"),
        (X, y, Trace.empty(2), "the trace must have arrays for 3 rounds"),
        (X, y, trace._replace(p_true=np.empty(2)), "the trace must have arrays for 3 rounds"),
    ]
    for *arguments, message in bad:
        refuses(agent.play_block, *arguments, match=message)
    agent.play_block(np.asfortranarray(X, dtype=np.float32), y.astype(np.int32), trace)
    assert ((trace.action >= 0) & (trace.action < K)).all()


def test_a_context_of_zeros_leaves_probabilities(agent):
    agent.learn(np.zeros(3), agent.act(np.zeros(3)), told(agent))
    for x in (np.zeros(3), X[0]):
        p = agent.act(x).probabilities
        assert p.min() >= 0.0
        assert abs(p.sum() - 1.0) <= 1e-9
