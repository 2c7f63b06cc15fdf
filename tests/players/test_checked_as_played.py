"""Contexts of large blocks are checked as they come up: a refused block leaves everything as it was."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from banditlab.errors import UsageError
from banditlab.players import actor
from banditlab.players.agent import Trace
from banditlab.players.rounds import TOGETHER
from banditlab.problem import Problem
from banditlab.registry import registry

K, D, N = 3, 1024, 160
"""A block of 1.25 MiB; sixteen contexts are checked at a time."""
IDS = ("banditron", "soba-diag", "gaptron", "perceptron")


def block() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = np.argmax(X[:, :K], axis=1)
    return X / (1.001 * np.linalg.norm(X, axis=1, keepdims=True)), y


def make(id_: str) -> Any:
    return registry().load("agents", id_)(Problem(D, K, 1.0, 1000), np.random.default_rng(5))


def told(player: Any) -> dict[str, bytes]:
    arrays = {str(i): array.tobytes() for i, array in enumerate(actor.arrays_of(player.state) or [])}
    return arrays | {"rng": repr(player.rng.bit_generator.state).encode()}


@pytest.mark.parametrize("id_", IDS)
def test_a_large_block_is_played_as_small_ones_are(id_: str) -> None:
    X, y = block()
    together, apart = make(id_), make(id_)
    whole, parts = Trace.empty(N), Trace.empty(N)
    together.play_block(X, y, whole)
    for start in range(0, N, 20):
        rounds = slice(start, start + 20)
        apart.play_block(X[rounds], y[rounds], parts.part(rounds))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    assert told(together) == told(apart)


@pytest.mark.parametrize("id_", IDS)
def test_a_large_block_that_is_refused_changes_nothing(id_: str) -> None:
    X, y = block()
    player, some = make(id_), TOGETHER // D
    player.play_block(X, y, Trace.empty(N))
    before = told(player)
    for t in (0, 1, some - 1, some, 2 * some + 3, N - 1):
        for value, words in (
            (np.nan, "be finite, got nan"),
            (-np.inf, "be finite, got -inf"),
            (1.1, "have a norm of at most R = 1"),
        ):
            bad = X.copy()
            bad[t, D - 1] = value
            with pytest.raises(UsageError, match=f"context {t} of the block must {words}"):
                player.play_block(bad, y, Trace.empty(N))
            assert told(player) == before
    # and it plays on as if nothing had been
    twin, traces = copy.deepcopy(player), (Trace.empty(N), Trace.empty(N))
    with pytest.raises(UsageError):
        player.play_block(np.full_like(X, np.nan), y, Trace.empty(N))
    for each, trace in zip((player, twin), traces, strict=True):
        each.play_block(X, y, trace)
    np.testing.assert_array_equal(traces[0].p_true, traces[1].p_true)


def test_contexts_that_change_while_they_are_played_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused as they came up, and good when they are looked at again: as a file that is mapped and written to would be."""
    X, y = block()
    X[50] *= 2.0
    player = make("banditron")
    before = told(player)
    monkeypatch.setattr(actor, "require_entries", lambda X, space: None)
    with pytest.raises(UsageError, match="must stay as they are while it is played"):
        player.play_block(X, y, Trace.empty(N))
    assert told(player) == before


def test_a_state_that_holds_more_than_arrays_cannot_be_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, fixed = np.zeros(2), np.ones(1), np.zeros(1)
    fixed.flags.writeable = False
    found = actor.arrays_of((a, (None, 3, 0.5, True, np.float64(2.0)), (b, fixed), ()))
    assert found is not None
    assert [id(each) for each in found] == [id(a), id(b)]
    for other in ([1.0], {"n": 1}, object()):
        assert actor.arrays_of((a, (b, other))) is None
    # whoever has one is checked before
    X, y = block()
    X[-1] *= 2.0
    player = make("banditron")
    before = told(player)
    monkeypatch.setattr(actor, "arrays_of", lambda state: None)
    with pytest.raises(UsageError, match=f"context {N - 1} of the block"):
        player.play_block(X, y, Trace.empty(N))
    monkeypatch.undo()
    assert told(player) == before


@pytest.mark.parametrize(
    ("id_", "d", "n", "late"),
    [("banditron", D, N, True), ("banditron", D, 127, False), ("banditron", 8, 16384, True), ("linucb", D, N, False)],
)
def test_only_small_states_beside_large_blocks_are_kept_for_undoing(
    monkeypatch: pytest.MonkeyPatch, id_: str, d: int, n: int, late: bool
) -> None:
    looked: list[int] = []
    require = actor.require_entries
    monkeypatch.setattr(actor, "require_entries", lambda X, space: (looked.append(len(X)), require(X, space)))
    player = registry().load("agents", id_)(Problem(d, K, 1.0), np.random.default_rng(5))
    player.play_block(np.zeros((n, d)), np.zeros(n, np.int64), Trace.empty(n))
    assert (looked == []) == late
