"""A planted multiclass logistic model, in which the theorems' comparator is the true model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from banditlab.envs._base import Floats, Labels, Streams
from banditlab.envs._planted import ball_contexts, directions, logistic_labels, noisy_labels
from banditlab.envs._stream import StreamEnv
from banditlab.problem import Problem
from banditlab.validation import at_least, one_of, positive, probability


class Logistic(StreamEnv):
    r"""Labels drawn from :math:`\mathrm{softmax}(W x)` with a planted W (K, d), every row of norm exactly B.

    Each episode draws the K rows of W, which are B times independent uniform directions, from a random generator of its
    own. Every seed therefore gives a different W; `weights()` returns it. Each round draws x, then
    :math:`y \sim \mathrm{softmax}(W x)`. With probability `noise` the label is then replaced by one of the other
    :math:`K-1` classes, chosen uniformly.

    Parameters
    ----------
    n_features
        d, the dimension of the contexts; there is no intercept.
    n_classes
        K.
    norm_bound
        B, the norm of every row of W.
    contexts
        "sphere": uniform on the sphere of radius R. "gaussian": :math:`N(0, (R^2/d) I)`, with contexts longer than R
        scaled down to norm R.
    radius
        R.
    noise
        Probability in [0, 1] that the label is replaced.
    horizon
        T, the number of rounds of an episode. In a sweep, the sweep's `rounds` sets it.

    Raises
    ------
    UsageError
        A parameter is outside its range.
    """

    id: ClassVar[str] = "banditlab/Logistic-v0"
    summary: ClassVar[str] = "planted multiclass logistic model, contexts on a sphere or Gaussian, optional label noise"
    reference: ClassVar[str] = "the realisable model of online logistic regression; defined in this package"
    version: ClassVar[int] = 1

    def __init__(
        self,
        *,
        n_features: int = 10,
        n_classes: int = 5,
        norm_bound: float = 10.0,
        contexts: Literal["sphere", "gaussian"] = "sphere",
        radius: float = 1.0,
        noise: float = 0.0,
        horizon: int = 10_000,
    ) -> None:
        self.n_features = at_least("n_features", n_features, 1)
        self.n_classes = at_least("n_classes", n_classes, 2)
        self.norm_bound = positive("norm_bound", norm_bound)
        self.contexts = one_of("contexts", contexts, ("sphere", "gaussian"))
        self.radius = positive("radius", radius)
        self.noise = probability("noise", noise)
        super().__init__(Problem(self.n_features, self.n_classes, self.radius, horizon))

    def weights(self) -> Floats:
        """Return the planted W (K, d) of the current episode, for tests and plots; no player observes it."""
        return self._weights(self._streams())

    def _weights(self, streams: Streams) -> Floats:
        return self.norm_bound * directions(streams.model, self.n_classes, self.n_features)

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[Floats, Labels]]:
        W = self._weights(streams)
        while True:
            X = ball_contexts(streams.contexts, size, self.n_features, self.radius, self.contexts)
            y = logistic_labels(streams.labels, X @ W.T)
            yield X, noisy_labels(streams.noise, y, self.n_classes, self.noise)
