"""`banditlab train`, `serve`, `status` of a log: what they print, and what they refuse in one line."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from banditlab import Policy
from banditlab.cli import policies
from banditlab.cli.main import app
from banditlab.errors import UsageError
from tests.policy.customers import new_rows, write_table


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("table") / "my.csv")


def test_train_writes_a_policy_and_status_reads_its_log(table: Path, tmp_path: Path) -> None:
    policy, log = tmp_path / "my.policy", tmp_path / "events.db"
    done = run("train", table, "--label", "offer", "-o", policy, "--set", "gamma=0.2", "--agent", "banditron")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("banditron on my.csv: 200 rows in one pass, ")
    assert f"banditlab serve {policy} --log events.db" in done.output
    with Policy.open(policy, log) as opened:
        assert opened.describe()["settings"]["gamma"] == 0.2
        choice = opened.decide(new_rows(1)[0])
        opened.feedback(choice.id, True)
    done = run("status", log, "--picture", tmp_path / "log.png", "--verify")
    assert done.exit_code == 0
    assert "1 decision" in done.output
    assert "verified: 2 events" in done.output
    assert (tmp_path / "log.png").is_file()
    with Policy.open(policy, log, person="customer") as opened:
        opened.decide({**new_rows(1)[0], "customer": 4711})
    done = run("log", "forget", log, "customer=4711")
    assert done.output == f"{log}: removed the contexts of 1 decisions\n"
    done = run("log", "prune", log, "--before", "2100-01-31")
    assert done.output == f"{log}: 2 decisions removed\n"
    done = run("status", log, "--verify")
    assert "verified: 0 events" in done.output
    assert "feedback: 1 of 2 (50.0%)" in done.output
    with Policy.open(policy, log) as opened:
        assert (opened.describe()["decisions"], opened.describe()["feedback"]) == (2, 1)


def test_a_policy_of_a_schema_has_learnt_nothing_and_keeps_its_floor(table: Path, tmp_path: Path) -> None:
    schema, policy = tmp_path / "schema.json", tmp_path / "my.policy"
    columns = '{"plan": ["free", "pro", "team"], "age": [18, 80], "visits": [0, 30.5]}'
    schema.write_text(f'{{"columns": {columns}, "actions": ["call", "gift"]}}', "utf-8")
    done = run("train", "--schema", schema, "-o", policy, "--floor", "0.1", "--agent", "stackcb", "--set", "blocks=2")
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"{schema}: no updates yet")
    said = Policy.load(policy).describe()
    assert (said["agent"], said["settings"]["blocks"], said["floor"], said["classes"]) == (
        "stackcb",
        2,
        0.1,
        ["call", "gift"],
    )
    assert said["columns"] == {"plan": ["free", "pro", "team"], "age": "numeric", "visits": "numeric"}
    assert (said["trained"]["rows"], said["trained"]["mistakes"]) == (0, 0)
    done = run("train", table, "--label", "offer", "-o", policy, "--floor", "0.2")
    assert done.exit_code == 0, done.output
    assert Policy.load(policy).describe()["floor"] == 0.2


def test_a_schema_that_is_none_is_one_line(table: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    for text in ("", "[]", "7", "{}", '{"columns": {"a": [1, 2]}}', '{"columns": 3, "actions": ["a", "b"]}'):
        schema.write_text(text, "utf-8")
        done = run("train", "--schema", schema, "-o", tmp_path / "my.policy")
        assert done.exit_code != 0
        assert isinstance(done.exception, UsageError | SystemExit), text
        assert "columns" in done.output + str(done.exception), text
    for odd in ((), (table, "--schema", schema), ("--schema", schema, "--label", "offer")):
        done = run("train", *odd, "-o", tmp_path / "my.policy")
        assert "either --schema or --from-log" in done.output + str(done.exception)
    done = run("train", table, "--label", "offer", "-o", tmp_path / "my.policy", "--floor", "0.4")
    assert "floor must be at most 1/3" in done.output + str(done.exception)


def test_what_silence_means_is_trained_and_served(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module)
    policy, seen = tmp_path / "my.policy", list[Any]()
    run("train", table, "--label", "offer", "-o", policy, "--unanswered", "wrong", "--after", "2 days")
    monkeypatch.setattr("banditlab.policy.server.serve", lambda opened, **keys: seen.append(opened.describe() | keys))
    rule = ["--unanswered", "ignored", "--after", "1 h"]
    log = ["--log", tmp_path / "events.db"]
    with warnings.catch_warnings():
        for more in ([], rule, log, [*log, *rule], log):
            assert run("serve", policy, *more).exit_code == 0
    assert [(about["unanswered"], about["after"]) for about in seen if about["port"] == 8080] == [
        ("wrong", "2 days"), ("ignored", "1 h"), ("wrong", "2 days"), ("ignored", "1 h"), ("ignored", "1 h")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "none.csv", "--label", "offer"), "there is no file"),
        (("train", "TABLE", "--label", "offer", "--set", "sharpness"), "key=value"),
        (("train", "TABLE", "--label", "offer", "--set", "sharp=1"), "unknown setting 'sharp'"),
        (("train", "TABLE", "--label", "offer", "-o", "no/where"), "the folder no does not exist"),
        (("train", "TABLE", "--label", "offer", "--unanswered", "wrong"), "after must be a duration above 0"),
        (("train", "TABLE", "--label", "offer", "--after", "1 h"), "unanswered must be one of 'ignored', 'wrong'"),
        (("train", "TABLE", "--label", "offer", "--action", "age"), "--id and --logger need --from-log"),
        (("serve", "none.policy"), "cannot be read"),
        (("serve", "TABLE", "--token-file", "none"), "--token-file none"),
        (("status", "TABLE"), "not a database"),
        (("status", ".", "--picture", "x.svg"), "not a policy's log"),
        (("status", ".", "--verify"), "--verify: . is not a policy's log"),
        (("log", "prune", "none.db", "--before", "May"), "--before May: must be a date"),
        (("log", "prune", "TABLE", "--before", "2026-01-31"), "not a database"),
        (("log", "forget", "none.db", "4711"), "must be KEY=VALUE"),
    ],
)
def test_what_is_wrong_is_one_line(table: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(*(str(table) if word == "TABLE" else word for word in arguments))
    assert done.exit_code != 0
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)


def test_all_faults_of_a_table_are_told_and_the_corrected_command_trains(table: Path, tmp_path: Path) -> None:
    asked = ("train", table, "--label", "ofer", "--drop-column", "age", "-o", tmp_path / "my.policy")
    done = run(*asked, "--set", "gamma=0.2", "--agent", "banditron")
    assert done.exit_code == 2
    assert "no column 'ofer'" in done.output
    corrected = done.output.splitlines()[-1].removeprefix("corrected: banditlab ")
    assert corrected == (
        f"train {table} --label offer --drop-column age -o {tmp_path / 'my.policy'} --agent banditron --set gamma=0.2"
    )
    assert run(*corrected.split()).exit_code == 0


def test_serve_says_which_libraries_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from banditlab.cli import policies

    for name in ("starlette", "uvicorn", "prometheus_client"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r": pip install starlette uvicorn prometheus-client$"):
        policies.serve(Path("p"), "", "127.0.0.1", 0, None, "", "refuse")


def test_a_token_is_the_first_line_of_a_file_or_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BANDITLAB_TOKEN", raising=False)
    assert policies._token(None) == ""
    monkeypatch.setenv("BANDITLAB_TOKEN", "of the environment")
    assert policies._token(None) == "of the environment"
    file = tmp_path / "token"
    for text, token in (("secret", "secret"), (" secret \nmore\n", "secret"), ("a\n\n", "a")):
        file.write_text(text)
        assert policies._token(file) == token
    for text in ("", "\n", " \nsecret\n"):
        file.write_text(text)
        with pytest.raises(UsageError, match="the first line is empty"):
            policies._token(file)
    file.write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"cannot be read \(no text\)"):
        policies._token(file)


@pytest.mark.parametrize("log", ["", "events.db"])
def test_a_policy_is_served_with_its_log_or_a_notice(log: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module)
    seen: list[Any] = []
    monkeypatch.setattr("banditlab.policy.policy.Policy.open", lambda *asked, **_: contextlib.nullcontext(asked))
    monkeypatch.setattr("banditlab.policy.policy.Policy.load", lambda asked, **_: contextlib.nullcontext(asked))
    monkeypatch.setattr("banditlab.policy.server.serve", lambda opened, **keys: seen.append(keys))
    with warnings.catch_warnings():
        policies.serve(Path("p"), log, "127.0.0.1", 80, None, "", "refuse")
        policies._notice("two\nlines")
    assert seen == [{"host": "127.0.0.1", "port": 80, "token": os.environ.get("BANDITLAB_TOKEN", "")}]
    done = capsys.readouterr()
    assert ("without --log, decisions and feedback are lost" in done.err) == (not log)
    assert (done.out, done.err.splitlines()[-1]) == ("", "notice: two lines")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UsageError, match=r"^serve needs uvicorn: pip install uvicorn$"):
        policies.serve(Path("p"), log, "127.0.0.1", 80, None, "", "refuse")
