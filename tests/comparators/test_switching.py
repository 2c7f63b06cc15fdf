"""The best models with at most S switches: against every sequence of segments, and on labels that change half-way."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from banditlab.comparators import best_in_ball, best_with_switches
from banditlab.errors import UsageError

RNG = np.random.default_rng(0)
N, D, K, B = 120, 3, 3, 4.0
X = RNG.standard_normal((N, D))
Y = np.where(np.arange(N) < 60, np.argmax(X, axis=1), (np.argmax(X, axis=1) + 1) % K)
CUTS = (20, 45, 60, 90)


def loss_of(start: int, stop: int) -> float:
    return best_in_ball(X[start:stop], np.eye(K)[Y[start:stop]], B).loss


def test_it_is_the_least_over_all_sequences() -> None:
    found = best_with_switches(X, Y, K, B, 3, at=CUTS)
    assert [c.switches for c in found] == [0, 1, 2, 3]
    for s, comparator in enumerate(found):
        losses = {
            at: sum(itertools.starmap(loss_of, itertools.pairwise((0, *at, N))))
            for k in range(s + 1)
            for at in itertools.combinations(CUTS, k)
        }
        best = min(losses, key=losses.__getitem__)
        assert comparator.loss == pytest.approx(losses[best], abs=1e-6)
        assert losses[comparator.at] == pytest.approx(losses[best], abs=1e-6)
        assert 0.0 <= comparator.gap < 1e-4


def test_without_a_switch_it_is_the_comparator_of_the_ball() -> None:
    [none] = best_with_switches(X, Y, K, B, 0, at=CUTS)
    assert (none.loss, none.at) == (pytest.approx(loss_of(0, N)), ())
    for at in ((), (1, N - 1)):
        [only] = best_with_switches(X, Y, K, B, 0, at=at)
        assert only.loss == none.loss


def test_one_switch_finds_the_change() -> None:
    none, one = best_with_switches(X, Y, K, B, 1, at=CUTS)
    assert one.at == (60,)
    assert one.loss < 0.5 * none.loss


def test_more_switches_than_rounds_to_switch_at_change_nothing() -> None:
    *_, all_of_them, more = best_with_switches(X, Y, K, B, 5, at=CUTS)
    assert (all_of_them.loss, all_of_them.at) == (more.loss, more.at)


@pytest.mark.parametrize("at", [(0,), (N,), (N + 1,), (20, 20), (2.5,)])
def test_rounds_that_are_refused(at: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="at must be"):
        best_with_switches(X, Y, K, B, 1, at=at)
