"""Data on which every proper online logistic regression has a regret polynomial in n."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from banditlab.envs._base import Floats, Labels, Streams
from banditlab.envs._stream import StreamEnv
from banditlab.errors import UsageError
from banditlab.problem import Problem
from banditlab.validation import at_least, positive


class LowerBound(StreamEnv):
    r"""The lower-bound data of Hazan, Koren and Levy as used in the AIOLI paper.

    The problem has :math:`d = 1`, :math:`K = 2`, :math:`R = 1` and :math:`B = \ln n`.

    Independently in each round, with the settings :math:`\epsilon` and :math:`\chi`:

    .. math::

        (x, y) = (1 - \sqrt{\epsilon} / (2B), +1) \text{ with probability }
        \sqrt{\epsilon} / (2B) + \chi \epsilon / B,

        (x, y) = (\sqrt{\epsilon} / B, -1) \text{ otherwise.}

    The label +1 is class 0, and the label -1 is class 1. The papers use both signs of :math:`\chi` and show the
    larger regret. Because x determines y, an improper predictor may have negative regret.

    Parameters
    ----------
    n
        The horizon that the data are designed for, at least 2; it determines :math:`B = \ln n`. It is not the number of
        rounds of an episode.
    chi
        :math:`\chi`, the sign, -1 or 1.
    epsilon
        :math:`\epsilon`, above 0, so small that the probability and both contexts lie in [0, 1].
    horizon
        T, the number of rounds of an episode. In a sweep, the sweep's `rounds` sets it.

    Raises
    ------
    UsageError
        A parameter is outside its range.
    """

    id: ClassVar[str] = "banditlab/LowerBound-v0"
    summary: ClassVar[str] = "one feature, two points: hard for proper online logistic regression with horizon n"
    reference: ClassVar[str] = (
        "Hazan, Koren, Levy: Logistic regression: tight bounds for stochastic and online optimization, COLT 2014; "
        "as in the experiments of the AIOLI paper"
    )
    version: ClassVar[int] = 1

    def __init__(
        self, *, n: int = 10_000, chi: Literal[-1, 1] = 1, epsilon: float = 0.01, horizon: int = 10_000
    ) -> None:
        self.n = at_least("n", n, 2)
        if chi not in (-1, 1):
            raise UsageError(f"chi must be -1 or 1, got {chi}")
        self.chi = chi
        self.epsilon = positive("epsilon", epsilon)
        B, root = math.log(self.n), math.sqrt(self.epsilon)
        self.norm_bound = B
        self.points = (1.0 - root / (2 * B), root / B)
        """The contexts of class 0 and of class 1."""
        self.p_positive = root / (2 * B) + self.chi * self.epsilon / B
        """The probability of class 0 (label +1)."""
        if not 0.0 <= self.p_positive <= 1.0:  # as B >= ln 2, the points lie in [0, 1] if this is a probability
            raise UsageError(
                f"epsilon = {self.epsilon:g} is too large for n = {self.n}: probability {self.p_positive:g} and "
                f"contexts {self.points[0]:g}, {self.points[1]:g} must all lie in [0, 1]"
            )
        super().__init__(Problem(1, 2, 1.0, horizon))

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[Floats, Labels]]:
        points = np.array(self.points)
        while True:
            y = (streams.labels.random(size) >= self.p_positive).astype(np.int64)
            yield points[y][:, None], y
