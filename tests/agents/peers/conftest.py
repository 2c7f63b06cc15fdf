"""What the adapters' tests share: a run that is continued from a file and from a pickle, and a stream."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from banditlab.players.agent import Trace


def _block(agent, X, y):
    trace = Trace.empty(len(y))
    agent.play_block(X, y, trace)
    return trace


def _same(a, b):
    return all(np.array_equal(left, right) for left, right in zip(a, b, strict=True))


@pytest.fixture
def play():
    """Return a function that plays a block and returns its trace."""
    return _block


@pytest.fixture
def continues(tmp_path):
    """Return a check that a run cut at `cut`, saved, pickled and loaded, goes on as if it had never stopped."""

    def check(make, X, y, cut):
        whole, halted = make(), make()
        rest = _block(whole, X, y).part(slice(cut, None))
        _block(halted, X[:cut], y[:cut])
        file = tmp_path / f"{cut}.npz"
        halted.save(file)
        copied = pickle.loads(pickle.dumps(halted))
        for agent in (type(halted).load(file), copied, halted):  # and neither disturbed the agent itself
            assert _same(_block(agent, X[cut:], y[cut:]), rest)

    return check
