"""What boosters of 100 trees cost beside their trees: `docs/results/boosting-speed.md`.

Over compiled trees a booster plays once while what its learners are handed is written down: costs before every prediction,
weights before every update. A kernel then takes equal trees through the same predictions and updates, without a booster,
and must leave them equal to the last bit; the rest of the booster's time is its own. Over river's trees the time inside
`predict_proba_one` and `learn_one` is the trees', the rest, timers included, the booster's own. Processor time, both in turn,
medians. The sets are those of `runs/boosting-tables-SET.toml` (fetched from openml.org once, see there).
"""

from __future__ import annotations

import gc
import importlib.metadata
import statistics
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.compiled_rounds import draw_ties, follow, parts
from banditlab.boosting.losses import SHARES, gradient
from banditlab.boosting.trees.forest import Forest, estimate, prepare, teach, teach_one, uniform
from banditlab.boosting.weak.weak_learner import Floats, least_costly
from banditlab.envs.openml import OpenML
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import borrow, njit
from banditlab.players.agent import Trace
from banditlab.problem import Problem
from banditlab.registry import registry

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/results/boosting-speed.md"
SETS = {"balance-scale": 625, "nursery": 2_000}
"""Rounds that are played of each set over compiled trees."""
RIVER_ROUNDS = 200
BOOSTERS = ("adaboost-olm", "adaboost-olm++")
REPEATS = 9
RIVER_REPEATS = 5
STRETCH, RIVER_STRETCH = 125, 10
"""Rounds that are played, or replayed, at a time."""


class Set(NamedTuple):
    """A stream of a data set, and the settings of its booster and trees in the tables."""

    problem: Problem
    X: Floats
    y: NDArray[np.int64]
    settings: dict[str, Any]


class Row(NamedTuple):
    """Microseconds for each learner and round: its tree, tree and choice, the whole booster, and what is taken as the tree's.

    The last is the tree in the booster's order, or with river's the learners' calls within the booster, and what these are a
    part of. The second is None where there is no such thing.
    """

    data: str
    trees: str
    booster: str
    weights: str
    tree: float
    learner: float | None
    whole: float
    strict: float
    strict_whole: float


def read_set(name: str, rounds: int) -> Set:
    """Return the first rounds of a set's first order."""
    spec = tomllib.loads((ROOT / f"runs/boosting-tables-{name}.toml").read_text())
    [given] = spec["environment"]
    env = OpenML(**{key: value for key, value in given.items() if key != "id"}, horizon=spec["rounds"])
    env.reset(seed=0)
    [(X, y)] = env.blocks(rounds, rounds)
    [settings] = [b for b in spec["booster"] if b["id"] == "adaboost-olm" and "derivative" not in b]
    return Set(env.problem, as_contexts(X), y, {key: value for key, value in settings.items() if key != "id"})


def build(data: Set, id_: str, settings: dict[str, Any]) -> Any:
    """Return a booster of 100 trees."""
    return registry().load("boosters", id_)(data.problem, np.random.default_rng(1), **settings)


# ---------------------------------------------------------------------------------------------------------- compiled trees


@njit(cache=False)
def trees_alone(forest, room, V, y, costs, weights, chooses, cursor, sink):  # type: ignore[no-untyped-def]
    """Take the trees through predictions and updates; return whether it ended, see `play_template`."""
    forest, room, V, y = borrow(forest), borrow(room), borrow(V), borrow(y)
    costs, weights, sink = borrow(costs), borrow(weights), borrow(sink)
    t, j, gain = cursor[0], cursor[1], room.gain[: room.p.shape[0]]
    while t < y.shape[0]:
        if j < 0:
            prepare(forest, V[t], room.estimates, room.uniforms)
            for i in range(weights.shape[1]):
                if chooses:
                    sink[0] += least_costly(room.estimates[i], costs[t, i], gain, room.uniforms[i])
            j = 0
        j = teach(forest, j, V[t], y[t], weights[t])
        if j < forest.trees.shape[0]:
            cursor[0], cursor[1] = t, j
            return False
        t, j = t + 1, -1
    return True


@njit(cache=False)
def trees_alone_in_turn(forest, room, V, y, weights, cursor):  # type: ignore[no-untyped-def]
    """The same in the order of `play_template`: a tree learns a round and is asked the next one at once."""
    forest, room, V, y, weights = borrow(forest), borrow(room), borrow(V), borrow(y), borrow(weights)
    t, first = cursor[0], cursor[1]
    while t < y.shape[0]:
        for i in range(first, weights.shape[1]):
            if t >= 0 and not teach_one(forest, i, 0, V[t], y[t], weights[t, i]):
                cursor[0], cursor[1] = t, i
                return False
            if t + 1 < y.shape[0]:
                estimate(forest, i, V[t + 1], room.estimates[i])
                room.uniforms[i] = uniform(forest, i)
        t, first = t + 1, 0
    return True


class Script(NamedTuple):
    """What the learners of a booster were handed: costs (T, N, K, K) before predictions, weights (T, N) of updates."""

    costs: Floats
    weights: Floats


def costs_shown(booster: Any, payload: Floats, costs: Floats) -> None:
    """Write the costs that learners were handed in the round of a payload into costs (N, K, K)."""
    *_, S = parts(payload, costs.shape[-1])
    for votes, shown in zip([booster._zero, *S[:-1]], costs, strict=True):
        for r, row in enumerate(shown):
            gradient(booster.loss_code, votes, r, row)
    if booster.loss_code == SHARES:  # (C.1)
        costs -= costs.diagonal(axis1=1, axis2=2)[:, :, None].copy()
        costs /= costs.shape[-1]


def write_down(booster: Any, data: Set) -> Script:
    """Play the rounds one by one and return the script; the weights are what the booster's kernels left in its room."""
    T, N, K = len(data.y), booster.n_learners, data.problem.n_classes
    script = Script(np.zeros((T, N, K, K)), np.zeros((T, N)))
    for t, (x, label) in enumerate(zip(data.X, data.y.tolist(), strict=True)):
        decision = booster.act(x)
        costs_shown(booster, decision.payload, script.costs[t])
        booster.learn(x, decision, label)
        script.weights[t] = booster._grove.room.weights
    return script


def replayed(booster: Any, data: Set, script: Script, chooses: bool) -> Callable[[slice], None]:
    """Return what takes a booster's fresh trees through some rounds of a script."""
    forest: Forest = booster._forest()
    V, cursor, sink = booster._grove.views(data.X), np.array([0, -1]), np.zeros(1)
    room = booster._played().room

    def rounds(part: slice) -> None:
        cursor[:] = 0, -1
        given = V[part], data.y[part], script.costs[part], script.weights[part]
        while not trees_alone(forest, room, *given, chooses, cursor, sink):
            booster._grove.grow(int(cursor[1]))

    return rounds


def replayed_in_turn(booster: Any, data: Set, script: Script) -> Callable[[slice], None]:
    """Return what takes a booster's fresh trees through some rounds of a script, each tree through two halves at once."""
    forest: Forest = booster._forest()
    V, cursor = booster._grove.views(data.X), np.array([-1, 0])
    room = booster._played().room

    def rounds(part: slice) -> None:
        cursor[:] = -1, 0
        while not trees_alone_in_turn(forest, room, V[part], data.y[part], script.weights[part], cursor):
            booster._grove.grow(int(cursor[1]))

    return rounds


def played(booster: Any, data: Set) -> Callable[[slice], None]:
    """Return what plays some rounds of a booster as a block."""
    trace = Trace.empty(len(data.y))
    return lambda part: booster.play_block(data.X[part], data.y[part], trace.part(part))


def in_turn(rounds: int, size: int, ways: list[Callable[[slice], None]]) -> list[float]:
    """Return the processor seconds of each way through the rounds, a stretch of `size` rounds of each in turn."""
    times = [0.0] * len(ways)
    gc.collect()
    gc.disable()  # which of the ways would meet a collection is chance
    for start in range(0, rounds, size):
        for i, way in enumerate(ways):
            times[i] += timed(way, slice(start, min(start + size, rounds)))
    gc.enable()
    return times


def same_trees(one: Any, other: Any) -> bool:
    """Whether two boosters' trees are equal to the last bit."""
    pairs = zip(one.learners, other.learners, strict=True)
    return all(np.array_equal(a, b) for one, other in pairs for a, b in zip(one.state, other.state, strict=True))


def compiled_row(name: str, data: Set, id_: str, settings: dict[str, Any], repeats: int) -> Row:
    """Measure a booster over compiled trees."""
    script = write_down(build(data, id_, settings), data)
    times = []
    for _ in range(repeats + 1):  # the first one compiles
        tree, learner, whole, turn = (build(data, id_, settings) for _ in range(4))
        ways = [replayed(tree, data, script, False), replayed(learner, data, script, True), played(whole, data)]
        times.append(in_turn(len(data.y), STRETCH, [*ways, replayed_in_turn(turn, data, script)]))
        if not all(same_trees(one, whole) for one in (tree, learner, turn)):
            raise AssertionError(f"{id_} on {name}: the trees alone are not the booster's")
    unit = 1e6 / (len(data.y) * whole.n_learners)
    tree, chosen, all_, turn = (unit * statistics.median(column) for column in zip(*times[1:], strict=True))
    return Row(name, "compiled", id_, str(settings["weight_scale"]), tree, chosen, all_, turn, all_)


# ------------------------------------------------------------------------------------------------------------ river's trees


def river_row(name: str, data: Set, id_: str, settings: dict[str, Any], repeats: int) -> Row:
    """Measure a booster over river's trees: the rounds of a block, and the same calls of equal trees in a plain loop."""
    recorded = build(data, id_, settings)
    weights = np.zeros((len(data.y), recorded.n_learners))
    for t, (x, label) in enumerate(zip(data.X, data.y.tolist(), strict=True)):
        recorded.learn(x, recorded.act(x), label)
        weights[t] = recorded._grove.room.weights
    times = []
    for _ in range(repeats):
        alone, whole = (build(data, id_, settings) for _ in range(2))
        taken = in_turn(len(data.y), RIVER_STRETCH, [river_alone(alone, data, weights), played(whole, data)])
        times.append([*taken, *by_the_clock(build(data, id_, settings), data)])
        if [one._tree.n_nodes for one in alone.learners] != [one._tree.n_nodes for one in whole.learners]:
            raise AssertionError(f"{id_} on {name}: the trees alone are not the booster's")
    unit = 1e6 / (len(data.y) * whole.n_learners)
    tree, all_, learners, within = (unit * statistics.median(column) for column in zip(*times, strict=True))
    return Row(name, "river", id_, str(settings["weight_scale"]), tree, None, all_, learners, within)


def river_alone(booster: Any, data: Set, weights: Floats) -> Callable[[slice], None]:
    """Return what takes a booster's fresh trees through some rounds by river's own calls."""
    views, trees = [booster.view(x) for x in data.X], [learner._tree for learner in booster.learners]

    def rounds(part: slice) -> None:
        for view, label, row in zip(views[part], data.y[part].tolist(), weights[part].tolist(), strict=True):
            for tree in trees:
                tree.predict_proba_one(view)
            for tree, weight in zip(trees, row, strict=True):
                if weight > 0.0:
                    tree.learn_one(view, label, w=weight)

    return rounds


def by_the_clock(booster: Any, data: Set) -> tuple[float, float]:
    """Return the processor seconds of a booster's loops over its learners' estimates and updates, and of all its rounds."""
    grove, spent = booster._grove, 0.0

    def clocked(call: Any) -> Any:
        def run(*arguments: Any) -> Any:
            nonlocal spent
            start = time.process_time()
            answer = call(*arguments)
            spent += time.process_time() - start
            return answer

        return run

    grove.ask, grove.teach = clocked(grove.ask), clocked(grove.teach)
    [whole] = in_turn(len(data.y), len(data.y), [played(booster, data)])
    return spent, whole


# ----------------------------------------------------------------------------------------------------------------- the page


def settings_of(data: Set, trees: str, weights: float | str) -> dict[str, Any]:
    """Return what the tables give trees and booster; river's trees have no prior, largest share or spread."""
    if trees == "compiled":
        return data.settings | {"weight_scale": weights}
    shared = {key: value for key, value in data.settings.items() if key in ("one_hot", "ordered")}
    return shared | {"weight_scale": weights, "weak_learner": "hoeffding-tree"}


def measure(repeats: int) -> list[Row]:
    """Return all rows."""
    rows = []
    measures: dict[str, Callable[..., Row]] = {"compiled": compiled_row, "river": river_row}
    for trees, row in measures.items():
        for name, rounds in SETS.items():
            data = read_set(name, rounds if trees == "compiled" else RIVER_ROUNDS)
            for id_ in BOOSTERS:
                for weights in ("random", 1.0):
                    times = repeats if trees == "compiled" else RIVER_REPEATS
                    rows.append(row(name, data, id_, settings_of(data, trees, weights), times))
                    print(line(rows[-1]), flush=True)
    return rows


def percent(share: float) -> str:
    """Return a share in per cent."""
    return f"{100.0 * share:.0f} %"


def line(row: Row) -> str:
    """Return a row of the table of shares: what the booster takes beside its trees, then the other reading."""
    cells = [row.data, f"`{row.booster}`", "random" if row.weights == "random" else "1", f"{row.strict:.3g}"]
    if row.learner is None:
        cells += [percent(own_share(row)), f"{row.tree:.3g}", f"{row.whole:.3g}", f"{row.whole - row.tree:.2g}"]
        return "| " + " | ".join([*cells, percent(1.0 - row.tree / row.whole)]) + " |"
    cells += [f"{row.whole:.3g}", percent(own_share(row)), f"{row.tree:.3g}", f"{row.learner - row.tree:.2g}"]
    cells += [f"{row.whole - row.learner:.2g}", percent(1.0 - row.tree / row.whole)]
    return "| " + " | ".join([*cells, percent(1.0 - row.learner / row.whole)]) + " |"


def own_share(row: Row) -> float:
    """Return the share of the time that is the booster's own."""
    return 1.0 - row.strict / row.strict_whole


def span(rows: list[Row]) -> str:
    """Return the least and the largest own share."""
    shares = [own_share(row) for row in rows]
    return f"{100.0 * min(shares):.0f} to {percent(max(shares))}"


def page(rows: list[Row], parts_of: list[tuple[str, float, float]], repeats: int) -> str:
    """Return the page."""
    compiled = [row for row in rows if row.trees == "compiled"]
    river = [row for row in rows if row.trees == "river"]
    profile = [f"| {name} | {one:.0f} | {other:.0f} |" for name, one, other in parts_of]
    sizes = {"balance": SETS["balance-scale"], "nursery": SETS["nursery"]}
    head = HEAD.format(repeats=repeats, compiled=span(compiled), river=span(river), **sizes)
    version = importlib.metadata.version("river")
    last = RIVER.format(rounds=RIVER_ROUNDS, repeats=RIVER_REPEATS, version=version, river=span(river))
    return "\n".join([head, *map(line, compiled), MIDDLE, *profile, last, *map(line, river), ""])


HEAD = """# What boosters cost beside their trees

**The booster's own share of the time is {compiled} over compiled trees and {river} over river's.** Written by
`python -m benchmarks boosters`. 100 trees, processor time of one thread on a shared two-core machine, medians of
{repeats} runs, stretches of the booster's rounds and of its trees alone in turn. Microseconds for each learner and round.

## Compiled trees

`compiled-hoeffding-tree`: trees and their tuning as in the specs of the tables, `weight_scale = "random"` or 1 (the default);
balance-scale (K = 3, {balance} rows) and the first {nursery:,} rows of nursery (K = 5, 8 nominal or ordered columns). "Tree in
turn" is equal trees alone, taken through the same estimates and updates and equal to the last bit afterwards. They go in the
order in which a block takes them: a tree learns a round and is asked the next one while it is at hand in the cache. What
the booster takes beside these is its own: choice, costs, votes, steps, experts, hedge, the block's bookkeeping.

The last five columns have the trees alone in another order: all are asked, then all are taught, as it must be
where a booster answers round by round. That order is slower for the trees. What it costs is taken from the booster's share
there, which comes out too small and even below 0: no booster takes less than no time. These columns say what a block
saves over answering round by round, not what the booster costs. "Choice" is the rest of a weak learner's
prediction, argmin of the expected costs; "rest" is all without tree and choice.

| set | booster | weights | tree in turn, us | all, us | booster's own share | tree asked, then taught, us | choice, us | \
rest, us | all but that tree | all but that tree and choice |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"""

MIDDLE = """
Where the booster's own time goes, nanoseconds for each learner and round (balance-scale, weights 1, each piece by itself in
a loop over what a run left; in a round they overlap):

| piece | `adaboost-olm` | `adaboost-olm++` |
|---|---:|---:|"""

RIVER = """
What a learner answers decides what the next one is asked, so that the pieces of a round run one after another: a learner's
step of OLM is an exponential of all classes, taken before the choice is known, and a division for each pair that changes;
that of OLM++ a logarithm of all classes, also before, a root in one unknown with one exponential, and three divisions.
Nothing of it grows with the trees: where they cost little, as
with weights of 1, which a leaf collects for a whole grace period before it looks for a split, that is a large share of
little.

## River's trees

`hoeffding-tree`, river {version}, {rounds} rounds of the same sets, medians of {repeats} runs. The booster's own share is a
profile: the time outside the learners' estimates and updates, as the booster calls them, {river}. The other columns
compare with river's own `predict_proba_one` and `learn_one` of equal trees in a plain loop. The booster reads the counts of a
leaf where `predict_proba_one` copies and divides them, so that it may take less time than its trees by river's own calls:
there, too, the difference is no cost of the booster.

| set | booster | weights | learners' calls, us | booster's own share | river's own calls, us | all, us | \
difference, us | in per cent |
|---|---|---|---:|---:|---:|---:|---:|---:|"""


# ------------------------------------------------------------------------------------------------- the pieces of a round


@njit(cache=False)
def asks(forest, room, V, costs, sink):  # type: ignore[no-untyped-def]
    """Ask every learner in every round, at the costs (N, K, K) of one."""
    forest, room, V, costs, sink = borrow(forest), borrow(room), borrow(V), borrow(costs), borrow(sink)
    gain = room.gain[: room.p.shape[0]]
    for t in range(V.shape[0]):
        prepare(forest, V[t], room.estimates, room.uniforms)
        for i in range(room.uniforms.shape[0]):
            sink[0] += least_costly(room.estimates[i], costs[i], gain, room.uniforms[i])


@njit(cache=False)
def follows(forest, room, mistakes, rounds):  # type: ignore[no-untyped-def]
    """Let every expert answer and mix the answers."""
    forest, room, mistakes = borrow(forest), borrow(room), borrow(mistakes)
    for _ in range(rounds):
        draw_ties(forest, room)
        follow(room, mistakes)


@njit(cache=False)
def responds(kernel, forest, rule, room, mistakes, V):  # type: ignore[no-untyped-def]
    """Answer every round, the state held fixed."""
    for t in range(V.shape[0]):
        kernel(forest, rule, room, mistakes, V[t])


@njit(cache=False)
def absorbs(kernel, rule, room, state, y):  # type: ignore[no-untyped-def]
    """Count and adapt in every round, at one round's votes."""
    for t in range(y.shape[0]):
        kernel(rule, room, state, y[t], t + 1)


def pieces(data: Set, id_: str) -> list[tuple[str, float]]:
    """Return the nanoseconds of each piece for each learner and round."""
    booster = build(data, id_, settings_of(data, "compiled", 1.0))
    played(booster, data)(slice(0, len(data.y)))
    forest = booster._forest()
    loops, rule, room, state = booster._played()
    V, unit = booster._grove.views(data.X), 1e9 / (len(data.y) * booster.n_learners)

    def best(function: Any, *arguments: Any) -> float:
        function(*arguments)
        return unit * min(timed(function, *arguments) for _ in range(REPEATS))

    costs = np.zeros((booster.n_learners, data.problem.n_classes, data.problem.n_classes))
    costs_shown(booster, room.payload, costs)
    asked = best(asks, forest, room, V, costs, np.zeros(1))
    followed = best(follows, forest, room, state.mistakes, len(data.y))
    answered = best(responds, loops.respond, forest, rule, room, state.mistakes, V)
    return [
        ("votes s^i and the costs at them", answered - asked - followed),
        ("experts' answers, hedge", followed),
        ("edges, weights, mistakes, step", best(absorbs, loops.absorb, rule, room, state, data.y)),
        ("(the learners' prediction: leaf, choice under costs, tie)", asked),
    ]


def timed(function: Any, *arguments: Any) -> float:
    """Return the processor seconds of a call."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def main(*, repeats: int = REPEATS) -> None:
    """Measure and write the page."""
    rows = measure(repeats)
    one, other = (pieces(read_set("balance-scale", SETS["balance-scale"]), id_) for id_ in BOOSTERS)
    table = [(name, a, b) for (name, a), (_, b) in zip(one, other, strict=True)]
    PAGE.write_text(page(rows, table, repeats), encoding="utf-8")
