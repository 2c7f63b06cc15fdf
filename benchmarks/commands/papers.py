"""What the rows of docs/papers.md measure: bounds searched, inexact roots, Lemma 7 at A_t, Corollary 6 beside SMP.

`python -m benchmarks papers` writes docs/results/papers.md: every count, none left out. Lines that are done are kept in
`build/papers`, so that it goes on where it was stopped.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from banditlab.bounds.aioli import aioli
from banditlab.bounds.folklore import folklore_error
from banditlab.comparators import best_in_ball
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore_direct import FolkloreDirect
from banditlab.losses import softmax
from banditlab.problem import Problem
from benchmarks.commands.conformance import contexts, table
from benchmarks.measure.papers.games import Floats, Game
from benchmarks.measure.papers.lines import Wrong, best, soft_loss, suffered
from benchmarks.measure.papers.search import Search, searched

PAGE = Path(__file__).parents[2] / "docs/results/papers.md"
PARTS = Path(__file__).parents[2] / "build/papers"


# --------------------------------------------------------------------------------------------------- inexact roots


def inexact_rows(rounds: int) -> list[str]:
    """Return lines of the regret of FOLKLORE whose roots are off, on one stream, at two lambdas."""
    rng = np.random.default_rng(5)
    K, d, B = 3, 4, 3.0
    X = contexts(rng, "random", rounds, d, 1.0)
    Y = np.eye(K)[[rng.choice(K, p=p) for p in softmax(2.0 * X @ rng.standard_normal((d, K)))]]
    lines, offline = [], best(best_in_ball, X, Y, B)
    for lam in (2.0 / B, 0.01):
        g = Game(X, Y, B, lam)
        for error in (0.0, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0):
            player = Wrong(Problem(d, K, 1.0), g, error)
            regret = suffered(player, g) - offline
            one = folklore_error(rounds, 1.0, lam, player.curvature)
            shown = f"{regret:.2f} | {player.certificate():.2f} | {player.bound(rounds):.1f} | {one:.2g}"
            lines.append(f"| {1.0 / lam:.3g} | {error:g} | {shown} |")
    return lines


def gradient_rows(rounds: int) -> list[str]:
    """Return lines of the gradient solver: accuracy asked, steps, accuracy met, regret."""
    rng = np.random.default_rng(6)
    K, d, B = 3, 4, 3.0
    X = contexts(rng, "random", rounds, d, 1.0)
    Y = np.eye(K)[[rng.choice(K, p=p) for p in softmax(2.0 * X @ rng.standard_normal((d, K)))]]
    offline, lines = best(best_in_ball, X, Y, B), []
    for lam in (2.0 / B, 0.01):
        for accuracy in (1e-1, 1e-3, 1e-6, 1e-12):
            settings: dict[str, Any] = {"norm_bound": B, "regularization": lam}
            player = FolkloreDirect(Problem(d, K, 1.0), None, solver="gradient", accuracy=accuracy, **settings)
            exact = FolkloreDirect(Problem(d, K, 1.0), None, **settings)
            total, worst = 0.0, 0.0
            for x, y in zip(X, Y, strict=True):
                _, At, mean = player._at(x)
                z, root = player._logits(At, mean)[0], exact._logits(At, mean)[0]
                worst = max(worst, float((z - root) @ (z - root)))
                total += soft_loss(z, y)
                player.update(x, int(np.argmax(y)))
            printed = (1.0 + 1.0 / lam) * math.log((1.0 + 1.0 / lam) ** 3 / accuracy)
            shown = f"{player._steps:,} | {math.ceil(printed):,} | {worst:.1e} | {total - offline:.3f}"
            lines.append(f"| {1.0 / lam:.3g} | {accuracy:.0e} | {shown} |")
    return lines


def after_rows(rounds: int) -> list[str]:
    """Return lines of Lemma 7 at A_{t-1} and at A_t: regrets, certificates and bounds."""
    lines = []
    for kind in ("planted", "noise", "adversarial"):
        for lam in (0.6, 0.05, 0.005):
            rng = np.random.default_rng(7)
            K, d, B = 3, 4, 3.0
            X = contexts(rng, "random", rounds, d, 1.0)
            W, noise = 3.0 * rng.standard_normal((d, K)), rng.integers(0, K, rounds)
            cells, unsolved = [], 0
            for term in ("before", "after"):
                player = FolkloreDirect(
                    Problem(d, K, 1.0),
                    None,
                    norm_bound=B,
                    regularization=lam,
                    linear_term=term,  # type: ignore[arg-type]
                )
                Y, total = np.zeros((rounds, K)), 0.0
                for t, x in enumerate(X):
                    z = player.predict(x)
                    y = {"planted": int(np.argmax(x @ W)), "noise": int(noise[t]), "adversarial": int(np.argmin(z))}[
                        kind
                    ]
                    Y[t, y] = 1.0
                    total += soft_loss(z, Y[t])
                    player.update(x, y)
                unsolved += player.diagnostics()["unsolved_roots"]
                cells += [total - best(best_in_ball, X, Y, B), player.certificate(), player.bound(rounds)]
            shown = " | ".join(f"{value:.2f}" for value in cells)
            lines.append(f"| {kind} | {1.0 / lam:.3g} | {shown} | {unsolved} |")
    return lines


# ------------------------------------------------------------------------------------------------------------- SMP


def minimised(X: Floats, y: Floats, w: Floats, lam: float, start: Floats) -> Floats:
    """Return the theta that minimises sum_i w_i ln(1 + exp(-y_i x_i'theta)) + (lam/2) |theta|^2, by Newton's method."""
    theta = start.copy()
    for _ in range(100):
        p = 1.0 / (1.0 + np.exp(np.clip(y * (X @ theta), -500, 500)))
        gradient = -(w * p * y) @ X + lam * theta
        step = np.linalg.solve((X * (w * p * (1 - p))[:, None]).T @ X + lam * np.eye(len(theta)), gradient)
        t, size = 1.0, float(gradient @ step)
        value = _objective(X, y, w, lam, theta)
        while _objective(X, y, w, lam, theta - t * step) > value - 1e-4 * t * size and t > 1e-8:
            t *= 0.5
        theta = theta - t * step
        if size <= 1e-18:
            break
    return theta


def _objective(X: Floats, y: Floats, w: Floats, lam: float, theta: Floats) -> float:
    return float(w @ np.logaddexp(0.0, -y * (X @ theta)) + 0.5 * lam * theta @ theta)


def smp(X: Floats, y: Floats, tests: Floats, R: float) -> Floats:
    """Return the sample minmax predictor's probability of +1 at the tests (m, d), lambda = 2 R^2 as a sum.

    For each label of the new x the minimiser of the losses with (x, label) among them, and the two probabilities of their own
    labels, normalised (Mourtada and Gaiffas 2019; our re-implementation).
    """
    w, lam = np.ones(len(y) + 1), 2.0 * R**2
    start = minimised(X, y, w[:-1], lam, np.zeros(X.shape[1]))
    found = []
    for x in tests:
        own = []
        for label in (1.0, -1.0):
            theta = minimised(np.vstack([X, x]), np.append(y, label), w, lam, start)
            own.append(1.0 / (1.0 + math.exp(-label * float(x @ theta))))
        found.append(own[0] / (own[0] + own[1]))
    return np.array(found)


def smp_rows(repetitions: int, tests: int) -> list[str]:
    """Return lines of the mean excess risk of Corollary 6's predictor, AIOLI's last state, SMP and ridge, in nats."""
    lines = []
    d = 3
    for B in (2.0, 10.0, 40.0):
        for n in (30, 100, 300):
            excess: list[list[float]] = []
            for seed in range(repetitions):
                rng = np.random.default_rng([11, seed])
                theta = rng.standard_normal(d)
                theta *= B / np.linalg.norm(theta)
                X = contexts(rng, "random", n + tests, d, 1.0)
                p = 1.0 / (1.0 + np.exp(-X @ theta))
                y = np.where(rng.random(len(p)) < p, 1.0, -1.0)
                T, q = X[n:], p[n:]
                player = AIOLI(Problem(d, 2, 1.0), None, norm_bound=B / 2.0)
                mean = np.zeros(tests)
                for x, label in zip(X[:n], y[:n], strict=True):
                    mean += _excess(player, T, q)
                    player.update(x, int(label < 0))
                ridge = minimised(X[:n], y[:n], np.ones(n), 2.0, np.zeros(d))
                forecasts = (smp(X[:n], y[:n], T, 1.0), 1.0 / (1.0 + np.exp(-T @ ridge)))
                row = [float(mean.mean() / n), float(_excess(player, T, q).mean())]
                excess.append(row + [float(_divergence(q, f).mean()) for f in forecasts])
            means, errors = np.mean(excess, axis=0), np.std(excess, axis=0, ddof=1) / math.sqrt(repetitions)
            corollary = aioli(n, d, B, 1.0, 1.0 / B**2) / n
            shown = " | ".join(f"{m:.4f} ± {e:.4f}" for m, e in zip(means, errors, strict=True))
            lines.append(f"| {B:g} | {n} | {shown} | {corollary:.3f} |")
    return lines


def _divergence(q: Floats, f: Floats) -> Floats:
    f = np.clip(f, 1e-300, 1.0 - 1e-16)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(q > 0, q * np.log(q / f), 0.0) + np.where(q < 1, (1 - q) * np.log((1 - q) / (1 - f)), 0.0)
    return np.asarray(parts)


def _excess(player: Any, T: Floats, q: Floats) -> Floats:
    """Return the excess risk at the tests (m,): labels follow q, the best model's own probabilities."""
    Z = player.predict_many(T)
    return np.asarray(
        q * np.logaddexp(0.0, Z[:, 1] - Z[:, 0]) + (1 - q) * np.logaddexp(0.0, Z[:, 0] - Z[:, 1]) - _entropy(q)
    )


def _entropy(q: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(q > 0, q * np.log(q), 0.0) - np.where(q < 1, (1 - q) * np.log(1 - q), 0.0)


# ------------------------------------------------------------------------------------------------------------ page


SEARCHED = r"""## Certificates and bounds searched
`random` counts games of up to 12 rounds (K = 2, 3 or 5, d up to 3, R = 1, B from 1e-2 to 1e2, $\lambda$ from 1e-4 to
1e4; soft labels). `searched` counts hard games (one context, up to 24 rounds, a small B, $\lambda$ about $n/(4 B)$)
and changes of the worst game in a label, a context, a round, B or $\lambda$, which are retained if the ratio rises.
The comparator is a model in the ball, so the regret is never too large. `at` describes the game with the largest
regret / bound.

For two forecasters regret / bound stays below one half. The bound of `ogd` assumes that in every round the
comparator is a full diameter of the ball away from the weights and the gradient has the largest norm. The bound of
`folklore-direct` at `accuracy = 0.01` allows an error of 0.1 in the logits of every round. The number of gradient steps
is chosen so that this error is guaranteed, and the actual errors are smaller. For agents see [theory.md](theory.md),
for boosters [boosting-edges.md](boosting-edges.md).
"""
INEXACT = """## How inexact may a root be (000, Remark 5)
FOLKLORE runs for 300 rounds of a logistic model (K = 3, d = 4, B = 3, R = 1). In each round its root is moved by
`error` towards the least likely class. `bound` is `folklore_inexact`. `one nat` is the error at which this bound
grows by one nat.
"""
GRADIENT = """## Gradient descent for the root (000, Theorem 4)
The table shows the number of steps from `descent_steps` for a squared error of `accuracy`, that of Appendix E, and
the largest measured squared error.
"""
AFTER = r"""## Lemma 7 at $A_{t-1}$ and at $A_t$ (000)
The streams are those above, with 300 rounds. The adversary's label is the class that the forecaster finds least
likely. `unsolved` counts rounds whose fixed point was not reached to 1e-9.
"""
SMP = r"""## Corollary 6 beside the sample minmax predictor (001, Section 4.2)
The table shows the mean excess risk in nats, with its standard error. Labels are drawn from a model $\theta$ with
$\|\theta\| = B$ ($d = 3$, contexts on the unit sphere), and the excess is over the risk of $\theta$. The columns are
AIOLI's state at a random round (Corollary 6), its last state, SMP at $\lambda = 2 R^2/(n + 1)$ (our implementation),
and ridge with the same penalty. `corollary` is the bound of Corollary 6 without its + 1.
"""


def page(searches: list[Search], parts: dict[str, list[str]], seconds: float, command: str) -> str:
    """Return docs/results/papers.md."""
    games, false = sum(s.random + s.searched for s in searches), sum(s.false for s in searches)
    head = (
        "# Search for regrets above certificates and bounds\n"
        "Does a search find a regret above a certificate or a bound? "
        f"**It finds {false} in {games:,} games.**\n"
        f"`{command}` makes this page in {seconds / 60.0:.1f} minutes of CPU time. "
        "It covers statements that [docs/papers.md](../papers.md) lists.\n"
    )
    rows = [
        f"| {s.name} | {s.source} | {s.random} | {s.searched} | {s.false} | {s.certificate:.4f} | "
        + (f"{s.bound:.4f} | {s.at} |" if s.bound else "- | - |")
        for s in searches
    ]
    tables = (
        (
            SEARCHED,
            "| forecaster | paper | random | searched | above | regret / certificate | regret / bound | at |",
            rows,
        ),
        (INEXACT, r"| $R^2/\lambda$ | error | regret | certificate | bound | one nat |", parts["inexact"]),
        (GRADIENT, r"| $R^2/\lambda$ | accuracy | steps | as printed | met | regret |", parts["gradient"]),
        (
            AFTER,
            r"| labels | $R^2/\lambda$ | before: regret | certificate | bound "
            "| after: regret | certificate | bound | unsolved |",
            parts["after"],
        ),
        (SMP, "| B | n | AIOLI, random round | AIOLI, last | SMP | ridge | corollary |", parts["smp"]),
    )
    return "\n".join([head, *(f"{text}\n{table(columns, lines)}\n" for text, columns, lines in tables)])


def main(*, random: int = 200, starts: int = 20, steps: int = 40, repetitions: int = 20, tests: int = 100) -> None:
    """Run all parts in one process and write the page; seconds are processor time of this call."""
    began = time.process_time()
    searches = searched(PARTS, random, starts, steps)
    parts = {
        "inexact": inexact_rows(300),
        "gradient": gradient_rows(300),
        "after": after_rows(300),
        "smp": smp_rows(repetitions, tests),
    }
    command = f"python -m benchmarks papers --random {random} --starts {starts} --steps {steps}"
    command += f" --repetitions {repetitions} --tests {tests}"
    PAGE.write_text(page(searches, parts, time.process_time() - began, command), encoding="utf-8")
    print(f"written: {PAGE.relative_to(PAGE.parents[2])}")
