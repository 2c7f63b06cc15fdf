"""Vowpal Wabbit's dsjson: one JSON object a line, a decision with its probabilities and its cost."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from banditlab.errors import UsageError
from banditlab.policy.logged import LARGEST, Part, Source, doubled, hashed

CHUNK = 2**14
"""Lines of a part."""
ROUNDED = 1e-4
"""How far probabilities, which Vowpal Wabbit writes with 7 digits, may be from what they should be."""
LEFT_OUT = "{n:,} lines are left out: {why}"
SKIPPED = "_skipLearn says that nothing is to be learnt from them"
OBSERVED = "they hold no decision but an observation, or no action"
BROKEN = "lines that are no JSON object of a decision with its label"


class Line(NamedTuple):
    """One decision of a dsjson file.

    Attributes
    ----------
    id
        EventId.
    cost
        _label_cost, minus the reward.
    probability
        _label_probability, with which the action was chosen.
    action
        _labelIndex, from 0, or _label_Action - 1, or the first of `a` - 1.
    actions, probabilities
        a (from 1) and p: the actions in the order they were offered, with their probabilities.
    shared, multi
        c: the context, and the features of each action.
    drop
        pdrop, with which such events were not written.
    """

    id: str
    cost: float
    probability: float
    action: int
    actions: list[int]
    probabilities: list[float]
    shared: dict[str, Any]
    multi: list[dict[str, Any]]
    drop: float


def line_of(text: str) -> Line | str:
    """Return the decision of a line, or why it has none: `SKIPPED`, `OBSERVED` or `BROKEN`."""
    try:
        found = json.loads(text)
        if found.get("_skipLearn"):
            return SKIPPED
        if not found.get("a"):
            return OBSERVED
        shared = dict(found["c"])
        index = found.get("_labelIndex", found.get("_label_Action", found["a"][0]) - 1)
        return Line(
            str(found.get("EventId", "")),
            float(found["_label_cost"]),
            float(found["_label_probability"]),
            int(index),
            [int(k) for k in found["a"]],
            [float(p) for p in found.get("p", ())],
            shared,
            list(shared.pop("_multi")),
            float(found.get("pdrop", 0.0)),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return BROKEN


def read_dsjson(path: str, policy: str | None) -> Source:
    """Return the log of a dsjson file, or raise a UsageError. Actions are named by their places in _multi, from 1."""
    if policy not in (None, "uniform"):
        raise UsageError(f"--policy {policy}: it is of tables and event logs; {path} has no rows for it")
    counts, ids, K, rounds, whole = Counter[str](), [], 0, 0, True
    for line in map(line_of, _texts(path)):
        if isinstance(line, str):
            counts[line] += 1
            continue
        rounds, K = rounds + 1, max(K, len(line.multi))
        whole = whole and len(line.probabilities) == len(line.actions)
        ids += [zlib.crc32(line.id.encode()) << 32 | zlib.adler32(line.id.encode())] if line.id else []
        counts["lines with a pdrop, which thins the log"] += line.drop != 0.0
        counts["lines whose a does not name each action of _multi once"] += not _is_order(line)
    notes = [LEFT_OUT.format(n=counts.pop(why), why=why) for why in (SKIPPED, OBSERVED) if counts[why]]
    faults = +counts + doubled([np.array(ids, np.uint64)])
    if not rounds and not faults:
        raise UsageError(f"{path}: no line is a decision in dsjson")
    lines = (line for line in map(line_of, _texts(path)) if not isinstance(line, str) and _is_order(line))
    parts = (_part(some, K, policy, whole) for some in iter(lambda: list(islice(lines, CHUNK)), []))
    return Source([str(k + 1) for k in range(K)], rounds, parts, faults, notes)


def _texts(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            yield from (line for line in file if line.strip())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})") from None


def _is_order(line: Line) -> bool:
    return sorted(line.actions) == [*range(1, len(line.multi) + 1)]


def _part(lines: list[Line], K: int, policy: str | None, whole: bool) -> Part:
    m = len(lines)
    p, able = np.zeros((2, m, K))
    for i, line in enumerate(lines):
        able[i, : len(line.multi)] = 1.0
        if whole:
            p[i, np.array(line.actions) - 1] = line.probabilities
    action = np.array([line.action for line in lines])
    chosen = np.array([line.probability for line in lines])
    sums = p.sum(axis=1, keepdims=True)
    p = np.divide(p, sums, out=p, where=np.abs(sums - 1.0) <= ROUNDED)
    known = (action >= 0) & (action < able.sum(axis=1))
    own = p[np.arange(m), np.where(known, action, 0)]
    differ = whole & known & (np.abs(own - chosen) > ROUNDED)
    return Part(
        np.where(known, action, -1).astype(np.float64),
        -np.array([line.cost for line in lines]),
        np.where(differ[:, None], np.nan, p) if whole else chosen,
        hashed([[*_features("", line.shared)] for line in lines]),
        able / able.sum(axis=1, keepdims=True) if policy == "uniform" else None,
    )


def _features(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Yield the features of a JSON value: names from the outside in, numbers as values, texts as names."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            if not str(key).startswith("_") or key == "_text":
                yield from _features(f"{name} {key}", each)
    elif isinstance(value, str):
        yield from ((f"{name}={word}", 1.0) for word in (value.split() if name.endswith("_text") else [value]))
    elif value:
        yield name, float(max(-LARGEST, min(LARGEST, value)))
