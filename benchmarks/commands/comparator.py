"""The comparator over many different contexts, beside scikit-learn's LogisticRegression (lbfgs) on the same rounds.

Logistic-v0 draws unit contexts, all different, and labels of a planted model of row norm 10. Measured: collapsing the
stream; `best_in_ball` from W = 0 for each B; `comparators_along`, as a sweep asks for the last round (it solves the
1-2-5 scale before it, and reads the stream); scikit-learn without intercept. Processor seconds, wall seconds beside
them; one thread.

scikit-learn has no ball. Where B leaves our optimum inside (10 and 30 here) the losses are those of one problem, and its
`tol` is tightened tenfold from the default until its loss is at most ours at the optimum times 1 + 1e-6: all that a gap
of 1e-6 promises. Where the ball binds, its strength C is found by bisection on every 5th round, so that its loss there is
the ball's, and the same `tol` is taken; the losses on all rounds then differ a little, as printed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.comparators import Comparator, StreamCounts, best_in_ball, comparators_along
from banditlab.envs.logistic import Logistic
from banditlab.losses import logistic_loss

BALLS = (1.0, 3.0, 10.0, 30.0)
EVERY = 5
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def main(*, rounds: int = 1_000_000, classes: int = 10, features: int = 64, seed: int = 1) -> None:
    """Print both tables."""
    env = Logistic(n_features=features, n_classes=classes, horizon=rounds)
    env.reset(seed=seed)
    stream = StreamCounts(features, classes)
    drawn, _, _ = timed(lambda: list(env.blocks(rounds, 1024)))
    print(f"{rounds:,} rounds, K = {classes}, d = {features}\n")
    _, cpu, wall = timed(lambda: [stream.add(X, y) for X, y in drawn])
    print(f"collapse: {cpu:.2f} s of processor time, {wall:.2f} s\n")
    U, counts = stream.collapsed()
    y = np.argmax(counts, axis=1)
    print("|  | B | CPU s | s | loss, nats | gap / loss | sum of CPU s |\n|---|---:|---:|---:|---:|---:|---:|")
    best = _table("best_in_ball", lambda: (timed(lambda B=B: best_in_ball(U, counts, B)) for B in BALLS))  # type: ignore[misc]
    along = comparators_along(env.blocks(rounds, 1024), [rounds], BALLS, features, classes)
    _table("along a stream", lambda: (timed(lambda: next(along)[1]) for _ in BALLS))
    _peers(U, y, best)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a call returns, its processor seconds and its wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = work()
    return found, time.process_time() - cpu, time.perf_counter() - wall


def _table(name: str, solves: Callable[[], Any]) -> dict[float, Comparator]:
    """Print the lines of one way; return what it found by B."""
    total, found = 0.0, {}
    for c, cpu, wall in solves():
        total += cpu
        found[c.norm_bound] = c
        cells = f"{cpu:.2f} | {wall:.2f} | {c.loss:.2f} | {c.gap / c.loss:.1e} | {total:.2f}"
        print(f"| {name} | {c.norm_bound:g} | {cells} |", flush=True)
    return found


def _peers(U: Floats, y: Ints, best: dict[float, Comparator]) -> None:
    """Print scikit-learn's lines."""
    print("\n| scikit-learn, as | C | tol | iterations | CPU s | s | loss, nats | / ours |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    tol = 1e-4
    for B in sorted(best, reverse=True):
        inside = bool(np.linalg.norm(best[B].weights, axis=1).max() < 0.999 * B)
        strength = np.inf if inside else _strength(U[::EVERY], y[::EVERY], best[B].weights)
        while True:
            (iterations, loss), cpu, wall = timed(lambda s=strength, t=tol: fitted(U, y, s, t))  # type: ignore[misc]
            if not inside or loss <= best[B].loss * (1.0 + 1e-6):
                break
            tol /= 10.0
        print(
            f"| B = {B:g} | {strength:.3g} | {tol:.0e} | {iterations} | {cpu:.2f} | {wall:.2f} | {loss:.2f} "
            f"| {loss / best[B].loss:.7f} |",
            flush=True,
        )


def fitted(U: Floats, y: Ints, strength: float, tol: float) -> tuple[int, float]:
    """Fit scikit-learn's multinomial model; return its iterations and its loss in nats."""
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's own remarks about C = inf and iterations
        model = LogisticRegression(C=strength, tol=tol, max_iter=1000, fit_intercept=False).fit(U, y)
    loss = sum(
        float(logistic_loss(U[i : i + 8192] @ model.coef_.T, y[i : i + 8192]).sum()) for i in range(0, len(y), 8192)
    )
    return int(model.n_iter_[0]), loss


def _strength(U: Floats, y: Ints, W: Floats) -> float:
    """Return the C for all rounds at which scikit-learn's loss on these few is that of W."""
    goal = float(logistic_loss(U @ W.T, y).sum())
    low, high = -12.0, 12.0  # of ln C
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fitted(U, y, np.exp(middle), 1e-4)[1] < goal else (middle, high)
    return float(np.exp(0.5 * (low + high)) / EVERY)
