"""Base classes of adapters, which map the methods act and learn to those of another library."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import BanditlabError, PlayerError
from banditlab.numerics.draws import draw
from banditlab.players.agent import Floats, RoundAgent
from banditlab.players.saved import restored, within
from banditlab.problem import Decision, Problem
from banditlab.validation import at_least


class PeerAgent(RoundAgent):
    """An agent of another library, which receives only the bit.

    A subclass defines `_distribution(x)` and `_update(x, action, probability, correct)`. Every round calls these two
    methods, whether it is run alone or in a block.
    """

    group = "adapter"
    explores = False
    plays_blocks = True

    @abstractmethod
    def _distribution(self, x: Floats) -> Floats:
        """Return the library's probabilities at x (d,) as a new array (K,) that sums to 1 within 1e-9."""

    @abstractmethod
    def _update(self, x: Floats, action: int, probability: float, correct: bool) -> None:
        """Update the library with the outcome of `action`, played at x (d,) with `probability`."""

    def _choose(self, p: Floats, u: Floats) -> tuple[int, bool | None]:
        """Return the action, drawn from p with the uniform random numbers u (coin flip, draw), and whether the agent
        explored (None: unknown).
        """
        return int(draw(p, u[1])), None

    def _decide(self, view: Floats, u: Floats) -> Decision:
        with self._named():
            p = self._distribution(view)
        action, explored = self._choose(p, u)
        return Decision(action, p, explored, np.empty(0))

    def _receive(self, view: Floats, decision: Decision, outcome: bool) -> None:
        with self._named():
            self._update(view, decision.action, float(decision.probabilities[decision.action]), outcome)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Convert an error of the library into a one-line error that names the agent."""
        try:
            yield
        except BanditlabError:
            raise
        except Exception as error:
            raise PlayerError(
                f"{self.id}: the library raised {type(error).__name__}: {' '.join(str(error).split())}"
            ) from error


class BatchPeerAgent(PeerAgent):
    """An adapter that updates its library with `batch` rounds at a time, through a subclass's `_pass_batch`.

    Each decision uses the full batches before it.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, batch: int) -> None:
        super().__init__(problem, rng)
        self.batch = at_least("batch", batch, 1)
        # the rounds that wait for their batch to be full
        self._contexts = np.zeros((self.batch, problem.n_features))
        self._actions = np.zeros(self.batch, dtype=np.int64)
        self._rewards = np.zeros(self.batch)
        self._waiting = 0

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the size of the state in bytes: the pending rounds and a vector per class."""
        batch = settings.get("batch", cls.own_settings()["batch"].default)
        return super().least_bytes(problem, settings) + 8.0 * batch * problem.n_features

    @abstractmethod
    def _pass_batch(self, contexts: Floats, actions: NDArray[np.int64], rewards: Floats) -> None:
        """Update the library with contexts (batch, d), actions (batch,) and bits (batch,)."""

    def _update(self, x: Floats, action: int, probability: float, correct: bool) -> None:
        i = self._waiting
        self._contexts[i], self._actions[i], self._rewards[i] = x, action, float(correct)
        self._waiting += 1
        if self._waiting == self.batch:
            self._pass_batch(self._contexts, self._actions, self._rewards)
            self._waiting = 0

    def _get_waiting(self) -> dict[str, Any]:
        """Return the pending rounds."""
        arrays = {"contexts": self._contexts, "actions": self._actions, "rewards": self._rewards}
        return {**arrays, "rounds": self._waiting}

    def _set_waiting(self, waiting: dict[str, Any]) -> None:
        """Restore the pending rounds that `_get_waiting` returned."""
        waiting = restored(self._get_waiting(), waiting, "state.waiting")
        within(waiting["actions"], "state.waiting.actions", 0, self.problem.n_classes - 1)
        within(waiting["rounds"], "state.waiting.rounds", 0, self.batch - 1)
        self._contexts, self._actions, self._rewards = (waiting[name] for name in ("contexts", "actions", "rewards"))
        self._waiting = waiting["rounds"]


class PickledBySettings:
    """Pickle an adapter as its settings, its problem and the result of `get_state`, because the library's objects cannot
    be pickled.

    Unpickling builds a new adapter and restores the state.
    """

    def __getstate__(self: Any) -> dict[str, Any]:
        return {"problem": self.problem, "params": self.params(), "state": self.get_state()}

    def __setstate__(self: Any, pickled: dict[str, Any]) -> None:
        self.__init__(pickled["problem"], np.random.default_rng(0), **pickled["params"])
        self.set_state(pickled["state"])


def one_hot(k: int, K: int) -> Floats:
    """Return the unit vector :math:`e_k` of length K."""
    p = np.zeros(K)
    p[k] = 1.0
    return p


def internal_seed(rng: np.random.Generator) -> int:
    """Return a seed for a library's generator. It is drawn from a child of `rng`, so `rng` itself does not change."""
    [child] = rng.spawn(1)
    return int(child.integers(2**31 - 1))
