"""Comparators along checkpoints and norm bounds: warm starts change the time and not the answer."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.comparators import along, best_in_ball, collapse, comparators_along
from banditlab.errors import UsageError

CHECKPOINTS = [1, 2, 5, 10, 50, 200, 300]
BOUNDS = [0.3, 1.0, 10.0, 100.0]


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    X /= np.linalg.norm(X, axis=1)[:, None]
    W = 8.0 * rng.normal(size=(3, 4))
    rows = rng.integers(120, size=300)
    return X[rows], np.argmax(X[rows] @ W.T + rng.gumbel(size=(300, 3)), axis=1)


def cut(X, y, size):
    for start in range(0, len(y), size):
        yield X[start : start + size], y[start : start + size]


@pytest.mark.parametrize("size", [1, 7, 300])
def test_every_checkpoint_and_bound_agrees_with_a_cold_solve_of_the_prefix(stream, size):
    X, y = stream
    found = list(comparators_along(cut(X, y, size), CHECKPOINTS, BOUNDS, 4, 3))
    assert [(c, k.norm_bound) for c, k in found] == [(c, B) for c in CHECKPOINTS for B in BOUNDS]
    for checkpoint, warm in found:
        cold = best_in_ball(*collapse(X[:checkpoint], y[:checkpoint], 3), warm.norm_bound)
        assert abs(warm.loss - cold.loss) <= max(warm.gap, cold.gap)
        assert warm.gap <= 1e-6 * max(1.0, warm.loss)
        assert warm.rounds == checkpoint
        assert warm.mistakes == int((np.argmax(X[:checkpoint] @ warm.weights.T, axis=1) != y[:checkpoint]).sum())


def test_loss_falls_with_the_bound_and_grows_with_the_rounds(stream):
    found = list(comparators_along(cut(*stream, 64), CHECKPOINTS, BOUNDS, 4, 3))
    loss = np.array([k.loss for _, k in found]).reshape(len(CHECKPOINTS), len(BOUNDS))
    gap = np.array([k.gap for _, k in found]).reshape(loss.shape)
    assert (loss[:, 1:] - gap[:, 1:] <= loss[:, :-1]).all()
    assert (loss[:-1] - gap[:-1] <= loss[1:]).all()


def test_warm_starts_save_iterations(stream):
    X, y = stream
    warm = [k.iterations for c, k in comparators_along([(X, y)], [200, 300], BOUNDS, 4, 3) if c == 300]
    cold = [best_in_ball(*collapse(X, y, 3), B).iterations for B in BOUNDS]
    assert sum(warm) < sum(cold)
    one_bound = [k.iterations for _, k in comparators_along([(X, y)], [299, 300], [10.0], 4, 3)]
    assert one_bound[1] < cold[BOUNDS.index(10.0)]  # from the checkpoint before alone


def test_order_and_repeats_do_not_matter_and_the_stream_is_read_no_further_than_needed(stream):
    X, y = stream

    def blocks():
        yield X[:100], y[:100]
        raise AssertionError("read beyond the last checkpoint")

    found = list(comparators_along(blocks(), [100, 10, 10], [3.0, 1.0, 3], 4, 3))
    assert [(c, k.norm_bound) for c, k in found] == [(10, 1.0), (10, 3.0), (100, 1.0), (100, 3.0)]


def test_nothing_asked_nothing_yielded(stream):
    assert list(comparators_along([stream], [], [1.0], 4, 3)) == []
    assert list(comparators_along([stream], [10], [], 4, 3)) == []


@pytest.mark.parametrize(
    ("checkpoints", "bounds", "message"),
    [
        ([0, 10], [1.0], "checkpoints must be at least 1, got 0"),
        ([10], [1.0, 0.0], "norm_bounds must be a number above 0, got 0"),
        ([10, 301], [1.0], "at most the stream's 300 rounds, got 301"),
    ],
)
def test_wrong_arguments_are_named(stream, checkpoints, bounds, message):
    with pytest.raises(UsageError, match=message):
        list(comparators_along([stream], checkpoints, bounds, 4, 3))


def test_what_is_solved_is_what_is_wanted_and_what_it_starts_from(stream, monkeypatch):
    """Of each ball: its checkpoints that are not known, and the rounds of the scale up to the last of these."""
    solved, real = [], along.solve

    def noted(objective, B, *rest):
        solved.append((round(float(objective.totals.sum())), B))
        return real(objective, B, *rest)

    monkeypatch.setattr(along, "solve", noted)
    known = {(30, 1.0): np.zeros((3, 4)), (20, 3.0): np.zeros((3, 4))}
    found = [(at, each.norm_bound) for at, each in comparators_along([stream], [7, 30], [1.0, 3.0], 4, 3, known=known)]
    assert found == [(7, 1.0), (7, 3.0), (30, 3.0)]
    assert sorted(at for at, B in solved if B == 1.0) == [1, 2, 5, 7]
    assert sorted(at for at, B in solved if B == 3.0) == [1, 2, 5, 7, 10, 30]
