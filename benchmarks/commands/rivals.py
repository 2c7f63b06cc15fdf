"""stackcb and fastcb beside other libraries' agents, at defaults and tuned, on tables: docs/results/rivals.csv and .md.

    python -m benchmarks rivals --tables FOLDER --held NAMES --keep

plays every FOLDER/*.csv.gz (label column `class`), Digits, seven sets of openml.org (from the cache that BANDITLAB_DATA_HOME
names), scikit-learn's wine, parity and noise made here, and shuttle where --shuttle names its file: one pass of
T = min(rows, rounds). Settings and scaling of other libraries' agents are chosen on two streams that are not reported. What is
finished is written at once into --into (one process at a time), and not played again: player by player over all tables.
--players and --only are names with commas; --keep fills the page and draws its figure.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from analysis.result_pages import rivals as told
from banditlab.analysis.look import save
from banditlab.analysis.pages import fill_page
from banditlab.validation import at_least
from benchmarks.measure.names import picked
from benchmarks.measure.rivals import agents, boosted, offline, vowpal
from benchmarks.measure.rivals.agents import RELATIVE, Chosen
from benchmarks.measure.rivals.neighbours import GRID, Neighbours
from benchmarks.measure.rivals.tables import SCALINGS, Source, Stream, sources
from benchmarks.page.rivals_figure import figure

PLACE = Path(__file__).parents[2] / "docs" / "results"
TUNING = (1000, 1001)
"""Streams on which settings are chosen."""
FIRST = 100
"""The first of the streams that are reported."""
FEW = 4
"""Streams of `LONG` rounds that players of more than .2 ms per round play; of shorter ones as many more."""
SHORT, LONG = 1000, 5000
"""Rounds below which settings are chosen on five times as many streams; and those of a long stream."""


class Choice(NamedTuple):
    """A scaling and a player's setting."""

    scaling: str
    setting: Any


class Rival(NamedTuple):
    """A player: how it plays a stream at a setting, its default setting and scaling, and what is tried besides.

    `stages` go from the best setting so far to the candidates of the next choice; `crossed` says whether a stage tries
    both scalings, or keeps that of the best so far. Without `tuned` nothing is chosen.
    """

    name: str
    play: Callable[[Stream, Any, int], float]
    default: Choice
    line: Callable[[Any], str] = str
    stages: tuple[Callable[[Any], list[Any]], ...] = ()
    crossed: bool = True
    tuned: bool = True
    streams: int = 10**6


def ours(name: str, scaling: str, chosen: Chosen) -> Rival:
    """Return one of our agents as it stands, under one scaling."""
    return Rival(name, agents.play, Choice(scaling, chosen), Chosen.line, tuned=False)


def peer(name: str, first: Chosen, grid: list[dict[str, Any]], streams: int = 10**6) -> Rival:
    """Return an agent at its defaults and at the best of a grid, under the better of the scalings each."""
    candidates = [first._replace(settings=tuple(settings.items())) for settings in grid]
    return Rival(name, agents.play, Choice(SCALINGS[0], first), Chosen.line, (lambda _: candidates,), streams=streams)


def all_labels(name: str, play: Callable[[Stream, str], float], of: str) -> Rival:
    """Return what all labels are worth, on one stream."""
    return Rival(
        f"{name} {of}", lambda stream, _, seed: play(stream, name), Choice("standard", ""), tuned=False, streams=1
    )


def rivals() -> list[Rival]:
    """Return the players in the order in which they are played."""
    driver, neighbours = vowpal.Driver(), Neighbours()
    widths = (1.0, 0.3, 0.1, 0.03)
    return [
        ours("fastcb", "norm", Chosen("fastcb")),
        ours("fastcb 3e-4", "norm", Chosen("fastcb", (("regularization", RELATIVE),))),
        ours("standardised", "standard", Chosen("fastcb")),
        ours("Fourier", "standard", Chosen("fastcb", (), "Fourier")),
        ours("Fourier and linear", "standard", Chosen("fastcb", (), "Fourier and linear")),
        ours("stackcb", "norm", Chosen("stackcb")),
        Rival(
            "vw",
            driver.play,
            Choice("norm", vowpal.Options()),
            vowpal.Options.line,
            (vowpal.with_features, vowpal.with_explorations),
            crossed=False,
        ),
        peer(
            "mabwiser-linucb",
            Chosen("linucb", (("confidence", 1.0), ("regularization", 1.0))),
            [{"confidence": c, "regularization": r} for c in widths for r in (1.0, 0.01)],
        ),
        all_labels("logistic", offline.cross_validated, "cross-validated"),
        all_labels("boosting", offline.cross_validated, "cross-validated"),
        Rival("neighbours", neighbours.play, Choice("norm", GRID[0]), spoken, (lambda _: list(GRID),)),
        peer(
            "mabwiser-lints",
            Chosen("lints", (("deviation", 1.0), ("regularization", 1.0))),
            [{"deviation": c, "regularization": r} for c in widths for r in (1.0, 0.01)],
        ),
        all_labels("logistic", offline.one_pass, "one pass"),
        all_labels("boosting", offline.one_pass, "one pass"),
        peer(
            "river-logistic",
            Chosen("river-logistic"),
            [{"learning_rate": r, "gamma": g} for r in (0.01, 0.1, 1.0, 10.0) for g in (0.05, 0.01)],
            streams=FEW,
        ),
        *(
            Rival(f"boosted trees {epsilon:g}", boosted.play, Choice("standard", epsilon), tuned=False, streams=FEW)
            for epsilon in (0.05, 0.01)
        ),
        Rival(
            "river-linucb",
            agents.play,
            Choice("standard", Chosen("river-linucb")),
            Chosen.line,
            tuned=False,
            streams=FEW,
        ),
    ]


def spoken(setting: tuple[int, float]) -> str:
    """Return the setting of the nearest neighbours as text."""
    return f"k={setting[0]} epsilon={setting[1]:g}"


def main(
    *,
    tables: str = "",
    shuttle: str = "",
    held: str = "",
    streams: int = 10,
    rounds: int = 5000,
    players: str = "",
    only: str = "",
    into: str = str(PLACE / "rivals.csv"),
    keep: bool = False,
) -> None:
    """Play what is not yet in the file, and print it."""
    at_least("streams", streams, 2)
    at_least("rounds", rounds, 1)
    with tempfile.TemporaryDirectory(prefix="banditlab-rivals-") as folder:
        found = sources(tables, shuttle, Path(folder))
        table_of, known = {source.name: source for source in found}, {rival.name: rival for rival in rivals()}
        names = picked("only", only, table_of)
        for rival in (known[name] for name in picked("players", players, known)):
            for source in (table_of[name] for name in names):
                if missing(told.read(Path(into)), source.name, rival):
                    for line in measured(source, rival, streams, rounds, source.name in held.split(",")):
                        print(told.spoken(line), flush=True)
                        told.write(Path(into), put(told.read(Path(into)), line))
    if keep:
        publish(told.read(Path(into)))


def missing(lines: list[told.Line], table: str, rival: Rival) -> bool:
    """Return whether the file lacks a line of this table and player."""
    there = {line.player for line in lines if line.table == table}
    return not ({rival.name} | ({f"{rival.name} tuned"} if rival.tuned else set())) <= there


def put(lines: list[told.Line], line: told.Line) -> list[told.Line]:
    """Return the lines with this one in the place of an older one of its table and player, or at the end."""
    kept = [other for other in lines if (other.table, other.player) != (line.table, line.player)]
    return [*kept, line]


def chosen_on(rounds: int) -> tuple[int, ...]:
    """Return the streams on which settings are chosen where these have so many rounds."""
    return TUNING if rounds >= SHORT else tuple(range(TUNING[0], TUNING[0] + 5 * len(TUNING)))


def measured(source: Source, rival: Rival, streams: int, rounds: int, held: bool) -> Iterator[told.Line]:
    """Yield the player's line on a table at its defaults and, where it is tuned, at the best setting."""
    default, best = tuned(source, rival, rounds) if rival.tuned else (rival.default, rival.default)
    played: dict[Choice, told.Line] = {}
    for name, choice in ((rival.name, default), (f"{rival.name} tuned", best))[: 1 + rival.tuned]:
        if choice not in played:
            try:
                played[choice] = reported(source, rival, choice, streams, rounds, held)
            except vowpal.PlayFailed as error:
                print(f"not played: {source.name}, {name}: {error}", flush=True)
                continue
        yield played[choice]._replace(player=name)


def tuned(source: Source, rival: Rival, rounds: int) -> tuple[Choice, Choice]:
    """Return the default at the better scaling, and the best choice of all, both by the streams of the tuning."""
    scores: dict[Choice, float] = {}

    def best_of(choices: list[Choice]) -> Choice:
        new = [choice for choice in dict.fromkeys(choices) if choice not in scores]
        shares: dict[Choice, list[float]] = {choice: [] for choice in new}
        for scaling in SCALINGS:
            for seed in chosen_on(len(stream(source, scaling, TUNING[0], rounds).y)):
                mine = [choice for choice in new if choice.scaling == scaling]
                for choice in mine:
                    failed = math.inf in shares[choice]
                    shown = stream(source, scaling, seed, rounds)
                    shares[choice].append(math.inf if failed else tried(rival, shown, choice.setting, seed))
        scores.update({choice: float(np.mean(share)) for choice, share in shares.items()})
        return min(choices, key=lambda choice: scores[choice])

    default = best_of([Choice(scaling, rival.default.setting) for scaling in SCALINGS])
    best = default
    for stage in rival.stages:
        scalings = SCALINGS if rival.crossed else (best.scaling,)
        best = best_of([best, *(Choice(s, setting) for setting in stage(best.setting) for s in scalings)])
    return default, best


def tried(rival: Rival, shown: Stream, setting: Any, seed: int) -> float:
    """Return a setting's share of mistakes in the tuning, infinity where the library could not play it."""
    try:
        return rival.play(shown, setting, seed)
    except vowpal.PlayFailed as error:
        print(f"left out: {error}", flush=True)
        return math.inf


def spent() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


@lru_cache(maxsize=1)
def stream(source: Source, scaling: str, seed: int, rounds: int) -> Stream:
    """Return a stream, kept while it is played at several settings."""
    return source.stream(scaling, seed, rounds)


def reported(source: Source, rival: Rival, choice: Choice, streams: int, rounds: int, held: bool) -> told.Line:
    """Return the line of a player at a choice, on the streams that are reported."""
    mistakes, seconds = [], 0.0
    T, d = stream(source, choice.scaling, FIRST, rounds).X.shape
    n = min(streams, rival.streams * max(1, LONG // T))
    for seed in range(FIRST, FIRST + n):
        shown = stream(source, choice.scaling, seed, rounds)
        start = spent()
        mistakes.append(100.0 * rival.play(shown, choice.setting, seed))
        seconds += spent() - start
    each = 1e6 * seconds / (n * T)
    setting = rival.line(choice.setting)
    return told.Line(
        source.name, held, T, shown.n_classes, d, rival.name, setting, choice.scaling, tuple(mistakes), each
    )


def publish(lines: list[told.Line]) -> None:
    """Write the csv file, the page between its markers, and the figure."""
    told.write(PLACE / "rivals.csv", lines)
    fill_page(PLACE / "rivals.md", told.parts(PLACE))
    save(figure(lines), PLACE.parent / "images" / "rivals.png")
