"""Environments that others wrote for Gymnasium: played by the bit, without labels or with, and what they break is named."""

from __future__ import annotations

import math
import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from banditlab import Sweep, load, make_agent, make_spec, play
from banditlab.checks import check_gymnasium, run_checks
from banditlab.cli.checking import print_checks
from banditlab.envs import GymnasiumEnv, foreign
from banditlab.errors import EnvironmentContractError, IncompatibleError, UsageError

HERE = __name__


def box(low: list[float], high: list[float]) -> spaces.Box:
    return spaces.Box(np.array(low), np.array(high), dtype=np.float64)


class Signs(gymnasium.Env[Any, Any]):
    """Which coordinate is the largest? Rewards as asked for; info tells the answer; draws from where it is told to."""

    def __init__(self, reward: Any = (0.0, 1.0), source: str = "own", start: int = 0, space: Any = None) -> None:
        self.reward, self.source = reward, source
        self.observation_space = space or spaces.Box(-2.0, 2.0, (3,), np.float32)
        self.action_space = spaces.Discrete(3, start=start)
        self.first = start

    def _draw(self) -> Any:
        if self.source == "numpy":
            x = np.random.uniform(-2, 2, 3)  # noqa: NPY002 - what foreign code does
        elif self.source == "python":
            x = np.array([random.uniform(-2, 2) for _ in range(3)])
        elif self.source == "nowhere":
            x = np.random.default_rng().uniform(-2, 2, 3)
        else:
            x = self.np_random.uniform(-2, 2, 3)
        self.answer, self.t = int(np.argmax(x)) + self.first, self.t + 1
        return x.astype(np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return self._draw(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        answer = self.answer
        reward = self.reward[int(action == answer)]
        return self._draw(), reward, self.t > 20, False, {"answer": answer, "t": self.t}


@pytest.fixture(scope="module", autouse=True)
def registered() -> Any:
    gymnasium.register("tests/Signs-v0", entry_point=Signs)
    yield
    del gymnasium.registry["tests/Signs-v0"]


def signs(**settings: Any) -> GymnasiumEnv:
    return GymnasiumEnv(**{"name": "tests/Signs-v0", "horizon": 300} | settings)


@pytest.mark.parametrize("source", ["own", "numpy", "python"])
def test_the_same_seed_gives_the_same_run_wherever_it_draws_from(source: str) -> None:
    runs = []
    for _ in range(2):
        before = np.random.get_state()[1][:5].tolist(), random.getstate()  # noqa: NPY002
        env = signs(options={"source": source})
        played = play(env, make_agent("epsilon-greedy-direct", env.problem, seed=1), seed=3, keep_trace=True)
        assert (np.random.get_state()[1][:5].tolist(), random.getstate()) == before  # noqa: NPY002
        runs.append(played)
    assert np.array_equal(runs[0].trace.action, runs[1].trace.action)
    assert runs[0].mistakes == runs[1].mistakes


def test_without_labels_the_bit_is_all_that_is_counted() -> None:
    env = signs()
    agent = make_agent("epsilon-greedy-direct", env.problem, seed=1)
    played = play(env, agent, seed=3, checkpoints=[100])
    assert played.rounds == [100, 300]
    assert played.expected_mistakes == played.mistakes
    assert played.first_sight_mistakes == played.mistakes
    assert played.first_sight_rounds == [100, 300]
    assert played.constant_mistakes == [None, None]
    assert all(map(math.isnan, [*played.log_loss, *played.mistakes_variance]))
    assert 0 < played.mistakes[-1] < 150  # uniform play would make 200
    with pytest.raises(UsageError, match="tests/Signs-v0 has no labels: label_key is empty"):
        env.label()


def test_with_labels_it_counts_as_any_environment_does() -> None:
    env = signs(label_key="answer", options={"start": 5})
    agent = make_agent("epsilon-greedy-direct", env.problem, seed=1)
    labelled = play(env, agent, seed=3)
    bits = play(signs(options={"start": 5}), make_agent("epsilon-greedy-direct", env.problem, seed=1), seed=3)
    assert labelled.mistakes == bits.mistakes
    assert labelled.constant_mistakes[0] is not None
    assert math.isfinite(labelled.log_loss[0])
    assert set(env.labels()) <= {0, 1, 2}
    play(env, make_agent("perceptron", env.problem, seed=1), seed=3)


def test_an_episode_that_ends_is_followed_by_one_of_another_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, reset = [], Signs.reset
    monkeypatch.setattr(Signs, "reset", lambda self, *, seed, options: seeds.append(seed) or reset(self, seed=seed))
    env = signs()
    env.reset(seed=7)
    for _ in range(50):  # an episode has 20 rounds
        env.step(0)
    env.peek(50, seed=7)
    assert len(set(seeds)) == 3
    assert seeds[3:] == seeds[:3]
    assert 2**24 < max(seeds) < 2**31


def test_who_is_told_labels_cannot_play_without() -> None:
    env = signs()
    with pytest.raises(IncompatibleError, match="the learner observes the label, and the environment has none"):
        play(env, make_agent("perceptron", env.problem, seed=1), seed=3)


def test_contexts_have_norm_at_most_one_and_info_stays_inside() -> None:
    env = signs()
    x, info = env.reset(seed=1)
    for t in range(60):
        assert np.linalg.norm(x) <= 1.0 + 1e-12
        assert x[-1] == 0.5  # the constant, over the largest norm
        assert info == {}
        x, bit, *_, info = env.step(t % 3)
        assert bit in (0.0, 1.0)


@pytest.mark.parametrize(
    ("space", "observation", "flat"),
    [
        (spaces.Discrete(4, start=2), 3, [0, 1, 0, 0, 1]),
        (
            spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 255, (2, 2), np.uint8))),
            (1, np.full((2, 2), 255, np.uint8)),
            [0, 1, 0, 1, 1, 1, 1, 1],
        ),
        (spaces.Dict(a=spaces.MultiBinary(2), b=spaces.Discrete(3)), {"a": [1, 0], "b": 1}, [1, 0, 0, 1, 0, 1]),
        (box([-np.inf, -1e30], [np.inf, 1e30]), np.array([1e38, -3.0]), [1, -0.75, 1]),
        (box([0.0, -0.5], [0.0, 0.25]), np.array([0.0, 0.25]), [0, 0.5, 1]),
        (box([-1.0, -1.0], [1.0, 1.0]), np.array([1.0 + 9e-7, -1.0 - 9e-7]), [1, -1, 1]),  # outside by rounding
    ],
)
def test_observations_are_flattened(monkeypatch: Any, space: Any, observation: Any, flat: list[float]) -> None:
    monkeypatch.setattr(Signs, "_draw", lambda self: setattr(self, "answer", 0) or observation)
    monkeypatch.setattr(Signs, "step", lambda self, action: (self._draw(), 1.0, False, False, {}))
    env = signs(options={"space": space})
    x, _ = env.reset(seed=1)
    np.testing.assert_allclose(x / x[-1], flat, rtol=1e-9)
    assert 0.0 < np.linalg.norm(x) <= 1.0 + 1e-9
    assert (env.problem.n_features, env.problem.radius) == (len(flat), 1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "nothing_at_all:X-v0"}, "there is no module 'nothing_at_all'; install the package that contains it"),
        ({"name": "tests/Sings-v0"}, "tests/Sings-v0: Gymnasium cannot create it: NameNotFound"),
        ({"name": "Pendulum-v1"}, "Pendulum-v1: actions are Box"),
        ({"options": {"colour": 3}}, "tests/Signs-v0: Gymnasium cannot create it: TypeError"),
        ({"options": {"space": spaces.Sequence(spaces.Discrete(3))}}, "which cannot be flattened to numbers"),
        ({"horizon": 0}, "horizon must be at least 1"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(settings: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        signs(**settings)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {"reward": (-1.0, 1.0)}}, "is -1.0, which is neither 0 nor 1; set right_above to a number"),
        ({"options": {"reward": (math.nan, math.nan)}}, "is nan, which is not a number"),
        ({"options": {"reward": ("no", "yes")}}, "which is not a number"),
        ({"options": {"reward": (None, None)}, "right_above": 0.0}, "is None, which is not a number"),
        ({"label_key": "label"}, "info has no 'label' after round 1 (it has 'answer', 't')"),
        ({"label_key": "t"}, "info['t'] after round 2 is 3, which is not one of the 3 actions"),
        ({"options": {"space": spaces.Box(-0.5, 0.5, (3,))}}, "lies outside its observation space"),
        ({"options": {"space": spaces.Box(-2, 2, (4,))}}, "is of shape (3,) when flattened"),
    ],
)
def test_what_breaks_the_contract_is_named(settings: Any, message: str) -> None:
    env = signs(**settings)
    with pytest.raises(EnvironmentContractError) as caught:
        play(env, make_agent("uniform", env.problem, seed=1), seed=3)
    assert message in str(caught.value)


def test_rewards_above_a_number_are_right() -> None:
    same = [
        play(env, make_agent("uniform", env.problem, seed=1), seed=3).mistakes
        for env in (signs(), signs(options={"reward": (0.0, 1e-200)}, right_above=0.0))
    ]
    assert same[0] == same[1]


def test_it_keeps_the_contract_of_environments() -> None:
    for settings in ({"label_key": "answer"}, {}):
        results = run_checks(GymnasiumEnv, "envs", name="tests/Signs-v0", **settings)
        assert [str(r) for r in results if r.status == "failed"] == []
        assert sum(r.status == "passed" for r in results) >= 7


# ------------------------------------------------------------------------------------------------------------------- sweeps


def spec(tmp_path: Any, **more: Any) -> Any:
    blocks = {"environment": [{"id": "banditlab/Gymnasium-v0", "name": "Blackjack-v1", "right_above": 0.0}]}
    agents = [{"id": "uniform"}, {"id": "epsilon-greedy-direct"}, {"id": "perceptron"}]
    return make_spec({"name": "foreign", "rounds": 60, "repetitions": 2, "agent": agents} | blocks | more, "foreign")


@pytest.mark.slow
def test_a_sweep_plays_it_without_comparators_and_skips_who_is_told_labels(tmp_path: Any) -> None:
    sweep = Sweep(spec(tmp_path))
    assert [(s["player"], s["reason"]) for s in sweep.plan.skipped] == [
        ("perceptron", "the learner observes the label, and the environment has none")
    ]
    assert list(sweep.plan.uncompared.values()) == ["no labels, which a comparator requires"]
    assert all(run.foreign for run in sweep.plan.runs)
    done = sweep.run(tmp_path / "out", jobs=1)
    assert (done.played, done.failures) == (4, [])
    runs = load(tmp_path / "out").runs
    assert runs["constant_mistakes"].isna().all()
    assert (runs["mistakes"] == runs["expected_mistakes"]).all()
    from banditlab import write_report

    assert "Blackjack" in write_report(tmp_path / "out").read_text()


@pytest.mark.slow
def test_a_comparator_on_it_is_refused(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match=r"norm_bounds: no comparator on .* \(no labels, .*; set norm_bounds = \[\]"):
        Sweep(spec(tmp_path, norm_bounds=[1.0]))


@pytest.mark.slow
def test_another_version_of_the_package_is_another_environment() -> None:
    assert GymnasiumEnv.identity({"name": "Blackjack-v1"})["made_by"] == f"gymnasium {gymnasium.__version__}"
    assert GymnasiumEnv.identity({"name": "nothing_at_all:X-v0"})["made_by"] == "nothing_at_all, not found"


# ------------------------------------------------------------------------------------------------------------------- checks


def checked(name: str, **settings: Any) -> dict[str, tuple[str, str]]:
    return {r.name: (r.status, r.reason) for r in check_gymnasium(name, **settings)}


def test_check_says_what_an_environment_lacks() -> None:
    found = checked("tests/Signs-v0")
    assert found["can_be_made"] == ("passed", "K = 3, d = 4, including the constant")
    assert found["labels"][1].endswith("info['answer'] may be one: --set label_key=answer")
    assert {status for status, _ in found.values()} == {"passed", "excluded"}
    assert checked("tests/Signs-v0", label_key="answer")["labels"] == ("passed", "")
    assert checked("tests/Signs-v0", options={"start": 5})["labels"] == found["labels"]


@pytest.mark.parametrize(
    ("name", "settings", "check", "message"),
    [
        (
            "tests/Signs-v0",
            {"options": {"reward": (-1.0, 4.0)}},
            "one_bit",
            "rewards are -1, 4: they must be 0 and 1; otherwise set ",
        ),
        ("CartPole-v1", {}, "something_to_learn", "every one of 400 uniform actions was right (rewards 1)"),
        ("Pendulum-v1", {}, "can_be_made", "they must be finitely many, Discrete(K)"),
        (
            "tests/Signs-v0",
            {"options": {"source": "nowhere"}},
            "repeatable",
            "two episodes from one seed differ at round 0",
        ),
        ("tests/Signs-v0", {"label_key": "t"}, "labels", "which is not one of the 3 actions"),
    ],
)
def test_check_names_the_first_broken_contract(name: str, settings: Any, check: str, message: str) -> None:
    first = next(r for r in check_gymnasium(name, **settings) if r.status == "failed")
    assert (first.name, message in first.reason) == (check, True), first


def test_the_command_stops_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_checks("gymnasium:CartPole-v1", settings=[]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["passed", "passed", "failed", "the", "2"]
    with pytest.raises(UsageError, match="--set colour: must be one of label_key, options, right_above"):
        print_checks("gymnasium:CartPole-v1", settings=["colour=1"])


# ----------------------------------------------------------------------------------------------- packages of others, from PyPI


@pytest.mark.parametrize(
    ("module", "name", "settings", "most"),
    [
        ("buffalo_gym", "buffalo_gym:ContextualBandit-v0", {"right_above": 7.5, "options": {"arms": 4}}, 0.3),
        ("popgym", "popgym:popgym-HigherLowerEasy-v0", {"right_above": 0.0}, 0.45),
        ("gymnasium", "Blackjack-v1", {"right_above": 0.0}, 0.75),
    ],
)
def test_a_built_in_agent_learns_in_a_foreign_package(module: str, name: str, settings: Any, most: float) -> None:
    pytest.importorskip(module, reason=f"{module} is missing: pip install {module.replace('_', '-')}")
    env = GymnasiumEnv(name=name, horizon=600, **settings)
    played = play(env, make_agent("epsilon-greedy-direct", env.problem, seed=0), seed=0)
    assert played.mistakes[-1] < most * 600


# --------------------------------------------------------------------------------------------- environments that are none


class _Largest(gymnasium.Env[Any, Any]):
    """Which of three numbers is the largest?"""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,))
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.numbers = self.np_random.random(3, dtype=np.float32)
        return self.numbers, {}

    def step(self, action: Any) -> Any:
        right = float(action == np.argmax(self.numbers))
        self.numbers = self.np_random.random(3, dtype=np.float32)
        return self.numbers, right, False, False, {}


class _Old(_Largest):
    def step(self, action: Any) -> Any:
        x, bit, ended, _, info = super().step(action)
        return x, bit, ended, info


class _WithoutInfo(_Largest):
    def step(self, action: Any) -> Any:
        return (*super().step(action)[:4], None)


class _Bare(_Largest):
    def reset(self, **given: Any) -> Any:
        return super().reset(**given)[0]


class _Unseeded(_Largest):
    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class _Spoken(_Largest):
    def step(self, action: Any) -> Any:
        x, bit, *rest = super().step(action)
        return (x, str(int(bit)), *rest)


STEP = "step must return (observation, reward, terminated, truncated, info)"
RESET = "reset must take (*, seed=None, options=None) and return (observation, info)"


@pytest.mark.parametrize(
    ("cls", "limit", "message"),
    [
        (_Old, None, f"{STEP}, got 4 values"),
        (_Old, 50, f"{STEP}; Gymnasium cannot read what it returned: not enough values to unpack (expected 5, got 4)"),
        (_WithoutInfo, None, f"{STEP}, info a dict, got None"),
        (_Bare, None, f"{RESET}, got a ndarray"),
        (type("_Three", (_Largest,), {"reset": lambda self, **given: (0, {}, 0)}), None, f"{RESET}, got 3 values"),
        (type("_Two", (_Largest,), {"reset": lambda self, **given: (0, None)}), None, f"{RESET}, got 2 values"),
        (_Unseeded, None, f"{RESET}: _Unseeded.reset() got an unexpected keyword argument 'seed'"),
        (_Spoken, None, "the reward of round 1 is not a finite number: it must be 0 or 1, or finite with right_above"),
    ],
)
def test_what_is_no_environment_of_gymnasium_is_told_what_one_answers(cls: Any, limit: Any, message: str) -> None:
    name = f"tests/None{cls.__name__}{limit or 0}-v0"
    gymnasium.register(name, entry_point=cls, max_episode_steps=limit)
    try:
        [failed] = [r for r in check_gymnasium(name) if r.status == "failed"][:1]
    finally:
        del gymnasium.registry[name]
    assert failed.reason.endswith(message)


# ------------------------------------------------------------------------------------------------- edges of the translation


def test_an_episode_from_its_first_round_to_its_last() -> None:
    env = signs(horizon=2, label_key="answer")
    with pytest.raises(UsageError, match="there is no episode yet, call reset first"):
        env.step(0)
    env.reset(seed=1)
    for action in (-1, 3):
        with pytest.raises(UsageError, match=r"action must lie in 0 \.\.\. 2"):
            env.step(action)
    x, _, *ends = env.step(0)
    assert (ends, bool(x.any())) == ([False, False, {}], True)
    assert env.label() in (0, 1, 2)
    x, bit, *ends = env.step(2)
    assert (ends, bool(x.any())) == ([True, False, {}], False)
    assert bit == float(env.label() == 2)
    assert len(env.labels()) == 2
    with pytest.raises(UsageError, match="the episode has ended, call reset first"):
        env.step(0)
    env.reset(seed=1)
    with pytest.raises(UsageError, match="no round of this episode is finished"):
        env.label()
    assert signs(horizon=1).problem.horizon == 1


def test_who_made_an_environment_is_a_version_or_its_source(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = foreign.packages_distributions()  # a look at every installed package: once will do
    monkeypatch.setattr(foreign, "packages_distributions", lambda: packages)

    def made_by(name: str) -> str:
        return str(GymnasiumEnv.identity({"name": name})["made_by"])

    assert made_by("numpy.random:X-v0") == f"numpy {np.__version__}"
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "a_single_module.py").write_text("x = 1\n")
    (tmp_path / "beside.py").write_text("y = 1\n")
    package = tmp_path / "a_whole_package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "part.py").write_text("z = 1\n")
    one, whole = made_by("a_single_module:X-v0"), made_by("a_whole_package:X-v0")
    assert [len(told.rpartition(" ")[2]) for told in (one, whole)] == [16, 16]
    (tmp_path / "beside.py").write_text("y = 2\n")
    assert made_by("a_single_module:X-v0") == one
    (tmp_path / "a_single_module.py").write_text("x = 2\n")
    (package / "inner" / "part.py").write_text("z = 2\n")
    assert made_by("a_single_module:X-v0") != one
    assert made_by("a_whole_package:X-v0") != whole
