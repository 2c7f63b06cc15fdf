"""The base class of boosters: N weak learners as one label agent."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.trees.forest import Forest, Grove
from banditlab.boosting.weak.tuning import Tuning
from banditlab.boosting.weak.weak_learner import WeakLearner
from banditlab.errors import UsageError, nearest
from banditlab.numerics.draws import draw
from banditlab.numerics.limits import COUNT, Limits
from banditlab.players.agent import Floats, Trace
from banditlab.players.label_agent import RoundLabelAgent
from banditlab.players.saved import same
from banditlab.problem import Decision, Problem
from banditlab.registry import registry
from banditlab.validation import at_least


class Booster(RoundLabelAgent):
    """A label agent that combines the predictions of N weak learners.

    A subclass implements `_respond(view)` and `_absorb(view, payload, label)`, where `view` is the form of a context
    that its weak learners read. Its constructor accepts `n_learners`, `weak_learner` and `**weak_settings`, the
    settings of every learner. It passes them to the constructor of this class, together with `tuning_seed` if the
    learners' settings are drawn at random.
    """

    kind: ClassVar[str] = "boosters"
    wraps = "weak_learner"
    expected_kind = "conditional"  # given how learners and experts broke ties
    plays_blocks = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        n_learners: int,
        weak_learner: str,
        weak_settings: dict[str, Any],
        tuning_seed: int | None = None,
    ) -> None:
        super().__init__(problem, rng)
        self.n_learners = at_least("n_learners", n_learners, 1)
        self.weak_learner = weak_learner
        cls = registry().load("weak_learners", weak_learner)
        self._written = weak_learner_settings(type(self), cls, weak_settings)
        self._tuning = Tuning(tuning_seed, self.n_learners, cls, self._written)
        self.tuning_seed = self._tuning.seed
        *streams, self._ties = self.rng.spawn(self.n_learners + 1)
        self._make(cls, streams)
        self._grove = Grove()

    def _forest(self) -> Forest | None:
        """Return the table of learners for compiled loops, or None if they cannot use one (see `Grove.forest`)."""
        return self._grove.forest(self.learners, self._ties)

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the size of the state in bytes: a generator and some numbers per learner."""
        given = cls.completed(settings)
        return super().least_bytes(problem, settings) + 256.0 * given["n_learners"]

    def limits(self) -> Limits:
        """Return the allowed ranges of the counts."""
        return {"rounds": COUNT, "_seed": COUNT} if hasattr(self, "rounds") else {"_seed": COUNT}

    def get_state(self) -> dict[str, Any]:
        """Return the state, all that changes from round to round: nested dicts of arrays, numbers, strings and generators."""
        state = super().get_state()
        del state["_grove"], state["_tuning"]  # addresses, and what the settings determine
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state` of an object with the same settings."""
        written = state["_written"]  # the settings that the caller gave
        if not isinstance(written, dict) or not all(same(self._written.get(name), v) for name, v in written.items()):
            raise UsageError(f"state._written must be a subset of the settings {self._written}")
        super().set_state({name: value for name, value in state.items() if name != "_written"})
        self._written = dict(written)

    def _make(self, cls: type[WeakLearner], streams: Sequence[np.random.Generator]) -> None:
        """Create `learners`, the N weak learners with the given generators."""
        self.learners: list[WeakLearner] = [
            self._learner(cls, stream, self._written | drawn)
            for stream, drawn in zip(streams, self._tuning.settings, strict=True)
        ]

    def _learner(self, cls: type[WeakLearner], stream: np.random.Generator, settings: dict[str, Any]) -> WeakLearner:
        """Return a learner that consists of one or more weak learners of class `cls` with these settings."""
        return cls(self.problem, stream, **settings)

    @property
    def inner(self) -> WeakLearner:
        """The first weak learner."""
        return self.learners[0]

    def params(self) -> dict[str, Any]:
        """Return the resolved settings, including those of the weak learners; settings that each learner draws are
        "random".
        """
        own = {name: getattr(self, name) for name in self.own_settings()}
        weak = self.inner.params() | {k: v for k, v in self.inner.completed(self._written).items() if v == "random"}
        return own | {(f"weak_learner.{name}" if name in own else name): value for name, value in weak.items()}

    def diagnostics(self) -> dict[str, Any]:
        """Return the booster's statistics of its learners, by name; learner 1 is the first."""
        return {}

    # ----------------------------------------------------------------------------------------------- prediction and update

    @abstractmethod
    def _respond(self, view: Any) -> tuple[Floats, Floats]:
        """Return two new arrays: the distribution (K,) of the action, and the data for the update (payload_size,)."""

    @abstractmethod
    def _absorb(self, view: Any, payload: Floats, label: int) -> None:
        """Update with the label of the round that returned `payload`."""

    def view(self, x: Floats) -> Any:
        """Return the form of a context (d,) that the weak learners read."""
        return self.inner.view(x)

    def peek(self, label: int) -> None:
        """Pass the label of the next context to simulated learners, which observe it before they predict."""
        for learner in self.learners:
            if learner.needs_label:
                learner.peek(label)

    def _decide(self, view: Any, u: Floats) -> Decision:
        p, payload = self._respond(view)
        return Decision(int(draw(p, u[1])), p, None, payload)

    def _receive(self, view: Any, decision: Decision, outcome: int) -> None:
        self._absorb(view, decision.payload, outcome)

    def _play_round(self, t: int, x: Floats, y: NDArray[Any], u: Floats, trace: Trace) -> None:
        """Run round t of a block. Learners that observe the label before they predict receive it here."""
        self.peek(int(y[t]))
        super()._play_round(t, x, y, u, trace)


def weak_learner_settings(outer: type[Any], inner: type[WeakLearner], given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings as a dict keyed by their names in the weak learner; raise a UsageError for an unknown name."""
    known, settings = inner.own_settings(), {}
    for key, value in given.items():
        name = key.removeprefix("weak_learner.")
        if name not in known and inner.wraps is None:
            raise UsageError(
                f"{outer.id} of {inner.id} has no setting {key!r}{nearest(name, [*outer.own_settings(), *known])}"
            )
        if name in settings:
            raise UsageError(f"the weak learner's setting {name!r} is given twice, also as {key!r}")
        settings[name] = value
    missing = [n for n, p in known.items() if p.default is inspect.Parameter.empty and n not in settings]
    if missing:
        raise UsageError(f"{outer.id} of {inner.id} needs the setting {missing[0]!r}")
    return settings


def uniform_best(scores: Floats) -> Floats:
    """Return the uniform distribution over the largest entries of scores (K,)."""
    best = scores == scores.max()
    return best / best.sum()
