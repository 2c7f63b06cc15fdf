"""The table of costs says of a player's state what the player keeps, and floors and exponents follow from it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from banditlab.numerics import class_inverses, low_rank, packed_symmetric
from banditlab.numerics.vectors import matrix
from banditlab.problem import Problem
from banditlab.registry import registry
from benchmarks.measure import costs, machine, one_player
from benchmarks.measure.costs import Cell, Cost, Player
from benchmarks.measure.floors import floor
from benchmarks.measure.machine import Curve, Rates
from benchmarks.measure.one_player import Row
from benchmarks.measure.players import LEFT_OUT, OURS, PEERS, TWO_FORMS
from benchmarks.page import growth
from benchmarks.page.growth import Growth, Point

KEPT = (
    "banditron",
    "epsilon-greedy-direct",
    "soba-diag",
    "linucb",
    "fastcb",
    "soba",
    "ogd",
    "aioli",
    "ons",
    "aggregating",
)
"""Players whose state is arrays of their own from the first round on, without scratch of the same order."""


def of(id_: str) -> Player:
    """Return the first line of a player."""
    return next(player for player in OURS if player.id == id_)


def test_every_player_is_measured_or_left_out_with_a_reason() -> None:
    known = {entry.id for kind in ("agents", "forecasters") for entry in registry().entries(kind)}
    measured = {player.id for player in OURS + PEERS}
    assert measured | set(LEFT_OUT) == known
    assert not measured & set(LEFT_OUT)
    assert all(LEFT_OUT.values())


def test_players_of_two_forms_are_those_that_take_one() -> None:
    """Else the kernels of the other form are compiled while a cell is timed."""
    takes = {p.id for p in OURS if "form" in registry().load(p.kind, p.id).own_settings()}
    wraps = {p.id for p in OURS if registry().load(p.kind, p.id).wraps == "forecaster"}
    assert set(TWO_FORMS) == takes | wraps


def test_labels_tell_lines_apart() -> None:
    labels = [player.label for player in OURS + PEERS]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("id_", KEPT)
def test_declared_state_is_what_the_arrays_hold(id_: str) -> None:
    player = of(id_)
    K, d = player.classes or 12, 64
    made = one_player.build(player, Problem(d, K, 1.0, 20_000))
    kept = sum(one_player.array_bytes(value) for value in one_player.owners(made))
    assert 8.0 * player.state(K, d) == pytest.approx(kept, rel=0.06)


def test_two_matrices_and_a_quotient_an_entry() -> None:
    K, d, hits = 10, 64, 0.5
    cost = of("epsilon-greedy").cost(Cell.dense(K, d, hits))
    assert (cost.gemv, cost.stream, cost.root) == (2.0 * K * d, 4.0 * hits * K * d, hits * K * d)
    one = of("epsilon-greedy-direct").cost(Cell.dense(K, d, hits))
    assert (one.gemv, one.stream, one.root) == (2.0 * K * d, 4.0 * d, d)


def test_per_class_cost_counts_half_of_a_symmetric_matrix() -> None:
    K, d = 10, 64
    cost = costs.per_class(Cell.dense(K, d), K, 0.0)
    assert cost.gemv == 2 * K * d + K * d * (d + 1) + 2 * d * d
    assert cost.stream == d * (d + 1)
    assert cost.moved == K * d + K * d * (d + 1) / 2 + d * (d + 1) / 2


def test_contexts_looked_at_together_are_matrix_products_and_move_the_matrices_less(monkeypatch) -> None:
    K, d = 10, 1024
    long = Cell.dense(K, d, rounds=10**12)
    assert costs.LOOK_FROM == class_inverses.LARGE
    monkeypatch.setattr(costs, "LOOK_FROM", math.inf)
    alone = costs.per_class(long, K, 0.0)
    monkeypatch.setattr(costs, "LOOK_FROM", class_inverses.LARGE)
    together = costs.per_class(long, K, 0.0)
    assert costs.stretch(K, d) == 64
    assert together.gemv == 0.0
    assert together.gemm == pytest.approx(K * (d * d + 2 * 64 * d) + 2 * d * d + 2 * K * d, rel=1e-6)
    assert costs.per_class(long._replace(K=50), 50, 0.0).gemm == pytest.approx(
        50 * (d * d + 130 * d) + 3 * d * d, rel=1e-6
    )
    # read, written, and read once more for the 6.4 contexts that a model learns from in a stretch, instead of once a round
    assert together.moved / alone.moved == pytest.approx(3 / 64, rel=0.1)
    assert costs.per_class(Cell.dense(K, 64), K, 0.0).gemm == 0.0  # fits a near cache
    assert costs.per_class(Cell(K, d, 40.0), K, 0.0).gemm == 0.0  # sparse contexts go one by one


@pytest.mark.parametrize("d", [8, 23, 1024, 1025])
def test_large_models_are_rows_until_these_fill_the_matrix(d: int) -> None:
    assert costs.capacity(d) == low_rank.capacity(packed_symmetric.width(d))


def test_models_that_have_learnt_little_cost_what_they_have_learnt() -> None:
    """Of T rounds, K models learning in turn, the mean rank is T / 2 K; at twice the capacity half of them were whole.

    All became whole once, which takes d^2 operations a row.
    """
    K, d = 10, 1024
    few, more, filled, twice, long = (
        costs.per_class(Cell.dense(K, d, rounds=T), K, 0.0).gemm for T in (100, 200, 5120, 10240, 10**12)
    )
    assert few - 2 * K * d - 64 * d == pytest.approx(5 * (K * (2 * d + 64) + 4 * d))
    assert more - few == pytest.approx(5 * (K * (2 * d + 64) + 4 * d))
    assert twice == pytest.approx((filled + long) / 2 + K * costs.capacity(d) * d * d / 10240)


def test_declared_state_holds_the_room_to_look_ahead() -> None:
    K, d = 10, 512
    made = one_player.build(of("linucb"), Problem(d, K, 1.0, 20_000))
    kept = sum(one_player.array_bytes(value) for value in one_player.owners(made))
    assert 8.0 * of("linucb").state(K, d) == pytest.approx(kept, rel=0.01)


def test_folklore_counts_the_products_of_the_woodbury_step() -> None:
    K, d = 10, 64
    cost = costs.folklore(Cell.dense(K, d))
    assert cost.gemm == K * K * (K + 1) * d * d
    assert cost.gemv - costs.root(Cell.dense(K, d)).gemv == 2 * K * K * d * d


@pytest.mark.parametrize(
    ("cost", "in_d", "in_K"),
    [
        (of("banditron").cost, 1, 1),
        (of("linucb").cost, 2, 1),
        (of("newtron").cost, 2, 1),
        (of("ons").cost, 2, 2),
        (lambda c: costs.forecast(c).plus(costs.woodbury(c)), 2, 3),
    ],
)
def test_orders_are_those_of_the_docstrings(cost: Callable[[Cell], Cost], in_d: int, in_K: int) -> None:
    once, wide, many = (
        cost(Cell.dense(K, d, rounds=10**12)).operations() for K, d in ((400, 4000), (400, 8000), (800, 4000))
    )
    assert np.log2(wide / once) == pytest.approx(in_d, abs=0.03)  # products of contexts, n d, beside d^2
    assert np.log2(many / once) == pytest.approx(in_K, abs=0.02)


def test_large_problems_are_counted_in_the_span_of_the_contexts_learnt() -> None:
    small, large = Cell.dense(10, 64, rounds=90), Cell.dense(50, 1024, rounds=90)
    assert costs.spanned(small, 90.0) == (small, Cost())
    kept, found = costs.spanned(large, 90.0)
    assert kept.d == 52  # 90 / sqrt(3): the root mean square of 1 ... 90
    assert found.gemv > 0.0
    assert costs.spanned(large, 1e9)[0].d == 1024


def flat(rate: float) -> Curve:
    """Return a rate that does not depend on the size."""
    return Curve((1.0, 1e12), (rate, rate))


RATES = Rates(flat(50.0), flat(10.0), flat(5.0), flat(20.0), flat(0.5), flat(0.25), flat(0.5))


def test_floor_is_the_larger_of_operations_and_bytes() -> None:
    row = Row("p", "agents", "logistic", 10, 64, rounds=100, nanoseconds=1e4, mistakes=0.5, nonzero=64.0)
    busy = Player("p", "agents", {}, "", lambda c: Cost(100, 100, 50, 5, 1, 3, 8, 64), lambda K, d: 1e3)
    lazy = Player("p", "forecasters", {}, "", lambda c: Cost(moved=1000.0), lambda K, d: 1e3)
    found = floor(busy, row, RATES, 16.0, 1e6)
    assert found.operations == pytest.approx(
        2 + 10 + max(10, 4 + 6) + 10 + 16
    )  # divisions and roots go beside the stream
    assert sum(found.parts.values()) == pytest.approx(found.operations + 10)
    divided = busy._replace(cost=lambda c: Cost(stream=10, quotient=9))
    assert floor(divided, row, RATES, 16.0, 1e6).operations == pytest.approx(max(2, 18) + 16)
    assert (found.nanoseconds, found.bound) == (found.operations, "operations")
    found = floor(lazy, row, RATES, 16.0, 1e6)
    assert found.operations == 0.0  # no loop: a forecaster draws nothing
    assert found.nanoseconds == pytest.approx((8000 + 8 * 64) / 20.0)
    assert found.bound.startswith("bytes")


def test_rates_between_two_sizes_lie_on_the_line_between_their_logarithms() -> None:
    curve = Curve((1.0, 100.0), (1.0, 16.0))
    assert curve.at(10.0) == pytest.approx(4.0)
    assert (curve.at(0.1), curve.at(1e6)) == (pytest.approx(1.0), pytest.approx(16.0))
    assert curve.best(Curve((1.0, 100.0), (3.0, 2.0))).rates == (3.0, 16.0)


def test_exponents_are_found_again() -> None:
    cells = [(K, d) for K in (2, 10, 50) for d in (8, 64, 256, 1024)]
    points = [Point(K, d, 3.0 * K**1.5 * d**2, 7.0 * d * d * K, 5.0 * K * d**2) for K, d in cells]
    found = growth.grow(points)
    assert found.time == (pytest.approx(2.0), pytest.approx(1.5))
    assert found.operations == (pytest.approx(2.0), pytest.approx(1.0))
    assert growth.grow(points[:1]).time == (None, None)


def test_steep_growth_is_flagged_with_its_reason() -> None:
    steep = Growth((2.3, 1.0), (2.0, 1.0), (2.0, 1.0))
    assert growth.verdict(steep, "") == "steeper in d: NOT EXPLAINED"
    assert growth.verdict(steep, "an open duel") == "steeper in d: an open duel"
    assert "leaves a cache" in growth.verdict(steep._replace(floor=(2.2, 1.0)), "an open duel")
    assert growth.verdict(Growth((2.1, 1.1), (2.0, 1.0), (2.0, 1.0)), "") == ""


@pytest.mark.parametrize("n", [64, 72])
def test_what_is_timed_is_what_it_stands_for(n: int) -> None:
    x, y = np.linspace(0.5, 2.0, n), np.empty(n)
    for kernel, expected in (
        (machine.exponentials_by_eight, np.exp(x - 2.0)),
        (machine.roots, np.sqrt(x)),
        (machine.quotients, 1.0 / x),
    ):
        y[:] = np.nan
        kernel(x, y, 2)
        np.testing.assert_allclose(y, expected, rtol=1e-14)


def test_scores_are_timed_as_the_product_they_are() -> None:
    rng = np.random.default_rng(1)
    A, x = rng.standard_normal((16, 16)), rng.standard_normal(16)
    W, z = matrix(16, 16), np.empty(16)
    W[:] = A
    machine.scored(W, x, z, 2)
    np.testing.assert_allclose(z, A @ x, rtol=1e-12)


def test_numbers_that_are_timed_begin_with_a_cache_line() -> None:
    for n in (1, 64, 513):
        assert machine._aligned(n).ctypes.data % 64 == 0
        assert machine._aligned(n).shape == (n,)
