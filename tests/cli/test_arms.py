"""`compare` and `train` on a table with a column per action, several of which may be right in a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from banditlab import Policy
from banditlab.analysis import load, summary_rows, write_report
from banditlab.cli.main import app
from banditlab.comparison import compare, prepared
from banditlab.engine import play
from banditlab.envs import Table
from banditlab.errors import UsageError
from banditlab.policy.metrics import Metrics
from banditlab.registry import registry


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 prompts and the scores of three models, of which "b" is right most often."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["code", "chat"], 200)
    chance = {"a": np.where(kind == "code", 0.9, 0.2), "b": np.full(200, 0.7), "c": np.full(200, 0.1)}
    scores = {name: np.where(rng.random(200) < p, 0.8 + 0.2 * rng.random(200), 0.5) for name, p in chance.items()}
    file = tmp_path_factory.mktemp("arms") / "prompts.csv"
    usd = {f"usd_{name}": price * rng.random(200) for name, price in (("a", 3.0), ("b", 1.0), ("c", 0.1))}
    pd.DataFrame({"kind": kind, "length": rng.integers(1, 900, 200), **scores, **usd}).to_csv(file, index=False)
    return file


def test_compare_says_what_is_known_in_hindsight_and_plays(table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    right = frame[["a", "b", "c"]] >= 0.8
    made = prepared(table, arms=["a", "b", "c"], right_above=0.8, agents="beta-ts,uniform", repetitions=3)
    assert made.sentences[-1].startswith(
        f"several actions may be right in a row: 'b' is right in {right['b'].mean():.1%} of the rows, and some action is right "
        f"in {right.any(axis=1).mean():.1%}; "
    )
    assert (made.classes, made.n_rows) == (right.sum().to_dict(), 200)
    assert made.spec.norm_bounds == []
    assert "beta-ts" in {block.id for block in prepared(table, arms=["a", "b", "c"], right_above=0.8).spec.agent}
    assert "beta-ts" not in {block.id for block in prepared(table, "kind").spec.agent}
    results = compare(
        table, out=tmp_path / "r", arms=["a", "b", "c"], right_above=0.8, agents="beta-ts,uniform", repetitions=3
    )
    found = {row.label: row.mistakes.mean for row in summary_rows(results)}
    assert found["uniform"] == pytest.approx(1.0 - right.to_numpy().mean(), abs=0.05)
    assert found["beta-ts"] < found["uniform"]
    assert load(tmp_path / "r").missing == 0


def test_of_two_actions_both_may_be_right(table: Path) -> None:
    def complements(**settings: Any) -> list[Any]:
        blocks = prepared(table, agents="stackcb", **settings).spec.agent
        return [block.model_dump().get("complement") for block in blocks]

    two: dict[str, Any] = {"arms": ["a", "b"], "right_above": 0.8, "drop_columns": ["c"]}
    assert complements(**two) == [False]
    assert complements(label="kind") == [None]
    assert complements(arms=["a", "b", "c"], right_above=0.8) == [None]
    new: dict[str, Any] = {"columns": {"age": [18, 80]}, "actions": ["call", "gift"]}
    assert Policy.new(**new).describe()["settings"]["complement"] is False
    assert Policy.new(**new, settings={"complement": True}).describe()["settings"]["complement"] is True


@pytest.mark.slow
def test_a_policy_trained_on_two_actions_has_a_model_for_each(table: Path) -> None:
    two: dict[str, Any] = {"arms": ["a", "b"], "right_above": 0.8, "drop_columns": ["c"]}
    assert Policy.train(table, **two).describe()["settings"]["complement"] is False
    assert Policy.train(table, "kind").describe()["settings"]["complement"] is True


def test_costs_and_what_is_known_in_hindsight_stand_beside_the_agents(table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    costs = frame[[f"usd_{name}" for name in "abc"]].to_numpy()
    right = frame[["a", "b", "c"]].to_numpy() - 0.1 * costs >= 0.7
    best, rows = int(right.sum(axis=0).argmax()), np.arange(200)
    by_kind = {k: int(right[frame["kind"] == k].sum(axis=0).argmax()) for k in ("chat", "code")}
    per = frame["kind"].map(by_kind).to_numpy()
    cheapest = [
        min((c for c in range(3) if right[t, c] or not right[t].any()), key=lambda c: costs[t, c]) for t in rows
    ]
    options: dict[str, Any] = {"costs": ["usd_a", "usd_b", "usd_c"], "worth": 0.1, "per": "kind"}
    results = compare(
        table,
        out=tmp_path / "r",
        arms=["a", "b", "c"],
        right_above=0.7,
        agents="beta-ts,uniform",
        repetitions=3,
        **options,
    )
    found = {row.label: row for row in summary_rows(results)}
    for name, actions in (
        ("best single action", np.full(200, best)),
        ("best action per value of kind", per),
        ("oracle", np.array(cheapest)),
    ):
        assert found[name].mistakes.mean == pytest.approx(1.0 - right[rows, actions].mean(), abs=1e-12)
        assert found[name].cost == pytest.approx(costs[rows, actions].mean(), rel=1e-12)
        assert (found[name].rank, found[name].constant) == ("", True)
    models = found["a logistic model per action"]
    assert found["oracle"].mistakes.mean <= models.mistakes.mean <= found["best single action"].mistakes.mean
    assert found["uniform"].cost == pytest.approx(costs.mean(), rel=0.1)
    assert set(results.runs.loc[results.runs["label"] == "beta-ts", "settings"]) == {"", "per=[0, 1]"}
    assert "most frequent class" not in found
    page = (write_report(results)).read_text()
    assert "always the best single action" in page
    assert "mean cost of the chosen actions" in page
    assert pd.read_csv(tmp_path / "r" / "tables" / "ranking.csv")["mean_cost"].notna().all()
    assert len(list((tmp_path / "r" / "figures").glob("*-costs.svg"))) == 1


def test_mean_cost_is_that_of_the_actions_played(table: Path) -> None:
    env = Table(path=str(table), arms=["a", "b", "c"], right_above=0.7, costs=["usd_a", "usd_b", "usd_c"], horizon=500)
    player = registry().load("agents", "uniform")(env.problem, np.random.default_rng(0))
    played = play(env, player, seed=3, keep_trace=True, checkpoints=[50])
    assert played.trace is not None
    spent = env.action_costs[env.row_order(200), played.trace.action[:200]]
    assert played.diagnostics["mean_cost"] == pytest.approx([spent[:50].mean(), spent.mean()], rel=1e-12)


def test_the_command_line_takes_arms_and_a_policy_of_them(table: Path, tmp_path: Path) -> None:
    def run(*words: object) -> str:
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.output

    arms = ("--arms", "a,b, c", "--right-above", 0.8, "--costs", "usd_a,usd_b,usd_c", "--worth", 0.001, "--per", "kind")
    shown = run("compare", table, *arms, "--agents", "uniform", "--dry-run")
    assert "'b' is right in" in shown
    shown = run("compare", table, *arms, "--agents", "uniform", "--repetitions", 1, "-o", tmp_path / "r")
    assert "mean cost" in shown
    assert "best action per value of kind" in shown
    said = run("train", table, *arms, "--agent", "beta-ts", "-o", tmp_path / "p.policy")
    assert "; always the best single action: " in said
    policy = Policy.load(tmp_path / "p.policy")
    assert policy.classes == ["a", "b", "c"]
    assert policy.describe()["settings"] == {"per": [0, 1]}
    assert f"mean cost {policy.describe()['trained']['mean_cost']:.4g}" in said


def test_a_policy_has_the_mean_cost_of_each_action(table: Path, tmp_path: Path) -> None:
    costs = {name: float(cost) for name, cost in pd.read_csv(table)[["usd_a", "usd_b", "usd_c"]].mean().items()}
    options: dict[str, Any] = {"arms": ["a", "b", "c"], "right_above": 0.8, "agent": "uniform"}
    Policy.train(table, costs=list(costs), **options).save(tmp_path / "p.policy")
    policy, row = Policy.load(tmp_path / "p.policy"), {"kind": "code", "length": 20}
    choices = [*(policy.decide(row) for _ in range(20)), *policy.decide_many([row] * 20)]
    assert all(choice.cost == pytest.approx(costs[f"usd_{choice.action}"], rel=1e-12) for choice in choices)
    assert choices[0].to_dict()["cost"] == choices[0].cost
    text = Metrics(policy.imputed, policy.unknown, policy.late, policy.spent).text().decode()
    for name in "abc":
        spent = sum(choice.cost or 0.0 for choice in choices if choice.action == name)
        found = next(line for line in text.splitlines() if line.startswith(f'banditlab_cost_total{{action="{name}"}}'))
        assert float(found.split()[-1]) == pytest.approx(spent, rel=1e-12)
    policy.add_class("new")
    assert all((choice.cost is None) == (choice.action == "new") for choice in (policy.decide(row) for _ in range(60)))
    free = Policy.train(table, drop_columns=list(costs), **options)
    assert free.decide(row).cost is None
    assert "cost" not in free.decide(row).to_dict()


def test_a_label_beside_arms_is_refused(table: Path) -> None:
    with pytest.raises(UsageError, match="label"):
        prepared(table, "kind", arms=["a", "b"], right_above=0.8)
    with pytest.raises(UsageError, match="arms"):
        prepared(table, arms=["a", "nobody"], right_above=0.8)


def test_a_report_of_many_actions_with_long_names_is_written(tmp_path: Path) -> None:
    arms = [f"tag {'of something ' * 12}{k}" for k in range(4)]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(2, size=(70, 4)), columns=arms).assign(x=rng.random(70))
    frame.to_csv(tmp_path / "tags.csv", index=False)
    results = compare(tmp_path / "tags.csv", out=tmp_path / "r", arms=arms, agents="uniform", repetitions=1)
    assert write_report(results).exists()
