"""What the rows of docs/papers.md measure: bounds searched, inexact roots, Lemma 7 at A_t, Corollary 6 beside SMP.

`python -m benchmarks papers` writes docs/results/papers.md: every count, none left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.aioli import aioli
from banditlab.bounds.folklore import folklore_error, folklore_frobenius, folklore_kernel
from banditlab.bounds.gaf import gaf_kernel
from banditlab.comparators import ComparatorError, best_in_ball, best_in_frobenius_ball
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.aioli_direct import AIOLIDirect
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.folklore_direct import FolkloreDirect
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.kernel_folklore import KernelFOLKLORE
from banditlab.forecasters.kernel_gaf import KernelGAF
from banditlab.losses import log_sum_exp, softmax
from banditlab.problem import Problem
from banditlab.regression.gaf import GaussianRegression
from benchmarks.commands.conformance import contexts, table

Floats = NDArray[np.float64]

PAGE = Path(__file__).parents[2] / "docs/results/papers.md"
SLACK = 1e-9
KINDS = ("random", "repeated", "nearly", "span")


# ------------------------------------------------------------------------------------------------------------ games


class Game(NamedTuple):
    """Contexts (n, d) of norm at most 1, labels (n, K) in the simplex or targets (n, 1), B and lambda."""

    X: Floats
    Y: Floats
    B: float
    lam: float


class Promised(NamedTuple):
    """What a game came to: the regret, found from below; the certificate and the bound, NaN where there is none."""

    regret: float
    certificate: float
    bound: float


def soft_loss(z: Floats, y: Floats) -> float:
    """Return the loss of logits (K,) at a label of the simplex (K,)."""
    return float(log_sum_exp(z) - y @ z)


def suffered(player: Any, g: Game, X: Floats | None = None) -> float:
    """Play a game and return the loss; a vertex is told as a class."""
    total = 0.0
    for x, y in zip(g.X if X is None else X, g.Y, strict=True):
        total += soft_loss(player.predict(x), y)
        if y.max() == 1.0:
            player.update(x, int(np.argmax(y)))
        else:
            player.update_soft(x, y)
    return total


def best(solve: Callable[..., Any], X: Floats, Y: Floats, B: float) -> float:
    """Return the loss of a comparator of the ball: never below the least."""
    for tolerance in (1e-5, 1e-3):
        try:
            return float(solve(X, Y, B, tolerance=tolerance).loss)
        except ComparatorError:
            continue
    return float(solve(X, Y, B, tolerance=10.0).loss)


def row_ball(make: Callable[[Problem, Game], Any]) -> Callable[[Game], Promised]:
    """Return how a forecaster with row-ball promises fares in a game."""

    def play(g: Game) -> Promised:
        player = make(Problem(g.X.shape[1], g.Y.shape[1], 1.0, len(g.X)), g)
        loss, bound = suffered(player, g), player.bound(len(g.X))
        regret = loss - best(best_in_ball, g.X, g.Y, g.B)
        return Promised(regret, player.certificate(), math.nan if bound is None else bound)

    return play


def frobenius(cls: Any, settings: dict[str, Any]) -> Callable[[Game], Promised]:
    """Return how FOLKLORE or GAF fares against the Frobenius ball of radius B."""

    def play(g: Game) -> Promised:
        d, K = g.X.shape[1], g.Y.shape[1]
        player = cls(Problem(d, K, 1.0), None, norm_bound=g.B / math.sqrt(2.0), regularization=g.lam, **settings)
        loss = suffered(player, g)
        regret = loss - best(best_in_frobenius_ball, g.X, g.Y, g.B)
        bound = folklore_frobenius(len(g.X), d, K, g.B, 1.0, g.lam, player.curvature) if cls is FOLKLORE else math.nan
        return Promised(regret, player.frobenius_certificate(g.B), bound)

    return play


def in_space(cls: Any, settings: dict[str, Any], theorem: Callable[..., float]) -> Callable[[Game], Promised]:
    """Return how a kernel forecaster fares against the ball of a gaussian kernel's space, in coordinates of the features."""

    def play(g: Game) -> Promised:
        n, K = g.Y.shape
        player = cls(
            Problem(g.X.shape[1], K, 1.0), None, norm_bound=g.B, regularization=g.lam, bandwidth=0.7, **settings
        )
        loss = suffered(player, g)
        values, vectors = np.linalg.eigh(player.gram(g.X, g.X))
        features = vectors * np.sqrt(np.maximum(values, 0.0))  # rows with the features' inner products
        regret = loss - best(best_in_ball, features, g.Y, g.B)
        c = player.curvature
        size = player.effective_dimension(g.X, 2.0 * g.lam / c)
        bound = theorem(n, size, K, g.B, 1.0, g.lam, c) + player._left_out(n)
        return Promised(regret, player.space_certificate(), math.nan if player.landmarks else bound)

    return play


def regression(loss: str) -> Callable[[Game], Promised]:
    """Return how GAF over a loss fares against ||theta|| <= B."""

    def play(g: Game) -> Promised:
        player = GaussianRegression(g.X.shape[1], 1.0, loss=loss, norm_bound=g.B, regularization=g.lam)  # type: ignore[arg-type]
        y, total = g.Y[:, 0], 0.0
        for x, target in zip(g.X, y, strict=True):
            total += player.loss.value(player.predict(x), float(target))
            player.update(x, float(target))
        theta = best_theta(g.X, y, g.B)
        offline = sum(player.loss.value(float(x @ theta), float(t)) for x, t in zip(g.X, y, strict=True))
        return Promised(total - offline, player.certificate(), player.bound(len(y)))

    return play


def best_theta(X: Floats, y: Floats, B: float) -> Floats:
    """Return the least-squares theta of the ball: Huber's losses are squares there, too."""
    values, V = np.linalg.eigh(X.T @ X)
    target = V.T @ (X.T @ y)
    low, high = 0.0, float(np.linalg.norm(target)) / B + 1e-300
    for _ in range(200):
        mu = 0.5 * (low + high)
        size = float(np.linalg.norm(target / np.maximum(values + mu, 1e-300)))
        low, high = (mu, high) if size > B else (low, mu)
    theta: Floats = V @ (target / np.maximum(values + high, 1e-14))
    norm = float(np.linalg.norm(theta))
    return theta * min(1.0, B / norm) if norm > 0.0 else theta


class Player(NamedTuple):
    """One line of the table: what plays, for which labels, and where its promise stands."""

    name: str
    labels: str
    source: str
    play: Callable[[Game], Promised]


PLAYERS = (
    Player("folklore, soft labels", "soft", "000, Section 2",
           row_ball(lambda p, g: FOLKLORE(p, None, norm_bound=g.B, regularization=g.lam))),
    Player("aioli, soft labels", "soft 2", "000, Section 2, and 001",
           row_ball(lambda p, g: AIOLI(p, None, norm_bound=g.B, regularization=g.lam))),
    Player("folklore-direct, linear_term = after", "soft", "000, Lemma 7 at A_t",
           row_ball(lambda p, g: FolkloreDirect(p, None, norm_bound=g.B, regularization=g.lam, linear_term="after"))),
    Player("folklore-direct, gradient, accuracy = 0.01", "hard", "000, Theorem 4 and Remark 5",
           row_ball(lambda p, g: FolkloreDirect(p, None, norm_bound=g.B, regularization=max(g.lam, 1e-3), solver="gradient",
                                                accuracy=0.01))),
    Player("folklore-direct, errors of 1 in every root", "hard", "000, Remark 5",
           row_ball(lambda p, g: Wrong(p, g, 1.0))),
    Player("aioli-direct, steps = theory", "hard 2", "001, Theorem 4",
           row_ball(lambda p, g: AIOLIDirect(p, None, norm_bound=g.B, regularization=max(g.lam, 1e-3), steps="theory"))),
    Player("kernel-folklore, gaussian, against its space", "hard", "001, Section 4.1, and 000",
           in_space(KernelFOLKLORE, {}, folklore_kernel)),
    Player("kernel-folklore, 3 landmarks, against its space", "hard", "001, Section 4.1 (Nystroem)",
           in_space(KernelFOLKLORE, {"landmarks": 3}, folklore_kernel)),
    Player("kernel-gaf, gaussian, against its space", "hard", "003, Conclusion",
           in_space(KernelGAF, {"nodes": "cubature"}, gaf_kernel)),
    Player("folklore, Frobenius ball", "hard", "003, Section 4.2", frobenius(FOLKLORE, {})),
    Player("gaf, Frobenius ball", "hard", "003, Section 4.2", frobenius(GAF, {"nodes": "cubature"})),
    Player("regression, squared", "targets", "003, Section 4.1", regression("squared")),
    Player("regression, huber", "targets", "003, Conclusion", regression("huber")),
)  # fmt: skip


class Wrong(FolkloreDirect):
    """FOLKLORE whose roots are off by `size`, towards the class the forecaster least believes in."""

    def __init__(self, problem: Problem, g: Game, size: float) -> None:
        super().__init__(problem, None, norm_bound=g.B, regularization=g.lam, solver="newton")
        self.size = size

    def _logits(self, At: Floats, mean: Floats) -> tuple[Floats, bool]:
        z, _ = super()._logits(At, mean)
        away = -softmax(z)
        away[int(np.argmin(z))] += 1.0
        return z + self.size * away / np.linalg.norm(away), True

    def bound(self, rounds: float) -> float:
        """Return `folklore_inexact` at the error made."""
        from banditlab.bounds.folklore import folklore_inexact

        K, d = self.problem.n_classes, self.problem.n_features
        return folklore_inexact(rounds, d, K, self.norm_bound, 1.0, self.regularization, self.curvature, self.size)


# ----------------------------------------------------------------------------------------------------------- search


class Search(NamedTuple):
    """Of one line: games at random and searched, promises above which a regret was, largest ratios."""

    name: str
    source: str
    random: int
    searched: int
    false: int
    certificate: float
    bound: float


def drawn(rng: np.random.Generator, labels: str) -> Game:
    """Return a random game: up to 12 rounds, B from 1e-2 to 1e2, lambda from 1e-4 to 1e4."""
    d, n = int(rng.integers(1, 4)), int(rng.integers(1, 13))
    X = contexts(rng, KINDS[int(rng.integers(4))], n, d, 1.0)
    B, lam = float(10.0 ** rng.uniform(-2.0, 2.0)), float(10.0 ** rng.uniform(-4.0, 4.0))
    if labels == "targets":
        y = X @ rng.standard_normal(d) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], n)
        return Game(X, np.clip(y, -1.0, 1.0)[:, None], B, lam)
    K = 2 if labels.endswith("2") else int(rng.choice([2, 3, 5]))
    if labels.startswith("soft"):
        Y = rng.dirichlet(np.full(K, 10.0 ** rng.uniform(-1.5, 1.0)), n)
        return Game(X, Y / Y.sum(axis=1, keepdims=True), B, lam)
    return Game(X, np.eye(K)[rng.integers(0, K, n)], B, lam)


def changed(rng: np.random.Generator, g: Game, labels: str) -> Game:
    """Return the game with one label, one context, B or lambda changed."""
    X, Y, t, what = g.X.copy(), g.Y.copy(), int(rng.integers(len(g.X))), int(rng.integers(5))
    if what == 0:
        K = Y.shape[1]
        Y[t] = rng.choice([-1.0, 1.0]) if labels == "targets" else np.eye(K)[rng.integers(K)]
    elif what == 1:
        s = int(rng.integers(len(X)))
        X[t], Y[t] = X[s], Y[s]
    elif what == 2:
        X[t] /= max(float(np.linalg.norm(X[t])) / 0.999, 1e-300)
    elif what == 3:
        return g._replace(B=min(max(g.B * float(10.0 ** rng.uniform(-0.5, 0.5)), 1e-3), 1e2))
    else:
        return g._replace(lam=min(max(g.lam * float(10.0 ** rng.uniform(-1.0, 1.0)), 1e-4), 1e6))
    return g._replace(X=X, Y=Y)


def ratios(p: Promised) -> tuple[float, float]:
    """Return regret over certificate and over bound; 0 where the promise is none, inf where one at most 0 is exceeded."""

    def ratio(promise: float) -> float:
        if math.isnan(promise) or math.isinf(promise):
            return 0.0
        return p.regret / promise if promise > 0.0 else (0.0 if p.regret <= promise + SLACK else math.inf)

    return ratio(p.certificate), ratio(p.bound)


def search(player: Player, random: int, climbs: int, steps: int, seed: int) -> Search:
    """Try random games, then climb from the worst of them, by the certificate's ratio and by the bound's in turn."""
    rng = np.random.default_rng([seed, PLAYERS.index(player)])
    found: list[tuple[tuple[float, float], Game]] = []
    false = 0
    for _ in range(random):
        g = drawn(rng, player.labels)
        found.append((ratios(player.play(g)), g))
    tops = [max(r[i] for r, _ in found) for i in range(2)]
    false += sum(max(r) > 1.0 + 1e-6 for r, _ in found)
    tried = 0
    for i in range(climbs):
        by = i % 2
        now, g = sorted(found, key=lambda pair: -pair[0][by])[i // 2]
        for _ in range(steps):
            other = changed(rng, g, player.labels)
            after = ratios(player.play(other))
            tried += 1
            false += max(after) > 1.0 + 1e-6
            tops = [max(top, r) for top, r in zip(tops, after, strict=True)]
            if after[by] > now[by]:
                now, g = after, other
    return Search(player.name, player.source, random, tried, false, tops[0], tops[1])


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


SEARCHED = """## Certificates and bounds searched
Random games of up to 12 rounds (K = 2, 3 or 5, d up to 3, R = 1, B from 1e-2 to 1e2, lambda from 1e-4 to 1e4; soft
labels from Dirichlet laws), then climbs from the worst: a label, a context, B or lambda is changed, and kept where the
ratio of regret to certificate, or to bound, rises. The regret is against a comparator that a solver finds within the
ball, hence never above the true one. `-`: there is no such number.
"""
INEXACT = """## How inexact may a root be (000, Remark 5)
FOLKLORE on 300 rounds of a logistic model (K = 3, d = 4, B = 3, R = 1) whose every root is moved by `error`, towards the
class the forecaster believes in least. `bound`: `folklore_inexact`. `one nat`: the error that this bound says costs a nat.
"""
GRADIENT = """## Gradient descent for the root (000, Theorem 4)
Steps that `descent_steps` takes for a squared error of `accuracy`, those of Appendix E, and the largest squared error met.
"""
AFTER = """## Lemma 7 at A_{t-1} and at A_t (000)
Same streams, 300 rounds (the adversary answers each forecaster's own least likely class). `unsolved`: fixed points not
reached to 1e-9.
"""
SMP = """## Corollary 6 beside the sample minmax predictor (001, Section 4.2)
Excess risk in nats over theta, |theta| = B, of which the labels are drawn (d = 3, contexts on the unit sphere): AIOLI's
state at a random round (Corollary 6), its last state, SMP at lambda = 2 R^2/(n + 1) as a mean (our re-implementation),
ridge with the same penalty; means and standard errors. `corollary`: what Corollary 6 allows, without its + 1.
"""


def page(searches: list[Search], parts: dict[str, list[str]], seconds: float, command: str) -> str:
    """Return docs/results/papers.md."""
    games, false = sum(s.random + s.searched for s in searches), sum(s.false for s in searches)
    head = (
        "# The papers' remaining rows, measured\n"
        f"Made by `{command}` in {seconds / 60.0:.1f} minutes. Which row stands where: [docs/papers.md](../papers.md).\n\n"
        f"**Regrets above a certificate or a bound: {false} in {games:,} games.**\n"
    )
    rows = [
        f"| {s.name} | {s.source} | {s.random} | {s.searched} | {s.false} | {s.certificate:.4f} | "
        + (f"{s.bound:.4f} |" if s.bound else "- |")
        for s in searches
    ]
    tables = (
        (SEARCHED, "| forecaster | paper | random | searched | above | regret / certificate | regret / bound |", rows),
        (INEXACT, "| R^2/lambda | error | regret | certificate | bound | one nat |", parts["inexact"]),
        (GRADIENT, "| R^2/lambda | accuracy | steps | as printed | met | regret |", parts["gradient"]),
        (
            AFTER,
            "| labels | R^2/lambda | before: regret | certificate | bound | after: regret | certificate | bound | unsolved |",
            parts["after"],
        ),
        (SMP, "| B | n | AIOLI, random round | AIOLI, last | SMP | ridge | corollary |", parts["smp"]),
    )
    return "\n".join([head, *(f"{text}\n{table(columns, lines)}\n" for text, columns, lines in tables)])


def main(*, random: int = 200, climbs: int = 6, steps: int = 10, repetitions: int = 20, tests: int = 100) -> None:
    """Run all parts in one process and write the page."""
    began = time.perf_counter()
    searches = []
    for player in PLAYERS:
        searches.append(search(player, random, climbs, steps, 1))
        print(searches[-1], flush=True)
    parts = {
        "inexact": inexact_rows(300),
        "gradient": gradient_rows(300),
        "after": after_rows(300),
        "smp": smp_rows(repetitions, tests),
    }
    command = f"python -m benchmarks papers --random {random} --climbs {climbs} --steps {steps}"
    command += f" --repetitions {repetitions} --tests {tests}"
    PAGE.write_text(page(searches, parts, time.perf_counter() - began, command), encoding="utf-8")
    print(f"written: {PAGE.relative_to(PAGE.parents[2])}")
