"""SynSep and SynNonSep: the synthetic document topics of the Banditron paper."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from banditlab.envs._base import Floats, Labels, Streams
from banditlab.envs._planted import noisy_labels
from banditlab.envs._stream import StreamEnv
from banditlab.problem import Problem
from banditlab.validation import one_of, probability

K, D = 9, 400
"""Classes and features."""
TOPIC, LEAST_ON, MOST_ON = 120, 20, 40
"""A class has 20 to 40 of the first 120 features as its words."""
OFF, EXTRA = 5, 20
"""Per example: 5 words of the class switched off, 20 of the last 280 features switched on."""

_REFERENCE = "Kakade, Shalev-Shwartz, Tewari: Efficient bandit algorithms for online multiclass prediction, ICML 2008"


class SynBase(StreamEnv):
    r"""Base of `SynSep` and `SynNonSep`: 0/1 features without scaling or intercept.

    :math:`35 \le \|x\|^2 \le 55` and :math:`R = \sqrt{55}`.
    """

    def __init__(self, horizon: int) -> None:
        super().__init__(Problem(D, K, math.sqrt(MOST_ON - OFF + EXTRA), horizon))

    @abstractmethod
    def _relabel(self, rng: np.random.Generator, y: Labels) -> Labels:
        """Return the labels with noise."""

    def prototypes(self) -> Floats:
        """Return the classes' bit vectors (9, 120) of the current episode, for tests and plots."""
        return _prototypes(self._streams().model)

    def _draw(self, streams: Streams, size: int) -> Iterator[tuple[Floats, Labels]]:
        bits = _prototypes(streams.model)
        on = np.argsort(bits == 0.0, axis=1, kind="stable")[:, :MOST_ON]  # (K, 40), the positions of ones first
        n_on = bits.sum(axis=1).astype(np.int64)
        while True:
            y = np.floor(streams.labels.random(size) * K).astype(np.int64)
            X = np.zeros((size, D))
            X[:, :TOPIC] = bits[y]
            _switch_off(streams.contexts, X, on[y], n_on[y])
            _switch_on(streams.contexts, X)
            yield X, self._relabel(streams.noise, y)


class SynSep(SynBase):
    """Synthetic document topics with :math:`K = 9` and :math:`d = 400`, almost linearly separable.

    A perceptron makes about 20 mistakes in a million rounds. In each episode a prototype is drawn for every class: s
    random coordinates among the first 120 are 1, with s uniform in 20 ... 40. A round draws a class uniformly and
    copies its prototype. It then sets 5 random entries that are 1 to 0, and exactly 20 random coordinates among the
    last 280 to 1.

    Parameters
    ----------
    horizon
        T, the number of rounds of an episode. In a sweep, the sweep's `rounds` sets it. The paper's is 1,000,000.

    Raises
    ------
    UsageError
        A parameter is outside its range.
    """

    id: ClassVar[str] = "banditlab/SynSep-v0"
    summary: ClassVar[str] = "Banditron paper: 9 topics over 400 binary features, separable"
    reference: ClassVar[str] = _REFERENCE
    version: ClassVar[int] = 1

    def __init__(self, *, horizon: int = 10_000) -> None:
        super().__init__(horizon)

    def _relabel(self, rng: np.random.Generator, y: Labels) -> Labels:
        return y


class SynNonSep(SynBase):
    """SynSep with label noise: the same contexts for the same seed, by default with 5 % of the labels replaced.

    Published implementations differ in how they replace a label; the setting `noise` selects the rule.

    Parameters
    ----------
    noise_rate
        Probability in [0, 1] that a label is replaced.
    noise
        "other": by one of the other 8 classes, uniformly. "any": by any of the 9 classes, so a label changes with
        probability 8/9 `noise_rate`.
    horizon
        T, the number of rounds of an episode. In a sweep, the sweep's `rounds` sets it. The paper's is 1,000,000.

    Raises
    ------
    UsageError
        A parameter is outside its range.
    """

    id: ClassVar[str] = "banditlab/SynNonSep-v0"
    summary: ClassVar[str] = "Banditron paper: SynSep with 5 % label noise"
    reference: ClassVar[str] = _REFERENCE
    version: ClassVar[int] = 1

    def __init__(
        self, *, noise_rate: float = 0.05, noise: Literal["other", "any"] = "other", horizon: int = 10_000
    ) -> None:
        self.noise_rate = probability("noise_rate", noise_rate)
        self.noise = one_of("noise", noise, ("other", "any"))
        super().__init__(horizon)

    def _relabel(self, rng: np.random.Generator, y: Labels) -> Labels:
        return noisy_labels(rng, y, K, self.noise_rate, self.noise)


def _prototypes(rng: np.random.Generator) -> Floats:
    """Return the classes' bit vectors (K, 120)."""
    bits = np.zeros((K, TOPIC))
    for k in range(K):
        s = rng.integers(LEAST_ON, MOST_ON, endpoint=True)
        bits[k, rng.permutation(TOPIC)[:s]] = 1.0
    return bits


def _switch_off(rng: np.random.Generator, X: Floats, on: Labels, n_on: Labels) -> None:
    r"""Set a uniform 5-subset of each row's ones, at on[i, :n_on[i]], to 0 by Floyd's sampling, vectorised over rows.

    Floyd's sampling: for :math:`j = s-5, \dots, s-1` take a uniform index among :math:`0, \dots, j`, or j itself if
    that index is already taken.
    """
    rows = np.arange(len(X))
    u = rng.random((len(X), OFF))
    for i in range(OFF):
        j = n_on - OFF + i
        place = on[rows, np.floor(u[:, i] * (j + 1)).astype(np.int64)]
        place = np.where(X[rows, place] == 1.0, place, on[rows, j])
        X[rows, place] = 0.0


def _switch_on(rng: np.random.Generator, X: Floats) -> None:
    """Set a uniform 20-subset of each row's last 280 features to 1 by Floyd's sampling, vectorised over rows."""
    rows = np.arange(len(X))
    u = rng.random((len(X), EXTRA))
    for i in range(EXTRA):
        j = D - TOPIC - EXTRA + i
        place = TOPIC + np.floor(u[:, i] * (j + 1)).astype(np.int64)
        place = np.where(X[rows, place] == 0.0, place, TOPIC + j)
        X[rows, place] = 1.0
