"""What "theory" and "auto" come to, and the bounds there, at three problems: every number that a constructor derives.

`resolved.csv` has them on record. A version that is raised, or a new player, writes the table anew:
`python tests/players/test_resolved.py`.
"""

from __future__ import annotations

import contextlib
import csv
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditlab.errors import IncompatibleError
from banditlab.problem import Problem
from banditlab.registry import registry

TABLE = Path(__file__).with_name("resolved.csv")
PROBLEMS = {"plane": Problem(5, 3, 2.0, 1000), "two": Problem(4, 2, 0.5, 60), "long": Problem(20, 7, 9.0, 10**6)}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "exploration": [{}, {"decoding": "sample"}, {"forecaster": "aioli"}, {"gamma": "anytime"}],
    "fastcb": [{}, {"oracle": "logistic"}, {"oracle": "b-grid"}],
    "squarecb": [{}, {"oracle": "logistic"}, {"oracle": "b-grid"}],
    "folklore": [{}, {"curvature": "tight"}, {"curvature": "printed", "linear_term": "printed"}, {"norm_bound": 5.0}],
    "aioli": [{}, {"curvature": "tight"}, {"norm_bound": 5.0}],
    "gaf": [{}, {"curvature": "tight"}, {"smoothing": "theory"}],
    "ftrl": [{}, {"regularization": "theory"}],
    "ogd": [{}, {"norm_bound": 5.0}],
    "gaptron": [{}, {"loss": "hinge"}, {"loss": "smooth-hinge"}, {"step": "wide"}, {"decoding": "half-log"}],
    "rdue": [{}, {"step": "adaptive"}],
    "pnewtron": [{}, {"norm_bound": "paper"}],
}


def derived(kind: str, id_: str, settings: dict[str, Any], problem: Problem) -> dict[str, float]:
    """Return the settings that are numbers and the bounds after 10 and 1,000 rounds; {} where the player plays no such."""
    with contextlib.suppress(IncompatibleError):
        player = registry().load(kind, id_)(problem, np.random.default_rng(0), **settings)
        found = {name: value for name, value in player.params().items() if isinstance(value, float)}
        bounds = {f"bound({T})": player.bound(T) for T in (10, 1000)}
        return found | {name: float(value) for name, value in bounds.items() if value is not None}
    return {}


def cases() -> dict[str, tuple[str, str, dict[str, Any], Problem]]:
    """Return what is played, by a name."""
    found = {}
    for kind in ("agents", "forecasters"):
        for entry in registry().entries(kind):
            if entry.origin == "banditlab" and not entry.load().requires and entry.id != "boosted-exploration":
                for settings in SETTINGS.get(entry.id, [{}]):
                    words = ",".join(f"{name}={value}" for name, value in settings.items())
                    for where, problem in PROBLEMS.items():
                        found[f"{entry.id}/{words}/{where}"] = (kind, entry.id, settings, problem)
    return found


@cache
def read() -> dict[str, dict[str, float]]:
    """Return the table."""
    found: dict[str, dict[str, float]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            found.setdefault(line["player"], {})[line["number"]] = float(line["value"])
    return found


@pytest.mark.parametrize("name", read())
def test_what_a_player_derives_is_on_record(name: str) -> None:
    assert derived(*cases()[name]) == pytest.approx(read()[name], rel=1e-9, nan_ok=True)


def main() -> None:
    """Write the table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["player", "number", "value"])
        for name, case in cases().items():
            writer.writerows([name, number, repr(float(value))] for number, value in derived(*case).items())


if __name__ == "__main__":
    sys.exit(main())
