"""A results folder's comparison: its recipe goes on in `train`, its agents stay where table and recipe are the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab import Policy, Sweep, compare, make_spec
from banditlab.analysis import load, summary_rows
from banditlab.comparison import prepared
from banditlab.errors import UsageError
from banditlab.policy.training import best_setting
from tests.cli.conftest import banditlab as banditlab

N = 60


def rows(n: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(18, 80, n), "spent": rng.normal(100.0, 20.0, n).round(2)})
    frame = frame.assign(plan=rng.choice(["free", "pro"], n), note=[f"n{i}" for i in range(n)])
    frame.loc[3, "spent"] = np.nan
    return frame.assign(churn=np.where(frame["age"] > 50, "yes", "no"))


RECIPE: dict[str, Any] = {
    "drop_columns": ["note"],
    "roles": {"plan": "nominal"},
    "missing": "mean",
    "scaling": "standard",
    "separator": ";",
    "group": "",
}


def write(file: Path, frame: pd.DataFrame, separator: str = ";") -> Path:
    frame.to_csv(file, index=False, sep=separator)
    return file


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table and its comparison in `r`."""
    folder = tmp_path_factory.mktemp("compared")
    table = write(folder / "t.csv", rows())
    compare(table, "churn", out=folder / "r", repetitions=3, agents="linucb,uniform", **RECIPE)
    return folder


def trained(file: Path, home: Path, **more: Any) -> dict[str, Any]:
    return Policy.train(file, best_of=home / "r", **more).describe()


def refused(file: Path, home: Path, **more: Any) -> str:
    with pytest.raises(UsageError) as caught:
        trained(file, home, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------- train --best-of


def test_the_recipe_of_the_comparison_is_trained_with(home: Path) -> None:
    mine = Policy.train(home / "t.csv", best_of=home / "r")
    written = Policy.train(home / "t.csv", "churn", agent="linucb", **RECIPE)
    assert mine._core.agent.to_bytes() == written._core.agent.to_bytes()
    about = mine.describe()
    assert (about["agent"], about["trained"]["label"], sorted(about["columns"])) == (
        "linucb", "churn", ["age", "plan", "spent"]
    )  # fmt: skip


def test_more_rows_of_the_same_columns_and_classes_are_the_same_table(home: Path, tmp_path: Path) -> None:
    more = write(tmp_path / "more.csv", rows(90))
    assert trained(more, home)["trained"]["rows"] == 90
    bare = write(tmp_path / "bare.csv", rows(90).drop(columns="note"))
    assert "drop_columns (--drop-column): there is no column 'note'" in refused(bare, home)
    assert trained(bare, home, drop_columns=[])["trained"]["rows"] == 90
    comma = write(tmp_path / "comma.csv", rows(90), ",")
    assert trained(comma, home, separator=",")["trained"]["rows"] == 90, "another file may be written otherwise"


def test_rows_left_out_are_those_of_one_file(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", rows())
    compare(table, "churn", out=tmp_path / "r", repetitions=1, agents="uniform", drop_rows=[3], drop_columns=["note"])
    assert trained(table, tmp_path)["trained"]["rows"] == N - 1
    longer = write(tmp_path / "longer.csv", rows(80).fillna({"spent": 1.0}))
    assert trained(longer, tmp_path)["trained"]["rows"] == 80


def test_settings_that_are_given_replace_those_of_the_recipe(home: Path) -> None:
    mine = Policy.train(home / "t.csv", best_of=home / "r", scaling="minmax", missing="zero")
    written = Policy.train(home / "t.csv", "churn", agent="linucb", **RECIPE | {"scaling": "minmax", "missing": "zero"})
    assert mine._core.agent.to_bytes() == written._core.agent.to_bytes()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"label": "plan"}, "column 'plan', class 'free', class 'no', class 'pro', class 'yes'"),
        ({"roles": {"plan": "drop"}}, "column 'plan'"),
        ({"drop_columns": ["note", "age"]}, "column 'age'"),
        ({"group": "plan"}, "column 'plan'"),
    ],
)
def test_settings_by_which_columns_or_classes_are_others_make_another_table(
    home: Path, given: dict[str, Any], said: str
) -> None:
    assert f"not the table of the comparison in {home / 'r'} ({said}" in refused(home / "t.csv", home, **given)


def test_missing_entries_that_are_new_get_their_rule(tmp_path: Path) -> None:
    whole = rows().fillna({"spent": 1.0})
    table = write(tmp_path / "t.csv", whole)
    compare(table, "churn", out=tmp_path / "r", repetitions=1, agents="uniform", drop_columns=["note"])
    gaps = write(tmp_path / "gaps.csv", rows())
    assert "missing (--missing)" in refused(gaps, tmp_path)
    assert trained(gaps, tmp_path, missing="mean")["agent"] == "uniform"


def test_all_faults_are_named_at_once_and_the_corrected_command_is_right(
    home: Path, tmp_path: Path, banditlab: Callable[..., tuple[int, str]]
) -> None:
    write(tmp_path / "t.csv", rows(90).assign(mail=[f"m{i}" for i in range(90)]))
    asked = ["train", "t.csv", "--best-of", home / "r", "--scaling", "minmax", "--agent", "fastcb"]
    code, text = banditlab(*asked, "-o", "x.policy")
    *lines, corrected = text.splitlines()
    assert code == 2
    plain = " ".join(" ".join(lines).split())
    for fault in (
        "the request has 3 faults:",
        "--agent, --set",
        "'mail' is text",
        "(column 'mail': only in one of the two, or with another role)",
    ):
        assert fault in plain, text
    assert corrected == (
        f"corrected: banditlab train t.csv --best-of {home / 'r'} --drop-column note --drop-column mail --scaling minmax "
        "-o x.policy"
    )
    code, text = banditlab(*shlex.split(corrected.removeprefix("corrected: banditlab ")))
    assert (code, (tmp_path / "x.policy").is_file()) == (0, True), text


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda f: f.rename(columns={"age": "years"}), "column 'age', column 'years'"),
        (lambda f: f.drop(columns="spent"), "column 'spent'"),
        (lambda f: f.assign(town="x"), "column 'town'"),
        (lambda f: f.assign(**dict.fromkeys("pqrst", "x")), "column 'p', column 'q', column 'r', column 's', column 't'"),
        (lambda f: f.assign(**dict.fromkeys("pqrstu", "x")), "column 'p', column 'q', column 'r', column 's', column 't', ..."),
        (lambda f: f.assign(spent=np.where(f.index % 2, "low", "high")), "column 'spent'"),
        (lambda f: f.assign(churn=np.where(f.index % 3, f["churn"], "maybe")), "class 'maybe'"),
        (lambda f: f.assign(churn=np.where(f.index % 3, "yes", "perhaps")), "class 'no', class 'perhaps'"),
    ],
)  # fmt: skip
def test_another_table_is_refused_unless_it_is_meant(home: Path, tmp_path: Path, edit: Any, said: str) -> None:
    other = write(tmp_path / "other.csv", edit(rows()))
    assert (
        f"not the table of the comparison in {home / 'r'} ({said}: only in one of the two, or with another role); --other-table"
        in refused(other, home)
    )
    about = trained(other, home, other_table=True)
    assert about["agent"] == "linucb"
    assert trained(other, home, other_table=True, scaling="minmax")["agent"] == "linucb"


def test_a_folder_that_is_no_finished_comparison_of_one_table_is_refused(home: Path, tmp_path: Path) -> None:
    logistic = {"id": "banditlab/Logistic-v0"}
    Sweep(name="s", rounds=20, environment=[logistic], agent=[{"id": "uniform"}]).run(tmp_path / "r")
    assert "must be a comparison on one table" in refused(home / "t.csv", tmp_path)
    assert "not a results folder" in (said := refused(home / "t.csv", tmp_path / "none"))
    assert "TOML" not in said.partition("(it has")[0]
    spec = prepared(home / "t.csv", "churn", repetitions=3, agents="linucb,uniform", **RECIPE).spec
    half = Sweep(spec.model_copy(update={"repetitions": 2}))
    half.run(tmp_path / "half" / "r")
    Path(tmp_path / "half" / "r" / "runs.json").write_text(json.dumps(Sweep(spec).plan.record()))
    assert "damaged" in refused(home / "t.csv", tmp_path / "half")


def test_the_agent_trained_is_the_one_ranked_first(home: Path) -> None:
    first = next(row for row in summary_rows(load(home / "r")) if not row.constant)
    assert best_setting(home / "r") == (first.label, {}) == ("linucb", {})


# ----------------------------------------------------------------------------------------------- compare with other agents


def agents_and_sentences(table: Path, folder: Path, agents: str, **more: Any) -> tuple[list[str], list[str]]:
    """Return the agents of a comparison, and what is said of earlier ones."""
    settings: dict[str, Any] = {"repetitions": 2, "drop_columns": ["note"], "missing": "mean"}
    made = prepared(table, "churn", out=folder, agents=agents, **settings | more)
    return [block.id for block in made.spec.agent], [line for line in made.sentences if "earlier" in line]


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, compared twice with other agents."""
    folder = tmp_path_factory.mktemp("twice")
    table = write(folder / "t.csv", rows())
    for agents in ("linucb,uniform", "banditron"):
        compare(table, "churn", out=folder / "r", agents=agents, repetitions=2, drop_columns=["note"], missing="mean")
    return folder


def test_earlier_agents_stay_in_the_table_and_are_not_played_again(twice: Path) -> None:
    results = load(twice / "r")
    assert {row.label for row in summary_rows(results)} > {"linucb", "uniform", "banditron"}
    assert (results.spec["name"], results.planned, results.missing) == ("t", 2 * (2 + 4), 0)
    ids, said = agents_and_sentences(twice / "t.csv", twice / "r", "banditron,uniform")
    assert (ids, said) == (
        ["banditron", "uniform", "linucb"],
        [f"agents included from the earlier comparison in {twice / 'r'}: linucb"],
    )
    ids, said = agents_and_sentences(twice / "t.csv", twice / "r", "banditron,linucb,uniform")
    assert (ids, said) == (["banditron", "linucb", "uniform"], [])
    ids, _ = agents_and_sentences(twice / "t.csv", twice / "r", "lints", repetitions=1)
    assert ids == ["lints", *["banditron"] * 4, "linucb", "uniform"], "fewer repetitions are among those played"


WHY = "(some of their runs on this table with these settings are missing)"


@pytest.mark.parametrize(
    "more",
    [
        {"scaling": "standard"},
        {"missing": "zero"},
        {"drop_columns": ["note", "age"]},
        {"rounds": 50},
        {"repetitions": 3},
    ],
)
def test_of_another_recipe_no_agents_are_kept(twice: Path, more: dict[str, Any]) -> None:
    ids, said = agents_and_sentences(twice / "t.csv", twice / "r", "lints", **more)
    assert ids == ["lints"]
    assert said == [
        f"agents not included from the earlier comparison in {twice / 'r'}: banditron, linucb, uniform {WHY}"
    ]


def test_a_table_that_was_edited_keeps_no_agents(twice: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "t.csv", rows(seed=1))
    ids, said = agents_and_sentences(other, twice / "r", "lints")
    assert ids == ["lints"]
    assert said[0].endswith(f"r: banditron, linucb, uniform {WHY}")
    (tmp_path / "moved.csv").write_bytes((twice / "t.csv").read_bytes())
    assert len(agents_and_sentences(tmp_path / "moved.csv", twice / "r", "lints")[0]) == 7, (
        "where the file lies does not matter"
    )


def test_agents_whose_runs_are_not_finished_are_not_kept(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", rows())
    made = prepared(table, "churn", agents="linucb,uniform", repetitions=2, drop_columns=["note"], missing="mean")
    Sweep(made.spec.model_copy(update={"agent": made.spec.agent[:1]})).run(tmp_path / "r")
    from banditlab.engine.spec_text import spec_to_toml
    from banditlab.engine.work import facts
    from banditlab.results.store import Store

    Store(tmp_path / "r").write_plan(spec_to_toml(made.spec, facts()), Sweep(made.spec).plan.record())  # cut off
    with pytest.raises(UsageError, match="2 of 4 runs are missing; run the command that made the folder again"):
        best_setting(tmp_path / "r")
    ids, said = agents_and_sentences(table, tmp_path / "r", "lints")
    assert ids == ["lints", "linucb"]
    assert said[1].endswith(f"r: uniform {WHY}")


def test_a_folder_of_something_else_keeps_no_agents(twice: Path, tmp_path: Path) -> None:
    sweep = make_spec(
        {"rounds": 20, "environment": [{"id": "banditlab/Logistic-v0"}], "agent": [{"id": "uniform"}]}, "s"
    )
    Sweep(sweep).run(tmp_path / "r")
    ids, said = agents_and_sentences(twice / "t.csv", tmp_path / "r", "lints")
    assert ids == ["lints"]
    assert "not included from the earlier comparison in" in said[0]
    assert "r: uniform (" in said[0]
    (tmp_path / "r" / "spec.toml").write_text("torn")
    ids, said = agents_and_sentences(twice / "t.csv", tmp_path / "r", "lints")
    assert ids == ["lints"]
    assert "agents of the earlier comparison are not included" in said[0]
    assert "damaged" in said[0]
