"""Base classes of forecasters. The bandit reduction calls their methods `predict` and `update`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.jit import bind
from banditlab.numerics.sparse_rows import CSR, n_rows, rows_of
from banditlab.players.inputs import as_block, as_class, as_context, as_rows
from banditlab.players.player import Player
from banditlab.players.rounds import forecast_rounds

Floats = NDArray[np.float64]


class Forecaster(Player, ABC):
    """A full-information learner, which predicts logits, then observes the label.

    The forecast is the softmax of the logits. A learner for two classes returns the logits (z, 0), where z is the
    log-odds of class 0. A forecaster with a compiled loop over blocks also defines `_forecast_block`; runs call it for
    the package's own forecasters only.
    """

    feedback = "label"

    def __init_subclass__(cls, **options: Any) -> None:
        """Set `plays_blocks` for a class that forecasts blocks; a constructor may change it according to a setting."""
        super().__init_subclass__(**options)
        if not {"forecast_block", "_forecast_block"}.isdisjoint(vars(cls)):
            cls.plays_blocks = vars(cls).get("plays_blocks", True)

    @classmethod
    def settings_at(cls, norm_bound: float, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings for a comparison with the best model in a ball; `given` takes precedence."""
        return {"norm_bound": norm_bound} | dict(given)

    @abstractmethod
    def predict(self, context: Floats) -> Floats:
        """Return the logits (K,) for `context` (d,). The state does not change."""

    def predict_many(self, contexts: Floats) -> Floats:
        """Return the logits (n, K) for `contexts` (n, d); the state does not change."""
        return np.stack([self.predict(context) for context in contexts])

    @abstractmethod
    def update(self, context: Floats, label: int) -> None:
        """Update with the class `label` of `context` (d,)."""

    def forecast_block(self, X: Floats, y: NDArray[np.int64], logits: Floats) -> None:
        """Forecast n rounds in a compiled loop, with each label revealed after its round, and fill `logits` (n, K).

        X is dense or CSR.

        Raises
        ------
        UsageError
            Contexts, labels or logits have other shapes, a context is not finite or has a norm above R, or a label is
            out of range. The state does not change then.
        """
        X, y = as_block(X, y, self.problem, self.problem.n_classes, sparse=self.sparse)
        if logits.shape != (len(y), self.problem.n_classes):
            raise UsageError(f"the logits must be of shape ({len(y)}, {self.problem.n_classes}), got {logits.shape}")
        self._forecast_block(X, y, logits)

    def _forecast_block(self, X: Any, y: NDArray[np.int64], logits: Floats) -> None:
        """Forecast a checked block."""
        raise UsageError(f"{self.id or type(self).__name__} does not forecast blocks: use predict and update")

    def update_soft(self, context: Floats, label: Floats) -> None:
        """Update with the distribution `label` (K,) over the classes at `context` (d,).

        Raises
        ------
        IncompatibleError
            This forecaster accepts only single classes as labels.
        UsageError
            The label is not a distribution, or the context is invalid.
        """
        raise IncompatibleError(f"{self.id} accepts classes, not distributions over them: use folklore or aioli")


class Kernels(NamedTuple):
    """A forecaster's compiled kernels, and a name unique to them."""

    predict: Callable[..., Any]
    update: Callable[..., Any]
    predict_many: Callable[..., Any] | None
    owner: str


class KernelForecaster(Forecaster):
    """A forecaster with a state of arrays and two compiled kernels.

    A subclass sets `state` in its constructor, and

    * `predict_kernel(state, x, z)` writes the logits into z (K,); the state may contain work arrays.
    * `update_kernel(state, x, y, z)` writes the logits of `predict_kernel` into z, then updates.
    * Optionally, `predict_many_kernel(state, X, Z)` writes the logits of X (n, d) into Z (n, K) as matrix products. The
      exploration reduction then predicts in batches between two updates.

    Kernels are module-level functions compiled with `banditlab.kernels.njit`, and do not allocate memory. A learner
    whose state grows overrides `play_in_parts`, and `kernels` if the kernels depend on the state. If kernels read x
    only through functions made by `banditlab.kernels.by_context`, the class sets `sparse = True`. Blocks of sparse
    contexts then use the same kernels, with x a `banditlab.kernels.SparseRow` (and X a `banditlab.kernels.CSR`).
    """

    predict_kernel: ClassVar[Callable[..., Any]]
    update_kernel: ClassVar[Callable[..., Any]]
    predict_many_kernel: ClassVar[Callable[..., Any] | None] = None
    plays_blocks = True
    state: Any

    @property
    def kernels(self) -> Kernels:
        """The kernels for the current `state`."""
        return _kernels(type(self))

    def play_in_parts(
        self, X: Floats | CSR, learns: Callable[[], NDArray[np.bool_]], play: Callable[[slice], None]
    ) -> None:
        """Run the rounds at the n contexts X by calls of `play(part)` for consecutive parts.

        The state may grow between calls. `learns()` returns a mask (n,) of the rounds that may have updates. `play`
        reads `kernels` and `state` at each call. A learner whose arrays grow overrides this method: it enlarges
        the arrays, runs as many rounds as fit, and repeats.
        """
        play(slice(0, n_rows(X)))

    def predict(self, context: Floats) -> Floats:
        """Return the logits (K,) for `context` (d,).

        A context that has another shape, is not finite or has a norm above R raises a UsageError.
        """
        z = np.empty(self.problem.n_classes)
        self.kernels.predict(self.state, as_context(context, self.problem), z)
        return z

    def predict_many(self, contexts: Floats) -> Floats:
        """Return the logits (n, K) for `contexts` (n, d), dense or CSR; the state does not change.

        Errors are as for `predict`.
        """
        X = as_rows(contexts, self.problem, sparse=self.sparse)
        kernels, logits = self.kernels, np.empty((n_rows(X), self.problem.n_classes))
        if kernels.predict_many is not None:
            kernels.predict_many(self.state, X, logits)
            return logits
        for t, z in enumerate(logits):
            kernels.predict(self.state, X.row(t) if isinstance(X, CSR) else X[t], z)
        return logits

    def update(self, context: Floats, label: int) -> None:
        """Update with the class `label` of `context` (d,).

        A label out of range, or a context that `predict` rejects, raises a UsageError.
        """
        x = as_context(context, self.problem)
        y = as_class("the label", label, self.problem.n_classes)

        def play(part: slice) -> None:
            self.kernels.update(self.state, x, y, np.empty(self.problem.n_classes))

        self.play_in_parts(x[None], lambda: np.ones(1, bool), play)

    def _forecast_block(self, X: Any, y: NDArray[np.int64], logits: Floats) -> None:
        z = np.empty(self.problem.n_classes)

        def play(part: slice) -> None:
            _loop(self.kernels)(self.state, rows_of(X, part), y[part], z, logits[part])

        self.play_in_parts(X, lambda: np.ones(len(y), bool), play)


@cache
def _kernels(cls: type[KernelForecaster]) -> Kernels:
    owner = f"{cls.__module__}.{cls.__qualname__}"
    return Kernels(cls.predict_kernel, cls.update_kernel, cls.predict_many_kernel, owner)


@cache
def _loop(kernels: Kernels) -> Any:
    return bind(forecast_rounds, kernels.owner, update_kernel=kernels.update)
