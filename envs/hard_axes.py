"""d features, K classes: one hard multiclass game on each axis, a round is a round of one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banditlab.envs import StreamEnv, Streams
from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.validation import at_least, number, positive


class HardAxes(StreamEnv):
    """The games of `HardMulticlass` on d orthogonal axes: an axis at random, then a round of its game.

    The rows of the best W share their norm B evenly, B / sqrt(d) on each axis, so the largest difference of two logits
    is b = 2 B / sqrt(d). With e = epsilon and j uniform on the axes, independently in each round:

        x = (1 - sqrt(e) / (2b)) e_j, y = k < K - 1 with probability proportional to 1/(k + 1)
            with probability sqrt(e) / (2b) + chi e / b in all,
        x = (sqrt(e) / b) e_j, y = K - 1  otherwise.

    What is learnt on one axis says nothing about another. At d = 1 this is `HardMulticlass`.

    Parameters
    ----------
    n_features
        d, the number of axes.
    n_classes
        K, at least 2.
    norm_bound
        B, the bound on the rows that the data are hard for.
    chi
        The sign, -1 or 1, on all axes.
    epsilon
        e in (0, 1/16]; "hardest" is (b d / horizon)^(2/3), at most 1/16: HardMulticlass's for the horizon / d rounds
        that an axis gets.
    horizon
        T, rounds of an episode; in a sweep, set by the sweep's `rounds`.
    """

    id: ClassVar[str] = "lab/HardAxes-v0"
    summary: ClassVar[str] = "d features, K classes: a game hard for proper learners on every axis"
    reference: ClassVar[str] = (
        "Hazan, Koren, Levy, COLT 2014, with the saturated point of Agarwal, Kale, Zimmert, ALT 2022, Appendix F; made here"
    )
    version: ClassVar[int] = 1

    def __init__(
        self,
        *,
        n_features: int = 2,
        n_classes: int = 3,
        norm_bound: float = 3.0,
        chi: Literal[-1, 1] = 1,
        epsilon: float | Literal["hardest"] = "hardest",
        horizon: int = 10_000,
    ) -> None:
        self.n_features = at_least("n_features", n_features, 1)
        self.n_classes = at_least("n_classes", n_classes, 2)
        self.norm_bound = positive("norm_bound", norm_bound)
        if chi not in (-1, 1):
            raise UsageError(f"chi must be -1 or 1, got {chi}")
        self.chi = chi
        b = 2.0 * self.norm_bound / self.n_features**0.5
        hardest = min(1.0 / 16.0, (b * self.n_features / horizon) ** (2.0 / 3.0))
        self.epsilon = hardest if epsilon == "hardest" else positive("epsilon", number("epsilon", epsilon, "hardest"))
        root = self.epsilon**0.5
        self.lengths = (1.0 - root / (2 * b), root / b)
        """The lengths of the contexts of the first K - 1 classes and of the last."""
        self.p_rare = root / (2 * b) + self.chi * self.epsilon / b
        """Probability of the first K - 1 classes together."""
        if self.epsilon > 1.0 / 16.0 or not (
            0.0 < self.p_rare < 1.0 and 0.0 < min(self.lengths) <= max(self.lengths) <= 1
        ):
            raise UsageError(
                f"epsilon = {self.epsilon:g} with norm_bound = {self.norm_bound:g} on {self.n_features} axes: epsilon must "
                f"be at most 1/16, probability {self.p_rare:g} and lengths {self.lengths[0]:g}, {self.lengths[1]:g} must "
                "lie in (0, 1]"
            )
        super().__init__(Problem(self.n_features, self.n_classes, radius=1.0, horizon=horizon))

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probability of each class (K,)."""
        rare = 1.0 / np.arange(1, self.n_classes)
        return np.append(self.p_rare * rare / rare.sum(), 1.0 - self.p_rare)

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        upto = np.cumsum(self.probabilities())[:-1]
        while True:
            y = np.searchsorted(upto, streams.labels.random(size), side="right").astype(np.int64)
            X = np.zeros((size, self.n_features))
            axis = streams.contexts.integers(self.n_features, size=size)
            X[np.arange(size), axis] = np.where(y < self.n_classes - 1, *self.lengths)
            yield X, y
