"""Forecasters against 45 digits, certificates against streams searched to break them, labels no agent may see.

`python -m benchmarks conformance` writes docs/results/conformance.md: counts, none of them left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from mpmath import mp
from numpy.typing import NDArray

from banditlab.comparators._interior import interior
from banditlab.comparators._objective import Objective
from banditlab.comparators.counts import collapse
from banditlab.errors import BanditlabError
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.ftrl import FTRL
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.gaf_fresh import GAFFresh
from banditlab.forecasters.grid import BGrid
from banditlab.forecasters.ogd import OGD
from banditlab.forecasters.ons import ONS
from banditlab.forecasters.primal_dual import MOST_RATIO
from banditlab.losses import logistic_loss
from banditlab.players.agent import Trace
from banditlab.problem import Problem
from banditlab.registry import Registry
from tests.conformance import witness

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

PAGE = Path(__file__).parents[2] / "docs/results/conformance.md"
KINDS = ("random", "repeated", "nearly", "span")
NAMES = ("folklore", "folklore dual", "gaf", "gaf-fresh", "b-grid", "ftrl", "ons", "ogd", "aioli")
SLACK = 1e-9
"""Rounding of the losses' own sums, relative: a regret is above a certificate where it is so by more."""
MOST: dict[str, float] = dict.fromkeys(("folklore", "folklore dual", "gaf", "gaf-fresh"), MOST_RATIO)
"""Largest R^2 / lambda of a forecaster, where it is not 1e12."""


# ------------------------------------------------------------------------------------------------------------ streams


class Stream(NamedTuple):
    """Contexts (n, d) within R, labels (n,), and the problem and ball they are played with."""

    X: Floats
    y: Labels
    K: int
    R: float
    B: float
    lam: float


def contexts(rng: np.random.Generator, kind: str, n: int, d: int, R: float) -> Floats:
    """Return n contexts of norm up to R: all different, three different, those 1e-9 to 1e-3 apart, or of rank 1."""
    X = rng.standard_normal((n, d))
    if kind in ("repeated", "nearly"):
        apart = 0.0 if kind == "repeated" else 10.0 ** rng.uniform(-9.0, -3.0)
        X = X[rng.integers(0, min(3, n), n)] + apart * rng.standard_normal((n, d))
    elif kind == "span":
        X = rng.standard_normal((n, 1)) * X[:1]
    X /= np.linalg.norm(X, axis=1)[:, None]
    return 0.999 * R * X * (rng.uniform(0.05, 1.0, n) ** rng.integers(0, 2))[:, None]


def stream(rng: np.random.Generator, K: int, d: int, n: int, ratio: float, B: float) -> Stream:
    """Return a stream of a random kind with R^2 / lambda = ratio."""
    kind, R = KINDS[rng.integers(len(KINDS))], float(10.0 ** rng.integers(-3, 6))
    X = contexts(rng, kind, n, d, R)
    y = rng.integers(0, K, n) if rng.random() < 0.5 else np.argmax(X @ rng.standard_normal((d, K)), axis=1)
    return Stream(X, y, K, R, B, R**2 / ratio)


def make(name: str, s: Stream, seed: int = 0) -> Any:
    """Return the forecaster of that name for the stream."""
    problem, rng = Problem(s.X.shape[1], s.K, s.R, len(s.y)), np.random.default_rng(seed)
    regular: dict[str, Any] = {"norm_bound": s.B, "regularization": s.lam}
    makers: dict[str, Callable[[], Any]] = {
        "folklore": lambda: FOLKLORE(problem, rng, **regular),
        "folklore dual": lambda: FOLKLORE(problem, rng, form="dual", **regular),
        "gaf": lambda: GAF(problem, rng, nodes="cubature", **regular),
        "gaf-fresh": lambda: GAFFresh(problem, rng, samples=8, **regular),
        "b-grid": lambda: BGrid(problem, rng, norm_bound=s.B, smallest=s.B / 2.0, size=3),
        "ftrl": lambda: FTRL(problem, rng, **regular),
        "ons": lambda: ONS(problem, rng, norm_bound=s.B),
        "ogd": lambda: OGD(problem, rng, norm_bound=s.B),
        "aioli": lambda: AIOLI(problem, rng, **regular),
    }
    return makers[name]()


def suffered(player: Any, s: Stream) -> float:
    """Play the stream and return the loss."""
    total = 0.0
    for x, label in zip(s.X, s.y, strict=True):
        total += float(logistic_loss(player.predict(x), int(label)))
        player.update(x, int(label))
    return total


def best_loss(s: Stream) -> float:
    """Return the loss of a W in the ball, within about 1e-6 B R of the least: what any W in the ball has, it has at most."""
    U, counts = collapse(s.X, s.y, s.K)
    objective = Objective(U / s.R, counts)  # rows of norm B R: the same logits
    radius = s.B * s.R
    found, _ = interior(objective, np.zeros((s.K, U.shape[1])), radius, 1e-6 * max(1.0, radius * 1e-3), 120)
    return found.loss


# --------------------------------------------------------------------------------------------------------- 45 digits


def direct_form(name: str, player: Any, s: Stream) -> Any:
    """Return the direct form with 45 digits of a player just made."""
    d = s.X.shape[1]
    if name.startswith("folklore"):
        return witness.Folklore(s.K, d, s.lam, player.curvature, s.B)
    if name.startswith("gaf"):
        return witness.Gaf(s.K, d, s.lam, player.curvature, s.B, 0.0)
    if name == "ftrl":
        return witness.Ftrl(s.K, d, s.lam, s.B)
    if name == "ons":
        return witness.Ons(s.K, d, s.B, player.step, player.regularization)
    if name == "ogd":
        return witness.Ogd(s.K, d, s.B, player.step)
    return witness.Aioli(d, s.lam, player.curvature, player.margin_bound)


class Compared(NamedTuple):
    """The largest error of a logit relative to 1 + max |z|, of a probability; the certificate and the 45-digit one."""

    logits: float
    probabilities: float
    certificate: float
    exact: float


def centred(z: Any) -> Floats:
    """Return z less its mean."""
    mean = mp.fsum(z) / len(z)
    return np.array([float(a - mean) for a in z])


def probabilities(z: Floats) -> Floats:
    """Return softmax(z)."""
    e = np.exp(z - z.max())
    return np.asarray(e / e.sum())


def compared(name: str, s: Stream) -> Compared:
    """Play a stream twice, in double precision and with 45 digits."""
    player = make(name, s)
    direct = direct_form(name, player, s)
    logits, probability = 0.0, 0.0
    for x, label in zip(s.X, s.y, strict=True):
        extra: tuple[Any, ...] = ()
        if name.startswith("gaf"):
            nodes = (player if name == "gaf" else player._gaf).learner.nodes
            extra = (nodes.points.copy(), nodes.weights)
        z = player.predict(x)
        player.update(x, int(label))
        exact, z = centred(direct.update(x, int(label), *extra)), centred(z)
        logits = max(logits, float(np.abs(exact - z).max() / (1.0 + np.abs(exact).max())))
        probability = max(probability, float(np.abs(probabilities(exact) - probabilities(z)).max()))
    return Compared(logits, probability, player.certificate(), float(direct.certificate()))


class Cell(NamedTuple):
    """A line of the 45-digit table."""

    name: str
    ratio: float
    streams: int
    logits: float
    probabilities: float
    nan: int
    false: int
    above: float


def sizes(K: int) -> tuple[int, int]:
    """Return (d, n) of a stream with K classes: what 45 digits can do in seconds."""
    return {2: (3, 14), 3: (3, 12), 5: (2, 10), 10: (2, 6), 20: (1, 5)}[K]


def conformance(name: str, exponents: tuple[int, ...], classes: tuple[int, ...], seed: int) -> Iterator[Cell]:
    """Yield a line for every R^2 / lambda = 10^e, each over all K and tiny, unit and huge B R."""
    for e in exponents:
        rows = []
        for K in classes:
            for size in (1e-3, 1.0) if name == "ons" else (1e-3, 1.0, 1e3):
                rng = np.random.default_rng([seed, e + 50, K, round(size * 1e3)])
                s = stream(rng, K, *sizes(K), 10.0**e, 1.0)
                rows.append(compared(name, s._replace(B=size / s.R)))
        proved = [r for r in rows if not math.isnan(r.certificate)]
        yield Cell(
            name,
            10.0**e,
            len(rows),
            max(r.logits for r in rows),
            max(r.probabilities for r in rows),
            len(rows) - len(proved),
            sum(r.certificate < r.exact - 1e-6 * max(1.0, abs(r.exact)) for r in proved),
            max((r.certificate - r.exact) / max(1.0, abs(r.exact)) for r in proved) if proved else math.nan,
        )


# ------------------------------------------------------------------------------------------------------------- search


class Search(NamedTuple):
    """Of one player: streams tried, certificates that were NaN, that were false, the largest regret / certificate."""

    name: str
    random: int
    searched: int
    nan: int
    false: int
    ratio: float
    where: str


def ratio_of(name: str, s: Stream) -> float:
    """Return regret / certificate on the stream, NaN where no certificate is given, inf where one at most 0 is exceeded."""
    player = make(name, s)
    loss = suffered(player, s)
    certificate = player.certificate()
    regret = loss - best_loss(s)
    if math.isnan(certificate):
        return math.nan
    if regret <= certificate <= 0.0:
        return 0.0
    return regret / certificate if certificate > 0.0 else math.inf


def changed(rng: np.random.Generator, name: str, s: Stream) -> Stream:
    """Return the stream with one label, one context, or the ball or lambda changed."""
    X, y, t = s.X.copy(), s.y.copy(), int(rng.integers(len(s.y)))
    what = rng.integers(5)
    if what == 0:
        y[t] = rng.integers(s.K)
    elif what == 1:
        X[t] = X[rng.integers(len(y))]
    elif what == 2:
        X[t] += s.R * 10.0 ** rng.uniform(-6.0, 0.0) * rng.standard_normal(X.shape[1])
        X[t] *= min(1.0, 0.999 * s.R / float(np.linalg.norm(X[t])))
    elif what == 3:
        return s._replace(B=s.B * float(10.0 ** rng.uniform(-0.5, 0.5)))
    else:
        lam = s.lam * float(10.0 ** rng.uniform(-1.0, 1.0))
        return s._replace(lam=min(max(lam, s.R**2 / MOST.get(name, 1e12)), 1e6 * s.R**2))
    return s._replace(X=X, y=y)


def drawn(rng: np.random.Generator, name: str) -> Stream:
    """Return a random stream: K in 2 ... 20, B R from 1e-3 to 1e3 (to 2 for ONS: beyond, its bound says nothing)."""
    K = 2 if name == "aioli" else int(rng.choice([2, 2, 3, 4, 6, 10, 20]))
    d, n = int(rng.integers(1, 4)), int(rng.integers(1, 16))
    s = stream(rng, K, d, n, 10.0 ** rng.uniform(-6.0, math.log10(MOST.get(name, 1e12))), 1.0)
    return s._replace(B=float(10.0 ** rng.uniform(-3.0, 0.3 if name == "ons" else 3.0)) / s.R)


def search(name: str, random: int, climbs: int, steps: int, seed: int) -> Search:
    """Try random streams, then climb from the worst of them and from others by changes that raise the ratio."""
    rng = np.random.default_rng([seed, NAMES.index(name)])
    found: list[tuple[float, Stream]] = []
    nan = false = 0
    for _ in range(random):
        s = drawn(rng, name)
        value = ratio_of(name, s)
        nan += math.isnan(value)
        false += value > 1.0 + SLACK
        if not math.isnan(value):
            found.append((value, s))
    found.sort(key=lambda pair: -pair[0])
    tried = 0
    for i in range(min(climbs, len(found))):
        value, s = found[i]
        for _ in range(steps):
            other = changed(rng, name, s)
            after = ratio_of(name, other)
            tried += 1
            nan += math.isnan(after)
            false += after > 1.0 + SLACK
            if after > value:
                value, s = after, other
        found[i] = value, s
    worst, s = max(found, key=lambda pair: pair[0])
    where = f"K = {s.K}, n = {len(s.y)}, R²/λ = {s.R**2 / s.lam:.0e}, B R = {s.B * s.R:.1e}"
    return Search(name, random, tried, nan, false, worst, where)


# ------------------------------------------------------------------------------------------------------ label-blindness


class Blind(NamedTuple):
    """Of one agent: rounds played, wrong rounds whose label was replaced, actions that differed; or why it was not played."""

    name: str
    rounds: int
    replaced: int
    different: int
    why: str


def bit_agents() -> list[str]:
    """Return the ids of all agents that are told right or wrong, those whose library is missing included."""
    found = []
    for entry in Registry().entries("agents"):
        cls = entry.load()
        if cls.feedback == "bit":
            found.append(entry.id)
    return found


def blindness(name: str, rounds: int, replays: int, seed: int) -> Blind:
    """Replace the labels of wrong rounds by other wrong ones, again and again; every action must stay as it was."""
    K, d = 5, 6
    rng = np.random.default_rng(seed)
    X = contexts(rng, "random", rounds, d, 1.0)
    y = np.argmax(X @ rng.standard_normal((d, K)), axis=1)
    try:
        cls = Registry().load("agents", name)
        played = _actions(cls, X, y, K)
    except (BanditlabError, ImportError) as error:
        return Blind(name, 0, 0, 0, str(error).splitlines()[0])
    replaced = different = 0
    for _ in range(replays):
        wrong = played != y
        other = (y + 1 + rng.integers(0, K - 1, rounds)) % K  # never the true label
        other = np.where(wrong & (other != played), other, y)
        replaced += int((other != y).sum())
        different += int((_actions(cls, X, other, K) != played).sum())
    return Blind(name, rounds, replaced, different, "")


def _actions(cls: Any, X: Floats, y: Labels, K: int) -> Labels:
    agent = cls(Problem(X.shape[1], K, 1.0, len(y)), np.random.default_rng(7))
    if hasattr(agent, "play_block"):
        trace = Trace.empty(len(y))
        agent.play_block(X, y, trace)
        return trace.action.copy()
    actions = np.empty(len(y), np.int64)
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        decision = agent.act(x)
        actions[t] = decision.action
        agent.learn(x, decision, bool(decision.action == label))
    return actions


# ----------------------------------------------------------------------------------------------------------------- page


def table(head: str, rows: list[str]) -> str:
    """Return a Markdown table."""
    columns = head.count("|") - 1
    return "\n".join([head, "|" + " --- |" * columns, *rows])


def page(cells: list[Cell], searches: list[Search], blinds: list[Blind], seconds: float, command: str) -> str:
    """Return docs/results/conformance.md."""
    lines = [
        "# Conformance: 45 digits, certificates searched, labels hidden",
        f"Made by `{command}` in {seconds / 60.0:.0f} minutes.",
        "Do computed certificates bound the regret in float64, and do agents observe nothing but the bit?",
        "",
        f"**A search among {sum(s.random + s.searched - s.nan for s in searches):,} certificates finds "
        f"{sum(s.false for s in searches)} that are below the regret. Of {sum(c.streams - c.nan for c in cells):,} "
        f"certificates that were also computed with 45 digits, {sum(c.false for c in cells)} are below the 45-digit "
        f"value. In {sum(b.replaced for b in blinds):,} rounds with a wrong action, we replaced the label by another label for "
        f"which the action is also wrong; {sum(b.different for b in blinds)} actions changed.**",
        "",
        "## Against 45 digits",
        "`tests/conformance/witness.py` computes the papers' update equations with full matrices and 45 digits",
        "(mpmath). The table compares the forecasters with this reference on the same streams. The number of classes K is 2,",
        "3, 5, 10 or 20 (the dual form, gaf and ftrl 2, 5, 20; gaf-fresh 3, aioli 2, ons 2, 3). B R is 1e-3, 1 or",
        "1e3 (ons 1e-3 and 1), and R is from 1e-3 to 1e5. Contexts are random, repeated, close to each other, or",
        "of rank 1. `logits`: the largest error, relative to 1 + the largest logit. `certificate`: the largest",
        "relative excess over the 45-digit certificate. `NaN`: no certificate. `below`: a certificate that is",
        "lower than the exact one by 1e-6.",
        "",
        table(
            r"| forecaster | $R^2/\lambda$ | streams | logits | probabilities | certificate | NaN | below |",
            [
                f"| {c.name} | {'its own' if math.isnan(c.ratio) else format(c.ratio, '.0e')} | {c.streams} | {c.logits:.0e} "
                f"| {c.probabilities:.0e} | {c.above:.0e} | {c.nan} | {c.false} |"
                for c in cells
            ],
        ),
        "",
        "## Certificates searched",
        r"The search starts with random streams of up to 15 rounds: K from 2 to 20, d up to 3, $R^2/\lambda$ from",
        r"1e-6 to 1e12 (folklore and gaf up to 2,000), and B R from 1e-3 to 1e3 (ONS up to 2). From the worst",
        r"streams it changes a label, a context, B or $\lambda$, and retains a change if regret / certificate",
        r"rises. The regret is against a W that an interior-point method finds, so it is never too large. A ratio",
        r"near 1 means that the search could have found a false certificate.",
        "",
        table(
            "| forecaster | random | searched | NaN | false | largest regret / certificate | at |",
            [
                f"| {s.name} | {s.random:,} | {s.searched:,} | {s.nan} | {s.false} | {s.ratio:.4f} | {s.where} |"
                for s in searches
            ],
        ),
        "",
        "## Labels of wrong rounds",
        "Every agent runs on a stream with K = 5. Then other wrong labels replace the labels of its wrong rounds, and",
        "the agent runs again from the same seed. Every action must be the same.",
        "",
        table(
            "| agent | rounds | labels replaced | actions that differ |",
            [f"| {b.name} | {b.rounds:,} | {b.replaced:,} | {b.different} |" for b in blinds if not b.why],
        ),
    ]
    left = [f"* {b.name}: {b.why}" for b in blinds if b.why]
    if left:
        lines += ["", "Not played:", "", *left]
    return "\n".join(lines) + "\n"


CLASSES = (2, 3, 5, 10, 20)
COMPARED: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "folklore": ((-6, 0, 3), CLASSES),
    "folklore dual": ((-6, 0, 3), (2, 5, 20)),
    "gaf": ((-6, 0, 3), (2, 5, 20)),
    "gaf-fresh": ((0, 3), (3,)),
    "ftrl": ((-6, 0, 6), (2, 5, 20)),
    "ons": ((0,), (2, 3)),
    "ogd": ((0,), CLASSES),
    "aioli": ((-6, 0, 3, 6, 9, 12), (2,)),
}
"""Exponents of R^2 / lambda and numbers of classes at which a forecaster is compared."""


def lines_of(name: str) -> list[Cell]:
    """Return a forecaster's lines of the 45-digit table; those whose lambda is their own say so."""
    cells = list(conformance(name, *COMPARED[name], 1))
    return [cell._replace(ratio=math.nan) for cell in cells] if name in ("ons", "ogd") else cells


def main(
    *, random: int = 400, climbs: int = 6, steps: int = 60, rounds: int = 300, replays: int = 5, workers: int = 1
) -> None:
    """Run the three parts in `workers` processes and write the page."""
    began = time.perf_counter()
    jobs: list[Any] = [delayed(lines_of)(name) for name in NAMES if name != "b-grid"]  # its members are folklore's
    jobs += [delayed(search)(name, random, climbs, steps, 2) for name in NAMES]
    jobs += [delayed(blindness)(name, rounds, replays, 3) for name in bit_agents()]
    cells: list[Cell] = []
    searches: list[Search] = []
    blinds: list[Blind] = []
    for done in Parallel(workers, return_as="generator")(jobs):
        print(done, flush=True)
        if isinstance(done, list):
            cells += done
        elif isinstance(done, Search):
            searches.append(done)
        else:
            blinds.append(done)
    command = f"python -m benchmarks conformance --random {random} --climbs {climbs} --steps {steps}"
    if (rounds, replays) != (300, 5):
        command += f" --rounds {rounds} --replays {replays}"
    PAGE.write_text(page(cells, searches, blinds, time.perf_counter() - began, command), encoding="utf-8")
    print(f"written: {PAGE.relative_to(PAGE.parents[2])}")
