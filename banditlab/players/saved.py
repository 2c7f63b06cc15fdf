"""A player's state as data: write it to a file, read it, and compare it with the state of a new player.

Files are not trusted. A file is a zip of plain arrays, one of which has JSON text, and no code in it is run. Arrays
contain numbers (no pickle), and a pydantic model validates the text. Names, shapes and types must be those of the state
that the constructor creates from the file's problem and settings. Compiled code checks no bounds, so integers that
kernels use as indices must lie in the ranges that their named tuple declares (see `banditlab.numerics.limits`).
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from banditlab.disk import write_whole as write_to_disk
from banditlab.errors import UsageError

CLOSE = 1e-9
"""Relative tolerance for a number determined by the settings, because another machine's libm may round it differently."""
HEADER = "header"
"""The name of the array with the JSON text."""


class Plain(BaseModel):
    """Plain data of strict types, without further keys."""

    model_config = ConfigDict(extra="forbid", strict=True)


M = TypeVar("M", bound=Plain)


class Fields(dict[str, Any]):
    """The decoded fields of a player or of a named tuple; which of the two is known from the object to restore."""


# ------------------------------------------------------------------------------------------------------------------ files


def packed(head: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Return the bytes of a file with arrays and a header as JSON."""
    file = io.BytesIO()
    np.savez(file, **{HEADER: np.array(json.dumps(head).encode())}, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(data: bytes, model: type[M]) -> tuple[M, dict[str, np.ndarray]]:
    """Return the header and the arrays from the result of `packed`.

    Members must be uncompressed, so the decoded data are not larger than the file. The zip's checksums detect damage.

    Raises
    ------
    ValueError, zipfile.BadZipFile
        The bytes are not such a file, or are damaged.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as members:
        sizes = [(info.file_size, info.compress_size) for info in members.infolist()]
        if any(size != stored for size, stored in sizes) or sum(size for size, _ in sizes) > len(data):
            raise ValueError("the members of the zip archive must be uncompressed and no larger than the file")
    with np.load(io.BytesIO(data), allow_pickle=False) as members:
        arrays = {name: members[name] for name in members.files}
    head = arrays.pop(HEADER, None)
    if not isinstance(head, np.ndarray) or head.shape != () or head.dtype.kind != "S":
        raise ValueError("it has no header")
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf" or not array.dtype.isnative:
            raise ValueError(f"the member {_short(name)} is not an array of numbers")
    return model.model_validate_json(head.item()), arrays


def is_whole(data: bytes) -> bool:
    """Return whether the bytes are a complete, undamaged file of `packed`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as members:
            return members.testzip() is None
    except Exception:  # damaged bytes may look like an encrypted, otherwise compressed or longer member
        return False


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file atomically, so the disk has either the complete new file or the earlier one.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    try:
        write_to_disk(Path(path), data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from None


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file; if it cannot be read, a UsageError gives the reason."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None


def one_line(error: Exception) -> str:
    """Return an error as one line; for a validation error, the first location and message."""
    text = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        text = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    text = " ".join(text.split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:297]}..."


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ------------------------------------------------------------------------------------------------- objects as JSON and back


def encode(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return `value` as data for JSON, with its arrays moved to `arrays` under their path.

    A named tuple is replaced by its fields, and an object with `get_state` (a wrapped player) by its state.
    """
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"{path}: an array of objects cannot be saved; override get_state and set_state")
        arrays[path] = value
        return {"array": path}
    if isinstance(value, np.random.Generator):
        return {"generator": _plain(value.bit_generator.state)}
    if hasattr(value, "get_state"):
        return {"fields": _encode_dict(value.get_state(), path, arrays)}
    if (fields := fields_of(value)) is not None:
        return {"fields": _encode_dict(fields, path, arrays)}
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {"dict": _encode_dict(value, path, arrays)}
    if isinstance(value, list | tuple):
        return {"items": [encode(item, f"{path}.{i}", arrays) for i, item in enumerate(value)]}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"{path}: a {type(value).__name__} cannot be saved; override get_state and set_state")


def _encode_dict(fields: dict[str, Any], path: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: encode(value, f"{path}.{name}", arrays) for name, value in fields.items()}


def _plain(value: Any) -> Any:
    """Return a bit generator's state with its arrays as lists (PCG64 has none, Philox and MT19937 have)."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def decode(node: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return the value that `encode` encoded, with arrays from `arrays`; raise a ValueError if `node` is invalid."""
    if not isinstance(node, dict) or len(node) != 1:
        raise ValueError(f"{path} is not an encoded value")
    [(kind, value)] = node.items()
    if kind == "array" and value == path and path in arrays:
        return arrays.pop(path)
    if kind == "generator":
        return _generator(value, path)
    if kind in ("fields", "dict") and isinstance(value, dict):
        found = {name: decode(item, f"{path}.{name}", arrays) for name, item in value.items()}
        return Fields(found) if kind == "fields" else found
    if kind == "items" and isinstance(value, list):
        return [decode(item, f"{path}.{i}", arrays) for i, item in enumerate(value)]
    if kind == "value" and (value is None or isinstance(value, bool | int | float | str)):
        return value
    raise ValueError(f"{path} is not an encoded value")


# ------------------------------------------------------------------------------------------------------------- generators

GENERATORS = ("PCG64", "PCG64DXSM", "SFC64", "Philox", "MT19937")
"""The names of numpy's bit generators."""
LARGEST = {"has_uint32": 1, "uinteger": 2**32 - 1, "buffer_pos": 4, "pos": 624}
"""The largest allowed value of the numbers in the generators' states, because numpy reads a buffer at a position
without a check.
"""
WORD = 2**128 - 1
"""The largest allowed value of all other numbers, which have 128 bits."""


def _generator(state: Any, path: str) -> np.random.Generator:
    """Return a generator in the given state."""
    name = state.get("bit_generator") if isinstance(state, dict) else None
    if name not in GENERATORS:
        raise ValueError(f"{path} is not a numpy generator, but {_short(name)}")
    bits = getattr(np.random, name)(0)
    _require_words(bits.state, state, path, WORD)
    bits.state = state
    return np.random.Generator(bits)


def _require_words(old: Any, new: Any, path: str, largest: int) -> None:
    """Raise a ValueError unless `new`, with lists for arrays, may replace `old` in the state of a bit generator."""
    if isinstance(old, dict):
        if not isinstance(new, dict) or new.keys() != old.keys():
            raise ValueError(f"{path} must have the names {', '.join(old)}")
        for name, value in old.items():
            _require_words(value, new[name], f"{path}.{name}", LARGEST.get(name, WORD))
    elif isinstance(old, np.ndarray):
        if not isinstance(new, list) or len(new) != len(old):
            raise ValueError(f"{path} must be a list of {len(old)}")
        for word in new:
            _require_words(0, word, path, np.iinfo(old.dtype).max)
    elif isinstance(old, int) and not (type(new) is int and 0 <= new <= largest):
        raise ValueError(f"{path} must be a whole number in 0 ... {largest}, got {_short(new)}")


# -------------------------------------------------------------------------------------------------------- restoring a state


def restored(old: Any, new: Any, path: str = "state") -> Any:
    """Return `old` with the values of `new`; raise a UsageError that names the first mismatch between them.

    Arrays are written in place, so a wrapper and its wrapped player still share them. If something does not match,
    this player does not change. A wrapped player checks its state separately, and may have been restored already.
    """
    require(old, new, path)
    return _put(old, new)


def require(old: Any, new: Any, path: str) -> None:
    """Raise a UsageError unless `new` may replace `old`, which the constructor set.

    Arrays must have the shape and type of the old ones; numbers, strings and generators must be replaced by values of
    the same kind. Named tuples must have the same fields and the same plain numbers, for which kernels are compiled,
    and integers must lie within `limits`. A dictionary may have further entries, and a list of plain values may
    have another length. If `old` is None, `new` may be anything but a named tuple or an object's state.
    """
    if old is None:
        _refuse(isinstance(new, Fields), path, "created in the constructor, which sets None", new)
    elif isinstance(old, np.ndarray):
        fits = isinstance(new, np.ndarray) and old.shape == new.shape and old.dtype == new.dtype
        _refuse(not fits, path, f"an array {old.dtype} of shape {old.shape}", new)
    elif isinstance(old, np.random.Generator):
        _refuse(not isinstance(new, np.random.Generator), path, "a generator", new)
    elif hasattr(old, "set_state"):
        _refuse(not isinstance(new, Fields | type(old)), path, f"a {type(old).__name__}", new)
    elif isinstance(old, tuple) and hasattr(old, "_fields"):
        _require_tuple(old, new, path)
    elif isinstance(old, dict):
        _refuse(
            not isinstance(new, dict) or isinstance(new, Fields) or not set(old) <= set(new), path, _named(old), new
        )
        for name, value in new.items():
            require(old.get(name), value, f"{path}.{name}")
    elif isinstance(old, list | tuple):
        plain = all(value is None or isinstance(value, bool | int | float | str) for value in old)
        fits = isinstance(new, list | tuple) and not hasattr(new, "_fields") and (plain or len(old) == len(new))
        _refuse(not fits, path, f"a list of {len(old)}", new)
        olds = old if len(old) == len(new) else [None] * len(new)
        for i, (known, value) in enumerate(zip(olds, new, strict=True)):
            require(known, value, f"{path}.{i}")
    else:
        _require_plain(old, new, path)


def _require_tuple(old: Any, new: Any, path: str) -> None:
    given = fields_of(new) or {}
    _refuse(set(given) != set(old._fields), path, f"the fields {', '.join(old._fields)}", new)
    for name, known in old._asdict().items():
        if known is None or isinstance(known, bool | int | float | str):
            _refuse(not same(known, given[name]), f"{path}.{name}", f"{known!r} for these settings", given[name])
        else:
            require(known, given[name], f"{path}.{name}")
    for name, limits in (old.limits() if hasattr(old, "limits") else {}).items():
        within(at(given, name), f"{path}.{name}", *limits)


def _require_plain(old: Any, new: Any, path: str) -> None:
    number = int | float | np.integer | np.floating
    if isinstance(old, bool | np.bool_):
        _refuse(not isinstance(new, bool | np.bool_), path, "True or False", new)
    elif isinstance(old, number):
        fits = isinstance(new, number) and not isinstance(new, bool) and not (type(new) is int and abs(new) >= 2**63)
        _refuse(not fits, path, "a number", new)
    else:
        _refuse(not isinstance(new, type(old)), path, f"a {type(old).__name__}", new)


def within(value: Any, path: str, least: Any, largest: Any, divisor: Any = 0) -> None:
    """Raise a UsageError unless all numbers lie in `least` ... `largest` and are multiples of the divisor."""
    found = np.asarray(value)
    whole = not np.any(divisor) or np.all(found % np.maximum(divisor, 1) == 0)
    if not (np.all(found >= least) and np.all(found <= largest) and whole):
        span = f"{np.min(least)} ... {np.max(largest)}" + (f", multiples of {divisor}" if np.max(divisor) > 1 else "")
        shown = f"an entry outside it: {found.min()} ... {found.max()}" if found.ndim and found.size else _short(value)
        raise UsageError(f"{path} must lie in {span}, got {shown}")


def same(old: Any, new: Any) -> bool:
    """Return whether arrays, numbers, strings or containers of them are equal; floats outside arrays may differ by
    rounding.
    """
    if isinstance(old, np.ndarray):
        return isinstance(new, np.ndarray) and np.array_equal(old, new)
    if isinstance(old, list | tuple):
        return isinstance(new, list | tuple) and len(old) == len(new) and all(map(same, old, new))
    if isinstance(old, dict):
        return isinstance(new, dict) and set(old) == set(new) and all(same(old[name], new[name]) for name in old)
    return type(old) is type(new) and bool(old == new or _close(old, new))


def fields_of(value: Any) -> dict[str, Any] | None:
    """Return the fields of a named tuple, decoded or not, or None for other values."""
    if isinstance(value, Fields):
        return value
    return dict(value._asdict()) if isinstance(value, tuple) and hasattr(value, "_asdict") else None


def at(fields: Any, name: str) -> Any:
    """Return the field with a dotted name such as "store.places" in decoded fields or named tuples."""
    for part in name.split("."):
        fields = (fields_of(fields) or fields)[part]
    return fields


def _close(old: Any, new: Any) -> bool:
    if not isinstance(old, float) or not isinstance(new, float):
        return False
    return abs(new - old) <= CLOSE * abs(old) or (math.isnan(old) and math.isnan(new))


def _refuse(wrong: bool, path: str, wanted: str, got: Any) -> None:
    if wrong:
        raise UsageError(f"{path} must be {wanted}, got {_described(got)}")


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype} of shape {value.shape}"
    if isinstance(value, dict):
        return _named(value)
    return _short(value) if isinstance(value, bool | int | float | str | None) else f"a {type(value).__name__}"


def _named(value: dict[str, Any]) -> str:
    return f"a table with the names {_short(', '.join(map(str, value)))}"


def _put(old: Any, new: Any) -> Any:
    """Return `new`, which has passed `require`, in the type of `old`."""
    if isinstance(new, np.random.Generator):
        bits = type(new.bit_generator)()
        bits.state = new.bit_generator.state
        return np.random.Generator(bits)
    if isinstance(new, np.ndarray):
        if isinstance(old, np.ndarray) and old.flags.writeable:
            np.copyto(old, new)
            return old
        return new.copy()
    if hasattr(old, "set_state"):
        old.set_state(new.get_state() if hasattr(new, "get_state") else new)
        return old
    if isinstance(old, tuple) and hasattr(old, "_fields"):
        given = fields_of(new) or {}
        return type(old)(**{name: _put(getattr(old, name), given[name]) for name in old._fields})
    if isinstance(new, dict):
        known = old if isinstance(old, dict) else {}
        return {name: _put(known.get(name), value) for name, value in new.items()}
    if isinstance(new, list | tuple):
        olds = old if isinstance(old, list | tuple) and len(old) == len(new) else [None] * len(new)
        return (tuple if isinstance(old, tuple) else list)(_put(*pair) for pair in zip(olds, new, strict=True))
    return new
