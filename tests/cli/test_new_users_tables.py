"""Seven tables as new users bring them: each gets a ranked answer, or one message that lists every fault and mends them all."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditlab import compare
from banditlab.analysis import summary_rows
from banditlab.cli import console
from banditlab.comparison import FaultyTableError, prepared
from banditlab.errors import UsageError

N = 90


def features(seed: int = 0) -> pd.DataFrame:
    """Two numbers of which the first says something of the label."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(18, 80, size=N), "spent": rng.normal(100.0, 20.0, size=N).round(2)})
    return frame.assign(churn=np.where(frame["age"] + rng.normal(scale=10.0, size=N) > 50, "yes", "no"))


def texts() -> bytes:
    rng = np.random.default_rng(1)
    frame = features().assign(plan=rng.choice(["free", "pro, yearly", 'the "big" one'], size=N))
    frame["comment"] = [f"said {i}, and then {i % 7}" for i in range(N)]
    return frame.to_csv(index=False).encode()


def missing() -> bytes:
    frame = features().astype({"age": float})
    frame.loc[::7, "age"], frame.loc[4, "spent"] = np.nan, np.inf
    frame.loc[::11, "churn"] = None
    return frame.to_csv(index=False).encode()


def dates() -> bytes:
    days = pd.date_range("2023-11-01", periods=N)
    return (
        features().assign(signup=days.strftime("%Y-%m-%d"), seen=days.strftime("%d.%m.%Y")).to_csv(index=False).encode()
    )


def ids() -> bytes:
    rng = np.random.default_rng(2)
    return (
        features()
        .assign(customer_id=rng.permutation(9000)[:N], uuid=[f"u{i:04x}" for i in range(N)])
        .to_csv(index=False)
        .encode()
    )


def semicolons() -> bytes:
    return features().assign(rate=np.linspace(0.5, 3.5, N).round(3)).to_csv(index=False, sep=";", decimal=",").encode()


def booleans() -> bytes:
    rng = np.random.default_rng(3)
    frame = features().assign(active=rng.random(N) < 0.5, mail=rng.choice(["yes", "no"], size=N))
    return frame.assign(churn=frame["churn"] == "yes").to_csv(index=False).encode()


def sorted_by_label() -> bytes:
    frame = features().sort_values("churn", ignore_index=True)
    return frame.to_csv(index=True, index_label="row").encode()


TABLES = {
    "texts": (texts, ["column 'comment' is text with a different value in every row"], "--drop-column comment"),
    "missing": (
        missing,
        ["column 'age' has 11 missing", "column 'spent' has 1 missing", "label column 'churn' has 9 missing entries"],
        "--missing indicator",
    ),
    "dates": (
        dates,
        ["'signup' has dates as text", "'seen' is text with a different value"],
        "--drop-column seen --role signup=time",
    ),
    "ids": (ids, ["column 'uuid' is text with a different value in every row"], "--drop-column uuid"),
    "semicolons": (
        semicolons,
        ["'spent' holds numbers with a decimal comma", "'rate' holds numbers with a decimal comma"],
        "--decimal ,",
    ),
    "booleans": (booleans, [], ""),
    "sorted": (sorted_by_label, [], ""),
}
SAID = {
    "ids": "customer_id  identifier-like  a different whole number in each row",
    "sorted": "probable leak    row number of a table sorted by label",
    "booleans": "active  nominal          2 categories",
}


@pytest.fixture
def told(banditlab, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    return banditlab


def played(told, name: str, *more: str) -> str:
    """Compare a table as a new user does, and once more as the message says; return what the last one printed."""
    make, faults, fix = TABLES[name]
    Path("t.csv").write_bytes(make())
    code, text = told("compare", "t.csv", "--label", "churn", *more)
    if not faults:
        assert code == 0, text
        return text
    assert code == 2
    *lines, last = text.replace(f"{Path.cwd()}/", "").splitlines()  # a folder's name may be of any length
    assert max(map(len, lines[1:]), default=0) <= 80
    plain = " ".join(" ".join(lines).split())
    for fault in faults:
        assert fault in plain
    assert (f"t.csv has {len(faults)} faults:" in plain) == (len(faults) > 1)
    assert last.startswith("corrected: banditlab compare t.csv --label churn ")
    assert fix in last
    code, text = told(*shlex.split(last.removeprefix("corrected: banditlab ")))
    assert code == 0, text
    return text


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_taken_or_all_its_faults_are_told(told, monkeypatch, name):
    monkeypatch.setattr(console, "print_dry_run", lambda sweep, jobs, folder: print(len(sweep.plan.runs), "runs"))
    text = played(told, name, "--dry-run", "--agents", "linucb,uniform")
    assert "20 runs" in text
    assert SAID.get(name, "columns:") in text
    assert max(map(len, text.replace(f"{Path.cwd()}/", "").splitlines())) <= 80


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_a_table_gets_a_ranked_answer(told, name):
    text = played(told, name, "--agents", "linucb,uniform", "--repetitions", "3", "-j", "1")
    ranked = [line for line in text.splitlines() if "linucb" in line or "uniform" in line]
    assert len(ranked) >= 2
    assert "most frequent class" in text
    assert "Traceback" not in text


def test_tables_in_memory_are_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = features()
    results = compare(frame, label="churn", out=tmp_path / "out", repetitions=2, agents=["linucb", "uniform"])
    assert {row.label for row in summary_rows(results)} >= {"linucb", "uniform"}
    assert (tmp_path / "out" / "table.parquet").is_file()
    with pytest.raises(
        FaultyTableError, match=r"2 faults: .*did you mean 'churn'.*'note' is text with a different value"
    ) as caught:
        compare(frame.assign(note=[f"n{i}" for i in range(N)]), label="chrn", out=tmp_path / "out")
    assert len(caught.value.faults) == 2
    assert "--label churn --drop-column note" in caught.value.command


def test_agents_are_chosen_by_name(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes(booleans())
    made = prepared(file, "churn")
    assert [agent.id for agent in made.spec.agent] == [
        "fastcb", "squarecb", "linucb", "lints", "stackcb", "epsilon-greedy-direct", "exploration", "gaptron", "uniform"
    ]  # fmt: skip
    assert made.spec.agent[6].model_dump()["forecaster"] == "fourier-aioli"
    assert any("boosted-exploration" in reason for reason in made.left_out)
    assert any("banditron" in reason for reason in made.left_out)
    made = prepared(file, "churn", agents="banditron, exploration(folklore),uniform")
    assert [agent.id for agent in made.spec.agent] == ["banditron", "exploration", "uniform"]
    assert made.spec.agent[1].model_dump()["forecaster"] == "folklore"
    assert made.left_out == []
    for wrong, message in (
        ("fastbc", "no agent is called 'fastbc'; did you mean 'fastcb'"),
        ("perceptron", "perceptron observes every label"),
        ("uniform,uniform", "names 'uniform' twice"),
        (",", "must be all, or at least one id"),
        ("fastcb(ogd)", "fastcb takes no other algorithm in parentheses"),
        ("exploration(ogdd)", "did you mean 'ogd'"),
    ):
        with pytest.raises(UsageError, match=message.replace("(", r"\(").replace(")", r"\)")):
            prepared(file, "churn", agents=wrong)


def test_all_agents_are_those_that_see_one_bit_and_can_be_built(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes(booleans())
    made = prepared(file, "churn", agents="all")
    ids = [agent.id for agent in made.spec.agent]
    assert {"fastcb", "newtron", "banditron", "obama-lite", "soba", "uniform"} <= set(ids)
    assert len(set(ids)) == len(ids) - (ids.count("exploration") - 1)
    assert "perceptron: observes the label" in made.left_out
    known = {reason.split(":")[0] for reason in made.left_out} | set(ids)
    assert {"vw", "river-linucb", "boosted-exploration"} <= known  # played where installed, else left out by name
