"""Loads crafted players and plays them, in a separate process: `python -m audits.attacks.player_child`.

It writes a letter for every attack, so that whoever waits knows the one at which it died or hung.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from audits.attacks.crafted import MUTATIONS, Saved
from banditlab.errors import BanditlabError, IncompatibleError
from banditlab.players.actor import Trace
from banditlab.players.label_agent import LabelAgent
from banditlab.players.player import Player
from banditlab.problem import Problem
from banditlab.registry import registry

ROUNDS, D = 40, 4
"""Rounds played before a player is saved, and the features of its contexts."""
AFTER = 8
"""Rounds played after it was loaded, one by one, and as many in a block."""
READY, REFUSED, PLAYED, STOPPED, TRACEBACK, CODE, REPLACED = "WRPSTCM"
"""The letters: an unharmed player was played; refused in one line; played; a round refused in one line; the rest is wrong."""
RUNS = {"os.system", "subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn"}
MEMORY = 8 * 2**30
"""Bytes of address space: what asks for more gets a MemoryError, not the machine."""


def made(kind: str, id_: str, settings: dict[str, Any]) -> Player:
    """Return a player that has played ROUNDS rounds, at K = 3, or K = 2 where three are too many."""
    cls, error = registry().load(kind, id_), None
    for K in (3, 2):
        for d in (D, 1):
            try:
                player: Player = cls(Problem(d, K, 2.0, 400), np.random.default_rng(1), **settings)
            except IncompatibleError as why:
                error = why
                continue
            play(player, 0, ROUNDS)
            return player
    raise error or AssertionError


def play(player: Any, first: int, stop: int) -> None:
    """Play or learn rounds first ... stop - 1 of a stream, the last AFTER of them in a block where the player has any."""
    problem, rng = player.problem, np.random.default_rng(first)
    X = rng.standard_normal((stop - first, problem.n_features))
    X *= problem.radius / max(1e-300, np.linalg.norm(X, axis=1).max())
    X[rng.random(X.shape) < 0.2] = 0.0
    y = rng.integers(problem.n_classes, size=len(X))
    single = len(X) - AFTER if player.plays_blocks and (hasattr(player, "play_block") or forecasts(player)) else len(X)
    for x, label in zip(X[:single], y[:single].tolist(), strict=True):
        if hasattr(player, "act"):
            decision = player.act(x)
            player.learn(x, decision, label if isinstance(player, LabelAgent) else bool(decision.action == label))
        elif forecasts(player):
            player.predict(x)
            player.update(x, label)
        elif hasattr(player, "estimate"):  # a weak learner
            player.estimate(x, np.empty(problem.n_classes))
            player.update(x, label, 1.0)
        else:  # one that observes the label
            player.peek(label)
            player.predict(x)
            player.update(x, label, 1.0)
    if single < len(X) and hasattr(player, "act"):
        player.play_block(X[single:], y[single:], Trace.empty(len(X) - single))
    elif single < len(X):
        player.forecast_block(X[single:], y[single:], np.empty((len(X) - single, problem.n_classes)))


def forecasts(player: Any) -> bool:
    """Return whether a player is a forecaster."""
    return hasattr(player, "predict_many")


def methods(cls: type) -> dict[tuple[str, str], int]:
    """Return what stands in a class and its bases, by identity."""
    return {(base.__qualname__, name): id(value) for base in cls.__mro__ for name, value in vars(base).items()}


def attack(player: Player, data: bytes, file: Path, mark: Path, ran: list[str]) -> tuple[str, str]:
    """Load and play a crafted file; return its letter and what happened."""
    file.write_bytes(data)
    cls = type(player)
    before, names = methods(cls), set(vars(player))
    loaded: Any = None
    try:
        loaded = cls.load(file)
        play(loaded, 1, 1 + 2 * AFTER)
        letter, text = PLAYED, ""
    except BanditlabError as error:
        letter, text = REFUSED if loaded is None else STOPPED, str(error)
        if "\n" in text or (loaded is None and str(file) not in text):
            letter = TRACEBACK
    except Exception:
        letter, text = TRACEBACK, traceback.format_exc()
    if ran or mark.exists():
        letter, text = CODE, f"{ran} {text}"
        ran.clear()
        mark.rmdir() if mark.is_dir() else mark.unlink(missing_ok=True)
    elif methods(cls) != before or (loaded is not None and (type(loaded) is not cls or not set(vars(loaded)) <= names)):
        letter = REPLACED
    return letter, text


def main() -> None:
    """Run the attacks first ... stop - 1 of each case named on standard input; see `players`."""
    order = json.loads(sys.stdin.read())
    folder = Path(order["folder"])
    os.chdir(folder)
    (folder / "conftest.py").write_text("open('mark', 'w')\n")
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    ran: list[str] = []
    sys.addaudithook(lambda event, args: ran.append(event) if event in RUNS else None)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with open(folder / "log", "a", buffering=1) as log, open(folder / "said", "a", buffering=1) as said:
        for case, first, stop in order["cases"]:
            player = made(*case)
            player.save(folder / "saved.npz")
            saved = Saved((folder / "saved.npz").read_bytes())
            play(type(player).load(folder / "saved.npz"), 1, 1 + 2 * AFTER)
            ran.clear()  # compiling may start what it likes
            log.write(READY)
            for number in range(first, stop):
                rng = np.random.default_rng([order["seed"], number, *map(ord, case[1])])
                mutate = list(MUTATIONS)[rng.choice(len(MUTATIONS), p=[share for _, share in MUTATIONS.values()])]
                said.write(f"{json.dumps([case, number, MUTATIONS[mutate][0]])} ")
                data = mutate(saved, rng, "mark")
                letter, text = attack(player, data, folder / "crafted.npz", folder / "mark", ran)
                said.write(f"{letter} {json.dumps(text)}\n")
                log.write(letter)


if __name__ == "__main__":
    main()
