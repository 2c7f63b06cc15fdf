"""Models in a row: which of them look ahead."""

from __future__ import annotations

import numpy as np

from banditlab.numerics import class_inverses as module


def test_room_is_for_large_problems():
    assert module.inverses(np.ones(10), 65).ahead is None
    assert module.inverses(np.ones(10), 256).ahead.G.shape[1] == module.SHORT_STRETCH
    assert module.inverses(np.ones(2), 1024).ahead.G.shape[1] == module.LONG_STRETCH
    large = module.inverses(np.ones(10), 1024)
    assert sum(array.nbytes for array in large.ahead) < 0.06 * large.P.nbytes
