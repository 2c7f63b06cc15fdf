"""Descriptions of a spec's players and environments as plain data, from which workers build objects.

Settings are converted to the types of the constructors and defaults are added, so equivalent specs have the same
identity.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from banditlab.engine.annotations import shown_type
from banditlab.engine.seeding import canonical
from banditlab.envs import Change, StreamEnv
from banditlab.errors import UsageError, nearest
from banditlab.players.player import Player
from banditlab.problem import Problem
from banditlab.registry import Entry, registry
from banditlab.validation import ALIASES, keyword_only

HORIZON = "horizon"  # set by the engine; the number of rounds is not part of a stream's identity


def describe_player(kind: str, id_: str, written: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return {kind, id, version, source, settings} with every setting coerced and every default filled in.

    Parameters
    ----------
    kind
        "agents" or "forecasters".
    written
        Settings as written by a user. A key that is not a setting of the player applies to the player that it wraps. If
        both players have a setting NAME, `forecaster.NAME` is the setting of the wrapped player.
    where
        Prefix of errors, for instance "quickstart.toml: agent 'fastcb'".

    Raises
    ------
    UsageError
        The id or a setting is unknown (the message suggests the nearest name), a value has the wrong type, or a plug-in
        cannot be imported.
    """
    return _describe(kind, id_, written, where, ())


def _describe(kind: str, id_: str, written: Mapping[str, Any], where: str, outer: tuple[str, ...]) -> dict[str, Any]:
    """Describe a player. `outer` contains the names of the settings of players that wrap it, for hints in errors."""
    entry = registry().find(kind, id_)
    cls = entry.load()
    own = keyword_only(cls)
    written = _canonical(written, own, where)
    prefix = getattr(cls, "wraps", None)
    mine = {name: written.get(name, parameter.default) for name, parameter in own.items()}
    rest = _passed_on({key: value for key, value in written.items() if key not in own}, prefix, where)
    for key, value in mine.items():
        if value is inspect.Parameter.empty:
            raise UsageError(f"{where}: the setting {key!r} is required")
        mine[key] = coerce(cls, key, value, where)
    described = {"kind": kind, "id": id_, "version": cls.version, "source": entry.source, "settings": mine}
    if prefix is None:
        for key in rest:
            raise UsageError(f"{where}: unknown setting {key!r}{nearest(key, (*outer, *own))}")
        return described
    try:
        inner = _describe(f"{prefix}s", mine[prefix], rest, where, (*outer, *own))
    except UsageError as error:
        raise UsageError(str(error) if str(error).startswith(where) else f"{where}: {error}") from error
    passed = {(f"{prefix}.{name}" if name in own else name): value for name, value in inner["settings"].items()}
    version = [cls.version, inner["version"]]
    return described | {"version": version, "source": entry.source + inner["source"], "settings": mine | passed}


def _canonical(written: Mapping[str, Any], own: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the settings with aliases replaced by names of own settings; a name of an own setting is no alias."""
    found: dict[str, Any] = {}
    for key, value in written.items():
        name = ALIASES.get(key, key)
        name = name if key not in own and name in own else key
        if name in found:
            raise UsageError(f"{where}: {name!r} is given twice, once as an alias ({', '.join(ALIASES)})")
        found[name] = value
    return found


def written_names(written: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a user's settings under the names of the description, with aliases replaced."""
    found = {}
    for key, value in written.items():
        head, dot, tail = key.rpartition(".")
        found[key if key in settings else f"{head}{dot}{ALIASES.get(tail, tail)}"] = value
    return found


def _passed_on(rest: Mapping[str, Any], prefix: str | None, where: str) -> dict[str, Any]:
    """Return the wrapped player's settings, with `forecaster.NAME` as NAME; reject a setting written in both forms."""
    passed: dict[str, Any] = {}
    for key, value in rest.items():
        bare = key.removeprefix(f"{prefix}.") if prefix else key
        if bare in passed:
            raise UsageError(f"{where}: {bare!r} is given twice, once as {prefix}.{bare}")
        passed[bare] = value
    return passed


def with_change(description: dict[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """Return an environment's description with the `[change]` of its labels, if there is one."""
    change = Change.of(written).as_settings() if written else {"at": []}
    if not change["at"]:
        return description
    return description | {"change": change, "identity": description["identity"] | {"change": change}}


def describe_environment(id_: str, written: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return {id, version, source, settings, identity} of an environment; the engine sets `horizon`."""
    entry = registry().find("envs", id_)
    cls = entry.load()
    own = {name: p for name, p in keyword_only(cls).items() if name != HORIZON}
    settings = {name: parameter.default for name, parameter in own.items()}
    for key, value in written.items():
        if key == HORIZON:
            raise UsageError(f"{where}: set the horizon with `rounds` of the sweep, not as a setting")
        if key not in settings:
            raise UsageError(f"{where}: unknown setting {key!r}{nearest(key, settings)}")
        settings[key] = value
    for key, value in settings.items():
        if value is inspect.Parameter.empty:
            raise UsageError(f"{where}: the setting {key!r} is required")
        settings[key] = coerce(cls, key, value, where)
    identify = getattr(cls, "identity", None)
    identity = {
        "id": id_,
        "version": getattr(cls, "version", 1),
        "source": entry.source,
        "settings": identify(settings) if identify else settings,
    }
    canonical(identity)  # rejects anything but plain data before a run starts
    return {"id": id_, "settings": settings, "identity": identity}


def build_environment(description: Mapping[str, Any], rounds: int) -> Any:
    """Return the environment of a description, with an episode of `rounds` rounds.

    Raises
    ------
    UsageError
        Its data file, or its source in a project folder (a lab), has changed since it was described.
    """
    entry = registry().find("envs", description["id"])
    identity = description["identity"]
    cls = entry.load()
    _refuse_edited([entry], identity["source"])
    env = cls(**description["settings"], horizon=rounds)
    if not _is_described(cls, env, description["settings"], identity["settings"]):
        path = description["settings"].get("path", "a file of its settings")
        raise UsageError(
            f"{path}: it was replaced after the sweep was planned; run the command again to use the new file"
        )
    if "change" in description:
        if not isinstance(env.unwrapped, StreamEnv):
            raise UsageError(f"change: the labels of {description['id']} depend on the actions and cannot be changed")
        env.unwrapped.change = Change.of(description["change"])
    return env


def _is_described(cls: Any, env: Any, settings: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
    """Return whether the data that the environment has read are those of its description."""
    identify = getattr(cls, "identity", None)
    if identify is None:
        return True
    used = getattr(env.unwrapped, "content", None)
    if isinstance(used, str) and "content" in planned:
        return used == planned["content"]
    return bool(identify(dict(settings)) == planned)


def _refuse_edited(entries: list[Entry], planned: str) -> None:
    if "".join(entry.source for entry in entries) != planned:
        files = ", ".join(entry.origin for entry in entries if entry.source)
        raise UsageError(f"{files}: edited after the sweep was planned; run the command again to use the new files")


def build_player(description: Mapping[str, Any], problem: Problem, rng: np.random.Generator) -> Player:
    """Return the player of a description for a problem; raise a UsageError if its source file has changed."""
    if "source" in description:
        entries = entries_of(description["kind"], description["id"], description["settings"])
        _refuse_edited(entries, description["source"])
    return player_class(description)(problem, rng, **description["settings"])


def player_class(description: Mapping[str, Any]) -> Any:
    """Return the class of the player of a description."""
    return registry().load(description["kind"], description["id"])


def entries_of(kind: str, id_: str, settings: Mapping[str, Any]) -> list[Entry]:
    """Return a player's entry in the registry and those of the players it wraps, from the outermost to the innermost."""
    entry = registry().find(kind, id_)
    cls = entry.load()
    prefix = getattr(cls, "wraps", None)
    if prefix is None:
        return [entry]
    own = keyword_only(cls)
    rest = {key.removeprefix(f"{prefix}."): value for key, value in settings.items() if key not in own}
    return [entry, *entries_of(f"{prefix}s", settings[prefix], rest)]


def is_foreign(environment: Mapping[str, Any], player: Mapping[str, Any] | None = None) -> bool:
    """Return whether an environment's or a player's code comes from a lab or a plug-in."""
    entries = [registry().find("envs", environment["id"])]
    if entries[0].origin == "banditlab" and entries[0].load().foreign:
        return True
    if player is not None:
        entries += entries_of(player["kind"], player["id"], player["settings"])
    return any(entry.origin != "banditlab" for entry in entries)


# ------------------------------------------------------------------------------------------------------ signature and types


@cache
def _adapter(cls: Any, name: str) -> TypeAdapter[Any]:
    annotation = typing.get_type_hints(cls.__init__).get(name, Any)
    try:
        return TypeAdapter(annotation, config=ConfigDict(strict=True, allow_inf_nan=False))
    except PydanticUserError:
        return TypeAdapter(annotation)


def coerce(cls: Any, name: str, value: Any, where: str) -> Any:
    """Return a setting as JSON data, converted to the type in the constructor (1 for a float becomes 1.0)."""
    adapter = _adapter(cls, name)
    candidates = [value, int(value)] if isinstance(value, float) and value.is_integer() else [value]
    error: Exception | None = None
    for candidate in candidates:
        try:
            return _plain(adapter.dump_python(adapter.validate_python(candidate), mode="json"))
        except ValidationError as failure:
            error = failure
    shown = shown_type(typing.get_type_hints(cls.__init__).get(name, Any))
    if isinstance(value, float) and not math.isfinite(value):
        shown = f"finite ({shown})"
    raise UsageError(f"{where}: {name} = {value!r} is not allowed; it must be {shown}") from error


def _plain(value: Any) -> Any:
    """Return a value with -0.0 replaced by 0.0, because they are the same setting."""
    return value + 0.0 if isinstance(value, float) else value
