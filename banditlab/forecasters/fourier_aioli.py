"""AIOLI on random Fourier features of the gaussian kernel (Rahimi and Recht, NIPS 2007)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.curvature import tight_curvature
from banditlab.errors import IncompatibleError, UsageError
from banditlab.forecasters import aioli
from banditlab.numerics.jit import borrow, njit, read_only
from banditlab.numerics.symmetric import dot
from banditlab.players.forecaster import KernelForecaster
from banditlab.problem import Problem
from banditlab.validation import at_least, nonnegative, positive, resolve


class State(NamedTuple):
    """omega (D/2, d) frequencies; phi (D,) the features of a context (scratch); aioli: AIOLI's state in D dimensions."""

    omega: NDArray[np.float64]
    phi: NDArray[np.float64]
    aioli: aioli.State


@njit
def features(omega, x, phi):
    """Write sqrt(2/D) (cos omega x, sin omega x) into phi (D,): phi(x)'phi(y) = mean of cos omega'(x - y)."""
    # D/2 frequencies, D = 2 half: sqrt(2/D) = sqrt(1/half); cosines first, sines after them.
    half = omega.shape[0]
    scale = math.sqrt(1.0 / half)
    for i in range(half):
        angle = dot(omega[i], x)
        phi[i] = scale * math.cos(angle)
        phi[half + i] = scale * math.sin(angle)


@njit
def predict_kernel(state, x, z):
    state, x, z = borrow(state), borrow(x), borrow(z)
    features(state.omega, x, state.phi)
    # AIOLI at phi(x), with the type of a context.
    aioli.predict_kernel(state.aioli, read_only(state.phi), z)


@njit
def update_kernel(state, x, y, z):
    state, x, z = borrow(state), borrow(x), borrow(z)
    features(state.omega, x, state.phi)
    aioli.update_kernel(state.aioli, read_only(state.phi), y, z)


class FourierAIOLI(KernelForecaster):
    """AIOLI on D random features whose inner products tend to the gaussian kernel: kernel AIOLI of fixed size.

    Problem: full-information binary prediction, logistic loss, adversarial stream. Class 0 is the label +1 of the
    paper; the logits answered are (z, 0).

    Update rule: D/2 frequencies omega_i ~ N(0, I / bandwidth^2) are drawn once by the constructor;
    phi(x) = sqrt(2/D) (cos omega_i'x, sin omega_i'x)_i has norm 1 and phi(x)'phi(y) has mean
    exp(-||x - y||^2 / (2 bandwidth^2)). Then AIOLI's rule with phi(x) for x.

    Guarantee: AIOLI's Theorem 1 in D dimensions with R = 1, against the functions theta'phi(x), ||theta|| <= 2 B.
    Linear functions are not among them, so `bound` is None and `certificate` NaN; `space_certificate` bounds the regret
    against that ball. How far the ball is from the kernel's own space is not bounded here.

    Cost: O(D d + D^2) a round; D^2 + D d / 2 numbers.

    Parameters
    ----------
    norm_bound
        B: the comparator is theta'phi with ||theta|| <= 2 B.
    bandwidth
        Of the gaussian kernel, in the unit of the contexts.
    features
        D, the number of features; even.
    regularization, virtual_weight, curvature
        As for `aioli`, with R = 1.

    Raises
    ------
    IncompatibleError
        More than two classes.
    UsageError
        A setting out of its range, or no generator.

    References
    ----------
    A. Rahimi, B. Recht. Random features for large-scale kernel machines. NIPS 2007.
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    """

    id = "fourier-aioli"
    group = "practice"
    summary = "binary: AIOLI on random Fourier features of the gaussian kernel, of fixed size"
    reference = "Jézéquel, Gaillard and Rudi, COLT 2020, Section 4.1, with Rahimi and Recht, NIPS 2007"
    bound_unit = "nats"
    predict_kernel = predict_kernel
    update_kernel = update_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        bandwidth: float = 1.0,
        features: int = 100,
        regularization: float | Literal["theory"] = "theory",
        virtual_weight: float = 1.0,
        curvature: float | Literal["simple", "tight"] = "simple",
    ) -> None:
        super().__init__(problem, rng)
        if problem.n_classes != 2:
            raise IncompatibleError(f"fourier-aioli is binary: it needs n_classes = 2, got {problem.n_classes}")
        if rng is None:
            raise UsageError("fourier-aioli draws its features: rng must be a numpy Generator, got None")
        self.norm_bound = positive("norm_bound", norm_bound)
        self.bandwidth = positive("bandwidth", bandwidth)
        self.features = D = at_least("features", features, 2)
        if D % 2:
            raise UsageError(f"features must be even (a cosine and a sine of each frequency), got {D}")
        words = {"simple": 0.5 / (1.0 + self.margin_bound), "tight": tight_curvature(self.margin_bound)}
        self.regularization = resolve("regularization", regularization, {"theory": 1.0 / self.margin_bound**2})
        self.virtual_weight = nonnegative("virtual_weight", virtual_weight)
        self.curvature = resolve("curvature", curvature, words)
        # From a child stream: the caller's own draws are the same whatever D is.
        omega = rng.spawn(1)[0].standard_normal((D // 2, problem.n_features)) / self.bandwidth
        inner = aioli.State.initial(D, self.regularization, self.curvature, self.virtual_weight)
        self.state = State(omega, np.zeros(D), inner)

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return how many bytes the state takes at least: AIOLI's inverse over the features, and their directions."""
        features = settings.get("features", cls.own_settings()["features"].default)
        return 8.0 * features * max(features, problem.n_features)

    @property
    def margin_bound(self) -> float:
        """The bound 2 B on ||theta||: B in the paper."""
        return 2.0 * self.norm_bound

    def space_certificate(self) -> float:
        """Return the bound on the regret so far against theta'phi, ||theta|| <= 2 B, in nats.

        NaN for a curvature that is not admissible, and for a regularization so small that rounding is not.
        """
        doubtful = self.regularization * aioli.ROOT_FROM < 1.0
        if doubtful or self.curvature > tight_curvature(self.margin_bound) * (1.0 + 1e-12):
            return math.nan
        return self.regularization * self.margin_bound**2 + float(self.state.aioli.spent[0])
