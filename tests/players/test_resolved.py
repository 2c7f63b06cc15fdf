"""Every setting as a constructor resolves it, defaults, "theory" and "auto" included, and the bounds there.

`resolved.csv` has them on record: a description names only what is set, so a default that moves moves stored runs. A version
that is raised, or a new player, writes the table anew: `python tests/players/test_resolved.py`.
"""

from __future__ import annotations

import contextlib
import csv
import sys
from functools import cache, partial
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
    "label-efficient": [{}],
    "apple-tasting": [{}],
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


def derived(kind: str, id_: str, settings: dict[str, Any], problem: Problem) -> dict[str, float | str]:
    """Return the settings and the bounds after 10 and 1,000 rounds; {} where the player plays no such problem."""
    with contextlib.suppress(IncompatibleError):
        player = registry().load(kind, id_)(problem, np.random.default_rng(0), **settings)
        bounds = {f"bound({T})": player.bound(T) for T in (10, 1000)}
        found = player.params() | {name: value for name, value in bounds.items() if value is not None}
        return {name: number_or_text(str(value)) for name, value in found.items()}
    return {}


def number_or_text(written: str) -> float | str:
    with contextlib.suppress(ValueError):
        return float(written)
    return written


def cases() -> dict[str, tuple[str, str, dict[str, Any], Problem]]:
    """Return what is built, by a name: what plays without another library at every problem, all else at the first one."""
    found = {}
    for kind in ("agents", "forecasters", "boosters", "weak_learners"):
        for entry in registry().entries(kind):
            everywhere = (
                kind in ("agents", "forecasters") and not entry.load().requires and entry.id != "boosted-exploration"
            )
            for settings in SETTINGS.get(entry.id, [{}]):
                words = ",".join(f"{name}={value}" for name, value in settings.items())
                for where, problem in PROBLEMS.items() if everywhere else [("plane", PROBLEMS["plane"])]:
                    found[f"{entry.id}/{words}/{where}"] = (kind, entry.id, settings, problem)
    return found


CASES = cases()


@cache
def read() -> dict[str, dict[str, float | str]]:
    """Return the table."""
    found: dict[str, dict[str, float | str]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            found.setdefault(line["player"], {})[line["setting"]] = number_or_text(line["value"])
    return found


@pytest.mark.parametrize("name", read())
def test_what_a_player_resolves_is_on_record(name: str) -> None:
    kind, id_, settings, problem = CASES[name]
    for module in getattr(registry().load(kind, id_), "requires", ()):
        pytest.importorskip(module)
    near = partial(pytest.approx, rel=1e-9, nan_ok=True)
    expected = {setting: near(value) if isinstance(value, float) else value for setting, value in read()[name].items()}
    assert derived(kind, id_, settings, problem) == expected


def main() -> None:
    """Write the table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["player", "setting", "value"])
        for name, case in CASES.items():
            writer.writerows([name, setting, value] for setting, value in derived(*case).items())


if __name__ == "__main__":
    sys.exit(main())
