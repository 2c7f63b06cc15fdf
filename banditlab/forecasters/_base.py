"""The forecasters' contract: Initialize / Predict / Update of the bandit reduction, the label revealed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditlab.kernels import as_contexts, bind, forecast_rounds
from banditlab.player import Player

Floats = NDArray[np.float64]


class Forecaster(Player, ABC):
    """A full-information learner: it predicts logits, then sees the label.

    softmax of the logits is the forecast; a binary learner returns (z, 0).
    """

    feedback = "label"

    @abstractmethod
    def predict(self, context: Floats) -> Floats:
        """Return the logits (K,) for `context` (d,). The state does not change."""

    def predict_many(self, contexts: Floats) -> Floats:
        """Return the logits (n, K) for `contexts` (n, d), the state held fixed."""
        return np.stack([self.predict(context) for context in contexts])

    @abstractmethod
    def update(self, context: Floats, label: int) -> None:
        """Learn that `context` (d,) has the class `label`."""


class KernelForecaster(Forecaster):
    """A forecaster made of a state of arrays and two compiled kernels.

    A subclass sets, beside `state` in its constructor,

    * `predict_kernel(state, x, z)`: writes the logits into z (K,); scratch arrays may live in the state;
    * `update_kernel(state, x, y, z)`: writes the logits `predict_kernel` would have written into z, then learns;
    * optionally `predict_many_kernel(state, X, Z)`: writes the logits of X (n, d) into Z (n, K) as matrix products, where
      that is much cheaper than one at a time. The exploration reduction then predicts frozen stretches in batches.

    Kernels are module-level functions compiled with `banditlab.kernels.njit`; they allocate nothing.
    """

    predict_kernel: ClassVar[Callable[..., Any]]
    update_kernel: ClassVar[Callable[..., Any]]
    predict_many_kernel: ClassVar[Callable[..., Any] | None] = None
    state: Any

    def predict(self, context: Floats) -> Floats:
        """Return the logits (K,) for `context` (d,)."""
        z = np.empty(self.problem.n_classes)
        type(self).predict_kernel(self.state, as_contexts(context), z)
        return z

    def predict_many(self, contexts: Floats) -> Floats:
        """Return the logits (n, K) for `contexts` (n, d), the state held fixed."""
        if type(self).predict_many_kernel is None:
            return super().predict_many(contexts)
        logits = np.empty((len(contexts), self.problem.n_classes))
        type(self).predict_many_kernel(self.state, as_contexts(contexts), logits)  # type: ignore[misc]
        return logits

    def update(self, context: Floats, label: int) -> None:
        """Learn that `context` (d,) has the class `label`."""
        z = np.empty(self.problem.n_classes)
        type(self).update_kernel(self.state, as_contexts(context), int(label), z)

    def forecast_block(self, X: Floats, y: NDArray[np.int64], logits: Floats) -> None:
        """Forecast n rounds at compiled speed, each label revealed after its round; fills logits (n, K)."""
        owner = f"{type(self).__module__}.{type(self).__qualname__}"
        _loop(type(self).update_kernel, owner)(self.state, X, y, np.empty(self.problem.n_classes), logits)


@cache
def _loop(update: Any, owner: str) -> Any:
    return bind(forecast_rounds, owner, update_kernel=update)
