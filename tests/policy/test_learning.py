"""`train --from-log`: a policy learns from another one's log, is evaluated on its later part, and serves on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from banditlab import Policy
from banditlab.cli.main import app
from banditlab.errors import BanditlabError, UsageError
from banditlab.policy.container import read
from banditlab.policy.evaluating import evaluate_log
from banditlab.policy.learning import train_from_log
from benchmarks.commands.logs import written_events
from tests.policy.customers import new_rows, rows


@pytest.fixture(scope="module")
def uniform_log(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of 1,000 decisions by chance."""
    folder = tmp_path_factory.mktemp("log")
    Policy.train(table, "offer", agent="uniform").save(folder / "old.policy")
    with Policy.open(folder / "old.policy", folder / "e.db") as policy, policy.together():
        for row, full in zip(new_rows(1000), rows(1000, 1), strict=True):
            choice = policy.decide(row)
            policy.feedback(choice.id, choice.action == full["offer"])
    return folder / "e.db"


@pytest.mark.parametrize("agent", ["fastcb", "linucb"])
def test_what_is_learnt_from_a_log_is_better_and_the_interval_holds_the_truth(
    uniform_log: Path, agent: str, tmp_path: Path
) -> None:
    out = tmp_path / "new.policy"
    made = train_from_log(uniform_log, out, agent=agent)
    assert made.evaluation.rounds == 200
    policy = Policy.load(out)
    pairs = list(zip(new_rows(1000)[800:], rows(1000, 1)[800:], strict=True))
    truth = np.mean([policy.decide(row).scores[full["offer"]] for row, full in pairs])
    assert truth > 0.6
    assert made.evaluation.low < truth < made.evaluation.high
    assert made.logged < 0.5
    said = policy.describe()
    assert (said["agent"], said["trained"]["file"], said["trained"]["rows"]) == (agent, "e.db", 0)
    assert (said["trained"]["seed"], said["decisions"], said["feedback"], said["right"]) == (0, len(pairs), 0, 0)
    with Policy.load(out, holdback=0.1, holdback_policy=uniform_log.parent / "old.policy") as policy:  # and serves on
        choice = policy.decide(new_rows(1)[0])
        policy.feedback(choice.id, True)


def test_the_command_writes_it_and_says_what_it_is_worth(uniform_log: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.policy"
    done = CliRunner().invoke(app, ["train", "--from-log", str(uniform_log), "-o", str(out), "--agent", "linucb"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("decisions: 200 of 3 actions, mean reward ")
    assert "next: banditlab serve" in done.output
    for odd, said in (
        (["--label", "offer"], "without --label and --best-of"),
        (["--scaling", "none"], "the log's policy determines the encoding of the columns; leave out scaling"),
        (["--agent", "newtron", "--set", "gamma=0.1"], "--from-log: newtron stores numbers about the class it chose"),
        (["--agent", "nobody"], "no agent is called 'nobody'"),
    ):
        done = CliRunner().invoke(app, ["train", "--from-log", str(uniform_log), "-o", str(out), *odd])
        assert done.exit_code != 0
        assert said in str(done.exception), (odd, done.exception)


# ------------------------------------------------------------------------------------------ tables, dsjson


def table_of(n: int) -> pd.DataFrame:
    """Return n decisions with known propensities in random order of actions, each with the action that is right in it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rows(n, 1))
    a = rng.choice(3, n, p=P)
    frame = frame.assign(action=OFFERS[a], propensity=P[a], note=np.where(np.arange(n) % 9 == 0, None, "x"))
    return frame.assign(reward=(frame["action"] == frame["offer"]).astype(int))


P, OFFERS = np.array([0.5, 0.3, 0.2]), np.array(["call", "none", "upgrade"])


def written(file: Path, frame: pd.DataFrame) -> Path:
    """Write a table of decisions in the form of a file's ending; in dsjson, action k is called k + 1."""
    frame = frame.drop(columns="offer")
    if file.suffix == ".parquet":
        frame.to_parquet(file)
    elif file.suffix == ".csv":
        frame.to_csv(file, index=False)
    else:
        lines = []
        for row in frame.to_dict("records"):
            k = [*OFFERS].index(row["action"])
            order = [k, *({0, 1, 2} - {k})]
            line = {
                "_label_cost": -row["reward"],
                "_label_probability": P[k],
                "_labelIndex": k,
                "a": [j + 1 for j in order],
            }
            context = {"user": {"plan": row["plan"], "age": row["age"]}, "visits": row["visits"]}
            context |= {"note": row["note"]} if isinstance(row["note"], str) else {}
            lines.append(json.dumps(line | {"c": context | {"_multi": [{}] * 3}, "p": P[order].tolist()}) + "\n")
        file.write_text("".join(lines))
    return file


@pytest.mark.parametrize("ending", ["csv", "parquet", "dsjson"])
@pytest.mark.parametrize("agent", ["stackcb", "linucb"])
def test_a_policy_is_learnt_from_any_log_evaluated_on_its_end_and_serves_on(
    ending: str, agent: str, tmp_path: Path
) -> None:
    frame, out = table_of(1500), tmp_path / "new.policy"
    made = train_from_log(written(tmp_path / f"log.{ending}", frame), out, agent=agent)
    in_dsjson = ending == "dsjson"
    names = ["1", "2", "3"] if in_dsjson else [*OFFERS]
    assert (made.evaluation.rounds, made.actions) == (300, names)
    assert made.logged == frame["reward"][1200:].mean()
    policy = Policy.load(out)
    assert policy.classes == names
    assert {column.name: column.role for column in read(out).encoder.columns} == {
        f"{'user.' * in_dsjson}plan": "nominal",
        f"{'user.' * in_dsjson}age": "numeric",
        "visits": "numeric",
        "note": "nominal",
    }
    found = []
    for row in frame[1200:].to_dict("records"):
        x = {"plan": row["plan"], "age": row["age"], "visits": row["visits"], "note": row["note"]}
        x = {"user.plan": x.pop("plan"), "user.age": x.pop("age"), **x} if in_dsjson else x
        scores = policy.decide(x).scores
        found.append(scores[names[[*OFFERS].index(row["offer"])]])
    assert np.mean(found) > 0.6
    assert made.evaluation.low < np.mean(found) < made.evaluation.high
    assert made.logged < 0.45
    with Policy.open(out, tmp_path / "e.db") as policy:  # and goes on to learn
        choice = policy.decide(x)
        policy.feedback(choice.id, True)
        assert choice.action in names


def test_the_rounds_that_evaluate_are_learnt_from_by_nobody(tmp_path: Path) -> None:
    frame = table_of(500)
    train_from_log(written(tmp_path / "a.csv", frame), tmp_path / "a.policy", agent="linucb")
    frame.loc[400:, "reward"] = 1 - frame.loc[400:, "reward"]
    train_from_log(written(tmp_path / "b.csv", frame), tmp_path / "b.policy", agent="linucb")
    row = {"plan": "pro", "age": 30, "visits": 1.0, "note": "x"}
    one, other = (Policy.load(tmp_path / f"{name}.policy").decide(row).scores for name in "ab")
    assert one == other
    frame.loc[399, "reward"] = 1 - frame.loc[399, "reward"]
    train_from_log(written(tmp_path / "b.csv", frame), tmp_path / "b.policy", agent="linucb")
    states = [read(tmp_path / f"{name}.policy").core.agent.get_state() for name in "ab"]
    assert repr(states[0]) != repr(states[1])


def test_parts_of_a_log_are_learnt_from_as_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame, made = table_of(500), []
    for part in (2**16, 77):
        monkeypatch.setattr("banditlab.policy.log_tables.CHUNK", part)
        recipe = {"scaling": "none", "roles": {"age": "drop"}}
        log = written(tmp_path / "a.csv", frame)
        made.append(train_from_log(log, tmp_path / "a.policy", agent="lints", recipe=recipe).evaluation)
    assert made[0].ips == pytest.approx(made[1].ips, rel=1e-9)


def test_a_policy_file_decides_the_lines_of_dsjson_as_the_rows_of_a_table(tmp_path: Path) -> None:
    frame = table_of(400)
    table, dsjson = (written(tmp_path / name, frame) for name in ("log.csv", "log.dsjson"))
    train_from_log(dsjson, tmp_path / "a.policy", agent="linucb")
    renamed = frame.rename(columns={"plan": "user.plan", "age": "user.age"})
    renamed["action"] = renamed["action"].map(dict(zip(OFFERS, "123", strict=True)))
    written(table, renamed)
    one, other = (evaluate_log(log, str(tmp_path / "a.policy")) for log in (table, dsjson))
    assert other.evaluation.ips == pytest.approx(one.evaluation.ips, rel=1e-9)
    assert other.evaluation.snips != pytest.approx(evaluate_log(dsjson).evaluation.snips, rel=1e-3)


def test_unknown_propensities_are_estimated_before_they_are_learnt_from(tmp_path: Path) -> None:
    log = written(tmp_path / "a.csv", table_of(500).drop(columns="propensity"))
    made = train_from_log(log, tmp_path / "a.policy", agent="linucb")
    assert np.isnan(made.evaluation.low)
    assert "propensities are estimated and taken for exact" in made.evaluation.assumptions
    assert made.evaluation.value > made.logged


def test_the_command_takes_the_columns_of_a_table_and_its_recipe(tmp_path: Path) -> None:
    frame = (
        table_of(200).rename(columns={"action": "took", "reward": "won", "propensity": "chance"}).assign(row=range(200))
    )
    log, out = written(tmp_path / "log.csv", frame), tmp_path / "new.policy"
    words = ["train", "--from-log", str(log), "-o", str(out), "--agent", "linucb"]
    named = ["--action", "took", "--reward", "won", "--propensity", "chance", "--id", "row"]
    done = CliRunner().invoke(
        app, [*words, *named, "--drop-column", "note", "--scaling", "none", "--role", "age=nominal"]
    )
    assert done.exit_code == 0, done.output
    assert done.output.startswith("decisions: 40 of 3 actions, mean reward ")
    assert "interval" in done.output
    roles = {column.name: column.role for column in read(out).encoder.columns}
    assert roles == {"plan": "nominal", "age": "nominal", "visits": "numeric"}
    out.unlink()
    for odd, said in (
        ([], "--action must name a column; --reward must name a column"),
        ([*named, "--label", "offer"], "without --label and --best-of"),
        ([*named, "--passes", "2"], "No such option"),
        ([*named, "--thousands", ","], "--from-log does not allow thousands"),
        ([*named, "--drop-column", "nobody"], "nobody"),
        ([*named, "--agent", "nobody"], "no agent is called 'nobody'"),
        ([*named, "--floor", "0.5"], "floor must be at most 1/3"),
        ([*named, "--agent", "newtron", "--set", "gamma=0.1"], "newtron stores numbers about the class it chose"),
    ):
        done = CliRunner().invoke(app, [*words, *odd])
        assert done.exit_code != 0
        assert said in f"{done.exception}{done.output}", (odd, done.exception)
        assert not out.exists()
    done = CliRunner().invoke(app, ["train", str(log), "--label", "took", "--action", "took", "-o", str(out)])
    assert "--action, --reward, --propensity, --id and --logger need --from-log" in str(done.exception)


def test_the_columns_of_an_event_log_are_those_of_its_policy(uniform_log: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave out missing, scaling"):
        train_from_log(uniform_log, tmp_path / "p", recipe={"scaling": "none", "missing": "zero"})
    with pytest.raises(UsageError, match="--action applies to tables only"):
        train_from_log(uniform_log, tmp_path / "p", action="x")


def test_two_answers_are_enough_one_to_learn_from_and_one_to_evaluate(tmp_path: Path) -> None:
    Policy.new({"age": [18, 80]}, ["call", "gift"]).save(tmp_path / "old")
    with Policy.open(tmp_path / "old", tmp_path / "e.db") as policy:
        ids = [policy.decide({"age": 30}).id for _ in range(3)]
        policy.feedback_many([(ids[0], True), (ids[1], False)])
    made = train_from_log(tmp_path / "e.db", tmp_path / "new")
    assert made.evaluation.rounds == 1
    assert made.notes[0].startswith("1 of 3 decisions have no answer")
    assert Policy.load(tmp_path / "new").describe()["settings"]["complement"] is False


def test_a_log_without_two_answers_teaches_nothing(policy_file: Path, tmp_path: Path) -> None:
    Policy.open(policy_file, tmp_path / "e.db").close()
    with pytest.raises(UsageError, match="fewer than two decisions have feedback"):
        train_from_log(tmp_path / "e.db", tmp_path / "p")
    for ending in ("csv", "parquet", "dsjson"):
        with pytest.raises(UsageError, match=rf"log\.{ending}: fewer than two decisions or actions"):
            train_from_log(written(tmp_path / f"log.{ending}", table_of(1)), tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_faults_of_a_log_are_counted_at_once_and_no_policy_is_written(tmp_path: Path) -> None:
    frame = table_of(500).astype({"reward": float})
    frame.loc[[3, 450], "propensity"] = [0.0, 1.5]
    frame.loc[[7, 480], "reward"] = [0.5, np.nan]
    frame.loc[[9], "action"] = None
    log = written(tmp_path / "log.csv", frame.assign(id=np.arange(500) // 2))
    with pytest.raises(UsageError) as caught:
        train_from_log(log, tmp_path / "p", agent="linucb", id="id")
    for fault in ("250 x repeated ids", "1 x actions", "2 x rewards", "2 x propensities"):
        assert fault in str(caught.value)
    assert not (tmp_path / "p").exists()
    text = "".join(f"{line}\n" for line in ("{", "{}{", '{"a": []}'))
    (tmp_path / "log.dsjson").write_text(text)
    with pytest.raises(
        UsageError, match="fewer than two decisions or actions to learn from; 2 x lines that are not a JSON"
    ):
        train_from_log(tmp_path / "log.dsjson", tmp_path / "p")


def test_one_action_teaches_nothing(tmp_path: Path) -> None:
    frame = table_of(50).assign(action="call", propensity=1.0)
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(UsageError, match=r"log\.csv: fewer than two decisions or actions"):
        train_from_log(tmp_path / "log.csv", tmp_path / "p")


def test_categories_numbers_and_gaps_of_the_end_need_not_be_known(tmp_path: Path) -> None:
    frame = table_of(400)
    frame.loc[320:, "plan"] = "new"
    frame.loc[330:, "visits"] = np.nan
    frame.loc[340:, "age"] = 10**9
    frame.loc[350:, "action"] = "late"
    made = train_from_log(written(tmp_path / "log.csv", frame), tmp_path / "p", agent="linucb")
    assert (made.evaluation.rounds, made.actions) == (80, ["call", "late", "none", "upgrade"])
    assert read(tmp_path / "p").core.classes == made.actions


@pytest.mark.parametrize("ending", ["db", "csv", "parquet", "dsjson"])
@pytest.mark.few(2)
def test_a_damaged_log_is_refused_in_one_line_or_read(ending: str, tmp_path: Path) -> None:
    whole, bad, rng = tmp_path / f"log.{ending}", tmp_path / f"bad.{ending}", np.random.default_rng(0)
    frame = table_of(60)
    _ = written_events(whole, 60) if ending == "db" else written(whole, frame)
    data, said = whole.read_bytes(), []
    places = rng.integers(len(data), size=30).tolist()
    if ending == "parquet":
        places.append(data.rindex(b"unicode") + 1)  # what pandas says of the columns' types
    for at in places:
        bad.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] if at % 5 else data[:at])
        done = CliRunner().invoke(
            app, ["train", "--from-log", str(bad), "-o", str(tmp_path / "p"), "--agent", "uniform"]
        )
        if done.exit_code:
            assert isinstance(done.exception, BanditlabError), (at, done.exception)
            said.append(str(done.exception))
    assert len(said) > 5
    assert all("\n" not in each and str(bad) in each for each in said)
