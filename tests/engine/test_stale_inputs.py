"""What a run's id was made from is what it is played with: a file that was replaced in between is refused."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from banditlab.engine import Sweep
from banditlab.engine.describe import describe_player
from banditlab.engine.plan import Run
from banditlab.envs.table import Table
from banditlab.errors import UsageError
from banditlab.registry import Registry

OLD = "a,b,kind\n1,2,x\n3,1,y\n0,1,x\n"
NEW = "a,b,kind\n5,2,y\n3,1,x\n0,2,x\n"


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text(OLD)
    return file


def sweep_of(file, env=("banditlab/Table-v0",)):
    environment = [{"id": env[0], "path": str(file), "label": "kind"}]
    return Sweep(rounds=6, repetitions=2, norm_bounds=[1.0], environment=environment, agent=[{"id": "uniform"}])


@pytest.mark.parametrize("builds", [1, 2, 3, 4])
@pytest.mark.few(2)
def test_a_table_replaced_while_a_sweep_runs_is_a_failure(table, tmp_path, monkeypatch, builds):
    sweep_of(table).run(tmp_path / "truth")
    truth = pd.read_parquet(tmp_path / "truth" / "results.parquet").drop(columns="seconds")
    build, calls = Run.build_environment, []

    def built(run):
        calls.append(run)
        if len(calls) == builds:
            table.write_text(NEW)
        return build(run)

    sweep = sweep_of(table)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "build_environment", built)
        result = sweep.run(tmp_path / "out")
    assert result.failures
    assert all("replaced after the sweep was planned" in failure["error"] for failure in result.failures)
    file = tmp_path / "out" / "results.parquet"
    stored = pd.read_parquet(file).drop(columns="seconds") if file.exists() else truth[:0]
    whole = truth[truth.run_id.isin(stored.run_id)]
    pd.testing.assert_frame_equal(stored, whole.reset_index(drop=True)[list(stored)])
    again = sweep_of(table).run(tmp_path / "out")  # of what is there now
    assert (again.present, again.played, again.failures) == (0, 2, [])


def test_what_is_hashed_is_what_is_parsed(table, monkeypatch):
    """The bytes are read once: between two reads a file may be replaced."""
    from banditlab.envs import files

    sweep, read, calls = sweep_of(table), files.read_bytes, []

    def replaced(path):
        data = read(path)
        calls.append(path)
        table.write_text(NEW)
        return data

    monkeypatch.setattr(files, "read_bytes", replaced)
    env = sweep.plan.runs[0].build_environment()
    assert (len(calls), env.content) == (1, sweep.plan.runs[0].environment["identity"]["settings"]["content"])


def test_an_environment_that_does_not_say_what_it_read_is_asked_for_its_identity(table, monkeypatch):
    sweep = sweep_of(table)
    load = Table._load

    def quiet(self):
        rows = load(self)
        del self.content
        return rows

    monkeypatch.setattr(Table, "_load", quiet)
    sweep.plan.runs[0].build_environment()
    table.write_text(NEW)
    with pytest.raises(UsageError, match="replaced after the sweep was planned"):
        sweep.plan.runs[0].build_environment()


@pytest.mark.slow
def test_an_edited_lab_is_refused_by_who_reads_it_later(small, lab, fresh_registry, monkeypatch):
    folder = lab("edited")
    fresh_registry.open_lab(folder)
    run = small(agent=[{"id": "edited"}], norm_bounds=[]).plan.runs[0]
    env = run.build_environment()
    assert run.build_player(env).id == "edited"
    lab("edited", "return Decision(0, p)")
    later = Registry()
    later.open_lab(folder)
    monkeypatch.setattr("banditlab.engine.describe.registry", lambda: later)
    with pytest.raises(UsageError, match=r"edited\.py: edited after the sweep was planned"):
        run.build_player(env)


def test_a_wrapped_players_source_counts(lab, fresh_registry):
    described = describe_player("agents", "exploration", {"forecaster": "ogd", "gamma": 0.1}, "here")
    json.dumps(described)
    assert described["source"] == ""


def test_a_labs_file_is_read_once(tmp_path, monkeypatch):
    file = tmp_path / "lab" / "agents" / "one.py"
    file.parent.mkdir(parents=True)
    file.write_text("from banditlab.agents import Uniform\n\nclass One(Uniform):\n    id = 'one'\n")
    reads, read = [], type(file).read_bytes

    def counted(self):
        reads.append(self)
        return read(self)

    monkeypatch.setattr(type(file), "read_bytes", counted)
    Registry().open_lab(tmp_path / "lab")
    assert [path.name for path in reads] == ["one.py"]
