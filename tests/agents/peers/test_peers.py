"""What holds for every adapter, with the libraries and without them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import banditlab.agents.peers
from banditlab.agents.peers.adapter import BatchPeerAgent, internal_seed, one_hot
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
    assert str(refusal.value) == f"{id_} needs {library}: pip install {library}"


def test_an_import_that_fails_inside_a_library_is_not_called_missing(monkeypatch, tmp_path):
    from banditlab.distributions import library

    (tmp_path / "broken_peer.py").write_text("import no_such_module_of_anybody\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_anybody"):
        library("broken_peer", "x")


def test_importing_a_library_changes_no_hook_of_the_process(monkeypatch, tmp_path):
    """coba 8.1.0 replaces `sys.excepthook` when it is imported."""
    from banditlab.distributions import library

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
            with pytest.raises(UsageError, match=r"^state\.model is not a model file"):
                agent.set_state(state | {name: value})
            continue
        agent.set_state(state | {name: value})
        assert agent.get_state()[name] == value
    for beyond in (type(largest)(-1), largest * 1.01 if isinstance(largest, float) else largest + 1):
        with pytest.raises(UsageError, match=rf"^state\.{name} must "):
            agent.set_state(state | {name: beyond})


def test_a_library_s_seed_is_the_child_s_first_number_below_2_31():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        child = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0,))))
        assert internal_seed(rng) == child.integers(0, 2**31 - 2, endpoint=True)
        assert rng.bit_generator.seed_seq.n_children_spawned == 1
    assert one_hot(1, 3).tolist() == [0.0, 1.0, 0.0]


class Collecting(BatchPeerAgent):
    """A library that keeps what it is handed."""

    id = "collecting"

    def __init__(self, problem, rng, *, batch=1):
        super().__init__(problem, rng, batch=batch)
        self.handed = []

    def _distribution(self, x):
        return one_hot(2, 3)

    def _pass_batch(self, contexts, actions, rewards):
        self.handed.append((contexts.copy(), actions.tolist(), rewards.tolist()))


def test_rounds_are_handed_over_when_a_batch_is_full():
    agent = Collecting(PROBLEM, np.random.default_rng(0), batch=3)
    X = np.arange(28.0).reshape(7, 4) / 200
    for t, x in enumerate(X):
        decision = agent.act(x)
        assert (decision.action, decision.explored, np.size(decision.payload)) == (2, None, 0)
        agent.learn(x, decision, t % 2 == 0)
        assert len(agent.handed) == (t + 1) // 3
    assert [actions for _, actions, _ in agent.handed] == [[2, 2, 2]] * 2
    assert [rewards for *_, rewards in agent.handed] == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    np.testing.assert_array_equal(np.vstack([contexts for contexts, *_ in agent.handed]), X[:6])
    assert agent._get_waiting()["rounds"] == 1
    assert Collecting(PROBLEM, np.random.default_rng(0), batch=1).batch == 1


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("rounds", 0, True),
        ("rounds", 2, True),
        ("rounds", 3, False),
        ("rounds", -1, False),
        ("actions", [0, 2, 1], True),
        ("actions", [0, 3, 1], False),
        ("actions", [-1, 2, 1], False),
    ],
)
def test_rounds_that_wait_at_their_limits(name, value, taken):
    agent = Collecting(PROBLEM, np.random.default_rng(0), batch=3)
    waiting = agent._get_waiting() | {name: value if name == "rounds" else np.array(value)}
    if taken:
        agent._set_waiting(waiting)
        assert np.array_equal(agent._get_waiting()[name], value)
        return
    with pytest.raises(UsageError, match=rf"^state\.waiting\.{name} must lie in 0 \.\.\. 2"):
        agent._set_waiting(waiting)


@pytest.mark.parametrize("id_", sorted(ADAPTERS))
def test_what_a_block_says_of_an_adapter(id_):
    """Through blocks all the same; which coin a library tosses inside is known of one only."""
    cls = registry().load("agents", id_)
    assert cls.plays_blocks
    assert cls.explores == (id_ == "river-logistic")
    assert not cls.sparse
