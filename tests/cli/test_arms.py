"""`compare` and `train` on a table with a column per action, several of which may be right in a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from banditlab import Policy
from banditlab.analysis import load, summary_rows
from banditlab.cli.main import app
from banditlab.comparison import compare, prepared
from banditlab.errors import UsageError


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 prompts and the scores of three models, of which "b" is right most often."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["code", "chat"], 200)
    chance = {"a": np.where(kind == "code", 0.9, 0.2), "b": np.full(200, 0.7), "c": np.full(200, 0.1)}
    scores = {name: np.where(rng.random(200) < p, 0.8 + 0.2 * rng.random(200), 0.5) for name, p in chance.items()}
    file = tmp_path_factory.mktemp("arms") / "prompts.csv"
    pd.DataFrame({"kind": kind, "length": rng.integers(1, 900, 200), **scores}).to_csv(file, index=False)
    return file


def test_compare_says_what_is_known_in_hindsight_and_plays(table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    right = frame[["a", "b", "c"]] >= 0.8
    made = prepared(table, arms=["a", "b", "c"], right_above=0.8, agents="beta-ts,uniform", repetitions=3)
    assert made.sentences[-1].startswith(
        f"several actions may be right in a row: always 'b' is right in {right['b'].mean():.1%} of the rows, and whoever "
        f"knows all columns is right in {right.any(axis=1).mean():.1%}; "
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


def test_the_command_line_takes_arms_and_a_policy_of_them(table: Path, tmp_path: Path) -> None:
    def run(*words: object) -> str:
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.output

    shown = run("compare", table, "--arms", "a,b, c", "--right-above", 0.8, "--agents", "uniform", "--dry-run")
    assert "always 'b' is right in" in shown
    run("train", table, "--arms", "a,b,c", "--right-above", 0.8, "--agent", "beta-ts", "-o", tmp_path / "p.policy")
    policy = Policy.load(tmp_path / "p.policy")
    assert policy.classes == ["a", "b", "c"]
    assert policy.decide({"kind": "code", "length": 20}).action in policy.classes


def test_a_label_beside_arms_is_refused(table: Path) -> None:
    with pytest.raises(UsageError, match="label"):
        prepared(table, "kind", arms=["a", "b"], right_above=0.8)
    with pytest.raises(UsageError, match="arms"):
        prepared(table, arms=["a", "nobody"], right_above=0.8)
