"""`banditlab evaluate`: a log in a table or of a policy, and a policy named in words, beside what is known of both."""

from __future__ import annotations

import re
import sqlite3
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from banditlab.cli.main import app
from banditlab.errors import BanditlabError, LogError, UsageError
from banditlab.offpolicy import Log, RewardModel, estimated_propensities, evaluate
from banditlab.policy import status_of_log
from banditlab.policy.choice import Record
from banditlab.policy.evaluating import evaluate_log, source_of
from banditlab.policy.log_events import AnsweredDecisions
from banditlab.policy.picture import draw_evaluation
from banditlab.policy.policy import Policy
from banditlab.policy.replay import Replay
from benchmarks.commands.logs import written_events
from tests.policy.customers import new_rows, rows, write_table

ACTIONS = np.array(["call", "gift", "none"])
BEST = {"free": "gift", "pro": "call", "team": "gift"}


@pytest.fixture(scope="module")
def logged() -> tuple[pd.DataFrame, np.ndarray]:
    """A table of 2,000 decisions, and each action's chance of a reward in each row, (2000, 3)."""
    rng = np.random.default_rng(0)
    plan, p = rng.choice([*BEST], 2000), np.array([0.6, 0.2, 0.2])
    chance = np.tile([0.2, 0.6, 0.3], (2000, 1))
    chance[plan == "pro", 0] = 0.9
    a = rng.choice(3, 2000, p=p)
    frame = pd.DataFrame({"plan": plan, "age": rng.integers(18, 80, 2000).astype(float), "action": ACTIONS[a]})
    frame = frame.assign(reward=(rng.random(2000) < chance[np.arange(2000), a]).astype(int), propensity=p[a])
    frame.loc[3, "age"] = np.nan
    target = frame["plan"].map(BEST)
    return frame.assign(best=target, **{f"p_{name}": np.where(target == name, 0.8, 0.1) for name in ACTIONS}), chance


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_intervals_hold_what_is_true_of_a_table(
    logged: tuple[pd.DataFrame, np.ndarray], ending: str, tmp_path: Path
) -> None:
    frame, chance = logged
    file = tmp_path / f"log.{ending}"
    frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
    best = frame["best"].to_numpy()[:, None] == ACTIONS
    truths = {
        "uniform": chance.mean(),
        "column:best": chance[best].mean(),
        "probabilities:p_": (chance * np.where(best, 0.8, 0.1)).sum(axis=1).mean(),
        "best-single": chance[1000:, 1].mean(),
    }
    for policy, truth in truths.items():
        made = evaluate_log(file, policy)
        assert made.actions == [*ACTIONS]
        assert made.evaluation.low < truth < made.evaluation.high, policy
        assert abs(made.evaluation.value - truth) < 0.06, policy
        assert made.evaluation.unsupported == 0.0
        assert "the logger does not learn" in made.evaluation.assumptions[0]
    assert evaluate_log(file, "best-single").notes == [
        "missing entries of contexts: 1; each counts as a separate value",
        "'gift' had the largest weighted mean reward of the first 1,000 rounds; the value is of the rounds after them",
    ]
    by_hand = evaluate(
        Log(
            frame["action"].map({name: k for k, name in enumerate(ACTIONS)}),
            frame["reward"],
            frame["propensity"],
            best.astype(float),
        )
    )
    made = evaluate_log(file, "column:best").evaluation
    assert (made.ips, made.snips, made.effective_sample_size) == pytest.approx(
        (by_hand.ips, by_hand.snips, by_hand.effective_sample_size), rel=1e-12
    )


def test_policies_that_learn_from_the_log(logged: tuple[pd.DataFrame, np.ndarray], tmp_path: Path) -> None:
    frame, chance = logged
    rng = np.random.default_rng(1)
    a = rng.integers(3, size=2000)
    frame = frame[["plan"]].assign(action=ACTIONS[a], propensity=1 / 3, good=frame["plan"] == "pro")
    frame["reward"] = (rng.random(2000) < chance[np.arange(2000), a]).astype(int)
    frame.to_csv(tmp_path / "log.csv", index=False)
    best = chance.max(axis=1).mean()
    trained = evaluate_log(tmp_path / "log.csv", "trained", after=500).evaluation
    assert trained.rounds == 1500
    assert trained.low < best < trained.high
    assert trained.low > chance.mean()
    replayed = evaluate_log(tmp_path / "log.csv", "linucb", after=500)
    assert replayed.evaluation.low < best < replayed.evaluation.high
    [note] = replayed.notes
    accepted = re.fullmatch(r"linucb learnt from ([0-9]+) of 2,000 rounds \((.*)%\), accepted by rejection", note)
    assert accepted is not None
    assert 667 - 95 < int(accepted[1]) < 667 + 95  # it draws the logged action once in three rounds


def test_what_is_accepted_has_the_agent_s_own_distribution() -> None:
    rng, p = np.random.default_rng(0), np.array([0.7, 0.2, 0.1])
    a = rng.choice(3, 6000, p=p)
    X = np.column_stack([rng.normal(3.0, 0.5, (6000, 2)), np.ones(6000)])
    replay = Replay("uniform", X, p[a], 3)
    learnt: list[Record] = []
    replay._core.learn_own = lambda record, correct: learnt.append(record)  # type: ignore[method-assign]
    replay.target(X, a, np.ones(6000), p[a])
    z = (X[:, :2] - X[:, :2].mean(axis=0)) / X[:, :2].std(axis=0)
    z /= np.maximum(2 * np.sqrt(1 + 2), np.linalg.norm(z, axis=1))[:, None]
    assert {tuple(x.round(9)) for x, *_ in learnt} <= {(x, y, 0.0, 1.0) for x, y in z.round(9)}
    counts = np.bincount([record.action for record in learnt])
    assert replay.accepted == len(learnt) == pytest.approx(600, abs=4.5 * np.sqrt(540))
    assert counts == pytest.approx(np.full(3, 200), abs=4.5 * np.sqrt(200))


def test_propensities_that_no_column_has_are_estimated_without_an_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By five folds of each part; the one round of the last part has no others."""
    monkeypatch.setattr("banditlab.policy.log_tables.CHUNK", 100)
    a, r = np.random.default_rng(0).integers(2, size=(2, 101))
    pd.DataFrame({"action": a, "reward": r}).to_csv(tmp_path / "log.csv", index=False)
    made = evaluate_log(tmp_path / "log.csv")
    assert made.notes == ["propensities are estimated: no column has them"]
    assert np.isnan([made.evaluation.low, made.evaluation.high]).all()
    p = np.vstack([estimated_propensities(np.zeros((100, 1)), a[:100], 2, np.arange(100) % 5), [[0.5, 0.5]]])
    by_hand = evaluate(Log(a, r, p, np.full((101, 2), 0.5)), estimated=True)
    assert made.evaluation.ips == pytest.approx(by_hand.ips, rel=1e-6)


def test_actions_may_be_numbers(logged: tuple[pd.DataFrame, np.ndarray], tmp_path: Path) -> None:
    frame = logged[0].assign(action=logged[0]["action"].map({"call": 1234567.0, "gift": 1234568.0, "none": 2.0}))
    frame.to_csv(tmp_path / "log.csv", index=False)
    assert evaluate_log(tmp_path / "log.csv").actions == ["1234567", "1234568", "2"]


def test_numbers_of_any_size_are_contexts(tmp_path: Path) -> None:
    sizes = np.resize([1e200, -1e200, np.nan, np.inf, 1e-200], 200)
    frame = pd.DataFrame({"x": sizes, "action": np.resize([0, 1], 200), "reward": 1, "propensity": 0.5})
    frame.to_parquet(tmp_path / "log.parquet")
    assert evaluate_log(tmp_path / "log.parquet").evaluation.value == pytest.approx(1.0)
    _, X, _ = next(iter(source_of(str(tmp_path / "log.parquet"), "uniform", None, {}).parts))
    assert (X.shape, X[:5, 0].tolist()) == ((200, 1 + 64), [1e100, -1e100, 0.0, 0.0, 1e-200])


def test_all_faults_are_named_at_once(logged: tuple[pd.DataFrame, np.ndarray], tmp_path: Path) -> None:
    frame = logged[0].head(60).astype({"reward": float})
    file = tmp_path / "log.csv"
    frame.loc[1, "action"] = None
    frame.loc[2:3, "reward"] = 2.0
    frame.loc[4, "propensity"] = 0.0
    frame.to_csv(file, index=False)
    with pytest.raises(UsageError) as caught:
        evaluate_log(file)
    for fault in (
        "1 x actions that are not integers from 0 to 2",
        "2 x rewards that are not 0 or 1",
        "1 x propensities of",
    ):
        assert fault in str(caught.value)
    with pytest.raises(
        UsageError, match=r"--action: there is no column 'x'; --reward: there is no column 'y'; columns are"
    ):
        evaluate_log(file, action="x", reward="y")
    with pytest.raises(UsageError, match="no column begins with 'q_'"):
        evaluate_log(file, "probabilities:q_")
    with pytest.raises(UsageError, match="must be uniform, best-single, trained, an agent's id"):
        evaluate_log(file, "somebody")
    frame.drop(columns="reward").to_csv(file, index=False)
    with pytest.raises(UsageError, match="--reward must name a column"):
        evaluate_log(file)
    with pytest.raises(UsageError, match="cannot be read"):
        evaluate_log(tmp_path / "none.csv")


def test_a_policys_own_log_and_another_policy_of_its_table(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv", 300)
    Policy.train(table, "offer", agent="uniform").save(tmp_path / "old.policy")
    Policy.train(table, "offer", agent="banditron", settings={"gamma": 0.2}).save(tmp_path / "new.policy")
    labels = [row["offer"] for row in rows(600, 1)]
    with Policy.open(tmp_path / "old.policy", tmp_path / "e.db") as policy:
        for i, (row, label) in enumerate(zip(new_rows(600, 1), labels, strict=True)):
            choice = policy.decide(row)
            if i % 6:
                policy.feedback(choice.id, choice.action == label)
    target = Policy.load(tmp_path / "new.policy")
    truth = np.mean([target.decide(row).scores[label] for row, label in zip(new_rows(600, 1), labels, strict=True)])
    made = evaluate_log(tmp_path / "e.db", str(tmp_path / "new.policy"))
    assert made.evaluation.low < truth < made.evaluation.high
    assert made.evaluation.value == pytest.approx(truth, abs=0.1)
    assert made.evaluation.rounds == 500
    assert made.notes[0].startswith("100 of 600 decisions have no answer")
    uniform = evaluate_log(tmp_path / "e.db").evaluation
    assert uniform.ips == pytest.approx(np.mean(made.logged), rel=1e-9)  # the logger was uniform itself
    assert "after all numbers of rounds at once" in uniform.assumptions[0]
    assert [p.deviation for p in status_of_log(tmp_path / "e.db").plays] == pytest.approx([(600 * 2 / 9) ** 0.5] * 3)
    with pytest.raises(UsageError, match="--reward applies to tables only"):
        evaluate_log(tmp_path / "e.db", reward="y")
    other = write_table(tmp_path / "other.csv", 50)
    Policy.train(other, "offer", agent="uniform").save(tmp_path / "other.policy")
    with pytest.raises(UsageError, match="must have the columns, encoding and classes of the policy"):
        evaluate_log(tmp_path / "e.db", str(tmp_path / "other.policy"))


def test_the_command_prints_figures_and_what_they_assume(
    logged: tuple[pd.DataFrame, np.ndarray], tmp_path: Path
) -> None:
    file = tmp_path / "log.csv"
    logged[0].to_csv(file, index=False)
    done = CliRunner().invoke(app, ["evaluate", str(file), "--policy", "column:best"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("decisions: 2,000 of 3 actions, mean reward ")
    assert "95 % interval" in done.output
    assert "assumes: propensities are those with which the actions were drawn" in done.output
    assert max(map(len, done.output.splitlines())) <= 80
    for policy, picture in (("column:best", "a.svg"), ("uniform", "b.png")):
        done = CliRunner().invoke(
            app, ["evaluate", str(file), "--policy", policy, "--picture", str(tmp_path / picture)]
        )
        assert f"written: {tmp_path / picture}" in done.output
        assert (tmp_path / picture).stat().st_size > 5000
    done = CliRunner().invoke(app, ["evaluate", str(file), "--picture", str(tmp_path / "a.txt")])
    assert "the extension must be .svg, .png or .pdf" in str(done.exception)


def test_a_picture_of_estimates_that_are_not_known(logged: tuple[pd.DataFrame, np.ndarray], tmp_path: Path) -> None:
    logged[0][["plan", "action", "reward"]].to_csv(tmp_path / "log.csv", index=False)
    draw_evaluation(evaluate_log(tmp_path / "log.csv"), "uniform", tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 5000


# ----------------------------------------------------------------------------------------------------- logs of any length


def test_a_model_that_is_fed_in_parts_predicts_as_one_that_is_fed_at_once() -> None:
    rng = np.random.default_rng(0)
    X, a, r = rng.normal(size=(500, 3)), rng.integers(3, size=500), rng.integers(2, size=500).astype(float)
    whole, parts = RewardModel(3).ahead(X, a, r), RewardModel(3)
    cuts = [0, 1, 64, 65, 200, 500]
    pieces = [parts.ahead(X[i:j], a[i:j], r[i:j]) for i, j in pairwise(cuts)]
    assert np.array_equal(np.concatenate(pieces), whole)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
@pytest.mark.few(1)
def test_a_long_table_is_read_in_parts(
    logged: tuple[pd.DataFrame, np.ndarray], ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / f"log.{ending}"
    frame = logged[0].assign(
        number=np.arange(2000), action=logged[0]["action"].map({"call": "7", "gift": "8", "none": "x"})
    )
    policies = ("uniform", "probabilities:p_", "best-single")
    frame = frame.rename(columns={f"p_{old}": f"p_{new}" for old, new in (("call", 7), ("gift", 8), ("none", "x"))})
    frame.to_parquet(file) if ending == "parquet" else frame.to_csv(file, index=False, sep=";")
    whole = [evaluate_log(file, policy, id="number") for policy in policies]
    monkeypatch.setattr("banditlab.policy.log_tables.WHOLE", 0)
    monkeypatch.setattr("banditlab.policy.log_tables.CHUNK", 300)
    for before, policy in zip(whole, policies, strict=True):
        after = evaluate_log(file, policy, id="number")
        assert (after.actions, after.notes) == (before.actions, before.notes)
        for name in ("ips", "snips", "doubly_robust", "low", "high"):
            assert getattr(after.evaluation, name) == pytest.approx(getattr(before.evaluation, name), rel=1e-9)
        assert after.logged == pytest.approx(before.logged)
    without = frame.drop(columns=["propensity", "number"])
    without.to_parquet(file) if ending == "parquet" else without.to_csv(file, index=False, sep=";")
    assert evaluate_log(file).evaluation.value == pytest.approx(logged[1].mean(), abs=0.08)


def test_faults_of_all_parts_are_named_at_once(
    logged: tuple[pd.DataFrame, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("banditlab.policy.log_tables.WHOLE", 0)
    monkeypatch.setattr("banditlab.policy.log_tables.CHUNK", 100)
    frame, file = logged[0].head(1000).assign(number=np.arange(1000)), tmp_path / "log.csv"
    frame.loc[[5, 905], "propensity"] = [0.0, 1.5]
    frame.loc[[105, 505], "number"] = 0
    frame.loc[[705, 706], "number"] = None  # rows without an id repeat none
    frame.loc[305, "action"] = None
    frame.to_csv(file, index=False)
    with pytest.raises(UsageError) as caught:
        evaluate_log(file, id="number")
    for fault in ("2 x repeated ids", "1 x actions that are no", "2 x propensities of logged actions"):
        assert fault in str(caught.value)
    text = file.read_text()
    file.write_text(text + "pro,3,call,1,0.5,call,1,2,3,4,5,6,7\n")
    with pytest.raises(UsageError, match=r"log\.csv: damaged, or not a table"):
        evaluate_log(file)
    file.write_text(text[:-40])  # the last line is torn
    with pytest.raises(UsageError, match="x actions that are no"):
        evaluate_log(file)
    parquet = tmp_path / "log.parquet"
    frame.to_parquet(parquet)
    parquet.write_bytes(parquet.read_bytes()[:-100])
    with pytest.raises(UsageError, match=r"log\.parquet: damaged, or not a table"):
        evaluate_log(parquet)


@pytest.mark.parametrize(
    ("policy", "propensity", "warned"),
    [("uniform", 0.995, ["0.50"]), ("uniform", 0.7, ["0.71"]), ("uniform", 0.6, []), ("column:best", 1.0, [])],
)
def test_a_policy_whose_actions_were_hardly_logged_is_warned_of(
    policy: str, propensity: float, warned: list[str], tmp_path: Path
) -> None:
    i, file = np.arange(200), tmp_path / "log.csv"
    table = {"action": i // 199, "reward": 1, "propensity": propensity, "best": np.where(i % 4, 0, 2), "x": i / 200}
    pd.DataFrame(table).to_csv(file, index=False)  # action 0 was always drawn, and action 2 could not be
    notes = " ".join(evaluate_log(str(file), policy).notes)
    assert re.findall("the mean of the weights is (.*) and should be", notes) == warned


# ----------------------------------------------------------------------------------------------------------- bad logs


def test_a_table_has_all_faults_of_all_kinds_counted_at_once(tmp_path: Path) -> None:
    n = 60
    frame = pd.DataFrame(
        {"x": np.linspace(0, 1, n), "action": np.resize(["a", "b"], n), "reward": 1.0, "propensity": 0.5}
    )
    frame.loc[[1, 2, 3, 4, 5], "propensity"] = [0.0, -0.5, 1.5, np.nan, 1e200]
    frame.loc[[11, 12, 13], "reward"] = [0.5, np.nan, -1e200]
    frame.loc[[21, 22], "action"] = None
    frame["id"] = np.arange(n) // 2
    for ending in ("csv", "parquet"):
        file = tmp_path / f"log.{ending}"
        frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
        with pytest.raises(UsageError) as caught:
            evaluate_log(file, id="id")
        assert str(caught.value) == (
            f"{file}: the log has faults: 30 x repeated ids; 2 x actions that are not integers from 0 to 1; "
            "3 x rewards that are not 0 or 1; 5 x propensities of logged actions outside [1e-100, 1]"
        )


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("log.csv", b"", "the file is empty"),
        ("log.csv", b"action,reward\n", "the table has no data rows"),
        ("log.csv", b"action,reward\na,1\nb,0,1\n", "line 3 has 3 fields"),
        ("log.csv.gz", b"\x1f\x8babc", "the gzip file is damaged"),
        ("log.parquet", b"", "damaged, or not a table"),
        ("log.db", b"SQLite format 3\0" + bytes(2000), r"the log cannot be used \(file is not a database\)$"),
        ("log.dsjson", b"\0" * 3000, "1 x lines that are not a JSON object"),
    ],
)
def test_a_file_that_holds_no_log_is_refused_in_one_line(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(BanditlabError, match=message) as caught:
        evaluate_log(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_without_rows_and_one_of_bytes_and_words_are_no_traceback(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [b"\xff\x00"] * 40, "action": np.resize(["a", "b"], 40), "propensity": 0.5})
    frame["reward"] = np.resize(["True", "true", "False", "false"], 40)
    frame.to_parquet(tmp_path / "log.parquet")
    assert evaluate_log(tmp_path / "log.parquet").logged == 0.5
    frame.head(0).to_parquet(tmp_path / "log.parquet")
    with pytest.raises(UsageError, match="the table has no rows"):
        evaluate_log(tmp_path / "log.parquet")


@pytest.mark.parametrize("policy", ["uniform", "best-single", "trained", "linucb", "column:action"])
def test_one_row_is_a_log(policy: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1e200, -1e300], "action": ["a", "b"], "reward": [1, 0], "propensity": 0.5})
    for n in (2, 1):
        frame.head(n).to_csv(tmp_path / "log.csv", index=False)
        if policy == "linucb" and n == 1:
            with pytest.raises(UsageError, match="at least 2"):
                evaluate_log(tmp_path / "log.csv", policy)
            continue
        made = evaluate_log(tmp_path / "log.csv", policy).evaluation
        assert not made.low > 0.0
        assert not made.high < 1.0


@pytest.mark.slow
def test_an_event_log_is_read_in_the_memory_of_a_part_of_it(tmp_path: Path) -> None:
    peaks = []
    for n in (1000, 4000):
        file = written_events(tmp_path / f"{n}.db", n)
        tracemalloc.start()
        assert sum(1 for _ in AnsweredDecisions(str(file))) == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 3000 * 30  # a dictionary of the answers takes 100 bytes a decision and more


def test_each_decision_of_an_event_log_comes_with_its_own_answer(
    policy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("banditlab.policy.log.STEP", 7)
    said = {}
    with Policy.open(policy_file, tmp_path / "e.db") as policy:
        with policy.together():
            ids = [policy.decide(row).id for row in new_rows(60)]
            for i in np.random.default_rng(0).permutation(60)[:40]:
                said[ids[i]] = bool(i % 3)
                policy.feedback(ids[i], said[ids[i]])
        log = AnsweredDecisions(str(tmp_path / "e.db"))  # while its writer is at work
        assert {event.id: right for event, right, *_ in log} == said
    assert (log.rounds, log.notes[0][:22]) == (40, "20 of 60 decisions hav")
    with sqlite3.connect(tmp_path / "e.db") as db:
        db.execute("DELETE FROM events WHERE seq = 7")
    with pytest.raises(LogError, match="event 7 is missing"):
        evaluate_log(tmp_path / "e.db")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_a_table_is_read_in_its_encoding_and_with_its_separator(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame(
        {"Größe": ["groß", "mäßig"] * 40, "action": np.resize(["ä", "b", "ß"], 80), "propensity": 1 / 3}
    )
    file = tmp_path / "log.txt2"
    frame.assign(reward=np.resize([1, 0], 80)).to_csv(file, index=False, sep="~", encoding=encoding)
    with pytest.raises(UsageError, match=r"is not a known format.*\(--format\)"):
        evaluate_log(file)
    with pytest.raises(UsageError, match=r"\(--encoding\)" if encoding == "cp1252" else r"\(--separator\)"):
        evaluate_log(file, format="csv")
    made = evaluate_log(file, format="csv", encoding=encoding, separator="~")
    assert made.actions == ["b", "ß", "ä"]
    monkeypatch.setattr("banditlab.policy.log_tables.WHOLE", 0)
    assert evaluate_log(file, format="csv", encoding=encoding, separator="~").evaluation == made.evaluation
    with pytest.raises(UsageError, match="damaged, or not a table"):
        evaluate_log(file, format="csv", encoding="klingon", separator="~")
    words = ["--format", "csv", "--encoding", encoding, "--separator", "~"]
    done = CliRunner().invoke(app, ["evaluate", str(file), *words])
    assert done.output.startswith("decisions: 80 of 3 actions")
