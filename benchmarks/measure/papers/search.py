"""Promises searched for a game that breaks them: random games, hard ones, climbs; a part is kept when it is done."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from banditlab.numerics.jit import source_digest
from benchmarks.measure.papers.games import Game, changed, drawn, hard
from benchmarks.measure.papers.lines import LINES, Line, Promised

SLACK = 1e-9
BEYOND = 1.0 + 1e-6
"""A regret over a promise above this is above it by more than rounding."""
SEED = 1


@dataclass
class Search:
    """Of one line: games at random and searched, promises above which a regret was, largest ratios and where they were."""

    name: str
    source: str
    random: int = 0
    searched: int = 0
    false: int = 0
    certificate: float = 0.0
    bound: float = 0.0
    bound_searched: float = 0.0
    at: str = "-"

    def note(self, g: Game, found: tuple[float, float], searched: bool) -> None:
        """Count a game and its two ratios."""
        self.random += not searched
        self.searched += searched
        if max(found) > BEYOND:
            self.false += 1
            print(f"ABOVE: {self.name}: {found} at {g}", flush=True)
        self.certificate = max(self.certificate, found[0])
        self.bound_searched = max(self.bound_searched, found[1] if searched else 0.0)
        if found[1] > self.bound:
            self.bound, self.at = found[1], g.told()


def ratios(p: Promised) -> tuple[float, float]:
    """Return regret over certificate and over bound; 0 where the promise is none, inf where one at most 0 is exceeded."""

    def ratio(promise: float) -> float:
        if math.isnan(promise) or math.isinf(promise):
            return 0.0
        return p.regret / promise if promise > 0.0 else (0.0 if p.regret <= promise + SLACK else math.inf)

    return ratio(p.certificate), ratio(p.bound)


def search(line: Line, random: int, starts: int, steps: int) -> Search:
    """Try random games and hard ones, then climb from the worst: by the certificate's ratio, and by the bound's."""
    rng = np.random.default_rng([SEED, *line.name.encode()])
    result = Search(line.name, line.source)
    pool: list[tuple[tuple[float, float], Game]] = []

    def play(g: Game, searched: bool) -> tuple[float, float]:
        found = ratios(line.play(g))
        result.note(g, found, searched)
        return found

    for i in range(random + starts):
        g = line.allowed(drawn(rng, line.labels) if i < random else hard(rng, line.labels, line.rounds))
        pool.append((play(g, i >= random), g))
    for by in (0, 1):
        if max(found[by] for found, _ in pool) > 0.0:
            climb(rng, line, by, max(pool, key=lambda pair: pair[0][by]), steps, play)
    return result


def climb(
    rng: np.random.Generator,
    line: Line,
    by: int,
    start: tuple[tuple[float, float], Game],
    steps: int,
    play: Callable[[Game, bool], tuple[float, float]],
) -> None:
    """Change a game again and again, keeping what raises the ratio; changes of B and lambda adapt their size."""
    now, g = start
    size = 0.3
    for _ in range(steps):
        other = line.allowed(changed(rng, g, line.labels, size, line.rounds))
        after = play(other, True)
        better = after[by] > now[by]
        size = min(max(size * (1.4 if better else 0.9), 0.02), 1.0)
        if better:
            now, g = after, other


# --------------------------------------------------------------------------------------------------------- parts on disk


def digest() -> str:
    """Return a short hash of everything a part is made from."""
    here = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"".join([source_digest().encode(), *here])).hexdigest()[:12]


def searched(folder: Path, random: int, starts: int, steps: int) -> list[Search]:
    """Return every line's search; one that `folder` holds, of the same code and counts, is not made again."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for i, line in enumerate(LINES):
        name = hashlib.sha256(line.name.encode()).hexdigest()[:8]
        part = folder / f"{digest()}-{random}-{starts}-{steps}-{name}.json"
        if part.is_file():
            found.append(Search(**json.loads(part.read_text("utf-8"))))
        else:
            found.append(search(line, random, starts, steps))
            whole = part.with_suffix(".part")  # a part that was cut short is no part
            whole.write_text(json.dumps(asdict(found[-1])), encoding="utf-8")
            whole.replace(part)
        print(f"{i + 1} of {len(LINES)}: {found[-1]}", flush=True)
    return found
