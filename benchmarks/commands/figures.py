"""A small study for each algorithm and environment that no other study plays: what its page of the site shows as measured.

    python -m benchmarks figures --keep

writes docs/results/small-studies.csv; `--only ID` plays one study (with --keep its rows alone are replaced). A study is a
function that yields points: a line of the figure, where on the axis, and one number a stream. They take minutes in
all. That of `banditlab/Gymnasium-v0` needs the extra `foreign`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab import Problem, best_in_ball, make_agent, make_env, make_forecaster, play
from banditlab.bounds.folklore import folklore_kernel
from banditlab.bounds.gaf import gaf_kernel
from banditlab.envs import StreamEnv
from banditlab.losses import softmax
from benchmarks.measure.names import picked

Floats = NDArray[np.float64]
TABLE = Path(__file__).parents[2] / "docs" / "results" / "small-studies.csv"
STREAMS = 4
ROUNDS = (100, 200, 500, 1000, 2000)


class Point(NamedTuple):
    """A line of the figure, its place on the axis, and a number for each stream."""

    line: str
    x: float
    values: tuple[float, ...]


# --------------------------------------------------------------------------------------------------- forecasters: regret


class Curved(StreamEnv):
    """Labels of a planted model that is quadratic in the context, K = 3: softmax(W phi(x)), rows of W of norm B.

    x = (a, 1) / sqrt(2) with a uniform on the circle, and phi(x) (10,) the features of the kernel (1 + x'y)^2, |phi| = 2.
    """

    id = "study/Curved-v0"
    summary = "labels of a planted quadratic model"
    reference = "made for this study"
    version = 1

    def __init__(self, *, norm_bound: float = 2.0, horizon: int = 2000) -> None:
        self.norm_bound = norm_bound
        super().__init__(Problem(n_features=3, n_classes=3, radius=1.0, horizon=horizon))

    def _draw(self, streams: Any, size: int) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
        W = streams.model.standard_normal((3, 10))
        W *= self.norm_bound / np.linalg.norm(W, axis=1, keepdims=True)
        while True:
            angle = math.tau * streams.contexts.random(size)
            X = np.column_stack([np.cos(angle), np.sin(angle), np.ones(size)]) * ((1.0 - 1e-12) / math.sqrt(2.0))
            p = np.cumsum([softmax(z) for z in quadratic(X) @ W.T], axis=1)
            yield X, np.minimum((streams.labels.random(size)[:, None] > p).sum(axis=1), 2).astype(np.int64)


def quadratic(X: Floats) -> Floats:
    """Return phi(x) (n, 1 + d + d (d + 1)/2) of contexts (n, d), with phi(x)'phi(y) = (1 + x'y)^2."""
    i, j = np.triu_indices(X.shape[1])
    pairs = X[:, i] * X[:, j] * np.where(i == j, 1.0, math.sqrt(2.0))
    return np.hstack([np.ones((len(X), 1)), math.sqrt(2.0) * X, pairs])


def regrets(
    id_: str,
    env: Any,
    B: float,
    settings: dict[str, Any],
    *,
    features: Callable[[Any, Floats], Floats] = lambda player, X: X,
    theorem: Callable[[Any, Floats, int], float | None] = lambda player, X, T: player.bound(T),
    certificate: Callable[[Any], float] = lambda player: player.certificate(),
) -> Iterator[Point]:
    """Yield a forecaster's regret in nats over the ball B of its features, its certificate, and its theorem's bound."""
    found: dict[tuple[str, int], list[float]] = {}
    for seed in range(STREAMS):
        for T in ROUNDS:  # a fresh one each: certificates of a space are asked for at the end
            player = make_forecaster(id_, env.problem, seed=seed, norm_bound=B, **settings)
            loss = play(env, player, seed=seed, rounds=T).log_loss[-1]
            env.reset(seed=seed)
            [(X, y)] = env.blocks(T, T)
            best = best_in_ball(features(player, X), np.eye(env.problem.n_classes)[y], B).loss
            for line, value in (
                ("regret", loss - best),
                ("certificate", certificate(player)),
                ("bound", theorem(player, X, T)),
            ):
                found.setdefault((line, T), []).append(math.nan if value is None else float(value))
    yield from (Point(line, T, tuple(values)) for (line, T), values in found.items())


def aioli_direct() -> Iterator[Point]:
    """Regret over the ball B = 1 on a planted logistic model, K = 2, d = 5, with Theorem 4's number of steps."""
    env = make_env("banditlab/Logistic-v0", rounds=ROUNDS[-1], n_features=5, n_classes=2, norm_bound=1.0)
    return regrets("aioli-direct", env, 1.0, {"steps": "theory"})


def folklore_direct() -> Iterator[Point]:
    """Regret over the ball B = 2 on a planted logistic model, K = 3, d = 3."""
    env = make_env("banditlab/Logistic-v0", rounds=ROUNDS[-1], n_features=3, n_classes=3, norm_bound=2.0)
    return regrets("folklore-direct", env, 2.0, {})


def fourier_folklore() -> Iterator[Point]:
    """Regret over the ball B = 2 of its own 20 Fourier features, on the curved stream."""
    return regrets(
        "fourier-folklore",
        Curved(),
        2.0,
        {"features": 20, "bandwidth": 0.5},
        features=lambda player, X: player.phi(X),
        theorem=lambda player, X, T: player.space_bound(T),
        certificate=lambda player: player.space_certificate(),
    )


def of_kernel(id_: str, theorem: Callable[..., float], settings: dict[str, Any]) -> Iterator[Point]:
    """Yield a kernel forecaster's regret over the ball B = 2 of the kernel (1 + x'y)^2, R = 2, on the curved stream."""

    def bound(player: Any, X: Floats, T: int) -> float:
        lam, c = player.regularization, player.curvature
        dimension = player.effective_dimension(X, 2.0 * lam / c)
        return theorem(T, dimension, 3, 2.0, player.feature_radius, lam, c)

    return regrets(
        id_,
        Curved(),
        2.0,
        {"kernel": "polynomial", "degree": 2} | settings,
        features=lambda player, X: quadratic(X),
        theorem=bound,
        certificate=lambda player: player.space_certificate(),
    )


def kernel_folklore() -> Iterator[Point]:
    """Regret over the ball B = 2 of the kernel (1 + x'y)^2, on the curved stream."""
    return of_kernel("kernel-folklore", folklore_kernel, {})


def kernel_gaf() -> Iterator[Point]:
    """Regret over the ball B = 2 of the kernel (1 + x'y)^2 at lambda = 8, on the curved stream."""
    return of_kernel("kernel-gaf", gaf_kernel, {"regularization": 8.0})


# --------------------------------------------------------------------------------------------- boosters, environments: mistakes


def shares(env: Any, agents: dict[str, Any], rounds: tuple[int, ...]) -> Iterator[Point]:
    """Yield the mistakes of players in per cent of the rounds so far; an agent is a function of the problem and a seed."""
    for line, make in agents.items():
        runs = [
            play(env, make(env.problem, seed), seed=seed, checkpoints=list(rounds)).mistakes for seed in range(STREAMS)
        ]
        for i, T in enumerate(rounds):
            yield Point(line, T, tuple(100.0 * run[i] / T for run in runs))


def agent(id_: str, **settings: Any) -> Callable[[Problem, int], Any]:
    """Return what makes an agent of a problem and a seed."""
    return lambda problem, seed: make_agent(id_, problem, seed=seed, **settings)


def boosted_exploration() -> Iterator[Point]:
    """Mistakes against T on a planted logistic model, K = 3, d = 5, B = 10; everyone explores with gamma = 0.3."""
    env = make_env("banditlab/Logistic-v0", rounds=20_000, n_features=5, n_classes=3, norm_bound=10.0)
    boosted = agent("boosted-exploration", gamma=0.3, n_learners=10, weak_learner="forecaster")
    return shares(
        env,
        {
            "boosted-exploration": boosted,
            "exploration(ogd)": agent("exploration", gamma=0.3),
            "uniform": agent("uniform"),
        },
        (500, 1000, 2000, 5000, 10_000, 20_000),
    )


def weak_forecaster() -> Iterator[Point]:
    """Mistakes of adaboost-olm over N forecasters, and of draws from one forecaster; quadratic model, B = 20, T = 2,000."""
    env = Curved(norm_bound=20.0)
    env = Curved(norm_bound=20.0)
    [alone] = shares(env, {"ogd alone": agent("sampled", forecaster="ogd")}, (ROUNDS[-1],))
    for N in (1, 2, 5, 10, 20, 50):
        made = agent("adaboost-olm", n_learners=N, weak_learner="forecaster")
        [point] = shares(env, {"adaboost-olm over ogd": made}, (ROUNDS[-1],))
        yield point._replace(x=N)
        yield alone._replace(x=N)


def adversary() -> Iterator[Point]:
    """Mistakes in 5,000 rounds against rho; an interrupted round is a mistake of whoever plays one class a cell."""
    agents = {name: agent(name) for name in ("fastcb", "banditron", "uniform")}
    for rho in (0.02, 0.05, 0.1, 0.2, 0.5):
        env = make_env("banditlab/Adversary-v0", rounds=5000, rho=rho)
        for point in shares(env, agents, (5000,)):
            yield point._replace(x=rho)
        yield Point("interrupted", rho, (100.0 * rho,) * STREAMS)


def gymnasium() -> Iterator[Point]:
    """Mistakes against T on buffalo_gym's ContextualBandit-v0, right above 7.5; the 4 arms change after 1,000 steps."""
    env = make_env(
        "banditlab/Gymnasium-v0",
        rounds=2000,
        name="buffalo_gym:ContextualBandit-v0",
        options={"arms": 4},
        right_above=7.5,
    )
    names = ("fastcb", "epsilon-greedy-direct", "uniform")
    return shares(env, {name: agent(name) for name in names}, ROUNDS)


def sparse() -> Iterator[Point]:
    """Mistakes against T on documents of 40 words out of d = 10,000, K = 4."""
    env = make_env("banditlab/Sparse-v0", rounds=20_000, n_features=10_000)
    names = ("banditron", "soba-diag", "epsilon-greedy-direct", "uniform")
    return shares(env, {name: agent(name) for name in names}, (500, 1000, 2000, 5000, 10_000, 20_000))


# ------------------------------------------------------------------------------------------------------------------- the table


class Study(NamedTuple):
    """How a study is played, and what is on the two axes of its figure."""

    points: Callable[[], Iterator[Point]]
    x: str
    y: str

    @property
    def caption(self) -> str:
        """What is measured, as the study's docstring says it."""
        return " ".join((self.points.__doc__ or "").split())


STUDIES = {
    "boosted-exploration": Study(boosted_exploration, "rounds T", "mistakes, %"),
    "aioli-direct": Study(aioli_direct, "rounds T", "nats"),
    "folklore-direct": Study(folklore_direct, "rounds T", "nats"),
    "fourier-folklore": Study(fourier_folklore, "rounds T", "nats"),
    "kernel-folklore": Study(kernel_folklore, "rounds T", "nats"),
    "kernel-gaf": Study(kernel_gaf, "rounds T", "nats"),
    "forecaster": Study(weak_forecaster, "weak learners N", "mistakes, %"),
    "banditlab/Adversary-v0": Study(adversary, "rho", "mistakes, %"),
    "banditlab/Gymnasium-v0": Study(gymnasium, "rounds T", "mistakes, %"),
    "banditlab/Sparse-v0": Study(sparse, "rounds T", "mistakes, %"),
}
COLUMNS = ("id", "line", "x", "mean", "standard error", "streams")


def main(*, only: str = "", keep: bool = False) -> None:
    """Play the studies, print their rows, and with `keep` write the table."""
    found = {}
    for id_ in picked("only", only, STUDIES):
        found[id_] = [row(id_, point) for point in STUDIES[id_].points()]
        print("\n".join(",".join(r) for r in found[id_]), flush=True)
    if keep:
        write(TABLE, found)


def row(id_: str, point: Point) -> tuple[str, ...]:
    """Return a point as the table has it: the mean over streams and its standard error."""
    values = np.array(point.values)
    error = values.std(ddof=1) / math.sqrt(len(values))
    return (id_, point.line, f"{point.x:g}", f"{values.mean():.4g}", f"{error:.2g}", str(len(values)))


def write(table: Path, found: dict[str, list[tuple[str, ...]]]) -> None:
    """Write the table in the order of the studies; those not played keep their rows."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    if table.is_file():
        with table.open(newline="", encoding="utf-8") as file:
            for told in list(csv.reader(file))[1:]:
                rows.setdefault(told[0], []).append(tuple(told))
    rows |= found
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(line for id_ in STUDIES for line in rows.get(id_, []))
