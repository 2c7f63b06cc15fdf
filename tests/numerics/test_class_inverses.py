"""Models in a row: which of them look ahead."""

from __future__ import annotations

import numpy as np

from banditlab.numerics import class_inverses as module
from banditlab.numerics import packed_symmetric as packed
from banditlab.numerics.class_inverses import entries, look_from
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.lookahead import AT, LENGTH, ON


def test_room_is_for_large_problems():
    assert module.inverses(np.ones(10), 65).ahead is None
    assert module.inverses(np.ones(10), 256).ahead.G.shape[1] == module.SHORT_STRETCH
    assert module.inverses(np.ones(2), 1024).ahead.G.shape[1] == module.LONG_STRETCH
    large = module.inverses(np.ones(10), 1024)
    assert large.ahead.LX.nbytes == 8 * 10 * 1024 * module.LONG_STRETCH  # an eighth of the matrices
    assert sum(array.nbytes for array in large.ahead) - large.ahead.LX.nbytes < 0.06 * large.P.nbytes


def test_rounds_are_looked_at_ahead_from_a_megabyte_and_a_half_on():
    for d in (60, 100, 250, 300):
        each = packed.identities(np.ones(1), d).nbytes
        least = -(-3 * 2**19 // each)
        assert module.inverses(np.ones(least - 1), d).ahead is None
        assert module.inverses(np.ones(least), d).ahead.G.shape == (least, 32, 32)
    # 3072 matrices of 8 by 8 are a megabyte and a half exactly
    assert module.inverses(np.ones(3071), 8).ahead is None
    assert module.inverses(np.ones(3072), 8).ahead.G.shape == (3072, 32, 32)
    assert module.inverses(np.ones(2), 511).ahead.G.shape == (2, 32, 32)
    assert module.inverses(np.ones(2), 512).ahead.G.shape == (2, 64, 64)


def test_a_stretch_is_looked_at_where_its_contexts_are_full_enough(monkeypatch):
    """A fifth of the entries, or 64 of them; at least eight contexts."""
    monkeypatch.setattr(module, "LARGE", 0)
    for d, full, n, looked in (
        (100, 20, 16, 1),
        (100, 19, 16, 0),
        (400, 64, 16, 1),
        (400, 63, 16, 0),
        (100, 20, 8, 1),
        (100, 20, 7, 0),
    ):
        X = np.zeros((n, d))
        X[:, :full] = 1.0
        models = module.inverses(np.ones(1), d)
        module.look_from(models.ahead, models.P, models.low, models.H, as_contexts(X), 0, np.zeros(0))
        assert models.ahead.place[0] == looked, (d, full, n)


def test_rounds_are_counted_within_a_stretch_and_a_new_one_begins_after_it(monkeypatch):
    """80 full contexts: stretches of 32, 32 and 16. Then zeros, which are not looked at, and full ones again."""
    monkeypatch.setattr(module, "LARGE", 0)
    for full in (range(80), range(32), range(32, 80)):
        X = np.zeros((80, 20))
        X[list(full)] = 1.0
        models, told = module.inverses(np.ones(2), 20), []
        for t in range(81):
            look_from(models.ahead, models.P, models.low, models.H, as_contexts(X), t, np.zeros(0))
            told.append(models.ahead.place[[ON, AT, LENGTH]].tolist())
        lengths = [32] * 64 + [16] * 16
        assert told[:80] == [[int(t // 32 * 32 in full), t % 32, lengths[t]] for t in range(80)]
        assert told[80] == [0, 0, 0]  # after the last nothing is under way


def test_entries_of_a_context_on_average():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [-1.0, 0.5, 1.0], [1.0, 0.0, np.nan]])
    assert entries(as_contexts(X)) == 7 / 4
