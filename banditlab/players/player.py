"""Base class of agents and forecasters, with resolved settings and a state that is saved as plain data.

A constructor argument `x` is stored as the attribute `x`, with "theory" resolved to a number. A player that is built
from `params()` and restored from its saved state continues exactly where the saved player stopped.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from banditlab.errors import UsageError
from banditlab.numerics.limits import Limits
from banditlab.players.saved import (
    Fields,
    Plain,
    at,
    decode,
    encode,
    one_line,
    packed,
    read_whole,
    require,
    restored,
    same,
    unpacked,
    within,
    write_whole,
)
from banditlab.problem import Problem
from banditlab.validation import keyword_only

STATE_FORMAT = 1
"""The number of the file format that `save` writes and `load` reads."""
Size = Annotated[int, Field(lt=2**63)]


class SavedProblem(Plain):
    """The problem in a saved player's header."""

    n_features: Size
    n_classes: Size
    radius: float
    horizon: Size | None


class Header(Plain):
    """The header of a saved player."""

    format: int
    id: str
    version: int
    problem: SavedProblem
    settings: dict[str, Any]
    state: dict[str, Any]


class Player:
    """Base class of agents and forecasters.

    Constructors are `(problem, rng, *, settings)`, with settings convertible to JSON.
    """

    id: ClassVar[str] = ""
    """The name in specs and listings, for instance "banditron"."""
    feedback: ClassVar[str] = "bit"
    """What the player observes after a round: "bit" (right or wrong) or "label"."""
    group: ClassVar[str] = "practice"
    """ "theory" (defaults are a theorem's settings), "practice", "reference" (full information), "baseline" (does not
    learn) or "adapter" (another library's method)."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Modules of another library that the constructor imports."""
    summary: ClassVar[str] = ""
    """One line for listings."""
    reference: ClassVar[str] = ""
    """Authors, title, venue, year, and the algorithm's number there."""
    version: ClassVar[int] = 1
    """Increased whenever the decisions or forecasts of this player change."""
    plays_blocks: bool = False
    """Whether it has a block loop: an agent's `play_block`, a forecaster's `forecast_block`.

    The engine calls only those of the package's classes. It runs a plug-in's kernels in the package's loop, and other
    players round by round.
    """
    sparse: bool = False
    """Whether the block loop accepts sparse contexts; otherwise they are made dense if they are short enough."""
    bound_unit: ClassVar[str] = ""
    """ The unit of the comparator's loss in this player's theorem: "nats", "bits" or a part such as "0.5 bits"; ""
    without a theorem."""
    bound_adversary: ClassVar[str] = "oblivious"
    """ "adaptive" if `bound` and `certificate` hold in environments that depend on earlier actions, for the comparator
    chosen in hindsight. Otherwise "oblivious"; the engine then records neither in such environments."""
    bound_late: int = 0
    """The largest delay of bits, in rounds, with which `bound` and `certificate` hold if all bits arrive."""
    wraps: ClassVar[str | None] = None
    """The setting that names a wrapped player, to which further settings are passed; "forecaster" for the exploration
    reduction.
    """

    state_order: ClassVar[tuple[int, int]] = (1, 1)
    """(a, b) such that with default settings the state has at least :math:`K^a d^b / 2` numbers."""

    state_constants: ClassVar[tuple[str, ...]] = ()
    """Attributes of the state that are determined by problem and settings; a saved state must have the same values."""

    excluded_checks: ClassVar[dict[str, str]] = {}
    """Conformance checks that do not apply to this player, with reasons (see `banditlab.checks`)."""

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        self.problem = problem
        self.rng = rng

    def __repr__(self) -> str:
        """Return one line with the class, the id, K, d and the settings that differ from their defaults."""
        own = {name: (getattr(self, name, p.default), p.default) for name, p in self.own_settings().items()}
        shown = [f"{self.id!r}"] if self.id else []
        if "problem" in vars(self):  # the constructor may have failed before it was set
            shown += [f"K={self.problem.n_classes}", f"d={self.problem.n_features}"]
        shown += [f"{name}={_short(value)}" for name, (value, default) in own.items() if value != default]
        if self.wraps is not None and hasattr(self, "inner"):
            shown.append(f"inner={self.inner!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def own_settings(cls) -> dict[str, inspect.Parameter]:
        """Return the keyword-only parameters of the constructor, by name."""
        return keyword_only(cls)  # type: ignore[arg-type]  # mypy considers a class unhashable

    @classmethod
    def completed(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings, with the default value of every setting that is left out."""
        return {name: p.default for name, p in cls.own_settings().items()} | dict(settings)

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the size of the state in bytes, before the player is built."""
        a, b = cls.state_order
        return 4.0 * problem.n_classes**a * problem.n_features**b

    @classmethod
    def needs_dense(cls, problem: Problem, settings: Mapping[str, Any]) -> bool:
        """Return whether the player requires dense contexts, before it is built.

        A class for which settings determine this overrides the method.
        """
        return cls.plays_blocks and not cls.sparse

    def params(self) -> dict[str, Any]:
        """Return the resolved settings and those of a wrapped player.

        If both have a setting NAME, that of a wrapped forecaster is called `forecaster.NAME`, for example.
        """
        own = {name: getattr(self, name) for name in self.own_settings()}
        if self.wraps is None:
            return own
        inner = self.inner.params()
        return own | {(f"{self.wraps}.{name}" if name in own else name): value for name, value in inner.items()}

    @property
    def inner(self) -> Player:
        """The wrapped player, if `wraps` names one."""
        raise AttributeError(f"{type(self).__name__} wraps no player")

    def bound(self, rounds: int) -> float | None:
        """Return the proved bound after `rounds` rounds minus the comparator's loss, or None.

        The unit is `bound_unit`, that of the comparator's loss. The result is None if no theorem covers the settings.
        """
        return None

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far against all comparators in the ball, or NaN."""
        return math.nan

    def diagnostics(self) -> dict[str, Any]:
        """Return diagnostics by name; a wrapper returns those of the wrapped player.

        Numbers are stored at each checkpoint as `diagnostic.NAME`.
        """
        return {} if self.wraps is None else self.inner.diagnostics()

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return everything that changes from round to round: nested dicts of arrays, numbers, strings and generators.

        Arrays and generators are not copies and change with the player; `copy.deepcopy` makes a snapshot.
        """
        skip = {"problem", *self.own_settings()}
        return {name: value for name, value in vars(self).items() if name not in skip and not callable(value)}

    def limits(self) -> Limits:
        """Return the least and the largest allowed value of numbers in the state, by attribute.

        Named tuples of kernels have their own `limits` (see `banditlab.numerics.limits`).
        """
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that `get_state` of a player with the same settings returned.

        Only the state is replaced, and no method, kernel, setting or problem.

        Raises
        ------
        UsageError
            A name is missing or unknown, an array has another shape or type, another value has another type, or a
            number is outside the `limits` of the player or of a named tuple in its state.
        """
        own = Player.get_state(self)
        expected = set(self.get_state()) if type(self).set_state is Player.set_state else set(state)
        name = self.id or type(self).__name__
        for odd in sorted(set(state) - set(own)):
            raise UsageError(f"the state of {name} must not have {odd!r}")
        for missing in sorted(expected - set(state)):
            raise UsageError(f"the state of {name} lacks {missing!r}")
        mine, state = {name: own[name] for name in state}, dict(state)
        require(mine, state, "state")
        for name, limits in self.limits().items():
            if name.partition(".")[0] in state:
                within(at(state, name), f"state.{name}", *limits)
        for name, value in state.items():
            if name in ("payload_size", "plays_blocks", "sparse", *self.state_constants) and not same(
                mine[name], value
            ):
                raise UsageError(f"state.{name} must be {mine[name]!r} for these settings")
        for name, value in restored(mine, state).items():
            setattr(self, name, value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the player to one npz file, which contains arrays and JSON but no pickle.

        The file is replaced in one step once it is complete. If it cannot be written, a UsageError gives the reason.
        """
        write_whole(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the bytes that `save` writes."""
        return packed(*self.to_data())

    def to_data(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the data that `save` writes: a header in the form of `Header`, and arrays by name."""
        arrays: dict[str, np.ndarray] = {}
        problem = {name: getattr(self.problem, name) for name in SavedProblem.model_fields}
        head = {
            "format": STATE_FORMAT,
            "id": self.id,
            "version": self.version,
            "problem": problem,
            "settings": self.params(),
            "state": encode(self.get_state(), "state", arrays),
        }
        return head, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the player that `save` wrote; it continues exactly where the saved player stopped.

        The file need not be trusted: no code in it is run, and values that are unsafe in compiled code are rejected.

        Raises
        ------
        UsageError
            The file is of another class, format or version, or its state is impossible for a player of this class with
            its problem and settings.
        """
        return cls.from_bytes(read_whole(path), str(path))

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "the bytes given") -> Self:
        """Return the player for the result of `to_bytes`, as `load` does; errors name `source`."""
        try:
            head, arrays = unpacked(data, Header)
        except Exception as error:  # a damaged or crafted zip, array or JSON text may raise any exception
            raise UsageError(f"{source}: not a saved player: {one_line(error)}") from error
        return cls.from_data(head, arrays, len(data), source)

    @classmethod
    def from_data(cls, head: Header, arrays: dict[str, np.ndarray], size: int, source: str) -> Self:
        """Return the player for the result of `to_data`, read from a file of `size` bytes; errors are as for `load`."""
        if head.format != STATE_FORMAT:
            raise UsageError(
                f"{source}: saved in format {head.format}; this version of banditlab reads format {STATE_FORMAT}"
            )
        if (head.id, head.version) != (cls.id, cls.version):
            found = _short((head.id, head.version))
            raise UsageError(f"{source}: has (id, version) {found}, expected {(cls.id, cls.version)}")
        try:
            return cls._built(head, arrays, size)
        except Exception as error:  # settings of a crafted file may raise any exception in a constructor
            raise UsageError(f"{source}: not a saved {cls.id}: {one_line(error)}") from error

    @classmethod
    def _built(cls, head: Header, arrays: dict[str, np.ndarray], size: int) -> Self:
        problem, settings = Problem(**head.problem.model_dump()), head.settings
        # The file contains the state that the constructor allocates, so a small file cannot build a large player.
        least = cls.least_bytes(problem, settings)
        if not least <= SLACK + 4 * size:
            raise ValueError(
                f"a state for its problem and settings has at least {least:.3g} bytes, the file has {size}"
            )
        given = decode(head.state, "state", arrays)
        if not isinstance(given, dict) or isinstance(given, Fields) or arrays:
            raise ValueError("the state is not a dict, or the file has arrays that the state does not use")
        rng = None if given.get("rng") is None else np.random.default_rng(0)
        player = cls(problem, rng, **settings)
        lacking = sorted(set(player.get_state()) - set(given))
        if lacking:
            raise ValueError(f"its state lacks {lacking[0]!r}")
        player.set_state(given)
        return player


SLACK = 2**24
"""The size of a state, in bytes, that is allowed for a file of any size."""


def _short(value: Any) -> str:
    """Return a setting as a short string, with numbers to six digits, and long strings and lists shortened."""
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
