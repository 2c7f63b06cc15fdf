"""Vowpal Wabbit's dsjson: one JSON object per line, which is a decision with its probabilities and cost."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd

from banditlab.offpolicy.log import Floats, Log
from banditlab.policy.logged import LARGEST, OBJECTS, Source, doubled, hashed, hashes

ROUNDED = 1e-4
"""The tolerance for probabilities, which Vowpal Wabbit writes with 7 digits."""
SKIPPED = "_skipLearn excludes them from learning"
OBSERVED = "they have an observation instead of a decision, or no action"
BROKEN = "lines that are not a JSON object with a decision and its label"
DIFFERS = "lines in which p and _label_probability differ"


class Line(NamedTuple):
    """One decision of a dsjson file.

    Attributes
    ----------
    id
        EventId.
    cost
        _label_cost, which is the reward times -1.
    probability
        _label_probability, the probability with which the action was chosen.
    action
        The index of the chosen action, from 0: _labelIndex, else _label_Action - 1, else the first entry of `a` minus
        1.
    actions, probabilities
        a (from 1) and p: the actions in the order in which they were offered, with their probabilities.
    row
        The texts and numbers of the context c, by their paths of keys, as in "user.age".
    size
        The number of actions, which is the number of entries of _multi in c.
    drop
        pdrop, the probability with which such events were dropped from the log.
    """

    id: str
    cost: float
    probability: float
    action: int
    actions: list[int]
    probabilities: list[float]
    row: dict[str, str | float]
    size: int
    drop: float


def line_of(text: str) -> Line | str:
    """Return the decision of a line, or the reason why it has none: `SKIPPED`, `OBSERVED` or `BROKEN`."""
    try:
        found = json.loads(text, parse_constant=int)  # raises a ValueError, because JSON has no NaN
        if found.get("_skipLearn"):
            return SKIPPED
        if not found.get("a"):
            return OBSERVED
        context = dict(found["c"])
        index = found.get("_labelIndex", found.get("_label_Action", found["a"][0]) - 1)
        line = Line(
            str(found.get("EventId", "")),
            float(found["_label_cost"]),
            float(found["_label_probability"]),
            int(index),
            [int(k) for k in found["a"]],
            [float(p) for p in found.get("p", ())],
            dict(_entries("", context)),
            len(list(context["_multi"])),
            float(found.get("pdrop", 0.0)),
        )
        if "\\u" in text:  # an escape may be half of a surrogate pair
            "".join([line.id, *line.row, *map(str, line.row.values())]).encode()
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return BROKEN
    return line


def read_dsjson(path: str, others: Sequence[str] | None) -> Source:
    """Return the log of a dsjson file, or raise a UsageError. Actions are named by their positions in _multi, from 1.

    Each line is parsed once. The fields for the evaluation are stored in a temporary file, about as large as the log,
    until all lines are read. `others` contains further names of actions. Unless it is None, the rows are also stored.
    """
    stored, counts, ids = tempfile.TemporaryFile(), Counter[str](), []  # noqa: SIM115
    rounds, K, whole = 0, 0, True
    for found in _lines(path):
        counts.update(line for line in found if isinstance(line, str))
        lines = [line for line in found if not isinstance(line, str)]
        ids.append(hashes(line.id for line in lines if line.id))
        counts["lines with a pdrop, from a subsampled log"] += sum(line.drop != 0.0 for line in lines)
        ordered = [line for line in lines if sorted(line.actions) == [*range(1, line.size + 1)]]
        ordered = [line for line in ordered if len(line.probabilities) in (0, line.size)]
        counts["lines in which a or p does not have each action of _multi once"] += len(lines) - len(ordered)
        rounds, K = rounds + len(lines), max([K, *(line.size for line in lines)])
        whole = whole and all(line.probabilities for line in lines)
        if ordered:
            rows = None if others is None else [line.row for line in ordered]
            pickle.dump((*_arrays(ordered, counts), rows), stored, pickle.HIGHEST_PROTOCOL)
    notes = [f"{counts.pop(why):,} lines are left out: {why}" for why in (SKIPPED, OBSERVED) if counts[why]]
    faults = +counts + doubled(ids)
    names = [*dict.fromkeys([*(str(k + 1) for k in range(K)), *(others or ())])]
    return Source(names, rounds, _parts(stored, len(names), whole), faults, notes)


def _lines(path: str) -> Iterator[list[Line | str]]:
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        found = (line_of(text) for text in file if text.strip())
        yield from iter(lambda: list(islice(found, OBJECTS)), [])


def _arrays(lines: list[Line], counts: Counter[str]) -> tuple[Any, ...]:
    """Return six arrays of m lines: actions, rewards and _label_probability (m,); p, and 1.0 for each possible action,
    both (m, largest number of actions); and the hashed contexts.
    """
    sizes = np.array([line.size for line in lines])
    able = (np.arange(sizes.max()) < sizes[:, None]).astype(np.float64)
    p = np.zeros(able.shape)
    for row, line in zip(p, lines, strict=True):
        if line.probabilities:
            row[np.array(line.actions) - 1] = line.probabilities
    sums = p.sum(axis=1, keepdims=True)
    p = np.divide(p, sums, out=p, where=np.abs(sums - 1.0) <= ROUNDED)
    action = np.array([line.action if 0 <= line.action < line.size else -1 for line in lines])
    chosen = np.array([line.probability for line in lines])
    differs = np.abs(p[np.arange(len(p)), action] - chosen) > ROUNDED
    counts[DIFFERS] += int(np.count_nonzero(differs & (action >= 0) & p.any(axis=1)))
    rewards = np.array([-line.cost for line in lines])
    return action, rewards, chosen, p, able, hashed([*_words(line.row)] for line in lines)


def _parts(stored: IO[bytes], K: int, whole: bool) -> Iterator[tuple[Log, Floats, pd.DataFrame]]:
    with stored:
        end = stored.tell()
        stored.seek(0)
        while stored.tell() < end:
            action, rewards, chosen, p, able, contexts, rows = pickle.load(stored)
            p, able = (np.pad(x, ((0, 0), (0, K - x.shape[1]))) for x in (p, able))
            target = able / able.sum(axis=1, keepdims=True)
            yield Log(action, rewards, p if whole else chosen, target), contexts.toarray(), pd.DataFrame(rows)


def _entries(name: str, value: Any) -> Iterator[tuple[str, str | float]]:
    """Yield the texts and numbers of a JSON value, each with its path of keys."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            if not str(key).startswith("_") or key == "_text":
                yield from _entries(f"{name}.{key}" if name else str(key), each)
    elif value is not None:
        yield name, value if isinstance(value, str) else float(max(-LARGEST, min(LARGEST, value)))


def _words(row: dict[str, str | float]) -> Iterator[tuple[str, float]]:
    """Yield names and values of a row's features; a text becomes a part of the name, with value 1."""
    for name, value in row.items():
        if isinstance(value, str):
            yield from ((f"{name}={word}", 1.0) for word in (value.split() if name.endswith("_text") else [value]))
        else:
            yield name, value
