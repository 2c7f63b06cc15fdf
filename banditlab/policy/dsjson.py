"""Vowpal Wabbit's dsjson: one JSON object a line, a decision with its probabilities and its cost."""

from __future__ import annotations

import json
import pickle
import tempfile
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any, NamedTuple

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
BROKEN = "lines that are not a JSON object of a decision with its label"


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
        a (from 1) and p: the actions in the order in which they were offered, with their probabilities.
    shared, multi
        c: the context, and the features of each action.
    drop
        pdrop, the probability with which such events were not written.
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
    """Return the log of a dsjson file, or raise a UsageError. Actions are named by their positions in _multi, from 1.

    Each line is parsed once. The fields for the evaluation are stored in a temporary file, about as large as the log,
    until all lines are read.
    """
    if policy not in (None, "uniform"):
        raise UsageError(f"--policy {policy}: it applies to tables and event logs; {path} has no rows")
    stored, counts, ids = tempfile.TemporaryFile(), Counter[str](), array("Q")  # noqa: SIM115
    texts, rounds, K, whole = _texts(path), 0, 0, True
    for some in iter(lambda: list(islice(texts, CHUNK)), []):
        found = list(map(line_of, some))
        counts.update(line for line in found if isinstance(line, str))
        lines = [line for line in found if not isinstance(line, str)]
        ids.extend(_hash(line.id) for line in lines if line.id)
        counts["lines with a pdrop, which thins the log"] += sum(line.drop != 0.0 for line in lines)
        ordered = [line for line in lines if sorted(line.actions) == [*range(1, len(line.multi) + 1)]]
        counts["lines whose a does not name each action of _multi once"] += len(lines) - len(ordered)
        rounds, K = rounds + len(lines), max([K, *(len(line.multi) for line in lines)])
        whole = whole and all(len(line.probabilities) == len(line.actions) for line in lines)
        if ordered:
            pickle.dump(_arrays(ordered), stored, pickle.HIGHEST_PROTOCOL)
    notes = [LEFT_OUT.format(n=counts.pop(why), why=why) for why in (SKIPPED, OBSERVED) if counts[why]]
    faults = +counts + doubled([np.array(ids, np.uint64)])
    del ids
    if not rounds and not faults:
        stored.close()
        raise UsageError(f"{path}: no line is a decision in the dsjson format")
    return Source([str(k + 1) for k in range(K)], rounds, _parts(stored, K, policy, whole), faults, notes)


def _texts(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            yield from (line for line in file if line.strip())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})") from None


def _hash(id_: str) -> int:
    return zlib.crc32(id_.encode()) << 32 | zlib.adler32(id_.encode())


def _arrays(lines: list[Line]) -> tuple[Any, ...]:
    """Return actions, costs, probabilities, numbers of actions (m,), p (m, largest number of actions), and hashed contexts."""
    sizes = np.array([len(line.multi) for line in lines])
    p = np.zeros((len(lines), sizes.max()))
    for i, line in enumerate(lines):
        if len(line.probabilities) == len(line.actions):
            p[i, np.array(line.actions) - 1] = line.probabilities
    numbers = (
        np.array([line[j] for line in lines]) for j in map(Line._fields.index, ("action", "cost", "probability"))
    )
    return (*numbers, sizes, p, hashed([*_features("", line.shared)] for line in lines))


def _parts(stored: IO[bytes], K: int, policy: str | None, whole: bool) -> Iterator[Part]:
    with stored:
        end = stored.tell()
        stored.seek(0)
        while stored.tell() < end:
            action, cost, chosen, sizes, p, contexts = pickle.load(stored)
            p = np.pad(p, ((0, 0), (0, K - p.shape[1])))
            able = (np.arange(K) < sizes[:, None]).astype(np.float64)
            sums = p.sum(axis=1, keepdims=True)
            p = np.divide(p, sums, out=p, where=np.abs(sums - 1.0) <= ROUNDED)
            known = (action >= 0) & (action < sizes)
            own = p[np.arange(len(p)), np.where(known, action, 0).astype(np.intp)]
            differ = whole & known & (np.abs(own - chosen) > ROUNDED)
            yield Part(
                np.where(known, action, -1).astype(np.float64),
                -cost,
                np.where(differ[:, None], np.nan, p) if whole else chosen,
                contexts.toarray(),
                able / sizes[:, None] if policy == "uniform" else None,
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
