r"""Learners on quadratic surrogates in the span of kernel features, exact or by a Nystroem projection.

Let X (r, d) be the stored contexts and :math:`L L'` their Gram matrix (Cholesky). Then :math:`\phi(x)` has the
coordinates :math:`\xi = L^{-1} k(X, x)` in their span, and one more coordinate, :math:`(k(x, x) - \|\xi\|^2)^{1/2}`,
orthogonal to the span. The learner's compiled functions run on these coordinates, because the learner uses contexts
through inner products only. A context is stored if its feature's distance from the span is above `tolerance` times the
largest norm of a feature, and fewer than `landmarks` contexts are stored. For other contexts, forecasts and updates use
the projection onto the span. This changes the total loss of a comparator of norm B by at most 2 B times the sum of
their distances from the span.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from banditlab.errors import UsageError
from banditlab.forecasters.primal_dual import QuadraticForecaster
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.joint_inverse import Blocks
from banditlab.numerics.limits import Limits
from banditlab.players.forecaster import Floats, Forecaster
from banditlab.players.inputs import as_class, as_context, as_rows
from banditlab.players.saved import fields_of
from banditlab.problem import Problem
from banditlab.validation import at_least, nonnegative, one_of, positive

KERNELS = ("linear", "gaussian", "polynomial")
FIRST = 16
"""The initial number of coordinates, which doubles as needed."""


class Span(NamedTuple):
    """The span: rank (1,) is r, the number of stored contexts; X (capacity, d) holds them in its first r rows.

    L (capacity, capacity) is the factor of their Gram matrix, of which the first r rows are used. `lost` (1,) is the
    sum of the distances of projected features from the span.
    """

    rank: NDArray[np.int64]
    X: NDArray[np.float64]
    L: NDArray[np.float64]
    lost: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"rank": (0, len(self.L) - 1)}

    @classmethod
    def empty(cls, capacity: int, d: int) -> Span:
        """Return an empty span."""
        return cls(np.zeros(1, np.int64), np.zeros((capacity, d)), np.zeros((capacity, capacity)), np.zeros(1))


class State(NamedTuple):
    """The stored contexts, and the learner's state in the coordinates of their span."""

    span: Span
    learner: Any


class KernelSpanForecaster(Forecaster):
    """Base class of `kernel-folklore` and `kernel-gaf`; a subclass implements `_learner`, which builds the learner."""

    norm_bound: float
    regularization: float
    curvature: float
    state: State
    excluded_checks: ClassVar[dict[str, str]] = {"bounded_memory": "stores contexts and a factor of their Gram matrix"}

    def _begin(self, kernel: str, bandwidth: float, degree: int, landmarks: int, tolerance: float) -> None:
        """Set the kernel's settings; `_learn_with` must be called next."""
        self.kernel = one_of("kernel", kernel, KERNELS)
        self.bandwidth = positive("bandwidth", bandwidth)
        self.degree = at_least("degree", degree, 1)
        self.landmarks = at_least("landmarks", landmarks, 0)
        self.tolerance = nonnegative("tolerance", tolerance)

    def _learn_with(self, inner: QuadraticForecaster) -> None:
        """Begin with a new learner in `FIRST` coordinates."""
        self._inner = inner
        self.norm_bound, self.regularization, self.curvature = inner.norm_bound, inner.regularization, inner.curvature
        self.state = State(Span.empty(FIRST, self.problem.n_features), inner.state)
        inner.state = None

    def _own_problem(self) -> Problem:
        """The learner's problem, with features of norm up to `feature_radius`."""
        return Problem(FIRST, self.problem.n_classes, self.feature_radius, self.problem.horizon)

    def get_state(self) -> dict[str, Any]:
        """Return the state, which includes the learner's state."""
        return {"rng": self.rng, "state": self.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state, and its capacity, that `get_state` of a player with the same settings returned."""
        given = fields_of(state["state"]) or {}
        capacity, d = len((fields_of(given["span"]) or {})["L"]), self.problem.n_features
        if capacity < FIRST or capacity > 2**20:
            raise UsageError(f"state.state.span.L must have {FIRST} to {2**20:,} rows, got {capacity:,}")
        blocks = Blocks.initial(self.problem.n_classes, capacity, self.regularization)
        learner = self.state.learner._replace(blocks=blocks, h=np.zeros((self.problem.n_classes, capacity)))
        self.state = State(Span.empty(capacity, d), learner)
        super().set_state(state)

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return the bytes of the initial state."""
        return 8.0 * FIRST * (FIRST * problem.n_classes + problem.n_features)

    # ----------------------------------------------------------------------------------------------------- coordinates

    @property
    def feature_radius(self) -> float:
        r"""The largest :math:`\sqrt{k(x, x)}`, which is the learner's R."""
        R = self.problem.radius
        return {"linear": R, "gaussian": 1.0, "polynomial": (1.0 + R**2) ** (0.5 * self.degree)}[self.kernel]

    def gram(self, X: Floats, Y: Floats) -> Floats:
        """Return k(x, y) for the rows of X (n, d) and Y (m, d), as an array (n, m)."""
        products: Floats = X @ Y.T
        if self.kernel == "linear":
            return products
        if self.kernel == "polynomial":
            power: Floats = (1.0 + products) ** self.degree
            return power
        squares = ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)
        return np.exp(-0.5 * squares / self.bandwidth**2)

    def _coordinates(self, X: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return the coordinates (n, capacity) of contexts (n, d), their distances (n,) from the span, and for each
        context whether its distance is used as one more coordinate.
        """
        span = self.state.span
        r, capacity = int(span.rank[0]), len(span.L)
        Xi = np.zeros((len(X), capacity))
        if r:
            Xi[:, :r] = solve_triangular(span.L[:r, :r], self.gram(span.X[:r], X), lower=True).T
        squares = np.array([self.gram(x[None], x[None])[0, 0] for x in X]) if len(X) else np.zeros(0)
        outside = np.sqrt(np.maximum(squares - (Xi**2).sum(axis=1), 0.0))
        seen = outside > self.tolerance * self.feature_radius
        if self.landmarks and r >= self.landmarks:
            seen[:] = False
        Xi[:, r] = np.where(seen, outside, 0.0)
        return Xi, outside, seen

    def _grow(self) -> None:
        """Enlarge the arrays for one more coordinate."""
        span, learner = self.state
        r, capacity = int(span.rank[0]), len(span.L)
        if r + 1 < capacity:
            return
        wide = Span.empty(2 * capacity, self.problem.n_features)
        wide.rank[0], wide.X[:capacity], wide.L[:capacity, :capacity], wide.lost[0] = r, span.X, span.L, span.lost[0]
        h = np.zeros((len(learner.h), 2 * capacity))
        h[:, :capacity] = learner.h
        blocks = learner.blocks.wider(2 * capacity, self.regularization)
        self.state = State(wide, learner._replace(blocks=blocks, h=h))

    # ------------------------------------------------------------------------------------------------------------- playing

    def predict(self, context: Floats) -> Floats:
        """Return the logits (K,) for `context` (d,)."""
        Xi = self._coordinates(as_context(context, self.problem)[None])[0]
        z = np.empty(self.problem.n_classes)
        self._inner.kernels.predict(self.state.learner, as_contexts(Xi)[0], z)
        return z

    def predict_many(self, contexts: Floats) -> Floats:
        """Return the logits (n, K) for `contexts` (n, d); the state does not change."""
        Xi = self._coordinates(as_rows(contexts, self.problem))[0]
        Z = np.empty((len(Xi), self.problem.n_classes))
        many = self._inner.kernels.predict_many
        if len(Xi) and many is not None:
            many(self.state.learner, as_contexts(Xi), Z)
        return Z

    def update(self, context: Floats, label: int) -> None:
        """Update with the class `label` of `context` (d,)."""
        x, y = as_context(context, self.problem), as_class("the label", label, self.problem.n_classes)
        Xi, outside, seen = self._coordinates(x[None])
        span = self.state.span
        r = int(span.rank[0])
        self._inner.kernels.update(self.state.learner, as_contexts(Xi)[0], y, np.empty(self.problem.n_classes))
        if not seen[0]:
            span.lost[0] += outside[0]
            return
        span.X[r], span.L[r] = x, Xi[0]
        span.rank[0] = r + 1
        self._grow()

    # ---------------------------------------------------------------------------------------------------------- promises

    def space_certificate(self) -> float:
        """Return the bound on the regret so far against K functions of norm at most B in the kernel's space, in nats, or NaN.

        A projection changes a loss by at most 2 B times the distance of the feature from the span.
        """
        self._inner.state = self.state.learner
        found = self._inner.certificate()
        self._inner.state = None
        return found + 2.0 * self.norm_bound * float(self.state.span.lost[0])

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far, in nats, against models with rows of norm at most B.

        The result is NaN for the kernel "gaussian".
        """
        return math.nan if self.kernel == "gaussian" else self.space_certificate()

    def _dimension(self, rounds: float) -> float | None:
        """The largest dimension of the features' span, or None for the Gaussian kernel or with landmarks."""
        if self.kernel == "gaussian" or self.landmarks:
            return None
        d = self.problem.n_features
        return max(min(d if self.kernel == "linear" else math.comb(d + self.degree, self.degree), rounds), 1.0)

    def _left_out(self, rounds: float) -> float:
        """Return a bound on the regret in `rounds` rounds due to contexts within the tolerance of the span."""
        return 2.0 * self.norm_bound * max(self.tolerance, 1e-7) * self.feature_radius * rounds

    def effective_dimension(self, X: Floats, scale: float) -> float:
        r"""Return :math:`\mathrm{tr}(G (G + \text{scale}\, I)^{-1})` for the Gram matrix G of contexts X (n, d)."""
        rows = as_rows(X, self.problem)
        values = np.maximum(np.linalg.eigvalsh(self.gram(rows, rows)), 0.0)
        return float((values / (values + scale)).sum())
