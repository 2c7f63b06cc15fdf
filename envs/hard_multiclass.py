"""One feature, K classes: the lower-bound data of Hazan, Koren and Levy with a rare event that has several classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banditlab.envs import StreamEnv, Streams
from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.validation import at_least, number, positive


class HardMulticlass(StreamEnv):
    """The last class at a short context, one of the K - 1 others at a long one, both contexts on one axis.

    With e = epsilon and b = 2 B the largest difference of two rows of norm B, independently in each round:

        x = 1 - sqrt(e) / (2b), y = k < K - 1 with probability proportional to 1/(k + 1)
            with probability sqrt(e) / (2b) + chi e / b in all,
        x = sqrt(e) / b, y = K - 1  otherwise.

    At K = 2 this is `LowerBound`'s law with its ln n replaced by 2 B: the two contexts pull the row difference in opposite
    directions with nearly the same force, e and chi decide which wins, and a proper learner finds out too late.

    From three classes on the long context is the point of Appendix F of the FOLKLORE paper: a learner drawn to the last
    class has logits (0, ..., 0, b) there, the label is one of the others, and in the direction that tells these apart
    the loss has curvature of order e^(-b) but a gradient of order 1.

    Since x says whether the class is the last one, an improper predictor may have negative regret.

    Parameters
    ----------
    n_classes
        K, at least 2.
    norm_bound
        B, the bound on the rows that the data are hard for.
    chi
        The sign, -1 or 1.
    epsilon
        e in (0, 1/16]; "hardest" is (2 B / horizon)^(2/3), at most 1/16: the two signs then differ over the horizon
        by about as much as one standard deviation of what is seen.
    horizon
        T, rounds of an episode; in a sweep, set by the sweep's `rounds`.
    """

    id: ClassVar[str] = "lab/HardMulticlass-v0"
    summary: ClassVar[str] = "one feature, K classes: hard for proper learners in the ball of rows of norm B"
    reference: ClassVar[str] = (
        "Hazan, Koren, Levy, COLT 2014, with the saturated point of Agarwal, Kale, Zimmert, ALT 2022, Appendix F; made here"
    )
    version: ClassVar[int] = 1

    def __init__(
        self,
        *,
        n_classes: int = 3,
        norm_bound: float = 3.0,
        chi: Literal[-1, 1] = 1,
        epsilon: float | Literal["hardest"] = "hardest",
        horizon: int = 10_000,
    ) -> None:
        self.n_classes = at_least("n_classes", n_classes, 2)
        self.norm_bound = positive("norm_bound", norm_bound)
        if chi not in (-1, 1):
            raise UsageError(f"chi must be -1 or 1, got {chi}")
        self.chi = chi
        b = 2.0 * self.norm_bound
        hardest = min(1.0 / 16.0, (b / horizon) ** (2.0 / 3.0))
        self.epsilon = hardest if epsilon == "hardest" else positive("epsilon", number("epsilon", epsilon, "hardest"))
        root = self.epsilon**0.5
        self.points = (1.0 - root / (2 * b), root / b)
        """The contexts of the first K - 1 classes and of the last."""
        self.p_rare = root / (2 * b) + self.chi * self.epsilon / b
        """Probability of the first K - 1 classes together."""
        if self.epsilon > 1.0 / 16.0 or not (
            0.0 < self.p_rare < 1.0 and 0.0 < min(self.points) <= max(self.points) <= 1
        ):
            raise UsageError(
                f"epsilon = {self.epsilon:g} with norm_bound = {self.norm_bound:g}: epsilon must be at most 1/16, "
                f"probability {self.p_rare:g} and contexts {self.points[0]:g}, {self.points[1]:g} must lie in (0, 1]"
            )
        super().__init__(Problem(1, self.n_classes, radius=1.0, horizon=horizon))

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probability of each class (K,)."""
        rare = 1.0 / np.arange(1, self.n_classes)
        return np.append(self.p_rare * rare / rare.sum(), 1.0 - self.p_rare)

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        upto = np.cumsum(self.probabilities())[:-1]
        while True:
            y = np.searchsorted(upto, streams.labels.random(size), side="right").astype(np.int64)
            yield np.where(y < self.n_classes - 1, *self.points)[:, None], y
