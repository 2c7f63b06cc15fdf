"""`train --from-log`: a policy learns from another one's log, is evaluated on its later part, and serves on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from banditlab import Policy
from banditlab.cli.main import app
from banditlab.errors import UsageError
from banditlab.policy.learning import train_from_log
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
        (["--scaling", "none"], "--from-log allows --agent, --set, --seed, --floor; leave out scaling"),
        (["--agent", "newtron", "--set", "gamma=0.1"], "--from-log: newtron stores numbers of the class it chose"),
        (["--agent", "nobody"], "no agent is called 'nobody'"),
    ):
        done = CliRunner().invoke(app, ["train", "--from-log", str(uniform_log), "-o", str(out), *odd])
        assert done.exit_code != 0
        assert said in str(done.exception), (odd, done.exception)


def test_a_log_without_answers_teaches_nothing(policy_file: Path, tmp_path: Path) -> None:
    Policy.open(policy_file, tmp_path / "e.db").close()
    with pytest.raises(UsageError, match="fewer than two decisions have an answer"):
        train_from_log(tmp_path / "e.db", tmp_path / "p")
    (tmp_path / "t.csv").write_text("a,action,reward,propensity\n1,x,1,.5\n")
    with pytest.raises(UsageError, match="requires the log of a policy, not a table"):
        train_from_log(tmp_path / "t.csv", tmp_path / "p")
