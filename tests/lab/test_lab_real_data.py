"""The specs of the real-data study play, in small and on made-up data, and their notebook reads what they leave."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditlab.engine import Sweep, read_spec
from banditlab.engine.spec import Spec
from banditlab.registry import registry

LAB = Path(__file__).parents[2]
TUNED = sorted(f"real-data-tuned/{path.stem}" for path in (LAB / "runs" / "real-data-tuned").glob("*.toml"))
SPECS = [*sorted(path.stem for path in (LAB / "runs").glob("real-data*.toml")), *TUNED]
SCALINGS = {
    "norm": "",
    "standard": ", scaling = 'standard', normalize = false",
    "given": ", scaling = 'none', normalize = false",
}
DEFAULTS = ["real-data", "real-data-peers", "real-data-mabwiser", "real-data-twins"]
CHOICES = ["real-data-choice", "real-data-choice-peers", "real-data-choice-twins"]
PEERS = {"vw", "river-logistic", "river-linucb", "mabwiser-linucb", "mabwiser-lints"}
MABWISER = {"mabwiser-linucb", "mabwiser-lints"}
"""Their eight settings are played by their twins."""
SMALL = ["rounds=60", "repetitions=3", "checkpoints=[60]"]


def spec_of(name: str, *overrides: str) -> Spec:
    return read_spec(LAB / "runs" / f"{name}.toml", list(overrides))


def made_up(folder: Path) -> str:
    """Write two tables that stand in for data sets; return the override that puts them there, scaled in three ways."""
    blocks = []
    for name, K in (("vehicle", 4), ("shuttle-train", 3)):
        rng = np.random.default_rng(K)
        y = np.arange(60) % K
        table = pd.DataFrame(rng.standard_normal((60, 5)) + 2 * np.eye(5)[y], columns=[f"a{j}" for j in range(5)])
        path = folder / f"{name}.csv"
        table.assign(kind=[f"class {k}" for k in y]).to_csv(path, index=False)
        table_block = f"id = 'banditlab/Table-v0', path = '{path.as_posix()}', label = 'kind'"
        blocks += [f"{{ {table_block}{scaling} }}" for scaling in SCALINGS.values()]
    return f"environment=[{', '.join(blocks)}]"


def test_the_specs_meet_on_the_same_streams_but_for_the_choice() -> None:
    full = spec_of("real-data")
    assert len(full.environment) == 3 * 8
    assert TUNED
    for name in SPECS:
        spec = spec_of(name)
        assert spec.rounds == full.rounds == 5_000
        assert (spec.base_seed == full.base_seed) == (name not in CHOICES)
        few = "tuned" in name or name == "real-data-peers"
        assert spec.repetitions == (10 if few else 20) or name in [*CHOICES, "real-data-mabwiser"]
        names = [block.model_dump() | {"path": ""} for block in spec.environment]
        known = [block.model_dump() | {"path": ""} for block in full.environment]
        assert all(block in known for block in names)
        assert len(names) == (1 if "tuned" in name else 2 * 8 if name == "real-data-mabwiser" else 3 * 8)


def test_every_set_is_scaled_in_three_ways() -> None:
    blocks = [block.model_dump() for block in spec_of("real-data").environment]
    for i, (scaling, normalize) in enumerate([(None, None), ("standard", False), ("none", False)]):
        mine = blocks[8 * i : 8 * i + 8]
        assert [block.get("scaling") for block in mine] == [scaling] * 8
        assert [block.get("normalize") for block in mine] == [normalize] * 8
        plain = [{k: v for k, v in block.items() if k not in ("scaling", "normalize")} for block in mine]
        assert plain == blocks[:8]


def test_every_agent_has_its_two_chances() -> None:
    """Ours and the other libraries': once as it comes, once among eight settings of which the first is the default."""
    agents = {block.id: registry().load("agents", block.id) for block in spec_of("real-data").agent}
    ours = {id_ for id_, cls in agents.items() if cls.group in ("theory", "practice")}
    assert len(ours) == 17
    for wanted, defaults, choices in (
        (ours, DEFAULTS[:1], CHOICES[:1]),
        (PEERS, DEFAULTS[1:3], CHOICES[1:2]),
    ):
        plain = [block for name in defaults for block in spec_of(name).agent]
        assert wanted <= {block.id for block in plain}
        assert all(list(block.written()) == [{}] for block in plain)
        grids = {block.id: block for name in choices for block in spec_of(name).agent}
        assert set(grids) == wanted - MABWISER
        for id_, block in grids.items():
            points = list(block.written())
            assert len(points) == {"ovr-perceptron": 4, "vw": 12}.get(id_, 8)
            cls = registry().load("agents", id_)
            defaults_of = cls.__init__.__kwdefaults__
            assert all(points[0][k] == defaults_of.get(k, 1.0) for k in points[0])  # B = 1 of an inner forecaster


def test_the_twins_settings_are_mabwiser_s() -> None:
    plain = {block.id: next(block.written()) for block in spec_of("real-data-twins").agent}
    assert plain == {
        "linucb": {"confidence": 1.0, "regularization": 1.0},
        "lints": {"deviation": 1.0, "regularization": 1.0},
    }
    for block in spec_of("real-data-choice-twins").agent:
        points = list(block.written())
        assert len(points) == 8
        assert points[0] == plain[block.id]


@pytest.fixture(scope="module")
def study(notebook: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Play the defaults and the choice in small, have the notebook write the tuned specs, play them, run it again."""
    pytest.importorskip("river", reason='river is missing: pip install -e ".[peers]"')
    folder = tmp_path_factory.mktemp("study")
    sets = made_up(folder)
    few = {
        "real-data": "agent=[{ id = 'fastcb' }, { id = 'linucb' }, { id = 'perceptron' }, { id = 'uniform' }]",
        "real-data-peers": "agent=[{ id = 'river-logistic' }]",
        "real-data-twins": "agent=[{ id = 'linucb', confidence = 1.0, regularization = 1.0 }]",
        "real-data-choice": "agent=[{ id = 'linucb', grid = { confidence = [1.0, 0.1] } }, { id = 'fastcb' }]",
        "real-data-choice-peers": "agent=[{ id = 'river-logistic', grid = { learning_rate = [0.01, 1.0] } }]",
    }
    for name, agents in few.items():
        assert not Sweep(spec_of(name, *SMALL, sets, agents)).run(folder / name).failures
    places = {"results": folder, "figures": folder, "specs": folder}
    notebook("real_data.py", folder, **places)
    for path in (folder / "real-data-tuned").glob("*.toml"):
        table = folder / tomllib.loads(path.read_text(encoding="utf-8"))["environment"][0]["path"]
        spec = read_spec(path, [f"environment.0.path={table.as_posix()}"])  # as the spec's head says
        assert not Sweep(spec).run(folder / f"real-data-tuned-{path.stem}").failures
    return folder, notebook("real_data.py", folder, **places)


def shares(folder: Path, name: str) -> pd.DataFrame:
    runs = pd.concat([pd.read_parquet(path) for path in (folder / name).glob("results.parquet")])
    where = runs["environment"].str
    scaling = np.where(where.contains("standard"), "standard", np.where(where.contains("normalize"), "given", "norm"))
    first = runs["first_sight_expected_mistakes"] / runs["first_sight_rounds"]
    return runs.assign(share=first, scaling=scaling, every=runs["mistakes"] / runs["round"])


def test_the_tables_say_what_is_stored(study: tuple[Path, str]) -> None:
    folder, said = study
    assert "left out, not run yet: real-data-mabwiser" in said
    table = pd.read_csv(folder / "results" / "real-data-defaults.csv")
    assert set(table["data"]) == {"vehicle", "shuttle"}
    assert (table["streams"] == 3).all()
    assert (table["interval"] == "t, rows").all()
    runs, other = (
        shares(folder, name).query("environment.str.contains('vehicle')") for name in ("real-data", "real-data-choice")
    )
    for label in ("fastcb", "uniform"):
        row = table[(table["data"] == "vehicle") & (table["agent"] == label)].iloc[0]
        there = other[(other["label"] == label)].groupby("scaling")["share"].mean()
        assert row["scaling"] == (there.idxmin() if len(there) else "norm")
        mine = runs[(runs["label"] == label) & (runs["scaling"] == row["scaling"])]
        assert row["mistakes %"] == pytest.approx(100 * mine["share"].mean(), abs=1e-3)
        assert row["all rounds %"] == pytest.approx(100 * mine["every"].mean(), abs=1e-3)
    every = pd.read_csv(folder / "results" / "real-data-scalings.csv")
    assert len(every) == 2 * 3 * table["agent"].nunique()
    assert (folder / "images" / "real-data.png").stat().st_size > 10_000


def test_the_choice_is_the_least_on_the_other_streams(study: tuple[Path, str]) -> None:
    folder, _ = study
    chosen = pd.read_csv(folder / "results" / "real-data-choices.csv")
    runs = shares(folder, "real-data-choice-peers")
    for name in ("vehicle", "shuttle"):
        mine = runs[runs["environment"].str.contains(name)]
        rate, scaling = mine.groupby(["setting.learning_rate", "scaling"])["share"].mean().idxmin()
        row = chosen[(chosen["data"] == name) & (chosen["agent"] == "river-logistic")].iloc[0]
        assert row["setting"] == f"learning_rate={float(rate):g}"
        assert row["scaling"] == scaling
        assert row["of"] == 2 * 3
        assert row["default"] == (float(rate) == 0.01)
        path = folder / "real-data-tuned" / f"{name}-{scaling}.toml"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        assert ('id = "river-logistic"' in text) != row["default"]
        assert folder.as_posix() not in text
    tuned = pd.read_csv(folder / "results" / "real-data-tuned.csv")
    assert len(tuned) == 2 * 3


def test_both_sides_of_a_difference_are_named(study: tuple[Path, str]) -> None:
    folder, _ = study
    table = pd.read_csv(folder / "results" / "real-data-best-peer.csv")
    assert (table["paired"] == (table["ours scaling"] == table["their scaling"])).all()
    same = pd.read_csv(folder / "results" / "real-data-same-scaling.csv")
    assert len(same) == 2 * 3
    assert same["paired"].all()


def test_holm_s_correction(study: tuple[Path, str]) -> None:
    folder, _ = study
    tests = pd.read_csv(folder / "results" / "real-data-tests.csv")
    agents = set(tests["agent"]) | set(tests["other"])
    assert len(tests) == 2 * len(agents) * (len(agents) - 1) / 2
    p, adjusted = tests["p"].to_numpy(), tests["adjusted p"].to_numpy()
    for i in range(len(p)):
        steps = [(p >= q).sum() * q for q in p if q <= p[i]]
        assert adjusted[i] == pytest.approx(min(1.0, max(steps)), rel=1e-2)
    score = pd.read_csv(folder / "results" / "real-data-win-tie-loss.csv", index_col=0)
    for a in agents:
        for b in agents - {a}:
            assert sum(map(int, score.loc[a, b].split("/"))) == 2
            assert score.loc[a, b].split("/") == score.loc[b, a].split("/")[::-1]
