"""What a run in an adaptive environment records of a bound: the number where its theorem covers it, else NaN and the reason."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab.agents import Agent
from banditlab.analysis.arena import Arena, arenas
from banditlab.analysis.curves import relative_panels
from banditlab.analysis.explore import _bounds
from banditlab.analysis.exports import ranking
from banditlab.analysis.papers import latex_table, paper_tables
from banditlab.analysis.report import write_report
from banditlab.analysis.summary import bounds_table, standings
from banditlab.analysis.tables import load
from banditlab.bounds import THEOREMS
from banditlab.checks import run_checks
from banditlab.cli.listing import bound_line
from banditlab.engine import Sweep, make_spec
from banditlab.engine.runner import play
from banditlab.envs import Adversary, Logistic
from banditlab.players.player import Player
from banditlab.problem import Decision, Problem
from banditlab.registry import registry

UNCOVERED = "no theorem covers this stream"
ADAPTIVE = {
    *(
        "aggregating",
        "aioli",
        "aioli-direct",
        "folklore",
        "folklore-direct",
        "ftrl",
        "gaf-fresh",
        "b-grid",
        "kernel-aioli",
    ),
    *("kernel-folklore", "ogd", "ons", "randomized-decoding", "sampled"),
}
"""Players that learn from every label, and whose state follows from the labels or from samples drawn before each of them."""
SETTINGS: dict[str, dict[str, Any]] = {
    **{name: {} for name in (*ADAPTIVE, "exploration", "gaptron", "rdue", "decoded-descent")},
    **{key: {"smoothing": "theory"} for key in ("gaf", "gaf-fresh")},
    **{key: {"kernel": "linear"} for key in ("kernel-aioli", "kernel-folklore")},
    "aggregating": {"sampler": "quadrature"},
}
"""Settings at which `bound` is a number, in one dimension with two classes."""
SPEC = {
    "name": "adaptive",
    "rounds": 40,
    "repetitions": 2,
    "norm_bounds": [1],
    "environment": [{"id": "banditlab/Adversary-v0", "n_features": 2, "n_classes": 2}, {"id": "banditlab/Logistic-v0"}],
    "agent": [
        {"id": "exploration", "forecaster": "ogd", "gamma": 0.5},
        {"id": "rdue"},
        {"id": "sampled", "forecaster": "ogd"},
    ],
    "forecaster": [{"id": "ogd"}],
}


class Promising(Agent):
    """A plug-in's agent with a bound, which says nothing about adversaries."""

    id = "promising"
    bound_unit = "nats"

    def act(self, context: Any) -> Decision:
        return Decision(0, np.eye(self.problem.n_classes)[0])

    def learn(self, context: Any, decision: Decision, correct: bool) -> None:
        pass

    def bound(self, rounds: int) -> float:
        return 7.0

    def certificate(self) -> float:
        return 5.0


class Covered(Promising):
    """The same that says that its bound holds there."""

    bound_adversary = "adaptive"


def players() -> list[Any]:
    return [entry for kind in ("agents", "forecasters") for entry in registry().entries(kind)]


def theorems_called(player: Player, rounds: int) -> set[str]:
    """Return the names of the theorems that `bound` calls."""
    names = {t.function.__wrapped__.__code__: t.name for t in THEOREMS.values()}  # type: ignore[attr-defined]
    called = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in names:
            called.add(names[frame.f_code])

    sys.setprofile(note)
    try:
        player.bound(rounds)
    finally:
        sys.setprofile(None)
    return called


def test_who_says_that_a_bound_holds_against_an_adaptive_adversary() -> None:
    made = {entry.id: entry.load() for entry in players()}
    said = {id_ for id_, cls in made.items() if cls.bound_adversary != "oblivious"}
    assert said == ADAPTIVE


@pytest.mark.parametrize("id_", sorted(SETTINGS))
def test_a_player_claims_no_more_than_the_theorems_that_it_calls(id_: str) -> None:
    [entry] = [entry for entry in players() if entry.id == id_]
    player = entry.load()(Problem(1, 2, 1.0, 50), np.random.default_rng(0), **SETTINGS[id_])
    assert player.bound(50) is not None
    called = {THEOREMS[name].adversary for name in theorems_called(player, 50)}
    if player.bound_adversary == "adaptive":
        assert called == {"adaptive"}
    else:
        assert "oblivious" in called or id_ == "gaf"  # whose samples are drawn once, so that labels may depend on them


@pytest.mark.parametrize(("forecaster", "claim"), [("ogd", "adaptive"), ("gaf", "oblivious")])
def test_sampled_claims_what_its_forecaster_does(forecaster: str, claim: str) -> None:
    cls, problem = registry().load("agents", "sampled"), Problem(2, 3, 1.0, 9)
    sampled = cls(problem, np.random.default_rng(0), forecaster=forecaster)
    assert sampled.bound_adversary == claim


@pytest.mark.parametrize(
    ("cls", "env", "bound", "reason"),
    [
        (Promising, Adversary, math.nan, UNCOVERED),
        (Covered, Adversary, 7.0, ""),
        (Promising, Logistic, 7.0, ""),
        (Covered, Logistic, 7.0, ""),
    ],
)
def test_a_plug_ins_bound_is_recorded_where_it_says_that_it_holds(
    cls: Any, env: Any, bound: float, reason: str
) -> None:
    game = env(n_features=2, n_classes=3, horizon=9)
    played = play(game, cls(game.problem, np.random.default_rng(0)), seed=1, checkpoints=[3])
    np.testing.assert_array_equal(played.bound, [bound, bound])
    np.testing.assert_array_equal(played.certificate, [5.0 if reason == "" else math.nan] * 2)
    assert played.no_bound == reason


def test_a_player_without_a_bound_has_no_reason() -> None:
    class Silent(Promising):
        bound = Player.bound  # type: ignore[assignment]

    game = Adversary(n_features=2, horizon=9)
    assert play(game, Silent(game.problem, np.random.default_rng(0)), seed=1).no_bound == ""


def test_another_word_fails_the_conformance_check() -> None:
    class Loud(Promising):
        bound_adversary = "any"

    [bounds] = [result for result in run_checks(Loud) if result.name == "bounds"]
    assert "bound_adversary must be one of ('oblivious', 'adaptive'), got 'any'" in str(bounds)


def test_describe_says_against_whom_a_bound_holds() -> None:
    lines = {entry.id: bound_line(entry.load()) for entry in players() if entry.id in ("rdue", "ogd")}
    assert ", loss(U) in bits, oblivious adversary, with default settings" in lines["rdue"]
    assert ", loss(U) in nats, adaptive adversary, with default settings" in lines["ogd"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[str, str], Arena]]:
    out = tmp_path_factory.mktemp("adaptive") / "out"
    Sweep(make_spec(SPEC, "test")).run(out)
    return out, {
        (arena.environment.partition("(")[0].partition("/")[2], arena.kind): arena for arena in arenas(load(out))
    }


def test_stored_rows_have_no_number_and_the_reason(swept: Any) -> None:
    runs = pd.read_parquet(swept[0] / "results.parquet")
    adaptive = runs["environment"].str.startswith("banditlab/Adversary")
    weighted = runs["player"].isin(["exploration", "rdue"])
    assert runs.loc[adaptive & weighted, "bound"].isna().all()
    assert set(runs.loc[adaptive & weighted, "no_bound"]) == {UNCOVERED}
    assert runs.loc[~(adaptive & weighted), "bound"].notna().all()
    assert set(runs.loc[~(adaptive & weighted), "no_bound"]) == {""}


def test_tables_exports_and_page_give_the_reason_in_the_bounds_place(swept: Any) -> None:
    out, every = swept
    arena = every["Adversary-v0", "bit"]
    table = bounds_table(arena)
    assert set(table["label"]) == {"exploration(ogd)", "rdue"}
    assert set(table["verdict"]) == {UNCOVERED}
    assert table[["bound", "bound_shown", "guarantee"]].isna().all(axis=None)
    assert {row["promise"] for row in _bounds(arena).values()} == {UNCOVERED}
    assert latex_table("bounds", paper_tables(arena)["bounds"], arena, "x").count(UNCOVERED) == 2
    assert set(bounds_table(every["Adversary-v0", "label"])["verdict"]) <= {"holds", "vacuous"}
    assert set(bounds_table(every["Logistic-v0", "bit"])["verdict"]) <= {"holds", "vacuous"}
    text = write_report(out).read_text(encoding="utf-8")
    assert text.count(f"<td>{UNCOVERED}</td>") == 4  # of two players, on the first screen and in the table of bounds
    written = pd.read_csv(out / "tables" / "bounds.csv")
    assert (written["verdict"] == UNCOVERED).sum() == 2


def test_where_streams_differ_by_player_nothing_relative_to_a_loss_is_compared(swept: Any) -> None:
    adaptive, shared = swept[1]["Adversary-v0", "bit"], swept[1]["Logistic-v0", "bit"]
    assert relative_panels(adaptive) == []
    assert ranking(standings(adaptive))[["relative", "ratio"]].isna().all(axis=None)
    assert len(relative_panels(shared)) == 1
    assert ranking(standings(shared))[["relative", "ratio"]].notna().all(axis=None)


def test_runs_stored_without_the_column_load(swept: Any) -> None:
    from banditlab.analysis.tables import _with_ranked

    runs = load(swept[0]).runs
    assert set(_with_ranked(runs.drop(columns="no_bound"))["no_bound"]) == {""}
