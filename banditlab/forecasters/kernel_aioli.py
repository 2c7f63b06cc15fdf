"""AIOLI in a reproducing kernel Hilbert space (Jézéquel, Gaillard and Rudi, COLT 2020, Section 4.1)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.aioli import aioli
from banditlab.bounds.curvature import tight_curvature
from banditlab.errors import IncompatibleError, UsageError
from banditlab.forecasters.aioli import surrogate
from banditlab.forecasters.primal_dual import certified
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.joint_inverse import EPSILON
from banditlab.numerics.kernel_quadratic import GAUSSIAN, LINEAR, POLYNOMIAL, Dual, dual_add, dual_form, kernel_value
from banditlab.numerics.tanh_root import aioli_root
from banditlab.players.forecaster import Floats, Forecaster
from banditlab.players.inputs import as_class, as_context, as_rows
from banditlab.players.saved import fields_of
from banditlab.problem import Problem
from banditlab.validation import at_least, nonnegative, one_of, positive, resolve

KERNELS = {"linear": LINEAR, "gaussian": GAUSSIAN, "polynomial": POLYNOMIAL}


class State(NamedTuple):
    """AIOLI's quadratic form in the kernel's space.

    `curvature` is c, `virtual_weight` is w, and `spent` (1,) is the sum of the certificate's terms so far.
    """

    dual: Dual
    curvature: float
    virtual_weight: float
    spent: NDArray[np.float64]


@njit
def predict_kernel(state, x, z):
    m, q = dual_form(state.dual, x)
    z[0] = aioli_root(m, q, state.virtual_weight)  # z = m - (w/2) q tanh(z/2)
    z[1] = 0.0


@njit
def predict_many_kernel(state, X, Z):
    for t in range(X.shape[0]):
        predict_kernel(state, X[t], Z[t])


@njit
def update_kernel(state, x, y):
    state, x = borrow(state), borrow(x)
    c, w = state.curvature, state.virtual_weight
    m, q = dual_form(state.dual, x)
    t = aioli_root(m, q, w)
    kappa, gam, beta = surrogate(t, y, c)
    # The certificate's term, as AIOLI's.
    virtual = w * math.tanh(0.5 * t)
    state.spent[0] += 0.25 * q * ((virtual - gam) ** 2 / (1.0 + kappa * q) - virtual**2)
    dual_add(state.dual, x, q, kappa, beta)


class KernelAIOLI(Forecaster):
    r"""AIOLI on the features of a kernel, in the dual form, which stores the context of every update.

    Problem: full-information binary prediction, logistic loss, adversarial stream. Class 0 is the label +1 of the
    paper; the forecast logits are :math:`(z, 0)`.

    Update rule: AIOLI's with :math:`\phi(x)` instead of x. The margin z is the root of
    :math:`z = m - (w/2) q \tanh(z/2)` with :math:`m = \phi'A^{-1}b` and :math:`q = \phi'A^{-1}\phi`. Both follow from
    one triangular solve with the Cholesky factor of :math:`D^{1/2} G D^{1/2} + \lambda I`, where G is the Gram matrix
    and D is the diagonal matrix of the curvatures :math:`(\eta_s/2) \gamma_s^2` of past updates. With the linear kernel
    this is AIOLI.

    Guarantee: Theorem 1's argument holds with the effective dimension instead of d (`aioli_kernel` in
    `banditlab.bounds`). The comparators are the functions of norm at most :math:`2 B` in the kernel's space. For the
    linear kernel these are the functions :math:`w'x` with :math:`\|w\| \le 2 B`. For the polynomial kernel they include
    :math:`w'x` with :math:`\|w\| \le 2 B \sqrt{\text{degree}}`. For both kernels `bound` is that of Theorem 1, with the
    dimension of the kernel's space, or the number of rounds if that is smaller, for d; `certificate` is AIOLI's. The
    space of a Gaussian kernel contains no linear function except 0, so `bound` is None and `certificate` NaN. For every
    kernel, `space_certificate` bounds the regret against the functions of norm at most :math:`2 B`.

    Cost: t kernel values and :math:`t^2 / 2` multiplications in round t, hence :math:`n^3 / 6` for n rounds (an update
    costs two solves). Memory: :math:`n^2 / 2` numbers. The arrays grow by doubling, which compiled loops cannot do, so
    rounds are run one at a time. For long streams with the Gaussian kernel use `fourier-aioli`, whose size is fixed.

    Parameters
    ----------
    norm_bound
        B: the comparator is :math:`f_0 - f_1` with :math:`\|f_k\| \le B` in the kernel's space. B in the paper is
        :math:`2 B` here (attribute `margin_bound`).
    kernel
        "linear": :math:`x'y`. "gaussian": :math:`\exp(-\|x - y\|^2 / (2\,\text{bandwidth}^2))`. "polynomial":
        :math:`(1 + x'y)^{\text{degree}}`.
    bandwidth
        Bandwidth of the Gaussian kernel, in the units of the contexts.
    degree
        Degree of the polynomial kernel, 1 or above.
    regularization, virtual_weight, curvature
        As for `aioli`, with :math:`R = \sup \sqrt{k(x, x)}` in "simple" and "tight".

    Raises
    ------
    IncompatibleError
        The number of classes is above two.
    UsageError
        A setting is outside its range.

    References
    ----------
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    """

    id = "kernel-aioli"
    group = "theory"
    summary = "binary: AIOLI with a kernel; memory grows with the square of the rounds"
    reference = "Jézéquel, Gaillard and Rudi, COLT 2020, Section 4.1"
    state_order = (0, 0)
    bound_unit = "nats"
    bound_adversary = "adaptive"
    excluded_checks: ClassVar[dict[str, str]] = {
        "bounded_memory": "stores all contexts and a factor of their Gram matrix"
    }

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        kernel: Literal["linear", "gaussian", "polynomial"] = "gaussian",
        bandwidth: float = 1.0,
        degree: int = 2,
        regularization: float | Literal["theory"] = "theory",
        virtual_weight: float = 1.0,
        curvature: float | Literal["simple", "tight"] = "simple",
    ) -> None:
        super().__init__(problem, rng)
        if problem.n_classes != 2:
            raise IncompatibleError(f"kernel-aioli is binary: it needs n_classes = 2, got {problem.n_classes}")
        self.norm_bound = positive("norm_bound", norm_bound)
        self.kernel = one_of("kernel", kernel, tuple(KERNELS))
        self.bandwidth = positive("bandwidth", bandwidth)
        self.degree = at_least("degree", degree, 1)
        margin = self.margin_bound * self.feature_radius
        words = {"simple": 0.5 / (1.0 + margin), "tight": tight_curvature(margin)}
        self.regularization = resolve("regularization", regularization, {"theory": 1.0 / self.margin_bound**2})
        self.virtual_weight = nonnegative("virtual_weight", virtual_weight)
        self.curvature = resolve("curvature", curvature, words)
        parameter = float(self.degree) if self.kernel == "polynomial" else self.bandwidth
        dual = Dual.empty(problem.n_features, KERNELS[self.kernel], parameter, self.regularization)
        self.state = State(dual, self.curvature, self.virtual_weight, np.zeros(1))

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state returned by `get_state` of a player with the same settings, and resize the arrays to it."""
        old, given = self.state.dual, fields_of((fields_of(state["state"]) or {})["dual"]) or {}
        capacity, stored = len(given["s"]), given["L"].shape
        if capacity < 1 or stored != (capacity * (capacity + 1) // 2,):
            raise UsageError(
                f"state.state.dual.L must be the packed Cholesky factor of a {capacity} x {capacity} matrix, of shape "
                f"({capacity * (capacity + 1) // 2},), got shape {stored}"
            )
        dual = Dual.empty(self.problem.n_features, old.kernel, old.parameter, old.regularization, capacity)
        self.state = self.state._replace(dual=dual)
        super().set_state(state)

    @property
    def margin_bound(self) -> float:
        """The bound 2 B on the comparator's norm, which is B in the paper."""
        return 2.0 * self.norm_bound

    @property
    def feature_radius(self) -> float:
        r"""The largest :math:`\sqrt{k(x, x)}`, which is R in the paper."""
        R = self.problem.radius
        return {"linear": R, "gaussian": 1.0, "polynomial": (1.0 + R**2) ** (0.5 * self.degree)}[self.kernel]

    def predict(self, context: Floats) -> Floats:
        """Return the logits (2,) for `context` (d,)."""
        z = np.empty(2)
        predict_kernel(self.state, as_context(context, self.problem), z)
        return z

    def predict_many(self, contexts: Floats) -> Floats:
        """Return the logits (n, 2) for `contexts` (n, d); the state does not change."""
        X = as_rows(contexts, self.problem)
        Z = np.empty((len(X), 2))
        predict_many_kernel(self.state, X, Z)
        return Z

    def update(self, context: Floats, label: int) -> None:
        """Update with the class `label` of `context` (d,)."""
        x, y = as_context(context, self.problem), as_class("the label", label, 2)
        self.state = self.state._replace(dual=self.state.dual.grown())
        update_kernel(self.state, x, y)

    def bound(self, rounds: float) -> float | None:
        """Return Theorem 1's regret bound against linear functions after `rounds` rounds, in nats, or None if it does
        not hold.
        """
        # The spaces of the other two kernels contain the linear functions.
        if self.kernel == "gaussian" or self.virtual_weight != 1.0 or not self._proved():
            return None
        d = self.problem.n_features
        features = d if self.kernel == "linear" else math.comb(d + self.degree, self.degree)
        dimension = max(min(features, rounds), 1e-9)  # the largest possible rank of the Gram matrix
        return aioli(rounds, dimension, self.margin_bound, self.feature_radius, self.regularization, self.curvature)

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far against linear functions, in nats, or NaN."""
        return math.nan if self.kernel == "gaussian" else self.space_certificate()

    def space_certificate(self) -> float:
        """Return the bound on the regret so far against the ball of radius 2 B of the kernel's space.

        The bound is NaN if the curvature is not admissible, or if its rounding error may exceed 0.1 %.
        """
        if not self._proved():
            return math.nan
        total = self.regularization * self.margin_bound**2 + float(self.state.spent[0])
        # A margin is m - (w/2) q tanh, with terms of order k(x, x) / lambda. Measured errors are a tenth of this per
        # round.
        rounding = 4.0 * EPSILON * self.feature_radius**2 / self.regularization
        return certified(total, rounding * float(self.state.dual.n[0]))

    def effective_dimension(self, scale: float) -> float:
        r"""Return the effective dimension :math:`\mathrm{tr}(G (G + \text{scale}\, I)^{-1})`.

        G is the Gram matrix of the updates' contexts; `scale` is :math:`\lambda` in the paper.
        """
        dual = self.state.dual
        n = int(dual.n[0])
        X = as_contexts(dual.X[:n])
        gram = np.array([[kernel_value(x, y, dual.kernel, dual.parameter) for y in X] for x in X]).reshape(n, n)
        values = np.maximum(np.linalg.eigvalsh(gram), 0.0) if n else np.zeros(0)
        return float((values / (values + scale)).sum())

    def _proved(self) -> bool:
        return self.curvature <= tight_curvature(self.margin_bound * self.feature_radius) * (1.0 + 1e-12)
