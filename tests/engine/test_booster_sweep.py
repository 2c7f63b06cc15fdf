"""Boosters in a sweep: blocks of their own, settings handed inwards, edges stored, no rank beside agents that see a bit."""

from __future__ import annotations

import pandas as pd
import pytest

from banditlab.engine import make_spec
from banditlab.engine.plan import make_plan
from banditlab.errors import UsageError

BOOSTERS = [
    {
        "id": "adaboost-olm",
        "weak_learner": "forecaster",
        "forecaster": "ogd",
        "weak_learner.step": 0.5,
        "grid": {"n_learners": [1, 2]},
    }
]
EXPLORING = {"id": "boosted-exploration", "booster": "oza", "n_learners": 2, "weak_learner": "forecaster"}


def test_boosters_are_stored_as_references_with_their_edges(small, tmp_path) -> None:
    result = small(agent=[EXPLORING], booster=BOOSTERS, rounds=40).run(tmp_path / "out")
    assert result.failures == []
    table = pd.read_parquet(tmp_path / "out" / "results.parquet")
    kinds = table.groupby("label")["kind"].unique().map(list).to_dict()
    assert kinds == {"adaboost-olm(forecaster)": ["reference"], "boosted-exploration(oza)": ["bit"]}
    boosted = table[table["label"] == "adaboost-olm(forecaster)"]
    assert set(boosted["param.n_learners"]) == {1.0, 2.0}
    assert set(boosted["param.step"]) == {0.5}
    last = boosted[boosted["round"] == 40]
    assert last["diagnostic.edge.1"].between(-1.0, 1.0).all()
    both = last[last["param.n_learners"] == 2.0]
    assert (both["diagnostic.expert_weight.1"] + both["diagnostic.expert_weight.2"]).to_list() == pytest.approx([1, 1])
    assert last[last["param.n_learners"] == 1.0]["diagnostic.edge.2"].isna().all()
    assert (last["diagnostic.best_expert_mistakes"] <= last["diagnostic.best_expert_bound"]).all()


def test_trees_in_a_sweep(small, tmp_path) -> None:
    trees = [{"id": "best-single", "n_learners": 2, "grace_period": 7}]
    assert small(agent=[], booster=trees, rounds=30).run(tmp_path / "out", jobs=1).failures == []
    table = pd.read_parquet(tmp_path / "out" / "results.parquet")
    assert set(table["param.split_confidence"]) == {"random"}  # each tree drew its own
    assert set(table["param.grace_period"]) == {7.0}
    last = table[table["round"] == 30]
    everyone = last[["diagnostic.mistakes.1", "diagnostic.mistakes.2"]]
    assert last["diagnostic.best_mistakes"].to_list() == everyone.min(axis=1).to_list()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"forecaster": "odg"}, "no forecaster is called 'odg'; did you mean 'ogd'?"),
        ({"weak_learner": "tree"}, "no weak_learner is called 'tree'"),
        ({"n_lerners": 3}, "unknown setting 'n_lerners'; did you mean 'n_learners'?"),
        ({"loss": "hinge"}, "loss = 'hinge' is not allowed; it must be"),
    ],
)
def test_a_wrong_setting_is_one_line(change, message) -> None:
    block = {key: value for key, value in BOOSTERS[0].items() if key != "grid"} | change
    spec = {"rounds": 10, "environment": [{"id": "banditlab/Logistic-v0"}], "booster": [block]}
    with pytest.raises(UsageError) as refusal:
        make_plan(make_spec(spec, "spec.toml"), "spec.toml")
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
