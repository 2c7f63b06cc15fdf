"""A small sweep and a lab with agents that misbehave."""

from __future__ import annotations

import textwrap

import pytest

from banditlab import registry as registry_module
from banditlab.engine import Sweep, make_spec
from banditlab.engine.work import Task

SMALL = {
    "name": "small",
    "rounds": 300,
    "repetitions": 2,
    "norm_bounds": [1, 3],
    "environment": [{"id": "banditlab/Logistic-v0", "n_features": 4, "n_classes": 3}],
    "agent": [{"id": "banditron", "grid": {"gamma": [0.1, 0.3]}}, {"id": "uniform"}],
}

LAB_AGENT = """
    import numpy as np
    from banditlab.agents import Agent
    from banditlab.problem import Decision

    class Odd(Agent):
        id = "{id}"
        summary = "misbehaves in one way"
        explores = False

        def __init__(self, problem, rng, *, bias: float = 0.0):
            super().__init__(problem, rng)
            self.bias = bias
            {init}

        def act(self, context):
            u = self.rng.random(2)
            K = self.problem.n_classes
            p = np.full(K, 1 / K)
            {act}

        def learn(self, context, decision, correct):
            pass
"""


@pytest.fixture
def small():
    """Return a function that makes the small sweep, with keys replaced."""

    def make(**keys):
        return Sweep(make_spec(SMALL | keys, "test"))

    return make


@pytest.fixture
def tasks(small, tmp_path):
    """Return six tasks of a run each."""
    return [Task(str(tmp_path / "out"), (), (run,)) for run in small(norm_bounds=[]).plan.runs]


@pytest.fixture
def fresh_registry(monkeypatch):
    """Give the test a registry of its own, so that labs opened in it are forgotten."""
    fresh = registry_module.Registry()
    monkeypatch.setattr(registry_module, "registry", lambda: fresh)
    for module in ("describe", "plan", "schedule"):
        target = f"banditlab.engine.{module}.registry"
        monkeypatch.setattr(target, lambda: fresh, raising=False)
    return fresh


@pytest.fixture
def lab(tmp_path):
    """Return a function that writes an agent into a lab folder and returns the folder."""

    def write(id_, act="return Decision(int(u[1] * K), p)", init="pass"):
        folder = tmp_path / "lab"
        (folder / "agents").mkdir(parents=True, exist_ok=True)
        text = textwrap.dedent(LAB_AGENT).format(id=id_, act=act, init=init)
        (folder / "agents" / f"{id_.replace('-', '_')}.py").write_text(text)
        return folder

    return write
