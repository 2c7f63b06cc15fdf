"""What holds for every adapter, with the libraries and without them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import banditlab.agents.peers
from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.registry import classes_of, load_file, registry

PROBLEM = Problem(4, 3, 1.0, 100)
ADAPTERS = {
    *("vw", "river-logistic", "river-linucb", "mabwiser-linucb", "mabwiser-lints", "coba-linucb", "coba-lints"),
    *("contextualbandits-linucb", "contextualbandits-lints", "contextualbandits-sgd"),
}
LIBRARIES = ("vowpalwabbit", "river", "mabwiser", "coba", "contextualbandits")


def test_every_adapter_is_registered():
    folder = Path(banditlab.agents.peers.__file__).parent
    found = {cls.id for file in folder.glob("[!_]*.py") for _, cls in classes_of(load_file(file))}
    assert found == ADAPTERS
    assert found <= {entry.id for entry in registry().entries("agents")}


@pytest.mark.parametrize("id_", sorted(ADAPTERS))
def test_a_missing_library_is_one_line_that_says_how_to_install_it(id_, monkeypatch):
    cls = registry().load("agents", id_)
    [library] = cls.requires
    for name in [library, *[name for name in sys.modules if name.startswith(f"{library}.")]]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError) as refusal:
        cls(PROBLEM, np.random.default_rng(0))
    assert str(refusal.value) == f'{id_} needs the library {library}: pip install "banditlab[peers]"'


def test_an_import_that_fails_inside_a_library_is_not_called_missing(monkeypatch, tmp_path):
    from banditlab.agents.peers.adapter import library

    (tmp_path / "broken_peer.py").write_text("import no_such_module_of_anybody\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_anybody"):
        library("broken_peer", "x")


def test_importing_a_library_changes_no_hook_of_the_process(monkeypatch, tmp_path):
    """coba 8.1.0 replaces `sys.excepthook` when it is imported."""
    from banditlab.agents.peers.adapter import library

    (tmp_path / "hooking_peer.py").write_text("import sys\nsys.excepthook = print\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = sys.excepthook
    library("hooking_peer", "x")
    assert sys.excepthook is before


def test_listing_and_describing_load_no_library():
    """Modules, classes and settings are there without the extra."""
    code = (
        "import sys\nfrom banditlab.registry import registry\n"
        f"for id_ in {sorted(ADAPTERS)}:\n"
        "    cls = registry().load('agents', id_)\n"
        "    print(cls.group, bool(cls.summary), bool(cls.__doc__))\n"
        f"print([name for name in {LIBRARIES} if sys.modules.get(name)])\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split("\n")[:-1] == ["adapter True True"] * len(ADAPTERS) + ["[]"]


@pytest.mark.parametrize("id_", sorted(ADAPTERS))
def test_every_parameter_is_described(id_):
    cls = registry().load("agents", id_)
    for name in cls.own_settings():
        assert f"\n    {name}\n" in (cls.__doc__ or "") or f"\n{name}\n" in inspect.getdoc(cls), name


BAD = {
    "vw": [
        {"exploration": "first"},
        {"gamma": -0.1},
        {"policies": 0},
        {"sharpness": 0.0},
        {"growth": -1.0},
        {"mellowness": 0.0},
        {"cost_type": "sm"},
        {"learning_rate": 0.0},
        {"costs": "1/0"},
    ],
    "river-logistic": [{"gamma": 1.1}, {"learning_rate": 0.0}, {"l2": -1.0}],
    "river-linucb": [{"alpha": 0.0}, {"beta": 0.0}],
    "mabwiser-linucb": [{"alpha": 0.0}, {"l2_lambda": 0.0}, {"batch": 0}],
    "mabwiser-lints": [{"alpha": 0.0}, {"l2_lambda": 0.0}, {"batch": 0}],
    "coba-linucb": [{"alpha": 0.0}],
    "coba-lints": [{"variance": 0.0}],
    "contextualbandits-linucb": [{"alpha": 0.0}, {"regularization": 0.0}, {"batch": 0}],
    "contextualbandits-lints": [{"deviation": 0.0}, {"regularization": 0.0}, {"batch": 0}],
    "contextualbandits-sgd": [{"gamma": 0.0}, {"gamma": 1.0}, {"decay": 0.0}, {"decay": 1.1}, {"batch": 0}],
}


@pytest.mark.parametrize(("id_", "settings"), [(id_, case) for id_, cases in BAD.items() for case in cases])
def test_bad_settings_are_refused_before_the_library_is_asked_for(id_, settings):
    [name] = settings
    with pytest.raises(UsageError, match=f"^{name} must "):
        registry().load("agents", id_)(PROBLEM, np.random.default_rng(0), **settings)


def test_every_setting_has_a_bad_value():
    for id_, cases in BAD.items():
        assert {name for case in cases for name in case} == set(registry().load("agents", id_).own_settings())


@pytest.mark.parametrize(
    ("id_", "name", "largest"),
    [
        ("vw", "seed", 2**32 - 1),
        ("contextualbandits-sgd", "seed", 2**63 - 1),
        ("contextualbandits-linucb", "seed", 2**63 - 1),
        ("contextualbandits-sgd", "explore_prob", 1.0),
    ],
)
def test_a_saved_number_at_its_limits(id_, name, largest):
    cls = registry().load("agents", id_)
    pytest.importorskip(cls.requires[0], reason="the library of another's agent")
    agent = cls(PROBLEM, np.random.default_rng(0))
    state = agent.get_state()
    for value in (type(largest)(0), largest):
        if id_ == "vw":  # whose model file has its seed, too, and is looked at next
            with pytest.raises(UsageError, match=r"^state\.model is no model file"):
                agent.set_state(state | {name: value})
            continue
        agent.set_state(state | {name: value})
        assert agent.get_state()[name] == value
    for beyond in (type(largest)(-1), largest * 1.01 if isinstance(largest, float) else largest + 1):
        with pytest.raises(UsageError, match=rf"^state\.{name} must "):
            agent.set_state(state | {name: beyond})
