"""The bounds of online boosting searched, the settings that search uses, and the committed figure's numbers."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from banditlab.boosting.lea import ExpertAdvice
from banditlab.errors import UsageError
from benchmarks.commands import lemmas
from benchmarks.measure.papers import boosting
from benchmarks.measure.papers.boosting import LINES, Setting, cost_quantile, hedge_ratio, quantile, rich, searched

ONES = Setting(np.array([[True, False], [True, False]]), {"delta": 0.05})


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
@pytest.mark.few(3)
def test_no_setting_is_above(line: boosting.Line) -> None:
    runs = line.name == "olm_plus_weak_learners"  # a setting is a run there
    found = searched(line, 4 if runs else 200, 2 if runs else 50)
    assert found.above == 0
    assert (0.0 if runs else 0.15) < found.ratio < 1.0


def test_a_bound_that_is_false_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosting, "hedge_mistakes_with_confidence", lambda best, n, delta: 0.4 * (best + 1.0))
    assert searched(LINES[0], 20, 5).above > 0


def test_the_law_of_a_sum() -> None:
    coin = np.array([0.5, 0.5])
    assert [quantile([coin] * 4, delta) for delta in (0.9, 0.5, 5 / 16, 0.1, 1 / 16)] == [1, 2, 2, 3, 3]
    # hedge over two experts, the first always wrong: 1/2, then e^-1/(1 + e^-1)
    second = 1.0 / (1.0 + math.e)
    both = 0.5 * second
    assert both > 0.05
    assert hedge_ratio(ONES) == 2 / boosting.hedge_mistakes_with_confidence(0.0, 2, 0.05)
    assert hedge_ratio(ONES._replace(numbers={"delta": both + 1e-6})) < hedge_ratio(ONES)


def test_algorithm_3_by_hand() -> None:
    player = ExpertAdvice(2, 2)
    np.testing.assert_allclose(player.weights(), 0.5)
    player.update(np.array([1.0, 0.25]))
    ratio = math.exp(-math.sqrt(8.0 * math.log(2.0) / 2.0) * 0.75)
    np.testing.assert_allclose(player.weights(), np.array([ratio, 1.0]) / (1.0 + ratio))
    player.update(np.full(2, 1e6))  # what all experts pay changes nothing, however much
    np.testing.assert_allclose(player.weights(), np.array([ratio, 1.0]) / (1.0 + ratio))
    assert cost_quantile(np.array([[1.0, 0.0]]), 0.5) == 0.0
    assert cost_quantile(np.array([[1.0, 0.0]]), 0.4) == 1.0


@pytest.mark.parametrize(
    ("rounds", "experts", "said"),
    [(0, 2, "rounds must be at least 1"), (3, 0, "n_experts must be at least 1"), (3, 2.0, "n_experts must be an int")],
)
def test_algorithm_3_refuses(rounds: int, experts: int, said: str) -> None:
    with pytest.raises(UsageError, match=f"^{said}"):
        ExpertAdvice(rounds, experts)


@pytest.mark.parametrize("costs", [[0.5], [0.5, np.inf], [0.5, np.nan], [-1e-200, 0.0], 1.0])
def test_costs_outside_the_algorithm_are_refused(costs):
    with pytest.raises(UsageError, match=r"^costs must be of shape \(2,\), finite and at least 0"):
        ExpertAdvice(2, 2).update(costs)


def test_the_rich_expert_meets_12_at_every_round() -> None:
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.3, 1.0, 50)
    rows = np.zeros((50, 3))
    rows[:, 1:] = weights[:, None] * rng.dirichlet(np.ones(2), 50)
    costs = rich(rows, weights, 0.4)
    assert (np.cumsum(costs) <= 0.2 * np.cumsum(weights) + 1e-12).all()
    assert costs.sum() >= 0.2 * weights.sum() - 1.0


def test_the_figures_numbers_are_those_committed() -> None:
    with lemmas.CURVES.open(encoding="utf-8") as file:
        stored = list(csv.DictReader(file))
    fresh = lemmas.curves()
    assert len(stored) == len(fresh) == 2 * 99
    for old, new in zip(stored, fresh, strict=True):
        assert {name: float(value) for name, value in old.items()} == pytest.approx(new, rel=1e-5)
        assert new["floor"] <= new["phi"] <= new["Lemma 9"]
    page = lemmas.PAGE.read_text("utf-8")
    for edge in lemmas.EDGES:
        top = lemmas.largest(fresh, edge)
        assert f"{top['phi']:.3f} at k = {top['k']} for $\\gamma$ = {edge}" in page
