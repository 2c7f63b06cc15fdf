"""Measuring one player on one stream: rounds per CPU second, peak memory and mistakes, in a separate process.

The stream is made, and the kernels are compiled, before the process forks; the child builds the player and plays. Time is
the child's CPU time over blocks of rounds: the first blocks (cold caches, page faults) do not count, the rate is the
median of the others. A stream that ends before the time is up is gone through again by a player built anew, so that rate
and mistakes belong to the same rounds: one that had learnt the stream would be right more often, and update more. Peak
memory is what the child's resident set rose by at its highest from just before the player was built (VmHWM, reset there),
so arrays, another library's included, count and the interpreter does not.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import statistics
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.engine.runner import BLOCK
from banditlab.envs.digits import Digits
from banditlab.envs.logistic import Logistic
from banditlab.errors import BanditlabError
from banditlab.numerics.contexts import as_contexts
from banditlab.players import rounds
from banditlab.players.agent import KernelAgent, Trace
from banditlab.problem import Problem
from banditlab.registry import registry
from benchmarks.measure.players import PEERS, ROWS_FIRST, TWO_FORMS, Player

Floats = NDArray[np.float64]
CLASSES = (2, 10, 50)
FEATURES = (8, 64, 256, 1024)
ROUNDS = 20_000
STREAM_BYTES = 2**27
"""The longest stream; wider contexts get fewer rounds."""
SETTLE = 4
"""Rounds a class before other libraries are timed: theirs are cheap until every class has been played."""
SEED = 0


class Stream(NamedTuple):
    """A stream in memory: its name, the problem, contexts (T, d) and labels (T,)."""

    name: str
    problem: Problem
    X: Floats
    y: NDArray[np.int64]


LOOK, LARGE, MANY = 64, 512, 8
"""The contexts that are looked at together at most; a number of features and, for StackCB, of classes at which they are."""


class Effort(NamedTuple):
    """CPU seconds to spend on a cell and at most on a whole first pass, the wall clock's limit, and bytes of memory.

    rounds: of the first pass that are wanted, as far as `whole_pass` seconds go.
    """

    seconds: float = 0.3
    whole_pass: float = 25.0
    limit: float = 90.0
    memory: float = 8.0 * 2**30
    rounds: int = 0


class Row(NamedTuple):
    """A measured cell, or a cell that was not measured (`why`); what does not apply is None.

    nanoseconds: of a round. mistakes: share of the first `rounds` rounds. peak, state: bytes. commit: of the package that was
    measured. before: nanoseconds of a round with another checkout's package. times: `nanoseconds` over `before`, the median
    of pairs measured one after the other.
    """

    player: str
    kind: str
    stream: str
    K: int
    d: int
    rounds: int | None = None
    nanoseconds: float | None = None
    mistakes: float | None = None
    peak: int | None = None
    state: int | None = None
    why: str = ""
    commit: str = ""
    before: float | None = None
    times: float | None = None


def place_of(cell: str) -> tuple[str, int, int]:
    """Return the stream's name, K and d of a cell, "digits" or "KxD"."""
    if cell == "digits":
        return "digits", 10, 65
    K, d = map(int, cell.split("x"))
    return "logistic", K, d


@lru_cache(maxsize=1)
def stream_of(cell: str) -> Stream:
    """Return the stream of a cell."""
    return digits() if cell == "digits" else logistic(*place_of(cell)[1:])


def digits() -> Stream:
    """Return the digits stream, T = 20,000."""
    return _stream("digits", Digits(horizon=ROUNDS), ROUNDS)


def logistic(K: int, d: int) -> Stream:
    """Return a Logistic stream: contexts on the unit sphere."""
    rounds = min(ROUNDS, STREAM_BYTES // (8 * d))
    return _stream("logistic", Logistic(n_classes=K, n_features=d, horizon=rounds), rounds)


def _stream(name: str, env: Any, rounds: int) -> Stream:
    env.reset(seed=SEED)
    [(X, y)] = env.blocks(rounds, rounds)
    return Stream(name, env.problem, as_contexts(X), np.ascontiguousarray(y, np.int64))


# --------------------------------------------------------------------------------------------------------- playing blocks


def build(player: Player, problem: Problem) -> Any:
    """Return the player of a line of the table, fresh."""
    cls: Any = registry().load(player.kind, player.id)
    return cls(problem, np.random.default_rng(SEED), **player.settings)


def blocks(player: Any) -> Callable[[Floats, NDArray[np.int64]], int]:
    """Return a function that plays rounds and returns their mistakes, by the fastest way the player offers.

    A call of a player has at most `BLOCK` rounds, as in a sweep.
    """
    K = player.problem.n_classes
    if getattr(player, "plays_blocks", False) and hasattr(player, "forecast_block"):

        def forecast(X: Floats, y: NDArray[np.int64]) -> int:
            logits = np.empty((len(y), K))
            player.forecast_block(X, y, logits)
            return int((logits.argmax(axis=1) != y).sum())

        return _in_blocks(forecast)
    if hasattr(player, "play_block"):

        def play(X: Floats, y: NDArray[np.int64]) -> int:
            trace = Trace.empty(len(y))
            player.play_block(X, y, trace)
            return int((~trace.correct).sum())

        return _in_blocks(play)
    return _forecast_one_by_one(player) if hasattr(player, "update") else _play_one_by_one(player)


def _in_blocks(block: Callable[[Floats, NDArray[np.int64]], int]) -> Callable[[Floats, NDArray[np.int64]], int]:
    def play(X: Floats, y: NDArray[np.int64]) -> int:
        return sum(block(X[t : t + BLOCK], y[t : t + BLOCK]) for t in range(0, len(y), BLOCK))

    return play


def _forecast_one_by_one(player: Any) -> Callable[[Floats, NDArray[np.int64]], int]:
    def forecast(X: Floats, y: NDArray[np.int64]) -> int:
        mistakes = 0
        for x, label in zip(X, y.tolist(), strict=True):
            mistakes += int(np.argmax(player.predict(x))) != label
            player.update(x, label)
        return mistakes

    return forecast


def _play_one_by_one(player: Any) -> Callable[[Floats, NDArray[np.int64]], int]:
    told = player.feedback == "label"

    def play(X: Floats, y: NDArray[np.int64]) -> int:
        mistakes = 0
        for x, label in zip(X, y.tolist(), strict=True):
            decision = player.act(x)
            mistakes += decision.action != label
            player.learn(x, decision, label if told else decision.action == label)
        return mistakes

    return play


def warm(player: Player) -> None:
    """Compile a player's kernels, in each of its forms, by playing small streams of many classes and of two."""
    for K in (player.classes,) if player.classes else (3, 2):
        warm_for(player, K)


def warm_for(player: Player, K: int) -> None:
    """Compile what K classes take."""
    env = Logistic(n_classes=K, n_features=8, horizon=300)
    env.reset(seed=SEED)
    [(X, y)] = env.blocks(300, 300)
    forms: list[dict[str, Any]] = [{}, {"form": "dual"}] if player.id in TWO_FORMS else [{}]
    for form in forms:
        block = blocks(build(player._replace(settings={**player.settings, **form}), env.problem))
        for start in (0, 100, 200):
            block(as_contexts(X[start : start + 100]), y[start : start + 100])
    cls: Any = registry().load(player.kind, player.id)
    if player.id in ROWS_FIRST or getattr(cls, "prefetch", None) is not getattr(KernelAgent, "prefetch", None):
        many = MANY if K > 2 else K
        large = build(player, Problem(LARGE, many, 1.0, LOOK))  # has its own kernels
        blocks(large)(as_contexts(np.full((LOOK, LARGE), LARGE**-0.5)), np.zeros(LOOK, dtype=np.int64))


def prefetches(player: Any) -> bool:
    """Return whether a player looks at contexts of a block together: a block of one is not what it does then."""
    return hasattr(player, "prefetch") and player.prefetch() is not rounds.no_prefetch


def too_slow(player: Player, cell: str, rows: list[Row]) -> Row | None:
    """Return the row of a cell that need not be tried: no smaller one of this player came to an end in time."""
    name, K, d = place_of(cell)
    slow = [row for row in rows if row.player == player.label and row.why.startswith("over ") and row.stream == name]
    smaller = next((row for row in slow if row.K <= K and row.d <= d), None)
    if smaller is None:
        return None
    why = f"{smaller.why.split(' at ')[0]} at {smaller.K} x {smaller.d}"
    return Row(player.label, player.kind, name, K, d, why=why)


class Played(NamedTuple):
    """What playing left: rounds of the first pass, their mistakes, nanoseconds a round, and bytes of state."""

    rounds: int
    mistakes: int
    nanoseconds: float
    state: int


def play(made: Callable[[], Any], stream: Stream, effort: Effort, settle: int = 0) -> Played:
    """Play blocks until the effort's time is spent and so many rounds of the first pass are over as it asks for.

    Every pass has a player of its own. The first `settle` rounds count for the mistakes only.
    """
    player, T = made(), len(stream.y)
    block, state = blocks(player), held(player)
    settle = min(settle, T // 2)
    size, t, passed, spent = LOOK if prefetches(player) else 1, settle, settle, 0.0
    mistakes = block(stream.X[:settle], stream.y[:settle]) if settle else 0
    counted: list[float] = []
    while True:
        part = slice(t, min(t + size, T))
        n = part.stop - part.start
        start = time.process_time_ns()
        wrong = block(stream.X[part], stream.y[part])
        seconds = (time.process_time_ns() - start) / 1e9
        spent += seconds
        if passed < T:
            passed, mistakes = passed + n, mistakes + wrong
        t = part.stop
        long_enough = seconds >= effort.seconds / 12.0 or n == T
        if (long_enough and size > 1) or spent >= effort.seconds:
            counted.append(1e9 * seconds / n)
        elif not long_enough and n == size:
            size *= 2
        over = spent >= effort.seconds and len(counted) >= (1 if spent >= 4.0 * effort.seconds else 3)
        if over and (passed >= min(T, effort.rounds) or spent >= effort.whole_pass):
            return Played(passed, mistakes, statistics.median(counted), max(state, held(player)))
        if t == T:
            state = max(state, held(player))  # some grow with the rounds
            del player, block  # its memory goes before the next takes as much
            player = made()
            block, t = blocks(player), settle
            block(stream.X[:settle], stream.y[:settle])


# ------------------------------------------------------------------------------------------------------ a process of its own


def measure(player: Player, stream: Stream, effort: Effort) -> Row:
    """Return a player's row on a stream; a cell that cannot be measured says why."""
    K, d = stream.problem.n_classes, stream.problem.n_features
    row = Row(player.label, player.kind, stream.name, K, d)
    if player.classes not in (None, K):
        return row._replace(why=f"K = {player.classes} only")
    if stream.name == "digits":
        effort = effort._replace(rounds=len(stream.y))
    try:
        return row._replace(**in_child(lambda: _measured(player, stream, effort), effort.limit))
    except ChildError as error:
        return row._replace(why=str(error))


def _confine(memory: float) -> None:
    """Let this process take at most so many more bytes: a player that wants more fails, not the machine."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * resource.getpagesize() + int(memory)
    resource.setrlimit(resource.RLIMIT_AS, (room, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _measured(player: Player, stream: Stream, effort: Effort) -> dict[str, Any]:
    before = resident(reset=True)
    if before is not None:
        _confine(effort.memory)
    settle = SETTLE * stream.problem.n_classes if player in PEERS else 0
    played = play(lambda: build(player, stream.problem), stream, effort, settle)
    peak = None if before is None else max(0, (resident() or 0) - before)
    return {**played._asdict(), "mistakes": played.mistakes / played.rounds, "peak": peak}


def owners(player: Any) -> list[Any]:
    """Return the attributes of a player and of the player it wraps, in which its arrays are found."""
    inner = vars(player).get("_inner")
    return [*vars(player).values(), *([] if inner is None else vars(inner).values())]


def held(player: Any) -> int:
    """Return the bytes of a player's arrays."""
    return sum(array_bytes(value) for value in owners(player))


def array_bytes(value: Any) -> int:
    """Return the bytes of the arrays in nested tuples."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(array_bytes, value)) if isinstance(value, tuple) else 0


def resident(reset: bool = False) -> int | None:
    """Return the peak resident set in bytes, or reset it and return the present one; None where Linux is not."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    wanted = "VmRSS:" if reset else "VmHWM:"
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(wanted))


class ChildError(Exception):
    """The child process did not answer: why, in a few words."""


def in_child(work: Callable[[], dict[str, Any]], limit: float) -> dict[str, Any]:
    """Return what `work` returns (JSON) when it runs in a fork of this process for at most `limit` seconds."""
    gc.collect()
    _trim()
    sys.stdout.flush()
    sys.stderr.flush()
    answer, hand = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(answer)
        _answer(work, hand)
    os.close(hand)
    with os.fdopen(answer, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], limit)
        if not ready:
            os.kill(child, signal.SIGKILL)
        text = pipe.read()
    os.waitpid(child, 0)
    if not ready:
        raise ChildError(f"over {limit:g} s")
    if not text:
        raise ChildError("the process died")
    found: dict[str, Any] = json.loads(text)
    if "error" in found:
        raise ChildError(found["error"])
    return found


def _answer(work: Callable[[], dict[str, Any]], hand: int) -> None:
    """Write what `work` returns, or the error it raised, into the pipe and leave without running exit handlers."""
    try:
        found = work()
    except BanditlabError as error:
        found = {"error": str(error)}
    except MemoryError:
        found = {"error": "not enough memory"}
    except BaseException as error:  # the parent's traceback would hide it; the row says what it was
        found = {"error": f"{type(error).__name__}: {error}"}
    with os.fdopen(hand, "wb") as pipe:
        pipe.write(json.dumps(found).encode())
    os._exit(0)


def _trim() -> None:
    """Hand freed memory back to the system, so that the child's arrays do not land in it unseen."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return
