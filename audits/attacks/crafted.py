"""Saved players made wrong on purpose: bytes, header, arrays and zip of a file that `Player.save` wrote."""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 3, 2**31, 2**53, 2**63, 2**64, 10**30, -(2**63), 0.5, -1.0, 1e-308, 1e308, math.nan,
    math.inf, -math.inf, "", "x", "test", "theory", "__class__", "MT19937", [], {}, [1], {"value": 1}, {"array": "state"},
    {"generator": {"bit_generator": "test"}}, {"generator": {"bit_generator": "seed", "state": 1}}, {"fields": {}},
)  # fmt: skip
NUMBERS = (0.0, -1.0, 1.0, 1e-300, 1e300, math.nan, math.inf, -math.inf)
INTEGERS = (-(2**63), -(2**40), -8, -2, -1, 0, 1, 2, 3, 7, 8, 64, 2**31, 2**40, 2**63 - 1)


class Saved:
    """A saved player taken apart: its header and its arrays."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            self.arrays = {name: file[name] for name in file.files}
        self.head = json.loads(str(self.arrays.pop("header")))

    def file(self, head: Any, arrays: dict[str, Any], *, packed: bool = False, more: tuple[Any, ...] = ()) -> bytes:
        """Return the bytes of a file with this header and these arrays (or bytes of members); `more` members behind."""
        out = io.BytesIO()
        text = head if isinstance(head, str) else json.dumps(head)
        members = [("header", np.array(text)), *arrays.items(), *more]
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as zipped:
            for name, content in members:
                zipped.writestr(f"{name}.npy", content if isinstance(content, bytes) else npy(content))
        return out.getvalue()


def npy(array: Any) -> bytes:
    """Return an array as the bytes of a .npy file, pickled where numpy would."""
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), allow_pickle=True)
    return out.getvalue()


class Touch:
    """What a pickle runs where it is loaded: a command that leaves a mark."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        """Return the call that leaves the mark."""
        return open, (self.mark, "w")


# ------------------------------------------------------------------------------------------------------------- mutations


def flipped_bytes(saved: Saved, rng: np.random.Generator, mark: str) -> bytes:
    """Return the file with one to three bytes changed."""
    data = bytearray(saved.data)
    for place in rng.integers(len(data), size=rng.integers(1, 4)):
        data[place] = rng.integers(256)
    return bytes(data)


def cut_or_joined(saved: Saved, rng: np.random.Generator, mark: str) -> bytes:
    """Return a part of the file, or the file with bytes before or behind it."""
    cut, extra = int(rng.integers(len(saved.data))), rng.bytes(int(rng.integers(1, 200)))
    return (saved.data[:cut], saved.data[cut:], extra + saved.data, saved.data + extra)[rng.integers(4)]


def changed_header(saved: Saved, rng: np.random.Generator, mark: str) -> bytes:
    """Return the file with one to three places of the header changed: a value, a name, one less or one more."""
    head = copy.deepcopy(saved.head)
    for _ in range(rng.integers(1, 4)):
        places = list(_places(head))
        where, key = places[rng.integers(len(places))]
        value = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
        act = rng.integers(4)
        if act == 0 and isinstance(where, dict):
            where[("__class__", "act", "learn", "kernels", "problem", "act_kernel", "x")[rng.integers(7)]] = value
        elif act == 1:
            del where[key]
        else:
            where[key] = value
    return saved.file(head, saved.arrays)


def changed_text(saved: Saved, rng: np.random.Generator, mark: str) -> bytes:
    """Return the file with the header's text changed: characters, nesting, a name that stands twice."""
    text = json.dumps(saved.head)
    place = int(rng.integers(len(text)))
    new = (
        text[:place] + chr(int(rng.integers(32, 0x2FF))) + text[place + 1 :],
        text[:place],
        "[" * 100_000 + text,
        text.replace('"state": ', '"state": {}, "state": ', 1),
        text[:place] + "9" * 5_000 + text[place:],
    )[rng.integers(5)]
    return saved.file(new, saved.arrays)


def changed_setting(saved: Saved, rng: np.random.Generator, mark: str) -> bytes:
    """Return the file with one setting, or one number of the problem, changed."""
    head = copy.deepcopy(saved.head)
    table = head["settings"] if head["settings"] and rng.random() < 0.7 else head["problem"]
    key = list(table)[rng.integers(len(table))]
    table[key] = (*VALUES, 10**6, 10**9, 10**12)[rng.integers(len(VALUES) + 3)]
    return saved.file(head, saved.arrays)


def changed_numbers(saved: Saved, rng: np.random.Generator, mark: str) -> bytes:
    """Return the file with entries of one to four arrays changed, to numbers that no player reaches as well."""
    arrays = {name: array.copy() for name, array in saved.arrays.items()}
    return saved.file(saved.head, _with(arrays, rng, list(arrays), int(rng.integers(1, 5))))


def changed_integers(saved: Saved, rng: np.random.Generator, mark: str) -> bytes:
    """Return the file with entries of its integer arrays changed: counters, and what kernels index with."""
    arrays = {name: array.copy() for name, array in saved.arrays.items()}
    names = [name for name, array in arrays.items() if array.dtype.kind in "iu"] or list(arrays)
    return saved.file(saved.head, _with(arrays, rng, names, int(rng.integers(1, 3))))


def changed_shapes(saved: Saved, rng: np.random.Generator, mark: str) -> bytes:
    """Return the file with an array of another shape, type or order, without it, or with one more."""
    arrays: dict[str, Any] = dict(saved.arrays)
    if not arrays:
        return saved.file(saved.head, {"state.x": np.zeros(3)})
    name = list(arrays)[rng.integers(len(arrays))]
    old, other = arrays[name], arrays[list(arrays)[rng.integers(len(arrays))]]
    new: list[Callable[[], Any]] = [
        lambda: old.reshape(-1),
        lambda: old.reshape(-1)[: old.size // 2],
        lambda: np.zeros((0, *old.shape[1:]), old.dtype),
        lambda: np.concatenate([old.reshape(-1), old.reshape(-1)]),
        lambda: old[None],
        lambda: old.astype(np.float32),
        lambda: old.astype(np.int32),
        lambda: old.astype(old.dtype.newbyteorder()),
        lambda: old.astype(complex),
        lambda: old.astype("U3"),
        lambda: np.asfortranarray(old.reshape(old.shape[0], -1)) if old.ndim and old.size else old,
        lambda: other,
        lambda: np.array(7.0),
    ]
    act = int(rng.integers(len(new) + 2))
    if act == len(new):
        del arrays[name]
    elif act > len(new):
        arrays["state.act"] = old
    else:
        arrays[name] = new[act]()
    return saved.file(saved.head, arrays)


def crafted_members(saved: Saved, rng: np.random.Generator, mark: str) -> bytes:
    """Return the file with a member that is pickled, claims a huge shape, stands twice, or is packed: a bomb."""
    arrays: dict[str, Any] = dict(saved.arrays)
    name = list(arrays)[rng.integers(len(arrays))] if arrays else "state.x"
    act = int(rng.integers(7))
    if act == 0:
        arrays[name] = npy(np.array([Touch(mark)], dtype=object))
    elif act == 1:
        arrays[name] = npy(np.zeros(3)).replace(b"(3,)", b"(9" + b"0" * int(rng.integers(3, 18)) + b",)")
    elif act == 2:
        return saved.file(saved.head, arrays, packed=True)
    elif act == 3:
        return saved.file(saved.head, arrays, more=((name, np.zeros(3)), ("header", np.array("{}"))))
    elif act == 4:
        return saved.file(saved.head, {**arrays, name: np.zeros(10**7)}, packed=True)
    elif act == 5:
        arrays[name] = pickle.dumps(Touch(mark))
    else:
        header = npy(np.zeros(3)).replace(b"(3,)", b"(__import__('os').mkdir('mark'),)")
        arrays[name] = header
    return saved.file(saved.head, arrays)


MUTATIONS: dict[Callable[[Saved, np.random.Generator, str], bytes], tuple[str, float]] = {
    flipped_bytes: ("bytes flipped", 0.08),
    cut_or_joined: ("cut short, or bytes before or behind", 0.02),
    changed_text: ("the header's text changed", 0.05),
    changed_header: ("values and names of the header changed", 0.25),
    changed_setting: ("settings and problem changed", 0.10),
    changed_shapes: ("arrays of other shapes, types, names", 0.15),
    changed_numbers: ("numbers of arrays changed", 0.15),
    changed_integers: ("integers of arrays changed", 0.15),
    crafted_members: ("pickles, bombs, members twice, huge shapes", 0.05),
}
"""What is done, in words, and how often."""


def _places(node: Any) -> Any:
    """Yield (table or list, key) for every place in a JSON document, lists of numbers by a few of their entries."""
    keys = list(node) if isinstance(node, dict) else range(min(len(node), 4)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from _places(node[key])


def _with(arrays: dict[str, Any], rng: np.random.Generator, names: list[str], count: int) -> dict[str, Any]:
    """Change entries of `count` arrays among `names`."""
    for _ in range(count if names else 0):
        array = arrays[names[rng.integers(len(names))]]
        if not array.size:
            continue
        if array.dtype.kind == "f":
            new: Any = NUMBERS[rng.integers(len(NUMBERS))]
        else:
            info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
            new = INTEGERS[rng.integers(len(INTEGERS))]
            new = bool(new) if info is None else min(max(new, int(info.min)), int(info.max))
        flat = array.reshape(-1)  # a view: arrays of a file are contiguous
        if rng.random() < 0.3:
            flat[:] = new
        else:
            flat[rng.integers(flat.size, size=min(3, flat.size))] = new
    return arrays
