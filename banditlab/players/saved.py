"""A player's state as data: how it is written to a file, read back, and met with a player that was built anew.

A file may come from anybody. It is a zip of plain arrays and one JSON text, and nothing in it is ever run: arrays are read
from their bytes (no pickle), generators are of numpy's own kinds, and names, shapes and types must be those of the state
that the constructor makes from the file's problem and settings. Compiled code checks no bounds, so integers that kernels
index with must lie in the ranges that their named tuple declares (see `banditlab.numerics.limits`).
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from typing import Any, BinaryIO

import numpy as np

from banditlab.errors import UsageError

CLOSE = 1e-9
"""How far a number that follows from the settings may differ from what they give here, relatively: by a libm, not by more."""
_KINDS = "biuf"


class Fields(dict[str, Any]):
    """The decoded fields of a player or named tuple: only the object built anew knows which."""


# ------------------------------------------------------------------------------------------------------------------ files


def write(path: str | os.PathLike[str], head: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a header and arrays, so that the file is whole or not there: an earlier one stays until then."""
    fresh = f"{os.fspath(path)}.{os.getpid()}.tmp"
    try:
        with open(fresh, "wb") as file:
            put(file, head, arrays)
        os.replace(fresh, path)
    except BaseException:
        if os.path.exists(fresh):
            os.unlink(fresh)
        raise


def put(file: BinaryIO, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a header and arrays to an open file."""
    np.savez(file, header=np.array(json.dumps(head)), **arrays)  # type: ignore[arg-type]


def stored(file: BinaryIO, size: int) -> dict[str, bytes]:
    """Return the members of an open zip file of `size` bytes by name; a ValueError says what is wrong with it.

    Members are stored as they are: a file makes nothing that is larger than itself.
    """
    with zipfile.ZipFile(file) as members:
        infos = members.infolist()
        if len({info.filename for info in infos}) < len(infos):
            raise ValueError("two members have one name")
        if sum(info.file_size for info in infos) > size:
            raise ValueError("its members claim to be larger than the file")
        for info in infos:
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.compress_size != info.file_size:
                raise ValueError(f"the member {_short(info.filename)} is packed: members are stored as they are")
        return {info.filename: members.read(info) for info in infos}


def read(file: BinaryIO, size: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of an open file of `size` bytes that `put` wrote; a ValueError says what is wrong."""
    members = stored(file, size)
    for name in members:
        if not name.endswith(".npy"):
            raise ValueError(f"the member {_short(name)} is no array")
    arrays = {name[:-4]: _array(name, data) for name, data in members.items()}
    head = arrays.pop("header", None)
    if head is None or head.shape != () or head.dtype.kind != "U":
        raise ValueError("it has no header")
    found = json.loads(str(head), object_pairs_hook=_once)
    if not isinstance(found, dict):
        raise ValueError("its header is no table")
    return found, arrays


def _array(name: str, data: bytes) -> np.ndarray:
    """Return the array that the bytes of a .npy file hold, nothing unpickled and nothing made before its size is known."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"the member {_short(name)} is of the .npy format {version}")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, columns_first, dtype = read_header(file)
    if dtype.kind not in (_KINDS + "U" if name == "header.npy" else _KINDS) or not dtype.isnative:
        raise ValueError(f"the member {_short(name)} is an array of {dtype}")
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"the member {_short(name)} does not have the size of its shape {_short(shape)}")
    flat = np.frombuffer(data, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if columns_first else "C").copy(order="C")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in its header")
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ------------------------------------------------------------------------------------------------- objects as JSON and back


def encode(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return `value` as JSON-able data, its arrays moved to `arrays` under their path.

    A named tuple is its fields; so is anything with `get_state` (a player inside).
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
    """Return what `encode` encoded, taking its arrays out of `arrays`; a ValueError where it is nothing of the kind."""
    if not isinstance(node, dict) or len(node) != 1:
        raise ValueError(f"{path} is no encoded value")
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
    raise ValueError(f"{path} is no encoded value")


# ------------------------------------------------------------------------------------------------------------- generators


def _words(count: int, bits: int) -> Any:
    def holds(value: Any) -> bool:
        return isinstance(value, list) and len(value) == count and all(_below(2**bits)(word) for word in value)

    return holds


def _below(end: int, *, odd: bool = False) -> Any:
    return lambda value: type(value) is int and 0 <= value < end and (value % 2 == 1 or not odd)


_HALF = {"has_uint32": _below(2), "uinteger": _below(2**32)}
_PCG: dict[str, Any] = {"state": {"state": _below(2**128), "inc": _below(2**128, odd=True)}, **_HALF}
_GENERATORS: dict[str, dict[str, Any]] = {
    "PCG64": _PCG,
    "PCG64DXSM": _PCG,
    "SFC64": {"state": {"state": _words(4, 64)}, **_HALF},
    "Philox": {
        "state": {"counter": _words(4, 64), "key": _words(2, 64)},
        "buffer": _words(4, 64),
        "buffer_pos": _below(5),
        **_HALF,
    },
    "MT19937": {"state": {"key": lambda value: _words(624, 32)(value) and any(value), "pos": _below(625)}},
}
"""numpy's bit generators, and what their states hold: numpy itself takes a place in a buffer as it comes."""


def _generator(state: Any, path: str) -> np.random.Generator:
    """Return a generator in the state given, which is data of a bit generator that is known here."""
    kind = state.get("bit_generator") if isinstance(state, dict) else None
    if not isinstance(kind, str) or kind not in _GENERATORS:
        raise ValueError(f"{path} is no generator of numpy ({', '.join(_GENERATORS)})")
    if not _matches(state, {"bit_generator": lambda value: value == kind, **_GENERATORS[kind]}):
        raise ValueError(f"{path} holds no state of a {kind}")
    bits = getattr(np.random, kind)(0)
    bits.state = _arrays_of(state, 32 if kind == "MT19937" else 64)
    return np.random.Generator(bits)


def _matches(state: Any, schema: Any) -> bool:
    if callable(schema):
        return bool(schema(state))
    return (
        isinstance(state, dict)
        and set(state) == set(schema)
        and all(_matches(state[name], schema[name]) for name in schema)
    )


def _arrays_of(state: Any, bits: int) -> Any:
    if isinstance(state, dict):
        return {name: _arrays_of(value, bits) for name, value in state.items()}
    return np.array(state, dtype=f"u{bits // 8}") if isinstance(state, list) else state


# --------------------------------------------------------------------------------------------------- a state meets another


def restored(old: Any, new: Any, path: str = "state") -> Any:
    """Return `new` in the place of `old`, sharing nothing with `new`, or raise a UsageError that names what does not fit.

    Arrays are written in place, so that what was built to share an array (a wrapper and the player inside it) still does;
    nothing is written where something does not fit, a player inside excepted, which looks at its own state itself.
    """
    require(old, new, path)
    return _put(old, new)


def require(old: Any, new: Any, path: str) -> None:
    """Raise a UsageError unless `new` may stand where the constructor put `old`.

    Arrays have the shape and type of the old ones; numbers are numbers, texts texts, generators generators; named tuples
    have the same fields, their own numbers (which kernels are compiled to read) the same values, and integers lie within
    `limits`. A dictionary may have further entries, and a list of plain values another length. None may become anything.
    """
    if old is None:
        _refuse(isinstance(new, Fields), path, "created in the constructor, which leaves None there", new)
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
            _refuse(not same(known, given[name]), f"{path}.{name}", f"{known!r}, as the settings have it", given[name])
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
    """Raise a UsageError unless a number or every entry of an array lies in least ... largest, a multiple of a divisor."""
    found = np.asarray(value)
    whole = not np.any(divisor) or np.all(found % np.maximum(divisor, 1) == 0)
    if not (np.all(found >= least) and np.all(found <= largest) and whole):
        span = f"{np.min(least)} ... {np.max(largest)}" + (f", multiples of {divisor}" if np.max(divisor) > 1 else "")
        shown = f"an entry out of it: {found.min()} ... {found.max()}" if found.ndim and found.size else _short(value)
        raise UsageError(f"{path} must lie in {span}, got {shown}")


def same(old: Any, new: Any) -> bool:
    """Return whether arrays, numbers, texts or lists of them are equal, numbers to rounding."""
    if isinstance(old, np.ndarray):
        return isinstance(new, np.ndarray) and np.array_equal(old, new)
    if isinstance(old, list | tuple):
        return isinstance(new, list | tuple) and len(old) == len(new) and all(map(same, old, new))
    if isinstance(old, dict):
        return isinstance(new, dict) and set(old) == set(new) and all(same(old[name], new[name]) for name in old)
    return type(old) is type(new) and bool(old == new or _close(old, new))


def fields_of(value: Any) -> dict[str, Any] | None:
    """Return the fields of a named tuple, decoded or not, or None where it is none."""
    if isinstance(value, Fields):
        return value
    return dict(value._asdict()) if isinstance(value, tuple) and hasattr(value, "_asdict") else None


def at(fields: Any, name: str) -> Any:
    """Return what stands under a name such as "store.places" in decoded fields or named tuples."""
    for part in name.split("."):
        fields = (fields_of(fields) or fields)[part]
    return fields


def _close(old: Any, new: Any) -> bool:
    if not isinstance(old, float) or not isinstance(new, float):
        return False
    return abs(new - old) <= CLOSE * abs(old) or (math.isnan(old) and math.isnan(new))


def _refuse(wrong: bool, path: str, wanted: str, got: Any) -> None:
    if wrong:
        raise UsageError(f"{path} must be {wanted}, got {_told(got)}")


def _told(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype} of shape {value.shape}"
    if isinstance(value, dict):
        return _named(value)
    return _short(value) if isinstance(value, bool | int | float | str | None) else f"a {type(value).__name__}"


def _named(value: dict[str, Any]) -> str:
    return f"a table with the names {_short(', '.join(map(str, value)))}"


def _put(old: Any, new: Any) -> Any:
    """Return `new`, which was found to fit, in the type of `old`."""
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
