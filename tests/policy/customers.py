"""A small table of customers, for the tests of policies."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

PLANS = {"free": "upgrade", "pro": "none", "team": "call"}


def rows(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return n rows of a table of customers, the label "offer" among them."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        plan = str(rng.choice(list(PLANS)))
        offer = PLANS[plan] if rng.random() < 0.8 else str(rng.choice(list(PLANS.values())))
        found.append(
            {
                "plan": plan,
                "age": int(rng.integers(18, 80)),
                "visits": round(float(rng.exponential(5)), 2),
                "offer": offer,
            }
        )
    return found


def write_table(path: Path, n: int = 200) -> Path:
    """Write rows as a CSV file."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["plan", "age", "visits", "offer"])
        writer.writeheader()
        writer.writerows(rows(n))
    return path


def new_rows(n: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return rows to decide, without the label."""
    return [{name: value for name, value in row.items() if name != "offer"} for row in rows(n, seed)]
