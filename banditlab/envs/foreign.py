"""Use any Gymnasium environment with one bit of feedback."""

from __future__ import annotations

import hashlib
import importlib.util
import math
import random
import warnings
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from banditlab.envs._adaptive import AdaptiveEnv
from banditlab.envs._base import Floats, Labels, Streams
from banditlab.errors import EnvironmentContractError, UsageError
from banditlab.problem import Problem
from banditlab.validation import at_least

_GLOBAL: Any = np.random  # NumPy's stubs lack the functions that replace its global generator
UNBOUNDED = 1e30
"""A bound of a Box at least this large counts as infinite; many environments use float32's largest number for infinity."""
SLACK = 1e-6
"""The tolerance for observations outside their Box, relative to the bound, for rounding to float32."""


class GymnasiumEnv(AdaptiveEnv):
    r"""Any environment registered with Gymnasium that has finitely many actions, with its reward converted to a bit.

    Problem: each step of the environment is a round. Its observation is the context, its actions are the classes, and
    the bit is the reward: 1 is right, 0 is wrong. Agents of this package learn which action is right in a context and
    do not plan, so they ignore effects of an action on later rewards. When an episode of the environment ends, the next
    one starts with a new seed, until T rounds have passed.

    Labels: if `info` contains the right action after each step, `label_key` names that entry. An action is then right
    if it equals the entry, for any reward, and players that observe labels can also run. Agents never receive `info`.
    Without `label_key` there is no label: mistakes are counted by the bit, log loss and the most frequent class are
    unknown, and there is no comparator (`norm_bounds = []`).

    Contexts: the observation is flattened (Box unchanged, Discrete one-hot, Dict and Tuple concatenated). Each
    coordinate of a Box is divided by its largest bound, or mapped to :math:`x / (1 + |x|)` if it has none. A constant 1
    is appended, and the vector is divided by the largest norm that it can have: :math:`R = 1`.

    Randomness: the environment is seeded. If it uses NumPy's or Python's global generators, they are set
    during its calls to states that are derived from the seed, and restored. Other code's draws do not change.

    Parameters
    ----------
    name
        The name for `gymnasium.make`: "module:Name-v0" if a module must be imported first.
    options
        Further arguments of `gymnasium.make`, by name.
    label_key
        The entry of `info` with the label of the round just finished, or "".
    right_above
        An action is right if its reward exceeds this number. None: rewards are 0 or 1.
    horizon
        T, the number of rounds of an episode. In a sweep, the sweep's `rounds` sets it.

    Raises
    ------
    UsageError
        Gymnasium cannot create the environment, actions are not Discrete, there is only one action, or observations
        cannot be flattened.
    EnvironmentContractError
        During an episode: a reward is not a bit, an observation is outside its space or not finite, or a label is
        missing or not an action.

    References
    ----------
    M. Towers et al. Gymnasium: a standard interface for reinforcement learning environments. NeurIPS 2025 (Datasets and
    Benchmarks).
    """

    id = "banditlab/Gymnasium-v0"
    summary = "any environment of Gymnasium with finitely many actions, its reward read as one bit"
    reference = "Towers et al.: Gymnasium, a standard interface for reinforcement learning environments, NeurIPS 2025"
    foreign: ClassVar[bool] = True

    def __init__(
        self,
        *,
        name: str,
        options: dict[str, Any] | None = None,
        label_key: str = "",
        right_above: float | None = None,
        horizon: int = 10_000,
    ) -> None:
        self.name, self.label_key, self.right_above = name, label_key, right_above
        self.options = dict(options or {})
        self.labelled = bool(label_key)
        self.inside = _made(name, self.options)
        self._first_action, n_actions = _actions(name, self.inside.action_space)
        self._scale = _scale(name, self.inside.observation_space)
        self._norm = math.sqrt(_square_norm(self.inside.observation_space) + 1.0)
        super().__init__(Problem(len(self._scale) + 1, n_actions, 1.0, at_least("horizon", horizon, 1)))

    @classmethod
    def identity(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings and the version of the environment's package."""
        return dict(settings) | {"made_by": _made_by(str(settings["name"]))}

    def step(self, action: int) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        r"""Apply an action; return the context, the bit (1.0 or 0.0), the two end flags, and an empty info.

        Raises
        ------
        UsageError
            Before the first reset, after the last round, or for an action outside :math:`0, \dots, K-1`.
        EnvironmentContractError
            The environment violates its contract; the message says how.
        """
        self._waiting(action)
        with self._draws:
            observation, reward, ended, cut, info = self._inside_step(int(action))
        right = self._right(int(action), reward, info)
        self._round += 1
        if self._round == self.horizon:
            self._pending = None
            return np.zeros(self.problem.n_features), float(right), True, False, {}
        return self._first_context() if ended or cut else self._shown(observation), float(right), False, False, {}

    def label(self) -> int:
        """Return the label of the round just finished, or raise a UsageError if the environment has no labels."""
        self._refuse_without_labels()
        return super().label()

    def labels(self) -> Labels:
        """Return the labels (T,) of the whole episode, or raise a UsageError if the environment has no labels."""
        self._refuse_without_labels()
        return super().labels()

    def peek(self, rounds: int, seed: int) -> list[tuple[int, float | None, dict[str, Any]]]:
        """Return (action, reward, info) of each step of the inner environment with uniform actions.

        A reward that is not a finite number is None. Actions, and labels in `info`, count from 0. Used in checks only.
        """
        self.reset(seed=seed)
        rng, found = np.random.default_rng(seed), []
        for _ in range(rounds):
            action = int(rng.integers(self.problem.n_classes))
            with self._draws:
                _, reward, ended, cut, info = self._inside_step(action)
            numbers = {str(name): _as_number(value) for name, value in info.items()}
            shifted = {name: None if value is None else value - self._first_action for name, value in numbers.items()}
            found.append((action, _as_number(reward), shifted))
            if ended or cut:
                self._first_context()
        return found

    def close(self) -> None:
        """Close the inner environment."""
        self.inside.close()

    def _begin(self, streams: Streams) -> None:
        self._seeds = streams.contexts
        self._draws = _GlobalDraws(int(streams.noise.integers(2**32)))
        if self.labelled:
            self._labels = np.empty(self.horizon, dtype=np.int64)

    def _take(self) -> tuple[Floats, Any]:  # the label is known only after the action
        return self._first_context(), None

    def _next(self) -> tuple[Floats, int]:
        raise UsageError(f"{self.name}: use step; blocks are not available")

    def _played(self, context: Floats, action: int, label: int) -> None:
        """Do nothing, because the inner environment has already received the action."""

    def _first_context(self) -> Floats:
        with self._draws:
            observation = self._inside_reset(int(self._seeds.integers(2**31)))
        return self._shown(observation)

    def _inside_step(self, action: int) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Return the five values that the inner environment returns for an action, as in Gymnasium."""
        wanted = "step must return (observation, reward, terminated, truncated, info)"
        try:
            answer = self.inside.step(self._first_action + action)
        except ValueError as error:  # Gymnasium's own wrappers also unpack the result
            if "unpack" not in str(error):
                raise
            raise EnvironmentContractError(
                f"{self.name}: {wanted}; Gymnasium cannot read what it returned: {error}"
            ) from error
        if not isinstance(answer, tuple) or len(answer) != 5:
            raise EnvironmentContractError(f"{self.name}: {wanted}, got {_told(answer)}")
        if not isinstance(answer[4], dict):
            raise EnvironmentContractError(f"{self.name}: {wanted}, info a dict, got {answer[4]!r}")
        return answer

    def _inside_reset(self, seed: int) -> Any:
        """Return the first observation of an episode of the inner environment."""
        wanted = "reset must take (*, seed=None, options=None) and return (observation, info)"
        try:
            answer: Any = self.inside.reset(seed=seed)
        except (TypeError, ValueError) as error:
            if "'seed'" not in str(error) and "unpack" not in str(error):
                raise
            raise EnvironmentContractError(f"{self.name}: {wanted}: {error}") from error
        if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], dict):
            raise EnvironmentContractError(f"{self.name}: {wanted}, got {_told(answer)}")
        return answer[0]

    def _shown(self, observation: Any) -> Floats:
        """Return an observation as a context (d,) of norm at most 1."""
        try:
            flat = np.asarray(spaces.flatten(self.inside.observation_space, observation), dtype=np.float64)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            raise EnvironmentContractError(f"{self.name}: an observation is outside its space ({error})") from error
        if flat.shape != self._scale.shape or not np.isfinite(flat).all():
            said = "not finite" if flat.shape == self._scale.shape else f"of shape {flat.shape} when flattened"
            raise EnvironmentContractError(f"{self.name}: the observation before round {self._round + 1} is {said}")
        bounded = np.isfinite(self._scale)
        scaled = np.where(bounded, flat / self._scale, flat / (1.0 + np.abs(flat)))
        if np.abs(scaled).max(initial=0.0) > 1.0 + SLACK:
            raise EnvironmentContractError(
                f"{self.name}: the observation before round {self._round + 1} lies outside its observation space"
            )
        return np.append(np.clip(scaled, -1.0, 1.0), 1.0) / self._norm

    def _right(self, action: int, reward: Any, info: dict[str, Any]) -> bool:
        if self.labelled:
            label = self._label_in(info)
            self._labels[self._round] = label
            return action == label
        value = _as_number(reward)
        if value is not None and self.right_above is not None:
            return value > self.right_above
        if value not in (0.0, 1.0):
            raise EnvironmentContractError(
                f"{self.name}: the reward of round {self._round + 1} is {reward!r}, which is neither 0 nor 1; set right_above "
                "to a number; an action is then right if its reward is above it"
                if self.right_above is None and value is not None
                else f"{self.name}: the reward of round {self._round + 1} is {reward!r}, which is not a number"
            )
        return value == 1.0

    def _label_in(self, info: dict[str, Any]) -> int:
        K = self.problem.n_classes
        if self.label_key not in info:
            known = ", ".join(map(repr, info)) or "nothing"
            raise EnvironmentContractError(
                f"{self.name}: info has no {self.label_key!r} after round {self._round + 1} (it has {known}); check label_key"
            )
        label = _as_number(info[self.label_key])
        if label is None or label != int(label) or not 0 <= label - self._first_action < K:
            raise EnvironmentContractError(
                f"{self.name}: info[{self.label_key!r}] after round {self._round + 1} is {info[self.label_key]!r}, which is "
                f"not one of the {K} actions"
            )
        return int(label) - self._first_action

    def _refuse_without_labels(self) -> None:
        if not self.labelled:
            raise UsageError(f"{self.name} has no labels: label_key is empty")


class _GlobalDraws:
    """A context manager that sets the global generators to states that belong to the environment, and restores them.

    Without it, an environment that calls `np.random.randint` would not be reproducible and would change the draws of
    other code.
    """

    def __init__(self, seed: int) -> None:
        self._numpy, self._python = np.random.MT19937(seed), random.Random(seed).getstate()

    def __enter__(self) -> None:
        self._others = _GLOBAL.get_bit_generator(), random.getstate()
        _GLOBAL.set_bit_generator(self._numpy)
        random.setstate(self._python)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._python = random.getstate()
        _GLOBAL.set_bit_generator(self._others[0])
        random.setstate(self._others[1])


def _made(name: str, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """Return Gymnasium's environment of this name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hide notices of later versions and of rendering
            return gymnasium.make(name, disable_env_checker=True, **options)
    except ModuleNotFoundError as error:
        missing = error.name or name.partition(":")[0]
        raise UsageError(f"{name}: there is no module {missing!r}; install the package that contains it") from error
    except Exception as error:  # a foreign constructor may raise anything
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"{name}: Gymnasium cannot create it: {told}") from error


def _actions(name: str, space: spaces.Space[Any]) -> tuple[int, int]:
    """Return the first action and the number of actions."""
    if not isinstance(space, spaces.Discrete):
        raise UsageError(f"{name}: actions are {space}; they must be finitely many, Discrete(K)")
    if space.n < 2:
        raise UsageError(f"{name}: there is one action only; at least 2 are needed")
    return int(space.start), int(space.n)


def _scale(name: str, space: spaces.Space[Any]) -> NDArray[np.float64]:
    """Return the largest bound of each coordinate of a flattened observation, or inf if it has none."""
    try:
        flat = spaces.flatten_space(space)
    except NotImplementedError:
        flat = None
    if not isinstance(flat, spaces.Box):
        raise UsageError(
            f"{name}: observations are {space}, which cannot be flattened to numbers (Box, Discrete, Dict, ...)"
        )
    bound = np.maximum(np.abs(flat.low.astype(np.float64)), np.abs(flat.high.astype(np.float64))).reshape(-1)
    return np.where(bound >= UNBOUNDED, np.inf, np.where(bound > 0.0, bound, 1.0))


def _square_norm(space: spaces.Space[Any]) -> float:
    """Return the largest squared norm of a flattened observation in [-1, 1]^n; a one-hot part has norm 1."""
    if isinstance(space, spaces.Discrete):
        return 1.0
    if isinstance(space, spaces.MultiDiscrete):
        return float(np.prod(space.shape))
    if isinstance(space, spaces.Tuple):
        return sum(map(_square_norm, space.spaces))
    if isinstance(space, spaces.Dict):
        return sum(map(_square_norm, space.spaces.values()))
    return float(np.prod(cast("tuple[int, ...]", spaces.flatten_space(space).shape)))


def _told(answer: Any) -> str:
    """Return a short description of a returned value."""
    return f"{len(answer)} values" if isinstance(answer, tuple) else f"a {type(answer).__name__}"


def _as_number(value: Any) -> float | None:
    """Return a reward or a label as a finite number, or None if it is not one. Strings are not numbers."""
    try:
        told = np.asarray(value)
        number = float(told.reshape(())) if told.dtype.kind in "biuf" else math.nan
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _made_by(name: str) -> str:
    """Return the name and version of an environment's package; for a module outside packages, its name and content hash."""
    module = name.partition(":")[0].partition(".")[0] if ":" in name else "gymnasium"
    for package in packages_distributions().get(module, []):
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        return f"{module}, not found"
    home = Path(spec.origin)
    files = sorted(home.parent.rglob("*.py")) if home.name == "__init__.py" else [home]
    return f"{module} {hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()[:16]}"
