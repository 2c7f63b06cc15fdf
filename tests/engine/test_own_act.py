"""A lab's agent with an `act` of its own: what it answers is read once, and it is shown nothing but the context."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from banditlab.engine.runner import play
from banditlab.envs.synsep import SynSep
from banditlab.errors import PlayerError
from banditlab.players.actor import checked
from banditlab.players.agent import Agent
from banditlab.problem import Decision, Problem

ROUNDS = 40


class Uniform(Agent):
    """Plays a uniform class, by verbs of its own; `seen` is what it was handed."""

    id = "own-act"

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        super().__init__(problem, rng)
        self.p = np.full(problem.n_classes, 1.0 / problem.n_classes)
        self.seen: list[Any] = []

    def act(self, context: Any) -> Decision:
        u = self.rng.random(2)
        self.seen.append(context)
        return self.answer(int(u[1] * len(self.p)))

    def answer(self, action: int) -> Any:
        return Decision(action, self.p)

    def learn(self, context: Any, decision: Any, correct: bool) -> None:
        self.told = decision


class Rewrites(Uniform):
    """Writes a certainty into its own vector, and into the decision it is handed, whenever it learns."""

    def learn(self, context: Any, decision: Any, correct: bool) -> None:
        decision.probabilities[:] = 1.0
        self.p[:] = 1.0
        self.p[:] = 1.0 / len(self.p)


class Spies(np.ndarray):
    """Probabilities that are certain of whatever entry they are asked for, and remember which that was."""

    asked: tuple[Any, ...] = ()

    def __getitem__(self, key: Any) -> Any:
        Spies.asked += (key,)
        return 1.0


class Spy(Uniform):
    def answer(self, action: int) -> Any:
        return Decision(action, self.p.view(Spies))


class Late:
    """No Decision, but it looks like one whose probabilities improve each time they are read."""

    def __init__(self, action: int, K: int) -> None:
        self.action, self.explored, self.payload, self.reads, self.K = action, False, None, 0, K

    @property
    def probabilities(self) -> Any:
        self.reads += 1
        return np.full(self.K, 1.0 / self.K) if self.reads == 1 else np.ones(self.K)


class Improves(Uniform):
    def answer(self, action: int) -> Any:
        return Late(action, len(self.p))


def expected(agent: type[Uniform]) -> float:
    """Return the expected mistakes of a run on the step path."""
    env = SynSep(horizon=ROUNDS)
    player = agent(env.problem, np.random.default_rng(1))
    return play(env, player, seed=3, rounds=ROUNDS, path="steps").expected_mistakes[-1]


@pytest.mark.parametrize("agent", [Rewrites, Spy, Improves])
def test_what_it_does_to_its_answer_changes_nothing_that_is_reported(agent: type[Uniform]) -> None:
    Spies.asked = ()
    assert expected(agent) == expected(Uniform)
    assert Spies.asked == ()  # nor is it shown the label, by being asked for its entry


def test_contexts_are_read_only_and_hold_no_others() -> None:
    env = SynSep(horizon=ROUNDS)
    player = Uniform(env.problem, np.random.default_rng(1))
    play(env, player, seed=3, rounds=ROUNDS, path="steps")
    assert len(player.seen) == ROUNDS
    assert all(x.base is None and not x.flags.writeable for x in player.seen)


def test_a_decision_is_checked_as_before() -> None:
    player = Uniform(Problem(2, 3, 1.0), np.random.default_rng(0))
    with pytest.raises(PlayerError, match="not a distribution"):
        checked(Decision(0, np.ones(3)), 3, player)
    found = checked(Decision(np.int64(1), player.p, None, "mine"), 3, player)  # type: ignore[arg-type]
    assert type(found) is Decision
    assert (found.action, found.explored, found.payload) == (1, None, "mine")
    assert found.probabilities is not player.p
