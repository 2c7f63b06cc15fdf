"""What every compiled agent must satisfy, as one function: `one_bit_contract`."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from banditlab.numerics.contexts import as_contexts
from banditlab.players.agent import Trace


def planted(K, d, T, seed=0, noise=0.1):
    """Contexts (T, d) in the unit ball, labels (T,) from a planted W with some noise."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((K, d))
    X = rng.standard_normal((T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * rng.uniform(1.0, 2.0, (T, 1))
    y = np.where(rng.random(T) < noise, rng.integers(K, size=T), np.argmax(X @ W.T, axis=1))
    return as_contexts(X), y.astype(np.int64)


def block(agent, X, y):
    trace = Trace.empty(len(y))
    agent.play_block(X, y, trace)
    return trace


def same(a, b):
    """Whether two tuples of arrays, nested or not, are equal."""
    return all(
        same(left, right) if isinstance(left, tuple) else np.array_equal(left, right)
        for left, right in zip(a, b, strict=True)
    )


def both_paths(make, X, y):
    fast, slow = make(), make()
    trace = block(fast, X, y)
    for t in range(len(y)):
        decision = slow.act(X[t])
        assert decision.action == trace.action[t]
        assert decision.probabilities[y[t]] == trace.p_true[t]
        assert decision.explored is None or decision.explored == trace.explored[t]
        assert abs(decision.probabilities.sum() - 1.0) <= 1e-12
        assert decision.probabilities.min() >= 0.0
        assert decision.payload.shape == (slow.payload_size,)
        slow.learn(X[t], decision, decision.action == y[t])
    assert same(fast.state, slow.state)
    expected = np.random.default_rng(7)  # exactly two uniforms per round
    expected.random((len(y), 2))
    assert fast.rng.bit_generator.state == slow.rng.bit_generator.state == expected.bit_generator.state


def wrong_labels(make, X, y):
    K = make().problem.n_classes
    honest = block(make(), X, y)
    others = np.array(
        [next(k for k in range(K) if k not in (label, action)) for label, action in zip(y, honest.action)]
    )
    lying = np.where(honest.correct, y, others)
    assert (lying != y).sum() == (~honest.correct).sum() > 0
    assert np.array_equal(block(make(), X, lying).action, honest.action)


def continues(make, X, y, path):
    half = len(y) // 2
    whole, saved, pickled = make(), make(), make()
    tail = block(whole, X, y).part(slice(half, None))
    block(saved, X[:half], y[:half])
    saved.save(path)
    assert same(block(type(saved).load(path), X[half:], y[half:]), tail)
    block(pickled, X[:half], y[:half])
    assert same(block(pickle.loads(pickle.dumps(pickled)), X[half:], y[half:]), tail)


def late_feedback(make, X, y):
    """What happens between act and learn must not matter: the decision and the state say it all."""
    plain, busy = make(), make()
    for t in range(len(y)):
        one, two = plain.act(X[t]), busy.act(X[t])
        assert np.array_equal(one.probabilities, two.probabilities)
        plain.act(X[(5 * t + 1) % len(y)])  # as many acts, at other contexts: some agents count them
        busy.act(X[(7 * t + 3) % len(y)])
        plain.learn(X[t], one, one.action == y[t])
        busy.learn(X[t], two, two.action == y[t])
    queue = []
    for t in range(len(y)):  # five rounds late, and every fourth bit lost
        queue.append((t, plain.act(X[t])))
        if len(queue) > 5:
            s, decision = queue.pop(0)
            before = decision.payload.copy(), decision.probabilities.copy()
            if s % 4:
                plain.learn(X[s], decision, decision.action == y[s])
            assert same(before, (decision.payload, decision.probabilities))
    assert abs(plain.act(X[0]).probabilities.sum() - 1.0) <= 1e-12


@pytest.fixture
def stream():
    return planted


@pytest.fixture
def one_bit_contract(tmp_path):
    """Return a function of `make`, which builds the same agent afresh with default_rng(7), and a stream X, y."""

    def check(make, X, y):
        both_paths(make, X, y)
        if make().problem.n_classes > 2:  # of two, a wrong round has no other wrong label
            wrong_labels(make, X, y)
        continues(make, X, y, tmp_path / "player.npz")
        late_feedback(make, X, y)

    return check
