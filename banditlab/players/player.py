"""What agents and forecasters share: resolved settings, and a state that is saved without pickle.

A constructor argument `x` is available afterwards as the attribute `x`, resolved ("theory" has become a number). A
player built again from `params()` and given its saved state continues as if it had never stopped.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from banditlab.errors import UsageError
from banditlab.problem import Problem

STATE_FORMAT = 5
"""2: inverses packed, running norms; 3: of per-class models in one piece; 4: weights by rows; 5: scratch in tuples of its
own (`room`), rates that never change as numbers."""


class _Renamed:
    """What stands in the place of an attribute that has a new name: objects that set the old one are told."""

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, player: Any, owner: type) -> Any:
        raise AttributeError(f"{owner.__name__} has no {self.old!r}: it is called {self.new!r} now")

    def __set__(self, player: Any, value: Any) -> None:
        raise UsageError(f"{type(player).__name__}: the attribute `{self.old}` is called `{self.new}` now")


class Player:
    """Base of every agent and forecaster. Constructors are `(problem, rng, *, keyword-only JSON-able settings)`."""

    id: ClassVar[str] = ""
    """The name in specs and listings, for instance "banditron"."""
    feedback: ClassVar[str] = "bit"
    """What the player is told after a round: "bit" (right or wrong) or "label"."""
    group: ClassVar[str] = "practice"
    """ "theory" where the defaults are a theorem's settings, "practice", "reference" (told the label, for scale),
    "baseline" (learns nothing), or "adapter" (another library's method)."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Modules of another library that the constructor imports."""
    extra: ClassVar[str] = "peers"
    """The extra of this package that installs them."""
    summary: ClassVar[str] = ""
    """One line for listings."""
    reference: ClassVar[str] = ""
    """Authors, title, venue, year, and where the algorithm stands."""
    version: ClassVar[int] = 1
    """Raised whenever the numbers this player produces change."""
    plays_blocks: bool = False
    """Whether runs go through blocks of rounds: an agent's `play_block`, a forecaster's `forecast_block`."""
    sparse: bool = False
    """Whether blocks of sparse contexts are taken as they are; else they are made dense, where they are short enough."""
    bound_unit: ClassVar[str] = ""
    """ "nats", "bits" or a part of them such as "0.5 bits": the unit of the comparator's loss in this player's theorem; ""
    where there is none."""
    added_settings: ClassVar[dict[str, Any]] = {}
    """Settings that came when runs of this version were stored already, each with the value that plays the rule of before.
    At that value a setting enters neither run ids nor seeds, and a player that was saved without it is loaded with it."""
    wraps: ClassVar[str | None] = None
    """The setting that names an inner player (the exploration reduction: "forecaster"); its settings pass through."""

    state_order: ClassVar[tuple[int, int]] = (1, 1)
    """(a, b): at its defaults the state is at least K^a d^b / 2 numbers."""

    excluded_checks: ClassVar[dict[str, str]] = {}
    """Conformance checks this player cannot meet by its nature, each with the reason (see `banditlab.checks`)."""

    compiled: Any = _Renamed("plays_blocks")

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a class that still sets an attribute under its former name: it would change nothing."""
        super().__init_subclass__(**options)
        if "compiled" in vars(cls):
            raise UsageError(f"{cls.__name__}: the attribute `compiled` is called `plays_blocks` now")

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        self.problem = problem
        self.rng = rng

    def __repr__(self) -> str:
        """Return the class, the id, K, d and the settings whose values are not their defaults, in one line."""
        own = {name: (getattr(self, name, p.default), p.default) for name, p in self.own_settings().items()}
        shown = [f"{self.id!r}"] if self.id else []
        if "problem" in vars(self):  # an error within the constructor may show one that is half made
            shown += [f"K={self.problem.n_classes}", f"d={self.problem.n_features}"]
        shown += [f"{name}={_short(value)}" for name, (value, default) in own.items() if value != default]
        if self.wraps is not None and hasattr(self, "inner"):
            shown.append(f"inner={self.inner!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def own_settings(cls) -> dict[str, inspect.Parameter]:
        """Return the keyword-only parameters of the constructor, by name."""
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return how many bytes the state takes at least, asked before anything is built."""
        a, b = cls.state_order
        return 4.0 * problem.n_classes**a * problem.n_features**b

    @classmethod
    def needs_dense(cls, problem: Problem, settings: Mapping[str, Any]) -> bool:
        """Return whether blocks of sparse contexts have to be made dense for it, asked before anything is built.

        So it is where there are kernels, and none that take them. A class whose constructor decides overrides this.
        """
        return cls.plays_blocks and not cls.sparse

    def params(self) -> dict[str, Any]:
        """Return the resolved settings, those of a wrapped player included (a name both know as `forecaster.name`)."""
        own = {name: getattr(self, name) for name in self.own_settings()}
        if self.wraps is None:
            return own
        inner = self.inner.params()
        return own | {(f"{self.wraps}.{name}" if name in own else name): value for name, value in inner.items()}

    @property
    def inner(self) -> Player:
        """The wrapped player, where `wraps` names one."""
        raise AttributeError(f"{type(self).__name__} wraps no player")

    def bound(self, rounds: int) -> float | None:
        """Return the additive term of the theorem after `rounds` rounds at the player's own settings, or None.

        Its unit is that of the comparator's loss, `bound_unit`. None where the constants are not proved.
        """
        return None

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far against every comparator in the ball, or NaN."""
        return math.nan

    def diagnostics(self) -> dict[str, Any]:
        """Return what the player counts of itself, by name. Numbers are stored at each checkpoint as `diagnostic.NAME`.

        A wrapper answers with those of the player it wraps.
        """
        return {} if self.wraps is None else self.inner.diagnostics()

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return everything that changes from round to round: nested dicts of arrays, numbers, strings, generators.

        Arrays and generators are the player's own, which go on changing with it: `copy.deepcopy` makes a snapshot.
        """
        skip = {"problem", *self.own_settings()}
        return {name: value for name, value in vars(self).items() if name not in skip and not callable(value)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over a state that `get_state` of a player with the same settings returned."""
        for name, value in state.items():
            setattr(self, name, _restored(getattr(self, name), value))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the player to one npz file: arrays as they are, everything else as JSON, no pickle."""
        arrays: dict[str, np.ndarray] = {}
        problem = {name: getattr(self.problem, name) for name in ("n_features", "n_classes", "radius", "horizon")}
        head = {
            "format": STATE_FORMAT,
            "id": self.id,
            "version": self.version,
            "problem": problem,
            "settings": self.params(),
            "state": _encode(self.get_state(), "state", arrays),
        }
        with open(path, "wb") as file:
            np.savez(file, header=np.array(json.dumps(head)), **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the player that `save` wrote; it continues exactly where the saved one stopped.

        Raises
        ------
        UsageError
            The file is not one of this class's, or was written in another format or version.
        """
        head, arrays = _read(Path(path))
        if head["format"] != STATE_FORMAT:
            raise UsageError(
                f"{Path(path)}: saved in format {head['format']}, but this version of banditlab reads and writes format "
                f"{STATE_FORMAT}: play the run again, or load it with the version that saved it"
            )
        found = (head["id"], head["version"])
        if found != (cls.id, cls.version):
            raise UsageError(f"{Path(path)}: holds (id, version) {found}, expected {(cls.id, cls.version)}")
        player = cls(Problem(**head["problem"]), np.random.default_rng(0), **(cls.added_settings | head["settings"]))
        player.set_state(_decode(head["state"], arrays))
        return player


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file that `save` wrote."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        head = json.loads(str(arrays.pop("header")))
    except (AttributeError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{path}: not a saved player") from error
    return head, arrays


def _encode(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return `value` as JSON-able data, its arrays moved to `arrays` under their path."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"{path}: an array of objects cannot be saved; override get_state and set_state")
        arrays[path] = value
        return {"array": path}
    if isinstance(value, np.random.Generator):
        return {"generator": _plain(value.bit_generator.state)}
    if isinstance(value, Player):
        return {"fields": _encode_dict(value.get_state(), path, arrays)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"fields": _encode_dict(_fields(value), path, arrays)}
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {"dict": _encode_dict(value, path, arrays)}
    if isinstance(value, list | tuple):
        return {"items": [_encode(item, f"{path}.{i}", arrays) for i, item in enumerate(value)]}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"{path}: a {type(value).__name__} cannot be saved; override get_state and set_state")


def _fields(value: Any) -> dict[str, Any]:
    return dict(value._asdict())


def _encode_dict(fields: dict[str, Any], path: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: _encode(value, f"{path}.{name}", arrays) for name, value in fields.items()}


class _Fields(dict[str, Any]):
    """The decoded fields of a player or named tuple: only the object built anew knows which."""


def _decode(node: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    [(kind, value)] = node.items()
    if kind == "array":
        return arrays[value]
    if kind == "generator":
        bits = getattr(np.random, value["bit_generator"])()
        bits.state = value
        return np.random.Generator(bits)
    if kind in ("fields", "dict"):
        return (_Fields if kind == "fields" else dict)({name: _decode(item, arrays) for name, item in value.items()})
    if kind == "items":
        return [_decode(item, arrays) for item in value]
    return value


def _short(value: Any) -> str:
    """Return a setting in a few characters: numbers to six digits, long texts and lists cut."""
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _plain(value: Any) -> Any:
    """Return a bit generator's state with its arrays as lists (PCG64 has none, Philox and MT19937 have)."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _restored(old: Any, new: Any) -> Any:
    """Return `new` in the type of `old`, sharing nothing with `new`.

    Arrays are written in place where they fit, so that what was built to share an array (a wrapper and the player
    inside it) still does.
    """
    if isinstance(new, np.random.Generator):
        bits = type(new.bit_generator)()
        bits.state = new.bit_generator.state
        return np.random.Generator(bits)
    if isinstance(new, np.ndarray):
        if isinstance(old, np.ndarray) and old.shape == new.shape and old.dtype == new.dtype and old.flags.writeable:
            np.copyto(old, new)
            return old
        return new.copy()
    if isinstance(old, Player):
        old.set_state(new.get_state() if isinstance(new, Player) else new)
        return old
    if isinstance(old, tuple) and hasattr(old, "_fields"):
        fields = new if isinstance(new, dict) else _fields(new)
        # A field with a default came later (see `added_settings`): where the file lacks it, the constructor's stays.
        defaults: dict[str, Any] = getattr(old, "_field_defaults", {})
        later = {name: getattr(old, name) for name in defaults}
        return type(old)(**(later | {name: _restored(getattr(old, name), value) for name, value in fields.items()}))
    if isinstance(new, _Fields):
        raise TypeError(f"a saved {sorted(new)} meets a {type(old).__name__}: create it in the constructor")
    if isinstance(new, dict):
        known = old if isinstance(old, dict) else {}
        return {name: _restored(known.get(name), value) for name, value in new.items()}
    if isinstance(new, list | tuple):
        olds = old if isinstance(old, list | tuple) and len(old) == len(new) else [None] * len(new)
        return (tuple if isinstance(old, tuple) else list)(_restored(*pair) for pair in zip(olds, new))
    return new
