"""Vowpal Wabbit's dsjson: its lines field by field, its logs evaluated, ours read by it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from banditlab import Policy
from banditlab.cli.main import app
from banditlab.errors import UsageError
from banditlab.policy.dsjson import BROKEN, OBSERVED, SKIPPED, line_of
from banditlab.policy.evaluating import evaluate_log
from banditlab.policy.exporting import export_log
from tests.policy.customers import new_rows, rows

DOCUMENTED = """{
  "_label_cost": -1.0, "_label_probability": 0.8166667, "_label_Action": 2, "_labelIndex": 1,
  "o": [{"v": 1.0, "EventId": "38cbf24f-70b2-4c76-aa0c-970d0c8d388e", "ActionTaken": false}],
  "Timestamp": "2020-11-15T17:09:31.8350000Z", "Version": "1", "EventId": "38cbf24f-70b2-4c76-aa0c-970d0c8d388e",
  "a": [2, 1, 3],
  "c": {
    "GUser": {"id": "person5", "major": "engineering", "hobby": "hiking", "favorite_character": "spock"},
    "_multi": [{"TAction": {"topic": "SkiConditions-VT"}}, {"TAction": {"topic": "HerbGarden"}},
               {"TAction": {"topic": "BeyBlades"}}]
  },
  "p": [0.8166667, 0.1, 0.0833333], "VWState": {"m": "N/A"}
}"""
"""A line with the fields that Vowpal Wabbit documents; on one line in a file."""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the log has no rounds"),
        (bytes(range(256)) * 4, "lines that are not a JSON object with a decision"),
    ],
)
def test_the_ending_tells_a_file_without_decisions(data: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "log.dsjson"
    file.write_bytes(data)
    with pytest.raises(UsageError, match=message):
        evaluate_log(str(file), "uniform")


def test_a_line_is_read_field_by_field() -> None:
    line = line_of(" ".join(DOCUMENTED.split()))
    assert not isinstance(line, str)
    assert line.id == "38cbf24f-70b2-4c76-aa0c-970d0c8d388e"
    assert (line.cost, line.probability, line.action, line.drop) == (-1.0, 0.8166667, 1, 0.0)
    assert (line.actions, line.probabilities) == ([2, 1, 3], [0.8166667, 0.1, 0.0833333])
    about = {"id": "person5", "major": "engineering", "hobby": "hiking", "favorite_character": "spock"}
    assert line.row == {f"GUser.{name}": value for name, value in about.items()}
    assert line.size == 3


@pytest.mark.parametrize("left_out", ["_labelIndex", "_label_Action"])
def test_the_action_has_two_more_places(left_out: str) -> None:
    fields = json.loads(DOCUMENTED)
    del fields["_labelIndex"]
    fields.pop(left_out, None)
    line = line_of(json.dumps(fields))
    assert not isinstance(line, str)
    assert line.action == 1


def test_a_line_without_a_decision_says_why() -> None:
    fields = json.loads(DOCUMENTED)
    assert line_of(json.dumps(fields | {"_skipLearn": True})) == SKIPPED
    assert line_of(json.dumps(fields | {"a": []})) == OBSERVED
    assert line_of('{"RewardValue": 1.0, "EventId": "38cb"}') == OBSERVED
    for broken in (
        "{", "[]", "7", '"text"', "null", json.dumps(fields)[:200], json.dumps(fields | {"c": 3}),
        json.dumps(fields | {"p": "x"}),
        json.dumps({name: value for name, value in fields.items() if name != "_label_cost"}),
        json.dumps(fields | {"_label_cost": math.nan}), json.dumps(fields | {"p": [math.nan, 1, 0]}),
        json.dumps(fields | {"_label_cost": 10**400}), json.dumps(fields).replace('"_labelIndex": 1', '"_labelIndex": 1e999'),
        json.dumps(fields | {"EventId": "\ud800"}), json.dumps(fields | {"c": fields["c"] | {"text": "\ud800"}}),
        json.dumps(fields | {"c": {}}), json.dumps(fields | {"c": {"_multi": 3}}),
        json.dumps(fields | {"_label_cost": None}), json.dumps(fields | {"a": ["x"]}), "[" * 10**5,
    ):  # fmt: skip
        assert line_of(broken) == BROKEN, broken[:80]
    for depth in range(700, 1000, 10):  # deep contexts are read, or are a fault; none ends in a traceback
        line = line_of(json.dumps(fields).replace('"person5"', "[" * depth + "1" + "]" * depth))
        assert line == BROKEN or line.size == 3, depth


def lines(n: int = 600) -> tuple[list[dict[str, Any]], float]:
    """Return n decisions between three actions, of which the third is not always there, and the value of uniform choice."""
    rng, found, value = np.random.default_rng(0), [], 0.0
    for i in range(n):
        K, x = 3 - int(rng.random() < 0.3), int(rng.integers(2))
        p = np.full(K, 0.2 / K)
        p[x] += 0.8
        chance = np.array([0.2, 0.7, 0.9])[:K] if x else np.array([0.6, 0.1, 0.9])[:K]
        a = int(rng.choice(K, p=p))
        order = [a, *(k for k in range(K) if k != a)]
        value += chance.mean() / n
        fields = json.loads(DOCUMENTED) | {"_label_cost": -float(rng.random() < chance[a]), "EventId": f"{i:08x}"}
        fields |= {"_label_probability": float(np.float32(p[a])), "_labelIndex": a, "_label_Action": a + 1}
        fields |= {"a": [k + 1 for k in order], "p": [float(np.float32(p[k])) for k in order]}
        fields["c"] = {"x": x, "text": "ab"[x], "flag": True, "none": None, "list": [1.5, x], "_text": "one two"}
        found.append(fields | {"c": fields["c"] | {"_multi": [{"T": {"k": k}} for k in range(K)]}})
    return found, value


def write(path: Path, found: list[Any]) -> Path:
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in found))
    return path


def test_an_interval_holds_what_is_true_of_a_log(tmp_path: Path) -> None:
    found, value = lines()
    extra = [found[0] | {"_skipLearn": True}, {"RewardValue": 1, "EventId": "00000001"}, "", found[1] | {"a": []}]
    file = write(tmp_path / "log.dsjson", [*found, *extra])
    made = evaluate_log(file)
    assert made.evaluation.low < value < made.evaluation.high
    assert made.evaluation.value == pytest.approx(value, abs=0.1)
    assert (made.evaluation.rounds, made.actions) == (600, ["1", "2", "3"])
    assert made.notes == [
        "1 lines are left out: _skipLearn excludes them from learning",
        "2 lines are left out: they have an observation instead of a decision, or no action",
    ]
    trained = evaluate_log(file, "trained").evaluation
    assert (trained.unsupported, trained.value > 0.7) == (0.0, True)
    assert evaluate_log(file, "best-single").evaluation.rounds == 300
    for fields in found:
        del fields["p"]
    without = evaluate_log(write(tmp_path / "without", found)).evaluation
    assert without.ips == pytest.approx(made.evaluation.ips, rel=1e-5)
    assert without.low < value < without.high


def test_all_faults_of_a_log_are_named_at_once(tmp_path: Path) -> None:
    found, _ = lines(20)
    found[1] |= {"_label_probability": 0.0, "p": [0.0, *found[1]["p"][1:]]}
    found[2] |= {"_label_cost": 0.5}
    found[3] |= {"_labelIndex": 2}  # of two actions, 0 and 1
    found[4] |= {"EventId": "00000003"}
    found[5] |= {"pdrop": 0.5}
    found[6] |= {"_label_probability": found[6]["p"][0] + 1.5e-4}
    found[7] |= {"a": [1, 1, 2]}
    found[9] |= {"p": [1.0]}
    found[10] |= {"_labelIndex": 1e30}
    found[11] |= {"_label_cost": -1e200}
    found[12] |= {"p": [1e200, *found[12]["p"][1:]]}
    found[13] |= {"p": [0.99995 * p for p in found[13]["p"]]}  # which rounding explains
    file = write(tmp_path / "bad.dsjson", [*found, json.dumps(found[8])[:100], "{}{"])
    with pytest.raises(UsageError) as caught:
        evaluate_log(file)
    for fault in (
        "2 x lines that are not a JSON object with a decision and its label",
        "1 x lines with a pdrop, from a subsampled log",
        "2 x lines in which a or p does not have each action of _multi once",
        "1 x repeated ids",
        "2 x actions that are not integers from 0 to 2",
        "2 x rewards that are not 0 or 1",
        "2 x lines in which p and _label_probability differ",
        "2 x rows of propensities that are not probabilities with sum 1",
    ):
        assert fault in str(caught.value), (fault, caught.value)
    assert str(file) in str(caught.value)
    with pytest.raises(UsageError, match="the log has no rounds"):
        evaluate_log(write(tmp_path / "none.dsjson", ['{"EventId": "1"}']))
    with pytest.raises(UsageError, match="--reward applies to tables only"):
        evaluate_log(file, reward="y")
    with pytest.raises(UsageError, match="--policy column:x applies to tables only"):
        evaluate_log(file, "column:x")


# ------------------------------------------------------------------------------------------------------- our own logs


@pytest.fixture(scope="module")
def event_log(policy_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of 300 decisions, among other actions from time to time, 250 of them answered."""
    log = tmp_path_factory.mktemp("log") / "e.db"
    with Policy.open(policy_file, log, holdback=0.2, floor=0.05) as policy, policy.together():
        for i, (row, full) in enumerate(zip(new_rows(300), rows(300, 1), strict=True)):
            choice = policy.decide(row, allowed=["call", "none"] if i % 7 == 0 else None)
            if i >= 50:
                policy.feedback(choice.id, choice.action == full["offer"])
    return log


@pytest.mark.parametrize("ending", ["dsjson", "parquet"])
def test_an_exported_log_says_what_the_log_says(
    event_log: Path, ending: str, policy_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / f"log.{ending}"
    done = CliRunner().invoke(app, ["log", "export", str(event_log), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"250 decisions written to {out}\n50 of 300 decisions have no answer")
    ours, theirs = evaluate_log(event_log, logger="learning"), evaluate_log(out, logger="learning", **IDS[ending])
    assert theirs.logged == ours.logged
    for policy in (str(policy_file), "linucb"):  # choose what was allowed
        assert evaluate_log(event_log, policy).evaluation.unsupported == 0.0
    if ending == "dsjson":  # in Parquet, uniform choice is among all actions
        for name in ("ips", "snips", "effective_sample_size", "largest_weight"):
            assert getattr(theirs.evaluation, name) == pytest.approx(getattr(ours.evaluation, name), rel=1e-12)
        for line in map(json.loads, out.read_text().splitlines()):
            assert line["a"][0] == line["_label_Action"] == line["_labelIndex"] + 1
            assert all([*each["action"].values()] == [1] for each in line["c"]["_multi"])
    else:
        frame = pd.read_parquet(out)
        assert [*frame.columns[:9]] == ["id", "time", "action", "reward", "propensity", "held", *NAMES]
        assert 20 < frame["held"].sum() < 100
        assert frame[[*NAMES]].sum(axis=1).to_numpy() == pytest.approx(np.ones(250))
    with pytest.raises(UsageError, match=r"the ending must be \.dsjson or \.parquet"):
        export_log(event_log, tmp_path / "log.csv")
    with pytest.raises(UsageError, match="cannot be written"):
        export_log(event_log, tmp_path / "nowhere" / f"log.{ending}")


IDS: dict[str, dict[str, Any]] = {"dsjson": {}, "parquet": {"id": "id"}}
NAMES = ("p:call", "p:none", "p:upgrade")


def as_adf_text(file: Path) -> str:
    """Return a file in dsjson as Vowpal Wabbit's text of actions with features, written independently."""
    examples = []
    for line in file.read_text().splitlines():
        fields = json.loads(line)
        numbers = " ".join(f"{name}:{value!r}" for name, value in fields["c"]["x"].items())
        text = [f"shared |x {numbers}"]
        for k, each in enumerate(fields["c"]["_multi"]):
            [name] = each["action"]
            label = f"0:{fields['_label_cost']}:{fields['_label_probability']!r} " if k == fields["_labelIndex"] else ""
            text.append(f"{label}|action {name}:1")
        examples.append("\n".join(text) + "\n\n")
    return "".join(examples)


def test_vowpal_wabbit_has_the_same_loss_on_our_dsjson_as_on_its_own_text(event_log: Path, tmp_path: Path) -> None:
    vowpalwabbit = pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed (extra peers)")
    export_log(event_log, tmp_path / "log.dsjson")
    (tmp_path / "log.txt").write_text(as_adf_text(tmp_path / "log.dsjson"))
    losses = []
    for file, kind in (("log.dsjson", "--dsjson"), ("log.txt", "")):
        learner = vowpalwabbit.Workspace(f"--cb_explore_adf --quiet -q xa {kind} -d {tmp_path / file}")
        learner.finish()
        losses.append((learner.get_sum_loss(), learner.get_weighted_examples()))
    assert losses[0][1] == losses[1][1] == 250
    assert losses[0][0] == pytest.approx(losses[1][0], rel=1e-6)
    assert losses[0][0] < -50.0
