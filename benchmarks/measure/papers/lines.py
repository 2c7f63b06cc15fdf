"""Who plays a game, and what was promised of it: one line for each forecaster and theorem of the papers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from banditlab.bounds.aioli import aioli_inexact, aioli_kernel
from banditlab.bounds.folklore import folklore_frobenius, folklore_inexact, folklore_kernel
from banditlab.bounds.gaf import gaf, gaf_corollary_2, gaf_kernel, gaf_theorem_1
from banditlab.comparators import ComparatorError, best_in_ball, best_in_frobenius_ball
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.aioli_direct import AIOLIDirect
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.folklore_direct import FolkloreDirect
from banditlab.forecasters.ftrl import FTRL
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.kernel_aioli import KernelAIOLI
from banditlab.forecasters.kernel_folklore import KernelFOLKLORE
from banditlab.forecasters.kernel_gaf import KernelGAF
from banditlab.forecasters.ogd import OGD
from banditlab.forecasters.ons import ONS
from banditlab.losses import log_sum_exp, softmax
from banditlab.problem import Problem
from banditlab.regression.gaf import GaussianRegression
from benchmarks.measure.papers.games import ROUNDS, Floats, Game


class Promised(NamedTuple):
    """What a game came to: the regret, found from below; the certificate and the bound, NaN where there is none."""

    regret: float
    certificate: float
    bound: float


class Line(NamedTuple):
    """One line of the table: what plays, for which labels, and where its promise stands.

    `allowed` makes a game one that the theorem speaks of; `rounds` is the most of a hard game.
    """

    name: str
    labels: str
    source: str
    play: Callable[[Game], Promised]
    allowed: Callable[[Game], Game] = lambda g: g
    rounds: int = ROUNDS


def soft_loss(z: Floats, y: Floats) -> float:
    """Return the loss of logits (K,) at a label of the simplex (K,)."""
    return float(log_sum_exp(z) - y @ z)


def suffered(player: Any, g: Game) -> float:
    """Play a game and return the loss; a vertex is told as a class."""
    total = 0.0
    for x, y in zip(g.X, g.Y, strict=True):
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


# ------------------------------------------------------------------------------------------------------------- classes


def row_ball(
    make: Callable[[Problem, Game], Any], theorem: Callable[[Any, Game], float | None] | None = None
) -> Callable[[Game], Promised]:
    """Return how a forecaster with row-ball promises fares in a game; its own bound, or a theorem's."""

    def play(g: Game) -> Promised:
        player = make(Problem(g.X.shape[1], g.Y.shape[1], 1.0, len(g.X)), g)
        loss = suffered(player, g)
        bound = player.bound(len(g.X)) if theorem is None else theorem(player, g)
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
        gram = np.exp(-((g.X[:, None] - g.X[None]) ** 2).sum(axis=2) / (2.0 * 0.7**2))
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 0.0)
        regret = loss - best(
            best_in_ball, vectors * np.sqrt(values), g.Y, g.B
        )  # rows with the features' inner products
        bound, c = math.nan, player.curvature
        if cls is KernelAIOLI:
            bound = theorem(n, player.effective_dimension(4.0 * g.lam / c), 2.0 * g.B, 1.0, g.lam, c)
        elif not player.landmarks:
            size = float((values / (values + 2.0 * g.lam / c)).sum())
            bound = theorem(n, size, K, g.B, 1.0, g.lam, c) + player._left_out(n)
        return Promised(regret, player.space_certificate(), bound)

    return play


def regression(loss: str, general: bool = False) -> Callable[[Game], Promised]:
    """Return how GAF over a loss fares against ||theta|| <= B, by its own theorem or, `general`, by Theorem 1."""

    def play(g: Game) -> Promised:
        player = GaussianRegression(g.X.shape[1], 1.0, loss=loss, norm_bound=g.B, regularization=g.lam)  # type: ignore[arg-type]
        y, total = g.Y[:, 0], 0.0
        for x, target in zip(g.X, y, strict=True):
            total += player.loss.value(player.predict(x), float(target))
            player.update(x, float(target))
        theta = best_theta(g.X, y, g.B)
        offline = sum(player.loss.value(float(x @ theta), float(t)) for x, t in zip(g.X, y, strict=True))
        bound = theorem_1(g, player) if general else player.bound(len(y))
        return Promised(total - offline, player.certificate(), bound)

    return play


def theorem_1(g: Game, player: GaussianRegression) -> float:
    """Return Theorem 1 of NeurIPS 2021 for the squared loss, which is as sharp as one likes: any lambda is allowed."""
    n, d = g.X.shape
    alpha = player.loss.mixability
    return gaf_theorem_1(n, d, g.B, alpha, g.lam * alpha / max(4, d), 1.0, 2.0, g.lam)


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
        K, d = self.problem.n_classes, self.problem.n_features
        return folklore_inexact(rounds, d, K, self.norm_bound, 1.0, self.regularization, self.curvature, self.size)


# --------------------------------------------------------------------------------------------------------------- lines


def _plain(cls: Any, **settings: Any) -> Callable[[Problem, Game], Any]:
    return lambda p, g: cls(p, None, norm_bound=g.B, regularization=g.lam, **settings)


def _any_lambda(player: GAF, g: Game) -> float:
    (n, d), K = g.X.shape, g.Y.shape[1]
    return gaf(n, d, K, g.B, 1.0, g.lam, player.curvature)


def _corollary_2(player: GAF, g: Game) -> float:
    (n, d), K = g.X.shape, g.Y.shape[1]
    return gaf_corollary_2(n, d, K, g.B, 1.0, player.regularization, 2.0 * player.curvature)


def _inexact(player: AIOLIDirect, g: Game) -> float:
    """Theorem 7 at the error that Lemma 3 leaves after the player's steps."""
    n, d = g.X.shape
    left = n / g.lam * math.exp(-player.steps * g.lam / (4.0 * g.lam + 1.0))
    return aioli_inexact(n, d, player.margin_bound, 1.0, g.lam, left)


def few_steps(g: Game) -> Game:
    """Steps grow like 1/lambda."""
    return g._replace(lam=max(g.lam, 1e-2))


def small_ball(g: Game) -> Game:
    """ONS's step is of order e^(2 B R)."""
    return g._replace(B=min(g.B, 2.0))


def large_lambda(g: Game) -> Game:
    """Corollary 2 asks for lambda >= 4 max(4, K d) R^2."""
    return g._replace(lam=max(g.lam, 4.0 * max(4, g.Y.shape[1] * g.X.shape[1])))


LINES = (
    Line("folklore", "hard", "000, Theorem 3", row_ball(_plain(FOLKLORE))),
    Line("folklore, soft labels", "soft", "000, Section 2", row_ball(_plain(FOLKLORE))),
    Line("folklore-direct, linear_term = after", "soft", r"000, Lemma 7 at $A_t$",
         row_ball(_plain(FolkloreDirect, linear_term="after"))),
    Line("folklore-direct, gradient, accuracy = 0.01", "hard", "000, Theorem 4 and Remark 5",
         row_ball(_plain(FolkloreDirect, solver="gradient", accuracy=0.01)), few_steps),
    Line("folklore-direct, gradient, accuracy = 1e-6", "hard", "000, Theorem 4 and Remark 5",
         row_ball(_plain(FolkloreDirect, solver="gradient", accuracy=1e-6)), few_steps),
    Line("folklore-direct, errors of 1 in every root", "hard", "000, Remark 5", row_ball(lambda p, g: Wrong(p, g, 1.0))),
    Line("ogd", "hard", "000, Table 1", row_ball(lambda p, g: OGD(p, None, norm_bound=g.B))),
    Line("ons", "hard", "000, Table 1", row_ball(lambda p, g: ONS(p, None, norm_bound=g.B)), small_ball),
    Line("ftrl", "hard", "000, Table 1", row_ball(_plain(FTRL))),
    Line("aioli", "hard 2", "001, Theorem 1", row_ball(_plain(AIOLI))),
    Line("aioli, curvature = tight", "hard 2", "001, Lemma 5", row_ball(_plain(AIOLI, curvature="tight"))),
    Line("aioli, soft labels", "soft 2", "000, Section 2, and 001", row_ball(_plain(AIOLI))),
    Line("aioli-direct, steps = theory", "hard 2", "001, Theorem 4", row_ball(_plain(AIOLIDirect, steps="theory")),
         few_steps, 60),
    Line("aioli-direct, steps = 10", "hard 2", "001, Theorem 7", row_ball(_plain(AIOLIDirect, steps=10), _inexact)),
    Line("kernel-aioli, gaussian, against its space", "hard 2", "001, Section 4.1", in_space(KernelAIOLI, {}, aioli_kernel)),
    Line("kernel-folklore, gaussian, against its space", "hard", "001, Section 4.1, and 000",
         in_space(KernelFOLKLORE, {}, folklore_kernel)),
    Line("kernel-folklore, 3 landmarks, against its space", "hard", "001, Section 4.1 (Nystroem)",
         in_space(KernelFOLKLORE, {"landmarks": 3}, folklore_kernel)),
    Line(r"gaf, any $\lambda$", "hard", "003, Theorem 1's argument", row_ball(_plain(GAF, nodes="cubature"), _any_lambda)),
    Line(r"gaf, $\lambda$ as it asks", "hard", "003, Corollary 2", row_ball(_plain(GAF, nodes="cubature"), _corollary_2),
         large_lambda, 200),
    Line("kernel-gaf, gaussian, against its space", "hard", "003, Conclusion",
         in_space(KernelGAF, {"nodes": "cubature"}, gaf_kernel)),
    Line("folklore, Frobenius ball", "hard", "003, Section 4.2", frobenius(FOLKLORE, {})),
    Line("gaf, Frobenius ball", "hard", "003, Section 4.2", frobenius(GAF, {"nodes": "cubature"})),
    Line("regression, squared", "targets", "003, Section 4.1", regression("squared")),
    Line("regression, squared, by Theorem 1", "targets", "003, Theorem 1", regression("squared", general=True)),
    Line("regression, huber", "targets", "003, Conclusion", regression("huber")),
)  # fmt: skip
