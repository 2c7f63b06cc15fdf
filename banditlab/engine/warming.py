"""Compiling before playing: which kinds of runs have their kernels on disk, what a run of a kind takes, one compiler each.

A kind of run is (environment, player); its kernels are compiled when it is first played. Where they are on disk already,
reading them back takes a moment; where not, workers compile them side by side, each another player's.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from banditlab.engine.plan import Run
from banditlab.engine.runner import BLOCK, play
from banditlab.errors import UsageError
from banditlab.numerics.cache_folders import current_folder
from banditlab.numerics.private_folders import make_private
from banditlab.results.system import hold, release

ROUNDS = 64
"""Rounds that are played to see how long a run takes, four times as many until that takes LONG_ENOUGH."""
LONG_ENOUGH = 0.02
"""Seconds: a process that waits for a moment is not taken for a slow player, of whose runs each would be a task."""
LONGEST_TRIAL = 0.1
"""Seconds after which no more are played: an environment may be slower than its player."""
DRAWN_LONG_ENOUGH = 0.004
"""Seconds: from then on what more rounds of a stream take to be drawn is told from its noise."""
UNKNOWN_SECONDS_A_ROUND = 1e-4
LONGEST_WAIT = 300.0
"""Seconds a process waits for another on this machine that compiles what it needs, too; then it compiles by itself."""
WAIT = 0.1


def kind_of_run(run: Run) -> str:
    """Return what the runs of one kind have in common: the same kernels, about the same time."""
    return f"{run.environment_label}|{run.label}|{run.rounds}"


def drawing_of(run: Run) -> str:
    """Return the key under which the costs of runs have what it takes to draw a stream."""
    return f"drawing {run.environment_label}|{run.rounds}"


def runs_by_kind(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return the runs of each kind, kinds in the order in which they come first."""
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        kinds.setdefault(kind_of_run(run), []).append(run)
    return kinds


def unknown_seconds(run: Run) -> float:
    """Return a guess at the seconds a run takes."""
    return UNKNOWN_SECONDS_A_ROUND * run.rounds


def warmed_seconds(run: Run, *, uncompiled: bool = True) -> float | None:
    """Play two rounds of a run, which compiles its kernels, and some more to see how long a run takes; None: not played.

    Parameters
    ----------
    uncompiled
        Whether players without kernels are played, too.
    """
    env = run.build_environment()
    player = run.build_player(env)
    if not (uncompiled or player.plays_blocks):
        return None
    with one_compiler(f"{run.label}|{run.adaptive}"):
        play(env, player, seed=run.environment_seed(), rounds=min(run.rounds, 2))
    rounds, seconds = min(run.rounds, ROUNDS), 0.0
    until = time.perf_counter() + LONGEST_TRIAL
    while True:
        seconds = float(play(env, run.build_player(env), seed=run.environment_seed(), rounds=rounds).seconds[-1])
        if seconds >= LONG_ENOUGH or rounds == run.rounds or time.perf_counter() >= until:
            break
        rounds = min(run.rounds, 4 * rounds)
    _note(run)
    return seconds / rounds * run.rounds


def drawing_seconds(run: Run) -> float:
    """Draw some rounds of a run's stream and return about what all of them take; 0 where a run meets a stream of its own.

    What the first rounds take is no measure: an environment may shuffle all its rows for them. A process asks once: it may read
    a large table to be built.
    """
    if run.adaptive:
        return 0.0
    if run.stream_id not in _drawn:
        _drawn[run.stream_id] = _seconds_to_draw(run)
    return _drawn[run.stream_id]


_drawn: dict[str, float] = {}
"""What streams take to be drawn, by id."""


def _seconds_to_draw(run: Run) -> float:
    env = run.build_environment()
    before: tuple[int, float] | None = None
    rounds = min(run.rounds, ROUNDS)
    while True:
        begin = time.perf_counter()
        env.reset(seed=run.environment_seed())
        for _ in env.unwrapped.blocks(rounds, BLOCK):
            pass
        seconds = time.perf_counter() - begin
        if rounds == run.rounds or seconds >= LONGEST_TRIAL:
            return seconds / rounds * run.rounds
        if before is not None and seconds >= DRAWN_LONG_ENOUGH:
            return max(0.0, (seconds - before[1]) / (rounds - before[0]) * run.rounds)
        before, rounds = (rounds, seconds), min(run.rounds, 4 * rounds)


def is_cold(run: Run) -> bool:
    """Return whether no process on this machine has compiled this kind of run, as far as is known."""
    file = _mark(run)
    return file is not None and not file.exists()


def _note(run: Run) -> None:
    file = _mark(run)
    if file is not None:
        with contextlib.suppress(OSError):
            make_private(file.parent)
            file.touch(mode=0o600)


def _mark(run: Run) -> Path | None:
    """Return the file that says that a kind of run was compiled; it lies beside the kernels and goes with them."""
    return _beside_kernels("compiled", f"{run.environment_label}|{run.label}")


def _beside_kernels(kind: str, text: str) -> Path | None:
    folder = current_folder()
    return None if folder is None else folder / kind / hashlib.sha256(text.encode()).hexdigest()[:24]


@contextlib.contextmanager
def one_compiler(key: str) -> Iterator[None]:
    """Compile what is inside while no other process on this machine compiles it: the others wait, and read it then.

    Without a folder that can be locked, or after `LONGEST_WAIT`, everybody compiles for himself: that costs time only.
    """
    file = _beside_kernels("locks", key)
    until = time.monotonic() + LONGEST_WAIT
    with contextlib.ExitStack() as held:
        while file is not None and time.monotonic() < until:
            try:
                make_private(file.parent)
                if lock := hold(file):
                    held.callback(release, lock)
                    break
            except (OSError, UsageError):
                break
            time.sleep(WAIT)
        yield
