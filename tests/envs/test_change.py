"""`[change]`: labels permuted from given rounds on, beside the rule written out; nothing else moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from banditlab.engine.describe import build_environment, describe_environment, with_change
from banditlab.engine.plan import make_plan
from banditlab.engine.runner import play
from banditlab.engine.spec import Spec
from banditlab.envs.change import Change
from banditlab.errors import UsageError

K, N = 4, 2500
SETTINGS = {"n_features": 3, "n_classes": K}


def stream(change: dict[str, Any], size: int = 700) -> tuple[Any, Any]:
    description = with_change(describe_environment("banditlab/Logistic-v0", SETTINGS, "here"), change)
    env = build_environment(description, N)
    env.reset(seed=3)
    blocks = list(env.unwrapped.blocks(N, size))
    return np.concatenate([X for X, _ in blocks]), np.concatenate([y for _, y in blocks])


X, Y = stream({})


def written_out(labels: str, at: tuple[int, ...], back: bool) -> list[int]:
    found = []
    for t, y in enumerate(Y.tolist()):
        count = sum(t >= a for a in at)
        count = count % 2 if back else count
        for _ in range(count):
            y = (y + 1) % K if labels == "rotate" else {0: 1, 1: 0}.get(y, y)
        found.append(y)
    return found


@pytest.mark.parametrize("labels", ["rotate", "swap"])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("at", [(1000,), (1, 1024, 2049), (2490,)])
def test_labels_are_those_of_the_rule_and_contexts_stay(labels: str, back: bool, at: tuple[int, ...]) -> None:
    contexts, y = stream({"labels": labels, "at": list(at), "back": back})
    np.testing.assert_array_equal(contexts, X)
    np.testing.assert_array_equal(y, written_out(labels, at, back))
    assert (y != Y).any()


def test_blocks_of_any_size_and_steps_show_one_stream() -> None:
    change = {"labels": "rotate", "at": [500, 1500], "over": 800}
    _, y = stream(change)
    for size in (1, 1023, 2500):
        np.testing.assert_array_equal(stream(change, size)[1], y)
    env = build_environment(with_change(describe_environment("banditlab/Logistic-v0", SETTINGS, "here"), change), N)
    env.reset(seed=3)
    for label in y[:1100].tolist():
        env.step(0)
        assert env.unwrapped.label() == label


def test_a_gradual_change_rises_evenly() -> None:
    _, y = stream({"labels": "rotate", "at": [500], "over": 1000})
    changed = y != Y
    assert not changed[:500].any()
    assert changed[1499:].all()
    share = [changed[500 + 250 * i : 750 + 250 * i].mean() for i in range(4)]
    np.testing.assert_allclose(share, [0.125, 0.375, 0.625, 0.875], atol=0.1)


def test_a_change_over_one_round_is_abrupt_and_so_is_the_default() -> None:
    change = {"labels": "rotate", "at": [1000]}
    np.testing.assert_array_equal(stream(change | {"over": 1})[1], stream(change)[1])
    assert Change.of(change) == Change("rotate", (1000,)) == ("rotate", (1000,), 0, False)


def test_bits_move_with_their_labels() -> None:
    rng, y = np.random.default_rng(0), Y[:200]
    for labels in ("rotate", "swap"):
        change = Change.of({"labels": labels, "at": [50, 120]})
        bits = change.applied(np.eye(K, dtype=bool)[y], 0, K, rng)
        np.testing.assert_array_equal(bits.argmax(axis=1), change.applied(y, 0, K, rng))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": 3}, "the key 'labels' is required"),
        ({"labels": "swap"}, "the key 'at' is required"),
        ({"labels": "swop", "at": 3}, "change.labels must be"),
        ({"labels": "swap", "at": 0}, "change.at must be"),
        ({"labels": "swap", "at": [5, 5]}, "must not contain a number twice"),
        ({"labels": "swap", "at": 5, "over": -1}, "change.over must be"),
        ({"labels": "swap", "at": 5, "back": "yes"}, "change.back must be"),
        ({"labels": "swap", "at": 5, "til": 9}, "unknown key 'til'"),
    ],
)
def test_what_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Change.of(change)


def spec(environment: str = "banditlab/Logistic-v0", **change: Any) -> Spec:
    return Spec.model_validate(
        {"rounds": 100, "environment": [{"id": environment}], "agent": [{"id": "uniform"}], "change": change}
    )


def test_a_sweep_plays_it_as_a_grid() -> None:
    plain, *changed = make_plan(spec(labels="swap", grid={"at": [[], 40, [40, 70]]}), "here").runs
    assert plain.run_id == make_plan(spec(), "here").runs[0].run_id  # no change is no other run
    assert len({run.run_id for run in (plain, *changed)}) == len({run.stream_id for run in (plain, *changed)}) == 3
    assert {run.environment_seed() for run in (plain, *changed)} == {plain.environment_seed()}
    mistakes = set()
    for run in (plain, *changed):
        env = run.build_environment()
        mistakes.add(play(env, run.build_player(env), seed=run.environment_seed()).mistakes[-1])
    assert len(mistakes) > 1


@pytest.mark.parametrize(
    ("environment", "at", "message"),
    [
        ("banditlab/Logistic-v0", 100, r"change.at must lie below rounds = 100, got 100"),
        ("banditlab/Adversary-v0", 40, "depend on the actions and cannot be changed"),
    ],
)
def test_a_sweep_that_is_refused(environment: str, at: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_plan(spec(environment, labels="swap", at=at), "here")
