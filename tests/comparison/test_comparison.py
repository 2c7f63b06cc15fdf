"""What a comparison is made of: the agents that play, all faults of a table with the command that mends them, the spec."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab.comparison import (
    FaultyTableError,
    _sweep,
    chosen_agents,
    compare,
    comparison,
    default_folder,
    prepared,
)
from banditlab.comparison._faults import _fixed, command, refuse_faults
from banditlab.comparison._sweep import _about_file
from banditlab.engine.plan import make_plan
from banditlab.envs.change import Change
from banditlab.errors import FaultError, UsageError
from banditlab.problem import Problem

# ------------------------------------------------------------------------------------------------------------------ agents


def ids(blocks: list[dict[str, Any]]) -> list[str]:
    return [block["id"] for block in blocks]


PRACTICE = ["fastcb", "squarecb", "linucb", "lints", "stackcb", "epsilon-greedy-direct"]


def test_agents_of_practice_one_of_theory_and_uniform_play_unasked() -> None:
    two, left_two = chosen_agents(None, Problem(5, 2, 1.0))
    three, left_three = chosen_agents(None, Problem(5, 3, 1.0))
    assert ids(two) == [*PRACTICE, "exploration", "gaptron", "uniform"]
    assert ids(three) == [*PRACTICE, "gaptron", "uniform"]
    assert two[6] == {"id": "exploration", "forecaster": "fourier-aioli", "grid": {"gamma": [0.03, 0.1, 0.3]}}
    assert two[5] == {"id": "epsilon-greedy-direct", "grid": {"gamma": [0.01, 0.03, 0.1, 0.3]}}
    assert two[7] == {"id": "gaptron", "step": "wide", "norm_bound": 10.0}
    assert left_two[:-1] == [
        "boosted-exploration: it updates its trees after explored hits only, so it needs many rounds"
    ]
    assert left_three[:-1] == ["exploration(fourier-aioli): used for two classes only", *left_two[:-1]]
    others, _, why = left_two[-1].partition(": ")
    assert why == "older agents, agents with the settings of a theorem, or agents of other libraries"
    listed = others.split(", ")
    assert "banditron" in listed
    assert not {"exploration", "boosted-exploration", "perceptron", "uniform", *PRACTICE} & set(listed)


@pytest.mark.parametrize(("d", "large"), [(1024, False), (1025, True)])
def test_where_matrices_are_large_it_is_said_that_sketches_play(d: int, large: bool) -> None:
    """4 x 1024 x 1024 is 2^22."""
    played, left_out = chosen_agents(None, Problem(d, 4, 1.0))
    slow = [line for line in left_out if "slow" in line]
    assert ids(played) == [*PRACTICE, *["soba-diag"] * large, "gaptron", "uniform"]
    assert played[:5] == [{"id": name} for name in PRACTICE[:5]]
    why = "a round is slow for K d^2 = 4,202,500; used with a sketch or a diagonal instead"
    assert slow == [f"{', '.join(PRACTICE[:5])} with whole matrices: {why}"] * large


def test_sketches_that_are_large_themselves_are_left_out() -> None:
    """Four models and 32 rows, thrice, of 60,000 numbers are 46 or 48 MiB; the stack's memory of contexts is 1.0 GB."""
    played, left_out = chosen_agents(None, Problem(60_000, 4, 1.0))
    assert ids(played) == ["epsilon-greedy-direct", "soba-diag", "gaptron", "uniform"]
    slow = [line for line in left_out if "slow" in line]
    sizes = (48, 48, 46, 46, 953)
    assert slow == [f"{name}: a round is slow, with a state of {MiB:,} MiB" for name, MiB in zip(PRACTICE, sizes)]


@pytest.mark.parametrize(("K", "played"), [(2, True), (445, True), (446, False)])
def test_the_stack_is_left_out_from_sixteen_million_numbers_on(K: int, played: bool) -> None:
    """A model has 2.5 x 16^2 numbers for linear experts, 8 x 96^2 / 2 for Fourier ones; contexts 65,536; 2^24 is 16,777,216."""
    blocks, left_out = chosen_agents(None, Problem(16, K, 1.0))
    assert ("stackcb" in ids(blocks)) is played
    told = [] if played else ["stackcb: a round is slow, with a state of 64 MiB"]
    assert [line for line in left_out if "stackcb" in line] == told


def test_agents_are_asked_for_by_name() -> None:
    problem = Problem(5, 3, 1.0)
    blocks, left_out = chosen_agents(" fastcb, exploration( ftrl ) ,banditron,,", problem)
    banditron = {"id": "banditron", "grid": {"gamma": [0.01, 0.03, 0.1, 0.3]}}
    assert blocks == [{"id": "fastcb"}, {"id": "exploration", "forecaster": "ftrl"}, banditron]
    assert left_out == []
    boosted = {"id": "boosted-exploration", "grid": {"gamma": [0.03, 0.1, 0.3]}}
    assert chosen_agents(["uniform", "boosted-exploration"], problem)[0] == [{"id": "uniform"}, boosted]
    for K, more in ((2, {"complement": False}), (3, {})):  # for each of two actions that may both be right a model
        several = chosen_agents("stackcb,uniform", Problem(5, K, 1.0), several_right=True)[0]
        assert several == [{"id": "stackcb"} | more, {"id": "uniform"}]
    for asked, message in (
        (" , ", "must be all, or at least one id"),
        ([], "must be all, or at least one id"),
        ("uniform,fastcb,uniform", "names 'uniform' twice"),
        ("perceptron", "perceptron observes every label"),
        ("uniform(ftrl)", r"uniform takes no other algorithm in parentheses, so 'uniform\(ftrl\)' is not an agent"),
        ("bandtron", "did you mean 'banditron'"),
    ):
        with pytest.raises(UsageError, match=message):
            chosen_agents(asked, problem)


def test_all_that_can_be_built_play_and_the_others_are_left_out_with_a_reason() -> None:
    played, left_out = chosen_agents("all", Problem(5, 3, 1.0))
    assert {"banditron", "gaptron", "stackcb", "uniform", *PRACTICE} <= set(ids(played))
    assert {"id": "banditron", "grid": {"gamma": [0.01, 0.03, 0.1, 0.3]}} in played
    assert "perceptron: observes the label" in left_out
    assert ids(played).count("exploration") == 1  # around Fourier features for two classes only
    assert not set(ids(played)) & {line.partition(":")[0] for line in left_out}


# ------------------------------------------------------------------------------------------------------------------ faults


def looking(*rounds: list[FaultError]) -> Any:
    """Return a function that finds these faults one time after the other, then none; it notes what it is asked."""
    left = list(rounds)

    def look(settings: dict[str, Any]) -> Any:
        look.asked.append(dict(settings))  # type: ignore[attr-defined]
        return SimpleNamespace(faults=left.pop(0) if left else [], classes=Counter(a=9), n_rows=9)

    look.asked = []  # type: ignore[attr-defined]
    return look


def refused(look: Any) -> FaultyTableError:
    with pytest.raises(FaultyTableError) as caught:
        refuse_faults(look, "t.csv", {"label": "y", "missing": None, "scaling": "none"})
    return caught.value


def test_a_table_without_faults_is_as_it_was_found() -> None:
    look = looking([])
    assert refuse_faults(look, "t.csv", {"label": "y", "missing": None}).faults == []
    assert look.asked == [{"label": "y", "missing": None}]


def test_faults_are_mended_round_after_round_and_told_once() -> None:
    first, second = FaultError("one", "--label", "z"), FaultError("two", "--drop-row", "3")
    look = looking([first], [second, first])
    error = refused(look)
    assert (error.faults, error.loss) == (["one", "two"], "")
    assert error.command == "banditlab compare t.csv --label z --drop-row 3 --scaling none"
    assert look.asked[1:] == [
        {"label": "z", "scaling": "none"},
        {"label": "z", "scaling": "none", "drop_rows": [3]},
    ]


def test_a_fault_that_nothing_mends_leaves_no_command() -> None:
    for rounds in (
        [[FaultError("one"), FaultError("two", "--label", "z")]],
        [[FaultError("one", "--label", "z")], [FaultError("two")]],
    ):
        error = refused(looking(*rounds))
        assert (error.faults, error.command) == (["one", "two"], "")


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        ({}, ("--drop-row", "7", "--drop-row", "3"), {"drop_rows": [3, 7]}),
        ({"drop_rows": [9, 3]}, ("--drop-row", "3"), {"drop_rows": [3, 9]}),
        ({"drop_columns": ["b"]}, ("--drop-column", "a", "--drop-column", "b"), {"drop_columns": ["b", "a"]}),
        ({}, ("--role", "a=b=time"), {"roles": {"a=b": "time"}}),
        ({"roles": {"a": "time"}}, ("--role", "b=nominal"), {"roles": {"a": "time", "b": "nominal"}}),
        ({"roles": {"a": "time", "b": "time"}}, ("--drop-column", "a"), {"roles": {"b": "time"}, "drop_columns": ["a"]}),
        ({}, ("--missing", "mean"), {"missing": "mean"}),
        ({"missing": "mean"}, ("--missing", "drop_rows"), {"missing": "mean"}),
        ({"missing": "drop_rows"}, ("--missing", "mean"), {"missing": "mean"}),
        ({}, ("--comment", "#", "--na-values", "-"), {"comments": ["#"], "na_values": ["-"]}),
        ({}, ("--decimal", ","), {"decimal": ","}),
        ({"scaling": "none"}, (), {"scaling": "none"}),
    ],
)  # fmt: skip
def test_an_option_mends_a_setting(
    settings: dict[str, Any], options: tuple[str, ...], expected: dict[str, Any]
) -> None:
    assert _fixed(settings, [FaultError("x", *options)]) == expected


def test_a_label_mends_the_label() -> None:
    assert _fixed({"label": "y", "a": 1}, [FaultError("x", "--label", "z")]) == {"label": "z", "a": 1}


@pytest.mark.parametrize(
    ("label", "settings", "words"),
    [
        ("", {}, ""),
        ("my y", {"missing": None, "drop_rows": [], "roles": {}}, " --label 'my y'"),
        ("y", {"header": "yes"}, " --label y --header"),
        ("y", {"header": "no"}, " --label y --no-header"),
        ("y", {"header": "auto"}, " --label y"),
        ("y", {"roles": {"a": "time", "b c": "nominal"}}, " --label y --role a=time --role 'b c=nominal'"),
        ("y", {"drop_rows": [3, 4], "max_categories": 5}, " --label y --drop-row 3 --drop-row 4 --max-categories 5"),
    ],
)
def test_the_command_with_these_settings(label: str, settings: dict[str, Any], words: str) -> None:
    found = command("t.csv", {"label": label} | settings)
    assert sorted(found.split(" --")) == sorted(f"banditlab compare t.csv{words}".split(" --"))


# -------------------------------------------------------------------------------------------------------------------- spec


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "my table.csv"
    file.write_text("a,b,kind\n" + "\n".join(f"{i},{i * i % 7},{'xyz'[i % 3]}" for i in range(12)) + "\n")
    return file


def test_the_rows_are_passed_once_in_ten_repetitions_unless_more_is_asked_for(table: Path) -> None:
    asked: list[tuple[dict[str, Any], int]] = [({}, 12), ({"passes": 1}, 12), ({"passes": 3}, 36), ({"rounds": 7}, 7)]
    for keys, rounds in asked:
        spec = comparison(table, "kind", agents="uniform", **keys)
        assert (spec.name, spec.rounds, spec.repetitions, spec.norm_bounds) == ("my-table", rounds, 10, [10.0])
    assert comparison(table, "kind", agents="uniform", repetitions=2).repetitions == 2
    with pytest.raises(UsageError, match="--passes and --rounds both set the number of rounds"):
        prepared(table, "kind", passes=1, rounds=12)
    with pytest.raises(UsageError, match="passes"):
        prepared(table, "kind", passes=0)
    made = prepared(table, "kind", agents="uniform", missing=None, drop_columns=["b"])
    assert made.survey is not None
    assert made.spec.environment[0].model_extra == {"path": str(table), "label": "kind", "drop_columns": ["b"]}
    assert inspect.signature(compare).parameters["jobs"].default == 1
    assert inspect.signature(prepared).parameters["repetitions"].default == 10


@pytest.mark.parametrize(("d", "sparse", "bounds"), [(8192, True, [10.0]), (8193, True, []), (8193, False, [10.0])])
def test_sparse_rows_too_long_to_be_dense_have_no_comparator(
    d: int, sparse: bool, bounds: list[float], table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {
        "problem": Problem(d, 3, 1.0, 1),
        "n_rows": 12,
        "sparse": sparse,
        "row_units": None,
        "class_counts": {},
        "several_right": False,
        "per_features": None,
    }
    env = SimpleNamespace(unwrapped=SimpleNamespace(**there, looks_ordered=False, follows_time=False))
    monkeypatch.setattr(_sweep, "build_environment", lambda described, rounds: env)
    assert comparison(table, "kind", agents="uniform").norm_bounds == bounds


def test_a_libsvm_file_has_no_columns_to_be_surveyed(tmp_path: Path) -> None:
    file = tmp_path / "t.svm"
    file.write_text("\n".join(f"{i % 3} {1 + i % 4}:1 9:2" for i in range(12)) + "\n")
    made = prepared(file, "", agents="uniform")
    assert (made.survey, made.spec.name, made.classes) == (None, "t", {0: 4, 1: 4, 2: 4})
    assert made.sentences == ["3 classes are more than a fifth of the number of rows: is this a label?"]


@pytest.mark.parametrize(
    ("header", "asked", "said"),
    [("no", None, True), ("no", "auto", True), ("no", "no", False), ("yes", None, False), ("yes", "auto", False)],
)
def test_a_first_line_taken_for_a_row_is_said(header: str, asked: str | None, said: bool) -> None:
    settings = {} if asked is None else {"header": asked}
    found = _about_file(SimpleNamespace(header=header), settings)  # type: ignore[arg-type]
    assert [line[:14] for line in found] == ["the first line"] * said


def test_copies_are_said_unless_a_column_groups_them(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((20, 2)).repeat(15, axis=0)
    pd.DataFrame(X, columns=["a", "b"]).assign(kind=["x", "y"] * 150).to_csv(tmp_path / "t.csv", index=False)
    assert prepared(tmp_path / "t.csv", "kind", agents="uniform").sentences == [
        "280 of 300 rows are copies or near copies of others; the ranking uses the first row of each set of copies, 20 rows; "
        "--group COLUMN uses the groups of a column instead"
    ]
    assert prepared(tmp_path / "t.csv", "kind", agents="uniform", group="a").sentences == []


def test_of_arms_it_is_said_how_often_they_are_right(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": ["p", "q"] * 10, "a": [1, 0, 0, 0] * 5, "b": [1, 1, 0, 0] * 5})
    frame.to_csv(tmp_path / "t.csv", index=False)
    made = prepared(tmp_path / "t.csv", arms=["a", "b"], per="x", agents="uniform")
    assert [block.id for block in made.spec.agent] == ["uniform"]
    assert "'b' is right in 50.0% of the rows, and some action is right in 50.0%" in made.sentences[-1]


def test_results_go_to_the_lab_or_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_folder("a") == Path("results/a")
    (tmp_path / "runs").mkdir()
    assert default_folder("a") == Path("runs/results/a")


def test_feedback_and_change_are_those_of_a_spec(table: Path) -> None:
    late, change = {"delay": 3, "answered": 0.5}, {"labels": "swap", "at": [6]}
    spec = prepared(table, "kind", agents="uniform", feedback=late, change=change).spec
    assert list(spec.feedback.written()) == [late]
    assert list(spec.change.written()) == [change]
    [run, *_] = make_plan(spec, "here").runs
    assert run.feedback == late
    assert run.environment["change"] == Change.of(change).as_settings()
    assert make_plan(comparison(table, "kind", agents="uniform"), "here").runs[0].run_id != run.run_id
