"""The small problem on which players are checked, and the loops that the checks use."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.checks._core import declared_exclusions, fail
from banditlab.errors import IncompatibleError
from banditlab.numerics.read_only import read_only
from banditlab.players.label_agent import LabelAgent
from banditlab.players.player import Player
from banditlab.problem import Decision, Problem

Floats = NDArray[np.float64]
Factory = Callable[..., Player]
Checks = tuple[Callable[..., None], ...]

ROUNDS = 60
"""Rounds of an ordinary check."""
LONG = 400
"""Rounds of the check on memory, and the horizon of the problem."""
ENDURANCE = 1000
"""Rounds in which every result is checked."""


@dataclass(frozen=True)
class PlayerProbe:
    """A factory of players, with a problem that they support and a stream: read-only contexts (LONG, d) and labels
    (LONG,).
    """

    subject: Factory
    problem: Problem
    contexts: Floats
    labels: NDArray[np.int64]
    name: str
    note: str
    exclusions: dict[str, str]

    def make(self, seed: int = 1) -> Any:
        """Return a new player."""
        return self.subject(self.problem, np.random.default_rng(seed))

    @property
    def cls(self) -> Any:
        return self.subject if isinstance(self.subject, type) else type(self.make())


def player_probe(subject: Factory, checks_of: Callable[[type[Player]], Checks]) -> PlayerProbe:
    """Return the probe for a class or factory `(problem, rng) -> player`, with K = 3, or with K = 2 if the player does
    not support 3.

    `checks_of(class)` returns the checks that the class may exclude.

    Raises
    ------
    CheckFailed
        `excluded_checks` is malformed.
    IncompatibleError
        The player supports neither K = 3 nor K = 2 with these features, radius and horizon.
    """
    note = ""
    problem = Problem(n_features=5, n_classes=3, radius=2.0, horizon=LONG)
    try:
        player = subject(problem, np.random.default_rng(0))
    except IncompatibleError as error:
        note = f"probed with K = 2: {error}"
        problem = Problem(n_features=5, n_classes=2, radius=2.0, horizon=LONG)
        player = subject(problem, np.random.default_rng(0))
    if not isinstance(player, Player):
        fail(f"the factory returned a {type(player).__name__}: it must return an Agent or a Forecaster")
    if "problem" not in vars(player):
        fail("it has no problem: the constructor must call super().__init__(problem, rng) first")
    contexts, labels = planted_stream(problem)
    name = player.id or type(player).__name__
    checks = checks_of(type(player))
    exclusions = _inherited_exclusions(player, checks) | declared_exclusions(type(player), checks)
    return PlayerProbe(subject, problem, contexts, labels, name, note, exclusions)


def _inherited_exclusions(player: Player, checks: Checks) -> dict[str, str]:
    """Return the excluded checks of a wrapped player, which its wrapper excludes as well."""
    if player.wraps is None:
        return {}
    known, inner = {check.__name__ for check in checks}, player.inner
    own = {name: f"{inner.id} {why}" for name, why in inner.excluded_checks.items() if name in known}
    return _inherited_exclusions(inner, checks) | own


def planted_stream(problem: Problem, rounds: int = LONG) -> tuple[Floats, NDArray[np.int64]]:
    """Return contexts of norm at most R with an intercept, and labels drawn from a logistic model."""
    rng = np.random.default_rng(20240229)
    d, K = problem.n_features, problem.n_classes
    X = rng.standard_normal((rounds, d))
    X[:, -1] = 1.0
    X *= problem.radius / np.linalg.norm(X, axis=1).max()
    scores = X @ (3.0 * rng.standard_normal((K, d))).T
    labels = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    X.flags.writeable = False
    return X, labels


def tell(agent: Any, context: Floats, decision: Decision, label: int) -> None:
    """Update an agent with the bit of a round, or a label agent with the label."""
    agent.learn(context, decision, int(label) if isinstance(agent, LabelAgent) else bool(decision.action == label))


def play(agent: Any, contexts: Floats, labels: Iterable[int]) -> list[Decision]:
    """Run the bandit loop: an agent observes only whether each action was right, and a label agent observes the
    label.
    """
    decisions = []
    for x, y in zip(contexts, labels, strict=True):
        decision = agent.act(read_only(x))
        if not isinstance(decision, Decision):
            fail(f"act returned a {type(decision).__name__}: it must return a Decision(action, probabilities)")
        # A copy, because an agent may overwrite its arrays later.
        decisions.append(decision._replace(probabilities=np.array(decision.probabilities)))
        tell(agent, read_only(x), decision, y)
    return decisions


def forecast(forecaster: Any, contexts: Floats, labels: Iterable[int]) -> Floats:
    """In each round, call predict, then update with the label; return the logits (n, K)."""
    logits = []
    for x, y in zip(contexts, labels, strict=True):
        logits.append(np.array(forecaster.predict(read_only(x)), dtype=np.float64))
        forecaster.update(read_only(x), int(y))
    return np.stack(logits)


def run(player: Any, contexts: Floats, labels: Any) -> list[tuple[Any, Floats]]:
    """Run an agent or a forecaster. Return (action, probabilities) or (None, logits) for each round."""
    if hasattr(player, "act"):
        return [(decision.action, decision.probabilities) for decision in play(player, contexts, labels)]
    return [(None, logits) for logits in forecast(player, contexts, labels)]


def first_difference(one: Iterable[tuple[Any, Floats]], other: Iterable[tuple[Any, Floats]]) -> int | None:
    """Return the first round in which two runs differ at all, or None."""
    for t, ((a, p), (b, q)) in enumerate(zip(one, other, strict=True)):
        if a != b or not np.array_equal(p, q):
            return t
    return None


def clone(player: Any) -> Any:
    """Return an independent copy that continues identically."""
    return pickle.loads(pickle.dumps(player))
