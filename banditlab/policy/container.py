"""A policy as one file: a sealed zip of stored members, plain data all of it. Nothing in it is ever run.

`policy.json` (names, counts, provenance), `encoder` (see `banditlab.envs.encoding`), `agent.npz` (see
`banditlab.players.saved`), `open.npz` (decisions that wait for feedback). The seal tells damage, it is no signature.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from banditlab.errors import UsageError
from banditlab.players import saved
from banditlab.players.agent import Agent
from banditlab.policy.choice import Name, Record
from banditlab.policy.core import Core
from banditlab.registry import registry
from banditlab.results.seal import BLANK, is_whole, sealed
from banditlab.results.system import keep_entry, make_readable

FORMAT: Literal[1] = 1
HEAD, ENCODER, AGENT, OPEN = "policy.json", "encoder", "agent.npz", "open.npz"
MOST_HEAD = 2**24
"""Bytes of `policy.json`: the names of a million classes."""
Found = TypeVar("Found")
_FIXED = (1980, 1, 1, 0, 0, 0)
"""The time of every member: the same policy is the same bytes."""


class Plain(BaseModel):
    """Plain data whose types are as said, with no infinite number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Training(Plain):
    """How a policy was trained."""

    file: str
    content: str
    """The data's digest."""
    label: str
    rows: int = Field(ge=1)
    agent: str
    settings: dict[str, Any]
    seed: int = Field(ge=0)
    mistakes: int = Field(ge=0)
    expected_mistakes: float = Field(ge=0.0)
    constant_mistakes: int = Field(ge=0)
    classes: int = Field(ge=2)
    at: str
    versions: dict[str, str | int]
    machine: str


class Head(Plain):
    """What stands in `policy.json`."""

    format: Literal[1] = FORMAT
    uid: str = Field(pattern=r"^[0-9a-f]{32}$")
    """Given once, when the policy is trained: a log belongs to one policy."""
    agent: str = Field(max_length=200)
    classes: list[str] | list[int] | list[float] | list[bool]
    retired: list[int]
    generation: int = Field(ge=0)
    decisions: int = Field(ge=0)
    answered: int = Field(ge=0)
    right: int = Field(ge=0)
    rng: Any
    trained: Training

    @field_validator("classes")
    @classmethod
    def _named_once(cls, names: list[Any]) -> list[Any]:
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError("at least two classes, each named once")
        return names


class Parts(NamedTuple):
    """What a policy is made of."""

    uid: str
    encoder: Any
    core: Core
    trained: dict[str, Any]
    pending: dict[str, Record]
    """Decisions that wait for feedback, by id, the oldest first."""


# ------------------------------------------------------------------------------------------------------------------ write


def packed(parts: Parts) -> bytes:
    """Return the bytes of a policy's file."""
    core = parts.core
    head = {
        "format": FORMAT,
        "uid": parts.uid,
        "agent": core.agent.id,
        "classes": core.classes,
        "retired": sorted(core.retired),
        "generation": core.generation,
        "decisions": core.decisions,
        "answered": core.answered,
        "right": core.right,
        "rng": saved.encode(core.rng, "rng", {}),
        "trained": parts.trained,
    }
    text = json.dumps(head, allow_nan=False).encode()
    if len(text) > MOST_HEAD:  # which `_head` would not read
        raise UsageError(f"the names of the classes and what is told of the training take {len(text):,} bytes")
    members = {
        HEAD: text,
        ENCODER: parts.encoder.to_bytes(),
        AGENT: core.agent.to_bytes(),
        OPEN: _packed_pending(parts.pending),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members_:
        for name, data in members.items():
            members_.writestr(zipfile.ZipInfo(name, _FIXED), data)
        members_.comment = BLANK.encode()
    return sealed(file.getvalue())


def _packed_pending(pending: dict[str, Record]) -> bytes:
    arrays: dict[str, np.ndarray] = {}
    explored = [record.explored for record in pending.values()]
    rows = []
    for i, record in enumerate(pending.values()):
        rows.append([int(record.action), record.generation, record.payload is not None])
        arrays[f"x{i}"], arrays[f"p{i}"] = record.context, record.probabilities
        if record.payload is not None:
            arrays[f"s{i}"] = record.payload
    file = io.BytesIO()
    saved.put(file, {"ids": list(pending), "rows": rows, "explored": explored}, arrays)
    return file.getvalue()


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that it is whole and on disk, or not there: an earlier one stays until then."""
    target = Path(path)
    number, fresh = -1, ""
    try:
        number, fresh = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with open(number, "wb") as file:
            file.write(data)
            make_readable(number)
            file.flush()
            os.fsync(number)
        os.replace(fresh, target)
    except OSError as error:
        if fresh:
            Path(fresh).unlink(missing_ok=True)
        raise UsageError(f"{target}: cannot be written ({error.strerror})") from None
    keep_entry(target.parent)


# ------------------------------------------------------------------------------------------------------------------- read


def read(path: str | os.PathLike[str]) -> Parts:
    """Return the parts of a policy's file.

    Raises
    ------
    UsageError
        No such file, or it is not a policy's, damaged, or holds what no policy can have come to.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    return unpacked(data, str(path))


def head_of(data: bytes, source: str) -> Head:
    """Return what stands in `policy.json` of a policy's bytes; nothing is built."""
    return _opened(data, source, lambda members: _head(members[HEAD]))


def unpacked(data: bytes, source: str) -> Parts:
    """Return the parts of a policy's bytes; errors name `source`."""
    return _opened(data, source, _built)


def _opened(data: bytes, source: str, build: Callable[[dict[str, bytes]], Found]) -> Found:
    """Return what `build` makes of the members of a policy's bytes, or raise a UsageError that names `source`."""
    if not is_whole(data):
        raise UsageError(f"{source}: not a policy's file, or damaged: its checksum is missing or wrong")
    try:
        members = saved.stored(io.BytesIO(data), len(data))
        if set(members) != {HEAD, ENCODER, AGENT, OPEN}:
            raise ValueError(f"its members are {', '.join(sorted(members))}")
        return build(members)
    except Exception as error:  # whatever a crafted zip, JSON text, encoder or player leads to
        raise UsageError(f"{source}: not a policy's file: {_one_line(error)}") from error


def _head(data: bytes) -> Head:
    if len(data) > MOST_HEAD:
        raise ValueError(f"{HEAD} has {len(data)} bytes")
    head = Head.model_validate_json(data)
    json.dumps(head.model_dump(), allow_nan=False)  # for settings and generators, whose members have no declared type
    return head


def _built(members: dict[str, bytes]) -> Parts:
    from banditlab.envs.encoding import Encoder

    head = _head(members[HEAD])
    rng = saved.decode(head.rng, "rng", {})
    if not isinstance(rng, np.random.Generator):
        raise ValueError("its generator is none")
    cls = registry().load("agents", head.agent)
    if not issubclass(cls, Agent):
        raise ValueError(f"{head.agent} is told the label: a policy's agent sees one bit")
    agent = cls.from_bytes(members[AGENT], AGENT)
    encoder = Encoder.from_bytes(members[ENCODER])
    core = Core(agent, head.classes, rng)
    core.generation, core.decisions = head.generation, head.decisions
    core.answered, core.right = head.answered, head.right
    K, d = agent.problem.n_classes, agent.problem.n_features
    if (K, d) != (len(head.classes), encoder.d) or not np.isclose(agent.problem.radius, encoder.radius, rtol=1e-9):
        raise ValueError("its agent, encoder and classes do not belong together")
    core.retired = {k for k in head.retired if 0 <= k < K}
    if len(core.retired) != len(head.retired) or len(core.retired) >= K:
        raise ValueError("its retired classes are none")
    pending = {name: core.admitted(record) for name, record in _pending(members[OPEN], d).items()}
    return Parts(head.uid, encoder, core, head.trained.model_dump(), pending)


def _pending(data: bytes, d: int) -> dict[str, Record]:
    head, arrays = saved.read(io.BytesIO(data), len(data))
    found = {}
    for i, (name, row, explored) in enumerate(zip(head["ids"], head["rows"], head["explored"], strict=True)):
        action, generation, has_payload = row
        x, p = arrays.pop(f"x{i}"), arrays.pop(f"p{i}")
        s = arrays.pop(f"s{i}") if has_payload else None
        vectors = [x, p] if s is None else [x, p, s]
        fits = all(v.ndim == 1 and v.dtype == np.float64 for v in vectors) and x.shape == (d,)
        whole = type(action) is int and type(generation) is int and explored in (None, True, False)
        if not (fits and whole and isinstance(name, str) and 0 <= action < len(p)):
            raise ValueError(f"its open decision {i} is none")
        found[name] = Record(x, action, p, explored, s, generation)
    if arrays:
        raise ValueError("there are arrays that belong to nothing")
    return found


def _one_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{HEAD}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:297]}..."


def class_names(names: list[Any]) -> list[Name]:
    """Return the classes' names as plain data of one type."""
    plain = [name.item() if isinstance(name, np.generic) else name for name in names]
    return plain if len({type(name) for name in plain}) == 1 else [str(name) for name in plain]
