"""The study of stackcb's detector where contexts drift: the orders of rows."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.commands import alarms


@pytest.mark.parametrize("order", alarms.ORDERS)
def test_an_order_has_every_row_once(order: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 4)) * [9.0, 1.0, 1.0, 1.0], rng.integers(0, 3, 300)
    rows = alarms.arranged(X, y, order, rng, 0)
    assert sorted(rows) == list(range(300))
    firsts = sorted(int(np.argmax(y[rows] == k)) for k in range(3))
    assert (firsts[1] > 20) == (order in (alarms.CLASSES, alarms.PREDICTED))
    assert (abs(np.corrcoef(X[rows, 0], np.arange(300))[0, 1]) > 0.9) == (order == alarms.SORTED)
    late = np.argsort(rows)[X[:, 0] > 9.0].mean() - np.argsort(rows)[X[:, 0] < -9.0].mean()
    assert (abs(late) > 20) == (order in (alarms.CLUSTERS, alarms.SORTED))
