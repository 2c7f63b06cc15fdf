"""A policy as one file: a zip of plain arrays and a header, in the format of `banditlab.players.saved`.

No code in the file is run. The header contains names, counts, provenance and the agent's own header. The arrays are the
agent's `state...`, the encoder's bytes (`encoder`), decisions without feedback (`open...`), and the file of the
holdback policy (`other`). Checksums detect damage; they are not a signature.
"""

from __future__ import annotations

import json
import os
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field, field_validator

from banditlab.errors import UsageError
from banditlab.players import saved
from banditlab.players.agent import Agent
from banditlab.players.player import Header
from banditlab.policy.choice import Name, Record
from banditlab.policy.core import Core
from banditlab.policy.unanswered import Unanswered, checked
from banditlab.registry import registry

FORMAT: Literal[1] = 1
ENCODER, STATE, OTHER = "encoder", "state", "other"
COUNTS = ("generation", "decisions", "answered", "right", "closed")
"""Attributes of a core that are stored in the header."""
SQLITE = b"SQLite format 3\0"
"""The first bytes of a log file."""


class Plain(saved.Plain):
    """Plain data, validated by type, with finite numbers only."""

    model_config = ConfigDict(allow_inf_nan=False)


class Training(Plain):
    """How a policy was trained."""

    file: str
    content: str
    """The data's digest."""
    label: str
    rows: int = Field(ge=0)
    agent: str
    settings: dict[str, Any]
    seed: int = Field(ge=0)
    mistakes: int = Field(ge=0)
    expected_mistakes: float = Field(ge=0.0)
    constant_mistakes: int = Field(ge=0)
    classes: int = Field(ge=2)
    several_right: bool = False
    """Whether several classes may be right in a row."""
    costs: dict[str, Annotated[float, Field(ge=0.0)]] = {}
    """The mean cost of each class over the rows, if known."""
    mean_cost: float | None = None
    """The mean cost of the chosen classes."""
    at: str
    versions: dict[str, str | int]
    machine: str


class Waiting(Plain):
    """A decision without feedback so far; its arrays are `open.N.x`, `open.N.p` and, if `payload`, `open.N.payload`."""

    id: str
    at: float = 0.0
    action: int
    generation: int
    explored: bool | None
    payload: bool


class Head(Plain):
    """A policy's header."""

    format: Literal[1] = FORMAT
    uid: str = Field(pattern=r"^[0-9a-f]{32}$")
    """An id that is set when the policy is trained, because a log belongs to one policy."""
    agent: str = Field(max_length=200)
    classes: list[str] | list[int] | list[float] | list[bool]
    retired: list[int]
    generation: int = Field(ge=0)
    decisions: int = Field(ge=0)
    answered: int = Field(ge=0)
    right: int = Field(ge=0)
    closed: int = Field(default=0, ge=0)
    """The number of decisions in `answered` that were closed without feedback."""
    unanswered: tuple[str, str] = ("ignored", "")
    """The rule for decisions without feedback, and the deadline of feedback."""
    floor: float = 0.0
    holdback: float = 0.0
    added: list[list[int]] = []
    """The index of each added class, with the number of times it was chosen."""
    rng: Any
    trained: Training
    player: Header
    waiting: list[Waiting]

    @field_validator("classes")
    @classmethod
    def _named_once(cls, names: list[Any]) -> list[Any]:
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError("at least two classes, with different names, are needed")
        return names


class Parts(NamedTuple):
    """The parts of a policy."""

    uid: str
    encoder: Any
    core: Core
    trained: dict[str, Any]
    pending: dict[str, tuple[float, Record]]
    """Decisions without feedback by id, the oldest first, each with its time."""
    rule: Unanswered = Unanswered()
    """The rule for decisions without feedback."""
    other: Parts | None = None
    """The holdback policy; None for uniform choice, or without a holdback."""


# ------------------------------------------------------------------------------------------------------------------ write


def packed(parts: Parts) -> bytes:
    """Return the bytes of a policy's file."""
    core = parts.core
    player, arrays = core.agent.to_data()
    arrays[ENCODER] = np.frombuffer(parts.encoder.to_bytes(), np.uint8)
    if parts.other is not None and core.other is not None:
        arrays[OTHER] = np.frombuffer(packed(parts.other._replace(core=core.other)), np.uint8)
    waiting = []
    for i, (name, (at, record)) in enumerate(parts.pending.items()):
        explored = None if record.explored is None else bool(record.explored)
        one = {"id": name, "at": at, "action": int(record.action), "generation": record.generation}
        waiting.append(one | {"explored": explored, "payload": record.payload is not None})
        arrays |= {f"open.{i}.x": record.context, f"open.{i}.p": record.probabilities}
        if record.payload is not None:
            arrays[f"open.{i}.payload"] = record.payload
    head: dict[str, Any] = {"format": FORMAT, "uid": parts.uid, "agent": core.agent.id, "classes": core.classes}
    head |= {name: getattr(core, name) for name in (*COUNTS, "floor", "holdback")}
    head |= {"retired": sorted(core.retired), "added": list(core.added.items()), "unanswered": list(parts.rule)}
    head |= {"rng": saved.encode(core.rng, "rng", {}), "trained": parts.trained, "player": player, "waiting": waiting}
    return saved.packed(head, arrays)


# ------------------------------------------------------------------------------------------------------------------- read


def read(path: str | os.PathLike[str]) -> Parts:
    """Return the parts of a policy's file.

    Raises
    ------
    UsageError
        The file does not exist, is not a policy's file, is damaged, or has an impossible state.
    """
    data = saved.read_whole(path)
    if data.startswith(SQLITE):
        raise UsageError(f"{path}: a policy's log, not its file; use Policy.resume({str(path)!r})")
    return unpacked(data, str(path))


def unpacked(data: bytes, source: str) -> Parts:
    """Return the parts of a policy's bytes; errors name `source`."""
    head, arrays = opened(data, source)
    try:
        return _built(head, arrays, len(data))
    except Exception as error:  # a crafted header, encoder or player may raise any exception
        raise UsageError(f"{source}: not a policy's file: {saved.one_line(error)}") from error


def opened(data: bytes, source: str) -> tuple[Head, dict[str, np.ndarray]]:
    """Return the header and the arrays of a policy's bytes without building the policy."""
    try:
        head, arrays = saved.unpacked(data, Head)
        json.dumps([head.trained.settings, head.rng], allow_nan=False)  # their members have no declared type
    except Exception as error:  # a damaged or crafted file may raise any exception
        raise UsageError(f"{source}: not a policy's file, or damaged: {saved.one_line(error)}") from error
    return head, arrays


def _built(head: Head, arrays: dict[str, np.ndarray], size: int) -> Parts:
    from banditlab.envs.encoding import Encoder

    rng = saved.decode(head.rng, "rng", {})
    if not isinstance(rng, np.random.Generator):
        raise ValueError("its generator is invalid")
    cls = registry().load("agents", head.agent)
    if not issubclass(cls, Agent):
        raise ValueError(f"{head.agent} observes labels, and a policy's agent must learn from one bit")
    encoder = Encoder.from_bytes(arrays.pop(ENCODER).tobytes())
    state = {name: arrays.pop(name) for name in list(arrays) if name.split(".")[0] == STATE}
    agent = cls.from_data(head.player, state, size, "its agent")
    core = Core(agent, head.classes, rng)
    for name in COUNTS:
        setattr(core, name, getattr(head, name))
    K, d = agent.problem.n_classes, agent.problem.n_features
    if (K, d) != (len(head.classes), encoder.d) or not np.isclose(agent.problem.radius, encoder.radius, rtol=1e-9):
        raise ValueError("its agent, encoder and classes do not match")
    core.retired = {k for k in head.retired if 0 <= k < K}
    if len(core.retired) != len(head.retired) or len(core.retired) >= K:
        raise ValueError("its retired classes are not classes of the policy")
    core.set_floor(head.floor)
    other = unpacked(arrays.pop(OTHER).tobytes(), "its other policy") if OTHER in arrays else None
    core.added = {k: n for k, n in head.added}  # noqa: C416 - pairs are lists
    if len(core.added) < len(head.added) or any(not 0 <= k < K or n < 0 for k, n in head.added):
        raise ValueError("its added classes are invalid")
    pending = {each.id: (each.at, core.admitted(_record(i, each, arrays, d))) for i, each in enumerate(head.waiting)}
    if arrays:
        raise ValueError("it has arrays without a use")
    rule = checked(*head.unanswered) or Unanswered()
    parts = Parts(head.uid, encoder, core, head.trained.model_dump(), pending, rule)
    return with_holdback(parts, head.holdback, other)


def with_holdback(parts: Parts, share: float, other: Parts | None) -> Parts:
    """Return a policy in which another policy (None: uniform choice) makes a fraction of the decisions, the holdback."""
    if other is not None:
        refuse_strangers(parts, other, "holdback_policy")
        other.core.set_holdback(0.0)
        other = other._replace(pending={}, other=None)
    parts.core.set_holdback(share, other and other.core)
    return parts._replace(other=other)


def refuse_strangers(parts: Parts, other: Parts, what: str) -> None:
    """Raise a UsageError if the other policy's columns, their encoding, or its classes differ."""
    classes = other.core.classes
    if parts.encoder.to_bytes() != other.encoder.to_bytes() or parts.core.classes[: len(classes)] != classes:
        raise UsageError(f"{what}: it must have the columns, encoding and classes of the policy")


def _record(i: int, waiting: Waiting, arrays: dict[str, np.ndarray], d: int) -> Record:
    x, p = arrays.pop(f"open.{i}.x"), arrays.pop(f"open.{i}.p")
    payload = arrays.pop(f"open.{i}.payload") if waiting.payload else None
    vectors = [x, p] if payload is None else [x, p, payload]
    fits = all(v.ndim == 1 and v.dtype == np.float64 for v in vectors) and x.shape == (d,)
    if not (fits and 0 <= waiting.action < len(p)):
        raise ValueError(f"its open decision {i} is invalid")
    return Record(x, waiting.action, p, waiting.explored, payload, waiting.generation)


def class_names(names: list[Any]) -> list[Name]:
    """Return the classes' names as plain data of one type."""
    plain = [name.item() if isinstance(name, np.generic) else name for name in names]
    return plain if len({type(name) for name in plain}) == 1 else [str(name) for name in plain]
