"""Time of a round of the full-information learners at K = 10 (AIOLI: 2), d = 64, one core, against matrix products.

CPU microseconds, medians of blocks of rounds after as many unmeasured ones; contexts are dense, on the unit sphere, labels
uniform. Columns: `predict` one context; `many`, a context of a batch of predict_many; `round`, a forecast and an update
as forecast_block does them (one kernel call); `predict + update`, the two kernels one after the other, as the step path
calls them.

The floor is what the multiplications and additions of one FOLKLORE round cost inside a matrix product on the same core:
their number, in pairs, over the speed of dgemm at the fastest of several square shapes, measured in the same process
between the other measurements and through the same BLAS as the kernels. It counts each entry of the symmetric A^{-1} once:

    V = A^{-1} (I (x) x)                             K^2 d^2              (of which a forecast alone K (K + 1) / 2 d^2)
    A^{-1} -= V Qc V', its upper K (K + 1) / 2 blocks, rank K             K^2 (K + 1) / 2 d^2

Left out, hence in the ratio against us: the root of K equations, the K x K core, the d K^2 of h = A^{-1} G, and everything
that the delayed update adds. Without the use of symmetry the same round counts K^2 d^2 + K^3 d^2, for which the second
ratio stands.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import bind, njit
from banditlab.players.forecaster import KernelForecaster
from banditlab.problem import Problem
from banditlab.registry import registry

FEATURES, CLASSES = 64, 10
ROUNDS, REPEATS = 200, 15
SHAPES = (256, 384, 512, 640)

LEARNERS: list[tuple[str, int, dict[str, Any]]] = [
    ("folklore", CLASSES, {"norm_bound": 5.0}),
    ("gaf", CLASSES, {"norm_bound": 5.0, "regularization": 0.1}),
    ("ons", CLASSES, {"norm_bound": 5.0, "step": 1.0, "regularization": 1.0, "projection": "none"}),
    ("ogd", CLASSES, {"norm_bound": 5.0}),
    ("aioli", 2, {"norm_bound": 5.0}),
    ("folklore", 2, {"norm_bound": 5.0}),
]


class Times(NamedTuple):
    """Median CPU microseconds a round."""

    predict: float
    many: float
    round: float
    both: float


def predict_rounds(state, X, y, z):  # type: ignore[no-untyped-def]
    """Forecast every context of X (n, d)."""
    for t in range(X.shape[0]):
        predict_kernel(state, X[t], z)  # type: ignore[name-defined]  # noqa: F821


def predict_update_rounds(state, X, y, z):  # type: ignore[no-untyped-def]
    """Forecast and then learn, one call each."""
    for t in range(X.shape[0]):
        predict_kernel(state, X[t], z)  # type: ignore[name-defined]  # noqa: F821
        update_kernel(state, X[t], y[t], z)  # type: ignore[name-defined]  # noqa: F821


@njit
def product(A, B, C):  # type: ignore[no-untyped-def]
    """C = A B by the BLAS that kernels call."""
    np.dot(A, B, C)


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def products() -> list[Callable[[], float]]:
    """Return, for each shape, a function that measures one product and returns multiply-adds per microsecond."""
    rng = np.random.default_rng(0)

    def speed(A: NDArray[np.float64], C: NDArray[np.float64]) -> Callable[[], float]:
        return lambda: len(A) ** 3 / cpu_seconds(lambda: product(A, A, C)) / 1e6

    return [speed(rng.standard_normal((n, n)), np.empty((n, n))) for n in SHAPES]


def forecaster_work(id_: str, K: int, settings: dict[str, Any]) -> list[Callable[[], Any]]:
    """Return the four columns' blocks of ROUNDS rounds on one warm learner."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((ROUNDS, FEATURES))
    X = as_contexts(X / np.linalg.norm(X, axis=1)[:, None])
    y, z, logits = rng.integers(0, K, ROUNDS), np.empty(K), np.empty((ROUNDS, K))
    learner = registry().load("forecasters", id_)(Problem(FEATURES, K, 1.0, ROUNDS), rng, **settings)
    assert isinstance(learner, KernelForecaster)
    kernels = {"predict_kernel": type(learner).predict_kernel, "update_kernel": type(learner).update_kernel}
    single = bind(predict_rounds, f"benchmark {id_}", predict_kernel=kernels["predict_kernel"])
    both = bind(predict_update_rounds, f"benchmark {id_}", **kernels)
    return [
        lambda: single(learner.state, X, y, z),
        lambda: learner.predict_many(X),
        lambda: learner.forecast_block(X, y, logits),
        lambda: both(learner.state, X, y, z),
    ]


def measure(work: list[Callable[[], Any]]) -> tuple[Times, float]:
    """Return a learner's times and the dgemm speed met between them, multiply-adds per microsecond."""
    speeds = products()
    for block in [*work, *speeds]:
        block()
    seconds: list[list[float]] = [[] for _ in work]
    found: list[list[float]] = [[] for _ in speeds]
    for _ in range(REPEATS):
        for block, samples in zip(work, seconds, strict=True):
            samples.append(1e6 * cpu_seconds(block) / ROUNDS)
        for speed, rates in zip(speeds, found, strict=True):
            rates.append(speed())
    return Times(*map(statistics.median, seconds)), max(map(statistics.median, found))


def multiply_adds(K: int, d: int) -> tuple[int, int, int]:
    """Return FOLKLORE's pairs of a multiplication and an addition: a forecast, a round, a round without symmetry."""
    upper = K * (K + 1) // 2 * d * d
    return upper, K * K * d * d + K * upper, K * K * d * d + K * (K * d) ** 2


def main() -> None:
    """Print the table."""
    print(f"d = {FEATURES}, one core, CPU us a round, medians of {REPEATS} blocks of {ROUNDS} rounds\n")
    print(f"{'learner':12}{'K':>3}{'predict':>10}{'many':>10}{'round':>10}{'predict + update':>18}{'rounds/s':>12}")
    floors = []
    for id_, K, settings in LEARNERS:
        times, speed = measure(forecaster_work(id_, K, settings))
        print(
            f"{id_:12}{K:>3}{times.predict:>10.2f}{times.many:>10.2f}{times.round:>10.2f}{times.both:>18.2f}"
            f"{1e6 / times.round:>12,.0f}"
        )
        if id_ == "folklore" and K == CLASSES:
            floors.append((times, speed))
    [(times, speed)] = floors
    forecast, one_round, full = multiply_adds(CLASSES, FEATURES)
    print(f"\nFOLKLORE, K = {CLASSES}: dgemm makes {speed / 1e3:.1f} multiply-adds a nanosecond.")
    print(f"A round is {one_round:,} of them, {one_round / speed:.1f} us in matrix products:")
    print(f"  round            {times.round:7.1f} us = {times.round * speed / one_round:.2f} x", end="")
    print(f"  ({times.round * speed / full:.2f} x without the use of symmetry, {full:,})")
    print(f"  predict + update {times.both:7.1f} us = {times.both * speed / one_round:.2f} x", end="")
    print(f"  ({times.both * speed / full:.2f} x)")
    print(
        f"A forecast alone is {forecast:,}, {forecast / speed:.1f} us, but reads {8 * forecast / 2**20:.1f} MiB once:"
    )
    print(f"  predict          {times.predict:7.1f} us = {times.predict * speed / forecast:.2f} x")
    print(f"  predict_many     {times.many:7.1f} us = {times.many * speed / forecast:.2f} x")
