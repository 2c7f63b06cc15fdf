"""Agents of practice at other settings than their defaults, and how often they stay on a wrong class: docs/results/defaults.md.

    python -m benchmarks defaults --tables FOLDER --shuttle FILE --keep

plays the tables of the study of rivals (all but noise), one pass of T = min(rows, rounds) in orders that seeds from 300 on
draw, under `banditlab compare`'s default scaling; as many made streams, of planted logistic models, whose contexts point
everywhere alike, and of clusters among hundreds of columns, as embeddings are (`sketch`); and `runs` runs on one context for
ever, as `lockin` does. --made plays the made streams alone, --only these agents. --keep writes docs/results/defaults.csv and
the page; lines on record of what was not played stay.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from analysis.result_pages.defaults import DEFAULT, EMBEDDED, PLANTED, STUCK, Line, parts, read, settings, write
from banditlab.analysis.pages import fill_page
from banditlab.envs.logistic import Logistic
from banditlab.validation import at_least
from benchmarks.commands.lockin import CLASSES, is_stuck
from benchmarks.commands.sketch import embedding
from benchmarks.measure.names import picked
from benchmarks.measure.rivals.agents import Chosen, play
from benchmarks.measure.rivals.tables import Stream, sources

PLACE = Path(__file__).parents[2] / "docs" / "results"
FIRST_SEED = 300
NOISE = "noise"
WORLDS = [(K, d, noise) for K, d in ((3, 6), (5, 20), (10, 64)) for noise in (0.0, 0.1)]
"""Planted models of norm NORM: K, d, and the probability that a label is replaced."""
NORM = 30.0
CLUSTERS = [(K, d, noise) for K, d in ((5, 256), (10, 256)) for noise in (0.0, 0.3)]
"""Streams like embeddings: K, d, and the probability that a label is drawn anew."""


class Setting(NamedTuple):
    """An agent's id, what stands for its settings in the table, and the settings, `regularization` in units of R^2."""

    player: str
    text: str
    given: dict[str, float]

    def at(self, radius: float) -> dict[str, Any]:
        """Return the settings for contexts of norm at most `radius`."""
        squared = {"regularization": radius**2}
        return {name: value * squared.get(name, 1.0) for name, value in self.given.items()}


def _settings(player: str, *variants: dict[str, float]) -> list[Setting]:
    texts = [", ".join(f"{name} = {value:g}" for name, value in given.items()) or DEFAULT for given in variants]
    return [Setting(player, text, given) for text, given in zip(texts, variants, strict=True)]


DUEL = (
    {},
    {"challenger": 0.0},
    {"regularization": 0.001},
    {"regularization": 0.0003},
    {"challenger": 0.0, "regularization": 0.001},
    {"challenger": 0.0, "regularization": 0.0003},
)
SETTINGS = [
    *_settings("fastcb", *DUEL),
    *_settings("squarecb", *DUEL),
    *_settings(
        "linucb", {}, {"confidence": 0.3}, {"regularization": 0.01}, {"confidence": 0.3, "regularization": 0.01}
    ),
    *_settings(
        "lints", {}, {"deviation": 0.03}, {"regularization": 0.03}, {"regularization": 0.01}, {"regularization": 0.001}
    ),
]


def main(
    *, tables: str = "", shuttle: str = "", streams: int = 20, rounds: int = 5000, runs: int = 300, only: str = "",
    made: bool = False, keep: bool = False,
) -> None:  # fmt: skip
    """Play and print the table; `only`: ids with commas; `made`: on made streams alone."""
    for name, value in (("streams", streams), ("rounds", rounds), ("runs", runs)):
        at_least(name, value, 1)
    wanted = picked("only", only, [each.player for each in SETTINGS])
    before = {} if not keep else {line[:3]: line for line in read(PLACE / "defaults.csv")}
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="banditlab-defaults-") as folder:
        met = [
            [source.stream("norm", FIRST_SEED + i, rounds) for i in range(streams)]
            for source in ([] if made else sources(tables, shuttle, Path(folder)))
            if source.name != NOISE
        ]
    for make, worlds in ((planted, WORLDS), (embedded, CLUSTERS)):
        met += [[make(*world, FIRST_SEED + i, rounds) for i in range(streams)] for world in worlds]
    for setting in SETTINGS:
        if setting.player in wanted:
            lines += [Line(*setting[:2], each[0].table, tuple(mistakes(x, setting) for x in each)) for each in met]
            lines += [] if made else [stuck(setting, n_classes, runs) for n_classes in CLASSES]
            print(f"{setting.player}, {setting.text}: {len(met)} kinds of streams", flush=True)
    shown = in_order(list((before | {line[:3]: line for line in lines}).values()))
    print(settings(shown))
    if keep:
        write(PLACE / "defaults.csv", shown)
        fill_page(PLACE / "defaults.md", parts(PLACE))


def in_order(lines: list[Line]) -> list[Line]:
    """Return the lines by setting, as they stand in `SETTINGS`, one context last."""
    places = {setting[:2]: place for place, setting in enumerate(SETTINGS)}
    return sorted(lines, key=lambda line: (places[line[:2]], line.table.startswith(STUCK)))


def planted(n_classes: int, n_features: int, noise: float, seed: int, rounds: int) -> Stream:
    """Return a stream of a logistic model that the seed draws, its contexts uniform on the sphere."""
    env = Logistic(n_features=n_features, n_classes=n_classes, norm_bound=NORM, noise=noise, horizon=rounds)
    env.reset(seed=seed)
    [(X, y)] = env.blocks(rounds, rounds)
    name = f"{PLANTED}, {n_classes} x {n_features}, noise {noise:g}"
    return Stream(np.ascontiguousarray(X), y, n_classes, env.problem.radius, name, "norm", seed)


def embedded(n_classes: int, n_features: int, noise: float, seed: int, rounds: int) -> Stream:
    """Return a stream of clusters, of norm 1, that the seed draws."""
    X, y = embedding(n_classes, n_features, rounds, seed)
    rng = np.random.default_rng([seed, rounds])
    y = np.where(rng.random(rounds) < noise, rng.integers(n_classes, size=rounds), y)
    return Stream(X, y, n_classes, 1.0, f"{EMBEDDED}, {n_classes} x {n_features}, noise {noise:g}", "norm", seed)


def mistakes(stream: Stream, setting: Setting) -> float:
    """Return the mistakes of one pass in %."""
    return 100.0 * play(stream, Chosen(setting.player, tuple(setting.at(stream.radius).items())), stream.seed)


def stuck(setting: Setting, n_classes: int, runs: int) -> Line:
    """Return the line of runs on one context: 100 where a run stays on a wrong class."""
    found = tuple(100.0 * is_stuck(setting.player, n_classes, run, setting.at(1.0)) for run in range(runs))
    return Line(setting.player, setting.text, f"{STUCK}, K = {n_classes}", found)
