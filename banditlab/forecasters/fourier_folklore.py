"""FOLKLORE on random Fourier features of the gaussian kernel (Rahimi and Recht, NIPS 2007), for any K."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.numerics.contexts import as_contexts
from banditlab.players.forecaster import Floats, Forecaster
from banditlab.players.inputs import as_class, as_context, as_rows
from banditlab.problem import Problem
from banditlab.validation import at_least, positive


class FourierFOLKLORE(Forecaster):
    """FOLKLORE on D random features whose inner products tend to the gaussian kernel: kernel FOLKLORE of fixed size.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: D/2 frequencies omega_i ~ N(0, I / bandwidth^2) are drawn once by the constructor;
    phi(x) = sqrt(2/D) (cos omega_i'x, sin omega_i'x)_i has norm 1 and phi(x)'phi(y) has mean
    exp(-||x - y||^2 / (2 bandwidth^2)). Then FOLKLORE's rule with phi(x) for x.

    Guarantee: FOLKLORE's Theorem 3 in D dimensions with R = 1, against W phi(x), ||W_k|| <= B. Linear functions are not
    among them, so `bound` is None and `certificate` NaN; `space_certificate` bounds the regret against that ball, and
    `space_bound` is the theorem. How far the ball is from the kernel's own space is not bounded here.

    Cost: D d for the features, and FOLKLORE's round in D dimensions.

    Parameters
    ----------
    norm_bound
        B: the comparator is W phi with ||W_k|| <= B.
    bandwidth
        Of the gaussian kernel, in the unit of the contexts.
    features
        D, the number of features; even.
    regularization, curvature
        As for `folklore`, with R = 1.

    Raises
    ------
    UsageError
        A setting out of its range, or no generator.

    References
    ----------
    A. Rahimi, B. Recht. Random features for large-scale kernel machines. NIPS 2007.
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
    """

    id = "fourier-folklore"
    group = "practice"
    summary = "any K: FOLKLORE on random Fourier features of the gaussian kernel, of fixed size"
    reference = "Agarwal, Kale and Zimmert, ALT 2022, with Rahimi and Recht, NIPS 2007"
    bound_unit = "nats"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        bandwidth: float = 1.0,
        features: int = 100,
        regularization: float | Literal["theory"] = "theory",
        curvature: float | Literal["simple", "tight"] = "simple",
    ) -> None:
        super().__init__(problem, rng)
        if rng is None:
            raise UsageError("fourier-folklore draws its features: rng must be a numpy Generator, got None")
        self.bandwidth = positive("bandwidth", bandwidth)
        self.features = D = at_least("features", features, 2)
        if D % 2:
            raise UsageError(f"features must be even (a cosine and a sine of each frequency), got {D}")
        inner = Problem(D, problem.n_classes, 1.0, problem.horizon)
        self._inner = FOLKLORE(
            inner, None, norm_bound=norm_bound, regularization=regularization, curvature=curvature, form="primal"
        )
        self.norm_bound, self.regularization = self._inner.norm_bound, self._inner.regularization
        self.curvature = self._inner.curvature
        # From a child stream: the caller's own draws are the same whatever D is.
        self._omega: NDArray[np.float64] = (
            rng.spawn(1)[0].standard_normal((D // 2, problem.n_features)) / self.bandwidth
        )

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return how many bytes the state takes at least: FOLKLORE's inverse over the features, and their directions."""
        D = settings.get("features", cls.own_settings()["features"].default)
        return 4.0 * D * max((problem.n_classes * D) * problem.n_classes, problem.n_features)

    def phi(self, X: Floats) -> Floats:
        """Return the features (n, D) of contexts (n, d)."""
        angles = X @ self._omega.T
        return as_contexts(np.hstack([np.cos(angles), np.sin(angles)]) * math.sqrt(2.0 / self.features))

    def predict(self, context: Floats) -> Floats:
        """Return the logits (K,) for `context` (d,)."""
        return self._inner.predict(self.phi(as_context(context, self.problem)[None])[0])

    def predict_many(self, contexts: Floats) -> Floats:
        """Return the logits (n, K) for `contexts` (n, d), the state held fixed."""
        return self._inner.predict_many(self.phi(as_rows(contexts, self.problem)))

    def update(self, context: Floats, label: int) -> None:
        """Learn that `context` (d,) has the class `label`."""
        x, y = as_context(context, self.problem), as_class("the label", label, self.problem.n_classes)
        self._inner.update(self.phi(x[None])[0], y)

    def _forecast_block(self, X: Floats, y: NDArray[np.int64], logits: Floats) -> None:
        self._inner.forecast_block(self.phi(X), y, logits)

    def space_bound(self, rounds: float) -> float | None:
        """Return Theorem 3's regret against W phi, ||W_k|| <= B, after `rounds` rounds, in nats; None where none holds."""
        return self._inner.bound(rounds)

    def space_certificate(self) -> float:
        """Return the bound on the regret so far against W phi, ||W_k|| <= B, in nats, or NaN."""
        return self._inner.certificate()
