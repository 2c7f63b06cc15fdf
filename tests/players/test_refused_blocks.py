"""A block is checked before it is played: one that is refused leaves the player as it was."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from banditlab.errors import UsageError
from banditlab.players.agent import Trace
from banditlab.players.saved import encode
from banditlab.problem import Problem
from banditlab.registry import registry

K, D, N = 3, 1024, 160
IDS = ("banditron", "linucb", "fastcb", "perceptron", "uniform")


def block() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = np.argmax(X[:, :K], axis=1)
    return X / (1.001 * np.linalg.norm(X, axis=1, keepdims=True)), y


def told(player: Any) -> tuple[str, dict[str, bytes]]:
    arrays: dict[str, np.ndarray] = {}
    head = encode(player.get_state(), "state", arrays)
    return repr(head), {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("id_", IDS)
def test_a_block_that_is_refused_changes_nothing(id_: str) -> None:
    d = D if id_ in ("banditron", "perceptron", "uniform") else 8
    X, y = block()
    X = np.ascontiguousarray(X[:, :d])
    player = registry().load("agents", id_)(Problem(d, K, 1.0, 1000), np.random.default_rng(5))
    player.play_block(X, y, Trace.empty(N))
    before = told(player)
    for t in (0, 1, N // 2, N - 1):
        for value, words in (
            (np.nan, "be finite, got nan"),
            (-np.inf, "be finite, got -inf"),
            (1.1, "have a norm of at most R = 1"),
        ):
            bad = X.copy()
            bad[t, d - 1] = value
            for form in (bad, scipy.sparse.csr_array(bad)):
                found = f"context {t} of the block must {words}|the contexts are not finite"
                with pytest.raises(UsageError, match=found):
                    player.play_block(form, y, Trace.empty(N))
                with pytest.raises(UsageError):
                    player.act(bad[t])
                assert told(player) == before
    for labels in (y - 1, y + 1, y[:-1], y.astype(float)):
        with pytest.raises(UsageError, match="the labels must"):
            player.play_block(X, labels, Trace.empty(N))
    with pytest.raises(UsageError, match="the trace must have arrays"):
        player.play_block(X, y, Trace.empty(N - 1))
    assert told(player) == before
    twin, traces = copy.deepcopy(player), (Trace.empty(N), Trace.empty(N))
    for each, trace in zip((player, twin), traces, strict=True):
        each.play_block(X, y, trace)
    np.testing.assert_array_equal(traces[0].p_true, traces[1].p_true)
