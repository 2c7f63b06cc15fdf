"""The base class of environments: the Gymnasium interface, the hidden label, settings and identity."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, NoReturn

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from banditlab.errors import EnvironmentContractError, UsageError
from banditlab.problem import Problem
from banditlab.validation import keyword_only

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Truth = Labels | NDArray[np.bool_]
"""Which actions are right in n rounds: labels (n,), or a bit per action, (n, K)."""


class Streams(NamedTuple):
    """The child generators of one episode, one per purpose, so changing the draws of one generator does not change
    those of any other.
    """

    contexts: np.random.Generator
    """The contexts, or the order of a data set's rows."""
    labels: np.random.Generator
    """The labels given the contexts."""
    noise: np.random.Generator
    """Label noise."""
    model: np.random.Generator
    """Parameters drawn once per episode: weights, prototypes, cluster centres."""


class BanditEnv(gymnasium.Env[Floats, int], ABC):
    """Base of environments, which return a context, hide the label, and return reward 1.0 for a right action, else 0.0.

    Derive from `StreamEnv` (contexts and labels do not depend on actions) or `AdaptiveEnv` (they may depend on earlier
    actions), not from this class. A constructor's arguments are keyword-only and convertible to JSON. One of them is
    `horizon`, the number of rounds of an episode. Each resolved setting is an attribute of the same name. (The
    attribute of a setting called `label` is `label_column`, because `label` is a method.) `params()` returns them all.

    Observation: Box (d,) float64 in [-R, R]; action: Discrete(K). `info` is always empty. The observation returned with
    `terminated` belongs to no round and is a vector of zeros.
    """

    id: ClassVar[str] = ""
    """The name in specs and listings, for instance "banditlab/Digits-v0"."""
    summary: ClassVar[str] = ""
    """One line for listings."""
    reference: ClassVar[str] = ""
    """Authors, title, venue, year."""
    version: ClassVar[int] = 1
    """Increased whenever the contexts or labels of this environment change."""
    oblivious: ClassVar[bool]
    """Whether contexts and labels are independent of the actions."""
    path_settings: ClassVar[tuple[str, ...]] = ()
    """Names of the settings that are paths of input files, which are sent to the workers of a cluster."""
    labelled: bool = True
    """Whether every round has a label, hidden from agents. Without labels, only mistakes are measured, by the bit."""
    several_right: bool = False
    """Whether any number of actions may be right in a round: blocks then have bits, (n, K) bool, instead of labels."""
    foreign: ClassVar[bool] = False
    """Whether the environment runs code from outside this package; a sweep then runs it in separate processes."""
    sparse: bool = False
    """Whether `blocks` yields contexts in CSR form; `step` always returns a dense vector."""

    metadata: dict[str, Any] = {"render_modes": []}

    problem: Problem
    """d, K, R and the horizon."""
    classes: list[Any] | None = None
    r"""The names of the classes :math:`0, \dots, K-1`, or None if they have no names."""

    def __init__(self, problem: Problem) -> None:
        if problem.horizon is None:
            raise UsageError(f"{type(self).__name__}: an environment's problem must have a horizon, got None")
        self.problem = problem
        self.horizon = problem.horizon
        bound = problem.radius
        self.observation_space = spaces.Box(-bound, bound, shape=(problem.n_features,), dtype=np.float64)
        self.action_space = spaces.Discrete(problem.n_classes)  # type: ignore[assignment]
        self._entropy: int | None = None
        self._round = 0  # rounds finished
        self.labelled = self.labelled and not self.several_right
        self._pending: tuple[Floats, Any] | None = None  # the round whose action is pending
        self._labels: Any = None  # of the rounds finished, once there is one

    @classmethod
    def own_settings(cls) -> dict[str, inspect.Parameter]:
        """Return the constructor's keyword-only parameters by name, without `horizon`, which a run's rounds determine."""
        return {name: p for name, p in keyword_only(cls).items() if name != "horizon"}

    def params(self) -> dict[str, Any]:
        """Return the resolved settings."""
        return {name: getattr(self, "label_column" if name == "label" else name) for name in self.own_settings()}

    @property
    def row_bytes(self) -> int:
        """The memory of one round's context in a block, in bytes, which determines whether a stream is stored."""
        return 8 * self.problem.n_features

    @classmethod
    def identity(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings that are part of a run's identity, by default all of them.

        Override it for a setting that is a location. `Table` replaces its path by the file's content hash, so an
        edited file is another environment and a moved file is the same one. The result must be convertible to JSON.
        """
        return dict(settings)

    @abstractmethod
    def _begin(self, streams: Streams) -> None:
        """Start an episode."""

    @abstractmethod
    def _next(self) -> tuple[Floats, Any]:
        """Return the next round's context (d,), an array that is not modified later, and the round's label or bits."""

    def _played(self, context: Floats, action: int, label: int) -> None:
        """Record a finished round (adaptive environments)."""

    # -------------------------------------------------------------------------------------------------------- Gymnasium

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Start an episode and return its first context and an empty info."""
        super().reset(seed=seed)
        self._entropy = int(self.np_random.integers(2**63))
        self._round = 0
        self._begin(self._streams())
        self._pending = self._take()
        return self._pending[0].copy(), {}

    def step(self, action: int) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        r"""Return the bit of the action as the reward, and the next context.

        Raises
        ------
        UsageError
            Before the first reset, after the episode has ended, or for an action outside :math:`0, \dots, K-1`.
        EnvironmentContractError
            The next round's label lies outside :math:`0, \dots, K-1`.
        """
        context, label = self._waiting(action)
        reward = 1.0 if (label[action] if self.several_right else action == label) else 0.0
        if self._round == 0:  # not in reset, because an episode that is read as blocks stores no labels
            self._labels = np.empty(
                (self.horizon, *np.shape(label)), dtype=np.bool_ if self.several_right else np.int64
            )
        self._labels[self._round] = label
        self._round += 1
        self._played(context, int(action), label)
        terminated = self._round == self.horizon
        self._pending = None if terminated else self._take()
        shown = np.zeros(self.problem.n_features) if self._pending is None else self._pending[0].copy()
        return shown, reward, terminated, False, {}

    def _waiting(self, action: int) -> tuple[Floats, Any]:
        """Return the round whose action is pending, or raise a UsageError."""
        if self._pending is None:
            state = "the episode has ended" if self._entropy is not None else "there is no episode yet"
            raise UsageError(f"{type(self).__name__}.step: {state}, call reset first")
        if not 0 <= action < self.problem.n_classes:
            raise UsageError(f"action must lie in 0 ... {self.problem.n_classes - 1}, got {action}")
        return self._pending

    def _take(self) -> tuple[Floats, Any]:
        """Return the next round after checking its label; with an invalid label every action would be a mistake."""
        context, label = self._next()
        if not self.several_right and not 0 <= label < self.problem.n_classes:
            self._refuse_label(label)
        return context, label

    def _refuse_label(self, label: int) -> NoReturn:
        K = self.problem.n_classes
        raise EnvironmentContractError(
            f"{type(self).__name__} returned the label {label}: labels must lie in 0 ... {K - 1}"
        )

    def label(self) -> int:
        """Return the label of the round just finished, for the runner; no player observes it.

        Raises
        ------
        UsageError
            No round of this episode is finished, or several actions may be right.
        """
        self._refuse_several("label")
        return int(self._finished("label"))

    def right(self) -> NDArray[np.bool_]:
        """Return which actions were right in the round just finished, (K,), for the runner; no player observes it.

        Raises
        ------
        UsageError
            No round of this episode is finished.
        """
        truth = self._finished("right")
        return np.array(truth) if self.several_right else np.arange(self.problem.n_classes) == truth

    def _finished(self, method: str) -> Any:
        if self._round == 0:
            raise UsageError(f"{type(self).__name__}.{method}: no round of this episode is finished yet")
        return self._labels[self._round - 1]

    def _refuse_several(self, method: str) -> None:
        if self.several_right:
            raise UsageError(
                f"{type(self).__name__}.{method}: several actions may be right, so there are no labels; use right"
            )

    def labels(self) -> Labels:
        """Return the labels (T,) of the whole episode.

        Raises
        ------
        UsageError
            The episode has not ended, or several actions may be right.
        """
        self._refuse_several("labels")
        if self._entropy is None or self._round < self.horizon:
            raise UsageError(
                f"{type(self).__name__}.labels: the episode has not ended ({self._round} of {self.horizon} rounds)"
            )
        return np.array(self._labels)

    def _streams(self) -> Streams:
        """Return the episode's child generators, each in its initial state."""
        if self._entropy is None:
            raise UsageError(f"{type(self).__name__}: there is no episode yet; call reset first")
        return Streams(*map(self._child, range(len(Streams._fields))))

    def _child(self, i: int) -> np.random.Generator:
        """Return the episode's child generator i in its initial state."""
        return np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=(i,)))
