"""What a saved player consists of: names, types and shapes of its arrays, so that files of this format go on being read.

`shapes.csv` has a line for each array, scratch included: a file brings it, and it must fit. With a format or version that is
raised, and with a new player, it is written anew: `python tests/players/test_shapes.py`.
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
from banditlab.players.saved import encode
from banditlab.problem import Problem
from banditlab.registry import registry

TABLE = Path(__file__).with_name("shapes.csv")
TREES = {"weak_learner": "hoeffding-tree", "n_learners": 2}
MODELS = {"weak_learner": "forecaster", "n_learners": 2}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "adaboost-olm": [TREES, MODELS],
    "aggregating": [{}, {"sampler": "mala"}, {"sampler": "quadrature"}],
    "b-grid": [{}, {"member": "aioli"}],
    "boosted-exploration": [MODELS],
    "exploration": [{}, {"forecaster": "ogd"}],
    "fastcb": [
        {},
        {"challenger": 0.0},
        {"oracle": "logistic"},
        {"oracle": "b-grid", "grid_size": 3},
        {"second_order": "diagonal"},
        {"second_order": "sketch", "sketch_size": 3},
    ],
    "folklore": [{}, {"form": "dual"}],
    "gaf": [{}, {"form": "dual"}],
    "linucb": [{}, {"second_order": "diagonal"}, {"second_order": "sketch"}],
    "obama-lite": [{"sampler": sampler} for sampler in ("laplace", "net", "grid", "mala")],
    "online-mbbm": [TREES, {**TREES, "potentials": "remembered"}],
    "stackcb": [{}, {"second_order": "diagonal"}],
    "ons": [{}, {"projection": "none"}],
}
LARGE = ("fastcb", "linucb", "squarecb")
"""Players that look ahead within a block where there are many features."""


def cases() -> list[tuple[str, str, dict[str, Any], tuple[int, int]]]:
    """Return kind, id, settings and (K, d)."""
    found = []
    for kind in ("agents", "forecasters", "boosters"):
        for entry in registry().entries(kind):
            if entry.origin == "banditlab" and not getattr(entry.load(), "requires", ()):
                several = SETTINGS.get(entry.id, [TREES if kind == "boosters" else {}])
                found += [(kind, entry.id, settings, (3, 5)) for settings in several]
                found += [(kind, entry.id, several[0], (10, 256))] * (entry.id in LARGE)
    return found


def shapes(kind: str, id_: str, settings: dict[str, Any], size: tuple[int, int]) -> dict[str, str]:
    """Return type and shape of every array, by name."""
    player = None
    for K, d in (size, (2, 2), (2, 1)):  # some play two classes, or one feature, only
        with contextlib.suppress(IncompatibleError):
            player = registry().load(kind, id_)(Problem(d, K, 2.0, 100), np.random.default_rng(0), **settings)
            break
    assert player is not None
    arrays: dict[str, np.ndarray] = {}
    encode(player.get_state(), "state", arrays)
    return {name: f"{array.dtype} {'x'.join(map(str, array.shape))}" for name, array in arrays.items()}


def title(kind: str, id_: str, settings: dict[str, Any], size: tuple[int, int]) -> str:
    """Return a case's name."""
    return "/".join([kind, id_, *(f"{name}={value}" for name, value in settings.items()), f"{size[0]}x{size[1]}"])


@cache
def read() -> dict[str, dict[str, str]]:
    """Return the table."""
    found: dict[str, dict[str, str]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            found.setdefault(line["player"], {})[line["array"]] = line["shape"]
    return found


CASES = {title(*case): case for case in cases()}


@pytest.mark.parametrize("name", read())
def test_a_saved_player_has_the_arrays_on_record(name: str) -> None:
    assert shapes(*CASES[name]) == read()[name]


def main() -> None:
    """Write the table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["player", "array", "shape"])
        writer.writerows([title(*case), *each] for case in cases() for each in shapes(*case).items())


if __name__ == "__main__":
    sys.exit(main())
