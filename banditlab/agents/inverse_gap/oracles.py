r"""The oracles of FastCB and SquareCB, which predict the probability that each class would be correct.

An oracle consists of a state and two compiled functions, which do not use the probabilities of the actions:

* `margins_kernel(state, x, z)` writes :math:`z_k`, :math:`k = 0, \dots, K-1`, with
  :math:`P(k \text{ is correct}) = \mathrm{sigmoid}(z_k)`.
* `learn_kernel(state, x, k, z, y)` updates class k, which was played at the margin z, with :math:`y = 1` if it was
  right and -1 if it was wrong.

Every oracle works with every inverse-gap weighting. A combination is compiled only if it is used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import (
    Models,
    learn,
    learn_all,
    margin,
    margins,
    new_models,
    sigmoid,
    update_model,
)
from banditlab.agents.second_order import form_of, least_bytes
from banditlab.bounds.curvature import tight_curvature
from banditlab.errors import UsageError
from banditlab.numerics.class_inverses import inverses, prefetch
from banditlab.numerics.jit import inline, njit, read_only
from banditlab.numerics.log_mixture import mix, reweigh
from banditlab.numerics.softmax import log_softmax
from banditlab.numerics.vectors import matrix, scores
from banditlab.problem import Problem
from banditlab.validation import at_least, nonnegative, positive, resolve


@njit
def no_challenger(state, x, k, z, y):
    """Do nothing, because the oracle has no challenger."""


@inline
def no_prefetch_of(state, X, t, behind):
    """Do nothing, because the oracle has no prefetch."""


@inline(arrays="views")
def own_context(state, x):
    """Return the agent's context buffer: x (d,) followed by the intercept."""
    own = state.x
    for j in range(x.shape[0]):
        own[j] = x[j]
    return read_only(own)


@inline
def nothing(state):
    """Do nothing, because the oracles share no state."""


class Oracle(ABC):
    """A kind of oracle: its kernels, its settings, and the functions that build its state."""

    reads: ClassVar[tuple[str, ...]]
    """The settings that the oracle uses; the agent rejects others."""
    margins_kernel: ClassVar[Any]
    learn_kernel: ClassVar[Any]
    challenger_kernel: ClassVar[Any] = no_challenger
    """(state, x, k, z (K,), y): the update of a challenger; see `rival`."""
    prefetch_kernel: ClassVar[Any] = no_prefetch_of
    """(state, X, t, behind): prepares the round of context t of X, with `behind` appended; see
    `class_inverses.prefetch`."""
    context_kernel: ClassVar[Any] = own_context
    """(agent's state, x): returns the argument x of `margins_kernel`."""
    begin_kernel: ClassVar[Any] = own_context
    """(agent's state, x): does the same at the start of an update, and may change the shared state."""
    close_kernel: ClassVar[Any] = nothing
    """(agent's state): the last step of an update."""

    @staticmethod
    @abstractmethod
    def resolved(given: dict[str, Any], problem: Problem) -> dict[str, Any]:
        """Return the settings with strings such as "auto" replaced by numbers, or raise a UsageError."""

    @staticmethod
    @abstractmethod
    def state(n_classes: int, n_features: int, radius: float, settings: dict[str, Any]) -> Any:
        """Return the state before any update, for K classes, from resolved settings."""

    @staticmethod
    def rival(settings: dict[str, Any]) -> dict[str, Any] | None:
        """Return the resolved settings of a second oracle that competes with the first, or None."""
        return None

    @staticmethod
    def shared(n_features: int, settings: dict[str, Any]) -> Any:
        """Return the part of the state that two competing oracles share, or None."""
        return None

    @staticmethod
    def models(settings: Mapping[str, Any]) -> float:
        """Return the number of second-order models per class for the given settings; each has :math:`d^2/2` numbers."""
        return 0.0

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the bytes of the oracle's states, from unresolved settings."""
        K, d = problem.n_classes, problem.n_features
        return 4.0 * K * d * max(1.0, cls.models(settings) * d)

    @staticmethod
    def prefetches(state: Any) -> bool:
        """Return whether `prefetch_kernel` does anything for this state."""
        return False


# ----------------------------------------------------------------------------------------------------------------- AIOLI

AUTO_MARGIN = 1.0
"""`norm_bound = "auto"` in units of :math:`1/R`."""
AUTO_REGULARIZATION = 0.003
"""`regularization = "auto"` in units of :math:`R^2`, so contexts in other units give the same decisions."""


def curvature_of(word: float | str, margin_bound: float) -> float:
    """Return AIOLI's c: `word` itself if it is a number, or the value of the rule "simple" or "tight" for margins up to
    `margin_bound`.
    """
    words = {"simple": 0.5 / (1.0 + margin_bound), "tight": tight_curvature(margin_bound)}
    return resolve("curvature", word, words)


@njit
def aioli_prefetch(models, X, t, behind):
    prefetch(models.inverses, X, t, behind)


class PerClassAIOLI(Oracle):
    """The settings and kernels of one AIOLI model per class; `second_order` selects the form of the matrices."""

    margins_kernel = margins
    learn_kernel = learn
    challenger_kernel = learn_all

    reads = (
        "norm_bound",
        "regularization",
        "curvature",
        "virtual_weight",
        "challenger",
        "second_order",
        "sketch_size",
    )

    @staticmethod
    def resolved(given: dict[str, Any], problem: Problem) -> dict[str, Any]:
        """Return the settings with strings such as "auto" replaced by numbers, and the form of the matrices."""
        R, form = problem.radius, form_of(given["second_order"], given["sketch_size"], problem)
        bound = resolve("norm_bound", given["norm_bound"], {"auto": AUTO_MARGIN / R})
        ridge = resolve("regularization", given["regularization"], {"auto": AUTO_REGULARIZATION * R**2})
        return {
            "norm_bound": bound,
            "regularization": ridge,
            "curvature": curvature_of(given["curvature"], bound * R),
            "virtual_weight": nonnegative("virtual_weight", given["virtual_weight"]),
            "challenger": nonnegative("challenger", given["challenger"]),
            **form._asdict(),
        }

    @staticmethod
    def models(settings: Mapping[str, Any]) -> float:
        """Return 2 if there is a challenger, else 1."""
        return 2.0 if settings["challenger"] else 1.0

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the bytes of the oracle's states, from unresolved settings."""
        return least_bytes(problem, settings, problem.n_classes * cls.models(settings))

    @staticmethod
    def rival(settings: dict[str, Any]) -> dict[str, Any] | None:
        """Return the settings with the regularization multiplied by `challenger`, or None if `challenger` is 0."""
        factor = settings["challenger"]
        return settings | {"regularization": factor * settings["regularization"]} if factor > 0.0 else None


def scales_of(n_classes: int, settings: dict[str, Any]) -> NDArray[np.float64]:
    r"""Return :math:`1/\lambda` of each class (K,)."""
    return np.full(n_classes, 1.0 / settings["regularization"])


def new_models_in(inverses: Any, n_classes: int, settings: dict[str, Any]) -> Models:
    """Return K models with these settings and new inverses."""
    return new_models(inverses, np.full(n_classes, settings["curvature"]), settings["virtual_weight"])


class AIOLIOracle(PerClassAIOLI):
    """An AIOLI model per class, with whole matrices."""

    prefetch_kernel = aioli_prefetch

    @staticmethod
    def prefetches(state: Models) -> bool:
        """Return whether the models are large enough for prefetching."""
        return state.inverses.ahead is not None

    @staticmethod
    def state(n_classes: int, n_features: int, radius: float, settings: dict[str, Any]) -> Models:
        """Return K models."""
        return new_models_in(inverses(scales_of(n_classes, settings), n_features), n_classes, settings)


# ---------------------------------------------------------------------------------------------------------------- B-grid


AUTO_GRID_MARGIN = 4.0
"""`norm_bound = "auto"` of the grid, its smallest, in units of :math:`1/R`."""


class GridState(NamedTuple):
    r"""The state: `models`, of which those with indices :math:`k N, \dots, k N + N - 1` belong to class k, and their
    log weights `w` (K, N).

    `z` (K N,), `Z` (N, 2) and `both` (2,) are work arrays.
    """

    models: Models
    w: NDArray[np.float64]
    z: NDArray[np.float64]
    Z: NDArray[np.float64]
    both: NDArray[np.float64]


@njit
def grid_margins(state, x, z):
    K, N = state.w.shape
    margins(state.models, x, state.z)
    for k in range(K):
        for i in range(N):
            state.Z[i, 0], state.Z[i, 1] = state.z[k * N + i], 0.0
            log_softmax(state.Z[i])  # ln sigmoid(z_i), ln sigmoid(-z_i)
        mix(state.w[k], state.Z, state.both)  # ln of the means by the weights w_i
        z[k] = state.both[0] - state.both[1]  # the mixture's log-odds


@njit
def grid_learn(state, x, k, z, y):
    N = state.w.shape[1]
    for i in range(N):
        own, m, q = margin(state.models, x, k * N + i)
        update_model(state.models, x, k * N + i, own, y, m, q)
        state.Z[i, 0], state.Z[i, 1] = own, 0.0
        log_softmax(state.Z[i])
    reweigh(state.w[k], state.Z, 0 if y > 0.0 else 1)  # w_i sigmoid(y z_i), normalised


@njit
def grid_prefetch(state, X, t, behind):
    prefetch(state.models.inverses, X, t, behind)


class GridOracle(Oracle):
    r"""N AIOLI models per class, mixed at learning rate 1.

    Model i has the norm bound :math:`B_i = B_1 \text{ratio}^{i-1}` and the regularization :math:`1/B_i^2`.
    """

    reads = ("norm_bound", "curvature", "virtual_weight", "grid_size", "grid_ratio")
    margins_kernel = grid_margins
    learn_kernel = grid_learn
    prefetch_kernel = grid_prefetch

    @staticmethod
    def resolved(given: dict[str, Any], problem: Problem) -> dict[str, Any]:
        """Return `norm_bound` (:math:`B_1`), `grid_size` and `grid_ratio` as numbers; `curvature` may remain a string.

        Each model replaces the string by a number that depends on its own norm bound.
        """
        bound = resolve("norm_bound", given["norm_bound"], {"auto": AUTO_GRID_MARGIN / problem.radius})
        curvature = given["curvature"]
        if curvature not in ("simple", "tight"):
            curvature = curvature_of(curvature, bound * problem.radius)
        ratio = positive("grid_ratio", given["grid_ratio"])
        if ratio <= 1.0:
            raise UsageError(f"grid_ratio must be a number above 1, got {ratio:g}")
        return {
            "norm_bound": bound,
            "curvature": curvature,
            "virtual_weight": nonnegative("virtual_weight", given["virtual_weight"]),
            "grid_size": at_least("grid_size", given["grid_size"], 1),
            "grid_ratio": ratio,
        }

    @staticmethod
    def models(settings: Mapping[str, Any]) -> float:
        """Return `grid_size`, or 1 if it is not a number (the constructor then rejects it)."""
        size = settings["grid_size"]
        return float(size) if isinstance(size, int | float) else 1.0

    @staticmethod
    def prefetches(state: GridState) -> bool:
        """Return whether the models are large enough for prefetching."""
        return state.models.inverses.ahead is not None

    @staticmethod
    def state(n_classes: int, n_features: int, radius: float, settings: dict[str, Any]) -> GridState:
        """Return :math:`K N` models; the N models of a class have equal weights."""
        K, N = n_classes, settings["grid_size"]
        B = settings["norm_bound"] * settings["grid_ratio"] ** np.arange(N)
        c = np.array([curvature_of(settings["curvature"], b * radius) for b in B])
        models = new_models(
            inverses(1.0 / np.tile(1.0 / B**2, K), n_features), np.tile(c, K), settings["virtual_weight"]
        )
        return GridState(models, np.full((K, N), -math.log(N)), np.zeros(K * N), np.zeros((N, 2)), np.zeros(2))


# ----------------------------------------------------------------------------------------- online logistic regression

AUTO_STEP = 1.0
"""`step = "auto"` in units of :math:`1/R`."""


class LogisticState(NamedTuple):
    """W (K, d), padded; G (K, d), padded, sums of squared gradients; step (1,)."""

    W: NDArray[np.float64]
    G: NDArray[np.float64]
    step: NDArray[np.float64]


@njit
def logistic_margins(state, x, z):
    scores(state.W, x, z)


@njit
def logistic_learn(state, x, k, z, y):
    slope = -y * sigmoid(-y * z)  # the gradient is slope x
    for j in range(x.shape[0]):
        g = slope * x[j]
        if g != 0.0:
            state.G[k, j] += g * g  # G_k += g^2
            state.W[k, j] -= state.step[0] * g / math.sqrt(state.G[k, j])  # w_k -= step g / sqrt(G_k)


class LogisticOracle(Oracle):
    """One logistic regression per class by AdaGrad (Duchi, Hazan and Singer, 2011), diagonal, first-order."""

    reads = ("step",)
    margins_kernel = logistic_margins
    learn_kernel = logistic_learn

    @staticmethod
    def resolved(given: dict[str, Any], problem: Problem) -> dict[str, Any]:
        """Return the settings with `step` as a number."""
        return {"step": resolve("step", given["step"], {"auto": AUTO_STEP / problem.radius})}

    @staticmethod
    def state(n_classes: int, n_features: int, radius: float, settings: dict[str, Any]) -> LogisticState:
        """Return K weight vectors of zeros."""
        W, G = matrix(n_classes, n_features), matrix(n_classes, n_features)
        return LogisticState(W, G, np.array([settings["step"]]))


ORACLES: dict[str, type[Oracle]] = {"aioli": AIOLIOracle, "logistic": LogisticOracle, "b-grid": GridOracle}
