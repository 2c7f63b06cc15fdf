"""Crafted files for `Player.load`: each is refused in one line, or loads and plays."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from audits.attacks.crafted import MUTATIONS
from audits.attacks.lines import Line
from audits.attacks.player_child import CODE, PLAYED, READY, REFUSED, REPLACED, STOPPED, TRACEBACK
from banditlab.registry import registry

TITLE = "Crafted files of agents, forecasters and boosters"
WORDS = """The attack changes files written by `Player.save`: those of every agent and forecaster, and of boosters over
compiled trees. A separate process with 8 GiB of memory loads the files and runs the loaded objects. An outcome is `right` if
the file was loaded and the object ran, or if a round was rejected with a one-line message. It is `named` if `load` rejected
the file with a one-line message that names it, `lost` if the process died or hung, and `wrong` if the object's class,
methods or names differ. `code run` counts pickles, `conftest.py` files and system commands that ran."""
COUNT = 12_000
SECONDS, COMPILING = 60.0, 900.0
"""How long one attack may take, and a player's first rounds, which may have to be compiled."""

Case = tuple[str, str, dict[str, Any]]
TREES: dict[str, Any] = {"weak_learner": "hoeffding-tree", "n_learners": 3, "grace_period": 5.0}
FORMS: tuple[Case, ...] = (
    ("forecasters", "folklore", {"form": "dual"}),
    ("forecasters", "gaf", {"form": "dual"}),
    ("forecasters", "folklore", {"regularization": 1e-6}),
    ("forecasters", "aggregating", {"sampler": "mala", "chains": 3, "steps": 2}),
    ("forecasters", "aggregating", {"sampler": "quadrature"}),
    ("forecasters", "kernel-aioli", {"kernel": "polynomial"}),
    ("agents", "obama-lite", {"sampler": "net", "members": 50}),
    ("agents", "obama-lite", {"sampler": "grid", "members": 50}),
    ("agents", "obama-lite", {"sampler": "mala", "chains": 3, "steps": 2}),
    ("agents", "fastcb", {"oracle": "b-grid"}),
    ("agents", "fastcb", {"oracle": "logistic"}),
    ("agents", "exploration", {"forecaster": "folklore", "gamma": "anytime", "form": "dual"}),
    ("agents", "boosted-exploration", {"booster": "adaboost-olm", "gamma": 0.5, **TREES}),
)
"""Players in forms whose state is another."""


def cases() -> list[Case]:
    """Return every player that can be saved, by kind, id and settings."""
    known: list[Case] = []
    for kind in ("agents", "forecasters", "boosters", "weak_learners"):
        for entry in registry().entries(kind):
            if entry.origin != "banditlab" or entry.id == "boosted-exploration":  # FORMS has it, with few trees
                continue
            if all(importlib.util.find_spec(module) for module in entry.load().requires):
                known.append((kind, entry.id, TREES if kind == "boosters" else {}))
    return known + list(FORMS)


def attack(count: int, seed: int) -> list[Line]:
    """Return a line for every kind of change, `count` attacks over all players."""
    found: dict[str, Counter[str]] = {words: Counter() for words, _ in MUTATIONS.values()}
    with tempfile.TemporaryDirectory() as folder:
        every = cases()
        each = -(-count // len(every))
        for number, case in enumerate(every):
            print(f"{case[1]} {case[2] or ''}", flush=True)
            for words, letter in attacked(case, min(each, count - number * each), seed, Path(folder) / str(number)):
                found[words][letter] += 1
    return [
        Line(
            words,
            letters.total(),
            right=letters[PLAYED] + letters[STOPPED],
            named=letters[REFUSED],
            lost=letters[DEAD],
            wrong=letters[REPLACED],
            tracebacks=letters[TRACEBACK],
            code_run=letters[CODE],
        )
        for words, letters in found.items()
    ]


DEAD = "D"
"""The letter of an attack at which the process died or hung."""


def attacked(case: Case, count: int, seed: int, folder: Path) -> list[tuple[str, str]]:
    """Return (the change in words, its letter) for `count` attacks on a player; a process that dies is followed by another."""
    folder.mkdir(parents=True)
    first = 0
    while first < count:
        order = {"folder": str(folder), "seed": seed, "cases": [(case, first, count)]}
        _run(json.dumps(order), folder)
        said = (folder / "said").read_text("utf-8").splitlines() if (folder / "said").exists() else []
        if not said or not json.loads(said[-1].split("] ")[0] + "]")[1] + 1 > first:
            raise RuntimeError(f"the player {case} could not be made, saved, loaded and played: see {folder}")
        first = json.loads(said[-1].split("] ")[0] + "]")[1] + 1
        if not said[-1].rstrip().endswith('"'):
            with (folder / "said").open("a") as file:
                file.write(f'{DEAD} ""\n')
    lines = (folder / "said").read_text("utf-8").splitlines()
    answers = []
    for line in lines:
        what, end = json.JSONDecoder().raw_decode(line)
        letter = line[end + 1]
        answers.append((what[2], letter))
        if letter not in (REFUSED, PLAYED, STOPPED):
            print(line, flush=True)  # which is to be mended
    return answers


def _run(order: str, folder: Path) -> None:
    """Run the child until it ends, dies, or makes no progress for too long."""
    child = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-m", "audits.attacks.player_child"],
        stdin=subprocess.PIPE,
        stderr=(folder / "stderr").open("a"),
        text=True,
    )
    assert child.stdin is not None
    child.stdin.write(order)
    child.stdin.close()
    log, size, since = folder / "log", -1, time.monotonic()
    while child.poll() is None:
        now = log.stat().st_size if log.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        begun = now > 0 and log.read_text("utf-8")[-1:] != READY
        if time.monotonic() - since > (SECONDS if begun else COMPILING):
            child.kill()
        time.sleep(0.05)
