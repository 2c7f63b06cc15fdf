"""Ids and classes: built-in, installed (entry points), and those of lab folders."""

from __future__ import annotations

import hashlib
import importlib
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditlab.errors import UsageError
from banditlab.players.player import Player
from banditlab.problem import Problem
from banditlab.registry import KINDS, Registry, classes_of, kind_of, load_file, registry, source_hash

AGENT = """
from banditlab.players.player import Player

class Mine(Player):
    id = "{id}"
    shade = "{shade}"
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    for room in ("agents", "envs"):
        (tmp_path / room).mkdir()
    return tmp_path


def write_agent(lab: Path, name: str, id_: str, shade: str = "red") -> Path:
    file = lab / "agents" / f"{name}.py"
    file.write_text(AGENT.format(id=id_, shade=shade))
    return file


# ------------------------------------------------------------------------------------------------------------- built-in


@pytest.mark.parametrize(("kind", "id_"), [(entry.kind, entry.id) for k in KINDS for entry in Registry().entries(k)])
def test_every_entry_loads_a_class_of_its_id_and_kind(kind: str, id_: str) -> None:
    found = Registry().load(kind, id_)
    assert found.id == id_
    assert kind_of(found) == kind


def test_every_algorithm_file_is_registered() -> None:
    """Whatever stands in agents/ and forecasters/ with an id is listed: a forgotten entry fails here."""
    package = Path(importlib.import_module("banditlab").__file__ or "").parent
    for kind in ("agents", "forecasters"):
        listed = {entry.id for entry in Registry().entries(kind)}
        for file in sorted((package / kind).glob("[!_]*.py")):
            module = importlib.import_module(f"banditlab.{kind}.{file.stem}")
            assert {cls.id for _, cls in classes_of(module)} <= listed, file


def test_every_environment_is_registered() -> None:
    from banditlab import envs

    assert {getattr(envs, name).id for name in envs.BUILT_IN["envs"]} == {
        entry.id for entry in Registry().entries("envs")
    }


def test_built_in_comes_first() -> None:
    assert next(entry.origin for entry in Registry().entries("agents")) == "banditlab"


def test_what_is_ours_comes_before_what_a_lab_adds(lab: Path) -> None:
    write_agent(lab, "mine", "aaa-first-by-name")
    known = Registry()
    known.open_lab(lab)
    listed = known.entries("agents")
    assert listed[-1].id == "aaa-first-by-name"
    assert [entry.id for entry in listed[:-1]] == sorted(entry.id for entry in listed[:-1])


def test_a_wrong_id_gets_the_nearest_right_one() -> None:
    with pytest.raises(UsageError, match=r"^no agent is called 'bandtron'; did you mean 'banditron'\?$") as e:
        Registry().find("agents", "bandtron")
    assert "\n" not in str(e.value)


def test_an_id_like_no_other_gets_the_list() -> None:
    with pytest.raises(UsageError, match=r"^no forecaster is called 'zzz' \(known: .*aioli, .*folklore, .*ogd.*\)$"):
        Registry().find("forecasters", "zzz")


# ----------------------------------------------------------------------------------------------------------------- labs


def test_a_lab_file_is_listed_with_its_path_and_hash(lab: Path) -> None:
    file = write_agent(lab, "mine", "my-agent")
    known = Registry()
    known.open_lab(lab)
    entry = known.find("agents", "my-agent")
    assert (entry.origin, entry.source, entry.failure) == (str(file), source_hash(file), "")
    assert known.load("agents", "my-agent").__name__ == "Mine"
    assert known.labs() == [str(lab)]


def test_lab_files_are_not_put_on_the_path(lab: Path) -> None:
    write_agent(lab, "mine", "my-agent")
    before = list(sys.path)
    Registry().open_lab(lab)
    assert sys.path == before
    assert "mine" not in sys.modules


def test_objects_of_a_lab_class_travel_by_pickle(lab: Path) -> None:
    cls = classes_of(load_file(write_agent(lab, "mine", "my-agent")))[0][1]
    assert pickle.loads(pickle.dumps(cls)) is cls


def test_opening_a_lab_twice_does_nothing(lab: Path) -> None:
    write_agent(lab, "mine", "my-agent")
    known = Registry()
    known.open_lab(lab)
    known.open_lab(lab / "agents" / "..")
    assert known.labs() == [str(lab)]


def test_private_files_are_left_alone(lab: Path) -> None:
    write_agent(lab, "_helper", "hidden")
    known = Registry()
    known.open_lab(lab)
    assert "hidden" not in {entry.id for entry in known.entries("agents")}


def test_a_missing_lab_is_named() -> None:
    with pytest.raises(UsageError, match=r"^--lab nowhere: no such folder$"):
        Registry().open_lab("nowhere")


@pytest.mark.parametrize(
    ("text", "id_", "reason"),
    [
        ("import no_such_module\n", "broken", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("class A:\n    id = 'my-agent'\nimport no_such_module\n", "my-agent", "ModuleNotFoundError"),
        ("class A:\n    id: str = 'my-agent'\nraise SystemExit(3)\n", "my-agent", "SystemExit: 3"),
        ("def f(:\n", "broken", "SyntaxError: "),
        ("raise ValueError('one\\ntwo')\n", "broken", "ValueError: one two"),
    ],
)
def test_a_lab_file_that_fails_stays_listed_and_raises_when_selected(
    lab: Path, text: str, id_: str, reason: str
) -> None:
    (lab / "agents" / "broken.py").write_text(text)
    write_agent(lab, "fine", "fine-agent")
    known = Registry()
    known.open_lab(lab)
    entry = known.find("agents", id_)
    assert entry.failure.startswith(reason)
    assert known.load("agents", "fine-agent").shade == "red"
    with pytest.raises(UsageError) as caught:
        known.load("agents", id_)
    assert str(caught.value).startswith(f"agent {id_!r} from {lab / 'agents' / 'broken.py'} cannot be loaded: {reason}")
    assert "\n" not in str(caught.value)


def test_the_ids_of_a_file_that_fails_are_those_its_classes_write_down(lab: Path) -> None:
    (lab / "agents" / "broken.py").write_text(
        "import no_such_module\n"
        "id = 'of-the-module'\n"
        "class A:\n"
        "    'a word'\n"
        "    name = 'no-id'\n"
        "    id = 'first'\n"
        "    id = 3\n"
        "    id = made_up()\n"
        "    self.id = 'of-something-else'\n"
        "    x, id = 'several', 'at once'\n"
        "    def id(self): ...\n"
        "class B:\n"
        "    id: str = 'second'\n"
        "    name: str = 'no-id'\n"
        "    id: str\n"
    )
    known = Registry()
    known.open_lab(lab)
    mine = {entry.id for entry in known.entries("agents") if entry.origin != "banditlab"}
    assert mine == {"first", "second"}


def test_a_lab_file_s_annotations_and_hash(lab: Path) -> None:
    """What this package's files ask of Python for themselves is none of a lab's."""
    file = lab / "agents" / "typed.py"
    file.write_text("def f(x: int): ...\n")
    module = load_file(file)
    assert module.f.__annotations__ == {"x": int}
    digits = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    assert source_hash(file) == module.__source_hash__ == digits
    assert load_file(file, b"x = 3\n").x == 3  # read already
    other = lab / "agents" / "typed.txt"
    other.write_text("x = 1\n")
    with pytest.raises(UsageError, match=r"typed\.txt: not a Python file$"):
        load_file(other)


def test_a_failing_file_named_like_a_built_in_stops_nobody(lab: Path) -> None:
    (lab / "agents" / "uniform.py").write_text("raise ValueError('no')\n")
    known = Registry()
    known.open_lab(lab)
    assert known.load("agents", "uniform").__name__ == "Uniform"
    assert known.find("agents", "uniform.py").failure == "ValueError: no"


def test_an_id_twice_is_an_error_that_names_both(lab: Path) -> None:
    one, two = write_agent(lab, "one", "twin"), write_agent(lab, "two", "twin")
    known = Registry()
    for _ in range(2):  # every time, not only the first
        with pytest.raises(UsageError) as caught:
            known.open_lab(lab)
    assert str(caught.value) == f"two agents are called 'twin': from {one} and from {two}"


def test_an_id_of_ours_is_taken(lab: Path) -> None:
    file = write_agent(lab, "mine", "banditron")
    with pytest.raises(UsageError) as caught:
        Registry().open_lab(lab)
    assert str(caught.value) == f"two agents are called 'banditron': from banditlab and from {file}"


def test_an_edited_file_is_another_one_at_once(lab: Path) -> None:
    """Python's own byte code cache would miss an edit within a second that keeps the size."""
    file = write_agent(lab, "mine", "my-agent", "red")
    first, shade = source_hash(file), classes_of(load_file(file))[0][1].shade
    write_agent(lab, "mine", "my-agent", "tan")
    assert shade == "red"
    assert classes_of(load_file(file))[0][1].shade == "tan"
    assert source_hash(file) != first


def test_classes_without_an_id_and_imported_ones_are_passed_over(lab: Path) -> None:
    file = lab / "agents" / "mixed.py"
    file.write_text(
        "from banditlab.agents import Agent\n"
        "from banditlab.agents.uniform import Uniform\n"
        "class Plain: pass\n"
        "class Unnamed(Uniform): pass\n"
        "class Abstract(Agent):\n    id = 'abstract'\n"
        "class Named(Uniform):\n    id = 'named'\n"
    )
    assert [cls.__name__ for _, cls in classes_of(load_file(file))] == ["Named"]


def test_a_file_that_fails_leaves_no_module_behind(lab: Path) -> None:
    file = lab / "agents" / "broken.py"
    file.write_text("raise ValueError('no')\n")
    before = set(sys.modules)
    with pytest.raises(ValueError, match="no"):
        load_file(file)
    assert not {name for name in set(sys.modules) - before if "broken" in name}


# --------------------------------------------------------------------------------------------------------- entry points


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that installs a distribution with one module and entry points, by its dist-info folder."""

    def install(source: str, points: str) -> None:
        site = tmp_path / "site"
        info = site / "plugged-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(points)
        (site / "plugged_module.py").write_text(source)
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.delitem(sys.modules, "plugged_module", raising=False)
        importlib.invalidate_caches()

    return install


def test_an_installed_agent_is_found(package: Any) -> None:
    package(AGENT.format(id="plugged-agent", shade="blue"), "[banditlab.agents]\nplugged-agent = plugged_module:Mine\n")
    known = Registry()
    entry = known.find("agents", "plugged-agent")
    assert entry.origin == "plugged"
    assert issubclass(entry.load(), Player)
    assert "plugged-agent" in {e.id for e in known.entries("agents")}


def test_an_installed_forecaster_and_env_are_found(package: Any) -> None:
    source = (
        "class F(__import__('banditlab.players.player').players.player.Player):\n    id = 'plugged-f'\n    feedback = 'label'\n"
        "    def predict(self, context): ...\n"
        "class E:\n    id = 'plugged/E-v0'\n"
    )
    package(source, "[banditlab.forecasters]\nplugged-f = plugged_module:F\n"
                    "[banditlab.envs]\nplugged/E-v0 = plugged_module:E\n")  # fmt: skip
    known = Registry()
    assert known.load("forecasters", "plugged-f").__name__ == "F"
    assert known.load("envs", "plugged/E-v0").__name__ == "E"


def test_listing_imports_no_plug_in(package: Any) -> None:
    package("raise RuntimeError('imported')\n", "[banditlab.agents]\nplugged-agent = plugged_module:Mine\n")
    assert "plugged-agent" in {entry.id for entry in Registry().entries("agents")}
    assert "plugged_module" not in sys.modules


def test_an_installed_agent_that_fails_raises_when_selected(package: Any) -> None:
    package("raise RuntimeError('no luck')\n", "[banditlab.agents]\nplugged-agent = plugged_module:Mine\n")
    with pytest.raises(UsageError) as caught:
        Registry().load("agents", "plugged-agent")
    assert str(caught.value) == "agent 'plugged-agent' from plugged cannot be loaded: RuntimeError('no luck')"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit(3)\n", "SystemExit(3)"),
        ("import os\nos._exit(0)\n", "its import ended the process (exit code 0)"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "its import ended the process (signal 9)"),
        ("while True:\n    pass\n", "its import did not end within 1 s (BANDITLAB_PLUGIN_SECONDS)"),
        (
            "class B(BaseException):\n    def __repr__(self):\n        raise ValueError\nraise B\n",
            "B, whose message cannot be shown",
        ),
        ("raise GeneratorExit('x\\ny')\n", "GeneratorExit('x\\ny')"),
    ],
)
@pytest.mark.few(2)
def test_an_import_that_ends_or_hangs_is_one_line_that_names_the_distribution(
    source: str, reason: str, package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BANDITLAB_PROBED", raising=False)
    if "while" in source:
        monkeypatch.setenv("BANDITLAB_PLUGIN_SECONDS", "1")
    package(source, "[banditlab.agents]\nplugged-agent = plugged_module:Mine\n")
    with pytest.raises(UsageError) as caught:
        Registry().load("agents", "plugged-agent")
    assert str(caught.value) == f"agent 'plugged-agent' from plugged cannot be loaded: {reason}"


def test_what_was_imported_once_is_not_tried_again(
    package: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BANDITLAB_PROBED", "")
    source = f"with open({str(tmp_path / 'imports')!r}, 'a') as f:\n    f.write('x')\n" + AGENT.format(
        id="plugged-agent", shade="blue"
    )
    package(source, "[banditlab.agents]\nplugged-agent = plugged_module:Mine\n")
    assert Registry().load("agents", "plugged-agent") is Registry().load("agents", "plugged-agent")
    assert (tmp_path / "imports").read_text() == "xx"  # in a separate process, and here


def test_a_plug_in_that_claims_a_taken_id_is_listed_with_its_reason(package: Any) -> None:
    package(
        AGENT.format(id="uniform", shade="blue"),
        "[banditlab.agents]\nuniform = plugged_module:Mine\n[banditlab.forecasters]\nogd = plugged_module:Mine\n",
    )
    known = Registry()
    assert known.load("agents", "uniform").__name__ == "Uniform"
    [claims] = [entry for entry in known.entries("agents") if entry.origin == "plugged"]
    with pytest.raises(UsageError) as caught:
        claims.load()
    assert str(caught.value) == (
        "agent 'uniform' from plugged cannot be loaded: the id is taken by banditlab: uninstall one of them"
    )


def test_of_two_plug_ins_with_one_id_neither_is_meant(package: Any, tmp_path: Path) -> None:
    package(AGENT.format(id="twice", shade=""), "[banditlab.agents]\ntwice = plugged_module:Mine\n")
    info = tmp_path / "site" / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[banditlab.agents]\ntwice = plugged_module:Mine\n")
    importlib.invalidate_caches()
    known = Registry()
    assert sorted(entry.origin for entry in known.entries("agents") if entry.id == "twice") == ["other", "plugged"]
    with pytest.raises(
        UsageError, match=r"^agent 'twice' from (other|plugged) cannot be loaded: the id is also claimed by"
    ):
        known.load("agents", "twice")


@pytest.mark.parametrize(
    ("source", "group", "message"),
    [
        (AGENT.format(id="other", shade=""), "agents", "names a class whose id is 'other'"),
        ("Mine = 3\n", "agents", "names a class whose id is None"),
        (AGENT.format(id="plugged-agent", shade=""), "envs", "is listed under envs but is not of that kind"),
        ("class Mine:\n    id = 'plugged-agent'\n", "agents", "is listed under agents but is not of that kind"),
    ],
)
def test_an_entry_point_that_names_something_else_is_refused(
    package: Any, source: str, group: str, message: str
) -> None:
    package(source, f"[banditlab.{group}]\nplugged-agent = plugged_module:Mine\n")
    with pytest.raises(UsageError) as caught:
        Registry().load(group, "plugged-agent")
    assert str(caught.value) == f"plugged: the entry point 'plugged-agent' {message}"


@pytest.mark.parametrize("radius", [0.0, -1.0, 1e-120, 1e120, float("inf"), float("nan")])
def test_a_radius_whose_square_is_no_number_is_refused(radius):
    with pytest.raises(UsageError, match="radius must lie between 1e-100 and 1e"):
        Problem(2, 2, radius)


def test_an_id_that_is_no_text_is_refused_in_one_line():
    with pytest.raises(UsageError, match="no forecaster is called 3"):
        registry().load("agents", "exploration")(Problem(2, 2, 1.0), np.random.default_rng(0), forecaster=3)
