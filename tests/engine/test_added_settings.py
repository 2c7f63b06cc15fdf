"""A setting that is added later leaves stored runs and their draws alone, where it plays the rule of before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from banditlab.agents.uniform import Uniform
from banditlab.engine import Sweep, make_spec
from banditlab.errors import UsageError
from banditlab.forecasters.ogd import OGD
from banditlab.players.saved import Fields
from banditlab.problem import Problem
from banditlab.registry import Entry, registry

ENV = {"id": "banditlab/Logistic-v0", "n_features": 6, "n_classes": 3, "norm_bound": 5.0, "noise": 0.1}


class Before(Uniform):
    """As it was when runs were stored."""

    id = "grown"

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, warmth: float = 0.5) -> None:
        super().__init__(problem, rng)
        self.warmth = warmth


class After(Before):
    """With two settings more, one of which moved the default away from the rule of before."""

    added_settings = {"polish": "none", "warm": False}

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        warmth: float = 0.5,
        polish: str = "wax",
        warm: bool | float = False,
    ) -> None:
        super().__init__(problem, rng, warmth=warmth)
        self.polish, self.warm = polish, warm


def plan_of(kind: str = "agent", **block: Any) -> Any:
    spec = {"name": "s", "rounds": 120, "base_seed": 11, "repetitions": 1, "checkpoints": [60]}
    [run] = Sweep(make_spec(spec | {"environment": [ENV], kind: [block]}, "test")).plan.runs
    return run


def identity(run: Any) -> tuple[str, str]:
    return run.run_id, run.player_generator().bit_generator.state["state"]["state"]


@pytest.fixture
def grown(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts a class behind the id "grown"."""

    def put(cls: type, kind: str = "agents") -> None:
        monkeypatch.setitem(registry()._entries[kind], cls.id, Entry(cls.id, kind, cls, "banditlab"))

    return put


def test_at_the_old_rule_ids_and_seeds_are_those_of_before(grown: Any) -> None:
    grown(Before)
    before = identity(plan_of(id="grown", warmth=0.25))
    grown(After)
    assert identity(plan_of(id="grown", warmth=0.25, polish="none")) == before
    run = plan_of(id="grown", warmth=0.25, polish="none")
    assert run.player["settings"]["polish"] == "none"  # the player is built with it, whatever its default
    env = run.build_environment()
    env.reset(seed=1)
    assert run.build_player(env).polish == "none"


def test_at_another_value_and_at_a_new_default_they_are_others(grown: Any) -> None:
    grown(Before)
    before = identity(plan_of(id="grown"))
    grown(After)
    others = [
        identity(plan_of(id="grown", **block)) for block in ({}, {"polish": "oil"}, {"polish": "none", "warm": True})
    ]
    assert len({before, *others}) == 4
    assert not {before[1]} & {seed for _, seed in others}
    assert identity(plan_of(id="grown", polish="none", warm=0.0)) != before  # 0.0 is not False


def test_of_a_wrapped_player_too(grown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def around(**settings: Any) -> Any:
        return plan_of(id="exploration", forecaster="ogd", gamma=0.1, decoding="sample", **settings)

    before = identity(around())
    ogd = OGD.__init__

    class Grown(OGD):
        added_settings = {"polish": "none"}

        def __init__(
            self,
            problem: Problem,
            rng: Any,
            *,
            norm_bound: float = 1.0,
            step: float | str = "theory",
            polish: str = "none",
        ) -> None:
            ogd(self, problem, rng, norm_bound=norm_bound, step=step)
            self.polish = polish

    assert set(Grown.own_settings()) == {*OGD.own_settings(), "polish"}
    grown(Grown, "forecasters")
    assert identity(around()) == identity(around(polish="none")) == before
    assert identity(around(polish="wax")) != before


def test_an_environments_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before = plan_of(id="uniform")
    cls = registry().load("envs", ENV["id"])
    monkeypatch.setattr(cls, "added_settings", {"noise": 0.1}, raising=False)
    after = plan_of(id="uniform")
    assert "noise" not in after.environment["identity"]["settings"]
    assert after.environment["settings"]["noise"] == 0.1
    assert after.stream_id != before.stream_id  # here the setting was there before: leaving it out does show


def test_decoding_at_the_old_rule_has_the_ids_that_are_on_record() -> None:
    """Ids of runs that were stored before there was a choice (tests/record/runs.csv has their numbers)."""
    run = plan_of(id="exploration", decoding="sample")
    assert run.run_id == "9f17c3d8192701b8e632862d"
    assert "decoding" not in run.description["player"]["settings"]
    half_log = plan_of(id="exploration")
    assert half_log.run_id != run.run_id
    assert half_log.description["player"]["settings"]["decoding"] == "half-log"
    for id_ in ("rdue", "randomized-decoding", "gaptron"):
        assert "decoding" not in plan_of(id=id_).description["player"]["settings"]


def test_a_player_saved_without_the_setting_is_loaded_with_the_old_rule(tmp_path: Any) -> None:
    problem = Problem(3, 3, 1.0, 100)
    Before(problem, np.random.default_rng(0), warmth=0.3).save(tmp_path / "old.npz")
    loaded = After.load(tmp_path / "old.npz")
    assert (loaded.warmth, loaded.polish, loaded.warm) == (0.3, "none", False)
    After(problem, np.random.default_rng(0)).save(tmp_path / "new.npz")
    assert After.load(tmp_path / "new.npz").polish == "wax"


def test_a_state_saved_before_its_class_had_the_field_keeps_the_constructors() -> None:
    """RDUE's state has a field `decoding` with a default; files without it are of the paper's own rule."""
    rdue = registry().load("agents", "rdue")
    problem = Problem(3, 3, 1.0, 100)
    player = rdue(problem, np.random.default_rng(0))
    state = player.get_state()
    fields = {name: value for name, value in state["state"]._asdict().items() if name != "decoding"}
    fresh = rdue(problem, np.random.default_rng(1))
    fresh.set_state(state | {"state": Fields(fields)})
    assert fresh.state.decoding == player.state.decoding
    del fields["gamma"]  # a field that was always there is missed
    with pytest.raises(UsageError, match=r"^state.state must be the fields V, z, r, gamma, "):
        fresh.set_state(state | {"state": Fields(fields)})
