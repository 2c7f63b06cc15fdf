"""Rows that a client of a policy gets wrong."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from audits.attacks.lines import Line
from banditlab import Policy
from banditlab.errors import UsageError
from banditlab.policy import train

TITLE = "Rows that a client gets wrong"
WORDS = """A policy that fills in missing entries receives a row with a fault and has to decide. An outcome is `named`
if the row is rejected with a one-line message, `right` if the context is that of the intended row, and `wrong` if the
context differs and there is no message."""
COUNT = 100
"""Rows of each kind."""


def faults(row: dict[str, Any]) -> dict[str, Any]:
    """Return rows with a fault each, by its name."""
    return {
        "no key": {},
        "a key in capitals": {key.upper(): value for key, value in row.items()},
        "a misspelt key": {**{key: value for key, value in row.items() if key != "age"}, "aeg": row["age"]},
        "a key more": {**row, "comment": "x"},
        "a number as text": {**row, "age": str(row["age"])},
        "1 or 0 for a truth value": {**row, "paid": int(row["paid"] == "true")},
        "a truth value": {**row, "paid": row["paid"] == "true"},
        "letters in another normal form": {**row, "town": row["town"].replace("\u00fc", "u\u0308")},
        "a number with a unit": {**row, "age": f"{row['age']} years"},
        "a key twice": json.dumps(row)[:-1] + ', "age": 99}',
    }


def attack(count: int, seed: int) -> list[Line]:
    """Return a line for each kind of fault."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.normal(40, 9, 300).round(1), "town": rng.choice(["Zürich", "Bern"], 300)})
    table["paid"], table["y"] = rng.choice(["true", "false"], 300), rng.choice(["a", "b"], 300)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "my.policy"
        train(table, "y", agent="banditron", missing="mean", out=file)
        policy = Policy.load(file)
    found: dict[str, list[str]] = {}
    for row in table.drop(columns="y").head(count).to_dict("records"):
        for name, faulty in faults(row).items():
            found.setdefault(name, []).append(_outcome(policy, row, faulty))
    return [Line(n, len(o), o.count("right"), o.count("named"), 0, o.count("wrong")) for n, o in found.items()]


def _outcome(policy: Any, row: dict[str, Any], faulty: Any) -> str:
    try:
        given = _context(policy, faulty)
    except UsageError:
        return "named"
    return "right" if given == _context(policy, row) else "wrong"


def _context(policy: Any, row: Any) -> bytes:
    found = policy._context(row)
    return bytes(found[0].tobytes())
